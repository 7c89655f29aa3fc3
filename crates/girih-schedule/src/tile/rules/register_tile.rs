//! `register_tile`

use crate::base::rule::{Log, Refusal, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::accumulator::{self, accumulators};
use crate::tile::contraction::{nest_over, nests, num_type, power_in};
use crate::tile::cost::{each_thread, most_each};
use crate::tile::primitives::tensorize::{Unit, threads, tiles};
use crate::tile::primitives::{LoopRef, Script, Step, stage_write};
use crate::tile::target::Capability;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "register_tile",
    doc: "\
Runs a contraction one register tile of the accumulator at a time: `rows` x `cols` accumulators stay in registers over the
whole reduction. Each step takes the tile's columns of the right operand into registers, then goes through its rows.

```text
for i in 0..128: free                            for j1 in 0..4: free
  for j in 0..128: free                            for i1 in 0..16: free
    for kk in 0..64: reduce contraction   -->        local acc_r: f32[8, 32] register(16)
      acc[i, j] <- a[i, kk] * b[kk, j]               acc_r <- acc[i1*8.., j1*32..]
                                                     for kk in 0..64: reduce
                                                       local b_r: f32[32] register(16)
                                                       for j2 in 0..32: free vector(16)
                                                         b_r[j2] <- b[kk, j1*32 + j2]
                                                       for i2 in 0..8: free unroll
                                                         for j2 in 0..32: free vector(16)
                                                           acc_r[i2, j2] <- a[i1*8 + i2, kk] * b_r[j2]
                                                     acc[i1*8.., j1*32..] <- acc_r
```

Where the sum is one stretch, it starts in registers and what follows it is done there (`stage_write`): the
accumulator is no longer in memory at all. Masks may turn off the columns beyond the last one.

The columns run outermost, so that a packed panel of the right operand stays in L1 while the rows pass over it. Rows and
columns that fill no tile have smaller ones.

Where the processor has a unit for products of tiles (AMX), and the operands are words of two bf16 or four bytes (`pair_terms`) that lie
along the sum on the left and along the columns on the right, loops over 32 x 32 sums and whole tiles of terms are placed on it; what
fills no tile has register tiles.

```text
for i in 0..64: free                             for j1 in 0..2: free
  for j in 0..64: free                             for i1 in 0..2: free
    for kk in 0..256: reduce contraction             for i2 in 0..32: free matrix
      acc[i, j] <- dot2(a[i, kk], b[kk, j])  -->       for j2 in 0..32: free matrix
                                                         for kk in 0..256: reduce matrix
                                                           acc[i1*32.., j1*32..] <- dot2(a[i1*32 + i2, kk], b[kk, j1*32 + j2])
```

On a GPU every thread of the block has a tile of its own, and the accumulator is nothing else: what fills it before the sum
and what follows it is done by the thread that has the element.

```text
local acc: f32[128, 128]                         local acc: f32[256, 8, 8] private
for i: for j: acc[i, j] = 0                      for t in 0..256: thread: for r: for c: acc[t, r, c] = 0
for kt in 0..112: serial                         for kt in 0..112: serial
  for i: for j: for kk: reduce contraction         for t in 0..256: free thread
    acc[i, j] <- a_s[i, kk] * b_s[j, kk]   -->       for kk1 in 0..8: reduce
                                                       a_r[r, kk2] = a_s[r*16 + row, kk1*4 + kk2]       for all r, kk2
                                                       b_r[c, kk2] = b_s[c*16 + col, kk1*4 + kk2]
                                                       for kk2: for r in 0..8: for c in 0..8: unroll
                                                         acc[t, r, c] <- a_r[r, kk2] * b_r[c, kk2]
for i: for j: store C[..] = acc[i, j]            for t: for r: for c: store C[..] = acc[t, r, c]
```

A thread's rows and columns lie as far apart as there are threads along them, in groups that one access moves: then the
accesses of neighbouring threads lie side by side. Four threads make a square, `row = t//32*2 + t//2%2` and
`col = t//4%8*2 + t%2` above: neighbours want the same of `a_s`, every second the same of `b_s`, and shared memory gives that to
twice as many at once.

Knobs: `register_tile` (0 turns the rule off), `rows`, `cols`, `lanes` (chosen from the vector registers), `tiles` (0 leaves the
unit for products of tiles alone).

Refuses when the accumulator's type is not held in vectors, the tile does not divide the contraction, or an operand
still has a mask or does not lie along n. On a GPU: when something touches the accumulator other than element by element.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut script = Script::new(p, ctx, log);
    if ctx.target.has(Capability::Threads) {
        for acc in accumulators(p) {
            let site = format!("contraction into {}", p.bufs[acc].name);
            let chosen = share(&script.kernel, ctx, acc).and_then(|(at, each)| {
                let step = Step::Tensorize { loops: vec![at], unit: Unit::Threads { rows: each[0], cols: each[1] } };
                script.try_step(step)?;
                Ok(accumulator::said(p, &script.kernel, acc, each))
            });
            script.log.described(site, chosen);
        }
        return script.done();
    }
    let mut on_unit = vec![];
    for (over, site) in nests(p).into_iter().map(|found| (found.over, found.site)) {
        let chosen = choose(&script.kernel, ctx, over);
        match chosen.and_then(|(acc, step)| script.try_step(step.clone()).map(|_| (acc, step))) {
            Ok((acc, Step::Tensorize { unit: Unit::Registers { tiles: true, .. }, .. })) => {
                script.log.applied(site);
                on_unit.push(p.bufs[acc].name.clone());
            }
            Ok(_) => script.log.applied(site),
            Err(why) => script.log.skipped(site, why),
        }
    }
    if !script.changed() {
        return None;
    }
    for acc in on_unit {
        script.log.applied(format!("{acc}: the processor's matrix unit multiplies its whole tiles"));
    }
    let bufs = stage_write::join(&mut script.kernel.clone());
    let names: Vec<String> = bufs.iter().map(|acc| script.kernel.bufs[*acc].name.clone()).collect();
    if !bufs.is_empty() && script.step(Step::StageWrite { bufs }).is_ok() {
        names.into_iter().for_each(|acc| script.log.applied(format!("{acc}, which starts and ends in registers")));
    }
    script.done()
}

/// The register tile of the nest that a loop is the outermost of, and its accumulator.
fn choose(kernel: &Kernel, ctx: &Context, over: LoopRef) -> Result<(BufId, Step), String> {
    let (at, nest) = nest_over(kernel, over)?;
    if !ctx.knobs.register_tile {
        return Err("knob off".to_string());
    }
    let dtype = num_type(kernel, nest.roles.acc).ok_or("its accumulator holds addresses")?;
    let shape = nest.tile_shape(ctx, dtype)?;
    let unit = Unit::Registers { shape, tiles: ctx.knobs.tiles && tiles::whole(kernel, ctx, &nest).is_some() };
    Ok((nest.roles.acc, Step::Tensorize { loops: vec![at], unit }))
}

/// A sum into an accumulator, and what each thread has of its rows and columns: what the knobs say, or [`each_thread`].
fn share(kernel: &Kernel, ctx: &Context, acc: BufId) -> Result<(LoopRef, [u64; 2]), Refusal> {
    if !ctx.knobs.register_tile {
        return Err("knob off".into());
    }
    let dtype = num_type(kernel, acc).ok_or("its accumulator holds addresses")?;
    let shape = accumulator::matrix(kernel, acc)?;
    let at = accumulator::sum_into(kernel, acc)?;
    let knobs = (ctx.knobs.rows.map(u64::from), ctx.knobs.cols.map(u64::from));
    let own = each_thread(dtype, shape, ctx.knobs.threads.into());
    let each = match knobs {
        (None, None) => own,
        (rows, cols) => {
            let most = |n| power_in(n).min(most_each(dtype));
            [rows.unwrap_or(most(shape[0])), cols.unwrap_or(most(shape[1]))]
        }
    };
    threads::divides(shape, each)?;
    // The request of a knob is refused; the rule's own choice is dropped.
    match threads::limits(ctx, dtype, shape, each) {
        Err(why) if knobs != (None, None) => Err(Refusal::impossible(format!("knobs `rows` and `cols`: {why}"))),
        other => Ok(other.map(|()| (at, each))?),
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, contraction, kernel, refusals, text, with_knobs};

    fn product() -> String {
        contraction([16, 64, 8], "A[i*8 + kk]", "B[kk*64 + j]")
    }

    #[test]
    fn knobs_choose_the_tile() {
        let (out, _) = apply("register_tile", &kernel(&product()), &with_knobs(&["rows=4", "cols=64"]));
        assert!(text(&out).contains("local acc_r: f32[4, 64] register(16)"), "{}", text(&out));
        let why = refusals("register_tile", &product(), &with_knobs(&["cols=40"]));
        assert_eq!(why, ["contraction into acc: a tile of 40 columns by 16 lanes does not divide 64"]);
        assert_eq!(
            refusals("register_tile", &product(), &with_knobs(&["register_tile=0"])),
            ["contraction into acc: knob off"]
        );
    }

    #[test]
    fn rows_and_columns_that_remain_have_tiles() {
        let (out, _) = apply("register_tile", &kernel(&product()), &with_knobs(&["rows=3"]));
        let made = text(&out);
        for part in ["for i1 in 0..5: free", "acc_r: f32[3, 64]", "acc_r_1: f32[1, 64]", "load A[kk_1 + 120]"] {
            assert!(made.contains(part), "{part}: {made}");
        }
        let (out, _) = apply("register_tile", &kernel(&product()), &with_knobs(&["rows=8", "cols=48"]));
        let made = text(&out);
        for part in ["acc_r: f32[8, 48]", "acc_r_1: f32[8, 16]", "load B[kk_1*64 + (j2_5 + 48)]"] {
            assert!(made.contains(part), "{part}: {made}");
        }
    }

    #[test]
    fn a_sum_in_one_stretch_starts_and_ends_in_registers() {
        let block = r#"loop kernel k(A: ptr f32, B: ptr f32, bias: ptr f32, C: ptr f32):
  local acc: f32[16, 64]
  for i0 in 0..16: free
    for j0 in 0..64: free
      acc[i0, j0] = 0.0
  for i in 0..16: free
    for j in 0..64: free
      for kk in 0..8: reduce contraction m=i n=j k=kk a=a b=b acc=acc
        a: f32 = load A[i*8 + kk]
        b: f32 = load B[kk*64 + j]
        c: f32 = acc[i, j]
        d: f32 = fma(a, b, c)
        acc[i, j] = d
  for i1 in 0..16: free
    r: f32 = load A[i1]
    for j1 in 0..64: free
      s: f32 = acc[i1, j1]
      t: f32 = load bias[j1]
      u: f32 = s + t
      v: f32 = u * r
      store C[i1*64 + j1] = v
"#;
        let (out, log) = apply("register_tile", &kernel(block), &context());
        assert_eq!(log.applied, ["contraction into acc", "acc, which starts and ends in registers"]);
        let made = text(&out);
        assert!(!made.contains("local acc:") && made.contains("acc_r[i2, j2] = 0.0"), "{made}");
        let end = r#"        r: f32 = load A[i1*8 + i2_2]
        for j2_3 in 0..32: free vector(16)
          s: f32 = acc_r[i2_2, j2_3]
          t: f32 = load bias[j1*32 + j2_3]
          u: f32 = s + t
          v: f32 = u * r
          store C[(i1*8 + i2_2)*64 + (j1*32 + j2_3)] = v
"#;
        assert!(made.contains(end), "{made}");
        // Nor where the sum is one of several stretches, whatever else a stretch holds.
        let stretches = block.replace(
            "  for i in 0..16: free\n    for j in 0..64: free\n      for kk",
            "  for kt in 0..2: serial\n    local z: f32[16, 64]\n    for i2 in 0..16: free\n      for j2 in 0..64: free\n        \
             z[i2, j2] = 0.0\n    for k2 in 0..8: free\n      store C[k2] = 0.0\n    for i in 0..16: free\n     for j in \
             0..64: free\n      for kk",
        );
        let (_, log) = apply("register_tile", &kernel(&stretches), &context());
        assert_eq!(log.applied, ["contraction into acc"]);
        // Masks turn lanes off that lie beyond the end of a row.
        let masked = block.replace("store C[i1*64 + j1] = v", "store C[i1*64 + j1] = v where j1 < bx");
        let (out, log) = apply("register_tile", &kernel(&masked), &context());
        assert_eq!(log.applied, ["contraction into acc", "acc, which starts and ends in registers"]);
        assert!(text(&out).contains("= v where j1*32 + j2_3 < bx"), "{}", text(&out));
        // Not where it is needed in memory: another reader, other places, other masks, a sum in stretches.
        for (from, to) in [
            ("s: f32 = acc[i1, j1]", "s: f32 = acc[i1, 63 - j1]"),
            ("t: f32 = load bias[j1]", "t: f32 = load bias[j1] where j1*2 < bx else 0.0"),
            ("store C[i1*64 + j1] = v", "store C[j1*16 + i1] = v"),
            ("acc[i0, j0] = 0.0", "w: f32 = load bias[j0]\n      acc[i0, j0] = w"),
            ("    r: f32 = load A[i1]", "    r: f32 = acc[i1, 0]"),
        ] {
            assert!(block.contains(from));
            let (_, log) = apply("register_tile", &kernel(&block.replace(from, to)), &context());
            assert_eq!(log.applied, ["contraction into acc"], "{to}");
        }
    }

    #[test]
    fn what_registers_cannot_hold_is_refused() {
        for (from, to, why) in [
            ("load A[i*8 + kk]", "load A[i*8 + kk] where i < bx else 0.0", "an operand has a mask"),
            ("B[kk*64 + j]", "B[j*8 + kk]", "an operand does not lie along n"),
            ("acc[i, j] = d", "acc[j, i] = d", "the accumulator's place is not one per row and column"),
        ] {
            let changed = product().replace(from, to);
            assert_eq!(refusals("register_tile", &changed, &context()), [format!("contraction into acc: {why}")]);
        }
        let narrow = product().replace("0..64", "0..1").replace("16, 64", "16, 1");
        let why = refusals("register_tile", &narrow, &context());
        assert_eq!(why, ["contraction into acc: 1 columns do not fill a vector"]);
    }
}
