//! `compute_once`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::edit::{at_most, most_trips};
use crate::tile::heuristics::compute_once::{LEAST, MOST_KEPT};
use crate::tile::primitives::hoist::{self, Shared};
use crate::tile::primitives::{self, Step};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "compute_once",
    doc: "\
Computes once what the rows of a block have alike, and keeps it for them.

Samples of an image lie at the same places in each channel, and the weights of a resized row are those of the next. Without this rule
each row computes them again.

```text
for c in 0..32: free                             local w_of: f32[256]
  for j in 0..256: free                          for j in 0..256: free
    %g = load g[j]                                 %g = load g[j]
    %w = exp(%g)                        -->        w_of[j] = exp(%g)
    %x = load x[c*256 + j]                       for c in 0..32: free
    store y[c*256 + j] = %x * %w                   for j in 0..256: free
                                                     %x = load x[c*256 + j]
                                                     store y[c*256 + j] = %x * w_of[j]
```

Knob: `once` (0 turns the rule off).

An array that each row fills alike before anything else, as weights that are turned for vectors, is filled once for the rows of a block.

Refuses values that are computed about as fast as they are read back, counting how many rows share them, and rows that would keep too
many bytes.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    if !ctx.knobs.once {
        log.skipped("kernel", "knob off");
        return vec![];
    }
    let mut steps = vec![];
    primitives::look(p, &mut |at, f| {
        let Some(inner) = rows(f) else { return true };
        if f.body[..hoist::alike(f)].iter().any(|s| matches!(s, Stmt::For(_))) {
            log.applied(axis_site(p, f.axis));
            steps.push(Step::Hoist { at });
            return false;
        }
        let Ok(shared) = Shared::of(p, f, inner) else { return true };
        let bytes = at_most(&inner.hi).map_or(u64::MAX, |n| shared.bytes(p).saturating_mul(n as u64));
        let saved = spared(&shared, f);
        if shared.kept() == 0 {
            return true;
        }
        if saved < LEAST {
            log.skipped(axis_site(p, f.axis), format!("a row would be spared {} operations an element", saved.max(0)));
        } else if bytes > MOST_KEPT {
            log.skipped(axis_site(p, f.axis), format!("{bytes} bytes would be kept of a row, more than {MOST_KEPT}"));
        } else {
            log.applied(axis_site(p, f.axis));
            // Statements that stand first in the loop go before.
            let first = hoist::alike(f) > 0;
            steps.extend((0..1 + usize::from(first)).map(|_| Step::Hoist { at }));
        }
        false
    });
    steps
}

/// The loop over the elements of a row, where a loop is one over rows.
fn rows(f: &For) -> Option<&For> {
    let Some(Stmt::For(inner)) = f.body.last() else { return None };
    f.is_free_unplaced().then_some(inner)
}

/// The operations that each of the rows of a loop is spared for an element: kept values are computed and written once, and read by each.
fn spared(shared: &Shared, rows: &For) -> i64 {
    let rows = most_trips(rows).map_or(i64::MAX, |n| n.clamp(1, i64::MAX as u64) as i64);
    shared.cost - shared.kept() - (shared.cost + shared.kept()) / rows
}

/// The operations that rows are spared where they are computed together; `None` where it is not worth it.
pub(super) fn worth(p: &Kernel, f: &For, inner: &For) -> Option<i64> {
    let shared = Shared::of(p, f, inner).ok().filter(|shared| shared.kept() > 0)?;
    Some(spared(&shared, f)).filter(|saved| *saved >= LEAST)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    /// Rows that are multiplied by what is computed of a row.
    fn gated(rows: i64, columns: i64, gate: &str) -> String {
        format!(
            "loop kernel k(x: ptr f32, g: ptr f32, y: ptr f32) open:\n  for c in 0..{rows}: free\n    for j in 0..{columns}: free\n      \
             p: f32 = load g[j]\n      w: f32 = {gate}\n      a: f32 = load x[c*{columns} + j]\n      b: f32 = a * w\n      \
             store y[c*{columns} + j] = b\n"
        )
    }

    #[test]
    fn rows_share_what_is_dear() {
        let (out, log) = apply("compute_once", &kernel(&gated(8, 100, "exp(p)")), &context());
        assert_eq!(log.applied, ["loop c"]);
        let made = text(&out);
        assert!(
            made.contains("  for j in 0..100: free\n    p: f32 = load g[j]\n    w: f32 = exp(p)\n    w_of[j] = w\n"),
            "{made}"
        );
        assert!(made.contains("b: f32 = a * w_1"), "{made}");
        let off = with_knobs(&["once=0"]);
        assert_eq!(refusals("compute_once", &gated(8, 100, "exp(p)"), &off), ["kernel: knob off"]);
    }

    #[test]
    fn what_is_cheap_is_computed_again() {
        let (out, log) = apply("compute_once", &kernel(&gated(8, 100, "p + 1.0")), &context());
        assert!(log.applied.is_empty(), "{}", text(&out));
        let why = "loop c: a row would be spared 7 operations an element";
        assert_eq!(refusals("compute_once", &gated(2, 100, "exp(p)"), &context()), [why]);
        let why = "loop c: 400000 bytes would be kept of a row, more than 65536";
        assert_eq!(refusals("compute_once", &gated(8, 100_000, "exp(p)"), &context()), [why]);
    }

    /// A block has a piece of rows and columns, so that its rows share what they compute.
    #[test]
    fn blocks_have_rows_that_share() {
        let wide = kernel(&gated(96, 4096, "exp(p)"));
        let made = text(&apply("blockify", &wide, &context()).0);
        assert!(made.contains("for c2 in 0..32: free\n      for j2 in 0..256: free"), "{made}");
        let cheap = kernel(&gated(96, 4096, "p + 1.0"));
        let made = text(&apply("blockify", &cheap, &context()).0);
        assert!(!made.contains("j2"), "{made}");
        let made = text(&apply("blockify", &wide, &with_knobs(&["once=0"])).0);
        assert!(!made.contains("j2"), "{made}");
    }
}
