//! Functions of each element. f16 and bf16 are computed in f32 and rounded once; integers become f32 where the function
//! gives no integers.

use std::f64::consts::{LN_2, LOG10_E, PI};

use super::Call;
use super::arithmetic::trunc;
use super::expr::Tensor;
use super::special;
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::num::op::Predicate;

rules! {
    function "Transcendental functions: one operation, or a short formula over them.\n\n\
         `y = log1p(x)` --> `u = 1 + x`, `y = select(u == 1, x, log(u) * x / (u - 1))`\n\n\
         `y = asin(x)` --> `y = atan2(x, sqrt((1 - x)*(1 + x)))`" {
        "aten.exp" => |c| c.x(0).widened(Tensor::exp),
        "aten.exp2" => |c| c.x(0).widened(Tensor::exp2),
        "aten.expm1" => |c| c.x(0).widened(Tensor::expm1),
        "aten.log" => |c| c.x(0).widened(Tensor::log),
        "aten.log2" => |c| c.x(0).widened(Tensor::log2),
        "aten.log10" => |c| c.x(0).widened(|x| x.log() * LOG10_E),
        "aten.log1p" => |c| c.x(0).widened(Tensor::log1p),
        "aten.sqrt" => |c| c.x(0).widened(Tensor::sqrt),
        "aten.rsqrt" => |c| c.x(0).widened(Tensor::rsqrt),
        "aten.reciprocal" => |c| c.x(0).widened(|x| 1.0 / x),
        "aten.sin" => |c| c.x(0).widened(Tensor::sin),
        "aten.cos" => |c| c.x(0).widened(Tensor::cos),
        "aten.tan" => |c| c.x(0).widened(Tensor::tan),
        "aten.sinh" => |c| c.x(0).widened(Tensor::sinh),
        "aten.cosh" => |c| c.x(0).widened(Tensor::cosh),
        "aten.tanh" => |c| c.x(0).widened(Tensor::tanh),
        "aten.asin" => |c| c.x(0).widened(|x| x.atan2(((1.0 - x) * (x.like(1.0) + x)).sqrt())),
        "aten.acos" => |c| c.x(0).widened(|x| ((1.0 - x) * (x.like(1.0) + x)).sqrt().atan2(x)),
        "aten.atan" => |c| c.x(0).widened(|x| x.atan2(1.0)),
        "aten.asinh" => |c| c.x(0).widened(asinh),
        // log1p(t + sqrt(t*(t + 2))) with t = x - 1
        "aten.acosh" => |c| c.x(0).widened(|x| {
            let (t, s) = (x - 1.0, x + 1.0);
            (t + t.sqrt() * s.sqrt()).log1p()
        }),
        "aten.atanh" => |c| c.x(0).widened(|x| {
            let size = x.abs();
            let rest = 1.0 - size;
            with_sign(((size + size) / rest).log1p() * 0.5, x)
        }),
        "aten.erf" => |c| c.x(0).widened(Tensor::erf),
        "aten.erfc" => |c| special::erfc(c.x(0)),
        "aten.logit" => |c| c.x(0).widened(|x| logit(x, c.number_or("eps", -1.0, x.elem()))),
        "aten.sinc" => |c| c.x(0).widened(|x| {
            let p = x * PI;
            let y = p.sin() / p;
            x.equals(0.0).select(1.0, y)
        }),
        "aten.deg2rad" => |c| c.x(0).widened(|x| x * (PI / 180.0)),
        "aten.rad2deg" => |c| c.x(0).widened(|x| x * (180.0 / PI)),
        "aten.angle" => |c| c.x(0).widened(|x| {
            let angle = x.below(0.0).select(x.like(PI), 0.0);
            x.is_nan().select(x, angle)
        }),
    }
    rounding "`y = trunc(x)` --> `y = select(x < 0, ceil(x), floor(x))`; integers stay as they are" {
        "aten.floor" => |c| of_floats(c.x(0), Tensor::floor),
        "aten.ceil" => |c| of_floats(c.x(0), Tensor::ceil),
        "aten.round" => round,
        "aten.trunc" | "aten.fix" => |c| of_floats(c.x(0), trunc),
        "aten.frac" => |c| of_floats(c.x(0), |x| x - trunc(x)),
    }
    sign "`y = sign(x)` --> `y = select(x > 0, 1, select(x < 0, -1, 0))`" {
        "aten.neg" | "aten.negative" => |c| -c.x(0),
        "aten.abs" | "aten.absolute" => |c| c.x(0).abs(),
        "aten.sign" | "aten.sgn" => |c| sign(c.x(0)),
        "aten.square" => |c| c.x(0) * c.x(0),
        "aten.positive" => |c| c.x(0),
    }
    classify "`y = isnan(x)` --> `y = cmp ne x, x`" {
        // Integers are finite, and have no sign of a zero.
        "aten.isnan" => |c| c.x(0).is_nan(),
        "aten.isinf" => |c| classified(c.x(0), Predicate::NotEqual, |x| x.abs().equals(f64::INFINITY)),
        "aten.isfinite" => |c| classified(c.x(0), Predicate::Equal, |x| x.abs().below(f64::INFINITY)),
        "aten.isposinf" => |c| classified(c.x(0), Predicate::NotEqual, |x| x.equals(f64::INFINITY)),
        "aten.isneginf" => |c| classified(c.x(0), Predicate::NotEqual, |x| x.equals(f64::NEG_INFINITY)),
        "aten.signbit" => |c| if c.x(0).elem().is_float() { signbit(c.x(0)) } else { c.x(0).below(0.0) },
    }
    nan_to_num "`y = nan_to_num(x)` --> `y = select(x != x, nan, select(x == inf, posinf, select(x == -inf, neginf, x)))`" {
        "aten.nan_to_num" => |c| of_floats(c.x(0), |x| nan_to_num(c, x)),
    }
    cast "Another element type. Floats to integers truncate; if the type cannot hold the number, the result has its last \
         bits, as in PyTorch's code for CPUs: -2.18 is 254 as u8. Numbers beyond f8E4M3FN are its greatest: 448.\n\n`y = to(x, f16)` --> `y = ftof x`" {
        // Another tensor's type is taken too (`Tensor.to(other)`).
        "aten.to" | "aten._to_copy" | "prims.convert_element_type" => |c| {
            let to = c.elem("dtype")?.or(c.maybe(1).map(Tensor::elem));
            Ok::<_, Refusal>(to.map_or(c.x(0), |to| c.x(0).cast(to)))
        },
        "aten.type_as" => |c| c.x(0).cast(c.x(1).elem()),
        "aten.float" => |c| c.x(0).cast(Elem::F32),
        "aten.half" => |c| c.x(0).cast(Elem::F16),
        "aten.bfloat16" => |c| c.x(0).cast(Elem::BF16),
        "aten.double" => |c| c.x(0).cast(Elem::F64),
        "aten.int" => |c| c.x(0).cast(Elem::I32),
        "aten.long" => |c| c.x(0).cast(Elem::I64),
        "aten.bool" => |c| c.x(0).cast(Elem::BOOL),
    }
}

/// `log1p(a + a*a / (1 + sqrt(a*a + 1)))` of the size; `log(a) + log 2` where the square overflows.
fn asinh(x: Tensor<'_>) -> Tensor<'_> {
    let size = x.abs();
    let square = size * size;
    let near = (size + square / ((square + 1.0).sqrt() + 1.0)).log1p();
    let far = size.log() + LN_2;
    with_sign(size.above(1e15).select(far, near), x)
}

/// A value that is not negative, with the sign of `x`; `x` itself where it is 0.
fn with_sign<'g>(y: Tensor<'g>, x: Tensor<'g>) -> Tensor<'g> {
    let (low, none) = (x.below(0.0), x.equals(0.0));
    none.select(x, low.select(-y, y))
}

fn logit<'g>(x: Tensor<'g>, eps: Tensor<'g>) -> Tensor<'g> {
    let x = if eps.known().is_some_and(|eps| eps < 0.0) {
        x
    } else {
        // The lower bound counts first where eps is above a half, as in PyTorch.
        let high = 1.0 - eps;
        let inside = x.above(high).select(high, x);
        let inside = x.below(eps).select(eps, inside);
        eps.below(0.0).select(x, inside)
    };
    (x / (1.0 - x)).log()
}

/// `f` of floats; integers stay as they are.
fn of_floats<'g>(x: Tensor<'g>, f: impl FnOnce(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
    if x.elem().is_float() { f(x) } else { x }
}

fn round<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    if !c.x(0).elem().is_float() {
        return Ok(c.x(0));
    }
    let decimals = c.int("decimals", 0)?;
    let ten = 10f64.powi(decimals.unsigned_abs().min(300) as i32);
    Ok(match decimals {
        0 => c.x(0).round_even(),
        1.. => c.x(0).widened(|x| (x * ten).round_even() / ten),
        _ => c.x(0).widened(|x| (x / ten).round_even() * ten),
    })
}

fn sign(x: Tensor<'_>) -> Tensor<'_> {
    let elem = x.elem();
    if elem.is_bool() {
        return x;
    }
    let (above, below) = (x.above(0.0), x.below(0.0));
    let low = below.select(x.like(if elem.unsigned { 0.0 } else { -1.0 }), 0.0);
    above.select(1.0, low)
}

/// `f` of floats. An integer's answer is the same for all: how it compares with itself.
fn classified<'g>(x: Tensor<'g>, integers: Predicate, f: impl FnOnce(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
    if x.elem().is_float() { f(x) } else { x.compare(integers, x) }
}

/// True for negative floats: the sign of a zero shows in its reciprocal.
pub(super) fn signbit(x: Tensor<'_>) -> Tensor<'_> {
    let inverse = 1.0 / x;
    x.below(0.0) | inverse.below(0.0)
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

fn nan_to_num<'g>(c: &Call<'g>, x: Tensor<'g>) -> Tensor<'g> {
    let (elem, max) = (x.elem(), largest(x.elem()));
    let nan = c.number_or("nan", 0.0, elem);
    let (high, low) = (c.number_or("posinf", max, elem), c.number_or("neginf", -max, elem));
    let y = x.equals(f64::NEG_INFINITY).select(low, x);
    let y = x.equals(f64::INFINITY).select(high, y);
    x.is_nan().select(nan, y)
}
