//! Tensors of a file as constants.
//!
//! In: a `TensorProto`. Out: a [`Constant`] with its elements as in memory (row-major, little-endian, bool one byte,
//! 4-bit types two to a byte, integers of two bits one to a byte), as a slice of the file wherever the file has them so.
//!
//! Invariant: a constant has exactly the bytes that its shape and type need.

use bytes::Bytes;

use super::proto::Tensor;
use super::strings::{self, Words};
use crate::base::{Code, Diagnostic};
use crate::graph::decompose::onnx::dtype::{Field, data_type, elem};
use crate::graph::{ConstData, Constant, Elem, Part};

/// Why a tensor is not read.
pub(super) enum Trouble {
    /// An element type that Girih does not have, by its ONNX name.
    Type(String),
    Error(Diagnostic),
}

fn bad(name: &str, what: &str) -> Trouble {
    Trouble::Error(Diagnostic::error(Code::BadModel, format!("the tensor `{name}` {what}")))
}

/// The bytes of a tensor of this type and shape in a file; `None` where the count overflows.
fn byte_len(elem: Elem, shape: &[u64]) -> Option<u64> {
    let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?;
    match elem.bits() {
        2 => Some(count.div_ceil(4)),
        4 => Some(count.div_ceil(2)),
        _ => count.checked_mul(elem.dtype.bytes()),
    }
}

pub(super) fn constant(t: &Tensor, name: &str, words: &Words) -> Result<Constant, Trouble> {
    let elem = elem(t.data_type).map_err(Trouble::Type)?;
    let shape: Vec<u64> = t
        .dims
        .iter()
        .map(|d| u64::try_from(*d).map_err(|_| bad(name, &format!("has the dimension {d}"))))
        .collect::<Result<_, _>>()?;
    let Some(len) = byte_len(elem, &shape).filter(|n| *n < 1 << 56) else {
        return Err(bad(name, "has more elements than memory could hold"));
    };
    if t.segments > 0 {
        return Err(bad(name, "is stored in segments, which ONNX no longer has"));
    }
    if elem.text && (t.location == 1 || t.raw.is_some()) {
        return Err(bad(name, "has strings as raw bytes, which ONNX does not allow"));
    }
    let data = if t.location == 1 && elem.two_bits {
        return Err(Trouble::Type(format!("{elem} in a file beside the model")));
    } else if t.location == 1 {
        external(t, name, len)?
    } else {
        let bytes = match &t.raw {
            Some(raw) => raw.clone(),
            None => typed(t, elem, name, words)?,
        };
        if bytes.len() as u64 != len {
            let what = format!("holds {} bytes where its shape and type need {len}", bytes.len());
            return Err(bad(name, &what));
        }
        // Evaluators and kernels read a bool as 0 or 1.
        let bytes = match elem.is_bool() && bytes.iter().any(|b| *b > 1) {
            true => bytes.iter().map(|b| u8::from(*b != 0)).collect(),
            false => bytes,
        };
        ConstData::Bytes(if elem.two_bits { unpacked(&bytes, elem, &shape) } else { bytes })
    };
    Ok(Constant { name: name.into(), elem, shape, data })
}

/// Integers of two bits, four to a byte in a file, one to a byte.
fn unpacked(bytes: &[u8], elem: Elem, shape: &[u64]) -> Bytes {
    let count = shape.iter().product::<u64>() as usize;
    let all = bytes.iter().flat_map(|b| [b & 3, b >> 2 & 3, b >> 4 & 3, b >> 6]).take(count);
    all.map(|two| if elem.unsigned { two } else { (two ^ 2).wrapping_sub(2) }).collect()
}

/// The elements that a field of numbers holds, as in memory.
fn typed(t: &Tensor, elem: Elem, name: &str, words: &Words) -> Result<Bytes, Trouble> {
    let width = elem.dtype.bytes() as usize;
    let narrow =
        |list: &[i64]| -> Bytes { list.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect() };
    let field = data_type(t.data_type).map_or(Field::Ints, |row| row.field);
    let all = [
        (Field::Floats, t.floats.len()),
        (Field::Ints, t.ints.len()),
        (Field::Longs, t.longs.len()),
        (Field::Doubles, t.doubles.len()),
        (Field::Unsigned, t.unsigned.len()),
        (Field::Strings, t.strings.len()),
    ];
    let bytes = match field {
        Field::Floats => t.floats.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Field::Longs => narrow(&t.longs),
        Field::Doubles => t.doubles.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Field::Unsigned => narrow(&t.unsigned),
        Field::Ints => narrow(&t.ints),
        Field::Strings => t.strings.iter().flat_map(|s| words.number(&strings::text(s)).to_le_bytes()).collect(),
    };
    match all.iter().any(|(other, n)| *other != field && *n > 0) {
        true => Err(bad(name, "has its elements in a field of another type")),
        false => Ok(bytes),
    }
}

/// A range of another file in the model's folder or below.
fn external(t: &Tensor, name: &str, len: u64) -> Result<ConstData, Trouble> {
    let refuse = |what: String, help: &str| {
        let message = format!("the weights of `{name}` {what}");
        Trouble::Error(Diagnostic::error(Code::ExternalData, message).help(help))
    };
    let entry = |key: &str| t.external.iter().find(|e| e.key == key).map(|e| e.value.as_str());
    let number = |key: &str| match entry(key) {
        None | Some("") => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(n) => Ok(Some(n)),
            Err(_) => Err(bad(name, &format!("has the {key} `{text}` in its external file, which is not a number"))),
        },
    };
    let Some(file) = entry("location").filter(|f| !f.is_empty()) else {
        return Err(bad(name, "is in an external file that is not named"));
    };
    let inside = !file.contains(['\\', ':', '\0'])
        && !file.starts_with('/')
        && file.split('/').all(|part| part != "..")
        && file.split('/').any(|part| !part.is_empty() && part != ".");
    if !inside {
        let help = "put the file beside the model and save the model with its name alone";
        return Err(refuse(format!("are in `{file}`, outside the model's folder"), help));
    }
    let offset = number("offset")?.unwrap_or(0);
    if let Some(given) = number("length")?
        && given != len
    {
        return Err(bad(name, &format!("takes {len} bytes, but the model says that its external file has {given}")));
    }
    if offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
        return Err(bad(name, "ends beyond any file"));
    }
    Ok(ConstData::External { file: file.into(), part: Part::Offset(offset), len })
}
