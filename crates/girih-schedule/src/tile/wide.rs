//! Accesses of several elements at once, as a thread of a GPU makes them.
//!
//! ```text
//! load x[row*K + k1*4 + v] where k1*4 + v < K        for v in 0..4: one access, where K is a multiple of 4 and x begins at
//!                                                    a multiple of 16 bytes
//! ```
//!
//! Such an access is aligned to its size, and its elements are masked alike.

use std::collections::{BTreeMap, BTreeSet};

use super::affine::{self, Stride};
use super::numbered::Numbered;
use super::primitives::hoist;
use super::primitives::split::Pieces;
use super::{Context, edit};
use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk;

/// How many of `extent` elements along an axis a load or store of global memory can take at once: 1 or a power of two. The
/// axis counts from 0; `varying` are the values that may depend on it, everything else in the index stays as it is.
pub fn lanes(
    kernel: &Kernel,
    ctx: &Context,
    access: &Stmt,
    axis: AxisId,
    extent: u64,
    varying: &BTreeSet<ValId>,
) -> u64 {
    let (Stmt::Load { mem, mask, order: Order::Weak, .. } | Stmt::Store { mem, mask, order: Order::Weak, .. }) = access
    else {
        return 1;
    };
    let varies = |ix: &Ix| ix.any_leaf(&mut |leaf| matches!(leaf, Ix::Val { val, .. } if varying.contains(val)));
    let conds = || mask.conds.iter().flat_map(|c| [&c.lhs, &c.rhs]);
    let other = matches!(access, Stmt::Load { other: Some(Opnd::Val(v)), .. } if varying.contains(v));
    if varies(&mem.index) || conds().any(varies) || mask.vals.iter().any(|v| varying.contains(v)) || other {
        return 1;
    }
    let widest = u64::from(ctx.target.vector.bytes);
    let (bytes, facts) = (mem.elem.bytes(), kernel.facts());
    let aligned = kernel.params.iter().find(|p| p.val == mem.base).map_or(1, |p| match kernel.open {
        // Arrays of a model start at multiples of the widest access.
        true => widest,
        false => p.div_by,
    });
    if mem.elem.bits() < 8 || affine::stride(&mem.index, axis, &BTreeSet::new()) != Stride::Unit {
        return 1;
    }
    let fits = |lanes: &u64| {
        lanes * bytes <= widest
            && extent.is_multiple_of(*lanes)
            && aligned.is_multiple_of(lanes * bytes)
            && is_multiple(&mem.index, axis, *lanes, &facts)
            && mask.conds.iter().all(|c| alike(c, axis, *lanes, &facts))
    };
    [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

/// The same of an access of memory that the threads of a block share, which starts at a multiple of the widest access.
pub fn shared_lanes(kernel: &Kernel, ctx: &Context, access: &Stmt, axis: AxisId, extent: u64) -> u64 {
    let (Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. }) = access else { return 1 };
    let b = &kernel.bufs[*buf];
    if b.space != Space::Shared || !matches!(b.ty, Ty::Num(d) if d.bits() >= 8) {
        return 1;
    }
    let (widest, facts) = (u64::from(ctx.target.vector.bytes), kernel.facts());
    let fits = |lanes: &u64| {
        let idx: Vec<Ix> = idx.iter().map(|ix| of_group(ix, axis, *lanes, &facts)).collect();
        let whole = lanes * b.element_bytes() <= widest && extent.is_multiple_of(*lanes);
        let along = || affine::buf_stride(b, &idx, axis, &BTreeSet::new()) == Stride::Unit;
        whole && along() && is_multiple(&Ix::row_major(&idx, &b.shape), axis, *lanes, &facts)
    };
    [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

/// An expression for `lanes` iterations that begin at a multiple of `lanes`: no quotient or remainder by a multiple of `lanes`
/// changes within them.
pub fn of_group(ix: &Ix, axis: AxisId, lanes: u64, facts: &Facts) -> Ix {
    let Some((x, n)) = ix.operands() else { return ix.clone() };
    let first = |x: &Ix| x.subst_axes(&mut |a| (a == axis).then_some(Ix::Const(0)));
    let whole = |x: &Ix, n: &Ix| {
        let by_lanes = n.as_const().is_some_and(|n| n > 0 && (n as u64).is_multiple_of(lanes));
        let unit = affine::stride(x, axis, &BTreeSet::new()) == Stride::Unit;
        by_lanes && unit && facts.divisor(&first(x)) >= lanes
    };
    match ix {
        Ix::FloorDiv(..) if whole(x, n) => Ix::floor_div(first(x), n.clone()),
        Ix::Mod(..) if whole(x, n) => Ix::add(Ix::modulo(first(x), n.clone()), Ix::Axis(axis)),
        _ => ix.with_operands(of_group(x, axis, lanes, facts), of_group(n, axis, lanes, facts)),
    }
}

/// True if an expression is a multiple of `lanes` wherever the axis is.
fn is_multiple(ix: &Ix, axis: AxisId, lanes: u64, facts: &Facts) -> bool {
    let mut facts = facts.clone();
    facts.axis_divisors.insert(axis, lanes);
    facts.divisor(ix) >= lanes
}

/// True if a condition holds for all or for none of the `lanes` elements that begin at a multiple of `lanes`.
fn alike(cond: &Cond, axis: AxisId, lanes: u64, facts: &Facts) -> bool {
    let (left, right) = (cond.lhs.has_axis(axis), cond.rhs.has_axis(axis));
    let unit = || affine::stride(&cond.lhs, axis, &BTreeSet::new()) == Stride::Unit;
    let multiples = || [&cond.lhs, &cond.rhs].into_iter().all(|ix| is_multiple(ix, axis, lanes, facts));
    !right && (!left || cond.cmp == Cmp::Lt && unit() && multiples())
}

/// A loop that moves all its elements at once: they are masked as the first of them.
pub fn at_once(axis: AxisId, lanes: u64, mut body: Vec<Stmt>) -> Stmt {
    for mask in body.iter_mut().filter_map(walk::mask_mut) {
        *mask = mask.replace_leaves(&mut |leaf| (*leaf == Ix::Axis(axis)).then_some(Ix::Const(0)));
        mask.conds.iter_mut().for_each(|c| c.lhs = simplify(&c.lhs, &Facts::new()));
    }
    let place = Place::Vector { lanes: lanes as u32 };
    edit::loop_with(axis, Ix::Const(lanes as i64), body, |f| f.place = place)
}

/// A loop over groups of `lanes` iterations, around the result of `inner` for a group's axis and body.
pub fn in_groups(kernel: &mut Kernel, f: &For, lanes: u64, inner: impl FnOnce(AxisId, Vec<Stmt>) -> Vec<Stmt>) -> For {
    if edit::const_trip(f).is_none() || lanes == 1 {
        return f.clone();
    }
    let (group, lane) = (edit::new_axis(kernel, f.axis, "1"), edit::new_axis(kernel, f.axis, "2"));
    let pieces = Pieces::of(f, lanes as i64);
    let by = BTreeMap::from([(f.axis, pieces.at(group, lane))]);
    let body = edit::place_axes(&f.body, &by, &BTreeMap::from([(lane, lanes as i64)]));
    For { axis: group, hi: pieces.count(&Facts::new()), body: inner(lane, body), ..f.clone() }
}

/// The iterations of perfectly nested loops under one number, and the body of each. Iterations of the innermost loop that one
/// access takes together count as one if `enough` accepts the number that is left, which is `None` if it is not known.
pub fn numbered(
    kernel: &mut Kernel,
    ctx: &Context,
    chain: &[&For],
    facts: &Facts,
    enough: &dyn Fn(Option<i64>) -> bool,
) -> Option<(Numbered, Vec<Stmt>)> {
    let (innermost, outer) = chain.split_last()?;
    let whole = Numbered::new(chain.iter().copied(), facts);
    let lanes = of_body(kernel, ctx, innermost);
    if lanes == 1 || !enough(whole.total.as_const().map(|n| n / lanes as i64)) {
        return Some((whole, innermost.body.clone()));
    }
    let alike = hoist::alike(innermost);
    let groups = in_groups(kernel, innermost, lanes, |lane, mut body| {
        let own = body.split_off(alike);
        body.push(edit::loop_with(lane, Ix::Const(lanes as i64), own, |f| f.place = Place::Unroll));
        body
    });
    let numbered = Numbered::new(outer.iter().copied().chain([&groups]), facts);
    Some((numbered, groups.body))
}

/// How many elements along the innermost loop of a nest one thread may do at once: those that all stores of its body, and
/// all loads that take several, take together. 1 where there is no gain.
pub fn of_body(kernel: &Kernel, ctx: &Context, f: &For) -> u64 {
    let Some(extent) = edit::const_trip(f) else { return 1 };
    if f.body.iter().any(|s| !walk::bodies(s).is_empty()) {
        return 1;
    }
    let varying = walk::refs(&f.body[hoist::alike(f)..]).vals_defined;
    let of = |s: &Stmt| lanes(kernel, ctx, s, f.axis, extent, &varying);
    let of_tile = |s: &Stmt| matches!(s, Stmt::Write { buf, .. } if !kernel.bufs[*buf].shape.is_empty());
    let tiles = f.body.iter().filter(|s| of_tile(s)).map(|s| shared_lanes(kernel, ctx, s, f.axis, extent));
    let stores = f.body.iter().filter(|s| matches!(s, Stmt::Store { .. })).map(of).chain(tiles);
    // A load of wider elements takes fewer at once; one that takes them one by one in any case does not count.
    let loads = f.body.iter().filter(|s| matches!(s, Stmt::Load { .. })).map(of).filter(|n| *n > 1);
    stores.min().map_or(1, |n| loads.fold(n, u64::min))
}
