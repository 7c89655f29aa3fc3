//! Squares of lanes: two nested vector loops around one load and one store become loads along the outer loop, rounds of
//! merges in registers, and stores along the inner loop.
//!
//! ```text
//! for t in 0..2: free vector(2)                x: f32x2 = load A[0]          (t = 0, 1 of s = 0)
//!   for s in 0..2: free vector(2)              y: f32x2 = load A[9]          (t = 0, 1 of s = 1)
//!     x: f32 = A[s*9 + t]                -->   x_2: f32x2 = merge low 1 x, y
//!     B[t*2 + s] = x                           y_2: f32x2 = merge high 1 x, y
//!                                              store B[0] = x_2              store B[2] = y_2
//! ```

use super::{Lower, Res, Vector};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::tile::heuristics::transpose::MOST_SQUARES;

impl Lower<'_> {
    /// Lowers a loop that is the outer one of such a pair; `false` if it is not.
    pub(super) fn transposition(&mut self, outer: &l::For, lanes: u32) -> Res<bool> {
        let [l::Stmt::For(inner)] = &outer.body[..] else { return Ok(false) };
        let [load, store] = &inner.body[..] else { return Ok(false) };
        let dst = match load {
            l::Stmt::Load { dst, .. } | l::Stmt::Read { dst, .. } => *dst,
            _ => return Ok(false),
        };
        let stores = match store {
            l::Stmt::Store { value, .. } | l::Stmt::Write { value, .. } => *value == l::Opnd::Val(dst),
            _ => false,
        };
        let free = |f: &l::For| f.kind == l::LoopKind::Free && f.place == l::Place::Vector { lanes };
        let (Some(t), Some(s)) = (bounds(outer), bounds(inner)) else { return Ok(false) };
        let step = lanes as i64;
        let whole = |(lo, hi): (i64, i64)| lanes > 1 && lo < hi && (hi - lo) % step == 0;
        if !stores || !free(outer) || !free(inner) || self.vector.is_some() || !whole(t) || !whole(s) {
            return Ok(false);
        }
        if (t.1 - t.0) / step * ((s.1 - s.0) / step) > MOST_SQUARES as i64 {
            return Ok(false);
        }
        let nest = std::mem::take(&mut self.nest);
        let saved = [outer.axis, inner.axis].map(|axis| (axis, self.axes.remove(&axis)));
        let mut done = Ok(());
        for first_t in (t.0..t.1).step_by(lanes as usize) {
            for first_s in (s.0..s.1).step_by(lanes as usize) {
                let at = ((outer.axis, first_t), (inner.axis, first_s));
                done = done.and_then(|()| self.square(load, store, dst, at, lanes));
            }
        }
        self.vector = None;
        self.nest = nest;
        for (axis, ix) in saved {
            match ix {
                Some(ix) => self.axes.insert(axis, ix),
                None => self.axes.remove(&axis),
            };
        }
        done.map(|()| true)
    }

    fn square(
        &mut self,
        load: &l::Stmt,
        store: &l::Stmt,
        dst: l::ValId,
        ((t, first_t), (s, first_s)): ((l::AxisId, i64), (l::AxisId, i64)),
        lanes: u32,
    ) -> Res<()> {
        self.axes.insert(t, k::Ix::Const(first_t));
        self.vector = Some(Vector { axis: t, lanes, first: None, multiple: 1 });
        let mut rows = Vec::new();
        for lane in 0..lanes as i64 {
            self.axes.insert(s, k::Ix::Const(first_s + lane));
            self.vector_stmt(load)?;
            match self.vector_opnd(&l::Opnd::Val(dst))? {
                k::Opnd::Val(v) => rows.push(v),
                k::Opnd::Const { .. } => return Err("a transposition loads a constant".to_string()),
            }
        }
        let mut width = 1;
        while width < lanes {
            let old = rows.clone();
            for (i, row) in rows.iter_mut().enumerate() {
                // Row i pairs with the one `width` away; the earlier of the two keeps the low halves.
                let high = i / width as usize % 2 == 1;
                let other = if high { i - width as usize } else { i + width as usize };
                let (Some(&a), Some(&b)) = (old.get(i.min(other)), old.get(i.max(other))) else {
                    return Err("a transposition is not square".to_string());
                };
                let k::Val { name, ty } = self.out.vals[a].clone();
                let merged = self.value(&format!("{name}_t"), ty);
                self.push(k::Stmt::Merge { dst: merged, a, b, width, high });
                *row = merged;
            }
            width *= 2;
        }
        self.axes.insert(s, k::Ix::Const(first_s));
        self.vector = Some(Vector { axis: s, lanes, first: None, multiple: 1 });
        for (lane, row) in rows.into_iter().enumerate() {
            self.axes.insert(t, k::Ix::Const(first_t + lane as i64));
            self.vals.insert(dst, super::Loc::Vector(row));
            self.vector_stmt(store)?;
        }
        Ok(())
    }
}

/// The constant bounds of a loop in steps of 1.
fn bounds(f: &l::For) -> Option<(i64, i64)> {
    (f.step == l::Ix::Const(1)).then_some((f.lo.as_const()?, f.hi.as_const()?))
}
