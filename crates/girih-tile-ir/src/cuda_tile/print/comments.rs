//! Comments and blank lines of the source, carried to the printed text.
//!
//! A comment on a line of its own stays on one, before the statement that follows it; a comment after a statement
//! stays after it. Parameters with comments among them are written one to a line. A blank line before a statement or a comment is kept; several become one.

use super::Printer;
use crate::base::lexer::{Lexer, Tok};

struct Comment {
    start: usize,
    text: String,
    /// True if only blanks come before it on its line.
    own_line: bool,
}

pub(super) struct Comments<'a> {
    text: &'a str,
    all: std::collections::VecDeque<Comment>,
}

impl<'a> Comments<'a> {
    pub fn new(text: &'a str) -> Comments<'a> {
        let mut all = std::collections::VecDeque::new();
        let mut lex = Lexer::new(text);
        let mut last = 0;
        loop {
            let (tok, span) = lex.next_token();
            let between = text.get(last..span.start as usize).unwrap_or("");
            let mut at = last;
            for line in between.split_inclusive('\n') {
                if let Some(i) = line.find("//") {
                    let start = at + i;
                    let before = text.get(..start).and_then(|t| t.rsplit('\n').next()).unwrap_or("");
                    let own_line = before.trim().is_empty();
                    all.push_back(Comment { start, text: line[i..].trim_end().to_string(), own_line });
                }
                at += line.len();
            }
            last = span.end as usize;
            if tok == Tok::Eof {
                return Comments { text, all };
            }
        }
    }

    /// Returns true if the line above the line of a place is blank.
    fn blank_above(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or("");
        let mut lines = before.rsplit('\n').skip(1);
        lines.next().is_some_and(|l| l.trim().is_empty())
    }

    /// The place of the brace that closes a block whose last statement ends at `at`.
    fn closing_brace(&self, at: usize) -> usize {
        let mut lex = Lexer::new(self.text);
        lex.seek(at);
        loop {
            if let (Tok::Eof | Tok::Punct('}'), span) = lex.next_token() {
                return span.start as usize;
            }
        }
    }
}

impl Printer<'_> {
    /// Writes the comments that come before a place, and the blank line above it.
    pub fn before(&mut self, at: u32) {
        self.flush(at as usize);
        // The statement's first line may begin before the place, with its results.
        self.blank(at as usize);
    }

    /// Returns true if a comment that is not written yet comes before a place.
    pub fn comment_before(&self, at: u32) -> bool {
        self.comments.as_ref().and_then(|c| c.all.front()).is_some_and(|c| c.start < at as usize)
    }

    fn flush(&mut self, at: usize) {
        while let Some(c) = self.comments.as_mut().and_then(|c| match c.all.front() {
            Some(first) if first.start < at => c.all.pop_front(),
            _ => None,
        }) {
            let bare = self.lines.last().is_some_and(|l| !l.is_empty() && !l.contains("//"));
            match c.own_line || !bare {
                true => {
                    self.blank(c.start);
                    self.line(&c.text);
                }
                false => {
                    if let Some(last) = self.lines.last_mut() {
                        last.push_str("  ");
                        last.push_str(&c.text);
                    }
                }
            }
        }
    }

    fn blank(&mut self, at: usize) {
        let wanted = self.comments.as_ref().is_some_and(|c| c.blank_above(at));
        let opens = |l: &String| l.is_empty() || l.trim_end().ends_with('{');
        if wanted && !self.lines.last().is_none_or(opens) {
            self.lines.push(String::new());
        }
    }

    /// Writes the comments within a statement that ends at a place, and the one after it.
    pub fn after(&mut self, end: u32) {
        let Some(c) = &self.comments else { return };
        let end = end as usize;
        let line_end = c.text.get(end..).and_then(|t| t.find('\n')).map_or(c.text.len(), |i| end + i);
        let behind = c.text.get(end..line_end).unwrap_or("");
        let only_a_comment = behind.find("//").is_some_and(|i| behind[..i].trim().is_empty());
        self.flush(if only_a_comment { line_end } else { end });
    }

    /// Writes the comments between the last statement of a block and its closing brace.
    pub fn before_close(&mut self, last: Option<u32>) {
        let Some(c) = &self.comments else { return };
        let at = match last {
            Some(last) => c.closing_brace(last as usize),
            // The end of the module: comments before the closing brace are inside it, the others are not.
            None => c.text.rfind('}').unwrap_or(0),
        };
        self.flush(at);
    }

    /// Writes the comments above the module.
    pub fn before_module(&mut self) {
        let Some(c) = &self.comments else { return };
        let mut lex = Lexer::new(c.text);
        let at = lex.next_token().1.start as usize;
        self.before(at as u32);
    }

    /// Writes the remaining comments.
    pub fn rest(&mut self) {
        self.flush(usize::MAX);
    }
}
