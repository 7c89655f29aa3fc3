//! ONNX matrix products.

use super::quantized_products::product;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::expr::Tensor;

rules! {
    onnx_matmul "NumPy's matrix product.\n\n`y = MatMul(a, b)` --> `y = reduce dot a, b`" {
        "onnx.MatMul" => |c| c.x(0).matmul(c.x(1)),
    }
    onnx_gemm "A matrix product, scaled, plus a scaled bias.\n\n\
         `y = Gemm(a, b, c)` --> `y = alpha * (reduce dot a, b) + beta * c`" {
        "onnx.Gemm" => gemm,
    }
    onnx_matmul_integer "A product of 8-bit integers less their zero points, in 32 bits.\n\n\
         `y = MatMulInteger(a, b, za, zb)` --> `y = (reduce dot a, (b - zb)) - za * reduce sum (b - zb)`" {
        // A zero point for each row of the first operand, or each column of the second.
        "onnx.MatMulInteger" => |c| {
            let (rows, columns) = (c.x(0).rank()?.saturating_sub(2), c.x(1).rank()?.saturating_sub(1));
            product((c.x(0), c.maybe(2)), rows, (c.x(1), c.maybe(3)), columns)
        },
    }
}

fn gemm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    if c.x(0).rank()? != 2 || c.x(1).rank()? != 2 {
        return Err(Refusal::new("its operands must be matrices"));
    }
    let operand = |i, turned| Ok(if c.flag(turned, false)? { c.x(i).transposed() } else { c.x(i) });
    let y = operand(0, "transA")?.matmul(operand(1, "transB")?);
    let scaled = |x: Tensor<'g>, by: f64| if by == 1.0 { x } else { x * by };
    let y = scaled(y, c.float("alpha", 1.0)?);
    let Some(bias) = c.maybe(2) else { return Ok(y) };
    Ok(y + scaled(bias, c.float("beta", 1.0)?).broadcast_to(&y.shape()?))
}
