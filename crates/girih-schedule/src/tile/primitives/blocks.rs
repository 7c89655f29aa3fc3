//! `group`, `cluster` and `persist`: in which order blocks have their numbers, which of them are neighbours, and how many there are.
//!
//! ```text
//! for jb in 0..32: free block(y)                   for jb in 0..32: free block(y, 132 in turn)
//!   for ib in 0..32: free block(x)         -->       for ib in 0..32: free block(x, groups of 8)
//! ```
//!
//! Blocks are independent of each other, so their order makes no difference but to caches. Clusters are legal where a warp of its
//! own fills the pipeline of each block and two blocks have the same of an operand; blocks that take iterations in turn where a
//! pipeline goes on from one to the next.

use super::line::{LoopRef, change, look};
use crate::base::id::Id;
use crate::base::rule::Refusal;
use crate::index::Facts;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::boxes::BoxCopy;
use crate::tile::edit::{const_trip, over_blocks};
use crate::tile::persistent_loop::GoesOn;
use crate::tile::rules::spread_threads;

/// Threads of the blocks of a cluster, and mbarriers, that Kernel IR counts together.
const MOST_THREADS: u64 = 1024;
const MOST_MBARRIERS: u64 = 64;
/// Threads of a warpgroup, which may fill.
const FILLERS: u64 = 128;

/// What a step says of the loop that counts blocks along an axis of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Group(u32),
    Cluster(u32),
    Persist(u32),
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, at: LoopRef, order: Order) -> Result<(), String> {
    let why = match order {
        Order::Group(_) => Ok(()),
        Order::Cluster(blocks) => match alike(kernel, ctx, blocks) {
            Some((over, alike)) if over.last().is_some_and(|(last, _)| *last == at) => {
                alike.map(drop).map_err(|refusal| refusal.why)
            }
            _ => Err("it is not the innermost loop over the blocks of a pipeline".into()),
        },
        Order::Persist(_) => goes_on(kernel, at),
    };
    why?;
    let over = |_: &Kernel, f: &For| match f.place {
        Place::Block { .. } => Ok(()),
        _ => Err("the loop is not over blocks".to_string()),
    };
    change(kernel, &[at], &mut { over }, &mut |f| {
        if let Place::Block { group, cluster, takers, .. } = &mut f.place {
            match order {
                Order::Group(n) => *group = n,
                Order::Cluster(n) => *cluster = n,
                Order::Persist(n) => *takers = n,
            }
        }
    })
}

/// The loops over blocks of the first nest of them, outermost first.
fn nest(p: &Kernel) -> Vec<(LoopRef, &For)> {
    let mut out: Vec<(LoopRef, &For)> = vec![];
    look(p, &mut |at, f| {
        let blocks = matches!(f.place, Place::Block { .. });
        let within = out
            .last()
            .is_none_or(|(_, over)| over.body.iter().any(|s| matches!(s, Stmt::For(l) if std::ptr::eq(&**l, f))));
        if blocks && within {
            out.push((at, f));
        }
        blocks
    });
    out
}

fn nests(p: &Kernel) -> usize {
    p.body.iter().filter_map(over_blocks).count()
}

/// Whether the pipeline of a nest of blocks can go on from one iteration to the next.
fn goes_on(p: &Kernel, at: LoopRef) -> Result<(), String> {
    let over = nest(p);
    if nests(p) > 1 || over.first().is_none_or(|(first, _)| *first != at) {
        return Err("it is not the outermost loop of the only nest of blocks".into());
    }
    if over.iter().any(|(_, f)| matches!(f.place, Place::Block { cluster: 1.., .. })) {
        return Err("its blocks form clusters".into());
    }
    let body = over.last().map_or(&[][..], |(_, f)| &f.body[..]);
    match GoesOn::of(body).map_err(String::from)? {
        Some(_) => Ok(()),
        None => Err("its blocks have no pipeline".into()),
    }
}

/// The loops over the blocks of a pipeline, and the operands that are alike in neighbouring blocks along the innermost of them; `None`
/// where blocks have no pipeline, or clusters.
#[allow(clippy::type_complexity)]
pub fn alike<'a>(
    p: &'a Kernel,
    ctx: &Context,
    blocks: u32,
) -> Option<(Vec<(LoopRef, &'a For)>, Result<Vec<String>, Refusal>)> {
    let over = nest(p);
    let (_, inner) = over.last()?;
    if !matches!(inner.place, Place::Block { cluster: 0, .. }) {
        return None;
    }
    let alike = match GoesOn::of(&inner.body) {
        Ok(None) => return None,
        Ok(Some(_)) if nests(p) > 1 => Err("the kernel has several nests of blocks".into()),
        Ok(Some(found)) => fits(p, ctx, inner, found, blocks),
        Err(why) => Err(why.into()),
    };
    Some((over, alike))
}

/// The operands that are alike in the blocks of a cluster.
fn fits(p: &Kernel, ctx: &Context, x: &For, found: GoesOn<'_>, blocks: u32) -> Result<Vec<String>, Refusal> {
    let Place::Block { dim, group, takers, .. } = x.place else { return Err("the loop is not over blocks".into()) };
    if ctx.target.axes.cluster < blocks {
        return Err(Refusal::impossible(format!(
            "{} has clusters of at most {}",
            ctx.target.name, ctx.target.axes.cluster
        )));
    }
    if !found.roles {
        return Err("no warp of its own fills the pipeline".into());
    }
    if walk::loops(&found.pipeline.body).any(|f| f.place == Place::Tcgen05) {
        return Err("its products read their slots until a barrier of their own block ends".into());
    }
    let whole = |n: u64| n.is_multiple_of(blocks.into());
    if dim != 0 || takers > 0 || const_trip(x).is_none_or(|n| !whole(n)) {
        return Err(format!("its blocks are not known to make whole clusters of {blocks}").into());
    }
    if !whole(group.into()) {
        return Err(format!("groups of {group} blocks do not make whole clusters of {blocks}").into());
    }
    let threads = spread_threads::threads(p, ctx).max(1) as u64 + FILLERS;
    if threads * u64::from(blocks) > MOST_THREADS || 2 * found.depth as u64 * u64::from(blocks) > MOST_MBARRIERS {
        return Err(format!("{blocks} of its blocks have more threads or mbarriers than a cluster may have").into());
    }
    let mut facts = Facts::new();
    facts.set_axis(x.axis, &x.lo, &x.hi);
    facts.set_axis(found.pipeline.axis, &found.pipeline.lo, &found.pipeline.hi);
    let mut alike = vec![];
    for stage in found.pipeline.stages().0 {
        let Stmt::Stage { buf, body, .. } = stage else { continue };
        let copy = BoxCopy::of(p, &facts, body).map_err(Refusal::from)?;
        let of_block = |leaf: &Ix| match leaf {
            Ix::Axis(axis) => *axis == x.axis,
            Ix::Val { val, .. } => val.index() >= p.params.len(),
            _ => false,
        };
        if !copy.dims.iter().any(|d| d.from.any_leaf(&mut |leaf| of_block(leaf))) {
            alike.push(p.bufs[*buf].name.clone());
        }
    }
    match alike.is_empty() {
        true => Err("no two of its blocks have the same of an operand".into()),
        false => Ok(alike),
    }
}
