//! Reads the text of loop and tile IR; the grammar is in `loops/print.rs`.
//!
//! The parser checks what it needs to build the tree (names, arities, literals). Scopes, types and what a stage allows
//! are `loops::verify`'s.

mod terms;

use rustc_hash::FxHashMap;

use super::ir::*;
use super::names::RESERVED;
use super::print::{BLOCKS, RMWS, Stage, class_of, num_of};
use crate::base::lines::{Tok, Token, error, lex};
use crate::base::{Code, Diagnostic, Span};
use crate::num::spell::{INFIX, infix_op, parse_op, plain_conversion};
use crate::num::{DType, ScalarOp};

/// Reads one kernel.
pub fn parse(text: &str) -> Result<(Kernel, Stage), Diagnostic> {
    let mut kernels = parse_all(text)?;
    match (kernels.pop(), kernels.is_empty()) {
        (Some(kernel), true) => Ok(kernel),
        _ => Err(Diagnostic::error(Code::MalformedIr, "the text must hold exactly one kernel")),
    }
}

/// Reads every kernel of the text.
pub fn parse_all(text: &str) -> Result<Vec<(Kernel, Stage)>, Diagnostic> {
    let tokens = lex(text, Code::MalformedIr)?;
    let mut p =
        Parser { tokens: &tokens, at: 0, kernel: Kernel::default(), names: FxHashMap::default(), globals: vec![] };
    let mut out = Vec::new();
    while !p.is(&Tok::End) {
        out.push(p.kernel()?);
    }
    Ok(out)
}

type Res<T> = Result<T, Diagnostic>;

#[derive(Clone, Copy, PartialEq)]
enum Thing {
    Val(ValId),
    Axis(AxisId),
    Buf(BufId),
}

impl Thing {
    fn kind(self) -> &'static str {
        match self {
            Thing::Val(_) => "a value",
            Thing::Axis(_) => "a loop axis",
            Thing::Buf(_) => "a local buffer",
        }
    }
}

/// An operand whose constant may still need its type from the context.
enum Raw {
    Val(ValId),
    Const { text: String, dtype: Option<DType>, span: Span },
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    kernel: Kernel,
    names: FxHashMap<&'a str, Thing>,
    globals: Vec<&'a str>,
}

impl<'a> Parser<'_, 'a> {
    fn tok(&self) -> &Tok<'a> {
        self.peek(0)
    }
    fn peek(&self, ahead: usize) -> &Tok<'a> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].tok
    }
    fn span(&self) -> Span {
        self.tokens[self.at.min(self.tokens.len() - 1)].span
    }
    fn is(&self, tok: &Tok<'_>) -> bool {
        self.tok() == tok
    }
    fn is_punct(&self, p: &str) -> bool {
        matches!(self.tok(), Tok::Punct(q) if *q == p)
    }
    fn is_word(&self, w: &str) -> bool {
        matches!(self.tok(), Tok::Word(v) if *v == w)
    }
    fn next(&mut self) {
        self.at += 1;
    }
    fn fail<T>(&self, message: impl Into<String>) -> Res<T> {
        Err(error(Code::MalformedIr, self.span(), message))
    }
    fn expected<T>(&self, what: &str) -> Res<T> {
        let found = match self.tok() {
            Tok::Word(w) => format!("`{w}`"),
            Tok::Number(n) => format!("`{n}`"),
            Tok::Str(_) => "a string".to_string(),
            Tok::Punct(p) => format!("`{p}`"),
            Tok::Newline => "the end of the line".to_string(),
            Tok::Indent => "an indented line".to_string(),
            Tok::Dedent => "the end of the body".to_string(),
            Tok::End => "the end of the text".to_string(),
        };
        self.fail(format!("expected {what}, found {found}"))
    }
    fn punct(&mut self, p: &str) -> Res<()> {
        if self.eat(p) { Ok(()) } else { self.expected(&format!("`{p}`")) }
    }
    fn eat(&mut self, p: &str) -> bool {
        let found = self.is_punct(p);
        self.at += found as usize;
        found
    }
    fn word(&mut self, w: &str) -> Res<()> {
        if self.eat_word(w) { Ok(()) } else { self.expected(&format!("`{w}`")) }
    }
    fn eat_word(&mut self, w: &str) -> bool {
        let found = self.is_word(w);
        self.at += found as usize;
        found
    }
    fn any_word(&mut self, what: &str) -> Res<&'a str> {
        let Tok::Word(w) = *self.tok() else { return self.expected(what) };
        self.next();
        Ok(w)
    }
    fn string(&mut self) -> Res<String> {
        let Tok::Str(s) = self.tok().clone() else { return self.expected("a string") };
        self.next();
        Ok(s)
    }
    fn end_line(&mut self) -> Res<()> {
        if self.is(&Tok::Newline) {
            self.next();
            return Ok(());
        }
        self.expected("the end of the line")
    }
    fn table<T: Clone>(&mut self, table: &[(&str, T)], what: &str) -> Res<T> {
        let found = match self.tok() {
            Tok::Word(w) => table.iter().find(|(n, _)| n == w),
            Tok::Punct(p) => table.iter().find(|(n, _)| n == p),
            _ => None,
        };
        let Some((_, value)) = found else { return self.expected(what) };
        self.next();
        Ok(value.clone())
    }
    fn number<T: TryFrom<i128>>(&mut self) -> Res<T> {
        let span = self.span();
        let minus = self.eat("-");
        let Tok::Number(n) = self.tok() else { return self.expected("a whole number") };
        let value = n.parse::<i128>().ok().map(|v| if minus { -v } else { v });
        let Some(value) = value.and_then(|v| T::try_from(v).ok()) else {
            return Err(error(Code::MalformedIr, span, "this number is not whole or is out of range"));
        };
        self.next();
        Ok(value)
    }
    /// Items separated by commas, up to and including `close`.
    fn items(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Res<()>) -> Res<()> {
        while !self.eat(close) {
            item(self)?;
            if !self.is_punct(close) {
                self.punct(",")?;
            }
        }
        Ok(())
    }

    // Names and types.

    fn new_name(&mut self) -> Res<(&'a str, Span)> {
        let span = self.span();
        let name = self.any_word("a name")?;
        if RESERVED.contains(&name) || name.contains('.') {
            return Err(error(Code::MalformedIr, span, format!("`{name}` cannot be used as a name")));
        }
        Ok((name, span))
    }
    fn lookup(&mut self, what: &str) -> Res<(Thing, Span)> {
        let span = self.span();
        let Tok::Word(name) = *self.tok() else { return self.expected(what) };
        match self.names.get(name) {
            Some(thing) => {
                let thing = *thing;
                self.next();
                Ok((thing, span))
            }
            None => Err(error(Code::UnknownIrName, span, format!("`{name}` is not defined before this"))),
        }
    }
    fn wrong_kind<T>(thing: Thing, span: Span, what: &str) -> Res<T> {
        Err(error(Code::UnknownIrName, span, format!("expected {what}, found {}", thing.kind())))
    }
    fn val(&mut self) -> Res<ValId> {
        match self.lookup("a value")? {
            (Thing::Val(v), _) => Ok(v),
            (thing, span) => Self::wrong_kind(thing, span, "a value"),
        }
    }
    fn axis(&mut self) -> Res<AxisId> {
        match self.lookup("a loop axis")? {
            (Thing::Axis(a), _) => Ok(a),
            (thing, span) => Self::wrong_kind(thing, span, "a loop axis"),
        }
    }
    fn buf(&mut self) -> Res<BufId> {
        match self.lookup("a local buffer")? {
            (Thing::Buf(b), _) => Ok(b),
            (thing, span) => Self::wrong_kind(thing, span, "a local buffer"),
        }
    }
    fn define_val(&mut self, name: &'a str, span: Span, ty: Ty) -> Res<ValId> {
        let val = self.kernel.vals.push(Val { ty, name: name.to_string() });
        if self.names.insert(name, Thing::Val(val)).is_some() {
            return Err(error(Code::UnknownIrName, span, format!("`{name}` is defined twice")));
        }
        Ok(val)
    }
    /// Loops side by side may share an axis.
    fn define_axis(&mut self) -> Res<AxisId> {
        let (name, span) = self.new_name()?;
        match self.names.get(name) {
            Some(Thing::Axis(axis)) => Ok(*axis),
            Some(_) => Err(error(Code::UnknownIrName, span, format!("`{name}` is defined twice"))),
            None => {
                let axis = self.kernel.axes.push(Axis { name: name.to_string(), from: None });
                self.names.insert(name, Thing::Axis(axis));
                Ok(axis)
            }
        }
    }
    /// `NAME ":" ty ("[" INT,* "]")?`; a buffer may be declared again, the same.
    fn define_buf(&mut self) -> Res<BufId> {
        let (name, span) = self.new_name()?;
        self.punct(":")?;
        let ty = self.ty()?;
        let mut shape = Vec::new();
        if self.eat("[") {
            self.items("]", |p| {
                shape.push(p.number()?);
                Ok(())
            })?;
        }
        match self.names.get(name) {
            Some(Thing::Buf(buf)) if self.kernel.bufs[*buf].ty == ty && self.kernel.bufs[*buf].shape == shape => {
                Ok(*buf)
            }
            Some(_) => Err(error(Code::UnknownIrName, span, format!("`{name}` is defined twice"))),
            None => {
                let buf = self.kernel.bufs.push(Buf { name: name.to_string(), ty, shape });
                self.names.insert(name, Thing::Buf(buf));
                Ok(buf)
            }
        }
    }
    fn dtype(&mut self) -> Res<DType> {
        let dtype = if let Tok::Word(w) = self.tok() { DType::from_name(w) } else { None };
        let Some(dtype) = dtype else { return self.expected("an element type") };
        self.next();
        Ok(dtype)
    }
    fn ty(&mut self) -> Res<Ty> {
        if self.eat_word("ptr") { Ok(Ty::Ptr(self.dtype()?)) } else { Ok(Ty::Num(self.dtype()?)) }
    }

    // The kernel.

    fn kernel(&mut self) -> Res<(Kernel, Stage)> {
        self.kernel = Kernel::default();
        self.names.clear();
        self.globals.clear();
        let stage = self.table(&[("loop", Stage::Loop), ("tile", Stage::Tile)], "`loop kernel` or `tile kernel`")?;
        self.word("kernel")?;
        self.kernel.name = self.name_or_string()?;
        self.punct("(")?;
        self.items(")", |p| {
            let (text, span) = p.new_name()?;
            let name = if matches!(p.tok(), Tok::Str(_)) { p.string()? } else { text.to_string() };
            p.punct(":")?;
            let ty = p.ty()?;
            let div_by = if p.eat_word("div") { p.number()? } else { 1 };
            let range = if p.eat_word("in") {
                let lo = p.number()?;
                p.punct("..")?;
                Some((lo, p.number::<i64>()?.saturating_sub(1)))
            } else {
                None
            };
            let val = p.define_val(text, span, ty)?;
            p.kernel.params.push(Param { name, ty, val, div_by, range });
            Ok(())
        })?;
        self.kernel.open = self.eat_word("open");
        self.punct(":")?;
        self.end_line()?;
        if self.is(&Tok::Indent) {
            self.next();
            while self.is_word("global") || self.is_word("require") {
                if self.eat_word("global") {
                    self.global()?
                } else {
                    self.obligation()?
                }
                self.end_line()?;
            }
            self.kernel.body = self.stmts()?;
            if !self.is(&Tok::Dedent) {
                return self.expected("a statement");
            }
            self.next();
        }
        Ok((std::mem::take(&mut self.kernel), stage))
    }

    fn name_or_string(&mut self) -> Res<String> {
        if matches!(self.tok(), Tok::Str(_)) { self.string() } else { Ok(self.any_word("a name")?.to_string()) }
    }

    fn global(&mut self) -> Res<()> {
        self.punct("@")?;
        let span = self.span();
        let text = self.any_word("a name")?;
        let name = if matches!(self.tok(), Tok::Str(_)) { self.string()? } else { text.to_string() };
        if self.globals.contains(&text) {
            return Err(error(Code::UnknownIrName, span, format!("`@{text}` is defined twice")));
        }
        self.punct(":")?;
        let dtype = self.dtype()?;
        self.punct("[")?;
        let span = self.span();
        let len: usize = self.number()?;
        self.punct("]")?;
        self.word("align")?;
        let align = self.number()?;
        let constant = self.eat_word("constant");
        self.punct("=")?;
        self.punct("[")?;
        let mut bits = Vec::new();
        self.items("]", |p| {
            bits.push(p.constant(dtype)?);
            Ok(())
        })?;
        if bits.len() != len {
            return Err(error(Code::MalformedIr, span, format!("the number of values given is {}", bits.len())));
        }
        self.globals.push(text);
        self.kernel.globals.push(Global { name, dtype, align, constant, bits });
        Ok(())
    }

    fn obligation(&mut self) -> Res<()> {
        self.word("require")?;
        let start = self.at;
        // The axes come after the expression that uses them.
        while !matches!(self.tok(), Tok::Newline | Tok::End) {
            if matches!((self.tok(), self.peek(1)), (Tok::Word(_), Tok::Word("in"))) {
                self.define_axis()?;
            } else {
                self.next();
            }
        }
        self.at = start;
        let lo = self.number()?;
        self.punct("<=")?;
        let ix = self.ix()?;
        self.punct("<=")?;
        let hi = self.number()?;
        let mut axes = Vec::new();
        if self.eat_word("for") {
            loop {
                let axis = self.axis()?;
                self.word("in")?;
                let lo = self.ix()?;
                self.punct("..")?;
                axes.push((axis, lo, self.ix()?));
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.kernel.obligations.push(Obligation { ix, axes, lo, hi });
        Ok(())
    }

    // Statements.

    /// Up to the end of the body.
    fn stmts(&mut self) -> Res<Vec<Stmt>> {
        let mut out = Vec::new();
        while !matches!(self.tok(), Tok::Dedent | Tok::End) {
            if self.eat_word("pass") {
                self.end_line()?;
                continue;
            }
            let stmt = self.stmt()?;
            if super::walk::bodies(&stmt).is_empty() {
                self.end_line()?;
            }
            out.push(stmt);
        }
        Ok(out)
    }

    fn body(&mut self) -> Res<Vec<Stmt>> {
        self.end_line()?;
        if !self.is(&Tok::Indent) {
            return self.expected("an indented body");
        }
        self.next();
        let out = self.stmts()?;
        if !self.is(&Tok::Dedent) {
            return self.expected("a statement");
        }
        self.next();
        Ok(out)
    }

    fn stmt(&mut self) -> Res<Stmt> {
        let Tok::Word(word) = *self.tok() else { return self.expected("a statement") };
        let i1 = Some(DType::I1);
        if !RESERVED.contains(&word) {
            return if matches!(self.peek(1), Tok::Punct(":")) { self.definition() } else { self.write() };
        }
        self.next();
        Ok(match word {
            "store" => {
                let mem = self.mem()?;
                self.punct("=")?;
                let value = self.opnd(Some(mem.elem))?;
                let mask = self.where_clause()?;
                let (order, site) = self.tail()?;
                Stmt::Store { mem, value, mask, order, site }
            }
            "local" => Stmt::Local { buf: self.define_buf()? },
            "for" => self.for_loop()?,
            "loop" => {
                self.punct(":")?;
                Stmt::Loop { body: self.body()? }
            }
            "if" => {
                let cond = self.opnd(i1)?;
                self.punct(":")?;
                let then = self.body()?;
                let mut els = Vec::new();
                if self.eat_word("else") {
                    self.punct(":")?;
                    els = self.body()?;
                }
                Stmt::If { cond, then, els }
            }
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "return" => Stmt::Return,
            "print" => {
                let format = self.string()?;
                let mut args = Vec::new();
                while self.eat(",") {
                    let name = if let Tok::Word(w) = self.tok() { self.names.get(w) } else { None };
                    args.push(match name {
                        Some(Thing::Buf(_)) => PrintArg::Buf(self.buf()?),
                        _ => PrintArg::Scalar(self.opnd(None)?),
                    });
                }
                Stmt::Print { format, args, site: self.site()? }
            }
            "assert" => {
                let cond = self.opnd(i1)?;
                self.punct(",")?;
                let message = self.string()?;
                Stmt::Assert { cond, message, site: self.site()? }
            }
            "stage" => {
                let buf = self.define_buf()?;
                self.punct(":")?;
                Stmt::Stage { buf, body: self.body()? }
            }
            "register_tile" => {
                let acc = self.buf()?;
                self.word("over")?;
                let (i, rows) = self.tile_axis()?;
                self.punct(",")?;
                let (j, cols) = self.tile_axis()?;
                self.word("lanes")?;
                let lanes = self.number()?;
                self.punct(":")?;
                Stmt::RegisterTile { acc, i, rows, j, cols, lanes, body: self.body()? }
            }
            _ => {
                self.at -= 1;
                return self.expected("a statement");
            }
        })
    }

    fn tile_axis(&mut self) -> Res<(AxisId, u32)> {
        let axis = self.define_axis()?;
        self.word("in")?;
        if self.number::<i64>()? != 0 {
            self.at -= 1;
            return self.fail("a register tile's axes must count from 0");
        }
        self.punct("..")?;
        Ok((axis, self.number()?))
    }

    /// The value that is named by an earlier token.
    fn val_at(&mut self, at: usize) -> Res<ValId> {
        let back = std::mem::replace(&mut self.at, at);
        let val = self.val();
        self.at = back;
        val
    }

    /// One axis, or several in brackets.
    fn role_axes(&mut self) -> Res<Vec<AxisId>> {
        if !self.is_punct("(") {
            return Ok(vec![self.axis()?]);
        }
        self.punct("(")?;
        let mut axes = vec![];
        self.items(")", |p| {
            axes.push(p.axis()?);
            Ok(())
        })?;
        Ok(axes)
    }

    fn for_loop(&mut self) -> Res<Stmt> {
        let axis = self.define_axis()?;
        self.word("in")?;
        let lo = self.ix()?;
        self.punct("..")?;
        let hi = self.ix()?;
        let step = if self.eat_word("step") { self.ix()? } else { Ix::Const(1) };
        self.punct(":")?;
        let kinds = [("free", LoopKind::Free), ("reduce", LoopKind::Reduce), ("serial", LoopKind::Serial)];
        let kind = self.table(&kinds, "`free`, `reduce` or `serial`")?;
        let place = if self.eat_word("unroll") {
            Place::Unroll
        } else if self.eat_word("vector") {
            self.punct("(")?;
            let lanes = self.number()?;
            self.punct(")")?;
            Place::Vector { lanes }
        } else if self.eat_word("block") {
            self.punct("(")?;
            let dims = [(BLOCKS[0], 0), (BLOCKS[1], 1), (BLOCKS[2], 2)];
            let dim = self.table(&dims, "`x`, `y` or `z`")?;
            self.punct(")")?;
            Place::Block { dim }
        } else {
            Place::None
        };
        let combine = if self.eat_word("combine") { Some(self.combine()?) } else { None };
        let role = |p: &mut Self, name: &str| {
            p.word(name)?;
            p.punct("=")
        };
        let (mut roles, mut streamed) = (None, None);
        if self.eat_word("stream") {
            // The values are defined in the body.
            let mut inner = [0; 2];
            for (at, name) in inner.iter_mut().zip(["score", "value"]) {
                role(self, name)?;
                *at = self.at;
                self.any_word("a name")?;
            }
            role(self, "greatest")?;
            let greatest = self.buf()?;
            role(self, "total")?;
            let total = self.buf()?;
            role(self, "acc")?;
            streamed = Some((inner, greatest, total, self.buf()?));
        }
        if self.eat_word("contraction") {
            role(self, "m")?;
            let m = self.role_axes()?;
            role(self, "n")?;
            let n = self.role_axes()?;
            role(self, "k")?;
            let k = self.role_axes()?;
            // The operands are defined in the body.
            role(self, "a")?;
            let a = self.at;
            self.any_word("a value")?;
            role(self, "b")?;
            let b = self.at;
            self.any_word("a value")?;
            role(self, "acc")?;
            roles = Some((m, n, k, a, b, self.buf()?));
        }
        let body = self.body()?;
        let contraction = match roles {
            Some((m, n, k, a, b, acc)) => {
                let (a, b) = (self.val_at(a)?, self.val_at(b)?);
                Some(Contraction { m, n, k, a, b, acc })
            }
            None => None,
        };
        let stream = match streamed {
            Some(([score, value], greatest, total, acc)) => {
                let (score, value) = (self.val_at(score)?, self.val_at(value)?);
                Some(Stream { score, value, greatest, total, acc })
            }
            None => None,
        };
        Ok(Stmt::For(Box::new(For { axis, lo, hi, step, kind, place, combine, contraction, stream, body })))
    }

    fn combine(&mut self) -> Res<Combine> {
        let span = self.span();
        let name = self.any_word("an operation")?;
        self.punct("(")?;
        let mut accs = Vec::new();
        self.items(")", |p| {
            accs.push(p.buf()?);
            Ok(())
        })?;
        let dtype = accs.first().and_then(|b| num_of(Some(self.kernel.bufs[*b].ty)));
        let class = class_of(dtype.map(Ty::Num));
        let (Some(op), Some(dtype)) = (parse_op(name, class), dtype) else {
            return Err(error(Code::MalformedIr, span, format!("`{name}` is not defined for these accumulators")));
        };
        self.word("from")?;
        let identity = self.constant(dtype)?;
        let ways = if self.eat_word("x") { self.number()? } else { 1 };
        Ok(Combine { accs, op: CombineOp::Scalar { op, identity }, ways })
    }

    fn write(&mut self) -> Res<Stmt> {
        let buf = self.buf()?;
        let idx = self.subscripts()?;
        self.punct("=")?;
        let value = self.opnd(num_of(Some(self.kernel.bufs[buf].ty)))?;
        Ok(Stmt::Write { buf, idx, value })
    }

    fn subscripts(&mut self) -> Res<Vec<Ix>> {
        let mut idx = Vec::new();
        if self.eat("[") {
            self.items("]", |p| {
                idx.push(p.ix()?);
                Ok(())
            })?;
        }
        Ok(idx)
    }

    /// `VAL ":" ty "=" expr`
    fn definition(&mut self) -> Res<Stmt> {
        let (name, span) = self.new_name()?;
        self.punct(":")?;
        let ty = self.ty()?;
        self.punct("=")?;
        let mut stmt = self.expr(ty)?;
        let val = self.define_val(name, span, ty)?;
        super::walk::parts_mut(&mut stmt, &mut |part| {
            if let super::walk::PartMut::DefVal(dst) = part {
                *dst = val;
            }
        });
        Ok(stmt)
    }

    /// The right side of a definition, its value still to be filled in.
    fn expr(&mut self, ty: Ty) -> Res<Stmt> {
        let dst = ValId(u32::MAX);
        let Tok::Word(word) = *self.tok() else { return self.infix(ty) };
        if matches!(self.peek(1), Tok::Punct("(")) && word != "index" && word != "test" {
            return self.call(word, ty);
        }
        if let Some(Thing::Buf(buf)) = self.names.get(word) {
            let buf = *buf;
            self.next();
            return Ok(Stmt::Read { dst, buf, idx: self.subscripts()? });
        }
        match word {
            "index" => {
                self.next();
                Ok(Stmt::Index { dst, ix: self.ix()? })
            }
            "test" => {
                self.next();
                Ok(Stmt::Test { dst, mask: self.mask()? })
            }
            "load" => {
                self.next();
                let mem = self.mem()?;
                let mask = self.where_clause()?;
                let other = if self.eat_word("else") { Some(self.opnd(num_of(Some(ty)))?) } else { None };
                let (order, site) = self.tail()?;
                Ok(Stmt::Load { dst, mem, mask, other, order, site })
            }
            "atomic" => {
                self.next();
                let op = self.table(&RMWS, "an atomic operation")?;
                let mem = self.mem()?;
                self.punct(",")?;
                let value = self.opnd(Some(mem.elem))?;
                let mask = self.where_clause()?;
                let (order, site) = self.tail()?;
                Ok(Stmt::Rmw { dst, op, mem, value, mask, order, site })
            }
            "cas" => {
                self.next();
                let mem = self.mem()?;
                self.punct(",")?;
                let cmp = self.opnd(Some(mem.elem))?;
                self.punct(",")?;
                let value = self.opnd(Some(mem.elem))?;
                let mask = self.where_clause()?;
                let (order, site) = self.tail()?;
                Ok(Stmt::Cas { dst, mem, cmp, value, mask, order, site })
            }
            "global" => {
                self.next();
                self.punct("@")?;
                let span = self.span();
                let name = self.any_word("a global's name")?;
                match self.globals.iter().position(|g| *g == name) {
                    Some(global) => Ok(Stmt::GlobalAddr { dst, global: global as u32 }),
                    None => Err(error(Code::UnknownIrName, span, format!("unknown global `@{name}`"))),
                }
            }
            "alloca" => {
                self.next();
                let bytes = self.number()?;
                self.word("align")?;
                let align = self.number()?;
                Ok(Stmt::Alloca { dst, bytes, align, site: self.site()? })
            }
            _ => self.infix(ty),
        }
    }

    fn call(&mut self, word: &str, ty: Ty) -> Res<Stmt> {
        let dst = ValId(u32::MAX);
        let span = self.span();
        self.next();
        self.punct("(")?;
        let mut raw = Vec::new();
        self.items(")", |p| {
            raw.push(p.raw_opnd()?);
            Ok(())
        })?;
        let first = raw.first().and_then(|r| self.raw_ty(r));
        let op = match DType::from_name(word) {
            Some(to) => num_of(first).and_then(|from| plain_conversion(from, to)),
            None => parse_op(word, class_of(Some(ty))),
        };
        let Some(op) = op else {
            return Err(error(Code::MalformedIr, span, format!("`{word}` is not defined for these operands")));
        };
        let arity = op.arity();
        if raw.len() != arity {
            return Err(error(Code::MalformedIr, span, format!("`{word}` needs {arity} operands")));
        }
        let args = raw.into_iter().enumerate();
        let args = args.map(|(i, r)| self.resolve(r, op.untyped(i, Some(ty), first)));
        Ok(Stmt::Let { dst, op, args: args.collect::<Res<_>>()? })
    }

    fn infix(&mut self, ty: Ty) -> Res<Stmt> {
        let dst = ValId(u32::MAX);
        let a = self.raw_opnd()?;
        let span = self.span();
        let symbol = match self.tok() {
            Tok::Punct(p) if INFIX.contains(p) => *p,
            _ => {
                if let Raw::Val(_) = a {
                    return self.expected("an operator");
                }
                let value = self.resolve(a, num_of(Some(ty)))?;
                return Ok(Stmt::Let { dst, op: ScalarOp::Copy, args: vec![value] });
            }
        };
        self.next();
        let b = self.raw_opnd()?;
        let first = self.raw_ty(&a);
        let compares = matches!(symbol, "==" | "!=" | "<" | "<=" | ">" | ">=");
        let class = class_of(if compares { first } else { Some(ty) });
        let Some(op) = infix_op(symbol, class) else {
            return Err(error(Code::MalformedIr, span, format!("`{symbol}` is not defined for these types")));
        };
        let a = self.resolve(a, op.untyped(0, Some(ty), first))?;
        let b = self.resolve(b, op.untyped(1, Some(ty), first))?;
        Ok(Stmt::Let { dst, op, args: vec![a, b] })
    }
}
