//! Kernel IR as text; `parse::parse` reads it back to a kernel that prints the same.
//!
//! ```text
//! kernel add(a: ptr<f32>, n: i32) scratch 0 {
//!   for j in 0..n//16*16 step 16 {
//!     x: f32x16 = load a[j]
//!     y: f32x16 = addf x, x
//!     store a[j] = y
//!   }
//! }
//! ```

use std::borrow::Cow;
use std::fmt::Write;

use super::ir::*;
use crate::index::text;
use crate::loops::names::is_name;
use crate::loops::print::{ORDERS, RMWS, global_text, word_of};
use crate::num::literal::const_text;
use crate::num::spell::{Class, spell};

pub fn print(kernel: &Kernel) -> String {
    print_numbered(kernel).0
}

/// The text, and the line of each statement in it, from 1 and in order of the text. Statements inside others count too.
pub fn print_numbered(kernel: &Kernel) -> (String, Vec<u32>) {
    let mut p = Printer { k: kernel, out: String::new(), depth: 1, line: 1, starts: vec![] };
    let params: Vec<String> = kernel.params.iter().map(|&v| p.typed(v)).collect();
    let name = match is_name(kernel.name.as_str()) {
        true => kernel.name.to_string(),
        false => format!("\"{}\"", kernel.name),
    };
    let grid = kernel
        .grid
        .as_ref()
        .map_or(String::new(), |[x, y, z]| format!(" grid ({}, {}, {})", p.ix(x), p.ix(y), p.ix(z)));
    let threads = if kernel.threads == 1 { String::new() } else { format!(" threads {}", kernel.threads) };
    let cluster = if kernel.cluster == 1 { String::new() } else { format!(" cluster {}", kernel.cluster) };
    let shared = if kernel.shared == 0 { String::new() } else { format!(" shared {}", kernel.shared) };
    let params = params.join(", ");
    let _ = writeln!(p.out, "kernel {name}({params}){grid}{threads}{cluster} scratch {}{shared} {{", kernel.scratch);
    for slot in kernel.slots.values() {
        let (ty, mbarrier) = (Ty { elem: slot.elem, lanes: 1 }.to_string(), slot.space == Space::Mbarrier);
        let (word, ty) = match mbarrier {
            true => ("shared", MBARRIER),
            false => (word_of(&SPACES, &slot.space), ty.as_str()),
        };
        p.line(&format!("{word} {}: {ty}[{}] at {}", slot.name, slot.len, slot.offset));
    }
    for global in &kernel.globals {
        p.line(&global_text(&global.array, global.name.as_str()));
    }
    for tensor in kernel.tensors.values() {
        let Tensor { name, base, elem, dims, strides, extents, swizzle } = tensor;
        let extents: Vec<String> = extents.iter().map(|n| n.to_string()).collect();
        let swizzle = if *swizzle > 0 { format!(" swizzle {swizzle}") } else { String::new() };
        let (dims, strides, base) = (p.all(dims), p.all(strides), p.val(*base));
        let line = format!(
            "tensor {name}: {elem}[{dims}] of {base} strides ({strides}) box [{}]{swizzle}",
            extents.join(", ")
        );
        p.line(&line);
    }
    p.block(&kernel.body);
    p.out.push_str("}\n");
    (p.out, p.starts)
}

/// How slots of a space begin.
pub(super) const SPACES: [(&str, Space); 2] = [("slot", Space::Scratch), ("shared", Space::Shared)];
/// What holds mbarriers instead of elements.
pub(super) const MBARRIER: &str = "mbarrier";
/// Fences by their words.
pub(super) const FENCES: [(&str, Fence); 4] =
    [("init", Fence::Init), ("async", Fence::Async), ("global", Fence::Global), ("registers", Fence::Registers)];
/// What is written behind `ldmatrix`.
const TRANSPOSED: [(&str, Transposed); 4] = [
    ("", Transposed::No),
    (" trans", Transposed::Yes),
    (" trans left", Transposed::Left),
    (" trans right", Transposed::Right),
];
/// Kinds of shuffles by their words.
pub(super) const SHUFFLES: [(&str, Shuffle); 3] =
    [("xor", Shuffle::Xor), ("down", Shuffle::Down), ("idx", Shuffle::Idx)];

struct Printer<'a> {
    k: &'a Kernel,
    out: String,
    depth: usize,
    /// Lines printed so far, and on which each statement begins.
    line: u32,
    starts: Vec<u32>,
}

impl text::Names for Printer<'_> {
    fn axis(&self, axis: AxisId) -> Cow<'_, str> {
        self.k.axes.get(axis).map_or("?", |a| a.name.as_str()).into()
    }
    fn val(&self, val: ValId) -> Cow<'_, str> {
        Printer::val(self, val).into()
    }
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        self.out.extend(std::iter::repeat_n("  ", self.depth));
        self.out.push_str(text);
        self.out.push('\n');
        self.line += 1;
    }

    fn body(&mut self, body: &[Stmt]) {
        self.depth += 1;
        self.block(body);
        self.depth -= 1;
    }

    fn val(&self, v: ValId) -> &str {
        self.k.vals.get(v).map_or("?", |v| v.name.as_str())
    }

    fn typed(&self, v: ValId) -> String {
        self.k.vals.get(v).map_or("?".to_string(), |v| format!("{}: {}", v.name, v.ty))
    }

    fn opnd(&self, o: &Opnd) -> String {
        match o {
            Opnd::Val(v) => self.val(*v).to_string(),
            Opnd::Const { dtype, bits } => format!("{}:{dtype}", const_text(*dtype, *bits)),
        }
    }

    fn ix(&self, ix: &Ix) -> String {
        text::ix_text(ix, self)
    }

    fn all(&self, all: &[Ix]) -> String {
        all.iter().map(|ix| self.ix(ix)).collect::<Vec<_>>().join(", ")
    }

    fn mask(&self, mask: &Mask) -> String {
        text::mask_text(mask, self)
    }

    fn slot(&self, slot: BufId) -> &str {
        self.k.slots.get(slot).map_or("?", |s| s.name.as_str())
    }

    fn panel(&self, panel: &Panel) -> String {
        let Panel { place, transposed, swizzle, lead, stride } = panel;
        let how = if *transposed { " trans" } else { "" };
        format!("{}{how} swizzle {swizzle} strides ({lead}, {stride})", self.place(place))
    }

    fn place(&self, place: &Address) -> String {
        match place {
            Address::Mem { base, index, elem } => {
                let own = self.k.vals.get(*base).map(|v| v.ty.elem);
                let as_elem = if own == Some(Elem::Ptr(*elem)) { String::new() } else { format!(" as {elem}") };
                format!("{}{as_elem}[{}]", self.val(*base), self.ix(index))
            }
            Address::Slot { buf, index } => {
                format!("{}[{}]", self.k.slots.get(*buf).map_or("?", |s| s.name.as_str()), self.ix(index))
            }
        }
    }

    /// ` where mask else x order`, what is plain left out.
    fn tail(&self, mask: &Mask, other: Option<&Opnd>, order: Order) -> String {
        let mut out = String::new();
        if !mask.is_always() {
            let _ = write!(out, " where {}", self.mask(mask));
        }
        if let Some(o) = other {
            let _ = write!(out, " else {}", self.opnd(o));
        }
        if order != Order::Weak {
            let _ = write!(out, " {}", word_of(&ORDERS, &order));
        }
        out
    }

    fn block(&mut self, body: &[Stmt]) {
        body.iter().for_each(|s| self.stmt(s));
    }

    fn element(&self, element: &Option<Ix>) -> String {
        element.as_ref().map_or(String::new(), |e| format!(" element {}", self.ix(e)))
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.starts.push(self.line + 1);
        let text = match stmt {
            Stmt::Var { var, init } => format!("var {} = {}", self.typed(*var), self.opnd(init)),
            Stmt::Set { var, value } => format!("{} = {}", self.val(*var), self.opnd(value)),
            Stmt::Let { dst, op, args, .. } => {
                let args: Vec<String> = args.iter().map(|a| self.opnd(a)).collect();
                format!("{} = {} {}", self.typed(*dst), spell(*op, Class::Any), args.join(", "))
            }
            Stmt::Splat { dst, value } => format!("{} = splat {}", self.typed(*dst), self.opnd(value)),
            Stmt::Ramp { dst, base, step } => {
                format!("{} = ramp {} step {}", self.typed(*dst), self.ix(base), self.ix(step))
            }
            Stmt::Index { dst, ix } => format!("{} = index {}", self.typed(*dst), self.ix(ix)),
            Stmt::Test { dst, mask } => format!("{} = test {}", self.typed(*dst), self.mask(mask)),
            Stmt::Load { dst, place, mask, other, order } => {
                let tail = self.tail(mask, other.as_ref(), *order);
                format!("{} = load {}{tail}", self.typed(*dst), self.place(place))
            }
            Stmt::Prefetch { place } => format!("prefetch {}", self.place(place)),
            Stmt::LoadOf { dst, place, of } => {
                format!("{} = load {} of {of}", self.typed(*dst), self.place(place))
            }
            Stmt::Store { place, value, mask, order } => {
                format!("store {} = {}{}", self.place(place), self.opnd(value), self.tail(mask, None, *order))
            }
            Stmt::LoadSome { dst, place, from, to, other } => {
                let (lanes, place) = (format!("{}..{}", self.ix(from), self.ix(to)), self.place(place));
                format!("{} = some {lanes} load {place} else {}", self.typed(*dst), self.opnd(other))
            }
            Stmt::StoreSome { place, value, from, to } => {
                let (lanes, place) = (format!("{}..{}", self.ix(from), self.ix(to)), self.place(place));
                format!("some {lanes} store {place} = {}", self.val(*value))
            }
            Stmt::Lane { dst, vector, lane } => {
                format!("{} = lane {}[{}]", self.typed(*dst), self.val(*vector), self.ix(lane))
            }
            Stmt::SetLane { vector, lane, value } => {
                format!("lane {}[{}] = {}", self.val(*vector), self.ix(lane), self.opnd(value))
            }
            Stmt::Reduce { dst, op, vector } => {
                format!("{} = reduce {} {}", self.typed(*dst), spell(*op, Class::Any), self.val(*vector))
            }
            Stmt::Merge { dst, a, b, width, high } => {
                let half = if *high { "high" } else { "low" };
                format!("{} = merge {half} {width} {}, {}", self.typed(*dst), self.val(*a), self.val(*b))
            }
            Stmt::Every { dst, parts } => {
                let of: Vec<&str> = parts.iter().map(|p| self.val(*p)).collect();
                format!("{} = every {} {}", self.typed(*dst), parts.len(), of.join(", "))
            }
            Stmt::Interleave { dst, parts, part } => {
                let of: Vec<&str> = parts.iter().map(|p| self.val(*p)).collect();
                format!("{} = interleave {part} of {}", self.typed(*dst), of.join(", "))
            }
            Stmt::All { dst, vector } => format!("{} = all {}", self.typed(*dst), self.val(*vector)),
            Stmt::For { axis, lo, hi, step, unroll, body } => {
                let name = self.k.axes.get(*axis).map_or("?", |a| a.name.as_str());
                let from = self.k.axes.get(*axis).and_then(|a| a.from.as_ref());
                let from = from.map_or(String::new(), |from| format!("  # {from}"));
                let unroll = if *unroll > 0 { format!(" unroll {unroll}") } else { String::new() };
                let head =
                    format!("for {name} in {}..{} step {}{unroll} {{{from}", self.ix(lo), self.ix(hi), self.ix(step));
                self.line(&head);
                self.body(body);
                "}".to_string()
            }
            Stmt::Loop { body } => {
                self.line("loop {");
                self.body(body);
                "}".to_string()
            }
            Stmt::Break => "break".to_string(),
            Stmt::Continue => "continue".to_string(),
            Stmt::Return => "return".to_string(),
            Stmt::If { mask, then, els } => {
                self.line(&format!("if {} {{", self.mask(mask)));
                self.body(then);
                if !els.is_empty() {
                    self.line("} else {");
                    self.body(els);
                }
                "}".to_string()
            }
            Stmt::Rmw { dst, op, place, value, mask, order } => {
                let (word, place) = (word_of(&RMWS, op), self.place(place));
                let tail = self.tail(mask, None, *order);
                format!("{} = rmw {word} {place}, {}{tail}", self.typed(*dst), self.opnd(value))
            }
            Stmt::Cas { dst, place, cmp, value, mask, order } => {
                let tail = self.tail(mask, None, *order);
                let (place, cmp, value) = (self.place(place), self.opnd(cmp), self.opnd(value));
                format!("{} = cas {place}, {cmp}, {value}{tail}", self.typed(*dst))
            }
            Stmt::Barrier => "barrier".to_string(),
            Stmt::ClusterBarrier => "barrier cluster".to_string(),
            Stmt::SyncWarp => "syncwarp".to_string(),
            Stmt::Shuffle { dst, kind, value, by } => {
                let (kind, value) = (word_of(&SHUFFLES, kind), self.val(*value));
                format!("{} = shuffle {kind} {value}, {}", self.typed(*dst), self.opnd(by))
            }
            Stmt::LoadMatrix { dst, place, transposed } => {
                let how = word_of(&TRANSPOSED, transposed);
                format!("{} = ldmatrix{how} {}", self.typed(*dst), self.place(place))
            }
            Stmt::TileLoad { tile, place, by } => {
                format!("tile {tile} load {} by {}", self.place(place), self.ix(by))
            }
            Stmt::TileStore { tile, place, by } => {
                format!("tile {tile} store {} by {}", self.place(place), self.ix(by))
            }
            Stmt::TileDot { of, sums, a, b } => {
                format!("tile {sums} add {} {a}, {b}", of.word())
            }
            Stmt::Mma { acc: [low, high], apart, a, b, of: [left, right] } => {
                let (low, high) = (self.place(low), self.place(high));
                let other = if left == right { String::new() } else { format!(" {}", right.word()) };
                let apart = if *apart == 1 { String::new() } else { format!(" by {apart}") };
                format!("mma {}{other} {low}, {high}{apart} add {}, {}", left.word(), self.val(*a), self.val(*b))
            }
            Stmt::Wgmma { acc, a, b, of } => {
                format!("wgmma {} {} add {}, {}", of.word(), self.slot(*acc), self.panel(a), self.panel(b))
            }
            Stmt::WgmmaCommit => "wgmma commit".to_string(),
            Stmt::WgmmaWait { left, acc } => format!("wgmma wait {left} {}", self.slot(*acc)),
            Stmt::CopyAsync { to, from, bytes, mask } => {
                let (to, from, tail) = (self.place(to), self.place(from), self.tail(mask, None, Order::Weak));
                format!("copy async {to} = {from} bytes {bytes}{tail}")
            }
            Stmt::Commit => "commit".to_string(),
            Stmt::WaitGroups { left } => format!("wait groups {left}"),
            Stmt::CopyTensor { to, tensor, from, on, all } => {
                let name = self.k.tensors.get(*tensor).map_or("?", |t| t.name.as_str());
                let all = if *all { " all" } else { "" };
                format!("copy tensor {} = {name}[{}] on {}{all}", self.place(to), self.all(from), self.place(on))
            }
            Stmt::StoreTensor { tensor, to, from } => {
                let name = self.k.tensors.get(*tensor).map_or("?", |t| t.name.as_str());
                format!("copy tensor {name}[{}] = {}", self.all(to), self.place(from))
            }
            Stmt::Registers { count, more } => format!("registers {} {count}", if *more { "more" } else { "fewer" }),
            Stmt::StoreCommit => "copy commit".to_string(),
            Stmt::StoreWait { left } => format!("copy wait {left}"),
            Stmt::InitBarrier { on, count } => format!("init {} count {count}", self.place(on)),
            Stmt::Arrive { on, bytes, of } => {
                let bytes = bytes.map_or(String::new(), |bytes| format!(" expect {bytes}"));
                let of = of.map_or(String::new(), |block| format!(" of {block}"));
                format!("arrive {}{bytes}{of}", self.place(on))
            }
            Stmt::WaitPhase { on, parity } => format!("wait {} parity {}", self.place(on), self.ix(parity)),
            Stmt::Fence(fence) => format!("fence {}", word_of(&FENCES, fence)),
            Stmt::Poll => "poll".to_string(),
            Stmt::Yield { site } => format!("yield site {}", site.0),
            Stmt::Print { format, args, site } => {
                let mut text = format!("print {format}");
                for arg in args {
                    text += ", ";
                    text += &match arg {
                        PrintArg::Scalar(o) => self.opnd(o),
                        PrintArg::Tile { slot, shape } => {
                            let name = self.k.slots.get(*slot).map_or("?", |s| s.name.as_str());
                            let shape: Vec<String> = shape.iter().map(|n| n.to_string()).collect();
                            format!("{name}[{}]", shape.join(", "))
                        }
                    };
                }
                format!("{text} site {}", site.0)
            }
            Stmt::Assert { cond, message, element, site } => {
                let (cond, element) = (self.opnd(cond), self.element(element));
                format!("assert {cond}, {message}{element} site {}", site.0)
            }
            Stmt::Check { place, count, mask, write, param, element, site } => {
                let what = if *write { "write" } else { "read" };
                let param = param.map_or(String::new(), |p| format!(" param {p}"));
                let (element, tail) = (self.element(element), self.tail(mask, None, Order::Weak));
                format!("check {what} {} count {count}{param}{element} site {}{tail}", self.place(place), site.0)
            }
            Stmt::GlobalAddr { dst, global } => {
                let name = self.k.globals.get(*global as usize).map_or("?", |g| g.name.as_str());
                format!("{} = global @{name}", self.typed(*dst))
            }
            Stmt::Scratch { dst, offset } => format!("{} = scratch {}", self.typed(*dst), self.ix(offset)),
        };
        self.line(&text);
    }
}
