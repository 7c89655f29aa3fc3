//! Index expressions: `bx * 1024 + i`, `((i64)n >> 4) * 16`.
//!
//! Expressions are computed in 64 bits. A dialect with `int` indices computes in 32 bits as far as ranges show that
//! nothing overflows, and in 64 bits from the first operation that might: `(i64)bx * 1024 + i`. Ranges are known of the
//! thread, its block and the grid, which an open kernel may state itself, of values of i32, of other values from
//! [`Indices::define`], and of loops from [`Indices::enter`].

use super::dialect::Dialect;
use crate::index::{Ix, Mask};
use crate::kernel::ir::{AxisId, Elem, Kernel, ValId};
use crate::num::DType;
use rustc_hash::{FxHashMap, FxHashSet};

/// Prints index expressions of one kernel; remembers which helper functions they call and which axes cannot be negative.
pub struct Indices<'a> {
    pub kernel: &'a Kernel,
    dialect: &'static Dialect,
    pub nonnegative: FxHashSet<AxisId>,
    /// Loops whose variable is an `int`, with its least and greatest value.
    ints: FxHashMap<AxisId, Range>,
    /// The known ranges of i32 values that are index expressions.
    vals: FxHashMap<ValId, Range>,
    /// Names of the helper functions used: `floordiv`, `floormod`, `min`, `max`.
    pub used: std::collections::BTreeSet<&'static str>,
}

/// The least and the greatest value.
type Range = (i128, i128);

/// Returns true if an `int` holds the whole range.
fn fits((low, high): Range) -> bool {
    i128::from(i32::MIN) <= low && high <= i128::from(i32::MAX)
}

const ADD: u8 = 1;
const MUL: u8 = 2;
const ATOM: u8 = 3;

impl<'a> Indices<'a> {
    pub fn new(kernel: &'a Kernel, dialect: &'static Dialect) -> Indices<'a> {
        Indices {
            kernel,
            dialect,
            nonnegative: FxHashSet::default(),
            ints: FxHashMap::default(),
            vals: FxHashMap::default(),
            used: Default::default(),
        }
    }

    /// A mask as a condition; `always` where it has nothing to test.
    pub fn mask(&mut self, mask: &Mask, always: &str) -> String {
        let conds =
            mask.conds.iter().map(|c| format!("{} {} {}", self.print(&c.lhs), c.cmp.sign(), self.print(&c.rhs)));
        let mut parts: Vec<String> = conds.collect();
        parts.extend(mask.vals.iter().map(|v| self.kernel.vals[*v].name.to_string()));
        if parts.is_empty() { always.to_string() } else { parts.join(" && ") }
    }

    pub fn print(&mut self, ix: &Ix) -> String {
        self.at(ix, 0)
    }

    /// The expression as a factor, in parentheses unless it is a product or an atom.
    pub fn factor(&mut self, ix: &Ix) -> String {
        self.at(ix, MUL)
    }

    /// Returns true if the value is known not to be negative.
    pub fn is_nonnegative(&self, ix: &Ix) -> bool {
        match ix {
            Ix::Const(c) => *c >= 0,
            Ix::Axis(a) => self.nonnegative.contains(a),
            Ix::Val { zext: true, val } => self.kernel.vals[*val].ty.dtype().bits() < 64,
            Ix::Val { zext: false, val } => self.vals.get(val).is_some_and(|range| range.0 >= 0),
            Ix::Block(_) | Ix::Grid(_) | Ix::Thread => true,
            Ix::Add(a, b) | Ix::Mul(a, b) | Ix::Min(a, b) => self.is_nonnegative(a) && self.is_nonnegative(b),
            Ix::Max(a, b) => self.is_nonnegative(a) || self.is_nonnegative(b),
            Ix::FloorDiv(a, _) => self.is_nonnegative(a),
            Ix::Mod(..) => true,
            Ix::Sub(..) => false,
        }
    }

    /// Notes a loop that is about to be printed. Returns true if its variable is an `int`.
    pub fn enter(&mut self, axis: AxisId, lo: &Ix, hi: &Ix, step: &Ix) -> bool {
        if self.is_nonnegative(lo) {
            self.nonnegative.insert(axis);
        }
        let (Some(lo), Some(hi), Some(step)) = (self.range(lo), self.range(hi), self.range(step)) else { return false };
        // The variable ends where the loop ends, at most a step further.
        let reached = (lo.0, lo.1.max(hi.1 - 1 + step.1));
        let is_int = self.dialect.int_indices && fits(reached) && step.0 > 0;
        if is_int {
            self.ints.insert(axis, (lo.0, (hi.1 - 1).max(lo.0)));
        }
        is_int
    }

    /// A value is defined as an expression.
    pub fn define(&mut self, val: ValId, ix: &Ix) {
        let is_int = self.dialect.int_indices && self.kernel.vals[val].ty.elem == Elem::Num(DType::I32);
        if let Some(range) = self.range(ix).filter(|range| is_int && fits(*range)) {
            self.vals.insert(val, range);
        }
    }

    /// The range of an expression of `int`s.
    fn range(&self, ix: &Ix) -> Option<Range> {
        let both = |a: &Ix, b: &Ix| Some((self.range(a)?, self.range(b)?));
        let of = |corners: [i128; 4]| corners.into_iter().fold((i128::MAX, i128::MIN), |r, c| (r.0.min(c), r.1.max(c)));
        // The kernel's own grid, where that is a constant.
        let own = |d: u8| self.kernel.grid.as_ref().and_then(|g| g.get(usize::from(d))?.as_const()).map(i128::from);
        let limit = |d: u8| if d == 0 { i128::from(i32::MAX) } else { 65535 };
        let most = |d: u8| own(d).map_or(limit(d), |n| n.clamp(1, limit(d)));
        let range = match ix {
            Ix::Const(c) => (i128::from(*c), i128::from(*c)),
            Ix::Axis(a) => *self.ints.get(a)?,
            Ix::Val { val, zext: false } if self.kernel.vals[*val].ty.elem == Elem::Num(DType::I32) => {
                self.vals.get(val).copied().unwrap_or((i128::from(i32::MIN), i128::from(i32::MAX)))
            }
            Ix::Val { .. } => return None,
            Ix::Block(d) => (0, most(*d) - 1),
            Ix::Grid(d) => (1, most(*d)),
            Ix::Thread => (0, i128::from(self.kernel.threads.max(1)) - 1),
            Ix::Add(a, b) => both(a, b).map(|(a, b)| (a.0 + b.0, a.1 + b.1))?,
            Ix::Sub(a, b) => both(a, b).map(|(a, b)| (a.0 - b.1, a.1 - b.0))?,
            Ix::Mul(a, b) => both(a, b).map(|(a, b)| of([a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1]))?,
            Ix::FloorDiv(a, b) => {
                let (a, b) = both(a, b).filter(|(_, b)| b.0 > 0)?;
                of([a.0.div_euclid(b.0), a.0.div_euclid(b.1), a.1.div_euclid(b.0), a.1.div_euclid(b.1)])
            }
            Ix::Mod(_, b) => (0, self.range(b).filter(|b| b.0 > 0)?.1 - 1),
            Ix::Min(a, b) => both(a, b).map(|(a, b)| (a.0.min(b.0), a.1.min(b.1)))?,
            Ix::Max(a, b) => both(a, b).map(|(a, b)| (a.0.max(b.0), a.1.max(b.1)))?,
        };
        // Larger numbers are never an `int`, and products of such numbers would leave the range of this arithmetic.
        (range.0 >= -(1 << 60) && range.1 <= 1 << 60).then_some(range)
    }

    /// Returns true if the expression, as it is printed, is an `int`.
    fn is_int(&self, ix: &Ix) -> bool {
        let int = |ix: &Ix| self.range(ix).is_some_and(fits);
        let power = |b: &Ix| matches!(b, Ix::Const(c) if *c > 0 && c & (c - 1) == 0 && *c <= 1 << 30);
        self.dialect.int_indices
            && match ix {
                Ix::Const(i64::MIN) => false,
                Ix::Const(c) => c.unsigned_abs() <= i32::MAX as u64,
                Ix::Axis(_) | Ix::Val { .. } | Ix::Block(_) | Ix::Grid(_) | Ix::Thread => int(ix),
                Ix::Add(a, b) | Ix::Sub(a, b) | Ix::Mul(a, b) => self.is_int(a) && self.is_int(b) && int(ix),
                Ix::FloorDiv(a, b) | Ix::Mod(a, b) => {
                    let plain = self.is_nonnegative(a) && self.is_nonnegative(b) && self.is_int(b);
                    self.is_int(a) && (power(b) || plain)
                }
                Ix::Min(..) | Ix::Max(..) => false,
            }
    }

    /// The left operand: as 64 bits where the operation on two `int`s may overflow.
    fn left(&mut self, ix: &Ix, a: &Ix, b: &Ix, level: u8) -> String {
        let overflows = self.is_int(a) && self.is_int(b) && !self.is_int(ix);
        if overflows { format!("(i64){}", self.at(a, ATOM)) } else { self.at(a, level) }
    }

    fn at(&mut self, ix: &Ix, level: u8) -> String {
        let (text, own) = match ix {
            Ix::Const(i64::MIN) => ("(-9223372036854775807LL - 1)".to_string(), ATOM),
            Ix::Const(c) if *c < 0 => (format!("(-{})", literal(c.unsigned_abs())), ATOM),
            Ix::Const(c) => (literal(*c as u64), ATOM),
            Ix::Axis(a) => (self.kernel.axes[*a].name.to_string(), ATOM),
            Ix::Val { val, zext } => {
                let v = &self.kernel.vals[*val];
                let bits = v.ty.dtype().bits();
                let text = match (v.ty.elem, bits, zext) {
                    (Elem::Num(_), 32, false) if self.dialect.int_indices => v.name.to_string(),
                    (Elem::Ptr(_), ..) | (_, 1, true) => format!("(i64){}", v.name),
                    (_, 64, _) => v.name.to_string(),
                    (_, 1, false) => format!("-(i64){}", v.name),
                    (_, _, false) => format!("(i64){}", v.name),
                    (_, _, true) => format!("(i64)({}){}", (self.dialect.unsigned)(bits), v.name),
                };
                (text, ATOM)
            }
            Ix::Block(d) => (format!("b{}", dim(*d)), ATOM),
            Ix::Grid(d) => (format!("g{}", dim(*d)), ATOM),
            Ix::Thread => ("tx".to_string(), ATOM),
            Ix::Add(a, b) => match &**b {
                Ix::Const(c) if *c < 0 && *c != i64::MIN => {
                    (format!("{} - {}", self.left(ix, a, b, ADD), literal(c.unsigned_abs())), ADD)
                }
                _ => (format!("{} + {}", self.left(ix, a, b, ADD), self.at(b, ADD)), ADD),
            },
            Ix::Sub(a, b) => (format!("{} - {}", self.left(ix, a, b, ADD), self.at(b, MUL)), ADD),
            Ix::Mul(a, b) => (format!("{} * {}", self.left(ix, a, b, MUL), self.at(b, ATOM)), MUL),
            Ix::FloorDiv(a, b) => match &**b {
                Ix::Const(c) if *c > 0 && (c & (c - 1) == 0) => {
                    // An `int` has no 32nd bit to shift by.
                    let far = c.trailing_zeros() > 31 && self.is_int(a);
                    let a = if far { format!("(i64){}", self.at(a, ATOM)) } else { self.left(ix, a, b, MUL) };
                    (format!("({a} >> {})", c.trailing_zeros()), ATOM)
                }
                _ if self.is_nonnegative(a) && self.is_nonnegative(b) => {
                    (format!("({} / {})", self.at(a, MUL), self.at(b, ATOM)), ATOM)
                }
                _ => (self.call("floordiv", a, b), ATOM),
            },
            Ix::Mod(a, b) => match &**b {
                Ix::Const(c) if *c > 0 && (c & (c - 1) == 0) => (format!("({} & {})", self.at(a, MUL), c - 1), ATOM),
                _ if self.is_nonnegative(a) && self.is_nonnegative(b) => {
                    (format!("({} % {})", self.at(a, MUL), self.at(b, ATOM)), ATOM)
                }
                _ => (self.call("floormod", a, b), ATOM),
            },
            Ix::Min(a, b) => (self.call("min", a, b), ATOM),
            Ix::Max(a, b) => (self.call("max", a, b), ATOM),
        };
        if own < level { format!("({text})") } else { text }
    }

    fn call(&mut self, name: &'static str, a: &Ix, b: &Ix) -> String {
        let name = (self.dialect.index_helper)(name);
        self.used.insert(name);
        format!("{name}({}, {})", self.at(a, 0), self.at(b, 0))
    }
}

fn dim(d: u8) -> char {
    match d {
        0 => 'x',
        1 => 'y',
        _ => 'z',
    }
}

fn literal(c: u64) -> String {
    if c > i32::MAX as u64 { format!("{c}LL") } else { c.to_string() }
}
