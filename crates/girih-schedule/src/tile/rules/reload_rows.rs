//! `reload_rows`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::loops::addresses::Origins;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::target::{Gpu, MemoryKind};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "reload_rows",
    doc: "\
Streams a row that does not fit shared memory: each pass over it loads and computes the elements again.

```text
local t: f32[65536]                              m = -inf
m = -inf                                         for i in 0..65536: reduce combine max(m)
for i in 0..65536: reduce combine max(m)           x: f32 = load src[i]
  x: f32 = load src[i]                             m <- max(x, m)
  t[i] = x                                       for j in 0..65536: reduce combine add(s)
  m <- max(x, m)                          -->      x_1: f32 = load src[j]
for j in 0..65536: reduce combine add(s)           e: f32 = exp(x_1 - m)
  e: f32 = exp(t[j] - m)                           s <- e + s
  t[j] = e                                       for k in 0..65536: free
  s <- e + s                                       x_2: f32 = load src[k]
for k in 0..65536: free                            e_1: f32 = exp(x_2 - m)
  store dst[k] = t[k] / s                          store dst[k] = e_1 / s
```

Refuses rows whose computation costs more than a round trip to memory, that are not written as a whole, or that depend on values that
change between the passes: arrays that the kernel may store to, and sums.
",
    run,
};

fn run(p: &Kernel, cx: &Context, log: &mut Log) -> Option<Kernel> {
    let gpu = cx.target.gpu?;
    let room = cx.target.bytes_of(MemoryKind::Shared);
    let is_long = |b: &Buf| b.bytes() > room && b.space == Space::Scratch;
    let mut long = BTreeSet::new();
    walk::visit(&p.body, &mut |s| {
        if let Stmt::Local { buf } = s
            && p.bufs.get(*buf).is_some_and(is_long)
        {
            long.insert(*buf);
        }
    });
    if long.is_empty() {
        return None;
    }
    let mut kernel = p.clone();
    let mut body = std::mem::take(&mut kernel.body);
    let origins = Origins::of(p);
    let mut copied = BTreeMap::new();
    lists(&mut kernel, &mut body, &mut |kernel, list| {
        let mut rows: Vec<BufId> = list.iter().filter_map(local).filter(|buf| long.contains(buf)).collect();
        // A row that is made of another one follows it.
        loop {
            let mut left = vec![];
            for buf in &rows {
                let mut row = Row::new(*buf, list, &origins, &mut copied, cx, &gpu);
                let b = &kernel.bufs[*buf];
                let (name, bytes) = (b.name.clone(), b.bytes());
                match row.reloaded(kernel, list) {
                    Ok(out) => {
                        let (reads, place) = (row.reads, if row.reads == 1 { "pass" } else { "passes" });
                        log.applied(format!("{name}: {bytes} bytes, made again in {reads} {place}"));
                        *list = out;
                    }
                    Err(why) => left.push((*buf, name, why)),
                }
            }
            if left.len() == rows.len() {
                left.into_iter().for_each(|(_, name, why)| log.skipped(name, why));
                return;
            }
            rows = left.into_iter().map(|(buf, ..)| buf).collect();
        }
    });
    kernel.body = body;
    (!log.applied.is_empty()).then_some(kernel)
}

fn local(s: &Stmt) -> Option<BufId> {
    if let Stmt::Local { buf } = s { Some(*buf) } else { None }
}

/// Shows each list of statements, inner ones first.
fn lists(kernel: &mut Kernel, body: &mut Vec<Stmt>, f: &mut dyn FnMut(&mut Kernel, &mut Vec<Stmt>)) {
    for s in body.iter_mut() {
        for inner in walk::bodies_mut(s) {
            lists(kernel, inner, f);
        }
    }
    f(kernel, body);
}

/// How the elements of the row are computed from a place of the list on.
#[derive(Clone)]
struct Chain {
    /// The pass that writes them.
    at: usize,
    /// The last pass that reads them.
    last: usize,
    /// A loop inside the pass that writes them reads them after another one has written them.
    inside: bool,
    idx: Vec<Ix>,
    stmts: Vec<Stmt>,
    value: Opnd,
    /// Bytes that one element costs.
    cost: f64,
}

struct Row<'a> {
    buf: BufId,
    origins: &'a Origins,
    cx: &'a Context,
    gpu: &'a Gpu,
    /// Values that only a part of the list has.
    inner: BTreeSet<ValId>,
    /// The original of each value that was copied for this row or for one before it.
    copied: &'a mut BTreeMap<ValId, ValId>,
    chains: Vec<Chain>,
    /// The pass at hand: its place, the element that it has written, and the places that it reads.
    at: usize,
    written: Option<(Vec<Ix>, Opnd)>,
    read_at: Vec<Vec<Ix>>,
    reads: u32,
    writes: u32,
    /// Bytes that reading each element again costs.
    cost: f64,
}

impl<'a> Row<'a> {
    fn new(
        buf: BufId,
        list: &[Stmt],
        origins: &'a Origins,
        copied: &'a mut BTreeMap<ValId, ValId>,
        cx: &'a Context,
        gpu: &'a Gpu,
    ) -> Row<'a> {
        let inner = list.iter().flat_map(walk::bodies).flat_map(|body| walk::refs(body).vals_defined).collect();
        Row {
            buf,
            origins,
            cx,
            gpu,
            inner,
            copied,
            chains: vec![],
            at: 0,
            written: None,
            read_at: vec![],
            reads: 0,
            writes: 0,
            cost: 0.0,
        }
    }

    /// The list without the row.
    fn reloaded(&mut self, kernel: &mut Kernel, list: &[Stmt]) -> Result<Vec<Stmt>, String> {
        let mut out = Vec::with_capacity(list.len());
        for (at, s) in list.iter().enumerate() {
            if local(s) == Some(self.buf) {
                continue;
            }
            if !self.is_mentioned(s) {
                out.push(s.clone());
                continue;
            }
            (self.at, self.written) = (at, None);
            self.read_at.clear();
            let mut one = vec![self.pass(kernel, s.clone(), &mut vec![])?];
            if let Some((idx, _)) = &self.written
                && self.read_at.iter().any(|at| at != idx)
            {
                return Err("a pass reads other elements than it writes".into());
            }
            edit::choose(&mut one);
            edit::drop_unused(&mut one);
            out.append(&mut one);
        }
        self.stays(kernel, list)?;
        let moved = f64::from(self.reads + self.writes) * kernel.bufs[self.buf].element_bytes() as f64;
        if self.cost > moved {
            let (cost, moved) = (self.cost.ceil(), moved);
            return Err(format!("to make an element again costs as much as {cost} bytes, and to keep it {moved}"));
        }
        Ok(out)
    }

    fn is_mentioned(&self, s: &Stmt) -> bool {
        walk::buffer_uses(std::slice::from_ref(s)).contains_key(&self.buf)
    }

    /// A loop over the row. `axes`: the loops around, with their extents.
    fn pass(&mut self, kernel: &mut Kernel, s: Stmt, axes: &mut Vec<(AxisId, Option<u64>)>) -> Result<Stmt, String> {
        let Stmt::For(mut f) = s else { return Err("it is used by other statements than loops".into()) };
        if f.place != Place::None || f.contraction.is_some() || f.stream.is_some() {
            return Err("a product reads it".into());
        }
        axes.push((f.axis, const_trip(&f).filter(|_| f.lo.is_const(0) && f.step.is_const(1))));
        let body = std::mem::take(&mut f.body);
        for s in body {
            match s {
                Stmt::Read { dst, buf, idx } if buf == self.buf => self.read(kernel, dst, idx, axes, &mut f.body)?,
                Stmt::Write { buf, idx, value } if buf == self.buf => self.write(kernel, idx, value, &f.body, axes)?,
                s if self.is_mentioned(&s) => {
                    let inner = self.pass(kernel, s, axes)?;
                    f.body.push(inner);
                }
                s => f.body.push(s),
            }
        }
        axes.pop();
        Ok(Stmt::For(f))
    }

    fn read(
        &mut self,
        kernel: &mut Kernel,
        dst: ValId,
        idx: Vec<Ix>,
        axes: &[(AxisId, Option<u64>)],
        out: &mut Vec<Stmt>,
    ) -> Result<(), String> {
        self.reads += 1;
        let is_open = |ix: &Ix| axes.iter().any(|(a, _)| *ix == Ix::Axis(*a));
        let mut inside = false;
        if let Some((at, value)) = &self.written {
            // Loops around the write that still go on have written no other elements yet.
            let others = at.iter().zip(&idx).any(|(at, ix)| at != ix && (is_open(at) || matches!(at, Ix::Const(_))));
            if others {
                return Err("a pass reads other elements than it writes".into());
            }
            inside = at.iter().any(|at| matches!(at, Ix::Axis(_)) && !is_open(at));
            if !inside {
                out.push(edit::copy_of(dst, *value));
                return Ok(());
            }
        }
        let at = self.at;
        let Some(chain) = self.chains.last_mut() else { return Err("it is read before it is written".into()) };
        chain.last = at;
        chain.inside |= inside;
        let renaming = walk::Renaming::fresh(kernel, &chain.stmts);
        let mut copy = chain.stmts.clone();
        renaming.apply(&mut copy);
        let place = |a: AxisId| chain.idx.iter().position(|ix| *ix == Ix::Axis(a));
        walk::subst_axes(&mut copy, &mut |a| place(a).and_then(|d| idx.get(d).cloned()));
        let value = match chain.value {
            Opnd::Val(v) => Opnd::Val(renaming.vals.get(&v).copied().unwrap_or(v)),
            constant => constant,
        };
        self.cost += chain.cost;
        for (from, to) in renaming.vals {
            self.inner.insert(to);
            self.copied.insert(to, from);
        }
        if !inside {
            self.read_at.push(idx);
        }
        out.append(&mut copy);
        out.push(edit::copy_of(dst, value));
        Ok(())
    }

    /// From here on elements are what `body` computes.
    fn write(
        &mut self,
        kernel: &Kernel,
        idx: Vec<Ix>,
        value: Opnd,
        body: &[Stmt],
        axes: &[(AxisId, Option<u64>)],
    ) -> Result<(), String> {
        self.writes += 1;
        let shape = &kernel.bufs[self.buf].shape;
        let counts = |(ix, &extent): (&Ix, &u64)| match ix {
            Ix::Axis(a) => axes.contains(&(*a, Some(extent))),
            _ => extent == 1 && ix.is_const(0),
        };
        let named: BTreeSet<&Ix> = idx.iter().filter(|ix| matches!(ix, Ix::Axis(_))).collect();
        let is_whole = idx.len() == shape.len() && named.len() == axes.len() && idx.iter().zip(shape).all(counts);
        if !is_whole || self.written.is_some() {
            return Err("it is not written as a whole".into());
        }
        let stmts = self.slice(body, value)?;
        let cost = stmts.iter().map(|s| self.cost_of(s)).sum();
        self.chains.push(Chain { at: self.at, last: self.at, inside: false, idx: idx.clone(), stmts, value, cost });
        self.written = Some((idx, value));
        Ok(())
    }

    /// The statements of a body that a value is made of.
    fn slice(&self, body: &[Stmt], value: Opnd) -> Result<Vec<Stmt>, String> {
        let mut needed: BTreeSet<ValId> = if let Opnd::Val(v) = value { BTreeSet::from([v]) } else { BTreeSet::new() };
        let mut out = vec![];
        for s in body.iter().rev() {
            if walk::def(s).is_none_or(|v| !needed.remove(&v)) {
                continue;
            }
            if !edit::is_pure(s) {
                return Err("its elements are not only computed and loaded".into());
            }
            needed.extend(walk::refs_of(s).vals_used);
            out.push(s.clone());
        }
        if !needed.is_disjoint(&self.inner) {
            return Err("its elements are made of what only one of its loops has".into());
        }
        out.reverse();
        Ok(out)
    }

    /// The cost of a statement, in bytes moved.
    fn cost_of(&self, s: &Stmt) -> f64 {
        match s {
            Stmt::Load { mem, .. } => mem.elem.bytes() as f64,
            // The table of operations counts for a processor, which does some two operations for each byte.
            Stmt::Let { op, .. } => 2.0 * op.cost() as f64 * self.gpu.bandwidth / self.gpu.peak,
            _ => 0.0,
        }
    }

    /// Refuses a row whose operands change between the pass that writes it and the last one that reads it.
    fn stays(&self, kernel: &Kernel, list: &[Stmt]) -> Result<(), String> {
        for chain in &self.chains {
            if chain.last == chain.at && !chain.inside {
                continue;
            }
            let passes = list.get(chain.at..=chain.last).unwrap_or_default();
            let effects = walk::effects(passes);
            let used = walk::refs(&chain.stmts);
            if let Some(buf) = effects.bufs_written.intersection(&used.bufs_read).next() {
                return Err(format!("`{}`, which its elements are made of, changes", kernel.bufs[*buf].name));
            }
            let loads = walk::effects(&chain.stmts).loads;
            if loads.is_empty() {
                continue;
            }
            if effects.ordered || effects.atomic {
                return Err("an ordered access comes between its passes".into());
            }
            if effects.stores.iter().any(|s| loads.iter().any(|l| !self.are_apart(*l, *s))) {
                return Err("the kernel may store to what its elements are loaded from".into());
            }
        }
        Ok(())
    }

    /// Returns true if no access through one address can touch memory that the other reaches.
    fn are_apart(&self, a: ValId, b: ValId) -> bool {
        let original = |mut v: ValId| {
            while let Some(&from) = self.copied.get(&v) {
                v = from;
            }
            self.origins.only(v)
        };
        let (Some(a), Some(b)) = (original(a), original(b)) else { return false };
        a != b && self.cx.assume.no_alias
    }
}

#[cfg(test)]
mod tests {
    use crate::base::launch::Assumptions;
    use crate::tile::Context;
    use crate::tile::tests::{SOFTMAX, apply, gpu, kernel, refusals, text};

    fn long(text: &str) -> String {
        text.replace("1024", "65536")
    }

    fn apart() -> Context {
        Context { assume: Assumptions { no_wrap: true, no_alias: true }, ..gpu(&[]) }
    }

    #[test]
    fn each_pass_loads_the_row() {
        let (out, log) = apply("reload_rows", &kernel(&long(SOFTMAX)), &apart());
        assert_eq!(log.applied, ["x: 262144 bytes, made again in 3 passes"]);
        let made = text(&out);
        assert!(!made.contains("f32[65536]"), "{made}");
        assert_eq!(made.matches("load src[").count(), 3, "{made}");
        assert_eq!(made.matches("exp(").count(), 2, "{made}");
    }

    #[test]
    fn a_row_that_fits_stays() {
        assert!(apply("reload_rows", &kernel(SOFTMAX), &apart()).1.applied.is_empty());
    }

    #[test]
    fn what_may_change_is_kept() {
        let why = "x: the kernel may store to what its elements are loaded from";
        assert_eq!(refusals("reload_rows", &long(SOFTMAX), &gpu(&[])), [why]);
        let in_place = long(SOFTMAX).replace("store dst[", "store src[");
        assert_eq!(refusals("reload_rows", &in_place, &apart()), [why]);
        // The sum is not complete where the second pass writes.
        let sums = long(SOFTMAX).replace("d: f32 = v2 - top", "part: f32 = s\n    d: f32 = v2 - part");
        assert_eq!(refusals("reload_rows", &sums, &apart()), ["x: `s`, which its elements are made of, changes"]);
    }

    #[test]
    fn a_row_that_is_made_of_another_one_follows_it() {
        // `u` is `t` from its other end, and the last pass writes `t` anew.
        let made = r#"loop kernel k(src: ptr f32, dst: ptr f32):
  local u: f32[65536]
  local t: f32[65536]
  for i in 0..65536: free
    x: f32 = load src[i]
    t[i] = x
  for j in 0..65536: free
    v: f32 = t[65535 - j]
    u[j] = v
  for k in 0..65536: free
    a: f32 = u[k]
    b: f32 = t[k]
    c: f32 = a + b
    t[k] = c
    store dst[k] = c
"#;
        let (out, log) = apply("reload_rows", &kernel(made), &apart());
        let once = |name| format!("{name}: 262144 bytes, made again in ");
        assert_eq!(log.applied, [once("t") + "2 passes", once("u") + "1 pass"]);
        let out = text(&out);
        assert!(out.contains("load src[65535 - k]") && out.contains("load src[k]") && !out.contains("local"), "{out}");
    }

    /// The rows of `t` in turn, each written before it is read.
    const ROWS: &str = r#"loop kernel k(src: ptr f32, dst: ptr f32):
  local t: f32[4, 65536]
  for i in 0..4: serial
    for j in 0..65536: free
      x: f32 = load src[i*65536 + j]
      t[i, j] = x
    for k in 0..65536: free
      v: f32 = t[i, 65535 - k]
      store dst[i*65536 + k] = v
"#;

    #[test]
    fn rows_in_turn_are_made_again() {
        let (out, log) = apply("reload_rows", &kernel(ROWS), &apart());
        assert_eq!(log.applied, ["t: 1048576 bytes, made again in 1 pass"]);
        assert!(text(&out).contains("load src[i*65536 + (65535 - k)]"), "{}", text(&out));
        assert_eq!(
            refusals("reload_rows", ROWS, &gpu(&[])),
            ["t: the kernel may store to what its elements are loaded from"]
        );
        // Row 0 is complete, the others are not.
        let other = ROWS.replace("t[i, 65535 - k]", "t[0, k]");
        assert_eq!(refusals("reload_rows", &other, &apart()), ["t: a pass reads other elements than it writes"]);
    }

    #[test]
    fn what_costs_more_than_memory_is_kept() {
        let slow = long(SOFTMAX)
            .replace("e: f32 = exp(d)", "g: f32 = lgamma(d)\n    h: f32 = lgamma(g)\n    e: f32 = lgamma(h)");
        let why = refusals("reload_rows", &slow, &apart());
        assert!(why.len() == 1 && why[0].starts_with("x: to make an element again costs as much as "), "{why:?}");
    }
}
