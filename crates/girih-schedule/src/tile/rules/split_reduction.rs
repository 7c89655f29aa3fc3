//! `split_reduction`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::model::Plan;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::cost::{self, Cost};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::cost::SECOND;
use crate::tile::heuristics::named;
use crate::tile::heuristics::split_reduction::{BLOCKS, BLOCKS_OF_CORES, SHORTEST, SHORTEST_COLUMN, SHORTEST_OF_CORES};
use crate::tile::primitives::model::{self, Act};
use crate::tile::primitives::{self, names_of};
use crate::tile::rows::ReducedRows;
use crate::tile::rules::cluster_rows;
use crate::tile::rules::fold_columns::Columns;
use crate::tile::target::Capability;

pub const RULE: Rule<Plan, Context> = Rule {
    name: "split_reduction",
    doc: "\
Splits the rows of a reduction into parts if there are fewer rows than multiprocessors, or cores: a block folds each part, and a
second kernel folds the partial results and does the rest of the row.

```text
for i in 0..4: free                              for i: for part in 0..64: free
  local s = 0.0                                    local s = 0.0
  for k in 0..1000000: reduce combine add(s) -->   for k in 0..15625: reduce combine add(s)
    s <- x[i, k] + s                                 s <- x[i, part*15625 + k] + s
  store out[i] = s/1000000.0                       store s_parts[i, part] = s

                                                 for i in 0..4: free
                                                   local s = 0.0
                                                   for part in 0..64: reduce combine add(s)
                                                     s <- s_parts[i, part] + s
                                                   store out[i] = s/1000000.0
```

On a GPU, the estimate decides the number of parts: it counts what one multiprocessor fetches and computes in a second, and a few
microseconds for the second kernel. Rows for which clusters of blocks take less are left to `cluster_rows`. On a CPU, there are
enough parts for 64 blocks of 64 Ki elements or more, whatever the number of threads: the order of a sum does not depend on it.

Knob: `split_rows` (the number of parts; 1 turns the rule off).

Refuses rows whose number or length only the launch knows, reductions in a fixed order, and kernels that do more than reduce rows
and store results of that; on a CPU also rows whose elements are not contiguous.
",
    run: |plan, ctx, log| primitives::run(plan, ctx, log, policy),
};

/// Elements of a part of a row. Long parts begin where threads may read several elements at once.
fn each(length: u64, parts: u64) -> u64 {
    let each = length.div_ceil(parts.clamp(1, length.max(1))).max(1);
    if each < SHORTEST { each } else { each.next_multiple_of(SHORTEST) }
}

fn policy(plan: &Plan, ctx: &Context, log: &mut Log) -> Vec<model::Step> {
    let mut steps = vec![];
    for kernel in plan.steps.iter().map(|step| &step.kernel) {
        let Some(rows) = ReducedRows::of(kernel, ctx) else { continue };
        let site = kernel.name.to_string();
        match (Choice { kernel, ctx, rows: &rows }.parts(), names_of(kernel, &[rows.reduce]).first()) {
            (Ok((parts, why)), Some(at)) => {
                let length = each(rows.length, parts);
                log.applied(format!("{site}: {parts} parts of {length}, {why}"));
                steps.push(model::Step { kernel: site, act: Act::SplitK { at: *at, length: length as u32 } });
            }
            (Ok(_), None) => {}
            (Err(why), _) => log.skipped(site, why),
        }
    }
    steps
}

/// The rows whose parts are chosen.
struct Choice<'a> {
    kernel: &'a Kernel,
    ctx: &'a Context,
    rows: &'a ReducedRows<'a>,
}

impl Choice<'_> {
    /// How many parts rows are cut into, and what that takes beside whole rows.
    fn parts(&self) -> Result<(u64, String), String> {
        let Choice { kernel, ctx, rows: all } = *self;
        let rows = all.free.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
        let rows = rows.ok_or("how many rows there are is known at launch only")?;
        // No part is empty.
        let fit = |parts: u64| all.length.div_ceil(each(all.length, parts));
        match ctx.knobs.split_rows {
            Some(1) => return Err("knob off".into()),
            Some(parts) if fit(parts.into()) > 1 => return Ok((fit(parts.into()), "as asked for".into())),
            Some(_) => return Err("its rows are one part".into()),
            None => {}
        }
        if !ctx.target.has(Capability::Threads) {
            if !self.runs_along() {
                return Err("its elements lie apart".into());
            }
            let parts = fit((BLOCKS_OF_CORES / rows.max(1)).min(all.length / SHORTEST_OF_CORES));
            return if parts > 1 {
                Ok((parts, format!("for {rows} rows")))
            } else {
                Err(format!(
                    "{rows} rows of {} are many, or short: {} for a block",
                    all.length,
                    named!(SHORTEST_OF_CORES)
                ))
            };
        }
        let workers = u64::from(ctx.target.axes.workers);
        let columns = Columns::of(kernel, all, ctx).ok().and_then(|columns| columns.blocks());
        let blocks = columns.unwrap_or(rows);
        if blocks * 2 > workers {
            return Err(format!("its {rows} rows have blocks for {workers} multiprocessors"));
        }
        if columns.is_some() {
            let parts = fit((2 * workers / blocks).min(all.length / SHORTEST_COLUMN));
            return if parts > 1 {
                Ok((parts, format!("for {blocks} blocks of columns")))
            } else {
                Err(format!("its columns have {} elements, and a part has {}", all.length, named!(SHORTEST_COLUMN)))
            };
        }
        let seconds = |parts: u64| self.seconds(rows, fit(parts));
        let whole = seconds(1).ok_or("the target says nothing of its speed")?;
        let most = (BLOCKS * workers / rows.max(1)).min(all.length / SHORTEST);
        let counts = (1..12).map(|n| 1 << n).filter(|n| *n < most).chain([most]);
        let cost = |parts: u64| Some((fit(parts), seconds(parts)? + SECOND));
        let cluster = cluster_rows::best(kernel, ctx);
        let best = counts.filter(|n| *n > 1).filter_map(cost).min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some(cluster) = cluster.filter(|c| best.is_none_or(|(_, time)| c.time <= time)) {
            return Err(cluster_rows::instead(&cluster));
        }
        match best {
            Some((parts, time)) if time < whole => {
                Ok((parts, format!("{} rather than {}", cost::time(time), cost::time(whole))))
            }
            _ => Err(format!("a block for each of its {rows} rows takes {}", cost::time(whole))),
        }
    }

    /// True if the elements that a row reads lie side by side.
    fn runs_along(&self) -> bool {
        let varying = walk::refs(&self.rows.reduce.body).vals_defined;
        self.rows.reduce.body.iter().all(|s| match s {
            Stmt::Load { mem, .. } => {
                matches!(affine::stride(&mem.index, self.rows.reduce.axis, &varying), Stride::Unit | Stride::Same)
            }
            _ => true,
        })
    }

    /// Seconds that blocks take for all parts.
    fn seconds(&self, rows: u64, parts: u64) -> Option<f64> {
        let (mut kernel, ctx) = (self.kernel.clone(), self.ctx);
        let [b, part] = ["b", "part"].map(|name| kernel.axes.push(Axis { name: name.into(), from: None }));
        let mut body = self.rows.reduce.clone();
        (body.lo, body.hi) = (Ix::Const(0), Ix::Const(each(self.rows.length, parts) as i64));
        let each = edit::block_loop(part, 1, Ix::Const(parts as i64), vec![Stmt::For(Box::new(body))]);
        let all = edit::block_loop(b, 0, Ix::Const(rows as i64), vec![each]);
        let threads = ctx.knobs.threads.into();
        let latency = cost::of_rows(&ctx.target, rows * parts, self.rows.length.div_ceil(parts), threads)?;
        Some(Cost::of_nest(&ctx.target, &all, threads)?.time().max(latency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::print::{Dialect, print};
    use crate::tile::tests::{context, gpu, plan_of, split_by};

    #[test]
    fn rows_are_folded_in_parts() {
        let (_, plan) = plan_of("torch.randn(3, 100000).mean(-1)");
        let (out, log) = split_by(RULE.run, &plan, &gpu(&["split_rows=7"]));
        assert_eq!(log.applied, ["k_mean: 7 parts of 14336, as asked for"]);
        let text: String = out.unwrap().steps.iter().map(|s| print(&s.kernel, Dialect::Loop)).collect();
        let want = r#"loop kernel k_mean_parts(x: ptr f32, sum_parts: ptr f32) open:
  for a0 in 0..3: free
    for part in 0..7: free
      local sum: f32
      sum = 0.0
      for k in 0..min(14336, 100000 - part*14336): reduce combine add(sum) from 0.0
        x_1: f32 = load x[a0*100000 + (part*14336 + k)] !"aten.mean"
        acc: f32 = sum
        v: f32 = x_1 + acc
        sum = v
      sum_1: f32 = sum
      store sum_parts[a0*7 + part] = sum_1 !"aten.mean"
"#;
        assert!(text.starts_with(want), "{text}");
        for line in ["for part in 0..7: reduce combine add(sum_1) from 0.0", "load sum_parts[a0*7 + part]"] {
            assert!(text[want.len()..].contains(line), "{text}");
        }
    }

    #[test]
    fn cores_share_few_long_rows() {
        let log = |text: &str| split_by(RULE.run, &plan_of(text).1, &context()).1;
        assert_eq!(log("torch.randn(2, 1000000).mean(-1)").applied, ["k_mean: 15 parts of 67584, for 2 rows"]);
        // As many, whatever the number of threads.
        let mut ctx = context();
        ctx.target.axes.workers = 100;
        let (_, of_many) = split_by(RULE.run, &plan_of("torch.randn(2, 1000000).mean(-1)").1, &ctx);
        assert_eq!(of_many.applied, ["k_mean: 15 parts of 67584, for 2 rows"]);
        for (text, why) in [
            (
                "torch.randn(64, 200000).sum(-1)",
                "64 rows of 200000 are many, or short: 65536 (SHORTEST_OF_CORES) for a block",
            ),
            (
                "torch.randn(2, 100000).sum(-1)",
                "2 rows of 100000 are many, or short: 65536 (SHORTEST_OF_CORES) for a block",
            ),
            ("torch.randn(1000000, 2).sum(0)", "its elements lie apart"),
        ] {
            let skipped = log(text).skipped;
            assert!(skipped.iter().any(|(_, w)| w == why), "{text}: {skipped:?}");
        }
    }

    #[test]
    fn the_estimate_decides() {
        let applied = |text: &str| split_by(RULE.run, &plan_of(text).1, &gpu(&[])).1.applied;
        for text in ["torch.randn(4, 1000000).sum(-1)", "torch.randn(5000000).max()", "torch.randn(2, 300000).mean(-1)"]
        {
            let log = applied(text);
            assert!(log.len() == 1 && log[0].contains(" parts of ") && log[0].contains(" us rather than "), "{log:?}");
        }
        for (text, why) in [
            ("torch.randn(4, 2000).sum(-1)", "a block for each of its 4 rows takes"),
            ("torch.randn(400, 1000000).sum(-1)", "its 400 rows have blocks for 132 multiprocessors"),
            ("torch.randn(B, 1000000).sum(-1)", "how many rows there are is known at launch only"),
        ] {
            let (out, log) = split_by(RULE.run, &plan_of(text).1, &gpu(&[]));
            assert!(out.is_none() && log.skipped.iter().any(|(_, w)| w.contains(why)), "{text}: {:?}", log.skipped);
        }
        let (out, _) = split_by(RULE.run, &plan_of("torch.randn(4, 1000000).sum(-1)").1, &gpu(&["split_rows=1"]));
        assert!(out.is_none());
    }
}
