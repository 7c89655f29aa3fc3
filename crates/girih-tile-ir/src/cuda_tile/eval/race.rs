//! Races and missing token paths, found with a shadow of memory.
//!
//! Each byte remembers the last weak access that wrote it, and its last two other accesses by different blocks: weak reads, and
//! strong accesses such as atomics. Two accesses conflict if one of them writes, unless both are strong. A conflict between blocks
//! without a release-to-acquire chain is a race; a conflict within a block without a token path is unordered on a GPU. The shadow
//! is bounded, and time is one counter over the whole run: a chain is taken to exist when the first block releases after its
//! access and the second acquires after that release. A reported race is therefore real for this run's order; a race that is not
//! reported is not ruled out.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::value::{Origin, Token};

const PAGE: u64 = 4096;
/// The most pages in the shadow; accesses to later pages are not watched.
const PAGES: usize = 2048;
/// The most accesses recorded.
const RECORDS: usize = 1 << 22;

#[derive(Clone, Copy, Default, PartialEq)]
struct Cell {
    writer: u32,
    user: u32,
    /// A user from another block than that of `user`.
    other: u32,
}

#[derive(Clone, Copy)]
struct Record {
    block: u64,
    /// The access's number within its block.
    number: u32,
    op: Origin,
    time: u32,
    write: bool,
    strong: bool,
}

/// Two conflicting accesses: the earlier one's operation, the later one's, and whether the blocks differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conflict {
    pub first: Origin,
    pub second: Origin,
    pub across_blocks: bool,
    /// Both accesses write.
    pub writes: bool,
}

/// An access that is being performed.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub record: u32,
    pub token: Option<&'a Token>,
    pub write: bool,
    /// An atomic, or a load or store with an order.
    pub strong: bool,
}

#[derive(Default)]
pub struct Shadow {
    off: bool,
    pages: FxHashMap<u64, Vec<Cell>>,
    /// Index 0 stands for "none".
    records: Vec<Record>,
    releases: FxHashMap<u64, Vec<u32>>,
    acquired: FxHashMap<u64, u32>,
    time: u32,
    found: BTreeSet<Conflict>,
}

impl Shadow {
    pub fn new(on: bool) -> Shadow {
        let none = Record { block: u64::MAX, number: 0, op: 0, time: 0, write: false, strong: false };
        Shadow { off: !on, records: vec![none], ..Shadow::default() }
    }

    pub fn conflicts(&self) -> impl Iterator<Item = &Conflict> {
        self.found.iter()
    }

    /// Records an access of a block; `None` when nothing is watched.
    pub fn begin(&mut self, block: u64, number: u32, op: Origin) -> Option<u32> {
        if self.off || self.records.len() >= RECORDS {
            return None;
        }
        self.time += 1;
        self.records.push(Record { block, number, op, time: self.time, write: false, strong: false });
        Some(self.records.len() as u32 - 1)
    }

    pub fn release(&mut self, block: u64) {
        if !self.off {
            self.time += 1;
            self.releases.entry(block).or_default().push(self.time);
        }
    }

    pub fn acquire(&mut self, block: u64) {
        if !self.off {
            self.time += 1;
            self.acquired.insert(block, self.time);
        }
    }

    /// Forgets the history of bytes that now belong to another owner.
    pub fn forget(&mut self, addr: u64, len: u64) {
        if self.off || self.pages.is_empty() {
            return;
        }
        let end = addr.saturating_add(len);
        let forget_in = |page: u64, cells: &mut Vec<Cell>| {
            let start = page * PAGE;
            let (from, to) = (addr.max(start) - start, end.min(start.saturating_add(PAGE)) - start);
            cells[from as usize..to as usize].fill(Cell::default());
        };
        // A large region has more pages than have been touched.
        let pages = addr / PAGE..end.div_ceil(PAGE);
        if pages.end.saturating_sub(pages.start) > self.pages.len() as u64 {
            self.pages
                .iter_mut()
                .filter(|(page, _)| pages.contains(*page))
                .for_each(|(&page, cells)| forget_in(page, cells));
            return;
        }
        for page in pages {
            if let Some(cells) = self.pages.get_mut(&page) {
                forget_in(page, cells);
            }
        }
    }

    /// Checks and records an access to `len` bytes.
    pub fn touch(&mut self, access: Access, addr: u64, len: u64) {
        let Some(me) = self.records.get_mut(access.record as usize) else { return };
        (me.write, me.strong) = (access.write, access.strong);
        let me = *me;
        let mut at = addr;
        let end = addr.saturating_add(len);
        while at < end {
            let page = at / PAGE;
            let stop = (page + 1).saturating_mul(PAGE).min(end);
            if !self.pages.contains_key(&page) {
                if self.pages.len() >= PAGES {
                    at = stop;
                    continue;
                }
                self.pages.insert(page, vec![Cell::default(); PAGE as usize]);
            }
            let from = (at % PAGE) as usize;
            let mut last = Cell { writer: u32::MAX, ..Cell::default() };
            let Some(cells) = self.pages.get_mut(&page) else { break };
            let cells = &mut cells[from..from + (stop - at) as usize];
            for cell in cells {
                // Neighbouring bytes mostly share their history, which is judged once.
                if *cell != last {
                    last = *cell;
                    let sync = Sync { releases: &self.releases, acquired: &self.acquired };
                    for earlier in [cell.writer, cell.user, cell.other] {
                        let e = self.records[earlier as usize];
                        let conflict = (e.write || me.write) && !(e.strong && me.strong);
                        if earlier != 0
                            && earlier != access.record
                            && conflict
                            && let Some(across_blocks) = sync.unordered(&e, &me, access.token)
                        {
                            let writes = e.write && me.write;
                            self.found.insert(Conflict { first: e.op, second: me.op, across_blocks, writes });
                        }
                    }
                }
                if me.write && !me.strong {
                    *cell = Cell { writer: access.record, user: 0, other: 0 };
                } else {
                    if cell.user != 0 && self.records[cell.user as usize].block != me.block {
                        cell.other = cell.user;
                    }
                    cell.user = access.record;
                }
            }
            at = stop;
        }
    }
}

struct Sync<'a> {
    releases: &'a FxHashMap<u64, Vec<u32>>,
    acquired: &'a FxHashMap<u64, u32>,
}

impl Sync<'_> {
    /// `Some(across blocks)` when nothing orders `earlier` before `later`.
    fn unordered(&self, earlier: &Record, later: &Record, token: Option<&Token>) -> Option<bool> {
        if earlier.block == later.block {
            let ordered = token.is_some_and(|t| t.covers(earlier.number));
            return (!ordered).then_some(false);
        }
        let releases = self.releases.get(&earlier.block);
        let released = releases.and_then(|r| r.get(r.partition_point(|&t| t <= earlier.time)));
        let acquired = self.acquired.get(&later.block);
        let ordered = matches!((released, acquired), (Some(r), Some(a)) if a > r);
        (!ordered).then_some(true)
    }
}

/// The sentence that reports a conflict between two operations.
pub fn sentence(c: &Conflict, first: &str, second: &str) -> String {
    let what = if c.writes { "write" } else { "access" };
    if c.across_blocks {
        format!("`{first}` and `{second}` of different blocks {what} the same byte with nothing to order them: a race")
    } else {
        format!(
            "`{first}` and `{second}` {what} the same byte of memory with no token path between them: correct \
             here, but possibly wrong on a GPU"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two blocks write a byte at `addr`, the second after `len` bytes from `from` on were forgotten.
    fn races(addr: u64, from: u64, len: u64) -> bool {
        let mut shadow = Shadow::new(true);
        for block in 0..2 {
            let record = shadow.begin(block, 0, 0).unwrap();
            shadow.touch(Access { record, token: None, write: true, strong: false }, addr, 1);
            shadow.forget(from, len);
        }
        shadow.conflicts().next().is_some()
    }

    #[test]
    fn forgetting_takes_as_long_as_what_was_touched() {
        // The largest region that addresses allow has 2^52 pages.
        for at in [0, 1, PAGE - 1, PAGE, 5 * PAGE + 7, 1 << 60] {
            for (from, len) in [(0, u64::MAX), (at, 1), (at, u64::MAX), (at / PAGE * PAGE, PAGE), (0, at + 1)] {
                assert!(!races(at, from, len), "{at}: {from} {len}");
            }
            for (from, len) in [(at + 1, u64::MAX - at - 1), (0, at), (at, 0), (at + 1, 1)] {
                assert!(races(at, from, len), "{at}: {from} {len}");
            }
        }
    }
}
