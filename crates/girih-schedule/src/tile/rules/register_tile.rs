//! `register_tile`

mod threads;
mod amx;

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs, refs_of};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::contraction::{self, Nest, Roles, TileShape, num_type, parts};
use crate::tile::edit::{self, free_loop, new_axis};
use crate::tile::epilogue;
use crate::tile::target::Capability;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "register_tile",
    doc: "\
Runs a contraction one register tile of the accumulator at a time: `rows` x `cols` accumulators stay in registers over the
whole reduction. Each step takes the tile's columns of the right operand into registers, then goes through its rows.

```text
for i in 0..128: free                            for j1 in 0..4: free
  for j in 0..128: free                            for i1 in 0..16: free
    for kk in 0..64: reduce contraction   -->        local acc_r: f32[8, 32] register(16)
      acc[i, j] <- a[i, kk] * b[kk, j]               acc_r <- acc[i1*8.., j1*32..]
                                                     for kk in 0..64: reduce
                                                       local b_r: f32[32] register(16)
                                                       for j2 in 0..32: free vector(16)
                                                         b_r[j2] <- b[kk, j1*32 + j2]
                                                       for i2 in 0..8: free unroll
                                                         for j2 in 0..32: free vector(16)
                                                           acc_r[i2, j2] <- a[i1*8 + i2, kk] * b_r[j2]
                                                     acc[i1*8.., j1*32..] <- acc_r
```

Where the sum is one stretch, it starts in registers and what follows it is done there (`tile/epilogue.rs`): the
accumulator is no longer in memory at all.

The columns run outermost, so that a packed panel of the right operand stays in L1 while the rows pass over it. Rows and
columns that fill no tile have smaller ones.

Where the processor has a unit for products of tiles (AMX), and the operands are words of two bf16 or four bytes (`pair_terms`) that lie
along the sum on the left and along the columns on the right, loops over 32 x 32 sums and whole tiles of terms are placed on it; what
fills no tile has register tiles.

```text
for i in 0..64: free                             for j1 in 0..2: free
  for j in 0..64: free                             for i1 in 0..2: free
    for kk in 0..256: reduce contraction             for i2 in 0..32: free matrix
      acc[i, j] <- dot2(a[i, kk], b[kk, j])  -->       for j2 in 0..32: free matrix
                                                         for kk in 0..256: reduce matrix
                                                           acc[i1*32.., j1*32..] <- dot2(a[i1*32 + i2, kk], b[kk, j1*32 + j2])
```

On a GPU every thread of the block has a tile of its own, and the accumulator is nothing else: what fills it before the sum
and what follows it is done by the thread that has the element.

```text
local acc: f32[128, 128]                         local acc: f32[256, 8, 8] private
for i: for j: acc[i, j] = 0                      for t in 0..256: thread: for r: for c: acc[t, r, c] = 0
for kt in 0..112: serial                         for kt in 0..112: serial
  for i: for j: for kk: reduce contraction         for t in 0..256: free thread
    acc[i, j] <- a_s[i, kk] * b_s[j, kk]   -->       for kk1 in 0..8: reduce
                                                       a_r[r, kk2] = a_s[r*16 + row, kk1*4 + kk2]       for all r, kk2
                                                       b_r[c, kk2] = b_s[c*16 + col, kk1*4 + kk2]
                                                       for kk2: for r in 0..8: for c in 0..8: unroll
                                                         acc[t, r, c] <- a_r[r, kk2] * b_r[c, kk2]
for i: for j: store C[..] = acc[i, j]            for t: for r: for c: store C[..] = acc[t, r, c]
```

A thread's rows and columns lie as far apart as there are threads along them, in groups that one access moves: then the
accesses of neighbouring threads lie side by side. Four threads make a square, `row = t//32*2 + t//2%2` and
`col = t//4%8*2 + t%2` above: neighbours want the same of `a_s`, every second the same of `b_s`, and shared memory gives that to
twice as many at once.

Knobs: `register_tile` (0 turns the rule off), `rows`, `cols`, `lanes` (chosen from the vector registers), `tiles` (0 leaves the
unit for products of tiles alone).

Refuses when the accumulator's type is not held in vectors, the tile does not divide the contraction, or an operand
still has a mask or does not lie along n. On a GPU: when something touches the accumulator other than element by element.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if ctx.target.has(Capability::Threads) {
        return threads::run(p, ctx, log);
    }
    let mut on_unit = vec![];
    let mut kernel = contraction::rewrite(p, log, &mut |kernel, nest| tile(kernel, ctx, nest, &mut on_unit))?;
    for acc in on_unit {
        log.applied(format!("{acc}, whole tiles of which the processor's matrix unit multiplies"));
    }
    for acc in epilogue::join(&mut kernel) {
        log.applied(format!("{}, which starts and ends in registers", kernel.bufs[acc].name));
    }
    Some(kernel)
}

fn tile(kernel: &mut Kernel, ctx: &Context, nest: &Nest, on_unit: &mut Vec<String>) -> Result<Vec<Stmt>, String> {
    if !ctx.knobs.register_tile {
        return Err("knob off".to_string());
    }
    let dtype = num_type(kernel, nest.roles.acc).ok_or("its accumulator holds addresses")?;
    let shape = nest.tile_shape(ctx, dtype)?;
    let place = check_body(kernel, nest, shape.cols)?;
    let mut out = vec![];
    match amx::whole(kernel, ctx, nest) {
        None => out.extend(in_vectors(kernel, nest, shape, &place, (0, nest.m), 0)),
        Some(whole) => {
            on_unit.push(kernel.bufs[nest.roles.acc].name.clone());
            out.extend(amx::products(kernel, nest, &whole));
            // The terms that fill no tile, and the rows.
            let left = [((0, whole.rows), whole.terms, nest.k), ((whole.rows, nest.m - whole.rows), 0, nest.k)];
            for (rows, from, to) in left {
                if rows.1 > 0 && from < to {
                    let shape = TileShape { rows: shape.rows.min(rows.1 as u32), ..shape };
                    out.extend(in_vectors(kernel, nest, shape, &place, rows, from));
                }
            }
        }
    }
    for f in nest.free.iter().rev().skip(2) {
        out = vec![Stmt::For(Box::new(For { body: out, ..(*f).clone() }))];
    }
    Ok(out)
}

/// Register tiles of so many rows from one on, and of the terms from one on.
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

/// A loop over so many tiles; over one, none.
fn within(axis: Option<AxisId>, count: u64, body: Vec<Stmt>) -> Vec<Stmt> {
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
struct At {
    first: u64,
    /// The axis over them, where there are several.
    outer: Option<AxisId>,
    size: u32,
}

impl At {
    /// The position of an element of a tile.
    fn of(&self, inner: &Ix) -> Ix {
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

    /// What is done for every element: `body` is given its place in the accumulator's registers.
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
                for s in &mut sums {
                    if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                        && *buf == self.roles.acc
                    {
                        (*buf, *idx) = (self.acc, vec![i2.clone(), j2.clone()]);
                    }
                }
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
struct Parts {
    once: Vec<Stmt>,
    rows: Vec<Stmt>,
    cols: Vec<Stmt>,
    /// Rows and columns, as the accumulator does.
    sums: Vec<Stmt>,
}

impl Parts {
    fn of(nest: &Nest) -> Parts {
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

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, text, with_knobs};

    const PRODUCT: &str = r#"loop kernel k(A: ptr f32, B: ptr f32):
  local acc: f32[16, 64]
  for i in 0..16: free
    for j in 0..64: free
      for kk in 0..8: reduce contraction m=i n=j k=kk a=a b=b acc=acc
        a: f32 = load A[i*8 + kk]
        b: f32 = load B[kk*64 + j]
        c: f32 = acc[i, j]
        d: f32 = fma(a, b, c)
        acc[i, j] = d
"#;

    #[test]
    fn knobs_choose_the_tile() {
        let (out, _) = apply("register_tile", &kernel(PRODUCT), &with_knobs(&["rows=4", "cols=64"]));
        assert!(text(&out).contains("local acc_r: f32[4, 64] register(16)"), "{}", text(&out));
        let why = refusals("register_tile", PRODUCT, &with_knobs(&["cols=40"]));
        assert_eq!(why, ["contraction into acc: a tile of 40 columns by 16 lanes does not divide 64"]);
        assert_eq!(
            refusals("register_tile", PRODUCT, &with_knobs(&["register_tile=0"])),
            ["contraction into acc: knob off"]
        );
    }

    #[test]
    fn rows_and_columns_that_remain_have_tiles() {
        let (out, _) = apply("register_tile", &kernel(PRODUCT), &with_knobs(&["rows=3"]));
        let made = text(&out);
        for part in ["for i1 in 0..5: free", "acc_r: f32[3, 64]", "acc_r_1: f32[1, 64]", "load A[kk_1 + 120]"] {
            assert!(made.contains(part), "{part}: {made}");
        }
        let (out, _) = apply("register_tile", &kernel(PRODUCT), &with_knobs(&["rows=8", "cols=48"]));
        let made = text(&out);
        for part in ["acc_r: f32[8, 48]", "acc_r_1: f32[8, 16]", "load B[kk_1*64 + (j2_5 + 48)]"] {
            assert!(made.contains(part), "{part}: {made}");
        }
    }

    #[test]
    fn a_sum_in_one_stretch_starts_and_ends_in_registers() {
        let block = r#"loop kernel k(A: ptr f32, B: ptr f32, bias: ptr f32, C: ptr f32):
  local acc: f32[16, 64]
  for i0 in 0..16: free
    for j0 in 0..64: free
      acc[i0, j0] = 0.0
  for i in 0..16: free
    for j in 0..64: free
      for kk in 0..8: reduce contraction m=i n=j k=kk a=a b=b acc=acc
        a: f32 = load A[i*8 + kk]
        b: f32 = load B[kk*64 + j]
        c: f32 = acc[i, j]
        d: f32 = fma(a, b, c)
        acc[i, j] = d
  for i1 in 0..16: free
    r: f32 = load A[i1]
    for j1 in 0..64: free
      s: f32 = acc[i1, j1]
      t: f32 = load bias[j1]
      u: f32 = s + t
      v: f32 = u * r
      store C[i1*64 + j1] = v
"#;
        let (out, log) = apply("register_tile", &kernel(block), &context());
        assert_eq!(log.applied, ["contraction into acc", "acc, which starts and ends in registers"]);
        let made = text(&out);
        assert!(!made.contains("local acc:") && made.contains("acc_r[i2, j2] = 0.0"), "{made}");
        let end = r#"        r: f32 = load A[i1*8 + i2_2]
        for j2_3 in 0..32: free vector(16)
          s: f32 = acc_r[i2_2, j2_3]
          t: f32 = load bias[j1*32 + j2_3]
          u: f32 = s + t
          v: f32 = u * r
          store C[(i1*8 + i2_2)*64 + (j1*32 + j2_3)] = v
"#;
        assert!(made.contains(end), "{made}");
        // Nor where the sum is one of several stretches, whatever else a stretch holds.
        let stretches = block.replace(
            "  for i in 0..16: free\n    for j in 0..64: free\n      for kk",
            "  for kt in 0..2: serial\n    local z: f32[16, 64]\n    for i2 in 0..16: free\n      for j2 in 0..64: free\n        \
             z[i2, j2] = 0.0\n    for k2 in 0..8: free\n      store C[k2] = 0.0\n    for i in 0..16: free\n     for j in \
             0..64: free\n      for kk",
        );
        let (_, log) = apply("register_tile", &kernel(&stretches), &context());
        assert_eq!(log.applied, ["contraction into acc"]);
        // Not where it is needed in memory: another reader, other places, masks, a sum in stretches.
        for (from, to) in [
            ("s: f32 = acc[i1, j1]", "s: f32 = acc[i1, 63 - j1]"),
            ("t: f32 = load bias[j1]", "t: f32 = load bias[j1] where j1 < bx else 0.0"),
            ("store C[i1*64 + j1] = v", "store C[j1*16 + i1] = v"),
            ("acc[i0, j0] = 0.0", "w: f32 = load bias[j0]\n      acc[i0, j0] = w"),
            ("    r: f32 = load A[i1]", "    r: f32 = acc[i1, 0]"),
        ] {
            assert!(block.contains(from));
            let (_, log) = apply("register_tile", &kernel(&block.replace(from, to)), &context());
            assert_eq!(log.applied, ["contraction into acc"], "{to}");
        }
    }

    #[test]
    fn what_registers_cannot_hold_is_refused() {
        for (from, to, why) in [
            ("load A[i*8 + kk]", "load A[i*8 + kk] where i < bx else 0.0", "an operand has a mask"),
            ("B[kk*64 + j]", "B[j*8 + kk]", "an operand does not lie along n"),
            ("acc[i, j] = d", "acc[j, i] = d", "the accumulator's place is not one per row and column"),
        ] {
            let changed = PRODUCT.replace(from, to);
            assert_eq!(refusals("register_tile", &changed, &context()), [format!("contraction into acc: {why}")]);
        }
        let narrow = PRODUCT.replace("0..64", "0..1").replace("16, 64", "16, 1");
        let why = refusals("register_tile", &narrow, &context());
        assert_eq!(why, ["contraction into acc: 1 columns do not fill a vector"]);
    }
}
