//! Functions of libdevice, by name.

use super::*;
use crate::num::op::{Predicate, Rounding};

mod bessel;
mod floats;
pub(super) mod integers;

/// The implementation of a function.
enum Is {
    /// One operation.
    Op(Opcode),
    /// A scalar operation that Tile IR has no name for; see [`crate::num::library`].
    Named,
    /// One operation of floats that rounds otherwise than to the nearest.
    Rounded(Opcode, Rounding),
    /// Made of others, from this many operands.
    Made(usize, fn(&mut Conv, &[ValueId]) -> ValueId),
    /// For f32 alone: made of others in f64, and rounded once.
    Wide(fn(&mut Conv, ValueId) -> ValueId),
    /// Likewise, with this number of operands; some are integers.
    Several(usize, fn(&mut Conv, &[ValueId]) -> ValueId),
    /// The same of f32, and of f64 itself.
    Both(fn(&mut Conv, ValueId) -> ValueId),
}

/// The functions, without `__nv_` and without the `f` of those of f32.
fn by_name(name: &str) -> Option<Is> {
    use Is::{Both, Made, Named, Op, Several, Wide};
    if let Some(op) = rounded(name) {
        return Some(op);
    }
    if let Some((operands, make)) = integers::by_name(name) {
        return Some(Made(operands, make));
    }
    if let Some((operands, make)) = floats::by_name(name) {
        return Some(Made(operands, make));
    }
    if let Some((operands, make)) = floats::wide(name) {
        return Some(Several(operands, make));
    }
    Some(match name {
        "sqrt" | "sqrt_rn" | "fsqrt_rn" | "dsqrt_rn" => Op(Opcode::Sqrt),
        "rsqrt" | "frsqrt_rn" => Op(Opcode::Rsqrt),
        "exp" | "fast_exp" => Op(Opcode::Exp),
        "exp2" => Op(Opcode::Exp2),
        "log" | "fast_log" => Op(Opcode::Log),
        "log2" | "fast_log2" => Op(Opcode::Log2),
        "sin" | "fast_sin" => Op(Opcode::Sin),
        "cos" | "fast_cos" => Op(Opcode::Cos),
        "tan" | "fast_tan" => Op(Opcode::Tan),
        "sinh" => Op(Opcode::SinH),
        "cosh" => Op(Opcode::CosH),
        "tanh" | "fast_tanh" => Op(Opcode::TanH),
        "pow" | "fast_pow" => Op(Opcode::Pow),
        "powi" => Op(Opcode::PowI),
        "atan2" => Op(Opcode::Atan2),
        "fmod" => Op(Opcode::RemF),
        "fma" | "fma_rn" | "fmaf_rn" => Op(Opcode::Fma),
        "fabs" => Op(Opcode::AbsF),
        "abs" | "llabs" => Op(Opcode::AbsI),
        "floor" => Op(Opcode::Floor),
        "ceil" => Op(Opcode::Ceil),
        "fmax" => Op(Opcode::MaxF),
        "fmin" => Op(Opcode::MinF),
        "add_rn" | "fadd_rn" | "dadd_rn" => Op(Opcode::AddF),
        "sub_rn" | "fsub_rn" | "dsub_rn" => Op(Opcode::SubF),
        "mul_rn" | "fmul_rn" | "dmul_rn" => Op(Opcode::MulF),
        "div_rn" | "fdiv_rn" | "ddiv_rn" | "fast_divide" | "fast_fdivide" => Op(Opcode::DivF),
        "umulhi" | "umul64hi" => Op(Opcode::MulHiI),
        "erf" | "erfinv" | "rint" | "nearbyint" | "lgamma" | "normcdfinv" => Named,
        "j0" => Both(|c, x| bessel::first(c, x, 0)),
        "j1" => Both(|c, x| bessel::first(c, x, 1)),
        "y0" => Both(|c, x| bessel::second(c, x, 0)),
        "y1" => Both(|c, x| bessel::second(c, x, 1)),
        "cyl_bessel_i0" => Both(|c, x| bessel::modified(c, x, "i0e")),
        "cyl_bessel_i1" => Both(|c, x| bessel::modified(c, x, "i1e")),
        "frcp_rn" | "drcp_rn" => Made(1, |c, a| {
            let one = like(c, a[0], 1.0);
            c.same(Opcode::DivF, &[one, a[0]])
        }),
        // Halves go away from zero.
        "round" => Made(1, |c, a| rounded_away(c, a[0])),
        "saturate" => Made(1, |c, a| {
            let (zero, one) = (like(c, a[0], 0.0), like(c, a[0], 1.0));
            let low = c.same(Opcode::MaxF, &[a[0], zero]);
            c.same(Opcode::MinF, &[low, one])
        }),
        "fdim" => Made(2, |c, a| {
            let zero = like(c, a[0], 0.0);
            let less = c.same(Opcode::SubF, a);
            let none = c.floats_compare(Predicate::LessThanOrEqual, a[0], a[1]);
            c.choose(none, zero, less)
        }),
        "exp10" | "fast_exp10" => Wide(|c, x| {
            let scaled = times(c, x, std::f64::consts::LN_10);
            c.same(Opcode::Exp, &[scaled])
        }),
        "log10" | "fast_log10" => Wide(|c, x| {
            let log = c.same(Opcode::Log, &[x]);
            times(c, log, std::f64::consts::LOG10_E)
        }),
        // For small numbers, the first terms of the series: the next ones are below the last place of an f32.
        "expm1" => Wide(|c, x| {
            let (e, one) = (c.same(Opcode::Exp, &[x]), like(c, x, 1.0));
            let far = c.same(Opcode::SubF, &[e, one]);
            near(c, x, 0.5, 2, far)
        }),
        "log1p" => Wide(|c, x| {
            let one = like(c, x, 1.0);
            let sum = c.same(Opcode::AddF, &[x, one]);
            let far = c.same(Opcode::Log, &[sum]);
            near(c, x, -0.5, 2, far)
        }),
        "asinh" => Wide(|c, x| {
            let (size, one) = (c.same(Opcode::AbsF, &[x]), like(c, x, 1.0));
            let square = c.same(Opcode::Fma, &[size, size, one]);
            let root = c.same(Opcode::Sqrt, &[square]);
            let sum = c.same(Opcode::AddF, &[size, root]);
            let log = c.same(Opcode::Log, &[sum]);
            let far = signed_as(c, log, x);
            near(c, x, -1.0 / 6.0, 3, far)
        }),
        "acosh" => Wide(|c, x| {
            let one = like(c, x, 1.0);
            let (less, more) = (c.same(Opcode::SubF, &[x, one]), c.same(Opcode::AddF, &[x, one]));
            let square = c.same(Opcode::MulF, &[less, more]);
            let root = c.same(Opcode::Sqrt, &[square]);
            let sum = c.same(Opcode::AddF, &[x, root]);
            c.same(Opcode::Log, &[sum])
        }),
        "atanh" => Wide(|c, x| {
            let one = like(c, x, 1.0);
            let (less, more) = (c.same(Opcode::SubF, &[one, x]), c.same(Opcode::AddF, &[one, x]));
            let ratio = c.same(Opcode::DivF, &[more, less]);
            let log = c.same(Opcode::Log, &[ratio]);
            let far = times(c, log, 0.5);
            near(c, x, 1.0 / 3.0, 3, far)
        }),
        "cbrt" => Wide(|c, x| {
            let (size, third) = (c.same(Opcode::AbsF, &[x]), like(c, x, 1.0 / 3.0));
            let root = c.same(Opcode::Pow, &[size, third]);
            signed_as(c, root, x)
        }),
        "atan" => Made(1, |c, a| {
            let one = like(c, a[0], 1.0);
            c.same(Opcode::Atan2, &[a[0], one])
        }),
        // asin x = atan2(x, sqrt((1 - x)(1 + x))), acos x = atan2(sqrt((1 - x)(1 + x)), x): exact near 1, where 1 - x is.
        "asin" => Made(1, |c, a| {
            let side = other_side(c, a[0]);
            c.same(Opcode::Atan2, &[a[0], side])
        }),
        "acos" => Made(1, |c, a| {
            let side = other_side(c, a[0]);
            c.same(Opcode::Atan2, &[side, a[0]])
        }),
        "trunc" => Made(1, |c, a| truncate(c, a[0])),
        "hypot" => Made(2, |c, a| {
            // The greater times sqrt(1 + (lesser / greater)^2).
            let (x, y) = (c.same(Opcode::AbsF, &[a[0]]), c.same(Opcode::AbsF, &[a[1]]));
            let (most, least) = (c.same(Opcode::MaxF, &[x, y]), c.same(Opcode::MinF, &[x, y]));
            let zero = like(c, most, 0.0);
            let ratio = c.same(Opcode::DivF, &[least, most]);
            let none = c.floats_compare(Predicate::Equal, most, zero);
            let same = c.floats_compare(Predicate::Equal, most, least);
            let one = like(c, most, 1.0);
            let ratio = c.choose(same, one, ratio);
            let ratio = c.choose(none, zero, ratio);
            let inner = c.same(Opcode::Fma, &[ratio, ratio, one]);
            let root = c.same(Opcode::Sqrt, &[inner]);
            let length = c.same(Opcode::MulF, &[most, root]);
            // A NaN stays, unless the other is infinite.
            let infinite = like(c, most, f64::INFINITY);
            let far = c.floats_compare(Predicate::Equal, most, infinite);
            let sum = c.same(Opcode::AddF, &[x, y]);
            let known = c.floats_compare(Predicate::Equal, sum, sum);
            let length = c.choose(known, length, sum);
            c.choose(far, infinite, length)
        }),
        "isnan" | "isnand" => Made(1, |c, a| {
            let equal = c.floats_compare(Predicate::Equal, a[0], a[0]);
            opposite(c, equal)
        }),
        "isinf" | "isinfd" => Made(1, |c, a| {
            let size = c.same(Opcode::AbsF, &[a[0]]);
            let infinite = like(c, size, f64::INFINITY);
            c.floats_compare(Predicate::Equal, size, infinite)
        }),
        "finite" | "isfinited" | "isfinite" => Made(1, |c, a| {
            let size = c.same(Opcode::AbsF, &[a[0]]);
            let infinite = like(c, size, f64::INFINITY);
            c.floats_compare(Predicate::LessThan, size, infinite)
        }),
        "signbit" | "signbitd" => Made(1, |c, a| sign(c, a[0])),
        "copysign" => Made(2, |c, a| signed_as(c, a[0], a[1])),
        _ => return None,
    })
}

fn rounded_away(c: &mut Conv, x: ValueId) -> ValueId {
    let whole = truncate(c, x);
    let rest = c.same(Opcode::SubF, &[x, whole]);
    let rest = c.same(Opcode::AbsF, &[rest]);
    let (half, one) = (like(c, x, 0.5), like(c, x, 1.0));
    let less = c.floats_compare(Predicate::LessThan, rest, half);
    let one = signed_as(c, one, x);
    let next = c.same(Opcode::AddF, &[whole, one]);
    // A number without a fraction is whole, infinities too.
    let far = c.floats_compare(Predicate::Equal, x, whole);
    let next = c.choose(less, whole, next);
    c.choose(far, x, next)
}

/// `fadd_rz` and the like: the operation, then the rounding of its result.
fn rounded(name: &str) -> Option<Is> {
    let (stem, word) = name.rsplit_once('_')?;
    let rounding = match word {
        "rz" => Rounding::Zero,
        "rd" => Rounding::NegativeInf,
        "ru" => Rounding::PositiveInf,
        _ => return None,
    };
    let opcode = match stem {
        "fadd" | "dadd" => Opcode::AddF,
        "fsub" | "dsub" => Opcode::SubF,
        "fmul" | "dmul" => Opcode::MulF,
        "fdiv" | "ddiv" => Opcode::DivF,
        "fsqrt" | "dsqrt" => Opcode::Sqrt,
        "fma" | "fmaf" => Opcode::Fma,
        _ => return None,
    };
    Some(Is::Rounded(opcode, rounding))
}

/// A float in every element of a tile as another.
fn like(c: &mut Conv, v: ValueId, value: f64) -> ValueId {
    let ty = c.tile_ty(v).clone();
    c.float(&ty.shape, ty.num().unwrap_or(DType::F32), value)
}

fn times(c: &mut Conv, v: ValueId, factor: f64) -> ValueId {
    let factor = like(c, v, factor);
    c.same(Opcode::MulF, &[v, factor])
}

/// `x + term x^power` where |x| is below 2^-14, else `far`.
fn near(c: &mut Conv, x: ValueId, term: f64, power: usize, far: ValueId) -> ValueId {
    let size = c.same(Opcode::AbsF, &[x]);
    let limit = like(c, x, 1.0 / 16384.0);
    let small = c.floats_compare(Predicate::LessThan, size, limit);
    let mut sum = like(c, x, term);
    for _ in 0..power {
        sum = c.same(Opcode::MulF, &[sum, x]);
    }
    sum = c.same(Opcode::AddF, &[x, sum]);
    // The sum of zeros has lost the sign.
    let sum = signed_as(c, sum, x);
    c.choose(small, sum, far)
}

/// The magnitude of one number with the sign of another.
fn signed_as(c: &mut Conv, v: ValueId, of: ValueId) -> ValueId {
    let size = c.same(Opcode::AbsF, &[v]);
    let negative = c.same(Opcode::NegF, &[size]);
    let below = sign(c, of);
    c.choose(below, negative, size)
}

fn opposite(c: &mut Conv, v: ValueId) -> ValueId {
    let shape = c.tile_ty(v).shape.clone();
    let one = c.fill(&shape, DType::I1, 1);
    c.same(Opcode::XorI, &[v, one])
}

fn other_side(c: &mut Conv, x: ValueId) -> ValueId {
    let one = like(c, x, 1.0);
    let (less, more) = (c.same(Opcode::SubF, &[one, x]), c.same(Opcode::AddF, &[one, x]));
    let square = c.same(Opcode::MulF, &[less, more]);
    c.same(Opcode::Sqrt, &[square])
}

/// True where the sign bit is set.
fn sign(c: &mut Conv, v: ValueId) -> ValueId {
    let ty = c.tile_ty(v).clone();
    let int = match ty.num().map_or(32, DType::bits) {
        16 => DType::I16,
        64 => DType::I64,
        _ => DType::I32,
    };
    let bits = c.converted(Opcode::Bitcast, v, int, vec![]);
    let zero = c.fill(&ty.shape, int, 0);
    c.integers_compare(Predicate::LessThan, Signedness::Signed, bits, zero)
}

fn truncate(c: &mut Conv, v: ValueId) -> ValueId {
    let negative = sign(c, v);
    let (down, up) = (c.same(Opcode::Floor, &[v]), c.same(Opcode::Ceil, &[v]));
    c.choose(negative, up, down)
}

pub fn erf(c: &mut Conv, op: &Op) -> Res<()> {
    let v = c.arg(op, 0)?;
    let v = named(c, op, &[v], "erf")?;
    c.bind(op, 0, v)
}

/// A function that `num::library` knows; of 16-bit floats it is computed in f32.
fn named(c: &mut Conv, op: &Op, args: &[ValueId], name: &str) -> Res<ValueId> {
    let dtype = c.dtype(op, args[0])?;
    let short = dtype.bits() == 16;
    let wide: Vec<ValueId> =
        args.iter().map(|&v| if short { c.converted(Opcode::FToF, v, DType::F32, vec![]) } else { v }).collect();
    let v = external(c, &wide, name);
    Ok(if short { c.converted(Opcode::FToF, v, dtype, vec![]) } else { v })
}

fn external(c: &mut Conv, args: &[ValueId], name: &str) -> ValueId {
    let attrs = vec![
        (AttrKey::LibName, Attr::Str("libdevice".into())),
        (AttrKey::LibPath, Attr::Str(String::new())),
        (AttrKey::Pure, Attr::Bool(true)),
        (AttrKey::Symbol, Attr::Str(name.into())),
    ];
    let ty = args.first().map_or_else(|| TileType::of(vec![], Elem::Num(DType::F32)), |&v| c.tile_ty(v).clone());
    c.tile(Opcode::ExpExternElementwise, &[args], attrs, ty)
}

pub fn call(c: &mut Conv, op: &Op) -> Res<()> {
    let symbol = op.text("symbol").unwrap_or("").to_string();
    let args = c.args(op)?;
    let Some(&first) = args.first() else {
        return c.error(op, Code::OperandCount, "`tt.extern_elementwise` has no operands");
    };
    let plain = symbol.strip_prefix("__nv_").unwrap_or("");
    let float32 = c.tile_ty(first).elem == Elem::Num(DType::F32);
    let found = plain.strip_suffix('f').filter(|_| float32).and_then(|n| Some((n, by_name(n)?)));
    let found = found.or_else(|| by_name(plain).map(|is| (plain, is)));
    let Some((name, is)) = found else {
        let message = format!("the function `{symbol}` of another library is not supported");
        return c.refuse_with(op, message, "write it in functions of `triton.language`");
    };
    let v = match is {
        Is::Op(opcode) => {
            let n = ops::info(opcode).operands.len();
            c.count(op, n..=n)?;
            c.same(opcode, &args)
        }
        Is::Named => {
            c.count(op, 1..=1)?;
            named(c, op, &args, name)?
        }
        Is::Wide(make) => {
            c.count(op, 1..=1)?;
            if !float32 {
                return c.refuse(op, format!("the function `{symbol}` is supported of f32 alone"));
            }
            let wide = c.converted(Opcode::FToF, first, DType::F64, vec![]);
            let v = make(c, wide);
            c.converted(Opcode::FToF, v, DType::F32, vec![])
        }
        Is::Several(n, make) => {
            c.count(op, n..=n)?;
            if !float32 {
                return c.refuse(op, format!("the function `{symbol}` is supported of f32 alone"));
            }
            let float = |c: &Conv, v: ValueId| c.tile_ty(v).elem == Elem::Num(DType::F32);
            let widened =
                |v: &ValueId| if float(c, *v) { c.converted(Opcode::FToF, *v, DType::F64, vec![]) } else { *v };
            let wide: Vec<ValueId> = args.iter().map(widened).collect();
            let v = make(c, &wide);
            let narrow = c.tile_ty(v).elem == Elem::Num(DType::F64);
            if narrow { c.converted(Opcode::FToF, v, DType::F32, vec![]) } else { v }
        }
        Is::Rounded(opcode, rounding) => {
            let n = ops::info(opcode).operands.len();
            c.count(op, n..=n)?;
            c.same_with(opcode, &args, vec![(AttrKey::Rounding, Attr::Rounding(rounding))])
        }
        Is::Made(n, make) => {
            c.count(op, n..=n)?;
            make(c, &args)
        }
        Is::Both(make) => {
            c.count(op, 1..=1)?;
            if float32 {
                let wide = c.converted(Opcode::FToF, first, DType::F64, vec![]);
                let v = make(c, wide);
                c.converted(Opcode::FToF, v, DType::F32, vec![])
            } else {
                make(c, first)
            }
        }
    };
    // A truth value is an integer to who calls libdevice.
    let want = c.gives(op, 0)?;
    let v = match (c.tile_ty(v).elem, want.elem) {
        (Elem::Num(DType::I1), Elem::Num(d)) if d.is_int() && d != DType::I1 => {
            c.converted(Opcode::ExtI, v, d, vec![(AttrKey::Signedness, Attr::Signedness(Signedness::Unsigned))])
        }
        _ => v,
    };
    c.bind(op, 0, v)
}
