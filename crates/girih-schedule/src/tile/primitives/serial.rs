//! `serial`: the iterations of a free loop run one after the other.
//!
//! ```text
//! for i in 0..4: free                       -->    for i in 0..4: serial
//! ```
//!
//! Legal for every free loop that no step has placed. The threads of a block then share the body, row by row.

use super::line::{LoopRef, change};
use crate::loops::ir::*;

pub fn apply(kernel: &mut Kernel, loops: &[LoopRef]) -> Result<(), String> {
    let check = &mut |_: &Kernel, f: &For| match (f.kind, f.place) {
        (LoopKind::Free, Place::None) => Ok(()),
        _ => Err("it is not free, or is placed already".to_string()),
    };
    change(kernel, loops, check, &mut |f| f.kind = LoopKind::Serial)
}
