//! ONNX matrix products.

use super::quantized_products::product;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::Arg;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_matmul",
        handles: &["onnx.MatMul"],
        doc: "NumPy's matrix product.\n\n`y = MatMul(a, b)` --> `y = reduce dot a, b`",
        run: |b, call| Ok(vec![b.matmul(call.arg(0)?, call.arg(1)?)?]),
    },
    Decomposition {
        name: "onnx_gemm",
        handles: &["onnx.Gemm"],
        doc: "A matrix product, scaled, plus a scaled bias.\n\n\
              `y = Gemm(a, b, c)` --> `y = alpha * (reduce dot a, b) + beta * c`",
        run: gemm,
    },
    Decomposition {
        name: "onnx_matmul_integer",
        handles: &["onnx.MatMulInteger"],
        doc: "A product of 8-bit integers less their zero points, in 32 bits.\n\n\
              `y = MatMulInteger(a, b, za, zb)` --> `y = (reduce dot a, (b - zb)) - za * reduce sum (b - zb)`",
        run: matmul_integer,
    },
];

fn gemm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (mut x, mut w) = (call.arg(0)?, call.arg(1)?);
    if b.rank(x) != 2 || b.rank(w) != 2 {
        return Err(Refusal::new("its operands must be matrices"));
    }
    if call.flag("transA", false)? {
        x = b.swap_axes(x, 0, 1)?;
    }
    if call.flag("transB", false)? {
        w = b.swap_axes(w, 0, 1)?;
    }
    let mut y = b.matmul(x, w)?;
    let scaled = |b: &mut Builder<'_>, x: Arg, by: f64| {
        let factor = b.scalar_like(x, by);
        if by == 1.0 { Ok(x) } else { b.mul(x, factor) }
    };
    y = scaled(b, y, call.float("alpha", 1.0)?)?;
    if let Some(c) = call.opt(2) {
        let c = scaled(b, c, call.float("beta", 1.0)?)?;
        let shape = b.shape(y);
        let c = b.broadcast_to(c, &shape)?;
        y = b.add(y, c)?;
    }
    Ok(vec![y])
}

fn matmul_integer(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, call.arg(1)?);
    // A zero point for each row of the first operand, or each column of the second.
    let (rows, columns) = (b.rank(x).saturating_sub(2), b.rank(y).saturating_sub(1));
    Ok(vec![product(b, (x, call.opt(2)), rows, (y, call.opt(3)), columns)?])
}
