//! Blocks as resumable states, and the turns of their warps.

use std::cell::Cell;
use std::rc::Rc;

use super::code::Program;
use super::flight::Flights;
use super::mbarrier::Mbarrier;
use super::schedule::Schedule;
use super::stall::{Counted, Looks};
use super::store::Stores;
use super::tcgen05::{Loads, TensorMemory};
use super::tensor;
use super::watch::Watch;
use super::wgmma::Products;
use super::{POISON, ops};
use crate::base::budget::TooMuch;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::Memory;
use crate::base::{Budget, Code, Frames};
use crate::kernel::ir::*;
use crate::loops;
use crate::loops::eval::access;
use crate::loops::eval::blocks::{self, Blocks, Pause, SLICE};

/// A run: the program, its kernels and the launch.
pub(in crate::kernel) struct Run<'a> {
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    /// The placed kernel that the kernel was made from, for its sites.
    pub placed: &'a loops::ir::Kernel,
    pub launch: &'a Launch,
    /// Blocks that are under way at once at most; `None`: all may be.
    pub resident: Option<u64>,
}

/// Lanes of a warp that stand at the same instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Group {
    pub at: u32,
    pub lanes: u32,
    /// The reason why they wait at a barrier.
    pub waits: Option<Wait>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    Warp,
    Block,
    /// For the first threads of the block: their number.
    First(u32),
    Cluster,
    /// For a phase of an mbarrier to end.
    Phase(u32),
    /// For this number of registers per thread.
    Registers(u32),
}

pub(super) struct Warp<const W: usize> {
    /// The slots of each lane.
    pub regs: Vec<[u64; W]>,
    pub groups: Vec<Group>,
    pub flights: Flights<W>,
    pub products: Products<W>,
    pub loads: Loads<W>,
    /// The registers of each of its threads.
    pub registers: u32,
    /// The lanes that began, and those that have not ended.
    pub began: u32,
    pub live: u32,
}

/// One block of a cluster: its threads that have not ended, and the threads among them that wait for each other.
#[derive(Clone, Copy, Default)]
pub(super) struct Member {
    pub live: u32,
    pub waiting: u32,
    /// Registers that no warp has.
    pub registers: u32,
}

/// One block or one cluster under way. The blocks of a cluster have their warps, their bytes of shared memory and their
/// mbarriers one behind the other.
pub(super) struct Block<const W: usize, L> {
    /// The id of the first block of a cluster.
    pub id: [u32; 3],
    pub members: Vec<Member>,
    pub warps: Vec<Warp<W>>,
    pub scratch: Vec<u8>,
    pub shared: Vec<u8>,
    pub mbarriers: Vec<Mbarrier>,
    /// Copies of boxes that have not landed yet.
    pub boxes: Vec<tensor::Flight>,
    pub stores: Stores,
    /// The tensor memory of each block of a cluster.
    pub tensor: Vec<TensorMemory>,
    /// The address of its scratch in memory, if the kernel asks for it.
    pub address: u64,
    /// The same of its shared memory.
    pub shared_address: u64,
    pub out: String,
    pub local: L,
    /// Threads that have not ended, and those of them that wait for the cluster.
    pub live: u32,
    pub waiting: u32,
    /// The warp that ran last.
    last: usize,
}

/// How a group goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    Go,
    /// It may be waiting for another block.
    GaveWay,
    /// It waits at a barrier, or has ended.
    Stopped,
}

pub(super) struct Machine<'a, const W: usize, V: Watch> {
    pub program: &'a Program,
    pub placed: &'a loops::ir::Kernel,
    pub memory: &'a mut dyn Memory,
    pub watch: &'a mut V,
    pub schedule: Schedule,
    budget: Budget,
    /// Blocks of a cluster, or single ones, that may be under way at once.
    most: usize,
    /// The number of changes of memory, and the observations of blocks that do not end.
    pub(super) changes: Rc<Cell<u64>>,
    pub(super) looks: Looks,
    /// The slots of a warp that begins: arguments, the grid, globals and constants.
    slots: Vec<[u64; W]>,
}

/// Runs every block of the launch, or its `only_block`, in warps of `W` lanes.
pub(in crate::kernel) fn run<const W: usize, V: Watch>(
    run: Run<'_>,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
    watch: &mut V,
    schedule: Schedule,
) -> Result<(), Trap> {
    let Run { program, kernel, placed, launch, resident } = run;
    let [across, y, z] = launch.grid;
    if across % program.cluster != 0 {
        let message =
            format!("a grid of {across} blocks along x is not made of clusters of {} blocks", program.cluster);
        return Err(Trap::new(Code::BadGrid, message));
    }
    let mut budget = launch.budget.clone();
    if let Err(why) = budget.take((program.slots as u64).checked_mul(8 * W as u64)) {
        return Err(Trap::new(Code::OutOfMemory, format!("a block cannot be evaluated: {why}")));
    }
    let mut slots = vec![[0; W]; program.slots];
    for ((slot, mask), arg) in program.params.iter().zip(&launch.args) {
        slots[*slot as usize] = [arg & mask; W];
    }
    for (i, g) in launch.grid.iter().enumerate() {
        slots[program.first_block as usize + 3 + i] = [u64::from(*g); W];
    }
    for (i, global) in kernel.globals.iter().enumerate() {
        let placed = launch.globals.get(i).map_or_else(|| access::place_global(&global.array, memory), |at| Ok(*at));
        let address = placed.map_err(|_| {
            let message = format!("the global `{}` could not be placed in memory", global.name);
            Trap::new(Code::OutOfBounds, message)
        })?;
        slots[program.first_global as usize + i] = [address; W];
    }
    for own in &program.own {
        let (first, len) = (own.first as usize, own.len as usize);
        slots[first..first + len].fill([own.begins; W]);
    }
    for (i, bits) in program.consts.iter().enumerate() {
        slots[program.first_const as usize + i] = [*bits; W];
    }
    let most =
        resident.map_or(usize::MAX, |n| usize::try_from(n / u64::from(program.cluster.max(1))).unwrap_or(usize::MAX));
    let (mut memory, changes) = Counted::new(memory, program.cooperative);
    let (memory, looks) = (&mut memory, Looks::default());
    let mut machine =
        Machine::<W, V> { program, placed, memory, watch, schedule, budget, most: most.max(1), changes, looks, slots };
    // A cluster runs as one.
    let only = launch.only_block.map(|[x, y, z]| [x / program.cluster, y, z]);
    let launch = Launch { grid: [across / program.cluster, y, z], only_block: only, ..launch.clone() };
    blocks::run(&mut machine, &launch, host)
}

impl<const W: usize, V: Watch> Blocks for Machine<'_, W, V> {
    type Block = Block<W, V::Local>;

    fn cooperative(&self) -> bool {
        self.program.cooperative
    }

    fn most(&self) -> usize {
        self.most
    }

    fn goes_round(&mut self, live: &[Self::Block]) -> bool {
        Machine::goes_round(self, live)
    }

    fn stalled(&mut self, live: &[Self::Block], left: u64) -> Trap {
        Machine::stalled(self, live, left)
    }

    fn room(&mut self) -> Result<Self::Block, TooMuch> {
        self.budget.take(self.program.bytes(W as u32))?;
        let cluster = self.program.cluster;
        let threads = self.program.threads.next_multiple_of(W as u32) * cluster;
        let scratch = self.program.scratch_bytes.saturating_mul(u64::from(threads));
        // Both are one stretch of memory.
        let bytes = self.program.addressed_bytes(scratch);
        let address = if bytes > 0 { self.memory.allocate(bytes, 128) } else { 0 };
        let shared_address = address + if self.program.addressed { scratch.next_multiple_of(128) } else { 0 };
        let warp = || Warp {
            regs: vec![],
            groups: vec![],
            flights: Flights::none(),
            products: Products::none(),
            loads: Loads::none(),
            registers: 0,
            began: 0,
            live: 0,
        };
        Ok(Block {
            id: [0; 3],
            members: vec![Member::default(); cluster as usize],
            warps: (0..threads / W as u32).map(|_| warp()).collect(),
            scratch: vec![POISON; scratch as usize],
            shared: vec![POISON; self.program.shared_bytes as usize * cluster as usize],
            mbarriers: vec![Mbarrier::default(); (self.program.mbarriers * cluster) as usize],
            boxes: vec![],
            stores: Stores::default(),
            tensor: (0..cluster).map(|_| TensorMemory::none()).collect(),
            address,
            shared_address,
            out: String::new(),
            local: V::Local::default(),
            live: 0,
            waiting: 0,
            last: 0,
        })
    }

    fn begin(&mut self, block: &mut Self::Block, id: [u32; 3]) -> Result<(), Trap> {
        let p = self.program;
        let id = [id[0] * p.cluster, id[1], id[2]];
        (block.id, block.waiting, block.live) = (id, 0, p.threads * p.cluster);
        block.members.fill(Member { live: p.threads, waiting: 0, registers: 0 });
        block.last = block.warps.len().saturating_sub(1);
        block.scratch.fill(POISON);
        for own in block.scratch.chunks_mut(p.scratch_bytes.max(1) as usize) {
            for bytes in &p.zeroed {
                if let Some(bytes) = own.get_mut(bytes.clone()) {
                    bytes.fill(0);
                }
            }
        }
        block.shared.fill(POISON);
        block.mbarriers.fill(Mbarrier::default());
        block.boxes.clear();
        block.stores.clear();
        block.tensor.iter_mut().for_each(|memory| *memory = TensorMemory::none());
        for (w, warp) in block.warps.iter_mut().enumerate() {
            let (member, first) = (w / p.warps(W), (w % p.warps(W) * W) as u32);
            warp.began = ops::all::<W>() >> (W as u32 - (p.threads - first).min(W as u32));
            warp.live = warp.began;
            warp.flights = Flights::none();
            warp.products = Products::none();
            warp.loads = Loads::none();
            warp.registers = p.registers;
            warp.groups.clear();
            warp.groups.push(Group { at: 0, lanes: warp.began, waits: None });
            warp.regs.clear();
            warp.regs.extend_from_slice(&self.slots);
            for (i, b) in [id[0] + member as u32, id[1], id[2]].iter().enumerate() {
                warp.regs[p.first_block as usize + i] = [u64::from(*b); W];
            }
            warp.regs[p.thread as usize] = std::array::from_fn(|l| u64::from(first) + l as u64);
            let of_cluster = |l: usize| (w * W + l) as u64;
            warp.regs[p.scratch as usize] =
                std::array::from_fn(|l| block.address.wrapping_add(of_cluster(l) * p.scratch_bytes));
        }
        let bytes = p.addressed_bytes(block.scratch.len() as u64);
        let own = (bytes > 0).then_some((block.address, bytes));
        if bytes > 0 && self.memory.write(block.address, &vec![POISON; bytes as usize]).is_err() {
            return Err(self.broken(id, "the block's own memory is not in memory"));
        }
        self.watch.begin(&mut block.local, id, block.warps.len() as u32, own);
        Ok(())
    }

    fn slice(&mut self, block: &mut Self::Block) -> Result<Pause, Trap> {
        let mut left = SLICE;
        // Turns that ended because the group may be waiting for another block.
        let mut gave_way = 0;
        while left > 0 {
            if block.live == 0 {
                return Ok(Pause::Ended);
            }
            let ready = |w: usize| block.warps[w].groups.iter().any(|g| g.waits.is_none());
            let Some((warp, turn)) = self.schedule.turn(block.last, block.warps.len(), ready) else {
                if self.land_late(block) || self.commit_late(block) {
                    continue;
                }
                return Err(self.stuck(block));
            };
            block.last = warp;
            let turn = turn.min(left);
            self.part(&mut block.warps[warp]);
            for _ in 0..turn {
                left -= 1;
                let group = match &block.warps[warp].groups[..] {
                    [one] => one.waits.is_none().then_some(0),
                    several => {
                        let ready = several.iter().enumerate().filter(|(_, g)| g.waits.is_none());
                        self.schedule.group(&ready.map(|(n, g)| (n, g.at)).collect::<Vec<_>>())
                    }
                };
                let Some(group) = group else { break };
                let flow = self.step(block, warp, group)?;
                if block.warps[warp].groups.len() > 1 {
                    join(&mut block.warps[warp].groups);
                }
                if flow == Flow::GaveWay {
                    gave_way += 1;
                    break;
                }
                if flow == Flow::Stopped && block.live == 0 {
                    break;
                }
            }
            if gave_way >= block.warps.len() {
                return Ok(if block.live == 0 { Pause::Ended } else { Pause::GaveWay });
            }
        }
        while self.land_late(block) || self.commit_late(block) {}
        Ok(if block.live == 0 { Pause::Ended } else { Pause::GaveWay })
    }

    fn id(block: &Self::Block) -> [u32; 3] {
        block.id
    }

    fn printed(block: &mut Self::Block) -> String {
        std::mem::take(&mut block.out)
    }
}

/// Lanes that stand at the same instruction are one group.
pub(super) fn join(groups: &mut Vec<Group>) {
    let mut n = 1;
    while n < groups.len() {
        let group = groups[n];
        match groups[..n].iter_mut().find(|g| (g.at, g.waits) == (group.at, group.waits)) {
            Some(same) => {
                same.lanes |= group.lanes;
                groups.remove(n);
            }
            None => n += 1,
        }
    }
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    pub(super) fn trap(&self, block: [u32; 3], code: Code, site: Option<SiteId>, message: String) -> Trap {
        trap(self.placed, block, code, site, message)
    }

    pub(super) fn broken(&self, block: [u32; 3], what: &str) -> Trap {
        self.trap(block, Code::InvalidIr, None, format!("a bug in the compiler: {what}"))
    }

    /// Lanes that run alone for a while, where the schedule draws some.
    fn part(&mut self, warp: &mut Warp<W>) {
        let Some(group) = warp.groups.iter_mut().find(|g| g.waits.is_none()) else { return };
        let away = self.schedule.part(group.lanes);
        if away != 0 && away != group.lanes {
            let other = Group { lanes: away, ..*group };
            group.lanes &= !away;
            warp.groups.push(other);
        }
    }
}

/// A trap of a block, at the source of a site.
pub(super) fn trap(
    placed: &loops::ir::Kernel,
    block: [u32; 3],
    code: Code,
    site: Option<SiteId>,
    message: String,
) -> Trap {
    let site = site.and_then(|s| placed.sites.get(s));
    Trap {
        span: site.and_then(|s| s.span),
        op: site.map_or(String::new(), |s| s.op.clone()),
        block,
        frames: Box::new(site.map_or_else(Frames::default, |s| s.frames.clone())),
        ..Trap::new(code, message)
    }
}
