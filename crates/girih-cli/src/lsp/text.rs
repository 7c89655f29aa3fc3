//! A document's text, and the places in it as the protocol counts them.
//!
//! In: text, byte offsets. Out: lines and columns, from 0; columns in units of UTF-16, or of bytes where the client agrees to that.
//!
//! Example: in `é%x` the byte offset 2 is column 1 of UTF-16, and column 2 of UTF-8.
//!
//! Invariant: any place that a client sends is some offset of the text; one behind the end of a line is the line's end.

use serde_json::{Value, json};

/// How columns are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    #[default]
    Utf16,
    Utf8,
}

#[derive(Clone, Debug, Default)]
pub struct Text {
    pub text: String,
    /// Where lines begin.
    starts: Vec<usize>,
    encoding: Encoding,
}

impl Text {
    pub fn new(text: String, encoding: Encoding) -> Text {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(breaks).collect();
        Text { text, starts, encoding }
    }

    fn line(&self, line: usize) -> &str {
        let from = self.starts.get(line).copied().unwrap_or(self.text.len());
        let to = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        self.text.get(from..to).unwrap_or("").trim_end_matches(['\n', '\r'])
    }

    /// The offset of a place; `None` if the position is malformed.
    pub fn offset(&self, position: &Value) -> Option<usize> {
        let line = usize::try_from(position["line"].as_u64()?).ok()?;
        let column = usize::try_from(position["character"].as_u64()?).ok()?;
        let Some(start) = self.starts.get(line) else { return Some(self.text.len()) };
        let mut units = 0;
        for (at, c) in self.line(line).char_indices() {
            if units >= column {
                return Some(start + at);
            }
            units += self.width(c);
        }
        Some(start + self.line(line).len())
    }

    fn width(&self, c: char) -> usize {
        match self.encoding {
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf8 => c.len_utf8(),
        }
    }

    /// The place of an offset.
    pub fn position(&self, offset: usize) -> Value {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|s| *s <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0);
        // Within a character: its beginning.
        let within = self.text.get(start..).unwrap_or("").char_indices();
        let before = within.take_while(|(at, c)| start + at + c.len_utf8() <= offset);
        let column: usize = before.map(|(_, c)| self.width(c)).sum();
        json!({ "line": line, "character": column })
    }

    pub fn range(&self, from: usize, to: usize) -> Value {
        json!({ "start": self.position(from), "end": self.position(to) })
    }

    pub fn whole(&self) -> Value {
        self.range(0, self.text.len())
    }

    /// Applies a client's change: to a range of the text, or to all of it.
    pub fn change(&mut self, change: &Value) -> Option<()> {
        let new = change["text"].as_str()?;
        let range = &change["range"];
        let text = match range.is_null() {
            true => new.to_string(),
            false => {
                let (from, to) = (self.offset(&range["start"])?, self.offset(&range["end"])?);
                let (from, to) = (from.min(to), from.max(to));
                format!("{}{new}{}", self.text.get(..from)?, self.text.get(to..)?)
            }
        };
        *self = Text::new(text, self.encoding);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_offsets_are_inverse_in_both_encodings() {
        let text = "a\r\né%x 𝄞y\n\nend";
        for encoding in [Encoding::Utf16, Encoding::Utf8] {
            let t = Text::new(text.to_string(), encoding);
            for (at, c) in text.char_indices() {
                // The end of a line is one place, wherever its break is.
                if c != '\n' || !text[..at].ends_with('\r') {
                    assert_eq!(t.offset(&t.position(at)), Some(at), "{encoding:?} {at}");
                }
            }
            assert_eq!(t.offset(&t.position(text.len())), Some(text.len()));
        }
        let (wide, bytes) = (Text::new(text.into(), Encoding::Utf16), Text::new(text.into(), Encoding::Utf8));
        let y = text.find('y').unwrap();
        assert_eq!(wide.position(y), json!({ "line": 1, "character": 6 }));
        assert_eq!(bytes.position(y), json!({ "line": 1, "character": 9 }));
        assert_eq!(wide.offset(&json!({ "line": 1, "character": 99 })), Some(text.find("\n\n").unwrap()));
        assert_eq!(wide.offset(&json!({ "line": 99, "character": 0 })), Some(text.len()));
        assert_eq!(wide.offset(&json!({ "line": -1, "character": 0 })), None);
    }

    #[test]
    fn changes_are_of_a_range_or_of_all() {
        let mut t = Text::new("one\ntwo\n".into(), Encoding::Utf16);
        let at = |line: u32, character: u32| json!({ "line": line, "character": character });
        t.change(&json!({ "range": { "start": at(0, 1), "end": at(1, 1) }, "text": "N-" })).unwrap();
        assert_eq!(t.text, "oN-wo\n");
        t.change(&json!({ "text": "new" })).unwrap();
        assert_eq!((t.text.as_str(), t.position(3)), ("new", at(0, 3)));
        assert!(t.change(&json!({ "range": 7, "text": "x" })).is_none() && t.change(&json!({})).is_none());
    }
}
