//! `peel`: a loop ends where conditions in it turn, and the rest of it follows in loops of its own.
//!
//! ```text
//! for j in 0..1024: free                           for j in 0..max(0, min(1024, n)): free
//!   x = load src[j] where j < n else -inf   -->      t[j] = load src[j]
//!   t[j] = x                                       for j_1 in max(0, min(1024, n))..1024: free
//!                                                    t[j_1] = -inf
//! ```
//!
//! An innermost loop also ends where a `min` or `max` of its subscripts bends, as those of a reflected border do:
//!
//! ```text
//! for j in 0..134: free                            for j in 0..3: free
//!   y[j] = load x[max(j - 3, 3 - j)]        -->      y[j] = load x[3 - j]
//!                                                  for j_1 in 3..134: free
//!                                                    y[j_1] = load x[j_1 - 3]
//! ```
//!
//! Legal of a loop whose iterations may run in any order, that is not placed, and holds neither register tiles nor assertions. The
//! other half is `unswitch` (`primitives/unswitch.rs`), for conditions that the loop does not change.

use super::line::{LoopRef, replace};
use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk::{self, Part, Refs, refs};
use crate::num::DType;
use crate::tile::affine;
use crate::tile::edit;
use crate::tile::heuristics::peel::{LEAST_PIECE, MOST_PIECES, MOST_STATEMENTS};

/// Cuts a loop where its conditions turn.
pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    replace(kernel, at, &mut |kernel, f| {
        legal(kernel, f)?;
        let facts = refs(&f.body);
        match Turns::of(f, &facts).ok_or("none of its conditions turns once within it")? {
            Turns::Pieces(cuts) => Ok(pieces(kernel, f, &cuts, &facts)),
            Turns::Bound(group, mid) => Ok(split(kernel, f, group, mid)),
            Turns::Bends(cuts) => Ok(straightened(kernel, f, &cuts)),
        }
    })
}

/// Checks that copies of a loop may run with other conditions.
pub fn legal(kernel: &Kernel, f: &For) -> Result<(), &'static str> {
    if f.kind == LoopKind::Serial || f.step != Ix::Const(1) {
        return Err("its iterations run in order");
    }
    if f.contraction.is_some() || f.place != Place::None {
        return Err("it is placed already");
    }
    let tile = |s: &Stmt| matches!(s, Stmt::Local { buf } if kernel.bufs[*buf].space != Space::Scratch);
    match () {
        () if walk::stmts(&f.body).any(tile) => Err("it holds a register tile"),
        () if walk::stmts(&f.body).any(|s| matches!(s, Stmt::Assert { .. })) => {
            Err("it contains an assertion, which must run once per element")
        }
        () => Ok(()),
    }
}

/// Where the conditions of a loop turn.
pub enum Turns {
    /// Separately, at these iterations.
    Pieces(Vec<i64>),
    /// Together: they hold until there.
    Bound(Group, Ix),
    /// Subscripts bend at these iterations.
    Bends(Vec<i64>),
}

impl Turns {
    pub fn of(f: &For, facts: &Refs) -> Option<Turns> {
        match cuts(f, facts) {
            Some(cuts) => Some(Turns::Pieces(cuts)),
            None => bounded(f, facts)
                .map(|(group, mid)| Turns::Bound(group, mid))
                .or_else(|| bends(f, facts).map(Turns::Bends)),
        }
    }
}

/// Conditions that fail together: a mask that holds one of them is off when any fails.
#[derive(Default)]
pub struct Group {
    pub conds: Vec<Cond>,
    pub vals: Vec<ValId>,
}

impl Group {
    fn masks(&self, mask: &Mask) -> bool {
        mask.conds.iter().any(|c| self.conds.contains(c)) || mask.vals.iter().any(|v| self.vals.contains(v))
    }

    fn masks_whole(&self, mask: &Mask) -> bool {
        self.conds.iter().all(|c| mask.conds.contains(c)) && self.vals.iter().all(|v| mask.vals.contains(v))
    }

    /// True if every mask holds all of them or none.
    pub fn is_uniform(&self, body: &[Stmt]) -> bool {
        walk::stmts(body).filter_map(walk::mask).all(|m| !self.masks(m) || self.masks_whole(m))
    }
}

/// How a condition goes along an axis: whether it holds below a value or from it on.
#[derive(Clone, Copy)]
struct Turn {
    at: i64,
    below: bool,
}

/// Where a condition turns, as far as that is known.
fn turn(c: &Cond, axis: AxisId, facts: &Refs) -> Option<Turn> {
    if let Some(at) = upper_bound(c, axis, facts) {
        return Some(Turn { at: at.as_const()?, below: true });
    }
    let cmp = match c.cmp {
        Cmp::Lt => Cmp::Ge,
        Cmp::Le => Cmp::Gt,
        Cmp::Gt => Cmp::Le,
        Cmp::Ge => Cmp::Lt,
        _ => return None,
    };
    let at = upper_bound(&Cond { cmp, ..c.clone() }, axis, facts)?;
    Some(Turn { at: at.as_const()?, below: false })
}

/// Where conditions that fail separately turn within a loop of known bounds. None where a piece would be short or there are many.
fn cuts(f: &For, facts: &Refs) -> Option<Vec<i64>> {
    let (lo, hi) = (f.lo.as_const()?, f.hi.as_const()?);
    let (mut cuts, mut size, mut from) = (vec![], 0, false);
    walk::visit(&f.body, &mut |s| {
        size += 1;
        for turn in walk::mask(s).into_iter().flat_map(|m| &m.conds).filter_map(|c| turn(c, f.axis, facts)) {
            if lo < turn.at && turn.at < hi {
                cuts.push(turn.at);
                from |= !turn.below;
            }
        }
    });
    cuts.sort_unstable();
    cuts.dedup();
    let long = lengths(lo, &cuts, hi).all(|n| n >= LEAST_PIECE);
    let few = size * (cuts.len() + 1) <= MOST_STATEMENTS * 4;
    (from && long && few && cuts.len() < MOST_PIECES).then_some(cuts)
}

/// How many iterations lie between cuts.
fn lengths(lo: i64, cuts: &[i64], hi: i64) -> impl Iterator<Item = i64> {
    let starts = [lo].into_iter().chain(cuts.iter().copied());
    cuts.iter().copied().chain([hi]).zip(starts).map(|(end, start)| end.saturating_sub(start))
}

/// The bounds of a loop's pieces.
fn between(f: &For, cuts: &[i64]) -> impl Iterator<Item = (Ix, Ix)> {
    let at = || cuts.iter().map(|at| Ix::Const(*at));
    [f.lo.clone()].into_iter().chain(at()).zip(at().chain([f.hi.clone()]))
}

/// A loop cut where conditions turn: in each piece it is known whether they hold.
fn pieces(kernel: &mut Kernel, f: &For, cuts: &[i64], facts: &Refs) -> Vec<Stmt> {
    let mut out = vec![];
    for (lo, hi) in between(f, cuts) {
        let start = lo.as_const().unwrap_or(i64::MIN);
        let (mut holds, mut fails) = (Group::default(), Group::default());
        walk::visit(&f.body, &mut |s| {
            for c in walk::mask(s).into_iter().flat_map(|m| &m.conds) {
                // What turns beyond the loop is one thing in all pieces.
                let Some(turn) = turn(c, f.axis, facts) else { continue };
                let group = if (start < turn.at) == turn.below { &mut holds } else { &mut fails };
                group.conds.push(c.clone());
            }
        });
        let mut piece = For { lo, hi, ..f.clone() };
        deny(&mut piece.body, &fails);
        assume(&mut piece.body, &holds);
        edit::choose(&mut piece.body);
        edit::drop_unused(&mut piece.body);
        out.extend(walk::clone_fresh(kernel, &[Stmt::For(Box::new(piece))]));
    }
    out
}

/// The iterations from which another side of a `min` or `max` in a subscript counts. None where few would be left between them.
fn bends(f: &For, facts: &Refs) -> Option<Vec<i64>> {
    let (lo, hi) = (f.lo.as_const()?, f.hi.as_const()?);
    if f.body.iter().any(|s| !walk::bodies(s).is_empty()) {
        return None;
    }
    let mut cuts = vec![];
    walk::visit(&f.body, &mut |s| {
        if !matches!(s, Stmt::Load { .. } | Stmt::Read { .. }) {
            return;
        }
        walk::parts(s, &mut |part| {
            if let Part::Ix(ix) = part {
                each_choice(ix, &mut |a, b| {
                    let first = Cond::new(a.clone(), Cmp::Ge, b.clone());
                    cuts.extend(turn(&first, f.axis, facts).map(|turn| turn.at).filter(|at| lo < *at && *at < hi));
                });
            }
        });
    });
    cuts.sort_unstable();
    cuts.dedup();
    let long = lengths(lo, &cuts, hi).any(|n| n >= LEAST_PIECE);
    let few = f.body.len() * (cuts.len() + 1) <= MOST_STATEMENTS * 4;
    (!cuts.is_empty() && long && few && cuts.len() < MOST_PIECES).then_some(cuts)
}

/// Calls `f` with both sides of each `min` and `max` of an expression.
fn each_choice(ix: &Ix, f: &mut dyn FnMut(&Ix, &Ix)) {
    let Some((a, b)) = ix.operands() else { return };
    each_choice(a, f);
    each_choice(b, f);
    if matches!(ix, Ix::Min(..) | Ix::Max(..)) {
        f(a, b);
    }
}

/// A loop cut where its subscripts bend: in each piece one side counts.
fn straightened(kernel: &mut Kernel, f: &For, cuts: &[i64]) -> Vec<Stmt> {
    let mut out = vec![];
    for (lo, hi) in between(f, cuts) {
        let mut facts = kernel.facts();
        facts.set_axis(f.axis, &lo, &hi);
        let mut piece = For { lo, hi, ..f.clone() };
        walk::map_ixs(&mut piece.body, &mut |ix| *ix = simplify(&chosen(ix, &facts), &facts));
        out.extend(walk::clone_fresh(kernel, &[Stmt::For(Box::new(piece))]));
    }
    out
}

/// An expression with the sides of `min` and `max` that count, where that is known.
fn chosen(ix: &Ix, facts: &Facts) -> Ix {
    let Some((a, b)) = ix.operands() else { return ix.clone() };
    let (a, b) = (chosen(a, facts), chosen(b, facts));
    let greater = || facts.decide(&Cond::new(a.clone(), Cmp::Ge, b.clone()));
    match ix {
        Ix::Max(..) | Ix::Min(..) => match greater() {
            Some(greater) if greater == matches!(ix, Ix::Max(..)) => a,
            Some(_) => b,
            None => ix.with_operands(a, b),
        },
        _ => ix.with_operands(a, b),
    }
}

/// The conditions that hold up to a bound, and the first iteration in which one fails, or the end of the loop.
fn bounded(f: &For, facts: &Refs) -> Option<(Group, Ix)> {
    let mut group = Group::default();
    let mut bound: Option<Ix> = None;
    walk::visit(&f.body, &mut |s| {
        for c in walk::mask(s).into_iter().flat_map(|m| &m.conds) {
            if !group.conds.contains(c)
                && let Some(at) = upper_bound(c, f.axis, facts)
            {
                group.conds.push(c.clone());
                bound = Some(match bound.take() {
                    None => at,
                    Some(b) => Ix::min(b, at),
                });
            }
        }
    });
    let bound = bound?;
    // What follows a split starts at its bound and is not split again.
    let mid = middle(f, bound.clone());
    let after = matches!(&f.lo, Ix::Max(_, b) if matches!(&**b, Ix::Min(_, at) if **at == bound));
    (!after && mid != f.lo).then_some((group, mid))
}

/// Where a loop goes from its main part to the rest.
fn middle(f: &For, bound: Ix) -> Ix {
    Ix::max(f.lo.clone(), Ix::min(f.hi.clone(), bound))
}

/// True if every effect of a body hangs on the conditions.
pub fn ends_with(body: &[Stmt], group: &Group) -> bool {
    body.iter().all(|s| match s {
        Stmt::Store { mask, order: Order::Weak, .. } => group.masks_whole(mask),
        Stmt::For(f) if f.kind == LoopKind::Free => ends_with(&f.body, group),
        _ => edit::is_pure(s),
    })
}

/// The least value of the axis for which the condition is false, when it is true below and false from there on.
fn upper_bound(c: &Cond, axis: AxisId, facts: &Refs) -> Option<Ix> {
    // lhs - rhs = by*axis + (at - of)
    let (l, r) = (affine::coef(&c.lhs, axis, &facts.vals_defined)?, affine::coef(&c.rhs, axis, &facts.vals_defined)?);
    let by = l.as_const()?.checked_sub(r.as_const()?)?;
    if c.lhs.axes().iter().chain(&c.rhs.axes()).any(|a| facts.axes_defined.contains(a)) {
        return None;
    }
    let (lhs, rhs) = (affine::rest(&c.lhs, axis), affine::rest(&c.rhs, axis));
    // by*axis < room, or by*axis <= room - 1
    let room = match (by > 0, c.cmp) {
        (true, Cmp::Lt) => Ix::sub(rhs, lhs),
        (true, Cmp::Le) => Ix::add(Ix::sub(rhs, lhs), Ix::Const(1)),
        (false, Cmp::Gt) if by < 0 => Ix::sub(lhs, rhs),
        (false, Cmp::Ge) if by < 0 => Ix::add(Ix::sub(lhs, rhs), Ix::Const(1)),
        _ => return None,
    };
    Some(Ix::ceil_div(room, Ix::Const(by.checked_abs()?)))
}

fn split(kernel: &mut Kernel, f: &For, group: Group, mid: Ix) -> Vec<Stmt> {
    let mut main = f.clone();
    main.hi = mid.clone();
    assume(&mut main.body, &group);
    if mid == f.hi || ends_with(&f.body, &group) {
        return vec![Stmt::For(Box::new(main))];
    }
    let mut rest = vec![Stmt::For(Box::new(For { lo: mid, ..f.clone() }))];
    // Otherwise it is not known which of the conditions fail.
    if group.is_uniform(&f.body) {
        deny(&mut rest, &group);
        edit::drop_unused(&mut rest);
    }
    let mut out = vec![Stmt::For(Box::new(main))];
    out.extend(walk::clone_fresh(kernel, &rest));
    out
}

/// Drops conditions that hold.
pub fn assume(body: &mut [Stmt], group: &Group) {
    walk::visit_mut(body, &mut |s| {
        if let Some(mask) = walk::mask_mut(s) {
            mask.conds.retain(|c| !group.conds.contains(c));
            mask.vals.retain(|v| !group.vals.contains(v));
        }
        match s {
            Stmt::Test { dst, mask } if mask.is_always() => {
                *s = edit::copy_of(*dst, Opnd::Const { dtype: DType::I1, bits: 1 });
            }
            Stmt::Load { mask, other, .. } if mask.is_always() => *other = None,
            _ => {}
        }
    });
}

/// Removes what is masked off when one of the conditions fails.
pub fn deny(body: &mut Vec<Stmt>, group: &Group) {
    walk::visit_bodies_mut(body, &mut |body| {
        body.retain_mut(|s| {
            if !walk::mask(s).is_some_and(|m| group.masks(m)) {
                return true;
            }
            match s {
                Stmt::Load { dst, mem, other, order: Order::Weak, .. } => {
                    let value = other.unwrap_or(Opnd::Const { dtype: mem.elem, bits: 0 });
                    *s = edit::copy_of(*dst, value);
                    true
                }
                Stmt::Test { dst, .. } => {
                    *s = edit::copy_of(*dst, Opnd::Const { dtype: DType::I1, bits: 0 });
                    true
                }
                Stmt::Store { .. } => false,
                _ => true,
            }
        })
    });
}
