//! Index expressions: exact 64-bit integer arithmetic over loop axes, block ids and integer values.
//!
//! ```text
//! ix   := term (("+" | "-") term)*
//! term := atom (("*" | "//" | "%") atom)*          // floor division, and the remainder that goes with it
//! atom := INT | AXIS | VAL | "zext(" VAL ")" | "bx" | "by" | "bz" | "gx" | "gy" | "gz" | "tx"
//!       | "min(" ix "," ix ")" | "max(" ix "," ix ")" | "(" ix ")" | "-" atom
//! ```

mod build;
pub mod facts;
pub mod poly;
pub mod simplify;
pub mod text;
#[cfg(test)]
mod tests;

pub use facts::{Facts, Interval};
pub use poly::Poly;
pub use simplify::{Simple, simplify};

/// The greatest common divisor.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

use crate::id_type;

id_type! {
    /// A loop axis.
    AxisId
}
id_type! {
    /// A scalar value of loop or tile IR.
    ValId
}

/// An index expression. Its value is exact: the code that builds one has shown, or made it an obligation, that no step
/// leaves 64 bits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Ix {
    Const(i64),
    Axis(AxisId),
    /// An integer value, sign-extended (`zext: true` zero-extends).
    Val {
        val: ValId,
        zext: bool,
    },
    /// The block's id along x, y, z.
    Block(u8),
    /// The grid's size along x, y, z.
    Grid(u8),
    /// The thread's number in its block; only Kernel IR has it.
    Thread,
    Add(Box<Ix>, Box<Ix>),
    Sub(Box<Ix>, Box<Ix>),
    Mul(Box<Ix>, Box<Ix>),
    /// Division rounding towards minus infinity; the divisor is positive.
    FloorDiv(Box<Ix>, Box<Ix>),
    /// The remainder of `FloorDiv`: 0 <= r < divisor.
    Mod(Box<Ix>, Box<Ix>),
    Min(Box<Ix>, Box<Ix>),
    Max(Box<Ix>, Box<Ix>),
}

/// The relation of two index expressions; signed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// `lhs cmp rhs`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Cond {
    pub lhs: Ix,
    pub cmp: Cmp,
    pub rhs: Ix,
}

/// The conjunction of conditions and i1 values; empty is always true.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mask {
    pub conds: Vec<Cond>,
    pub vals: Vec<ValId>,
}

impl Mask {
    pub fn is_always(&self) -> bool {
        self.conds.is_empty() && self.vals.is_empty()
    }
}
