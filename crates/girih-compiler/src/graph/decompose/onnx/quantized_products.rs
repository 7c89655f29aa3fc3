//! ONNX's convolutions and products of quantized tensors: integers inside, one rounding at the end.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::conv::{conv, kernel_of};
use crate::graph::decompose::resize::round_even;
use crate::graph::decompose::window::{onnx_slides, spatial};
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{Arg, ReduceOp};

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "conv_integer",
        handles: &["onnx.ConvInteger"],
        doc: "A convolution of integers less their zero points, in i32.\n\n\
              `y = conv_integer(x, w, zx, zw)` --> `y = conv(i32 x - zx, i32 w - zw)`",
        run: conv_integer,
    },
    Decomposition {
        name: "qlinear_conv",
        handles: &["onnx.QLinearConv"],
        doc: "A convolution of integers, scaled and rounded once.\n\n\
              `y = qlinear_conv(..)` --> `y = saturate(round(conv(x - zx, w - zw) * (sx * sw / sy)) + zy)`",
        run: qlinear_conv,
    },
    Decomposition {
        name: "qlinear_matmul",
        handles: &["onnx.QLinearMatMul"],
        doc: "A product of integers, scaled and rounded once.\n\n\
              `y = qlinear_matmul(..)` --> `y = saturate(round((a - za) @ (b - zb) * (sa * sb / sy)) + zy)`",
        run: qlinear_matmul,
    },
];

/// `x - zero` in 16 bits, which hold the difference of any two bytes; in 32, where `x` has more bits. A zero point for each entry
/// of an axis stands along `along`.
pub(in crate::graph::decompose) fn centred(
    b: &mut Builder<'_>,
    x: Arg,
    zero: Option<Arg>,
    along: usize,
) -> Result<Arg> {
    let rank = b.rank(x);
    let held = if b.elem(x).dtype.bits() <= 8 { Elem::I16 } else { Elem::I32 };
    let x = b.convert(x, held)?;
    let Some(zero) = zero else { return Ok(x) };
    let zero = b.convert(zero, held)?;
    let zero = spread(b, zero, rank, along)?;
    b.sub(x, zero)
}

/// Whether a zero point is any, as far as is known: not where all of it is 0.
pub(super) fn is_point(b: &Builder<'_>, zero: Arg) -> bool {
    b.floats(zero).is_none_or(|all| all.iter().any(|n| *n != 0.0))
}

/// `(x - zero) @ (w - w_zero)` in 32 bits. The one zero point of bytes on the left is taken out of the sum, `x @ w - zero * sum w`,
/// and one of zero on the right is none: what is multiplied stays bytes, of which processors take four at a time, and of weights the
/// sums are known beforehand. Integers wrap, so it is the same.
pub(super) fn product(
    b: &mut Builder<'_>,
    (x, zero): Point,
    along: usize,
    (w, w_zero): Point,
    columns: usize,
) -> Result<Arg> {
    let (zero, w_zero) = (zero.filter(|z| is_point(b, *z)), w_zero.filter(|z| is_point(b, *z)));
    let bytes = |b: &Builder<'_>, x: Arg| b.elem(x).dtype.bits() == 8;
    let w = if w_zero.is_none() && bytes(b, w) { w } else { centred(b, w, w_zero, columns)? };
    let alone = |zero: Arg| b.shape(zero).iter().all(|n| n.is_const(1)) && b.rank(zero) < 2;
    let rank = b.rank(w);
    let taken = zero.is_none_or(alone) && b.rank(x) > 1 && rank > 1 && bytes(b, x);
    let x = if taken { x } else { centred(b, x, zero, along)? };
    // Both of one width.
    let wide = |b: &mut Builder<'_>, x: Arg| if bytes(b, x) { b.convert(x, Elem::I16) } else { Ok(x) };
    let (left, right) = if bytes(b, x) && bytes(b, w) { (x, w) } else { (wide(b, x)?, wide(b, w)?) };
    let sum = b.matmul_in(left, right, Elem::I32)?;
    let Some(zero) = zero.filter(|_| taken) else { return Ok(sum) };
    let (w, zero) = (b.convert(w, Elem::I32)?, b.convert(zero, Elem::I32)?);
    let zero = spread(b, zero, 0, 0)?;
    let columns = b.reduce(ReduceOp::Sum, w, &[rank - 2], true)?;
    let less = b.mul(columns, zero)?;
    let shape = b.shape(sum);
    let less = b.broadcast_to(less, &shape)?;
    b.sub(sum, less)
}

/// A tensor of integers and its zero point.
pub(super) type Point = (Arg, Option<Arg>);

/// A scalar, or a vector along one axis of a tensor of that rank.
fn spread(b: &mut Builder<'_>, v: Arg, rank: usize, along: usize) -> Result<Arg> {
    match b.rank(v) {
        0 => Ok(v),
        1 if b.shape(v)[0].is_const(1) => b.squeeze(v, &[0]),
        1 => {
            let axes: Vec<usize> = (0..rank).filter(|d| *d != along).collect();
            b.unsqueeze(v, &axes)
        }
        _ => Ok(v),
    }
}

/// `sum * scale + zero`, rounded to even and saturated to the type of `zero` (else `elem`).
fn requantize(b: &mut Builder<'_>, sum: Arg, scale: Arg, zero: Option<Arg>, elem: Elem) -> Result<Arg> {
    let elem = zero.map_or(elem, |z| b.elem(z));
    let sum = b.convert(sum, Elem::F64)?;
    let scale = b.convert(scale, Elem::F64)?;
    let mut y = b.mul(sum, scale)?;
    if let Some(zero) = zero {
        let zero = b.convert(zero, Elem::F64)?;
        let zero = spread(b, zero, 0, 0)?;
        y = b.add(y, zero)?;
    }
    let y = round_even(b, y)?;
    b.convert(y, elem)
}

fn integer_conv(b: &mut Builder<'_>, call: &Call<'_>, x: Arg, w: Arg) -> Result<Arg> {
    let sizes = kernel_of(b, call, w)?;
    let slides = onnx_slides(b, call, &spatial(b, x)?, &sizes)?;
    conv(b, x, w, &slides, call.int("group", 1)?, Elem::I32)
}

/// `(x, w, x_zero?, w_zero?)`
fn conv_integer(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = centred(b, call.arg(0)?, call.opt(2), 1)?;
    let w = centred(b, call.arg(1)?, call.opt(3), 0)?;
    Ok(vec![integer_conv(b, call, x, w)?])
}

/// `(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias?)`
fn qlinear_conv(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let elem = b.elem(call.arg(0)?);
    let x = centred(b, call.arg(0)?, call.opt(2), 1)?;
    let w = centred(b, call.arg(3)?, call.opt(5), 0)?;
    let mut sum = integer_conv(b, call, x, w)?;
    let rank = b.rank(sum);
    if let Some(bias) = call.opt(8) {
        let bias = b.convert(bias, Elem::I32)?;
        let bias = spread(b, bias, rank, 1)?;
        sum = b.add(sum, bias)?;
    }
    let (sx, sw, sy) = (call.arg(1)?, call.arg(4)?, call.arg(6)?);
    let (sx, sw, sy) = (spread(b, sx, rank, 1)?, spread(b, sw, rank, 1)?, spread(b, sy, rank, 1)?);
    let scale = b.mul(sx, sw)?;
    let scale = b.div(scale, sy)?;
    Ok(vec![requantize(b, sum, scale, call.opt(7), elem)?])
}

/// `(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)`
fn qlinear_matmul(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let elem = b.elem(call.arg(0)?);
    let (ra, rb) = (b.rank(call.arg(0)?), b.rank(call.arg(3)?));
    if ra < 1 || rb < 1 {
        return Err(Refusal::new("QLinearMatMul needs matrices"));
    }
    let rank = ra.max(rb);
    let (x, w) = ((call.arg(0)?, call.opt(2)), (call.arg(3)?, call.opt(5)));
    let sum = product(b, x, ra.saturating_sub(2), w, rb - 1)?;
    // A scale for each row of the first, or each column of the second.
    let (sa, sb, sy) = (call.arg(1)?, call.arg(4)?, call.arg(6)?);
    let sa = spread(b, sa, rank, rank.saturating_sub(2))?;
    let (sb, sy) = (spread(b, sb, rank, rank - 1)?, spread(b, sy, rank, rank - 1)?);
    let scale = b.mul(sa, sb)?;
    let scale = b.div(scale, sy)?;
    Ok(vec![requantize(b, sum, scale, call.opt(7), elem)?])
}
