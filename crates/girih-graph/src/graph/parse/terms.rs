//! The small parts of statements: operands, constants, attributes, masks, index expressions.

use super::{Parser, Res, Thing};
use crate::base::lines::Tok;
use crate::base::{Diagnostic, Span};
use crate::graph::Elem;
use crate::graph::ir::{Arg, Attr, ValueId, axis};
use crate::index::text::{CMPS, MAX_DEPTH, Tokens, read_ix};
use crate::index::{Cond, Ix, Mask};
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
        let span = self.c.span();
        let Tok::Word(w) = *self.c.tok() else { return self.c.expected("the name of a tensor") };
        match self.names.get(w).copied() {
            Some(Thing::Value(v)) => {
                self.c.next();
                Ok(v)
            }
            Some(Thing::Symbol(_)) => self.c.fail_at(span, format!("`{w}` is a symbol, not a tensor")),
            None => self.c.fail_at(span, format!("`{w}` is not defined above")),
        }
    }

    pub(super) fn is_value(&self) -> bool {
        !self.c.is_call() && matches!(self.c.tok(), Tok::Word(w) if matches!(self.names.get(w), Some(Thing::Value(_))))
    }

    pub(super) fn raw(&mut self) -> Res<Raw> {
        if self.c.eat_word("_") {
            return Ok(Raw::Arg(Arg::Absent));
        }
        match self.literal()? {
            Some(raw) => Ok(raw),
            None => Ok(Raw::Arg(Arg::Value(self.value()?))),
        }
    }

    /// A constant, if one comes next.
    pub(super) fn literal(&mut self) -> Res<Option<Raw>> {
        let span = self.c.span();
        let minus = self.c.is_punct("-");
        let text = match self.c.peek(usize::from(minus)) {
            Tok::Number(n) => *n,
            Tok::Word(w @ ("inf" | "nan" | "true" | "false")) => *w,
            _ if minus => {
                self.c.next();
                return self.c.expected("a number");
            }
            _ => return Ok(None),
        };
        self.c.at += 1 + usize::from(minus);
        let text = if minus { format!("-{text}") } else { text.to_string() };
        let elem = if self.c.eat(":") { Some(self.elem()?) } else { None };
        Ok(Some(Raw::Const { text, elem, span }))
    }

    pub(super) fn resolve(&self, raw: Raw, context: Elem) -> Res<Arg> {
        match raw {
            Raw::Arg(a) => Ok(a),
            Raw::Const { text, elem, span } => {
                let elem = elem.unwrap_or(context);
                match parse_const(elem.dtype, &text).filter(|b| b & !elem.dtype.mask() == 0) {
                    Some(bits) => Ok(Arg::Scalar { elem, bits }),
                    None => self.c.fail_at(span, format!("expected a constant of type {elem}, found `{text}`")),
                }
            }
        }
    }

    pub(super) fn integer(&mut self) -> Res<i64> {
        let span = self.c.span();
        let minus = self.c.eat("-");
        let Tok::Number(n) = *self.c.tok() else { return self.c.expected("an integer") };
        let text = if minus { format!("-{n}") } else { n.to_string() };
        match text.parse() {
            Ok(x) => {
                self.c.next();
                Ok(x)
            }
            Err(_) => self.c.fail_at(span, format!("expected a 64-bit integer, found `{text}`")),
        }
    }

    pub(super) fn small(&mut self, what: &str) -> Res<u32> {
        let span = self.c.span();
        let n = self.integer()?;
        match u32::try_from(n) {
            Ok(n) if n < 1 << 16 => Ok(n),
            _ => self.c.fail_at(span, format!("{n} is out of range for {what}")),
        }
    }

    pub(super) fn bytes(&mut self) -> Res<u64> {
        let span = self.c.span();
        let n = self.integer()?;
        u64::try_from(n).or_else(|_| self.c.fail_at(span, "a number of bytes must not be negative"))
    }

    pub(super) fn float(&mut self) -> Res<f64> {
        let span = self.c.span();
        let Some(Raw::Const { text, .. }) = self.literal()? else { return self.c.expected("a number") };
        match parse_float(DType::F64, &text) {
            Some(bits) => Ok(f64::from_bits(bits)),
            None => self.c.fail_at(span, format!("expected a number, found `{text}`")),
        }
    }

    pub(super) fn attr(&mut self, depth: usize) -> Res<Attr> {
        if depth > MAX_DEPTH {
            return self.c.fail("the list nests too deeply");
        }
        let minus = usize::from(self.c.is_punct("-"));
        let float = match self.c.peek(minus) {
            Tok::Number(n) => !n.starts_with("0x") && n.contains(['.', 'e', 'E']),
            Tok::Word("inf" | "nan") => true,
            _ => false,
        };
        if float {
            return Ok(Attr::Float(self.float()?));
        }
        match self.c.tok() {
            Tok::Str(_) => return Ok(Attr::Str(self.c.string()?)),
            Tok::Word(w @ ("none" | "true" | "false")) => {
                let attr = if *w == "none" { Attr::None } else { Attr::Bool(*w == "true") };
                self.c.next();
                return Ok(attr);
            }
            Tok::Word(w) => {
                if let Some(e) = Elem::from_name(w) {
                    self.c.next();
                    return Ok(Attr::Elem(e));
                }
            }
            Tok::Punct("[") => {
                self.c.next();
                let mut list = vec![];
                while !self.c.eat("]") {
                    list.push(self.attr(depth + 1)?);
                    if !self.c.is_punct("]") {
                        self.c.punct(",")?;
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
            let cmp = self.c.choice(&CMPS, "a comparison")?;
            mask.conds.push(Cond { lhs, cmp, rhs: self.ix()? });
            if !self.c.eat_word("and") {
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
        let span = self.c.span();
        match *self.c.tok() {
            Tok::Number(_) | Tok::Punct("-") => Ok(Ix::Const(self.integer()?)),
            Tok::Word(w) => {
                self.c.next();
                let digits = w.strip_prefix('i').filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
                match (self.names.get(w), digits.map(str::parse::<u16>)) {
                    (Some(Thing::Symbol(s)), _) => Ok(s.ix()),
                    (Some(Thing::Value(_)), _) => {
                        self.c.fail_at(span, format!("`{w}` is a tensor, not a symbol or an axis"))
                    }
                    (None, Some(Ok(d))) => Ok(axis(d.into())),
                    _ => self.c.fail_at(span, format!("expected a symbol or an axis, found `{w}`")),
                }
            }
            _ => self.c.expected("an index expression"),
        }
    }
}
