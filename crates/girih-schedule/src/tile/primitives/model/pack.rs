//! `pack KERNEL.ARRAY, .. by pairs?`: sums read a weight in panels, which are written once, when the model is loaded.
//!
//! ```text
//! b = load w[j*3584 + k]                    -->    b = load w_packed[j//32*114688 + k*32 + j%32]
//!
//!                                                  once, at load:
//!                                                  for p in 0..112: for k in 0..3584: for jj in 0..32: free
//!                                                    store w_packed[..] = load w[(p*32 + jj)*3584 + k]
//! ```
//!
//! `pairs`: the terms of the kernel's sums are paired first, and words lie in the panels. Legal for the right operands of sums that are known
//! when the model is loaded, are multiplied as they lie there, and are the same along a batch, where extents are constants that fill a
//! panel. Steps that read a weight in the same order share the panels.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::IdMap;
use crate::base::rule::Log;
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
use crate::tile::target::Capability;
use crate::tile::tile_nest::{Side, is_word, multiplies, slice};

/// Packs the weights that a step's sums read.
pub fn apply(plan: &mut Plan, ctx: &Context, at: usize, arrays: &[ArrayId], pairs: bool) -> Result<(), String> {
    if !ctx.target.has(Capability::Caches) || !ctx.target.has(Capability::VectorArithmetic) {
        return Err("the target reads no panels".to_string());
    }
    let mut log = Log::default();
    let step = match pairs {
        false => plan.steps[at].clone(),
        true => {
            let kernel =
                paired(&plan.steps[at], &plan.arrays, ctx, &mut log).ok_or_else(|| match log.skipped.first() {
                    Some((_, why)) => format!("its terms cannot be paired: {why}"),
                    None => "its terms cannot be paired".to_string(),
                })?;
            Step { kernel, ..plan.steps[at].clone() }
        }
    };
    let chosen = candidates(&step, &plan.arrays).into_iter().filter(|c| arrays.contains(&c.array));
    let (mut weights, mut refused) = (vec![], None);
    for candidate in chosen {
        match candidate.weight(&step.kernel, ctx) {
            Ok(weight) => weights.push(weight),
            Err(why) => _ = refused.get_or_insert((candidate.array, why)),
        }
    }
    if let Some(id) = arrays.iter().find(|id| !weights.iter().any(|w| w.array == **id)) {
        let none = || "it is not the right operand of a sum that is known when the model is loaded".to_string();
        let why = refused.filter(|(array, _)| array == id).map_or_else(none, |(_, why)| why);
        return Err(format!("`{}`: {why}", plan.arrays[*id].name));
    }
    let panels: Vec<ArrayId> = weights.iter().map(|weight| panels_of(plan, &step, weight)).collect();
    let mut step = step;
    read_panels(&mut step, &plan.arrays, weights.into_iter().zip(panels).collect());
    plan.steps[at] = step;
    Ok(())
}

/// The kernel of a step with the terms of its sums paired; of right operands that are weights the words are made beforehand.
pub fn paired(step: &Step, arrays: &IdMap<ArrayId, Array>, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let is_weight = |mem: &Mem| known_at_load(step, arrays, mem).is_some();
    pair_terms::paired(&step.kernel, ctx, log, &is_weight)
}

/// The panels of a weight: those that a step of `load` writes already, or new ones.
fn panels_of(plan: &mut Plan, step: &Step, weight: &Weight) -> ArrayId {
    let source = &plan.arrays[weight.array];
    let kernel = packer(step, source, weight);
    let text = print(&kernel, Dialect::Loop);
    let alike = |other: &&Step| {
        let named = || Kernel { name: kernel.name.clone(), ..other.kernel.clone() };
        other.reads == [weight.array] && print(&named(), Dialect::Loop) == text
    };
    if let Some(&[written]) = plan.load.iter().find(alike).map(|other| &other.writes[..]) {
        return written;
    }
    let shape = [weight.panels(), weight.depth(), weight.width].map(Ix::Const).to_vec();
    let elem = if source.elem.dtype == weight.elem { source.elem } else { Elem::of(weight.elem) };
    let name = format!("{}_packed", source.name);
    let id = plan.arrays.push(Array { name, elem, shape, place: ArrayPlace::Loaded, at_load: true });
    let free = |name: &String| !plan.load.iter().any(|step| step.kernel.name == *name);
    let base = kernel.name.clone();
    let name = if free(&base) { Some(base) } else { (2..).map(|n| format!("{base}_{n}")).find(free) };
    let kernel = Kernel { name: name.unwrap_or_default(), ..kernel };
    plan.load.push(load_step(&plan.arrays, step, kernel, weight.array, id));
    id
}

/// A weight in panels.
pub struct Weight {
    pub array: ArrayId,
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

/// A weight that a sum multiplies with.
pub struct Candidate<'a> {
    pub array: ArrayId,
    /// The loops around the body of the sum, outermost first.
    loops: Vec<&'a For>,
    roles: &'a Contraction,
    made: Vec<&'a Stmt>,
}

/// The right operands of a step's sums that are known when the model is loaded.
pub fn candidates<'a>(step: &'a Step, arrays: &IdMap<ArrayId, Array>) -> Vec<Candidate<'a>> {
    let (mut sums, mut out) = (vec![], vec![]);
    sums_of(&step.kernel.body, &mut vec![], &mut sums);
    for loops in sums {
        let Some((f, roles)) = loops.last().and_then(|f| Some((*f, f.contraction.as_ref()?))) else { continue };
        let made = slice(&f.body.iter().collect::<Vec<_>>(), &[roles.b]);
        let is_plain = matches!(made[..], [Stmt::Load { .. }]) || is_word(&made);
        let mut known = made.iter().filter_map(|s| match s {
            Stmt::Load { mem, .. } => Some(known_at_load(step, arrays, mem)),
            _ => None,
        });
        let Some(Some(array)) = known.next().filter(|_| is_plain) else { continue };
        if known.all(|a| a == Some(array)) {
            out.push(Candidate { array, loops, roles, made });
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

impl Candidate<'_> {
    /// The weight in panels, or why it has none.
    pub fn weight(&self, kernel: &Kernel, ctx: &Context) -> Result<Weight, String> {
        use crate::num::ScalarOp::{ExtI, FToF};
        let Candidate { array, loops, roles, made } = self;
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
        let extents =
            |axes: &[AxisId]| axes.iter().map(|a| Some((*a, extent(a)?))).collect::<Option<Vec<(AxisId, i64)>>>();
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
        Ok(Weight { array: *array, made, operand: roles.b, elem: *elem, columns, sum, width })
    }
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

fn load_step(arrays: &IdMap<ArrayId, Array>, step: &Step, kernel: Kernel, from: ArrayId, to: ArrayId) -> Step {
    let symbols = step.args.iter().filter(|a| matches!(a, StepArg::Symbol(_))).copied();
    let args = symbols.chain([StepArg::Array(from), StepArg::Array(to)]).collect();
    let one = || Ix::Const(1);
    let elements = |a: &Array| a.shape.iter().fold(one(), |n, d| Ix::mul(n, d.clone()));
    let source = &arrays[from];
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
fn read_panels(step: &mut Step, arrays: &IdMap<ArrayId, Array>, packed: Vec<(Weight, ArrayId)>) {
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
        params.push((pointer(format!("{}_packed", arrays[weight.array].name), weight.elem), None));
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
