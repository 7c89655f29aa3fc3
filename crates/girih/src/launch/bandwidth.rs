//! This machine's memory bandwidth by the size of the working set: from the nearest cache to main memory.
//!
//! In: a number of threads. Out: for a few sizes the rates of reading, of copying and of `a[i] = b[i] + s*c[i]` (triad), the last two
//! with ordinary and with streaming (non-temporal) stores. Bytes read and bytes written both count. A measurement takes some seconds;
//! its result is kept.

use std::path::Path;

use crate::launch::limits::best;
use crate::memory::pages::Pages;
use crate::system::files::{read_regular, replace};
use crate::system::machine;

/// The kinds of traffic, in the order of [`Bandwidth::rates`].
pub const KINDS: [&str; 5] = ["read", "copy", "triad", "streamed copy", "streamed triad"];

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bandwidth {
    /// The working set of all threads together.
    pub bytes: u64,
    /// Bytes a second, by [`KINDS`].
    pub rates: [f64; 5],
}

impl Bandwidth {
    /// The rates for a number of threads, by size: from a note in `dir` where there is one, else measured and noted
    /// there.
    pub fn of(threads: u32, dir: Option<&Path>) -> Vec<Bandwidth> {
        Bandwidth::of_sizes(threads, dir, &sizes(threads))
    }

    fn of_sizes(threads: u32, dir: Option<&Path>, sizes: &[u64]) -> Vec<Bandwidth> {
        let machine = format!("1 {threads} {} {}", machine::processor(), cfg!(debug_assertions));
        let name = format!("bandwidth-{}", &blake3::hash(machine.as_bytes()).to_hex()[..16]);
        let note = dir.map(|d| d.join(name));
        let read = |text: String| text.lines().map(Bandwidth::parse).collect::<Option<Vec<_>>>();
        let noted = note.as_deref().and_then(|n| String::from_utf8(read_regular(n).ok()?).ok()).and_then(read);
        if let Some(found) = noted.filter(|found| !found.is_empty()) {
            return found;
        }
        let found: Vec<Bandwidth> = sizes.iter().filter_map(|bytes| measure(threads as usize, *bytes)).collect();
        if let Some(note) = note {
            // Without the note the next process measures again.
            let _ = replace(&note, found.iter().map(Bandwidth::line).collect::<String>().as_bytes());
        }
        found
    }

    fn line(&self) -> String {
        let [a, b, c, d, e] = self.rates;
        format!("{} {a} {b} {c} {d} {e}\n", self.bytes)
    }

    fn parse(line: &str) -> Option<Bandwidth> {
        let mut words = line.split_whitespace();
        let bytes = words.next()?.parse().ok()?;
        let rates: Vec<f64> = words.map(|w| w.parse().ok().filter(|rate| *rate > 0.0)).collect::<Option<_>>()?;
        Some(Bandwidth { bytes, rates: rates.try_into().ok()? })
    }
}

/// Half of each cache, and more than all of them hold.
fn sizes(threads: u32) -> Vec<u64> {
    let (target, n) = (machine::target(1), u64::from(threads.max(1)));
    let free = machine::memory_available().unwrap_or(1 << 30);
    let all = target.cache(3) + n * target.cache(2);
    let main = (4 * all).clamp(64 << 20, 1 << 30).min(free / 4);
    let mut sizes = vec![n * target.cache(1) / 2, n * target.cache(2) / 2, (target.cache(3) / 2).min(64 << 20), main];
    // Where a level holds no more than the ones before it, it says nothing.
    let mut most = 0;
    sizes.retain(|bytes| {
        let more = *bytes > most && *bytes <= main;
        most = most.max(*bytes);
        more
    });
    sizes
}

/// Bytes that `threads` threads read from main memory in a second; `None` where no memory is free to measure it on.
pub fn of_memory(threads: u32) -> Option<f64> {
    let (n, bytes) = (threads.max(1) as usize, *sizes(threads).last()?);
    Some(Region::of(n, bytes)?.rate(0))
}

/// Bytes moved in one go, at least: starting threads then counts for little.
const AT_ONCE: usize = 32 << 20;
/// Parts of a thread begin with a line of the caches, of arrays that are whole vectors.
const WHOLE: usize = 6 * 64 * 16;

fn measure(threads: usize, bytes: u64) -> Option<Bandwidth> {
    let mut region = Region::of(threads, bytes)?;
    let rates = std::array::from_fn(|kind| region.rate(kind));
    Some(Bandwidth { bytes: (region.part * threads) as u64, rates })
}

/// Memory divided evenly among the threads.
struct Region {
    pages: Pages,
    threads: usize,
    part: usize,
}

impl Region {
    fn of(threads: usize, bytes: u64) -> Option<Region> {
        let part = usize::try_from(bytes).ok()? / threads.max(1) / WHOLE * WHOLE;
        let mut pages = Pages::zeroed((part > 0).then_some(part * threads)?)?;
        // Pages that nobody wrote are all the same page.
        pages.bytes_mut().chunks_mut(4096).for_each(|page| page.fill(1));
        Some(Region { pages, threads, part })
    }

    /// Bytes a second of a kind of traffic, all threads at it.
    fn rate(&mut self, kind: usize) -> f64 {
        let (start, part) = (self.pages.bytes_mut().as_mut_ptr() as usize, self.part);
        let rounds = (AT_ONCE / part).max(1);
        best(self.threads, &|slot| {
            // SAFETY: `part` bytes from here on are this thread's alone, and any bits are numbers.
            let mine = unsafe { std::slice::from_raw_parts_mut((start + slot * part) as *mut f32, part / 4) };
            (0..rounds).map(|_| traffic(kind, mine)).sum()
        })
    }
}

/// Moves numbers within an array; gives the bytes that were moved.
fn traffic(kind: usize, all: &mut [f32]) -> f64 {
    let parts = match kind {
        0 => 1,
        1 | 3 => 2,
        _ => 3,
    };
    let n = all.len() / parts;
    let moved = (4 * n * parts) as f64;
    let (to, from) = all.split_at_mut(if kind == 0 { 0 } else { n });
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions; parts begin at multiples of 64 bytes and are whole vectors.
            unsafe { x86::wide(kind, to, from) };
        } else {
            // SAFETY: every processor of this kind has the instructions; the rest as above.
            unsafe { x86::narrow(kind, to, from) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    match kind {
        0 => _ = std::hint::black_box(from.iter().fold(0.0, |a, b| a + b)),
        1 | 3 => to.copy_from_slice(from),
        _ => {
            let (b, c) = from.split_at(n);
            to.iter_mut().zip(b.iter().zip(c)).for_each(|(a, (b, c))| *a = b + 0.5 * c);
        }
    }
    moved
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    macro_rules! traffic {
        ($name:ident, $feature:literal, $lanes:literal, $load:ident, $store:ident, $stream:ident, $add:ident, $mul:ident, $set:ident) => {
            /// # Safety
            /// The processor has the instructions; the slices begin at multiples of 64 bytes and hold whole groups of vectors.
            #[target_feature(enable = $feature)]
            pub unsafe fn $name(kind: usize, to: &mut [f32], from: &[f32]) {
                let (a, b) = (to.as_mut_ptr(), from.as_ptr());
                // SAFETY: all offsets lie within the slices.
                unsafe {
                    let c = b.add(to.len());
                    let half = $set(0.5);
                    match kind {
                        0 => {
                            let mut sums = [$set(0.0); 8];
                            for group in (0..from.len() / (8 * $lanes)).map(|g| g * 8 * $lanes) {
                                for (i, sum) in sums.iter_mut().enumerate() {
                                    *sum = $add(*sum, $load(b.add(group + i * $lanes)));
                                }
                            }
                            std::hint::black_box(sums);
                        }
                        1 => (0..to.len()).step_by($lanes).for_each(|i| $store(a.add(i), $load(b.add(i)))),
                        2 => (0..to.len())
                            .step_by($lanes)
                            .for_each(|i| $store(a.add(i), $add($load(b.add(i)), $mul(half, $load(c.add(i)))))),
                        3 => (0..to.len()).step_by($lanes).for_each(|i| $stream(a.add(i), $load(b.add(i)))),
                        _ => (0..to.len())
                            .step_by($lanes)
                            .for_each(|i| $stream(a.add(i), $add($load(b.add(i)), $mul(half, $load(c.add(i)))))),
                    }
                    _mm_sfence();
                }
            }
        };
    }

    traffic!(
        wide,
        "avx512f",
        16,
        _mm512_load_ps,
        _mm512_store_ps,
        _mm512_stream_ps,
        _mm512_add_ps,
        _mm512_mul_ps,
        _mm512_set1_ps
    );
    traffic!(narrow, "sse2", 4, _mm_load_ps, _mm_store_ps, _mm_stream_ps, _mm_add_ps, _mm_mul_ps, _mm_set1_ps);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_measured_once() {
        let dir = std::env::temp_dir().join(format!("girih-bandwidth-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let first = Bandwidth::of_sizes(1, Some(&dir), &[1 << 14, 1 << 17]);
        assert!(first.len() == 2 && first[0].bytes < first[1].bytes, "{first:?}");
        assert!(first.iter().flat_map(|b| b.rates).all(|rate| rate > 0.0 && rate < 1e14), "{first:?}");
        assert_eq!(Bandwidth::of_sizes(1, Some(&dir), &[]), first);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn every_kind_moves_what_it_says() {
        #[repr(align(64))]
        struct Aligned([f32; WHOLE / 4]);
        for (kind, name) in KINDS.into_iter().enumerate() {
            let mut all = Aligned(std::array::from_fn(|i| i as f32));
            let moved = traffic(kind, &mut all.0);
            assert_eq!(moved, WHOLE as f64, "{name}");
            let n = WHOLE / 4;
            let want: Vec<f32> = match kind {
                0 => (0..n).map(|i| i as f32).collect(),
                1 | 3 => (0..n).map(|i| (n / 2 + i % (n / 2)) as f32).collect(),
                _ => (0..n)
                    .map(|i| match i / (n / 3) {
                        0 => (n / 3 + i) as f32 + 0.5 * (2 * (n / 3) + i) as f32,
                        _ => i as f32,
                    })
                    .collect(),
            };
            assert!(all.0[..] == want[..], "{name}");
        }
    }

    #[test]
    fn a_damaged_note_does_not_count() {
        assert_eq!(
            Bandwidth::parse("1024 1 2 3 4 5"),
            Some(Bandwidth { bytes: 1024, rates: [1.0, 2.0, 3.0, 4.0, 5.0] })
        );
        for damaged in
            ["", "1024", "1024 1 2 3 4", "1024 1 2 3 4 x", "1024 1 2 3 4 -5", "x 1 2 3 4 5", "1024 1 2 3 4 5 6"]
        {
            assert_eq!(Bandwidth::parse(damaged), None, "{damaged}");
        }
    }
}
