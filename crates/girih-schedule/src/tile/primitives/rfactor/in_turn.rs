//! `rfactor` into an array of partial results, which a nest of their own computes.
//!
//! ```text
//! for j in 0..32: free                               local s_parts: f32[16, 32]
//!   s = 1.0                                          for p in 0..16: free: for j in 0..32: free
//!   for k in 0..64: reduce combine add(s)              s_part = 0.0
//!     s <- x[k, j] + s                                 for e in 0..4: reduce: s_part <- x[e*16 + p, j] + s_part
//!   y[j] = s                                  -->      s_parts[p, j] = s_part
//!                                                    for j_1 in 0..32: free
//!                                                      s = 1.0
//!                                                      for p_1 in 0..16: reduce combine add(s): s <- s_parts[p_1, j_1] + s
//!                                                      y[j_1] = s
//! ```
//!
//! Stretches of terms go to the results in turn; with `16 x 8` a stretch has eight, and a loop of its own. All free loops around the
//! reduction run twice. Legal where nothing but free loops and conditions stands around it, and nothing before it but the start of its
//! accumulator and values that both nests can compute.

use super::{Fold, Parts, legal};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit::{self, const_trip};
use crate::tile::primitives::MOST_BYTES;
use crate::tile::primitives::line::{LoopRef, holds, look, loop_at, replace};
use crate::tile::primitives::split::Pieces;

/// Gives stretches of `size` terms to `parts` results in turn. A third name is of the loop over the terms of a stretch.
pub fn apply(kernel: &mut Kernel, at: LoopRef, [parts, size]: [u32; 2], names: &[String]) -> Result<(), String> {
    if names.len() != 2 + usize::from(size > 1) {
        let stretch = if size > 1 { " and the iterations of a stretch" } else { "" };
        return Err(format!("expected `->` and the names of the loops over the results, their stretches{stretch}"));
    }
    let seen = kernel.clone();
    let reduce = loop_at(&seen, at)?;
    let fold = legal(&seen, reduce)?;
    let (mut around, mut nest) = (vec![], None);
    look(&seen, &mut |own, f| {
        if f.is_free_unplaced() && holds(&f.body, reduce) {
            nest = nest.or(Some(own));
            around.push(f);
        }
        true
    });
    let (Some(nest), Some(outer)) = (nest, around.first()) else { return Err("it stands in no free loop".into()) };
    let extents: Option<Vec<u64>> = around.iter().map(|f| const_trip(f)).collect();
    let shape = extents.ok_or("a loop around it does not run from 0 to a constant")?;
    let shape = [u64::from(parts)].into_iter().chain(shape).collect();
    let name = seen.bufs[fold.acc].name.clone();
    let array = Buf::new(format!("{name}_parts"), Ty::Num(fold.dtype), shape);
    if array.bytes() > MOST_BYTES {
        return Err(format!("the partial results have {} bytes; {MOST_BYTES} are the most", array.bytes()));
    }
    let array = kernel.bufs.push(array);
    let part = kernel.bufs.push(Buf::new(format!("{name}_part"), Ty::Num(fold.dtype), vec![]));
    let axes: Vec<AxisId> = names.iter().map(|name| edit::named_axis(kernel, reduce.axis, name.clone())).collect();
    let of_part = || {
        let idx = [axes[0]].into_iter().chain(around.iter().map(|f| f.axis)).map(Ix::Axis).collect();
        Parts::Buffer { buf: array, idx }
    };
    let terms = terms(kernel, reduce, i64::from(parts), size.into(), &axes);
    let first = fold.into_part(kernel, part, terms, of_part());
    let add = fold.add_part(kernel, vec![], of_part());
    let second = edit::loop_with(axes[0], Ix::Const(parts.into()), add, |f| {
        (f.kind, f.combine) = (LoopKind::Reduce, reduce.combine.clone());
    });
    let [first, second] = Halves { reduce, fold, first, second }.of(&outer.body)?;
    let again = |body| outer.around(body);
    let first = edit::free_loop(axes[0], Ix::Const(parts.into()), vec![again(first)]);
    let second = walk::clone_fresh(kernel, &[again(second)]);
    let made: Vec<Stmt> = [Stmt::Local { buf: array }, first].into_iter().chain(second).collect();
    replace(kernel, nest, &mut |_, _| Ok(made.clone()))
}

/// The loop over the terms of a partial result.
fn terms(kernel: &Kernel, f: &For, parts: i64, size: i64, axes: &[AxisId]) -> Stmt {
    let (part, round, count) = (Ix::Axis(axes[0]), Ix::Axis(axes[1]), Ix::Const(parts));
    let pieces = Pieces::of(f, size);
    let stretch = Ix::add(Ix::mul(round, count.clone()), part.clone());
    let start = Ix::mul(stretch, pieces.size());
    let reduce = |axis, hi, body| edit::loop_with(axis, hi, body, |f| f.kind = LoopKind::Reduce);
    let mut body = f.body.clone();
    let term = axes.get(2).map_or(start.clone(), |v| Ix::add(start.clone(), Ix::Axis(*v)));
    walk::subst_axis(&mut body, f.axis, &term);
    if let Some(v) = axes.get(2) {
        body = vec![reduce(*v, pieces.length_from(start), body)];
    }
    let stretches = pieces.count(&kernel.facts());
    let rounds = match stretches.as_const() {
        Some(n) if n % parts == 0 => Ix::Const(n / parts),
        _ => Ix::floor_div(Ix::sub(Ix::add(stretches, Ix::Const(parts - 1)), part), count),
    };
    reduce(axes[1], rounds, body)
}

/// The statements of a nest that compute partial results, and the others.
struct Halves<'a> {
    reduce: &'a For,
    fold: Fold,
    first: Vec<Stmt>,
    second: Stmt,
}

impl Halves<'_> {
    fn of(&self, body: &[Stmt]) -> Result<[Vec<Stmt>; 2], String> {
        let is_around = |s: &Stmt| holds(std::slice::from_ref(s), self.reduce);
        let at = body.iter().position(is_around).ok_or("the loop is gone")?;
        let (before, after) = (&body[..at], &body[at + 1..]);
        let starts = |s: &Stmt| match s {
            Stmt::Local { buf } | Stmt::Write { buf, .. } => *buf == self.fold.acc,
            _ => false,
        };
        let reads = |s: &Stmt| matches!(s, Stmt::Read { buf, .. } if *buf == self.fold.acc);
        if before.iter().any(|s| !starts(s) && (!edit::is_pure(s) || reads(s))) {
            return Err("more stands before it than values and the start of its accumulator".into());
        }
        let [mut first, inner]: [Vec<Stmt>; 2] = match &body[at] {
            Stmt::For(f) if std::ptr::eq(&**f, self.reduce) => {
                let folds = |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Write { .. }) && starts(s);
                if !f.body.iter().all(folds) {
                    return Err("it holds more than loads, arithmetic and its accumulator".into());
                }
                [self.first.clone(), vec![self.second.clone()]]
            }
            Stmt::For(f) if f.is_free_unplaced() => self.of(&f.body)?.map(|body| vec![f.around(body)]),
            Stmt::If { cond, then, els } if els.is_empty() => {
                self.of(then)?.map(|then| vec![Stmt::If { cond: *cond, then, els: vec![] }])
            }
            _ => return Err("more stands around it than free loops and conditions".into()),
        };
        first.splice(0..0, before.iter().filter(|s| edit::is_pure(s)).cloned());
        let second = before.iter().cloned().chain(inner).chain(after.iter().cloned()).collect();
        Ok([first, second])
    }
}
