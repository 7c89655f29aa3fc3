//! An entry of a tile program as a function of C: its parameters, its versions, and which of them a call runs.
//!
//! A call finds the version as [`crate::launch::prepared`] does: by the obligations of the fast one, and by a test for
//! overlapping arrays.

use std::sync::Arc;

use girih_compiler::base::launch::Assumptions;
use girih_compiler::graph::Elem;
use girih_compiler::kernel::print;
use girih_compiler::loops::ir::{Kernel as LoopKernel, Stmt, Ty};
use girih_compiler::loops::walk;
use girih_compiler::num::DType;

use super::names::Names;
use super::{header, label, obligations};
use crate::compile::version::{FAST, Version};
use crate::error::Result;
use crate::memory::args::{Param, ParamKind};
use crate::options::Options;
use crate::program::Program;

/// The C functions that `girih_holds_N` and the test for overlap call.
pub const HELPERS: [&str; 2] = [include_str!("ranges.c"), include_str!("overlap.c")];

/// An entry and its kernels.
pub struct Entry {
    pub name: String,
    pub function: String,
    pub params: Vec<Param>,
    /// The parameters' names in C.
    pub named: Vec<String>,
    /// The names in C of the sizes in bytes; only those of arrays are parameters.
    pub sizes: Vec<String>,
    /// Different kernels.
    pub versions: Vec<Arc<Version>>,
    /// The number of the first of them in the file.
    pub first: usize,
    /// Which of them runs: indexed by whether arrays overlap, then by whether the obligations of the fast version hold.
    pub choice: [[usize; 2]; 2],
}

impl Entry {
    pub fn new(program: &Program, entry: &str, function: String, options: &Options) -> Result<Entry> {
        let kernel = program.entry(entry)?.with_options(options.clone());
        let mut identifiers = Names::of_function();
        let named: Vec<String> = kernel.params().iter().map(|p| identifiers.fresh(&p.name)).collect();
        let sizes = named.iter().map(|name| identifiers.fresh(&format!("{name}_bytes"))).collect();
        let (mut versions, mut texts, mut choice) = (vec![], vec![], [[0; 2]; 2]);
        for (overlap, chosen) in choice.iter_mut().enumerate() {
            for (holds, at) in chosen.iter_mut().enumerate() {
                let assume = Assumptions { no_alias: overlap == 0, no_wrap: holds == 1 };
                let version = kernel.version(assume)?;
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
        // Addresses read from memory may point anywhere.
        if reaches(&fast.lowered.loops) {
            choice[0] = choice[1];
        }
        Ok(Entry { name: entry.into(), function, params, named, sizes, versions, first: 0, choice })
    }

    /// Returns true if the choice depends on whether arrays overlap.
    pub fn asks_overlap(&self) -> bool {
        self.choice[0] != self.choice[1]
    }

    pub fn writes(&self, i: usize) -> bool {
        self.versions.iter().any(|v| v.traffic.writes.get(i) == Some(&true))
    }

    /// The parameters of the C function; `pointer` gives the type of an array of elements that the kernel writes or
    /// only reads.
    pub fn parameters(&self, pointer: &dyn Fn(DType, bool) -> String) -> Vec<String> {
        let mut all = vec![];
        for (i, (param, name)) in self.params.iter().zip(&self.named).enumerate() {
            match param.kind {
                ParamKind::Scalar(d) => all.push(format!("{} {name}", header::c_type(Elem::of(d)))),
                ParamKind::Pointer(d) => {
                    all.push(format!("{}{name}", pointer(d, self.writes(i))));
                    if self.asks_overlap() {
                        all.extend(self.sizes.get(i).map(|size| format!("size_t {size}")));
                    }
                }
            }
        }
        all
    }

    /// Their names, as arguments of a call.
    pub fn arguments(&self) -> Vec<String> {
        let mut all = vec![];
        for ((param, name), size) in self.params.iter().zip(&self.named).zip(&self.sizes) {
            all.push(name.clone());
            if matches!(param.kind, ParamKind::Pointer(_)) && self.asks_overlap() {
                all.push(size.clone());
            }
        }
        all
    }

    /// The parameters for a reader, a line each.
    pub fn listed(&self) -> String {
        let mut out = format!("\n// The kernel {}.\n", label(&self.name));
        for (i, (param, name)) in self.params.iter().zip(&self.named).enumerate() {
            let (what, dtype) = match param.kind {
                ParamKind::Scalar(d) => ("a number", d),
                ParamKind::Pointer(d) if self.writes(i) => ("an array that may be written", d),
                ParamKind::Pointer(d) => ("an array that is read", d),
            };
            out += &format!("//   {name}    {}: {dtype}{}, {what}\n", label(&param.name), header::note(dtype));
        }
        out
    }

    /// The functions that test the versions' obligations.
    pub fn tests(&self) -> String {
        let all = self.versions.iter().enumerate();
        all.map(|(at, version)| obligations::function(self.first + at, &version.lowered.tile)).collect()
    }

    /// Sets `args`, the arguments as 64 bits each, and `chosen`, the number of the kernel that runs, for the grid in `blocks`.
    pub fn chosen(&self) -> String {
        let bits: Vec<String> = self.params.iter().zip(&self.named).map(|(p, n)| bits(p.kind, n)).collect();
        let list = if bits.is_empty() { "0".to_string() } else { bits.join(", ") };
        let mut out = format!("  const uint64_t args[] = {{{list}}};\n{}", self.overlap());
        let choice = |[slow, fast]: [usize; 2]| match slow == fast {
            true => (self.first + fast).to_string(),
            false => {
                let (slow, fast) = (self.first + slow, self.first + fast);
                format!("girih_holds_{fast}(blocks, args) ? {fast} : {slow}")
            }
        };
        let [apart, together] = self.choice;
        out += &match self.asks_overlap() {
            true => format!("  const int chosen = overlap ? ({}) : ({});\n", choice(together), choice(apart)),
            false => format!("  const int chosen = {};\n", choice(apart)),
        };
        out
    }

    /// C that sets `overlap`: do two arrays overlap, at least one of them written?
    fn overlap(&self) -> String {
        if !self.asks_overlap() {
            return String::new();
        }
        let mut rows = String::new();
        for (i, (param, size)) in self.params.iter().zip(&self.sizes).enumerate() {
            if let ParamKind::Pointer(_) = param.kind {
                rows += &format!("{{args[{i}], {size}, {}}}, ", u8::from(self.writes(i)));
            }
        }
        format!(
            "  const girih_array arrays[] = {{{rows}}};\n  \
             const int overlap = girih_overlap(arrays, sizeof arrays / sizeof *arrays);\n"
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

/// Returns true if the kernel loads addresses from memory.
fn reaches(kernel: &LoopKernel) -> bool {
    let mut found = false;
    walk::visit(&kernel.body, &mut |stmt| {
        if let Stmt::Load { dst, .. } = stmt {
            found |= matches!(kernel.vals.get(*dst).map(|v| v.ty), Some(Ty::Ptr(_)));
        }
    });
    found
}
