//! What the legaliser asks of an index expression: does it move with an axis, by how much, and can it be negative?

use crate::index::{AxisId, Ix};

/// Whether any node of the expression satisfies the test.
pub fn any(ix: &Ix, test: &mut dyn FnMut(&Ix) -> bool) -> bool {
    if test(ix) {
        return true;
    }
    match ix {
        Ix::Const(_) | Ix::Axis(_) | Ix::Val { .. } | Ix::Block(_) | Ix::Grid(_) => false,
        Ix::Add(a, b)
        | Ix::Sub(a, b)
        | Ix::Mul(a, b)
        | Ix::FloorDiv(a, b)
        | Ix::Mod(a, b)
        | Ix::Min(a, b)
        | Ix::Max(a, b) => any(a, test) || any(b, test),
    }
}

pub fn mentions(ix: &Ix, axis: AxisId) -> bool {
    any(ix, &mut |n| *n == Ix::Axis(axis))
}

pub fn add(a: Ix, b: Ix) -> Ix {
    match (a, b) {
        (Ix::Const(a), Ix::Const(b)) => Ix::Const(a.wrapping_add(b)),
        (Ix::Const(0), x) | (x, Ix::Const(0)) => x,
        (a, b) => Ix::Add(Box::new(a), Box::new(b)),
    }
}

pub fn sub(a: Ix, b: Ix) -> Ix {
    match (a, b) {
        (Ix::Const(a), Ix::Const(b)) => Ix::Const(a.wrapping_sub(b)),
        (x, Ix::Const(0)) => x,
        (a, b) if a == b => Ix::Const(0),
        (a, b) => Ix::Sub(Box::new(a), Box::new(b)),
    }
}

pub fn mul(a: Ix, b: Ix) -> Ix {
    match (a, b) {
        (Ix::Const(a), Ix::Const(b)) => Ix::Const(a.wrapping_mul(b)),
        (Ix::Const(0), _) | (_, Ix::Const(0)) => Ix::Const(0),
        (Ix::Const(1), x) | (x, Ix::Const(1)) => x,
        (a, b) => Ix::Mul(Box::new(a), Box::new(b)),
    }
}

pub fn floor_div(a: Ix, b: Ix) -> Ix {
    match (a, b) {
        (Ix::Const(a), Ix::Const(b)) if b > 0 => Ix::Const(a.div_euclid(b)),
        (x, Ix::Const(1)) => x,
        (a, b) => Ix::FloorDiv(Box::new(a), Box::new(b)),
    }
}

/// How much the expression grows when the axis grows by one, if that is the same everywhere.
pub fn coefficient(ix: &Ix, axis: AxisId) -> Option<Ix> {
    if !mentions(ix, axis) {
        return Some(Ix::Const(0));
    }
    match ix {
        Ix::Axis(_) => Some(Ix::Const(1)),
        Ix::Add(a, b) => Some(add(coefficient(a, axis)?, coefficient(b, axis)?)),
        Ix::Sub(a, b) => Some(sub(coefficient(a, axis)?, coefficient(b, axis)?)),
        Ix::Mul(a, b) if !mentions(a, axis) => Some(mul((**a).clone(), coefficient(b, axis)?)),
        Ix::Mul(a, b) if !mentions(b, axis) => Some(mul(coefficient(a, axis)?, (**b).clone())),
        _ => None,
    }
}

/// Rebuilds the expression with its leaves replaced, folding constants.
pub fn map_leaves(ix: &Ix, leaf: &mut dyn FnMut(&Ix) -> Ix) -> Ix {
    let pair = |a: &Ix, b: &Ix, leaf: &mut dyn FnMut(&Ix) -> Ix| (map_leaves(a, leaf), map_leaves(b, leaf));
    match ix {
        Ix::Const(_) | Ix::Axis(_) | Ix::Val { .. } | Ix::Block(_) | Ix::Grid(_) => leaf(ix),
        Ix::Add(a, b) => {
            let (a, b) = pair(a, b, leaf);
            add(a, b)
        }
        Ix::Sub(a, b) => {
            let (a, b) = pair(a, b, leaf);
            sub(a, b)
        }
        Ix::Mul(a, b) => {
            let (a, b) = pair(a, b, leaf);
            mul(a, b)
        }
        Ix::FloorDiv(a, b) => {
            let (a, b) = pair(a, b, leaf);
            floor_div(a, b)
        }
        Ix::Mod(a, b) => match pair(a, b, leaf) {
            (Ix::Const(a), Ix::Const(b)) if b > 0 => Ix::Const(a.rem_euclid(b)),
            (a, b) => Ix::Mod(Box::new(a), Box::new(b)),
        },
        Ix::Min(a, b) => match pair(a, b, leaf) {
            (Ix::Const(a), Ix::Const(b)) => Ix::Const(a.min(b)),
            (a, b) => Ix::Min(Box::new(a), Box::new(b)),
        },
        Ix::Max(a, b) => match pair(a, b, leaf) {
            (Ix::Const(a), Ix::Const(b)) => Ix::Const(a.max(b)),
            (a, b) => Ix::Max(Box::new(a), Box::new(b)),
        },
    }
}

/// The expression as something plus a constant.
pub fn split_constant(ix: &Ix) -> (Ix, i64) {
    match ix {
        Ix::Const(c) => (Ix::Const(0), *c),
        Ix::Add(a, b) => {
            let ((a, x), (b, y)) = (split_constant(a), split_constant(b));
            (add(a, b), x.wrapping_add(y))
        }
        Ix::Sub(a, b) => {
            let ((a, x), (b, y)) = (split_constant(a), split_constant(b));
            (sub(a, b), x.wrapping_sub(y))
        }
        Ix::Mul(a, b) => match (&**a, &**b) {
            (x, Ix::Const(c)) | (Ix::Const(c), x) => {
                let (rest, k) = split_constant(x);
                (mul(rest, Ix::Const(*c)), k.wrapping_mul(*c))
            }
            _ => (ix.clone(), 0),
        },
        _ => (ix.clone(), 0),
    }
}

/// Whether the expression cannot be negative, whatever its values are.
pub fn is_nonnegative(ix: &Ix) -> bool {
    match ix {
        Ix::Const(c) => *c >= 0,
        Ix::Block(_) | Ix::Grid(_) | Ix::Mod(..) => true,
        Ix::Add(a, b) | Ix::Mul(a, b) | Ix::Min(a, b) => is_nonnegative(a) && is_nonnegative(b),
        Ix::Max(a, b) => is_nonnegative(a) || is_nonnegative(b),
        Ix::FloorDiv(a, _) => is_nonnegative(a),
        Ix::Axis(_) | Ix::Val { .. } | Ix::Sub(..) => false,
    }
}
