//! Runs of a text: on the evaluator, which checks every access, and on the simulator of a GPU.
//!
//! The launch of a tile program stands in its comments, `// launch: grid=4 A=randn:f32[64]`; a model draws its own inputs.

use girih_compiler::base::host::Host;
use girih_compiler::base::launch::{Assumptions, Launch};
use girih_compiler::base::memory::{Memory, VecMemory};
use girih_compiler::base::{Budget, Code, Diagnostic, Frames};
use girih_compiler::cuda_tile::{self, ir::Module};
use girih_compiler::emit;
use girih_compiler::explain;
use girih_compiler::graph::eval;
use girih_compiler::kernel::sim::{self, Estimate, Work};
use girih_compiler::num::{DType, values};
use girih_compiler::pipeline::{self, Front, Options, Silent};
use girih_compiler::source::expr;
use girih_compiler::spec::{ArgSpec, LaunchComment, Param, ParamKind, input_element, launch_comments, params};
use girih_compiler::tile::target::{Capability, Target};
use girih_page::simulation::{self, Seen, Variant};
use serde_json::{Value, json};

use crate::notes::{self, Refused};
use crate::{Subject, Text};

/// The bytes that the arguments of a launch may have together.
const ARGUMENTS: u64 = 64 << 20;
/// The bytes that an evaluator may take.
const MEMORY: u64 = 512 << 20;
/// The statements that a simulation may run under one schedule.
const STEPS: u64 = 1 << 28;
/// The statements of a simulation beyond which some of the blocks stand for all.
const MANY: f64 = 3e7;
/// The schedules of a simulation: one of each policy.
const SCHEDULES: u64 = sim::Policy::ALL.len() as u64;

/// Runs a text on the evaluator, and gives the arrays that it wrote.
pub fn run(subject: &Subject<'_>) -> Result<Value, Refused> {
    match subject {
        Subject::Program(text) => {
            let mut ready = Ready::new(*text)?;
            let options = cuda_tile::eval::Options::default();
            let Ready { module, entry, launch, memory, .. } = &mut ready;
            let mut host = Printed::default();
            let ran = cuda_tile::eval::run_with(module, entry, launch, memory, &mut host, &options);
            let warnings = ran.map_err(|trap| Refused::trap(*text, &trap))?.warnings;
            Ok(json!({ "printed": host.text, "arrays": ready.arrays(), "notes": notes::all(*text, &warnings) }))
        }
        Subject::Expression(text) => model(text),
    }
}

fn model(text: &str) -> Result<Value, Refused> {
    let refused = |found: Vec<_>| Refused::of(text, &found);
    let graph = expr::evaluate(text, &[]).map_err(refused)?.graph;
    let mut inputs = vec![];
    for (at, input) in graph.inputs.iter().enumerate() {
        let Some(v) = graph.values.get(input.value) else { continue };
        let shape: Option<Vec<u64>> = v.shape.iter().map(|d| u64::try_from(d.as_const()?).ok()).collect();
        let count = shape.as_ref().and_then(|s| s.iter().try_fold(1u64, |n, d| n.checked_mul(*d)));
        let (Some(shape), Some(count)) = (shape, count.filter(|n| n.saturating_mul(8) <= ARGUMENTS)) else {
            return Err(Refused::said(format!("input `{}` is too large, or has no fixed shape", v.name)));
        };
        let bits: Option<Vec<u64>> = (0..count).map(|i| input_element(input.fill, v.elem, 0, at, i)).collect();
        let tensor = bits.and_then(|bits| eval::Tensor::from_bits(v.elem, &shape, bits));
        inputs.push(tensor.ok_or_else(|| Refused::said(format!("input `{}` has no value", v.name)))?);
    }
    let options = eval::Options { budget: Budget::of_memory(MEMORY), ..eval::Options::default() };
    let results = eval::evaluate(&graph, &inputs, &eval::no_files, &options).map_err(|why| match why {
        eval::EvalError::Refused(found) => Refused::of(text, &found),
        other => Refused::said(other.to_string()),
    })?;
    let arrays = graph.outputs.iter().zip(&results).map(|(output, t)| {
        let element = |i: u64| values::text(t.elem.dtype, t.bits(i as usize));
        array(&output.name, &t.elem.to_string(), &t.shape, &element)
    });
    Ok(json!({ "printed": "", "arrays": arrays.collect::<Vec<_>>(), "notes": [] }))
}

/// Runs a text on the simulator under several schedules.
pub fn simulate(subject: &Subject<'_>, target: &Target) -> Result<Value, Refused> {
    let &Subject::Program(text) = subject else {
        return Err(Refused::said(
            "the page simulates tile programs; `girih sim -c` of the command line simulates models",
        ));
    };
    if !target.has(Capability::Threads) {
        return Err(Refused::said(format!("{} has no threads to simulate; choose a GPU", target.name)));
    }
    let mut ready = Ready::new(text)?;
    let assume = Assumptions::default();
    let options = Options { simulated: true, assume, ..crate::explain::options(target) };
    let lowered = pipeline::lower(&ready.module, &ready.entry, &options, &mut Silent)
        .map_err(|found| Refused::of(text, &found))?;
    let kernel = &lowered.kernel;
    emit::cuda::fits(kernel, target)
        .map_err(|why| Refused::said(format!("the kernel does not fit {}: {why}", target.name)))?;
    let cuda = pipeline::emit_cuda(&[kernel], target).ok();
    let line = |statement: u32| {
        let lines = &cuda.as_ref()?.lines;
        lines.iter().find(|l| l.statement == statement as usize).map(|l| l.line)
    };
    let origin = |source| explain::origin(&ready.module, text.own, source);
    let first = sim::Options {
        steps: STEPS,
        record: true,
        resident: sim::resident(kernel, target),
        ..sim::Options::of_seed(0)
    };
    let blocks = ready.launch.blocks();
    let each = sim::Size::of(kernel, &ready.launch).statements / blocks as f64;
    // Two blocks at least: races between blocks need them.
    ready.launch.sample = Some(((MANY / each.max(1.0)) as u64).max(2)).filter(|n| *n < blocks);
    let written = explain::source_of(&ready.module, text.own);
    let (mut shown, mut found) = (None, vec![]);
    let mut each = |mut report: sim::Report| {
        report.locate(kernel, &origin, &line);
        for finding in &report.findings {
            let mut d = Diagnostic::error(Code::Simulated, finding.to_string().trim_end());
            if let Some(origin) = &finding.origin {
                (d.span, d.frames) = (origin.span, origin.frames.clone());
            }
            if !found.iter().any(|f: &Diagnostic| (f.span, &f.message) == (d.span, &d.message)) {
                found.push(d);
            }
        }
        if let Some((trap, _)) = &report.stopped {
            let frames = Frames::clone(&trap.frames);
            found.push(Diagnostic { span: trap.span, frames, ..Diagnostic::error(trap.code, trap.message.clone()) });
        }
        // The counts are those of the first schedule; what others find is in the notes.
        if shown.is_none() {
            let estimate = Work::of(kernel, &report, blocks).and_then(|work| Estimate::of(work, target));
            let cuda_lines = report.rows.iter().map(|r| line(r.statement.number)).collect();
            let linked = explain::by_statements(kernel, cuda.as_ref(), Some(&written));
            let source = cuda.as_ref().map(|unit| unit.text.clone());
            shown = Some(Seen { report, estimate, cuda: cuda_lines, source, linked });
        }
        Ok(())
    };
    let mut host = Printed::default();
    let runs = first.schedules(SCHEDULES);
    sim::run_under(&runs, (kernel, &lowered.tile), &ready.launch, &mut ready.memory, &mut host, &mut each)
        .map_err(|trap| Refused::trap(text, &trap))?;
    let seen: Vec<Seen> = shown.into_iter().collect();
    let run = Variant { name: "as chosen".into(), seen: &seen };
    Ok(json!({
        "clean": found.is_empty(),
        "schedules": SCHEDULES,
        "blocks": [ready.launch.sample.unwrap_or(blocks), blocks],
        "views": simulation::reports(&run, None),
        "data": girih_page::seen(&simulation::data(&run)),
        "printed": host.text,
        "arrays": ready.arrays(),
        "notes": notes::all(text, &found),
    }))
}

/// A launch made ready.
struct Ready {
    module: Module,
    entry: String,
    launch: Launch,
    memory: VecMemory,
    arrays: Vec<Array>,
}

/// An array in the memory of a launch.
struct Array {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    address: u64,
}

impl Ready {
    /// Reads a program and the first of its launches, and makes the arguments.
    fn new(text: Text<'_>) -> Result<Ready, Refused> {
        let Front { module, .. } = pipeline::front(text.own).map_err(|found| Refused::of(text, &found))?;
        let comments = launch_comments(text.written.map_or(text.own, |w| w.text));
        let comment = comments.map_err(Refused::said)?.into_iter().next();
        let Some(LaunchComment { entry, grid, args }) = comment else {
            let message = "nothing says how the kernel is launched; add a comment such as `launch: grid=4 x=randn:f32[64] n=i32:64`";
            return Err(Refused::said(message));
        };
        let found = match &entry {
            Some(name) => module.entry(name),
            None => module.entries().next(),
        };
        let Some(func) = found else {
            return Err(Refused::said(format!("the program has no entry `{}`", entry.unwrap_or_default())));
        };
        let (mut memory, mut arrays, mut slots) = (VecMemory::new(), vec![], vec![]);
        let params = params(func).map_err(Refused::said)?;
        for (name, _) in &args {
            if !params.iter().any(|p| p.name == *name) {
                return Err(Refused::said(format!("the kernel has no parameter `{name}`")));
            }
        }
        let mut left = ARGUMENTS;
        for (at, Param { name, kind }) in params.iter().enumerate() {
            let Some((_, spec)) = args.iter().find(|(of, _)| of == name) else {
                return Err(Refused::said(format!(
                    "the launch gives no value for `{name}`; add `{name}={}`",
                    kind.example()
                )));
            };
            slots.push(match (spec, kind) {
                (ArgSpec::Scalar { dtype, bits }, ParamKind::Scalar(wanted)) if dtype == wanted => *bits,
                (ArgSpec::Fill { fill, dtype, shape, seed }, ParamKind::Pointer(wanted)) if dtype == wanted => {
                    if let Some(why) = fill.refusal(*dtype) {
                        return Err(Refused::said(why));
                    }
                    let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
                    let bytes = count.and_then(|n| values::storage_bytes(*dtype, n));
                    left = bytes.and_then(|bytes| left.checked_sub(bytes)).ok_or_else(|| {
                        Refused::said(format!(
                            "the arrays are larger than the {} MiB that a page gives them",
                            ARGUMENTS >> 20
                        ))
                    })?;
                    let mut filled = vec![0; bytes.unwrap_or_default() as usize];
                    let seed = seed.unwrap_or(at as u64 + 1);
                    for i in 0..count.unwrap_or_default() {
                        values::write(*dtype, &mut filled, i, fill.element(*dtype, seed, i));
                    }
                    let address = memory.add(name, filled);
                    arrays.push(Array { name: name.clone(), dtype: *dtype, shape: shape.clone(), address });
                    address
                }
                (ArgSpec::Same(of), ParamKind::Pointer(_)) => match arrays.iter().find(|a| a.name == *of) {
                    Some(array) => array.address,
                    None => {
                        return Err(Refused::said(format!(
                            "`{name}` is the array of `{of}`, which is not one before it"
                        )));
                    }
                },
                (ArgSpec::File { .. } | ArgSpec::Pointers(_), _) => {
                    return Err(Refused::said(format!(
                        "`{name}`: a page gives no files and no tables of pointers; write `{}`",
                        kind.example()
                    )));
                }
                _ => {
                    return Err(Refused::said(format!(
                        "`{name}` does not fit its parameter; write for example `{name}={}`",
                        kind.example()
                    )));
                }
            });
        }
        let entry = func.name.clone();
        let launch = Launch { budget: Budget::of_memory(MEMORY), ..Launch::new(grid.unwrap_or([1; 3]), slots) };
        Ok(Ready { module, entry, launch, memory, arrays })
    }

    fn arrays(&self) -> Vec<Value> {
        let of = |a: &Array| {
            let mut bytes = vec![0; self.memory.region(a.address).map_or(0, |(_, _, len)| len as usize)];
            // The region is as long as the array.
            let _ = self.memory.read(a.address, &mut bytes);
            array(&a.name, a.dtype.name(), &a.shape, &|i| values::text(a.dtype, values::read(a.dtype, &bytes, i)))
        };
        self.arrays.iter().map(of).collect()
    }
}

fn array(name: &str, elem: &str, shape: &[u64], element: &dyn Fn(u64) -> String) -> Value {
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    json!({ "name": name, "type": format!("{elem}[{}]", dims.join("x")), "text": values::nested(shape, element) })
}

/// Keeps what a kernel prints, up to a bound.
#[derive(Default)]
struct Printed {
    text: String,
}

/// The most bytes of printed text that are kept.
const PRINTED: usize = 1 << 16;

impl Host for Printed {
    fn print(&mut self, _block: [u32; 3], text: &str) {
        if self.text.len() < PRINTED {
            self.text.push_str(text);
        }
    }
    fn interrupted(&self) -> bool {
        false
    }
}
