//! Views of PyTorch: other shapes, orders and parts of the same elements, each one map. Nothing is shared: a front end
//! has made writes through views explicit.

use super::types::{axes_attr, axis_attr, cast, distinct, same_place};
use super::{Call, normal_axis, old};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, MapSource, ScatterOp};
use crate::index::{Cmp, Cond, Ix, Mask};

rules! {
    identity "Copies vanish: values are immutable. `copy(a, b)` is `b` in the type and shape of `a`.\n\n`y = clone(x)` --> `y = x`" {
        "aten.contiguous" | "aten.clone" | "aten.detach" | "aten.alias" | "aten.lift_fresh" | "aten.lift_fresh_copy" |
        "aten.lift" | "aten.resolve_conj" | "aten.resolve_neg" | "aten.cpu" | "prims.view_of" | "aten.copy" => old(identity),
    }
    reshape "The same elements in row-major order in another shape; one extent may be -1.\n\n\
         `y = view(x [6], [2, 3])` --> `y [2, 3] = map x[i0*3 + i1]`\n\nRefuses a different number of elements." {
        "aten.view" | "aten.reshape" | "aten._unsafe_view" | "aten._reshape_alias" | "aten.view_as" | "aten.reshape_as" |
        "aten.flatten" | "aten.ravel" | "aten.unflatten" | "aten.view_copy" => old(reshape),
    }
    as_strided "Elements of a row-major tensor by their distance from its first one.\n\n\
         `y = as_strided(x [6], [2, 3], [1, 2], 1)` --> `y [2, 3] = map x[i0 + i1*2 + 1]`\n\n\
         `y = as_strided_scatter(x, part, ..)` is `x` with the elements of `part` there. Refuses what may reach beyond \
         the tensor." {
        "aten.as_strided" | "aten.as_strided_copy" | "aten.as_strided_scatter" => old(as_strided),
    }
    axes "Adds or drops axes of extent 1.\n\n`y = unsqueeze(x [3], 0)` --> `y [1, 3] = map x[i1]`" {
        "aten.unsqueeze" | "aten.squeeze" | "aten.atleast_1d" | "aten.atleast_2d" | "aten.atleast_3d" => old(axes),
    }
    permute "Another order of the axes.\n\n`y = t(x [2, 3])` --> `y [3, 2] = map x[i1, i0]`" {
        "aten.permute" | "aten.permute_copy" | "aten.transpose" | "aten.t" | "aten.numpy_T" | "aten.mT" | "aten.swapaxes" |
        "aten.swapdims" | "aten.movedim" | "aten.moveaxis" | "aten.adjoint" => old(permute),
    }
    expand "Stretches extents of 1; -1 keeps an extent.\n\n`y = expand(x [3, 1], [3, 4])` --> `y [3, 4] = map x[i0, 0]`" {
        "aten.expand" | "aten.expand_as" | "aten.broadcast_to" | "aten.broadcast_tensors" => old(expand),
    }
    repeat "Copies of a tensor one after the other, or of each element.\n\n\
         `y = repeat(x [3], [2])` --> `y [6] = map x[i0 % 3]`\n\n\
         `y = repeat_interleave(x [3], 2)` --> `y [6] = map x[i0 // 2]`\n\nRefuses a count for each element: the shape depends on data." {
        "aten.repeat" | "aten.tile" | "aten.repeat_interleave" => old(repeat),
    }
    flip "`y = flip(x [3])` --> `y = map x[2 - i0]`\n\n`y = roll(x [3], 1)` --> `y = map x[(i0 + 2) % 3]`" {
        "aten.flip" | "aten.roll" | "aten.rot90" => old(flip),
    }
    cat "One after the other along an axis, or along a new one.\n\n\
         `y = cat(a [2], b [3])` --> `y [5] = map a[i0] where i0 < 2 else b[i0 - 2]`" {
        "aten.cat" | "aten.concat" | "aten.concatenate" | "aten.stack" | "aten.hstack" | "aten.vstack" => old(cat),
    }
    triangle "One side of a diagonal, zeros on the other.\n\n\
         `y = tril(x)` --> `y = map x[i0, i1] where i1 <= i0 else 0`" {
        "aten.tril" | "aten.triu" => old(triangle),
    }
    diagonal "`y = diagonal(x)` --> `y = map x[i0, i0]`" {
        "aten.diagonal" | "aten.trace" | "aten.diag" | "aten.diag_embed" => old(diagonal),
    }
    meshgrid "`y, z = meshgrid(a, b)` --> `y = map a[i0]`, `z = map b[i1]`" {
        "aten.meshgrid" => old(meshgrid),
    }
    pixels "Channels become space, or space becomes channels.\n\n\
         `y = pixel_shuffle(x, r)` --> reshape, permute, reshape" {
        "aten.pixel_shuffle" | "aten.pixel_unshuffle" | "aten.channel_shuffle" => old(pixels),
    }
}

fn identity(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.name == "aten.copy" {
        let (elem, shape) = (b.elem(x), b.shape(x));
        let y = cast(b, call.arg(1)?, elem)?;
        return Ok(vec![match y {
            Arg::Scalar { .. } => b.full(y, elem, shape),
            _ => b.broadcast_to(y, &shape)?,
        }]);
    }
    Ok(vec![x])
}

/// A shape with at most one extent of -1, which follows from the number of elements.
pub(super) fn completed(b: &Builder<'_>, from: &[Ix], to: &[Ix]) -> Result<Vec<Ix>> {
    let mut shape = to.to_vec();
    let open: Vec<usize> = (0..shape.len()).filter(|d| shape[*d].is_const(-1)).collect();
    match open[..] {
        [] => {}
        [at] => {
            // Extents that stand on both sides cancel, so that symbolic ones need no division.
            let mut have: Vec<Ix> = from.to_vec();
            let mut rest = vec![];
            for (d, x) in to.iter().enumerate() {
                if d == at {
                    continue;
                }
                match have.iter().position(|h| b.same(h, x)) {
                    Some(i) => drop(have.remove(i)),
                    None => rest.push(x.clone()),
                }
            }
            let (have, rest) = (b.numel(&have), b.numel(&rest));
            if rest.is_const(0) {
                return Err(Refusal::new("an extent of -1 cannot be computed when another is 0"));
            }
            shape[at] = b.simplify(&Ix::floor_div(have, rest));
        }
        _ => return Err(Refusal::new("more than one extent is -1")),
    }
    Ok(shape)
}

fn reshape(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let from = b.shape(x);
    let rank = from.len();
    let shape = match call.name {
        "aten.view" | "aten.view_copy" if call.has("dtype") => {
            return Err(Refusal::new("a view as another element type is not supported"));
        }
        "aten.view_as" | "aten.reshape_as" => b.shape(call.arg(1)?),
        "aten.ravel" => vec![Ix::Const(-1)],
        "aten.flatten" => {
            let start = axis_attr(call, "start_dim", 0, rank)?;
            let end = axis_attr(call, "end_dim", -1, rank)?;
            if rank == 0 {
                vec![Ix::Const(1)]
            } else if end < start {
                return Err(Refusal::new("flatten's start_dim is after its end_dim"));
            } else {
                let mut shape = from[..start].to_vec();
                shape.push(b.numel(&from[start..=end]));
                shape.extend_from_slice(&from[end + 1..]);
                shape
            }
        }
        "aten.unflatten" => {
            let at = normal_axis(call.int("dim", 0)?, rank)?;
            let parts = call.extents("sizes")?.ok_or_else(|| Refusal::new("sizes are missing"))?;
            let parts = completed(b, &from[at..=at], &parts)?;
            let mut shape = from[..at].to_vec();
            shape.extend(parts);
            shape.extend_from_slice(&from[at + 1..]);
            shape
        }
        _ => call.extents(call.given(&["size", "shape"]))?.ok_or_else(|| Refusal::new("the shape is missing"))?,
    };
    let shape = completed(b, &from, &shape)?;
    Ok(vec![b.reshape(x, &shape)?])
}

fn as_strided(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (Some(size), Some(stride)) = (call.extents("size")?, call.extents("stride")?) else {
        return Err(Refusal::new("the size or the strides are missing"));
    };
    if size.len() != stride.len() {
        return Err(Refusal::new(format!("{} strides are given for {} axes", stride.len(), size.len())));
    }
    let start = call.index("storage_offset")?.unwrap_or(Ix::Const(0));
    let n = b.numel(&b.shape(x));
    let line = b.reshape(x, std::slice::from_ref(&n))?;
    let (mut at, mut last) = (start.clone(), start.clone());
    for (d, (extent, step)) in size.iter().zip(&stride).enumerate() {
        at = Ix::add(at, Ix::mul(ir::axis(d), step.clone()));
        last = Ix::add(last, Ix::mul(Ix::sub(extent.clone(), Ix::Const(1)), step.clone()));
    }
    let known = |b: &Builder<'_>, x: Ix, cmp, y: &Ix| b.facts().decide(&Cond::new(x, cmp, y.clone())) == Some(true);
    let empty = size.iter().any(|extent| extent.is_const(0));
    let forward = stride.iter().chain([&start]).all(|s| known(b, s.clone(), Cmp::Ge, &Ix::Const(0)));
    let inside = empty || forward && known(b, b.simplify(&last), Cmp::Lt, &n);
    if !inside {
        return Err(Refusal::new(format!(
            "a view of shape {} by strides {} may reach beyond {} elements",
            b.shape_text(&size),
            b.shape_text(&stride),
            b.graph.ix_text(&n)
        )));
    }
    if call.name != "aten.as_strided_scatter" {
        return Ok(vec![b.map("strided", line, size, vec![at])]);
    }
    let part = cast(b, call.arg(1)?, b.elem(x))?;
    let part = b.broadcast_to(part, &size)?;
    let at = b.index(at, Elem::I64, size);
    let y = b.scatter(line, &[at], part, vec![Coord::Arg(1)], ScatterOp::Set)?;
    let shape = b.shape(x);
    Ok(vec![b.reshape(y, &shape)?])
}

fn axes(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    Ok(vec![match call.name {
        "aten.unsqueeze" => {
            let at = normal_axis(call.int("dim", 0)?, rank + 1)?;
            b.unsqueeze(x, &[at])?
        }
        "aten.squeeze" => {
            let shape = b.shape(x);
            let mut at = if rank == 0 { vec![] } else { axes_attr(call, rank)? };
            at.retain(|a| shape[*a].is_const(1));
            at.sort_unstable();
            b.squeeze(x, &at)?
        }
        name => {
            let want: usize = name.trim_start_matches("aten.atleast_").trim_end_matches('d').parse().unwrap_or(1);
            match (rank, want) {
                (r, w) if r >= w => x,
                (0, w) => b.unsqueeze(x, &(0..w).collect::<Vec<_>>())?,
                (1, 2) => b.unsqueeze(x, &[0])?,
                (1, _) => b.unsqueeze(x, &[0, 2])?,
                _ => b.unsqueeze(x, &[2])?,
            }
        }
    }])
}

fn permute(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let mut perm: Vec<usize> = (0..rank).collect();
    match call.name {
        "aten.permute" | "aten.permute_copy" => {
            let dims = call.ints("dims")?.ok_or_else(|| Refusal::new("dims are missing"))?;
            perm = dims.iter().map(|d| normal_axis(*d, rank)).collect::<Result<_>>()?;
        }
        "aten.t" if rank > 2 => return Err(Refusal::new(format!("t takes a matrix, not a tensor of rank {rank}"))),
        "aten.t" | "aten.numpy_T" => perm.reverse(),
        "aten.mT" | "aten.adjoint" if rank < 2 => return Err(Refusal::new("a tensor of rank 2 or more is needed")),
        "aten.mT" | "aten.adjoint" => perm.swap(rank - 2, rank - 1),
        "aten.movedim" | "aten.moveaxis" => {
            let (from, to) = (call.ints("source")?.unwrap_or_default(), call.ints("destination")?.unwrap_or_default());
            let from = distinct(from.iter().map(|d| normal_axis(*d, rank)).collect::<Result<Vec<_>>>()?)?;
            let to = distinct(to.iter().map(|d| normal_axis(*d, rank)).collect::<Result<Vec<_>>>()?)?;
            if from.len() != to.len() {
                return Err(Refusal::new("movedim needs the same number of sources and destinations"));
            }
            let mut rest = (0..rank).filter(|d| !from.contains(d));
            perm = (0..rank)
                .map(|d| match to.iter().position(|t| *t == d) {
                    Some(i) => from[i],
                    None => rest.next().unwrap_or(d),
                })
                .collect();
        }
        name => {
            let (a, c) = if name == "aten.transpose" { ("dim0", "dim1") } else { ("axis0", "axis1") };
            let read = |n: &str, other: &str, d: i64| call.int(call.given(&[n, other]), d);
            let (p, q) = (read(a, "dim0", 0)?, read(c, "dim1", 1)?);
            if rank > 0 {
                let (p, q) = (normal_axis(p, rank)?, normal_axis(q, rank)?);
                perm.swap(p, q);
            }
        }
    }
    Ok(vec![b.transpose(x, &perm)?])
}

fn expand(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    if call.name == "aten.broadcast_tensors" {
        let shapes: Vec<Vec<Ix>> = call.args.iter().map(|a| b.shape(*a)).collect();
        let shape = b.broadcast_shape(&shapes)?;
        return call.args.iter().map(|a| b.broadcast_to(*a, &shape)).collect();
    }
    let x = call.arg(0)?;
    let from = b.shape(x);
    let mut shape = match call.name {
        "aten.expand_as" => b.shape(call.arg(1)?),
        _ => call.extents(call.given(&["size", "shape"]))?.ok_or_else(|| Refusal::new("the shape is missing"))?,
    };
    let lead = shape.len().saturating_sub(from.len());
    for (d, extent) in shape.iter_mut().enumerate() {
        if extent.is_const(-1) {
            *extent = match d.checked_sub(lead).and_then(|d| from.get(d)) {
                Some(n) => n.clone(),
                None => return Err(Refusal::new("a new axis cannot have the extent -1")),
            };
        }
    }
    let elem = b.elem(x);
    Ok(vec![match x {
        Arg::Scalar { .. } => b.full(x, elem, shape),
        _ => b.broadcast_to(x, &shape)?,
    }])
}

fn repeat(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    if call.name == "aten.repeat_interleave" {
        let times = match call.extents("repeats")?.as_deref() {
            Some([one]) => one.clone(),
            _ => match call.opt(1).and_then(|r| b.ints(r)).as_deref() {
                Some([one]) => one.clone(),
                _ => {
                    return Err(Refusal::new("a count for each element gives a shape that depends on data")
                        .help("repeat every element the same number of times"));
                }
            },
        };
        if !call.has("dim") {
            let n = b.numel(&b.shape(x));
            x = b.reshape(x, &[n])?;
        }
        let mut shape = b.shape(x);
        let at = normal_axis(call.int("dim", 0)?, shape.len())?;
        let mut coords = same_place(shape.len());
        coords[at] = Ix::floor_div(ir::axis(at), times.clone());
        shape[at] = Ix::mul(shape[at].clone(), times);
        return Ok(vec![b.map("repeat", x, shape, coords)]);
    }
    let mut times = call
        .extents(call.given(&["repeats", "dims"]))?
        .ok_or_else(|| Refusal::new("the number of repeats is missing"))?;
    let rank = b.rank(x);
    while times.len() < rank {
        if call.name == "aten.repeat" {
            return Err(Refusal::new(format!("{} repeats are given for {rank} axes", times.len())));
        }
        times.insert(0, Ix::Const(1));
    }
    let lead = times.len() - rank;
    let from = b.shape(x);
    let mut shape = times.clone();
    let mut coords = vec![];
    for (d, n) in from.iter().enumerate() {
        let at = ir::axis(lead + d);
        coords.push(if times[lead + d].is_const(1) { at } else { Ix::modulo(at, n.clone()) });
        shape[lead + d] = Ix::mul(times[lead + d].clone(), n.clone());
    }
    if let Arg::Scalar { elem, .. } = x {
        return Ok(vec![b.full(x, elem, shape)]);
    }
    Ok(vec![b.map("repeat", x, shape, coords)])
}

fn flip(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let rank = b.rank(x);
    let dims = call.ints("dims")?.unwrap_or_default();
    if call.name == "aten.rot90" {
        let dims = if dims.is_empty() { vec![0, 1] } else { dims };
        let at = dims.iter().map(|d| normal_axis(*d, rank)).collect::<Result<Vec<_>>>()?;
        let &[p, q] = &at[..] else { return Err(Refusal::new("rot90 needs two axes")) };
        let k = call.int("k", 1)?.rem_euclid(4);
        for _ in 0..k {
            // One turn: flip the second axis, then exchange the two.
            x = reversed(b, x, &[q]);
            x = b.swap_axes(x, p, q)?;
        }
        return Ok(vec![x]);
    }
    let at = dims.iter().map(|d| normal_axis(*d, rank)).collect::<Result<Vec<_>>>()?;
    if call.name == "aten.flip" {
        return Ok(vec![reversed(b, x, &distinct(at)?)]);
    }
    let shifts = call.extents("shifts")?.unwrap_or_default();
    let shape = b.shape(x);
    if at.is_empty() {
        let n = b.numel(&shape);
        let flat = b.reshape(x, std::slice::from_ref(&n))?;
        let shift = shifts.first().cloned().unwrap_or(Ix::Const(0));
        let coord = Ix::modulo(Ix::sub(ir::axis(0), shift), n.clone());
        let y = b.map("roll", flat, vec![n], vec![coord]);
        return Ok(vec![b.reshape(y, &shape)?]);
    }
    if at.len() != shifts.len() {
        return Err(Refusal::new("roll needs a shift for each axis"));
    }
    let mut coords = same_place(rank);
    for (a, shift) in at.into_iter().zip(shifts) {
        coords[a] = Ix::modulo(Ix::sub(coords[a].clone(), shift), shape[a].clone());
    }
    Ok(vec![b.map("roll", x, shape, coords)])
}

fn reversed(b: &mut Builder<'_>, x: Arg, axes: &[usize]) -> Arg {
    let shape = b.shape(x);
    let mut coords = same_place(shape.len());
    for &a in axes {
        if let (Some(c), Some(n)) = (coords.get_mut(a), shape.get(a)) {
            *c = Ix::sub(Ix::sub(n.clone(), Ix::Const(1)), ir::axis(a));
        }
    }
    b.map("flip", x, shape, coords)
}

fn cat(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut parts: Vec<Arg> = call.args.to_vec();
    // An old rule of PyTorch: empty tensors of rank 1 do not count.
    if parts.iter().any(|p| b.rank(*p) > 1) {
        parts.retain(|p| b.shape(*p) != [Ix::Const(0)]);
    }
    let mut parts = super::types::together(b, &parts)?;
    let Some(&first) = parts.first() else { return Err(Refusal::new("there is nothing to concatenate")) };
    let rank = b.rank(first);
    let at = match call.name {
        "aten.stack" => {
            let at = normal_axis(call.int("dim", 0)?, rank + 1)?;
            for p in &mut parts {
                *p = b.unsqueeze(*p, &[at])?;
            }
            at
        }
        "aten.hstack" => usize::from(rank > 1),
        "aten.vstack" => {
            for p in &mut parts {
                if b.rank(*p) < 2 {
                    *p = b.unsqueeze(*p, &[0])?;
                }
            }
            0
        }
        _ => normal_axis(call.int("dim", 0)?, rank)?,
    };
    Ok(vec![b.concat(&parts, at)?])
}

fn triangle(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    if rank < 2 {
        return Err(Refusal::new("a triangle needs a tensor of rank 2 or more"));
    }
    let k = call.index("diagonal")?.unwrap_or(Ix::Const(0));
    let lower = call.name == "aten.tril";
    let cmp = if lower { Cmp::Le } else { Cmp::Ge };
    let cond = Cond::new(ir::axis(rank - 1), cmp, Ix::add(ir::axis(rank - 2), k));
    let zero = ir::scalar(b.elem(x), 0.0);
    let sources = vec![
        MapSource { arg: 0, coords: same_place(rank), when: Mask { conds: vec![cond], vals: vec![] } },
        MapSource { arg: 1, coords: vec![], when: Mask::default() },
    ];
    let shape = b.shape(x);
    Ok(vec![b.map_sources(if lower { "tril" } else { "triu" }, vec![x, zero], shape, sources)])
}

fn diagonal(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    if call.name == "aten.diag_embed" || call.name == "aten.diag" && rank == 1 {
        return embed(b, call, x);
    }
    let from = b.shape(x);
    let of = Diagonal::of(b, call, &from)?;
    let mut coords = vec![Ix::Const(0); rank];
    let mut shape = vec![];
    for d in of.others(rank) {
        coords[d] = ir::axis(shape.len());
        shape.push(from[d].clone());
    }
    for (axis, start) in of.axes.into_iter().zip(of.starts) {
        coords[axis] = Ix::add(ir::axis(shape.len()), start);
    }
    shape.push(of.length);
    let y = b.map("diagonal", x, shape, coords);
    if call.name == "aten.trace" {
        let y = if b.elem(y).is_float() { y } else { b.convert(y, Elem::I64)? };
        return Ok(vec![b.reduce(ir::ReduceOp::Sum, y, &[0], false)?]);
    }
    Ok(vec![y])
}

/// A diagonal of two axes of a tensor.
pub(super) struct Diagonal {
    /// The axes of rows and of columns.
    pub axes: [usize; 2],
    /// The row and the column where it starts.
    pub starts: [Ix; 2],
    pub length: Ix,
}

impl Diagonal {
    /// The diagonal that a call's `offset`, `dim1` and `dim2` name.
    pub fn of(b: &Builder<'_>, call: &Call<'_>, shape: &[Ix]) -> Result<Diagonal> {
        let offset = call.index(call.given(&["offset", "diagonal"]))?.unwrap_or(Ix::Const(0));
        let axes = [normal_axis(call.int("dim1", 0)?, shape.len())?, normal_axis(call.int("dim2", 1)?, shape.len())?];
        if axes[0] == axes[1] {
            return Err(Refusal::new("a diagonal needs two different axes"));
        }
        let (down, right) = sides(&offset);
        let [rows, columns] = axes.map(|axis| shape[axis].clone());
        let length = Ix::min(Ix::sub(rows, down.clone()), Ix::sub(columns, right.clone()));
        let length = b.simplify(&Ix::max(length, Ix::Const(0)));
        Ok(Diagonal { axes, starts: [down, right], length })
    }
    /// The axes of a tensor of the rank that are not the diagonal's.
    pub fn others(&self, rank: usize) -> impl Iterator<Item = usize> + use<> {
        let axes = self.axes;
        (0..rank).filter(move |d| !axes.contains(d))
    }
}

/// How far below the first row and right of the first column a diagonal starts.
fn sides(offset: &Ix) -> (Ix, Ix) {
    (Ix::max(Ix::sub(Ix::Const(0), offset.clone()), Ix::Const(0)), Ix::max(offset.clone(), Ix::Const(0)))
}

/// A matrix with the last axis on a diagonal.
fn embed(b: &mut Builder<'_>, call: &Call<'_>, x: Arg) -> Result<Vec<Arg>> {
    let rank = b.rank(x);
    if rank == 0 {
        return Err(Refusal::new("a diagonal needs a tensor of rank 1 or more"));
    }
    let offset = call.index(call.given(&["offset", "diagonal"]))?.unwrap_or(Ix::Const(0));
    let from = b.shape(x);
    let (down, right) = sides(&offset);
    let n = Ix::add(from[rank - 1].clone(), Ix::add(down.clone(), right));
    let mut shape = from[..rank - 1].to_vec();
    shape.extend([n.clone(), n]);
    let mut coords = same_place(rank);
    coords[rank - 1] = Ix::sub(ir::axis(rank - 1), down.clone());
    let on = Cond::new(Ix::add(ir::axis(rank - 1), offset), Cmp::Eq, ir::axis(rank));
    let first = Cond::new(ir::axis(rank - 1), Cmp::Ge, down);
    let last = Cond::new(coords[rank - 1].clone(), Cmp::Lt, from[rank - 1].clone());
    let zero = ir::scalar(b.elem(x), 0.0);
    let sources = vec![
        MapSource { arg: 0, coords, when: Mask { conds: vec![on, first, last], vals: vec![] } },
        MapSource { arg: 1, coords: vec![], when: Mask::default() },
    ];
    let y = b.map_sources("diag", vec![x, zero], shape, sources);
    let (p, q) = (normal_axis(call.int("dim1", -2)?, rank + 1)?, normal_axis(call.int("dim2", -1)?, rank + 1)?);
    let mut rest = 0..rank - 1;
    let perm: Vec<usize> = (0..=rank)
        .map(|d| match d {
            d if d == p => rank - 1,
            d if d == q => rank,
            _ => rest.next().unwrap_or(d),
        })
        .collect();
    Ok(vec![b.transpose(y, &perm)?])
}

fn meshgrid(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let columns = call.choice("indexing", &["ij", "xy"])? == "xy";
    let count = call.args.len();
    let place = |i: usize| if columns && count > 1 && i < 2 { 1 - i } else { i };
    let mut shape = vec![Ix::Const(1); count];
    for (i, x) in call.args.iter().enumerate() {
        shape[place(i)] = b.numel(&b.shape(*x));
    }
    let mut out = vec![];
    for (i, &x) in call.args.iter().enumerate() {
        let coords = if b.rank(x) == 0 { vec![] } else { vec![ir::axis(place(i))] };
        out.push(b.map("grid", x, shape.clone(), coords));
    }
    Ok(out)
}

fn pixels(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let shape = b.shape(x);
    let rank = shape.len();
    if rank < 3 {
        return Err(Refusal::new("a tensor of channels, rows and columns is needed"));
    }
    let lead = shape[..rank - 3].to_vec();
    let n = lead.len();
    let [c, h, w] = [&shape[rank - 3], &shape[rank - 2], &shape[rank - 1]];
    let r = Ix::Const(call.int(
        match call.name {
            "aten.pixel_shuffle" => "upscale_factor",
            "aten.pixel_unshuffle" => "downscale_factor",
            _ => "groups",
        },
        1,
    )?);
    let div = |b: &Builder<'_>, x: &Ix, r: &Ix| b.simplify(&Ix::floor_div(x.clone(), r.clone()));
    let mul = |x: &Ix, y: &Ix| Ix::mul(x.clone(), y.clone());
    let with = |tail: Vec<Ix>| lead.iter().cloned().chain(tail).collect::<Vec<Ix>>();
    let (split, order, last) = match call.name {
        "aten.pixel_shuffle" => {
            let out = div(b, c, &mul(&r, &r));
            let split = vec![out.clone(), r.clone(), r.clone(), h.clone(), w.clone()];
            (split, vec![0, 3, 1, 4, 2], vec![out, mul(h, &r), mul(w, &r)])
        }
        "aten.pixel_unshuffle" => {
            let (p, q) = (div(b, h, &r), div(b, w, &r));
            let split = vec![c.clone(), p.clone(), r.clone(), q.clone(), r.clone()];
            (split, vec![0, 2, 4, 1, 3], vec![mul(c, &mul(&r, &r)), p, q])
        }
        _ => {
            let part = div(b, c, &r);
            (vec![r.clone(), part, h.clone(), w.clone()], vec![1, 0, 2, 3], vec![c.clone(), h.clone(), w.clone()])
        }
    };
    let y = b.reshape(x, &with(split))?;
    let perm: Vec<usize> = (0..n).chain(order.into_iter().map(|d| n + d)).collect();
    let y = b.transpose(y, &perm)?;
    Ok(vec![b.reshape(y, &with(last))?])
}
