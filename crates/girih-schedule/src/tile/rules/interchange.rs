//! `interchange`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::edit::{self, at_most};
use crate::tile::primitives::{self, LoopRef, Script, Step, turn};
use crate::tile::rules::axis_site;
use crate::tile::rules::split_digits::digits_tested;

mod columns;
pub(super) use columns::{ColumnFolds, column_folds};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "interchange",
    doc: "\
Reorders loops so that memory is walked in order.

A free nest gets the axis along which it stores innermost. Where its loads run along another axis, the two are cut into
blocks of 16 x 16, and what is loaded goes through a local buffer: memory is only walked along its lines, which are
whole lines for elements of four bytes, and conversions run in order too. What whole blocks leave over has smaller ones.

```text
for i in 0..64: free                             for j1 in 0..4: free
  for j in 0..64: free                             for i1 in 0..4: free
    %x = load X[j*M + i]                  -->        local block: f32[16, 16]
    store Y[i*N + j] = %x                            for j2 in 0..16: free
                                                       for i2 in 0..16: free
                                                         block[j2, i2] = load X[(j1*16 + j2)*M + (i1*16 + i2)]
                                                     for i2 in 0..16: free
                                                       for j2 in 0..16: free
                                                         store Y[(i1*16 + i2)*N + (j1*16 + j2)] = block[j2, i2]
```

Folds that walk down the columns of a row-major tile become folds that add row to row: the loop is cut at each of them, and
what an iteration keeps becomes an array with an element for each column, or a row of them. Each column keeps its order. Rows are folded eight or
four at a time, and a long sum of floats goes in stretches of 64 rows, which are added up one by one.

```text
for j in 0..256: free                            local s: f32[256]
  local s                                        for j in 0..256: free
  s = 0.0                                          s[j] = 0.0
  for i in 0..64: reduce combine add(s)   -->    for i in 0..64: reduce
    s <- x[i, j] + s                               for j in 0..256: free
  out[j] = s                                         s[j] <- x[i, j] + s[j]
                                                 for j in 0..256: free
                                                   out[j] = s[j]
```

Knob: `interchange` (0 turns the rule off).

Refuses when bounds of the loops depend on each other, a column decides how many rows are folded, or what is kept of the
columns fills the caches.
",
    run,
};

const BLOCK: i64 = 16;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.interchange {
        log.skipped("kernel", "knob off");
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    // Loops whose columns stay, and what was said of loops.
    let (mut stay, mut said) = (vec![], BTreeSet::new());
    loop {
        let sites = sites(&script.kernel, &stay);
        let (mut lines, mut again) = (vec![], false);
        // Loops behind one keep their names where it is replaced, and not the other way round.
        for (at, site, choice) in sites.into_iter().rev() {
            let columns = matches!(choice, Ok(Choice::Columns));
            let done = choice.and_then(|choice| match choice {
                Choice::Step(step) => script.try_step(step).map(drop),
                Choice::Columns => script.attempt(|script| columns::fold_rows(script, at)),
            });
            // The loops that came of columns are looked at in their turn, and those inside of others that stay.
            again |= columns;
            if columns && done.is_err() {
                stay.push(at);
            }
            lines.push((site, done));
        }
        for (site, done) in lines.into_iter().rev() {
            match done {
                Ok(()) => script.log.applied(site),
                Err(why) if said.insert((site.clone(), why.clone())) => script.log.skipped(site, why),
                Err(_) => {}
            }
        }
        if !again {
            return script.done();
        }
    }
}

enum Choice {
    /// Another order of a nest, or blocks.
    Step(Step),
    /// A loop that folds columns goes row after row.
    Columns,
}

/// The loops that are to change, or that should and may not, with their sites; `stay` are loops whose columns stay.
fn sites(kernel: &Kernel, stay: &[LoopRef]) -> Vec<(LoopRef, String, Result<Choice, String>)> {
    let mut out = vec![];
    primitives::look(kernel, &mut |at, f| {
        if !f.is_free_unplaced() {
            return true;
        }
        let chain = edit::free_chain(f);
        let columns = chain.last().is_some_and(|f| f.body.iter().any(|s| !walk::bodies(s).is_empty()));
        let choice = match (columns, chain.len()) {
            (false, _) => reorder(kernel, &chain, at).transpose(),
            (true, 1) if !stay.contains(&at) => columns::column_folds(kernel, f).map(|_| Ok(Choice::Columns)),
            _ => None,
        };
        let inside = !matches!(choice, Some(Ok(_)));
        out.extend(choice.map(|choice| (at, axis_site(kernel, f.axis), choice)));
        inside
    });
    out
}

/// How the accesses of straight-line statements go along an axis.
struct Strides {
    stores: Vec<Stride>,
    loads: Vec<Stride>,
}

fn strides(
    kernel: &Kernel,
    body: &[Stmt],
    axis: AxisId,
    varying: &BTreeSet<ValId>,
    except: &BTreeSet<BufId>,
) -> Strides {
    let mut out = Strides { stores: vec![], loads: vec![] };
    for s in body {
        match s {
            Stmt::Load { mem, .. } => out.loads.push(affine::stride(&mem.index, axis, varying)),
            Stmt::Store { mem, .. } => out.stores.push(affine::stride(&mem.index, axis, varying)),
            Stmt::Read { buf, idx, .. } if !except.contains(buf) => {
                out.loads.push(affine::buf_stride(&kernel.bufs[*buf], idx, axis, varying));
            }
            Stmt::Write { buf, idx, .. } if !except.contains(buf) => {
                out.stores.push(affine::buf_stride(&kernel.bufs[*buf], idx, axis, varying));
            }
            _ => {}
        }
    }
    out
}

/// The axis of `around` along which a load of a free loop walks memory, where the loop itself walks it far apart and stores side
/// by side: such loops are best run in square pieces.
pub(super) fn runs_across(kernel: &Kernel, around: &[&For], f: &For) -> Option<usize> {
    if f.body.iter().any(|s| !edit::is_pure(s) && !matches!(s, Stmt::Store { .. })) {
        return None;
    }
    let varying = refs(&f.body).vals_defined;
    let of = |axis| strides(kernel, &f.body, axis, &varying, &BTreeSet::new());
    let own = of(f.axis);
    let far = |at: &usize| matches!(own.loads[*at], Stride::Far | Stride::Irregular);
    let other: Vec<Strides> = around.iter().map(|a| of(a.axis)).collect();
    let across = |at: usize| (0..around.len()).find(|t| other[*t].loads[at] == Stride::Unit);
    let big = |f: &For| f.lo.is_const(0) && at_most(&f.hi).is_none_or(|n| n > BLOCK);
    let t =
        (own.stores.first() == Some(&Stride::Unit)).then(|| (0..own.loads.len()).filter(far).find_map(across))??;
    (big(f) && big(around[t])).then_some(t)
}

/// The step that gives a nest the axis along which it stores innermost, or cuts it into blocks; `None` where it is fine as it is.
fn reorder(kernel: &Kernel, chain: &[&For], at: LoopRef) -> Result<Option<Choice>, String> {
    let [.., last] = chain else { return Ok(None) };
    if chain.len() < 2 {
        return Ok(None);
    }
    let varying = refs(&last.body).vals_defined;
    let all: Vec<Strides> =
        chain.iter().map(|f| strides(kernel, &last.body, f.axis, &varying, &BTreeSet::new())).collect();
    // The first store decides; of several axes along which it runs, the innermost.
    let along = |at: &usize| all[*at].stores.first() == Some(&Stride::Unit) && at_most(&chain[*at].hi) != Some(1);
    let Some(s) = (0..all.len()).rev().find(along) else { return Ok(None) };
    let far = |x: &Strides, at: usize| matches!(x.loads[at], Stride::Far | Stride::Irregular);
    let conflict = (0..all[s].loads.len())
        .filter(|&at| far(&all[s], at))
        .find_map(|at| (0..all.len()).find(|&t| t != s && all[t].loads[at] == Stride::Unit));
    // A nest of one block is left as it is: `transpose` runs it in vectors.
    let extent = |at: usize| at_most(&chain[at].hi).unwrap_or(i64::MAX);
    let block = conflict.filter(|&t| extent(t).min(extent(s)) >= BLOCK && extent(t).max(extent(s)) > BLOCK);
    if s + 1 == chain.len() && block.is_none() {
        return Ok(None);
    }
    if digits_tested(&last.body, chain[s].axis).is_some_and(|axes| !axes.contains(&last.axis)) {
        return Err("its elements are tested one by one along the axis that it stores along".into());
    }
    turn::legal(chain)?;
    let axes: Vec<AxisId> = chain.iter().map(|f| f.axis).collect();
    let names = primitives::names_behind(kernel, at, &axes);
    let step = match block {
        Some(t) => Step::Turn { loops: vec![names[t], names[s]], size: BLOCK as u32 },
        None => {
            let mut loops = names.clone();
            let inner = loops.remove(s);
            loops.push(inner);
            Step::Reorder { loops }
        }
    };
    Ok(Some(Choice::Step(step)))
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{COLUMN_SUMS, apply, context, kernel, refusals, text};

    #[test]
    fn the_axis_of_the_stores_goes_innermost() {
        let k = kernel(
            "loop kernel k(p: ptr f32):\n  for i in 0..8: free\n    for j in 0..32: free\n      store p[j*8 + i] = 1.0\n",
        );
        let (out, _) = apply("interchange", &k, &context());
        let want = "tile kernel k(p: ptr f32):\n  for j in 0..32: free\n    for i in 0..8: free\n      store p[j*8 + i] = 1.0\n";
        assert_eq!(text(&out), want);
    }

    #[test]
    fn a_nest_of_several_blocks_is_cut_into_them() {
        let cut = |rows: u32, columns: u32| {
            let nest = format!(
                "loop kernel k(p: ptr f32, q: ptr f32):\n  for i in 0..{rows}: free\n    for j in 0..{columns}: free\n      \
                 a: f32 = load p[i*{columns} + j]\n      store q[j*{rows} + i] = a\n"
            );
            text(&apply("interchange", &kernel(&nest), &context()).0).contains("local block: f32[16, 16]")
        };
        assert!(cut(448, 16) && cut(16, 48) && cut(40, 40));
        assert!(!cut(16, 16) && !cut(448, 8) && !cut(8, 448));
    }

    #[test]
    fn loops_whose_bounds_depend_on_each_other_stay() {
        let triangle = "loop kernel k(p: ptr f32):\n  for i in 0..8: free\n    for j in 0..i: free\n      store p[j*8 + i] = 1.0\n";
        let why = refusals("interchange", triangle, &context());
        assert_eq!(why, ["loop i: the bounds of its loops depend on each other"]);
    }

    #[test]
    fn a_fold_along_rows_stays() {
        let rows = COLUMN_SUMS.replace("X[i*256 + j]", "X[j*64 + i]");
        assert_eq!(refusals("interchange", &rows, &context()), Vec::<String>::new());
        let passed = COLUMN_SUMS.replace("    s = 0.0\n", "    s = 0.0\n    z: f32 = load Y[j]\n");
        let passed = passed.replace("s1: f32 = x + s0", "s2: f32 = x + s0\n      s1: f32 = s2 + z");
        let (out, _) = apply("interchange", &kernel(&passed), &context());
        let made = text(&out);
        assert!(made.contains("z_of[j] = z") && made.contains(": f32 = z_of[j_1]"), "{made}");
        let decides = COLUMN_SUMS.replace("    s = 0.0\n", "    s = 0.0\n    n: i32 = load C[j]\n");
        let decides =
            decides.replace("Y: ptr f32", "Y: ptr f32, C: ptr i32").replace("0..64: reduce", "0..min(n, 64): reduce");
        let why = refusals("interchange", &decides, &context());
        assert_eq!(why, ["loop j: a column decides how many rows are folded"]);
    }

    #[test]
    fn columns_close_together_are_folded_row_by_row() {
        let apart = |n: i64| COLUMN_SUMS.replace("X[i*256 + j]", &format!("X[i*{} + j*{n}]", n * 256));
        let (out, log) = apply("interchange", &kernel(&apart(2)), &context());
        assert_eq!(log.applied, ["loop j"]);
        assert!(text(&out).contains("for j_1 in 0..256: free"), "{}", text(&out));
        let (_, log) = apply("interchange", &kernel(&apart(16)), &context());
        assert!(log.applied.is_empty());
    }

    #[test]
    fn rows_that_keep_an_element_each_are_folded_one_by_one() {
        let scan = "loop kernel k(X: ptr f32, Y: ptr f32):\n  local t: f32[8, 16]\n  for a in 0..8: free\n    for b in 0..16: free\n      \
            x: f32 = load X[a*16 + b]\n      t[a, b] = x\n  for j in 0..16: free\n    local s: f32\n    s = 0.0\n    for i in 0..8: serial\n      \
            t0: f32 = t[i, j]\n      s0: f32 = s\n      s1: f32 = t0 + s0\n      s = s1\n      t[i, j] = s1\n  \
            for c in 0..8: free\n    for d in 0..16: free\n      y: f32 = t[c, d]\n      store Y[c*16 + d] = y\n";
        let made = text(&apply("interchange", &kernel(scan), &context()).0);
        assert!(made.contains("for i in 0..8: serial\n    for j_1 in 0..16: free"), "{made}");
        assert!(made.contains("t[i, j_1] = s1"), "{made}");
    }

    /// A column that is kept, folded, and stored: along the rows, or along the columns.
    fn normalised(store: &str) -> String {
        format!(
            "loop kernel k(X: ptr f32, Y: ptr f32):\n  for j in 0..48: free\n    local e: f32[24]\n    local s: f32\n    s = 0.0\n    \
             for i in 0..24: reduce combine add(s) from -0.0\n      x: f32 = load X[i*48 + j]\n      y: f32 = exp(x)\n      \
             e[i] = y\n      s0: f32 = s\n      s1: f32 = y + s0\n      s = s1\n    t: f32 = s\n    for c in 0..24: free\n      \
             z: f32 = e[c]\n      q: f32 = z / t\n      store Y[{store}] = q\n"
        )
    }

    #[test]
    fn rows_that_are_kept_of_columns_get_an_element_for_each() {
        let (out, log) = apply("interchange", &kernel(&normalised("c*48 + j")), &context());
        assert_eq!(log.applied, ["loop j", "loop j"]);
        let made = text(&out);
        assert!(made.contains("local e: f32[24, 48]"), "{made}");
        assert!(made.contains("for i8 in 0..3: reduce\n    for j_1 in 0..48: free"), "{made}");
        assert!(made.contains("for c in 0..24: free\n    for j_3 in 0..48: free"), "{made}");
        // Stored along the rows, what was kept goes through square blocks.
        let turned = text(&apply("interchange", &kernel(&normalised("j*24 + c")), &context()).0);
        assert!(turned.contains("local block: f32[16, 16]"), "{turned}");
        let many = normalised("c*48 + j").replace("f32[24]", "f32[65536]");
        let why = refusals("interchange", &many, &context());
        assert_eq!(why, ["loop j: what it keeps of its columns fills the caches"]);
    }

    #[test]
    fn passes_over_columns_are_cut_apart() {
        let twice = COLUMN_SUMS.replace(
            "    t: f32 = s\n",
            "    m: f32 = s\n    local g: f32\n    g = 0.0\n    for k in 0..30: reduce combine add(g) from -0.0\n      y: f32 = load X[k*256 + j]\n      \
             d: f32 = y - m\n      g0: f32 = g\n      g1: f32 = d + g0\n      g = g1\n    t: f32 = g\n",
        );
        let (out, log) = apply("interchange", &kernel(&twice), &context());
        assert_eq!(log.applied, ["loop j"]);
        let made = text(&out);
        let loops: Vec<&str> = made.lines().filter(|l| l.starts_with("  for")).collect();
        // Sixty-four rows are folded eight at a time, thirty one by one.
        let want = [
            "j in 0..256: free",
            "i8 in 0..8: reduce",
            "j_2 in 0..256: free",
            "k in 0..30: reduce",
            "j_4 in 0..256: free",
        ];
        assert_eq!(loops, want.map(|l| format!("  for {l}")), "{made}");
        assert!(made.contains("m_of[j_2] = m"), "{made}");
    }
}
