//! `overlap_products`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::verify::is_product;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, Visit};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "overlap_products",
    doc: "\
Lets the product of an iteration of a pipeline go on while that of the next begins, so that the matrix unit does not wait for
threads that wait for it.

```text
for kt in 0..56: serial pipeline(4)                     for kt in 0..56: serial pipeline(4, overlap)
  stage a_s: f16[64, 64] shared tensor: ...      -->      stage a_s: f16[64, 64] shared tensor: ...
  stage b_s: f16[64, 128] shared tensor: ...              stage b_s: f16[64, 128] shared tensor: ...
  for t in 0..128: free thread                            for t in 0..128: free thread
    ...: warpgroup                                          ...: warpgroup
```

Sums are added to in the order of the iterations all the same, in the same registers. What a product reads is filled again one
iteration later; so of four slots two are filled ahead instead of three. That is enough from four on, and where every iteration
has a slot of its own; of three only one would be left, to come from memory in the time of one product.

Knob: `overlap` (0 turns the rule off, 1 also asks for it of three slots).

Refuses pipelines that do anything else than one product of warpgroups in an iteration, or that threads fill.
",
    run,
};

/// Slots from which on products overlap by themselves, and those that it takes.
const ENOUGH: u32 = 4;
const LEAST: u32 = 3;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        let Place::Pipeline { depth, roles, overlap: false } = f.place else { return Visit::Into };
        let (stages, rest) = f.stages();
        let mut grouped = false;
        walk::visit(rest, &mut |s| grouped |= s.is_placed(Place::Warpgroup));
        if !grouped {
            return Visit::Into;
        }
        let own = f.hi.as_const().is_some_and(|n| n <= i64::from(depth));
        let least = if ctx.knobs.overlap == Some(true) { LEAST } else { ENOUGH };
        let why = match () {
            _ if ctx.knobs.overlap == Some(false) => Some("knob off".to_string()),
            _ if !is_product(rest) => Some("its iterations do more than multiply".to_string()),
            _ if !stages.iter().all(|s| s.filled(Filled::Tensor)) => Some("threads fill a stage of it".to_string()),
            _ if depth < least && !own => Some(format!("it has {depth} slots; {least} are enough")),
            _ => None,
        };
        match why {
            Some(why) => {
                log.skipped(axis_site(kernel, f.axis), why);
                Visit::Into
            }
            None => {
                log.applied(axis_site(kernel, f.axis));
                let place = Place::Pipeline { depth, roles, overlap: true };
                Visit::Replace(vec![Stmt::For(Box::new(For { place, ..(**f).clone() }))])
            }
        }
    })
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
