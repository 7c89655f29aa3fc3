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

use super::line::{LoopRef, look, replace};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit;

/// Moves what stands before the loop.
pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    let mut around = None;
    look(kernel, &mut |over, f| {
        if f.body.last().is_some_and(|s| matches!(s, Stmt::For(l) if l.axis == at.axis)) {
            around = Some((over, legal(f)));
        }
        true
    });
    let (over, legal) = around.ok_or("it is not the last statement in the body of a loop")?;
    legal?;
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
    if f.kind != LoopKind::Free || inner.kind != LoopKind::Free || f.place != Place::None || inner.place != Place::None
    {
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

/// The other way round: what stands first in a loop and is the same for all its iterations is done before it. It is done where the
/// loop has no iteration, too; so it only loads where the loop is known to run. Of a serial loop it takes the stages, wherever they stand.
pub fn hoist(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    replace(kernel, at, &mut |kernel, f| {
        if f.kind == LoopKind::Serial && f.place == Place::None {
            let same = stages_alike(kernel, f);
            let mut inner = f.clone();
            let body = std::mem::take(&mut inner.body).into_iter();
            let (mut out, rest): (Vec<_>, Vec<_>) =
                body.partition(|s| matches!(s, Stmt::Stage { buf, .. } if same.contains(buf)));
            if out.is_empty() {
                return Err("it fills no stage with the same in all its iterations".into());
            }
            inner.body = rest;
            out.push(Stmt::For(Box::new(inner)));
            return Ok(out);
        }
        if f.kind != LoopKind::Free || f.place != Place::None || edit::const_trip(f).is_none_or(|n| n == 0) {
            return Err("it is not free, is placed already, or may not run".into());
        }
        let mut inner = f.clone();
        let own = inner.body.split_off(alike(f));
        let mut out = std::mem::replace(&mut inner.body, own);
        if out.is_empty() {
            return Err("nothing stands first in it that is the same for all its iterations".into());
        }
        out.push(Stmt::For(Box::new(inner)));
        Ok(out)
    })
}

/// The buffers that every iteration of a loop stages alike. Without an iteration nothing may be read that the program did not
/// say to be there: a mask says so, and so does a model.
pub fn stages_alike(kernel: &Kernel, f: &For) -> Vec<BufId> {
    let all = walk::effects(&f.body);
    if !all.stores.is_empty() || all.ordered || all.atomic {
        return vec![];
    }
    let inside = walk::refs(&f.body);
    let runs = kernel.open || edit::const_trip(f).is_some_and(|n| n > 0);
    let same = |s: &Stmt| {
        let Stmt::Stage { buf, .. } = s else { return None };
        let own = walk::refs(std::slice::from_ref(s));
        let varies = own.axes_used.contains(&f.axis)
            || own.vals_used.iter().any(|v| inside.vals_defined.contains(v) && !own.vals_defined.contains(v))
            || own.bufs_read.iter().any(|b| inside.bufs_written.contains(b));
        let mut masked = true;
        walk::visit(std::slice::from_ref(s), &mut |s| {
            masked &= !matches!(s, Stmt::Load { mask, .. } if mask.is_always());
        });
        (!varies && (runs || masked)).then_some(*buf)
    };
    f.body.iter().filter_map(same).collect()
}

/// How many statements at the beginning of a body are the same for all iterations.
pub fn alike(f: &For) -> usize {
    let stores = walk::effects(&f.body).stores;
    let same = |s: &&Stmt| {
        let moves = match s {
            Stmt::Load { mem, .. } => edit::is_pure(s) && !stores.contains(&mem.base),
            s => matches!(s, Stmt::Assert { .. }) || edit::is_pure(s) && !matches!(s, Stmt::Read { .. }),
        };
        moves && !walk::refs_of(s).axes_used.contains(&f.axis)
    };
    f.body.iter().take_while(same).count()
}
