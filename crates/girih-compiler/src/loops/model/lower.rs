//! Tensor IR to a plan: decides the kernels and writes their loops.

use std::collections::{BTreeMap, BTreeSet};

use super::emit::{Emitter, Result};
use super::fuse::{Fusion, Root};
use super::plan::{Array, ArrayId, ArrayPlace, Plan, Step, StepArg};
use super::{product, rows, streamed, whole};
use crate::base::rule::{Context, Log};
use crate::base::{Code, Diagnostic};
use crate::graph::OriginId;
use crate::graph::ir::{Graph, Op, ValueId};
use crate::index::{Ix, simplify};
use crate::loops::ir::Ty;
use crate::tile::blocking::OperandLayout;

/// What lowering may choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// Splice producers into consumers; off, every operation is a kernel.
    pub fuse: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { fuse: true }
    }
}

/// Lowers a graph of primitives. `log` says which values were spliced where, and why others were not.
pub fn lower(
    graph: &Graph,
    cx: &Context,
    options: &Options,
    log: &mut Log,
) -> std::result::Result<Plan, Vec<Diagnostic>> {
    let mut force: BTreeSet<ValueId> = BTreeSet::new();
    // A kernel that cannot be written gives up a value each time, so this ends.
    for _ in 0..=graph.nodes.len() {
        let mut fusion = Fusion::new(graph, &cx.target);
        fusion.force = force.clone();
        fusion.off = !options.fuse;
        let mut this = Log::default();
        let roots = fusion.run(&mut this);
        match plan_of(graph, cx, &roots) {
            Ok(plan) => {
                log.applied.extend(this.applied);
                log.skipped.extend(this.skipped);
                return Ok(plan);
            }
            Err((at, refusal)) => {
                let root = &roots[at];
                let inner: Vec<ValueId> = root.members.iter().copied().filter(|v| *v != root.value).collect();
                let before = force.len();
                // The operands nearest to the result first.
                let direct: Vec<ValueId> = match graph.def(root.value) {
                    Some((node, _)) => node.values().filter(|v| inner.contains(v) && !force.contains(v)).collect(),
                    None => vec![],
                };
                force.extend(if direct.is_empty() { inner } else { direct });
                if force.len() == before {
                    let origin = graph.def(root.value).and_then(|(n, _)| graph.origins.get(n.origin));
                    let of = origin.map_or(String::new(), |o| format!(" ({} {})", o.op, o.name));
                    let name = &graph.values[root.value].name;
                    let message = format!("`{name}`{of} cannot be lowered: {}", refusal.message);
                    return Err(vec![Diagnostic::error(Code::CannotLower, message)]);
                }
            }
        }
    }
    Err(vec![Diagnostic::error(Code::InternalBug, "fusion does not end")])
}

fn plan_of(graph: &Graph, cx: &Context, roots: &[Root]) -> std::result::Result<Plan, (usize, crate::graph::Refusal)> {
    let mut plan = Plan::default();
    let mut arrays: BTreeMap<ValueId, ArrayId> = BTreeMap::new();
    let mut add = |plan: &mut Plan, v: ValueId, place: ArrayPlace| {
        let info = &graph.values[v];
        let array = Array { name: info.name.clone(), elem: info.elem, shape: info.shape.clone(), place };
        let id = plan.arrays.push(array);
        arrays.insert(v, id);
        id
    };
    for (i, input) in graph.inputs.iter().enumerate() {
        add(&mut plan, input.value, ArrayPlace::Input(i as u32));
    }
    for node in graph.nodes.values() {
        if let (Op::Constant(c), Some(v)) = (&node.op, node.results.first()) {
            add(&mut plan, *v, ArrayPlace::Constant(*c));
        }
    }
    for root in roots {
        let place = if root.load { ArrayPlace::Loaded } else { ArrayPlace::Temp };
        let results = graph.def(root.value).map(|(n, _)| n.results.clone()).unwrap_or_default();
        for v in results {
            add(&mut plan, v, place);
        }
    }
    let mut names = BTreeMap::new();
    for (at, root) in roots.iter().enumerate() {
        let step = step(graph, cx, root, &arrays, &plan, &mut names).map_err(|refusal| (at, refusal))?;
        if root.load { plan.load.push(step) } else { plan.steps.push(step) }
    }
    plan.outputs = graph.outputs.iter().filter_map(|o| arrays.get(&o.value)).copied().collect();
    Ok(plan)
}

/// The arrays that computing a root reads, in the order of the graph.
fn leaves(graph: &Graph, root: &Root, arrays: &BTreeMap<ValueId, ArrayId>) -> Vec<ValueId> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut todo = vec![root.value];
    while let Some(v) = todo.pop() {
        if !seen.insert(v) {
            continue;
        }
        if v != root.value && arrays.contains_key(&v) {
            found.insert(v);
            continue;
        }
        if let Some((node, _)) = graph.def(v) {
            todo.extend(node.values());
        }
    }
    found.into_iter().collect()
}

fn step(
    graph: &Graph,
    cx: &Context,
    root: &Root,
    arrays: &BTreeMap<ValueId, ArrayId>,
    plan: &Plan,
    names: &mut BTreeMap<String, usize>,
) -> Result<Step> {
    let name = kernel_name(graph, root, names);
    let mut e = Emitter::new(graph, &name);
    let mut args: Vec<StepArg> = graph.symbols.keys().map(StepArg::Symbol).collect();
    let (mut reads, mut writes) = (vec![], vec![]);
    for v in leaves(graph, root, arrays) {
        e.array(v, &graph.values[v].name);
        let id = arrays[&v];
        args.push(StepArg::Array(id));
        reads.push(id);
    }
    let Some((node, _)) = graph.def(root.value) else {
        return Err(crate::graph::Refusal::new("an input has no kernel"));
    };
    let mut outs = vec![];
    for v in &node.results {
        let info = &graph.values[*v];
        outs.push(e.param(&info.name, Ty::Ptr(info.elem.dtype)));
        let id = arrays[v];
        args.push(StepArg::Array(id));
        writes.push(id);
    }
    e.keep = root.keep.clone();
    let out = outs[0];
    let (kernel, grid) = if !root.products.is_empty() {
        let layout = OperandLayout::AlongK;
        let grid = match &root.stream {
            Some(s) => streamed::emit(&mut e, root.value, out, s, &root.places, &cx.target)?,
            None => product::emit(&mut e, root.value, out, &root.products, &root.places, layout, &cx.target)?,
        };
        (e.finish(), grid)
    } else {
        let whole = matches!(node.op, Op::Scan { .. } | Op::Sort { .. } | Op::Scatter { .. });
        if whole {
            whole::emit(&mut e, node, &outs)?;
        } else {
            rows::emit(&mut e, root.value, out, &root.first)?;
        }
        let facts = e.facts.clone();
        let mut kernel = e.finish();
        rows::collapse(&mut kernel, &facts);
        let scatter = matches!(node.op, Op::Scatter { .. });
        if scatter {
            (kernel, [Ix::Const(1), Ix::Const(1), Ix::Const(1)])
        } else {
            let bound = rows::bind(graph, kernel, cx.target.threads);
            (bound.kernel, bound.grid)
        }
    };
    let facts = graph.facts();
    let size = |id: &ArrayId| {
        let a = &plan.arrays[*id];
        Ix::mul(graph.numel(&a.shape), Ix::Const(a.elem.dtype.bytes() as i64))
    };
    let bytes = reads.iter().chain(&writes).map(size).fold(Ix::Const(0), Ix::add);
    let flops = root.products.iter().map(|p| {
        let all: Vec<usize> = [&p.batch[..], &p.m, &p.n, &p.k].concat();
        Ix::mul(p.extent(graph, &all), Ix::Const(2))
    });
    let flops = flops.fold(Ix::Const(0), Ix::add);
    let mut origins: Vec<OriginId> = root.members.iter().filter_map(|v| graph.def(*v)).map(|(n, _)| n.origin).collect();
    origins.sort();
    origins.dedup();
    Ok(Step {
        kernel,
        args,
        grid,
        reads,
        writes,
        origins,
        flops: simplify(&flops, &facts),
        bytes: simplify(&bytes, &facts),
    })
}

/// `k_linear_silu_mul`: what a person would call the kernel, after the operations it computes.
fn kernel_name(graph: &Graph, root: &Root, names: &mut BTreeMap<String, usize>) -> String {
    let mut parts: Vec<String> = vec![];
    let mut seen: BTreeSet<OriginId> = BTreeSet::new();
    for v in &root.members {
        let Some((node, _)) = graph.def(*v) else { continue };
        if matches!(node.op, Op::Constant(_) | Op::Index(_)) || !seen.insert(node.origin) {
            continue;
        }
        let Some(origin) = graph.origins.get(node.origin) else { continue };
        let op = origin.op.rsplit('.').next().unwrap_or_default();
        let layout =
            ["view", "reshape", "transpose", "permute", "expand", "unsqueeze", "squeeze", "t", "slice", "_to_copy"];
        let mut word = String::new();
        for c in op.trim_matches('_').chars() {
            if c.is_ascii_uppercase() && word.ends_with(|p: char| p.is_ascii_lowercase()) {
                word.push('_');
            }
            word.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
        }
        if !word.is_empty() && !layout.contains(&&*word) && parts.last() != Some(&word) {
            parts.push(word);
        }
    }
    if parts.is_empty() {
        parts.push(
            graph.values[root.value].name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect(),
        );
    }
    if parts.len() > 4 {
        let last = parts.len() - 1;
        parts = vec![parts[0].clone(), parts[1].clone(), "etc".into(), parts[last].clone()];
    }
    let base = format!("k_{}", parts.join("_"));
    let n = names.entry(base.clone()).or_insert(0);
    *n += 1;
    if *n == 1 { base } else { format!("{base}_{n}") }
}
