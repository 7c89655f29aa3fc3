//! Value numbering: a value that was computed before is not computed again, and a value that a loop repeats moves out
//! of it.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::nest::{Roots, replace};
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::{AxisId, Ix, Mask, ValId};
use crate::loops::ir::{BufId, Kernel, LoopKind, Opnd, Order, Stmt, Ty};
use crate::loops::walk;
use crate::num::{DType, ScalarOp};

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "dedup",
    doc: "\
Equal computations in one body, or in a body and those around it, become one; pure computations that do not depend on a
free or reduce loop move out of it. Loads and reads count as equal only while nothing that may overlap is written. A condition is
asserted once.

```text
for j:                                   e = a + b
  e = a + b                      -->     for j:
  f = a + b                                x[j] = e * e
  x[j] = e * f
```",
    run,
};

fn run(kernel: &Kernel, assume: &Assumptions, log: &mut Log) -> Option<Kernel> {
    super::rewritten(kernel, log, |kernel, body, log| {
        let roots = Roots::of(kernel, body);
        let roles = walk::contractions(body).flat_map(|(_, c)| [c.a, c.b]).collect();
        let mut d = Dedup {
            kernel,
            assume: *assume,
            roots,
            roles,
            table: FxHashMap::default(),
            scopes: vec![Vec::new()],
            epoch: 0,
            buffers: BTreeMap::new(),
            stores: BTreeMap::new(),
            replaced: BTreeMap::new(),
            asserted: 0,
        };
        d.list(body);
        let Dedup { asserted, replaced, roles, .. } = d;
        if !replaced.is_empty() {
            log.applied(format!("{} repeated values", replaced.len()));
            replace(body, &replaced);
        }
        if asserted > 0 {
            log.applied(format!("{asserted} repeated assertions"));
        }
        let moved = hoist(body, &roles);
        if moved > 0 {
            log.applied(format!("{moved} values moved out of loops"));
        }
    })
}

/// The computation of a statement, with its operands numbered.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Let(ScalarOp, Vec<Opnd>, Ty),
    Index(Ix, Ty),
    Test(Mask),
    Load {
        base: ValId,
        index: Ix,
        elem: DType,
        mask: Mask,
        other: Option<Opnd>,
    },
    Read(BufId, Vec<Ix>),
    Global(u32),
    /// An assertion of this condition.
    Holds(Opnd),
}

/// A value, and the time at which it was computed.
type Known = (Opnd, u64);

struct Dedup<'a> {
    kernel: &'a Kernel,
    assume: Assumptions,
    roots: Roots,
    roles: BTreeSet<ValId>,
    /// Known values, with the time at which they were computed.
    table: FxHashMap<Key, Known>,
    /// The entries that each open body added or shadowed.
    scopes: Vec<Vec<(Key, Option<Known>)>>,
    epoch: u64,
    /// When each buffer was last written.
    buffers: BTreeMap<BufId, u64>,
    /// When memory was last stored to, by base.
    stores: BTreeMap<ValId, u64>,
    replaced: BTreeMap<ValId, Opnd>,
    /// How many assertions were made before.
    asserted: usize,
}

impl Dedup<'_> {
    fn number(&self, v: ValId) -> ValId {
        match self.replaced.get(&v) {
            Some(Opnd::Val(w)) => *w,
            _ => v,
        }
    }
    fn opnd(&self, o: Opnd) -> Opnd {
        match o {
            Opnd::Val(v) => self.replaced.get(&v).copied().unwrap_or(o),
            constant => constant,
        }
    }
    fn ix(&self, ix: &Ix) -> Ix {
        ix.subst_vals(&mut |val, zext| {
            let n = self.number(val);
            (n != val).then_some(Ix::Val { val: n, zext })
        })
    }
    fn mask(&self, mask: &Mask) -> Mask {
        let mut m = mask.replace_leaves(&mut |leaf| match leaf {
            Ix::Val { .. } => Some(self.ix(leaf)),
            _ => None,
        });
        for v in &mut m.vals {
            *v = self.number(*v);
        }
        m
    }

    fn key(&self, s: &Stmt) -> Option<(Key, ValId)> {
        Some(match s {
            Stmt::Let { dst, op, args } => {
                let mut args: Vec<Opnd> = args.iter().map(|&a| self.opnd(a)).collect();
                if matches!(op, ScalarOp::AddI | ScalarOp::MulI | ScalarOp::And | ScalarOp::Or | ScalarOp::Xor) {
                    args.sort_by_key(|o| match o {
                        Opnd::Val(v) => (0, v.0 as u64),
                        Opnd::Const { bits, .. } => (1, *bits),
                    });
                }
                (Key::Let(*op, args, self.kernel.vals[*dst].ty), *dst)
            }
            Stmt::Index { dst, ix } => (Key::Index(self.ix(ix), self.kernel.vals[*dst].ty), *dst),
            Stmt::Test { dst, mask } => (Key::Test(self.mask(mask)), *dst),
            Stmt::Load { dst, mem, mask, other, order: Order::Weak, .. } => {
                let key = Key::Load {
                    base: self.number(mem.base),
                    index: self.ix(&mem.index),
                    elem: mem.elem,
                    mask: self.mask(mask),
                    other: other.map(|o| self.opnd(o)),
                };
                (key, *dst)
            }
            Stmt::Read { dst, buf, idx } => (Key::Read(*buf, idx.iter().map(|i| self.ix(i)).collect()), *dst),
            Stmt::GlobalAddr { dst, global } => (Key::Global(*global), *dst),
            _ => return None,
        })
    }

    /// Returns true if a value computed at `then` is still the key's value.
    fn fresh(&self, key: &Key, then: u64) -> bool {
        match key {
            Key::Read(buf, _) => self.buffers.get(buf).is_none_or(|&t| t < then),
            Key::Load { base, .. } => {
                self.stores.iter().all(|(&s, &t)| t < then || self.roots.disjoint(s, *base, self.assume))
            }
            _ => true,
        }
    }

    fn touch(&mut self, body: &[Stmt]) {
        let e = walk::effects(body);
        self.epoch += 1;
        for b in e.bufs_written {
            self.buffers.insert(b, self.epoch);
        }
        for s in walk::stmts(body) {
            if let Stmt::Local { buf } = s {
                self.buffers.insert(*buf, self.epoch);
            }
        }
        for s in e.stores {
            self.stores.insert(s, self.epoch);
        }
        if e.ordered || e.atomic {
            // Another block's writes may have become visible.
            self.table.retain(|k, _| !matches!(k, Key::Load { .. }));
        }
    }

    fn list(&mut self, body: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(body.len());
        for mut s in std::mem::take(body) {
            if let Some((key, dst)) = self.key(&s) {
                self.epoch += 1;
                let known = self.table.get(&key).copied();
                match known {
                    Some((v, then)) if self.fresh(&key, then) && !self.roles.contains(&dst) => {
                        self.replaced.insert(dst, v);
                        continue;
                    }
                    _ => {
                        self.remember(key, Opnd::Val(dst));
                    }
                }
                out.push(s);
                continue;
            }
            if let Stmt::Assert { cond, .. } = &s {
                let (key, cond) = (Key::Holds(self.opnd(*cond)), *cond);
                if self.table.contains_key(&key) {
                    self.asserted += 1;
                    continue;
                }
                self.remember(key, cond);
            }
            let nested = !walk::bodies(&s).is_empty();
            if nested {
                // A loop's body also runs after its own writes.
                self.touch(std::slice::from_ref(&s));
                for inner in walk::bodies_mut(&mut s) {
                    self.scopes.push(Vec::new());
                    self.list(inner);
                    for (key, before) in self.scopes.pop().unwrap_or_default().into_iter().rev() {
                        match before {
                            Some(b) => self.table.insert(key, b),
                            None => self.table.remove(&key),
                        };
                    }
                }
            }
            self.touch(std::slice::from_ref(&s));
            if let Stmt::Write { buf, idx, value } = &s {
                self.epoch += 1;
                let key = Key::Read(*buf, idx.iter().map(|i| self.ix(i)).collect());
                self.remember(key, self.opnd(*value));
            }
            out.push(s);
        }
        *body = out;
    }

    fn remember(&mut self, key: Key, value: Opnd) {
        let before = self.table.insert(key.clone(), (value, self.epoch));
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((key, before));
        }
    }
}

/// Moves pure values out of the nests of free and reduce loops they do not depend on, inner nests first. A value that
/// depends on some of a perfect nest's axes stays inside: the nest is worth more whole.
fn hoist(body: &mut Vec<Stmt>, roles: &BTreeSet<ValId>) -> usize {
    let mut moved = 0;
    let mut out = Vec::with_capacity(body.len());
    for mut s in std::mem::take(body) {
        let mut axes = Vec::new();
        match innermost(&mut s, &mut axes) {
            Some(inner) => {
                moved += hoist(inner, roles);
                let mut here: BTreeSet<ValId> = walk::refs(inner).vals_defined;
                let mut stay = Vec::with_capacity(inner.len());
                for s in std::mem::take(inner) {
                    let leaves = match &s {
                        Stmt::Let { dst, .. } | Stmt::Index { dst, .. } | Stmt::Test { dst, .. } => {
                            !roles.contains(dst) && !depends(&s, &axes, &here)
                        }
                        _ => false,
                    };
                    if !leaves {
                        stay.push(s);
                        continue;
                    }
                    if let Some(v) = walk::def(&s) {
                        here.remove(&v);
                    }
                    out.push(s);
                    moved += 1;
                }
                *inner = stay;
            }
            None => {
                for inner in walk::bodies_mut(&mut s) {
                    moved += hoist(inner, roles);
                }
            }
        }
        out.push(s);
    }
    *body = out;
    moved
}

/// The innermost body of the free and reduce loops that enclose nothing but each other, and their axes.
fn innermost<'a>(s: &'a mut Stmt, axes: &mut Vec<AxisId>) -> Option<&'a mut Vec<Stmt>> {
    let Stmt::For(f) = s else { return None };
    if f.kind == LoopKind::Serial {
        return None;
    }
    axes.push(f.axis);
    match &f.body[..] {
        [Stmt::For(inner)] if inner.kind != LoopKind::Serial => f.body.first_mut().and_then(|s| innermost(s, axes)),
        _ => Some(&mut f.body),
    }
}

fn depends(s: &Stmt, axes: &[AxisId], here: &BTreeSet<ValId>) -> bool {
    let mut found = false;
    walk::each_use(s, &mut |v| found |= here.contains(&v));
    walk::parts(s, &mut |p| {
        if let walk::Part::Ix(ix) = p {
            found |= axes.iter().any(|&a| ix.has_axis(a));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::tests::{kernel, text};

    #[test]
    fn what_was_asserted_holds() {
        let k = "loop kernel k(x: ptr f32, y: ptr f32):\n  for i in 0..4: free\n    a: f32 = load x[i]\n    c: i1 = a < 1.0\n    \
                 assert c, \"small\"\n    d: i1 = a < 1.0\n    assert d, \"small again\"\n    for j in 0..4: free\n      \
                 assert c, \"inside\"\n      e: i1 = a < 0.5\n      assert e, \"smaller\"\n      store y[i*4 + j] = a\n    \
                 f: i1 = a < 0.5\n    assert f, \"behind\"\n";
        let mut log = Log::default();
        let made = text(&run(&kernel(k), &Assumptions::default(), &mut log).unwrap());
        let asserted: Vec<&str> = made.lines().filter_map(|l| l.split('"').nth(1)).collect();
        // A loop may have no iteration, so what it asserts is not known behind it.
        assert_eq!(asserted, ["small", "smaller", "behind"], "{made}");
        assert!(log.applied.contains(&"2 repeated assertions".to_string()), "{:?}", log.applied);
    }
}
