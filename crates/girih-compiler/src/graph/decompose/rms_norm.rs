//! Root-mean-square normalisation.

use super::{Call, Decomposition, normal_axis};
use crate::graph::build::{Builder, Result};
use crate::graph::ir::Arg;

pub(super) const RULES: &[Decomposition] = &[Decomposition {
    name: "rms_norm",
    handles: &["aten.rms_norm", "onnx.RMSNormalization"],
    doc: "Scales each row to root mean square 1, then by a weight. Sums of f16 and bf16 are made in f32.\n\n\
          `y = rms_norm(x, w)` --> `y = x * rsqrt(mean(x*x) + eps) * w`\n\n\
          Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.",
    run: rms_norm,
}];

/// `(x, weight?)`. Torch: over the last `len(normalized_shape)` axes; ONNX: from `axis` to the last.
fn rms_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let first = match call.extents("normalized_shape")? {
        Some(normalized) => rank.saturating_sub(normalized.len()),
        None => normal_axis(call.int("axis", -1)?, rank)?,
    };
    let axes: Vec<usize> = (first..rank).collect();
    let narrow = b.elem(x);
    let wide = b.wide(x);
    // PyTorch's default is the type's epsilon.
    let default = if wide.dtype.bits() == 64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let eps = call.float("eps", call.float("epsilon", if call.name.starts_with("onnx") { 1e-5 } else { default })?)?;
    let wide_x = b.convert(x, wide)?;
    let square = b.mul(wide_x, wide_x)?;
    let mean = b.mean(square, &axes, true)?;
    let eps = b.scalar_like(mean, eps);
    let shifted = b.add(mean, eps)?;
    let scale = b.rsqrt(shifted)?;
    let mut y = b.mul(wide_x, scale)?;
    y = b.convert(y, narrow)?;
    if let Some(weight) = call.opt(1) {
        let weight = b.convert(weight, narrow)?;
        y = b.mul(y, weight)?;
    }
    Ok(vec![y])
}
