//! `sink_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "sink_rows",
    doc: "\
Computes what a row needs once for each of its elements, so that the elements of all rows are one number's: neighbouring threads take
neighbouring elements, and what they share they read at once.

```text
for i in 0..512: free                            for i in 0..512: free
  at = load rows[i]                                for j in 0..1024: free
  for j in 0..1024: free                -->          at = load rows[i]
    y[i, j] = x[at, j]                               y[i, j] = x[at, j]
```

Rows of unknown length are taken to be long. Refuses those that are shorter than a warp, and those of which more is computed than a few statements without loops.
",
    run,
};

/// Statements that are done again for each element at most.
const MOST: usize = 24;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let mut kernel = p.clone();
    let mut changed = false;
    for s in &mut kernel.body {
        let Stmt::For(f) = s else { continue };
        if let Some(axis) = sink(f, u64::from(ctx.target.axes.lanes)) {
            log.applied(axis_site(p, axis));
            changed = true;
        }
    }
    changed.then_some(kernel)
}

/// Sinks what stands before the loop over a row's elements; gives that loop's axis.
fn sink(f: &mut For, lanes: u64) -> Option<AxisId> {
    if f.kind != LoopKind::Free || f.place != Place::None {
        return None;
    }
    if let [Stmt::For(inner)] = &mut f.body[..] {
        return sink(inner, lanes);
    }
    let (last, before) = f.body.split_last()?;
    let Stmt::For(inner) = last else { return None };
    let again = |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Assert { .. });
    let chain = edit::free_chain(inner);
    // Rows of unknown length are long.
    let few = chain.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?)).is_some_and(|n| n < lanes);
    let straight = chain.last()?.body.iter().all(|s| walk::bodies(s).is_empty());
    let scalars = !before.iter().any(|s| matches!(s, Stmt::Read { .. }));
    let fits = before.len() <= MOST && before.iter().all(again) && scalars && straight;
    if !fits || inner.kind != LoopKind::Free || inner.place != Place::None || few {
        return None;
    }
    let axis = inner.axis;
    let Some(Stmt::For(mut inner)) = f.body.pop() else { return None };
    let before = std::mem::take(&mut f.body);
    put_first(&mut inner, before);
    f.body = vec![Stmt::For(inner)];
    Some(axis)
}

/// Puts statements before those of the last of perfectly nested loops.
fn put_first(f: &mut For, before: Vec<Stmt>) {
    match &mut f.body[..] {
        [Stmt::For(inner)] => put_first(inner, before),
        _ => _ = f.body.splice(0..0, before),
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, text};

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

    #[test]
    fn short_rows_and_long_work_are_left() {
        for (from, to) in [("0..1024", "0..16"), ("1024: free", "1024: serial")] {
            let (out, log) = apply("sink_rows", &kernel(&ROWS.replace(from, to)), &gpu(&[]));
            assert!(log.applied.is_empty(), "{}", text(&out));
        }
    }
}
