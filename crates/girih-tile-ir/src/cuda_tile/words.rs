//! The words of the text for each enumeration, in the order of their bytecode values.

use super::ir::*;

/// An enumeration that the text spells with words.
pub trait Words: Copy + PartialEq + Sized + 'static {
    const WORDS: &'static [(&'static str, Self)];
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, v)| *v == self).map_or("", |(w, _)| w)
    }
    /// The value of a number in bytecode.
    fn from_number(n: u64) -> Option<Self> {
        Self::WORDS.get(usize::try_from(n).ok()?).map(|(_, v)| *v)
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
words!(Reduction {
    "add" = Reduction::Add,
    "min" = Reduction::Min,
    "max" = Reduction::Max,
    "and" = Reduction::And,
    "or" = Reduction::Or,
    "xor" = Reduction::Xor,
    "umin" = Reduction::UMin,
    "umax" = Reduction::UMax,
});
words!(Padding {
    "zero" = Padding::Zero,
    "neg_zero" = Padding::NegZero,
    "nan" = Padding::Nan,
    "pos_inf" = Padding::PosInf,
    "neg_inf" = Padding::NegInf,
});
words!(PtrAttr { "none" = PtrAttr::None, "unicast" = PtrAttr::Unicast, "multicast" = PtrAttr::Multicast });
words!(bool { "unordered" = false, "ordered" = true });
