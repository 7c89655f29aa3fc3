//! Single elements: their place in memory, conversions, and the random generator.

use super::{DType, convert, format_float, op::Rounding};

/// The bits of element `i`; 0 past the end.
pub fn read(dtype: DType, bytes: &[u8], i: u64) -> u64 {
    if dtype.bits() == 4 {
        let byte = bytes.get(i as usize / 2).copied().unwrap_or(0);
        return u64::from(if i.is_multiple_of(2) { byte & 15 } else { byte >> 4 });
    }
    let width = dtype.bytes() as usize;
    let at = i as usize * width;
    let mut word = [0u8; 8];
    if let Some(element) = bytes.get(at..at + width) {
        word[..width].copy_from_slice(element);
    }
    u64::from_le_bytes(word)
}

/// Sets the bits of element `i`; past the end nothing happens.
pub fn write(dtype: DType, bytes: &mut [u8], i: u64, bits: u64) {
    if dtype.bits() == 4 {
        if let Some(byte) = bytes.get_mut(i as usize / 2) {
            let value = bits as u8 & 15;
            *byte = if i.is_multiple_of(2) { *byte & 0xf0 | value } else { *byte & 0x0f | value << 4 };
        }
        return;
    }
    let width = dtype.bytes() as usize;
    let at = i as usize * width;
    if let Some(element) = bytes.get_mut(at..at + width) {
        element.copy_from_slice(&bits.to_le_bytes()[..width]);
    }
}

/// The nearest value of a float type, or an integer truncated to its type.
pub fn from_f64(dtype: DType, x: f64) -> u64 {
    match dtype {
        DType::F64 => x.to_bits(),
        DType::F32 => u64::from((x as f32).to_bits()),
        _ if dtype.is_int() => x as i64 as u64 & dtype.mask(),
        _ => convert::from_f64(dtype, x, Rounding::NearestEven),
    }
}

/// The value of an element; integers as signed ones, i1 as 0 or 1.
pub fn to_f64(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::I1 => (bits & 1) as f64,
        _ if dtype.is_int() => convert::sign_extend(dtype, bits) as f64,
        _ => convert::to_f64(dtype, bits),
    }
}

/// The number 1.
pub fn one(dtype: DType) -> u64 {
    if dtype.is_int() { 1 } else { from_f64(dtype, 1.0) }
}

/// A value of a type as text: integers signed, floats in a form that gives them back.
pub fn text(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::I1 => (bits & 1).to_string(),
        _ if dtype.is_int() => convert::sign_extend(dtype, bits).to_string(),
        _ => format_float(dtype, bits),
    }
}

/// Word `i` of the stream `seed`: the finaliser of the splitmix64 generator over a counter, so that any element can be
/// had alone and the stream is the same on every machine.
fn word(seed: u64, i: u64) -> u64 {
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    mix(mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Element `i` of a uniform array: floats in [0, 1) on the grid of the type's precision, integers over all values.
pub fn uniform(dtype: DType, seed: u64, i: u64) -> u64 {
    let w = word(seed, i);
    if dtype.is_int() {
        return w >> 32 & dtype.mask() | if dtype.bits() == 64 { w << 32 } else { 0 };
    }
    let digits = match dtype {
        DType::F64 => 53,
        DType::F32 => 24,
        DType::F16 | DType::TF32 => 11,
        DType::BF16 => 8,
        _ => 4,
    };
    from_f64(dtype, (w >> (64 - digits)) as f64 / (1u64 << digits) as f64)
}

/// Element `i` of an array that is about normal: the sum of twelve uniform numbers of 16 bits less six. Exact
/// arithmetic, so it is the same on every machine; the tails end at 6.
pub fn normal(seed: u64, i: u64) -> f64 {
    let mut sum = 0u64;
    for k in 0..3 {
        let w = word(seed, i.wrapping_mul(3).wrapping_add(k));
        sum += (w & 0xffff) + (w >> 16 & 0xffff) + (w >> 32 & 0xffff) + (w >> 48);
    }
    // Twelve numbers (n + 1/2) / 65536.
    (sum + 6) as f64 / 65536.0 - 6.0
}

/// How many bytes `elements` take in memory.
pub fn storage_bytes(dtype: DType, elements: u64) -> Option<u64> {
    if dtype.bits() == 4 { Some(elements.div_ceil(2)) } else { elements.checked_mul(dtype.bytes()) }
}

/// Elements shown at each end of a long axis.
const EDGE: u64 = 3;
/// The most elements of an array that is shown whole.
const WHOLE: u64 = 1000;

/// An array as nested lists; of a large one, long axes are cut in the middle.
///
/// `[[1, 2],\n [3, 4]]`
pub fn nested(shape: &[u64], element: &dyn Fn(u64) -> String) -> String {
    let mut out = String::new();
    write_axis(&mut out, shape, element, 0, shape.iter().fold(1u64, |n, d| n.saturating_mul(*d)) > WHOLE);
    out
}

fn write_axis(out: &mut String, shape: &[u64], element: &dyn Fn(u64) -> String, offset: u64, cut: bool) {
    let [n, inside @ ..] = shape else {
        *out += &element(offset);
        return;
    };
    let step: u64 = inside.iter().product();
    out.push('[');
    let mut i = 0;
    while i < *n {
        if i > 0 {
            *out += if inside.is_empty() { ", " } else { ", \n " };
        }
        if cut && i == EDGE && *n > 2 * EDGE + 1 {
            *out += "..., ";
            i = n - EDGE;
        }
        write_axis(out, inside, element, offset + i * step, cut);
        i += 1;
    }
    out.push(']');
}
