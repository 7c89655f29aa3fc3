//! Functions of each element. f16 and bf16 are computed in f32 and rounded once; integers become f32 where the function
//! gives no integers.

use super::arithmetic::trunc;
use super::types::{cast as cast_to, number_attr, widened};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result, number_of};
use crate::graph::ir::{self, Arg};
use crate::num::ScalarOp;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "function",
        handles: &[
            "aten.exp",
            "aten.exp2",
            "aten.expm1",
            "aten.log",
            "aten.log2",
            "aten.log10",
            "aten.log1p",
            "aten.sqrt",
            "aten.rsqrt",
            "aten.reciprocal",
            "aten.sin",
            "aten.cos",
            "aten.tan",
            "aten.sinh",
            "aten.cosh",
            "aten.tanh",
            "aten.asin",
            "aten.acos",
            "aten.atan",
            "aten.asinh",
            "aten.acosh",
            "aten.atanh",
            "aten.erf",
            "aten.erfc",
            "aten.logit",
            "aten.sinc",
            "aten.deg2rad",
            "aten.rad2deg",
            "aten.angle",
        ],
        doc: "Transcendental functions: one operation, or a short formula over them.\n\n\
              `y = log1p(x)` --> `u = 1 + x`, `y = select(u == 1, x, log(u) * x / (u - 1))`\n\n\
              `y = asin(x)` --> `y = atan2(x, sqrt((1 - x)*(1 + x)))`",
        run: function,
    },
    Decomposition {
        name: "rounding",
        handles: &["aten.floor", "aten.ceil", "aten.round", "aten.trunc", "aten.fix", "aten.frac"],
        doc: "`y = trunc(x)` --> `y = select(x < 0, ceil(x), floor(x))`; integers stay as they are",
        run: rounding,
    },
    Decomposition {
        name: "sign",
        handles: &[
            "aten.neg",
            "aten.negative",
            "aten.abs",
            "aten.absolute",
            "aten.sign",
            "aten.sgn",
            "aten.square",
            "aten.positive",
        ],
        doc: "`y = sign(x)` --> `y = select(x > 0, 1, select(x < 0, -1, 0))`",
        run: sign,
    },
    Decomposition {
        name: "classify",
        handles: &["aten.isnan", "aten.isinf", "aten.isfinite", "aten.isposinf", "aten.isneginf", "aten.signbit"],
        doc: "`y = isnan(x)` --> `y = cmp ne x, x`",
        run: classify,
    },
    Decomposition {
        name: "nan_to_num",
        handles: &["aten.nan_to_num"],
        doc: "`y = nan_to_num(x)` --> `y = select(x != x, nan, select(x == inf, posinf, select(x == -inf, neginf, x)))`",
        run: nan_to_num,
    },
    Decomposition {
        name: "cast",
        handles: &[
            "aten.to",
            "aten._to_copy",
            "aten.type_as",
            "prims.convert_element_type",
            "aten.float",
            "aten.half",
            "aten.bfloat16",
            "aten.double",
            "aten.int",
            "aten.long",
            "aten.bool",
        ],
        doc: "Another element type. Floats to integers truncate; of a number that the type cannot hold, it has the last \
              bits, as in PyTorch's code for processors: -2.18 is 254 as u8.\n\n`y = to(x, f16)` --> `y = ftof x`",
        run: cast,
    },
];

fn function(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let y = widened(b, x, |b, x| {
        let c = |b: &Builder<'_>, v: f64| b.scalar_like(x, v);
        let one = c(b, 1.0);
        Ok(match call.name.trim_start_matches("aten.") {
            "exp" => b.exp(x)?,
            "exp2" => b.elementwise(ScalarOp::Exp2 { ftz: false }, &[x])?,
            "expm1" => b.expm1(x)?,
            "log" => b.log(x)?,
            "log2" => b.elementwise(ScalarOp::Log2, &[x])?,
            "log10" => {
                let l = b.log(x)?;
                b.mul(l, c(b, std::f64::consts::LOG10_E))?
            }
            "log1p" => b.log1p(x)?,
            "sqrt" => b.sqrt(x)?,
            "rsqrt" => b.rsqrt(x)?,
            "reciprocal" => b.div(one, x)?,
            "sin" => b.sin(x)?,
            "cos" => b.cos(x)?,
            "tan" => b.elementwise(ScalarOp::Tan, &[x])?,
            "sinh" => b.elementwise(ScalarOp::Sinh, &[x])?,
            "cosh" => b.elementwise(ScalarOp::Cosh, &[x])?,
            "tanh" => b.tanh(x)?,
            "atan" => b.elementwise(ScalarOp::Atan2, &[x, one])?,
            name @ ("asin" | "acos") => {
                let (p, q) = (b.sub(one, x)?, b.add(one, x)?);
                let square = b.mul(p, q)?;
                let root = b.sqrt(square)?;
                b.elementwise(ScalarOp::Atan2, &if name == "asin" { [x, root] } else { [root, x] })?
            }
            "asinh" => asinh(b, x)?,
            "acosh" => {
                // log1p(t + sqrt(t*(t + 2))) with t = x - 1
                let t = b.sub(x, one)?;
                let s = b.add(x, one)?;
                let (p, q) = (b.sqrt(t)?, b.sqrt(s)?);
                let root = b.mul(p, q)?;
                let sum = b.add(t, root)?;
                b.log1p(sum)?
            }
            "atanh" => {
                let size = b.abs(x)?;
                let d = b.sub(one, size)?;
                let twice = b.add(size, size)?;
                let q = b.div(twice, d)?;
                let l = b.log1p(q)?;
                let half = b.mul(l, c(b, 0.5))?;
                with_sign(b, half, x)?
            }
            "erf" => b.erf(x)?,
            "erfc" => {
                let e = b.erf(x)?;
                b.sub(one, e)?
            }
            "logit" => {
                let eps = number_attr(b, call, "eps", -1.0, b.elem(x))?;
                let x = match eps {
                    Arg::Scalar { elem, bits } if number_of(elem, bits) < 0.0 => x,
                    _ => {
                        // Of an eps above a half, the lower bound counts first, as in PyTorch.
                        let high = b.sub(one, eps)?;
                        let above = b.compare(Predicate::GreaterThan, x, high)?;
                        let inside = b.select(above, high, x)?;
                        let below = b.compare(Predicate::LessThan, x, eps)?;
                        let inside = b.select(below, eps, inside)?;
                        let unbounded = b.compare(Predicate::LessThan, eps, c(b, 0.0))?;
                        b.select(unbounded, x, inside)?
                    }
                };
                let rest = b.sub(one, x)?;
                let q = b.div(x, rest)?;
                b.log(q)?
            }
            "sinc" => {
                let p = b.mul(x, c(b, std::f64::consts::PI))?;
                let s = b.sin(p)?;
                let q = b.div(s, p)?;
                let zero = b.compare(Predicate::Equal, x, c(b, 0.0))?;
                b.select(zero, one, q)?
            }
            "angle" => {
                let low = b.compare(Predicate::LessThan, x, c(b, 0.0))?;
                let angle = b.select(low, c(b, std::f64::consts::PI), c(b, 0.0))?;
                let nan = b.compare(Predicate::NotEqual, x, x)?;
                b.select(nan, x, angle)?
            }
            "deg2rad" => b.mul(x, c(b, std::f64::consts::PI / 180.0))?,
            "rad2deg" => b.mul(x, c(b, 180.0 / std::f64::consts::PI))?,
            other => return Err(Refusal::new(format!("{other} is not a function of this rule"))),
        })
    })?;
    Ok(vec![y])
}

/// `log1p(a + a*a / (1 + sqrt(a*a + 1)))` of the size; `log(a) + log 2` where the square overflows.
fn asinh(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    let one = b.scalar_like(x, 1.0);
    let size = b.abs(x)?;
    let square = b.mul(size, size)?;
    let sum = b.add(square, one)?;
    let root = b.sqrt(sum)?;
    let d = b.add(root, one)?;
    let q = b.div(square, d)?;
    let s = b.add(size, q)?;
    let near = b.log1p(s)?;
    let log = b.log(size)?;
    let ln2 = b.scalar_like(x, std::f64::consts::LN_2);
    let far = b.add(log, ln2)?;
    let limit = b.scalar_like(x, 1e15);
    let is_far = b.compare(Predicate::GreaterThan, size, limit)?;
    let y = b.select(is_far, far, near)?;
    with_sign(b, y, x)
}

/// A value that is not negative, with the sign of `x`; `x` itself where it is 0.
fn with_sign(b: &mut Builder<'_>, y: Arg, x: Arg) -> Result<Arg> {
    let zero = b.scalar_like(x, 0.0);
    let low = b.compare(Predicate::LessThan, x, zero)?;
    let none = b.compare(Predicate::Equal, x, zero)?;
    let minus = b.neg(y)?;
    let y = b.select(low, minus, y)?;
    b.select(none, x, y)
}

fn rounding(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if !b.elem(x).is_float() {
        return Ok(vec![x]);
    }
    let y = match call.name {
        "aten.floor" => b.floor(x)?,
        "aten.ceil" => b.ceil(x)?,
        "aten.round" => {
            let decimals = call.int("decimals", 0)?;
            if decimals == 0 {
                b.round_even(x)?
            } else {
                let ten = 10f64.powi(decimals.unsigned_abs().min(300) as i32);
                widened(b, x, |b, x| {
                    let f = b.scalar_like(x, ten);
                    let y = if decimals > 0 { b.mul(x, f)? } else { b.div(x, f)? };
                    let y = b.round_even(y)?;
                    if decimals > 0 { b.div(y, f) } else { b.mul(y, f) }
                })?
            }
        }
        "aten.frac" => {
            let t = trunc(b, x)?;
            b.sub(x, t)?
        }
        _ => trunc(b, x)?,
    };
    Ok(vec![y])
}

fn sign(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    Ok(vec![match call.name {
        "aten.neg" | "aten.negative" => b.neg(x)?,
        "aten.abs" | "aten.absolute" => b.abs(x)?,
        "aten.square" => b.mul(x, x)?,
        "aten.positive" => x,
        _ if b.elem(x).is_bool() => x,
        _ => {
            let elem = b.elem(x);
            let (zero, one) = (ir::scalar(elem, 0.0), ir::scalar(elem, 1.0));
            let minus = if elem.unsigned { zero } else { ir::scalar(elem, -1.0) };
            let above = b.compare(Predicate::GreaterThan, x, zero)?;
            let below = b.compare(Predicate::LessThan, x, zero)?;
            let low = b.select(below, minus, zero)?;
            b.select(above, one, low)?
        }
    }])
}

fn classify(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let elem = b.elem(x);
    if !elem.is_float() {
        let zero = ir::scalar(elem, 0.0);
        let pred = match call.name {
            "aten.signbit" => Predicate::LessThan,
            "aten.isfinite" => Predicate::Equal,
            _ => Predicate::NotEqual,
        };
        let other = if call.name == "aten.signbit" { zero } else { x };
        return Ok(vec![b.compare(pred, x, other)?]);
    }
    let inf = ir::scalar(elem, f64::INFINITY);
    Ok(vec![match call.name {
        "aten.isnan" => b.compare(Predicate::NotEqual, x, x)?,
        "aten.isposinf" => b.compare(Predicate::Equal, x, inf)?,
        "aten.isneginf" => {
            let low = ir::scalar(elem, f64::NEG_INFINITY);
            b.compare(Predicate::Equal, x, low)?
        }
        "aten.signbit" => {
            let (zero, one) = (ir::scalar(elem, 0.0), ir::scalar(elem, 1.0));
            let inverse = b.div(one, x)?;
            let below = b.compare(Predicate::LessThan, x, zero)?;
            let zero_below = b.compare(Predicate::LessThan, inverse, zero)?;
            b.or(below, zero_below)?
        }
        name => {
            let size = b.abs(x)?;
            let pred = if name == "aten.isinf" { Predicate::Equal } else { Predicate::LessThan };
            b.compare(pred, size, inf)?
        }
    }])
}

/// The greatest finite number of a float type.
pub(super) fn largest(elem: Elem) -> f64 {
    match elem.dtype.name() {
        "f16" => 65504.0,
        "bf16" => f64::from(f32::from_bits(0x7f7f_0000)),
        "f32" => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

fn nan_to_num(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let elem = b.elem(x);
    if !elem.is_float() {
        return Ok(vec![x]);
    }
    let max = largest(elem);
    let nan = number_attr(b, call, "nan", 0.0, elem)?;
    let high = number_attr(b, call, "posinf", max, elem)?;
    let low = number_attr(b, call, "neginf", -max, elem)?;
    let (inf, minus) = (ir::scalar(elem, f64::INFINITY), ir::scalar(elem, f64::NEG_INFINITY));
    let is_low = b.compare(Predicate::Equal, x, minus)?;
    let y = b.select(is_low, low, x)?;
    let is_high = b.compare(Predicate::Equal, x, inf)?;
    let y = b.select(is_high, high, y)?;
    let is_nan = b.compare(Predicate::NotEqual, x, x)?;
    Ok(vec![b.select(is_nan, nan, y)?])
}

fn cast(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let to = match call.name {
        "aten.type_as" => Some(b.elem(call.arg(1)?)),
        "aten.float" => Some(Elem::F32),
        "aten.half" => Some(Elem::F16),
        "aten.bfloat16" => Some(Elem::BF16),
        "aten.double" => Some(Elem::F64),
        "aten.int" => Some(Elem::I32),
        "aten.long" => Some(Elem::I64),
        "aten.bool" => Some(Elem::BOOL),
        // Another tensor whose type is taken (`Tensor.to(other)`).
        _ => call.elem("dtype")?.or(call.opt(1).map(|o| b.elem(o))),
    };
    Ok(vec![match to {
        Some(to) => cast_to(b, x, to)?,
        None => x,
    }])
}
