//! `sink_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::sink_rows::MOST;
use crate::tile::primitives::{self, LoopRef, Step, sink};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "sink_rows",
    doc: "\
Moves the work that a row does once into the loop over its elements, so that one number counts the elements of all rows: neighbouring
threads take neighbouring elements, and read values that they share at once.

```text
for i in 0..512: free                            for i in 0..512: free
  at = load rows[i]                                for j in 0..1024: free
  for j in 0..1024: free                -->          at = load rows[i]
    y[i, j] = x[at, j]                               y[i, j] = x[at, j]
```

Rows of unknown length are taken to be long. Refuses rows that are shorter than a warp, and rows whose own work is more than a few
statements without loops.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    if !p.open {
        return vec![];
    }
    let mut steps = vec![];
    for s in &p.body {
        let Stmt::For(f) = s else { continue };
        let Some(inner) = rows(f, u64::from(ctx.target.axes.lanes)) else { continue };
        // All the loops over a row's elements.
        let chain = edit::free_chain(inner);
        let site = axis_site(p, inner.axis);
        let over = edit::free_chain(f);
        if log.outcome(site, over.last().map_or(Ok(()), |f| sink::legal(f))).is_some() {
            steps.extend(chain.iter().map(|f| Step::Sink { at: LoopRef { axis: f.axis, nth: 0 } }));
        }
    }
    steps
}

/// The loop over the elements of a row, where little is computed before it.
fn rows(f: &For, lanes: u64) -> Option<&For> {
    if !f.is_free_unplaced() {
        return None;
    }
    let (last, before) = edit::free_chain(f).last()?.body.split_last()?;
    let Stmt::For(inner) = last else { return None };
    let again = |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Assert { .. });
    let chain = edit::free_chain(inner);
    // Rows of unknown length are long.
    let few = chain.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?)).is_some_and(|n| n < lanes);
    let straight = chain.last()?.body.iter().all(|s| walk::bodies(s).is_empty());
    let scalars = !before.iter().any(|s| matches!(s, Stmt::Read { .. }));
    let fits = before.len() <= MOST && before.iter().all(again) && scalars && straight;
    (fits && inner.is_free_unplaced() && !few).then_some(inner)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const ROWS: &str = r#"loop kernel k(rows: ptr i64, x: ptr f16, y: ptr f16) open:
  for i in 0..512: free
    at: i64 = load rows[i]
    for j in 0..1024: free
      v: f16 = load x[at*1024 + j]
      store y[i*1024 + j] = v
"#;

    #[test]
    fn what_a_row_needs_is_computed_for_each_element() {
        let (out, log) = apply("sink_rows", &kernel(ROWS), &gpu(&[]));
        assert_eq!(log.applied, ["loop j"]);
        let made = text(&out);
        assert!(made.contains("    for j in 0..1024: free\n      at: i64 = load rows[i]\n      v: f16"), "{made}");
    }

    #[test]
    fn rows_of_unknown_length_are_long() {
        let unknown = ROWS.replace("0..1024", "0..n").replace("k(", "k(n: i64 in 1..4096, ").replace("1024", "n");
        let (_, log) = apply("sink_rows", &kernel(&unknown), &gpu(&[]));
        assert_eq!(log.applied, ["loop j"]);
    }

    /// Done again, it would read what the row has stored, or not be there where the loop asks how far it goes.
    #[test]
    fn what_the_row_changes_or_needs_stays_before_it() {
        let text_of = |before: &str, end: &str| {
            format!(
                "loop kernel k(x: ptr f32, len: ptr i64) open:\n  for i in 0..4: free\n    {before}\n    for j in 0..{end}: free\n      \
                 v: f32 = load x[i*64 + j]\n      d: f32 = v + v\n      store x[i*64 + j] = d\n"
            )
        };
        let of_row = text_of("t: f32 = load x[i*64]", "64").replace("v + v", "v - t");
        let bound = text_of("n: i64 = load len[i]", "n");
        for (k, why) in [
            (of_row, "what stands before it is not the same when it is done again"),
            (bound, "what stands before it says how far it goes"),
        ] {
            assert_eq!(refusals("sink_rows", &k, &gpu(&[])), [format!("loop j: {why}")], "{k}");
        }
    }

    #[test]
    fn short_rows_and_long_work_are_left() {
        for (from, to) in [("0..1024", "0..16"), ("1024: free", "1024: serial")] {
            let (out, log) = apply("sink_rows", &kernel(&ROWS.replace(from, to)), &gpu(&[]));
            assert!(log.applied.is_empty(), "{}", text(&out));
        }
    }
}
