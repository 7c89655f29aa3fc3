//! `cooperative_reduce`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::{cluster_block, walk};
use crate::tile::Context;
use crate::tile::contraction::prev_power;
use crate::tile::cost::{self, Cost};
use crate::tile::edit;
use crate::tile::heuristics::cooperative_reduce::{GUESS, MOST_EACH, SHORTEST};
use crate::tile::knobs::Knobs;
use crate::tile::primitives::bind::{self, To};
use crate::tile::primitives::{self, Script, Step};
use crate::tile::rows;
use crate::tile::rules::{axis_site, cluster_rows};
use crate::tile::target::MemoryKind;
use crate::tile::tile_nest::check_bounds;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "cooperative_reduce",
    doc: "\
Gives a reduction to all threads of a block: thread t of T folds the elements t, t + T, t + 2*T, ..., then the threads combine their
partial results in a tree, in a fixed order. In an open kernel each row gets a block for that.

```text
for i in 0..512: free                            for b in 0..512: free block(x)
  local s = 0.0                                    local s = 0.0
  for k in 0..3584: reduce combine add(s)          for k in 0..3584: reduce thread combine add(s) from 0.0 x 256
    s <- x[i, k] + s                      -->        s <- x[b, k] + s
  for j in 0..3584: free                           for j in 0..3584: free
    y[i, j] = x[i, j] / s                            y[b, j] = x[b, j] / s
```

The other work of a row is left to `spread_threads`.

A row gets one warp, whose lanes exchange their partial results, or up to `threads` threads, which combine them in shared memory:
whichever takes less by the target's numbers, if the number of rows is known. If there are too few rows for the multiprocessors,
`split_reduction` has cut them before, or `cluster_rows` has given them to clusters, and each block folds its part. If a row and the
tiles that are made of it take more than half of the shared memory, its block is alone and gets all threads that a block can have.

Knob: `threads` (256), the most for others; fewer where the reduction is short.

Refuses reductions whose order is fixed, that are shorter than a warp, or that stand in a contraction.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let lanes = ctx.target.axes.lanes;
    let most = longest(&p.body, lanes).clamp(1, ctx.target.axes.threads.into()) as u32;
    let asked = if is_alone(p, ctx, most) { ctx.target.axes.threads } else { ctx.knobs.threads };
    let threads = most.next_power_of_two().min(prev_power(asked)).max(lanes);
    let clusters = p.body.iter().find_map(|s| walk::bodies(s).into_iter().find_map(|body| cluster_block::blocks(body)));
    let threads = match clusters {
        Some(blocks) => threads.min(prev_power(cluster_rows::MOST_THREADS / blocks)).max(lanes),
        None => cheapest(p, ctx, threads),
    };
    let mut script = Script::new(p, ctx, log);
    if p.open && clusters.is_none() && !rows_to_blocks(&mut script, p, lanes) {
        return None;
    }
    let (kernel, log) = (script.kernel.clone(), &mut *script.log);
    let mut loops = vec![];
    primitives::look(&kernel, &mut |at, f| {
        match (f.kind, f.place) {
            (LoopKind::Reduce, Place::None) => {}
            // Each iteration is one thread's.
            (LoopKind::Free, Place::None) | (_, Place::Thread) => return false,
            _ => return true,
        }
        let site = axis_site(&kernel, f.axis);
        match refusal(f, lanes) {
            Some(why) => log.skipped(site, why),
            None => {
                log.applied(site);
                loops.push(at);
            }
        }
        false
    });
    if loops.is_empty() {
        return script.done();
    }
    if let Err(why) = script.step(Step::Bind { loops, to: To::Shared(threads) }) {
        script.log.skipped("threads", why);
    } else if script.kernel.open {
        for s in script.kernel.body.iter().filter(|s| edit::over_blocks(s).is_some()) {
            if let Some(cost) = Cost::of_nest(&ctx.target, s, threads.into()) {
                script.log.applied(cost.to_string());
            }
        }
    }
    script.done()
}

/// True if rows of `length` elements, and the tiles that are made of them, leave a multiprocessor no room for a second block.
fn is_alone(p: &Kernel, ctx: &Context, length: u32) -> bool {
    // The tiles of a tile program may stay in registers.
    if !p.open || ctx.knobs.threads < Knobs::default().threads {
        return false;
    }
    let mut passes: BTreeMap<ValId, (u64, u64)> = BTreeMap::new();
    walk::visit(&p.body, &mut |s| {
        let Stmt::For(f) = s else { return };
        for s in &f.body {
            if let Stmt::Load { mem, .. } = s
                && mem.index.has_axis(f.axis)
            {
                let (count, bytes) = passes.entry(mem.base).or_insert((0, mem.elem.bytes()));
                (*count, *bytes) = (*count + 1, mem.elem.bytes());
            }
        }
    });
    let rows: u64 = passes.values().filter(|(count, _)| *count > 1).map(|(_, bytes)| bytes * u64::from(length)).sum();
    let tiles: u64 = p.bufs.values().filter(|b| !b.shape.is_empty()).map(Buf::bytes).sum();
    (rows + tiles) * 2 > ctx.target.bytes_of(MemoryKind::Shared)
}

/// The threads for a row, a warp or more, that take the least time where it is known how many rows there are.
fn cheapest(p: &Kernel, ctx: &Context, most: u32) -> u32 {
    let lanes = ctx.target.axes.lanes;
    let of_nest = |s: &Stmt| {
        let Stmt::For(f) = s else { return None };
        let rows = edit::free_chain(f).iter().try_fold(1u64, |n, f| n.checked_mul(edit::const_trip(f)?));
        Some((rows.filter(|_| f.kind == LoopKind::Free)?, longest(std::slice::from_ref(s), lanes)))
    };
    // Other nests, which are not reduced, do not matter.
    let (rows, length) = p.body.iter().filter_map(of_nest).fold((0, 0), |(n, most), (rows, length)| match length {
        0 => (n, most),
        _ => (n + rows, most.max(length)),
    });
    let length = u64::try_from(length).unwrap_or(0);
    let counts = std::iter::successors(Some(most), |n| Some(n / 2)).take_while(|n| *n >= lanes);
    let fits = counts.filter(|n| *n == most || length.div_ceil(u64::from(*n)) <= MOST_EACH);
    let priced = fits.filter_map(|n| Some((n, cost::of_rows(&ctx.target, rows, length, n.into())?)));
    match rows {
        0 => most,
        _ => priced.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(most, |(n, _)| n),
    }
}

/// Why one thread does a reduction alone.
pub fn refusal(f: &For, lanes: u32) -> Option<&'static str> {
    if let Err(why) = bind::can_share(f) {
        return Some(why);
    }
    (extent(f) < SHORTEST * i64::from(lanes)).then_some("it is shorter than two warps")
}

fn extent(f: &For) -> i64 {
    match (&f.lo, &f.hi) {
        (Ix::Const(lo), Ix::Const(hi)) => hi - lo,
        _ => GUESS,
    }
}

/// The first reduction of a kernel that does nothing for rows: it has no other loops beside what stores their results.
fn alone(p: &Kernel, lanes: u32) -> Option<&For> {
    let mut loops = p.body.iter().filter(|s| !walk::bodies(s).is_empty());
    let folds = |s: &Stmt| matches!(s, Stmt::For(f) if f.kind == LoopKind::Reduce && f.place == Place::None && refusal(f, lanes).is_none());
    let all = loops.clone().all(folds);
    match loops.next() {
        Some(Stmt::For(f)) if all => Some(f),
        _ => None,
    }
}

/// The extent of the longest reduction that threads can share.
fn longest(body: &[Stmt], lanes: u32) -> i64 {
    let shared = |f: &&For| f.kind == LoopKind::Reduce && refusal(f, lanes).is_none();
    walk::loops(body).filter(shared).map(extent).max().unwrap_or(0).max(0)
}

/// Gives each row of the nests of free loops around such a reduction a block; whether there is one.
fn rows_to_blocks(script: &mut Script<'_>, p: &Kernel, lanes: u32) -> bool {
    if let Some(f) = alone(p, lanes) {
        script.log.applied(format!("{}, one block", axis_site(p, f.axis)));
        return script.step(Step::Enclose { loops: vec![], name: "b".into() }).is_ok();
    }
    rows::to_blocks(script, p, &mut |chain, body, log| {
        let reduces = |s: &Stmt| matches!(s, Stmt::For(r) if r.kind == LoopKind::Reduce && refusal(r, lanes).is_none());
        if !body.iter().any(reduces) {
            return false;
        }
        let site = axis_site(p, chain[0].axis);
        match check_bounds(chain) {
            Ok(()) => log.applied(format!("{site}, a block each")),
            Err(why) => {
                log.skipped(site, why);
                return false;
            }
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const ROWS: &str = r#"loop kernel k(x: ptr f32, y: ptr f32) open:
  for i in 0..4: free
    for h in 0..3: free
      local s: f32
      s = 0.0
      for k in 0..1000: reduce combine add(s) from -0.0
        v: f32 = load x[i*3000 + h*1000 + k]
        a: f32 = s
        b: f32 = a + v
        s = b
      for j in 0..1000: free
        w: f32 = load x[i*3000 + h*1000 + j]
        c: f32 = s
        d: f32 = w / c
        store y[i*3000 + h*1000 + j] = d
"#;

    #[test]
    fn rows_get_blocks_and_threads_share_them() {
        let (out, log) = apply("cooperative_reduce", &kernel(ROWS), &gpu(&[]));
        assert_eq!(
            log.applied,
            [
                "loop i, a block each",
                "loop k",
                "12 blocks of 128 threads on 132 multiprocessors, room for 8 on each, 9 % busy; 144 kB fetched and stored \
                 in 95 ns, 96 kB of arrays in 29 ns; 24 kflop in 3.9 ns: bound by L2",
            ]
        );
        let made = text(&out);
        assert!(made.contains("  for b in 0..12: free block(x)\n    local s: f32\n"), "{made}");
        assert!(made.contains("for k in 0..1000: reduce thread combine add(s) from -0.0 x 128\n"), "{made}");
        assert!(made.contains("load x[b*1000 + k]"), "{made}");
        let (out, _) = apply("cooperative_reduce", &kernel(ROWS), &gpu(&["threads=96"]));
        assert!(text(&out).contains("x 64\n"), "{}", text(&out));
        let short = ROWS.replace("0..1000", "0..100");
        let (out, _) = apply("cooperative_reduce", &kernel(&short), &gpu(&[]));
        assert!(text(&out).contains("x 32\n"), "{}", text(&out));
    }

    /// The more rows there are, the fewer threads share one, down to one warp; a thread has no more than 32 elements of a row.
    #[test]
    fn rows_get_a_warp_or_more_by_cost() {
        let threads = |rows: u32, length: u32| {
            let rows = ROWS.replace("0..4", &format!("0..{rows}")).replace("0..3:", "0..1:");
            let made =
                text(&apply("cooperative_reduce", &kernel(&rows.replace("1000", &length.to_string())), &gpu(&[])).0);
            let at = made.find(" from -0.0 x ").map(|at| at + " from -0.0 x ".len());
            at.and_then(|at| made[at..].lines().next()?.parse::<u32>().ok()).unwrap_or_else(|| panic!("{made}"))
        };
        for (rows, length, wanted) in [(100_000, 1000, 32), (100_000, 4000, 128), (100_000, 100, 32), (8, 100_000, 256)]
        {
            assert_eq!(threads(rows, length), wanted, "{rows} rows of {length}");
        }
        let by_rows: Vec<u32> = [10, 1000, 10_000, 1_000_000].into_iter().map(|rows| threads(rows, 1000)).collect();
        assert!(by_rows.is_sorted_by(|a, b| a >= b), "{by_rows:?}");
    }

    #[test]
    fn what_is_reduced_whole_is_one_block() {
        let whole = r#"loop kernel k(x: ptr f32, y: ptr f32) open:
  local s: f32
  s = 0.0
  for k in 0..1000: reduce combine add(s) from 0.0
    v: f32 = load x[k]
    a: f32 = s
    b: f32 = a + v
    s = b
  c: f32 = s
  store y[0] = c
"#;
        let (out, log) = apply("cooperative_reduce", &kernel(whole), &gpu(&[]));
        assert_eq!(log.applied[..2], ["loop k, one block", "loop k"]);
        let made = text(&out);
        assert!(made.contains("  for b in 0..1: free block(x)\n    local s: f32\n"), "{made}");
        assert!(made.contains("reduce thread combine add(s) from 0.0 x 256"), "{made}");
    }

    #[test]
    fn what_one_thread_does_alone_says_why() {
        let launched = |k: &str| k.replace(" open", "").replace("for i in 0..4: free", "for i in 0..4: serial");
        let block = launched(ROWS).replace("    for h in 0..3: free", "    for h in 0..3: serial");
        let (out, log) = apply("cooperative_reduce", &kernel(&block), &gpu(&[]));
        assert_eq!((log.applied, log.skipped), (vec!["loop k".to_string()], vec![]));
        assert!(text(&out).contains("reduce thread"), "{}", text(&out));
        for (from, to, why) in [
            (" combine add(s) from -0.0", "", "loop k: the order of its reduction is fixed"),
            ("k in 0..1000", "k in 0..50", "loop k: it is shorter than two warps"),
        ] {
            assert_eq!(refusals("cooperative_reduce", &block.replace(from, to), &gpu(&[])), [why]);
        }
    }
}
