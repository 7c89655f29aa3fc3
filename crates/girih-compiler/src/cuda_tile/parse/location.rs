//! `loc(...)` at the end of statements, and the aliases of a file.

use super::*;

/// Bytes an expanded location may take.
const MAX_LOC: usize = 1 << 14;

impl<'a> Parser<'a> {
    /// Notes where `!name = ...` and `#name = ...` stand: a line begins with them.
    pub(super) fn find_aliases(&mut self) {
        let text = self.lex.text();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let body = line.trim_start();
            if body.starts_with(['!', '#']) {
                let mut lex = Lexer::new(text);
                lex.seek(at + line.len() - body.len());
                if let (Tok::Bang(name) | Tok::Hash(name), _) = lex.next_token()
                    && lex.next_token().0 == Tok::Punct('=')
                {
                    self.aliases.entry(name).or_insert(lex.pos());
                }
            }
            at += line.len();
        }
    }

    /// `loc(...)`, if it stands here.
    pub(super) fn location(&mut self) -> Res<Loc> {
        if !(self.is_word("loc") && self.peek() == Tok::Punct('(')) {
            return Ok(Loc::Unknown);
        }
        self.advance();
        let inner = self.balanced()?;
        Ok(self.locate(inner))
    }

    /// The text between the parenthesis that stands here and the one that closes it.
    fn balanced(&mut self) -> Res<&'a str> {
        let open = self.span;
        let mut depth = 0usize;
        loop {
            match self.tok {
                Tok::Punct('(') => depth += 1,
                Tok::Punct(')') => depth -= 1,
                Tok::Eof => return self.error(Code::Syntax, open, "this parenthesis is not closed"),
                _ => {}
            }
            let at = self.span.start as usize;
            self.advance();
            if depth == 0 {
                return Ok(self.lex.text().get(open.end as usize..at).unwrap_or("").trim());
            }
        }
    }

    fn locate(&self, inner: &str) -> Loc {
        let mut out = String::new();
        if !self.expand(inner, 0, &mut 1000, &mut out) {
            return Loc::Other(inner.to_string());
        }
        let mut lex = Lexer::new(&out);
        let mut next = || lex.next_token().0;
        match (next(), next(), next(), next(), next(), next()) {
            (Tok::Word("unknown"), Tok::Eof, ..) => Loc::Unknown,
            (Tok::Str(f), Tok::Punct(':'), Tok::Int(l), Tok::Punct(':'), Tok::Int(c), Tok::Eof) => {
                match (l.parse(), c.parse()) {
                    (Ok(line), Ok(column)) => Loc::File { file: crate::base::lexer::unescape(f), line, column },
                    _ => Loc::Other(out),
                }
            }
            _ => Loc::Other(out),
        }
    }

    /// Replaces aliases by what they stand for; false when that grows too long or has no end.
    fn expand(&self, text: &str, depth: u32, budget: &mut u32, out: &mut String) -> bool {
        *budget = budget.saturating_sub(1);
        if depth > 32 || *budget == 0 {
            return false;
        }
        let mut lex = Lexer::new(text);
        let mut copied = 0;
        loop {
            let (tok, span) = lex.next_token();
            match tok {
                Tok::Eof => break,
                Tok::Hash(name) => {
                    let Some(&at) = self.aliases.get(name) else { continue };
                    out.push_str(text.get(copied..span.start as usize).unwrap_or(""));
                    copied = span.end as usize;
                    let body = self.alias_text(at);
                    let body = body.strip_prefix("loc(").and_then(|b| b.strip_suffix(')')).unwrap_or(body);
                    if !self.expand(body, depth + 1, budget, out) {
                        return false;
                    }
                }
                _ => {}
            }
            if out.len() > MAX_LOC {
                return false;
            }
        }
        out.push_str(text.get(copied..).unwrap_or(""));
        out.len() <= MAX_LOC
    }

    /// The text of an alias's definition: to the end of its line, or further while brackets are open.
    fn alias_text(&self, at: usize) -> &'a str {
        let text = self.lex.text();
        let mut lex = self.lex.clone();
        lex.seek(at);
        let (mut depth, mut first, mut end) = (0i64, None, at);
        loop {
            let (tok, span) = lex.next_token();
            let new_line = text.get(end..span.start as usize).is_some_and(|t| t.contains('\n'));
            if tok == Tok::Eof || span.start as usize > at + MAX_LOC || (first.is_some() && depth <= 0 && new_line) {
                return text.get(first.unwrap_or(at)..end).unwrap_or("");
            }
            match tok {
                Tok::Punct('(' | '<' | '{' | '[') => depth += 1,
                Tok::Punct(')' | '>' | '}' | ']') => depth -= 1,
                _ => {}
            }
            first.get_or_insert(span.start as usize);
            end = span.end as usize;
        }
    }

    /// Takes an alias definition at module level.
    pub(super) fn alias_definition(&mut self) -> Res<()> {
        let is_type = matches!(self.tok, Tok::Bang(_));
        self.advance();
        self.expect('=')?;
        if self.is_word("loc") {
            self.location()?;
        } else if is_type {
            self.ty()?;
        } else {
            let end = self.span.start as usize + self.alias_text(self.span.start as usize).len();
            // Debug attributes have a syntax of their own and matter only where a location names them.
            let debug = matches!(self.tok, Tok::Hash(n) if n.starts_with("cuda_tile.di_"));
            if debug {
                self.seek(end);
            } else {
                self.any_attr()?;
            }
        }
        Ok(())
    }
}
