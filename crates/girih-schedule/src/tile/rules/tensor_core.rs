//! `tensor_core`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Refusal, Rule};
use crate::loops::ir::*;
use crate::loops::lanes::of_group;
use crate::loops::matrix::{self, COLS, Operand, TF32};
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::accumulator::{self, Numbering, Tile};
use crate::tile::boxes;
use crate::tile::contraction::Nest;
use crate::tile::edit::{self, new_axis};
use crate::tile::matrix::{Warps, check, multiplied, operand};
use crate::tile::sharing::Share;
use crate::tile::target::Capability;
use crate::tile::warp_rows;

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
memory, and tiles that are no multiple of 16 rows, 8 columns and 32 bytes of the sum.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let rows = match ctx.knobs.tensor_core {
        true => {
            warp_rows::place(p, ctx, log, &|tile, kernel, nest, held| product(tile, kernel, nest, ctx.knobs.tf32, held))
        }
        false => None,
    };
    accumulator::each(rows.as_ref().unwrap_or(p), log, &mut |kernel, acc| share(kernel, ctx, acc)).or(rows)
}

fn share(kernel: &mut Kernel, ctx: &Context, acc: BufId) -> Result<String, Refusal> {
    if !ctx.knobs.tensor_core {
        return Err("knob off".into());
    }
    let shape = <[u64; 2]>::try_from(&kernel.bufs[acc].shape[..]).map_err(|_| "its accumulator is not a matrix")?;
    accumulator::nests(kernel, acc)?;
    let by_bytes = bytes_across(kernel, acc);
    // Bytes across the sum are moved by twos: two rows, or four columns, of a thread lie side by side.
    let [rows, cols] = [by_bytes[0], by_bytes[1]].map(|two| if two { 2 } else { 1 });
    let warps = match warpgroups(kernel, ctx, acc, shape) {
        Some(warps) => warps,
        None => warps(ctx, shape, COLS * cols)?,
    };
    let [r, c] = warps.each(shape);
    let rows = Share { name: "r", threads: 8 * warps.down, each: r, together: rows, apart: 8 * rows };
    let cols = Share { name: "c", threads: 4 * warps.across, each: c, together: 2 * cols, apart: 8 * cols };
    let tile = Tile { acc, shape, rows, cols, numbering: Numbering::Warps, whole: true };
    let tf32 = ctx.knobs.tf32;
    let done = tile.place(kernel, &|tile, kernel, nest| product(tile, kernel, nest, tf32, &BTreeSet::new()))?;
    check(kernel)?;
    Ok(format!("{done}, {} x {} warps", warps.down, warps.across))
}

fn warps(ctx: &Context, [m, n]: [u64; 2], least: u64) -> Result<Warps, String> {
    let not_whole = || format!("{m} x {n} is no whole number of 16 x {least} elements for its threads");
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
        Err(format!("tiles of {rows} x {cols} for each thread are no products of warps"))
    }
}

/// Whether the left and the right operand of the products into an accumulator are bytes that run along its rows or columns.
fn bytes_across(kernel: &Kernel, acc: BufId) -> [bool; 2] {
    let mut across = [false; 2];
    operands(kernel, acc, &mut |roles, buf, idx| {
        let bytes = kernel.bufs[buf].element_bytes() == 1;
        for (across, own) in across.iter_mut().zip([&roles.m, &roles.n]) {
            *across |= bytes && idx.last().is_some_and(|ix| own.iter().any(|axis| ix.has_axis(*axis)));
        }
    });
    across
}

/// What the products into an accumulator read, besides it.
fn operands(kernel: &Kernel, acc: BufId, each: &mut dyn FnMut(&Contraction, BufId, &[Ix])) {
    walk::visit(&kernel.body, &mut |s| {
        let Stmt::For(f) = s else { return };
        let Some(roles) = f.contraction.as_ref().filter(|c| c.acc == acc) else { return };
        for s in &f.body {
            if let Stmt::Read { buf, idx, .. } = s
                && *buf != acc
            {
                each(roles, *buf, idx);
            }
        }
    });
}

/// Warps that each have 16 rows and all columns, where warpgroups can multiply: TMA fills both operands.
fn warpgroups(kernel: &Kernel, ctx: &Context, acc: BufId, [m, n]: [u64; 2]) -> Option<Warps> {
    let knobs = &ctx.knobs;
    let chosen = knobs.rows.is_some() || knobs.cols.is_some() || !knobs.wgmma || !knobs.swizzle;
    if chosen || !ctx.target.has(Capability::WarpgroupProducts) {
        return None;
    }
    let (filled, mut alike) = (boxes::filled(kernel), true);
    operands(kernel, acc, &mut |roles, buf, idx| {
        let of = match kernel.bufs[buf].ty {
            Ty::Num(d) => operand(&ctx.target, multiplied(ctx, d), if d.is_float() { DType::F32 } else { DType::I32 }),
            Ty::Ptr(_) => None,
        };
        // What has not two bytes is read along the sum only.
        let along = idx.last().is_some_and(|ix| roles.k.iter().any(|k| ix.has_axis(*k)));
        let exact = |of: Operand| !of.is_byte_float() || ctx.knobs.fast_acc;
        alike &= of.is_some_and(|of| (of.bytes() == 2 || along) && exact(of)) && filled.contains(&buf);
    });
    let warps = Warps::of_groups([m, n], ctx.target.axes.threads.into())?;
    alike.then_some(warps)
}

/// Each element's terms, by the thread that has the element; `held` are left operands that lie in registers as sums do.
fn product(
    tile: &Tile,
    kernel: &mut Kernel,
    nest: &Nest<'_>,
    tf32: bool,
    held: &BTreeSet<BufId>,
) -> Result<Stmt, String> {
    let roles = nest.roles;
    tile.threads_around(kernel, |kernel, thread| {
        let mut axis = |name: &str, like: AxisId| {
            let from = kernel.axes[like].from.clone();
            let fresh = kernel.axes.push(Axis { name: name.into(), from });
            kernel.sources.axes.copy(like, fresh);
            fresh
        };
        let (r, c) = (axis(tile.rows.name, roles.m), axis(tile.cols.name, roles.n));
        let k = new_axis(kernel, roles.k, "1");
        let own = Ix::Axis;
        let (row, col) = (tile.rows.at(&thread.row, &own(r)), tile.cols.at(&thread.col, &own(c)));
        let mut body = nest.reduce.body.clone();
        let of = left_of(kernel, nest, held);
        let term = of.map_or(own(k), |of| matrix::column_of_term(of, own(k)));
        let by = BTreeMap::from([(roles.m, row), (roles.n, col), (roles.k, term)]);
        if tf32 {
            cut_off(kernel, &mut body);
        }
        if let (Some(of), Ix::Axis(t)) = (of, &thread.number) {
            let [lane, slot] = matrix::held(of, own(k));
            let place = [of_group(*t, 4, lane), own(r), slot];
            walk::visit_mut(&mut body, &mut |s| {
                if let Stmt::Read { buf, idx, .. } = s
                    && *buf != tile.acc
                    && held.contains(buf)
                {
                    *idx = place.to_vec();
                }
            });
        }
        walk::map_ixs(&mut body, &mut |ix| *ix = ix.subst_axes(&mut |axis| by.get(&axis).cloned()));
        let sums = match tile.whole {
            true => tile.acc,
            false => {
                let Buf { ty, name, .. } = &kernel.bufs[tile.acc];
                let own = Buf::new(format!("{name}_r"), *ty, vec![tile.rows.each, tile.cols.each]);
                kernel.bufs.push(own)
            }
        };
        tile.in_registers(&mut body, sums, &tile.slot(&thread, &own(r), &own(c)));
        let matrix = |axis, n: u64, kind, body| {
            edit::loop_with(axis, Ix::Const(n as i64), body, |f| (f.kind, f.place) = (kind, Place::Matrix))
        };
        let terms = matrix(k, nest.k, LoopKind::Reduce, body);
        let all = matrix(c, tile.cols.each, LoopKind::Free, vec![terms]);
        let all = matrix(r, tile.rows.each, LoopKind::Free, vec![all]);
        if tile.whole {
            return Ok(vec![all]);
        }
        let axes = [roles.m, roles.n];
        let mut out = vec![Stmt::Local { buf: sums }];
        out.extend(tile.copied(kernel, &thread, axes, sums, false));
        out.push(all);
        out.extend(tile.copied(kernel, &thread, axes, sums, true));
        Ok(out)
    })
}

/// What the left operand of a product is multiplied as, where it is one of these.
fn left_of(kernel: &Kernel, nest: &Nest<'_>, held: &BTreeSet<BufId>) -> Option<Operand> {
    let dtype = nest.reduce.body.iter().find_map(|s| match s {
        Stmt::Read { dst, buf, .. } if *dst == nest.roles.a && held.contains(buf) => Some(kernel.bufs[*buf].ty),
        _ => None,
    })?;
    match dtype {
        Ty::Num(DType::F16) => Some(Operand::F16),
        Ty::Num(DType::BF16) => Some(Operand::BF16),
        Ty::Num(DType::F32 | DType::TF32) => Some(Operand::TF32),
        _ => None,
    }
}

/// Cuts the operands of a product in f32 off as the matrix unit does.
fn cut_off(kernel: &mut Kernel, body: &mut Vec<Stmt>) {
    let Some(at) = body.iter().position(|s| matches!(s, Stmt::Let { op: ScalarOp::Fma { .. }, .. })) else { return };
    let Stmt::Let { args, .. } = &body[at] else { return };
    let operands: Vec<ValId> =
        args.iter().take(2).filter_map(|a| if let Opnd::Val(v) = a { Some(*v) } else { None }).collect();
    let read = |v: &ValId| body.iter().any(|s| matches!(s, Stmt::Read { dst, .. } if dst == v));
    let is_f32 = |v: &ValId| kernel.vals[*v].ty == Ty::Num(DType::F32);
    if operands.len() < 2 || !operands.iter().all(|v| read(v) && is_f32(v)) {
        return;
    }
    let mut made = vec![];
    let mut by = BTreeMap::new();
    for from in operands {
        let name = kernel.vals[from].name.clone();
        let mut val = |ty| kernel.vals.push(Val { ty: Ty::Num(ty), name: name.clone() });
        let (bits, kept, cut) = (val(DType::I32), val(DType::I32), val(DType::F32));
        let mask = Opnd::Const { dtype: DType::I32, bits: TF32 };
        let to = |to| ScalarOp::Bitcast { to };
        made.push(Stmt::Let { dst: bits, op: to(DType::I32), args: vec![Opnd::Val(from)] });
        made.push(Stmt::Let { dst: kept, op: ScalarOp::And, args: vec![Opnd::Val(bits), mask] });
        made.push(Stmt::Let { dst: cut, op: to(DType::F32), args: vec![Opnd::Val(kept)] });
        by.insert(from, cut);
    }
    if let Stmt::Let { args, .. } = &mut body[at] {
        for arg in args.iter_mut().take(2) {
            if let Opnd::Val(v) = arg {
                *v = by[v];
            }
        }
    }
    body.splice(at..at, made);
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
            (&["rows=3"][..], "tiles of 3 x 8 for each thread are no products of warps"),
            (&["tensor_core=0"], "knob off"),
        ] {
            assert_eq!(refusals("tensor_core", PRODUCT, &gpu(knobs)), [format!("contraction into acc: {why}")]);
        }
    }

    #[test]
    fn what_the_matrix_unit_does_not_have_is_refused() {
        for (from, to, why) in [
            ("32, 64]", "32, 60]", "32 x 60 is no whole number of 16 x 8 elements for its threads"),
            ("0..32: reduce", "0..24: reduce", "it is no whole number of the matrix unit's products"),
            (
                "local a: f16[32, 32] shared",
                "local a: f16[32, 36] shared",
                "the rows of an operand are no multiple of 16 bytes",
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
