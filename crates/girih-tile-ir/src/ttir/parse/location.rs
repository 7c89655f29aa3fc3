//! `loc(...)`, and the aliases of a file.

use std::sync::Arc;

use super::*;

impl<'a> Parser<'a> {
    /// Notes where `#name = ...` is: a line begins with it.
    pub(super) fn find_aliases(&mut self) {
        let text = self.lex.text();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if line.starts_with(['#', '!']) {
                let mut lex = Lexer::new(text);
                lex.seek(at);
                if let (Tok::Hash(name), _) = lex.next_token()
                    && lex.next_token().0 == Tok::Punct('=')
                {
                    self.aliases.entry(name).or_insert(lex.pos());
                }
            }
            at += line.len();
        }
    }

    /// Lines of aliases, outside of functions.
    pub(super) fn skip_aliases(&mut self) -> Res<()> {
        while let Tok::Hash(_) | Tok::Bang(_) = self.tok {
            self.advance();
            self.expect('=')?;
            if self.is_word("loc") && self.peek() == Tok::Punct('(') {
                self.location()?;
            } else {
                // An alias of another kind: to the end of its line.
                let text = self.lex.text();
                let at = self.span.start as usize;
                let rest = text.get(at..).unwrap_or("");
                self.seek(at + rest.find('\n').unwrap_or(rest.len()));
            }
        }
        Ok(())
    }

    /// `loc(...)`, if it comes next.
    pub(super) fn location(&mut self) -> Res<Loc> {
        if !(self.is_word("loc") && self.peek() == Tok::Punct('(')) {
            return Ok(Loc::UNKNOWN);
        }
        self.advance();
        self.advance();
        let loc = self.nested(|p| p.loc_body())?;
        self.expect(')')?;
        Ok(loc)
    }

    fn loc_body(&mut self) -> Res<Loc> {
        let start = self.span;
        let loc = match self.tok {
            Tok::Word("unknown") => {
                self.advance();
                return Ok(Loc::UNKNOWN);
            }
            Tok::Word("loc") => return self.location(),
            Tok::Word("callsite") => {
                self.advance();
                self.expect('(')?;
                let callee = self.nested(|p| p.loc_body())?;
                self.expect_word("at")?;
                let caller = self.nested(|p| p.loc_body())?;
                self.expect(')')?;
                Loc::call_site(callee, caller)
            }
            Tok::Word("fused") => {
                self.advance();
                if self.is('<') {
                    self.skip_angles()?;
                }
                self.expect('[')?;
                let parts = self.list(']', |p| p.nested(|p| p.loc_body()))?;
                Loc::fused(parts)
            }
            Tok::Str(_) => self.place_or_name()?,
            Tok::Hash(name) => {
                self.advance();
                return self.alias(name, start);
            }
            _ => return self.expected("a location"),
        };
        match loc {
            Some(loc) => Ok(loc),
            None => self.fail(Code::TooLarge, start, "this location nests too deeply, or has too many parts"),
        }
    }

    /// `"file":line:column`, perhaps with an end that is not kept, or `"name"`, perhaps of another location.
    fn place_or_name(&mut self) -> Res<Option<Loc>> {
        let text: Arc<str> = self.string()?.into();
        if self.eat('(') {
            let loc = self.nested(|p| p.loc_body())?;
            self.expect(')')?;
            return Ok(Loc::named(text, loc));
        }
        if !self.eat(':') {
            return Ok(Loc::named(text, Loc::UNKNOWN));
        }
        let line = self.number()?;
        self.expect(':')?;
        let column = self.number()?;
        if self.eat_word("to") {
            if matches!(self.tok, Tok::Int(_)) {
                self.advance();
            }
            self.expect(':')?;
            self.number()?;
        }
        Ok(Some(Loc::file(text, line, column)))
    }

    fn number(&mut self) -> Res<u32> {
        let Tok::Int(text) = self.tok else { return self.expected("a number") };
        match text.parse() {
            Ok(n) => {
                self.advance();
                Ok(n)
            }
            Err(_) => self.fail(Code::BadLiteral, self.span, format!("`{text}` is not a line or a column")),
        }
    }

    /// The location that an alias stands for; each is read once.
    fn alias(&mut self, name: &'a str, span: Span) -> Res<Loc> {
        if let Some(loc) = self.locs.get(name) {
            return Ok(loc.clone());
        }
        let Some(&at) = self.aliases.get(name) else {
            return self.fail(Code::UnknownAlias, span, format!("unknown alias `#{name}`"));
        };
        if self.reading.contains(&name) {
            return self.fail(Code::UnknownAlias, span, format!("the alias `#{name}` stands for itself"));
        }
        let (back, last_end) = (self.span.start as usize, self.last_end);
        self.reading.push(name);
        self.seek(at);
        let loc = self.location()?;
        self.reading.pop();
        self.seek(back);
        self.last_end = last_end;
        self.locs.insert(name, loc.clone());
        Ok(loc)
    }

    /// The first location after a place in the text, which an error there is said to be at; unknown where it cannot be read.
    pub(super) fn nearest(&mut self, at: usize) -> Loc {
        let rest = self.lex.text().get(at..).unwrap_or("");
        let Some(found) = rest.find(" loc(") else { return Loc::UNKNOWN };
        self.reading.clear();
        self.seek(at + found);
        self.location().unwrap_or_default()
    }
}
