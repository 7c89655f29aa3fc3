//! `windows LOOP by N`: free loops around reductions over windows have these written out, so that vectors run along the positions of
//! the result, and the positions whose windows reach into the padding are split off.
//!
//! ```text
//! for j in 0..n: free                              for j in 0..1: free
//!   local s                                          ... with masks
//!   s = 0.0                                        for j in 0..16: free
//!   for k in 0..3: reduce                            %x0 = load x[j]
//!     %x = load x[j + k - 1]                         %s0 = 0.0 + %x0
//!       where j + k - 1 >= 0 else 0.0     -->        %x1 = load x[j + 1]
//!     s <- s + %x                                    %s1 = %s0 + %x1
//!   store y[j] = s                                   %x2 = load x[j + 2]
//!                                                    %s2 = %s1 + %x2
//!                                                    store y[j + 1] = %s2
//! ```
//!
//! The loop is the outermost of those that stand in each other and hold nothing else; up to N neighbours along the one around the innermost
//! are computed together where no condition tests them, and so are all of a short piece at an edge. Elements that several of them load
//! are loaded once. Each result keeps the order of its sum. Legal for folds of loads and arithmetic over windows of a constant size whose
//! results lie side by side.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::affine::{self, MOST_APART, Stride};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::unroll_windows::{
    EDGES, LEAST_USES, LONGEST_BODY, MANY_ROWS, MOST_GATHERED, MOST_JAMMED, MOST_ROWS, MOST_STATEMENTS, MOST_TAPS,
    OF_TWO_TAPS,
};
use crate::tile::primitives::line::{LoopRef, replace};
use crate::tile::target::Capability;

/// Writes the windows of a nest out.
pub fn apply(kernel: &mut Kernel, ctx: &Context, at: LoopRef, together: u32) -> Result<(), String> {
    if !kernel.open {
        return Err("the launch gives the grid".into());
    }
    if !ctx.target.has(Capability::VectorArithmetic) {
        return Err(format!("{} has no vectors for the positions", ctx.target.name));
    }
    let facts = kernel.facts();
    replace(kernel, at, &mut |kernel, f| Ok(expand(kernel, ctx, &facts, f, Some(together))?.0))
}

pub fn is_fold(s: &Stmt) -> bool {
    matches!(s, Stmt::For(f) if f.kind == LoopKind::Reduce)
}

/// The nest of a loop with its windows written out, `jam` neighbours along the loop around the innermost one together where none of
/// them tests that axis; `None`: a number that is worth it.
pub fn expand(
    kernel: &mut Kernel,
    ctx: &Context,
    facts: &Facts,
    f: &For,
    jam: Option<u32>,
) -> Result<(Vec<Stmt>, u32), &'static str> {
    let chain = edit::free_chain(f);
    let [outer @ .., inner] = &chain[..] else { return Err("it is not a loop") };
    if !f.is_free_unplaced() || !inner.body.iter().any(is_fold) {
        return Err("it holds no free loops, unplaced, around a reduction");
    }
    let taps = taps(&inner.body)?;
    if taps > MOST_TAPS {
        return Err("its windows have many positions");
    }
    let apart = check(kernel, outer, inner, taps)?;
    let mut body = inner.body.clone();
    let Copied { fill, bufs } = copied(kernel, &mut body, inner, &apart);
    let mut flat = vec![];
    flatten(kernel, &body, &mut flat);
    promote(&mut flat, &bufs)?;

    let lanes = flat.iter().filter_map(stored_bytes).max().map_or(1, |b| i64::from(ctx.target.lanes_of(b.into())));
    let elements = flat.iter().filter_map(|s| match s {
        Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => Some(mem.elem.bytes()),
        _ => None,
    });
    let masks = elements.min().zip(ctx.target.vector.masks).is_some_and(|(bytes, least)| bytes >= least.into());
    let columns: Vec<Option<(i64, i64)>> = match const_trip(inner).map(|n| n as i64) {
        Some(extent) => {
            let (lo, hi) = interior(&flat, inner.axis, extent, facts);
            let cut = match masks {
                true if are_near(&flat, inner.axis) => in_vectors(extent, (lo, hi), lanes),
                true => pieces(extent, lo, hi, 1),
                false => pieces(extent, lo, hi, lanes),
            };
            cut.into_iter().map(Some).collect()
        }
        // Whole: how far the interior goes is for a later rule to say.
        None => vec![None],
    };
    // Two loops are cut: where the innermost has no edges, the two around it.
    let edges = tests_axis(&flat, inner.axis);
    let mut cuts = BTreeMap::new();
    for f in outer.iter().rev().take(if edges { 1 } else { 2 }) {
        let Some(n) = const_trip(f) else { continue };
        let (lo, hi) = interior(&flat, f.axis, n as i64, facts);
        let cut = pieces(n as i64, lo, hi, 1);
        if cut.len() > 1 {
            cuts.insert(f.axis, cut);
        }
    }
    let copies = cuts.values().map(Vec::len).product::<usize>().max(1);
    if flat.len() * columns.len() * copies > MOST_STATEMENTS {
        return Err("its body is long");
    }
    let mut facts = facts.clone();
    for f in outer {
        facts.set_axis(f.axis, &f.lo, &f.hi);
    }
    // Neighbours along a row share what they load of the weights, and what their windows have in common. So do rows.
    let jam = match (jam.map(i64::from), outer.last()) {
        (Some(1), _) => 1,
        (Some(_), None) => return Err("there is no loop around the innermost one"),
        (Some(jam), _) if jam > (MOST_STATEMENTS / flat.len().max(1)) as i64 => return Err("its body is long"),
        (Some(jam), _) => jam,
        (None, Some(row)) => {
            // The longest piece along a row decides: all its groups get about as many.
            let longest = cuts
                .get(&row.axis)
                .map_or(const_trip(row).map(|n| n as i64), |cut| cut.iter().map(|(a, b)| b - a).max());
            let fits = 2 * LONGEST_BODY / (taps as i64 * OF_TWO_TAPS);
            match longest {
                Some(n) if !fill.is_empty() && !edges => even(n, fits.clamp(1, MOST_JAMMED)),
                // Threads share the rows where no loop stands around them.
                Some(n) if fill.is_empty() && (outer.len() > 1 || !stands_alone(kernel, f) || n >= MANY_ROWS) => {
                    even_rows(n, i64::from(ctx.target.vector.registers / 4).clamp(1, MOST_ROWS))
                }
                _ => 1,
            }
        }
        _ => 1,
    };
    let nest = Nest { inner, columns, cuts, fill, jam };
    Ok((nest.around(kernel, outer, flat, &facts), jam as u32))
}

/// The loops around unrolled windows.
struct Nest<'a> {
    inner: &'a For,
    /// The pieces of the innermost loop; `None` for the whole of it.
    columns: Vec<Option<(i64, i64)>>,
    /// The pieces of loops around it.
    cuts: BTreeMap<AxisId, Vec<(i64, i64)>>,
    /// Copies what is loaded apart, before the loops of a row.
    fill: Vec<Stmt>,
    /// Iterations of the loop around the innermost one that are computed together, at most.
    jam: i64,
}

impl Nest<'_> {
    /// The loops around a body, cut into their pieces.
    fn around(&self, kernel: &mut Kernel, outer: &[&For], body: Vec<Stmt>, facts: &Facts) -> Vec<Stmt> {
        let Some((f, rest)) = outer.split_first() else {
            let of = |at: &Option<(i64, i64)>| walk::clone_fresh(kernel, &[piece(self.inner, &body, *at, facts)]);
            return self.columns.iter().flat_map(of).collect();
        };
        let before = if rest.len() == 1 { &self.fill[..] } else { &[] };
        let whole = const_trip(f).map(|n| vec![(0, n as i64)]);
        let cut = self.cuts.get(&f.axis).or(whole.as_ref().filter(|_| rest.is_empty() && self.jam > 1));
        let Some(cut) = cut else {
            let inner = self.around(kernel, rest, body, facts);
            return vec![f.around([before, &inner].concat())];
        };
        let mut out = vec![];
        for &at in cut {
            let mut facts = facts.clone();
            facts.set_axis(f.axis, &Ix::Const(0), &Ix::Const(at.1 - at.0));
            let mut part = shifted(&body, f.axis, at);
            edit::decide(&mut part, &facts);
            let length = at.1 - at.0;
            // Where all of a piece are computed together, each has a place of its own, and no condition tests the axis any more.
            let all = const_trip(f).map_or(0, |n| n as i64);
            let short = length <= self.jam && (!self.fill.is_empty() || length * EDGES >= all);
            let jams = rest.is_empty() && (short || !tests_axis(&part, f.axis));
            let together = if jams { self.jam.min(length) } else { 1 };
            // Groups of neighbours, then those that are left over.
            let (groups, left) = (length / together, length % together);
            for (from, n, by) in [(0, groups, together), (groups * together, 1, left)] {
                if n == 0 || by == 0 {
                    continue;
                }
                let of = |i| {
                    let place = Ix::Axis(f.axis) * Ix::Const(by) + Ix::Const(from + i);
                    edit::place_axes(&part, &BTreeMap::from([(f.axis, place)]), &BTreeMap::new())
                };
                let inner = jammed(kernel, (0..by).map(of).collect());
                facts.set_axis(f.axis, &Ix::Const(0), &Ix::Const(n));
                let inner = self.around(kernel, rest, inner, &facts);
                let part = For { hi: Ix::Const(n), body: [before, &inner].concat(), ..(*f).clone() };
                out.extend(walk::clone_fresh(kernel, &[Stmt::For(Box::new(part))]));
            }
        }
        out
    }
}

/// Copies of straight statements, each statement beside its like.
fn jammed(kernel: &mut Kernel, copies: Vec<Vec<Stmt>>) -> Vec<Stmt> {
    let fresh: Vec<Vec<Stmt>> = copies.iter().map(|copy| walk::clone_fresh(kernel, copy)).collect();
    (0..fresh[0].len()).flat_map(|at| fresh.iter().map(move |copy| copy[at].clone())).collect()
}

/// The least size of groups of at most `most` that are as few as can be.
fn even(n: i64, most: i64) -> i64 {
    ceil_div(n.max(1), ceil_div(n.max(1), most))
}

/// True if no loop stands around this one.
fn stands_alone(kernel: &Kernel, f: &For) -> bool {
    kernel.body.iter().any(|s| matches!(s, Stmt::For(own) if own.axis == f.axis))
}

/// The size of groups of at most `most`, and of half as many at least, that leave nothing over; otherwise as few groups as can be.
fn even_rows(n: i64, most: i64) -> i64 {
    (most / 2 + 1..=most).rev().find(|size| n % size == 0).unwrap_or_else(|| even(n, most))
}

/// True if a condition of the body tests an axis.
fn tests_axis(body: &[Stmt], axis: AxisId) -> bool {
    body.iter().filter_map(walk::mask).flat_map(|m| &m.conds).any(|c| c.lhs.has_axis(axis) || c.rhs.has_axis(axis))
}

/// Copies of what neighbours load from places that lie apart: weights, where each channel has its own.
struct Copied {
    /// The statements that make them.
    fill: Vec<Stmt>,
    bufs: BTreeSet<BufId>,
}

/// Takes loads from copies in which neighbours lie side by side: `w[j*9 + k]` from `copy[k, j]`.
fn copied(kernel: &mut Kernel, body: &mut [Stmt], inner: &For, apart: &BTreeSet<ValId>) -> Copied {
    let mut out = Copied { fill: vec![], bufs: BTreeSet::new() };
    copy_within(kernel, body, inner, apart, &mut vec![], &mut out);
    out
}

fn copy_within(
    kernel: &mut Kernel,
    body: &mut [Stmt],
    inner: &For,
    apart: &BTreeSet<ValId>,
    around: &mut Vec<For>,
    out: &mut Copied,
) {
    for s in body {
        if let Stmt::For(f) = s {
            around.push(For { body: vec![], ..(**f).clone() });
            copy_within(kernel, &mut f.body, inner, apart, around, out);
            around.pop();
            continue;
        }
        let Some(dst) = walk::def(s).filter(|v| apart.contains(v)) else { continue };
        let Val { ty, name } = kernel.vals[dst].clone();
        let loops: Vec<(AxisId, Ix)> = around.iter().chain([inner]).map(|f| (f.axis, f.hi.clone())).collect();
        let shape = loops.iter().map(|(_, hi)| hi.as_const().unwrap_or(0) as u64).collect();
        let buf = kernel.bufs.push(Buf::new(name, ty, shape));
        let idx: Vec<Ix> = loops.iter().map(|(axis, _)| Ix::Axis(*axis)).collect();
        let mut fill = vec![s.clone(), Stmt::Write { buf, idx: idx.clone(), value: Opnd::Val(dst) }];
        for (axis, hi) in loops.into_iter().rev() {
            fill = vec![edit::free_loop(axis, hi, fill)];
        }
        out.fill.push(Stmt::Local { buf });
        out.fill.extend(walk::clone_fresh(kernel, &fill));
        out.bufs.insert(buf);
        *s = Stmt::Read { dst, buf, idx };
    }
}

/// The positions that the folds of a body visit.
fn taps(body: &[Stmt]) -> Result<u64, &'static str> {
    let mut all = 1u64;
    for s in body {
        let Stmt::For(f) = s else { continue };
        if f.kind == LoopKind::Serial || f.contraction.is_some() || f.stream.is_some() || f.place != Place::None {
            return Err("its reduction is not over a window");
        }
        let trip = const_trip(f).ok_or("the bounds of its reduction are not constants")?;
        all = all.max(trip.saturating_mul(taps(&f.body)?));
    }
    Ok(all)
}

/// Checks that the body can run for several iterations at once, when it is unrolled. Returns the values that are loaded from places
/// that lie apart and do not change in a row: they are worth a copy.
fn check(kernel: &Kernel, outer: &[&For], inner: &For, taps: u64) -> Result<BTreeSet<ValId>, &'static str> {
    let facts = refs(&inner.body);
    let (mut why, mut near, mut apart) = (None, false, BTreeSet::new());
    let own = |b: &BufId| facts.bufs_defined.contains(b) && kernel.bufs[*b].shape.is_empty();
    let row = match outer {
        [_, .., columns] => const_trip(columns).filter(|_| const_trip(inner).is_some()).unwrap_or(0),
        _ => 0,
    };
    let fixed = |mem: &Mem, mask: &Mask| {
        mask.is_always()
            && mem.index.vals().is_empty()
            && outer.iter().all(|f| !mem.index.has_axis(f.axis))
            && row >= LEAST_USES
    };
    walk::visit(&inner.body, &mut |s| match s {
        Stmt::For(_) | Stmt::Let { .. } | Stmt::Index { .. } | Stmt::Test { .. } => {}
        Stmt::Load { dst, mem, mask, order: Order::Weak, .. } => {
            let by = affine::coef(&mem.index, inner.axis, &facts.vals_defined).and_then(|c| c.as_const());
            match by {
                Some(0) => {}
                Some(by) if by.abs() > 1 && fixed(mem, mask) => _ = apart.insert(*dst),
                Some(-1 | 1..=MOST_APART) => near = true,
                Some(by) if by.abs() <= MOST_APART && taps <= MOST_GATHERED => near = true,
                _ => why = Some("its loads lie apart"),
            }
        }
        Stmt::Store { mem, order: Order::Weak, .. } => {
            if affine::stride(&mem.index, inner.axis, &facts.vals_defined) != Stride::Unit {
                why = Some("its results lie apart");
            }
        }
        Stmt::Local { buf } | Stmt::Read { buf, .. } | Stmt::Write { buf, .. } if own(buf) => {}
        _ => why = Some("it holds more than loads and arithmetic"),
    });
    match why {
        Some(why) => Err(why),
        None if near => Ok(apart),
        None => Err("it loads nothing along its axis"),
    }
}

/// The iterations of the loops in a body, one after another.
fn flatten(kernel: &mut Kernel, body: &[Stmt], out: &mut Vec<Stmt>) {
    for s in body {
        let Stmt::For(f) = s else {
            out.push(s.clone());
            continue;
        };
        for k in 0..const_trip(f).unwrap_or(0) {
            let by = BTreeMap::from([(f.axis, Ix::Const(k as i64))]);
            let copy = edit::place_axes(&f.body, &by, &BTreeMap::new());
            let mut renaming = walk::Renaming::fresh(kernel, &copy);
            renaming.bufs.clear();
            let mut copy = copy;
            renaming.apply(&mut copy);
            flatten(kernel, &copy, out);
        }
    }
}

/// Makes values of what scalar buffers hold, all but the `others`.
fn promote(body: &mut Vec<Stmt>, others: &BTreeSet<BufId>) -> Result<(), &'static str> {
    let mut held: BTreeMap<BufId, Opnd> = BTreeMap::new();
    let mut copies: BTreeMap<ValId, Opnd> = BTreeMap::new();
    let mut out = vec![];
    for s in body.drain(..) {
        match s {
            Stmt::Local { .. } => {}
            Stmt::Write { buf, value, .. } => {
                let value = if let Opnd::Val(v) = value { copies.get(&v).copied().unwrap_or(value) } else { value };
                held.insert(buf, value);
            }
            Stmt::Read { dst, buf, .. } if !others.contains(&buf) => {
                copies.insert(dst, *held.get(&buf).ok_or("it reads what nothing wrote")?);
            }
            s => out.push(s),
        }
    }
    walk::subst_vals(&mut out, &mut |v| copies.get(&v).copied());
    *body = out;
    Ok(())
}

/// Keeps the first of loads of one element, and of reads, and lets the others' users have its value. Nothing is shared behind a store.
fn share_loads(body: &mut Vec<Stmt>, facts: &Facts) {
    let (mut seen, mut copies) = (BTreeMap::new(), BTreeMap::new());
    let short = |ix: &Ix| simplify(ix, facts);
    let end = body.iter().position(|s| matches!(s, Stmt::Store { .. } | Stmt::Write { .. })).unwrap_or(body.len());
    for (at, s) in body[..end].iter().enumerate() {
        let (from, places, conds) = match s {
            Stmt::Load { mem, mask, other: None, order: Order::Weak, .. } if mask.vals.is_empty() => {
                let conds = mask.conds.iter().map(|c| (c.cmp, short(&Ix::sub(c.lhs.clone(), c.rhs.clone()))));
                (Err(mem.base), vec![short(&mem.index)], conds.collect())
            }
            Stmt::Read { buf, idx, .. } => (Ok(*buf), idx.iter().map(short).collect(), vec![]),
            _ => continue,
        };
        let Some(dst) = walk::def(s) else { continue };
        let first = *seen.entry((from, places, conds)).or_insert(dst);
        if first != dst {
            copies.insert(dst, (at, Opnd::Val(first)));
        }
    }
    let gone: BTreeSet<usize> = copies.values().map(|(at, _)| *at).collect();
    let mut at = 0;
    body.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    walk::subst_vals(body, &mut |v| copies.get(&v).map(|(_, first)| *first));
}

fn stored_bytes(s: &Stmt) -> Option<u32> {
    match s {
        Stmt::Store { mem, .. } => Some(mem.elem.bytes() as u32),
        _ => None,
    }
}

/// The iterations of `0..extent` in which all conditions on the axis alone hold; all where there are none such.
fn interior(body: &[Stmt], axis: AxisId, extent: i64, facts: &Facts) -> (i64, i64) {
    let (mut from, mut to) = (0, extent);
    for c in body.iter().filter_map(walk::mask).flat_map(|m| &m.conds) {
        let none = BTreeSet::new();
        let by = |ix| affine::coef(ix, axis, &none).and_then(|c| c.as_const());
        let (Some(l), Some(r)) = (by(&c.lhs), by(&c.rhs)) else { continue };
        let at_zero = Ix::sub(affine::rest(&c.lhs, axis), affine::rest(&c.rhs, axis));
        let (by, Some(at)) = (l - r, simplify(&at_zero, facts).as_const()) else { continue };
        if by <= 0 {
            continue;
        }
        // by*axis + at against 0
        match c.cmp {
            Cmp::Lt => to = to.min(ceil_div(-at, by)),
            Cmp::Le => to = to.min(ceil_div(1 - at, by)),
            Cmp::Ge => from = from.max(ceil_div(-at, by)),
            Cmp::Gt => from = from.max(ceil_div(1 - at, by)),
            _ => {}
        }
    }
    if from < to { (from, to) } else { (0, extent) }
}

fn ceil_div(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

/// Where a loop is cut: before the interior, whole vectors of it, shorter ones, single elements, and after it.
pub fn pieces(extent: i64, lo: i64, hi: i64, lanes: i64) -> Vec<(i64, i64)> {
    let mut out = vec![(0, lo)];
    let (mut at, mut width) = (lo, lanes.max(1));
    while at < hi {
        let to = if width < 4 { hi } else { at + (hi - at) / width * width };
        out.push((at, to));
        (at, width) = (to, width / 2);
    }
    out.push((hi, extent));
    out.retain(|(from, to)| from < to);
    out
}

/// True if neighbouring iterations load neighbours, or elements a few apart: then iterations at an edge are lanes that are masked off.
fn are_near(body: &[Stmt], axis: AxisId) -> bool {
    let defined = refs(body).vals_defined;
    body.iter().all(|s| match s {
        Stmt::Load { mem, .. } => {
            matches!(affine::coef(&mem.index, axis, &defined), Some(Ix::Const(0..=MOST_APART)))
        }
        _ => true,
    })
}

/// Where a loop is cut whose vectors may have lanes that are off: a vector at each edge that has masks, and what is between.
pub fn in_vectors(extent: i64, (lo, hi): (i64, i64), lanes: i64) -> Vec<(i64, i64)> {
    let first = if lo > 0 { lanes.max(lo).min(extent) } else { 0 };
    let last = if hi < extent { (extent - lanes).min(hi).max(first) } else { extent };
    let mut out = vec![(0, first), (first, last), (last, extent)];
    out.retain(|(from, to)| from < to);
    out
}

/// The body with an axis that begins at the start of a piece.
fn shifted(body: &[Stmt], axis: AxisId, at: (i64, i64)) -> Vec<Stmt> {
    let by = BTreeMap::from([(axis, Ix::add(Ix::Axis(axis), Ix::Const(at.0)))]);
    edit::place_axes(body, &by, &BTreeMap::new())
}

/// A piece of the innermost loop, or all of it, without the conditions that are decided there.
fn piece(inner: &For, body: &[Stmt], at: Option<(i64, i64)>, facts: &Facts) -> Stmt {
    let mut facts = facts.clone();
    let hi = at.map_or(inner.hi.clone(), |at| Ix::Const(at.1 - at.0));
    facts.set_axis(inner.axis, &Ix::Const(0), &hi);
    let mut body = at.map_or(body.to_vec(), |at| shifted(body, inner.axis, at));
    edit::decide(&mut body, &facts);
    edit::drop_unused(&mut body);
    share_loads(&mut body, &facts);
    Stmt::For(Box::new(For { hi, body, ..inner.clone() }))
}
