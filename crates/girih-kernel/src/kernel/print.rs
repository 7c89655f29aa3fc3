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
use crate::loops::print::{global_text, word_of};
use crate::num::literal::const_text;

pub fn print(kernel: &Kernel) -> String {
    print_numbered(kernel).0
}

/// The text, and the line of each statement in it, from 1 and in order of the text. Statements inside others count too.
pub fn print_numbered(kernel: &Kernel) -> (String, Vec<u32>) {
    let mut p = Printer {
        k: kernel,
        out: String::new(),
        text: String::new(),
        comment: String::new(),
        depth: 1,
        line: 1,
        starts: vec![],
    };
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
    let warp = if kernel.warp == 32 { String::new() } else { format!(" warp {}", kernel.warp) };
    let cluster = if kernel.cluster == 1 { String::new() } else { format!(" cluster {}", kernel.cluster) };
    let shared = if kernel.shared == 0 { String::new() } else { format!(" shared {}", kernel.shared) };
    let params = params.join(", ");
    let _ =
        writeln!(p.out, "kernel {name}({params}){grid}{threads}{warp}{cluster} scratch {}{shared} {{", kernel.scratch);
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
pub(super) const SPACES: [(&str, Space); 4] = [
    ("slot", Space::Scratch),
    ("shared", Space::Shared),
    ("kept", Space::Kept { zeroed: false }),
    ("zeroed", Space::Kept { zeroed: true }),
];
/// The element type of slots that hold mbarriers.
pub(super) const MBARRIER: &str = "mbarrier";

pub(super) struct Printer<'a> {
    k: &'a Kernel,
    out: String,
    /// The line so far.
    text: String,
    /// The comment to print after the next brace.
    comment: String,
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

    pub(super) fn val(&self, v: ValId) -> &str {
        self.k.vals.get(v).map_or("?", |v| v.name.as_str())
    }

    pub(super) fn typed(&self, v: ValId) -> String {
        self.k.vals.get(v).map_or("?".to_string(), |v| format!("{}: {}", v.name, v.ty))
    }

    pub(super) fn opnd(&self, o: &Opnd) -> String {
        match o {
            Opnd::Val(v) => self.val(*v).to_string(),
            Opnd::Const { dtype, bits } => format!("{}:{dtype}", const_text(*dtype, *bits)),
        }
    }

    pub(super) fn ix(&self, ix: &Ix) -> String {
        text::ix_text(ix, self)
    }

    fn all(&self, all: &[Ix]) -> String {
        self.joined(all, |ix| self.ix(ix))
    }

    pub(super) fn tensor(&self, tensor: TensorId) -> &str {
        self.k.tensors.get(tensor).map_or("?", |t| t.name.as_str())
    }

    pub(super) fn global(&self, global: u32) -> &str {
        self.k.globals.get(global as usize).map_or("?", |g| g.name.as_str())
    }

    pub(super) fn mask(&self, mask: &Mask) -> String {
        text::mask_text(mask, self)
    }

    pub(super) fn slot(&self, slot: BufId) -> &str {
        self.k.slots.get(slot).map_or("?", |s| s.name.as_str())
    }

    pub(super) fn panel(&self, panel: &Panel) -> String {
        let Panel { place, transposed, swizzle, lead, stride } = panel;
        let how = if *transposed { " trans" } else { "" };
        format!("{}{how} swizzle {swizzle} strides ({lead}, {stride})", self.place(place))
    }

    pub(super) fn left(&self, left: &Left) -> String {
        match left {
            Left::Panel(panel) => self.panel(panel),
            Left::Words(place) => self.place(place),
        }
    }

    pub(super) fn place(&self, place: &Address) -> String {
        match place {
            Address::Mem { base, index, elem } => {
                let own = self.k.vals.get(*base).map(|v| v.ty.elem);
                let as_elem = if own == Some(Elem::Ptr(*elem)) { String::new() } else { format!(" as {elem}") };
                format!("{}{as_elem}[{}]", self.val(*base), self.ix(index))
            }
            Address::Slot { buf, index } => {
                format!("{}[{}]", self.slot(*buf), self.ix(index))
            }
        }
    }

    pub(super) fn joined<T>(&self, all: &[T], text: impl Fn(&T) -> String) -> String {
        all.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// The argument of a print statement.
    pub(super) fn shown(&self, arg: &PrintArg) -> String {
        match arg {
            PrintArg::Scalar(opnd) => self.opnd(opnd),
            PrintArg::Tile { slot, shape } => {
                format!("{}[{}]", self.slot(*slot), self.joined(shape, u64::to_string))
            }
        }
    }

    /// The name of a loop's axis; where it comes from is said behind the brace that follows.
    pub(super) fn open(&mut self, axis: AxisId) -> String {
        let axis = self.k.axes.get(axis);
        self.comment = axis.and_then(|a| a.from.as_ref()).map_or(String::new(), |from| format!("  # {from}"));
        axis.map_or("?", |a| a.name.as_str()).to_string()
    }

    /// Adds a word, or a part, to the line.
    pub(super) fn word(&mut self, text: &str) {
        let before = self.text.is_empty() || self.text.ends_with(['[', '@']) || self.text.ends_with("..");
        let joins = text.is_empty() || text == ".." || text.starts_with(['[', ']', ',']);
        if !before && !joins {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// Prints the line so far, an opening brace, and statements; the line that follows begins with the brace that closes them.
    pub(super) fn braces(&mut self, body: &[Stmt]) {
        self.word("{");
        let comment = std::mem::take(&mut self.comment);
        self.text.push_str(&comment);
        self.flush();
        self.depth += 1;
        self.block(body);
        self.depth -= 1;
        self.word("}");
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.line(&text);
    }

    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.starts.push(self.line + 1);
            stmt.print(self);
            self.flush();
        }
    }
}
