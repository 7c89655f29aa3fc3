//! A compilation as a page shows it: every stage as text, the operations behind each of its lines, and the rewrites of each rule.
//!
//! In: a program or a model ([`model`]), lowered once. Out: [`Explained`], plain data. Lines of different stages that were made for the
//! same operation of the user's have a [`SourceId`] in common, which links them:
//!
//! ```text
//! cuda_tile  12  %z = addf %x, %y                  [340]
//! loop       20  z: f32 = add x, y                 [340]
//! kernel     31  z: f32x16 = addf x, y             [340]
//! c          77  f32x16 z = x + y;                 [340]
//! ```
//!
//! Invariant: links follow from the tables of `base::provenance`, never from the texts.

use std::collections::{BTreeMap, BTreeSet};

pub use crate::base::provenance::SourceId;
use crate::base::{Diagnostic, Location};
use crate::cuda_tile::ir::Module;
use crate::emit::Line;
use crate::emit::cuda::Unit;
use crate::graph::{self, Graph};
use crate::kernel::ir::Kernel as KernelIr;
use crate::kernel::sim::Origin;
use crate::loops::print::Dialect;
use crate::pipeline::{self, Event, Lowered, Observer, Stage};
use crate::tile::schedule::Writer;
use crate::tile::target::{Capability, Target};
use crate::{cuda_tile, kernel, loops};

mod model;

pub use model::model;

pub use crate::pipeline::trace::{Step, Steps};

/// All there is to show of a compilation.
#[derive(Clone, Debug, Default)]
pub struct Explained {
    /// The target of the compilation: `sm_90a`.
    pub target: String,
    /// In the order in which they are made.
    pub stages: Vec<StageText>,
    /// In the order in which they ran.
    pub steps: Vec<Step>,
    /// The drawing of a model's graph.
    pub drawing: Option<Drawing>,
    /// Where the operations of a model stand in the user's files, as far as that is known.
    pub places: Vec<(SourceId, Location)>,
}

impl Explained {
    /// Shows the Python script that a program was traced from as its source, in place of the text of the trace. `is_file` returns true
    /// for a path that leads to this script.
    pub fn add_python(&mut self, module: &Module, text: &str, is_file: impl Fn(&str) -> bool) {
        let ops = module.funcs.iter().flat_map(|f| f.ops.values());
        self.places = ops.filter_map(|op| Some((SourceId(op.span.start), op.loc.place()?.clone()))).collect();
        self.stages.retain(|s| s.name != "source");
        self.add_source(text, is_file);
    }

    /// Puts the text that a model was written in before the stages. `is_file` returns true for a path to its file, and is called once for each path.
    pub fn add_source(&mut self, text: &str, is_file: impl Fn(&str) -> bool) {
        let mut lines: BTreeMap<u32, Vec<SourceId>> = BTreeMap::new();
        let mut known: BTreeMap<&str, bool> = BTreeMap::new();
        let mut is_in_it = |file| *known.entry(file).or_insert_with(|| is_file(file));
        for (source, place) in self.places.iter().filter(|(_, place)| is_in_it(&place.file)) {
            lines.entry(place.line).or_default().push(*source);
        }
        let source =
            StageText { name: "source".into(), text: text.into(), lines: lines.into_iter().collect(), kernels: vec![] };
        self.stages.insert(0, source);
    }
}

/// A stage as text.
#[derive(Clone, Debug, Default)]
pub struct StageText {
    /// As `--ir` takes it; `source` is the user's text.
    pub name: String,
    pub text: String,
    /// The lines that were made for something, from 1 and in order.
    pub lines: Vec<(u32, Vec<SourceId>)>,
    /// The kernels of a model, with the lines on which they begin.
    pub kernels: Vec<(String, u32)>,
}

/// The operations of a model, and the kernels that compute them.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    pub nodes: Vec<Node>,
    pub kernels: Vec<Kernel>,
}

/// An operation of a model.
#[derive(Clone, Debug)]
pub struct Node {
    pub source: SourceId,
    /// `aten.linear`.
    pub op: String,
    /// The model's name for it; may be empty.
    pub name: String,
    /// The type of its first result: `f32[s0, 2048]`.
    pub ty: String,
    /// The nodes whose results it reads, by their numbers.
    pub inputs: Vec<usize>,
}

/// A launch of a model's run.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    pub name: String,
    /// Runs when the model is loaded.
    pub at_load: bool,
    pub sources: Vec<SourceId>,
    /// `onnx.MatMul /layer/q`.
    pub operations: Vec<String>,
    /// The kernel of another launch that runs again, under this name; its lines are linked with these operations too.
    pub same_as: Option<String>,
}

/// Watches a compilation that is to be explained.
pub struct Watch {
    steps: Steps,
    schedule: Writer,
}

impl Watch {
    pub fn new(options: &pipeline::Options) -> Watch {
        Watch { steps: Steps::new(true), schedule: Writer::new(options.context()) }
    }
}

impl Observer for Watch {
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        self.steps.see(event)?;
        self.schedule.see(event)
    }
    fn wants_steps(&self) -> bool {
        true
    }
}

/// A tile program's compilation; `text` is that of the program, or empty.
pub fn program(module: &Module, text: &str, lowered: &Lowered, watch: Watch, target: &Target) -> Explained {
    let mut stages = vec![];
    if !text.is_empty() {
        stages.push(written(module, text));
    }
    stages.push(source_of(module, ""));
    let one = [(lowered, Aliases::default())];
    stages.extend(of_kernels(&one, watch.schedule, target));
    Explained { target: target.name.to_string(), stages, steps: watch.steps.list, ..Explained::default() }
}

/// Kernel IR that somebody wrote: each statement stands for itself.
pub fn kernel_ir(kernel: &KernelIr, target: &Target) -> Explained {
    let (text, starts) = kernel::print::print_numbered(kernel);
    let lines = starts.iter().enumerate().map(|(n, line)| (*line, vec![SourceId(n as u32)])).collect();
    let own = (0..starts.len()).map(|n| vec![SourceId(n as u32)]).collect();
    let kernels = vec![(kernel.name.to_string(), 1)];
    let stage = StageText { name: Stage::Kernel.name().into(), text, lines, kernels };
    let stages = vec![stage, source(&[kernel], &[own], target)];
    Explained { target: target.name.to_string(), stages, ..Explained::default() }
}

/// A kernel by its statements: Kernel IR and CUDA, and before them their source. A line has the numbers of its statements,
/// a line of the user's those of all that were made for its operations.
pub fn by_statements(kernel: &KernelIr, cuda: Option<&Unit>, source: Option<&StageText>) -> Vec<StageText> {
    let made = kernel::provenance::of_statements(kernel);
    let number = |n: usize| SourceId(n as u32);
    let mut stages = vec![];
    if let Some(source) = source {
        let of = |operations: &[SourceId]| -> Vec<SourceId> {
            let for_them = |of: &Vec<SourceId>| of.len() == 1 && of.iter().any(|s| operations.contains(s));
            made.iter().enumerate().filter(|(_, of)| for_them(of)).map(|(n, _)| number(n)).collect()
        };
        let lines = source.lines.iter().map(|(line, operations)| (*line, of(operations)));
        stages.push(StageText { lines: lines.filter(|(_, of)| !of.is_empty()).collect(), ..source.clone() });
    }
    let (text, starts) = kernel::print::print_numbered(kernel);
    let lines = starts.iter().enumerate().map(|(n, line)| (*line, vec![number(n)])).collect();
    stages.push(StageText { name: Stage::Kernel.name().into(), text, lines, kernels: vec![] });
    if let Some(unit) = cuda {
        let lines = unit.lines.iter().map(|l| (l.line, vec![number(l.statement)])).collect();
        stages.push(StageText { name: Stage::Cuda.name().into(), text: unit.text.clone(), lines, kernels: vec![] });
    }
    stages
}

/// An operation of a tile program, as findings of the simulator name it: by its place in the user's files, or by its line in the text.
pub fn origin(module: &Module, text: &str, source: SourceId) -> Option<Origin> {
    let op = module.funcs.iter().flat_map(|f| f.ops.values()).find(|op| op.span.start == source.0)?;
    let named = match op.loc.place() {
        Some(place) => format!("{}:{}", place.file, place.line),
        None => format!("line {} of the program", text.get(..source.0 as usize)?.matches('\n').count() + 1),
    };
    let span = (!text.is_empty()).then_some(op.span);
    Some(Origin { text: named, span, frames: op.loc.frames().into() })
}

/// The source text of a tile program; for bytecode, its printed text.
pub fn source_of(module: &Module, text: &str) -> StageText {
    if !text.is_empty() {
        return written(module, text);
    }
    let (text, starts) = cuda_tile::print::print_numbered(module);
    let lines = starts.into_iter().map(|(source, line)| (line, vec![source])).collect();
    StageText { name: Stage::CudaTile.name().into(), text, lines, kernels: vec![] }
}

/// The text that a tile program was read from.
fn written(module: &Module, text: &str) -> StageText {
    let mut starts: Vec<u32> = vec![0];
    starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at as u32 + 1));
    let mut lines: BTreeMap<u32, Vec<SourceId>> = BTreeMap::new();
    for op in module.funcs.iter().flat_map(|f| f.ops.values()).filter(|op| op.span.start < op.span.end) {
        let line = starts.partition_point(|start| *start <= op.span.start) as u32;
        lines.entry(line).or_default().push(SourceId(op.span.start));
    }
    StageText { name: "source".into(), text: text.into(), lines: lines.into_iter().collect(), kernels: vec![] }
}

/// Operations whose code is that of others: of a layer whose kernels are those of another layer.
#[derive(Clone, Debug, Default)]
pub struct Aliases(BTreeMap<SourceId, BTreeSet<SourceId>>);

impl Aliases {
    /// A kernel differs from the one that is shown only in its origin.
    pub fn add(&mut self, shown: &loops::ir::Kernel, other: &loops::ir::Kernel) {
        for (own, other) in shown.sources.pairs(&other.sources) {
            self.0.entry(own).or_default().insert(other);
        }
    }

    fn all(&self, sources: &[SourceId]) -> Vec<SourceId> {
        let others = sources.iter().filter_map(|s| self.0.get(s)).flatten();
        let all: BTreeSet<SourceId> = sources.iter().chain(others).copied().collect();
        all.into_iter().collect()
    }
}

pub fn of_graph(stage: Stage, graph: &Graph) -> StageText {
    let text = graph::print::print(graph, graph::print::Dialect::of(graph));
    let nodes = graph.nodes.values().enumerate();
    let lines = nodes.map(|(at, n)| (graph::print::line_of_node(graph, at), vec![SourceId(n.origin.0)])).collect();
    StageText { name: stage.name().into(), text, lines, kernels: vec![] }
}

/// A schedule as text; no line of it belongs to an operation.
fn of_schedule(writer: Writer) -> StageText {
    let text = writer.finish();
    let named = |(at, line): (usize, &str)| Some((line.strip_prefix("kernel ")?.to_string(), at as u32 + 1));
    let kernels = text.lines().enumerate().filter_map(named).collect();
    StageText { name: Stage::Schedule.name().into(), text, lines: vec![], kernels }
}

/// The stages that kernels have alike, and their source.
pub fn of_kernels(kernels: &[(&Lowered, Aliases)], schedule: Writer, target: &Target) -> Vec<StageText> {
    let mut stages: Vec<StageText> = [Stage::Loop, Stage::Tile, Stage::Kernel]
        .map(|stage| StageText { name: stage.name().into(), ..StageText::default() })
        .into();
    let mut made = vec![];
    for (lowered, aliases) in kernels {
        let of_kernel = kernel::provenance::of_statements(&lowered.kernel);
        let printed = [
            (loops::print::print_numbered(&lowered.loops, Dialect::Loop), of_loops(&lowered.loops)),
            (loops::print::print_numbered(&lowered.tile, Dialect::Tile), of_loops(&lowered.tile)),
            (kernel::print::print_numbered(&lowered.kernel), of_kernel.clone()),
        ];
        for (stage, ((text, starts), sources)) in stages.iter_mut().zip(printed) {
            let before = lines_of(&stage.text);
            let gap = u32::from(!stage.text.is_empty());
            stage.text.push_str(if gap > 0 { "\n" } else { "" });
            stage.text.push_str(&text);
            stage.kernels.push((lowered.loops.name.clone(), before + gap + 1));
            let linked = starts.iter().zip(sources).filter(|(_, of)| !of.is_empty());
            stage.lines.extend(linked.map(|(line, of)| (before + gap + line, aliases.all(&of))));
        }
        made.push(of_kernel.iter().map(|of| aliases.all(of)).collect::<Vec<_>>());
    }
    for stage in &mut stages {
        one_row_a_line(&mut stage.lines);
    }
    let all: Vec<&KernelIr> = kernels.iter().map(|(l, _)| &l.kernel).collect();
    stages.push(source(&all, &made, target));
    // It is what makes Tile IR of Loop IR.
    stages.insert(1, of_schedule(schedule));
    stages
}

fn of_loops(kernel: &loops::ir::Kernel) -> Vec<Vec<SourceId>> {
    loops::provenance::of_statements(kernel)
}

/// The source of kernels whose statements were made for these operations; in place of a source that there is none of, why.
fn source(kernels: &[&KernelIr], made: &[Vec<Vec<SourceId>>], target: &Target) -> StageText {
    let threads = target.has(Capability::Threads);
    let name = if threads { Stage::Cuda } else { Stage::C }.name().to_string();
    let unit = match threads {
        true => pipeline::emit_cuda(kernels, target).map(|unit| (unit.text, unit.lines)),
        false => pipeline::emit_c(kernels, target).map(|unit| (unit.text, unit.lines)),
    };
    let (text, lines) = unit.unwrap_or_else(|why| (format!("// {}\n", why.message), vec![]));
    let mut begins: BTreeMap<usize, u32> = BTreeMap::new();
    let mut linked = vec![];
    for Line { line, kernel, statement } in lines {
        begins.entry(kernel).or_insert(line);
        match made.get(kernel).and_then(|m| m.get(statement)) {
            Some(of) if !of.is_empty() => linked.push((line, of.clone())),
            _ => {}
        }
    }
    one_row_a_line(&mut linked);
    let kernels = begins.into_iter().filter_map(|(at, line)| Some((kernels.get(at)?.name.to_string(), line)));
    StageText { name, text, kernels: kernels.collect(), lines: linked }
}

/// Joins the rows of statements that share a line.
fn one_row_a_line(lines: &mut Vec<(u32, Vec<SourceId>)>) {
    lines.sort();
    lines.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1.append(&mut next.1);
            kept.1.sort();
            kept.1.dedup();
        }
        same
    });
}

fn lines_of(text: &str) -> u32 {
    text.bytes().filter(|b| *b == b'\n').count() as u32
}
