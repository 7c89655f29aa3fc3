//! `pack_weights`

use crate::base::IdMap;
use crate::base::rule::{Log, Rule};
use crate::loops::model::{Array, ArrayId, Plan, Step};
use crate::tile::Context;
use crate::tile::primitives;
use crate::tile::primitives::model::{self, Act, pack};

pub const RULE: Rule<Plan, Context> = Rule {
    name: "pack_weights",
    doc: "\
Lays the weights of contractions out in panels when the model is loaded. Register tiles then read their columns in order,
and no block packs them again. It costs a second copy of the weights.

```text
b = load w[j*3584 + k]                    -->    b = load w_packed[j//32*114688 + k*32 + j%32]

                                                 once, at load:
                                                 for p in 0..112: for k in 0..3584: for jj in 0..32: free
                                                   store w_packed[..] = load w[(p*32 + jj)*3584 + k]
```

Where the processor multiplies pairs, the terms of the sum are paired first (`pair_terms`), and words lie in the panels.

Knob: `pack` (0 turns the rule off).

Refuses operands that are not known when the model is loaded, extents that are not known at compile time, and weights that are
computed, differ along a batch, or are smaller than a panel.
",
    run: |plan, ctx, log| primitives::run(plan, ctx, log, policy),
};

fn policy(plan: &Plan, ctx: &Context, log: &mut Log) -> Vec<model::Step> {
    let mut steps = vec![];
    for step in &plan.steps {
        let paired = in_pairs(step, &plan.arrays, ctx, log);
        let (step, pairs) = (paired.as_ref().unwrap_or(step), paired.is_some());
        let mut arrays = vec![];
        for candidate in pack::candidates(step, &plan.arrays) {
            let site = format!("{}, the weight {}", step.kernel.name, plan.arrays[candidate.array].name);
            let weight = if ctx.knobs.pack { candidate.weight(&step.kernel, ctx) } else { Err("knob off".to_string()) };
            if let Some(weight) = log.outcome(site, weight)
                && !arrays.contains(&weight.array)
            {
                arrays.push(weight.array);
            }
        }
        if !arrays.is_empty() {
            steps.push(model::Step { kernel: step.kernel.name.clone(), act: Act::Pack { arrays, pairs } });
        }
    }
    steps
}

/// The step with the terms of its sums paired where their right operands are weights that become words.
fn in_pairs(step: &Step, arrays: &IdMap<ArrayId, Array>, ctx: &Context, log: &mut Log) -> Option<Step> {
    let mut own = Log::default();
    let kernel = ctx.knobs.pack.then(|| pack::paired(step, arrays, ctx, &mut own)).flatten()?;
    log.applied.extend(own.applied.iter().map(|site| format!("{}, {site}: terms in pairs", kernel.name)));
    Some(Step { kernel, ..step.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::print::{Dialect, print};
    use crate::loops::verify::verify;
    use crate::tile::tests::{context, plan_of, with_knobs};

    fn packed(text: &str, ctx: &Context) -> (Plan, Option<Plan>, Log) {
        let (_, plan) = plan_of(text);
        let mut log = Log::default();
        let out = (RULE.run)(&plan, ctx, &mut log);
        for step in out.iter().flat_map(|p| p.load.iter().chain(&p.steps)) {
            assert_eq!(verify(&step.kernel, Dialect::Loop), []);
            assert_eq!(step.args.len(), step.kernel.params.len());
        }
        (plan, out, log)
    }

    #[test]
    fn a_weight_is_read_from_panels_that_are_written_once() {
        let (plan, out, log) = packed("torch.nn.Linear(64, 40)(torch.randn(8, 64))", &context());
        let (out, step) = (out.unwrap(), &plan.steps[0]);
        assert_eq!(log.applied.len(), 1);
        assert_eq!((plan.load.len(), out.load.len()), (0, 1));
        let names = |s: &Step| s.kernel.params.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(step), ["x", "weight", "bias", "linear"]);
        assert_eq!(names(&out.steps[0]), ["x", "bias", "linear", "weight_packed"]);
        let weight = step.args[1];
        assert!(!out.steps[0].args.contains(&weight) && out.load[0].args[0] == weight);
        let text = print(&out.steps[0].kernel, Dialect::Loop);
        assert!(text.contains("load weight_packed[j//32*2048 + k*32 + j%32]"), "{text}");
        // 40 columns are a panel and a part of one, filled with zeros.
        let text = print(&out.load[0].kernel, Dialect::Loop);
        assert!(text.contains("load weight[p*2048 + j*64 + k] where p*32 + j < 40 else 0.0"), "{text}");
    }

    #[test]
    fn one_copy_serves_all_that_read_it_alike() {
        let text = "fc = torch.nn.Linear(64, 64, bias=False); fc(fc(torch.randn(8, 64)).relu())";
        let (_, out, log) = packed(text, &context());
        let out = out.unwrap();
        assert_eq!((log.applied.len(), out.load.len()), (2, 1), "{:?}", log.applied);
        // A weight that something else reads stays an argument beside its panels.
        let text = "fc = torch.nn.Linear(64, 64, bias=False); fc(torch.randn(64, 64)) + fc.weight";
        let (_, out, _) = packed(text, &context());
        let step = &out.unwrap().steps[0];
        let names: Vec<&str> = step.kernel.params.iter().map(|p| p.name.as_str()).collect();
        assert!(names.contains(&"weight") && names.contains(&"weight_packed"), "{names:?}");
    }

    #[test]
    fn what_gains_nothing_is_refused() {
        for (text, ctx, why) in [
            ("torch.nn.Linear(64, 64)(torch.randn(8, 64))", with_knobs(&["pack=0"]), "knob off"),
            ("torch.nn.Linear(64, 16)(torch.randn(8, 64))", context(), "it is smaller than a panel"),
        ] {
            let (_, out, log) = packed(text, &ctx);
            assert!(out.is_none());
            assert!(log.skipped.iter().any(|(_, w)| w == why), "{:?}", log.skipped);
        }
        // The rule ignores operands that are not known when the model is loaded.
        let (_, out, log) = packed("torch.randn(8, 64) @ torch.randn(64, 64)", &context());
        assert!(out.is_none() && log.skipped.is_empty());
    }
}
