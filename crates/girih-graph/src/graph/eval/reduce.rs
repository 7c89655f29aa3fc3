//! Folds over axes.

use std::cmp::Ordering;

use super::dot;
use super::elementwise::Float;
use super::tensor::{Data, Rows, View};
use crate::graph::Elem;
use crate::graph::ir::ReduceOp;
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, ScalarOp, convert, eval};

const NEAREST: Rounding = Rounding::NearestEven;

/// A view's axes, divided into axes that stay and axes that are folded.
pub(super) struct Parts {
    pub shape: Vec<usize>,
    pub strides: Vec<i64>,
    pub folded: Vec<usize>,
    pub folded_strides: Vec<i64>,
}

impl Parts {
    pub fn of(view: &View, axes: &[u32]) -> Parts {
        let mut p = Parts { shape: vec![], strides: vec![], folded: vec![], folded_strides: vec![] };
        for (d, (&n, &s)) in view.shape.iter().zip(&view.strides).enumerate() {
            if axes.contains(&(d as u32)) {
                p.folded.push(n);
                p.folded_strides.push(s);
            } else {
                p.shape.push(n);
                p.strides.push(s);
            }
        }
        p
    }
    /// The number of elements that are folded into one.
    pub fn count(&self) -> usize {
        self.folded.iter().product()
    }
    /// The places of the folded elements, relative to the first: starts of rows, the rows' length and step.
    pub fn rows(&self) -> (Vec<i64>, usize, i64) {
        let rows = Rows::of(&self.folded, &[(0, &self.folded_strides)]);
        let (len, step) = (rows.len, rows.steps.first().copied().unwrap_or(0));
        let mut starts = vec![];
        rows.each(|s| starts.extend_from_slice(s));
        (starts, len, step)
    }
}

/// The operation that folds one more element.
pub(super) fn step(op: ReduceOp, elem: Elem) -> ScalarOp {
    let sign = elem.sign();
    let (rounding, ftz) = (NEAREST, false);
    match (op, elem.is_float()) {
        (ReduceOp::Sum | ReduceOp::Dot, true) => ScalarOp::AddF { rounding, ftz },
        (ReduceOp::Sum | ReduceOp::Dot, false) => ScalarOp::AddI,
        (ReduceOp::Prod, true) => ScalarOp::MulF { rounding, ftz },
        (ReduceOp::Prod, false) => ScalarOp::MulI,
        (ReduceOp::Max | ReduceOp::ArgMax { .. }, true) => ScalarOp::MaxF { nan: true, ftz },
        (ReduceOp::Max | ReduceOp::ArgMax { .. }, false) => ScalarOp::MaxI { sign },
        (ReduceOp::Min | ReduceOp::ArgMin { .. }, true) => ScalarOp::MinF { nan: true, ftz },
        (ReduceOp::Min | ReduceOp::ArgMin { .. }, false) => ScalarOp::MinI { sign },
        (ReduceOp::And, _) => ScalarOp::And,
        (ReduceOp::Or, _) => ScalarOp::Or,
        (ReduceOp::Xor, _) => ScalarOp::Xor,
    }
}

/// The fold; `out` is the type of the result.
pub(super) fn reduce(op: ReduceOp, args: &[View], axes: &[u32], out: Elem, widen: bool) -> Result<Data, String> {
    match (op, args) {
        (ReduceOp::Dot, [a, b]) => Ok(dot::dot(a, b, axes, out, widen)),
        (ReduceOp::ArgMax { last }, [x]) => Ok(arg_extreme(x, axes, Ordering::Greater, last)),
        (ReduceOp::ArgMin { last }, [x]) => Ok(arg_extreme(x, axes, Ordering::Less, last)),
        (_, [x]) => Ok(fold(op, x, axes)),
        _ => Err("it does not have the operands of a reduction".into()),
    }
}

fn fold(op: ReduceOp, x: &View, axes: &[u32]) -> Data {
    match x.elem.dtype {
        DType::F32 => floats::<f32>(op, x, axes),
        DType::F64 => floats::<f64>(op, x, axes),
        _ => None,
    }
    .unwrap_or_else(|| bits(op, x, axes))
}

fn floats<T: Float>(op: ReduceOp, x: &View, axes: &[u32]) -> Option<Data> {
    let data = T::slice(&x.data)?;
    let from = T::from_bits(op.identity(x.elem));
    Some(T::wrap(match op {
        ReduceOp::Sum => folded(data, x, axes, from, T::add).into_iter().map(T::canonical).collect(),
        ReduceOp::Prod => folded(data, x, axes, from, T::mul).into_iter().map(T::canonical).collect(),
        ReduceOp::Max => folded(data, x, axes, from, T::max),
        ReduceOp::Min => folded(data, x, axes, from, T::min),
        _ => return None,
    }))
}

fn bits(op: ReduceOp, x: &View, axes: &[u32]) -> Data {
    let (scalar, from, d) = (step(op, x.elem), op.identity(x.elem), x.elem.dtype);
    let combine = |a: u64, b: u64| eval::apply(scalar, d, &[a, b]);
    let out = match &x.data {
        Data::Bits(v) => folded(v, x, axes, from, combine),
        other => {
            let all: Vec<u64> = (0..other.len()).map(|i| other.bits(i)).collect();
            folded(&all, x, axes, from, combine)
        }
    };
    Data::of_bits(d, out)
}

#[inline(always)]
fn folded<T: Copy>(data: &[T], x: &View, axes: &[u32], from: T, f: impl Fn(T, T) -> T) -> Vec<T> {
    let parts = Parts::of(x, axes);
    let (rows, len, step) = parts.rows();
    let mut out = Vec::with_capacity(parts.shape.iter().product());
    let each = Rows::of(&parts.shape, &[(x.offset, &parts.strides)]);
    let (n, along) = (each.len, each.steps.first().copied().unwrap_or(0));
    each.each(|starts| {
        let mut base = starts.first().copied().unwrap_or(0);
        for _ in 0..n {
            let mut acc = from;
            for row in &rows {
                let start = base + row;
                match (step, data.get(start as usize..)) {
                    (1, Some(row)) => row.iter().take(len).for_each(|x| acc = f(acc, *x)),
                    (_, Some(row)) if step > 1 => {
                        row.iter().step_by(step as usize).take(len).for_each(|x| acc = f(acc, *x));
                    }
                    _ => {
                        let at = |i: usize| data.get((start + step * i as i64) as usize);
                        (0..len).filter_map(at).for_each(|x| acc = f(acc, *x));
                    }
                }
            }
            out.push(acc);
            base += along;
        }
    });
    out
}

/// Positions along one axis; the fold of no elements is 0.
fn arg_extreme(x: &View, axes: &[u32], better: Ordering, last: bool) -> Data {
    let parts = Parts::of(x, axes);
    let (rows, len, step) = parts.rows();
    let mut out = Vec::with_capacity(parts.shape.iter().product());
    Rows::of(&parts.shape, &[(x.offset, &parts.strides)]).each_element(|base| {
        let mut best: Option<(u64, u64)> = None;
        let at = rows.iter().flat_map(|r| (0..len).map(move |i| base + r + step * i as i64));
        for (i, place) in at.enumerate() {
            let bits = x.data.bits(place as usize);
            let order = best.map_or(better, |(_, b)| order(x.elem, bits, b, better));
            if order == better || (order == Ordering::Equal && last) {
                best = Some((i as u64, bits));
            }
        }
        out.push(best.map_or(u64::MAX, |b| b.0));
    });
    Data::of_bits(DType::I64, out)
}

/// The order of two elements; a NaN is `nan` than any number, and equal to NaN. Zeros are equal.
pub(super) fn order(elem: Elem, a: u64, b: u64, nan: Ordering) -> Ordering {
    let d = elem.dtype;
    if !elem.is_float() {
        return match elem.sign() {
            Signedness::Unsigned => a.cmp(&b),
            Signedness::Signed => convert::sign_extend(d, a).cmp(&convert::sign_extend(d, b)),
        };
    }
    match (convert::is_nan(d, a), convert::is_nan(d, b)) {
        (true, true) => Ordering::Equal,
        (true, false) => nan,
        (false, true) => nan.reverse(),
        (false, false) => convert::to_f64(d, a).partial_cmp(&convert::to_f64(d, b)).unwrap_or(Ordering::Equal),
    }
}
