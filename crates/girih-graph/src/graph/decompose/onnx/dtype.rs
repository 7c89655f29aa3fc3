//! The element types of ONNX: the number, the name, Girih's type and the field of a `TensorProto` that holds elements
//! which are not raw bytes, each said once.
//!
//! In: a number of `TensorProto.DataType`, as models and attributes have it. Out: its row, or that there is none.
//!
//! Example: number 16 is `bfloat16`, which is Girih's `bf16`; the numbers of a tensor are in `int32_data`.

use crate::graph::Elem;
use crate::num::DType;

/// Where a `TensorProto` has its elements, if not as raw bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// `float_data`
    Floats,
    /// `int32_data`: integers and, of floats that are narrower than f32, the bits
    Ints,
    /// `int64_data`
    Longs,
    /// `double_data`
    Doubles,
    /// `uint64_data`
    Unsigned,
    /// `string_data`
    Strings,
}

pub struct DataType {
    /// As the specification writes it, in lower case.
    pub name: &'static str,
    /// The same in Girih, where Girih has it.
    pub elem: Option<Elem>,
    pub field: Field,
}

const fn row(name: &'static str, elem: Option<Elem>, field: Field) -> DataType {
    DataType { name, elem, field }
}

const fn some(dtype: DType) -> Option<Elem> {
    Some(Elem::of(dtype))
}

/// By number.
const TABLE: [DataType; 27] = [
    row("undefined", None, Field::Ints),
    row("float", Some(Elem::F32), Field::Floats),
    row("uint8", Some(Elem::U8), Field::Ints),
    row("int8", Some(Elem::I8), Field::Ints),
    row("uint16", Some(Elem::U16), Field::Ints),
    row("int16", Some(Elem::I16), Field::Ints),
    row("int32", Some(Elem::I32), Field::Ints),
    row("int64", Some(Elem::I64), Field::Longs),
    row("string", Some(Elem::STRING), Field::Strings),
    row("bool", Some(Elem::BOOL), Field::Ints),
    row("float16", Some(Elem::F16), Field::Ints),
    row("double", Some(Elem::F64), Field::Doubles),
    row("uint32", Some(Elem::U32), Field::Unsigned),
    row("uint64", Some(Elem::U64), Field::Unsigned),
    row("complex64", None, Field::Floats),
    row("complex128", None, Field::Doubles),
    row("bfloat16", Some(Elem::BF16), Field::Ints),
    row("float8e4m3fn", some(DType::F8E4M3FN), Field::Ints),
    row("float8e4m3fnuz", some(DType::F8E4M3FNUZ), Field::Ints),
    row("float8e5m2", some(DType::F8E5M2), Field::Ints),
    row("float8e5m2fnuz", some(DType::F8E5M2FNUZ), Field::Ints),
    row("uint4", Some(Elem::U4), Field::Ints),
    row("int4", Some(Elem::I4), Field::Ints),
    row("float4e2m1", some(DType::F4E2M1FN), Field::Ints),
    row("float8e8m0", some(DType::F8E8M0FNU), Field::Ints),
    row("uint2", Some(Elem::U2), Field::Ints),
    row("int2", Some(Elem::I2), Field::Ints),
];

/// The row of a number; `None` for one that ONNX has not given out.
pub fn data_type(number: impl Into<i64>) -> Option<&'static DataType> {
    TABLE.get(usize::try_from(number.into()).ok()?)
}

/// The element type of a number, where Girih has it; else its name, for messages.
pub fn elem(number: impl Into<i64>) -> Result<Elem, String> {
    let number = number.into();
    let row = data_type(number).ok_or_else(|| format!("type {number}"))?;
    row.elem.ok_or_else(|| row.name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against onnx.proto, version 1.19: `enum DataType` and the comments of TensorProto's fields.
    #[test]
    fn the_numbers_are_those_of_onnx() {
        assert_eq!(elem(1), Ok(Elem::F32));
        assert_eq!(elem(9), Ok(Elem::BOOL));
        assert_eq!(elem(11), Ok(Elem::F64));
        assert_eq!(elem(16), Ok(Elem::BF16));
        assert_eq!(elem(24), Ok(Elem::of(DType::F8E8M0FNU)));
        assert_eq!(elem(8), Ok(Elem::STRING));
        assert_eq!(elem(14), Err("complex64".into()));
        assert_eq!(elem(18), Ok(Elem::of(DType::F8E4M3FNUZ)));
        assert_eq!(elem(26), Ok(Elem::I2));
        assert_eq!(elem(27), Err("type 27".into()));
        assert_eq!(elem(-1), Err("type -1".into()));
        assert_eq!(data_type(7).map(|t| t.field), Some(Field::Longs));
        assert_eq!(data_type(12).map(|t| t.field), Some(Field::Unsigned));
    }

    #[test]
    fn no_two_rows_are_the_same_type() {
        for (i, a) in TABLE.iter().enumerate() {
            for b in &TABLE[..i] {
                assert_ne!(a.name, b.name);
                assert!(a.elem.is_none() || a.elem != b.elem, "{} and {}", a.name, b.name);
            }
        }
    }
}
