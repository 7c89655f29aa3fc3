//! Real addresses as the evaluators' memory: a registry of the regions a launch may touch.

use girih_compiler::base::memory::{Fault, Memory};

use crate::memory::pages::Pages;

/// A named range of live memory.
#[derive(Clone, Debug)]
pub struct Region {
    pub name: String,
    pub start: u64,
    pub len: u64,
}

/// The regions of a launch, sorted by address; they may overlap.
#[derive(Debug, Default)]
pub struct RealMemory {
    regions: Vec<Region>,
    owned: Vec<Pages>,
}

impl RealMemory {
    pub fn new() -> RealMemory {
        RealMemory::default()
    }

    /// Registers a region.
    ///
    /// # Safety
    /// `start..start + len` must be readable and writable memory for as long as this value is used, and not accessed
    /// by other means while the evaluator runs.
    pub unsafe fn register(&mut self, name: &str, start: *mut u8, len: u64) {
        let start = start as u64;
        let at = self.regions.partition_point(|r| r.start <= start);
        self.regions.insert(at, Region { name: name.to_string(), start, len });
    }

    /// Returns true if `[addr, addr + len)` lies in one region.
    pub fn live(&self, addr: u64, len: u64) -> bool {
        addr.checked_add(len).is_some_and(|end| {
            let before = self.regions.partition_point(|r| r.start <= addr);
            self.regions[..before].iter().rev().any(|r| end <= r.start + r.len)
        })
    }

    fn access(&self, addr: u64, len: usize) -> Result<*mut u8, Fault> {
        if self.live(addr, len as u64) {
            Ok(std::ptr::with_exposed_provenance_mut(addr as usize))
        } else {
            Err(Fault { addr, len: len as u64 })
        }
    }
}

impl Memory for RealMemory {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let from = self.access(addr, out.len())?;
        // SAFETY: the range lies in a registered region; `out` is memory of its own.
        unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        let to = self.access(addr, bytes.len())?;
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn allocate(&mut self, len: u64, _align: u64) -> u64 {
        // An address in no region stands for memory that could not be had: using it is reported as a fault.
        let Some(pages) = usize::try_from(len).ok().and_then(Pages::zeroed) else { return 64 };
        let start = pages.as_ptr();
        // SAFETY: the pages live as long as this value.
        unsafe { self.register("allocation", start, len) };
        self.owned.push(pages);
        start as u64
    }

    fn region(&self, addr: u64) -> Option<(String, u64, u64)> {
        let near = 1 << 16;
        let before = self.regions.partition_point(|r| r.start <= addr.saturating_add(near));
        let distance = |r: &&Region| {
            if addr < r.start { r.start - addr } else { addr.saturating_sub(r.start + r.len.saturating_sub(1)) }
        };
        let found = self.regions[..before].iter().min_by_key(distance)?;
        (distance(&found) <= near).then(|| (found.name.clone(), found.start, found.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registered_ranges_are_touched() {
        let mut data = vec![7u8; 16];
        let start = data.as_mut_ptr() as u64;
        let mut memory = RealMemory::new();
        // SAFETY: the vector outlives the memory and is not used meanwhile.
        unsafe { memory.register("A", data.as_mut_ptr(), 16) };
        let mut out = [0u8; 4];
        memory.write(start + 12, &[1, 2, 3, 4]).unwrap();
        memory.read(start + 12, &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4]);
        assert_eq!(memory.read(start + 13, &mut out), Err(Fault { addr: start + 13, len: 4 }));
        assert!(memory.write(start.wrapping_sub(1), &[0]).is_err());
        assert!(memory.read(u64::MAX - 1, &mut out).is_err());
        assert_eq!(memory.region(start + 20), Some(("A".to_string(), start, 16)));
        assert_eq!(memory.region(8), None);
        let own = memory.allocate(100, 16);
        assert!(memory.live(own, 100) && !memory.live(own, 101));
    }
}
