//! Whole kernels as CUDA functions: the signature, the numbers of blocks and threads, arrays, then the statements.

use super::stmt::{Printer, Problem};
use super::{Entry, STATIC_SHARED};
use crate::emit::cstyle::support::Support;
use crate::emit::cstyle::{Indices, Lines};
use crate::kernel::ir::*;
use crate::kernel::nan_bits::observed;
use crate::kernel::tcgen05::Matrix;
use rustc_hash::FxHashSet;

pub(super) struct Function {
    pub text: String,
    pub entry: Entry,
    /// Lines of the text from 1, and their statements.
    pub lines: Vec<(u32, usize)>,
}

/// `globals` are the unit's names for the kernel's globals.
pub(super) fn function(
    support: &mut Support,
    kernel: &Kernel,
    name: Ident,
    globals: Vec<String>,
) -> Result<Function, Problem> {
    let uses = Uses::of(&kernel.body);
    let out = Lines { depth: 1, ..Lines::default() };
    let ix = Indices::new(kernel, &super::DIALECT);
    let (observed, own) = (observed(kernel), uses.scratch || uses.shared);
    let mut p = Printer { kernel, support, ix, out, observed, globals, own, lines: vec![], next: 0 };
    if kernel.slots.values().any(|s| matches!(s.space, Space::Kept { .. })) {
        return Err((None, "it keeps memory from block to block, and blocks of a GPU run on no worker".to_string()));
    }
    p.block(&kernel.body)?;
    let body = std::mem::take(&mut p.out);
    for helper in std::mem::take(&mut p.ix.used) {
        p.support.call(helper, 1);
    }
    let dynamic_shared = if kernel.shared > STATIC_SHARED || kernel.cluster > 1 { kernel.shared } else { 0 };
    let params = p.params(&uses).map_err(|message| (None, message))?;
    p.out.line(&format!("// kernel {}{}", kernel.name, size(kernel)));
    // Registers are exchanged within the number that a block alone on its multiprocessor has.
    let bounds = format!("{}{}", kernel.threads, if uses.registers { ", 1" } else { "" });
    let cluster =
        if kernel.cluster == 1 { String::new() } else { format!("__cluster_dims__({}, 1, 1) ", kernel.cluster) };
    let head = format!("extern \"C\" __global__ void {cluster}__launch_bounds__({bounds}) {name}");
    p.out.open(&format!("{head}({}) {{", params.join(", ")));
    p.places(&body.text);
    p.slots(&uses, dynamic_shared > 0);
    p.prefetch();
    let mut head = std::mem::take(&mut p.out);
    let lines = std::mem::take(&mut p.lines).into_iter().map(|(line, statement)| (head.count + line, statement));
    let lines = lines.collect();
    head.text.push_str(&body.text);
    head.close("}");
    let globals = std::mem::take(&mut p.globals);
    Ok(Function { text: head.text, entry: Entry { name, threads: kernel.threads, dynamic_shared, globals }, lines })
}

/// ": 256 threads, 4096 bytes of shared memory", without the parts that a kernel does not have.
fn size(kernel: &Kernel) -> String {
    let threads = if kernel.threads == 1 { "1 thread".to_string() } else { format!("{} threads", kernel.threads) };
    let shared = match kernel.shared {
        0 => String::new(),
        bytes => format!(", {bytes} bytes of shared memory"),
    };
    let cluster = if kernel.cluster == 1 { String::new() } else { format!(", clusters of {} blocks", kernel.cluster) };
    format!(": {threads}{shared}{cluster}")
}

/// How the statements use parameters, scratch memory and slots.
#[derive(Default)]
struct Uses {
    /// Values that are more than the base of loads.
    written: FxHashSet<ValId>,
    /// An address in the scratch memory is taken.
    scratch: bool,
    /// An address in the shared memory is taken.
    shared: bool,
    /// Warpgroups give each other registers.
    registers: bool,
    /// The tensors whose boxes lie in each slot.
    boxes: Vec<(BufId, TensorId)>,
    /// The alignments of slots that hold panels.
    panels: Vec<(BufId, u64)>,
}

impl Uses {
    fn of(body: &[Stmt]) -> Uses {
        let mut uses = Uses::default();
        uses.block(body);
        uses
    }

    fn opnd(&mut self, o: &Opnd) {
        if let Opnd::Val(v) = o {
            self.written.insert(*v);
        }
    }

    fn place(&mut self, place: &Address) {
        if let Address::Mem { base, .. } = place {
            self.written.insert(*base);
        }
    }

    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Var { init: o, .. } | Stmt::Set { value: o, .. } | Stmt::Splat { value: o, .. } => self.opnd(o),
                Stmt::SetLane { value, .. } => self.opnd(value),
                Stmt::Let { args, .. } => args.iter().for_each(|o| self.opnd(o)),
                Stmt::Store { place, value, .. } | Stmt::Rmw { place, value, .. } => {
                    self.place(place);
                    self.opnd(value);
                }
                Stmt::Cas { place, cmp, value, .. } => {
                    self.place(place);
                    self.opnd(cmp);
                    self.opnd(value);
                }
                Stmt::Load { other, .. } => other.iter().for_each(|o| self.opnd(o)),
                Stmt::Shuffle { value, by, .. } => {
                    self.opnd(&Opnd::Val(*value));
                    self.opnd(by);
                }
                Stmt::TmaLoad { to: Address::Slot { buf, .. }, tensor, .. }
                | Stmt::TmaStore { from: Address::Slot { buf, .. }, tensor, .. } => self.boxes.push((*buf, *tensor)),
                Stmt::Wgmma { a, b, .. } => {
                    for panel in a.panel().into_iter().chain([b]) {
                        if let Address::Slot { buf, .. } = &panel.place {
                            self.panels.push((*buf, u64::from(panel.swizzle) * 8));
                        }
                    }
                }
                Stmt::Tcgen05Mma { a, b, .. } => {
                    for of in [a, b] {
                        let Ok(matrix) = Matrix::decode(of.number) else { continue };
                        if let Address::Slot { buf, .. } = &of.place {
                            self.panels.push((*buf, u64::from(matrix.swizzle) * 8));
                        }
                    }
                }
                Stmt::Scratch { .. } => self.scratch = true,
                Stmt::SharedAddr { .. } => self.shared = true,
                Stmt::Registers { .. } => self.registers = true,
                Stmt::For { body, .. } | Stmt::Loop { body } => self.block(body),
                Stmt::If { then, els, .. } => {
                    self.block(then);
                    self.block(els);
                }
                _ => {}
            }
        }
    }
}

impl Printer<'_> {
    /// Parameters by value, in order.
    fn params(&mut self, uses: &Uses) -> Result<Vec<String>, String> {
        let mut out = vec![];
        for &param in &self.kernel.params {
            let Val { name, ty } = &self.kernel.vals[param];
            if ty.is_vector() {
                return Err(format!("the parameter `{name}` is {ty}; a kernel takes scalars and addresses"));
            }
            let spelling = self.ty(*ty);
            out.push(match ty.elem {
                Elem::Ptr(_) if uses.written.contains(&param) => format!("{spelling}{name}"),
                Elem::Ptr(_) => format!("const {spelling}{name}"),
                Elem::Num(_) => format!("{spelling} {name}"),
            });
        }
        out.extend(self.tensor_maps());
        Ok(out)
    }

    /// The alignment of a slot; that of all slots together if `slot` is `None`.
    fn align(&self, uses: &Uses, slot: Option<BufId>) -> u64 {
        let boxes = uses.boxes.iter().filter(|(buf, _)| slot.is_none_or(|slot| slot == *buf));
        let aligns = boxes.filter_map(|(_, tensor)| self.kernel.tensors.get(*tensor).map(Tensor::align));
        let panels = uses.panels.iter().filter(|(buf, _)| slot.is_none_or(|slot| slot == *buf));
        let aligns = aligns.chain(panels.map(|(_, align)| *align));
        aligns.max().unwrap_or(16)
    }

    /// Names for the thread, its block and the grid, if the body uses them.
    fn places(&mut self, body: &str) {
        let words: FxHashSet<&str> = body.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let places = [
            ("bx", "blockIdx.x"),
            ("by", "blockIdx.y"),
            ("bz", "blockIdx.z"),
            ("gx", "gridDim.x"),
            ("gy", "gridDim.y"),
            ("gz", "gridDim.z"),
            ("tx", "threadIdx.x"),
        ];
        let used: Vec<String> =
            places.iter().filter(|p| words.contains(p.0)).map(|p| format!("{} = {}", p.0, p.1)).collect();
        if !used.is_empty() {
            self.out.line(&format!("const int {};", used.join(", ")));
        }
        // Where index arithmetic needs it.
        if words.contains("i64") {
            self.support.ty("i64", 1);
        }
    }

    /// Declares the arrays of the block and of the thread. The arrays of the block are parts of one array if they share
    /// bytes, if the kernel takes addresses in them, or if they exceed the static size, so that the launch sizes the array; the arrays of a thread are if the
    /// kernel takes addresses in them.
    fn slots(&mut self, uses: &Uses, dynamic: bool) {
        let scratch = uses.scratch && self.kernel.scratch > 0;
        let one = dynamic || uses.shared || share_bytes(self.kernel);
        if one {
            let align = self.align(uses, None).max(128);
            let (word, size) = if dynamic { ("extern ", String::new()) } else { ("", self.kernel.shared.to_string()) };
            self.out.line(&format!("{word}__shared__ __align__({align}) unsigned char shared_u8[{size}];"));
        }
        if scratch {
            self.out.line(&format!("__align__(16) unsigned char scratch_u8[{}];", self.kernel.scratch));
        }
        for (id, slot) in self.kernel.slots.iter() {
            let (ty, name) = (self.support.memory_ty(slot.elem.held().name(), 1), &slot.name);
            let (array, apart, word) = match slot.space {
                Space::Shared | Space::Mbarrier => ("shared_u8", one, "__shared__ "),
                Space::Scratch | Space::Kept { .. } => ("scratch_u8", scratch, ""),
            };
            let line = match apart {
                true => format!("{ty} *const {name} = ({ty} *)({array} + {}); // {ty}[{}]", slot.offset, slot.len),
                false => {
                    format!("{word}__align__({}) {ty} {name}[{}];", self.align(uses, Some(id)), slot.len.max(1))
                }
            };
            self.out.line(&line);
        }
    }
}

/// Returns true if arrays of the block lie in the same bytes, one after the other's life.
fn share_bytes(kernel: &Kernel) -> bool {
    let mut spans: Vec<(u64, u64)> = kernel
        .slots
        .values()
        .filter(|s| s.is_shared())
        .map(|s| (s.offset, s.offset.saturating_add(s.bytes())))
        .collect();
    spans.sort_unstable();
    spans.windows(2).any(|w| w[1].0 < w[0].1)
}
