//! A buffer that begins where another of its kind ends takes its storage.
//!
//! The uses of each buffer in each list of statements are looked up once and kept up to date, and a buffer's successor
//! is looked for among the next few only, so the work grows with the program and not with its square.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::{AxisId, Ix};
use crate::loops::ir::{BufId, Kernel, Stmt};
use crate::loops::walk::{self, Part};

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "reuse_buffers",
    doc: "\
Where the last loop that reads one buffer is the first that writes another of the same type and shape, element by element,
the second takes the first's storage.

```text
for j: e[j] = exp(x[j])     -->     for j: x[j] = exp(x[j])
for j: C[j] = e[j]                  for j: C[j] = x[j]
```

Refused unless every use of the old element comes before every use of the new one.",
    run,
};

/// How many of the buffers that begin in the right statement are tried.
const WINDOW: usize = 32;

fn run(kernel: &Kernel, _: &Assumptions, log: &mut Log) -> Option<Kernel> {
    let mut reuse = Reuse { kernel, lists: Vec::new(), users: FxHashMap::default(), taken: FxHashMap::default() };
    reuse.index(&kernel.body, None, &mut Vec::new());
    reuse.list(0, log);
    if reuse.taken.is_empty() {
        return None;
    }
    let renaming =
        walk::Renaming { bufs: reuse.taken.iter().map(|(&new, &old)| (new, old)).collect(), ..Default::default() };
    let gone: FxHashSet<BufId> = reuse.taken.into_keys().collect();
    let mut kernel = kernel.clone();
    walk::visit_bodies_mut(&mut kernel.body, &mut |body| {
        body.retain(|s| !matches!(s, Stmt::Local { buf } if gone.contains(buf)));
    });
    renaming.apply(&mut kernel.body);
    Some(kernel)
}

/// Where a list uses a buffer.
#[derive(Clone, Default)]
struct Span {
    /// The first and the last statement.
    first: usize,
    last: usize,
    /// Where the list is a loop's body: the dimensions that every access in it indexes by the loop's axis alone. `None`:
    /// there is no access.
    dims: Option<Vec<usize>>,
}

impl Span {
    fn join(&mut self, other: Span) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.dims = common(self.dims.take(), other.dims);
    }
}

fn common(a: Option<Vec<usize>>, b: Option<Vec<usize>>) -> Option<Vec<usize>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.into_iter().filter(|d| b.contains(d)).collect()),
        (a, b) => a.or(b),
    }
}

#[derive(Default)]
struct List {
    declared: Vec<BufId>,
    spans: FxHashMap<BufId, Span>,
    /// The lists inside, in order.
    inner: Vec<usize>,
    /// The bodies of its loops, by statement.
    loops: FxHashMap<usize, usize>,
}

struct Reuse<'a> {
    kernel: &'a Kernel,
    lists: Vec<List>,
    /// The lists that use a buffer.
    users: FxHashMap<BufId, Vec<usize>>,
    /// Buffers that took another buffer's storage, and that other buffer.
    taken: FxHashMap<BufId, BufId>,
}

/// A list that is being walked: its number, the current statement, and the axis of the loop whose body it is.
type Level = (usize, usize, Option<AxisId>);

impl Reuse<'_> {
    fn index(&mut self, body: &[Stmt], axis: Option<AxisId>, levels: &mut Vec<Level>) -> usize {
        let id = self.lists.len();
        self.lists.push(List::default());
        levels.push((id, 0, axis));
        for (at, s) in body.iter().enumerate() {
            if let Some(level) = levels.last_mut() {
                level.1 = at;
            }
            if let Stmt::Local { buf } = s {
                self.lists[id].declared.push(*buf);
            }
            walk::parts(s, &mut |p| {
                if let Part::ReadBuf(b) | Part::WriteBuf(b) | Part::RoleBuf(b) = p {
                    self.used(*b, s, levels);
                }
            });
            for inner in walk::bodies(s) {
                let axis = if let Stmt::For(f) = s { Some(f.axis) } else { None };
                let child = self.index(inner, axis, levels);
                self.lists[id].inner.push(child);
                if axis.is_some() {
                    self.lists[id].loops.insert(at, child);
                }
            }
        }
        levels.pop();
        id
    }

    fn used(&mut self, buf: BufId, s: &Stmt, levels: &[Level]) {
        for &(list, at, axis) in levels {
            let dims = match s {
                Stmt::Read { idx, .. } | Stmt::Write { idx, .. } => {
                    Some((0..idx.len()).filter(|&d| axis.is_some_and(|a| idx.get(d) == Some(&Ix::Axis(a)))).collect())
                }
                _ => None,
            };
            self.extend(list, buf, Span { first: at, last: at, dims });
        }
    }

    fn extend(&mut self, list: usize, buf: BufId, span: Span) {
        match self.lists[list].spans.entry(buf) {
            std::collections::hash_map::Entry::Occupied(mut known) => known.get_mut().join(span),
            std::collections::hash_map::Entry::Vacant(empty) => {
                empty.insert(span);
                self.users.entry(buf).or_default().push(list);
            }
        }
    }

    fn list(&mut self, id: usize, log: &mut Log) {
        for inner in std::mem::take(&mut self.lists[id].inner) {
            self.list(inner, log);
        }
        let declared = std::mem::take(&mut self.lists[id].declared);
        // For each statement, the remaining buffers that begin in it, in the order of their declarations.
        let mut starts: FxHashMap<usize, BTreeSet<usize>> = FxHashMap::default();
        for (n, buf) in declared.iter().enumerate() {
            if let Some(span) = self.lists[id].spans.get(buf) {
                starts.entry(span.first).or_default().insert(n);
            }
        }
        for (n, &old) in declared.iter().enumerate() {
            if self.taken.contains_key(&old) {
                continue;
            }
            // The new one may in turn be replaced, so the same old buffer is tried until nothing follows it.
            while let Some(last) = self.lists[id].spans.get(&old).map(|s| s.last) {
                let Some(begun) = starts.get_mut(&last) else { break };
                let next = begun.range(n + 1..).take(WINDOW).copied();
                let Some(found) = next.into_iter().find(|&m| self.follows(id, old, declared[m])) else { break };
                begun.remove(&found);
                self.take(old, declared[found]);
                let name = |b: BufId| &self.kernel.bufs[b].name;
                log.applied(format!("{} in {}", name(declared[found]), name(old)));
            }
        }
    }

    /// `new` lives in `old` from now on.
    fn take(&mut self, old: BufId, new: BufId) {
        for list in self.users.remove(&new).unwrap_or_default() {
            if let Some(span) = self.lists[list].spans.remove(&new) {
                self.extend(list, old, span);
            }
        }
        self.taken.insert(new, old);
    }

    fn follows(&self, list: usize, old: BufId, new: BufId) -> bool {
        let (a, b) = (&self.kernel.bufs[old], &self.kernel.bufs[new]);
        // Storage shared only between different loops is shared when scratch memory is laid out.
        !a.shape.is_empty() && a.shape == b.shape && a.ty == b.ty && self.ends_before(list, old, new)
    }

    /// Returns true if, in every run of the list, the last use of `old` comes before the first of `new`, element by
    /// element.
    fn ends_before(&self, list: usize, old: BufId, new: BufId) -> bool {
        let list = &self.lists[list];
        let (Some(a), Some(b)) = (list.spans.get(&old), list.spans.get(&new)) else { return true };
        if a.last != b.first {
            return a.last < b.first;
        }
        let Some(&body) = list.loops.get(&a.last) else { return false };
        let dims = |buf| self.lists[body].spans.get(&buf).and_then(|s| s.dims.clone());
        common(dims(old), dims(new)).is_some_and(|d| !d.is_empty()) && self.ends_before(body, old, new)
    }
}
