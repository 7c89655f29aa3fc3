//! ONNX's steps between numbers and their quantized form: `q = round(x / scale) + zero`.
//!
//! A scale stands for a whole tensor, for each entry of an axis, or for each block of an axis.

use super::elementwise::torch;
use super::types::{cast, elem_of};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, Decomposition, normal_axis};
use crate::graph::ir::{self, Arg, ReduceOp};
use crate::index::Ix;
use crate::num::op::{Predicate, Rounding};

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_quantize",
        handles: &["onnx.QuantizeLinear"],
        doc: "Ties round to even; integers saturate.\n\n`q = QuantizeLinear(x, s, z)` --> `q = to (round(x / s) + z)`",
        run: quantize,
    },
    Decomposition {
        name: "onnx_dequantize",
        handles: &["onnx.DequantizeLinear"],
        doc: "`x = DequantizeLinear(q, s, z)` --> `x = (q - z) * s`",
        run: dequantize,
    },
    Decomposition {
        name: "onnx_dynamic_quantize",
        handles: &["onnx.DynamicQuantizeLinear"],
        doc: "To u8 by the range of the tensor, which is made to hold 0.\n\n\
              `q, s, z = DynamicQuantizeLinear(x)` --> `s = (max x - min x) / 255`, `z = round(-min x / s)`, \
              `q = round(x / s) + z`",
        run: |b, call| {
            let (q, scale, point) = dynamic(b, call.arg(0)?)?;
            Ok(vec![q, scale, point])
        },
    },
];

/// A scale or zero point as it stands over `x`.
fn spread(b: &mut Builder<'_>, call: &Call<'_>, x: Arg, by: Arg) -> Result<Arg> {
    let (shape, of) = (b.shape(x), b.shape(by));
    let rank = shape.len();
    if b.numel(&of).is_const(1) && of.len() <= 1 {
        return if of.is_empty() { Ok(by) } else { b.squeeze(by, &[0]) };
    }
    let axis = normal_axis(call.int("axis", 1)?, rank)?;
    let block = call.int("block_size", 0)?;
    if block > 0 && of.len() == rank {
        let coords = (0..rank)
            .map(|d| match d == axis {
                true => Ix::floor_div(ir::axis(d), Ix::Const(block)),
                false => ir::axis(d),
            })
            .collect();
        let blocks = b.simplify(&Ix::ceil_div(shape[axis].clone(), Ix::Const(block)));
        let fits = (0..rank).all(|d| b.same(&of[d], if d == axis { &blocks } else { &shape[d] }));
        if fits {
            return Ok(b.map("scale", by, shape, coords));
        }
    } else if of.len() == 1 && b.same(&of[0], &shape[axis]) {
        let around: Vec<usize> = (0..rank).filter(|d| *d != axis).collect();
        return b.unsqueeze(by, &around);
    }
    let (of, shape) = (b.shape_text(&of), b.shape_text(&shape));
    Err(Refusal::new(format!("a scale or zero point of shape {of} does not fit a tensor of shape {shape}")))
}

/// f32 for anything narrower, and for integers.
fn computed(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    let to = if b.elem(x) == Elem::F64 { Elem::F64 } else { Elem::F32 };
    b.convert(x, to)
}

fn quantize(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, scale) = (call.arg(0)?, call.arg(1)?);
    let to = match (call.opt(2), call.int("output_dtype", 0)?) {
        (Some(zero), _) => b.elem(zero),
        (None, 0) => Elem::U8,
        (None, number) => elem_of(number)?,
    };
    let scale = spread(b, call, x, scale)?;
    let (x, scale) = (computed(b, x)?, computed(b, scale)?);
    let x = b.convert(x, b.elem(scale))?;
    let mut y = b.div(x, scale)?;
    if !to.is_float() {
        y = torch(b, "aten.round", &[y], &[])?;
    }
    if let Some(zero) = call.opt(2) {
        let zero = spread(b, call, x, zero)?;
        let zero = b.convert(zero, b.elem(y))?;
        y = b.add(y, zero)?;
    }
    if let Some((low, high)) = to.bounds() {
        // NaN is the least integer.
        if low < 0 || to.bits() < 8 {
            y = b.max_number(y, b.scalar_like(y, low as f64))?;
        }
        if to.bits() < 8 {
            y = b.min(y, b.scalar_like(y, high as f64))?;
        }
    }
    // What the type cannot hold is its nearest number.
    if to.is_int() && to.bits() >= 8 {
        return Ok(vec![b.convert(y, to)?]);
    }
    Ok(vec![cast(b, y, to, call.flag("saturate", true)?, Rounding::NearestEven)?])
}

fn dequantize(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, scale) = (call.arg(0)?, call.arg(1)?);
    let to = match call.int("output_dtype", 0)? {
        0 => b.elem(scale),
        number => elem_of(number)?,
    };
    let scale = spread(b, call, x, scale)?;
    let scale = computed(b, scale)?;
    let wide = if b.elem(x).is_float() { b.elem(scale) } else { Elem::I32 };
    let mut y = b.convert(x, wide)?;
    if let Some(zero) = call.opt(2) {
        let zero = spread(b, call, x, zero)?;
        let zero = b.convert(zero, wide)?;
        y = b.sub(y, zero)?;
    }
    let y = b.convert(y, b.elem(scale))?;
    let y = b.mul(y, scale)?;
    Ok(vec![b.convert(y, to)?])
}

/// `x` in 8 bits by its least and greatest elements: the integers, their scale and their zero point.
pub(in crate::graph::decompose) fn dynamic(b: &mut Builder<'_>, x: Arg) -> Result<(Arg, Arg, Arg)> {
    let all: Vec<usize> = (0..b.rank(x)).collect();
    let zero = b.scalar_like(x, 0.0);
    let high = b.reduce(ReduceOp::Max, x, &all, false)?;
    let high = b.max(high, zero)?;
    let low = b.reduce(ReduceOp::Min, x, &all, false)?;
    let low = b.min(low, zero)?;
    let range = b.sub(high, low)?;
    let scale = b.div(range, b.scalar_like(x, 255.0))?;
    // Zeros alone are zeros by any scale; ONNX Runtime takes 1.
    let flat = b.compare(Predicate::Equal, scale, zero)?;
    let scale = b.select(flat, b.scalar_like(x, 1.0), scale)?;
    let point = b.neg(low)?;
    let point = b.div(point, scale)?;
    let point = torch(b, "aten.round", &[point], &[])?;
    // An infinite scale makes it NaN, which counts as 255.
    let point = b.min_number(point, b.scalar_like(x, 255.0))?;
    let q = b.div(x, scale)?;
    let q = torch(b, "aten.round", &[q], &[])?;
    let q = b.add(q, point)?;
    Ok((b.convert(q, Elem::U8)?, scale, b.convert(point, Elem::U8)?))
}
