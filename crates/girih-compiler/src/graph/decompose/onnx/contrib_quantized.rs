//! Operators of the domain `com.microsoft` that ONNX Runtime's quantiser and optimiser write.
//!
//! Between integers stands the operation on floats: `dequantize`, the operation, `quantize`.

use super::elementwise::torch;
use super::quantize::dynamic;
use super::quantized_products::product as integer_product;
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::resize::round_even;
use crate::graph::decompose::{Call, Decomposition, normal_axis};
use crate::graph::ir::{self, Arg, Attr, MAX_EXTENT};
use crate::index::Ix;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "contrib_quantized_binary",
        handles: &["com.microsoft.QLinearAdd", "com.microsoft.QLinearMul"],
        doc: "A sum or a product of integers with scales.\n\n\
              `y = qlinear_add(a, sa, za, b, sb, zb, sy, zy)` --> `y = quantize((a - za)*sa + (b - zb)*sb)`",
        run: binary,
    },
    Decomposition {
        name: "contrib_quantized_function",
        handles: &[
            "com.microsoft.QLinearAveragePool",
            "com.microsoft.QLinearGlobalAveragePool",
            "com.microsoft.QLinearLeakyRelu",
            "com.microsoft.QLinearSigmoid",
            "com.microsoft.QLinearSoftmax",
        ],
        doc: "A function of integers with a scale.\n\n`y = qlinear_sigmoid(x, sx, zx, sy, zy)` --> \
              `y = quantize(sigmoid((x - zx)*sx))`\n\nRefuses channels that lie last.",
        run: function,
    },
    Decomposition {
        name: "contrib_quantized_concat",
        handles: &["com.microsoft.QLinearConcat"],
        doc: "Integers of several scales side by side, in one scale.\n\n\
              `y = qlinear_concat(sy, zy, a, sa, za, ..)` --> `y = quantize(concat((a - za)*sa, ..))`",
        run: concat,
    },
    Decomposition {
        name: "contrib_quantized_products",
        handles: &["com.microsoft.DynamicQuantizeMatMul", "com.microsoft.MatMulIntegerToFloat", "com.microsoft.QGemm"],
        doc: "A product of integers, scaled once.\n\n\
              `y = qgemm(a, sa, za, b, sb, zb, c)` --> `y = ((a - za) @ (b - zb) + c) * (sa*sb)`\n\n\
              The left operand of `DynamicQuantizeMatMul` is quantised as it comes.",
        run: product,
    },
    Decomposition {
        name: "contrib_matmul_nbits",
        handles: &["com.microsoft.MatMulNBits"],
        doc: "A product with weights of 4 or 8 bits, a scale for each block of a row.\n\n\
              `y = matmul_nbits(x, w, s, z)` --> `y = x @ ((unpack w - z)*s)^T`\n\n\
              Refuses other widths and blocks in another order.",
        run: matmul_nbits,
    },
    Decomposition {
        name: "contrib_fused_conv",
        handles: &["com.microsoft.FusedConv"],
        doc: "A convolution with a sum and an activation.\n\n`y = fused_conv(x, w, b, z)` --> `y = relu(conv(x, w, b) + z)`",
        run: fused_conv,
    },
    Decomposition {
        name: "contrib_fused_gemm",
        handles: &["com.microsoft.FusedGemm"],
        doc: "A matrix product with an activation.\n\n`y = fused_gemm(a, b, c)` --> `y = relu(gemm(a, b, c))`",
        run: fused_gemm,
    },
    Decomposition {
        name: "contrib_gather_block_quantized",
        handles: &["com.microsoft.GatherBlockQuantized"],
        doc: "Rows of a table of 4 or 8 bits, a scale for each block of a row.\n\n\
              `y = gather_block_quantized(x, i, s, z)` --> `y = (gather x[i] - gather z[i]) * gather s[i]`\n\n\
              Refuses blocks along the axis that is gathered along, and bytes of two numbers along another axis than the last.",
        run: gather_block_quantized,
    },
];

/// A scale or a zero point of one number as one that broadcasts.
fn single(b: &mut Builder<'_>, v: Arg) -> Result<Arg> {
    match b.shape(v).as_slice() {
        [] => Ok(v),
        [one] if one.is_const(1) => b.squeeze(v, &[0]),
        // One for each column.
        [_] => Ok(v),
        other => Err(Refusal::new(format!("a scale of shape {} is not supported", b.shape_text(other)))),
    }
}

/// `(x - zero) * scale` in f32.
fn dequantize(b: &mut Builder<'_>, x: Arg, scale: Arg, zero: Option<Arg>) -> Result<Arg> {
    let mut y = b.convert(x, Elem::F32)?;
    if let Some(zero) = zero {
        let zero = b.convert(zero, Elem::F32)?;
        let zero = single(b, zero)?;
        y = b.sub(y, zero)?;
    }
    let scale = single(b, scale)?;
    b.mul(y, scale)
}

/// `round(y / scale) + zero`, saturated to `elem`.
fn quantize(b: &mut Builder<'_>, y: Arg, scale: Arg, zero: Option<Arg>, elem: Elem) -> Result<Arg> {
    let scale = single(b, scale)?;
    let y = b.div(y, scale)?;
    let mut y = round_even(b, y)?;
    if let Some(zero) = zero {
        let zero = b.convert(zero, Elem::F32)?;
        let zero = single(b, zero)?;
        y = b.add(y, zero)?;
    }
    b.convert(y, elem)
}

/// Another operation of ONNX's main set, with the attributes of this one.
fn onnx(b: &mut Builder<'_>, call: &Call<'_>, name: &str, args: &[Arg]) -> Result<Arg> {
    let own = call.without(&["opset", "outputs"]);
    let mut attrs: Vec<(&str, Attr)> = own.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    attrs.push(("opset", Attr::Int(Ix::Const(17))));
    torch(b, name, args, &attrs)
}

fn binary(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let elem = b.elem(call.arg(0)?);
    let x = dequantize(b, call.arg(0)?, call.arg(1)?, call.opt(2))?;
    let z = dequantize(b, call.arg(3)?, call.arg(4)?, call.opt(5))?;
    let y = if call.name.ends_with("Add") { b.add(x, z)? } else { b.mul(x, z)? };
    Ok(vec![quantize(b, y, call.arg(6)?, call.opt(7), elem)?])
}

fn function(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    if call.flag("channels_last", false)? {
        return Err(Refusal::new("channels that lie last are not supported"));
    }
    let elem = b.elem(call.arg(0)?);
    let x = dequantize(b, call.arg(0)?, call.arg(1)?, call.opt(2))?;
    let name = call.name.rsplit("QLinear").next().unwrap_or_default();
    let y = match name {
        // Before version 13 all axes from this one on are one.
        "Softmax" if call.int("opset", 13)? < 13 => {
            let axis = normal_axis(call.int("axis", 1)?, b.rank(x))?;
            let shape = b.shape(x);
            let product = |b: &mut Builder<'_>, of: &[Ix]| {
                of.iter().fold(Ix::Const(1), |n, d| b.simplify(&Ix::mul(n, d.clone())))
            };
            let (rows, columns) = (product(b, &shape[..axis]), product(b, &shape[axis..]));
            let flat = b.reshape(x, &[rows, columns])?;
            let y = torch(b, "onnx.Softmax", &[flat], &[("axis", Attr::Int(Ix::Const(1)))])?;
            b.reshape(y, &shape)?
        }
        _ => onnx(b, call, &format!("onnx.{name}"), &[x])?,
    };
    Ok(vec![quantize(b, y, call.arg(3)?, call.opt(4), elem)?])
}

fn concat(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let elem = b.elem(call.arg(1)?);
    let mut parts = vec![];
    for at in (2..call.args.len()).step_by(3) {
        parts.push(dequantize(b, call.arg(at)?, call.arg(at + 1)?, call.opt(at + 2))?);
    }
    let y = onnx(b, call, "onnx.Concat", &parts)?;
    Ok(vec![quantize(b, y, call.arg(0)?, call.opt(1), elem)?])
}

fn product(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let gemm = call.name.ends_with("QGemm");
    // The integers of both and their zero points, their scales, and where the bias stands.
    let (mut x, zero, mut w, w_zero, scales, bias) = match call.name {
        "com.microsoft.DynamicQuantizeMatMul" => {
            let (q, scale, zero) = dynamic(b, call.arg(0)?)?;
            (q, Some(zero), call.arg(1)?, call.opt(3), [scale, call.arg(2)?], 4)
        }
        "com.microsoft.MatMulIntegerToFloat" => {
            (call.arg(0)?, call.opt(4), call.arg(1)?, call.opt(5), [call.arg(2)?, call.arg(3)?], 6)
        }
        _ => (call.arg(0)?, call.opt(2), call.arg(3)?, call.opt(5), [call.arg(1)?, call.arg(4)?], 6),
    };
    if gemm {
        // A zero point for each column is one after transposing.
        for (matrix, flag) in [(&mut x, "transA"), (&mut w, "transB")] {
            if call.flag(flag, false)? {
                *matrix = b.swap_axes(*matrix, 0, 1)?;
            }
        }
    }
    // A zero point for each column stands along the last axis.
    let last = |b: &Builder<'_>, x: Arg| b.rank(x).saturating_sub(1);
    let (left, right) = (last(b, x), last(b, w));
    let mut sum = integer_product(b, (x, zero), left, (w, w_zero), right)?;
    if let (true, Some(bias)) = (gemm, call.opt(bias)) {
        sum = b.add(sum, bias)?;
    }
    let (left, right) = (single(b, scales[0])?, single(b, scales[1])?);
    let mut scale = b.mul(left, right)?;
    let alpha = call.float("alpha", 1.0)?;
    if gemm && alpha != 1.0 {
        scale = b.mul(scale, b.scalar_like(scale, alpha))?;
    }
    let sum = b.convert(sum, b.elem(scale))?;
    let mut y = b.mul(sum, scale)?;
    if let (false, Some(bias)) = (gemm, call.opt(bias)) {
        y = b.add(y, bias)?;
    }
    match (gemm, call.opt(7)) {
        (true, Some(scale)) => {
            let elem = call.opt(8).map_or(b.elem(call.arg(0)?), |zero| b.elem(zero));
            Ok(vec![quantize(b, y, scale, call.opt(8), elem)?])
        }
        _ => Ok(vec![y]),
    }
}

/// Bytes `[.., n]` as two numbers of 4 bits each, the lower first: `[.., 2n]`, in f32.
fn halves(b: &mut Builder<'_>, bytes: Arg) -> Result<Arg> {
    let rank = b.rank(bytes);
    let whole = b.convert(bytes, Elem::F32)?;
    let sixteen = b.scalar_like(whole, 1.0 / 16.0);
    let high = b.mul(whole, sixteen)?;
    let high = torch(b, "aten.floor", &[high], &[])?;
    let above = b.mul(high, b.scalar_like(high, 16.0))?;
    let low = b.sub(whole, above)?;
    let (low, high) = (b.unsqueeze(low, &[rank])?, b.unsqueeze(high, &[rank])?);
    let both = b.concat(&[low, high], rank)?;
    let mut shape = b.shape(bytes);
    if let Some(last) = shape.last_mut() {
        *last = b.simplify(&Ix::mul(last.clone(), Ix::Const(2)));
    }
    b.reshape(both, &shape)
}

/// `(x [.., K], w [N, blocks, bytes], scales, zero_points?, g_idx?, bias?)`
fn matmul_nbits(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (k, n) = (call.int("K", 0)?, call.int("N", 0)?);
    let (bits, block) = (call.int("bits", 4)?, call.int("block_size", 32)?);
    let extent = |n: i64| (1..=MAX_EXTENT).contains(&n);
    if !matches!(bits, 4 | 8)
        || call.opt(4).is_some()
        || !extent(k)
        || !extent(n)
        || !(16..=MAX_EXTENT).contains(&block)
    {
        let weights = format!("{n} rows of {k} weights of {bits} bits in blocks of {block}");
        return Err(Refusal::new(format!("{weights} are not supported")));
    }
    let blocks = (k + block - 1) / block;
    let (x, w) = (call.arg(0)?, call.arg(1)?);
    let wide = b.wide(x);
    let unpacked = |b: &mut Builder<'_>, bytes: Arg, count: i64| -> Result<Arg> {
        let bytes = b.reshape(bytes, &[Ix::Const(n), Ix::Const((count * bits + 7) / 8)])?;
        let all = if bits == 4 { halves(b, bytes)? } else { b.convert(bytes, Elem::F32)? };
        b.slice(all, 1, Ix::Const(0), 1, Ix::Const(count))
    };
    let by_block = [Ix::Const(n), Ix::Const(blocks), Ix::Const(1)];
    let q = unpacked(b, w, blocks * block)?;
    let q = b.reshape(q, &[Ix::Const(n), Ix::Const(blocks), Ix::Const(block)])?;
    let zero = match call.opt(3) {
        None => b.scalar_like(q, f64::from(1u32 << (bits - 1))),
        Some(zero) => {
            let zero = if b.elem(zero).is_float() { b.convert(zero, Elem::F32)? } else { unpacked(b, zero, blocks)? };
            b.reshape(zero, &by_block)?
        }
    };
    let scale = b.convert(call.arg(2)?, Elem::F32)?;
    let scale = b.reshape(scale, &by_block)?;
    let q = b.sub(q, zero)?;
    let rows = b.mul(q, scale)?;
    let rows = b.reshape(rows, &[Ix::Const(n), Ix::Const(blocks * block)])?;
    let rows = b.slice(rows, 1, Ix::Const(0), 1, Ix::Const(k))?;
    let rows = b.convert(rows, wide)?;
    let columns = b.transpose(rows, &[1, 0])?;
    let wide_x = b.convert(x, wide)?;
    let mut y = b.matmul(wide_x, columns)?;
    if let Some(bias) = call.opt(5) {
        let bias = b.convert(bias, wide)?;
        y = b.add(y, bias)?;
    }
    Ok(vec![b.convert(y, b.elem(x))?])
}

/// `(x, w, b?, z?)`
fn fused_conv(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut y = onnx(b, call, "onnx.Conv", &call.args[..call.args.len().min(3)])?;
    if let Some(more) = call.opt(3) {
        y = b.add(y, more)?;
    }
    let params = call.floats("activation_params")?.unwrap_or_default();
    Ok(vec![activated(b, y, call.text("activation")?.unwrap_or_default(), &params)?])
}

/// What an activation that was fused into a product makes of it.
fn activated(b: &mut Builder<'_>, y: Arg, name: &str, params: &[f64]) -> Result<Arg> {
    let float = |at: usize| params.get(at).map(|v| Attr::Float(*v));
    let with = |names: &[&'static str]| -> Vec<(&'static str, Attr)> {
        names.iter().enumerate().filter_map(|(at, name)| Some((*name, float(at)?))).collect()
    };
    Ok(match name {
        "" => y,
        "Relu" | "Sigmoid" | "Tanh" | "Softplus" | "Softsign" => torch(b, &format!("onnx.{name}"), &[y], &[])?,
        "LeakyRelu" | "Elu" | "ThresholdedRelu" => torch(b, &format!("onnx.{name}"), &[y], &with(&["alpha"]))?,
        "HardSigmoid" => torch(b, "onnx.HardSigmoid", &[y], &with(&["alpha", "beta"]))?,
        "Clip" => {
            let (low, high) = (params.first().copied(), params.get(1).copied());
            let y = low.map_or(Ok(y), |low| b.max(y, b.scalar_like(y, low)))?;
            high.map_or(Ok(y), |high| b.min(y, b.scalar_like(y, high)))?
        }
        other => return Err(Refusal::new(format!("a product with the activation {other} is not supported"))),
    })
}

/// `(a, b, c?)`
fn fused_gemm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let y = onnx(b, call, "onnx.Gemm", call.args)?;
    let mut params = vec![];
    for name in ["activation_alpha", "activation_beta", "activation_gamma"] {
        params.extend(call.float_of(name)?);
    }
    Ok(vec![activated(b, y, call.text("activation")?.unwrap_or_default(), &params)?])
}

/// `(data, indices, scales, zero_points?)`: rows are gathered first, and only they become floats.
fn gather_block_quantized(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (data, indices, scales) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let rank = b.rank(data);
    let gathered = normal_axis(call.int("gather_axis", 0)?, rank)?;
    let quantized = normal_axis(call.int("quantize_axis", 1)?, rank)?;
    let (block, bits) = (call.int("block_size", 128)?, call.int("bits", 4)?);
    let packed = b.elem(data) == Elem::U8 && bits == 4;
    let fits = (16..=MAX_EXTENT).contains(&block) && matches!(bits, 4 | 8) && gathered != quantized;
    if !fits || (packed && quantized + 1 != rank) {
        let what = format!("{bits} bits in blocks of {block} along axis {quantized}, gathered along axis {gathered}");
        return Err(Refusal::new(format!("{what} are not supported")));
    }
    let at = |b: &mut Builder<'_>, x: Arg| {
        torch(b, "onnx.Gather", &[x, indices], &[("axis", Attr::Int(Ix::Const(gathered as i64)))])
    };
    let whole = |b: &mut Builder<'_>, x: Arg| -> Result<Arg> {
        let x = at(b, x)?;
        if packed { halves(b, x) } else { b.convert(x, Elem::F32) }
    };
    let q = whole(b, data)?;
    let axis = if quantized > gathered { quantized + b.rank(indices) - 1 } else { quantized };
    let shape = b.shape(q);
    let spread = |b: &mut Builder<'_>, x: Arg| {
        let mut coords: Vec<Ix> = (0..shape.len()).map(ir::axis).collect();
        coords[axis] = Ix::floor_div(coords[axis].clone(), Ix::Const(block));
        b.map("scale", x, shape.clone(), coords)
    };
    let zero = match call.opt(3) {
        Some(zero) => {
            let zero = whole(b, zero)?;
            spread(b, zero)
        }
        None => b.scalar_like(q, if b.elem(data) == Elem::U8 { f64::from(1u32 << (bits - 1)) } else { 0.0 }),
    };
    let scale = at(b, scales)?;
    let scale = b.convert(scale, Elem::F32)?;
    let scale = spread(b, scale);
    let y = b.sub(q, zero)?;
    let y = b.mul(y, scale)?;
    Ok(vec![b.convert(y, b.elem(scales))?])
}
