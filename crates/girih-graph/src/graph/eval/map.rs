//! Index maps: a view where the map is one affine source, otherwise a copy.
//!
//! A copy reads each element from the first source whose mask holds. Where every condition and every coordinate mentions
//! one axis at most, or is a sum of such, both are tables by axis (`address = base + t0[i0] + t1[i1] + ...`); anything
//! else is evaluated element by element.

use std::sync::Arc;

use super::tensor::{Data, View};
use crate::base::id::Id;
use crate::graph::ir::MapSource;
use crate::index::{AxisId, Cond, Facts, Interval, Ix, simplify};
use crate::num::DType;

/// The expression with values for symbols, simplified for positions within the shape.
pub(super) fn placed(ix: &Ix, symbols: &[i64], facts: &Facts) -> Ix {
    let known = ix.replace_leaves(&mut |leaf| match leaf {
        Ix::Val { val, .. } => symbols.get(val.index()).copied().map(Ix::Const),
        _ => None,
    });
    simplify(&known, facts)
}

/// The ranges of a shape's axes.
pub(super) fn axis_facts(shape: &[usize]) -> Facts {
    let mut facts = Facts::new();
    for (d, &n) in shape.iter().enumerate() {
        facts.axes.insert(AxisId(d as u32), Interval::new(0, (n.max(1) as i128) - 1));
    }
    facts
}

/// The value of an expression at a position; an axis it does not have is 0.
pub(super) fn at(ix: &Ix, pos: &[usize]) -> i64 {
    ix.eval(&|leaf| match leaf {
        Ix::Axis(a) => pos.get(a.index()).map_or(0, |p| *p as i64),
        _ => 0,
    })
}

/// `c0*i0 + c1*i1 + ... + rest` with constant coefficients.
pub fn affine(ix: &Ix, rank: usize) -> Option<(Vec<i64>, i64)> {
    let mut coefficients = vec![0; rank];
    let mut rest = ix.clone();
    for axis in ix.axes() {
        let (c, r) = rest.linear(axis)?;
        *coefficients.get_mut(axis.index())? = c.as_const()?;
        rest = r;
    }
    Some((coefficients, rest.as_const()?))
}

/// A source with its expressions placed.
pub(super) struct Source {
    pub from: View,
    pub coords: Vec<Ix>,
    pub when: Vec<Cond>,
}

/// The sources that some position reads, up to the first that is read everywhere.
pub(super) fn sources(map: &[MapSource], args: &[View], symbols: &[i64], shape: &[usize]) -> Vec<Source> {
    let facts = axis_facts(shape);
    let mut out = vec![];
    for s in map {
        let Some(from) = args.get(s.arg as usize) else { continue };
        let conds = s.when.conds.iter();
        let conds = conds.map(|c| Cond::new(placed(&c.lhs, symbols, &facts), c.cmp, placed(&c.rhs, symbols, &facts)));
        let conds: Vec<Cond> = conds.collect();
        let decided: Vec<Option<bool>> = conds.iter().map(|c| facts.decide(c)).collect();
        if decided.contains(&Some(false)) {
            continue;
        }
        let when: Vec<Cond> =
            conds.into_iter().zip(decided).filter(|(_, d)| *d != Some(true)).map(|(c, _)| c).collect();
        let always = when.is_empty();
        let coords = s.coords.iter().map(|c| placed(c, symbols, &facts)).collect();
        out.push(Source { from: from.clone(), coords, when });
        if always {
            break;
        }
    }
    out
}

/// The map as a view of its one source, if it is affine.
pub(super) fn as_view(sources: &[Source], shape: &[usize]) -> Option<View> {
    let [source] = sources else { return None };
    if !source.when.is_empty() || shape.contains(&0) {
        return None;
    }
    let from = &source.from;
    let mut view = View { strides: vec![0; shape.len()], shape: shape.to_vec(), ..from.clone() };
    for ((coord, stride), &extent) in source.coords.iter().zip(&from.strides).zip(&from.shape) {
        let (coefficients, rest) = affine(coord, shape.len())?;
        // Affine, so the least and greatest values are at corners.
        let (mut lo, mut hi) = (i128::from(rest), i128::from(rest));
        for (c, &n) in coefficients.iter().zip(shape) {
            let span = i128::from(*c) * (n as i128 - 1);
            lo += span.min(0);
            hi += span.max(0);
        }
        if lo < 0 || hi >= extent as i128 {
            return None;
        }
        view.offset += stride * rest;
        view.strides.iter_mut().zip(&coefficients).for_each(|(s, c)| *s += stride * c);
    }
    Some(view)
}

/// Tables of one source, by axis: the positions where it is read, and the parts of its address.
struct Tables {
    when: Vec<Option<Vec<bool>>>,
    address: Vec<Option<Vec<i64>>>,
    base: i64,
}

/// The one axis of an expression; `Some(None)` for a constant.
fn lone_axis(axes: &[AxisId]) -> Option<Option<usize>> {
    match axes {
        [] => Some(None),
        [a] => Some(Some(a.index())),
        _ => None,
    }
}

/// A constant, and for each axis the amount that every position along it adds.
type AxisTables = (i64, Vec<(usize, Vec<i64>)>);

/// A coordinate as a constant and a table for each axis that it mentions.
pub(super) fn by_axis(ix: &Ix, shape: &[usize]) -> Option<AxisTables> {
    let along = |d: usize, f: &dyn Fn(i64) -> i64| -> Option<(usize, Vec<i64>)> {
        Some((d, (0..*shape.get(d)? as i64).map(f).collect()))
    };
    match lone_axis(&ix.axes()) {
        Some(None) => return Some((at(ix, &[]), vec![])),
        Some(Some(d)) => {
            let value = |i: i64| ix.eval(&|leaf| if matches!(leaf, Ix::Axis(_)) { i } else { 0 });
            return Some((0, vec![along(d, &value)?]));
        }
        None => {}
    }
    let (coefficients, rest) = affine(ix, shape.len())?;
    let used = coefficients.iter().enumerate().filter(|(_, c)| **c != 0);
    let tables = used.map(|(d, c)| along(d, &|i| c.wrapping_mul(i))).collect::<Option<_>>()?;
    Some((rest, tables))
}

/// Tables for every source; `None` if an expression is not a sum over axes, or a coordinate is not seen to be inside.
fn tables(sources: &[Source], shape: &[usize]) -> Option<Vec<Tables>> {
    // Positions, axis by axis, that some earlier source has not taken.
    let mut left: Vec<Vec<bool>> = shape.iter().map(|&n| vec![true; n]).collect();
    let mut out = vec![];
    for s in sources {
        let mut when: Vec<Option<Vec<bool>>> = vec![None; shape.len()];
        let mut allowed = left.clone();
        for c in &s.when {
            let mut axes = c.lhs.axes();
            axes.extend(c.rhs.axes());
            axes.sort_unstable();
            axes.dedup();
            let d = lone_axis(&axes)??;
            let n = *shape.get(d)?;
            let slot = when.get_mut(d)?;
            let table = slot.get_or_insert_with(|| vec![true; n]);
            for (i, t) in table.iter_mut().enumerate() {
                *t &= c.eval(&|leaf| if matches!(leaf, Ix::Axis(_)) { i as i64 } else { 0 });
            }
        }
        for (a, w) in allowed.iter_mut().zip(&when) {
            if let Some(w) = w {
                a.iter_mut().zip(w).for_each(|(a, w)| *a &= *w);
            }
        }
        let mut address: Vec<Option<Vec<i64>>> = vec![None; shape.len()];
        let mut base = s.from.offset;
        for ((coord, stride), &extent) in s.coords.iter().zip(&s.from.strides).zip(&s.from.shape) {
            let (rest, parts) = by_axis(coord, shape)?;
            let (mut lo, mut hi) = (i128::from(rest), i128::from(rest));
            for (d, table) in &parts {
                let inside = || table.iter().zip(&allowed[*d]).filter(|(_, a)| **a).map(|(t, _)| i128::from(*t));
                lo += inside().min().unwrap_or(0);
                hi += inside().max().unwrap_or(0);
            }
            let empty = allowed.iter().any(|a| !a.contains(&true));
            if (lo < 0 || hi >= extent as i128) && !empty {
                return None;
            }
            base = base.wrapping_add(stride.wrapping_mul(rest));
            for (d, table) in parts {
                let slot = address.get_mut(d)?.get_or_insert_with(|| vec![0; table.len()]);
                slot.iter_mut().zip(&table).for_each(|(s, t)| *s = s.wrapping_add(stride.wrapping_mul(*t)));
            }
        }
        // The next sources do not get the positions that this source takes, if one axis decides.
        if when.iter().flatten().count() == 1
            && let Some((d, Some(w))) = when.iter().enumerate().find(|(_, w)| w.is_some())
        {
            left[d].iter_mut().zip(w).for_each(|(l, w)| *l &= !*w);
        }
        out.push(Tables { when, address, base });
    }
    Some(out)
}

/// The map's elements.
///
/// # Errors
/// A sentence, when a coordinate lies outside its tensor or no source's mask holds.
pub(super) fn copy(dtype: DType, sources: &[Source], shape: &[usize]) -> Result<Data, String> {
    if shape.contains(&0) {
        return Ok(Data::of_bits(dtype, vec![]));
    }
    let Some(first) = sources.first() else { return Err("it reads no source".into()) };
    macro_rules! by_type {
        ($variant:ident, $t:ty) => {{
            let mut from: Vec<&[$t]> = vec![];
            for s in sources {
                let Data::$variant(v) = &s.from.data else { return Err("its sources differ in type".into()) };
                from.push(&v[..]);
            }
            Ok(Data::$variant(Arc::new(elements(&from, sources, shape)?)))
        }};
    }
    match &first.from.data {
        Data::F32(_) => by_type!(F32, f32),
        Data::F64(_) => by_type!(F64, f64),
        Data::Bits(_) => by_type!(Bits, u64),
    }
}

fn elements<T: Copy>(from: &[&[T]], sources: &[Source], shape: &[usize]) -> Result<Vec<T>, String> {
    let mut out = Vec::with_capacity(shape.iter().product());
    let Some(tables) = tables(sources, shape) else {
        every_position(shape, &mut |pos| {
            out.push(one(from, sources, pos)?);
            Ok(())
        })?;
        return Ok(out);
    };
    let (inner, outer) = match shape.split_last() {
        Some((n, outer)) => (*n, outer),
        None => (1, shape),
    };
    let last = outer.len();
    every_position(outer, &mut |pos| {
        // The sources that this row may read, each with its start.
        let mut active: Vec<(&[T], i64, &Tables)> = vec![];
        for (data, t) in from.iter().zip(&tables) {
            let holds = |(d, p): (usize, &usize)| t.when[d].as_ref().is_none_or(|w| w[*p]);
            if pos.iter().enumerate().all(holds) {
                let part = |(d, p): (usize, &usize)| t.address[d].as_ref().map_or(0, |a| a[*p]);
                let start = pos.iter().enumerate().map(part).fold(t.base, i64::wrapping_add);
                active.push((data, start, t));
            }
        }
        for i in 0..inner {
            let holds = |t: &Tables| t.when.get(last).and_then(Option::as_ref).is_none_or(|w| w[i]);
            let read = active.iter().find(|(.., t)| holds(t)).and_then(|(data, start, t)| {
                let step = t.address.get(last).and_then(Option::as_ref).map_or(0, |a| a[i]);
                data.get(start.wrapping_add(step) as usize)
            });
            out.push(*read.ok_or("at some position it reads no source, or reads outside its tensor")?);
        }
        Ok(())
    })?;
    Ok(out)
}

/// One element, from the definition.
fn one<T: Copy>(from: &[&[T]], sources: &[Source], pos: &[usize]) -> Result<T, String> {
    for (data, s) in from.iter().zip(sources) {
        let holds = |c: &Cond| c.cmp.holds(at(&c.lhs, pos), at(&c.rhs, pos));
        if !s.when.iter().all(holds) {
            continue;
        }
        let mut address = s.from.offset;
        for (d, ((coord, stride), &extent)) in s.coords.iter().zip(&s.from.strides).zip(&s.from.shape).enumerate() {
            let c = at(coord, pos);
            if c < 0 || c >= extent as i64 {
                return Err(format!("it reads position {c} along axis {d}, whose extent is {extent}, at {pos:?}"));
            }
            address += stride * c;
        }
        return data.get(address as usize).copied().ok_or_else(|| "it reads outside its tensor".into());
    }
    Err(format!("it reads no source at {pos:?}"))
}

/// Every position of a shape in row-major order.
pub(super) fn every_position(shape: &[usize], f: &mut dyn FnMut(&[usize]) -> Result<(), String>) -> Result<(), String> {
    if shape.contains(&0) {
        return Ok(());
    }
    let mut pos = vec![0; shape.len()];
    loop {
        f(&pos)?;
        let mut d = shape.len();
        loop {
            if d == 0 {
                return Ok(());
            }
            d -= 1;
            pos[d] += 1;
            if pos[d] < shape[d] {
                break;
            }
            pos[d] = 0;
        }
    }
}
