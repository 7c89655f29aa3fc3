//! Rows of values that are kept in local buffers for later loops.

use super::NestBuilder;
use crate::graph::ir::ValueId;
use crate::index::{AxisId, Ix};
use crate::loops::ir::*;

/// The most elements of a row that is kept.
pub(in crate::loops::model) const MOST_KEPT: u64 = 1 << 18;

/// A row of a value that is kept in a local buffer for later loops.
pub(super) struct Kept {
    value: ValueId,
    /// The coordinates; `None` where the buffer has a dimension.
    fixed: Vec<Option<Ix>>,
    /// The loops between its place and the loop that fills it: it is whole when all of them have ended.
    loops: Vec<AxisId>,
    buf: BufId,
}

impl NestBuilder<'_> {
    /// Reads a kept row, if its loops have run for these coordinates.
    pub(super) fn kept(&mut self, v: ValueId, coords: &[Ix]) -> Option<Opnd> {
        let (buf, idx) = self.scopes.iter().find_map(|s| {
            s.kept.iter().filter(|k| k.value == v).find_map(|k| {
                let same = k.fixed.iter().zip(coords).all(|(f, c)| f.as_ref().is_none_or(|f| f == c));
                let runs = |a: &AxisId| self.pending.contains(a) || self.open.iter().any(|f| f.axis == *a);
                let done = !k.loops.iter().any(runs);
                let idx = k.fixed.iter().zip(coords).filter(|(f, _)| f.is_none()).map(|(_, c)| c.clone()).collect();
                (same && done).then_some((k.buf, idx))
            })
        })?;
        let mut idx: Vec<Ix> = idx;
        if !self.mask.is_always() {
            idx =
                idx.into_iter().zip(&self.kernel.bufs[buf].shape).map(|(at, n)| self.clamped(at, *n as i64)).collect();
        }
        let info = &self.graph.values[v];
        let (name, dtype) = (info.name.clone(), info.elem.dtype);
        let depth = idx
            .iter()
            .map(|i| self.depth_of(i))
            .max()
            .unwrap_or(0)
            .max(coords.iter().map(|c| self.depth_of(c)).max().unwrap_or(0));
        Some(self.define(&name, dtype, depth, |dst| Stmt::Read { dst, buf, idx }))
    }

    /// A subscript that lies in `0..extent` wherever the mask does not hold either: reads of buffers have no masks.
    fn clamped(&self, at: Ix, extent: i64) -> Ix {
        let range = self.facts.range(&at);
        let at = if range.hi >= i128::from(extent) { Ix::min(at, Ix::Const(extent - 1)) } else { at };
        if range.lo < 0 { Ix::max(at, Ix::Const(0)) } else { at }
    }

    /// Writes a value just computed into a buffer for its row, if the loops that are open run over whole dimensions of it.
    pub(super) fn keep_row(&mut self, v: ValueId, coords: &[Ix], value: Opnd) {
        if !self.mask.is_always() {
            return;
        }
        let shape = self.graph.values[v].shape.clone();
        let (mut fixed, mut loops, mut extents, mut idx) = (vec![], vec![], vec![], vec![]);
        for (c, n) in coords.iter().zip(&shape) {
            let whole = match c {
                Ix::Axis(a) => self.open.iter().find(|f| f.axis == *a && f.hi == *n && f.kind == LoopKind::Reduce),
                _ => None,
            };
            match (whole, n.as_const()) {
                (Some(f), Some(n)) => {
                    loops.push(f.axis);
                    extents.push(n as u64);
                    idx.push(c.clone());
                    fixed.push(None);
                }
                _ => fixed.push(Some(c.clone())),
            }
        }
        let outer = fixed.iter().flatten().map(|c| self.depth_of(c)).max().unwrap_or(0);
        let first = loops.iter().filter_map(|a| self.axis_depth.get(a)).min().copied().unwrap_or(0);
        if loops.is_empty() || first <= outer || extents.iter().product::<u64>() > MOST_KEPT {
            return;
        }
        let (name, dtype) = (self.graph.values[v].name.clone(), self.graph.values[v].elem.dtype);
        let buf = self.local(&name, dtype, extents, outer);
        let depth = self.depth();
        self.push(depth, Stmt::Write { buf, idx, value });
        let loops = self.open.iter().skip(outer).map(|f| f.axis).collect();
        if let Some(scope) = self.scopes.get_mut(outer) {
            scope.kept.push(Kept { value: v, fixed, loops, buf });
        }
    }
}
