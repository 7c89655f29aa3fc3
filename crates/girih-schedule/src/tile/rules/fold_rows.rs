//! `fold_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::const_trip;
use crate::tile::heuristics::fold_rows::{LEAST_LANES, LEAST_ROWS, LONGEST};
use crate::tile::heuristics::named;
use crate::tile::primitives::bind::To;
use crate::tile::primitives::{self, LoopRef, Names, Script, Step};
use crate::tile::rows::ReducedRows;
use crate::tile::wide;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "fold_rows",
    doc: "\
Gives each of many short rows that are folded to some lanes of a warp, so that a block has several: each lane folds a part, read in
wide accesses, and the lanes exchange what they have.

```text
for i in 0..524288: free                         for b in 0..32768: free block(x)
  local s = 0.0                                    local s_parts: f32[256] private
  for k in 0..128: reduce combine add(s)           for t in 0..256: free thread
    s <- x[i, k] + s                                 local s_part = 0.0
  y[i] = s                              -->          for v in 0..8: reduce unroll
                                                       s_part <- x[b*16 + t//16, t%16*8 + v] + s_part
                                                     s_parts[t] = s_part
                                                   for t in 0..256: free thread
                                                     local s = 0.0
                                                     for q in 0..16: reduce lanes combine add(s) from 0.0 x 16
                                                       s <- s_parts[t//16*16 + q] + s
                                                     y[b*16 + t//16] = s where t%16 == 0
```

Refuses kernels that do more than one reduction, rows that are not read in wide accesses, long or few rows, and numbers of rows that
leave a block with a part of them.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let rows = ReducedRows::of(p, ctx)?;
    let mut script = Script::new(p, ctx, log);
    let done = Short::of(p, &rows, ctx).and_then(|short| {
        script.attempt(|script| short.fold(script, p))?;
        Ok(format!("{} rows for a block, {} lanes for each", short.together, short.lanes))
    });
    script.log.described(&*p.name, done);
    script.done()
}

struct Short<'a> {
    rows: &'a ReducedRows<'a>,
    /// Lanes of a row, and elements that each takes at once.
    lanes: u64,
    wide: u64,
    /// Rows of a block.
    together: u64,
}

impl<'a> Short<'a> {
    fn of(p: &Kernel, rows: &'a ReducedRows<'a>, ctx: &Context) -> Result<Short<'a>, String> {
        let count = rows.free.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
        let count = count.ok_or("how many rows there are is known at launch only")?;
        if rows.length > LONGEST {
            return Err(format!("its rows have {} elements, more than {}", rows.length, named!(LONGEST)));
        }
        let workers = u64::from(ctx.target.axes.workers);
        if count < LEAST_ROWS * workers {
            return Err(format!(
                "it has {count} rows, fewer than {} for each of {workers} multiprocessors",
                named!(LEAST_ROWS)
            ));
        }
        let f = rows.reduce;
        if !f.lo.is_const(0) {
            return Err("its rows do not begin at 0".into());
        }
        let varying = walk::refs(&f.body).vals_defined;
        let loads = f.body.iter().filter(|s| matches!(s, Stmt::Load { .. }));
        let wide = loads.map(|s| wide::lanes(p, ctx, s, f.axis, rows.length, &varying)).filter(|n| *n > 1).min();
        let most = wide.ok_or("it is not read in wide accesses")?;
        let warp = u64::from(ctx.target.axes.lanes);
        let fits = |lanes: &u64, wide: u64| rows.length.is_multiple_of(lanes * wide);
        let powers =
            |from: u64, to: u64| std::iter::successors(Some(from), |n| Some(n / 2)).take_while(move |n| *n >= to);
        let found = powers(most, 2).find_map(|wide| Some((powers(warp, LEAST_LANES).find(|n| fits(n, wide))?, wide)));
        let (lanes, wide) = found.ok_or_else(|| {
            format!("{} elements are not shared alike by {} lanes or more", rows.length, named!(LEAST_LANES))
        })?;
        let together = powers(u64::from(ctx.knobs.threads).next_power_of_two() / lanes, 1)
            .find(|n| count.is_multiple_of(*n) && (n * lanes).is_multiple_of(warp))
            .ok_or_else(|| format!("{count} rows leave a block with a part of them"))?;
        Ok(Short { rows, lanes, wide, together })
    }

    fn fold(&self, script: &mut Script<'_>, p: &Kernel) -> Result<(), String> {
        let at = Names::of(p).name(self.rows.reduce).ok_or("the reduction has no name")?;
        let mut rows = primitives::names_of(p, &self.rows.free);
        if rows.len() > 1 {
            rows = script.step(Step::Fuse { loops: rows, name: "n".into() })?;
        }
        let names = ["b", "r"].map(String::from);
        let row = *rows.first().ok_or("it has one row")?;
        let blocks = script.step(Step::Split { at: row, size: self.together as u32, names, guard: false })?;
        script.step(Step::Bind { loops: blocks[..1].to_vec(), to: To::Block(0) })?;
        let names = ["q", "e", "v"].map(String::from).into();
        let made = script.step(Step::RfactorInTurn { at, parts: self.lanes as u32, size: self.wide as u32, names })?;
        script.step(Step::Unroll { loops: made[2..3].to_vec() })?;
        let adds = |at: &&LoopRef| script.find(**at).is_some_and(|f| f.combine.is_some());
        let loops = made.iter().filter(adds).copied().collect();
        script.step(Step::Bind { loops, to: To::Lanes })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const ROWS: &str = r#"loop kernel k(x: ptr f16, y: ptr f32) open:
  for i in 0..64: free
    for j in 0..100: free
      local s: f32
      s = 0.0
      for k in 0..128: reduce combine add(s) from -0.0
        v: f16 = load x[i*12800 + j*128 + k]
        w: f32 = f32(v)
        a: f32 = s
        b: f32 = w + a
        s = b
      c: f32 = s
      store y[i*100 + j] = c
"#;

    #[test]
    fn a_block_has_several_rows() {
        let (out, log) = apply("fold_rows", &kernel(ROWS), &gpu(&[]));
        assert_eq!(log.applied, ["k: 16 rows for a block, 16 lanes for each"]);
        let made = text(&out);
        for line in [
            "  for b in 0..400: free block(x)\n    local s_parts: f32[256] private\n",
            "        for v in 0..8: reduce unroll\n",
            "      for q in 0..16: reduce lanes combine add(s) from -0.0 x 16\n        part: f32 = s_parts[t_1//16*16 + q]\n",
            "      store y[b*16 + t_1//16] = c where t_1%16 == 0\n",
        ] {
            assert!(made.contains(line), "{line}{made}");
        }
    }

    #[test]
    fn others_say_why() {
        for (from, to, why) in [
            ("0..64", "0..2", "k: it has 200 rows, fewer than 16 (LEAST_ROWS) for each of 132 multiprocessors"),
            ("0..128", "0..2048", "k: its rows have 2048 elements, more than 1024 (LONGEST)"),
            ("0..128", "0..121", "k: it is not read in wide accesses"),
            ("j*128 + k", "j + k*100", "k: it is not read in wide accesses"),
        ] {
            assert_eq!(refusals("fold_rows", &ROWS.replace(from, to), &gpu(&[])), [why], "{to}");
        }
    }
}
