//! ONNX operators that ask for shapes or change them: nothing is computed but shapes.

use super::common::{axes_either, known, known_ints, normal_axes};
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, normal_axis, old};
use crate::graph::ir::{self, Arg};
use crate::graph::{Attr, Elem};
use crate::index::{Cmp, Ix};

rules! {
    onnx_shape "The extents of a tensor, or their product, as i64: they are known, up to symbols, when the model is compiled.\n\n\
         `y = Shape(x)` --> `y = constant or index of the extents`" {
        "onnx.Shape" | "onnx.Size" => old(shape),
    }
    onnx_reshape "The elements in another shape; 0 keeps an extent (unless `allowzero`), -1 stands for the rest.\n\n\
         `y = Reshape(x, shape)` --> `y = map x`\n\n\
         Refuses a shape that depends on the elements of an input." {
        "onnx.Reshape" | "onnx.Flatten" => old(reshape),
    }
    onnx_transpose "Permutes axes, by default reverses them.\n\n`y = Transpose(x)` --> `y = map x`" {
        "onnx.Transpose" => old(transpose),
    }
    onnx_squeeze "Removes or inserts axes of extent 1; without axes, all of extent 1 are removed.\n\n\
         `y = Squeeze(x)` --> `y = map x`" {
        "onnx.Squeeze" | "onnx.Unsqueeze" => old(squeeze),
    }
    onnx_expand "Broadcasts with a shape.\n\n`y = Expand(x, shape)` --> `y = map x`" {
        "onnx.Expand" => old(|b, call| {
            let x = call.arg(0)?;
            let shape = known(b, call, 1, "shape")?;
            let to = b.broadcast_shape(&[b.shape(x), shape])?;
            Ok(vec![b.broadcast_to(x, &to)?])
        }),
    }
    onnx_tile "Repeats along each axis.\n\n`y = Tile(x, n)` --> `y = map x[i0 % extent, ..]`" {
        "onnx.Tile" => old(tile),
    }
    onnx_identity "`y = Identity(x)` --> `y = x`" {
        "onnx.Identity" | "onnx.OptionalGetElement" => old(|_, call| Ok(vec![call.arg(0)?])),
    }
    onnx_has_element "True if an optional operand is given.\n\n`y = OptionalHasElement(x)` --> `y = constant`" {
        "onnx.OptionalHasElement" => old(|b, call| Ok(vec![b.int_constant(Elem::BOOL, &[], &[call.opt(0).is_some().into()])])),
    }
    onnx_blocks "Moves blocks of pixels between channels and the plane.\n\n\
         `y = SpaceToDepth(x)` --> `r = reshape x`, `t = transpose r`, `y = reshape t`" {
        "onnx.DepthToSpace" | "onnx.SpaceToDepth" => old(blocks),
    }
    onnx_fill "A tensor of one value.\n\n`y = ConstantOfShape(shape)` --> `y = full value`" {
        "onnx.ConstantOfShape" => old(constant_of_shape),
    }
    onnx_range "Numbers at equal distances.\n\n`y = Range(start, limit, delta)` --> `y = index start + i0*delta`\n\n\
         Refuses operands that depend on the elements of an input." {
        "onnx.Range" => old(range),
    }
}

fn shape(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let dims = b.shape(call.arg(0)?);
    if call.name == "onnx.Size" {
        let n = b.numel(&dims);
        return Ok(vec![match n.as_const() {
            Some(n) => b.int_constant(Elem::I64, &[], &[n]),
            None => b.index(n, Elem::I64, vec![]),
        }]);
    }
    let rank = dims.len() as i64;
    let at = |name: &str, default: i64| {
        let i = call.int(name, default)?;
        Ok((if i < 0 { i.saturating_add(rank) } else { i }).clamp(0, rank) as usize)
    };
    let (start, end) = (at("start", 0)?, at("end", rank)?);
    Ok(vec![b.known_ints(Elem::I64, dims.get(start..end).unwrap_or_default())])
}

fn product(dims: &[Ix]) -> Ix {
    dims.iter().fold(Ix::Const(1), |a, d| Ix::mul(a, d.clone()))
}

fn reshape(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let from = b.shape(x);
    if call.name == "onnx.Flatten" {
        let rank = from.len() as i64;
        let axis = call.int("axis", 1)?;
        let axis = if axis < 0 { axis + rank } else { axis };
        if !(0..=rank).contains(&axis) {
            return Err(Refusal::new(format!("axis {axis} is out of range for a tensor of rank {rank}")));
        }
        let (before, after) = from.split_at(axis as usize);
        return Ok(vec![b.reshape(x, &[product(before), product(after)])?]);
    }
    let mut shape = match call.extents("shape")? {
        Some(shape) => shape,
        None => known(b, call, 1, "shape")?,
    };
    let keep = !call.flag("allowzero", false)?;
    let mut kept = vec![];
    for (d, n) in shape.iter_mut().enumerate() {
        if keep && n.is_const(0) {
            let Some(have) = from.get(d) else {
                return Err(Refusal::new(format!(
                    "dimension {d} must be kept, but the operand has rank {}",
                    from.len()
                )));
            };
            *n = have.clone();
            kept.push(d);
        }
    }
    let open: Vec<usize> = (0..shape.len()).filter(|d| shape[*d].is_const(-1)).collect();
    match open[..] {
        [] => {}
        [d] => {
            // The extents that are kept, which may be 0, do not count.
            let without = |list: &[Ix]| -> Vec<Ix> {
                let others = list.iter().enumerate().filter(|(at, n)| !kept.contains(at) && !n.is_const(-1));
                others.map(|(_, n)| n.clone()).collect()
            };
            let (from, rest) = (without(&from), without(&shape));
            if rest.iter().any(|n| n.is_const(0)) {
                return Err(Refusal::new("an extent of -1 cannot be computed when another is 0"));
            }
            shape[d] = b.quotient(&from, &rest);
        }
        _ => return Err(Refusal::new("more than one extent of a shape is -1")),
    }
    if let Some(bad) = shape.iter().filter_map(Ix::as_const).find(|n| *n < 0) {
        return Err(Refusal::new(format!("the shape holds {bad}")));
    }
    Ok(vec![b.reshape(x, &shape)?])
}

fn transpose(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let perm = match call.ints("perm")? {
        Some(perm) => perm.iter().map(|p| normal_axis(*p, rank)).collect::<Result<Vec<usize>>>()?,
        None => (0..rank).rev().collect(),
    };
    Ok(vec![b.transpose(x, &perm)?])
}

fn squeeze(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let axes = axes_either(b, call, 1)?;
    Ok(vec![match (call.name, axes) {
        ("onnx.Unsqueeze", Some(axes)) => b.unsqueeze(x, &normal_axes(&axes, rank + axes.len())?)?,
        ("onnx.Unsqueeze", None) => return Err(Refusal::new("its axes are missing")),
        (_, Some(axes)) => b.squeeze(x, &normal_axes(&axes, rank)?)?,
        (_, None) => {
            let shape = b.shape(x);
            let ones: Vec<usize> = (0..rank).filter(|d| shape[*d].is_const(1)).collect();
            let open = |d: &usize| !ones.contains(d) && !b.holds(&shape[*d], Cmp::Ne, &Ix::Const(1));
            if let Some(d) = (0..rank).find(open) {
                let text = b.shape_text(&shape);
                return Err(Refusal::new(format!("it is not known whether axis {d} of shape {text} has extent 1")));
            }
            b.squeeze(x, &ones)?
        }
    }])
}

fn tile(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let from = b.shape(x);
    let repeats = known(b, call, 1, "repeats")?;
    if repeats.len() != from.len() {
        return Err(Refusal::new(format!("{} repeats are given for {} axes", repeats.len(), from.len())));
    }
    let (mut shape, mut coords) = (vec![], vec![]);
    for (d, (n, r)) in from.iter().zip(&repeats).enumerate() {
        shape.push(b.simplify(&Ix::mul(n.clone(), r.clone())));
        coords.push(match (n.as_const(), r.as_const()) {
            (Some(0 | 1), _) => Ix::Const(0),
            (_, Some(1)) => ir::axis(d),
            _ => Ix::modulo(ir::axis(d), n.clone()),
        });
    }
    if repeats.iter().all(|r| r.is_const(1)) {
        return Ok(vec![x]);
    }
    Ok(vec![b.map("tile", x, shape, coords)])
}

fn blocks(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let [n, c, h, w] = &b.shape(x)[..] else {
        return Err(Refusal::new(format!("it needs a tensor of rank 4, not {}", b.rank(x))));
    };
    let (n, c, h, w) = (n.clone(), c.clone(), h.clone(), w.clone());
    let size = call.int("blocksize", 0)?;
    if !(1..=1 << 20).contains(&size) {
        return Err(Refusal::new(format!("the block size {size} is out of range")));
    }
    let s = Ix::Const(size);
    let by = |b: &Builder<'_>, x: &Ix, n: i64| -> Result<Ix> {
        let q = b.simplify(&Ix::floor_div(x.clone(), Ix::Const(n)));
        if b.same(&Ix::mul(q.clone(), Ix::Const(n)), x) {
            Ok(q)
        } else {
            Err(Refusal::new(format!("blocks of {size} do not divide the extent {}", b.graph.ix_text(x))))
        }
    };
    if call.name == "onnx.SpaceToDepth" {
        let (rows, columns) = (by(b, &h, size)?, by(b, &w, size)?);
        let split = b.reshape(x, &[n.clone(), c.clone(), rows.clone(), s.clone(), columns.clone(), s.clone()])?;
        let perm = if call.choice("mode", &["DCR", "CRD"])? == "CRD" { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
        let turned = b.transpose(split, &perm)?;
        let depth = Ix::mul(c, Ix::Const(size * size));
        return Ok(vec![b.reshape(turned, &[n, depth, rows, columns])?]);
    }
    let depth = by(b, &c, size * size)?;
    let (split, perm) = if call.choice("mode", &["DCR", "CRD"])? == "CRD" {
        (b.reshape(x, &[n.clone(), depth.clone(), s.clone(), s.clone(), h.clone(), w.clone()])?, [0, 1, 4, 2, 5, 3])
    } else {
        (b.reshape(x, &[n.clone(), s.clone(), s.clone(), depth.clone(), h.clone(), w.clone()])?, [0, 3, 4, 1, 5, 2])
    };
    let turned = b.transpose(split, &perm)?;
    Ok(vec![b.reshape(turned, &[n, depth, Ix::mul(h, s.clone()), Ix::mul(w, s)])?])
}

fn constant_of_shape(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let shape = known(b, call, 0, "shape")?;
    if let Some(bad) = shape.iter().filter_map(Ix::as_const).find(|n| *n < 0) {
        return Err(Refusal::new(format!("the shape holds {bad}")));
    }
    let value = match call.tensor("value")? {
        None => ir::scalar(Elem::F32, 0.0),
        Some((elem, _, values)) => match values {
            [Attr::Int(Ix::Const(i))] => ir::int_scalar(elem, *i),
            [Attr::Float(x)] => ir::scalar(elem, *x),
            _ => return Err(Refusal::new("its value must be one number")),
        },
    };
    let elem = b.elem(value);
    Ok(vec![b.full(value, elem, shape)])
}

fn range(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let elem = b.elem(call.arg(0)?);
    if elem.is_int() {
        let one = |i: usize, what: &str| -> Result<Ix> {
            known(b, call, i, what)?.first().cloned().ok_or_else(|| Refusal::new(format!("its {what} is empty")))
        };
        let (start, limit) = (one(0, "start")?, one(1, "limit")?);
        let delta = match known_ints(b, call, 2, "delta")?[..] {
            [delta] if delta != 0 => delta,
            _ => return Err(Refusal::new("its delta must be one number that is not 0")),
        };
        let (span, step) = if delta > 0 {
            (Ix::sub(limit, start.clone()), delta)
        } else {
            (Ix::sub(start.clone(), limit), delta.saturating_neg())
        };
        let count = b.simplify(&Ix::max(Ix::ceil_div(span, Ix::Const(step)), Ix::Const(0)));
        let value = Ix::add(start, Ix::mul(ir::axis(0), Ix::Const(delta)));
        return Ok(vec![b.index(value, elem, vec![count])]);
    }
    let one = |i: usize, what: &str| -> Result<f64> {
        match b.floats(call.arg(i)?).as_deref() {
            Some([x]) => Ok(*x),
            _ => Err(Refusal::new(format!("its {what} must be known when the model is compiled"))),
        }
    };
    let (start, limit, delta) = (one(0, "start")?, one(1, "limit")?, one(2, "delta")?);
    let count = ((limit - start) / delta).ceil().max(0.0);
    if count.is_nan() || count > ir::MAX_EXTENT as f64 {
        return Err(Refusal::new("it has too many elements, or an unknown number"));
    }
    let place = b.index(ir::axis(0), Elem::I64, vec![Ix::Const(count as i64)]);
    let wide = if elem.dtype.bits() < 32 { Elem::F32 } else { elem };
    let place = b.convert(place, wide)?;
    let scaled = b.mul(place, ir::scalar(wide, delta))?;
    let y = b.add(scaled, ir::scalar(wide, start))?;
    Ok(vec![b.convert(y, elem)?])
}
