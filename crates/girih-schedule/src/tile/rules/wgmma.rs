//! `wgmma`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::matrix::Product;
use crate::tile::Context;
use crate::tile::primitives::tensorize::{Unit, warpgroup};
use crate::tile::primitives::{self, Step};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "wgmma",
    doc: "\
Lets groups of four warps multiply: the matrix unit reads both operands from shared memory itself, 64 rows by up to 256 columns
at a time.

```text
stage a_s: f16[128, 64] shared swizzle(128) tensor: ...
stage b_s: f16[2, 64, 64] shared swizzle(128) tensor: ...
for t in 0..256: free thread                               for t in 0..256: free thread
  for r in 0..2: for c in 0..32: for kk: matrix      -->     for r in 0..2: for c in 0..32: for kk: warpgroup
    acc[t, r, c] <- a_s[.., kk] * b_s[c//16, kk, ..]           acc[t, r, c] <- a_s[.., kk] * b_s[c//16, kk, ..]
```

`tensor_core` gives each warp 16 rows and all columns where both operands are filled by TMA; these are what `wgmma` gives a warp.
Fences, commits and waits follow when the kernel is lowered.

On sm_100a the same groups multiply by `tcgen05`, 128 rows at a time, with sums in tensor memory: one thread begins the products
of all iterations, and the threads get the sums when the last one has ended.

Knobs: `wgmma` (0 turns the rule off), `fast_acc` (1 allows products of f8, which warpgroups add with fewer bits than f32 has).

Takes f16 and bf16 with sums in f32 and, where their terms lie side by side, integers of 8 bits and, with the knobs `tf32` and
`fast_acc`, f32 and f8.
The left operand may also come from registers, by `ldmatrix` or as sums lie.
Refuses right operands that TMA does not bring to shared memory with a swizzle; warps of a group that have other columns; warps that have other than 16 rows; and machines that
have no such products. With sums in tensor memory it also refuses left operands in registers, warps that have other than 32 rows, kernels with another
product, and loops that do more than multiply, as in attention: threads would have to copy their sums first.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut loops = vec![];
    for (at, f, thread) in warpgroup::products(p) {
        let name = match Product::of(p, thread, f) {
            Ok(made) => p.bufs[made.acc].name.clone(),
            Err(_) => "a product".to_string(),
        };
        let grouped = if ctx.knobs.wgmma { warpgroup::grouped(p, ctx, f, thread) } else { Err("knob off".into()) };
        if log.described(name, grouped) {
            loops.push(at);
        }
    }
    let tall = warpgroup::place(&ctx.target) == Some(Place::Tcgen05);
    let unit = if tall { Unit::Tcgen05 } else { Unit::Warpgroup };
    if loops.is_empty() { vec![] } else { vec![Step::Tensorize { loops, unit }] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::rules::split_inner_for_swizzle::tests::PRODUCT;
    use crate::tile::target::Target;
    use crate::tile::tests::{apply, gpu, kernel, refusals, schedule, text};

    /// Placed up to here: each warp has 16 rows and all columns.
    fn placed(knobs: &[&str]) -> String {
        text(&schedule(&kernel(PRODUCT), &gpu(&[&["wgmma=0"], knobs].concat())))
    }

    #[test]
    fn warps_with_sixteen_rows_are_groups() {
        let of_warps = placed(&["rows=2", "cols=32"]);
        assert!(of_warps.contains("free matrix") && !of_warps.contains("warpgroup"), "{of_warps}");
        let (out, log) = apply("wgmma", &kernel(&of_warps), &gpu(&[]));
        assert_eq!(log.applied, ["acc: 64 x 128 for each of 1 warpgroups"]);
        assert_eq!(text(&out), of_warps.replace(" matrix\n", " warpgroup\n"));
        // By default, too.
        assert!(text(&schedule(&kernel(PRODUCT), &gpu(&[]))).contains("reduce warpgroup\n"));
    }

    /// Each warp has 32 rows, and the sums are in tensor memory.
    #[test]
    fn groups_multiply_in_tensor_memory() {
        let on = |knobs: &[&str]| Context { target: Target::named("sm_100a").unwrap(), ..gpu(knobs) };
        let tall = ["acc: f32[64", "i0 in 0..64", "i in 0..64", "i1 in 0..64", "bx*64"];
        let tall = tall.iter().fold(PRODUCT.to_string(), |text, part| {
            assert!(text.contains(part), "{part}");
            text.replace(part, &part.replace("64", "128"))
        });
        let of_warps = text(&schedule(&kernel(&tall), &on(&["wgmma=0", "rows=4", "cols=32"])));
        let (out, log) = apply("wgmma", &kernel(&of_warps), &on(&[]));
        assert_eq!(log.applied, ["acc: 128 x 128 for each of 1 warpgroups"]);
        assert_eq!(text(&out), of_warps.replace(" matrix\n", " tcgen05\n"));
        let by_default = text(&schedule(&kernel(&tall), &on(&[])));
        assert!(by_default.contains("reduce tcgen05\n") && by_default.contains(", roles"), "{by_default}");
        let begun = of_warps.replacen("] = 0.0\n", "] = 1.0\n", 1);
        assert_ne!(begun, of_warps);
        assert_eq!(refusals("wgmma", &begun, &on(&[])), ["acc: its sums do not begin with zeros"]);
    }

    /// Their sums are not exact.
    #[test]
    fn products_of_f8_are_asked_for() {
        let f8 = PRODUCT
            .replace("f16", "f8E4M3FN")
            .replace("B[(k*64 + kk)*304 + (by*128 + j)]", "B[(by*128 + j)*512 + (k*64 + kk)]");
        let placed = |knobs: &[&str]| text(&schedule(&kernel(&f8), &gpu(knobs)));
        assert!(placed(&["fast_acc=1"]).contains("reduce warpgroup\n"), "{}", placed(&["fast_acc=1"]));
        let of_warps = placed(&["rows=2", "cols=32"]);
        let why = "warpgroups add products of f8 with fewer bits than f32 has; the knob `fast_acc` allows it";
        assert_eq!(refusals("wgmma", &of_warps, &gpu(&[])), [format!("acc: {why}")]);
    }

    #[test]
    fn what_a_warpgroup_does_not_multiply_is_refused() {
        let of_warps = placed(&["rows=2", "cols=32"]);
        let on = |name: &str| Context { target: Target::named(name).unwrap(), ..Context::default() };
        for (ctx, why) in [
            (gpu(&["wgmma=0"]), "knob off"),
            (on("sm_120"), "sm_120 has no products of warpgroups"),
            (on("sm_100a"), "a warpgroup has not 128 rows and a multiple of 16 columns up to 256 of it"),
        ] {
            assert_eq!(refusals("wgmma", &of_warps, &ctx), [format!("acc: {why}")]);
        }
        for (knobs, why) in [
            (&[][..], "a warpgroup has not 64 rows and at most 256 columns of it"),
            (&["rows=2", "cols=32", "tma=0"], "its right operand is not brought to shared memory by TMA"),
        ] {
            assert_eq!(refusals("wgmma", &placed(knobs), &gpu(&[])), [format!("acc: {why}")]);
        }
        let plain = of_warps.replace(" swizzle(128)", "");
        assert_ne!(plain, of_warps);
        let why = "an operand is not brought to shared memory by TMA with a swizzle";
        assert_eq!(refusals("wgmma", &plain, &gpu(&[])), [format!("acc: {why}")]);
        // The left operand comes from registers then.
        let left = of_warps.replacen(" swizzle(128)", "", 1);
        let (_, log) = apply("wgmma", &kernel(&left), &gpu(&[]));
        assert_eq!(log.applied, ["acc: 64 x 128 for each of 1 warpgroups, rows from registers"]);
    }
}
