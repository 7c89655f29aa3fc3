//! `pipeline`: the stages of a serial loop are filled ahead, into so many slots.
//!
//! ```text
//! for kt in 0..112: serial                         for kt in 0..112: serial pipeline(3)
//!   stage a_s: f32[128, 36] shared: ...     -->      stage a_s: f32[128, 36] shared: ...
//!   for t in 0..256: free thread                     for t in 0..256: free thread
//! ```
//!
//! Legal where the stages read nothing that the rest of the body writes, which stores nothing to memory that a fetch could pass.
//! `roles` gives the stages a warp of their own, `overlap` lets the last product of an iteration go on while the next begins.

use std::collections::BTreeSet;

use super::line::{LoopRef, change};
use crate::loops::ir::*;
use crate::loops::overlap::Overlap;
use crate::loops::walk::{self, effects, refs};
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::reuse;
use crate::tile::target::MemoryKind;

/// Slots at most.
const MOST: u32 = 64;

pub fn apply(
    kernel: &mut Kernel,
    ctx: &Context,
    at: LoopRef,
    depth: u32,
    roles: bool,
    overlap: bool,
) -> Result<(), String> {
    if !(1..=MOST).contains(&depth) {
        return Err(format!("a pipeline has from 1 to {MOST} slots, not {depth}"));
    }
    let folds = folds_together(kernel);
    let (held, behind) = reuse::bytes_with_slots(kernel);
    let check = &mut |kernel: &Kernel, f: &For| {
        match f.place {
            Place::None => legal(kernel, f, depth)?,
            Place::Pipeline { depth: has, .. } if has == depth => {}
            Place::Pipeline { depth: has, .. } => return Err(format!("it is a pipeline of {has} slots already")),
            _ => return Err("the loop is placed already".into()),
        }
        if f.place == Place::None && depth > 1 {
            fits(kernel, ctx, f, depth, (held, behind))?;
        }
        let placed = Place::Pipeline { depth, roles: false, overlap: false };
        let f = &For { place: placed, body: ordered(f), ..f.clone() };
        match () {
            _ if roles && has_roles(kernel, f.axis) => Err("another loop of the kernel has the warp".into()),
            _ if roles => can_have_roles(kernel, f, depth, folds).map_err(String::from),
            _ => Ok(()),
        }?;
        if overlap { Overlap::of(kernel, f).map(drop).map_err(String::from) } else { Ok(()) }
    };
    change(kernel, &[at], check, &mut |f| {
        f.body = ordered(f);
        f.place = Place::Pipeline { depth, roles, overlap };
    })
}

/// Stages that are filled ahead come first.
fn ordered(f: &For) -> Vec<Stmt> {
    let (stages, rest) = apart(f);
    stages.into_iter().chain(rest).collect()
}

fn legal(kernel: &Kernel, f: &For, depth: u32) -> Result<(), String> {
    if f.kind != LoopKind::Serial || !f.body.iter().any(|s| staged(s).is_some()) {
        return Err("the loop does not run in order around stages".into());
    }
    // One slot is filled where it is needed.
    if depth == 1 { Ok(()) } else { ahead(kernel, f).map(drop).map_err(String::from) }
}

/// The stages of a loop that can be filled ahead.
pub fn ahead(kernel: &Kernel, f: &For) -> Result<Vec<Stmt>, &'static str> {
    if !f.counts_from_zero() {
        return Err("it does not count from 0 in steps of 1");
    }
    if edit::at_most(&f.hi).is_some_and(|n| n < 2) {
        return Err("it has one iteration");
    }
    let (stages, rest) = apart(f);
    let of_rest = effects(&rest);
    if !of_rest.stores.is_empty() || of_rest.ordered || of_rest.atomic {
        return Err("it stores to global memory");
    }
    if stages.is_empty() || rest.first().and_then(staged).is_some() {
        return Err("its stages read what the loop computes");
    }
    if stages.iter().filter_map(staged).any(|b| kernel.bufs[b].space != Space::Shared) {
        return Err("its stages are not in shared memory");
    }
    Ok(stages)
}

/// Whether shared memory has room for so many slots.
fn fits(kernel: &Kernel, ctx: &Context, f: &For, depth: u32, (all, behind): (u64, u64)) -> Result<(), String> {
    let (stages, _) = apart(f);
    let size: u64 = stages.iter().filter_map(staged).map(|b| kernel.bufs[b].bytes()).sum();
    let needs = needed(&stages, size, depth.into(), (all, behind));
    let room = ctx.target.bytes_of(MemoryKind::Shared);
    match needs <= room {
        true => Ok(()),
        false => {
            Err(format!("{depth} slots take {needs} bytes of shared memory; a block of {} has {room}", ctx.target.name))
        }
    }
}

/// Bytes of shared memory with so many slots of `size` bytes for the stages of a loop. `all` is what it holds with one slot each,
/// `behind` what may have the bytes of all slots.
pub fn needed(stages: &[Stmt], size: u64, depth: u64, (all, behind): (u64, u64)) -> u64 {
    // The places of boxes are multiples of up to 1024 bytes, and TMA counts bytes in shared memory too.
    let all = all + stages.iter().filter(|s| s.filled(Filled::Tma)).count() as u64 * 1024;
    all + (depth - 1) * size + behind.saturating_sub(depth * size)
}

/// Whether the threads of a block fold something together.
pub fn folds_together(p: &Kernel) -> bool {
    walk::loops(&p.body).any(|f| f.kind == LoopKind::Reduce && f.place == Place::Thread)
}

/// Whether a pipeline of the kernel other than that of an axis has a warp that fills it.
fn has_roles(p: &Kernel, other: AxisId) -> bool {
    walk::loops(&p.body).any(|f| f.axis != other && matches!(f.place, Place::Pipeline { roles: true, .. }))
}

/// Whether a warp of its own can fill a pipeline.
pub fn can_have_roles(kernel: &Kernel, f: &For, depth: u32, folds: bool) -> Result<(), &'static str> {
    let (stages, rest) = f.stages();
    let shared = |b: &BufId| kernel.bufs[*b].space == Space::Shared;
    let own = |b: &BufId| kernel.bufs[*b].space == Space::Private;
    let declares = |s: &Stmt| declared(s).is_some_and(|b| !own(&b));
    match () {
        _ if !stages.iter().all(|s| s.filled(Filled::Tma)) => Err("threads fill a stage of it"),
        _ if depth < 2 => Err("it has one slot"),
        _ if effects(rest).bufs_written.iter().any(shared) || rest.iter().any(declares) => {
            Err("it computes what threads share")
        }
        _ if folds => Err("all threads of a block fold something together"),
        _ => Ok(()),
    }
}

/// The stages of a body that can be filled ahead, and what else it does: a stage that reads what the loop computes stays where
/// it is.
pub fn apart(f: &For) -> (Vec<Stmt>, Vec<Stmt>) {
    let mut ahead: Vec<bool> = f.body.iter().map(|s| staged(s).is_some()).collect();
    let all: BTreeSet<BufId> = f.body.iter().filter_map(staged).collect();
    loop {
        let (stages, rest) = divided(&f.body, &ahead);
        let defined: BTreeSet<ValId> = refs(&rest).vals_defined.into_iter().collect();
        let made: BTreeSet<BufId> =
            effects(&rest).bufs_written.into_iter().chain(rest.iter().filter_map(declared)).collect();
        let waits = |s: &Stmt| {
            let others = |b: &BufId| made.contains(b) || all.contains(b) && staged(s) != Some(*b);
            effects(std::slice::from_ref(s)).bufs_read.iter().any(others)
                || refs(std::slice::from_ref(s)).vals_used.iter().any(|v| defined.contains(v))
        };
        let next: Vec<bool> = f.body.iter().zip(&ahead).map(|(s, ahead)| *ahead && !waits(s)).collect();
        if next == ahead {
            return (stages, rest);
        }
        ahead = next;
    }
}

/// The statements that are marked, and the others.
fn divided(body: &[Stmt], marked: &[bool]) -> (Vec<Stmt>, Vec<Stmt>) {
    let (yes, no): (Vec<_>, Vec<_>) = body.iter().zip(marked).partition(|(_, marked)| **marked);
    let cloned = |of: Vec<(&Stmt, &bool)>| of.into_iter().map(|(s, _)| s.clone()).collect();
    (cloned(yes), cloned(no))
}

/// The buffer that a statement begins.
fn declared(s: &Stmt) -> Option<BufId> {
    match s {
        Stmt::Local { buf } | Stmt::Stage { buf, .. } => Some(*buf),
        _ => None,
    }
}

pub fn staged(s: &Stmt) -> Option<BufId> {
    match s {
        Stmt::Stage { buf, .. } => Some(*buf),
        _ => None,
    }
}
