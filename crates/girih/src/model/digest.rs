//! A digest of memory, to know whether anybody wrote to it: every byte counts, at about the speed of reading.
//!
//! In: stretches of memory. Out: 128 bits, the same for the same bytes. Keys are drawn once a process, so that two contents that
//! are not made for each other share a digest with a chance of about 2^-64.
//!
//! Pieces of memory have a digest of their own, which threads compute in any order. A piece is mixed as XXH3 does it: in eight
//! lanes of 64 bits the low half of a keyed word is multiplied by its high half and added to the lane, the word itself to the
//! lane beside; after each kilobyte lanes are scrambled. (<https://github.com/Cyan4973/xxHash>)

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::launch::pool;

/// A digest of stretches of memory, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest([u64; 2]);

impl Digest {
    pub fn number(self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

const LANES: usize = 8;
const STRIPE: usize = LANES * 8;
/// Stripes between two scrambles.
const BLOCK: usize = 16;
/// Bytes that one thread takes at a time.
const PIECE: usize = 256 << 10;
/// Bytes for which it is worth to wake another thread.
const SHARE: usize = 1 << 20;

type Lanes = [u64; LANES];
type Stripe = [u8; STRIPE];

/// Keys of the stripes of a block, of scrambling, and of the end.
struct Keys([Lanes; BLOCK + 3]);

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let random = RandomState::new();
        Keys(std::array::from_fn(|at| std::array::from_fn(|lane| random.hash_one((at, lane)))))
    })
}

/// The digest of stretches of memory, given by address and number of bytes, computed by up to `threads` threads.
///
/// # Safety
/// The memory may be read, and nobody writes to it meanwhile.
pub unsafe fn of(stretches: &[(u64, usize)], threads: usize) -> Digest {
    let mut pieces: Vec<(u64, usize)> = vec![];
    for &(address, bytes) in stretches {
        pieces.extend((0..bytes).step_by(PIECE).map(|at| (address + at as u64, PIECE.min(bytes - at))));
    }
    let results: Vec<[AtomicU64; 2]> = pieces.iter().map(|_| Default::default()).collect();
    let next = AtomicUsize::new(0);
    let keys = keys();
    let job = |_| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(&(address, bytes)), Some([low, high])) = (pieces.get(at), results.get(at)) else { return };
            let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
            // SAFETY: as the function's own contract says.
            let piece = unsafe { std::slice::from_raw_parts(from, bytes) };
            let Digest([a, b]) = mixed(piece, keys);
            low.store(a, Ordering::Relaxed);
            high.store(b, Ordering::Relaxed);
        }
    };
    let bytes: usize = stretches.iter().map(|(_, bytes)| bytes).sum();
    pool::global().run(threads.min(bytes.div_ceil(SHARE)), &job, &|| {});
    let words: Vec<u8> = results.iter().flatten().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
    let lengths: Vec<u8> = stretches.iter().flat_map(|(_, bytes)| (*bytes as u64).to_le_bytes()).collect();
    mixed(&[words, lengths].concat(), keys)
}

/// The digest of one piece, by the widest vectors that the processor has: all give the same bits.
fn mixed(bytes: &[u8], keys: &Keys) -> Digest {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has these instructions.
            return unsafe { by_avx512(bytes, keys) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has these instructions.
            return unsafe { by_avx2(bytes, keys) };
        }
    }
    by_lanes(bytes, keys, add)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn by_avx512(bytes: &[u8], keys: &Keys) -> Digest {
    use std::arch::x86_64::*;
    by_lanes(bytes, keys, |lanes, stripe, keys| {
        // SAFETY: all three have 64 bytes.
        let [sums, words, keys] = unsafe {
            [
                _mm512_loadu_si512(lanes.as_ptr().cast()),
                _mm512_loadu_si512(stripe.as_ptr().cast()),
                _mm512_loadu_si512(keys.as_ptr().cast()),
            ]
        };
        let keyed = _mm512_xor_si512(words, keys);
        let product = _mm512_mul_epu32(keyed, _mm512_srli_epi64::<32>(keyed));
        let beside = _mm512_shuffle_epi32::<0b01_00_11_10>(words);
        let sums = _mm512_add_epi64(sums, _mm512_add_epi64(product, beside));
        // SAFETY: the lanes have 64 bytes.
        unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sums) };
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn by_avx2(bytes: &[u8], keys: &Keys) -> Digest {
    use std::arch::x86_64::*;
    by_lanes(bytes, keys, |lanes, stripe, keys| {
        let halves = lanes.chunks_exact_mut(4).zip(stripe.chunks_exact(32).zip(keys.chunks_exact(4)));
        for (lanes, (stripe, keys)) in halves {
            // SAFETY: all three have 32 bytes.
            let [sums, words, keys] = unsafe {
                [
                    _mm256_loadu_si256(lanes.as_ptr().cast()),
                    _mm256_loadu_si256(stripe.as_ptr().cast()),
                    _mm256_loadu_si256(keys.as_ptr().cast()),
                ]
            };
            let keyed = _mm256_xor_si256(words, keys);
            let product = _mm256_mul_epu32(keyed, _mm256_srli_epi64::<32>(keyed));
            let beside = _mm256_shuffle_epi32::<0b01_00_11_10>(words);
            let sums = _mm256_add_epi64(sums, _mm256_add_epi64(product, beside));
            // SAFETY: these lanes have 32 bytes.
            unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
        }
    })
}

/// By a function that adds a stripe to the lanes. The vectors of this loop are written out: compilers make one of a word of each of
/// eight stripes, whose gathers read memory at a twelfth of its speed.
#[inline(always)]
fn by_lanes(bytes: &[u8], Keys(keys): &Keys, add: impl Fn(&mut Lanes, &Stripe, &Lanes)) -> Digest {
    let mut lanes: Lanes = std::array::from_fn(|lane| PRIMES[lane % 4].wrapping_add(bytes.len() as u64));
    let (stripes, rest) = bytes.as_chunks::<STRIPE>();
    let mut blocks = stripes.chunks_exact(BLOCK);
    for block in &mut blocks {
        block.iter().zip(keys).for_each(|(stripe, keys)| add(&mut lanes, stripe, keys));
        scramble(&mut lanes, &keys[BLOCK]);
    }
    blocks.remainder().iter().zip(keys).for_each(|(stripe, keys)| add(&mut lanes, stripe, keys));
    let mut last = [0; STRIPE];
    last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    add(&mut lanes, &last, &keys[BLOCK]);
    scramble(&mut lanes, &keys[BLOCK]);
    Digest([folded(&lanes, &keys[BLOCK + 1]), folded(&lanes, &keys[BLOCK + 2])])
}

const PRIMES: [u64; 4] = [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x27D4_EB2F_1656_67C5];

#[inline(always)]
fn add(lanes: &mut Lanes, stripe: &Stripe, keys: &Lanes) {
    let (words, _) = stripe.as_chunks::<8>();
    for (lane, (word, key)) in lanes.iter_mut().zip(words.iter().zip(keys)) {
        let keyed = u64::from_le_bytes(*word) ^ key;
        *lane = lane.wrapping_add((keyed & 0xFFFF_FFFF).wrapping_mul(keyed >> 32));
    }
    for (lanes, words) in lanes.chunks_exact_mut(2).zip(words.chunks_exact(2)) {
        if let ([a, b], [x, y]) = (lanes, words) {
            (*a, *b) = (a.wrapping_add(u64::from_le_bytes(*y)), b.wrapping_add(u64::from_le_bytes(*x)));
        }
    }
}

#[inline(always)]
fn scramble(lanes: &mut Lanes, keys: &Lanes) {
    for (lane, key) in lanes.iter_mut().zip(keys) {
        *lane = (*lane ^ (*lane >> 47) ^ key).wrapping_mul(PRIMES[0] | 1);
    }
}

/// The lanes as one word.
fn folded(lanes: &Lanes, keys: &Lanes) -> u64 {
    lanes.iter().zip(keys).fold(PRIMES[1], |all, (lane, key)| {
        let product = u128::from(lane ^ key) * u128::from(all ^ PRIMES[2]);
        (product as u64) ^ ((product >> 64) as u64) ^ all.rotate_left(23)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_every_width_give_the_same_bits() {
        for n in [0, 1, 63, 64, 1024, 5000] {
            let bytes: Vec<u8> = (0..n).map(|i| (i * 31 + i / 97) as u8).collect();
            assert_eq!(mixed(&bytes, keys()), by_lanes(&bytes, keys(), add), "{n}");
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has these instructions.
                assert_eq!(unsafe { by_avx2(&bytes, keys()) }, by_lanes(&bytes, keys(), add), "{n}");
            }
        }
    }

    fn of_slice(bytes: &[u8], threads: usize) -> Digest {
        // SAFETY: the slice is borrowed.
        unsafe { of(&[(bytes.as_ptr().expose_provenance() as u64, bytes.len())], threads) }
    }

    #[test]
    fn every_bit_counts_and_threads_do_not() {
        for n in [1, 7, 8, 63, 64, 65, 1023, 1024, 1500, PIECE - 1, PIECE + 100, 3 * PIECE] {
            let mut bytes: Vec<u8> = (0..n).map(|i| (i * 7 + i / 251) as u8).collect();
            let first = of_slice(&bytes, 1);
            assert_eq!(first, of_slice(&bytes, 3), "{n}");
            for at in (0..n).step_by(n / 10 + 1).chain([n - 1]) {
                for bit in 0..8 {
                    bytes[at] ^= 1 << bit;
                    assert_ne!(first, of_slice(&bytes, 2), "byte {at} of {n}, bit {bit}");
                    bytes[at] ^= 1 << bit;
                }
            }
            assert_eq!(first, of_slice(&bytes, 1));
        }
    }

    #[test]
    fn order_and_length_count() {
        let zeros = [0; 200];
        assert_ne!(of_slice(&zeros[..100], 1), of_slice(&zeros, 1));
        let mut words: Vec<u8> = (0u64..4096).flat_map(u64::to_le_bytes).collect();
        let first = of_slice(&words, 1);
        // Two words change places: in one lane, in two, across blocks.
        for (a, b) in [(0, 8), (0, 1), (3, 128 + 3), (5, 4000)] {
            (0..8).for_each(|i| words.swap(8 * a + i, 8 * b + i));
            assert_ne!(first, of_slice(&words, 1), "{a} and {b}");
            (0..8).for_each(|i| words.swap(8 * a + i, 8 * b + i));
        }
        let at = words.as_ptr().expose_provenance() as u64;
        // SAFETY: the vector is borrowed.
        let split = |n: usize| unsafe { of(&[(at, n), (at + n as u64, words.len() - n)], 1) };
        assert_ne!(split(8), split(16));
    }
}
