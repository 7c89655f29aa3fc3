//! `reload_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::primitives::recompute::Recomputed;
use crate::tile::primitives::{Script, Step};
use crate::tile::target::{Gpu, MemoryKind};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "reload_rows",
    doc: "\
Streams a row that does not fit shared memory: each pass over it loads and computes the elements again.

```text
local t: f32[65536]                              m = -inf
m = -inf                                         for i in 0..65536: reduce combine max(m)
for i in 0..65536: reduce combine max(m)           x: f32 = load src[i]
  x: f32 = load src[i]                             m <- max(x, m)
  t[i] = x                                       for j in 0..65536: reduce combine add(s)
  m <- max(x, m)                          -->      x_1: f32 = load src[j]
for j in 0..65536: reduce combine add(s)           e: f32 = exp(x_1 - m)
  e: f32 = exp(t[j] - m)                           s <- e + s
  t[j] = e                                       for k in 0..65536: free
  s <- e + s                                       x_2: f32 = load src[k]
for k in 0..65536: free                            e_1: f32 = exp(x_2 - m)
  store dst[k] = t[k] / s                          store dst[k] = e_1 / s
```

Refuses rows whose computation costs more than a round trip to memory, that are not written as a whole, or that depend on values that
change between the passes: arrays that the kernel may store to, and sums.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let gpu = ctx.target.gpu?;
    let room = ctx.target.bytes_of(MemoryKind::Shared);
    let is_long = |b: &Buf| b.bytes() > room && b.space == Space::Scratch;
    let mut rows = vec![];
    locals(&p.body, &mut rows);
    rows.retain(|buf| is_long(&p.bufs[*buf]));
    let mut script = Script::new(p, ctx, log);
    // A row that is made of another one follows it.
    loop {
        let mut left = vec![];
        for buf in &rows {
            let b = &p.bufs[*buf];
            let (name, bytes) = (b.name.clone(), b.bytes());
            let made = Recomputed::of(&script.kernel, ctx, *buf).and_then(|made| {
                pays(&made, b, &gpu)?;
                script.step(Step::Recompute { buf: *buf })?;
                Ok(made.reads)
            });
            match made {
                Ok(reads) => {
                    let place = if reads == 1 { "pass" } else { "passes" };
                    script.log.applied(format!("{name}: {bytes} bytes, made again in {reads} {place}"));
                }
                Err(why) => left.push((*buf, name, why)),
            }
        }
        if left.len() == rows.len() {
            left.into_iter().for_each(|(_, name, why)| script.log.skipped(name, why));
            return script.done();
        }
        rows = left.into_iter().map(|(buf, ..)| buf).collect();
    }
}

/// The buffers that statements declare, inner ones first.
fn locals(body: &[Stmt], out: &mut Vec<BufId>) {
    body.iter().flat_map(walk::bodies).for_each(|inner| locals(inner, out));
    out.extend(body.iter().filter_map(|s| if let Stmt::Local { buf } = s { Some(*buf) } else { None }));
}

/// Refuses a row whose elements cost more to make again than to keep.
fn pays(made: &Recomputed, row: &Buf, gpu: &Gpu) -> Result<(), String> {
    let cost: f64 = made.again.iter().map(|s| cost_of(gpu, s)).sum();
    let moved = f64::from(made.reads + made.writes) * row.element_bytes() as f64;
    match cost > moved {
        true => {
            let cost = cost.ceil();
            Err(format!("to make an element again costs as much as {cost} bytes, and to keep it {moved}"))
        }
        false => Ok(()),
    }
}

/// The cost of a statement, in bytes moved.
fn cost_of(gpu: &Gpu, s: &Stmt) -> f64 {
    match s {
        Stmt::Load { mem, .. } => mem.elem.bytes() as f64,
        // The table of operations counts for a processor, which does some two operations for each byte.
        Stmt::Let { op, .. } => 2.0 * op.cost() as f64 * gpu.bandwidth / gpu.peak,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::base::launch::Assumptions;
    use crate::tile::Context;
    use crate::tile::tests::{SOFTMAX, apply, gpu, kernel, refusals, text};

    fn long(text: &str) -> String {
        text.replace("1024", "65536")
    }

    fn apart() -> Context {
        Context { assume: Assumptions { no_wrap: true, no_alias: true }, ..gpu(&[]) }
    }

    #[test]
    fn each_pass_loads_the_row() {
        let (out, log) = apply("reload_rows", &kernel(&long(SOFTMAX)), &apart());
        assert_eq!(log.applied, ["x: 262144 bytes, made again in 3 passes"]);
        let made = text(&out);
        assert!(!made.contains("f32[65536]"), "{made}");
        assert_eq!(made.matches("load src[").count(), 3, "{made}");
        assert_eq!(made.matches("exp(").count(), 2, "{made}");
    }

    #[test]
    fn a_row_that_fits_stays() {
        assert!(apply("reload_rows", &kernel(SOFTMAX), &apart()).1.applied.is_empty());
    }

    #[test]
    fn what_may_change_is_kept() {
        let why = "x: the kernel may store to what its elements are loaded from";
        assert_eq!(refusals("reload_rows", &long(SOFTMAX), &gpu(&[])), [why]);
        let in_place = long(SOFTMAX).replace("store dst[", "store src[");
        assert_eq!(refusals("reload_rows", &in_place, &apart()), [why]);
        // The sum is not complete where the second pass writes.
        let sums = long(SOFTMAX).replace("d: f32 = v2 - top", "part: f32 = s\n    d: f32 = v2 - part");
        assert_eq!(refusals("reload_rows", &sums, &apart()), ["x: `s`, which its elements are made of, changes"]);
    }

    #[test]
    fn a_row_that_is_made_of_another_one_follows_it() {
        // `u` is `t` from its other end, and the last pass writes `t` anew.
        let made = r#"loop kernel k(src: ptr f32, dst: ptr f32):
  local u: f32[65536]
  local t: f32[65536]
  for i in 0..65536: free
    x: f32 = load src[i]
    t[i] = x
  for j in 0..65536: free
    v: f32 = t[65535 - j]
    u[j] = v
  for k in 0..65536: free
    a: f32 = u[k]
    b: f32 = t[k]
    c: f32 = a + b
    t[k] = c
    store dst[k] = c
"#;
        let (out, log) = apply("reload_rows", &kernel(made), &apart());
        let once = |name| format!("{name}: 262144 bytes, made again in ");
        assert_eq!(log.applied, [once("t") + "2 passes", once("u") + "1 pass"]);
        let out = text(&out);
        assert!(out.contains("load src[65535 - k]") && out.contains("load src[k]") && !out.contains("local"), "{out}");
    }

    /// The rows of `t` in turn, each written before it is read.
    const ROWS: &str = r#"loop kernel k(src: ptr f32, dst: ptr f32):
  local t: f32[4, 65536]
  for i in 0..4: serial
    for j in 0..65536: free
      x: f32 = load src[i*65536 + j]
      t[i, j] = x
    for k in 0..65536: free
      v: f32 = t[i, 65535 - k]
      store dst[i*65536 + k] = v
"#;

    #[test]
    fn rows_in_turn_are_made_again() {
        let (out, log) = apply("reload_rows", &kernel(ROWS), &apart());
        assert_eq!(log.applied, ["t: 1048576 bytes, made again in 1 pass"]);
        assert!(text(&out).contains("load src[i*65536 + (65535 - k)]"), "{}", text(&out));
        assert_eq!(
            refusals("reload_rows", ROWS, &gpu(&[])),
            ["t: the kernel may store to what its elements are loaded from"]
        );
        // Row 0 is complete, the others are not.
        let other = ROWS.replace("t[i, 65535 - k]", "t[0, k]");
        assert_eq!(refusals("reload_rows", &other, &apart()), ["t: a pass reads other elements than it writes"]);
    }

    #[test]
    fn what_costs_more_than_memory_is_kept() {
        let slow = long(SOFTMAX)
            .replace("e: f32 = exp(d)", "g: f32 = lgamma(d)\n    h: f32 = lgamma(g)\n    e: f32 = lgamma(h)");
        let why = refusals("reload_rows", &slow, &apart());
        assert!(why.len() == 1 && why[0].starts_with("x: to make an element again costs as much as "), "{why:?}");
    }
}
