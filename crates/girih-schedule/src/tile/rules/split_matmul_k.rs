//! `split_matmul_k`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::model::Plan;
use crate::tile::Context;
use crate::tile::blocking::{Blocks, Extents, Types, blocks_of};
use crate::tile::contraction::num_type;
use crate::tile::cost::{self, Cost, Product};
use crate::tile::heuristics::blocking::ALIKE;
use crate::tile::heuristics::cost::SECOND;
use crate::tile::heuristics::cost::{FETCHED, LATENCY};
use crate::tile::heuristics::split_matmul_k::{AHEAD, MASKED};
use crate::tile::matrix;
use crate::tile::primitives::model::{self, Act, split_k::Split};
use crate::tile::primitives::{self, names_of};
use crate::tile::rules::site_of;
use crate::tile::rules::tileify::in_memory;
use crate::tile::tile_nest::{OpenNest, Side};

pub const RULE: Rule<Plan, Context> = Rule {
    name: "split_matmul_k",
    doc: "\
Splits the sum of a contraction that has too few blocks for the multiprocessors into parts, which different blocks compute. A
second kernel adds the parts, the first one first, and applies the operations that follow the sum.

```text
for i in 0..32: free                             for part in 0..8: free
  for j in 0..512: free                            for i: for j: free
    acc = 0                                          acc = 0
    for k in 0..3584: reduce contraction   -->       for k in 0..448: reduce contraction
      acc <- fma(x[i, k], w[j, k], acc)                acc <- fma(x[i, part*448 + k], w[j, part*448 + k], acc)
    store out[i*512 + j] = acc + b[j]                store acc_parts[part*16384 + i*512 + j] = acc

                                                 for i: for j: free
                                                   acc = 0
                                                   for part in 0..8: reduce
                                                     acc <- acc + acc_parts[part*16384 + i*512 + j]
                                                   store out[i*512 + j] = acc + b[j]
```

The number of parts lets all blocks run at once, and takes least time by the estimate, with the second kernel; rather one that divides
the sum into whole stretches (`tile/blocking.rs`). Otherwise the last part reads zeros past the end. Parts keep the type of the
accumulator. They are added in one order, so results are the same on every run, and the operations after the sum see all of it.

Knob: `split_k` (the number of parts; 1 turns the rule off). With it, products whose rows are known only at launch are split too.

Refuses contractions of kernels that have blocks for more than half of the multiprocessors, sums that no number of parts makes
faster, sums whose length only the launch knows, and nests that hold other loops than those of the sum.
",
    run: |plan, ctx, log| primitives::run(plan, ctx, log, policy),
};

fn policy(plan: &Plan, ctx: &Context, log: &mut Log) -> Vec<model::Step> {
    let mut steps = vec![];
    for step in &plan.steps {
        let kernel = &step.kernel;
        let all = blocks_of_all(kernel, ctx);
        for s in &kernel.body {
            let Some(nest) = OpenNest::of(s) else { continue };
            let site = format!("{}, {}", kernel.name, site_of(kernel, s));
            let split = nest.and_then(|nest| {
                Split::legal(step, &nest)?;
                let (parts, length) = cut(kernel, ctx, &nest, all)?;
                let name = nest.sums.first().and_then(|sum| names_of(kernel, &sum.loops[..1]).first().copied());
                Ok((name.ok_or("its sum is not in this nest")?, parts, length))
            });
            match split {
                Ok((at, parts, length)) => {
                    log.applied(format!("{site}: {parts} parts of {length}"));
                    steps.push(model::Step {
                        kernel: kernel.name.clone(),
                        act: Act::SplitK { at, length: length as u32 },
                    });
                }
                Err(why) => log.skipped(site, why),
            }
        }
    }
    steps
}

/// The blocks of a product that is not split.
struct Grid {
    size: Blocks,
    /// How many there are, where that is known.
    count: Option<u64>,
    /// Elements of the sum, and of the results.
    k: u64,
    results: u64,
    types: Types,
}

impl Grid {
    /// Seconds that the sums take in parts that run at once, each block on a multiprocessor of its own.
    fn seconds(&self, ctx: &Context, parts: u64) -> Option<f64> {
        let (target, gpu, Types { operand, acc }) = (&ctx.target, ctx.target.gpu?, self.types);
        let Blocks { bm, bn, bk } = self.size;
        let stretch = Cost::of(target, &Product { batch: 1, m: bm, n: bn, k: bk, operand, acc }, self.size)?;
        let fetched = ((bm + bn) * bk * operand.bytes()) as f64 / (FETCHED * gpu.clock);
        let latency = LATENCY / AHEAD / gpu.clock;
        let stretches =
            self.k.div_ceil(bk.max(1)).div_ceil(parts) as f64 * stretch.arithmetic.max(fetched).max(latency);
        if parts == 1 {
            return Some(stretches);
        }
        let masks = if self.k.is_multiple_of(parts * bk) { 1.0 } else { MASKED };
        let added = 2.0 * (parts * acc.bytes()) as f64 * self.results as f64 / cost::l2(target, &gpu);
        Some(stretches * masks + SECOND + added)
    }

    fn of(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>) -> Result<Grid, String> {
        let facts = kernel.facts();
        let first = nest.sums.first().ok_or("its sum is not in this nest")?;
        let roles = first.roles;
        let side = |axes: &[AxisId]| Side::of(axes, &nest.free, &facts).known();
        let k = Side::of(&roles.k, &first.loops, &facts).known().ok_or("its sum is as long as the launch says")?;
        let acc = num_type(kernel, roles.acc).ok_or("its accumulator holds addresses")?;
        let role = |a: &AxisId| roles.m.contains(a) || roles.n.contains(a);
        let batch: Vec<AxisId> = nest.free.iter().map(|f| f.axis).filter(|a| !role(a)).collect();
        let (m, n, batch) = (side(&roles.m), side(&roles.n), side(&batch));
        let operand = matrix::multiplied(ctx, first.operand(kernel).unwrap_or(acc));
        let extents = Extents { batch: batch.unwrap_or(1), m, n: n.unwrap_or(1), k };
        let types = Types { operand, acc };
        let size = blocks_of(ctx, extents, types, in_memory(kernel, ctx, nest, types));
        let of = |extent: Option<u64>, block: u64| extent.map(|n| n.div_ceil(block));
        let counts = [of(m, size.bm), of(n, size.bn), batch];
        let count = counts.into_iter().try_fold(1u64, |all, n| n.map(|n| all.saturating_mul(n)));
        let results = [m, Some(extents.n), batch].into_iter().flatten().fold(1, u64::saturating_mul);
        Ok(Grid { size, count, k, results, types })
    }
}

/// The blocks of all products of a kernel, which run side by side; a product whose number of blocks is not known does not count.
fn blocks_of_all(kernel: &Kernel, ctx: &Context) -> u64 {
    let count = |s: &Stmt| Grid::of(kernel, ctx, &OpenNest::of(s)?.ok()?).ok()?.count;
    kernel.body.iter().filter_map(count).fold(0, u64::saturating_add)
}

/// How many parts the sums of a nest are cut into, and how long each is. `all` are the blocks of its kernel.
fn cut(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>, all: u64) -> Result<(u64, u64), String> {
    let grid = Grid::of(kernel, ctx, nest)?;
    let Grid { size: Blocks { bm, bn, bk }, count, k, .. } = grid;
    let wanted = match ctx.knobs.split_k {
        Some(1) => return Err("knob off".to_string()),
        Some(parts) => u64::from(parts),
        None => {
            let blocks = count.ok_or("how many blocks it has is known at launch only")?;
            let workers = u64::from(ctx.target.axes.workers);
            let fit = workers.checked_div(all).ok_or("it has no elements")?;
            if fit < 2 {
                let beside = if all > blocks { format!(" beside {} others", all - blocks) } else { String::new() };
                return Err(format!("it has {blocks} blocks of {bm}x{bn}{beside} for {workers} multiprocessors"));
            }
            let time = |parts: u64| grid.seconds(ctx, parts);
            let one = time(1).ok_or("the target says nothing of its speed")?;
            let best = (2..=fit.min(k.div_ceil(bk.max(1)))).filter_map(|parts| Some((parts, time(parts)?)));
            let best = best
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .ok_or_else(|| format!("a sum of {k} is one stretch of {bk}"))?;
            if best.1 * (1.0 + ALIKE) >= one {
                let (one, parts) = (cost::time(one), cost::time(best.1));
                return Err(format!(
                    "it takes {one}, and {} parts take {parts} with the kernel that adds them",
                    best.0
                ));
            }
            best.0
        }
    };
    let even = k.div_ceil(wanted).max(1);
    let length = if even >= bk { even.next_multiple_of(bk) } else { even };
    match k.div_ceil(length) {
        parts @ 2.. => Ok((parts, length)),
        _ => Err(format!("a sum of {k} is one part")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::model::ArrayPlace;
    use crate::loops::print::{Dialect, print};
    use crate::tile::tests::{gpu, plan_of, split_by};

    fn split(plan: &Plan, ctx: &Context) -> (Option<Plan>, Log) {
        split_by(RULE.run, plan, ctx)
    }

    #[test]
    fn parts_and_their_sum_are_two_kernels() {
        let (_, plan) = plan_of("torch.nn.Linear(3584, 512)(torch.randn(32, 3584))");
        let (out, log) = split(&plan, &gpu(&[]));
        assert_eq!(log.applied, ["k_linear, contraction into dot: 8 parts of 448"]);
        let out = out.unwrap();
        let text: String = out.steps.iter().map(|s| print(&s.kernel, Dialect::Loop)).collect();
        let want = r#"loop kernel k_linear_parts(x: ptr f32, weight: ptr f32, dot_parts: ptr f32) open:
  for part in 0..8: free
    for i in 0..32: free
      for j in 0..512: free
        local dot: f32
        dot = 0.0
        for k in 0..448: reduce contraction m=i n=j k=k a=x_1 b=weight_1 acc=dot
          x_1: f32 = load x[i*3584 + part*448 + k] !"aten.linear"
          weight_1: f32 = load weight[j*3584 + part*448 + k] !"aten.linear"
          acc: f32 = dot
          v: f32 = fma(x_1, weight_1, acc)
          dot = v
        dot_1: f32 = dot
        store dot_parts[part*16384 + i*512 + j] = dot_1 !"aten.linear"
loop kernel k_linear(bias: ptr f32, linear: ptr f32, dot_parts: ptr f32) open:
  for i in 0..32: free
    for j in 0..512: free
      local dot: f32
      dot = 0.0
      for part in 0..8: reduce
        part_1: f32 = load dot_parts[part*16384 + i*512 + j] !"aten.linear"
        acc: f32 = dot
        v: f32 = acc + part_1
        dot = v
      dot_1: f32 = dot
      bias_1: f32 = load bias[j] !"aten.linear"
      linear_1: f32 = dot_1 + bias_1
      store linear[i*512 + j] = linear_1 !"aten.linear"
"#;
        assert_eq!(text, want);
        let [first, second] = &out.steps[..] else { panic!("{} steps", out.steps.len()) };
        assert!(split(&out, &gpu(&[])).0.is_none());
        let parts = first.writes[0];
        assert_eq!((&first.writes, second.reads.contains(&parts)), (&vec![parts], true));
        assert_eq!((&first.flops, &second.flops), (&plan.steps[0].flops, &Ix::Const(0)));
        let shape = [8, 32, 512].map(Ix::Const);
        assert_eq!((&out.arrays[parts].shape[..], out.arrays[parts].place), (&shape[..], ArrayPlace::Temp));
    }

    /// Two products of one kernel: each has parts of its own, and the work is shared out.
    #[test]
    fn products_of_one_kernel_are_split_one_by_one() {
        let text = "x = torch.randn(6, 300); (torch.nn.Linear(300, 20)(x).relu(), torch.nn.Linear(300, 12)(x))";
        let (_, plan) = plan_of(text);
        let out = split(&plan, &gpu(&["split_k=3"])).0.unwrap();
        let names: Vec<&str> = out.steps.iter().map(|s| s.kernel.name.as_str()).collect();
        let whole = &plan.steps[0].kernel.name;
        assert_eq!(names, [&format!("{whole}_parts"), &format!("{whole}_parts_2"), whole]);
        let work: Vec<&Ix> = out.steps.iter().map(|s| &s.flops).collect();
        assert_eq!(work, [&Ix::Const(2 * 6 * 20 * 300), &Ix::Const(2 * 6 * 12 * 300), &Ix::Const(0)]);
    }

    /// A row that is looked up is checked once, and before it is read.
    #[test]
    fn assertions_stay_where_they_guard() {
        let text = "torch.nn.functional.embedding(torch.randint(0, 5, (6,)), torch.randn(5, 64)) @ torch.randn(64, 8)";
        let (_, plan) = plan_of(text);
        let (out, _) = split(&plan, &gpu(&["split_k=2"]));
        let text: Vec<String> = out.unwrap().steps.iter().map(|s| print(&s.kernel, Dialect::Loop)).collect();
        let asserts = |at: usize| text[at].matches("assert").count();
        assert!(asserts(0) > 0 && asserts(1) == 0, "{text:#?}");
    }

    #[test]
    fn what_gains_nothing_is_refused() {
        let wide = "torch.nn.Linear(3584, 3584)(torch.randn(512, 3584))";
        let short = "torch.nn.Linear(100, 8)(torch.randn(8, 100))";
        let square = "torch.randn(1024, 1024).half() @ torch.randn(1024, 1024).half()";
        let rows = "torch.nn.Linear(4096, 8)(torch.randn(B, 4096))";
        let beside = "x = torch.randn(32, 2048); \
                      (torch.nn.Linear(2048, 1200)(x), torch.nn.Linear(2048, 1600)(x))";
        for (text, knobs, why) in [
            (beside, &[][..], "it has 38 blocks of 32x32 beside 50 others for 132 multiprocessors"),
            (wide, &[], "it has 224 blocks of 64x128 for 132 multiprocessors"),
            (short, &[], "it takes 404 ns, and 4 parts take 4.1 us with the kernel that adds them"),
            (rows, &[], "how many blocks it has is known at launch only"),
            (square, &[], "it takes 4.5 us, and 2 parts take 8.1 us with the kernel that adds them"),
            (short, &["split_k=1"], "knob off"),
            ("torch.randn(4, B) @ torch.randn(B, 8)", &["split_k=4"], "its sum is as long as the launch says"),
        ] {
            let (_, plan) = plan_of(text);
            let (out, log) = split(&plan, &gpu(knobs));
            assert!(out.is_none(), "{text}");
            assert!(log.skipped.iter().any(|(_, w)| w == why), "{text}: {:?}", log.skipped);
        }
        // The rule looks only at contractions.
        let (_, plan) = plan_of("torch.softmax(torch.randn(4, 4096), -1)");
        let (out, log) = split(&plan, &gpu(&["split_k=4"]));
        assert!(out.is_none() && log.skipped.is_empty());
    }
}
