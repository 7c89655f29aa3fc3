//! Statements many lanes at a time; `loops` has the loops around them, and `memory` their accesses under masks.
//!
//! Lane l of a statement is the iteration `axis + l`. A value that is the same in every lane stays one value; a value
//! that differs is a vector; an operation without a vector form runs in a lane loop, which extracts its operands from
//! vectors and inserts its result. A masked access first asks whether every lane is on, which decides nearly always.

mod loops;
mod memory;

use self::loops::leaves;
use super::scalar::zero;
use super::{Loc, Lower, Res, Storage, Vector, ty};
use crate::index::{Facts, Poly};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::num::{DType, ScalarOp};

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
                    Reach::Apart(step)
                        if plain
                            && matches!(other, None | Some(l::Opnd::Const { .. }))
                            && self.in_parts(mem.elem)
                            && self.range_of(mask)?.is_some() =>
                    {
                        self.some_apart(*dst, mem, (mask, other.as_ref()), step)?
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
