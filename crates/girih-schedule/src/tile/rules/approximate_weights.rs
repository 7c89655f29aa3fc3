//! `approximate_weights`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::primitives::approximate::Rounded;
use crate::tile::primitives::{self, Step};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "approximate_weights",
    doc: "\
Computes the weights of a softmax that are rounded to f16 or bf16 before they are multiplied by the GPU's unit for exponentials: one
instruction and a multiplication, where the function of all other exponentials takes eighteen.

```text
for j: reduce combine add(sum)                   t = m * -log2(e)
  w = exp(s[i, j] - m)                           for j: reduce combine add(sum)
  s[i, j] = w                             -->      w = exp2_approx(fma(s[i, j], log2(e), t))
  sum <- w + sum                                   s[i, j] = w    sum <- w + sum
... f16(s[i, j])                                 ... f16(s[i, j])
```

The unit's error is 2^-22 of the result; rounding to f16 changes it by up to 2^-12, to bf16 by 2^-9. Here and in the simulator the
result is the exact function's, so that a GPU may differ in the last bits of f32.

Knob: `exact_exp` (1 turns the rule off).

Refuses exponentials that are used in another way: of those nothing is said.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let weights = Rounded::of(p).summed;
    let mut loops = vec![];
    primitives::look(p, &mut |at, f| {
        if !f.body.iter().any(|s| matches!(s, Stmt::Let { dst, .. } if weights.contains(dst))) {
            return true;
        }
        match ctx.knobs.exact_exp {
            true => log.skipped(axis_site(p, f.axis), "knob `exact_exp`"),
            false => {
                log.applied(axis_site(p, f.axis));
                loops.push(at);
            }
        }
        true
    });
    if loops.is_empty() { vec![] } else { vec![Step::Approximate { loops }] }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{ATTENTION, apply, gpu, kernel, refusals, text};

    #[test]
    fn weights_of_attention_are_the_units() {
        let weights = "d6: f32 = x6 - now\n        y6: f32 = exp(d6)\n";
        let attention = ATTENTION.replace("y6: f32 = x6 - now\n", weights);
        let (out, log) = apply("approximate_weights", &kernel(&attention), &gpu(&[]));
        assert_eq!(log.applied, ["loop j6"], "{:?}", log.skipped);
        let made = text(&out);
        for part in ["= exp2_approx(y)", ", 1.442695", " * -1.442695"] {
            assert!(made.contains(part), "{part} is not in\n{made}");
        }
        assert!(!made.contains("x6 - now"), "{made}");
        let exact = gpu(&["exact_exp=1"]);
        assert_eq!(refusals("approximate_weights", &attention, &exact), ["loop j6: knob `exact_exp`"]);
        // The same value, where its last bits count.
        for (from, to) in [
            ("        b6: f32 = y6 + a6\n", "        b6: f32 = y6 + a6\n        store M[j6] = y6\n"),
            ("      store M[kt*32 + i5] = now\n", "      last: f32 = s[i5, 3]\n      store M[kt*32 + i5] = last\n"),
            ("        x6: f32 = s[i5, j6]\n", "        x6: f32 = s[i5, 15 - j6]\n"),
        ] {
            let other = attention.replace(from, to);
            assert_ne!(other, attention, "{from}");
            let (out, _) = apply("approximate_weights", &kernel(&other), &gpu(&[]));
            assert_eq!(text(&out), text(&kernel(&other)), "{from}");
        }
    }
}
