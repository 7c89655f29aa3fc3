//! ONNX operators that change the element type, and the numbers ONNX gives to element types.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::Arg;
use crate::num::op::{Predicate, Rounding};
use crate::num::{DType, ScalarOp};

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_cast",
        handles: &["onnx.Cast", "onnx.CastLike"],
        doc: "Another element type: floats round to nearest even and are truncated to integers, 8-bit floats stay within \
              their range unless `saturate = 0`.\n\n`y = Cast(x)` --> `y = to x`",
        run: cast_call,
    },
    Decomposition {
        name: "onnx_bit_cast",
        handles: &["onnx.BitCast"],
        doc: "The same bits as another type of the same width.\n\n`y = BitCast(x)` --> `y = bitcast x`",
        run: bit_cast,
    },
];

/// The element type of a number of ONNX's `TensorProto.DataType`, where Girih has it.
pub fn elem(number: i64) -> Option<Elem> {
    Some(match number {
        1 => Elem::F32,
        2 => Elem::U8,
        3 => Elem::I8,
        4 => Elem::U16,
        5 => Elem::I16,
        6 => Elem::I32,
        7 => Elem::I64,
        9 => Elem::BOOL,
        10 => Elem::F16,
        11 => Elem::F64,
        12 => Elem::U32,
        13 => Elem::U64,
        16 => Elem::BF16,
        17 => Elem::of(DType::F8E4M3FN),
        19 => Elem::of(DType::F8E5M2),
        21 => Elem { dtype: DType::I4, unsigned: true },
        22 => Elem::of(DType::I4),
        23 => Elem::of(DType::F4E2M1FN),
        24 => Elem::of(DType::F8E8M0FNU),
        _ => return None,
    })
}

/// The names of `TensorProto.DataType`, by number.
const NAMES: [&str; 27] = [
    "undefined",
    "float",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "string",
    "bool",
    "float16",
    "double",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
    "bfloat16",
    "float8e4m3fn",
    "float8e4m3fnuz",
    "float8e5m2",
    "float8e5m2fnuz",
    "uint4",
    "int4",
    "float4e2m1",
    "float8e8m0",
    "uint2",
    "int2",
];

/// The name of an element type in ONNX.
pub fn type_name(number: i64) -> String {
    match usize::try_from(number).ok().and_then(|n| NAMES.get(n)) {
        Some(name) => (*name).to_string(),
        None => format!("type {number}"),
    }
}

/// The element type with a number of ONNX's (TensorProto.DataType).
pub(in crate::graph::decompose) fn elem_of(number: i64) -> Result<Elem> {
    elem(number).ok_or_else(|| Refusal::new(format!("the element type {} is not supported", type_name(number))))
}

/// The operand as a float that is computed with: narrow formats and integers become f32.
pub(super) fn base_float(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    if b.dtype(x).is_base_float() { Ok(x) } else { b.convert(x, Elem::F32) }
}

/// The greatest finite value of the formats that `saturate` is about.
fn greatest(dtype: DType) -> Option<f64> {
    match dtype {
        DType::F8E4M3FN => Some(448.0),
        DType::F8E5M2 => Some(57344.0),
        _ => None,
    }
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
    // What 4 bits cannot hold wraps, and a format without NaN takes 0 for it.
    if b.elem(x).is_float() && to.dtype == DType::I4 {
        x = b.convert(x, Elem::I32)?;
    }
    if to.dtype == DType::F4E2M1FN {
        let nan = b.compare(Predicate::NotEqual, x, x)?;
        let zero = b.scalar_like(x, 0.0);
        x = b.select(nan, zero, x)?;
    }
    if let Some(most) = greatest(to.dtype).filter(|_| saturate) {
        let (low, high) = (b.scalar_like(x, -most), b.scalar_like(x, most));
        x = b.max(x, low)?;
        x = b.min(x, high)?;
    }
    if to.dtype == DType::F8E8M0FNU {
        return b.elementwise_to(ScalarOp::FToF { to: to.dtype, rounding }, &[x], to);
    }
    b.convert(x, to)
}

fn cast_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let to = if call.name == "onnx.CastLike" { b.elem(call.arg(1)?) } else { elem_of(call.int("to", 0)?)? };
    let rounding = match call.text("round_mode")?.unwrap_or("up") {
        "up" => Rounding::PositiveInf,
        "down" => Rounding::Zero,
        "nearest" => Rounding::NearestEven,
        other => return Err(Refusal::new(format!("there is no rounding `{other}`"))),
    };
    Ok(vec![cast(b, x, to, call.flag("saturate", true)?, rounding)?])
}

fn bit_cast(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (from, to) = (b.elem(x), elem_of(call.int("to", 0)?)?);
    if from.dtype.bits() != to.dtype.bits() {
        return Err(Refusal::new(format!("{from} and {to} have different widths")));
    }
    if from.is_bool() || to.is_bool() {
        return Err(Refusal::new("the bits of bools are not defined"));
    }
    Ok(vec![b.elementwise_to(ScalarOp::Bitcast { to: to.dtype }, &[x], to)?])
}
