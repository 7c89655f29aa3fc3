//! `fold_columns`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::affine::{Stride, stride};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::fold_columns::{
    ACCESSES, BUSY, LEAST_EACH, LEAST_LANES, MOST_PARTS, MOST_WARPS, NARROW, WARPS,
};
use crate::tile::heuristics::named;
use crate::tile::primitives::bind::{To, spread};
use crate::tile::primitives::hoist;
use crate::tile::primitives::{self, LoopRef, Names, Script, Step};
use crate::tile::rows::{self, ReducedRows};
use crate::tile::wide;

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

A block has the more warps the fewer columns there are. Elements of one and two bytes are read up to 16 bytes at a time: a lane then
folds as many neighbouring columns as an access moves, each into a register of its own, and a warp takes several rows at once.

```text
for c in 0..64: free                             for t in 0..256: free thread
  local s = 0.0                                    local s_part: f32[8] = 0.0
  for k in 0..4096: reduce combine add(s) -->      for e in 0..128: reduce
    s <- x[k, b*64 + c] + s                          local x_w: f16[8] = x[e*32 + t//8, b*64 + t%8*8 + (0..8)]
  y[b*64 + c] = s                                    for v in 0..8: unroll: s_part[v] <- x_w[v] + s_part[v]
```

Refuses kernels that do more than one reduction, rows that lie side by side along the reduction, fewer columns than a warp has lanes,
and short reductions.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let rows = ReducedRows::of(p, ctx)?;
    let mut script = Script::new(p, ctx, log);
    let done = Columns::of(p, &rows, ctx).and_then(|columns| {
        let warps = columns.warps(ctx);
        script.attempt(|script| columns.fold(script, p, warps))?;
        let each = if columns.wide > 1 { format!(", {} for a lane", columns.wide) } else { String::new() };
        Ok(format!("{} columns, {warps} warps for {} of them{each}", columns.count, columns.lanes * columns.wide))
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
    /// Lanes that have the columns of a block, and neighbouring columns of each.
    lanes: u64,
    wide: u64,
}

impl<'a> Columns<'a> {
    pub(super) fn of(p: &Kernel, rows: &'a ReducedRows<'a>, ctx: &Context) -> Result<Columns<'a>, String> {
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
        let columns = Columns { rows, axis: at, count, lanes, wide: 1 };
        let varying = walk::refs(&rows.reduce.body).vals_defined;
        let at_once = |s: &Stmt| match s {
            Stmt::Load { mem, .. } if along(&mem.index, k) == Stride::Far => {
                let narrow = mem.elem.bytes() <= NARROW;
                Some(if narrow { wide::lanes(p, ctx, s, rows.free[at].axis, count, &varying) } else { 1 })
            }
            _ => None,
        };
        let most = rows.reduce.body.iter().filter_map(at_once).min().unwrap_or(1);
        Ok(columns.widened(most, u64::from(ctx.target.axes.workers)))
    }

    /// The same columns where each lane has several, at most `most`, and few enough to leave blocks for all multiprocessors.
    fn widened(self, most: u64, workers: u64) -> Columns<'a> {
        let halves =
            |from: u64, to: u64| std::iter::successors(Some(from), |n| Some(n / 2)).take_while(move |n| *n >= to);
        let shapes = halves(self.lanes / 2, LEAST_LANES).map(|lanes| Columns { lanes, wide: most, ..self });
        let fit = shapes.filter(|c| most > 1 && c.count.is_multiple_of(c.lanes * c.wide));
        let mut last = None;
        for columns in fit {
            last = Some(columns);
            if last.as_ref().and_then(Columns::blocks).is_none_or(|n| n >= workers) {
                break;
            }
        }
        last.unwrap_or(self)
    }

    /// Blocks that the columns are for; `None` where it is known at launch only.
    pub(super) fn blocks(&self) -> Option<u64> {
        let others = self.rows.free.iter().enumerate().filter(|(at, _)| *at != self.axis);
        let own = self.count.div_ceil(self.lanes * self.wide);
        others.map(|(_, f)| f).try_fold(own, |n, f| n.checked_mul(const_trip(f)?))
    }

    fn warps(&self, ctx: &Context) -> u64 {
        let lanes = u64::from(ctx.target.axes.lanes);
        // Rows that a warp takes at once.
        let together = lanes / self.lanes;
        // A wide access has as much under way as several narrow ones.
        let wanted = BUSY * u64::from(ctx.target.axes.workers) / self.wide.div_ceil(ACCESSES);
        let most = MOST_WARPS.min(u64::from(ctx.target.axes.threads) / lanes);
        let most = most.min(self.rows.length / LEAST_EACH / together).min(MOST_PARTS / together).max(1);
        let enough = |warps: &u64| self.blocks().is_none_or(|n| n * warps * lanes >= wanted);
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
        let names = ["b", if self.wide > 1 { "c" } else { "t" }].map(String::from);
        let size = (self.lanes * self.wide) as u32;
        let groups = script.step(Step::Split { at, size, names, guard: true })?;
        loops.extend(groups.first());
        rows::bind_blocks(script, loops)?;
        let threads = warps * u64::from(script.ctx.target.axes.lanes);
        let names = ["r", "e"].map(String::from).into();
        let at = named(self.rows.reduce)?;
        script.step(Step::RfactorInTurn { at, parts: (threads / self.lanes) as u32, size: 1, names })?;
        if self.wide > 1 {
            self.fold_together(script)?;
        }
        let loops = spread::nests(&script.kernel).into_iter().map(|(at, _)| at).collect();
        script.step(Step::Bind { loops, to: To::Shared(threads as u32) })?;
        Ok(())
    }

    /// Gives each lane of the nest that folds parts its neighbouring columns, which it folds at the same time.
    fn fold_together(&self, script: &mut Script<'_>) -> Result<(), String> {
        let other = "it does more than fold columns";
        let nests = spread::nests(&script.kernel);
        let columns = nests.first().and_then(|(_, f)| edit::free_chain(f).pop()).ok_or(other)?;
        let at = Names::of(&script.kernel).name(columns).ok_or(other)?;
        let names = ["t", "v"].map(String::from);
        let made = script.step(Step::Split { at, size: self.wide as u32, names, guard: false })?;
        let [lane, column] = made[..] else { return Err(other.into()) };
        script.step(Step::Distribute { at: column })?;
        let (mut within, mut loops) = (false, vec![]);
        primitives::look(&script.kernel, &mut |at, f| {
            if within && f.is_free_unplaced() && const_trip(f) == Some(self.wide) {
                loops.push(at);
            }
            within |= at == lane;
            true
        });
        // Values that the columns have in common, such as the element of a vector that they are multiplied by, are loaded once.
        for at in &loops {
            let shared = script.find(*at).is_some_and(|f| hoist::alike(&f) > 0);
            if shared {
                script.try_step(Step::Hoist { at: *at }).ok();
            }
        }
        script.step(Step::Unroll { loops }).map(drop)
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

    /// `columns` columns of f16.
    fn narrow(columns: u32) -> String {
        let text = COLUMNS.replace("ptr f32, y", "ptr f16, y").replace("0..100", &format!("0..{columns}"));
        let text = text.replace("0..70", "0..512").replace("i*7000 + k*100", &format!("k*{columns}"));
        let text = text.replace("y[i*100 + j]", "y[j]").replace("for i in 0..3", "for i in 0..1");
        text.replace("v: f32 = load", "h: f16 = load")
            .replace("        a: f32 = s", "        v: f32 = f32(h)\n        a: f32 = s")
    }

    #[test]
    fn a_lane_has_several_narrow_columns() {
        let (out, log) = apply("fold_columns", &kernel(&narrow(4096)), &gpu(&[]));
        assert_eq!(log.applied, ["k: 4096 columns, 8 warps for 32 of them, 8 for a lane"]);
        let made = text(&out);
        for line in [
            "    for t in 0..256: free thread\n      local s_part: f32[8]\n      for v in 0..8: free unroll\n        s_part[v] = -0.0\n",
            "      for e in 0..8: reduce\n        for v_1 in 0..8: free unroll\n          h: f16 = load x[",
        ] {
            assert!(made.contains(line), "{line}{made}");
        }
        // Enough blocks for all multiprocessors have wider rows; columns that do not divide are taken one by one.
        let applied = |columns: u32| apply("fold_columns", &kernel(&narrow(columns)), &gpu(&[])).1.applied.join(", ");
        assert_eq!(applied(65536), "k: 65536 columns, 8 warps for 128 of them, 8 for a lane");
        assert_eq!(applied(4100), "k: 4100 columns, 32 warps for 32 of them");
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
