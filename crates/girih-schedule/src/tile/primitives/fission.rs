//! `fission`: a free loop becomes several, one for each loop that stands in its body.
//!
//! ```text
//! for i in 0..4: free                            local m_of: f32[4]
//!   local m                                      for i in 0..4: free
//!   m = -inf                                       local m
//!   for k in 0..128: reduce combine max(m)         m = -inf
//!     m <- max(x[i, k], m)                         for k in 0..128: reduce combine max(m)
//!   t = m                                -->         m <- max(x[i, k], m)
//!   for k in 0..128: free                          t = m
//!     y[i, k] = x[i, k] - t                        m_of[i] = t
//!                                                for i in 0..4: free
//!                                                  t = m_of[i]
//!                                                  for k in 0..128: free
//!                                                    y[i, k] = x[i, k] - t
//! ```
//!
//! Statements stay behind the loop that they follow, and the first value of an accumulator stands before its fold. A value that one part
//! computes for another becomes an array with an element for each iteration, and so does a buffer of an iteration that several parts use.
//! Iterations of a free loop are independent, so its parts may run one after the other, and each iteration keeps its order. Legal where no
//! loop inside ends where an iteration says, an accumulator is not needed behind the next loop, and the arrays have room.

use std::collections::BTreeMap;

use super::MOST_BYTES;
use super::distribute::{is_straight, over_new_axis};
use super::line::{LoopRef, replace};
use crate::loops::ir::*;
use crate::loops::walk::{self, Refs, refs};
use crate::tile::edit::at_most;

pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    replace(kernel, at, &mut |kernel, f| made(kernel, f))
}

/// The loops in the body of a free one, where it can be cut at them.
pub fn loops_in(f: &For) -> Result<Vec<&For>, String> {
    if !f.is_free_unplaced() || !f.lo.is_const(0) {
        return Err("it is not free, is placed already, or does not start at 0".into());
    }
    let mut loops = vec![];
    for s in &f.body {
        match s {
            Stmt::For(inner) if inner.body.iter().all(is_straight) && inner.stream.is_none() => loops.push(&**inner),
            Stmt::Local { .. } => {}
            s if is_straight(s) => {}
            _ => return Err("it holds more than innermost loops, loads, arithmetic and stores".into()),
        }
    }
    let defined = refs(&f.body).vals_defined;
    let own = |ix: &Ix| ix.has_axis(f.axis) || ix.vals().iter().any(|v| defined.contains(v));
    if loops.iter().any(|inner| [&inner.lo, &inner.hi, &inner.step].into_iter().any(own)) {
        return Err("an iteration decides how long a loop in it is".into());
    }
    if loops.len() < 2 {
        return Err("fewer than two loops stand in it".into());
    }
    Ok(loops)
}

fn made(kernel: &mut Kernel, f: &For) -> Result<Vec<Stmt>, String> {
    loops_in(f)?;
    let extent = at_most(&f.hi).and_then(|n| u64::try_from(n).ok()).ok_or("its free loop has no constant bound")?;
    let mut parts = cut(f)?;
    let facts: Vec<Refs> = parts.iter().map(|part| refs(part)).collect();
    let row = || vec![Ix::Axis(f.axis)];

    // Buffers of an iteration.
    let locals = f.body.iter().filter_map(|s| if let Stmt::Local { buf } = s { Some(*buf) } else { None });
    let mut arrays = vec![];
    for buf in locals {
        let uses = |r: &Refs| r.bufs_read.contains(&buf) || r.bufs_written.contains(&buf);
        match (0..parts.len()).filter(|at| uses(&facts[*at])).collect::<Vec<_>>()[..] {
            [] => {}
            [at] => parts[at].insert(0, Stmt::Local { buf }),
            _ if walk::loops(&f.body).any(|f| f.combine.iter().any(|c| c.accs.contains(&buf))) => {
                return Err("an accumulator is needed behind the loop after its own".into());
            }
            _ => {
                kernel.bufs[buf].shape.insert(0, extent);
                arrays.push(buf);
            }
        }
    }
    for part in &mut parts {
        walk::visit_mut(part, &mut |s| {
            if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                && arrays.contains(buf)
            {
                idx.insert(0, Ix::Axis(f.axis));
            }
        });
    }

    // Values that one part computes for others.
    let mut passed: BTreeMap<ValId, BufId> = BTreeMap::new();
    for at in 1..parts.len() {
        let (mut reads, mut renaming) = (vec![], walk::Renaming::default());
        for v in &facts[at].vals_used {
            if !facts[..at].iter().any(|r| r.vals_defined.contains(v)) {
                continue;
            }
            let Val { ty: ty @ Ty::Num(_), name } = kernel.vals[*v].clone() else {
                return Err("a part of it passes a pointer to another".into());
            };
            let array = || kernel.bufs.push(Buf::new(format!("{name}_of"), ty, vec![extent]));
            let buf = *passed.entry(*v).or_insert_with(array);
            let dst = kernel.vals.push(Val { ty, name });
            renaming.vals.insert(*v, dst);
            reads.push(Stmt::Read { dst, buf, idx: row() });
        }
        renaming.apply(&mut parts[at]);
        parts[at].splice(0..0, reads);
    }
    for (v, buf) in &passed {
        let home = facts.iter().position(|r| r.vals_defined.contains(v)).ok_or("a value has no part")?;
        parts[home].push(Stmt::Write { buf: *buf, idx: row(), value: Opnd::Val(*v) });
    }
    arrays.extend(passed.values());
    let bytes = arrays.iter().map(|b| kernel.bufs[*b].bytes()).fold(0, u64::saturating_add);
    if bytes > MOST_BYTES {
        return Err(format!("what its iterations keep has {bytes} bytes; {MOST_BYTES} are the most"));
    }

    let mut out: Vec<Stmt> = arrays.into_iter().map(|buf| Stmt::Local { buf }).collect();
    for (at, body) in parts.into_iter().enumerate() {
        let part = For { body, ..f.clone() };
        out.push(Stmt::For(Box::new(if at == 0 { part } else { over_new_axis(kernel, part) })));
    }
    Ok(out)
}

/// The statements of a body without its buffers, in parts with one loop each.
fn cut(f: &For) -> Result<Vec<Vec<Stmt>>, String> {
    let accs =
        |s: &Stmt| if let Stmt::For(f) = s { f.combine.iter().flat_map(|c| c.accs.clone()).collect() } else { vec![] };
    let loops: Vec<usize> = (0..f.body.len()).filter(|at| matches!(f.body[*at], Stmt::For(_))).collect();
    let mut parts = vec![vec![]; loops.len()];
    for (at, s) in f.body.iter().enumerate().filter(|(_, s)| !matches!(s, Stmt::Local { .. })) {
        let behind = loops.iter().filter(|l| **l <= at).count().saturating_sub(1);
        let first_of = |buf: &BufId| loops.iter().position(|l| *l > at && accs(&f.body[*l]).contains(buf));
        let part = match s {
            Stmt::Write { buf, .. } => first_of(buf).unwrap_or(behind),
            _ => behind,
        };
        // Nothing meets the accumulator between its first value and its fold.
        if let Stmt::Write { buf, .. } = s
            && part > behind
            && f.body[at + 1..loops[part]].iter().any(|s| {
                let r = walk::refs_of(s);
                r.bufs_read.contains(buf) || !matches!(s, Stmt::Write { .. }) && r.bufs_written.contains(buf)
            })
        {
            return Err("an accumulator is needed before its fold".into());
        }
        parts[part].push(s.clone());
    }
    Ok(parts)
}
