//! Exact conversions between every float format.
//!
//! In: the bits of a value. Out: its exact value ([`decode`], [`to_f64`]), or the bits of a value rounded once to a
//! format ([`encode`], [`from_f64`], [`convert`]). For example `from_f64(F8E4M3FN, 464.0, NearestEven)` is `0x7E`, 448.
//!
//! # Decisions
//! The specification leaves conversions out of range open; these follow the constants that NVIDIA's own front end
//! encodes and the formats' MLIR definitions:
//! * **Overflow.** A format with infinities (f16 bf16 f32 tf32 f64 f8E5M2) overflows to infinity. f8E4M3FN, f8E5M3FNU and
//!   f8E8M0FNU have none: overflow and infinities become NaN, they do not saturate. f4E2M1FN has neither infinity nor
//!   NaN: it saturates at 6. Under a rounding that points towards zero, a finite value becomes the largest finite one.
//! * **NaN** becomes the canonical quiet NaN of the destination: positive, the top fraction bit set (f8E5M2 `0x7E`); a
//!   format with one NaN gets that one (f8E4M3FN `0x7F`, the unsigned formats `0xFF`). f4E2M1FN has none: it gives 6.
//! * **Unsigned formats** (f8E5M3FNU, f8E8M0FNU) drop the sign.
//! * **f8E8M0FNU** holds powers of two only; zero and everything below give the smallest, 2^-127. The nearest of
//!   two powers is the upper one from 1.5 on.
//! * **f8E4M3FNUZ and f8E5M2FNUZ** have neither infinities nor a negative zero, whose code is their NaN: overflow and
//!   infinities become NaN, and a value that rounds to zero becomes the positive zero.
//! * **tf32** is held as an f32 whose last 13 bits are zero; encoding rounds to 10 fraction bits. Decoding reads all 32
//!   bits as the f32 they are.
//! * Rounding `Approx`, `Full` and `NearestIntToZero` mean nearest, ties to even.

use super::DType;
use super::exact::Numbers;
use super::op::Rounding;

/// The value of a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    Nan,
    Infinite {
        negative: bool,
    },
    /// `mantissa * 2^exponent`; a zero keeps its sign.
    Finite {
        negative: bool,
        mantissa: u64,
        exponent: i32,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Specials {
    /// The largest exponent holds infinity and NaNs.
    Ieee,
    /// All ones (except for the sign) is NaN; no infinity.
    OneNan,
    /// Every code is finite.
    Finite,
    /// The code of negative zero is NaN; no infinity.
    NanForZero,
}

/// A binary interchange format.
#[derive(Clone, Copy, Debug)]
struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    bias: i32,
    signed: bool,
    /// True if the smallest exponent holds zero and subnormals.
    subnormals: bool,
    specials: Specials,
    /// Zero bits below the fraction in the representation.
    padding: u32,
}

const fn ieee(exponent_bits: u32, fraction_bits: u32) -> Format {
    Format {
        exponent_bits,
        fraction_bits,
        bias: (1 << (exponent_bits - 1)) - 1,
        signed: true,
        subnormals: true,
        specials: Specials::Ieee,
        padding: 0,
    }
}

fn format(ty: DType) -> Format {
    match ty {
        DType::F16 => ieee(5, 10),
        DType::BF16 => ieee(8, 7),
        DType::F32 => ieee(8, 23),
        DType::TF32 => Format { padding: 13, ..ieee(8, 10) },
        DType::F8E5M2 => ieee(5, 2),
        DType::F8E4M3FN => Format { specials: Specials::OneNan, ..ieee(4, 3) },
        DType::F8E5M3FNU => Format { specials: Specials::OneNan, signed: false, ..ieee(5, 3) },
        DType::F8E8M0FNU => Format { specials: Specials::OneNan, signed: false, subnormals: false, ..ieee(8, 0) },
        DType::F8E4M3FNUZ => Format { specials: Specials::NanForZero, bias: 8, ..ieee(4, 3) },
        DType::F8E5M2FNUZ => Format { specials: Specials::NanForZero, bias: 16, ..ieee(5, 2) },
        DType::F4E2M1FN => Format { specials: Specials::Finite, ..ieee(2, 1) },
        _ => ieee(11, 52),
    }
}

/// The set of all numbers of a format.
pub(super) fn range(ty: DType) -> Numbers {
    let f = format(ty);
    let exponent = |code: u64| (code >> f.fraction_bits) as i32 - f.bias;
    Numbers {
        digits: f.fraction_bits + 1,
        least: if f.subnormals { 1 - f.bias } else { -f.bias } - f.fraction_bits as i32,
        most: exponent(f.largest()) + 1,
        infinite: f.specials == Specials::Ieee,
    }
}

impl Format {
    fn sign_bit(self) -> u64 {
        if self.signed { 1 << (self.exponent_bits + self.fraction_bits) } else { 0 }
    }
    fn all_ones(self) -> u64 {
        (1 << (self.exponent_bits + self.fraction_bits)) - 1
    }
    fn infinity(self) -> u64 {
        self.all_ones() >> self.fraction_bits << self.fraction_bits
    }
    fn largest(self) -> u64 {
        match self.specials {
            Specials::Ieee => self.infinity() - 1,
            Specials::OneNan => self.all_ones() - 1,
            Specials::Finite | Specials::NanForZero => self.all_ones(),
        }
    }
    fn nan(self) -> u64 {
        match self.specials {
            Specials::Ieee => self.infinity() | 1 << (self.fraction_bits - 1),
            Specials::OneNan | Specials::Finite => self.all_ones(),
            Specials::NanForZero => self.sign_bit(),
        }
    }
    fn infinite(self) -> u64 {
        match self.specials {
            Specials::Ieee => self.infinity(),
            Specials::OneNan | Specials::NanForZero => self.nan(),
            Specials::Finite => self.largest(),
        }
    }
    /// Returns true if overflow and infinities become NaN.
    fn has_only_nan(self) -> bool {
        matches!(self.specials, Specials::OneNan | Specials::NanForZero)
    }
}

/// The exact value of a float's bits.
pub fn decode(ty: DType, bits: u64) -> Value {
    let f = if ty == DType::TF32 { format(DType::F32) } else { format(ty) };
    let negative = bits & f.sign_bit() != 0;
    let code = bits & f.all_ones();
    match f.specials {
        Specials::Ieee if code == f.infinity() => return Value::Infinite { negative },
        Specials::Ieee if code > f.infinity() => return Value::Nan,
        Specials::OneNan if code == f.all_ones() => return Value::Nan,
        Specials::NanForZero if code == 0 && negative => return Value::Nan,
        _ => {}
    }
    let fraction = code & ((1 << f.fraction_bits) - 1);
    let field = (code >> f.fraction_bits) as i32;
    let subnormal = field == 0 && f.subnormals;
    let mantissa = if subnormal { fraction } else { fraction | 1 << f.fraction_bits };
    let exponent = if subnormal { 1 } else { field } - f.bias - f.fraction_bits as i32;
    Value::Finite { negative, mantissa, exponent }
}

/// `mantissa * 2^exponent` rounded once to the format. A caller with an inexact mantissa sets its last bit if anything
/// was lost below it, and gives at least two bits more than the format's precision.
pub fn encode(ty: DType, negative: bool, mantissa: u128, exponent: i32, rounding: Rounding) -> u64 {
    let f = format(ty);
    let mut sign = if negative { f.sign_bit() } else { 0 };
    let length = 128 - mantissa.leading_zeros() as i32;
    let lowest = 1 - f.bias - !f.subnormals as i32;
    let top = exponent + length - 1;
    if mantissa == 0 || (!f.subnormals && top < lowest) {
        return if f.specials == Specials::NanForZero { 0 } else { sign << f.padding };
    }
    let fraction_bits = f.fraction_bits as i32;
    let mut unit = top.max(lowest) - fraction_bits;
    let shift = unit - exponent;
    let (mut kept, lost, half) = match shift {
        i32::MIN..=0 => ((mantissa << -shift) as u64, 0, 1),
        1..=127 => ((mantissa >> shift) as u64, mantissa & ((1 << shift) - 1), 1 << (shift - 1)),
        128 => (0, mantissa, 1 << 127),
        _ => (0, 1, 2),
    };
    let outward = match rounding {
        Rounding::Zero => false,
        Rounding::NegativeInf => negative,
        Rounding::PositiveInf => !negative,
        _ => true,
    };
    let up = match rounding {
        Rounding::Zero | Rounding::NegativeInf | Rounding::PositiveInf => outward && lost != 0,
        Rounding::NearestAway => lost >= half,
        _ => lost > half || (lost == half && kept & 1 == 1),
    };
    kept += up as u64;
    if kept == 2 << fraction_bits {
        kept >>= 1;
        unit += 1;
    }
    let hidden = 1 << fraction_bits;
    let field = unit + fraction_bits + f.bias;
    let code = if kept < hidden {
        kept
    } else if field >= 1 << f.exponent_bits {
        u64::MAX
    } else {
        ((field as u64) << fraction_bits) | (kept - hidden)
    };
    let code = match code {
        0 if f.specials == Specials::NanForZero => {
            sign = 0;
            0
        }
        c if c <= f.largest() => c,
        _ if outward && f.has_only_nan() => return f.nan(),
        _ if outward => f.infinite(),
        _ => f.largest(),
    };
    (sign | code) << f.padding
}

/// A value rounded to the format.
pub fn encode_value(ty: DType, value: Value, rounding: Rounding) -> u64 {
    let f = format(ty);
    match value {
        Value::Nan => f.nan() << f.padding,
        Value::Infinite { .. } if f.has_only_nan() => f.nan(),
        Value::Infinite { negative } => (f.infinite() | if negative { f.sign_bit() } else { 0 }) << f.padding,
        Value::Finite { negative, mantissa, exponent } => encode(ty, negative, mantissa as u128, exponent, rounding),
    }
}

/// The canonical quiet NaN; in a format without NaN the largest value.
pub fn nan(ty: DType) -> u64 {
    encode_value(ty, Value::Nan, Rounding::NearestEven)
}

pub fn is_nan(ty: DType, bits: u64) -> bool {
    match ty {
        DType::F32 => f32::from_bits(bits as u32).is_nan(),
        DType::F64 => f64::from_bits(bits).is_nan(),
        _ => decode(ty, bits) == Value::Nan,
    }
}

/// The value as an f64, which holds every format exactly. Integers are read as signed; only i64 may round.
pub fn to_f64(ty: DType, bits: u64) -> f64 {
    match ty {
        DType::F64 => return f64::from_bits(bits),
        DType::F32 | DType::TF32 => return f32::from_bits(bits as u32) as f64,
        DType::BF16 => return f32::from_bits((bits as u32) << 16) as f64,
        DType::F16 => return f16_to_f32(bits) as f64,
        _ if ty.is_int() => return sign_extend(ty, bits) as f64,
        _ => {}
    }
    match decode(ty, bits) {
        Value::Nan => f64::NAN,
        Value::Infinite { negative: false } => f64::INFINITY,
        Value::Infinite { negative: true } => f64::NEG_INFINITY,
        Value::Finite { negative, mantissa, exponent } => {
            // 2^exponent is a normal f64 for every format that reaches this line, and the product is exact.
            let magnitude = mantissa as f64 * f64::from_bits(((exponent + 1023) as u64) << 52);
            if negative { -magnitude } else { magnitude }
        }
    }
}

fn f16_to_f32(bits: u64) -> f32 {
    // The fields as those of an f32 stand for 2^-112 of the value, subnormals too; only the largest exponent differs.
    let size = ((bits & 0x7fff) as u32) << 13;
    let size =
        if size >= 0x7c00 << 13 { size | 0x7f80_0000 } else { (f32::from_bits(size) * 2f32.powi(112)).to_bits() };
    f32::from_bits(size | ((bits & 0x8000) as u32) << 16)
}

/// Rounds to nearest even an f32 that is not NaN.
fn f32_to_f16(bits: u64) -> u64 {
    let size = bits & 0x7fff_ffff;
    let code = if size < 0x3880_0000 {
        // Below the smallest normal: adding 1/2 rounds to multiples of 2^-24 in the last bits.
        ((f32::from_bits(size as u32) + 0.5).to_bits() - 0x3f00_0000) as u64
    } else {
        (size - (112 << 23) + 0xfff + (size >> 13 & 1)) >> 13
    };
    code.min(0x7c00) | (bits >> 16 & 0x8000)
}

/// The bits of an f64 rounded once to a float type.
pub fn from_f64(ty: DType, value: f64, rounding: Rounding) -> u64 {
    convert(DType::F64, value.to_bits(), ty, rounding)
}

/// A float's bits rounded once to another float type.
pub fn convert(from: DType, bits: u64, to: DType, rounding: Rounding) -> u64 {
    let nearest =
        !matches!(rounding, Rounding::Zero | Rounding::NegativeInf | Rounding::PositiveInf | Rounding::NearestAway);
    match (from, to) {
        (DType::F32 | DType::BF16 | DType::F16, DType::F64) => {
            let value = to_f64(from, bits);
            return if value.is_nan() { nan(to) } else { value.to_bits() };
        }
        (DType::BF16, DType::F32) if !is_nan(from, bits) => return bits << 16,
        (DType::F16, DType::F32) => {
            let value = f16_to_f32(bits);
            return if value.is_nan() { nan(to) } else { value.to_bits() as u64 };
        }
        (DType::F64, DType::F32) if nearest => {
            let value = f64::from_bits(bits) as f32;
            return if value.is_nan() { nan(to) } else { value.to_bits() as u64 };
        }
        (DType::F32, DType::F16) if nearest && !is_nan(from, bits) => return f32_to_f16(bits),
        (DType::F32, DType::BF16) if nearest && !is_nan(from, bits) => {
            return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        }
        _ => {}
    }
    encode_value(to, decode(from, bits), rounding)
}

/// An integer's bits as a signed value.
pub fn sign_extend(ty: DType, bits: u64) -> i64 {
    let unused = 64 - ty.bits();
    (bits << unused) as i64 >> unused
}

#[cfg(test)]
mod tests;
