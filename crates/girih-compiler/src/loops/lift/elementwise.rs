//! Operations that work element by element, and the table that says which scalar operation each one is.

use super::{Lift, Result1, bug, operand, result};
use crate::cuda_tile::ir::{Attr, AttrKey, Op, Opcode, Predicate, Rounding};
use crate::loops::ir::Ty;
use crate::num::ScalarOp;

impl Lift<'_> {
    pub(super) fn elementwise(&mut self, op: &Op) -> Result1<()> {
        let result = result(op, 0)?;
        let ty = self.elem(result)?;
        let Some(scalar) = scalar_op(op, ty) else { return Err(bug("an operation the lift does not know", op.span)) };
        operand(op, 0)?;
        self.define(result, |l, idx| {
            let args = op.operands.iter().map(|&v| l.at(v, idx)).collect::<Result1<Vec<_>>>()?;
            Ok(l.compute(scalar, args, ty))
        })
    }
}

fn predicate(op: &Op) -> Predicate {
    match op.attr(AttrKey::Predicate) {
        Some(Attr::Predicate(p)) => *p,
        _ => Predicate::Equal,
    }
}

/// The scalar operation of an element-wise operation whose result has elements of type `result`.
pub(super) fn scalar_op(op: &Op, result: Ty) -> Option<ScalarOp> {
    use Opcode as O;
    use ScalarOp as S;
    let ftz = op.flag(AttrKey::FlushToZero);
    let nan = op.flag(AttrKey::PropagateNan);
    let rounding = op.rounding(Rounding::NearestEven);
    let sign = op.signedness(AttrKey::Signedness);
    let to = match result {
        Ty::Num(d) | Ty::Ptr(d) => d,
    };
    Some(match op.opcode {
        O::ExpExternElementwise => op.library_function()?,
        O::AddF => S::AddF { rounding, ftz },
        O::SubF => S::SubF { rounding, ftz },
        O::MulF => S::MulF { rounding, ftz },
        O::DivF => S::DivF { rounding, ftz },
        O::Fma => S::Fma { rounding, ftz },
        O::Sqrt => S::Sqrt { rounding, ftz },
        O::Rsqrt => S::Rsqrt { ftz },
        O::MaxF => S::MaxF { nan, ftz },
        O::MinF => S::MinF { nan, ftz },
        O::NegF => S::NegF,
        O::AbsF => S::AbsF,
        O::Ceil => S::Ceil,
        O::Floor => S::Floor,
        O::RemF => S::RemF,
        O::Exp => S::Exp,
        O::Exp2 => S::Exp2 { ftz },
        O::Log => S::Log,
        O::Log2 => S::Log2,
        O::Sin => S::Sin,
        O::Cos => S::Cos,
        O::Tan => S::Tan,
        O::SinH => S::Sinh,
        O::CosH => S::Cosh,
        O::TanH => S::Tanh,
        O::Pow => S::Pow,
        O::PowI => S::PowI,
        O::Atan2 => S::Atan2,
        O::CmpF => {
            S::CmpF { pred: predicate(op), ordered: !matches!(op.attr(AttrKey::Ordering), Some(Attr::Ordered(false))) }
        }
        O::AddI => S::AddI,
        O::SubI => S::SubI,
        O::MulI => S::MulI,
        O::MulHiI => S::MulHi,
        O::DivI => S::DivI { sign, rounding: op.rounding(Rounding::Zero) },
        O::RemI => S::RemI { sign },
        O::MaxI => S::MaxI { sign },
        O::MinI => S::MinI { sign },
        O::ShlI => S::Shl,
        O::ShrI => S::Shr { sign },
        O::NegI => S::NegI,
        O::AbsI => S::AbsI,
        O::AndI => S::And,
        O::OrI => S::Or,
        O::XorI => S::Xor,
        O::CmpI => S::CmpI { pred: predicate(op), sign },
        O::Select => S::Select,
        O::FToF => S::FToF { to, rounding },
        O::FToI => S::FToI { to, sign },
        O::IToF => S::IToF { to, sign },
        O::ExtI => S::ExtI { to, sign },
        O::TruncI => S::TruncI { to },
        O::Bitcast => S::Bitcast { to },
        O::Offset => S::PtrAdd,
        O::PtrToInt => S::PtrToInt,
        O::IntToPtr | O::PtrToPtr => S::IntToPtr { to },
        _ => return None,
    })
}
