//! Kernel IR: the program of one kernel as flat statements over typed scalars and vectors. All choices are made: one
//! statement becomes one line of source.
//!
//! ```text
//! kernel  := "kernel" (NAME | LABEL) "(" (VAL ":" ty),* ")" grid? threads? warp? cluster? "scratch" INT shared? "{"
//!            (slot | global | tensor)* stmt* "}"
//!                                                            INT: bytes for each worker; LABEL: its name in quotes,
//!                                                            what is not plain escaped
//! grid    := "grid" "(" ix "," ix "," ix ")"                               the kernel's own; otherwise the launch gives it
//! threads := "threads" INT                                                 of a block, on a GPU; scratch is then a thread's
//! warp    := "warp" INT                                                    lanes of a warp, 32 where it is not there
//! cluster := "cluster" INT                                                 blocks, side by side along x, that reach each other's
//!                                                                          shared memory
//! shared  := "shared" INT                                                  bytes of shared memory of a block
//! slot    := ("slot" | "shared" | "kept" | "zeroed") BUF ":" ty "[" INT "]" "at" INT
//!                                                                          elements, byte offset in the scratch or the
//!                                                                          shared memory; a worker keeps the last two
//!                                                                          from block to block, zeroed at first
//!          | "shared" BUF ":" "mbarrier" "[" INT "]" "at" INT              barriers that bytes count on, of 8 bytes each
//! tensor  := "tensor" NAME ":" dtype "[" ix,* "]" "of" VAL "strides" "(" ix,* ")" "box" "[" INT,* "]" ("swizzle" INT)?
//!                                                                          how TMA sees a parameter's array, the last
//!                                                                          dimension contiguous; strides of the others,
//!                                                                          in elements
//! global  := "global" "@" NAME ":" dtype "[" INT "]" "align" INT "constant"? "=" "[" const,* "]"
//!                                                                          an array in global memory, and what it begins
//!                                                                          with; two values of 4 bits share a byte
//! ty      := (dtype | "ptr<" dtype ">") ("x" LANES)?                       f32, f32x16, i1x16 (a lane mask), ptr<f16>
//!
//! stmt    := a row of [`super::statements`], on a line of its own; [`super::kinds`] describes its operands
//! place   := VAL ("as" dtype)? "[" ix "]" | BUF "[" ix "]"                 linear elements
//! mask    := (ix CMP ix | VAL) ("and" ...)* | "true"
//! order   := "relaxed" | "acquire" | "release" | "acq_rel"                 otherwise weak
//! panel   := place "trans"? "swizzle" INT "strides" "(" INT "," INT ")"     a matrix in shared memory: [`Panel`]
//! left    := panel | place                                                 or in registers of the threads: [`Left`]
//! descr   := place "descriptor" HEX                                       an operand of `tcgen05 mma`: [`Described`]
//! operand := "f16" | "bf16" | "tf32" | "e4m3" | "e5m2" | "s8" | "u8"      of the left fragment, and of the right where it differs
//! opnd    := VAL | const ":" dtype
//! ix      := as in loop IR, and "tx"                                       the thread's number in its block
//! ```
//!
//! Invariants:
//! 1. A value is defined once, in its body or an enclosing one, before its uses; a variable is declared in the same
//!    way.
//! 2. An operation's vector operands have the lane count of its result; scalars are splatted first. Constants need not be.
//! 3. Names of values, slots and axes are distinct identifiers, so that they print as themselves in C. A user's text
//!    enters a kernel only as an [`Ident`], a [`Label`] or a [`Quoted`], whose constructors make it harmless; source
//!    that is emitted from a kernel contains no other text of a user.
//! 4. Vector loads and stores are not masked; only scalar accesses and copies have a mask.
//! 5. `break` and `continue` belong to the nearest enclosing loop that is not a lane loop.
//! 6. Threads of a block are numbered along one dimension: with warps of 32, thread `tx` is lane `tx%32` of warp `tx//32`. Constructs
//!    that need several threads (`tx`, shared slots, `barrier`, `syncwarp`, `shuffle`, `ldmatrix`, `mma`, `wgmma`, `tcgen05`,
//!    asynchronous copies and the waits for them) appear only where a block has several.
//! 7. All threads of a block reach a `barrier` together, all lanes of a warp a `syncwarp`, a `shuffle`, an `ldmatrix`
//!    or an `mma`, and all threads of a warpgroup a `wgmma` ([`super::uniform`] checks it). Only the first two order
//!    accesses of memory; the others exchange values.
//! 8. A block accesses the shared memory of another block of its cluster only before that block ends: all threads of a
//!    cluster meet after the last such access.
//! 9. Shared slots start at multiples of 16 bytes. Two slots may share bytes unless one of them holds mbarriers; a
//!    barrier then separates the uses of the one from those of the other.
//! 10. Slots that a worker keeps share no bytes with others; a block of such a kernel has one thread.

pub use super::ident::{Ident, Idents};
pub use super::kinds::{Access, Part};
pub use super::provenance::Sources;
pub use super::statements::{Runs, Stmt, Work};
pub use crate::base::Quoted;
use crate::base::banks::swizzled;
use crate::base::{IdMap, Label};
use crate::loops;
pub use crate::loops::amx::AmxTerms;
pub use crate::loops::ir::{AxisId, BufId, Cmp, Cond, Ix, Mask, Opnd, Order, RmwOp, SiteId, ValId};
pub use crate::loops::matrix::Operand;
use crate::loops::panels::Lies;
use crate::num::DType;
/// The type of one lane's value.
pub use crate::num::Ty as Elem;

/// A scalar (`lanes` 1) or a vector. A vector of i1 is a lane mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ty {
    pub elem: Elem,
    pub lanes: u32,
}

impl Ty {
    pub fn num(dtype: DType, lanes: u32) -> Ty {
        Ty { elem: Elem::Num(dtype), lanes }
    }
    pub fn is_vector(self) -> bool {
        self.lanes > 1
    }
    /// The element type; an address counts as i64.
    pub fn dtype(self) -> DType {
        self.elem.held()
    }
}

impl std::fmt::Display for Ty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.elem {
            Elem::Num(d) => write!(f, "{d}")?,
            Elem::Ptr(d) => write!(f, "ptr<{d}>")?,
        }
        if self.lanes > 1 { write!(f, "x{}", self.lanes) } else { Ok(()) }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Val {
    pub name: Ident,
    pub ty: Ty,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub name: Ident,
    /// The user's line that the loop comes from; printed as a comment.
    pub from: Option<Label>,
}

/// Where a slot lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// Memory of the worker, or of one thread of a GPU.
    Scratch,
    /// Memory of the worker that it keeps from one block to the next. With `zeroed` it holds zeros before the first block.
    Kept { zeroed: bool },
    /// Memory that the threads of a block share.
    Shared,
    /// Memory that the threads of a block share, for mbarriers alone.
    Mbarrier,
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Space::Scratch | Space::Kept { .. }) { "scratch" } else { "shared" })
    }
}

/// Storage in scratch or shared memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    pub name: Ident,
    pub space: Space,
    pub elem: Elem,
    pub len: u64,
    /// Byte offset in its space; slots of the scratch whose lives do not overlap may share bytes.
    pub offset: u64,
}

impl Slot {
    /// Bytes of one element; those of 4 bits have a byte each.
    pub fn elem_bytes(&self) -> u64 {
        self.elem.held().bytes()
    }
    pub fn bytes(&self) -> u64 {
        self.len.saturating_mul(self.elem_bytes())
    }
    /// Returns true if the threads of a block share the slot's bytes.
    pub fn is_shared(&self) -> bool {
        matches!(self.space, Space::Shared | Space::Mbarrier)
    }
}

/// An array as TMA sees it: a tensor that TMA copies in boxes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub name: Ident,
    /// The parameter that has its address.
    pub base: ValId,
    pub elem: DType,
    /// Extents, outermost first, over the parameters.
    pub dims: Vec<Ix>,
    /// Elements between neighbours along each dimension but the last, whose elements lie side by side.
    pub strides: Vec<Ix>,
    /// The extents of a box: the part of the tensor that one copy moves.
    pub extents: Vec<u32>,
    /// The bytes of a row in which 16-byte pieces are exchanged, so that columns lie in different banks: 32, 64 or 128; 0
    /// for none.
    pub swizzle: u32,
}

impl Tensor {
    /// Elements of a box.
    pub fn count(&self) -> u64 {
        self.extents.iter().fold(1, |n, e| n.saturating_mul(u64::from(*e)))
    }
    /// Bytes of a box; they count whether they lie inside the tensor or not.
    pub fn bytes(&self) -> u64 {
        self.count().saturating_mul(self.elem.bytes())
    }
    /// The alignment in bytes of a box in shared memory.
    pub fn align(&self) -> u64 {
        u64::from(self.swizzle * 8).max(128)
    }
    /// The byte in shared memory that a byte of a box goes to; both are counted from a multiple of [`Tensor::align`].
    pub fn swizzled(&self, byte: u64) -> u64 {
        swizzled(byte, self.swizzle)
    }
}

girih_base::id_type! {
    /// A tensor of a kernel.
    TensorId
}

/// The writes that a fence makes visible to asynchronous copies, or to products of a warpgroup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// The initialisation of mbarriers by the thread.
    Init,
    /// All writes of the thread to shared memory.
    Async,
    /// All writes to global memory that the thread knows of.
    Global,
    /// The thread's writes to registers, for products of its warpgroup.
    Registers,
    /// The thread's accesses of tensor memory, for threads that it meets next.
    BeforeSync,
    /// Accesses of tensor memory by threads that it has met, for its own ones from here on.
    AfterSync,
}

/// Warps of a warpgroup.
pub const WARPGROUP: u32 = 4;

/// A matrix in shared memory as `wgmma` reads it. Its terms are contiguous, in rows of `swizzle` bytes below each
/// other; where it is transposed, its lines are contiguous instead. Pieces of rows are exchanged as TMA does it.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The first element, as if no pieces were exchanged.
    pub place: Address,
    pub transposed: bool,
    /// Bytes of a row: 32, 64 or 128.
    pub swizzle: u32,
    /// Bytes from a row's worth of lines to the next, where it is transposed.
    pub lead: u32,
    /// Bytes from eight rows to the next eight.
    pub stride: u32,
}

impl Panel {
    /// The offset in bytes of an element of `bytes` bytes from the panel's first element, before pieces are exchanged.
    pub fn byte(&self, line: u64, term: u64, bytes: u64) -> u64 {
        let Panel { transposed, swizzle, lead, stride, .. } = *self;
        Lies { transposed, row: swizzle.into(), lead: lead.into(), stride: stride.into() }.byte(line, term, bytes)
    }
}

/// The left operand of a product of a warpgroup.
#[derive(Clone, Debug, PartialEq)]
pub enum Left {
    Panel(Panel),
    /// Words in an array of each thread from here on: the fragment of its warp's rows, as [`Stmt::Mma`] has it.
    Words(Address),
}

impl Left {
    /// Words of a lane's fragment.
    pub const WORDS: u32 = 4;

    pub fn panel(&self) -> Option<&Panel> {
        if let Left::Panel(panel) = self { Some(panel) } else { None }
    }

    pub fn place(&self) -> &Address {
        match self {
            Left::Panel(panel) => &panel.place,
            Left::Words(place) => place,
        }
    }
}

/// An operand of `tcgen05 mma`: its first element in a shared slot, as if no pieces were exchanged, and the number that tells of
/// its layout, without the address ([`super::tcgen05::Matrix`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    pub place: Address,
    pub number: u64,
}

/// The greatest distance of elements for which adjacent vectors are loaded.
pub const MOST_APART: u32 = crate::tile::affine::MOST_APART as u32;

/// Tiles of a processor, and their rows and the words of these.
pub const TILES: u32 = 8;
pub const TILE_SIDE: u32 = crate::loops::amx::SIDE as u32;

/// Every statement, in order of the text.
pub fn statements<'k>(body: &'k [Stmt], each: &mut dyn FnMut(&'k Stmt)) {
    for stmt in body {
        each(stmt);
        stmt.parts(&mut |part| {
            if let Part::Body(body) = part {
                statements(body, each);
            }
        });
    }
}

/// The part, and the lane of that part, that lane `i` of [`Stmt::Strided`] comes from.
pub fn every(lanes: u32, step: u32, i: u32) -> (u32, u32) {
    let apart = lanes.saturating_sub(1).max(1);
    let part = (i * step / apart).min(step.saturating_sub(1));
    (part, i * step - part * apart)
}

/// Returns the vector, and the lane of that vector, that lane `i` of part `part` of a [`Stmt::Interleave`] comes from.
pub fn interleaved(lanes: u32, count: u32, part: u32, i: u32) -> (u32, u32) {
    let at = part * lanes + i;
    (at % count.max(1), at / count.max(1))
}

/// Which elements of matrices the lanes of a warp get: of one word of a row, or of several rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transposed {
    No,
    /// For elements of two bytes: lane l gets the elements `l/4` of the rows `l%4*2` and `l%4*2 + 1`.
    Yes,
    /// For four matrices of bytes at once, which are 32 terms of 16 rows of a left operand. Lane l supplies the address
    /// of the term [`row_of_bytes`]. It gets the terms `l%4*4` to `l%4*4 + 3` of row `l/4*2`, the same terms of the
    /// next row, and the terms 16 further of both rows. Rows 0 to 7 of `mma` are the rows with an even number, rows 8
    /// to 15 those with an odd number.
    ///
    /// [`row_of_bytes`]: crate::loops::matrix::row_of_bytes
    Left,
    /// The same for 16 columns of two right operands, one with the even and one with the odd columns: lane l gets the
    /// terms `l%4*4` and those 16 further of column `l/4*2`, then both of the next column.
    Right,
}

impl Transposed {
    pub fn of_bytes(self) -> bool {
        matches!(self, Transposed::Left | Transposed::Right)
    }
}

/// The lane whose value a lane of a warp gets from a shuffle; the operand counts modulo the lanes of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shuffle {
    /// The value of the lane whose number differs in the operand's bits.
    Xor,
    /// The value of the lane `by` further; past the end, the lane's own value.
    Down,
    /// The value of the lane with this number.
    Idx,
}

impl Shuffle {
    /// The lane that lane `lane` reads from, in a warp of `warp` lanes.
    pub fn source(self, lane: u32, by: u64, warp: u32) -> u32 {
        let by = (by % u64::from(warp.max(1))) as u32;
        match self {
            Shuffle::Xor => lane ^ by,
            Shuffle::Down if lane + by < warp => lane + by,
            Shuffle::Down => lane,
            Shuffle::Idx => by,
        }
    }
}

/// Where an access starts, in linear elements: `place` in the grammar.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    /// Global memory.
    Mem {
        base: ValId,
        index: Ix,
        elem: DType,
    },
    Slot {
        buf: BufId,
        index: Ix,
    },
}

/// An array in global memory: the kernel's name for it, and its type and contents, under the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    pub name: Ident,
    pub array: loops::ir::Global,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PrintArg {
    Scalar(Opnd),
    /// A tile that lies in a slot, row-major.
    Tile {
        slot: BufId,
        shape: Vec<u64>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The user's name for the kernel, shown to people; in source the kernel has a number.
    pub name: Label,
    /// The first values, in order: one per entry parameter.
    pub params: Vec<ValId>,
    /// The blocks along x, y and z of an open kernel, over its parameters; otherwise the launch gives them.
    pub grid: Option<[Ix; 3]>,
    pub vals: IdMap<ValId, Val>,
    pub axes: IdMap<AxisId, Axis>,
    pub slots: IdMap<BufId, Slot>,
    pub tensors: IdMap<TensorId, Tensor>,
    /// The module's globals, and constants of the kernel behind them.
    pub globals: Vec<Global>,
    /// Threads of a block; 1 on a CPU.
    pub threads: u32,
    /// Lanes of a warp, a number of the target: 32 where nothing else is said.
    pub warp: u32,
    /// Blocks of a cluster, side by side along x; 1 where there are none.
    pub cluster: u32,
    /// Bytes of scratch for each worker, or each thread of a GPU.
    pub scratch: u64,
    /// Bytes of shared memory for each block.
    pub shared: u64,
    /// The parts of the user's program that values, axes, slots and stores were made for; not part of the printed IR.
    pub sources: Sources,
    /// No array of a parameter that is written overlaps another, as the launch was tested for or the runner of a model sees to; not
    /// part of the printed IR.
    pub apart: bool,
    pub body: Vec<Stmt>,
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel {
            name: Label::default(),
            params: vec![],
            grid: None,
            vals: IdMap::new(),
            axes: IdMap::new(),
            slots: IdMap::new(),
            tensors: IdMap::new(),
            globals: vec![],
            threads: 1,
            warp: 32,
            cluster: 1,
            scratch: 0,
            shared: 0,
            sources: Sources::default(),
            apart: false,
            body: vec![],
        }
    }
}

impl Kernel {
    /// Threads of a warpgroup.
    pub fn warpgroup(&self) -> u32 {
        self.warp.saturating_mul(WARPGROUP)
    }

    /// Mbarriers, those of all slots.
    pub fn mbarriers(&self) -> u64 {
        self.slots.values().filter(|s| s.space == Space::Mbarrier).fold(0, |n, s| n.saturating_add(s.len))
    }

    /// The number of a slot's first mbarrier among all of them.
    pub fn first_mbarrier(&self, buf: BufId) -> u64 {
        let before = self.slots.iter().filter(|(id, s)| s.space == Space::Mbarrier && *id < buf);
        before.fold(0, |n, (_, s)| n.saturating_add(s.len))
    }

    /// Bytes from the shared memory of a block to that of the next block of its cluster, as they are counted here: both
    /// begin at a multiple of the alignment of boxes and panels.
    pub fn apart(&self) -> u64 {
        if self.cluster > 1 { self.shared.checked_next_multiple_of(1024).unwrap_or(u64::MAX) } else { self.shared }
    }

    /// The blocks of an open kernel along x, y and z for some arguments; `None` where the launch gives them.
    pub fn blocks(&self, args: &[u64]) -> Option<[i64; 3]> {
        let of = |val: &ValId| self.params.iter().position(|p| p == val).and_then(|at| args.get(at)).copied();
        let leaf = |leaf: &Ix| match leaf {
            Ix::Const(c) => *c,
            Ix::Val { val, .. } => of(val).unwrap_or(0) as i64,
            _ => 0,
        };
        self.grid.as_ref().map(|grid| grid.each_ref().map(|n| n.eval(&leaf)))
    }
}
