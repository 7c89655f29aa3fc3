//! TTIR text to [`ast`](super::ast): the custom forms that Triton prints, and MLIR's generic form.
//!
//! Most operations share one form, which is read without knowing which operation it is:
//!
//! ```text
//! names `=` operation (%operand | word | word `=` value | "string" | {attributes} | `,` `[` `]`)* `:` types (`->` types)? loc(...)
//! ```
//!
//! Values, blocks and aliases are resolved here. The input is hostile: nesting is bounded, nothing is read twice except
//! aliases of locations, which are kept, and lists grow with the text.

mod attrs;
mod control;
mod location;
mod op;
mod types;

use rustc_hash::FxHashMap;

use crate::base::lexer::{Lexer, Tok, unescape};
use crate::base::{Code, Diagnostic, Span};
use crate::cuda_tile::loc::Loc;
use crate::ttir::ast::*;

/// Regions, types and attributes may nest this deep.
const MAX_DEPTH: u32 = 100;
const MAX_TEXT: usize = 1 << 30;

pub(super) type Res<T> = Result<T, Box<Diagnostic>>;

/// Reads a module.
pub fn parse(text: &str) -> Res<Module> {
    if text.len() > MAX_TEXT {
        return Err(Box::new(Diagnostic::error(Code::TooLarge, "the text is longer than 1 GiB")));
    }
    let mut p = Parser::new(text);
    p.module()?;
    Ok(p.module)
}

struct Parser<'a> {
    lex: Lexer<'a>,
    tok: Tok<'a>,
    span: Span,
    last_end: usize,
    depth: u32,
    module: Module,
    /// The values in scope by name, and those to forget or restore at the end of the region.
    names: FxHashMap<&'a str, Vec<V>>,
    bound: Vec<(&'a str, Option<Vec<V>>)>,
    /// Where the definition of each alias starts, and the locations read from them.
    aliases: FxHashMap<&'a str, usize>,
    locs: FxHashMap<&'a str, Loc>,
    reading: Vec<&'a str>,
    /// Blocks of the region being read, by name.
    blocks: Vec<FxHashMap<&'a str, usize>>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let mut p = Parser {
            lex: Lexer::new(text),
            tok: Tok::Eof,
            span: Span::default(),
            last_end: 0,
            depth: 0,
            module: Module::default(),
            names: FxHashMap::default(),
            bound: vec![],
            aliases: FxHashMap::default(),
            locs: FxHashMap::default(),
            reading: vec![],
            blocks: vec![],
        };
        p.find_aliases();
        p.advance();
        p
    }

    /// `#alias = ...` lines, then `module attributes {...} { functions }`.
    fn module(&mut self) -> Res<()> {
        self.skip_aliases()?;
        let generic = self.tok == Tok::Str("builtin.module");
        if generic {
            return self.fail(
                Code::Syntax,
                self.span,
                "the module is in MLIR's generic form; print it in the custom form, as Triton does",
            );
        }
        if !(self.eat_word("module") || self.eat_word("builtin.module")) {
            return self.expected("a module, `module { ... }`");
        }
        if let Tok::At(_) = self.tok {
            self.advance();
        }
        if self.eat_word("attributes") {
            self.dict()?;
        }
        self.expect('{')?;
        while !self.is('}') {
            match self.tok {
                Tok::Word("tt.func") => self.function()?,
                Tok::Word(other) => {
                    let d =
                        Diagnostic::error(Code::UnknownOp, format!("unknown operation `{other}` in a module of TTIR"));
                    return Err(Box::new(d.at(self.span).help("a module holds `tt.func`")));
                }
                _ => return self.expected("a function, `tt.func @name(...)`"),
            }
        }
        self.advance();
        self.location()?;
        self.skip_aliases()?;
        if self.tok != Tok::Eof {
            return self.expected("the end of the file");
        }
        Ok(())
    }

    // tokens

    fn advance(&mut self) {
        self.last_end = self.span.end as usize;
        (self.tok, self.span) = self.lex.next_token();
    }
    fn seek(&mut self, pos: usize) {
        self.lex.seek(pos);
        (self.tok, self.span) = self.lex.next_token();
    }
    fn is(&self, c: char) -> bool {
        self.tok == Tok::Punct(c)
    }
    fn is_word(&self, word: &str) -> bool {
        self.tok == Tok::Word(word)
    }
    fn eat(&mut self, c: char) -> bool {
        let found = self.is(c);
        if found {
            self.advance();
        }
        found
    }
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }
    fn eat_arrow(&mut self) -> bool {
        let found = self.tok == Tok::Arrow;
        if found {
            self.advance();
        }
        found
    }
    fn expect(&mut self, c: char) -> Res<()> {
        if self.eat(c) { Ok(()) } else { self.expected(&format!("`{c}`")) }
    }
    fn expect_word(&mut self, word: &str) -> Res<()> {
        if self.eat_word(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }
    fn peek(&self) -> Tok<'a> {
        self.lex.clone().next_token().0
    }
    fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: (self.last_end as u32).max(start.start) }
    }

    #[cold]
    fn fail<T>(&self, code: Code, span: Span, message: impl Into<String>) -> Res<T> {
        Err(Box::new(Diagnostic::error(code, message).at(span)))
    }
    #[cold]
    fn expected<T>(&self, what: &str) -> Res<T> {
        let found = match self.tok {
            Tok::Eof => "the end of the file".to_string(),
            Tok::Unterminated => "a string without a closing quote".into(),
            _ => format!("`{}`", self.slice(self.span)),
        };
        self.fail(Code::Syntax, self.span, format!("expected {what}, found {found}"))
    }
    fn slice(&self, span: Span) -> &'a str {
        self.lex.text().get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail(Code::TooLarge, self.span, format!("the text nests deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// `item, item, ...` up to the closing character, which is taken.
    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut out = vec![];
        if self.eat(close) {
            return Ok(out);
        }
        loop {
            out.push(item(self)?);
            if self.eat(close) {
                return Ok(out);
            }
            if !self.eat(',') {
                return self.expected(&format!("`,` or `{close}`"));
            }
        }
    }

    fn string(&mut self) -> Res<String> {
        match self.tok {
            Tok::Str(raw) => {
                self.advance();
                Ok(unescape(raw))
            }
            _ => self.expected("a string"),
        }
    }

    // names

    /// Makes values and gives them a name, which is known up to the end of the region.
    fn define(&mut self, name: (&'a str, Span), types: Vec<Ty>) -> Vec<V> {
        let made: Vec<V> = (types.into_iter())
            .map(|ty| self.module.values.push(Value { ty, name: name.0.to_string(), span: name.1 }))
            .collect();
        let before = self.names.insert(name.0, made.clone());
        self.bound.push((name.0, before));
        made
    }

    /// `%name` or `%name#1`, a use.
    fn value(&mut self) -> Res<V> {
        let Tok::Percent(name) = self.tok else { return self.expected("a value, `%name`") };
        let span = self.span;
        self.advance();
        let mut at = 0;
        if let Tok::Hash(number) = self.tok
            && self.span.start == span.end
        {
            at = number.parse::<usize>().unwrap_or(usize::MAX);
            self.advance();
        }
        match self.names.get(name).and_then(|values| values.get(at)) {
            Some(&v) => Ok(v),
            None => self.fail(Code::UndefinedValue, span, format!("`%{name}` is used where it is not defined")),
        }
    }

    fn values(&mut self) -> Res<Vec<V>> {
        let mut out = vec![];
        if let Tok::Percent(_) = self.tok {
            out.push(self.value()?);
            while self.eat(',') {
                out.push(self.value()?);
            }
        }
        Ok(out)
    }

    /// The name of a new value.
    fn name(&mut self) -> Res<(&'a str, Span)> {
        let Tok::Percent(name) = self.tok else { return self.expected("a value, `%name`") };
        let span = self.span;
        self.advance();
        Ok((name, span))
    }

    /// Runs `read`, and forgets the names that it bound.
    fn scope<T>(&mut self, read: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let mark = self.bound.len();
        let result = self.nested(read);
        while self.bound.len() > mark {
            if let Some((name, before)) = self.bound.pop() {
                match before {
                    Some(values) => self.names.insert(name, values),
                    None => self.names.remove(name),
                };
            }
        }
        result
    }
}
