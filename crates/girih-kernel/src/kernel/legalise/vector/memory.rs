//! Loads and stores of lanes: under masks, of elements a few apart, and of stores that fill memory together.
//!
//! An access first asks whether every lane is on, or none, or a range of them. Where only the lanes can tell, they go one by one.

use super::{load, store};
use crate::kernel::ir as k;
use crate::kernel::legalise::scalar::zero;
use crate::kernel::legalise::{Loc, Lower, Res, ty};
use crate::loops::ir as l;
use crate::num::DType;
use crate::tile::affine::MOST_APART;
use crate::tile::edit;
use std::collections::BTreeSet;

/// The slope of a side that comes down to the other.
const NEGATED: i64 = -MOST_APART;

impl Lower<'_> {
    /// `whole` when every lane is on, a lane loop otherwise. `dst` becomes a variable that both assign.
    pub(super) fn decide(
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
    pub(super) fn all_or_none(
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
    pub(super) fn apart(
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
    pub(super) fn parts_apart(
        &mut self,
        dst: l::ValId,
        mem: &l::Mem,
        step: u32,
        site: l::SiteId,
    ) -> Res<Vec<k::ValId>> {
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
    pub(super) fn part_places(
        &mut self,
        step: u32,
        mut at: impl FnMut(&mut Self, l::Ix) -> Res<k::Address>,
    ) -> Res<Vec<k::Address>> {
        let apart = i64::from(self.lanes()) - 1;
        (0..i64::from(step)).map(|part| at(self, l::Ix::Const(part * apart))).collect()
    }

    pub(super) fn load_parts(&mut self, t: k::Ty, places: Vec<k::Address>, step: u32) -> Vec<k::ValId> {
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
    pub(super) fn push_load(&mut self, dst: k::ValId, place: k::Address) {
        match self.on.clone() {
            None => self.push(load(dst, place)),
            Some(to) => {
                let (from, other) = (k::Ix::Const(0), zero(self.out.vals[dst].ty.elem));
                self.push(k::Stmt::LoadLanes { dst, place, from, to, other });
            }
        }
    }

    /// A store of the lanes that are on.
    pub(super) fn push_store(&mut self, place: k::Address, value: k::Opnd) {
        match (self.on.clone(), value) {
            (Some(to), k::Opnd::Val(value)) => {
                self.push(k::Stmt::StoreLanes { place, value, from: k::Ix::Const(0), to });
            }
            _ => self.push(store(place, value)),
        }
    }

    /// Returns true if single lanes of vectors of these elements can be loaded and stored without the others.
    pub(super) fn in_parts(&self, elem: DType) -> bool {
        elem.bits() >= 8 && !self.options.check && self.out.threads <= 1
    }

    /// The range of lanes that a mask leaves on, and the rest of the mask, which is the same for all lanes. `None` if
    /// the lanes are not such a range, or if the mask treats all of them alike.
    pub(super) fn range_of(&mut self, mask: &l::Mask) -> Res<Option<(k::Mask, k::Ix, k::Ix)>> {
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
            // The lanes left until the two sides are equal, or one is behind the other.
            let by = a.wrapping_sub(b);
            let (up, left) = match by {
                1..=MOST_APART => (true, k::Ix::sub(at.rhs, at.lhs)),
                NEGATED..=-1 => (false, k::Ix::sub(at.lhs, at.rhs)),
                _ => return Ok(None),
            };
            let lanes = |left| k::Ix::ceil_div(left, k::Ix::Const(by.abs()));
            let (left, behind) = (lanes(left.clone()), lanes(k::Ix::add(left, k::Ix::Const(1))));
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

    /// Loads the lanes that a mask leaves on, which must form a range. Defines `dst` as its substitute, and returns the statements that
    /// overwrite it with what `load` makes of that range, whose end is exclusive.
    fn in_range(
        &mut self,
        dst: l::ValId,
        (mask, other): (&l::Mask, Option<&l::Opnd>),
        load: impl FnOnce(&mut Self, k::Ty, (k::Ix, k::Ix), k::Opnd) -> Res<k::ValId>,
    ) -> Res<(k::ValId, Vec<k::Stmt>)> {
        let Some((alike, from, to)) = self.range_of(mask)? else {
            return Err("a mask does not select a range of lanes".to_string());
        };
        let t = ty(self.src_ty(dst)?, self.lanes());
        let init = match other {
            Some(other) => self.vector_opnd(other)?,
            None => zero(t.elem),
        };
        let var = self.define_vector(dst)?;
        self.push(k::Stmt::Var { var, init });
        let some = self.inner(|s| {
            let loaded = load(s, t, (from, to), init)?;
            s.push(k::Stmt::Set { var, value: k::Opnd::Val(loaded) });
            Ok(())
        })?;
        let some = match alike.is_always() {
            true => some,
            false => vec![k::Stmt::If { mask: alike, then: some, els: vec![] }],
        };
        Ok((var, some))
    }

    /// A contiguous load of a range of lanes; nearly always it is all of them.
    pub(super) fn load_some(
        &mut self,
        dst: l::ValId,
        mem: &l::Mem,
        mask: &l::Mask,
        other: Option<&l::Opnd>,
    ) -> Res<()> {
        let all = if self.on.is_none() { self.all_on(mask)? } else { None };
        let (var, some) = self.in_range(dst, (mask, other), |s, t, (from, to), other| {
            let place = s.place(mem)?;
            let dst = s.value("some", t);
            s.push(k::Stmt::LoadLanes { dst, place, from, to, other });
            Ok(dst)
        })?;
        let Some(all) = all else {
            some.into_iter().for_each(|s| self.push(s));
            return Ok(());
        };
        let t = self.out.vals[var].ty;
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

    /// A load of a range of lanes of elements a few apart: vectors cover the elements of these lanes, and hold the substitute elsewhere.
    pub(super) fn some_apart(
        &mut self,
        dst: l::ValId,
        mem: &l::Mem,
        masked: (&l::Mask, Option<&l::Opnd>),
        step: u32,
    ) -> Res<()> {
        let (_, some) = self.in_range(dst, masked, |s, t, (from, to), other| {
            let places = s.part_places(step, |s, first| {
                s.place(&l::Mem { index: l::Ix::add(mem.index.clone(), first), ..mem.clone() })
            })?;
            let by = || k::Ix::Const(step.into());
            let (first, end) = (from * by(), (to - k::Ix::Const(1)) * by() + k::Ix::Const(1));
            let mut parts = vec![];
            for (part, place) in places.into_iter().enumerate() {
                let before = k::Ix::Const(part as i64 * (i64::from(t.lanes) - 1));
                let (from, to) = (k::Ix::sub(first.clone(), before.clone()), k::Ix::sub(end.clone(), before));
                let dst = s.value("part", t);
                s.push(k::Stmt::LoadLanes { dst, place, from, to, other });
                parts.push(dst);
            }
            let dst = s.value("every", t);
            s.push(k::Stmt::Strided { dst, parts });
            Ok(dst)
        })?;
        some.into_iter().for_each(|s| self.push(s));
        Ok(())
    }

    /// A contiguous store of a range of lanes; nearly always it is all of them.
    pub(super) fn store_some(
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
    pub(in crate::kernel::legalise) fn interleaved<'a>(&self, body: &'a [l::Stmt]) -> Option<Vec<&'a l::Stmt>> {
        let vector = self.vector.filter(|_| self.lane.is_none() && self.out.threads <= 1)?;
        let differ = |s: &l::Stmt| match s {
            l::Stmt::Store { mem, .. } => self.has_vectors(&mem.index) || self.differs(&l::Opnd::Val(mem.base)),
            _ => true,
        };
        let group = edit::stores_in_turn(body, vector.axis, &BTreeSet::new())?;
        (!group.iter().any(|s| differ(s))).then_some(group)
    }

    /// Stores vectors whose elements lie a few apart as vectors of adjacent elements.
    pub(in crate::kernel::legalise) fn store_interleaved(&mut self, group: &[&l::Stmt]) -> Res<()> {
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
}
