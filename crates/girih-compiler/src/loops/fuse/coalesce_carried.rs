//! A loop-carried tile and its next value become one buffer.

use std::collections::BTreeSet;

use super::nest::{is_bare, perfect};
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
    let mut kernel = kernel.clone();
    let mut body = std::mem::take(&mut kernel.body);
    let applied = log.applied.len();
    lists(&kernel, &mut body, log);
    kernel.body = body;
    (log.applied.len() > applied).then_some(kernel)
}

fn lists(kernel: &Kernel, body: &mut Vec<Stmt>, log: &mut Log) {
    for s in body.iter_mut() {
        for inner in walk::bodies_mut(s) {
            lists(kernel, inner, log);
        }
    }
    let mut at = 0;
    while at < body.len() {
        if let Some((from, to)) = copy(kernel, &body[at]) {
            let name = format!("{} into {}", kernel.bufs[from].name, kernel.bufs[to].name);
            match dead(body, at, from, to) {
                Ok(start) => {
                    body.remove(at);
                    body.remove(start);
                    rename(body, from, to);
                    drop_self_copies(body);
                    log.applied(name);
                    at = 0;
                    continue;
                }
                Err(why) => log.skipped(name, why),
            }
        }
        at += 1;
    }
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

/// Checks that `from` can live in `to`, given the copy at `at`; says where `from` is declared.
fn dead(body: &[Stmt], at: usize, from: BufId, to: BufId) -> Result<usize, &'static str> {
    let declared = |s: &Stmt, b: BufId| matches!(s, Stmt::Local { buf } if *buf == b);
    let Some(start) = body[..at].iter().position(|s| declared(s, from)) else {
        return Err("the new value outlives the body");
    };
    if body[start..at].iter().any(|s| declared(s, to)) {
        return Err("the old buffer begins after the new one");
    }
    let mentions = |s: &Stmt, b: BufId| {
        let r = walk::refs_of(s);
        (r.bufs_read.contains(&b), r.bufs_written.contains(&b))
    };
    if body[at + 1..].iter().any(|s| mentions(s, from) != (false, false)) {
        return Err("the new value is used after the copy");
    }
    let mut live = false;
    for s in &body[start + 1..at] {
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
        if live && walk::effects(std::slice::from_ref(s)).leaves {
            return Err("the loop may go on with the old value");
        }
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

fn rename(body: &mut [Stmt], from: BufId, to: BufId) {
    let mut renaming = walk::Renaming::default();
    renaming.bufs.insert(from, to);
    renaming.apply(body);
}

/// Removes `for i: b[i] = b[i]`.
fn drop_self_copies(body: &mut Vec<Stmt>) {
    body.retain(|s| {
        let (axes, inner) = perfect(s);
        !matches!(inner, [Stmt::Read { dst, buf: a, idx: x }, Stmt::Write { buf: b, idx: y, value: Opnd::Val(v) }]
            if a == b && x == y && v == dst && (is_bare(x, &axes) || axes.is_empty()))
    });
}
