//! `blockify_launch`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::cost::Cost;
use crate::tile::edit::{self, const_trip};
use crate::tile::numbered::Numbered;
use crate::tile::primitives::bind::{self, To};
use crate::tile::primitives::{self, LoopRef, Script, Step, hoist, sink};
use crate::tile::rules::{site_of, spread_threads};
use crate::tile::tile_nest::check_bounds;
use crate::tile::wide;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "blockify_launch",
    doc: "\
Shares the free loops of an open kernel among blocks of threads, an element for each thread.

```text
for a0 in 0..512: free                           for b in 0..7168: free block(x)
  for a1 in 0..3584: free                          for t in 0..256: free thread
    store out[a0*3584 + a1] = ...         -->        store out[(b*256 + t)//3584*3584 + (b*256 + t)%3584] = ...
```

The elements of perfectly nested free loops are numbered, the last loop fastest, so that neighbouring threads touch
neighbouring elements. What is loaded and computed for a row, before a loop over its elements, each element's thread does itself where
there are fewer rows than threads that run at once. Where threads do not divide them, the last block's threads test whether they have one. Nests that
stand side by side get blocks of their own.

Knob: `threads` (256).

Refuses kernels whose grid the launch gives, loops whose bounds depend on each other, and nests that need what another
one stores, which one block does one after the other.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        log.skipped("grid", "the launch gives it");
        return None;
    }
    let is_open = |s: &Stmt| matches!(s, Stmt::For(f) if f.is_free_unplaced());
    let placed = |s: &Stmt| matches!(s, Stmt::For(f) if f.place != Place::None);
    if p.body.iter().any(placed) && !p.body.iter().any(is_open) {
        return None;
    }
    let mut script = Script::new(p, ctx, log);
    if let Err(why) = bind::nests_apart(p) {
        script.log.skipped("grid", format!("{why}: one block does all"));
        script.step(Step::Enclose { loops: vec![], name: "b".into() }).ok()?;
        return script.done();
    }
    // Blocks of one kernel have as many threads, whatever they do.
    let fixed = p.body.iter().any(placed).then(|| spread_threads::threads(p, ctx));
    let nests: Vec<(LoopRef, String)> = p.body.iter().filter(|s| is_open(s)).filter_map(|s| named(p, s)).collect();
    for (at, site) in nests {
        match script.attempt(|script| share(script, at, fixed)) {
            Ok(blocks) => {
                let price = script.find(blocks).map_or(String::new(), |f| priced(ctx, &f));
                script.log.applied(site + &price);
            }
            Err(why) => {
                script.log.skipped(site, format!("{why}: one block does it"));
                script.step(Step::Enclose { loops: vec![at], name: "b".into() }).ok()?;
            }
        }
    }
    script.done()
}

fn named(p: &Kernel, s: &Stmt) -> Option<(LoopRef, String)> {
    let Stmt::For(f) = s else { return None };
    Some((*primitives::names_of(p, &[f]).first()?, site_of(p, s)))
}

/// Gives each element of a nest a thread, of as many as a block has; the loop over the blocks.
fn share(script: &mut Script<'_>, nest: LoopRef, fixed: Option<i64>) -> Result<LoopRef, String> {
    // A small nest needs fewer threads than a block may have, and fewer elements for each than one access takes.
    let ctx = script.ctx;
    let most = ctx.knobs.threads;
    let busy = i64::from(most) * i64::from(ctx.target.axes.workers);
    let gone = "the loop is gone";
    let mut f = script.find(nest).ok_or(gone)?;
    while let Some(inner) = sunk(&f, busy) {
        script.step(Step::Sink { at: LoopRef { axis: inner, nth: 0 } })?;
        f = script.find(nest).ok_or(gone)?;
    }
    let chain = edit::free_chain(&f);
    check_bounds(&chain)?;
    let facts = script.kernel.facts();
    let total = Numbered::new(chain.iter().copied(), &facts).total;
    let mut loops: Vec<LoopRef> = chain.iter().map(|f| LoopRef { axis: f.axis, nth: 0 }).collect();
    loops[0] = nest;
    // What one access takes is one thread's, where as many threads are left to go round.
    let innermost = chain[chain.len() - 1];
    let lanes = wide::of_body(&script.kernel, ctx, innermost);
    let groups = total.as_const().map(|n| n / lanes as i64);
    if lanes > 1 && groups.is_none_or(|n| n >= busy) {
        let name = script.kernel.axes[innermost.axis].name.clone();
        let names = ["1", "2"].map(|suffix| format!("{name}{suffix}"));
        let at = loops.pop().ok_or(gone)?;
        let alike = hoist::alike(innermost);
        let made = script.step(Step::Split { at, size: lanes as u32, names, guard: false })?;
        let [over, lane] = made[..] else { return Err(gone.into()) };
        if alike > 0 {
            script.step(Step::Hoist { at: lane })?;
        }
        script.step(Step::Unroll { loops: vec![lane] })?;
        loops.push(over);
    }
    let fused = script.step(Step::Fuse { loops, name: "n".into() })?;
    let all = *fused.first().ok_or(gone)?;
    let total = script.find(all).ok_or(gone)?.hi;
    let threads = match total.as_const() {
        Some(n) => (n.clamp(1, most.into()) as u32).next_multiple_of(ctx.target.axes.lanes).min(most),
        None => most,
    };
    let size = fixed.and_then(|n| u32::try_from(n).ok()).unwrap_or(threads);
    let made = script.step(Step::Split { at: all, size, names: ["b".into(), "t".into()], guard: true })?;
    let [b, t] = made[..] else { return Err(gone.into()) };
    script.step(Step::Bind { loops: vec![b], to: To::Block(0) })?;
    script.step(Step::Bind { loops: vec![t], to: To::Threads })?;
    Ok(b)
}

/// The loop over the elements of few rows, into which what stands before it goes. Where it is not known how many rows there are,
/// they may be few.
fn sunk(nest: &For, busy: i64) -> Option<AxisId> {
    let chain = edit::free_chain(nest);
    let rows = chain.iter().filter_map(|f| i64::try_from(const_trip(f)?).ok()).fold(1, i64::saturating_mul);
    let last = chain.last()?;
    let (Stmt::For(inner), before) = last.body.split_last()? else { return None };
    let moves = rows < busy && before.iter().all(edit::is_pure) && sink::legal(last).is_ok();
    moves.then_some(inner.axis)
}

/// What loops over blocks cost, for the trace.
fn priced(ctx: &Context, f: &For) -> String {
    let threads = f.body.iter().find_map(|s| match s {
        Stmt::For(f) => const_trip(f),
        _ => None,
    });
    threads
        .and_then(|n| Cost::of_nest(&ctx.target, &Stmt::For(Box::new(f.clone())), n))
        .map_or(String::new(), |cost| format!(": {cost}"))
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, text};

    const ADD: &str = r#"loop kernel k(x: ptr f32, y: ptr f32, n: i64) open:
  for i in 0..4: free
    for j in 0..100: free
      a: f32 = load x[i*100 + j]
      b: f32 = a + a
      store y[i*100 + j] = b
"#;

    #[test]
    fn images_of_unknown_size_are_numbered_by_pixels() {
        let k = kernel(
            r#"loop kernel k(n: i64 in 1..4096, h: i64 in 1..4096, w: i64 in 1..4096, c: ptr f32, x: ptr f32, y: ptr f32) open:
  for a0 in 0..n: free
    for a1 in 0..16: free
      s: f32 = load c[a1]
      for a2 in 0..h: free
        for a3 in 0..w: free
          v: f32 = load x[((a0*16 + a1)*h + a2)*w + a3]
          p: f32 = v * s
          store y[((a0*16 + a1)*h + a2)*w + a3] = p
"#,
        );
        let made = text(&apply("blockify_launch", &k, &gpu(&[])).0);
        assert!(made.contains("mine: i1 = test b*256 + t < n*h*w*16"), "{made}");
        assert!(made.contains("load x[b*256 + t]") && made.contains("store y[b*256 + t]"), "{made}");
        assert!(made.contains("load c[(b*256 + t)//(h*w)%16]"), "{made}");
    }

    #[test]
    fn elements_are_numbered_and_the_last_threads_tested() {
        let (out, log) = apply("blockify_launch", &kernel(ADD), &gpu(&[]));
        assert!(log.applied[0].starts_with("loop i: ") && log.applied[0].ends_with("bound by L2"), "{:?}", log.applied);
        let want = r#"tile kernel k(x: ptr f32, y: ptr f32, n: i64) open:
  for b in 0..2: free block(x)
    for t in 0..256: free thread
      mine: i1 = test b*256 + t < 400
      if mine:
        a: f32 = load x[b*256 + t]
        b_1: f32 = a + a
        store y[b*256 + t] = b_1
"#;
        assert_eq!(text(&out), want);
        let (out, _) = apply("blockify_launch", &kernel(ADD), &gpu(&["threads=32"]));
        assert!(text(&out).contains("for b in 0..13: free block(x)"), "{}", text(&out));
        let even = ADD.replace("100", "128");
        let (out, _) = apply("blockify_launch", &kernel(&even), &gpu(&[]));
        assert!(!text(&out).contains("test") && text(&out).contains("load x[b*256 + t]"), "{}", text(&out));
        let few = ADD.replace("0..4", "0..1").replace("0..100", "0..5");
        let (out, _) = apply("blockify_launch", &kernel(&few), &gpu(&[]));
        assert!(text(&out).contains("for t in 0..32: free thread"), "{}", text(&out));
        let symbolic = ADD.replace("0..100", "0..n").replace("i*100", "i*n");
        let (out, _) = apply("blockify_launch", &kernel(&symbolic), &gpu(&[]));
        let made = text(&out);
        assert!(made.contains("for b in 0..(n + 63)//64: free block(x)") && made.contains("x[b*256 + t]"), "{made}");
    }

    /// What a row begins with is done for each element where rows are few, and stays where there are many, or where it would read what
    /// the row stores.
    #[test]
    fn few_rows_are_numbered_by_their_elements() {
        let rows = |rows: &str| {
            format!(
                "loop kernel k(m: ptr f32, x: ptr f32, y: ptr f32) open:\n  for i in 0..{rows}: free\n    s: f32 = load m[i]\n    \
                 for j in 0..1000: free\n      a: f32 = load x[i*1000 + j]\n      b: f32 = a - s\n      store y[i*1000 + j] = b\n"
            )
        };
        let made = |k: &str| text(&apply("blockify_launch", &kernel(k), &gpu(&[])).0);
        let few = made(&rows("3"));
        assert!(few.contains("load m[(b*128 + t)//1000]") || few.contains("//1000]"), "{few}");
        assert!(!few.contains("for j"), "{few}");
        assert!(made(&rows("1000000")).contains("for j"));
        assert!(made(&rows("3").replace("store y", "store m")).contains("for j"));
        let inside = rows("3")
            .replace("s: f32 = load m[i]\n", "s: f32 = load m[i]\n    n: i64 = index i*7\n")
            .replace("0..1000", "0..n");
        assert!(made(&inside).contains("for j"));
    }

    #[test]
    fn what_has_one_block_says_why() {
        let follows = format!("{ADD}  for l in 0..9: free\n    c: f32 = load y[l]\n    store x[l] = c\n");
        let triangle = ADD.replace("0..100", "0..i");
        for (k, site, why) in [
            (follows, "grid", "a nest loads what another one stores: one block does all"),
            (triangle, "loop i", "the bounds of its loops depend on each other: one block does it"),
        ] {
            let (out, log) = apply("blockify_launch", &kernel(&k), &gpu(&[]));
            assert_eq!(log.skipped, [(site.to_string(), why.to_string())]);
            assert!(text(&out).contains("open:\n  for b in 0..1: free block(x)\n"), "{}", text(&out));
        }
    }
}
