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
         At `accuracy_level` 4 each block of a row of `x` is rounded to 8 bits first, `q = round(x / d)` with `d = max |x| / 127`, and \
         the integers are multiplied: `y = sum over blocks of (q @ (unpack w - z)^T) * (d*s)`.\n\n\
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
    let wide = c.x(0).wide_elem();
    if c.int("accuracy_level", 0)? == 4
        && wide == Elem::F32
        && let Some(width) = stretch(block)
    {
        let zero = match c.maybe(3) {
            None => Zero::All(1 << (bits - 1)),
            Some(zero) if zero.elem().is_float() => {
                Zero::Float(zero.to(Elem::F32).reshape(&[n, blocks].map(Ix::Const)))
            }
            Some(zero) => Zero::Blocks(unpacked(zero, blocks)?.to(Elem::I32)),
        };
        let codes = c.x(1).reshape(&[n, blocks * block * bits / 8].map(Ix::Const));
        let weights = Codes { codes, bits, n, k, block, blocks, width };
        let y =
            weights.times_rounded(c.x(0).wide(), c.x(2).to(Elem::F32).reshape(&[n, blocks].map(Ix::Const)), &zero)?;
        return Ok(c.maybe(5).map_or(y, |bias| y + bias.to(wide)).to(c.x(0).elem()));
    }
    let rows = (q - zero) * of_blocks("scale", c.x(2).to(Elem::F32));
    let columns = rows.to(wide).transpose(&[1, 0]);
    let y = c.x(0).wide().matmul(columns);
    Ok(c.maybe(5).map_or(y, |bias| y + bias.to(wide)).to(c.x(0).elem()))
}

/// The terms that are multiplied as integers before a sum becomes a float: a block, or a part of one of these lengths. Not all lengths
/// fill whole words.
fn stretch(block: i64) -> Option<i64> {
    [32, 16].into_iter().find(|n| block % n == 0).filter(|_| block <= LONGEST_BLOCK)
}

/// The longest block whose products of bytes have a sum of 32 bits.
const LONGEST_BLOCK: i64 = 1 << 15;

/// The zero points of weights: one for all, or one for each block.
enum Zero<'g> {
    All(i64),
    Blocks(Tensor<'g>),
    Float(Tensor<'g>),
}

/// Weights in bytes, `[n, bytes]`: `n` rows of `k` numbers in `blocks` blocks of `block`.
struct Codes<'g> {
    codes: Tensor<'g>,
    bits: i64,
    n: i64,
    k: i64,
    block: i64,
    blocks: i64,
    /// The terms of a stretch, which is a block or a part of one.
    width: i64,
}

impl<'g> Codes<'g> {
    /// How many stretches a row has.
    fn stretches(&self) -> i64 {
        self.blocks * (self.block / self.width)
    }

    /// Something for each block as it stands over stretches, `[.., stretches]`.
    fn spread(&self, x: Tensor<'g>, rows: Ix) -> Tensor<'g> {
        let coords = vec![ir::axis(0), Ix::floor_div(ir::axis(1), Ix::Const(self.block / self.width))];
        x.map("of_stretch", vec![rows, Ix::Const(self.stretches())], coords)
    }

    /// `x @ w^T` for rows that are rounded to 8 bits, block by block. Four neighbouring terms are a word of either operand. The words of a
    /// stretch lie apart, and those of neighbouring stretches side by side: the lanes of a vector are stretches, each with its scale.
    fn times_rounded(&self, x: Tensor<'g>, scale: Tensor<'g>, zero: &Zero<'g>) -> Result<Tensor<'g>> {
        let cx = x.cx;
        let mut shape = x.shape()?;
        shape.pop();
        let rows = cx.numel(&shape);
        let (stretches, words) = (self.stretches(), self.width / 4);
        let x = x.reshape(&[rows.clone(), Ix::Const(self.k)]);
        let more = stretches * self.width - self.k;
        let x = if more == 0 {
            x
        } else {
            x.pad(&[0, 0].map(Ix::Const), &[0, more].map(Ix::Const), cx.number(Elem::F32, 0.0))
        };
        let in_blocks = x.reshape(&[rows.clone(), Ix::Const(self.blocks), Ix::Const(self.block)]);
        let unit = in_blocks.abs().greatest(&[2], false) / 127.0;
        let inverse = unit.equals(0.0).select(0.0, 1.0 / unit);
        let by = self.spread(inverse, rows.clone()).unsqueeze(&[2]);
        let in_stretches = x.reshape(&[rows.clone(), Ix::Const(stretches), Ix::Const(self.width)]);
        // The reciprocal of a subnormal number is infinite.
        let q = (in_stretches * by).round_even().min(127.0).max(-127.0).to(Elem::I32);
        let sums = q.sum(&[2], false);
        // Byte `j` of word `t` is term `8*(t//2) + 2*j + t%2` where two weights share a byte.
        let (lane, word) = (ir::axis(2), ir::axis(1));
        let term = |j: i64| match self.bits {
            4 => Ix::add(
                Ix::add(Ix::mul(Ix::floor_div(word.clone(), Ix::Const(2)), Ix::Const(8)), Ix::Const(2 * j)),
                Ix::modulo(word.clone(), Ix::Const(2)),
            ),
            _ => Ix::add(Ix::mul(word.clone(), Ix::Const(4)), Ix::Const(j)),
        };
        let of_words = |rows: Ix, words: i64| vec![rows, Ix::Const(words), Ix::Const(stretches)];
        let part =
            |j: i64| (q & 255).map("byte", of_words(rows.clone(), words), vec![ir::axis(0), lane.clone(), term(j)]);
        let q = word_of(&[0, 1, 2, 3].map(part));
        let weights = self.words(of_words(Ix::Const(self.n), words));
        // All of these have a row, a column and a stretch.
        let all = vec![rows.clone(), Ix::Const(self.n), Ix::Const(stretches)];
        let of_row = |x: Tensor<'g>| x.map("of_row", all.clone(), vec![ir::axis(0), ir::axis(2)]);
        let of_column = |x: Tensor<'g>| x.map("of_column", all.clone(), vec![ir::axis(1), ir::axis(2)]);
        let column = |x: Tensor<'g>| of_column(self.spread(x, Ix::Const(self.n)));
        let start = match zero {
            Zero::All(zero) => of_row(sums * cx.int_of(Elem::I32, -zero)),
            Zero::Blocks(zero) => of_row(-sums) * column(*zero),
            Zero::Float(_) => of_row(sums) * cx.int_of(Elem::I32, 0),
        };
        let dot = (0..words).fold(start, |sum, t| {
            let at =
                |x: Tensor<'g>, own: usize| x.map("word", all.clone(), vec![ir::axis(own), Ix::Const(t), ir::axis(2)]);
            at(weights, 1).apply(ScalarOp::DotB, &[at(q, 0), sum])
        });
        let mut dot = dot.to(Elem::F32);
        if let Zero::Float(zero) = zero {
            dot = dot - of_row(sums.to(Elem::F32)) * column(*zero);
        }
        // Values computed from repeated elements get arrays, whose lines are read as vectors.
        let (unit, scale) = match self.block == self.width {
            true => (unit, scale),
            false => (self.spread(unit, rows) * 2.0, self.spread(scale, Ix::Const(self.n)) * 0.5),
        };
        let unit = of_row(unit) * of_column(scale);
        shape.push(Ix::Const(self.n));
        Ok(dot.dot(unit, Elem::F32, &[2]).reshape(&shape))
    }

    /// The weights as words, `[n, words, stretches]`, whose bytes are numbers without a sign.
    fn words(&self, shape: Vec<Ix>) -> Tensor<'g> {
        let bytes = self.width * self.bits / 8;
        let packed = vec![shape[0].clone(), Ix::Const(bytes / 4), shape[2].clone()];
        let part = |j: i64| {
            let at = Ix::add(
                Ix::mul(ir::axis(2), Ix::Const(bytes)),
                Ix::add(Ix::mul(ir::axis(1), Ix::Const(4)), Ix::Const(j)),
            );
            self.codes.to(Elem::I32).map("byte", packed.clone(), vec![ir::axis(0), at])
        };
        let words = word_of(&[0, 1, 2, 3].map(part));
        if self.bits == 8 {
            return words;
        }
        // A word of bytes of two weights each is one of their lower halves, and one of their upper ones.
        let coords = vec![ir::axis(0), Ix::floor_div(ir::axis(1), Ix::Const(2)), ir::axis(2)];
        let twice = words.map("twice", shape.clone(), coords);
        let by = Ix::mul(Ix::modulo(ir::axis(1), Ix::Const(2)), Ix::Const(4));
        let by = words.cx.index(by, Elem::I32, shape);
        twice.apply(ScalarOp::Shr { sign: Signedness::Unsigned }, &[by]) & 0x0f0f_0f0f
    }
}

/// Four bytes as a word, the first lowest.
fn word_of<'g>(parts: &[Tensor<'g>; 4]) -> Tensor<'g> {
    let [first, ..] = *parts;
    let shifted =
        parts.iter().zip(0i64..).skip(1).map(|(x, j)| x.apply(ScalarOp::Shl, &[x.cx.int_of(Elem::I32, 8 * j)]));
    shifted.fold(first, |word, x| word | x)
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
