//! `split_edges`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, Refs, refs};
use crate::tile::Context;
use crate::tile::affine;
use crate::tile::edit;
use crate::tile::heuristics::peel::MOST_STATEMENTS;
use crate::tile::heuristics::split_edges::FEW;
use crate::tile::primitives::peel::{self, Turns};
use crate::tile::primitives::{self, LoopRef, Script, Step, unswitch};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "split_edges",
    doc: "\
Turns edge conditions into loop bounds, so that the main loop has no masks.

```text
for j in 0..128: free                            for j in 0..max(0, min(128, N - by*128)): free
  store C[i*N + by*128 + j] = %v          -->      store C[i*N + by*128 + j] = %v
      where by*128 + j < N

for j in 0..1024: free                           for j in 0..max(0, min(1024, n)): free
  %x = load src[j] where j < n else -inf  -->      x[j] = load src[j]
  x[j] = %x                                      for j in max(0, min(1024, n))..1024: free
                                                   x[j] = -inf

for j in 0..512: free                            for j in 0..128: free
  %x = load a[j] where j < 128 else 0              %x = load a[j]
  %y = load b[j - 128] where j >= 128 else 0       store C[j] = %x
  %in = test j < 128                       -->   for j in 128..512: free
  store C[j] = select(%in, %x, %y)                 %y = load b[j - 128]
                                                   store C[j] = %y

for j in 0..64: free                             inside = test by < heads
  store O[j] = %v where by < heads        -->    if inside:
                                                   for j in 0..64: free
                                                     store O[j] = %v
```

A condition counts when it is linear in the loop's axis with a constant factor and everything else in it is fixed while
the loop runs. Where every effect of the body hangs on the condition the iterations beyond the bound are dropped;
otherwise they follow in a loop of their own, where the condition is false. Where all bounds are known and conditions fail
separately, as in a concatenation, each piece between two bounds is a loop of its own, which loads what it takes. Outer loops go first, so a row condition is
tested once per row, not per element; a condition that the loop does not change is tested before it.

An innermost loop also ends where a `min` or `max` in the subscripts of its loads bends: the columns within a reflected border are read in
order.

Where the target has masks for lanes, a loop of at most 96 iterations stays whole if its only conditions are those of loads of
neighbours: lanes of its vectors are off instead.

Knob: `split_edges` (0 turns the rule off).

Refuses serial loops, contractions, loops that hold register tiles, assertions or very many statements, and loops that are placed
already; says nothing of loops without such conditions.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.split_edges {
        log.skipped("kernel", "knob off");
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    let mut settled = 0;
    while let Some((step, site)) = next(&script.kernel, ctx, script.log, &mut settled) {
        match script.step(step) {
            Ok(_) => script.log.applied(site),
            Err(why) => {
                script.log.skipped(site, why);
                settled += 1;
            }
        }
    }
    script.done()
}

/// The first step of a loop behind those that are settled, outer loops first.
fn next(kernel: &Kernel, ctx: &Context, log: &mut Log, settled: &mut usize) -> Option<(Step, String)> {
    let (mut number, mut found) = (0, None);
    primitives::look(kernel, &mut |at, f| {
        number += 1;
        if found.is_some() || number <= *settled {
            return found.is_none();
        }
        match choose(kernel, ctx, at, f, log) {
            Choice::Step(step, site) => found = Some((step, site)),
            Choice::Into => *settled += 1,
            Choice::Leave => *settled += 1 + loops_in(&f.body),
        }
        found.is_none()
    });
    found
}

fn loops_in(body: &[Stmt]) -> usize {
    walk::loops(body).count()
}

enum Choice {
    Step(Step, String),
    Into,
    Leave,
}

fn choose(kernel: &Kernel, ctx: &Context, at: LoopRef, f: &For, log: &mut Log) -> Choice {
    let site = axis_site(kernel, f.axis);
    let facts = refs(&f.body);
    let (step, said) = if unswitch::fixed(f, &facts).is_some() {
        (Step::Unswitch { at }, ", a condition that it does not change".to_string())
    } else if ctx.target.vector.masks.is_some_and(|least| turns_lanes_off(kernel, least, f, &facts)) {
        log.skipped(site, "its conditions turn lanes of few vectors off");
        return Choice::Leave;
    } else {
        match Turns::of(f, &facts) {
            Some(Turns::Pieces(cuts)) => (Step::Peel { at }, format!(", in {} pieces", cuts.len() + 1)),
            Some(Turns::Bound(..)) => (Step::Peel { at }, String::new()),
            Some(Turns::Bends(cuts)) => (Step::Peel { at }, format!(", where subscripts bend {} times", cuts.len())),
            None => return Choice::Into,
        }
    };
    let long = if walk::size(&f.body) > MOST_STATEMENTS { Err("its body is long") } else { Ok(()) };
    match peel::legal(kernel, f).and(long) {
        Ok(()) => Choice::Step(step, site + &said),
        Err(why) => {
            log.skipped(site, why);
            Choice::Into
        }
    }
}

/// Whether the only conditions of a short loop are those of loads of neighbours.
fn turns_lanes_off(kernel: &Kernel, least: u32, f: &For, facts: &Refs) -> bool {
    let short = edit::at_most(&f.hi).is_some_and(|n| n <= FEW) && f.is_free_unplaced();
    if !short || !edit::can_be_off(kernel, least, &f.body) {
        return false;
    }
    let off = |m: &Mask| {
        let by = |ix: &Ix| affine::coef(ix, f.axis, &facts.vals_defined).and_then(|c| c.as_const());
        m.conds.iter().all(|c| match (by(&c.lhs), by(&c.rhs)) {
            (Some(a), Some(b)) => (a - b).abs() <= 1 && !matches!(c.cmp, Cmp::Eq | Cmp::Ne),
            _ => false,
        }) && m.vals.iter().all(|v| !facts.vals_defined.contains(v))
    };
    let mut any = false;
    f.body.iter().all(|s| match (s, walk::mask(s)) {
        (_, None) => true,
        (_, Some(m)) if m.is_always() => true,
        (Stmt::Load { mem, .. }, Some(m)) => {
            any = true;
            affine::stride(&mem.index, f.axis, &facts.vals_defined) == affine::Stride::Unit && off(m)
        }
        _ => false,
    }) && any
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, without_masks};

    #[test]
    fn several_conditions_leave_one_masked_rest() {
        let k = kernel(
            r#"loop kernel k(a: ptr f32, b: ptr f32, c: ptr f32, n: i32, m: i32):
  for j in 0..64: free
    x: f32 = load a[j] where j < n else 1.0
    y: f32 = load b[j] where j + bx*64 <= m else 2.0
    z: f32 = x + y
    store c[j] = z
"#,
        );
        let (out, _) = apply("split_edges", &k, &without_masks());
        let want = r#"tile kernel k(a: ptr f32, b: ptr f32, c: ptr f32, n: i32, m: i32):
  for j in 0..max(0, min(64, min(n, m - bx*64 + 1))): free
    x: f32 = load a[j]
    y: f32 = load b[j]
    z: f32 = x + y
    store c[j] = z
  for j_1 in max(0, min(64, min(n, m - bx*64 + 1)))..64: free
    x_1: f32 = load a[j_1] where j_1 < n else 1.0
    y_1: f32 = load b[j_1] where j_1 + bx*64 <= m else 2.0
    z_1: f32 = x_1 + y_1
    store c[j_1] = z_1
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn strides_round_up_and_falling_conditions_count() {
        let k = kernel(
            "loop kernel k(c: ptr f32, n: i32):\n  for j in 0..64: free\n    store c[j] = 1.0 where j*4 < n and 7 - j > 2\n",
        );
        let (out, _) = apply("split_edges", &k, &without_masks());
        assert!(text(&out).contains("for j in 0..max(0, min((n + 3)//4, 5)): free\n"), "{}", text(&out));
    }

    #[test]
    fn conditions_that_no_bound_expresses_stay() {
        for mask in ["j % 2 < n", "j == n", "j > n"] {
            let k = format!(
                "loop kernel k(c: ptr f32, n: i32):\n  for j in 0..64: free\n    store c[j] = 1.0 where {mask}\n"
            );
            assert_eq!(refusals("split_edges", &k, &without_masks()), Vec::<String>::new());
        }
        let serial = "loop kernel k(c: ptr f32, n: i32):\n  for j in 0..64: serial\n    store c[j] = 1.0 where j < n\n";
        assert_eq!(refusals("split_edges", serial, &without_masks()), ["loop j: its iterations run in order"]);
    }

    #[test]
    fn many_separate_conditions_do_not_multiply_the_code() {
        let line = |n: u32| format!("    x{n}: f32 = load a[j] where bx < {n}\n    store c[j + {n}] = x{n}\n");
        let body: String = (1..9).map(line).collect();
        let k = format!("loop kernel k(a: ptr f32, c: ptr f32):\n  for j in 0..64: free\n{body}");
        assert_eq!(refusals("split_edges", &k, &without_masks()), Vec::<String>::new());
        let two: String = (1..3).map(line).collect();
        let k = kernel(&format!("loop kernel k(a: ptr f32, c: ptr f32):\n  for j in 0..64: free\n{two}"));
        let (out, _) = apply("split_edges", &k, &without_masks());
        assert_eq!(text(&out).matches("for j").count(), 4, "{}", text(&out));
    }

    #[test]
    fn a_condition_that_the_loop_does_not_change_is_tested_before_it() {
        let k = kernel(
            r#"loop kernel k(a: ptr f32, c: ptr f32, n: i32, m: i1):
  local t: f32[64]
  for j in 0..64: free
    x: f32 = load a[j] where bx < n and j < n else 1.0
    t[j] = x
  for i in 0..64: free
    y: f32 = t[i]
    store c[i] = y where bx < n and m
"#,
        );
        let (out, _) = apply("split_edges", &k, &without_masks());
        let want = r#"tile kernel k(a: ptr f32, c: ptr f32, n: i32, m: i1):
  local t: f32[64]
  inside: i1 = test bx < n
  if inside:
    for j in 0..max(0, min(64, n)): free
      x: f32 = load a[j]
      t[j] = x
    for j_1 in max(0, min(64, n))..64: free
      x_1: f32 = 1.0
      t[j_1] = x_1
  else:
    for j_2 in 0..64: free
      x_2: f32 = 1.0
      t[j_2] = x_2
  inside_1: i1 = test bx < n and m
  if inside_1:
    for i in 0..64: free
      y: f32 = t[i]
      store c[i] = y
"#;
        assert_eq!(text(&out), want);
    }

    #[test]
    fn lanes_of_few_vectors_are_turned_off_instead() {
        let k = "loop kernel k(a: ptr f32, c: ptr f32, n: i32):\n  for j in 0..96: free\n    x: f32 = load a[j] where j < n else 1.0\n    \
                 store c[j] = x\n";
        assert_eq!(refusals("split_edges", k, &context()), ["loop j: its conditions turn lanes of few vectors off"]);
        // A longer loop, and one that drops iterations, are cut.
        for longer in [k.replace("0..96", "0..97"), k.replace("= x", "= x where j < n")] {
            let (_, log) = apply("split_edges", &kernel(&longer), &context());
            assert_eq!(log.applied, ["loop j"], "{longer}");
        }
    }

    #[test]
    fn each_source_of_a_concatenation_gets_a_loop() {
        let k = "loop kernel k(a: ptr f32, b: ptr f32, c: ptr f32):\n  for j in 0..512: free\n    x: f32 = load a[j] where j < 128 else 0.0\n    \
                 y: f32 = load b[j - 128] where j >= 128 else 0.0\n    is: i1 = test j < 128\n    v: f32 = select(is, x, y)\n    \
                 store c[j] = v\n";
        let (out, log) = apply("split_edges", &kernel(k), &context());
        assert_eq!(log.applied, ["loop j, in 2 pieces"]);
        let made = text(&out);
        let lines: Vec<&str> = made.lines().map(str::trim).collect();
        let want = [
            "for j in 0..128: free",
            "x: f32 = load a[j]",
            "store c[j] = x",
            "for j_1 in 128..512: free",
            "y: f32 = load b[j_1 - 128]",
            "store c[j_1] = y",
        ];
        assert_eq!(lines[1..], want, "{made}");
    }
}
