//! `hoist`: statements that are the same in all iterations of a loop run once, before it.
//!
//! ```text
//! for i in 0..512: free                            at = load rows[n]
//!   at = load rows[n]                              for i in 0..512: free
//!   for j in 0..1024: free                -->        for j in 0..1024: free
//!     y[i, j] = x[at, j]                               y[i, j] = x[at, j]
//! ```
//!
//! Where none stands first in it, values that the loop at its end computes alike each time are kept, an element for each iteration:
//!
//! ```text
//! for c in 0..32: free                             local w_of: f32[256]
//!   for j in 0..256: free                          for j in 0..256: free
//!     w = exp(load g[j])                             w_of[j] = exp(load g[j])
//!     y[c, j] = (load x[c, j]) * w        -->      for c in 0..32: free
//!                                                    for j in 0..256: free
//!                                                      y[c, j] = (load x[c, j]) * w_of[j]
//! ```
//!
//! So are arrays that the loop fills first and does not write to again. It is done where the loop has no iteration, too: loads and
//! assertions only move where the loop is known to run. A serial loop's stages go that are filled with the same each time.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{LoopRef, look, replace};
use crate::index::{Facts, Interval};
use crate::loops::ir::*;
use crate::loops::walk::{self, Part};
use crate::num::convert::sign_extend;
use crate::num::op::Signedness;
use crate::num::{DType, ScalarOp};
use crate::tile::affine::{self, Stride};
use crate::tile::edit::{self, at_most, new_axis};

/// Moves what all iterations of a loop do alike before it.
pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    let (mut shared, mut runs_always) = (None, false);
    look(kernel, &mut |loop_at, f| {
        if loop_at == at {
            runs_always = runs(kernel, f);
        }
        if loop_at == at
            && f.kind == LoopKind::Free
            && alike(f) == 0
            && let Some(Stmt::For(inner)) = f.body.last()
        {
            shared = Some(Shared::of(kernel, f, inner));
        }
        loop_at != at
    });
    replace(kernel, at, &mut |kernel, f| {
        if f.kind == LoopKind::Serial && f.place == Place::None {
            let same = stages_alike(kernel, f);
            let mut inner = f.clone();
            let body = std::mem::take(&mut inner.body).into_iter();
            let (mut out, rest): (Vec<_>, Vec<_>) =
                body.partition(|s| matches!(s, Stmt::Stage { buf, .. } if same.contains(buf)));
            if out.is_empty() {
                return Err("it fills no stage with the same in all its iterations".into());
            }
            inner.body = rest;
            out.push(Stmt::For(Box::new(inner)));
            return Ok(out);
        }
        if !f.is_free_unplaced() {
            return Err("it is not free, or is placed already".into());
        }
        if let Some(shared) = &shared {
            return keep(kernel, f, shared.as_ref().map_err(|why| why.to_string())?);
        }
        if !runs_always {
            return Err("it may not run".into());
        }
        let mut inner = f.clone();
        let own = inner.body.split_off(alike(f));
        let mut out = std::mem::replace(&mut inner.body, own);
        if out.is_empty() {
            return Err("nothing stands first in it that is the same for all its iterations".into());
        }
        out.push(Stmt::For(Box::new(inner)));
        Ok(out)
    })
}

/// The buffers that every iteration of a loop stages alike. Without an iteration nothing may be read that the program did not
/// say to be there: a mask says so, and so does a model.
pub fn stages_alike(kernel: &Kernel, f: &For) -> Vec<BufId> {
    let all = walk::effects(&f.body);
    if !all.stores.is_empty() || all.ordered || all.atomic {
        return vec![];
    }
    let inside = walk::refs(&f.body);
    let runs = kernel.open || edit::const_trip(f).is_some_and(|n| n > 0);
    let same = |s: &Stmt| {
        let Stmt::Stage { buf, .. } = s else { return None };
        let own = walk::refs(std::slice::from_ref(s));
        let varies = own.axes_used.contains(&f.axis)
            || own.vals_used.iter().any(|v| inside.vals_defined.contains(v) && !own.vals_defined.contains(v))
            || own.bufs_read.iter().any(|b| inside.bufs_written.contains(b));
        let always = |s: &Stmt| matches!(s, Stmt::Load { mask, .. } if mask.is_always());
        (!varies && (runs || !walk::stmts(std::slice::from_ref(s)).any(always))).then_some(*buf)
    };
    f.body.iter().filter_map(same).collect()
}

/// How many statements at the beginning of a body are the same for all iterations: values, and arrays that nothing else writes to.
pub fn alike(f: &For) -> usize {
    let stores = walk::effects(&f.body).stores;
    let same = |(at, s): &(usize, &Stmt)| {
        let moves = match s {
            Stmt::Load { mem, .. } => edit::is_pure(s) && !stores.contains(&mem.base),
            Stmt::For(_) | Stmt::Local { .. } => fills(f, *at, &stores),
            s => matches!(s, Stmt::Assert { .. }) || edit::is_pure(s) && !matches!(s, Stmt::Read { .. }),
        };
        moves && !walk::refs(std::slice::from_ref(*s)).axes_used.contains(&f.axis)
    };
    f.body.iter().enumerate().take_while(same).count()
}

/// Returns true for an array that a loop right behind it fills with loads and arithmetic, the same in all iterations, and for that loop,
/// where nothing behind them writes to the array.
fn fills(f: &For, at: usize, stores: &BTreeSet<ValId>) -> bool {
    let at = if matches!(f.body[at], Stmt::For(_)) { at } else { at + 1 };
    let array = at.checked_sub(1).and_then(|at| f.body.get(at));
    let (Some(Stmt::Local { buf }), Some(Stmt::For(fill))) = (array, f.body.get(at)) else { return false };
    let mut same = fill.kind == LoopKind::Free;
    walk::visit(&f.body[at..=at], &mut |s| {
        same &= match s {
            Stmt::For(f) => f.is_free_unplaced(),
            Stmt::Load { mem, .. } => edit::is_pure(s) && !stores.contains(&mem.base),
            Stmt::Write { buf: to, .. } => to == buf,
            s => edit::is_pure(s) && !matches!(s, Stmt::Read { .. }),
        };
    });
    let after = walk::refs(&f.body[at + 1..]).bufs_written;
    same && !walk::refs(&f.body[at..=at]).axes_used.contains(&f.axis) && !after.contains(buf)
}

/// The values that a loop computes alike in all iterations of a loop around it.
pub struct Shared {
    /// Marks its statements that are done once.
    once: Vec<bool>,
    /// Marks those of them that each iteration does nevertheless: reading what they read is as quick as reading what would be kept.
    again: Vec<bool>,
    /// The values and the parts of index expressions that are kept.
    values: BTreeSet<ValId>,
    places: BTreeSet<Ix>,
    /// The cost of what is done once, for an element.
    pub cost: i64,
}

impl Shared {
    /// The values that `inner`, which stands in `f`, computes alike in all iterations of `f`.
    pub fn of(kernel: &Kernel, f: &For, inner: &For) -> Result<Shared, &'static str> {
        let all = walk::effects(&f.body);
        if all.ordered || all.atomic || all.leaves || all.prints {
            return Err("it holds atomics, ordered accesses or prints, or leaves the loop");
        }
        let straight =
            |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Write { .. } | Stmt::Store { .. } | Stmt::Assert { .. });
        if !inner.is_free_unplaced() || !inner.body.iter().all(straight) {
            return Err("the loop at its end is not free, or holds more than loads, arithmetic and stores");
        }
        let mut varying = walk::refs(&f.body).vals_defined;
        let bounds = [&inner.lo, &inner.hi, &inner.step];
        let depends = |ix: &&Ix| ix.has_axis(f.axis) || ix.vals().iter().any(|v| varying.contains(v));
        if !inner.counts_from_zero() || bounds.iter().any(depends) {
            return Err("how far the loop at its end goes depends on the iteration");
        }
        let runs = runs(kernel, f);
        for v in inner.body.iter().filter_map(walk::def) {
            varying.remove(&v);
        }
        let number = |v: ValId| matches!(kernel.vals[v].ty, Ty::Num(_));
        let moves = |s: &Stmt| match s {
            Stmt::Load { mem, .. } => edit::is_pure(s) && runs && kernel.open && !all.stores.contains(&mem.base),
            Stmt::Assert { .. } => runs,
            s => edit::is_pure(s),
        };
        let moves = |s: &Stmt| moves(s) && walk::def(s).is_none_or(number);
        let once = edit::same_in_all(&inner.body, f.axis, &varying, &all.bufs_written, &moves);
        varying.extend(inner.body.iter().zip(&once).filter(|(_, once)| !**once).filter_map(|(s, _)| walk::def(s)));
        let mut shared =
            Shared { again: vec![false; once.len()], once, values: BTreeSet::new(), places: BTreeSet::new(), cost: 0 };
        shared.collect(kernel, f, inner, &varying);
        Ok(shared)
    }

    /// How many numbers are kept for an iteration of the inner loop.
    pub fn kept(&self) -> i64 {
        (self.values.len() + self.places.len()) as i64
    }

    /// About how many bytes are kept for an iteration of the inner loop; places mostly take 32 bits.
    pub fn bytes(&self, kernel: &Kernel) -> u64 {
        let of = |v: &ValId| match kernel.vals[*v].ty {
            Ty::Num(dtype) | Ty::Ptr(dtype) => dtype.bytes(),
        };
        self.values.iter().map(of).sum::<u64>() + 4 * self.places.len() as u64
    }

    fn collect(&mut self, kernel: &Kernel, f: &For, inner: &For, varying: &BTreeSet<ValId>) {
        let marked = |marks: &[bool]| -> BTreeSet<ValId> {
            inner.body.iter().zip(marks).filter(|(_, on)| **on).filter_map(|(s, _)| walk::def(s)).collect()
        };
        let known = marked(&self.once);
        for ((s, once), again) in inner.body.iter().zip(&self.once).zip(&mut self.again) {
            *again = *once && walk::refs_of(s).vals_used.is_disjoint(&known) && reads_in_order(kernel, inner.axis, s);
        }
        let kept: BTreeSet<ValId> = known.difference(&marked(&self.again)).copied().collect();
        let moves = |leaf: &Ix| match leaf {
            Ix::Axis(a) => *a == f.axis,
            Ix::Val { val, .. } => varying.contains(val),
            _ => false,
        };
        for (s, _) in inner.body.iter().zip(&self.once).filter(|(_, once)| !**once) {
            walk::parts(s, &mut |part| match part {
                Part::UseVal(v) | Part::Opnd(Opnd::Val(v)) if kept.contains(v) => _ = self.values.insert(*v),
                Part::Ix(ix) => pieces(ix, &moves, &mut |piece| {
                    if piece.vals().iter().any(|v| kept.contains(v)) {
                        self.places.insert(piece.clone());
                    }
                }),
                _ => {}
            });
        }
        // An integer that is kept as it is needs not be kept as a place, too.
        let values = &self.values;
        self.places.retain(|place| !matches!(place, Ix::Val { val, .. } if values.contains(val)));
        // Statements that nothing needs are dropped.
        let mut needed = self.values.clone();
        needed.extend(self.places.iter().flat_map(Ix::vals));
        for (at, s) in inner.body.iter().enumerate().rev().filter(|(at, _)| self.once[*at]) {
            if walk::def(s).is_some_and(|v| !needed.contains(&v)) {
                continue;
            }
            needed.extend(walk::refs_of(s).vals_used);
            self.cost += match s {
                _ if self.again[at] => 0,
                Stmt::Let { op, .. } => op.cost(),
                Stmt::Load { .. } => FAR,
                _ => 1,
            };
        }
    }
}

/// Returns true if a loop of a kernel has an iteration, wherever the loops around it are.
fn runs(kernel: &Kernel, f: &For) -> bool {
    if let Some(trips) = edit::const_trip(f) {
        return trips > 0;
    }
    let mut around = vec![];
    let found = find_within(&kernel.body, f, &mut around);
    let trips = Ix::sub(f.hi.clone(), f.lo.clone());
    let mut facts = kernel.facts();
    around.iter().for_each(|l| facts.set_axis(l.axis, &l.lo, &l.hi));
    found && trips.axes().iter().all(|a| around.iter().any(|l| l.axis == *a)) && facts.range(&trips).lo > 0
}

/// Finds a loop itself, not one that is equal, and the loops around it.
fn find_within<'a>(body: &'a [Stmt], f: &For, around: &mut Vec<&'a For>) -> bool {
    body.iter().any(|s| {
        let Stmt::For(l) = s else { return walk::bodies(s).into_iter().any(|body| find_within(body, f, around)) };
        if std::ptr::eq(&**l, f) {
            return true;
        }
        around.push(l);
        let found = find_within(&l.body, f, around);
        if !found {
            around.pop();
        }
        found
    })
}

/// The cost of loads that lie apart, in operations.
const FAR: i64 = 8;

/// Returns true if a statement reads neighbours along an axis, or the same element.
fn reads_in_order(kernel: &Kernel, axis: AxisId, s: &Stmt) -> bool {
    let none = BTreeSet::new();
    let stride = match s {
        Stmt::Load { mem, .. } => affine::stride(&mem.index, axis, &none),
        Stmt::Read { buf, idx, .. } => affine::buf_stride(&kernel.bufs[*buf], idx, axis, &none),
        Stmt::Index { .. } => Stride::Unit,
        _ => Stride::Irregular,
    };
    matches!(stride, Stride::Unit | Stride::Same)
}

/// The facts about a kernel, and those about integers that straight statements bring between bounds.
fn with_bounds(kernel: &Kernel, body: &[Stmt]) -> Facts {
    let mut facts = kernel.facts();
    for s in body {
        let Stmt::Let { dst, op, args } = s else { continue };
        let (ScalarOp::MinI { sign: Signedness::Signed } | ScalarOp::MaxI { sign: Signedness::Signed }) = op else {
            continue;
        };
        let of = |x: &Opnd| match x {
            Opnd::Const { dtype, bits } => Interval::point(sign_extend(*dtype, *bits).into()),
            Opnd::Val(v) => facts.vals.get(v).copied().unwrap_or(Interval::I64),
        };
        let [a, b] = &args[..] else { continue };
        let both = if matches!(op, ScalarOp::MinI { .. }) { of(a).min(of(b)) } else { of(a).max(of(b)) };
        facts.vals.insert(*dst, both);
    }
    facts
}

/// Calls `f` with the largest parts of an expression without leaves that move.
pub fn pieces<'a>(ix: &'a Ix, moves: &dyn Fn(&Ix) -> bool, f: &mut dyn FnMut(&'a Ix)) {
    if !ix.any_leaf(&mut |leaf| moves(leaf)) {
        return f(ix);
    }
    if let Some((a, b)) = ix.operands() {
        pieces(a, moves, f);
        pieces(b, moves, f);
    }
}

/// The expression with parts of it replaced.
fn replace_pieces(ix: &Ix, by: &BTreeMap<Ix, Ix>) -> Ix {
    match (by.get(ix), ix.operands()) {
        (Some(new), _) => new.clone(),
        (None, Some((a, b))) => ix.with_operands(replace_pieces(a, by), replace_pieces(b, by)),
        (None, None) => ix.clone(),
    }
}

/// Computes once what the loop at the end of a loop's body computes alike each time, and keeps it.
fn keep(kernel: &mut Kernel, f: &For, shared: &Shared) -> Result<Vec<Stmt>, String> {
    let Some((Stmt::For(inner), before)) = f.body.split_last() else { return Err("no loop stands at its end".into()) };
    if shared.kept() == 0 {
        return Err("nothing in it is the same for all its iterations".into());
    }
    let columns = at_most(&inner.hi).ok_or("the loop at its end has no constant bound")?;
    let marked = |on: &dyn Fn(usize) -> bool| -> Vec<Stmt> {
        inner.body.iter().enumerate().filter(|(at, _)| on(*at)).map(|(_, s)| s.clone()).collect()
    };
    let mut first = marked(&|at| shared.once[at]);
    let renaming = walk::Renaming::fresh(kernel, &first);
    let idx = vec![Ix::Axis(inner.axis)];
    let (mut locals, mut reads, mut by) = (vec![], vec![], BTreeMap::new());
    let mut buffer = |kernel: &mut Kernel, value: ValId| {
        let Val { ty, name } = &kernel.vals[value];
        let buf = kernel.bufs.push(Buf::new(format!("{name}_of"), *ty, vec![columns as u64]));
        locals.push(Stmt::Local { buf });
        buf
    };
    for &v in &shared.values {
        let buf = buffer(kernel, v);
        first.push(Stmt::Write { buf, idx: idx.clone(), value: Opnd::Val(v) });
        reads.push(Stmt::Read { dst: v, buf, idx: idx.clone() });
    }
    let facts = with_bounds(kernel, &inner.body);
    for place in &shared.places {
        let dtype = if facts.range(place).within(Interval::signed(32)) { DType::I32 } else { DType::I64 };
        let [made, read] = [(); 2].map(|()| kernel.vals.push(Val { ty: Ty::Num(dtype), name: "at".into() }));
        let buf = buffer(kernel, made);
        let ty = |v: &ValId| kernel.vals[*v].ty;
        first.push(match place {
            Ix::Val { val, zext: false } if ty(val) == ty(&made) => edit::copy_of(made, Opnd::Val(*val)),
            Ix::Val { val, zext: false } if ty(val) == Ty::Num(DType::I64) => {
                Stmt::Let { dst: made, op: ScalarOp::TruncI { to: dtype }, args: vec![Opnd::Val(*val)] }
            }
            place => Stmt::Index { dst: made, ix: place.clone() },
        });
        first.push(Stmt::Write { buf, idx: idx.clone(), value: Opnd::Val(made) });
        reads.push(Stmt::Read { dst: read, buf, idx: idx.clone() });
        by.insert(place.clone(), Ix::val(read));
    }
    edit::drop_unused(&mut first);
    renaming.apply(&mut first);
    let axis = new_axis(kernel, inner.axis, "");
    walk::subst_axis(&mut first, inner.axis, &Ix::Axis(axis));

    let mut rest = marked(&|at| !shared.once[at] || shared.again[at]);
    walk::map_ixs(&mut rest, &mut |ix| *ix = replace_pieces(ix, &by));
    let body = reads.into_iter().chain(rest).collect();
    let mut body = before.iter().cloned().chain([inner.around(body)]).collect();
    edit::drop_unused(&mut body);
    let mut out = locals;
    out.push(Stmt::For(Box::new(For { axis, body: first, ..(**inner).clone() })));
    out.push(f.around(body));
    Ok(out)
}
