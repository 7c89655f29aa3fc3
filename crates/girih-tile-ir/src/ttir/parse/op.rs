//! Operations: the form that most share, and MLIR's generic form.

use super::*;
use crate::base::words::did_you_mean;
use crate::cuda_tile::ir::{Elem, TileType};
use crate::num::DType;
use crate::ttir::table::{self, Form, Gives, Row};

/// An operation that is being read.
pub(super) struct Draft<'a> {
    pub row: &'static Row,
    pub names: Vec<(&'a str, Span)>,
    /// How many values the last name stands for, when it says so.
    pub count: usize,
    pub start: Span,
}

impl<'a> Parser<'a> {
    /// Reads one operation. An error in it says where in the user's files it is.
    pub(super) fn op(&mut self) -> Res<Op> {
        let start = self.span;
        self.nested(|p| p.op_here(start)).map_err(|d| {
            if !d.frames.is_empty() {
                return d;
            }
            let frames = self.nearest(start.start as usize).frames();
            Box::new(d.from(frames.into()))
        })
    }

    fn op_here(&mut self, start: Span) -> Res<Op> {
        let (mut names, mut count) = (vec![], 1);
        if let Tok::Percent(_) = self.tok {
            loop {
                names.push(self.name()?);
                if names.len() == 1 && self.eat(':') {
                    let Tok::Int(text) = self.tok else { return self.expected("a number of results") };
                    count = text.parse().unwrap_or(0);
                    self.advance();
                    break;
                }
                if !self.eat(',') {
                    break;
                }
            }
            self.expect('=')?;
        }
        let (name, generic) = match self.tok {
            Tok::Word(name) => (name, false),
            Tok::Str(name) => (name, true),
            _ => return self.expected("an operation"),
        };
        let Some(row) = table::by_name(name) else { return self.unknown(name) };
        self.advance();
        let draft = Draft { row, names, count, start };
        match (generic, row.form) {
            (true, _) => self.generic(draft),
            (false, Form::Plain) => self.plain(draft),
            (false, Form::Special(read)) => self.special(read, draft),
        }
    }

    #[cold]
    fn unknown<T>(&self, name: &str) -> Res<T> {
        let d = Diagnostic::error(Code::UnknownOp, format!("the operation `{name}` of TTIR is not supported"));
        let help = table::refusal(name)
            .map(str::to_string)
            .or_else(|| did_you_mean(name, table::ROWS.iter().map(|r| r.name)).filter(|_| name.contains('.')));
        Err(Box::new(d.at(self.span).maybe_help(help)))
    }

    /// Gives the operation its results, and is done with it.
    pub(super) fn finish(&mut self, draft: Draft<'a>, mut op: Op, types: Vec<Ty>) -> Res<Op> {
        let wanted = match draft.names.len() {
            1 => draft.count,
            n => n,
        };
        if wanted != types.len() && !(draft.names.is_empty() && draft.count == 1) {
            let message = format!("`{}` gives {} results, and {wanted} are named", draft.row.name, types.len());
            return self.fail(Code::ResultCount, draft.start, message);
        }
        if draft.names.len() == 1 {
            op.results = self.define(draft.names[0], types);
        } else if draft.names.is_empty() {
            // Nothing can use them.
            op.results = types
                .into_iter()
                .map(|ty| self.module.values.push(Value { ty, name: String::new(), span: draft.start }))
                .collect();
        } else {
            for (name, ty) in draft.names.iter().zip(types) {
                op.results.extend(self.define(*name, vec![ty]));
            }
        }
        op.span = self.since(draft.start);
        self.known_types(&op)?;
        Ok(op)
    }

    pub(super) fn empty(&self, draft: &Draft<'a>) -> Op {
        Op {
            row: draft.row,
            operands: vec![],
            results: vec![],
            attrs: vec![],
            words: vec![],
            regions: vec![],
            successors: vec![],
            span: draft.start,
            loc: Loc::UNKNOWN,
        }
    }

    /// Refuses an operation on types that Girih does not have.
    fn known_types(&self, op: &Op) -> Res<()> {
        for &v in op.operands.iter().chain(&op.results) {
            if let Some(Value { ty: Ty::Other(text), .. }) = self.module.values.get(v) {
                let message =
                    format!("`{}` works on a value of the type `{text}`, which is not supported", op.row.name);
                let d = Diagnostic::error(Code::UnknownType, message).at(op.span);
                return Err(Box::new(d.maybe_help(table::type_refusal(text)).from(op.loc.frames().into())));
            }
        }
        Ok(())
    }

    /// The form that most operations share.
    fn plain(&mut self, draft: Draft<'a>) -> Res<Op> {
        let mut op = self.empty(&draft);
        let mut listed: Vec<Ty> = vec![];
        let mut after: Option<Vec<Ty>> = None;
        loop {
            match self.tok {
                Tok::Percent(_) => op.operands.push(self.value()?),
                Tok::Str(_) => {
                    let text = self.string()?;
                    op.attrs.push(("".into(), Attr::Str(text)));
                }
                Tok::At(name) => {
                    op.attrs.push(("".into(), Attr::Word(unescape(name))));
                    self.advance();
                }
                Tok::Punct(',' | '[' | ']') => self.advance(),
                Tok::Punct('{') => op.attrs.extend(self.dict()?),
                Tok::Punct('<') => self.properties(&mut op)?,
                Tok::Word("loc") => break,
                Tok::Word(word) => {
                    let end = self.span.end;
                    self.advance();
                    if self.is('=') {
                        self.advance();
                        let value = self.nested(|p| p.attr())?;
                        op.attrs.push((word.to_string(), value));
                    } else if self.is('<') && self.span.start == end {
                        self.skip_angles()?;
                    } else if word == "dense" {
                        return self.expected("a value");
                    } else {
                        op.words.push((op.operands.len(), word.to_string()));
                    }
                }
                Tok::Punct(':') => {
                    self.advance();
                    if let Tok::Percent(_) = self.tok {
                        continue;
                    }
                    (listed, after) = self.signature()?;
                    break;
                }
                _ => break,
            }
        }
        op.loc = self.location()?;
        let types = self.result_types(&draft, &listed, after)?;
        self.finish(draft, op, types)
    }

    /// `T, U`, `T * U -> V`, `T to U`, `(T, U) -> V`
    pub(super) fn signature(&mut self) -> Res<(Vec<Ty>, Option<Vec<Ty>>)> {
        let mut listed = vec![];
        if self.eat('(') {
            listed = self.list(')', |p| p.ty())?;
        } else {
            loop {
                listed.push(self.ty()?);
                if !(self.eat(',') || self.eat('*')) {
                    break;
                }
            }
        }
        let mut after = None;
        if self.eat_arrow() || self.eat_word("to") {
            after = Some(self.types()?);
        }
        Ok((listed, after))
    }

    fn result_types(&mut self, draft: &Draft<'a>, listed: &[Ty], after: Option<Vec<Ty>>) -> Res<Vec<Ty>> {
        let row = draft.row;
        let missing = || format!("`{}` does not say its types as expected", row.name);
        let first = listed.first();
        let tile = |f: &dyn Fn(&TileType) -> Option<TileType>| match first {
            Some(Ty::Tile(t)) => f(t).map(Ty::Tile),
            Some(Ty::Other(text)) => Some(Ty::Other(text.clone())),
            None => None,
        };
        let one = match row.gives {
            Gives::Nothing => return Ok(vec![]),
            Gives::Arrow => {
                return match after {
                    Some(types) => Ok(types),
                    None => self.fail(Code::OperandCount, draft.start, missing()),
                };
            }
            Gives::Optional => return Ok(after.unwrap_or_default()),
            Gives::Both => match after.as_deref() {
                Some([ty]) => return Ok(vec![ty.clone(), ty.clone()]),
                Some(types) => return Ok(types.to_vec()),
                None => None,
            },
            Gives::First => first.cloned(),
            Gives::Last => listed.last().cloned(),
            Gives::Two => return Ok(vec![listed.last().cloned(); 2].into_iter().flatten().collect()),
            Gives::Truth => tile(&|t| Some(TileType::of(t.shape.clone(), Elem::Num(DType::I1)))),
            Gives::Pointee => tile(&|t| match t.elem {
                Elem::Ptr(d) => Some(TileType::of(t.shape.clone(), Elem::Num(d))),
                Elem::Num(_) => None,
            }),
            Gives::Element => tile(&|t| Some(TileType::of(vec![], t.elem))),
        };
        match one {
            Some(ty) => Ok(vec![ty]),
            None => self.fail(Code::OperandCount, draft.start, missing()),
        }
    }

    /// `<{name = value}>`
    fn properties(&mut self, op: &mut Op) -> Res<()> {
        self.expect('<')?;
        op.attrs.extend(self.dict()?);
        self.expect('>')
    }

    /// `"op"(%a, %b)[^successors] <{properties}> ({regions}) {attributes} : (types) -> types loc(...)`
    fn generic(&mut self, draft: Draft<'a>) -> Res<Op> {
        let mut op = self.empty(&draft);
        self.expect('(')?;
        op.operands = self.list(')', |p| p.value())?;
        if self.is('[') {
            return self.fail(Code::Syntax, self.span, "a branch in the generic form is not supported");
        }
        if self.is('<') {
            self.properties(&mut op)?;
        }
        if self.eat('(') {
            op.regions = self.list(')', |p| p.region(vec![]))?;
        }
        if self.is('{') {
            op.attrs.extend(self.dict()?);
        }
        self.expect(':')?;
        let (_, after) = self.signature()?;
        op.loc = self.location()?;
        self.finish(draft, op, after.unwrap_or_default())
    }
}
