//! Puts the events of a running native kernel into words: prints, traps, stalls.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use girih_compiler::base::host;
use girih_compiler::base::launch::Trap;
use girih_compiler::base::location::chain_text;
use girih_compiler::base::{Code, Frame};
use girih_compiler::loops::ir::{Kernel, Opnd, PrintArg, Site, Stmt, Ty, assertion_code};
use girih_compiler::loops::walk;
use girih_compiler::num::DType;
use girih_compiler::num::printf::{self, PrintValue};

use crate::compile::abi::TrapKind;
use crate::launch::blocks::{self, NativeTrap, Waiting, coordinates};
use crate::memory::args::{Bound, Extent, Param, count_of};
use crate::memory::regions::RealMemory;
use crate::options::{PrintOrder, Printer};

/// One argument of a print: its type and shape.
#[derive(Clone, Debug)]
struct PrintShape {
    ty: Ty,
    shape: Vec<u64>,
}

/// A kernel's messages, by site.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    prints: BTreeMap<u32, (String, Vec<PrintShape>)>,
    asserts: BTreeMap<u32, String>,
    sites: Vec<Site>,
    /// The parameter that an access's address is computed from.
    bases: BTreeMap<u32, usize>,
}

impl Messages {
    pub fn of(kernel: &Kernel) -> Messages {
        let mut m = Messages { sites: kernel.sites.values().cloned().collect(), ..Messages::default() };
        m.collect(kernel, &kernel.body);
        m
    }

    /// Includes assertions that placement adds, such as those on the block's memory.
    pub fn with_asserts(mut self, placed: &Kernel) -> Messages {
        walk::visit(&placed.body, &mut |s| {
            if let Stmt::Assert { message, site, .. } = s {
                self.asserts.entry(site.0).or_insert_with(|| message.clone());
            }
        });
        self
    }

    fn collect(&mut self, kernel: &Kernel, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Print { format, args, site } => {
                    let shapes = args.iter().map(|a| print_shape(kernel, a)).collect();
                    self.prints.insert(site.0, (format.clone(), shapes));
                }
                Stmt::Assert { message, site, .. } => {
                    self.asserts.insert(site.0, message.clone());
                }
                Stmt::Load { mem, site, .. }
                | Stmt::Store { mem, site, .. }
                | Stmt::Rmw { mem, site, .. }
                | Stmt::Cas { mem, site, .. } => {
                    if let Some(param) = kernel.params.iter().position(|p| p.val == mem.base) {
                        self.bases.insert(site.0, param);
                    }
                }
                Stmt::For(l) => self.collect(kernel, &l.body),
                Stmt::Loop { body } | Stmt::Stage { body, .. } => {
                    self.collect(kernel, body);
                }
                Stmt::If { then, els, .. } => {
                    self.collect(kernel, then);
                    self.collect(kernel, els);
                }
                _ => {}
            }
        }
    }

    fn site(&self, site: u32) -> Site {
        let unknown = || Site { op: "kernel".to_string(), ..Site::default() };
        self.sites.get(site as usize).cloned().unwrap_or_else(unknown)
    }

    /// A native trap as the evaluator would put it.
    pub fn trap(&self, trap: &NativeTrap, grid: [u32; 3], params: &[Param], bound: &Bound<'_>) -> Trap {
        let Site { op, span, frames } = self.site(trap.site);
        let op = op.as_str();
        let base = self.bases.get(&trap.site).copied();
        let (code, message) = match trap.kind {
            TrapKind::Assert => {
                let text = self.asserts.get(&trap.site).map_or("", String::as_str);
                match assertion_code(op) {
                    Code::AssertFailed => (Code::AssertFailed, format!("assertion failed: {text}")),
                    code => (code, text.to_string()),
                }
            }
            TrapKind::Step => {
                (Code::StepNotPositive, format!("the loop's step is {}; it must be positive", trap.value))
            }
            TrapKind::Read => (Code::OutOfBounds, outside("reads", op, trap.value as u64, base, params, bound)),
            TrapKind::Write => (Code::OutOfBounds, outside("writes", op, trap.value as u64, base, params, bound)),
            TrapKind::Alloca => (Code::OutOfBounds, format!("`{op}` asks for {} bytes, too many", trap.value)),
        };
        Trap {
            span,
            op: op.to_string(),
            block: coordinates(trap.block, grid),
            element: trap.element.map(|e| vec![e]),
            frames: Box::new(frames),
            ..Trap::new(code, message)
        }
    }
}

/// The same for memory that is reached through an address in memory, where that is nearer than any parameter's.
fn outside_reached(what: &str, op: &str, addr: u64, bound: &Bound<'_>) -> Option<String> {
    let gap = |start: u64, bytes: u64| start.saturating_sub(addr).max(addr.saturating_sub(start.saturating_add(bytes)));
    let direct = bound.extents.iter().flatten().map(|e| gap(e.start, e.bytes)).min().unwrap_or(u64::MAX);
    let nearest = bound.reached.iter().min_by_key(|r| gap(r.start, r.bytes))?;
    let name = &nearest.name;
    (gap(nearest.start, nearest.bytes) <= direct.min(1 << 40)).then(|| match addr.checked_sub(nearest.start) {
        // A vector that starts inside ends outside.
        Some(at) => {
            let bytes = nearest.bytes;
            format!("`{op}` {what} byte {} of `{name}`, which holds {bytes} bytes", at.max(bytes))
        }
        None => format!("`{op}` {what} {} bytes before the start of `{name}`", nearest.start - addr),
    })
}

/// Where an address lies in relation to the buffer it was computed from, or else to the nearest one.
fn outside(what: &str, op: &str, addr: u64, base: Option<usize>, params: &[Param], bound: &Bound<'_>) -> String {
    let gap = |e: &Extent| {
        if addr < e.start { e.start - addr } else { addr.saturating_sub(e.start.saturating_add(e.bytes)) }
    };
    if base.is_none()
        && let Some(text) = outside_reached(what, op, addr, bound)
    {
        return text;
    }
    let buffers = params.iter().zip(&bound.extents).enumerate();
    let candidates = buffers.filter(|(i, _)| base.is_none_or(|b| b == *i));
    let nearest = candidates.filter_map(|(i, (p, e))| Some((i, p, e.as_ref()?))).min_by_key(|(_, _, e)| gap(e));
    let Some((i, param, e)) = nearest.filter(|(_, _, e)| base.is_some() || gap(e) < 1 << 40) else {
        return format!("`{op}` {what} address {addr:#x}, which is not in any buffer");
    };
    let dtype = match param.kind {
        crate::memory::args::ParamKind::Pointer(d) | crate::memory::args::ParamKind::Scalar(d) => d,
    };
    let indices = bound.indices(i, dtype).unwrap_or(0..0);
    let per_byte = if dtype.bits() == 4 { 2 } else { 1 };
    let from_start = (i128::from(addr) - i128::from(e.start)).div_euclid(dtype.bytes() as i128) * per_byte;
    // A vector access is reported by its first element; where that lies inside, the first one outside is the next.
    let first = indices.start + from_start;
    let index = if indices.contains(&first) { indices.end } else { first };
    format!("`{op}` {what} index {index} of `{}`, which holds {}", param.name, count_of(&indices))
}

fn print_shape(kernel: &Kernel, arg: &PrintArg) -> PrintShape {
    let (ty, shape) = match arg {
        PrintArg::Scalar(Opnd::Const { dtype, .. }) => (Ty::Num(*dtype), vec![]),
        PrintArg::Scalar(Opnd::Val(v)) => (kernel.vals.get(*v).map_or(Ty::Num(DType::I64), |v| v.ty), vec![]),
        PrintArg::Buf(b) => kernel.bufs.get(*b).map_or((Ty::Num(DType::I64), vec![]), |b| (b.ty, b.shape.clone())),
    };
    PrintShape { ty, shape }
}

/// Printed text that waits for the launch's end, to leave in the order of its blocks.
#[derive(Debug)]
pub struct Held<K> {
    texts: BTreeMap<K, String>,
    bytes: usize,
    dropped: usize,
}

/// More text than this is not held.
const MOST_HELD: usize = 64 << 20;

impl<K: Ord> Default for Held<K> {
    fn default() -> Held<K> {
        Held { texts: BTreeMap::new(), bytes: 0, dropped: 0 }
    }
}

impl<K: Ord> Held<K> {
    pub fn push(&mut self, block: K, text: &str) {
        if self.bytes + text.len() > MOST_HELD {
            self.dropped += text.len();
            if self.texts.is_empty() {
                self.texts.insert(block, String::new());
            }
            return;
        }
        self.bytes += text.len();
        self.texts.entry(block).or_default().push_str(text);
    }

    /// The texts in order; the last one says that some are missing.
    pub fn into_texts(mut self) -> BTreeMap<K, String> {
        if self.dropped > 0
            && let Some(mut last) = self.texts.last_entry()
        {
            let note = format!("girih: {} more bytes were printed, too many to keep\n", self.dropped);
            last.get_mut().push_str(&note);
        }
        self.texts
    }
}

/// The host of one native launch.
pub struct NativeHost<'a> {
    pub messages: &'a Messages,
    pub memory: &'a RealMemory,
    /// The program's text, for places.
    pub text: &'a str,
    pub grid: [u32; 3],
    pub order: PrintOrder,
    pub printer: Option<&'a Printer>,
    pub held: Mutex<Held<i64>>,
}

impl NativeHost<'_> {
    fn send(&self, block: i64, text: &str) {
        deliver(self.printer, coordinates(block, self.grid), text);
    }

    /// Prints the texts that were held back to be sorted.
    pub fn finish(&self) {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        for (block, text) in held.into_texts() {
            self.send(block, &text);
        }
    }
}

/// After this long without a block finishing, the run reports the waiting blocks.
pub const STALL: Duration = Duration::from_secs(5);

/// Says on standard error which blocks wait where.
pub fn say_stalled(program: &str, waiting: &[host::Waiting]) {
    type Waits<'a> = (Option<u32>, &'a [Frame], &'a str);
    let mut places: BTreeMap<Waits<'_>, Vec<[u32; 3]>> = BTreeMap::new();
    for w in waiting {
        places.entry((w.span.map(|s| s.start), &w.frames, &w.op)).or_default().push(w.block);
    }
    let mut text = String::from("girih: no block has finished for a while; Ctrl-C stops the run\n");
    for ((start, frames, op), blocks) in places {
        let shown: Vec<String> = blocks.iter().take(4).map(|b| format!("{b:?}")).collect();
        let more = if blocks.len() > 4 { format!(" and {} more", blocks.len() - 4) } else { String::new() };
        let line = |at: u32| program.get(..at as usize).map_or(1, |before| before.matches('\n').count() + 1);
        let place = match (start, frames) {
            (_, [_, ..]) => format!(" at {}", chain_text(frames)),
            (Some(s), []) if !program.is_empty() => format!(" on line {}", line(s)),
            _ => String::new(),
        };
        text += &format!("  waiting at `{op}`{place}: blocks {}{more}\n", shown.join(", "));
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Hands a block's text to the printer, or to standard output in one piece.
pub fn deliver(printer: Option<&Printer>, block: [u32; 3], text: &str) {
    match printer {
        Some(p) => p(block, text),
        None => {
            let mut out = std::io::stdout().lock();
            // A reader that went away is not a reason to stop computing.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}

impl blocks::Host for NativeHost<'_> {
    unsafe fn format(&self, site: u32, _block: i64, args: *const *const c_void) -> String {
        let Some((format, shapes)) = self.messages.prints.get(&site) else { return String::new() };
        let mut values = Vec::with_capacity(shapes.len());
        for (i, shape) in shapes.iter().enumerate() {
            let count = shape.shape.iter().product::<u64>() as usize;
            let width = shape.ty.held().bytes() as usize;
            // SAFETY: the caller passes one pointer per argument of this site, each to `count` elements of `width` bytes.
            let bytes = unsafe { std::slice::from_raw_parts((*args.add(i)).cast::<u8>(), count * width) };
            let bits = bytes.chunks_exact(width).map(|c| {
                let mut word = [0u8; 8];
                word[..width].copy_from_slice(c);
                u64::from_le_bytes(word)
            });
            values.push(PrintValue { ty: shape.ty, shape: shape.shape.clone(), bits: bits.collect() });
        }
        printf::format(format, &values).unwrap_or_else(|e| format!("<print: {e}>\n"))
    }

    fn print(&self, block: i64, text: &str) {
        match self.order {
            PrintOrder::Finish | PrintOrder::AtOnce => self.send(block, text),
            PrintOrder::Index => {
                let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                held.push(block, text);
            }
        }
    }

    fn stalled(&self, waiting: &[Waiting]) {
        let put = |w: &Waiting| {
            let Site { op, span, frames } = self.messages.site(w.site);
            host::Waiting { block: coordinates(w.block, self.grid), op, span, frames }
        };
        say_stalled(self.text, &waiting.iter().map(put).collect::<Vec<_>>());
    }

    fn live(&self, addr: u64, len: u64) -> bool {
        self.memory.live(addr, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_text_is_sorted_and_bounded() {
        let mut held = Held::default();
        held.push(2, "c");
        held.push(1, "a");
        held.push(1, "b");
        held.push(3, &"x".repeat(MOST_HELD));
        let texts = held.into_texts();
        assert_eq!(texts[&1], "ab");
        assert!(texts[&2].starts_with("cgirih: 67108864 more bytes"), "{}", texts[&2]);
        let mut held = Held::default();
        held.push(7, &"x".repeat(MOST_HELD + 1));
        assert!(held.into_texts()[&7].starts_with("girih: 67108865 more bytes"));
    }
}
