//! `stage_read`: an operand of a contraction is copied close to where it is used.
//!
//! ```text
//! for i in 0..128: free                            stage b_pack:
//!   for j in 0..128: free                            for kk in 0..64: for jp in 0..4: for jj in 0..32:
//!     for kk in 0..64: reduce contraction              b_pack[jp, kk, jj] = ext(load B[...] where ... else 0)
//!       %a = load A[...]                           for i: for j: for kk: reduce contraction
//!       %b = load B[...] where ... else 0  -->       acc[i, j] <- ext(%a) * b_pack[j // 32, kk, j % 32]
//!       acc[i, j] <- ext(%a) * ext(%b)
//! ```
//!
//! The copy has the operand converted and its edges filled in. It stands before the nest, inside the loops that the operand depends on.
//! Legal where the operand depends on its own axis and the sum's only, and is computed by weak loads, reads and arithmetic: nothing in
//! a contraction nest stores to memory, so the loads pass no store.

mod edges;
mod shared;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use super::line::{LoopRef, replace};
use super::part::{Part, Reader, Says, Writer};
use crate::base::words::suggestion;
use crate::index::Cond;
use crate::loops::ir::*;
use crate::loops::walk::{self, Refs, refs};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::contraction::{Nest, Operand, nest_around, nest_of};
use crate::tile::edit::{self, free_loop, new_axis};
use crate::tile::heuristics::stage_inputs::MOST_PANELS;
use crate::tile::lines::{LINE, PERIOD};
use crate::tile::tile_nest::{self, Extent};
use edges::Edges;
pub use shared::as_loaded;
pub use windows::overlap;

/// The left or the right operand of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    A,
    B,
}

impl Side {
    pub fn name(self) -> &'static str {
        if self == Side::A { "a" } else { "b" }
    }

    pub fn of(self, nest: &Nest<'_>) -> Result<Operand, &'static str> {
        let (a, b) = nest.operands()?;
        Ok(if self == Side::A { a } else { b })
    }

    /// The operand's axis that is not the sum's, with its extent.
    pub fn own(self, nest: &Nest) -> Extent {
        if self == Side::A { (nest.roles.m, nest.m) } else { (nest.roles.n, nest.n) }
    }
}

impl Part for Side {
    fn read(r: &mut Reader<'_>, _: Says) -> Result<Side, String> {
        r.choice(&[("a", Side::A), ("b", Side::B)])
    }

    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.by(self.name());
    }
}

/// The form of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Row by row, each along the sum.
    Rows,
    /// In panels of this number of rows of the left operand, or of columns of the right one.
    Panels(u32),
    /// The elements that windows which overlap lie on, each once.
    Windows,
    /// In memory that the threads of a block share, along memory; as another type that has all its numbers if one is given.
    Shared(Option<DType>),
}

impl Part for How {
    fn read(r: &mut Reader<'_>, says: Says) -> Result<How, String> {
        const FORMS: [&str; 4] = ["rows", "panels", "windows", "shared"];
        match r.word(&format!("the form of the copy: {}", FORMS.join(", ")))? {
            "rows" => Ok(How::Rows),
            "windows" => Ok(How::Windows),
            "panels" => r.number("how wide a panel is", 1).map(How::Panels),
            "shared" if r.rest.is_empty() => Ok(How::Shared(None)),
            "shared" => DType::read(r, says).map(|held| How::Shared(Some(held))),
            form => Err(format!("unknown form `{form}`; {}", suggestion("forms", form, FORMS.into_iter()))),
        }
    }

    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.by(&match self {
            How::Rows => "rows".into(),
            How::Panels(width) => format!("panels {width}"),
            How::Windows => "windows".into(),
            How::Shared(held) => format!("shared {}", held.map_or("", DType::name)),
        });
    }
}

/// Copies an operand of the contraction whose terms a loop goes through.
pub fn apply(kernel: &mut Kernel, ctx: &Context, sum: LoopRef, side: Side, how: How) -> Result<(), String> {
    let before = kernel.clone();
    let (over, _) = nest_around(&before, sum)?;
    replace(kernel, over, &mut |kernel, f| {
        let nest = nest_of(f).ok_or("it is not a contraction")??;
        let operand = side.of(&nest)?;
        let made = match how {
            How::Shared(held) => shared::stage(kernel, ctx, (&before, &nest), &operand, (side, held))?,
            _ => pack(kernel, (&before, &nest), &operand, side, how)?,
        };
        let mut reduce = nest.reduce.clone();
        // The value that is read takes the role of the one it was computed from.
        if let (Some(value), Some(roles)) = (walk::def(&made.read), &mut reduce.contraction) {
            *(if side == Side::A { &mut roles.a } else { &mut roles.b }) = value;
        }
        drop(reduce.body.splice(made.at..=made.at, [made.read].into_iter().chain(made.then)));
        edit::drop_unused(&mut reduce.body);
        let mut out = vec![Stmt::For(Box::new(reduce))];
        for (depth, f) in nest.free.iter().enumerate().rev() {
            out = vec![f.around(out)];
            if depth == made.depth {
                out.insert(0, made.stage.clone());
            }
        }
        Ok(out)
    })
}

/// A copy of an operand.
struct Staged {
    /// The number of the nest's free loops that the stage stands inside.
    depth: usize,
    stage: Stmt,
    /// The statement of the sum that the read takes the place of.
    at: usize,
    read: Stmt,
    /// The statement that makes the operand of the value that is read, if one is left.
    then: Option<Stmt>,
}

/// The statements that compute an operand.
pub fn computing(nest: &Nest, slice: &[usize]) -> Vec<Stmt> {
    slice.iter().map(|&i| nest.reduce.body[i].clone()).collect()
}

/// Says why an operand's statements cannot run apart from the sum.
pub fn separate(p: &Kernel, nest: &Nest, stmts: &[Stmt], facts: &Refs, side: Side) -> Result<(), String> {
    let (other, role) = if side == Side::A { (nest.roles.n, "n") } else { (nest.roles.m, "m") };
    if facts.axes_used.contains(&other) {
        return Err(format!("it depends on {role}"));
    }
    if facts.bufs_read.contains(&nest.roles.acc) {
        return Err("it reads the accumulator".to_string());
    }
    if let Some(odd) = stmts.iter().find(|s| !edit::is_pure(s)) {
        return Err(match odd {
            Stmt::Load { .. } => "its load is ordered".to_string(),
            _ => "it is not a pure computation".to_string(),
        });
    }
    let staged = walk::stmts(&p.body).any(|s| matches!(s, Stmt::Stage { buf, .. } if facts.bufs_read.contains(buf)));
    if staged { Err("it is staged already".to_string()) } else { Ok(()) }
}

/// The number of the nest's free loops that a copy of an operand stands inside: up to the innermost that it depends on.
pub fn depth(nest: &Nest, facts: &Refs) -> usize {
    let surrounding = nest.free.len() - 2;
    (0..surrounding).rev().find(|&d| facts.axes_used.contains(&nest.free[d].axis)).map_or(0, |d| d + 1)
}

/// The type of an operand's elements.
pub fn element(kernel: &Kernel, value: ValId) -> Result<DType, String> {
    match kernel.vals.get(value).map(|v| v.ty) {
        Some(Ty::Num(dtype)) => Ok(dtype),
        _ => Err("it is an address".to_string()),
    }
}

fn pack(
    kernel: &mut Kernel,
    (p, nest): (&Kernel, &Nest),
    operand: &Operand,
    side: Side,
    how: How,
) -> Result<Staged, String> {
    let stmts = computing(nest, &operand.slice);
    let facts = refs(&stmts);
    separate(p, nest, &stmts, &facts, side)?;
    let (own, extent) = side.own(nest);
    let dtype = element(kernel, operand.value)?;
    let depth = depth(nest, &facts);
    // The read takes the place of the statement that defined the operand.
    let at = operand.slice.last().copied().unwrap_or(0);
    let tag = format!("{}_pack", side.name());
    if how == How::Windows {
        let edges = Edges::of(&p.body, nest, own);
        let unseen = |edge: &Cond| edges.as_ref().is_some_and(|e| e.unseen(edge));
        let slab = windows::slab(kernel, &stmts, (own, extent), (nest.roles.k, nest.k), side == Side::B, &unseen);
        let slab = slab.ok_or("windows of it do not overlap so that one copy is so much smaller")?;
        let buf = kernel.bufs.push(Buf::new(tag, Ty::Num(dtype), slab.shape));
        let renamed = walk::Renaming::fresh(kernel, &slab.body);
        let mut body = slab.body;
        renamed.apply(&mut body);
        let value = Opnd::Val(renamed.vals.get(&operand.value).copied().unwrap_or(operand.value));
        body.push(Stmt::Write { buf, idx: slab.loops.iter().map(|(axis, _)| Ix::Axis(*axis)).collect(), value });
        let body = vec![tile_nest::loops(&slab.loops, body)];
        let read = Stmt::Read { dst: operand.value, buf, idx: slab.idx };
        return Ok(Staged { depth, stage: Stmt::Stage { buf, filled: Filled::Copied, body }, at, read, then: None });
    }
    let (panels, width) = if let How::Panels(width) = how { (true, u64::from(width)) } else { (false, extent) };
    let shape = match extent.div_ceil(width) {
        count if panels => vec![count, rows_of_panel(count, nest.k, width * dtype.bytes()), width],
        _ => vec![extent, nest.k],
    };
    let buf = kernel.bufs.push(Buf::new(tag, Ty::Num(dtype), shape));
    // A part of the operand: `count` panels, or all rows, from the first on.
    let mut fill = |first: u64, count: u64, run: u64| {
        let k = new_axis(kernel, nest.roles.k, "");
        let inner = new_axis(kernel, own, "");
        let over = (panels && count > 1).then(|| new_axis(kernel, own, "p"));
        let panel = over.map_or(Ix::Const(first as i64), Ix::Axis);
        let before = panel.clone() * Ix::Const(width as i64);
        // Runs of memory that are narrower than a panel are read one after another.
        let pieces = narrower(&stmts, own, run).filter(|_| panels).map(|w| (new_axis(kernel, own, "q"), w));
        let last = pieces.map_or(Ix::Axis(inner), |(q, w)| Ix::Axis(q) * Ix::Const(w as i64) + Ix::Axis(inner));
        let position = if before.is_const(0) { last.clone() } else { before + last.clone() };
        let renamed = walk::Renaming::fresh(kernel, &stmts);
        let by = BTreeMap::from([(own, position), (nest.roles.k, Ix::Axis(k))]);
        // An operand that was in panels before is read panel by panel.
        let long = pieces.map_or(run, |(_, w)| w);
        let mut extents = BTreeMap::from([(inner, long as i64), (k, nest.k as i64)]);
        extents.extend(pieces.map(|(q, w)| (q, (run / w) as i64)));
        extents.extend(over.map(|p| (p, count as i64)));
        let mut body = edit::place_axes(&stmts, &by, &extents);
        renamed.apply(&mut body);
        let value = Opnd::Val(renamed.vals.get(&operand.value).copied().unwrap_or(operand.value));
        let idx = if panels { vec![panel, Ix::Axis(k), last] } else { vec![Ix::Axis(inner), Ix::Axis(k)] };
        body.push(Stmt::Write { buf, idx, value });
        let along = |axis, extent: u64, body| free_loop(axis, Ix::Const(extent as i64), body);
        if !panels {
            return along(inner, run, vec![along(k, nest.k, body)]);
        }
        // Rows of memory are read from end to end.
        let mut row = along(inner, long, body);
        if let Some((q, w)) = pieces {
            row = along(q, run / w, vec![row]);
        }
        if let Some(p) = over {
            row = along(p, count, vec![row]);
        }
        along(k, nest.k, vec![row])
    };
    let full = extent / width;
    let body = match (panels, extent % width) {
        (false, _) => vec![fill(0, 1, extent)],
        (true, 0) => vec![fill(0, full, width)],
        // The last panel is not full.
        (true, rest) if full == 0 => vec![fill(0, 1, rest)],
        (true, rest) => vec![fill(0, full, width), fill(full, 1, rest)],
    };
    let stage = Stmt::Stage { buf, filled: Filled::Copied, body };

    let (own, k) = (Ix::Axis(own), Ix::Axis(nest.roles.k));
    let idx = if panels {
        let w = Ix::Const(width as i64);
        let first = if extent > width { Ix::floor_div(own.clone(), w.clone()) } else { Ix::Const(0) };
        let last = if extent > width { Ix::modulo(own, w) } else { own };
        vec![first, k, last]
    } else {
        vec![own, k]
    };
    Ok(Staged { depth, stage, at, read: Stmt::Read { dst: operand.value, buf, idx }, then: None })
}

/// The rows of panels that hold `rows` rows of `bytes` bytes: a line more where a row of all panels, which is written at once, would have its
/// pieces in one place of the first cache, each a part of a line. (1024^3 with the left operand transposed takes 0.64 of the time.)
fn rows_of_panel(panels: u64, rows: u64, bytes: u64) -> u64 {
    let evicted = bytes < LINE && panels > MOST_PANELS && (rows * bytes).is_multiple_of(PERIOD);
    if evicted { rows + LINE.div_ceil(bytes.max(1)) } else { rows }
}

/// The longest piece of an operand that lies side by side in memory along an axis, in elements; elements count that lie at most
/// `apart`.
pub fn piece(kernel: &Kernel, stmts: &[Stmt], (axis, extent): Extent, apart: i64) -> u64 {
    let whole = edit::varying(stmts, axis);
    let places = places(stmts);
    let of = |s: &Stmt| match s {
        Stmt::Load { mem, .. } => {
            let width = affine::panels(&mem.index, axis);
            let in_panel = width.map(|width| affine::in_panel(&mem.index, axis, width));
            let within = width.map(|width| edit::varying(&in_panels(stmts, axis, width), axis));
            let factor =
                affine::coef(in_panel.as_ref().unwrap_or(&mem.index), axis, within.as_ref().unwrap_or(&whole))?;
            let close = (1..=apart).contains(&factor.as_const()?);
            close.then(|| width.and_then(|w| u64::try_from(w).ok()).map_or(extent, |w| extent.min(w)))
        }
        Stmt::Read { dst, .. } if places.contains(dst) => None,
        Stmt::Read { buf, idx, .. } => {
            let along = affine::buf_stride(&kernel.bufs[*buf], idx, axis, &whole) == Stride::Unit;
            along.then_some(extent)
        }
        _ => None,
    };
    stmts.iter().filter_map(of).max().unwrap_or(0)
}

/// The values that only say where loads read.
fn places(stmts: &[Stmt]) -> BTreeSet<ValId> {
    let mut out = BTreeSet::new();
    for s in stmts.iter().rev() {
        match s {
            Stmt::Load { mem, .. } => out.extend(mem.index.vals()),
            _ if walk::def(s).is_some_and(|v| out.contains(&v)) => walk::each_use(s, &mut |v| _ = out.insert(v)),
            _ => {}
        }
    }
    out
}

/// Statements as they stand within one panel of `width` iterations of the axis.
fn in_panels(stmts: &[Stmt], axis: AxisId, width: i64) -> Vec<Stmt> {
    let mut out = stmts.to_vec();
    walk::map_ixs(&mut out, &mut |ix| *ix = affine::in_panel(ix, axis, width));
    out
}

/// The width of the panels that the loads of an operand walk along an axis, where they are narrower than `run`.
fn narrower(stmts: &[Stmt], axis: AxisId, run: u64) -> Option<u64> {
    let width = stmts.iter().find_map(|s| match s {
        Stmt::Load { mem, .. } => affine::panels(&mem.index, axis),
        _ => None,
    })?;
    u64::try_from(width).ok().filter(|w| *w < run && run.is_multiple_of(*w))
}
