//! `pack_weights`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Context, Log, Rule};
use crate::index::{Cmp, Cond, Facts, Mask, simplify};
use crate::loops::ir::*;
use crate::loops::model::{Array, ArrayId, ArrayPlace, Plan, Step, StepArg};
use crate::loops::walk;
use crate::tile::blocking::panel_width;
use crate::tile::contraction::num_type;
use crate::tile::edit;

pub const RULE: Rule<Plan> = Rule {
    name: "pack_weights",
    doc: "\
Lays the weights of contractions out in panels when the model is loaded. Register tiles then read their columns in order,
and no block packs them again. It costs a second copy of the weights.

```text
b = load w[j*3584 + k]                    -->    b = load w_packed[j//32*114688 + k*32 + j%32]

                                                 once, at load:
                                                 for p in 0..112: for k in 0..3584: for jj in 0..32: free
                                                   store w_packed[..] = load w[(p*32 + jj)*3584 + k]
```

Knob: `pack` (0 turns the rule off).

Refuses what is not known when the model is loaded, extents that are not known at compile time, weights that are computed
or differ along a batch, and those smaller than a panel.
",
    run,
};

fn run(plan: &Plan, ctx: &Context, log: &mut Log) -> Option<Plan> {
    let mut out = plan.clone();
    let mut steps = vec![];
    // One copy of a weight for all steps that want it in the same order.
    let mut done: BTreeMap<(ArrayId, String), ArrayId> = BTreeMap::new();
    for step in &plan.steps {
        let mut step = step.clone();
        while let Some(found) = next(&step, plan, ctx, log) {
            let Found { array, kernel, shape, param, operand, index } = found;
            let key = (array, crate::loops::print::print(&kernel, crate::loops::print::Stage::Loop));
            let packed = *done.entry(key).or_insert_with(|| {
                let source = &plan.arrays[array];
                let name = format!("{}_packed", source.name);
                let packed = Array { name, elem: source.elem, shape, place: ArrayPlace::Loaded, at_load: true };
                let packed = out.arrays.push(packed);
                let same = out.load.iter().filter(|s| s.kernel.name.starts_with(&kernel.name)).count();
                let name = if same == 0 { kernel.name.clone() } else { format!("{}_{}", kernel.name, same + 1) };
                out.load.push(load_step(plan, &step, Kernel { name, ..kernel }, array, packed));
                packed
            });
            replace(&mut step, param, operand, index, &plan.arrays[array].name, packed);
        }
        steps.push(step);
    }
    let changed = out.load.len() > plan.load.len();
    out.steps = steps;
    changed.then_some(out)
}

/// A weight that is worth packing.
struct Found {
    array: ArrayId,
    /// What packs it.
    kernel: Kernel,
    shape: Vec<Ix>,
    /// The parameter that it is, and the load of it.
    param: ValId,
    operand: ValId,
    /// Where the element lies in the panels.
    index: Ix,
}

/// The first weight of a step that is not packed yet.
fn next(step: &Step, plan: &Plan, ctx: &Context, log: &mut Log) -> Option<Found> {
    let kernel = &step.kernel;
    let mut sums = vec![];
    sums_of(&kernel.body, &mut vec![], &mut sums);
    for (around, f) in sums {
        let Some(roles) = &f.contraction else { continue };
        let Some(Stmt::Load { mem, .. }) = f.body.iter().find(|s| walk::def(s) == Some(roles.b)) else { continue };
        let Some(at) = kernel.params.iter().position(|p| p.val == mem.base) else { continue };
        let Some(StepArg::Array(array)) = step.args.get(at).copied() else { continue };
        if !plan.arrays.get(array).is_some_and(|a| a.at_load) {
            continue;
        }
        let site = format!("{}, the weight {}", kernel.name, plan.arrays[array].name);
        match packing(kernel, ctx, &around, f, roles, array, step, plan) {
            Ok(found) => {
                log.applied(site);
                return Some(found);
            }
            Err(why) => {
                if !log.skipped.iter().any(|(s, w)| *s == site && *w == why) {
                    log.skipped(site, why);
                }
            }
        }
    }
    None
}

/// The loops of contractions, each with those around it.
fn sums_of<'a>(body: &'a [Stmt], around: &mut Vec<&'a For>, out: &mut Vec<(Vec<&'a For>, &'a For)>) {
    for s in body {
        if let Stmt::For(f) = s {
            if f.contraction.is_some() {
                out.push((around.clone(), f));
                continue;
            }
            around.push(f);
            sums_of(&f.body, around, out);
            around.pop();
            continue;
        }
        for inner in walk::bodies(s) {
            sums_of(inner, around, out);
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn packing(
    kernel: &Kernel,
    ctx: &Context,
    around: &[&For],
    f: &For,
    roles: &Contraction,
    array: ArrayId,
    step: &Step,
    plan: &Plan,
) -> Result<Found, String> {
    if !ctx.knobs.pack {
        return Err("knob off".to_string());
    }
    let Some(Stmt::Load { mem, mask, order, dst, .. }) = f.body.iter().find(|s| walk::def(s) == Some(roles.b)) else {
        return Err("it is computed".to_string());
    };
    // The multiply takes it as it is, or converted: anything more is a computation.
    let users: Vec<&Stmt> = f.body.iter().filter(|s| walk::refs_of(s).vals_used.contains(dst)).collect();
    let plain = |s: &&&Stmt| {
        use crate::num::ScalarOp::{ExtI, FToF, Fma, MulI};
        matches!(s, Stmt::Let { op: FToF { .. } | ExtI { .. } | Fma { .. } | MulI, .. })
    };
    if !mask.is_always() || *order != Order::Weak || users.iter().filter(plain).count() != users.len() {
        return Err("it is computed".to_string());
    }
    let loops: Vec<&For> = around.iter().copied().chain([f]).collect();
    let extent = |a: &AxisId| loops.iter().find(|f| f.axis == *a).and_then(|f| f.hi.as_const());
    let extents = |axes: &[AxisId]| axes.iter().map(|a| Some((*a, extent(a)?))).collect::<Option<Vec<(AxisId, i64)>>>();
    let (Some(n), Some(k)) = (extents(&roles.n), extents(&roles.k)) else {
        return Err("its extents are not known".to_string());
    };
    let own = |a: &AxisId| roles.n.contains(a) || roles.k.contains(a);
    if !mem.index.axes().iter().all(own) || !mem.index.vals().is_empty() {
        return Err("it differs along a batch".to_string());
    }
    let product = |axes: &[(AxisId, i64)]| axes.iter().map(|(_, n)| *n).product::<i64>();
    let (columns, depth) = (product(&n), product(&k));
    let acc = num_type(kernel, roles.acc).ok_or("its accumulator holds addresses")?;
    let width = panel_width(&ctx.target, acc) as i64;
    if columns < width || depth < 8 {
        return Err("it is smaller than a panel".to_string());
    }
    let linear = |axes: &[(AxisId, i64)]| {
        axes.iter().fold(Ix::Const(0), |at, (a, n)| Ix::add(Ix::mul(at, Ix::Const(*n)), Ix::Axis(*a)))
    };
    let mut facts = edit::facts(kernel);
    for (a, n) in n.iter().chain(&k) {
        facts.set_axis(*a, &Ix::Const(0), &Ix::Const(*n));
    }
    let (at_n, at_k, w) = (linear(&n), linear(&k), Ix::Const(width));
    let panel = Ix::mul(Ix::floor_div(at_n.clone(), w.clone()), Ix::Const(depth * width));
    let index = Ix::add(Ix::add(panel, Ix::mul(at_k, w.clone())), Ix::modulo(at_n, w));
    let panels = (columns + width - 1) / width;
    let source = &plan.arrays[array];
    let packer = packer(step, source, mem, &n, &k, [panels, depth, width], columns);
    Ok(Found {
        array,
        kernel: packer,
        shape: [panels, depth, width].map(Ix::Const).to_vec(),
        param: mem.base,
        operand: *dst,
        index: simplify(&index, &facts),
    })
}

/// The kernel that writes the panels of a weight. It takes the symbols, as all do, the weight and the panels.
fn packer(
    step: &Step,
    source: &Array,
    mem: &Mem,
    n: &[(AxisId, i64)],
    k: &[(AxisId, i64)],
    [panels, depth, width]: [i64; 3],
    columns: i64,
) -> Kernel {
    let of = &step.kernel;
    let mut kernel = Kernel { name: format!("k_pack_{}", plain(&source.name)), open: true, ..Kernel::default() };
    let symbols = step.args.iter().take_while(|a| matches!(a, StepArg::Symbol(_))).count();
    for p in of.params.iter().take(symbols) {
        let val = kernel.vals.push(Val { ty: p.ty, name: p.name.clone() });
        kernel.params.push(Param { val, ..p.clone() });
    }
    let mut pointer = |name: &str| {
        let ty = Ty::Ptr(mem.elem);
        let val = kernel.vals.push(Val { ty, name: name.into() });
        kernel.params.push(Param { name: name.into(), ty, val, div_by: 1, range: None });
        val
    };
    let (from, to) = (pointer(&source.name), pointer(&format!("{}_packed", source.name)));
    let mut axis = |name: &str| kernel.axes.push(Axis { name: name.into(), from: None });
    let (p, kk, j) = (axis("p"), axis("k"), axis("j"));
    let mut facts = Facts::new();
    for (a, n) in [(p, panels), (kk, depth), (j, width)] {
        facts.set_axis(a, &Ix::Const(0), &Ix::Const(n));
    }
    let column = Ix::add(Ix::mul(Ix::Axis(p), Ix::Const(width)), Ix::Axis(j));
    let mut by: BTreeMap<AxisId, Ix> = BTreeMap::new();
    for (position, axes) in [(column.clone(), n), (Ix::Axis(kk), k)] {
        let mut stride = 1;
        for (i, (a, n)) in axes.iter().enumerate().rev() {
            let q = Ix::floor_div(position.clone(), Ix::Const(stride));
            by.insert(*a, if i == 0 { q } else { Ix::modulo(q, Ix::Const(*n)) });
            stride *= n;
        }
    }
    let index = simplify(&mem.index.subst_axes(&mut |a| by.get(&a).cloned()), &facts);
    let whole = columns % width == 0;
    let conds = if whole { vec![] } else { vec![Cond::new(column, Cmp::Lt, Ix::Const(columns))] };
    let site = kernel.sites.push(Site { span: None, op: "pack".into(), frames: Default::default() });
    let dst = kernel.vals.push(Val { ty: Ty::Num(mem.elem), name: source.name.clone() });
    let to_index = Ix::add(Ix::mul(Ix::Axis(p), Ix::Const(depth * width)), Ix::mul(Ix::Axis(kk), Ix::Const(width)));
    let load = Stmt::Load {
        dst,
        mem: Mem { base: from, index, elem: mem.elem },
        mask: Mask { conds, vals: vec![] },
        other: (!whole).then_some(Opnd::Const { dtype: mem.elem, bits: 0 }),
        order: Order::Weak,
        site,
    };
    let store = Stmt::Store {
        mem: Mem { base: to, index: Ix::add(to_index, Ix::Axis(j)), elem: mem.elem },
        value: Opnd::Val(dst),
        mask: Mask::default(),
        order: Order::Weak,
        site,
    };
    let mut body = vec![load, store];
    for (axis, n) in [(j, width), (kk, depth), (p, panels)] {
        body = vec![edit::free_loop(axis, Ix::Const(n), body)];
    }
    kernel.body = body;
    kernel
}

/// A name of a person's as part of a kernel's.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn load_step(plan: &Plan, step: &Step, kernel: Kernel, from: ArrayId, to: ArrayId) -> Step {
    let symbols = step.args.iter().filter(|a| matches!(a, StepArg::Symbol(_))).copied();
    let args = symbols.chain([StepArg::Array(from), StepArg::Array(to)]).collect();
    let one = || Ix::Const(1);
    let elements = |a: &Array| a.shape.iter().fold(one(), |n, d| Ix::mul(n, d.clone()));
    let source = &plan.arrays[from];
    let bytes = Ix::mul(elements(source), Ix::Const(2 * source.elem.dtype.bytes() as i64));
    Step { kernel, args, reads: vec![from], writes: vec![to], origins: vec![], flops: Ix::Const(0), bytes }
}

/// The step with one weight read from its panels.
fn replace(step: &mut Step, param: ValId, operand: ValId, index: Ix, name: &str, packed: ArrayId) {
    let kernel = &mut step.kernel;
    let old = kernel.params.iter().find(|p| p.val == param).map(|p| p.ty);
    let Some(Ty::Ptr(elem)) = old else { return };
    let name = format!("{name}_packed");
    // Parameters are the first values in order: every other value moves up by one.
    let at = kernel.params.len() as u32;
    let vals: Vec<Val> = kernel.vals.values().cloned().collect();
    let map = |v: ValId| if v.0 >= at { ValId(v.0 + 1) } else { v };
    let renaming = walk::Renaming {
        vals: (at..vals.len() as u32).map(|v| (ValId(v), map(ValId(v)))).collect(),
        ..Default::default()
    };
    renaming.apply(&mut kernel.body);
    kernel.vals = Default::default();
    for (i, val) in vals.into_iter().enumerate() {
        if i as u32 == at {
            kernel.vals.push(Val { ty: Ty::Ptr(elem), name: name.clone() });
        }
        kernel.vals.push(val);
    }
    let val = ValId(at);
    kernel.params.push(Param { name, ty: Ty::Ptr(elem), val, div_by: 1, range: None });
    let operand = map(operand);
    walk::visit_mut(&mut kernel.body, &mut |s| {
        if let Stmt::Load { dst, mem, .. } = s
            && *dst == operand
        {
            (mem.base, mem.index) = (val, index.clone());
        }
    });
    let old = step.args.len().min(at as usize);
    step.args.insert(old, StepArg::Array(packed));
    step.reads.push(packed);
    // A weight that nothing else reads is given back when its panels are written.
    let mut used = BTreeSet::new();
    walk::visit(&step.kernel.body, &mut |s| match s {
        Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => _ = used.insert(mem.base),
        _ => {}
    });
    if !used.contains(&param)
        && let Some(at) = step.kernel.params.iter().position(|p| p.val == param)
        && let Some(StepArg::Array(array)) = step.args.get(at).copied()
    {
        drop_param(&mut step.kernel, at);
        step.args.remove(at);
        if !step.args.contains(&StepArg::Array(array)) {
            step.reads.retain(|id| *id != array);
        }
    }
}

/// The kernel without a parameter that nothing uses.
fn drop_param(kernel: &mut Kernel, at: usize) {
    kernel.params.remove(at);
    let from = at as u32;
    let vals: Vec<Val> = kernel.vals.values().cloned().collect();
    let renaming = walk::Renaming {
        vals: (from + 1..vals.len() as u32).map(|v| (ValId(v), ValId(v - 1))).collect(),
        ..Default::default()
    };
    renaming.apply(&mut kernel.body);
    for p in &mut kernel.params {
        p.val = renaming.vals.get(&p.val).copied().unwrap_or(p.val);
    }
    kernel.vals = Default::default();
    for (_, val) in vals.into_iter().enumerate().filter(|(i, _)| *i != at) {
        kernel.vals.push(val);
    }
}
