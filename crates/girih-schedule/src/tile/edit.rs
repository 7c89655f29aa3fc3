//! Rewriting statement trees: what the rules of this folder share beyond `loops::walk`.

use std::collections::{BTreeMap, BTreeSet};

use super::affine;
use crate::index::{Facts, Poly, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};

/// The stores at the head of a body that between them store elements side by side, in the order of these, where the next iteration
/// of a loop goes on behind them. `None` where there is no such group.
pub fn stores_in_turn<'a>(body: &'a [Stmt], axis: AxisId, varying: &BTreeSet<ValId>) -> Option<Vec<&'a Stmt>> {
    let of = |s: &'a Stmt| match s {
        Stmt::Store { mem, mask, order: Order::Weak, .. } if mask.is_always() && !matches!(mem.elem.bits(), 2..8) => {
            Some(mem)
        }
        _ => None,
    };
    let first = of(body.first()?)?;
    let Some(Ix::Const(count @ 2..=affine::MOST_APART)) = affine::coef(&first.index, axis, varying) else {
        return None;
    };
    let group = body.get(..count as usize)?;
    let behind = |s: &'a Stmt| {
        let mem = of(s).filter(|mem| (mem.base, mem.elem) == (first.base, first.elem))?;
        let apart = Poly::expanded(&mem.index).minus(&Poly::expanded(&first.index)).as_const()?;
        (!varying.contains(&mem.base)).then_some((apart, s))
    };
    let mut places = group.iter().map(behind).collect::<Option<Vec<_>>>()?;
    places.sort_by_key(|(at, _)| *at);
    let least = places.first()?.0;
    let side_by_side = places.iter().enumerate().all(|(i, (at, _))| *at - least == i as i128);
    side_by_side.then(|| places.into_iter().map(|(_, s)| s).collect())
}

/// Replaces axes in a copy of `body`. `extents` are those of axes that run from 0, used to resolve quotients and
/// remainders afterwards.
pub fn place_axes(body: &[Stmt], by: &BTreeMap<AxisId, Ix>, extents: &BTreeMap<AxisId, i64>) -> Vec<Stmt> {
    let mut copy = body.to_vec();
    walk::map_ixs(&mut copy, &mut |ix| {
        let new = ix.subst_axes(&mut |a| by.get(&a).cloned());
        if new != *ix {
            *ix = affine::tidy(&new, extents);
        }
    });
    copy
}

/// Replaces an axis, and makes all index expressions simple.
pub fn put_axis(body: &mut [Stmt], axis: AxisId, at: &Ix, facts: &Facts) {
    walk::subst_axis(body, axis, at);
    walk::map_ixs(body, &mut |ix| *ix = simplify(ix, facts));
}

/// True if the statement only makes a value (so that it may be dropped if nothing uses it).
pub fn is_pure(s: &Stmt) -> bool {
    matches!(s, Stmt::Let { .. } | Stmt::Index { .. } | Stmt::Test { .. } | Stmt::Read { .. })
        || matches!(s, Stmt::Load { order: Order::Weak, .. })
}

/// Marks the straight-line statements that give the same in all iterations of a loop around them: those that are pure and depend
/// on neither its axis, nor values of `own`, nor buffers of `written`, nor a statement that varies.
pub fn invariant(body: &[Stmt], axis: AxisId, own: &BTreeSet<ValId>, written: &BTreeSet<BufId>) -> Vec<bool> {
    same_in_all(body, axis, own, written, &is_pure)
}

/// The same, but only of the statements for which `moves` is true.
pub fn same_in_all(
    body: &[Stmt],
    axis: AxisId,
    own: &BTreeSet<ValId>,
    written: &BTreeSet<BufId>,
    moves: &dyn Fn(&Stmt) -> bool,
) -> Vec<bool> {
    let mut varying = own.clone();
    let of = |s: &Stmt| {
        let uses = walk::refs_of(s);
        let same = moves(s)
            && !uses.axes_used.contains(&axis)
            && uses.vals_used.is_disjoint(&varying)
            && uses.bufs_read.is_disjoint(written);
        varying.extend(uses.vals_defined.into_iter().filter(|_| !same));
        same
    };
    body.iter().map(of).collect()
}

/// The values of a body that may differ along an axis: all but those computed from values that stay the same in all iterations.
pub fn varying(body: &[Stmt], axis: AxisId) -> BTreeSet<ValId> {
    let effects = walk::effects(body);
    let mut out = BTreeSet::new();
    if effects.ordered || !effects.stores.is_empty() {
        out.extend(body.iter().filter(|s| matches!(s, Stmt::Load { .. })).filter_map(walk::def));
    }
    let same = invariant(body, axis, &out, &effects.bufs_written);
    for (s, _) in body.iter().zip(same).filter(|(_, same)| !same) {
        out.extend(walk::refs_of(s).vals_defined);
    }
    out
}

/// Drops pure statements whose value nobody in the body uses; values do not leave the body they are defined in.
pub fn drop_unused(body: &mut Vec<Stmt>) {
    for s in body.iter_mut() {
        walk::bodies_mut(s).into_iter().for_each(drop_unused);
    }
    let mut used = BTreeSet::new();
    let mut keep = vec![true; body.len()];
    for (at, s) in body.iter().enumerate().rev() {
        keep[at] = !is_pure(s) || walk::def(s).is_none_or(|v| used.contains(&v));
        if keep[at] {
            used.extend(walk::refs_of(s).vals_used);
        }
    }
    let mut at = 0;
    body.retain(|_| {
        at += 1;
        keep[at - 1]
    });
    body.retain(|s| !matches!(s, Stmt::For(f) if f.body.is_empty()));
}

/// Replaces a selection by a known condition with the selected value, and each use of a copy with the original.
pub fn choose(body: &mut [Stmt]) {
    let mut known: BTreeMap<ValId, Opnd> = BTreeMap::new();
    walk::visit_mut(body, &mut |s| {
        let Stmt::Let { dst, op, args } = s else { return };
        let of = |o: &Opnd| match o {
            Opnd::Val(v) => known.get(v).copied().unwrap_or(*o),
            _ => *o,
        };
        let value = match (*op, &args[..]) {
            (ScalarOp::Copy, [value]) => of(value),
            (ScalarOp::Select, [on, a, b]) => match of(on) {
                Opnd::Const { bits, .. } => of(if bits & 1 == 1 { a } else { b }),
                _ => return,
            },
            _ => return,
        };
        known.insert(*dst, value);
        *s = copy_of(*dst, value);
    });
    walk::subst_vals(body, &mut |v| known.get(&v).copied());
}

/// Drops conditions that hold, and what is masked off where one fails.
pub fn decide(body: &mut [Stmt], facts: &Facts) {
    let bit = |on: bool| Opnd::Const { dtype: DType::I1, bits: on.into() };
    let mut known: BTreeMap<ValId, bool> = BTreeMap::new();
    for s in body {
        let mut fails = false;
        if let Some(mask) = walk::mask_mut(s).filter(|m| m.vals.is_empty()) {
            fails = mask.conds.iter().any(|c| facts.decide(c) == Some(false));
            mask.conds.retain(|c| facts.decide(c) != Some(true));
        }
        match s {
            Stmt::Load { dst, mem, other, .. } if fails => {
                *s = copy_of(*dst, other.unwrap_or(Opnd::Const { dtype: mem.elem, bits: 0 }));
            }
            Stmt::Load { mask, other, .. } if mask.is_always() => *other = None,
            Stmt::Test { dst, mask } if fails || mask.is_always() => {
                known.insert(*dst, !fails);
                *s = copy_of(*dst, bit(!fails));
            }
            Stmt::Let { dst, op: ScalarOp::Select, args } => {
                if let [Opnd::Val(c), a, b] = args[..]
                    && let Some(on) = known.get(&c)
                {
                    *s = copy_of(*dst, if *on { a } else { b });
                }
            }
            _ => {}
        }
    }
}

/// True if iterations of a free loop can be lanes that are masked off: it only moves and computes numbers of at least `least` bytes.
pub fn can_be_off(kernel: &Kernel, least: u32, body: &[Stmt]) -> bool {
    let masked = |d: DType| d.bits() >= 8 && d.bytes() >= least.into();
    body.iter().all(|s| match s {
        Stmt::Let { .. } | Stmt::Index { .. } | Stmt::Test { .. } | Stmt::Prefetch { .. } => true,
        Stmt::Load { mem, order: Order::Weak, .. } | Stmt::Store { mem, order: Order::Weak, .. } => masked(mem.elem),
        Stmt::Read { buf, .. } | Stmt::Write { buf, .. } => kernel
            .bufs
            .get(*buf)
            .is_some_and(|b| matches!(b.ty, Ty::Num(d) if masked(d)) && !matches!(b.space, Space::Register { .. })),
        _ => false,
    })
}

/// `dst = value`.
pub fn copy_of(dst: ValId, value: Opnd) -> Stmt {
    Stmt::Let { dst, op: ScalarOp::Copy, args: vec![value] }
}

/// A value where conditions hold, and a constant elsewhere: what stands there is no term of a sum. With the statements that make it.
pub fn padded(kernel: &mut Kernel, conds: Vec<Cond>, value: ValId, name: &str, other: Opnd) -> (ValId, [Stmt; 2]) {
    let ty = kernel.vals[value].ty;
    let on = kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "in".into() });
    let padded = kernel.vals.push(Val { ty, name: name.into() });
    let args = vec![Opnd::Val(on), Opnd::Val(value), other];
    let test = Stmt::Test { dst: on, mask: Mask { conds, vals: vec![] } };
    (padded, [test, Stmt::Let { dst: padded, op: ScalarOp::Select, args }])
}

/// A free loop `for axis in 0..hi` around a body.
pub fn free_loop(axis: AxisId, hi: Ix, body: Vec<Stmt>) -> Stmt {
    loop_with(axis, hi, body, |_| {})
}

/// A loop `for axis in 0..hi` around a body, free but for what `set` says.
pub fn loop_with(axis: AxisId, hi: Ix, body: Vec<Stmt>, set: impl FnOnce(&mut For)) -> Stmt {
    let mut f = For {
        axis,
        lo: Ix::Const(0),
        hi,
        step: Ix::Const(1),
        kind: LoopKind::Free,
        place: Place::None,
        combine: None,
        contraction: None,
        stream: None,
        body,
    };
    set(&mut f);
    Stmt::For(Box::new(f))
}

/// A loop over the blocks of the grid along a dimension.
pub fn block_loop(axis: AxisId, dim: u8, blocks: Ix, body: Vec<Stmt>) -> Stmt {
    loop_with(axis, blocks, body, |f| f.place = Place::Block { dim, group: 0, takers: 0, cluster: 0 })
}

/// The trip count of a loop from 0 in steps of 1 with a constant end.
pub fn const_trip(f: &For) -> Option<u64> {
    match (&f.lo, &f.hi, &f.step) {
        (Ix::Const(0), Ix::Const(n), Ix::Const(1)) if *n >= 0 => Some(*n as u64),
        _ => None,
    }
}

/// An axis for a part of another one's loop, named after it.
pub fn new_axis(kernel: &mut Kernel, like: AxisId, suffix: &str) -> AxisId {
    let name = format!("{}{suffix}", kernel.axes[like].name);
    named_axis(kernel, like, name)
}

/// A new axis in place of `like`, with a name of its own.
pub fn named_axis(kernel: &mut Kernel, like: AxisId, name: String) -> AxisId {
    let from = kernel.axes[like].from.clone();
    let fresh = kernel.axes.push(Axis { name, from });
    kernel.sources.axes.copy(like, fresh);
    fresh
}

/// Perfectly nested free loops, outermost first.
pub fn free_chain(f: &For) -> Vec<&For> {
    let mut out = vec![f];
    let mut at = f;
    while let [Stmt::For(inner)] = &at.body[..] {
        if !inner.is_free_unplaced() {
            break;
        }
        out.push(inner);
        at = inner;
    }
    out
}

/// `if mask: then, else: els`; the mask's truth is a value of that name.
pub fn when(kernel: &mut Kernel, name: &str, mask: Mask, then: Vec<Stmt>, els: Vec<Stmt>) -> Vec<Stmt> {
    let dst = kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: name.to_string() });
    vec![Stmt::Test { dst, mask }, Stmt::If { cond: Opnd::Val(dst), then, els }]
}

/// A load from global memory and the write of what it gave, as one copy.
pub struct Copy<'a> {
    pub mem: &'a Mem,
    pub mask: &'a Mask,
    pub site: SiteId,
    pub buf: BufId,
    pub idx: &'a [Ix],
    pub bytes: u32,
}

impl<'a> Copy<'a> {
    /// The statements as a copy of `lanes` elements at once: `None` if they are something else, `Err` with the reason if the
    /// copy cannot be asynchronous.
    pub fn of(body: &'a [Stmt], lanes: u64) -> Option<Result<Copy<'a>, &'static str>> {
        let [Stmt::Load { dst, mem, mask, other, order: Order::Weak, site }, Stmt::Write { buf, idx, value }] = body
        else {
            return None;
        };
        let bytes = lanes * mem.elem.bytes();
        Some(if *value != Opnd::Val(*dst) {
            Err("it computes what it stores")
        } else if other.is_some_and(|o| !matches!(o, Opnd::Const { bits: 0, .. })) {
            Err("masked elements are something else than 0")
        } else if mem.elem.bits() < 8 || ![4, 8, 16].contains(&bytes) || !mask.vals.is_empty() {
            Err("its elements are not moved 4, 8 or 16 bytes at a time")
        } else {
            Ok(Copy { mem, mask, site: *site, buf: *buf, idx, bytes: bytes as u32 })
        })
    }
}

/// A rule's answer to a statement that it was shown.
pub enum Visit {
    /// Look at the statements inside.
    Into,
    /// Leave it as it is.
    Leave,
    /// Put these in its place, as they are.
    Replace(Vec<Stmt>),
    /// Put these in its place and look at each of them again.
    Again(Vec<Stmt>),
}

/// Shows `f` the statements of a kernel, outer ones first, and returns the changed kernel; `None` when nothing changed.
/// While `f` runs, the kernel it is given has tables but no body.
pub fn rewrite(p: &Kernel, f: &mut dyn FnMut(&mut Kernel, &Stmt) -> Visit) -> Option<Kernel> {
    let mut kernel = p.clone();
    let body = std::mem::take(&mut kernel.body);
    let mut changed = false;
    kernel.body = rewrite_body(body, &mut kernel, f, &mut changed);
    changed.then_some(kernel)
}

fn rewrite_body(
    body: Vec<Stmt>,
    kernel: &mut Kernel,
    f: &mut dyn FnMut(&mut Kernel, &Stmt) -> Visit,
    changed: &mut bool,
) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for mut s in body {
        match f(kernel, &s) {
            Visit::Leave => out.push(s),
            Visit::Into => {
                for b in walk::bodies_mut(&mut s) {
                    let inner = std::mem::take(b);
                    *b = rewrite_body(inner, kernel, f, changed);
                }
                out.push(s);
            }
            Visit::Replace(new) => {
                *changed = true;
                out.extend(new);
            }
            Visit::Again(new) => {
                *changed = true;
                out.extend(rewrite_body(new, kernel, f, changed));
            }
        }
    }
    out
}

/// The statements inside of the loops over blocks and tiles, or all statements if no such loop stands there.
pub fn block_bodies(body: &[Stmt]) -> Vec<&[Stmt]> {
    let tiles = over_tiles(body).into_iter();
    let inner: Vec<&[Stmt]> = body.iter().filter_map(over_blocks).chain(tiles).map(|f| &f.body[..]).collect();
    if inner.is_empty() { vec![body] } else { inner.into_iter().flat_map(block_bodies).collect() }
}

/// The same, to be changed.
pub fn block_bodies_mut(body: &mut Vec<Stmt>) -> Vec<&mut Vec<Stmt>> {
    let tiles = over_tiles(body).map(|f| f.axis);
    if tiles.is_none() && !body.iter().any(|s| over_blocks(s).is_some()) {
        return vec![body];
    }
    let inner = body.iter_mut().filter_map(|s| match s {
        Stmt::For(f) if matches!(f.place, Place::Block { .. }) || Some(f.axis) == tiles => Some(&mut f.body),
        _ => None,
    });
    inner.flat_map(block_bodies_mut).collect()
}

/// The loop that a statement is, where its iterations are blocks.
pub fn over_blocks(s: &Stmt) -> Option<&For> {
    match s {
        Stmt::For(f) if matches!(f.place, Place::Block { .. }) => Some(f),
        _ => None,
    }
}

/// The loop over tiles that a block takes in turn, as the program says: all that a block does but for values, around one loop that runs
/// in order, such as one over the terms of a product. That one is as long for each tile.
///
/// ```text
/// for t in 0..tiles: serial
///   for k in 0..n: serial ...
///   store ..
/// ```
pub fn over_tiles(body: &[Stmt]) -> Option<&For> {
    let mut others = body.iter().filter(|s| !is_pure(s));
    let (Some(Stmt::For(f)), None) = (others.next(), others.next()) else { return None };
    let mut serial = f.body.iter().filter_map(|s| match s {
        Stmt::For(f) if f.kind == LoopKind::Serial => Some(f),
        _ => None,
    });
    let (Some(terms), None) = (serial.next(), serial.next()) else { return None };
    let own = walk::refs(&f.body).vals_defined;
    let alike = !terms.hi.has_axis(f.axis) && !terms.hi.vals().iter().any(|v| own.contains(v));
    let in_turn = f.kind == LoopKind::Serial && f.place == Place::None && f.counts_from_zero();
    let staged = f.body.iter().any(|s| matches!(s, Stmt::Stage { .. }));
    (in_turn && alike && !staged && !walk::effects(&f.body).leaves).then_some(f)
}

/// The statements of [`block_bodies`], each with what is known of the axes of the loops over blocks and tiles around them.
pub fn blocks(kernel: &Kernel) -> Vec<(Facts, &[Stmt])> {
    fn within<'a>(body: &'a [Stmt], facts: Facts, out: &mut Vec<(Facts, &'a [Stmt])>) {
        let before = out.len();
        for f in body.iter().filter_map(over_blocks).chain(over_tiles(body)) {
            let mut facts = facts.clone();
            facts.set_axis(f.axis, &f.lo, &f.hi);
            within(&f.body, facts, out);
        }
        if out.len() == before {
            out.push((facts, body));
        }
    }
    let mut out = vec![];
    within(&kernel.body, kernel.facts(), &mut out);
    out
}

/// A constant that an expression never exceeds, where its form shows one.
pub fn at_most(ix: &Ix) -> Option<i64> {
    match ix {
        Ix::Const(c) => Some(*c),
        Ix::Min(a, b) => match (at_most(a), at_most(b)) {
            (Some(x), Some(y)) => Some(x.min(y)),
            (x, y) => x.or(y),
        },
        Ix::Max(a, b) => Some(at_most(a)?.max(at_most(b)?)),
        _ => None,
    }
}

/// The most iterations a loop in steps of 1 can have, where the form of its bounds shows it: `0..min(32, n)` has 32 at
/// most, and so has the loop from there to 32.
pub fn most_trips(f: &For) -> Option<u64> {
    let lo = match &f.lo {
        Ix::Const(c) => *c,
        Ix::Max(a, _) => a.as_const()?,
        _ => return None,
    };
    u64::try_from(at_most(&f.hi)?.checked_sub(lo)?).ok()
}
