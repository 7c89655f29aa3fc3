//! ONNX's convolutions and products of quantized tensors: integers inside, one rounding at the end.

use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::conv::{conv, kernel_of};
use crate::graph::decompose::expr::Tensor;
use crate::graph::decompose::resize::nearest_even;
use crate::graph::decompose::window::{onnx_slides, spatial};

rules! {
    conv_integer "A convolution of integers less their zero points, in i32.\n\n\
         `y = conv_integer(x, w, zx, zw)` --> `y = conv(i32 x - zx, i32 w - zw)`" {
        "onnx.ConvInteger" => |c| integer_conv(c, centred(c.x(0), c.maybe(2), 1)?, centred(c.x(1), c.maybe(3), 0)?),
    }
    qlinear_conv "A convolution of integers, scaled and rounded once.\n\n\
         `y = qlinear_conv(..)` --> `y = saturate(round(conv(x - zx, w - zw) * (sx * sw / sy)) + zy)`" {
        "onnx.QLinearConv" => qlinear_conv,
    }
    qlinear_matmul "A product of integers, scaled and rounded once.\n\n\
         `y = qlinear_matmul(..)` --> `y = saturate(round((a - za) @ (b - zb) * (sa * sb / sy)) + zy)`" {
        "onnx.QLinearMatMul" => qlinear_matmul,
    }
}

/// `x - zero` in 16 bits, which hold the difference of any two bytes; in 32, where `x` has more bits. A zero point for each entry
/// of an axis stands along `along`.
pub(in crate::graph::decompose) fn centred<'g>(
    x: Tensor<'g>,
    zero: Option<Tensor<'g>>,
    along: usize,
) -> Result<Tensor<'g>> {
    let held = if x.elem().dtype.bits() <= 8 { Elem::I16 } else { Elem::I32 };
    let (rank, x) = (x.rank()?, x.to(held));
    Ok(match zero {
        Some(zero) => x - spread(zero.to(held), rank, along)?.into_shape_of(x),
        None => x,
    })
}

/// Returns false for a zero point that is known to be 0 everywhere.
pub(super) fn is_point(zero: Tensor<'_>) -> bool {
    zero.cx.read(|b| b.floats(zero.arg)).is_none_or(|all| all.iter().any(|n| *n != 0.0))
}

/// `(x - zero) @ (w - w_zero)` in 32 bits. The one zero point of bytes on the left is taken out of the sum, `x @ w - zero * sum w`,
/// and one of zero on the right is none: the factors stay bytes, four at a time for a processor, and the sums of weights
/// are known beforehand. Integers wrap, so it is the same.
pub(in crate::graph::decompose) fn product<'g>(
    (x, zero): Point<'g>,
    along: usize,
    (w, w_zero): Point<'g>,
    columns: usize,
) -> Result<Tensor<'g>> {
    let (zero, w_zero) = (zero.filter(|z| is_point(*z)), w_zero.filter(|z| is_point(*z)));
    let bytes = |x: Tensor<'g>| x.elem().dtype.bits() == 8;
    // Weights less their zero points have 16 bits.
    let short = bytes(w) || w.elem() == Elem::I16 && bytes(x);
    let w = if w_zero.is_none() && short { w } else { centred(w, w_zero, columns)? };
    let alone = |zero: Tensor<'g>| zero.shape().is_ok_and(|s| s.len() < 2 && s.iter().all(|n| n.is_const(1)));
    let rank = w.rank()?;
    let taken = zero.is_none_or(alone) && x.rank()? > 1 && rank > 1 && bytes(x);
    let x = if taken { x } else { centred(x, zero, along)? };
    // Both of one width.
    let wide = |x: Tensor<'g>| if bytes(x) { x.to(Elem::I16) } else { x };
    let (left, right) = if bytes(x) && bytes(w) { (x, w) } else { (wide(x), wide(w)) };
    let sum = left.matmul_in(right, Elem::I32);
    let Some(zero) = zero.filter(|_| taken) else { return Ok(sum) };
    let (w, zero) = (w.to(Elem::I32), zero.to(Elem::I32));
    let zero = spread(zero, 0, 0)?;
    let less = w.sum(&[rank - 2], true) * zero;
    Ok(sum - less.broadcast_to(&sum.shape()?))
}

/// A tensor of integers and its zero point.
pub(in crate::graph::decompose) type Point<'g> = (Tensor<'g>, Option<Tensor<'g>>);

/// A scalar, or a vector along one axis of a tensor of that rank.
fn spread(v: Tensor<'_>, rank: usize, along: usize) -> Result<Tensor<'_>> {
    Ok(match &v.shape()?[..] {
        [one] if one.is_const(1) => v.squeeze(&[0]),
        [_] => v.unsqueeze(&(0..rank).filter(|d| *d != along).collect::<Vec<_>>()),
        _ => v,
    })
}

/// `sum * scale + zero`, rounded to even and saturated to the type of `zero` (else `elem`).
fn requantize<'g>(sum: Tensor<'g>, scale: Tensor<'g>, zero: Option<Tensor<'g>>, elem: Elem) -> Result<Tensor<'g>> {
    let elem = zero.map_or(elem, Tensor::elem);
    let mut y = sum.to(Elem::F64) * scale.to(Elem::F64).into_shape_of(sum);
    if let Some(zero) = zero {
        y = y + spread(zero.to(Elem::F64), 0, 0)?.into_shape_of(y);
    }
    Ok(nearest_even(y).to(elem))
}

fn integer_conv<'g>(c: &Call<'g>, x: Tensor<'g>, w: Tensor<'g>) -> Result<Tensor<'g>> {
    let groups = c.int("group", 1)?;
    Ok(c.cx.made(&[x, w], |b| {
        let sizes = kernel_of(b, c, w.arg)?;
        let slides = onnx_slides(b, c, &spatial(b, x.arg)?, &sizes)?;
        conv(b, x.arg, w.arg, &slides, groups, Elem::I32)
    }))
}

/// `(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias?)`
fn qlinear_conv<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let x = centred(c.x(0), c.maybe(2), 1)?;
    let w = centred(c.x(3), c.maybe(5), 0)?;
    let mut sum = integer_conv(c, x, w)?;
    let rank = sum.rank()?;
    if let Some(bias) = c.maybe(8) {
        sum = sum + spread(bias.to(Elem::I32), rank, 1)?.into_shape_of(sum);
    }
    let scale = |i| spread(c.x(i), rank, 1);
    let (sx, sw, sy) = (scale(1)?, scale(4)?, scale(6)?);
    requantize(sum, sx * sw / sy, c.maybe(7), c.x(0).elem())
}

/// `(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)`
fn qlinear_matmul<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (ra, rb) = (c.x(0).rank()?, c.x(3).rank()?);
    if ra < 1 || rb < 1 {
        return Err(Refusal::new("QLinearMatMul needs matrices"));
    }
    let rank = ra.max(rb);
    let sum = product((c.x(0), c.maybe(2)), ra.saturating_sub(2), (c.x(3), c.maybe(5)), rb - 1)?;
    // A scale for each row of the first, or each column of the second.
    let sa = spread(c.x(1), rank, rank.saturating_sub(2))?;
    let (sb, sy) = (spread(c.x(4), rank, rank - 1)?, spread(c.x(6), rank, rank - 1)?);
    requantize(sum, sa * sb / sy, c.maybe(7), c.x(0).elem())
}
