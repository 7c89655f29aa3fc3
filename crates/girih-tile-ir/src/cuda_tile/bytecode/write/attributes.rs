//! Attributes inside operations, and constants.

use super::Writer;
use super::buffer::Buffer;
use crate::base::Span;
use crate::cuda_tile::bytecode::tags::{NEAREST_AWAY, attribute};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::words::Words;
use crate::num::DType;

/// The number of a word of an enumeration.
fn ordinal<T: Words>(value: T) -> u64 {
    T::WORDS.iter().position(|(_, v)| *v == value).unwrap_or(0) as u64
}

/// The stored form of the bits: for tf32 these are 19 bits.
fn stored(d: DType, bits: u64) -> (u64, usize) {
    match d {
        DType::TF32 => (bits >> 13, 3),
        _ => (bits, d.bytes() as usize),
    }
}

impl<'m> Writer<'m> {
    pub fn string(&mut self, text: &str) -> u64 {
        self.strings.number(text.as_bytes())
    }

    /// The number of a constant: only its one element if that fills the tile, else all elements; truth values eight to
    /// a byte.
    pub fn elements(&mut self, e: &Elements) -> u64 {
        let data: Vec<u8> = match e.dtype {
            DType::I1 if e.is_splat() => vec![if e.get(0) & 1 == 1 { 0xff } else { 0 }],
            DType::I1 => {
                let byte = |bits: &[u64]| bits.iter().enumerate().fold(0, |byte, (i, b)| byte | ((b & 1) as u8) << i);
                e.bits.chunks(8).map(byte).collect()
            }
            d => {
                let le = |&bits: &u64| {
                    let (bits, bytes) = stored(d, bits);
                    bits.to_le_bytes().into_iter().take(bytes)
                };
                e.bits.iter().flat_map(le).collect()
            }
        };
        let mut item = Buffer::default();
        item.varint(data.len() as u64);
        item.bytes(&data);
        self.constants.number(&item.0)
    }

    /// An attribute in an operation; its kind is known there.
    pub fn attr(&mut self, a: &'m Attr, at: Span, out: &mut Buffer) {
        match a {
            Attr::Unit => {}
            Attr::Bool(b) => out.byte((*b).into()),
            Attr::Int(n) => out.varint(*n as u64),
            Attr::Str(s) => out.varint(self.string(s)),
            Attr::Rounding(r) => {
                if *r == Rounding::NearestAway {
                    self.needs(NEAREST_AWAY, at, || "the rounding mode `nearest_away`".into());
                }
                out.varint(ordinal(*r));
            }
            Attr::Signedness(s) => out.varint(ordinal(*s)),
            Attr::Overflow(o) => out.varint(ordinal(*o)),
            Attr::Predicate(p) => out.varint(ordinal(*p)),
            Attr::Ordered(o) => out.varint(ordinal(*o)),
            Attr::MemoryOrdering(o) => out.varint(ordinal(*o)),
            Attr::MemoryScope(s) => out.varint(ordinal(*s)),
            Attr::Mode(m) => out.varint(ordinal(*m)),
            Attr::Reduction(r) => out.varint(ordinal(*r)),
            Attr::I32s(list) => out.i32s(list),
            Attr::Bools(list) => {
                out.varint(list.len() as u64);
                list.iter().for_each(|&b| out.byte(b.into()));
            }
            Attr::Elements(e) => out.varint(self.elements(e)),
            Attr::Identities(list) => {
                out.varint(list.len() as u64);
                for &(d, bits) in list {
                    self.number(d, bits, at, out);
                }
            }
            Attr::Assumption(a) => assumption(a, out),
            Attr::Hints(h) => self.dictionary(&h.0, at, out),
            Attr::Dict(d) => self.dictionary(d, at, out),
        }
    }

    /// A tagged number with its type.
    fn number(&mut self, d: DType, bits: u64, at: Span, out: &mut Buffer) {
        out.varint(if d.is_int() { attribute::INTEGER } else { attribute::FLOAT });
        out.varint(self.dtype(d, at));
        let (bits, _) = stored(d, bits);
        match d.bits() {
            _ if d.is_int() => out.varint(bits),
            ..=8 => out.byte(bits as u8),
            _ => out.signed_varint(bits as i64),
        }
    }

    /// Names and tagged values.
    pub fn dictionary(&mut self, entries: &'m [(String, Attr)], at: Span, out: &mut Buffer) {
        out.varint(entries.len() as u64);
        for (name, value) in entries {
            out.varint(self.string(name));
            match value {
                Attr::Int(n) => {
                    let d = if i32::try_from(*n).is_ok() { DType::I32 } else { DType::I64 };
                    self.number(d, *n as u64 & d.mask(), at, out);
                    continue;
                }
                Attr::Bool(_) => out.varint(attribute::BOOL),
                Attr::Str(_) => out.varint(attribute::STRING),
                Attr::Dict(_) => out.varint(attribute::DICTIONARY),
                Attr::Hints(_) => out.varint(attribute::OPTIMIZATION_HINTS),
                _ => {
                    self.no_form(at, format!("the value of the hint `{name}`"));
                    continue;
                }
            }
            self.attr(value, at, out);
        }
    }
}

fn assumption(a: &Assumption, out: &mut Buffer) {
    let pair = |a: &Option<i64>, b: &Option<i64>, out: &mut Buffer| {
        out.byte(u8::from(a.is_some()) | u8::from(b.is_some()) << 1);
        a.iter().chain(b).for_each(|&n| out.signed_varint(n));
    };
    match a {
        Assumption::DivBy { divisor, every, along } => {
            out.varint(attribute::DIV_BY);
            out.varint(*divisor);
            pair(every, along, out);
        }
        Assumption::SameElements(counts) => {
            out.varint(attribute::SAME_ELEMENTS);
            out.i64s(counts.iter().copied());
        }
        Assumption::Bounded { lb, ub } => {
            out.varint(attribute::BOUNDED);
            pair(lb, ub, out);
        }
    }
}
