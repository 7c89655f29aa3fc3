//! Makes index expressions, with the foldings that never change a value, and inspects them.

use super::{AxisId, Cmp, Cond, Ix, Mask, ValId};

impl Ix {
    pub fn val(val: ValId) -> Ix {
        Ix::Val { val, zext: false }
    }

    pub fn as_const(&self) -> Option<i64> {
        if let Ix::Const(c) = self { Some(*c) } else { None }
    }

    pub fn is_const(&self, value: i64) -> bool {
        self.as_const() == Some(value)
    }

    /// The number of an element of a row-major array.
    pub fn row_major(idx: &[Ix], shape: &[u64]) -> Ix {
        let step = |sum, (ix, &n): (&Ix, &u64)| Ix::add(Ix::mul(sum, Ix::Const(n as i64)), ix.clone());
        idx.iter().zip(shape).fold(Ix::Const(0), step)
    }

    /// Splits a position along several axes into one position per axis; the last axis runs fastest.
    pub fn unravel(&self, extents: &[Ix]) -> Vec<Ix> {
        let mut out = vec![];
        let mut stride = Ix::Const(1);
        for (i, n) in extents.iter().enumerate().rev() {
            let q = Ix::floor_div(self.clone(), stride.clone());
            out.push(if i == 0 { q } else { Ix::modulo(q, n.clone()) });
            stride = Ix::mul(stride, n.clone());
        }
        out.reverse();
        out
    }

    /// `a + b`; `x + 0` is `x`, constants fold and gather on the right.
    #[allow(clippy::should_implement_trait)]
    pub fn add(a: Ix, b: Ix) -> Ix {
        match (a, b) {
            (Ix::Const(x), Ix::Const(y)) if x.checked_add(y).is_some() => Ix::Const(x + y),
            (a, Ix::Const(0)) => a,
            (Ix::Const(0), b) => b,
            (Ix::Add(x, c), Ix::Const(d)) if c.as_const().is_some_and(|c| c.checked_add(d).is_some()) => {
                Ix::add(*x, Ix::Const(c.as_const().unwrap_or(0) + d))
            }
            (Ix::Const(c), b) if b.as_const().is_none() => Ix::add(b, Ix::Const(c)),
            (a, Ix::Const(c)) if c < 0 && c != i64::MIN => Ix::Sub(Box::new(a), Box::new(Ix::Const(-c))),
            (a, b) => Ix::Add(Box::new(a), Box::new(b)),
        }
    }

    /// `a - b`; `x - 0` is `x`, `x - x` is 0.
    #[allow(clippy::should_implement_trait)]
    pub fn sub(a: Ix, b: Ix) -> Ix {
        match (a, b) {
            (Ix::Const(x), Ix::Const(y)) if x.checked_sub(y).is_some() => Ix::Const(x - y),
            (a, Ix::Const(0)) => a,
            (a, b) if a == b => Ix::Const(0),
            (a, b) => Ix::Sub(Box::new(a), Box::new(b)),
        }
    }

    /// `a * b`; constants fold and go on the right.
    #[allow(clippy::should_implement_trait)]
    pub fn mul(a: Ix, b: Ix) -> Ix {
        match (a, b) {
            (Ix::Const(x), Ix::Const(y)) if x.checked_mul(y).is_some() => Ix::Const(x * y),
            (_, Ix::Const(0)) | (Ix::Const(0), _) => Ix::Const(0),
            (a, Ix::Const(1)) => a,
            (Ix::Const(1), b) => b,
            (Ix::Mul(x, c), Ix::Const(d)) if c.as_const().is_some_and(|c| c.checked_mul(d).is_some()) => {
                Ix::mul(*x, Ix::Const(c.as_const().unwrap_or(1) * d))
            }
            (Ix::Const(c), b) if b.as_const().is_none() => Ix::mul(b, Ix::Const(c)),
            (a, b) => Ix::Mul(Box::new(a), Box::new(b)),
        }
    }

    /// `a // b`, rounding towards minus infinity. A constant `b` that is not positive, such as the extent of an array without
    /// elements, gives 0, as in [`Ix::eval`].
    pub fn floor_div(a: Ix, b: Ix) -> Ix {
        match (a, b) {
            (Ix::Const(x), Ix::Const(y)) if y > 0 => Ix::Const(x.div_euclid(y)),
            (a, Ix::Const(1)) => a,
            (Ix::Const(0), _) => Ix::Const(0),
            (_, Ix::Const(..=0)) => Ix::Const(0),
            (a, b) => Ix::FloorDiv(Box::new(a), Box::new(b)),
        }
    }

    /// `a % b`, the remainder of [`Ix::floor_div`].
    pub fn modulo(a: Ix, b: Ix) -> Ix {
        match (a, b) {
            (Ix::Const(x), Ix::Const(y)) if y > 0 => Ix::Const(x.rem_euclid(y)),
            (_, Ix::Const(..=1)) | (Ix::Const(0), _) => Ix::Const(0),
            (a, b) => Ix::Mod(Box::new(a), Box::new(b)),
        }
    }

    /// The quotient rounding up, `(a + b - 1) // b`.
    pub fn ceil_div(a: Ix, b: Ix) -> Ix {
        let over = Ix::sub(b.clone(), Ix::Const(1));
        Ix::floor_div(Ix::add(a, over), b)
    }

    pub fn min(a: Ix, b: Ix) -> Ix {
        Ix::extreme(true, a, b)
    }

    pub fn max(a: Ix, b: Ix) -> Ix {
        Ix::extreme(false, a, b)
    }

    /// The least or the greatest of two operands. In a chain of these at most one operand is a constant, and all are
    /// different.
    fn extreme(least: bool, a: Ix, b: Ix) -> Ix {
        let of = |x: i64, y: i64| Ix::Const(if least { x.min(y) } else { x.max(y) });
        if let (Ix::Const(x), Ix::Const(y)) = (&a, &b) {
            return of(*x, *y);
        }
        if a == b {
            return a;
        }
        for (one, other) in [(&a, &b), (&b, &a)] {
            let (p, q) = match other {
                Ix::Min(p, q) if least => (&**p, &**q),
                Ix::Max(p, q) if !least => (&**p, &**q),
                _ => continue,
            };
            match (one, p, q) {
                _ if one == p || one == q => return other.clone(),
                (Ix::Const(x), Ix::Const(y), _) => return Ix::extreme(least, of(*x, *y), q.clone()),
                (Ix::Const(x), _, Ix::Const(y)) => return Ix::extreme(least, p.clone(), of(*x, *y)),
                _ => {}
            }
        }
        let (a, b) = (Box::new(a), Box::new(b));
        if least { Ix::Min(a, b) } else { Ix::Max(a, b) }
    }

    /// The two operands of an operation.
    pub fn operands(&self) -> Option<(&Ix, &Ix)> {
        crate::base::work::look();
        match self {
            Ix::Add(a, b)
            | Ix::Sub(a, b)
            | Ix::Mul(a, b)
            | Ix::FloorDiv(a, b)
            | Ix::Mod(a, b)
            | Ix::Min(a, b)
            | Ix::Max(a, b) => Some((a, b)),
            _ => None,
        }
    }

    /// The number of its leaves and operations.
    pub fn size(&self) -> usize {
        let (mut count, mut left) = (0, vec![self]);
        while let Some(ix) = left.pop() {
            count += 1;
            if let Some((a, b)) = ix.operands() {
                left.extend([a, b]);
            }
        }
        count
    }

    /// Calls `f` on every leaf, left to right.
    pub fn for_each_leaf(&self, f: &mut dyn FnMut(&Ix)) {
        match self.operands() {
            Some((a, b)) => {
                a.for_each_leaf(f);
                b.for_each_leaf(f);
            }
            None => f(self),
        }
    }

    /// The expression with every leaf replaced for which `f` gives an expression; foldings above it are redone.
    pub fn replace_leaves(&self, f: &mut dyn FnMut(&Ix) -> Option<Ix>) -> Ix {
        self.replaced(f).unwrap_or_else(|| self.clone())
    }

    /// The expression with replaced leaves; `None` where it is the same. Only what changes is copied.
    fn replaced(&self, f: &mut dyn FnMut(&Ix) -> Option<Ix>) -> Option<Ix> {
        let Some((a, b)) = self.operands() else { return f(self).filter(|leaf| leaf != self) };
        let (x, y) = (a.replaced(f).filter(|x| x != a), b.replaced(f).filter(|y| y != b));
        if x.is_none() && y.is_none() {
            return None;
        }
        Some(self.with_operands(x.unwrap_or_else(|| a.clone()), y.unwrap_or_else(|| b.clone())))
    }

    /// The same operation on other operands, folded.
    pub fn with_operands(&self, x: Ix, y: Ix) -> Ix {
        match self {
            Ix::Add(..) => Ix::add(x, y),
            Ix::Sub(..) => Ix::sub(x, y),
            Ix::Mul(..) => Ix::mul(x, y),
            Ix::FloorDiv(..) => Ix::floor_div(x, y),
            Ix::Mod(..) => Ix::modulo(x, y),
            Ix::Min(..) => Ix::min(x, y),
            Ix::Max(..) => Ix::max(x, y),
            leaf => leaf.clone(),
        }
    }

    /// The value of the expression, where `leaf` gives the values of axes, values, block ids and the grid; 64-bit
    /// arithmetic that wraps. A divisor that is not positive, which no index expression has, gives 0.
    pub fn eval(&self, leaf: &dyn Fn(&Ix) -> i64) -> i64 {
        let Some((a, b)) = self.operands() else { return self.as_const().unwrap_or_else(|| leaf(self)) };
        let (a, b) = (a.eval(leaf), b.eval(leaf));
        match self {
            Ix::Add(..) => a.wrapping_add(b),
            Ix::Sub(..) => a.wrapping_sub(b),
            Ix::Mul(..) => a.wrapping_mul(b),
            Ix::FloorDiv(..) if b > 0 => a.div_euclid(b),
            Ix::Mod(..) if b > 0 => a.rem_euclid(b),
            Ix::FloorDiv(..) | Ix::Mod(..) => 0,
            Ix::Min(..) => a.min(b),
            _ => a.max(b),
        }
    }

    /// Replaces axes.
    pub fn subst_axes(&self, f: &mut dyn FnMut(AxisId) -> Option<Ix>) -> Ix {
        self.replace_leaves(&mut |leaf| if let Ix::Axis(a) = leaf { f(*a) } else { None })
    }

    /// Replaces axis n by the nth of these coordinates.
    pub fn at_coords(&self, coords: &[Ix]) -> Ix {
        self.subst_axes(&mut |a| coords.get(a.0 as usize).cloned())
    }

    /// Replaces values; the function sees whether the use zero-extends.
    pub fn subst_vals(&self, f: &mut dyn FnMut(ValId, bool) -> Option<Ix>) -> Ix {
        self.replace_leaves(&mut |leaf| if let Ix::Val { val, zext } = leaf { f(*val, *zext) } else { None })
    }

    pub fn has_axis(&self, axis: AxisId) -> bool {
        self.any_leaf(&mut |l| *l == Ix::Axis(axis))
    }

    pub fn any_leaf(&self, f: &mut dyn FnMut(&Ix) -> bool) -> bool {
        match self.operands() {
            Some((a, b)) => a.any_leaf(f) || b.any_leaf(f),
            None => f(self),
        }
    }

    /// The expression as `coefficient * axis + rest`, where neither contains the axis; `None` if it is not linear in
    /// the axis: the axis is under a division, remainder, minimum or maximum, or multiplied by itself.
    /// `(bx*128 + i)*K + j` is `K` times `i`.
    pub fn linear(&self, axis: AxisId) -> Option<(Ix, Ix)> {
        if !self.has_axis(axis) {
            return Some((Ix::Const(0), self.clone()));
        }
        match self {
            Ix::Axis(_) => Some((Ix::Const(1), Ix::Const(0))),
            Ix::Add(a, b) => {
                let ((ca, ra), (cb, rb)) = (a.linear(axis)?, b.linear(axis)?);
                Some((Ix::add(ca, cb), Ix::add(ra, rb)))
            }
            Ix::Sub(a, b) => {
                let ((ca, ra), (cb, rb)) = (a.linear(axis)?, b.linear(axis)?);
                Some((Ix::sub(ca, cb), Ix::sub(ra, rb)))
            }
            Ix::Mul(a, b) => {
                let (varying, factor) = match (a.has_axis(axis), b.has_axis(axis)) {
                    (true, false) => (a, b),
                    (false, true) => (b, a),
                    _ => return None,
                };
                let (c, r) = varying.linear(axis)?;
                Some((Ix::mul(c, (**factor).clone()), Ix::mul(r, (**factor).clone())))
            }
            _ => None,
        }
    }

    /// The axes in the expression, in order of first occurrence.
    pub fn axes(&self) -> Vec<AxisId> {
        let mut out = Vec::new();
        self.for_each_leaf(&mut |l| {
            if let Ix::Axis(a) = l
                && !out.contains(a)
            {
                out.push(*a);
            }
        });
        out
    }

    /// The values in the expression, in order of first occurrence.
    pub fn vals(&self) -> Vec<ValId> {
        let mut out = Vec::new();
        self.for_each_leaf(&mut |l| {
            if let Ix::Val { val, .. } = l
                && !out.contains(val)
            {
                out.push(*val);
            }
        });
        out
    }
}

impl Cmp {
    pub fn holds<T: Ord>(self, a: T, b: T) -> bool {
        match self {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
        }
    }

    /// The comparison that is true exactly when this one is false.
    pub fn negate(self) -> Cmp {
        match self {
            Cmp::Eq => Cmp::Ne,
            Cmp::Ne => Cmp::Eq,
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
        }
    }

    /// The comparison with its sides exchanged: `a cmp b` is `b cmp.swap() a`.
    pub fn swap(self) -> Cmp {
        match self {
            Cmp::Eq | Cmp::Ne => self,
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
        }
    }
}

impl Cond {
    pub fn new(lhs: Ix, cmp: Cmp, rhs: Ix) -> Cond {
        Cond { lhs, cmp, rhs }
    }

    pub fn eval(&self, leaf: &dyn Fn(&Ix) -> i64) -> bool {
        self.cmp.holds(self.lhs.eval(leaf), self.rhs.eval(leaf))
    }

    pub fn negate(&self) -> Cond {
        Cond { cmp: self.cmp.negate(), ..self.clone() }
    }

    pub fn replace_leaves(&self, f: &mut dyn FnMut(&Ix) -> Option<Ix>) -> Cond {
        Cond { lhs: self.lhs.replace_leaves(f), cmp: self.cmp, rhs: self.rhs.replace_leaves(f) }
    }
}

impl Mask {
    /// The conjunction of two masks, each condition once.
    pub fn and(&self, other: &Mask) -> Mask {
        let mut out = self.clone();
        for c in &other.conds {
            if !out.conds.contains(c) {
                out.conds.push(c.clone());
            }
        }
        for v in &other.vals {
            if !out.vals.contains(v) {
                out.vals.push(*v);
            }
        }
        out
    }

    pub fn replace_leaves(&self, f: &mut dyn FnMut(&Ix) -> Option<Ix>) -> Mask {
        Mask { conds: self.conds.iter().map(|c| c.replace_leaves(f)).collect(), vals: self.vals.clone() }
    }
}

impl std::ops::Add for Ix {
    type Output = Ix;
    fn add(self, other: Ix) -> Ix {
        Ix::add(self, other)
    }
}
impl std::ops::Sub for Ix {
    type Output = Ix;
    fn sub(self, other: Ix) -> Ix {
        Ix::sub(self, other)
    }
}
impl std::ops::Mul for Ix {
    type Output = Ix;
    fn mul(self, other: Ix) -> Ix {
        Ix::mul(self, other)
    }
}
impl From<i64> for Ix {
    fn from(value: i64) -> Ix {
        Ix::Const(value)
    }
}
impl From<AxisId> for Ix {
    fn from(axis: AxisId) -> Ix {
        Ix::Axis(axis)
    }
}
