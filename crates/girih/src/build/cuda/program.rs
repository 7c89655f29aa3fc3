//! The C of a tile program for a GPU: a function for each entry, which launches its kernel.
//!
//! ```c
//! CUresult saxpy_run(const saxpy_kernels *kernels, CUstream stream, const uint32_t grid[3], CUdeviceptr x, ...);
//! ```

use girih_compiler::pipeline::Lowered;

use super::super::entry::{self, Entry};
use super::super::{File, Library, header, label};
use super::example::{self, Array};
use super::source::Source;
use crate::error::Result;
use crate::memory::args::ParamKind;
use crate::options::Options;

pub fn library(entries: &[Entry], name: &str, options: &Options) -> Result<Library> {
    let lowered: Vec<&Lowered> = entries.iter().flat_map(|e| e.versions.iter().map(|v| &v.lowered)).collect();
    let source = Source::new(name, &lowered, options.resolved_target())?;
    let mut text = source.text()? + &entry::HELPERS.concat();
    let mut body = source.header();
    body += INTRODUCTION;
    for entry in entries {
        text += &entry.tests();
        text += &define(entry, name);
        body += &entry.listed();
        body += &format!("CUresult {}({});\n", entry.function, parameters(entry, name));
    }
    let listed: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let title = format!("Kernels: {}.", label(&listed.join(", ")));
    source.library(vec![
        File::text(format!("{name}.h"), "the functions", header::whole(name, &title, "#include <cuda.h>\n", &body)),
        File::text(format!("{name}.c"), "the launches", text),
        File::text("example.c".into(), "a program that runs the first kernel", example(entries, name)),
    ])
}

const INTRODUCTION: &str = "
// A call launches a grid on the stream; arrays are memory of the device. After an array come its bytes, where they matter: by
// them a call knows which arrays overlap; 0 stands for unknown, and the arrays may then overlap.
";

fn parameters(entry: &Entry, name: &str) -> String {
    let own = [format!("const {name}_kernels *kernels"), "CUstream stream".into(), "const uint32_t grid[3]".into()];
    [&own[..], &entry.parameters(&|_, _| "CUdeviceptr ".into())].concat().join(", ")
}

fn define(entry: &Entry, name: &str) -> String {
    let (function, count) = (&entry.function, entry.params.len());
    let mut out = format!("\nCUresult {function}({}) {{\n", parameters(entry, name));
    out += "  const int64_t blocks[3] = {grid[0], grid[1], grid[2]};\n  const int bad = 0;\n";
    out += &entry.chosen();
    out + &format!("  return girih_step(kernels, stream, &bad, chosen, blocks, args, {count});\n}}\n")
}

/// A program that launches one block of the first kernel, on zeros.
fn example(entries: &[Entry], name: &str) -> String {
    let Some(entry) = entries.first() else { return String::new() };
    let (mut arrays, mut numbers) = (vec![], vec!["const uint32_t grid[3] = {1, 1, 1};".to_string()]);
    for ((param, called), size) in entry.params.iter().zip(&entry.named).zip(&entry.sizes) {
        match param.kind {
            ParamKind::Pointer(_) => {
                if entry.asks_overlap() {
                    numbers.push(format!("const size_t {size} = 1 << 20;"));
                }
                arrays.push(Array { name: called.clone(), bytes: "1 << 20".into(), shown: None });
            }
            ParamKind::Scalar(_) => numbers.push(format!("const int {called} = 0;")),
        }
    }
    let given: String = entry.arguments().iter().map(|a| format!(", {a}")).collect();
    example::text(name, &numbers, "", &arrays, &format!("{}(&kernels, 0, grid{given})", entry.function), false)
}
