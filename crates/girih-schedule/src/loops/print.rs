//! Loop IR and Tile IR as text. [`print()`] and `parse::parse` are inverse: a printed kernel reads back as the same
//! kernel, up to the numbering of ids, and prints the same again. Source places do not survive.
//!
//! ```text
//! kernel  := ("loop" | "tile") "kernel" NAME "(" param,* ")" "open"? ":" head* stmt*     bodies are indented by 2
//! param   := NAME STRING? ":" ty ("div" INT)? ("in" INT ".." INT)?   STRING: the real name where NAME had to differ
//! head    := "global" "@"NAME STRING? ":" dtype "[" INT "]" "align" INT "constant"? "=" "[" const,* "]"
//!          | "require" INT "<=" ix "<=" INT ("for" (AXIS "in" ix ".." ix),+)?                an obligation
//! ty      := dtype | "ptr" dtype
//!
//! stmt    := a row of [`super::statements`], on a line of its own; [`super::kinds`] describes its parts
//! space   := "register" "(" INT ")" | "shared" ("swizzle" "(" INT ")")? | "private" | "kept" "zeroed"?   tile IR
//! place   := "unroll" | "vector" "(" INT ")" | "thread"
//!          | "block" "(" ("x" | "y" | "z") ("," "groups" "of" INT)? ("," INT "in" "turn")? ")"
//!          | "pipeline" "(" INT ("," "roles")? ("," "overlap")? ")" | "matrix" | "warpgroup" | "tcgen05" | "lanes" | "tensor"  tile IR
//! role    := AXIS | "(" AXIS,* ")"
//!
//! mask    := (ix CMP ix | VAL) ("and" ...)* | "true"
//! opnd    := VAL | const (":" dtype)?                        the type where the context does not give it
//! const   := INT | FLOAT | "inf" | "-inf" | "nan" | "true" | "false" | "0x" HEX (the bits)
//! ix      := term (("+" | "-") term)*
//! term    := atom (("*" | "//" | "%") atom)*
//! atom    := INT | AXIS | VAL | "zext" "(" VAL ")" | "bx" | "by" | "bz" | "gx" | "gy" | "gz"
//!          | ("min" | "max") "(" ix "," ix ")" | "(" ix ")"
//! ```
//! `#` starts a comment. Values, axes and buffers share one space of names; each name is unique in its kernel.

use super::ir::*;
use super::names::{Names, is_name};
use super::statements;
use crate::base::label::quote;
use crate::index::text;
use crate::num::literal::const_text;
use crate::num::spell::{Class, INFIX, infix_op, plain_conversion, spell};
use crate::num::{DType, ScalarOp};

/// Which of the two languages a kernel is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    Loop,
    Tile,
}

impl Dialect {
    pub fn word(self) -> &'static str {
        match self {
            Dialect::Loop => "loop",
            Dialect::Tile => "tile",
        }
    }
}

/// The kernel as text.
pub fn print(kernel: &Kernel, dialect: Dialect) -> String {
    print_numbered(kernel, dialect).0
}

/// The same, and the line of each statement in it, from 1 and in order of the text. Statements inside others count too.
pub fn print_numbered(kernel: &Kernel, dialect: Dialect) -> (String, Vec<u32>) {
    let mut p = Printer::new(kernel);
    p.kernel(dialect);
    (p.out, p.starts)
}

/// The names of a kernel, computed once, for many messages.
pub struct Namer<'a>(Printer<'a>);

impl<'a> Namer<'a> {
    pub fn new(kernel: &'a Kernel) -> Namer<'a> {
        Namer(Printer::new(kernel))
    }
    pub fn ix(&self, ix: &Ix) -> String {
        self.0.ix(ix)
    }
    pub fn mask(&self, mask: &Mask) -> String {
        self.0.mask(mask)
    }
    pub fn val(&self, val: ValId) -> String {
        self.0.names.val(val)
    }
    pub fn axis(&self, axis: AxisId) -> String {
        self.0.names.axis(axis)
    }
    pub fn buf(&self, buf: BufId) -> String {
        self.0.names.buf(buf)
    }
    /// The statement's first line.
    pub fn stmt(&mut self, stmt: &Stmt) -> String {
        self.0.out.clear();
        self.0.starts.clear();
        self.0.stmt(stmt);
        self.0.out.lines().next().unwrap_or("").trim().to_string()
    }
}

pub(super) struct Printer<'a> {
    kernel: &'a Kernel,
    pub names: Names,
    globals: Vec<String>,
    out: String,
    /// The line so far, and the comment behind it.
    text: String,
    comment: String,
    /// The type of the value that the statement defines, and of a constant that stands next.
    pub ty: Option<Ty>,
    pub elem: Option<DType>,
    op: ScalarOp,
    indent: usize,
    /// Lines printed so far, and on which each statement begins.
    line: u32,
    starts: Vec<u32>,
}

/// A global under a name, as in Loop IR and Kernel IR.
pub fn global_text(g: &Global, name: &str) -> String {
    let constant = if g.constant { " constant" } else { "" };
    let values = list(&g.bits, |b| const_text(g.dtype, *b));
    format!("global @{name}: {}[{}] align {}{constant} = [{values}]", g.dtype, g.bits.len(), g.align)
}

fn name_or_quoted(text: &str) -> String {
    if is_name(text) { text.to_string() } else { quote(text) }
}

fn ty_text(ty: Ty) -> String {
    match ty {
        Ty::Num(d) => d.name().to_string(),
        Ty::Ptr(d) => format!("ptr {}", d.name()),
    }
}

pub fn class_of(ty: Option<Ty>) -> Class {
    num_of(ty).map_or(Class::Any, Class::of)
}

pub fn num_of(ty: Option<Ty>) -> Option<DType> {
    ty.and_then(Ty::num)
}

pub const ORDERS: [(&str, Order); 5] = [
    ("weak", Order::Weak),
    ("relaxed", Order::Relaxed),
    ("acquire", Order::Acquire),
    ("release", Order::Release),
    ("acq_rel", Order::AcqRel),
];

pub const RMWS: [(&str, RmwOp); 10] = [
    ("and", RmwOp::And),
    ("or", RmwOp::Or),
    ("xor", RmwOp::Xor),
    ("add", RmwOp::Add),
    ("addf", RmwOp::AddF),
    ("max", RmwOp::Max),
    ("min", RmwOp::Min),
    ("umax", RmwOp::UMax),
    ("umin", RmwOp::UMin),
    ("xchg", RmwOp::Xchg),
];

/// The dimensions of a grid.
pub const BLOCKS: [&str; 3] = ["x", "y", "z"];

/// The places of loops that are one word.
pub(super) const PLACES: [(&str, Place); 8] = [
    ("unroll", Place::Unroll),
    ("thread", Place::Thread),
    ("member", Place::ClusterBlock),
    ("matrix", Place::Matrix),
    ("lanes", Place::Lanes),
    ("warpgroup", Place::Warpgroup),
    ("tcgen05", Place::Tcgen05),
    ("tensor", Place::TmaStore),
];

/// A loop's place as it is written after the kind.
pub fn place_text(place: Place) -> String {
    match place {
        Place::None => String::new(),
        Place::Vector { lanes } => format!("vector({lanes})"),
        Place::Block { dim, group, takers, cluster } => {
            let groups = if group == 0 { String::new() } else { format!(", groups of {group}") };
            let takers = if takers == 0 { String::new() } else { format!(", {takers} in turn") };
            let clusters = if cluster == 0 { String::new() } else { format!(", clusters of {cluster}") };
            format!("block({}{groups}{takers}{clusters})", BLOCKS[usize::from(dim).min(2)])
        }
        Place::Pipeline { depth, roles, overlap } => {
            let (roles, overlap) = (if roles { ", roles" } else { "" }, if overlap { ", overlap" } else { "" });
            format!("pipeline({depth}{roles}{overlap})")
        }
        place => word_of(&PLACES, &place).to_string(),
    }
}

pub fn word_of<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, v)| v == value).map_or("?", |(w, _)| w)
}

pub fn of_word<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(w, _)| *w == word).map(|(_, v)| *v)
}

pub(super) fn list<T>(items: &[T], f: impl Fn(&T) -> String) -> String {
    items.iter().map(f).collect::<Vec<_>>().join(", ")
}

impl<'a> Printer<'a> {
    fn new(kernel: &'a Kernel) -> Printer<'a> {
        let names = Names::of(kernel);
        Printer {
            kernel,
            names,
            globals: vec![],
            out: String::new(),
            text: String::new(),
            comment: String::new(),
            ty: None,
            elem: None,
            op: ScalarOp::Copy,
            indent: 0,
            line: 0,
            starts: vec![],
        }
    }
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        self.line += 1;
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn val_ty(&self, val: ValId) -> Option<Ty> {
        self.kernel.vals.get(val).map(|v| v.ty)
    }

    pub(super) fn buf_ty(&self, buf: BufId) -> Option<Ty> {
        self.kernel.bufs.get(buf).map(|b| b.ty)
    }

    /// `NAME ":" ty`, of the value that the statement defines.
    pub(super) fn define(&mut self, val: ValId) -> String {
        self.ty = self.val_ty(val);
        self.elem = num_of(self.ty);
        format!("{}: {}", self.names.val(val), self.ty.map_or("?".to_string(), ty_text))
    }

    fn kernel(&mut self, dialect: Dialect) {
        let k = self.kernel;
        let params = list(&k.params, |p| {
            let name = self.names.val(p.val);
            let real = if name == p.name { String::new() } else { format!(" {}", quote(&p.name)) };
            let div = if p.div_by == 1 { String::new() } else { format!(" div {}", p.div_by) };
            let range = p.range.map_or(String::new(), |(lo, hi)| format!(" in {lo}..{}", hi.saturating_add(1)));
            format!("{name}{real}: {}{div}{range}", ty_text(p.ty))
        });
        let open = if k.open { " open" } else { "" };
        self.line(&format!("{} kernel {}({params}){open}:", dialect.word(), name_or_quoted(&k.name)));
        self.indent += 1;
        for (i, g) in k.globals.iter().enumerate() {
            let taken = !is_name(&g.name) || self.globals.contains(&g.name);
            let name = if taken { format!("g{i}") } else { g.name.clone() };
            let real = if taken { format!(" {}", quote(&g.name)) } else { String::new() };
            self.line(&global_text(g, &format!("{name}{real}")));
            self.globals.push(name);
        }
        for o in &k.obligations {
            let axes = list(&o.axes, |(a, lo, hi)| {
                format!("{} in {}..{}", self.names.axis(*a), self.range_end(lo), self.range_end(hi))
            });
            let axes = if axes.is_empty() { axes } else { format!(" for {axes}") };
            self.line(&format!("require {} <= {} <= {}{axes}", o.lo, self.ix(&o.ix), o.hi));
        }
        if !k.body.is_empty() {
            self.stmts(&k.body);
        }
        self.indent -= 1;
    }

    fn stmts(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.starts.push(self.line + 1);
        statements::print(stmt, self);
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.line(&text);
        }
    }

    /// Adds a word, or a part, to the line.
    pub(super) fn word(&mut self, text: &str) {
        let before = self.text.is_empty() || self.text.ends_with('@') || self.text.ends_with("..");
        if !before && !text.is_empty() && !text.starts_with(['[', ',', ':']) && text != ".." {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// Prints the line so far, and the statements of its body.
    pub(super) fn body(&mut self, body: &[Stmt]) {
        let head = std::mem::take(&mut self.text) + &std::mem::take(&mut self.comment);
        self.line(&head);
        self.indent += 1;
        if body.is_empty() {
            self.line("pass");
        }
        self.stmts(body);
        self.indent -= 1;
    }

    /// The name of a loop's axis; where it comes from is said at the end of the line.
    pub(super) fn open(&mut self, axis: AxisId) -> String {
        let from = self.kernel.axes.get(axis).and_then(Axis::place);
        self.comment = from.map_or(String::new(), |at| format!("  # {at}"));
        self.names.axis(axis)
    }

    pub(super) fn global(&self, global: u32) -> String {
        self.globals.get(global as usize).cloned().unwrap_or_else(|| format!("?{global}"))
    }

    /// The argument of a print statement.
    pub(super) fn shown(&self, arg: &PrintArg) -> String {
        match arg {
            PrintArg::Scalar(opnd) => self.opnd(opnd, None),
            PrintArg::Buf(buf) => self.names.buf(*buf),
        }
    }

    /// One axis, or several in brackets.
    pub(super) fn role(&self, axes: &[AxisId]) -> String {
        match axes {
            [only] => self.names.axis(*only),
            all => format!("({})", list(all, |a| self.names.axis(*a))),
        }
    }

    pub(super) fn combine(&self, c: &Combine) -> String {
        let CombineOp::Scalar { op, identity } = c.op;
        let dtype = c.accs.first().and_then(|b| num_of(self.buf_ty(*b)));
        let from = match dtype {
            Some(d) => const_text(d, identity),
            None => format!("0x{identity:x}"),
        };
        let accs = list(&c.accs, |b| self.names.buf(*b));
        let ways = if c.ways == 1 { String::new() } else { format!(" x {}", c.ways) };
        format!("combine {}({accs}) from {from}{ways}", spell(op, class_of(dtype.map(Ty::Num))))
    }

    pub(super) fn buf_decl(&self, buf: BufId) -> String {
        let name = self.names.buf(buf);
        let Some(b) = self.kernel.bufs.get(buf) else { return format!("{name}: ?") };
        let mut text = format!("{name}: {}", ty_text(b.ty));
        if !b.shape.is_empty() {
            text += &format!("[{}]", list(&b.shape, |n| n.to_string()));
        }
        match b.space {
            Space::Scratch => {}
            Space::Register { lanes } => text += &format!(" register({lanes})"),
            Space::Shared => text += " shared",
            Space::Private => text += " private",
            Space::Kept { zeroed } => text += if zeroed { " kept zeroed" } else { " kept" },
        }
        if b.swizzle > 0 {
            text += &format!(" swizzle({})", b.swizzle);
        }
        text
    }

    pub(super) fn mem(&self, mem: &Mem) -> String {
        let mut text = self.names.val(mem.base);
        if self.val_ty(mem.base) != Some(Ty::Ptr(mem.elem)) {
            text += &format!(" as {}", mem.elem);
        }
        text + &format!("[{}]", self.ix(&mem.index))
    }

    pub(super) fn site(&self, site: SiteId) -> String {
        match self.kernel.sites.get(site) {
            Some(s) if !s.op.is_empty() => format!("!{}", name_or_quoted(&s.op)),
            _ => String::new(),
        }
    }

    pub(super) fn mask(&self, mask: &Mask) -> String {
        text::mask_text(mask, &self.names)
    }

    pub(super) fn opnd(&self, opnd: &Opnd, expected: Option<DType>) -> String {
        match opnd {
            Opnd::Val(v) => self.names.val(*v),
            Opnd::Const { dtype, bits } => {
                let text = const_text(*dtype, *bits);
                // `true` is an i1 wherever it stands.
                if Some(*dtype) == expected || (*dtype == DType::I1 && *bits <= 1) {
                    text
                } else {
                    format!("{text}:{dtype}")
                }
            }
        }
    }

    /// The operation whose operands come next, and whose text they have in them.
    pub(super) fn operation(&mut self, op: ScalarOp) -> String {
        self.op = op;
        String::new()
    }

    pub(super) fn operands(&self, args: &[Opnd]) -> String {
        let (op, to) = (self.op, self.ty);
        let first = args.first().and_then(|a| self.kernel.opnd_ty(a));
        let arg = |i: usize| self.opnd(&args[i], op.untyped(i, to, first));
        let declared = class_of(to);
        let class = if op.is_comparison() { class_of(first) } else { declared };
        if args.len() == 2
            && let Some(symbol) = INFIX.into_iter().find(|s| infix_op(s, class) == Some(op))
        {
            return format!("{} {symbol} {}", arg(0), arg(1));
        }
        if let (ScalarOp::Copy, [Opnd::Const { .. }]) = (op, args) {
            return arg(0);
        }
        if let ([_], Some(Ty::Num(from)), Some(Ty::Num(to))) = (args, first, to)
            && plain_conversion(from, to) == Some(op)
        {
            return format!("{to}({})", arg(0));
        }
        let args: Vec<String> = (0..args.len()).map(arg).collect();
        format!("{}({})", spell(op, declared), args.join(", "))
    }

    pub(super) fn ix(&self, ix: &Ix) -> String {
        text::ix_text(ix, &self.names)
    }

    pub(super) fn range_end(&self, ix: &Ix) -> String {
        text::end_text(ix, &self.names)
    }
}
