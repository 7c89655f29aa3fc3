//! A loop-carried tile and its next value become one buffer.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::nest::{is_bare, perfect};
use super::uses::Uses;
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::Ix;
use crate::loops::ir::{BufId, Kernel, Opnd, Stmt};
use crate::loops::walk;

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "coalesce_carried",
    doc: "\
Where a buffer is filled only to be copied whole into another one, the two become one buffer, updated in place.

```text
for k:                                        for k:
  local n
  for i: n[i] = c[i]                   -->
  for i: for j: n[i] <- fma(..)                 for i: for j: c[i] <- fma(..)
  for i: c[i] = n[i]
```

Refused unless the old value is dead once the new one is written: each element of the new value depends only on its own
old element, nothing reads the old value later in the body, and nothing reads the new value after the copy.",
    run,
};

fn run(kernel: &Kernel, _: &Assumptions, log: &mut Log) -> Option<Kernel> {
    super::rewritten(kernel, log, |kernel, body, log| {
        walk::visit_bodies_mut(body, &mut |body| list(kernel, body, log));
    })
}

fn list(kernel: &Kernel, body: &mut Vec<Stmt>, log: &mut Log) {
    if !body.iter().any(|s| copy(kernel, s).is_some()) {
        return;
    }
    let mut uses = Uses::index(body);
    let mut declared: FxHashMap<BufId, usize> = FxHashMap::default();
    for (at, s) in body.iter().enumerate() {
        if let Stmt::Local { buf } = s {
            declared.entry(*buf).or_insert(at);
        }
    }
    // Joining two buffers may make an earlier copy removable.
    let mut gone = FxHashSet::default();
    loop {
        let (mut joined, mut skipped) = (false, vec![]);
        for at in 0..body.len() {
            let Some((from, to)) = copy(kernel, &body[at]) else { continue };
            let name = format!("{} into {}", kernel.bufs[from].name, kernel.bufs[to].name);
            match dead(body, at, from, to, &uses, &declared) {
                Ok(start) => {
                    (body[at], body[start]) = (nothing(), nothing());
                    gone.extend([at, start]);
                    for places in [uses.write.get_mut(&to), uses.mention.get_mut(&to)].into_iter().flatten() {
                        places.remove(&at);
                    }
                    rename(body, from, to, &mut uses, &mut gone);
                    log.applied(name);
                    joined = true;
                }
                Err(why) => skipped.push((name, why)),
            }
        }
        if !joined {
            skipped.into_iter().for_each(|(name, why)| log.skipped(name, why));
            break;
        }
    }
    let mut place = 0..;
    body.retain(|_| place.next().is_none_or(|n| !gone.contains(&n)));
}

/// Takes the place of a removed statement.
fn nothing() -> Stmt {
    Stmt::Loop { body: vec![] }
}

/// `for axes: to[axes] = from[axes]`, whole.
fn copy(kernel: &Kernel, s: &Stmt) -> Option<(BufId, BufId)> {
    let (axes, body) = perfect(s);
    let [Stmt::Read { dst, buf: from, idx: at }, Stmt::Write { buf: to, idx, value: Opnd::Val(v) }] = body else {
        return None;
    };
    let (a, b) = (&kernel.bufs[*from], &kernel.bufs[*to]);
    let whole = idx.iter().zip(&b.shape).all(|(ix, &n)| match ix {
        Ix::Axis(x) => axes.iter().any(|&(y, m)| *x == y && m as u64 == n),
        _ => n == 1,
    });
    (v == dst && at == idx && from != to && a.ty == b.ty && a.shape == b.shape && is_bare(idx, &axes) && whole)
        .then_some((*from, *to))
}

/// Checks that `from` can live in `to`, given the copy at `at`; returns the place where `from` is declared.
fn dead(
    body: &[Stmt],
    at: usize,
    from: BufId,
    to: BufId,
    uses: &Uses,
    declared: &FxHashMap<BufId, usize>,
) -> Result<usize, &'static str> {
    let Some(start) = declared.get(&from).copied().filter(|start| *start < at) else {
        return Err("the new value outlives the body");
    };
    if declared.get(&to).is_some_and(|to| (start..at).contains(to)) {
        return Err("the old buffer begins after the new one");
    }
    let mentions = |s: &Stmt, b: BufId| {
        let r = walk::refs_of(s);
        (r.bufs_read.contains(&b), r.bufs_written.contains(&b))
    };
    if uses.of(from, body).any(|(n, s)| n > at && mentions(s, from) != (false, false)) {
        return Err("the new value is used after the copy");
    }
    let mut live = false;
    let both: BTreeSet<usize> = [from, to].iter().filter_map(|b| uses.mention.get(b)).flatten().copied().collect();
    let first = uses.write.get(&from).and_then(|w| w.range(start + 1..).next()).copied().unwrap_or(at);
    // After the new value is written, no statement may leave the loop.
    if body[first.min(at)..at].iter().any(|s| walk::effects(std::slice::from_ref(s)).leaves) {
        return Err("the loop may go on with the old value");
    }
    for s in both.range(start + 1..at).map(|n| &body[*n]) {
        let (reads_old, writes_old) = mentions(s, to);
        let writes_new = mentions(s, from).1;
        if writes_old {
            return Err("the old value is written before the copy");
        }
        if live && reads_old {
            return Err("the old value is read after the new one is written");
        }
        if writes_new && reads_old && !element_wise(s, from, to) {
            return Err("an element of the new value depends on others of the old one");
        }
        live |= writes_new;
    }
    Ok(start)
}

/// Every iteration of the nest reads of `old` only the element that it then writes of `new`.
fn element_wise(s: &Stmt, new: BufId, old: BufId) -> bool {
    let (axes, body) = perfect(s);
    let mut read: Option<&Vec<Ix>> = None;
    let mut written = false;
    for s in body {
        match s {
            Stmt::Read { buf, idx, .. } if *buf == old => {
                if written || read.is_some_and(|r| r != idx) || !is_bare(idx, &axes) {
                    return false;
                }
                read = Some(idx);
            }
            Stmt::Write { buf, idx, .. } if *buf == new => {
                if read.is_some_and(|r| r != idx) || !is_bare(idx, &axes) {
                    return false;
                }
                written = true;
            }
            _ => {
                let inner: BTreeSet<BufId> = {
                    let r = walk::refs(std::slice::from_ref(s));
                    r.bufs_read.union(&r.bufs_written).copied().collect()
                };
                if !walk::bodies(s).is_empty() && (inner.contains(&new) || inner.contains(&old)) {
                    return false;
                }
            }
        }
    }
    true
}

/// Replaces `from` by `to`; removes copies of `to` into itself.
fn rename(body: &mut [Stmt], from: BufId, to: BufId, uses: &mut Uses, gone: &mut FxHashSet<usize>) {
    let mut renaming = walk::Renaming::default();
    renaming.bufs.insert(from, to);
    let written = uses.write.remove(&from).unwrap_or_default();
    let mentioned = uses.mention.remove(&from).unwrap_or_default();
    for &n in &mentioned {
        let Some(s) = body.get_mut(n) else { continue };
        renaming.apply(std::slice::from_mut(s));
        if copies_itself(s) {
            *s = nothing();
            gone.insert(n);
        }
    }
    uses.write.entry(to).or_default().extend(written);
    uses.mention.entry(to).or_default().extend(mentioned);
}

/// `for i: b[i] = b[i]`.
fn copies_itself(s: &Stmt) -> bool {
    let (axes, inner) = perfect(s);
    matches!(inner, [Stmt::Read { dst, buf: a, idx: x }, Stmt::Write { buf: b, idx: y, value: Opnd::Val(v) }]
        if a == b && x == y && v == dst && (is_bare(x, &axes) || axes.is_empty()))
}
