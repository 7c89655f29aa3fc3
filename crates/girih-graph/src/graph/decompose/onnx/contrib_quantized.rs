//! Operators of the domain `com.microsoft` that ONNX Runtime's quantiser and optimiser write.
//!
//! Between integers stands the operation on floats: `dequantize`, the operation, `quantize`.

use super::quantize::dynamic;
use super::quantized_products::product as integer_product;
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::expr::Tensor;
use crate::graph::decompose::resize::nearest_even;
use crate::graph::decompose::{Call, normal_axis};
use crate::graph::ir::{self, Attr, MAX_EXTENT};
use crate::index::Ix;
use crate::num::ScalarOp;
use crate::num::op::Signedness;

rules! {
    contrib_quantized_binary "A sum or a product of integers with scales.\n\n\
         `y = qlinear_add(a, sa, za, b, sb, zb, sy, zy)` --> `y = quantize((a - za)*sa + (b - zb)*sb)`" {
        "com.microsoft.QLinearAdd" => |c| binary(c, |x, z| x + z),
        "com.microsoft.QLinearMul" => |c| binary(c, |x, z| x * z),
    }
    contrib_quantized_function "A function of integers with a scale.\n\n`y = qlinear_sigmoid(x, sx, zx, sy, zy)` --> \
         `y = quantize(sigmoid((x - zx)*sx))`\n\nRefuses channels that lie last." {
        "com.microsoft.QLinearAveragePool" | "com.microsoft.QLinearGlobalAveragePool" | "com.microsoft.QLinearLeakyRelu" |
        "com.microsoft.QLinearSigmoid" | "com.microsoft.QLinearSoftmax" => function,
    }
    contrib_quantized_concat "Integers of several scales side by side, in one scale.\n\n\
         `y = qlinear_concat(sy, zy, a, sa, za, ..)` --> `y = quantize(concat((a - za)*sa, ..))`" {
        "com.microsoft.QLinearConcat" => concat,
    }
    contrib_quantized_products "A product of integers, scaled once.\n\n\
         `y = qgemm(a, sa, za, b, sb, zb, c)` --> `y = ((a - za) @ (b - zb) + c) * (sa*sb)`\n\n\
         The left operand of `DynamicQuantizeMatMul` is quantised as it comes." {
        "com.microsoft.DynamicQuantizeMatMul" => |c| {
            let [q, scale, zero] = dynamic(c.x(0))?;
            product([q, c.x(1)], [Some(zero), c.maybe(3)], [scale, c.x(2)], c.maybe(4))
        },
        "com.microsoft.MatMulIntegerToFloat" =>
            |c| product([c.x(0), c.x(1)], [c.maybe(4), c.maybe(5)], [c.x(2), c.x(3)], c.maybe(6)),
        "com.microsoft.QGemm" => quantized_gemm,
    }
    contrib_matmul_nbits "A product with weights of 4 or 8 bits, a scale for each block of a row.\n\n\
         `y = matmul_nbits(x, w, s, z)` --> `y = x @ ((unpack w - z)*s)^T`\n\n\
         Refuses other widths and blocks in another order." {
        "com.microsoft.MatMulNBits" => matmul_nbits,
    }
    contrib_fused_conv "A convolution with a sum and an activation.\n\n`y = fused_conv(x, w, b, z)` --> `y = relu(conv(x, w, b) + z)`" {
        "com.microsoft.FusedConv" => fused_conv,
    }
    contrib_fused_gemm "A matrix product with an activation.\n\n`y = fused_gemm(a, b, c)` --> `y = relu(gemm(a, b, c))`" {
        "com.microsoft.FusedGemm" => fused_gemm,
    }
    contrib_gather_block_quantized "Rows of a table of 4 or 8 bits, a scale for each block of a row.\n\n\
         `y = gather_block_quantized(x, i, s, z)` --> `y = (gather x[i] - gather z[i]) * gather s[i]`\n\n\
         Refuses blocks along the axis that is gathered along, and bytes of two numbers along another axis than the last." {
        "com.microsoft.GatherBlockQuantized" => gather_block_quantized,
    }
}

/// A scale or a zero point of one number as one that broadcasts.
fn single(v: Tensor<'_>) -> Result<Tensor<'_>> {
    match v.shape()?.as_slice() {
        [one] if one.is_const(1) => Ok(v.squeeze(&[0])),
        // One for each column.
        [] | [_] => Ok(v),
        _ => Err(Refusal::new(format!("a scale of shape {} is not supported", v.shape_text()))),
    }
}

/// `(x - zero) * scale` in f32.
fn dequantize<'g>(x: Tensor<'g>, scale: Tensor<'g>, zero: Option<Tensor<'g>>) -> Result<Tensor<'g>> {
    let mut y = x.to(Elem::F32);
    if let Some(zero) = zero {
        y = y - single(zero.to(Elem::F32))?;
    }
    Ok(y * single(scale)?)
}

/// `round(y / scale) + zero`, saturated to `elem`.
fn quantize<'g>(y: Tensor<'g>, scale: Tensor<'g>, zero: Option<Tensor<'g>>, elem: Elem) -> Result<Tensor<'g>> {
    let mut y = nearest_even(y / single(scale)?);
    if let Some(zero) = zero {
        y = y + single(zero.to(Elem::F32))?;
    }
    Ok(y.to(elem))
}

/// Another operation of ONNX's main set, with the attributes of this one.
fn onnx<'g>(c: &Call<'g>, name: &str, args: &[Tensor<'g>]) -> Tensor<'g> {
    let own = c.without(&["opset", "outputs"]);
    let mut attrs: Vec<(&str, Attr)> = own.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    attrs.push(("opset", Attr::Int(Ix::Const(17))));
    c.other(name, args, &attrs)
}

fn binary<'g>(c: &Call<'g>, f: fn(Tensor<'g>, Tensor<'g>) -> Tensor<'g>) -> Result<Tensor<'g>> {
    let x = dequantize(c.x(0), c.x(1), c.maybe(2))?;
    let z = dequantize(c.x(3), c.x(4), c.maybe(5))?;
    quantize(f(x, z), c.x(6), c.maybe(7), c.x(0).elem())
}

fn function<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    if c.flag("channels_last", false)? {
        return Err(Refusal::new("channels that lie last are not supported"));
    }
    let x = dequantize(c.x(0), c.x(1), c.maybe(2))?;
    let name = c.name.rsplit("QLinear").next().unwrap_or_default();
    let y = match name {
        // Before version 13 all axes from this one on are one.
        "Softmax" if c.int("opset", 13)? < 13 => {
            let shape = x.shape()?;
            let axis = normal_axis(c.int("axis", 1)?, shape.len())?;
            let product = |of: &[Ix]| of.iter().fold(Ix::Const(1), |n, d| c.cx.simplify(&Ix::mul(n, d.clone())));
            let flat = x.reshape(&[product(&shape[..axis]), product(&shape[axis..])]);
            c.other("onnx.Softmax", &[flat], &[("axis", Attr::Int(Ix::Const(1)))]).reshape(&shape)
        }
        _ => onnx(c, &format!("onnx.{name}"), &[x]),
    };
    quantize(y, c.x(3), c.maybe(4), c.x(0).elem())
}

fn concat<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let parts = (2..c.args.len()).step_by(3).map(|at| dequantize(c.x(at), c.x(at + 1), c.maybe(at + 2)));
    let y = onnx(c, "onnx.Concat", &parts.collect::<Result<Vec<_>>>()?);
    quantize(y, c.x(0), c.maybe(1), c.x(1).elem())
}

/// The product of integers; a zero point for each column stands along the last axis.
fn integers<'g>([x, w]: [Tensor<'g>; 2], [zero, w_zero]: [Option<Tensor<'g>>; 2]) -> Result<Tensor<'g>> {
    let last = |x: Tensor<'g>| Ok(x.rank()?.saturating_sub(1));
    integer_product((x, zero), last(x)?, (w, w_zero), last(w)?)
}

/// Integers with zero points and scales, and a bias.
fn product<'g>(
    operands: [Tensor<'g>; 2],
    zeros: [Option<Tensor<'g>>; 2],
    scales: [Tensor<'g>; 2],
    bias: Option<Tensor<'g>>,
) -> Result<Tensor<'g>> {
    let sum = integers(operands, zeros)?;
    let scale = single(scales[0])? * single(scales[1])?;
    let y = sum.to(scale.elem()) * scale;
    Ok(bias.map_or(y, |bias| y + bias))
}

/// `(a, a_scale, a_zero, b, b_scale, b_zero, c?, y_scale?, y_zero?)`
fn quantized_gemm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    for i in [0, 3] {
        if c.x(i).rank()? != 2 {
            return Err(Refusal::new(format!("{} is not a matrix", c.x(i).shape_text())));
        }
    }
    // A zero point for each column is one after transposing.
    let matrix = |i, turned| Ok(if c.flag(turned, false)? { c.x(i).swap_axes(0, 1) } else { c.x(i) });
    let sum = integers([matrix(0, "transA")?, matrix(3, "transB")?], [c.maybe(2), c.maybe(5)])?;
    let sum = c.maybe(6).map_or(sum, |bias| sum + bias.into_shape_of(sum));
    let scale = single(c.x(1))? * single(c.x(4))?;
    let alpha = c.float("alpha", 1.0)?;
    let scale = if alpha == 1.0 { scale } else { scale * alpha };
    let y = sum.to(scale.elem()) * scale;
    match c.maybe(7) {
        Some(scale) => quantize(y, scale, c.maybe(8), c.maybe(8).unwrap_or(c.x(0)).elem()),
        None => Ok(y),
    }
}

/// Bytes `[.., n]` as two numbers of 4 bits each, the lower first: `[.., 2n]`, in f32.
fn halves(bytes: Tensor<'_>) -> Result<Tensor<'_>> {
    let mut shape = bytes.shape()?;
    let rank = shape.len();
    let whole = bytes.to(Elem::I32);
    let high = whole.apply(ScalarOp::Shr { sign: Signedness::Unsigned }, &[bytes.cx.int_of(Elem::I32, 4)]);
    let both = bytes.cx.concat(&[whole & 15, high].map(|x| x.unsqueeze(&[rank])), rank);
    if let Some(last) = shape.last_mut() {
        *last = bytes.cx.simplify(&Ix::mul(last.clone(), Ix::Const(2)));
    }
    Ok(both.reshape(&shape).to(Elem::F32))
}

/// `(x [.., K], w [N, blocks, bytes], scales, zero_points?, g_idx?, bias?)`
fn matmul_nbits<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (k, n) = (c.int("K", 0)?, c.int("N", 0)?);
    let (bits, block) = (c.int("bits", 4)?, c.int("block_size", 32)?);
    let extent = |n: i64| (1..=MAX_EXTENT).contains(&n);
    if !matches!(bits, 4 | 8) || c.maybe(4).is_some() || !extent(k) || !extent(n) || !(16..=MAX_EXTENT).contains(&block)
    {
        let weights = format!("{n} rows of {k} weights of {bits} bits in blocks of {block}");
        return Err(Refusal::new(format!("{weights} are not supported")));
    }
    let blocks = (k + block - 1) / block;
    let unpacked = |bytes: Tensor<'g>, count: i64| {
        let bytes = bytes.reshape(&[Ix::Const(n), Ix::Const((count * bits + 7) / 8)]);
        let all = if bits == 4 { halves(bytes)? } else { bytes.to(Elem::F32) };
        Ok(all.slice(1, Ix::Const(0), 1, Ix::Const(count)))
    };
    let q = unpacked(c.x(1), blocks * block)?.slice(1, Ix::Const(0), 1, Ix::Const(k));
    // One for each weight of a block.
    let of_blocks = |name, x: Tensor<'g>| {
        let coords = vec![ir::axis(0), Ix::floor_div(ir::axis(1), Ix::Const(block))];
        x.reshape(&[Ix::Const(n), Ix::Const(blocks)]).map(name, vec![Ix::Const(n), Ix::Const(k)], coords)
    };
    let zero = match c.maybe(3) {
        None => q.like(f64::from(1u32 << (bits - 1))),
        Some(zero) if zero.elem().is_float() => of_blocks("zero", zero.to(Elem::F32)),
        Some(zero) => of_blocks("zero", unpacked(zero, blocks)?),
    };
    let rows = (q - zero) * of_blocks("scale", c.x(2).to(Elem::F32));
    let wide = c.x(0).wide_elem();
    let columns = rows.to(wide).transpose(&[1, 0]);
    let y = c.x(0).wide().matmul(columns);
    Ok(c.maybe(5).map_or(y, |bias| y + bias.to(wide)).to(c.x(0).elem()))
}

/// `(x, w, b?, z?)`
fn fused_conv<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let operands: Vec<Tensor<'g>> = c.args.iter().take(3).map(|x| c.cx.tensor(*x)).collect();
    let y = onnx(c, "onnx.Conv", &operands);
    let y = match c.maybe(3) {
        Some(more) => y + more.of_shape("the tensor that is added", &y.shape()?)?,
        None => y,
    };
    activated(c, y, &c.floats("activation_params")?.unwrap_or_default())
}

/// Applies an activation that was fused into a product.
fn activated<'g>(c: &Call<'g>, y: Tensor<'g>, params: &[f64]) -> Result<Tensor<'g>> {
    let with = |name: &str, names: &[&str]| {
        let given = names.iter().zip(params).map(|(name, value)| (*name, Attr::Float(*value)));
        c.other(&format!("onnx.{name}"), &[y], &given.collect::<Vec<_>>())
    };
    Ok(match c.text("activation")?.unwrap_or_default() {
        "" => y,
        name @ ("Relu" | "Sigmoid" | "Tanh" | "Softplus" | "Softsign") => with(name, &[]),
        name @ ("LeakyRelu" | "Elu" | "ThresholdedRelu") => with(name, &["alpha"]),
        name @ "HardSigmoid" => with(name, &["alpha", "beta"]),
        "Clip" => {
            let y = params.first().map_or(y, |low| y.max(*low));
            params.get(1).map_or(y, |high| y.min(*high))
        }
        other => return Err(Refusal::new(format!("a product with the activation {other} is not supported"))),
    })
}

/// `(a, b, c?)`
fn fused_gemm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let operands: Vec<Tensor<'g>> = c.args.iter().map(|x| c.cx.tensor(*x)).collect();
    let y = onnx(c, "onnx.Gemm", &operands);
    let mut params = vec![];
    for name in ["activation_alpha", "activation_beta", "activation_gamma"] {
        params.extend(c.float_of(name)?);
    }
    activated(c, y, &params)
}

/// `(data, indices, scales, zero_points?)`: rows are gathered first, and only they become floats.
fn gather_block_quantized<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (data, rank) = (c.x(0), c.x(0).rank()?);
    let gathered = normal_axis(c.int("gather_axis", 0)?, rank)?;
    let quantized = normal_axis(c.int("quantize_axis", 1)?, rank)?;
    let (block, bits) = (c.int("block_size", 128)?, c.int("bits", 4)?);
    let packed = data.elem() == Elem::U8 && bits == 4;
    let fits = (16..=MAX_EXTENT).contains(&block) && matches!(bits, 4 | 8) && gathered != quantized;
    if !fits || (packed && quantized + 1 != rank) {
        let what = format!("{bits} bits in blocks of {block} along axis {quantized}, gathered along axis {gathered}");
        return Err(Refusal::new(format!("{what} are not supported")));
    }
    let at = |x| c.other("onnx.Gather", &[x, c.x(1)], &[("axis", Attr::Int(Ix::Const(gathered as i64)))]);
    let whole = |x| if packed { halves(at(x)) } else { Ok(at(x).to(Elem::F32)) };
    let q = whole(data)?;
    let axis = if quantized > gathered { quantized + c.x(1).rank()? - 1 } else { quantized };
    let shape = q.shape()?;
    let spread = |x: Tensor<'g>| {
        let mut coords: Vec<Ix> = (0..shape.len()).map(ir::axis).collect();
        coords[axis] = Ix::floor_div(coords[axis].clone(), Ix::Const(block));
        x.map("scale", shape.clone(), coords)
    };
    let zero = match c.maybe(3) {
        Some(zero) => spread(whole(zero)?),
        None => q.like(if data.elem() == Elem::U8 { f64::from(1u32 << (bits - 1)) } else { 0.0 }),
    };
    let scale = spread(at(c.x(2)).to(Elem::F32));
    Ok(((q - zero) * scale).to(c.x(2).elem()))
}
