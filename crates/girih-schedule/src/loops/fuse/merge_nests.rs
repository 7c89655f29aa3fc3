//! Neighbouring loops over the same elements become one.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::nest::{LARGEST, Roots, counted};
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::{AxisId, Ix};
use crate::loops::ir::{BufId, For, Kernel, LoopKind, Stmt};
use crate::loops::walk;

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "merge_nests",
    doc: "\
A free loop and a free or reduce loop after it, over the same range, become one when the second reads what the first
writes, at its own index only. The statements between them move to the front.

```text
for j: e[j] = exp(x[j])                  s = 0
s = 0                            -->     for j:
for j: s <- add(s, e[j])                   e[j] = exp(x[j])
                                           s <- add(s, e[j])
```

Refused for contractions, whose nests stay as they are, where an iteration of one loop would meet other elements of
a buffer, or possibly overlapping memory, of the other, and where the loop would become very large.",
    run,
};

fn run(kernel: &Kernel, assume: &Assumptions, log: &mut Log) -> Option<Kernel> {
    super::rewritten(kernel, log, |kernel, body, log| {
        let roots = Roots::of(kernel, body);
        Merge { kernel, assume: *assume, roots, log }.list(body);
    })
}

struct Merge<'a> {
    kernel: &'a Kernel,
    assume: Assumptions,
    roots: Roots,
    log: &'a mut Log,
}

/// How far ahead the second loop is looked for.
const WINDOW: usize = 32;

impl Merge<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>) {
        // A loop that joined a later one leaves its place: the statements in between have moved to the front.
        let mut left = FxHashSet::default();
        for at in 0..body.len() {
            match self.partner(body, at) {
                Some(to) => {
                    let (before, after) = body.split_at_mut(to);
                    if let (Some(Stmt::For(first)), Some(Stmt::For(second))) = (before.get_mut(at), after.first_mut()) {
                        join(first, second);
                        self.log.applied(self.kernel.axes[second.axis].name.clone());
                        left.insert(at);
                    }
                }
                None => {
                    for inner in walk::bodies_mut(&mut body[at]) {
                        self.list(inner);
                    }
                }
            }
        }
        let mut at = 0..;
        body.retain(|_| at.next().is_none_or(|at| !left.contains(&at)));
    }

    /// The loop that can join the one at `at`.
    fn partner(&self, body: &[Stmt], at: usize) -> Option<usize> {
        let Stmt::For(first) = &body[at] else { return None };
        if first.kind != LoopKind::Free || counted(first).is_none() || holds_contraction(&first.body) {
            return None;
        }
        let size = walk::size(&first.body);
        let of_first = walk::refs_of(&body[at]);
        let memory_of_first = walk::effects(std::slice::from_ref(&body[at]));
        for (to, s) in body.iter().enumerate().skip(at + 1).take(WINDOW) {
            if let Stmt::For(second) = s
                && second.kind != LoopKind::Serial
                && counted(second) == counted(first)
                && !holds_contraction(std::slice::from_ref(s))
                && size + walk::size(&second.body) <= LARGEST
                && self.fits(first, second)
            {
                return Some(to);
            }
            // Everything that stands before the partner must be free to move to the front.
            let r = walk::refs_of(s);
            let e = walk::effects(std::slice::from_ref(s));
            let meets = |a: &BTreeSet<BufId>, b: &BTreeSet<BufId>| a.intersection(b).next().is_some();
            let tied = meets(&of_first.bufs_written, &r.bufs_read)
                || meets(&of_first.bufs_written, &r.bufs_written)
                || meets(&of_first.bufs_read, &r.bufs_written)
                || meets(&of_first.bufs_read, &r.bufs_defined)
                || meets(&of_first.bufs_written, &r.bufs_defined);
            let barrier = e.ordered || e.atomic || e.prints || e.traps || e.leaves || matches!(s, Stmt::Loop { .. });
            let stores = e
                .stores
                .iter()
                .any(|&b| memory_of_first.loads.iter().chain(&memory_of_first.stores).any(|&a| self.overlap(a, b)));
            let loads = e.loads.iter().any(|&b| memory_of_first.stores.iter().any(|&a| self.overlap(a, b)));
            if tied || barrier || stores || loads {
                return None;
            }
        }
        None
    }

    fn overlap(&self, a: crate::index::ValId, b: crate::index::ValId) -> bool {
        !self.roots.disjoint(a, b, self.assume)
    }

    fn fits(&self, first: &For, second: &For) -> bool {
        let (a, b) = (walk::refs(&first.body), walk::refs(&second.body));
        let (ea, eb) = (walk::effects(&first.body), walk::effects(&second.body));
        if ea.traps || ea.prints || ea.ordered || ea.atomic || ea.leaves {
            return false;
        }
        if eb.traps || eb.prints || eb.ordered || eb.atomic || eb.leaves {
            return false;
        }
        let apart = |x: &BTreeSet<_>, y: &BTreeSet<_>| x.iter().all(|&p| y.iter().all(|&q| !self.overlap(p, q)));
        if !apart(&ea.stores, &eb.loads) || !apart(&ea.loads, &eb.stores) || !apart(&ea.stores, &eb.stores) {
            return false;
        }
        let feeds = a.bufs_written.difference(&a.bufs_defined).any(|w| b.bufs_read.contains(w));
        let shared: Vec<BufId> = a
            .bufs_written
            .iter()
            .filter(|w| b.bufs_read.contains(w) || b.bufs_written.contains(w))
            .chain(a.bufs_read.iter().filter(|r| b.bufs_written.contains(r)))
            .copied()
            .collect();
        feeds
            && shared.iter().all(|&buf| {
                let (mut dims_a, mut dims_b) = (Vec::new(), Vec::new());
                indexed_by(&first.body, buf, first.axis, &mut dims_a);
                indexed_by(&second.body, buf, second.axis, &mut dims_b);
                let rank = self.kernel.bufs[buf].shape.len();
                (0..rank).any(|d| dims_a.iter().chain(&dims_b).all(|dims: &Vec<usize>| dims.contains(&d)))
            })
    }
}

fn holds_contraction(body: &[Stmt]) -> bool {
    walk::loops(body).any(|f| f.contraction.is_some())
}

/// For each access of the buffer, the dimensions whose index is just the axis.
fn indexed_by(body: &[Stmt], buf: BufId, axis: AxisId, out: &mut Vec<Vec<usize>>) {
    walk::visit(body, &mut |s| match s {
        Stmt::Read { buf: b, idx, .. } | Stmt::Write { buf: b, idx, .. } if *b == buf => {
            out.push(idx.iter().enumerate().filter(|(_, ix)| **ix == Ix::Axis(axis)).map(|(d, _)| d).collect());
        }
        _ => {}
    });
}

/// The second loop gets the first one's body in front.
fn join(first: &mut For, second: &mut For) {
    let mut rest = std::mem::take(&mut second.body);
    walk::subst_axis(&mut rest, second.axis, &Ix::Axis(first.axis));
    second.axis = first.axis;
    second.body = std::mem::take(&mut first.body);
    second.body.append(&mut rest);
}
