//! Index expressions of a graph as text: symbols by name, axes of the result as `i0`, `i1`, ...

use super::ir::Graph;
use crate::base::id::Id;
use crate::index::{Cmp, Ix, Mask};

impl Graph {
    /// `s0*2 + i1 // 64`.
    pub fn ix_text(&self, ix: &Ix) -> String {
        self.spell(ix, 0)
    }

    /// `i0 < s0 and i1 >= 2`; empty for the mask that always holds.
    pub fn mask_text(&self, mask: &Mask) -> String {
        let one = |c: &crate::index::Cond| {
            let cmp = match c.cmp {
                Cmp::Eq => "==",
                Cmp::Ne => "!=",
                Cmp::Lt => "<",
                Cmp::Le => "<=",
                Cmp::Gt => ">",
                Cmp::Ge => ">=",
            };
            format!("{} {cmp} {}", self.ix_text(&c.lhs), self.ix_text(&c.rhs))
        };
        mask.conds.iter().map(one).collect::<Vec<_>>().join(" and ")
    }

    /// `level`: 0 in a sum, 1 as a factor, 2 where anything but a leaf needs parentheses.
    fn spell(&self, ix: &Ix, level: u8) -> String {
        let (text, own) = match ix {
            Ix::Const(c) => (c.to_string(), if *c < 0 { 0 } else { 3 }),
            Ix::Axis(a) => (format!("i{}", a.0), 3),
            Ix::Val { val, .. } => {
                let name = self.symbols.get(super::SymId::from_index(val.index())).map(|s| s.name.clone());
                (name.unwrap_or_else(|| format!("?{}", val.0)), 3)
            }
            Ix::Block(b) => (format!("b{b}"), 3),
            Ix::Grid(g) => (format!("g{g}"), 3),
            Ix::Add(a, b) => (format!("{} + {}", self.spell(a, 0), self.spell(b, 1)), 0),
            Ix::Sub(a, b) => (format!("{} - {}", self.spell(a, 0), self.spell(b, 1)), 0),
            Ix::Mul(a, b) => (format!("{}*{}", self.spell(a, 1), self.spell(b, 2)), 1),
            Ix::FloorDiv(a, b) => (format!("{}//{}", self.spell(a, 1), self.spell(b, 2)), 1),
            Ix::Mod(a, b) => (format!("{}%{}", self.spell(a, 1), self.spell(b, 2)), 1),
            Ix::Min(a, b) => (format!("min({}, {})", self.spell(a, 0), self.spell(b, 0)), 3),
            Ix::Max(a, b) => (format!("max({}, {})", self.spell(a, 0), self.spell(b, 0)), 3),
        };
        if own < level { format!("({text})") } else { text }
    }
}
