//! Splicing: a nest that computes a buffer's elements disappears into the loops that read them.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::affine;
use super::nest::{LARGEST, Roots, has_fence, is_bare, perfect, replace};
use super::producer::{Cost, Producer, cost, moved, producer};
use super::uses::{Reader, Uses, readers};
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::{AxisId, Ix, ValId};
use crate::loops::ir::{BufId, Kernel, Obligation, Opnd, Stmt};
use crate::loops::walk;
use crate::num::ScalarOp;

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "splice_producers",
    doc: "\
A nest that writes each element of a buffer once is spliced into the readers of the buffer: every read becomes a copy of
the computation, the nest's axes replaced by the read's index.

```text
for j: t[j] = exp(a[j])
for j: store C[j] = t[j] * 2     -->     for j: store C[j] = exp(a[j]) * 2
```

Refused where what the nest reads changes before the reader runs (a store that may overlap a load, unless every
iteration stores exactly the element it loaded), where the nest is very large, and where it does not pay: a computation
read by several nests, or by a loop that would repeat it, is spliced only when it is index arithmetic, or a load or
conversion that feeds a contraction.",
    run,
};

fn run(kernel: &Kernel, assume: &Assumptions, log: &mut Log) -> Option<Kernel> {
    super::rewritten(kernel, log, |kernel, body, log| {
        let roots = Roots::of(kernel, body);
        Splicer { kernel, assume: *assume, log, roots, once: false }.list(body, &mut Vec::new());
    })
}

const MAX_REPEATED_OPS: usize = 16;

struct Splicer<'a> {
    kernel: &'a mut Kernel,
    assume: Assumptions,
    log: &'a mut Log,
    roots: Roots,
    /// The producer that is being spliced is read in one place.
    once: bool,
}

/// Takes the place of a removed statement.
fn nothing() -> Stmt {
    Stmt::Loop { body: vec![] }
}

/// The reason why a producer stays.
struct Refusal(String);

fn refuse<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(why.into()))
}

impl Splicer<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>, outer: &mut Vec<(AxisId, Ix, Ix)>) {
        let mut declared: FxHashMap<BufId, usize> = FxHashMap::default();
        let mut gone = FxHashSet::default();
        let mut uses = Uses::index(body);
        let mut at = 0;
        while at < body.len() {
            if let Stmt::Local { buf } = &body[at] {
                declared.insert(*buf, at);
            }
            if let Some(p) = producer(self.kernel, &body[at])
                && let Some(&local) = declared.get(&p.buf)
            {
                let name = self.kernel.bufs[p.buf].name.clone();
                match self.judge(body, at, &p, outer, &uses) {
                    Ok((duties, once)) => {
                        self.once = once;
                        self.kernel.obligations.extend(duties);
                        self.log.applied(name);
                        gone.extend([at, local]);
                        body[at] = nothing();
                        body[local] = nothing();
                        if self.splice(body, at, &p, &mut uses) {
                            // Reads in the list itself made it longer: removed statements are dropped at once.
                            let mut place = 0..;
                            let end = at;
                            body.retain(|_| place.next().is_none_or(|n| n > end || !gone.contains(&n)));
                            at = (at + 1).saturating_sub(gone.len());
                            gone.clear();
                            declared = body[..at].iter().enumerate().filter_map(local_at).collect();
                            uses = Uses::index(body);
                            continue;
                        }
                        at += 1;
                        continue;
                    }
                    Err(Refusal(why)) => self.log.skipped(name, why),
                }
            }
            let stmt = &mut body[at];
            match stmt {
                Stmt::For(f) => {
                    outer.push((f.axis, f.lo.clone(), f.hi.clone()));
                    self.list(&mut f.body, outer);
                    outer.pop();
                }
                _ => {
                    for inner in walk::bodies_mut(stmt) {
                        self.list(inner, outer);
                    }
                }
            }
            at += 1;
        }
        let mut place = 0..;
        body.retain(|_| place.next().is_none_or(|n| !gone.contains(&n)));
    }

    /// Decides if the producer at `at` may and should go into its readers; returns the conditions that must hold at
    /// launch.
    fn judge(
        &self,
        body: &[Stmt],
        at: usize,
        p: &Producer,
        outer: &[(AxisId, Ix, Ix)],
        uses: &Uses,
    ) -> Result<(Vec<Obligation>, bool), Refusal> {
        let mut all = walk::BufUse::default();
        for (_, stmt) in uses.of(p.buf, body) {
            let here = walk::buffer_uses(std::slice::from_ref(stmt)).get(&p.buf).copied().unwrap_or_default();
            all.reads += here.reads;
            all.writes += here.writes;
            all.printed += here.printed;
            all.roles += here.roles;
        }
        if all.writes != 1 || all.roles != 0 {
            return refuse("it is written again later");
        }
        if all.printed != 0 {
            return refuse("it is printed whole");
        }
        if p.pure.len() > LARGEST {
            return refuse("it is large already");
        }
        let readers = readers(self.kernel, body, at + 1, p.buf, uses);
        if readers.len() != all.reads as usize {
            return refuse("it is read before it is written");
        }
        let Some(last) = readers.iter().map(|r| r.at).max() else { return Ok((Vec::new(), false)) };
        let duties = self.legal(body, at, last, p, &readers, outer, uses)?;
        self.pays(p, &readers)?;
        Ok((duties, readers.len() == 1))
    }

    fn pays(&self, p: &Producer, readers: &[Reader]) -> Result<(), Refusal> {
        let cost = cost(p);
        let ops = p.pure.iter().filter(|s| matches!(s, Stmt::Let { .. })).count();
        let once = readers.iter().all(|r| r.repeats == Some(1));
        let together = readers.windows(2).all(|w| w[0].idx == w[1].idx && w[0].list == w[1].list);
        if once && together {
            return Ok(());
        }
        if cost == Cost::Index && ops <= MAX_REPEATED_OPS {
            return Ok(());
        }
        if cost == Cost::Convert && once && ops <= 2 {
            return Ok(());
        }
        if cost <= Cost::Load && together && readers.iter().all(|r| r.contraction) {
            return Ok(());
        }
        if !together {
            refuse("several nests read it")
        } else {
            refuse("the reader's loops would repeat its computation")
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn legal(
        &self,
        body: &[Stmt],
        at: usize,
        last: usize,
        p: &Producer,
        readers: &[Reader],
        outer: &[(AxisId, Ix, Ix)],
        uses: &Uses,
    ) -> Result<Vec<Obligation>, Refusal> {
        let mut duties = Vec::new();
        let reads: BTreeSet<BufId> =
            p.pure.iter().filter_map(|s| if let Stmt::Read { buf, .. } = s { Some(*buf) } else { None }).collect();
        let loads: Vec<_> =
            p.pure.iter().filter_map(|s| if let Stmt::Load { mem, .. } = s { Some(mem) } else { None }).collect();
        // The statements in between that change values which it reads.
        let mut between: BTreeSet<usize> = BTreeSet::new();
        for buf in &reads {
            between.extend(uses.write.get(buf).into_iter().flat_map(|w| w.range(at + 1..=last)));
        }
        if !loads.is_empty() {
            between.extend(uses.memory.range(at + 1..=last));
        }
        for (q, stmt) in between.into_iter().filter_map(|q| Some((q, body.get(q)?))) {
            let e = walk::effects(std::slice::from_ref(stmt));
            let in_place = || readers.iter().all(|r| r.at == q).then(|| perfect(stmt));
            for &buf in e.bufs_written.intersection(&reads) {
                let Some((axes, inner)) = in_place() else {
                    return refuse(format!("`{}`, which it reads, is written in between", self.kernel.bufs[buf].name));
                };
                if !self.updates_in_place(p, buf, &axes, inner) {
                    return refuse(format!(
                        "`{}`, which it reads, is written by the reader",
                        self.kernel.bufs[buf].name
                    ));
                }
            }
            if loads.is_empty() {
                continue;
            }
            if has_fence(std::slice::from_ref(stmt)) {
                return refuse("an ordered access comes between the load and its use");
            }
            // An address read from the producer's own buffer is the one that the producer computes.
            let addresses = addresses(stmt, p);
            let from = |s: &ValId| addresses.get(s).copied().unwrap_or(*s);
            let clash =
                e.stores.iter().any(|s| loads.iter().any(|l| !self.roots.disjoint(l.base, from(s), self.assume)));
            if clash {
                let Some((axes, inner)) = in_place() else {
                    return refuse("a store that may overlap comes between the load and its use");
                };
                match self.stores_what_it_loaded(p, &axes, inner, outer) {
                    Some(d) => duties.extend(d),
                    None => return refuse("the reader stores to what the load may read"),
                }
            }
        }
        Ok(duties)
    }

    /// Every iteration of the reader reads, through the producer, only the element of `buf` that it then writes.
    fn updates_in_place(&self, p: &Producer, buf: BufId, axes: &[(AxisId, i64)], inner: &[Stmt]) -> bool {
        let mut written: Option<&Vec<Ix>> = None;
        for s in inner {
            match s {
                Stmt::Write { buf: b, idx, .. } if *b == buf => {
                    if written.is_some_and(|w| w != idx) || !is_bare(idx, axes) {
                        return false;
                    }
                    written = Some(idx);
                }
                Stmt::Read { buf: b, .. } if *b == p.buf && written.is_some() => return false,
                _ if !walk::bodies(s).is_empty() => return false,
                _ => {}
            }
        }
        let Some(written) = written else { return false };
        inner.iter().filter_map(|s| if let Stmt::Read { buf: b, idx, .. } = s { Some((b, idx)) } else { None }).all(
            |(b, at)| {
                *b != p.buf
                    || p.pure.iter().all(|s| match s {
                        Stmt::Read { buf: b, idx, .. } if *b == buf => {
                            idx.iter().map(|ix| moved(ix, p, at)).eq(written.iter().cloned())
                        }
                        _ => true,
                    })
            },
        )
    }

    /// Returns the conditions at launch under which every iteration of the reader stores exactly the element that it
    /// loads through the producer, and no two iterations the same one.
    fn stores_what_it_loaded(
        &self,
        p: &Producer,
        axes: &[(AxisId, i64)],
        inner: &[Stmt],
        outer: &[(AxisId, Ix, Ix)],
    ) -> Option<Vec<Obligation>> {
        let mut duties = Vec::new();
        let mut reads = Vec::new();
        let mut stored = false;
        for s in inner {
            match s {
                Stmt::Read { buf, idx, .. } if *buf == p.buf => {
                    if stored {
                        return None;
                    }
                    reads.push(idx);
                }
                Stmt::Store { mem, .. } => {
                    stored = true;
                    for load in &p.pure {
                        let Stmt::Load { mem: from, .. } = load else { continue };
                        if self.roots.disjoint(from.base, mem.base, self.assume) {
                            continue;
                        }
                        let same = from.base == mem.base && from.elem == mem.elem;
                        if !same || reads.iter().any(|at| moved(&from.index, p, at) != mem.index) {
                            return None;
                        }
                        duties.extend(affine::injective(&mem.index, axes, outer, self.kernel, self.assume.no_wrap)?);
                    }
                }
                _ if !walk::bodies(s).is_empty() => return None,
                _ => {}
            }
        }
        Some(duties)
    }

    /// Puts the producer into the statements that read it; returns true if the list itself became longer.
    fn splice(&mut self, body: &mut Vec<Stmt>, at: usize, p: &Producer, uses: &mut Uses) -> bool {
        let places: Vec<usize> = uses.mention.get(&p.buf).map_or(Vec::new(), |m| m.range(at + 1..).copied().collect());
        let readers = places.iter().filter_map(|&q| body.get(q));
        let contractions = readers.flat_map(|s| walk::contractions(std::slice::from_ref(s)));
        let roles: BTreeSet<ValId> = contractions.flat_map(|(_, c)| [c.a, c.b]).collect();
        let mut map = BTreeMap::new();
        if places.iter().any(|&q| matches!(body.get(q), Some(Stmt::Read { .. }))) {
            // Values that the list itself reads may be used anywhere after the read.
            let mut rest = body.split_off(at + 1);
            self.replace_reads(&mut rest, p, &roles, &mut Vec::new(), &mut map);
            replace(&mut rest, &map);
            body.append(&mut rest);
            return true;
        }
        for q in places {
            let Some(stmt) = body.get_mut(q) else { continue };
            let mut one = vec![std::mem::replace(stmt, nothing())];
            self.replace_reads(&mut one, p, &roles, &mut Vec::new(), &mut map);
            replace(&mut one, &map);
            map.clear();
            if let (Some(stmt), Some(one)) = (body.get_mut(q), one.pop()) {
                *stmt = one;
            }
            uses.add(body, q);
        }
        false
    }

    fn replace_reads(
        &mut self,
        body: &mut Vec<Stmt>,
        p: &Producer,
        roles: &BTreeSet<ValId>,
        known: &mut Vec<(Vec<Ix>, Opnd)>,
        map: &mut BTreeMap<ValId, Opnd>,
    ) {
        let before = known.len();
        let mut out = Vec::with_capacity(body.len());
        for mut stmt in std::mem::take(body) {
            let Stmt::Read { dst, buf, idx } = &stmt else {
                let contraction = matches!(&stmt, Stmt::For(f) if f.contraction.is_some());
                for inner in walk::bodies_mut(&mut stmt) {
                    if contraction {
                        self.replace_reads(inner, p, roles, &mut Vec::new(), map);
                    } else {
                        self.replace_reads(inner, p, roles, known, map);
                    }
                }
                out.push(stmt);
                continue;
            };
            if *buf != p.buf {
                out.push(stmt);
                continue;
            }
            let value = match known.iter().find(|(at, _)| at == idx) {
                Some((_, value)) => *value,
                None => {
                    let (mut copy, value) = match self.once {
                        // The producer itself is gone: a chain of many operations gets no values anew at each link.
                        true => p.moved_to(idx),
                        false => {
                            let (renaming, copy, value) = p.at(self.kernel, idx);
                            for (&from, &to) in &renaming.vals {
                                self.roots.copied(from, to);
                            }
                            (copy, value)
                        }
                    };
                    out.append(&mut copy);
                    known.push((idx.clone(), value));
                    value
                }
            };
            let inside = matches!(value, Opnd::Val(v) if out.iter().any(|s| walk::def(s) == Some(v)));
            if roles.contains(dst) && !inside {
                out.push(Stmt::Let { dst: *dst, op: ScalarOp::Copy, args: vec![value] });
            } else {
                map.insert(*dst, value);
            }
        }
        known.truncate(before);
        *body = out;
    }
}

/// A buffer that a statement declares, and where.
fn local_at((at, stmt): (usize, &Stmt)) -> Option<(BufId, usize)> {
    match stmt {
        Stmt::Local { buf } => Some((*buf, at)),
        _ => None,
    }
}

/// The values that a statement reads from the producer's buffer, and the value that the producer writes there.
fn addresses(stmt: &Stmt, p: &Producer) -> BTreeMap<ValId, ValId> {
    let Opnd::Val(v) = p.value else { return BTreeMap::new() };
    let read = |s: &Stmt| match s {
        Stmt::Read { dst, buf, .. } if *buf == p.buf => Some((*dst, v)),
        _ => None,
    };
    walk::stmts(std::slice::from_ref(stmt)).filter_map(read).collect()
}
