//! Index expressions in 64 bits: `bx * 1024 + i`, `((i64)n >> 4) * 16`.

use super::dialect::Dialect;
use crate::index::Ix;
use crate::kernel::ir::{AxisId, Elem, Kernel};
use rustc_hash::FxHashSet;

/// Prints index expressions of one kernel; remembers which helper functions they call and which axes cannot be negative.
pub struct Indices<'a> {
    pub kernel: &'a Kernel,
    dialect: &'static Dialect,
    pub nonnegative: FxHashSet<AxisId>,
    /// Names of the helper functions used: `floordiv`, `floormod`, `min`, `max`.
    pub used: std::collections::BTreeSet<&'static str>,
}

const ADD: u8 = 1;
const MUL: u8 = 2;
const ATOM: u8 = 3;

impl<'a> Indices<'a> {
    pub fn new(kernel: &'a Kernel, dialect: &'static Dialect) -> Indices<'a> {
        Indices { kernel, dialect, nonnegative: FxHashSet::default(), used: Default::default() }
    }

    pub fn print(&mut self, ix: &Ix) -> String {
        self.at(ix, 0)
    }

    /// The expression as a factor, in parentheses unless it is a product or an atom.
    pub fn factor(&mut self, ix: &Ix) -> String {
        self.at(ix, MUL)
    }

    /// Whether the value is known not to be negative.
    pub fn is_nonnegative(&self, ix: &Ix) -> bool {
        match ix {
            Ix::Const(c) => *c >= 0,
            Ix::Axis(a) => self.nonnegative.contains(a),
            Ix::Val { zext, val } => *zext && self.kernel.vals[*val].ty.dtype().bits() < 64,
            Ix::Block(_) | Ix::Grid(_) | Ix::Thread => true,
            Ix::Add(a, b) | Ix::Mul(a, b) | Ix::Min(a, b) => self.is_nonnegative(a) && self.is_nonnegative(b),
            Ix::Max(a, b) => self.is_nonnegative(a) || self.is_nonnegative(b),
            Ix::FloorDiv(a, _) => self.is_nonnegative(a),
            Ix::Mod(..) => true,
            Ix::Sub(..) => false,
        }
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
                    (format!("{} - {}", self.at(a, ADD), literal(c.unsigned_abs())), ADD)
                }
                _ => (format!("{} + {}", self.at(a, ADD), self.at(b, ADD)), ADD),
            },
            Ix::Sub(a, b) => (format!("{} - {}", self.at(a, ADD), self.at(b, MUL)), ADD),
            Ix::Mul(a, b) => (format!("{} * {}", self.at(a, MUL), self.at(b, ATOM)), MUL),
            Ix::FloorDiv(a, b) => match &**b {
                Ix::Const(c) if *c > 0 && (c & (c - 1) == 0) => {
                    (format!("({} >> {})", self.at(a, MUL), c.trailing_zeros()), ATOM)
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
