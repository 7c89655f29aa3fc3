//! `blockify_launch`

use crate::base::rule::{Log, Rule};
use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::cost::Cost;
use crate::tile::edit::{self, const_trip};
use crate::tile::open::check_bounds;
use crate::tile::rules::{blockify, site_of, spread_threads};
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
    let is_open = |s: &Stmt| matches!(s, Stmt::For(f) if f.kind == LoopKind::Free && f.place == Place::None);
    let placed = |s: &Stmt| matches!(s, Stmt::For(f) if f.place != Place::None);
    if p.body.iter().any(placed) && !p.body.iter().any(is_open) {
        return None;
    }
    let mut kernel = p.clone();
    if let Err(why) = blockify::check(p) {
        log.skipped("grid", format!("{why}: one block does all"));
        kernel.body = Vec::from_iter(blockify::together(&mut kernel, p.body.clone()));
        return Some(kernel);
    }
    // Blocks of one kernel have as many threads, whatever they do.
    let fixed = p.body.iter().any(placed).then(|| spread_threads::threads(p, ctx));
    let body = std::mem::take(&mut kernel.body);
    for s in body {
        let Stmt::For(f) = &s else {
            kernel.body.push(s);
            continue;
        };
        if !is_open(&s) {
            kernel.body.push(s);
            continue;
        }
        let site = site_of(p, &s);
        let made = match share(&mut kernel, f, ctx, fixed) {
            Ok(made) => {
                log.applied(site + &priced(ctx, &made));
                Some(made)
            }
            Err(why) => {
                log.skipped(site, format!("{why}: one block does it"));
                blockify::together(&mut kernel, vec![s])
            }
        };
        kernel.body.extend(made);
    }
    Some(kernel)
}

/// A nest with an element for each thread, of as many as a block has.
fn share(kernel: &mut Kernel, nest: &For, ctx: &Context, fixed: Option<i64>) -> Result<Stmt, String> {
    // A small nest needs fewer threads than a block may have, and fewer elements for each than one access takes.
    let most = ctx.knobs.threads;
    let busy = i64::from(most) * i64::from(ctx.target.axes.workers);
    let sunk = sunk(nest, busy);
    let chain = edit::free_chain(sunk.as_ref().unwrap_or(nest));
    check_bounds(&chain)?;
    let mut facts: Facts = kernel.facts();
    let enough = |n: Option<i64>| n.is_none_or(|n| n >= busy);
    let (numbered, body) = wide::numbered(kernel, ctx, &chain, &facts, &enough).ok_or("it is empty")?;
    let total = &numbered.total;
    let threads = match total.as_const() {
        Some(n) => (n.clamp(1, most.into()) as u32).next_multiple_of(ctx.target.axes.lanes).min(most),
        None => most,
    };
    let threads = fixed.unwrap_or(i64::from(threads));
    let blocks = simplify(&Ix::ceil_div(total.clone(), Ix::Const(threads)), &facts);
    let b = kernel.axes.push(Axis { name: "b".into(), from: None });
    let t = kernel.axes.push(Axis { name: "t".into(), from: None });
    facts.set_axis(b, &Ix::Const(0), &blocks);
    facts.set_axis(t, &Ix::Const(0), &Ix::Const(threads));
    let own = Ix::add(Ix::mul(Ix::Axis(b), Ix::Const(threads)), Ix::Axis(t));
    let body = numbered.body(kernel, body, &own, threads, &facts);
    let thread = edit::loop_with(t, Ix::Const(threads), body, |f| f.place = Place::Thread);
    Ok(edit::block_loop(b, 0, blocks, vec![thread]))
}

/// The nest with what stands before a loop over the elements of its few rows inside that loop; `None` where it has no such loop. Where
/// it is not known how many rows there are, they may be few.
fn sunk(nest: &For, busy: i64) -> Option<For> {
    let chain = edit::free_chain(nest);
    let rows = chain.iter().filter_map(|f| i64::try_from(const_trip(f)?).ok()).fold(1, i64::saturating_mul);
    let (Stmt::For(inner), before) = chain.last()?.body.split_last()? else { return None };
    let stored = walk::effects(&nest.body).stores;
    let again = |s: &Stmt| edit::is_pure(s) && !matches!(s, Stmt::Load { mem, .. } if stored.contains(&mem.base));
    let moves = inner.kind == LoopKind::Free && inner.place == Place::None && rows < busy && before.iter().all(again);
    let ends = [&inner.lo, &inner.hi, &inner.step];
    let defined = |v: &ValId| before.iter().any(|s| walk::def(s) == Some(*v));
    let follows = ends.iter().any(|ix| ix.any_leaf(&mut |l| matches!(l, Ix::Val { val, .. } if defined(val))));
    if before.is_empty() || !moves || follows {
        return None;
    }
    let mut out = (**inner).clone();
    out.body.splice(0..0, before.iter().cloned());
    for f in chain.iter().rev() {
        let body = vec![Stmt::For(Box::new(out))];
        out = For { body, ..(*f).clone() };
    }
    // The loop inside may have rows of its own.
    self::sunk(&out, busy).or(Some(out))
}

/// What loops over blocks cost, for the trace.
fn priced(ctx: &Context, blocks: &Stmt) -> String {
    let Stmt::For(f) = blocks else { return String::new() };
    let threads = f.body.iter().find_map(|s| match s {
        Stmt::For(f) => const_trip(f),
        _ => None,
    });
    threads.and_then(|n| Cost::of_nest(&ctx.target, blocks, n)).map_or(String::new(), |cost| format!(": {cost}"))
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
