//! Weights of matrix products are laid out in panels when the model is loaded.
//!
//! ```text
//! dot(x[m, k], w[n, k])   -->   p[n/32, k, n%32] = w[n, k]   once;   dot(x[m, k], p[n//32, k, n%32])
//! ```
//!
//! A register tile then reads its columns in order, and no block packs them again. Refused for what is not known when the
//! model is loaded, for extents that are not known at compile time, and for weights that differ along a batch.

use std::collections::{BTreeMap, BTreeSet};

use super::fuse::Fusion;
use super::{roles, stream};
use crate::base::rule::Log;
use crate::base::target::Target;
use crate::graph::build::Builder;
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, Graph, MapSource, Op, ReduceOp, ValueId, axis, scalar};
use crate::index::{Cmp, Cond, Ix, Mask};
use crate::tile::blocking::panel_width;

/// The graph with packed weights, and the packed values: each needs an array of its own.
pub(super) fn pack(graph: &Graph, target: &Target, log: &mut Log) -> (Graph, BTreeSet<ValueId>) {
    let fusion = Fusion::new(graph, target);
    let mut copy = Copying::new(graph);
    let mut packed = BTreeSet::new();
    let mut done: BTreeMap<(ValueId, Vec<usize>, Vec<usize>), Arg> = BTreeMap::new();
    for node in graph.nodes.values() {
        let product = match (&node.op, node.results.first()) {
            (Op::Reduce { op: ReduceOp::Dot, .. }, Some(v)) => roles::product(graph, *v).filter(|p| !fusion.is_thin(p)),
            _ => None,
        };
        let Some(p) = product else {
            copy.node(node);
            continue;
        };
        let weight = node.args[1 - p.a];
        let Arg::Value(w) = weight else {
            copy.node(node);
            continue;
        };
        if !fusion.is_from_load(w) {
            copy.node(node);
            continue;
        }
        let name = graph.values[node.results[0]].name.clone();
        let shape = graph.values[w].shape.clone();
        let known = |axes: &[usize]| axes.iter().map(|d| shape[*d].as_const()).product::<Option<i64>>();
        let elem = graph.values[w].elem;
        let width = panel_width(target, graph.values[p.dot].elem.dtype) as i64;
        let refused = match (known(&p.n), known(&p.k)) {
            _ if !fusion.is_layout(w) => Some("it is computed, and stored as it is"),
            (Some(n), Some(k)) if n >= width && k >= 8 => {
                let own: BTreeSet<usize> = p.n.iter().chain(&p.k).copied().collect();
                let others = (0..shape.len()).any(|d| !own.contains(&d) && fusion.depends_on(w, d));
                others.then_some("it differs along a batch")
            }
            (Some(_), Some(_)) => Some("it is smaller than a panel"),
            _ => Some("its extents are not known"),
        };
        if let Some(why) = refused {
            log.skipped(format!("pack the weight of {name}"), why);
            copy.node(node);
            continue;
        }
        log.applied(format!("pack the weight of {name}"));
        let (n, k) = (known(&p.n).unwrap_or(1), known(&p.k).unwrap_or(1));
        let extents = |axes: &[usize]| axes.iter().map(|d| shape[*d].clone()).collect::<Vec<Ix>>();
        let (n_extents, k_extents) = (extents(&p.n), extents(&p.k));
        let key = (w, p.n.clone(), p.k.clone());
        let operand = done.entry(key).or_insert_with(|| {
            let weight_name = graph.values[w].name.clone();
            let column = Ix::add(Ix::mul(axis(0), Ix::Const(width)), axis(2));
            let mut coords = vec![Ix::Const(0); shape.len()];
            for (d, ix) in p.n.iter().zip(roles::split(&column, &n_extents)) {
                coords[*d] = ix;
            }
            for (d, ix) in p.k.iter().zip(roles::split(&axis(1), &k_extents)) {
                coords[*d] = ix;
            }
            // Down to the array: a weight that is broadcast has an extent that is not known when the model is loaded.
            let (base, coords) = stream::through_maps(graph, w, coords, &mut vec![]);
            let from = copy.arg(Arg::Value(base));
            let whole = Mask { conds: vec![Cond::new(column, Cmp::Lt, Ix::Const(n))], vals: vec![] };
            let sources = vec![
                MapSource { arg: 0, coords, when: whole },
                MapSource { arg: 1, coords: vec![], when: Mask::default() },
            ];
            let panels = vec![Ix::Const((n + width - 1) / width), Ix::Const(k), Ix::Const(width)];
            let pad = scalar(elem, 0.0);
            let mut b = Builder::new(&mut copy.out, node.origin);
            let panels = b.map_sources(&format!("{weight_name}_packed"), vec![from, pad], panels, sources);
            if let Arg::Value(v) = panels {
                packed.insert(v);
            }
            let linear = |axes: &[usize]| {
                axes.iter().fold(Ix::Const(0), |at, d| Ix::add(Ix::mul(at, shape[*d].clone()), axis(*d)))
            };
            let (n_at, k_at) = (linear(&p.n), linear(&p.k));
            let coords = vec![Ix::floor_div(n_at.clone(), Ix::Const(width)), k_at, Ix::modulo(n_at, Ix::Const(width))];
            b.map(&weight_name, panels, shape.clone(), coords)
        });
        let mut args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
        args[1 - p.a] = *operand;
        copy.node_as(node, node.op.clone(), args);
    }
    (copy.finish(), packed)
}
