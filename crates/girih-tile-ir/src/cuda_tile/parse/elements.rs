//! Numbers and the elements of constants: `<f32: [[1.0, 2.0], [3.0, 4.0]]>`.

use super::*;
use crate::num::DType;
use crate::num::parse_float;

impl<'a> Parser<'a> {
    /// A signed number that fits 64 bits.
    pub(super) fn int(&mut self) -> Res<i64> {
        let start = self.span;
        let negative = self.eat('-');
        let Tok::Int(digits) = self.tok else { return self.expected("a number") };
        let magnitude = match digits.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16),
            None => digits.parse::<i128>(),
        };
        self.advance();
        let value = magnitude.ok().map(|m| if negative { -m } else { m });
        match value.and_then(|v| i64::try_from(v).ok()) {
            Some(v) => Ok(v),
            None => self.error(Code::BadLiteral, self.since(start), "the number does not fit 64 bits"),
        }
    }

    /// One number of an element type, as bits.
    pub(super) fn number(&mut self, dtype: DType) -> Res<u64> {
        let start = self.span;
        let negative = self.eat('-');
        let bits = match self.tok {
            Tok::Word(w @ ("true" | "false")) if dtype == DType::I1 && !negative => Some(u64::from(w == "true")),
            Tok::Word("inf" | "nan") if dtype.is_float() => {
                let text = self.lex.text().get(self.span.start as usize..self.span.end as usize).unwrap_or("");
                parse_float(dtype, &format!("{}{text}", if negative { "-" } else { "" }))
            }
            Tok::Int(text) | Tok::Float(text) if dtype.is_float() => {
                let sign = if negative { "-" } else { "" };
                if negative && text.starts_with("0x") { None } else { parse_float(dtype, &format!("{sign}{text}")) }
            }
            Tok::Int(text) => {
                let magnitude = match text.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).ok(),
                    None => text.parse::<u64>().ok(),
                };
                let half = 1u64 << (dtype.bits() - 1);
                match (magnitude, negative) {
                    (Some(m), false) if m <= dtype.mask() => Some(m),
                    (Some(m), true) if m <= half => Some(m.wrapping_neg() & dtype.mask()),
                    _ => None,
                }
            }
            _ => return self.expected(&format!("a number of type {dtype}")),
        };
        let text = self.found();
        self.advance();
        match bits {
            Some(bits) => Ok(bits),
            None => {
                let sign = if negative { "-" } else { "" };
                self.error(
                    Code::BadLiteral,
                    self.since(start),
                    format!("{sign}{} is not a number of type {dtype}", text.trim_matches('`')),
                )
            }
        }
    }

    /// `<f32: ...>`. The shape is that of the brackets, empty for a single number; the type determines it later.
    pub(super) fn elements(&mut self) -> Res<Elements> {
        self.expect('<')?;
        let dtype = self.dtype()?;
        self.expect(':')?;
        let e = self.elements_body(dtype)?;
        self.expect('>')?;
        Ok(e)
    }

    pub(super) fn elements_body(&mut self, dtype: DType) -> Res<Elements> {
        let mut e = Elements { dtype, shape: vec![], bits: vec![] };
        if let Tok::Str(raw) = self.tok {
            self.hex_string(&mut e, raw)?;
        } else {
            let mut shape = vec![];
            self.nested_numbers(&mut e, &mut shape, 0)?;
            e.shape = shape;
        }
        Ok(e)
    }

    fn nested_numbers(&mut self, e: &mut Elements, shape: &mut Vec<u64>, depth: usize) -> Res<()> {
        let start = self.span;
        if !self.eat('[') {
            let bits = self.number(e.dtype)?;
            if depth < shape.len() {
                return self.error(Code::BadShape, start, "the lists of this constant have different depths");
            }
            e.bits.push(bits);
            return Ok(());
        }
        let first = shape.len() == depth && e.bits.is_empty();
        if first {
            shape.push(0);
        }
        if depth >= shape.len() {
            return self.error(Code::BadShape, start, "the lists of this constant have different depths");
        }
        let mut n = 0;
        if !self.eat(']') {
            loop {
                self.nested(|p| p.nested_numbers(e, shape, depth + 1))?;
                n += 1;
                if self.eat(']') {
                    break;
                }
                if !self.eat(',') {
                    return self.expected("`,` or `]`");
                }
            }
        }
        if first {
            shape[depth] = n;
        } else if shape[depth] != n {
            let (want, span) = (shape[depth], self.since(start));
            return self.error(
                Code::BadShape,
                span,
                format!("this list has {n} elements, but the ones before it have {want}"),
            );
        }
        Ok(())
    }

    /// `"0x0102..."`: the little-endian bytes of all elements, or of one that fills the tile.
    fn hex_string(&mut self, e: &mut Elements, raw: &str) -> Res<()> {
        let span = self.span;
        self.advance();
        let size = e.dtype.bytes() as usize;
        let digits: Option<Vec<u64>> =
            raw.strip_prefix("0x").and_then(|h| h.chars().map(|c| c.to_digit(16).map(u64::from)).collect());
        match digits {
            Some(d)
                if !d.is_empty()
                    && d.len() % (2 * size) == 0
                    && !matches!(e.dtype, DType::I1 | DType::I4 | DType::F4E2M1FN) =>
            {
                let element = |c: &[u64]| c.chunks(2).rev().fold(0, |v, b| v << 8 | b[0] << 4 | b[1]);
                e.bits = d.chunks(2 * size).map(element).collect();
                if e.bits.len() > 1 {
                    e.shape = vec![e.bits.len() as u64, 0];
                }
                Ok(())
            }
            _ => self.error(
                Code::BadLiteral,
                span,
                format!("the string does not hold the bytes of elements of type {}", e.dtype),
            ),
        }
    }

    /// Gives elements the shape of their tile type, or reports why they do not fit it. A list of equal elements becomes
    /// a splat.
    pub(super) fn shape_elements(&mut self, e: &mut Elements, ty: &Type, span: Span) {
        let Some(tile) = ty.tile() else {
            let _: Res<()> = self.error(Code::TypeMismatch, span, "a constant must be a tile");
            return;
        };
        if tile.elem != Elem::Num(e.dtype) {
            let message =
                format!("the elements are {}, but the type is `{}`", e.dtype, crate::cuda_tile::print::type_text(ty));
            let _: Res<()> = self.error(Code::TypeMismatch, span, message);
            return;
        }
        let from_bytes = e.shape.len() == 2 && e.shape[1] == 0 && e.bits.len() as u64 == tile.elements();
        if e.bits.is_empty() || !e.shape.is_empty() && !from_bytes && e.shape != tile.shape {
            let dims = |s: &[u64]| s.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
            let message =
                format!("the constant lists {} elements, but its type has {}", dims(&e.shape), dims(&tile.shape));
            let _: Res<()> = self.error(Code::BadShape, span, message);
            return;
        }
        e.shape = tile.shape.clone();
        e.join_equal();
    }
}
