//! Placed loops become Kernel IR.
//!
//! In: a `loops::ir::Kernel` of either stage (unplaced loops run one iteration at a time). Out: a `kernel::ir::Kernel`.
//!
//! ```text
//! for j in 0..n: free vector(16)                 for j in 0..n // 16 * 16 step 16 {
//!   x: f32 = load A[j]                             x: f32x16 = load A[j]
//!   store B[j] = x                      -->        store B[j] = x
//!                                                }
//!                                                for j_2 in n // 16 * 16..n step 1 { ... }
//! ```
//!
//! * [`scalar`]: statements one lane at a time    * [`vector`]: statements many lanes at a time, and the loops around them
//! * [`register`]: register buffers               * [`slots`]: where buffers lie in the scratch
//! * [`transpose`]: squares of lanes               * [`blocks`]: loops over blocks
//! * [`persistent_loop`]: of blocks that take several iterations
//! * [`threads`]: loops over threads               * [`sync`]: where the threads of a block wait for each other
//! * [`matrix`]: products on the matrix unit    * [`wgmma`], [`tcgen05`]: of them, those of groups of four warps
//! * [`roles`]: of these, where one warp fills and the others compute
//! * [`pipeline`]: loops that fill what the next iterations need    * [`tensor`]: of it, what TMA fills

mod blocks;
mod matrix;
mod cluster_block;
mod pipeline;
mod register;
mod roles;
mod persistent_loop;
mod scalar;
mod slots;
mod sync;
mod tcgen05;
mod tensor;
mod threads;
mod amx;
mod transpose;
mod vector;
mod wgmma;

use crate::base::Label;
use crate::base::provenance::SourceId;
use crate::kernel::ident::Idents;
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::loops::{provenance, walk};
use crate::tile::boxes::BoxCopy;
use rustc_hash::{FxHashMap, FxHashSet};

/// The options of a lowering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Check every access of global memory against the regions of the launch.
    pub check: bool,
    /// The most bytes of shared memory that a block can have.
    pub shared: u64,
    /// Lanes of a warp, a power of two.
    pub warp: u32,
    /// The arrays of parameters do not overlap where they are written.
    pub apart: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { check: false, shared: 0, warp: 32, apart: false }
    }
}

/// The most scratch memory a worker may need, in bytes.
pub const SCRATCH_LIMIT: u64 = 1 << 30;

/// The first effect that all threads of a block would have at once, if there is one: others see how often it happens.
fn done_by_all(kernel: &l::Kernel, body: &[l::Stmt]) -> Option<String> {
    body.iter().find_map(|s| match s {
        l::Stmt::For(f) if f.place == l::Place::Thread => parts_apart(kernel, &f.body),
        // One thread begins such copies.
        l::Stmt::For(f) if f.place == l::Place::TmaStore => None,
        l::Stmt::Stage { filled: l::Filled::Tma, .. } => None,
        l::Stmt::Store { .. } => Some("stores to global memory".to_string()),
        l::Stmt::Rmw { .. } | l::Stmt::Cas { .. } => Some("updates memory atomically".to_string()),
        l::Stmt::Print { .. } => Some("prints".to_string()),
        l::Stmt::Write { buf, .. } if kernel.bufs[*buf].space == l::Space::Shared => {
            Some(format!("writes all of `{}`", kernel.bufs[*buf].name))
        }
        s => walk::bodies(s).into_iter().find_map(|inner| done_by_all(kernel, inner)),
    })
}

/// A tile that threads write parts of, although each has it for itself, if any.
fn parts_apart(kernel: &l::Kernel, body: &[l::Stmt]) -> Option<String> {
    let own = walk::refs(body).bufs_defined;
    let mut found = None;
    walk::visit(body, &mut |s| {
        if let l::Stmt::Write { buf, .. } = s
            && !own.contains(buf)
            && kernel.bufs[*buf].space == l::Space::Scratch
            && !kernel.bufs[*buf].shape.is_empty()
        {
            found.get_or_insert_with(|| format!("has its part of `{}` for itself", kernel.bufs[*buf].name));
        }
    });
    found
}

/// Returns true if a pipeline that TMA fills runs several times in a block. Its generations are counted through the `rounds` of a block,
/// and through no other loop.
fn filled_again(body: &[l::Stmt], rounds: Option<l::AxisId>) -> bool {
    let by_tma = |s: &l::Stmt| s.filled(l::Filled::Tma);
    body.iter().any(|s| match s {
        l::Stmt::For(f) if Some(f.axis) == rounds => filled_again(&f.body, None),
        l::Stmt::For(f) => {
            let (_, rest) = f.stages();
            walk::stmts(rest).any(by_tma)
        }
        l::Stmt::Loop { body } => walk::stmts(body).any(by_tma),
        s => walk::bodies(s).into_iter().any(|inner| filled_again(inner, rounds)),
    })
}

/// Lowers a kernel. The error is a plain sentence: the kernel needs too much scratch, or breaks an invariant of Loop
/// IR.
pub fn legalise(kernel: &l::Kernel, options: &Options) -> Result<k::Kernel, String> {
    let bound = blocks::bind(kernel)?;
    let apart = roles::Apart::of(&bound, options.warp);
    let blocks::Bound { kernel: bound, grid, numbers, rounds, cluster, .. } = bound;
    if filled_again(&bound.body, rounds.as_ref().map(|r| r.axis)) {
        return Err(
            "TMA fills a pipeline in a loop that is not one over a block's tiles (`policy tma_copy`)".to_string()
        );
    }
    let mut lower = Lower::new(&bound, options, apart.is_some())?;
    if lower.out.threads > 1 {
        if let Some(what) = done_by_all(&bound, &bound.body) {
            return Err(format!(
                "every thread of a block {what}; the loops around it are not spread over the threads (`policy spread_threads`)"
            ));
        }
        let ahead = rounds.as_ref().is_some_and(|r| r.ahead);
        let goes = sync::Goes { rounds: rounds.as_ref().map(|r| r.axis), ahead, apart: apart.is_some() };
        lower.barriers = sync::barriers(&bound, kernel.open, goes, &lower.slots.met, options.warp);
    }
    (lower.numbers, lower.rounds) = (numbers.into_iter().collect(), rounds);
    lower.out.cluster = cluster.as_ref().map_or(1, |c| c.blocks);
    lower.cluster = cluster;
    let mut body = match &apart {
        Some(apart) => lower.going_apart(&bound.body, apart)?,
        None => lower.inner(|s| {
            s.allocate_tensor_memory()?;
            s.run(&bound.body)?;
            s.free_tensor_memory();
            Ok(())
        })?,
    };
    if lower.out.cluster > 1 {
        // No block ends while others may arrive at its mbarriers, or fill its slots.
        body.push(k::Stmt::ClusterBarrier);
    }
    let grid = match grid {
        Some([x, y, z]) => Some([lower.ix(&x)?, lower.ix(&y)?, lower.ix(&z)?]),
        None => None,
    };
    Ok(k::Kernel { body, grid, apart: options.apart || kernel.open, ..lower.out })
}

/// The form that a value of Loop IR takes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Loc {
    Scalar(k::Opnd),
    /// One lane per iteration of the current vector loop.
    Vector(k::ValId),
}

/// The storage that a buffer of Loop IR gets.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Storage {
    Slot(k::BufId),
    /// A rank-0 buffer: a mutable variable, scalar or vector.
    Var(k::ValId),
    Registers(register::Registers),
}

/// The loop whose iterations are lanes.
#[derive(Clone, Copy, Debug)]
struct Vector {
    axis: l::AxisId,
    lanes: u32,
    /// The first lane's iteration, where the loop is written out.
    first: Option<i64>,
    /// A power of two that divides the first lane's iteration.
    multiple: u64,
}

struct Lower<'a> {
    src: &'a l::Kernel,
    options: &'a Options,
    out: k::Kernel,
    names: Idents,
    vals: FxHashMap<l::ValId, Loc>,
    storage: FxHashMap<l::BufId, Storage>,
    /// The Kernel IR index that each axis of Loop IR becomes.
    axes: FxHashMap<l::AxisId, k::Ix>,
    /// The values that stand for axes of blocks.
    numbers: FxHashMap<l::AxisId, l::ValId>,
    /// The loop over the iterations that a block takes in turn.
    rounds: Option<blocks::Rounds>,
    /// The blocks of a cluster.
    cluster: Option<blocks::Cluster>,
    /// The pipeline that is begun before its place in the block, by the axis of its loop: it continues from one iteration of the block
    /// to the next, or a part of the threads fills it.
    begun: Option<(l::AxisId, pipeline::Begun)>,
    slots: slots::Slots,
    /// Variables of register buffers declared in the current block that have no value yet.
    undeclared: Vec<k::ValId>,
    vector: Option<Vector>,
    /// In the last, unfinished step of a vector loop: how many lanes are on.
    on: Option<k::Ix>,
    /// Inside a lane loop: the lane, and the vectors already read in it.
    lane: Option<k::Ix>,
    extracted: FxHashMap<k::ValId, k::Opnd>,
    /// Reads of variables that may stand for the variable itself: it is not written before their last use.
    aliases: FxHashSet<l::ValId>,
    /// In a vector loop: the vectors that scalars were splatted to.
    splats: Option<FxHashMap<k::ValId, k::Opnd>>,
    /// The statements of the block being built.
    stmts: Vec<k::Stmt>,
    /// Pointer values that are a parameter plus an offset.
    param_of: FxHashMap<l::ValId, u32>,
    nest: Nest,
    /// The place of an atomic in the nearest serial loop, if an iteration may be waiting for another block.
    waits: Option<l::SiteId>,
    /// The statements before which the threads of the block wait for each other.
    barriers: FxHashSet<*const l::Stmt>,
    /// The places of the partial accumulators of reductions, by axis; and the bytes of shared memory where the
    /// accumulators of a place begin, by place, number in the reduction and size.
    places: FxHashMap<l::AxisId, u32>,
    partials: FxHashMap<(u32, usize, u64), u64>,
    /// For a buffer that a pipeline fills: the number of the iteration that a generation belongs to, and the number of
    /// generations.
    generations: FxHashMap<l::BufId, (l::Ix, u32)>,
    /// The threads that run the current statements: the first of the block.
    active: u32,
    /// These, where the others do not come to barriers.
    first: Option<u32>,
    /// Inside a stage whose copies are asynchronous.
    copies: bool,
    /// Inside a pipeline whose products may still run when an iteration ends.
    flight: wgmma::Flight,
    /// The tensor memory of the block's product.
    tensor_memory: Option<tcgen05::TensorMemory>,
    /// The words of left operands of products, by the axis over their rows.
    fragments: FxHashMap<l::AxisId, k::BufId>,
    /// The user's operations that the kernel's statements were made for, where they are known, and the current one.
    sources: FxHashMap<*const l::Stmt, SourceId>,
    source: Option<SourceId>,
    /// For buffers that TMA fills in boxes: the tensor, and the copy of a box.
    tensors: FxHashMap<l::BufId, (k::TensorId, BoxCopy)>,
}

/// A block with more statements is lowered without a search for copies it does not need.
const LONG_BLOCK: usize = 400;

type Res<T> = Result<T, String>;

/// Free and reduce loops of constant extent around a statement, outermost first: axis, first iteration, extent.
type Nest = Vec<(l::AxisId, l::Ix, u64)>;

impl<'a> Lower<'a> {
    fn new(src: &'a l::Kernel, options: &'a Options, apart: bool) -> Res<Lower<'a>> {
        let warp = options.warp;
        let active = threads::of(&src.body, warp);
        let active = active + roles::producers(src, active, warp, apart);
        let slots = slots::Slots::assign(src, active, options.shared)?;
        if slots.shared > options.shared {
            let (needs, most) = (slots.shared, options.shared);
            let largest = src.bufs.values().filter(|b| b.space == l::Space::Shared).max_by_key(|b| b.bytes());
            let tile = |b: &l::Buf| format!(", {} of them for tile {} of {:?} elements", b.bytes(), b.name, b.shape);
            let tile = largest.map_or(String::new(), tile);
            return Err(format!(
                "kernel {} needs {needs} bytes of shared memory{tile}; a block has at most {most}: \
                 smaller tiles, or fewer in use at once, need less",
                src.name
            ));
        }
        let mut named = Idents::default();
        let globals = src.globals.iter().map(|g| {
            let name = named.fresh(&g.name);
            k::Global { array: l::Global { name: name.to_string(), ..g.clone() }, name }
        });
        let mut lower = Lower {
            src,
            options,
            active,
            first: None,
            out: k::Kernel {
                name: Label::new(&src.name),
                threads: active,
                warp,
                scratch: slots.total,
                shared: slots.shared,
                globals: globals.collect(),
                ..Default::default()
            },
            names: Idents::default(),
            vals: FxHashMap::default(),
            storage: FxHashMap::default(),
            axes: FxHashMap::default(),
            numbers: FxHashMap::default(),
            rounds: None,
            cluster: None,
            begun: None,
            slots,
            undeclared: Vec::new(),
            vector: None,
            on: None,
            lane: None,
            extracted: FxHashMap::default(),
            aliases: FxHashSet::default(),
            splats: None,
            stmts: Vec::new(),
            param_of: FxHashMap::default(),
            nest: Vec::new(),
            waits: None,
            barriers: FxHashSet::default(),
            places: threads::places(&src.body, warp),
            partials: FxHashMap::default(),
            generations: FxHashMap::default(),
            copies: false,
            flight: wgmma::Flight::NONE,
            tensor_memory: None,
            fragments: FxHashMap::default(),
            sources: provenance::resolve(src).into_iter().filter_map(alone).collect(),
            source: None,
            tensors: FxHashMap::default(),
        };
        for (n, param) in src.params.iter().enumerate() {
            let val = lower.value(&param.name, ty(param.ty, 1));
            lower.out.params.push(val);
            lower.vals.insert(param.val, Loc::Scalar(k::Opnd::Val(val)));
            if let l::Ty::Ptr(_) = param.ty {
                lower.param_of.insert(param.val, n as u32);
            }
        }
        Ok(lower)
    }

    /// A fresh value with a distinct name.
    fn value(&mut self, hint: &str, ty: k::Ty) -> k::ValId {
        let name = self.names.fresh(hint);
        let val = self.out.vals.push(k::Val { name, ty });
        self.out.sources.vals.set(val, self.source);
        val
    }

    /// A fresh axis for a loop over an axis of Loop IR.
    fn axis_of(&mut self, axis: l::AxisId) -> k::AxisId {
        let (name, from) = self.src.axes.get(axis).map_or(("", None), |a| (a.name.as_str(), a.place()));
        let name = self.names.fresh(name);
        self.new_axis(name, from)
    }

    fn new_axis(&mut self, name: k::Ident, from: Option<Label>) -> k::AxisId {
        let axis = self.out.axes.push(k::Axis { name, from });
        self.out.sources.axes.set(axis, self.source);
        axis
    }

    fn new_slot(&mut self, slot: k::Slot) -> k::BufId {
        let slot = self.out.slots.push(slot);
        self.out.sources.slots.set(slot, self.source);
        slot
    }

    fn push(&mut self, stmt: k::Stmt) {
        // A variable set right after its declaration starts with that value.
        if let (Some(k::Stmt::Var { var, init }), k::Stmt::Set { var: set, value }) = (self.stmts.last_mut(), &stmt)
            && var == set
            && !matches!(value, k::Opnd::Val(v) if v == var)
        {
            *init = *value;
            return;
        }
        self.out.sources.note(&stmt, self.source);
        self.stmts.push(stmt);
    }

    /// Lowers statements into a block of their own.
    fn block(&mut self, body: &[l::Stmt]) -> Res<Vec<k::Stmt>> {
        self.inner(|s| s.run(body))
    }

    /// Collects what `build` pushes.
    fn inner(&mut self, build: impl FnOnce(&mut Self) -> Res<()>) -> Res<Vec<k::Stmt>> {
        self.declare_registers();
        let outer = std::mem::take(&mut self.stmts);
        let (extracted, splats) = (self.extracted.clone(), self.splats.clone());
        let done = build(self);
        (self.extracted, self.splats) = (extracted, splats);
        // Variables that the block never touched.
        self.undeclared.clear();
        let stmts = std::mem::replace(&mut self.stmts, outer);
        done.map(|()| stmts)
    }

    fn run(&mut self, body: &[l::Stmt]) -> Res<()> {
        if self.copies && self.copy_async(body)? {
            return Ok(());
        }
        self.find_aliases(body);
        let mut stored = 0;
        body.iter().enumerate().try_for_each(|(at, stmt)| {
            if at < stored {
                return Ok(());
            }
            if let Some(group) = self.interleaved(&body[at..]) {
                stored = at + group.len();
                return self.at_source(stmt, |s| s.store_interleaved(&group));
            }
            if self.barriers.contains(&std::ptr::from_ref(stmt)) {
                if stmt.is_placed(l::Place::TmaStore) {
                    // Each thread makes its writes visible to TMA.
                    self.push(k::Stmt::Fence { kind: k::Fence::Async });
                }
                self.meet();
            }
            self.stmt(stmt)
        })
    }

    /// Finds the reads of variables and registers in a block that need no copy.
    fn find_aliases(&mut self, body: &[l::Stmt]) {
        let of_scalar =
            |buf: l::BufId| self.src.bufs.get(buf).is_some_and(|b| b.shape.is_empty() || b.space != l::Space::Scratch);
        let reads: Vec<(usize, l::ValId, l::BufId)> = body
            .iter()
            .enumerate()
            .filter_map(|(i, s)| match s {
                l::Stmt::Read { dst, buf, .. } if of_scalar(*buf) => Some((i, *dst, *buf)),
                _ => None,
            })
            .collect();
        if reads.is_empty() || body.len() > LONG_BLOCK {
            return;
        }
        let refs: Vec<walk::Refs> = body.iter().map(walk::refs_of).collect();
        for (i, dst, buf) in reads {
            let Some(write) = (i + 1..body.len()).find(|&j| refs[j].bufs_written.contains(&buf)) else {
                self.aliases.insert(dst);
                continue;
            };
            // A plain write may still take the value it replaces.
            let from = write + usize::from(matches!(body[write], l::Stmt::Write { .. }));
            if refs[from..].iter().all(|r| !r.vals_used.contains(&dst)) {
                self.aliases.insert(dst);
            }
        }
    }

    /// Runs `build`, inside these loops, with an axis of Loop IR bound to an index.
    fn at_axis<T>(&mut self, axis: l::AxisId, at: k::Ix, nest: Nest, build: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (self.axes.insert(axis, at), std::mem::replace(&mut self.nest, nest));
        let done = build(self);
        self.nest = outer.1;
        match outer.0 {
            Some(ix) => self.axes.insert(axis, ix),
            None => self.axes.remove(&axis),
        };
        done
    }

    fn stmt(&mut self, stmt: &l::Stmt) -> Res<()> {
        self.at_source(stmt, |s| match s.vector.is_some() && s.lane.is_none() {
            true => s.vector_stmt(stmt),
            false => s.scalar_stmt(stmt),
        })
    }

    /// Runs `build` for a statement and attributes its output to the user's operation. A statement without an operation
    /// of its own belongs to the operation around it.
    fn at_source(&mut self, stmt: &l::Stmt, build: impl FnOnce(&mut Self) -> Res<()>) -> Res<()> {
        let around = self.source;
        self.source = self.sources.get(&std::ptr::from_ref(stmt)).copied().or(around);
        let done = build(self);
        self.source = around;
        done
    }

    fn loc(&self, val: l::ValId) -> Res<Loc> {
        self.vals.get(&val).copied().ok_or_else(|| format!("value {} is used before it is defined", val.0))
    }

    /// Returns true if the expression differs between the lanes of the current vector loop.
    fn varies(&self, ix: &l::Ix) -> bool {
        let Some(vector) = self.vector else { return false };
        self.lane.is_none()
            && ix.any_leaf(&mut |leaf| match leaf {
                l::Ix::Axis(a) => *a == vector.axis,
                l::Ix::Val { val, .. } => matches!(self.vals.get(val), Some(Loc::Vector(_))),
                _ => false,
            })
    }

    fn src_ty(&self, val: l::ValId) -> Res<l::Ty> {
        self.src.vals.get(val).map(|v| v.ty).ok_or_else(|| format!("there is no value {}", val.0))
    }

    fn buf(&self, buf: l::BufId) -> Res<&'a l::Buf> {
        self.src.bufs.get(buf).ok_or_else(|| format!("there is no buffer {}", buf.0))
    }
}

/// A statement that was made for one operation.
fn alone((stmt, sources): (&l::Stmt, Vec<SourceId>)) -> Option<(*const l::Stmt, SourceId)> {
    match sources[..] {
        [one] => Some((std::ptr::from_ref(stmt), one)),
        _ => None,
    }
}

fn ty(ty: l::Ty, lanes: u32) -> k::Ty {
    k::Ty { elem: ty, lanes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::parse::parse;
    use crate::loops::print::Dialect;
    use crate::loops::verify::verify;

    fn refused(body: &str) -> String {
        let text = format!("tile kernel k(p: ptr f32, n: i64) open:\n{body}");
        let (kernel, _) = parse(&text).unwrap();
        assert_eq!(verify(&kernel, Dialect::Tile), [], "{text}");
        legalise(&kernel, &Options::default()).unwrap_err()
    }

    /// A placement that nothing implements is refused, by name: none is dropped.
    #[test]
    fn every_placement_is_consumed_or_refused() {
        for (body, want) in [
            (
                "  for i in 0..64: reduce vector(8)\n    store p[0] = 1.0\n",
                "the loop i cannot be placed as vector(8): its iterations have an order",
            ),
            (
                "  for i in 0..64: free vector(8)\n    for j in 0..64: free vector(8)\n      store p[i*64 + j] = 1.0\n",
                "the loop i cannot be placed as vector(8): its body cannot run in lanes",
            ),
            (
                "  for i in 0..64: free vector(1)\n    store p[i] = 1.0\n",
                "the loop i cannot be placed as vector(1): a vector must have at least two lanes",
            ),
            (
                "  for i in 0..65: free unroll\n    store p[i] = 1.0\n",
                "the loop i cannot be placed as unroll: it has more than 64 iterations, or an unknown number",
            ),
            (
                "  for i in 0..4: free\n    for j in 0..4: free block(y)\n      store p[i*4 + j] = 1.0\n",
                "the loop j cannot be placed as block(y): loops over blocks must be outermost",
            ),
            (
                "  local t: f32[16] register(8)\n  for i in 0..16: free\n    t[i] = 1.0\n",
                "the register buffer t is not touched vector by vector",
            ),
            (
                "  local t: f32[16] register(8)\n  for i in 0..16: free vector(4)\n    t[i] = 1.0\n",
                "the register buffer t is not touched vector by vector",
            ),
            (
                "  local t: f32[2, 8] register(8)\n  for i in 0..2: free\n    for j in 0..8: free vector(8)\n      t[i, j] = 1.0\n",
                "the register buffer t is not touched vector by vector",
            ),
            (
                "  local t: f32[16] register(8)\n  for i in 0..12: free vector(8)\n    t[i] = 1.0\n",
                "the loop i cannot be placed as vector(8): it touches registers, and has iterations left over or very many",
            ),
            (
                "  local t: f32[16] register(8)\n  local s: f32\n  s = 0.0\n  for i in 0..16: reduce vector(8) combine add(s) from 0.0 x 4\n    \
                 a: f32 = t[i]\n    b: f32 = s\n    c: f32 = a + b\n    s = c\n",
                "the loop i cannot be placed as vector(8): it touches registers, and has iterations left over or very many",
            ),
            (
                "  local t: f32[16] register(8)\n  local s: f32\n  s = 0.0\n  for i in 0..16: reduce vector(8)\n    \
                 a: f32 = t[i]\n    b: f32 = s\n    c: f32 = a + b\n    s = c\n",
                "the loop i cannot be placed as vector(8): it touches registers, and its iterations are not independent",
            ),
        ] {
            assert_eq!(refused(body), want);
        }
    }

    /// A look in each iteration would cost a short body a quarter of its time; a long one may run for long.
    #[test]
    fn short_bodies_look_seldom_whether_the_run_is_to_stop() {
        let text_of = |body: &str| {
            let (kernel, _) = parse(&format!("tile kernel k(p: ptr f32, n: i64) open:\n{body}")).unwrap();
            crate::kernel::print::print(&legalise(&kernel, &Options::default()).unwrap())
        };
        let step = "    a: f32 = load p[i]\n    store p[i + 1] = a\n";
        let seldom = text_of(&format!("  for i in 0..n: serial\n{step}"));
        assert!(seldom.contains("if i%64 == 0 {"), "{seldom}");
        assert!(!text_of(&format!("  for i in 0..64: serial\n{step}")).contains("poll"));
        let inner = "    for j in 0..n: free\n      store p[i*n + j] = 1.0\n";
        for each in [
            text_of(&format!("  for i in 0..n: serial\n{inner}")),
            text_of(&format!("  for i in 0..n step 3: serial\n{step}")),
        ] {
            assert!(each.contains("poll") && !each.contains("%64"), "{each}");
        }
    }

    /// Generations of a pipeline would be counted anew for each tile, where sums have different lengths.
    #[test]
    fn a_pipeline_that_tma_fills_runs_once_or_through_tiles() {
        let body = |length: &str| {
            format!(
                "tile kernel k(A: ptr f32 div 16, C: ptr f32, n: i32):\n  for t in 0..n: serial\n    \
                 for k in 0..{length}: serial pipeline(2)\n      stage s: f32[32, 32] shared tensor:\n        \
                 for i in 0..32: free\n          for j in 0..32: free\n            \
                 a: f32 = load A[(t*32 + i)*256 + (k*32 + j)] where t*32 + i < 512 and k*32 + j < 256 else 0.0\n            \
                 s[i, j] = a\n      for u in 0..64: free thread\n        x: f32 = s[31, u%32]\n        store C[u] = x\n"
            )
        };
        let lowered = |length: &str| {
            let (kernel, _) = parse(&body(length)).unwrap();
            legalise(&kernel, &Options { shared: 1 << 16, ..Options::default() }).map(drop)
        };
        assert_eq!(lowered("n"), Ok(()));
        let why = "TMA fills a pipeline in a loop that is not one over a block's tiles (`policy tma_copy`)";
        assert_eq!(lowered("t"), Err(why.to_string()));
    }
}
