//! `sink`: what stands before a loop in the body of another is done in the loop, for each of its iterations.
//!
//! ```text
//! for i in 0..512: free                            for i in 0..512: free
//!   at = load rows[i]                                for j in 0..1024: free
//!   for j in 0..1024: free                -->          at = load rows[i]
//!     y[i, j] = x[at, j]                               y[i, j] = x[at, j]
//! ```
//!
//! Legal where doing it again gives the same: it only loads and computes, from nothing that the loop stores or writes. The loop is
//! free, the last statement of its body, and does not end where a value says that is computed there.

use super::line::{LoopRef, ends_with, replace};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit;

/// Moves what stands before the loop.
pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    let (over, f) = ends_with(kernel, at)?;
    legal(f)?;
    replace(kernel, over, &mut |_, f| {
        let mut out = f.clone();
        let Some(Stmt::For(mut inner)) = out.body.pop() else { return Err("it holds no loop".into()) };
        drop(inner.body.splice(0..0, std::mem::take(&mut out.body)));
        out.body = vec![Stmt::For(inner)];
        Ok(vec![Stmt::For(Box::new(out))])
    })
}

/// Whether what stands before the loop at the end of a loop's body may go into it.
pub fn legal(f: &For) -> Result<(), String> {
    let Some((Stmt::For(inner), before)) = f.body.split_last() else { return Err("it holds no loop".into()) };
    if !f.is_free_unplaced() || !inner.is_free_unplaced() {
        return Err("one of the two loops is not free, or is placed".into());
    }
    if before.is_empty() {
        return Err("nothing stands before it".into());
    }
    let effects = walk::effects(&inner.body);
    for s in before {
        let again = match s {
            Stmt::Load { mem, .. } => edit::is_pure(s) && !effects.stores.contains(&mem.base),
            Stmt::Read { buf, .. } => !effects.bufs_written.contains(buf),
            s => edit::is_pure(s) || matches!(s, Stmt::Assert { .. }),
        };
        if !again {
            return Err("what stands before it is not the same when it is done again".into());
        }
    }
    if effects.atomic || effects.ordered {
        return Err("it holds atomics or ordered accesses".into());
    }
    let defined = |v: &ValId| before.iter().any(|s| walk::def(s) == Some(*v));
    if [&inner.lo, &inner.hi, &inner.step].iter().any(|ix| ix.vals().iter().any(defined)) {
        return Err("what stands before it says how far it goes".into());
    }
    Ok(())
}
