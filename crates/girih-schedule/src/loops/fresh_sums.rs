//! Sums that begin with zeros.
//!
//! ```text
//! for t in 0..128: free thread
//!   for r in 0..4: free
//!     for c in 0..32: free
//!       acc[t, r, c] = 0.0          nothing touches `acc` between this and
//! for kt in 0..64: serial           the loop that adds to it
//! ```
//! The first product may then replace what was there instead of adding to it.

use super::ir::*;
use super::walk;

/// Returns true if sums hold zeros where a loop begins that stands in some of these statements.
pub fn begin_at_zero(kernel: &Kernel, body: &[Stmt], at: AxisId, sums: BufId) -> bool {
    let is_loop = |s: &Stmt| matches!(s, Stmt::For(f) if f.axis == at);
    if let Some(place) = body.iter().position(is_loop) {
        let touches = |s: &&Stmt| {
            let effects = walk::effects(std::slice::from_ref(*s));
            effects.bufs_read.contains(&sums) || effects.bufs_written.contains(&sums)
        };
        return body[..place].iter().rev().find(touches).is_some_and(|s| clears(kernel, s, sums));
    }
    body.iter().flat_map(walk::bodies).any(|inner| begin_at_zero(kernel, inner, at, sums))
}

/// The most elements that are looked at.
const MOST: u64 = 1 << 18;

/// Returns true if a nest writes zeros to all elements of a buffer, and does nothing else.
fn clears(kernel: &Kernel, mut s: &Stmt, buf: BufId) -> bool {
    let mut loops: Vec<(AxisId, i64)> = vec![];
    while let Stmt::For(f) = s {
        let ([inner], true, Some(n)) = (&f.body[..], f.counts_from_zero(), f.hi.as_const()) else { return false };
        loops.push((f.axis, n));
        s = inner;
    }
    let Stmt::Write { buf: to, idx, value: Opnd::Const { bits: 0, .. } } = s else { return false };
    let shape = kernel.bufs.get(buf).map_or(&[][..], |b| &b.shape);
    let all = shape.iter().fold(1u64, |all, n| all.saturating_mul(*n));
    let count = loops.iter().fold(1u64, |all, (_, n)| all.saturating_mul(u64::try_from(*n).unwrap_or(0)));
    if *to != buf || all != count || all > MOST {
        return false;
    }
    // As many iterations as elements: each of them has one.
    let place = Ix::row_major(idx, shape);
    let mut seen = vec![false; all as usize];
    (0..all as i64).all(|number| {
        let mut rest = number;
        let mut at: Vec<(AxisId, i64)> = vec![];
        for (axis, n) in loops.iter().rev() {
            at.push((*axis, rest % n));
            rest /= n;
        }
        let element = place.eval(&|leaf| match leaf {
            Ix::Axis(axis) => at.iter().find(|(own, _)| own == axis).map_or(0, |(_, at)| *at),
            Ix::Const(n) => *n,
            _ => 0,
        });
        seen.get_mut(element as usize).is_some_and(|seen| !std::mem::replace(seen, true))
    })
}
