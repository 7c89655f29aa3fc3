//! A loop that follows an `if` joins the branches that make what it reads.

use super::nest::LARGEST;
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::loops::ir::{BufId, For, Kernel, LoopKind, Stmt};
use crate::loops::walk::{self, Renaming};

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "sink_into_branches",
    doc: "\
A free loop behind an `if` moves into both branches when it reads a buffer that each of them fills for it alone. Each branch then has
a buffer of its own, which later rules can do without.

```text
local r
if first:                                if first:
  for j: r[j] = a[j]                       local r
else:                            -->       for j: r[j] = a[j]
  for j: r[j] = a[j] + y[j]                for j: store y[j] = r[j]
for j: store y[j] = r[j]                 else:
                                           local r1
                                           for j: r1[j] = a[j] + y[j]
                                           for j: store y[j] = r1[j]
```

Refused where a branch fills the buffer by other statements than free loops of its own or may be left early, where others use the
buffer, and where the loop is very large.",
    run,
};

fn run(kernel: &Kernel, _: &Assumptions, log: &mut Log) -> Option<Kernel> {
    super::rewritten(kernel, log, |kernel, body, log| {
        walk::visit_bodies_mut(body, &mut |body| list(kernel, body, log));
    })
}

fn list(kernel: &mut Kernel, body: &mut Vec<Stmt>, log: &mut Log) {
    let mut at = 0;
    while at < body.len() {
        let own = made_in_branches(body, at);
        let Some(first) = own.first() else {
            at += 1;
            continue;
        };
        log.applied(kernel.bufs[*first].name.clone());
        let reader = body.remove(at + 1);
        if let Stmt::If { then, els, .. } = &mut body[at] {
            let mut copy = vec![reader.clone()];
            Renaming::fresh(kernel, &copy).apply(&mut copy);
            let locals: Vec<Stmt> = own.iter().map(|&buf| Stmt::Local { buf }).collect();
            let mut other = [locals.clone(), std::mem::take(els), copy].concat();
            Renaming::fresh(kernel, &locals).apply(&mut other);
            *els = other;
            *then = [locals, std::mem::take(then), vec![reader]].concat();
        }
        body.retain(|s| !matches!(s, Stmt::Local { buf } if own.contains(buf)));
        at -= own.len();
    }
}

/// The buffers that the branches of the `if` at `at` fill for the free loop behind it alone; empty where one may not move.
fn made_in_branches(body: &[Stmt], at: usize) -> Vec<BufId> {
    let (Stmt::If { then, els, .. }, Some(reader @ Stmt::For(f))) = (&body[at], body.get(at + 1)) else {
        return vec![];
    };
    if !f.is_free_unplaced() || walk::size(&f.body) > LARGEST || walk::loops(&f.body).any(|f| f.contraction.is_some()) {
        return vec![];
    }
    if [then, els].into_iter().any(|branch| walk::effects(branch).leaves) {
        return vec![];
    }
    let fills = |branch: &[Stmt], buf: BufId| {
        branch.iter().filter(|s| walk::refs_of(s).bufs_written.contains(&buf)).all(|s| {
            matches!(s, Stmt::For(f) if f.kind == LoopKind::Free && walk::loops(&f.body).all(|f: &For| f.kind == LoopKind::Free))
        })
    };
    let mentioned = |s: &Stmt, buf: &BufId| {
        let refs = walk::refs_of(s);
        refs.bufs_read.contains(buf) || refs.bufs_written.contains(buf)
    };
    let written = |branch: &[Stmt]| walk::refs(branch).bufs_written;
    let (of_then, of_els) = (written(then), written(els));
    let own: Vec<BufId> =
        walk::refs_of(reader).bufs_read.into_iter().filter(|b| of_then.contains(b) && of_els.contains(b)).collect();
    let alone = |buf: &BufId| {
        body[..at].iter().any(|s| matches!(s, Stmt::Local { buf: b } if b == buf))
            && body.iter().enumerate().all(|(n, s)| n == at || n == at + 1 || !mentioned(s, buf))
            && fills(then, *buf)
            && fills(els, *buf)
    };
    if own.iter().all(alone) { own } else { vec![] }
}
