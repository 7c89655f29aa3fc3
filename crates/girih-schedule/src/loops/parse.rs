//! Reads the text of Loop IR and Tile IR; the grammar is in `loops/print.rs`.
//!
//! The parser checks only what it needs to build the tree (names, arities, literals). `loops::verify` checks scopes,
//! types and what a stage allows.

mod names;
mod terms;

use rustc_hash::FxHashMap;

use super::ir::*;
use super::names::RESERVED;
use super::print::{BLOCKS, Dialect, RMWS, class_of, num_of};
use crate::base::lines::{Cursor, Tok, error, lex};
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
    let mut p = Parser {
        c: Cursor::new(&tokens, Code::MalformedIr),
        kernel: Kernel::default(),
        names: FxHashMap::default(),
        globals: vec![],
    };
    let mut out = Vec::new();
    while !p.c.is(&Tok::End) {
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
    c: Cursor<'t, 'a>,
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
            self.c.choice(&[("loop", Dialect::Loop), ("tile", Dialect::Tile)], "`loop kernel` or `tile kernel`")?;
        self.c.word("kernel")?;
        self.kernel.name = self.name_or_string()?;
        self.c.punct("(")?;
        self.items(")", |p| {
            let (text, span) = p.new_name()?;
            let name = if matches!(p.c.tok(), Tok::Str(_)) { p.c.string()? } else { text.to_string() };
            p.c.punct(":")?;
            let ty = p.ty()?;
            let div_by = if p.c.eat_word("div") { p.number()? } else { 1 };
            let range = if p.c.eat_word("in") {
                let lo = p.number()?;
                p.c.punct("..")?;
                Some((lo, p.number::<i64>()?.saturating_sub(1)))
            } else {
                None
            };
            let val = p.define_val(text, span, ty)?;
            p.kernel.params.push(Param { name, ty, val, div_by, range });
            Ok(())
        })?;
        self.kernel.open = self.c.eat_word("open");
        self.c.punct(":")?;
        self.c.end_line()?;
        if self.c.is(&Tok::Indent) {
            self.c.next();
            while self.c.is_word("global") || self.c.is_word("require") {
                if self.c.eat_word("global") {
                    self.global()?
                } else {
                    self.obligation()?
                }
                self.c.end_line()?;
            }
            self.kernel.body = self.stmts()?;
            if !self.c.is(&Tok::Dedent) {
                return self.c.expected("a statement");
            }
            self.c.next();
        }
        Ok((std::mem::take(&mut self.kernel), dialect))
    }

    fn name_or_string(&mut self) -> Res<String> {
        if matches!(self.c.tok(), Tok::Str(_)) { self.c.string() } else { Ok(self.c.any_word("a name")?.to_string()) }
    }

    fn global(&mut self) -> Res<()> {
        self.c.punct("@")?;
        let span = self.c.span();
        let text = self.c.any_word("a name")?;
        let name = if matches!(self.c.tok(), Tok::Str(_)) { self.c.string()? } else { text.to_string() };
        if self.globals.contains(&text) {
            return Err(error(Code::UnknownIrName, span, format!("`@{text}` is defined twice")));
        }
        self.c.punct(":")?;
        let dtype = self.dtype()?;
        self.c.punct("[")?;
        let span = self.c.span();
        let len: usize = self.number()?;
        self.c.punct("]")?;
        self.c.word("align")?;
        let align = self.number()?;
        let constant = self.c.eat_word("constant");
        self.c.punct("=")?;
        self.c.punct("[")?;
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
        self.c.word("require")?;
        let start = self.c.at;
        // The axes come after the expression that uses them.
        while !matches!(self.c.tok(), Tok::Newline | Tok::End) {
            if matches!((self.c.tok(), self.c.peek(1)), (Tok::Word(_), Tok::Word("in"))) {
                self.define_axis()?;
            } else {
                self.c.next();
            }
        }
        self.c.at = start;
        let lo = self.number()?;
        self.c.punct("<=")?;
        let ix = self.ix()?;
        self.c.punct("<=")?;
        let hi = self.number()?;
        let mut axes = Vec::new();
        if self.c.eat_word("for") {
            loop {
                let axis = self.axis()?;
                self.c.word("in")?;
                let lo = self.ix()?;
                self.c.punct("..")?;
                axes.push((axis, lo, self.ix()?));
                if !self.c.eat(",") {
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
        while !matches!(self.c.tok(), Tok::Dedent | Tok::End) {
            if self.c.eat_word("pass") {
                self.c.end_line()?;
                continue;
            }
            let stmt = self.stmt()?;
            if super::walk::bodies(&stmt).is_empty() {
                self.c.end_line()?;
            }
            out.push(stmt);
        }
        Ok(out)
    }

    fn body(&mut self) -> Res<Vec<Stmt>> {
        self.c.end_line()?;
        if !self.c.is(&Tok::Indent) {
            return self.c.expected("an indented body");
        }
        self.c.next();
        let out = self.stmts()?;
        if !self.c.is(&Tok::Dedent) {
            return self.c.expected("a statement");
        }
        self.c.next();
        Ok(out)
    }

    fn stmt(&mut self) -> Res<Stmt> {
        let Tok::Word(word) = *self.c.tok() else { return self.c.expected("a statement") };
        let i1 = Some(DType::I1);
        if !RESERVED.contains(&word) {
            return if matches!(self.c.peek(1), Tok::Punct(":")) { self.definition() } else { self.write() };
        }
        self.c.next();
        Ok(match word {
            "store" => {
                let mem = self.mem()?;
                self.c.punct("=")?;
                let value = self.opnd(Some(mem.elem))?;
                let mask = self.where_clause()?;
                let (order, site) = self.tail()?;
                Stmt::Store { mem, value, mask, order, site }
            }
            "local" => Stmt::Local { buf: self.define_buf()? },
            "for" => self.for_loop()?,
            "loop" => {
                self.c.punct(":")?;
                Stmt::Loop { body: self.body()? }
            }
            "if" => {
                let cond = self.opnd(i1)?;
                self.c.punct(":")?;
                let then = self.body()?;
                let mut els = Vec::new();
                if self.c.eat_word("else") {
                    self.c.punct(":")?;
                    els = self.body()?;
                }
                Stmt::If { cond, then, els }
            }
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "return" => Stmt::Return,
            "print" => {
                let format = self.c.string()?;
                let mut args = Vec::new();
                while self.c.eat(",") {
                    let name = if let Tok::Word(w) = self.c.tok() { self.names.get(w) } else { None };
                    args.push(match name {
                        Some(Thing::Buf(_)) => PrintArg::Buf(self.buf()?),
                        _ => PrintArg::Scalar(self.opnd(None)?),
                    });
                }
                Stmt::Print { format, args, site: self.site()? }
            }
            "assert" => {
                let cond = self.opnd(i1)?;
                self.c.punct(",")?;
                let message = self.c.string()?;
                Stmt::Assert { cond, message, site: self.site()? }
            }
            "prefetch" => Stmt::Prefetch { mem: self.mem()? },
            "stage" => {
                let buf = self.define_buf()?;
                let filled =
                    Filled::WORDS.iter().find(|(word, _)| self.c.eat_word(word)).map_or(Filled::Copied, |f| f.1);
                self.c.punct(":")?;
                Stmt::Stage { buf, filled, body: self.body()? }
            }
            _ => {
                self.c.at -= 1;
                return self.c.expected("a statement");
            }
        })
    }

    fn val_at(&mut self, at: usize) -> Res<ValId> {
        let back = std::mem::replace(&mut self.c.at, at);
        let val = self.val();
        self.c.at = back;
        val
    }

    /// One axis, or several in brackets.
    fn role_axes(&mut self) -> Res<Vec<AxisId>> {
        if !self.c.is_punct("(") {
            return Ok(vec![self.axis()?]);
        }
        self.c.punct("(")?;
        let mut axes = vec![];
        self.items(")", |p| {
            axes.push(p.axis()?);
            Ok(())
        })?;
        Ok(axes)
    }

    fn for_loop(&mut self) -> Res<Stmt> {
        let axis = self.define_axis()?;
        self.c.word("in")?;
        let lo = self.ix()?;
        self.c.punct("..")?;
        let hi = self.ix()?;
        let step = if self.c.eat_word("step") { self.ix()? } else { Ix::Const(1) };
        self.c.punct(":")?;
        let kinds = [("free", LoopKind::Free), ("reduce", LoopKind::Reduce), ("serial", LoopKind::Serial)];
        let kind = self.c.choice(&kinds, "`free`, `reduce` or `serial`")?;
        let place = if self.c.eat_word("unroll") {
            Place::Unroll
        } else if self.c.eat_word("vector") {
            self.c.punct("(")?;
            let lanes = self.number()?;
            self.c.punct(")")?;
            Place::Vector { lanes }
        } else if self.c.eat_word("block") {
            self.c.punct("(")?;
            let dims = [(BLOCKS[0], 0), (BLOCKS[1], 1), (BLOCKS[2], 2)];
            let dim = self.c.choice(&dims, "`x`, `y` or `z`")?;
            let (mut group, mut takers, mut cluster) = (0, 0, 0);
            while self.c.eat(",") {
                if group == 0 && takers == 0 && self.c.eat_word("groups") {
                    self.c.word("of")?;
                    group = self.number()?;
                } else if self.c.eat_word("clusters") {
                    self.c.word("of")?;
                    cluster = self.number()?;
                    break;
                } else {
                    takers = self.number()?;
                    self.c.word("in")?;
                    self.c.word("turn")?;
                }
            }
            self.c.punct(")")?;
            Place::Block { dim, group, takers, cluster }
        } else if self.c.eat_word("thread") {
            Place::Thread
        } else if self.c.eat_word("member") {
            Place::ClusterBlock
        } else if self.c.eat_word("matrix") {
            Place::Matrix
        } else if self.c.eat_word("lanes") {
            Place::Lanes
        } else if self.c.eat_word("warpgroup") {
            Place::Warpgroup
        } else if self.c.eat_word("tcgen05") {
            Place::Tcgen05
        } else if self.c.eat_word("tensor") {
            Place::TmaStore
        } else if self.c.eat_word("pipeline") {
            self.c.punct("(")?;
            let depth = self.number()?;
            let (mut roles, mut overlap) = (false, false);
            while !overlap && self.c.eat(",") {
                if !roles && self.c.eat_word("roles") {
                    roles = true;
                } else {
                    self.c.word("overlap")?;
                    overlap = true;
                }
            }
            self.c.punct(")")?;
            Place::Pipeline { depth, roles, overlap }
        } else {
            Place::None
        };
        let combine = if self.c.eat_word("combine") { Some(self.combine()?) } else { None };
        let role = |p: &mut Self, name: &str| {
            p.c.word(name)?;
            p.c.punct("=")
        };
        let (mut roles, mut streamed) = (None, None);
        if self.c.eat_word("stream") {
            // The values are defined in the body.
            let mut inner = [0; 2];
            for (at, name) in inner.iter_mut().zip(["score", "value"]) {
                role(self, name)?;
                *at = self.c.at;
                self.c.any_word("a name")?;
            }
            role(self, "greatest")?;
            let greatest = self.buf()?;
            role(self, "total")?;
            let total = self.buf()?;
            role(self, "acc")?;
            streamed = Some((inner, greatest, total, self.buf()?));
        }
        if self.c.eat_word("contraction") {
            role(self, "m")?;
            let m = self.role_axes()?;
            role(self, "n")?;
            let n = self.role_axes()?;
            role(self, "k")?;
            let k = self.role_axes()?;
            // The operands are defined in the body.
            role(self, "a")?;
            let a = self.c.at;
            self.c.any_word("a value")?;
            role(self, "b")?;
            let b = self.c.at;
            self.c.any_word("a value")?;
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
        let span = self.c.span();
        let name = self.c.any_word("an operation")?;
        self.c.punct("(")?;
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
        self.c.word("from")?;
        let identity = self.constant(dtype)?;
        let ways = if self.c.eat_word("x") { self.number()? } else { 1 };
        Ok(Combine { accs, op: CombineOp::Scalar { op, identity }, ways })
    }

    fn write(&mut self) -> Res<Stmt> {
        let buf = self.buf()?;
        let idx = self.subscripts()?;
        self.c.punct("=")?;
        let value = self.opnd(num_of(Some(self.kernel.bufs[buf].ty)))?;
        Ok(Stmt::Write { buf, idx, value })
    }

    fn subscripts(&mut self) -> Res<Vec<Ix>> {
        let mut idx = Vec::new();
        if self.c.eat("[") {
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
        self.c.punct(":")?;
        let ty = self.ty()?;
        self.c.punct("=")?;
        let mut stmt = self.expr(ty)?;
        let val = self.define_val(name, span, ty)?;
        super::walk::parts_mut(&mut stmt, &mut |part| {
            if let super::walk::PartMut::DefVal(dst) = part {
                *dst = val;
            }
        });
        Ok(stmt)
    }

    /// The right side of a definition, whose value is filled in later.
    fn expr(&mut self, ty: Ty) -> Res<Stmt> {
        let dst = ValId(u32::MAX);
        let Tok::Word(word) = *self.c.tok() else { return self.infix(ty) };
        if matches!(self.c.peek(1), Tok::Punct("(")) && word != "index" && word != "test" {
            return self.call(word, ty);
        }
        if let Some(Thing::Buf(buf)) = self.names.get(word) {
            let buf = *buf;
            self.c.next();
            return Ok(Stmt::Read { dst, buf, idx: self.subscripts()? });
        }
        match word {
            "index" => {
                self.c.next();
                Ok(Stmt::Index { dst, ix: self.ix()? })
            }
            "test" => {
                self.c.next();
                Ok(Stmt::Test { dst, mask: self.mask()? })
            }
            "load" => {
                self.c.next();
                let mem = self.mem()?;
                let mask = self.where_clause()?;
                let other = if self.c.eat_word("else") { Some(self.opnd(num_of(Some(ty)))?) } else { None };
                let (order, site) = self.tail()?;
                Ok(Stmt::Load { dst, mem, mask, other, order, site })
            }
            "atomic" => {
                self.c.next();
                let op = self.c.choice(&RMWS, "an atomic operation")?;
                let mem = self.mem()?;
                self.c.punct(",")?;
                let value = self.opnd(Some(mem.elem))?;
                let mask = self.where_clause()?;
                let (order, site) = self.tail()?;
                Ok(Stmt::Rmw { dst, op, mem, value, mask, order, site })
            }
            "cas" => {
                self.c.next();
                let mem = self.mem()?;
                self.c.punct(",")?;
                let cmp = self.opnd(Some(mem.elem))?;
                self.c.punct(",")?;
                let value = self.opnd(Some(mem.elem))?;
                let mask = self.where_clause()?;
                let (order, site) = self.tail()?;
                Ok(Stmt::Cas { dst, mem, cmp, value, mask, order, site })
            }
            "global" => {
                self.c.next();
                self.c.punct("@")?;
                let span = self.c.span();
                let name = self.c.any_word("a global's name")?;
                match self.globals.iter().position(|g| *g == name) {
                    Some(global) => Ok(Stmt::GlobalAddr { dst, global: global as u32 }),
                    None => Err(error(Code::UnknownIrName, span, format!("unknown global `@{name}`"))),
                }
            }
            "alloca" => {
                self.c.next();
                let bytes = self.number()?;
                self.c.word("align")?;
                let align = self.number()?;
                Ok(Stmt::Alloca { dst, bytes, align, site: self.site()? })
            }
            _ => self.infix(ty),
        }
    }

    fn call(&mut self, word: &str, ty: Ty) -> Res<Stmt> {
        let dst = ValId(u32::MAX);
        let span = self.c.span();
        self.c.next();
        self.c.punct("(")?;
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
        let span = self.c.span();
        let symbol = match self.c.tok() {
            Tok::Punct(p) if INFIX.contains(p) => *p,
            _ => {
                if let Raw::Val(_) = a {
                    return self.c.expected("an operator");
                }
                let value = self.resolve(a, num_of(Some(ty)))?;
                return Ok(Stmt::Let { dst, op: ScalarOp::Copy, args: vec![value] });
            }
        };
        self.c.next();
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
