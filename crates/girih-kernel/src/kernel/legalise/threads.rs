//! Loops over the threads of a block.
//!
//! ```text
//! for t in 0..256: free thread                    t is tx
//! for t in 0..40: free thread            -->      if tx < 40 { ... }
//! for k in 0..1000: reduce thread                 for k in tx..1000 step 256 { ... }   barrier   shuffles
//!     combine add(s) from 0.0 x 256
//! ```
//!
//! The lanes of a block of one warp combine by shuffles alone: they need no shared memory, and no barrier.

use super::vector::{load, store};
use super::{Loc, Lower, Res, Storage, ty};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::loops::lanes::Folded;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use rustc_hash::FxHashMap;

/// The threads of a block: the extent of the longest loop over threads, rounded up to whole warps; 1 where there is
/// none.
pub(super) fn of(body: &[l::Stmt], warp: u32) -> u32 {
    let mut threads = None;
    walk::visit(body, &mut |s| {
        if let l::Stmt::For(f) = s
            && f.place == l::Place::Thread
        {
            let own = match &f.combine {
                Some(c) => c.ways,
                None => f.hi.as_const().and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
            };
            threads = threads.max(Some(own));
        }
    });
    threads.map_or(1, |n| n.next_multiple_of(warp.max(1)))
}

/// Returns true if the threads combine their values in shared memory: they span several warps.
pub(super) fn by_shared_memory(c: &l::Combine, warp: u32) -> bool {
    c.ways > warp
}

/// The places of partial accumulators, which reductions use in turn. The barrier inside each reduction separates the
/// reductions around it, so in straight code two places would do without another barrier; several do even after
/// branches.
const PLACES: u32 = 4;

/// The place of the partial accumulators of each reduction that threads combine in shared memory, by its axis.
pub(super) fn places(body: &[l::Stmt], warp: u32) -> FxHashMap<l::AxisId, u32> {
    let (mut places, mut next) = (FxHashMap::default(), 0);
    walk::visit(body, &mut |s| {
        if let l::Stmt::For(f) = s
            && (f.kind, f.place) == (l::LoopKind::Reduce, l::Place::Thread)
            && f.combine.as_ref().is_some_and(|c| by_shared_memory(c, warp))
        {
            places.entry(f.axis).or_insert_with(|| {
                next += 1;
                (next - 1) % PLACES
            });
        }
    });
    places
}

impl Lower<'_> {
    pub(super) fn thread_loop(&mut self, f: &l::For) -> Res<()> {
        if let (l::LoopKind::Reduce, Some(c)) = (f.kind, &f.combine) {
            return self.combined_by_threads(f, c);
        }
        let Some(extent) = f.hi.as_const().filter(|n| *n > 0) else {
            return Err(self.unplaced(f, "the number of its iterations is not a constant"));
        };
        let mut nest = self.nest.clone();
        nest.push((f.axis, f.lo.clone(), extent as u64));
        let all = i64::from(self.active) == extent;
        self.at_axis(f.axis, k::Ix::Thread, nest, |s| {
            if all {
                return s.run(&f.body);
            }
            let then = s.inner(|s| s.run(&f.body))?;
            let some = k::Cond { lhs: k::Ix::Thread, cmp: k::Cmp::Lt, rhs: k::Ix::Const(extent) };
            s.push(k::Stmt::If { mask: k::Mask { conds: vec![some], vals: vec![] }, then, els: vec![] });
            Ok(())
        })
    }

    /// A reduction that all threads of the block do together: each thread folds every `ways`th iteration, then all
    /// combine their values.
    fn combined_by_threads(&mut self, f: &l::For, c: &l::Combine) -> Res<()> {
        let l::CombineOp::Scalar { op, identity } = c.op;
        let ways = c.ways;
        if ways != self.out.threads || !ways.is_power_of_two() {
            let threads = self.out.threads;
            return Err(self.unplaced(f, &format!("{ways} threads combine, and a block has {threads}")));
        }
        let (lo, hi) = (self.ix(&f.lo)?, self.ix(&f.hi)?);
        let mut own = vec![];
        for &acc in &c.accs {
            let b = self.buf(acc)?;
            let t = ty(b.ty, 1);
            let var = self.value(&format!("{}_part", b.name), t);
            self.push(k::Stmt::Var { var, init: k::Opnd::Const { dtype: t.dtype(), bits: identity } });
            let Storage::Var(whole) = self.storage(acc)? else {
                return Err("a reduction's accumulator is not a scalar".to_string());
            };
            self.storage.insert(acc, Storage::Var(var));
            own.push((acc, whole, var));
        }
        if lo.is_const(0) && hi.is_const(ways.into()) {
            // One iteration for each thread.
            self.at_axis(f.axis, k::Ix::Thread, vec![], |s| s.run(&f.body))?;
        } else {
            let axis = self.axis_of(f.axis);
            let body = self.at_axis(f.axis, k::Ix::Axis(axis), vec![], |s| s.inner(|s| s.run(&f.body)))?;
            let (lo, step) = (k::Ix::add(lo, k::Ix::Thread), k::Ix::Const(ways.into()));
            self.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body });
        }

        let mut slots = vec![];
        for (n, (acc, whole, var)) in own.into_iter().enumerate() {
            self.storage.insert(acc, Storage::Var(whole));
            if !by_shared_memory(c, self.out.warp) {
                let total = self.halved_by_lanes(op, ways, var);
                self.combined(op, whole, total);
                continue;
            }
            let slot = self.partials(&self.buf(acc)?.name.clone(), self.out.vals[var].ty.elem, (f.axis, n))?;
            let place = k::Address::Slot { buf: slot, index: k::Ix::Thread };
            self.push(store(place, k::Opnd::Val(var)));
            slots.push((slot, whole));
        }
        if by_shared_memory(c, self.out.warp) {
            self.meet();
        }
        for (slot, whole) in slots {
            let total = self.halved_by_threads(op, slot, whole)?;
            self.combined(op, whole, total);
        }
        Ok(())
    }

    /// Combines the threads' result with the accumulator's value from before the loop.
    pub(super) fn combined(&mut self, op: ScalarOp, whole: k::ValId, total: k::ValId) {
        let sum = self.both("sum", op, whole, total);
        self.push(k::Stmt::Set { var: whole, value: k::Opnd::Val(sum) });
    }

    /// A reduction among neighbouring lanes: each lane gives its value, combined by halving, and gets the result.
    pub(super) fn combined_by_lanes(&mut self, f: &l::For) -> Res<()> {
        let thread = self.thread().ok_or_else(|| self.unplaced(f, "only threads are lanes of a warp"))?;
        let folded = Folded::of(thread, f).map_err(|why| self.unplaced(f, why))?;
        let Some(l::Combine { op: l::CombineOp::Scalar { op, .. }, ways, .. }) = &f.combine else { return Ok(()) };
        self.run(&[l::Stmt::Read { dst: folded.value, buf: folded.buf, idx: folded.own }])?;
        let k::Opnd::Val(own) = self.scalar(&l::Opnd::Val(folded.value))? else {
            return Err(self.unplaced(f, "what it folds is a constant"));
        };
        let total = self.halved_by_lanes(*op, *ways, own);
        self.vals.insert(folded.value, Loc::Scalar(k::Opnd::Val(total)));
        self.run(&folded.rest)
    }

    /// Combines the values of `ways` neighbouring lanes by halving; each lane gets the result.
    fn halved_by_lanes(&mut self, op: ScalarOp, ways: u32, own: k::ValId) -> k::ValId {
        let t = self.out.vals[own].ty;
        let mut total = own;
        let mut by = ways / 2;
        while by > 0 {
            let other = self.value("other", t);
            let bits = k::Opnd::Const { dtype: DType::I32, bits: by.into() };
            self.push(k::Stmt::Shuffle { dst: other, kind: k::Shuffle::Xor, value: total, by: bits });
            total = self.both("part", op, total, other);
            by /= 2;
        }
        total
    }

    /// The loop over threads that is being lowered.
    pub(super) fn thread(&self) -> Option<l::AxisId> {
        self.axes.iter().find(|(_, ix)| **ix == k::Ix::Thread).map(|(axis, _)| *axis)
    }

    /// Shared memory for a partial accumulator of each thread: the `n`th of the reduction over an axis. It is reused
    /// from an earlier reduction with the same place.
    fn partials(&mut self, name: &str, elem: k::Elem, (axis, n): (l::AxisId, usize)) -> Res<k::BufId> {
        let (name, len) = (format!("{name}_parts"), self.out.threads.into());
        let key = (self.places.get(&axis).copied().unwrap_or(0), n, elem.held().bytes());
        match self.partials.get(&key).copied() {
            Some(offset) => {
                let name = self.names.fresh(&name);
                Ok(self.new_slot(k::Slot { name, space: k::Space::Shared, elem, len, offset }))
            }
            None => {
                self.partials.insert(key, self.out.shared);
                self.shared_slot(&name, k::Space::Shared, elem, len)
            }
        }
    }

    /// Shared memory besides that of the buffers.
    pub(super) fn shared_slot(&mut self, name: &str, space: k::Space, elem: k::Elem, len: u64) -> Res<k::BufId> {
        let (name, offset) = (self.names.fresh(name), self.out.shared);
        let slot = k::Slot { name, space, elem, len, offset };
        self.out.shared = (offset + slot.bytes()).next_multiple_of(16);
        if self.out.shared > self.options.shared {
            let (needs, most) = (self.out.shared, self.options.shared);
            return Err(format!("the kernel needs {needs} bytes of shared memory; a block has at most {most}"));
        }
        Ok(self.new_slot(slot))
    }

    /// Combines all partial accumulators by halving, in every thread: those of different warps by reading them, those
    /// of the lanes of a warp by shuffles.
    fn halved_by_threads(&mut self, op: ScalarOp, slot: k::BufId, like: k::ValId) -> Res<k::ValId> {
        let t = self.out.vals[like].ty;
        let lane = k::Ix::modulo(k::Ix::Thread, k::Ix::Const(self.out.warp.into()));
        let mut parts = vec![];
        for warp in 0..self.out.threads / self.out.warp {
            let index = k::Ix::add(lane.clone(), k::Ix::Const((warp * self.out.warp).into()));
            let dst = self.value("part", t);
            self.push(load(dst, k::Address::Slot { buf: slot, index }));
            parts.push(dst);
        }
        let own = self.halved("part", op, parts).ok_or("a block has no threads")?;
        Ok(self.halved_by_lanes(op, self.out.warp, own))
    }
}
