//! Index expressions and masks as code over numbered slots.
//!
//! In: [`Ix`] and [`Mask`], and a [`Leaves`] that says which slot holds each leaf. Out: [`Expr`] and [`MaskCode`],
//! whose `value` and `holds` take the slots alone. Where threads run side by side, a slot holds one number per lane,
//! and `lanes` gives the result in each; one thread is the case of one lane.

use crate::loops::ir::{AxisId, Cmp, Ix, Mask, ValId};

pub type Slot = u32;

/// An index expression; leaves are gathered into sums.
pub enum Expr {
    /// `base + sum of coeff * slot`, each slot sign-extended from `64 - shift` bits.
    Linear {
        base: i64,
        terms: Box<[Term]>,
    },
    Add(Box<(Expr, Expr)>),
    Sub(Box<(Expr, Expr)>),
    Mul(Box<(Expr, Expr)>),
    FloorDiv(Box<(Expr, Expr)>),
    Mod(Box<(Expr, Expr)>),
    /// By a power of two: floor division shifts, the remainder is the low bits.
    Shift(Box<Expr>, u32),
    LowBits(Box<Expr>, i64),
    Min(Box<(Expr, Expr)>),
    Max(Box<(Expr, Expr)>),
}

#[derive(Clone, Copy)]
pub struct Term {
    pub slot: Slot,
    pub shift: u8,
    pub coeff: i64,
}

pub struct MaskCode {
    conds: Box<[(Expr, Cmp, Expr)]>,
    vals: Box<[Slot]>,
}

/// The slots of the leaves of expressions.
pub trait Leaves {
    fn axis(&self, axis: AxisId) -> Result<Slot, String>;
    /// The slot of a scalar, and the bits of its type.
    fn integer(&self, val: ValId) -> Result<(Slot, u32), String>;
    /// The slots of the block id, x first, and behind them of the grid.
    fn block(&self) -> Slot;
    /// The slot of the thread's number.
    fn thread(&self) -> Result<Slot, String> {
        Err("only Kernel IR has threads".to_string())
    }
}

impl Expr {
    pub fn compile(ix: &Ix, leaves: &dyn Leaves) -> Result<Expr, String> {
        let leaf = |slot, shift| Expr::Linear { base: 0, terms: Box::new([Term { slot, shift, coeff: 1 }]) };
        let Some((a, b)) = ix.operands() else {
            return Ok(match ix {
                Ix::Axis(a) => leaf(leaves.axis(*a)?, 0),
                Ix::Val { val, zext } => {
                    let (slot, bits) = leaves.integer(*val)?;
                    leaf(slot, if *zext { 0 } else { 64 - bits as u8 })
                }
                Ix::Block(d) | Ix::Grid(d) if *d > 2 => return Err("a grid has three dimensions".to_string()),
                Ix::Block(d) => leaf(leaves.block() + u32::from(*d), 0),
                Ix::Grid(d) => leaf(leaves.block() + 3 + u32::from(*d), 0),
                Ix::Thread => leaf(leaves.thread()?, 0),
                ix => Expr::Linear { base: ix.as_const().unwrap_or(0), terms: Box::new([]) },
            });
        };
        let (a, b) = (Expr::compile(a, leaves)?, Expr::compile(b, leaves)?);
        Ok(match (ix, a, b) {
            (Ix::Add(..) | Ix::Sub(..), Expr::Linear { base: x, terms: s }, Expr::Linear { base: y, terms: t }) => {
                let sign = if matches!(ix, Ix::Add(..)) { 1 } else { -1 };
                let mut terms = s.into_vec();
                terms.extend(t.iter().map(|t| Term { coeff: t.coeff.wrapping_mul(sign), ..*t }));
                Expr::Linear { base: x.wrapping_add(y.wrapping_mul(sign)), terms: terms.into() }
            }
            (Ix::Mul(..), Expr::Linear { base, terms }, Expr::Linear { base: c, terms: none })
            | (Ix::Mul(..), Expr::Linear { base: c, terms: none }, Expr::Linear { base, terms })
                if none.is_empty() =>
            {
                let terms = terms.iter().map(|t| Term { coeff: t.coeff.wrapping_mul(c), ..*t });
                Expr::Linear { base: base.wrapping_mul(c), terms: terms.collect() }
            }
            (Ix::Add(..), a, b) => Expr::Add(Box::new((a, b))),
            (Ix::Sub(..), a, b) => Expr::Sub(Box::new((a, b))),
            (Ix::Mul(..), a, b) => Expr::Mul(Box::new((a, b))),
            (Ix::FloorDiv(..), a, b) if b.power_of_two().is_some() => {
                Expr::Shift(Box::new(a), b.power_of_two().unwrap_or(0))
            }
            (Ix::Mod(..), a, b) if b.power_of_two().is_some() => {
                Expr::LowBits(Box::new(a), (1 << b.power_of_two().unwrap_or(0)) - 1)
            }
            (Ix::FloorDiv(..), a, b) => Expr::FloorDiv(Box::new((a, b))),
            (Ix::Mod(..), a, b) => Expr::Mod(Box::new((a, b))),
            (Ix::Min(..), a, b) => Expr::Min(Box::new((a, b))),
            (_, a, b) => Expr::Max(Box::new((a, b))),
        })
    }

    /// The exponent, where it is a constant power of two.
    fn power_of_two(&self) -> Option<u32> {
        match self {
            Expr::Linear { base, terms } if terms.is_empty() && *base > 0 && base & (base - 1) == 0 => {
                Some(base.trailing_zeros())
            }
            _ => None,
        }
    }

    #[inline]
    pub fn value(&self, slots: &[u64]) -> i64 {
        self.lanes(slots.as_chunks::<1>().0)[0]
    }

    /// The value in every lane.
    pub fn lanes<const W: usize>(&self, slots: &[[u64; W]]) -> [i64; W] {
        match self {
            Expr::Linear { base, terms } => {
                let mut sum = [*base; W];
                for t in terms.iter() {
                    let values = &slots[t.slot as usize];
                    match (t.shift, t.coeff) {
                        (0, 1) => (0..W).for_each(|l| sum[l] = sum[l].wrapping_add(values[l] as i64)),
                        (shift, coeff) => (0..W).for_each(|l| {
                            let value = ((values[l] << shift) as i64) >> shift;
                            sum[l] = sum[l].wrapping_add(value.wrapping_mul(coeff));
                        }),
                    }
                }
                sum
            }
            Expr::Add(p) => two(p, slots, i64::wrapping_add),
            Expr::Sub(p) => two(p, slots, i64::wrapping_sub),
            Expr::Mul(p) => two(p, slots, i64::wrapping_mul),
            // As `Ix::eval`: a divisor that is not positive gives 0.
            Expr::FloorDiv(p) => two(p, slots, |a, b| if b > 0 { a.div_euclid(b) } else { 0 }),
            Expr::Mod(p) => two(p, slots, |a, b| if b > 0 { a.rem_euclid(b) } else { 0 }),
            Expr::Shift(a, by) => a.lanes(slots).map(|a| a >> by),
            Expr::LowBits(a, bits) => a.lanes(slots).map(|a| a & bits),
            Expr::Min(p) => two(p, slots, i64::min),
            Expr::Max(p) => two(p, slots, i64::max),
        }
    }
}

/// An operation in every lane.
fn two<const W: usize>(p: &(Expr, Expr), slots: &[[u64; W]], f: impl Fn(i64, i64) -> i64) -> [i64; W] {
    let (a, b) = (p.0.lanes(slots), p.1.lanes(slots));
    std::array::from_fn(|l| f(a[l], b[l]))
}

impl MaskCode {
    pub fn compile(mask: &Mask, leaves: &dyn Leaves) -> Result<MaskCode, String> {
        let conds =
            mask.conds.iter().map(|c| Ok((Expr::compile(&c.lhs, leaves)?, c.cmp, Expr::compile(&c.rhs, leaves)?)));
        let vals = mask.vals.iter().map(|v| Ok(leaves.integer(*v)?.0));
        Ok(MaskCode { conds: conds.collect::<Result<_, String>>()?, vals: vals.collect::<Result<_, String>>()? })
    }

    #[inline]
    pub fn holds(&self, slots: &[u64]) -> bool {
        self.lanes(slots.as_chunks::<1>().0) != 0
    }

    /// The lanes in which it holds, as bits.
    #[inline]
    pub fn lanes<const W: usize>(&self, slots: &[[u64; W]]) -> u32 {
        let mut on = u32::MAX >> (32 - W);
        for (a, cmp, b) in &self.conds {
            if on == 0 {
                return 0;
            }
            let (a, b) = (a.lanes(slots), b.lanes(slots));
            on &= (0..W).fold(0, |bits, l| bits | u32::from(cmp.holds(a[l], b[l])) << l);
        }
        for v in &self.vals {
            let values = &slots[*v as usize];
            on &= (0..W).fold(0, |bits, l| bits | u32::from(values[l] != 0) << l);
        }
        on
    }
}
