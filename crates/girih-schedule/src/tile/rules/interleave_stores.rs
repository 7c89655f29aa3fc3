//! `interleave_stores`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::index::Facts;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{self, MOST_APART, Stride};
use crate::tile::edit::{self, Visit, const_trip};
use crate::tile::heuristics::interleave_stores::LEAST;
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "interleave_stores",
    doc: "\
Writes out an innermost loop of two to four iterations that makes elements of several kinds in turn, as the real and imaginary
parts of complex numbers or the colours of pixels, so that the loop around it runs in vectors: one of each kind, which are
interleaved when they are stored.

```text
for r in 0..512: free                            for r in 0..512: free
  for c in 0..2: free                              %a = load re[r]
    %a = load re[r] where c < 1 else 0     -->     %b = load im[r]
    %b = load im[r] where c >= 1 else 0            store z[r*2] = %a
    %in = test c < 1                               store z[r*2 + 1] = %b
    store z[r*2 + c] = select(%in, %a, %b)
```

Applies to free loops directly inside a free loop, if their elements follow each other without gaps and no store has a condition.
Refuses loops that do anything but load, compute and store, in this order; loops whose iterations do not store the next elements; and
loops around them that are too short for a vector.
",
    run,
};

fn run(p: &Kernel, _: &Context, log: &mut Log) -> Option<Kernel> {
    let facts = p.facts();
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(outer) = s else { return Visit::Into };
        let Some((Stmt::For(inner), before)) = outer.body.split_last() else { return Visit::Into };
        let plain = |f: &For| f.kind == LoopKind::Free && f.place == Place::None && f.step == Ix::Const(1);
        let few = const_trip(inner).and_then(|n| i64::try_from(n).ok()).filter(|n| (2..=MOST_APART).contains(n));
        let straight = |body: &[Stmt]| body.iter().all(|s| walk::bodies(s).is_empty());
        let (Some(count), true) = (few, plain(outer) && plain(inner) && straight(&inner.body) && straight(before))
        else {
            return Visit::Into;
        };
        if !inner.body.iter().any(|s| matches!(s, Stmt::Store { .. })) {
            return Visit::Into;
        }
        let site = axis_site(kernel, inner.axis);
        match written_out(kernel, &facts, outer, inner, count) {
            Ok(body) => {
                log.applied(site);
                Visit::Replace(vec![Stmt::For(Box::new(For { body: [before, &body].concat(), ..(**outer).clone() }))])
            }
            Err(why) => {
                log.skipped(site, why);
                Visit::Leave
            }
        }
    })
}

/// The iterations of the inner loop one after the other, with all that they store behind them: as iterations of a free loop, none
/// loads what another one stores.
fn written_out(
    kernel: &mut Kernel,
    facts: &Facts,
    outer: &For,
    inner: &For,
    count: i64,
) -> Result<Vec<Stmt>, &'static str> {
    if edit::at_most(&outer.hi).is_some_and(|n| n < LEAST) {
        return Err("the loop around it is short");
    }
    let lo = inner.lo.as_const().ok_or("its bounds are not constants")?;
    let varying = walk::refs(&inner.body).vals_defined;
    let mut stores = 0;
    for s in &inner.body {
        match s {
            Stmt::Store { mem, order: Order::Weak, .. } => {
                let next = affine::stride(&mem.index, inner.axis, &varying) == Stride::Unit
                    && affine::coef(&mem.index, outer.axis, &varying) == Some(Ix::Const(count));
                if !next {
                    return Err("it stores to elements that do not follow one another");
                }
                stores += 1;
            }
            // It could load what it has stored.
            Stmt::Load { .. } if stores > 0 => return Err("it loads after it has stored"),
            Stmt::Load { order: Order::Weak, .. } | Stmt::Let { .. } | Stmt::Index { .. } | Stmt::Test { .. } => {}
            _ => return Err("it does more than load, compute and store"),
        }
    }
    let (mut body, mut stored): (Vec<Stmt>, Vec<Vec<Stmt>>) = (vec![], vec![vec![]; stores]);
    for at in lo..lo + count {
        let by = BTreeMap::from([(inner.axis, Ix::Const(at))]);
        let mut copy = edit::place_axes(&walk::clone_fresh(kernel, &inner.body), &by, &BTreeMap::new());
        edit::decide(&mut copy, facts);
        edit::choose(&mut copy);
        edit::drop_unused(&mut copy);
        let mut of = stored.iter_mut();
        for s in copy {
            match s {
                Stmt::Store { ref mask, .. } if !mask.is_always() => return Err("it stores under a condition"),
                Stmt::Store { .. } => of.next().ok_or("it stores more than once")?.push(s),
                s => body.push(s),
            }
        }
    }
    body.extend(stored.into_iter().flatten());
    Ok(body)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text};

    const PAIRS: &str = r#"loop kernel k(re: ptr f32, im: ptr f32, z: ptr f32) open:
  for r in 0..512: free
    for c in 0..2: free
      a: f32 = load re[r] where c < 1 else 0.0
      b: f32 = load im[r] where c >= 1 else 0.0
      in_: i1 = test c < 1
      v: f32 = select(in_, a, b)
      store z[r*2 + c] = v
"#;

    #[test]
    fn elements_of_two_kinds_in_turn_are_two_statements() {
        let (out, log) = apply("interleave_stores", &kernel(PAIRS), &context());
        assert_eq!(log.applied, ["loop c"]);
        let made = text(&out);
        let body: Vec<&str> = made.lines().skip(2).map(str::trim).collect();
        let is = |line: &str, what: &str| assert!(line.contains(what), "{what}: {made}");
        assert_eq!(body.len(), 4, "{made}");
        is(body[0], "load re[r]");
        is(body[1], "load im[r]");
        is(body[2], "store z[r*2] = ");
        is(body[3], "store z[r*2 + 1] = ");
        assert!(!made.contains("where") && !made.contains("select"), "{made}");
        // Which then run in vectors.
        let (out, _) = apply("vectorise", &out, &context());
        assert!(text(&out).contains("for r in 0..512: free vector("), "{}", text(&out));
    }

    #[test]
    fn what_leaves_places_between_stays() {
        let why = |from: &str, to: &str| refusals("interleave_stores", &PAIRS.replace(from, to), &context());
        let apart = ["loop c: it stores to elements that do not follow one another"];
        assert_eq!(why("z[r*2 + c]", "z[r*3 + c]"), apart);
        assert_eq!(why("z[r*2 + c]", "z[r + c*512]"), apart);
        assert_eq!(why("z[r*2 + c] = v", "z[r*2 + c] = v where r + c < 9"), ["loop c: it stores under a condition"]);
        let again = ["loop c: it loads after it has stored"];
        assert_eq!(
            why("z[r*2 + c] = v", "z[r*2 + c] = v\n      w: f32 = load z[r]\n      store re[r*2 + c] = w"),
            again
        );
        assert_eq!(why("0..512", "0..3"), ["loop c: the loop around it is short"]);
        assert_eq!(why("c in 0..2", "c in 0..7"), Vec::<String>::new());
    }
}
