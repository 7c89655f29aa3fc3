//! `unbatch`: an accumulator of several matrices becomes a buffer for each, and loops over them are written out.
//!
//! ```text
//! local acc: f32[2, 32, 32]                        local acc_0: f32[32, 32]
//! for h in 0..2: for i: for j:                     local acc_1: f32[32, 32]
//!   acc[h, i, j] = 0                               for i: for j: acc_0[i, j] = 0
//! for k in 0..n: serial                     -->    for i: for j: acc_1[i, j] = 0
//!   for h in 0..2: for i: for j: for l:            for k in 0..n: serial
//!     acc[h, i, j] <- a[..] * b[..]                  for i: for j: for l: acc_0[i, j] <- a[..] * b[..]
//!                                                    for i: for j: for l: acc_1[i, j] <- a[..] * b[..]
//! ```
//!
//! Legal for buffers of a program that nothing touches otherwise than matrix by matrix.

use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::named;
use crate::tile::heuristics::unroll_batch::MOST;

pub fn apply(kernel: &mut Kernel, acc: BufId) -> Result<(), String> {
    if kernel.open || kernel.bufs[acc].shape.len() < 2 {
        return Err("it is not a buffer of a program that has several matrices".into());
    }
    *kernel = split(kernel, acc)?;
    Ok(())
}

fn split(p: &Kernel, acc: BufId) -> Result<Kernel, String> {
    let old = p.bufs[acc].clone();
    let (count, shape) = (old.shape[0], old.shape[1..].to_vec());
    if count > MOST {
        return Err(format!("a batch of {count} is more than {}", named!(MOST)));
    }
    let mut kernel = Kernel { body: vec![], ..p.clone() };
    let parts: Vec<BufId> = (0..count)
        .map(|n| kernel.bufs.push(Buf { name: format!("{}_{n}", old.name), shape: shape.clone(), ..old.clone() }))
        .collect();
    kernel.body = body(&mut kernel, &p.body, acc, &parts)?;
    Ok(kernel)
}

/// Statements with a buffer in parts by its first subscript.
fn body(kernel: &mut Kernel, stmts: &[Stmt], acc: BufId, parts: &[BufId]) -> Result<Vec<Stmt>, String> {
    let mut out = vec![];
    for s in stmts {
        if !walk::buffer_uses(std::slice::from_ref(s)).contains_key(&acc) {
            out.push(s.clone());
            continue;
        }
        match s {
            Stmt::Local { .. } => out.extend(parts.iter().map(|buf| Stmt::Local { buf: *buf })),
            Stmt::For(f) if is_batch(f, acc, parts.len() as u64) => {
                for (n, part) in parts.iter().enumerate() {
                    let by = [(f.axis, Ix::Const(n as i64))].into();
                    let mut copy = edit::place_axes(&walk::clone_fresh(kernel, &f.body), &by, &Default::default());
                    walk::visit_mut(&mut copy, &mut |s| match s {
                        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if *buf == acc => {
                            *buf = *part;
                            idx.remove(0);
                        }
                        Stmt::For(f) => {
                            if let Some(c) = f.contraction.as_mut().filter(|c| c.acc == acc) {
                                c.acc = *part;
                            }
                        }
                        _ => {}
                    });
                    out.extend(copy);
                }
            }
            Stmt::For(f) if f.kind == LoopKind::Serial => {
                let inner = body(kernel, &f.body, acc, parts)?;
                out.push(f.around(inner));
            }
            Stmt::Loop { body: inner } => out.push(Stmt::Loop { body: body(kernel, inner, acc, parts)? }),
            Stmt::If { cond, then, els } => {
                let (then, els) = (body(kernel, then, acc, parts)?, body(kernel, els, acc, parts)?);
                out.push(Stmt::If { cond: *cond, then, els });
            }
            _ => return Err("something touches its accumulator otherwise than batch by batch".to_string()),
        }
    }
    Ok(out)
}

/// True if a loop goes through the batch: every access of the accumulator is at its axis.
fn is_batch(f: &For, acc: BufId, count: u64) -> bool {
    let mut own = f.is_free_unplaced() && const_trip(f) == Some(count);
    walk::visit(&f.body, &mut |s| match s {
        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if *buf == acc => {
            own &= idx.first() == Some(&Ix::Axis(f.axis)) && !idx[1..].iter().any(|ix| ix.has_axis(f.axis));
        }
        Stmt::Print { .. } | Stmt::Stage { .. } => own = false,
        Stmt::For(inner) => {
            if let Some(c) = &inner.contraction {
                own &= ![&c.m, &c.n, &c.k].into_iter().any(|axes| axes.contains(&f.axis));
            }
        }
        _ => {}
    });
    own
}
