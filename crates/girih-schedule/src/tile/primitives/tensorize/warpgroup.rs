//! Products of groups of four warps.
//!
//! Legal where TMA brings the right operand to shared memory as the matrix unit reads it, and warps have 16 rows. The left
//! operand is read from shared memory in the same way, or comes from registers.
//!
//! With sums in tensor memory (`tcgen05`) warps have 32 rows, TMA brings both operands, and the iterations of a loop over stages do
//! nothing but multiply. Only loops over blocks and tiles hold that loop: threads move the sums to tensor memory before it, and back to
//! registers behind it.

use crate::loops::fresh_sums::begin_at_zero;
use crate::loops::ir::*;
use crate::loops::matrix::Product;
use crate::loops::panels::{GROUP, How};
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::boxes;
use crate::tile::edit;
use crate::tile::edit::const_trip;
use crate::tile::primitives::line::{LoopRef, change, holds, look};
use crate::tile::target::{Capability, Target};

/// Gives products to groups of four warps; `place` is that of their loops.
pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef], place: Place) -> Result<(), String> {
    for at in loops {
        let found = products(kernel).into_iter().find(|(l, ..)| l == at);
        let (_, f, thread) = found.ok_or("it is not the outermost loop of a product that warps compute")?;
        if self::place(&ctx.target).is_some_and(|own| own != place) {
            let sums = if place == Place::Tcgen05 { "no tensor memory" } else { "sums in tensor memory: `tcgen05`" };
            return Err(format!("{} has {sums}", ctx.target.name));
        }
        grouped(kernel, ctx, f, thread)?;
    }
    change(kernel, loops, &mut |_, _| Ok(()), &mut |f| all_placed(f, place))
}

/// Places the three loops of a product.
fn all_placed(f: &mut For, place: Place) {
    f.place = place;
    if let [Stmt::For(inner)] = &mut f.body[..] {
        all_placed(inner, place);
    }
}

/// The place of the loops of products that groups of four warps compute, if a target has any.
pub fn place(target: &Target) -> Option<Place> {
    match target.has(Capability::WarpgroupProducts) {
        true if target.has(Capability::TensorMemory) => Some(Place::Tcgen05),
        grouped => grouped.then_some(Place::Warpgroup),
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
    let Some(place) = place(&ctx.target) else {
        return Err(format!("{} has no products of warpgroups", ctx.target.name));
    };
    let made = Product::of(p, thread, f)?;
    if made.a.of.is_byte_float() && !ctx.knobs.fast_acc {
        return Err("warpgroups add products of f8 with fewer bits than f32 has; the knob `fast_acc` allows it".into());
    }
    let filled = boxes::filled(p);
    if !filled.contains(&made.b.buf) {
        return Err("its right operand is not brought to shared memory by TMA".into());
    }
    let rows = ctx.target.group_rows();
    let [left, _] = made.lies(p, thread.1, rows)?;
    let (groups, cols) = (thread.1 / GROUP, made.cols * 4);
    if place == Place::Tcgen05 {
        alone(p, f, made.acc)?;
        let most = ctx.target.tensor_columns();
        if groups * cols > most {
            return Err(format!("its sums take {} columns of tensor memory, which has {most}", groups * cols));
        }
    }
    let from = if left == How::Words { ", rows from registers" } else { "" };
    Ok(format!("{rows} x {cols} for each of {groups} warpgroups{from}"))
}

/// Checks that a product is all that the iterations of a loop over stages do, and that the block runs this loop once.
fn alone(p: &Kernel, product: &For, acc: BufId) -> Result<(), &'static str> {
    let mut around = None;
    look(p, &mut |_, f| {
        if f.kind == LoopKind::Serial && holds(&f.body, product) {
            around = Some(f);
        }
        true
    });
    let around = around.ok_or("no loop over stages holds it")?;
    let rest: Vec<&Stmt> = around.body.iter().filter(|s| !matches!(s, Stmt::Stage { .. })).collect();
    let only = match rest[..] {
        [Stmt::For(threads)] => matches!(&threads.body[..], [Stmt::For(f)] if std::ptr::eq(&**f, product)),
        _ => false,
    };
    match () {
        _ if !only => Err("its loop does more than multiply, and threads cannot use sums in tensor memory"),
        _ if !is_of_block(&p.body, around) && !is_of_tiles(&p.body, around) => Err("other loops hold its loop"),
        _ if products(p).len() > 1 => Err("the kernel has another product"),
        _ if !begin_at_zero(p, &p.body, around.axis, acc) => Err("its sums do not begin with zeros"),
        _ => Ok(()),
    }
}

/// True if a loop stands in the one over tiles that a block takes in turn.
pub fn is_of_tiles(body: &[Stmt], f: &For) -> bool {
    edit::over_tiles(body).is_some_and(|tiles| is_of_block(&tiles.body, f))
}

/// True if no loop but those over blocks holds a loop.
pub fn is_of_block(body: &[Stmt], f: &For) -> bool {
    body.iter().any(|s| match edit::over_blocks(s) {
        Some(blocks) => is_of_block(&blocks.body, f),
        None => matches!(s, Stmt::For(l) if l.axis == f.axis),
    })
}
