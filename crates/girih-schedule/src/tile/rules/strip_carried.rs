//! `strip_carried`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::heuristics::{named, strip_carried::*};
use crate::tile::primitives::strip::{self, Carried};
use crate::tile::primitives::{LoopRef, Step, run};
use crate::tile::rules::axis_site;
use crate::tile::rules::vectorise::widest;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "strip_carried",
    doc: "\
Keeps an array that a loop carries in registers, a strip of it at a time.

A program that sums a row in pieces adds each piece to an array and sums up the array at the end. Without this rule the array lies in
memory: it is filled, then read and written in each iteration, and read again.

```text
local t: f32[1024]                               local s_parts: f32[128] register(16)
for i in 0..1024: free                           s_parts = -0.0
  t[i] = 0.0                                     for i1 in 0..8: reduce
for k in 0..n step 1024: serial                    local t_r: f32[128] register(16)
  for i in 0..1024: free                 -->       t_r = 0.0
    t[i] <- t[i] + x[k + i]                        for k in 0..n step 1024: serial
for i in 0..1024: reduce combine add(s)              t_r <- t_r + x[k + i1*128 ..]
  s <- s + t[i]                                    s_parts <- s_parts + t_r
                                                 s <- s + s_parts
```

Every element is computed in the same order as before; only the reduction of the array is reassociated, as it may be. A strip reads
memory of all pieces, which lie far apart, so a loop of many iterations stays as it is. If only the launch knows how many there are, the
kernel has both forms and a test. If other statements read the array, each strip is written to it behind the loop.

Knob: `strip` (0 turns the rule off).

Refuses a loop that stores, and a loop whose elements need others of the iteration before.
",
    run: |p, ctx, log| run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    if !ctx.knobs.strip {
        log.skipped("kernel", "knob off");
        return vec![];
    }
    let mut steps = vec![];
    look(&p.body, &mut vec![], &mut |list, place, fails| {
        let (Stmt::For(f), Some(found)) = (&list[place], Carried::of(p, list, place)) else { return };
        let chosen = found.map_err(String::from).and_then(|found| choose(p, ctx, f, &found, fails));
        steps.extend(log.outcome(axis_site(p, f.axis), chosen));
    });
    steps
}

/// Is shown a place in a list of statements, and the conditions that fail there.
type Visitor<'a> = &'a mut dyn FnMut(&[Stmt], usize, &[Cond]);

/// Shows each place in each list of statements.
fn look(list: &[Stmt], fails: &mut Vec<Cond>, f: Visitor<'_>) {
    for (place, s) in list.iter().enumerate() {
        f(list, place, fails);
        let tested = |v: &Opnd| list[..place].iter().find(|s| walk::def(s).map(Opnd::Val) == Some(*v));
        match s {
            Stmt::If { cond, then, els } => {
                look(then, fails, f);
                let known = fails.len();
                if let Some(Stmt::Test { mask: Mask { conds, vals }, .. }) = tested(cond)
                    && let ([one], []) = (&conds[..], &vals[..])
                {
                    fails.push(one.clone());
                }
                look(els, fails, f);
                fails.truncate(known);
            }
            s => walk::bodies(s).into_iter().for_each(|inner| look(inner, fails, f)),
        }
    }
}

/// The strips of a loop that carries arrays.
fn choose(p: &Kernel, ctx: &Context, f: &For, found: &Carried, fails: &[Cond]) -> Result<Step, String> {
    let bytes = found.inner.body.iter().map(|s| widest(p, s)).max().unwrap_or(1);
    let lanes = ctx.target.lanes_of(bytes.into());
    let lanes = ctx.knobs.lanes.map_or(lanes, |n| 1 << n.max(1).ilog2());
    if lanes < 2 || found.elements % i64::from(lanes) != 0 {
        return Err(format!("vectors of {lanes} lanes do not divide its {} elements", found.elements));
    }
    // Half of the registers hold strips and partial results.
    let arrays = (found.arrays.len() + found.folds.len()) as u32;
    let room = (ctx.target.vector.registers / 2 / arrays).min(MOST_VECTORS);
    let room = room.min((MOST_STATEMENTS / walk::size(&found.inner.body).max(1)) as u32);
    let fits = |n: &u32| found.elements % i64::from(lanes * n) == 0;
    let vectors = (0..5).rev().map(|bits| 1 << bits).filter(|n| *n <= room).find(fits);
    let vectors = vectors.ok_or("its arrays take more registers than there are")?;
    let whole = found.elements == i64::from(lanes * vectors);
    let trips = match (f.lo.as_const(), f.hi.as_const(), f.step.as_const()) {
        (Some(lo), Some(hi), Some(step @ 1..)) => Some(hi.saturating_sub(lo).max(0).saturating_add(step - 1) / step),
        _ => None,
    };
    let most = match trips {
        _ if whole => 0,
        Some(n) if n > MOST_ITERATIONS.into() => {
            return Err(format!("a strip would go through {n} iterations, more than {}", named!(MOST_ITERATIONS)));
        }
        Some(_) => 0,
        None if strip::at_most(f, MOST_ITERATIONS).is_none_or(|few| fails.contains(&few)) => {
            return Err(format!("it has more than {} iterations", named!(MOST_ITERATIONS)));
        }
        None => MOST_ITERATIONS,
    };
    let at = LoopRef { axis: f.axis, nth: 0 };
    Ok(Step::Strip { at, lanes, vectors, most })
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    /// A row of pieces that are added to an array, which is summed up.
    fn pieces(trips: &str) -> String {
        format!(
            "loop kernel k(x: ptr f32, y: ptr f32, n: i32):\n  local t: f32[1024]\n  for i in 0..1024: free\n    t[i] = 0.0\n  \
             for k in {trips}: serial\n    for j in 0..1024: free\n      a: f32 = load x[k + j] where k + j < n else 0.0\n      \
             b: f32 = t[j]\n      c: f32 = a + b\n      t[j] = c\n  local s: f32\n  s = -0.0\n  \
             for l in 0..1024: reduce combine add(s) from -0.0\n    d: f32 = t[l]\n    e: f32 = s\n    g: f32 = d + e\n    s = g\n  \
             z: f32 = s\n  store y[bx] = z\n"
        )
    }

    fn line(program: &str) -> String {
        let (_, log) = apply("strip_carried", &kernel(program), &context());
        log.steps.join("; ")
    }

    #[test]
    fn the_launch_says_how_many_pieces_there_are() {
        assert_eq!(line(&pieces("0..n step 1024")), "strip k by 16 x 8 x 8");
        let (out, _) = apply("strip_carried", &kernel(&pieces("0..n step 1024")), &context());
        assert!(text(&out).contains("few: i1 = test n <= 8192"), "{}", text(&out));
        assert_eq!(line(&pieces("0..4096 step 1024")), "strip k by 16 x 8");
        // An array that fits one strip is in registers for any number of iterations.
        assert_eq!(line(&pieces("0..n step 1024").replace("1024", "64")), "strip k by 16 x 4");
    }

    #[test]
    fn an_array_that_others_read_is_written() {
        let read = pieces("0..n step 1024").replace("  z: f32 = s", "  z: f32 = t[bx]");
        let (out, log) = apply("strip_carried", &kernel(&read), &context());
        assert_eq!(log.steps, ["strip k by 16 x 8 x 8"]);
        let made = text(&out);
        assert!(made.contains("  local t: f32[1024]\n") && made.contains("t[j1*128 + j2_3] = t_1\n"), "{made}");
    }

    #[test]
    fn more_arrays_have_shorter_strips() {
        let two = pieces("0..n step 1024")
            .replace("  for k in", "  local q: f32[1024]\n  for o in 0..1024: free\n    q[o] = 0.0\n  for k in")
            .replace("      b: f32", "      p: f32 = q[j]\n      r: f32 = fma(a, a, p)\n      q[j] = r\n      b: f32")
            .replace(
                "  z: f32 = s",
                "  local u: f32\n  u = -0.0\n  for v in 0..1024: reduce combine add(u) from -0.0\n    d1: f32 = q[v]\n    \
                 e1: f32 = u\n    g1: f32 = d1 + e1\n    u = g1\n  w: f32 = u\n  store y[bx + 1] = w\n  z: f32 = s",
            );
        assert_eq!(line(&two), "strip k by 16 x 4 x 8");
    }

    #[test]
    fn what_does_not_pay_stays() {
        let site = |why: &str| [format!("loop k: {why}")];
        let long = refusals("strip_carried", &pieces("0..65536 step 1024"), &context());
        assert_eq!(long, site("a strip would go through 64 iterations, more than 8 (MOST_ITERATIONS)"));
        let odd = pieces("0..n step 1000").replace("1024", "1000");
        let why = "vectors of 16 lanes do not divide its 1000 elements";
        assert_eq!(refusals("strip_carried", &odd, &context()), site(why));
        let in_part = pieces("0..n step 1024").replace("t[j] = c", "t[j] = c\n      store y[j] = c");
        let why = "its elements are not only loaded, computed and carried";
        assert_eq!(refusals("strip_carried", &in_part, &context()), site(why));
        let off = with_knobs(&["strip=0"]);
        assert_eq!(refusals("strip_carried", &pieces("0..n step 1024"), &off), ["kernel: knob off"]);
    }
}
