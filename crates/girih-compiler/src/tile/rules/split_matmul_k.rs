//! `split_matmul_k`

use std::collections::BTreeSet;

use crate::base::IdMap;
use crate::base::rule::{Log, Rule};
use crate::graph::Elem;
use crate::index::{Cond, Facts, Mask, simplify};
use crate::loops::ir::*;
use crate::loops::model::{Array, ArrayId, ArrayPlace, Plan, Step, StepArg};
use crate::loops::walk;
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::blocking::{Blocks, contraction_blocks};
use crate::tile::contraction::num_type;
use crate::tile::edit;
use crate::tile::open::*;
use crate::tile::rules::site_of;
use crate::tile::steps::{pointer, set_params};

pub const RULE: Rule<Plan, Context> = Rule {
    name: "split_matmul_k",
    doc: "\
Cuts the sum of a contraction that has too few blocks for the multiprocessors into parts, which different blocks compute. A
second kernel adds the parts, the first one first, and does what follows the sum.

```text
for i in 0..32: free                             for part in 0..8: free
  for j in 0..512: free                            for i: for j: free
    acc = 0                                          acc = 0
    for k in 0..3584: reduce contraction   -->       for k in 0..448: reduce contraction
      acc <- fma(x[i, k], w[j, k], acc)                acc <- fma(x[i, part*448 + k], w[j, part*448 + k], acc)
    store out[i*512 + j] = acc + b[j]                store acc_parts[part*16384 + i*512 + j] = acc

                                                 for i: for j: free
                                                   acc = 0
                                                   for part in 0..8: reduce
                                                     acc <- acc + acc_parts[part*16384 + i*512 + j]
                                                   store out[i*512 + j] = acc + b[j]
```

There are as many parts as let all blocks run at once, each of at least eight stretches (`tile/blocking.rs`). Parts keep the
type of the accumulator. They are added in one order, so results are the same on every run. Where parts do not divide the sum,
the last one reads zeros past its end.

Knob: `split_k` (how many parts; 1 turns the rule off). With it, products whose rows are known at launch only are split too.

Refuses contractions with blocks for more than half of the multiprocessors, sums of less than sixteen stretches, sums as long
as the launch says, and nests that hold other loops than those of the sum.
",
    run,
};

/// The least stretches of a part. What a second kernel costs is a few microseconds: about as many stretches as two parts
/// of this length save.
const SHORTEST: u64 = 8;

fn run(plan: &Plan, ctx: &Context, log: &mut Log) -> Option<Plan> {
    let mut out = Plan { steps: vec![], ..plan.clone() };
    for step in &plan.steps {
        let mut rest = step.clone();
        let mut read = vec![];
        for (at, s) in step.kernel.body.iter().enumerate() {
            let Some(nest) = OpenNest::of(s) else { continue };
            let site = format!("{}, {}", step.kernel.name, site_of(&step.kernel, s));
            match nest.and_then(|nest| Split::new(&step.kernel, ctx, nest)) {
                Ok(split) => {
                    log.applied(format!("{site}: {} parts of {}", split.parts, split.length));
                    let ids = split.arrays(step, &mut out.arrays);
                    out.steps.push(split.first(step, at, &ids, &out.arrays, read.len()));
                    read.extend(split.second(&mut rest.kernel, at).into_iter().zip(ids));
                }
                Err(why) => log.skipped(site, why),
            }
        }
        if !read.is_empty() {
            set_arrays(&mut rest, &read, &out.arrays);
            rest.reads.extend(read.iter().map(|(_, id)| *id));
            (rest.flops, rest.bytes) = (Ix::Const(0), bytes_of(&rest, &out.arrays));
        }
        out.steps.push(rest);
    }
    (out.steps.len() > plan.steps.len()).then_some(out)
}

/// A nest that is to be split.
struct Split<'a> {
    nest: OpenNest<'a>,
    parts: u64,
    /// Elements of a part.
    length: u64,
    /// Where an element lies in a part of the results, and how many a part has.
    place: Ix,
    size: Ix,
    facts: Facts,
    /// What its stores are for.
    site: SiteId,
}

impl<'a> Split<'a> {
    fn new(kernel: &Kernel, ctx: &Context, nest: OpenNest<'a>) -> Result<Split<'a>, String> {
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
        if !nest.around.iter().all(|s| known(s)) {
            return Err("it keeps values of its own".to_string());
        }
        let stored = nest.around.iter().find_map(|s| match s {
            Stmt::Store { site, .. } => Some(*site),
            _ => None,
        });
        let site = stored.ok_or("it stores nothing")?;
        let mut facts = kernel.facts();
        let (parts, length) = cut(kernel, ctx, &nest, &facts)?;
        for f in &nest.free {
            facts.set_axis(f.axis, &f.lo, &f.hi);
        }
        let place = nest.free.iter().fold(Ix::Const(0), |at, f| Ix::add(Ix::mul(at, f.hi.clone()), Ix::Axis(f.axis)));
        let size = nest.free.iter().fold(Ix::Const(1), |n, f| Ix::mul(n, f.hi.clone()));
        let (place, size) = (simplify(&place, &facts), simplify(&size, &facts));
        Ok(Split { nest, parts, length, place, size, facts, site })
    }

    /// New arrays for the parts of each sum.
    fn arrays(&self, step: &Step, arrays: &mut IdMap<ArrayId, Array>) -> Vec<ArrayId> {
        // The extents are those of the loops, in the names of the kernel's parameters: of the model's symbols here.
        let symbol = |v: ValId| {
            let at = step.kernel.params.iter().position(|p| p.val == v)?;
            match step.args.get(at)? {
                StepArg::Symbol(s) => Some(s.ix()),
                StepArg::Array(_) => None,
            }
        };
        let extents = self.nest.free.iter().map(|f| f.hi.subst_vals(&mut |v, _| symbol(v)));
        let shape: Vec<Ix> = [Ix::Const(self.parts as i64)].into_iter().chain(extents).collect();
        let sums = self.nest.sums.iter().map(|sum| {
            let acc = &step.kernel.bufs[sum.roles.acc];
            let dtype = num_type(&step.kernel, sum.roles.acc).unwrap_or(DType::F32);
            let name = format!("{}_parts", acc.name);
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
        // What stands beside the nest is for the second kernel, but for the values that this one uses.
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
        first
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
        let frame = Frame::new(&facts, &[(&k, k.at(Ix::Axis(part), kk))]);
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
        let acc = sum.roles.acc;
        let mut value = |name: &str| kernel.vals.push(Val { ty: Ty::Num(elem), name: name.into() });
        let (one, old, new) = (value("part"), value("acc"), value("v"));
        let op = match elem.is_float() {
            true => ScalarOp::AddF { rounding: Rounding::NearestEven, ftz: false },
            false => ScalarOp::AddI,
        };
        let body = vec![
            Stmt::Load {
                dst: one,
                mem: Mem { base, index: self.index(part), elem },
                mask: Mask::default(),
                other: None,
                order: Order::Weak,
                site: self.site,
            },
            Stmt::Read { dst: old, buf: acc, idx: vec![] },
            Stmt::Let { dst: new, op, args: vec![Opnd::Val(old), Opnd::Val(one)] },
            Stmt::Write { buf: acc, idx: vec![], value: Opnd::Val(new) },
        ];
        edit::loop_with(part, Ix::Const(self.parts as i64), body, |f| f.kind = LoopKind::Reduce)
    }
}

/// How many parts the sums of a nest are cut into, and how long each is.
fn cut(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>, facts: &Facts) -> Result<(u64, u64), String> {
    if ctx.knobs.split_k == Some(1) {
        return Err("knob off".to_string());
    }
    let first = nest.sums.first().ok_or("its sum is not in this nest")?;
    let roles = first.roles;
    let (m, n) = (Side::of(&roles.m, &nest.free, facts), Side::of(&roles.n, &nest.free, facts));
    let k = Side::of(&roles.k, &first.loops, facts).known().ok_or("its sum is as long as the launch says")?;
    let acc = num_type(kernel, roles.acc).ok_or("its accumulator holds addresses")?;
    let columns = n.known().unwrap_or(1);
    let Blocks { bm, bn, bk } = contraction_blocks(&ctx.target, m.known(), columns, k, acc, false);
    let wanted = match ctx.knobs.split_k {
        Some(parts) => u64::from(parts),
        None => {
            let rest = nest.free.iter().map(|f| f.axis).filter(|a| !roles.m.contains(a) && !roles.n.contains(a));
            let batch = Side::of(&rest.collect::<Vec<_>>(), &nest.free, facts).known();
            let (Some(m), Some(n), Some(batch)) = (m.known(), n.known(), batch) else {
                return Err("how many blocks it has is known at launch only".to_string());
            };
            let blocks = m.div_ceil(bm).saturating_mul(n.div_ceil(bn)).saturating_mul(batch);
            let workers = u64::from(ctx.target.axes.workers);
            let fit = workers.checked_div(blocks).ok_or("it has no elements")?;
            if fit < 2 {
                return Err(format!("it has {blocks} blocks of {bm}x{bn} for {workers} multiprocessors"));
            }
            let most = k / (SHORTEST * bk);
            if most < 2 {
                return Err(format!("a sum of {k} has less than two parts of {SHORTEST} stretches of {bk}"));
            }
            fit.min(most)
        }
    };
    let even = k.div_ceil(wanted).max(1);
    let length = if even >= bk { even.next_multiple_of(bk) } else { even };
    match k.div_ceil(length) {
        parts @ 2.. => Ok((parts, length)),
        _ => Err(format!("a sum of {k} is one part")),
    }
}

/// Shows the bodies of so many loops that stand last in each other, the outermost first.
fn in_bodies(s: &mut Stmt, depth: usize, f: &mut dyn FnMut(&mut Vec<Stmt>)) {
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
    let on = kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "in".into() });
    let padded = kernel.vals.push(Val { ty: Ty::Num(dtype), name });
    walk::subst_vals(&mut list[at + 1..], &mut |u| (u == v).then_some(Opnd::Val(padded)));
    let args = vec![Opnd::Val(on), Opnd::Val(v), Opnd::Const { dtype, bits: 0 }];
    list.insert(at + 1, Stmt::Test { dst: on, mask: Mask { conds: conds.to_vec(), vals: vec![] } });
    list.insert(at + 2, Stmt::Let { dst: padded, op: ScalarOp::Select, args });
}

/// Gives a step the arrays that values of its kernel stand for. What it no longer reads is no argument any more.
fn set_arrays(step: &mut Step, new: &[(ValId, ArrayId)], arrays: &IdMap<ArrayId, Array>) {
    let kernel = &mut step.kernel;
    let used = walk::refs(&kernel.body).vals_used;
    let (mut params, mut args) = (vec![], vec![]);
    for (param, arg) in kernel.params.iter().zip(&step.args) {
        if matches!(arg, StepArg::Symbol(_)) || used.contains(&param.val) {
            params.push((param.clone(), Some(param.val)));
            args.push(*arg);
        }
    }
    for (val, id) in new {
        let Array { name, elem, .. } = &arrays[*id];
        params.push((pointer(name.clone(), elem.dtype), Some(*val)));
        args.push(StepArg::Array(*id));
    }
    set_params(kernel, params);
    step.reads.retain(|id| args.contains(&StepArg::Array(*id)));
    step.args = args;
}

/// The bytes of all that a step reads and writes.
fn bytes_of(step: &Step, arrays: &IdMap<ArrayId, Array>) -> Ix {
    let one = |id: &ArrayId| {
        let Array { shape, elem, .. } = &arrays[*id];
        shape.iter().fold(Ix::Const(elem.dtype.bytes() as i64), |n, d| Ix::mul(n, d.clone()))
    };
    step.reads.iter().chain(&step.writes).fold(Ix::Const(0), |n, id| Ix::add(n, one(id)))
}
