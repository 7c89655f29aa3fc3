//! The file: modules, entries, functions, globals and aliases.

use super::attrs::AnyAttr;
use super::*;
use crate::base::words::did_you_mean;
use crate::cuda_tile::ops;

/// The help of E0107.
const PROGRAM: &str = "a program is `cuda_tile.module @name { entry @kernel(...) { ... } }`";

impl<'a> Parser<'a> {
    pub(super) fn file(&mut self) {
        let _ = self.items(None);
        if self.errors == 0 && self.modules == 0 && self.module.funcs.is_empty() && self.module.globals.is_empty() {
            let end = self.lex.text().len();
            let span = Span::new(0, end.min(1));
            let d = Diagnostic::error(Code::NoModule, "the file has no module and no entry").at(span);
            self.report(d.help(PROGRAM));
        }
    }

    /// Items up to the closing brace, or to the end of the file.
    fn items(&mut self, open: Option<Span>) -> Res<()> {
        loop {
            match self.tok {
                Tok::Eof => {
                    let Some(open) = open else { return Ok(()) };
                    let d = Diagnostic::error(Code::Syntax, "the file ends inside a module").at(self.span);
                    self.report(d.label(open, "the module starts here"));
                    return Err(Failed);
                }
                Tok::Punct('}') if open.is_some() => return Ok(()),
                _ => {
                    let start = self.span.start;
                    if self.item(open.is_some()).is_err() {
                        if self.span.start == start {
                            self.advance();
                        }
                        self.next_item()?;
                    }
                }
            }
        }
    }

    /// Goes on to the next item after an error.
    fn next_item(&mut self) -> Res<()> {
        loop {
            match self.tok {
                Tok::Eof => return Ok(()),
                Tok::Punct('}') => return Ok(()),
                Tok::Punct('{') => self.skip_braces()?,
                Tok::Word(w) if is_item(w) => return Ok(()),
                _ => self.advance(),
            }
        }
    }

    fn item(&mut self, inside: bool) -> Res<()> {
        let start = self.span;
        let (word, generic) = match self.tok {
            Tok::Word(w) => (w, false),
            Tok::Str(w) => (w, true),
            Tok::Bang(_) | Tok::Hash(_) => return self.alias_definition(),
            Tok::Percent(_) => return self.statements_outside("this statement is outside any entry".into()),
            _ if inside => return self.expected("`entry` or `global`"),
            _ => return self.expected("`cuda_tile.module`"),
        };
        let name = word.strip_prefix("cuda_tile.").unwrap_or(word);
        match name {
            "module" | "builtin.module" => self.module_item(word, generic),
            "entry" if generic => self.generic_function(FuncKind::Entry, start),
            "experimental$func" | "testing$func" if generic => {
                self.extension(name, start);
                self.generic_function(FuncKind::Function, start)
            }
            "global" if generic => self.generic_global(start),
            "entry" => self.entry(start),
            "global" => self.global(start),
            "experimental$func" | "testing$func" | "func" => self.func_item(name, start),
            _ if ops::by_name(name).is_some() => {
                self.statements_outside(format!("the operation `{name}` is outside any entry"))
            }
            _ => {
                let mut d =
                    Diagnostic::error(Code::Syntax, format!("expected `entry`, `global` or a module, found `{word}`"))
                        .at(start);
                if let Some(question) = did_you_mean(name, ["entry", "global", "module"]) {
                    d = d.help(question);
                }
                self.report(d);
                Err(Failed)
            }
        }
    }

    fn module_item(&mut self, word: &str, generic: bool) -> Res<()> {
        let start = self.span;
        self.advance();
        let mut dict = vec![];
        let mut name = None;
        if generic {
            self.expect('(')?;
            self.expect(')')?;
            dict = self.properties()?;
            self.expect('(')?;
        } else {
            if let Tok::At(n) = self.tok {
                name = Some(unescape(n));
                self.advance();
            }
            if self.eat_word("attributes") {
                dict = self.dict()?;
            }
        }
        let mut producer = None;
        for (key, value) in dict {
            match (key.as_str(), value) {
                ("sym_name", AnyAttr::Str(s)) => name = Some(s),
                ("producer", AnyAttr::Str(s)) => producer = Some(s),
                _ => {}
            }
        }
        let builtin = word == "builtin.module" || (word == "module" && name.is_none());
        if !builtin {
            if self.within {
                return self.error(Code::Syntax, start, "a module cannot stand in another");
            }
            self.modules += 1;
            if self.modules == 1 && self.module.funcs.is_empty() && self.module.globals.is_empty() {
                (self.module.name, self.module.producer) = (name, producer);
            } else {
                let (globals, funcs) = (self.module.globals.len(), self.module.funcs.len());
                let name = name.unwrap_or_default();
                self.module.later.push(Later { name, producer, globals, funcs, span: start });
            }
        }
        let open = self.span;
        self.expect('{')?;
        let outside = self.within;
        self.within |= !builtin;
        let read = self.nested(|p| p.items(Some(open)));
        self.within = outside;
        read?;
        self.expect('}')?;
        if generic {
            self.expect(')')?;
            if self.is('{') {
                self.dict()?;
            }
            self.expect(':')?;
            self.function_type()?;
        }
        self.location()?;
        Ok(())
    }

    fn define(&mut self, name: &str, span: Span) {
        if let Some(&first) = self.symbols.get(name) {
            let mut d = Diagnostic::error(Code::Redefinition, format!("@{name} is defined twice"))
                .at(span)
                .label(first, "first defined here");
            if !self.module.later.is_empty() {
                d = d.help("the modules of a file share one space of names");
            }
            self.report(d);
        } else {
            self.symbols.insert(name.to_string(), span);
        }
    }

    fn entry(&mut self, start: Span) -> Res<()> {
        self.advance();
        let at = self.span;
        let name = self.symbol()?;
        self.define(&name, at);
        self.expect('(')?;
        let args = self.args()?;
        if self.eat_word("attributes") {
            self.dict()?;
        }
        let mut hints = Hints::default();
        if self.eat_word("optimization_hints") {
            self.expect('=')?;
            hints = self.hints()?;
        }
        let func = empty(FuncKind::Entry, name, vec![], hints, start);
        let mut func = self.function(func, args, true)?;
        func.span = self.since(start);
        if self.is('{') {
            let at = self.span;
            self.dict()?;
            let message = "attributes of an entry are ignored";
            self.report(Diagnostic::warning(Code::IgnoredAttribute, message).at(self.since(at)));
        }
        func.loc = self.location()?;
        self.module.funcs.push(func);
        Ok(())
    }

    fn func_item(&mut self, word: &str, start: Span) -> Res<()> {
        self.advance();
        self.extension(word, start);
        let at = self.span;
        let name = self.symbol()?;
        self.define(&name, at);
        self.expect('(')?;
        let args = self.args()?;
        let results = if self.eat_arrow() { self.type_list()? } else { vec![] };
        let func = empty(FuncKind::Function, name, results, Hints::default(), start);
        let mut func = self.function(func, args, true)?;
        func.span = self.since(start);
        func.loc = self.location()?;
        self.module.funcs.push(func);
        Ok(())
    }

    fn extension(&mut self, word: &str, at: Span) {
        let message = format!("`{word}` is an extension; functions of the public dialect are entries");
        self.report(Diagnostic::note(Code::Extension, message).at(at));
    }

    /// Statements in a place for items only: reports one error for all of them, and then the errors in each.
    fn statements_outside(&mut self, message: String) -> Res<()> {
        let start = self.span;
        let d = Diagnostic::error(Code::NoModule, message).at(start);
        self.report(d.help(PROGRAM));
        self.outside += 1;
        let name = format!("the statements at byte {}", start.start);
        let func = empty(FuncKind::Function, name, vec![], Hints::default(), start);
        // They may have belonged to the function before them and use its names.
        let strayed = !self.module.funcs.is_empty();
        self.lenient += strayed as u32;
        let read = self.function(func, vec![], false);
        self.lenient -= strayed as u32;
        self.module.funcs.push(read?);
        Ok(())
    }

    fn generic_function(&mut self, kind: FuncKind, start: Span) -> Res<()> {
        self.advance();
        self.expect('(')?;
        self.expect(')')?;
        let at = self.span;
        let dict = self.properties()?;
        let (mut name, mut hints) = (None, Hints::default());
        for (key, value) in dict {
            match (key.as_str(), value) {
                ("sym_name", AnyAttr::Str(s)) => name = Some(s),
                ("optimization_hints", AnyAttr::Hints(h)) => hints = h,
                _ => {}
            }
        }
        let Some(name) = name else {
            let what = if kind == FuncKind::Entry { "an entry" } else { "a function" };
            return self.error(Code::MissingAttribute, at, format!("{what} needs the attribute `sym_name`"));
        };
        self.define(&name, at);
        self.expect('(')?;
        let func = empty(kind, name, vec![], hints, start);
        let mut func = self.function(func, vec![], true)?;
        self.expect(')')?;
        if self.is('{') {
            self.dict()?;
        }
        self.expect(':')?;
        self.function_type()?;
        func.span = self.since(start);
        func.loc = self.location()?;
        self.module.funcs.push(func);
        Ok(())
    }

    fn global(&mut self, start: Span) -> Res<()> {
        self.advance();
        let mut private = false;
        if let Tok::Word(w @ ("public" | "private")) = self.tok {
            private = w == "private";
            self.advance();
        }
        let constant = self.eat_word("constant");
        let at = self.span;
        let name = self.symbol()?;
        self.define(&name, at);
        let mut alignment = 0;
        if self.eat_word("alignment") {
            self.expect('=')?;
            let at = self.span;
            alignment = match u64::try_from(self.int()?) {
                Ok(a) => a,
                Err(_) => return self.error(Code::BadLiteral, at, "an alignment must not be negative"),
            };
        }
        let mut value = self.elements()?;
        self.expect(':')?;
        let at = self.span;
        let ty = self.ty()?;
        let at = self.since(at);
        self.shape_elements(&mut value, &ty, at);
        let span = self.since(start);
        let loc = self.location()?;
        self.module.globals.push(Global { name, private, constant, alignment, value, span, loc });
        Ok(())
    }

    fn generic_global(&mut self, start: Span) -> Res<()> {
        self.advance();
        self.expect('(')?;
        self.expect(')')?;
        let at = self.span;
        let dict = self.properties()?;
        let mut g = Global {
            name: String::new(),
            private: false,
            constant: false,
            alignment: 0,
            value: Elements { dtype: crate::num::DType::I8, shape: vec![], bits: vec![] },
            span: start,
            loc: Loc::UNKNOWN,
        };
        for (key, value) in dict {
            match (key.as_str(), value) {
                ("sym_name", AnyAttr::Str(s)) => g.name = s,
                ("constant", AnyAttr::Unit | AnyAttr::Bool(true)) => g.constant = true,
                ("alignment", AnyAttr::Int(i, _)) if i >= 0 => g.alignment = i as u64,
                ("symbol_visibility", AnyAttr::Word(w)) => g.private = w == "private",
                ("symbol_visibility", AnyAttr::Int(i, _)) => g.private = i == 1,
                ("value", AnyAttr::Elements(e)) => g.value = e,
                _ => {}
            }
        }
        if g.name.is_empty() || g.value.bits.is_empty() {
            return self.error(Code::MissingAttribute, at, "a global needs the attributes `sym_name` and `value`");
        }
        self.define(&g.name, at);
        if self.is('{') {
            self.dict()?;
        }
        self.expect(':')?;
        self.function_type()?;
        g.span = self.since(start);
        g.loc = self.location()?;
        self.module.globals.push(g);
        Ok(())
    }
}

pub(super) fn is_item(word: &str) -> bool {
    let name = word.strip_prefix("cuda_tile.").unwrap_or(word);
    matches!(name, "entry" | "global" | "module" | "builtin.module" | "experimental$func" | "testing$func")
}

fn empty(kind: FuncKind, name: String, results: Vec<Type>, hints: Hints, span: Span) -> Func {
    Func {
        kind,
        name,
        results,
        hints,
        values: Default::default(),
        ops: Default::default(),
        regions: Default::default(),
        span,
        loc: Loc::UNKNOWN,
    }
}
