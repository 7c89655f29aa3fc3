//! Register tiles: `rows` x `cols` accumulators in named vector registers over the whole reduction.
//!
//! ```text
//! register_tile acc over i in 0..2, j in 0..32 lanes 16:      acc_0_0: f32x16 = load acc[..]   (and 0_1, 1_0, 1_1)
//!   for k in 0..64: reduce                                     for k in 0..64 step 1 {
//!     a: f32 = A[i, k]                                  -->      b: f32x16 = load B[k*32]      b_2: f32x16 = load B[k*32 + 16]
//!     b: f32 = B[k, j]                                           a: f32 = load A[k]            a_v: f32x16 = splat a
//!     acc[i, j] <- fma(a, b, acc[i, j])                          acc_0_0 = fma a_v, b, acc_0_0 ...
//!                                                              }
//!                                                              store acc[..] = acc_0_0 ...
//! ```
//!
//! What depends on neither row nor column runs once a step, what depends on the column only once for every vector of
//! columns, then row by row the row's scalars and its accumulators: few values are alive at once.

use super::vector::{load, store};
use super::{Loc, Lower, Res, Vector, ty};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use rustc_hash::FxHashMap;

/// Which axes of the tile a value depends on.
#[derive(Clone, Copy, Default, PartialEq)]
struct Depends {
    row: bool,
    col: bool,
}

impl Lower<'_> {
    pub(super) fn register_tile(&mut self, stmt: &l::Stmt) -> Res<()> {
        let l::Stmt::RegisterTile { acc, i, rows, j, cols, lanes, body } = stmt else { return Ok(()) };
        let [l::Stmt::For(f)] = body.as_slice() else {
            return Err("a register tile does not hold exactly one loop".to_string());
        };
        if *lanes < 2 || cols % lanes != 0 || self.vector.is_some() {
            return Err(format!("a register tile of {cols} columns by {lanes} lanes has no whole vectors"));
        }
        let place = f.body.iter().find_map(|s| match s {
            l::Stmt::Write { buf, idx, .. } if buf == acc => Some(idx.clone()),
            _ => None,
        });
        let place = place.ok_or("a register tile does not write its accumulator")?;
        let buf = self.buf(*acc)?;
        let super::Storage::Slot(slot) = self.storage(*acc)? else {
            return Err("a register tile's accumulator is a scalar".to_string());
        };
        let linear = self.linear(buf, &place)?;
        let vectors = cols / lanes;

        let mut accs = Vec::new();
        for r in 0..*rows {
            for v in 0..vectors {
                let var = self.value(&format!("{}_{r}_{v}", buf.name), ty(buf.ty, *lanes));
                let index = self.in_tile(*i, r, *j, v * lanes, |s| s.ix(&linear))?;
                self.push(load(var, k::Address::Slot { buf: slot, index: index.clone() }));
                accs.push((var, index));
            }
        }

        let (lo, hi, step) = (self.ix(&f.lo)?, self.ix(&f.hi)?, self.ix(&f.step)?);
        let axis = self.axis_of(f.axis);
        self.axes.insert(f.axis, k::Ix::Axis(axis));
        let depends = self.depends(&f.body, *acc, *i, *j)?;
        let nest = std::mem::take(&mut self.nest);
        self.vector = Some(Vector { axis: *j, lanes: *lanes });
        let inner = self.inner(|s| s.tile_step(&f.body, &depends, *acc, (*i, *rows), (*j, vectors, *lanes), &accs));
        self.vector = None;
        self.splats = None;
        self.nest = nest;
        self.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body: inner? });
        for (var, index) in accs {
            self.push(store(k::Address::Slot { buf: slot, index }, k::Opnd::Val(var)));
        }
        Ok(())
    }

    /// One step of the reduction over the whole tile.
    fn tile_step(
        &mut self,
        body: &[l::Stmt],
        depends: &[Depends],
        acc: l::BufId,
        (i, rows): (l::AxisId, u32),
        (j, vectors, lanes): (l::AxisId, u32, u32),
        accs: &[(k::ValId, k::Ix)],
    ) -> Res<()> {
        let mut columns: Vec<FxHashMap<l::ValId, Loc>> = vec![FxHashMap::default(); vectors as usize];
        for (stmt, d) in body.iter().zip(depends).filter(|(_, d)| !d.row) {
            for v in 0..if d.col { vectors } else { 1 } {
                self.recall(&columns[v as usize]);
                self.in_tile(i, 0, j, v * lanes, |s| s.vector_stmt(stmt))?;
                if let (true, Some(dst)) = (d.col, defined(stmt)) {
                    columns[v as usize].insert(dst, self.loc(dst)?);
                }
            }
        }
        for r in 0..rows {
            self.splats = Some(FxHashMap::default());
            for (stmt, _) in body.iter().zip(depends).filter(|(_, d)| d.row && !d.col) {
                self.in_tile(i, r, j, 0, |s| s.vector_stmt(stmt))?;
            }
            for v in 0..vectors {
                self.recall(&columns[v as usize]);
                let (var, _) = accs[(r * vectors + v) as usize];
                for (stmt, _) in body.iter().zip(depends).filter(|(_, d)| d.row && d.col) {
                    match stmt {
                        l::Stmt::Read { dst, buf, .. } if *buf == acc => {
                            self.vals.insert(*dst, Loc::Vector(var));
                        }
                        l::Stmt::Write { buf, value, .. } if *buf == acc => {
                            let value = self.vector_opnd(value)?;
                            self.push(k::Stmt::Set { var, value });
                        }
                        _ => self.in_tile(i, r, j, v * lanes, |s| s.vector_stmt(stmt))?,
                    }
                }
            }
        }
        Ok(())
    }

    fn recall(&mut self, column: &FxHashMap<l::ValId, Loc>) {
        self.vals.extend(column.iter().map(|(&val, &loc)| (val, loc)));
    }

    /// Runs `build` at a row and a column of the tile.
    fn in_tile<T>(
        &mut self,
        i: l::AxisId,
        row: u32,
        j: l::AxisId,
        col: u32,
        build: impl FnOnce(&mut Self) -> Res<T>,
    ) -> Res<T> {
        self.axes.insert(i, k::Ix::Const(row as i64));
        self.axes.insert(j, k::Ix::Const(col as i64));
        let done = build(self);
        self.axes.remove(&i);
        self.axes.remove(&j);
        done
    }

    /// What each statement of the step depends on; an access of the accumulator on both.
    fn depends(&self, body: &[l::Stmt], acc: l::BufId, i: l::AxisId, j: l::AxisId) -> Res<Vec<Depends>> {
        let mut of: FxHashMap<l::ValId, Depends> = FxHashMap::default();
        let mut out = Vec::new();
        for stmt in body {
            let mut d = Depends::default();
            let opnd = |d: &mut Depends, o: &l::Opnd| {
                if let l::Opnd::Val(v) = o {
                    let x = of.get(v).copied().unwrap_or_default();
                    *d = Depends { row: d.row | x.row, col: d.col | x.col };
                }
            };
            let ix = |d: &mut Depends, ix: &l::Ix| {
                ix.for_each_leaf(&mut |leaf| match leaf {
                    l::Ix::Axis(a) => *d = Depends { row: d.row | (*a == i), col: d.col | (*a == j) },
                    l::Ix::Val { val, .. } => opnd(d, &l::Opnd::Val(*val)),
                    _ => {}
                });
            };
            match stmt {
                l::Stmt::Let { args, .. } => args.iter().for_each(|a| opnd(&mut d, a)),
                l::Stmt::Index { ix: x, .. } => ix(&mut d, x),
                l::Stmt::Load { mem, mask, other, .. } => {
                    opnd(&mut d, &l::Opnd::Val(mem.base));
                    ix(&mut d, &mem.index);
                    for c in &mask.conds {
                        ix(&mut d, &c.lhs);
                        ix(&mut d, &c.rhs);
                    }
                    mask.vals.iter().for_each(|v| opnd(&mut d, &l::Opnd::Val(*v)));
                    other.iter().for_each(|o| opnd(&mut d, o));
                }
                l::Stmt::Read { buf, .. } | l::Stmt::Write { buf, .. } if *buf == acc => {
                    d = Depends { row: true, col: true };
                }
                l::Stmt::Read { idx, .. } => idx.iter().for_each(|x| ix(&mut d, x)),
                _ => return Err("a register tile's loop does more than multiply and add".to_string()),
            }
            if let Some(dst) = defined(stmt) {
                of.insert(dst, d);
            }
            out.push(d);
        }
        Ok(out)
    }
}

fn defined(stmt: &l::Stmt) -> Option<l::ValId> {
    match stmt {
        l::Stmt::Let { dst, .. }
        | l::Stmt::Index { dst, .. }
        | l::Stmt::Load { dst, .. }
        | l::Stmt::Read { dst, .. } => Some(*dst),
        _ => None,
    }
}
