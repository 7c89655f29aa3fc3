//! Banks of a GPU's shared memory.
//!
//! In: the addresses of the lanes of a warp. Out: the number of passes over the memory (wavefronts) that their request
//! takes, and the least number for any addresses.
//!
//! ```text
//! tile[tx*32]   f32, 32 lanes: one bank, 32 words     32 wavefronts; 1 would do
//! tile[tx*33]   32 banks                               1 wavefront
//! ```
//! There are 32 banks of 4-byte words; lanes that access the same word are served together. Lanes that move 8 bytes are
//! served by halves of a warp, lanes that move 16 bytes by quarters; twice as many lanes are served at once if every
//! lane has the same address as its neighbour, or as the lane two further on. (The hardware counters of an H200 show
//! the last; `tests/counted.py` compares them.)

/// Lanes of a warp.
const LANES: u32 = 32;
const BANKS: usize = 32;
/// Bytes of a wavefront that uses every bank.
pub const BANK_BYTES: u64 = 4 * BANKS as u64;
const NONE: u8 = u8::MAX;

/// Returns where a byte lies after the 16-byte pieces of rows are exchanged, so that pieces of one column are in different
/// banks. Pieces are exchanged within `swizzle` bytes: 32, 64 or 128, or 0 for no exchange. The address of
/// byte 0 must be a multiple of `8 * swizzle`.
pub fn swizzled(byte: u64, swizzle: u32) -> u64 {
    let pieces = u64::from(swizzle / 16).saturating_sub(1);
    byte ^ (byte >> 7 & pieces) << 4
}

/// The wavefronts of one request of `lanes`, `bytes` for each lane, and the least number of them.
pub fn wavefronts(address: &[u64], lanes: u32, bytes: u32) -> (u32, u32) {
    let alike = |apart: usize| {
        let wants = |lane: usize| lanes >> lane & 1 == 1;
        (0..LANES as usize).all(|l| !wants(l) || !wants(l ^ apart) || address[l] == address[l ^ apart])
    };
    let at_once = match bytes {
        ..=4 => LANES,
        _ if alike(1) || alike(2) => (LANES * 8 / bytes).max(1),
        _ => (LANES * 4 / bytes).max(1),
    };
    let (mut taken, mut least) = (0, 0);
    for first in (0..LANES).step_by(at_once as usize) {
        let some = lanes & (u32::MAX >> (LANES - at_once)) << first;
        if some != 0 {
            taken += conflicts(address, some, bytes);
            least += 1;
        }
    }
    (taken, least)
}

/// The most words that the lanes access in one bank.
fn conflicts(address: &[u64], lanes: u32, bytes: u32) -> u32 {
    // The words of a bank form a chain; `heads` has the first of each bank.
    let mut heads = [NONE; BANKS];
    let mut words = [(0u64, NONE); 64];
    let mut counts = [0u8; BANKS];
    let (mut used, mut most) = (0usize, 0);
    let mut left = lanes;
    while left != 0 {
        let l = left.trailing_zeros() as usize;
        left &= left - 1;
        let last = (address[l] + u64::from(bytes.max(1)) - 1) / 4;
        for word in address[l] / 4..=last {
            let bank = (word % BANKS as u64) as usize;
            let mut at = heads[bank];
            while at != NONE && words[at as usize].0 != word {
                at = words[at as usize].1;
            }
            if at != NONE || used == words.len() {
                continue;
            }
            words[used] = (word, heads[bank]);
            heads[bank] = used as u8;
            used += 1;
            counts[bank] += 1;
            most = most.max(counts[bank]);
        }
    }
    u32::from(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(f: impl Fn(u64) -> u64) -> [u64; 32] {
        std::array::from_fn(|l| f(l as u64))
    }

    #[test]
    fn banks() {
        let all = u32::MAX;
        assert_eq!(wavefronts(&at(|l| l * 4), all, 4), (1, 1));
        assert_eq!(wavefronts(&at(|l| l * 128), all, 4), (32, 1));
        assert_eq!(wavefronts(&at(|l| l * 132), all, 4), (1, 1));
        assert_eq!(wavefronts(&at(|l| l * 8), all, 4), (2, 1));
        assert_eq!(wavefronts(&at(|_| 64), all, 4), (1, 1));
        assert_eq!(wavefronts(&at(|l| (l % 2) * 128), all, 4), (2, 1));
        assert_eq!(wavefronts(&at(|l| l * 128), 0b111, 4), (3, 1));
        // Two lanes share a word.
        assert_eq!(wavefronts(&at(|l| l * 2), all, 2), (1, 1));
        assert_eq!(wavefronts(&at(|l| l * 8), all, 8), (2, 2));
        assert_eq!(wavefronts(&at(|l| l * 16), all, 16), (4, 4));
        assert_eq!(wavefronts(&at(|l| l * 16), 0xff, 16), (1, 1));
        assert_eq!(wavefronts(&at(|l| l * 128), all, 16), (32, 4));
        assert_eq!(wavefronts(&at(|l| l * 144), all, 16), (4, 4));
        assert_eq!(wavefronts(&at(|l| l * 4), 0, 4), (0, 0));
        // Neighbours access the same word, or lanes two apart do; their words may meet in a bank.
        assert_eq!(wavefronts(&at(|l| l / 2 * 16), all, 16), (2, 2));
        assert_eq!(wavefronts(&at(|l| (l & 1 | l >> 1 & 14) * 16), all, 16), (2, 2));
        assert_eq!(wavefronts(&at(|l| l / 4 * 16), all, 16), (2, 2));
        assert_eq!(wavefronts(&at(|l| l / 8 * 128), all, 16), (4, 2));
        assert_eq!(wavefronts(&at(|l| l / 2 * 8), all, 8), (1, 1));
        // Equal addresses four lanes apart do not help, nor do equal halves of the warp.
        assert_eq!(wavefronts(&at(|l| l % 4 * 16), all, 16), (4, 4));
        assert_eq!(wavefronts(&at(|l| l % 16 * 8), all, 8), (2, 2));
    }
}
