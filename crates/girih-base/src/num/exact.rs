//! Decides which floats hold all numbers of others exactly.
//!
//! In: the format of a float, or the products of numbers of several formats. Out: the properties of all these numbers
//! together, and whether another format has every one.
//!
//! ```text
//! f4E2M1FN times f8E4M3FN      at most 6 binary digits, multiples of 2^-10 below 2^12: f16 has them all
//! f8E4M3FN times f8E8M0FNU     4 digits, multiples of 2^-136: tf32 has them, bf16 does not
//! ```

use super::DType;
use super::convert::{Value, decode, range};

/// A set of finite numbers: all are whole multiples of `2^least`, smaller than `2^most`, and need at most `digits`
/// binary digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    pub digits: u32,
    pub least: i32,
    pub most: i32,
    /// True if the set contains an infinity. It may always contain a NaN.
    pub infinite: bool,
}

impl Numbers {
    /// All numbers of a format.
    pub fn of(ty: DType) -> Option<Numbers> {
        ty.is_float().then(|| range(ty))
    }

    /// One number as a set; `None` if the bits are NaN, or the type is not a float.
    pub fn one(ty: DType, bits: u64) -> Option<Numbers> {
        Numbers::of(ty)?;
        match decode(ty, bits) {
            Value::Nan => None,
            Value::Infinite { .. } => Some(Numbers { digits: 1, least: 0, most: 0, infinite: true }),
            Value::Finite { mantissa: 0, .. } => Some(Numbers { digits: 1, least: 0, most: 0, infinite: false }),
            Value::Finite { mantissa, exponent, .. } => {
                let (all, zeros) = (64 - mantissa.leading_zeros(), mantissa.trailing_zeros());
                let (least, most) = (exponent + zeros as i32, exponent + all as i32);
                Some(Numbers { digits: all - zeros, least, most, infinite: false })
            }
        }
    }

    /// The numbers of either set.
    pub fn or(self, other: Numbers) -> Numbers {
        Numbers {
            digits: self.digits.max(other.digits),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            infinite: self.infinite || other.infinite,
        }
    }

    /// Products, each rounded to f32; `None` where one may lose digits.
    pub fn times(self, other: Numbers) -> Option<Numbers> {
        let f32s = range(DType::F32);
        // A power of two moves digits and adds none.
        let powers = self.digits == 1 || other.digits == 1;
        let digits = self.digits + other.digits - u32::from(powers);
        let (least, most) = (self.least + other.least, self.most + other.most);
        let infinite = self.infinite || other.infinite || most > f32s.most;
        (digits <= f32s.digits && least >= f32s.least).then_some(Numbers {
            digits,
            least,
            most: most.min(f32s.most),
            infinite,
        })
    }

    /// Returns true if a format has every number of the set.
    pub fn are_in(self, ty: DType) -> bool {
        let Some(all) = Numbers::of(ty).filter(|_| !holds_no_negative_zero(ty)) else {
            return false;
        };
        let nan = ty != DType::F4E2M1FN;
        nan && self.digits <= all.digits
            && self.least >= all.least
            && self.most <= all.most
            && self.infinite <= all.infinite
    }
}

/// Returns true for formats without a negative zero.
fn holds_no_negative_zero(ty: DType) -> bool {
    matches!(ty, DType::F8E8M0FNU | DType::F8E5M3FNU | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::convert::{convert, to_f64};
    use crate::num::op::Rounding;

    const SMALL: [DType; 7] = [
        DType::F4E2M1FN,
        DType::F8E4M3FN,
        DType::F8E5M2,
        DType::F8E8M0FNU,
        DType::F8E5M3FNU,
        DType::F8E4M3FNUZ,
        DType::F8E5M2FNUZ,
    ];
    const HOLDERS: [DType; 5] = [DType::F8E4M3FN, DType::F8E5M2, DType::F16, DType::BF16, DType::TF32];

    fn all(ty: DType) -> impl Iterator<Item = f64> {
        (0..=ty.mask()).map(move |bits| to_f64(ty, bits)).filter(|x| !x.is_nan())
    }

    /// Returns true if a format has a number.
    fn has(ty: DType, x: f64) -> bool {
        let from = x.to_bits();
        to_f64(ty, convert(DType::F64, from, ty, Rounding::NearestEven)) == x
    }

    /// Tries every number, and every product of two.
    #[test]
    fn what_is_said_to_be_held_is_held() {
        for x in SMALL {
            let numbers = Numbers::of(x).unwrap();
            for holder in HOLDERS {
                let held = all(x).all(|n| has(holder, n));
                // `are_in` may miss a format that holds all numbers, but it never names one that does not.
                assert!(!numbers.are_in(holder) || held, "{x} in {holder}");
            }
            for y in SMALL {
                let Some(products) = numbers.times(Numbers::of(y).unwrap()) else { continue };
                for holder in HOLDERS.into_iter().filter(|h| products.are_in(*h)) {
                    let rounded = |a: f64, b: f64| f64::from((a * b) as f32);
                    let held = all(x).all(|a| all(y).all(|b| (a * b).is_nan() || has(holder, rounded(a, b))));
                    assert!(held, "{x} * {y} in {holder}");
                }
            }
        }
    }

    #[test]
    fn the_narrowest_is_found() {
        let of = |x, y| {
            let products = Numbers::of(x).unwrap().times(Numbers::of(y).unwrap()).unwrap();
            HOLDERS.into_iter().find(|h| products.are_in(*h))
        };
        assert_eq!(of(DType::F4E2M1FN, DType::F8E4M3FN), Some(DType::F16));
        assert_eq!(of(DType::F4E2M1FN, DType::F8E5M3FNU), Some(DType::BF16));
        assert_eq!(of(DType::F4E2M1FN, DType::F8E8M0FNU), Some(DType::BF16));
        assert_eq!(of(DType::F8E4M3FN, DType::F8E8M0FNU), Some(DType::TF32));
        assert_eq!(of(DType::F8E5M2, DType::F8E8M0FNU), None);
        let alone = |x| HOLDERS.into_iter().find(|h| Numbers::of(x).unwrap().are_in(*h));
        assert_eq!(alone(DType::F4E2M1FN), Some(DType::F8E4M3FN));
        assert_eq!(alone(DType::F8E5M3FNU), Some(DType::BF16));
        assert!(Numbers::of(DType::F16).unwrap().times(Numbers::of(DType::F16).unwrap()).is_some());
        assert_eq!(Numbers::of(DType::F32).unwrap().times(Numbers::of(DType::F16).unwrap()), None);
        assert_eq!(Numbers::of(DType::I8), None);
        let one = |x: f32| Numbers::one(DType::F32, x.to_bits().into()).unwrap();
        assert_eq!(one(0.75), Numbers { digits: 2, least: -2, most: 0, infinite: false });
        assert!(
            one(0.0).are_in(DType::F8E4M3FN)
                && one(-448.0).are_in(DType::F8E4M3FN)
                && !one(512.0).are_in(DType::F8E4M3FN)
        );
        assert!(one(f32::INFINITY).are_in(DType::BF16) && !one(f32::INFINITY).are_in(DType::F8E4M3FN));
        assert!(one(448.0).or(one(0.5)).are_in(DType::F16) && !one(65536.0).or(one(0.5)).are_in(DType::F16));
    }
}
