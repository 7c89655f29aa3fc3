//! `tensor_core`

use crate::base::rule::{Log, Refusal, Rule};
use crate::loops::ir::*;
use crate::loops::matrix::Operand;
use crate::loops::walk;
use crate::num::DType;
use crate::tile::Context;
use crate::tile::accumulator::{self, accumulators};
use crate::tile::boxes;
use crate::tile::matrix::{Warps, multiplied, operand};
use crate::tile::primitives::tensorize::{Unit, rows, warps};
use crate::tile::primitives::{LoopRef, Script, Step, look};
use crate::tile::target::Capability;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "tensor_core",
    doc: "\
Gives a product to the matrix unit: each warp multiplies 16 rows by 8 columns at a time. What the sum starts with and what
follows it is done by the threads that have its elements.

```text
local acc: f32[128, 128]                         local acc: f32[256, 8, 8] private
for kt in 0..56: serial                          for kt in 0..56: serial
  for i: for j:                                    for t in 0..256: free thread
    for kk in 0..64: reduce contraction   -->        for r in 0..8: for c in 0..8: for kk in 0..64: matrix
      acc[i, j] <- a_s[i, kk] * b_s[j, kk]             acc[t, r, c] <- a_s[r*16 + .., kk] * b_s[c//2*32 + .., kk]
```

A thread's rows and columns are those that `mma.sync` gives its lane; operands come to registers by `ldmatrix`, transposed on
the way where they run along the rows or columns. Bytes are transposed by twos and then exchanged in registers; of such an
operand a thread has two rows side by side, or four columns. Warps are laid out so that they read least from shared memory.

Terms are added in ascending order here and in the simulator; a GPU adds those of one instruction in an order of its own, with
at least the precision of f32.

Knobs: `tensor_core` (0 turns the rule off), `tf32`, `threads`, `rows`, `cols`.

Takes f16, bf16 and, where the target has them, f8 with sums in f32, f32 that the program rounds to tf32, f32 cut off to tf32 where
the knob `tf32` allows it, and integers of 8 bits with sums in i32. Refuses operands that are not in shared
memory, and tiles that are not a multiple of 16 rows, 8 columns and 32 bytes of the sum.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut script = Script::new(p, ctx, log);
    for acc in accumulators(p).into_iter().filter(|_| ctx.knobs.tensor_core) {
        if script.kernel.bufs[acc].space == Space::Private || !is_folded(&script.kernel, acc) {
            continue;
        }
        let site = format!("rows of {}", p.bufs[acc].name);
        let made = rows(&mut script, acc);
        script.log.described(site, made);
    }
    for acc in accumulators(&script.kernel) {
        let site = format!("contraction into {}", p.bufs[acc].name);
        let chosen = share(&script.kernel, ctx, acc).and_then(|(at, warps, grouped)| {
            let before = script.kernel.clone();
            let unit = if grouped { Unit::Groups(warps.groups()) } else { Unit::Warps(warps) };
            let step = Step::Tensorize { loops: vec![at], unit };
            script.try_step(step)?;
            let each = warps.each(accumulator::matrix(&before, acc)?);
            let said = accumulator::said(&before, &script.kernel, acc, each);
            Ok(format!("{said}, {} x {} warps", warps.down, warps.across))
        });
        script.log.described(site, chosen);
    }
    script.done()
}

/// True if a nest folds what it reads of a tile.
fn is_folded(kernel: &Kernel, tile: BufId) -> bool {
    let mut folds = walk::loops(&kernel.body).filter(|f| f.kind == LoopKind::Reduce && f.combine.is_some());
    folds.any(|f| walk::refs(&f.body).bufs_read.contains(&tile))
}

/// Gives the rows of a product to the most warps that share them.
fn rows(script: &mut Script<'_>, acc: BufId) -> Result<String, String> {
    let (kernel, ctx) = (&script.kernel, script.ctx);
    let [count, _] = kernel.bufs[acc].shape[..] else { return Err("it is not a matrix".to_string()) };
    let most = u64::from(ctx.knobs.threads.min(ctx.target.axes.threads)) / 32;
    let fit = |warps: &u64| count.is_multiple_of(rows::ROWS * warps);
    let warps = (0..6).map(|bits| 1u64 << bits).take_while(|w| *w <= most).filter(fit).last();
    let warps = warps.ok_or_else(|| format!("warps do not share {count} rows, 16 at a time"))?;
    let joined = rows::joined(kernel, ctx, acc, warps)?;
    let names: Vec<&str> = joined.iter().map(|b| kernel.bufs[*b].name.as_str()).collect();
    let said = format!("{}: {} rows for each lane of {warps} warps", names.join(", "), count / (8 * warps));
    let sum = |f: &For| f.contraction.as_ref().is_some_and(|c| c.acc == acc);
    let mut at = None;
    look(kernel, &mut |own, f| {
        at = at.or(sum(f).then_some(own));
        true
    });
    let loops = vec![at.ok_or("no loop sums it up")?];
    script.try_step(Step::Tensorize { loops, unit: Unit::Rows(warps) })?;
    Ok(said)
}

/// A sum into an accumulator, and the warps that share it, perhaps as groups of four.
fn share(kernel: &Kernel, ctx: &Context, acc: BufId) -> Result<(LoopRef, Warps, bool), Refusal> {
    if !ctx.knobs.tensor_core {
        return Err("knob off".into());
    }
    let shape = accumulator::matrix(kernel, acc)?;
    let at = accumulator::sum_into(kernel, acc)?;
    let (warps, grouped) = match warpgroups(kernel, ctx, acc, shape) {
        Some(warps) => (warps, warps.across > 1),
        None => (warps_of(ctx, shape, warps::least_columns(kernel, acc))?, false),
    };
    Ok((at, warps, grouped))
}

fn warps_of(ctx: &Context, [m, n]: [u64; 2], least: u64) -> Result<Warps, String> {
    let not_whole = || format!("{m} x {n} is not a whole number of 16 x {least} elements for its threads");
    let own =
        Warps::of([m, n], least, ctx.knobs.threads.into(), ctx.target.axes.threads.into()).ok_or_else(not_whole)?;
    let [r, c] = own.each([m, n]);
    let (rows, cols) = (ctx.knobs.rows.map_or(r, u64::from), ctx.knobs.cols.map_or(c, u64::from));
    let made = Warps { down: m / (8 * rows).max(1), across: n / (4 * cols).max(1) };
    let whole =
        made.count() > 0 && made.each([m, n]) == [rows, cols] && rows % 2 == 0 && (4 * cols).is_multiple_of(least);
    let fits = made.count().is_power_of_two() && 32 * made.count() <= ctx.target.axes.threads.into();
    if whole && fits {
        Ok(made)
    } else {
        Err(format!("tiles of {rows} x {cols} for each thread are not products of warps"))
    }
}

/// Warps that have the rows and columns of a group's product, where warpgroups can multiply: TMA fills both operands.
fn warpgroups(kernel: &Kernel, ctx: &Context, acc: BufId, [m, n]: [u64; 2]) -> Option<Warps> {
    let knobs = &ctx.knobs;
    let chosen = knobs.rows.is_some() || knobs.cols.is_some() || !knobs.wgmma || !knobs.swizzle;
    if chosen || !ctx.target.has(Capability::WarpgroupProducts) {
        return None;
    }
    let (filled, mut alike) = (boxes::filled(kernel), true);
    warps::operands(kernel, acc, &mut |roles, buf, idx| {
        let of = match kernel.bufs[buf].ty {
            Ty::Num(d) => operand(&ctx.target, multiplied(ctx, d), if d.is_float() { DType::F32 } else { DType::I32 }),
            Ty::Ptr(_) => None,
        };
        // What has not two bytes is read along the sum only.
        let along = idx.last().is_some_and(|ix| roles.k.iter().any(|k| ix.has_axis(*k)));
        let exact = |of: Operand| !of.is_byte_float() || ctx.knobs.fast_acc;
        alike &= of.is_some_and(|of| (of.bytes() == 2 || along) && exact(of)) && filled.contains(&buf);
    });
    let warps = Warps::of_groups([m, n], &ctx.target)?;
    alike &= !ctx.target.has(Capability::TensorMemory) || is_alone(kernel, acc);
    alike.then_some(warps)
}

/// True if the only product of a kernel is all that the iterations of a loop do beside their stages.
fn is_alone(kernel: &Kernel, acc: BufId) -> bool {
    let sums = |body: &[Stmt]| walk::contractions(body).count();
    let alone = |f: &For| {
        let mut rest = f.body.iter().filter(|s| !matches!(s, Stmt::Stage { .. }));
        let product = |s: &Stmt| walk::contractions(std::slice::from_ref(s)).any(|(_, c)| c.acc == acc);
        f.kind == LoopKind::Serial && rest.next().is_some_and(product) && rest.next().is_none()
    };
    sums(&kernel.body) == 1 && walk::loops(&kernel.body).any(alone)
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{GEMM, apply, gpu, kernel, refusals, schedule, text};

    /// A product whose operands lie in shared memory: `a` runs along the sum, `b` along the columns.
    const PRODUCT: &str = r#"tile kernel k(A: ptr f32, bias: ptr f32, C: ptr f32):
  local a: f16[32, 32] shared
  local b: f16[32, 64] shared
  local acc: f32[32, 64]
  for i in 0..32: free
    for j in 0..64: free
      acc[i, j] = 0.0
  for k in 0..4: serial
    for i1 in 0..32: free
      for j1 in 0..64: free
        for kk in 0..32: reduce contraction m=i1 n=j1 k=kk a=x b=y acc=acc
          x: f16 = a[i1, kk]
          y: f16 = b[kk, j1]
          x1: f32 = f32(x)
          y1: f32 = f32(y)
          c: f32 = acc[i1, j1]
          d: f32 = fma(x1, y1, c)
          acc[i1, j1] = d
  for i2 in 0..32: free
    for j2 in 0..64: free
      s: f32 = acc[i2, j2]
      t: f32 = load bias[j2]
      u: f32 = s + t
      store C[i2*64 + j2] = u
"#;

    #[test]
    fn a_thread_has_what_the_matrix_unit_gives_its_lane() {
        let (out, log) = apply("tensor_core", &kernel(PRODUCT), &gpu(&[]));
        assert_eq!(log.applied, ["contraction into acc: 2 x 8 for each of 128 threads, 2 x 2 warps"]);
        let made = text(&out);
        let sum = r#"    for t_1 in 0..128: free thread
      for r_1 in 0..2: free matrix
        for c in 0..8: free matrix
          for kk1 in 0..32: reduce matrix
            x: f16 = a[r_1*8 + (t_1//64*16 + t_1%32//4), kk1]
            y: f16 = b[kk1, c//2*8 + (t_1//32%2*32 + t_1%4*2) + c%2]
            x1: f32 = f32(x)
            y1: f32 = f32(y)
            c_1: f32 = acc[t_1, r_1, c]
            d: f32 = fma(x1, y1, c_1)
            acc[t_1, r_1, c] = d
"#;
        assert!(made.contains("local acc: f32[128, 2, 8] private\n") && made.contains(sum), "{made}");
    }

    #[test]
    fn another_use_of_the_accumulator_keeps_it_in_memory() {
        let other = PRODUCT.replace("s: f32 = acc[i2, j2]", "s: f32 = acc[i2, 63 - j2]");
        let (out, log) = apply("tensor_core", &kernel(&other), &gpu(&[]));
        assert!(log.applied[0].contains("in registers during the sum only"), "{:?}", log.applied);
        let made = text(&out);
        assert!(made.contains("local acc: f32[32, 64]\n") && made.contains("local acc_r: f32[2, 8]"), "{made}");
    }

    #[test]
    fn knobs_choose_the_warps() {
        let (out, _) = apply("tensor_core", &kernel(PRODUCT), &gpu(&["rows=4", "cols=8"]));
        assert!(text(&out).contains("local acc: f32[64, 4, 8] private"), "{}", text(&out));
        for (knobs, why) in [
            (&["rows=3"][..], "tiles of 3 x 8 for each thread are not products of warps"),
            (&["tensor_core=0"], "knob off"),
        ] {
            assert_eq!(refusals("tensor_core", PRODUCT, &gpu(knobs)), [format!("contraction into acc: {why}")]);
        }
    }

    #[test]
    fn what_the_matrix_unit_does_not_have_is_refused() {
        for (from, to, why) in [
            ("32, 64]", "32, 60]", "32 x 60 is not a whole number of 16 x 8 elements for its threads"),
            ("0..32: reduce", "0..24: reduce", "the product does not split into those of the matrix unit"),
            (
                "local a: f16[32, 32] shared",
                "local a: f16[32, 36] shared",
                "the rows of an operand are not a multiple of 16 bytes",
            ),
            (
                "x1: f32 = f32(x)",
                "x0: f32 = f32(x)\n          x1: f32 = x0 * 2.0",
                "it does more than multiply and add",
            ),
            ("b[kk, j1]", "b[kk, 63 - j1]", "an operand does not lie as the matrix unit reads it"),
            ("a[i1, kk]", "a[i1, 31 - kk]", "an operand does not lie as the matrix unit reads it"),
            ("a[i1, kk]", "a[kk, i1*2]", "an operand does not lie as the matrix unit reads it"),
        ] {
            let changed = PRODUCT.replace(from, to);
            let changed = if to == "32, 60]" { changed.replace("0..64", "0..60") } else { changed };
            assert_ne!(changed, PRODUCT);
            assert_eq!(refusals("tensor_core", &changed, &gpu(&[])), [format!("contraction into acc: {why}")]);
        }
        let wide = PRODUCT.replace("f16[", "f32[").replace(": f16 =", ": f32 =").replace("f32(", "copy(");
        assert_eq!(
            refusals("tensor_core", &wide, &gpu(&[])),
            ["contraction into acc: it does more than multiply and add"]
        );
    }

    /// Every rule for a GPU in order: the rows of what is staged are padded so that eight of them lie in different banks.
    #[test]
    fn a_product_of_a_tile_program_is_one_of_warps() {
        let made = text(&schedule(&kernel(GEMM), &gpu(&[])));
        for part in ["stage a_s: f16[128, 72] shared", "stage b_s: f16[64, 136] shared", "acc: f32[256, 4, 16] private"]
        {
            assert!(made.contains(part), "{part} is not in\n{made}");
        }
    }
}
