//! `split_blocks`

use crate::base::rule::{Log, Rule};
use crate::index::{Facts, Poly};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::rules::site_of;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "split_blocks",
    doc: "\
Tests once for a block what its threads would test for each element: whether all of it lies inside the arrays. Only blocks at
an edge have masks.

```text
for t in 0..128: free thread                     inside: i1 = test ib*32 + 31 < 70
  for r in 0..2: free unroll              -->    if inside:
    store y[..] = v where ib*32 + (r*16 + t//8) < 70      for t: for r: store y[..] = v
                                                 else:
                                                   for t: for r: store y[..] = v where ib*32 + (r*16 + t//8) < 70
```

The condition is the mask's at its greatest value in the block. What a pipeline copies keeps its masks: a copy that writes
zeros is one instruction all the same.

Knob: `split_edges` (0 turns the rule off).

Refuses masks that depend on more than the place of a block and on loops of unknown length, and what each thread tests only
once.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    edit::rewrite_blocks(p, &mut |kernel, facts, body| {
        let mut split = Split { kernel, ctx, facts, changed: false, log };
        let mut out = vec![];
        for s in body {
            match s {
                Stmt::For(f) if f.place == Place::Thread && f.combine.is_none() => out.extend(split.threads(s.clone())),
                _ => out.push(s.clone()),
            }
        }
        split.changed.then_some(out)
    })
}

/// What one block does.
struct Split<'a> {
    kernel: &'a mut Kernel,
    ctx: &'a Context,
    facts: &'a Facts,
    changed: bool,
    log: &'a mut Log,
}

impl Split<'_> {
    fn threads(&mut self, s: Stmt) -> Vec<Stmt> {
        let mut seen = Seen { facts: self.facts.clone(), inner: vec![], defined: vec![], edges: vec![], tests: 0 };
        seen.body(std::slice::from_ref(&s), 1);
        let Seen { edges, tests, .. } = seen;
        if edges.is_empty() {
            return vec![s];
        }
        let site = site_of(self.kernel, &s);
        if !self.ctx.knobs.split_edges || tests < 2 {
            let why = if tests < 2 { "each thread tests once" } else { "knob off" };
            self.log.skipped(site, why);
            return vec![s];
        }
        let mut then = vec![s.clone()];
        walk::visit_mut(&mut then, &mut |s| inside(s, &edges));
        let then = walk::clone_fresh(self.kernel, &then);
        let mut conds: Vec<Cond> = vec![];
        for (_, block) in edges {
            if !conds.contains(&block) {
                conds.push(block);
            }
        }
        self.log.applied(site);
        self.changed = true;
        edit::when(self.kernel, "inside", Mask { conds, vals: vec![] }, then, vec![s])
    }
}

/// Conditions of elements, and of whole blocks in their place.
type Edges = Vec<(Cond, Cond)>;

/// A statement where these conditions are known to hold.
fn inside(s: &mut Stmt, edges: &Edges) {
    let Some(mask) = walk::mask_mut(s) else { return };
    mask.conds.retain(|c| !edges.iter().any(|(edge, _)| edge == c));
    if let Stmt::Load { mask, other, .. } = s
        && mask.is_always()
    {
        *other = None;
    }
}

/// What the masks in a loop over threads depend on.
struct Seen {
    facts: Facts,
    /// The axes of the loops inside the block.
    inner: Vec<AxisId>,
    /// The values that are made there.
    defined: Vec<ValId>,
    edges: Edges,
    /// How often a thread tests one of them.
    tests: u64,
}

impl Seen {
    /// Statements that a thread comes by so many times.
    fn body(&mut self, body: &[Stmt], times: u64) {
        for s in body {
            let all = walk::mask(s).map_or(&[][..], |m| &m.conds);
            let edges: Vec<(Cond, Cond)> = all.iter().filter_map(|c| Some((c.clone(), self.of_block(c)?))).collect();
            self.tests += if edges.is_empty() { 0 } else { times };
            for edge in edges {
                if !self.edges.contains(&edge) {
                    self.edges.push(edge);
                }
            }
            self.defined.extend(walk::def(s));
            let mut times = times;
            if let Stmt::For(f) = s {
                self.facts.set_axis(f.axis, &f.lo, &f.hi);
                self.inner.push(f.axis);
                times = match f.place {
                    Place::Thread | Place::Vector { .. } => times,
                    _ => times.saturating_mul(const_trip(f).unwrap_or(2)),
                };
            }
            walk::bodies(s).into_iter().for_each(|b| self.body(b, times));
        }
    }

    /// The condition that holds where this one does for all elements of the block; `None` where it does not depend on the
    /// block, or not on it alone, or never holds.
    fn of_block(&self, cond: &Cond) -> Option<Cond> {
        let made = |ix: &Ix| ix.vals().iter().any(|v| self.defined.contains(v));
        if cond.cmp != Cmp::Lt || made(&cond.lhs) || made(&cond.rhs) {
            return None;
        }
        let below = Poly::expanded(&cond.lhs).minus(&Poly::expanded(&cond.rhs));
        let own = |ix: &Ix| ix.any_leaf(&mut |l| matches!(l, Ix::Axis(a) if self.inner.contains(a)));
        let (inner, outer) = below.partition(|factors| factors.iter().any(own));
        let mut most = 0i128;
        for (factors, by) in &inner.terms {
            let alone = factors.iter().all(|f| f.any_leaf(&mut |l| matches!(l, Ix::Axis(_))) && only(f, &self.inner));
            let range = alone.then(|| Poly::expanded(&product(factors)).range(&self.facts))?;
            let end = if *by > 0 { range.hi } else { range.lo };
            most = most.checked_add(end.checked_mul(*by)?)?;
        }
        let place = |ix: &Ix| ix.any_leaf(&mut |l| matches!(l, Ix::Axis(_) | Ix::Block(_)));
        let (from, end) = outer.partition(|factors| factors.iter().any(place));
        if from.terms.is_empty() || most.abs() > 1 << 32 {
            return None;
        }
        let lhs = from.minus(&Poly::constant(-most)).to_ix()?;
        let block = Cond::new(lhs, Cmp::Lt, Poly::constant(0).minus(&end).to_ix()?);
        (self.facts.decide(&block) != Some(false)).then_some(block)
    }
}

fn product(factors: &[Ix]) -> Ix {
    factors.iter().cloned().reduce(Ix::mul).unwrap_or(Ix::Const(1))
}

/// Whether all that an expression depends on are these axes.
fn only(ix: &Ix, axes: &[AxisId]) -> bool {
    !ix.any_leaf(&mut |l| match l {
        Ix::Const(_) => false,
        Ix::Axis(a) => !axes.contains(a),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const TILE: &str = r#"tile kernel k(x: ptr f32, y: ptr f32, n: i64) open:
  for jb in 0..3: free block(y)
    for ib in 0..(n + 31)//32: free block(x)
      for t in 0..128: free thread
        for r in 0..8: free unroll
          v: f32 = load x[jb*32 + t%32] where jb*32 + t%32 < 70 else 0.0
          store y[(ib*32 + (r*4 + t//32))*70 + jb*32 + t%32] = v where ib*32 + (r*4 + t//32) < n and jb*32 + t%32 < 70
"#;

    #[test]
    fn a_block_is_tested_at_its_greatest_element() {
        let (out, log) = apply("split_blocks", &kernel(TILE), &gpu(&[]));
        assert_eq!(log.applied, ["loop t"]);
        let made = text(&out);
        assert!(
            made.contains("      inside: i1 = test jb*32 + 31 < 70 and ib*32 + 31 < n\n      if inside:\n"),
            "{made}"
        );
        assert!(made.contains("load x[jb*32 + t%32]\n") && made.contains("jb*32 + t%32] = v\n"), "{made}");
        assert_eq!(made.matches(" where ").count(), 2, "{made}");
    }

    #[test]
    fn others_stay() {
        let none: [&str; 0] = [];
        // One block, which is never inside; no place in a block; a mask of the thread's own.
        for (from, to) in [("0..3", "0..1"), ("jb*32 + t%32 < 70", "t%32 < 7"), ("jb*32 + t%32 < 70", "jb*t < 70")] {
            let other = TILE.replace(from, to).replace("ib*32 + (r*4 + t//32) < n and ", "");
            let other = if from == "0..3" { other.replace("< 70", "< 20") } else { other };
            assert_eq!(refusals("split_blocks", &other, &gpu(&[])), none, "{other}");
        }
        // A number that each thread finds is not known outside.
        let found = TILE
            .replace("          v: f32", "          m: i64 = load n0[t]\n          v: f32")
            .replace("x: ptr f32", "x: ptr f32, n0: ptr i64");
        let found =
            found.replace(" < n and jb*32 + t%32 < 70", " < m").replace("jb*32 + t%32 < 70", "jb*32 + t%32 < m");
        assert!(apply("split_blocks", &kernel(&found), &gpu(&[])).1.applied.is_empty());
        assert_eq!(refusals("split_blocks", TILE, &gpu(&["split_edges=0"])), ["loop t: knob off"]);
        let once = TILE.replace("0..8", "0..1").replace(
            "          v: f32 = load x[jb*32 + t%32] where jb*32 + t%32 < 70 else 0.0\n",
            "          v: f32 = 1.0\n",
        );
        assert_eq!(refusals("split_blocks", &once, &gpu(&[])), ["loop t: each thread tests once"]);
    }
}
