//! `bind` of a reduction to neighbouring lanes of a warp, which exchange their partial results.
//!
//! ```text
//! local s_parts: f32[16, 8]                          local s_parts: f32[128] private
//! for p in 0..16: free: for i in 0..8: free          for t in 0..128: free thread
//!   s_part = ...                                       s_part = ...
//!   s_parts[p, i] = s_part                             s_parts[t] = s_part
//! for i_1 in 0..8: free                       -->    for t_1 in 0..128: free thread
//!   s = 0.0                                            s = 0.0
//!   for p_1 in 0..16: reduce combine add(s)            for p_1 in 0..16: reduce lanes combine add(s) from 0.0 x 16
//!     s <- s_parts[p_1, i_1] + s                         s <- s_parts[t_1//16*16 + p_1] + s
//!   y[i_1] = s                                         y[t_1//16] = s where t_1%16 == 0
//! ```
//!
//! Each lane has one of the partial results that `rfactor` makes, and the first lane of a row stores. Legal where the reduction
//! folds the elements that one nest before writes, one in each iteration, and where the iterations of that nest fill whole warps.

use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::lanes::{Folded, of_group};
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::numbered::Numbered;
use crate::tile::primitives::line::{LoopRef, loop_at};

pub fn apply(kernel: &mut Kernel, ctx: &Context, at: LoopRef) -> Result<(), String> {
    let seen = kernel.clone();
    let target = loop_at(&seen, at)?;
    let [warp, most] = [ctx.target.axes.lanes, ctx.target.axes.threads].map(u64::from);
    let lanes = const_trip(target).filter(|n| n.is_power_of_two() && (2..=warp).contains(n));
    let lanes = lanes.ok_or_else(|| format!("expected a power of two of iterations, from 2 to {warp}"))?;
    if target.kind != LoopKind::Reduce || target.place != Place::None || target.combine.is_none() {
        return Err("it is placed already, or is not a reduction that may be reassociated".into());
    }
    let Some(Stmt::Read { buf, idx, .. }) = target.body.first() else { return Err(OTHER.into()) };
    let (mut facts, list) = edit::blocks(&seen).into_iter().find(|(_, list)| has(list, *buf)).ok_or(NOT_OWN)?;
    if seen.open && std::ptr::eq(list, &seen.body[..]) {
        return Err(NOT_OWN.into());
    }
    let uses = |s: &&Stmt| walk::buffer_uses(std::slice::from_ref(*s)).contains_key(buf);
    let nests: Vec<&Stmt> = list.iter().filter(|s| !matches!(s, Stmt::Local { .. })).filter(uses).collect();
    let [Stmt::For(first), Stmt::For(second)] = nests[..] else { return Err(OTHER.into()) };
    let rows = Rows::of(first, second, target, *buf, idx).ok_or(OTHER)?;
    let count = rows.pairs.iter().try_fold(lanes, |n, (_, f)| n.checked_mul(const_trip(f)?)).unwrap_or(u64::MAX);
    if count > most || !count.is_multiple_of(warp) {
        return Err(format!("{count} threads do not fill whole warps, or are more than a block has: {most}"));
    }
    let scalar = |buf: &BufId| seen.bufs[*buf].shape.is_empty();
    let can_be = |s: &Stmt| match s {
        Stmt::For(f) => std::ptr::eq(&**f, target),
        Stmt::Local { buf } | Stmt::Write { buf, .. } => scalar(buf),
        s => edit::is_pure(s) || matches!(s, Stmt::Store { order: Order::Weak, .. }),
    };
    if !rows.second.iter().all(can_be) {
        return Err("more is done with it than arithmetic and stores".into());
    }
    let b = &mut kernel.bufs[*buf];
    (b.shape, b.space) = (vec![count], Space::Private);
    let [one, other] = [(); 2].map(|()| kernel.axes.push(Axis { name: "t".into(), from: None }));
    let size = Ix::Const(lanes as i64);
    let lane = |thread: AxisId| Ix::modulo(Ix::Axis(thread), size.clone());

    let mut each = rows.first.to_vec();
    walk::visit_mut(&mut each, &mut |s| {
        if let Stmt::Write { buf: to, idx, .. } = s
            && to == buf
        {
            *idx = vec![Ix::Axis(one)];
        }
    });
    walk::subst_axis(&mut each, rows.lane, &lane(one));
    let mut whole = rows.second.to_vec();
    let stores = Mask { conds: vec![Cond::new(lane(other), Cmp::Eq, Ix::Const(0))], vals: vec![] };
    for s in &mut whole {
        match s {
            Stmt::Store { mask, .. } => *mask = mask.and(&stores),
            Stmt::For(f) => {
                f.place = Place::Lanes;
                f.combine.iter_mut().for_each(|combine| combine.ways = lanes as u32);
                if let Some(Stmt::Read { idx, .. }) = f.body.first_mut() {
                    *idx = vec![of_group(other, lanes as i64, Ix::Axis(f.axis))];
                }
                Folded::of(other, f)?;
            }
            _ => {}
        }
    }
    let (firsts, seconds): (Vec<&For>, Vec<&For>) = rows.pairs.iter().copied().unzip();
    let mut made = [(one, firsts, each), (other, seconds, whole)].into_iter().map(|(thread, loops, mut body)| {
        facts.set_axis(thread, &Ix::Const(0), &Ix::Const(count as i64));
        let row = simplify(&Ix::floor_div(Ix::Axis(thread), size.clone()), &facts);
        Numbered::new(loops, &facts).place(&mut body, &row, &facts);
        edit::loop_with(thread, Ix::Const(count as i64), body, |f| f.place = Place::Thread)
    });
    for list in edit::block_bodies_mut(&mut kernel.body).into_iter().filter(|list| has(list, *buf)) {
        let nests = [first.axis, second.axis];
        for s in list.iter_mut().filter(|s| matches!(s, Stmt::For(f) if nests.contains(&f.axis))) {
            *s = made.next().ok_or(OTHER)?;
        }
    }
    Ok(())
}

const OTHER: &str = "it does more than fold what a nest before has written, an element in each iteration";
const NOT_OWN: &str = "what it folds is not a block's own";

fn has(list: &[Stmt], buf: BufId) -> bool {
    list.iter().any(|s| matches!(s, Stmt::Local { buf: own } if *own == buf))
}

/// Two nests of free loops: one writes an element of a buffer in each iteration, the other folds those along one of its loops.
struct Rows<'a> {
    /// The statements of an iteration.
    first: &'a [Stmt],
    second: &'a [Stmt],
    /// The loop of the first nest along which the second one folds.
    lane: AxisId,
    /// The other loops of the first nest, each with the loop of the second one that counts the same, in the second one's order.
    pairs: Vec<(&'a For, &'a For)>,
}

impl<'a> Rows<'a> {
    fn of(first: &'a For, second: &'a For, target: &For, buf: BufId, read: &[Ix]) -> Option<Rows<'a>> {
        let [firsts, seconds] = [first, second].map(edit::free_chain);
        let (inner, second) = (&firsts.last()?.body[..], &seconds.last()?.body[..]);
        let mut written = inner.iter().filter_map(|s| match s {
            Stmt::Write { buf: to, idx, .. } if *to == buf => Some(idx),
            _ => None,
        });
        let (Some(written), None) = (written.next(), written.next()) else { return None };
        let all = first.is_free_unplaced();
        let uses = walk::buffer_uses(inner).get(&buf).is_some_and(|u| u.reads == 0);
        let of = |axis: AxisId| {
            let at = read.iter().position(|ix| *ix == Ix::Axis(axis))?;
            firsts.iter().find(|f| written.get(at) == Some(&Ix::Axis(f.axis))).copied()
        };
        let lane = of(target.axis).filter(|f| const_trip(f) == const_trip(target))?.axis;
        let pair = |f: &&'a For| {
            of(f.axis).filter(|own| const_trip(own).is_some() && const_trip(own) == const_trip(f)).map(|own| (own, *f))
        };
        let pairs: Vec<_> = seconds.iter().map(pair).collect::<Option<_>>()?;
        let whole = pairs.len() + 1 == firsts.len() && firsts.len() == written.len() && written.len() == read.len();
        (whole && all && uses).then_some(Rows { first: inner, second, lane, pairs })
    }
}
