//! Tables of distinct items, each a run of bytes: strings, types, constants and debug attributes.

use rustc_hash::FxHashMap;

use super::buffer::Buffer;

/// Items in the order in which they were first requested.
#[derive(Default)]
pub(super) struct Table {
    numbers: FxHashMap<Vec<u8>, u64>,
    items: Vec<Vec<u8>>,
}

impl Table {
    /// The number of an item, from 0.
    pub fn number(&mut self, item: &[u8]) -> u64 {
        if let Some(&n) = self.numbers.get(item) {
            return n;
        }
        let n = self.items.len() as u64;
        self.numbers.insert(item.to_vec(), n);
        self.items.push(item.to_vec());
        n
    }
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// The count, the offset of each item in `width` bytes, the items.
    pub fn write(&self, width: usize, out: &mut Buffer) {
        out.varint(self.items.len() as u64);
        out.pad(width);
        let mut offset = 0u64;
        for item in &self.items {
            out.bytes(&offset.to_le_bytes()[..width]);
            offset += item.len() as u64;
        }
        self.items.iter().for_each(|item| out.bytes(item));
    }
}
