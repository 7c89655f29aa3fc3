//! `split`: a loop in pieces, one loop over the pieces and one within a piece.
//!
//! In: a loop of `extent` iterations and the size of a piece. Out: how many pieces there are, how long each is, and which
//! iteration an iteration of a piece stands for.
//!
//! ```text
//! for k in 0..1000: reduce                       for kt in 0..4: reduce
//!   s <- x[k] + s                        -->       for kk in 0..min(256, 1000 - kt*256): reduce
//!                                                    s <- x[kt*256 + kk] + s
//! ```
//!
//! The remainder is spelled in one way: where the size divides the extent each piece has `size` iterations, and otherwise the
//! least of `size` and of what is left. [`Pieces::whole`] and [`Pieces::rest`] are the same loop with the last piece peeled off.

use std::collections::BTreeMap;

use super::line::{LoopRef, replace};
use crate::index::{Facts, Poly, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit;
use crate::tile::numbered::forget_roles;

/// A range `0..extent` in pieces of `size`.
#[derive(Clone, PartialEq, Debug)]
pub struct Pieces {
    extent: Ix,
    size: i64,
}

impl Pieces {
    /// A size below 1 is taken to be 1.
    pub fn new(extent: Ix, size: i64) -> Pieces {
        Pieces { extent, size: size.max(1) }
    }

    /// The pieces of a loop that counts from 0 in steps of 1.
    pub fn of(f: &For, size: i64) -> Pieces {
        Pieces::new(f.hi.clone(), size)
    }

    pub fn size(&self) -> Ix {
        Ix::Const(self.size)
    }

    /// Whether every piece is known to have `size` iterations, also of an extent of symbols.
    pub fn is_even(&self) -> bool {
        let (extent, size) = (Poly::expanded(&self.extent), i128::from(self.size));
        extent.gcd(size) == size && extent.base % size == 0
    }

    /// How many pieces there are.
    pub fn count(&self, facts: &Facts) -> Ix {
        simplify(&Ix::ceil_div(self.extent.clone(), self.size()), facts)
    }

    /// The same of a range that ends at the least or the greatest of some ends: that of the pieces up to each of them.
    pub fn count_to_ends(&self, facts: &Facts) -> Ix {
        fn pieces(end: &Ix, size: i64) -> Ix {
            match end {
                Ix::Min(a, b) => Ix::min(pieces(a, size), pieces(b, size)),
                Ix::Max(a, b) => Ix::max(pieces(a, size), pieces(b, size)),
                end => Ix::ceil_div(end.clone(), Ix::Const(size)),
            }
        }
        simplify(&pieces(&self.extent, self.size), facts)
    }

    /// The first iteration of a piece.
    pub fn start(&self, piece: impl Into<Ix>) -> Ix {
        Ix::mul(piece.into(), self.size())
    }

    /// How many iterations a piece has.
    pub fn length(&self, piece: AxisId) -> Ix {
        self.length_from(self.start(piece))
    }

    /// How many iterations a piece has that begins there.
    pub fn length_from(&self, start: Ix) -> Ix {
        match self.is_even() {
            true => self.size(),
            false => Ix::min(self.size(), Ix::sub(self.extent.clone(), start)),
        }
    }

    /// The same where there may be more pieces than iterations fill: those behind the last iteration have none.
    pub fn length_or_none(&self, piece: AxisId, pieces: i64) -> Ix {
        match self.extent.as_const() == self.size.checked_mul(pieces) {
            true => self.size(),
            false => Ix::min(self.size(), Ix::max(Ix::sub(self.extent.clone(), self.start(piece)), Ix::Const(0))),
        }
    }

    /// The iteration that one of a piece stands for.
    pub fn at(&self, piece: impl Into<Ix>, within: AxisId) -> Ix {
        Ix::add(self.start(piece), Ix::Axis(within))
    }

    /// What holds of a number of an iteration where there is one; `None` where pieces leave nothing over.
    pub fn exists(&self, at: Ix) -> Option<Cond> {
        (!self.is_even()).then(|| Cond::new(at, Cmp::Lt, self.extent.clone()))
    }

    /// Those iterations that fill whole pieces, where their number is known.
    pub fn whole(&self) -> Option<Pieces> {
        let n = self.extent.as_const()?;
        Some(Pieces::new(Ix::Const(n - n % self.size), self.size))
    }

    /// The first iteration behind them, and how many there are.
    pub fn rest(&self) -> Option<(i64, i64)> {
        let n = self.extent.as_const()?;
        Some((n - n % self.size, n % self.size)).filter(|(_, rest)| *rest > 0)
    }

    /// The loop over the pieces and the loop within one, without what stands in them.
    pub fn loops(&self, f: &For, [outer, inner]: [AxisId; 2], facts: &Facts) -> [For; 2] {
        let along = |axis, hi| For { axis, hi, body: vec![], ..f.clone() };
        [along(outer, self.count(facts)), along(inner, self.length(outer))]
    }
}

/// Cuts a loop. With `guard` every piece has `size` iterations, and those behind the last one of the loop do nothing.
pub fn apply(
    kernel: &mut Kernel,
    at: LoopRef,
    size: i64,
    [outer, inner]: &[String; 2],
    guard: bool,
) -> Result<(), String> {
    let facts = kernel.facts();
    replace(kernel, at, &mut |kernel, f| {
        legal(f, guard)?;
        let pieces = Pieces::of(f, size);
        let axes = [outer, inner].map(|name| edit::named_axis(kernel, f.axis, name.clone()));
        let at = pieces.at(axes[0], axes[1]);
        let [mut over, mut one] = pieces.loops(f, axes, &facts);
        // Quotients and remainders are resolved, and what is left is simple.
        let mut body = edit::place_axes(&f.body, &[(f.axis, at.clone())].into(), &BTreeMap::from([(axes[1], size)]));
        forget_roles(&mut body, &|a| a == f.axis);
        let mut facts = facts.clone();
        facts.set_axis(over.axis, &Ix::Const(0), &over.hi);
        facts.set_axis(one.axis, &Ix::Const(0), &pieces.size());
        walk::map_ixs(&mut body, &mut |ix| {
            if axes.iter().any(|a| ix.has_axis(*a)) {
                *ix = simplify(ix, &facts);
            }
        });
        if guard {
            one.hi = pieces.size();
            if let Some(exists) = pieces.exists(at) {
                body = edit::when(kernel, "mine", Mask { conds: vec![exists], vals: vec![] }, body, vec![]);
            }
        }
        if f.kind == LoopKind::Reduce {
            over.combine = None;
        }
        one.body = body;
        over.body = vec![Stmt::For(Box::new(one))];
        Ok(vec![Stmt::For(Box::new(over))])
    })
}

fn legal(f: &For, guard: bool) -> Result<(), String> {
    match () {
        _ if f.place != Place::None => Err("the loop is placed already".into()),
        _ if !f.counts_from_zero() => Err("it does not count from 0 in steps of 1".into()),
        _ if f.contraction.is_some() || f.stream.is_some() => {
            Err("it is the sum of a product, which policies cut".into())
        }
        _ if f.kind == LoopKind::Serial => Err("it may end early".into()),
        _ if guard && f.kind != LoopKind::Free => Err("a reduction has no iteration that does nothing".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: AxisId = AxisId(0);
    const WITHIN: AxisId = AxisId(1);

    /// Every iteration stands in one piece, once and in order, whatever the extent and the size.
    #[test]
    fn pieces_have_each_iteration_once() {
        for extent in 0..40 {
            for size in 1..12 {
                let pieces = Pieces::new(Ix::Const(extent), size);
                let value = |ix: &Ix, piece: i64, within: i64| {
                    ix.eval(&|leaf| match leaf {
                        Ix::Const(c) => *c,
                        Ix::Axis(PIECE) => piece,
                        _ => within,
                    })
                };
                let count = value(&pieces.count(&Facts::new()), 0, 0);
                // One piece more than there are has no iterations.
                for pieces_made in [count, count + 1] {
                    let length = |p| match pieces_made == count {
                        true => value(&pieces.length(PIECE), p, 0),
                        false => value(&pieces.length_or_none(PIECE, pieces_made), p, 0),
                    };
                    let at = pieces.at(PIECE, WITHIN);
                    let all = (0..pieces_made).flat_map(|p| (0..length(p)).map(move |w| (p, w)));
                    let seen: Vec<i64> = all.map(|(p, w)| value(&at, p, w)).collect();
                    assert_eq!(seen, (0..extent).collect::<Vec<_>>(), "{extent} in pieces of {size}");
                }
                let (whole, rest) = (pieces.whole().unwrap(), pieces.rest().unwrap_or((extent, 0)));
                assert!(whole.is_even() && whole.extent.is_const(rest.0) && rest.0 + rest.1 == extent);
                assert_eq!(pieces.exists(Ix::Axis(WITHIN)).is_none(), rest.1 == 0);
            }
        }
    }
}
