//! The compact form: instructions over slots.
//!
//! The slots hold, one after the other, the elements of the kernel's values (bits, zero-extended), its axes, the block id
//! and the grid, the thread, the address of the scratch, the addresses of globals, hidden numbers of loops, small arrays of
//! a GPU's threads, and constants.
//! Each thread has its own; those of a warp lie side by side.

use std::collections::BTreeSet;

use super::tcgen05::MmaCode;
use super::tensor::TensorCode;
use crate::kernel::ir::*;
use crate::loops::eval::expr::{Expr, MaskCode, Slot};
use crate::num::{DType, ScalarOp};

/// An operand: lane `l` lies in slot `first + l*stride`.
#[derive(Clone, Copy)]
pub(in crate::kernel) struct Arg {
    pub first: Slot,
    /// 0 where all lanes are one number.
    pub stride: u32,
}

impl Arg {
    pub(in crate::kernel) fn lane(self, lane: u32) -> usize {
        (self.first + lane * self.stride) as usize
    }
}

/// Where an access starts.
pub(in crate::kernel) enum At {
    Memory {
        base: Slot,
        index: Expr,
        elem: DType,
    },
    /// Elements of a slot, which starts at a byte of its space and holds `len`.
    Slot {
        buf: BufId,
        space: Space,
        offset: u64,
        len: u64,
        index: Expr,
        elem: DType,
        /// Another block of the cluster whose shared memory it is: its number, and where that begins.
        of: Option<(u32, u64)>,
    },
    /// Elements of an array whose elements are slots.
    Own {
        buf: BufId,
        first: Slot,
        len: u64,
        index: Expr,
        elem: DType,
    },
}

/// An array of a thread's own whose elements are slots.
pub(in crate::kernel) struct Own {
    pub first: Slot,
    pub len: u64,
    /// The value of every element when a block begins.
    pub begins: u64,
}

/// Where a panel begins, and how its elements lie from there on.
pub(in crate::kernel) struct PanelCode {
    pub access: Access,
    pub panel: Panel,
}

/// The left operand of a product of a warpgroup.
pub(in crate::kernel) enum LeftCode {
    Panel(PanelCode),
    Words(Access),
}

pub(in crate::kernel) struct Access {
    pub at: At,
    pub lanes: u32,
    pub mask: MaskCode,
    pub order: Order,
}

impl Access {
    pub fn ordered(&self) -> bool {
        self.order != Order::Weak
    }
}

pub(in crate::kernel) enum Shown {
    Scalar(Arg, Ty),
    /// Elements of a slot: space, byte offset, type, shape.
    Slot(Space, u64, Elem, Vec<u64>),
    /// Elements that are slots, from the first on: type, shape.
    Own(Slot, Elem, Vec<u64>),
}

/// A loop's counter and the hidden slots of its end and step.
#[derive(Clone, Copy)]
pub(in crate::kernel) struct Counter {
    pub axis: Slot,
    pub end: Slot,
    pub step: Slot,
}

pub(in crate::kernel) enum Inst {
    /// A copy, lane by lane.
    Copy {
        dst: Slot,
        from: Arg,
        lanes: u32,
    },
    Let {
        dst: Slot,
        op: ScalarOp,
        ty: DType,
        args: [Arg; 3],
        count: u8,
        lanes: u32,
    },
    /// Addresses plus elements: the index is sign-extended by `shift`.
    PtrAdd {
        dst: Slot,
        elem: DType,
        base: Arg,
        index: Arg,
        shift: u8,
        lanes: u32,
    },
    Ramp {
        dst: Slot,
        base: Expr,
        step: Expr,
        lanes: u32,
        mask: u64,
    },
    Index {
        dst: Slot,
        ix: Expr,
        mask: u64,
    },
    Test {
        dst: Slot,
        mask: MaskCode,
    },
    Load {
        dst: Slot,
        access: Access,
        other: Arg,
    },
    Store {
        access: Access,
        value: Arg,
    },
    Lane {
        dst: Slot,
        vector: Slot,
        lanes: u32,
        lane: Expr,
    },
    SetLane {
        vector: Slot,
        lanes: u32,
        lane: Expr,
        value: Arg,
    },
    Merge {
        dst: Slot,
        a: Slot,
        b: Slot,
        lanes: u32,
        width: u32,
        high: bool,
    },
    /// Lanes out of several vectors, each by its slot.
    Pick {
        dst: Slot,
        lanes: Vec<Slot>,
    },
    Reduce {
        dst: Slot,
        op: ScalarOp,
        ty: DType,
        vector: Slot,
        lanes: u32,
    },
    All {
        dst: Slot,
        vector: Slot,
        lanes: u32,
    },
    /// Sets the counter up; jumps to `exit` when there is no iteration.
    For {
        counter: Counter,
        lo: Expr,
        hi: Expr,
        step: Expr,
        exit: u32,
    },
    /// Counts on; jumps to `body` while iterations are left.
    Next {
        counter: Counter,
        body: u32,
    },
    Jump(u32),
    JumpUnless {
        mask: MaskCode,
        to: u32,
    },
    Return,
    Yield,
    Barrier,
    BarrierFirst {
        count: u32,
    },
    ClusterBarrier,
    SyncWarp,
    Shuffle {
        dst: Slot,
        kind: Shuffle,
        value: Slot,
        by: Arg,
    },
    /// The access is that of a row: 16 bytes.
    LoadMatrix {
        dst: Slot,
        access: Access,
        words: u32,
        transposed: Transposed,
    },
    Mma {
        acc: [Access; 2],
        apart: u32,
        a: Slot,
        b: Slot,
        of: [Operand; 2],
    },
    /// A product of a warpgroup: all elements of the array, and where panels begin.
    Wgmma {
        acc: Access,
        a: LeftCode,
        b: PanelCode,
        of: Operand,
    },
    WgmmaCommit,
    WgmmaWait {
        left: u32,
    },
    /// All lanes get the address of the columns.
    Tcgen05Alloc {
        dst: Slot,
        columns: u32,
    },
    Tcgen05Relinquish,
    Tcgen05Dealloc {
        at: Expr,
        columns: u32,
    },
    Tcgen05Mma(Box<MmaCode>),
    Tcgen05Commit {
        on: Access,
        first: u32,
    },
    /// All elements of the array.
    Tcgen05Load {
        acc: Access,
        at: Expr,
    },
    Tcgen05Wait {
        acc: BufId,
    },
    /// The mask is that of the source.
    CopyAsync {
        to: Access,
        from: Access,
        bytes: u32,
    },
    Commit,
    WaitGroups {
        left: u32,
    },
    /// A box of a tensor, given by its number, on an mbarrier of a slot. `first`: the number of the slot's first mbarrier.
    TmaLoad {
        to: Access,
        on: Access,
        first: u32,
        tensor: usize,
        from: Box<[Expr]>,
        all: bool,
    },
    /// A box of a tensor, the other way.
    TmaStore {
        from: Access,
        tensor: usize,
        to: Box<[Expr]>,
    },
    /// More or fewer registers for a warpgroup; values do not change.
    Registers {
        count: u32,
        more: bool,
    },
    StoreCommit,
    StoreWait {
        left: u32,
    },
    InitBarrier {
        on: Access,
        first: u32,
        count: u32,
    },
    Arrive {
        on: Access,
        first: u32,
        bytes: Option<u32>,
        of: Option<u32>,
    },
    WaitPhase {
        on: Access,
        first: u32,
        parity: Expr,
    },
    Fence(Fence),
    Rmw {
        dst: Slot,
        op: RmwOp,
        elem: DType,
        access: Access,
        value: Arg,
    },
    Cas {
        dst: Slot,
        access: Access,
        cmp: Arg,
        value: Arg,
    },
    Print {
        format: String,
        args: Box<[Shown]>,
        site: SiteId,
    },
    Assert {
        cond: Arg,
        message: String,
        element: Option<Expr>,
        site: SiteId,
    },
    Check {
        access: Access,
        write: bool,
        /// The slot of the parameter in whose region the access must lie.
        param: Option<Slot>,
        element: Option<Expr>,
        site: SiteId,
    },
    /// The address of the scratch at an offset.
    Scratch {
        dst: Slot,
        offset: Expr,
    },
    /// The address of the shared memory at an offset.
    SharedAddr {
        dst: Slot,
        offset: Expr,
    },
}

impl Program {
    /// The bytes of a cluster in memory, of its `scratch` bytes and of its shared memory: those whose addresses are taken.
    pub fn addressed_bytes(&self, scratch: u64) -> u64 {
        let scratch = if self.addressed { scratch.next_multiple_of(128) } else { 0 };
        let shared = if self.addressed_shared { self.shared_bytes * u64::from(self.cluster) } else { 0 };
        scratch.saturating_add(shared)
    }

    /// The bytes of a cluster's slots, scratch and shared memory, in warps of `lanes` lanes; `None` where that
    /// overflows.
    pub fn bytes(&self, lanes: u32) -> Option<u64> {
        let threads = u64::from(self.threads.checked_next_multiple_of(lanes)?);
        let of_thread = (self.slots as u64).checked_mul(8)?.checked_add(self.scratch_bytes)?;
        of_thread.checked_mul(threads)?.checked_add(self.shared_bytes)?.checked_mul(self.cluster.into())
    }

    /// The number of warps, of `lanes` lanes each, in one block of a cluster.
    pub fn warps(&self, lanes: usize) -> usize {
        (self.threads as usize).div_ceil(lanes)
    }
}

impl Inst {
    /// The access of an instruction that reads or writes memory; of a copy, that of global memory.
    pub fn access(&self) -> Option<&Access> {
        match self {
            Inst::Load { access, .. }
            | Inst::Store { access, .. }
            | Inst::Rmw { access, .. }
            | Inst::Cas { access, .. }
            | Inst::CopyAsync { from: access, .. } => Some(access),
            _ => None,
        }
    }
}

pub(in crate::kernel) struct Program {
    pub code: Vec<Inst>,
    /// The statement that each instruction belongs to, by its number in the text, or [`NO_STATEMENT`].
    pub statements: Vec<u32>,
    /// How many statements there are.
    pub count: u32,
    pub threads: u32,
    /// Registers of a thread when its block begins.
    pub registers: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Bytes of scratch of a thread, and of shared memory of a block of a cluster: [`Kernel::apart`].
    pub scratch_bytes: u64,
    /// The bytes of a thread's scratch that are 0 when a block begins.
    pub zeroed: Vec<std::ops::Range<usize>>,
    pub shared_bytes: u64,
    pub tensors: Vec<TensorCode>,
    /// How many mbarriers a block has.
    pub mbarriers: u32,
    /// True if the scratch has an address, so that it lies in memory too.
    pub addressed: bool,
    /// True if the shared memory has addresses too: behind the scratch in memory. Accesses by slot and by address never meet.
    pub addressed_shared: bool,
    pub slots: usize,
    /// The slots of the parameters, each with the mask of its type.
    pub params: Vec<(Slot, u64)>,
    pub first_block: Slot,
    pub thread: Slot,
    pub scratch: Slot,
    pub first_global: Slot,
    /// The arrays whose elements are slots.
    pub own: Vec<Own>,
    /// The arrays whose words products of warpgroups multiply.
    pub fragments: BTreeSet<BufId>,
    /// Constants, and the slot of the first.
    pub consts: Vec<u64>,
    pub first_const: Slot,
    /// Blocks may wait for each other.
    pub cooperative: bool,
}

/// The statement number of the return at the end of the code, and of jumps over an `else`.
pub(in crate::kernel) const NO_STATEMENT: u32 = u32::MAX;

/// The type of an element in a slot, where 4-bit elements have a byte each.
pub(in crate::kernel) fn in_slot(elem: Elem) -> DType {
    match elem.held() {
        narrow if narrow.bits() == 4 => DType::I8,
        wide => wide,
    }
}
