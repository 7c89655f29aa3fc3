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
//! stmt    := VAL ":" ty "=" expr
//!          | BUF ("[" ix,* "]")? "=" opnd                    write a local buffer; no [] when its rank is 0
//!          | "store" mem "=" opnd where? order? site?
//!          | "local" BUF ":" ty ("[" INT,* "]" space?)?
//!          | "for" AXIS "in" ix ".." ix ("step" ix)? ":" kind body
//!          | "loop" ":" body | "if" opnd ":" body ("else" ":" body)?
//!          | "break" | "continue" | "return" | "pass"        pass: the body is empty
//!          | "print" STRING ("," (opnd | BUF))* site?
//!          | "assert" opnd "," STRING site?
//!          | "stage" BUF ":" ty "[" INT,* "]" space? ("async" | "tensor")? ":" body                    tile IR
//!          | "prefetch" mem                                                                         tile IR
//! space   := "register" "(" INT ")" | "shared" ("swizzle" "(" INT ")")? | "private" | "kept" "zeroed"?   tile IR
//! kind    := ("free" | "reduce" | "serial") place?
//!            ("combine" OP "(" BUF,* ")" "from" const ("x" INT)?)?
//!            ("contraction" "m=" role "n=" role "k=" role "a=" VAL "b=" VAL "acc=" BUF)?
//!            ("stream" "score=" VAL "value=" VAL "greatest=" BUF "total=" BUF "acc=" BUF)?
//! place   := "unroll" | "vector" "(" INT ")" | "thread"
//!          | "block" "(" ("x" | "y" | "z") ("," "groups" "of" INT)? ("," INT "in" "turn")? ")"
//!          | "pipeline" "(" INT ("," "roles")? ("," "overlap")? ")" | "matrix" | "warpgroup" | "tcgen05" | "lanes" | "tensor"  tile IR
//! role    := AXIS | "(" AXIS,* ")"
//!
//! expr    := opnd INFIX opnd                                 + - * / & | ^ <<, by the declared type (float or int; `+` on
//!                                                            pointers counts elements); == != < <= > >= by the operands'
//!                                                            (ordered or signed; `!=` is true on NaN)
//!          | OP "(" opnd,* ")"                               max(a, b), fma.rz.ftz(a, b, c), cmpi.lt.u(a, b), ext.u.i64(a)
//!          | dtype "(" opnd ")"                              plain conversion: rounds to nearest, saturates, signed
//!          | const                                           a copy of the constant
//!          | "index" ix | "test" mask
//!          | "load" mem where? ("else" opnd)? order? site?
//!          | BUF ("[" ix,* "]")?                             read a local buffer
//!          | "atomic" rmw mem "," opnd where? order? site?   rmw: and or xor add addf max min umax umin xchg
//!          | "cas" mem "," opnd "," opnd where? order? site? compare, then replace by
//!          | "global" "@"NAME | "alloca" INT "align" INT site?
//! mem     := VAL ("as" dtype)? "[" ix "]"                    in elements; "as" where the pointer's own type differs
//! where   := "where" mask
//! mask    := (ix CMP ix | VAL) ("and" ...)* | "true"
//! order   := "relaxed" | "acquire" | "release" | "acq_rel"   otherwise weak
//! site    := "!" (NAME | STRING)                             the source operation: !load_ptr_tko
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

struct Printer<'a> {
    kernel: &'a Kernel,
    names: Names,
    globals: Vec<String>,
    out: String,
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
    match ty {
        Some(Ty::Num(d)) => Class::of(d),
        _ => Class::Any,
    }
}

pub fn num_of(ty: Option<Ty>) -> Option<DType> {
    match ty {
        Some(Ty::Num(d)) => Some(d),
        _ => None,
    }
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

/// A loop's place as it is written after the kind.
pub fn place_text(place: Place) -> String {
    match place {
        Place::None => String::new(),
        Place::Unroll => "unroll".to_string(),
        Place::Vector { lanes } => format!("vector({lanes})"),
        Place::Block { dim, group, takers, cluster } => {
            let groups = if group == 0 { String::new() } else { format!(", groups of {group}") };
            let takers = if takers == 0 { String::new() } else { format!(", {takers} in turn") };
            let clusters = if cluster == 0 { String::new() } else { format!(", clusters of {cluster}") };
            format!("block({}{groups}{takers}{clusters})", BLOCKS[usize::from(dim).min(2)])
        }
        Place::Thread => "thread".to_string(),
        Place::ClusterBlock => "member".to_string(),
        Place::Pipeline { depth, roles, overlap } => {
            let (roles, overlap) = (if roles { ", roles" } else { "" }, if overlap { ", overlap" } else { "" });
            format!("pipeline({depth}{roles}{overlap})")
        }
        Place::Matrix => "matrix".to_string(),
        Place::Lanes => "lanes".to_string(),
        Place::Warpgroup => "warpgroup".to_string(),
        Place::Tcgen05 => "tcgen05".to_string(),
        Place::TmaStore => "tensor".to_string(),
    }
}

pub fn word_of<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, v)| v == value).map_or("?", |(w, _)| w)
}

pub fn of_word<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(w, _)| *w == word).map(|(_, v)| *v)
}

fn list<T>(items: &[T], f: impl Fn(&T) -> String) -> String {
    items.iter().map(f).collect::<Vec<_>>().join(", ")
}

impl<'a> Printer<'a> {
    fn new(kernel: &'a Kernel) -> Printer<'a> {
        let names = Names::of(kernel);
        Printer { kernel, names, globals: vec![], out: String::new(), indent: 0, line: 0, starts: vec![] }
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

    fn ty(&self, val: ValId) -> Option<Ty> {
        self.kernel.vals.get(val).map(|v| v.ty)
    }

    fn declared(&self, val: ValId) -> String {
        match self.ty(val) {
            Some(ty) => format!("{}: {}", self.names.val(val), ty_text(ty)),
            None => format!("{}: ?", self.names.val(val)),
        }
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

    fn body(&mut self, head: &str, body: &[Stmt]) {
        self.line(head);
        self.indent += 1;
        if body.is_empty() {
            self.line("pass");
        }
        self.stmts(body);
        self.indent -= 1;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.starts.push(self.line + 1);
        match stmt {
            Stmt::Let { dst, op, args } => {
                let text = format!("{} = {}", self.declared(*dst), self.scalar_op(*dst, *op, args));
                self.line(&text);
            }
            Stmt::Index { dst, ix } => {
                let text = format!("{} = index {}", self.declared(*dst), self.ix(ix));
                self.line(&text);
            }
            Stmt::Test { dst, mask } => {
                let text = format!("{} = test {}", self.declared(*dst), self.mask(mask));
                self.line(&text);
            }
            Stmt::Load { dst, mem, mask, other, order, site } => {
                let mut text = format!("{} = load {}{}", self.declared(*dst), self.mem(mem), self.mask_clause(mask));
                if let Some(other) = other {
                    text += &format!(" else {}", self.opnd(other, num_of(self.ty(*dst))));
                }
                text += &self.tail(*order, *site);
                self.line(&text);
            }
            Stmt::Store { mem, value, mask, order, site } => {
                let value = self.opnd(value, Some(mem.elem));
                let text =
                    format!("store {} = {value}{}{}", self.mem(mem), self.mask_clause(mask), self.tail(*order, *site));
                self.line(&text);
            }
            Stmt::Prefetch { mem } => {
                let text = format!("prefetch {}", self.mem(mem));
                self.line(&text);
            }
            Stmt::Read { dst, buf, idx } => {
                let text = format!("{} = {}", self.declared(*dst), self.element(*buf, idx));
                self.line(&text);
            }
            Stmt::Write { buf, idx, value } => {
                let expected = num_of(self.kernel.bufs.get(*buf).map(|b| b.ty));
                let text = format!("{} = {}", self.element(*buf, idx), self.opnd(value, expected));
                self.line(&text);
            }
            Stmt::Local { buf } => {
                let text = format!("local {}", self.buf_decl(*buf));
                self.line(&text);
            }
            Stmt::For(l) => {
                let from =
                    self.kernel.axes.get(l.axis).and_then(Axis::place).map_or(String::new(), |at| format!("  # {at}"));
                let head = self.for_head(l) + &from;
                self.body(&head, &l.body);
            }
            Stmt::Loop { body } => self.body("loop:", body),
            Stmt::Break => self.line("break"),
            Stmt::Continue => self.line("continue"),
            Stmt::Return => self.line("return"),
            Stmt::If { cond, then, els } => {
                let head = format!("if {}:", self.opnd(cond, Some(DType::I1)));
                self.body(&head, then);
                if !els.is_empty() {
                    self.body("else:", els);
                }
            }
            Stmt::Rmw { dst, op, mem, value, mask, order, site } => {
                let text = format!(
                    "{} = atomic {} {}, {}{}{}",
                    self.declared(*dst),
                    word_of(&RMWS, op),
                    self.mem(mem),
                    self.opnd(value, Some(mem.elem)),
                    self.mask_clause(mask),
                    self.tail(*order, *site)
                );
                self.line(&text);
            }
            Stmt::Cas { dst, mem, cmp, value, mask, order, site } => {
                let text = format!(
                    "{} = cas {}, {}, {}{}{}",
                    self.declared(*dst),
                    self.mem(mem),
                    self.opnd(cmp, Some(mem.elem)),
                    self.opnd(value, Some(mem.elem)),
                    self.mask_clause(mask),
                    self.tail(*order, *site)
                );
                self.line(&text);
            }
            Stmt::Print { format, args, site } => {
                let mut text = format!("print {}", quote(format));
                for arg in args {
                    text += ", ";
                    text += &match arg {
                        PrintArg::Scalar(opnd) => self.opnd(opnd, None),
                        PrintArg::Buf(buf) => self.names.buf(*buf),
                    };
                }
                text += &self.site(*site);
                self.line(&text);
            }
            Stmt::Assert { cond, message, site } => {
                let cond = self.opnd(cond, Some(DType::I1));
                let text = format!("assert {cond}, {}{}", quote(message), self.site(*site));
                self.line(&text);
            }
            Stmt::GlobalAddr { dst, global } => {
                let name = self.globals.get(*global as usize).cloned().unwrap_or_else(|| format!("?{global}"));
                let text = format!("{} = global @{name}", self.declared(*dst));
                self.line(&text);
            }
            Stmt::Alloca { dst, bytes, align, site } => {
                let text = format!("{} = alloca {bytes} align {align}{}", self.declared(*dst), self.site(*site));
                self.line(&text);
            }
            Stmt::Stage { buf, filled, body } => {
                let head = format!("stage {}{}:", self.buf_decl(*buf), filled.suffix());
                self.body(&head, body);
            }
        }
    }

    fn role(&self, axes: &[AxisId]) -> String {
        match axes {
            [only] => self.names.axis(*only).to_string(),
            all => format!("({})", all.iter().map(|a| self.names.axis(*a).to_string()).collect::<Vec<_>>().join(", ")),
        }
    }

    fn for_head(&self, l: &For) -> String {
        let mut text =
            format!("for {} in {}..{}", self.names.axis(l.axis), self.range_end(&l.lo), self.range_end(&l.hi));
        if !l.step.is_const(1) {
            text += &format!(" step {}", self.ix(&l.step));
        }
        text += match l.kind {
            LoopKind::Free => ": free",
            LoopKind::Reduce => ": reduce",
            LoopKind::Serial => ": serial",
        };
        if l.place != Place::None {
            text += &format!(" {}", place_text(l.place));
        }
        if let Some(c) = &l.combine {
            let CombineOp::Scalar { op, identity } = c.op;
            let dtype = c.accs.first().and_then(|b| num_of(self.kernel.bufs.get(*b).map(|b| b.ty)));
            let from = match dtype {
                Some(d) => const_text(d, identity),
                None => format!("0x{identity:x}"),
            };
            let class = dtype.map_or(Class::Any, Class::of);
            let accs = list(&c.accs, |b| self.names.buf(*b));
            text += &format!(" combine {}({accs}) from {from}", spell(op, class));
            if c.ways != 1 {
                text += &format!(" x {}", c.ways);
            }
        }
        if let Some(s) = &l.stream {
            text += &format!(
                " stream score={} value={} greatest={} total={} acc={}",
                self.names.val(s.score),
                self.names.val(s.value),
                self.names.buf(s.greatest),
                self.names.buf(s.total),
                self.names.buf(s.acc),
            );
        }
        if let Some(c) = &l.contraction {
            text += &format!(
                " contraction m={} n={} k={} a={} b={} acc={}",
                self.role(&c.m),
                self.role(&c.n),
                self.role(&c.k),
                self.names.val(c.a),
                self.names.val(c.b),
                self.names.buf(c.acc)
            );
        }
        text
    }

    fn buf_decl(&self, buf: BufId) -> String {
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

    fn element(&self, buf: BufId, idx: &[Ix]) -> String {
        let name = self.names.buf(buf);
        if idx.is_empty() { name } else { format!("{name}[{}]", list(idx, |ix| self.ix(ix))) }
    }

    fn mem(&self, mem: &Mem) -> String {
        let mut text = self.names.val(mem.base);
        if self.ty(mem.base) != Some(Ty::Ptr(mem.elem)) {
            text += &format!(" as {}", mem.elem);
        }
        text + &format!("[{}]", self.ix(&mem.index))
    }

    fn tail(&self, order: Order, site: SiteId) -> String {
        let order = if order == Order::Weak { String::new() } else { format!(" {}", word_of(&ORDERS, &order)) };
        order + &self.site(site)
    }

    fn site(&self, site: SiteId) -> String {
        match self.kernel.sites.get(site) {
            Some(s) if !s.op.is_empty() => format!(" !{}", name_or_quoted(&s.op)),
            _ => String::new(),
        }
    }

    fn mask_clause(&self, mask: &Mask) -> String {
        if mask.is_always() { String::new() } else { format!(" where {}", self.mask(mask)) }
    }

    fn mask(&self, mask: &Mask) -> String {
        text::mask_text(mask, &self.names)
    }

    fn opnd(&self, opnd: &Opnd, expected: Option<DType>) -> String {
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

    fn opnd_ty(&self, opnd: &Opnd) -> Option<Ty> {
        match opnd {
            Opnd::Val(v) => self.ty(*v),
            Opnd::Const { dtype, .. } => Some(Ty::Num(*dtype)),
        }
    }

    fn scalar_op(&self, dst: ValId, op: ScalarOp, args: &[Opnd]) -> String {
        let to = self.ty(dst);
        let first = args.first().and_then(|a| self.opnd_ty(a));
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

    fn ix(&self, ix: &Ix) -> String {
        text::ix_text(ix, &self.names)
    }

    fn range_end(&self, ix: &Ix) -> String {
        text::end_text(ix, &self.names)
    }
}
