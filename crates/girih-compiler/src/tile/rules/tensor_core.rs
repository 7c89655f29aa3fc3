//! `tensor_core`

use std::collections::BTreeMap;

use crate::base::rule::{Log, Refusal, Rule};
use crate::loops::ir::*;
use crate::loops::matrix::Product;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::accumulator::{self, Numbering, Tile};
use crate::tile::contraction::Nest;
use crate::tile::edit::{self, const_trip, new_axis};
use crate::tile::matrix::Warps;
use crate::tile::sharing::Share;

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
the way where they run along the rows or columns. Warps are laid out so that they read least from shared memory.

Terms are added in ascending order here and in the simulator; a GPU adds those of one instruction in an order of its own, with
at least the precision of f32.

Knobs: `tensor_core` (0 turns the rule off), `threads`, `rows`, `cols`.

Takes f16, bf16 and tf32 with sums in f32, and integers of 8 bits with sums in i32. Refuses operands that are not in shared
memory, and tiles that are no multiple of 16 rows, 8 columns and 32 bytes of the sum.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    accumulator::each(p, log, &mut |kernel, acc| share(kernel, ctx, acc))
}

fn share(kernel: &mut Kernel, ctx: &Context, acc: BufId) -> Result<String, Refusal> {
    if !ctx.knobs.tensor_core {
        return Err("knob off".into());
    }
    let shape = <[u64; 2]>::try_from(&kernel.bufs[acc].shape[..]).map_err(|_| "its accumulator is not a matrix")?;
    accumulator::nests(kernel, acc)?;
    let warps = warps(ctx, shape)?;
    let [r, c] = warps.each(shape);
    let rows = Share { name: "r", threads: 8 * warps.down, each: r, together: 1 };
    let cols = Share { name: "c", threads: 4 * warps.across, each: c, together: 2 };
    let tile = Tile { acc, shape, rows, cols, numbering: Numbering::Warps, whole: true };
    let done = tile.place(kernel, &product)?;
    check(kernel, &kernel.body)?;
    Ok(format!("{done}, {} x {} warps", warps.down, warps.across))
}

fn warps(ctx: &Context, [m, n]: [u64; 2]) -> Result<Warps, String> {
    let not_whole = || format!("{m} x {n} is no whole number of 16 x 8 elements for its threads");
    let own = Warps::of([m, n], ctx.knobs.threads.into(), ctx.target.axes.threads.into()).ok_or_else(not_whole)?;
    let [r, c] = own.each([m, n]);
    let (rows, cols) = (ctx.knobs.rows.map_or(r, u64::from), ctx.knobs.cols.map_or(c, u64::from));
    let made = Warps { down: m / (8 * rows).max(1), across: n / (4 * cols).max(1) };
    let whole = made.each([m, n]) == [rows, cols] && rows % 2 == 0 && cols % 2 == 0;
    let fits = made.count().is_power_of_two() && 32 * made.count() <= ctx.target.axes.threads.into();
    if whole && fits {
        Ok(made)
    } else {
        Err(format!("tiles of {rows} x {cols} for each thread are no products of warps"))
    }
}

/// Each element's terms, by the thread that has the element.
fn product(tile: &Tile, kernel: &mut Kernel, nest: &Nest<'_>) -> Result<Stmt, String> {
    let roles = nest.roles;
    tile.threads_around(kernel, |kernel, thread| {
        let mut axis = |name: &str, like: AxisId| {
            let from = kernel.axes[like].from.clone();
            kernel.axes.push(Axis { name: name.into(), from })
        };
        let (r, c) = (axis(tile.rows.name, roles.m), axis(tile.cols.name, roles.n));
        let k = new_axis(kernel, roles.k, "1");
        let (two, own) = (Ix::Const(2), |axis| Ix::Axis(axis));
        let row = Ix::add(Ix::mul(own(r), Ix::Const(tile.rows.threads as i64)), thread.row.clone());
        let pair = Ix::mul(Ix::floor_div(own(c), two.clone()), Ix::Const(2 * tile.cols.threads as i64));
        let first = Ix::add(pair, Ix::mul(thread.col.clone(), two.clone()));
        let col = Ix::add(first, Ix::modulo(own(c), two));
        let by = BTreeMap::from([(roles.m, row), (roles.n, col), (roles.k, own(k))]);
        let mut body = nest.reduce.body.clone();
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

/// Whether every product is one that the matrix unit has.
fn check(kernel: &Kernel, body: &[Stmt]) -> Result<(), String> {
    let mut made = Ok(());
    walk::visit(body, &mut |s| {
        let Stmt::For(t) = s else { return };
        if t.place == Place::Thread {
            for s in &t.body {
                if let Stmt::For(f) = s
                    && f.place == Place::Matrix
                    && let Err(why) = Product::of(kernel, (t.axis, const_trip(t).unwrap_or(0)), f)
                {
                    made = Err(why.to_string());
                }
            }
        }
    });
    made
}
