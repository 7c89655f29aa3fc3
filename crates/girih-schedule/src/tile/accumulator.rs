//! Accumulators in the registers of the threads of a block.
//!
//! In: the accumulator of a product, which lies in memory, and how the threads share its rows and columns. Out: what touches
//! it, done by the threads that have its elements.
//!
//! ```text
//! local acc: f32[128, 128]                         local acc: f32[256, 8, 8] private
//! for i: for j: acc[i, j] = 0               -->    for t in 0..256: thread: for r: for c: acc[t, r, c] = 0
//! for i: for j: store C[..] = acc[i, j]            for t: for r: for c: store C[..] = acc[t, r, c]
//! ```
//! Where something touches it otherwise, it is in registers during each sum only, and in memory between.

use std::collections::{BTreeMap, BTreeSet};

use crate::loops::ir::*;
use crate::loops::walk::{self, buffer_uses, refs};
use crate::tile::contraction::{Nest, nest_at};
use crate::tile::edit::{self, const_trip};
use crate::tile::primitives::{LoopRef, names_of};
use crate::tile::sharing::Share;
use crate::tile::tile_nest::to_tiles;

/// The extents of an accumulator that is a matrix.
pub fn matrix(kernel: &Kernel, acc: BufId) -> Result<[u64; 2], &'static str> {
    <[u64; 2]>::try_from(&kernel.bufs[acc].shape[..]).map_err(|_| "its accumulator is not a matrix")
}

/// The loop over the terms of a contraction into an accumulator.
///
/// # Errors
/// Why there is none that threads could share.
pub fn sum_into(kernel: &Kernel, acc: BufId) -> Result<LoopRef, &'static str> {
    let all = nests(kernel, acc)?;
    names_of(kernel, &[all[0].reduce]).first().copied().ok_or("its loops are not a nest of their own")
}

/// How threads share an accumulator, given the kernels before and after.
pub fn said(before: &Kernel, after: &Kernel, acc: BufId, [rows, cols]: [u64; 2]) -> String {
    let threads = before.bufs[acc].shape.iter().product::<u64>() / (rows * cols).max(1);
    let size = format!("{rows} x {cols} for each of {threads} threads");
    match after.bufs[acc].space {
        Space::Private => size,
        _ => format!("{size}, in registers during the sum only, as {NOT_ALIKE}"),
    }
}

pub fn accumulators(p: &Kernel) -> Vec<BufId> {
    let mut out = vec![];
    for (_, c) in walk::contractions(&p.body) {
        if !out.contains(&c.acc) {
            out.push(c.acc);
        }
    }
    out
}

/// The contractions into an accumulator.
///
/// # Errors
/// Why there is none that threads could share.
pub fn nests(kernel: &Kernel, acc: BufId) -> Result<Vec<Nest<'_>>, &'static str> {
    let (mut out, mut other) = (vec![], "its loops are not a nest of their own");
    walk::visit(&kernel.body, &mut |s| match nest_at(s) {
        Some(Ok(nest)) if nest.roles.acc == acc => out.push(nest),
        Some(Err(why)) => other = why,
        _ => {}
    });
    let shape = &kernel.bufs[acc].shape;
    for nest in &out {
        nest.alone()?;
        let place = [Ix::Axis(nest.roles.m), Ix::Axis(nest.roles.n)];
        let mut whole = [nest.m, nest.n] == shape[..];
        for s in &nest.reduce.body {
            if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                && *buf == acc
            {
                whole &= *idx == place;
            }
        }
        if !whole {
            return Err("the accumulator's place is not one per row and column");
        }
    }
    if out.is_empty() { Err(other) } else { Ok(out) }
}

/// How the threads of a block are numbered over rows and columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Numbering {
    /// Four by four, two rows by two columns, these line by line of the columns: neighbours share a row, and every second a
    /// column, so that wide reads of either from shared memory take half the wavefronts (`base/banks.rs`). Line by line where
    /// there is one thread along an axis.
    Squares,
    /// Each warp has rows and columns of its own, with eight threads along the rows and four along the columns, as the matrix
    /// unit's sums lie.
    Warps,
    /// The same, and warps with rows below each other follow one another: four of them are a warpgroup.
    Groups,
}

/// Makes a contraction one of threads.
pub type Sum<'a> = dyn Fn(&Tile, &mut Kernel, &Nest<'_>) -> Result<Stmt, String> + 'a;

/// An accumulator in the registers of the threads of a block.
pub struct Tile {
    pub acc: BufId,
    pub shape: [u64; 2],
    pub rows: Share,
    pub cols: Share,
    pub numbering: Numbering,
    /// For as long as the block lives; otherwise during each sum, and in memory between.
    pub whole: bool,
}

impl Tile {
    pub fn threads(&self) -> u64 {
        self.rows.threads * self.cols.threads
    }

    /// Places the accumulator and all that touches it; where something touches it otherwise, during its sums only.
    pub fn place(self, kernel: &mut Kernel, sum: &Sum<'_>) -> Result<(), String> {
        let threads = self.threads();
        let mut alike = kernel.clone();
        let body = std::mem::take(&mut alike.body);
        let tile = Tile { whole: true, ..self };
        if let Ok(body) = tile.body(&mut alike, body, sum) {
            *kernel = Kernel { body, ..alike };
            let b = &mut kernel.bufs[tile.acc];
            (b.shape, b.space) = (vec![threads, tile.rows.each, tile.cols.each], Space::Private);
            return Ok(());
        }
        let tile = Tile { whole: false, ..tile };
        let body = std::mem::take(&mut kernel.body);
        kernel.body = tile.body(kernel, body, sum)?;
        Ok(())
    }

    /// The statements that touch the accumulator, by the threads that have its elements.
    fn body(&self, kernel: &mut Kernel, body: Vec<Stmt>, sum: &Sum<'_>) -> Result<Vec<Stmt>, String> {
        let mut out = Vec::with_capacity(body.len());
        for mut s in body {
            if !buffer_uses(std::slice::from_ref(&s)).contains_key(&self.acc) || matches!(s, Stmt::Local { .. }) {
                out.push(s);
                continue;
            }
            match (nest_at(&s), &s) {
                (Some(Ok(nest)), _) if nest.roles.acc == self.acc => {
                    let made = sum(self, kernel, &nest)?;
                    out.push(made);
                    continue;
                }
                (_, _) if !self.whole => {}
                (_, Stmt::For(f)) if f.is_free_unplaced() => {
                    let made = self.elements(kernel, f)?;
                    out.push(made);
                    continue;
                }
                (_, Stmt::Read { .. } | Stmt::Write { .. } | Stmt::Print { .. }) => return Err(NOT_ALIKE.to_string()),
                _ => {}
            }
            for inner in walk::bodies_mut(&mut s) {
                *inner = self.body(kernel, std::mem::take(inner), sum)?;
            }
            out.push(s);
        }
        Ok(out)
    }

    /// A loop over the threads, given the thread's number among the rows and among the columns.
    pub fn threads_around(
        &self,
        kernel: &mut Kernel,
        body: impl FnOnce(&mut Kernel, Thread) -> Result<Vec<Stmt>, String>,
    ) -> Result<Stmt, String> {
        let t = kernel.axes.push(Axis { name: "t".into(), from: None });
        let by = |n: u64| Ix::floor_div(Ix::Axis(t), Ix::Const(n as i64));
        let of = |ix: Ix, n: u64| Ix::modulo(ix, Ix::Const(n as i64));
        let times = |ix: Ix, n: i64| Ix::mul(ix, Ix::Const(n));
        let across = self.cols.threads;
        let (row, col) = match self.numbering {
            Numbering::Squares => {
                let together = |share: &Share| share.together as i64;
                let (row, col) = if across.is_multiple_of(2) && self.rows.threads.is_multiple_of(2) {
                    let pair = |outer: Ix, inner: Ix| Ix::add(times(outer, 2), inner);
                    let square = of(by(4), across / 2);
                    (pair(by(2 * across), of(by(2), 2)), pair(square, of(Ix::Axis(t), 2)))
                } else {
                    (by(across), of(Ix::Axis(t), across))
                };
                (times(row, together(&self.rows)), times(col, together(&self.cols)))
            }
            Numbering::Warps | Numbering::Groups => {
                let (line, pair) = (Ix::floor_div(of(Ix::Axis(t), 32), Ix::Const(4)), of(Ix::Axis(t), 4));
                let (tall, wide) = (self.rows.threads / 8, across / 4);
                let (down, along) = match self.numbering {
                    Numbering::Groups if wide > 1 => (of(by(32), tall), by(32 * tall)),
                    _ => (by(32 * wide), of(by(32), wide)),
                };
                let of_warp = |share: &Share, lanes: u64| (lanes * share.each) as i64;
                let own = |of: Ix, share: &Share| times(of, share.together as i64);
                let row = Ix::add(times(down, of_warp(&self.rows, 8)), own(line, &self.rows));
                (row, Ix::add(times(along, of_warp(&self.cols, 4)), own(pair, &self.cols)))
            }
        };
        let body = body(kernel, Thread { number: Ix::Axis(t), row, col })?;
        Ok(edit::loop_with(t, Ix::Const(self.threads() as i64), body, |f| f.place = Place::Thread))
    }

    /// The work on each element, row by row, by the thread that has it.
    fn elements(&self, kernel: &mut Kernel, i: &For) -> Result<Stmt, String> {
        let Some((Stmt::For(j), before)) = i.body.split_last() else { return Err(NOT_ALIKE.to_string()) };
        let at = [Ix::Axis(i.axis), Ix::Axis(j.axis)];
        let mut good = j.kind == LoopKind::Free
            && j.place == Place::None
            && [const_trip(i), const_trip(j)] == self.shape.map(Some);
        good &= before.iter().all(edit::is_pure) && !refs(before).bufs_read.contains(&self.acc);
        walk::visit(&j.body, &mut |s| match s {
            Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if *buf == self.acc => good &= *idx == at,
            Stmt::For(f) => good &= f.place == Place::None && f.contraction.is_none(),
            Stmt::Print { .. } => good = false,
            _ => {}
        });
        if !good {
            return Err(NOT_ALIKE.to_string());
        }
        // A load for a column happens once for all rows.
        let (of_col, of_element) = self.columns(before, i.axis, &j.body);
        let needed = refs(&of_element).vals_used;
        self.threads_around(kernel, |kernel, thread| {
            let (mut out, mut kept) = (vec![], BTreeMap::new());
            if of_col.iter().any(|s| matches!(s, Stmt::Load { .. })) {
                for val in of_col.iter().filter_map(walk::def).filter(|v| needed.contains(v)) {
                    let made = keep(kernel, val, false, self.cols.each, None);
                    out.push(Stmt::Local { buf: made.buf });
                    kept.insert(val, made);
                }
                out.extend(self.cols.slots(kernel, j.axis, &thread.col, false, &mut |_, c, col| {
                    let mut body = edit::place_axes(&of_col, &[(j.axis, col)].into(), &BTreeMap::new());
                    body.extend(kept.iter().map(|(v, k)| k.write(&c, *v)));
                    body
                }));
            }
            let of_element = if kept.is_empty() { &j.body } else { &of_element };
            out.extend(self.rows.slots(kernel, i.axis, &thread.row, false, &mut |kernel, r, row| {
                let mut out = edit::place_axes(before, &[(i.axis, row.clone())].into(), &BTreeMap::new());
                out.extend(self.cols.slots(kernel, j.axis, &thread.col, false, &mut |_, c, col| {
                    let by = [(i.axis, row.clone()), (j.axis, col)].into();
                    let mut body: Vec<Stmt> = kept.values().map(|k| k.read(&r, &c)).collect();
                    let mut own = edit::place_axes(of_element, &by, &BTreeMap::new());
                    walk::subst_vals(&mut own, &mut |v| kept.get(&v).map(|k| Opnd::Val(k.again)));
                    self.in_registers(&mut own, self.acc, &self.slot(&thread, &r, &c));
                    body.extend(own);
                    body
                }));
                out
            }));
            Ok(out)
        })
    }

    /// The statements for an element as those that are the same for all rows, and the others.
    fn columns(&self, before: &[Stmt], row: AxisId, body: &[Stmt]) -> (Vec<Stmt>, Vec<Stmt>) {
        let mut varying: BTreeSet<ValId> = before.iter().filter_map(walk::def).collect();
        body.iter().cloned().partition(|s| {
            let facts = walk::refs_of(s);
            let pure = edit::is_pure(s) && !matches!(s, Stmt::Read { .. });
            let fixed = pure && !facts.axes_used.contains(&row) && facts.vals_used.is_disjoint(&varying);
            if !fixed {
                varying.extend(walk::def(s));
            }
            fixed
        })
    }

    /// The subscripts of a thread's accumulator.
    pub fn slot(&self, thread: &Thread, r: &Ix, c: &Ix) -> Vec<Ix> {
        let thread = self.whole.then(|| thread.number.clone());
        thread.into_iter().chain([r.clone(), c.clone()]).collect()
    }

    /// Accesses of the accumulator as those of registers.
    pub fn in_registers(&self, body: &mut [Stmt], registers: BufId, at: &[Ix]) {
        to_tiles(body, &BTreeMap::from([(self.acc, (registers, at.to_vec()))]));
    }

    /// Copies a thread's part of the accumulator into registers, or back.
    pub fn copied(
        &self,
        kernel: &mut Kernel,
        thread: &Thread,
        axes: [AxisId; 2],
        registers: BufId,
        back: bool,
    ) -> Vec<Stmt> {
        let Buf { ty, name, .. } = kernel.bufs[self.acc].clone();
        // A thread moves at most 16 bytes at once.
        let vector = self.cols.together * kernel.bufs[self.acc].element_bytes() <= 16;
        self.rows.slots(kernel, axes[0], &thread.row, false, &mut |kernel, r, row| {
            self.cols.slots(kernel, axes[1], &thread.col, vector, &mut |kernel, c, col| {
                let dst = kernel.vals.push(Val { ty, name: name.clone() });
                let (here, there) = ((registers, self.slot(thread, &r, &c)), (self.acc, vec![row.clone(), col]));
                let ((from, idx), (to, at)) = if back { (here, there) } else { (there, here) };
                vec![Stmt::Read { dst, buf: from, idx }, Stmt::Write { buf: to, idx: at, value: Opnd::Val(dst) }]
            })
        })
    }
}

const NOT_ALIKE: &str = "something touches its accumulator other than element by element";

/// A thread: its number in the block, and the first of its rows and of its columns.
pub struct Thread {
    pub number: Ix,
    pub row: Ix,
    pub col: Ix,
}

/// A value of one side of the product that waits in registers, one for each slot of that side.
pub struct Kept {
    pub buf: BufId,
    left: bool,
    /// Where there are several steps of the sum: the axis over them.
    along: Option<AxisId>,
    /// The value that products read from it.
    pub again: ValId,
}

impl Kept {
    pub fn read(&self, r: &Ix, c: &Ix) -> Stmt {
        let slot = if self.left { r } else { c };
        Stmt::Read { dst: self.again, buf: self.buf, idx: self.at(slot) }
    }

    pub fn write(&self, slot: &Ix, value: ValId) -> Stmt {
        Stmt::Write { buf: self.buf, idx: self.at(slot), value: Opnd::Val(value) }
    }

    fn at(&self, slot: &Ix) -> Vec<Ix> {
        std::iter::once(slot.clone()).chain(self.along.map(Ix::Axis)).collect()
    }
}

/// Registers for a value of each of some slots, and of each step of the sum along an axis.
pub fn keep(kernel: &mut Kernel, val: ValId, left: bool, slots: u64, along: Option<(AxisId, u64)>) -> Kept {
    let Val { ty, name } = kernel.vals[val].clone();
    let shape = std::iter::once(slots).chain(along.map(|(_, steps)| steps)).collect();
    let buf = kernel.bufs.push(Buf::new(format!("{name}_r"), ty, shape));
    let again = kernel.vals.push(Val { ty, name });
    kernel.sources.vals.copy(val, again);
    Kept { buf, left, along: along.map(|(axis, _)| axis), again }
}
