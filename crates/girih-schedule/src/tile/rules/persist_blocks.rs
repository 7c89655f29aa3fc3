//! `persist_blocks`

use crate::base::rule::{Log, Refusal, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::cost::room;
use crate::tile::edit::{const_trip, over_blocks};
use crate::tile::heuristics::cost::OTHER_REGISTERS;
use crate::tile::persistent_loop::GoesOn;
use crate::tile::primitives::{self, LoopRef, Step};
use crate::tile::reuse;
use crate::tile::rules::{axis_site, spread_threads};
use crate::tile::target::MemoryKind;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "persist_blocks",
    doc: "\
Launches only the blocks that run at once: block b of B takes the iterations b, b + B, b + 2*B, ..., and fetches the first operands of
the next iteration while it still stores the results of the one before.

```text
for jb in 0..32: free block(y)                       for jb in 0..32: free block(y, 132 in turn)
  for ib in 0..32: free block(x, groups of 8)  -->     for ib in 0..32: free block(x, groups of 8)
    for kt in 0..64: serial pipeline(3) ...              for kt in 0..64: serial pipeline(3) ...
    ...                                                  ...
```

Iterations are independent of each other, so which block takes one makes no difference; their order is that of the grid,
groups included. The pipeline goes on from one iteration to the next, and so do the phases of its mbarriers: that is
derived when the loops become the grid. Other buffers in shared memory then have bytes of their own, since the slots are never free.

By default the rule applies if a multiprocessor has room for one block only: with room for two, one computes while the other begins
or ends.

Knob: `persist`, the number of blocks of each multiprocessor; 0 turns the rule off.

Refuses grids whose blocks all run at once, kernels with several nests of blocks, blocks without a pipeline or with several,
pipelines of unknown length, pipelines that fetch values that the block computes, and blocks that then do not fit shared memory.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    primitives::run(p, ctx, log, |p, ctx, log| Vec::from_iter(policy(p, ctx, log)))
}

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Step> {
    let nests = p.body.iter().filter(|s| over_blocks(s).is_some()).count();
    let at =
        p.body.iter().position(|s| matches!(s, Stmt::For(f) if matches!(f.place, Place::Block { takers: 0, .. })))?;
    let Stmt::For(nest) = &p.body[at] else { return None };
    let mut over = vec![&**nest];
    while let [inner] = &over.last()?.body[..]
        && let Some(f) = over_blocks(inner)
    {
        over.push(f);
    }
    let made = match GoesOn::of(&over.last()?.body) {
        // A nest without a pipeline is not worth a message.
        Ok(None) => return None,
        Ok(Some(_)) if nests > 1 => Err("the kernel has several nests of blocks".into()),
        Ok(Some(_)) if over.iter().any(|f| matches!(f.place, Place::Block { cluster: 1.., .. })) => {
            Err("its blocks form clusters".into())
        }
        Ok(Some(found)) => takers(p, ctx, &over, found),
        Err(why) => Err(why.into()),
    };
    let site = axis_site(p, nest.axis);
    match made {
        Ok((takers, why)) => {
            log.applied(format!("{site}: {why}"));
            Some(Step::Persist { at: LoopRef { axis: nest.axis, nth: 0 }, blocks: takers })
        }
        Err(why) => {
            log.refused(site, why);
            None
        }
    }
}

/// How many blocks take the iterations of a nest, and why.
fn takers(p: &Kernel, ctx: &Context, over: &[&For], found: GoesOn<'_>) -> Result<(u32, String), Refusal> {
    if ctx.knobs.persist == Some(0) {
        return Err("knob off".into());
    }
    let gpu = ctx.target.gpu.ok_or("the target says nothing of its multiprocessors")?;
    let (stages, _) = found.pipeline.stages();
    let mut size = 0;
    for s in stages {
        if let Stmt::Stage { buf, .. } = s {
            size += p.bufs[*buf].bytes();
        }
    }
    let boxes = stages.iter().filter(|s| s.filled(Filled::Tma)).count() as u64 * BOX_ALIGN;
    let (own, behind) = reuse::bytes(p);
    let slots = u64::from(found.depth) * size;
    let (now, then) = (own - size + slots.max(behind + size) + boxes, own - size + slots + behind + boxes);
    let most = ctx.target.bytes_of(MemoryKind::Shared);
    if then > most {
        let why =
            format!("slots that are never free take {then} bytes of shared memory with the rest, of at most {most}");
        return Err(if ctx.knobs.persist.is_some() { Refusal::impossible(why) } else { why.into() });
    }
    let threads = spread_threads::threads(p, ctx).max(1) as u64;
    let private = p.bufs.values().filter(|b| b.space == Space::Private && b.shape.len() > 1);
    let registers: u64 = private.map(|b| (b.bytes() / 4 / b.shape[0].max(1)).max(1)).sum();
    let on_each = |bytes: u64| room(&ctx.target, &gpu, threads, registers + OTHER_REGISTERS, bytes).0;
    let multiprocessors = u64::from(ctx.target.axes.workers);
    let all = over.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
    let few = |all: u64| format!("all of its {all} blocks run at once");
    if let Some(given) = ctx.knobs.persist {
        let takers = multiprocessors * u64::from(given);
        if let Some(all) = all.filter(|n| *n <= takers) {
            return Err(few(all).into());
        }
        return Ok((count(takers)?, format!("{takers} blocks take its iterations in turn")));
    }
    let all = all.ok_or("how many blocks there are, only the launch knows")?;
    let together = on_each(now);
    if all <= multiprocessors * together {
        return Err(few(all).into());
    }
    if together > 1 {
        return Err(format!("{together} blocks on a multiprocessor cover each other's beginnings and ends").into());
    }
    let takers = multiprocessors * on_each(then);
    let why = format!(
        "{takers} blocks take its {all} iterations in turn: a multiprocessor has room for one, whose beginning and end \
         nothing else would cover"
    );
    Ok((count(takers)?, why))
}

fn count(takers: u64) -> Result<u32, Refusal> {
    u32::try_from(takers).map_err(|_| "there are too many".into())
}

/// The places of boxes are multiples of at most this many bytes.
const BOX_ALIGN: u64 = 1024;

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const ROWS: &str = r#"tile kernel k(A: ptr f32 div 16, C: ptr f32) open:
  for y in 0..12: free block(y)
    for x in 0..25: free block(x)
      local sum: f32[64, 1] private
      for i in 0..64: free thread
        sum[i, 0] = 0.0
      for k in 0..8: serial pipeline(2)
        stage s: f32[64, 400] shared async:
          for t in 0..64: free thread
            for j in 0..100: free
              for v in 0..4: free vector(4)
                a: f32 = load A[(y*25 + x)*204800 + k*25600 + t*400 + j*4 + v]
                s[t, j*4 + v] = a
        for u in 0..64: free thread
          b: f32 = s[63 - u, 7]
          c: f32 = sum[u, 0]
          d: f32 = b + c
          sum[u, 0] = d
      for w in 0..64: free thread
        e: f32 = sum[w, 0]
        store C[(y*25 + x)*64 + w] = e
"#;

    #[test]
    fn one_block_on_a_multiprocessor_takes_iterations_in_turn() {
        let (out, log) = apply("persist_blocks", &kernel(ROWS), &gpu(&[]));
        let why = "loop y: 132 blocks take its 300 iterations in turn: a multiprocessor has room for one, whose beginning \
                   and end nothing else would cover";
        assert_eq!(log.applied, [why]);
        assert!(text(&out).contains("for y in 0..12: free block(y, 132 in turn)\n    for x in 0..25: free block(x)"));
        let (out, _) = apply("persist_blocks", &kernel(ROWS), &gpu(&["persist=2"]));
        assert!(text(&out).contains("block(y, 264 in turn)"));
    }

    #[test]
    fn others_have_a_block_for_each() {
        let why = |from: &str, to: &str, knobs: &[&str]| {
            assert!(ROWS.contains(from), "{from}");
            refusals("persist_blocks", &ROWS.replace(from, to), &gpu(knobs)).join("\n").replace("loop y: ", "")
        };
        assert_eq!(why("", "", &["persist=0"]), "knob off");
        assert_eq!(why("", "", &["persist=3"]), "all of its 300 blocks run at once");
        assert_eq!(why("0..12", "0..5", &[]), "all of its 125 blocks run at once");
        assert_eq!(
            why("f32[64, 400]", "f32[64, 480]", &["persist=1"]).split(" take").next(),
            Some("slots that are never free")
        );
        let small = ROWS.replace("400", "100").replace("j in 0..100", "j in 0..25").replace("0..12", "0..40");
        let covered = refusals("persist_blocks", &small, &gpu(&[]));
        assert_eq!(covered, ["loop y: 4 blocks on a multiprocessor cover each other's beginnings and ends"]);
        let other = "its pipeline is not known to have an iteration for each slot";
        assert_eq!(why("k in 0..8", "k in 0..y", &[]), other);
        assert_eq!(why("0..8: serial pipeline(2)", "0..1: serial pipeline(3)", &[]), other);
        let computed = "      f: i32 = index x*3\n      for k in 0..8";
        let text = ROWS.replace("      for k in 0..8", computed).replace("k*25600", "f*25600");
        let refused = refusals("persist_blocks", &text, &gpu(&[]));
        assert_eq!(refused, ["loop y: what is fetched depends on what the block computes"]);
        // Without a pipeline there is nothing to gain.
        let none: [&str; 0] = [];
        let plain = ROWS.replace("serial pipeline(2)", "serial");
        assert_eq!(refusals("persist_blocks", &plain, &gpu(&["persist=1"])), none);
    }
}
