//! Functions of libdevice on floats that are made of several others.
//!
//! Functions in [`wide`] are computed in f64, whose range and digits leave nothing to do for the ends of f32, and rounded once.

use super::*;

type Make = fn(&mut Conv, &[ValueId]) -> ValueId;

/// The functions of f32 that are computed in f64, and how many operands each has.
pub(super) fn wide(name: &str) -> Option<(usize, Make)> {
    Some(match name {
        "remainder" => (2, remainder),
        "ldexp" | "scalbn" => (2, |c, a| {
            let by = power_of_two(c, a[1]);
            c.same(Opcode::MulF, &[a[0], by])
        }),
        "sinpi" => (1, |c, a| of_half_turns(c, a[0], 0)),
        "cospi" => (1, |c, a| of_half_turns(c, a[0], 1)),
        "norm3d" => (3, length),
        "norm4d" => (4, length),
        "rhypot" => (2, inverse_length),
        "rnorm3d" => (3, inverse_length),
        "rnorm4d" => (4, inverse_length),
        "rcbrt" => (1, |c, a| {
            let (size, third) = (c.same(Opcode::AbsF, a), like(c, a[0], -1.0 / 3.0));
            let root = c.same(Opcode::Pow, &[size, third]);
            signed_as(c, root, a[0])
        }),
        "erfc" => (1, |c, a| {
            let scaled = scaled_tail(c, a[0]);
            let far = bell(c, a[0], -1.0);
            let tail = c.same(Opcode::MulF, &[scaled, far]);
            let near = complement(c, a[0]);
            from_three(c, a[0], near, tail)
        }),
        "erfcx" => (1, |c, a| {
            let tail = scaled_tail(c, a[0]);
            let (near, grown) = (complement(c, a[0]), bell(c, a[0], 1.0));
            let near = c.same(Opcode::MulF, &[near, grown]);
            from_three(c, a[0], near, tail)
        }),
        "normcdf" => (1, |c, a| {
            let x = times(c, a[0], -std::f64::consts::FRAC_1_SQRT_2);
            let (scaled, far) = (scaled_tail(c, x), bell(c, x, -1.0));
            let tail = c.same(Opcode::MulF, &[scaled, far]);
            let near = complement(c, x);
            let twice = from_three(c, x, near, tail);
            times(c, twice, 0.5)
        }),
        "tgamma" => (1, |c, a| gamma(c, a[0])),
        "logb" => (1, |c, a| {
            let exponent = exponent(c, a[0]);
            let plain = c.converted(Opcode::IToF, exponent, DType::F64, signed(Signedness::Signed));
            let size = c.same(Opcode::AbsF, a);
            // Infinities and NaNs stay.
            let infinite = like(c, size, f64::INFINITY);
            let finite = c.floats_compare(Predicate::LessThan, size, infinite);
            let plain = c.choose(finite, plain, size);
            let (zero, least) = (like(c, size, 0.0), like(c, size, f64::NEG_INFINITY));
            let none = c.floats_compare(Predicate::Equal, size, zero);
            c.choose(none, least, plain)
        }),
        "ilogb" => (1, |c, a| {
            let wide = exponent(c, a[0]);
            let plain = c.converted(Opcode::TruncI, wide, DType::I32, vec![]);
            let size = c.same(Opcode::AbsF, a);
            let shape = c.tile_ty(size).shape.clone();
            let (zero, infinite) = (like(c, size, 0.0), like(c, size, f64::INFINITY));
            let (least, most) = (c.fill(&shape, DType::I32, 1 << 31), c.fill(&shape, DType::I32, i32::MAX as u64));
            let some = c.floats_compare(Predicate::GreaterThan, size, zero);
            let all = c.floats_compare(Predicate::Equal, size, infinite);
            let plain = c.choose(some, plain, least);
            c.choose(all, most, plain)
        }),
        _ => return None,
    })
}

/// The functions of either type, and how many operands each has.
pub(super) fn by_name(name: &str) -> Option<(usize, Make)> {
    if let Some(make) = conversion(name) {
        return Some((1, make));
    }
    Some(match name {
        "nextafter" => (2, next_after),
        "frcp_rz" | "drcp_rz" => (1, |c, a| inverse(c, a[0], Rounding::Zero)),
        "frcp_rd" | "drcp_rd" => (1, |c, a| inverse(c, a[0], Rounding::NegativeInf)),
        "frcp_ru" | "drcp_ru" => (1, |c, a| inverse(c, a[0], Rounding::PositiveInf)),
        "double2hiint" => (1, |c, a| half_of(c, a[0], 32)),
        "double2loint" => (1, |c, a| half_of(c, a[0], 0)),
        "hiloint2double" => (2, |c, a| {
            let [high, low] =
                [a[0], a[1]].map(|v| c.converted(Opcode::ExtI, v, DType::I64, signed(Signedness::Unsigned)));
            let shape = c.tile_ty(high).shape.clone();
            let places = c.fill(&shape, DType::I64, 32);
            let high = c.same(Opcode::ShlI, &[high, places]);
            let bits = c.same(Opcode::OrI, &[high, low]);
            c.converted(Opcode::Bitcast, bits, DType::F64, vec![])
        }),
        _ => return None,
    })
}

/// Conversions that are named by both types and by the rounding: `float2int_rn`, `ll2double_rn`, `double2float_rz`.
fn conversion(name: &str) -> Option<Make> {
    Some(match name {
        "float2int_rn" | "double2int_rn" => |c, a| whole(c, a[0], Some("rint"), DType::I32, Signedness::Signed),
        "float2int_rz" | "double2int_rz" => |c, a| whole(c, a[0], None, DType::I32, Signedness::Signed),
        "float2int_rd" | "double2int_rd" => |c, a| whole(c, a[0], Some("floor"), DType::I32, Signedness::Signed),
        "float2int_ru" | "double2int_ru" => |c, a| whole(c, a[0], Some("ceil"), DType::I32, Signedness::Signed),
        "float2uint_rn" | "double2uint_rn" => |c, a| whole(c, a[0], Some("rint"), DType::I32, Signedness::Unsigned),
        "float2uint_rz" | "double2uint_rz" => |c, a| whole(c, a[0], None, DType::I32, Signedness::Unsigned),
        "float2uint_rd" | "double2uint_rd" => |c, a| whole(c, a[0], Some("floor"), DType::I32, Signedness::Unsigned),
        "float2uint_ru" | "double2uint_ru" => |c, a| whole(c, a[0], Some("ceil"), DType::I32, Signedness::Unsigned),
        "float2ll_rn" | "double2ll_rn" | "llrint" => {
            |c, a| whole(c, a[0], Some("rint"), DType::I64, Signedness::Signed)
        }
        "float2ll_rz" | "double2ll_rz" => |c, a| whole(c, a[0], None, DType::I64, Signedness::Signed),
        "float2ll_rd" | "double2ll_rd" => |c, a| whole(c, a[0], Some("floor"), DType::I64, Signedness::Signed),
        "float2ll_ru" | "double2ll_ru" => |c, a| whole(c, a[0], Some("ceil"), DType::I64, Signedness::Signed),
        "float2ull_rn" | "double2ull_rn" => |c, a| whole(c, a[0], Some("rint"), DType::I64, Signedness::Unsigned),
        "float2ull_rz" | "double2ull_rz" => |c, a| whole(c, a[0], None, DType::I64, Signedness::Unsigned),
        "float2ull_rd" | "double2ull_rd" => |c, a| whole(c, a[0], Some("floor"), DType::I64, Signedness::Unsigned),
        "float2ull_ru" | "double2ull_ru" => |c, a| whole(c, a[0], Some("ceil"), DType::I64, Signedness::Unsigned),
        "llround" => |c, a| {
            let rounded = rounded_away(c, a[0]);
            whole(c, rounded, None, DType::I64, Signedness::Signed)
        },
        "int2float_rn" | "ll2float_rn" => {
            |c, a| c.converted(Opcode::IToF, a[0], DType::F32, signed(Signedness::Signed))
        }
        "uint2float_rn" | "ull2float_rn" => {
            |c, a| c.converted(Opcode::IToF, a[0], DType::F32, signed(Signedness::Unsigned))
        }
        "int2double_rn" | "ll2double_rn" => {
            |c, a| c.converted(Opcode::IToF, a[0], DType::F64, signed(Signedness::Signed))
        }
        "uint2double_rn" | "ull2double_rn" => {
            |c, a| c.converted(Opcode::IToF, a[0], DType::F64, signed(Signedness::Unsigned))
        }
        "double2float_rn" => |c, a| c.converted(Opcode::FToF, a[0], DType::F32, vec![]),
        _ => return None,
    })
}

fn signed(of: Signedness) -> Vec<(AttrKey, Attr)> {
    vec![(AttrKey::Signedness, Attr::Signedness(of))]
}

fn whole(c: &mut Conv, x: ValueId, first: Option<&str>, to: DType, of: Signedness) -> ValueId {
    let x = match first {
        Some("floor") => c.same(Opcode::Floor, &[x]),
        Some("ceil") => c.same(Opcode::Ceil, &[x]),
        Some(name) => external(c, &[x], name),
        None => x,
    };
    c.converted(Opcode::FToI, x, to, signed(of))
}

fn inverse(c: &mut Conv, x: ValueId, rounding: Rounding) -> ValueId {
    let one = like(c, x, 1.0);
    c.same_with(Opcode::DivF, &[one, x], vec![(AttrKey::Rounding, Attr::Rounding(rounding))])
}

/// The 32 bits of an f64 from that place on.
fn half_of(c: &mut Conv, x: ValueId, from: u64) -> ValueId {
    let bits = c.converted(Opcode::Bitcast, x, DType::I64, vec![]);
    let shape = c.tile_ty(bits).shape.clone();
    let places = c.fill(&shape, DType::I64, from);
    let bits = c.same_with(Opcode::ShrI, &[bits, places], signed(Signedness::Unsigned));
    c.converted(Opcode::TruncI, bits, DType::I32, vec![])
}

/// The number after x in the direction of y: the next pattern of bits, away from zero or towards it.
fn next_after(c: &mut Conv, a: &[ValueId]) -> ValueId {
    let (x, y) = (a[0], a[1]);
    let ty = c.tile_ty(x).clone();
    let dtype = ty.num().unwrap_or(DType::F32);
    let int = if dtype == DType::F64 { DType::I64 } else { DType::I32 };
    let bits = c.converted(Opcode::Bitcast, x, int, vec![]);
    let one = c.fill(&ty.shape, int, 1);
    let (more, less) = (c.same(Opcode::AddI, &[bits, one]), c.same(Opcode::SubI, &[bits, one]));
    let zero = like(c, x, 0.0);
    let upwards = c.floats_compare(Predicate::LessThan, x, y);
    let positive = c.floats_compare(Predicate::GreaterThan, x, zero);
    let differ = c.same(Opcode::XorI, &[upwards, positive]);
    let bits = c.choose(differ, less, more);
    let next = c.converted(Opcode::Bitcast, bits, dtype, vec![]);
    let least = c.converted(Opcode::Bitcast, one, dtype, vec![]);
    let least = signed_as(c, least, y);
    let none = c.floats_compare(Predicate::Equal, x, zero);
    let next = c.choose(none, least, next);
    let same = c.floats_compare(Predicate::Equal, x, y);
    let next = c.choose(same, y, next);
    // A NaN of either stays.
    let sum = c.same(Opcode::AddF, &[x, y]);
    let (own, other) = (c.floats_compare(Predicate::Equal, x, x), c.floats_compare(Predicate::Equal, y, y));
    let known = c.same(Opcode::AndI, &[own, other]);
    c.choose(known, next, sum)
}

/// x less the multiple of y that is nearest; of two, the even one. Each step is exact.
fn remainder(c: &mut Conv, a: &[ValueId]) -> ValueId {
    let (size, by) = (c.same(Opcode::AbsF, &a[..1]), c.same(Opcode::AbsF, &a[1..2]));
    let two = c.same(Opcode::AddF, &[by, by]);
    let rest = c.same(Opcode::RemF, &[size, two]);
    let infinite = like(c, by, f64::INFINITY);
    let far = c.floats_compare(Predicate::Equal, two, infinite);
    let mut rest = c.choose(far, size, rest);
    let doubled = c.same(Opcode::AddF, &[rest, rest]);
    let (over, less) = (c.floats_compare(Predicate::GreaterThan, doubled, by), c.same(Opcode::SubF, &[rest, by]));
    let (again, twice) = (c.same(Opcode::AddF, &[less, less]), c.same(Opcode::SubF, &[less, by]));
    let more = c.floats_compare(Predicate::GreaterThanOrEqual, again, by);
    let lower = c.choose(more, twice, less);
    rest = c.choose(over, lower, rest);
    // The sign of x turns the result's.
    let (minus, negative) = (c.same(Opcode::NegF, &[rest]), sign(c, a[0]));
    let signed = c.choose(negative, minus, rest);
    let known = c.floats_compare(Predicate::Equal, rest, rest);
    c.choose(known, signed, rest)
}

/// 2^n as an f64, from the bits of its exponent; n far beyond those of f32 counts as the last of them.
fn power_of_two(c: &mut Conv, n: ValueId) -> ValueId {
    let shape = c.tile_ty(n).shape.clone();
    let n = if c.tile_ty(n).num() == Some(DType::I64) {
        n
    } else {
        c.converted(Opcode::ExtI, n, DType::I64, signed(Signedness::Signed))
    };
    let [most, least, bias, places] =
        [600u64, (-600i64) as u64, 1023, 52].map(|number| c.fill(&shape, DType::I64, number));
    let n = c.same_with(Opcode::MinI, &[n, most], signed(Signedness::Signed));
    let n = c.same_with(Opcode::MaxI, &[n, least], signed(Signedness::Signed));
    let n = c.same(Opcode::AddI, &[n, bias]);
    let bits = c.same(Opcode::ShlI, &[n, places]);
    c.converted(Opcode::Bitcast, bits, DType::F64, vec![])
}

/// The exponent of an f64, as an i64.
fn exponent(c: &mut Conv, x: ValueId) -> ValueId {
    let bits = c.converted(Opcode::Bitcast, x, DType::I64, vec![]);
    let shape = c.tile_ty(bits).shape.clone();
    let [places, mask, bias] = [52, 0x7ff, 1023].map(|number| c.fill(&shape, DType::I64, number));
    let high = c.same_with(Opcode::ShrI, &[bits, places], signed(Signedness::Unsigned));
    let high = c.same(Opcode::AndI, &[high, mask]);
    c.same(Opcode::SubI, &[high, bias])
}

/// sin(pi x), or with one quarter turn more cos(pi x): of the part within a quarter, so that whole numbers give what they should.
fn of_half_turns(c: &mut Conv, x: ValueId, more: u64) -> ValueId {
    // The rest by 2, which is exact.
    let two = like(c, x, 2.0);
    let turn = c.same(Opcode::RemF, &[x, two]);
    let doubled = c.same(Opcode::AddF, &[turn, turn]);
    let quarters = external(c, &[doubled], "rint");
    let half = times(c, quarters, 0.5);
    let rest = c.same(Opcode::SubF, &[turn, half]);
    let angle = times(c, rest, std::f64::consts::PI);
    let (sine, cosine) = (c.same(Opcode::Sin, &[angle]), c.same(Opcode::Cos, &[angle]));
    let count = c.converted(Opcode::FToI, quarters, DType::I32, signed(Signedness::Signed));
    let shape = c.tile_ty(count).shape.clone();
    let [more, one, two] = [more, 1, 2].map(|number| c.fill(&shape, DType::I32, number));
    let count = c.same(Opcode::AddI, &[count, more]);
    let bit = |c: &mut Conv, of: ValueId| {
        let set = c.same(Opcode::AndI, &[count, of]);
        c.integers_compare(Predicate::Equal, Signedness::Signed, set, of)
    };
    let (odd, below) = (bit(c, one), bit(c, two));
    let of = c.choose(odd, cosine, sine);
    let minus = c.same(Opcode::NegF, &[of]);
    let out = c.choose(below, minus, of);
    // Zeros have the sign of x for the sine, and are positive for the cosine.
    let zero = like(c, x, 0.0);
    let none = c.floats_compare(Predicate::Equal, out, zero);
    let of_x = signed_as(c, zero, x);
    let shape = c.tile_ty(x).shape.clone();
    let first = c.integers_compare(Predicate::Equal, Signedness::Signed, more, one);
    let cosines = c.spread(first, &shape);
    let none_of = c.choose(cosines, zero, of_x);
    c.choose(none, none_of, out)
}

/// The square root of the sum of squares; an infinite one is infinite, beside a NaN too.
fn length(c: &mut Conv, a: &[ValueId]) -> ValueId {
    let mut sum = like(c, a[0], 0.0);
    let infinite = like(c, a[0], f64::INFINITY);
    for &x in a {
        sum = c.same(Opcode::Fma, &[x, x, sum]);
    }
    let mut root = c.same(Opcode::Sqrt, &[sum]);
    for &x in a {
        let size = c.same(Opcode::AbsF, &[x]);
        let far = c.floats_compare(Predicate::Equal, size, infinite);
        root = c.choose(far, infinite, root);
    }
    root
}

fn inverse_length(c: &mut Conv, a: &[ValueId]) -> ValueId {
    let (root, one) = (length(c, a), like(c, a[0], 1.0));
    c.same(Opcode::DivF, &[one, root])
}

/// 1 - erf(x)
fn complement(c: &mut Conv, x: ValueId) -> ValueId {
    let (erf, one) = (external(c, &[x], "erf"), like(c, x, 1.0));
    c.same(Opcode::SubF, &[one, erf])
}

/// exp(x^2), or with -1 exp(-x^2)
fn bell(c: &mut Conv, x: ValueId, by: f64) -> ValueId {
    let square = c.same(Opcode::MulF, &[x, x]);
    let square = times(c, square, by);
    c.same(Opcode::Exp, &[square])
}

/// exp(x^2) erfc(x) for x from 3 on: 1/sqrt(pi) / (x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))), 24 terms of it.
fn scaled_tail(c: &mut Conv, x: ValueId) -> ValueId {
    let mut sum = x;
    for n in (1..=24).rev() {
        let term = like(c, x, f64::from(n) / 2.0);
        let part = c.same(Opcode::DivF, &[term, sum]);
        sum = c.same(Opcode::AddF, &[x, part]);
    }
    let top = like(c, x, std::f64::consts::FRAC_2_SQRT_PI / 2.0);
    c.same(Opcode::DivF, &[top, sum])
}

fn from_three(c: &mut Conv, x: ValueId, near: ValueId, tail: ValueId) -> ValueId {
    let three = like(c, x, 3.0);
    let far = c.floats_compare(Predicate::GreaterThanOrEqual, x, three);
    c.choose(far, tail, near)
}

/// exp(lgamma(x)), negative where the whole number below a negative x is odd.
fn gamma(c: &mut Conv, x: ValueId) -> ValueId {
    let log = external(c, &[x], "lgamma");
    let size = c.same(Opcode::Exp, &[log]);
    let (zero, two) = (like(c, x, 0.0), like(c, x, 2.0));
    let below = c.same(Opcode::Floor, &[x]);
    let rest = c.same(Opcode::RemF, &[below, two]);
    let (odd, minus) = (c.floats_compare(Predicate::NotEqual, rest, zero), c.same(Opcode::NegF, &[size]));
    let negative = c.floats_compare(Predicate::LessThan, x, zero);
    let turned = c.same(Opcode::AndI, &[odd, negative]);
    let out = c.choose(turned, minus, size);
    // There is none of whole numbers below zero, and that of a zero has its sign.
    let (pole, nan) = (c.floats_compare(Predicate::Equal, below, x), like(c, x, f64::NAN));
    let pole = c.same(Opcode::AndI, &[pole, negative]);
    let out = c.choose(pole, nan, out);
    let (none, infinite) = (c.floats_compare(Predicate::Equal, x, zero), like(c, x, f64::INFINITY));
    let ends = signed_as(c, infinite, x);
    c.choose(none, ends, out)
}
