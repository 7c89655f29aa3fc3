//! The watch of a simulation: counts each statement, and compares each access with the shadow of memory.

mod in_tensor;

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use super::clock::{Clock, Known, Stamp};
use super::count::{Counts, SECTOR, Sectors, sectors};
use super::finding::{Bad, Found, Kind};
use super::recording::{Recorder, Request};
use super::shadow::{Cell, Pages};
use super::tensor_memory::TensorMemory;
use super::{Options, WARP};
use crate::base::Code;
use crate::base::banks::{BANK_BYTES, wavefronts};
use crate::base::launch::Trap;
use crate::kernel::ir::*;
use crate::kernel::machine::{
    At, Boxed, Columns, Landing, Meeting, NO_STATEMENT, Outside, Program, Scope, Stalled, Standing, Sync, Touch, Watch,
    What, Wrong,
};

pub(super) struct Observer<'a> {
    kernel: &'a Kernel,
    options: &'a Options,
    grid: [u32; 3],
    pub counts: Vec<Counts>,
    /// Meetings of a whole block.
    pub barriers: u64,
    pub blocks: u64,
    /// Sectors of global memory that any thread touched, 64 to a word.
    pub touched: Sectors,
    /// Sectors that blocks loaded, each block each of them once; and those that a block loaded again.
    pub loaded: u64,
    pub reloaded: u64,
    steps: u64,
    /// Steps at which the run ends because an access was out of bounds.
    patience: Option<u64>,
    /// Where the run was stopped for having taken too many steps.
    pub exhausted: Option<u32>,
    pub found: Found,
    pub global: Pages,
    /// The knowledge that was released at each address of global memory.
    released: FxHashMap<u64, Known>,
    /// The events on global memory that have been made visible to asynchronous copies.
    shown: Known,
    /// Half bytes of a place of shared memory and of global memory, as powers of two.
    shared_unit: u32,
    global_unit: u32,
    pub recorder: Option<Recorder>,
}

/// Statements of all threads that a run goes on for behind its first access out of bounds, to find what else is wrong.
const AFTER: u64 = 1 << 23;

/// The data that is kept for a block under way.
#[derive(Default)]
pub(super) struct Local {
    block: [u32; 3],
    clock: Clock,
    shared: Vec<Cell>,
    released: FxHashMap<u64, Known>,
    mbarriers: Vec<Mbarrier>,
    /// The events on shared memory that have been made visible to asynchronous copies.
    fenced: Known,
    tensor: TensorMemory,
    /// The threads that began the copies of a statement that count on an mbarrier.
    copied_by: FxHashMap<(u32, u32), u32>,
    /// The sectors that were loaded.
    loaded: Sectors,
}

/// The knowledge about an mbarrier.
#[derive(Clone, Default)]
struct Mbarrier {
    init: Option<Stamp>,
    /// The knowledge of the threads that arrived, in the current phase and in the phases that have ended.
    arrived: Known,
    ended: Known,
}

impl<'a> Observer<'a> {
    pub fn new(kernel: &'a Kernel, program: &Program, grid: [u32; 3], options: &'a Options) -> Observer<'a> {
        let shared = kernel.slots.values().filter(|s| s.is_shared());
        let shared_unit = shared.map(|s| (s.elem_bytes() | s.offset).trailing_zeros()).min().unwrap_or(0);
        let sizes = program.code.iter().filter_map(|inst| match &inst.access()?.at {
            At::Memory { elem, .. } if elem.bits() == 4 => Some(0),
            At::Memory { elem, .. } => Some(elem.bytes().trailing_zeros() + 1),
            At::Slot { .. } | At::Own { .. } => None,
        });
        let sizes = sizes.chain(kernel.tensors.values().map(|t| t.elem.bytes().trailing_zeros() + 1));
        Observer {
            kernel,
            options,
            grid,
            counts: vec![Counts::default(); program.count as usize],
            barriers: 0,
            blocks: 0,
            touched: Sectors::default(),
            loaded: 0,
            reloaded: 0,
            steps: 0,
            patience: None,
            exhausted: None,
            found: Found::default(),
            global: Pages::default(),
            released: FxHashMap::default(),
            shown: Known::default(),
            shared_unit: shared_unit + 1,
            global_unit: sizes.min().unwrap_or(1),
            recorder: options.record.then(|| Recorder::new(kernel)),
        }
    }

    fn count(&mut self, loaded: &mut Sectors, touch: &Touch<'_>) {
        let Some(counts) = self.counts.get_mut(touch.statement as usize) else { return };
        let bytes = u64::from(touch.bytes) * u64::from(touch.lanes.count_ones());
        match touch.shared {
            true => {
                let (taken, least) = wavefronts(touch.address, touch.lanes, touch.bytes);
                counts.shared.add(bytes, (taken, least));
                if let (Some(r), Ok(address)) = (&mut self.recorder, touch.address.try_into()) {
                    let Touch { lanes, bytes, .. } = *touch;
                    r.requested(touch.statement, Request { address, lanes, bytes, taken, least });
                }
            }
            false => {
                let (taken, least) = sectors(touch.address, touch.lanes, touch.bytes);
                counts.global.add(bytes, (taken, least));
                let lanes = touch.address.iter().enumerate().filter(|(l, _)| touch.lanes >> l & 1 == 1);
                lanes.clone().for_each(|(_, at)| _ = self.touched.add(*at, touch.bytes.into()));
                if touch.what == What::Read {
                    let new: u32 = lanes.map(|(_, at)| loaded.add(*at, touch.bytes.into())).sum();
                    self.loaded += u64::from(new);
                    self.reloaded += u64::from(taken.saturating_sub(new));
                }
            }
        }
    }

    fn aligned(&mut self, local: &Local, touch: &Touch<'_>) {
        let size = u64::from(touch.bytes.next_power_of_two());
        let off = |l: &u32| touch.lanes >> l & 1 == 1 && touch.address[*l as usize] & (size - 1) != 0;
        for lane in (0..WARP).filter(off) {
            self.found.access(Kind::Misaligned, bad(local, touch, lane), None);
        }
    }

    /// Compares the access of each lane with what was done to its places before.
    fn compare(&mut self, local: &mut Local, touch: &Touch<'_>) {
        let Local { clock, shared, block, copied_by, fenced, .. } = local;
        let unit = if touch.shared { self.shared_unit } else { self.global_unit };
        let atomic = touch.what == What::Update || touch.order != Order::Weak;
        let (global, found) = (&mut self.global, &mut self.found);
        let mut left = touch.lanes;
        while left != 0 {
            let lane = left.trailing_zeros();
            left &= left - 1;
            let (thread, address) = (touch.warp * WARP + lane, touch.address[lane as usize]);
            let now = clock.stamp(touch.statement, thread, atomic);
            let me = if touch.lasts { now.lasting() } else { now };
            let writes = touch.wrote >> lane & 1 == 1;
            let touched = match touch.upper {
                Some(upper) => half(address, upper >> lane & 1 == 1, unit),
                None => whole(address, touch.bytes.into(), unit),
            };
            for place in touched {
                let at = |place: u64| Bad {
                    shared: touch.shared,
                    block: *block,
                    statement: touch.statement,
                    thread,
                    address: (place << unit >> 1).max(address),
                    bytes: touch.elem,
                };
                let cell = match touch.shared {
                    true => shared.get_mut(place as usize),
                    false => global.cell(place),
                };
                let Some(cell) = cell else { continue };
                if touch.shared && touch.what != What::Write && !cell.is_written() {
                    found.access(Kind::Unwritten, at(place), None);
                }
                // Only a product of a warpgroup reads shared memory beyond its statement.
                let writer = cell.writer();
                let plain = !writer.is_none() && writer.mbarrier().is_none() && !writer.lasts();
                if touch.lasts && touch.shared && touch.what == What::Read && plain && !fenced.covers(writer) {
                    found.access(Kind::Unfenced, at(place), Some(writer));
                }
                let mut tell = |race, earlier: Stamp| {
                    let kind = if earlier.lasts() { Kind::InFlight } else { Kind::from(race) };
                    found.access(kind, at(place), Some(who_began(earlier, copied_by)));
                };
                match writes {
                    true => cell.write(me, clock, &mut tell),
                    false => cell.read(me, clock, &mut tell),
                }
            }
        }
    }

    /// Passes on, lane by lane, the knowledge that ordered accesses release and acquire.
    fn order(&mut self, local: &mut Local, touch: &Touch<'_>) {
        let Local { clock, released, .. } = local;
        let released = if touch.shared { released } else { &mut self.released };
        if released.is_empty() && matches!(touch.order, Order::Weak | Order::Relaxed) {
            return;
        }
        let (acquires, releases) = match (touch.what, touch.order) {
            (_, Order::Weak | Order::Relaxed) => (false, false),
            (What::Read, _) => (true, false),
            (What::Write, _) => (false, true),
            (What::Update, order) => (order != Order::Release, order != Order::Acquire),
        };
        for lane in (0..WARP).filter(|l| touch.lanes >> l & 1 == 1) {
            let address = touch.address[lane as usize];
            let writes = touch.wrote >> lane & 1 == 1;
            let before = released.get(&address);
            if acquires && let Some(known) = before {
                clock.acquire(touch.warp, 1 << lane, known);
            }
            if writes && releases {
                let mut known = clock.release(touch.warp, 1 << lane);
                // An atomic update goes on with the release that it read from.
                if let (What::Update, Some(before)) = (touch.what, before) {
                    known.learn(before);
                }
                released.insert(address, known);
            } else if writes && touch.what == What::Write {
                released.remove(&address);
            }
        }
    }
}

/// The places of some bytes, one at least.
fn whole(address: u64, bytes: u64, unit: u32) -> RangeInclusive<u64> {
    let (first, halves) = (address.wrapping_mul(2), bytes.max(1).saturating_mul(2));
    first >> unit..=first.saturating_add(halves - 1) >> unit
}

/// The place of half a byte.
fn half(address: u64, upper: bool, unit: u32) -> RangeInclusive<u64> {
    let place = (address.wrapping_mul(2) | u64::from(upper)) >> unit;
    place..=place
}

/// An access by TMA is reported as an access of the thread that began the copy.
fn who_began(stamp: Stamp, copied_by: &FxHashMap<(u32, u32), u32>) -> Stamp {
    let thread = stamp.mbarrier().and_then(|m| copied_by.get(&(stamp.statement(), m)));
    thread.map_or(stamp, |thread| stamp.by(*thread))
}

fn bad(local: &Local, touch: &Touch<'_>, lane: u32) -> Bad {
    Bad {
        shared: touch.shared,
        block: local.block,
        statement: touch.statement,
        thread: touch.warp * WARP + lane,
        address: touch.address[lane as usize],
        bytes: touch.bytes,
    }
}

impl Watch for Observer<'_> {
    type Local = Local;

    fn wants_touches(&self) -> bool {
        self.options.races || self.options.counts
    }

    fn begin(&mut self, local: &mut Local, block: [u32; 3], warps: u32, own: Option<(u64, u64)>) {
        let [x, y, z] = block;
        let [gx, gy, _] = self.grid;
        let number = x.wrapping_add(gx.wrapping_mul(y.wrapping_add(gy.wrapping_mul(z))));
        self.blocks += u64::from(self.kernel.cluster);
        local.block = block;
        if let Some(r) = &mut self.recorder {
            r.begin(block, warps);
        }
        let mbarriers = self.kernel.mbarriers() as u32 * self.kernel.cluster;
        local.clock.begin(number.wrapping_add(1), warps, self.kernel.cluster, mbarriers);
        local.released.clear();
        local.loaded.clear();
        local.mbarriers = vec![Mbarrier::default(); mbarriers as usize];
        local.fenced = Known::default();
        local.tensor = TensorMemory::default();
        if self.options.races {
            local.shared.clear();
            let places = whole(0, self.kernel.apart() * u64::from(self.kernel.cluster), self.shared_unit);
            local.shared.resize(*places.end() as usize + 1, Cell::default());
            if let Some((address, len)) = own.filter(|(_, len)| *len > 0) {
                let places = whole(address, len, self.global_unit);
                self.global.forget(*places.start(), *places.end());
            }
        }
    }

    #[inline]
    fn ran(&mut self, block: [u32; 3], warp: u32, statement: u32, lanes: u32) -> Result<(), Trap> {
        if let Some(r) = &mut self.recorder {
            r.ran(block, warp, statement);
        }
        self.steps += u64::from(lanes);
        if self.patience.is_some_and(|most| self.steps > most) {
            self.exhausted = Some(statement);
            let message = format!("the run was stopped {AFTER} statements after an access out of bounds");
            return Err(Trap { block, ..Trap::new(Code::OutOfFuel, message) });
        }
        if self.steps > self.options.steps {
            self.exhausted = Some(statement);
            let message = format!(
                "the kernel did not end within {} statements of its threads, the limit of this simulation",
                self.options.steps
            );
            return Err(Trap { block, ..Trap::new(Code::OutOfFuel, message) });
        }
        if statement != NO_STATEMENT
            && let Some(counts) = self.counts.get_mut(statement as usize)
        {
            counts.executions += u64::from(lanes);
        }
        Ok(())
    }

    fn touched(&mut self, local: &mut Local, touch: &Touch<'_>) {
        if self.options.counts {
            self.count(&mut local.loaded, touch);
        }
        if let Some(r) = self.recorder.as_mut().filter(|_| touch.lasts && touch.shared) {
            r.takes_off(local.block, touch.warp, touch.statement);
        }
        if self.options.races {
            if self.kernel.threads > 1 {
                self.aligned(local, touch);
            }
            self.compare(local, touch);
            self.order(local, touch);
        }
    }

    fn landed(&mut self, local: &mut Local, landing: &Landing<'_>) {
        if let Some(r) = &mut self.recorder {
            r.lands(local.block, landing.warp, landing.statement);
        }
        if !self.options.races {
            return;
        }
        let Local { clock, shared, .. } = local;
        let bytes = u64::from(landing.bytes);
        for lane in (0..WARP).filter(|l| landing.lanes >> l & 1 == 1) {
            let now = clock.stamp(landing.statement, landing.warp * WARP + lane, false);
            let (to, from) = (landing.to[lane as usize], landing.from[lane as usize]);
            for place in whole(to, bytes, self.shared_unit) {
                shared.get_mut(place as usize).into_iter().for_each(|cell| cell.end(now));
            }
            if landing.read >> lane & 1 == 1 {
                for place in whole(from, bytes, self.global_unit) {
                    self.global.cell(place).into_iter().for_each(|cell| cell.end(now));
                }
            }
        }
    }

    fn boxed(&mut self, local: &mut Local, boxed: &Boxed<'_>, landed: Option<u32>) {
        let Boxed { statement, thread, mbarrier, at: place, bytes, elem, runs } = *boxed;
        if let Some(r) = &mut self.recorder {
            match landed {
                None => r.takes_off(local.block, thread / WARP, statement),
                Some(_) => r.lands(local.block, thread / WARP, statement),
            }
        }
        if self.options.counts
            && landed.is_none()
            && let Some(counts) = self.counts.get_mut(statement as usize)
        {
            let rows = bytes.div_ceil(BANK_BYTES) as u32;
            counts.shared.add(bytes, (rows, rows));
            let sectors =
                runs.iter().map(|r| (r.from.saturating_add(r.bytes - 1) / SECTOR - r.from / SECTOR + 1) as u32).sum();
            runs.iter().for_each(|r| _ = self.touched.add(r.from, r.bytes));
            let moved: u64 = runs.iter().map(|r| r.bytes).sum();
            counts.global.add(moved, (sectors, moved.div_ceil(SECTOR) as u32));
        }
        if !self.options.races {
            return;
        }
        let Local { clock, shared, block, copied_by, fenced, .. } = local;
        let me = clock.stamp(statement, thread, false);
        let kept = mbarrier.map_or(me, |m| clock.stamp_of_copy(statement, m, landed.unwrap_or(0)));
        let kept = if landed.is_none() { kept.lasting() } else { kept };
        mbarrier.into_iter().for_each(|m| _ = copied_by.insert((statement, m), thread));
        let (found, global, shown) = (&mut self.found, &mut self.global, &self.shown);
        let mut cells = |is_shared: bool, from: u64, bytes: u64, unit: u32| {
            let writes = is_shared == mbarrier.is_some();
            for place in whole(from, bytes, unit) {
                let cell = match is_shared {
                    true => shared.get_mut(place as usize),
                    false => global.cell(place),
                };
                let Some(cell) = cell else { continue };
                if landed.is_some() {
                    cell.end(kept);
                    continue;
                }
                let address = (place << unit >> 1).max(from);
                let at = || Bad { shared: is_shared, block: *block, statement, thread, address, bytes: elem };
                if is_shared && !writes && !cell.is_written() {
                    found.access(Kind::Unwritten, at(), None);
                }
                let mut tell = |race, earlier: Stamp| {
                    let kind = if earlier.lasts() { Kind::InFlight } else { Kind::from(race) };
                    found.access(kind, at(), Some(who_began(earlier, copied_by)));
                };
                let writer = cell.writer();
                match writes {
                    true => cell.write_as(me, kept, clock, &mut tell),
                    false => cell.read_as(me, kept, clock, &mut tell),
                }
                let plain = !writer.is_none() && writer.mbarrier().is_none() && clock.ordered(writer, thread);
                let known = if is_shared { &*fenced } else { shown };
                if plain && !writer.lasts() && !known.covers(writer) {
                    found.access(Kind::Unfenced, at(), Some(writer));
                }
            }
        };
        cells(true, place, bytes, self.shared_unit);
        // Nothing in the kernel can know when global memory has what was copied there.
        if landed.is_none() || mbarrier.is_some() {
            runs.iter().for_each(|run| cells(false, run.from, run.bytes, self.global_unit));
        }
    }

    fn in_tensor(&mut self, local: &mut Local, columns: Columns<'_>) {
        self.accessed(local, &columns);
    }

    fn sync(&mut self, local: &mut Local, statement: u32, warp: u32, lanes: u32, sync: Sync) {
        if !self.options.races {
            return;
        }
        let Local { clock, mbarriers, fenced, tensor, .. } = local;
        match sync {
            Sync::Fence => fenced.learn(&clock.event(warp, lanes)),
            Sync::BeforeMeeting => tensor.before_sync(clock, warp, lanes),
            Sync::AfterMeeting => tensor.after_sync(clock, warp, lanes),
            Sync::FenceGlobal => self.shown.learn(&clock.release(warp, lanes)),
            Sync::Init { number } => {
                let thread = warp * WARP + lanes.trailing_zeros();
                let init = Some(clock.stamp(statement, thread, false));
                mbarriers
                    .get_mut(number as usize)
                    .into_iter()
                    .for_each(|m| *m = Mbarrier { init, ..Mbarrier::default() });
            }
            Sync::Arrive { number } => {
                let known = clock.release(warp, lanes);
                mbarriers.get_mut(number as usize).into_iter().for_each(|m| m.arrived.learn(&known));
            }
            Sync::Ended { number, phase } => {
                let Some(m) = mbarriers.get_mut(number as usize) else { return };
                m.ended.learn(&std::mem::take(&mut m.arrived));
                m.ended.phases(clock.block(), number, phase);
            }
            Sync::Passed { number } => {
                if let Some(m) = mbarriers.get_mut(number as usize) {
                    clock.acquire(warp, lanes, &m.ended);
                }
            }
        }
    }

    fn sees(&self, local: &Local, thread: u32, mbarrier: u32) -> bool {
        let init = local.mbarriers.get(mbarrier as usize).and_then(|m| m.init);
        !self.options.races || init.is_none_or(|init| local.clock.ordered(init, thread))
    }

    fn wrong(&mut self, block: [u32; 3], statement: u32, thread: u32, wrong: Wrong) {
        self.found.wrong(block, statement, thread, wrong, self.kernel);
    }

    fn outside(&mut self, outside: Outside, _: impl FnOnce() -> Trap) -> Result<(), Trap> {
        self.found.outside(outside, self.kernel);
        // The value loaded there does not come from the program, which may run for ever because of it.
        self.patience.get_or_insert(self.steps.saturating_add(AFTER));
        Ok(())
    }

    fn met(&mut self, local: &mut Local, scope: Scope, ordered: bool) {
        match scope {
            Scope::Block(_) | Scope::Cluster => {
                self.barriers += 1;
                if let Some(r) = &mut self.recorder {
                    r.met(local.block);
                }
                local.clock.barrier(if let Scope::Block(member) = scope { Some(member) } else { None });
            }
            Scope::First(member, count) => {
                self.barriers += 1;
                local.clock.first(member, count / WARP);
            }
            Scope::Warp(warp) if ordered => local.clock.meet(warp),
            Scope::Warp(_) => {}
        }
    }

    fn uneven(&mut self, meeting: Meeting) {
        self.found.uneven(meeting);
    }

    fn stuck(&mut self, block: [u32; 3], standing: Vec<Standing>) {
        self.found.stuck(block, standing);
    }

    fn stalled(&mut self, stalled: Stalled) {
        self.found.stalled(stalled);
    }
}
