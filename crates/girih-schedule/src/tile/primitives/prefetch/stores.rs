//! `prefetch LOOP, LOOP`: a pass through a row asks for the memory that a later pass writes.
//!
//! ```text
//! for k in 0..1024: reduce vector(16) ..            for k in 0..1024: reduce vector(16) ..
//!   e = exp(x[r*1024 + k] - largest)                  prefetch y[r*1024 + k]
//!   exp[k] = e                              -->       e = exp(x[r*1024 + k] - largest)
//!   s = s + e                                         ..
//! for j in 0..1024: free vector(16)                 for j in 0..1024: free vector(16)
//!   store y[r*1024 + j] = exp[j] * (1/s)              ..
//! ```
//!
//! A processor reads a line before it changes it. A pass that only writes waits for that, and the queue of its stores is full before it
//! comes to the next row. Legal wherever the address is known when the first pass runs: memory that is asked for need not exist.

use std::collections::BTreeSet;

use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::most_trips;
use crate::tile::heuristics::prefetch::SHORTEST_ROW;
use crate::tile::lines::LINE;
use crate::tile::primitives::line::{LoopRef, loop_at, replace};
use crate::tile::target::Capability;

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef]) -> Result<(), String> {
    if !ctx.target.has(Capability::Caches) {
        return Err(format!("{} has no caches that are asked", ctx.target.name));
    }
    let [at, of] = loops[..] else { return Err("it takes two loops: one that asks, and one that stores".into()) };
    let (early, late) = (loop_at(kernel, at)?, loop_at(kernel, of)?);
    let passes =
        between(&kernel.body, early, late).ok_or("the second loop does not stand behind the first one, in one body")?;
    let asked = prefetches(passes, early, late);
    if asked.is_empty() {
        return Err(
            "the second loop stores nothing side by side at addresses that are known when the first one runs".into()
        );
    }
    replace(kernel, at, &mut |_, f| {
        let body = [&asked[..], &f.body].concat();
        Ok(vec![Stmt::For(Box::new(For { body, ..f.clone() }))])
    })
}

/// The statements of a body from one loop to a later one.
fn between<'a>(body: &'a [Stmt], early: &For, late: &For) -> Option<&'a [Stmt]> {
    let place = |f: &For| body.iter().position(|s| matches!(s, Stmt::For(l) if std::ptr::eq(&**l, f)));
    match (place(early), place(late)) {
        (Some(from), Some(to)) if from < to => Some(&body[from..=to]),
        _ => body.iter().flat_map(walk::bodies).find_map(|inner| between(inner, early, late)),
    }
}

/// A prefetch for each line that an iteration of the later pass writes; of a vector of iterations where the early one has vectors.
fn prefetches(passes: &[Stmt], early: &For, late: &For) -> Vec<Stmt> {
    let made: BTreeSet<ValId> = walk::refs(passes).vals_defined;
    let lanes = match early.place {
        Place::Vector { lanes } => u64::from(lanes),
        _ => 1,
    };
    let mut asked = vec![];
    for mem in stored(late) {
        let known = !made.contains(&mem.base) && mem.index.vals().iter().all(|v| !made.contains(v));
        if !known || mem.index.linear(late.axis).is_none_or(|(by, _)| !by.is_const(1)) {
            continue;
        }
        let start = mem.index.subst_axes(&mut |a| (a == late.axis).then_some(Ix::Axis(early.axis)));
        let bytes = mem.elem.bytes();
        for line in 0..(lanes * bytes).div_ceil(LINE) {
            let index = Ix::add(start.clone(), Ix::Const((line * LINE / bytes) as i64));
            let ask = Stmt::Prefetch { mem: Mem { index, ..mem.clone() } };
            if !asked.contains(&ask) {
                asked.push(ask);
            }
        }
    }
    asked
}

/// The memory of whole bytes that a loop's own statements store to.
fn stored(f: &For) -> impl Iterator<Item = &Mem> {
    f.body.iter().filter_map(|s| match s {
        Stmt::Store { mem, order: Order::Weak, .. } if mem.elem.bits() >= 8 => Some(mem),
        _ => None,
    })
}

/// Pairs of passes: the first one is to ask for what the second writes.
pub fn passes(body: &[Stmt]) -> Vec<(&For, &For)> {
    let mut found = vec![];
    for (at, s) in body.iter().enumerate() {
        if let Stmt::For(late) = s
            && late.kind == LoopKind::Free
            && long(late)
            && let Some(early) = asks(&body[..at], late)
            && !prefetches(between(body, early, late).unwrap_or(&[]), early, late).is_empty()
        {
            found.push((early, &**late));
        }
        found.extend(walk::bodies(s).into_iter().flat_map(|inner| passes(inner)));
    }
    found
}

/// True if a loop in vectors stores enough, in elements as wide as those that it computes with: arithmetic bounds passes over narrower
/// ones.
fn long(f: &For) -> bool {
    let bytes = stored(f).map(|mem| mem.elem.bytes()).min();
    let enough = |bytes: u64| bytes >= 4 && most_trips(f).is_none_or(|trips| trips * bytes >= SHORTEST_ROW);
    matches!(f.place, Place::Vector { .. }) && bytes.is_some_and(enough)
}

/// The last pass over the same elements that finds them in the cache, and stores nothing itself. One that reads them from memory has
/// enough under way.
fn asks<'a>(before: &'a [Stmt], late: &For) -> Option<&'a For> {
    let loop_of = |s: &'a Stmt| if let Stmt::For(f) = s { Some(&**f) } else { None };
    let same = |f: &For| f.lo == late.lo && (f.hi == late.hi || most_trips(f) == most_trips(late));
    let at =
        before.iter().rposition(|s| loop_of(s).is_some_and(|f| same(f) && matches!(f.place, Place::Vector { .. })))?;
    let early = loop_of(&before[at])?;
    let earlier: Vec<&For> = before[..at].iter().filter_map(loop_of).collect();
    let asking = matches!(early.body.first(), Some(Stmt::Prefetch { .. }));
    let near = |s: &Stmt| match s {
        Stmt::Load { mem, .. } => of_all_rows(mem, early.axis) || earlier.iter().any(|f| loads(f, mem, early.axis)),
        Stmt::Store { .. } => false,
        _ => true,
    };
    (!asking && !earlier.is_empty() && early.body.iter().all(near)).then_some(early)
}

/// True if each row reads the same, as of weights.
fn of_all_rows(mem: &Mem, axis: AxisId) -> bool {
    !mem.index.any_leaf(&mut |leaf| !matches!(leaf, Ix::Const(_)) && *leaf != Ix::Axis(axis))
}

/// True if a loop loads the same elements, counted by its own axis.
fn loads(f: &For, mem: &Mem, axis: AxisId) -> bool {
    let index = mem.index.subst_axes(&mut |a| (a == axis).then_some(Ix::Axis(f.axis)));
    f.body.iter().any(|s| matches!(s, Stmt::Load { mem: other, .. } if other.base == mem.base && other.index == index))
}
