//! Observers of a running kernel: that of the evaluator of one thread sees nothing and stops at the first error; that
//! of the simulator counts, keeps a shadow of memory, and goes on.

use crate::base::launch::Trap;
pub(in crate::kernel) use crate::base::memory::Fault;
use crate::kernel::ir::{BufId, Order, Space};

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::kernel) enum What {
    Read,
    Write,
    /// An atomic; a compare-and-swap that fails only reads.
    Update,
}

/// An access of the lanes of a group to shared memory, or to global memory (`shared` is false).
pub(in crate::kernel) struct Touch<'a> {
    pub statement: u32,
    pub warp: u32,
    /// The lanes that touch memory, and those of them that write.
    pub lanes: u32,
    pub wrote: u32,
    pub shared: bool,
    pub what: What,
    pub order: Order,
    /// The access goes on until a wait covers it.
    pub lasts: bool,
    /// Bytes that each lane moves, and of one element.
    pub bytes: u32,
    pub elem: u32,
    /// By lane: bytes from the start of shared memory, or addresses.
    pub address: &'a [u64],
    /// The lanes that touch the upper element, where two elements share a byte.
    pub upper: Option<u32>,
}

/// Copies of the lanes of a group that a wait has covered.
pub(in crate::kernel) struct Landing<'a> {
    /// The statement of the copy.
    pub statement: u32,
    pub warp: u32,
    /// The lanes that wrote shared memory, and those of them that read global memory.
    pub lanes: u32,
    pub read: u32,
    pub bytes: u32,
    /// By lane: bytes from the start of shared memory, and addresses.
    pub to: &'a [u64],
    pub from: &'a [u64],
}

/// Bytes of a box that lie side by side in global memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Run {
    /// From the start of the box, as if no pieces were exchanged.
    pub to: u64,
    /// Their address.
    pub from: u64,
    pub bytes: u64,
}

/// A box of a tensor that TMA copies to shared memory, or from there.
pub(in crate::kernel) struct Boxed<'a> {
    pub statement: u32,
    pub thread: u32,
    /// The number of the mbarrier that counts its bytes; `None` of a box that goes to global memory.
    pub mbarrier: Option<u32>,
    /// The byte of shared memory where it begins.
    pub at: u64,
    pub bytes: u64,
    /// Bytes of an element.
    pub elem: u32,
    pub runs: &'a [Run],
}

/// An access of tensor memory, or its end.
pub(in crate::kernel) struct Columns<'a> {
    pub statement: u32,
    pub block: [u32; 3],
    pub thread: u32,
    /// The number of the block in its cluster.
    pub member: u32,
    pub first: u32,
    pub count: u32,
    /// Which of the four parts of 32 lanes.
    pub quarters: std::ops::Range<u32>,
    pub what: InTensor<'a>,
}

/// An event of columns of tensor memory. Bytes are the pieces of shared memory that hold both operands of a product.
#[derive(Clone, Copy)]
pub(in crate::kernel) enum InTensor<'a> {
    /// A product begins, whose operands have elements of `elem` bytes.
    Adds {
        bytes: [&'a [u64]; 2],
        piece: u64,
        elem: u32,
    },
    /// It has ended in a phase of the mbarrier that counts a commit; `later`: another one goes on there.
    Ends {
        number: u32,
        phase: u32,
        bytes: [&'a [u64]; 2],
        piece: u64,
        later: bool,
    },
    /// The thread commits, and a commit of it arrives at an mbarrier in one of its phases: commits of a thread in order.
    Commits,
    Arrives {
        number: u32,
        phase: u32,
    },
    /// A warp begins to load, and knows that it has.
    Loads,
    Loaded,
    /// A warp allocates, or gives back.
    Takes,
    Frees,
}

/// An action of lanes that orders accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::kernel) enum Sync {
    /// Makes the lanes' writes to shared memory visible to asynchronous copies.
    Fence,
    /// Makes the global memory that the lanes know of visible to asynchronous copies.
    FenceGlobal,
    Init {
        number: u32,
    },
    Arrive {
        number: u32,
    },
    /// A phase has ended; `phase` is the number of phases that have ended.
    Ended {
        number: u32,
        phase: u32,
    },
    /// They have waited for the phases so far.
    Passed {
        number: u32,
    },
    /// Makes what the lanes did in tensor memory visible to threads that they meet, and what others did to the lanes.
    BeforeMeeting,
    AfterMeeting,
}

/// An error in the use of an mbarrier, given by its number, or of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::kernel) enum Wrong {
    /// It is used before it is initialised, or where the thread cannot know that it is.
    Uninitialised { number: u32 },
    /// No fence shows to asynchronous copies that it is initialised.
    Unfenced { number: u32 },
    /// It is initialised a second time.
    Again { number: u32 },
    /// More arrivals come than the mbarrier counts.
    Arrivals { number: u32, count: u32 },
    /// A phase ended that expected a number of bytes other than the copies bring.
    Bytes { number: u32, expected: u64, brought: u64 },
    /// A thread waits for a phase, but the next phase has ended too.
    Aliased { number: u32, phase: u32, meant: u32 },
    /// The mbarrier is used from another block of the cluster after its own block has ended.
    Gone { number: u32 },
    /// A constraint of TMA or `wgmma` that is violated, in a sentence.
    Tensor(String),
    /// A product of a warpgroup begins before a fence shows it the thread's registers.
    Registers,
    /// A thread touches an array that a product of a warpgroup still adds to.
    Sums,
    /// A thread touches an array whose words a product of a warpgroup still reads.
    Words,
    /// A thread touches an array that a load of tensor memory still fills.
    Loads,
    /// A rule of tensor memory that is violated, in a sentence.
    TensorMemory(&'static str),
    /// `registers more` asks for fewer registers than a thread has, or `registers fewer` for more.
    Change { count: u32, more: bool, has: u32 },
    /// A block ends without a wait for an operation that touches its shared memory.
    Left(Left),
}

/// An operation that goes on while threads do other work, until they wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::kernel) enum Left {
    /// `copy async`.
    Copy,
    /// A box of TMA on its way into shared memory, and out of it.
    Box,
    Store,
    /// A product of a warpgroup.
    Product,
    /// A product with sums in tensor memory.
    Tcgen05,
    /// Columns of tensor memory that are allocated.
    Columns,
}

/// The arrivals and bytes that a phase of an mbarrier still lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::kernel) struct Missing {
    pub number: u32,
    pub phase: u32,
    pub count: u32,
    pub arrivals: u32,
    pub bytes: i64,
}

/// The event that threads wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::kernel) enum Lacks {
    Phase(Missing),
    /// A thread with `has` registers asks for `asks`; `free` registers of the block belong to no warp, and threads
    /// began with `first` each.
    Registers {
        asks: u32,
        has: u32,
        free: u32,
        first: u32,
        threads: u32,
    },
}

/// An access that touches nothing, because its place is outside.
pub(in crate::kernel) struct Outside {
    pub block: [u32; 3],
    pub statement: u32,
    pub thread: u32,
    pub what: What,
    pub place: Place,
}

pub(in crate::kernel) enum Place {
    /// Elements of a slot, from the index on.
    Slot { buf: BufId, space: Space, index: i64, count: u32 },
    /// Bytes that no region holds, and the regions near them.
    Memory { fault: Fault, near: String },
}

/// The threads that meet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::kernel) enum Scope {
    Cluster,
    /// A block, by its number in its cluster.
    Block(u32),
    /// The first threads of a block: its number, and how many.
    First(u32, u32),
    Warp(u32),
}

/// Threads that wait at a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::kernel) struct Standing {
    pub statement: u32,
    pub threads: Vec<u32>,
    /// The missing event, if the threads do not wait for each other.
    pub lacks: Option<Lacks>,
}

/// Blocks that go round for ever.
pub(in crate::kernel) struct Stalled {
    /// The first of them, and the place of one of its threads.
    pub block: [u32; 3],
    pub statement: u32,
    pub thread: u32,
    /// How many there are, and how many have not begun.
    pub resident: u64,
    pub left: u64,
}

/// Threads that met although they should not: they wait at different statements, or some have ended.
pub(in crate::kernel) struct Meeting {
    pub block: [u32; 3],
    pub scope: Scope,
    pub standing: Vec<Standing>,
    pub ended: Vec<u32>,
}

pub(in crate::kernel) trait Watch {
    /// The data that is kept for a block under way.
    type Local: Default;
    /// Returns true if [`Watch::touched`] is to be called.
    fn wants_touches(&self) -> bool;
    /// A block, or a cluster, of `warps` warps begins; `own` is the address range of its own memory, if it has one.
    fn begin(&mut self, local: &mut Self::Local, block: [u32; 3], warps: u32, own: Option<(u64, u64)>);
    /// `lanes` lanes of a warp run a statement; an error ends the run.
    fn ran(&mut self, block: [u32; 3], warp: u32, statement: u32, lanes: u32) -> Result<(), Trap>;
    fn touched(&mut self, local: &mut Self::Local, touch: &Touch<'_>);
    /// Copies have ended, for the thread that waited.
    fn landed(&mut self, local: &mut Self::Local, landing: &Landing<'_>);
    /// A copy of a box begins, or it lands in a phase of its mbarrier; one to global memory has read shared memory then.
    fn boxed(&mut self, local: &mut Self::Local, boxed: &Boxed<'_>, landed: Option<u32>);
    fn in_tensor(&mut self, local: &mut Self::Local, columns: Columns<'_>);
    fn sync(&mut self, local: &mut Self::Local, statement: u32, warp: u32, lanes: u32, sync: Sync);
    /// Returns true if a thread can know that an mbarrier is initialised.
    fn sees(&self, local: &Self::Local, thread: u32, mbarrier: u32) -> bool;
    fn wrong(&mut self, block: [u32; 3], statement: u32, thread: u32, wrong: Wrong);
    /// An access would be outside: `Ok` leaves it out.
    fn outside(&mut self, outside: Outside, trap: impl FnOnce() -> Trap) -> Result<(), Trap>;
    /// All threads of a block, or all lanes of a warp, have waited for each other; `ordered` if that orders their
    /// accesses of memory.
    fn met(&mut self, local: &mut Self::Local, scope: Scope, ordered: bool);
    fn uneven(&mut self, meeting: Meeting);
    /// No thread of a block can run.
    fn stuck(&mut self, block: [u32; 3], standing: Vec<Standing>);
    fn stalled(&mut self, stalled: Stalled);
}

/// Observes nothing; an error ends the run.
pub(in crate::kernel) struct Quiet;

impl Watch for Quiet {
    type Local = ();
    fn wants_touches(&self) -> bool {
        false
    }
    fn begin(&mut self, _: &mut (), _: [u32; 3], _: u32, _: Option<(u64, u64)>) {}
    fn ran(&mut self, _: [u32; 3], _: u32, _: u32, _: u32) -> Result<(), Trap> {
        Ok(())
    }
    fn touched(&mut self, _: &mut (), _: &Touch<'_>) {}
    fn landed(&mut self, _: &mut (), _: &Landing<'_>) {}
    fn boxed(&mut self, _: &mut (), _: &Boxed<'_>, _: Option<u32>) {}
    fn in_tensor(&mut self, _: &mut (), _: Columns<'_>) {}
    fn sync(&mut self, _: &mut (), _: u32, _: u32, _: u32, _: Sync) {}
    fn sees(&self, _: &(), _: u32, _: u32) -> bool {
        true
    }
    fn wrong(&mut self, _: [u32; 3], _: u32, _: u32, _: Wrong) {}
    fn outside(&mut self, _: Outside, trap: impl FnOnce() -> Trap) -> Result<(), Trap> {
        Err(trap())
    }
    fn met(&mut self, _: &mut (), _: Scope, _: bool) {}
    fn uneven(&mut self, _: Meeting) {}
    fn stuck(&mut self, _: [u32; 3], _: Vec<Standing>) {}
    fn stalled(&mut self, _: Stalled) {}
}
