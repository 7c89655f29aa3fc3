//! Accesses of tensor memory, and of the shared memory that products read.

use super::{Local, Observer, who_began, whole};
use crate::base::banks::BANK_BYTES;
use crate::kernel::machine::{Columns, InTensor};
use crate::kernel::sim::WARP;
use crate::kernel::sim::clock::Stamp;
use crate::kernel::sim::finding::{Bad, Kind};

impl Observer<'_> {
    pub(super) fn accessed(&mut self, local: &mut Local, columns: &Columns<'_>) {
        let Columns { statement, block, thread, what, .. } = *columns;
        if let Some(r) = &mut self.recorder {
            match what {
                InTensor::Adds { .. } => r.takes_off(block, thread / WARP, statement),
                InTensor::Ends { .. } => r.lands(block, thread / WARP, statement),
                _ => {}
            }
        }
        if let (true, InTensor::Adds { bytes, piece, .. }, Some(counts)) =
            (self.options.counts, what, self.counts.get_mut(statement as usize))
        {
            let moved = bytes.iter().map(|all| all.len() as u64).sum::<u64>() * piece;
            let rows = moved.div_ceil(BANK_BYTES) as u32;
            counts.shared.add(moved, (rows, rows));
        }
        if !self.options.races {
            return;
        }
        let Local { clock, shared, copied_by, fenced, tensor, mbarriers, .. } = local;
        let me = clock.stamp(statement, thread, false);
        let (found, unit) = (&mut self.found, self.shared_unit);
        match what {
            InTensor::Adds { bytes, piece, elem } => {
                for at in bytes.iter().flat_map(|all| all.iter()) {
                    for place in whole(*at, piece, unit) {
                        let Some(cell) = shared.get_mut(place as usize) else { continue };
                        let address = (place << unit >> 1).max(*at);
                        let bad = || Bad { shared: true, block, statement, thread, address, bytes: elem };
                        let writer = cell.writer();
                        if !cell.is_written() {
                            found.access(Kind::Unwritten, bad(), None);
                        }
                        let plain = !writer.is_none() && writer.mbarrier().is_none() && !writer.lasts();
                        if plain && !fenced.covers(writer) {
                            found.access(Kind::Unfenced, bad(), Some(writer));
                        }
                        cell.read_as(me, me.lasting(), clock, &mut |race, earlier: Stamp| {
                            let kind = if earlier.lasts() { Kind::InFlight } else { Kind::from(race) };
                            found.access(kind, bad(), Some(who_began(earlier, copied_by)));
                        });
                    }
                }
            }
            InTensor::Ends { number, phase, bytes, piece, .. } => {
                copied_by.insert((statement, number), thread);
                let kept = clock.stamp_of_copy(statement, number, phase);
                let places = bytes.iter().flat_map(|all| all.iter()).flat_map(|at| whole(*at, piece, unit));
                for place in places {
                    shared.get_mut(place as usize).into_iter().for_each(|cell| cell.ends_as(me, kept));
                }
            }
            InTensor::Commits => tensor.commits(clock, thread),
            InTensor::Arrives { number, phase } => {
                let known = tensor.arrived(clock, thread, number, phase);
                mbarriers.get_mut(number as usize).into_iter().for_each(|m| m.arrived.learn(&known));
            }
            InTensor::Loads | InTensor::Loaded | InTensor::Takes | InTensor::Frees => {}
        }
        if let Some(wrong) = tensor.access(clock, columns) {
            found.wrong(block, statement, thread, wrong, self.kernel);
        }
    }
}
