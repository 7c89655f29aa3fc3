//! `bind` of the loops over a row to the blocks of a cluster.
//!
//! ```text
//! for b in 0..4: free block(x)                     for b in 0..4: free block(x)
//!   local s = 0.0                                    local s = 0.0
//!   for k in 0..32768: reduce combine add(s)         for m in 0..4: reduce member combine add(s) from 0.0 x 4
//!     s <- x[b, k] + s                        -->      for k in 0..8192: reduce combine add(s)
//!   z[b] = s                                             s <- x[b, m*8192 + k] + s
//!   for j in 0..32768: free                          for m_1 in 0..1: free member
//!     y[b, j] = x[b, j] / s                            z[b] = s
//!                                                    for m_2 in 0..4: free member
//!                                                      for j in 0..8192: free
//!                                                        y[b, m_2*8192 + j] = x[b, m_2*8192 + j] / s
//! ```
//!
//! Each block has a part of every loop, and the first one stores a value that is stored once for a row. Legal for all loops that stand in
//! the only loop over blocks, of known lengths, where blocks exchange nothing but what they reduce.

use crate::index::simplify;
use crate::loops::cluster_block;
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::primitives::line::{LoopRef, look, replace};
use crate::tile::primitives::split::Pieces;

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef], blocks: u32) -> Result<(), String> {
    let most = ctx.target.axes.cluster;
    if !blocks.is_power_of_two() || blocks < 2 || blocks > most {
        return Err(match most {
            0 | 1 => format!("{} has no clusters of blocks", ctx.target.name),
            _ => format!("expected a power of two of blocks, from 2 to {most}"),
        });
    }
    let mut nest = None;
    look(kernel, &mut |at, f| {
        nest = nest.or(matches!(f.place, Place::Block { .. }).then_some(at));
        nest.is_none()
    });
    replace(kernel, nest.ok_or("no loop is over blocks")?, &mut |kernel, nest| {
        let inner = |s: &&Stmt| matches!(s, Stmt::For(_));
        let named = |f: &For| loops.iter().any(|at| at.axis == f.axis);
        if nest.body.iter().filter(inner).any(|s| matches!(s, Stmt::For(f) if !named(f)))
            || nest.body.iter().filter(inner).count() != loops.len()
        {
            return Err("they are not all loops that stand in the loop over blocks".into());
        }
        let mut body = vec![];
        for s in &nest.body {
            body.push(match s {
                Stmt::For(f) => part(kernel, nest, f, blocks)?,
                Stmt::Store { .. } => {
                    let m = member(kernel);
                    edit::loop_with(m, Ix::Const(1), vec![s.clone()], |f| f.place = Place::ClusterBlock)
                }
                s => s.clone(),
            });
        }
        let made = For { body, ..nest.clone() };
        let problem = |s: &Stmt| match s {
            Stmt::For(f) => cluster_block::problem(kernel, &made, f),
            _ => None,
        };
        match made.body.iter().find_map(problem) {
            Some(why) => Err(why.into()),
            None => Ok(vec![Stmt::For(Box::new(made.clone()))]),
        }
    })
}

fn member(kernel: &mut Kernel) -> AxisId {
    kernel.axes.push(Axis { name: "m".into(), from: None })
}

/// A loop over a row as one over the blocks of a cluster, each with a part of the row.
fn part(kernel: &mut Kernel, nest: &For, f: &For, blocks: u32) -> Result<Stmt, String> {
    let length =
        const_trip(f).filter(|_| f.place == Place::None).ok_or("the length of a loop is not known, or it is placed")?;
    let count = u64::from(blocks);
    // Parts begin where wide accesses may, unless that leaves blocks without one.
    let each = length.div_ceil(count);
    let even = each.next_multiple_of(16);
    let each = if even * (count - 1) < length { even } else { each } as i64;
    let m = member(kernel);
    let mut facts = kernel.facts();
    facts.set_axis(nest.axis, &nest.lo, &nest.hi);
    facts.set_axis(m, &Ix::Const(0), &Ix::Const(blocks.into()));
    let pieces = Pieces::of(f, each);
    let mut own = For { hi: simplify(&pieces.length_or_none(m, blocks.into()), &facts), ..f.clone() };
    let at = pieces.at(m, f.axis);
    edit::put_axis(&mut own.body, f.axis, &at, &facts);
    let combine = f.combine.clone().map(|c| Combine { ways: blocks, ..c });
    Ok(edit::loop_with(m, Ix::Const(blocks.into()), vec![Stmt::For(Box::new(own))], |over| {
        (over.kind, over.place, over.combine) = (f.kind, Place::ClusterBlock, combine);
    }))
}
