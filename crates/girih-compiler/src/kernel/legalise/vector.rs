//! Statements many lanes at a time, and the loops around them.

use super::{Lower, Res};
use crate::loops::ir as l;

impl Lower<'_> {
    pub(super) fn vector_stmt(&mut self, stmt: &l::Stmt) -> Res<()> {
        self.scalar_stmt(stmt)
    }

    pub(super) fn vector_loop(&mut self, f: &l::For, _lanes: u32) -> Res<()> {
        let (lo, hi) = (self.ix(&f.lo)?, self.ix(&f.hi)?);
        self.scalar_loop(f, lo, hi)
    }
}
