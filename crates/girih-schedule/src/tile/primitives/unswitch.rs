//! `unswitch`: conditions that a loop does not change are tested once before it.
//!
//! ```text
//! for j in 0..64: free                             inside: i1 = test by < heads
//!   store O[j] = v where by < heads         -->    if inside:
//!                                                    for j in 0..64: free
//!                                                      store O[j] = v
//! ```
//!
//! Legal as `peel` is. A loop over threads tests what holds for all that the block does: a condition at its greatest value there.

use super::line::{LoopRef, holds, look, replace};
use super::peel::{self, Group};
use crate::index::{Facts, Poly};
use crate::loops::ir::*;
use crate::loops::walk::{self, Refs, refs};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::unswitch::MOST_CONDITIONS;

/// Tests the conditions before the loop.
pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    let facts = facts_at(kernel, at);
    replace(kernel, at, &mut |kernel, f| match f.place {
        Place::Thread => {
            let edges = Edges::of(f, &facts);
            if f.combine.is_some() || edges.all.is_empty() {
                return Err("none of its conditions holds for all that a block does".into());
            }
            Ok(threads(kernel, f, edges))
        }
        _ => {
            peel::legal(kernel, f)?;
            let group = fixed(f, &refs(&f.body)).ok_or("it changes each of its conditions, or they are many")?;
            Ok(unswitch(kernel, f, &group))
        }
    })
}

/// The facts about the blocks around a loop.
fn facts_at(kernel: &Kernel, at: LoopRef) -> Facts {
    let mut facts = kernel.facts();
    let mut blocks: Vec<&For> = vec![];
    look(kernel, &mut |own, f| {
        if matches!(f.place, Place::Block { .. }) {
            blocks.push(f);
        }
        if own == at {
            for around in blocks.iter().filter(|around| holds(&around.body, f)) {
                facts.set_axis(around.axis, &around.lo, &around.hi);
            }
        }
        true
    });
    facts
}

/// Conditions that the whole loop leaves as they are: all of them if they fail together, otherwise the first. None where
/// they are many, since each would double the code.
pub fn fixed(f: &For, facts: &Refs) -> Option<Group> {
    let mut all = Group::default();
    let outside = |ix: &Ix| {
        !ix.has_axis(f.axis)
            && ix.axes().iter().all(|a| !facts.axes_defined.contains(a))
            && ix.vals().iter().all(|v| !facts.vals_defined.contains(v))
    };
    walk::visit(&f.body, &mut |s| {
        let Some(mask) = walk::mask(s) else { return };
        for c in mask.conds.iter().filter(|c| outside(&c.lhs) && outside(&c.rhs)) {
            if !all.conds.contains(c) {
                all.conds.push(c.clone());
            }
        }
        for v in mask.vals.iter().filter(|v| !facts.vals_defined.contains(v)) {
            if !all.vals.contains(v) {
                all.vals.push(*v);
            }
        }
    });
    let count = all.conds.len() + all.vals.len();
    if count == 0 || all.is_uniform(&f.body) {
        return (count > 0).then_some(all);
    }
    if count > MOST_CONDITIONS {
        return None;
    }
    all.vals.truncate(if all.conds.is_empty() { 1 } else { 0 });
    all.conds.truncate(1);
    Some(all)
}

/// `if conditions: the loop without them, else: the loop with what they mask off left out`.
fn unswitch(kernel: &mut Kernel, f: &For, group: &Group) -> Vec<Stmt> {
    let mask = Mask { conds: group.conds.clone(), vals: group.vals.clone() };
    let mut main = f.clone();
    peel::assume(&mut main.body, group);
    let mut els = vec![];
    if !peel::ends_with(&f.body, group) {
        els = vec![Stmt::For(Box::new(f.clone()))];
        peel::deny(&mut els, group);
        edit::drop_unused(&mut els);
        els = walk::clone_fresh(kernel, &els);
    }
    let then = vec![Stmt::For(Box::new(main))];
    edit::when(kernel, "inside", mask, then, els)
}

/// The loop over threads without the conditions that hold for a whole block, where they do.
fn threads(kernel: &mut Kernel, f: &For, edges: Edges) -> Vec<Stmt> {
    let s = Stmt::For(Box::new(f.clone()));
    let mut then = vec![s.clone()];
    walk::visit_mut(&mut then, &mut |s| inside(s, &edges.all));
    let then = walk::clone_fresh(kernel, &then);
    let mut conds: Vec<Cond> = vec![];
    for (_, block) in edges.all {
        if !conds.contains(&block) {
            conds.push(block);
        }
    }
    edit::when(kernel, "inside", Mask { conds, vals: vec![] }, then, vec![s])
}

/// Conditions of elements, and of whole blocks in their place.
pub struct Edges {
    pub all: Vec<(Cond, Cond)>,
    /// How often a thread tests one of them.
    pub tests: u64,
}

impl Edges {
    /// The conditions in a loop over threads, given the facts about the blocks around it.
    pub fn of(f: &For, facts: &Facts) -> Edges {
        let mut facts = facts.clone();
        facts.set_axis(f.axis, &f.lo, &f.hi);
        let edges = Edges { all: vec![], tests: 0 };
        let mut seen = Seen { facts, inner: vec![f.axis], defined: vec![], edges };
        seen.body(&f.body, 1);
        seen.edges
    }
}

/// A statement where these conditions are known to hold.
fn inside(s: &mut Stmt, edges: &[(Cond, Cond)]) {
    let Some(mask) = walk::mask_mut(s) else { return };
    mask.conds.retain(|c| !edges.iter().any(|(edge, _)| edge == c));
    if let Stmt::Load { mask, other, .. } = s
        && mask.is_always()
    {
        *other = None;
    }
}

/// The dependences of the masks in a loop over threads.
struct Seen {
    facts: Facts,
    /// The axes of the loops inside the block.
    inner: Vec<AxisId>,
    /// The values that are made there.
    defined: Vec<ValId>,
    edges: Edges,
}

impl Seen {
    /// Statements that a thread comes by so many times.
    fn body(&mut self, body: &[Stmt], times: u64) {
        for s in body {
            let all = walk::mask(s).map_or(&[][..], |m| &m.conds);
            let edges: Vec<(Cond, Cond)> = all.iter().filter_map(|c| Some((c.clone(), self.of_block(c)?))).collect();
            self.edges.tests += if edges.is_empty() { 0 } else { times };
            for edge in edges {
                if !self.edges.all.contains(&edge) {
                    self.edges.all.push(edge);
                }
            }
            self.defined.extend(walk::def(s));
            let mut times = times;
            if let Stmt::For(f) = s {
                self.facts.set_axis(f.axis, &f.lo, &f.hi);
                self.inner.push(f.axis);
                times = match f.place {
                    Place::Thread | Place::Vector { .. } => times,
                    _ => times.saturating_mul(const_trip(f).unwrap_or(2)),
                };
            }
            walk::bodies(s).into_iter().for_each(|b| self.body(b, times));
        }
    }

    /// The condition that holds where this one does for all elements of the block; `None` where it does not depend on the
    /// block, or not on it alone, or never holds.
    fn of_block(&self, cond: &Cond) -> Option<Cond> {
        let made = |ix: &Ix| ix.vals().iter().any(|v| self.defined.contains(v));
        if cond.cmp != Cmp::Lt || made(&cond.lhs) || made(&cond.rhs) {
            return None;
        }
        let below = Poly::expanded(&cond.lhs).minus(&Poly::expanded(&cond.rhs));
        let own = |ix: &Ix| ix.any_leaf(&mut |l| matches!(l, Ix::Axis(a) if self.inner.contains(a)));
        let (inner, outer) = below.partition(|factors| factors.iter().any(own));
        let mut most = 0i128;
        for (factors, by) in &inner.terms {
            let alone = factors.iter().all(|f| f.any_leaf(&mut |l| matches!(l, Ix::Axis(_))) && only(f, &self.inner));
            let range = alone.then(|| Poly::expanded(&product(factors)).range(&self.facts))?;
            let end = if *by > 0 { range.hi } else { range.lo };
            most = most.checked_add(end.checked_mul(*by)?)?;
        }
        let place = |ix: &Ix| ix.any_leaf(&mut |l| matches!(l, Ix::Axis(_) | Ix::Block(_)));
        let (from, end) = outer.partition(|factors| factors.iter().any(place));
        if from.terms.is_empty() || most.abs() > 1 << 32 {
            return None;
        }
        let lhs = from.minus(&Poly::constant(-most)).to_ix()?;
        let block = Cond::new(lhs, Cmp::Lt, Poly::constant(0).minus(&end).to_ix()?);
        (self.facts.decide(&block) != Some(false)).then_some(block)
    }
}

fn product(factors: &[Ix]) -> Ix {
    factors.iter().cloned().reduce(Ix::mul).unwrap_or(Ix::Const(1))
}

/// True if an expression depends on these axes only.
fn only(ix: &Ix, axes: &[AxisId]) -> bool {
    !ix.any_leaf(&mut |l| match l {
        Ix::Const(_) => false,
        Ix::Axis(a) => !axes.contains(a),
        _ => true,
    })
}
