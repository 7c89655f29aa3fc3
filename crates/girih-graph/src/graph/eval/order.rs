//! Operations along one axis: scans and sorting.

use std::cmp::Ordering;

use super::reduce;
use super::tensor::{Data, Rows, View, row_major};
use crate::graph::ir::{ReduceOp, ScanOp};
use crate::num::{DType, eval};

/// Every line along an axis: where it starts in the view, and in a row-major result.
fn lines(x: &View, axis: usize) -> Vec<(i64, i64)> {
    let result = row_major(&x.shape);
    let keep =
        |of: &[i64]| -> Vec<i64> { of.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, s)| *s).collect() };
    let shape: Vec<usize> = x.shape.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, n)| *n).collect();
    let (from, to) = (keep(&x.strides), keep(&result));
    let mut out = vec![];
    Rows::of(&shape, &[(x.offset, &from), (0, &to)]).each_elements(|at| {
        if let &[a, b] = at {
            out.push((a, b));
        }
    });
    out
}

pub(super) fn scan(op: ScanOp, x: &View, axis: usize, exclusive: bool, reverse: bool) -> Result<Data, String> {
    let op = match op {
        ScanOp::Sum => ReduceOp::Sum,
        ScanOp::Prod => ReduceOp::Prod,
        ScanOp::Max => ReduceOp::Max,
        ScanOp::Min => ReduceOp::Min,
    };
    let (scalar, from) = (reduce::step(op, x.elem), op.identity(x.elem));
    let (Some(&n), Some(&step)) = (x.shape.get(axis), x.strides.get(axis)) else { return Err("no such axis".into()) };
    let along = row_major(&x.shape).get(axis).copied().unwrap_or(1);
    let mut out = vec![0u64; x.len()];
    for (start, to) in lines(x, axis) {
        let mut acc = from;
        for i in 0..n as i64 {
            let i = if reverse { n as i64 - 1 - i } else { i };
            let bits = x.data.bits((start + step * i) as usize);
            let next = eval::apply(scalar, x.elem.dtype, &[acc, bits]);
            if let Some(slot) = out.get_mut((to + along * i) as usize) {
                *slot = if exclusive { acc } else { next };
            }
            acc = next;
        }
    }
    Ok(Data::of_bits(x.elem.dtype, out))
}

/// The first `k` elements of each line in order, and the position that each came from.
pub(super) fn sort(x: &View, axis: usize, descending: bool, k: usize) -> Result<[Data; 2], String> {
    let (Some(&n), Some(&step)) = (x.shape.get(axis), x.strides.get(axis)) else { return Err("no such axis".into()) };
    let along = row_major(&x.shape).get(axis).copied().unwrap_or(1);
    let (of_x, of_first) = (along * n as i64, along * k as i64);
    let count = x.len().checked_div(n).unwrap_or(0) * k;
    let (mut sorted, mut from) = (vec![0u64; count], vec![0u64; count]);
    for (start, to) in lines(x, axis) {
        let to = to.checked_div(of_x).map_or(0, |outer| outer * of_first + to % of_x);
        let mut line: Vec<(u64, u64)> =
            (0..n).map(|i| (x.data.bits((start + step * i as i64) as usize), i as u64)).collect();
        // NaN counts as greater than every number, so it is last ascending and first descending.
        line.sort_by(|a, b| {
            let order = reduce::order(x.elem, a.0, b.0, Ordering::Greater);
            if descending { order.reverse() } else { order }
        });
        for (i, (bits, place)) in line.into_iter().take(k).enumerate() {
            let at = (to + along * i as i64) as usize;
            if let (Some(s), Some(f)) = (sorted.get_mut(at), from.get_mut(at)) {
                (*s, *f) = (bits, place);
            }
        }
    }
    Ok([Data::of_bits(x.elem.dtype, sorted), Data::of_bits(DType::I64, from)])
}
