use super::*;

const FLOATS: [DType; 12] = [
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::TF32,
    DType::F64,
    DType::F8E4M3FN,
    DType::F8E5M2,
    DType::F8E8M0FNU,
    DType::F8E5M3FNU,
    DType::F4E2M1FN,
    DType::F8E4M3FNUZ,
    DType::F8E5M2FNUZ,
];

#[test]
fn literals() {
    let parse = |text| parse_float(DType::F32, text);
    let value = |x: f32| Some(x.to_bits() as u64);
    assert_eq!(parse("1.5"), value(1.5));
    assert_eq!(parse("-0.0"), value(-0.0));
    assert_eq!(parse("1e-45"), Some(1));
    assert_eq!(parse("1e-46"), Some(0));
    assert_eq!(parse("7.006492321624085354618e-46"), Some(0), "half the smallest is a tie");
    assert_eq!(parse("7.006492321624085354619e-46"), Some(1));
    assert_eq!(parse("340282356779733661637539395458142568448"), value(f32::INFINITY));
    assert_eq!(parse("340282356779733661637539395458142568447"), value(f32::MAX));
    assert_eq!(parse("1e999999999999999999999"), value(f32::INFINITY));
    assert_eq!(parse("-1e-999999999999999999999"), value(-0.0));
    assert_eq!(parse("0x7FC00000"), Some(0x7fc0_0000));
    assert_eq!(parse("0x1.8p3"), value(12.0));
    assert_eq!(parse("-0x1.000001p0"), value(-1.0));
    assert_eq!(parse("0x1.0000010000000000000000000000000000000001p0"), value(1.0f32.next_up()));
    assert_eq!(parse("inf"), value(f32::INFINITY));
    for bad in
        ["", "-", ".", "1e", "e5", "0x", "0x1FFFFFFFF", "-0x1", "1.2.3", "1_0", "infinity", " 1", "0x1p", "1e+-3"]
    {
        assert_eq!(parse(bad), None, "{bad:?}");
    }
    assert_eq!(parse_float(DType::TF32, "0x7FFFF"), Some(0xffff_e000));
    assert_eq!(parse_float(DType::TF32, "0x80000"), None);
    assert_eq!(parse_float(DType::F8E4M3FN, "0x7F"), Some(0x7f));
}

/// Rounding to f64 first would round these the wrong way.
#[test]
fn one_rounding() {
    assert_eq!(parse_float(DType::F16, "1.00048828125"), Some(0x3c00));
    assert_eq!(parse_float(DType::F16, "1.000488281250000000000000000000001"), Some(0x3c01));
    assert_eq!(parse_float(DType::BF16, "1.01171875"), Some(0x3f82));
    assert_eq!(parse_float(DType::BF16, "1.01171874999999999999999999999999"), Some(0x3f81));
}

#[test]
fn printed_forms_parse_back() {
    let mut seed = 5u64;
    for ty in FLOATS {
        for i in 0..4096u64 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bits = if ty.bits() <= 8 { i & ty.mask() } else { (seed ^ seed >> 31) & ty.mask() };
            let bits = bits >> padding(ty) << padding(ty);
            if is_nan(ty, bits) {
                assert_eq!(format_float(ty, bits), "nan");
                assert_eq!(parse_float(ty, &format_mlir(ty, bits)), Some(bits));
                continue;
            }
            for text in [format_float(ty, bits), format_mlir(ty, bits)] {
                assert_eq!(parse_float(ty, &text), Some(bits), "{ty} {bits:#x} {text}");
            }
        }
    }
}

#[test]
fn shortest() {
    let show = |x: f32| format_float(DType::F32, x.to_bits() as u64);
    assert_eq!([show(1.0), show(0.1), show(1e-7), show(-0.0)], ["1.0", "0.1", "1e-7", "-0.0"]);
    assert_eq!(format_float(DType::F16, 0x2e66), "0.1");
    assert_eq!(format_float(DType::F8E4M3FN, 0x7e), "448.0");
    assert_eq!(format_float(DType::F32, 0xff80_0000), "-inf");
}

#[test]
fn as_mlir_prints() {
    let show = |x: f32| format_mlir(DType::F32, x.to_bits() as u64);
    assert_eq!(show(1.0), "1.000000e+00");
    assert_eq!(show(0.0), "0.000000e+00");
    assert_eq!(show(-0.0), "-0.000000e+00");
    assert_eq!(show(0.1), "1.000000e-01");
    assert_eq!(show(-1.5e10), "-1.500000e+10");
    assert_eq!(show(std::f32::consts::LN_2), "0.693147182");
    assert_eq!(show(std::f32::consts::PI), "3.14159274");
    assert_eq!(show(1.234_567_9e-10), "1.23456786E-10");
    assert_eq!(show(16_777_215.0), "0x4B7FFFFF", "no point: the plain form has none");
    assert_eq!(show(f32::INFINITY), "0x7F800000");
    assert_eq!(show(f32::NAN), "0x7FC00000");
    assert_eq!(format_mlir(DType::F64, std::f64::consts::PI.to_bits()), "3.1415926535897931");
    assert_eq!(format_mlir(DType::F64, 1e100f64.to_bits()), "1.000000e+100");
    assert_eq!(format_mlir(DType::F16, 0x2e66), "9.997550e-02", "far digits are cut off, not rounded");
    assert_eq!(show(1e-5), "9.99999974E-6");
    assert_eq!(format_mlir(DType::TF32, 0x7fc0_0000), "0x3FE00");
}
