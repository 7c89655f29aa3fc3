//! `unroll_and_jam`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::refs;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::unroll_and_jam::{LEAST_GROUPS, LONG, MOST_STATEMENTS, SELDOM};
use crate::tile::primitives::jam::rows;
use crate::tile::primitives::{self, Names, Step};
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

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    primitives::run(p, ctx, log, policy)
}

fn policy(p: &Kernel, _: &Context, log: &mut Log) -> Vec<Step> {
    if !p.open {
        return vec![];
    }
    let (names, mut steps) = (Names::of(p), vec![]);
    primitives::look(p, &mut |_, f| {
        if f.kind != LoopKind::Free || f.place != Place::None {
            return true;
        }
        let chain = edit::free_chain(f);
        let [around @ .., rows] = &chain[..] else { return true };
        let (Some(fold), Some(at)) = (rows::fold_of(rows), names.name(rows)) else { return true };
        let site = axis_site(p, rows.axis);
        let all = around.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
        match together(rows, all).and_then(|n| check(p, rows, fold).map(|()| n)) {
            Ok(n) => {
                log.applied(site);
                steps.push(Step::Jam { at, together: n as u32 });
            }
            Err(why) => log.skipped(site, why),
        }
        false
    });
    steps
}

/// How many rows to fold at the same time. `others` is how often there are as many.
fn together(rows: &For, others: Option<u64>) -> Result<u64, String> {
    let Some((n, others)) = const_trip(rows).zip(others) else {
        return Err("how many rows there are is not known".into());
    };
    let enough = |at: &u64| (n / at).saturating_mul(others) >= LEAST_GROUPS;
    let Some(enough) = TOGETHER.into_iter().find(enough) else { return Err("its rows are few".into()) };
    TOGETHER.into_iter().find(|at| *at <= enough && n % at == 0).ok_or("its rows do not come out even".into())
}

fn check(kernel: &Kernel, rows: &For, fold: &For) -> Result<(), String> {
    let say = |why: &str| Err(why.to_string());
    rows::legal(rows, fold)?;
    if fold.body.len() > MOST_STATEMENTS {
        return say("it holds more than one fold of loads and arithmetic");
    }
    if const_trip(fold).is_none_or(|n| n < LONG) {
        return say("its rows are short");
    }
    let defined = refs(&rows.body).vals_defined;
    if fold.body.iter().any(|s| matches!(s, Stmt::Read { buf, .. } if !kernel.bufs[*buf].shape.is_empty())) {
        return say("its rows do not lie one behind the other");
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
            _ => return say("its rows do not lie one behind the other"),
        }
    }
    if shared && apart { Ok(()) } else { say("its rows share nothing") }
}

/// True if an index has the axis in quotients only, as that of a scale for each 32 weights.
fn changes_seldom(ix: &Ix, axis: AxisId) -> bool {
    match ix {
        Ix::Axis(a) => *a != axis,
        Ix::FloorDiv(_, by) if by.as_const().is_some_and(|by| by >= SELDOM) => true,
        _ => ix.operands().is_none_or(|(a, b)| changes_seldom(a, axis) && changes_seldom(b, axis)),
    }
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
