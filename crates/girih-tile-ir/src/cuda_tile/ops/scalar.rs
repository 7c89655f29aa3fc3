//! The scalar operation that each element-wise operation applies.
//!
//! ```text
//! addf %x, %y rounding<zero>      AddF { rounding: Zero, ftz: false }
//! reshape %x                      None
//! ```

use crate::cuda_tile::ir::{Attr, AttrKey, Op, Opcode, Predicate, Rounding};
use crate::num::{DType, ScalarOp};

fn predicate(op: &Op) -> Predicate {
    match op.attr(AttrKey::Predicate) {
        Some(Attr::Predicate(p)) => *p,
        _ => Predicate::Equal,
    }
}

/// The scalar operation of an element-wise operation; `to` is the type of the result's elements, or for pointers the
/// type that they point to.
pub fn scalar_op(op: &Op, to: DType) -> Option<ScalarOp> {
    use Opcode as O;
    use ScalarOp as S;
    let ftz = op.flag(AttrKey::FlushToZero);
    let nan = op.flag(AttrKey::PropagateNan);
    let rounding = op.rounding(Rounding::NearestEven);
    let sign = op.signedness(AttrKey::Signedness);
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
