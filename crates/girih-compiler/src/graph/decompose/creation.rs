//! Tensors that PyTorch makes from nothing.

use super::types::{cast, element, needed};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg};
use crate::index::{Cmp, Cond, Ix, Mask};

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "full",
        handles: &[
            "aten.full",
            "aten.zeros",
            "aten.ones",
            "aten.empty",
            "aten.empty_strided",
            "aten.empty_permuted",
            "aten.scalar_tensor",
            "aten.full_like",
            "aten.zeros_like",
            "aten.ones_like",
            "aten.empty_like",
            "aten.new_full",
            "aten.new_zeros",
            "aten.new_ones",
            "aten.new_empty",
            "aten.new_empty_strided",
            "aten.fill",
            "aten.zero",
        ],
        doc: "A tensor of one value; `empty` holds zeros.\n\n`y = ones([3])` --> `y [3] = map 1`",
        run: full,
    },
    Decomposition {
        name: "arange",
        handles: &["aten.arange", "aten.linspace"],
        doc: "Numbers in equal steps. Floats are computed in f64 and rounded once, as in PyTorch.\n\n\
              `y = arange(5)` --> `y [5] = index i0`",
        run: arange,
    },
    Decomposition {
        name: "eye",
        handles: &["aten.eye", "aten.tril_indices", "aten.triu_indices"],
        doc: "`y = eye(3)` --> `y [3, 3] = map 1 where i0 == i1 else 0`\n\nRefuses triangles of unknown extent.",
        run: eye,
    },
];

/// A number in the type that PyTorch gives it: f32, i64, bool.
fn default_elem(x: Arg, b: &Builder<'_>) -> Elem {
    let e = b.elem(x);
    match x {
        Arg::Scalar { .. } if e.is_float() => Elem::F32,
        Arg::Scalar { .. } if e.is_int() => Elem::I64,
        _ => e,
    }
}

fn full(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let name = call.name.trim_start_matches("aten.");
    let like = name.ends_with("_like") || name == "fill" || name == "zero";
    let new = name.starts_with("new_");
    let shape = if like {
        b.shape(call.arg(0)?)
    } else if name == "scalar_tensor" {
        vec![]
    } else {
        call.extents("size")?.ok_or_else(|| Refusal::new("the shape is missing"))?
    };
    let value = match name {
        "full" | "full_like" | "new_full" => {
            let at = if like || new { 1 } else { 0 };
            needed(b, call, at, "fill_value")?
        }
        "fill" => needed(b, call, 1, "value")?,
        "scalar_tensor" => needed(b, call, 0, "s")?,
        "ones" | "ones_like" | "new_ones" => ir::scalar(Elem::F32, 1.0),
        _ => ir::scalar(Elem::F32, 0.0),
    };
    let elem = match call.elem("dtype")? {
        Some(e) => e,
        None if like || new => b.elem(call.arg(0)?),
        // Without a dtype a number makes f32, also where it is an integer that stands for a scalar tensor.
        None if name == "scalar_tensor" => Elem::F32,
        None => default_elem(value, b),
    };
    let value = element(b, value, elem)?;
    Ok(vec![match value {
        Arg::Value(_) => b.broadcast_to(value, &shape)?,
        _ => b.full(value, elem, shape),
    }])
}

fn arange(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    if call.name == "aten.linspace" {
        return linspace(b, call);
    }
    let dtype = call.elem("dtype")?;
    if !["start", "end", "step"].iter().any(|name| call.is_float(name)) {
        let [start, end, step] = [("start", 0), ("end", 0), ("step", 1)]
            .map(|(name, default)| call.index(name).map(|i| i.unwrap_or(Ix::Const(default))));
        let (start, end, step) = (start?, end?, step?);
        let elem = dtype.unwrap_or(Elem::I64);
        let Some(s) = step.as_const().filter(|s| *s != 0) else {
            return Err(Refusal::new("the step of arange must be a known number other than 0"));
        };
        let span = if s > 0 { Ix::sub(end, start.clone()) } else { Ix::sub(start.clone(), end) };
        let count = Ix::max(Ix::ceil_div(span, Ix::Const(s.abs())), Ix::Const(0));
        let count = b.simplify(&count);
        let at = Ix::add(start, Ix::mul(ir::axis(0), step));
        let of = if elem.is_int() { elem } else { Elem::I64 };
        let y = b.index(at, of, vec![count]);
        return Ok(vec![b.convert(y, elem)?]);
    }
    let (start, end, step) = (call.float("start", 0.0)?, call.float("end", 0.0)?, call.float("step", 1.0)?);
    let count = ((end - start) / step).ceil();
    if !count.is_finite() || count < 0.0 || count > ir::MAX_EXTENT as f64 {
        return Err(Refusal::new(format!("arange from {start} to {end} in steps of {step} has no length")));
    }
    let elem = dtype.unwrap_or(Elem::F32);
    let i = b.index(ir::axis(0), Elem::I64, vec![Ix::Const(count as i64)]);
    let i = b.convert(i, Elem::F64)?;
    let part = b.mul(i, ir::scalar(Elem::F64, step))?;
    let y = b.add(part, ir::scalar(Elem::F64, start))?;
    Ok(vec![cast(b, y, elem)?])
}

/// From both ends to the middle, as PyTorch.
fn linspace(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let steps = call.index("steps")?.unwrap_or(Ix::Const(0));
    let least = b.facts().range(&steps).lo;
    if least < 0 || (steps.as_const().is_none() && least < 2) {
        return Err(Refusal::new(
            "linspace needs a number of steps that is not negative, and at least 2 where it changes",
        ));
    }
    let elem = call.elem("dtype")?.unwrap_or(Elem::F32);
    let wide = if elem == Elem::F64 { Elem::F64 } else { Elem::F32 };
    let (start, end) = (needed(b, call, 0, "start")?, needed(b, call, 1, "end")?);
    // PyTorch makes the ends integers before it computes those between.
    let (start, end) = if elem.is_float() { (start, end) } else { (cast(b, start, elem)?, cast(b, end, elem)?) };
    let (start, end) = (b.convert(start, Elem::F64)?, b.convert(end, Elem::F64)?);
    let shape = vec![steps.clone()];
    let last = b.simplify(&Ix::sub(steps.clone(), Ix::Const(1)));
    let span = b.sub(end, start)?;
    let step = match last.as_const() {
        Some(..=0) => ir::scalar(Elem::F64, 0.0),
        _ => {
            let count = super::reductions::extent(b, last.clone(), Elem::F64)?;
            b.div(span, count)?
        }
    };
    let (step, start, end) = (b.convert(step, wide)?, b.convert(start, wide)?, b.convert(end, wide)?);
    let (i, j) =
        (b.index(ir::axis(0), Elem::I64, shape.clone()), b.index(Ix::sub(last.clone(), ir::axis(0)), Elem::I64, shape));
    let (fi, fj) = (b.convert(i, wide)?, b.convert(j, wide)?);
    let (p, q) = (b.mul(fi, step)?, b.mul(fj, step)?);
    let up = b.add(p, start)?;
    let down = b.sub(end, q)?;
    let half = b.simplify(&Ix::floor_div(steps, Ix::Const(2)));
    let half = super::reductions::extent(b, half, Elem::I64)?;
    let low = b.compare(crate::num::op::Predicate::LessThan, i, half)?;
    let y = b.select(low, up, down)?;
    let y = if last.is_const(0) { up } else { y };
    Ok(vec![cast(b, y, elem)?])
}

fn eye(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    if call.name != "aten.eye" {
        return triangle_indices(b, call);
    }
    let n = call.index("n")?.ok_or_else(|| Refusal::new("the extent is missing"))?;
    let m = call.index("m")?.unwrap_or_else(|| n.clone());
    let elem = call.elem("dtype")?.unwrap_or(Elem::F32);
    let on = Cond::new(ir::axis(0), Cmp::Eq, ir::axis(1));
    let source = |arg, conds| ir::MapSource { arg, coords: vec![], when: Mask { conds, vals: vec![] } };
    let args = vec![ir::scalar(elem, 1.0), ir::scalar(elem, 0.0)];
    Ok(vec![b.map_sources("eye", args, vec![n, m], vec![source(0, vec![on]), source(1, vec![])])])
}

fn triangle_indices(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (rows, cols, offset) = (call.int("row", 0)?, call.int("col", 0)?, call.int("offset", 0)?);
    if !(0..=4096).contains(&rows) || !(0..=4096).contains(&cols) {
        return Err(Refusal::new("the positions of a triangle are supported for extents of up to 4096"));
    }
    b.list((rows * cols) as u64, 32)?;
    let lower = call.name == "aten.tril_indices";
    let (mut first, mut second) = (vec![], vec![]);
    for i in 0..rows {
        for j in 0..cols {
            if if lower { j - i <= offset } else { j - i >= offset } {
                first.push(i);
                second.push(j);
            }
        }
    }
    let count = first.len() as u64;
    first.extend(second);
    let elem = call.elem("dtype")?.unwrap_or(Elem::I64);
    Ok(vec![b.int_constant(elem, &[2, count], &first)])
}
