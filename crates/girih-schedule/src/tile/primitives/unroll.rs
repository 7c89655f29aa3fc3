//! `unroll`: the copies of a loop's body are written out, and those of the loops in it.
//!
//! ```text
//! for c in 0..3: free                       -->    for c in 0..3: free unroll
//! ```
//!
//! Legal where how often each of the loops runs is a constant.

use super::line::{LoopRef, change};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit::const_trip;

/// Copies that a compiler is asked to write at most.
const MOST: u64 = 4096;

pub fn apply(kernel: &mut Kernel, loops: &[LoopRef]) -> Result<(), String> {
    change(kernel, loops, &mut |_, f| legal(f), &mut mark)
}

fn legal(f: &For) -> Result<(), String> {
    match copies(f) {
        _ if f.place != Place::None => Err("the loop is placed already".into()),
        None => Err("it runs in order, or how often it runs, or a loop in it, is not a constant".into()),
        Some(n) if n > MOST => Err(format!("it would be {n} copies; {MOST} are written out at most")),
        Some(_) => Ok(()),
    }
}

/// The copies of the body that unrolling a nest makes; `None` when some loop in it cannot be unrolled.
pub fn copies(f: &For) -> Option<u64> {
    let trip = match (f.kind, f.place) {
        (LoopKind::Serial, _) => return None,
        (_, Place::Vector { lanes }) => const_trip(f)?.div_ceil(lanes.max(1) as u64),
        _ => const_trip(f)?,
    };
    let mut inner = 1u64;
    for s in &f.body {
        inner = inner.max(match s {
            Stmt::For(f) => copies(f)?,
            s => walk::bodies(s).is_empty().then_some(1)?,
        });
    }
    trip.checked_mul(inner)
}

fn mark(f: &mut For) {
    if f.place == Place::None {
        f.place = Place::Unroll;
    }
    for s in &mut f.body {
        if let Stmt::For(inner) = s {
            mark(inner);
        }
    }
}
