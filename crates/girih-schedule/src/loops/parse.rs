//! Reads the text of Loop IR and Tile IR, whose grammar is in `loops/print.rs`: a statement by the row of the table that its words name.
//!
//! The parser checks only what it needs to build the tree (names, arities, literals). `loops::verify` checks scopes,
//! types and what a stage allows.

mod names;
mod terms;

use rustc_hash::FxHashMap;

use super::ir::*;
use super::names::RESERVED;
use super::print::{BLOCKS, Dialect, class_of, num_of};
use super::statements::{ROWS, Row};
use super::walk::{self, PartMut};
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
        made: None,
        ty: None,
        elem: None,
        args: vec![],
        roles: vec![],
    };
    let mut out = Vec::new();
    while !p.c.is(&Tok::End) {
        out.push(p.kernel()?);
    }
    Ok(out)
}

pub(super) type Res<T> = Result<T, Diagnostic>;

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

pub(super) struct Parser<'t, 'a> {
    pub c: Cursor<'t, 'a>,
    pub kernel: Kernel,
    names: FxHashMap<&'a str, Thing>,
    globals: Vec<&'a str>,
    /// The name of the value that the statement defines, which is known where the statement ends, and its type.
    made: Option<(&'a str, Span)>,
    pub ty: Option<Ty>,
    /// The type of a constant that stands next.
    pub elem: Option<DType>,
    /// The operands of the operation that was read last.
    pub args: Vec<Opnd>,
    /// The tokens that name values of bodies which are not read yet.
    roles: Vec<usize>,
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
        let bits = self.items("]", |p| p.constant(dtype))?;
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
            if walk::bodies(&stmt).is_empty() {
                self.c.end_line()?;
            }
            out.push(stmt);
        }
        Ok(out)
    }

    pub(super) fn body(&mut self) -> Res<Vec<Stmt>> {
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
        let row = match ROWS.iter().find(|row| row.head.first() == Some(&word)) {
            None if RESERVED.contains(&word) => None,
            None if matches!(self.c.peek(1), Tok::Punct(":")) => self.defining()?,
            None => ROWS.iter().find(|row| row.kinds.first() == Some(&"WriteTo")),
            row => row,
        };
        let Some(row) = row else { return self.c.expected("a statement") };
        let roles = self.roles.len();
        let mut stmt = (row.parse)(self)?;
        let made = match self.made.take().zip(self.ty) {
            Some(((name, span), ty)) => Some(self.define_val(name, span, ty)?),
            None => None,
        };
        let roles = self.roles.split_off(roles);
        let mut roles = roles.into_iter().map(|at| self.val_at(at)).collect::<Res<Vec<_>>>()?.into_iter();
        walk::parts_mut(&mut stmt, &mut |part| match part {
            PartMut::DefVal(val) => *val = made.unwrap_or(*val),
            PartMut::RoleVal(val) => *val = roles.next().unwrap_or(*val),
            _ => {}
        });
        Ok(stmt)
    }

    /// The row of the definition here: by the word behind `=`, of a buffer's name, or of an operation.
    fn defining(&mut self) -> Res<Option<&'static Row>> {
        let start = self.c.at;
        self.new_val()?;
        self.c.punct("=")?;
        let word = if let Tok::Word(word) = *self.c.tok() { word } else { "" };
        let reads = !self.c.is_call() && matches!(self.names.get(word), Some(Thing::Buf(_)));
        self.c.at = start;
        let defines = || ROWS.iter().filter(|row| row.kinds.first() == Some(&"New"));
        let kind = if reads { "ReadFrom" } else { "Operation" };
        let named = defines().find(|row| row.next.get(1) == Some(&word));
        Ok(named.or_else(|| defines().find(|row| row.kinds.get(1) == Some(&kind))))
    }

    /// `VAL ":" ty`; the value cannot be used before the next statement.
    pub(super) fn new_val(&mut self) -> Res<ValId> {
        self.made = Some(self.new_name()?);
        self.c.punct(":")?;
        let ty = self.ty()?;
        (self.ty, self.elem) = (Some(ty), num_of(Some(ty)));
        Ok(ValId(u32::MAX))
    }

    /// The value of a role, which the body defines.
    pub(super) fn inner_val(&mut self) -> Res<ValId> {
        self.roles.push(self.c.at);
        self.c.any_word("a value")?;
        Ok(ValId(u32::MAX))
    }

    /// `NAME "=" ..`
    pub(super) fn role<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.c.word(name)?;
        self.c.punct("=")?;
        read(self)
    }

    /// A word or sign of a row.
    pub(super) fn expect(&mut self, text: &str) -> Res<()> {
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) { self.c.word(text) } else { self.c.punct(text) }
    }

    /// Takes one of a table's words, if it comes next.
    pub(super) fn one_of<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        table.iter().find(|(word, _)| self.c.eat_word(word)).map(|(_, value)| *value)
    }

    fn val_at(&mut self, at: usize) -> Res<ValId> {
        let back = std::mem::replace(&mut self.c.at, at);
        let val = self.val();
        self.c.at = back;
        val
    }

    /// One axis, or several in brackets.
    pub(super) fn role_axes(&mut self) -> Res<Vec<AxisId>> {
        if self.c.eat("(") { self.items(")", Self::axis) } else { Ok(vec![self.axis()?]) }
    }

    /// A place that has numbers, or none.
    pub(super) fn place(&mut self) -> Res<Place> {
        let Some(word) = ["vector", "block", "pipeline"].into_iter().find(|word| self.c.eat_word(word)) else {
            return Ok(Place::None);
        };
        self.c.punct("(")?;
        let place = match word {
            "vector" => Place::Vector { lanes: self.number()? },
            "block" => {
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
                Place::Block { dim, group, takers, cluster }
            }
            _ => {
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
                Place::Pipeline { depth, roles, overlap }
            }
        };
        self.c.punct(")")?;
        Ok(place)
    }

    pub(super) fn combine(&mut self) -> Res<Combine> {
        let span = self.c.span();
        let name = self.c.any_word("an operation")?;
        self.c.punct("(")?;
        let accs = self.items(")", Self::buf)?;
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

    pub(super) fn global_name(&mut self) -> Res<u32> {
        let span = self.c.span();
        let name = self.c.any_word("a global's name")?;
        match self.globals.iter().position(|g| *g == name) {
            Some(global) => Ok(global as u32),
            None => Err(error(Code::UnknownIrName, span, format!("unknown global `@{name}`"))),
        }
    }

    /// The argument of a print statement.
    pub(super) fn shown(&mut self) -> Res<PrintArg> {
        let name = if let Tok::Word(w) = self.c.tok() { self.names.get(w) } else { None };
        match name {
            Some(Thing::Buf(_)) => self.buf().map(PrintArg::Buf),
            _ => self.opnd(None).map(PrintArg::Scalar),
        }
    }

    /// An operation with its operands, which [`Parser::args`] are then.
    pub(super) fn scalar(&mut self) -> Res<ScalarOp> {
        match *self.c.tok() {
            Tok::Word(word) if self.c.is_call() => self.call(word),
            _ => self.infix(),
        }
    }

    fn call(&mut self, word: &str) -> Res<ScalarOp> {
        let (span, ty) = (self.c.span(), self.ty);
        self.c.next();
        self.c.punct("(")?;
        let raw = self.items(")", Self::raw_opnd)?;
        let first = raw.first().and_then(|r| self.raw_ty(r));
        let op = match DType::from_name(word) {
            Some(to) => num_of(first).and_then(|from| plain_conversion(from, to)),
            None => parse_op(word, class_of(ty)),
        };
        let Some(op) = op else {
            return Err(error(Code::MalformedIr, span, format!("`{word}` is not defined for these operands")));
        };
        let arity = op.arity();
        if raw.len() != arity {
            return Err(error(Code::MalformedIr, span, format!("`{word}` needs {arity} operands")));
        }
        let args = raw.into_iter().enumerate();
        let args = args.map(|(i, r)| self.resolve(r, op.untyped(i, ty, first)));
        self.args = args.collect::<Res<_>>()?;
        Ok(op)
    }

    fn infix(&mut self) -> Res<ScalarOp> {
        let ty = self.ty;
        let a = self.raw_opnd()?;
        let span = self.c.span();
        let symbol = match self.c.tok() {
            Tok::Punct(p) if INFIX.contains(p) => *p,
            _ => {
                if let Raw::Val(_) = a {
                    return self.c.expected("an operator");
                }
                self.args = vec![self.resolve(a, num_of(ty))?];
                return Ok(ScalarOp::Copy);
            }
        };
        self.c.next();
        let b = self.raw_opnd()?;
        let first = self.raw_ty(&a);
        let compares = matches!(symbol, "==" | "!=" | "<" | "<=" | ">" | ">=");
        let class = class_of(if compares { first } else { ty });
        let Some(op) = infix_op(symbol, class) else {
            return Err(error(Code::MalformedIr, span, format!("`{symbol}` is not defined for these types")));
        };
        let a = self.resolve(a, op.untyped(0, ty, first))?;
        let b = self.resolve(b, op.untyped(1, ty, first))?;
        self.args = vec![a, b];
        Ok(op)
    }
}
