//! `overlap_products`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::overlap::Overlap;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::heuristics::overlap_products::{ENOUGH, LEAST};
use crate::tile::primitives::{self, Step};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "overlap_products",
    doc: "\
Overlaps the iterations of a pipeline: the last product of one still runs while the next begins, so that the matrix unit does not
wait for threads that wait for it.

```text
for kt in 0..56: serial pipeline(4)                     for kt in 0..56: serial pipeline(4, overlap)
  stage a_s: f16[64, 64] shared tensor: ...      -->      stage a_s: f16[64, 64] shared tensor: ...
  stage b_s: f16[64, 128] shared tensor: ...              stage b_s: f16[64, 128] shared tensor: ...
  for t in 0..128: free thread                            for t in 0..128: free thread
    ...: warpgroup                                          ...: warpgroup
```

Where an iteration does more, its last product begins behind the first one of the next iteration: in attention, the weights of some keys
are multiplied by their values while the threads compute the weights of the next keys. Three slots are enough then.

Products still add to the sums in the order of the iterations, in the same registers. The slot that a product reads is filled again
one iteration later; so two of four slots are filled ahead instead of three. That is enough with four slots or more, and where every
iteration has a slot of its own; of three slots only one would be left, to come from memory in the time of one product.

Knob: `overlap` (0 turns the rule off, 1 also asks for it of three slots).

Refuses pipelines that threads fill, and pipelines whose iterations are neither one product of warpgroups nor two, of which the last
ends the iteration and needs nothing that the first one changes.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut steps = vec![];
    primitives::look(p, &mut |at, f| {
        let Place::Pipeline { depth, roles, overlap: false } = f.place else { return true };
        let grouped = walk::stmts(f.stages().1).any(|s| matches!(s, Stmt::For(f) if f.place.is_of_groups()));
        if !grouped {
            return true;
        }
        let own = f.hi.as_const().is_some_and(|n| n <= i64::from(depth));
        let goes_on = Overlap::of(p, f);
        let computes = matches!(goes_on, Ok(Overlap::Last(_)));
        let least = if computes || ctx.knobs.overlap == Some(true) { LEAST } else { ENOUGH };
        let why = match goes_on {
            _ if ctx.knobs.overlap == Some(false) => "knob off".to_string(),
            Err(why) => why.to_string(),
            Ok(_) if depth < least && !own => format!("it has {depth} slots; {least} are enough"),
            Ok(_) => {
                log.applied(axis_site(p, f.axis));
                steps.push(Step::Pipeline { at, depth, roles, overlap: true });
                return false;
            }
        };
        log.skipped(axis_site(p, f.axis), why);
        true
    });
    steps
}

#[cfg(test)]
mod tests {
    use crate::tile::rules::split_inner_for_swizzle::tests::PRODUCT;
    use crate::tile::tests::{apply, gpu, kernel, refusals, schedule, text};

    fn pipelined(knobs: &[&str]) -> String {
        text(&schedule(&kernel(PRODUCT), &gpu(&[&["overlap=0"], knobs].concat())))
    }

    #[test]
    fn products_overlap_where_slots_are_enough() {
        let four = pipelined(&["slots=4"]);
        assert!(four.contains("serial pipeline(4)\n"), "{four}");
        let (out, _) = apply("overlap_products", &kernel(&four), &gpu(&[]));
        assert_eq!(text(&out), four.replace("pipeline(4)", "pipeline(4, overlap)"));
        let (out, _) = apply("overlap_products", &kernel(&pipelined(&["slots=3"])), &gpu(&["overlap=1"]));
        assert!(text(&out).contains("pipeline(3, overlap)"), "{}", text(&out));
        let both = text(&schedule(&kernel(PRODUCT), &gpu(&["slots=4", "warp_specialize=1"])));
        assert!(both.contains("pipeline(4, roles, overlap)"), "{both}");
    }

    #[test]
    fn others_wait_for_their_own() {
        let four = pipelined(&["slots=4"]);
        let more = four.replacen("    for t", "    local u: f32[32] shared\n    for t", 1);
        assert_ne!(four, more);
        for (text, knobs, why) in [
            (&four, &["overlap=0"][..], "knob off"),
            (&pipelined(&["slots=3"]), &[], "it has 3 slots; 4 are enough"),
            (&pipelined(&["slots=2"]), &["overlap=1"], "it has 2 slots; 3 are enough"),
            (&more, &[], "its iterations do more than multiply"),
        ] {
            assert_eq!(refusals("overlap_products", text, &gpu(knobs)), [format!("loop k: {why}")]);
        }
        // Warps wait for nothing.
        assert_eq!(refusals("overlap_products", &pipelined(&["wgmma=0"]), &gpu(&[])), Vec::<String>::new());
    }
}
