//! Register tiles.

use super::{Lower, Res};
use crate::loops::ir as l;

impl Lower<'_> {
    pub(super) fn register_tile(&mut self, _stmt: &l::Stmt) -> Res<()> {
        Err("register tiles are not lowered yet".to_string())
    }
}
