//! A shadow of memory: who wrote each place last, and who has read it since.
//!
//! In: accesses, with their stamps and the clock of their block. Out: unordered pairs of accesses of the same place, at
//! least one of them a write. A place has the size of the kernel's smallest access, or half a byte where elements have
//! 4 bits, so that no access touches a part of a place.
//!
//! Two readers are kept for each place, of different warps if possible, and two atomic writers. That is enough to find
//! that a place is raced for; not all threads that race for it are named.

use rustc_hash::FxHashMap;

use super::clock::{Clock, Stamp};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) enum Race {
    ReadAfterWrite,
    WriteAfterRead,
    WriteAfterWrite,
}

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Cell {
    writer: Stamp,
    /// Another writer, where both are atomic.
    other_writer: Stamp,
    reader: Stamp,
    other_reader: Stamp,
}

impl Cell {
    pub fn is_written(&self) -> bool {
        !self.writer.is_none()
    }

    /// Returns true if an earlier access of the place races with the access `me`.
    #[inline]
    fn races(earlier: Stamp, me: Stamp, clock: &Clock) -> bool {
        let both_atomic = earlier.atomic() && me.atomic();
        !(earlier.is_none() || both_atomic || !earlier.lasts() && clock.ordered(earlier, me.thread()))
    }

    /// Ends what a thread did to the place that went on until now.
    pub fn end(&mut self, now: Stamp) {
        [&mut self.writer, &mut self.reader, &mut self.other_reader].into_iter().for_each(|stamp| stamp.end(now));
    }

    /// Ends what `me` did to the place that went on until now: it is known as something else from here on.
    pub fn ends_as(&mut self, me: Stamp, kept: Stamp) {
        for stamp in [&mut self.writer, &mut self.reader, &mut self.other_reader] {
            if *stamp == me.lasting() {
                *stamp = kept;
            }
        }
    }

    /// The last who have read since the place was written.
    pub fn readers(&self) -> [Stamp; 2] {
        [self.reader, self.other_reader]
    }

    /// The place as it is when somebody gives it up: nobody has written it.
    pub fn freed(&mut self, me: Stamp, clock: &Clock, found: &mut impl FnMut(Race, Stamp)) -> Cell {
        self.write(me, clock, found);
        Cell::default()
    }

    /// The last who wrote.
    pub fn writer(&self) -> Stamp {
        self.writer
    }

    #[inline]
    pub fn read(&mut self, me: Stamp, clock: &Clock, found: &mut impl FnMut(Race, Stamp)) {
        self.read_as(me, me, clock, found);
    }

    /// A read that a thread begins, remembered as something else.
    #[inline]
    pub fn read_as(&mut self, me: Stamp, kept: Stamp, clock: &Clock, found: &mut impl FnMut(Race, Stamp)) {
        for writer in [self.writer, self.other_writer] {
            if Cell::races(writer, me, clock) {
                found(Race::ReadAfterWrite, writer);
            }
        }
        self.note_reader(kept);
    }

    #[inline]
    fn note_reader(&mut self, me: Stamp) {
        let last = self.reader;
        let same = last.block == me.block && last.thread() == me.thread();
        if !last.is_none() && !same {
            let other = self.other_reader;
            let far = |s: Stamp| s.block != me.block || s.warp() != me.warp();
            // A reader of another warp, or a recent one, says more.
            if other.is_none() || far(last) || !far(other) || other.epoch < last.epoch {
                self.other_reader = last;
            }
        }
        self.reader = me;
    }

    #[inline]
    pub fn write(&mut self, me: Stamp, clock: &Clock, found: &mut impl FnMut(Race, Stamp)) {
        self.write_as(me, me, clock, found);
    }

    /// A write that a thread begins, remembered as something else.
    #[inline]
    pub fn write_as(&mut self, me: Stamp, kept: Stamp, clock: &Clock, found: &mut impl FnMut(Race, Stamp)) {
        for writer in [self.writer, self.other_writer] {
            if Cell::races(writer, me, clock) {
                found(Race::WriteAfterWrite, writer);
            }
        }
        for reader in [self.reader, self.other_reader] {
            if Cell::races(reader, me, clock) {
                found(Race::WriteAfterRead, reader);
            }
        }
        let others = self.writer.block != me.block || self.writer.thread() != me.thread();
        if me.atomic() && self.writer.atomic() {
            if others {
                self.other_writer = self.writer;
            }
        } else {
            self.other_writer = Stamp::default();
        }
        self.writer = kept;
        if !me.atomic() {
            (self.reader, self.other_reader) = (Stamp::default(), Stamp::default());
        }
    }
}

/// Places of a page.
const PAGE: u64 = 512;
/// Pages at most, half a GiB of them; what lies beyond goes unwatched.
const PAGES: usize = (512 << 20) / (PAGE as usize * size_of::<Cell>());

/// The shadow of global memory, by addresses in units of a place.
#[derive(Default)]
pub(super) struct Pages {
    index: FxHashMap<u64, u32>,
    pages: Vec<Box<[Cell]>>,
    /// The page used last, and where it is.
    last: Option<(u64, u32)>,
    /// Some places are not watched.
    pub full: bool,
}

impl Pages {
    #[inline]
    pub fn cell(&mut self, unit: u64) -> Option<&mut Cell> {
        let page = unit / PAGE;
        let at = match self.last {
            Some((last, at)) if last == page => at,
            _ => self.find(page)?,
        };
        self.pages.get_mut(at as usize).map(|cells| &mut cells[(unit % PAGE) as usize])
    }

    fn find(&mut self, page: u64) -> Option<u32> {
        let at = match self.index.get(&page) {
            Some(at) => *at,
            None if self.pages.len() >= PAGES => {
                self.full = true;
                return None;
            }
            None => {
                let at = self.pages.len() as u32;
                self.pages.push(vec![Cell::default(); PAGE as usize].into());
                self.index.insert(page, at);
                at
            }
        };
        self.last = Some((page, at));
        Some(at)
    }

    /// Forgets places: they belong to somebody else now.
    pub fn forget(&mut self, first: u64, last: u64) {
        for page in first / PAGE..=last / PAGE {
            let Some(cells) = self.index.get(&page).and_then(|at| self.pages.get_mut(*at as usize)) else { continue };
            let from = first.max(page * PAGE) - page * PAGE;
            let to = last.min(page * PAGE + PAGE - 1) - page * PAGE;
            cells[from as usize..=to as usize].fill(Cell::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses by thread (`r3`, `w3`, atomics `R3`, `W3`) and barriers (`|`); the races found.
    fn races(events: &str) -> Vec<(Race, u32, u32)> {
        let (mut clock, mut cell, mut found) = (Clock::default(), Cell::default(), vec![]);
        clock.begin(1, 4, 1, 0);
        for event in events.split(' ') {
            if event == "|" {
                clock.barrier(None);
                continue;
            }
            let (what, thread) = event.split_at(1);
            let atomic = what.chars().all(char::is_uppercase);
            let me = clock.stamp(0, thread.parse().unwrap(), atomic);
            let mut tell = |race, earlier: Stamp| found.push((race, earlier.thread(), me.thread()));
            match what.eq_ignore_ascii_case("r") {
                true => cell.read(me, &clock, &mut tell),
                false => cell.write(me, &clock, &mut tell),
            }
        }
        found
    }

    #[test]
    fn each_conflict_is_found() {
        use Race::*;
        assert_eq!(races("w0 r1"), [(ReadAfterWrite, 0, 1)]);
        assert_eq!(races("r0 w1"), [(WriteAfterRead, 0, 1)]);
        assert_eq!(races("w0 w1"), [(WriteAfterWrite, 0, 1)]);
        assert_eq!(races("w0 W1"), [(WriteAfterWrite, 0, 1)]);
        assert_eq!(races("W0 r1"), [(ReadAfterWrite, 0, 1)]);
        assert_eq!(races("W0 W40 | W0 r40"), [(ReadAfterWrite, 0, 40)]);
        for clean in ["w0 r0 w0", "r0 r1 r2", "w0 | r1 r2 | w3", "W0 W1 R2", "w0 | W1 W2 | r3"] {
            assert_eq!(races(clean), [], "{clean}");
        }
    }

    #[test]
    fn a_reader_of_another_warp_is_kept() {
        let found = races("r40 r1 r2 r3 w3");
        assert!(found.contains(&(Race::WriteAfterRead, 40, 3)), "{found:?}");
        // Readers of before the barrier make room.
        let found = races("r40 | r1 r2 w2");
        assert_eq!(found, [(Race::WriteAfterRead, 1, 2)]);
    }

    #[test]
    fn pages_are_found_again_and_forgotten() {
        let (mut clock, mut pages) = (Clock::default(), Pages::default());
        clock.begin(1, 1, 1, 0);
        let me = clock.stamp(0, 0, false);
        for unit in [0, PAGE - 1, PAGE, 7 * PAGE + 3] {
            pages.cell(unit).unwrap().write(me, &clock, &mut |_, _| {});
        }
        pages.forget(PAGE - 1, 7 * PAGE + 2);
        let written = [0, PAGE - 1, PAGE, 7 * PAGE + 3].map(|unit| pages.cell(unit).unwrap().is_written());
        assert_eq!(written, [true, false, false, true]);
    }
}
