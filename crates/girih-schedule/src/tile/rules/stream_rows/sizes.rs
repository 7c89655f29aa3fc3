//! How many rows and keys a block takes at once.

use crate::tile::heuristics::stream_rows::MANY;
use crate::tile::target::{Capability, MemoryKind, Target};

/// Rows of a block, and how many keys it takes at once.
pub fn sizes(rows: Option<u64>, keys: Option<u64>, room: &Room<'_>) -> Option<(u64, u64)> {
    let target = room.target;
    if target.has(Capability::Threads) {
        // Four warps with the rows of one product each; scores and sums are in registers where the matrix unit makes them.
        let of = |n: Option<u64>, most: u64| n.map_or(64, |n| n.max(1).next_multiple_of(16).min(most));
        let smaller = |n: u64| (n / 2).next_multiple_of(16).min(n);
        // Of long rows few blocks fit a multiprocessor; eight warps share what they are multiplied with.
        let long = room.sum == 0 && room.deep >= 128 && rows.is_some_and(|n| n >= MANY);
        let (mut rows, mut keys) = (of(rows, if long { 128 } else { 64 }), of(keys, 64));
        while !room.holds(rows, keys) {
            (rows, keys) = match (rows, keys) {
                (16, 16) => return None,
                (rows, keys) if keys >= rows => (rows, smaller(keys)),
                (rows, keys) => (smaller(rows), keys),
            };
        }
        return Some((rows, keys));
    }
    // The scores and the keys' block stay in the second cache with room to spare.
    let most = if target.cache(2) >= 1 << 20 { 128 } else { 64 };
    let rows = rows.map_or(32, |m| m.max(1).next_multiple_of(8).min(64));
    Some((rows, keys.map_or(most, |k| k.max(1).next_multiple_of(16).min(most))))
}

/// What a block's tiles have to fit into.
pub struct Room<'a> {
    pub target: &'a Target,
    /// Elements of a row of queries and keys, and of values.
    pub deep: u64,
    pub width: u64,
    /// Bytes of an element of these, and of a score and a sum; 0 where they are in registers.
    pub operand: u64,
    pub sum: u64,
}

impl Room<'_> {
    /// Whether shared memory holds the tiles of so many rows and keys, with a fifth of it to spare for longer rows.
    fn holds(&self, rows: u64, keys: u64) -> bool {
        let operands = ((rows + keys) * self.deep + keys * self.width) * self.operand;
        let sums = rows * (keys + self.width) * self.sum;
        operands + sums <= self.target.bytes_of(MemoryKind::Shared) / 5 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_shared_memory() {
        let of = |name: &str, deep: u64, bytes: u64, rows: Option<u64>| {
            let target = Target::named(name).unwrap();
            sizes(
                rows,
                None,
                &Room { target: &target, deep, width: deep, operand: bytes, sum: if bytes == 2 { 0 } else { bytes } },
            )
        };
        assert_eq!(of("sm_90a", 64, 2, None), Some((64, 64)));
        assert_eq!(of("sm_90a", 64, 2, Some(7)), Some((16, 64)));
        assert_eq!(of("sm_120", 128, 2, None), Some((64, 64)));
        assert_eq!(of("sm_90a", 128, 2, Some(4096)), Some((128, 64)));
        assert_eq!(of("sm_90a", 64, 2, Some(4096)), Some((64, 64)));
        assert_eq!(of("sm_120", 128, 4, None), Some((32, 32)));
        assert_eq!(of("sm_120", 256, 8, None), None);
        assert_eq!(of("sm_80", 256, 8, None), Some((16, 16)));
    }
}
