//! Decompositions: rules that replace an operation of a model's own set by primitives (or by simpler operations).
//!
//! A rule is a function over types and attributes. It serves three purposes: it lowers Torch IR to Tensor IR, it infers
//! the types of a source operation when a front end appends one, and it says why operands do not fit. One file each
//! subject, whose table `rules!` (`rules.rs`) has a row for each meaning; the functions are expressions over tensors
//! (`expr.rs`). [`all`] are those that `girih rules` prints.

#[macro_use]
mod rules;

mod activations;
mod arithmetic;
mod bits;
mod call;
mod conv;
mod creation;
mod einsum;
mod expr;
mod indexing;
mod linalg;
mod losses;
mod norm;
pub mod onnx;
mod polynomials;
mod pool;
mod products;
mod reductions;
mod recurrent;
mod resize;
mod scans;
mod search;
mod slices;
mod softmax;
mod special;
mod taps;
mod torch_attention;
mod torch_backward;
mod torch_conv;
mod torch_pool;
mod torch_resize;
mod torch_rnn;
mod types;
mod unary;
mod views;
mod window;

pub use call::Call;
use call::old;

use super::assume::Asked;
use super::build::{Builder, Refusal, Result};
use super::copy::Copying;
use super::ir::{Arg, Attrs, Graph, Node, Op, Origin, OriginId, ReduceOp, Repeat};
use crate::num::ScalarOp;

/// One rule.
pub struct Decomposition {
    /// `rms_norm`; the trace prints `o:rms_norm`.
    pub name: &'static str,
    /// The source operations it replaces: `aten.rms_norm`, `onnx.RMSNormalization`.
    pub handles: &'static [&'static str],
    /// Markdown: what it does, before `-->` after, when it refuses.
    pub doc: &'static str,
    /// The function for each of them.
    pub rows: &'static [Row],
}

/// Handles, and the function that appends what their operation means and gives its results.
pub struct Row {
    pub handles: &'static [&'static str],
    pub run: fn(&Call<'_>) -> Result<Vec<Arg>>,
}

/// Decompositions for the functions of [expressions](crate::source::expr), which models have too.
const OF_EXPRESSIONS: &[&[Decomposition]] = &[
    activations::RULES,
    arithmetic::RULES,
    slices::RULES,
    products::RULES,
    reductions::RULES,
    softmax::RULES,
    unary::RULES,
    views::RULES,
    creation::RULES,
    indexing::RULES,
    scans::RULES,
    torch_attention::RULES,
    torch_conv::RULES,
    torch_pool::RULES,
    torch_resize::RULES,
    losses::RULES,
    einsum::RULES,
    norm::RULES,
];

/// Decompositions for operations that only files of models and graphs of PyTorch have. Without the feature `models` these
/// operations are unknown.
const OF_MODELS: &[&[Decomposition]] = if cfg!(feature = "models") {
    &[
        bits::RULES,
        special::RULES,
        linalg::RULES,
        polynomials::RULES,
        search::RULES,
        torch_backward::RULES,
        torch_rnn::RULES,
        conv::RULES,
        onnx::elementwise::RULES,
        onnx::gather::RULES,
        onnx::slices::RULES,
        onnx::products::RULES,
        onnx::quantize::RULES,
        onnx::reduce::RULES,
        onnx::shape::RULES,
        onnx::types::RULES,
        onnx::attention::RULES,
        onnx::grid::RULES,
        onnx::rnn::RULES,
        onnx::state::RULES,
        onnx::trees::RULES,
        onnx::ml::RULES,
        onnx::svm::RULES,
        onnx::signal::RULES,
        onnx::refused::RULES,
        onnx::chosen::RULES,
        onnx::quantized_products::RULES,
        onnx::image::RULES,
        onnx::deform::RULES,
        onnx::contrib::RULES,
        onnx::contrib_quantized::RULES,
        onnx::loss::RULES,
        onnx::training::RULES,
        onnx::ngrams::RULES,
        pool::RULES,
        resize::RULES,
    ]
} else {
    &[]
};

/// Every decomposition.
pub fn all() -> impl Iterator<Item = &'static Decomposition> {
    of_expressions().chain(OF_MODELS.iter().flat_map(|list| list.iter()))
}

/// The decompositions that do not need the feature `models`.
pub fn of_expressions() -> impl Iterator<Item = &'static Decomposition> {
    OF_EXPRESSIONS.iter().flat_map(|list| list.iter())
}

/// The rule for a source operation.
pub fn rule(name: &str) -> Option<&'static Decomposition> {
    all().find(|r| r.handles.contains(&name))
}

impl Decomposition {
    /// Appends what an operation that it handles means, and gives its results.
    pub fn run(&self, b: &mut Builder<'_>, name: &str, args: &[Arg], attrs: &Attrs) -> Result<Vec<Arg>> {
        match self.rows.iter().find(|row| row.handles.contains(&name)) {
            Some(row) => call::run(b, row.run, name, args, attrs),
            None => Err(Refusal::new(format!("operation {name} is not supported"))),
        }
    }
}

/// An axis counted from the end when negative.
pub fn normal_axis(axis: i64, rank: usize) -> Result<usize> {
    let at = if axis < 0 { axis + rank as i64 } else { axis };
    if (0..rank as i64).contains(&at) {
        Ok(at as usize)
    } else {
        Err(Refusal::new(format!("axis {axis} is out of range for a tensor of rank {rank}")))
    }
}

/// Checks that tensors can have the shapes of the values from `first` on, those that a rule made on the way included.
fn fits(graph: &Graph, first: usize) -> Result<()> {
    match graph.values.values().skip(first).find_map(|v| graph.unfit(v.elem, &v.shape)) {
        Some(why) => Err(Refusal::new(why)),
        None => Ok(()),
    }
}

/// Appends a source operation to Torch IR. Its results get the types that its decomposition gives. Its questions about the
/// symbols go to `asked`.
pub fn append(
    graph: &mut Graph,
    origin: OriginId,
    name: &str,
    args: Vec<Arg>,
    attrs: Attrs,
    asked: &Asked,
) -> Result<Vec<Arg>> {
    let Some(rule) = rule(name) else {
        return Err(Refusal::new(format!("operation {name} is not supported")));
    };
    let (values, nodes, constants) = (graph.values.len(), graph.nodes.len(), graph.constants.len());
    let listing = graph.listing.clone();
    let mut b = Builder::new(graph, origin);
    let outcome = rule.run(&mut b, name, &args, &attrs);
    b.take_asked().into_iter().for_each(|question| asked.add(question));
    let outcome = outcome.and_then(|results| fits(graph, values).map(|()| results));
    let types = outcome.map(|results| {
        let builder = Builder::new(graph, origin);
        let of = |x: &Arg| (builder.elem(*x), builder.shape(*x), builder.ints(*x), builder.quotients(*x));
        results.iter().map(of).collect::<Vec<_>>()
    });
    graph.values.truncate(values);
    graph.nodes.truncate(nodes);
    graph.constants.truncate(constants);
    graph.listing = listing;
    let types = types?;
    let short = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let results = types.iter().map(|(elem, shape, ..)| (short.clone(), *elem, shape.clone())).collect();
    let node = graph.add_node(Op::Source { name: name.into(), attrs }, args, results, origin);
    let results = graph.nodes[node].results.clone();
    for (v, (_, _, ints, quotients)) in results.iter().zip(types) {
        (graph.values[*v].ints, graph.values[*v].quotients) = (ints, quotients);
    }
    Ok(results.into_iter().map(Arg::Value).collect())
}

/// One application of a rule: the node it replaced, and the nodes that replace it (from `first` on in `after`).
pub struct Applied<'a> {
    pub rule: &'static str,
    pub before: &'a Graph,
    pub node: &'a Node,
    pub after: &'a Graph,
    pub first: usize,
}

/// Why an operation cannot be lowered.
#[derive(Clone, Debug)]
pub struct Failure {
    pub refusal: Refusal,
    /// The operation of the model.
    pub origin: Origin,
    /// Its name.
    pub op: String,
}

/// How often rules may use operations that rules replace.
const DEEPEST: usize = 16;

/// Torch IR to Tensor IR: replaces source operations until none is left. `log` is told of each.
pub fn decompose(graph: &Graph, log: &mut dyn FnMut(&Applied<'_>)) -> std::result::Result<Graph, Vec<Failure>> {
    let mut now = sweep(graph, log)?;
    for _ in 0..DEEPEST {
        if !now.has_source() {
            return Ok(now);
        }
        now = sweep(&now, log)?;
    }
    Err(endless(&now).into_iter().collect())
}

/// The failure of an operation that is left because rules make it again and again.
fn endless(graph: &Graph) -> Option<Failure> {
    graph.nodes.values().find_map(|n| match &n.op {
        Op::Source { name, .. } => Some(Failure {
            refusal: Refusal::new(format!("the rule for {name} does not end")),
            origin: graph.origins.get(n.origin).cloned().unwrap_or_default(),
            op: name.clone(),
        }),
        Op::Repeat(r) => endless(&r.body),
        _ => None,
    })
}

/// Replaces each source operation once. All that cannot be replaced are reported together.
fn sweep(graph: &Graph, log: &mut dyn FnMut(&Applied<'_>)) -> std::result::Result<Graph, Vec<Failure>> {
    let mut copy = Copying::new(graph);
    let mut failures = vec![];
    for node in graph.nodes.values() {
        if let Op::Repeat(r) = &node.op {
            match sweep(&r.body, log) {
                Ok(body) => {
                    copy.out.narrow(&body);
                    let args = node.args.iter().map(|a| copy.arg(*a)).collect();
                    copy.node_as(node, Op::Repeat(Box::new(Repeat { body, ..(**r).clone() })), args);
                }
                Err(inner) => {
                    failures.extend(inner);
                    copy.node(node);
                }
            }
            continue;
        }
        let Op::Source { name, attrs } = &node.op else {
            copy.node(node);
            continue;
        };
        let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
        let (first, values) = (copy.out.nodes.len(), copy.out.values.len());
        let outcome = match rule(name) {
            Some(rule) => {
                let results = rule.run(&mut Builder::new(&mut copy.out, node.origin), name, &args, attrs);
                results.and_then(|results| fits(&copy.out, values).map(|()| (rule.name, results)))
            }
            None => Err(Refusal::new(format!("operation {name} is not supported"))),
        };
        match outcome {
            Ok((rule, results)) => {
                for (v, new) in node.results.iter().zip(results) {
                    Builder::new(&mut copy.out, node.origin).name(new, &graph.values[*v].name);
                    copy.bind(*v, new);
                }
                log(&Applied { rule, before: graph, node, after: &copy.out, first });
            }
            Err(refusal) => {
                let origin = graph.origins.get(node.origin).cloned().unwrap_or_default();
                failures.push(Failure { refusal, origin, op: name.clone() });
                // Its readers keep a place to point to, so that the other failures are found too.
                copy.node(node);
            }
        }
    }
    if failures.is_empty() { Ok(copy.finish()) } else { Err(failures) }
}

/// The name of a value that an operation computes.
pub(super) fn short_name(op: ScalarOp) -> &'static str {
    use ScalarOp::*;
    match op {
        AddF { .. } | AddI => "add",
        SubF { .. } | SubI => "sub",
        MulF { .. } | MulI => "mul",
        DivF { .. } | DivI { .. } => "div",
        Fma { .. } => "fma",
        Sqrt { .. } => "sqrt",
        Rsqrt { .. } => "rsqrt",
        MaxF { .. } | MaxI { .. } => "max",
        MinF { .. } | MinI { .. } => "min",
        NegF | NegI => "neg",
        AbsF | AbsI => "abs",
        Exp | Exp2 { .. } => "exp",
        Log | Log2 => "log",
        Tanh => "tanh",
        Sin => "sin",
        Cos => "cos",
        Pow | PowI => "pow",
        CmpF { .. } | CmpI { .. } => "cmp",
        Select => "select",
        FToF { .. } | FToI { .. } | IToF { .. } | ExtI { .. } | TruncI { .. } => "to",
        _ => "v",
    }
}

pub(super) fn reduce_name(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum => "sum",
        ReduceOp::Prod => "prod",
        ReduceOp::Max => "max",
        ReduceOp::Min => "min",
        ReduceOp::And => "all",
        ReduceOp::Or => "any",
        ReduceOp::Xor => "xor",
        ReduceOp::Dot => "dot",
        ReduceOp::ArgMax { .. } => "argmax",
        ReduceOp::ArgMin { .. } => "argmin",
    }
}
