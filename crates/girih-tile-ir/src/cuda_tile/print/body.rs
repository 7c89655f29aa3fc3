//! The text of functions, regions and operations.

use super::attrs::{attr_text, string_text};
use super::names::Names;
use super::nvidia_names::nvidia_names;
use super::types::{join, type_text};
use super::{Printer, symbol_text};
use crate::base::provenance::SourceId;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::ops::{self, AttrKind, OpInfo, Piece, Role};

pub(super) struct Body<'p, 'a, 'f> {
    p: &'p mut Printer<'a>,
    f: &'f Func,
    names: Names,
}

/// The text of a statement while it is built.
#[derive(Default)]
struct Line(String);

impl Line {
    /// Adds a piece, with a blank before it if one is needed.
    fn word(&mut self, piece: &str) {
        let tight = piece == "," || piece == "[" || piece == "]" || self.0.ends_with('[');
        if !tight && !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(piece);
    }
}

impl<'p, 'a, 'f> Body<'p, 'a, 'f> {
    pub fn new(p: &'p mut Printer<'a>, f: &'f Func) -> Self {
        let names = if p.nvidia() { nvidia_names(f) } else { Names::new(f) };
        Body { p, f, names }
    }

    pub fn func(mut self) {
        let f = self.f;
        let keyword = match f.kind {
            FuncKind::Entry => "entry",
            FuncKind::Function => "experimental$func",
        };
        let results = match (f.kind, f.results.is_empty()) {
            (FuncKind::Entry, _) | (_, true) => String::new(),
            _ => format!(" -> ({})", join(&f.results, ", ", type_text)),
        };
        let hints = match (f.hints.0.is_empty(), self.p.nvidia()) {
            (true, _) => String::new(),
            (_, true) => format!(" optimization_hints={}", self.p.hints(&f.hints)),
            (_, false) => format!(" optimization_hints = {}", self.p.hints(&f.hints)),
        };
        let (head, tail) = (format!("{keyword} {}(", symbol_text(&f.name)), format!("){results}{hints} {{"));
        match f.params().last().map(|&last| f.values[last].span.start) {
            Some(last) if self.p.comment_before(last) => self.commented_params(&head, &tail),
            _ => self.p.statement(&format!("{head}{}{tail}", self.args(f.params()))),
        }
        self.region(Func::BODY, Opcode::Return);
        let close = format!("}}{}", self.p.loc(&f.loc));
        self.p.line(&close);
        self.p.after(f.span.end);
    }

    /// Parameters with comments among them: each on a line of its own.
    fn commented_params(&mut self, head: &str, tail: &str) {
        let f = self.f;
        self.p.line(head);
        self.p.indent += 2;
        for (i, &v) in f.params().iter().enumerate() {
            self.p.before(f.values[v].span.start);
            let end = if i + 1 == f.params().len() { tail } else { "," };
            self.p.line(&format!("{}{end}", self.args(&[v])));
        }
        self.p.indent -= 2;
    }

    fn value(&self, v: ValueId) -> String {
        format!("%{}", self.names.uses[v.0 as usize])
    }
    fn values(&self, v: &[ValueId]) -> String {
        join(v, ", ", |&v| self.value(v))
    }
    fn ty(&self, v: ValueId) -> String {
        type_text(self.f.ty(v))
    }
    fn types(&self, v: &[ValueId]) -> String {
        join(v, ", ", |&v| self.ty(v))
    }
    fn args(&self, v: &[ValueId]) -> String {
        join(v, ", ", |&v| format!("{}: {}", self.value(v), self.ty(v)))
    }

    /// The statements of a region, one level deeper, without a terminator that the reader inserts.
    fn region(&mut self, r: RegionId, end: Opcode) {
        let f = self.f;
        self.p.indent += 1;
        for &id in &f.regions[r].ops {
            let op = &f.ops[id];
            let silent = op.opcode == end && op.operands.is_empty() && (op.loc.is_unknown() || self.p.nvidia());
            let left_out = match self.p.comments {
                Some(_) => op.span.start == op.span.end,
                None => end != Opcode::Return,
            };
            if !(silent && left_out) {
                self.statement(id, op);
            }
        }
        let last = f.regions[r].ops.last().map(|&o| f.ops[o].span.end);
        self.p.before_close(last);
        self.p.indent -= 1;
    }

    fn statement(&mut self, id: OpId, op: &'f Op) {
        self.p.before(op.span.start);
        self.p.starts.push((SourceId(op.span.start), self.p.lines.len() as u32 + 1));
        let lhs = join(&self.names.results[id.0 as usize], ", ", |(name, n)| match n {
            1 => format!("%{name}"),
            _ => format!("%{name}:{n}"),
        });
        let lhs = if lhs.is_empty() { lhs } else { lhs + " = " };
        let info = ops::info(op.opcode);
        let name = match op.opcode {
            Opcode::Pow if self.p.nvidia() => "fpowf",
            _ => info.name,
        };
        let loc = self.p.loc(&op.loc);
        if !info.format.is_empty() {
            let text = self.by_format(info, op);
            self.p.statement(&format!("{lhs}{name}{text}{loc}"));
        } else if info.regions.1 == 0 {
            let text = self.plain(op);
            self.p.statement(&format!("{lhs}{name}{text}{loc}"));
        } else {
            self.structured(op, &format!("{lhs}{name}"), &loc);
        }
        self.p.after(op.span.end);
    }

    /// The text after the name, in the table's format.
    fn by_format(&self, info: &OpInfo, op: &Op) -> String {
        let mut line = Line("x".into());
        for piece in &info.pieces {
            match piece {
                Piece::Literal(word) => line.word(word),
                Piece::Operand(g) => {
                    let optional = info.operands[*g].arity == ops::Arity::Optional;
                    let group = op.group(*g);
                    if optional && !group.is_empty() {
                        line.word(",");
                    }
                    if !group.is_empty() {
                        line.word(&self.values(group));
                    }
                }
                Piece::Token(g) => {
                    if let Some(token) = op.operand(*g) {
                        let tight = self.p.nvidia() && !is_view_access(op.opcode);
                        line.word(&format!("token{}{}", if tight { "=" } else { " = " }, self.value(token)));
                    }
                }
                Piece::Attr { index, optional } => {
                    let attr = &info.attrs[*index];
                    match op.attr(attr.key) {
                        Some(value) if attr.kind == AttrKind::Symbol => {
                            let Attr::Str(name) = value else { continue };
                            line.word(&symbol_text(name));
                        }
                        Some(value) => line.word(&attr_text(attr.name, value, self.p.style)),
                        // NVIDIA's disassembler keeps the blank of an absent rounding mode, and of these absent bounds.
                        None if *optional && attr.name == "rounding_mode" && self.p.nvidia() => line.0.push(' '),
                        None if attr.key == AttrKey::Inbounds && is_multimem(op.opcode) && self.p.nvidia() => {
                            line.0.push(' ')
                        }
                        None => {}
                    }
                }
                Piece::Types(roles) => {
                    let first = roles.first().and_then(|role| match role {
                        Role::Operands(g) => op.operand(*g),
                        Role::Result(r) => op.results.get(*r).copied(),
                    });
                    if let Some(v) = first {
                        line.word(&self.ty(v));
                    }
                }
                Piece::OptionalType(g) => {
                    if let Some(v) = op.operand(*g) {
                        line.word(",");
                        line.word(&self.ty(v));
                    }
                }
                Piece::SplatTypes(g) => {
                    let group = op.group(*g);
                    let one = group.iter().all(|&v| self.f.ty(v) == self.f.ty(group[0]));
                    let group = if one { &group[..group.len().min(1)] } else { group };
                    if !group.is_empty() {
                        line.word(",");
                        line.word(&self.types(group));
                    }
                }
                Piece::ResultTypes => {
                    if let Some(&v) = op.results.first() {
                        line.word(&self.ty(v));
                    }
                }
                Piece::OptionalTokenType { printed: true } => line.word("-> token"),
                Piece::OptionalTokenType { .. } => {}
            }
        }
        line.0.split_off(1)
    }

    /// Operations without regions that no format describes.
    fn plain(&self, op: &Op) -> String {
        let str_attr = |key| match op.attr(key) {
            Some(Attr::Str(s)) => s.as_str(),
            _ => "",
        };
        let token = |g: usize| match op.operand(g) {
            Some(t) if self.p.nvidia() => format!(" token={}", self.value(t)),
            Some(t) => format!(" token = {}", self.value(t)),
            None => String::new(),
        };
        match op.opcode {
            Opcode::MakeTensorView => {
                let result = op.results.first().map(|&r| self.f.ty(r));
                let Some(Type::TensorView(view)) = result else { return String::new() };
                let mixed =
                    |numbers: &[Option<i64>], values: &[ValueId]| {
                        let mut values = values.iter();
                        join(numbers, ", ", |n| match n {
                            Some(n) => n.to_string(),
                            None => "".to_string(),
                        })
                        .split(", ")
                        .map(|n| {
                            if n.is_empty() {
                                values.next().map_or(String::new(), |&v| self.value(v))
                            } else {
                                n.into()
                            }
                        })
                        .collect::<Vec<_>>()
                        .join(", ")
                    };
                // The type of the base gives the kind of memory, that of the view everything else.
                let base = op.group(0).iter().filter(|&&v| self.f.tile_ty(v).is_some_and(|t| t.ptr_attr.is_some()));
                let dynamic = base.chain(op.group(1).first().or(op.group(2).first()));
                let dynamic: Vec<ValueId> = dynamic.copied().collect();
                let dynamic = match dynamic.is_empty() {
                    true => String::new(),
                    false => format!("{} -> ", self.types(&dynamic)),
                };
                format!(
                    " {}, shape = [{}], strides = [{}] : {dynamic}{}",
                    self.values(op.group(0)),
                    mixed(&view.shape, op.group(1)),
                    mixed(&view.strides, op.group(2)),
                    result.map_or(String::new(), type_text)
                )
            }
            Opcode::PrintTko => {
                let args = op.group(0);
                let (values, types) = match args.is_empty() {
                    true => (String::new(), String::new()),
                    false => (format!(", {}", self.values(args)), format!(" : {}", self.types(args))),
                };
                format!(" {}{values}{}{types} -> token", string_text(str_attr(AttrKey::Str), self.p.style), token(1))
            }
            Opcode::ExpCall => format!(
                " {}({}) : ({}) -> ({})",
                symbol_text(str_attr(AttrKey::Callee)),
                self.values(&op.operands),
                self.types(&op.operands),
                self.types(&op.results)
            ),
            Opcode::ExpExternElementwise => {
                let info = ops::info(op.opcode);
                let entry = |(k, a): &(AttrKey, Attr)| {
                    format!("{} = {}", info.attr(*k).map_or("", |i| i.name), attr_text("", a, self.p.style))
                };
                let dict =
                    if op.attrs.is_empty() { String::new() } else { format!(" {{{}}}", join(&op.attrs, ", ", entry)) };
                let args = self.values(&op.operands);
                let blank = if args.is_empty() { "" } else { " " };
                format!("{blank}{args}{dict} : ({}) -> {}", self.types(&op.operands), self.types(&op.results))
            }
            Opcode::ExpScatterStore => {
                let one = |g: usize| self.values(op.group(g));
                let dim = op.int(AttrKey::Dim).map_or(String::new(), |d| format!(" <{{dim = {d} : i64}}>"));
                format!(
                    " {}, {}, {}, [{}]{}{dim} : {} -> token",
                    one(0),
                    one(1),
                    one(2),
                    one(3),
                    token(4),
                    self.types(&op.operands)
                )
            }
            Opcode::OptimizationBarrier => {
                let keep = if op.flag(AttrKey::KeepAxisInfo) { ", keep_axis_info" } else { "" };
                format!(" {}{keep} : {}", self.values(&op.operands), self.types(&op.operands))
            }
            // break, continue, return, yield
            _ if op.operands.is_empty() => String::new(),
            _ => format!(" {} : {}", self.values(&op.operands), self.types(&op.operands)),
        }
    }

    fn structured(&mut self, op: &'f Op, head: &str, loc: &str) {
        let f = self.f;
        let region_args = |i: usize| op.regions.get(i).map_or(&[][..], |&r| &f.regions[r].args);
        let inits = |args: &[ValueId], inits: &[ValueId]| {
            let pairs = args.iter().zip(inits).map(|(&a, &i)| format!("{} = {}", self.value(a), self.value(i)));
            let pairs: Vec<String> = pairs.collect();
            if pairs.is_empty() { String::new() } else { format!(" iter_values({})", pairs.join(", ")) }
        };
        let results = self.types(&op.results);
        let arrow = if results.is_empty() { String::new() } else { format!(" -> ({results})") };
        let Some(&first) = op.regions.first() else { return };
        match op.opcode {
            Opcode::For => {
                let unsigned = if op.flag(AttrKey::UnsignedCmp) { " unsigned" } else { "" };
                let (iv, carried) = region_args(0).split_at(region_args(0).len().min(1));
                let bounds = |g: usize| self.values(op.group(g));
                let line = format!(
                    "{head}{unsigned} {} in ({} to {}, step {}) : {}{}{arrow} {{",
                    self.values(iv),
                    bounds(0),
                    bounds(1),
                    bounds(2),
                    self.types(iv),
                    inits(carried, op.group(3))
                );
                self.p.statement(&line);
                self.region(first, Opcode::Continue);
            }
            Opcode::Loop => {
                let args = region_args(0);
                let carried = inits(args, op.group(0));
                let types = match (args.is_empty(), results.is_empty()) {
                    (true, true) => String::new(),
                    (true, false) => format!(" : {results}"),
                    (false, true) => format!(" : {}", self.types(args)),
                    (false, false) => format!(" : {} -> {results}", self.types(args)),
                };
                self.p.statement(&format!("{head}{carried}{types} {{"));
                self.region(first, Opcode::Continue);
            }
            Opcode::If => {
                let line = format!("{head} {}{arrow} {{", self.values(op.group(0)));
                self.p.statement(&line);
                self.region(first, Opcode::Yield);
                if let Some(&other) = op.regions.get(1) {
                    self.p.line("} else {");
                    self.region(other, Opcode::Yield);
                }
            }
            Opcode::Reduce | Opcode::Scan => {
                let info = ops::info(op.opcode);
                let attrs = info.attrs.iter().filter_map(|a| {
                    op.attr(a.key).map(|v| format!(" {}={}", a.name, attr_text(a.name, v, self.p.style)))
                });
                let attrs: String = attrs.collect();
                let line =
                    format!("{head} {}{attrs} : {} -> {results} ", self.values(&op.operands), self.types(&op.operands));
                let args = format!("({}) {{", self.args(region_args(0)));
                if self.p.nvidia() {
                    self.p.line(&line);
                    self.p.line(&args);
                } else {
                    self.p.statement(&format!("{line}{args}"));
                }
                self.region(first, Opcode::Yield);
            }
            _ => {
                self.p.line(&format!("{head} {{"));
                let label = format!("^bb0({}):", self.args(region_args(0)));
                self.p.line(&label);
                self.region(first, Opcode::Yield);
                self.p.line(&format!("}} : {results}{loc}"));
                return;
            }
        }
        self.p.line(&format!("}}{loc}"));
    }
}

/// Returns true for operations whose token is written with blanks around `=`.
fn is_view_access(op: Opcode) -> bool {
    is_multimem(op)
        || matches!(
            op,
            Opcode::LoadViewTko
                | Opcode::StoreViewTko
                | Opcode::AtomicRedViewTko
                | Opcode::GdcWaitTko
                | Opcode::GdcLaunchDependentsTko
        )
}

fn is_multimem(op: Opcode) -> bool {
    use Opcode::*;
    matches!(op, MultimemLoadReduceViewTko | MultimemReduceViewTko | MultimemStoreViewTko)
}
