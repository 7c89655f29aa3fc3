//! The peak rates of this machine, measured once and kept: multiply-adds of f32, of bf16 and of int8, and bytes read from memory
//! per second.
//!
//! In: a number of threads. Out: their rates, from about a fifth of a second of work on all of them together. The
//! multiply-adds run in registers, in enough independent chains to hide their latency; the reads run through more
//! memory than the caches hold.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use girih_compiler::tile::target::Gpu;

use crate::launch::{bandwidth, pool};
use crate::system::files::{read_regular, replace};
use crate::system::machine;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// Operations on f32 per second; a multiply-add counts as two.
    pub flops: f64,
    /// Bytes per second.
    pub bytes: f64,
    /// Operations of products of bf16 and of int8: by instructions of their own, or as f32 where those are slower or there are none.
    pub bf16: f64,
    pub int8: f64,
}

impl Limits {
    /// The limits for a number of threads: from a note in `dir` where there is one, else measured and noted there.
    pub fn of(threads: u32, dir: Option<&Path>) -> Limits {
        let features = machine::features().join(",");
        let name = format!(
            "limits-{}",
            &blake3::hash(
                format!("6 {threads} {features} {} {}", machine::processor(), cfg!(debug_assertions)).as_bytes()
            )
            .to_hex()[..16]
        );
        let note = dir.map(|d| d.join(name));
        let read = |text: String| {
            let mut numbers = text.split_whitespace().map(str::parse::<f64>);
            let mut next = || numbers.next()?.ok().filter(|rate| *rate > 0.0);
            Some(Limits { flops: next()?, bytes: next()?, bf16: next()?, int8: next()? })
        };
        if let Some(found) = note.as_deref().and_then(|n| String::from_utf8(read_regular(n).ok()?).ok()).and_then(read)
        {
            return found;
        }
        let n = threads as usize;
        let flops = measure(n, &|| Some(multiply_adds(ROUNDS))).unwrap_or(1e9);
        let dots = |dot: fn(u32) -> Option<(f64, f32)>| measure(n, &|| dot(ROUNDS)).map_or(flops, |own| own.max(flops));
        let (bf16, int8) = (dots(dots_of_bf16), dots(dots_of_int8));
        let limits = Limits { flops, bytes: bandwidth::of_memory(threads).unwrap_or(1e9), bf16, int8 };
        if let Some(note) = note {
            // Without the note the next process measures again.
            let Limits { flops, bytes, bf16, int8 } = limits;
            let _ = replace(&note, format!("{flops} {bytes} {bf16} {int8}\n").as_bytes());
        }
        limits
    }

    /// The peak rates of a GPU, as its maker gives them; nothing is measured.
    pub fn of_gpu(gpu: &Gpu) -> Limits {
        let products = gpu.products.max(gpu.grouped);
        Limits { flops: gpu.peak, bytes: gpu.bandwidth, bf16: products, int8: 2.0 * products }
    }

    /// The least seconds that `flops` operations on elements of `bits` bits and `bytes` bytes of traffic can take.
    pub fn seconds(&self, flops: f64, bits: u32, bytes: f64) -> f64 {
        let rate = match bits {
            ..=8 => self.int8,
            9..=16 => self.bf16,
            _ => self.flops,
        };
        (flops / rate).max(bytes / self.bytes)
    }
}

/// The best rate of a few short runs of `work` on every thread; `work` returns the amount of its work.
pub(super) fn best(threads: usize, work: &(dyn Fn(usize) -> f64 + Sync)) -> f64 {
    let mut best = 0f64;
    let start = Instant::now();
    // In the first run on much memory the system may first have to map it.
    for run in 0.. {
        if run >= 3 && start.elapsed() >= Duration::from_millis(100) {
            break;
        }
        let done = Mutex::new(0.0);
        let one = Instant::now();
        pool::global().run(
            threads,
            &|slot| {
                let amount = work(slot);
                *done.lock().unwrap_or_else(PoisonError::into_inner) += amount;
            },
            &|| {},
        );
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        best = best.max(done / one.elapsed().as_secs_f64());
    }
    best
}

/// Rounds of a chain of multiply-adds in one piece of work.
const ROUNDS: u32 = 200_000;

/// The rate of a function that returns its number of operations and their result; `None` where the processor cannot run it.
fn measure(threads: usize, work: &(dyn Fn() -> Option<(f64, f32)> + Sync)) -> Option<f64> {
    work()?;
    let rate = best(threads, &|_| {
        let (operations, result) = work().unwrap_or_default();
        std::hint::black_box(result);
        operations
    });
    Some(rate)
}

fn dots_of_bf16(rounds: u32) -> Option<(f64, f32)> {
    #[cfg(target_arch = "x86_64")]
    if machine::features().contains(&"amx-bf16") {
        // SAFETY: the processor has the instructions, and the system lets this process use them.
        return Some((f64::from(rounds / 4) * 4.0 * 2.0 * 512.0 * 16.0, unsafe { x86::tiles::<false>(rounds / 4) }));
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512bf16") {
        // SAFETY: the processor has the instructions.
        return Some((f64::from(rounds) * 2.0 * 32.0 * 16.0, unsafe { x86::pairs(rounds) }));
    }
    let _ = rounds;
    None
}

fn dots_of_int8(rounds: u32) -> Option<(f64, f32)> {
    #[cfg(target_arch = "x86_64")]
    if machine::features().contains(&"amx-int8") {
        // SAFETY: as above.
        return Some((f64::from(rounds / 4) * 4.0 * 2.0 * 1024.0 * 16.0, unsafe { x86::tiles::<true>(rounds / 4) }));
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512vnni") {
        // SAFETY: the processor has the instructions.
        return Some((f64::from(rounds) * 2.0 * 64.0 * 16.0, unsafe { x86::quads(rounds) }));
    }
    let _ = rounds;
    None
}

/// How many operations were done, and their result.
fn multiply_adds(rounds: u32) -> (f64, f32) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions.
            return (f64::from(rounds) * 2.0 * 16.0 * 16.0, unsafe { x86::wide(rounds) });
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return (f64::from(rounds) * 2.0 * 12.0 * 8.0, unsafe { x86::narrow(rounds) });
        }
    }
    let mut chains = [[std::hint::black_box(0.5f32); 4]; 12];
    for _ in 0..rounds {
        for chain in &mut chains {
            for x in chain {
                *x = *x * 0.999 + 0.002;
            }
        }
    }
    (f64::from(rounds) * 2.0 * 12.0 * 4.0, chains.iter().flatten().sum())
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    #[target_feature(enable = "avx512f")]
    pub fn wide(rounds: u32) -> f32 {
        // The inputs are opaque: the compiler could compute constants beforehand.
        let (a, b) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(0.002)));
        let mut chains = [0; 16].map(|x| _mm512_set1_ps(black_box(x as f32)));
        for _ in 0..rounds {
            for x in &mut chains {
                *x = _mm512_fmadd_ps(*x, a, b);
            }
        }
        chains.iter().map(|x| _mm512_reduce_add_ps(*x)).sum()
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    pub fn pairs(rounds: u32) -> f32 {
        let (a, b) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(0.002)));
        let (a, b) = (_mm512_cvtne2ps_pbh(a, a), _mm512_cvtne2ps_pbh(b, b));
        let mut chains = [0; 16].map(|x| _mm512_set1_ps(black_box(x as f32)));
        for _ in 0..rounds {
            for x in &mut chains {
                *x = _mm512_dpbf16_ps(*x, a, b);
            }
        }
        chains.iter().map(|x| _mm512_reduce_add_ps(*x)).sum()
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub fn quads(rounds: u32) -> f32 {
        let (a, b) = (_mm512_set1_epi8(black_box(3)), _mm512_set1_epi8(black_box(-2)));
        let mut chains = [0; 16].map(|x| _mm512_set1_epi32(black_box(x)));
        for _ in 0..rounds {
            for x in &mut chains {
                *x = _mm512_dpbusd_epi32(*x, a, b);
            }
        }
        chains.iter().map(|x| _mm512_reduce_add_epi32(*x) as f32).sum()
    }

    /// Products of two tiles each, four at a time in turn: of bytes, or of pairs of bf16. Not every assembler knows the
    /// instructions, so they are written as they are encoded.
    ///
    /// # Safety
    /// The processor has tiles, and the system lets this process use them.
    pub unsafe fn tiles<const BYTES: bool>(rounds: u32) -> f32 {
        // Configures eight tiles: palette 1, 16 rows of 64 bytes.
        let mut shape = [0u8; 64];
        shape[0] = 1;
        for tile in 0..8 {
            (shape[16 + 2 * tile], shape[48 + tile]) = (64, 16);
        }
        // SAFETY: `shape` is a description of tiles; the instructions touch nothing but them.
        unsafe {
            std::arch::asm!(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00", in("rax") shape.as_ptr()); // ldtilecfg [rax]
            for _ in 0..rounds {
                if BYTES {
                    // tdpbusd tmm0..tmm3, tmm4, tmm6
                    std::arch::asm!(
                        ".byte 0xc4, 0xe2, 0x49, 0x5e, 0xc4, 0xc4, 0xe2, 0x49, 0x5e, 0xcc",
                        ".byte 0xc4, 0xe2, 0x49, 0x5e, 0xd4, 0xc4, 0xe2, 0x49, 0x5e, 0xdc"
                    );
                } else {
                    // tdpbf16ps tmm0..tmm3, tmm4, tmm6
                    std::arch::asm!(
                        ".byte 0xc4, 0xe2, 0x4a, 0x5c, 0xc4, 0xc4, 0xe2, 0x4a, 0x5c, 0xcc",
                        ".byte 0xc4, 0xe2, 0x4a, 0x5c, 0xd4, 0xc4, 0xe2, 0x4a, 0x5c, 0xdc"
                    );
                }
            }
            std::arch::asm!(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"); // tilerelease
        }
        0.0
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn narrow(rounds: u32) -> f32 {
        let (a, b) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(0.002)));
        let mut chains = [0; 12].map(|x| _mm256_set1_ps(black_box(x as f32)));
        for _ in 0..rounds {
            for x in &mut chains {
                *x = _mm256_fmadd_ps(*x, a, b);
            }
        }
        chains.iter().map(|x| _mm256_cvtss_f32(*x)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_measured_once() {
        let dir = std::env::temp_dir().join(format!("girih-limits-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let first = Limits::of(1, Some(&dir));
        // No processor is faster than this; one may seem slow because of other work.
        assert!(
            [first.flops, first.bytes, first.bf16, first.int8].iter().all(|rate| *rate > 0.0 && *rate < 1e14),
            "{first:?}"
        );
        assert_eq!(Limits::of(1, Some(&dir)), first);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_slower_of_two_limits_counts() {
        let limits = Limits { flops: 100.0, bytes: 10.0, bf16: 200.0, int8: 400.0 };
        assert_eq!(
            [limits.seconds(200.0, 32, 10.0), limits.seconds(100.0, 32, 50.0), limits.seconds(600.0, 16, 10.0)],
            [2.0, 5.0, 3.0]
        );
    }
}
