//! `mark_unroll`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::heuristics::mark_unroll::MOST_STATEMENTS;
use crate::tile::heuristics::named;
use crate::tile::primitives::{self, Step, unroll};
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
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut loops = vec![];
    // The loops that fill a box describe one copy.
    let enter = |s: &Stmt| !s.filled(Filled::Tma);
    primitives::look_where(p, &enter, &mut |at, f| {
        let Some(copies) = unroll::copies(f).filter(|_| f.place == Place::None) else { return true };
        let site = axis_site(p, f.axis);
        match is_little(f, copies, ctx) {
            Ok(()) => {
                log.applied(site);
                loops.push(at);
                false
            }
            Err(why) => {
                log.skipped(site, why);
                true
            }
        }
    });
    if loops.is_empty() { vec![] } else { vec![Step::Unroll { loops }] }
}

/// True if a loop will be written out.
pub(super) fn is_short(f: &For, ctx: &Context) -> bool {
    unroll::copies(f).is_some_and(|n| is_little(f, n, ctx).is_ok())
}

/// Checks that `copies` copies of a loop's body are few enough to be written out.
fn is_little(f: &For, copies: u64, ctx: &Context) -> Result<(), String> {
    let most = u64::from(ctx.knobs.unroll);
    if copies > most {
        return Err(format!("{copies} copies are more than {most}"));
    }
    match walk::size(&f.body) as u64 * copies {
        n if n > MOST_STATEMENTS => {
            Err(format!("its copies have {n} statements, more than {}", named!(MOST_STATEMENTS)))
        }
        _ => Ok(()),
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
