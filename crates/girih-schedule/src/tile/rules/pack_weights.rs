//! `pack_weights`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::graph::Elem;
use crate::index::{Cmp, Cond, Facts, Mask, simplify};
use crate::loops::ir::*;
use crate::loops::model::{Array, ArrayId, ArrayPlace, Plan, Step, StepArg};
use crate::loops::print::{Dialect, print};
use crate::loops::walk;
use crate::num::DType;
use crate::tile::Context;
use crate::tile::blocking::panel_width;
use crate::tile::contraction::num_type;
use crate::tile::edit;
use crate::tile::rules::pair_terms;
use crate::tile::steps::{known_at_load, pointer, set_params};
use crate::tile::tile_nest::{Side, is_word, multiplies, slice};

pub const RULE: Rule<Plan, Context> = Rule {
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

Where the processor multiplies pairs, the terms of the sum are paired first (`pair_terms`), and words lie in the panels.

Knob: `pack` (0 turns the rule off).

Refuses operands that are not known when the model is loaded, extents that are not known at compile time, and weights that are
computed, differ along a batch, or are smaller than a panel.
",
    run,
};

fn run(plan: &Plan, ctx: &Context, log: &mut Log) -> Option<Plan> {
    let mut out = plan.clone();
    // One copy of a weight for all steps that want it in the same order, and how often a kernel's name was given.
    let mut done: BTreeMap<(ArrayId, String), ArrayId> = BTreeMap::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for to in &mut out.steps {
        let step = &in_pairs(to, plan, ctx, log);
        let mut packed = vec![];
        for weight in weights(step, plan, ctx, log) {
            let (array, kernel) = (weight.array, packer(step, &plan.arrays[weight.array], &weight));
            let key = (array, print(&kernel, Dialect::Loop));
            let id = *done.entry(key).or_insert_with(|| {
                let source = &plan.arrays[array];
                let shape = [weight.panels(), weight.depth(), weight.width].map(Ix::Const).to_vec();
                let name = format!("{}_packed", source.name);
                let elem = if source.elem.dtype == weight.elem { source.elem } else { Elem::of(weight.elem) };
                let array = Array { name, elem, shape, place: ArrayPlace::Loaded, at_load: true };
                let id = out.arrays.push(array);
                let count = names.entry(kernel.name.clone()).or_insert(0);
                *count += 1;
                let name = if *count == 1 { kernel.name.clone() } else { format!("{}_{count}", kernel.name) };
                out.load.push(load_step(plan, step, Kernel { name, ..kernel }, weight.array, id));
                id
            });
            packed.push((weight, id));
        }
        if !packed.is_empty() {
            *to = step.clone();
            read_panels(to, plan, packed);
        }
    }
    (!done.is_empty()).then_some(out)
}

/// The step with the terms of its sums paired where their right operands are weights that become words.
fn in_pairs(step: &Step, plan: &Plan, ctx: &Context, log: &mut Log) -> Step {
    let mut own = Log::default();
    let is_weight = |mem: &Mem| known_at_load(step, plan, mem).is_some();
    let paired = ctx.knobs.pack.then(|| pair_terms::paired(&step.kernel, ctx, &mut own, &is_weight)).flatten();
    let Some(kernel) = paired else { return step.clone() };
    log.applied.extend(own.applied.iter().map(|site| format!("{}, {site}: terms in pairs", kernel.name)));
    Step { kernel, ..step.clone() }
}

/// A weight that is worth packing.
struct Weight {
    array: ArrayId,
    /// The statements that make an element of the panels: a load, or two that become a word; the last defines the operand.
    made: Vec<Stmt>,
    operand: ValId,
    elem: DType,
    /// The axes of its columns and of the sum, with their extents.
    columns: Vec<(AxisId, i64)>,
    sum: Vec<(AxisId, i64)>,
    /// Columns of a panel.
    width: i64,
}

fn product(axes: &[(AxisId, i64)]) -> i64 {
    axes.iter().map(|(_, n)| *n).product()
}

impl Weight {
    fn depth(&self) -> i64 {
        product(&self.sum)
    }

    fn panels(&self) -> i64 {
        (product(&self.columns) + self.width - 1) / self.width
    }

    /// Where the element lies in the panels, over the axes of the step's loops.
    fn index(&self, kernel: &Kernel) -> Ix {
        let mut facts = kernel.facts();
        for (a, n) in self.columns.iter().chain(&self.sum) {
            facts.set_axis(*a, &Ix::Const(0), &Ix::Const(*n));
        }
        let linear = |axes: &[(AxisId, i64)]| {
            axes.iter().fold(Ix::Const(0), |at, (a, n)| Ix::add(Ix::mul(at, Ix::Const(*n)), Ix::Axis(*a)))
        };
        let (column, k, w) = (linear(&self.columns), linear(&self.sum), Ix::Const(self.width));
        let panel = Ix::mul(Ix::floor_div(column.clone(), w.clone()), Ix::Const(self.depth() * self.width));
        simplify(&Ix::add(Ix::add(panel, Ix::mul(k, w.clone())), Ix::modulo(column, w)), &facts)
    }
}

/// The weights of a step that are worth packing; of others that are known at load, the log says why not.
fn weights(step: &Step, plan: &Plan, ctx: &Context, log: &mut Log) -> Vec<Weight> {
    let kernel = &step.kernel;
    let (mut sums, mut out) = (vec![], vec![]);
    sums_of(&kernel.body, &mut vec![], &mut sums);
    for loops in sums {
        let Some((f, roles)) = loops.last().and_then(|f| Some((*f, f.contraction.as_ref()?))) else { continue };
        let made = slice(&f.body.iter().collect::<Vec<_>>(), &[roles.b]);
        let is_plain = matches!(made[..], [Stmt::Load { .. }]) || is_word(&made);
        let mut arrays = made.iter().filter_map(|s| match s {
            Stmt::Load { mem, .. } => Some(known_at_load(step, plan, mem)),
            _ => None,
        });
        let Some(Some(array)) = arrays.next().filter(|_| is_plain) else { continue };
        if !arrays.all(|a| a == Some(array)) {
            continue;
        }
        let site = format!("{}, the weight {}", kernel.name, plan.arrays[array].name);
        match weight(kernel, ctx, &loops, roles, &made, array) {
            Ok(weight) => {
                log.applied(site);
                out.push(weight);
            }
            Err(why) => log.skipped(site, why),
        }
    }
    out
}

/// The loops around the body of each contraction, outermost first.
fn sums_of<'a>(body: &'a [Stmt], around: &mut Vec<&'a For>, out: &mut Vec<Vec<&'a For>>) {
    for s in body {
        let Stmt::For(f) = s else {
            walk::bodies(s).into_iter().for_each(|inner| sums_of(inner, around, out));
            continue;
        };
        around.push(f);
        match f.contraction {
            Some(_) => out.push(around.clone()),
            None => sums_of(&f.body, around, out),
        }
        around.pop();
    }
}

fn weight(
    kernel: &Kernel,
    ctx: &Context,
    loops: &[&For],
    roles: &Contraction,
    made: &[&Stmt],
    array: ArrayId,
) -> Result<Weight, String> {
    use crate::num::ScalarOp::{ExtI, FToF};
    if !ctx.knobs.pack {
        return Err("knob off".to_string());
    }
    let Some(Val { ty: Ty::Num(elem), .. }) = kernel.vals.get(roles.b) else {
        return Err("it is an address".to_string());
    };
    // The multiply takes it as it is, or converted: anything more is a computation.
    let plain =
        |s: &Stmt| matches!(s, Stmt::Let { op, .. } if multiplies(*op) || matches!(op, FToF { .. } | ExtI { .. }));
    let body = loops.last().map_or(&[][..], |f| &f.body);
    let computes = body.iter().any(|s| walk::refs_of(s).vals_used.contains(&roles.b) && !plain(s));
    let whole = |s: &&Stmt| match s {
        Stmt::Load { mask, order, .. } => mask.is_always() && *order == Order::Weak,
        _ => true,
    };
    if computes || !made.iter().all(whole) {
        return Err("it is computed".to_string());
    }
    let extent = |a: &AxisId| loops.iter().find(|f| f.axis == *a).and_then(|f| f.hi.as_const());
    let extents = |axes: &[AxisId]| axes.iter().map(|a| Some((*a, extent(a)?))).collect::<Option<Vec<(AxisId, i64)>>>();
    let (Some(columns), Some(sum)) = (extents(&roles.n), extents(&roles.k)) else {
        return Err("its extents are not known".to_string());
    };
    let own = |a: &AxisId| roles.n.contains(a) || roles.k.contains(a);
    let here = |s: &&Stmt| match s {
        Stmt::Load { mem, .. } => mem.index.axes().iter().all(own) && mem.index.vals().is_empty(),
        _ => true,
    };
    if !made.iter().all(here) {
        return Err("it differs along a batch".to_string());
    }
    let acc = num_type(kernel, roles.acc).ok_or("its accumulator holds addresses")?;
    let width = panel_width(&ctx.target, acc) as i64;
    if product(&columns) < width || product(&sum) < 8 {
        return Err("it is smaller than a panel".to_string());
    }
    let made = made.iter().map(|s| (*s).clone()).collect();
    Ok(Weight { array, made, operand: roles.b, elem: *elem, columns, sum, width })
}

/// The kernel that writes the panels of a weight. It takes the symbols, as all do, the weight and the panels.
fn packer(step: &Step, source: &Array, weight: &Weight) -> Kernel {
    let (panels, depth, width) = (weight.panels(), weight.depth(), weight.width);
    let mut kernel = Kernel { name: format!("k_pack_{}", plain(&source.name)), open: true, ..Kernel::default() };
    let symbols = step.kernel.params.iter().zip(&step.args).filter(|(_, a)| matches!(a, StepArg::Symbol(_)));
    let names = [source.name.clone(), format!("{}_packed", source.name)];
    let arrays = names.into_iter().zip([source.elem.dtype, weight.elem]).map(|(name, elem)| pointer(name, elem));
    set_params(&mut kernel, symbols.map(|(p, _)| p.clone()).chain(arrays).map(|p| (p, None)).collect());
    let at = kernel.params.len();
    let (from, to) = (kernel.params[at - 2].val, kernel.params[at - 1].val);
    let mut axis = |name: &str| kernel.axes.push(Axis { name: name.into(), from: None });
    let (p, kk, j) = (axis("p"), axis("k"), axis("j"));
    let mut facts = Facts::new();
    for (a, n) in [(p, panels), (kk, depth), (j, width)] {
        facts.set_axis(a, &Ix::Const(0), &Ix::Const(n));
    }
    let column = Ix::add(Ix::mul(Ix::Axis(p), Ix::Const(width)), Ix::Axis(j));
    let mut by: BTreeMap<AxisId, Ix> = BTreeMap::new();
    for (position, axes) in [(&column, &weight.columns), (&Ix::Axis(kk), &weight.sum)] {
        Side::new(axes.iter().map(|(a, n)| (*a, Ix::Const(*n))).collect(), &facts).split(position, &mut by);
    }
    let columns = product(&weight.columns);
    let whole = columns % width == 0;
    let conds = if whole { vec![] } else { vec![Cond::new(column, Cmp::Lt, Ix::Const(columns))] };
    let site = kernel.sites.push(Site { span: None, op: "pack".into(), frames: Default::default() });
    let to_index = Ix::add(Ix::mul(Ix::Axis(p), Ix::Const(depth * width)), Ix::mul(Ix::Axis(kk), Ix::Const(width)));
    let mut own: BTreeMap<ValId, ValId> = BTreeMap::new();
    for (v, val) in weight.made.iter().filter_map(walk::def).filter_map(|v| Some((v, step.kernel.vals.get(v)?))) {
        own.insert(v, kernel.vals.push(Val { ty: val.ty, name: source.name.clone() }));
    }
    let mut body = weight.made.clone();
    for s in &mut body {
        if let Stmt::Load { mem, mask, other, site: at, .. } = s {
            let index = simplify(&mem.index.subst_axes(&mut |a| by.get(&a).cloned()), &facts);
            *mask = Mask { conds: conds.clone(), vals: vec![] };
            *other = (!whole).then_some(Opnd::Const { dtype: mem.elem, bits: 0 });
            (mem.base, mem.index, *at) = (from, index, site);
        }
    }
    walk::Renaming { vals: own.clone(), ..Default::default() }.apply(&mut body);
    body.push(Stmt::Store {
        mem: Mem { base: to, index: Ix::add(to_index, Ix::Axis(j)), elem: weight.elem },
        value: Opnd::Val(own.get(&weight.operand).copied().unwrap_or(weight.operand)),
        mask: Mask::default(),
        order: Order::Weak,
        site,
    });
    for (axis, n) in [(j, width), (kk, depth), (p, panels)] {
        body = vec![edit::free_loop(axis, Ix::Const(n), body)];
    }
    kernel.body = body;
    // The source of the operand that the panels are for.
    let source = step.kernel.sources.vals.get(weight.operand);
    [p, kk, j].into_iter().for_each(|axis| kernel.sources.axes.set(axis, source));
    own.values().for_each(|v| kernel.sources.vals.set(*v, source));
    kernel.sources.sites.set(site, source);
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
    Step {
        kernel,
        args,
        reads: vec![from],
        writes: vec![to],
        origins: vec![],
        flops: Ix::Const(0),
        bytes,
        within: None,
    }
}

/// The step with weights read from their panels. A weight that nothing else reads stops being an argument: its memory is
/// given back when the panels are written.
fn read_panels(step: &mut Step, plan: &Plan, packed: Vec<(Weight, ArrayId)>) {
    let kernel = &mut step.kernel;
    let indices: Vec<Ix> = packed.iter().map(|(w, _)| w.index(kernel)).collect();
    // The one load that is left of each operand, from where the weight was until the panels are parameters.
    walk::visit_mut(&mut kernel.body, &mut |s| {
        if let Some((weight, _)) = packed.iter().find(|(w, _)| walk::def(s) == Some(w.operand))
            && let Some(mut load) = weight.made.iter().find(|s| matches!(s, Stmt::Load { .. })).cloned()
        {
            if let Stmt::Load { dst, mem, .. } = &mut load {
                (*dst, mem.elem) = (weight.operand, weight.elem);
            }
            *s = load;
        }
    });
    edit::drop_unused(&mut kernel.body);
    let operands: BTreeSet<ValId> = packed.iter().map(|(w, _)| w.operand).collect();
    let (mut used, mut replaced) = (BTreeSet::new(), BTreeSet::new());
    walk::visit(&kernel.body, &mut |s| match s {
        Stmt::Load { dst, mem, .. } if operands.contains(dst) => _ = replaced.insert(mem.base),
        Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => _ = used.insert(mem.base),
        _ => {}
    });
    let gone = |p: &Param| replaced.contains(&p.val) && !used.contains(&p.val);
    let kept = kernel.params.iter().zip(&step.args).filter(|(p, _)| !gone(p));
    let mut params: Vec<(Param, Option<ValId>)> = kept.clone().map(|(p, _)| (p.clone(), Some(p.val))).collect();
    let mut args: Vec<StepArg> = kept.map(|(_, a)| *a).collect();
    let first = params.len();
    for (weight, id) in &packed {
        params.push((pointer(format!("{}_packed", plan.arrays[weight.array].name), weight.elem), None));
        args.push(StepArg::Array(*id));
    }
    let now = set_params(kernel, params);
    let panels = kernel.params.iter().skip(first).map(|p| p.val).zip(indices);
    let operands = packed.iter().map(|(w, _)| now.get(&w.operand).copied().unwrap_or(w.operand));
    let loads: BTreeMap<ValId, (ValId, Ix)> = operands.zip(panels).collect();
    walk::visit_mut(&mut kernel.body, &mut |s| {
        if let Stmt::Load { dst, mem, .. } = s
            && let Some((base, index)) = loads.get(dst)
        {
            (mem.base, mem.index) = (*base, index.clone());
        }
    });
    step.args = args;
    step.reads.retain(|id| step.args.contains(&StepArg::Array(*id)));
    step.reads.extend(packed.iter().map(|(_, id)| *id));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::verify::verify;
    use crate::tile::tests::{context, plan_of, with_knobs};

    fn packed(text: &str, ctx: &Context) -> (Plan, Option<Plan>, Log) {
        let (_, plan) = plan_of(text);
        let mut log = Log::default();
        let out = run(&plan, ctx, &mut log);
        for step in out.iter().flat_map(|p| p.load.iter().chain(&p.steps)) {
            assert_eq!(verify(&step.kernel, Dialect::Loop), []);
            assert_eq!(step.args.len(), step.kernel.params.len());
        }
        (plan, out, log)
    }

    #[test]
    fn a_weight_is_read_from_panels_that_are_written_once() {
        let (plan, out, log) = packed("torch.nn.Linear(64, 40)(torch.randn(8, 64))", &context());
        let (out, step) = (out.unwrap(), &plan.steps[0]);
        assert_eq!(log.applied.len(), 1);
        assert_eq!((plan.load.len(), out.load.len()), (0, 1));
        let names = |s: &Step| s.kernel.params.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(step), ["x", "weight", "bias", "linear"]);
        assert_eq!(names(&out.steps[0]), ["x", "bias", "linear", "weight_packed"]);
        let weight = step.args[1];
        assert!(!out.steps[0].args.contains(&weight) && out.load[0].args[0] == weight);
        let text = print(&out.steps[0].kernel, Dialect::Loop);
        assert!(text.contains("load weight_packed[j//32*2048 + k*32 + j%32]"), "{text}");
        // 40 columns are a panel and a part of one, filled with zeros.
        let text = print(&out.load[0].kernel, Dialect::Loop);
        assert!(text.contains("load weight[p*2048 + j*64 + k] where p*32 + j < 40 else 0.0"), "{text}");
    }

    #[test]
    fn one_copy_serves_all_that_read_it_alike() {
        let text = "fc = torch.nn.Linear(64, 64, bias=False); fc(fc(torch.randn(8, 64)).relu())";
        let (_, out, log) = packed(text, &context());
        let out = out.unwrap();
        assert_eq!((log.applied.len(), out.load.len()), (2, 1), "{:?}", log.applied);
        // A weight that something else reads stays an argument beside its panels.
        let text = "fc = torch.nn.Linear(64, 64, bias=False); fc(torch.randn(64, 64)) + fc.weight";
        let (_, out, _) = packed(text, &context());
        let step = &out.unwrap().steps[0];
        let names: Vec<&str> = step.kernel.params.iter().map(|p| p.name.as_str()).collect();
        assert!(names.contains(&"weight") && names.contains(&"weight_packed"), "{names:?}");
    }

    #[test]
    fn what_gains_nothing_is_refused() {
        for (text, ctx, why) in [
            ("torch.nn.Linear(64, 64)(torch.randn(8, 64))", with_knobs(&["pack=0"]), "knob off"),
            ("torch.nn.Linear(64, 16)(torch.randn(8, 64))", context(), "it is smaller than a panel"),
        ] {
            let (_, out, log) = packed(text, &ctx);
            assert!(out.is_none());
            assert!(log.skipped.iter().any(|(_, w)| w == why), "{:?}", log.skipped);
        }
        // The rule ignores operands that are not known when the model is loaded.
        let (_, out, log) = packed("torch.randn(8, 64) @ torch.randn(64, 64)", &context());
        assert!(out.is_none() && log.skipped.is_empty());
    }
}
