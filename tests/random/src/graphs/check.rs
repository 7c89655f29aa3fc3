//! Takes one graph through text and back, through every simplification, and to kernels, and compares what comes out with
//! the evaluator of graphs.

use girih::model::{Model, Tensor as Array};
use girih_compiler::base::launch::Assumptions;
use girih_compiler::base::rule::{Log, Ran, Rewrites, Step as RuleStep};
use girih_compiler::base::{Budget, Code, Diagnostic, host};
use girih_compiler::graph::eval::{self, Tensor, evaluate, no_files};
use girih_compiler::graph::print::{Dialect, data_of, print};
use girih_compiler::graph::{ConstData, Graph, bind, decompose, parse, simplify, verify};
use girih_compiler::kernel;
use girih_compiler::loops;
use girih_compiler::loops::model::eval::Launched;
use girih_compiler::loops::model::{self, Options};
use girih_compiler::pipeline::{self, Lowered};
use girih_compiler::tile::target::Target;
use std::collections::BTreeMap;

use super::generate::{Case, Inputs};
use crate::check::{Mismatch, simulated};

/// The outcome of checking a graph.
pub enum Verdict {
    Agrees,
    /// The lowering refuses it, with this reason; all else agrees.
    Refused(String),
}

fn mismatch(stage: &str, what: impl Into<String>) -> Mismatch {
    Mismatch { stage: stage.into(), what: what.into() }
}

fn said(found: &[Diagnostic]) -> String {
    found.iter().map(|d| format!("{} {}", d.code.text(), d.message)).collect::<Vec<_>>().join("; ")
}

fn run(graph: &Graph, inputs: &Inputs) -> Result<Vec<Tensor>, String> {
    let budget = Budget::of_memory(1 << 31);
    let options = eval::Options { budget, symbols: inputs.given.clone(), ..eval::Options::default() };
    evaluate(graph, &inputs.tensors, &no_files, &options).map_err(|e| e.to_string())
}

/// The values of the symbols in a run.
fn bound(case: &Case, inputs: &Inputs) -> Result<Vec<i64>, Mismatch> {
    bind::bind_symbols(&case.graph, &inputs.shapes(), &inputs.given).map_err(|d| mismatch("bind", d.message))
}

fn in_run(at: usize, m: Mismatch) -> Mismatch {
    if at == 0 { m } else { mismatch(&m.stage, format!("in run {at}, {}", m.what)) }
}

/// How far results may lie apart where the order of operations is open: `c * sqrt(K) * eps`, of the largest number met.
fn tolerance(case: &Case, inputs: &Inputs, symbols: &[i64]) -> f64 {
    let bound = eval::bound(&case.graph, symbols);
    let mut all = case.graph.clone();
    all.outputs.clear();
    for (id, v) in case.graph.values.iter() {
        if v.elem.is_float() {
            all.outputs.push(girih_compiler::graph::Output { name: format!("all{}", id.0), value: id });
        }
    }
    let largest = run(&all, inputs).map_or(1.0, |list| {
        list.iter().flat_map(Tensor::numbers).map(f64::abs).filter(|x| x.is_finite()).fold(1.0, f64::max)
    });
    let eps = bound.coarsest.map_or(f64::EPSILON, girih::widen::epsilon);
    256.0 * (bound.longest as f64).sqrt() * eps * largest
}

/// The first difference between outputs.
fn compare(case: &Case, want: &[Tensor], got: &[Tensor], tolerance: f64) -> Option<String> {
    for ((o, want), got) in case.graph.outputs.iter().zip(want).zip(got) {
        let exact = case.exact.get(&case.graph.values[o.value].name).copied().unwrap_or(false);
        if (want.elem, &want.shape) != (got.elem, &got.shape) {
            return Some(format!("`{}` is {}{:?}, not {}{:?}", o.name, got.elem, got.shape, want.elem, want.shape));
        }
        let apart = |i: &usize| {
            let (w, g) = (want.number(*i), got.number(*i));
            let close = !exact && want.elem.is_float() && (w - g).abs() <= tolerance;
            !(want.bits(*i) == got.bits(*i) || w == g || w.is_nan() && g.is_nan() || close)
        };
        if let Some(i) = (0..want.len()).find(apart) {
            let kind = if exact { "exactly" } else { "nearly" };
            return Some(format!("`{}`[{i}] is {}, not {kind} {}", o.name, got.number(i), want.number(i)));
        }
    }
    (want.len() != got.len()).then(|| "the number of outputs differs".to_string())
}

fn bits_differ(want: &[Tensor], got: &[Tensor]) -> Option<String> {
    let same = |(a, b): (&Tensor, &Tensor)| {
        a.elem == b.elem
            && a.shape == b.shape
            && (0..a.len()).all(|i| a.bits(i) == b.bits(i) || a.number(i).is_nan() && b.number(i).is_nan())
    };
    let at = want.iter().zip(got).position(|p| !same(p));
    at.map(|i| format!("output {i} differs"))
}

/// Everything but native code. `twist` changes the graph on its way to the kernels: a bug to be found.
pub fn check(case: &Case, twist: &dyn Fn(&Graph) -> Graph) -> Result<Verdict, Mismatch> {
    let graph = &case.graph;
    let found = verify::verify(graph, Dialect::Tensor);
    if let Some(p) = found.first() {
        return Err(mismatch("verify", p.message.clone()));
    }
    let each = case.runs.iter().enumerate();
    let want = each.map(|(at, r)| run(graph, r).map_err(|e| in_run(at, mismatch("eval", e))));
    let want = want.collect::<Result<Vec<_>, _>>()?;
    let text = print(graph, Dialect::Tensor);
    let (back, _) = parse::check(&text, &data_of(graph)).map_err(|d| mismatch("parse", said(&d)))?;
    if print(&back, Dialect::Tensor) != text {
        return Err(mismatch("print", "the text that was read back prints differently"));
    }
    if let Some(what) = differs(case, &back, &want) {
        return Err(mismatch("parse", what));
    }
    let primitives = decompose::decompose(graph, &mut |_| {})
        .map_err(|f| mismatch("decompose", f.first().map_or(String::new(), |f| f.refusal.message.clone())))?;
    if print(&primitives, Dialect::Tensor) != text {
        return Err(mismatch("decompose", "a graph of primitives is changed"));
    }
    simplified(case, &want)?;
    kernels(case, &want, twist)
}

/// The difference of a graph's results from `want` in some run, bit for bit.
fn differs(case: &Case, graph: &Graph, want: &[Vec<Tensor>]) -> Option<String> {
    case.runs.iter().zip(want).enumerate().find_map(|(at, (inputs, want))| {
        let what = match run(graph, inputs) {
            Err(e) => Some(e),
            Ok(got) => bits_differ(want, &got),
        };
        what.map(|w| if at == 0 { w } else { format!("in run {at}, {w}") })
    })
}

/// Every rule keeps every bit, and what it leaves verifies.
fn simplified(case: &Case, want: &[Vec<Tensor>]) -> Result<(), Mismatch> {
    let rules = simplify::rules();
    let done = rules.run(case.graph.clone(), &(), &mut Rewrites::at_most(None), &mut |step| {
        let RuleStep::Ran(Ran { name, after: Some(after), .. }) = step else { return Ok(()) };
        let stage = format!("simplify {name}");
        if let Some(p) = verify::verify(after, Dialect::Tensor).first() {
            return Err(mismatch(&stage, p.message.clone()));
        }
        differs(case, after, want).map_or(Ok(()), |what| Err(mismatch(&stage, what)))
    });
    done.map(drop)
}

fn kernels(case: &Case, want: &[Vec<Tensor>], twist: &dyn Fn(&Graph) -> Graph) -> Result<Verdict, Mismatch> {
    let graph = twist(&case.graph);
    for (stage, fuse, workers) in [("unfused", false, true), ("fused", true, true), ("for threads", true, false)] {
        let options = Options { fuse, workers, quads: fuse && workers };
        let plan = match model::lower(&graph, &options, &mut Log::default()) {
            Ok(plan) => plan,
            Err(d) if d.iter().all(|d| d.code == Code::CannotLower) => return Ok(Verdict::Refused(said(&d))),
            Err(d) => return Err(mismatch(stage, said(&d))),
        };
        for step in plan.load.iter().chain(&plan.steps) {
            if let Some(d) = loops::verify::verify(&step.kernel, loops::print::Dialect::Loop).first() {
                return Err(mismatch(stage, format!("{}: {}", step.kernel.name, d.message)));
            }
        }
        let constants = |id| match graph.constants.get(id).map(|c| &c.data) {
            Some(ConstData::Bytes(b)) => b.to_vec(),
            _ => vec![],
        };
        let loops: &mut Launched<'_> =
            &mut |step, launch, memory| loops::eval::run(&step.kernel, launch, memory, &mut host::Silent);
        for (at, (inputs, want)) in case.runs.iter().zip(want).enumerate() {
            evaluated(case, &plan, &constants, inputs, want, loops)
                .map_err(|what| in_run(at, mismatch(stage, what)))?;
        }
        if !fuse {
            continue;
        }
        // For this machine, or for a GPU that the graph's size chooses.
        let gpus = ["sm_80", "sm_90a", "sm_100a", "sm_120"];
        let gpu = Target::named(gpus[graph.nodes.len() % gpus.len()]).unwrap_or_default();
        let (stage, target) = if workers { ("kernel", Target::cpu()) } else { ("simulator", gpu) };
        // How kernels of models are placed: their index arithmetic may wrap, their arrays are apart.
        let assume = Assumptions { no_wrap: false, no_alias: true };
        let options = pipeline::Options { target, assume, ..pipeline::Options::default() };
        placed(case, &plan, &constants, want, stage, &options)?;
    }
    Ok(Verdict::Agrees)
}

/// The kernels of a plan as they are placed for a target.
fn placed(
    case: &Case,
    plan: &model::Plan,
    constants: &dyn Fn(girih_compiler::graph::ConstId) -> Vec<u8>,
    want: &[Vec<Tensor>],
    stage: &str,
    options: &pipeline::Options,
) -> Result<(), Mismatch> {
    let plan = pipeline::schedule_plan(plan, options, &mut options.rewrites(), &mut pipeline::Silent)
        .map_err(|d| mismatch("tile", said(&d)))?;
    let mut lowered: BTreeMap<String, Lowered> = BTreeMap::new();
    for step in plan.load.iter().chain(&plan.steps) {
        let kernel = step.kernel.clone();
        let made = pipeline::lower_loops(kernel, options, &mut options.rewrites(), &mut pipeline::Silent);
        lowered.insert(step.kernel.name.clone(), made.map_err(|d| mismatch(stage, said(&d)))?);
    }
    let flat: &mut Launched<'_> = &mut |step, launch, memory| match lowered.get(&step.kernel.name) {
        // A schedule that the kernel's length chooses.
        Some(made) if made.kernel.threads > 1 => simulated(made, launch, memory, made.kernel.body.len() as u64),
        Some(made) => kernel::eval::run(&made.kernel, &made.tile, launch, memory, &mut host::Silent),
        None => Ok(()),
    };
    for (at, (inputs, want)) in case.runs.iter().zip(want).enumerate() {
        evaluated(case, &plan, constants, inputs, want, flat).map_err(|what| in_run(at, mismatch(stage, what)))?;
    }
    Ok(())
}

/// A plan, its steps run by `launched`.
fn evaluated(
    case: &Case,
    plan: &model::Plan,
    constants: &dyn Fn(girih_compiler::graph::ConstId) -> Vec<u8>,
    inputs: &Inputs,
    want: &[Tensor],
    launched: &mut Launched<'_>,
) -> Result<(), String> {
    let symbols = bound(case, inputs).map_err(|m| m.what)?;
    let bytes: Vec<Vec<u8>> = inputs.tensors.iter().map(Tensor::to_bytes).collect();
    let out = model::eval::run_with(plan, &symbols, &bytes, constants, launched)
        .map_err(|t| format!("{}: {}", t.code.text(), t.message))?;
    let got = out.iter().zip(want).map(|(b, w)| Tensor::from_bytes(w.elem, &w.shape, b));
    let got: Option<Vec<Tensor>> = got.collect();
    let got = got.ok_or("an output is too short")?;
    match compare(case, want, &got, tolerance(case, inputs, &symbols)) {
        Some(what) => Err(what),
        None => Ok(()),
    }
}

/// The compiled model, run with each of the inputs in turn.
pub fn native(case: &Case) -> Result<(), Mismatch> {
    let wrong = |e: girih::Error| mismatch("native", e.to_string());
    let model = Model::from_graph(case.graph.clone()).map_err(wrong)?;
    for (at, inputs) in case.runs.iter().enumerate() {
        native_run(case, &model, inputs).map_err(|m| in_run(at, m))?;
    }
    Ok(())
}

fn native_run(case: &Case, model: &Model, inputs: &Inputs) -> Result<(), Mismatch> {
    let wrong = |e: girih::Error| mismatch("native", e.to_string());
    let want = run(&case.graph, inputs).map_err(|e| mismatch("eval", e))?;
    let mut arrays = vec![];
    for (input, t) in case.graph.inputs.iter().zip(&inputs.tensors) {
        let mut a = Array::zeroed(t.elem, &t.shape).map_err(wrong)?;
        (0..t.len()).for_each(|i| a.buffer_mut().set(i as u64, t.bits(i)));
        arrays.push((case.graph.values[input.value].name.clone(), a));
    }
    let given: Vec<(&str, &Array)> = arrays.iter().map(|(n, a)| (&n[..], a)).collect();
    let symbols = bound(case, inputs)?;
    let named: Vec<(&str, i64)> =
        case.graph.symbols.values().zip(&symbols).map(|(s, value)| (&s.name[..], *value)).collect();
    let out = model.run_at(&given, &named).map_err(wrong)?;
    let mut got = vec![];
    for (_, a) in &out {
        let bits = (0..a.buffer().elements()).map(|i| a.buffer().get(i)).collect();
        got.push(Tensor::from_bits(a.elem(), a.shape(), bits).ok_or_else(|| mismatch("native", "an output is short"))?);
    }
    match compare(case, &want, &got, tolerance(case, inputs, &symbols)) {
        Some(what) => Err(mismatch("native", what)),
        None => Ok(()),
    }
}
