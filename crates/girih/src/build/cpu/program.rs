//! The C of a tile program for a CPU: a function for each entry, with the kernel's arguments and a grid.
//!
//! ```c
//! int saxpy_run(void *scratch, const uint32_t grid[3], const float *x, size_t x_bytes, float *y, size_t y_bytes, float a);
//! ```

use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::Elem;
use girih_compiler::loops::ir::{Global, Kernel as LoopKernel, Stmt};
use girih_compiler::loops::walk;
use girih_compiler::pipeline::Lowered;

use super::super::entry::{self, Entry};
use super::super::weights::list;
use super::super::{File, header, label};
use super::archive;
use super::source::Source;
use crate::compile::cc::Compiler;
use crate::error::{Error, Result};
use crate::launch::blocks::BlockOrder;
use crate::memory::buffer::storage_bytes;
use crate::options::Options;
use girih_compiler::num::values;

/// The C and the header.
pub fn files(name: &str, entries: &[Entry], compiler: &Compiler, options: &Options) -> Result<Vec<File>> {
    let lowered: Vec<&Lowered> = entries.iter().flat_map(|e| e.versions.iter().map(|v| &v.lowered)).collect();
    lowered.iter().try_for_each(|kernel| refuse_prints(&kernel.loops))?;
    let mut source = Source::new(name, &archive::command(name, compiler), &lowered, &options.resolved_target())?;
    source.text += &entry::HELPERS.concat();
    globals(entries, &mut source.text);
    let (mut body, mut after) = (INTRODUCTION.to_string(), String::new());
    for entry in entries {
        source.text += &entry.tests();
        define(entry, name, &mut source.text);
        body += &declare(entry);
        after += &declare_on(entry, name);
    }
    let listed: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let title = format!("Kernels: {}.{}", label(&listed.join(", ")), archive::needs(compiler));
    let header = header::whole(name, &title, "", &format!("{body}{}{after}", header::shared(name)));
    Ok(vec![
        File::text(format!("{name}.h"), "the functions", header),
        File::text(format!("{name}.c"), "the source", source.finish(name)),
    ])
}

const INTRODUCTION: &str = "
// A call runs the blocks of a grid on the calling thread, one after the other, x fastest; 0, or a number that the message
// function puts in words. `scratch` is memory of the caller's at a multiple of 64, as long as the constant says, of one
// call at a time; NULL where that is 0. After an array come its bytes, where they matter: by them a call knows which arrays
// overlap; 0 stands for unknown, and the arrays may then overlap.
";

fn scratch(entry: &Entry) -> u64 {
    entry.versions.iter().map(|v| v.lowered.kernel.scratch).max().unwrap_or(0).next_multiple_of(64)
}

/// The parameters of the function, in which arrays are pointers.
fn parameters(entry: &Entry) -> String {
    let pointer = |d, written| format!("{}{} *", if written { "" } else { "const " }, header::c_type(Elem::of(d)));
    let own = ["void *scratch".to_string(), "const uint32_t grid[3]".to_string()];
    [&own[..], &entry.parameters(&pointer)].concat().join(", ")
}

fn order(entry: &Entry) -> BlockOrder {
    entry.versions.first().map_or(BlockOrder::Ranges, |v| v.order)
}

fn declare(entry: &Entry) -> String {
    let (mut out, function) = (entry.listed(), &entry.function);
    if order(entry) == BlockOrder::Together {
        out +=
            "// Its blocks may wait for each other: one that waits for a later one waits forever on a single thread.\n";
    }
    let (upper, scratch) = (function.to_uppercase(), scratch(entry));
    out + &format!("#define {upper}_SCRATCH {scratch}\nint {function}({});\n", parameters(entry))
}

fn declare_on(entry: &Entry, name: &str) -> String {
    let order = match order(entry) {
        BlockOrder::Ranges | BlockOrder::Locked => "",
        BlockOrder::Increasing => " A block may\n// wait for an earlier one: threads take them in increasing order.",
        BlockOrder::Together => "\n// Blocks may wait for each other: each needs a thread of its own.",
    };
    let (function, upper) = (&entry.function, entry.function.to_uppercase());
    let of_workers = format!("{upper}_SCRATCH bytes for each worker.{order}");
    format!(
        "\n// The same on the caller's threads, with {of_workers}\n\
         int {function}_on(const {name}_threads *threads, {});\n",
        parameters(entry)
    )
}

fn define(entry: &Entry, name: &str, out: &mut String) {
    let (function, parameters) = (&entry.function, parameters(entry));
    *out += &format!("\nint {function}_on(const {name}_threads *threads, {parameters}) {{\n");
    *out += "  const int64_t blocks[3] = {grid[0], grid[1], grid[2]};\n";
    *out += &entry.chosen();
    *out += "  girih_launch launch = {.args = args, .grid = {blocks[0], blocks[1], blocks[2]}, .threads = threads};\n";
    *out += &format!("  launch.scratch = scratch, launch.scratch_bytes = {};\n  switch (chosen) {{\n", scratch(entry));
    for n in (entry.first..).take(entry.versions.len()) {
        *out += &format!("  case {n}: launch.kernel = girih_{n}, launch.said = girih_said_{n};");
        *out += &format!(" launch.globals = girih_globals_{n}; break;\n");
    }
    *out += "  }\n  return girih_run(&launch);\n}\n";
    let arguments = [&["0".to_string(), "scratch".into(), "grid".into()], &entry.arguments()[..]].concat().join(", ");
    *out += &format!("\nint {function}({parameters}) {{\n  return {function}_on({arguments});\n}}\n");
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
        *out += &format!("\n// The global {}, which keeps the values written to it.\n", label(&global.name));
        let values = if memory.iter().any(|b| *b != 0) { format!(" = {{\n{}}}", list(&memory)) } else { String::new() };
        *out += &format!("static uint8_t girih_global_{n}[{bytes}] __attribute__((aligned({align}))){values};\n");
    }
    *out += "\n";
    for (n, kernel) in kernels.iter().enumerate() {
        let number = |g: &Global| all.iter().position(|o| o.name == g.name).unwrap_or(0);
        let list: String = kernel.globals.iter().map(|g| format!("girih_global_{}, ", number(g))).collect();
        *out += &format!("static void *const girih_globals_{n}[] = {{{list}0}};\n");
    }
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
    let refusal =
        Diagnostic::error(Code::CannotLower, message).help("remove `print_tko`, or run the program with `girih run`");
    Err(Error::Program(vec![match kernel.sites.get(site) {
        Some(site) => Diagnostic { span: site.span, ..refusal.from(site.frames.clone()) },
        None => refusal,
    }]))
}
