//! A growing sequence of bytes.

use crate::cuda_tile::bytecode::tags::PADDING;

#[derive(Clone, Default)]
pub(super) struct Buffer(pub Vec<u8>);

impl Buffer {
    pub fn byte(&mut self, b: u8) {
        self.0.push(b);
    }
    pub fn bytes(&mut self, b: &[u8]) {
        self.0.extend_from_slice(b);
    }
    /// Seven bits to a byte, low ones first.
    pub fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }
    /// 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
    pub fn signed_varint(&mut self, n: i64) {
        self.varint((n << 1 ^ n >> 63) as u64);
    }
    pub fn i64s(&mut self, list: impl ExactSizeIterator<Item = i64>) {
        self.varint(list.len() as u64);
        list.for_each(|n| self.bytes(&n.to_le_bytes()));
    }
    pub fn i32s(&mut self, list: &[i32]) {
        self.varint(list.len() as u64);
        list.iter().for_each(|n| self.bytes(&n.to_le_bytes()));
    }
    pub fn pad(&mut self, alignment: usize) {
        let to = self.0.len().next_multiple_of(alignment);
        self.0.resize(to, PADDING);
    }
}
