//! The weights of a model as one run of bytes, which a file holds or, where they are few, the source.
//!
//! ```text
//! 0     "girih weights\n", two zeros, the hash of the rest, zeros up to 64
//! 64    each array, row-major and little-endian, at a multiple of 64
//! ```

use std::collections::BTreeMap;

use girih_compiler::loops::model::ArrayId;

/// Arrays start at a cache line.
const ALIGN: usize = 64;
const MAGIC: &[u8; 16] = b"girih weights\n\0\0";
/// As many bytes stand in the source.
const FEW: usize = 4096;

#[derive(Default)]
pub struct Weights {
    pub bytes: Vec<u8>,
    /// Where each array begins.
    pub at: BTreeMap<ArrayId, usize>,
    /// True if a few weights may stand in the source.
    in_source: bool,
}

impl Weights {
    pub fn new(arrays: &[(ArrayId, &[u8])], in_source: bool) -> Weights {
        if arrays.is_empty() {
            return Weights::default();
        }
        let mut weights = Weights { bytes: vec![0; ALIGN], at: BTreeMap::new(), in_source };
        for (id, bytes) in arrays {
            weights.at.insert(*id, weights.bytes.len());
            weights.bytes.extend_from_slice(bytes);
            weights.bytes.resize(weights.bytes.len().next_multiple_of(ALIGN), 0);
        }
        let (head, rest) = weights.bytes.split_at_mut(ALIGN);
        let (magic, hash) = head.split_at_mut(MAGIC.len());
        magic.copy_from_slice(MAGIC);
        if let Some(to) = hash.get_mut(..32) {
            to.copy_from_slice(blake3::hash(rest).as_bytes());
        }
        weights
    }

    /// Returns true if the weights are a file of their own.
    pub fn is_file(&self) -> bool {
        self.bytes.len() > if self.in_source { FEW } else { 0 }
    }

    /// The bytes that tell this file from others.
    pub fn head(&self) -> &[u8] {
        self.bytes.get(..MAGIC.len() + 32).unwrap_or_default()
    }
}

/// Bytes as the elements of a C array.
pub fn list(bytes: &[u8]) -> String {
    let lines = bytes.chunks(24).map(|line| line.iter().map(u8::to_string).collect::<Vec<_>>().join(","));
    lines.map(|line| format!("  {line},\n")).collect()
}
