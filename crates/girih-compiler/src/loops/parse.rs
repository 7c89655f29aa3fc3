//! Reads the text of loop and tile IR; the grammar is in `loops/print.rs`.
//!
//! The parser checks what it needs to build the tree (names, arities, literals). Scopes, types and what a stage allows
//! are `loops::verify`'s.

mod names;
mod terms;
mod tokens;

use rustc_hash::FxHashMap;

use super::ir::*;
use super::names::RESERVED;
use super::print::{BLOCKS, Dialect, RMWS, class_of, num_of};
use crate::base::lines::{Tok, Token, error, lex};
use crate::base::{Code, Diagnostic, Span};
use crate::num::spell::{INFIX, infix_op, parse_op, plain_conversion};
use crate::num::{DType, ScalarOp};

/// Reads one kernel.
pub fn parse(text: &str) -> Result<(Kernel, Dialect), Diagnostic> {
    let mut kernels = parse_all(text)?;
    match (kernels.pop(), kernels.is_empty()) {
        (Some(kernel), true) => Ok(kernel),
        _ => Err(Diagnostic::error(Code::MalformedIr, "the text must hold exactly one kernel")),
    }
}

/// Reads every kernel of the text.
pub fn parse_all(text: &str) -> Result<Vec<(Kernel, Dialect)>, Diagnostic> {
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
    fn kernel(&mut self) -> Res<(Kernel, Dialect)> {
        self.kernel = Kernel::default();
        self.names.clear();
        self.globals.clear();
        let dialect =
            self.table(&[("loop", Dialect::Loop), ("tile", Dialect::Tile)], "`loop kernel` or `tile kernel`")?;
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
        Ok((std::mem::take(&mut self.kernel), dialect))
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
