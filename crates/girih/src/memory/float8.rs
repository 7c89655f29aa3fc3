//! The floats of 8 bits that arrays of the host hold.

use girih_compiler::num::op::Rounding;
use girih_compiler::num::{DType, convert};

macro_rules! floats {
    ($($(#[$doc:meta])* $t:ident $dtype:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $t(u8);

        impl $t {
            /// The number with these bits.
            pub const fn from_bits(bits: u8) -> $t {
                $t(bits)
            }
            /// The bits of the number.
            pub const fn to_bits(self) -> u8 {
                self.0
            }
            /// The nearest number; ties go to even. A number that is too large becomes the format's infinity, or NaN.
            pub fn from_f32(value: f32) -> $t {
                $t(convert::convert(DType::F32, u64::from(value.to_bits()), DType::$dtype, Rounding::NearestEven) as u8)
            }
            /// The same number: all of them are numbers of `f32` too.
            pub fn to_f32(self) -> f32 {
                let bits = convert::convert(DType::$dtype, u64::from(self.0), DType::F32, Rounding::NearestEven);
                f32::from_bits(bits as u32)
            }
        }

        impl std::fmt::Debug for $t {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", self.to_f32())
            }
        }
    )*};
}

floats! {
    /// A float of 8 bits with four of exponent and three of fraction: up to 448, with NaN and without infinities.
    F8E4M3 F8E4M3FN;
    /// A float of 8 bits with five of exponent and two of fraction: up to 57344, with infinities and NaN.
    F8E5M2 F8E5M2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_from_f32() {
        for bits in 0..=u8::MAX {
            let (x, y) = (F8E4M3::from_bits(bits), F8E5M2::from_bits(bits));
            assert!(x.to_f32().is_nan() || F8E4M3::from_f32(x.to_f32()) == x, "{bits:#x}");
            assert!(y.to_f32().is_nan() || F8E5M2::from_f32(y.to_f32()) == y, "{bits:#x}");
        }
        assert_eq!((0..=u8::MAX).filter(|b| F8E4M3::from_bits(*b).to_f32().is_nan()).count(), 2);
        assert_eq!((0..=u8::MAX).filter(|b| F8E5M2::from_bits(*b).to_f32().is_nan()).count(), 6);
    }

    #[test]
    fn ties_go_to_the_even_number() {
        // Between 1 and 1.125, and between 1.125 and 1.25.
        assert_eq!(F8E4M3::from_f32(1.0625).to_f32(), 1.0);
        assert_eq!(F8E4M3::from_f32(1.1875).to_f32(), 1.25);
        assert_eq!(F8E4M3::from_f32(448.0).to_f32(), 448.0);
        assert_eq!(F8E5M2::from_f32(1.125).to_f32(), 1.0);
        assert_eq!(F8E5M2::from_f32(1e9).to_f32(), f32::INFINITY);
        assert_eq!(format!("{:?}", F8E5M2::from_f32(-0.5)), "-0.5");
    }
}
