//! Index expressions at one point of a launch.

use std::collections::BTreeMap;

use crate::loops::ir::{AxisId, For, Ix, Kernel, Ty, ValId};

/// A launch: the kernel, its grid and the values of its parameters.
pub(super) struct Launched<'a> {
    pub kernel: &'a Kernel,
    pub grid: [u32; 3],
    pub slots: &'a [u64],
}

/// A point: the block, then the axes of the loops around, outermost first, as iteration numbers.
pub(super) struct Point {
    pub block: [i128; 3],
    pub axes: BTreeMap<AxisId, i128>,
}

impl Point {
    /// Block 0, in no loop.
    pub fn first() -> Point {
        Point { block: [0; 3], axes: BTreeMap::new() }
    }
}

impl Launched<'_> {
    /// Steps into a loop at its first iteration; returns its trip count.
    pub fn enter(&self, l: &For, point: &mut Point) -> Option<f64> {
        let (lo, hi, step) = (self.eval(&l.lo, point)?, self.eval(&l.hi, point)?, self.eval(&l.step, point)?);
        point.axes.insert(l.axis, lo);
        (step > 0).then(|| ((hi - lo).max(0) as f64 / step as f64).ceil())
    }

    pub fn eval(&self, ix: &Ix, point: &Point) -> Option<i128> {
        let two = |a: &Ix, b: &Ix| Some((self.eval(a, point)?, self.eval(b, point)?));
        match ix {
            Ix::Const(c) => Some(i128::from(*c)),
            Ix::Axis(a) => point.axes.get(a).copied(),
            Ix::Val { val, zext } => self.param(*val, *zext),
            Ix::Block(d) => point.block.get(usize::from(*d)).copied(),
            Ix::Grid(d) => self.grid.get(usize::from(*d)).map(|&g| i128::from(g)),
            Ix::Thread => None,
            Ix::Add(a, b) => two(a, b).and_then(|(a, b)| a.checked_add(b)),
            Ix::Sub(a, b) => two(a, b).and_then(|(a, b)| a.checked_sub(b)),
            Ix::Mul(a, b) => two(a, b).and_then(|(a, b)| a.checked_mul(b)),
            Ix::FloorDiv(a, b) => two(a, b).filter(|&(_, b)| b > 0).map(|(a, b)| a.div_euclid(b)),
            Ix::Mod(a, b) => two(a, b).filter(|&(_, b)| b > 0).map(|(a, b)| a.rem_euclid(b)),
            Ix::Min(a, b) => two(a, b).map(|(a, b)| a.min(b)),
            Ix::Max(a, b) => two(a, b).map(|(a, b)| a.max(b)),
        }
    }

    fn param(&self, val: ValId, zext: bool) -> Option<i128> {
        let i = self.kernel.params.iter().position(|p| p.val == val)?;
        let Ty::Num(dtype) = self.kernel.params.get(i)?.ty else { return None };
        let bits = *self.slots.get(i)? & dtype.mask();
        let shift = 64 - dtype.bits();
        Some(if zext { i128::from(bits) } else { i128::from((bits << shift) as i64 >> shift) })
    }
}
