//! `unroll_and_jam`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::refs;
use crate::num::ScalarOp;
use crate::tile::Context;
use crate::tile::affine::{self, MOST_APART, Stride};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::named;
use crate::tile::heuristics::unroll_and_jam::{LEAST_GROUPS, LONG, MOST_SHARED, MOST_STATEMENTS, MOST_SUMS, SELDOM};
use crate::tile::primitives::jam::rows;
use crate::tile::primitives::{self, LoopRef, Names, Script, Step};
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

Where other rows are multiplied by the same ones, as tokens by a matrix of packed weights, each of these is multiplied by up to eight
of them when it is unpacked, and by all others before the next.

Refuses rows that share nothing or lie elsewhere than one behind the other; rows of less than 512 terms (a product of bytes counts for
four); rows of which there are few, or of which four would not come out even; and whatever holds more than one fold of loads and
arithmetic, or more statements than a few copies may have.
",
    run,
};

/// Rows that are folded together, the first number that divides all. One row after the other, a core takes three quarters of what
/// it takes of memory from eight places at a time, and what they share would be brought back to the nearest cache for each.
const TOGETHER: [u64; 2] = [8, 4];

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let (names, mut found) = (Names::of(p), vec![]);
    primitives::look(p, &mut |_, f| {
        if !f.is_free_unplaced() {
            return true;
        }
        let chain = edit::free_chain(f);
        let [around @ .., rows] = &chain[..] else { return true };
        let (Some(fold), Some(at)) = (rows::fold_of(rows), names.name(rows)) else { return true };
        let all = around.iter().filter_map(|f| const_trip(f)).fold(1u64, u64::saturating_mul);
        let few = around.last().filter(|few| shares_rows(few, rows, fold));
        let few = few.and_then(|f| {
            Some(Others {
                at: names.name(f)?,
                some: some_of(f),
                name: p.axes[f.axis].name.clone(),
                split: const_trip(f) != Some(some_of(f)),
            })
        });
        let some = few.as_ref().map_or(1, |few| few.some);
        let of = check(p, rows, fold).and_then(|()| together(rows, fold, all, some));
        found.push((axis_site(p, rows.axis), at, few, of));
        false
    });
    let mut script = Script::new(p, ctx, log);
    for (site, at, few, of) in found {
        let made = of.and_then(|n| {
            script.attempt(|script| {
                let made = script.step(Step::Jam { at, together: n as u32 })?;
                let (Some(few), Some(rows)) = (few, made.first()) else { return Ok(()) };
                script.step(Step::Reorder { loops: vec![*rows, few.at] })?;
                let mut at = few.at;
                if few.split && few.some > 1 {
                    let names = [format!("{}o", few.name), few.name.clone()];
                    let made = script.step(Step::Split { at, size: few.some as u32, names, guard: false })?;
                    at = *made.last().ok_or("a loop vanished")?;
                }
                if few.some > 1 {
                    script.step(Step::Jam { at, together: few.some as u32 })?;
                }
                Ok(())
            })
        });
        script.log.outcome(site, made);
    }
    script.done()
}

/// The loop over others that the rows are multiplied by.
struct Others {
    at: LoopRef,
    name: String,
    /// How many of them share a row at the same time.
    some: u64,
    /// There are more.
    split: bool,
}

/// How many iterations of a loop to take together: all if they are few.
fn some_of(others: &For) -> u64 {
    let Some(n) = const_trip(others) else { return 1 };
    if n <= MOST_SHARED { n } else { [4, 2].into_iter().find(|some| n % some == 0).unwrap_or(1) }
}

/// True for a loop around rows that all of its iterations multiply.
fn shares_rows(few: &For, rows: &For, fold: &For) -> bool {
    let defined = refs(&rows.body).vals_defined;
    let own = |s: &Stmt| match s {
        Stmt::Load { mem, .. } => {
            let of = |axis| affine::stride(&mem.index, axis, &defined);
            (of(rows.axis) != Stride::Same).then(|| of(few.axis))
        }
        _ => None,
    };
    let mut own = fold.body.iter().filter_map(own).peekable();
    const_trip(few) != Some(1) && own.peek().is_some() && own.all(|along| along == Stride::Same)
}

/// How many rows to fold at the same time. `others` is how often there are as many, `few` how many others share each.
fn together(rows: &For, fold: &For, others: u64, few: u64) -> Result<u64, String> {
    let Some(n) = const_trip(rows) else { return Err("how many rows there are is not known".into()) };
    let enough = |at: &u64| (n / at).saturating_mul(others) >= LEAST_GROUPS;
    let sizes = || TOGETHER.into_iter().chain((few > 1).then_some(2));
    let Some(enough) = sizes().find(enough) else { return Err("its rows are few".into()) };
    let most = enough.min(MOST_SUMS / few);
    let even = || sizes().filter(|at| *at <= most && n % at == 0);
    if even().next().is_none() {
        return Err("its rows do not come out even".into());
    }
    let copies = |at: &u64| at * few * fold.body.len() as u64 <= MOST_STATEMENTS;
    even().find(copies).ok_or_else(|| format!("its copies would have more than {} statements", named!(MOST_STATEMENTS)))
}

fn check(kernel: &Kernel, rows: &For, fold: &For) -> Result<(), String> {
    let say = |why: &str| Err(why.to_string());
    rows::legal(rows, fold)?;
    if const_trip(fold).is_none_or(|n| n.saturating_mul(terms(fold)) < LONG) {
        return say("its rows are short");
    }
    let defined = refs(&rows.body).vals_defined;
    if fold.body.iter().any(|s| matches!(s, Stmt::Read { buf, .. } if !kernel.bufs[*buf].shape.is_empty())) {
        return say("its rows do not lie one behind the other");
    }
    let (mut shared, mut apart) = (false, false);
    for s in &fold.body {
        let Stmt::Load { mem, .. } = s else { continue };
        let near = matches!(affine::coef(&mem.index, fold.axis, &defined), Some(Ix::Const(1..=MOST_APART)));
        let of = |axis| affine::stride(&mem.index, axis, &defined);
        match of(rows.axis) {
            Stride::Same if near => shared = true,
            Stride::Far if near => apart = true,
            _ if of(fold.axis) == Stride::Same => {}
            _ if changes_seldom(&mem.index, fold.axis) => {}
            _ => return say("its rows do not lie one behind the other"),
        }
    }
    if shared && apart { Ok(()) } else { say("its rows share nothing") }
}

/// How many terms an iteration of a fold adds: a product of words counts for their elements.
fn terms(fold: &For) -> u64 {
    let of = |s: &Stmt| match s {
        Stmt::Let { op: ScalarOp::DotB, .. } => 4,
        Stmt::Let { op: ScalarOp::DotI | ScalarOp::DotF, .. } => 2,
        _ => 0,
    };
    fold.body.iter().map(of).sum::<u64>().max(1)
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
    fn what_few_rows_share_is_loaded_once_for_all() {
        let few = |count: u64| {
            let batch = ROWS.replace("a in 0..3", &format!("a in 0..{count}"));
            batch.replace("w[a*256000 + i*1000 + k]", "w[i*1000 + k]").replace("x[k]", "x[a*1000 + k]")
        };
        // Sixteen sums at a time.
        for (count, together) in [(2, 8), (3, 4), (4, 4), (5, 2), (8, 2)] {
            let (out, log) = apply("unroll_and_jam", &kernel(&few(count)), &context());
            assert_eq!(log.applied, ["loop i"]);
            let made = text(&out);
            let rows = format!("for i{together} in 0..{}: free\n    for a{count} in 0..1: free", 256 / together);
            assert!(made.contains(&rows), "{made}");
            assert_eq!(made.matches("load w[").count(), together, "{made}");
            assert_eq!(made.matches("load x[").count() as u64, count, "{made}");
            assert_eq!(made.matches("store y[").count() as u64, count * together as u64, "{made}");
        }
        // More of them one after the other, or four at a time, before the next rows.
        for (count, loops) in [
            ("9", "for i8 in 0..32: free\n    for a in 0..9: free"),
            ("12", "for i4 in 0..64: free\n    for ao in 0..3: free\n      for a4 in 0..1: free"),
            ("n", "for i8 in 0..32: free\n    for a in 0..n: free"),
        ] {
            let many =
                few(2).replace("a in 0..2", &format!("a in 0..{count}")).replace("y: ptr f32", "y: ptr f32, n: i64");
            let (out, _) = apply("unroll_and_jam", &kernel(&many), &context());
            assert!(text(&out).contains(loops), "{}", text(&out));
        }
    }

    #[test]
    fn products_of_bytes_are_terms() {
        let words = ROWS
            .replace("0..1000", "0..64")
            .replace("ptr f32", "ptr i32")
            .replace(": f32", ": i32")
            .replace("0.0", "0");
        let words = words.replace("u * v", "dot4(u, v, 0)").replace("a*256000 + i*1000", "a*16384 + i*64");
        assert_eq!(refusals("unroll_and_jam", &words, &context()), ["loop i: its rows are short"]);
        // A chain of eight of them is 32 terms.
        let mut chain = String::new();
        for t in 1..8 {
            let before = if t == 1 { "p".to_string() } else { format!("p{}", t - 1) };
            chain += &format!("        u{t}: i32 = load w[a*131072 + i*512 + {} + k]\n", t * 64);
            chain += &format!(
                "        v{t}: i32 = load x[k + {}]\n        p{t}: i32 = dot4(u{t}, v{t}, {before})\n",
                t * 64
            );
        }
        let words = words.replace("        s0: i32", &format!("{chain}        s0: i32")).replace("p + s0", "p7 + s0");
        let (out, log) = apply("unroll_and_jam", &kernel(&words), &context());
        assert_eq!(log.applied, ["loop i"]);
        assert_eq!(text(&out).matches("dot4").count(), 8 * 8, "{}", text(&out));
        // Fewer rows where copies would be long, and none where they still are.
        let longer = |copies: usize| {
            let more: String = (0..copies).map(|t| format!("        q{t}: i32 = p7 * {t}\n")).collect();
            words.replace("        s0: i32", &format!("{more}        s0: i32"))
        };
        let (out, _) = apply("unroll_and_jam", &kernel(&longer(60)), &context());
        assert_eq!(text(&out).matches("dot4").count(), 8 * 4, "{}", text(&out));
        let why = refusals("unroll_and_jam", &longer(120), &context());
        assert_eq!(why, ["loop i: its copies would have more than 512 (MOST_STATEMENTS) statements"]);
    }

    #[test]
    fn elements_close_together_are_loaded_once_too() {
        let pairs = ROWS.replace("load x[k]", "load x[k*2]");
        let (out, log) = apply("unroll_and_jam", &kernel(&pairs), &context());
        assert_eq!(log.applied, ["loop i"]);
        assert_eq!(text(&out).matches("load x[k*2]").count(), 1, "{}", text(&out));
        let apart = refusals("unroll_and_jam", &ROWS.replace("load x[k]", "load x[k*5]"), &context());
        assert_eq!(apart, ["loop i: its rows do not lie one behind the other"]);
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
