//! Compiles many programs as one translation unit and compares what they compute with the reference.

use crate::check::{Checked, Mismatch};
use crate::data;
use crate::program::Param;
use girih::blocks::{self, BlockOrder, Host, Run, Waiting};
use girih::cache::Cache;
use girih::cc::Compiler;
use girih::module::Module;
use girih_compiler::emit::c::{Limits, emit_cut};
use girih_compiler::loops::ir::Global;
use std::ffi::c_void;

/// Random programs print nothing and check their accesses against the parameters only.
struct Quiet;

impl Host for Quiet {
    unsafe fn format(&self, _site: u32, _block: i64, _args: *const *const c_void) -> String {
        String::new()
    }
    fn print(&self, _block: i64, _text: &str) {}
    fn stalled(&self, _waiting: &[Waiting]) {}
    fn live(&self, _addr: u64, _len: u64) -> bool {
        true
    }
}

/// Memory of 64-bit words, so that every element is aligned.
struct Words {
    words: Vec<u64>,
    len: usize,
}

impl Words {
    fn new(bytes: &[u8]) -> Words {
        let words = bytes
            .chunks(8)
            .map(|c| {
                let mut raw = [0; 8];
                raw[..c.len()].copy_from_slice(c);
                u64::from_le_bytes(raw)
            })
            .chain([0])
            .collect();
        Words { words, len: bytes.len() }
    }
    fn address(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }
    fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.truncate(self.len);
        bytes
    }
}

fn global(g: &Global) -> Words {
    let size = g.dtype.bytes() as usize;
    Words::new(&g.bits.iter().flat_map(|b| b.to_le_bytes()[..size].to_vec()).collect::<Vec<u8>>())
}

/// For each program, what it got wrong, if anything.
pub fn check(
    batch: &[Box<Checked>],
    cache: &Cache,
    compiler: &Compiler,
    limits: Limits,
) -> Result<Vec<Option<Mismatch>>, String> {
    let Some(one) = batch.first() else { return Ok(vec![]) };
    let kernels: Vec<_> = batch.iter().map(|c| &c.lowered.kernel).collect();
    let source = emit_cut(&kernels, &one.options.target, limits).map_err(|refusal| refusal.message)?.text;
    let entry = cache.get_or_build(&source, compiler).map_err(|e| e.to_string())?;
    // SAFETY: the private cache built the object from emitted C just now.
    let module = unsafe { Module::load(&entry.object, &entry.hash) }.map_err(|e| e.to_string())?;
    batch.iter().enumerate().map(|(i, checked)| run(i, checked, &module).map_err(|e| e.to_string())).collect()
}

fn run(index: usize, checked: &Checked, module: &Module) -> girih::Result<Option<Mismatch>> {
    let program = &checked.program;
    let kernel = module.kernel(index, program.params.len())?;
    let mut buffers: Vec<Words> = data::image(program).iter().map(|b| Words::new(b)).collect();
    let mut globals: Vec<Words> = checked.lowered.tile.globals.iter().map(global).collect();
    let globals: Vec<*mut u8> = globals.iter_mut().map(Words::address).collect();
    let (mut slots, mut extents) = (vec![], vec![]);
    let mut next = buffers.iter_mut();
    for param in &program.params {
        match (param, matches!(param, Param::Buffer { .. }).then(|| next.next()).flatten()) {
            (Param::Buffer { .. }, Some(words)) => {
                let (at, len) = (words.address() as u64, words.len as i64);
                slots.push(at);
                extents.extend([at as i64, at as i64 + len]);
            }
            (Param::Int { value, .. }, _) => {
                slots.push(u64::from(*value as u32));
                extents.extend([0, 0]);
            }
            (Param::Buffer { .. }, None) => {}
        }
    }
    // Nobody asks which elements are written.
    extents.resize(3 * program.params.len(), 0);
    let launch = Run {
        kernel,
        args: &slots,
        grid: program.grid,
        only: None,
        globals: &globals,
        extents: &extents,
        order: BlockOrder::Ranges,
        threads: 1,
        cost: None,
    };
    // SAFETY: the slots hold the program's parameters, and its accesses were checked by the evaluator on the same data.
    let outcome = unsafe { blocks::run(&launch, &Quiet) };
    if let Err(stop) = outcome {
        return Ok(Some(Mismatch { stage: "cpu".into(), what: format!("{stop:?}") }));
    }
    let got = buffers.iter().map(Words::bytes).collect();
    let difference = data::difference(program, &checked.want, &got);
    Ok(difference.map(|what| Mismatch { stage: "cpu".into(), what }))
}
