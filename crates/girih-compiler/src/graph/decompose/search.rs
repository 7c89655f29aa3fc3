//! Places in sorted tensors, and counts of intervals.

use super::types::pair;
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScatterOp};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "searchsorted",
        handles: &["aten.searchsorted", "aten.bucketize"],
        doc: "How many elements of a sorted line are below each value, or (`right`) not above it: a binary search, with one \
              gather for each halving.\n\n\
              `at = searchsorted(s, v)` --> `m = (lo + hi) / 2`, `up = lo < hi and not s[m] >= v`, `lo = select(up, m + 1, \
              lo)`, `hi = select(up, hi, m)`, as often as the length can be halved",
        run: search,
    },
    Decomposition {
        name: "histc",
        handles: &["aten.histc"],
        doc: "Counts of elements in equal intervals; values outside are left out. Where the ends are equal, those of the \
              data count, and must be finite.\n\n\
              `y = histc(x, n, a, b)` --> `y = scatter add zeros[(x - a) * n / (b - a)] with 1 where a <= x and x <= b`",
        run: histc,
    },
];

/// `(sorted [.., n], values [.., m], sorter?)`, or `bucketize(values, boundaries [n])`.
fn search(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (line, values) = match call.name {
        "aten.bucketize" => (call.arg(1)?, call.arg(0)?),
        _ => (call.arg(0)?, call.arg(1)?),
    };
    let right = call.flag("right", false)? || call.text("side")? == Some("right");
    let to = if call.flag("out_int32", false)? { Elem::I32 } else { Elem::I64 };
    let shape = b.shape(values);
    let from = b.shape(line);
    let Some(last) = from.len().checked_sub(1) else {
        return Err(Refusal::new("a sorted line has at least one axis"));
    };
    if last > 0 && (shape.len() != from.len() || !b.same_shape(&shape[..last], &from[..last])) {
        return Err(Refusal::new(format!(
            "lines of shape {} do not fit values of shape {}",
            b.shape_text(&from),
            b.shape_text(&shape)
        )));
    }
    let n = from[last].clone();
    let at = |i: usize| if i == last { Coord::Arg(1) } else { Coord::Ix(ir::axis(i)) };
    let place = |_: &Builder<'_>| (0..=last).map(at).collect::<Vec<Coord>>();
    let (zero, one) = (ir::int_scalar(Elem::I64, 0), ir::int_scalar(Elem::I64, 1));
    if n.is_const(0) {
        return Ok(vec![b.full(ir::int_scalar(to, 0), to, shape)]);
    }
    let (line, values) = pair(b, line, values)?;
    let values = match values {
        Arg::Scalar { elem, .. } => b.full(values, elem, vec![]),
        _ => values,
    };
    // The length is halved until nothing is left: once for each of its bits.
    let longest = b.facts().range(&n).hi.clamp(0, ir::MAX_EXTENT.into());
    let steps = (0..64).take_while(|bit| longest >> bit > 0).count();
    let length = super::reductions::extent(b, n, Elem::I64)?;
    let end = b.sub(length, one)?;
    let mut lo = b.full(zero, Elem::I64, shape.clone());
    let mut hi = match length {
        Arg::Scalar { elem, .. } => b.full(length, elem, shape.clone()),
        _ => b.broadcast_to(length, &shape)?,
    };
    for _ in 0..steps {
        let open = b.compare(Predicate::LessThan, lo, hi)?;
        let sum = b.add(lo, hi)?;
        let middle = b.div(sum, ir::int_scalar(Elem::I64, 2))?;
        let inside = b.min(middle, end)?;
        let inside = b.max(inside, zero)?;
        let mut probe = inside;
        if let Some(sorter) = call.opt(2).filter(|_| call.name == "aten.searchsorted") {
            let coords = place(b);
            probe = b.gather(sorter, &[inside], coords, shape.clone())?;
            probe = b.convert(probe, Elem::I64)?;
        }
        let coords = place(b);
        let found = b.gather(line, &[probe], coords, shape.clone())?;
        // NaN is above every number: it is not at least anything.
        let pred = if right { Predicate::GreaterThan } else { Predicate::GreaterThanOrEqual };
        let reached = b.compare(pred, found, values)?;
        let below = b.not(reached)?;
        let up = b.and(open, below)?;
        let next = b.add(middle, one)?;
        lo = b.select(up, next, lo)?;
        let stop = b.not(open)?;
        let kept = b.or(up, stop)?;
        hi = b.select(kept, hi, middle)?;
    }
    Ok(vec![b.convert(lo, to)?])
}

fn histc(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let bins = call.int("bins", 100)?;
    let elem = b.elem(x);
    if bins < 1 || !elem.is_float() {
        return Err(Refusal::new("histc takes floats and a positive number of intervals"));
    }
    let (low, high) = (call.float("min", 0.0)?, call.float("max", 0.0)?);
    let n = b.numel(&b.shape(x));
    let x = b.reshape(x, &[n])?;
    let zeros = b.full(ir::scalar(elem, 0.0), elem, vec![Ix::Const(bins)]);
    let (mut lo, mut hi) = (ir::scalar(elem, low), ir::scalar(elem, high));
    let mut result = zeros;
    if low == high {
        // Of data that are not finite there is no histogram: a read outside of a tensor is the error of the run.
        lo = b.reduce(ReduceOp::Min, x, &[0], false)?;
        hi = b.reduce(ReduceOp::Max, x, &[0], false)?;
        let span = b.sub(hi, lo)?;
        let finite = b.compare(Predicate::LessThan, span, ir::scalar(elem, f64::INFINITY))?;
        let at = b.select(finite, ir::int_scalar(Elem::I64, 0), ir::int_scalar(Elem::I64, -1))?;
        let at = b.broadcast_to(at, &[Ix::Const(bins)])?;
        let none = b.full(ir::scalar(elem, 0.0), elem, vec![Ix::Const(1)]);
        result = b.gather(none, &[at], vec![Coord::Arg(1)], vec![Ix::Const(bins)])?;
    }
    let one = ir::scalar(elem, 1.0);
    let flat = b.compare(Predicate::Equal, lo, hi)?;
    let (below, above) = (b.sub(lo, one)?, b.add(hi, one)?);
    (lo, hi) = (b.select(flat, below, lo)?, b.select(flat, above, hi)?);
    let (not_low, not_high) =
        (b.compare(Predicate::GreaterThanOrEqual, x, lo)?, b.compare(Predicate::LessThanOrEqual, x, hi)?);
    let inside = b.and(not_low, not_high)?;
    let d = b.sub(x, lo)?;
    let scaled = b.mul(d, ir::scalar(elem, bins as f64))?;
    let span = b.sub(hi, lo)?;
    let at = b.div(scaled, span)?;
    let at = b.convert(at, Elem::I64)?;
    // The upper end belongs to the last interval.
    let at = b.min(at, ir::int_scalar(Elem::I64, bins - 1))?;
    let at = b.max(at, ir::int_scalar(Elem::I64, 0))?;
    let ones = b.convert(inside, elem)?;
    Ok(vec![b.scatter(result, &[at], ones, vec![Coord::Arg(1)], ScatterOp::Add)?])
}
