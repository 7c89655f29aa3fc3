//! Kernel IR: the program of one kernel as flat statements over typed scalars and vectors. Nothing is left to decide: one
//! statement becomes one line of source.
//!
//! ```text
//! kernel  := "kernel" (NAME | LABEL) "(" (VAL ":" ty),* ")" grid? threads? cluster? "scratch" INT shared? "{"
//!            (slot | global | tensor)* stmt* "}"
//!                                                            INT: bytes for each worker; LABEL: its name in quotes,
//!                                                            what is not plain escaped
//! grid    := "grid" "(" ix "," ix "," ix ")"                               the kernel's own; otherwise the launch gives it
//! threads := "threads" INT                                                 of a block, on a GPU; scratch is then a thread's
//! cluster := "cluster" INT                                                 blocks, side by side along x, that reach each other's
//!                                                                          shared memory
//! shared  := "shared" INT                                                  bytes of shared memory of a block
//! slot    := ("slot" | "shared") BUF ":" ty "[" INT "]" "at" INT           elements, byte offset in the scratch or the
//!                                                                          shared memory
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
//! stmt    := VAL ":" ty "=" expr                                           each statement on a line of its own
//!          | "var" VAL ":" ty "=" opnd | VAL "=" opnd                      a mutable variable, and a write of it
//!          | "store" place "=" opnd where? order?                          a vector: contiguous from the place
//!          | "prefetch" place                                              of global memory, into the cache
//!          | "lane" VAL "[" ix "]" "=" opnd
//!          | "for" AXIS "in" ix ".." ix "step" ix ("unroll" INT)? "{" stmt* "}"
//!          | "loop" "{" stmt* "}" | "break" | "continue"
//!          | "return"                                                      goes on to the next block
//!          | "if" mask "{" stmt* "}" ("else" "{" stmt* "}")?
//!          | "poll" | "yield" site                                         stop if the run is to end; let others run
//!          | "print" STRING ("," (opnd | BUF "[" INT,* "]"))* site         C's format, for each conversion a scalar or the
//!                                                                          tile of that shape that lies in a slot
//!          | "assert" opnd "," STRING element? site                        stops the run with the message
//!          | "barrier" | "barrier" "cluster" | "syncwarp"                  wait for all threads of the block, of the cluster, of the
//!                                                                          warp
//!          | "copy" "async" place "=" place "bytes" INT where?             from global to shared memory, while the thread
//!                                                                          goes on; zeros where the mask does not hold
//!          | "commit" | "wait" "groups" INT                                closes a group of copies; waits until at most so
//!                                                                          many groups of the thread are in flight
//!          | "copy" "tensor" place "=" NAME "[" ix,* "]" "on" place "all"? a box from there on, by TMA; its bytes count on
//!                                                                          the mbarrier; zeros past the tensor's edges;
//!                                                                          `all`: to all blocks of the cluster, at the same
//!                                                                          places, each of which has its bytes counted
//!          | "copy" "tensor" NAME "[" ix,* "]" "=" place                   a box from shared memory to there, by TMA; what lies
//!                                                                          past the tensor's edges is left out
//!          | "copy" "commit" | "copy" "wait" INT                           closes a group of these; waits until at most so
//!                                                                          many groups of the thread still read shared memory
//!          | "init" place "count" INT                                      an mbarrier, for so many arrivals a phase
//!          | "arrive" place ("expect" INT | "of" INT)?                     at an mbarrier, which bytes will come to as well, or at
//!                                                                          that of a block of the cluster
//!          | "wait" place "parity" ix                                      for the end of its phase of that parity
//!          | "fence" ("init" | "async" | "global" | "registers")           shows TMA new mbarriers, or what was written to
//!                                                                          shared or to global memory, or `wgmma` a thread's registers
//!          | "registers" ("more" | "fewer") INT                           what each thread of the warpgroup has from here on
//!          | "mma" operand operand? place "," place ("by" INT)? "add" VAL "," VAL   the product of two fragments of the warp, added to
//!                                                                          two elements each of an array of the thread, so far apart
//!          | "wgmma" operand BUF "add" panel "," panel                     begins a product of two panels of a warpgroup, added to
//!                                                                          an array of the thread
//!          | "wgmma" "commit" | "wgmma" "wait" INT BUF                     closes a group of them; waits until at most so many
//!                                                                          are in flight: the sums may be used again
//!          | "tile" INT ("load" | "store") place "by" ix                   16 rows of 16 words, so far apart, of a processor's tile
//!          | "tile" INT "add" ("bf16" | "u8s8") INT "," INT                the product of two tiles, added to one of sums
//!          | "some" ix ".." ix "store" place "=" opnd                     the lanes from one to before another
//!          | "check" ("read" | "write") place "count" INT ("param" INT)? element? site where?
//!
//! expr    := OP opnd,*                                                     a scalar operation, per lane: `mulf a, b`
//!          | "load" place where? ("else" opnd)? order?                     a vector: contiguous from the place
//!          | "load" place "of" INT                                        an element of a shared slot, of that block of the
//!                                                                          cluster
//!          | "splat" opnd | "ramp" ix "step" ix | "index" ix | "test" mask
//!          | "lane" VAL "[" ix "]" | "reduce" OP VAL | "all" VAL
//!          | "merge" ("low" | "high") INT VAL "," VAL
//!          | "every" INT VAL ("," VAL)*
//!          | "interleave" INT "of" VAL ("," VAL)*                          the vector of that number of what they make in turn
//!          | "some" ix ".." ix "load" place "else" opnd                   the lanes from one to before another; `opnd` in the others
//!          | "rmw" RMW place "," opnd where? order? | "cas" place "," opnd "," opnd where? order?
//!          | "shuffle" ("xor" | "down" | "idx") VAL "," opnd               what another lane of the warp has
//!          | "ldmatrix" ("trans" ("left" | "right")?)? place               words of matrices in shared memory, of which each lane
//!                                                                          gives the place of a row: [`Transposed`]
//!          | "global" "@" NAME | "scratch" ix                              the address of a global, of a byte offset
//! place   := VAL ("as" dtype)? "[" ix "]" | BUF "[" ix "]"                 linear elements
//! where   := "where" mask
//! mask    := (ix CMP ix | VAL) ("and" ...)* | "true"
//! order   := "relaxed" | "acquire" | "release" | "acq_rel"                 otherwise weak
//! element := "element" ix                                                  which one a message names
//! panel   := place "trans"? "swizzle" INT "strides" "(" INT "," INT ")"     a matrix in shared memory: [`Panel`]
//! operand := "f16" | "bf16" | "tf32" | "e4m3" | "e5m2" | "s8" | "u8"      of the left fragment, and of the right where it differs
//! site    := "site" INT
//! opnd    := VAL | const ":" dtype
//! ix      := as in loop IR, and "tx"                                       the thread's number in its block
//! ```
//!
//! Invariants:
//! 1. A value is defined once, in its body or an enclosing one, before its uses; a variable is declared so.
//! 2. An operation's vector operands have the lane count of its result; scalars are splatted first. Constants need not be.
//! 3. Names of values, slots and axes are distinct identifiers, so that they print as themselves in C. A user's text
//!    is in a kernel only as an [`Ident`], a [`Label`] or a [`Quoted`], whose constructors make it harmless: what is
//!    emitted from a kernel has nothing else to print.
//! 4. Vector loads and stores are not masked; only scalar accesses and copies have a mask.
//! 5. `break` and `continue` belong to the nearest enclosing loop that is not a lane loop.
//! 6. Threads of a block are numbered along one dimension: thread `tx` is lane `tx%32` of warp `tx//32`. What only threads
//!    have (`tx`, shared slots, `barrier`, `syncwarp`, `shuffle`, `ldmatrix`, `mma`, `wgmma`, asynchronous copies and what waits
//!    for them) appears only where a block has several.
//! 7. All threads of a block reach a `barrier` together, and all lanes of a warp a `syncwarp`, a `shuffle`, an `ldmatrix` or an
//!    `mma`, and all threads of a warpgroup a `wgmma` ([`super::uniform`] shows it). But for the first two they exchange values and
//!    order no accesses of memory.
//! 8. Whatever a block does to the shared memory of another one of its cluster, it does before that one ends: all threads of a
//!    cluster meet behind the last of it.
//! 9. Shared slots start at multiples of 16 bytes. Two may share bytes that are no mbarriers'; a barrier then stands between
//!    the uses of one and of the other.

pub use super::ident::{Ident, Idents};
pub use super::provenance::Sources;
pub use crate::base::Quoted;
use crate::base::banks::swizzled;
use crate::base::{IdMap, Label};
use crate::loops;
pub use crate::loops::ir::{AxisId, BufId, Cmp, Cond, Ix, Mask, Opnd, Order, RmwOp, SiteId, ValId};
pub use crate::loops::matrix::Operand;
use crate::loops::panels::Lies;
pub use crate::loops::tiles::TileTerms;
/// What one lane holds.
pub use crate::num::Ty as Elem;
use crate::num::{DType, ScalarOp};

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
    /// Memory that the threads of a block share.
    Shared,
    /// The same, of mbarriers alone.
    Mbarrier,
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Space::Scratch { "scratch" } else { "shared" })
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
    /// Whether its bytes are those that a block shares.
    pub fn is_shared(&self) -> bool {
        self.space != Space::Scratch
    }
}

/// How TMA sees an array: a tensor of which it copies boxes.
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
    /// What one copy moves.
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
    /// Bytes of a box, which count whether they lie inside the tensor or not.
    pub fn bytes(&self) -> u64 {
        self.count().saturating_mul(self.elem.bytes())
    }
    /// What the place of a box in shared memory is a multiple of.
    pub fn align(&self) -> u64 {
        u64::from(self.swizzle * 8).max(128)
    }
    /// The byte in shared memory that a byte of a box goes to; both are counted from a multiple of [`Tensor::align`].
    pub fn swizzled(&self, byte: u64) -> u64 {
        swizzled(byte, self.swizzle)
    }
}

crate::id_type! {
    /// A tensor of a kernel.
    TensorId
}

/// What a fence shows to asynchronous copies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// Mbarriers that the thread has initialised.
    Init,
    /// All that the thread has written to shared memory.
    Async,
    /// All of global memory that the thread knows of.
    Global,
    /// Registers that the thread has written, to products of its warpgroup.
    Registers,
}

/// Lanes of a warp.
pub const WARP: u32 = 32;
/// Threads of a warpgroup, four warps.
pub const WARPGROUP: u32 = 4 * WARP;

/// A matrix in shared memory as `wgmma` reads it. Its terms lie side by side, in rows of `swizzle` bytes below each other;
/// or where it is transposed its lines do. Pieces of rows are exchanged as TMA does it.
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
    /// The byte of an element of so many bytes, counted from the first as if no pieces were exchanged.
    pub fn byte(&self, line: u64, term: u64, bytes: u64) -> u64 {
        let Panel { transposed, swizzle, lead, stride, .. } = *self;
        Lies { transposed, row: swizzle.into(), lead: lead.into(), stride: stride.into() }.byte(line, term, bytes)
    }
}

/// How far apart elements may lie that vectors side by side are loaded for.
pub const MOST_APART: u32 = crate::tile::affine::MOST_APART as u32;

/// Tiles of a processor, and their rows and the words of these.
pub const TILES: u32 = 8;
pub const TILE_SIDE: u32 = crate::loops::tiles::SIDE as u32;

/// Every statement, in order of the text.
pub fn statements<'k>(body: &'k [Stmt], each: &mut dyn FnMut(&'k Stmt)) {
    for stmt in body {
        each(stmt);
        match stmt {
            Stmt::For { body, .. } | Stmt::Loop { body } => statements(body, each),
            Stmt::If { then, els, .. } => {
                statements(then, each);
                statements(els, each);
            }
            _ => {}
        }
    }
}

/// In which part, and in which of its lanes, lane `i` of [`Stmt::Every`] lies.
pub fn every(lanes: u32, step: u32, i: u32) -> (u32, u32) {
    let apart = lanes.saturating_sub(1).max(1);
    let part = (i * step / apart).min(step.saturating_sub(1));
    (part, i * step - part * apart)
}

/// Of which vector, and which of its lanes, lane `i` of the `part`th of [`Stmt::Interleave`] is.
pub fn interleaved(lanes: u32, count: u32, part: u32, i: u32) -> (u32, u32) {
    let at = part * lanes + i;
    (at % count.max(1), at / count.max(1))
}

/// Which elements of matrices the lanes of a warp get: of one word of a row, or of several rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transposed {
    No,
    /// Of elements of two bytes: lane l gets the elements `l/4` of the rows `l%4*2` and `l%4*2 + 1`.
    Yes,
    /// Of bytes, for four matrices together, which are 32 terms of 16 rows of a left operand: lane l gives the place of the
    /// term [`row_of_bytes`], and gets the terms `l%4*4` and the next three of row `l/4*2`, those of the row behind it, and of
    /// both rows the terms 16 further. To `mma`, its rows 0 to 7 are those with an even number, and 8 to 15 the others.
    ///
    /// [`row_of_bytes`]: crate::loops::matrix::row_of_bytes
    Left,
    /// The same of 16 columns of two right operands, those with an even number and those with an odd one: lane l gets the terms
    /// `l%4*4` and those 16 further of column `l/4*2`, then both of the column behind it.
    Right,
}

impl Transposed {
    pub fn of_bytes(self) -> bool {
        matches!(self, Transposed::Left | Transposed::Right)
    }
}

/// Whose value a lane of a warp gets from a shuffle; only the low five bits of the operand count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shuffle {
    /// That of the lane whose number differs in the operand's bits.
    Xor,
    /// That of the lane so many further; past the end, its own.
    Down,
    /// That of the lane of this number.
    Idx,
}

impl Shuffle {
    /// The lane that lane `lane` reads from.
    pub fn source(self, lane: u32, by: u64) -> u32 {
        let by = by as u32 % WARP;
        match self {
            Shuffle::Xor => lane ^ by,
            Shuffle::Down if lane + by < WARP => lane + by,
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

/// An array in global memory: what the kernel calls it, and what it is, under the same name.
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
pub enum Stmt {
    /// A mutable variable, with its first value.
    Var {
        var: ValId,
        init: Opnd,
    },
    Set {
        var: ValId,
        value: Opnd,
    },
    Let {
        dst: ValId,
        op: ScalarOp,
        /// The operand type the operation is applied at.
        ty: Elem,
        args: Vec<Opnd>,
    },
    Splat {
        dst: ValId,
        value: Opnd,
    },
    /// Lane l holds `base + l*step`, wrapped to the type of `dst`.
    Ramp {
        dst: ValId,
        base: Ix,
        step: Ix,
    },
    Index {
        dst: ValId,
        ix: Ix,
    },
    Test {
        dst: ValId,
        mask: Mask,
    },
    Load {
        dst: ValId,
        place: Address,
        mask: Mask,
        /// Masked off; `None` is 0.
        other: Option<Opnd>,
        order: Order,
    },
    /// What lies there, in global memory, will be wanted soon: the cache may fetch it. It need not be there.
    Prefetch {
        place: Address,
    },
    /// An element of a shared slot as a block of the cluster has it.
    LoadOf {
        dst: ValId,
        place: Address,
        /// That block, by its number in the cluster.
        of: u32,
    },
    Store {
        place: Address,
        value: Opnd,
        mask: Mask,
        order: Order,
    },
    Lane {
        dst: ValId,
        vector: ValId,
        lane: Ix,
    },
    SetLane {
        vector: ValId,
        lane: Ix,
        value: Opnd,
    },
    /// Groups of `width` lanes of two vectors in turn. Low: lanes i with i / width even are those of `a`, the others hold
    /// the lanes of `b` from `width` before. High: the others are those of `b`, and the even groups hold the lanes of `a`
    /// from `width` after. Rounds of these transpose a square of lanes.
    Merge {
        dst: ValId,
        a: ValId,
        b: ValId,
        width: u32,
        high: bool,
    },
    /// The lanes `from..to` of a vector that lies at the place, and those of `other` beside them: nothing is read there. The bounds
    /// may lie outside of the vector.
    LoadSome {
        dst: ValId,
        place: Address,
        from: Ix,
        to: Ix,
        other: Opnd,
    },
    /// Stores the lanes `from..to` alone.
    StoreSome {
        place: Address,
        value: ValId,
        from: Ix,
        to: Ix,
    },
    /// Lane i is element `i*step` of what the parts cover, `step` of them, each of which begins with the last lane of the one
    /// before: elements that lie so far apart, of vectors loaded side by side, and no element beyond the last of them.
    Every {
        dst: ValId,
        parts: Vec<ValId>,
    },
    /// The elements of several vectors in turn, as many of them as `dst` has lanes, from the `part`th vector of such on: lane i
    /// is what [`interleaved`] says. The converse of `Every`.
    Interleave {
        dst: ValId,
        parts: Vec<ValId>,
        part: u32,
    },
    /// Combines the lanes by halving.
    Reduce {
        dst: ValId,
        op: ScalarOp,
        vector: ValId,
    },
    /// Whether every lane of a mask is on.
    All {
        dst: ValId,
        vector: ValId,
    },
    For {
        axis: AxisId,
        lo: Ix,
        hi: Ix,
        step: Ix,
        /// How often the C compiler is told to unroll; 0 leaves it to decide.
        unroll: u32,
        body: Vec<Stmt>,
    },
    Loop {
        body: Vec<Stmt>,
    },
    Break,
    Continue,
    /// Goes on to the next block.
    Return,
    If {
        mask: Mask,
        then: Vec<Stmt>,
        els: Vec<Stmt>,
    },
    Rmw {
        dst: ValId,
        op: RmwOp,
        place: Address,
        value: Opnd,
        mask: Mask,
        order: Order,
    },
    Cas {
        dst: ValId,
        place: Address,
        cmp: Opnd,
        value: Opnd,
        mask: Mask,
        order: Order,
    },
    /// Waits for all threads of the block; what they wrote before is seen behind it.
    Barrier,
    /// The same of all threads of the cluster.
    ClusterBarrier,
    /// The same of the lanes of a warp.
    SyncWarp,
    /// What another lane of the warp has in `value`; all 32 lanes take part.
    Shuffle {
        dst: ValId,
        kind: Shuffle,
        value: ValId,
        by: Opnd,
    },
    /// Words of matrices of 8 rows of 16 bytes in shared memory, as many as the value has elements. Lane `8*i + r` gives the
    /// place of row r of matrix i. Of each matrix, lane l gets the word `l%4` of row `l/4`; what a transposed one gives says
    /// [`Transposed`].
    LoadMatrix {
        dst: ValId,
        place: Address,
        transposed: Transposed,
    },
    /// Adds the product of a 16 x k and a k x 8 matrix to a 16 x 8 matrix; k is [`Operand::terms`]. Lane l has the elements
    /// `l%4*2` and the next of row `l/4` at the first place, so many elements apart, and of row `l/4 + 8` at the second. `a` is four words of each lane
    /// and `b` two, as [`Stmt::LoadMatrix`] gives them: of `a` the left halves of the rows 0 to 7 and 8 to 15, then the right ones,
    /// where a half has 16 bytes; of `b` the upper half and the lower one, by columns.
    ///
    /// Here terms are added one after the other, each sum rounded. A GPU adds in another order, and may cut off instead.
    Mma {
        acc: [Address; 2],
        apart: u32,
        a: ValId,
        b: ValId,
        of: [Operand; 2],
    },
    /// Fills one of a processor's eight tiles, which have 16 rows of 16 words of four bytes, with rows so many elements apart.
    TileLoad {
        tile: u32,
        place: Address,
        by: Ix,
    },
    TileStore {
        tile: u32,
        place: Address,
        by: Ix,
    },
    /// Adds the product of two tiles to a third one's 16 x 16 sums: word k of row i of `a` by word j of row k of `b`, for all k in
    /// order, as `dot2f` or `dot4` multiply words.
    TileDot {
        of: TileTerms,
        sums: u32,
        a: u32,
        b: u32,
    },
    /// Begins to add the product of a 64 x k and a k x n matrix to a 64 x n matrix; k is [`Operand::terms`], and n follows from
    /// the array, of which each of 128 threads has n/2 elements: thread t of them has rows `t//32*16 + t%32//4` and eight
    /// below it, one behind the other, and of each row the columns `j*8 + t%4*2` and the next for all j. The panels are read,
    /// and the array is changed, at any time until a wait covers the product.
    Wgmma {
        acc: BufId,
        a: Panel,
        b: Panel,
        of: Operand,
    },
    /// Makes a group of the products that the warp has begun since the last one.
    WgmmaCommit,
    /// Waits until at most so many groups of products are in flight, the newest; the array may be used behind it.
    WgmmaWait {
        left: u32,
        acc: BufId,
    },
    /// Begins to copy 4, 8 or 16 bytes from global to shared memory; where the mask does not hold, zeros are written and
    /// nothing is read. The bytes are there when the thread has waited for their group, and for others behind a barrier
    /// that follows.
    CopyAsync {
        to: Address,
        from: Address,
        bytes: u32,
        mask: Mask,
    },
    /// Makes a group of the copies that the thread has begun since the last one.
    Commit,
    /// Waits until at most so many groups of the thread are in flight, the newest.
    WaitGroups {
        left: u32,
    },
    /// Begins to copy the box of a tensor whose first element is at `from` to a shared slot. Its bytes count on an mbarrier
    /// as they land; what lies outside of the tensor is 0.
    CopyTensor {
        to: Address,
        tensor: TensorId,
        from: Vec<Ix>,
        on: Address,
        /// To every block of the cluster, whose own mbarrier counts what it gets.
        all: bool,
    },
    /// Begins to copy a shared slot from `from` on to the box of a tensor whose first element is at `to`; what lies outside of
    /// the tensor is left out. Shared memory is read at any time until a wait covers the copy; when global memory has what
    /// was copied, nothing in the kernel can know.
    StoreTensor {
        tensor: TensorId,
        to: Vec<Ix>,
        from: Address,
    },
    /// Makes a group of the boxes that the thread has begun to store since the last one.
    StoreCommit,
    /// Waits until at most so many of these groups of the thread still read shared memory, the newest.
    StoreWait {
        left: u32,
    },
    /// Makes an mbarrier, whose phases each end after so many arrivals and when the bytes that they expect have come.
    InitBarrier {
        on: Address,
        count: u32,
    },
    /// Arrives; before that, bytes are added to those that the phase expects.
    Arrive {
        on: Address,
        bytes: Option<u32>,
        /// The block of the cluster whose mbarrier it is; `None` is the thread's own.
        of: Option<u32>,
    },
    /// Waits until a phase of this parity has ended: phases are numbered from 0, and the one before the first has ended.
    WaitPhase {
        on: Address,
        parity: Ix,
    },
    Fence(Fence),
    /// Gives each thread of the warpgroup so many registers from here on: a multiple of 8 from 24 to 256. Where it is more than
    /// before, the warpgroup waits until others have given up as many. The values are those of before.
    Registers {
        count: u32,
        more: bool,
    },
    /// Leaves the kernel when the run is to stop.
    Poll,
    /// Lets other blocks run.
    Yield {
        site: SiteId,
    },
    /// What `num::printf` makes of the format and the arguments.
    Print {
        format: Quoted,
        args: Vec<PrintArg>,
        site: SiteId,
    },
    /// Traps with the message where the condition does not hold.
    Assert {
        cond: Opnd,
        message: Quoted,
        element: Option<Ix>,
        site: SiteId,
    },
    /// Traps unless `count` elements from the place lie in a live region; `param` when the address is that parameter's.
    Check {
        place: Address,
        count: u32,
        mask: Mask,
        write: bool,
        param: Option<u32>,
        element: Option<Ix>,
        site: SiteId,
    },
    /// The address of a global, by its place in `Kernel::globals`.
    GlobalAddr {
        dst: ValId,
        global: u32,
    },
    /// The address of scratch memory at a byte offset.
    Scratch {
        dst: ValId,
        offset: Ix,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// What the user calls it, for people; in source it is a number.
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
    /// Blocks of a cluster, side by side along x; 1 where there are none.
    pub cluster: u32,
    /// Bytes of scratch for each worker, or each thread of a GPU.
    pub scratch: u64,
    /// Bytes of shared memory for each block.
    pub shared: u64,
    /// What the user wrote that values, axes, slots and stores were made for; not part of the printed IR.
    pub sources: Sources,
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
            cluster: 1,
            scratch: 0,
            shared: 0,
            sources: Sources::default(),
            body: vec![],
        }
    }
}

impl Kernel {
    /// Mbarriers, those of all slots.
    pub fn mbarriers(&self) -> u64 {
        self.slots.values().filter(|s| s.space == Space::Mbarrier).fold(0, |n, s| n.saturating_add(s.len))
    }

    /// The number of a slot's first mbarrier among all of them.
    pub fn first_mbarrier(&self, buf: BufId) -> u64 {
        let before = self.slots.iter().filter(|(id, s)| s.space == Space::Mbarrier && *id < buf);
        before.fold(0, |n, (_, s)| n.saturating_add(s.len))
    }

    /// Bytes from the shared memory of a block to that of the next one of its cluster, as they are counted here: both begin at a
    /// multiple of what boxes and panels do.
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
