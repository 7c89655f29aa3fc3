//! `keep_tiles`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::heuristics::keep_tiles::FOLDED;
use crate::tile::primitives::own::{self, Found, State, Why};
use crate::tile::primitives::{self, LoopRef, Names, Script, Step};
use crate::tile::rules::spread_threads;
use crate::tile::target::MemoryKind;
use crate::tile::tile_nest::check_bounds;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "keep_tiles",
    doc: "\
Keeps a tile in the registers of a block's threads if every nest that writes or reads it goes through it in the same order, so
that no thread needs the elements of another.

```text
local x: f32[1000]                               local x: f32[256, 4] private
for i in 0..1000: free                           for t in 0..256: thread: for e in 0..4:
  x[i] = load src[i]                               x[t, e] = load src[e*256 + t]        where that is below 1000
for k in 0..1000: reduce thread          -->     for t in 0..256: reduce thread combine add(s)
    combine add(s)                                 for e in 0..4: s <- x[t, e] + s
  s <- x[k] + s                                  for t in 0..256: thread: for e in 0..4:
for j in 0..1000: free                             store dst[e*256 + t] = x[t, e] / s
  store dst[j] = x[j] / s
```

Nests that share such a tile, or are joined by several, are spread alike: a thread takes the number of neighbouring elements that one
access of global memory moves in all of them, or one element if a reduction reads global memory. The nests are unrolled.

If tiles do not fit in shared memory, the largest that could be kept go to each thread's own memory, behind its registers, and their
nests stay loops. So do tiles that a loop goes through part by part, as the results of a scan of a long row: where a part is a multiple of
the threads, each of its elements is the thread's that has it in the other nests.

Knob: `keep_tiles`, the most registers of a thread that tiles may take; a quarter of a thread's registers by default. 0 turns the
rule off.

A nest that goes backwards through a tile which shared memory has no room for is run from its other end.

Refuses tiles that are needed in another order, by contractions that other rules have spread, or outside of nests of known length,
and tiles that take more registers.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut script = Script::new(p, ctx, log);
    let loops = turned(p, ctx);
    if !loops.is_empty()
        && let Err(why) = script.try_step(Step::Reverse { loops })
    {
        script.log.skipped("a step", why);
    }
    let p = script.kernel.clone();
    let steps = policy(&p, ctx, script.log);
    if steps.is_empty() {
        return None;
    }
    for step in steps {
        if let Err(why) = script.try_step(step) {
            script.log.skipped("a step", why);
        }
    }
    script.done()
}

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let threads = spread_threads::threads(p, ctx);
    let Found { mut tiles, nests, .. } = Found::of(p, threads);
    let kept = |tiles: &BTreeMap<BufId, State>| {
        tiles.iter().filter(|(_, state)| state.is_ok()).map(|(buf, _)| *buf).collect::<BTreeSet<BufId>>()
    };
    let alike = own::shares(p, ctx, threads, &nests, &kept(&tiles));
    let most = most(ctx, threads);
    let mut taken = 0;
    for (buf, state) in &mut tiles {
        let b = &p.bufs[*buf];
        if state.is_ok() {
            let words = b.element_bytes().div_ceil(4) as i64;
            let needs = own::own(b, own::lanes_of(&alike, *buf), threads).saturating_mul(words);
            match taken + needs <= most {
                true => taken += needs,
                false => {
                    let held = if taken > 0 { format!(", {taken} of them taken") } else { String::new() };
                    let why =
                        format!("it takes {needs} registers of each of {threads} threads; there are {most}{held}");
                    *state = Err(Why::Registers(why));
                }
            }
        }
    }
    let spilled = spilled(p, ctx, threads, &tiles);
    for (buf, state) in &mut tiles {
        if spilled.contains(buf) {
            *state = Ok(());
        }
        let b = &p.bufs[*buf];
        if let Err(why) = state {
            let why = why.clone().into_text();
            log.skipped(format!("tile {}", b.name), why);
        }
    }
    tiles.retain(|_, state| state.is_ok());
    let shares = own::shares(p, ctx, threads, &nests, &kept(&tiles));
    let mut bufs: [Vec<BufId>; 2] = Default::default();
    for buf in tiles.keys() {
        let b = &p.bufs[*buf];
        let own = own::own(b, own::lanes_of(&shares, *buf), threads);
        let place = if spilled.contains(buf) { ", in their own memory: shared memory has no room for it" } else { "" };
        log.applied(format!("tile {}: {own} elements of each of {threads} threads{place}", b.name));
        let rolled = shares.iter().any(|s| s.tiles.contains(buf) && !s.tiles.is_disjoint(&spilled));
        bufs[usize::from(rolled)].push(*buf);
    }
    let threads = u32::try_from(threads).unwrap_or(u32::MAX);
    let steps = bufs.into_iter().zip([false, true]).filter(|(bufs, _)| !bufs.is_empty());
    steps.map(|(bufs, rolled)| Step::Own { bufs, threads, rolled }).collect()
}

/// Loops of nests that go backwards through tiles which shared memory has no room for.
fn turned(p: &Kernel, ctx: &Context) -> Vec<LoopRef> {
    let room = ctx.target.bytes_of(MemoryKind::Shared);
    let is_long = |buf: BufId| p.bufs.get(buf).is_some_and(|b| b.space == Space::Scratch && b.bytes() > room);
    let names = Names::of(p);
    let mut out = vec![];
    primitives::look(p, &mut |_, f| {
        if f.is_free_unplaced() {
            out.extend(backwards(p, f, &is_long).into_iter().filter_map(|f| names.name(f)));
            return false;
        }
        f.place == Place::None
    });
    out
}

/// The loops of a nest along which all accesses to long tiles go backwards. None where others go forwards.
fn backwards<'a>(kernel: &Kernel, f: &'a For, is_long: &dyn Fn(BufId) -> bool) -> Vec<&'a For> {
    let chain = edit::free_chain(f);
    if check_bounds(&chain).is_err() {
        return vec![];
    }
    let mut signs: BTreeMap<AxisId, BTreeSet<bool>> = BTreeMap::new();
    walk::visit(&f.body, &mut |s| {
        if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
            && is_long(*buf)
        {
            let at = Ix::row_major(idx, &kernel.bufs[*buf].shape);
            for f in &chain {
                if let Some(by) = at.linear(f.axis).and_then(|(by, _)| by.as_const()).filter(|by| *by != 0) {
                    signs.entry(f.axis).or_default().insert(by < 0);
                }
            }
        }
    });
    let all_backwards = |f: &&For| signs.get(&f.axis).is_some_and(|s| s.len() == 1 && s.contains(&true));
    chain.into_iter().filter(all_backwards).collect()
}

/// Tiles that registers have no room for, and shared memory neither.
fn spilled(p: &Kernel, ctx: &Context, threads: i64, tiles: &BTreeMap<BufId, State>) -> BTreeSet<BufId> {
    let own = |buf: &BufId| matches!(tiles.get(buf), Some(Ok(())));
    let shared = |b: &Buf| !b.shape.is_empty() && matches!(b.space, Space::Scratch | Space::Shared);
    let bytes: BTreeMap<BufId, u64> = walk::stmts(&p.body)
        .filter_map(|s| match s {
            Stmt::Local { buf } | Stmt::Stage { buf, .. } if shared(&p.bufs[*buf]) && !own(buf) => {
                Some((*buf, p.bufs[*buf].bytes()))
            }
            _ => None,
        })
        .collect();
    let mut needs: u64 = bytes.values().fold(0, |sum, n| sum.saturating_add(*n));
    let room = ctx.target.bytes_of(MemoryKind::Shared).saturating_sub(FOLDED * threads.unsigned_abs());
    let mut could: Vec<(u64, BufId)> = tiles
        .iter()
        .filter(|(_, state)| matches!(state, Err(Why::Registers(_))))
        .map(|(buf, _)| (p.bufs[*buf].bytes(), *buf))
        .collect();
    could.sort_unstable();
    let mut out = BTreeSet::new();
    while needs > room
        && let Some((bytes, buf)) = could.pop()
    {
        needs -= bytes;
        out.insert(buf);
    }
    // Tiles that are left may take turns with shared memory.
    out
}

/// The registers of a thread that tiles may take.
fn most(ctx: &Context, threads: i64) -> i64 {
    let own = i64::from(ctx.target.vector.registers * ctx.target.vector.bytes / 4);
    let whole = ctx.target.gpu.map_or(own, |gpu| i64::from(gpu.registers) / threads.max(1));
    ctx.knobs.keep_tiles.map_or(own.min(whole) / 4, i64::from)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const ROW: &str = r#"loop kernel k(src: ptr f32, dst: ptr f32):
  local x: f32[10, 100]
  for i in 0..10: free
    for j in 0..100: free
      v: f32 = load src[i*100 + j]
      x[i, j] = v
  local s: f32
  s = 0.0
  for i1 in 0..10: free
    for j1 in 0..100: free
      w: f32 = x[i1, j1]
      y: f32 = w * 2.0
      x[i1, j1] = y
  for i2 in 0..10: free
    for j2 in 0..100: free
      z: f32 = x[i2, j2]
      store dst[i2*100 + j2] = z
"#;

    #[test]
    fn what_no_other_thread_needs_is_kept() {
        let (out, log) = apply("keep_tiles", &kernel(ROW), &gpu(&[]));
        assert_eq!(log.applied, ["tile x: 4 elements of each of 256 threads"]);
        let made = text(&out);
        assert!(made.contains("local x: f32[256, 4] private"), "{made}");
        assert!(made.contains("mine: i1 = test e*256 + t < 1000"), "{made}");
        let (after, _) = apply("spread_threads", &out, &gpu(&[]));
        assert!(!text(&after).contains("shared"), "{}", text(&after));
    }

    /// A row of 240,000 bytes.
    #[test]
    fn what_shared_memory_has_no_room_for_is_in_the_threads_memory() {
        let long = ROW.replace("f32[10, 100]", "f32[600, 100]").replace("in 0..10:", "in 0..600:");
        let (out, log) = apply("keep_tiles", &kernel(&long), &gpu(&[]));
        let said = "tile x: 235 elements of each of 256 threads, in their own memory: shared memory has no room for it";
        assert_eq!(log.applied, [said]);
        let made = text(&out);
        assert!(made.contains("local x: f32[256, 235] private") && !made.contains("unroll"), "{made}");
        // One that fits stays where all threads see it.
        let short = ROW.replace("f32[10, 100]", "f32[500, 100]").replace("in 0..10:", "in 0..500:");
        assert_eq!(
            refusals("keep_tiles", &short, &gpu(&[])),
            ["tile x: it takes 196 registers of each of 256 threads; there are 63"]
        );
    }

    /// A loop writes it stretch by stretch, as a scan does; the nest behind it reads it whole.
    fn in_stretches(stretch: u32) -> String {
        format!(
            "loop kernel k(src: ptr f32, dst: ptr f32):\n  local r: f32[65536]\n  for c in 0..{}: serial\n    for u in 0..256: free\n      \
             for e in 0..{each}: free\n        v: f32 = load src[c*{stretch} + u*{each} + e]\n        r[c*{stretch} + u*{each} + e] = v\n  \
             for i in 0..65536: free\n    w: f32 = r[i]\n    store dst[65535 - i] = w\n",
            65536 / stretch,
            each = stretch / 256
        )
    }

    #[test]
    fn a_tile_that_a_loop_fills_in_stretches_is_in_the_threads_memory() {
        let (out, log) = apply("keep_tiles", &kernel(&in_stretches(8192)), &gpu(&[]));
        let place = ", in their own memory: shared memory has no room for it";
        assert_eq!(log.applied, [format!("tile r: 256 elements of each of 256 threads{place}")]);
        let made = text(&out);
        assert!(made.contains("r[t, c*32 + e"), "{made}");
        // A tile that fits stays in shared memory, and so does one whose stretches the threads do not divide.
        let small = in_stretches(8192).replace("65536", "16384").replace("c in 0..8", "c in 0..2");
        assert_eq!(refusals("keep_tiles", &small, &gpu(&[])), ["tile r: a loop goes through it part by part"]);
        let uneven = in_stretches(8192).replace("c*8192", "c*8191");
        assert_eq!(refusals("keep_tiles", &uneven, &gpu(&[])), ["tile r: a nest needs its elements in another order"]);
    }

    #[test]
    fn a_nest_that_goes_backwards_through_a_long_tile_is_turned() {
        let long = in_stretches(8192).replace("w: f32 = r[i]", "w: f32 = r[65535 - i]");
        let (out, log) = apply("keep_tiles", &kernel(&long), &gpu(&[]));
        assert!(log.applied[0].starts_with("tile r: 256 elements of each of 256 threads"), "{:?}", log.applied);
        // The store went backwards, too.
        assert!(text(&out).contains("store dst[e_1*256 + t_1] = "), "{}", text(&out));
        let both = long.replace("    store dst", "    q: f32 = r[i]\n    store dst[i] = q\n    store dst");
        assert_eq!(refusals("keep_tiles", &both, &gpu(&[])), ["tile r: a nest needs its elements in another order"]);
    }

    #[test]
    fn what_several_threads_need_is_not() {
        let why = |from: &str, to: &str, knobs: &[&str]| {
            assert!(ROW.contains(from), "{from}");
            refusals("keep_tiles", &ROW.replace(from, to), &gpu(knobs))
        };
        assert_eq!(
            why("z: f32 = x[i2, j2]", "z: f32 = x[i2, 99 - j2]", &[]),
            ["tile x: a nest needs its elements in another order"]
        );
        assert_eq!(
            why("  s = 0.0\n", "  s = 0.0\n  q: f32 = x[0, 0]\n", &[]),
            ["tile x: a statement outside of nests uses it"]
        );
        assert_eq!(why("for i2 in 0..10", "for i2 in 0..bx", &[]), ["tile x: a nest's length is not known"]);
        assert_eq!(
            why("local s", "local s", &["keep_tiles=3"]),
            ["tile x: it takes 4 registers of each of 256 threads; there are 3"]
        );
    }
}
