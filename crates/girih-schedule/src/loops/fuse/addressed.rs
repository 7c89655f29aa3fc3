//! Finds the values that addresses, masks, bounds and branches depend on.
//!
//! In: the statements of a kernel. Out: the values that reach an index, a base, a condition or a loop's bounds, through
//! operations and through buffers. Arithmetic on other values is data: nothing depends on whether it wraps.
//!
//! ```text
//! a = n * 3       yes: b is the index of a load, and c is not one of anything
//! b = a + 1
//! x = load A[b]
//! c = n * n       no
//! store B[0] = c
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::{Ix, ValId};
use crate::loops::ir::{BufId, Opnd, Stmt};
use crate::loops::walk::{self, Part};

/// The values and buffers that a value, or the elements of a buffer, are computed from.
#[derive(Default)]
struct Made {
    vals: Vec<ValId>,
    bufs: Vec<BufId>,
}

pub(super) fn values(body: &[Stmt]) -> FxHashSet<ValId> {
    let mut of_vals: FxHashMap<ValId, Made> = FxHashMap::default();
    let mut of_bufs: FxHashMap<BufId, Vec<ValId>> = FxHashMap::default();
    let mut left: Vec<ValId> = vec![];
    walk::visit(body, &mut |s| match s {
        Stmt::Let { dst, .. } | Stmt::Index { dst, .. } | Stmt::Test { dst, .. } => {
            let made = of_vals.entry(*dst).or_default();
            walk::each_use(s, &mut |v| made.vals.push(v));
        }
        _ => {
            let (mut reads, mut defines) = (None, None);
            walk::parts(s, &mut |part| match part {
                Part::Ix(ix) => ix.for_each_leaf(&mut |leaf| {
                    if let Ix::Val { val, .. } = leaf {
                        left.push(*val);
                    }
                }),
                Part::UseVal(v) => left.push(*v),
                Part::ReadBuf(buf) => reads = Some(*buf),
                Part::DefVal(v) => defines = Some(*v),
                _ => {}
            });
            match s {
                Stmt::If { cond: Opnd::Val(v), .. } => left.push(*v),
                Stmt::Write { buf, value: Opnd::Val(v), .. } => of_bufs.entry(*buf).or_default().push(*v),
                _ => {}
            }
            if let (Some(buf), Some(v)) = (reads, defines) {
                of_vals.entry(v).or_default().bufs.push(buf);
            }
        }
    });
    let mut reached = FxHashSet::default();
    while let Some(v) = left.pop() {
        if !reached.insert(v) {
            continue;
        }
        let Some(made) = of_vals.get(&v) else { continue };
        left.extend(&made.vals);
        for buf in &made.bufs {
            // Once for each buffer is enough.
            left.extend(of_bufs.remove(buf).into_iter().flatten());
        }
    }
    reached
}
