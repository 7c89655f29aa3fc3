//! Slabs of an array as boxes of a tensor, which TMA copies.
//!
//! In: the body of a stage, which copies element by element. Out: the tensor as TMA sees it, and the place and the extents of
//! the box.
//!
//! ```text
//! for i in 0..64: for kk in 0..32:                         the tensor [512, 3584] of x, strides (3584)
//!   v = load x[ib*229376 + i*3584 + kt*32 + kk]    -->     its box [64, 32] from [ib*64, kt*32]
//!   a_s[i, kk] = v
//! ```
//!
//! A dimension of the tensor is one of the slab, or one along which the slab has one element (a batch). The load's mask limits its
//! extent; without a mask, the surrounding loops and the grid do. TMA writes zeros past the end, as the mask does.
//!
//! A slab whose rows are split is several boxes, which lie one behind the other:
//!
//! ```text
//! for h in 0..2: for k in 0..64: for j in 0..64:           two boxes [64, 64] from [kt*64, jb*128 + h*64]
//!   v = load w[(kt*64 + k)*N + jb*128 + h*64 + j]
//!   b_s[h, k, j] = v
//! ```
//!
//! Invariants: dimensions are outermost first; the elements of the last one lie side by side; extents are over the parameters and
//! the grid, strides over the parameters; the copy written out by [`BoxCopy::body`] has a mask for each dimension, and is the same box again.

use std::collections::BTreeSet;

use super::edit::{const_trip, free_loop, new_axis};
use crate::index::{Facts, Poly};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::DType;

/// A box of a tensor, copied to a buffer.
#[derive(Clone, Debug)]
pub struct BoxCopy {
    pub base: ValId,
    pub elem: DType,
    pub dims: Vec<Dim>,
    /// The axis that counts boxes, where there are several, and how many there are. The buffer's first subscript is theirs.
    pub several: Option<(AxisId, u64)>,
    pub buf: BufId,
    /// From the buffer to the array.
    back: bool,
    dst: ValId,
    site: SiteId,
}

/// A dimension of a tensor, and what the box takes of it.
#[derive(Clone, Debug)]
pub struct Dim {
    /// Elements of the tensor along it.
    pub extent: Ix,
    /// From one of them to the next in memory.
    pub stride: Ix,
    /// Where the box begins.
    pub from: Ix,
    /// Elements of the box.
    pub count: u64,
    /// The subscript of the buffer that counts along it, and an axis of the copy that does.
    own: Option<(usize, AxisId)>,
}

/// A copy as it is written: loops around a load and a write.
struct Written<'a> {
    back: bool,
    loops: Vec<&'a For>,
    mem: &'a Mem,
    mask: &'a Mask,
    dst: ValId,
    site: SiteId,
    buf: BufId,
    idx: &'a [Ix],
}

impl<'a> Written<'a> {
    fn of(body: &'a [Stmt]) -> Result<Written<'a>, String> {
        let mut loops: Vec<&For> = vec![];
        let mut body = body;
        while let [Stmt::For(f)] = body {
            if f.kind != LoopKind::Free || !f.lo.is_const(0) || const_trip(f).is_none() {
                return Err("its loops do not count from 0 to a constant".to_string());
            }
            loops.push(f);
            body = &f.body;
        }
        let (written, value) = match body {
            [Stmt::Load { dst, mem, mask, other, order: Order::Weak, site }, Stmt::Write { buf, idx, value }] => {
                if other.is_some_and(|o| !matches!(o, Opnd::Const { bits: 0, .. })) {
                    return Err("masked elements are something else than 0".to_string());
                }
                (Written { back: false, loops, mem, mask, dst: *dst, site: *site, buf: *buf, idx }, value)
            }
            [Stmt::Read { dst, buf, idx }, Stmt::Store { mem, mask, value, order: Order::Weak, site }] => {
                (Written { back: true, loops, mem, mask, dst: *dst, site: *site, buf: *buf, idx }, value)
            }
            _ => return Err("it does more than copy".to_string()),
        };
        if *value != Opnd::Val(written.dst) {
            return Err("it computes what it stores".to_string());
        }
        if !written.mask.vals.is_empty() {
            return Err("its mask is computed".to_string());
        }
        Ok(written)
    }

    fn trips(&self, axis: AxisId) -> Option<(i128, bool)> {
        let f = self.loops.iter().find(|f| f.axis == axis)?;
        Some((const_trip(f)?.into(), matches!(f.place, Place::Vector { .. })))
    }

    /// The axes that a subscript counts by and their factors, slowest first, where it goes through all of a dimension.
    fn digits(&self, ix: &Ix, extent: u64) -> Option<Vec<(AxisId, i128)>> {
        let poly = Poly::expanded(ix);
        let digit = |(factors, by): &(Vec<Ix>, i128)| match factors[..] {
            [Ix::Axis(a)] => Some((a, *by)),
            _ => None,
        };
        let mut digits = poly.terms.iter().map(digit).collect::<Option<Vec<_>>>()?;
        digits.sort_by_key(|(_, by)| -by);
        let mut next = 1;
        for (axis, by) in digits.iter().rev() {
            if *by != next {
                return None;
            }
            next *= self.trips(*axis)?.0;
        }
        (poly.base == 0 && next == extent.into()).then_some(digits)
    }
}

/// A dimension in the making.
struct Part {
    stride: Poly,
    /// Where the box begins and how far the tensor goes, once that is known.
    bounds: Option<(Poly, Poly)>,
    count: u64,
    /// The subscript, its axes with their factors, slowest first.
    own: Option<(usize, Vec<(AxisId, i128)>)>,
}

fn ix(poly: &Poly) -> Result<Ix, String> {
    poly.to_ix().ok_or_else(|| "its place does not fit 64 bits".to_string())
}

impl BoxCopy {
    /// The body of a stage as a copy of a box. `facts` are what is known of the axes around; the error is the reason why it
    /// is none.
    pub fn of(kernel: &Kernel, facts: &Facts, body: &[Stmt]) -> Result<BoxCopy, String> {
        let written = Written::of(body)?;
        let one = BoxCopy::one(kernel, facts, &written, 0);
        let (Err(_), Some((outer, inner)), Some((first, idx))) =
            (&one, written.loops.split_first(), written.idx.split_first())
        else {
            return one;
        };
        let parts = |n: &u64| *n <= MOST_BOXES && kernel.bufs[written.buf].shape.first() == Some(n);
        let count = const_trip(outer).filter(parts);
        let Some(count) = count.filter(|_| *first == Ix::Axis(outer.axis)) else { return one };
        let mut facts = facts.clone();
        facts.set_axis(outer.axis, &outer.lo, &outer.hi);
        match BoxCopy::one(kernel, &facts, &Written { loops: inner.to_vec(), idx, ..written }, 1) {
            Ok(copy) => Ok(BoxCopy { several: Some((outer.axis, count)), ..copy }),
            Err(_) => one,
        }
    }

    /// A loop that copies boxes to an array, as it is placed: all that is to be known is in its masks.
    pub fn written(kernel: &Kernel, f: &For) -> Result<BoxCopy, String> {
        let copy = BoxCopy::of(kernel, &Facts::new(), &[Stmt::For(Box::new(f.clone()))])?;
        let from_shared = copy.back && kernel.bufs[copy.buf].space == Space::Shared;
        if from_shared { Ok(copy) } else { Err("it does not copy from shared memory".to_string()) }
    }

    /// A copy of one box; the first `others` subscripts of the buffer belong to other boxes.
    fn one(kernel: &Kernel, facts: &Facts, written: &Written<'_>, others: usize) -> Result<BoxCopy, String> {
        let shape = &kernel.bufs[written.buf].shape[others..];
        let mut rest = written.mem.index.clone();
        let mut parts = vec![];
        let mut used = 0;
        for (at, (index, extent)) in written.idx.iter().zip(shape).enumerate() {
            let digits = written.digits(index, *extent).ok_or("it does not fill the buffer in order")?;
            used += digits.len();
            let mut factors = vec![];
            for (axis, _) in &digits {
                let (factor, others) = rest.linear(*axis).ok_or("its elements lie at no fixed distance")?;
                factors.push(Poly::expanded(&factor));
                rest = others;
            }
            let Some(stride) = factors.last().cloned() else { continue };
            let apart = |((_, by), factor): (&(AxisId, i128), &Poly)| {
                stride.times(&Poly::constant(*by)).minus(factor).is_zero()
            };
            if !digits.iter().zip(&factors).all(apart) {
                return Err("its elements lie at no fixed distance".to_string());
            }
            parts.push(Part { stride, bounds: None, count: *extent, own: Some((at + others, digits)) });
        }
        if used != written.loops.len() {
            return Err("it does not fill the buffer in order".to_string());
        }
        let mut copy = Bounded { kernel, facts, written, parts, rest: Poly::expanded(&rest) };
        copy.masks()?;
        copy.loops()?;
        let Bounded { parts, rest, .. } = copy;
        if !rest.is_zero() {
            return Err("where it begins is not a place in a tensor".to_string());
        }
        let dims = parts.iter().map(|p| {
            let (from, extent) = p.bounds.as_ref().ok_or(UNKNOWN)?;
            let own = p.own.as_ref().and_then(|(at, digits)| Some((*at, digits.first()?.0)));
            let (extent, mut stride) = (ix(extent)?, ix(&p.stride)?);
            // Nothing steps along a dimension of one element: its stride may be what TMA takes.
            if extent.is_const(1) && !stride.is_const(1) {
                stride = Ix::Const((UNIT / written.mem.elem.bytes().max(1)) as i64);
            }
            Ok(Dim { extent, stride, from: ix(from)?, count: p.count, own })
        });
        let dims = dims.collect::<Result<Vec<_>, String>>()?;
        let Written { mem, buf, back, dst, site, .. } = *written;
        Ok(BoxCopy { base: mem.base, elem: mem.elem, dims, several: None, buf, back, dst, site })
    }

    /// Boxes of the same tensor.
    pub fn count(&self) -> u64 {
        self.several.map_or(1, |(_, n)| n)
    }

    /// Bytes that a box has.
    pub fn bytes(&self) -> u64 {
        self.dims.iter().fold(self.elem.bytes(), |n, d| n.saturating_mul(d.count))
    }

    /// Refuses several boxes where a box does not end at the end of a swizzle's pattern; `bytes` is the length of a row.
    pub fn can_swizzle(&self, bytes: u64) -> Result<(), String> {
        match self.count() > 1 && !self.bytes().is_multiple_of(8 * bytes) {
            true => Err(format!("boxes of {} bytes with a swizzle do not follow each other", self.bytes())),
            false => Ok(()),
        }
    }

    /// Why TMA cannot copy it, if so.
    pub fn refused(&self, kernel: &Kernel) -> Option<String> {
        let (facts, size) = (kernel.facts(), self.elem.bytes());
        let param = kernel.params.iter().find(|p| p.val == self.base);
        let aligned = param.is_some_and(|p| kernel.open || p.div_by.is_multiple_of(UNIT));
        let (last, outer) = self.dims.split_last()?;
        let row = last.count * size;
        if param.is_none() {
            return Some("its array is not a parameter".to_string());
        }
        if self.elem == DType::I1 || self.elem.bits() < 8 {
            return Some(format!("TMA does not copy {}", self.elem));
        }
        if !last.stride.is_const(1) {
            return Some("the elements of its rows do not lie side by side".to_string());
        }
        if self.dims.len() > MOST_DIMS || self.dims.iter().any(|d| d.count > MOST_ELEMENTS) {
            let counts: Vec<String> = self.dims.iter().map(|d| d.count.to_string()).collect();
            let counts = counts.join(", ");
            return Some(format!(
                "TMA copies boxes of 5 dimensions and 256 elements along each at most, not [{counts}]"
            ));
        }
        if !row.is_multiple_of(UNIT) {
            return Some(format!("its rows have {row} bytes, and TMA copies multiples of {UNIT}"));
        }
        let multiple = |d: &Dim| facts.divisor(&d.stride).saturating_mul(size) >= UNIT;
        if !aligned || !outer.iter().all(multiple) {
            return Some(format!("its array or its rows are not known to begin at multiples of {UNIT} bytes"));
        }
        if !self.bytes().is_multiple_of(ALIGN) {
            return Some(format!("it has {} bytes, and boxes follow each other at multiples of {ALIGN}", self.bytes()));
        }
        // Else an element would be at two places of the tensor.
        let within = |d: &Dim| match (d.stride.as_const(), last.extent.as_const()) {
            (Some(stride), Some(row)) => row <= stride || d.extent.is_const(1),
            _ => true,
        };
        (!outer.iter().all(within)).then(|| "its rows overlap".to_string())
    }

    /// The facts that the launch must test: TMA takes no other tensors.
    pub fn obligations(&self) -> Vec<Obligation> {
        let within = |ix: &Ix, hi| Obligation { ix: ix.clone(), axes: vec![], lo: 1, hi };
        let extents = self.dims.iter().map(|d| within(&d.extent, MOST_EXTENT));
        let most = MOST_STRIDE / self.elem.bytes().max(1) as i64;
        let strides = self.dims.iter().rev().skip(1).map(|d| within(&d.stride, most));
        extents.chain(strides).filter(|o| o.ix.as_const().is_none()).collect()
    }

    /// The copy with its rows split into parts of `part` elements; each part is a box.
    pub fn split(self, kernel: &mut Kernel, part: u64) -> BoxCopy {
        let Some((last, outer)) = self.dims.split_last() else { return self };
        let axis = match last.own {
            Some((_, like)) => new_axis(kernel, like, "p"),
            None => return self,
        };
        let from = Ix::add(last.from.clone(), Ix::mul(Ix::Axis(axis), Ix::Const(part as i64)));
        let moved = |d: &Dim| Dim { own: d.own.map(|(at, axis)| (at + 1, axis)), ..d.clone() };
        let dims = outer.iter().map(moved).chain([Dim { from, count: part, ..moved(last) }]).collect();
        BoxCopy { several: Some((axis, last.count / part)), dims, ..self }
    }

    /// The copy, written out: a loop for each dimension of the box, and a mask for each of the tensor.
    pub fn body(&self, kernel: &mut Kernel) -> Vec<Stmt> {
        let rank = kernel.bufs[self.buf].shape.len();
        let mut idx = vec![Ix::Const(0); rank];
        let mut index = Ix::Const(0);
        let (mut conds, mut loops) = (vec![], vec![]);
        if let Some((axis, count)) = self.several {
            idx[0] = Ix::Axis(axis);
            loops.push((axis, count));
        }
        for dim in &self.dims {
            let mut at = dim.from.clone();
            if let Some((subscript, like)) = dim.own {
                let axis = new_axis(kernel, like, "");
                at = Ix::add(at, Ix::Axis(axis));
                idx[subscript] = Ix::Axis(axis);
                loops.push((axis, dim.count));
            }
            index = Ix::add(index, Ix::mul(at.clone(), dim.stride.clone()));
            conds.push(Cond::new(at, Cmp::Lt, dim.extent.clone()));
        }
        let zero = Opnd::Const { dtype: self.elem, bits: 0 };
        let mem = Mem { base: self.base, index, elem: self.elem };
        let mask = Mask { conds, vals: vec![] };
        let (dst, buf, site, order) = (self.dst, self.buf, self.site, Order::Weak);
        let value = Opnd::Val(dst);
        let body = match self.back {
            false => {
                vec![Stmt::Load { dst, mem, mask, other: Some(zero), order, site }, Stmt::Write { buf, idx, value }]
            }
            true => vec![Stmt::Read { dst, buf, idx }, Stmt::Store { mem, mask, value, order, site }],
        };
        loops.into_iter().rev().fold(body, |body, (axis, count)| vec![free_loop(axis, Ix::Const(count as i64), body)])
    }
}

/// Addresses and strides are multiples of this many bytes.
pub const UNIT: u64 = 16;
/// The place of a box in shared memory is a multiple of this many bytes.
const ALIGN: u64 = 128;
const MOST_EXTENT: i64 = 1 << 32;
/// A stride has fewer bytes than 2^40.
const MOST_STRIDE: i64 = (1 << 40) - 1;
const MOST_DIMS: usize = 5;
/// The most boxes of a stage, as one thread begins them all: the taps of a window of 7 by 7.
const MOST_BOXES: u64 = 49;
const MOST_ELEMENTS: u64 = 256;

/// A copy whose dimensions get bounds.
struct Bounded<'a> {
    kernel: &'a Kernel,
    facts: &'a Facts,
    written: &'a Written<'a>,
    parts: Vec<Part>,
    /// The rest of the place in memory.
    rest: Poly,
}

impl Bounded<'_> {
    /// Bounds as the mask has them.
    fn masks(&mut self) -> Result<(), String> {
        for cond in &self.written.mask.conds {
            if cond.cmp != Cmp::Lt {
                return Err("its mask is more than the ends of its dimensions".to_string());
            }
            let lhs = Poly::expanded(&cond.lhs);
            let (inside, (from, extent)) = self.sides(&lhs.minus(&Poly::expanded(&cond.rhs)))?;
            // Nests that share a grid count blocks from a number: `(bx - 2)*64 + i < 128`.
            let (_, ahead) = lhs.partition(|factors| factors.iter().any(varies));
            let moved = |stride: &Poly| match self.begins(&stride.times(&ahead)) {
                true => (from.plus(&ahead), extent.plus(&ahead)),
                false => (from.clone(), extent.clone()),
            };
            match inside {
                Some(part) if self.parts[part].bounds.is_none() => {
                    let stride = self.parts[part].stride.clone();
                    let (from, extent) = moved(&stride);
                    self.rest = self.rest.minus(&stride.times(&from));
                    self.parts[part].bounds = Some((from, extent));
                }
                Some(_) => return Err("its mask is more than the ends of its dimensions".to_string()),
                None => {
                    let stride = self.distance(&from).ok_or("its mask is more than the ends of its dimensions")?;
                    let (from, extent) = moved(&stride);
                    self.further(stride, from, extent);
                }
            }
        }
        Ok(())
    }

    /// True if the place has all of these terms, each with the same sign and with at least the same factor.
    fn begins(&self, ahead: &Poly) -> bool {
        ahead.terms.iter().all(|(factors, by)| {
            let has = self.rest.terms.iter().find(|(f, _)| f == factors).map_or(0, |(_, has)| *has);
            has.signum() == by.signum() && has.abs() >= by.abs()
        })
    }

    /// Splits a difference that is below 0 into a place in a dimension: the dimension whose axes it has, and where its box begins and
    /// how far it goes.
    fn sides(&self, below: &Poly) -> Result<(Option<usize>, (Poly, Poly)), String> {
        const MORE: &str = "its mask is more than the ends of its dimensions";
        let mut left = below.clone();
        let mut inside = None;
        for (at, part) in self.parts.iter().enumerate() {
            let digits = || part.own.iter().flat_map(|(_, digits)| digits);
            let factor = |axis: AxisId| below.coefficient(&Ix::Axis(axis));
            if digits().all(|(axis, _)| factor(*axis) == 0) {
                continue;
            }
            // A vector is masked as its first element.
            let vector = |axis: AxisId| self.written.trips(axis).is_some_and(|(_, vector)| vector);
            let all = digits().all(|(axis, by)| factor(*axis) == *by || factor(*axis) == 0 && vector(*axis));
            if !all || inside.replace(at).is_some() {
                return Err(MORE.to_string());
            }
            for (axis, _) in digits() {
                let by = Poly::constant(factor(*axis));
                left = left.minus(&Poly::expanded(&Ix::Axis(*axis)).times(&by));
            }
        }
        let own = |ix: &Ix| ix.any_leaf(&mut |l| matches!(l, Ix::Axis(a) if self.written.trips(*a).is_some()));
        if left.terms.iter().flat_map(|(factors, _)| factors).any(own) {
            return Err(MORE.to_string());
        }
        let (from, end) = left.partition(|factors| factors.iter().any(varies));
        // The grid limits blocks: `by < gy`.
        let mut limit = Poly::constant(0);
        limit.terms =
            from.terms.iter().filter(|(factors, by)| *by < 0 && !factors.iter().any(moves)).cloned().collect();
        let (from, extent) = (from.minus(&limit), Poly::constant(0).minus(&end.plus(&limit)));
        let known = |ix: &Ix| !ix.any_leaf(&mut |l| matches!(l, Ix::Val { val, .. } if !self.is_param(*val)));
        if !from.terms.iter().chain(&extent.terms).flat_map(|(factors, _)| factors).all(known) {
            return Err("its mask depends on a value that the kernel computes".to_string());
        }
        Ok((inside, (from, extent)))
    }

    fn is_param(&self, val: ValId) -> bool {
        self.kernel.params.iter().any(|p| p.val == val)
    }

    /// Elements in memory between neighbours along a dimension in which the slab has one element: what the place has `from`
    /// times, a constant, or a number that the launch knows.
    fn distance(&self, from: &Poly) -> Option<Poly> {
        let (factors, by) = from.terms.first()?;
        if let Some((_, has)) = self.rest.terms.iter().find(|(f, _)| f == factors) {
            return (has % by == 0 && has / by > 0).then(|| Poly::constant(has / by));
        }
        let ([leaf], 1) = (&factors[..], *by) else { return None };
        let mut stride = Poly::constant(0);
        for (factors, by) in self.rest.terms.iter().filter(|(factors, _)| factors.contains(leaf)) {
            let mut others = factors.iter().filter(|f| *f != leaf);
            let known = |f: &Ix| matches!(f, Ix::Val { val, .. } if self.is_param(*val));
            if factors.len() != others.clone().count() + 1 || *by <= 0 || !others.all(known) {
                return None;
            }
            let product = factors.iter().filter(|f| *f != leaf).map(Poly::expanded);
            stride = stride.plus(&product.fold(Poly::constant(*by), |all, f| all.times(&f)));
        }
        (!stride.is_zero()).then_some(stride)
    }

    /// A dimension along which the slab has one element.
    fn further(&mut self, stride: Poly, from: Poly, extent: Poly) {
        self.rest = self.rest.minus(&stride.times(&from));
        self.parts.insert(0, Part { stride, bounds: Some((from, extent)), count: 1, own: None });
    }

    /// Bounds of what has no mask, as the loops around have them.
    fn loops(&mut self) -> Result<(), String> {
        let stride = |p: &Part| p.stride.as_const();
        // Beyond a dimension that ends: a batch.
        let outer = self.parts.iter().filter(|p| p.own.is_some()).max_by_key(|p| stride(p)).and_then(|p| {
            let (_, extent) = p.bounds.as_ref()?;
            stride(p)?.checked_mul(extent.as_const()?).filter(|n| *n > 0)
        });
        if let Some(apart) = outer {
            let (from, _) = self.rest.split(apart);
            if !from.is_zero() && !self.parts.iter().any(|p| p.own.is_none()) {
                let last = self.last(&from)?;
                self.further(Poly::constant(apart), from, Poly::constant(last + 1));
            }
        }
        // Strides that the launch knows take the terms that they are factors of. The rest of these terms are batches.
        let open = |parts: &[Part], is_const: bool| -> Vec<usize> {
            let of = |p: &Part| p.bounds.is_none() && stride(p).is_some() == is_const;
            (0..parts.len()).filter(|at| of(&parts[*at])).collect()
        };
        for at in open(&self.parts, false) {
            let (from, rest) = self.rest.split_by_factor(&ix(&self.parts[at].stride)?);
            self.bound(at, from, rest)?;
        }
        while let Some((stride, from)) = self.batch() {
            let extent = self.end(&from)?;
            self.further(stride, from, extent);
        }
        let mut known = open(&self.parts, true);
        known.sort_by_key(|at| stride(&self.parts[*at]).map(|n| -n));
        for at in known {
            let by = stride(&self.parts[at]).filter(|n| *n > 0).ok_or(UNKNOWN)?;
            let (from, rest) = self.rest.split(by);
            self.bound(at, from, rest)?;
        }
        Ok(())
    }

    /// A dimension without a mask, whose boxes begin at `from`; `rest` is what is left of the place in memory.
    fn bound(&mut self, at: usize, from: Poly, rest: Poly) -> Result<(), String> {
        let extent = self.end(&from)?.plus(&Poly::constant(i128::from(self.parts[at].count) - 1));
        // TMA takes no extent of 0, where no iteration copies anything.
        let extent = match extent.range(self.facts).lo {
            1.. => extent,
            _ => Poly::expanded(&Ix::max(ix(&extent)?, Ix::Const(1))),
        };
        (self.rest, self.parts[at].bounds) = (rest, Some((from, extent)));
        Ok(())
    }

    /// A dimension of the place along which the slab has one element, and whose stride the launch knows: the stride, and the element.
    fn batch(&self) -> Option<(Poly, Poly)> {
        let given = |f: &Ix| matches!(f, Ix::Val { val, .. } if self.is_param(*val));
        let split = |factors: &[Ix]| -> (Vec<Ix>, Vec<Ix>) { factors.iter().cloned().partition(given) };
        let is_batch = |(factors, _): &(Vec<Ix>, i128)| {
            let (stride, from) = split(factors);
            !stride.is_empty() && from.iter().any(varies)
        };
        let (own, _) = split(&self.rest.terms.iter().find(|term| is_batch(term))?.0);
        let terms = self.rest.terms.iter().filter(|(factors, _)| split(factors).0 == own);
        let product = |factors: &[Ix], by: i128| {
            factors.iter().map(Poly::expanded).fold(Poly::constant(by), |all, f| all.times(&f))
        };
        let place = terms.map(|(factors, by)| product(&split(factors).1, *by));
        let place = place.fold(Poly::constant(0), |sum, term| sum.plus(&term));
        let apart = place.gcd(place.base.abs());
        Some((product(&own, apart), place.split(apart).0))
    }

    /// The greatest value of an expression that is never negative.
    fn last(&self, from: &Poly) -> Result<i128, String> {
        let range = from.range(self.facts);
        if range.lo >= 0 && range.hi < 1 << 32 { Ok(range.hi) } else { Err(UNKNOWN.to_string()) }
    }

    /// One more than the greatest value of an expression that is never negative: a number, or an expression over the grid and the
    /// parameters if these limit it.
    fn end(&self, from: &Poly) -> Result<Poly, String> {
        let of_grid =
            from.terms.iter().flat_map(|(factors, _)| factors).any(|f| f.any_leaf(&mut |l| matches!(l, Ix::Block(_))));
        match self.last(from) {
            Ok(last) if !of_grid => Ok(Poly::constant(last + 1)),
            _ if from.range(self.facts).lo < 0 => Err(UNKNOWN.to_string()),
            _ => {
                let end = from.to_ix().and_then(|from| end(&from, self.facts, &|val| self.is_param(val)));
                end.map(|end| Poly::expanded(&end)).ok_or_else(|| UNKNOWN.to_string())
            }
        }
    }
}

const UNKNOWN: &str = "how far the array goes is not known";

/// An expression over parameters and the grid that is greater than every value of `ix`, whose parts are never negative.
fn end(ix: &Ix, facts: &Facts, is_param: &dyn Fn(ValId) -> bool) -> Option<Ix> {
    let one = Ix::Const(1);
    let last = |ix: &Ix| Some(Ix::sub(end(ix, facts, is_param)?, Ix::Const(1)));
    let given = |ix: &Ix| ix.vals().into_iter().all(is_param) && !varies(ix);
    let last = match ix {
        Ix::Const(n) => Ix::Const(*n),
        Ix::Val { val, .. } if is_param(*val) => ix.clone(),
        Ix::Block(d) => return Some(Ix::Grid(*d)),
        Ix::Axis(axis) => match facts.ends.get(axis) {
            Some(end) => Ix::sub(last(end)?, one.clone()),
            None => Ix::Const(i64::try_from(facts.axes.get(axis)?.hi).ok()?),
        },
        Ix::Add(a, b) => Ix::add(last(a)?, last(b)?),
        Ix::Mul(a, b) => Ix::mul(last(a)?, last(b)?),
        Ix::Sub(a, b) if facts.range(b).lo >= 0 => last(a)?,
        Ix::FloorDiv(a, b) if given(b) => Ix::floor_div(last(a)?, (**b).clone()),
        Ix::Mod(_, b) => Ix::sub(last(b)?, one.clone()),
        Ix::Min(a, b) => last(a).into_iter().chain(last(b)).reduce(Ix::min)?,
        Ix::Max(a, b) => Ix::max(last(a)?, last(b)?),
        _ => return None,
    };
    Some(Ix::add(last, one))
}

/// True if an expression depends on more than the parameters.
fn varies(ix: &Ix) -> bool {
    moves(ix) || ix.any_leaf(&mut |l| matches!(l, Ix::Grid(_)))
}

/// True if an expression differs from block to block, or from one turn of a loop to the next.
fn moves(ix: &Ix) -> bool {
    ix.any_leaf(&mut |l| matches!(l, Ix::Axis(_) | Ix::Block(_) | Ix::Thread))
}

/// The buffers that are filled by copies of boxes.
pub fn filled(kernel: &Kernel) -> BTreeSet<BufId> {
    let tma = |s: &Stmt| if let Stmt::Stage { buf, filled: Filled::Tma, .. } = s { Some(*buf) } else { None };
    walk::stmts(&kernel.body).filter_map(tma).collect()
}

/// The buffers that TMA fills, or copies from.
pub fn copied(kernel: &Kernel) -> BTreeSet<BufId> {
    let mut out = filled(kernel);
    let stores = walk::stmts(&kernel.body).filter(|s| s.is_placed(Place::TmaStore));
    out.extend(stores.flat_map(|s| walk::effects(std::slice::from_ref(s)).bufs_read));
    out
}
