//! `prefetch LOOP, LOOP`: a pass through a row asks for the memory that another one needs.
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
//! A processor reads a line before it changes it, so a pass that only writes stalls once its queue of stores is full. Asking ahead hides
//! these reads. If the second loop stands before the first, the first asks for what the second reads in the next block. The step is legal
//! wherever the address is known when the asking loop runs: memory that is asked for need not exist.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::{ask_first, asks_already, has_caches};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::most_trips;
use crate::tile::heuristics::prefetch::{MOST_PASSES, SHORTEST_ROW};
use crate::tile::primitives::line::{LoopRef, loop_at};

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef]) -> Result<(), String> {
    has_caches(ctx)?;
    let [at, of] = loops[..] else {
        return Err("it takes two loops: one that asks, and one that needs the memory".into());
    };
    let (asking, needing) = (loop_at(kernel, at)?, loop_at(kernel, of)?);
    let asked = match (between(&kernel.body, asking, needing), between(&kernel.body, needing, asking)) {
        (Some(passes), _) => written(passes, asking, needing),
        (_, Some(_)) => read_next(kernel, asking, needing),
        _ => return Err("the two loops do not stand in one body".into()),
    };
    if asked.is_empty() {
        return Err(
            "the second loop needs nothing side by side at addresses that are known when the first one runs".into()
        );
    }
    ask_first(kernel, at, &asked)
}

/// The statements of a body from one loop to a later one.
fn between<'a>(body: &'a [Stmt], early: &For, late: &For) -> Option<&'a [Stmt]> {
    let place = |f: &For| body.iter().position(|s| matches!(s, Stmt::For(l) if std::ptr::eq(&**l, f)));
    match (place(early), place(late)) {
        (Some(from), Some(to)) if from < to => Some(&body[from..=to]),
        _ => body.iter().flat_map(walk::bodies).find_map(|inner| between(inner, early, late)),
    }
}

/// A prefetch for each line that an iteration of a later pass writes.
fn written(passes: &[Stmt], asking: &For, late: &For) -> Vec<Stmt> {
    let made: BTreeSet<ValId> = walk::refs(passes).vals_defined;
    let known = |mem: &Mem| !made.contains(&mem.base) && mem.index.vals().iter().all(|v| !made.contains(v));
    lines(asking, late, stored(late).filter(|mem| known(mem)).cloned())
}

/// A prefetch for each line that an iteration of an earlier pass reads in the next block.
fn read_next(kernel: &Kernel, asking: &For, early: &For) -> Vec<Stmt> {
    let given = |v: ValId| kernel.params.iter().any(|p| p.val == v);
    let own = |mem: &Mem| {
        let known = given(mem.base) && mem.index.vals().into_iter().all(given);
        known && mem.index.any_leaf(&mut |leaf| *leaf == Ix::Block(0))
    };
    let next = |mem: &Mem| {
        let index = mem.index.replace_leaves(&mut |leaf| (*leaf == Ix::Block(0)).then(|| Ix::Block(0) + Ix::Const(1)));
        Mem { index, ..mem.clone() }
    };
    lines(asking, early, loaded(early).filter(|mem| own(mem)).map(next))
}

/// A prefetch for each line of memory that an iteration of a loop needs; of a vector of iterations where the one that asks has vectors.
fn lines(asking: &For, needing: &For, needed: impl Iterator<Item = Mem>) -> Vec<Stmt> {
    let lanes = match asking.place {
        Place::Vector { lanes } => u64::from(lanes),
        _ => 1,
    };
    let mut asked = vec![];
    for mem in needed {
        if mem.index.linear(needing.axis).is_none_or(|(by, _)| !by.is_const(1)) {
            continue;
        }
        let start = mem.index.subst_axes(&mut |a| (a == needing.axis).then_some(Ix::Axis(asking.axis)));
        for ask in super::lines(&mem, &start, lanes * mem.elem.bytes()) {
            if !asked.contains(&ask) {
                asked.push(ask);
            }
        }
    }
    asked
}

/// The memory of whole bytes that a loop's own statements load.
fn loaded(f: &For) -> impl Iterator<Item = &Mem> {
    f.body.iter().filter_map(|s| match s {
        Stmt::Load { mem, order: Order::Weak, .. } if mem.elem.bits() >= 8 => Some(mem),
        _ => None,
    })
}

/// The memory of whole bytes that a loop's own statements store to.
fn stored(f: &For) -> impl Iterator<Item = &Mem> {
    f.body.iter().filter_map(|s| match s {
        Stmt::Store { mem, order: Order::Weak, .. } if mem.elem.bits() >= 8 => Some(mem),
        _ => None,
    })
}

/// A loop, and where it stands in its body.
type Placed<'a> = (usize, &'a For);

/// Pairs of passes: the first one is to ask for what the second needs.
pub fn passes<'a>(kernel: &Kernel, body: &'a [Stmt]) -> Vec<[&'a For; 2]> {
    let mut found: Vec<[&For; 2]> = vec![];
    let loops: Vec<Placed<'a>> = body.iter().enumerate().filter_map(|(at, s)| Some((at, loop_of(s)?))).collect();
    for (n, &(at, late)) in loops.iter().enumerate() {
        if late.kind == LoopKind::Free
            && long(late, stored(late))
            && let Some((from, asking)) = asks(&loops[n.saturating_sub(MOST_PASSES)..n], late)
            && !written(&body[from..=at], asking, late).is_empty()
        {
            found.push([asking, late]);
        }
    }
    let taken: FxHashSet<*const For> = found.iter().map(|[asking, _]| std::ptr::from_ref(*asking)).collect();
    for (n, &(_, early)) in loops.iter().enumerate() {
        let idle = |f: &For| touches_no_memory(f) && alike(f, early) && !taken.contains(&std::ptr::from_ref(f));
        let later = &loops[n + 1..loops.len().min(n + 1 + MOST_PASSES)];
        if long(early, loaded(early))
            && let Some((_, asking)) = later.iter().rev().find(|(_, f)| idle(f))
            && !read_next(kernel, asking, early).is_empty()
        {
            found.push([*asking, early]);
        }
    }
    found.extend(body.iter().flat_map(walk::bodies).flat_map(|inner| passes(kernel, inner)));
    found
}

fn loop_of(s: &Stmt) -> Option<&For> {
    if let Stmt::For(f) = s { Some(f) } else { None }
}

/// True if loops in vectors go through as many elements, as far as is known.
fn alike(a: &For, b: &For) -> bool {
    let vector = |f: &For| matches!(f.place, Place::Vector { .. });
    vector(a) && vector(b) && a.lo == b.lo && (a.hi == b.hi || most_trips(a) == most_trips(b))
}

fn touches_no_memory(f: &For) -> bool {
    !f.body.iter().any(|s| {
        matches!(s, Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Prefetch { .. }) || !walk::bodies(s).is_empty()
    })
}

/// True if a loop in vectors goes through enough memory, in elements as wide as those that it computes with: arithmetic bounds passes over
/// narrower ones.
fn long<'a>(f: &For, memory: impl Iterator<Item = &'a Mem>) -> bool {
    let bytes = memory.map(|mem| mem.elem.bytes()).min();
    let enough = |bytes: u64| bytes >= 4 && most_trips(f).is_none_or(|trips| trips * bytes >= SHORTEST_ROW);
    matches!(f.place, Place::Vector { .. }) && bytes.is_some_and(enough)
}

/// The last pass over the same elements that finds them in the cache, and stores nothing itself. One that reads them from memory has
/// enough under way.
fn asks<'a>(before: &[Placed<'a>], late: &For) -> Option<Placed<'a>> {
    let at = before.iter().rposition(|(_, f)| alike(f, late))?;
    let (asking, earlier) = (before[at].1, &before[..at]);
    let near = |s: &Stmt| match s {
        Stmt::Load { mem, .. } => {
            of_all_rows(mem, asking.axis) || earlier.iter().any(|(_, f)| loads(f, mem, asking.axis))
        }
        Stmt::Store { .. } => false,
        _ => true,
    };
    (!asks_already(asking) && !earlier.is_empty() && asking.body.iter().all(near)).then_some(before[at])
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
