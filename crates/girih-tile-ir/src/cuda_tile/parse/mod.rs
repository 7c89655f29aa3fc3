//! Reads a tile program: text in, [`Module`] and diagnostics out.
//!
//! ```text
//! file      := (alias | module | item)*        items of all modules share one space of names
//! module    := "cuda_tile.module" "@" name ("attributes" dict)? "{" item* "}"
//! item      := entry | global | function
//! entry     := "entry" "@" name "(" (value ":" type),* ")" ("optimization_hints" "=" hints)? region
//! global    := "global" ("public" | "private")? "constant"? "@" name ("alignment" "=" number)? elements ":" type
//! region    := "{" statement* "}"
//! statement := (results "=")? (custom | generic) ("loc" "(" ... ")")?
//! results   := (value (":" number)?),*
//! custom    := operation, then what the operation's format in `ops` says
//! generic   := string "(" value,* ")" ("<" dict ">")? ("(" region,* ")")? dict? ":" types "->" types
//! alias     := "!" name "=" type | "#" name "=" attribute | "#" name "=" "loc" "(" ... ")"
//! ```
//!
//! Reading continues after an error, at the next statement, so that all errors of a file are reported; a value whose
//! definition failed has a name, and its uses fail without an error. Spellings of older documents are accepted with a
//! warning that names today's, extensions with a note. Nesting is bounded, and time is linear in the text.
//!
//! A parsed function is numbered canonically: values, operations and regions in the order of [`renumber`].

mod attrs;
mod custom;
mod elements;
mod function;
mod generic;
mod location;
mod module;
mod renumber;
mod structured;
mod types;

#[cfg(test)]
mod tests;

pub use renumber::renumber;

use super::ir::*;
use crate::base::lexer::{Lexer, Tok, unescape};
use crate::base::{Code, Diagnostic, Span};
use rustc_hash::FxHashMap;

/// The result of parsing a text.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// `None` when there are errors.
    pub module: Option<Module>,
    /// If there are errors: the statements that could be read, for further checks.
    pub partial: Option<Module>,
    /// True if every statement could be read, and the only errors are statements outside any entry.
    pub complete: bool,
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a tile program.
pub fn parse(text: &str) -> Parsed {
    let mut p = Parser::new(text);
    if text.len() > MAX_TEXT {
        p.report(Diagnostic::error(Code::TooLarge, "the text is longer than 1 GiB"));
    } else {
        p.file();
    }
    if p.module.name.is_none() {
        p.module.producer = super::print::read_producer(text);
    }
    let failed = p.diagnostics.iter().any(Diagnostic::is_error);
    let mut diagnostics = p.diagnostics;
    diagnostics.sort_by_key(|d| d.span.map(|s| s.start));
    let (module, partial) = if failed { (None, Some(p.module)) } else { (Some(p.module), None) };
    Parsed { module, partial, complete: p.errors == p.outside, diagnostics }
}

const MAX_TEXT: usize = 1 << 30;
/// The deepest nesting of regions, types and attributes.
const MAX_DEPTH: u32 = 200;
const MAX_ERRORS: usize = 200;
const MAX_EXPANDED: u32 = 1 << 16;

/// The rest of the statement cannot be read; the reason has been reported.
#[derive(Clone, Copy, Debug)]
struct Failed;
type Res<T> = Result<T, Failed>;

/// The meaning of a name.
#[derive(Clone, Debug)]
struct Binding {
    /// Empty when the definition failed.
    values: Vec<ValueId>,
    span: Span,
}

/// The function being read.
struct FuncState<'a> {
    func: Func,
    names: FxHashMap<&'a str, Binding>,
    /// Names to forget at the end of the regions being read.
    bound: Vec<&'a str>,
}

struct Parser<'a> {
    lex: Lexer<'a>,
    tok: Tok<'a>,
    span: Span,
    /// The end of the last token that was taken.
    last_end: usize,
    depth: u32,
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    /// The number of errors that are statements outside any entry.
    outside: usize,
    /// The place of the definition of each alias, after its `=`.
    aliases: FxHashMap<&'a str, usize>,
    types: FxHashMap<&'a str, Type>,
    debug: FxHashMap<&'a str, location::DebugAttr>,
    /// Aliases of debug attributes whose definitions are being read.
    reading: Vec<&'a str>,
    module: Module,
    state: Option<FuncState<'a>>,
    /// Names of module-level symbols and the places of their definitions.
    symbols: FxHashMap<String, Span>,
    modules: u32,
    /// True while a module other than `builtin.module` is being read.
    within: bool,
    /// Attributes read in aliases so far; bounded, since aliases of aliases can stand for any number.
    expanded: u32,
    /// More than zero inside the body of a statement that failed: errors about names are not reported.
    lenient: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let mut p = Parser {
            lex: Lexer::new(text),
            tok: Tok::Eof,
            span: Span::default(),
            last_end: 0,
            depth: 0,
            diagnostics: vec![],
            errors: 0,
            outside: 0,
            aliases: FxHashMap::default(),
            types: FxHashMap::default(),
            debug: FxHashMap::default(),
            reading: vec![],
            module: Module::default(),
            state: None,
            symbols: FxHashMap::default(),
            modules: 0,
            within: false,
            expanded: 0,
            lenient: 0,
        };
        p.find_aliases();
        p.advance();
        p
    }

    // tokens

    fn advance(&mut self) {
        self.last_end = self.span.end as usize;
        (self.tok, self.span) = self.lex.next_token();
    }
    /// Continues reading at a byte offset.
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
    fn expect_arrow(&mut self) -> Res<()> {
        if self.eat_arrow() { Ok(()) } else { self.expected("`->`") }
    }
    /// The token after the current one, for the few places that need two.
    fn peek(&self) -> Tok<'a> {
        self.lex.clone().next_token().0
    }
    fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: (self.last_end as u32).max(start.start) }
    }

    // diagnostics

    fn report(&mut self, d: Diagnostic) {
        if self.lenient > 0 && matches!(d.code, Code::UndefinedValue | Code::Redefinition) {
            return;
        }
        if d.is_error() {
            self.errors += 1;
        }
        if self.errors <= MAX_ERRORS {
            self.diagnostics.push(d);
        }
    }
    fn error<T>(&mut self, code: Code, span: Span, message: impl Into<String>) -> Res<T> {
        self.report(Diagnostic::error(code, message).at(span));
        Err(Failed)
    }
    fn found(&self) -> String {
        match self.tok {
            Tok::Eof => "the end of the file".into(),
            Tok::Unterminated => "a string without a closing quote".into(),
            _ => {
                let text = self.lex.text().get(self.span.start as usize..self.span.end as usize).unwrap_or("");
                match text.char_indices().nth(40) {
                    Some((cut, _)) => format!("`{}...`", &text[..cut]),
                    None => format!("`{text}`"),
                }
            }
        }
    }
    fn expected<T>(&mut self, what: &str) -> Res<T> {
        self.error(Code::Syntax, self.span, format!("expected {what}, found {}", self.found()))
    }
    fn old_spelling(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.report(Diagnostic::warning(Code::OldSpelling, message).at(span).help(help));
    }

    /// Runs `read` one level deeper, or reports that the text nests too deeply.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= MAX_DEPTH {
            return self.error(Code::TooLarge, self.span, format!("the text nests deeper than {MAX_DEPTH} levels"));
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

    fn symbol(&mut self) -> Res<String> {
        match self.tok {
            Tok::At(name) => {
                self.advance();
                Ok(unescape(name))
            }
            _ => self.expected("a symbol, `@name`"),
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
}
