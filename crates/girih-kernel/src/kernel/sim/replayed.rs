//! Memory that several schedules run on one after the other.
//!
//! In: the memory of a launch, and writes to it. Out: memory as it was before the launch, for the next schedule, and where a
//! schedule leaves other bytes than the first.
//!
//! Only written pages are kept: their bytes before the launch and, for pages that the first schedule wrote, the bytes
//! that it left. A launch that writes a little of a large array takes little memory. Pieces of pages do not overlap,
//! though arrays may.

use rustc_hash::FxHashMap;

use crate::base::memory::{Fault, Memory};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Bytes of a page that lie in one array.
struct Piece {
    start: u64,
    before: Box<[u8]>,
    /// `None`: as before.
    after: Option<Box<[u8]>>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.before.len() as u64
    }
}

/// There is not enough memory to keep a copy of a page.
pub(super) struct Full;

pub(super) struct Replayed<'a> {
    memory: &'a mut dyn Memory,
    pieces: Vec<Piece>,
    /// The pieces of each page.
    pages: FxHashMap<u64, Vec<u32>>,
    /// Bytes that were written last, and that are kept.
    last: (u64, u64),
    /// Starts and lengths of what the runs allocated.
    own: Vec<(u64, u64)>,
    /// There was no memory to keep a piece.
    pub full: bool,
}

fn copied(memory: &dyn Memory, start: u64, len: u64) -> Result<Option<Box<[u8]>>, Full> {
    let mut bytes = vec![];
    let len = usize::try_from(len).map_err(|_| Full)?;
    bytes.try_reserve_exact(len).map_err(|_| Full)?;
    bytes.resize(len, 0);
    Ok(memory.read(start, &mut bytes).ok().map(|()| bytes.into_boxed_slice()))
}

impl<'a> Replayed<'a> {
    pub fn new(memory: &'a mut dyn Memory) -> Replayed<'a> {
        let (pieces, pages) = (vec![], FxHashMap::default());
        Replayed { memory, pieces, pages, last: (0, 0), own: vec![], full: false }
    }

    /// Keeps what a write is going to change.
    fn keep(&mut self, addr: u64, len: u64) {
        let mut at = addr;
        let end = addr.saturating_add(len);
        while at < end && !self.full {
            if (self.last.0..self.last.1).contains(&at) {
                at = self.last.1;
                continue;
            }
            let holds = |start: u64, len: u64| at.checked_sub(start).is_some_and(|o| o < len);
            if let Some((start, len)) = self.own.iter().copied().find(|(start, len)| holds(*start, *len)) {
                at = start + len;
                continue;
            }
            match self.piece(at) {
                Ok(Some(number)) => {
                    let piece = &self.pieces[number as usize];
                    self.last = (piece.start, piece.end());
                }
                // Nobody's memory: the write will be refused.
                Ok(None) => return,
                Err(Full) => self.full = true,
            }
        }
    }

    /// The piece that holds an address, made if there is none.
    fn piece(&mut self, at: u64) -> Result<Option<u32>, Full> {
        let page = at / PAGE;
        let (mut lo, mut hi) = (page * PAGE, (page * PAGE).saturating_add(PAGE));
        for number in self.pages.get(&page).into_iter().flatten() {
            let piece = &self.pieces[*number as usize];
            match (piece.end() <= at, piece.start > at) {
                (true, _) => lo = lo.max(piece.end()),
                (_, true) => hi = hi.min(piece.start),
                _ => return Ok(Some(*number)),
            }
        }
        let Some((_, start, len)) = self.memory.region(at) else { return Ok(None) };
        (lo, hi) = (lo.max(start), hi.min(start.saturating_add(len)));
        if !(lo..hi).contains(&at) {
            return Ok(None);
        }
        let Some(before) = copied(self.memory, lo, hi - lo)? else { return Ok(None) };
        let number = self.pieces.len() as u32;
        self.pieces.try_reserve(1).map_err(|_| Full)?;
        self.pieces.push(Piece { start: lo, before, after: None });
        self.pages.entry(page).or_default().push(number);
        Ok(Some(number))
    }

    pub fn restore(&mut self) {
        for piece in &self.pieces {
            let _ = self.memory.write(piece.start, &piece.before);
        }
    }

    /// Keeps what the first schedule left.
    pub fn remember(&mut self) -> Result<(), Full> {
        for piece in &mut self.pieces {
            let now = copied(self.memory, piece.start, piece.before.len() as u64)?;
            piece.after = now.filter(|now| *now != piece.before);
        }
        Ok(())
    }

    /// Describes the first byte that differs from what the first schedule left.
    pub fn difference(&self) -> Result<Option<String>, Full> {
        let mut first: Option<u64> = None;
        for piece in &self.pieces {
            let Some(now) = copied(self.memory, piece.start, piece.before.len() as u64)? else { continue };
            let then = piece.after.as_ref().unwrap_or(&piece.before);
            let at = then.iter().zip(&now).position(|(a, b)| a != b).map(|at| piece.start + at as u64);
            first = [first, at].into_iter().flatten().min();
        }
        let Some(at) = first else { return Ok(None) };
        let (name, start) = self.memory.region(at).map_or(("?".to_string(), 0), |(name, start, _)| (name, start));
        Ok(Some(format!("leaves other bytes in `{name}`, from byte {} on,", at - start)))
    }
}

impl Memory for Replayed<'_> {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        self.memory.read(addr, out)
    }
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.keep(addr, bytes.len() as u64);
        self.memory.write(addr, bytes)
    }
    fn allocate(&mut self, len: u64, align: u64) -> u64 {
        let start = self.memory.allocate(len, align);
        self.own.push((start, len));
        start
    }
    fn region(&self, addr: u64) -> Option<(String, u64, u64)> {
        self.memory.region(addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::memory::VecMemory;

    #[test]
    fn what_was_written_is_kept_page_by_page() {
        let mut memory = VecMemory::new();
        let first = memory.add("a", (0..100_000u32).map(|n| n as u8).collect());
        let second = memory.add("b", vec![7; 10]);
        let was = memory.clone();
        let mut replayed = Replayed::new(&mut memory);
        for (at, bytes) in [(first + 4094, &[1u8, 2, 3, 4][..]), (first + 50_000, &[9]), (second + 9, &[5])] {
            replayed.write(at, bytes).unwrap();
        }
        let kept: usize = replayed.pieces.iter().map(|p| p.before.len()).sum();
        assert!(kept <= 3 * 4096 + 10 && !replayed.full, "{kept}");
        assert!(replayed.remember().is_ok());
        replayed.restore();
        assert!(replayed.memory.region(first).is_some());
        let said = replayed.difference().ok().flatten().unwrap();
        assert_eq!(said, "leaves other bytes in `a`, from byte 4094 on,");
        // The second schedule writes another page as well.
        for (at, bytes) in [(first + 4094, &[1u8, 2, 3, 4][..]), (first + 50_000, &[9]), (second + 9, &[5])] {
            replayed.write(at, bytes).unwrap();
        }
        assert_eq!(replayed.difference().ok().flatten(), None);
        replayed.write(first + 90_000, &[255]).unwrap();
        let said = replayed.difference().ok().flatten().unwrap();
        assert_eq!(said, "leaves other bytes in `a`, from byte 90000 on,");
        replayed.restore();
        for at in [first, second] {
            assert_eq!(memory.bytes(at), was.bytes(at));
        }
    }
}
