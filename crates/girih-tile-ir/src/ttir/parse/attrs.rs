//! Attributes: `{axis = 0 : i32, libname = ""}`, `array<i32: 1, 0>`, `dense<1.0> : tensor<8xf32>`.

use super::*;
use crate::cuda_tile::ir::{Elem, Elements, TileType};
use crate::num::DType;
use crate::num::literal::parse_const;

/// A dense attribute may list this many elements.
const MAX_ELEMENTS: usize = 1 << 24;

impl<'a> Parser<'a> {
    /// `{name = value, name}`
    pub(super) fn dict(&mut self) -> Res<Vec<(String, Attr)>> {
        self.expect('{')?;
        self.list('}', |p| {
            let name = match p.tok {
                Tok::Word(word) => {
                    p.advance();
                    word.to_string()
                }
                _ => p.string()?,
            };
            let attr = if p.eat('=') { p.nested(|p| p.attr())? } else { Attr::Unit };
            Ok((name, attr))
        })
    }

    /// The value of an attribute; one without meaning here is skipped.
    pub(super) fn attr(&mut self) -> Res<Attr> {
        match self.tok {
            Tok::Str(_) => {
                let text = self.string()?;
                if self.eat(':') {
                    self.ty()?;
                }
                Ok(Attr::Str(text))
            }
            Tok::Word("true") | Tok::Word("false") => {
                let value = self.is_word("true");
                self.advance();
                Ok(Attr::Bool(value))
            }
            Tok::Word("unit") => {
                self.advance();
                Ok(Attr::Unit)
            }
            Tok::Word("dense") => Ok(match self.dense()? {
                Some(elements) => Attr::Elements(elements),
                None => Attr::Other,
            }),
            Tok::Word("array") => self.array(),
            Tok::Int(_) | Tok::Float(_) | Tok::Punct('-') => self.numeric_attr(),
            Tok::Word(word) => {
                self.advance();
                if self.is('<') {
                    self.skip_angles()?;
                    return Ok(Attr::Other);
                }
                Ok(Attr::Word(word.to_string()))
            }
            Tok::Bang(_) => {
                self.ty()?;
                Ok(Attr::Other)
            }
            Tok::At(name) | Tok::Hash(name) => {
                self.advance();
                if self.is('<') {
                    self.skip_angles()?;
                }
                Ok(Attr::Word(name.to_string()))
            }
            Tok::Punct('[') => {
                self.advance();
                let items = self.list(']', |p| p.nested(|p| p.attr()))?;
                let ints: Option<Vec<i64>> =
                    items.iter().map(|a| if let Attr::Int(i) = a { Some(*i) } else { None }).collect();
                Ok(ints.map_or(Attr::Other, Attr::Ints))
            }
            Tok::Punct('{') => {
                self.dict()?;
                Ok(Attr::Other)
            }
            _ => self.expected("an attribute"),
        }
    }

    fn numeric_attr(&mut self) -> Res<Attr> {
        let start = self.span;
        let text = self.literal()?;
        let ty = if self.eat(':') { Some(self.ty()?) } else { None };
        let float = matches!(&ty, Some(Ty::Tile(TileType { elem: Elem::Num(d), .. })) if d.is_float());
        if float || text.contains('.') {
            return Ok(Attr::Other);
        }
        match parse_int(&text) {
            Some(n) => Ok(Attr::Int(n)),
            None => self.fail(Code::BadLiteral, start, format!("`{text}` is not a number of at most 64 bits")),
        }
    }

    /// `-1`, `2.5e-3`, `0x7F800000`, `true`, as text.
    pub(super) fn literal(&mut self) -> Res<String> {
        let minus = if self.eat('-') { "-" } else { "" };
        match self.tok {
            Tok::Int(text) | Tok::Float(text) => {
                self.advance();
                Ok(format!("{minus}{text}"))
            }
            Tok::Word(word @ ("true" | "false")) if minus.is_empty() => {
                self.advance();
                Ok(word.to_string())
            }
            _ => self.expected("a number"),
        }
    }

    /// The bits of a number of a type.
    pub(super) fn bits(&self, dtype: DType, text: &str, span: Span) -> Res<u64> {
        // An integer may be written as the unsigned number of its bits.
        let wide = || {
            let n: i128 = text.parse().ok()?;
            (dtype.is_int() && n > 0 && n >> dtype.bits() == 0).then_some(n as u64)
        };
        let hex = text
            .strip_prefix("0x")
            .map(|digits| u64::from_str_radix(digits, 16).ok().filter(|b| b & !dtype.mask() == 0));
        let found = match hex {
            Some(bits) => bits,
            None => parse_const(dtype, text).or_else(wide),
        };
        match found {
            Some(bits) => Ok(bits),
            None => self.fail(Code::BadLiteral, span, format!("`{text}` is not a number of type {dtype}")),
        }
    }

    /// `dense<...> : tensor<...>`; nothing for a type that is not known.
    pub(super) fn dense(&mut self) -> Res<Option<Elements>> {
        self.advance();
        self.expect('<')?;
        let start = self.span;
        let mut texts = vec![];
        let mut blob = None;
        match self.tok {
            Tok::Str(raw) => {
                blob = Some(raw.to_string());
                self.advance();
            }
            _ if self.is('>') => {}
            _ => self.elements(&mut texts)?,
        }
        self.expect('>')?;
        self.expect(':')?;
        let ty = self.ty()?;
        let Ty::Tile(TileType { shape, elem: Elem::Num(dtype), .. }) = ty else { return Ok(None) };
        let n = shape.iter().product::<u64>();
        let mut bits = vec![];
        if let Some(raw) = blob {
            bits = self.blob(dtype, &raw, start)?;
        }
        for (text, span) in texts {
            bits.push(self.bits(dtype, &text, span)?);
        }
        if bits.len() != 1 && bits.len() as u64 != n {
            let message = format!("{} elements do not fill {n}", bits.len());
            return self.fail(Code::BadShape, start, message);
        }
        let mut elements = Elements { dtype, shape, bits };
        elements.join_equal();
        Ok(Some(elements))
    }

    fn elements(&mut self, out: &mut Vec<(String, Span)>) -> Res<()> {
        if self.eat('[') {
            return self.nested(|p| p.list(']', |p| p.elements(out)).map(drop));
        }
        let span = self.span;
        if out.len() >= MAX_ELEMENTS {
            return self.fail(Code::TooLarge, span, "a constant has too many elements");
        }
        let text = self.literal()?;
        out.push((text, span));
        Ok(())
    }

    /// Elements as hexadecimal bytes, in the order of their addresses.
    fn blob(&self, dtype: DType, raw: &str, span: Span) -> Res<Vec<u64>> {
        let digits = raw.strip_prefix("0x").unwrap_or(raw).as_bytes();
        let size = dtype.bytes() as usize;
        let byte = |pair: &[u8]| u64::from_str_radix(std::str::from_utf8(pair).unwrap_or("-"), 16).ok();
        let bytes: Option<Vec<u64>> = digits.chunks(2).map(byte).collect();
        match bytes {
            Some(bytes) if digits.len().is_multiple_of(2 * size) && dtype.bits() >= 8 => {
                Ok(bytes.chunks(size).map(|c| c.iter().rev().fold(0, |all, b| all << 8 | b)).collect())
            }
            _ => {
                self.fail(Code::BadLiteral, span, "the bytes of a constant are not hexadecimal, or do not fit its type")
            }
        }
    }

    /// `array<i32: 1, 0>`
    fn array(&mut self) -> Res<Attr> {
        self.advance();
        self.expect('<')?;
        self.ty()?;
        if self.eat('>') {
            return Ok(Attr::Ints(vec![]));
        }
        self.expect(':')?;
        let ints = self.list('>', |p| {
            let span = p.span;
            let text = p.literal()?;
            match text.as_str() {
                "true" => Ok(1),
                "false" => Ok(0),
                _ => match parse_int(&text) {
                    Some(n) => Ok(n),
                    None => p.fail(Code::BadLiteral, span, format!("`{text}` is not a whole number")),
                },
            }
        })?;
        Ok(Attr::Ints(ints))
    }
}

fn parse_int(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|n| n as i64),
        None => text.parse::<i128>().ok().filter(|n| (-(1i128 << 63)..1 << 64).contains(n)).map(|n| n as i64),
    }
}
