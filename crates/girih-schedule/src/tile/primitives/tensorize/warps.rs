//! Products of the matrix unit by the warps of a block.

use std::collections::{BTreeMap, BTreeSet};

use crate::loops::ir::*;
use crate::loops::lanes::of_group;
use crate::loops::matrix::{self, COLS, Operand, TF32};
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::accumulator::{self, Numbering, Tile};
use crate::tile::contraction::Nest;
use crate::tile::edit::{self, new_axis};
use crate::tile::matrix::{Warps, check};
use crate::tile::sharing::Share;
use crate::tile::target::Capability;

/// Gives the products into an accumulator to warps, which each have as many rows and columns of it.
pub fn apply(kernel: &mut Kernel, ctx: &Context, acc: BufId, warps: Warps, numbering: Numbering) -> Result<(), String> {
    if !ctx.target.has(Capability::Products) {
        return Err(format!("{} has no products of warps", ctx.target.name));
    }
    let shape = accumulator::matrix(kernel, acc)?;
    accumulator::nests(kernel, acc)?;
    fits(kernel, ctx, acc, warps)?;
    let [rows, cols] = together(kernel, acc);
    let [r, c] = warps.each(shape);
    let rows = Share { name: "r", threads: 8 * warps.down, each: r, together: rows, apart: 8 * rows };
    let cols = Share { name: "c", threads: 4 * warps.across, each: c, together: 2 * cols, apart: 8 * cols };
    let tile = Tile { acc, shape, rows, cols, numbering, whole: true };
    let tf32 = ctx.knobs.tf32;
    tile.place(kernel, &|tile, kernel, nest| product(tile, kernel, nest, tf32, &BTreeSet::new()))?;
    check(kernel)
}

/// Says why warps do not share the rows and columns of an accumulator as the matrix unit has them.
pub fn fits(kernel: &Kernel, ctx: &Context, acc: BufId, warps: Warps) -> Result<(), String> {
    let [m, n] = accumulator::matrix(kernel, acc)?;
    let least = least_columns(kernel, acc);
    let Warps { down, across } = warps;
    let whole = m.is_multiple_of(16 * down.max(1)) && n.is_multiple_of(least * across.max(1));
    let count = warps.count();
    if !whole || !count.is_power_of_two() || 32 * count > ctx.target.axes.threads.into() {
        return Err(format!("{m} x {n} elements, 16 x {least} at a time, are not shared by {down} x {across} warps"));
    }
    Ok(())
}

/// Columns of an accumulator that a warp has at least.
pub fn least_columns(kernel: &Kernel, acc: BufId) -> u64 {
    COLS * together(kernel, acc)[1]
}

/// Rows and pairs of columns of a thread that lie side by side: bytes across the sum are moved by twos.
fn together(kernel: &Kernel, acc: BufId) -> [u64; 2] {
    bytes_across(kernel, acc).map(|two| if two { 2 } else { 1 })
}

/// Returns true for each operand of the products into an accumulator that is bytes along its rows or columns.
fn bytes_across(kernel: &Kernel, acc: BufId) -> [bool; 2] {
    let mut across = [false; 2];
    operands(kernel, acc, &mut |roles, buf, idx| {
        let bytes = kernel.bufs[buf].element_bytes() == 1;
        for (across, own) in across.iter_mut().zip([&roles.m, &roles.n]) {
            *across |= bytes && idx.last().is_some_and(|ix| own.iter().any(|axis| ix.has_axis(*axis)));
        }
    });
    across
}

/// The buffers that products into an accumulator read, besides it.
pub fn operands(kernel: &Kernel, acc: BufId, each: &mut dyn FnMut(&Contraction, BufId, &[Ix])) {
    for (f, roles) in walk::contractions(&kernel.body).filter(|(_, c)| c.acc == acc) {
        for s in &f.body {
            if let Stmt::Read { buf, idx, .. } = s
                && *buf != acc
            {
                each(roles, *buf, idx);
            }
        }
    }
}

/// Each element's terms, by the thread that has the element; `held` are left operands that lie in registers as sums do.
pub fn product(
    tile: &Tile,
    kernel: &mut Kernel,
    nest: &Nest<'_>,
    tf32: bool,
    held: &BTreeSet<BufId>,
) -> Result<Stmt, String> {
    let roles = nest.roles;
    tile.threads_around(kernel, |kernel, thread| {
        let mut axis = |name: &str, like: AxisId| {
            let from = kernel.axes[like].from.clone();
            let fresh = kernel.axes.push(Axis { name: name.into(), from });
            kernel.sources.axes.copy(like, fresh);
            fresh
        };
        let (r, c) = (axis(tile.rows.name, roles.m), axis(tile.cols.name, roles.n));
        let k = new_axis(kernel, roles.k, "1");
        let own = Ix::Axis;
        let (row, col) = (tile.rows.at(&thread.row, &own(r)), tile.cols.at(&thread.col, &own(c)));
        let mut body = nest.reduce.body.clone();
        let of = left_of(kernel, nest, held);
        let term = of.map_or(own(k), |of| matrix::column_of_term(of, own(k)));
        let by = BTreeMap::from([(roles.m, row), (roles.n, col), (roles.k, term)]);
        if tf32 {
            cut_off(kernel, &mut body);
        }
        if let (Some(of), Ix::Axis(t)) = (of, &thread.number) {
            let [lane, slot] = matrix::held(of, own(k));
            let place = [of_group(*t, 4, lane), own(r), slot];
            walk::visit_mut(&mut body, &mut |s| {
                if let Stmt::Read { buf, idx, .. } = s
                    && *buf != tile.acc
                    && held.contains(buf)
                {
                    *idx = place.to_vec();
                }
            });
        }
        walk::map_ixs(&mut body, &mut |ix| *ix = ix.subst_axes(&mut |axis| by.get(&axis).cloned()));
        let sums = match tile.whole {
            true => tile.acc,
            false => {
                let Buf { ty, name, .. } = &kernel.bufs[tile.acc];
                let own = Buf::new(format!("{name}_r"), *ty, vec![tile.rows.each, tile.cols.each]);
                kernel.bufs.push(own)
            }
        };
        tile.in_registers(&mut body, sums, &tile.slot(&thread, &own(r), &own(c)));
        let matrix = |axis, n: u64, kind, body| {
            edit::loop_with(axis, Ix::Const(n as i64), body, |f| (f.kind, f.place) = (kind, Place::Matrix))
        };
        let terms = matrix(k, nest.k, LoopKind::Reduce, body);
        let all = matrix(c, tile.cols.each, LoopKind::Free, vec![terms]);
        let all = matrix(r, tile.rows.each, LoopKind::Free, vec![all]);
        if tile.whole {
            return Ok(vec![all]);
        }
        let axes = [roles.m, roles.n];
        let mut out = vec![Stmt::Local { buf: sums }];
        out.extend(tile.copied(kernel, &thread, axes, sums, false));
        out.push(all);
        out.extend(tile.copied(kernel, &thread, axes, sums, true));
        Ok(out)
    })
}

/// The type in which the left operand of a product is multiplied, where it is one of these.
fn left_of(kernel: &Kernel, nest: &Nest<'_>, held: &BTreeSet<BufId>) -> Option<Operand> {
    let dtype = nest.reduce.body.iter().find_map(|s| match s {
        Stmt::Read { dst, buf, .. } if *dst == nest.roles.a && held.contains(buf) => Some(kernel.bufs[*buf].ty),
        _ => None,
    })?;
    match dtype {
        Ty::Num(DType::F16) => Some(Operand::F16),
        Ty::Num(DType::BF16) => Some(Operand::BF16),
        Ty::Num(DType::F32 | DType::TF32) => Some(Operand::TF32),
        _ => None,
    }
}

/// Cuts the operands of a product in f32 off as the matrix unit does.
fn cut_off(kernel: &mut Kernel, body: &mut Vec<Stmt>) {
    let Some(at) = body.iter().position(|s| matches!(s, Stmt::Let { op: ScalarOp::Fma { .. }, .. })) else { return };
    let Stmt::Let { args, .. } = &body[at] else { return };
    let operands: Vec<ValId> =
        args.iter().take(2).filter_map(|a| if let Opnd::Val(v) = a { Some(*v) } else { None }).collect();
    let read = |v: &ValId| body.iter().any(|s| matches!(s, Stmt::Read { dst, .. } if dst == v));
    let is_f32 = |v: &ValId| kernel.vals[*v].ty == Ty::Num(DType::F32);
    if operands.len() < 2 || !operands.iter().all(|v| read(v) && is_f32(v)) {
        return;
    }
    let mut made = vec![];
    let mut by = BTreeMap::new();
    for from in operands {
        let name = kernel.vals[from].name.clone();
        let mut val = |ty| kernel.vals.push(Val { ty: Ty::Num(ty), name: name.clone() });
        let (bits, kept, cut) = (val(DType::I32), val(DType::I32), val(DType::F32));
        let mask = Opnd::Const { dtype: DType::I32, bits: TF32 };
        let to = |to| ScalarOp::Bitcast { to };
        made.push(Stmt::Let { dst: bits, op: to(DType::I32), args: vec![Opnd::Val(from)] });
        made.push(Stmt::Let { dst: kept, op: ScalarOp::And, args: vec![Opnd::Val(bits), mask] });
        made.push(Stmt::Let { dst: cut, op: to(DType::F32), args: vec![Opnd::Val(kept)] });
        by.insert(from, cut);
    }
    if let Stmt::Let { args, .. } = &mut body[at] {
        for arg in args.iter_mut().take(2) {
            if let Opnd::Val(v) = arg {
                *v = by[v];
            }
        }
    }
    body.splice(at..at, made);
}
