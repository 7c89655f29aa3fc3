use super::super::ScalarOp;
use super::super::convert::{from_f64, is_nan, to_f64};
use super::super::eval::apply;
use super::*;

const MODES: [Rounding; 5] =
    [Rounding::NearestEven, Rounding::NearestAway, Rounding::Zero, Rounding::NegativeInf, Rounding::PositiveInf];
const TYPES: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545f4914f6cdd1d)
    }
    /// A value of the type, between 1/8 and 8 in size.
    fn value(&mut self, ty: DType) -> u64 {
        let bits = self.next();
        let x = f64::from_bits(bits & 0x800f_ffff_ffff_ffff | (1020 + bits % 6) << 52);
        // Half of the time few bits, so that ties and exact results occur.
        let x = if self.next() & 1 == 0 { f64::from_bits(x.to_bits() & !0 << 45) } else { x };
        from_f64(ty, x, Rounding::NearestEven)
    }
}

/// x in units of 2^-grid.
fn fixed(x: f64, grid: i32) -> i128 {
    let Value::Finite { negative, mantissa, exponent } = decode(DType::F64, x.to_bits()) else { panic!("{x}") };
    let shift = exponent + grid;
    let m = if mantissa == 0 {
        0
    } else if shift >= 0 {
        (mantissa as i128) << shift
    } else {
        assert!(mantissa.trailing_zeros() as i32 + shift >= 0, "{x:e} is off the grid");
        (mantissa >> -shift) as i128
    };
    if negative { -m } else { m }
}

/// The neighbour of x in the type, away from or towards zero.
fn step(ty: DType, bits: u64, outward: bool) -> f64 {
    to_f64(ty, if outward { bits + 1 } else { bits - 1 })
}

/// Checks that `r` is the rounding of an exact nonzero result, given by how a candidate compares with it (in size).
fn check(ty: DType, r: u64, negative: bool, mode: Rounding, compare: impl Fn(f64) -> std::cmp::Ordering, what: &str) {
    let size_bits = r & (ty.mask() >> 1);
    let size = to_f64(ty, size_bits);
    let order = compare(size);
    let (towards, away) = match mode {
        Rounding::Zero => (true, false),
        Rounding::NegativeInf => (!negative, negative),
        Rounding::PositiveInf => (negative, !negative),
        _ => (false, false),
    };
    let (above, below) = (step(ty, size_bits, true), step(ty, size_bits, false));
    let ok = if order.is_eq() {
        true
    } else if towards {
        order.is_lt() && compare(above).is_gt()
    } else if away {
        order.is_gt() && compare(below).is_lt()
    } else {
        let even = size_bits & 1 == 0;
        let tie_ok = |up: bool| match mode {
            Rounding::NearestAway => up,
            _ => even,
        };
        // The midpoints to both neighbours; f64's own are not f64s, so they are compared by the caller's grid halves.
        let (low, high) = (compare_mid(&compare, below, size), compare_mid(&compare, size, above));
        (low.is_lt() || low.is_eq() && tie_ok(true)) && (high.is_gt() || high.is_eq() && tie_ok(false))
    };
    assert!(ok, "{ty} {mode:?} {what}: {:e}", to_f64(ty, r));
}

/// Compares the middle of two neighbours: exact where f64 holds it, which it does for narrower types.
fn compare_mid(compare: &impl Fn(f64) -> std::cmp::Ordering, a: f64, b: f64) -> std::cmp::Ordering {
    compare((a + b) / 2.0)
}

#[test]
fn every_mode_rounds_the_exact_result() {
    let mut random = Random(0x9e3779b97f4a7c15);
    for ty in TYPES {
        let f64_ = ty == DType::F64;
        for _ in 0..4000 {
            let [a, b, c] = [(); 3].map(|_| random.value(ty));
            let [x, y, z] = [a, b, c].map(|v| to_f64(ty, v));
            for mode in MODES {
                // The middle of two f64 is not an f64; nearest rounding of f64 is checked against the hardware below.
                if f64_ && matches!(mode, Rounding::NearestEven | Rounding::NearestAway) {
                    continue;
                }
                let what = format!("{x:e} {y:e} {z:e}");
                let g = 110;
                let exact_sum = fixed(x, g) + fixed(y, g);
                let product = fixed(x, 55) * fixed(y, 55);
                let total = product + fixed(z, g);
                for (r, exact) in
                    [(add(ty, a, b, mode), exact_sum), (mul(ty, a, b, mode), product), (fma(ty, a, b, c, mode), total)]
                {
                    if exact == 0 {
                        let zero = if mode == Rounding::NegativeInf { 1 << (ty.bits() - 1) } else { 0 };
                        assert_eq!(r, zero, "{ty} {mode:?} {what}");
                        continue;
                    }
                    check(ty, r, exact < 0, mode, |s| fixed(s, g).cmp(&exact.abs()), &what);
                }
                let quotient = div(ty, a, b, mode);
                let (ax, ay) = (x.abs(), y.abs());
                check(
                    ty,
                    quotient,
                    (x < 0.0) != (y < 0.0),
                    mode,
                    |s| (fixed(s, 61) * fixed(ay, 55)).cmp(&fixed(ax, 116)),
                    &what,
                );
                let root = sqrt(ty, a & (ty.mask() >> 1), mode);
                check(ty, root, false, mode, |s| (fixed(s, 58) * fixed(s, 58)).cmp(&fixed(ax, 116)), &what);
            }
        }
    }
}

#[test]
fn nearest_agrees_with_the_hardware_everywhere() {
    let mut random = Random(42);
    for _ in 0..50_000 {
        let [a, b, c] = [(); 3].map(|_| random.next());
        // Bring exponents together half of the time.
        let near = |v: u64| if random.0 & 1 == 0 { v } else { v & !(0x7ff << 52) | (1023 + (v >> 53 & 63)) << 52 };
        let [a, b, c] = [near(a), near(b), near(c)];
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        let n = Rounding::NearestEven;
        let same = |r: u64, e: f64| r == e.to_bits() || f64::from_bits(r).is_nan() && e.is_nan();
        assert!(same(add(DType::F64, a, b, n), x + y), "{x:e} + {y:e}");
        assert!(same(mul(DType::F64, a, b, n), x * y), "{x:e} * {y:e}");
        assert!(same(div(DType::F64, a, b, n), x / y), "{x:e} / {y:e}");
        assert!(same(sqrt(DType::F64, a, n), x.sqrt()), "sqrt {x:e}");
        assert!(same(fma(DType::F64, a, b, c, n), x.mul_add(y, z)), "{x:e} * {y:e} + {z:e}");
        let [a, b, c] = [a >> 32, b >> 32, c >> 32];
        let [x, y, z] = [a, b, c].map(|v| f32::from_bits(v as u32));
        let same = |r: u64, e: f32| r == e.to_bits() as u64 || f32::from_bits(r as u32).is_nan() && e.is_nan();
        assert!(same(add(DType::F32, a, b, n), x + y), "{x:e} + {y:e}");
        assert!(same(mul(DType::F32, a, b, n), x * y), "{x:e} * {y:e}");
        assert!(same(div(DType::F32, a, b, n), x / y), "{x:e} / {y:e}");
        assert!(same(sqrt(DType::F32, a, n), x.sqrt()), "sqrt {x:e}");
        assert!(same(fma(DType::F32, a, b, c, n), x.mul_add(y, z)), "{x:e} * {y:e} + {z:e}");
    }
}

/// Computing in f32 and rounding once is the exact result rounded once, for the operations that do so.
#[test]
fn halves_through_f32_are_exact() {
    let mut random = Random(7);
    let nearest = Rounding::NearestEven;
    for ty in [DType::F16, DType::BF16] {
        for _ in 0..50_000 {
            let [a, b] = [(); 2].map(|_| random.next() & 0xffff);
            for (op, exact) in [
                (ScalarOp::AddF { rounding: nearest, ftz: false }, add(ty, a, b, nearest)),
                (ScalarOp::MulF { rounding: nearest, ftz: false }, mul(ty, a, b, nearest)),
                (ScalarOp::DivF { rounding: nearest, ftz: false }, div(ty, a, b, nearest)),
                (ScalarOp::Sqrt { rounding: nearest, ftz: false }, sqrt(ty, a, nearest)),
            ] {
                let r = apply(op, ty, &[a, b]);
                assert!(r == exact || is_nan(ty, r) && is_nan(ty, exact), "{ty} {op:?} {a:#x} {b:#x}");
            }
        }
    }
}
