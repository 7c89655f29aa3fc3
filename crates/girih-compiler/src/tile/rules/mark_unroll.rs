//! `mark_unroll`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, Visit, const_trip};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "mark_unroll",
    doc: "\
Unrolls tiny loops whose trip count is a constant.

```text
for c in 0..3: free                       -->    for c in 0..3: free unroll
```

Knob: `unroll` (16), the greatest number of copies; a nest counts the product of its loops.

Refuses loops with too many copies or too long a body, and says nothing of loops that are placed already
or hold a loop whose trip count is not a constant.
",
    run,
};

/// Statements after unrolling.
const MOST_STATEMENTS: u64 = 96;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    edit::rewrite(p, &mut |kernel, s| {
        let f = match s {
            Stmt::For(f) => f,
            // What it says is one copy.
            Stmt::Stage { filled: Filled::Tensor, .. } => return Visit::Leave,
            _ => return Visit::Into,
        };
        let Some(copies) = copies(s) else { return Visit::Into };
        if f.place != Place::None {
            return Visit::Into;
        }
        let site = axis_site(kernel, f.axis);
        if let Err(why) = is_little(f, copies, ctx) {
            log.skipped(site, why);
            return Visit::Into;
        }
        log.applied(site);
        let mut new = f.clone();
        mark(&mut new);
        Visit::Replace(vec![Stmt::For(new)])
    })
}

/// Whether a loop will be written out.
pub(super) fn is_short(s: &Stmt, ctx: &Context) -> bool {
    let Stmt::For(f) = s else { return false };
    copies(s).is_some_and(|n| is_little(f, n, ctx).is_ok())
}

/// Whether so many copies of a loop's body are few enough to be written out.
fn is_little(f: &For, copies: u64, ctx: &Context) -> Result<(), String> {
    let most = u64::from(ctx.knobs.unroll);
    if copies > most {
        return Err(format!("{copies} copies are more than {most}"));
    }
    match walk::size(&f.body) as u64 * copies > MOST_STATEMENTS {
        true => Err("its body is long".to_string()),
        false => Ok(()),
    }
}

/// The copies of the body that unrolling a nest makes; `None` when some loop in it cannot be unrolled.
fn copies(s: &Stmt) -> Option<u64> {
    let Stmt::For(f) = s else { return if walk::bodies(s).is_empty() { Some(1) } else { None } };
    let trip = match (f.kind, f.place) {
        (LoopKind::Serial, _) => return None,
        (_, Place::Vector { lanes }) => const_trip(f)?.div_ceil(lanes.max(1) as u64),
        _ => const_trip(f)?,
    };
    let mut inner = 1u64;
    for s in &f.body {
        inner = inner.max(copies(s)?);
    }
    trip.checked_mul(inner)
}

fn mark(f: &mut For) {
    if f.place == Place::None {
        f.place = Place::Unroll;
    }
    for s in &mut f.body {
        if let Stmt::For(inner) = s {
            mark(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    #[test]
    fn tiny_nests_unroll_and_others_say_why_not() {
        let nest = |a: u32, b: u32| {
            format!(
                "loop kernel k(p: ptr f32):\n  for i in 0..{a}: free\n    for j in 0..{b}: free\n      store p[i*8 + j*2] = 1.0\n"
            )
        };
        let (out, _) = apply("mark_unroll", &kernel(&nest(2, 4)), &context());
        assert_eq!(text(&out).matches("free unroll").count(), 2);
        let (out, log) = apply("mark_unroll", &kernel(&nest(16, 4)), &context());
        assert_eq!(text(&out).matches("free unroll").count(), 1);
        assert_eq!(log.skipped, [("loop i".to_string(), "64 copies are more than 16".to_string())]);
        let why = refusals("mark_unroll", &nest(2, 4), &with_knobs(&["unroll=0"]));
        assert_eq!(why, ["loop i: 8 copies are more than 0", "loop j: 4 copies are more than 0"]);
    }
}
