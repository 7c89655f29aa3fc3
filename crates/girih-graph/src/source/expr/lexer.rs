//! Text to tokens.
//!
//! In: the text of `-c`. Out: tokens with their spans, lines and blocks marked as Python marks them. Brackets join lines;
//! `;` ends a statement. The first line's indentation belongs to no block, so quoted text may be indented as a whole.
//!
//! ```text
//! def f(x):       Name def, Name f, Op (, Name x, Op ), Op :, Newline, Indent,
//!     return x    Name return, Name x, Newline, Dedent, End
//! ```

use super::error::bad;
use crate::base::{Diagnostic, Span};

#[derive(Clone, PartialEq, Debug)]
pub enum Tok {
    /// A name or a keyword.
    Name(String),
    Int(i64),
    Float(f64),
    Str(String),
    Op(&'static str),
    Newline,
    Indent,
    Dedent,
    End,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Token {
    pub tok: Tok,
    pub span: Span,
}

/// Longest first, so that the first that fits is the right one.
const OPERATORS: &[&str] = &[
    "**=", "//=", ">>=", "<<=", "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->", ":=", "+=", "-=", "*=",
    "/=", "%=", "@=", "&=", "|=", "^=", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "=", "(", ")", "[",
    "]", "{", "}", ",", ":", ".", ";",
];

/// The most characters of a text.
const LONGEST: usize = 1 << 20;

/// Returns every token, with `End` as the last one; or every problem.
pub fn tokens(text: &str) -> Result<Vec<Token>, Vec<Diagnostic>> {
    if text.len() > LONGEST {
        return Err(vec![bad(Span::default(), format!("the text is longer than {LONGEST} bytes"))]);
    }
    let mut lexer = Lexer { text, at: 0, out: vec![], errors: vec![], indents: vec![], open: 0 };
    lexer.run();
    if lexer.errors.is_empty() { Ok(lexer.out) } else { Err(lexer.errors) }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    out: Vec<Token>,
    errors: Vec<Diagnostic>,
    /// The indentation of each open block; the first is that of the text.
    indents: Vec<usize>,
    /// Brackets that are open.
    open: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }
    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    fn push(&mut self, tok: Tok, start: usize) {
        self.out.push(Token { tok, span: Span::new(start, self.at) });
    }
    fn fail(&mut self, start: usize, message: impl Into<String>) {
        self.errors.push(bad(Span::new(start, self.at.max(start + 1)), message));
    }
    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while let Some(c) = self.peek().filter(|c| wanted(*c)) {
            self.at += c.len_utf8();
        }
    }

    fn run(&mut self) {
        self.line_start();
        while let Some(c) = self.peek() {
            let start = self.at;
            match c {
                '\n' => {
                    self.at += 1;
                    if self.open == 0 {
                        self.newline(start);
                        self.line_start();
                    }
                }
                '#' => self.skip(|c| c != '\n'),
                '\\' if self.rest().starts_with("\\\n") => self.at += 2,
                '\\' if self.rest().starts_with("\\\r\n") => self.at += 3,
                c if c.is_whitespace() => self.at += c.len_utf8(),
                c if c.is_ascii_digit() => self.number(),
                '.' if self.rest().chars().nth(1).is_some_and(|c| c.is_ascii_digit()) => self.number(),
                '"' | '\'' => self.string(start, false),
                c if c.is_alphabetic() || c == '_' => self.word(start),
                _ => self.operator(start, c),
            }
        }
        let end = self.at;
        self.newline(end);
        for _ in 1..self.indents.len() {
            self.push(Tok::Dedent, end);
        }
        self.push(Tok::End, end);
    }

    fn newline(&mut self, start: usize) {
        let empty = matches!(self.out.last().map(|t| &t.tok), None | Some(Tok::Newline | Tok::Indent | Tok::Dedent));
        if !empty {
            self.out.push(Token { tok: Tok::Newline, span: Span::new(start, start) });
        }
    }

    /// Measures the indentation of the next line that is not empty.
    fn line_start(&mut self) {
        loop {
            let start = self.at;
            let mut width = 0;
            while let Some(c) = self.peek().filter(|c| matches!(c, ' ' | '\t' | '\r')) {
                width = if c == '\t' { (width / 8 + 1) * 8 } else { width + 1 };
                self.at += 1;
            }
            match self.peek() {
                None => return,
                Some('\n') => self.at += 1,
                Some('#') => self.skip(|c| c != '\n'),
                Some(_) => return self.indent(start, width),
            }
        }
    }

    fn indent(&mut self, start: usize, width: usize) {
        let Some(&current) = self.indents.last() else { return self.indents.push(width) };
        if width > current {
            if self.indents.len() >= 40 {
                return self.fail(start, "blocks are nested too deeply");
            }
            self.indents.push(width);
            return self.push(Tok::Indent, start);
        }
        while self.indents.len() > 1 && self.indents.last().is_some_and(|w| *w > width) {
            self.indents.pop();
            self.push(Tok::Dedent, start);
        }
        if self.indents.last() != Some(&width) {
            self.fail(start, "the indentation of this line does not match any block before it");
        }
    }

    fn word(&mut self, start: usize) {
        self.skip(|c| c.is_alphanumeric() || c == '_');
        let word = self.text.get(start..self.at).unwrap_or("").to_string();
        if matches!(self.peek(), Some('"' | '\'')) && word.len() <= 2 {
            let kind = word.to_ascii_lowercase();
            if kind == "r" {
                return self.string(start, true);
            }
            if matches!(kind.as_str(), "f" | "b" | "u" | "rf" | "fr" | "rb" | "br") {
                self.string(self.at, true);
                return self.fail(start, "strings with a prefix other than r are not supported");
            }
        }
        self.push(Tok::Name(word), start);
    }

    fn number(&mut self) {
        let start = self.at;
        let rest = self.rest().to_ascii_lowercase();
        let radix = match rest.get(..2) {
            Some("0x") => 16,
            Some("0o") => 8,
            Some("0b") => 2,
            _ => 10,
        };
        if radix != 10 {
            self.at += 2;
            self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
            let digits: String = self.text.get(start + 2..self.at).unwrap_or("").replace('_', "");
            return match i64::from_str_radix(&digits, radix) {
                Ok(x) => self.push(Tok::Int(x), start),
                Err(_) => self.fail(start, "this number cannot be read, or does not fit in 64 bits"),
            };
        }
        let digit = |c: char| c.is_ascii_digit() || c == '_';
        self.skip(digit);
        let mut float = false;
        if self.peek() == Some('.') {
            float = true;
            self.at += 1;
            self.skip(digit);
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            let after: String = self.rest().chars().skip(1).take(2).collect();
            let signed = after.starts_with(['+', '-']);
            if after.chars().nth(usize::from(signed)).is_some_and(|c| c.is_ascii_digit()) {
                float = true;
                self.at += 1 + usize::from(signed);
                self.skip(digit);
            }
        }
        if self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            self.skip(|c| c.is_alphanumeric() || c == '_');
            return self.fail(start, "this number cannot be read (complex numbers are not supported)");
        }
        let digits = self.text.get(start..self.at).unwrap_or("").replace('_', "");
        let tok = if float { digits.parse().map(Tok::Float).ok() } else { digits.parse().map(Tok::Int).ok() };
        match tok {
            Some(tok) => self.push(tok, start),
            None => self.fail(start, "this number does not fit in 64 bits"),
        }
    }

    /// From its quote on; `start` is where the token starts.
    fn string(&mut self, start: usize, raw: bool) {
        let Some(quote) = self.peek() else { return };
        let triple: String = [quote; 3].iter().collect();
        let long = self.rest().starts_with(&triple);
        self.at += if long { 3 } else { 1 };
        let mut text = String::new();
        loop {
            if long && self.rest().starts_with(&triple) {
                self.at += 3;
                break;
            }
            let Some(c) = self.peek() else { return self.fail(start, "this string has no closing quote") };
            if c == '\n' && !long {
                return self.fail(start, "this string has no closing quote on its line");
            }
            self.at += c.len_utf8();
            if c == quote && !long {
                break;
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let Some(next) = self.peek() else { return self.fail(start, "this string has no closing quote") };
            self.at += next.len_utf8();
            match next {
                _ if raw => text.extend([c, next]),
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '0' => text.push('\0'),
                '\n' => {}
                '\\' | '\'' | '"' => text.push(next),
                _ => text.extend([c, next]),
            }
        }
        self.push(Tok::Str(text), start);
    }

    fn operator(&mut self, start: usize, c: char) {
        let Some(op) = OPERATORS.iter().find(|op| self.rest().starts_with(**op)) else {
            self.at += c.len_utf8();
            let help =
                if c == '$' || c == '`' { "quote the text with '...' so that the shell leaves it alone" } else { "" };
            self.fail(start, format!("unexpected character {c:?}"));
            if let (Some(last), false) = (self.errors.last_mut(), help.is_empty()) {
                *last = last.clone().help(help);
            }
            return;
        };
        self.at += op.len();
        match *op {
            "(" | "[" | "{" => self.open += 1,
            ")" | "]" | "}" => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        self.push(Tok::Op(op), start);
    }
}
