//! ONNX reductions. f16 and bf16 are summed in f32.

use super::common::{axes_either, known, known_ints, normal_axes};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::expr::{Tensor, all};
use crate::graph::decompose::{Call, normal_axis};
use crate::graph::ir::{Arg, ReduceOp, ScanOp};
use crate::index::Ix;

rules! {
    onnx_reduce "Reduces axes, by default all. An empty list means all too, or none with `noop_with_empty_axes`; the functions \
         of the elements and of the result are applied all the same.\n\n\
         `y = ReduceL2(x)` --> `s = reduce sum x*x`, `y = sqrt s`" {
        "onnx.ReduceSum" => |c| reduce(c, |x, over| over.sum(x)),
        "onnx.ReduceMean" => |c| reduce(c, |x, over| match over.axes.is_empty() {
            true => x,
            false => if x.elem().is_float() { x } else { x.to(Elem::F64) }.mean(&over.axes, over.keep),
        }),
        "onnx.ReduceProd" => |c| reduce(c, |x, over| over.fold(ReduceOp::Prod, x)),
        "onnx.ReduceMax" => |c| over(c).map(|over| over.fold(ReduceOp::Max, c.x(0))),
        "onnx.ReduceMin" => |c| over(c).map(|over| over.fold(ReduceOp::Min, c.x(0))),
        "onnx.ReduceL1" => |c| reduce(c, |x, over| over.sum(x.abs())),
        "onnx.ReduceL2" => |c| reduce(c, |x, over| floating(over.sum(x * x)).sqrt()),
        "onnx.ReduceSumSquare" => |c| reduce(c, |x, over| over.sum(x * x)),
        "onnx.ReduceLogSum" => |c| logarithm(c, |x, over| floating(over.sum(x)).log()),
        "onnx.ReduceLogSumExp" => |c| logarithm(c, |x, over| over.log_sum_exp(floating(x))),
    }
    onnx_arg "The position of the greatest or least element: the first of equals, or the last.\n\n\
         `y = ArgMax(x)` --> `y = reduce argmax x`" {
        "onnx.ArgMax" => |c| arg(c, ReduceOp::ArgMax { last: c.flag("select_last_index", false)? }),
        "onnx.ArgMin" => |c| arg(c, ReduceOp::ArgMin { last: c.flag("select_last_index", false)? }),
    }
    onnx_cumulative "Running sums or products along an axis.\n\n`y = CumSum(x, axis)` --> `y = scan sum x`" {
        "onnx.CumSum" => |c| cumulative(c, ScanOp::Sum),
        "onnx.CumProd" => |c| cumulative(c, ScanOp::Prod),
    }
    onnx_top_k "The greatest or least k along an axis in order, and their positions; of equals the first comes first.\n\n\
         `v, i = TopK(x, k)` --> `s, o = sort x`, `v = map s[..k]`, `i = map o[..k]`" {
        "onnx.TopK" => top_k,
    }
}

/// The axes that a reduction folds.
struct Over {
    axes: Vec<usize>,
    keep: bool,
}

fn over(c: &Call<'_>) -> Result<Over> {
    let rank = c.x(0).rank()?;
    let given = c.cx.read(|b| axes_either(b, c, 1))?.unwrap_or_default();
    let axes = if !given.is_empty() {
        normal_axes(&given, rank)?
    } else if c.flag("noop_with_empty_axes", false)? {
        vec![]
    } else {
        all(rank)
    };
    Ok(Over { axes, keep: c.flag("keepdims", true)? })
}

/// `f` in the type that sums are made in.
fn reduce<'g>(c: &Call<'g>, f: fn(Tensor<'g>, &Over) -> Tensor<'g>) -> Result<Tensor<'g>> {
    let over = over(c)?;
    Ok(c.x(0).in_wide(|x| f(x, &over)))
}

/// The same; the logarithm of a sum below 0 is NaN.
fn logarithm<'g>(c: &Call<'g>, f: fn(Tensor<'g>, &Over) -> Tensor<'g>) -> Result<Tensor<'g>> {
    let (over, narrow) = (over(c)?, c.x(0).elem());
    let y = f(c.x(0).wide(), &over);
    Ok(if narrow.is_int() { c.cx.made(&[y], |b| b.truncated(y.arg, narrow)) } else { y.to(narrow) })
}

fn floating(x: Tensor<'_>) -> Tensor<'_> {
    if x.elem().is_float() { x } else { x.to(Elem::F64) }
}

impl Over {
    fn sum<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.fold(ReduceOp::Sum, x)
    }

    /// No axes leave the tensor as it is, an axis without elements gives the operation's neutral element.
    fn fold<'g>(&self, op: ReduceOp, x: Tensor<'g>) -> Tensor<'g> {
        let elem = x.elem();
        let op = match op {
            ReduceOp::Max if elem.is_bool() => ReduceOp::Or,
            ReduceOp::Min if elem.is_bool() => ReduceOp::And,
            op => op,
        };
        let mut shape = match x.shape() {
            Ok(shape) if !self.axes.is_empty() => shape,
            _ => return x,
        };
        if !self.axes.iter().any(|a| shape.get(*a).is_some_and(|n| n.is_const(0))) {
            return x.reduce(op, &self.axes, self.keep);
        }
        let value = match op {
            ReduceOp::Prod | ReduceOp::And => x.like(1.0),
            ReduceOp::Max if elem.is_float() => x.like(f64::NEG_INFINITY),
            ReduceOp::Min if elem.is_float() => x.like(f64::INFINITY),
            ReduceOp::Max | ReduceOp::Min => {
                let mask = elem.dtype.mask();
                let highest = if elem.unsigned { mask } else { mask >> 1 };
                let bits = if op == ReduceOp::Min { highest } else { !highest & mask };
                x.cx.tensor(Arg::Scalar { elem, bits })
            }
            _ => x.like(0.0),
        };
        for &a in &self.axes {
            shape[a] = Ix::Const(1);
        }
        let y = value.fill(shape);
        if self.keep { y } else { y.squeeze(&self.axes) }
    }

    /// `m + log(sum exp(x - m))` with the greatest element `m`, or 0 where that is infinite.
    fn log_sum_exp<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        if self.axes.is_empty() {
            return x;
        }
        let kept = Over { axes: self.axes.clone(), keep: true };
        let m = kept.fold(ReduceOp::Max, x);
        let m = m.abs().equals(f64::INFINITY).select(0.0, m);
        let y = kept.sum((x - m).exp()).log() + m;
        if self.keep { y } else { y.squeeze(&self.axes) }
    }
}

fn arg<'g>(c: &Call<'g>, op: ReduceOp) -> Result<Tensor<'g>> {
    let axis = normal_axis(c.int("axis", 0)?, c.x(0).rank()?)?;
    Ok(c.x(0).reduce(op, &[axis], c.flag("keepdims", true)?))
}

fn cumulative<'g>(c: &Call<'g>, op: ScanOp) -> Result<Tensor<'g>> {
    let axis = match c.cx.read(|b| known_ints(b, c, 1, "axis"))?[..] {
        [axis] => normal_axis(axis, c.x(0).rank()?)?,
        _ => return Err(Refusal::new("its axis must be one number")),
    };
    let (exclusive, reverse) = (c.flag("exclusive", false)?, c.flag("reverse", false)?);
    Ok(c.x(0).in_wide(|x| c.cx.made(&[x], |b| b.scan(op, x.arg, axis, exclusive, reverse))))
}

fn top_k<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (x, shape) = (c.x(0), c.x(0).shape()?);
    let axis = normal_axis(c.int("axis", -1)?, shape.len())?;
    let k = match c.int_of("k")? {
        Some(k) => Ix::Const(k),
        None => match &c.cx.read(|b| known(b, c, 1, "k"))?[..] {
            [k] => k.clone(),
            _ => return Err(Refusal::new("its k must be one number")),
        },
    };
    if let (Some(k), Some(n)) = (k.as_const(), shape[axis].as_const())
        && !(0..=n).contains(&k)
    {
        return Err(Refusal::new(format!("its k is {k}, but the axis has {n} elements")));
    }
    x.sort_first(axis, c.flag("largest", true)?, k)
}
