//! Arithmetic, comparisons and logic of two operands, with PyTorch's promotion of types.

use super::types::{bound, element, needed, operand, pair, pair_of_floats, promote, scaled, together};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord};
use crate::index::Ix;
use crate::num::op::{Predicate, Rounding, Signedness};
use crate::num::{DType, ScalarOp};

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "add",
        handles: &["aten.add", "aten.sub", "aten.rsub", "aten.subtract"],
        doc: "Sums and differences; bools add as `or`.\n\n`y = add(a, b, alpha)` --> `y = a + alpha*b`",
        run: add,
    },
    Decomposition {
        name: "mul",
        handles: &["aten.mul", "aten.multiply"],
        doc: "Bools multiply as `and`.\n\n`y = mul(a, b)` --> `y = a * b`",
        run: mul,
    },
    Decomposition {
        name: "div",
        handles: &["aten.div", "aten.divide", "aten.true_divide", "aten.floor_divide"],
        doc: "Integers divide as f32, unless `rounding_mode` asks for integers. An integer divided by 0 ends the run \
              (`zero_divisor=\"any\"`: gives 0).\n\n\
              `y = div(a, b)` --> `y = a / b`\n\n`y = div(a, b, floor)` --> `y = floor(a / b)`, computed from the exact remainder",
        run: div,
    },
    Decomposition {
        name: "remainder",
        handles: &["aten.remainder", "aten.fmod"],
        doc: "The remainder with the sign of the divisor (remainder) or of the dividend (fmod). An integer divided by 0 \
              ends the run, as in div.\n\n\
              `y = remainder(a, b)` --> `r = a rem b`, `y = select(r != 0 and (r < 0) != (b < 0), r + b, r)`",
        run: remainder,
    },
    Decomposition {
        name: "pow",
        handles: &["aten.pow", "aten.float_power"],
        doc: "Powers; small known exponents become multiplications and roots. Integers to known integer powers are \
              repeated products.\n\n`y = pow(x, 2)` --> `y = x * x`\n\n`y = pow(x, -0.5)` --> `y = rsqrt(x)`\n\n\
              Refuses integers to an unknown integer power.",
        run: pow,
    },
    Decomposition {
        name: "extremum",
        handles: &["aten.minimum", "aten.maximum", "aten.fmin", "aten.fmax"],
        doc: "The smaller or greater of two; NaN wins, and loses in fmin and fmax.\n\n`y = maximum(a, b)` --> `y = max(a, b)`",
        run: extremum,
    },
    Decomposition {
        name: "compare",
        handles: &["aten.eq", "aten.ne", "aten.lt", "aten.le", "aten.gt", "aten.ge"],
        doc: "`y = lt(a, b)` --> `y = cmp lt a, b` (bool)",
        run: compare,
    },
    Decomposition {
        name: "logical",
        handles: &["aten.logical_and", "aten.logical_or", "aten.logical_xor", "aten.logical_not"],
        doc: "`y = logical_and(a, b)` --> `y = (a != 0) and (b != 0)`",
        run: logical,
    },
    Decomposition {
        name: "bitwise",
        handles: &[
            "aten.bitwise_and",
            "aten.bitwise_or",
            "aten.bitwise_xor",
            "aten.bitwise_not",
            "aten.bitwise_left_shift",
            "aten.bitwise_right_shift",
            "aten.__lshift__",
            "aten.__rshift__",
        ],
        doc: "`y = bitwise_and(a, b)` --> `y = a and b`\n\nA shift by a negative number, or by the width or more, leaves 0, or the sign.",
        run: bitwise,
    },
    Decomposition {
        name: "where",
        handles: &["aten.where", "aten.masked_fill"],
        doc: "One operand or the other, by a condition.\n\n`y = where(c, a, b)` --> `y = select(c, a, b)`\n\n\
              Refuses the form that gives positions: its shape depends on data.",
        run: where_,
    },
    Decomposition {
        name: "clamp",
        handles: &["aten.clamp", "aten.clip", "aten.clamp_min", "aten.clamp_max"],
        doc: "`y = clamp(x, lo, hi)` --> `y = min(max(x, lo), hi)`",
        run: clamp,
    },
    Decomposition {
        name: "angle",
        handles: &[
            "aten.atan2",
            "aten.arctan2",
            "aten.hypot",
            "aten.copysign",
            "aten.logaddexp",
            "aten.xlogy",
            "aten.ldexp",
        ],
        doc: "Functions of two floats.\n\n`y = hypot(a, b)` --> `y = sqrt(a*a + b*b)`\n\n\
              `y = logaddexp(a, b)` --> `y = max(a, b) + log1p(exp(-abs(a - b)))`",
        run: two_floats,
    },
    Decomposition {
        name: "lerp",
        handles: &["aten.lerp", "aten.addcmul", "aten.addcdiv"],
        doc: "Three operands.\n\n`y = lerp(a, b, w)` --> `y = select(abs w < 1/2, a + w*(b - a), b - (b - a)*(1 - w))`\n\n\
              `y = addcmul(x, a, b)` --> `y = x + value*a*b`",
        run: lerp,
    },
];

fn add(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, needed(b, call, 1, "other")?);
    let (mut x, mut y) = pair(b, x, y)?;
    // The subtrahend is the scaled operand also where the two change places.
    if call.name == "aten.rsub" {
        (x, y) = (y, x);
    }
    let plus = call.name == "aten.add";
    let elem = b.elem(x);
    if let Some(alpha) = call.number(b, "alpha")?
        && b.elem(alpha).is_bool()
        && !elem.is_bool()
    {
        return Err(Refusal::new(format!("alpha is a truth value, but the sum is {elem}")));
    }
    y = scaled(b, call, y, "alpha")?;
    Ok(vec![if plus { b.add(x, y)? } else { b.sub(x, y)? }])
}

fn mul(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, needed(b, call, 1, "other")?);
    let (x, y, elem) = with_number(b, x, y)?;
    let out = b.mul(x, y)?;
    Ok(vec![b.convert(out, elem)?])
}

/// The operands of a product or a quotient, and the type of its result: where the second is one number and the result is
/// f16 or bf16, PyTorch computes in f32 and rounds nothing before the result. `1.0 // 0.1` is 9, and would be 10.
fn with_number(b: &mut Builder<'_>, x: Arg, y: Arg) -> Result<(Arg, Arg, Elem)> {
    let elem = promote(b, &[x, y]);
    let narrow = matches!(elem.dtype, DType::F16 | DType::BF16);
    let wide = if narrow && b.rank(y) == 0 { Elem::F32 } else { elem };
    let x = b.convert(x, elem)?;
    Ok((b.convert(x, wide)?, b.convert(y, wide)?, elem))
}

/// The quotient of two operands of one type, rounded towards zero or minus infinity.
pub(super) fn divide_rounded(b: &mut Builder<'_>, x: Arg, y: Arg, floor: bool) -> Result<Arg> {
    let elem = b.elem(x);
    if !elem.is_float() {
        let rounding = if floor { Rounding::NegativeInf } else { Rounding::Zero };
        return b.elementwise(ScalarOp::DivI { sign: elem.sign(), rounding }, &[x, y]);
    }
    if !floor {
        let q = b.div(x, y)?;
        return trunc(b, q);
    }
    // As CPython and PyTorch: from the remainder, so that the quotient is right where x/y rounds up to an integer.
    let zero = b.scalar_like(x, 0.0);
    let (half, one) = (b.scalar_like(x, 0.5), b.scalar_like(x, 1.0));
    let r = b.rem(x, y)?;
    let rest = b.sub(x, r)?;
    let q = b.div(rest, y)?;
    let r_low = b.compare(Predicate::LessThan, r, zero)?;
    let y_low = b.compare(Predicate::LessThan, y, zero)?;
    let differ = b.compare(Predicate::NotEqual, r_low, y_low)?;
    let some = b.compare(Predicate::NotEqual, r, zero)?;
    let adjust = b.and(differ, some)?;
    let less = b.sub(q, one)?;
    let q = b.select(adjust, less, q)?;
    let floored = b.floor(q)?;
    let above = b.sub(q, floored)?;
    let above = b.compare(Predicate::GreaterThan, above, half)?;
    let next = b.add(floored, one)?;
    let out = b.select(above, next, floored)?;
    // Division by zero: the plain quotient.
    let by_zero = b.compare(Predicate::Equal, y, zero)?;
    let plain = b.div(x, y)?;
    b.select(by_zero, plain, out)
}

/// The divisor of a quotient or remainder that PyTorch computes: an integer that is 0 ends the run, by a read outside of a
/// table of one element. On GPUs PyTorch's result is any number, which `zero_divisor` says.
fn divisor(b: &mut Builder<'_>, call: &Call<'_>, y: Arg) -> Result<Arg> {
    let elem = b.elem(y);
    if elem.is_float() || elem.is_bool() || call.choice("zero_divisor", &["raises", "any"])? == "any" {
        return Ok(y);
    }
    let facts = b.facts();
    let is_nonzero = |n: &Ix| facts.range(n).lo > 0 || facts.range(n).hi < 0;
    match b.ints(y) {
        Some(known) if known.iter().all(is_nonzero) => return Ok(y),
        Some(known) if known.iter().any(|n| n.is_const(0)) => {
            return Err(Refusal::new("an integer is divided by zero"));
        }
        _ => {}
    }
    let zero = b.scalar_like(y, 0.0);
    let is_zero = b.compare(Predicate::Equal, y, zero)?;
    let at = b.convert(is_zero, elem)?;
    let table = b.index(ir::axis(0), elem, vec![Ix::Const(1)]);
    let shape = b.shape(y);
    let checked = b.gather(table, &[at], vec![Coord::Arg(1)], shape)?;
    b.or(y, checked)
}

/// Towards zero; the sign of a zero is kept.
pub(super) fn trunc(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    let zero = b.scalar_like(x, 0.0);
    let low = b.compare(Predicate::LessThan, x, zero)?;
    let (up, down) = (b.ceil(x)?, b.floor(x)?);
    b.select(low, up, down)
}

fn div(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, needed(b, call, 1, "other")?);
    let mode =
        if call.name == "aten.floor_divide" { "floor" } else { call.choice("rounding_mode", &["", "trunc", "floor"])? };
    if mode.is_empty() && !promote(b, &[x, y]).is_float() {
        let (x, y) = pair_of_floats(b, x, y)?;
        return Ok(vec![b.div(x, y)?]);
    }
    let (x, y, elem) = with_number(b, x, y)?;
    let y = divisor(b, call, y)?;
    let out = if mode.is_empty() { b.div(x, y)? } else { divide_rounded(b, x, y, mode == "floor")? };
    Ok(vec![b.convert(out, elem)?])
}

/// The remainder with the sign of the divisor, for operands of one type.
pub(super) fn modulo(b: &mut Builder<'_>, x: Arg, y: Arg) -> Result<Arg> {
    let r = b.rem(x, y)?;
    if b.elem(x).sign() == Signedness::Unsigned {
        return Ok(r);
    }
    let zero = b.scalar_like(x, 0.0);
    let r_low = b.compare(Predicate::LessThan, r, zero)?;
    let y_low = b.compare(Predicate::LessThan, y, zero)?;
    let differ = b.compare(Predicate::NotEqual, r_low, y_low)?;
    let some = b.compare(Predicate::NotEqual, r, zero)?;
    let adjust = b.and(differ, some)?;
    let sum = b.add(r, y)?;
    b.select(adjust, sum, r)
}

fn remainder(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, needed(b, call, 1, "other")?);
    let (x, y) = pair(b, x, y)?;
    let y = divisor(b, call, y)?;
    Ok(vec![if call.name == "aten.fmod" { b.rem(x, y)? } else { modulo(b, x, y)? }])
}

/// `x` to a known power, where that is a few multiplications or a root.
pub(super) fn known_power(b: &mut Builder<'_>, x: Arg, power: f64) -> Result<Option<Arg>> {
    let float = b.elem(x).is_float();
    let one = b.scalar_like(x, 1.0);
    let whole = power.fract() == 0.0 && (0.0..=63.0).contains(&power);
    Ok(Some(match power {
        0.0 => {
            let (elem, shape) = (b.elem(x), b.shape(x));
            b.full(one, elem, shape)
        }
        1.0 => x,
        2.0 => b.mul(x, x)?,
        3.0 => {
            let square = b.mul(x, x)?;
            b.mul(square, x)?
        }
        0.5 if float => b.sqrt(x)?,
        -0.5 if float => b.rsqrt(x)?,
        -1.0 if float => b.div(one, x)?,
        -2.0 if float => {
            let square = b.mul(x, x)?;
            b.div(one, square)?
        }
        _ if whole && !float => {
            let (mut result, mut base, mut n) = (None, x, power as u32);
            while n > 0 {
                if n & 1 == 1 {
                    result = Some(match result {
                        None => base,
                        Some(r) => b.mul(r, base)?,
                    });
                }
                n >>= 1;
                if n > 0 {
                    base = b.mul(base, base)?;
                }
            }
            result.unwrap_or(one)
        }
        _ => return Ok(None),
    }))
}

fn pow(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (needed(b, call, 0, "self")?, needed(b, call, 1, "exponent")?);
    let elem = if call.name == "aten.float_power" { Elem::F64 } else { promote(b, &[x, y]) };
    let x = b.convert(x, elem)?;
    if let (Arg::Value(_), Arg::Scalar { elem: e, bits }) = (x, y) {
        let power = crate::graph::build::number_of(e, bits);
        // f16 and bf16 round once.
        let (narrow, wide) = (b.elem(x), b.wide(x));
        let wide_x = b.convert(x, wide)?;
        if let Some(y) = known_power(b, wide_x, power)? {
            return Ok(vec![b.convert(y, narrow)?]);
        }
    }
    if !elem.is_float() {
        return Err(Refusal::new("integers to an integer power that is not known, or negative, are not supported")
            .help("convert one operand to a float"));
    }
    let y = b.convert(y, elem)?;
    Ok(vec![b.pow(x, y)?])
}

fn extremum(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, needed(b, call, 1, "other")?);
    let (x, y) = pair(b, x, y)?;
    let out = match call.name {
        "aten.minimum" => b.min(x, y)?,
        "aten.maximum" => b.max(x, y)?,
        name if b.elem(x).is_float() => {
            let op = if name == "aten.fmin" {
                ScalarOp::MinF { nan: false, ftz: false }
            } else {
                ScalarOp::MaxF { nan: false, ftz: false }
            };
            b.elementwise(op, &[x, y])?
        }
        "aten.fmin" => b.min(x, y)?,
        _ => b.max(x, y)?,
    };
    Ok(vec![out])
}

fn compare(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, needed(b, call, 1, "other")?);
    let (x, y) = pair(b, x, y)?;
    let pred = match call.name {
        "aten.eq" => Predicate::Equal,
        "aten.ne" => Predicate::NotEqual,
        "aten.lt" => Predicate::LessThan,
        "aten.le" => Predicate::LessThanOrEqual,
        "aten.gt" => Predicate::GreaterThan,
        _ => Predicate::GreaterThanOrEqual,
    };
    Ok(vec![b.compare(pred, x, y)?])
}

fn logical(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let x = b.convert(x, Elem::BOOL)?;
    if call.name == "aten.logical_not" {
        return Ok(vec![b.not(x)?]);
    }
    let y = needed(b, call, 1, "other")?;
    let y = b.convert(y, Elem::BOOL)?;
    Ok(vec![match call.name {
        "aten.logical_and" => b.and(x, y)?,
        "aten.logical_or" => b.or(x, y)?,
        _ => b.elementwise(ScalarOp::Xor, &[x, y])?,
    }])
}

fn bitwise(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let integer = |b: &Builder<'_>, x: Arg| match b.elem(x).is_float() {
        true => Err(Refusal::new(format!("bits of {} cannot be combined", b.elem(x)))),
        false => Ok(()),
    };
    integer(b, x)?;
    if call.name == "aten.bitwise_not" {
        return Ok(vec![b.not(x)?]);
    }
    let y = needed(b, call, 1, "other")?;
    let (x, y) = pair(b, x, y)?;
    integer(b, x)?;
    let sign = b.elem(x).sign();
    let op = match call.name {
        "aten.bitwise_and" => ScalarOp::And,
        "aten.bitwise_or" => ScalarOp::Or,
        "aten.bitwise_xor" => ScalarOp::Xor,
        "aten.bitwise_left_shift" | "aten.__lshift__" => ScalarOp::Shl,
        _ => ScalarOp::Shr { sign },
    };
    Ok(vec![b.elementwise(op, &[x, y])?])
}

/// An integer beside a tensor of integers, as an element of its type.
fn beside(b: &mut Builder<'_>, x: Arg, other: Arg) -> Result<Arg> {
    let of = b.elem(other);
    let whole = |elem: Elem| elem.is_int() && !elem.is_bool();
    match (x, other) {
        (Arg::Scalar { elem, .. }, Arg::Value(_)) if whole(elem) && whole(of) => element(b, x, of),
        _ => Ok(x),
    }
}

fn where_(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (c, x, y) = if call.name == "aten.masked_fill" {
        let (x, c) = (call.arg(0)?, call.arg(1)?);
        if !b.elem(c).is_bool() {
            return Err(Refusal::new(format!("the mask of masked_fill holds bools, not {}", b.elem(c))));
        }
        let fill = needed(b, call, 2, "value")?;
        let fill = element(b, fill, b.elem(x))?;
        (c, fill, x)
    } else {
        let c = call.arg(0)?;
        if !b.elem(c).is_bool() && b.elem(c) != Elem::U8 {
            return Err(Refusal::new(format!("the condition of where holds bools, not {}", b.elem(c)))
                .help("compare it with something: `where(c != 0, a, b)`"));
        }
        let x = operand(b, call, 1, "self")?;
        let y = operand(b, call, 2, "other")?;
        let (Some(x), Some(y)) = (x, y) else {
            return Err(Refusal::new("where with one operand gives a shape that depends on data")
                .help("pass both alternatives"));
        };
        let (x, y) = (beside(b, x, y)?, beside(b, y, x)?);
        let (x, y) = pair(b, x, y)?;
        (c, x, y)
    };
    let c = b.convert(c, Elem::BOOL)?;
    Ok(vec![b.select(c, x, y)?])
}

fn clamp(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (low, high) = match call.name {
        "aten.clamp_min" => (operand(b, call, 1, "min")?, None),
        "aten.clamp_max" => (None, operand(b, call, 1, "max")?),
        _ => (operand(b, call, 1, "min")?, operand(b, call, 2, "max")?),
    };
    let elem = b.elem(x);
    let low = low.map(|low| bound(low, elem, true)).transpose()?;
    let high = high.map(|high| bound(high, elem, false)).transpose()?;
    let all = together(
        b,
        &[x, low.unwrap_or(Arg::Absent), high.unwrap_or(Arg::Absent)].map(|a| if a == Arg::Absent { x } else { a }),
    )?;
    let mut y = all[0];
    if low.is_some() {
        y = b.max(y, all[1])?;
    }
    if high.is_some() {
        y = b.min(y, all[2])?;
    }
    Ok(vec![y])
}

fn two_floats(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (needed(b, call, 0, "self")?, needed(b, call, 1, "other")?);
    let (x, y) = pair_of_floats(b, x, y)?;
    let narrow = b.elem(x);
    let wide = b.wide(x);
    let (x, y) = (b.convert(x, wide)?, b.convert(y, wide)?);
    let zero = b.scalar_like(x, 0.0);
    let out = match call.name {
        "aten.atan2" | "aten.arctan2" => b.elementwise(ScalarOp::Atan2, &[x, y])?,
        "aten.hypot" => {
            let (p, q) = (b.mul(x, x)?, b.mul(y, y)?);
            let s = b.add(p, q)?;
            b.sqrt(s)?
        }
        "aten.copysign" => {
            // The sign of a zero shows in its reciprocal.
            let one = b.scalar_like(y, 1.0);
            let inverse = b.div(one, y)?;
            let by_value = b.compare(Predicate::LessThan, y, zero)?;
            let by_zero = b.compare(Predicate::LessThan, inverse, zero)?;
            let low = b.or(by_value, by_zero)?;
            let size = b.abs(x)?;
            let minus = b.neg(size)?;
            b.select(low, minus, size)?
        }
        "aten.ldexp" => {
            let two = b.scalar_like(x, 2.0);
            let scale = b.pow(two, y)?;
            b.mul(x, scale)?
        }
        "aten.logaddexp" => log_add_exp(b, x, y)?,
        _ => {
            let l = b.log(y)?;
            let p = b.mul(x, l)?;
            let none = b.compare(Predicate::Equal, x, zero)?;
            let known = b.compare(Predicate::Equal, y, y)?;
            let none = b.and(none, known)?;
            b.select(none, zero, p)?
        }
    };
    Ok(vec![b.convert(out, narrow)?])
}

/// `log(exp(x) + exp(y))`.
pub(super) fn log_add_exp(b: &mut Builder<'_>, x: Arg, y: Arg) -> Result<Arg> {
    let m = b.max(x, y)?;
    let d = b.sub(x, y)?;
    let d = b.abs(d)?;
    let d = b.neg(d)?;
    let e = b.exp(d)?;
    let l = b.log1p(e)?;
    let sum = b.add(m, l)?;
    // Equal infinities have no difference.
    let inf = b.scalar_like(x, f64::INFINITY);
    let size = b.abs(m)?;
    let same = b.compare(Predicate::Equal, x, y)?;
    let endless = b.compare(Predicate::Equal, size, inf)?;
    let both = b.and(same, endless)?;
    b.select(both, m, sum)
}

fn lerp(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, call.arg(1)?);
    if call.name == "aten.lerp" {
        let w = needed(b, call, 2, "weight")?;
        let narrow = b.elem(x);
        let wide = b.wide(x);
        let (x, y, w) = (b.convert(x, wide)?, b.convert(y, wide)?, b.convert(w, wide)?);
        let (half, one) = (ir::scalar(wide, 0.5), ir::scalar(wide, 1.0));
        let d = b.sub(y, x)?;
        let step = b.mul(w, d)?;
        let low = b.add(x, step)?;
        let rest = b.sub(one, w)?;
        let back = b.mul(d, rest)?;
        let high = b.sub(y, back)?;
        let size = b.abs(w)?;
        let near = b.compare(Predicate::LessThan, size, half)?;
        let out = b.select(near, low, high)?;
        return Ok(vec![b.convert(out, narrow)?]);
    }
    let all = together(b, &[x, y, call.arg(2)?])?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let mut values = vec![];
    for x in all {
        values.push(b.convert(x, wide)?);
    }
    let (x, p, q) = (values[0], values[1], values[2]);
    let p = scaled(b, call, p, "value")?;
    let term = if call.name == "aten.addcmul" { b.mul(p, q)? } else { b.div(p, q)? };
    let out = b.add(x, term)?;
    Ok(vec![b.convert(out, narrow)?])
}
