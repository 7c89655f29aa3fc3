//! Facts about the leaves of index expressions, and their consequences: intervals, divisibility, decided conditions.

use std::collections::BTreeMap;

use super::poly::Poly;
use super::{AxisId, Cmp, Cond, Ix, Mask, ValId};

/// The integers from `lo` to `hi`, both included. Bounds beyond 2^120 are infinite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    pub lo: i128,
    pub hi: i128,
}

const LIMIT: i128 = 1 << 120;
const INFINITE: i128 = 1 << 125;

fn bound(x: i128) -> i128 {
    if x > LIMIT {
        INFINITE
    } else if x < -LIMIT {
        -INFINITE
    } else {
        x
    }
}

#[allow(clippy::should_implement_trait)]
impl Interval {
    pub const ALL: Interval = Interval { lo: -INFINITE, hi: INFINITE };
    pub const I64: Interval = Interval { lo: i64::MIN as i128, hi: i64::MAX as i128 };

    pub fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo: bound(lo), hi: bound(hi) }
    }
    pub fn point(x: i128) -> Interval {
        Interval::new(x, x)
    }
    /// `lo..hi`, the range of a loop; `None` when it is empty.
    pub fn range(lo: i128, hi: i128) -> Option<Interval> {
        (lo < hi).then(|| Interval::new(lo, hi - 1))
    }
    /// The values of a signed integer of `bits` bits.
    pub fn signed(bits: u32) -> Interval {
        Interval::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    }
    pub fn as_point(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }
    pub fn contains(self, x: i128) -> bool {
        self.lo <= x && x <= self.hi
    }
    pub fn within(self, outer: Interval) -> bool {
        outer.lo <= self.lo && self.hi <= outer.hi
    }
    /// Values in both intervals; `self` if they do not meet.
    pub fn intersect(self, other: Interval) -> Interval {
        let both = Interval { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) };
        if both.lo <= both.hi { both } else { self }
    }
    pub fn union(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub fn add(self, o: Interval) -> Interval {
        Interval::new(self.lo + o.lo, self.hi + o.hi)
    }
    pub fn sub(self, o: Interval) -> Interval {
        Interval::new(self.lo - o.hi, self.hi - o.lo)
    }
    pub fn mul(self, o: Interval) -> Interval {
        let products = [(self.lo, o.lo), (self.lo, o.hi), (self.hi, o.lo), (self.hi, o.hi)];
        let products = products.map(|(a, b)| bound(a.saturating_mul(b)));
        let (mut lo, mut hi) = (products[0], products[0]);
        for p in products {
            lo = lo.min(p);
            hi = hi.max(p);
        }
        Interval { lo, hi }
    }
    /// Floor division; values of the divisor below 1 do not occur.
    pub fn floor_div(self, o: Interval) -> Interval {
        let (small, large) = (o.lo.max(1), o.hi.max(1));
        let div = |a: i128, b: i128| if a.abs() >= INFINITE { a } else { a.div_euclid(b) };
        let lo = div(self.lo, if self.lo < 0 { small } else { large });
        let hi = div(self.hi, if self.hi < 0 { large } else { small });
        Interval { lo, hi }
    }
    pub fn modulo(self, o: Interval) -> Interval {
        let (small, large) = (o.lo.max(1), o.hi.max(1));
        if 0 <= self.lo && self.hi < small {
            return self;
        }
        if small == large && self.lo.abs() < LIMIT && self.hi.abs() < LIMIT {
            let q = self.lo.div_euclid(small);
            if q == self.hi.div_euclid(small) {
                return Interval { lo: self.lo - q * small, hi: self.hi - q * small };
            }
        }
        let hi = if self.lo >= 0 { self.hi.min(large - 1) } else { large - 1 };
        Interval { lo: 0, hi }
    }
    pub fn min(self, o: Interval) -> Interval {
        Interval { lo: self.lo.min(o.lo), hi: self.hi.min(o.hi) }
    }
    pub fn max(self, o: Interval) -> Interval {
        Interval { lo: self.lo.max(o.lo), hi: self.hi.max(o.hi) }
    }
}

/// Intervals and divisibility of leaves. A leaf without a fact may be any 64-bit number; a block id is at least 0, a
/// grid's size at least 1, and a thread below [`MOST_THREADS`].
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub axes: BTreeMap<AxisId, Interval>,
    /// The ends of loops that are not numbers: an axis is less than its end.
    pub ends: BTreeMap<AxisId, Ix>,
    /// The intervals of values read as signed numbers; a zero-extending read has the same interval if it holds no
    /// negative number.
    pub vals: BTreeMap<ValId, Interval>,
    pub blocks: [Option<Interval>; 3],
    pub grids: [Option<Interval>; 3],
    /// Threads of a block.
    pub threads: Option<u32>,
    /// Powers of two that divide a value.
    pub val_divisors: BTreeMap<ValId, u64>,
    pub axis_divisors: BTreeMap<AxisId, u64>,
}

const GRID_MAX: i128 = u32::MAX as i128;

/// The most threads that a block of a GPU can have.
pub const MOST_THREADS: u32 = 1024;

impl Facts {
    pub fn new() -> Facts {
        Facts::default()
    }

    /// Sets the interval of an axis that runs `lo..hi` (an empty loop's body does not matter: any interval is right).
    pub fn set_axis(&mut self, axis: AxisId, lo: &Ix, hi: &Ix) {
        match hi.as_const() {
            Some(_) => _ = self.ends.remove(&axis),
            None => _ = self.ends.insert(axis, hi.clone()),
        }
        let (lo, hi) = (self.range(lo), self.range(hi));
        self.axes.insert(axis, Interval::new(lo.lo, (hi.hi - 1).max(lo.lo)));
    }

    fn leaf(&self, leaf: &Ix) -> Interval {
        let entered = match leaf {
            Ix::Const(c) => return Interval::point(*c as i128),
            Ix::Axis(a) => self.axes.get(a).copied(),
            Ix::Val { val, zext } => self.vals.get(val).copied().filter(|i| !zext || i.lo >= 0),
            Ix::Block(d) => {
                let last = self.grid(*d).hi - 1;
                return self.blocks.get(*d as usize).copied().flatten().unwrap_or(Interval { lo: 0, hi: last });
            }
            Ix::Grid(d) => Some(self.grid(*d)),
            Ix::Thread => Interval::range(0, i128::from(self.threads.unwrap_or(MOST_THREADS))),
            _ => None,
        };
        entered.unwrap_or(Interval::I64)
    }

    fn grid(&self, d: u8) -> Interval {
        self.grids.get(d as usize).copied().flatten().unwrap_or(Interval { lo: 1, hi: GRID_MAX })
    }

    /// The values an expression can have, operation by operation, unbounded by 64 bits.
    pub fn range(&self, ix: &Ix) -> Interval {
        let Some((a, b)) = ix.operands() else { return self.leaf(ix) };
        let (a, b) = (self.range(a), self.range(b));
        match ix {
            Ix::Add(..) => a.add(b),
            Ix::Sub(..) => a.sub(b),
            Ix::Mul(..) => a.mul(b),
            Ix::FloorDiv(..) => a.floor_div(b),
            Ix::Mod(..) => a.modulo(b),
            Ix::Min(..) => a.min(b),
            _ => a.max(b),
        }
    }

    /// As [`Facts::range`], with like terms gathered first, which is tighter where a leaf occurs twice.
    pub fn tight_range(&self, ix: &Ix) -> Interval {
        self.range(ix).intersect(Poly::expanded(ix).range(self))
    }

    /// Returns true if every value of `ix`, and of every operation inside it, is within `bounds`.
    pub fn all_steps_within(&self, ix: &Ix, bounds: Interval) -> bool {
        self.tight_range(ix).within(bounds)
            && ix.operands().is_none_or(|(a, b)| self.all_steps_within(a, bounds) && self.all_steps_within(b, bounds))
    }

    /// The condition's truth, if the intervals decide it.
    pub fn decide(&self, cond: &Cond) -> Option<bool> {
        let difference = Poly::expanded(&cond.lhs).minus(&Poly::expanded(&cond.rhs));
        let apart = self.range(&cond.lhs).sub(self.range(&cond.rhs));
        let d = apart.intersect(difference.range(self));
        let truth = |yes: bool, no: bool| {
            if yes {
                Some(true)
            } else if no {
                Some(false)
            } else {
                None
            }
        };
        match cond.cmp {
            Cmp::Eq => truth(d.as_point() == Some(0), !d.contains(0)),
            Cmp::Ne => truth(!d.contains(0), d.as_point() == Some(0)),
            Cmp::Lt => truth(d.hi < 0, d.lo >= 0),
            Cmp::Le => truth(d.hi <= 0, d.lo > 0),
            Cmp::Gt => truth(d.lo > 0, d.hi <= 0),
            Cmp::Ge => truth(d.lo >= 0, d.hi < 0),
        }
    }

    /// The mask without the conditions known to hold, the others simplified; `None` when one is known to fail.
    pub fn simplify_mask(&self, mask: &Mask) -> Option<Mask> {
        let mut out = Mask { conds: Vec::new(), vals: mask.vals.clone() };
        for cond in &mask.conds {
            match self.decide(cond) {
                Some(true) => {}
                Some(false) => return None,
                None => {
                    let (lhs, rhs) = (super::simplify(&cond.lhs, self), super::simplify(&cond.rhs, self));
                    let cond = Cond { lhs, cmp: cond.cmp, rhs };
                    if !out.conds.contains(&cond) {
                        out.conds.push(cond);
                    }
                }
            }
        }
        Some(out)
    }

    /// A power of two known to divide every value of the expression (2^62 for 0).
    pub fn divisor(&self, ix: &Ix) -> u64 {
        const MOST: u64 = 1 << 62;
        let power = |n: u64| if n == 0 { MOST } else { (1u64 << n.trailing_zeros()).min(MOST) };
        match ix {
            Ix::Const(c) => power(c.unsigned_abs()),
            Ix::Axis(a) => power(self.axis_divisors.get(a).copied().unwrap_or(1).max(1)),
            Ix::Val { val, .. } => power(self.val_divisors.get(val).copied().unwrap_or(1).max(1)),
            Ix::Block(_) | Ix::Grid(_) | Ix::Thread => 1,
            Ix::Add(a, b) | Ix::Sub(a, b) | Ix::Mod(a, b) | Ix::Min(a, b) | Ix::Max(a, b) => {
                self.divisor(a).min(self.divisor(b))
            }
            Ix::Mul(a, b) => self.divisor(a).saturating_mul(self.divisor(b)).min(MOST),
            Ix::FloorDiv(a, b) => {
                let (whole, by) = (self.divisor(a), b.as_const().unwrap_or(0));
                if by > 0 && (by as u64).is_power_of_two() { (whole / by as u64).max(1) } else { 1 }
            }
        }
    }
}
