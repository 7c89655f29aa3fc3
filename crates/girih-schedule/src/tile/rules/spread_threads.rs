//! `spread_threads`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::primitives::bind::{To, spread};
use crate::tile::primitives::{Script, Step};
use crate::tile::rules::site_of_loop;
use crate::tile::{Context, edit};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "spread_threads",
    doc: "\
Spreads what a block does over its threads: each nest of free loops on its own, element by element. Tiles go into memory
that the threads share; what is done once is done by the first thread, and what it got is passed on to the others that need it.

```text
local x: f32[1024]                               local x: f32[1024] shared
for j in 0..1024: free                           for t in 0..256: free thread
  v = load src[j]                                  for e in 0..4: free
  x[j] = v                                -->        v = load src[e*256 + t]
                                                     x[e*256 + t] = v
old = atomic add count[0], 1                     local once: i32[1] shared
                                                 for t in 0..1: free thread
                                                   old = atomic add count[0], 1
                                                   once[0] = old
                                                 old = once[0]
```

Scalars, and reductions into them, are computed by every thread alike. Barriers are not this rule's: they follow from who
reads and writes what.

Knob: `threads` (256).

Refuses nothing; says which nests it spreads.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let (loops, sites): (_, Vec<String>) = spread::nests(p).into_iter().map(|(at, f)| (at, site_of_loop(p, f))).unzip();
    let threads = u32::try_from(threads(p, ctx)).ok()?;
    let mut script = Script::new(p, ctx, log);
    // It refuses where nothing is left to be shared.
    script.try_step(Step::Bind { loops, to: To::Shared(threads) }).ok()?;
    sites.into_iter().for_each(|site| script.log.applied(site));
    script.done()
}

/// Threads of a block: as many as another rule chose already, or whole warps that its largest nest can use.
pub(in crate::tile) fn threads(p: &Kernel, ctx: &Context) -> i64 {
    let (mut chosen, mut most) = (None, 1u32);
    walk::visit(&p.body, &mut |s| {
        let Stmt::For(f) = s else { return };
        if f.place == Place::Thread {
            let own = f.combine.as_ref().map_or(f.hi.as_const().unwrap_or(0), |c| c.ways.into());
            chosen = chosen.max(Some(own));
        } else if f.is_free_unplaced() {
            let elements = edit::free_chain(f).iter().try_fold(1i64, |n, f| n.checked_mul(f.hi.as_const()?));
            let elements = elements.and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
            most = most.max(elements);
        }
    });
    let useful = most.min(ctx.knobs.threads).next_multiple_of(ctx.target.axes.lanes);
    chosen.unwrap_or(useful.into())
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, text};

    #[test]
    fn nests_are_spread_and_tiles_are_shared() {
        let k = r#"loop kernel k(src: ptr f32, dst: ptr f32):
  local x: f32[8, 100]
  for i in 0..8: free
    for j in 0..100: free
      v: f32 = load src[bx*800 + i*100 + j]
      x[i, j] = v
  for i1 in 0..8: free
    local s: f32
    s = 0.0
    for j1 in 0..100: reduce combine add(s) from -0.0
      w: f32 = x[i1, j1]
      a: f32 = s
      b: f32 = a + w
      s = b
    c: f32 = s
    store dst[bx*8 + i1] = c
"#;
        let (out, log) = apply("spread_threads", &kernel(k), &gpu(&[]));
        assert_eq!(log.applied, ["loop i", "loop i1"]);
        let want = r#"tile kernel k(src: ptr f32, dst: ptr f32):
  local x: f32[8, 100] shared
  for t in 0..256: free thread
    for e in 0..4: free
      mine: i1 = test e*256 + t < 800
      if mine:
        v: f32 = load src[bx*800 + e*256 + t]
        x[(e*256 + t)//100, (e*256 + t)%100] = v
  for t_1 in 0..8: free thread
    local s: f32
    s = 0.0
    for j1 in 0..100: reduce combine add(s) from -0.0
      w: f32 = x[t_1, j1]
      a: f32 = s
      b: f32 = a + w
      s = b
    c: f32 = s
    store dst[bx*8 + t_1] = c
"#;
        assert_eq!(text(&out), want);
        let (out, _) = apply("spread_threads", &kernel(k), &gpu(&["threads=32"]));
        assert!(text(&out).contains("for e in 0..7: free\n      mine"), "{}", text(&out));
    }

    #[test]
    fn what_is_done_once_is_passed_on() {
        let k = r#"loop kernel k(c: ptr i32, n: i32):
  loop:
    old: i32 = atomic add c[0], 1 relaxed
    more: i1 = old < n
    if more:
      store c[1] = old
    else:
      break
"#;
        let (out, _) = apply("spread_threads", &kernel(k), &gpu(&[]));
        let want = r#"tile kernel k(c: ptr i32, n: i32):
  loop:
    local once: i32[1] shared
    for t in 0..1: free thread
      old: i32 = atomic add c[0], 1 relaxed
      once[0] = old
    old_1: i32 = once[0]
    more: i1 = old_1 < n
    if more:
      for t_1 in 0..1: free thread
        store c[1] = old_1
    else:
      break
"#;
        assert_eq!(text(&out), want);
    }
}
