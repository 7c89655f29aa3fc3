//! Functions, regions and statements, and recovery after an error.

use super::custom::Results;
use super::*;
use crate::cuda_tile::ops::{self, OpInfo};

/// A parameter or region argument.
pub(super) struct Arg<'a> {
    pub name: Option<(&'a str, Span)>,
    pub ty: Type,
}

const MAX_PACK: u32 = 1 << 16;

impl<'a> Parser<'a> {
    /// `%a: T, %b: T` up to the closing parenthesis, which is taken.
    pub(super) fn args(&mut self) -> Res<Vec<Arg<'a>>> {
        self.list(')', |p| {
            let Tok::Percent(name) = p.tok else { return p.expected("a parameter, `%name: type`") };
            let span = p.span;
            p.advance();
            p.expect(':')?;
            let ty = p.ty()?;
            if p.is('{') {
                let span = p.span;
                p.dict()?;
                let message = "attributes of a parameter are ignored";
                p.report(Diagnostic::warning(Code::IgnoredAttribute, message).at(span));
            }
            p.location()?;
            Ok(Arg { name: Some((name, span)), ty })
        })
    }

    /// The body of a function whose signature has been read.
    pub(super) fn function(&mut self, mut func: Func, args: Vec<Arg<'a>>, braces: bool) -> Res<Func> {
        func.regions.push(Region::default());
        self.state = Some(FuncState { func, names: FxHashMap::default(), bound: vec![] });
        let read = self.fill_region(Func::BODY, args, Opcode::Return, braces);
        let state = self.state.take();
        read?;
        state.map(|s| renumber(&s.func)).ok_or(Failed)
    }

    /// `{ ... }` as a new region with the given arguments; `end` is inserted if the text has no terminator.
    pub(super) fn region(&mut self, args: Vec<Arg<'a>>, end: Opcode) -> Res<RegionId> {
        if self.depth >= MAX_DEPTH && self.is('{') {
            let message = format!("the text nests deeper than {MAX_DEPTH} levels");
            self.report(Diagnostic::error(Code::TooLarge, message).at(self.span));
            self.skip_braces()?;
            return Err(Failed);
        }
        let Some(state) = self.state.as_mut() else { return Err(Failed) };
        let id = state.func.regions.push(Region::default());
        self.nested(|p| p.fill_region(id, args, end, true))?;
        Ok(id)
    }

    fn fill_region(&mut self, id: RegionId, mut args: Vec<Arg<'a>>, end: Opcode, braces: bool) -> Res<()> {
        let open = self.span;
        if braces {
            self.expect('{')?;
        }
        let outer = self.state.as_ref().map_or(0, |s| s.bound.len());
        if matches!(self.tok, Tok::Caret(_)) {
            self.advance();
            let label = if self.eat('(') { self.args()? } else { vec![] };
            self.expect(':')?;
            if args.is_empty() {
                args = label;
            }
        }
        for (index, arg) in args.into_iter().enumerate() {
            let Some(state) = self.state.as_mut() else { return Err(Failed) };
            let (name, span) = arg.name.map_or((None, open), |(n, s)| (Some(n), s));
            let def = ValueDef::Arg { region: id, index: index as u32 };
            let v = state.func.values.push(Value { ty: arg.ty, def, name: name.map(str::to_string), span });
            state.func.regions[id].args.push(v);
            if let Some(name) = name {
                self.bind(name, vec![v], span);
            }
        }
        let closed = self.statements(id, braces.then_some(open));
        if let Some(state) = self.state.as_mut() {
            for name in state.bound.drain(outer..) {
                state.names.remove(name);
            }
            let f = &mut state.func;
            let last = f.regions[id].ops.last().map(|&o| f.ops[o].opcode);
            if last.is_none_or(|o| !ops::info(o).is_terminator()) {
                let span = Span { start: self.span.start, end: self.span.start };
                let op = f.ops.push(Op {
                    opcode: end,
                    operands: vec![],
                    groups: vec![0],
                    results: vec![],
                    attrs: vec![],
                    regions: vec![],
                    span,
                    loc: Loc::UNKNOWN,
                });
                f.regions[id].ops.push(op);
            }
        }
        closed?;
        if braces { self.expect('}') } else { Ok(()) }
    }

    /// Statements up to the brace that closes the block; if no brace opened it, at most up to the next item.
    fn statements(&mut self, region: RegionId, open: Option<Span>) -> Res<()> {
        loop {
            match self.tok {
                Tok::Punct('}') => return Ok(()),
                Tok::Eof | Tok::Bang(_) | Tok::Hash(_) if open.is_none() => return Ok(()),
                Tok::Word(w) | Tok::Str(w) if open.is_none() && module::is_item(w) => return Ok(()),
                Tok::Eof => {
                    let d = Diagnostic::error(Code::Syntax, "the file ends inside a block").at(self.span);
                    self.report(open.into_iter().fold(d, |d, open| d.label(open, "the block starts here")));
                    return Err(Failed);
                }
                Tok::Caret(_) => {
                    let message = "a region must have one block; branches between blocks are not part of the language";
                    let _: Res<()> = self.error(Code::Syntax, self.span, message);
                    self.advance();
                    self.recover()?;
                }
                _ => {
                    let start = self.span.start;
                    if self.statement(region).is_err() {
                        if self.tok == Tok::Eof {
                            return Err(Failed);
                        }
                        if self.span.start == start {
                            self.advance();
                        }
                        self.recover()?;
                    }
                }
            }
        }
    }

    /// Goes to the next statement or to the end of the block. Bodies on the way are read for their own errors.
    fn recover(&mut self) -> Res<()> {
        loop {
            match self.tok {
                Tok::Eof => return Err(Failed),
                Tok::Punct('}') => return Ok(()),
                Tok::Punct('{') => {
                    let body = match self.peek() {
                        Tok::Percent(_) | Tok::Caret(_) => true,
                        Tok::Word(w) => ops::by_name(w).is_some(),
                        _ => false,
                    };
                    if body {
                        // Names of the failed header are unknown here: the region is read and discarded, and so are
                        // errors about names.
                        self.lenient += 1;
                        let read = self.region(vec![], Opcode::Yield);
                        self.lenient -= 1;
                        read?;
                    } else {
                        self.skip_braces()?;
                    }
                }
                _ if self.starts_statement() => return Ok(()),
                _ => self.advance(),
            }
        }
    }

    pub(super) fn skip_braces(&mut self) -> Res<()> {
        let mut depth = 0usize;
        loop {
            match self.tok {
                Tok::Punct('{') => depth += 1,
                Tok::Punct('}') => depth -= 1,
                Tok::Eof => return Err(Failed),
                _ => {}
            }
            self.advance();
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Returns true if this token begins a line and looks like a statement.
    fn starts_statement(&self) -> bool {
        let between = self.lex.text().get(self.last_end..self.span.start as usize).unwrap_or("");
        if !between.contains('\n') {
            return false;
        }
        match self.tok {
            Tok::Word(w) => ops::by_name(w).is_some(),
            Tok::Str(s) => s.starts_with("cuda_tile."),
            Tok::Percent(_) => {
                let mut lex = self.lex.clone();
                for _ in 0..64 {
                    match lex.next_token().0 {
                        Tok::Punct('=') => return true,
                        Tok::Punct(',' | ':') | Tok::Percent(_) | Tok::Int(_) => {}
                        _ => return false,
                    }
                }
                false
            }
            _ => false,
        }
    }

    /// `%a, %b:2 =`
    fn results(&mut self) -> Res<Results<'a>> {
        let mut r = Results::default();
        if !matches!(self.tok, Tok::Percent(_)) {
            return Ok(r);
        }
        loop {
            let Tok::Percent(name) = self.tok else { return self.expected("a result, `%name`") };
            let span = self.span;
            self.advance();
            let mut n = 1;
            if self.eat(':') {
                let at = self.span;
                n = match u32::try_from(self.int()?) {
                    Ok(n) if (1..=MAX_PACK).contains(&n) => n,
                    _ => return self.error(Code::BadLiteral, at, format!("a number of results from 1 to {MAX_PACK}")),
                };
            }
            r.names.push((name, n, span));
            r.count += n as usize;
            if !self.eat(',') {
                break;
            }
        }
        self.expect('=')?;
        Ok(r)
    }

    fn statement(&mut self, region: RegionId) -> Res<()> {
        let results = self.results()?;
        let start = self.span;
        let read = self.operation(region, &results, start);
        if read.is_err() {
            for &(name, _, span) in &results.names {
                self.bind(name, vec![], span);
            }
        }
        read
    }

    fn operation(&mut self, region: RegionId, results: &Results<'a>, start: Span) -> Res<()> {
        let (info, name, generic): (&'static OpInfo, &str, bool) = match self.tok {
            Tok::Word(w) => (self.lookup(w)?, w, false),
            Tok::Str(w) => (self.lookup(w)?, w, true),
            _ => return self.expected("an operation"),
        };
        let name = name.strip_prefix("cuda_tile.").unwrap_or(name);
        if name != info.name && name != "fpowf" {
            let message = format!("`{name}` is an older spelling of `{}`", info.name);
            self.old_spelling(start, message, format!("write `{}`", info.name));
        } else if info.is_extension() {
            let message = format!("`{name}` is an extension; the public dialect has no such operation");
            self.report(Diagnostic::note(Code::Extension, message).at(start));
        }
        self.advance();
        let draft = if generic {
            self.generic(info)?
        } else if info.format.is_empty() {
            self.structured(info)?
        } else {
            self.custom(info, results.count)?
        };
        let span = self.since(start);
        let loc = self.location()?;
        self.finish(region, info, draft, results, span, loc)
    }

    /// The operation with a name, or an error with a suggestion.
    fn lookup(&mut self, name: &str) -> Res<&'static OpInfo> {
        if let Some(info) = ops::by_name(name) {
            return Ok(info);
        }
        let bare = name.strip_prefix("cuda_tile.").unwrap_or(name);
        let mut d = Diagnostic::error(Code::UnknownOp, format!("unknown operation `{bare}`")).at(self.span);
        if matches!(bare, "entry" | "global" | "module") {
            d = Diagnostic::error(Code::Syntax, format!("`{bare}` belongs in a module, not in a function"))
                .at(self.span);
        } else if let Some(near) = ops::suggest(name).filter(|_| self.errors < MAX_ERRORS) {
            d = d.help(format!("did you mean `{near}`?"));
        }
        self.report(d);
        Err(Failed)
    }
}
