//! `split_blocks`

use crate::base::rule::{Log, Rule};
use crate::index::Facts;
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::unswitch::Edges;
use crate::tile::primitives::{self, Names, Step};
use crate::tile::rules::axis_site;

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
    primitives::run(p, ctx, log, policy)
}

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let (mut steps, names) = (vec![], Names::of(p));
    of_threads(&p.body, p.facts(), &mut |f, facts| {
        let edges = Edges::of(f, facts);
        if edges.all.is_empty() {
            return;
        }
        let site = axis_site(p, f.axis);
        if !ctx.knobs.split_edges || edges.tests < 2 {
            let why = if edges.tests < 2 { "each thread tests once" } else { "knob off" };
            return log.skipped(site, why);
        }
        log.applied(site);
        steps.extend(names.name(f).map(|at| Step::Unswitch { at }));
    });
    steps
}

/// Shows `f` the loops over threads that a block does one after the other, with what is known of the blocks.
fn of_threads<'a>(body: &'a [Stmt], facts: Facts, f: &mut dyn FnMut(&'a For, &Facts)) {
    let loops = || body.iter().filter_map(|s| if let Stmt::For(f) = s { Some(&**f) } else { None });
    let block = |f: &For| matches!(f.place, Place::Block { .. });
    if !loops().any(block) {
        loops().filter(|l| l.place == Place::Thread && l.combine.is_none()).for_each(|l| f(l, &facts));
        return;
    }
    for inner in loops().filter(|l| block(l)) {
        let mut facts = facts.clone();
        facts.set_axis(inner.axis, &inner.lo, &inner.hi);
        of_threads(&inner.body, facts, f);
    }
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
