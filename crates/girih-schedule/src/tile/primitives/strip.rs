//! `strip`: a loop that carries an array goes through a strip of its elements at a time, which stay in registers.
//!
//! ```text
//! local t: f32[1024]                               s = 0.0
//! for i in 0..1024: free                           local s_parts: f32[128] register(16)
//!   t[i] = 0.0                                     for p in 0..128: free vector(16)
//! for k in 0..n step 1024: serial                    s_parts[p] = -0.0
//!   for i_1 in 0..1024: free                       for i1 in 0..8: reduce
//!     t[i_1] <- t[i_1] + x[k + i_1]        -->       local t_r: f32[128] register(16)
//! s = 0.0                                            for p in 0..128: free vector(16)
//! for i_2 in 0..1024: reduce combine add(s)            t_r[p] = 0.0
//!   s <- s + t[i_2]                                  for k in 0..n step 1024: serial
//!                                                      for p in 0..128: free vector(16)
//!                                                        t_r[p] <- t_r[p] + x[k + (i1*128 + p)]
//!                                                    for p in 0..128: free vector(16)
//!                                                      s_parts[p] <- s_parts[p] + t_r[p]
//!                                                  for p in 0..128: reduce vector(16) combine add(s) x 8
//!                                                    s <- s + s_parts[p]
//! ```
//!
//! Every element is computed in the same order as before, so its value is the same. Reductions behind the loop take each strip while it
//! is in registers; if other statements read the array, each strip is also written to it. Conditions of loads that turn along the array
//! are tested once for a strip: lanes are turned off one by one only in the strip where a condition turns.
//!
//! The step is legal if the loop only loads, computes and changes arrays, if an element needs no other element of them, and if they begin
//! with values that need no memory. A third number is a number of iterations: if the loop has more, it runs as before.

use std::collections::BTreeSet;

use super::line::LoopRef;
use super::peel::{self, Group};
use super::split::Pieces;
use super::vector;
use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs, refs_of};
use crate::num::ScalarOp;
use crate::tile::Context;
use crate::tile::affine;
use crate::tile::edit;
use crate::tile::target::Capability;

/// The most vectors of a strip.
const MOST_VECTORS: u32 = 16;

/// The numbers of a step.
#[derive(Clone, Copy)]
pub struct Strip {
    pub lanes: u32,
    pub vectors: u32,
    /// The most iterations of the loop; 0 for any number.
    pub most: u32,
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, at: LoopRef, by: Strip) -> Result<(), String> {
    if ctx.target.has(Capability::Threads) {
        return Err("threads have no vector registers".into());
    }
    let powers = by.lanes.is_power_of_two() && by.vectors.is_power_of_two();
    if !powers || !(2..=64).contains(&by.lanes) || by.vectors > MOST_VECTORS {
        let (lanes, vectors) = (by.lanes, by.vectors);
        return Err(format!("{lanes} x {vectors} are not powers of two from 2 to 64 and from 1 to {MOST_VECTORS}"));
    }
    if walk::loops(&kernel.body).filter(|f| f.axis == at.axis).count() != 1 {
        return Err("the loop is gone, or another one has its axis".into());
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut done = Err("the loop is gone".to_string());
    walk::visit_bodies_mut(&mut body, &mut |list| {
        if let Some(place) = list.iter().position(|s| matches!(s, Stmt::For(f) if f.axis == at.axis)) {
            done = stripped(kernel, list, place, by).map(|made| *list = made);
        }
    });
    kernel.body = body;
    done
}

/// A loop that carries arrays, and the statements beside it that go into its strips.
pub struct Carried {
    /// Where the loop stands in its list.
    place: usize,
    /// The free loop in it that goes through the elements.
    pub inner: For,
    pub elements: i64,
    /// The arrays that it changes.
    pub arrays: Vec<BufId>,
    /// The loops that fill them before.
    starts: Vec<usize>,
    /// The reductions behind it that fold them.
    pub folds: Vec<usize>,
    /// The statements behind the loop that give accumulators their first values.
    first: Vec<usize>,
    /// The arrays that other statements behind it use.
    pub kept: Vec<BufId>,
}

/// Returns the free loop in a serial one that changes arrays, and the arrays; `None` if it changes none.
fn changes(kernel: &Kernel, f: &For) -> Option<(For, Vec<BufId>)> {
    let Some(Stmt::For(inner)) = f.body.last() else { return None };
    let of = refs(&inner.body);
    let array = |b: &&BufId| of.bufs_read.contains(b) && !kernel.bufs[**b].shape.is_empty();
    let arrays: Vec<BufId> = of.bufs_written.iter().filter(array).copied().collect();
    let serial = f.kind == LoopKind::Serial && f.place == Place::None;
    (serial && inner.is_free_unplaced() && !arrays.is_empty()).then(|| ((**inner).clone(), arrays))
}

impl Carried {
    /// Finds the arrays that the loop at a place of a list carries; `None` if it changes no array element by element.
    pub fn of(kernel: &Kernel, list: &[Stmt], place: usize) -> Option<Result<Carried, &'static str>> {
        let Some(Stmt::For(f)) = list.get(place) else { return None };
        let (inner, arrays) = changes(kernel, f)?;
        Some(Self::checked(kernel, list, place, inner, arrays))
    }

    fn checked(
        kernel: &Kernel,
        list: &[Stmt],
        place: usize,
        inner: For,
        arrays: Vec<BufId>,
    ) -> Result<Carried, &'static str> {
        let Stmt::For(f) = &list[place] else { return Err("the loop is gone") };
        let elements = edit::const_trip(&inner).and_then(|n| i64::try_from(n).ok());
        let elements = elements.ok_or("how many elements an iteration goes through is not a constant")?;
        let before = f.body.split_last().map_or(&[][..], |(_, before)| before);
        let own = |b: &BufId| arrays.contains(b);
        if !before.iter().all(edit::is_pure) || refs(before).bufs_read.iter().any(own) {
            return Err("an iteration holds more than values and a loop over the elements");
        }
        if !inner.body.iter().all(|s| edit::is_pure(s) || matches!(s, Stmt::Write { buf, .. } if own(buf))) {
            return Err("its elements are not only loaded, computed and carried");
        }
        let declared = |b: &BufId| list[..place].iter().any(|s| matches!(s, Stmt::Local { buf } if buf == b));
        if !arrays.iter().all(|b| declared(b) && kernel.bufs[*b].space == Space::Scratch) {
            return Err("what it carries does not begin before it");
        }
        if !each_own(kernel, &inner, &arrays) {
            return Err("an element needs others of the iteration before");
        }
        if vector::legal(kernel, &inner).is_err() {
            return Err("its elements do not run in vectors");
        }
        let mut out =
            Carried { place, inner, elements, arrays, starts: vec![], folds: vec![], first: vec![], kept: vec![] };
        out.find_starts(kernel, &list[..place])?;
        out.find_folds(kernel, list);
        Ok(out)
    }

    fn mentions(&self, s: &Stmt) -> Vec<BufId> {
        let uses = walk::buffer_uses(std::slice::from_ref(s));
        self.arrays.iter().copied().filter(|b| uses.contains_key(b)).collect()
    }

    /// Returns the loop that a statement is, if it goes through all elements and an iteration touches only its own.
    fn over_all<'a>(&self, kernel: &Kernel, s: &'a Stmt) -> Option<&'a For> {
        let Stmt::For(f) = s else { return None };
        let all = edit::const_trip(f) == u64::try_from(self.elements).ok() && f.place == Place::None;
        (all && each_own(kernel, f, &self.arrays)).then_some(f)
    }

    fn find_starts(&mut self, kernel: &Kernel, before: &[Stmt]) -> Result<(), &'static str> {
        const WHY: &str = "what it carries does not begin with values of its elements";
        let mut filled = BTreeSet::new();
        for (at, s) in before.iter().enumerate() {
            if matches!(s, Stmt::Local { .. }) || self.mentions(s).is_empty() {
                continue;
            }
            let f = self.over_all(kernel, s).filter(|f| f.kind == LoopKind::Free).ok_or(WHY)?;
            for s in &f.body {
                match s {
                    Stmt::Write { buf, .. } if self.arrays.contains(buf) => _ = filled.insert(*buf),
                    Stmt::Let { .. } | Stmt::Index { .. } => {}
                    _ => return Err(WHY),
                }
            }
            self.starts.push(at);
        }
        if filled.len() == self.arrays.len() { Ok(()) } else { Err(WHY) }
    }

    /// Finds the reductions that may move up to the loop, past what stands between.
    fn find_folds(&mut self, kernel: &Kernel, list: &[Stmt]) {
        let mut kept = BTreeSet::new();
        for (at, s) in list.iter().enumerate().skip(self.place + 1) {
            let of = self.mentions(s);
            if of.is_empty() {
                continue;
            }
            match self.fold(kernel, list, at).filter(|_| kept.is_empty()) {
                Some(first) => {
                    self.folds.push(at);
                    self.first.extend(first);
                }
                None => kept.extend(of),
            }
        }
        self.first.sort_unstable();
        self.kept = kept.into_iter().collect();
    }

    /// Returns the places of the statements that move up with a reduction, which give its accumulators their first values; `None` if it
    /// may not move.
    fn fold(&self, kernel: &Kernel, list: &[Stmt], at: usize) -> Option<Vec<usize>> {
        let f = self.over_all(kernel, &list[at])?;
        let Combine { accs, .. } = f.combine.as_ref()?;
        let straight = |s: &Stmt| match s {
            Stmt::Let { .. } | Stmt::Index { .. } => true,
            Stmt::Read { buf, .. } => accs.contains(buf) || self.arrays.contains(buf),
            Stmt::Write { buf, .. } => accs.contains(buf),
            _ => false,
        };
        let scalars = accs.iter().all(|b| kernel.bufs[*b].shape.is_empty());
        if f.kind != LoopKind::Reduce || !scalars || !f.body.iter().all(straight) || vector::legal(kernel, f).is_err() {
            return None;
        }
        let (of, mut first) = (refs(&f.body), vec![]);
        for (between, s) in list.iter().enumerate().take(at).skip(self.place + 1) {
            let uses = refs_of(s);
            if !uses.vals_defined.is_disjoint(&of.vals_used) {
                return None;
            }
            let touches = |set: &BTreeSet<BufId>| accs.iter().any(|acc| set.contains(acc));
            let starts = match s {
                Stmt::Local { buf } | Stmt::Write { buf, value: Opnd::Const { .. }, .. } => accs.contains(buf),
                _ => false,
            };
            if starts {
                first.push(between);
            } else if touches(&uses.bufs_read) || touches(&uses.bufs_written) || touches(&uses.bufs_defined) {
                return None;
            }
        }
        Some(first)
    }
}

/// Returns true if a loop touches these arrays only at the element that its axis counts, and goes through all of them.
fn each_own(kernel: &Kernel, f: &For, arrays: &[BufId]) -> bool {
    let extent = edit::const_trip(f);
    let own = |buf: &BufId, idx: &[Ix]| {
        let b = &kernel.bufs[*buf];
        let mut counted = 0;
        let bare = idx.iter().zip(&b.shape).all(|(ix, n)| match ix {
            Ix::Axis(a) => {
                counted += 1;
                *a == f.axis && Some(*n) == extent
            }
            ix => *n == 1 && ix.is_const(0),
        });
        bare && counted == 1 && matches!(b.ty, Ty::Num(_))
    };
    f.body.iter().all(|s| match s {
        Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } => !arrays.contains(buf) || own(buf, idx),
        s => walk::bodies(s).is_empty(),
    })
}

/// The condition that a loop has at most `most` iterations.
pub fn at_most(f: &For, most: u32) -> Option<Cond> {
    let most = f.step.as_const()?.checked_mul(most.into())?;
    Some(Cond::new(Ix::sub(f.hi.clone(), f.lo.clone()), Cmp::Le, Ix::Const(most)))
}

/// The list with the loop in strips.
fn stripped(kernel: &mut Kernel, list: &[Stmt], place: usize, by: Strip) -> Result<Vec<Stmt>, String> {
    let found = Carried::of(kernel, list, place).ok_or("it changes no array element by element")??;
    let size = i64::from(by.lanes * by.vectors);
    if found.elements % size != 0 {
        return Err(format!("strips of {size} do not divide {} elements", found.elements));
    }
    let Stmt::For(serial) = &list[place] else { return Err("the loop is gone".into()) };
    let few = match by.most {
        0 => None,
        most => Some(at_most(serial, most).ok_or("its step is not a constant, or too large")?),
    };
    let mut made = Strips { list, found: &found, by, size }.made(kernel);
    let local = |s: &Stmt| matches!(s, Stmt::Local { buf } if found.arrays.contains(buf) && !found.kept.contains(buf));
    let taken = |at: usize| at == place || found.starts.contains(&at) || found.folds.contains(&at);
    if let Some(few) = few {
        let stays = list.iter().enumerate().filter(|(at, s)| taken(*at) || local(s)).map(|(_, s)| s.clone()).collect();
        let then = walk::clone_fresh(kernel, &made);
        made = edit::when(kernel, "few", Mask { conds: vec![few], vals: vec![] }, then, stays);
    }
    let mut out = vec![];
    for (at, s) in list.iter().enumerate() {
        if at == place {
            out.extend(found.first.iter().map(|at| list[*at].clone()));
            out.append(&mut made);
        } else if !taken(at) && !local(s) && !found.first.contains(&at) {
            out.push(s.clone());
        }
    }
    Ok(out)
}

struct Strips<'a> {
    list: &'a [Stmt],
    found: &'a Carried,
    by: Strip,
    size: i64,
}

impl Strips<'_> {
    fn made(&self, kernel: &mut Kernel) -> Vec<Stmt> {
        let Carried { inner, elements, arrays, kept, .. } = self.found;
        let pieces = Pieces::new(Ix::Const(*elements), self.size);
        let over = edit::new_axis(kernel, inner.axis, "1");
        let registers: Vec<(BufId, BufId)> = arrays.iter().map(|b| (*b, self.register(kernel, *b, "_r"))).collect();
        let (mut before, mut body, mut behind) = (vec![], vec![], vec![]);
        body.extend(registers.iter().map(|(_, r)| Stmt::Local { buf: *r }));
        for at in &self.found.starts {
            if let Stmt::For(f) = &self.list[*at] {
                body.push(self.strip(kernel, f, &pieces, over, &registers));
            }
        }
        if let Stmt::For(serial) = &self.list[self.found.place] {
            let mut own = serial.body.clone();
            own.pop();
            let strip = self.strip(kernel, inner, &pieces, over, &registers);
            own.extend(self.tested(kernel, strip));
            body.push(serial.around(own));
        }
        for at in &self.found.folds {
            let Stmt::For(f) = &self.list[*at] else { continue };
            let Some(Combine { accs, op, .. }) = &f.combine else { continue };
            let CombineOp::Scalar { op: apply, identity } = *op;
            let parts: Vec<(BufId, BufId)> = accs.iter().map(|b| (*b, self.register(kernel, *b, "_parts"))).collect();
            let into: Vec<_> = registers.iter().chain(&parts).copied().collect();
            body.push(self.strip(kernel, f, &pieces, over, &into));
            for (acc, part) in parts {
                let axis = edit::new_axis(kernel, f.axis, "2");
                let value = Opnd::Const { dtype: kernel.bufs[acc].ty.held(), bits: identity };
                before.push(Stmt::Local { buf: part });
                before.push(self.vectors(axis, vec![Stmt::Write { buf: part, idx: vec![Ix::Axis(axis)], value }]));
                behind.push(self.combined(kernel, f, acc, part, apply, identity));
            }
        }
        for (array, register) in registers.iter().filter(|(b, _)| kept.contains(b)) {
            body.push(self.written(kernel, *array, *register, &pieces, over));
        }
        let strips = edit::loop_with(over, pieces.count(&Facts::new()), body, |f| {
            f.kind = if before.is_empty() { LoopKind::Free } else { LoopKind::Reduce };
        });
        before.into_iter().chain([strips]).chain(behind).collect()
    }

    /// The registers of a strip of an array, or of the partial results of an accumulator.
    fn register(&self, kernel: &mut Kernel, of: BufId, suffix: &str) -> BufId {
        let Buf { name, ty, .. } = &kernel.bufs[of];
        let (name, ty) = (format!("{name}{suffix}"), *ty);
        let space = Space::Register { lanes: self.by.lanes };
        kernel.bufs.push(Buf { space, ..Buf::new(name, ty, vec![self.size as u64]) })
    }

    fn vectors(&self, axis: AxisId, body: Vec<Stmt>) -> Stmt {
        let lanes = self.by.lanes;
        edit::loop_with(axis, Ix::Const(self.size), body, |f| f.place = Place::Vector { lanes })
    }

    /// A loop over the elements as one over those of a strip, with registers in place of buffers.
    fn strip(&self, kernel: &mut Kernel, f: &For, pieces: &Pieces, over: AxisId, registers: &[(BufId, BufId)]) -> Stmt {
        let axis = edit::new_axis(kernel, f.axis, "2");
        let mut body =
            edit::place_axes(&f.body, &[(f.axis, pieces.at(over, axis))].into(), &[(axis, self.size)].into());
        let mut facts = Facts::new();
        facts.set_axis(over, &Ix::Const(0), &pieces.count(&Facts::new()));
        facts.set_axis(axis, &Ix::Const(0), &Ix::Const(self.size));
        walk::map_ixs(&mut body, &mut |ix| {
            if ix.has_axis(over) || ix.has_axis(axis) {
                *ix = simplify(ix, &facts);
            }
        });
        let fresh = walk::Renaming::fresh(kernel, &body);
        fresh.apply(&mut body);
        for s in &mut body {
            if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                && let Some((_, register)) = registers.iter().find(|(of, _)| of == buf)
            {
                (*buf, *idx) = (*register, vec![Ix::Axis(axis)]);
            }
        }
        self.vectors(axis, body)
    }

    /// Makes copies of a strip for two cases: the conditions of its loads hold for all elements, or fail for all. The strip itself is left
    /// for the third case.
    fn tested(&self, kernel: &mut Kernel, strip: Stmt) -> Vec<Stmt> {
        let Stmt::For(f) = &strip else { return vec![strip] };
        let varying = refs(&f.body).vals_defined;
        let (mut group, mut all) = (Group::default(), vec![]);
        for cond in f.body.iter().filter_map(walk::mask).flat_map(|m| &m.conds) {
            if let Some(test) = self.at_end(cond, f.axis, &varying).filter(|_| !group.conds.contains(cond)) {
                group.conds.push(cond.clone());
                all.push(test);
            }
        }
        let none: Vec<Cond> = match &group.conds[..] {
            [] => return vec![strip],
            [one] => self.at_end(&one.negate(), f.axis, &varying).into_iter().collect(),
            _ => vec![],
        };
        let copy = |kernel: &mut Kernel, change: &dyn Fn(&mut Vec<Stmt>)| {
            let mut copy = f.clone();
            change(&mut copy.body);
            edit::choose(&mut copy.body);
            edit::drop_unused(&mut copy.body);
            walk::clone_fresh(kernel, &[Stmt::For(copy)])
        };
        let whole = copy(kernel, &|body| peel::assume(body, &group));
        let mut rest = vec![strip.clone()];
        if !none.is_empty() {
            let off = copy(kernel, &|body| peel::deny(body, &group));
            rest = edit::when(kernel, "off", Mask { conds: none, vals: vec![] }, off, rest);
        }
        edit::when(kernel, "whole", Mask { conds: all, vals: vec![] }, whole, rest)
    }

    /// The condition at the element of a strip where it is hardest to meet: if it holds there, it holds for all.
    fn at_end(&self, cond: &Cond, axis: AxisId, varying: &BTreeSet<ValId>) -> Option<Cond> {
        let slope = |ix| affine::coef(ix, axis, varying).and_then(|c| c.as_const());
        let by = slope(&cond.lhs)?.checked_sub(slope(&cond.rhs)?)?;
        let last = match cond.cmp {
            Cmp::Lt | Cmp::Le => by > 0,
            Cmp::Gt | Cmp::Ge => by < 0,
            _ => return None,
        };
        let at = Ix::Const(if last { self.size - 1 } else { 0 });
        let place = |ix: &Ix| ix.subst_axes(&mut |a| (a == axis).then(|| at.clone()));
        Some(Cond::new(place(&cond.lhs), cond.cmp, place(&cond.rhs)))
    }

    /// Folds the partial results of an accumulator.
    fn combined(&self, kernel: &mut Kernel, f: &For, acc: BufId, part: BufId, op: ScalarOp, identity: u64) -> Stmt {
        let axis = edit::new_axis(kernel, f.axis, "2");
        let ty = kernel.bufs[acc].ty;
        let [one, old, new] = ["part", "acc", "v"].map(|name| kernel.vals.push(Val { ty, name: name.into() }));
        let body = vec![
            Stmt::Read { dst: one, buf: part, idx: vec![Ix::Axis(axis)] },
            Stmt::Read { dst: old, buf: acc, idx: vec![] },
            Stmt::Let { dst: new, op, args: vec![Opnd::Val(old), Opnd::Val(one)] },
            Stmt::Write { buf: acc, idx: vec![], value: Opnd::Val(new) },
        ];
        let Strip { lanes, vectors, .. } = self.by;
        edit::loop_with(axis, Ix::Const(self.size), body, |f| {
            (f.kind, f.place) = (LoopKind::Reduce, Place::Vector { lanes });
            f.combine = Some(Combine { accs: vec![acc], op: CombineOp::Scalar { op, identity }, ways: vectors });
        })
    }

    /// Writes a strip to its array.
    fn written(&self, kernel: &mut Kernel, array: BufId, register: BufId, pieces: &Pieces, over: AxisId) -> Stmt {
        let axis = edit::new_axis(kernel, self.found.inner.axis, "2");
        let Buf { name, ty, shape, .. } = kernel.bufs[array].clone();
        let value = kernel.vals.push(Val { ty, name });
        let at = |n: &u64| if *n == 1 { Ix::Const(0) } else { pieces.at(over, axis) };
        self.vectors(
            axis,
            vec![
                Stmt::Read { dst: value, buf: register, idx: vec![Ix::Axis(axis)] },
                Stmt::Write { buf: array, idx: shape.iter().map(at).collect(), value: Opnd::Val(value) },
            ],
        )
    }
}
