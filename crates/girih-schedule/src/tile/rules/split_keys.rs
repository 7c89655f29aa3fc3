//! `split_keys`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::model::Plan;
use crate::tile::Context;
use crate::tile::cost;
use crate::tile::heuristics::blocking::ALIKE;
use crate::tile::heuristics::cost::SECOND;
use crate::tile::heuristics::named;
use crate::tile::heuristics::split_keys::{BLOCKS, JOINED, MOST_ROWS, PER_ELEMENT, SOFTENED, STRETCH};
use crate::tile::primitives::model::{self, Act};
use crate::tile::primitives::tile::stream::{Sides, StreamNest};
use crate::tile::primitives::{self, names_of};

pub const RULE: Rule<Plan, Context> = Rule {
    name: "split_keys",
    doc: "\
Splits the keys of attention of a few rows into parts if there are fewer blocks than multiprocessors: a block takes each part, and a
second kernel joins what they have, as Flash-Decoding does.

```text
for i in 0..32: free                             for part in 0..8: for i: free
  acc = 0, m = -inf, l = 0                         acc = 0, m = -inf, l = 0
  for key in 0..4096: serial stream      -->       for key in 0..512: serial stream
    m, l, acc[n] <- the recurrence                   m, l, acc[n] <- the recurrence, of the key part*512 + key
  for n: store out[i, n] = acc[n]/l                for n: store acc_parts[part, i, n] = acc[n]
                                                     store m_parts[part, i] = m, l_parts[part, i] = l where n == 0

                                                 for i: for n: free
                                                   for part in 0..8: reduce
                                                     m', w, shrink = max(m, m_parts[..]), exp(m_parts[..] - m'), exp(m - m')
                                                     acc <- acc*shrink + acc_parts[part, i, n]*w, l <- l*shrink + l_parts[..]*w
                                                   store out[i, n] = acc/l
```

The number of parts takes least time by the estimate: memory delivers keys and values once, and a block takes its stretches of keys
one after the other. If it can, it divides the keys into whole stretches; otherwise the last part masks those past the end. Parts are
joined in one order, so results are the same on every run.

Knob: `split_k` (the number of parts; 1 turns the rule off).

Refuses attention whose rows fill tiles, whose blocks are enough for the multiprocessors, or whose keys are few; keys whose number only
the launch knows, and kernels that do more than attention.
",
    run: |plan, ctx, log| primitives::run(plan, ctx, log, policy),
};

fn policy(plan: &Plan, ctx: &Context, log: &mut Log) -> Vec<model::Step> {
    let mut steps = vec![];
    for kernel in plan.steps.iter().map(|step| &step.kernel) {
        for s in &kernel.body {
            let Some(nest) = StreamNest::of(s) else { continue };
            let site = kernel.name.clone();
            let chosen = nest.and_then(|nest| {
                let (parts, length) = cut(kernel, ctx, &nest)?;
                let at = names_of(kernel, &[nest.stream]).first().copied().ok_or("its loop has no name")?;
                Ok((at, parts, length))
            });
            match chosen {
                Ok((at, parts, length)) => {
                    log.applied(format!("{site}: {parts} parts of {length} keys"));
                    steps.push(model::Step { kernel: site, act: Act::SplitK { at, length } });
                }
                Err(why) => log.skipped(site, why),
            }
        }
    }
    steps
}

/// How many parts the keys are cut into, and how long each is.
fn cut(kernel: &Kernel, ctx: &Context, nest: &StreamNest<'_>) -> Result<(u64, u32), String> {
    let Sides { m, keys, n, depth, batch } = Sides::of(nest, &kernel.facts())?;
    if m.known().is_none_or(|rows| rows > MOST_ROWS) {
        return Err(format!("it has more rows than {}, or only the launch knows how many", named!(MOST_ROWS)));
    }
    let keys = keys.known().ok_or("how many keys there are is known at launch only")?;
    let of_two = nest.sum.operand(kernel).is_some_and(|d| d.bytes() == 2);
    let (Some(deep), Some(width), true) = (depth.known(), n.known(), of_two) else {
        return Err("its rows are not of known lengths and of elements of two bytes".to_string());
    };
    let stretches = keys.div_ceil(STRETCH);
    let wanted = match ctx.knobs.split_k {
        Some(1) => return Err("knob off".to_string()),
        Some(parts) => u64::from(parts),
        None => {
            let blocks = batch.known().ok_or("how many blocks it has is known at launch only")?.max(1);
            let workers = u64::from(ctx.target.axes.workers);
            let fit = BLOCKS * workers / blocks;
            if fit < 2 {
                return Err(format!("it has {blocks} blocks for {workers} multiprocessors"));
            }
            let gpu = ctx.target.gpu.ok_or("the target says nothing of its speed")?;
            let elements = (deep + width) as f64;
            let memory = 2.0 * elements * (blocks * keys) as f64 / gpu.bandwidth;
            let each = PER_ELEMENT * STRETCH as f64 * (elements + SOFTENED) / gpu.clock;
            // Memory and the warps wait for each other a little, so more parts pay even where memory takes longer.
            let seconds = |parts: u64| (stretches.div_ceil(parts) as f64 * each).hypot(memory);
            let one = seconds(1);
            let joined = |parts: u64| SECOND + parts as f64 * JOINED;
            let all = (2..=fit.min(stretches)).map(|parts| (parts, seconds(parts) + joined(parts)));
            let best =
                all.min_by(|a, b| a.1.total_cmp(&b.1)).ok_or_else(|| format!("its {keys} keys are one stretch"))?;
            if best.1 * (1.0 + ALIKE) >= one {
                let (one, parts) = (cost::time(one), cost::time(best.1));
                return Err(format!(
                    "it takes {one}, and {} parts take {parts} with the kernel that joins them",
                    best.0
                ));
            }
            // Parts of whole stretches need no masks, if there are nearly as few.
            let even = |parts: &u64| stretches % parts == 0 && keys % STRETCH == 0;
            (best.0..=fit.min(2 * best.0)).find(even).unwrap_or(best.0)
        }
    };
    let even = keys.div_ceil(wanted).max(1);
    let length = if even >= STRETCH { even.next_multiple_of(STRETCH) } else { even };
    match (keys.div_ceil(length), u32::try_from(length)) {
        (parts @ 2.., Ok(length)) => Ok((parts, length)),
        _ => Err(format!("its {keys} keys are one part")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::print::{Dialect, print};
    use crate::tile::tests::{gpu, plan_for_threads, split_by};

    /// Attention in f16: heads, queries, keys, and elements of a row.
    fn attention([heads, queries, keys, deep]: [u32; 4]) -> String {
        let of = |n: u32| format!("torch.randn({heads}, {n}, {deep}, dtype=torch.float16)");
        format!("torch.nn.functional.scaled_dot_product_attention({}, {1}, {1})", of(queries), of(keys))
    }

    #[test]
    fn attention_of_one_row_is_two_kernels() {
        let (_, plan) = plan_for_threads(&attention([32, 1, 4096, 128]));
        assert_eq!(plan.steps.len(), 1);
        let (out, log) = split_by(RULE.run, &plan, &gpu(&[]));
        assert_eq!(log.applied, ["k_attention: 8 parts of 512 keys"]);
        let out = out.unwrap();
        let [first, second] = [0, 1].map(|at: usize| print(&out.steps[at].kernel, Dialect::Loop));
        for line in [
            "loop kernel k_attention_parts(",
            "for part in 0..8: free\n",
            "for key in 0..512: serial stream ",
            "store dot_parts[part*4096 + b*128 + n_2]",
            " where n_2 == 0",
        ] {
            assert!(first.contains(line), "{line}{first}");
        }
        assert!(second.starts_with("loop kernel k_attention("), "{second}");
        assert_eq!(second.matches("for part in 0..8: reduce").count(), 1, "{second}");
        // Its blocks are enough now.
        assert!(split_by(RULE.run, &out, &gpu(&[])).0.is_none());
    }

    /// The matrix unit's tiles, where one row is used, are worth it only where nothing but copies fills them.
    #[test]
    fn other_rows_go_through_their_keys_three_times() {
        let kernels = |text: &str| plan_for_threads(text).1.steps.len();
        let one = attention([32, 1, 512, 64]);
        assert_eq!(kernels(&one), 1);
        let two = "torch.cat([torch.randn(32, 511, 64, dtype=torch.float16), torch.randn(32, 1, 64, dtype=torch.float16)], 1)";
        let keys = "torch.randn(32, 512, 64, dtype=torch.float16)";
        let of_two = one.replace(&format!("{keys}, {keys}"), &format!("k, {keys}"));
        assert_ne!(of_two, one);
        assert_eq!(kernels(&format!("k = {two}; {of_two}")), 3);
        // Keys that the model returns are stored.
        assert_eq!(kernels(&format!("k = {two}; ({of_two}, k)")), 2);
        for other in [attention([32, 1, 512, 40]), one.replace("float16", "float32"), one.replace("512", "B")] {
            assert!(kernels(&other) >= 3, "{other}");
        }
    }

    #[test]
    fn parts_are_whole_stretches_where_they_can_be() {
        let parts = |heads: u32, keys: u32, knobs: &[&str]| {
            let (_, plan) = plan_for_threads(&attention([heads, 1, keys, 64]));
            split_by(RULE.run, &plan, &gpu(knobs)).1.applied.join(", ")
        };
        assert_eq!(parts(32, 5120, &[]), "k_attention: 8 parts of 640 keys");
        assert_eq!(parts(32, 1000, &["split_k=3"]), "k_attention: 3 parts of 384 keys");
        assert_eq!(parts(8, 4097, &["split_k=2"]), "k_attention: 2 parts of 2112 keys");
    }

    #[test]
    fn others_say_why() {
        for (extents, knobs, why) in [
            ([256, 1, 4096, 128], &[][..], "it has 256 blocks for 132 multiprocessors"),
            ([32, 1, 64, 128], &[], "its 64 keys are one stretch"),
            ([32, 64, 4096, 128], &[], "it has more rows than 16 (MOST_ROWS), or only the launch knows how many"),
            ([32, 1, 4096, 128], &["split_k=1"], "knob off"),
        ] {
            let (_, plan) = plan_for_threads(&attention(extents));
            let (out, log) = split_by(RULE.run, &plan, &gpu(knobs));
            assert!(out.is_none(), "{extents:?}");
            assert!(log.skipped.iter().any(|(_, w)| w == why), "{extents:?}: {:?}", log.skipped);
        }
        let (_, plan) = plan_for_threads(&attention([32, 4, 128, 128]));
        let (out, log) = split_by(RULE.run, &plan, &gpu(&[]));
        let [(_, why)] = &log.skipped[..] else { panic!("{:?}", log.skipped) };
        assert!(out.is_none() && why.contains("with the kernel that joins them"), "{why}");
    }
}
