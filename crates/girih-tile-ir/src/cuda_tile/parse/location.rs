//! `loc(...)` at the end of statements, and the aliases of a file.

use std::sync::Arc;

use super::*;
use crate::cuda_tile::loc::{CompileUnit, File, Scope, ScopeKind, Subprogram};

/// The meaning of an alias of a debug attribute.
#[derive(Clone)]
pub(super) enum DebugAttr {
    Loc(Loc),
    Scope(Scope),
    /// Its definition is being read, or could not be read.
    Broken,
}

impl<'a> Parser<'a> {
    /// Notes the places of `!name = ...` and `#name = ...`, each at the beginning of a line.
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

    /// Parses the text between the parentheses of `loc(...)`, or in a place where only a location may be.
    fn loc_body(&mut self) -> Res<Loc> {
        let start = self.span;
        let loc = match self.tok {
            Tok::Word("unknown") => {
                self.advance();
                return Ok(Loc::UNKNOWN);
            }
            Tok::Word("loc") => {
                self.advance();
                self.expect('(')?;
                let loc = self.nested(|p| p.loc_body())?;
                self.expect(')')?;
                return Ok(loc);
            }
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
                if self.eat('<') {
                    let at = self.span;
                    self.debug_or_any_attr()?;
                    self.expect('>')?;
                    let message = "the metadata of a fused location has no meaning here and is ignored";
                    self.report(Diagnostic::warning(Code::IgnoredAttribute, message).at(self.since(at)));
                }
                self.expect('[')?;
                Loc::fused(self.list(']', |p| p.nested(|p| p.loc_body()))?)
            }
            Tok::Str(_) => self.place_or_name()?,
            Tok::Hash(_) | Tok::Word("di_loc" | "cuda_tile.di_loc") => match self.debug_attr()? {
                DebugAttr::Loc(loc) => return Ok(loc),
                DebugAttr::Scope(_) => {
                    return self.error(Code::Syntax, start, "expected a location, found a scope");
                }
                DebugAttr::Broken => return Ok(Loc::UNKNOWN),
            },
            _ => return self.expected("a location"),
        };
        self.fits(loc, start)
    }

    fn fits<T>(&mut self, tree: Option<T>, start: Span) -> Res<T> {
        match tree {
            Some(tree) => Ok(tree),
            None => {
                self.error(Code::TooLarge, self.since(start), "this location nests too deeply, or has too many parts")
            }
        }
    }

    /// `"file":line:column`, perhaps with an end that is not kept, or `"name"`, perhaps with another location.
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
        let line = self.line_number()?;
        self.expect(':')?;
        let column = self.line_number()?;
        if self.eat_word("to") {
            if !self.is(':') {
                self.line_number()?;
            }
            self.expect(':')?;
            self.line_number()?;
        }
        Ok(Some(Loc::file(text, line, column)))
    }

    fn line_number(&mut self) -> Res<u32> {
        let at = self.span;
        match u32::try_from(self.int()?) {
            Ok(n) => Ok(n),
            Err(_) => self.error(Code::BadLiteral, at, "a line or column must fit 32 bits"),
        }
    }

    /// A debug attribute, `#cuda_tile.di_...<...>`, or the alias of one.
    fn debug_attr(&mut self) -> Res<DebugAttr> {
        let start = self.span;
        let (full, hash) = match self.tok {
            Tok::Hash(w) => (w, true),
            Tok::Word(w) => (w, false),
            _ => return self.expected("a debug attribute"),
        };
        let name = full.strip_prefix("cuda_tile.").unwrap_or(full);
        if hash && name == full && self.aliases.contains_key(full) {
            return self.debug_alias(full);
        }
        if !is_debug(name) {
            return match hash && name == full {
                true => self.error(Code::UnknownAlias, start, format!("the alias `#{full}` is not defined")),
                false => self.error(Code::UnknownWord, start, format!("unknown debug attribute `{full}`")),
            };
        }
        self.advance();
        self.nested(|p| p.debug_body(name, start))
    }

    fn debug_alias(&mut self, name: &'a str) -> Res<DebugAttr> {
        let start = self.span;
        if let Some(found) = self.debug.get(name).cloned() {
            self.advance();
            return match found {
                DebugAttr::Broken if self.reading.contains(&name) => {
                    self.error(Code::Syntax, start, format!("the alias `#{name}` refers to itself"))
                }
                found => Ok(found),
            };
        }
        let Some(&at) = self.aliases.get(name) else {
            return self.error(Code::UnknownAlias, start, format!("the alias `#{name}` is not defined"));
        };
        self.debug.insert(name, DebugAttr::Broken);
        self.reading.push(name);
        self.advance();
        let back = (self.lex.clone(), self.tok, self.span, self.last_end);
        self.seek(at);
        let found = self.nested(|p| match p.tok {
            Tok::Word("loc") => Ok(DebugAttr::Loc(p.location()?)),
            _ => p.debug_attr(),
        });
        (self.lex, self.tok, self.span, self.last_end) = back;
        self.reading.pop();
        if let Ok(found) = &found {
            self.debug.insert(name, found.clone());
        }
        found
    }

    /// Parses the text after the name of a debug attribute.
    fn debug_body(&mut self, name: &str, start: Span) -> Res<DebugAttr> {
        self.expect('<')?;
        if name == "di_loc" {
            let loc = self.loc_body()?;
            self.expect_word("in")?;
            let scope = self.scope()?;
            self.expect('>')?;
            let loc = self.fits(Loc::scoped(loc, scope), start)?;
            return Ok(DebugAttr::Loc(loc));
        }
        if name == "di_file" {
            let name = self.string()?.into();
            self.expect_word("in")?;
            let directory = self.string()?.into();
            self.expect('>')?;
            return Ok(DebugAttr::Scope(Scope::file(File { name, directory })));
        }
        let mut fields = Fields::default();
        self.list('>', |p| p.debug_field(&mut fields))?;
        let at = self.since(start);
        let mut missing = |field: &str| {
            let message = format!("`{name}` needs `{field}`");
            self.report(Diagnostic::error(Code::MissingAttribute, message).at(at));
            Failed
        };
        let file = fields.file.ok_or_else(|| missing("file"))?;
        if name == "di_compile_unit" {
            return Ok(DebugAttr::Scope(Scope::compile_unit(CompileUnit { file })));
        }
        let line = fields.line.ok_or_else(|| missing("line"))?;
        if name == "di_lexical_block" {
            let scope = fields.scope.ok_or_else(|| missing("scope"))?;
            let column = fields.column.ok_or_else(|| missing("column"))?;
            let block = self.fits(Scope::lexical_block(scope, file, line, column), start)?;
            return Ok(DebugAttr::Scope(block));
        }
        Ok(DebugAttr::Scope(Scope::subprogram(Subprogram {
            file,
            line,
            name: fields.name.ok_or_else(|| missing("name"))?,
            linkage_name: fields.linkage_name.ok_or_else(|| missing("linkageName"))?,
            compile_unit: fields.compile_unit.ok_or_else(|| missing("compileUnit"))?,
            scope_line: fields.scope_line.unwrap_or(0),
        })))
    }

    fn debug_field(&mut self, fields: &mut Fields) -> Res<()> {
        let at = self.span;
        let Tok::Word(key) = self.tok else { return self.expected("the name of a field") };
        self.advance();
        self.expect('=')?;
        match key {
            "file" => match self.scope_as("di_file")?.kind() {
                ScopeKind::File(file) => fields.file = Some(file.clone()),
                _ => return self.error(Code::Syntax, at, "`file` must be a `di_file`"),
            },
            "compileUnit" => match self.scope_as("di_compile_unit")?.kind() {
                ScopeKind::CompileUnit(unit) => fields.compile_unit = Some(unit.clone()),
                _ => return self.error(Code::Syntax, at, "`compileUnit` must be a `di_compile_unit`"),
            },
            "scope" => fields.scope = Some(self.scope()?),
            "name" => fields.name = Some(self.string()?.into()),
            "linkageName" => fields.linkage_name = Some(self.string()?.into()),
            "line" => fields.line = Some(self.line_number()?),
            "scopeLine" => fields.scope_line = Some(self.line_number()?),
            "column" => fields.column = Some(self.line_number()?),
            _ => return self.error(Code::UnknownWord, at, format!("a debug attribute has no field `{key}`")),
        }
        Ok(())
    }

    fn scope(&mut self) -> Res<Scope> {
        let start = self.span;
        match self.debug_attr()? {
            DebugAttr::Scope(scope) => Ok(scope),
            DebugAttr::Loc(_) => self.error(Code::Syntax, start, "expected a scope, found a location"),
            // The error in its definition has been reported.
            DebugAttr::Broken => Err(Failed),
        }
    }

    /// A scope, which may lack its name, `<...>`, where only one kind is possible.
    fn scope_as(&mut self, name: &str) -> Res<Scope> {
        let start = self.span;
        if !self.is('<') {
            return self.scope();
        }
        match self.nested(|p| p.debug_body(name, start))? {
            DebugAttr::Scope(scope) => Ok(scope),
            _ => Err(Failed),
        }
    }

    fn debug_or_any_attr(&mut self) -> Res<()> {
        let debug = match self.tok {
            Tok::Hash(w) => is_debug(w.strip_prefix("cuda_tile.").unwrap_or(w)) || self.is_debug_alias(w),
            _ => false,
        };
        if debug { self.debug_attr().map(drop) } else { self.any_attr().map(drop) }
    }

    /// Returns true if an alias names a location or a debug attribute.
    fn is_debug_alias(&self, name: &str) -> bool {
        let mut name = name;
        // Aliases of aliases are followed for four steps.
        for _ in 0..4 {
            let Some(&at) = self.aliases.get(name) else { return false };
            let mut lex = self.lex.clone();
            lex.seek(at);
            match lex.next_token().0 {
                Tok::Word("loc") => return true,
                Tok::Hash(w) if is_debug(w.strip_prefix("cuda_tile.").unwrap_or(w)) => return true,
                Tok::Hash(w) => name = w,
                _ => return false,
            }
        }
        false
    }

    /// Takes an alias definition at module level.
    pub(super) fn alias_definition(&mut self) -> Res<()> {
        if let Tok::Hash(name) = self.tok
            && self.is_debug_alias(name)
        {
            // Only the first definition of a name counts; this one is read in its place too, for its errors.
            self.advance();
            self.expect('=')?;
            if self.is_word("loc") {
                self.location()?;
            } else {
                self.debug_attr()?;
            }
            return Ok(());
        }
        let is_type = matches!(self.tok, Tok::Bang(_));
        self.advance();
        self.expect('=')?;
        if is_type { self.ty().map(drop) } else { self.any_attr().map(drop) }
    }
}

/// The fields of a debug attribute, in any order.
#[derive(Default)]
struct Fields {
    file: Option<File>,
    compile_unit: Option<CompileUnit>,
    scope: Option<Scope>,
    name: Option<Arc<str>>,
    linkage_name: Option<Arc<str>>,
    line: Option<u32>,
    scope_line: Option<u32>,
    column: Option<u32>,
}

fn is_debug(name: &str) -> bool {
    matches!(name, "di_loc" | "di_file" | "di_compile_unit" | "di_subprogram" | "di_lexical_block")
}
