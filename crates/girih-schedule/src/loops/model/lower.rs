//! Tensor IR to a plan: decides the kernels and writes their loops.

use std::collections::{BTreeMap, BTreeSet};

use super::builder::{NestBuilder, Result};
use super::concat::{self, Part};
use super::fuse::{Fusion, Panels, Root, Split};
use super::plan::{Array, ArrayId, ArrayPlace, Loop, LoopId, Plan, Step, StepArg};
use super::{attention, product, rows, scan_sort_scatter, scatter_blocks};
use crate::base::rule::Log;
use crate::base::{Code, Diagnostic};
use crate::graph::ir::{Arg, Graph, Node, Op, Repeat, ScatterOp, ValueId};
use crate::graph::{OriginId, Refusal, Role};
use crate::index::{Ix, ValId, simplify};
use crate::loops::ir::{Kernel, Ty};
use crate::num::ScalarOp;

/// The options of lowering.
#[derive(Clone, Debug)]
pub struct Options {
    /// Splice producers into consumers; off, every operation is a kernel.
    pub fuse: bool,
    /// Operations that are not computed element by element give each row to one worker; false for targets with blocks
    /// of many threads.
    pub workers: bool,
    /// Processors multiply four unsigned bytes by four signed ones at once, where these lie side by side.
    pub quads: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { fuse: true, workers: true, quads: false }
    }
}

/// Lowers a graph of primitives; no body of its loops may hold a constant. `log` gets the values that were spliced,
/// with their kernels, and the reasons why others were not.
pub fn lower(graph: &Graph, options: &Options, log: &mut Log) -> std::result::Result<Plan, Vec<Diagnostic>> {
    let mut plan = Plan::default();
    let mut arrays = BTreeMap::new();
    for (i, input) in graph.inputs.iter().enumerate() {
        add(&mut plan, &mut arrays, graph, input.value, ArrayPlace::Input(i as u32));
    }
    let replaced = if options.workers { replaced(graph) } else { BTreeMap::new() };
    let mut planner = Planner { model: graph, options, plan, replaced, names: BTreeMap::new(), log };
    planner.graph(graph, &mut arrays, None, false)?;
    let mut plan = planner.plan;
    plan.outputs = graph.outputs.iter().filter_map(|o| arrays.get(&o.value)).copied().collect();
    Ok(plan)
}

/// The arrays of a graph's values.
type Arrays = BTreeMap<ValueId, ArrayId>;

/// The values that may be written where an argument lies, with that argument: it is scattered into, and read for nothing else.
fn replaced(graph: &Graph) -> BTreeMap<ValueId, ValueId> {
    let mut uses: BTreeMap<ValueId, usize> = BTreeMap::new();
    for v in graph.nodes.values().flat_map(Node::values).chain(graph.outputs.iter().map(|o| o.value)) {
        *uses.entry(v).or_default() += 1;
    }
    let found = graph.replaced.iter().filter_map(|(output, input)| {
        let (to, from) = (graph.outputs.get(*output as usize)?.value, graph.inputs.get(*input as usize)?);
        let (node, _) = graph.def(to)?;
        // If a run fails, its caller may compute the results anew: setting an element twice does no harm.
        let set = matches!(node.op, Op::Scatter { op: ScatterOp::Set, .. });
        let into = node.args.first() == Some(&Arg::Value(from.value));
        let once = uses.get(&from.value) == Some(&1) && from.role == Role::Argument;
        (set && into && once && graph.values[to].elem.dtype.bits() >= 8).then_some((to, from.value))
    });
    found.collect()
}

/// Adds an array for a value.
fn add(plan: &mut Plan, arrays: &mut Arrays, graph: &Graph, v: ValueId, place: ArrayPlace) -> ArrayId {
    let info = &graph.values[v];
    let at_load = match place {
        ArrayPlace::Input(i) => graph.inputs.get(i as usize).is_some_and(|input| input.role == Role::Parameter),
        ArrayPlace::Constant(_) | ArrayPlace::Loaded => true,
        ArrayPlace::Temp | ArrayPlace::Row { .. } => false,
    };
    let array = Array { name: info.name.clone(), elem: info.elem, shape: info.shape.clone(), place, at_load };
    let id = plan.arrays.push(array);
    arrays.insert(v, id);
    id
}

/// Why a graph has no plan: the kernel of this root cannot be written, or the whole graph is wrong.
enum Trouble {
    Root(usize, Refusal),
    Whole(Vec<Diagnostic>),
}

struct Planner<'a> {
    /// The whole graph, whose operations messages name.
    model: &'a Graph,
    options: &'a Options,
    plan: Plan,
    replaced: BTreeMap<ValueId, ValueId>,
    names: BTreeMap<String, usize>,
    log: &'a mut Log,
}

impl Planner<'_> {
    /// Plans a graph: the whole one, or the body of a loop, whose inputs have arrays.
    fn graph(
        &mut self,
        graph: &Graph,
        arrays: &mut Arrays,
        within: Option<LoopId>,
        at_run: bool,
    ) -> std::result::Result<(), Vec<Diagnostic>> {
        let (mut force, mut splits) = (BTreeSet::new(), BTreeMap::new());
        // A kernel that cannot be written gives up a value each time, and each is split once, so this ends.
        for _ in 0..=2 * graph.nodes.len() {
            let mut fusion = Fusion::new(graph);
            fusion.force = force.clone();
            fusion.splits = splits.clone();
            fusion.off = !self.options.fuse;
            fusion.in_lines = self.options.workers;
            fusion.quads = self.options.quads;
            if at_run {
                fusion.at_run();
            }
            let mut this = Log::default();
            let (roots, wanted) = fusion.run(&mut this);
            // A root that is split wants no further split.
            if self.options.workers && !wanted.is_empty() {
                splits.extend(wanted);
                continue;
            }
            let before = (self.plan.clone(), self.names.clone(), arrays.clone());
            let (applied, skipped) = (self.log.applied.len(), self.log.skipped.len());
            let trouble = match self.kernels(graph, &roots, arrays, within) {
                Ok(()) => {
                    let name = |root: &Root| graph.values[root.value].name.clone();
                    let split = roots.iter().filter_map(|r| Some((name(r), r.split?)));
                    let text =
                        |(name, s): (String, Split)| format!("{name} in groups of {} along axis {}", s.inner, s.axis);
                    self.log.applied.extend(split.map(text));
                    self.log.applied.extend(this.applied);
                    self.log.skipped.extend(this.skipped);
                    return Ok(());
                }
                Err(trouble) => trouble,
            };
            (self.plan, self.names, *arrays) = before;
            self.log.applied.truncate(applied);
            self.log.skipped.truncate(skipped);
            match trouble {
                Trouble::Whole(all) => return Err(all),
                Trouble::Root(at, refusal) => {
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

    fn kernels(
        &mut self,
        graph: &Graph,
        roots: &[Root],
        arrays: &mut Arrays,
        within: Option<LoopId>,
    ) -> std::result::Result<(), Trouble> {
        for node in graph.nodes.values() {
            if let (Op::Constant(c), Some(v)) = (&node.op, node.results.first()) {
                if within.is_some() {
                    let message = "the body of a loop holds a constant";
                    return Err(Trouble::Whole(vec![Diagnostic::error(Code::InternalBug, message)]));
                }
                add(&mut self.plan, arrays, graph, *v, ArrayPlace::Constant(*c));
            }
        }
        for root in roots {
            let place = if root.load { ArrayPlace::Loaded } else { ArrayPlace::Temp };
            let results = graph.def(root.value).map(|(n, _)| n.results.clone()).unwrap_or_default();
            for v in results {
                match self.replaced.get(&v).filter(|_| within.is_none()).and_then(|from| arrays.get(from)) {
                    Some(&argument) => drop(arrays.insert(v, argument)),
                    None => drop(add(&mut self.plan, arrays, graph, v, place)),
                }
            }
        }
        let panels: BTreeMap<ValueId, Panels> = roots.iter().filter_map(|r| Some((r.value, r.panels?))).collect();
        for group in groups(graph, roots, arrays, self.options) {
            let members: Vec<&Root> = group.iter().map(|at| &roots[*at]).collect();
            let first = group.first().copied().unwrap_or(0);
            if let Some((node, _)) = graph.def(roots[first].value)
                && let Op::Repeat(r) = &node.op
            {
                self.repeat(graph, node, r, arrays, within).map_err(Trouble::Whole)?;
                continue;
            }
            let (plan, workers) = (&self.plan, self.options.workers);
            let lowering = Lowering { graph, arrays, panels: &panels, plan, workers };
            let names = &mut self.names;
            let steps = match &roots[first].parts[..] {
                [] => vec![lowering.step(&members, &[], names)],
                all => all.chunks(concat::IN_A_STEP).map(|some| lowering.step(&members, some, names)).collect(),
            };
            let steps = steps.into_iter().collect::<Result<Vec<Step>>>();
            let steps = steps.map_err(|refusal| Trouble::Root(first, refusal))?;
            if let Some((node, _)) = graph.def(roots[first].value).filter(|_| !self.options.workers) {
                self.log.applied.extend(scatter_blocks::text(graph, node));
            }
            // Passes that run on a body alone may have named origins of their own.
            let known = |o: &OriginId| self.model.origins.get(*o) == graph.origins.get(*o);
            for mut step in steps {
                step.origins.retain(known);
                if roots[first].load {
                    self.plan.load.push(step);
                } else {
                    self.plan.steps.push(Step { within, ..step });
                }
            }
        }
        Ok(())
    }

    /// A loop: the steps of its body, and the copies around them.
    fn repeat(
        &mut self,
        graph: &Graph,
        node: &Node,
        r: &Repeat,
        arrays: &Arrays,
        within: Option<LoopId>,
    ) -> std::result::Result<(), Vec<Diagnostic>> {
        let lost = || vec![Diagnostic::error(Code::InternalBug, "a value of a loop has no array")];
        let array = |v: ValueId| arrays.get(&v).copied().ok_or_else(lost);
        let args = node.values().map(array).collect::<std::result::Result<Vec<ArrayId>, _>>()?;
        let results = node.results.iter().map(|v| array(*v)).collect::<std::result::Result<Vec<ArrayId>, _>>()?;
        if results.is_empty() {
            return Ok(());
        }
        let carried = r.carried as usize;
        let own = Loop {
            within,
            rounds: r.rounds.clone(),
            condition: results.first().copied().filter(|_| r.conditional),
            before: args.iter().copied().zip(results.iter().copied()).take(carried).collect(),
            first: vec![],
            last: vec![],
        };
        // If all results of a round exist without a step, a second attempt copies them by kernels: a loop has a step.
        for at_run in [false, true] {
            let mut body = Graph { symbols: graph.symbols.clone(), ..r.body.clone() };
            for (input, arg) in body.inputs.iter_mut().zip(&args).skip(carried + r.rows.len()) {
                let at_load = self.plan.arrays[*arg].at_load && !at_run;
                input.role = if at_load { Role::Parameter } else { Role::Argument };
            }
            keep_apart(&mut body, carried, at_run);
            let steps = self.plan.steps.len();
            let before = self.plan.clone();
            let id = self.plan.loops.push(own.clone());
            let mut inner = Arrays::new();
            let mut first = vec![];
            for (at, (input, arg)) in body.inputs.iter().zip(&args).enumerate() {
                let row = at.checked_sub(carried).and_then(|at| r.rows.get(at));
                match row {
                    None if at < carried => {
                        inner.insert(input.value, results[at]);
                    }
                    None => {
                        inner.insert(input.value, *arg);
                    }
                    Some(&reverse) => {
                        let place = ArrayPlace::Row { of: *arg, within: id, reverse };
                        let row = add(&mut self.plan, &mut inner, &body, input.value, place);
                        if !self.in_place(&body, input.value) {
                            first.push((row, add(&mut self.plan, &mut inner, &body, input.value, ArrayPlace::Temp)));
                        }
                    }
                }
            }
            self.graph(&body, &mut inner, Some(id), at_run)?;
            if self.plan.steps.len() == steps && !at_run {
                self.plan = before;
                continue;
            }
            let (mut rows, mut state) = (vec![], vec![]);
            for (at, output) in body.outputs.iter().enumerate() {
                let from = inner.get(&output.value).copied().ok_or_else(lost)?;
                let Some(&to) = results.get(at) else { return Err(lost()) };
                let Some(&reverse) = at.checked_sub(carried).and_then(|at| r.given.get(at)) else {
                    state.extend((from != to).then_some((from, to)));
                    continue;
                };
                let place = ArrayPlace::Row { of: to, within: id, reverse };
                let made = matches!(graph_def(&body, output.value), Some(Op::Repeat(_)) | None);
                if self.plan.arrays[from].place == ArrayPlace::Temp && !made && self.in_place(&body, output.value) {
                    self.plan.arrays[from].place = place;
                } else {
                    let row = add(&mut self.plan, &mut Arrays::new(), &body, output.value, place);
                    rows.push((from, row));
                }
            }
            let l = &mut self.plan.loops[id];
            l.first = first;
            // Rows first: they may be of the state before the round.
            l.last = [rows, state].concat();
            return Ok(());
        }
        Ok(())
    }

    /// Returns true if kernels may read and write a row in place; kernels of GPUs need arrays at multiples of 16 bytes.
    fn in_place(&self, body: &Graph, v: ValueId) -> bool {
        let value = &body.values[v];
        let count = body.numel(&value.shape).as_const();
        self.options.workers || count.is_some_and(|n| n * value.elem.dtype.bytes() as i64 % 16 == 0)
    }
}

fn graph_def(graph: &Graph, v: ValueId) -> Option<&Op> {
    graph.def(v).map(|(node, _)| &node.op)
}

/// Copies, in the body of a loop, values of the state that are handed on as other values and would be overwritten
/// before they are copied; with `all`, every value that is not computed.
fn keep_apart(body: &mut Graph, carried: usize, all: bool) {
    let state: BTreeSet<ValueId> = body.inputs.iter().take(carried).map(|i| i.value).collect();
    let inputs: BTreeSet<ValueId> = body.inputs.iter().map(|i| i.value).collect();
    for at in 0..body.outputs.len() {
        let v = body.outputs[at].value;
        let own = body.inputs.get(at).is_some_and(|i| i.value == v) && at < carried;
        let copied = if all { inputs.contains(&v) } else { at < carried && !own && state.contains(&v) };
        if copied {
            let origin = body.add_origin("", "", None);
            let info = &body.values[v];
            let result = (info.name.clone(), info.elem, info.shape.clone());
            let id = body.add_node(Op::Elementwise(ScalarOp::Copy), vec![v.into()], vec![result], origin);
            body.outputs[at].value = body.nodes[id].results[0];
        }
    }
}

/// The arrays that the computation of some values reads, and the values computed on the way, in the order of the graph.
fn reach(
    graph: &Graph,
    mut todo: Vec<ValueId>,
    arrays: &BTreeMap<ValueId, ArrayId>,
) -> (BTreeSet<ValueId>, BTreeSet<ValueId>) {
    let (mut found, mut inside) = (BTreeSet::new(), BTreeSet::new());
    while let Some(v) = todo.pop() {
        if arrays.contains_key(&v) {
            found.insert(v);
        } else if inside.insert(v)
            && let Some((node, _)) = graph.def(v)
        {
            todo.extend(node.values());
        }
    }
    (found, inside)
}

/// The arrays that the computation of a root reads.
fn leaves(graph: &Graph, root: &Root, arrays: &BTreeMap<ValueId, ArrayId>) -> BTreeSet<ValueId> {
    reach(graph, graph.def(root.value).map(|(n, _)| n.values().collect()).unwrap_or_default(), arrays).0
}

/// The most products that run as one, and how many later ones are asked.
const TOGETHER: usize = 8;
const NEAR: usize = 64;

/// Kernels that run as one: products with the same left operand share a launch, so that small ones keep all threads
/// busy.
fn groups(graph: &Graph, roots: &[Root], arrays: &BTreeMap<ValueId, ArrayId>, options: &Options) -> Vec<Vec<usize>> {
    let alone = |root: &Root| root.products.len() != 1 || root.stream.is_some() || root.load || !options.fuse;
    let left = |root: &Root| {
        let p = root.products.first()?;
        let (node, _) = graph.def(p.dot)?;
        let Arg::Value(a) = node.args.get(p.a)? else { return None };
        // Through maps, so that the same tensor in another shape is the same.
        let mut v = *a;
        while let Some((node, _)) = graph.def(v).filter(|_| !arrays.contains_key(&v)) {
            match (&node.op, &node.args[..]) {
                (Op::IndexMap(s), [Arg::Value(x)]) if s.len() == 1 => v = *x,
                _ => break,
            }
        }
        Some((v, p.extent(graph, &p.m), p.extent(graph, &p.k), p.extent(graph, &p.batch)))
    };
    let lefts: Vec<_> = roots.iter().map(|root| if alone(root) { None } else { left(root) }).collect();
    let mut alike: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, own) in lefts.iter().enumerate() {
        if let Some(own) = own {
            alike.entry(own).or_default().push(at);
        }
    }
    let mut made: BTreeMap<ValueId, usize> = BTreeMap::new();
    for (at, root) in roots.iter().enumerate().filter(|(_, r)| !r.load) {
        made.extend(graph.def(root.value).into_iter().flat_map(|(n, _)| n.results.iter().map(|v| (*v, at))));
    }
    // The first root before which everything is made that this one reads.
    let first = |root: &Root| leaves(graph, root, arrays).iter().filter_map(|v| made.get(v)).map(|at| at + 1).max();
    let ready: Vec<usize> =
        roots.iter().zip(&lefts).map(|(r, own)| own.as_ref().and_then(|_| first(r)).unwrap_or(0)).collect();
    let mut taken = vec![false; roots.len()];
    let mut out = vec![];
    for (at, own) in lefts.iter().enumerate() {
        if taken[at] {
            continue;
        }
        let mut group = vec![at];
        if let Some(list) = own.as_ref().and_then(|own| alike.get(own)) {
            let from = list.partition_point(|other| *other <= at);
            for &other in list[from..].iter().take(NEAR) {
                if !taken[other] && ready[other] <= at && group.len() < TOGETHER {
                    taken[other] = true;
                    group.push(other);
                }
            }
        }
        out.push(group);
    }
    out
}

struct Lowering<'a> {
    graph: &'a Graph,
    arrays: &'a BTreeMap<ValueId, ArrayId>,
    /// The values whose arrays are in panels.
    panels: &'a BTreeMap<ValueId, Panels>,
    plan: &'a Plan,
    workers: bool,
}

impl Lowering<'_> {
    /// One kernel for one root (or for some of its parts), or for several products with the same left operand.
    fn step(&self, roots: &[&Root], some: &[Part], names: &mut BTreeMap<String, usize>) -> Result<Step> {
        let Lowering { graph, arrays, plan, .. } = *self;
        let (read, members) = match (roots, some) {
            ([root], [_, ..]) => {
                let (read, mut inside) = reach(graph, concat::operands(graph, root.value, some), arrays);
                inside.insert(root.value);
                (read, inside.into_iter().collect())
            }
            _ => {
                let read = roots.iter().flat_map(|root| leaves(graph, root, arrays)).collect();
                (read, roots.iter().flat_map(|r| &r.members).copied().collect::<Vec<_>>())
            }
        };
        let name = kernel_name(graph, roots, &members, names);
        // The argument that the result is written into, which is not read.
        let replaced = match roots {
            [root] => graph
                .def(root.value)
                .and_then(|(n, _)| n.values().next())
                .filter(|x| arrays.get(x).is_some_and(|id| arrays.get(&root.value) == Some(id))),
            _ => None,
        };
        let read: BTreeSet<ValueId> = read.into_iter().filter(|v| replaced != Some(*v)).collect();
        let mut e = NestBuilder::new(graph, &name);
        e.replaced = replaced;
        e.panels = self.panels.clone();
        let mut args: Vec<StepArg> = graph.symbols.keys().map(StepArg::Symbol).collect();
        let (mut reads, mut writes, mut outs) = (vec![], vec![], vec![]);
        let mut bytes = Ix::Const(0);
        for v in read {
            e.array(v, &graph.values[v].name);
            let id = arrays[&v];
            args.push(StepArg::Array(id));
            reads.push(id);
            let elem = plan.arrays[id].elem.dtype.bytes() as i64;
            bytes = Ix::add(bytes, Ix::mul(elements_read(graph, v, &members), Ix::Const(elem)));
        }
        for root in roots {
            let Some((node, _)) = graph.def(root.value) else { return Err(Refusal::new("an input has no kernel")) };
            for v in &node.results {
                let info = &graph.values[*v];
                outs.push(e.param(&info.name, Ty::Ptr(info.elem.dtype)));
                let id = arrays[v];
                args.push(StepArg::Array(id));
                writes.push(id);
            }
        }
        let kernel = match (roots, some) {
            ([root], []) => self.one(e, root, &outs)?,
            ([root], _) => match outs[..] {
                [out] => concat::write(e, root.value, out, some)?,
                _ => return Err(Refusal::new("a map has one result")),
            },
            _ => self.several(e, roots, &outs)?,
        };
        let facts = graph.facts();
        let size = |id: &ArrayId| {
            let a = &plan.arrays[*id];
            Ix::mul(graph.numel(&a.shape), Ix::Const(a.elem.dtype.bytes() as i64))
        };
        let written = match (roots, some) {
            ([root], []) if replaced.is_some() => {
                let updates = graph.def(root.value).and_then(|(n, _)| n.values().last()).unwrap_or(root.value);
                let info = &graph.values[updates];
                Ix::mul(graph.numel(&info.shape), Ix::Const(info.elem.dtype.bytes() as i64))
            }
            ([root], [_, ..]) => {
                let info = &graph.values[root.value];
                let elements = some.iter().map(|p| graph.numel(&p.shape(&info.shape))).fold(Ix::Const(0), Ix::add);
                Ix::mul(elements, Ix::Const(info.elem.dtype.bytes() as i64))
            }
            _ => writes.iter().map(size).fold(Ix::Const(0), Ix::add),
        };
        let bytes = Ix::add(bytes, written);
        let mut flops = Ix::Const(0);
        for root in roots {
            let inner = root.stream.as_ref().and_then(|s| s.inner.as_ref()).map(|(p, _)| p);
            for p in root.products.iter().chain(inner) {
                let all: Vec<usize> = [&p.batch[..], &p.m, &p.n, &p.k].concat();
                flops = Ix::add(flops, Ix::mul(p.extent(graph, &all), Ix::Const(2)));
            }
        }
        let mut origins: Vec<OriginId> = members.iter().filter_map(|v| graph.def(*v)).map(|(n, _)| n.origin).collect();
        origins.sort();
        origins.dedup();
        let (flops, bytes) = (simplify(&flops, &facts), simplify(&bytes, &facts));
        Ok(Step { kernel, args, reads, writes, origins, flops, bytes, within: None })
    }

    fn one(&self, mut e: NestBuilder<'_>, root: &Root, outs: &[ValId]) -> Result<Kernel> {
        let graph = self.graph;
        let Some((node, _)) = graph.def(root.value) else { return Err(Refusal::new("an input has no kernel")) };
        e.keep = root.keep.clone();
        let Some(&out) = outs.first() else { return Err(Refusal::new("a kernel without a result")) };
        // Two elements share a byte, which two blocks must not write.
        let halves = graph.values[root.value].elem.dtype.bits() == 4;
        if !root.products.is_empty() && halves {
            return Err(Refusal::new("a product's blocks do not write 4-bit elements"));
        }
        if !root.products.is_empty() {
            match &root.stream {
                Some(s) => e.made_for(s.outer.dot, |e| attention::write(e, root.value, out, s, &root.places))?,
                None => product::write(&mut e, root.value, out, &root.products, &root.places)?,
            }
            return Ok(Kernel { open: true, ..e.finish() });
        }
        if matches!(node.op, Op::Scan { .. } | Op::Sort { .. } | Op::Scatter { .. }) {
            e.made_for(root.value, |e| scan_sort_scatter::write(e, node, outs, self.workers))?;
        } else {
            e.made_for(root.value, |e| rows::write(e, root, out))?;
        }
        let facts = e.facts.clone();
        let mut kernel = e.finish();
        rows::collapse(&mut kernel.body, &facts, self.workers);
        kernel.open = true;
        Ok(kernel)
    }

    /// Products side by side: each block will belong to one of them.
    fn several(&self, mut e: NestBuilder<'_>, roots: &[&Root], outs: &[ValId]) -> Result<Kernel> {
        for (root, out) in roots.iter().zip(outs) {
            if self.graph.values[root.value].elem.dtype.bits() == 4 {
                return Err(Refusal::new("a product's blocks do not write 4-bit elements"));
            }
            product::write(&mut e, root.value, *out, &root.products, &root.places)?;
        }
        Ok(Kernel { open: true, ..e.finish() })
    }
}

/// How many elements of a value the members of a kernel read, at most: where it is gathered or mapped alone, no more than the
/// results have.
fn elements_read(graph: &Graph, v: ValueId, members: &[ValueId]) -> Ix {
    let all = graph.numel(&graph.values[v].shape);
    let mut some = Ix::Const(0);
    for (member, node) in members.iter().filter_map(|m| Some((*m, graph.def(*m)?.0))) {
        let is = |a: &Arg| matches!(a, Arg::Value(value) if *value == v);
        let used = node.args.iter().skip(usize::from(matches!(node.op, Op::Gather(_)))).any(is);
        let first = node.args.first().is_some_and(is);
        some = match &node.op {
            Op::Gather(_) if first && !used => Ix::add(some, graph.numel(&graph.values[member].shape)),
            Op::IndexMap(_) if used => Ix::add(some, graph.numel(&graph.values[member].shape)),
            _ if used || first => return all,
            _ => some,
        };
    }
    match some {
        // A leaf that no member names is read by what stands around them.
        Ix::Const(0) => all,
        some => Ix::min(all, some),
    }
}

/// Operations that only rearrange.
const LAYOUT: &[&str] = &[
    "view",
    "reshape",
    "transpose",
    "permute",
    "expand",
    "unsqueeze",
    "squeeze",
    "t",
    "slice",
    "to_copy",
    "split",
    "select",
];
/// Operations too small to name a kernel after, where it has others.
const SMALL: &[&str] =
    &["neg", "cat", "concat", "mul", "sub", "div", "to", "cast", "where", "pow", "gather", "identity"];

/// `aten._softmax` is `softmax`, `onnx.LayerNormalization` is `layer_normalization`.
fn word_of(op: &str) -> String {
    let op = op.rsplit('.').next().unwrap_or_default();
    let mut word = String::new();
    for c in op.trim_matches('_').chars() {
        if c.is_ascii_uppercase() && word.ends_with(|p: char| p.is_ascii_lowercase()) {
            word.push('_');
        }
        word.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    match &*word {
        "scaled_dot_product_attention" | "scaled_dot_product_flash_attention_for_cpu" => "attention".into(),
        _ => word,
    }
}

/// `k_linear_silu`: what a person would call the kernel, after the operations it computes.
fn kernel_name(graph: &Graph, roots: &[&Root], members: &[ValueId], names: &mut BTreeMap<String, usize>) -> String {
    let mut parts: Vec<String> = vec![];
    let mut seen: BTreeSet<OriginId> = BTreeSet::new();
    let Some(root) = roots.first() else { return "k".into() };
    for v in members {
        let Some((node, _)) = graph.def(*v) else { continue };
        if matches!(node.op, Op::Constant(_) | Op::Index(_)) || !seen.insert(node.origin) {
            continue;
        }
        let Some(origin) = graph.origins.get(node.origin) else { continue };
        let word = word_of(&origin.op);
        if !word.is_empty() && !LAYOUT.contains(&&*word) && parts.last() != Some(&word) {
            parts.push(word);
        }
    }
    // Small arithmetic does not name a kernel that does more.
    if parts.iter().any(|p| !SMALL.contains(&&**p)) {
        parts.retain(|p| !SMALL.contains(&&**p));
        parts.dedup();
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
