//! The C of a tile program for a CPU: a function for each entry, with the kernel's arguments and a grid.
//!
//! ```c
//! int saxpy_run(void *scratch, const uint32_t grid[3], const float *x, size_t x_bytes, float *y, size_t y_bytes, float a);
//! ```
//!
//! Which version of a kernel runs is found at each call, as [`crate::launch::prepared`] finds it: by the ranges of what
//! the fast version relies on, and by whether arrays overlap.

use girih_compiler::base::launch::Assumptions;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::Elem;
use girih_compiler::kernel::print;
use girih_compiler::loops::ir::{Global, Kernel as LoopKernel, Stmt, Ty};
use girih_compiler::loops::walk;
use girih_compiler::num::DType;
use girih_compiler::pipeline::Lowered;

use super::source::Source;
use super::weights::list;
use super::{File, archive, header, label, names, obligations};
use crate::compile::cc::Compiler;
use crate::compile::version::{FAST, Version};
use crate::error::{Error, Result};
use crate::launch::blocks::BlockOrder;
use crate::memory::args::{Param, ParamKind};
use crate::memory::buffer::storage_bytes;
use crate::memory::values;
use crate::options::Options;
use crate::program::Program;

/// The C and the header.
pub fn files(
    program: &Program,
    name: &str,
    entries: &[&str],
    compiler: &Compiler,
    options: &Options,
) -> Result<Vec<File>> {
    let mut functions = names::of_function();
    let called = |entry: &str| if entries.len() == 1 { "run".to_string() } else { entry.to_string() };
    let mut all = vec![];
    for entry in entries {
        let function = format!("{name}_{}", functions.fresh(&called(entry)));
        all.push(Entry::new(program, entry, function, options)?);
    }
    let mut first = 0;
    for entry in &mut all {
        entry.first = first;
        first += entry.versions.len();
    }
    let command = archive::command(name, compiler);
    let lowered: Vec<&Lowered> = all.iter().flat_map(|e| e.versions.iter().map(|v| &v.lowered)).collect();
    let mut source = Source::new(name, &command, &lowered, &options.resolved_target());
    source.text += include_str!("ranges.c");
    source.text += include_str!("overlap.c");
    globals(&all, &mut source.text);
    let (mut body, mut after) = (String::new(), String::new());
    for entry in &all {
        entry.define(name, &mut source.text);
        body += &entry.declare();
        after += &entry.declare_on(name);
    }
    let kernels = if all.len() == 1 { "The kernel" } else { "The kernels" };
    let listed: Vec<String> = entries.iter().map(|e| label(e).to_string()).collect();
    let title = format!("{kernels} {}.", listed.join(", "));
    let header = header::whole(name, &title, &format!("{INTRODUCTION}{body}{}{after}", header::shared(name)));
    Ok(vec![
        File::text(format!("{name}.h"), "the functions", header),
        File::text(format!("{name}.c"), "the source", source.finish(name)),
    ])
}

const INTRODUCTION: &str = "
// A call runs the blocks of a grid on the calling thread, one after the other, x fastest; 0, or a number that the message
// function puts in words. `scratch` is memory of the caller's at a multiple of 64, as long as the constant says, of one call at
// a time; NULL where that is 0. After an array come its bytes: by them a call knows which arrays overlap; 0 stands for unknown,
// and the arrays may then overlap.
";

/// An entry and its kernels.
struct Entry {
    name: String,
    function: String,
    params: Vec<Param>,
    /// What C calls the parameters.
    named: Vec<String>,
    /// Different kernels.
    versions: Vec<std::sync::Arc<Version>>,
    /// The number of the first of them in the file.
    first: usize,
    /// Which of them runs: by whether arrays overlap, then by whether what the fast version relies on holds.
    choice: [[usize; 2]; 2],
}

impl Entry {
    fn new(program: &Program, entry: &str, function: String, options: &Options) -> Result<Entry> {
        let kernel = program.entry(entry)?.with_options(options.clone());
        let mut identifiers = names::of_function();
        let named: Vec<String> = kernel.params().iter().map(|p| identifiers.fresh(&p.name).to_string()).collect();
        let (mut versions, mut texts, mut choice) = (vec![], vec![], [[0; 2]; 2]);
        for (overlap, chosen) in choice.iter_mut().enumerate() {
            for (holds, at) in chosen.iter_mut().enumerate() {
                let assume = Assumptions { no_alias: overlap == 0, no_wrap: holds == 1 };
                let version = kernel.version(assume)?;
                refuse_prints(&version.lowered.loops)?;
                let text = print::print(&version.lowered.kernel);
                *at = texts.iter().position(|t| *t == text).unwrap_or(texts.len());
                if *at == texts.len() {
                    texts.push(text);
                    versions.push(version);
                }
            }
        }
        let params = kernel.params().to_vec();
        let fast = kernel.version(FAST)?;
        // What is reached through memory may be anywhere.
        if reaches(&fast.lowered.loops) {
            choice[0] = choice[1];
        }
        Ok(Entry { name: entry.into(), function, params, named, versions, first: 0, choice })
    }

    /// Whether it matters that arrays overlap.
    fn asks_overlap(&self) -> bool {
        self.choice[0] != self.choice[1]
    }

    fn scratch(&self) -> u64 {
        self.versions.iter().map(|v| v.lowered.kernel.scratch).max().unwrap_or(0).next_multiple_of(64)
    }

    fn writes(&self, i: usize) -> bool {
        self.versions.iter().any(|v| v.traffic.writes.get(i) == Some(&true))
    }

    fn parameters(&self) -> String {
        let mut all = vec!["void *scratch".to_string(), "const uint32_t grid[3]".to_string()];
        for (i, (param, name)) in self.params.iter().zip(&self.named).enumerate() {
            match param.kind {
                ParamKind::Scalar(d) => all.push(format!("{} {name}", header::c_type(Elem::of(d)))),
                ParamKind::Pointer(d) => {
                    let constant = if self.writes(i) { "" } else { "const " };
                    all.push(format!("{constant}{} *{name}", header::c_type(Elem::of(d))));
                    if self.asks_overlap() {
                        all.push(format!("size_t {name}_bytes"));
                    }
                }
            }
        }
        all.join(", ")
    }

    fn arguments(&self) -> String {
        let mut all = vec!["scratch".to_string(), "grid".to_string()];
        for (param, name) in self.params.iter().zip(&self.named) {
            all.push(name.clone());
            if matches!(param.kind, ParamKind::Pointer(_)) && self.asks_overlap() {
                all.push(format!("{name}_bytes"));
            }
        }
        all.join(", ")
    }

    fn declare(&self) -> String {
        let mut out = format!("\n// The kernel {}.\n", label(&self.name));
        for (i, (param, name)) in self.params.iter().zip(&self.named).enumerate() {
            let (what, dtype) = match param.kind {
                ParamKind::Scalar(d) => ("a number", d),
                ParamKind::Pointer(d) if self.writes(i) => ("an array that may be written", d),
                ParamKind::Pointer(d) => ("an array that is read", d),
            };
            out += &format!("//   {name}    {}: {dtype}{}, {what}\n", label(&param.name), header::note(dtype));
        }
        if self.order() == BlockOrder::Together {
            out += "// Its blocks may wait for each other: one that waits for a later one waits forever on a single thread.\n";
        }
        let upper = self.function.to_uppercase();
        out + &format!("#define {upper}_SCRATCH {}\nint {}({});\n", self.scratch(), self.function, self.parameters())
    }

    fn order(&self) -> BlockOrder {
        self.versions.first().map_or(BlockOrder::Ranges, |v| v.order)
    }

    fn declare_on(&self, name: &str) -> String {
        let order = match self.order() {
            BlockOrder::Ranges => "",
            BlockOrder::Increasing => " A block may\n// wait for an earlier one: threads take them in increasing order.",
            BlockOrder::Together => "\n// Blocks may wait for each other: each needs a thread of its own.",
        };
        let (function, upper) = (&self.function, self.function.to_uppercase());
        format!(
            "\n// The same on the caller's threads, with {upper}_SCRATCH bytes for each worker.{order}\nint {function}_on(const {name}_threads \
             *threads, {});\n",
            self.parameters()
        )
    }

    fn define(&self, name: &str, out: &mut String) {
        let first = self.first;
        for (at, version) in self.versions.iter().enumerate() {
            *out += &obligations::function(first + at, &version.lowered.loops);
        }
        let (function, parameters) = (&self.function, self.parameters());
        *out += &format!("\nint {function}_on(const {name}_threads *threads, {parameters}) {{\n");
        let bits: Vec<String> = self.params.iter().zip(&self.named).map(|(p, n)| bits(p.kind, n)).collect();
        let list = if bits.is_empty() { "0".to_string() } else { bits.join(", ") };
        *out += &format!("  const uint64_t args[] = {{{list}}};\n");
        *out += &format!(
            "  girih_launch launch = {{.args = args, .grid = {{grid[0], grid[1], grid[2]}}, .threads = threads, .scratch = scratch, \
             .scratch_bytes = {}}};\n",
            self.scratch()
        );
        *out += &self.overlap();
        let number = |at: usize| first + at;
        *out += "  switch (overlap";
        let [[slow, fast], [slow_apart, fast_apart]] = self.choice;
        *out += &format!(
            " ? (girih_holds_{}(launch.grid, args) ? {fast_apart} : {slow_apart}) : girih_holds_{}(launch.grid, args) ? {fast} : {slow}) \
             {{\n",
            number(fast_apart),
            number(fast)
        );
        for at in 0..self.versions.len() {
            let n = number(at);
            *out += &format!(
                "  case {at}: launch.kernel = girih_{n}, launch.said = girih_said_{n}, launch.globals = girih_globals_{n}; break;\n"
            );
        }
        *out += "  }\n  return girih_run(&launch);\n}\n";
        *out += &format!("\nint {function}({parameters}) {{\n  return {function}_on(0, {});\n}}\n", self.arguments());
    }

    /// Whether arrays overlap, of which one is written.
    fn overlap(&self) -> String {
        if !self.asks_overlap() {
            return "  const int overlap = 0;\n".into();
        }
        let mut rows = String::new();
        for (i, (param, name)) in self.params.iter().zip(&self.named).enumerate() {
            if let ParamKind::Pointer(_) = param.kind {
                rows += &format!("{{args[{i}], {name}_bytes, {}}}, ", u8::from(self.writes(i)));
            }
        }
        format!(
            "  const girih_array arrays[] = {{{rows}}};\n  const int overlap = girih_overlap(arrays, sizeof arrays / sizeof *arrays);\n"
        )
    }
}

/// An argument as 64 bits.
fn bits(kind: ParamKind, name: &str) -> String {
    match kind {
        ParamKind::Pointer(_) => format!("(uint64_t)(uintptr_t){name}"),
        ParamKind::Scalar(DType::F32 | DType::TF32) => format!("girih_bits_f32({name})"),
        ParamKind::Scalar(DType::F64) => format!("girih_bits_f64({name})"),
        ParamKind::Scalar(_) => format!("(uint64_t){name}"),
    }
}

/// The program's globals, and which of them each kernel has.
fn globals(entries: &[Entry], out: &mut String) {
    let mut all: Vec<&Global> = vec![];
    let kernels: Vec<&LoopKernel> = entries.iter().flat_map(|e| e.versions.iter().map(|v| &v.lowered.loops)).collect();
    for global in kernels.iter().flat_map(|k| &k.globals) {
        if !all.iter().any(|g| g.name == global.name) {
            all.push(global);
        }
    }
    for (n, global) in all.iter().enumerate() {
        let bytes = storage_bytes(global.dtype, global.bits.len() as u64).unwrap_or(0).max(1) as usize;
        let mut memory = vec![0; bytes];
        for (i, &bits) in global.bits.iter().enumerate() {
            values::write(global.dtype, &mut memory, i as u64, bits);
        }
        let align = global.align.clamp(8, 4096).next_power_of_two();
        *out += &format!("\n// The global {}, which keeps what is written to it.\n", label(&global.name));
        let values = if memory.iter().any(|b| *b != 0) { format!(" = {{\n{}}}", list(&memory)) } else { String::new() };
        *out += &format!("static _Alignas({align}) uint8_t girih_global_{n}[{bytes}]{values};\n");
    }
    *out += "\n";
    for (n, kernel) in kernels.iter().enumerate() {
        let number = |g: &Global| all.iter().position(|o| o.name == g.name).unwrap_or(0);
        let list: String = kernel.globals.iter().map(|g| format!("girih_global_{}, ", number(g))).collect();
        *out += &format!("static void *const girih_globals_{n}[] = {{{list}0}};\n");
    }
}

/// Whether the kernel reads addresses from memory.
fn reaches(kernel: &LoopKernel) -> bool {
    let mut found = false;
    walk::visit(&kernel.body, &mut |stmt| {
        if let Stmt::Load { dst, .. } = stmt {
            found |= matches!(kernel.vals.get(*dst).map(|v| v.ty), Some(Ty::Ptr(_)));
        }
    });
    found
}

fn refuse_prints(kernel: &LoopKernel) -> Result<()> {
    let mut place = None;
    walk::visit(&kernel.body, &mut |stmt| {
        if let Stmt::Print { site, .. } = stmt {
            place.get_or_insert(*site);
        }
    });
    let Some(site) = place else { return Ok(()) };
    let message = format!("kernel `{}` prints, which kernels of a library cannot", kernel.name);
    let refusal = Diagnostic::error(Code::CannotLower, message).help("remove `print_tko`, or run the program with `girih run`");
    Err(Error::Program(vec![match kernel.sites.get(site) {
        Some(site) => Diagnostic { span: site.span, ..refusal.from(site.frames.clone()) },
        None => refusal,
    }]))
}
