//! `fold_columns`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{Stride, stride};
use crate::tile::edit::const_trip;
use crate::tile::heuristics::fold_columns::{BUSY, LEAST_EACH, MOST_WARPS, WARPS};
use crate::tile::heuristics::named;
use crate::tile::primitives::bind::{To, spread};
use crate::tile::primitives::{LoopRef, Names, Script, Step};
use crate::tile::rows::{self, ReducedRows};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "fold_columns",
    doc: "\
Gives neighbouring columns that are folded to the lanes of warps: what lies side by side is read at once. Each warp of a block folds
every so many'th row, and the first one combines what all have, in their order.

```text
for j in 0..4096: free                           for b in 0..128: free block(x)
  local s = 0.0                                    local s_parts: f32[8, 32] shared
  for k in 0..3584: reduce combine add(s)          for t in 0..256: free thread
    s <- x[k, j] + s                                 local s_part = 0.0
  y[j] = s                              -->          for e in 0..448: reduce
                                                       s_part <- x[e*8 + t//32, b*32 + t%32] + s_part
                                                     s_parts[t//32, t%32] = s_part
                                                   for t in 0..32: free thread
                                                     local s = 0.0
                                                     for r in 0..8: reduce
                                                       s <- s_parts[r, t] + s
                                                     y[b*32 + t] = s
```

A block has the more warps the fewer columns there are.

Refuses kernels that do more than one reduction, rows that lie side by side along the reduction, fewer columns than a warp has lanes,
and short reductions.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let rows = ReducedRows::of(p, ctx)?;
    let mut script = Script::new(p, ctx, log);
    let done = Columns::of(&rows, ctx).and_then(|columns| {
        let warps = columns.warps(ctx);
        script.attempt(|script| columns.fold(script, p, warps))?;
        Ok(format!("{} columns, {warps} warps for {} of them", columns.count, columns.lanes))
    });
    script.log.described(&*p.name, done);
    script.done()
}

/// Rows whose neighbours along one of their axes lie side by side in memory.
pub(super) struct Columns<'a> {
    rows: &'a ReducedRows<'a>,
    /// That axis among the free ones.
    axis: usize,
    count: u64,
    lanes: u64,
}

impl<'a> Columns<'a> {
    pub(super) fn of(rows: &'a ReducedRows<'a>, ctx: &Context) -> Result<Columns<'a>, String> {
        let lanes = u64::from(ctx.target.axes.lanes);
        if rows.length < LEAST_EACH * WARPS {
            let [each, warps] = [named!(LEAST_EACH), named!(WARPS)].map(|n| n.to_string());
            return Err(format!("it folds {} elements, fewer than {each} for each of {warps} warps", rows.length));
        }
        let varying = BTreeSet::new();
        let inside = walk::stmts(&rows.reduce.body);
        let loads: Vec<&Ix> =
            inside.filter_map(|s| if let Stmt::Load { mem, .. } = s { Some(&mem.index) } else { None }).collect();
        let k = rows.reduce.axis;
        let along = |ix: &Ix, axis| stride(ix, axis, &varying);
        if loads.iter().any(|ix| along(ix, k) == Stride::Irregular) {
            return Err("where it reads depends on what it reads".into());
        }
        let far: Vec<_> = loads.into_iter().filter(|ix| along(ix, k) == Stride::Far).collect();
        let beside = |f: &&For| {
            const_trip(f).is_some_and(|n| n >= lanes)
                && !far.is_empty()
                && far.iter().all(|ix| along(ix, f.axis) == Stride::Unit)
        };
        let at = rows.free.iter().position(beside).ok_or("no neighbours lie side by side")?;
        let count = const_trip(rows.free[at]).unwrap_or(0);
        Ok(Columns { rows, axis: at, count, lanes })
    }

    /// Blocks that the columns are for; `None` where it is known at launch only.
    pub(super) fn blocks(&self) -> Option<u64> {
        let others = self.rows.free.iter().enumerate().filter(|(at, _)| *at != self.axis);
        others.map(|(_, f)| f).try_fold(self.count.div_ceil(self.lanes), |n, f| n.checked_mul(const_trip(f)?))
    }

    fn warps(&self, ctx: &Context) -> u64 {
        let wanted = BUSY * u64::from(ctx.target.axes.workers);
        let most =
            MOST_WARPS.min(u64::from(ctx.target.axes.threads) / self.lanes).min(self.rows.length / LEAST_EACH).max(1);
        let enough = |warps: &u64| self.blocks().is_none_or(|n| n * warps * self.lanes >= wanted);
        let counts = std::iter::successors(Some(WARPS), |n| Some(n * 2)).take_while(|n| *n <= most);
        let mut last = WARPS.min(1 << most.ilog2());
        for warps in counts {
            last = warps;
            if enough(&warps) {
                break;
            }
        }
        last
    }

    fn fold(&self, script: &mut Script<'_>, p: &Kernel, warps: u64) -> Result<(), String> {
        let names = Names::of(p);
        let named = |f: &For| names.name(f).ok_or("a loop has no name");
        let mut loops = self.rows.free.iter().map(|f| named(f)).collect::<Result<Vec<LoopRef>, _>>()?;
        let at = loops.remove(self.axis);
        if self.axis < loops.len() {
            script.step(Step::Reorder { loops: loops.iter().copied().chain([at]).collect() })?;
        }
        let names = ["b", "t"].map(String::from);
        let groups = script.step(Step::Split { at, size: self.lanes as u32, names, guard: true })?;
        loops.extend(groups.first());
        rows::bind_blocks(script, loops)?;
        let names = ["r", "e"].map(String::from).into();
        let at = named(self.rows.reduce)?;
        script.step(Step::RfactorInTurn { at, parts: warps as u32, size: 1, names })?;
        let loops = spread::nests(&script.kernel).into_iter().map(|(at, _)| at).collect();
        script.step(Step::Bind { loops, to: To::Shared((self.lanes * warps) as u32) })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const COLUMNS: &str = r#"loop kernel k(x: ptr f32, y: ptr f32) open:
  for i in 0..3: free
    for j in 0..100: free
      local s: f32
      s = 1.0
      for k in 0..70: reduce combine add(s) from -0.0
        v: f32 = load x[i*7000 + k*100 + j]
        a: f32 = s
        b: f32 = v + a
        s = b
      c: f32 = s
      store y[i*100 + j] = c
"#;

    #[test]
    fn lanes_have_columns_and_warps_rows() {
        let (out, log) = apply("fold_columns", &kernel(COLUMNS), &gpu(&[]));
        assert_eq!(log.applied, ["k: 100 columns, 16 warps for 32 of them"]);
        let want = r#"tile kernel k(x: ptr f32, y: ptr f32) open:
  for b in 0..12: free block(x)
    local s_parts: f32[16, 32] shared
    for t in 0..512: free thread
      mine: i1 = test b%4*32 + t%32 < 100
      if mine:
        local s_part: f32
        s_part = -0.0
        for e in 0..(85 - t//32)//16: reduce
          v: f32 = load x[b//4*7000 + e*1600 + t//32*100 + b%4*32 + t%32]
          a: f32 = s_part
          b_1: f32 = v + a
          s_part = b_1
        s_part_1: f32 = s_part
        s_parts[t//32, t%32] = s_part_1
    for t_1 in 0..32: free thread
      mine_1: i1 = test b%4*32 + t_1 < 100
      if mine_1:
        local s: f32
        s = 1.0
        for r in 0..16: reduce combine add(s) from -0.0
          part: f32 = s_parts[r, t_1]
          acc: f32 = s
          v_1: f32 = part + acc
          s = v_1
        c: f32 = s
        store y[b//4*100 + b%4*32 + t_1] = c
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn others_say_why() {
        for (from, to, why) in [
            ("k*100 + j", "j*70 + k", "k: no neighbours lie side by side"),
            ("0..100", "0..20", "k: no neighbours lie side by side"),
        ] {
            assert_eq!(refusals("fold_columns", &COLUMNS.replace(from, to), &gpu(&[])), [why], "{to}");
        }
    }
}
