//! `split_reduction`

use crate::base::IdMap;
use crate::base::rule::{Log, Rule};
use crate::graph::Elem;
use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::model::{Array, ArrayId, ArrayPlace, Plan, Step};
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::cost::{self, Cost};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::named;
use crate::tile::heuristics::split_reduction::{
    BLOCKS, BLOCKS_OF_CORES, SECOND, SHORTEST, SHORTEST_COLUMN, SHORTEST_OF_CORES,
};
use crate::tile::primitives::rfactor::{Fold, Parts};
use crate::tile::primitives::split::Pieces;
use crate::tile::rows::Around;
use crate::tile::rules::fold_columns::Columns;
use crate::tile::rules::{cluster_rows, cooperative_reduce};
use crate::tile::steps::{bytes_of, set_arrays};
use crate::tile::target::Capability;
use crate::tile::tile_nest::check_bounds;

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
    run,
};

/// Elements of a part of a row. Long parts begin where threads may read several elements at once.
fn each(length: u64, parts: u64) -> u64 {
    let each = length.div_ceil(parts.clamp(1, length.max(1))).max(1);
    if each < SHORTEST { each } else { each.next_multiple_of(SHORTEST) }
}

fn run(plan: &Plan, ctx: &Context, log: &mut Log) -> Option<Plan> {
    let mut out = Plan { steps: vec![], ..plan.clone() };
    for step in &plan.steps {
        let Some(rows) = Rows::of(&step.kernel, ctx) else {
            out.steps.push(step.clone());
            continue;
        };
        let site = step.kernel.name.to_string();
        match rows.parts(&step.kernel, ctx) {
            Ok((parts, why)) => {
                log.applied(format!("{site}: {parts} parts of {}, {why}", each(rows.length, parts)));
                let split = Split { rows, parts: parts as i64 };
                let [first, second] = split.steps(step, &mut out.arrays);
                out.steps.extend([first, second]);
            }
            Err(why) => {
                log.skipped(site, why);
                out.steps.push(step.clone());
            }
        }
    }
    (out.steps.len() > plan.steps.len()).then_some(out)
}

/// The rows of a kernel that reduces each of them.
pub(super) struct Rows<'a> {
    /// Where the statement is that does it; `None` where there is one row.
    pub at: Option<usize>,
    /// The loops over the rows, outermost first; none where there is one row.
    pub free: Vec<&'a For>,
    /// The work of a row before and after its reduction.
    pub before: &'a [Stmt],
    pub reduce: &'a For,
    pub after: &'a [Stmt],
    pub fold: Fold,
    /// Elements of a row.
    pub length: u64,
}

impl<'a> Rows<'a> {
    /// `None` where a kernel does anything else.
    pub(super) fn of(kernel: &'a Kernel, ctx: &Context) -> Option<Rows<'a>> {
        let reduced = |s: &Stmt| matches!(s, Stmt::For(f) if f.kind != LoopKind::Free);
        let Around { at, free, body } = Around::of(kernel, &reduced)?;
        let mut inner = body.iter().enumerate().filter(|(_, s)| matches!(s, Stmt::For(_)));
        let (Some((n, Stmt::For(reduce))), None) = (inner.next(), inner.next()) else { return None };
        if reduce.kind != LoopKind::Reduce || cooperative_reduce::refusal(reduce, ctx.target.axes.lanes).is_some() {
            return None;
        }
        let fold = Fold::of(kernel, reduce).ok().filter(|fold| fold.dtype.bits() >= 8)?;
        let acc = fold.acc;
        let (before, after) = (&body[..n], &body[n + 1..]);
        let of_acc = |s: &Stmt| match s {
            Stmt::Local { buf } | Stmt::Write { buf, .. } => *buf == acc,
            _ => false,
        };
        let stored = |s: &Stmt| matches!(s, Stmt::Store { order: Order::Weak, .. });
        let ok = before.iter().all(|s| edit::is_pure(s) || of_acc(s))
            && before.iter().filter(|s| matches!(s, Stmt::Local { .. })).count() == 1
            && reduce.body.iter().all(|s| edit::is_pure(s) || of_acc(s))
            && after.iter().all(|s| edit::is_pure(s) || stored(s))
            && free.iter().all(|f| f.lo.is_const(0) && f.place == Place::None)
            && check_bounds(&free).is_ok();
        let length = const_trip(reduce).filter(|_| ok)?;
        Some(Rows { at, free, before, reduce, after, fold, length })
    }

    /// How many parts rows are cut into, and what that takes beside whole rows.
    fn parts(&self, kernel: &Kernel, ctx: &Context) -> Result<(u64, String), String> {
        let rows = self.free.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
        let rows = rows.ok_or("how many rows there are is known at launch only")?;
        // No part is empty.
        let fit = |parts: u64| self.length.div_ceil(each(self.length, parts));
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
            let parts = fit((BLOCKS_OF_CORES / rows.max(1)).min(self.length / SHORTEST_OF_CORES));
            return if parts > 1 {
                Ok((parts, format!("for {rows} rows")))
            } else {
                Err(format!(
                    "{rows} rows of {} are many, or short: {} for a block",
                    self.length,
                    named!(SHORTEST_OF_CORES)
                ))
            };
        }
        let workers = u64::from(ctx.target.axes.workers);
        let columns = Columns::of(self, ctx).ok().and_then(|columns| columns.blocks());
        let blocks = columns.unwrap_or(rows);
        if blocks * 2 > workers {
            return Err(format!("its {rows} rows have blocks for {workers} multiprocessors"));
        }
        if columns.is_some() {
            let parts = fit((2 * workers / blocks).min(self.length / SHORTEST_COLUMN));
            return if parts > 1 {
                Ok((parts, format!("for {blocks} blocks of columns")))
            } else {
                Err(format!("its columns have {} elements, and a part has {}", self.length, named!(SHORTEST_COLUMN)))
            };
        }
        let seconds = |parts: u64| self.seconds(kernel, ctx, rows, fit(parts));
        let whole = seconds(1).ok_or("the target says nothing of its speed")?;
        let most = (BLOCKS * workers / rows.max(1)).min(self.length / SHORTEST);
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
        let varying = walk::refs(&self.reduce.body).vals_defined;
        self.reduce.body.iter().all(|s| match s {
            Stmt::Load { mem, .. } => {
                matches!(affine::stride(&mem.index, self.reduce.axis, &varying), Stride::Unit | Stride::Same)
            }
            _ => true,
        })
    }

    /// Seconds that blocks take for all parts.
    fn seconds(&self, kernel: &Kernel, ctx: &Context, rows: u64, parts: u64) -> Option<f64> {
        let mut kernel = kernel.clone();
        let [b, part] = ["b", "part"].map(|name| kernel.axes.push(Axis { name: name.into(), from: None }));
        let mut body = self.reduce.clone();
        (body.lo, body.hi) = (Ix::Const(0), Ix::Const(each(self.length, parts) as i64));
        let each = edit::block_loop(part, 1, Ix::Const(parts as i64), vec![Stmt::For(Box::new(body))]);
        let all = edit::block_loop(b, 0, Ix::Const(rows as i64), vec![each]);
        let threads = ctx.knobs.threads.into();
        let latency = cost::of_rows(&ctx.target, rows * parts, self.length.div_ceil(parts), threads)?;
        Some(Cost::of_nest(&ctx.target, &all, threads)?.time().max(latency))
    }
}

/// Rows that are cut into parts.
struct Split<'a> {
    rows: Rows<'a>,
    parts: i64,
}

impl Split<'_> {
    /// The step that folds the parts, and the one that folds what they leave and does what follows.
    fn steps(&self, step: &Step, arrays: &mut IdMap<ArrayId, Array>) -> [Step; 2] {
        let Rows { fold: Fold { acc, dtype, .. }, ref free, .. } = self.rows;
        let name = format!("{}_parts", step.kernel.bufs[acc].name);
        let extents = free.iter().map(|f| f.hi.clone());
        let parts = arrays.push(Array {
            name: name.clone(),
            elem: Elem::of(dtype),
            shape: extents.chain([Ix::Const(self.parts)]).collect(),
            place: ArrayPlace::Temp,
            at_load: false,
        });
        let (mut first, mut second) = (step.clone(), step.clone());
        let base = |k: &mut Kernel| k.vals.push(Val { ty: Ty::Ptr(dtype), name: name.clone() });
        let bases = [base(&mut first.kernel), base(&mut second.kernel)];
        self.first(&mut first.kernel, bases[0]);
        self.second(&mut second.kernel, bases[1]);
        set_arrays(&mut first, &[(bases[0], parts)], arrays);
        set_arrays(&mut second, &[(bases[1], parts)], arrays);
        first.writes = vec![parts];
        second.reads.push(parts);
        second.flops = Ix::Const(0);
        for s in [&mut first, &mut second] {
            s.bytes = bytes_of(s, arrays);
        }
        [first, second]
    }

    fn first(&self, kernel: &mut Kernel, base: ValId) {
        let Rows { fold, length, reduce, .. } = self.rows;
        let part = kernel.axes.push(Axis { name: "part".into(), from: None });
        let pieces = Pieces::of(reduce, each(length, self.parts as u64) as i64);
        let at = pieces.at(part, reduce.axis);
        let mut one = For { hi: pieces.length(part), ..reduce.clone() };
        walk::subst_axes(&mut one.body, &mut |a| (a == reduce.axis).then(|| at.clone()));
        let kept = self.rows.before.iter().filter(|s| edit::is_pure(s)).cloned();
        let to = self.parts_at(kernel, base, part);
        let body = kept.chain(fold.into_part(kernel, fold.acc, Stmt::For(Box::new(one)), to)).collect();
        let body = edit::free_loop(part, Ix::Const(self.parts), body);
        self.put(kernel, body, edit::is_pure);
        kernel.name += "_parts";
    }

    fn second(&self, kernel: &mut Kernel, base: ValId) {
        let Rows { fold, reduce, before, after, .. } = &self.rows;
        let part = kernel.axes.push(Axis { name: "part".into(), from: None });
        let from = self.parts_at(kernel, base, part);
        let body = fold.add_part(kernel, vec![], from);
        let fold = edit::loop_with(part, Ix::Const(self.parts), body, |f| {
            f.kind = LoopKind::Reduce;
            f.combine = reduce.combine.clone();
        });
        let row: Vec<Stmt> = before.iter().cloned().chain([fold]).chain(after.iter().cloned()).collect();
        match self.rows.at {
            None => kernel.body = row,
            Some(at) => kernel.body[at] = self.around(row),
        }
        edit::drop_unused(&mut kernel.body);
    }

    /// Makes a row's loop over its parts what the kernel does, beside the statements that `keep` keeps.
    fn put(&self, kernel: &mut Kernel, body: Stmt, keep: impl Fn(&Stmt) -> bool) {
        match self.rows.at {
            None => kernel.body = vec![body],
            Some(at) => {
                kernel.body.truncate(at);
                kernel.body.retain(keep);
                kernel.body.push(self.around(vec![body]));
            }
        }
        edit::drop_unused(&mut kernel.body);
    }

    /// The loops over the rows around what is done in one.
    fn around(&self, row: Vec<Stmt>) -> Stmt {
        let mut body = row;
        for f in self.rows.free.iter().rev() {
            let (axis, hi) = (f.axis, f.hi.clone());
            body = vec![edit::free_loop(axis, hi, body)];
        }
        body.remove(0)
    }

    /// A part of the row at hand.
    fn parts_at(&self, kernel: &Kernel, base: ValId, part: AxisId) -> Parts {
        let mem = Mem { base, index: self.index(kernel, part), elem: self.rows.fold.dtype };
        Parts::Array { mem, site: self.site() }
    }

    /// Where a part of the row at hand lies.
    fn index(&self, kernel: &Kernel, part: AxisId) -> Ix {
        let mut facts = kernel.facts();
        for f in &self.rows.free {
            facts.set_axis(f.axis, &f.lo, &f.hi);
        }
        facts.set_axis(part, &Ix::Const(0), &Ix::Const(self.parts));
        let free = self.rows.free.iter();
        let row = free.fold(Ix::Const(0), |at, f| Ix::add(Ix::mul(at, f.hi.clone()), Ix::Axis(f.axis)));
        simplify(&Ix::add(Ix::mul(row, Ix::Const(self.parts)), Ix::Axis(part)), &facts)
    }

    /// The operation that the parts are of.
    fn site(&self) -> SiteId {
        let of = |s: &Stmt| match s {
            Stmt::Load { site, .. } | Stmt::Store { site, .. } => Some(*site),
            _ => None,
        };
        self.rows.reduce.body.iter().chain(self.rows.after).find_map(of).unwrap_or(SiteId(0))
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
        let (out, log) = split_by(run, &plan, &gpu(&["split_rows=7"]));
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
        let log = |text: &str| split_by(run, &plan_of(text).1, &context()).1;
        assert_eq!(log("torch.randn(2, 1000000).mean(-1)").applied, ["k_mean: 15 parts of 67584, for 2 rows"]);
        // As many, whatever the number of threads.
        let mut ctx = context();
        ctx.target.axes.workers = 100;
        let (_, of_many) = split_by(run, &plan_of("torch.randn(2, 1000000).mean(-1)").1, &ctx);
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
        let applied = |text: &str| split_by(run, &plan_of(text).1, &gpu(&[])).1.applied;
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
            let (out, log) = split_by(run, &plan_of(text).1, &gpu(&[]));
            assert!(out.is_none() && log.skipped.iter().any(|(_, w)| w.contains(why)), "{text}: {:?}", log.skipped);
        }
        let (out, _) = split_by(run, &plan_of("torch.randn(4, 1000000).sum(-1)").1, &gpu(&["split_rows=1"]));
        assert!(out.is_none());
    }
}
