//! ONNX operators that change the element type.

use super::dtype::elem;
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::types::saturated;
use crate::graph::decompose::{Call, old};
use crate::graph::ir::Arg;
use crate::num::op::{Predicate, Rounding};
use crate::num::{DType, ScalarOp};

rules! {
    onnx_cast "Another element type: floats round to nearest even. Floats to integers are truncated in 32 or 64 bits, and narrower \
         integers take the last bits: -1 is 255 in eight bits; infinity and NaN are the least integer. 8-bit floats stay within \
         their range unless `saturate = 0`.\n\n`y = Cast(x)` --> `y = to x`" {
        "onnx.Cast" | "onnx.CastLike" => old(cast_call),
    }
    onnx_bit_cast "The same bits as another type of the same width.\n\n`y = BitCast(x)` --> `y = bitcast x`" {
        "onnx.BitCast" => old(bit_cast),
    }
    onnx_strings "The numbers that stand for strings in a graph, and the strings that numbers stand for.\n\n`y = girih.numbers(x)` --> `y = to x`" {
        "girih.numbers" => |c| c.x(0).to(Elem::I64),
        "girih.strings" => |c| c.x(0).to(Elem::STRING),
    }
}

/// The element type with a number of ONNX's (TensorProto.DataType).
pub(in crate::graph::decompose) fn elem_of(number: i64) -> Result<Elem> {
    let elem = elem(number).map_err(|name| Refusal::new(format!("the element type {name} is not supported")))?;
    if elem.text { Err(Refusal::new("it makes strings, which is not supported")) } else { Ok(elem) }
}

/// `x` in another element type, by ONNX's rules.
pub(super) fn cast(b: &mut Builder<'_>, x: Arg, to: Elem, saturate: bool, rounding: Rounding) -> Result<Arg> {
    let from = b.elem(x);
    if from == to {
        return Ok(x);
    }
    let narrow = |d: DType| d.is_float() && !d.is_base_float();
    let mut x = x;
    if narrow(from.dtype) || (narrow(to.dtype) && !from.is_float()) {
        x = b.convert(x, Elem::F32)?;
    }
    // A number that 2 or 4 bits cannot hold wraps, and a format without NaN takes 0 for it.
    if b.elem(x).is_float() && to.is_int() && to.bits() < 8 {
        x = b.truncated(x, Elem::I32)?;
    }
    if to.dtype == DType::F4E2M1FN {
        let nan = b.compare(Predicate::NotEqual, x, x)?;
        let zero = b.scalar_like(x, 0.0);
        x = b.select(nan, zero, x)?;
    }
    if saturate {
        x = saturated(b, x, to.dtype)?;
    }
    if to.dtype == DType::F8E8M0FNU {
        return b.elementwise_to(ScalarOp::FToF { to: to.dtype, rounding }, &[x], to);
    }
    let wraps = b.elem(x).is_float() && to.is_int() && !to.is_bool();
    if wraps && b.fit_floats(x) {
        return b.convert(x, to);
    }
    if wraps { b.truncated(x, to) } else { b.convert(x, to) }
}

fn cast_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let to = if call.name == "onnx.CastLike" { b.elem(call.arg(1)?) } else { elem_of(call.int("to", 0)?)? };
    let rounding = match call.text("round_mode")?.unwrap_or("up") {
        "up" => Rounding::PositiveInf,
        "down" => Rounding::Zero,
        "nearest" => Rounding::NearestEven,
        other => return Err(Refusal::new(format!("unknown rounding `{other}`"))),
    };
    Ok(vec![cast(b, x, to, call.flag("saturate", true)?, rounding)?])
}

fn bit_cast(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (from, to) = (b.elem(x), elem_of(call.int("to", 0)?)?);
    if to.is_bool() {
        return Err(
            Refusal::new("the bits of a bool are those of an integer that may be neither 0 nor 1").help("cast to bool")
        );
    }
    if from.two_bits && to.two_bits {
        return Ok(vec![b.convert(x, to)?]);
    }
    // A bool is a byte, 0 or 1.
    let (x, from) = if from.is_bool() { (b.convert(x, Elem::U8)?, Elem::U8) } else { (x, from) };
    if from.bits() != to.bits() {
        return Err(Refusal::new(format!("{from} and {to} have different widths")));
    }
    Ok(vec![b.elementwise_to(ScalarOp::Bitcast { to: to.dtype }, &[x], to)?])
}
