//! Products of matrices and vectors.

use super::types::{pair, scaled, scaled_or_none};
use super::{Call, Decomposition, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::Arg;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "matmul",
        handles: &[
            "aten.matmul",
            "aten.mm",
            "aten.bmm",
            "aten.mv",
            "aten.dot",
            "aten.vdot",
            "aten.inner",
            "aten._int_mm",
        ],
        doc: "Products by NumPy's rules for vectors and batches; sums of f16 and bf16 are made in f32, those of \
              `_int_mm` in i32.\n\n\
              `y = mm(a [m, k], b [k, n])` --> `y[i, j] = reduce dot a[i, k], b[k, j] over k`\n\n\
              Refuses operands of different types, and extents that do not meet.",
        run: matmul,
    },
    Decomposition {
        name: "linear",
        handles: &["aten.linear"],
        doc: "A layer of weights `[out, in]`, with a bias.\n\n`y = linear(x, w, c)` --> `y = x @ transpose(w) + c`",
        run: linear,
    },
    Decomposition {
        name: "addmm",
        handles: &["aten.addmm", "aten.addmv", "aten.baddbmm", "aten.addbmm"],
        doc: "A product added to a tensor.\n\n\
              `y = addmm(c, a, b)` --> `y = beta*c + alpha*(a @ b)`\n\nA beta of 0 leaves the tensor out, NaNs included.",
        run: addmm,
    },
    Decomposition {
        name: "outer",
        handles: &["aten.outer", "aten.ger"],
        doc: "Each element of one vector times each of the other.\n\n`y = outer(a, b)` --> `y[i, j] = a[i] * b[j]`",
        run: outer,
    },
    Decomposition {
        name: "trilinear",
        handles: &["aten._trilinear"],
        doc: "Sums of products of three tensors, each with axes of extent 1 inserted.\n\n\
              `y = _trilinear(a, b, c, .., sumdim)` --> `y = reduce sum a*b*c over sumdim`",
        run: trilinear,
    },
    Decomposition {
        name: "bilinear",
        handles: &["aten.bilinear"],
        doc: "A layer of two inputs and weights `[out, in1, in2]`.\n\n\
              `y = bilinear(x, z, w, c)` --> `y[o] = sum((x @ w[o]) * z) + c[o]`",
        run: bilinear,
    },
];

fn matmul(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, call.arg(1)?);
    let ranks = match call.name {
        "aten.mm" | "aten._int_mm" => Some((2, 2)),
        "aten.bmm" => Some((3, 3)),
        "aten.mv" => Some((2, 1)),
        "aten.dot" | "aten.vdot" => Some((1, 1)),
        _ => None,
    };
    if let Some((m, n)) = ranks
        && (b.rank(x) != m || b.rank(y) != n)
    {
        let name = call.name.trim_start_matches("aten.");
        let (m1, n1) = (b.rank(x), b.rank(y));
        return Err(Refusal::new(format!("{name} takes operands of rank {m} and {n}, not {m1} and {n1}")));
    }
    if call.name == "aten.inner" && b.rank(y) > 1 {
        let (rx, ry) = (b.rank(x), b.rank(y));
        let flat = b.swap_axes(y, ry - 2, ry - 1)?;
        if ry == 2 {
            return Ok(vec![b.matmul(x, flat)?]);
        }
        return Err(Refusal::new(format!("inner of ranks {rx} and {ry} is not supported")).help("use einsum"));
    }
    if call.name == "aten._int_mm" {
        return Ok(vec![b.matmul_in(x, y, Elem::I32)?]);
    }
    Ok(vec![b.matmul(x, y)?])
}

/// `x @ transpose(w) + bias`.
pub(super) fn linear_of(b: &mut Builder<'_>, x: Arg, w: Arg, bias: Option<Arg>) -> Result<Arg> {
    let w = if b.rank(w) == 2 { b.swap_axes(w, 0, 1)? } else { w };
    let y = b.matmul(x, w)?;
    match bias {
        Some(bias) => b.add(y, bias),
        None => Ok(y),
    }
}

fn linear(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    Ok(vec![linear_of(b, call.arg(0)?, call.arg(1)?, call.opt(2))?])
}

fn addmm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (c, x, y) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let mut product = b.matmul(x, y)?;
    if call.name == "aten.addbmm" {
        product = b.reduce(crate::graph::ir::ReduceOp::Sum, product, &[0], false)?;
    }
    let product = scaled(b, call, product, "alpha")?;
    // What beta = 0 leaves out may hold NaN.
    let c = scaled_or_none(b, call, c, "beta")?;
    let shape = b.shape(product);
    let c = b.broadcast_to(c, &shape)?;
    Ok(vec![b.add(product, c)?])
}

fn outer(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = pair(b, call.arg(0)?, call.arg(1)?)?;
    if b.rank(x) != 1 || b.rank(y) != 1 {
        return Err(Refusal::new("outer takes two vectors"));
    }
    let x = b.unsqueeze(x, &[1])?;
    Ok(vec![b.mul(x, y)?])
}

fn trilinear(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let narrow = b.elem(call.arg(0)?);
    let wide = b.wide(call.arg(0)?);
    let mut factors = vec![];
    for (i, name) in ["expand1", "expand2", "expand3"].into_iter().enumerate() {
        let x = call.arg(i)?;
        let added = call.ints(name)?.unwrap_or_default();
        let rank = b.rank(x) + added.len();
        let mut axes = added.into_iter().map(|a| normal_axis(a, rank)).collect::<Result<Vec<usize>>>()?;
        axes.sort_unstable();
        let x = b.convert(x, wide)?;
        factors.push(b.unsqueeze(x, &axes)?);
    }
    let &[x, y, z] = &factors[..] else { return Err(Refusal::new("three operands are needed")) };
    let product = b.mul(x, y)?;
    let rank = b.rank(product);
    let over = call.ints("sumdim")?.unwrap_or_default();
    let axes = over.into_iter().map(|a| normal_axis(a, rank)).collect::<Result<Vec<usize>>>()?;
    let sum = b.dot(product, z, wide, &axes, false)?;
    Ok(vec![b.convert(sum, narrow)?])
}

fn bilinear(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, z, w) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let (rx, rz) = (b.rank(x), b.rank(z));
    if rx == 0 || rx != rz || b.rank(w) != 3 {
        return Err(Refusal::new("bilinear takes two tensors of one rank and weights of rank 3"));
    }
    // [.., 1, 1, in1] @ [out, in1, in2] -> [.., out, 1, in2]
    let wide = b.wide(x);
    let narrow = b.elem(x);
    let x = b.unsqueeze(x, &[rx - 1, rx])?;
    let part = b.matmul(x, w)?;
    let z = b.unsqueeze(z, &[rz - 1, rz])?;
    let y = b.dot(part, z, wide, &[rx + 1], false)?;
    let y = b.squeeze(y, &[rx])?;
    let mut y = b.convert(y, narrow)?;
    if let Some(bias) = call.opt(3) {
        y = b.add(y, bias)?;
    }
    Ok(vec![y])
}
