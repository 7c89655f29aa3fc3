//! Operations that work element by element.

use super::{Lift, Result1, bug, operand, result};
use crate::cuda_tile::ir::Op;
use crate::cuda_tile::ops::scalar_op;
use crate::loops::ir::Ty;

impl Lift<'_> {
    pub(super) fn elementwise(&mut self, op: &Op) -> Result1<()> {
        let result = result(op, 0)?;
        let ty = self.elem(result)?;
        let (Ty::Num(to) | Ty::Ptr(to)) = ty;
        let Some(scalar) = scalar_op(op, to) else { return Err(bug("an operation the lift does not know", op.span)) };
        operand(op, 0)?;
        self.define(result, |l, idx| {
            let args = op.operands.iter().map(|&v| l.at(v, idx)).collect::<Result1<Vec<_>>>()?;
            Ok(l.compute(scalar, args, ty))
        })
    }
}
