//! Elements of an accumulator beyond the edge of a tile.
//!
//! ```text
//! b: f32 = load x[bx*32 + j + k] where bx*32 + j < 750 else 0.0      the edge
//! acc[i, j] = fma(a, b, acc[i, j])
//! ...
//! v: f32 = acc[r, c]
//! store y[r*750 + bx*32 + c] = v where bx*32 + c < 750               is that of all that is stored
//! ```
//!
//! There an operand may have other numbers beyond the edge than the mask gives it.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Cmp, Cond};
use crate::loops::ir::*;
use crate::loops::walk::{self, Part};
use crate::tile::contraction::Nest;

/// A subscript of an accumulator, and the statements that may read it.
pub(super) struct Edges<'a> {
    pub body: &'a [Stmt],
    pub acc: BufId,
    /// The number of the subscript, and the axis that it is where the sum is added to.
    pub at: usize,
    pub own: AxisId,
}

impl<'a> Edges<'a> {
    /// The subscript of a nest's accumulator that is one of its axes; `body` is that of the kernel.
    pub fn of(body: &'a [Stmt], nest: &Nest, own: AxisId) -> Option<Edges<'a>> {
        let acc = nest.roles.acc;
        let at = nest.reduce.body.iter().find_map(|s| match s {
            Stmt::Write { buf, idx, .. } if *buf == acc => idx.iter().position(|ix| *ix == Ix::Axis(own)),
            _ => None,
        })?;
        Some(Edges { body, acc, at, own })
    }

    /// Returns true if a condition on the axis holds for each element that reaches an array: what is made of others goes back to
    /// its own place in the accumulator, or is masked.
    pub fn unseen(&self, edge: &Cond) -> bool {
        if edge.cmp != Cmp::Lt {
            return false;
        }
        // The place of the element that a value was made of.
        let mut from: BTreeMap<ValId, Ix> = BTreeMap::new();
        let mut unseen = true;
        walk::visit(self.body, &mut |s| {
            if let Stmt::Read { dst, buf, idx } = s
                && *buf == self.acc
            {
                from.insert(*dst, idx[self.at].clone());
                return;
            }
            let mut whole = false;
            walk::parts(s, &mut |part| whole |= matches!(part, Part::ReadBuf(b) if *b == self.acc));
            let mut places = BTreeSet::new();
            walk::each_use(s, &mut |v| places.extend(from.get(&v).cloned()));
            unseen &= !whole
                && match (places.pop_first(), places.is_empty(), s) {
                    (None, ..) => true,
                    (Some(place), true, Stmt::Let { dst, .. }) => {
                        from.insert(*dst, place);
                        true
                    }
                    (Some(place), true, Stmt::Store { mask, .. }) => {
                        let wanted = edge.replace_leaves(&mut |leaf| match leaf {
                            Ix::Axis(a) if *a == self.own => Some(place.clone()),
                            _ => None,
                        });
                        mask.conds.iter().any(|c| c.cmp == Cmp::Lt && c.says(&wanted))
                    }
                    (Some(place), true, Stmt::Write { buf, idx, .. }) => *buf == self.acc && idx[self.at] == place,
                    _ => false,
                };
        });
        unseen
    }
}
