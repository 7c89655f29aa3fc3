//! Makes a user's words safe to show. The names that a program gives its kernels, files and values may contain
//! anything: a line end, a terminal's escape sequence, the end of a comment.
//!
//! * [`Label`]: on one line of plain characters, for comments in emitted source and printed IR
//! * [`Quoted`]: in quotes, for string literals in emitted source and printed IR
//! * [`visible`], [`visible_lines`], [`visible_in_place`]: for terminals and messages
//!
//! ```text
//! "k\x1b[2J"   -->   k\u{1b}[2J
//! ```
//! Characters are escaped as Rust writes them, `\u{1b}`.

use std::borrow::Cow;
use std::fmt;

/// The most characters of a user's text that a label keeps.
const LONGEST: usize = 100;

/// A user's words in a form that is safe in a comment of any language we print: a line of printable ASCII that ends no
/// comment, opens none, does not continue on another line and is not a trigraph. The only way from a user's text to a
/// comment.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Label(String);

/// Returns true if a label shows the character as itself. A backslash only begins an escape.
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~') && !matches!(c, '\\' | '"' | '*' | '?')
}

impl Label {
    pub fn new(text: &str) -> Label {
        let kept = text.char_indices().nth(LONGEST).map(|(end, _)| &text[..end]);
        let Label(mut out) = Label::whole(kept.unwrap_or(text));
        out.push_str(if kept.is_some() { "..." } else { "" });
        Label(out)
    }

    /// The whole text, at any length.
    pub fn whole(text: &str) -> Label {
        let mut out = String::new();
        text.chars().for_each(|c| push(&mut out, c, is_plain(c)));
        Label(out)
    }

    /// Reads a printed label; `None` if no label prints as this text.
    pub fn parse(text: &str) -> Option<Label> {
        let mut rest = text;
        while let Some(at) = rest.find(|c| !is_plain(c)) {
            let (digits, after) = rest.get(at..)?.strip_prefix("\\u{")?.split_once('}')?;
            let number = u32::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit()));
            number.and_then(char::from_u32)?;
            rest = after;
        }
        Some(Label(text.to_string()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn push(out: &mut String, c: char, plain: bool) {
    if plain {
        out.push(c);
    } else {
        out.push_str(&format!("\\u{{{:x}}}", c as u32));
    }
}

/// A user's text that is shown between quotes only: the output of a kernel, or the message of its failure. The only way
/// from such a text to emitted source.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Quoted(String);

impl Quoted {
    pub fn new(text: &str) -> Quoted {
        Quoted(text.to_string())
    }

    /// The text itself, for code that prints it. Source has [`Quoted::in_c_format`].
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// The text inside a string literal of C that is a format of `printf`: printable ASCII as it is, except characters
    /// that C or the format may read otherwise, `\n`, the rest in octal.
    pub fn in_c_format(&self) -> String {
        let mut out = String::new();
        for b in self.0.bytes() {
            match b {
                b'\n' => out.push_str("\\n"),
                b'%' => out.push_str("%%"),
                b' '..=b'~' if !matches!(b, b'"' | b'\\' | b'?') => out.push(b as char),
                _ => out.push_str(&format!("\\{b:03o}")),
            }
        }
        out
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(&self.0))
    }
}

/// Returns true if a character acts on a terminal, or changes the order or extent of the text around it, instead of
/// being visible: controls of ASCII and Latin-1, bidirectional controls, separators of lines, characters without width,
/// tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn escaped(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&keep) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push(&mut out, c, keep(c)));
    Cow::Owned(out)
}

/// The text with every invisible character escaped: for names, and for text on one line.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !is_hidden(c))
}

/// As [`visible`], for text of several lines: line ends and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !is_hidden(c) || matches!(c, '\n' | '\t'))
}

/// As [`visible_lines`], with each hidden character replaced by signs of the same number of bytes, for texts that spans
/// point into. Hidden characters of one byte are left to the renderer of the excerpt, which has pictures for them.
pub fn visible_in_place(text: &str) -> Cow<'_, str> {
    let kept = |c: char| c.is_ascii() || !is_hidden(c);
    if text.chars().all(kept) {
        return Cow::Borrowed(text);
    }
    let sign = |c: char| match c.len_utf8() {
        2 => "\u{bf}",
        3 => "\u{fffd}",
        _ => "\u{fffd}?",
    };
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| if kept(c) { out.push(c) } else { out.push_str(sign(c)) });
    Cow::Owned(out)
}

/// A string literal of the IRs whose bodies are indented, and of kernel IR: printable ASCII as it is, `\"`, `\\`, `\n`,
/// the rest by number. `lines` reads it back.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c => push(&mut out, c, matches!(c, ' '..='~')),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that could matter, alone, doubled, and between and before others that could.
    fn hostile() -> Vec<String> {
        let mut chars: Vec<char> = (0..0x180).filter_map(char::from_u32).collect();
        chars.extend("\u{85}\u{2028}\u{2029}\u{202e}\u{2066}\u{200d}\u{feff}\u{e0041}\u{10ffff}漢é".chars());
        let mut out: Vec<String> =
            ["", "*/", "/*", "//", "\\\n", "\\ \n", "??/", "??/\n", "k\\", "\r\nint x;", "\0", "\\u{41}", "\\u{zz}"]
                .map(String::from)
                .to_vec();
        for &c in &chars {
            for (before, after) in [("", ""), ("a", "b"), ("\\", ""), ("*", "/"), ("/", ""), ("?", "/"), ("", "\n")] {
                out.push(format!("{before}{c}{after}"));
            }
        }
        out.push("x".repeat(100_000));
        out
    }

    #[test]
    fn a_label_stays_in_its_comment() {
        for text in hostile() {
            let label = Label::new(&text);
            let shown = label.as_str();
            assert!(shown.bytes().all(|b| (0x20..0x7f).contains(&b)), "{text:?} --> {shown:?}");
            assert!(!shown.ends_with('\\') && shown.len() <= 10 * LONGEST + 3, "{text:?} --> {shown:?}");
            for end in ["*/", "/*", "??", "\"", "\\\\", "\\ "] {
                assert!(!shown.contains(end), "{text:?} --> {shown:?}");
            }
            assert_eq!(Label::parse(shown), Some(label.clone()), "{text:?}");
        }
        let (a, b) = (Label::new("a\nb"), Label::new("a\\u{a}b"));
        assert_ne!(a, b, "an escape and its text look the same");
        for wrong in ["\n", "\\", "\\n", "\\u{", "\\u{}", "\\u{+1}", "\\u{d800}", "é", "*/"] {
            assert_eq!(Label::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn nothing_hidden_is_left() {
        for text in hostile() {
            let (name, lines) = (visible(&text), visible_lines(&text));
            assert!(!name.chars().any(is_hidden), "{text:?} --> {name:?}");
            assert!(!lines.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t'), "{text:?} --> {lines:?}");
            assert_eq!(visible(&name), name);
            let in_place = visible_in_place(&text);
            assert_eq!(in_place.len(), text.len());
            assert!(!in_place.chars().any(|c| is_hidden(c) && !c.is_ascii()), "{text:?} --> {in_place:?}");
            if !text.chars().any(is_hidden) {
                assert_eq!(name, text);
            }
        }
        assert_eq!(visible("k\u{1b}[2J\n漢é"), "k\\u{1b}[2J\\u{a}漢é");
        assert_eq!(visible_lines("a\tb\n\u{202e}"), "a\tb\n\\u{202e}");
    }

    #[test]
    fn what_is_quoted_reads_back() {
        for text in hostile() {
            let quoted = quote(&text);
            assert!(quoted.bytes().all(|b| (0x20..0x7f).contains(&b)), "{text:?} --> {quoted}");
            let tokens = crate::base::lines::lex(&quoted, crate::base::Code::MalformedIr).unwrap();
            assert_eq!(tokens[0].tok, crate::base::lines::Tok::Str(text));
        }
    }
}
