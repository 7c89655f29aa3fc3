//! `privatise`: each iteration of a loop gets a buffer of its own for the part of a larger one that only it uses.
//!
//! ```text
//! local v: f32[4, 65536]                           for i in 0..4: free
//! for i in 0..4: free                                local v: f32[1, 65536]
//!   for j in 0..65536: reduce combine max(m)         for j in 0..65536: reduce combine max(m)
//!     v[i, j] = x[i, j]                     -->        v[0, j] = x[i, j]
//!   for k in 0..65536: free                          for k in 0..65536: free
//!     y[i, k] = v[i, k] - m                            y[i, k] = v[i, k] - m
//! ```
//!
//! Legal where the buffer begins in the list of statements that the loop stands in, nothing but the loop uses it, and the same
//! subscript of every access is the loop's axis. The loop is not placed.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{LoopRef, look};
use crate::loops::ir::*;
use crate::loops::walk;

/// The buffers that go into each loop, with the subscript that counts its iterations.
type Own = BTreeMap<AxisId, BTreeMap<BufId, usize>>;

/// Moves all such buffers of these loops.
pub fn apply(kernel: &mut Kernel, loops: &[LoopRef]) -> Result<(), String> {
    let uses = walk::buffer_uses(&kernel.body);
    let (mut own, mut refused, mut seen) = (Own::new(), None, BTreeMap::<AxisId, u32>::new());
    look(kernel, &mut |at, f| {
        *seen.entry(f.axis).or_default() += 1;
        if loops.contains(&at) {
            own.insert(f.axis, parts(f, &uses));
            refused = refused.or((f.place != Place::None).then_some("the loop is placed already"));
        }
        true
    });
    if own.len() < loops.len() || own.keys().any(|axis| seen.get(axis) != Some(&1)) {
        refused = refused.or(Some("the loop is gone, or another one has its axis"));
    }
    if let Some(why) = refused {
        return Err(why.into());
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut moved = BTreeMap::new();
    walk::visit_bodies_mut(&mut body, &mut |list| move_in(list, &own, &mut moved));
    walk::visit_mut(&mut body, &mut |s| shrink(kernel, s, &moved));
    kernel.body = body;
    match moved.is_empty() {
        true => Err("no buffer before it has a part for each of its iterations that only it uses".into()),
        false => Ok(()),
    }
}

/// The buffers that nothing but a loop uses, each with the subscript that is the loop's axis in all accesses. `uses`: the kernel's.
pub fn parts(f: &For, uses: &BTreeMap<BufId, walk::BufUse>) -> BTreeMap<BufId, usize> {
    let inside = walk::buffer_uses(&f.body);
    let axis = Ix::Axis(f.axis);
    let mut subscripts: BTreeMap<BufId, (Vec<bool>, u32)> = BTreeMap::new();
    walk::visit(&f.body, &mut |s| {
        if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s {
            let (own, count) = subscripts.entry(*buf).or_insert_with(|| (vec![true; idx.len()], 0));
            own.iter_mut().zip(idx).for_each(|(own, ix)| *own &= *ix == axis);
            *count += 1;
        }
    });
    let alone = |buf: &BufId, count: u32| {
        let (Some(all), Some(inside)) = (uses.get(buf), inside.get(buf)) else { return false };
        let same = (all.reads, all.writes, all.roles) == (inside.reads, inside.writes, 0);
        all.declared == 1 && inside.declared == 0 && same && inside.reads + inside.writes == count
    };
    let subscripts = subscripts.into_iter().filter(|(buf, (_, count))| alone(buf, *count));
    subscripts.filter_map(|(buf, (own, _))| Some((buf, own.iter().position(|own| *own)?))).collect()
}

/// Moves the declarations of a list into loops of the list behind them.
fn move_in(list: &mut Vec<Stmt>, own: &Own, moved: &mut BTreeMap<BufId, usize>) {
    let taken: BTreeSet<AxisId> = list.iter().filter_map(axis_of).filter(|a| own.contains_key(a)).collect();
    if taken.is_empty() {
        return;
    }
    let mut declared: BTreeMap<AxisId, Vec<Stmt>> = BTreeMap::new();
    let mut out = Vec::with_capacity(list.len());
    for mut s in std::mem::take(list) {
        let into = |buf: &BufId| taken.iter().find_map(|axis| Some((*axis, *own.get(axis)?.get(buf)?)));
        if let Stmt::Local { buf } = &s
            && let Some((axis, at)) = into(buf)
        {
            moved.insert(*buf, at);
            declared.entry(axis).or_default().push(s);
            continue;
        }
        if let Stmt::For(f) = &mut s
            && let Some(declared) = declared.remove(&f.axis)
        {
            drop(f.body.splice(0..0, declared));
        }
        out.push(s);
    }
    *list = out;
}

fn axis_of(s: &Stmt) -> Option<AxisId> {
    if let Stmt::For(f) = s { Some(f.axis) } else { None }
}

/// Makes a buffer that has moved one iteration long.
fn shrink(kernel: &mut Kernel, s: &mut Stmt, moved: &BTreeMap<BufId, usize>) {
    match s {
        Stmt::Local { buf } => {
            if let Some(extent) = moved.get(buf).and_then(|at| kernel.bufs[*buf].shape.get_mut(*at)) {
                *extent = 1;
            }
        }
        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } => {
            if let Some(ix) = moved.get(buf).and_then(|at| idx.get_mut(*at)) {
                *ix = Ix::Const(0);
            }
        }
        _ => {}
    }
}
