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
use crate::tile::blocking::{Blocks, Extents, Types, blocks_of};
use crate::tile::contraction::num_type;
use crate::tile::edit;
use crate::tile::heuristics::named;
use crate::tile::heuristics::split_matmul_k::SHORTEST;
use crate::tile::matrix;
use crate::tile::primitives::rfactor::{Fold, Parts};
use crate::tile::rules::site_of;
use crate::tile::steps::{bytes_of, set_arrays};
use crate::tile::tile_nest::*;

pub const RULE: Rule<Plan, Context> = Rule {
    name: "split_matmul_k",
    doc: "\
Splits the sum of a contraction that has too few blocks for the multiprocessors into parts, which different blocks compute. A
second kernel adds the parts, the first one first, and applies the operations that follow the sum.

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

The number of parts lets all blocks run at once, each with at least eight stretches (`tile/blocking.rs`); it is up to a quarter
less if that divides the sum. Otherwise the last part reads zeros past the end. Parts keep the type of the accumulator. They are
added in one order, so results are the same on every run, and the operations after the sum see all of it.

Knob: `split_k` (the number of parts; 1 turns the rule off). With it, products whose rows are known only at launch are split too.

Refuses contractions of kernels that have blocks for more than half of the multiprocessors, sums of less than sixteen
stretches, sums whose length only the launch knows, and nests that hold other loops than those of the sum.
",
    run,
};

fn run(plan: &Plan, ctx: &Context, log: &mut Log) -> Option<Plan> {
    let mut out = Plan { steps: vec![], ..plan.clone() };
    for step in &plan.steps {
        let mut rest = step.clone();
        let mut read = vec![];
        let all = blocks_of_all(&step.kernel, ctx);
        for (at, s) in step.kernel.body.iter().enumerate() {
            let Some(nest) = OpenNest::of(s) else { continue };
            let site = format!("{}, {}", step.kernel.name, site_of(&step.kernel, s));
            match nest.and_then(|nest| Split::new(step, ctx, nest, all)) {
                Ok(split) => {
                    log.applied(format!("{site}: {} parts of {}", split.parts, split.length));
                    let ids = split.arrays(step, &mut out.arrays);
                    let first = split.first(step, at, &ids, &out.arrays, read.len());
                    rest.flops = simplify(&Ix::sub(rest.flops, first.flops.clone()), &Facts::new());
                    out.steps.push(first);
                    read.extend(split.second(&mut rest.kernel, at).into_iter().zip(ids));
                }
                Err(why) => log.skipped(site, why),
            }
        }
        if !read.is_empty() {
            set_arrays(&mut rest, &read, &out.arrays);
            rest.reads.extend(read.iter().map(|(_, id)| *id));
            rest.bytes = bytes_of(&rest, &out.arrays);
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
    /// The operation that the parts are of.
    site: SiteId,
}

impl<'a> Split<'a> {
    fn new(step: &Step, ctx: &Context, nest: OpenNest<'a>, all_blocks: u64) -> Result<Split<'a>, String> {
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
        let site = site.ok_or("it stores nothing")?;
        let mut facts = kernel.facts();
        let (parts, length) = cut(kernel, ctx, &nest, all_blocks)?;
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

/// The blocks of a product that is not split.
struct Grid {
    size: Blocks,
    /// How many there are, where that is known.
    count: Option<u64>,
    /// Elements of the sum.
    k: u64,
}

impl Grid {
    fn of(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>) -> Result<Grid, String> {
        let facts = kernel.facts();
        let first = nest.sums.first().ok_or("its sum is not in this nest")?;
        let roles = first.roles;
        let side = |axes: &[AxisId]| Side::of(axes, &nest.free, &facts).known();
        let k = Side::of(&roles.k, &first.loops, &facts).known().ok_or("its sum is as long as the launch says")?;
        let acc = num_type(kernel, roles.acc).ok_or("its accumulator holds addresses")?;
        let role = |a: &AxisId| roles.m.contains(a) || roles.n.contains(a);
        let batch: Vec<AxisId> = nest.free.iter().map(|f| f.axis).filter(|a| !role(a)).collect();
        let (m, n, batch) = (side(&roles.m), side(&roles.n), side(&batch));
        let operand = matrix::multiplied(ctx, first.operand(kernel).unwrap_or(acc));
        let extents = Extents { batch: batch.unwrap_or(1), m, n: n.unwrap_or(1), k };
        let size = blocks_of(ctx, extents, Types { operand, acc }, false);
        let of = |extent: Option<u64>, block: u64| extent.map(|n| n.div_ceil(block));
        let counts = [of(m, size.bm), of(n, size.bn), batch];
        let count = counts.into_iter().try_fold(1u64, |all, n| n.map(|n| all.saturating_mul(n)));
        Ok(Grid { size, count, k })
    }
}

/// The blocks of all products of a kernel, which run side by side; a product whose number of blocks is not known does not count.
fn blocks_of_all(kernel: &Kernel, ctx: &Context) -> u64 {
    let count = |s: &Stmt| Grid::of(kernel, ctx, &OpenNest::of(s)?.ok()?).ok()?.count;
    kernel.body.iter().filter_map(count).fold(0, u64::saturating_add)
}

/// How many parts the sums of a nest are cut into, and how long each is. `all` are the blocks of its kernel.
fn cut(kernel: &Kernel, ctx: &Context, nest: &OpenNest<'_>, all: u64) -> Result<(u64, u64), String> {
    let Grid { size: Blocks { bm, bn, bk }, count, k } = Grid::of(kernel, ctx, nest)?;
    let wanted = match ctx.knobs.split_k {
        Some(1) => return Err("knob off".to_string()),
        Some(parts) => u64::from(parts),
        None => {
            let blocks = count.ok_or("how many blocks it has is known at launch only")?;
            let workers = u64::from(ctx.target.axes.workers);
            let fit = workers.checked_div(all).ok_or("it has no elements")?;
            if fit < 2 {
                let beside = if all > blocks { format!(" beside {} others", all - blocks) } else { String::new() };
                return Err(format!("it has {blocks} blocks of {bm}x{bn}{beside} for {workers} multiprocessors"));
            }
            let most = fit.min(k / (SHORTEST * bk));
            if most < 2 {
                return Err(format!("a sum of {k} has less than two parts of {} stretches of {bk}", named!(SHORTEST)));
            }
            // No part needs a mask where they are whole stretches: a few parts less are worth that.
            let whole = |parts: &u64| k.is_multiple_of(parts * bk);
            let few = (most - most / 4).max(2);
            (few..=most).rev().find(whole).unwrap_or(most)
        }
    };
    let even = k.div_ceil(wanted).max(1);
    let length = if even >= bk { even.next_multiple_of(bk) } else { even };
    match k.div_ceil(length) {
        parts @ 2.. => Ok((parts, length)),
        _ => Err(format!("a sum of {k} is one part")),
    }
}

/// Shows the bodies of `depth` loops, each the last statement of the one around it, the outermost first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::print::{Dialect, print};
    use crate::tile::tests::{gpu, plan_of, split_by};

    fn split(plan: &Plan, ctx: &Context) -> (Option<Plan>, Log) {
        split_by(run, plan, ctx)
    }

    #[test]
    fn parts_and_their_sum_are_two_kernels() {
        let (_, plan) = plan_of("torch.nn.Linear(3584, 512)(torch.randn(32, 3584))");
        let (out, log) = split(&plan, &gpu(&[]));
        assert_eq!(log.applied, ["k_linear, contraction into dot: 8 parts of 448"]);
        let out = out.unwrap();
        let text: String = out.steps.iter().map(|s| print(&s.kernel, Dialect::Loop)).collect();
        let want = r#"loop kernel k_linear_parts(x: ptr f32, weight: ptr f32, dot_parts: ptr f32) open:
  for part in 0..8: free
    for i in 0..32: free
      for j in 0..512: free
        local dot: f32
        dot = 0.0
        for k in 0..448: reduce contraction m=i n=j k=k a=x_1 b=weight_1 acc=dot
          x_1: f32 = load x[i*3584 + part*448 + k] !"aten.linear"
          weight_1: f32 = load weight[j*3584 + part*448 + k] !"aten.linear"
          acc: f32 = dot
          v: f32 = fma(x_1, weight_1, acc)
          dot = v
        dot_1: f32 = dot
        store dot_parts[part*16384 + i*512 + j] = dot_1 !"aten.linear"
loop kernel k_linear(bias: ptr f32, linear: ptr f32, dot_parts: ptr f32) open:
  for i in 0..32: free
    for j in 0..512: free
      local dot: f32
      dot = 0.0
      for part in 0..8: reduce
        part_1: f32 = load dot_parts[part*16384 + i*512 + j] !"aten.linear"
        acc: f32 = dot
        v: f32 = acc + part_1
        dot = v
      dot_1: f32 = dot
      bias_1: f32 = load bias[j] !"aten.linear"
      linear_1: f32 = dot_1 + bias_1
      store linear[i*512 + j] = linear_1 !"aten.linear"
"#;
        assert_eq!(text, want);
        let [first, second] = &out.steps[..] else { panic!("{} steps", out.steps.len()) };
        assert!(split(&out, &gpu(&[])).0.is_none());
        let parts = first.writes[0];
        assert_eq!((&first.writes, second.reads.contains(&parts)), (&vec![parts], true));
        assert_eq!((&first.flops, &second.flops), (&plan.steps[0].flops, &Ix::Const(0)));
        let shape = [8, 32, 512].map(Ix::Const);
        assert_eq!((&out.arrays[parts].shape[..], out.arrays[parts].place), (&shape[..], ArrayPlace::Temp));
    }

    /// Two products of one kernel: each has parts of its own, and the work is shared out.
    #[test]
    fn products_of_one_kernel_are_split_one_by_one() {
        let text = "x = torch.randn(6, 300); (torch.nn.Linear(300, 20)(x).relu(), torch.nn.Linear(300, 12)(x))";
        let (_, plan) = plan_of(text);
        let out = split(&plan, &gpu(&["split_k=3"])).0.unwrap();
        let names: Vec<&str> = out.steps.iter().map(|s| s.kernel.name.as_str()).collect();
        let whole = &plan.steps[0].kernel.name;
        assert_eq!(names, [&format!("{whole}_parts"), &format!("{whole}_parts_2"), whole]);
        let work: Vec<&Ix> = out.steps.iter().map(|s| &s.flops).collect();
        assert_eq!(work, [&Ix::Const(2 * 6 * 20 * 300), &Ix::Const(2 * 6 * 12 * 300), &Ix::Const(0)]);
    }

    /// A row that is looked up is checked once, and before it is read.
    #[test]
    fn assertions_stay_where_they_guard() {
        let text = "torch.nn.functional.embedding(torch.randint(0, 5, (6,)), torch.randn(5, 64)) @ torch.randn(64, 8)";
        let (_, plan) = plan_of(text);
        let (out, _) = split(&plan, &gpu(&["split_k=2"]));
        let text: Vec<String> = out.unwrap().steps.iter().map(|s| print(&s.kernel, Dialect::Loop)).collect();
        let asserts = |at: usize| text[at].matches("assert").count();
        assert!(asserts(0) > 0 && asserts(1) == 0, "{text:#?}");
    }

    #[test]
    fn what_gains_nothing_is_refused() {
        let wide = "torch.nn.Linear(3584, 3584)(torch.randn(512, 3584))";
        let short = "torch.nn.Linear(100, 8)(torch.randn(8, 100))";
        let rows = "torch.nn.Linear(4096, 8)(torch.randn(B, 4096))";
        let beside = "x = torch.randn(32, 2048); \
                      (torch.nn.Linear(2048, 1200)(x), torch.nn.Linear(2048, 1600)(x))";
        for (text, knobs, why) in [
            (beside, &[][..], "it has 38 blocks of 32x32 beside 50 others for 132 multiprocessors"),
            (wide, &[], "it has 224 blocks of 64x128 for 132 multiprocessors"),
            (short, &[], "a sum of 100 has less than two parts of 8 (SHORTEST) stretches of 32"),
            (rows, &[], "how many blocks it has is known at launch only"),
            (short, &["split_k=1"], "knob off"),
            ("torch.randn(4, B) @ torch.randn(B, 8)", &["split_k=4"], "its sum is as long as the launch says"),
        ] {
            let (_, plan) = plan_of(text);
            let (out, log) = split(&plan, &gpu(knobs));
            assert!(out.is_none(), "{text}");
            assert!(log.skipped.iter().any(|(_, w)| w == why), "{text}: {:?}", log.skipped);
        }
        // The rule looks only at contractions.
        let (_, plan) = plan_of("torch.softmax(torch.randn(4, 4096), -1)");
        let (out, log) = split(&plan, &gpu(&["split_k=4"]));
        assert!(out.is_none() && log.skipped.is_empty());
    }
}
