//! The part of a product that a processor's matrix unit computes (AMX): whole tiles of it, 32 x 32 sums at a time.

use super::registers::{At, within};
use crate::loops::amx::{AmxProduct, AmxTerms, SIDE};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::contraction::{Nest, parts};
use crate::tile::edit::{self, new_axis};
use crate::tile::target::MatrixUnit;
use std::collections::BTreeMap;

/// Sums along a side of what is computed at a time: two tiles.
const MOST: u32 = 2 * SIDE as u32;

/// Rows and terms of the nest that are whole tiles.
pub struct Whole {
    pub rows: u64,
    pub terms: u64,
}

/// How much of the nest is tiles; `None` where the machine has no such unit, or the operands do not lie as it has them.
pub fn whole(kernel: &Kernel, ctx: &Context, nest: &Nest) -> Option<Whole> {
    let units = [MatrixUnit::FloatTiles, MatrixUnit::IntegerTiles];
    if !ctx.knobs.tiles || !units.iter().any(|unit| ctx.target.matrix_units.contains(unit)) {
        return None;
    }
    let whole = |n: u64| n - n % SIDE;
    let (rows, terms) = (whole(nest.m), whole(nest.k));
    if rows == 0 || terms == 0 || nest.n == 0 || !nest.n.is_multiple_of(SIDE) {
        return None;
    }
    let mut copy = kernel.clone();
    let (row, col) = (At { first: 0, outer: None, size: MOST }, At { first: 0, outer: None, size: MOST });
    let Stmt::For(tried) = product(&mut copy, nest, [&row, &col], [SIDE, SIDE, terms]) else { return None };
    let unit = match AmxProduct::of(&copy, &tried).ok()?.of {
        AmxTerms::Bf16 => MatrixUnit::FloatTiles,
        AmxTerms::U8S8 => MatrixUnit::IntegerTiles,
    };
    ctx.target.matrix_units.contains(&unit).then_some(Whole { rows, terms })
}

/// The products of whole tiles.
pub fn products(kernel: &mut Kernel, nest: &Nest, whole: &Whole) -> Vec<Stmt> {
    let mut out = vec![];
    for (first_col, cols, count) in in_tiles(nest.n) {
        let j1 = (count > 1).then(|| new_axis(kernel, nest.roles.n, "1"));
        let mut column = vec![];
        for (first_row, rows, count) in in_tiles(whole.rows) {
            let i1 = (count > 1).then(|| new_axis(kernel, nest.roles.m, "1"));
            let row = At { first: first_row, outer: i1, size: rows };
            let col = At { first: first_col, outer: j1, size: cols };
            let made = product(kernel, nest, [&row, &col], [rows.into(), cols.into(), whole.terms]);
            column.extend(within(i1, count, vec![made]));
        }
        out.extend(within(j1, count, column));
    }
    out
}

fn in_tiles(extent: u64) -> impl Iterator<Item = (u64, u32, u64)> {
    parts(extent, MOST, SIDE as u32).into_iter().filter(|(.., count)| *count > 0)
}

/// The product of some rows and columns, as loops that are placed on the unit.
fn product(kernel: &mut Kernel, nest: &Nest, [row, col]: [&At; 2], [rows, cols, terms]: [u64; 3]) -> Stmt {
    let (mut sum, roles) = nest.fresh_reduce(kernel);
    let [i, j] = [roles.m, roles.n].map(|axis| new_axis(kernel, axis, "2"));
    let by = [(roles.m, row.of(&Ix::Axis(i))), (roles.n, col.of(&Ix::Axis(j)))];
    let extents = BTreeMap::from([(i, rows as i64), (j, cols as i64)]);
    (sum.hi, sum.place, sum.contraction) = (Ix::Const(terms as i64), Place::Matrix, None);
    sum.body = edit::place_axes(&sum.body, &by.into(), &extents);
    let around = |axis, n: u64, body| edit::loop_with(axis, Ix::Const(n as i64), body, |f| f.place = Place::Matrix);
    around(i, rows, vec![around(j, cols, vec![Stmt::For(Box::new(sum))])])
}
