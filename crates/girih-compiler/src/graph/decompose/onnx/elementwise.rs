//! ONNX operators of one or more tensors, element by element, with both sides broadcasting.
//!
//! What PyTorch has under another name goes to that rule; f16 and bf16 then are computed in f32 and rounded once.

use super::common::lone;
use super::types::base_float;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, Decomposition, rule};
use crate::graph::ir::{self, Arg};
use crate::graph::{Attr, Attrs, Elem};
use crate::num::ScalarOp;
use crate::num::op::{Predicate, Rounding};

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_function",
        handles: &[
            "onnx.Abs",
            "onnx.Acos",
            "onnx.Acosh",
            "onnx.Asin",
            "onnx.Asinh",
            "onnx.Atan",
            "onnx.Atanh",
            "onnx.Ceil",
            "onnx.Cos",
            "onnx.Cosh",
            "onnx.Erf",
            "onnx.Exp",
            "onnx.Floor",
            "onnx.Log",
            "onnx.Neg",
            "onnx.Reciprocal",
            "onnx.Relu",
            "onnx.Round",
            "onnx.Sigmoid",
            "onnx.Sign",
            "onnx.Sin",
            "onnx.Sinh",
            "onnx.Softsign",
            "onnx.Sqrt",
            "onnx.Tan",
            "onnx.Tanh",
            "onnx.Mish",
            "onnx.Softplus",
            "onnx.HardSwish",
            "onnx.IsNaN",
            "onnx.Not",
            "onnx.BitwiseNot",
            "onnx.Gelu",
        ],
        doc: "Functions that PyTorch has too.\n\n`y = Tanh(x)` --> `y = aten.tanh(x)`",
        run: function,
    },
    Decomposition {
        name: "onnx_activation",
        handles: &[
            "onnx.LeakyRelu",
            "onnx.Elu",
            "onnx.Selu",
            "onnx.Celu",
            "onnx.ThresholdedRelu",
            "onnx.HardSigmoid",
            "onnx.Swish",
            "onnx.Shrink",
            "onnx.PRelu",
        ],
        doc: "Activations with numbers of their own.\n\n\
              `y = HardSigmoid(x)` --> `y = max(0, min(1, alpha*x + beta))`\n\n\
              `y = Shrink(x)` --> `y = select(x < -l, x + b, select(x > l, x - b, 0))`",
        run: activation,
    },
    Decomposition {
        name: "onnx_arithmetic",
        handles: &["onnx.Add", "onnx.Sub", "onnx.Mul", "onnx.Div", "onnx.Mod", "onnx.Pow"],
        doc: "Arithmetic on two tensors of one type; integers wrap, their quotients are cut towards 0, and the sign of a \
              remainder is that of the divisor unless `fmod`. A power has the type of its base.\n\n\
              `y = Add(a, b)` --> `y = add a, b`",
        run: arithmetic,
    },
    Decomposition {
        name: "onnx_variadic",
        handles: &["onnx.Max", "onnx.Min", "onnx.Sum", "onnx.Mean"],
        doc: "Any number of tensors, from left to right; NaN wins.\n\n`y = Max(a, b, c)` --> `t = max a, b`, `y = max t, c`",
        run: variadic,
    },
    Decomposition {
        name: "onnx_compare",
        handles: &["onnx.Equal", "onnx.Greater", "onnx.GreaterOrEqual", "onnx.Less", "onnx.LessOrEqual"],
        doc: "`y = Less(a, b)` --> `y = cmp a < b`",
        run: compare,
    },
    Decomposition {
        name: "onnx_logic",
        handles: &[
            "onnx.And",
            "onnx.Or",
            "onnx.Xor",
            "onnx.BitwiseAnd",
            "onnx.BitwiseOr",
            "onnx.BitwiseXor",
            "onnx.BitShift",
        ],
        doc: "Of bools, or bit by bit.\n\n`y = And(a, b)` --> `y = and a, b`",
        run: logic,
    },
    Decomposition {
        name: "onnx_clip",
        handles: &["onnx.Clip"],
        doc: "`y = Clip(x, lo, hi)` --> `t = max x, lo`, `y = min t, hi`",
        run: clip,
    },
    Decomposition {
        name: "onnx_where",
        handles: &["onnx.Where"],
        doc: "`y = Where(c, a, b)` --> `y = select c, a, b`",
        run: |b, call| Ok(vec![b.select(call.arg(0)?, call.arg(1)?, call.arg(2)?)?]),
    },
    Decomposition {
        name: "onnx_is_inf",
        handles: &["onnx.IsInf"],
        doc: "`y = IsInf(x)` --> `y = or (cmp x == inf), (cmp x == -inf)`",
        run: is_inf,
    },
];

/// What PyTorch's operation of that name gives.
pub(super) fn torch(b: &mut Builder<'_>, name: &str, args: &[Arg], attrs: &[(&str, Attr)]) -> Result<Arg> {
    let Some(rule) = rule(name) else { return Err(Refusal::new(format!("there is no rule for {name}"))) };
    let attrs: Attrs = attrs.iter().map(|(k, v)| ((*k).to_string(), v.clone())).collect();
    let results = (rule.run)(b, &Call::new(name, args, &attrs))?;
    results.first().copied().ok_or_else(|| Refusal::new(format!("{name} has no result")))
}

fn function(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let name = match call.name {
        "onnx.Not" => return Ok(vec![b.not(x)?]),
        "onnx.BitwiseNot" => return Ok(vec![b.not(x)?]),
        "onnx.IsNaN" => {
            let x = base_float(b, x)?;
            return Ok(vec![b.compare(Predicate::NotEqual, x, x)?]);
        }
        // A NaN has no sign: it stays. PyTorch gives 0.
        "onnx.Sign" if b.elem(x).is_float() => {
            let sign = torch(b, "aten.sign", &[x], &[])?;
            let number = b.compare(Predicate::Equal, x, x)?;
            return Ok(vec![b.select(number, sign, x)?]);
        }
        "onnx.Gelu" => {
            let tanh = call.text("approximate")?.unwrap_or("none").to_string();
            return Ok(vec![torch(b, "aten.gelu", &[x], &[("approximate", Attr::Str(tanh))])?]);
        }
        other => format!("aten.{}", other.trim_start_matches("onnx.").to_ascii_lowercase()),
    };
    Ok(vec![torch(b, &name, &[x], &[])?])
}

fn activation(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let f = |name: &str, default: f64| call.float(name, default).map(Attr::Float);
    let y = match call.name {
        "onnx.LeakyRelu" => torch(b, "aten.leaky_relu", &[x], &[("negative_slope", f("alpha", 0.01)?)])?,
        "onnx.Elu" => torch(b, "aten.elu", &[x], &[("alpha", f("alpha", 1.0)?)])?,
        // The operator's own defaults are f32 numbers.
        "onnx.Selu" => {
            let (alpha, gamma) = (f("alpha", 1.673_263_192_176_818_8)?, f("gamma", 1.050_701_022_148_132_3)?);
            torch(b, "aten.elu", &[x], &[("alpha", alpha), ("scale", gamma)])?
        }
        "onnx.Celu" => torch(b, "aten.celu", &[x], &[("alpha", f("alpha", 1.0)?)])?,
        "onnx.ThresholdedRelu" => {
            let at = b.scalar_like(x, call.float("alpha", 1.0)?);
            let above = b.compare(Predicate::GreaterThan, x, at)?;
            let zero = b.scalar_like(x, 0.0);
            b.select(above, x, zero)?
        }
        "onnx.HardSigmoid" => {
            let c = |b: &Builder<'_>, x: Arg, v: f64| b.scalar_like(x, v);
            let (narrow, wide) = (b.elem(x), b.wide(x));
            let x = b.convert(x, wide)?;
            let y = b.mul(x, c(b, x, call.float("alpha", 0.2)?))?;
            let y = b.add(y, c(b, x, call.float("beta", 0.5)?))?;
            let y = b.min(y, c(b, x, 1.0))?;
            let y = b.max(y, c(b, x, 0.0))?;
            b.convert(y, narrow)?
        }
        "onnx.Swish" => {
            let (narrow, wide) = (b.elem(x), b.wide(x));
            let x = b.convert(x, wide)?;
            let alpha = b.scalar_like(x, call.float("alpha", 1.0)?);
            let scaled = b.mul(x, alpha)?;
            let gate = torch(b, "aten.sigmoid", &[scaled], &[])?;
            let y = b.mul(x, gate)?;
            b.convert(y, narrow)?
        }
        "onnx.Shrink" => {
            let (lambda, bias) = (call.float("lambd", 0.5)?, call.float("bias", 0.0)?);
            let (low, high) = (b.scalar_like(x, -lambda), b.scalar_like(x, lambda));
            let (bias, zero) = (b.scalar_like(x, bias), b.scalar_like(x, 0.0));
            let below = b.compare(Predicate::LessThan, x, low)?;
            let above = b.compare(Predicate::GreaterThan, x, high)?;
            let (up, down) = (b.add(x, bias)?, b.sub(x, bias)?);
            let rest = b.select(above, down, zero)?;
            b.select(below, up, rest)?
        }
        _ => {
            // PRelu: the slope broadcasts to the operand.
            let slope = call.arg(1)?;
            let slope = b.broadcast_to(slope, &b.shape(x))?;
            let zero = b.scalar_like(x, 0.0);
            let below = b.compare(Predicate::LessThan, x, zero)?;
            let scaled = b.mul(x, slope)?;
            b.select(below, scaled, x)?
        }
    };
    Ok(vec![y])
}

/// The two operands, which must have one type.
fn two(b: &Builder<'_>, call: &Call<'_>) -> Result<(Arg, Arg)> {
    let (x, y) = (call.arg(0)?, call.arg(1)?);
    if b.elem(x) == b.elem(y) {
        return Ok((x, y));
    }
    Err(Refusal::new(format!("{} and {} are different element types", b.elem(x), b.elem(y))))
}

fn arithmetic(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    if call.name == "onnx.Pow" {
        return Ok(vec![power(b, call.arg(0)?, call.arg(1)?)?]);
    }
    let (x, y) = two(b, call)?;
    Ok(vec![match call.name {
        "onnx.Add" => b.add(x, y)?,
        "onnx.Sub" => b.sub(x, y)?,
        "onnx.Mul" => b.mul(x, y)?,
        "onnx.Div" => b.div(x, y)?,
        // Remainders of extents take few steps, so that they are followed.
        _ if b.ints(x).is_some() && b.ints(y).is_some() && !call.flag("fmod", false)? => {
            let whole = ScalarOp::DivI { sign: b.elem(x).sign(), rounding: Rounding::NegativeInf };
            let whole = b.elementwise(whole, &[x, y])?;
            let less = b.mul(whole, y)?;
            b.sub(x, less)?
        }
        _ => {
            let r = b.rem(x, y)?;
            if call.flag("fmod", false)? || b.elem(x).unsigned {
                return Ok(vec![r]);
            }
            // Cut towards 0 so far; a remainder of the other sign than the divisor's moves by the divisor.
            let zero = b.scalar_like(x, 0.0);
            let nonzero = b.compare(Predicate::NotEqual, r, zero)?;
            let a = b.compare(Predicate::LessThan, r, zero)?;
            let c = b.compare(Predicate::LessThan, y, zero)?;
            let differ = b.elementwise(ScalarOp::Xor, &[a, c])?;
            let moves = b.and(nonzero, differ)?;
            let moved = b.add(r, y)?;
            b.select(moves, moved, r)?
        }
    }])
}

/// In the type of the base.
fn power(b: &mut Builder<'_>, x: Arg, y: Arg) -> Result<Arg> {
    let (base, exponent) = (b.elem(x), b.elem(y));
    if base.is_float() {
        let wide = b.wide(x);
        let x = b.convert(x, wide)?;
        if b.floats(y).as_deref() == Some(&[2.0]) && b.numel(&b.shape(y)).is_const(1) && b.rank(y) <= b.rank(x) {
            let square = b.mul(x, x)?;
            return b.convert(square, base);
        }
        let y = b.convert(y, wide)?;
        let p = b.pow(x, y)?;
        return b.convert(p, base);
    }
    if !exponent.is_float() {
        // Exact where the result is below 2^53.
        let (wide_x, wide_y) = (b.convert(x, Elem::F64)?, b.convert(y, Elem::F64)?);
        let p = b.pow(wide_x, wide_y)?;
        return b.convert(p, base);
    }
    let wide = if exponent.dtype.bits() < 64 && base.dtype.bits() <= 16 { Elem::F32 } else { Elem::F64 };
    let (wide_x, wide_y) = (b.convert(x, wide)?, b.convert(y, wide)?);
    let p = b.pow(wide_x, wide_y)?;
    b.convert(p, base)
}

fn variadic(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut y = call.arg(0)?;
    for i in 1..call.args.len() {
        let x = call.arg(i)?;
        y = match call.name {
            "onnx.Max" => b.max(y, x)?,
            "onnx.Min" => b.min(y, x)?,
            _ => b.add(y, x)?,
        };
    }
    if call.name == "onnx.Mean" {
        let n = b.scalar_like(y, call.args.len() as f64);
        y = b.div(y, n)?;
    }
    Ok(vec![y])
}

fn compare(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = two(b, call)?;
    let pred = match call.name {
        "onnx.Equal" => Predicate::Equal,
        "onnx.Greater" => Predicate::GreaterThan,
        "onnx.GreaterOrEqual" => Predicate::GreaterThanOrEqual,
        "onnx.Less" => Predicate::LessThan,
        _ => Predicate::LessThanOrEqual,
    };
    Ok(vec![b.compare(pred, x, y)?])
}

fn logic(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = two(b, call)?;
    let elem = b.elem(x);
    let bools = !call.name.contains("Bit");
    if elem.is_bool() != bools || elem.is_float() {
        return Err(Refusal::new(format!("it does not take {elem}")));
    }
    let op = match call.name {
        "onnx.And" | "onnx.BitwiseAnd" => ScalarOp::And,
        "onnx.Or" | "onnx.BitwiseOr" => ScalarOp::Or,
        "onnx.Xor" | "onnx.BitwiseXor" => ScalarOp::Xor,
        _ => match call.text("direction")? {
            Some("LEFT") => ScalarOp::Shl,
            Some("RIGHT") => ScalarOp::Shr { sign: elem.sign() },
            _ => return Err(Refusal::new("its direction must be LEFT or RIGHT")),
        },
    };
    Ok(vec![b.elementwise(op, &[x, y])?])
}

fn clip(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut y = call.arg(0)?;
    let elem = b.elem(y);
    // Before version 11, the bounds were attributes.
    for (i, name) in [(1, "min"), (2, "max")] {
        let bound = match (call.opt(i), call.float_of(name)?) {
            (Some(x), _) => lone(b, x, name)?,
            (None, Some(bound)) => ir::scalar(elem, bound),
            (None, None) => continue,
        };
        y = if i == 1 { b.max(y, bound)? } else { b.min(y, bound)? };
    }
    Ok(vec![y])
}

fn is_inf(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let x = base_float(b, x)?;
    let (high, low) = (b.scalar_like(x, f64::INFINITY), b.scalar_like(x, f64::NEG_INFINITY));
    let high = b.compare(Predicate::Equal, x, high)?;
    let low = b.compare(Predicate::Equal, x, low)?;
    Ok(vec![match (call.flag("detect_positive", true)?, call.flag("detect_negative", true)?) {
        (true, true) => b.or(high, low)?,
        (true, false) => high,
        (false, true) => low,
        (false, false) => {
            let no = b.not(high)?;
            b.and(high, no)?
        }
    }])
}
