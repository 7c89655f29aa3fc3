//! ONNX reductions. f16 and bf16 are summed in f32.

use super::common::{axes_either, known_ints, normal_axes};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, Decomposition, normal_axis};
use crate::graph::ir::{self, Arg, ReduceOp, ScanOp};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_reduce",
        handles: &[
            "onnx.ReduceSum",
            "onnx.ReduceMean",
            "onnx.ReduceProd",
            "onnx.ReduceMax",
            "onnx.ReduceMin",
            "onnx.ReduceL1",
            "onnx.ReduceL2",
            "onnx.ReduceSumSquare",
            "onnx.ReduceLogSum",
            "onnx.ReduceLogSumExp",
        ],
        doc: "Over axes, by default all. An empty list means all too, or none where `noop_with_empty_axes`; the function \
              of the elements and of the result is applied all the same.\n\n\
              `y = ReduceL2(x)` --> `s = reduce sum x*x`, `y = sqrt s`",
        run: reduce,
    },
    Decomposition {
        name: "onnx_arg",
        handles: &["onnx.ArgMax", "onnx.ArgMin"],
        doc: "The position of the greatest or least element: the first of equals, or the last.\n\n\
              `y = ArgMax(x)` --> `y = reduce argmax x`",
        run: arg,
    },
    Decomposition {
        name: "onnx_cumulative",
        handles: &["onnx.CumSum", "onnx.CumProd"],
        doc: "Running sums or products along an axis.\n\n`y = CumSum(x, axis)` --> `y = scan sum x`",
        run: cumulative,
    },
    Decomposition {
        name: "onnx_top_k",
        handles: &["onnx.TopK"],
        doc: "The greatest or least k along an axis in order, and their positions; of equals the first comes first.\n\n\
              `v, i = TopK(x, k)` --> `s, o = sort x`, `v = map s[..k]`, `i = map o[..k]`",
        run: top_k,
    },
];

fn reduce(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let given = axes_either(b, call, 1)?.unwrap_or_default();
    let axes = if !given.is_empty() {
        normal_axes(&given, rank)?
    } else if call.flag("noop_with_empty_axes", false)? {
        vec![]
    } else {
        (0..rank).collect()
    };
    let keep = call.flag("keepdims", true)?;
    let narrow = b.elem(x);
    let wide = b.wide(x);
    let sums = !matches!(call.name, "onnx.ReduceMax" | "onnx.ReduceMin");
    let x = if sums { b.convert(x, wide)? } else { x };
    let y = match call.name {
        "onnx.ReduceMax" => fold(b, ReduceOp::Max, x, &axes, keep)?,
        "onnx.ReduceMin" => fold(b, ReduceOp::Min, x, &axes, keep)?,
        "onnx.ReduceProd" => fold(b, ReduceOp::Prod, x, &axes, keep)?,
        "onnx.ReduceSum" => fold(b, ReduceOp::Sum, x, &axes, keep)?,
        "onnx.ReduceMean" if axes.is_empty() => x,
        "onnx.ReduceMean" if wide.is_float() => b.mean(x, &axes, keep)?,
        "onnx.ReduceMean" => {
            let x = b.convert(x, Elem::F64)?;
            b.mean(x, &axes, keep)?
        }
        "onnx.ReduceL1" => {
            let x = b.abs(x)?;
            fold(b, ReduceOp::Sum, x, &axes, keep)?
        }
        "onnx.ReduceSumSquare" => {
            let x = b.mul(x, x)?;
            fold(b, ReduceOp::Sum, x, &axes, keep)?
        }
        "onnx.ReduceL2" => {
            let x = b.mul(x, x)?;
            let s = fold(b, ReduceOp::Sum, x, &axes, keep)?;
            let s = floating(b, s)?;
            b.sqrt(s)?
        }
        "onnx.ReduceLogSum" => {
            let s = fold(b, ReduceOp::Sum, x, &axes, keep)?;
            let s = floating(b, s)?;
            b.log(s)?
        }
        _ => log_sum_exp(b, x, &axes, keep)?,
    };
    // The logarithm of a sum below 0 is NaN.
    let is_log = call.name.contains("Log") && narrow.is_int();
    Ok(vec![if is_log { b.truncated(y, narrow)? } else { b.convert(y, narrow)? }])
}

fn floating(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    if b.elem(x).is_float() { Ok(x) } else { b.convert(x, Elem::F64) }
}

/// No axes leave the tensor as it is, an axis without elements gives the operation's neutral element.
fn fold(b: &mut Builder<'_>, op: ReduceOp, x: Arg, axes: &[usize], keep: bool) -> Result<Arg> {
    let elem = b.elem(x);
    let op = match op {
        ReduceOp::Max if elem.is_bool() => ReduceOp::Or,
        ReduceOp::Min if elem.is_bool() => ReduceOp::And,
        op => op,
    };
    if axes.is_empty() {
        return Ok(x);
    }
    let mut shape = b.shape(x);
    if axes.iter().any(|a| shape.get(*a).is_some_and(|n| n.is_const(0))) {
        let value = match op {
            ReduceOp::Prod => ir::scalar(elem, 1.0),
            ReduceOp::And => Arg::Scalar { elem, bits: 1 },
            ReduceOp::Max if elem.is_float() => ir::scalar(elem, f64::NEG_INFINITY),
            ReduceOp::Min if elem.is_float() => ir::scalar(elem, f64::INFINITY),
            ReduceOp::Max | ReduceOp::Min => {
                let mask = elem.dtype.mask();
                let highest = if elem.unsigned { mask } else { mask >> 1 };
                Arg::Scalar { elem, bits: if op == ReduceOp::Min { highest } else { !highest & mask } }
            }
            _ => ir::scalar(elem, 0.0),
        };
        for &a in axes {
            shape[a] = Ix::Const(1);
        }
        let y = b.full(value, elem, shape);
        return if keep { Ok(y) } else { b.squeeze(y, axes) };
    }
    b.reduce(op, x, axes, keep)
}

/// `m + log(sum exp(x - m))` with the greatest element `m`, or 0 where that is infinite.
fn log_sum_exp(b: &mut Builder<'_>, x: Arg, axes: &[usize], keep: bool) -> Result<Arg> {
    let x = floating(b, x)?;
    if axes.is_empty() {
        return Ok(x);
    }
    let m = fold(b, ReduceOp::Max, x, axes, true)?;
    let size = b.abs(m)?;
    let infinite = b.scalar_like(m, f64::INFINITY);
    let infinite = b.compare(Predicate::Equal, size, infinite)?;
    let zero = b.scalar_like(m, 0.0);
    let m = b.select(infinite, zero, m)?;
    let shifted = b.sub(x, m)?;
    let e = b.exp(shifted)?;
    let s = fold(b, ReduceOp::Sum, e, axes, true)?;
    let l = b.log(s)?;
    let y = b.add(l, m)?;
    if keep { Ok(y) } else { b.squeeze(y, axes) }
}

fn arg(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let axis = normal_axis(call.int("axis", 0)?, b.rank(x))?;
    let last = call.flag("select_last_index", false)?;
    let op = if call.name == "onnx.ArgMax" { ReduceOp::ArgMax { last } } else { ReduceOp::ArgMin { last } };
    Ok(vec![b.reduce(op, x, &[axis], call.flag("keepdims", true)?)?])
}

fn cumulative(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let axis = match known_ints(b, call, 1, "axis")?[..] {
        [axis] => normal_axis(axis, b.rank(x))?,
        _ => return Err(Refusal::new("its axis must be one number")),
    };
    let op = if call.name == "onnx.CumSum" { ScanOp::Sum } else { ScanOp::Prod };
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let y = b.scan(op, x, axis, call.flag("exclusive", false)?, call.flag("reverse", false)?)?;
    Ok(vec![b.convert(y, narrow)?])
}

fn top_k(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let axis = normal_axis(call.int("axis", -1)?, b.rank(x))?;
    let k = match call.int_of("k")? {
        Some(k) => Ix::Const(k),
        None => match &super::common::known(b, call, 1, "k")?[..] {
            [k] => k.clone(),
            _ => return Err(Refusal::new("its k must be one number")),
        },
    };
    if let (Some(k), Some(n)) = (k.as_const(), b.shape(x)[axis].as_const())
        && !(0..=n).contains(&k)
    {
        return Err(Refusal::new(format!("its k is {k}, but the axis has {n} elements")));
    }
    let (values, places) = b.sort_first(x, axis, call.flag("largest", true)?, k)?;
    Ok(vec![values, places])
}
