//! Ensembles of decision trees: every row walks down all trees at once, one gather for each level.

use std::collections::BTreeMap;

use super::ml::{as_float, labels_of, line, numbers, post_transform, rows, tensor_elem};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::expr::{Tensor, along};
use crate::graph::ir::{Coord, ReduceOp, axis};
use crate::index::Ix;
use crate::num::op::Predicate;

rules! {
    ml_trees "The nodes of all trees are in tables; a row keeps one node of each tree.\n\n\
         `y = trees(x)` --> for each level `at = select(gather x[feature[at]] <= split[at], yes[at], no[at])`, then \
         `y = reduce sum weight[at] over trees`\n\n\
         Refuses trees deeper than 64, and labels that are strings." {
        "onnx.TreeEnsemble" => |c| {
            let how = ["AVERAGE", "SUM", "MIN", "MAX"].get(c.int("aggregate_function", 1)? as usize);
            let transforms = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"];
            let transform = transforms.get(c.int("post_transform", 0)? as usize);
            let (how, transform) = (how.copied().unwrap_or("?"), transform.copied().unwrap_or("?"));
            Ok::<_, Refusal>(regressor(c, new_forest(c)?, how, transform)?.to(as_float(c.x(0)).elem()))
        },
        "onnx.TreeEnsembleRegressor" => |c| {
            let (how, transform) = (c.text("aggregate_function")?.unwrap_or("SUM"), c.text("post_transform")?.unwrap_or("NONE"));
            Ok::<_, Refusal>(regressor(c, old_forest(c, "target", "target_ids")?, how, transform)?.to(Elem::F32))
        },
        "onnx.TreeEnsembleClassifier" => classifier,
    }
}

const DEEPEST: usize = 64;
const MOST_NODES: usize = 1 << 20;

/// How a node compares.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Le,
    Lt,
    Ge,
    Gt,
    Eq,
    Ne,
}

impl Mode {
    fn predicate(self) -> Predicate {
        match self {
            Mode::Le => Predicate::LessThanOrEqual,
            Mode::Lt => Predicate::LessThan,
            Mode::Ge => Predicate::GreaterThanOrEqual,
            Mode::Gt => Predicate::GreaterThan,
            Mode::Eq => Predicate::Equal,
            Mode::Ne => Predicate::NotEqual,
        }
    }
}

#[derive(Clone, Copy)]
struct Node {
    mode: Mode,
    feature: i64,
    split: f64,
    /// A leaf leads to itself.
    yes: usize,
    no: usize,
    nan_is_yes: bool,
}

impl Node {
    fn leaf(at: usize) -> Node {
        Node { mode: Mode::Le, feature: 0, split: 0.0, yes: at, no: at, nan_is_yes: false }
    }
}

/// The tables of an ensemble.
#[derive(Default)]
struct Forest {
    nodes: Vec<Node>,
    roots: Vec<usize>,
    /// (node, target, weight)
    weights: Vec<(usize, usize, f64)>,
    targets: usize,
    /// NaN differs from every split, as a comparison says; otherwise it goes where its node says.
    nan_differs: bool,
}

fn bad(why: impl Into<String>) -> Refusal {
    Refusal::new(format!("a tree ensemble {}", why.into()))
}

fn words(call: &Call<'_>, name: &str) -> Result<Vec<String>> {
    Ok(call.texts(name)?.unwrap_or_default().into_iter().map(String::from).collect())
}

fn whole(call: &Call<'_>, name: &str) -> Result<Vec<i64>> {
    Ok(numbers(call, name)?.unwrap_or_default().into_iter().map(|x| x as i64).collect())
}

/// The numbers of an attribute, or of the one that holds them as a tensor.
fn either(call: &Call<'_>, list: &str, tensor: &str) -> Result<Option<Vec<f64>>> {
    match numbers(call, list)? {
        None => numbers(call, tensor),
        found => Ok(found),
    }
}

/// The attributes of the older two operators.
fn old_forest(call: &Call<'_>, prefix: &str, ids: &str) -> Result<Forest> {
    let (trees, own) = (whole(call, "nodes_treeids")?, whole(call, "nodes_nodeids")?);
    let (yes, no) = (whole(call, "nodes_truenodeids")?, whole(call, "nodes_falsenodeids")?);
    let features = whole(call, "nodes_featureids")?;
    let splits = either(call, "nodes_values", "nodes_values_as_tensor")?.unwrap_or_default();
    let modes = words(call, "nodes_modes")?;
    let missing = whole(call, "nodes_missing_value_tracks_true")?;
    let n = trees.len();
    if n == 0 || n > MOST_NODES || [own.len(), yes.len(), no.len(), features.len(), splits.len(), modes.len()] != [n; 6]
    {
        return Err(bad("has tables of different lengths, or too long"));
    }
    let place: BTreeMap<(i64, i64), usize> =
        trees.iter().zip(&own).enumerate().map(|(i, (t, o))| ((*t, *o), i)).collect();
    let mut forest = Forest::default();
    let mut seen = BTreeMap::new();
    for i in 0..n {
        seen.entry(trees[i]).or_insert(i);
        let mode = match modes[i].as_str() {
            "BRANCH_LEQ" => Mode::Le,
            "BRANCH_LT" => Mode::Lt,
            "BRANCH_GTE" => Mode::Ge,
            "BRANCH_GT" => Mode::Gt,
            "BRANCH_EQ" => Mode::Eq,
            "BRANCH_NEQ" => Mode::Ne,
            "LEAF" => {
                forest.nodes.push(Node::leaf(i));
                continue;
            }
            other => return Err(bad(format!("has a node of mode {other:?}"))),
        };
        let child = |id: i64| {
            place.get(&(trees[i], id)).copied().ok_or_else(|| bad(format!("leads to node {id}, which does not exist")))
        };
        let nan_is_yes = missing.get(i).is_some_and(|m| *m != 0);
        forest.nodes.push(Node {
            mode,
            feature: features[i],
            split: splits[i],
            yes: child(yes[i])?,
            no: child(no[i])?,
            nan_is_yes,
        });
    }
    forest.roots = seen.into_values().collect();
    let named = |part: &str| format!("{prefix}_{part}");
    let (in_tree, at) = (whole(call, &named("treeids"))?, whole(call, &named("nodeids"))?);
    let target = whole(call, ids)?;
    let weight = either(call, &named("weights"), &named("weights_as_tensor"))?.unwrap_or_default();
    if [in_tree.len(), at.len(), target.len()] != [weight.len(); 3] {
        return Err(bad("has tables of different lengths"));
    }
    for i in 0..weight.len() {
        let node = place
            .get(&(in_tree[i], at[i]))
            .copied()
            .ok_or_else(|| bad("has a weight at a node that does not exist"))?;
        let target = usize::try_from(target[i]).map_err(|_| bad("has a negative target"))?;
        forest.weights.push((node, target, weight[i]));
    }
    Ok(forest)
}

/// The attributes of `TreeEnsemble` (version 5).
fn new_forest(call: &Call<'_>) -> Result<Forest> {
    let features = whole(call, "nodes_featureids")?;
    let (yes, no) = (whole(call, "nodes_truenodeids")?, whole(call, "nodes_falsenodeids")?);
    let (yes_leaf, no_leaf) = (whole(call, "nodes_trueleafs")?, whole(call, "nodes_falseleafs")?);
    let (modes, splits) = (whole(call, "nodes_modes")?, numbers(call, "nodes_splits")?.unwrap_or_default());
    let missing = whole(call, "nodes_missing_value_tracks_true")?;
    let (target, weight) = (whole(call, "leaf_targetids")?, numbers(call, "leaf_weights")?.unwrap_or_default());
    let n = features.len();
    let same = [yes.len(), no.len(), yes_leaf.len(), no_leaf.len(), modes.len(), splits.len()] == [n; 6];
    if n == 0 || n > MOST_NODES || !same || target.len() != weight.len() || target.len() > MOST_NODES {
        return Err(bad("has tables of different lengths, or too long"));
    }
    // Leaves come after the nodes.
    let child = |id: i64, leaf: i64| {
        let limit = if leaf != 0 { target.len() } else { n };
        let id = usize::try_from(id)
            .ok()
            .filter(|i| *i < limit)
            .ok_or_else(|| bad(format!("leads to {id}, which does not exist")))?;
        Ok(if leaf != 0 { n + id } else { id })
    };
    let mut forest = Forest { nan_differs: true, ..Forest::default() };
    let mut extra: Vec<Node> = vec![];
    let mut sets = numbers(call, "membership_values")?.unwrap_or_default().into_iter();
    let first_extra = n + target.len();
    for i in 0..n {
        let (yes, no) = (child(yes[i], yes_leaf[i])?, child(no[i], no_leaf[i])?);
        let nan_is_yes = missing.get(i).is_some_and(|m| *m != 0);
        let node = |mode: Mode| Node { mode, feature: features[i], split: splits[i], yes, no, nan_is_yes };
        let node = match modes[i] {
            0 => node(Mode::Le),
            1 => node(Mode::Lt),
            2 => node(Mode::Ge),
            3 => node(Mode::Gt),
            4 => node(Mode::Eq),
            5 => node(Mode::Ne),
            6 => {
                // A set is a chain of comparisons with its members.
                let members: Vec<f64> = sets.by_ref().take_while(|m| !m.is_nan()).collect();
                let mut next = no;
                for m in members.iter().skip(1).rev() {
                    extra.push(Node { split: *m, no: next, ..node(Mode::Eq) });
                    next = first_extra + extra.len() - 1;
                }
                match members.first() {
                    Some(m) => Node { split: *m, no: next, ..node(Mode::Eq) },
                    None => Node { yes: no, no, ..node(Mode::Eq) },
                }
            }
            other => return Err(bad(format!("has a node of mode {other}"))),
        };
        forest.nodes.push(node);
    }
    for (i, (t, w)) in target.iter().zip(&weight).enumerate() {
        forest.nodes.push(Node::leaf(n + i));
        let t = usize::try_from(*t).map_err(|_| bad("has a negative target"))?;
        forest.weights.push((n + i, t, *w));
    }
    forest.nodes.extend(extra);
    for root in whole(call, "tree_roots")? {
        forest
            .roots
            .push(usize::try_from(root).ok().filter(|r| *r < n).ok_or_else(|| bad("has a root that does not exist"))?);
    }
    Ok(forest)
}

/// The most steps from a root to a leaf.
fn depth(forest: &Forest) -> Result<usize> {
    let mut level = forest.roots.clone();
    for d in 0..=DEEPEST {
        let mut next = vec![];
        for at in level {
            let node = forest.nodes.get(at).ok_or_else(|| bad("leads to a node that does not exist"))?;
            next.extend([node.yes, node.no].into_iter().filter(|c| *c != at));
        }
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            return Ok(d);
        }
        level = next;
    }
    Err(bad(format!("is deeper than {DEEPEST}")))
}

/// `[rows, trees]`: the leaf that each row reaches in each tree.
fn walk<'g>(x: Tensor<'g>, forest: &Forest) -> Result<Tensor<'g>> {
    let (count, cx) = (forest.nodes.len() as u64, x.cx);
    let trees = Ix::Const(forest.roots.len() as i64);
    let shape = vec![x.shape()?[0].clone(), trees];
    let roots: Vec<i64> = forest.roots.iter().map(|r| *r as i64).collect();
    let mut at = cx.ints(Elem::I64, &[roots.len() as u64], &roots).broadcast_to(&shape);
    let table = |elem: Elem, f: &dyn Fn(&Node) -> i64| {
        cx.ints(elem, &[count], &forest.nodes.iter().map(f).collect::<Vec<i64>>())
    };
    let features = table(Elem::I64, &|n| n.feature);
    let (yes, no) = (table(Elem::I64, &|n| n.yes as i64), table(Elem::I64, &|n| n.no as i64));
    let splits: Vec<f64> = forest.nodes.iter().map(|n| n.split).collect();
    let splits = cx.floats(x.elem(), &[count], &splits);
    let mut modes: Vec<Mode> =
        forest.nodes.iter().enumerate().filter(|(i, n)| n.yes != *i).map(|(_, n)| n.mode).collect();
    modes.sort_unstable();
    modes.dedup();
    let kinds = table(Elem::I64, &|n| n.mode as i64);
    let missing = forest.nodes.iter().any(|n| n.nan_is_yes);
    let tracks = table(Elem::BOOL, &|n| n.nan_is_yes.into());
    let read = |table: Tensor<'g>, at: Tensor<'g>| table.gather(&[at], vec![Coord::Arg(1)], shape.clone());
    for _ in 0..depth(forest)? {
        let feature = read(features, at);
        let value = x.gather(&[feature], along(1, 2), shape.clone());
        let split = read(splits, at);
        let mut hit = None;
        for mode in &modes {
            let holds = value.compare(mode.predicate(), split);
            hit = Some(match hit {
                None => holds,
                Some(other) => read(kinds, at).equals(*mode as i64).select(holds, other),
            });
        }
        let mut hit = hit.ok_or_else(|| bad("has no comparison"))?;
        if missing || modes.contains(&Mode::Ne) {
            let nan = value.is_nan();
            let track = read(tracks, at);
            hit = nan.select(if forest.nan_differs { track | hit } else { track }, hit);
        }
        at = hit.select(read(yes, at), read(no, at));
    }
    Ok(at)
}

/// The weights of the leaves, folded over the trees: `[rows, targets]`.
fn fold<'g>(at: Tensor<'g>, forest: &Forest, how: &str, elem: Elem) -> Result<Tensor<'g>> {
    let (op, identity) = match how {
        "SUM" | "AVERAGE" => (ReduceOp::Sum, 0.0),
        "MIN" => (ReduceOp::Min, f64::INFINITY),
        "MAX" => (ReduceOp::Max, f64::NEG_INFINITY),
        other => return Err(bad(format!("has the aggregate_function {other:?}, which ONNX does not define"))),
    };
    let targets = forest.targets;
    if forest.nodes.len().saturating_mul(targets) > 1 << 24 {
        return Err(bad("has too many targets"));
    }
    at.cx.build(|b| b.list((forest.nodes.len() * targets) as u64, 16))?;
    let mut table = vec![identity; forest.nodes.len() * targets];
    for &(node, target, weight) in &forest.weights {
        let slot = table.get_mut(node * targets + target).filter(|_| target < targets);
        let slot = slot.ok_or_else(|| bad(format!("has a weight for target {target} of {targets}")))?;
        *slot = match how {
            "MIN" => slot.min(weight),
            "MAX" => slot.max(weight),
            _ => *slot + weight,
        };
    }
    let table = at.cx.floats(elem, &[forest.nodes.len() as u64, targets as u64], &table);
    let shape = [at.shape()?, vec![Ix::Const(targets as i64)]].concat();
    let votes = table.gather(&[at.unsqueeze(&[2])], vec![Coord::Arg(1), Coord::Ix(axis(2))], shape);
    let y = votes.reduce(op, &[1], false);
    // A target that no tree votes for has the greatest or least number.
    let bound = if elem == Elem::F64 { f64::MAX } else { f64::from(f32::MAX) };
    Ok(match how {
        "AVERAGE" => y / forest.roots.len() as f64,
        "MIN" => y.min(bound),
        "MAX" => y.max(-bound),
        _ => y,
    })
}

/// The element type that weights are summed in, and the leaves of each row.
fn leaves<'g>(c: &Call<'g>, forest: &Forest) -> Result<(Tensor<'g>, Elem)> {
    let (x, features) = rows(c.x(0))?;
    if forest.nodes.iter().any(|n| !(0..features).contains(&n.feature)) {
        return Err(bad(format!("uses a feature that is not one of the {features} given")));
    }
    let at = walk(x, forest)?;
    let mut exact = x.elem() == Elem::F64;
    for name in ["nodes_values_as_tensor", "target_weights_as_tensor", "class_weights_as_tensor", "leaf_weights"] {
        exact |= tensor_elem(c, name)? == Some(Elem::F64);
    }
    Ok((at, if exact { Elem::F64 } else { Elem::F32 }))
}

/// Scores and the base values, where there are some.
fn with_base<'g>(c: &Call<'g>, y: Tensor<'g>) -> Result<Tensor<'g>> {
    let base = either(c, "base_values", "base_values_as_tensor")?;
    Ok(base.map_or(y, |base| y + line(c.cx, y.elem(), &base)))
}

fn regressor<'g>(c: &Call<'g>, mut forest: Forest, how: &str, transform: &str) -> Result<Tensor<'g>> {
    let (at, elem) = leaves(c, &forest)?;
    forest.targets = c.int("n_targets", 1)?.max(1) as usize;
    post_transform(with_base(c, fold(at, &forest, how, elem)?)?, transform)
}

fn classifier<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let mut forest = old_forest(c, "class", "class_ids")?;
    let (at, elem) = leaves(c, &forest)?;
    let labels = numbers(c, "classlabels_int64s")?.ok_or_else(|| bad("has labels that are strings"))?;
    let mut classes: Vec<usize> = forest.weights.iter().map(|w| w.1).collect();
    classes.sort_unstable();
    classes.dedup();
    let transform = c.text("post_transform")?.unwrap_or("NONE");
    // One score for two classes: the other follows from it.
    let scores = if classes.len() == 1 && labels.len() <= 2 {
        forest.targets = 1;
        forest.weights.iter_mut().for_each(|w| w.1 = 0);
        let scores = fold(at, &forest, "SUM", elem)?;
        let base = either(c, "base_values", "base_values_as_tensor")?.and_then(|b| b.last().copied());
        let scores = base.map_or(scores, |base| scores + base);
        let other = if transform == "NONE" { 1.0 - scores } else { -scores };
        c.cx.concat(&[other, scores], 1)
    } else {
        forest.targets = labels.len();
        with_base(c, fold(at, &forest, "SUM", elem)?)?
    };
    let scores = post_transform(scores, transform)?;
    let labels = if labels.len() == 1 { vec![0.0, labels[0]] } else { labels };
    Ok([labels_of(scores, &labels)?, scores.to(Elem::F32)])
}
