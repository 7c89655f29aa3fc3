//! Tensors that PyTorch makes from nothing.

use super::Call;
use super::expr::Tensor;
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir;
use crate::index::{Cmp, Cond, Ix, Mask};

rules! {
    full "A tensor of one value; `empty` holds zeros.\n\n`y = ones([3])` --> `y [3] = map 1`" {
        "aten.full" | "aten.zeros" | "aten.ones" | "aten.empty" | "aten.empty_strided" | "aten.empty_permuted" |
        "aten.scalar_tensor" | "aten.full_like" | "aten.zeros_like" | "aten.ones_like" | "aten.empty_like" |
        "aten.new_full" | "aten.new_zeros" | "aten.new_ones" | "aten.new_empty" | "aten.new_empty_strided" | "aten.fill" |
        "aten.zero" => full,
    }
    arange "Numbers in equal steps. Floats are computed in f64 and rounded once, as in PyTorch.\n\n\
         `y = arange(5)` --> `y [5] = index i0`" {
        "aten.arange" => arange,
        "aten.linspace" => linspace,
    }
    eye "`y = eye(3)` --> `y [3, 3] = map 1 where i0 == i1 else 0`\n\nRefuses triangles of unknown extent." {
        "aten.eye" => eye,
        "aten.tril_indices" => |c| triangle_indices(c, |row, column, offset| column - row <= offset),
        "aten.triu_indices" => |c| triangle_indices(c, |row, column, offset| column - row >= offset),
    }
}

/// A number in the type that PyTorch gives it: f32, i64, bool.
fn default_elem(x: Tensor<'_>) -> Elem {
    match x.elem() {
        e if x.is_number() && e.is_float() => Elem::F32,
        e if x.is_number() && e.is_int() => Elem::I64,
        e => e,
    }
}

fn full<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let name = c.name.trim_start_matches("aten.");
    let like = name.ends_with("_like") || name == "fill" || name == "zero";
    let new = name.starts_with("new_");
    let shape = if like {
        c.x(0).shape()?
    } else if name == "scalar_tensor" {
        vec![]
    } else {
        c.extents("size")?.ok_or_else(|| Refusal::new("the shape is missing"))?
    };
    let value = match name {
        "full" => c.needed(0, "fill_value"),
        "full_like" | "new_full" => c.needed(1, "fill_value"),
        "fill" => c.needed(1, "value"),
        "scalar_tensor" => c.needed(0, "s"),
        "ones" | "ones_like" | "new_ones" => c.cx.number(Elem::F32, 1.0),
        _ => c.cx.number(Elem::F32, 0.0),
    };
    let elem = match c.elem("dtype")? {
        Some(e) => e,
        None if like || new => c.x(0).elem(),
        // Without a dtype a number makes f32, also where it is an integer that stands for a scalar tensor.
        None if name == "scalar_tensor" => Elem::F32,
        None => default_elem(value),
    };
    Ok(value.element_of(elem).spread(&shape))
}

fn arange<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let dtype = c.elem("dtype")?;
    let numbers = [("start", 0), ("end", 0), ("step", 1)];
    let whole = numbers.map(|(name, default)| whole_number(c, name, default));
    if let [Ok(Some(start)), Ok(Some(end)), Ok(Some(step))] = whole {
        let floats = numbers.iter().any(|(name, _)| c.is_float(name));
        let elem = dtype.unwrap_or(if floats { Elem::F32 } else { Elem::I64 });
        let Some(s) = step.as_const().filter(|s| *s != 0) else {
            return Err(Refusal::new("the step of arange must be a known number other than 0"));
        };
        let span = if s > 0 { Ix::sub(end, start.clone()) } else { Ix::sub(start.clone(), end) };
        let count = c.cx.simplify(&Ix::max(Ix::ceil_div(span, Ix::Const(s.abs())), Ix::Const(0)));
        let at = Ix::add(start, Ix::mul(ir::axis(0), step));
        return Ok(c.cx.index(at, if elem.is_int() { elem } else { Elem::I64 }, vec![count]).to(elem));
    }
    let (start, end, step) = (c.float("start", 0.0)?, c.float("end", 0.0)?, c.float("step", 1.0)?);
    let count = ((end - start) / step).ceil();
    if !count.is_finite() || count < 0.0 || count > ir::MAX_EXTENT as f64 {
        return Err(Refusal::new(format!("arange from {start} to {end} in steps of {step} has no length")));
    }
    let i = c.cx.index(ir::axis(0), Elem::I64, vec![Ix::Const(count as i64)]).to(Elem::F64);
    Ok((i * step + start).cast(dtype.unwrap_or(Elem::F32)))
}

/// An integer, perhaps symbolic, or a float that is one; `None` where it is another float.
fn whole_number(c: &Call<'_>, name: &str, default: i64) -> Result<Option<Ix>> {
    if !c.is_float(name) {
        return Ok(Some(c.index(name)?.unwrap_or(Ix::Const(default))));
    }
    let number = c.float(name, 0.0)?;
    let whole = number.fract() == 0.0 && number.abs() <= ir::MAX_EXTENT as f64;
    Ok(whole.then_some(Ix::Const(number as i64)))
}

/// From both ends to the middle, as PyTorch.
fn linspace<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (steps, cx) = (c.index("steps")?.unwrap_or(Ix::Const(0)), c.cx);
    let least = cx.range(&steps).lo;
    if least < 0 || (steps.as_const().is_none() && least < 2) {
        return Err(Refusal::new(
            "linspace needs a number of steps that is not negative, and at least 2 where it changes",
        ));
    }
    let elem = c.elem("dtype")?.unwrap_or(Elem::F32);
    let wide = if elem == Elem::F64 { Elem::F64 } else { Elem::F32 };
    let ends = [c.needed(0, "start"), c.needed(1, "end")];
    // PyTorch makes the ends integers before it computes those between.
    let ends = if elem.is_float() { ends } else { ends.map(|x| x.cast(elem)) };
    let [start, end] = ends.map(|x| x.to(Elem::F64));
    let last = cx.simplify(&Ix::sub(steps.clone(), Ix::Const(1)));
    let span = end - start;
    let step = match last.as_const() {
        Some(..=0) => cx.number(Elem::F64, 0.0),
        _ => span / cx.extent(&last, Elem::F64),
    };
    let [step, start, end] = [step, start, end].map(|x| x.to(wide));
    let [i, j] =
        [ir::axis(0), Ix::sub(last.clone(), ir::axis(0))].map(|ix| cx.index(ix, Elem::I64, vec![steps.clone()]));
    let [fi, fj] = [i, j].map(|i| i.to(wide));
    let (p, q) = (fi * step, fj * step);
    let (up, down) = (p + start, end - q);
    let half = cx.simplify(&Ix::floor_div(steps, Ix::Const(2)));
    let y = i.below(cx.extent(&half, Elem::I64)).select(up, down);
    Ok(if last.is_const(0) { up } else { y }.cast(elem))
}

fn eye<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let n = c.index("n")?.ok_or_else(|| Refusal::new("the extent is missing"))?;
    let m = c.index("m")?.unwrap_or_else(|| n.clone());
    let elem = c.elem("dtype")?.unwrap_or(Elem::F32);
    let on = Cond::new(ir::axis(0), Cmp::Eq, ir::axis(1));
    let source = |arg, conds| ir::MapSource { arg, coords: vec![], when: Mask { conds, vals: vec![] } };
    let args = vec![ir::scalar(elem, 1.0), ir::scalar(elem, 0.0)];
    let sources = vec![source(0, vec![on]), source(1, vec![])];
    Ok(c.cx.made(&[], |b| Ok(b.map_sources("eye", args, vec![n, m], sources))))
}

/// The rows and the columns that a condition of these and the offset chooses.
fn triangle_indices<'g>(c: &Call<'g>, holds: fn(i64, i64, i64) -> bool) -> Result<Tensor<'g>> {
    let (rows, cols, offset) = (c.int("row", 0)?, c.int("col", 0)?, c.int("offset", 0)?);
    if !(0..=4096).contains(&rows) || !(0..=4096).contains(&cols) {
        return Err(Refusal::new("the positions of a triangle are supported for extents of up to 4096"));
    }
    c.cx.build(|b| b.list((rows * cols) as u64, 32))?;
    let all = (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j)));
    let (mut first, second): (Vec<i64>, Vec<i64>) = all.filter(|(i, j)| holds(*i, *j, offset)).unzip();
    let count = first.len() as u64;
    first.extend(second);
    Ok(c.cx.ints(c.elem("dtype")?.unwrap_or(Elem::I64), &[2, count], &first))
}
