//! `reverse`: free loops run from their other end.
//!
//! ```text
//! for i in 0..1024: free                           for i in 0..1024: free
//!   y[i] = t[1023 - i]                     -->       y[1023 - i] = t[i]
//! ```
//!
//! Legal for free loops that count from 0 to an end that no loop around them changes, and are not placed but as the blocks of a grid, one
//! for each iteration.

use super::line::{LoopRef, replace};
use crate::loops::ir::*;
use crate::tile::edit;
use crate::tile::tile_nest::check_bounds;

pub fn apply(kernel: &mut Kernel, loops: &[LoopRef]) -> Result<(), String> {
    let facts = kernel.facts();
    for at in loops {
        replace(kernel, *at, &mut |_, f| {
            let alone = matches!(f.place, Place::Block { group: 0, takers: 0, cluster: 0, .. });
            if f.kind != LoopKind::Free || f.place != Place::None && !alone {
                return Err("it is not free, or is placed already".into());
            }
            check_bounds(&[f])?;
            let mut out = f.clone();
            let place = Ix::sub(f.hi.clone(), Ix::add(Ix::Axis(f.axis), Ix::Const(1)));
            edit::put_axis(&mut out.body, f.axis, &place, &facts);
            Ok(vec![Stmt::For(Box::new(out))])
        })?;
    }
    Ok(())
}
