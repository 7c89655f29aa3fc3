//! `fuse`: perfectly nested free loops, or serial ones, become one, whose iterations have one number.
//!
//! ```text
//! for i in 0..512: free                            for b in 0..1835008: free
//!   for j in 0..3584: free                -->        y[b//3584, b%3584] = x[b//3584, b%3584]
//!     y[i, j] = x[i, j]
//! ```
//!
//! Legal where the bounds of the loops do not depend on one another. What the loops were to a contraction they are no longer.

use super::line::{LoopRef, look, replace};
use crate::loops::ir::*;
use crate::tile::edit;
use crate::tile::numbered::Numbered;
use crate::tile::tile_nest::check_bounds;

pub fn apply(kernel: &mut Kernel, loops: &[LoopRef], name: &str) -> Result<(), String> {
    let Some(first) = loops.first() else { return Err("expected the loops to fuse".into()) };
    let mut chain = Err("the loop is gone".to_string());
    look(kernel, &mut |at, f| {
        if at == *first {
            chain = chain_of(f, loops);
        }
        true
    });
    chain?;
    replace(kernel, *first, &mut |kernel, f| {
        let chain = chain_of(f, loops)?;
        let body = chain.last().map_or(vec![], |f| f.body.clone());
        let (mut made, _) = numbered(kernel, name, &chain, body);
        if let Stmt::For(made) = &mut made {
            made.kind = f.kind;
        }
        Ok(vec![made])
    })
}

/// The loop over the numbers of the iterations of these, and its axis.
pub fn numbered(kernel: &mut Kernel, name: &str, chain: &[&For], mut body: Vec<Stmt>) -> (Stmt, AxisId) {
    let mut facts = kernel.facts();
    let numbered = Numbered::new(chain.iter().copied(), &facts);
    let axis = kernel.axes.push(Axis { name: name.into(), from: None });
    facts.set_axis(axis, &Ix::Const(0), &numbered.total);
    numbered.place(&mut body, &Ix::Axis(axis), &facts);
    (edit::free_loop(axis, numbered.total, body), axis)
}

/// The loops from one inwards that a step names.
fn chain_of<'a>(f: &'a For, loops: &[LoopRef]) -> Result<Vec<&'a For>, String> {
    let mut chain = vec![f];
    while let [Stmt::For(inner)] = &chain[chain.len() - 1].body[..] {
        if inner.kind != f.kind || inner.place != Place::None {
            break;
        }
        chain.push(inner);
    }
    let named = chain.iter().map(|f| f.axis).take(loops.len()).eq(loops.iter().map(|at| at.axis));
    if !matches!(f.kind, LoopKind::Free | LoopKind::Serial) || f.place != Place::None || !named {
        return Err("they are not free loops, or serial ones, that stand in each other and in that order, with nothing between them".into());
    }
    chain.truncate(loops.len());
    check_bounds(&chain)?;
    Ok(chain)
}
