//! The words of the text for each enumeration, in the order of their bytecode values.

use super::ir::*;

/// An enumeration that the text spells with words.
pub trait Words: Copy + PartialEq + Sized + 'static {
    const WORDS: &'static [(&'static str, Self)];
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, v)| *v == self).map_or("", |(w, _)| w)
    }
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(w, _)| *w == word).map(|(_, v)| *v)
    }
}

macro_rules! words {
    ($ty:ty { $($word:literal = $value:expr),* $(,)? }) => {
        impl Words for $ty { const WORDS: &'static [(&'static str, Self)] = &[$(($word, $value)),*]; }
    };
}

words!(Rounding {
    "nearest_even" = Rounding::NearestEven,
    "zero" = Rounding::Zero,
    "negative_inf" = Rounding::NegativeInf,
    "positive_inf" = Rounding::PositiveInf,
    "approx" = Rounding::Approx,
    "full" = Rounding::Full,
    "nearest_int_to_zero" = Rounding::NearestIntToZero,
    "nearest_away" = Rounding::NearestAway,
});
words!(Signedness { "unsigned" = Signedness::Unsigned, "signed" = Signedness::Signed });
words!(Overflow {
    "none" = Overflow::None,
    "no_signed_wrap" = Overflow::NoSignedWrap,
    "no_unsigned_wrap" = Overflow::NoUnsignedWrap,
    "no_wrap" = Overflow::NoWrap,
});
words!(Predicate {
    "equal" = Predicate::Equal,
    "not_equal" = Predicate::NotEqual,
    "less_than" = Predicate::LessThan,
    "less_than_or_equal" = Predicate::LessThanOrEqual,
    "greater_than" = Predicate::GreaterThan,
    "greater_than_or_equal" = Predicate::GreaterThanOrEqual,
});
words!(MemoryOrdering {
    "weak" = MemoryOrdering::Weak,
    "relaxed" = MemoryOrdering::Relaxed,
    "acquire" = MemoryOrdering::Acquire,
    "release" = MemoryOrdering::Release,
    "acq_rel" = MemoryOrdering::AcqRel,
});
words!(MemoryScope {
    "tl_blk" = MemoryScope::TileBlock,
    "device" = MemoryScope::Device,
    "sys" = MemoryScope::Sys,
});
words!(AtomicMode {
    "and" = AtomicMode::And,
    "or" = AtomicMode::Or,
    "xor" = AtomicMode::Xor,
    "add" = AtomicMode::Add,
    "addf" = AtomicMode::AddF,
    "max" = AtomicMode::Max,
    "min" = AtomicMode::Min,
    "umax" = AtomicMode::UMax,
    "umin" = AtomicMode::UMin,
    "xchg" = AtomicMode::Xchg,
});
words!(Padding {
    "zero" = Padding::Zero,
    "neg_zero" = Padding::NegZero,
    "nan" = Padding::Nan,
    "pos_inf" = Padding::PosInf,
    "neg_inf" = Padding::NegInf,
});
words!(bool { "unordered" = false, "ordered" = true });

/// The bits of a decimal floating-point literal, rounded to nearest even.
pub fn stand_in_parse_float(dtype: crate::num::DType, text: &str) -> Option<u64> {
    use crate::num::DType as D;
    let round = |mantissa: u32, exponent: u32, bias: i32| -> Option<u64> {
        // Round the f64 to the format: enough for literals that are exact in f64.
        let x: f64 = text.parse().ok()?;
        let sign = u64::from(x.is_sign_negative()) << (mantissa + exponent);
        let a = x.abs();
        if a == 0.0 {
            return Some(sign);
        }
        let e = ((a.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        let scaled = a * 2f64.powi(mantissa as i32 - e);
        let mut m = scaled.round_ties_even() as u64;
        let mut biased = (e + bias) as u64;
        if m >> (mantissa + 1) != 0 {
            m >>= 1;
            biased += 1;
        }
        if m >> mantissa == 0 {
            biased = 0;
        }
        Some(sign | biased << mantissa | m & ((1 << mantissa) - 1))
    };
    match dtype {
        D::F64 => text.parse::<f64>().ok().map(f64::to_bits),
        D::F32 | D::TF32 => text.parse::<f32>().ok().map(|x| u64::from(x.to_bits())),
        D::F16 => round(10, 5, 15),
        D::BF16 => round(7, 8, 127),
        D::F8E4M3FN => round(3, 4, 7),
        D::F8E5M2 => round(2, 5, 15),
        D::F4E2M1FN => round(1, 2, 1),
        D::F8E8M0FNU => round(0, 8, 127),
        D::F8E5M3FNU => round(3, 5, 15),
        _ => None,
    }
}
