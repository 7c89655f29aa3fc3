//! Turns images whose channels lie side by side before a convolution reads windows of them, for processors: kernels pack windows of
//! an image with channels first row by row, and of one with channels last element by element.
//!
//! In: Tensor IR. Out: the same graph, where windows are read from a map that has the channels before the rows of the image; fusion
//! gives that map an array. Filters that are parameters are turned likewise, once. Convolutions of one pixel read the image as it lies,
//! and so do those by channel whose result is an output with its channels last.
//!
//! ```text
//! w [1, 8, 14, 14, 4, 3, 3] = map x[0, i2 + i5, i3 + i6, i4]             x: [1, 16, 16, 4]
//!   -->
//! t [1, 4, 16, 16] = map x[0, i2, i3, i1]
//! w [1, 8, 14, 14, 4, 3, 3] = map t[0, i4, i2 + i5, i3 + i6]
//! ```
//!
//! Filters of a transposed convolution lie apart along what is summed, and are read once for each pixel. They are turned into the order in
//! which the product has their axes:
//!
//! ```text
//! f [1, 2, 2, 64, 8, 8, 128] = map w[i6, i3, i1, i2]                     w: [128, 64, 2, 2]
//!   -->
//! t [2, 2, 64, 128] = map w[i3, i2, i0, i1]
//! f [1, 2, 2, 64, 8, 8, 128] = map t[i1, i2, i3, i6]
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::build::Builder;
use super::copy::Copying;
use super::ir::{Arg, Graph, MapSource, Node, Op, ReduceOp, Role, ValueId, axis};
use crate::base::rule::Log;
use crate::index::Ix;

/// The fewest filters that make turning an image worth its time.
const ENOUGH_FILTERS: i64 = 8;

/// Turns the images; `log` gets their names.
pub fn turned(graph: &Graph, log: &mut Log) -> Option<Graph> {
    let (windows, filters) = (windows(graph), filters_apart(graph));
    if windows.is_empty() && filters.is_empty() {
        return None;
    }
    let mut copy = Copying::new(graph);
    // An image is turned once, for windows with the channels before the same axis.
    let mut done: BTreeMap<(ValueId, usize), Arg> = BTreeMap::new();
    for node in graph.nodes.values() {
        if let Some(axes) = node.results.first().and_then(|v| filters.get(v)) {
            log.applied(format!(
                "{}: its filters are put in the order of their product",
                graph.values[node.results[0]].name
            ));
            turn_filters(&mut copy, graph, node, axes);
            continue;
        }
        let found = node.results.first().and_then(|v| windows.get(v));
        let (Some(&before), Op::IndexMap(sources), Some(image)) = (found, &node.op, node.values().next()) else {
            copy.node(node);
            continue;
        };
        let map = *done.entry((image, before)).or_insert_with(|| {
            log.applied(format!("{}: its channels are moved before its rows", graph.values[image].name));
            let from = &graph.values[image];
            let (mut shape, rank) = (from.shape.clone(), from.shape.len());
            let channels = shape.remove(rank - 1);
            shape.insert(before, channels);
            let mut coords: Vec<Ix> = (0..rank).filter(|d| *d != before).map(axis).collect();
            coords.push(axis(before));
            let x = copy.arg(Arg::Value(image));
            Builder::new(&mut copy.out, node.origin).map(&format!("{}_turned", from.name), x, shape, coords)
        });
        let turn = |s: &MapSource| {
            let mut coords = s.coords.clone();
            // Outside of the image, windows are a number, which has no coordinates.
            if let Some(channel) = coords.pop() {
                coords.insert(before, channel);
            }
            MapSource { coords, ..s.clone() }
        };
        let args = node.args.iter().map(|a| if *a == Arg::Value(image) { map } else { *a }).collect();
        copy.node_as(node, Op::IndexMap(sources.iter().map(turn).collect()), args);
    }
    Some(copy.finish())
}

/// Reads filters from a map of their own, whose axes are these of the product, in order.
fn turn_filters(copy: &mut Copying<'_>, graph: &Graph, node: &Node, axes: &[usize]) {
    let (Some((of, source)), Some(result)) = (node.spread(), node.results.first()) else { return copy.node(node) };
    let from = &graph.values[of];
    let shape = axes.iter().map(|d| graph.values[*result].shape[*d].clone()).collect();
    let own = |c: &Ix| match c {
        Ix::Axis(a) => axes.iter().position(|d| *d == a.0 as usize).map_or(c.clone(), axis),
        _ => c.clone(),
    };
    let coords = source.coords.iter().map(own).collect();
    let x = copy.arg(Arg::Value(of));
    let turned = Builder::new(&mut copy.out, node.origin).map(&format!("{}_turned", from.name), x, shape, coords);
    let read = MapSource { arg: 0, coords: axes.iter().map(|d| axis(*d)).collect(), when: source.when.clone() };
    copy.node_as(node, Op::IndexMap(vec![read]), vec![turned]);
}

/// The maps of filters that are operands of products alone and lie apart along what is summed, with the axes of the product that they have,
/// in order.
fn filters_apart(graph: &Graph) -> BTreeMap<ValueId, Vec<usize>> {
    let mut found = BTreeMap::new();
    let mut kept = BTreeSet::new();
    for node in graph.nodes.values() {
        let summed = if let Op::Reduce { op: ReduceOp::Dot, axes } = &node.op { &axes[..] } else { &[] };
        for v in node.values() {
            match graph.def(v).and_then(|(map, _)| apart(graph, map, summed)) {
                Some(axes) => _ = found.insert(v, axes),
                None => _ = kept.insert(v),
            }
        }
    }
    found.retain(|v, _| !kept.contains(v) && graph.outputs.iter().all(|o| o.value != *v));
    found
}

/// For a map of filters, weights whose last axis is not summed over and whose others are not in the order of the product: the axes of the
/// product that they have, in order.
fn apart(graph: &Graph, map: &Node, summed: &[u32]) -> Option<Vec<usize>> {
    let (of, source) = map.spread()?;
    let constant = graph.def(of).is_some_and(|(node, _)| matches!(node.op, Op::Constant(_)));
    let is_weight = constant || graph.inputs.iter().any(|i| i.value == of && i.role == Role::Parameter);
    let axes: Vec<u32> =
        source.coords.iter().filter_map(|c| if let Ix::Axis(a) = c { Some(a.0) } else { None }).collect();
    let mut order = axes.clone();
    order.sort_unstable();
    order.dedup();
    let is_summed = |a: &u32| summed.contains(a);
    // Columns of a matrix, of one or of many, stay where they are: they lie in the order in which the product has them.
    let columns: Vec<u32> = axes.iter().copied().filter(|a| !is_summed(a)).collect();
    let apart = !columns.is_sorted() && axes.iter().any(is_summed) && axes.last().is_some_and(|last| !is_summed(last));
    let fits = is_weight && apart && order.len() == axes.len() && order.last().is_some_and(is_summed);
    fits.then(|| order.into_iter().map(|a| a as usize).collect())
}

/// The maps of windows of images with their channels last, and those of filters with them, with the axis before which channels go.
fn windows(graph: &Graph) -> BTreeMap<ValueId, usize> {
    let mut found = BTreeMap::new();
    let mut users: BTreeMap<ValueId, Vec<&Node>> = BTreeMap::new();
    for node in graph.nodes.values() {
        node.values().for_each(|v| users.entry(v).or_default().push(node));
    }
    for node in graph.nodes.values() {
        let (Op::Reduce { op: ReduceOp::Dot, axes }, Some(&result)) = (&node.op, node.results.first()) else {
            continue;
        };
        let operands: Vec<ValueId> = node.values().collect();
        let [x, y] = operands[..] else { continue };
        for (own, other) in [(x, y), (y, x)] {
            let Some(image) = graph.def(own).and_then(|(map, _)| image(map)) else { continue };
            let Some(before) = image.iter().position(overlaps) else { continue };
            if let Some((Ix::Axis(channel), _)) = image.split_last() {
                let pays = if axes.contains(&channel.0) {
                    filters(graph, own, other, axes).is_none_or(|n| n >= ENOUGH_FILTERS)
                } else {
                    // Filters have channels, but not the columns of an image under windows of one column.
                    depends(graph, other, channel.0 as usize) && !ends_last(graph, &users, result, channel.0 as usize)
                };
                if !pays {
                    continue;
                }
                found.insert(own, before);
            }
            let is_channel = |c: &&Ix| matches!(c, Ix::Axis(a) if axes.contains(&a.0));
            let turned = image.iter().find(is_channel).zip(graph.def(other));
            found.extend(turned.and_then(|(channel, (map, _))| Some((other, filter(graph, map, channel, axes)?))));
        }
    }
    found
}

/// The coordinates of the one tensor that a map reads.
fn image(map: &Node) -> Option<&[Ix]> {
    let Op::IndexMap(sources) = &map.op else { return None };
    let mut of_image = sources.iter().filter(|s| !s.coords.is_empty());
    let (Some(MapSource { coords, .. }), None) = (of_image.next(), of_image.next()) else { return None };
    Some(coords)
}

fn overlaps(coordinate: &Ix) -> bool {
    coordinate.axes().len() > 1
}

/// For a map of filters, parameters whose last axis is the channels: the first axis before it that is summed over too.
fn filter(graph: &Graph, map: &Node, channel: &Ix, summed: &[u32]) -> Option<usize> {
    let (coords, source) = (image(map)?, map.values().next()?);
    let is_parameter = graph.inputs.iter().any(|i| i.value == source && i.role == Role::Parameter);
    let is_summed = |c: &Ix| matches!(c, Ix::Axis(a) if summed.contains(&a.0));
    let (last, others) = coords.split_last()?;
    others.iter().position(is_summed).filter(|_| is_parameter && last == channel)
}

/// True if a value becomes an output, element by element, in which one of its axes is the last.
fn ends_last(graph: &Graph, users: &BTreeMap<ValueId, Vec<&Node>>, mut v: ValueId, mut axis_of: usize) -> bool {
    loop {
        if graph.outputs.iter().any(|o| o.value == v) {
            let shape = &graph.values[v].shape;
            return (0..shape.len()).rfind(|d| !shape[*d].is_const(1)) == Some(axis_of);
        }
        let Some([user]) = users.get(&v).map(|all| &all[..]) else { return false };
        let Some(&result) = user.results.first() else { return false };
        match &user.op {
            Op::Elementwise(_) => {}
            Op::IndexMap(sources) => {
                let [MapSource { coords, .. }] = &sources[..] else { return false };
                let Some(Ix::Axis(to)) = coords.get(axis_of) else { return false };
                axis_of = to.0 as usize;
            }
            _ => return false,
        }
        v = result;
    }
}

/// True if the elements of a value differ along an axis, as far as its map tells.
fn depends(graph: &Graph, v: ValueId, d: usize) -> bool {
    let Ix::Axis(at) = axis(d) else { return false };
    match graph.def(v).map(|(n, _)| &n.op) {
        Some(Op::IndexMap(sources)) => sources.iter().flat_map(|s| &s.coords).any(|c| c.has_axis(at)),
        _ => true,
    }
}

/// The number of results for each window: the extents of the axes that only the other operand has; None where it is not known.
fn filters(graph: &Graph, own: ValueId, other: ValueId, summed: &[u32]) -> Option<i64> {
    let shape = &graph.values[own].shape;
    let of_other = (0..shape.len())
        .filter(|d| !summed.contains(&(*d as u32)) && depends(graph, other, *d) && !depends(graph, own, *d));
    of_other.map(|d| shape[d].as_const()).try_fold(1i64, |n, extent| n.checked_mul(extent?))
}

#[cfg(test)]
mod tests {
    use super::turned;
    use crate::base::rule::Log;
    use crate::graph::parse::{check, no_data};
    use crate::graph::print::{Dialect, print};

    fn made(channel: &str, filters: u32) -> Option<String> {
        let text = format!(
            "tensor graph g():\n  x: f32[1, 16, 16, 4] = input\n  f: f32[{filters}, 3, 3, 4] = parameter\n  \
             w: f32[1, {filters}, 14, 14, 4, 3, 3] = map x[0, i2 + i5, i3 + i6, {channel}] where i2 + i5 > 0 else 0.0\n  \
             v: f32[1, {filters}, 14, 14, 4, 3, 3] = map f[i1, i5, i6, i4]\n  \
             d: f32[1, {filters}, 14, 14, 1, 1, 1] = reduce dot w, v over 4, 5, 6\n  output out0 = d\n"
        );
        let (graph, dialect) = check(&text, &no_data).unwrap();
        let out = turned(&graph, &mut Log::default())?;
        assert!(crate::graph::verify::verify(&out, dialect).is_empty());
        Some(print(&out, Dialect::of(&out)))
    }

    #[test]
    fn channels_are_moved_before_the_rows_of_an_image() {
        let text = made("i4", 8).unwrap();
        assert!(text.contains("x_turned: f32[1, 4, 16, 16] = map x[0, i2, i3, i1]"), "{text}");
        assert!(text.contains("f_turned: f32[8, 4, 3, 3] = map f[i0, i2, i3, i1]"), "{text}");
        assert!(text.contains("w: f32[1, 8, 14, 14, 4, 3, 3] = map x_turned[0, i4, i2 + i5, i3 + i6] where"), "{text}");
    }

    #[test]
    fn few_filters_stay() {
        assert_eq!(made("i4", 4), None);
        assert_eq!(made("0", 8), None);
        // An image that has its channels first stays, also under windows of one column.
        let columns = "tensor graph g():\n  x: f32[4, 16, 16] = input\n  f: f32[8, 4, 3] = parameter\n  \
                       w: f32[8, 14, 16, 4, 3] = map x[i3, i1 + i4, i2]\n  v: f32[8, 14, 16, 4, 3] = map f[i0, i3, i4]\n  \
                       d: f32[8, 14, 16, 1, 1] = reduce dot w, v over 3, 4\n  e: f32[16, 14, 8] = map d[i2, i1, i0, 0, 0]\n  \
                       output out0 = e\n";
        assert!(turned(&check(columns, &no_data).unwrap().0, &mut Log::default()).is_none());
        let text = by_channel("o: f32[4, 14, 16] = map e[i0, i1, i2, 0]").replace("[16, 16, 4]", "[4, 16, 16]");
        let text = text.replace("map x[i1 + i3, i2, i0]", "map x[i0, i1 + i3, i2]");
        assert!(turned(&check(&text, &no_data).unwrap().0, &mut Log::default()).is_none());
    }

    #[test]
    fn filters_of_transposed_convolutions_get_the_order_of_their_product() {
        let made = |filter: &str, shape: &str, role: &str| {
            let text = format!(
                "tensor graph g():\n  x: f32[16, 8, 8] = input\n  f: f32[{shape}] = {role}\n  \
                 w: f32[2, 2, 6, 8, 8, 16] = map x[i5, i3, i4]\n  v: f32[2, 2, 6, 8, 8, 16] = map f[{filter}]\n  \
                 d: f32[2, 2, 6, 8, 8, 1] = reduce dot v, w over 5\n  output out0 = d\n"
            );
            let (graph, dialect) = check(&text, &no_data).unwrap();
            let out = turned(&graph, &mut Log::default())?;
            assert!(crate::graph::verify::verify(&out, dialect).is_empty());
            Some(print(&out, Dialect::of(&out)))
        };
        let text = made("i5, i2, i0, i1", "16, 6, 2, 2", "parameter").unwrap();
        assert!(text.contains("f_turned: f32[2, 2, 6, 16] = map f[i3, i2, i0, i1]"), "{text}");
        assert!(text.contains("v: f32[2, 2, 6, 8, 8, 16] = map f_turned[i0, i1, i2, i5]"), "{text}");
        // In order, side by side along the sum, or not known when the model is loaded: they stay.
        assert_eq!(made("i5, i0, i1, i2", "16, 2, 2, 6", "parameter"), None);
        assert_eq!(made("i2, i0, i1, i5", "6, 2, 2, 16", "parameter"), None);
        assert_eq!(made("i5, i2, i0, i1", "16, 6, 2, 2", "input"), None);
    }

    /// A convolution by channel.
    fn by_channel(output: &str) -> String {
        format!(
            "tensor graph g():\n  x: f32[16, 16, 4] = input\n  f: f32[4, 3] = parameter\n  \
             w: f32[4, 14, 16, 3] = map x[i1 + i3, i2, i0]\n  v: f32[4, 14, 16, 3] = map f[i0, i3]\n  \
             d: f32[4, 14, 16, 1] = reduce dot w, v over 3\n  e: f32[4, 14, 16, 1] = exp d\n  {output}\n  output out0 = o\n"
        )
    }

    #[test]
    fn convolutions_by_channel_stay_where_their_results_have_channels_last() {
        let last = by_channel("o: f32[14, 16, 4] = map e[i2, i0, i1, 0]");
        let first = by_channel("o: f32[4, 14, 16] = map e[i0, i1, i2, 0]");
        let is_turned = |text: &str| turned(&check(text, &no_data).unwrap().0, &mut Log::default()).is_some();
        assert!(!is_turned(&last) && is_turned(&first));
    }
}
