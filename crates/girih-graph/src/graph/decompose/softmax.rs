//! Softmax and its logarithm.

use super::Call;
use super::expr::Tensor;
use super::types::axis_attr;
use crate::graph::Elem;
use crate::graph::build::Result;

rules! {
    softmax "Exponentials over their sum, along one axis, safe for large operands. f16 and bf16 are computed in f32.\n\n\
         `y = softmax(x)` --> `e = exp(x - max x)`, `y = e * (1 / sum e)`\n\n\
         The sum is between 1 and the row's length, so its reciprocal loses a last bit at most. A row of nothing but -inf gives NaN, as in PyTorch." {
        "aten.softmax" | "aten._softmax" => |c| along(c, softmax),
    }
    log_softmax "The logarithm of softmax.\n\n`y = log_softmax(x)` --> `z = x - max x`, `y = z - log(sum exp z)`" {
        "aten.log_softmax" | "aten._log_softmax" => |c| along(c, log_softmax),
    }
    safe_softmax "Softmax whose rows of nothing but -inf are 0.\n\n\
         `y = safe_softmax(x)` --> `y = select(max x == -inf, 0, softmax(x))`" {
        "aten._safe_softmax" => |c| along(c, |x, axis| {
            let masked = x.greatest(&[axis], true).equals(f64::NEG_INFINITY);
            masked.select(0.0, softmax(x, axis))
        }),
    }
}

/// Softmax of a float along an axis, in the operand's type.
pub(super) fn softmax(x: Tensor<'_>, axis: usize) -> Tensor<'_> {
    x.in_wide(|x| {
        let exp = (x - x.greatest(&[axis], true)).exp();
        exp * (1.0 / exp.sum(&[axis], true))
    })
}

/// The logarithm of softmax, in the operand's type.
pub(super) fn log_softmax(x: Tensor<'_>, axis: usize) -> Tensor<'_> {
    x.in_wide(|x| {
        let shifted = x - x.greatest(&[axis], true);
        shifted - shifted.exp().sum(&[axis], true).log()
    })
}

/// `f` of the operand in the type asked for and the axis. Rank 0 becomes rank 1 for it.
fn along<'g>(c: &Call<'g>, f: fn(Tensor<'g>, usize) -> Tensor<'g>) -> Result<Tensor<'g>> {
    let x = c.x(0);
    let rank = x.rank()?;
    let axis = axis_attr(c, "dim", -1, rank)?;
    let x = match c.elem("dtype")? {
        Some(elem) => x.to(elem),
        None if c.flag("half_to_float", false)? => x.to(Elem::F32),
        None => x.floating(),
    };
    Ok(if rank == 0 { f(x.unsqueeze(&[0]), axis).squeeze(&[0]) } else { f(x, axis) })
}
