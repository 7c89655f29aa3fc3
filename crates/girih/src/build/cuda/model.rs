//! The C of a model for a GPU: the launches of its kernels, on the caller's stream and memory.
//!
//! ```c
//! CUresult gate_load(const gate_kernels *kernels, CUstream stream, CUdeviceptr weights, CUdeviceptr loaded);
//! CUresult gate_run(const gate_kernels *kernels, CUstream stream, CUdeviceptr weights, CUdeviceptr loaded, CUdeviceptr arena,
//!                   int64_t rows, CUdeviceptr x, CUdeviceptr y);
//! ```

use girih_compiler::index::Ix;

use super::super::expr::plain;
use super::super::plan::{Place, Planned, Spelled, bug};
use super::super::weights::Weights;
use super::super::{File, Library, header, label};
use super::example::{self, Array};
use super::source::{Source, comment};
use crate::error::Result;
use crate::model::plan_export::Parts;
use crate::options::Options;

pub fn library(parts: &Parts<'_>, name: &str, options: &Options) -> Result<Library> {
    let weights = Weights::new(&parts.weights()?, false);
    let plan = Planned::new(parts, name, &weights)?;
    plan.allow(options)?;
    let lowered: Vec<_> = parts.kernels.iter().collect();
    let source = Source::new(name, &lowered, options.resolved_target())?;
    let mut text = source.text()?;
    if !plan.symbols.is_empty() {
        let layout = plan.layout()?;
        // It begins with the integers that are there already.
        let exact = include_str!("../exact.c");
        text += layout.strip_prefix(exact).filter(|_| source.has_exact()).unwrap_or(&layout);
    }
    text += &functions(&plan)?;
    let mut files = vec![
        File::text(format!("{name}.h"), "the functions", declarations(&plan, &source)?),
        File::text(format!("{name}.c"), "the launches", text),
        File::text("example.c".into(), "a program that runs it", example(&plan)?),
    ];
    if weights.is_file() {
        files.push(File { name: format!("{name}.weights"), what: "the weights", bytes: weights.bytes.clone() });
    }
    source.library(files)
}

/// The parameters of weights and of arrays computed at load, where there are any.
fn kept(plan: &Planned<'_>) -> Vec<&'static str> {
    let weights = plan.weights.is_file().then_some("weights");
    let loaded = (plan.loaded_bytes > 0).then_some("loaded");
    weights.into_iter().chain(loaded).collect()
}

fn parameters(plan: &Planned<'_>) -> String {
    let name = plan.name;
    let mut all = vec![format!("const {name}_kernels *kernels"), "CUstream stream".into()];
    let arrays = plan.inputs.values().chain(&plan.outputs).map(|p| format!("CUdeviceptr {}", p.name));
    all.extend(kept(plan).into_iter().chain(["arena"]).map(|k| format!("CUdeviceptr {k}")));
    all.extend(plan.symbols.iter().map(|s| format!("int64_t {s}")));
    all.extend(arrays);
    all.join(", ")
}

fn load_parameters(plan: &Planned<'_>) -> String {
    let kept: String = kept(plan).iter().map(|k| format!(", CUdeviceptr {k}")).collect();
    format!("const {}_kernels *kernels, CUstream stream{kept}", plan.name)
}

fn arena_parameters(plan: &Planned<'_>) -> String {
    let symbols = plan.and_symbols();
    if symbols.is_empty() { "void".into() } else { symbols.trim_start_matches(", ").to_string() }
}

fn declarations(plan: &Planned<'_>, source: &Source<'_>) -> Result<String> {
    let (name, upper) = (plan.name, plan.name.to_uppercase());
    let words = |template: &str, more: &[(&str, &str)]| {
        header::filled(template, &[&[("$name", name), ("$upper", &upper)], more].concat())
    };
    let mut body = source.header();
    if plan.weights.is_file() {
        body += &words(WEIGHTS, &[("$bytes", &plan.weights.bytes.len().to_string())]);
    }
    if plan.loaded_bytes > 0 {
        let parameters = load_parameters(plan);
        body += &words(LOAD, &[("$bytes", &plan.loaded_bytes.to_string()), ("$parameters", &parameters)]);
    }
    body += &plan.listed();
    body += &words(ARENA, &[("$symbols", &arena_parameters(plan))]);
    body += "\n// The launches, in order: the kernel, and its blocks along x, y and z.\n";
    for (step, kernel, grid) in plan.parts.steps() {
        let blocks: Vec<String> = grid.iter().map(|n| plan.parts.graph.ix_text(n)).collect();
        let what = crate::model::step_text(&plan.parts.graph, step);
        body += &format!("//   {kernel}  ({})    {}\n", label(&blocks.join(", ")), label(&what));
    }
    body += &words(RUN, &[("$parameters", &parameters(plan))]);
    let title = format!("The model {}.", label(&plan.parts.graph.name));
    Ok(header::whole(name, &title, "#include <cuda.h>\n", &body))
}

fn functions(plan: &Planned<'_>) -> Result<String> {
    let name = plan.name;
    let placed = plan.placed()?;
    let symbols = plan.symbols.join(", ");
    let mut out = format!("\nsize_t {name}_arena({}) {{\n", arena_parameters(plan));
    out += &match &placed {
        Some((_, length)) => format!("  return {length};\n}}\n"),
        None => format!(
            "  uint64_t at[{}], length;\n  return girih_layout(at, &length, {symbols}) ? 0 : length;\n}}\n",
            plan.room()
        ),
    };
    let load = plan.parts.load_steps();
    if plan.loaded_bytes > 0 {
        out += &format!("\nCUresult {name}_load({}) {{\n  int bad = 0;\n", load_parameters(plan));
        // Every kernel takes every symbol, even unused ones.
        for (symbol, s) in plan.symbols.iter().zip(plan.parts.graph.symbols.values()) {
            out += &format!("  const int64_t {symbol} = {};\n  (void){symbol};\n", s.lo);
        }
        out += &kept(plan).iter().map(|k| format!("  (void){k};\n")).collect::<String>();
        out += "  CUresult result = CUDA_SUCCESS;\n";
        let steps = Steps { plan, placed: &placed };
        out += &(0..load).map(|at| steps.step(at)).collect::<Result<String>>()?;
        out += "  return result;\n}\n";
    }
    out +=
        &format!("\nCUresult {name}_run({}) {{\n  int bad = 0;\n  CUresult result = CUDA_SUCCESS;\n", parameters(plan));
    out += "  (void)arena, (void)bad;\n";
    if placed.is_none() {
        out += &format!("  uint64_t at[{}], length;\n", plan.room());
        out += &format!("  if (girih_layout(at, &length, {symbols})) return CUDA_ERROR_INVALID_VALUE;\n");
    }
    out += &plan.run(&Steps { plan, placed: &placed }, &placed)?;
    for (to, from, bytes) in plan.copies(&placed)? {
        out += &format!(
            "  if ({bytes} && (result = cuMemcpyDtoDAsync({to}, {}, {bytes}, stream))) return result;\n",
            spelled(from)
        );
    }
    Ok(out + "  return result;\n}\n")
}

struct Steps<'a> {
    plan: &'a Planned<'a>,
    placed: &'a Option<(Vec<u64>, u64)>,
}

impl Spelled for Steps<'_> {
    fn step(&self, at: usize) -> Result<String> {
        let plan = self.plan;
        let (step, kernel, grid) = plan.parts.steps().nth(at).ok_or_else(|| bug("a step vanished"))?;
        let grid = grid.iter().map(|n| plan.ix(n)).collect::<Result<Vec<_>>>()?.join(", ");
        let args = step.args.iter().map(|arg| Ok(spelled(plan.argument(arg, self.placed)?)));
        let args = args.collect::<Result<Vec<_>>>()?;
        let count = args.len();
        let args = if args.is_empty() { "0".to_string() } else { args.join(", ") };
        let (condition, kernel, count) = (plan.condition(step)?, kernel.to_string(), count.to_string());
        let words =
            [("$if", condition.as_str()), ("$n", &kernel), ("$grid", &grid), ("$args", &args), ("$count", &count)];
        let what = comment(&crate::model::step_text(&plan.parts.graph, step));
        Ok(format!("\n{what}{}", header::filled(STEP, &words)))
    }

    fn copy(&self, to: Place, from: Place, bytes: &str) -> String {
        let (to, from) = (spelled(to), spelled(from));
        format!("  if ({bytes} && (result = cuMemcpyDtoDAsync({to}, {from}, {bytes}, stream))) return result;\n")
    }

    fn leave(&self, condition: Place) -> String {
        let at = spelled(condition);
        format!(
            "  uint8_t girih_goes_on;\n  if ((result = cuMemcpyDtoHAsync(&girih_goes_on, {at}, 1, stream))) return result;\n\
             \x20 if ((result = cuStreamSynchronize(stream))) return result;\n  if (!girih_goes_on) break;\n"
        )
    }
}

/// An argument of a step as 64 bits.
fn spelled(place: Place) -> String {
    match place {
        Place::Symbol(name) => format!("(uint64_t){name}"),
        Place::Caller(name) => name,
        Place::Weights(at) => format!("weights + {at}"),
        Place::Loaded(at) => format!("loaded + {at}"),
        Place::Arena(at) => format!("arena + {at}"),
        Place::Behind(place, bytes) => format!("{} + {bytes}", spelled(*place)),
    }
}

/// A program that runs the model once, on zeros.
fn example(plan: &Planned<'_>) -> Result<String> {
    let leaf = |ix: &Ix| match ix {
        Ix::Val { val, .. } => plan.symbols.get(val.0 as usize).cloned(),
        _ => None,
    };
    let mut arrays = vec![];
    for (port, output) in plan.inputs.values().map(|p| (p, false)).chain(plan.outputs.iter().map(|p| (p, true))) {
        let mut bytes = port.elem.dtype.bytes().max(1).to_string();
        for d in &port.shape {
            bytes = format!("{bytes} * {}", plain(d, &leaf).ok_or_else(|| bug("an extent has no name"))?);
        }
        arrays.push(Array { name: port.name.clone(), bytes, shown: output.then(|| header::c_type(port.elem)) });
    }
    let name = plan.name;
    let mut numbers = vec![];
    for (symbol, s) in plan.symbols.iter().zip(plan.parts.graph.symbols.values()) {
        numbers.push(format!("const int64_t {symbol} = {};", s.lo.max(1)));
    }
    let mut before = String::new();
    for kept in kept(plan) {
        let bytes = format!("{}_{}_BYTES", name.to_uppercase(), kept.to_uppercase());
        before += &match kept {
            "weights" => format!("  CUdeviceptr weights = file(\"{name}.weights\", {bytes});\n"),
            _ => format!("  CUdeviceptr loaded = zeros({bytes});\n"),
        };
    }
    let list: String = kept(plan).iter().map(|k| format!(", {k}")).collect();
    if plan.loaded_bytes > 0 {
        before += &format!("  check({name}_load(&kernels, 0{list}));\n");
    }
    before += &format!("  CUdeviceptr arena = zeros({name}_arena({}));\n", plan.symbols.join(", "));
    let given: String = plan.symbols.iter().chain(arrays.iter().map(|a| &a.name)).map(|a| format!(", {a}")).collect();
    let call = format!("{name}_run(&kernels, 0{list}, arena{given})");
    Ok(example::text(name, &numbers, &before, &arrays, &call, plan.weights.is_file()))
}

const WEIGHTS: &str = "
// The weights are the file $name.weights, which the caller copies into memory of the device.
#define $upper_WEIGHTS_BYTES $bytes
";

const LOAD: &str = "
// Computes once the arrays that depend on weights alone, into $upper_LOADED_BYTES bytes of device memory.
#define $upper_LOADED_BYTES $bytes
CUresult $name_load($parameters);
";

const ARENA: &str = "
// Bytes of the arena, where temporary arrays lie: memory of the device, of one run at a time; 0 where an extent is out of
// its range.
size_t $name_arena($symbols);
";

const RUN: &str = "
// Launches the model on the stream. Arrays are memory of the device, at multiples of 256, which cuMemAlloc gives.
CUresult $name_run($parameters);
";

const STEP: &str = "  $ifresult = girih_step(kernels, stream, &bad, $n,
    (const int64_t[]){$grid},
    (const uint64_t[]){$args}, $count);
  if (result) return result;
";
