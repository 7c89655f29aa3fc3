//! Elements of files of weights as those of a graph: floats of other widths, and the blocks of GGUF.
//!
//! In: the bytes of a tensor and the name of their type. Out: the same numbers as `f32`, `f16` or `bf16`.
//!
//! ```text
//! Q8_0  32 numbers   d f16 | q i8[32]                                    d*q
//! Q4_0  32 numbers   d f16 | q u4[32]                                    d*(q - 8)
//! Q4_K  256 numbers  d f16 | e f16 | 8 pairs (s, m) of 6 bits | q u4[256]    d*s*q - e*m
//! Q6_K  256 numbers  low u4[256] | high u2[256] | s i8[16] | d f16           d*s*(q - 32)
//! ```
//! Source: the layouts of ggml (`ggml-common.h`, `ggml-quants.c`). A byte holds two numbers that lie half a block, or half a part of
//! one, from each other.

use girih_compiler::graph::Elem;
use half::{bf16, f16};

/// The numbers of a tensor of a type (`Q4_K`) as elements of another; `None` where either is not known here.
pub(super) fn decoded(kind: &str, bytes: &[u8], elem: Elem) -> Option<Vec<u8>> {
    let numbers = numbers(kind, bytes)?;
    match elem {
        Elem::F32 => Some(numbers.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Elem::F16 => Some(numbers.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect()),
        Elem::BF16 => Some(numbers.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect()),
        _ => None,
    }
}

fn numbers(kind: &str, bytes: &[u8]) -> Option<Vec<f32>> {
    Some(match kind {
        "F32" => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        "F16" => bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
        "BF16" => bytes.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
        "Q8_0" => blocks::<34, 32>(bytes, |block, out| {
            let d = half_at(block, 0);
            out.iter_mut().zip(&block[2..]).for_each(|(x, q)| *x = d * f32::from(*q as i8));
        }),
        "Q4_0" => blocks::<18, 32>(bytes, |block, out| {
            let d = half_at(block, 0);
            for (i, q) in block[2..].iter().enumerate() {
                out[i] = d * (f32::from(q & 15) - 8.0);
                out[i + 16] = d * (f32::from(q >> 4) - 8.0);
            }
        }),
        "Q4_K" => blocks::<144, 256>(bytes, q4_k),
        "Q6_K" => blocks::<210, 256>(bytes, q6_k),
        _ => return None,
    })
}

/// Blocks of `SIZE` bytes, of `COUNT` numbers each.
fn blocks<const SIZE: usize, const COUNT: usize>(
    bytes: &[u8],
    decode: impl Fn(&[u8; SIZE], &mut [f32; COUNT]),
) -> Vec<f32> {
    let mut out = vec![0.0; bytes.len() / SIZE * COUNT];
    for (block, out) in bytes.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        decode(block, out);
    }
    out
}

fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, e) = (half_at(block, 0), half_at(block, 2));
    let packed = &block[4..16];
    // The scale and the least number of an eighth; the upper bits of the last four stand in the first eight bytes.
    let pair = |i: usize| match i {
        0..4 => (packed[i] & 63, packed[i + 4] & 63),
        _ => (packed[i + 4] & 15 | packed[i - 4] >> 6 << 4, packed[i + 4] >> 4 | packed[i] >> 6 << 4),
    };
    for (i, out) in out.chunks_exact_mut(32).enumerate() {
        let (scale, least) = pair(i);
        let (scale, least) = (d * f32::from(scale), e * f32::from(least));
        let quarter = &block[16 + i / 2 * 32..][..32];
        for (x, q) in out.iter_mut().zip(quarter) {
            *x = scale * f32::from(if i % 2 == 0 { q & 15 } else { q >> 4 }) - least;
        }
    }
}

fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let d = half_at(block, 208);
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    for (at, x) in out.iter_mut().enumerate() {
        // Four numbers of a half share a byte of upper bits, two of them one of lower bits.
        let (part, quarter, i) = (at / 128, at % 128 / 32, at % 32);
        let lower = low[part * 64 + quarter % 2 * 32 + i] >> (quarter / 2 * 4) & 15;
        let upper = high[part * 32 + i] >> (quarter * 2) & 3;
        let scale = scales[at / 16] as i8;
        *x = d * f32::from(scale) * (f32::from(lower | upper << 4) - 32.0);
    }
}
