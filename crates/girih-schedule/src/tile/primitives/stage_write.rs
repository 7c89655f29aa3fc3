//! `stage_write`: what stands before and after register tiles of an accumulator is done in their registers.
//!
//! ```text
//! local acc: f32[128, 64]                          for j1 in 0..2: free
//! for i: for j: acc[i, j] = 0.0                      for i1 in 0..16: free
//! for j1 in 0..2: for i1 in 0..16: free                local acc_r: f32[8, 32] register(16)
//!   local acc_r: f32[8, 32] register(16)               acc_r[i2, j2] = 0.0
//!   acc_r <- acc                           -->         for kk in 0..64: reduce
//!   for kk in 0..64: reduce                              ...
//!     ...                                              store out[..] = acc_r[i2, j2] + bias[j1*32 + j2]
//!   acc <- acc_r
//! for i: for j: store out[..] = acc[i, j] + bias[j]
//! ```
//!
//! That is possible where the whole sum is one stretch: otherwise the accumulators of a block, which are many register
//! tiles, wait in memory for the next one.

mod results;

use std::collections::{BTreeMap, BTreeSet};

use crate::loops::ir::*;
use crate::loops::walk::{self, buffer_uses, refs};
use crate::num::ScalarOp;
use crate::tile::affine::{self, Stride};
use crate::tile::edit::{self, const_trip};
use crate::tile::heuristics::stage_write::MOST_STATEMENTS;
pub use results::{By, Results, apply as results};

/// Joins the register tiles of accumulators, in this order, with what precedes and follows them.
pub fn apply(kernel: &mut Kernel, bufs: &[BufId]) -> Result<(), String> {
    for buf in bufs {
        let mut done = false;
        joined(kernel, &mut |kernel, body| {
            let of = touching(kernel, body);
            let acc = of.get(buf).filter(|_| !done).and_then(|at| join_one(kernel, body, *buf, at));
            done |= acc.is_some();
            acc
        });
        if !done {
            let name = &kernel.bufs[*buf].name;
            return Err(format!(
                "{name} is not filled with a constant, summed up in one stretch of register tiles, and used element by element"
            ));
        }
    }
    Ok(())
}

/// Joins every register tile of a kernel with what precedes and follows it, where that is possible. Returns the
/// accumulators that are in registers only from then on.
pub fn join(kernel: &mut Kernel) -> Vec<BufId> {
    joined(kernel, &mut |kernel, body| {
        touching(kernel, body).iter().find_map(|(acc, at)| join_one(kernel, body, *acc, at))
    })
}

/// Joins one accumulator after the other in each body as long as `one` finds one: that moves statements that touch others.
fn joined(kernel: &mut Kernel, one: &mut dyn FnMut(&mut Kernel, &mut Vec<Stmt>) -> Option<BufId>) -> Vec<BufId> {
    let mut body = std::mem::take(&mut kernel.body);
    let mut joined = vec![];
    walk::visit_bodies_mut(&mut body, &mut |body| {
        while let Some(acc) = one(kernel, body) {
            joined.push(acc);
        }
    });
    kernel.body = body;
    joined
}

/// The statements that touch each buffer which is declared here.
fn touching(kernel: &Kernel, body: &[Stmt]) -> BTreeMap<BufId, Vec<usize>> {
    let mut touching: BTreeMap<BufId, Vec<usize>> = BTreeMap::new();
    for (at, s) in body.iter().enumerate() {
        match s {
            Stmt::Local { buf } if kernel.bufs[*buf].space == Space::Scratch => _ = touching.insert(*buf, vec![at]),
            _ if touching.is_empty() => {}
            _ => {
                for buf in buffer_uses(std::slice::from_ref(s)).keys() {
                    touching.entry(*buf).and_modify(|all| all.push(at));
                }
            }
        }
    }
    touching
}

/// Makes register tiles start and end with what stands around them, which is gone then.
fn join_one(kernel: &mut Kernel, body: &mut Vec<Stmt>, acc: BufId, touching: &[usize]) -> Option<BufId> {
    let [local, first, from, .., last] = touching[..] else { return None };
    // The registers are declared before they are filled.
    let from = if in_registers(kernel, &body[from - 1]) { from - 1 } else { from };
    let shape = kernel.bufs[acc].shape.clone();
    let start = start(&body[first], acc, &shape)?;
    let mut new = body[from..last].to_vec();
    let mut after = After::of(kernel, &body[last], acc, &shape)?;
    after.put_each(kernel, &mut new, acc, start)?;
    body.splice(from..=last, new);
    body.remove(first);
    body.remove(local);
    Some(acc)
}

fn in_registers(kernel: &Kernel, s: &Stmt) -> bool {
    matches!(s, Stmt::Local { buf } if matches!(kernel.bufs[*buf].space, Space::Register { .. }))
}

/// The constant that a nest fills the whole of a buffer with.
fn start(s: &Stmt, acc: BufId, shape: &[u64]) -> Option<Opnd> {
    let (i, j) = pair(s, shape)?;
    match (&i.body[..], &j.body[..]) {
        ([_], [Stmt::Write { buf, idx, value: value @ Opnd::Const { .. } }]) if *buf == acc => {
            (*idx == [Ix::Axis(i.axis), Ix::Axis(j.axis)]).then_some(*value)
        }
        _ => None,
    }
}

/// Two free loops over all of a buffer: the inner one stands last in the outer one.
fn pair<'a>(s: &'a Stmt, shape: &[u64]) -> Option<(&'a For, &'a For)> {
    let Stmt::For(i) = s else { return None };
    let Some(Stmt::For(j)) = i.body.last() else { return None };
    let open = For::is_free_unplaced;
    let extents = [const_trip(i)?, const_trip(j)?];
    (open(i) && open(j) && extents == shape).then_some((i, j))
}

/// The work on each sum, row by row: statements for a row, and for each element of it.
struct After {
    i: AxisId,
    j: AxisId,
    row: Vec<Stmt>,
    element: Vec<Stmt>,
}

impl After {
    fn of(kernel: &Kernel, s: &Stmt, acc: BufId, shape: &[u64]) -> Option<After> {
        let (i, j) = pair(s, shape)?;
        let (_, row) = i.body.split_last()?;
        if !row.iter().all(edit::is_pure) || j.body.len() > MOST_STATEMENTS {
            return None;
        }
        let varying: BTreeSet<ValId> = refs(&j.body).vals_defined;
        let at = [Ix::Axis(i.axis), Ix::Axis(j.axis)];
        // Lanes that a mask turns off are those beyond the end of a row, or all.
        let bound = |ix: &Ix| {
            let along = affine::coef(ix, j.axis, &varying).and_then(|c| c.as_const());
            along.is_some_and(|c| (-1..=1).contains(&c))
        };
        let bounds = |mask: &Mask| mask.conds.iter().all(|c| bound(&c.lhs) && bound(&c.rhs));
        let in_lanes = |s: &Stmt| match s {
            Stmt::Let { dst, op, .. } => {
                *op != ScalarOp::PtrToInt && matches!(kernel.vals.get(*dst).map(|v| v.ty), Some(Ty::Num(_)))
            }
            Stmt::Read { buf, idx, .. } => *buf == acc && *idx == at,
            Stmt::Load { mem, mask, order: Order::Weak, .. } | Stmt::Store { mem, mask, order: Order::Weak, .. } => {
                let along = affine::stride(&mem.index, j.axis, &varying);
                let reaches = along == Stride::Unit || along == Stride::Same && matches!(s, Stmt::Load { .. });
                reaches && bounds(mask) && mem.elem.bits() >= 8 && !varying.contains(&mem.base)
            }
            _ => false,
        };
        let of_row = refs(row);
        let apart = !of_row.bufs_read.contains(&acc) && j.body.iter().all(in_lanes);
        apart.then(|| After { i: i.axis, j: j.axis, row: row.to_vec(), element: j.body.clone() })
    }

    /// Makes every register tile among these statements start from a constant and end with this.
    fn put_each(&mut self, kernel: &mut Kernel, body: &mut Vec<Stmt>, acc: BufId, start: Opnd) -> Option<()> {
        let mut at = 0;
        while at < body.len() {
            if let Some(four) = body.get(at..at + 4)
                && in_registers(kernel, &four[0])
            {
                let tile = self.put(kernel, four, acc, start)?;
                let after = at + tile.len();
                body.splice(at..at + 4, tile);
                at = after;
                continue;
            }
            match &mut body[at] {
                Stmt::For(f) if f.kind == LoopKind::Free => self.put_each(kernel, &mut f.body, acc, start)?,
                _ => return None,
            }
            at += 1;
        }
        Some(())
    }

    /// A register tile that starts from a constant and ends with this.
    fn put(&mut self, kernel: &mut Kernel, tile: &[Stmt], acc: BufId, start: Opnd) -> Option<Vec<Stmt>> {
        let [Stmt::Local { buf: registers }, fill, sum, store] = tile else { return None };
        let (at, extents) = (touched(store, *registers)?, extents(store));
        let [row, col] = <[Ix; 2]>::try_from(touched(store, acc)?).ok()?;
        let by = BTreeMap::from([(self.i, row), (self.j, col)]);
        let (mut fill, mut store) = (fill.clone(), store.clone());
        innermost(&mut fill, &mut |body| {
            body.retain(|s| matches!(s, Stmt::Write { .. }));
            for s in body {
                if let Stmt::Write { value, .. } = s {
                    *value = start;
                }
            }
        });
        let mut element = edit::place_axes(&self.element, &by, &extents);
        for s in &mut element {
            if let Stmt::Read { buf, idx, .. } = s {
                (*buf, *idx) = (*registers, at.clone());
            }
        }
        innermost(&mut store, &mut |body| *body = std::mem::take(&mut element));
        let mut before = edit::place_axes(&self.row, &by, &extents);
        let mut out = vec![tile[0].clone(), fill, sum.clone()];
        match &mut store {
            Stmt::For(f) if matches!(f.body[..], [Stmt::For(_)]) => _ = f.body.splice(0..0, before),
            _ => out.append(&mut before),
        }
        out.push(store);
        // Another tile's values are its own.
        let both = [&self.row[..], &self.element[..]].concat();
        let renaming = walk::Renaming::fresh(kernel, &both);
        renaming.apply(&mut self.row);
        renaming.apply(&mut self.element);
        Some(out)
    }
}

/// Where a nest reads or writes a buffer.
fn touched(s: &Stmt, buffer: BufId) -> Option<Vec<Ix>> {
    let idx = |s: &Stmt| match s {
        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if *buf == buffer => Some(idx.clone()),
        _ => None,
    };
    walk::stmts(std::slice::from_ref(s)).filter_map(idx).last()
}

/// The loops of a nest, with their extents.
fn extents(s: &Stmt) -> BTreeMap<AxisId, i64> {
    walk::loops(std::slice::from_ref(s)).filter_map(|f| Some((f.axis, const_trip(f)? as i64))).collect()
}

/// Shows the body of the innermost loop of a nest.
fn innermost(s: &mut Stmt, f: &mut dyn FnMut(&mut Vec<Stmt>)) {
    let Stmt::For(l) = s else { return };
    match &mut l.body[..] {
        [inner @ Stmt::For(_)] => innermost(inner, f),
        _ => f(&mut l.body),
    }
}
