//! `tile`: the rows, columns and terms of a contraction run in blocks.
//!
//! ```text
//! for i in 0..1024: free                           for ko in 0..16: serial
//!   for j in 0..1024: free                           for jo in 0..4: free
//!     for kk in 0..4096: reduce contraction   -->      for i in 0..1024: free
//!       acc[i, j] <- a[i, kk] * b[kk, j]                 for j in 0..256: free
//!                                                          for kk in 0..256: reduce contraction
//!                                                            acc[i, jo*256 + j] <- a[i, ko*256 + kk] * b[...]
//! ```
//!
//! Legal where blocks divide the extents. The stretches of terms run one after another, so each sum keeps its order. In a kernel
//! without a grid, tiles are its blocks: [`open`]. The keys of attention have no columns: [`mod@stream`].

pub mod open;
pub mod stream;

use std::collections::BTreeMap;

use super::line::{LoopRef, find, look, replace};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::contraction::{Nest, nest_around, nest_of};
use crate::tile::edit::{self, loop_with, new_axis};
use crate::tile::tile_nest::OpenNest;
use stream::StreamNest;

pub fn apply(kernel: &mut Kernel, ctx: &Context, sum: LoopRef, block: [u32; 3]) -> Result<(), String> {
    let seen = kernel.clone();
    let block = block.map(u64::from);
    if let Some((at, nest)) = open_nest(&seen, sum) {
        kernel.body[at] = open::cut(kernel, ctx, &nest?, block)?;
        return Ok(());
    }
    let (over, nest) = nest_around(&seen, sum)?;
    let all = [nest.m, nest.n, nest.k];
    if block == all {
        return Err("one block has all of it".into());
    }
    for (what, n, block) in [("rows", all[0], block[0]), ("columns", all[1], block[1]), ("terms", all[2], block[2])] {
        if block == 0 || !n.is_multiple_of(block) {
            return Err(format!("blocks of {block} {what} do not divide {n}"));
        }
    }
    replace(kernel, over, &mut |kernel, f| {
        let nest = nest_of(f).ok_or("it is not a contraction")??;
        Ok(vec![cut(kernel, &nest, block)])
    })
}

/// Cuts the nest of a stream of keys into blocks.
pub fn stream(kernel: &mut Kernel, keys: LoopRef, block: [u32; 2]) -> Result<(), String> {
    let seen = kernel.clone();
    let none = "it is not the loop over the keys of attention in a kernel without a grid";
    let nests = seen.body.iter().enumerate().filter(|_| seen.open);
    let found = nests.filter_map(|(at, s)| Some((at, StreamNest::of(s)?)));
    let target = find(&seen, keys).ok_or(none)?;
    for (at, nest) in found {
        if let Ok(nest) = nest
            && std::ptr::eq(nest.stream, target)
        {
            kernel.body[at] = stream::cut(kernel, &nest, block.map(u64::from))?;
            return Ok(());
        }
    }
    Err(none.into())
}

/// The statement of a kernel without a grid that has a sum, as a nest.
fn open_nest(kernel: &Kernel, sum: LoopRef) -> Option<(usize, Result<OpenNest<'_>, String>)> {
    if !kernel.open {
        return None;
    }
    let (mut at, mut found) = (0, None);
    look(kernel, &mut |own, f| {
        if found.is_none() {
            let top = |s: &Stmt| matches!(s, Stmt::For(l) if std::ptr::eq(&**l, f));
            at = kernel.body.iter().position(top).unwrap_or(at);
            found = (own == sum).then_some(f);
        }
        found.is_none()
    });
    let found = found?;
    let over = |nest: &OpenNest<'_>| nest.sums.iter().flat_map(|s| &s.loops).any(|l| std::ptr::eq(*l, found));
    let nest = OpenNest::of(&kernel.body[at])?;
    nest.as_ref().map_or(found.contraction.is_some(), over).then_some((at, nest))
}

fn cut(kernel: &mut Kernel, nest: &Nest, [mc, nc, kc]: [u64; 3]) -> Stmt {
    let mut by = BTreeMap::new();
    let mut around = Vec::new();
    for (axis, extent, block, kind) in [
        (nest.roles.k, nest.k, kc, LoopKind::Serial),
        (nest.roles.n, nest.n, nc, LoopKind::Free),
        (nest.roles.m, nest.m, mc, LoopKind::Free),
    ] {
        if block == extent {
            continue;
        }
        let outer = new_axis(kernel, axis, "o");
        by.insert(axis, Ix::Axis(outer) * Ix::Const(block as i64) + Ix::Axis(axis));
        around.push((outer, (extent / block) as i64, kind));
    }
    let mut reduce = nest.reduce.clone();
    reduce.hi = Ix::Const(kc as i64);
    reduce.body = edit::place_axes(&nest.reduce.body, &by, &BTreeMap::new());
    let mut out = Stmt::For(Box::new(reduce));
    for f in nest.free.iter().rev().take(2) {
        let block = if f.axis == nest.roles.m { mc } else { nc };
        out = Stmt::For(Box::new(For { hi: Ix::Const(block as i64), body: vec![out], ..(*f).clone() }));
    }
    for (axis, count, kind) in around.into_iter().rev() {
        out = loop_with(axis, Ix::Const(count), vec![out], |f| f.kind = kind);
    }
    nest.free.iter().rev().skip(2).fold(out, |out, f| f.around(vec![out]))
}
