//! Statements many lanes at a time, and the loops around them.
//!
//! Lane l of a statement is the iteration `axis + l`. A value that is the same in every lane stays one value; a value
//! that differs is a vector; an operation without a vector form runs in a lane loop, which extracts its operands from
//! vectors and inserts its result. A masked access first asks whether every lane is on, which decides nearly always.

use super::scalar::zero;
use super::{Loc, Lower, Nest, Res, Storage, Vector, ty};
use crate::index::{Facts, Poly};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};
use crate::tile::edit;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// How the elements that the lanes touch lie in memory.
enum Reach {
    /// All lanes at one element.
    Same,
    /// Lane l at the first lane's element plus l.
    Contiguous,
    /// Lane l at the first lane's element plus l times this step, which is small enough to load adjacent vectors for
    /// it.
    Apart(u32),
    Scattered,
}

impl Lower<'_> {
    fn lanes(&self) -> u32 {
        self.vector.map_or(1, |v| v.lanes)
    }

    /// Returns true if an operand differs between lanes.
    fn differs(&self, opnd: &l::Opnd) -> bool {
        matches!(opnd, l::Opnd::Val(v) if matches!(self.vals.get(v), Some(Loc::Vector(_))))
    }

    /// A vector operand; one value is splatted, a constant stays as it is.
    pub(super) fn vector_opnd(&mut self, opnd: &l::Opnd) -> Res<k::Opnd> {
        let val = match opnd {
            l::Opnd::Const { dtype, bits } => return Ok(k::Opnd::Const { dtype: *dtype, bits: *bits }),
            l::Opnd::Val(val) => *val,
        };
        match self.loc(val)? {
            Loc::Vector(v) => Ok(k::Opnd::Val(v)),
            Loc::Scalar(c @ k::Opnd::Const { .. }) => Ok(c),
            Loc::Scalar(k::Opnd::Val(v)) => self.splat(v),
        }
    }

    fn splat(&mut self, scalar: k::ValId) -> Res<k::Opnd> {
        if let Some(done) = self.splats.as_ref().and_then(|s| s.get(&scalar)) {
            return Ok(*done);
        }
        let (name, elem) = (self.out.vals[scalar].name.clone(), self.out.vals[scalar].ty.elem);
        let dst = self.value(&format!("{name}_v"), k::Ty { elem, lanes: self.lanes() });
        self.push(k::Stmt::Splat { dst, value: k::Opnd::Val(scalar) });
        if let Some(splats) = &mut self.splats {
            splats.insert(scalar, k::Opnd::Val(dst));
        }
        Ok(k::Opnd::Val(dst))
    }

    /// A fresh vector for a value of loop IR.
    fn define_vector(&mut self, val: l::ValId) -> Res<k::ValId> {
        let t = ty(self.src_ty(val)?, self.lanes());
        let name = self.src.vals[val].name.clone();
        let dst = self.value(&name, t);
        self.vals.insert(val, Loc::Vector(dst));
        Ok(dst)
    }

    fn has_vectors(&self, ix: &l::Ix) -> bool {
        ix.any_leaf(&mut |leaf| matches!(leaf, l::Ix::Val { val, .. } if self.differs(&l::Opnd::Val(*val))))
    }

    /// The step of the expression from lane to lane, if it is constant.
    fn slope(&self, ix: &l::Ix, vector: Vector) -> Option<l::Ix> {
        if self.has_vectors(ix) {
            return None;
        }
        let linear = ix.linear(vector.axis).map(|(step, _)| step);
        linear.or_else(|| lane_step(ix, vector).map(l::Ix::Const))
    }

    fn reach(&self, index: &l::Ix) -> Reach {
        let Some(vector) = self.vector else { return Reach::Same };
        if !self.varies(index) {
            return Reach::Same;
        }
        if self.has_vectors(index) {
            return Reach::Scattered;
        }
        match self.slope(index, vector) {
            Some(l::Ix::Const(0)) => Reach::Same,
            Some(l::Ix::Const(1)) => Reach::Contiguous,
            Some(l::Ix::Const(step))
                if self.out.threads <= 1
                    && (2..=i64::from(k::MOST_APART)).contains(&step)
                    && step < i64::from(vector.lanes) =>
            {
                Reach::Apart(step as u32)
            }
            _ => self.reach_of_lanes(index, vector),
        }
    }

    /// The reach where the first lane is a constant: every lane's element can be worked out, `j // 32` and `j % 32` too.
    fn reach_of_lanes(&self, index: &l::Ix, vector: Vector) -> Reach {
        let Some(k::Ix::Const(first)) = self.axes.get(&vector.axis) else { return Reach::Scattered };
        let at = |lane: i64| {
            let element = l::Ix::Const(first.wrapping_add(lane));
            Poly::expanded(&index.subst_axes(&mut |axis| (axis == vector.axis).then(|| element.clone())))
        };
        let start = at(0);
        let follows = |lane| at(lane).minus(&start).as_const() == Some(lane as i128);
        if (1..vector.lanes as i64).all(follows) { Reach::Contiguous } else { Reach::Scattered }
    }

    fn mask_varies(&self, mask: &l::Mask) -> bool {
        mask.conds.iter().any(|c| self.varies(&c.lhs) || self.varies(&c.rhs))
            || mask.vals.iter().any(|v| self.differs(&l::Opnd::Val(*v)))
    }

    /// Returns a mask of one value that says whether every lane is on; `None` where only the lanes themselves can tell.
    fn all_on(&mut self, mask: &l::Mask) -> Res<Option<k::Mask>> {
        let Some(vector) = self.vector else { return Ok(None) };
        let mut out = k::Mask::default();
        for cond in &mask.conds {
            if !self.varies(&cond.lhs) && !self.varies(&cond.rhs) {
                let cond = self.cond(cond)?;
                out.conds.push(cond);
                continue;
            }
            // An ordering of two affine expressions that holds at both ends holds between them.
            let slopes = (self.slope(&cond.lhs, vector), self.slope(&cond.rhs, vector));
            let (Some(a), Some(b)) = slopes else { return Ok(None) };
            if !matches!(cond.cmp, l::Cmp::Lt | l::Cmp::Le | l::Cmp::Gt | l::Cmp::Ge) {
                return Ok(None);
            }
            let last = self.at_lane(cond, vector, vector.lanes as i64 - 1)?;
            // The end at which the condition is hardest to meet decides.
            let slope = match (a, b) {
                (l::Ix::Const(a), l::Ix::Const(b)) => Some(a.saturating_sub(b)),
                _ => None,
            };
            let below = matches!(cond.cmp, l::Cmp::Lt | l::Cmp::Le);
            match slope {
                Some(s) if (s >= 0) == below => out.conds.push(last),
                Some(_) => {
                    let first = self.at_lane(cond, vector, 0)?;
                    out.conds.push(first);
                }
                None => {
                    let first = self.at_lane(cond, vector, 0)?;
                    out.conds.push(first);
                    out.conds.push(last);
                }
            }
        }
        for &val in &mask.vals {
            match self.loc(val)? {
                Loc::Scalar(_) => self.mask_val(&mut out, val)?,
                Loc::Vector(v) => {
                    let name = format!("{}_all", self.out.vals[v].name);
                    let dst = self.value(&name, k::Ty::num(DType::I1, 1));
                    self.push(k::Stmt::All { dst, vector: v });
                    out.vals.push(dst);
                }
            }
        }
        Ok(Some(out))
    }

    /// The condition in one lane.
    fn at_lane(&mut self, cond: &l::Cond, vector: Vector, lane: i64) -> Res<k::Cond> {
        let base = self.axes.get(&vector.axis).cloned().ok_or("a vector loop has no axis")?;
        let saved = self.axes.insert(vector.axis, k::Ix::add(base, k::Ix::Const(lane)));
        let done = self.cond(cond);
        if let Some(ix) = saved {
            self.axes.insert(vector.axis, ix);
        }
        done
    }

    pub(super) fn vector_stmt(&mut self, stmt: &l::Stmt) -> Res<()> {
        match stmt {
            l::Stmt::Let { dst, op, args } if args.iter().any(|a| self.differs(a)) => {
                let at = self.op_elem(*op, args)?;
                let args = args.iter().map(|a| self.vector_opnd(a)).collect::<Res<Vec<_>>>()?;
                let dst = self.define_vector(*dst)?;
                self.push(k::Stmt::Let { dst, op: *op, ty: at, args });
            }
            l::Stmt::Index { dst, ix } if self.varies(ix) => self.vector_index(stmt, *dst, ix)?,
            l::Stmt::Test { dst, mask } if self.mask_varies(mask) => {
                let dst = *dst;
                self.decide(mask, stmt, Some(dst), |s| {
                    let on = k::Opnd::Const { dtype: DType::I1, bits: 1 };
                    s.assign(dst, on)
                })?;
            }
            l::Stmt::Load { dst, mem, mask, other, order, site } => {
                let base_differs = self.differs(&l::Opnd::Val(mem.base));
                let (reach, masked) = (self.reach(&mem.index), self.mask_varies(mask));
                let plain = *order == l::Order::Weak && mem.elem.bits() != 4 && !base_differs;
                match reach {
                    Reach::Same if !masked && !base_differs && !other.is_some_and(|o| self.differs(&o)) => {
                        self.scalar_stmt(stmt)?;
                    }
                    Reach::Contiguous if plain && mask.is_always() => {
                        let place = self.place(mem)?;
                        self.check(mem, &place, self.lanes(), &k::Mask::default(), false, *site)?;
                        let dst = self.define_vector(*dst)?;
                        self.push_load(dst, place);
                    }
                    Reach::Contiguous if plain && self.range_of(mask)?.is_some() && self.in_parts(mem.elem) => {
                        self.load_some(*dst, mem, mask, other.as_ref())?
                    }
                    Reach::Contiguous if plain && !masked => {
                        let (mem, site) = (mem.clone(), *site);
                        self.all_or_none(*dst, mask, other.as_ref(), |s, t| {
                            let place = s.place(&mem)?;
                            s.check(&mem, &place, t.lanes, &k::Mask::default(), false, site)?;
                            let loaded = s.value("whole", t);
                            s.push_load(loaded, place);
                            Ok(loaded)
                        })?
                    }
                    Reach::Contiguous if plain => {
                        let (dst, mem, site) = (*dst, mem.clone(), *site);
                        self.decide(mask, stmt, Some(dst), |s| {
                            let place = s.place(&mem)?;
                            s.check(&mem, &place, s.lanes(), &k::Mask::default(), false, site)?;
                            let t = ty(s.src_ty(dst)?, s.lanes());
                            let loaded = s.value("whole", t);
                            s.push(load(loaded, place));
                            s.assign(dst, k::Opnd::Val(loaded))
                        })?;
                    }
                    Reach::Apart(step) if plain && !masked && mem.elem.bits() >= 8 => {
                        self.apart(*dst, mem, (mask, other.as_ref()), step, *site)?
                    }
                    Reach::Apart(step) if plain && mem.elem.bits() >= 8 => {
                        let (dst, mem, site) = (*dst, mem.clone(), *site);
                        self.decide(mask, stmt, Some(dst), |s| {
                            let parts = s.parts_apart(dst, &mem, step, site)?;
                            let t = ty(s.src_ty(dst)?, s.lanes());
                            let taken = s.value("every", t);
                            s.push(k::Stmt::Strided { dst: taken, parts });
                            s.assign(dst, k::Opnd::Val(taken))
                        })?;
                    }
                    _ => self.by_lane(stmt, Some(*dst))?,
                }
            }
            l::Stmt::Store { mem, value, mask, order, site } => {
                let plain = *order == l::Order::Weak && mem.elem.bits() != 4 && !self.differs(&l::Opnd::Val(mem.base));
                match self.reach(&mem.index) {
                    Reach::Contiguous if plain => {
                        let value = *value;
                        let (mem, site) = (mem.clone(), *site);
                        let in_parts = self.in_parts(mem.elem);
                        if let Some(range) = self.range_of(mask)?.filter(|_| in_parts) {
                            self.store_some(&value, &mem, mask, range)?;
                            return Ok(());
                        }
                        let whole = move |s: &mut Self| {
                            let value = s.whole(&value)?;
                            let place = s.place(&mem)?;
                            s.check(&mem, &place, s.lanes(), &k::Mask::default(), true, site)?;
                            s.push_store(place, value);
                            Ok(())
                        };
                        match mask.is_always() {
                            true => whole(self)?,
                            false if !self.mask_varies(mask) => {
                                let (mask, then) = (self.mask(mask)?, self.inner(whole)?);
                                self.push(k::Stmt::If { mask, then, els: vec![] });
                            }
                            false => self.decide(mask, stmt, None, whole)?,
                        }
                    }
                    _ => self.by_lane(stmt, None)?,
                }
            }
            l::Stmt::Read { dst, buf, idx } => match self.storage(*buf)? {
                Storage::Var(var) if self.out.vals[var].ty.is_vector() => self.read_vector(*dst, var)?,
                Storage::Var(_) => self.scalar_stmt(stmt)?,
                Storage::Registers(registers) => {
                    let var = self.register(*buf, registers, idx)?;
                    self.read_register(var);
                    self.read_vector(*dst, var)?;
                }
                Storage::Slot(slot) => {
                    let linear = self.linear(*buf, idx)?;
                    match self.reach(&linear) {
                        Reach::Same => self.scalar_stmt(stmt)?,
                        Reach::Contiguous => {
                            let place = self.place_in(*buf, slot, &linear)?;
                            let dst = self.define_vector(*dst)?;
                            self.push_load(dst, place);
                        }
                        Reach::Apart(step) if self.buf(*buf)?.ty != l::Ty::Num(DType::I1) => {
                            let parts = self.part_places(step, |s, first| {
                                s.place_in(*buf, slot, &l::Ix::add(linear.clone(), first))
                            })?;
                            let t = ty(self.src_ty(*dst)?, self.lanes());
                            let parts = self.load_parts(t, parts, step);
                            let dst = self.define_vector(*dst)?;
                            self.push(k::Stmt::Strided { dst, parts });
                        }
                        _ => self.by_lane(stmt, Some(*dst))?,
                    }
                }
            },
            l::Stmt::Write { buf, idx, value } => match self.storage(*buf)? {
                Storage::Var(var) if self.out.vals[var].ty.is_vector() => {
                    let value = self.vector_opnd(value)?;
                    self.push(k::Stmt::Set { var, value });
                }
                Storage::Var(_) => self.scalar_stmt(stmt)?,
                Storage::Registers(registers) => {
                    let value = self.vector_opnd(value)?;
                    let var = self.register(*buf, registers, idx)?;
                    self.write_register(var, value);
                }
                Storage::Slot(slot) => {
                    let linear = self.linear(*buf, idx)?;
                    match self.reach(&linear) {
                        Reach::Contiguous => {
                            let value = self.whole(value)?;
                            let place = self.place_in(*buf, slot, &linear)?;
                            self.push_store(place, value);
                        }
                        _ => self.by_lane(stmt, None)?,
                    }
                }
            },
            l::Stmt::Local { buf } => self.local(*buf, self.lanes())?,
            l::Stmt::If { cond, .. } if !self.differs(cond) => self.scalar_stmt(stmt)?,
            l::Stmt::For(f)
                if !self.varies(&f.lo) && !self.varies(&f.hi) && !self.varies(&f.step) && !leaves(&f.body) =>
            {
                self.scalar_stmt(stmt)?;
            }
            l::Stmt::Rmw { dst, .. } | l::Stmt::Cas { dst, .. } => self.by_lane(stmt, Some(*dst))?,
            l::Stmt::Assert { cond: l::Opnd::Val(cond), .. } => {
                // One test for all lanes; the lane that fails is looked for afterwards.
                let cond = l::Mask { conds: vec![], vals: vec![*cond] };
                self.decide(&cond, stmt, None, |_| Ok(()))?;
            }
            l::Stmt::If { .. } | l::Stmt::For(_) | l::Stmt::Loop { .. } => self.by_lane(stmt, None)?,
            _ => self.scalar_stmt(stmt)?,
        }
        Ok(())
    }

    /// A read of a vector variable: the variable itself, or a copy where it is written before the last use.
    fn read_vector(&mut self, dst: l::ValId, var: k::ValId) -> Res<()> {
        if self.aliases.contains(&dst) {
            self.vals.insert(dst, Loc::Vector(var));
            return Ok(());
        }
        let ty = self.out.vals[var].ty.elem;
        let dst = self.define_vector(dst)?;
        self.push(k::Stmt::Let { dst, op: ScalarOp::Copy, ty, args: vec![k::Opnd::Val(var)] });
        Ok(())
    }

    /// The value for a whole vector's store: always a vector.
    fn whole(&mut self, value: &l::Opnd) -> Res<k::Opnd> {
        match self.vector_opnd(value)? {
            k::Opnd::Const { dtype, bits } => {
                let dst = self.value("filled", k::Ty::num(dtype, self.lanes()));
                self.push(k::Stmt::Splat { dst, value: k::Opnd::Const { dtype, bits } });
                Ok(k::Opnd::Val(dst))
            }
            v => Ok(v),
        }
    }

    /// Sets the variable that stands for a value of loop IR.
    fn assign(&mut self, val: l::ValId, value: k::Opnd) -> Res<()> {
        match self.loc(val)? {
            Loc::Vector(var) => self.push(k::Stmt::Set { var, value }),
            Loc::Scalar(_) => return Err("a vector is assigned to one value".to_string()),
        }
        Ok(())
    }

    fn vector_index(&mut self, stmt: &l::Stmt, dst: l::ValId, ix: &l::Ix) -> Res<()> {
        let Some(vector) = self.vector else { return Err("no vector loop".to_string()) };
        match self.slope(ix, vector) {
            Some(step) if self.src_ty(dst)? != l::Ty::Num(DType::I1) => {
                let base = self.ix(ix)?;
                let step = self.ix(&step)?;
                let dst = self.define_vector(dst)?;
                self.push(k::Stmt::Ramp { dst, base, step });
                Ok(())
            }
            _ => self.by_lane(stmt, Some(dst)),
        }
    }

    /// `whole` when every lane is on, a lane loop otherwise. `dst` becomes a variable that both assign.
    fn decide(
        &mut self,
        mask: &l::Mask,
        stmt: &l::Stmt,
        dst: Option<l::ValId>,
        whole: impl FnOnce(&mut Self) -> Res<()>,
    ) -> Res<()> {
        if self.on.is_some() {
            return self.by_lane(stmt, dst);
        }
        let Some(full) = self.all_on(mask)? else { return self.by_lane(stmt, dst) };
        if let Some(dst) = dst {
            let init = zero(self.src_ty(dst)?);
            let var = self.define_vector(dst)?;
            self.push(k::Stmt::Var { var, init });
        }
        let then = self.inner(whole)?;
        let els = self.inner(|s| s.lane_loop(stmt, dst))?;
        self.push(k::Stmt::If { mask: full, then, els });
        Ok(())
    }

    /// A load whose lanes are all on or all off: the value that `whole` loads, or its substitute.
    fn all_or_none(
        &mut self,
        dst: l::ValId,
        mask: &l::Mask,
        other: Option<&l::Opnd>,
        whole: impl FnOnce(&mut Self, k::Ty) -> Res<k::ValId>,
    ) -> Res<()> {
        let t = ty(self.src_ty(dst)?, self.lanes());
        let init = match other {
            Some(other) => self.vector_opnd(other)?,
            None => zero(t.elem),
        };
        let var = self.define_vector(dst)?;
        self.push(k::Stmt::Var { var, init });
        let mask = self.mask(mask)?;
        let then = self.inner(|s| {
            let loaded = whole(s, t)?;
            s.push(k::Stmt::Set { var, value: k::Opnd::Val(loaded) });
            Ok(())
        })?;
        self.push(k::Stmt::If { mask, then, els: vec![] });
        Ok(())
    }

    /// A load of elements a few apart, by adjacent vectors: all lanes are on, or none.
    fn apart(
        &mut self,
        dst: l::ValId,
        mem: &l::Mem,
        (mask, other): (&l::Mask, Option<&l::Opnd>),
        step: u32,
        site: l::SiteId,
    ) -> Res<()> {
        if mask.is_always() {
            let parts = self.parts_apart(dst, mem, step, site)?;
            let dst = self.define_vector(dst)?;
            self.push(k::Stmt::Strided { dst, parts });
            return Ok(());
        }
        self.all_or_none(dst, mask, other, |s, t| {
            let parts = s.parts_apart(dst, mem, step, site)?;
            let taken = s.value("every", t);
            s.push(k::Stmt::Strided { dst: taken, parts });
            Ok(taken)
        })
    }

    /// The vectors that hold elements a few apart, one for each lane of `dst`.
    fn parts_apart(&mut self, dst: l::ValId, mem: &l::Mem, step: u32, site: l::SiteId) -> Res<Vec<k::ValId>> {
        let t = ty(self.src_ty(dst)?, self.lanes());
        let place = self.place(mem)?;
        self.check(mem, &place, (t.lanes - 1) * step + 1, &k::Mask::default(), false, site)?;
        let parts = self.part_places(step, |s, first| {
            s.place(&l::Mem { index: l::Ix::add(mem.index.clone(), first), ..mem.clone() })
        })?;
        Ok(self.load_parts(t, parts, step))
    }

    /// The places of the vectors that cover elements this far apart; `at` gets each vector's distance from the first,
    /// in elements.
    fn part_places(
        &mut self,
        step: u32,
        mut at: impl FnMut(&mut Self, l::Ix) -> Res<k::Address>,
    ) -> Res<Vec<k::Address>> {
        let apart = i64::from(self.lanes()) - 1;
        (0..i64::from(step)).map(|part| at(self, l::Ix::Const(part * apart))).collect()
    }

    fn load_parts(&mut self, t: k::Ty, places: Vec<k::Address>, step: u32) -> Vec<k::ValId> {
        let mut parts = vec![];
        for (part, place) in places.into_iter().enumerate() {
            let dst = self.value("part", t);
            let first = part as i64 * (i64::from(t.lanes) - 1);
            // The vectors cover the elements from the first to the last lane that is on.
            let on = self.on.take();
            let covered = |n| (n - k::Ix::Const(1)) * k::Ix::Const(step.into()) + k::Ix::Const(1 - first);
            self.on = on.clone().map(covered);
            self.push_load(dst, place);
            self.on = on;
            parts.push(dst);
        }
        parts
    }

    /// A load of the lanes that are on; the others are zero.
    fn push_load(&mut self, dst: k::ValId, place: k::Address) {
        match self.on.clone() {
            None => self.push(load(dst, place)),
            Some(to) => {
                let (from, other) = (k::Ix::Const(0), zero(self.out.vals[dst].ty.elem));
                self.push(k::Stmt::LoadLanes { dst, place, from, to, other });
            }
        }
    }

    /// A store of the lanes that are on.
    fn push_store(&mut self, place: k::Address, value: k::Opnd) {
        match (self.on.clone(), value) {
            (Some(to), k::Opnd::Val(value)) => {
                self.push(k::Stmt::StoreLanes { place, value, from: k::Ix::Const(0), to });
            }
            _ => self.push(store(place, value)),
        }
    }

    /// Returns true if single lanes of vectors of these elements can be loaded and stored without the others.
    fn in_parts(&self, elem: DType) -> bool {
        elem.bits() >= 8 && !self.options.check && self.out.threads <= 1
    }

    /// The range of lanes that a mask leaves on, and the rest of the mask, which is the same for all lanes. `None` if
    /// the lanes are not such a range, or if the mask treats all of them alike.
    fn range_of(&mut self, mask: &l::Mask) -> Res<Option<(k::Mask, k::Ix, k::Ix)>> {
        let Some(vector) = self.vector else { return Ok(None) };
        let (mut alike, mut from, mut to) = (k::Mask::default(), k::Ix::Const(0), self.on.clone());
        let mut bounded = false;
        for cond in &mask.conds {
            if !self.varies(&cond.lhs) && !self.varies(&cond.rhs) {
                let cond = self.cond(cond)?;
                alike.conds.push(cond);
                continue;
            }
            let slopes = (self.slope(&cond.lhs, vector), self.slope(&cond.rhs, vector));
            let (Some(l::Ix::Const(a)), Some(l::Ix::Const(b))) = slopes else { return Ok(None) };
            let at = self.at_lane(cond, vector, 0)?;
            // The lanes left until the two sides are equal.
            let (up, left) = match a.wrapping_sub(b) {
                1 => (true, k::Ix::sub(at.rhs, at.lhs)),
                -1 => (false, k::Ix::sub(at.lhs, at.rhs)),
                _ => return Ok(None),
            };
            let behind = k::Ix::add(left.clone(), k::Ix::Const(1));
            let (ends, bound) = match (cond.cmp, up) {
                (l::Cmp::Lt, true) | (l::Cmp::Gt, false) => (true, left),
                (l::Cmp::Le, true) | (l::Cmp::Ge, false) => (true, behind),
                (l::Cmp::Ge, true) | (l::Cmp::Le, false) => (false, left),
                (l::Cmp::Gt, true) | (l::Cmp::Lt, false) => (false, behind),
                _ => return Ok(None),
            };
            bounded = true;
            if ends {
                to = Some(to.map_or(bound.clone(), |to| k::Ix::min(to, bound)));
            } else {
                from = k::Ix::max(from, bound);
            }
        }
        for &val in &mask.vals {
            match self.loc(val)? {
                Loc::Scalar(_) => self.mask_val(&mut alike, val)?,
                Loc::Vector(_) => return Ok(None),
            }
        }
        let lanes = k::Ix::Const(vector.lanes.into());
        Ok(bounded.then(|| (alike, from, to.unwrap_or(lanes))))
    }

    /// A contiguous load of a range of lanes; nearly always it is all of them.
    fn load_some(&mut self, dst: l::ValId, mem: &l::Mem, mask: &l::Mask, other: Option<&l::Opnd>) -> Res<()> {
        let Some((alike, from, to)) = self.range_of(mask)? else {
            return Err("a mask does not select a range of lanes".to_string());
        };
        let t = ty(self.src_ty(dst)?, self.lanes());
        let init = match other {
            Some(other) => self.vector_opnd(other)?,
            None => zero(t.elem),
        };
        let all = if self.on.is_none() { self.all_on(mask)? } else { None };
        let var = self.define_vector(dst)?;
        self.push(k::Stmt::Var { var, init });
        let some = self.inner(|s| {
            let place = s.place(mem)?;
            let loaded = s.value("some", t);
            s.push(k::Stmt::LoadLanes { dst: loaded, place, from, to, other: init });
            s.push(k::Stmt::Set { var, value: k::Opnd::Val(loaded) });
            Ok(())
        })?;
        let some = match alike.is_always() {
            true => some,
            false => vec![k::Stmt::If { mask: alike, then: some, els: vec![] }],
        };
        let Some(all) = all else {
            some.into_iter().for_each(|s| self.push(s));
            return Ok(());
        };
        let then = self.inner(|s| {
            let place = s.place(mem)?;
            let loaded = s.value("whole", t);
            s.push(load(loaded, place));
            s.push(k::Stmt::Set { var, value: k::Opnd::Val(loaded) });
            Ok(())
        })?;
        self.push(k::Stmt::If { mask: all, then, els: some });
        Ok(())
    }

    /// A contiguous store of a range of lanes; nearly always it is all of them.
    fn store_some(
        &mut self,
        value: &l::Opnd,
        mem: &l::Mem,
        mask: &l::Mask,
        (alike, from, to): (k::Mask, k::Ix, k::Ix),
    ) -> Res<()> {
        let all = if self.on.is_none() { self.all_on(mask)? } else { None };
        let k::Opnd::Val(value) = self.whole(value)? else { return Err("a vector is stored as one value".to_string()) };
        let place = self.place(mem)?;
        let mut some = vec![k::Stmt::StoreLanes { place: place.clone(), value, from, to }];
        if !alike.is_always() {
            some = vec![k::Stmt::If { mask: alike, then: some, els: vec![] }];
        }
        match all {
            None => some.into_iter().for_each(|s| self.push(s)),
            Some(mask) => {
                let then = vec![store(place, k::Opnd::Val(value))];
                self.push(k::Stmt::If { mask, then, els: some });
            }
        }
        Ok(())
    }

    /// Stores at the head of a body whose lanes together fill contiguous memory.
    pub(super) fn interleaved<'a>(&self, body: &'a [l::Stmt]) -> Option<Vec<&'a l::Stmt>> {
        let vector = self.vector.filter(|_| self.lane.is_none() && self.out.threads <= 1)?;
        let differ = |s: &l::Stmt| match s {
            l::Stmt::Store { mem, .. } => self.has_vectors(&mem.index) || self.differs(&l::Opnd::Val(mem.base)),
            _ => true,
        };
        let group = edit::stores_in_turn(body, vector.axis, &BTreeSet::new())?;
        (!group.iter().any(|s| differ(s))).then_some(group)
    }

    /// Stores vectors whose elements lie a few apart as vectors of adjacent elements.
    pub(super) fn store_interleaved(&mut self, group: &[&l::Stmt]) -> Res<()> {
        let (mut parts, mut first) = (vec![], None);
        for s in group {
            let l::Stmt::Store { mem, value, site, .. } = s else { return Err("no store".to_string()) };
            let k::Opnd::Val(v) = self.whole(value)? else { return Err("a vector is stored as one value".to_string()) };
            parts.push(v);
            first.get_or_insert((mem, *site));
        }
        let Some((mem, site)) = first else { return Ok(()) };
        let (count, lanes) = (parts.len() as u32, self.lanes());
        let place = self.place(mem)?;
        self.check(mem, &place, count * lanes, &k::Mask::default(), true, site)?;
        let t = self.out.vals[parts[0]].ty;
        for part in 0..count {
            let dst = self.value("turn", t);
            self.push(k::Stmt::Interleave { dst, parts: parts.clone(), part });
            let before = l::Ix::Const(i64::from(part * lanes));
            let place = self.place(&l::Mem { index: l::Ix::add(mem.index.clone(), before), ..mem.clone() })?;
            let on = self.on.take();
            let left = |n| n * k::Ix::Const(count.into()) - k::Ix::Const(i64::from(part * lanes));
            self.on = on.clone().map(left);
            self.push_store(place, k::Opnd::Val(dst));
            self.on = on;
        }
        Ok(())
    }

    fn by_lane(&mut self, stmt: &l::Stmt, dst: Option<l::ValId>) -> Res<()> {
        if let Some(dst) = dst {
            let init = zero(self.src_ty(dst)?);
            let var = self.define_vector(dst)?;
            self.push(k::Stmt::Var { var, init });
        }
        self.lane_loop(stmt, dst)
    }

    /// Runs a statement for each lane; its result goes into the variable of `dst`.
    fn lane_loop(&mut self, stmt: &l::Stmt, dst: Option<l::ValId>) -> Res<()> {
        let vector = self.vector.ok_or("a lane loop is outside a vector loop")?;
        let into = match dst.map(|d| self.loc(d)).transpose()? {
            Some(Loc::Vector(var)) => Some(var),
            _ => None,
        };
        let name = self.names.fresh("l");
        let axis = self.new_axis(name, None);
        let base = self.axes.get(&vector.axis).cloned().ok_or("a vector loop has no axis")?;
        let saved = self.axes.insert(vector.axis, k::Ix::add(base.clone(), k::Ix::Axis(axis)));
        self.lane = Some(k::Ix::Axis(axis));
        let extracted = std::mem::take(&mut self.extracted);
        let body = self.inner(|s| {
            s.scalar_stmt(stmt)?;
            if let (Some(vector), Some(dst)) = (into, dst) {
                let value = s.scalar(&l::Opnd::Val(dst))?;
                s.push(k::Stmt::SetLane { vector, lane: k::Ix::Axis(axis), value });
            }
            Ok(())
        });
        self.extracted = extracted;
        self.lane = None;
        if let Some(ix) = saved {
            self.axes.insert(vector.axis, ix);
        }
        if let (Some(vector), Some(dst)) = (into, dst) {
            self.vals.insert(dst, Loc::Vector(vector));
        }
        let lanes = self.on.clone().unwrap_or(k::Ix::Const(vector.lanes.into()));
        let (lo, hi, step) = (k::Ix::Const(0), lanes, k::Ix::Const(1));
        self.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body: body? });
        Ok(())
    }

    /// The loop in steps of whole vectors, then the iterations left over one by one.
    pub(super) fn vector_loop(&mut self, f: &l::For, lanes: u32) -> Res<()> {
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

        // Partial accumulators, one vector for each way.
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
    pub(super) fn halved(&mut self, hint: &str, op: ScalarOp, mut parts: Vec<k::ValId>) -> Option<k::ValId> {
        while parts.len() > 1 {
            let upper = parts.split_off(parts.len() / 2);
            parts = parts.into_iter().zip(upper).map(|(a, b)| self.both(hint, op, a, b)).collect();
        }
        parts.pop()
    }

    /// `op` of two values of one type.
    pub(super) fn both(&mut self, hint: &str, op: ScalarOp, a: k::ValId, b: k::ValId) -> k::ValId {
        let ty = self.out.vals[a].ty;
        let dst = self.value(hint, ty);
        self.push(k::Stmt::Let { dst, op, ty: ty.elem, args: vec![k::Opnd::Val(a), k::Opnd::Val(b)] });
        dst
    }
}

pub(super) fn load(dst: k::ValId, place: k::Address) -> k::Stmt {
    k::Stmt::Load { dst, place, mask: k::Mask::default(), other: None, order: k::Order::Weak }
}

pub(super) fn store(place: k::Address, value: k::Opnd) -> k::Stmt {
    k::Stmt::Store { place, value, mask: k::Mask::default(), order: k::Order::Weak }
}

/// The step of an expression from lane to lane, also where the lanes together stay within one block of a division:
///
/// ```text
/// k//32 and k%32, for 16 lanes from a multiple of 16   -->   steps 0 and 1
/// ```
fn lane_step(ix: &l::Ix, vector: Vector) -> Option<i64> {
    if !ix.has_axis(vector.axis) {
        return Some(0);
    }
    let of = |ix: &l::Ix| lane_step(ix, vector);
    // A multiple of `room`, which divides `by`, is at least `room` below the next multiple of `by`.
    let in_one_block = |a: &l::Ix, by: &l::Ix| {
        let by = by.as_const().filter(|by| *by > 0)?;
        let first = Facts { axis_divisors: [(vector.axis, vector.multiple)].into(), ..Facts::new() };
        let room = first.divisor(a).min(1 << by.trailing_zeros());
        let step = of(a).filter(|step| *step >= 0)?;
        (step.unsigned_abs().checked_mul(u64::from(vector.lanes) - 1)? < room).then_some(step)
    };
    match ix {
        l::Ix::Axis(_) => Some(1),
        l::Ix::Add(a, b) => of(a)?.checked_add(of(b)?),
        l::Ix::Sub(a, b) => of(a)?.checked_sub(of(b)?),
        l::Ix::Mul(a, b) => match (a.as_const(), b.as_const()) {
            (_, Some(by)) => of(a)?.checked_mul(by),
            (Some(by), _) => of(b)?.checked_mul(by),
            _ => None,
        },
        l::Ix::FloorDiv(a, by) => in_one_block(a, by).map(|_| 0),
        l::Ix::Mod(a, by) => in_one_block(a, by),
        _ => None,
    }
}

/// Returns true if the statements leave the loop they are in; then lanes may leave it at different times.
fn leaves(body: &[l::Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        l::Stmt::If { then, els, .. } => leaves(then) || leaves(els),
        l::Stmt::Break | l::Stmt::Continue => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use l::{AxisId, Ix};

    const AXIS: AxisId = AxisId(0);

    fn by(k: i64) -> Ix {
        Ix::Const(k)
    }

    /// Expressions of the axis and of a constant, with divisions inside of divisions.
    fn expressions() -> Vec<Ix> {
        let k = Ix::Axis(AXIS);
        let mut out = vec![
            k.clone(),
            k.clone() + by(8),
            k.clone() + by(3),
            k.clone() * by(2),
            by(64) - k.clone(),
            k * by(4) + by(32),
        ];
        for divisor in [4, 8, 12, 24, 32] {
            let inner = out[..6].to_vec();
            out.extend(inner.iter().map(|a| Ix::floor_div(a.clone(), by(divisor))));
            out.extend(inner.iter().map(|a| Ix::modulo(a.clone(), by(divisor))));
        }
        let inner = out.clone();
        out.extend(inner.iter().map(|a| Ix::modulo(a.clone(), by(16)) * by(3) + Ix::floor_div(a.clone(), by(16))));
        out
    }

    /// Where lanes are said to be a step apart they are, from every first lane.
    #[test]
    fn lanes_in_one_block_of_a_division_are_a_step_apart() {
        let mut found = 0;
        for ix in expressions() {
            for (lanes, multiple) in [(8, 8), (8, 2), (4, 4), (16, 16), (8, 1)] {
                let vector = Vector { axis: AXIS, lanes, first: None, multiple };
                let Some(step) = lane_step(&ix, vector) else { continue };
                found += u32::from(ix.linear(AXIS).is_none());
                for first in (0..96).step_by(multiple as usize) {
                    let at = |lane: u32| {
                        let k = by(first + i64::from(lane));
                        Poly::expanded(&ix.subst_axes(&mut |_| Some(k.clone()))).as_const().unwrap()
                    };
                    for lane in 1..lanes {
                        let apart = at(lane) - at(0);
                        assert_eq!(apart, i128::from(step) * i128::from(lane), "{ix:?} at {first} + {lane} of {lanes}");
                    }
                }
            }
        }
        assert!(found > 100, "{found} of them are not linear");
    }

    #[test]
    fn a_block_of_a_division_is_as_wide_as_the_lanes_at_least() {
        let vector = Vector { axis: AXIS, lanes: 16, first: None, multiple: 16 };
        let k = Ix::Axis(AXIS);
        for (ix, want) in [
            (Ix::floor_div(k.clone(), by(32)), Some(0)),
            (Ix::modulo(k.clone(), by(32)), Some(1)),
            (Ix::floor_div(k.clone() + by(16), by(48)), Some(0)),
            (Ix::floor_div(k.clone() + by(8), by(32)), None),
            (Ix::floor_div(k.clone() * by(2), by(32)), Some(0)),
            (Ix::floor_div(k.clone(), by(8)), None),
            (Ix::floor_div(k, by(33)), None),
        ] {
            assert_eq!(lane_step(&ix, vector), want, "{ix:?}");
        }
    }
}
