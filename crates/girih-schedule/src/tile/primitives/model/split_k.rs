//! `split_k KERNEL.LOOP by N`: the reduction over a loop is computed in parts of N iterations by a kernel of its own; the kernel adds the
//! parts, the first one first, and does what follows the sum.
//!
//! ```text
//! for i in 0..32: free                             for part in 0..8: free
//!   for j in 0..512: free                            for i: for j: free
//!     acc = 0                                          acc = 0
//!     for k in 0..3584: reduce contraction   -->       for k in 0..448: reduce contraction
//!       acc <- fma(x[i, k], w[j, k], acc)                acc <- fma(x[i, part*448 + k], w[j, part*448 + k], acc)
//!     store out[i*512 + j] = acc + b[j]                store acc_parts[part*16384 + i*512 + j] = acc
//!
//!                                                  for i: for j: free
//!                                                    acc = 0
//!                                                    for part in 0..8: reduce
//!                                                      acc <- acc + acc_parts[part*16384 + i*512 + j]
//!                                                    store out[i*512 + j] = acc + b[j]
//! ```
//!
//! Legal for the sums of a nest of contractions, which are split together, for the one reduction of rows ([`super::split_rows`]), and for
//! the stream of keys in attention ([`super::split_keys`]), where the number of iterations is a constant. The part past the end of a
//! contraction reads zeros; that of a row is shorter.

use std::collections::BTreeSet;

use super::{nest_of, split_keys, split_rows};
use crate::base::IdMap;
use crate::graph::Elem;
use crate::index::{Cond, Facts, Mask, simplify};
use crate::loops::ir::*;
use crate::loops::model::{Array, ArrayId, ArrayPlace, Plan, Step, StepArg};
use crate::loops::walk;
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::contraction::num_type;
use crate::tile::edit;
use crate::tile::primitives::line::{LoopRef, loop_at};
use crate::tile::primitives::rfactor::{Fold, Parts};
use crate::tile::rows::ReducedRows;
use crate::tile::steps::{bytes_of, set_arrays};
use crate::tile::tile_nest::*;

/// Splits the reduction over a loop of a step into parts of `length` iterations.
pub fn apply(plan: &mut Plan, ctx: &Context, at: usize, loop_: LoopRef, length: u32) -> Result<(), String> {
    let step = plan.steps[at].clone();
    let f = loop_at(&step.kernel, loop_)?;
    if let Some(rows) = ReducedRows::of(&step.kernel, ctx).filter(|rows| std::ptr::eq(rows.reduce, f)) {
        let made = split_rows::split(rows, &step, &mut plan.arrays, length)?;
        plan.steps.splice(at..=at, made);
        return Ok(());
    }
    if f.stream.is_some() {
        let made = split_keys::split(&step, f, &mut plan.arrays, length)?;
        plan.steps.splice(at..=at, made);
        return Ok(());
    }
    let (place, nest) = nest_of(&step.kernel, loop_)?;
    let split = Split::new(&step, nest, length.into())?;
    // The sums of other nests that were split before.
    let of_it = format!("{}_parts", step.kernel.name);
    let before = plan.steps.iter().filter(|s| s.kernel.name.starts_with(&of_it)).map(|s| s.writes.len()).sum();
    let ids = split.arrays(&step, &mut plan.arrays);
    let first = split.first(&step, place, &ids, &plan.arrays, before);
    let mut rest = step.clone();
    rest.flops = simplify(&Ix::sub(rest.flops, first.flops.clone()), &Facts::new());
    let read: Vec<(ValId, ArrayId)> = split.second(&mut rest.kernel, place).into_iter().zip(ids).collect();
    set_arrays(&mut rest, &read, &plan.arrays);
    rest.reads.extend(read.iter().map(|(_, id)| *id));
    rest.bytes = bytes_of(&rest, &plan.arrays);
    plan.steps.splice(at..=at, [first, rest]);
    Ok(())
}

/// A nest that is to be split.
pub struct Split<'a> {
    nest: OpenNest<'a>,
    parts: u64,
    /// Elements of a part.
    length: u64,
    /// Where an element lies in a part of the results, and how many a part has.
    place: Ix,
    size: Ix,
    facts: Facts,
    /// The operation that the parts are of.
    site: SiteId,
}

impl<'a> Split<'a> {
    fn new(step: &Step, nest: OpenNest<'a>, length: u64) -> Result<Split<'a>, String> {
        let site = Split::legal(step, &nest)?;
        let mut facts = step.kernel.facts();
        let mut terms = nest.sums.iter().map(|sum| Side::of(&sum.roles.k, &sum.loops, &facts).known());
        let k = terms.next().flatten().ok_or("its sum is as long as the launch says")?;
        if terms.any(|other| other != Some(k)) {
            return Err("the sums of its nest are not of one length".to_string());
        }
        let parts = k.div_ceil(length.max(1));
        if parts < 2 {
            return Err(format!("a sum of {k} is one part"));
        }
        for f in &nest.free {
            facts.set_axis(f.axis, &f.lo, &f.hi);
        }
        let place = nest.free.iter().fold(Ix::Const(0), |at, f| Ix::add(Ix::mul(at, f.hi.clone()), Ix::Axis(f.axis)));
        let size = nest.free.iter().fold(Ix::Const(1), |n, f| Ix::mul(n, f.hi.clone()));
        let (place, size) = (simplify(&place, &facts), simplify(&size, &facts));
        Ok(Split { nest, parts, length, place, size, facts, site })
    }

    /// Refuses a nest whose sums cannot be computed apart from what follows them; gives the operation that the parts are of.
    pub fn legal(step: &Step, nest: &OpenNest<'_>) -> Result<SiteId, String> {
        let kernel = &step.kernel;
        check_bounds(&nest.free)?;
        for sum in &nest.sums {
            check_bounds(&sum.loops)?;
        }
        let is_acc = |buf: &BufId| nest.sums.iter().any(|s| s.roles.acc == *buf);
        let known = |s: &Stmt| match s {
            Stmt::Local { buf } | Stmt::Write { buf, .. } | Stmt::Read { buf, .. } => is_acc(buf),
            Stmt::Store { .. } | Stmt::Assert { .. } => true,
            s => edit::is_pure(s),
        };
        let all: Vec<&Stmt> = nest.sums.iter().flat_map(|sum| &sum.inside).chain(&nest.around).copied().collect();
        if !all.iter().all(|s| known(s)) || kernel.body.iter().any(|s| matches!(s, Stmt::Local { .. })) {
            return Err("it keeps values of its own".to_string());
        }
        // The parts are computed before the rest of the kernel runs.
        let array = |base: ValId| step.args.get(kernel.params.iter().position(|p| p.val == base)?);
        let written = |base: ValId| step.writes.iter().any(|id| array(base) == Some(&StepArg::Array(*id)));
        if all.iter().any(|s| matches!(s, Stmt::Load { mem, .. } if written(mem.base))) {
            return Err("it reads what its kernel writes".to_string());
        }
        let site = all.iter().find_map(|s| match s {
            Stmt::Load { site, .. } | Stmt::Store { site, .. } => Some(*site),
            _ => None,
        });
        Ok(site.ok_or("it stores nothing")?)
    }

    /// New arrays for the parts of each sum.
    fn arrays(&self, step: &Step, arrays: &mut IdMap<ArrayId, Array>) -> Vec<ArrayId> {
        let extents = extents(step, &self.nest.free);
        let shape: Vec<Ix> = [Ix::Const(self.parts as i64)].into_iter().chain(extents).collect();
        let sums = self.nest.sums.iter().enumerate().map(|(at, sum)| {
            let dtype = num_type(&step.kernel, sum.roles.acc).unwrap_or(DType::F32);
            let number = if at == 0 { String::new() } else { format!("_{}", at + 1) };
            let name = format!("{}_parts{number}", step.kernel.bufs[sum.roles.acc].name);
            arrays.push(Array {
                name,
                elem: Elem::of(dtype),
                shape: shape.clone(),
                place: ArrayPlace::Temp,
                at_load: false,
            })
        });
        sums.collect()
    }

    /// Where the parts of a result lie.
    fn index(&self, part: AxisId) -> Ix {
        let mut facts = self.facts.clone();
        facts.set_axis(part, &Ix::Const(0), &Ix::Const(self.parts as i64));
        simplify(&Ix::add(Ix::mul(Ix::Axis(part), self.size.clone()), self.place.clone()), &facts)
    }

    /// The step that computes the parts: the nest inside a loop over them, up to its sums.
    fn first(&self, step: &Step, at: usize, ids: &[ArrayId], arrays: &IdMap<ArrayId, Array>, before: usize) -> Step {
        let mut kernel = step.kernel.clone();
        let part = kernel.axes.push(Axis { name: "part".into(), from: None });
        let mut facts = self.facts.clone();
        facts.set_axis(part, &Ix::Const(0), &Ix::Const(self.parts as i64));
        // The statements beside the nest go to the second kernel, but for the values that this one uses.
        kernel.body.truncate(at + 1);
        let mut nest = kernel.body.pop();
        kernel.body.retain(edit::is_pure);
        let late = self.after_the_sums();
        let mut written = vec![];
        if let Some(s) = &mut nest {
            in_bodies(s, self.nest.free.len(), &mut |body| {
                body.retain(|s| match s {
                    Stmt::Store { .. } => false,
                    Stmt::Assert { cond: Opnd::Val(cond), .. } => !late.contains(cond),
                    _ => true,
                });
            });
            let body = replace_sums(s, &self.nest, &mut |sum| self.over_part(&mut kernel, sum, part, &facts));
            if let Some(body) = body {
                for (sum, id) in self.nest.sums.iter().zip(ids) {
                    let (acc, Array { name, elem, .. }) = (sum.roles.acc, &arrays[*id]);
                    let (base, elem) =
                        (kernel.vals.push(Val { ty: Ty::Ptr(elem.dtype), name: name.clone() }), elem.dtype);
                    let value = kernel.vals.push(Val { ty: Ty::Num(elem), name: kernel.bufs[acc].name.clone() });
                    body.push(Stmt::Read { dst: value, buf: acc, idx: vec![] });
                    body.push(Stmt::Store {
                        mem: Mem { base, index: self.index(part), elem },
                        value: Opnd::Val(value),
                        mask: Mask::default(),
                        order: Order::Weak,
                        site: self.site,
                    });
                    written.push((base, *id));
                }
            }
        }
        kernel.body.push(edit::free_loop(part, Ix::Const(self.parts as i64), nest.into_iter().collect()));
        edit::drop_unused(&mut kernel.body);
        kernel.name += "_parts";
        if before > 0 {
            kernel.name += &format!("_{}", before + 1);
        }
        let mut first = Step { kernel, ..step.clone() };
        set_arrays(&mut first, &written, arrays);
        first.writes = ids.to_vec();
        first.bytes = bytes_of(&first, arrays);
        first.flops = simplify(&self.flops(ids, arrays), &Facts::new());
        first
    }

    /// The multiplications and additions of all sums, over the model's symbols.
    fn flops(&self, ids: &[ArrayId], arrays: &IdMap<ArrayId, Array>) -> Ix {
        let one = |(sum, id): (&Sum<'_>, &ArrayId)| {
            let k = sum.loops.iter().fold(Ix::Const(2), |n, f| Ix::mul(n, f.hi.clone()));
            arrays[*id].shape.iter().skip(1).fold(k, |n, d| Ix::mul(n, d.clone()))
        };
        self.nest.sums.iter().zip(ids).map(one).fold(Ix::Const(0), Ix::add)
    }

    /// The values that are made of the sums.
    fn after_the_sums(&self) -> BTreeSet<ValId> {
        let mut late = BTreeSet::new();
        for s in &self.nest.around {
            let made = matches!(s, Stmt::Read { .. }) || reads(s).iter().any(|v| late.contains(v));
            late.extend(walk::def(s).filter(|_| made));
        }
        late
    }

    /// A sum over one part.
    fn over_part(&self, kernel: &mut Kernel, sum: &Sum<'_>, part: AxisId, facts: &Facts) -> Stmt {
        let length = Ix::Const(self.length as i64);
        let k = Side { block: self.length, ..Side::of(&sum.roles.k, &sum.loops, facts) };
        let like = sum.roles.k.last().copied().unwrap_or(sum.loops[0].axis);
        let kk = edit::new_axis(kernel, like, "");
        let mut facts = facts.clone();
        facts.set_axis(kk, &Ix::Const(0), &length);
        let frame = Frame::new(&facts, &[(&k, k.pieces().at(Ix::Axis(part), kk))]);
        let mut list: Vec<Stmt> = sum.inside.iter().map(|s| (*s).clone()).collect();
        let conds: Vec<Cond> = frame.conds.iter().map(|(_, c)| c.clone()).collect();
        for v in [sum.x, sum.y] {
            // A load gives 0 past the end by itself.
            if !conds.is_empty() && !is_direct(&slice(&sum.inside, &[v])) {
                pad(kernel, v, &conds, &mut list);
            }
        }
        let body = frame.put(kernel, &list);
        let roles = Contraction { k: vec![kk], ..sum.roles.clone() };
        edit::loop_with(kk, length, body, |f| {
            f.kind = LoopKind::Reduce;
            f.contraction = Some(roles);
        })
    }

    /// Makes the nest add the parts where its sums were. Gives what stands for the arrays that it reads.
    fn second(&self, kernel: &mut Kernel, at: usize) -> Vec<ValId> {
        let late = self.after_the_sums();
        let mut nest = kernel.body[at].clone();
        in_bodies(&mut nest, self.nest.free.len(), &mut |body| {
            // The first kernel has asserted what is known before the sums.
            body.retain(
                |s| !matches!(s, Stmt::Assert { cond, .. } if !matches!(cond, Opnd::Val(v) if late.contains(v))),
            );
        });
        let mut bases = vec![];
        replace_sums(&mut nest, &self.nest, &mut |sum| {
            let elem = num_type(kernel, sum.roles.acc).unwrap_or(DType::F32);
            let name = format!("{}_parts", kernel.bufs[sum.roles.acc].name);
            let base = kernel.vals.push(Val { ty: Ty::Ptr(elem), name });
            bases.push(base);
            self.all_parts(kernel, sum, base, elem)
        });
        kernel.body[at] = nest;
        edit::drop_unused(&mut kernel.body);
        bases
    }

    /// The sum of the parts.
    fn all_parts(&self, kernel: &mut Kernel, sum: &Sum<'_>, base: ValId, elem: DType) -> Stmt {
        let part = kernel.axes.push(Axis { name: "part".into(), from: None });
        let op = match elem.is_float() {
            true => ScalarOp::AddF { rounding: Rounding::NearestEven, ftz: false },
            false => ScalarOp::AddI,
        };
        let fold = Fold { acc: sum.roles.acc, op, identity: 0, dtype: elem, first: true };
        let mem = Mem { base, index: self.index(part), elem };
        let body = fold.add_part(kernel, vec![], Parts::Array { mem, site: self.site });
        edit::loop_with(part, Ix::Const(self.parts as i64), body, |f| f.kind = LoopKind::Reduce)
    }
}

/// The extents of loops in the names of the model's symbols: the kernel has them by those of its parameters.
pub(super) fn extents(step: &Step, loops: &[&For]) -> Vec<Ix> {
    let symbol = |v: ValId| {
        let at = step.kernel.params.iter().position(|p| p.val == v)?;
        match step.args.get(at)? {
            StepArg::Symbol(s) => Some(s.ix()),
            StepArg::Array(_) => None,
        }
    };
    loops.iter().map(|f| f.hi.subst_vals(&mut |v, _| symbol(v))).collect()
}

/// Shows the bodies of `depth` loops, each the last statement of the one around it, the outermost first.
pub(super) fn in_bodies(s: &mut Stmt, depth: usize, f: &mut dyn FnMut(&mut Vec<Stmt>)) {
    let Stmt::For(l) = s else { return };
    f(&mut l.body);
    if let (2.., Some(last)) = (depth, l.body.last_mut()) {
        in_bodies(last, depth - 1, f);
    }
}

/// Puts what `new` makes of each sum of a nest in its place, and gives the body that the sums stand in.
fn replace_sums<'s>(
    s: &'s mut Stmt,
    nest: &OpenNest<'_>,
    new: &mut dyn FnMut(&Sum<'_>) -> Stmt,
) -> Option<&'s mut Vec<Stmt>> {
    let mut at = s;
    for _ in 1..nest.free.len() {
        let Stmt::For(f) = at else { return None };
        at = f.body.last_mut()?;
    }
    let Stmt::For(innermost) = at else { return None };
    let loops = innermost.body.iter_mut().filter(|s| matches!(s, Stmt::For(_)));
    for (old, sum) in loops.zip(&nest.sums) {
        *old = new(sum);
    }
    Some(&mut innermost.body)
}

/// Makes an operand 0 where the conditions do not hold: what stands there is no term of the sum.
fn pad(kernel: &mut Kernel, v: ValId, conds: &[Cond], list: &mut Vec<Stmt>) {
    let Some(at) = list.iter().position(|s| walk::def(s) == Some(v)) else { return };
    let Some(Val { ty: Ty::Num(dtype), name }) = kernel.vals.get(v).cloned() else { return };
    let (padded, made) = edit::padded(kernel, conds.to_vec(), v, &name, Opnd::Const { dtype, bits: 0 });
    walk::subst_vals(&mut list[at + 1..], &mut |u| (u == v).then_some(Opnd::Val(padded)));
    list.splice(at + 1..at + 1, made);
}
