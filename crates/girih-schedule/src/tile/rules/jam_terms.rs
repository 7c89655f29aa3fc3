//! `jam_terms`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::affine::MOST_APART;
use crate::tile::edit::const_trip;
use crate::tile::heuristics::jam_terms::SHORTEST;
use crate::tile::primitives::jam::terms;
use crate::tile::primitives::{self, Names, Step};
use crate::tile::rules::axis_site;
use crate::tile::rules::split_digits::radices;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "jam_terms",
    doc: "\
Folds the two to four kinds of terms of a sum together, as the two weights of 4 bits that share a byte: the loads of each kind then
follow each other in memory, and no lane asks of which kind it is.

```text
for k in 0..2048: reduce combine add(s)            for k2 in 0..1024: reduce combine add(s)
  %b = load w[k//2]                                  %b = load w[k2]
  %in = test k%2 < 1                                 %x = load x[k2*2]
  %w = select(%in, %b & 15, %b >> 4)         -->     s <- (%b & 15) * %x + s
  %x = load x[k]                                     %y = load x[k2*2 + 1]
  s <- %w * %x + s                                   s <- (%b >> 4) * %y + s
```

Applies to innermost reductions that may be reassociated. Refuses lengths that are not known, or that the kinds do not divide, and
short sums.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, _: &Context, log: &mut Log) -> Vec<Step> {
    let (names, mut steps) = (Names::of(p), vec![]);
    primitives::look(p, &mut |_, f| {
        if f.combine.is_none() || !terms::are_of(f) {
            return true;
        }
        let radices = radices(&f.body, f.axis);
        let kinds = radices.first().copied().filter(|n| (2..=MOST_APART).contains(n));
        let (Some(kinds), Some(at)) = (kinds, names.name(f)) else { return true };
        let site = axis_site(p, f.axis);
        let next = radices.iter().nth(1).copied().unwrap_or(i64::MAX);
        match const_trip(f).map(|n| n as i64) {
            None => log.skipped(site, "its length is not a constant"),
            Some(n) if n % kinds != 0 => log.skipped(site, format!("{kinds} kinds do not divide its {n} terms")),
            Some(n) if n.min(next) / kinds < SHORTEST => log.skipped(site, "its terms of a kind are few"),
            Some(_) => {
                log.applied(site);
                steps.push(Step::Jam { at, together: kinds as u32 });
            }
        }
        true
    });
    steps
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text};

    const HALVES: &str = "\
loop kernel k(w: ptr i8, x: ptr f32, y: ptr f32) open:
  for i in 0..8: free
    local s: f32
    s = 0.0
    for k in 0..64: reduce combine add(s) from 0.0
      b: i8 = load w[i*32 + k//2]
      low: i8 = and(b, 15)
      high: i8 = shr.u(b, 4)
      in_: i1 = test k%2 < 1
      q: i8 = select(in_, low, high)
      f: f32 = itof.u.f32(q)
      u: f32 = load x[k]
      p: f32 = f * u
      s0: f32 = s
      s1: f32 = p + s0
      s = s1
    t: f32 = s
    store y[i] = t
";

    #[test]
    fn two_kinds_of_terms_stand_one_after_the_other() {
        let (out, log) = apply("jam_terms", &kernel(HALVES), &context());
        assert_eq!(log.applied, ["loop k"]);
        let made = text(&out);
        for line in ["for k2 in 0..32: reduce combine add(s)", "load x[k2*2]", "load x[k2*2 + 1]"] {
            assert!(made.contains(line), "{line}: {made}");
        }
        assert_eq!(made.matches("load w[i*32 + k2]").count(), 2, "{made}");
        assert!(!made.contains("select") && !made.contains("test"), "{made}");
        assert_eq!((made.matches("b & 15").count(), made.matches("shr.u(b_1, 4)").count()), (1, 1), "{made}");
    }

    #[test]
    fn what_is_refused() {
        let why = |from: &str, to: &str| refusals("jam_terms", &HALVES.replace(from, to), &context()).join("; ");
        assert_eq!(why("0..64", "0..65"), "loop k: 2 kinds do not divide its 65 terms");
        assert_eq!(why("0..64", "0..12"), "loop k: its terms of a kind are few");
        assert_eq!(why("0..64", "0..i*2"), "loop k: its length is not a constant");
        // The order of the sum is fixed; or there are no kinds.
        assert_eq!(why(" combine add(s) from 0.0", ""), "");
        let plain = HALVES.replace("k//2", "k").replace("k%2", "k");
        assert_eq!(refusals("jam_terms", &plain, &context()), Vec::<String>::new());
    }
}
