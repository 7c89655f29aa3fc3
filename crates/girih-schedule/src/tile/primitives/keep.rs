//! `keep`: the copies that a serial loop makes of an operand stay from block to block, as long as the next block reads the same.
//!
//! ```text
//!                                                  local b_kept: f32[64, 2, 32, 32] kept
//!                                                  local b_seen: i64[2] kept zeroed      (copies made; which block column)
//!                                                  if n != b_seen[1]: b_seen[0] = 0; b_seen[1] = n
//! for step in 0..steps: serial                     for step in 0..steps: serial
//!   stage b_pack: f32[2, 32, 32]:                    if step >= b_seen[0]:
//!     b_pack[jp, k, j] = load b[..n..]      -->        b_kept[min(step, 63), jp, k, j] = load b[..n..]
//!                                                      b_seen[0] = min(step + 1, 63)
//!   ... = b_pack[jp, k, j]                           ... = b_kept[min(step, 63), jp, k, j]
//! ```
//!
//! A worker runs blocks one after another, and its next block often takes the same columns of the right operand. The first blocks of a
//! worker find `b_seen` zeroed. Iterations from the last slot on copy into that slot each time.
//!
//! Legal where the loop stands in no other one and counts from 0, the copy depends on the block only by integers that are known before
//! the loop (compared one by one) and by small buffers of integers (compared whole), every iteration reaches the stage, and the block
//! stores nothing before the loop ends: blocks are not ordered, so no load of a later block has to see a store of an earlier one.

use std::collections::BTreeSet;

use crate::loops::ir::*;
use crate::loops::walk::{self, Part};
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::edit::{self, loop_with};
use crate::tile::primitives::hoist::pieces;
use crate::tile::target::Capability;

/// Elements of all buffers that are compared, at most.
const MOST_COMPARED: u64 = 1024;

/// A stage in a serial loop of a kernel's body, and what it depends on.
pub struct Kept<'a> {
    /// The loop's place in the body, and the stage's in the loop.
    pub at: (usize, usize),
    pub looped: &'a For,
    pub buf: BufId,
    /// Integers of the block.
    pub values: Vec<Ix>,
    /// Buffers of integers.
    pub tables: Vec<BufId>,
}

impl<'a> Kept<'a> {
    /// The stage that fills a buffer, if its copies may stay.
    pub fn of(kernel: &'a Kernel, buf: BufId) -> Result<Kept<'a>, String> {
        let found = kernel.body.iter().enumerate().find_map(|(i, s)| match s {
            Stmt::For(f) if f.kind == LoopKind::Serial => {
                let at = f.body.iter().position(|s| matches!(s, Stmt::Stage { buf: b, .. } if *b == buf))?;
                Some(((i, at), &**f))
            }
            _ => None,
        });
        let Some((at, looped)) = found else {
            return Err("no serial loop that stands in no other one stages it".into());
        };
        if !looped.counts_from_zero() {
            return Err("its loop does not count from 0 in steps of 1".into());
        }
        let before = walk::effects(&kernel.body[..=at.0]);
        if !before.stores.is_empty() || before.ordered || before.atomic {
            return Err("the block stores to memory before its loop ends, or orders its accesses".into());
        }
        let Stmt::Stage { body, filled: Filled::Copied, .. } = &looped.body[at.1] else {
            return Err("its copies go on by themselves".into());
        };
        // The copies that are there are those of the first iterations.
        if walk::effects(&looped.body[..at.1]).leaves {
            return Err("an iteration may go on to the next one, or end, before it".into());
        }
        let inside = walk::effects(body);
        if inside.prints || inside.traps || inside.leaves || inside.bufs_written != BTreeSet::from([buf]) {
            return Err("it is filled by more than a copy".into());
        }
        let mut kept = Kept { at, looped, buf, values: vec![], tables: vec![] };
        kept.depend(kernel, body)?;
        Ok(kept)
    }

    /// Collects what the statements of the stage depend on.
    fn depend(&mut self, kernel: &Kernel, body: &[Stmt]) -> Result<(), String> {
        let own = walk::refs(body);
        let looped = walk::refs(&self.looped.body);
        let written = walk::effects(&self.looped.body).bufs_written;
        let given: BTreeSet<ValId> = kernel.params.iter().map(|p| p.val).collect();
        let mut refused = None;
        let mut parts = vec![];
        walk::visit(body, &mut |s| walk::parts(s, &mut |part| parts.push(part)));
        let mut value = |v: ValId, values: &mut Vec<Ix>| {
            if own.vals_defined.contains(&v) || given.contains(&v) {
                return;
            }
            match kernel.vals.get(v).map(|v| v.ty) {
                _ if looped.vals_defined.contains(&v) => refused = Some("it depends on a value that its loop computes"),
                Some(Ty::Num(d)) if d.is_int() => values.push(Ix::Val { val: v, zext: false }),
                _ => refused = Some("it depends on a value of the block that is not an integer"),
            }
        };
        for part in parts {
            match part {
                Part::UseVal(v) | Part::Opnd(Opnd::Val(v)) => value(*v, &mut self.values),
                Part::Ix(ix) => {
                    let moves = |leaf: &Ix| match leaf {
                        Ix::Axis(_) => true,
                        Ix::Val { val, .. } => own.vals_defined.contains(val),
                        _ => false,
                    };
                    let mut alone = vec![];
                    pieces(ix, &moves, &mut |piece| alone.push(piece));
                    for piece in alone {
                        let of_block = piece.any_leaf(&mut |leaf| match leaf {
                            Ix::Block(_) => true,
                            Ix::Val { val, .. } => !given.contains(val),
                            _ => false,
                        });
                        if of_block {
                            piece.vals().iter().for_each(|v| value(*v, &mut vec![]));
                            self.values.push(piece.clone());
                        }
                    }
                }
                Part::ReadBuf(b) if *b != self.buf => {
                    if written.contains(b) {
                        return Err("it reads a buffer that its loop writes".into());
                    }
                    if !self.tables.contains(b) {
                        self.tables.push(*b);
                    }
                }
                _ => {}
            }
        }
        self.values.sort();
        self.values.dedup();
        if let Some(why) = refused {
            return Err(why.into());
        }
        let integers =
            |b: &&BufId| matches!(kernel.bufs[**b].ty, Ty::Num(d) if d.is_int()) && !kernel.bufs[**b].shape.is_empty();
        let size: u64 = self.tables.iter().map(|b| kernel.bufs[*b].shape.iter().product::<u64>()).sum();
        if self.tables.iter().filter(integers).count() < self.tables.len() || size > MOST_COMPARED {
            return Err(format!("it reads buffers that are not integers, at most {MOST_COMPARED} of them"));
        }
        Ok(())
    }
}

/// Keeps the copies of the first `slots` iterations.
pub fn apply(kernel: &mut Kernel, ctx: &Context, buf: BufId, slots: u32) -> Result<(), String> {
    if ctx.target.has(Capability::Threads) {
        return Err("a GPU's blocks do not run one after another on a worker".into());
    }
    let before = kernel.clone();
    let kept = Kept::of(&before, buf)?;
    let name = kernel.bufs[buf].name.clone();
    let of = |zeroed| Space::Kept { zeroed };
    let slab = Buf {
        shape: [&[u64::from(slots)], &kernel.bufs[buf].shape[..]].concat(),
        space: of(false),
        ..kernel.bufs[buf].clone()
    };
    let slab = kernel.bufs.push(Buf { name: format!("{name}_kept"), ..slab });
    let count = 1 + kept.values.len() as u64;
    let long = Ty::Num(DType::I64);
    let seen = kernel.bufs.push(Buf { space: of(true), ..Buf::new(format!("{name}_seen"), long, vec![count]) });

    let mut b = Build { kernel, list: vec![Stmt::Local { buf: slab }, Stmt::Local { buf: seen }] };
    let other = b.differs(&kept, seen);
    let zero = Ix::Const(0);
    let mask = Mask { conds: vec![Cond { lhs: other.now, cmp: Cmp::Ne, rhs: zero.clone() }], vals: vec![] };
    let remember = edit::when(b.kernel, "differs", mask, other.remember, vec![]);
    b.list.extend(remember);
    let list = b.list;

    let step = Ix::Axis(kept.looped.axis);
    let last = Ix::Const(i64::from(slots) - 1);
    let slot = Ix::min(step.clone(), last.clone());
    let mut looped = kept.looped.clone();
    walk::visit_mut(&mut looped.body, &mut |s| {
        if let Stmt::Read { buf: b, idx, .. } | Stmt::Write { buf: b, idx, .. } = s
            && *b == buf
        {
            *b = slab;
            idx.insert(0, slot.clone());
        }
    });
    let Stmt::Stage { body: mut copy, .. } = looped.body.remove(kept.at.1) else {
        return Err("nothing stages it".into());
    };
    let mut after = Build { kernel, list: vec![] };
    let made = after.index(Ix::min(step.clone() + Ix::Const(1), last));
    copy.extend(after.list);
    copy.push(Stmt::Write { buf: seen, idx: vec![zero.clone()], value: Opnd::Val(made) });
    let copies = kernel.vals.push(Val { ty: long, name: "copies".into() });
    let known = Ix::Val { val: copies, zext: false };
    let mask = Mask { conds: vec![Cond { lhs: step, cmp: Cmp::Ge, rhs: known }], vals: vec![] };
    let mut put = vec![Stmt::Read { dst: copies, buf: seen, idx: vec![zero] }];
    put.extend(edit::when(kernel, "missing", mask, copy, vec![]));
    drop(looped.body.splice(kept.at.1..kept.at.1, put));
    kernel.body[kept.at.0] = Stmt::For(Box::new(looped));
    drop(kernel.body.splice(kept.at.0..kept.at.0, list));
    Ok(())
}

struct Build<'a> {
    kernel: &'a mut Kernel,
    list: Vec<Stmt>,
}

/// An expression that is not 0 where the block reads another thing than the one before, and what remembers this one.
struct Other {
    now: Ix,
    remember: Vec<Stmt>,
}

impl Build<'_> {
    fn value(&mut self, ty: Ty, name: &str) -> ValId {
        self.kernel.vals.push(Val { ty, name: name.to_string() })
    }

    fn index(&mut self, ix: Ix) -> ValId {
        let dst = self.value(Ty::Num(DType::I64), "place");
        self.list.push(Stmt::Index { dst, ix });
        dst
    }

    fn compute(&mut self, ty: Ty, op: ScalarOp, args: [Opnd; 2]) -> ValId {
        let dst = self.value(ty, "apart");
        self.list.push(Stmt::Let { dst, op, args: args.to_vec() });
        dst
    }

    fn differs(&mut self, kept: &Kept, seen: BufId) -> Other {
        let long = Ty::Num(DType::I64);
        let forget =
            Stmt::Write { buf: seen, idx: vec![Ix::Const(0)], value: Opnd::Const { dtype: DType::I64, bits: 0 } };
        let (mut all, mut remember) = (vec![], vec![forget]);
        for (at, ix) in kept.values.iter().enumerate() {
            let idx = vec![Ix::Const(at as i64 + 1)];
            let (now, before) = (self.index(ix.clone()), self.value(long, "before"));
            self.list.push(Stmt::Read { dst: before, buf: seen, idx: idx.clone() });
            all.push(self.compute(long, ScalarOp::Xor, [Opnd::Val(now), Opnd::Val(before)]));
            remember.push(Stmt::Write { buf: seen, idx, value: Opnd::Val(now) });
        }
        for table in &kept.tables {
            let old = Buf { space: Space::Kept { zeroed: false }, ..self.kernel.bufs[*table].clone() };
            let ty = old.ty;
            let old = self.kernel.bufs.push(Buf { name: format!("{}_seen", old.name), ..old });
            let apart = self.kernel.bufs.push(Buf::new("apart", ty, vec![]));
            let dtype = if let Ty::Num(d) = ty { d } else { DType::I64 };
            self.list.push(Stmt::Local { buf: old });
            self.list.push(Stmt::Local { buf: apart });
            self.list.push(Stmt::Write { buf: apart, idx: vec![], value: Opnd::Const { dtype, bits: 0 } });
            let mut inner = Build { kernel: self.kernel, list: vec![] };
            let shape = inner.kernel.bufs[*table].shape.clone();
            let axes: Vec<AxisId> =
                shape.iter().map(|_| inner.kernel.axes.push(Axis { name: "at".into(), from: None })).collect();
            let idx: Vec<Ix> = axes.iter().map(|a| Ix::Axis(*a)).collect();
            let [now, before, sum] = ["now", "before", "so_far"].map(|name| inner.value(ty, name));
            inner.list.push(Stmt::Read { dst: now, buf: *table, idx: idx.clone() });
            inner.list.push(Stmt::Read { dst: before, buf: old, idx: idx.clone() });
            let one = inner.compute(ty, ScalarOp::Xor, [Opnd::Val(now), Opnd::Val(before)]);
            inner.list.push(Stmt::Read { dst: sum, buf: apart, idx: vec![] });
            let one = inner.compute(ty, ScalarOp::Or, [Opnd::Val(sum), Opnd::Val(one)]);
            inner.list.push(Stmt::Write { buf: apart, idx: vec![], value: Opnd::Val(one) });
            let nest = |axes: &[AxisId], mut body: Vec<Stmt>, kind| {
                for (axis, extent) in axes.iter().zip(&shape).rev() {
                    body = vec![loop_with(*axis, Ix::Const(*extent as i64), body, |f| f.kind = kind)];
                }
                body
            };
            let copied = inner.value(ty, "now");
            let body = inner.list;
            self.list.extend(nest(&axes, body, LoopKind::Serial));
            let again: Vec<AxisId> = axes.iter().map(|a| edit::new_axis(self.kernel, *a, "")).collect();
            let idx: Vec<Ix> = again.iter().map(|a| Ix::Axis(*a)).collect();
            let copy = vec![
                Stmt::Read { dst: copied, buf: *table, idx: idx.clone() },
                Stmt::Write { buf: old, idx, value: Opnd::Val(copied) },
            ];
            remember.extend(nest(&again, copy, LoopKind::Free));
            let whole = self.value(ty, "apart");
            self.list.push(Stmt::Read { dst: whole, buf: apart, idx: vec![] });
            let whole = self.index(Ix::Val { val: whole, zext: false });
            all.push(whole);
        }
        let nothing = Ix::Const(0);
        let now = all.into_iter().map(|v| Ix::Val { val: v, zext: false });
        let now = now.reduce(|a, b| self.or(a, b)).unwrap_or(nothing);
        Other { now, remember }
    }

    fn or(&mut self, a: Ix, b: Ix) -> Ix {
        let [a, b] = [a, b].map(|ix| self.index(ix));
        let dst = self.compute(Ty::Num(DType::I64), ScalarOp::Or, [Opnd::Val(a), Opnd::Val(b)]);
        Ix::Val { val: dst, zext: false }
    }
}
