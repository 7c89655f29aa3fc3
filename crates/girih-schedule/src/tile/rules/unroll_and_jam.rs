//! `unroll_and_jam`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::edit::{self, Visit, const_trip, new_axis};
use crate::tile::heuristics::unroll_and_jam::{LEAST_GROUPS, LONG, MOST_STATEMENTS, SELDOM};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "unroll_and_jam",
    doc: "\
Folds eight or four rows at the same time where all of them are multiplied by one other row, as in a product of a matrix and
a vector: what they share is loaded once for all of them, and memory is read from several places at a time.

```text
for i in 0..4096: free                           for i8 in 0..512: free
  local s                                          local s
  s = 0.0                                          local s_1
  for k in 0..4096: reduce combine add(s)          s = 0.0
    %w = load w[i*4096 + k]              -->       s_1 = 0.0
    %x = load x[k]                                 for k in 0..4096: reduce combine add(s, s_1)
    s <- %w * %x + s                                 %w = load w[i8*8192 + k]
  store y[i] = s                                     %x = load x[k]
                                                     s <- %w * %x + s
                                                     %w_1 = load w[i8*8192 + 4096 + k]
                                                     s_1 <- %w_1 * %x + s_1
                                                   store y[i8*2] = s
                                                   store y[i8*2 + 1] = s_1
```

A loop of eight rows stands for two here. Each row keeps the order of its sum.

What is loaded once for several elements of a row, as a scale for each 32 weights, may lie anywhere.

Refuses rows that share nothing or lie elsewhere than one behind the other; rows of less than 512 elements; rows of which there are
few, or of which four would not come out even; and whatever holds more than one fold of loads and arithmetic.
",
    run,
};

/// Rows that are folded together, the first number that divides all. One row after the other, a core takes three quarters of what
/// it takes of memory from eight places at a time, and what they share would be brought back to the nearest cache for each.
const TOGETHER: [u64; 2] = [8, 4];

fn run(p: &Kernel, _: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    edit::rewrite(p, &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        if f.kind != LoopKind::Free || f.place != Place::None {
            return Visit::Into;
        }
        let chain = edit::free_chain(f);
        let [around @ .., rows] = &chain[..] else { return Visit::Into };
        let Some(fold) = fold_of(rows) else { return Visit::Into };
        let site = axis_site(kernel, rows.axis);
        let all = around.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
        match together(rows, all).and_then(|n| check(kernel, rows, fold).map(|()| n)) {
            Ok(n) => {
                log.applied(site);
                let jammed = Stmt::For(Box::new(jam(kernel, rows, fold, n)));
                let nest = around
                    .iter()
                    .rev()
                    .fold(jammed, |inner, f| Stmt::For(Box::new(For { body: vec![inner], ..(*f).clone() })));
                Visit::Replace(vec![nest])
            }
            Err(why) => {
                log.skipped(site, why);
                Visit::Leave
            }
        }
    })
}

/// The only loop in a row's body, where it is a fold that may be reassociated.
fn fold_of(rows: &For) -> Option<&For> {
    let mut loops = rows.body.iter().filter(|s| !walk::bodies(s).is_empty());
    let (Some(Stmt::For(fold)), None) = (loops.next(), loops.next()) else { return None };
    let one = fold.combine.as_ref().is_some_and(|c| c.accs.len() == 1);
    let plain = fold.kind == LoopKind::Reduce && one && fold.place == Place::None;
    (plain && fold.contraction.is_none() && fold.body.iter().all(|s| walk::bodies(s).is_empty())).then_some(fold)
}

/// How many rows to fold at the same time. `others` is how often there are as many.
fn together(rows: &For, others: Option<u64>) -> Result<u64, &'static str> {
    let Some((n, others)) = const_trip(rows).zip(others) else { return Err("how many rows there are is not known") };
    let enough = |at: &u64| (n / at).saturating_mul(others) >= LEAST_GROUPS;
    let Some(enough) = TOGETHER.into_iter().find(enough) else { return Err("its rows are few") };
    TOGETHER.into_iter().find(|at| *at <= enough && n % at == 0).ok_or("its rows do not come out even")
}

fn check(kernel: &Kernel, rows: &For, fold: &For) -> Result<(), &'static str> {
    let straight = |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Local { .. } | Stmt::Write { .. });
    let outside = |s: &Stmt| straight(s) || matches!(s, Stmt::Store { order: Order::Weak, .. } | Stmt::For(_));
    if fold.body.len() > MOST_STATEMENTS || !fold.body.iter().all(straight) || !rows.body.iter().all(outside) {
        return Err("it holds more than one fold of loads and arithmetic");
    }
    let bounds = [&fold.lo, &fold.hi, &fold.step];
    let defined = refs(&rows.body).vals_defined;
    if bounds.iter().any(|ix| ix.has_axis(rows.axis) || ix.vals().iter().any(|v| defined.contains(v))) {
        return Err("a row decides how much is folded");
    }
    if const_trip(fold).is_none_or(|n| n < LONG) {
        return Err("its rows are short");
    }
    let own = rows.body.iter().filter_map(|s| match s {
        Stmt::Local { buf } => Some(*buf),
        _ => None,
    });
    let own: BTreeSet<BufId> = own.collect();
    if refs(&rows.body).bufs_written.iter().any(|b| !own.contains(b)) {
        return Err("rows write what others may read");
    }
    if fold.body.iter().any(|s| matches!(s, Stmt::Read { buf, .. } if !kernel.bufs[*buf].shape.is_empty())) {
        return Err("its rows do not lie one behind the other");
    }
    let (mut shared, mut apart) = (false, false);
    for s in &fold.body {
        let Stmt::Load { mem, .. } = s else { continue };
        let of = |axis| affine::stride(&mem.index, axis, &defined);
        match (of(fold.axis), of(rows.axis)) {
            (Stride::Unit, Stride::Same) => shared = true,
            (Stride::Unit, Stride::Far) => apart = true,
            (Stride::Same, _) => {}
            _ if changes_seldom(&mem.index, fold.axis) => {}
            _ => return Err("its rows do not lie one behind the other"),
        }
    }
    if shared && apart { Ok(()) } else { Err("its rows share nothing") }
}

/// True if an index has the axis in quotients only, as that of a scale for each 32 weights.
fn changes_seldom(ix: &Ix, axis: AxisId) -> bool {
    match ix {
        Ix::Axis(a) => *a != axis,
        Ix::FloorDiv(_, by) if by.as_const().is_some_and(|by| by >= SELDOM) => true,
        _ => ix.operands().is_none_or(|(a, b)| changes_seldom(a, axis) && changes_seldom(b, axis)),
    }
}

/// The values of a fold that are the same for all rows.
fn shared(rows: &For, fold: &For) -> BTreeSet<ValId> {
    let all = refs(&rows.body);
    let own = all.vals_defined.difference(&refs(&fold.body).vals_defined).copied().collect();
    let same = edit::invariant(&fold.body, rows.axis, &own, &all.bufs_written);
    fold.body.iter().zip(same).filter(|(_, same)| *same).filter_map(|(s, _)| walk::def(s)).collect()
}

/// So many rows at a time.
fn jam(kernel: &mut Kernel, rows: &For, fold: &For, together: u64) -> For {
    let group = new_axis(kernel, rows.axis, &together.to_string());
    let same = shared(rows, fold);
    let at = rows.body.iter().position(|s| matches!(s, Stmt::For(_))).unwrap_or(rows.body.len());
    let (mut before, mut folds, mut after, mut accs) = (vec![], vec![], vec![], vec![]);
    for row in 0..together {
        let mut renaming = walk::Renaming::default();
        if row > 0 {
            renaming = walk::Renaming::fresh(kernel, &rows.body);
            renaming.vals.retain(|v, _| !same.contains(v));
            renaming.axes.remove(&fold.axis);
        }
        let place = Ix::Axis(group) * Ix::Const(together as i64) + Ix::Const(row as i64);
        let of_row = |body: &[Stmt]| {
            let mut copy = body.to_vec();
            walk::subst_axes(&mut copy, &mut |a| (a == rows.axis).then(|| place.clone()));
            renaming.apply(&mut copy);
            copy
        };
        let is_shared = |s: &Stmt| walk::def(s).is_some_and(|v| same.contains(&v));
        before.extend(of_row(&rows.body[..at]));
        folds.extend(of_row(&fold.body).into_iter().filter(|s| row == 0 || !is_shared(s)));
        after.extend(of_row(rows.body.get(at + 1..).unwrap_or(&[])));
        let own = fold.combine.iter().flat_map(|c| &c.accs);
        accs.extend(own.map(|b| renaming.bufs.get(b).copied().unwrap_or(*b)));
    }
    let combine = fold.combine.as_ref().map(|c| Combine { accs, ..c.clone() });
    let fold = For { combine, body: folds, ..fold.clone() };
    let body = before.into_iter().chain([Stmt::For(Box::new(fold))]).chain(after).collect();
    let hi = Ix::Const(const_trip(rows).map_or(0, |n| n as i64) / together as i64);
    For { axis: group, hi, body, ..rows.clone() }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text};

    const ROWS: &str = "\
loop kernel k(w: ptr f32, x: ptr f32, b: ptr f32, y: ptr f32) open:
  for a in 0..3: free
    for i in 0..256: free
      local s: f32
      s = 0.0
      for k in 0..1000: reduce combine add(s) from 0.0
        u: f32 = load w[a*256000 + i*1000 + k]
        v: f32 = load x[k]
        p: f32 = u * v
        s0: f32 = s
        s1: f32 = p + s0
        s = s1
      t: f32 = s
      c: f32 = load b[i]
      r: f32 = t + c
      store y[a*256 + i] = r
";

    #[test]
    fn eight_rows_share_what_they_are_multiplied_by() {
        let (out, log) = apply("unroll_and_jam", &kernel(ROWS), &context());
        assert_eq!(log.applied, ["loop i"]);
        let made = text(&out);
        assert_eq!(made.matches("load x[").count(), 1, "{made}");
        assert_eq!(made.matches("load w[").count(), 8, "{made}");
        assert!(
            made.contains("for i8 in 0..32: free") && made.contains("load w[a*256000 + (i8*8 + 7)*1000 + k]"),
            "{made}"
        );
        let combine = made.lines().find(|l| l.contains("reduce")).unwrap_or_default();
        assert_eq!(combine.matches("s_").count(), 7, "{made}");
        // A scale for each 32 elements of a row.
        let scaled = ROWS.replace("x: ptr f32", "x: ptr f32, q: ptr f32");
        let scaled = scaled
            .replace("p: f32 = u * v", "g: f32 = load q[i*32 + k//32]\n        h: f32 = u * g\n        p: f32 = h * v");
        let (out, _) = apply("unroll_and_jam", &kernel(&scaled), &context());
        assert!(text(&out).contains("load q[(i8*8 + 7)*32 + k//32]"), "{}", text(&out));
        // Twelve rows come out even by four.
        let twelve = ROWS.replace("0..3", "0..300").replace("0..256", "0..12");
        let (out, _) = apply("unroll_and_jam", &kernel(&twelve), &context());
        assert!(text(&out).contains("for i4 in 0..3: free"), "{}", text(&out));
    }

    #[test]
    fn what_is_refused() {
        let why = |from: &str, to: &str| refusals("unroll_and_jam", &ROWS.replace(from, to), &context()).join("; ");
        assert_eq!(why("0..256", "0..255"), "loop i: its rows do not come out even");
        assert_eq!(why("0..256", "0..30"), "loop i: its rows are few");
        assert_eq!(why("in 0..1000", "in 0..100"), "loop i: its rows are short");
        assert_eq!(why("load x[k]", "load x[i*1000 + k]"), "loop i: its rows share nothing");
        let apart = "loop i: its rows do not lie one behind the other";
        assert_eq!(why("a*256000 + i*1000 + k", "a*256000 + k*256 + i"), apart);
        assert_eq!(why("load x[k]", "load x[k//2]"), apart);
        assert_eq!(why("in 0..1000", "in 0..i + 1"), "loop i: a row decides how much is folded");
    }
}
