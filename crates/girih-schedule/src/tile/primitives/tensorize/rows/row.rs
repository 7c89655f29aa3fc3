//! What is done with a row, by the lanes that have it.

use std::collections::{BTreeMap, BTreeSet};

use super::{COLS, LANES, OTHER, Part, Rows};
use crate::loops::ir::*;
use crate::loops::lanes::of_group;
use crate::loops::walk;
use crate::num::ScalarOp;
use crate::tile::accumulator::Thread;
use crate::tile::edit::{self, const_trip};

/// The nest that is being shared.
pub(super) struct Row<'a> {
    rows: &'a Rows,
    axis: AxisId,
    /// The scalars of a row, and the registers that hold them.
    scalars: BTreeMap<BufId, BufId>,
    /// Values that several loops over threads need, and the registers that hold them between.
    kept: BTreeMap<ValId, BufId>,
}

impl<'a> Row<'a> {
    pub(super) fn new(rows: &'a Rows, axis: AxisId) -> Self {
        Row { rows, axis, scalars: BTreeMap::new(), kept: BTreeMap::new() }
    }

    /// Registers for the scalars of a row, and for what several loops over threads need.
    pub(super) fn declare(&mut self, kernel: &mut Kernel, parts: &[Part<'_>], out: &mut Vec<Stmt>) {
        for part in parts {
            if let Part::Alone(Stmt::Local { buf }) = part {
                let own = self.registers(kernel, kernel.bufs[*buf].clone());
                out.push(Stmt::Local { buf: own });
                self.scalars.insert(*buf, own);
            }
        }
        self.keep(kernel, parts, out);
    }

    /// Registers like a scalar, one for each row of a thread.
    fn registers(&self, kernel: &mut Kernel, like: Buf) -> BufId {
        let shape = vec![self.rows.threads(), self.rows.share().each];
        kernel.bufs.push(Buf { space: Space::Private, ..Buf::new(like.name, like.ty, shape) })
    }

    /// Finds the values that are needed behind the fold that follows them.
    fn keep(&mut self, kernel: &mut Kernel, parts: &[Part<'_>], out: &mut Vec<Stmt>) {
        let (mut defined, mut turn) = (BTreeMap::new(), 0);
        let mut needed = BTreeSet::new();
        for part in parts {
            let used = match part {
                Part::Alone(s) => walk::refs_of(s).vals_used,
                Part::Columns(f) => walk::refs(&f.body).vals_used,
                Part::Fold(f, _) => {
                    turn += 1;
                    walk::refs(&f.body).vals_used
                }
            };
            needed.extend(used.into_iter().filter(|v| defined.get(v).is_some_and(|at| *at < turn)));
            match part {
                Part::Alone(s) => drop(walk::def(s).map(|v| defined.insert(v, turn))),
                // What follows is of the next loop.
                Part::Fold(..) => turn += 1,
                Part::Columns(_) => {}
            }
        }
        for v in needed {
            let Val { ty, name } = kernel.vals[v].clone();
            let buf = self.registers(kernel, Buf::new(format!("{name}_r"), ty, vec![]));
            out.push(Stmt::Local { buf });
            self.kept.insert(v, buf);
        }
    }

    /// What stands between folds.
    pub(super) fn between(&self, kernel: &mut Kernel, parts: &[Part<'_>]) -> Result<Stmt, String> {
        let shared = self.used_by_all(parts);
        let stored = parts.iter().filter_map(|p| match p {
            Part::Alone(Stmt::Store { mem, .. }) => Some(mem.base),
            _ => None,
        });
        let stored: BTreeSet<ValId> = stored.collect();
        let raced = |p: &Part<'_>| matches!(p, Part::Alone(Stmt::Load { dst, mem, .. }) if shared.contains(dst) && stored.contains(&mem.base));
        if parts.iter().any(raced) {
            return Err("one lane would store what others still load".to_string());
        }
        self.threads(kernel, |of, kernel, thread, r| {
            let mut body = vec![];
            for part in parts {
                match part {
                    Part::Alone(Stmt::Local { .. }) | Part::Fold(..) => {}
                    Part::Alone(s) => {
                        body.push(of.once((*s).clone(), thread, &shared));
                        if let Some(v) = walk::def(s)
                            && let Some(buf) = of.kept.get(&v)
                        {
                            body.push(Stmt::Write { buf: *buf, idx: of.slot(thread, r), value: Opnd::Val(v) });
                        }
                    }
                    Part::Columns(f) => body.extend(of.over_columns(kernel, f, thread, r)),
                }
            }
            body
        })
    }

    /// Each lane folds what it has, then four lanes what they have.
    pub(super) fn fold(&self, kernel: &mut Kernel, f: &For, combine: &Combine) -> Result<Vec<Stmt>, String> {
        let (Combine { accs, op, .. }, &[acc]) = (combine, &combine.accs[..]) else { return Err(OTHER.to_string()) };
        let CombineOp::Scalar { op: done, identity } = *op;
        let Some(&whole) = self.scalars.get(&acc) else { return Err("a fold is not of its row".to_string()) };
        let (Buf { ty, name, .. }, Ty::Num(dtype)) = (kernel.bufs[accs[0]].clone(), kernel.bufs[acc].ty) else {
            return Err(OTHER.to_string());
        };
        let part = self.registers(kernel, Buf::new(format!("{name}_part"), ty, vec![]));
        let own = Row { scalars: self.scalars.clone(), kept: self.kept.clone(), ..*self };
        let own = Row { scalars: own.scalars.into_iter().chain([(acc, part)]).collect(), ..own };
        let first = own.threads(kernel, |of, kernel, thread, r| {
            let idx = of.slot(thread, r);
            let mut body = vec![Stmt::Write { buf: part, idx, value: Opnd::Const { dtype, bits: identity } }];
            body.extend(of.over_columns(kernel, f, thread, r));
            body
        })?;
        let then = self
            .threads(kernel, |of, kernel, thread, r| of.among_lanes(kernel, (part, whole), (done, *op), thread, r))?;
        Ok(vec![Stmt::Local { buf: part }, first, then])
    }

    /// The parts of four lanes, folded into the whole.
    fn among_lanes(
        &self,
        kernel: &mut Kernel,
        (part, whole): (BufId, BufId),
        (op, combine): (ScalarOp, CombineOp),
        thread: &Thread,
        r: &Ix,
    ) -> Vec<Stmt> {
        let Buf { ty, name, .. } = kernel.bufs[whole].clone();
        let Ix::Axis(t) = thread.number else { return vec![] };
        let acc = kernel.bufs.push(Buf::new(name.clone(), ty, vec![]));
        let mut val = || kernel.vals.push(Val { ty, name: name.clone() });
        let [start, x, old, new, end] = std::array::from_fn(|_| val());
        let q = kernel.axes.push(Axis { name: "q".into(), from: None });
        let from = vec![of_group(t, LANES as i64, Ix::Axis(q)), r.clone()];
        let body = vec![
            Stmt::Read { dst: x, buf: part, idx: from },
            Stmt::Read { dst: old, buf: acc, idx: vec![] },
            Stmt::Let { dst: new, op, args: vec![Opnd::Val(x), Opnd::Val(old)] },
            Stmt::Write { buf: acc, idx: vec![], value: Opnd::Val(new) },
        ];
        let lanes = edit::loop_with(q, Ix::Const(LANES as i64), body, |l| {
            (l.kind, l.place) = (LoopKind::Reduce, Place::Lanes);
            l.combine = Some(Combine { accs: vec![acc], op: combine, ways: LANES as u32 });
        });
        vec![
            Stmt::Local { buf: acc },
            Stmt::Read { dst: start, buf: whole, idx: self.slot(thread, r) },
            Stmt::Write { buf: acc, idx: vec![], value: Opnd::Val(start) },
            lanes,
            Stmt::Read { dst: end, buf: acc, idx: vec![] },
            Stmt::Write { buf: whole, idx: self.slot(thread, r), value: Opnd::Val(end) },
        ]
    }

    /// The columns that a lane has.
    fn over_columns(&self, kernel: &mut Kernel, f: &For, thread: &Thread, r: &Ix) -> Vec<Stmt> {
        let cols = Rows::columns(const_trip(f).unwrap_or(0));
        cols.slots(kernel, f.axis, &thread.col, false, &mut |_, c, col| {
            let mut body = edit::place_axes(&f.body, &[(f.axis, col)].into(), &BTreeMap::new());
            walk::visit_mut(&mut body, &mut |s| {
                if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                    && self.rows.tiles.contains(buf)
                {
                    *idx = vec![thread.number.clone(), r.clone(), c.clone()];
                }
            });
            body
        })
    }

    /// A loop over threads around what `body` makes of one of a thread's rows.
    fn threads(
        &self,
        kernel: &mut Kernel,
        mut body: impl FnMut(&Self, &mut Kernel, &Thread, &Ix) -> Vec<Stmt>,
    ) -> Result<Stmt, String> {
        // The columns play no part in who has which row.
        let tile = self.rows.tile(BufId(0), COLS);
        tile.threads_around(kernel, |kernel, thread| {
            Ok(tile.rows.slots(kernel, self.axis, &thread.row, false, &mut |kernel, r, row| {
                let mut made = body(self, kernel, &thread, &r);
                self.in_registers(kernel, &mut made, &thread, &r);
                edit::place_axes(&made, &[(self.axis, row)].into(), &BTreeMap::new())
            }))
        })
    }

    fn slot(&self, thread: &Thread, r: &Ix) -> Vec<Ix> {
        vec![thread.number.clone(), r.clone()]
    }

    /// A statement of a row that four lanes come by: only the first of them stores, and loads what only stores need. Another lane
    /// might load it when it is stored already.
    fn once(&self, mut s: Stmt, thread: &Thread, shared: &BTreeSet<ValId>) -> Stmt {
        let first = || {
            let lhs = Ix::modulo(thread.number.clone(), Ix::Const(LANES as i64));
            Cond { lhs, cmp: Cmp::Eq, rhs: Ix::Const(0) }
        };
        match &mut s {
            Stmt::Store { mask, .. } => mask.conds.push(first()),
            Stmt::Load { dst, mem, mask, other, .. } if !shared.contains(dst) => {
                mask.conds.push(first());
                // The other lanes may divide by it.
                other.get_or_insert(Opnd::Const { dtype: mem.elem, bits: 1 });
            }
            _ => {}
        }
        s
    }

    /// The values of a row that lanes need for more than what they store of it.
    fn used_by_all(&self, parts: &[Part<'_>]) -> BTreeSet<ValId> {
        let mut used: BTreeSet<ValId> = self.kept.keys().copied().collect();
        for part in parts.iter().rev() {
            match part {
                Part::Columns(f) | Part::Fold(f, _) => used.extend(walk::refs(&f.body).vals_used),
                Part::Alone(Stmt::Store { mem, mask, .. }) => {
                    // A place may be used by anything.
                    let conds = mask.conds.iter().flat_map(|c| [&c.lhs, &c.rhs]);
                    used.extend(conds.chain([&mem.index]).flat_map(|ix| ix.vals()));
                    used.extend(&mask.vals);
                }
                Part::Alone(s) if walk::def(s).is_none_or(|v| used.contains(&v)) => {
                    used.extend(walk::refs_of(s).vals_used)
                }
                Part::Alone(_) => {}
            }
        }
        used
    }

    /// Rows and scalars where a thread has them, and values of other loops.
    fn in_registers(&self, kernel: &mut Kernel, body: &mut Vec<Stmt>, thread: &Thread, r: &Ix) {
        walk::visit_mut(body, &mut |s| {
            if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s {
                if let Some(own) = self.scalars.get(buf) {
                    (*buf, *idx) = (*own, self.slot(thread, r));
                } else if self.rows.lines.contains(buf) {
                    *idx = self.slot(thread, r);
                }
            }
        });
        let refs = walk::refs(body);
        let mut again = BTreeMap::new();
        for (v, buf) in &self.kept {
            if refs.vals_used.contains(v) && !refs.vals_defined.contains(v) {
                let own = kernel.vals[*v].clone();
                let dst = kernel.vals.push(own);
                again.insert(*v, dst);
                body.insert(0, Stmt::Read { dst, buf: *buf, idx: self.slot(thread, r) });
            }
        }
        walk::subst_vals(body, &mut |v| again.get(&v).map(|new| Opnd::Val(*new)));
    }
}
