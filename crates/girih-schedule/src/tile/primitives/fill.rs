//! `fill`: stages are filled by copies that go on while threads compute.
//!
//! ```text
//! for kt in 0..112: serial pipeline(3)             for kt in 0..112: serial pipeline(3)
//!   stage a_s: f32[128, 36] shared:         -->      stage a_s: f32[128, 36] shared async:
//! ```
//!
//! `async`: the threads begin copies in a pipeline; legal where a stage only copies, 4, 8 or 16 bytes at a time, and what is masked off
//! is 0. `tma`: one thread begins the copy of a box of a tensor; legal in a loop that counts from 0, where nothing was stored to global
//! memory before, and the copy is such a box (`tile/boxes.rs`).

use std::collections::BTreeSet;

use super::part::{Part, Reader, Says, Writer};
use crate::index::Facts;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::boxes::BoxCopy;
use crate::tile::edit;
use crate::tile::target::Capability;

/// The unit that copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    Async,
    Tma,
}

impl Part for Engine {
    fn read(r: &mut Reader<'_>, _: Says) -> Result<Engine, String> {
        r.choice(&[("async", Engine::Async), ("tma", Engine::Tma)])
    }

    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.by(if *self == Engine::Async { "async" } else { "tma" });
    }
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, bufs: &[BufId], by: Engine) -> Result<(), String> {
    match by {
        Engine::Async => by_threads(kernel, ctx, bufs),
        Engine::Tma => by_tma(kernel, ctx, bufs),
    }
}

/// A stage of a serial loop that loads and stores fill.
pub struct Boxed<'a> {
    pub buf: BufId,
    /// The statements after it in the loop.
    pub readers: &'a [Stmt],
    /// The box that TMA copies, or why it cannot.
    pub copy: Result<BoxCopy, String>,
}

/// The stages that TMA might fill.
pub fn boxes<'a>(kernel: &'a Kernel, ctx: &Context) -> Vec<Boxed<'a>> {
    let mut out = vec![];
    for (facts, body) in edit::blocks(kernel) {
        in_block(kernel, ctx, body, facts, &mut out);
    }
    out
}

fn in_block<'a>(kernel: &Kernel, ctx: &Context, body: &'a [Stmt], mut facts: Facts, out: &mut Vec<Boxed<'a>>) {
    // The results of one tile are stored before the operands of the next are copied.
    let tiles = edit::over_tiles(&kernel.body).is_some();
    for (at, s) in body.iter().enumerate() {
        let Stmt::For(f) = s else { continue };
        if f.kind != LoopKind::Serial || f.place != Place::None {
            continue;
        }
        let before = walk::effects(if tiles { body } else { &body[..=at] });
        facts.set_axis(f.axis, &f.lo, &f.hi);
        for (at, s) in f.body.iter().enumerate() {
            let Stmt::Stage { buf, filled: Filled::Copied, body } = s else { continue };
            let copy = match () {
                _ if !f.counts_from_zero() => Err("its loop does not count from 0 in steps of 1".to_string()),
                _ if before.atomic || before.ordered || !tiles && !before.stores.is_empty() => Err(STORES.to_string()),
                _ if kernel.bufs[*buf].space != Space::Shared => Err("it is not in shared memory".to_string()),
                _ => BoxCopy::of(kernel, &facts, body).and_then(|copy| match copy.refused(kernel) {
                    Some(why) => Err(why),
                    None if !apart(kernel, ctx, &before.stores, copy.base) => Err(STORES.to_string()),
                    None => Ok(copy),
                }),
            };
            out.push(Boxed { buf: *buf, readers: &f.body[at + 1..], copy });
        }
    }
}

const STORES: &str = "the kernel stores to global memory before";

/// Returns true if nothing is stored to an array.
fn apart(kernel: &Kernel, ctx: &Context, stores: &BTreeSet<ValId>, array: ValId) -> bool {
    let other = |base: &ValId| *base != array && kernel.params.iter().any(|p| p.val == *base);
    stores.is_empty() || ctx.assume.no_alias && stores.iter().all(other)
}

fn by_tma(kernel: &mut Kernel, ctx: &Context, bufs: &[BufId]) -> Result<(), String> {
    if !ctx.target.has(Capability::TensorCopies) {
        return Err(format!("{} has no copies of boxes", ctx.target.name));
    }
    let mut copies = vec![];
    for stage in boxes(kernel, ctx) {
        if bufs.contains(&stage.buf) {
            copies.push((stage.buf, stage.copy?));
        }
    }
    if let Some(buf) = bufs.iter().find(|buf| !copies.iter().any(|(b, _)| b == *buf)) {
        return Err(format!("no serial loop fills {} by loads and stores", kernel.bufs[*buf].name));
    }
    for (buf, copy) in copies {
        kernel.require(copy.obligations());
        let mut new = Some(copy.body(kernel));
        walk::visit_mut(&mut kernel.body, &mut |s| {
            if let Stmt::Stage { buf: b, filled, body } = s
                && *b == buf
                && let Some(new) = new.take()
            {
                (*filled, *body) = (Filled::Tma, new);
            }
        });
    }
    Ok(())
}

fn by_threads(kernel: &mut Kernel, ctx: &Context, bufs: &[BufId]) -> Result<(), String> {
    if !ctx.target.has(Capability::AsyncCopies) {
        return Err(format!("{} has no copies that go on by themselves", ctx.target.name));
    }
    for buf in bufs {
        let found = stages(kernel).into_iter().find(|(b, _)| b == buf);
        let (_, body) = found.ok_or("it is not filled ahead by loads and stores in a pipeline")?;
        copies(body, 1)?;
    }
    walk::visit_mut(&mut kernel.body, &mut |s| {
        if let Stmt::Stage { buf, filled, .. } = s
            && bufs.contains(buf)
        {
            *filled = Filled::Async;
        }
    });
    Ok(())
}

/// The stages that pipelines fill ahead by loads and stores.
pub fn stages(kernel: &Kernel) -> Vec<(BufId, &[Stmt])> {
    let pipelines = walk::loops(&kernel.body).filter(|f| matches!(f.place, Place::Pipeline { .. }));
    let copied = pipelines.flat_map(|f| f.stages().0).filter_map(|s| match s {
        Stmt::Stage { buf, filled: Filled::Copied, body } => Some((*buf, &body[..])),
        _ => None,
    });
    copied.collect()
}

/// Whether statements only copy; `lanes` elements at once.
pub fn copies(body: &[Stmt], lanes: u64) -> Result<(), &'static str> {
    if let Some(copy) = edit::Copy::of(body, lanes) {
        return copy.map(drop);
    }
    match body {
        [Stmt::For(f)] => {
            let lanes = match f.place {
                Place::Vector { lanes } if edit::const_trip(f) == Some(lanes.into()) => u64::from(lanes),
                Place::Vector { .. } => return Err("it moves more than one vector"),
                _ => lanes,
            };
            copies(&f.body, lanes)
        }
        // The threads that have an element.
        [Stmt::Test { .. }, Stmt::If { then, els, .. }] if els.is_empty() => copies(then, lanes),
        _ => Err("it computes what it stores"),
    }
}
