//! Products of groups of four warps.
//!
//! Legal where TMA brings the right operand to shared memory as the matrix unit reads it, and warps have 16 rows. The left
//! operand is read from shared memory in the same way, or comes from registers.

use crate::loops::ir::*;
use crate::loops::matrix::Product;
use crate::loops::panels::How;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::boxes;
use crate::tile::edit::const_trip;
use crate::tile::primitives::line::{LoopRef, change, holds, look};
use crate::tile::target::{Capability, MatrixUnit};

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef]) -> Result<(), String> {
    for at in loops {
        let found = products(kernel).into_iter().find(|(l, ..)| l == at);
        let (_, f, thread) = found.ok_or("it is not the outermost loop of a product that warps compute")?;
        grouped(kernel, ctx, f, thread)?;
    }
    change(kernel, loops, &mut |_, _| Ok(()), &mut place)
}

/// The three loops of a product.
fn place(f: &mut For) {
    f.place = Place::Warpgroup;
    if let [Stmt::For(inner)] = &mut f.body[..] {
        place(inner);
    }
}

/// Every product of warps, with the loop over threads around it.
pub fn products(kernel: &Kernel) -> Vec<(LoopRef, &For, (AxisId, u64))> {
    let mut out = vec![];
    let mut threads: Option<&For> = None;
    look(kernel, &mut |at, f| {
        match f.place {
            Place::Thread => threads = Some(f),
            Place::Matrix => {
                let around = threads.filter(|t| holds(&t.body, f));
                out.extend(around.map(|t| (at, f, (t.axis, const_trip(t).unwrap_or(0)))));
                return false;
            }
            _ => {}
        }
        true
    });
    out
}

/// The most sums that a thread has of a product in a loop. `placed`: the place of the product's loops.
pub fn sums(kernel: &Kernel, f: &For, placed: Place) -> u64 {
    let sums = walk::loops(&f.body).filter(|f| f.place == placed).filter_map(|f| match f.body.last()? {
        Stmt::Write { buf, .. } => Some(kernel.bufs[*buf].shape.iter().skip(1).product()),
        _ => None,
    });
    sums.max().unwrap_or(0)
}

pub fn grouped(p: &Kernel, ctx: &Context, f: &For, thread: (AxisId, u64)) -> Result<String, String> {
    if ctx.target.matrix_units.contains(&MatrixUnit::Tcgen05) {
        return Err("the sums of `tcgen05` are in tensor memory, which threads copy them from; warps multiply".into());
    }
    if !ctx.target.has(Capability::WarpgroupProducts) {
        return Err(format!("{} has no products of warpgroups", ctx.target.name));
    }
    let made = Product::of(p, thread, f)?;
    if made.a.of.is_byte_float() && !ctx.knobs.fast_acc {
        return Err("warpgroups add products of f8 with fewer bits than f32 has; the knob `fast_acc` allows it".into());
    }
    let filled = boxes::filled(p);
    if !filled.contains(&made.b.buf) {
        return Err("its right operand is not brought to shared memory by TMA".into());
    }
    let [left, _] = made.lies(p, thread.1)?;
    let from = if left == How::Words { ", rows from registers" } else { "" };
    Ok(format!("64 x {} for each of {} warpgroups{from}", made.cols * 4, thread.1 / 128))
}
