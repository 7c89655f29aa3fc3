//! Types: `i32`, `!tt.ptr<f32>`, `tensor<16x32xf16>`.

use super::*;
use crate::cuda_tile::ir::{Elem, TileType};
use crate::num::DType;

/// A tensor may have this many dimensions.
const MAX_RANK: usize = 16;

impl<'a> Parser<'a> {
    /// A type. One that is well formed but unknown becomes [`Ty::Other`]: what uses it is refused where the user wrote it.
    pub(super) fn ty(&mut self) -> Res<Ty> {
        let start = self.span;
        match self.tok {
            Tok::Word("tensor") => self.tensor(start),
            Tok::Word("index") => {
                self.advance();
                Ok(Ty::Tile(TileType::of(vec![], Elem::Num(DType::I64))))
            }
            Tok::Word(_) | Tok::Bang(_) => Ok(match self.elem()? {
                Some(elem) => Ty::Tile(TileType::of(vec![], elem)),
                None => Ty::Other(self.slice(self.since(start)).to_string()),
            }),
            _ => self.expected("a type"),
        }
    }

    pub(super) fn types(&mut self) -> Res<Vec<Ty>> {
        if self.eat('(') {
            return self.list(')', |p| p.ty());
        }
        let mut out = vec![self.ty()?];
        while self.eat(',') {
            out.push(self.ty()?);
        }
        Ok(out)
    }

    /// The type of an element: a number or a pointer.
    fn elem(&mut self) -> Res<Option<Elem>> {
        match self.tok {
            Tok::Word(name) => {
                self.advance();
                Ok(DType::from_name(name).map(Elem::Num))
            }
            Tok::Bang("tt.ptr") => {
                self.advance();
                self.expect('<')?;
                let pointee = self.nested(|p| p.ty())?;
                let mut space = 1;
                if self.eat(',') {
                    space = match self.tok {
                        Tok::Int(text) => text.parse::<u32>().unwrap_or(0),
                        // Memory that the kernel does not write.
                        Tok::Str("constant") => 1,
                        _ => return self.expected("an address space"),
                    };
                    self.advance();
                }
                self.expect('>')?;
                Ok(match pointee {
                    Ty::Tile(TileType { shape, elem: Elem::Num(d), .. }) if shape.is_empty() && space == 1 => {
                        Some(Elem::Ptr(d))
                    }
                    _ => None,
                })
            }
            Tok::Bang(_) => {
                self.advance();
                if self.is('<') {
                    self.skip_angles()?;
                }
                Ok(None)
            }
            _ => self.expected("a type"),
        }
    }

    /// Everything from `<` to its `>`.
    pub(super) fn skip_angles(&mut self) -> Res<()> {
        let mut open = 0usize;
        loop {
            match self.tok {
                Tok::Punct('<') => open += 1,
                Tok::Punct('>') => open -= 1,
                Tok::Eof | Tok::Unterminated => return self.expected("`>`"),
                _ => {}
            }
            self.advance();
            if open == 0 {
                return Ok(());
            }
        }
    }

    fn tensor(&mut self, start: Span) -> Res<Ty> {
        self.advance();
        if !self.is('<') {
            return self.expected("`<`");
        }
        let mut at = self.span.end as usize;
        let text = self.lex.text();
        let mut shape = vec![];
        // `16x32xf16` is one word or several to a lexer: the extents are read as characters.
        loop {
            let rest = text.get(at..).unwrap_or("");
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if digits == 0 || rest.as_bytes().get(digits) != Some(&b'x') {
                break;
            }
            match rest.get(..digits).and_then(|d| d.parse::<u64>().ok()) {
                Some(n) if shape.len() < MAX_RANK && n > 0 && n <= 1 << 32 => shape.push(n),
                _ => return self.fail(Code::TooLarge, start, "a tensor has too many dimensions, or too large ones"),
            }
            at += digits + 1;
        }
        self.seek(at);
        let elem = self.nested(|p| p.elem())?;
        if self.eat(',') {
            // An encoding: a layout of threads, which TTIR does not have.
            while !self.is('>') {
                if self.is('<') {
                    self.skip_angles()?;
                } else if matches!(self.tok, Tok::Eof | Tok::Unterminated) {
                    return self.expected("`>`");
                } else {
                    self.advance();
                }
            }
            self.advance();
            return Ok(Ty::Other(self.slice(self.since(start)).to_string()));
        }
        self.expect('>')?;
        let elements = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        Ok(match elem {
            Some(elem) if elements.is_some() => Ty::Tile(TileType::of(shape, elem)),
            _ => Ty::Other(self.slice(self.since(start)).to_string()),
        })
    }
}
