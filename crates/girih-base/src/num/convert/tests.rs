use super::*;

const MODES: [Rounding; 5] =
    [Rounding::NearestEven, Rounding::NearestAway, Rounding::Zero, Rounding::NegativeInf, Rounding::PositiveInf];

/// The value of each code of the small formats, written out from the formats' definitions.
fn value(ty: DType, code: u64) -> f64 {
    let c = code as i32;
    let sign = |negative: bool| if negative { -1.0 } else { 1.0 };
    match ty {
        DType::F4E2M1FN => sign(c & 8 != 0) * [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][(c & 7) as usize],
        DType::F8E8M0FNU if c == 255 => f64::NAN,
        DType::F8E8M0FNU => 2f64.powi(c - 127),
        DType::F8E4M3FN if c & 127 == 127 => f64::NAN,
        DType::F8E4M3FN => match (c >> 3 & 15, (c & 7) as f64) {
            (0, m) => sign(c & 128 != 0) * m * 2f64.powi(-9),
            (e, m) => sign(c & 128 != 0) * (8.0 + m) * 2f64.powi(e - 10),
        },
        DType::F8E5M3FNU if c == 255 => f64::NAN,
        DType::F8E5M3FNU => match (c >> 3, (c & 7) as f64) {
            (0, m) => m * 2f64.powi(-17),
            (e, m) => (8.0 + m) * 2f64.powi(e - 18),
        },
        DType::F8E4M3FNUZ | DType::F8E5M2FNUZ if c == 128 => f64::NAN,
        DType::F8E4M3FNUZ => match (c >> 3 & 15, (c & 7) as f64) {
            (0, m) => sign(c & 128 != 0) * m * 2f64.powi(-10),
            (e, m) => sign(c & 128 != 0) * (8.0 + m) * 2f64.powi(e - 11),
        },
        DType::F8E5M2FNUZ => match (c >> 2 & 31, (c & 3) as f64) {
            (0, m) => sign(c & 128 != 0) * m * 2f64.powi(-17),
            (e, m) => sign(c & 128 != 0) * (4.0 + m) * 2f64.powi(e - 18),
        },
        _ => match (c >> 2 & 31, (c & 3) as f64) {
            (31, 0.0) => sign(c & 128 != 0) * f64::INFINITY,
            (31, _) => f64::NAN,
            (0, m) => sign(c & 128 != 0) * m * 2f64.powi(-16),
            (e, m) => sign(c & 128 != 0) * (4.0 + m) * 2f64.powi(e - 17),
        },
    }
}

const SMALL: [DType; 7] = [
    DType::F8E4M3FN,
    DType::F8E5M2,
    DType::F8E8M0FNU,
    DType::F8E5M3FNU,
    DType::F4E2M1FN,
    DType::F8E4M3FNUZ,
    DType::F8E5M2FNUZ,
];

#[test]
fn every_small_code_has_its_value_and_comes_back() {
    for ty in SMALL {
        for code in 0..=ty.mask() {
            let expected = value(ty, code);
            let got = to_f64(ty, code);
            assert!(got == expected || got.is_nan() && expected.is_nan(), "{ty} {code:#x}: {got} {expected}");
            if !expected.is_nan() {
                assert_eq!(got.is_sign_negative(), expected.is_sign_negative(), "{ty} {code:#x}");
                for mode in MODES {
                    assert_eq!(from_f64(ty, expected, mode), code, "{ty} {code:#x} {mode:?}");
                }
            }
        }
    }
}

#[test]
fn landmarks() {
    use DType::*;
    let nearest = |ty, x| from_f64(ty, x, Rounding::NearestEven);
    assert_eq!(value(F8E4M3FN, 0x7e), 448.0);
    assert_eq!(nearest(F8E4M3FN, 464.0), 0x7e);
    assert_eq!(nearest(F8E4M3FN, 464.01), 0x7f);
    assert_eq!(nearest(F8E4M3FN, f64::NEG_INFINITY), 0x7f);
    assert_eq!(from_f64(F8E4M3FN, -1e9, Rounding::Zero), 0xfe);
    assert_eq!(nearest(F8E5M2, 61440.0), 0x7c);
    assert_eq!(nearest(F8E5M2, 61439.9), 0x7b);
    assert_eq!(nearest(F8E5M2, f64::NAN), 0x7e);
    assert_eq!(value(F8E5M3FNU, 0xfe), 114688.0);
    assert_eq!(nearest(F8E5M3FNU, 118784.0), 0xfe);
    assert_eq!(nearest(F8E5M3FNU, 118785.0), 0xff);
    assert_eq!(nearest(F8E5M3FNU, -2.0), nearest(F8E5M3FNU, 2.0));
    assert_eq!(nearest(F8E8M0FNU, 0.0), 0);
    assert_eq!(nearest(F8E8M0FNU, 1e-300), 0);
    assert_eq!(nearest(F8E8M0FNU, 1.5), 128);
    assert_eq!(nearest(F8E8M0FNU, 1.49), 127);
    assert_eq!(from_f64(F8E8M0FNU, 1.9, Rounding::Zero), 127);
    assert_eq!(from_f64(F8E8M0FNU, 1.1, Rounding::PositiveInf), 128);
    assert_eq!(nearest(F8E8M0FNU, 1e39), 255);
    assert_eq!(from_f64(F8E8M0FNU, 1e39, Rounding::Zero), 254);
    assert_eq!(
        [nearest(F8E4M3FNUZ, 240.0), nearest(F8E4M3FNUZ, -247.9), nearest(F8E4M3FNUZ, 248.0)],
        [0x7f, 0xff, 0x80]
    );
    assert_eq!([nearest(F8E5M2FNUZ, 57344.0), nearest(F8E5M2FNUZ, 61440.0)], [0x7f, 0x80]);
    assert_eq!([-0.0, -1e-9, f64::NEG_INFINITY, f64::NAN].map(|x| nearest(F8E4M3FNUZ, x)), [0, 0, 0x80, 0x80]);
    assert_eq!(from_f64(F8E5M2FNUZ, f64::MIN, Rounding::Zero), 0xff);
    assert_eq!(nearest(F4E2M1FN, f64::INFINITY), 7);
    assert_eq!(nearest(F4E2M1FN, -7.0), 15);
    assert_eq!(nearest(F4E2M1FN, f64::NAN), 7);
    assert_eq!(nearest(F4E2M1FN, 2.5), 4);
    assert_eq!(nearest(F4E2M1FN, 5.0), 6);
    assert_eq!(nearest(TF32, 1.0 + 2f64.powi(-11)), 0x3f80_0000);
    assert_eq!(nearest(TF32, 1.0 + 3.0 * 2f64.powi(-11)), 0x3f80_4000);
    assert_eq!(nearest(TF32, f64::NAN), 0x7fc0_0000);
    assert_eq!(nearest(TF32, f64::NEG_INFINITY), 0xff80_0000);
    assert_eq!([F16, BF16, F32, F64].map(nan), [0x7e00, 0x7fc0, 0x7fc0_0000, 0x7ff8 << 48]);
}

/// Rounds by looking through all codes of one sign, ascending: between two neighbours, and past the largest.
#[test]
fn small_formats_round_as_a_search_does() {
    for ty in SMALL {
        let codes: Vec<u64> = (0..=ty.mask()).filter(|&c| value(ty, c) >= 0.0 && value(ty, c).is_finite()).collect();
        let codes: Vec<u64> = codes.into_iter().filter(|&c| value(ty, c).is_sign_positive()).collect();
        for pair in codes.windows(2) {
            let (low, high) = (value(ty, pair[0]), value(ty, pair[1]));
            let middle = (low + high) / 2.0;
            for x in [low + (high - low) * 1e-9, middle.next_down(), middle, middle.next_up(), high.next_down()] {
                let nearest = match x.total_cmp(&middle) {
                    std::cmp::Ordering::Less => pair[0],
                    std::cmp::Ordering::Greater => pair[1],
                    // A format without fraction bits has only odd significands; its ties go up.
                    _ if ty == DType::F8E8M0FNU => pair[1],
                    _ => pair[(pair[0] & 1) as usize],
                };
                let away = pair[(x >= middle) as usize];
                let modes = [nearest, away, pair[0], pair[0], pair[1]];
                for (mode, expected) in MODES.into_iter().zip(modes) {
                    assert_eq!(from_f64(ty, x, mode), expected, "{ty} {x:e} {mode:?}");
                }
                if ty.bits() == 4 || value(ty, 0x81).is_sign_negative() {
                    let sign = 1 << (ty.bits() - 1);
                    let modes = [nearest, away, pair[0], pair[1], pair[0]];
                    for (mode, expected) in MODES.into_iter().zip(modes) {
                        let expected = if value(ty, sign).is_nan() && expected == 0 { 0 } else { expected | sign };
                        assert_eq!(from_f64(ty, -x, mode), expected, "{ty} -{x:e} {mode:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn halves_agree_with_another_implementation() {
    use half::{bf16, f16};
    for code in 0..=0xffffu16 {
        for ty in [DType::F16, DType::BF16] {
            let half_f64 =
                |c: u16| if ty == DType::F16 { f16::from_bits(c).to_f64() } else { bf16::from_bits(c).to_f64() };
            let half_code =
                |x: f32| if ty == DType::F16 { f16::from_f32(x).to_bits() } else { bf16::from_f32(x).to_bits() };
            let (x, expected) = (to_f64(ty, code as u64), half_f64(code));
            if expected.is_nan() {
                assert!(x.is_nan());
                continue;
            }
            assert_eq!(x.to_bits(), expected.to_bits());
            assert_eq!(convert(ty, code as u64, DType::F32, Rounding::NearestEven), (x as f32).to_bits() as u64);
            assert_eq!(from_f64(ty, x, Rounding::NearestEven), code as u64);
            let after = half_f64(code.wrapping_add(1));
            let middle = if after.is_finite() { ((x + after) / 2.0) as f32 } else { x as f32 };
            for y in [middle, middle.next_up(), middle.next_down(), x as f32 * 1.0001] {
                let expected = half_code(y) as u64;
                assert_eq!(convert(DType::F32, y.to_bits() as u64, ty, Rounding::NearestEven), expected, "{ty} {y:e}");
                assert_eq!(from_f64(ty, y as f64, Rounding::NearestEven), expected, "{ty} {y:e}");
            }
        }
    }
}

#[test]
fn f64_to_f32_agrees_with_the_hardware() {
    let mut seed = 1u64;
    for _ in 0..20_000 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = f64::from_bits((seed ^ seed >> 29) & !(0x700 << 52) | (0x380 + (seed >> 55 & 0x7f)) << 52);
        let nearest = encode_value(DType::F32, decode(DType::F64, x.to_bits()), Rounding::NearestEven);
        assert_eq!(nearest, (x as f32).to_bits() as u64, "{x:e}");
        let down = f32::from_bits(from_f64(DType::F32, x, Rounding::NegativeInf) as u32);
        let up = f32::from_bits(from_f64(DType::F32, x, Rounding::PositiveInf) as u32);
        assert!(down as f64 <= x && x <= up as f64 && (up == down || up == down.next_up()), "{x:e}");
    }
}
