//! Who does what in tensor memory, and in what order.
//!
//! In: products, commits and loads, by columns. Out: pairs that nothing orders, and products that overwrite what a warp still loads.
//! A place of the shadow is a column of 32 lanes: products and loads of a block take them as a whole.
//!
//! A product lasts until a commit of its thread has arrived at an mbarrier, and a thread knows that once it has waited for the phase that
//! counted the commit. The commits of a thread arrive in order: a phase that counted one covers all products before it. Another thread
//! knows of a thread's accesses only if there was a fence before they met and there is one behind that; a commit needs no fence before it.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::WARP;
use super::clock::{Clock, Known, Stamp};
use super::shadow::{Cell, Race};
use crate::kernel::machine::{Columns, InTensor, Wrong};
use crate::kernel::tcgen05::COLUMNS;

/// Parts of 32 lanes.
const QUARTERS: u32 = 4;

/// The shadow of the tensor memory of a block, or of the blocks of a cluster.
#[derive(Default)]
pub(super) struct TensorMemory {
    cells: Vec<Cell>,
    /// The thread whose product wrote a place last, since it was allocated: its products follow each other.
    owner: Vec<Option<u32>>,
    /// For each thread: its knowledge of others at the commits that have not arrived, and the phases that counted those that have.
    begun: FxHashMap<u32, VecDeque<Known>>,
    arrived: FxHashMap<u32, Known>,
    /// The events behind which a thread has fenced, and what each thread knew of when it fenced.
    before: Known,
    after: FxHashMap<u32, Known>,
}

impl TensorMemory {
    pub fn before_sync(&mut self, clock: &mut Clock, warp: u32, lanes: u32) {
        self.before.learn(&clock.event(warp, lanes));
    }

    pub fn after_sync(&mut self, clock: &mut Clock, warp: u32, lanes: u32) {
        for lane in (0..WARP).filter(|l| lanes >> l & 1 == 1) {
            self.after.insert(warp * WARP + lane, clock.release(warp, 1 << lane));
        }
    }

    /// A thread commits. Its products began behind all that it knows of; its own writes are not passed on.
    pub fn commits(&mut self, clock: &Clock, thread: u32) {
        self.begun.entry(thread).or_default().push_back(clock.known(thread / WARP, 1 << (thread % WARP)));
    }

    /// The knowledge that an mbarrier gets with a commit of a thread that it counts in a phase.
    pub fn arrived(&mut self, clock: &Clock, thread: u32, number: u32, phase: u32) -> Known {
        let known = self.arrived.entry(thread).or_default();
        if let Some(begun) = self.begun.get_mut(&thread).and_then(VecDeque::pop_front) {
            known.learn(&begun);
        }
        let before = known.clone();
        known.phases(clock.block(), number, phase + 1);
        before
    }

    /// The first error of an access of some columns.
    pub fn access(&mut self, clock: &Clock, columns: &Columns<'_>) -> Option<Wrong> {
        let Columns { statement, thread, member, first, count, ref quarters, what, .. } = *columns;
        let own = COLUMNS * QUARTERS;
        let until = (member as usize + 1) * own as usize;
        if self.cells.len() < until {
            self.cells.resize(until, Cell::default());
            self.owner.resize(until, None);
        }
        let me = clock.stamp(statement, thread, false);
        let (before, empty) = (&self.before, Known::default());
        let after = self.after.get(&thread).unwrap_or(&empty);
        // Another thread's access that has ended is known only behind the fences.
        let unfenced = |s: Stamp| {
            let ended = !s.is_none() && !s.lasts() && s.thread() != thread && clock.ordered(s, thread);
            ended && !(after.covers(s) && (s.mbarrier().is_some() || before.covers(s)))
        };
        let mut found = None;
        let places =
            (first..first + count).flat_map(|c| quarters.clone().map(move |q| member * own + c * QUARTERS + q));
        for place in places {
            let of = (self.cells.get_mut(place as usize), self.owner.get_mut(place as usize));
            let (Some(cell), Some(owner)) = of else { continue };
            let (writer, readers) = (cell.writer(), cell.readers());
            let mut tell = |wrong: &'static str| _ = found.get_or_insert(Wrong::TensorMemory(wrong));
            match what {
                InTensor::Adds { .. } | InTensor::Frees => {
                    let adds = matches!(what, InTensor::Adds { .. });
                    let follows = adds && *owner == Some(thread);
                    let race = &mut |race, _: Stamp| {
                        if !follows || race != Race::WriteAfterWrite {
                            tell(OVERWRITES);
                        }
                    };
                    *owner = adds.then_some(thread);
                    match what {
                        InTensor::Frees => *cell = cell.freed(me, clock, race),
                        _ => cell.write_as(me, me.lasting(), clock, race),
                    }
                    if readers.into_iter().any(unfenced) || !follows && unfenced(writer) {
                        tell(NO_FENCE);
                    }
                }
                InTensor::Loads => {
                    if owner.is_none() {
                        tell(UNWRITTEN);
                    }
                    cell.read_as(me, me.lasting(), clock, &mut |_, _| tell(TOO_EARLY));
                    if unfenced(writer) {
                        tell(NO_FENCE);
                    }
                }
                InTensor::Ends { number, phase, later: false, .. } => {
                    cell.ends_as(me, clock.stamp_of_copy(statement, number, phase));
                }
                InTensor::Loaded => cell.end(me),
                InTensor::Takes => cell.write(me, clock, &mut |_, _| {}),
                InTensor::Ends { .. } | InTensor::Commits | InTensor::Arrives { .. } => {}
            }
        }
        found
    }
}

const OVERWRITES: &str = "a product changes columns of tensor memory, or a warp frees them, that another one may still be changing or loading";
const TOO_EARLY: &str = "a warp loads columns of tensor memory that a product may still be adding to: the thread has not waited for the phase of the mbarrier that counts a commit behind it";
const UNWRITTEN: &str = "a warp loads columns of tensor memory that no product has written";
const NO_FENCE: &str = "a thread uses columns of tensor memory behind another one, and one of the two fences around their meeting is missing: `fence before_sync`, `fence after_sync`";
