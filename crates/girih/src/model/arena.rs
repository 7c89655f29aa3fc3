//! Where temporary arrays lie: one range of memory, shared by those that are never alive at the same time.
//!
//! In: how many bytes each array takes, and from which step to which it is needed. Out: an offset for each, and how long
//! the whole is. Arrays are placed from the largest to the smallest, each at the lowest offset where no array that lives
//! at the same time lies (greedy by size; Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
//! Inference", 2020).
//!
//! ```text
//! a: 100 bytes, steps 0..1    b: 50, steps 1..2    c: 100, steps 2..3      a at 0, b at 128, c at 0: 178 bytes
//! ```
//! Invariants: offsets are multiples of [`ALIGN`]; two arrays whose steps meet (ends included) do not overlap.

/// Arrays start at a cache line.
pub const ALIGN: u64 = 64;

/// An array that is written by step `first` and last used by step `last`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    pub bytes: u64,
    pub first: u32,
    pub last: u32,
}

impl Life {
    fn meets(&self, other: &Life) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The offset of each array, and the length of the arena; `None` when it cannot be counted.
pub fn place(lives: &[Life]) -> Option<(Vec<u64>, u64)> {
    let mut order: Vec<usize> = (0..lives.len()).collect();
    order.sort_by_key(|&i| lives.get(i).map(|l| (std::cmp::Reverse(l.bytes), l.first)));
    let mut offsets = vec![0; lives.len()];
    // (start, end, life) of those placed, by start.
    let mut placed: Vec<(u64, u64, Life)> = Vec::new();
    let mut length = 0;
    for i in order {
        let Some(life) = lives.get(i) else { continue };
        let mut at = 0u64;
        for (start, end, other) in &placed {
            if !life.meets(other) {
                continue;
            }
            if at.checked_add(life.bytes)? <= *start {
                break;
            }
            at = at.max(end.checked_next_multiple_of(ALIGN)?);
        }
        let end = at.checked_add(life.bytes)?;
        if let Some(offset) = offsets.get_mut(i) {
            *offset = at;
        }
        let position = placed.partition_point(|p| p.0 <= at);
        placed.insert(position, (at, end, *life));
        length = length.max(end);
    }
    Some((offsets, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(bytes: u64, first: u32, last: u32) -> Life {
        Life { bytes, first, last }
    }

    #[test]
    fn memory_is_used_again_when_its_array_is_dead() {
        // A chain: each array is read by the step after the one that writes it.
        let chain = [life(100, 0, 1), life(50, 1, 2), life(100, 2, 3)];
        assert_eq!(place(&chain), Some((vec![0, 128, 0], 178)));
        // All alive together: 100 rounded up to 128, three times, the last one unpadded.
        let together = [life(100, 0, 9); 3];
        assert_eq!(place(&together), Some((vec![0, 128, 256], 356)));
        assert_eq!(place(&[]), Some((vec![], 0)));
        assert_eq!(place(&[life(u64::MAX, 0, 1), life(u64::MAX, 0, 1)]), None);
    }

    #[test]
    fn a_small_array_goes_into_a_gap() {
        // x and z take 0..1024 one after the other; y, alive throughout, lies behind; w fits before z ends.
        let lives = [life(1024, 0, 1), life(64, 0, 5), life(512, 3, 5), life(256, 4, 5)];
        assert_eq!(place(&lives), Some((vec![0, 1024, 0, 512], 1088)));
    }

    #[test]
    fn arrays_alive_together_never_overlap() {
        let mut seed = 12345u64;
        let mut random = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let lives: Vec<Life> = (0..30)
                .map(|_| {
                    let first = random(20) as u32;
                    life(random(5000), first, first + random(6) as u32)
                })
                .collect();
            let (offsets, length) = place(&lives).unwrap();
            for (i, a) in lives.iter().enumerate() {
                assert!(offsets[i] % ALIGN == 0 && offsets[i] + a.bytes <= length);
                for (j, b) in lives.iter().enumerate().skip(i + 1) {
                    let apart = offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                    assert!(apart || !a.meets(b) || a.bytes == 0 || b.bytes == 0);
                }
            }
        }
    }
}
