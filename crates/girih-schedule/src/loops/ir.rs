//! Loop nests over scalars: the one statement language of the `loop` and `tile` stages.
//!
//! Loop IR states the computation; Tile IR is the same nests *placed*: loops carry a [`Place`], buffers a [`Space`],
//! and [`Stmt::Stage`] appears. `loops::verify` holds the table of what each stage allows.
//!
//! ```text
//! kernel := params, globals, obligations, stmt*       (the exact grammar is in loops/print.rs)
//! stmt   := a row of [`super::statements`]
//! ```
//!
//! Invariants:
//! 1. A value is defined once, before its uses, and is visible in the rest of its body and the bodies nested there.
//! 2. A mask is tested before the access it guards; a masked-off lane touches no memory.
//! 3. `Break` and `Continue` belong to the nearest enclosing `Serial` loop or `Loop`; no `Free` or `Reduce` loop holds one
//!    that leaves it.
//! 4. The iterations of a `Free` loop are independent of each other.
//! 5. Statements of one block run in program order; memory accesses that may overlap keep that order.

pub use super::provenance::Sources;
pub use super::statements::{For, Stmt};
use crate::base::{Code, Frames, IdMap, Label, Span, location};
/// Memory orders and atomic updates mean the same here as in a tile program.
pub use crate::cuda_tile::ir::{AtomicMode as RmwOp, MemoryOrdering as Order};
pub use crate::index::{AxisId, Cmp, Cond, Ix, Mask, ValId};
use crate::index::{Facts, Interval};
pub use crate::num::Ty;
use crate::num::{DType, ScalarOp};
use girih_base::id_type;

id_type! {
    /// A local buffer: a tile's storage, or (rank 0) a mutable scalar.
    BufId
}
id_type! {
    /// The operation that a trap or a message points at.
    SiteId
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: String,
    pub ty: Ty,
    /// The value that holds the argument; always the first values of the kernel, in order.
    pub val: ValId,
    /// Divisibility that the program asserts of the argument (1 when nothing is known).
    pub div_by: u64,
    /// The least and the greatest argument, if the caller guarantees them: a symbol of a model.
    pub range: Option<(i64, i64)>,
}

/// A module's global, laid out once per loaded module.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    pub name: String,
    pub dtype: DType,
    pub align: u64,
    pub constant: bool,
    /// Initial elements as bits.
    pub bits: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Val {
    pub ty: Ty,
    /// A hint for printing, without `%`.
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    pub name: String,
    /// The user's line that the loop comes from; printed as a comment.
    pub from: Option<location::Location>,
}

impl Axis {
    /// `kernel.py:12`, where the line is known.
    pub fn place(&self) -> Option<Label> {
        let from = self.from.as_ref()?;
        let file = from.file.rsplit(['/', '\\']).next().unwrap_or_default();
        Some(Label::new(&format!("{file}:{}", from.line)))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Buf {
    pub name: String,
    pub ty: Ty,
    /// Row-major; empty for a scalar variable. 4-bit elements take a byte each here.
    pub shape: Vec<u64>,
    pub space: Space,
    /// The bytes of a row in which 16-byte pieces are exchanged, so that columns of shared memory lie in different
    /// banks: 32, 64 or 128; 0 for none. It makes no difference to accesses by subscripts.
    pub swizzle: u32,
}

impl Buf {
    /// A buffer in scratch memory.
    pub fn new(name: impl Into<String>, ty: Ty, shape: Vec<u64>) -> Buf {
        Buf { name: name.into(), ty, shape, space: Space::Scratch, swizzle: 0 }
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.element_bytes(), |n, d| n.saturating_mul(*d))
    }

    /// Bytes of one element.
    pub fn element_bytes(&self) -> u64 {
        match self.ty {
            Ty::Num(d) => d.bytes(),
            Ty::Ptr(_) => 8,
        }
    }
}

/// The place of a buffer in Tile IR. `Scratch` in Loop IR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Space {
    /// The block's own memory.
    #[default]
    Scratch,
    /// Vector registers of `lanes` elements along the last axis. Registers have no addresses: each access stands in a
    /// vector loop of `lanes` lanes along that axis, and the loops that its other subscripts count are unrolled.
    Register { lanes: u32 },
    /// Memory of a worker, which runs one block after another: it holds what the worker's last block left, and with `zeroed` zeros
    /// before the first; else the contents are unspecified then. No result depends on them.
    Kept { zeroed: bool },
    /// Memory that the threads of a block share. A buffer declared inside a loop over threads is each thread's own.
    Shared,
    /// Registers of the threads of a block, for as long as the block lives. The first subscript is the number of the
    /// thread that holds the element, and only that thread accesses it: the access stands in a loop over threads, whose
    /// axis is the subscript.
    Private,
}

/// The source operation of a statement that can trap, print or be reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    pub span: Option<Span>,
    /// The operation's name: `load_ptr_tko`.
    pub op: String,
    /// Where in the user's files it comes from, innermost first. Not part of the printed IR.
    pub frames: Frames,
}

/// The code of a failing assertion, by the operation at its site: the lift also asserts what operations demand.
pub fn assertion_code(op: &str) -> Code {
    match op {
        "for" => Code::StepNotPositive,
        "extract" | "insert" | "make_tensor_view" => Code::IndexOutside,
        _ if op.ends_with("_view_tko") => Code::IndexOutside,
        // Accesses to memory of the block.
        _ if op.ends_with("_tko") => Code::OutOfBounds,
        _ => Code::AssertFailed,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Opnd {
    Val(ValId),
    Const { dtype: DType, bits: u64 },
}

/// An element in global memory: `base + index` elements of `elem` (4-bit elements are packed two to a byte, low first).
#[derive(Clone, Debug, PartialEq)]
pub struct Mem {
    /// A value of type `Ptr(elem)`.
    pub base: ValId,
    pub index: Ix,
    pub elem: DType,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopKind {
    /// Iterations are independent.
    Free,
    /// Folds into local buffers, in ascending order unless `combine` allows a schedule to reassociate.
    Reduce,
    /// Runs in order; may hold break and continue.
    Serial,
}

/// The most kinds of interleaved elements that schedules separate, so that loads and stores of each kind use vectors.
pub const MOST_IN_TURN: i64 = 4;

/// The place of a loop in Tile IR. `None` in Loop IR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Place {
    #[default]
    None,
    /// `lanes` iterations at a time in vector registers. On a `Free` loop: lane l of step s runs iteration s*lanes + l,
    /// and the iterations left over run one by one (or masked). On a `Reduce` loop with `combine`: see [`Combine`].
    Vector { lanes: u32 },
    /// Fully unrolled; the trip count is a constant.
    Unroll,
    /// A loop of an open kernel whose iterations are blocks: the loop's extent is that of the grid along `dim` (0 is
    /// x). Such loops stand outermost and in each other; several nests of them share the grid side by side.
    ///
    /// With a `group` of g, consecutive blocks take g iterations of this loop for each iteration of the loop over
    /// blocks around it, then the next g; with 0 they take all of them. Only the contents of caches depend on it.
    ///
    /// With `takers`, on the outermost loop of the only such nest, there are at most that many blocks, and they take
    /// the iterations of the nest in turn: block b takes iterations b, b + takers, b + 2*takers, ... With 0 each
    /// iteration is a block.
    ///
    /// With a `cluster` of c, on the innermost loop of the only such nest, c neighbouring iterations of this loop form
    /// a cluster: data that their pipelines fill alike is read once for all of them. With 0 there are no clusters.
    Block { dim: u8, group: u32, takers: u32, cluster: u32 },
    /// Each iteration is a thread of the block: iteration t runs on thread t. Such loops count from 0 and do not hold
    /// each other. Statements outside them run on every thread alike. On a `Reduce` loop: see [`Combine`].
    Thread,
    /// Each iteration is a block of a cluster: iteration m runs in block m. Each iteration of the enclosing loop over
    /// blocks is then one cluster, with a block for each iteration of this loop. Such loops count from 0 and stand
    /// directly in that loop, which is the only one over blocks; the longest of them has an iteration for each block.
    /// Every block runs the statements outside them alike. On a `Reduce` loop: see [`Combine`].
    ClusterBlock,
    /// A serial loop whose body begins with stages: their buffers have `depth` generations, and while the threads of
    /// the block are at one iteration, the generations of the next `depth - 1` are filled. The stages read nothing that
    /// the rest of the body writes.
    ///
    /// With `roles`, a separate warp fills the stages, by TMA alone; it and the other warps wait for each other. The
    /// rest of the body touches no memory that threads share except the stages.
    ///
    /// With `overlap`, the rest of the body ends with a product of warpgroups that reads stages filled by TMA, and the product
    /// goes on while the next iteration begins ([`crate::loops::overlap`]): one generation fewer is filled ahead.
    Pipeline { depth: u32, roles: bool, overlap: bool },
    /// One of the three loops of a product that the warps of a block compute on the matrix unit
    /// ([`crate::loops::matrix`]) or, outside loops over threads, that a processor computes on its own
    /// ([`crate::loops::amx`]).
    Matrix,
    /// A reduction within a loop over threads: each iteration is a lane of a group of neighbouring lanes. See
    /// [`Combine`].
    Lanes,
    /// One of the three loops of a product that groups of four warps compute; they read operands directly from shared
    /// memory.
    Warpgroup,
    /// The same of a product that the matrix unit of Blackwell computes for groups of four warps, in tensor memory: it is all that
    /// the iterations of a pipeline do beside their stages. Each group has 128 rows, and its threads have its sums in their registers
    /// before the pipeline and behind it.
    Tcgen05,
    /// The outermost loop of a nest that copies boxes from shared memory to an array, which one thread begins (TMA). Its body
    /// copies element by element; the masks say how far the array goes ([`crate::tile::boxes`]). Nothing behind it in the
    /// kernel touches the array.
    TmaStore,
}

/// How a stage's buffer is filled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Filled {
    /// By loads and stores.
    #[default]
    Copied,
    /// By copies from global to shared memory that go on while the threads do other things. Its body only copies.
    Async,
    /// By a copy of a box of an array, which one thread begins and which goes on by itself (TMA). Its body copies the box
    /// element by element; the masks say how far the array goes ([`crate::tile::boxes`]).
    Tma,
}

impl Filled {
    /// The fillings other than by loads and stores, with their words in the text.
    pub const WORDS: [(&'static str, Filled); 2] = [("async", Filled::Async), ("tensor", Filled::Tma)];
}

impl Place {
    /// Returns true for the loops of a product on a matrix unit.
    pub fn is_product(self) -> bool {
        self == Place::Matrix || self.is_of_groups()
    }

    /// Returns true for the loops of a product of groups of four warps.
    pub fn is_of_groups(self) -> bool {
        matches!(self, Place::Warpgroup | Place::Tcgen05)
    }
}

impl Stmt {
    /// Returns true if it is a loop with this place.
    pub fn is_placed(&self, place: Place) -> bool {
        matches!(self, Stmt::For(f) if f.place == place)
    }

    /// Returns true if it is a stage that is filled in this way.
    pub fn filled(&self, how: Filled) -> bool {
        matches!(self, Stmt::Stage { filled, .. } if *filled == how)
    }
}

/// A reduction that may be reassociated: the loop folds into `accs` (rank-0 buffers) with an associative operation.
///
/// Placed as `Vector { lanes: L }` with `ways: W`, it computes, for trip count n starting at `lo`: L*W partial
/// accumulators, each starting at `identity`; iteration i goes to partial (i - lo) mod (L*W), in ascending order, for all i in whole
/// groups of L*W, and the iterations left over, from `split` on, to partial (i - split) mod L; then the partials are combined by
/// halving (`p[j] = op(p[j], p[j + half])` for half = L*W/2, ..., 1); the result is `op(acc, p[0])`. That is the fixed tree; `eval`
/// computes the same.
///
/// Placed as `Thread` with `ways: T`, the threads of a block: T partial accumulators, and iteration i goes to partial
/// (i - lo) mod T for all i, including the last, unfinished round; then as above.
///
/// Placed as `Member` with `ways: C`, the blocks of a cluster: the same with one iteration for each of them, `for m in 0..C`.
///
/// Placed as `Lanes` with `ways: L`, at most a warp: the same with one iteration for each of the L neighbouring threads
/// of the group that contains thread t, `for q in 0..L`. Iteration q folds the value that thread `t//L*L + q` has in a
/// private buffer, and each of the threads gets the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Combine {
    pub accs: Vec<BufId>,
    pub op: CombineOp,
    pub ways: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CombineOp {
    /// One accumulator; a binary op of AddF, MulF, MaxF, MinF, AddI, MulI, MaxI, MinI, And, Or, Xor.
    Scalar { op: ScalarOp, identity: u64 },
}

/// The roles of a contraction `acc[.., m, n] += a[.., m, k] * b[.., k, n]`, bound once: by the lift, or when a model's
/// loops are written. It stands on the innermost (reduce) loop, whose body is: operand loads or reads, conversions, one
/// `Fma` (or integer multiply-add) and the write of `acc`. In Tile IR each list is one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Contraction {
    /// Free axes around the reduce loops, outermost first; those of a batch are not listed.
    pub m: Vec<AxisId>,
    pub n: Vec<AxisId>,
    /// Reduce axes, the loop's own last.
    pub k: Vec<AxisId>,
    /// The operand values before conversion, defined in the reduce loops.
    pub a: ValId,
    pub b: ValId,
    pub acc: BufId,
}

/// The recurrence of a weighted sum whose weights are normalised exponentials of scores, as in attention. In the order of
/// the loop, with `from = max(greatest, score)` (0 where that is -inf) and `shrink = exp(greatest - from)`:
///
/// ```text
/// total = total*shrink + exp(score - from)
/// acc[n] = acc[n]*shrink + exp(score - from)*value          for all n
/// greatest = max(greatest, score)
/// ```
///
/// A schedule may take several iterations at once: first their greatest score, then their terms. It stands on the
/// serial loop, whose body computes `score`, perhaps from a contraction, and then this recurrence.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    pub score: ValId,
    /// Defined in the loop over `n`, which stands last in the body.
    pub value: ValId,
    pub greatest: BufId,
    pub total: BufId,
    pub acc: BufId,
}

impl For {
    /// True if the iterations are independent and no step has placed the loop.
    pub fn is_free_unplaced(&self) -> bool {
        self.kind == LoopKind::Free && self.place == Place::None
    }

    /// True if the loop counts from 0 in steps of 1.
    pub fn counts_from_zero(&self) -> bool {
        self.lo.is_const(0) && self.step.is_const(1)
    }

    /// The loop with another body.
    pub fn around(&self, body: Vec<Stmt>) -> Stmt {
        Stmt::For(Box::new(For { body, ..self.clone() }))
    }

    /// The stages that the body begins with, and what follows them.
    pub fn stages(&self) -> (&[Stmt], &[Stmt]) {
        let count = self.body.iter().take_while(|s| matches!(s, Stmt::Stage { .. })).count();
        self.body.split_at(count)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum PrintArg {
    Scalar(Opnd),
    Buf(BufId),
}

/// An integer fact the fast version of a kernel relies on, tested once per launch: for every block of the grid and every
/// value of the enclosing loops' axes, `lo <= ix <= hi`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Obligation {
    /// Over parameters, block ids, the grid and the axes below; never over a value computed in the kernel.
    pub ix: Ix,
    /// The axes in `ix` with their (lo, hi exclusive) bounds, outermost first.
    pub axes: Vec<(AxisId, Ix, Ix)>,
    pub lo: i64,
    pub hi: i64,
}

/// One kernel: the program of one block.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Kernel {
    pub name: String,
    pub params: Vec<Param>,
    pub globals: Vec<Global>,
    pub vals: IdMap<ValId, Val>,
    pub axes: IdMap<AxisId, Axis>,
    pub bufs: IdMap<BufId, Buf>,
    pub sites: IdMap<SiteId, Site>,
    pub obligations: Vec<Obligation>,
    /// The parts of the user's program that values, axes, buffers and sites were made for; not part of the printed IR.
    pub sources: Sources,
    /// From a model: the loops span the whole computation, and the schedule chooses the grid. Otherwise the launch
    /// gives the grid, and the kernel is the program of one block. In an open kernel, free nests that stand side by
    /// side never store to the same element.
    pub open: bool,
    pub body: Vec<Stmt>,
}

impl Kernel {
    /// The facts that hold for the arguments.
    pub fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        self.add_facts(&mut facts);
        facts
    }

    /// Adds facts that the launch tests. Models' launches test none: what their kernels need is known.
    pub fn require(&mut self, facts: impl IntoIterator<Item = Obligation>) {
        for fact in facts {
            if !self.open && !self.obligations.contains(&fact) {
                self.obligations.push(fact);
            }
        }
    }

    /// The type of an operand; `None` of a value that does not exist.
    pub fn opnd_ty(&self, opnd: &Opnd) -> Option<Ty> {
        match opnd {
            Opnd::Val(v) => self.vals.get(*v).map(|v| v.ty),
            Opnd::Const { dtype, .. } => Some(Ty::Num(*dtype)),
        }
    }

    /// Adds the facts that hold for the arguments.
    pub fn add_facts(&self, facts: &mut Facts) {
        for p in &self.params {
            facts.val_divisors.insert(p.val, p.div_by);
            if let Some((lo, hi)) = p.range {
                facts.vals.insert(p.val, Interval::new(lo.into(), hi.into()));
            }
        }
    }
}
