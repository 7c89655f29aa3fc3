//! `reorder`: free loops that stand in each other, with nothing between them, in another order.
//!
//! ```text
//! for i in 0..64: free                             for j in 0..64: free
//!   for j in 0..64: free                  -->        for i in 0..64: free
//!     y[j, i] = x[j, i]                                y[j, i] = x[j, i]
//! ```
//!
//! Legal where no loop ends where one says that comes to stand in it.

use super::line::{LoopRef, look, replace};
use crate::loops::ir::*;
use crate::tile::edit;

/// The loops in their new order, outermost first.
pub fn apply(kernel: &mut Kernel, loops: &[LoopRef]) -> Result<(), String> {
    let mut first = None;
    look(kernel, &mut |at, f| {
        if first.is_none() && loops.contains(&at) {
            first = Some((at, chain_of(f, loops).map(drop)));
        }
        first.is_none()
    });
    let (first, legal) = first.ok_or("the loops are gone")?;
    legal?;
    replace(kernel, first, &mut |_, f| {
        let chain = chain_of(f, loops)?;
        let mut body = chain.last().map_or(vec![], |f| f.body.clone());
        for at in loops.iter().rev() {
            let own = chain.iter().find(|f| f.axis == at.axis).ok_or("the loops are gone")?;
            let For { axis, lo, hi, step, kind, place, combine, contraction, stream, .. } = (*own).clone();
            body =
                vec![Stmt::For(Box::new(For { axis, lo, hi, step, kind, place, combine, contraction, stream, body }))];
        }
        Ok(body)
    })
}

fn chain_of<'a>(f: &'a For, loops: &[LoopRef]) -> Result<Vec<&'a For>, String> {
    let mut chain = edit::free_chain(f);
    chain.truncate(loops.len());
    let all = chain.len() == loops.len() && loops.iter().all(|at| chain.iter().any(|f| f.axis == at.axis));
    if !f.is_free_unplaced() || !all {
        return Err("they are not free loops that stand in each other with nothing between them".into());
    }
    for (n, at) in loops.iter().enumerate() {
        let own = chain.iter().find(|f| f.axis == at.axis);
        let ends = own.map_or(vec![], |f| [&f.lo, &f.hi, &f.step].iter().flat_map(|ix| ix.axes()).collect());
        if loops[n + 1..].iter().any(|inner| ends.contains(&inner.axis)) {
            return Err("a loop ends where one says that would stand in it".into());
        }
    }
    Ok(chain)
}
