//! 002: maps of maps.

use rustc_hash::FxHashMap;

use super::{def, facts_in, result, site};
use crate::base::rule::{Log, Rule};
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, Graph, MapSource, Node, Op, axis};
use crate::index::{Facts, Ix, simplify};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "compose_maps",
    doc: "A map that reads a map reads what that one reads; a map of index values is index values; a map that changes \
          nothing vanishes; an elementwise operation on a repeated scalar takes the scalar.\n\n\
          `a = map x[i1, i0]`, `b = map a[i0, i1 + 2]` --> `b = map x[i1 + 2, i0]`\n\n\
          Through maps of several sources, up to 8 in all. Refuses coordinates that would grow too long.",
    run,
};

/// The most sources that a composed map has.
const SOURCES: usize = 8;
/// The number of readers of each map with more sources that are composed, on average.
const READERS: usize = 16;
/// The most operations in all coordinates of a source.
const LENGTH: usize = 96;

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    let sources = |node: &Node| if let Op::IndexMap(sources) = &node.op { sources.len() } else { 0 };
    // The sources of wide maps that may be examined: many maps of one wide map would each examine all of its sources.
    let mut left = READERS * graph.nodes.values().map(sources).sum::<usize>();
    for node in graph.nodes.values() {
        changed |= match &node.op {
            Op::IndexMap(sources) => map(&mut copy, graph, node, sources, &mut left, log),
            Op::Elementwise(_) => scalars(&mut copy, graph, node, log),
            _ => {
                copy.node(node);
                false
            }
        };
    }
    changed.then(|| copy.finish())
}

/// Operands that repeat a scalar become the scalar, as long as one tensor is left.
fn scalars(copy: &mut Copying<'_>, graph: &Graph, node: &Node, log: &mut Log) -> bool {
    let mut args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
    let mut tensors = args.iter().filter(|a| matches!(a, Arg::Value(_))).count();
    let mut changed = false;
    for a in &mut args {
        if tensors > 1
            && let Some(scalar) = super::repeated_scalar(&copy.out, *a)
        {
            *a = scalar;
            tensors -= 1;
            changed = true;
        }
    }
    if changed {
        log.applied(site(graph, node));
    }
    copy.node_as(node, node.op.clone(), args);
    changed
}

fn map(
    copy: &mut Copying<'_>,
    graph: &Graph,
    node: &Node,
    sources: &[MapSource],
    left: &mut usize,
    log: &mut Log,
) -> bool {
    let Some(out) = result(node) else {
        copy.node(node);
        return false;
    };
    let shape = &graph.values[out].shape;
    let facts = facts_in(graph, shape);
    let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
    // A single source that reads index values is one expression.
    if let [only] = sources
        && only.when.is_always()
        && let Some(inner) = args.get(only.arg as usize).and_then(|a| def(&copy.out, *a))
        && let Op::Index(ix) = &inner.op
    {
        let ix = simplify(&read_at(ix, &only.coords), &facts);
        log.applied(site(graph, node));
        copy.node_as(node, Op::Index(ix), vec![]);
        return true;
    }
    let mut composed = false;
    let mut list: Vec<(Arg, MapSource)> = vec![];
    for s in sources {
        let Some(&arg) = args.get(s.arg as usize) else { continue };
        let inner = match def(&copy.out, arg) {
            Some(n) => match &n.op {
                Op::IndexMap(inner) if inner.len() <= SOURCES || inner.len() <= *left => {
                    Some((n.args.clone(), inner.clone()))
                }
                _ => None,
            },
            None => None,
        };
        let Some((inner_args, inner)) = inner else {
            list.push((arg, s.clone()));
            continue;
        };
        if inner.len() > SOURCES {
            *left -= inner.len();
        }
        let mut through = vec![];
        for i in &inner {
            let Some(&from) = inner_args.get(i.arg as usize) else { continue };
            let coords: Vec<Ix> = i.coords.iter().map(|c| simplify(&read_at(c, &s.coords), &facts)).collect();
            let own = i.when.replace_leaves(&mut |leaf| match leaf {
                Ix::Axis(a) => s.coords.get(a.0 as usize).cloned(),
                _ => None,
            });
            let when = s.when.and(&own);
            let Some(when) = facts.simplify_mask(&when) else { continue };
            through.push((from, MapSource { arg: 0, coords, when }));
        }
        let long = |s: &MapSource| {
            let conds = s.when.conds.iter().map(|c| c.lhs.size() + c.rhs.size()).sum::<usize>();
            s.coords.iter().map(Ix::size).sum::<usize>() + conds > LENGTH
        };
        if sources.len() + through.len() > SOURCES + 1 && through.len() > 1 {
            log.skipped(site(graph, node), format!("the map would have more than {SOURCES} sources"));
            list.push((arg, s.clone()));
        } else if through.iter().any(|(_, s)| long(s)) {
            log.skipped(site(graph, node), "the coordinates would grow too long");
            list.push((arg, s.clone()));
        } else {
            composed = true;
            list.extend(through);
        }
    }
    // Sources after one that is always read are never read.
    if let Some(at) = list.iter().position(|(_, s)| s.when.is_always()) {
        list.truncate(at + 1);
    }
    if let [(arg, only)] = &list[..]
        && let Arg::Value(v) = arg
        && only.when.is_always()
        && is_identity(&copy.out.values[*v].shape, shape, &only.coords, &facts)
        && copy.out.values[*v].elem == graph.values[out].elem
    {
        log.applied(format!("{}: nothing changes", site(graph, node)));
        copy.bind(out, *arg);
        return true;
    }
    // A tensor that is read where a conjunction fails would need a disjunction of conditions.
    let last_value = list.iter().rposition(|(arg, _)| matches!(arg, Arg::Value(_))).unwrap_or(0);
    if composed && list.iter().take(last_value).any(|(_, s)| s.when.conds.len() > 1) {
        log.skipped(site(graph, node), "a tensor would be read where several conditions do not all hold");
        composed = false;
    }
    if !composed {
        copy.node_as(node, node.op.clone(), args);
        return false;
    }
    log.applied(site(graph, node));
    let (mut new_args, mut new) = (vec![], vec![]);
    let mut places: FxHashMap<Arg, u32> = FxHashMap::default();
    for (arg, mut s) in list {
        s.arg = *places.entry(arg).or_insert_with(|| {
            new_args.push(arg);
            new_args.len() as u32 - 1
        });
        new.push(s);
    }
    copy.node_as(node, Op::IndexMap(new), new_args);
    true
}

/// An expression over the positions of a tensor, where those are `coords`.
fn read_at(ix: &Ix, coords: &[Ix]) -> Ix {
    ix.at_coords(coords)
}

/// Returns true if each element is read at its own position, of a tensor with the same shape.
pub(super) fn is_identity(from: &[Ix], to: &[Ix], coords: &[Ix], facts: &Facts) -> bool {
    let same = |a: &Ix, b: &Ix| a == b || simplify(&Ix::sub(a.clone(), b.clone()), facts).is_const(0);
    from.len() == to.len()
        && coords.len() == to.len()
        && (0..to.len())
            .all(|d| same(&from[d], &to[d]) && (coords[d] == axis(d) || coords[d].is_const(0) && to[d].is_const(1)))
}
