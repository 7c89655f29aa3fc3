//! Parts of tensors of PyTorch: slices, splits, and their replacement.

use super::expr::Tensor;
use super::types::{cast, same_place};
use super::views::Diagonal;
use super::{Call, normal_axis, old};
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, MapSource};
use crate::index::{Cmp, Cond, Ix, Mask};

rules! {
    slice "A range of an axis, or one position of it. Ends are cut to the extent, negative ones count from it.\n\n\
         `y = slice(x [9], 2, 7, 2)` --> `y [3] = map x[i0*2 + 2]`\n\n\
         Refuses symbolic ends and positions whose sign is not known." {
        "aten.slice" | "aten.narrow" | "aten.narrow_copy" | "aten.select" | "aten.unbind" | "aten.unbind_copy" |
        "aten.unfold" => old(slice),
    }
    split "Consecutive parts of an axis.\n\n`a, b = split(x [5], 3)` --> `a [3] = map x[i0]`, `b [2] = map x[i0 + 3]`" {
        "aten.split" | "aten.split_with_sizes" | "aten.chunk" | "aten.tensor_split" | "aten.unsafe_split" |
        "aten.unsafe_chunk" | "aten.hsplit" | "aten.vsplit" => old(split),
    }
    slice_scatter "A copy with a part replaced.\n\n\
         `y = slice_scatter(x, part, 2, 4)` --> `y = map part[i0 - 2] where 2 <= i0 and i0 < 4 else x[i0]`" {
        "aten.slice_scatter" | "aten.select_scatter" | "aten.diagonal_scatter" => old(scatter),
    }
}

/// Start, step and count of a slice of an axis of extent `n`, as in Python.
pub(super) fn range(b: &Builder<'_>, n: &Ix, start: Option<&Ix>, end: Option<&Ix>, step: i64) -> Result<(Ix, Ix)> {
    if step <= 0 {
        return Err(Refusal::new(format!("a slice's step must be positive, not {step}")));
    }
    let clip = |x: Option<&Ix>, default: &Ix| -> Result<Ix> {
        let Some(x) = x else { return Ok(default.clone()) };
        if x.as_const().is_some_and(|c| c > ir::MAX_EXTENT) {
            return Ok(n.clone());
        }
        let zero = Ix::Const(0);
        let x = if b.holds(x, Cmp::Ge, &zero) {
            x.clone()
        } else if b.holds(x, Cmp::Lt, &zero) {
            Ix::add(n.clone(), x.clone())
        } else {
            return Err(Refusal::new(format!(
                "a slice may end at {}, whose sign is not known",
                b.graph.ix_text(&b.simplify(x))
            )));
        };
        Ok(b.simplify(&Ix::max(Ix::Const(0), Ix::min(x, n.clone()))))
    };
    let (first, last) = (clip(start, &Ix::Const(0))?, clip(end, n)?);
    let span = Ix::max(Ix::Const(0), Ix::sub(last, first.clone()));
    Ok((first, b.simplify(&Ix::ceil_div(span, Ix::Const(step)))))
}

/// A position of an axis of extent `n`; negative ones count from the end.
pub(super) fn position(b: &Builder<'_>, n: &Ix, at: &Ix) -> Result<Ix> {
    let zero = Ix::Const(0);
    let before = b.holds(at, Cmp::Lt, &zero);
    if !before && !b.holds(at, Cmp::Ge, &zero) {
        let text = b.graph.ix_text(&b.simplify(at));
        return Err(Refusal::new(format!("it is not known whether position {text} counts from the end")));
    }
    let at = if before { Ix::add(n.clone(), at.clone()) } else { at.clone() };
    let at = b.simplify(&at);
    let inside = Cond::new(at.clone(), Cmp::Lt, n.clone());
    let low = b.facts().range(&at).lo < 0 && at.as_const().is_some();
    if low || b.facts().decide(&inside) == Some(false) {
        return Err(Refusal::new(format!(
            "position {} is outside an axis of extent {}",
            b.graph.ix_text(&at),
            b.graph.ix_text(n)
        )));
    }
    Ok(at)
}

/// The tensor at one position of an axis, which goes away.
fn select(b: &mut Builder<'_>, x: Arg, axis: usize, at: Ix) -> Result<Arg> {
    let mut shape = b.shape(x);
    if axis >= shape.len() {
        return Err(Refusal::new(format!("axis {axis} is out of range for a tensor of rank {}", shape.len())));
    }
    shape.remove(axis);
    let coords = (0..=shape.len()).map(|d| match d {
        d if d < axis => ir::axis(d),
        d if d == axis => at.clone(),
        d => ir::axis(d - 1),
    });
    let coords = coords.collect();
    Ok(b.map("select", x, shape, coords))
}

impl<'g> Tensor<'g> {
    /// The element of an axis at a position, for each other place.
    pub fn entry(self, axis: usize, at: Ix) -> Tensor<'g> {
        self.cx.made(&[self], |b| select(b, self.arg, axis, at))
    }
}

fn slice(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    if call.name == "aten.unfold" && b.rank(x) == 0 {
        // A tensor of rank 0 is a line of one element, whose windows replace it.
        let size = call.int("size", 1)?;
        x = b.unsqueeze(x, &[0])?;
        normal_axis(call.int("dimension", 0)?, 1)?;
        if !(0..=1).contains(&size) {
            return Err(Refusal::new(format!("a window of {size} does not fit a tensor of rank 0")));
        }
        return Ok(vec![b.slice(x, 0, Ix::Const(0), 1, Ix::Const(size))?]);
    }
    let shape = b.shape(x);
    let axis = normal_axis(call.int(if call.name == "aten.unfold" { "dimension" } else { "dim" }, 0)?, shape.len())?;
    let n = &shape[axis];
    match call.name {
        "aten.select" => {
            let at = call
                .index("index")?
                .or_else(|| call.opt(1).and_then(|a| b.ints(a)?.first().cloned()))
                .ok_or_else(|| Refusal::new("the index of select is not known"))?;
            let at = position(b, n, &at)?;
            Ok(vec![select(b, x, axis, at)?])
        }
        "aten.unbind" | "aten.unbind_copy" => {
            let Some(count) = b.number(n) else {
                return Err(Refusal::new("unbind needs an axis whose extent is known"));
            };
            b.list_tensors(count)?;
            (0..count).map(|i| select(b, x, axis, Ix::Const(i))).collect()
        }
        "aten.unfold" => {
            let (size, step) = (call.int("size", 1)?, call.int("step", 1)?);
            if size < 0 || step <= 0 || n.as_const().is_some_and(|n| n < size) {
                return Err(Refusal::new("unfold takes a size of at most the extent, and a positive step"));
            }
            let rank = shape.len();
            let count = Ix::floor_div(Ix::sub(n.clone(), Ix::Const(size)), Ix::Const(step));
            let mut coords = same_place(rank);
            coords[axis] = Ix::add(Ix::mul(ir::axis(axis), Ix::Const(step)), ir::axis(rank));
            let mut out = shape.clone();
            out[axis] = b.simplify(&Ix::add(count, Ix::Const(1)));
            out.push(Ix::Const(size));
            Ok(vec![b.map("unfold", x, out, coords)])
        }
        name => {
            let start = call.index("start")?;
            let end = match name {
                "aten.narrow" | "aten.narrow_copy" => {
                    let start = start.clone().unwrap_or(Ix::Const(0));
                    let start = position(b, &Ix::add(n.clone(), Ix::Const(1)), &start)?;
                    let count = call.index("length")?.ok_or_else(|| Refusal::new("the length is missing"))?;
                    return Ok(vec![b.slice(x, axis, start, 1, count)?]);
                }
                _ => call.index("end")?,
            };
            let step = call.int("step", 1)?;
            let (start, count) = range(b, n, start.as_ref(), end.as_ref(), step)?;
            Ok(vec![b.slice(x, axis, start, step, count)?])
        }
    }
}

fn split(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let shape = b.shape(x);
    let axis = match call.name {
        "aten.hsplit" => usize::from(shape.len() > 1),
        "aten.vsplit" => 0,
        _ => normal_axis(call.int("dim", 0)?, shape.len())?,
    };
    let n = shape.get(axis).cloned().unwrap_or(Ix::Const(1));
    let list = |names: &[&str]| match names.iter().find(|n| call.is_list(n)) {
        Some(name) => call.extents(name),
        None => Ok(None),
    };
    let known = || {
        b.number(&n).ok_or_else(|| Refusal::new("an axis whose extent is not known cannot be split into equal parts"))
    };
    let sizes: Vec<Ix> = if let Some(sizes) = list(&["split_sizes", "split_size", "split_size_or_sections"])? {
        sizes
    } else if let Some(ends) = list(&["indices", "indices_or_sections"])? {
        let mut at = Ix::Const(0);
        let mut sizes = vec![];
        for end in ends.iter().map(Some).chain([None]) {
            let (stop, _) = match end {
                Some(e) => range(b, &n, Some(e), None, 1)?,
                None => (n.clone(), Ix::Const(0)),
            };
            sizes.push(b.simplify(&Ix::max(Ix::sub(stop.clone(), at), Ix::Const(0))));
            at = stop;
        }
        sizes
    } else if matches!(call.name, "aten.split" | "aten.unsafe_split") {
        let (n, size) = (known()?, call.int("split_size", 1)?);
        if size <= 0 {
            return Err(Refusal::new("the size of the parts must be positive"));
        }
        b.list_tensors(n / size)?;
        (0..n.max(1)).step_by(size as usize).map(|at| Ix::Const(size.min(n - at))).collect()
    } else {
        let chunk = matches!(call.name, "aten.chunk" | "aten.unsafe_chunk");
        let parts = call.int(call.given(&["chunks", "sections", "indices_or_sections"]), 1)?;
        if parts <= 0 {
            return Err(Refusal::new("the number of parts must be positive"));
        }
        if chunk {
            let n = known()?;
            let size = (n + parts - 1) / parts;
            b.list_tensors(n / size.max(1))?;
            (0..n.max(1)).step_by(size.max(1) as usize).map(|at| Ix::Const(size.min(n - at))).collect()
        } else {
            let n = known()?;
            b.list_tensors(parts)?;
            (0..parts).map(|i| Ix::Const(n / parts + i64::from(i < n % parts))).collect()
        }
    };
    let total = sizes.iter().cloned().fold(Ix::Const(0), Ix::add);
    if !b.same(&total, &n) {
        return Err(Refusal::new(format!(
            "the parts have {} elements in all, but the axis has {}",
            b.graph.ix_text(&b.simplify(&total)),
            b.graph.ix_text(&n)
        )));
    }
    let mut at = Ix::Const(0);
    let mut parts = vec![];
    for size in sizes {
        parts.push(b.slice(x, axis, at.clone(), 1, size.clone())?);
        at = b.simplify(&Ix::add(at, size));
    }
    Ok(parts)
}

fn scatter(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, part) = (call.arg(0)?, call.arg(1)?);
    let shape = b.shape(x);
    let rank = shape.len();
    let part = cast(b, part, b.elem(x))?;
    let (mut replaced, mut coords) = (shape.clone(), same_place(rank));
    // Where the tensor itself is read although the last condition holds, and that condition of the part.
    let mut outside = vec![];
    let inside = match call.name {
        "aten.diagonal_scatter" => {
            let of = Diagonal::of(b, call, &shape)?;
            // The position along the diagonal, which starts below the first row or right of the first column.
            let at = Ix::sub(ir::axis(of.axes[0]), of.starts[0].clone());
            coords = of.others(rank).map(ir::axis).collect();
            coords.push(at);
            replaced = of.others(rank).map(|d| shape[d].clone()).collect();
            let [down, right] = of.starts;
            replaced.push(of.length);
            let [row, column] = of.axes.map(ir::axis);
            Cond::new(Ix::add(row, right), Cmp::Eq, Ix::add(column, down))
        }
        "aten.select_scatter" => {
            let axis = normal_axis(call.int("dim", 0)?, rank)?;
            let at = call.index("index")?.ok_or_else(|| Refusal::new("the index is missing"))?;
            let at = position(b, &shape[axis], &at)?;
            coords.remove(axis);
            replaced.remove(axis);
            Cond::new(ir::axis(axis), Cmp::Eq, at)
        }
        _ => {
            let axis = normal_axis(call.int("dim", 0)?, rank)?;
            let step = call.int("step", 1)?;
            let (start, end) = (call.index("start")?, call.index("end")?);
            let (start, count) = range(b, &shape[axis], start.as_ref(), end.as_ref(), step)?;
            replaced[axis] = count.clone();
            let at = Ix::sub(ir::axis(axis), start.clone());
            outside.push(Cond::new(ir::axis(axis), Cmp::Lt, start.clone()));
            if step > 1 {
                outside.push(Cond::new(Ix::modulo(at.clone(), Ix::Const(step)), Cmp::Ne, Ix::Const(0)));
            }
            coords[axis] = Ix::floor_div(at, Ix::Const(step));
            Cond::new(ir::axis(axis), Cmp::Lt, Ix::add(start, Ix::mul(count, Ix::Const(step))))
        }
    };
    // PyTorch refuses a part that would have to be repeated.
    b.expect_shape("the part", part, &replaced)?;
    let itself = |conds| MapSource { arg: 1, coords: same_place(rank), when: Mask { conds, vals: vec![] } };
    let mut sources: Vec<MapSource> = outside.into_iter().map(|c| itself(vec![c])).collect();
    sources.push(MapSource { arg: 0, coords, when: Mask { conds: vec![inside], vals: vec![] } });
    sources.push(itself(vec![]));
    Ok(vec![b.map_sources("scatter", vec![part, x], shape, sources)])
}
