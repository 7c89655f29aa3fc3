//! `merge_folds`

use crate::base::rule::{Log, Rule};
use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::model::Plan;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::edit::const_trip;
use crate::tile::numbered::Numbered;
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
    run,
};

fn run(plan: &Plan, ctx: &Context, log: &mut Log) -> Option<Plan> {
    let mut out = plan.clone();
    let mut changed = false;
    for step in &mut out.steps {
        if !step.kernel.open {
            continue;
        }
        let mut body = std::mem::take(&mut step.kernel.body);
        walk::visit_mut(&mut body, &mut |s| {
            while let Some(merged) = merged(&mut step.kernel, ctx, s) {
                let Stmt::For(f) = &merged else { return };
                log.applied(axis_site(&step.kernel, f.axis));
                *s = merged;
                changed = true;
            }
        });
        step.kernel.body = body;
    }
    changed.then_some(out)
}

/// Two nested reductions as one.
fn merged(kernel: &mut Kernel, ctx: &Context, s: &Stmt) -> Option<Stmt> {
    let Stmt::For(outer) = s else { return None };
    let [Stmt::For(inner)] = &outer.body[..] else { return None };
    let plain =
        |f: &For| f.kind == LoopKind::Reduce && f.place == Place::None && f.contraction.is_none() && f.stream.is_none();
    if !plain(outer) || !plain(inner) || outer.combine.is_some() || innermost(inner)?.combine.is_none() {
        return None;
    }
    let total = const_trip(outer)?.checked_mul(const_trip(inner)?)?;
    i32::try_from(total).ok()?;
    let mut facts = kernel.facts();
    let numbered = Numbered::new([&**outer, &**inner], &facts);
    let axis = kernel.axes.push(Axis { name: kernel.axes[outer.axis].name.clone(), from: None });
    facts.set_axis(axis, &Ix::Const(0), &numbered.total);
    let mut body = inner.body.clone();
    numbered.place(&mut body, &Ix::Axis(axis), &facts);
    walk::map_ixs(&mut body, &mut |ix| *ix = simplify(ix, &facts));
    let varying = walk::refs(&body).vals_defined;
    let along = |s: &Stmt| match s {
        Stmt::Load { mem, mask, .. } => mask.is_always() && affine::stride(&mem.index, axis, &varying) == Stride::Unit,
        _ => true,
    };
    if !ctx.target.has(Capability::Threads) && !body.iter().all(along) {
        return None;
    }
    let (lo, hi) = (Ix::Const(0), numbered.total.clone());
    Some(Stmt::For(Box::new(For { axis, lo, hi, body, ..(**inner).clone() })))
}

/// The last of nested reductions, which says how parts combine.
fn innermost(f: &For) -> Option<&For> {
    match &f.body[..] {
        [Stmt::For(inner)] if inner.kind == LoopKind::Reduce && inner.contraction.is_none() => innermost(inner),
        [Stmt::For(_)] => None,
        _ => Some(f),
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::loops::print::{Dialect, print};
    use crate::tile::tests::{context, gpu, plan_of, split_by};

    #[test]
    fn axes_become_one() {
        let made = |text: &str| {
            let (out, _) = split_by(run, &plan_of(text).1, &gpu(&[]));
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
        let on_cpu = |text: &str| split_by(run, &plan_of(text).1, &context()).0.is_some();
        assert!(on_cpu("torch.randn(512, 512).sum()") && !on_cpu("torch.randn(40, 30, 50).sum((0, 2))"));
        assert_eq!(made("torch.randn(64, 64) @ torch.randn(64, 64)"), None);
        assert_eq!(made("torch.nn.Conv2d(3, 8, 3)(torch.randn(1, 3, 10, 10))"), None);
    }
}
