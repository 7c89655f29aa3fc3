//! `bind`: the iterations of a loop are the blocks of the grid, or a reduction is that of all threads of a block.
//!
//! ```text
//! for b in 0..512: free                            for b in 0..512: free block(x)
//!   for k in 0..3584: reduce combine add(s) -->      for k in 0..3584: reduce thread combine add(s) from 0.0 x 256
//!     s <- x[b, k] + s                                 s <- x[b, k] + s
//! ```
//!
//! Blocks: legal for the outermost free loop of an open kernel, whose nests do not need what another one stores. Threads: for a
//! reduction that may be reassociated, of loads and arithmetic; for all free loops of a block, [`spread`]. Lanes: for a reduction of
//! partial results, [`lanes`]. The blocks of a cluster: for the loops over a row, [`cluster`].

pub mod cluster;
pub mod lanes;
pub mod spread;

use std::collections::BTreeSet;

use super::line::{LoopRef, change, look};
use super::part::{Part, Reader, Says, Writer};
use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit;

/// The place of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// A free loop: each iteration is a block, along a dimension of the grid.
    Block(u8),
    /// A free loop: each iteration is a thread.
    Threads,
    /// Reductions that this number of threads share; or all nests of free loops, and with them all that a block does.
    Shared(u32),
    /// A reduction of partial results: each iteration is a lane of a warp, and the loops around it are threads.
    Lanes,
    /// The loops over a row: that many blocks of a cluster share them.
    Cluster(u32),
}

const DIMS: [&str; 3] = ["block.x", "block.y", "block.z"];

impl Part for To {
    fn read(r: &mut Reader<'_>, _: Says) -> Result<To, String> {
        r.before = "to";
        let word = r.word("`thread`, `lanes`, `cluster` or one of `block.x`, `block.y`, `block.z`")?;
        match word {
            "thread" if r.rest.is_empty() => Ok(To::Threads),
            "thread" => r.number("a number of threads", 1).map(To::Shared),
            "lanes" => Ok(To::Lanes),
            "cluster" => r.number("a number of blocks", 2).map(To::Cluster),
            _ => match DIMS.iter().position(|dim| *dim == word) {
                Some(dim) => Ok(To::Block(dim as u8)),
                None => {
                    let known = DIMS.into_iter().chain(["thread", "lanes", "cluster"]);
                    Err(format!("unknown place `{word}`; {}", suggestion("places", word, known)))
                }
            },
        }
    }

    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.line.before = "to";
        w.by(&match self {
            To::Block(dim) => DIMS[usize::from(*dim).min(2)].to_string(),
            To::Threads => "thread".into(),
            To::Lanes => "lanes".into(),
            To::Cluster(n) => format!("cluster {n}"),
            To::Shared(n) => format!("thread {n}"),
        });
    }
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef], to: To) -> Result<(), String> {
    if loops.is_empty() && !matches!(to, To::Shared(_)) {
        return Err("expected the name of a loop behind `bind`".into());
    }
    if let To::Shared(threads) = to
        && !some_reduce(kernel, loops)
    {
        return spread::apply(kernel, ctx, loops, threads);
    }
    if let (To::Lanes, [at]) = (to, loops) {
        return lanes::apply(kernel, ctx, *at);
    }
    if let To::Cluster(blocks) = to {
        return cluster::apply(kernel, ctx, loops, blocks);
    }
    let outermost: Vec<AxisId> = around_blocks(&kernel.body);
    let apart = nests_apart(kernel);
    let (open, most) = (kernel.open, u64::from(ctx.target.axes.threads));
    let alone = alone_in_blocks(&kernel.body);
    let check = &mut |_: &Kernel, f: &For| match to {
        _ if f.place != Place::None => Err("another step has placed the loop already".to_string()),
        To::Block(_) if f.kind != LoopKind::Free || !f.lo.is_const(0) => {
            Err("its iterations are not independent, or do not count from 0".into())
        }
        To::Block(_) if !open => Err("the launch gives the grid".into()),
        To::Block(_) if !outermost.contains(&f.axis) => Err("a loop around it is not over blocks".into()),
        To::Block(_) => apart.clone(),
        To::Threads => can_be_threads(f, most, &alone),
        To::Shared(_) if f.kind != LoopKind::Reduce => Err("reductions and free loops take lines of their own".into()),
        To::Shared(n) if !n.is_power_of_two() || n < ctx.target.axes.lanes || n > ctx.target.axes.threads => Err(
            format!("{n} threads are not a power of two from {} to {}", ctx.target.axes.lanes, ctx.target.axes.threads),
        ),
        To::Shared(_) => can_share(f).map_err(String::from),
        To::Lanes | To::Cluster(_) => Err("lanes take one reduction".into()),
    };
    change(kernel, loops, check, &mut |f| match to {
        To::Block(dim) => f.place = Place::Block { dim, group: 0, takers: 0, cluster: 0 },
        To::Threads | To::Lanes | To::Cluster(_) => f.place = Place::Thread,
        To::Shared(n) => {
            f.place = Place::Thread;
            if let Some(combine) = &mut f.combine {
                combine.ways = n;
            }
        }
    })
}

fn some_reduce(kernel: &Kernel, loops: &[LoopRef]) -> bool {
    let mut found = false;
    look(kernel, &mut |at, f| {
        found |= f.kind == LoopKind::Reduce && loops.contains(&at);
        true
    });
    found
}

/// The axes of loops that are all that a block does.
fn alone_in_blocks(body: &[Stmt]) -> Vec<AxisId> {
    let mut out = vec![];
    for s in body {
        if let Stmt::For(f) = s
            && matches!(f.place, Place::Block { .. })
        {
            match &f.body[..] {
                [Stmt::For(only)] if only.place == Place::None => out.push(only.axis),
                inner => out.extend(alone_in_blocks(inner)),
            }
        }
    }
    out
}

fn can_be_threads(f: &For, most: u64, alone: &[AxisId]) -> Result<(), String> {
    match edit::const_trip(f) {
        _ if f.kind != LoopKind::Free => Err("its iterations are not independent".into()),
        Some(n) if n <= most && alone.contains(&f.axis) => Ok(()),
        Some(n) if n > most => Err(format!("it has {n} iterations, and a block at most {most} threads")),
        Some(_) => Err("a block does more than this loop".into()),
        None => Err("it does not run from 0 to a constant".into()),
    }
}

/// The axes of loops that stand in nothing but loops over blocks.
fn around_blocks(body: &[Stmt]) -> Vec<AxisId> {
    let mut out = vec![];
    for s in body {
        if let Stmt::For(f) = s {
            out.push(f.axis);
            if matches!(f.place, Place::Block { .. }) {
                out.extend(around_blocks(&f.body));
            }
        }
    }
    out
}

/// Whether the threads of a block can share a reduction.
pub fn can_share(f: &For) -> Result<(), &'static str> {
    if f.combine.is_none() {
        return Err("the order of its reduction is fixed");
    }
    if f.contraction.is_some() || f.body.iter().any(|s| !walk::bodies(s).is_empty()) {
        return Err("it holds more than what it folds");
    }
    if f.body.iter().any(|s| !edit::is_pure(s) && !matches!(s, Stmt::Write { .. } | Stmt::Assert { .. })) {
        return Err("it holds more than loads and arithmetic");
    }
    Ok(())
}

pub fn is_nest(s: &Stmt) -> bool {
    matches!(s, Stmt::For(f) if f.kind == LoopKind::Free)
}

/// Whether the nests may run in any order, each in blocks.
pub fn nests_apart(p: &Kernel) -> Result<(), String> {
    if !p.body.iter().any(is_nest) {
        return Err("the outermost loop is not free".to_string());
    }
    let (mut loaded, mut stored, mut narrow) = (BTreeSet::new(), BTreeSet::new(), false);
    walk::visit(&p.body, &mut |s| match s {
        Stmt::Load { mem, .. } => _ = loaded.insert(mem.base),
        Stmt::Store { mem, .. } => {
            stored.insert(mem.base);
            narrow |= mem.elem.bits() < 8 && mem.elem.bits() > 1;
        }
        _ => {}
    });
    if narrow {
        return Err("two of its elements share a byte".to_string());
    }
    let nests = p.body.iter().filter(|s| is_nest(s)).count();
    if nests > 1 && loaded.intersection(&stored).next().is_some() {
        return Err("a nest loads what another one stores".to_string());
    }
    for s in p.body.iter().filter(|s| !is_nest(s)) {
        let alone = edit::is_pure(s) || matches!(s, Stmt::Local { .. } | Stmt::Write { .. } | Stmt::Assert { .. });
        if !alone {
            return Err("every block would repeat the statements beside the free loops".to_string());
        }
    }
    Ok(())
}

/// One block around loops that stand outermost, or around all that an open kernel does.
pub fn enclose(kernel: &mut Kernel, loops: &[LoopRef], name: &str) -> Result<(), String> {
    if !kernel.open {
        return Err("the launch gives the grid".into());
    }
    if loops.is_empty() {
        if kernel.body.is_empty() || kernel.body.iter().any(|s| edit::over_blocks(s).is_some()) {
            return Err("a loop over blocks stands there already".into());
        }
        let body = std::mem::take(&mut kernel.body);
        kernel.body = vec![block(kernel, name, body)];
        return Ok(());
    }
    let named =
        |s: &Stmt| matches!(s, Stmt::For(f) if f.place == Place::None && loops.iter().any(|at| at.axis == f.axis));
    let places: Vec<usize> = (0..kernel.body.len()).filter(|n| named(&kernel.body[*n])).collect();
    let (true, Some(first), Some(last)) = (places.len() == loops.len(), places.first(), places.last()) else {
        return Err("they are not loops that stand outermost and that no step has placed".into());
    };
    // What stands between them is done before all of them.
    let reads = places.iter().flat_map(|n| walk::refs_of(&kernel.body[*n]).bufs_read).collect::<BTreeSet<_>>();
    let between = (*first..*last).filter(|n| !places.contains(n)).map(|n| walk::refs_of(&kernel.body[n]).bufs_written);
    if between.flatten().any(|b| reads.contains(&b)) {
        return Err("what stands between them writes what they read".into());
    }
    let (inside, mut rest): (Vec<_>, Vec<_>) =
        std::mem::take(&mut kernel.body).into_iter().enumerate().partition(|(n, _)| places.contains(n));
    let behind = rest.iter().position(|(n, _)| n > last).unwrap_or(rest.len());
    let made = block(kernel, name, inside.into_iter().map(|(_, s)| s).collect());
    rest.insert(behind, (*last, made));
    kernel.body = rest.into_iter().map(|(_, s)| s).collect();
    Ok(())
}

fn block(kernel: &mut Kernel, name: &str, body: Vec<Stmt>) -> Stmt {
    let axis = kernel.axes.push(Axis { name: name.into(), from: None });
    edit::block_loop(axis, 0, Ix::Const(1), body)
}
