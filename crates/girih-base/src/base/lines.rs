//! Tokens of the texts whose bodies are indented (graphs, loop and tile IR): words, numbers, strings, punctuation, and the lines and indentation between them.

use super::{Code, Diagnostic, Span};

#[derive(Clone, PartialEq, Debug)]
pub enum Tok<'a> {
    /// A name, a key word, or an operation with its suffixes: `fma.rz`.
    Word(&'a str),
    Number(&'a str),
    Str(String),
    Punct(&'static str),
    Newline,
    Indent,
    Dedent,
    End,
}

#[derive(Clone, Debug)]
pub struct Token<'a> {
    pub tok: Tok<'a>,
    pub span: Span,
}

/// Longest first.
const PUNCTS: [&str; 25] = [
    "..", "//", "<<", "<=", ">=", "==", "!=", "(", ")", "[", "]", ":", ",", "=", "<", ">", "+", "-", "*", "/", "%",
    "&", "|", "^", "!",
];

/// The deepest nesting of bodies.
const MAX_INDENT: usize = 200;

pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, message).at(span)
}

type Res<T> = Result<T, Diagnostic>;

/// A parser's place in the tokens of a text: the next token, and the tokens taken.
pub struct Cursor<'t, 'a> {
    tokens: &'t [Token<'a>],
    pub at: usize,
    /// The code of errors that name the expected tokens.
    code: Code,
}

impl<'t, 'a> Cursor<'t, 'a> {
    pub fn new(tokens: &'t [Token<'a>], code: Code) -> Cursor<'t, 'a> {
        Cursor { tokens, at: 0, code }
    }

    pub fn tok(&self) -> &Tok<'a> {
        self.peek(0)
    }
    pub fn peek(&self, ahead: usize) -> &Tok<'a> {
        self.tokens.get(self.at + ahead).map_or(&Tok::End, |t| &t.tok)
    }
    pub fn span(&self) -> Span {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(Span::default(), |t| t.span)
    }
    /// The token that was taken last.
    pub fn last(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at.saturating_sub(1))
    }
    pub fn is(&self, tok: &Tok<'_>) -> bool {
        self.tok() == tok
    }
    pub fn is_punct(&self, p: &str) -> bool {
        matches!(self.tok(), Tok::Punct(q) if *q == p)
    }
    pub fn is_word(&self, w: &str) -> bool {
        matches!(self.tok(), Tok::Word(v) if *v == w)
    }
    /// Returns true if the word here has arguments in brackets: `min(`.
    pub fn is_call(&self) -> bool {
        matches!(self.peek(1), Tok::Punct("("))
    }
    pub fn next(&mut self) {
        self.at += 1;
    }

    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        error(self.code, self.span(), message)
    }
    pub fn fail<T>(&self, message: impl Into<String>) -> Res<T> {
        Err(self.error(message))
    }
    pub fn fail_at<T>(&self, span: Span, message: impl Into<String>) -> Res<T> {
        Err(error(self.code, span, message))
    }
    pub fn unexpected(&self, wanted: &str) -> Diagnostic {
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
        self.error(format!("expected {wanted}, found {found}"))
    }
    pub fn expected<T>(&self, wanted: &str) -> Res<T> {
        Err(self.unexpected(wanted))
    }

    pub fn eat(&mut self, p: &str) -> bool {
        let found = self.is_punct(p);
        self.at += usize::from(found);
        found
    }
    pub fn eat_word(&mut self, w: &str) -> bool {
        let found = self.is_word(w);
        self.at += usize::from(found);
        found
    }
    pub fn punct(&mut self, p: &str) -> Res<()> {
        if self.eat(p) { Ok(()) } else { self.expected(&format!("`{p}`")) }
    }
    pub fn word(&mut self, w: &str) -> Res<()> {
        if self.eat_word(w) { Ok(()) } else { self.expected(&format!("`{w}`")) }
    }
    pub fn any_word(&mut self, what: &str) -> Res<&'a str> {
        let Tok::Word(w) = *self.tok() else { return self.expected(what) };
        self.next();
        Ok(w)
    }
    pub fn string(&mut self) -> Res<String> {
        let Tok::Str(s) = self.tok().clone() else { return self.expected("a string") };
        self.next();
        Ok(s)
    }
    pub fn end_line(&mut self) -> Res<()> {
        if !self.is(&Tok::Newline) {
            return self.expected("the end of the line");
        }
        self.next();
        Ok(())
    }
    /// Takes one of a table's words or signs.
    pub fn choice<T: Copy>(&mut self, table: &[(&str, T)], what: &str) -> Res<T> {
        let found = match self.tok() {
            Tok::Word(w) => table.iter().find(|(n, _)| n == w),
            Tok::Punct(p) => table.iter().find(|(n, _)| n == p),
            _ => None,
        };
        let Some((_, value)) = found else { return self.expected(what) };
        self.next();
        Ok(*value)
    }
}

/// The tokens of a text; a character without a meaning is an error of the given code.
pub fn lex(text: &str, code: Code) -> Result<Vec<Token<'_>>, Diagnostic> {
    let bytes = text.as_bytes();
    let mut out: Vec<Token<'_>> = Vec::new();
    let mut indents = vec![0usize];
    let mut brackets = 0usize;
    let mut at = 0;
    let mut line_start = true;
    while at < bytes.len() {
        if line_start && brackets == 0 {
            let start = at;
            while bytes.get(at) == Some(&b' ') {
                at += 1;
            }
            if matches!(bytes.get(at), Some(b'\n' | b'\r' | b'#') | None) {
                at = skip_comment(bytes, at);
                if bytes.get(at) == Some(&b'\r') {
                    at += 1;
                }
                at += 1;
                continue;
            }
            line_start = false;
            let (depth, span) = (at - start, Span::new(start, at));
            let mut current = *indents.last().unwrap_or(&0);
            if depth > current {
                if indents.len() >= MAX_INDENT {
                    return Err(error(code, span, "bodies nest too deeply"));
                }
                indents.push(depth);
                out.push(Token { tok: Tok::Indent, span });
            }
            while depth < current {
                indents.pop();
                out.push(Token { tok: Tok::Dedent, span });
                current = *indents.last().unwrap_or(&0);
                if current < depth {
                    return Err(error(code, span, "the indentation does not match any enclosing body"));
                }
            }
        }
        let start = at;
        match bytes[at] {
            b' ' | b'\r' => at += 1,
            b'#' => at = skip_comment(bytes, at),
            b'\n' => {
                if brackets == 0 {
                    out.push(Token { tok: Tok::Newline, span: Span::new(at, at) });
                    line_start = true;
                }
                at += 1;
            }
            c if c.is_ascii_alphabetic() || c == b'_' => {
                at += 1;
                loop {
                    match (bytes.get(at), bytes.get(at + 1)) {
                        (Some(c), _) if c.is_ascii_alphanumeric() || *c == b'_' => at += 1,
                        (Some(b'.'), Some(c)) if c.is_ascii_alphabetic() => at += 1,
                        _ => break,
                    }
                }
                out.push(Token { tok: Tok::Word(&text[start..at]), span: Span::new(start, at) });
            }
            c if c.is_ascii_digit() => {
                at = number_end(bytes, at);
                out.push(Token { tok: Tok::Number(&text[start..at]), span: Span::new(start, at) });
            }
            b'"' => {
                let (value, end) = string(text, at, code)?;
                at = end;
                out.push(Token { tok: Tok::Str(value), span: Span::new(start, at) });
            }
            b'@' => {
                at += 1;
                out.push(Token { tok: Tok::Punct("@"), span: Span::new(start, at) });
            }
            _ => {
                let Some(punct) = PUNCTS.into_iter().find(|p| text[at..].starts_with(p)) else {
                    let width = text[at..].chars().next().map_or(1, char::len_utf8);
                    let span = Span::new(at, at + width);
                    return Err(error(code, span, "unexpected character"));
                };
                match punct {
                    "(" | "[" => brackets += 1,
                    ")" | "]" => brackets = brackets.saturating_sub(1),
                    _ => {}
                }
                at += punct.len();
                out.push(Token { tok: Tok::Punct(punct), span: Span::new(start, at) });
            }
        }
    }
    let end = Span::new(text.len(), text.len());
    if !line_start {
        out.push(Token { tok: Tok::Newline, span: end });
    }
    for _ in 1..indents.len() {
        out.push(Token { tok: Tok::Dedent, span: end });
    }
    out.push(Token { tok: Tok::End, span: end });
    Ok(out)
}

fn skip_comment(bytes: &[u8], mut at: usize) -> usize {
    if bytes.get(at) == Some(&b'#') {
        while at < bytes.len() && bytes[at] != b'\n' {
            at += 1;
        }
    }
    at
}

fn number_end(bytes: &[u8], mut at: usize) -> usize {
    let digits = |mut at: usize, hex: bool| {
        while bytes.get(at).is_some_and(|c| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() }) {
            at += 1;
        }
        at
    };
    if bytes[at] == b'0' && bytes.get(at + 1) == Some(&b'x') {
        return digits(at + 2, true);
    }
    at = digits(at, false);
    if bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
        at = digits(at + 1, false);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = matches!(bytes.get(at + 1), Some(b'+' | b'-')) as usize;
        if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            at = digits(at + 1 + sign, false);
        }
    }
    at
}

/// The content of a string literal, given with its quotes; `None` if the text is not one.
pub fn unquote(literal: &str) -> Option<String> {
    let (said, end) = string(literal, 0, Code::MalformedIr).ok()?;
    (literal.starts_with('"') && end == literal.len()).then_some(said)
}

fn string(text: &str, start: usize, code: Code) -> Result<(String, usize), Diagnostic> {
    let bad = |at: usize, message: &str| error(code, Span::new(start, at), message);
    let mut out = String::new();
    let mut chars = text[start + 1..].char_indices().map(|(i, c)| (start + 1 + i, c));
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((out, at + 1)),
            '\n' => return Err(bad(at, "the string has no closing quote on its line")),
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, c @ ('"' | '\\'))) => out.push(c),
                Some((at, 'u')) => {
                    let mut hex = String::new();
                    let mut closed = false;
                    for (_, c) in chars.by_ref().take(10) {
                        match c {
                            '{' => {}
                            '}' => {
                                closed = true;
                                break;
                            }
                            c => hex.push(c),
                        }
                    }
                    let c = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32).filter(|_| closed);
                    out.push(c.ok_or_else(|| bad(at, "`\\u{...}` takes a character's number in hexadecimal"))?);
                }
                _ => return Err(bad(at + 1, "`\\` is followed by `n`, `\"`, `\\` or `u{...}`")),
            },
            c => out.push(c),
        }
    }
    Err(bad(text.len(), "the string has no closing quote"))
}
