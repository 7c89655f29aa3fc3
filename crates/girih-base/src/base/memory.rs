//! The evaluators' memory: a trait over 64-bit addresses, and a safe implementation with guard gaps.

/// An access outside all regions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub addr: u64,
    pub len: u64,
}

/// Byte-addressed memory. Addresses are opaque 64-bit numbers.
pub trait Memory {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault>;
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault>;
    /// Reserves `len` zeroed bytes for the launch and returns their address (globals, allocas).
    fn allocate(&mut self, len: u64, align: u64) -> u64;
    /// Names the region around an address, for messages: its name, start and length in bytes.
    fn region(&self, addr: u64) -> Option<(String, u64, u64)>;
}

/// Regions held in vectors, with unmapped gaps between them.
#[derive(Clone, Debug, Default)]
pub struct VecMemory {
    regions: Vec<Region>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Region {
    name: String,
    start: u64,
    bytes: Vec<u8>,
}

const GUARD: u64 = 1 << 20;

impl VecMemory {
    pub fn new() -> VecMemory {
        VecMemory { regions: Vec::new(), next: GUARD }
    }

    /// Adds a region and returns its address, a multiple of 4096, so that it is aligned for any element.
    pub fn add(&mut self, name: &str, bytes: Vec<u8>) -> u64 {
        let start = self.next;
        self.next = (start + bytes.len() as u64 + GUARD).next_multiple_of(4096);
        self.regions.push(Region { name: name.to_string(), start, bytes });
        start
    }

    /// The bytes of the region that starts at `addr`.
    pub fn bytes(&self, addr: u64) -> Option<&[u8]> {
        self.find(addr, 0).map(|i| &self.regions[i].bytes[..])
    }

    fn find(&self, addr: u64, len: u64) -> Option<usize> {
        let i = self.regions.partition_point(|r| r.start <= addr).checked_sub(1)?;
        let r = &self.regions[i];
        let end = addr.checked_add(len)?;
        (end <= r.start + r.bytes.len() as u64).then_some(i)
    }
}

impl Memory for VecMemory {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let len = out.len() as u64;
        let i = self.find(addr, len).ok_or(Fault { addr, len })?;
        let at = (addr - self.regions[i].start) as usize;
        out.copy_from_slice(&self.regions[i].bytes[at..at + out.len()]);
        Ok(())
    }
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        let len = bytes.len() as u64;
        let i = self.find(addr, len).ok_or(Fault { addr, len })?;
        let at = (addr - self.regions[i].start) as usize;
        self.regions[i].bytes[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn allocate(&mut self, len: u64, _align: u64) -> u64 {
        self.add("allocation", vec![0; len as usize])
    }
    fn region(&self, addr: u64) -> Option<(String, u64, u64)> {
        let i = self.regions.partition_point(|r| r.start <= addr.saturating_add(GUARD / 2)).checked_sub(1)?;
        let r = &self.regions[i];
        (addr < r.start + r.bytes.len() as u64 + GUARD / 2).then(|| (r.name.clone(), r.start, r.bytes.len() as u64))
    }
}
