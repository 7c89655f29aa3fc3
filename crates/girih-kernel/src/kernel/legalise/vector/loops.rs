//! Loops in steps of whole vectors, and what these leave over.
//!
//! A reduction keeps vectors of partial results. Iterations behind the last whole vector run with lanes off where their body can,
//! and on one lane after the other elsewhere; iteration i of those left over goes to lane i in either case.

use crate::index::Facts;
use crate::kernel::ir as k;
use crate::kernel::legalise::register::MOST_REGISTERS;
use crate::kernel::legalise::scalar::zero;
use crate::kernel::legalise::{Lower, Nest, Res, Storage, Vector, ty};
use crate::loops::ir as l;
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};
use crate::tile::edit;
use rustc_hash::FxHashMap;

impl Lower<'_> {
    /// The loop in steps of whole vectors, then the iterations left over one by one.
    pub(in crate::kernel::legalise) fn vector_loop(&mut self, f: &l::For, lanes: u32) -> Res<()> {
        if self.transposition(f, lanes)? {
            return Ok(());
        }
        let lo = self.ix(&f.lo)?;
        let hi = self.ix(&f.hi)?;
        let unit = f.step == l::Ix::Const(1) && lanes.is_power_of_two();
        let accs: &[l::BufId] = match (&f.combine, f.kind) {
            (Some(c), l::LoopKind::Reduce) => &c.accs,
            (None, l::LoopKind::Free) => &[],
            _ => return Err(self.unplaced(f, "its iterations have an order")),
        };
        if !unit {
            return Err(self.unplaced(f, "its step is not 1, or its lanes are not a power of two"));
        }
        let by_lane = !self.vectorisable(&f.body);
        if by_lane && accs.is_empty() {
            return Err(self.unplaced(f, "its body cannot run in lanes"));
        }
        // Each thread moves one vector.
        if self.out.threads > 1 && accs.is_empty() && edit::const_trip(f) == Some(lanes.into()) {
            return self.written_out(f, lanes);
        }
        let ways = f.combine.as_ref().map_or(1, |c| c.ways.max(1));
        let group = lanes as i64 * ways as i64;
        let split = self.end_of_groups(&lo, &hi, group);

        let partials = self.partial_vectors(f, lanes, ways)?;

        let axis = self.axis_of(f.axis);
        let nest = match (&lo, &hi) {
            (k::Ix::Const(lo), k::Ix::Const(hi)) => {
                let mut nest = self.nest.clone();
                nest.push((f.axis, f.lo.clone(), (hi - lo).max(0) as u64));
                nest
            }
            _ => vec![],
        };
        let multiple = Facts::new().divisor(&f.lo).min(lanes.into());
        let vector = Vector { axis: f.axis, lanes, first: None, multiple };
        if lo != split {
            let body = self.in_lanes(vector, |s| {
                for (w, partial) in partials.iter().enumerate() {
                    let base = k::Ix::add(k::Ix::Axis(axis), k::Ix::Const(w as i64 * lanes as i64));
                    s.one_vector(f, partial, base, nest.clone(), by_lane)?;
                }
                Ok(())
            })?;
            let step = k::Ix::Const(group);
            self.push(k::Stmt::For { axis, lo: lo.clone(), hi: split.clone(), step, unroll: 0, body });
        }
        // Lanes that are off move and compute nothing, if the body can run without them.
        let in_part =
            !by_lane && self.out.threads <= 1 && !self.options.check && edit::can_be_off(self.src, 1, &f.body);
        let [first, ..] = &partials[..] else { return Err("a vector loop has no accumulators".to_string()) };
        if !in_part || matches!(k::Ix::sub(hi.clone(), split.clone()), k::Ix::Const(..=1)) {
            match first.is_empty() {
                true => self.scalar_loop(f, split, hi)?,
                false => self.lane_after_lane(f, lanes, split, hi, first)?,
            }
            return self.combine(f, &partials);
        }
        let split = match ways {
            1 => split,
            _ => self.further_vectors(f, vector, (split, &hi), first)?,
        };
        let left = k::Ix::sub(hi, split.clone());
        if left != k::Ix::Const(0) {
            let rest = self.in_lanes(vector, |s| {
                let before = s.copies(first);
                s.on = Some(left.clone());
                let done = s.one_vector(f, first, split, vec![], false);
                s.on = None;
                done?;
                s.keep_lanes_from(&left, before);
                Ok(())
            })?;
            match left {
                k::Ix::Const(_) => rest.into_iter().for_each(|s| self.push(s)),
                lhs => {
                    let some = k::Cond { lhs, cmp: l::Cmp::Gt, rhs: k::Ix::Const(0) };
                    let mask = k::Mask { conds: vec![some], vals: vec![] };
                    self.push(k::Stmt::If { mask, then: rest, els: vec![] });
                }
            }
        }
        self.combine(f, &partials)
    }

    /// Partial accumulators of a reduction, one vector for each way.
    fn partial_vectors(&mut self, f: &l::For, lanes: u32, ways: u32) -> Res<Vec<FxHashMap<l::BufId, k::ValId>>> {
        let mut partials: Vec<FxHashMap<l::BufId, k::ValId>> = vec![FxHashMap::default(); ways as usize];
        if let Some(c) = &f.combine {
            let l::CombineOp::Scalar { identity, .. } = c.op;
            for &acc in &c.accs {
                let b = self.buf(acc)?;
                for partial in &mut partials {
                    let t = ty(b.ty, lanes);
                    let var = self.value(&format!("{}_part", b.name), t);
                    self.push(k::Stmt::Var { var, init: k::Opnd::Const { dtype: t.dtype(), bits: identity } });
                    partial.insert(acc, var);
                }
            }
        }
        Ok(partials)
    }

    /// A reduction of registers: each vector of them by itself.
    pub(in crate::kernel::legalise) fn folded_registers(&mut self, f: &l::For, lanes: u32) -> Res<()> {
        let ways = f.combine.as_ref().map_or(1, |c| c.ways.max(1));
        let (lo, hi, step) = (self.ix(&f.lo)?, self.ix(&f.hi)?, self.ix(&f.step)?);
        let (k::Ix::Const(lo), k::Ix::Const(hi), k::Ix::Const(1)) = (lo, hi, step) else {
            return Err(self.unplaced(f, "it touches registers, and its bounds are not constants"));
        };
        let (count, group) = (hi.saturating_sub(lo).max(0), i64::from(lanes) * i64::from(ways));
        if count % group != 0 || count / i64::from(lanes) > MOST_REGISTERS as i64 {
            return Err(self.unplaced(f, "it touches registers, and has iterations left over or very many"));
        }
        let partials = self.partial_vectors(f, lanes, ways)?;
        for (first, partial) in (lo..hi).step_by(lanes as usize).zip(partials.iter().cycle()) {
            let vector = Vector { axis: f.axis, lanes, first: Some(first), multiple: 1 };
            let folded = self.in_lanes(vector, |s| s.one_vector(f, partial, k::Ix::Const(first), vec![], false))?;
            folded.into_iter().for_each(|s| self.push(s));
        }
        self.combine(f, &partials)
    }

    /// The end of the whole groups of `group` iterations from `lo` on.
    fn end_of_groups(&mut self, lo: &k::Ix, hi: &k::Ix, group: i64) -> k::Ix {
        let count = k::Ix::sub(hi.clone(), lo.clone());
        let whole = k::Ix::mul(k::Ix::floor_div(count.clone(), k::Ix::Const(group)), k::Ix::Const(group));
        if let (k::Ix::Const(n), k::Ix::Const(lo)) = (&whole, lo) {
            return k::Ix::Const(lo.saturating_add(*n.max(&0)));
        }
        // An empty range may have a count below zero.
        let whole = match Facts::new().range(&count).lo >= 0 {
            true => whole,
            false => k::Ix::Max(Box::new(whole), Box::new(k::Ix::Const(0))),
        };
        let dst = self.value("split", k::Ty::num(DType::I64, 1));
        self.push(k::Stmt::Index { dst, ix: k::Ix::add(lo.clone(), whole) });
        k::Ix::Val { val: dst, zext: false }
    }

    /// The statements of a body that runs in lanes.
    fn in_lanes(&mut self, vector: Vector, body: impl FnOnce(&mut Self) -> Res<()>) -> Res<Vec<k::Stmt>> {
        self.vector = Some(vector);
        self.splats = Some(FxHashMap::default());
        let body = self.inner(body);
        self.vector = None;
        self.splats = None;
        body
    }

    /// The body for the lanes from `base` on, which folds into these accumulators.
    fn one_vector(
        &mut self,
        f: &l::For,
        accs: &FxHashMap<l::BufId, k::ValId>,
        base: k::Ix,
        nest: Nest,
        by_lane: bool,
    ) -> Res<()> {
        let saved: Vec<_> =
            accs.iter().map(|(&acc, &var)| (acc, self.storage.insert(acc, Storage::Var(var)))).collect();
        let done = self.at_axis(f.axis, base, nest, |s| {
            if !by_lane {
                return s.run(&f.body);
            }
            let on = l::Opnd::Const { dtype: DType::I1, bits: 1 };
            s.lane_loop(&l::Stmt::If { cond: on, then: f.body.clone(), els: vec![] }, None)
        });
        for (acc, old) in saved {
            if let Some(old) = old {
                self.storage.insert(acc, old);
            }
        }
        done
    }

    /// The whole vectors that groups of several leave over, one at a time. Returns where they end.
    fn further_vectors(
        &mut self,
        f: &l::For,
        vector: Vector,
        (lo, hi): (k::Ix, &k::Ix),
        accs: &FxHashMap<l::BufId, k::ValId>,
    ) -> Res<k::Ix> {
        let step = k::Ix::Const(vector.lanes.into());
        let end = self.end_of_groups(&lo, hi, vector.lanes.into());
        if end == lo {
            return Ok(lo);
        }
        let axis = self.axis_of(f.axis);
        let body = self.in_lanes(vector, |s| s.one_vector(f, accs, k::Ix::Axis(axis), vec![], false))?;
        self.push(k::Stmt::For { axis, lo, hi: end.clone(), step, unroll: 0, body });
        Ok(end)
    }

    /// The iterations left over one by one, each on a lane of the accumulators, where their body cannot run in part of the lanes.
    fn lane_after_lane(
        &mut self,
        f: &l::For,
        lanes: u32,
        lo: k::Ix,
        hi: k::Ix,
        accs: &FxHashMap<l::BufId, k::ValId>,
    ) -> Res<()> {
        if matches!(k::Ix::sub(hi.clone(), lo.clone()), k::Ix::Const(..=0)) {
            return Ok(());
        }
        let axis = self.axis_of(f.axis);
        let lane = k::Ix::modulo(k::Ix::sub(k::Ix::Axis(axis), lo.clone()), k::Ix::Const(lanes.into()));
        let mut vectors: Vec<(l::BufId, k::ValId)> = accs.iter().map(|(&acc, &vector)| (acc, vector)).collect();
        vectors.sort();
        let body = self.inner(|s| {
            let mut scalars = FxHashMap::default();
            for &(acc, vector) in &vectors {
                let t = k::Ty { lanes: 1, ..s.out.vals[vector].ty };
                let (dst, var) = (s.value("own", t), s.value("own", t));
                s.push(k::Stmt::Lane { dst, vector, lane: lane.clone() });
                s.push(k::Stmt::Var { var, init: k::Opnd::Val(dst) });
                scalars.insert(acc, var);
            }
            s.one_vector(f, &scalars, k::Ix::Axis(axis), vec![], false)?;
            for (acc, vector) in vectors {
                let value = k::Opnd::Val(scalars[&acc]);
                s.push(k::Stmt::SetLane { vector, lane: lane.clone(), value });
            }
            Ok(())
        })?;
        self.push(k::Stmt::For { axis, lo, hi, step: k::Ix::Const(1), unroll: 0, body });
        Ok(())
    }

    /// The variable of each accumulator, and its value now.
    fn copies(&mut self, accs: &FxHashMap<l::BufId, k::ValId>) -> Vec<(k::ValId, k::ValId)> {
        let mut vars: Vec<k::ValId> = accs.values().copied().collect();
        vars.sort();
        let copy = |var: k::ValId| {
            let t = self.out.vals[var].ty;
            let dst = self.value("before", t);
            self.push(k::Stmt::Let { dst, op: ScalarOp::Copy, ty: t.elem, args: vec![k::Opnd::Val(var)] });
            (var, dst)
        };
        vars.into_iter().map(copy).collect()
    }

    /// Gives the lanes from `first` on what their variables held before.
    fn keep_lanes_from(&mut self, first: &k::Ix, before: Vec<(k::ValId, k::ValId)>) {
        if before.is_empty() {
            return;
        }
        let ramp = self.value("lane", k::Ty::num(DType::I32, self.lanes()));
        self.push(k::Stmt::Ramp { dst: ramp, base: k::Ix::sub(k::Ix::Const(0), first.clone()), step: k::Ix::Const(1) });
        let on = self.value("on", k::Ty::num(DType::I1, self.lanes()));
        let op = ScalarOp::CmpI { pred: Predicate::LessThan, sign: Signedness::Signed };
        let int = l::Ty::Num(DType::I32);
        self.push(k::Stmt::Let { dst: on, op, ty: int, args: vec![k::Opnd::Val(ramp), zero(int)] });
        for (var, old) in before {
            let t = self.out.vals[var].ty;
            let dst = self.value("kept", t);
            let args = [on, var, old].map(k::Opnd::Val).to_vec();
            self.push(k::Stmt::Let { dst, op: ScalarOp::Select, ty: t.elem, args });
            self.push(k::Stmt::Set { var, value: k::Opnd::Val(dst) });
        }
    }

    /// Returns true if the statements can run for many lanes at a time: they have no storage of their own beyond
    /// scalars, do not return or print, and contain no placement.
    fn vectorisable(&self, body: &[l::Stmt]) -> bool {
        body.iter().all(|stmt| match stmt {
            l::Stmt::Stage { .. } | l::Stmt::Alloca { .. } => false,
            l::Stmt::Print { .. } | l::Stmt::Return => false,
            l::Stmt::Local { buf } => self.src.bufs.get(*buf).is_some_and(|b| b.shape.is_empty()),
            l::Stmt::For(f) => !matches!(f.place, l::Place::Vector { lanes: 2.. }) && self.vectorisable(&f.body),
            l::Stmt::Loop { body } => self.vectorisable(body),
            l::Stmt::If { then, els, .. } => self.vectorisable(then) && self.vectorisable(els),
            _ => true,
        })
    }

    /// Folds the partial accumulators by halving and adds them to the accumulators.
    fn combine(&mut self, f: &l::For, partials: &[FxHashMap<l::BufId, k::ValId>]) -> Res<()> {
        let Some(c) = &f.combine else { return Ok(()) };
        let l::CombineOp::Scalar { op, .. } = c.op;
        for &acc in &c.accs {
            let vectors: Vec<k::ValId> = partials.iter().filter_map(|p| p.get(&acc).copied()).collect();
            if !vectors.len().is_power_of_two() {
                return Err(format!("a reduction runs {} ways, which is not a power of two", vectors.len()));
            }
            let name = self.buf(acc)?.name.clone();
            let scalar_ty = ty(self.buf(acc)?.ty, 1);
            let Some(vector) = self.halved(&format!("{name}_sum"), op, vectors) else { continue };
            let folded = self.value(&format!("{name}_all"), scalar_ty);
            self.push(k::Stmt::Reduce { dst: folded, op, vector });
            let Storage::Var(var) = self.storage(acc)? else {
                return Err("a reduction's accumulator is not a scalar".to_string());
            };
            let sum = self.both(&format!("{name}_sum"), op, var, folded);
            self.push(k::Stmt::Set { var, value: k::Opnd::Val(sum) });
        }
        Ok(())
    }

    /// Values of one type combined by halving: the first half with the second, and so on.
    pub(in crate::kernel::legalise) fn halved(
        &mut self,
        hint: &str,
        op: ScalarOp,
        mut parts: Vec<k::ValId>,
    ) -> Option<k::ValId> {
        while parts.len() > 1 {
            let upper = parts.split_off(parts.len() / 2);
            parts = parts.into_iter().zip(upper).map(|(a, b)| self.both(hint, op, a, b)).collect();
        }
        parts.pop()
    }

    /// `op` of two values of one type.
    pub(in crate::kernel::legalise) fn both(&mut self, hint: &str, op: ScalarOp, a: k::ValId, b: k::ValId) -> k::ValId {
        let ty = self.out.vals[a].ty;
        let dst = self.value(hint, ty);
        self.push(k::Stmt::Let { dst, op, ty: ty.elem, args: vec![k::Opnd::Val(a), k::Opnd::Val(b)] });
        dst
    }
}

/// Returns true if the statements leave the loop they are in; then lanes may leave it at different times.
pub(super) fn leaves(body: &[l::Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        l::Stmt::If { then, els, .. } => leaves(then) || leaves(els),
        l::Stmt::Break | l::Stmt::Continue => true,
        _ => false,
    })
}
