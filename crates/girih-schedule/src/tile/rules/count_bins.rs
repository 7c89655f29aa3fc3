//! `count_bins`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::heuristics::count_bins::{COPIES, FROM, MOST};
use crate::tile::primitives::count::{By, Counting};
use crate::tile::primitives::{self, Step, look};
use crate::tile::rules::axis_site;
use crate::tile::target::Capability;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "count_bins",
    doc: "\
Counts how often each of many numbers occurs by going through what is counted once, rather than once for each number: a
histogram.

```text
for j in 0..64: free                             for c in 0..4: free
  local s                                          for j in 0..65: free
  s = 0                                              bins[c, j] = 0
  j_1: i32 = index j                             for i in 0..8192: free
  for i in 0..8192: reduce combine add(s)          %v = x[i]
    %v = x[i]                             -->      %in = %v >= 0 and %v < 64
    %is = %v == j_1                                bin[i] = select(%in, %v, 64)
    s <- i32(%is) + s                            for i in 0..2048: reduce: for c in 0..4: reduce
  out[j] = s                                       bins[c, bin[i*4 + c]] <- bins[c, bin[i*4 + c]] + 1
                                                 for j in 0..64: free
                                                   out[j] = bins[0, j] + ... + bins[3, j_2]
```

An element that equals none of the numbers counts in a bin that nobody reads. Four copies of the bins take turns, so that equal
neighbours do not wait for each other. A loop of its own finds the bins first, in vectors, where it is known how much is counted.
The threads of a block, on a GPU, add to one copy in the memory that they share, atomically.

Refuses fewer than eight numbers, for which vectors are as fast, or than a warp has lanes on a GPU; numbers that do not start at 0, or whose count is not a constant;
and folds that do anything else.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut steps = vec![];
    if p.open {
        return steps;
    }
    let threads = ctx.target.has(Capability::Threads);
    let (from, by) = match threads {
        true => (u64::from(ctx.target.axes.lanes), By::Shared),
        false => (FROM, By::Copies(COPIES)),
    };
    look(p, &mut |at, f| {
        let counting = f.is_free_unplaced().then(|| Counting::of(p, f)).flatten();
        let Some(counting) = counting else { return true };
        let few = |counting: &Counting<'_>| match counting.numbers {
            n if n < from => Err("it counts few numbers"),
            n if n > MOST => Err("it counts many numbers"),
            _ => Ok(()),
        };
        let site = axis_site(p, f.axis);
        match counting.and_then(|counting| few(&counting)) {
            Ok(()) => {
                log.applied(site);
                steps.push(Step::Count { at, by });
                false
            }
            Err(why) => {
                log.skipped(site, why);
                true
            }
        }
    });
    steps
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{COUNT, apply, context, gpu, kernel, refusals, text};

    #[test]
    fn numbers_are_counted_in_bins() {
        let (out, log) = apply("count_bins", &kernel(COUNT), &context());
        assert_eq!(log.applied, ["loop j"]);
        let made = text(&out);
        assert!(made.contains("local bins: i32[4, 65]") && made.contains("for i in 0..100: free\n"), "{made}");
        assert!(made.contains("bin[i] = at\n") && made.contains("for i_1 in 0..25: reduce\n"), "{made}");
        assert!(made.contains("= bins[i_2, at_1]") && made.contains("bins[3, j_2]"), "{made}");
        assert_eq!(made.matches("load x[i]").count(), 1, "{made}");
    }

    #[test]
    fn copies_count_equally_many() {
        let (out, _) = apply("count_bins", &kernel(&COUNT.replace("in 0..100", "in 0..99")), &context());
        let made = text(&out);
        assert!(made.contains("local bin: i32[100]") && made.contains("bin[99] = 64\n"), "{made}");
    }

    #[test]
    fn elements_whose_number_is_not_known_are_counted_as_they_come() {
        let (out, log) = apply("count_bins", &kernel(&COUNT.replace("in 0..100", "in 0..n")), &context());
        assert_eq!(log.applied, ["loop j"]);
        let made = text(&out);
        assert!(made.contains("for i in 0..n: reduce\n") && made.contains("= bins[i%4, at]"), "{made}");
    }

    #[test]
    fn threads_add_to_bins_that_they_share() {
        let (out, log) = apply("count_bins", &kernel(COUNT), &gpu(&[]));
        assert_eq!(log.applied, ["loop j"]);
        let made = text(&out);
        assert!(
            made.contains("bins: ptr i32 = alloca 256 align 64") && made.contains("for i in 0..100: free\n"),
            "{made}"
        );
        assert!(made.contains("atomic add bins[at], 1 relaxed") && made.contains("load bins[j_1]"), "{made}");
        let few = COUNT.replace("0..64", "0..31");
        assert_eq!(refusals("count_bins", &few, &gpu(&[])), ["loop j: it counts few numbers"]);
    }

    #[test]
    fn what_is_refused() {
        let why = |from: &str, to: &str| refusals("count_bins", &COUNT.replace(from, to), &context()).join("; ");
        assert_eq!(why("0..64", "0..7"), "loop j: it counts few numbers");
        assert_eq!(why("0..64", "0..n"), "loop j: the count of its numbers is not known");
        assert_eq!(why("load x[i]", "load x[i + j]"), "loop j: the counted elements depend on the number");
        assert_eq!(why("in 0..100", "in 0..j + 1"), "loop j: a number decides how much is counted");
        // A sum of something else is not a count.
        assert_eq!(why("o + s0", "v + s0"), "");
    }
}
