//! Places in sorted tensors, and counts of intervals.

use super::Call;
use super::expr::{Tensor, along};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::{self, Coord, ReduceOp, ScatterOp};
use crate::index::Ix;

rules! {
    searchsorted "How many elements of a sorted line are below each value, or (`right`) not above it: a binary search, with one \
         gather for each halving.\n\n\
         `at = searchsorted(s, v)` --> `m = (lo + hi) / 2`, `up = lo < hi and not s[m] >= v`, `lo = select(up, m + 1, \
         lo)`, `hi = select(up, hi, m)`, as often as the length can be halved" {
        "aten.searchsorted" => |c| search(c, c.x(0), c.x(1), c.maybe(2)),
        "aten.bucketize" => |c| search(c, c.x(1), c.x(0), None),
    }
    histc "Counts elements in equal intervals; values outside are left out. If the ends are equal, the least and the greatest \
         element take their place, and must be finite.\n\n\
         `y = histc(x, n, a, b)` --> `y = scatter add zeros[(x - a) * n / (b - a)] with 1 where a <= x and x <= b`" {
        "aten.histc" => histc,
    }
}

/// The places of values `[.., m]` in lines `[.., n]`, or in one line for all.
fn search<'g>(c: &Call<'g>, line: Tensor<'g>, values: Tensor<'g>, sorter: Option<Tensor<'g>>) -> Result<Tensor<'g>> {
    let (cx, right) = (c.cx, c.flag("right", false)? || c.text("side")? == Some("right"));
    let to = if c.flag("out_int32", false)? { Elem::I32 } else { Elem::I64 };
    let (shape, from) = (values.shape()?, line.shape()?);
    let Some(last) = from.len().checked_sub(1) else {
        return Err(Refusal::new("a sorted line has at least one axis"));
    };
    if last > 0 && (shape.len() != from.len() || !cx.same_shape(&shape[..last], &from[..last])) {
        let (lines, values) = (line.shape_text(), values.shape_text());
        return Err(Refusal::new(format!("lines of shape {lines} do not fit values of shape {values}")));
    }
    let n = &from[last];
    if n.is_const(0) {
        return Ok(cx.full(to, 0.0, shape));
    }
    let (line, values) = line.with(values);
    let values = values.placed();
    // The length is halved until nothing is left: once for each of its bits.
    let longest = cx.range(n).hi.clamp(0, ir::MAX_EXTENT.into());
    let steps = (0..64).take_while(|bit| longest >> bit > 0).count();
    let length = cx.extent(n, Elem::I64);
    let end = length - 1;
    let mut lo = cx.full(Elem::I64, 0.0, shape.clone());
    let mut hi = length.spread(&shape);
    for _ in 0..steps {
        let open = lo.below(hi);
        let middle = (lo + hi) / 2;
        let mut probe = middle.min(end).max(0);
        let at = |x: Tensor<'g>, probe| x.gather(&[probe], along(last, last + 1), shape.clone());
        if let Some(sorter) = sorter {
            probe = at(sorter, probe).to(Elem::I64);
        }
        let found = at(line, probe);
        // NaN is above every number: it is not at least anything.
        let reached = if right { found.above(values) } else { found.at_least(values) };
        let up = open & !reached;
        lo = up.select(middle + 1, lo);
        hi = (up | !open).select(hi, middle);
    }
    Ok(lo.to(to))
}

fn histc<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (cx, elem, bins) = (c.cx, c.x(0).elem(), c.int("bins", 100)?);
    if bins < 1 || !elem.is_float() {
        return Err(Refusal::new("histc takes floats and a positive number of intervals"));
    }
    let (low, high) = (c.float("min", 0.0)?, c.float("max", 0.0)?);
    let x = c.x(0).flat();
    let mut result = cx.full(elem, 0.0, vec![Ix::Const(bins)]);
    let (mut lo, mut hi) = (x.like(low), x.like(high));
    if low == high {
        // Data that are not finite have no histogram: a read outside of a tensor is the error of the run.
        lo = x.reduce(ReduceOp::Min, &[0], false);
        hi = x.reduce(ReduceOp::Max, &[0], false);
        let at = (hi - lo).below(f64::INFINITY).select(cx.int(0), -1);
        let at = at.broadcast_to(&[Ix::Const(bins)]);
        let none = cx.full(elem, 0.0, vec![Ix::Const(1)]);
        result = none.gather(&[at], vec![Coord::Arg(1)], vec![Ix::Const(bins)]);
    }
    let flat = lo.equals(hi);
    let (below, above) = (lo - 1.0, hi + 1.0);
    (lo, hi) = (flat.select(below, lo), flat.select(above, hi));
    let inside = x.at_least(lo) & x.at_most(hi);
    // The upper end belongs to the last interval.
    let at = ((x - lo) * bins as f64 / (hi - lo)).to(Elem::I64).min(bins - 1).max(0);
    Ok(result.scatter(&[at], inside.to(elem), vec![Coord::Arg(1)], ScatterOp::Add))
}
