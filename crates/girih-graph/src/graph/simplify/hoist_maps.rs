//! 006: elementwise operations before the maps of their operands.

use super::{def, result, site};
use crate::base::rule::{Log, Rule};
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, Graph, MapSource, Node, Op, axis};
use crate::index::{AxisId, Ix, Mask};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "hoist_maps",
    doc: "Computes an operation that does not depend on an axis once, and repeats the result along the axis; if all operands are \
          read by the same map, computes the operation before the map.\n\n\
          `a [2, 9] = map x[i0]`, `b [2, 9] = map z[i0]`, `y = mul a, b` --> `t [2, 1] = mul ..`, `y [2, 9] = map t[i0, 0]`\n\n\
          `a = map x[i1, i0]`, `b = map z[i1, i0]`, `y = add a, b` --> `t = add x, z`, `y = map t[i1, i0]`\n\n\
          Refuses an operation that would then compute more elements than before.",
    run,
};

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    for node in graph.nodes.values() {
        let done = matches!(node.op, Op::Elementwise(_))
            && (repeat(&mut copy, graph, node).is_some() || same_map(&mut copy, graph, node).is_some());
        if done {
            changed = true;
            log.applied(site(graph, node));
        } else {
            copy.node(node);
        }
    }
    changed.then(|| copy.finish())
}

/// Returns true if an operand's value is the same all along an axis of its shape.
fn constant_along(graph: &Graph, x: Arg, at: AxisId) -> bool {
    let Some(node) = def(graph, x) else { return !matches!(x, Arg::Value(_)) };
    match &node.op {
        Op::Index(ix) => !ix.has_axis(at),
        Op::IndexMap(sources) => sources.iter().all(|s| {
            s.coords.iter().all(|c| !c.has_axis(at))
                && s.when.conds.iter().all(|c| !c.lhs.has_axis(at) && !c.rhs.has_axis(at))
        }),
        _ => false,
    }
}

/// Axes that no operand depends on get the extent 1, and a map repeats the result.
fn repeat(copy: &mut Copying<'_>, graph: &Graph, node: &Node) -> Option<()> {
    let out = result(node)?;
    let value = graph.values.get(out)?.clone();
    let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
    let free: Vec<bool> = value
        .shape
        .iter()
        .enumerate()
        .map(|(d, n)| !n.is_const(1) && args.iter().all(|a| constant_along(&copy.out, *a, AxisId(d as u32))))
        .collect();
    // An axis of no elements reads nothing: its operands' coordinates may not exist.
    let facts = graph.facts();
    let some = |n: &Ix| facts.range(n).lo >= 1;
    if !free.contains(&true) || !value.shape.iter().zip(&free).all(|(n, f)| !*f || some(n)) {
        return None;
    }
    let small: Vec<Ix> =
        value.shape.iter().zip(&free).map(|(n, f)| if *f { Ix::Const(1) } else { n.clone() }).collect();
    let mut operands = vec![];
    for a in args {
        let Arg::Value(v) = a else {
            operands.push(a);
            continue;
        };
        let (op, from, origin, elem, name) = {
            let n = def(&copy.out, a)?;
            let v = copy.out.values.get(v)?;
            (n.op.clone(), n.args.clone(), n.origin, v.elem, v.name.clone())
        };
        operands.push(append(copy, op, from, origin, (name, elem, small.clone())));
    }
    let result = append(copy, node.op.clone(), operands, node.origin, (value.name.clone(), value.elem, small));
    let coords = free.iter().enumerate().map(|(d, f)| if *f { Ix::Const(0) } else { axis(d) }).collect();
    let source = MapSource { arg: 0, coords, when: Mask::default() };
    copy.node_as(node, Op::IndexMap(vec![source]), vec![result]);
    Some(())
}

/// Operands that are one and the same map of tensors of one shape.
fn same_map(copy: &mut Copying<'_>, graph: &Graph, node: &Node) -> Option<()> {
    let out = result(node)?;
    let value = graph.values.get(out)?.clone();
    let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
    let mut common: Option<(Vec<Ix>, Vec<Ix>)> = None;
    let mut inner = vec![];
    let mut mapped: Vec<Arg> = vec![];
    for &a in &args {
        if !matches!(a, Arg::Value(_)) {
            inner.push(a);
            continue;
        }
        let n = def(&copy.out, a)?;
        let Op::IndexMap(sources) = &n.op else { return None };
        let [only] = &sources[..] else { return None };
        let from = *n.args.get(only.arg as usize)?;
        let Arg::Value(v) = from else { return None };
        let shape = copy.out.values.get(v)?.shape.clone();
        if !only.when.is_always() {
            return None;
        }
        match &common {
            None => common = Some((only.coords.clone(), shape)),
            Some((c, s)) if *c == only.coords && *s == shape => {}
            Some(_) => return None,
        }
        if !mapped.contains(&a) {
            mapped.push(a);
        }
        inner.push(from);
    }
    let (coords, shape) = common?;
    // One map fewer, and not more elements.
    let (before, after) = (graph.numel(&value.shape), graph.numel(&shape));
    let fewer = crate::index::Cond::new(after, crate::index::Cmp::Le, before);
    if mapped.len() < 2 || graph.facts().decide(&fewer) != Some(true) {
        return None;
    }
    let result = append(copy, node.op.clone(), inner, node.origin, (value.name.clone(), value.elem, shape));
    let source = MapSource { arg: 0, coords, when: Mask::default() };
    copy.node_as(node, Op::IndexMap(vec![source]), vec![result]);
    Some(())
}

/// A new node with one result.
fn append(
    copy: &mut Copying<'_>,
    op: Op,
    args: Vec<Arg>,
    origin: crate::graph::OriginId,
    result: (String, crate::graph::Elem, Vec<Ix>),
) -> Arg {
    let id = copy.out.add_node(op, args, vec![result], origin);
    copy.out.nodes[id].results.first().map_or(Arg::Absent, |v| Arg::Value(*v))
}
