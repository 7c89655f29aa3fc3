//! Arithmetic, comparisons and logic of two operands, with PyTorch's promotion of types.

use super::Call;
use super::expr::Tensor;
use super::types::{bound, promoted};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result, number_of};
use crate::graph::ir::{self, Arg, Coord};
use crate::index::Ix;
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, ScalarOp};

rules! {
    add "Sums and differences; bools add as `or`.\n\n`y = add(a, b, alpha)` --> `y = a + alpha*b`" {
        "aten.add" => |c| sum(c, |x, y| x + y),
        "aten.sub" | "aten.subtract" => |c| sum(c, |x, y| x - y),
        // The operands change places before the second of them is scaled.
        "aten.rsub" => |c| {
            let (x, y) = c.x(0).with(c.needed(1, "other"));
            scaled_sum(c, y, x, |x, y| x - y)
        },
    }
    mul "Bools multiply as `and`.\n\n`y = mul(a, b)` --> `y = a * b`" {
        "aten.mul" | "aten.multiply" => |c| {
            let (x, y, elem) = with_number(c.x(0), c.needed(1, "other"))?;
            Ok::<_, Refusal>((x * y).to(elem))
        },
    }
    div "Integers divide as f32, unless `rounding_mode` asks for integers. An integer divided by 0 ends the run \
         (`zero_divisor=\"any\"`: gives 0).\n\n\
         `y = div(a, b)` --> `y = a / b`\n\n`y = div(a, b, floor)` --> `y = floor(a / b)`, computed from the exact remainder" {
        "aten.div" | "aten.divide" | "aten.true_divide" => |c| div(c, c.choice("rounding_mode", &["", "trunc", "floor"])?),
        "aten.floor_divide" => |c| div(c, "floor"),
    }
    remainder "The remainder with the sign of the divisor (remainder) or of the dividend (fmod). An integer divided by 0 \
         ends the run, as in div.\n\n\
         `y = remainder(a, b)` --> `r = a rem b`, `y = select(r != 0 and (r < 0) != (b < 0), r + b, r)`" {
        "aten.remainder" => |c| remainder(c, modulo),
        "aten.fmod" => |c| remainder(c, |x, y| x % y),
    }
    pow "Powers; small known exponents become multiplications and roots. Integers to known integer powers are \
         repeated products.\n\n`y = pow(x, 2)` --> `y = x * x`\n\n`y = pow(x, -0.5)` --> `y = rsqrt(x)`\n\n\
         Refuses integers to an unknown integer power." {
        "aten.pow" => |c| {
            let (x, y) = (c.needed(0, "self"), c.needed(1, "exponent"));
            pow(x, y, promoted(&[x, y]))
        },
        "aten.float_power" => |c| pow(c.needed(0, "self"), c.needed(1, "exponent"), Elem::F64),
    }
    extremum "The smaller or greater of two; NaN wins, and loses in fmin and fmax.\n\n`y = maximum(a, b)` --> `y = max(a, b)`" {
        "aten.minimum" => |c| with_other(c, |x, y| x.min(y)),
        "aten.maximum" => |c| with_other(c, |x, y| x.max(y)),
        "aten.fmin" => |c| with_other(c, |x, y| match x.elem().is_float() {
            true => x.apply(ScalarOp::MinF { nan: false, ftz: false }, &[y]),
            false => x.min(y),
        }),
        "aten.fmax" => |c| with_other(c, |x, y| match x.elem().is_float() {
            true => x.apply(ScalarOp::MaxF { nan: false, ftz: false }, &[y]),
            false => x.max(y),
        }),
    }
    compare "`y = lt(a, b)` --> `y = cmp lt a, b` (bool)" {
        "aten.eq" => |c| with_other(c, |x, y| x.equals(y)),
        "aten.ne" => |c| with_other(c, |x, y| x.differs(y)),
        "aten.lt" => |c| with_other(c, |x, y| x.below(y)),
        "aten.le" => |c| with_other(c, |x, y| x.at_most(y)),
        "aten.gt" => |c| with_other(c, |x, y| x.above(y)),
        "aten.ge" => |c| with_other(c, |x, y| x.at_least(y)),
    }
    logical "`y = logical_and(a, b)` --> `y = (a != 0) and (b != 0)`" {
        "aten.logical_and" => |c| c.x(0).to(Elem::BOOL) & c.needed(1, "other").to(Elem::BOOL),
        "aten.logical_or" => |c| c.x(0).to(Elem::BOOL) | c.needed(1, "other").to(Elem::BOOL),
        "aten.logical_xor" => |c| c.x(0).to(Elem::BOOL) ^ c.needed(1, "other").to(Elem::BOOL),
        "aten.logical_not" => |c| !c.x(0).to(Elem::BOOL),
    }
    bitwise "`y = bitwise_and(a, b)` --> `y = a and b`\n\nA shift by a negative number, or by the width or more, leaves 0, or the sign." {
        "aten.bitwise_and" => |c| bitwise(c, |x, y| x & y),
        "aten.bitwise_or" => |c| bitwise(c, |x, y| x | y),
        "aten.bitwise_xor" => |c| bitwise(c, |x, y| x ^ y),
        "aten.bitwise_not" => |c| Ok::<_, Refusal>(!of_bits(c.x(0))?),
        "aten.bitwise_left_shift" | "aten.__lshift__" => |c| bitwise(c, |x, y| x.apply(ScalarOp::Shl, &[y])),
        "aten.bitwise_right_shift" | "aten.__rshift__" =>
            |c| bitwise(c, |x, y| x.apply(ScalarOp::Shr { sign: x.elem().sign() }, &[y])),
    }
    where "One operand or the other, by a condition.\n\n`y = where(c, a, b)` --> `y = select(c, a, b)`\n\n\
         Refuses the form that gives positions: its shape depends on data." {
        "aten.where" => where_,
        "aten.masked_fill" => masked_fill,
    }
    clamp "`y = clamp(x, lo, hi)` --> `y = min(max(x, lo), hi)`" {
        "aten.clamp" | "aten.clip" => |c| clamp(c, c.operand(1, "min")?, c.operand(2, "max")?),
        "aten.clamp_min" => |c| clamp(c, c.operand(1, "min")?, None),
        "aten.clamp_max" => |c| clamp(c, None, c.operand(1, "max")?),
    }
    angle "Functions of two floats.\n\n`y = hypot(a, b)` --> `y = sqrt(a*a + b*b)`, in f64 for f32\n\n\
         `y = logaddexp(a, b)` --> `y = max(a, b) + log1p(exp(-abs(a - b)))`" {
        "aten.atan2" | "aten.arctan2" => |c| of_two_floats(c, |x, y| x.atan2(y)),
        "aten.hypot" => |c| of_two_floats(c, hypot),
        "aten.copysign" => |c| of_two_floats(c, |x, y| {
            let inverse = 1.0 / y;
            let low = y.below(0.0) | inverse.below(0.0);
            let size = x.abs();
            low.select(-size, size)
        }),
        "aten.logaddexp" => |c| of_two_floats(c, log_add_exp),
        "aten.xlogy" => |c| of_two_floats(c, |x, y| {
            let product = x * y.log();
            (x.equals(0.0) & y.equals(y)).select(0.0, product)
        }),
        "aten.ldexp" => |c| of_two_floats(c, |x, y| x * x.like(2.0).pow(y)),
    }
    lerp "Three operands.\n\n`y = lerp(a, b, w)` --> `y = select(abs w < 1/2, a + w*(b - a), b - (b - a)*(1 - w))`\n\n\
         `y = addcmul(x, a, b)` --> `y = x + value*a*b`" {
        "aten.lerp" => lerp,
        "aten.addcmul" => |c| add_term(c, |p, q| p * q),
        "aten.addcdiv" => |c| add_term(c, |p, q| p / q),
    }
}

/// A function of two operands of one type.
type Two<'g> = fn(Tensor<'g>, Tensor<'g>) -> Tensor<'g>;

/// `f` of the two operands, in the type they promote to.
fn with_other<'g>(c: &Call<'g>, f: Two<'g>) -> Tensor<'g> {
    let (x, y) = c.x(0).with(c.needed(1, "other"));
    f(x, y)
}

fn sum<'g>(c: &Call<'g>, f: Two<'g>) -> Result<Tensor<'g>> {
    let (x, y) = c.x(0).with(c.needed(1, "other"));
    scaled_sum(c, x, y, f)
}

fn scaled_sum<'g>(c: &Call<'g>, x: Tensor<'g>, y: Tensor<'g>, f: Two<'g>) -> Result<Tensor<'g>> {
    let elem = x.elem();
    if c.given_number("alpha")?.is_some_and(|alpha| alpha.elem().is_bool()) && !elem.is_bool() {
        return Err(Refusal::new(format!("alpha is a truth value, but the sum is {elem}")));
    }
    Ok(f(x, c.scaled(y, "alpha")))
}

/// The operands of a product or a quotient, and the type of its result: where the second is one number and the result is
/// f16 or bf16, PyTorch computes in f32 and rounds nothing before the result. `1.0 // 0.1` is 9, and would be 10.
fn with_number<'g>(x: Tensor<'g>, y: Tensor<'g>) -> Result<(Tensor<'g>, Tensor<'g>, Elem)> {
    let elem = promoted(&[x, y]);
    let narrow = matches!(elem.dtype, DType::F16 | DType::BF16);
    let wide = if narrow && y.rank()? == 0 { Elem::F32 } else { elem };
    Ok((x.to(elem).to(wide), y.to(wide), elem))
}

/// The quotient of two operands of one type, rounded towards zero or minus infinity.
pub(super) fn divide_rounded<'g>(x: Tensor<'g>, y: Tensor<'g>, floor: bool) -> Tensor<'g> {
    let elem = x.elem();
    if !elem.is_float() {
        let rounding = if floor { Rounding::NegativeInf } else { Rounding::Zero };
        return x.apply(ScalarOp::DivI { sign: elem.sign(), rounding }, &[y]);
    }
    if !floor {
        return trunc(x / y);
    }
    // As CPython and PyTorch: from the remainder, so that the quotient is right where x/y rounds up to an integer.
    let r = x % y;
    let q = (x - r) / y;
    let adjust = adjusts(r, y);
    let q = adjust.select(q - 1.0, q);
    let floored = q.floor();
    let above = (q - floored).above(0.5);
    let out = above.select(floored + 1.0, floored);
    let plain = x / y;
    // A zero has the sign of the plain quotient, which is all of a division by zero.
    let out = q.equals(0.0).select(plain * 0.0, out);
    y.equals(0.0).select(plain, out)
}

/// True where a remainder has another sign than its divisor.
fn adjusts<'g>(r: Tensor<'g>, y: Tensor<'g>) -> Tensor<'g> {
    r.below(0.0).differs(y.below(0.0)) & r.differs(0.0)
}

/// The divisor of a quotient or remainder that PyTorch computes: an integer that is 0 ends the run, by a read outside of a
/// table of one element. On GPUs PyTorch's result is any number, which `zero_divisor` says.
fn divisor<'g>(c: &Call<'g>, y: Tensor<'g>) -> Result<Tensor<'g>> {
    let elem = y.elem();
    if elem.is_float() || elem.is_bool() || c.choice("zero_divisor", &["raises", "any"])? == "any" {
        return Ok(y);
    }
    let is_nonzero = |n: &Ix| c.cx.range(n).lo > 0 || c.cx.range(n).hi < 0;
    match y.ints() {
        Some(known) if known.iter().all(is_nonzero) => return Ok(y),
        Some(known) if known.iter().any(|n| n.is_const(0)) => {
            return Err(Refusal::new("an integer is divided by zero"));
        }
        _ => {}
    }
    let at = y.equals(0.0).to(elem);
    let table = c.cx.index(ir::axis(0), elem, vec![Ix::Const(1)]);
    Ok(y | table.gather(&[at], vec![Coord::Arg(1)], y.shape()?))
}

/// Towards zero; the sign of a zero is kept.
pub(super) fn trunc(x: Tensor<'_>) -> Tensor<'_> {
    x.below(0.0).select(x.ceil(), x.floor())
}

fn div<'g>(c: &Call<'g>, mode: &str) -> Result<Tensor<'g>> {
    let (x, y) = (c.x(0), c.needed(1, "other"));
    if mode.is_empty() && !promoted(&[x, y]).is_float() {
        let (x, y) = x.with_as_floats(y);
        return Ok(x / y);
    }
    let (x, y, elem) = with_number(x, y)?;
    let y = divisor(c, y)?;
    Ok(if mode.is_empty() { x / y } else { divide_rounded(x, y, mode == "floor") }.to(elem))
}

/// The remainder with the sign of the divisor, for operands of one type.
pub(super) fn modulo<'g>(x: Tensor<'g>, y: Tensor<'g>) -> Tensor<'g> {
    let r = x % y;
    if x.elem().sign() == Signedness::Unsigned {
        return r;
    }
    adjusts(r, y).select(r + y, r)
}

fn remainder<'g>(c: &Call<'g>, f: Two<'g>) -> Result<Tensor<'g>> {
    let (x, y) = c.x(0).with(c.needed(1, "other"));
    Ok(f(x, divisor(c, y)?))
}

/// `x` to a known power, where that is a few multiplications or a root.
fn known_power(x: Tensor<'_>, power: f64) -> Result<Option<Tensor<'_>>> {
    let float = x.elem().is_float();
    let whole = power.fract() == 0.0 && (0.0..=63.0).contains(&power);
    Ok(Some(match power {
        0.0 => x.like(1.0).fill(x.shape()?),
        1.0 => x,
        2.0 => x * x,
        3.0 => x * x * x,
        0.5 if float => x.sqrt(),
        -0.5 if float => x.rsqrt(),
        -1.0 if float => 1.0 / x,
        -2.0 if float => 1.0 / (x * x),
        _ if whole && !float => raised(x, power as u32),
        _ => return Ok(None),
    }))
}

/// A whole positive power, by squaring.
pub(super) fn raised(x: Tensor<'_>, mut n: u32) -> Tensor<'_> {
    let (mut result, mut base) = (None, x);
    while n > 0 {
        if n & 1 == 1 {
            result = Some(result.map_or(base, |r: Tensor<'_>| r * base));
        }
        n >>= 1;
        if n > 0 {
            base = base * base;
        }
    }
    result.unwrap_or(x)
}

fn pow<'g>(x: Tensor<'g>, y: Tensor<'g>, elem: Elem) -> Result<Tensor<'g>> {
    let x = x.to(elem);
    if let (Arg::Value(_), Arg::Scalar { elem: e, bits }) = (x.arg, y.arg)
        && let power = number_of(e, bits)
        // PyTorch has no roots for f16: -inf to the power of 0.5 is inf there.
        && (elem.dtype != DType::F16 || power.abs() != 0.5)
        // f16 and bf16 round once.
        && let Some(y) = known_power(x.wide(), power)?
    {
        return Ok(y.to(elem));
    }
    if !elem.is_float() {
        return Err(Refusal::new("integers to an integer power that is not known, or negative, are not supported")
            .help("convert one operand to a float"));
    }
    Ok(x.pow(y.to(elem)))
}

/// An operand whose bits can be combined.
fn of_bits(x: Tensor<'_>) -> Result<Tensor<'_>> {
    match x.elem().is_float() {
        true => Err(Refusal::new(format!("bits of {} cannot be combined", x.elem()))),
        false => Ok(x),
    }
}

fn bitwise<'g>(c: &Call<'g>, f: Two<'g>) -> Result<Tensor<'g>> {
    let (x, y) = of_bits(c.x(0))?.with(c.needed(1, "other"));
    Ok(f(of_bits(x)?, y))
}

/// An integer beside a tensor of integers, as an element of its type.
fn beside<'g>(x: Tensor<'g>, other: Tensor<'g>) -> Tensor<'g> {
    let whole = |elem: Elem| elem.is_int() && !elem.is_bool();
    let fits = x.is_number() && !other.is_number() && whole(x.elem()) && whole(other.elem());
    if fits { x.element_of(other.elem()) } else { x }
}

fn masked_fill<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, mask) = (c.x(0), c.x(1));
    if !mask.elem().is_bool() {
        return Err(Refusal::new(format!("the mask of masked_fill holds bools, not {}", mask.elem())));
    }
    Ok(mask.select(c.needed(2, "value").element_of(x.elem()), x))
}

fn where_<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let mask = c.x(0);
    if !mask.elem().is_bool() && mask.elem() != Elem::U8 {
        return Err(Refusal::new(format!("the condition of where holds bools, not {}", mask.elem()))
            .help("compare it with something: `where(c != 0, a, b)`"));
    }
    let (Some(x), Some(y)) = (c.operand(1, "self")?, c.operand(2, "other")?) else {
        return Err(
            Refusal::new("where with one operand gives a shape that depends on data").help("pass both alternatives")
        );
    };
    let (x, y) = beside(x, y).with(beside(y, x));
    Ok(mask.to(Elem::BOOL).select(x, y))
}

fn clamp<'g>(c: &Call<'g>, low: Option<Tensor<'g>>, high: Option<Tensor<'g>>) -> Result<Tensor<'g>> {
    let x = c.x(0);
    let ended = |end: Option<Tensor<'g>>, low| end.map(|x_end| bound(x_end.arg, x.elem(), low)).transpose();
    let (low, high) = (ended(low, true)?.map(|a| c.cx.tensor(a)), ended(high, false)?.map(|a| c.cx.tensor(a)));
    let elem = promoted(&[x, low.unwrap_or(x), high.unwrap_or(x)]);
    let (x, low, high) = (x.to(elem), low.map(|y| y.to(elem)), high.map(|y| y.to(elem)));
    let x = low.map_or(x, |low| x.max(low));
    Ok(high.map_or(x, |high| x.min(high)))
}

/// `f` of two operands as floats, in f32 where they are narrower, rounded once.
fn of_two_floats<'g>(c: &Call<'g>, f: Two<'g>) -> Tensor<'g> {
    let (x, y) = c.needed(0, "self").with_as_floats(c.needed(1, "other"));
    f(x.wide(), y.wide()).to(x.elem())
}

/// `sqrt(x*x + y*y)`, where neither square leaves the range of its type.
fn hypot<'g>(x: Tensor<'g>, y: Tensor<'g>) -> Tensor<'g> {
    let (a, b) = (x.abs(), y.abs());
    let length = if x.elem() == Elem::F64 {
        let (most, least) = (a.max(b), a.min(b));
        let ratio = most.above(0.0).select(least / most, 0.0);
        most * (1.0 + ratio * ratio).sqrt()
    } else {
        let (a, b) = (a.to(Elem::F64), b.to(Elem::F64));
        (a * a + b * b).sqrt().to(x.elem())
    };
    // An infinity beside NaN is infinite.
    (a.equals(f64::INFINITY) | b.equals(f64::INFINITY)).select(f64::INFINITY, length)
}

/// `log(exp(x) + exp(y))`.
pub(super) fn log_add_exp<'g>(x: Tensor<'g>, y: Tensor<'g>) -> Tensor<'g> {
    let m = x.max(y);
    let sum = m + (-(x - y).abs()).exp().log1p();
    // Equal infinities have no difference.
    let size = m.abs();
    (x.equals(y) & size.equals(f64::INFINITY)).select(m, sum)
}

fn lerp<'g>(c: &Call<'g>) -> Tensor<'g> {
    let (x, y, w) = (c.x(0), c.x(1), c.needed(2, "weight"));
    let wide = x.wide_elem();
    let (narrow, x, y, w) = (x.elem(), x.to(wide), y.to(wide), w.to(wide));
    let d = y - x;
    let low = x + w * d;
    let rest = 1.0 - w;
    let high = y - d * rest;
    w.abs().below(0.5).select(low, high).to(narrow)
}

/// The first operand and a term of the others.
fn add_term<'g>(c: &Call<'g>, term: Two<'g>) -> Tensor<'g> {
    let all = [c.x(0), c.x(1), c.x(2)];
    let (elem, narrow, wide) = (promoted(&all), c.x(0).elem(), c.x(0).wide_elem());
    let [x, p, q] = all.map(|x| x.to(elem)).map(|x| x.to(wide));
    (x + term(c.scaled(p, "value"), q)).to(narrow)
}
