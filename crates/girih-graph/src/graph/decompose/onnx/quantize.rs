//! ONNX's steps between numbers and their quantized form: `q = round(x / scale) + zero`.
//!
//! A scale stands for a whole tensor, for each entry of an axis, or for each block of an axis.

use super::types::{cast, elem_of};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::expr::{Tensor, all};
use crate::graph::decompose::{Call, normal_axis};
use crate::graph::ir::{self, ReduceOp};
use crate::index::Ix;
use crate::num::op::Rounding;

rules! {
    onnx_quantize "Ties round to even; integers saturate.\n\n`q = QuantizeLinear(x, s, z)` --> `q = to (round(x / s) + z)`" {
        "onnx.QuantizeLinear" => quantize,
    }
    onnx_dequantize "`x = DequantizeLinear(q, s, z)` --> `x = (q - z) * s`" {
        "onnx.DequantizeLinear" => dequantize,
    }
    onnx_dynamic_quantize "Quantises to u8 by the range of the tensor, which is widened to hold 0.\n\n\
         `q, s, z = DynamicQuantizeLinear(x)` --> `s = (max x - min x) / 255`, `z = round(-min x / s)`, \
         `q = round(x / s) + z`" {
        "onnx.DynamicQuantizeLinear" => |c| dynamic(c.x(0)),
    }
}

/// A scale or zero point as it stands over `x`.
fn spread<'g>(c: &Call<'g>, x: Tensor<'g>, by: Tensor<'g>) -> Result<Tensor<'g>> {
    let (cx, shape, of) = (c.cx, x.shape()?, by.shape()?);
    let rank = shape.len();
    if cx.numel(&of).is_const(1) && of.len() <= 1 {
        return Ok(if of.is_empty() { by } else { by.squeeze(&[0]) });
    }
    let axis = normal_axis(c.int("axis", 1)?, rank)?;
    let block = c.int("block_size", 0)?;
    if block > 0 && of.len() == rank {
        let mut coords: Vec<Ix> = (0..rank).map(ir::axis).collect();
        coords[axis] = Ix::floor_div(ir::axis(axis), Ix::Const(block));
        let blocks = cx.simplify(&Ix::ceil_div(shape[axis].clone(), Ix::Const(block)));
        if (0..rank).all(|d| cx.same(&of[d], if d == axis { &blocks } else { &shape[d] })) {
            return Ok(by.map("scale", shape, coords));
        }
    } else if of.len() == 1 && cx.same(&of[0], &shape[axis]) {
        return Ok(by.unsqueeze(&(0..rank).filter(|d| *d != axis).collect::<Vec<_>>()));
    }
    let (of, shape) = (by.shape_text(), x.shape_text());
    Err(Refusal::new(format!("a scale or zero point of shape {of} does not fit a tensor of shape {shape}")))
}

/// f32 for anything narrower, and for integers.
fn computed(x: Tensor<'_>) -> Tensor<'_> {
    x.to(if x.elem() == Elem::F64 { Elem::F64 } else { Elem::F32 })
}

/// The nearest integer, ties to even, in a float.
fn rounded(x: Tensor<'_>) -> Tensor<'_> {
    if x.elem().is_float() { x.round_even() } else { x }
}

fn quantize<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let to = match (c.maybe(2), c.int("output_dtype", 0)?) {
        (Some(zero), _) => zero.elem(),
        (None, 0) => Elem::U8,
        (None, number) => elem_of(number)?,
    };
    let scale = spread(c, c.x(0), c.x(1))?;
    let (x, scale) = (computed(c.x(0)), computed(scale));
    let x = x.to(scale.elem());
    let mut y = x / scale;
    if !to.is_float() {
        y = rounded(y);
    }
    if let Some(zero) = c.maybe(2) {
        y = y + spread(c, x, zero)?.to(y.elem());
    }
    if let Some((low, high)) = to.bounds() {
        // NaN is the least integer.
        y = if low < 0 || to.bits() < 8 { y.max_number(low as f64) } else { y };
        y = if to.bits() < 8 { y.min(high as f64) } else { y };
    }
    // A number that the type cannot hold becomes its nearest one.
    if to.is_int() && to.bits() >= 8 {
        return Ok(y.to(to));
    }
    let saturate = c.flag("saturate", true)?;
    Ok(c.cx.made(&[y], |b| cast(b, y.arg, to, saturate, Rounding::NearestEven)))
}

fn dequantize<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, scale) = (c.x(0), c.x(1));
    let to = match c.int("output_dtype", 0)? {
        0 => scale.elem(),
        number => elem_of(number)?,
    };
    let scale = computed(spread(c, x, scale)?);
    let wide = if x.elem().is_float() { scale.elem() } else { Elem::I32 };
    let mut y = x.to(wide);
    if let Some(zero) = c.maybe(2) {
        y = y - spread(c, x, zero)?.to(wide);
    }
    Ok((y.to(scale.elem()) * scale).to(to))
}

/// `x` in 8 bits by its least and greatest elements: the integers, their scale and their zero point.
pub(in crate::graph::decompose) fn dynamic(x: Tensor<'_>) -> Result<[Tensor<'_>; 3]> {
    let all = all(x.rank()?);
    let high = x.greatest(&all, false).max(0.0);
    let low = x.reduce(ReduceOp::Min, &all, false).min(0.0);
    let scale = (high - low) / 255.0;
    // Zeros alone are zeros by any scale; ONNX Runtime takes 1.
    let scale = scale.equals(0.0).select(1.0, scale);
    // An infinite scale makes it NaN, which counts as 255.
    let point = rounded(-low / scale).min_number(255.0);
    let q = rounded(x / scale) + point;
    Ok([q.to(Elem::U8), scale, point.to(Elem::U8)])
}
