//! The parser's place in the text: what stands there, and what is taken.

use super::{Parser, Res};
use crate::base::lines::{Tok, error};
use crate::base::{Code, Span};

impl<'a> Parser<'_, 'a> {
    pub(super) fn tok(&self) -> &Tok<'a> {
        self.peek(0)
    }
    pub(super) fn peek(&self, ahead: usize) -> &Tok<'a> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].tok
    }
    pub(super) fn span(&self) -> Span {
        self.tokens[self.at.min(self.tokens.len() - 1)].span
    }
    pub(super) fn is(&self, tok: &Tok<'_>) -> bool {
        self.tok() == tok
    }
    pub(super) fn is_punct(&self, p: &str) -> bool {
        matches!(self.tok(), Tok::Punct(q) if *q == p)
    }
    pub(super) fn is_word(&self, w: &str) -> bool {
        matches!(self.tok(), Tok::Word(v) if *v == w)
    }
    pub(super) fn next(&mut self) {
        self.at += 1;
    }
    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Res<T> {
        Err(error(Code::MalformedIr, self.span(), message))
    }
    pub(super) fn expected<T>(&self, what: &str) -> Res<T> {
        let found = match self.tok() {
            Tok::Word(w) => format!("`{w}`"),
            Tok::Number(n) => format!("`{n}`"),
            Tok::Str(_) => "a string".to_string(),
            Tok::Punct(p) => format!("`{p}`"),
            Tok::Newline => "the end of the line".to_string(),
            Tok::Indent => "an indented line".to_string(),
            Tok::Dedent => "the end of the body".to_string(),
            Tok::End => "the end of the text".to_string(),
        };
        self.fail(format!("expected {what}, found {found}"))
    }
    pub(super) fn punct(&mut self, p: &str) -> Res<()> {
        if self.eat(p) { Ok(()) } else { self.expected(&format!("`{p}`")) }
    }
    pub(super) fn eat(&mut self, p: &str) -> bool {
        let found = self.is_punct(p);
        self.at += found as usize;
        found
    }
    pub(super) fn word(&mut self, w: &str) -> Res<()> {
        if self.eat_word(w) { Ok(()) } else { self.expected(&format!("`{w}`")) }
    }
    pub(super) fn eat_word(&mut self, w: &str) -> bool {
        let found = self.is_word(w);
        self.at += found as usize;
        found
    }
    pub(super) fn any_word(&mut self, what: &str) -> Res<&'a str> {
        let Tok::Word(w) = *self.tok() else { return self.expected(what) };
        self.next();
        Ok(w)
    }
    pub(super) fn string(&mut self) -> Res<String> {
        let Tok::Str(s) = self.tok().clone() else { return self.expected("a string") };
        self.next();
        Ok(s)
    }
    pub(super) fn end_line(&mut self) -> Res<()> {
        if self.is(&Tok::Newline) {
            self.next();
            return Ok(());
        }
        self.expected("the end of the line")
    }
    pub(super) fn table<T: Clone>(&mut self, table: &[(&str, T)], what: &str) -> Res<T> {
        let found = match self.tok() {
            Tok::Word(w) => table.iter().find(|(n, _)| n == w),
            Tok::Punct(p) => table.iter().find(|(n, _)| n == p),
            _ => None,
        };
        let Some((_, value)) = found else { return self.expected(what) };
        self.next();
        Ok(value.clone())
    }
    pub(super) fn number<T: TryFrom<i128>>(&mut self) -> Res<T> {
        let span = self.span();
        let minus = self.eat("-");
        let Tok::Number(n) = self.tok() else { return self.expected("a whole number") };
        let value = n.parse::<i128>().ok().map(|v| if minus { -v } else { v });
        let Some(value) = value.and_then(|v| T::try_from(v).ok()) else {
            return Err(error(Code::MalformedIr, span, "this number is not whole or is out of range"));
        };
        self.next();
        Ok(value)
    }
    /// Items separated by commas, up to and including `close`.
    pub(super) fn items(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Res<()>) -> Res<()> {
        while !self.eat(close) {
            item(self)?;
            if !self.is_punct(close) {
                self.punct(",")?;
            }
        }
        Ok(())
    }
}
