//! `stage_row`: a row that several loops of a block go through is loaded once, into a tile of the block.
//!
//! ```text
//! for k in 0..1000: reduce thread combine max(m)   local x_k: f32[1000]
//!   m <- max(x[b*1000 + k], m)                     for i in 0..1000: free
//! for j in 0..1000: free                             x_k[i] = x[b*1000 + i]
//!   y[b*1000 + j] = exp(x[b*1000 + j] - m)  -->    for k in 0..1000: reduce thread combine max(m)
//!                                                    m <- max(x_k[k], m)
//!                                                  for j in 0..1000: free
//!                                                    y[b*1000 + j] = exp(x_k[j] - m)
//! ```
//!
//! Legal in a kernel without a grid of its own, for loops of one known length that stand in one block, and arrays that nothing stores
//! to.

use crate::loops::ir::*;
use crate::loops::walk::{self, effects, refs};
use crate::tile::edit::{self, const_trip};
use crate::tile::primitives::Names;
use crate::tile::primitives::line::LoopRef;

pub fn apply(kernel: &mut Kernel, loops: &[LoopRef]) -> Result<(), String> {
    let names = Names::of(kernel);
    let named = |s: &Stmt| matches!(s, Stmt::For(f) if names.name(f).is_some_and(|at| loops.contains(&at)));
    let blocks = edit::block_bodies(&kernel.body);
    let block = blocks.iter().position(|body| body.iter().any(named)).ok_or("it does not stand in a block")?;
    let body = blocks[block];
    let places: Vec<usize> = (0..body.len()).filter(|at| named(&body[*at])).collect();
    if places.len() < loops.len() {
        return Err("the loops do not stand in one block, one behind the other".into());
    }
    if !kernel.open {
        return Err("other arrays of a program may share memory with it".into());
    }
    let body = body.to_vec();
    let rows = Rows::of(kernel, &body, &places)?;
    let mut made = rows.staged(kernel, &body, places[0]);
    if let Some(body) = edit::block_bodies_mut(&mut kernel.body).into_iter().nth(block) {
        std::mem::swap(body, &mut made);
    }
    Ok(())
}

/// A loop that goes through a row: all threads fold it together, or do something with each element.
pub fn pass(s: &Stmt) -> Option<&For> {
    let Stmt::For(f) = s else { return None };
    let straight = f.body.iter().all(|s| walk::bodies(s).is_empty());
    let counts = f.counts_from_zero() && straight;
    let folds = f.kind == LoopKind::Reduce && f.place == Place::Thread && f.combine.is_some();
    let each = f.is_free_unplaced();
    (counts && (folds || each)).then_some(f)
}

/// The row that a pass reads: a load in which the axis of every pass has one name, so that it is equal for all passes over the row.
#[derive(Clone, PartialEq)]
struct Row {
    mem: Mem,
    mask: Mask,
    other: Option<Opnd>,
}

/// Stands for the axis of whatever pass reads a row; no axis of a kernel has this number.
const ANY: AxisId = AxisId(u32::MAX);

impl Row {
    /// The row, and the operation that reads it.
    fn of(f: &For, s: &Stmt) -> Option<(Row, SiteId)> {
        let Stmt::Load { mem, mask, other, order: Order::Weak, site, .. } = s else { return None };
        let own = refs(&f.body).vals_defined;
        if !walk::refs_of(s).vals_used.is_disjoint(&own) || !mem.index.has_axis(f.axis) {
            return None;
        }
        let mut any = |leaf: &Ix| (*leaf == Ix::Axis(f.axis)).then_some(Ix::Axis(ANY));
        let index = mem.index.replace_leaves(&mut any);
        let mask = mask.replace_leaves(&mut any);
        Some((Row { mem: Mem { index, ..mem.clone() }, mask, other: *other }, *site))
    }
}

impl Row {
    /// A buffer for all of it, and the loop that loads it.
    fn tile(&self, kernel: &mut Kernel, extent: u64, site: SiteId) -> (BufId, [Stmt; 2]) {
        let name = kernel.params.iter().find(|p| p.val == self.mem.base).map_or("row", |p| p.name.as_str());
        let (name, ty) = (name.to_string(), Ty::Num(self.mem.elem));
        let buf = kernel.bufs.push(Buf::new(format!("{name}_k"), ty, vec![extent]));
        let dst = kernel.vals.push(Val { ty, name });
        let axis = kernel.axes.push(Axis { name: "i".into(), from: None });
        let mut at = |leaf: &Ix| (*leaf == Ix::Axis(ANY)).then_some(Ix::Axis(axis));
        let mem = Mem { index: self.mem.index.replace_leaves(&mut at), ..self.mem.clone() };
        let mask = self.mask.replace_leaves(&mut at);
        let load = Stmt::Load { dst, mem, mask, other: self.other, order: Order::Weak, site };
        let write = Stmt::Write { buf, idx: vec![Ix::Axis(axis)], value: Opnd::Val(dst) };
        (buf, [Stmt::Local { buf }, edit::free_loop(axis, Ix::Const(extent as i64), vec![load, write])])
    }
}

/// The rows that several passes of a block read.
pub struct Rows {
    /// Each row, the operation that reads it, and the passes that do.
    rows: Vec<(Row, SiteId, Vec<usize>)>,
    extent: u64,
}

impl Rows {
    /// The rows that passes at some places of a block's body read.
    pub fn of(kernel: &Kernel, body: &[Stmt], places: &[usize]) -> Result<Rows, String> {
        let rows = read_twice(body, places);
        let readers = rows.iter().flat_map(|(.., readers)| readers).filter_map(|at| pass(&body[*at]));
        let mut extents: Vec<Option<u64>> = readers.map(const_trip).collect();
        extents.sort_unstable();
        extents.dedup();
        let extent = match extents[..] {
            [] => return Err("no row is read by several of them".into()),
            [Some(extent)] if extent > 0 => extent,
            _ => return Err("its length is not known, or not the same everywhere".into()),
        };
        let stored = effects(&kernel.body).stores;
        if rows.iter().any(|(row, ..)| stored.contains(&row.mem.base)) {
            return Err("the kernel stores to its array".into());
        }
        Ok(Rows { rows, extent })
    }

    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// The bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.rows.iter().map(|(row, ..)| row.mem.elem.bytes().saturating_mul(self.extent)).sum()
    }

    /// The statements of a block with the rows loaded before the first pass.
    fn staged(&self, kernel: &mut Kernel, body: &[Stmt], first: usize) -> Vec<Stmt> {
        let (mut kept, mut out) = (vec![], vec![]);
        for (at, s) in body.iter().enumerate() {
            if at == first {
                for (row, site, _) in &self.rows {
                    let (buf, made) = row.tile(kernel, self.extent, *site);
                    out.extend(made);
                    kept.push((row, buf));
                }
            }
            out.push(match pass(s) {
                Some(f) => {
                    let body = f.body.iter().map(|s| read(f, s, &kept).unwrap_or_else(|| s.clone())).collect();
                    f.around(body)
                }
                None => s.clone(),
            });
        }
        out
    }
}

/// The places of passes that read a row which another one reads, too.
pub fn readers(body: &[Stmt], places: &[usize]) -> Vec<usize> {
    let mut out: Vec<usize> = read_twice(body, places).into_iter().flat_map(|(.., readers)| readers).collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn read_twice(body: &[Stmt], places: &[usize]) -> Vec<(Row, SiteId, Vec<usize>)> {
    let mut rows: Vec<(Row, SiteId, Vec<usize>)> = vec![];
    for (at, f) in places.iter().filter_map(|at| Some((at, pass(&body[*at])?))) {
        for (row, site) in f.body.iter().filter_map(|s| Row::of(f, s)) {
            match rows.iter_mut().find(|(r, ..)| *r == row) {
                Some((.., readers)) if readers.contains(at) => {}
                Some((.., readers)) => readers.push(*at),
                None => rows.push((row, site, vec![*at])),
            }
        }
    }
    rows.retain(|(.., readers)| readers.len() > 1);
    rows
}

/// The read of a kept row that a load of a pass becomes.
fn read(f: &For, s: &Stmt, kept: &[(&Row, BufId)]) -> Option<Stmt> {
    let (row, _) = Row::of(f, s)?;
    let (_, buf) = kept.iter().find(|(r, _)| **r == row)?;
    Some(Stmt::Read { dst: walk::def(s)?, buf: *buf, idx: vec![Ix::Axis(f.axis)] })
}
