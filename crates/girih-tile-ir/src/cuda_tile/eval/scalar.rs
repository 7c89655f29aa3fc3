//! The scalar operation of an elementwise tile operation, and its application with poison.

use super::value::{Origin, Tile};
use crate::cuda_tile::ir::{Attr, AttrKey, Elem, Func, Op, Opcode, Overflow, TileType};
use crate::cuda_tile::ops::scalar_op;
use crate::num::op::{ScalarOp, Signedness};
use crate::num::{DType, eval};

/// An elementwise operation: the scalar operation, its type, and the overflow promise that also makes a result
/// undefined.
#[derive(Clone, Copy, Debug)]
pub struct Elementwise {
    pub op: ScalarOp,
    pub ty: DType,
    pub overflow: Overflow,
    /// True if results are always defined.
    total: bool,
}

impl Elementwise {
    /// `None` if the operation is not elementwise (or its operands break the rules of the verifier).
    pub fn of(func: &Func, op: &Op) -> Option<Elementwise> {
        let ty = elem_dtype(func, op, if op.opcode == Opcode::Select { 1 } else { 0 })?;
        let (Elem::Num(to) | Elem::Ptr(to)) = func.tile_ty(*op.results.first()?)?.elem;
        let scalar = match op.opcode {
            Opcode::OptimizationBarrier | Opcode::Reshape => ScalarOp::Copy,
            // The evaluator handles addresses separately.
            Opcode::Offset => return None,
            _ => match scalar_op(op, to)? {
                ScalarOp::Bitcast { .. } | ScalarOp::IntToPtr { .. } | ScalarOp::PtrToInt => ScalarOp::Copy,
                scalar => scalar,
            },
        };
        let overflow = match op.attr(AttrKey::Overflow) {
            Some(Attr::Overflow(o)) => *o,
            _ => Overflow::None,
        };
        let partial = matches!(
            scalar,
            ScalarOp::DivI { .. }
                | ScalarOp::RemI { .. }
                | ScalarOp::Shl
                | ScalarOp::Shr { .. }
                | ScalarOp::FToI { .. }
        );
        let total = !partial || op.flag(AttrKey::Saturating);
        Some(Elementwise { op: scalar, ty, overflow, total })
    }

    /// The value that native code gives.
    pub fn value(&self, args: &[u64]) -> u64 {
        match self.op {
            ScalarOp::Copy => args[0],
            ScalarOp::Select => args[if args[0] & 1 == 1 { 1 } else { 2 }],
            op => eval::apply(op, self.ty, args),
        }
    }

    /// The origin of the result's poison: that of the operands, or `here` if the operation itself makes the result
    /// undefined.
    pub fn origin(&self, args: &[u64], origins: &[Origin], here: Origin) -> Origin {
        if matches!(self.op, ScalarOp::Select) {
            let arm = if args[0] & 1 == 1 { 1 } else { 2 };
            return if origins[0] != 0 { origins[0] } else { origins[arm] };
        }
        if let Some(&o) = origins.iter().find(|&&o| o != 0) {
            return if self.is_settled(args, origins) { 0 } else { o };
        }
        let undefined = !self.total && eval::is_undefined(self.op, self.ty, args) || self.overflows(args);
        if undefined { here } else { 0 }
    }

    /// Returns true if a defined operand alone decides the result: a zero in a conjunction, all ones in a disjunction.
    fn is_settled(&self, args: &[u64], origins: &[Origin]) -> bool {
        let decisive = match self.op {
            ScalarOp::And => 0,
            ScalarOp::Or => self.ty.mask(),
            _ => return false,
        };
        args.iter().zip(origins).any(|(&a, &o)| o == 0 && a == decisive)
    }

    fn may_be_undefined(&self) -> bool {
        !self.total || self.overflow != Overflow::None
    }

    /// Applies the operation to every element.
    pub fn tile(&self, ty: &TileType, args: &[&Tile], here: Origin) -> Tile {
        if matches!(self.op, ScalarOp::Copy) {
            return args[0].retyped(ty);
        }
        let n = ty.elements() as usize;
        let count = if args.iter().all(|a| a.is_splat()) { 1 } else { n };
        let k = args.len().min(3);
        let mut scalars = [0u64; 3];
        let bits: Vec<u64> = (0..count)
            .map(|i| {
                for (s, a) in scalars.iter_mut().zip(args) {
                    *s = a.get(i);
                }
                self.value(&scalars[..k])
            })
            .collect();
        let out = Tile::new(ty, bits);
        let poisoned = args.iter().any(|a| a.poison.is_some());
        if !poisoned && !self.may_be_undefined() {
            return out;
        }
        let spread = args.iter().any(|a| a.poison.as_ref().is_some_and(|p| p.len() > 1));
        let count = if spread { n } else { count };
        let mut origins = [0; 3];
        let poison = (0..count)
            .map(|i| {
                for (j, a) in args.iter().take(3).enumerate() {
                    scalars[j] = a.get(i);
                    origins[j] = a.origin(i);
                }
                self.origin(&scalars[..k], &origins[..k], here)
            })
            .collect();
        out.with_poison(poison)
    }

    /// Returns true if the operation breaks its `overflow<...>` promise.
    fn overflows(&self, args: &[u64]) -> bool {
        let (signed, unsigned) = match self.overflow {
            Overflow::None => return false,
            Overflow::NoSignedWrap => (true, false),
            Overflow::NoUnsignedWrap => (false, true),
            Overflow::NoWrap => (true, true),
        };
        (signed && self.wraps(args, Signedness::Signed)) || (unsigned && self.wraps(args, Signedness::Unsigned))
    }

    fn wraps(&self, args: &[u64], sign: Signedness) -> bool {
        let x = integer(self.ty, sign, args[0]);
        let y = args.get(1).map(|&b| integer(self.ty, sign, b)).unwrap_or(0);
        let to = match self.op {
            ScalarOp::TruncI { to } => to,
            _ => self.ty,
        };
        let exact = match self.op {
            ScalarOp::AddI => x + y,
            ScalarOp::SubI => x - y,
            ScalarOp::MulI => match x.checked_mul(y) {
                Some(p) => p,
                None => return true,
            },
            ScalarOp::NegI => -x,
            ScalarOp::TruncI { .. } => x,
            ScalarOp::Shl => {
                let by = args[1];
                if by >= self.ty.bits() as u64 {
                    return false;
                }
                x << by
            }
            _ => return false,
        };
        let (lo, hi) = range(to, sign);
        exact < lo || exact > hi
    }
}

/// The integer with these bits.
pub fn integer(ty: DType, sign: Signedness, bits: u64) -> i128 {
    let bits = bits & ty.mask();
    match sign {
        Signedness::Unsigned => bits as i128,
        Signedness::Signed => {
            let shift = 64 - ty.bits();
            (((bits << shift) as i64) >> shift) as i128
        }
    }
}

/// The smallest and largest integer of a type.
pub fn range(ty: DType, sign: Signedness) -> (i128, i128) {
    let n = ty.bits();
    match sign {
        Signedness::Unsigned => (0, (1i128 << n) - 1),
        Signedness::Signed => (-(1i128 << (n - 1)), (1i128 << (n - 1)) - 1),
    }
}

fn elem_dtype(func: &Func, op: &Op, operand: usize) -> Option<DType> {
    match func.tile_ty(*op.operands.get(operand)?)?.elem {
        Elem::Num(d) | Elem::Ptr(d) => Some(d),
    }
}
