use super::super::convert::from_f64;
use super::*;

const BASE: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const INTS: [DType; 6] = [DType::I1, DType::I4, DType::I8, DType::I16, DType::I32, DType::I64];
const NEAREST: Rounding = Rounding::NearestEven;
const SIGNED: Signedness = Signedness::Signed;
const UNSIGNED: Signedness = Signedness::Unsigned;

fn bits(ty: DType, x: f64) -> u64 {
    from_f64(ty, x, NEAREST)
}

#[test]
fn zeros_and_nans_of_min_and_max() {
    for ty in BASE {
        let [pz, nz, one, nan] = [0.0, -0.0, 1.0, f64::NAN].map(|x| bits(ty, x));
        for propagate in [false, true] {
            let max = |a, b| apply(ScalarOp::MaxF { nan: propagate, ftz: false }, ty, &[a, b]);
            let min = |a, b| apply(ScalarOp::MinF { nan: propagate, ftz: false }, ty, &[a, b]);
            assert_eq!([max(pz, nz), max(nz, pz), min(pz, nz), min(nz, pz)], [pz, pz, nz, nz], "{ty}");
            let with_nan = if propagate { nan } else { one };
            assert_eq!([max(nan, one), max(one, nan), min(nan, one), min(one, nan)], [with_nan; 4], "{ty}");
            assert_eq!(max(nan | 1, nan), nan);
        }
    }
}

#[test]
fn arithmetic_nans_are_canonical() {
    for ty in BASE {
        let [inf, ninf, zero, one] = [f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0].map(|x| bits(ty, x));
        let payload = nan(ty) | 1 | minimum(ty);
        for rounding in [NEAREST, Rounding::Zero, Rounding::NegativeInf, Rounding::PositiveInf] {
            let ftz = false;
            let cases = [
                apply(ScalarOp::AddF { rounding, ftz }, ty, &[inf, ninf]),
                apply(ScalarOp::SubF { rounding, ftz }, ty, &[inf, inf]),
                apply(ScalarOp::MulF { rounding, ftz }, ty, &[inf, zero]),
                apply(ScalarOp::DivF { rounding, ftz }, ty, &[zero, zero]),
                apply(ScalarOp::Sqrt { rounding, ftz }, ty, &[one]),
                apply(ScalarOp::Fma { rounding, ftz }, ty, &[inf, zero, one]),
                apply(ScalarOp::Fma { rounding, ftz }, ty, &[inf, one, inf]),
                apply(ScalarOp::AddF { rounding, ftz }, ty, &[payload, one]),
                apply(ScalarOp::RemF, ty, &[one, zero]),
                apply(ScalarOp::Log, ty, &[one]),
                apply(ScalarOp::Floor, ty, &[payload]),
            ];
            assert_eq!(cases, [nan(ty); 11], "{ty} {rounding:?}");
        }
        for pred in [Predicate::Equal, Predicate::NotEqual, Predicate::LessThan] {
            assert_eq!(apply(ScalarOp::CmpF { pred, ordered: true }, ty, &[payload, one]), 0);
            assert_eq!(apply(ScalarOp::CmpF { pred, ordered: false }, ty, &[payload, one]), 1);
        }
        let equal = ScalarOp::CmpF { pred: Predicate::Equal, ordered: true };
        assert_eq!(apply(equal, ty, &[zero, zero | minimum(ty)]), 1);
    }
}

#[test]
fn directed_ends_and_zero_signs() {
    let ftz = false;
    for ty in BASE {
        let huge = apply(ScalarOp::SubF { rounding: Rounding::Zero, ftz }, ty, &[bits(ty, f64::INFINITY) - 1, 0]);
        let add = |rounding, a, b| apply(ScalarOp::AddF { rounding, ftz }, ty, &[a, b]);
        let inf = bits(ty, f64::INFINITY);
        assert_eq!(add(NEAREST, huge, huge), inf);
        assert_eq!(add(Rounding::Zero, huge, huge), huge);
        assert_eq!(add(Rounding::NegativeInf, huge, huge), huge);
        assert_eq!(add(Rounding::PositiveInf, huge, 1), inf);
        let one = bits(ty, 1.0);
        assert_eq!(add(Rounding::NegativeInf, one, one | minimum(ty)), minimum(ty), "1 - 1 is -0 downwards");
        assert_eq!(add(NEAREST, one, one | minimum(ty)), 0);
        let div = |rounding| apply(ScalarOp::DivF { rounding, ftz }, ty, &[1, bits(ty, 3.0)]);
        assert_eq!([div(NEAREST), div(Rounding::PositiveInf), div(Rounding::Zero)], [0, 1, 0], "{ty} subnormals");
    }
}

#[test]
fn flush_to_zero_keeps_signs() {
    let f = |x: f32| x.to_bits() as u64;
    let (small, ftz) = (f32::MIN_POSITIVE, true);
    for rounding in [NEAREST, Rounding::Zero] {
        let op = ScalarOp::MulF { rounding, ftz };
        assert_eq!(apply(op, DType::F32, &[f(small), f(-0.5)]), f(-0.0), "a subnormal result");
        assert_eq!(apply(op, DType::F32, &[f(-small / 2.0), f(1e30)]), f(-0.0), "a subnormal operand");
        let op = ScalarOp::AddF { rounding, ftz };
        assert_eq!(apply(op, DType::F32, &[f(small), f(small)]), f(2.0 * small));
    }
    let max = ScalarOp::MaxF { nan: false, ftz };
    assert_eq!(apply(max, DType::F32, &[f(-1.0), f(-1e-40)]), f(-0.0));
    assert_eq!(apply(ScalarOp::Exp2 { ftz }, DType::F32, &[f(-130.0)]), f(0.0));
    assert_eq!(apply(ScalarOp::Exp2 { ftz: false }, DType::F32, &[f(-130.0)]), 1 << 19);
    assert_eq!(apply(ScalarOp::Rsqrt { ftz }, DType::F32, &[f(1e-40)]), f(f32::INFINITY));
}

/// Every operation on all pairs of i4 and i8, against plain i64 arithmetic.
#[test]
fn small_integers_exhaustively() {
    for ty in [DType::I1, DType::I4, DType::I8] {
        let w = ty.bits();
        let signed = |x: u64| if x >> (w - 1) & 1 == 1 { x as i64 - (1 << w) } else { x as i64 };
        let wrap = |x: i64| x.rem_euclid(1 << w) as u64;
        let run = |op, a: u64, b: u64| apply(op, ty, &[a, b]);
        for a in 0..=ty.mask() {
            for b in 0..=ty.mask() {
                let (sa, sb, ua, ub) = (signed(a), signed(b), a as i64, b as i64);
                assert_eq!(run(ScalarOp::AddI, a, b), wrap(ua + ub));
                assert_eq!(run(ScalarOp::SubI, a, b), wrap(ua - ub));
                assert_eq!(run(ScalarOp::MulI, a, b), wrap(ua * ub));
                assert_eq!(run(ScalarOp::MulHi, a, b), (ua * ub) as u64 >> w);
                for (sign, x, y) in [(SIGNED, sa, sb), (UNSIGNED, ua, ub)] {
                    let exact = x as f64 / y as f64;
                    for (rounding, q) in [
                        (Rounding::Zero, exact.trunc()),
                        (Rounding::NegativeInf, exact.floor()),
                        (Rounding::PositiveInf, exact.ceil()),
                    ] {
                        let expected = if y == 0 { 0 } else { wrap(q as i64) };
                        assert_eq!(
                            run(ScalarOp::DivI { sign, rounding }, a, b),
                            expected,
                            "{ty} {x} / {y} {rounding:?}"
                        );
                    }
                    let remainder = if y == 0 { 0 } else { wrap(x - y * exact.trunc() as i64) };
                    assert_eq!(run(ScalarOp::RemI { sign }, a, b), remainder, "{ty} {x} rem {y}");
                    assert_eq!(is_undefined(ScalarOp::RemI { sign }, ty, &[a, b]), y == 0);
                    assert_eq!(run(ScalarOp::MaxI { sign }, a, b), wrap(x.max(y)));
                    assert_eq!(run(ScalarOp::MinI { sign }, a, b), wrap(x.min(y)));
                    assert_eq!(run(ScalarOp::CmpI { pred: Predicate::LessThan, sign }, a, b), (x < y) as u64);
                    assert_eq!(
                        run(ScalarOp::CmpI { pred: Predicate::GreaterThanOrEqual, sign }, a, b),
                        (x >= y) as u64
                    );
                    let shifted = (x >> b.min(62)) as u64 & ty.mask();
                    assert_eq!(run(ScalarOp::Shr { sign }, a, b), shifted, "{ty} {x} >> {b}");
                    let undefined = y == 0 || sign == SIGNED && x == -(1 << (w - 1)) && y == -1;
                    assert_eq!(is_undefined(ScalarOp::DivI { sign, rounding: Rounding::Zero }, ty, &[a, b]), undefined);
                }
                assert_eq!(run(ScalarOp::Shl, a, b), if b >= w as u64 { 0 } else { wrap(ua << b) });
                assert_eq!(is_undefined(ScalarOp::Shl, ty, &[a, b]), b >= w as u64);
            }
            assert_eq!(run(ScalarOp::NegI, a, 0), wrap(-signed(a)));
            assert_eq!(run(ScalarOp::AbsI, a, 0), wrap(signed(a).abs()));
        }
    }
}

#[test]
fn wide_integers() {
    let run = |op, a: i64, b: i64| apply(op, DType::I64, &[a as u64, b as u64]) as i64;
    assert_eq!(run(ScalarOp::MulHi, -1, -1), -2);
    assert_eq!(run(ScalarOp::DivI { sign: SIGNED, rounding: Rounding::Zero }, i64::MIN, -1), i64::MIN);
    assert_eq!(run(ScalarOp::DivI { sign: SIGNED, rounding: Rounding::NegativeInf }, -7, 2), -4);
    assert_eq!(run(ScalarOp::RemI { sign: SIGNED }, i64::MIN, -1), 0);
    assert_eq!(run(ScalarOp::Shl, 1, 64), 0);
    assert_eq!(run(ScalarOp::Shr { sign: SIGNED }, -8, 1 << 40), -1);
    assert_eq!(run(ScalarOp::PtrAdd, 4096, -3), 4096 - 24);
    assert_eq!(apply(ScalarOp::Select, DType::F32, &[1, 7, 9]), 7);
    assert_eq!(apply(ScalarOp::ExtI { to: DType::I64, sign: SIGNED }, DType::I1, &[1]), u64::MAX);
    assert_eq!(apply(ScalarOp::TruncI { to: DType::I8 }, DType::I64, &[0x1ff]), 0xff);
}

#[test]
fn float_to_int_saturates() {
    let run = |x: f64, to, sign| apply(ScalarOp::FToI { to, sign }, DType::F64, &[x.to_bits()]);
    for to in INTS.into_iter().filter(|&to| to != DType::I1) {
        let w = to.bits() as i32;
        assert_eq!(run(f64::INFINITY, to, SIGNED), to.mask() >> 1);
        assert_eq!(run(-1e300, to, SIGNED), 1 << (w - 1));
        assert_eq!(run(1e300, to, UNSIGNED), to.mask());
        assert_eq!(run(-3.0, to, UNSIGNED), 0);
        assert_eq!(run(f64::NAN, to, SIGNED), 0);
        let undefined = |x: f64, sign| is_undefined(ScalarOp::FToI { to, sign }, DType::F64, &[x.to_bits()]);
        assert!(
            undefined(f64::NAN, SIGNED) && undefined(2f64.powi(w), UNSIGNED) && undefined(2f64.powi(w - 1), SIGNED)
        );
        assert!(!undefined(-2f64.powi(w - 1), SIGNED) && !undefined(-0.9, UNSIGNED) && undefined(-1.0, UNSIGNED));
    }
    assert_eq!(run(-2.9, DType::I8, SIGNED), 0xfe);
}

#[test]
fn floats_are_true_unless_zero() {
    let floats = [DType::F16, DType::BF16, DType::F32, DType::TF32, DType::F64, DType::F8E4M3FN, DType::F8E5M2];
    for ty in floats.into_iter().chain([DType::F8E8M0FNU, DType::F8E5M3FNU, DType::F4E2M1FN]) {
        let top = if ty.bits() > 16 { 16 } else { ty.bits() };
        // Every pattern of a small format; of a wide one the highest bits, and the least number.
        for x in (0..1u64 << top).map(|x| x << (ty.bits() - top)).chain([1]) {
            for sign in [SIGNED, UNSIGNED] {
                let op = ScalarOp::FToI { to: DType::I1, sign };
                let zero = ScalarOp::CmpF { pred: Predicate::NotEqual, ordered: false };
                let want = (to_f64(ty, x) != 0.0) as u64;
                assert_eq!(apply(op, ty, &[x]), want, "{ty} {x:#x}");
                assert_eq!(apply(zero, DType::F64, &[to_f64(ty, x).to_bits(), 0]), want, "{ty} {x:#x}");
                assert!(!is_undefined(op, ty, &[x]));
            }
        }
    }
}

#[test]
fn int_to_float_rounds_once() {
    let run = |x: u64, to, sign| apply(ScalarOp::IToF { to, sign }, DType::I64, &[x]);
    for x in [0, 1, u64::MAX, 1 << 63, 0x0fff_ffff_7fff_ffff, 0x8000_0080_0000_0001, 16777217] {
        assert_eq!(run(x, DType::F32, UNSIGNED), (x as f32).to_bits() as u64);
        assert_eq!(run(x, DType::F32, SIGNED), (x as i64 as f32).to_bits() as u64);
        assert_eq!(run(x, DType::F64, UNSIGNED), (x as f64).to_bits());
    }
    assert_eq!(run(100_000, DType::F16, SIGNED), 0x7c00);
    assert_eq!(run(2049, DType::F16, SIGNED), bits(DType::F16, 2048.0));
    assert_eq!(apply(ScalarOp::IToF { to: DType::F32, sign: SIGNED }, DType::I1, &[1]), bits(DType::F32, -1.0));
}

#[test]
fn remainders_and_roundings() {
    for ty in BASE {
        let run = |op, x: f64, y: f64| to_f64(ty, apply(op, ty, &[bits(ty, x), bits(ty, y)]));
        assert_eq!(run(ScalarOp::RemF, -7.5, 2.0), -1.5);
        assert_eq!(run(ScalarOp::RemF, 5.0, f64::INFINITY), 5.0);
        assert!(run(ScalarOp::RemF, -6.0, 2.0).is_sign_negative());
        assert_eq!(run(ScalarOp::Ceil, 1.25, 0.0), 2.0);
        assert!(run(ScalarOp::Ceil, -0.5, 0.0).is_sign_negative());
        assert_eq!(run(ScalarOp::Floor, -1.25, 0.0), -2.0);
    }
    let (a, b) = (1e38f32, 3.7e-30f32);
    let r = apply(ScalarOp::RemF, DType::F32, &[a.to_bits() as u64, b.to_bits() as u64]);
    assert_eq!(f32::from_bits(r as u32), a % b);
}

/// f16 and bf16 take the f32 function and round once.
#[test]
fn halves_take_transcendentals_in_f32() {
    for ty in [DType::F16, DType::BF16] {
        for x in [0.25, 1.5, 7.0, -3.0] {
            let check = |op, args: &[u64], exact: f64| {
                let got = apply(op, ty, args);
                let expected = bits(ty, exact);
                assert!(got == expected || is_nan(ty, got) && exact.is_nan(), "{op:?} {ty} {x}");
            };
            let a = bits(ty, x);
            check(ScalarOp::Exp, &[a], x.exp());
            check(ScalarOp::Log, &[a], x.ln());
            check(ScalarOp::Cos, &[a], x.cos());
            check(ScalarOp::Tanh, &[a], x.tanh());
            check(ScalarOp::Pow, &[a, bits(ty, 2.5)], x.powf(2.5));
            check(ScalarOp::PowI, &[a, -3i32 as u32 as u64], x.powi(-3));
            check(ScalarOp::Atan2, &[a, bits(ty, -2.0)], x.atan2(-2.0));
            check(ScalarOp::Rsqrt { ftz: false }, &[a], 1.0 / x.sqrt());
        }
    }
}

#[test]
fn rounds_to_the_nearest_even_integer() {
    for ty in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let bits = |x: f64| convert(DType::F64, x.to_bits(), ty, Rounding::NearestEven);
        for (x, y) in [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0), (0.75, 1.0), (130.0, 130.0)] {
            assert_eq!(apply(ScalarOp::RoundEven, ty, &[bits(x)]), bits(y), "{ty} {x}");
        }
    }
}
