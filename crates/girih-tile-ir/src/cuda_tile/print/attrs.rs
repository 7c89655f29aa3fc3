//! The text of attributes.

use super::Style;
use super::types::join;
use crate::base::lexer::{escape, quote};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::words::Words;
use crate::num::{DType, format_float, format_mlir};

/// One number of an element type.
pub(super) fn number_text(dtype: DType, bits: u64, style: Style) -> String {
    if dtype == DType::I1 {
        return if bits & 1 == 1 { "true" } else { "false" }.into();
    }
    if dtype.is_int() {
        let unused = 64 - dtype.bits();
        return (((bits << unused) as i64) >> unused).to_string();
    }
    if style == Style::Nvidia {
        return format_mlir(dtype, bits);
    }
    // Infinities and NaN are written as bits, and an exponent gets a point before it, because other readers require
    // both.
    let text = format_float(dtype, bits);
    match text.split_once('e') {
        _ if !text.ends_with(|c: char| c.is_ascii_digit()) => format_mlir(dtype, bits),
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => text,
    }
}

/// A string with its quotes.
pub(super) fn string_text(s: &str, style: Style) -> String {
    if style == Style::Nvidia { escape(s) } else { quote(s) }
}

/// `<f32: [[1.0, 2.0], [3.0, 4.0]]>`
pub(super) fn elements_text(e: &Elements, style: Style) -> String {
    let mut out = format!("<{}: ", e.dtype);
    if e.is_splat() {
        out.push_str(&number_text(e.dtype, e.get(0), style));
    } else {
        let sizes: Vec<usize> =
            e.shape.iter().rev().scan(1, |n, &d| Some(std::mem::replace(n, *n * d as usize) * d as usize)).collect();
        for (i, &bits) in e.bits.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            sizes.iter().filter(|&&n| n > 0 && i % n == 0).for_each(|_| out.push('['));
            out.push_str(&number_text(e.dtype, bits, style));
            sizes.iter().filter(|&&n| n > 0 && (i + 1) % n == 0).for_each(|_| out.push(']'));
        }
    }
    out.push('>');
    out
}

fn hint_text(value: &Attr, style: Style) -> String {
    match value {
        Attr::Dict(d) => format!("{{{}}}", entries_text(d, style)),
        Attr::Bool(b) => b.to_string(),
        Attr::Int(i) => i.to_string(),
        Attr::Str(s) => escape(s),
        _ => "unit".into(),
    }
}

fn entries_text(entries: &[(String, Attr)], style: Style) -> String {
    let mut entries: Vec<&(String, Attr)> = entries.iter().collect();
    if style == Style::Nvidia {
        entries.sort_by_key(|(k, _)| k);
    }
    let plain = |k: &str| {
        k.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && k.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'))
    };
    let key = |k: &str| if plain(k) { k.to_string() } else { escape(k) };
    join(&entries, ", ", |(k, v)| match v {
        Attr::Unit => key(k),
        _ => format!("{} = {}", key(k), hint_text(v, style)),
    })
}

/// `<sm_100 = {latency = 5}>`
pub(super) fn hints_text(h: &Hints, style: Style) -> String {
    format!("<{}>", entries_text(&h.0, style))
}

pub(super) fn assumption_text(a: &Assumption) -> String {
    let bound = |b: &Option<i64>| b.map_or("?".to_string(), |b| b.to_string());
    match a {
        Assumption::DivBy { divisor, every: Some(e), along: Some(a) } => {
            format!("div_by<{divisor}, every {e} along {a}>")
        }
        Assumption::DivBy { divisor, .. } => format!("div_by<{divisor}>"),
        Assumption::SameElements(v) => format!("same_elements<[{}]>", join(v, ", ", i64::to_string)),
        Assumption::Bounded { lb, ub } => format!("bounded<{}, {}>", bound(lb), bound(ub)),
    }
}

/// An attribute in the custom form.
pub(super) fn attr_text(name: &str, attr: &Attr, style: Style) -> String {
    match attr {
        Attr::Unit => name.to_string(),
        Attr::Bool(b) => b.to_string(),
        Attr::Int(i) => i.to_string(),
        Attr::Str(s) => string_text(s, style),
        Attr::Rounding(r) => format!("rounding<{}>", r.word()),
        Attr::Overflow(o) => format!("overflow<{}>", o.word()),
        Attr::Signedness(s) => s.word().into(),
        Attr::Predicate(p) => p.word().into(),
        Attr::Ordered(o) => o.word().into(),
        Attr::MemoryOrdering(o) => o.word().into(),
        Attr::MemoryScope(s) => s.word().into(),
        Attr::Mode(m) => m.word().into(),
        Attr::Reduction(r) => format!("attributes {{{name} = #cuda_tile.multimem_reduction_kind<{}>}}", r.word()),
        Attr::I32s(v) => format!("[{}]", join(v, ", ", i32::to_string)),
        Attr::Bools(v) => format!("{name} = [{}]", join(v, ", ", bool::to_string)),
        Attr::Elements(e) => elements_text(e, style),
        Attr::Identities(v) => {
            format!(
                "[{}]",
                join(v, ", ", |(d, bits)| match d {
                    DType::I1 => number_text(*d, *bits, style),
                    // A number without a type is read as one of these; bits of a float need their type.
                    DType::I64 | DType::F64 if style == Style::Nvidia => match number_text(*d, *bits, style) {
                        text if text.starts_with("0x") => format!("{text} : {d}"),
                        text => text,
                    },
                    _ => format!("{} : {d}", number_text(*d, *bits, style)),
                })
            )
        }
        Attr::Assumption(a) => assumption_text(a),
        Attr::Hints(h) => format!("{name} = {}", hints_text(h, style)),
        Attr::Dict(d) => format!("{{{}}}", entries_text(d, style)),
    }
}
