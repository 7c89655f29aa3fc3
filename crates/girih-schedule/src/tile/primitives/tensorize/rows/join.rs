//! Finds the tiles and the rows of numbers that nests over the same rows share.

use std::collections::BTreeSet;

use super::{COLS, Part, Rows, parts};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::accumulator::nests;
use crate::tile::boxes;
use crate::tile::contraction::{Nest, nest_at};
use crate::tile::edit::const_trip;

/// Finds what joins the nests.
pub(super) struct Joined<'a> {
    kernel: &'a Kernel,
    rows: &'a mut Rows,
    /// Buffers of a row's own.
    locals: BTreeSet<BufId>,
    /// Buffers that TMA copies to memory: lanes write what they have of them to shared memory.
    copied: BTreeSet<BufId>,
    /// Something joined since the last look.
    again: bool,
}

impl<'a> Joined<'a> {
    /// Adds what joins the nests over the same rows, until nothing does.
    pub(super) fn find(kernel: &'a Kernel, rows: &'a mut Rows) -> Result<(), String> {
        let copied = boxes::copied(kernel);
        let mut joined = Joined { kernel, rows, locals: BTreeSet::new(), copied, again: true };
        while std::mem::take(&mut joined.again) {
            joined.body(&kernel.body)?;
        }
        Ok(())
    }

    fn body(&mut self, body: &[Stmt]) -> Result<(), String> {
        for s in body {
            let touched =
                |joined: &Self| walk::buffer_uses(std::slice::from_ref(s)).keys().any(|b| joined.rows.has(*b));
            if matches!(s, Stmt::Local { .. }) || !touched(self) {
                continue;
            }
            match (nest_at(s), s) {
                (Some(Ok(nest)), _) => self.product(&nest)?,
                (Some(Err(why)), _) => return Err(why.to_string()),
                (_, Stmt::For(f)) if f.is_free_unplaced() => self.row(f)?,
                (_, Stmt::For(_) | Stmt::If { .. } | Stmt::Loop { .. } | Stmt::Stage { .. }) => {
                    for inner in walk::bodies(s) {
                        self.body(inner)?;
                    }
                }
                _ => return Err("a statement outside of nests uses them".to_string()),
            }
        }
        Ok(())
    }

    fn join(&mut self, buf: BufId, columns: bool) -> Result<(), String> {
        let b = &self.kernel.bufs[buf];
        let whole = match (columns, &b.shape[..]) {
            (true, [m, n]) => *m == self.rows.rows && n.is_multiple_of(COLS),
            (false, [m]) => *m == self.rows.rows,
            _ => false,
        };
        if !whole || !matches!(b.space, Space::Scratch | Space::Shared) {
            return Err(format!("{} has other rows or columns", b.name));
        }
        self.again |= if columns { self.rows.tiles.insert(buf) } else { self.rows.lines.insert(buf) };
        Ok(())
    }

    fn product(&mut self, nest: &Nest<'_>) -> Result<(), String> {
        let roles = nest.roles;
        nest.alone()?;
        if nest.m != self.rows.rows {
            return Err("a product has other rows".to_string());
        }
        nests(self.kernel, roles.acc)?;
        self.join(roles.acc, true)?;
        let at = [Ix::Axis(roles.m), Ix::Axis(roles.k)];
        for s in &nest.reduce.body {
            if let Stmt::Read { dst, buf, idx } = s
                && *buf != roles.acc
                && self.rows.has(*buf)
                && (*dst != roles.a || idx[..] != at)
            {
                return Err("a product needs them otherwise than as its left operand".to_string());
            }
        }
        Ok(())
    }

    fn row(&mut self, f: &For) -> Result<(), String> {
        if const_trip(f) != Some(self.rows.rows) {
            return Err("a nest has other rows".to_string());
        }
        for part in parts(f)? {
            match part {
                Part::Alone(Stmt::Local { buf }) => {
                    if !self.kernel.bufs[*buf].shape.is_empty() {
                        return Err("a nest has tiles of its own".to_string());
                    }
                    self.locals.insert(*buf);
                }
                Part::Alone(s) => self.access(s, f.axis, None)?,
                Part::Columns(l) | Part::Fold(l, _) => {
                    for s in &l.body {
                        self.access(s, f.axis, Some(l.axis))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What of a row a statement touches.
    fn access(&mut self, s: &Stmt, row: AxisId, col: Option<AxisId>) -> Result<(), String> {
        let (buf, idx, writes) = match s {
            Stmt::Read { buf, idx, .. } => (*buf, idx, false),
            Stmt::Write { buf, idx, .. } => (*buf, idx, true),
            _ => return Ok(()),
        };
        if self.locals.contains(&buf) || writes && col.is_some() && self.copied.contains(&buf) {
            return Ok(());
        }
        let joins = match (&idx[..], col) {
            ([Ix::Axis(i)], _) if *i == row => self.join(buf, false),
            ([Ix::Axis(i), Ix::Axis(j)], Some(col)) if *i == row && *j == col => self.join(buf, true),
            _ => Err("a nest needs their elements in another order".to_string()),
        };
        // What nobody here writes may stay where it is.
        if writes || self.rows.has(buf) { joins } else { Ok(()) }
    }
}
