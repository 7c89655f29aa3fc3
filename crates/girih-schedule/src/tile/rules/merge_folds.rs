//! `merge_folds`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::model::Plan;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::primitives::model::{self, Act, merge};
use crate::tile::primitives::{self, LoopRef, look};
use crate::tile::rules::axis_site;
use crate::tile::target::Capability;

pub const RULE: Rule<Plan, Context> = Rule {
    name: "merge_folds",
    doc: "\
Merges nested reductions along several axes into one, which threads and blocks can share.

```text
for k in 0..8192: reduce                         for k in 0..67108864: reduce combine add(s)
  for k1 in 0..8192: reduce combine add(s)  -->    s <- x[k] + s
    s <- x[k*8192 + k1] + s
```

On a CPU, whose vectors run along the inner loop, it does so only if the elements are contiguous through both loops.

Refuses products, whose axes have roles, and loops that do more than the inner reduction.
",
    run: |plan, ctx, log| primitives::run(plan, ctx, log, policy),
};

fn policy(plan: &Plan, ctx: &Context, log: &mut Log) -> Vec<model::Step> {
    let mut steps = vec![];
    for kernel in plan.steps.iter().map(|step| &step.kernel).filter(|kernel| kernel.open) {
        // Loops that are merged may be merged again.
        let mut now = kernel.clone();
        while let Some(at) = next(&now, ctx) {
            let Ok(axis) = merge::apply(&mut now, at) else { break };
            log.applied(axis_site(&now, axis));
            steps.push(model::Step { kernel: kernel.name.clone(), act: Act::Merge { at } });
        }
    }
    steps
}

/// The first loop that is worth merging with the one inside it.
fn next(kernel: &Kernel, ctx: &Context) -> Option<LoopRef> {
    let mut found = None;
    look(kernel, &mut |at, f| {
        let worth = || {
            let mut trial = kernel.clone();
            let Ok(merged) = merge::merged(&mut trial, f) else { return false };
            ctx.target.has(Capability::Threads) || runs_along(&merged)
        };
        if found.is_none() && merge::inner(f).is_ok() && worth() {
            found = Some(at);
        }
        found.is_none()
    });
    found
}

/// True if the elements that a loop reads lie side by side.
fn runs_along(f: &For) -> bool {
    let varying = walk::refs(&f.body).vals_defined;
    f.body.iter().all(|s| match s {
        Stmt::Load { mem, mask, .. } => {
            mask.is_always() && affine::stride(&mem.index, f.axis, &varying) == Stride::Unit
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::loops::print::{Dialect, print};
    use crate::tile::tests::{context, gpu, plan_of, split_by};

    #[test]
    fn axes_become_one() {
        let made = |text: &str| {
            let (out, _) = split_by(RULE.run, &plan_of(text).1, &gpu(&[]));
            out.map(|plan| plan.steps.iter().map(|s| print(&s.kernel, Dialect::Loop)).collect::<String>())
        };
        let text = made("torch.randn(40, 30, 50).sum((0, 2))").unwrap();
        let want =
            "for k in 0..2000: reduce combine add(sum_1) from 0.0\n      x_1: f32 = load x[k//50*1500 + a0*50 + k%50]";
        assert!(text.contains(want), "{text}");
        let whole = made("torch.randn(8192, 8192).sum()").unwrap();
        assert!(
            whole.contains("for k in 0..67108864: reduce combine add(sum_1) from 0.0\n    x_1: f32 = load x[k]"),
            "{whole}"
        );
        // Vectors of a processor run along the inner axis.
        let on_cpu = |text: &str| split_by(RULE.run, &plan_of(text).1, &context()).0.is_some();
        assert!(on_cpu("torch.randn(512, 512).sum()") && !on_cpu("torch.randn(40, 30, 50).sum((0, 2))"));
        assert_eq!(made("torch.randn(64, 64) @ torch.randn(64, 64)"), None);
        assert_eq!(made("torch.nn.Conv2d(3, 8, 3)(torch.randn(1, 3, 10, 10))"), None);
    }
}
