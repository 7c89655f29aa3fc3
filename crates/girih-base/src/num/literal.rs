//! Constants as text: `-3`, `true`, `0.5`, `-inf`, `nan`, and `0x7fc1` for the bits of a value without such a form.

use crate::num::{DType, format_float, parse_float};

/// The constant without its type; [`parse_const`] reads it back to the same bits.
pub fn const_text(dtype: DType, bits: u64) -> String {
    let plain = plain_text(dtype, bits);
    match plain {
        Some(text) if parse_const(dtype, &text) == Some(bits) => text,
        _ => format!("0x{bits:x}"),
    }
}

fn plain_text(dtype: DType, bits: u64) -> Option<String> {
    if bits & !dtype.mask() != 0 {
        return None;
    }
    Some(match dtype {
        DType::I1 => (if bits == 1 { "true" } else { "false" }).to_string(),
        d if d.is_int() => sign_extend(d, bits).to_string(),
        d => format_float(d, bits),
    })
}

/// The bits of a constant in the form of [`const_text`], or in any other usual form; `None` if the text is not a
/// constant of the type.
pub fn parse_const(dtype: DType, text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    if dtype.is_int() {
        return match (dtype, text) {
            (DType::I1, "true") => Some(1),
            (DType::I1, "false") => Some(0),
            (DType::I1, _) => None,
            _ => {
                let value: i128 = text.parse().ok()?;
                let (lo, hi) = (-(1i128 << (dtype.bits() - 1)), (1i128 << dtype.bits()) - 1);
                (lo <= value && value <= hi).then_some(value as u64 & dtype.mask())
            }
        };
    }
    let word = text.strip_prefix('-').unwrap_or(text);
    if !(word.starts_with(|c: char| c.is_ascii_digit()) || word == "inf" || text == "nan") {
        return None;
    }
    parse_float(dtype, text)
}

pub fn sign_extend(dtype: DType, bits: u64) -> i64 {
    let unused = 64 - dtype.bits();
    ((bits << unused) as i64) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_constant_reads_back() {
        for dtype in DType::ALL {
            for seed in 0..2000u64 {
                let bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) & dtype.mask();
                let text = const_text(dtype, bits);
                assert_eq!(parse_const(dtype, &text), Some(bits), "{dtype} {text}");
            }
        }
        assert_eq!(const_text(DType::I8, 0xff), "-1");
        assert_eq!(const_text(DType::F32, 0x3f80_0000), "1.0");
        assert_eq!(const_text(DType::F32, 0xff80_0000), "-inf");
        assert_eq!(parse_const(DType::I8, "256"), None);
    }
}
