//! A lexer for the MLIR family of texts: tile programs, and other texts with the same tokens.
//!
//! Tokens are produced on demand, so that a reader may step back to a token's start and read it differently
//! (`4x8xf32` is a list of dimensions only where a type is expected). White space and `//` comments separate tokens.
//!
//! ```text
//! %name  @name  #name  !name  ^name    sigil and name; the token's text excludes the sigil
//! name                                 letters, digits, `_`, `$`, `.`
//! 12  0x1F  1.5  1.5e-3                numbers, without a sign
//! "text"                               a string, quotes included in the span
//! ->  and single punctuation characters
//! ```

use super::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tok<'a> {
    Word(&'a str),
    Percent(&'a str),
    /// The text between the quotes of `@"name"` is raw, as in a string.
    At(&'a str),
    Hash(&'a str),
    Bang(&'a str),
    Caret(&'a str),
    /// Decimal or hexadecimal digits.
    Int(&'a str),
    Float(&'a str),
    /// The raw text between the quotes.
    Str(&'a str),
    Arrow,
    Punct(char),
    /// A string that does not end on its line.
    Unterminated,
    Eof,
}

#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    pos: usize,
}

fn is_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'.')
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, pos: 0 }
    }
    pub fn text(&self) -> &'a str {
        self.text
    }
    pub fn pos(&self) -> usize {
        self.pos
    }
    /// Continues at a byte offset that lies on a character boundary.
    pub fn seek(&mut self, pos: usize) {
        self.pos = pos;
    }
    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }
    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or("")
    }

    /// Skips white space and comments.
    pub fn skip_space(&mut self) {
        loop {
            match self.byte(self.pos) {
                b' ' | b'\t' | b'\n' | b'\r' => self.pos += 1,
                b'/' if self.byte(self.pos + 1) == b'/' => {
                    let rest = self.slice(self.pos, self.text.len());
                    self.pos += rest.find('\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn name_end(&self, mut at: usize, dash: bool) -> usize {
        while is_name(self.byte(at)) || (dash && self.byte(at) == b'-' && self.byte(at + 1) != b'>') {
            at += 1;
        }
        at
    }

    pub fn next_token(&mut self) -> (Tok<'a>, Span) {
        self.skip_space();
        let start = self.pos;
        let c = self.byte(start);
        let tok = match c {
            0 if start >= self.text.len() => Tok::Eof,
            b'%' | b'@' | b'#' | b'!' | b'^' => self.sigil(c),
            b'"' => self.string(),
            b'0'..=b'9' => self.number(),
            _ if is_name(c) && c != b'.' => {
                self.pos = self.name_end(start, false);
                Tok::Word(self.slice(start, self.pos))
            }
            b'-' if self.byte(start + 1) == b'>' => {
                self.pos += 2;
                Tok::Arrow
            }
            _ => {
                let ch = self.slice(start, self.text.len()).chars().next().unwrap_or('\0');
                self.pos += ch.len_utf8();
                Tok::Punct(ch)
            }
        };
        (tok, Span::new(start, self.pos))
    }

    fn sigil(&mut self, c: u8) -> Tok<'a> {
        let start = self.pos + 1;
        if c == b'@' && self.byte(start) == b'"' {
            self.pos = start;
            return match self.string() {
                Tok::Str(s) => Tok::At(s),
                other => other,
            };
        }
        let end = if c == b'%' && self.byte(start).is_ascii_digit() {
            let mut at = start;
            while self.byte(at).is_ascii_digit() {
                at += 1;
            }
            at
        } else {
            self.name_end(start, c != b'@')
        };
        self.pos = end;
        let name = self.slice(start, end);
        match c {
            _ if name.is_empty() => Tok::Punct(c as char),
            b'%' => Tok::Percent(name),
            b'@' => Tok::At(name),
            b'#' => Tok::Hash(name),
            b'!' => Tok::Bang(name),
            _ => Tok::Caret(name),
        }
    }

    fn string(&mut self) -> Tok<'a> {
        let start = self.pos + 1;
        let mut at = start;
        loop {
            match self.byte(at) {
                b'"' => {
                    self.pos = at + 1;
                    return Tok::Str(self.slice(start, at));
                }
                b'\\' if self.byte(at + 1).is_ascii() && self.byte(at + 1) != b'\n' && at + 1 < self.text.len() => {
                    at += 2
                }
                b'\n' => break,
                0 if at >= self.text.len() => break,
                _ => at += 1,
            }
        }
        self.pos = at;
        Tok::Unterminated
    }

    fn number(&mut self) -> Tok<'a> {
        let start = self.pos;
        let mut at = start;
        if self.byte(at) == b'0' && self.byte(at + 1) == b'x' && self.byte(at + 2).is_ascii_hexdigit() {
            at += 2;
            while self.byte(at).is_ascii_hexdigit() {
                at += 1;
            }
            self.pos = at;
            return Tok::Int(self.slice(start, at));
        }
        while self.byte(at).is_ascii_digit() {
            at += 1;
        }
        let mut float = false;
        if self.byte(at) == b'.' && !self.byte(at + 1).is_ascii_alphabetic() {
            float = true;
            at += 1;
            while self.byte(at).is_ascii_digit() {
                at += 1;
            }
        }
        if matches!(self.byte(at), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
            if self.byte(at + 1 + sign).is_ascii_digit() {
                float = true;
                at += 1 + sign;
                while self.byte(at).is_ascii_digit() {
                    at += 1;
                }
            }
        }
        self.pos = at;
        let text = self.slice(start, at);
        if float { Tok::Float(text) } else { Tok::Int(text) }
    }
}

/// The bytes a string literal stands for: `\n`, `\t`, `\"`, `\\` and two hexadecimal digits. Bytes that are not
/// UTF-8 become the replacement character.
pub fn unescape(raw: &str) -> String {
    let mut out = Vec::with_capacity(raw.len());
    let b = raw.as_bytes();
    let mut i = 0;
    while let Some(&c) = b.get(i) {
        if c != b'\\' {
            out.push(c);
            i += 1;
            continue;
        }
        let hex = |k: usize| b.get(i + k).and_then(|c| (*c as char).to_digit(16));
        match (b.get(i + 1), hex(1), hex(2)) {
            (_, Some(h), Some(l)) => {
                out.push((h * 16 + l) as u8);
                i += 3;
            }
            (Some(b'n'), ..) => {
                out.push(b'\n');
                i += 2;
            }
            (Some(b't'), ..) => {
                out.push(b'\t');
                i += 2;
            }
            (Some(&other), ..) => {
                out.push(other);
                i += 2;
            }
            (None, ..) => i += 1,
        }
    }
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// The text of a string literal, quotes included: printable ASCII as it is, the rest as two hexadecimal digits.
pub fn escape(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for &b in s.as_bytes() {
        match b {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\22"),
            0x20..=0x7e => out.push(b as char),
            _ => out.push_str(&format!("\\{b:02X}")),
        }
    }
    out.push('"');
    out
}

/// As [`escape`], with the short forms that people write: `\n`, `\t`, `\"`.
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for &b in s.as_bytes() {
        match b {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\\""),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7e => out.push(b as char),
            _ => out.push_str(&format!("\\{b:02X}")),
        }
    }
    out.push('"');
    out
}
