//! ONNX operators of one or more tensors, element by element, with both sides broadcasting.
//!
//! An operator that PyTorch has under another name goes to that rule; f16 and bf16 then are computed in f32 and rounded once.

use super::common::lone;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::activations::sigmoid;
use crate::graph::decompose::arithmetic::divide_rounded;
use crate::graph::decompose::expr::Tensor;
use crate::graph::{Attr, Elem};
use crate::index::Ix;
use crate::num::ScalarOp;

rules! {
    onnx_function "Functions that PyTorch has too.\n\n`y = Tanh(x)` --> `y = aten.tanh(x)`" {
        "onnx.Abs" | "onnx.Acos" | "onnx.Acosh" | "onnx.Asin" | "onnx.Asinh" | "onnx.Atan" | "onnx.Atanh" | "onnx.Ceil" |
        "onnx.Cos" | "onnx.Cosh" | "onnx.Erf" | "onnx.Exp" | "onnx.Floor" | "onnx.Log" | "onnx.Neg" | "onnx.Reciprocal" |
        "onnx.Relu" | "onnx.Round" | "onnx.Sigmoid" => of_torch,
        // A NaN has no sign: it stays. PyTorch gives 0.
        "onnx.Sign" => |c| {
            let (x, sign) = (c.x(0), of_torch(c));
            if x.elem().is_float() { x.equals(x).select(sign, x) } else { sign }
        },
        "onnx.Sin" | "onnx.Sinh" | "onnx.Softsign" | "onnx.Sqrt" | "onnx.Tan" | "onnx.Tanh" | "onnx.Mish" | "onnx.Softplus" |
        "onnx.HardSwish" => of_torch,
        "onnx.IsNaN" => |c| base(c).is_nan(),
        "onnx.Not" | "onnx.BitwiseNot" => |c| !c.x(0),
        "onnx.Gelu" => |c| c.text("approximate").map(|approximate| {
            let formula = Attr::Str(approximate.unwrap_or("none").to_string());
            c.other("aten.gelu", &[c.x(0)], &[("approximate", formula)])
        }),
    }
    onnx_activation "Activations with numbers of their own.\n\n\
         `y = HardSigmoid(x)` --> `y = max(0, min(1, alpha*x + beta))`\n\n\
         `y = Shrink(x)` --> `y = select(x < -l, x + b, select(x > l, x - b, 0))`" {
        "onnx.LeakyRelu" => |c| with(c, "aten.leaky_relu", &[("negative_slope", "alpha", 0.01)]),
        "onnx.Elu" => |c| with(c, "aten.elu", &[("alpha", "alpha", 1.0)]),
        // The operator's own defaults are f32 numbers.
        "onnx.Selu" =>
            |c| with(c, "aten.elu", &[("alpha", "alpha", 1.673_263_192_176_818_8), ("scale", "gamma", 1.050_701_022_148_132_3)]),
        "onnx.Celu" => |c| with(c, "aten.celu", &[("alpha", "alpha", 1.0)]),
        "onnx.ThresholdedRelu" => |c| c.float("alpha", 1.0).map(|alpha| c.x(0).above(alpha).select(c.x(0), 0.0)),
        "onnx.HardSigmoid" => |c| {
            let (alpha, beta) = (c.float("alpha", 0.2)?, c.float("beta", 0.5)?);
            Ok::<_, Refusal>(c.x(0).in_wide(|x| (x * alpha + beta).min(1.0).max(0.0)))
        },
        "onnx.Swish" => |c| c.float("alpha", 1.0).map(|alpha| c.x(0).in_wide(|x| x * sigmoid(x * alpha))),
        "onnx.Shrink" => |c| {
            let (x, lambda, bias) = (c.x(0), c.float("lambd", 0.5)?, c.float("bias", 0.0)?);
            let (below, above) = (x.below(-lambda), x.above(lambda));
            let (up, down) = (x + bias, x - bias);
            Ok::<_, Refusal>(below.select(up, above.select(down, 0.0)))
        },
        // The slope broadcasts to the operand.
        "onnx.PRelu" => |c| {
            let slope = c.x(1).broadcast_to(&c.x(0).shape()?);
            let below = c.x(0).below(0.0);
            Ok::<_, Refusal>(below.select(c.x(0) * slope, c.x(0)))
        },
    }
    onnx_arithmetic "Arithmetic on two tensors of one type; integers wrap, their quotients are cut towards 0, and the sign of a \
         remainder is that of the divisor unless `fmod`. A power has the type of its base.\n\n\
         `y = Add(a, b)` --> `y = add a, b`" {
        "onnx.Add" => |c| two(c).map(|(x, y)| x + y),
        "onnx.Sub" => |c| two(c).map(|(x, y)| x - y),
        "onnx.Mul" => |c| two(c).map(|(x, y)| x * y),
        "onnx.Div" => |c| two(c).map(|(x, y)| x / y),
        "onnx.Pow" => power,
        "onnx.Mod" => modulo,
    }
    onnx_variadic "Any number of tensors, from left to right; NaN wins.\n\n`y = Max(a, b, c)` --> `t = max a, b`, `y = max t, c`" {
        "onnx.Max" => |c| from_left(c, |x, y| x.max(y)),
        "onnx.Min" => |c| from_left(c, |x, y| x.min(y)),
        "onnx.Sum" => |c| from_left(c, |x, y| x + y),
        "onnx.Mean" => |c| from_left(c, |x, y| x + y) / c.args.len() as f64,
    }
    onnx_compare "`y = Less(a, b)` --> `y = cmp a < b`" {
        "onnx.Equal" => |c| two(c).map(|(x, y)| x.equals(y)),
        "onnx.Greater" => |c| two(c).map(|(x, y)| x.above(y)),
        "onnx.GreaterOrEqual" => |c| two(c).map(|(x, y)| x.at_least(y)),
        "onnx.Less" => |c| two(c).map(|(x, y)| x.below(y)),
        "onnx.LessOrEqual" => |c| two(c).map(|(x, y)| x.at_most(y)),
    }
    onnx_logic "Logical operators on bools, and bitwise operators on integers.\n\n`y = And(a, b)` --> `y = and a, b`" {
        "onnx.And" => |c| bits(c, true, |x, y| x & y),
        "onnx.Or" => |c| bits(c, true, |x, y| x | y),
        "onnx.Xor" => |c| bits(c, true, |x, y| x ^ y),
        "onnx.BitwiseAnd" => |c| bits(c, false, |x, y| x & y),
        "onnx.BitwiseOr" => |c| bits(c, false, |x, y| x | y),
        "onnx.BitwiseXor" => |c| bits(c, false, |x, y| x ^ y),
        "onnx.BitShift" => |c| match c.text("direction")? {
            Some("LEFT") => bits(c, false, |x, y| x.apply(ScalarOp::Shl, &[y])),
            Some("RIGHT") => bits(c, false, |x, y| x.apply(ScalarOp::Shr { sign: x.elem().sign() }, &[y])),
            _ => bits(c, false, |x, _| x.cx.poison(Refusal::new("its direction must be LEFT or RIGHT"))),
        },
    }
    onnx_clip "`y = Clip(x, lo, hi)` --> `t = max x, lo`, `y = min t, hi`" {
        "onnx.Clip" => clip,
    }
    onnx_where "`y = Where(c, a, b)` --> `y = select c, a, b`" {
        "onnx.Where" => |c| c.x(0).select(c.x(1), c.x(2)),
    }
    onnx_is_inf "`y = IsInf(x)` --> `y = or (cmp x == inf), (cmp x == -inf)`" {
        "onnx.IsInf" => is_inf,
    }
}

/// The result of PyTorch's operation of that name.
fn of_torch<'g>(c: &Call<'g>) -> Tensor<'g> {
    c.other(&format!("aten.{}", c.name.trim_start_matches("onnx.").to_ascii_lowercase()), &[c.x(0)], &[])
}

/// The result of an operation of PyTorch, with numbers of ours, each with its default.
fn with<'g>(c: &Call<'g>, name: &str, numbers: &[(&str, &str, f64)]) -> Result<Tensor<'g>> {
    let numbers = numbers.iter().map(|(theirs, ours, default)| Ok((*theirs, Attr::Float(c.float(ours, *default)?))));
    Ok(c.other(name, &[c.x(0)], &numbers.collect::<Result<Vec<_>>>()?))
}

/// The operand as a float that is computed with: narrow formats and integers become f32.
fn base<'g>(c: &Call<'g>) -> Tensor<'g> {
    if c.x(0).elem().dtype.is_base_float() { c.x(0) } else { c.x(0).to(Elem::F32) }
}

/// The two operands, which must have one type.
fn two<'g>(c: &Call<'g>) -> Result<(Tensor<'g>, Tensor<'g>)> {
    let (x, y) = (c.x(0), c.x(1));
    if x.elem() == y.elem() {
        return Ok((x, y));
    }
    Err(Refusal::new(format!("{} and {} are different element types", x.elem(), y.elem())))
}

fn modulo<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, y) = two(c)?;
    let fmod = c.flag("fmod", false)?;
    if x.ints().is_some() && y.ints().is_some() && !fmod {
        // Remainders of extents take few steps, so that they are followed.
        return Ok(x - divide_rounded(x, y, true) * y);
    }
    let r = x % y;
    if fmod || x.elem().unsigned {
        return Ok(r);
    }
    // Cut towards 0 so far; a remainder of the other sign than the divisor's moves by the divisor.
    let nonzero = r.differs(0.0);
    let moves = nonzero & (r.below(0.0) ^ y.below(0.0));
    Ok(moves.select(r + y, r))
}

/// In the type of the base.
fn power<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, y) = (c.x(0), c.x(1));
    let (base, exponent) = (x.elem(), y.elem());
    if base.is_float() {
        let two = c.cx.read(|b| b.floats(y.arg)).as_deref() == Some(&[2.0]);
        let square = two && y.numel()?.is_const(1) && y.rank()? <= x.rank()?;
        return Ok(x.in_wide(|x| if square { x * x } else { x.pow(y.to(x.elem())) }));
    }
    // Small powers are products, which wrap.
    if let (false, Some(&[n @ 0..=3])) =
        (exponent.is_float(), y.ints().and_then(|l| l.iter().map(Ix::as_const).collect::<Option<Vec<_>>>()).as_deref())
        && y.rank()? <= x.rank()?
        && y.numel()?.is_const(1)
    {
        return Ok((1..n).fold(if n == 0 { x * 0.0 + 1.0 } else { x }, |power, _| power * x));
    }
    // Exact where the result is below 2^53.
    let narrow = exponent.is_float() && exponent.dtype.bits() < 64 && base.dtype.bits() <= 16;
    let wide = if narrow { Elem::F32 } else { Elem::F64 };
    Ok(x.to(wide).pow(y.to(wide)).to(base))
}

fn from_left<'g>(c: &Call<'g>, f: fn(Tensor<'g>, Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
    (1..c.args.len()).fold(c.x(0), |y, i| f(y, c.x(i)))
}

fn bits<'g>(c: &Call<'g>, bools: bool, f: fn(Tensor<'g>, Tensor<'g>) -> Tensor<'g>) -> Result<Tensor<'g>> {
    let (x, y) = two(c)?;
    let elem = x.elem();
    if elem.is_bool() != bools || elem.is_float() {
        return Err(Refusal::new(format!("it does not take {elem}")));
    }
    Ok(f(x, y))
}

fn clip<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    // Before version 11, the bounds were attributes.
    let bound = |i: usize, name: &str| match (c.opt(i), c.float_of(name)?) {
        (Some(x), _) => Ok(Some(c.cx.made(&[], |b| lone(b, x, name)))),
        (None, bound) => Ok(bound.map(|bound| c.x(0).like(bound))),
    };
    let y = bound(1, "min")?.map_or(c.x(0), |low| c.x(0).max(low));
    Ok(bound(2, "max")?.map_or(y, |high| y.min(high)))
}

fn is_inf<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let x = base(c);
    let (high, low) = (x.equals(f64::INFINITY), x.equals(f64::NEG_INFINITY));
    Ok(match (c.flag("detect_positive", true)?, c.flag("detect_negative", true)?) {
        (true, true) => high | low,
        (true, false) => high,
        (false, true) => low,
        (false, false) => high & !high,
    })
}
