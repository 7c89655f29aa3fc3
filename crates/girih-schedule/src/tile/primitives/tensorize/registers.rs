//! Register tiles in the vector registers of a processor.

use std::collections::{BTreeMap, BTreeSet};

use super::tiles;
use crate::loops::ir::*;
use crate::loops::walk::{self, refs, refs_of};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::contraction::{Nest, Roles, TileShape, num_type, parts};
use crate::tile::edit::{self, free_loop, new_axis};
use crate::tile::tile_nest::to_tiles;

/// The elements of a register tile at most: its rows and vectors are written out.
const MOST: u64 = 1 << 14;

/// Makes register tiles of a nest, and where `unit` asks for it products of whole tiles on the processor's matrix unit.
pub fn apply(
    kernel: &mut Kernel,
    ctx: &Context,
    nest: &Nest,
    shape: TileShape,
    unit: bool,
) -> Result<Vec<Stmt>, String> {
    fits(nest, shape)?;
    let place = check_body(kernel, nest, shape.cols)?;
    let mut out = vec![];
    if unit {
        let whole = tiles::whole(kernel, ctx, nest).ok_or("the processor's matrix unit does not have its products")?;
        out.extend(tiles::products(kernel, nest, &whole));
        // The terms that fill no tile, and the rows.
        let left = [((0, whole.rows), whole.terms, nest.k), ((whole.rows, nest.m - whole.rows), 0, nest.k)];
        for (rows, from, to) in left {
            if rows.1 > 0 && from < to {
                let shape = TileShape { rows: shape.rows.min(rows.1 as u32), ..shape };
                out.extend(in_vectors(kernel, nest, shape, &place, rows, from));
            }
        }
    } else {
        out.extend(in_vectors(kernel, nest, shape, &place, (0, nest.m), 0));
    }
    for f in nest.free.iter().rev().skip(2) {
        out = vec![f.around(out)];
    }
    Ok(out)
}

fn fits(nest: &Nest, TileShape { rows, cols, lanes }: TileShape) -> Result<(), String> {
    if !lanes.is_power_of_two() || lanes < 2 {
        return Err(format!("a vector has 2, 4, 8 and so on lanes, not {lanes}"));
    }
    if rows == 0 || u64::from(rows) > nest.m {
        return Err(format!("a tile of {rows} rows does not fit {} rows", nest.m));
    }
    if cols == 0 || !nest.n.is_multiple_of(lanes.into()) || u64::from(cols) > nest.n || !cols.is_multiple_of(lanes) {
        return Err(format!("a tile of {cols} columns by {lanes} lanes does not divide {}", nest.n));
    }
    let elements = u64::from(rows) * u64::from(cols);
    if elements > MOST {
        return Err(format!("a tile of {elements} elements is not kept in registers; the limit is {MOST}"));
    }
    Ok(())
}

/// Register tiles of a range of rows and of the terms from one on.
fn in_vectors(
    kernel: &mut Kernel,
    nest: &Nest,
    shape: TileShape,
    place: &[Ix],
    (first, rows): (u64, u64),
    from: u64,
) -> Vec<Stmt> {
    let mut out = vec![];
    let dtype = num_type(kernel, nest.roles.acc).unwrap_or(DType::F32);
    for (first_col, cols, count) in parts(nest.n, shape.cols, shape.lanes) {
        let j1 = (count > 1).then(|| new_axis(kernel, nest.roles.n, "1"));
        let mut column = vec![];
        for (first_row, rows, count) in parts(rows, shape.rows, 1) {
            let i1 = (count > 1).then(|| new_axis(kernel, nest.roles.m, "1"));
            // Each tile but the first has a sum of its own.
            let (mut reduce, roles) = match (first + first_row + from, first_col) {
                (0, 0) => (nest.reduce.clone(), nest.roles),
                _ => nest.fresh_reduce(kernel),
            };
            if from > 0 {
                reduce.lo = Ix::Const(from as i64);
            }
            let nest = Nest { free: nest.free.clone(), reduce: &reduce, roles, ..*nest };
            let shape = TileShape { rows, cols, ..shape };
            let name = format!("{}_r", kernel.bufs[roles.acc].name);
            let acc = register_buffer(kernel, name, dtype, vec![rows.into(), cols.into()], shape.lanes);
            let row = At { first: first + first_row, outer: i1, size: rows };
            let col = At { first: first_col, outer: j1, size: cols };
            column.extend(within(i1, count, Tile { roles, shape, row, col, acc }.all(kernel, &nest, place)));
        }
        out.extend(within(j1, count, column));
    }
    out
}

/// A loop over tiles; over one, none.
pub fn within(axis: Option<AxisId>, count: u64, body: Vec<Stmt>) -> Vec<Stmt> {
    match axis {
        Some(axis) => vec![free_loop(axis, Ix::Const(count as i64), body)],
        None => body,
    }
}

fn register_buffer(kernel: &mut Kernel, name: String, dtype: DType, shape: Vec<u64>, lanes: u32) -> BufId {
    kernel.bufs.push(Buf { space: Space::Register { lanes }, ..Buf::new(name, Ty::Num(dtype), shape) })
}

/// Register tiles of a contraction, of one shape.
struct Tile {
    roles: Roles,
    shape: TileShape,
    row: At,
    col: At,
    acc: BufId,
}

/// Where tiles lie along an axis.
pub struct At {
    pub first: u64,
    /// The axis over them, where there are several.
    pub outer: Option<AxisId>,
    pub size: u32,
}

impl At {
    /// The position of an element of a tile.
    pub fn of(&self, inner: &Ix) -> Ix {
        let start = match self.outer {
            Some(outer) => Ix::add(Ix::Axis(outer) * Ix::Const(self.size.into()), Ix::Const(self.first as i64)),
            None if self.first == 0 => return inner.clone(),
            None => Ix::Const(self.first as i64),
        };
        Ix::add(start, inner.clone())
    }
}

impl Tile {
    /// One tile: its accumulators, which start as they are in memory, the sum, and the way back.
    fn all(&self, kernel: &mut Kernel, nest: &Nest, place: &[Ix]) -> Vec<Stmt> {
        let ty = kernel.bufs[self.acc].ty;
        let [start, sum] = ["start", "sum"].map(|name| kernel.vals.push(Val { ty, name: name.into() }));
        let (old, new, place) = (self.roles.acc, self.acc, place.to_vec());
        let mut out = vec![Stmt::Local { buf: new }];
        out.extend(self.over(kernel, |idx| {
            let value = Opnd::Val(start);
            vec![Stmt::Read { dst: start, buf: old, idx: place.clone() }, Stmt::Write { buf: new, idx, value }]
        }));
        out.push(self.steps(kernel, nest));
        out.extend(self.over(kernel, |idx| {
            let value = Opnd::Val(sum);
            vec![Stmt::Read { dst: sum, buf: new, idx }, Stmt::Write { buf: old, idx: place.clone(), value }]
        }));
        out
    }

    /// Statements of the contraction at a row and a column of the tile.
    fn place(&self, body: &[Stmt], i2: &Ix, j2: &Ix) -> Vec<Stmt> {
        let TileShape { rows, cols, .. } = self.shape;
        let by = [(self.roles.m, self.row.of(i2)), (self.roles.n, self.col.of(j2))];
        let mut extents = BTreeMap::new();
        for (ix, n) in [(i2, rows), (j2, cols)] {
            if let Ix::Axis(axis) = ix {
                extents.insert(*axis, i64::from(n));
            }
        }
        edit::place_axes(body, &by.into(), &extents)
    }

    /// A loop over the rows; of one row, none.
    fn rows(&self, kernel: &mut Kernel, body: impl FnOnce(&mut Kernel, Ix) -> Vec<Stmt>) -> Vec<Stmt> {
        if self.shape.rows == 1 {
            return body(kernel, Ix::Const(0));
        }
        let i2 = new_axis(kernel, self.roles.m, "2");
        let body = body(kernel, Ix::Axis(i2));
        let rows = Ix::Const(self.shape.rows.into());
        vec![edit::loop_with(i2, rows, body, |f| f.place = Place::Unroll)]
    }

    /// A loop over the columns, vector by vector.
    fn cols(&self, kernel: &mut Kernel, body: impl FnOnce(&mut Kernel, Ix) -> Vec<Stmt>) -> Stmt {
        let j2 = new_axis(kernel, self.roles.n, "2");
        let body = body(kernel, Ix::Axis(j2));
        let (lanes, cols) = (self.shape.lanes, Ix::Const(self.shape.cols.into()));
        edit::loop_with(j2, cols, body, |f| f.place = Place::Vector { lanes })
    }

    /// Statements for every element: `body` is given its place in the accumulator's registers.
    fn over(&self, kernel: &mut Kernel, body: impl FnOnce(Vec<Ix>) -> Vec<Stmt>) -> Vec<Stmt> {
        self.rows(kernel, |kernel, i2| {
            let cols = self.cols(kernel, |_, j2| self.place(&body(vec![i2.clone(), j2.clone()]), &i2, &j2));
            vec![cols]
        })
    }

    /// The reduction: for each step what depends on neither row nor column, what depends on the column only, kept in
    /// registers, and then row by row the row's scalars and the sums.
    fn steps(&self, kernel: &mut Kernel, nest: &Nest) -> Stmt {
        let parts = Parts::of(nest);
        let mut body = self.place(&parts.once, &Ix::Const(0), &Ix::Const(0));
        let needed = refs(&parts.sums).vals_used;
        let mut kept: BTreeMap<ValId, (BufId, ValId)> = BTreeMap::new();
        for s in &parts.cols {
            let Some(val) = walk::def(s).filter(|v| needed.contains(v)) else { continue };
            let Val { ty: Ty::Num(dtype), name } = kernel.vals[val].clone() else { continue };
            let width = vec![u64::from(self.shape.cols)];
            let buf = register_buffer(kernel, format!("{name}_r"), dtype, width, self.shape.lanes);
            let again = kernel.vals.push(Val { ty: Ty::Num(dtype), name });
            kernel.sources.vals.copy(val, again);
            kept.insert(val, (buf, again));
            body.push(Stmt::Local { buf });
        }
        if !parts.cols.is_empty() {
            body.push(self.cols(kernel, |_, j2| {
                let mut out = self.place(&parts.cols, &Ix::Const(0), &j2);
                let keep = |(val, (buf, _)): (&ValId, &(BufId, ValId))| Stmt::Write {
                    buf: *buf,
                    idx: vec![j2.clone()],
                    value: Opnd::Val(*val),
                };
                out.extend(kept.iter().map(keep));
                out
            }));
        }
        body.extend(self.rows(kernel, |kernel, i2| {
            let mut out = self.place(&parts.rows, &i2, &Ix::Const(0));
            out.push(self.cols(kernel, |_, j2| {
                let read = |(buf, dst): &(BufId, ValId)| Stmt::Read { dst: *dst, buf: *buf, idx: vec![j2.clone()] };
                let mut sums = self.place(&parts.sums, &i2, &j2);
                walk::subst_vals(&mut sums, &mut |v| kept.get(&v).map(|(_, again)| Opnd::Val(*again)));
                to_tiles(&mut sums, &[(self.roles.acc, (self.acc, vec![i2.clone(), j2.clone()]))].into());
                kept.values().map(read).chain(sums).collect()
            }));
            out
        }));
        Stmt::For(Box::new(For { contraction: None, body, ..nest.reduce.clone() }))
    }
}

/// The statements of a contraction's body by what they depend on, each in program order: nothing has an effect but the
/// write of the accumulator.
#[derive(Default)]
pub struct Parts {
    pub once: Vec<Stmt>,
    pub rows: Vec<Stmt>,
    pub cols: Vec<Stmt>,
    /// Rows and columns, as the accumulator does.
    pub sums: Vec<Stmt>,
}

impl Parts {
    pub fn of(nest: &Nest) -> Parts {
        let (mut by_row, mut by_col) = (BTreeSet::new(), BTreeSet::new());
        let mut parts = Parts::default();
        for s in &nest.reduce.body {
            let facts = refs_of(s);
            let sums = facts.bufs_read.contains(&nest.roles.acc) || facts.bufs_written.contains(&nest.roles.acc);
            let on = |axis: AxisId, vals: &BTreeSet<ValId>| {
                sums || facts.axes_used.contains(&axis) || facts.vals_used.iter().any(|v| vals.contains(v))
            };
            let (row, col) = (on(nest.roles.m, &by_row), on(nest.roles.n, &by_col));
            by_row.extend(walk::def(s).filter(|_| row));
            by_col.extend(walk::def(s).filter(|_| col));
            let to = match (row, col) {
                (false, false) => &mut parts.once,
                (true, false) => &mut parts.rows,
                (false, true) => &mut parts.cols,
                (true, true) => &mut parts.sums,
            };
            to.push(s.clone());
        }
        parts
    }
}

/// The accumulator's place. Rows are loaded from anywhere, columns one after the other, nothing is masked, and the one
/// effect is the write of the accumulator.
fn check_body(kernel: &Kernel, nest: &Nest, cols: u32) -> Result<Vec<Ix>, String> {
    let (m, n) = (nest.roles.m, nest.roles.n);
    // Panels are walked from end to end by tiles that divide them.
    let panel = |ix: &Ix| match affine::panels(ix, n) {
        Some(width) if width % cols as i64 == 0 => affine::in_panel(ix, n, width),
        _ => ix.clone(),
    };
    let facts = refs(&nest.reduce.body);
    let places: BTreeSet<&Vec<Ix>> = nest
        .reduce
        .body
        .iter()
        .filter_map(|s| match s {
            Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if *buf == nest.roles.acc => Some(idx),
            _ => None,
        })
        .collect();
    let mut places = places.into_iter();
    let (Some(place), None) = (places.next(), places.next()) else {
        return Err("the accumulator's place is not one per row and column".to_string());
    };
    for s in &nest.reduce.body {
        let along_n = match s {
            Stmt::Load { mask, .. } if !mask.is_always() => return Err("an operand has a mask".to_string()),
            Stmt::Load { order, .. } if *order != Order::Weak => return Err("an operand's load is ordered".to_string()),
            Stmt::Load { mem, .. } if mem.elem.bits() < 8 => {
                return Err("an operand has less than a byte per element".to_string());
            }
            Stmt::Load { mem, .. } if facts.vals_defined.contains(&mem.base) => {
                return Err("an operand's address is computed per element".to_string());
            }
            Stmt::Load { mem, .. } => affine::stride(&panel(&mem.index), n, &facts.vals_defined),
            Stmt::Read { buf, .. } if *buf == nest.roles.acc => Stride::Unit,
            Stmt::Read { buf, idx, .. } => {
                let idx: Vec<Ix> = match idx.iter().find_map(|ix| affine::panels(ix, n)) {
                    // The number of the panel does not change within a tile.
                    Some(width) if width % cols as i64 == 0 => {
                        idx.iter().map(|ix| affine::in_panel(ix, n, width)).collect()
                    }
                    _ => idx.clone(),
                };
                affine::buf_stride(&kernel.bufs[*buf], &idx, n, &facts.vals_defined)
            }
            Stmt::Write { buf, idx, .. } if *buf == nest.roles.acc => {
                if affine::buf_stride(&kernel.bufs[*buf], idx, n, &facts.vals_defined) != Stride::Unit {
                    return Err("the accumulator does not lie along n".to_string());
                }
                for ix in idx {
                    if ix.has_axis(nest.roles.k) || affine::stride(ix, m, &facts.vals_defined) == Stride::Irregular {
                        return Err("the accumulator's place is not one per row and column".to_string());
                    }
                }
                continue;
            }
            Stmt::Let { .. } => continue,
            _ => return Err("its body does more than multiply and add".to_string()),
        };
        if !matches!(along_n, Stride::Same | Stride::Unit) {
            return Err("an operand does not lie along n".to_string());
        }
    }
    Ok(place.clone())
}
