//! Assumptions of a program that must not be relied on.
//!
//! ```text
//! %s = assume div_by<16>, %arg3                                           nothing steps by %s, so it may be 200
//! %v = make_tensor_view %p, shape = [1, %n], strides = [%s, 1] : ... -> tensor_view<1x?xi8, strides=[?,1]>
//! ```
//!
//! cuTile states the same assumptions for the stride of a dimension of one element as for the strides of longer
//! dimensions, whatever that stride is. The evaluator does not check these assumptions, and the lift does not rely on
//! them.

use super::ir::{Func, Op, Opcode, Type, ValueId};

/// Returns true if the operand of the `assume` is used only as the stride of dimensions of one element.
pub fn moves_nothing(func: &Func, assume: &Op) -> bool {
    let mut values: Vec<ValueId> = assume.results.clone();
    let mut strides = 0;
    while let Some(v) = values.pop() {
        for user in func.ops.values().filter(|user| user.operands.contains(&v)) {
            match user.opcode {
                Opcode::Assume => values.extend(&user.results),
                Opcode::MakeTensorView if is_stride_of_one(func, user, v) => strides += 1,
                _ => return false,
            }
        }
    }
    strides > 0
}

/// Returns true if a value is a stride of the view, only of dimensions of one element, and no other operand of it.
fn is_stride_of_one(func: &Func, view: &Op, v: ValueId) -> bool {
    let Some(Type::TensorView(ty)) = view.results.first().map(|&r| func.ty(r)) else { return false };
    let dynamic = ty.strides.iter().zip(&ty.shape).filter(|(stride, _)| stride.is_none());
    let mut sizes = view.group(2).iter().zip(dynamic).filter(|(stride, _)| **stride == v).map(|(_, (_, size))| *size);
    !view.group(0).contains(&v) && !view.group(1).contains(&v) && sizes.all(|size| size == Some(1))
}
