//! Softmax and its logarithm.

use super::types::{axis_attr, floating};
use super::{Call, Decomposition};
use crate::graph::build::{Builder, Result};
use crate::graph::ir::{Arg, ReduceOp};

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "softmax",
        handles: &["aten.softmax", "aten._softmax"],
        doc: "Exponentials over their sum, along one axis, safe for large operands. f16 and bf16 are computed in f32.\n\n\
              `y = softmax(x)` --> `e = exp(x - max x)`, `y = e * (1 / sum e)`\n\n\
              The sum is between 1 and the row's length, so its reciprocal loses a last bit at most. A row of nothing but -inf gives NaN, as in PyTorch.",
        run: softmax_call,
    },
    Decomposition {
        name: "log_softmax",
        handles: &["aten.log_softmax", "aten._log_softmax"],
        doc: "The logarithm of softmax.\n\n`y = log_softmax(x)` --> `z = x - max x`, `y = z - log(sum exp z)`",
        run: log_softmax_call,
    },
    Decomposition {
        name: "safe_softmax",
        handles: &["aten._safe_softmax"],
        doc: "Softmax whose rows of nothing but -inf are 0.\n\n\
              `y = safe_softmax(x)` --> `y = select(max x == -inf, 0, softmax(x))`",
        run: safe_softmax,
    },
];

/// The parts of a softmax along an axis, which stays with extent 1 in the sum.
pub(super) struct Parts {
    /// `exp(x - max)`
    pub exp: Arg,
    /// Of the exponentials.
    pub sum: Arg,
}

/// `x` is a float that sums may be made in.
pub(super) fn parts(b: &mut Builder<'_>, x: Arg, axis: usize) -> Result<Parts> {
    let max = b.reduce(ReduceOp::Max, x, &[axis], true)?;
    let shifted = b.sub(x, max)?;
    let exp = b.exp(shifted)?;
    let sum = b.reduce(ReduceOp::Sum, exp, &[axis], true)?;
    Ok(Parts { exp, sum })
}

/// Softmax of a float along an axis, in the operand's type.
pub(super) fn softmax(b: &mut Builder<'_>, x: Arg, axis: usize) -> Result<Arg> {
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let p = parts(b, x, axis)?;
    let one = b.scalar_like(p.sum, 1.0);
    let factor = b.div(one, p.sum)?;
    let y = b.mul(p.exp, factor)?;
    b.convert(y, narrow)
}

/// The logarithm of softmax, in the operand's type.
pub(super) fn log_softmax(b: &mut Builder<'_>, x: Arg, axis: usize) -> Result<Arg> {
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let max = b.reduce(ReduceOp::Max, x, &[axis], true)?;
    let shifted = b.sub(x, max)?;
    let exp = b.exp(shifted)?;
    let sum = b.reduce(ReduceOp::Sum, exp, &[axis], true)?;
    let log = b.log(sum)?;
    let y = b.sub(shifted, log)?;
    b.convert(y, narrow)
}

/// The operand in the type asked for, and the axis. Rank 0 becomes rank 1.
fn prepare(b: &mut Builder<'_>, call: &Call<'_>) -> Result<(Arg, usize, bool)> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let axis = axis_attr(call, "dim", -1, rank)?;
    let x = match call.elem("dtype")? {
        Some(e) => b.convert(x, e)?,
        None if call.flag("half_to_float", false)? => b.convert(x, crate::graph::Elem::F32)?,
        None => floating(b, x)?,
    };
    let x = if rank == 0 { b.unsqueeze(x, &[0])? } else { x };
    Ok((x, axis, rank == 0))
}

fn back(b: &mut Builder<'_>, y: Arg, was_scalar: bool) -> Result<Vec<Arg>> {
    Ok(vec![if was_scalar { b.squeeze(y, &[0])? } else { y }])
}

fn softmax_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, axis, scalar) = prepare(b, call)?;
    let y = softmax(b, x, axis)?;
    back(b, y, scalar)
}

fn log_softmax_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, axis, scalar) = prepare(b, call)?;
    let y = log_softmax(b, x, axis)?;
    back(b, y, scalar)
}

fn safe_softmax(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, axis, scalar) = prepare(b, call)?;
    let max = b.reduce(ReduceOp::Max, x, &[axis], true)?;
    let lowest = b.scalar_like(max, f64::NEG_INFINITY);
    let masked = b.compare(crate::num::op::Predicate::Equal, max, lowest)?;
    let y = softmax(b, x, axis)?;
    let zero = b.scalar_like(y, 0.0);
    let y = b.select(masked, zero, y)?;
    back(b, y, scalar)
}
