//! The small parts of statements: operands, constants, attributes, masks, index expressions.

use std::convert::Infallible;

use super::{Parser, Res, Thing};
use crate::base::lines::{Tok, error};
use crate::base::{Code, Diagnostic, Span};
use crate::graph::Elem;
use crate::graph::ir::{Arg, Attr, ValueId, axis};
use crate::index::text::{CMPS, MAX_DEPTH, Tokens, read_ix};
use crate::index::{Cmp, Cond, Ix, Mask};
use crate::num::literal::parse_const;
use crate::num::{DType, parse_float};

/// An operand whose constant may still need its type.
pub(super) enum Raw {
    Arg(Arg),
    Const { text: String, elem: Option<Elem>, span: Span },
}

impl Parser<'_, '_> {
    /// A value that is defined above.
    pub(super) fn value(&mut self) -> Res<ValueId> {
        let span = self.span();
        let Tok::Word(w) = *self.tok() else { return self.expected("the name of a tensor") };
        match self.names.get(w).copied() {
            Some(Thing::Value(v)) => {
                self.next();
                Ok(v)
            }
            Some(Thing::Symbol(_)) => self.fail_at(span, format!("`{w}` is a symbol, not a tensor")),
            None => self.fail_at(span, format!("`{w}` is not defined above")),
        }
    }

    /// Whether the word here is a function of its arguments: `min(`.
    fn is_call(&self) -> bool {
        matches!(self.peek(1), Tok::Punct("("))
    }

    pub(super) fn is_value(&self) -> bool {
        !self.is_call() && matches!(self.tok(), Tok::Word(w) if matches!(self.names.get(w), Some(Thing::Value(_))))
    }

    pub(super) fn raw(&mut self) -> Res<Raw> {
        if self.eat_word("_") {
            return Ok(Raw::Arg(Arg::Absent));
        }
        match self.literal()? {
            Some(raw) => Ok(raw),
            None => Ok(Raw::Arg(Arg::Value(self.value()?))),
        }
    }

    /// A constant, if one comes next.
    pub(super) fn literal(&mut self) -> Res<Option<Raw>> {
        let span = self.span();
        let minus = self.is_punct("-");
        let text = match self.peek(usize::from(minus)) {
            Tok::Number(n) => *n,
            Tok::Word(w @ ("inf" | "nan" | "true" | "false")) => *w,
            _ if minus => {
                self.next();
                return self.expected("a number");
            }
            _ => return Ok(None),
        };
        self.at += 1 + usize::from(minus);
        let text = if minus { format!("-{text}") } else { text.to_string() };
        let elem = if self.eat(":") { Some(self.elem()?) } else { None };
        Ok(Some(Raw::Const { text, elem, span }))
    }

    pub(super) fn resolve(&self, raw: Raw, context: Elem) -> Res<Arg> {
        match raw {
            Raw::Arg(a) => Ok(a),
            Raw::Const { text, elem, span } => {
                let elem = elem.unwrap_or(context);
                match parse_const(elem.dtype, &text).filter(|b| b & !elem.dtype.mask() == 0) {
                    Some(bits) => Ok(Arg::Scalar { elem, bits }),
                    None => self.fail_at(span, format!("expected a constant of type {elem}, found `{text}`")),
                }
            }
        }
    }

    pub(super) fn integer(&mut self) -> Res<i64> {
        let span = self.span();
        let minus = self.eat("-");
        let Tok::Number(n) = *self.tok() else { return self.expected("an integer") };
        let text = if minus { format!("-{n}") } else { n.to_string() };
        match text.parse() {
            Ok(x) => {
                self.next();
                Ok(x)
            }
            Err(_) => self.fail_at(span, format!("expected a 64-bit integer, found `{text}`")),
        }
    }

    pub(super) fn small(&mut self, what: &str) -> Res<u32> {
        let span = self.span();
        let n = self.integer()?;
        match u32::try_from(n) {
            Ok(n) if n < 1 << 16 => Ok(n),
            _ => self.fail_at(span, format!("{n} is out of range for {what}")),
        }
    }

    pub(super) fn bytes(&mut self) -> Res<u64> {
        let span = self.span();
        let n = self.integer()?;
        u64::try_from(n).or_else(|_| self.fail_at(span, "a number of bytes must not be negative"))
    }

    pub(super) fn float(&mut self) -> Res<f64> {
        let span = self.span();
        let Some(Raw::Const { text, .. }) = self.literal()? else { return self.expected("a number") };
        match parse_float(DType::F64, &text) {
            Some(bits) => Ok(f64::from_bits(bits)),
            None => self.fail_at(span, format!("expected a number, found `{text}`")),
        }
    }

    pub(super) fn attr(&mut self, depth: usize) -> Res<Attr> {
        if depth > MAX_DEPTH {
            return self.fail("the list nests too deeply");
        }
        let minus = usize::from(self.is_punct("-"));
        let float = match self.peek(minus) {
            Tok::Number(n) => !n.starts_with("0x") && n.contains(['.', 'e', 'E']),
            Tok::Word("inf" | "nan") => true,
            _ => false,
        };
        if float {
            return Ok(Attr::Float(self.float()?));
        }
        match self.tok() {
            Tok::Str(_) => return Ok(Attr::Str(self.string()?)),
            Tok::Word(w @ ("none" | "true" | "false")) => {
                let attr = if *w == "none" { Attr::None } else { Attr::Bool(*w == "true") };
                self.next();
                return Ok(attr);
            }
            Tok::Word(w) => {
                if let Some(e) = Elem::from_name(w) {
                    self.next();
                    return Ok(Attr::Elem(e));
                }
            }
            Tok::Punct("[") => {
                self.next();
                let mut list = vec![];
                while !self.eat("]") {
                    list.push(self.attr(depth + 1)?);
                    if !self.is_punct("]") {
                        self.punct(",")?;
                    }
                }
                return Ok(Attr::List(list));
            }
            _ => {}
        }
        Ok(Attr::Int(self.ix()?))
    }

    pub(super) fn mask(&mut self) -> Res<Mask> {
        let mut mask = Mask::default();
        loop {
            let lhs = self.ix()?;
            let cmp = self.choice(&CMPS, "a comparison")?;
            mask.conds.push(Cond { lhs, cmp, rhs: self.ix()? });
            if !self.eat_word("and") {
                return Ok(mask);
            }
        }
    }

    pub(super) fn ix(&mut self) -> Res<Ix> {
        read_ix(self)
    }
}

impl Tokens for Parser<'_, '_> {
    type Error = Diagnostic;

    fn take(&mut self, text: &str) -> bool {
        self.eat(text) || self.eat_word(text)
    }
    fn require(&mut self, text: &str) -> Res<()> {
        self.punct(text)
    }
    fn calls(&self, word: &str) -> bool {
        self.is_word(word) && self.is_call()
    }
    fn comparison(&mut self) -> Option<Cmp> {
        CMPS.iter().find(|(sign, _)| self.eat(sign)).map(|(_, cmp)| *cmp)
    }
    fn unexpected(&self, wanted: &str) -> Diagnostic {
        match self.expected::<Infallible>(wanted) {
            Err(error) => error,
            Ok(never) => match never {},
        }
    }
    fn too_deep(&self) -> Diagnostic {
        error(Code::BadGraph, self.span(), "the index expression nests too deeply")
    }
    fn leaf(&mut self) -> Res<Ix> {
        let span = self.span();
        match *self.tok() {
            Tok::Number(_) | Tok::Punct("-") => Ok(Ix::Const(self.integer()?)),
            Tok::Word(w) => {
                self.next();
                let digits = w.strip_prefix('i').filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
                match (self.names.get(w), digits.map(str::parse::<u16>)) {
                    (Some(Thing::Symbol(s)), _) => Ok(s.ix()),
                    (Some(Thing::Value(_)), _) => {
                        self.fail_at(span, format!("`{w}` is a tensor, not a symbol or an axis"))
                    }
                    (None, Some(Ok(d))) => Ok(axis(d.into())),
                    _ => self.fail_at(span, format!("expected a symbol or an axis, found `{w}`")),
                }
            }
            _ => self.expected("an index expression"),
        }
    }
}
