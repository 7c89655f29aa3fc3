//! The rules of Kernel IR: every error, each with the statement it is in.

mod tcgen05;

use super::ir::*;
use super::print::print_numbered;
use super::uniform;
use crate::base::id::Id;
use crate::index::Poly;
use crate::index::facts::MOST_THREADS;
use crate::loops::panels;
use crate::num::printf::conversions;
use crate::num::{DType, ScalarOp};

/// A broken invariant of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The statement's number in the order of the text, from 0; those inside others count too. `None` where it is in none.
    pub statement: Option<usize>,
    pub message: String,
}

/// The broken invariants of a kernel as sentences with their lines, as it prints; none for what `legalise` makes.
pub fn verify(kernel: &Kernel) -> Vec<String> {
    let problems = problems(kernel);
    if problems.iter().all(|p| p.statement.is_none()) {
        return problems.into_iter().map(|p| p.message).collect();
    }
    let (text, starts) = print_numbered(kernel);
    let lines: Vec<&str> = text.lines().collect();
    let say = |Problem { statement, message }: Problem| {
        let number = statement.and_then(|n| starts.get(n).copied());
        let Some(number) = number else { return message };
        let shown = lines.get((number as usize).wrapping_sub(1)).map_or("", |l| l.trim());
        format!("{message}: line {number}, `{shown}`")
    };
    problems.into_iter().map(say).collect()
}

/// The broken invariants of a kernel, in program order.
pub fn problems(kernel: &Kernel) -> Vec<Problem> {
    let mut v = verified(kernel);
    if v.located.is_empty() && kernel.threads > 1 {
        v.located = uniform::problems(kernel);
    }
    v.located
}

/// The values that statements use.
pub(super) fn used(kernel: &Kernel) -> Vec<bool> {
    verified(kernel).used
}

fn verified(kernel: &Kernel) -> Verifier<'_> {
    let mut v = Verifier {
        k: kernel,
        live: vec![false; kernel.vals.len()],
        used: vec![false; kernel.vals.len()],
        axes: vec![false; kernel.axes.len()],
        errors: vec![],
        located: vec![],
        next: 0,
    };
    let mut names: Vec<&str> = kernel.vals.values().map(|v| v.name.as_str()).collect();
    names.extend(kernel.axes.values().map(|a| a.name.as_str()));
    names.extend(kernel.slots.values().map(|s| s.name.as_str()));
    names.extend(kernel.tensors.values().map(|t| t.name.as_str()));
    names.sort_unstable();
    for pair in names.windows(2).filter(|p| p[0] == p[1]) {
        v.errors.push(format!("two things are named `{}`", pair[0]));
    }
    v.slots();
    for &p in &kernel.params {
        v.define(p);
    }
    let of_grid = |ix: &Ix| ix.any_leaf(&mut |leaf| matches!(leaf, Ix::Grid(_)));
    if kernel.grid.iter().flatten().any(|ix| of_grid(ix) || !v.of_launch(ix)) {
        v.errors.push("the grid does not follow from the parameters".to_string());
    }
    kernel.tensors.values().for_each(|t| v.tensor(t));
    v.tensor_memory();
    v.locate(None);
    v.block(&kernel.body, false);
    v.located.sort_by_key(|p| p.statement);
    v
}

/// Shared slots start at multiples of this many bytes, so that every access of 16 bytes is aligned where its element is.
const SHARED_ALIGN: u64 = 16;
/// The most bytes that one access of a thread of a GPU moves.
const WIDEST: u64 = 16;

/// Mbarriers of a block.
pub(in crate::kernel) const MOST_MBARRIERS: u64 = 64;
/// Blocks of a cluster, on every GPU that has clusters.
const MOST_CLUSTER: u32 = 8;
/// Lanes of the widest warp of any GPU.
const MOST_WARP: u32 = 64;

/// Returns true if an index can be a multiple of `of`.
fn may_align(index: &Ix, of: i128) -> bool {
    let place = Poly::expanded(index);
    let step = place.gcd(of);
    step == 0 || place.base % step == 0
}

struct Verifier<'a> {
    k: &'a Kernel,
    live: Vec<bool>,
    used: Vec<bool>,
    axes: Vec<bool>,
    /// The errors of the current statement.
    errors: Vec<String>,
    located: Vec<Problem>,
    /// The next statement's number.
    next: usize,
}

impl Verifier<'_> {
    fn slots(&mut self) {
        let k = self.k;
        self.expect((1..=MOST_THREADS).contains(&k.threads), || {
            format!("a block has {} threads; it has 1 to {MOST_THREADS}", k.threads)
        });
        let together = k.threads.saturating_mul(k.cluster);
        self.expect((1..=MOST_CLUSTER).contains(&k.cluster) && (k.cluster == 1 || together <= MOST_THREADS), || {
            format!(
                "a cluster has {} blocks; it has 1 to {MOST_CLUSTER}, of at most {MOST_THREADS} threads together",
                k.cluster
            )
        });
        self.expect(k.warp.is_power_of_two() && k.warp <= MOST_WARP, || {
            format!("a warp has {} lanes; it has a power of two of them, at most {MOST_WARP}", k.warp)
        });
        self.expect(k.cluster == 1 || self.whole_warps(), || {
            format!("the blocks of a cluster have whole warps of {} threads, not {} threads", k.warp, k.threads)
        });
        for slot in k.slots.values() {
            let (name, space) = (&slot.name, slot.space);
            let size = if slot.is_shared() { k.shared } else { k.scratch };
            self.expect(slot.offset.saturating_add(slot.bytes()) <= size, || {
                format!("slot `{name}` reaches past the {space}")
            });
            let aligned = !slot.is_shared() || slot.offset % SHARED_ALIGN == 0;
            self.expect(aligned, || {
                format!("the shared slot `{name}` is at byte {}, not at a multiple of {SHARED_ALIGN}", slot.offset)
            });
        }
        let kept = |s: &&Slot| matches!(s.space, Space::Kept { .. });
        for one in k.slots.values().filter(kept) {
            let meets = |s: &Slot| s.offset < one.offset + one.bytes() && one.offset < s.offset + s.bytes();
            let alone = k.slots.values().filter(|s| !s.is_shared() && s.name != one.name).all(|s| !meets(s));
            self.expect(alone && k.threads == 1, || {
                format!("the slot `{}` is kept by a worker, so it has one thread and bytes of its own", one.name)
            });
        }
        let shared: Vec<&Slot> = k.slots.values().filter(|s| s.is_shared() && s.len > 0).collect();
        for one in shared.iter().filter(|s| s.space == Space::Mbarrier) {
            let meets = |s: &&&Slot| s.offset < one.offset + one.bytes() && one.offset < s.offset + s.bytes();
            let other = shared.iter().find(|s| s.name != one.name && meets(s));
            self.expect(other.is_none(), || {
                let other = other.map_or("", |s| s.name.as_str());
                format!("the mbarriers `{}` and the shared slot `{other}` overlap", one.name)
            });
        }
        self.expect(k.mbarriers().saturating_mul(k.cluster.into()) <= MOST_MBARRIERS, || {
            format!(
                "a block has {} mbarriers; it has at most {MOST_MBARRIERS}, with those of its cluster",
                k.mbarriers()
            )
        });
    }

    /// True if the launch knows an expression's value.
    fn of_launch(&self, ix: &Ix) -> bool {
        !ix.any_leaf(&mut |leaf| match leaf {
            Ix::Val { val, .. } => !self.k.params.contains(val),
            leaf => !matches!(leaf, Ix::Const(_) | Ix::Grid(_)),
        })
    }

    /// TMA can copy the tensor.
    fn tensor(&mut self, t: &Tensor) {
        let (name, rank) = (&t.name, t.dims.len());
        self.expect((1..=5).contains(&rank) && t.extents.len() == rank && t.strides.len() + 1 == rank, || {
            format!(
                "the tensor `{name}` has {rank} dimensions, {} strides and a box of {}; it has 1 to 5, one stride less and a \
                 box of as many",
                t.strides.len(),
                t.extents.len()
            )
        });
        let is_param = self.k.params.contains(&t.base) && self.ty(t.base) == Ty { elem: Elem::Ptr(t.elem), lanes: 1 };
        self.expect(is_param, || format!("the tensor `{name}` is not of a parameter that is an address of {}", t.elem));
        let of_launch = t.dims.iter().chain(&t.strides).all(|ix| self.of_launch(ix));
        self.expect(of_launch, || {
            format!("the extents of the tensor `{name}` do not follow from the parameters and the grid")
        });
        self.expect(t.extents.iter().all(|n| (1..=256).contains(n)), || {
            format!("the box of the tensor `{name}` is {:?}; an extent is 1 to 256", t.extents)
        });
        let moved = matches!(t.elem.bits(), 8 | 16 | 32 | 64) && t.elem != DType::I1;
        self.expect(moved, || format!("TMA does not copy {}, the element type of the tensor `{name}`", t.elem));
        let row = u64::from(t.extents.last().copied().unwrap_or(0)) * t.elem.bytes();
        self.expect(row.is_multiple_of(16), || {
            format!("a row of the box of the tensor `{name}` has {row} bytes, which is not a multiple of 16")
        });
        self.expect(matches!(t.swizzle, 0 | 32 | 64 | 128), || {
            format!("the tensor `{name}` is swizzled in {} bytes; that is 32, 64 or 128", t.swizzle)
        });
        self.expect(t.swizzle == 0 || row == u64::from(t.swizzle), || {
            format!(
                "a row of the box of the tensor `{name}` has {row} bytes; a swizzle of {} needs rows of as many",
                t.swizzle
            )
        });
        for stride in &t.strides {
            let bytes = stride.as_const().map(|n| i128::from(n) * i128::from(t.elem.bytes()));
            self.expect(bytes.is_none_or(|b| b > 0 && b % 16 == 0), || {
                format!(
                    "a stride of the tensor `{name}` is {} bytes, which is not a multiple of 16",
                    bytes.unwrap_or(0)
                )
            });
        }
    }

    /// A box of a tensor, from some coordinates on, and its place in shared memory.
    fn boxed(&mut self, tensor: TensorId, coordinates: usize, to: &Address) {
        let (k, target) = (self.k, self.elem(to));
        let Some(t) = k.tensors.get(tensor) else { return };
        let name = &t.name;
        self.expect(coordinates == t.dims.len(), || {
            format!("{coordinates} coordinates are given to the tensor `{name}`, which has {}", t.dims.len())
        });
        let Address::Slot { buf, index } = to else {
            self.errors.push("TMA copies to and from shared slots".to_string());
            return;
        };
        let Some(slot) = k.slots.get(*buf).filter(|s| s.space == Space::Shared && target == Elem::Num(t.elem)) else {
            self.errors.push(format!("a box of the tensor `{name}` lies in a shared slot of {}", t.elem));
            return;
        };
        let align = t.align();
        let whole = slot.offset % align == 0 && may_align(index, (align / t.elem.bytes()).into());
        self.expect(whole, || {
            format!(
                "a box of the tensor `{name}` lies at a place in `{}` that is not a multiple of {align} bytes",
                slot.name
            )
        });
        self.expect(t.count() <= slot.len, || {
            format!("a box of the tensor `{name}` has {} elements, and `{}` has {}", t.count(), slot.name, slot.len)
        });
    }

    /// The statement needs a cluster with a block of this number.
    fn clusters(&mut self, what: &str, block: u32) {
        let cluster = self.k.cluster;
        self.expect(block < cluster, || {
            format!("`{what}` needs a cluster of more than {block} blocks; this has {cluster}")
        });
    }

    /// A processor's tiles, by their numbers.
    fn tiles(&mut self, numbers: &[u32]) {
        for tile in numbers {
            self.expect(*tile < TILES, || format!("there is no tile {tile}"));
        }
    }

    /// The statement needs a block of several threads.
    fn several_threads(&mut self, what: &str) {
        self.expect(self.k.threads > 1, || format!("`{what}` needs a block of several threads"));
    }

    fn ty(&self, v: ValId) -> Ty {
        self.k.vals.get(v).map_or(Ty::num(DType::I1, 1), |v| v.ty)
    }

    fn name(&self, v: ValId) -> &str {
        self.k.vals.get(v).map_or("?", |v| v.name.as_str())
    }

    fn define(&mut self, v: ValId) {
        match self.live.get_mut(v.0 as usize) {
            Some(live) if !*live => *live = true,
            _ => {
                let name = self.name(v).to_string();
                self.errors.push(format!("`{name}` is defined twice or not at all"));
            }
        }
    }

    fn used(&mut self, v: ValId) {
        if let Some(used) = self.used.get_mut(v.index()) {
            *used = true;
        }
        if !self.live.get(v.0 as usize).copied().unwrap_or(false) {
            let name = self.name(v).to_string();
            self.errors.push(format!("`{name}` is used where it is not defined"));
        }
    }

    fn expect(&mut self, ok: bool, what: impl FnOnce() -> String) {
        if !ok {
            self.errors.push(what());
        }
    }

    /// An operand at a type; a constant of the element type may stand for a vector.
    fn opnd(&mut self, o: &Opnd, ty: Ty) {
        match o {
            Opnd::Val(v) => {
                let (own, name) = (self.ty(*v), self.name(*v).to_string());
                self.expect(own == ty, || format!("`{name}` is {own}, not {ty}"));
            }
            Opnd::Const { dtype, .. } => {
                let dtype = *dtype;
                self.expect(dtype == ty.dtype(), || format!("a constant is {dtype}, not {ty}"));
            }
        }
    }

    fn ix(&mut self, ix: &Ix) {
        ix.for_each_leaf(&mut |leaf| match leaf {
            Ix::Axis(a) => {
                let open = self.axes.get(a.0 as usize).copied().unwrap_or(false);
                self.expect(open, || format!("axis {} is used outside its loop", a.0));
            }
            Ix::Val { val, .. } => {
                self.used(*val);
                let (ty, name) = (self.ty(*val), self.name(*val).to_string());
                let ok = ty.lanes == 1 && matches!(ty.elem, Elem::Num(d) if d.is_int());
                self.expect(ok, || format!("`{name}` is {ty} in an index"));
            }
            Ix::Thread => self.several_threads("tx"),
            _ => {}
        });
    }

    fn mask(&mut self, mask: &Mask) {
        for c in &mask.conds {
            self.ix(&c.lhs);
            self.ix(&c.rhs);
        }
        for v in &mask.vals {
            self.used(*v);
            self.opnd(&Opnd::Val(*v), Ty::num(DType::I1, 1));
        }
    }

    /// The element type of a place.
    fn elem(&self, place: &Address) -> Elem {
        match place {
            Address::Mem { elem, .. } => Elem::Num(*elem),
            Address::Slot { buf, .. } => self.k.slots.get(*buf).map_or(Elem::Num(DType::I1), |s| s.elem),
        }
    }

    fn is_shared(&self, place: &Address) -> bool {
        matches!(place, Address::Slot { buf, .. } if self.k.slots.get(*buf).is_some_and(|s| s.space == Space::Shared))
    }

    fn place(&mut self, stmt: &Stmt, place: &Address, access: Access) {
        let waits = access == Access::Waits;
        match place {
            Address::Mem { base, index, .. } => {
                self.used(*base);
                let (ty, name) = (self.ty(*base), self.name(*base).to_string());
                let ok = ty.lanes == 1 && matches!(ty.elem, Elem::Ptr(_));
                self.expect(ok, || format!("`{name}` is {ty}, not an address"));
                self.ix(index);
                self.expect(!waits, || format!("`{}` expects an mbarrier", stmt.words()));
            }
            Address::Slot { buf, index } => {
                self.ix(index);
                self.slot(*buf);
                match self.k.slots.get(*buf).map(|s| s.space) {
                    Some(Space::Mbarrier) => {
                        self.expect(waits, || "an mbarrier is read or written as memory".to_string());
                    }
                    _ => self.expect(!waits, || format!("`{}` expects an mbarrier", stmt.words())),
                }
            }
        }
    }

    fn slot(&mut self, buf: BufId) {
        self.expect(self.k.slots.get(buf).is_some(), || format!("there is no slot {}", buf.0));
    }

    /// Lanes of an accessed value: of the place's elements, unmasked when it is a vector.
    fn access(&mut self, elem: Elem, ty: Ty, mask: &Mask) {
        self.expect(elem == ty.elem, || format!("{ty} is read from or written to memory of another type"));
        self.expect(ty.lanes == 1 || mask.is_always(), || "a vector access has a mask".to_string());
        if self.k.threads > 1 {
            let fits = ty.lanes.is_power_of_two() && u64::from(ty.lanes) * ty.dtype().bytes() <= WIDEST;
            self.expect(fits, || {
                format!(
                    "{ty} is read or written at once; a thread moves a power of two of elements and at most {WIDEST} bytes"
                )
            });
        }
    }

    /// An access of some lanes of a vector.
    fn some(&mut self, place: &Address, ty: Ty) {
        let elem = self.elem(place);
        self.access(elem, ty, &Mask::default());
        let whole = elem.held().bits() >= 8 && matches!(elem, Elem::Num(_));
        self.expect(ty.is_vector() && whole, || format!("some lanes of {ty}; a vector of whole bytes has lanes"));
        self.expect(self.k.threads <= 1, || "a thread of many moves whole vectors".to_string());
    }

    /// Rows of 16 bytes of shared memory.
    fn load_matrix(&mut self, dst: ValId, place: &Address, transposed: Transposed) {
        let (ty, element) = (self.ty(dst), self.elem(place).held());
        let words = ty.elem == Elem::Num(DType::I32) && matches!(ty.lanes, 1 | 2 | 4);
        self.expect(words, || format!("`ldmatrix` gives i32, i32x2 or i32x4, a word of each matrix, not {ty}"));
        let whole = element.bits() >= 8 && element.bytes() <= 4;
        self.expect(whole, || format!("`ldmatrix` of {element}; elements have 1, 2 or 4 bytes"));
        self.expect(transposed != Transposed::Yes || element.bits() == 16, || {
            format!("`ldmatrix trans` of {element}; what it transposes has 2 bytes")
        });
        let of_bytes = !transposed.of_bytes() || element.bits() == 8 && ty.lanes == 4;
        self.expect(of_bytes, || {
            let how = if transposed == Transposed::Left { "left" } else { "right" };
            format!("`ldmatrix trans {how}` of {element} gives {ty}; of elements of 1 byte it gives i32x4")
        });
        match place {
            Address::Slot { index, .. } if self.is_shared(place) => {
                let aligned = !whole || may_align(index, (16 / element.bytes()).into());
                self.expect(aligned, || "a row of `ldmatrix` is never at a multiple of 16 bytes".to_string());
            }
            _ => self.errors.push("`ldmatrix` reads a shared slot".to_string()),
        }
    }

    fn mma(&mut self, acc: &[Address; 2], apart: u32, operands: [ValId; 2], of: [Operand; 2]) {
        self.expect(of[0].goes_with(of[1]), || {
            "`mma` multiplies operands of one type, or integers or floats of 8 bits".to_string()
        });
        for (val, lanes) in operands.into_iter().zip([4, 2]) {
            let ty = self.ty(val);
            self.expect(ty == Ty::num(DType::I32, lanes), || format!("a fragment of `mma` is i32x{lanes}, not {ty}"));
        }
        self.expect(matches!(apart, 1 | 2), || format!("the sums of `mma` are one or two elements apart, not {apart}"));
        for place in acc {
            let (held, sum) = (self.elem(place).held(), of[0].sum());
            self.expect(held == sum, || format!("the sums of this `mma` are {sum}, not {held}"));
            self.expect(self.is_own(place), || "the sums of `mma` are in an array of the thread".to_string());
        }
    }

    /// Returns true if a place is in an array of the thread.
    fn is_own(&self, place: &Address) -> bool {
        let own = |buf: &BufId| self.k.slots.get(*buf).is_some_and(|s| s.space == Space::Scratch);
        matches!(place, Address::Slot { buf, .. } if own(buf))
    }

    fn wgmma(&mut self, acc: BufId, a: &Left, b: &Panel, of: Operand) {
        self.sums(acc, &[of.sum()]);
        if let Left::Words(place) = a {
            let held = self.elem(place).held();
            self.expect(self.is_own(place) && held == DType::I32, || {
                format!("a left operand of `wgmma` in registers is words in an array of the thread, of i32, not {held}")
            });
        }
        for panel in a.panel().into_iter().chain([b]) {
            let bits = self.elem(&panel.place).held().bits();
            let bytes = of.bytes();
            self.expect(bits == 8 * bytes, || {
                format!("a panel of `wgmma {}` has elements of {bytes} bytes, not {bits} bits", of.word())
            });
            self.expect(!panel.transposed || bytes == 2, || {
                format!("`wgmma {}` of a transposed panel; what it transposes has 2 bytes", of.word())
            });
            self.expect(self.is_shared(&panel.place), || "a panel of `wgmma` is in a shared slot".to_string());
            let Panel { swizzle, lead, stride, .. } = *panel;
            self.expect(matches!(swizzle, 32 | 64 | 128), || {
                format!("a panel has rows of 32, 64 or 128 bytes, not {swizzle}")
            });
            let fits = |bytes: u32| bytes.is_multiple_of(16) && bytes < 1 << 18;
            self.expect(fits(lead) && fits(stride), || {
                format!("the strides of a panel are multiples of 16 bytes below {}, not {lead} and {stride}", 1 << 18)
            });
        }
    }

    /// The array that has a thread's sums of a product of a warpgroup.
    fn sums(&mut self, acc: BufId, of: &[DType]) {
        let held = |elem: Elem| matches!(elem, Elem::Num(d) if of.contains(&d));
        let own = self.k.slots.get(acc).is_some_and(|s| s.space == Space::Scratch && held(s.elem));
        self.expect(own, || {
            let of: Vec<String> = of.iter().map(DType::to_string).collect();
            format!("the sums of `wgmma` are in an array of the thread, of {}", of.join(" or "))
        });
        let cols = self.k.slots.get(acc).map_or(8, |s| s.len.saturating_mul(2));
        // Integers have not 24, 40 and so on.
        let some = cols.is_multiple_of(16) || cols.is_multiple_of(8) && (cols == 8 || of.contains(&DType::F32));
        self.expect(some && (8..=panels::COLS).contains(&cols), || {
            format!("the sums of `wgmma` have a multiple of 8 columns up to {}, not {cols}", panels::COLS)
        });
    }

    /// A copy from global to shared memory.
    fn copy(&mut self, to: &Address, from: &Address, bytes: u32) {
        let (target, source) = (self.elem(to), self.elem(from));
        self.expect(matches!(bytes, 4 | 8 | 16), || {
            format!("an asynchronous copy moves 4, 8 or 16 bytes, not {bytes}")
        });
        let one = |elem| Ty { elem, lanes: 1 };
        self.expect(target == source, || format!("{} is copied to memory of {}", one(source), one(target)));
        let ways = self.is_shared(to) && matches!(from, Address::Mem { .. });
        self.expect(ways, || "an asynchronous copy goes from global memory to a shared slot".to_string());
        let element = source.held();
        let whole = element.bits() != 4 && u64::from(bytes) % element.bytes() == 0;
        self.expect(whole, || format!("{bytes} bytes are not a whole number of {element} elements"));
        if let (true, Address::Slot { index, .. }) = (whole, to) {
            let per = i128::from(u64::from(bytes) / element.bytes());
            self.expect(may_align(index, per), || {
                format!("the place of a copy of {bytes} bytes is never at a multiple of {bytes}")
            });
        }
    }

    /// Assigns the errors found so far to a statement, or to the part before the first.
    fn locate(&mut self, statement: Option<usize>) {
        self.located.extend(self.errors.drain(..).map(|message| Problem { statement, message }));
    }

    fn block(&mut self, body: &[Stmt], in_loop: bool) {
        let (live, axes) = (self.live.clone(), self.axes.clone());
        for stmt in body {
            let number = self.next;
            self.next += 1;
            let around = std::mem::take(&mut self.errors);
            self.stmt(stmt, in_loop);
            self.locate(Some(number));
            self.errors = around;
        }
        // Names go out of scope; what is defined stays defined once.
        self.live = live;
        self.axes = axes;
    }

    fn stmt(&mut self, stmt: &Stmt, in_loop: bool) {
        self.threads(stmt);
        stmt.parts(&mut |part| self.part(stmt, part));
        self.rules(stmt, in_loop);
        stmt.parts(&mut |part| {
            if let Part::Defines(val) = part {
                self.define(val);
            }
        });
    }

    /// Everything that a statement uses is defined.
    fn part(&mut self, stmt: &Stmt, part: Part) {
        match part {
            Part::Moves(Opnd::Val(val)) | Part::Takes(Opnd::Val(val)) | Part::Shows(Opnd::Val(val)) => self.used(val),
            Part::Updates(val) | Part::Feeds(val) => self.used(val),
            Part::Index(ix) => self.ix(ix),
            Part::Mask(mask) => self.mask(mask),
            Part::At(place, access) => self.place(stmt, place, access),
            Part::Slot(buf, _) => self.slot(buf),
            Part::Tensor(tensor, _) => {
                self.expect(self.k.tensors.get(tensor).is_some(), || format!("there is no tensor {}", tensor.0));
            }
            Part::Moves(Opnd::Const { .. }) | Part::Takes(Opnd::Const { .. }) | Part::Shows(Opnd::Const { .. }) => {}
            Part::Defines(_) | Part::Axis(_) | Part::Body(_) => {}
        }
    }

    fn whole_warps(&self) -> bool {
        self.k.threads.is_multiple_of(self.k.warp.max(1))
    }

    /// The threads that a statement needs.
    fn threads(&mut self, stmt: &Stmt) {
        let (threads, warp, group) = (self.k.threads, self.k.warp, self.k.warpgroup());
        let (whole, words) = (self.whole_warps(), || stmt.words());
        match stmt.runs() {
            Runs::Any => {}
            Runs::Alone => self.expect(threads == 1, || format!("`{}` needs a kernel of one thread", words())),
            Runs::Threads | Runs::Block => {
                self.expect(threads > 1, || format!("`{}` needs a block of several threads", words()));
            }
            Runs::Cluster => self.clusters(&words(), 1),
            Runs::Warp => self.expect(whole, || {
                format!("`{}` needs whole warps of {warp} threads, and a block has {threads}", words())
            }),
            Runs::Group => self.expect(threads >= group, || {
                format!("`{}` needs whole warpgroups of {group} threads, and a block has {threads}", words())
            }),
        }
    }

    /// The rules that are a statement's own, mostly about types.
    fn rules(&mut self, stmt: &Stmt, in_loop: bool) {
        match stmt {
            Stmt::Var { var, init: value } | Stmt::Set { var, value } => self.opnd(value, self.ty(*var)),
            Stmt::Let { dst, op, ty, args } => self.operation(*dst, *op, *ty, args),
            Stmt::Splat { dst, value } => self.opnd(value, Ty { lanes: 1, ..self.ty(*dst) }),
            Stmt::Index { dst, .. } => {
                let ty = self.ty(*dst);
                self.expect(ty.lanes == 1 && ty.dtype().is_int(), || format!("an index cannot be {ty}"));
            }
            Stmt::Test { dst, .. } => {
                let ty = self.ty(*dst);
                self.expect(ty == Ty::num(DType::I1, 1), || format!("a test cannot be {ty}"));
            }
            Stmt::For { axis, body, .. } => {
                self.open(*axis, true);
                self.block(body, true);
                self.open(*axis, false);
            }
            Stmt::Loop { body } => self.block(body, true),
            Stmt::If { then, els, .. } => {
                self.block(then, in_loop);
                self.block(els, in_loop);
            }
            Stmt::Break | Stmt::Continue => self.expect(in_loop, || "a break is outside a loop".to_string()),
            Stmt::Print { format, args, .. } => self.print(format, args),
            Stmt::Assert { cond, .. } => self.opnd(cond, Ty::num(DType::I1, 1)),
            Stmt::GlobalAddr { global, .. } => {
                let known = (*global as usize) < self.k.globals.len();
                self.expect(known, || format!("there is no global {global}"));
            }
            Stmt::Load { .. } | Stmt::LoadLanes { .. } | Stmt::LoadOf { .. } | Stmt::Prefetch { .. } => self.load(stmt),
            Stmt::Store { .. } | Stmt::StoreLanes { .. } | Stmt::Rmw { .. } | Stmt::Cas { .. } => self.store(stmt),
            Stmt::Lane { .. } | Stmt::SetLane { .. } | Stmt::Reduce { .. } | Stmt::All { .. } => self.lanes(stmt),
            Stmt::Merge { .. } | Stmt::Strided { .. } | Stmt::Interleave { .. } => self.rearranged(stmt),
            _ => self.of_threads(stmt),
        }
    }

    fn load(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Load { dst, place, mask, other, .. } => {
                let ty = self.ty(*dst);
                self.access(self.elem(place), ty, mask);
                other.iter().for_each(|o| self.opnd(o, ty));
            }
            Stmt::LoadLanes { dst, place, other, .. } => {
                let ty = self.ty(*dst);
                self.some(place, ty);
                let one = match other {
                    Opnd::Val(v) if !self.ty(*v).is_vector() => Ty { lanes: 1, ..ty },
                    _ => ty,
                };
                self.opnd(other, one);
            }
            Stmt::LoadOf { dst, place, of } => {
                self.clusters("load of", *of);
                let ty = self.ty(*dst);
                self.access(self.elem(place), ty, &Mask::default());
                self.expect(self.is_shared(place) && ty.lanes == 1, || {
                    "`load of` reads an element of a shared slot of another block".to_string()
                });
            }
            Stmt::Prefetch { place } => {
                let global = matches!(place, Address::Mem { elem, .. } if elem.bits() >= 8);
                self.expect(global, || "a prefetch is of whole bytes of global memory".to_string());
            }
            _ => {}
        }
    }

    fn store(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Store { place, value, mask, .. } => {
                let elem = self.elem(place);
                let ty = match value {
                    Opnd::Val(v) => self.ty(*v),
                    Opnd::Const { .. } => Ty { elem, lanes: 1 },
                };
                self.opnd(value, ty);
                self.access(elem, ty, mask);
            }
            Stmt::StoreLanes { place, value, .. } => self.some(place, self.ty(*value)),
            Stmt::Rmw { dst, place, value, mask, .. } => {
                let ty = self.ty(*dst);
                self.access(self.elem(place), ty, mask);
                self.opnd(value, ty);
            }
            Stmt::Cas { dst, place, cmp, value, mask, .. } => {
                let ty = self.ty(*dst);
                self.access(self.elem(place), ty, mask);
                self.opnd(cmp, ty);
                self.opnd(value, ty);
            }
            _ => {}
        }
    }

    fn lanes(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Lane { dst, vector, .. } => {
                let (a, b) = (self.ty(*dst), self.ty(*vector));
                self.expect(a == Ty { lanes: 1, ..b }, || format!("a lane of {b} is {a}"));
            }
            Stmt::SetLane { vector, value, .. } => self.opnd(value, Ty { lanes: 1, ..self.ty(*vector) }),
            Stmt::Reduce { dst, vector, .. } => {
                let (a, b) = (self.ty(*dst), self.ty(*vector));
                self.expect(a == Ty { lanes: 1, ..b }, || format!("{b} is reduced to {a}"));
            }
            Stmt::All { vector, .. } => {
                let ty = self.ty(*vector);
                self.expect(ty.elem == Elem::Num(DType::I1), || format!("`all` of {ty}"));
            }
            _ => {}
        }
    }

    fn rearranged(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Merge { dst, a, b, width, .. } => {
                let (d, x, y) = (self.ty(*dst), self.ty(*a), self.ty(*b));
                self.expect(d == x && d == y, || format!("{x} and {y} are merged to {d}"));
                let fits = width.is_power_of_two() && d.lanes.is_power_of_two() && *width < d.lanes;
                self.expect(fits, || format!("groups of {width} lanes do not divide {d}"));
            }
            Stmt::Strided { dst, parts } => {
                let (d, count) = (self.ty(*dst), parts.len() as u32);
                for part in parts {
                    let p = self.ty(*part);
                    self.expect(d == p, || format!("elements of {p}, {count} apart, make {d}"));
                }
                let fits = (2..=MOST_APART).contains(&count) && d.lanes > count;
                self.expect(fits, || {
                    format!(
                        "elements {count} apart are taken of {d}; they lie 2 to {MOST_APART} apart, in longer vectors"
                    )
                });
            }
            Stmt::Interleave { dst, parts, part } => {
                let (d, count) = (self.ty(*dst), parts.len() as u32);
                for of in parts {
                    let p = self.ty(*of);
                    self.expect(d == p, || format!("the elements of {p} in turn make {d}"));
                }
                let fits = (2..=MOST_APART).contains(&count) && *part < count && d.lanes > 1;
                self.expect(fits, || format!("vector {part} of {count} of {d} in turn"));
            }
            _ => {}
        }
    }

    /// Statements of matrix units, of GPUs' threads and of their asynchronous copies.
    fn of_threads(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Shuffle { dst, value, by, .. } => {
                let (a, b) = (self.ty(*dst), self.ty(*value));
                self.expect(a == b && a.lanes == 1, || format!("a shuffle of {b} gives {a}"));
                self.opnd(by, Ty::num(DType::I32, 1));
            }
            Stmt::LoadMatrix { dst, place, transposed } => self.load_matrix(*dst, place, *transposed),
            Stmt::AmxLoad { tile, place, .. } | Stmt::AmxStore { tile, place, .. } => {
                let words = matches!(self.elem(place), Elem::Num(d) if d.bits() == 32);
                self.expect(words, || "a tile has words of 32 bits".to_string());
                self.tiles(&[*tile]);
            }
            Stmt::AmxDot { sums, a, b, .. } => {
                self.tiles(&[*sums, *a, *b]);
                self.expect(sums != a && sums != b, || "a tile of sums cannot be its own operand".to_string());
            }
            Stmt::Mma { acc, apart, a, b, of } => self.mma(acc, *apart, [*a, *b], *of),
            Stmt::Wgmma { acc, a, b, of } => self.wgmma(*acc, a, b, *of),
            Stmt::WgmmaWait { acc, behind, .. } => {
                self.sums(*acc, &[DType::F32, DType::I32]);
                for buf in behind {
                    let word = |e: Elem| matches!(e, Elem::Num(DType::F32 | DType::I32));
                    let own = self.k.slots.get(*buf).is_some_and(|s| s.space == Space::Scratch && word(s.elem));
                    self.expect(own, || "a `wgmma wait` stands behind arrays of the thread, of f32 or i32".to_string());
                }
            }
            Stmt::Tcgen05Alloc { .. } | Stmt::Tcgen05Dealloc { .. } => self.tcgen05(stmt),
            Stmt::Tcgen05Mma { .. } | Stmt::Tcgen05Load { .. } | Stmt::Tcgen05Wait { .. } => self.tcgen05(stmt),
            Stmt::CopyAsync { to, from, bytes, .. } => self.copy(to, from, *bytes),
            Stmt::TmaLoad { to, tensor, from, all, .. } => {
                if *all {
                    self.clusters("copy tensor all", 1);
                }
                self.boxed(*tensor, from.len(), to);
            }
            Stmt::TmaStore { tensor, to, from } => self.boxed(*tensor, to.len(), from),
            Stmt::BarrierFirst { count } => {
                let (threads, warp) = (self.k.threads, self.k.warp.max(1));
                self.expect((1..=threads).contains(count) && count.is_multiple_of(warp), || {
                    format!("whole warps of {warp} threads meet, of {threads} at most, not {count}")
                });
            }
            Stmt::Registers { count, .. } => {
                self.expect((24..=256).contains(count) && count % 8 == 0, || {
                    format!("a thread has a multiple of 8 registers from 24 to 256, not {count}")
                });
            }
            Stmt::InitBarrier { count, .. } => {
                self.expect((1..1 << 20).contains(count), || {
                    format!("an mbarrier counts 1 to {} arrivals, not {count}", (1 << 20) - 1)
                });
            }
            Stmt::Arrive { bytes, of, .. } => {
                if let Some(block) = of {
                    self.clusters("arrive of", *block);
                    self.expect(bytes.is_none(), || "bytes are expected of the thread's own block".to_string());
                }
                self.expect(bytes.is_none_or(|b| b < 1 << 20), || {
                    format!("an mbarrier counts less than {} bytes", 1 << 20)
                });
            }
            _ => {}
        }
    }

    fn print(&mut self, format: &Quoted, args: &[PrintArg]) {
        for arg in args {
            if let PrintArg::Tile { slot, shape } = arg {
                let len = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
                let fits = self.k.slots.get(*slot).is_some_and(|s| len.is_some_and(|len| len <= s.len));
                self.expect(fits, || "a print shows more elements than its slot has".to_string());
            }
        }
        // A malformed format is reported where it is printed.
        if let Ok(n) = conversions(format.raw(), args.len()) {
            self.expect(n == args.len(), || format!("a print has {n} conversions for {} values", args.len()));
        }
    }

    /// An axis is used between.
    fn open(&mut self, axis: AxisId, open: bool) {
        if let Some(is) = self.axes.get_mut(axis.0 as usize) {
            *is = open;
        }
    }

    fn operation(&mut self, dst: ValId, op: ScalarOp, elem: Elem, args: &[Opnd]) {
        let ty = self.ty(dst);
        self.expect(args.len() == op.arity(), || format!("{op:?} has {} operands", args.len()));
        let from: Vec<Elem> = (0..args.len()).map(|at| op.operand(at, elem)).collect();
        self.expect(op.accepts(&from, ty.elem), || format!("{op:?} does not take {elem:?} to {ty}"));
        for (i, arg) in args.iter().enumerate() {
            let lanes = ty.lanes;
            match (op, i, arg) {
                (ScalarOp::PtrAdd, 1, Opnd::Val(v)) => {
                    let own = self.ty(*v);
                    self.expect(own.lanes == lanes && own.dtype().is_int(), || {
                        format!("an address cannot move by {own}")
                    });
                }
                (ScalarOp::PtrAdd, 1, Opnd::Const { .. }) => {}
                _ => self.opnd(arg, Ty { elem: op.operand(i, elem), lanes }),
            }
        }
    }
}
