//! `fission_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::refs;
use crate::tile::Context;
use crate::tile::affine::{self, MOST_APART};
use crate::tile::contraction::prev_power;
use crate::tile::edit;
use crate::tile::heuristics::fission_rows::{GROUP, MOST};
use crate::tile::heuristics::named;
use crate::tile::primitives::{self, Script, Step, fission};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "fission_rows",
    doc: "\
Goes through short rows a few at a time: each loop of a row runs for all rows of a group before the next loop does.

```text
for r in 0..32: free                             for ro in 0..8: free
  for k in 0..128: reduce combine max(m)           for r in 0..4: free
    m <- max(x[r, k], m)                             for k in 0..128: reduce combine max(m)
  for k in 0..128: reduce combine add(s)    -->        m <- max(x[ro*4 + r, k], m)
    e[k] = exp(x[r, k] - m)                          m_of[r] = m
    s <- e[k] + s                                  for r in 0..4: free
  for k in 0..128: free                              for k in 0..128: reduce combine add(s)
    y[r, k] = e[k] / s                                 ...
                                                   for r in 0..4: free
                                                     for k in 0..128: free
                                                       y[ro*4 + r, k] = e[r, k] / s_of[r]
```

A fold ends with steps that wait for each other: across the lanes of a vector, then a division. The loops of other rows do not wait, so
a processor computes them meanwhile. Memory is walked in the order of rows, as before.

Refuses rows that are long or whose length is not known, few rows, rows whose elements lie apart, as those of columns do, and rows that
hold anything but innermost loops, loads, arithmetic and stores.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let mut found = vec![];
    primitives::look(p, &mut |at, f| {
        let folds = |f: &&For| f.combine.is_some();
        let Some(loops) = fission::loops_in(f).ok().filter(|loops| loops.iter().any(folds)) else { return true };
        found.push((axis_site(p, f.axis), p.axes[f.axis].name.clone(), at, group(f, &loops)));
        false
    });
    let mut script = Script::new(p, ctx, log);
    // Loops behind one keep their names where it is replaced, and not the other way round.
    let mut said = vec![];
    for (site, name, at, group) in found.into_iter().rev() {
        let made = group.and_then(|(rows, together)| {
            script.attempt(|script| {
                let mut at = at;
                if rows > together {
                    let names = [format!("{name}o"), name.clone()];
                    let split = Step::Split { at, size: together as u32, names, guard: false };
                    at = *script.step(split)?.last().ok_or("a loop vanished")?;
                }
                script.step(Step::Fission { at }).map(drop)
            })
        });
        said.push((site, made));
    }
    for (site, made) in said.into_iter().rev() {
        script.log.outcome(site, made);
    }
    script.done()
}

/// How many rows there are at most, and how many of them go together.
fn group(rows: &For, loops: &[&For]) -> Result<(u64, u64), String> {
    let n = edit::most_trips(rows).ok_or("how many rows there are is not known")?;
    let varying = refs(&rows.body).vals_defined;
    let apart = |f: &&For, s: &Stmt| match s {
        Stmt::Load { mem, .. } => {
            !matches!(affine::coef(&mem.index, f.axis, &varying), Some(Ix::Const(0..=MOST_APART)))
        }
        _ => false,
    };
    if loops.iter().any(|f| f.combine.is_some() && f.body.iter().any(|s| apart(f, s))) {
        return Err("elements of its rows lie apart".into());
    }
    let bytes = |f: &&For| {
        let of = |s: &Stmt| if let Stmt::Load { mem, .. } = s { mem.elem.bytes() } else { 0 };
        Some(edit::most_trips(f)?.saturating_mul(f.body.iter().map(of).max().unwrap_or(0)))
    };
    let longest = loops.iter().map(bytes).collect::<Option<Vec<u64>>>().ok_or("how long its rows are is not known")?;
    let longest = longest.into_iter().max().unwrap_or(0).max(1);
    let together = prev_power((GROUP / longest).clamp(1, MOST) as u32).into();
    match together {
        1 => Err(format!("a row has {longest} bytes, and a group {}", named!(GROUP))),
        _ if n < 2 => Err("there is one row".into()),
        together => Ok((n, together)),
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text};

    /// Rows less their greatest elements, and scaled by their sums.
    fn rows(n: &str, terms: u32) -> String {
        format!(
            r#"loop kernel k(x: ptr f32, y: ptr f32, n: i32) open:
  for r in 0..{n}: free
    local s: f32
    local e: f32[{terms}]
    s = 0.0
    local m: f32
    m = -inf
    for k in 0..{terms}: reduce combine max.nan(m) from -inf
      v: f32 = load x[r*{terms} + k]
      m0: f32 = m
      m1: f32 = max.nan(v, m0)
      m = m1
    top: f32 = m
    for k1 in 0..{terms}: reduce combine add(s) from 0.0
      w: f32 = load x[r*{terms} + k1]
      d: f32 = w - top
      e[k1] = d
      s0: f32 = s
      s1: f32 = s0 + d
      s = s1
    sum: f32 = s
    for k2 in 0..{terms}: free
      z: f32 = e[k2]
      q: f32 = z / sum
      store y[r*{terms} + k2] = q
"#
        )
    }

    #[test]
    fn loops_of_a_few_rows_run_one_after_the_other() {
        let (out, log) = apply("fission_rows", &kernel(&rows("32", 128)), &context());
        assert_eq!(log.applied, ["loop r"]);
        let out = text(&out);
        let loops: Vec<&str> = out.lines().map(str::trim).filter(|l| l.starts_with("for r")).collect();
        assert_eq!(
            loops,
            ["for ro in 0..8: free", "for r in 0..4: free", "for r_1 in 0..4: free", "for r_2 in 0..4: free"]
        );
        // Each row keeps what several loops use; everything else is local to one loop.
        for line in [
            "local e: f32[4, 128]",
            "local top_of: f32[4]",
            "local sum_of: f32[4]",
            "e[r_1, k1] = d",
            "z: f32 = e[r_2, k2]",
        ] {
            assert!(out.contains(line), "{line}: {out}");
        }
        let (before, after) = out.split_once("for r_1").unwrap();
        assert!(!before.contains("s = 0.0") && after.contains("s = 0.0"), "{out}");
    }

    #[test]
    fn groups_have_as_many_rows_as_fit() {
        let loops = |n: &str, terms| {
            let (out, _) = apply("fission_rows", &kernel(&rows(n, terms)), &context());
            let out = text(&out);
            out.lines()
                .map(str::trim)
                .filter(|l| l.starts_with("for r"))
                .take(2)
                .map(str::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(loops("64", 16), ["for ro in 0..4: free", "for r in 0..16: free"]);
        assert_eq!(loops("64", 256), ["for ro in 0..32: free", "for r in 0..2: free"]);
        // The last group has the rows that are left, and few rows are one group.
        assert_eq!(loops("30", 128), ["for ro in 0..8: free", "for r in 0..min(4, 30 - ro*4): free"]);
        assert_eq!(loops("3", 128), ["for r in 0..3: free", "for r_1 in 0..3: free"]);
        let at_most = ["for ro in 0..(min(32, n) + 3)//4: free", "for r in 0..min(4, min(32, n) - ro*4): free"];
        assert_eq!(loops("min(32, n)", 128), at_most);
    }

    #[test]
    fn what_is_refused() {
        let why = |text: &str| refusals("fission_rows", text, &context()).join("; ");
        assert_eq!(why(&rows("32", 1024)), "loop r: a row has 4096 bytes, and a group 2048 (GROUP)");
        assert_eq!(why(&rows("n", 128)), "loop r: how many rows there are is not known");
        assert_eq!(why(&rows("1", 128)), "loop r: there is one row");
        let used = rows("32", 128).replace("z / sum", "z / sum\n      m2: f32 = m");
        assert_eq!(why(&used), "loop r: an accumulator is needed behind the loop after its own");
        let early = rows("32", 128).replace("    top: f32 = m\n", "    top: f32 = m\n    first: f32 = s\n");
        assert_eq!(why(&early), "loop r: an accumulator is needed before its fold");
        let columns = rows("32", 128).replace("x[r*128 + k1]", "x[r + k1*32]");
        assert_eq!(why(&columns), "loop r: elements of its rows lie apart");
        // Rows that decide how long they are stay whole, and so do those with one loop.
        assert_eq!(why(&rows("32", 128).replace("k2 in 0..128", "k2 in 0..r")), "");
        let lone = rows("32", 128);
        assert_eq!(why(&format!("{}\n", lone.split("    top").next().unwrap().trim_end())), "");
    }
}
