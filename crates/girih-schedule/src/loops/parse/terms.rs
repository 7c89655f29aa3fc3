//! The small parts of statements: operands, memory accesses, masks, index expressions.

use super::{Parser, Raw, Res, Thing};
use crate::base::lines::{Tok, error};
use crate::base::{Code, Diagnostic};
use crate::index::text::{Tokens, launch_leaf, read_ix, read_mask};
use crate::loops::ir::*;
use crate::num::DType;
use crate::num::literal::parse_const;

impl Parser<'_, '_> {
    // Operands, memory, masks.

    pub(super) fn raw_opnd(&mut self) -> Res<Raw> {
        let span = self.c.span();
        let minus = self.c.eat("-");
        let text = match *self.c.tok() {
            Tok::Number(n) => n,
            Tok::Word(w @ ("inf" | "nan" | "true" | "false")) => w,
            _ if minus => return self.c.expected("a number"),
            _ => return Ok(Raw::Val(self.val()?)),
        };
        self.c.next();
        let text = if minus { format!("-{text}") } else { text.to_string() };
        let dtype = if text == "true" || text == "false" { Some(DType::I1) } else { None };
        let typed = self.c.is_punct(":") && matches!(self.c.peek(1), Tok::Word(w) if DType::from_name(w).is_some());
        if !typed {
            return Ok(Raw::Const { text, dtype, span });
        }
        self.c.next();
        Ok(Raw::Const { text, dtype: Some(self.dtype()?), span })
    }

    pub(super) fn raw_ty(&self, raw: &Raw) -> Option<Ty> {
        match raw {
            Raw::Val(v) => self.kernel.vals.get(*v).map(|v| v.ty),
            Raw::Const { dtype, .. } => dtype.map(Ty::Num),
        }
    }

    pub(super) fn resolve(&self, raw: Raw, expected: Option<DType>) -> Res<Opnd> {
        match raw {
            Raw::Val(v) => Ok(Opnd::Val(v)),
            Raw::Const { text, dtype, span } => {
                let Some(dtype) = dtype.or(expected) else {
                    let help = format!("write `{text}:i32`, or another type");
                    return Err(error(Code::MalformedIr, span, "this constant needs its type").help(help));
                };
                match parse_const(dtype, &text) {
                    Some(bits) => Ok(Opnd::Const { dtype, bits }),
                    None => Err(error(
                        Code::MalformedIr,
                        span,
                        format!("expected a constant of type {dtype}, found `{text}`"),
                    )),
                }
            }
        }
    }

    pub(in crate::loops) fn opnd(&mut self, expected: Option<DType>) -> Res<Opnd> {
        let raw = self.raw_opnd()?;
        self.resolve(raw, expected)
    }

    pub(super) fn constant(&mut self, dtype: DType) -> Res<u64> {
        let span = self.c.span();
        match self.opnd(Some(dtype))? {
            Opnd::Const { dtype: found, bits } if found == dtype => Ok(bits),
            _ => Err(error(Code::MalformedIr, span, format!("expected a constant of type {dtype}"))),
        }
    }

    pub(in crate::loops) fn mem(&mut self) -> Res<Mem> {
        let span = self.c.span();
        let base = self.val()?;
        let elem = match self.kernel.vals.get(base).map(|v| v.ty) {
            _ if self.c.eat_word("as") => self.dtype()?,
            Some(Ty::Ptr(elem)) => elem,
            _ => return Err(error(Code::MalformedIr, span, "this value is not a pointer")),
        };
        self.c.punct("[")?;
        let index = self.ix()?;
        self.c.punct("]")?;
        Ok(Mem { base, index, elem })
    }

    pub(in crate::loops) fn site(&mut self) -> Res<SiteId> {
        let op = if self.c.eat("!") { self.name_or_string()? } else { String::new() };
        Ok(self.kernel.sites.push(Site { op, ..Site::default() }))
    }

    pub(in crate::loops) fn mask(&mut self) -> Res<Mask> {
        read_mask(self)
    }

    pub(in crate::loops) fn ix(&mut self) -> Res<Ix> {
        read_ix(self)
    }
}

impl Parser<'_, '_> {
    pub(in crate::loops) fn number<T: TryFrom<i128>>(&mut self) -> Res<T> {
        let span = self.c.span();
        let minus = self.c.eat("-");
        let Tok::Number(n) = self.c.tok() else { return self.c.expected("a whole number") };
        let value = n.parse::<i128>().ok().map(|v| if minus { -v } else { v });
        let Some(value) = value.and_then(|v| T::try_from(v).ok()) else {
            return Err(error(Code::MalformedIr, span, "this number is not whole or is out of range"));
        };
        self.c.next();
        Ok(value)
    }
    /// Items separated by commas, up to and including `close`.
    pub(in crate::loops) fn items<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut out = vec![];
        while !self.c.eat(close) {
            out.push(item(self)?);
            if !self.c.is_punct(close) {
                self.c.punct(",")?;
            }
        }
        Ok(out)
    }
}

impl Tokens for Parser<'_, '_> {
    type Error = Diagnostic;

    fn take(&mut self, text: &str) -> bool {
        self.c.eat(text) || self.c.eat_word(text)
    }
    fn calls(&self, word: &str) -> bool {
        self.c.is_word(word) && self.c.is_call()
    }
    fn unexpected(&self, wanted: &str) -> Diagnostic {
        self.c.unexpected(wanted)
    }
    fn error(&self, message: &str) -> Diagnostic {
        self.c.error(message)
    }
    fn leaf(&mut self) -> Res<Ix> {
        match *self.c.tok() {
            Tok::Number(_) | Tok::Punct("-") => Ok(Ix::Const(self.number()?)),
            Tok::Word("zext") => {
                self.c.next();
                self.c.punct("(")?;
                let val = self.val()?;
                self.c.punct(")")?;
                Ok(Ix::Val { val, zext: true })
            }
            Tok::Word(w) if launch_leaf(w).is_some() => {
                self.c.next();
                launch_leaf(w).map_or_else(|| self.c.expected("an index expression"), Ok)
            }
            _ => match self.lookup("an index expression")? {
                (Thing::Val(val), _) => Ok(Ix::Val { val, zext: false }),
                (Thing::Axis(axis), _) => Ok(Ix::Axis(axis)),
                (thing, span) => Self::wrong_kind(thing, span, "an index"),
            },
        }
    }
}
