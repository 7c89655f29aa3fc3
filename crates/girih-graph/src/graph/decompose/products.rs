//! Products of matrices and vectors.

use super::expr::Tensor;
use super::{Call, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::num::DType;

rules! {
    matmul "Products by NumPy's rules for vectors and batches; sums of f16 and bf16 are made in f32, those of \
         `_int_mm` in i32.\n\n\
         `y = mm(a [m, k], b [k, n])` --> `y[i, j] = reduce dot a[i, k], b[k, j] over k`\n\n\
         Refuses operands of different types, and extents that do not meet." {
        "aten.matmul" => |c| c.x(0).matmul(c.x(1)),
        "aten.mm" => |c| of_ranks(c, 2, 2).map(|[x, y]| x.matmul(y)),
        "aten.bmm" => |c| of_ranks(c, 3, 3).map(|[x, y]| x.matmul(y)),
        "aten.mv" => |c| of_ranks(c, 2, 1).map(|[x, y]| x.matmul(y)),
        "aten.dot" | "aten.vdot" => |c| of_ranks(c, 1, 1).map(|[x, y]| x.matmul(y)),
        "aten.inner" => inner,
        "aten._int_mm" => |c| of_ranks(c, 2, 2).map(|[x, y]| x.matmul_in(y, Elem::I32)),
    }
    linear "A layer of weights `[out, in]`, with a bias.\n\n`y = linear(x, w, c)` --> `y = x @ transpose(w) + c`" {
        "aten.linear" => |c| {
            let w = if c.x(1).rank()? == 2 { c.x(1).transposed() } else { c.x(1) };
            let y = c.x(0).matmul(w);
            Ok::<_, Refusal>(c.maybe(2).map_or(y, |bias| y + bias))
        },
    }
    addmm "A product added to a tensor.\n\n\
         `y = addmm(c, a, b)` --> `y = beta*c + alpha*(a @ b)`\n\nA beta of 0 leaves the tensor out, NaNs included; so \
         does an alpha of 0 the product, in f32 and f64." {
        "aten.addmm" | "aten.addmv" | "aten.baddbmm" => |c| add_product(c, c.x(1).matmul(c.x(2))),
        "aten.addbmm" => |c| add_product(c, c.x(1).matmul(c.x(2)).sum(&[0], false)),
    }
    outer "Each element of one vector times each of the other.\n\n`y = outer(a, b)` --> `y[i, j] = a[i] * b[j]`" {
        "aten.outer" | "aten.ger" => outer,
    }
    trilinear "Sums of products of three tensors, each with axes of extent 1 inserted.\n\n\
         `y = _trilinear(a, b, c, .., sumdim)` --> `y = reduce sum a*b*c over sumdim`" {
        "aten._trilinear" => trilinear,
    }
    bilinear "A layer of two inputs and weights `[out, in1, in2]`.\n\n\
         `y = bilinear(x, z, w, c)` --> `y[o] = sum((x @ w[o]) * z) + c[o]`" {
        "aten.bilinear" => bilinear,
    }
}

/// Two operands, which must have these ranks.
fn of_ranks<'g>(c: &Call<'g>, m: usize, n: usize) -> Result<[Tensor<'g>; 2]> {
    let (m1, n1) = (c.x(0).rank()?, c.x(1).rank()?);
    if (m1, n1) != (m, n) {
        let name = c.name.trim_start_matches("aten.");
        return Err(Refusal::new(format!("{name} takes operands of rank {m} and {n}, not {m1} and {n1}")));
    }
    Ok([c.x(0), c.x(1)])
}

fn inner<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    match (c.x(0).rank()?, c.x(1).rank()?) {
        (_, 0 | 1) => Ok(c.x(0).matmul(c.x(1))),
        (_, 2) => Ok(c.x(0).matmul(c.x(1).transposed())),
        (rx, ry) => Err(Refusal::new(format!("inner of ranks {rx} and {ry} is not supported")).help("use einsum")),
    }
}

fn add_product<'g>(c: &Call<'g>, product: Tensor<'g>) -> Result<Tensor<'g>> {
    // BLAS leaves a product times 0 out; PyTorch's own kernels, of narrow types and of small batches, do not.
    let blas = matches!(product.elem().dtype, DType::F32 | DType::F64) && c.name != "aten.baddbmm";
    let product = if blas { c.scaled_or_none(product, "alpha") } else { c.scaled(product, "alpha") };
    // The tensor that beta = 0 leaves out may hold NaN.
    Ok(product + c.scaled_or_none(c.x(0), "beta").broadcast_to(&product.shape()?))
}

fn outer<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, y) = c.x(0).with(c.x(1));
    if x.rank()? != 1 || y.rank()? != 1 {
        return Err(Refusal::new("outer takes two vectors"));
    }
    Ok(x.unsqueeze(&[1]) * y)
}

fn trilinear<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let wide = c.x(0).wide_elem();
    let axes_of = |name: &str, rank: usize| {
        let given = c.ints(name)?.unwrap_or_default();
        given.into_iter().map(|a| normal_axis(a, rank)).collect::<Result<Vec<usize>>>()
    };
    let factor = |i: usize, name: &str| {
        let rank = c.x(i).rank()? + c.ints(name)?.unwrap_or_default().len();
        let mut axes = axes_of(name, rank)?;
        axes.sort_unstable();
        Ok(c.x(i).to(wide).unsqueeze(&axes))
    };
    let [x, y, z] = [factor(0, "expand1")?, factor(1, "expand2")?, factor(2, "expand3")?];
    let product = x * y;
    let axes = axes_of("sumdim", product.rank()?)?;
    Ok(product.dot(z, wide, &axes).to(c.x(0).elem()))
}

fn bilinear<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, z, rank) = (c.x(0), c.x(1), c.x(0).rank()?);
    if rank == 0 || rank != z.rank()? || c.x(2).rank()? != 3 {
        return Err(Refusal::new("bilinear takes two tensors of one rank and weights of rank 3"));
    }
    // [.., 1, 1, in1] @ [out, in1, in2] -> [.., out, 1, in2]
    let part = x.unsqueeze(&[rank - 1, rank]).matmul(c.x(2));
    let y = part.dot(z.unsqueeze(&[rank - 1, rank]), x.wide_elem(), &[rank + 1]);
    let y = y.squeeze(&[rank]).to(x.elem());
    Ok(c.maybe(3).map_or(y, |bias| y + bias))
}
