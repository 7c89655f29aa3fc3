//! `warp_specialize`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::overlap::Overlap;
use crate::tile::Context;
use crate::tile::heuristics::warp_specialize::MANY_SUMS;
use crate::tile::primitives::tensorize::warpgroup;
use crate::tile::primitives::{self, Step, pipeline};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "warp_specialize",
    doc: "\
Lets one warp fill a pipeline by TMA; the other warps only compute, and no iteration has a barrier of all threads.

```text
for kt in 0..56: serial pipeline(3)                     for kt in 0..56: serial pipeline(3, roles)
  stage a_s: f16[128, 64] shared tensor: ...     -->      stage a_s: f16[128, 64] shared tensor: ...
  stage b_s: f16[64, 128] shared tensor: ...              stage b_s: f16[64, 128] shared tensor: ...
  for t in 0..256: free thread ...                        for t in 0..256: free thread ...
```

The warp waits on an mbarrier until a slot has been read, and the others on another until it is full; both follow when the loop
is lowered.

Threads that do more than multiply, as in attention, come to the barrier of an iteration late; where the last product of theirs goes on
(`overlap_products`), a warp fills by itself. So it does where a thread of a warpgroup has 128 sums, which leave no registers for the
addresses of copies; where sums are in tensor memory, which no thread waits for before the loop ends; and where a block takes tile after
tile, as the warp is at the next one while results are stored.

Knob: `warp_specialize` (1 asks for it of every pipeline: measure whether it pays; 0 turns the rule off).

Refuses pipelines of one slot, pipelines that threads fill, pipelines that compute values that threads share, and kernels in which
all threads of a block reduce something together.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let folds = pipeline::folds_together(p);
    let mut steps = vec![];
    primitives::look(p, &mut |at, f| {
        let Place::Pipeline { depth, roles: false, overlap } = f.place else { return true };
        let refused = match () {
            _ if !ctx.knobs.warp_specialize.unwrap_or(is_due(p, f, overlap)) => Err("knob off"),
            _ => pipeline::can_have_roles(p, f, depth, folds),
        };
        match refused {
            Err(why) => log.skipped(axis_site(p, f.axis), why),
            Ok(()) if !steps.is_empty() => log.skipped(axis_site(p, f.axis), "another loop of the kernel has the warp"),
            Ok(()) => {
                log.applied(axis_site(p, f.axis));
                steps.push(Step::Pipeline { at, depth, roles: true, overlap });
                return false;
            }
        }
        true
    });
    steps
}

/// True if threads would come late to a barrier, or lack registers to fill the pipeline.
fn is_due(p: &Kernel, f: &For, overlap: bool) -> bool {
    // Only where no other loop holds it does the warp fill all that the block ever needs.
    let fills_all = || warpgroup::is_of_block(&p.body, f);
    let sums = warpgroup::sums(p, f, Place::Warpgroup);
    let grouped = sums >= MANY_SUMS || warpgroup::sums(p, f, Place::Tcgen05) > 0;
    // Between tiles, the warp goes on with the next one.
    let tiles = || (grouped || sums > 0) && warpgroup::is_of_tiles(&p.body, f);
    overlap && computes(p, f) || grouped && fills_all() || tiles()
}

/// True if the threads of a pipeline do more than multiply while its last product goes on.
fn computes(p: &Kernel, f: &For) -> bool {
    matches!(Overlap::of(p, f), Ok(Overlap::Last(_)))
}

#[cfg(test)]
mod tests {
    use crate::tile::rules::split_inner_for_swizzle::tests::PRODUCT;
    use crate::tile::tests::{apply, gpu, kernel, refusals, schedule, text};

    fn pipelined(knobs: &[&str]) -> String {
        text(&schedule(&kernel(PRODUCT), &gpu(&[&["overlap=0"], knobs].concat())))
    }

    #[test]
    fn a_warp_fills_where_it_is_asked_for() {
        let plain = pipelined(&[]);
        assert!(plain.contains("serial pipeline(4)\n"), "{plain}");
        let (out, _) = apply("warp_specialize", &kernel(&plain), &gpu(&["warp_specialize=1"]));
        assert_eq!(text(&out), plain.replace("pipeline(4)", "pipeline(4, roles)"));
        assert!(pipelined(&["warp_specialize=1"]).contains("pipeline(4, roles)"));
    }

    #[test]
    fn what_is_no_such_pipeline_is_refused() {
        let on = gpu(&["warp_specialize=1"]);
        let plain = pipelined(&[]);
        assert_eq!(refusals("warp_specialize", &plain, &gpu(&[])), ["loop k: knob off"]);
        let copied = pipelined(&["tma=0"]);
        assert_eq!(refusals("warp_specialize", &copied, &on), ["loop k: threads fill a stage of it"]);
        assert_eq!(refusals("warp_specialize", &pipelined(&["slots=1"]), &on), ["loop k: it has one slot"]);
        let shared = plain.replacen("    for t_1 in", "    local u: f32[32] shared\n    for t_1 in", 1);
        assert_ne!(shared, plain);
        assert_eq!(refusals("warp_specialize", &shared, &on), ["loop k: it computes what threads share"]);
    }
}
