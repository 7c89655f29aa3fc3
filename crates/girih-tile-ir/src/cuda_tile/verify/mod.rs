//! The verifier: the rules for a legal tile program.
//!
//! In: a module as the parser built it, its operations holding the groups of operands the operation table gives them,
//! but with any types and attributes. Out: every error (and a few warnings), each with a code, a place, and a help line
//! where there is one; no error means that the evaluator and the compiler accept the module. Errors come in source
//! order: globals first, then each function with its types, its operations and its regions. For
//! `%t = iota : tile<96xi32>` it says
//!
//! ```text
//! error[E0202]: tile dimension 96 is not a power of two
//! help: use 64 or 128, and mask the rest
//! ```
//!
//! Nothing here panics on a malformed module, and nothing recurses with the depth of the program.

mod access;
mod assume;
mod control;
mod debug;
mod ops;
mod product;
mod types;
mod visible;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::Id;
use crate::base::words::did_you_mean;
use crate::base::{Code, Diagnostic, Span};
use crate::cuda_tile::ir::*;
use crate::num::DType;

pub use types::show;
use types::show_tile;

/// All errors and warnings of a module.
pub fn verify(module: &Module) -> Vec<Diagnostic> {
    let mut out = vec![];
    let mut names: BTreeMap<&str, Span> = BTreeMap::new();
    let symbols = module.globals.iter().map(|g| (g.name.as_str(), g.span));
    for (name, span) in symbols.chain(module.funcs.iter().map(|f| (f.name.as_str(), f.span))) {
        match names.get(name) {
            Some(first) => out.push(
                Diagnostic::error(Code::BadSymbol, format!("`@{name}` is defined twice"))
                    .at(span)
                    .label(*first, "first here"),
            ),
            None => {
                names.insert(name, span);
            }
        }
    }
    for g in &module.globals {
        global(g, &mut out);
        debug::global(g, &mut out);
    }
    for func in &module.funcs {
        let mut v = Verifier::new(module, func);
        v.function();
        out.append(&mut v.out);
    }
    out
}

fn global(g: &Global, out: &mut Vec<Diagnostic>) {
    let mut error = |code, text: String| out.push(Diagnostic::error(code, text).at(g.span));
    let e = &g.value;
    if e.shape.len() != 1 {
        error(Code::BadRank, format!("global `@{}` must hold a tile of rank 1, not {}", g.name, e.shape.len()));
    }
    if e.dtype == DType::I4 {
        error(Code::BadElementType, "a global cannot hold i4 elements".into());
    }
    if g.alignment != 0 && !g.alignment.is_power_of_two() {
        error(Code::BadAttribute, format!("the alignment {} is not a power of two", g.alignment));
    }
    let ty = TileType::of(e.shape.clone(), Elem::Num(e.dtype));
    for (code, text, help) in types::tile_problems(&ty) {
        let d = Diagnostic::error(code, text).at(g.span);
        out.push(match help {
            Some(h) => d.help(h),
            None => d,
        });
    }
    if let Some(text) = ops::elements_problem(e, &ty) {
        out.push(Diagnostic::error(Code::BadConstant, text).at(g.span));
    }
}

/// The architectures that hints may name.
const ARCHITECTURES: [&str; 13] = [
    "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_103", "sm_107", "sm_110", "sm_120", "sm_121",
    "default",
];

/// A hint: its name, and the values it takes.
struct Hint {
    name: &'static str,
    values: &'static str,
    takes: fn(&Attr) -> bool,
}

const BLOCKS_OF_A_CLUSTER: Hint = Hint {
    name: "num_cta_in_cga",
    values: "a power of two, 16 at most",
    takes: |v| matches!(v, Attr::Int(1 | 2 | 4 | 8 | 16)),
};
const WARPS: Hint = Hint {
    name: "num_worker_warps_per_cta",
    values: "a power of two, 32 at most",
    takes: |v| matches!(v, Attr::Int(1 | 2 | 4 | 8 | 16 | 32)),
};
const OCCUPANCY: Hint =
    Hint { name: "occupancy", values: "a number from 1 to 32", takes: |v| matches!(v, Attr::Int(1..=32)) };
const LATENCY: Hint =
    Hint { name: "latency", values: "a number from 1 to 10", takes: |v| matches!(v, Attr::Int(1..=10)) };
const ALLOW_TMA: Hint = Hint { name: "allow_tma", values: "`true` or `false`", takes: |v| matches!(v, Attr::Bool(_)) };

/// The state of verifying one function.
struct Verifier<'a> {
    module: &'a Module,
    func: &'a Func,
    out: Vec<Diagnostic>,
    /// The operation that holds each region.
    holder: Vec<Option<OpId>>,
    /// The region that holds each operation.
    home: Vec<Option<RegionId>>,
}

impl<'a> Verifier<'a> {
    fn new(module: &'a Module, func: &'a Func) -> Verifier<'a> {
        let mut holder = vec![None; func.regions.len()];
        let mut home = vec![None; func.ops.len()];
        for (r, region) in func.regions.iter() {
            for op in &region.ops {
                if let Some(h) = home.get_mut(op.index()) {
                    *h = Some(r);
                }
            }
        }
        for (id, op) in func.ops.iter() {
            for r in &op.regions {
                if let Some(h) = holder.get_mut(r.index()) {
                    *h = Some(id);
                }
            }
        }
        Verifier { module, func, out: vec![], holder, home }
    }

    fn function(&mut self) {
        self.types();
        self.visibility();
        self.signature();
        self.locations();
        for (id, op) in self.func.ops.iter() {
            // Operations in no region were dropped by the code that built the module.
            if self.home.get(id.index()).copied().flatten().is_some() {
                self.operation(id, op);
            }
        }
        for (r, _) in self.func.regions.iter() {
            self.region(r);
        }
        self.out.sort_by_key(|d| d.span.map_or(0, |s| s.start));
    }

    fn signature(&mut self) {
        let func = self.func;
        self.hints(&func.hints, func.span, &[BLOCKS_OF_A_CLUSTER, WARPS, OCCUPANCY]);
        if func.kind != FuncKind::Entry {
            return;
        }
        for (i, &p) in func.params().iter().enumerate() {
            let value = &func.values[p];
            // Tokens and views are legal here, though nothing can launch an entry that takes one.
            if let Type::Tile(t) = &value.ty
                && !t.shape.is_empty()
            {
                let text = format!("parameter {i} of an entry must be a scalar tile, not {}", show_tile(t));
                let d = Diagnostic::error(Code::BadRank, text).at(value.span);
                self.out.push(d.help("pass a pointer, and load the tile in the kernel"));
            }
        }
        if !func.results.is_empty() {
            self.error(Code::BadArity, func.span, "an entry must not have results");
        }
    }

    /// The types of all values, each distinct one reported where it occurs first.
    fn types(&mut self) {
        let mut seen = BTreeSet::new();
        for value in self.func.values.values() {
            let problems = types::problems(&value.ty);
            if problems.is_empty() || !seen.insert(show(&value.ty)) {
                continue;
            }
            for (code, text, help) in problems {
                let d = Diagnostic::error(code, text).at(value.span);
                self.out.push(match help {
                    Some(h) => d.help(h),
                    None => d,
                });
            }
        }
    }

    /// Duplicate keys and entries that are not dictionaries are errors; hints without a meaning get a warning, which
    /// NVIDIA's compiler also gives on request.
    fn hints(&mut self, hints: &Hints, span: Span, known: &[Hint]) {
        let mut keys = BTreeSet::new();
        for (arch, entry) in &hints.0 {
            if !keys.insert(arch) {
                self.error(Code::BadHint, span, format!("the hints for `{arch}` are given twice"));
            }
            let Attr::Dict(entries) = entry else {
                self.error(Code::BadHint, span, format!("the hints for `{arch}` must be a dictionary"));
                continue;
            };
            if !ARCHITECTURES.contains(&arch.as_str()) {
                let text = format!("no architecture of hints is called `{arch}`");
                let plain = arch.trim_end_matches(|c: char| c.is_ascii_lowercase());
                let question = match ARCHITECTURES.contains(&plain) {
                    true => Some(format!("did you mean `{plain}`?")),
                    false => did_you_mean(arch, ARCHITECTURES.iter().copied()),
                };
                self.warn_of_hint(span, text, question);
            }
            let mut names = BTreeSet::new();
            for (name, value) in entries {
                if !names.insert(name) {
                    self.error(Code::BadHint, span, format!("the hint `{name}` for `{arch}` is given twice"));
                }
                match known.iter().find(|h| h.name == name) {
                    Some(h) if (h.takes)(value) => {}
                    Some(h) => {
                        self.warn_of_hint(span, format!("the hint `{name}` for `{arch}` must be {}", h.values), None);
                    }
                    None => {
                        let question = did_you_mean(name, known.iter().map(|h| h.name));
                        self.warn_of_hint(span, format!("there is no hint `{name}` here"), question);
                    }
                }
            }
        }
    }

    fn warn_of_hint(&mut self, span: Span, text: String, question: Option<String>) {
        let d = Diagnostic::warning(Code::IgnoredAttribute, format!("{text}; it is ignored")).at(span);
        self.out.push(question.into_iter().fold(d, |d, question| d.help(question)));
    }

    fn error(&mut self, code: Code, span: Span, text: impl Into<String>) {
        self.out.push(Diagnostic::error(code, text).at(span));
    }
    fn error_help(&mut self, code: Code, span: Span, text: impl Into<String>, help: impl Into<String>) {
        self.out.push(Diagnostic::error(code, text).at(span).help(help));
    }

    fn ty(&self, v: ValueId) -> Option<&'a Type> {
        self.func.values.get(v).map(|v| &v.ty)
    }
    fn op(&self, id: OpId) -> Option<&'a Op> {
        self.func.ops.get(id)
    }
}

/// The operation's name in text.
fn name(op: &Op) -> &'static str {
    crate::cuda_tile::ops::info(op.opcode).name
}
