//! `fill`: the stages of a pipeline are filled by copies that go on while threads compute.
//!
//! ```text
//! for kt in 0..112: serial pipeline(3)             for kt in 0..112: serial pipeline(3)
//!   stage a_s: f32[128, 36] shared:         -->      stage a_s: f32[128, 36] shared async:
//! ```
//!
//! Legal where a stage only copies, 4, 8 or 16 bytes at a time, and what is masked off is 0.

use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::target::Capability;

pub fn apply(kernel: &mut Kernel, ctx: &Context, bufs: &[BufId]) -> Result<(), String> {
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
    let mut out = vec![];
    walk::visit(&kernel.body, &mut |s| {
        let Stmt::For(f) = s else { return };
        if matches!(f.place, Place::Pipeline { .. }) {
            out.extend(f.stages().0.iter().filter_map(|s| match s {
                Stmt::Stage { buf, filled: Filled::Copied, body } => Some((*buf, &body[..])),
                _ => None,
            }));
        }
    });
    out
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
