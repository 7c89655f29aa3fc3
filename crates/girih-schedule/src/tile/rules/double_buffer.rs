//! `double_buffer`

use std::collections::BTreeSet;

use crate::base::rule::{Log, Refusal, Rule};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::heuristics::double_buffer::{BUSY, GROUPED, MOST, SLOTS_OF_TWO};
use crate::tile::heuristics::warp_specialize::MANY_SUMS;
use crate::tile::primitives::line::holds;
use crate::tile::primitives::tensorize::warpgroup;
use crate::tile::primitives::{self, Step, pipeline};
use crate::tile::reuse;
use crate::tile::rules::{axis_site, spread_threads};
use crate::tile::target::MemoryKind;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "double_buffer",
    doc: "\
Gives the stages of a serial loop several slots each, so that the operands of the next iterations are fetched while those of
one are used.

```text
for kt in 0..112: serial                         for kt in 0..112: serial pipeline(3)
  stage a_s: f32[128, 36] shared: ...              stage a_s: f32[128, 36] shared: ...
  stage b_s: f32[128, 36] shared: ...     -->      stage b_s: f32[128, 36] shared: ...
  for t in 0..256: free thread                     for t in 0..256: free thread
    ...                                              ...
```

The meaning of the loop stays the same. When it is lowered, the depth decides which fetches run ahead, and where threads wait for
each other. Stages that are filled ahead come first in the body. A stage that reads a value that the loop computes is filled in
place, in each iteration.

The depth is the number of slots that fit half of a block's shared memory, so that two blocks share a multiprocessor, or more
blocks of fewer threads where rows of a product are folded; all of it where warpgroups multiply twice, have 128 sums a thread, or take
tile after tile. It is from 2 to 4 and no more than the number of iterations, and 2 if
there is less room.

Knob: `slots`; 1 turns the rule off. A stage that TMA fills is a pipeline all the same, of one slot.

Refuses loops that store to global memory, which a fetch ahead could overtake; loops whose stages all read values that the loop
computes; and stages that do not fit shared memory twice.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    let mut all = reuse::bytes(p);
    let threads = spread_threads::threads(p, ctx).max(1) as u64;
    let mut steps = vec![];
    primitives::look(p, &mut |at, f| {
        let staged = f.body.iter().any(|s| matches!(s, Stmt::Stage { .. }));
        if f.kind != LoopKind::Serial || f.place != Place::None || !staged {
            return true;
        }
        let site = axis_site(p, f.axis);
        let groups = of_groups(p, ctx, f);
        // Blocks that take tiles in turn store one from bytes of its own.
        let alone = groups > 0 && warpgroup::sums(p, f, Place::Matrix) >= MANY_SUMS;
        let held = if alone && in_turn(p, ctx) { (all.0 + all.1, 0) } else { all };
        let tiles = groups > 0 && edit::over_tiles(&p.body).is_some();
        let (blocks, most) = match () {
            _ if tiles => (1, MOST),
            _ if groups == 2 => (GROUPED.div_ceil(threads), SLOTS_OF_TWO),
            _ if alone => (1, MOST),
            _ if folds_rows(f) => (BUSY.div_ceil(threads).max(2), MOST),
            _ => (2, MOST),
        };
        let depth = match depth(p, ctx, f, held, blocks, most) {
            Ok((depth, size)) => {
                log.applied(format!("{site}: {depth} slots of {size} bytes"));
                all.0 += (depth - 1) * size;
                depth as u32
            }
            Err(why) => {
                log.refused(site, why);
                // A stage that TMA fills needs a pipeline, if only of one slot.
                if !f.body.iter().any(|s| s.filled(Filled::Tma)) {
                    return true;
                }
                1
            }
        };
        steps.push(Step::Pipeline { at, depth, roles: false, overlap: false });
        false
    });
    steps
}

/// True if lanes fold rows of a product's result, as in attention: that takes as long as the matrix unit, which blocks use in turn.
fn folds_rows(f: &For) -> bool {
    walk::loops(&f.body).any(|f| f.place == Place::Lanes)
}

/// How often warpgroups multiply in an iteration; 0 where warps do. The second of two products can go on during the next iteration.
fn of_groups(p: &Kernel, ctx: &Context, f: &For) -> usize {
    let all: Vec<_> = warpgroup::products(p).into_iter().filter(|(_, product, _)| holds(&f.body, product)).collect();
    let grouped = ctx.knobs.wgmma && all.iter().all(|(_, f, thread)| warpgroup::grouped(p, ctx, f, *thread).is_ok());
    if grouped { all.len() } else { 0 }
}

/// True if blocks take tiles in turn: they are asked to, or there are more tiles than multiprocessors, which have room for one block each.
fn in_turn(p: &Kernel, ctx: &Context) -> bool {
    let over = walk::stmts(&p.body).filter_map(edit::over_blocks);
    let blocks = over.map(edit::const_trip).try_fold(1u64, |n, trips| n.checked_mul(trips?));
    match ctx.knobs.persist {
        Some(each) => each > 0,
        None => blocks.is_some_and(|n| n > u64::from(ctx.target.axes.workers)),
    }
}

/// The depth of a pipeline, and the bytes of a slot. `all` is what shared memory holds with one slot each, `behind` what may
/// have the bytes of all slots, and `blocks` how many blocks should share a multiprocessor.
fn depth(
    kernel: &Kernel,
    ctx: &Context,
    f: &For,
    (all, behind): (u64, u64),
    blocks: u64,
    most: u64,
) -> Result<(u64, u64), Refusal> {
    if ctx.knobs.slots == Some(1) {
        return Err("knob off".into());
    }
    let stages = pipeline::ahead(kernel, f)?;
    let own: BTreeSet<BufId> = stages.iter().filter_map(pipeline::staged).collect();
    let size: u64 = own.iter().map(|b| kernel.bufs[*b].bytes()).sum();
    let room = ctx.target.bytes_of(MemoryKind::Shared);
    let needed = |depth: u64| pipeline::needed(&stages, size, depth, (all, behind));
    let fits = |depth: u64, room: u64| needed(depth) <= room;
    // No more than there are iterations.
    let most = edit::at_most(&f.hi).map_or(most, |n| most.min(n as u64));
    let chosen = || (2..=most).rev().find(|n| fits(*n, room / blocks)).or(Some(2).filter(|n| fits(*n, room)));
    let depth = match ctx.knobs.slots {
        Some(given) if !fits(given.into(), room) => {
            let needs = needed(given.into());
            let (target, all) =
                (ctx.target.name, format!("knob `slots`: {given} slots take {needs} bytes of shared memory"));
            return Err(Refusal::impossible(format!("{all}; a block of {target} has at most {room}")));
        }
        Some(given) => u64::from(given),
        None => {
            chosen().ok_or_else(|| format!("two slots of {size} bytes are more than shared memory has room for"))?
        }
    };
    Ok((depth, size))
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const LOOP: &str = r#"tile kernel k(A: ptr f32, C: ptr f32, n: i32):
  local sum: f32[64] private
  for k in 0..n: serial
    i: i32 = index k
    stage s: f32[64] shared:
      for t in 0..64: free thread
        a: f32 = load A[k*64 + t]
        s[t] = a
    for u in 0..64: free thread
      x: f32 = s[63 - u]
      y: f32 = sum[u]
      z: f32 = x + y
      sum[u] = z
"#;

    #[test]
    fn stages_come_first_and_get_slots() {
        let (out, log) = apply("double_buffer", &kernel(LOOP), &gpu(&[]));
        assert_eq!(log.applied, ["loop k: 4 slots of 256 bytes"]);
        let made = text(&out);
        let start = "  for k in 0..n: serial pipeline(4)\n    stage s: f32[64] shared:\n";
        assert!(made.contains(start) && made.contains("        s[t] = a\n    i: i32 = index k\n"), "{made}");
        let (out, _) = apply("double_buffer", &kernel(LOOP), &gpu(&["slots=6"]));
        assert!(text(&out).contains("pipeline(6)"), "{}", text(&out));
    }

    /// Shared memory has room for the slots of both, or the second loop fills its stage in place.
    #[test]
    fn loops_one_after_the_other_have_slots_together() {
        let large = LOOP.replace("f32[64] shared", "f32[64, 256] shared").replace("s[t]", "s[t, 0]");
        let large = large.replace("s[63 - u]", "s[63 - u, 0]");
        let second = "  for l in 0..n: serial
    stage w: f32[64, 256] shared:
      for g in 0..64: free thread
        b: f32 = load A[l*64 + g]
        w[g, 0] = b
    for h in 0..64: free thread
      c: f32 = w[63 - h, 0]
      d: f32 = sum[h]
      e: f32 = c + d
      sum[h] = e
";
        let (out, log) = apply("double_buffer", &kernel(&(large + second)), &gpu(&[]));
        assert_eq!(log.applied, ["loop k: 2 slots of 65536 bytes"]);
        let why = "two slots of 65536 bytes are more than shared memory has room for".to_string();
        assert_eq!(log.skipped, [("loop l".to_string(), why)]);
        assert!(text(&out).contains("for l in 0..n: serial\n"), "{}", text(&out));
    }

    #[test]
    fn a_stage_of_what_the_loop_computes_stays() {
        let computed = LOOP.replace(
            "    for u in",
            "    stage w: f32[64] shared:
      for v in 0..64: free thread
        b: f32 = s[v]
        w[v] = b
    local d: f32[64] shared
    for e in 0..64: free thread
      d[e] = 2.0
    stage g: f32[64] shared:
      for h in 0..64: free thread
        f: f32 = d[h]
        g[h] = f
    for u in",
        );
        let (out, log) = apply("double_buffer", &kernel(&computed), &gpu(&[]));
        assert_eq!(log.applied, ["loop k: 4 slots of 256 bytes"]);
        let stages: Vec<String> = text(&out)
            .lines()
            .filter(|l| l.contains("stage") || l.contains("local d"))
            .map(|l| l.trim().into())
            .collect();
        let all = ["s: f32[64] shared:", "w: f32[64] shared:", "local d: f32[64] shared", "g: f32[64] shared:"];
        let all = all.map(|s| if s.starts_with("local") { s.to_string() } else { format!("stage {s}") });
        assert_eq!(stages, all);
    }

    #[test]
    fn what_a_fetch_ahead_could_pass_is_refused() {
        for (from, to, why) in [
            ("      sum[u] = z\n", "      sum[u] = z\n      store C[k] = z\n", "it stores to global memory"),
            ("A[k*64 + t]", "A[i*64 + t]", "its stages read what the loop computes"),
            ("0..n", "1..n", "it does not count from 0 in steps of 1"),
            ("0..n", "0..1", "it has one iteration"),
            (
                "f32[64] shared",
                "f32[64, 500] shared",
                "two slots of 128000 bytes are more than shared memory has room for",
            ),
        ] {
            let text = LOOP.replace(from, to).replace("s[t]", if to.contains("500") { "s[t, 0]" } else { "s[t]" });
            let text = text.replace("s[63 - u]", if to.contains("500") { "s[63 - u, 0]" } else { "s[63 - u]" });
            assert_eq!(refusals("double_buffer", &text, &gpu(&[])), [format!("loop k: {why}")], "{to}");
        }
        assert_eq!(refusals("double_buffer", LOOP, &gpu(&["slots=1"])), ["loop k: knob off"]);
    }
}
