//! `interleave_stores`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::heuristics::interleave_stores::LEAST;
use crate::tile::primitives::{self, Names, Script, Step, interleave};
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

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let names = Names::of(p);
    let mut found = vec![];
    primitives::look(p, &mut |_, outer| {
        let Some((inner, at)) = interleave::kinds(outer).and_then(|(f, _)| Some((f, names.name(f)?))) else {
            return true;
        };
        found.push((axis_site(p, inner.axis), at, edit::at_most(&outer.hi).is_some_and(|n| n < LEAST)));
        false
    });
    let mut script = Script::new(p, ctx, log);
    for (site, at, short) in found {
        let step = |script: &mut Script<'_>| script.step(Step::Interleave { at });
        let made = if short { Err("the loop around it is short".into()) } else { script.attempt(step) };
        script.log.outcome(site, made);
    }
    script.done()
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
