//! 001: what constants alone decide is computed now.

use std::collections::HashMap;

use bytes::Bytes;

use super::{repeated_scalar, site};
use crate::base::budget::{Budget, elements};
use crate::base::rule::{Log, Rule};
use crate::graph::build::{Builder, constant_bits};
use crate::graph::copy::Copying;
use crate::graph::eval::{self, Tensor};
use crate::graph::ir::{Arg, Graph, Node, Op, Output, Role, ValueId};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "fold_constants",
    doc: "Small operations on constants alone are computed by the evaluator, and a constant whose elements are all the \
          same repeats that scalar.\n\n\
          `c: f32[2] = constant {1, 4}`, `d = sqrt c` --> `d: f32[2] = constant {1, 2}`; \
          `c: f32[2] = constant {3, 3}` --> `c: f32[2] = map 3`\n\n\
          Refused where an operand or a result has more than 65536 elements, where a map or a gather makes more elements \
          than it reads, where the evaluator has no result (an index outside its dimension), and, after a million \
          elements, until the next round.",
    run,
};

/// The most elements of an operand and of a result.
const ELEMENTS: u64 = 64 << 10;
/// The most elements that one run of the rule reads and makes.
const TOTAL: u64 = 1 << 20;

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut budget = TOTAL;
    // Looked up, never walked: the elements of constants of the new graph.
    let mut known: HashMap<ValueId, Tensor> = HashMap::new();
    let mut changed = false;
    for node in graph.nodes.values() {
        if let Op::Constant(_) = node.op {
            let tensor = constant(graph, node).filter(|t| t.len() as u64 <= budget);
            budget -= tensor.as_ref().map_or(0, |t| t.len() as u64);
            if let (Some(tensor), &[old]) = (tensor, &node.results[..]) {
                if let Some(scalar) = uniform(&tensor) {
                    repeat(&mut copy, graph, node, old, scalar);
                    log.applied(site(graph, node));
                    changed = true;
                    continue;
                }
                copy.node(node);
                if let Arg::Value(new) = copy.arg(old.into()) {
                    known.insert(new, tensor);
                }
                continue;
            }
            copy.node(node);
            continue;
        }
        match fold(&copy, graph, node, &known, &mut budget) {
            Ok(results) => {
                for (&old, tensor) in node.results.iter().zip(results) {
                    match uniform(&tensor) {
                        Some(scalar) => repeat(&mut copy, graph, node, old, scalar),
                        None => {
                            if let Some(new) = append(&mut copy, graph, node, old, &tensor) {
                                known.insert(new, tensor);
                            }
                        }
                    }
                }
                log.applied(site(graph, node));
                changed = true;
            }
            Err(why) => {
                if let Some(why) = why {
                    log.skipped(site(graph, node), why);
                }
                copy.node(node);
            }
        }
    }
    changed.then(|| copy.finish())
}

/// The elements of a constant that is small and in the model.
fn constant(graph: &Graph, node: &Node) -> Option<Tensor> {
    let Op::Constant(id) = node.op else { return None };
    let c = graph.constants.get(id)?;
    let count = elements(&c.shape)?;
    if count > ELEMENTS {
        return None;
    }
    Tensor::from_bits(c.elem, &c.shape, constant_bits(c)?)
}

/// The scalar that all elements equal, if there is one.
fn uniform(t: &Tensor) -> Option<Arg> {
    let first = (!t.is_empty()).then(|| t.bits(0))?;
    (1..t.len()).all(|i| t.bits(i) == first).then_some(Arg::Scalar { elem: t.elem, bits: first })
}

/// The old value as a repeated scalar, with its name.
fn repeat(copy: &mut Copying<'_>, graph: &Graph, node: &Node, old: ValueId, scalar: Arg) {
    let Some(value) = graph.values.get(old) else { return };
    let Arg::Scalar { elem, .. } = scalar else { return };
    let new = Builder::new(&mut copy.out, node.origin).full(scalar, elem, value.shape.clone());
    if let Arg::Value(v) = new {
        let made = &mut copy.out.values[v];
        made.name = value.name.clone();
        made.ints = value.ints.clone();
    }
    copy.bind(old, new);
}

/// The old value as a constant, with its name.
fn append(copy: &mut Copying<'_>, graph: &Graph, node: &Node, old: ValueId, tensor: &Tensor) -> Option<ValueId> {
    let value = graph.values.get(old)?;
    let bytes = Bytes::from(tensor.to_bytes());
    let new = Builder::new(&mut copy.out, node.origin).constant(&value.name, value.elem, &tensor.shape, bytes);
    copy.bind(old, new);
    let Arg::Value(v) = new else { return None };
    copy.out.values[v].ints = value.ints.clone();
    Some(v)
}

/// The results of a node whose operands are constants; or the reason why there are none, if it is worth reporting.
fn fold(
    copy: &Copying<'_>,
    graph: &Graph,
    node: &Node,
    known: &HashMap<ValueId, Tensor>,
    budget: &mut u64,
) -> Result<Vec<Tensor>, Option<String>> {
    let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
    let given = |a: &Arg| matches!(a, Arg::Value(v) if known.contains_key(v));
    let plain = |a: &Arg| !matches!(a, Arg::Value(_)) || given(a) || repeated_scalar(&copy.out, *a).is_some();
    if matches!(node.op, Op::Source { .. } | Op::Repeat(_)) || !args.iter().any(given) || !args.iter().all(plain) {
        return Err(None);
    }
    let extents = |shape: &[crate::index::Ix]| -> Option<Vec<u64>> {
        shape.iter().map(|d| d.as_const().and_then(|d| u64::try_from(d).ok())).collect()
    };
    let count = |shape: &[u64]| elements(shape).unwrap_or(u64::MAX);
    // A graph of this node alone. Repeated scalars are inputs too: the evaluator wants their shapes.
    let mut alone = Graph::default();
    let origin = alone.add_origin("", "", None);
    let (mut inputs, mut operands, mut reads) = (vec![], vec![], 0u64);
    for arg in &args {
        let &Arg::Value(v) = arg else {
            operands.push(*arg);
            continue;
        };
        let Some(value) = copy.out.values.get(v) else { return Err(None) };
        let Some(shape) = extents(&value.shape) else { return Err(None) };
        if count(&shape) > ELEMENTS {
            return Err(Some(format!("`{}` has more than {ELEMENTS} elements", value.name)));
        }
        let tensor = match (known.get(&v), repeated_scalar(&copy.out, *arg)) {
            (Some(t), _) => t.clone(),
            (None, Some(Arg::Scalar { bits, .. })) => {
                let all = vec![bits; count(&shape) as usize];
                Tensor::from_bits(value.elem, &shape, all).ok_or(None)?
            }
            _ => return Err(None),
        };
        reads += tensor.len() as u64;
        operands.push(alone.add_input("x", value.elem, value.shape.clone(), Role::Argument).into());
        inputs.push(tensor);
    }
    let mut makes = 0u64;
    let mut results = vec![];
    for v in &node.results {
        let Some(value) = graph.values.get(*v) else { return Err(None) };
        let Some(shape) = extents(&value.shape) else { return Err(None) };
        makes = makes.saturating_add(count(&shape));
        if count(&shape) > ELEMENTS {
            return Err(Some(format!("the result has more than {ELEMENTS} elements")));
        }
        results.push((value.name.clone(), value.elem, value.shape.clone()));
    }
    if matches!(node.op, Op::IndexMap(_) | Op::Gather(_)) && makes > reads {
        return Err(Some("the result would take more memory than the operands".into()));
    }
    let work = reads.saturating_add(makes);
    if work > *budget {
        return Err(Some("enough was computed in this round".into()));
    }
    *budget -= work;
    let id = alone.add_node(node.op.clone(), operands, results, origin);
    let values = alone.nodes.get(id).map(|n| n.results.clone()).unwrap_or_default();
    alone.outputs = values.into_iter().map(|value| Output { name: "y".into(), value }).collect();
    let options = eval::Options { budget: Budget::of_memory(64 << 20), ..eval::Options::default() };
    eval::evaluate(&alone, &inputs, &eval::no_files, &options).map_err(|e| Some(e.to_string()))
}
