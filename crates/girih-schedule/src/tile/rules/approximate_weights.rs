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

Says nothing of exponentials that are used in another way.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    primitives::run(p, ctx, log, policy)
}

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
        let (out, log) = apply("approximate_weights", &kernel(ATTENTION), &gpu(&[]));
        assert_eq!(log.applied.len(), 1, "{:?}", log.skipped);
        let made = text(&out);
        for part in ["= exp2_approx(y)", ", 1.442695", " * -1.442695"] {
            assert!(made.contains(part), "{part} is not in\n{made}");
        }
        assert_eq!(refusals("approximate_weights", ATTENTION, &gpu(&["exact_exp=1"])), ["loop n6: knob `exact_exp`"]);
    }
}
