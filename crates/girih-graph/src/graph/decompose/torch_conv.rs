//! Convolutions of PyTorch.

use super::conv::{conv, conv_transpose, finish};
use super::types::numbers;
use super::window::{Slide, spatial};
use super::{Call, old};
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::Arg;
use crate::index::Ix;

rules! {
    convolution "A sum of products over windows, or its adjoint (`transposed`); an operand without a batch gets one.\n\n\
         `y = conv2d(x, w, c)` --> `xw = map x[n, ch, o*stride + k*dilation - padding] else 0`, \
         `y = dot xw, w over ch, k`, `y + c`\n\nRefuses channels that the groups do not divide." {
        "aten.convolution" | "aten._convolution" | "aten.conv1d" | "aten.conv2d" | "aten.conv3d" | "aten.conv_transpose1d" |
        "aten.conv_transpose2d" | "aten.conv_transpose3d" => old(convolution),
    }
}

/// `(input, weight, bias?)`.
fn convolution(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (mut x, w) = (call.arg(0)?, call.arg(1)?);
    let sizes = spatial(b, w)?;
    let n = sizes.len();
    let single = b.rank(x) == n + 1;
    if single {
        x = b.unsqueeze(x, &[0])?;
    }
    let inputs = spatial(b, x)?;
    if inputs.len() != n {
        return Err(Refusal::new(format!(
            "a weight of shape {} does not fit an input of shape {}",
            b.shape_text(&b.shape(w)),
            b.shape_text(&b.shape(x))
        )));
    }
    let transposed = call.name.contains("conv_transpose") || call.flag("transposed", false)?;
    let groups = call.int("groups", 1)?;
    let (stride, dilation) = (numbers(call, "stride", n, 1)?, numbers(call, "dilation", n, 1)?);
    if let Some(bad) = stride.iter().chain(&dilation).find(|s| !(1..=1 << 31).contains(*s)) {
        return Err(Refusal::new(format!("a stride or dilation must be from 1 to 2^31, not {bad}")));
    }
    let same = call.word("padding") == Some("same");
    let padding = match call.word("padding") {
        Some("same" | "valid") => vec![0; n],
        Some(other) => return Err(Refusal::new(format!("padding must be valid or same, not {other:?}"))),
        None => numbers(call, "padding", n, 0)?,
    };
    let mut slides = vec![];
    for d in 0..n {
        let mut slide = Slide {
            size: sizes[d].clone(),
            stride: stride[d],
            dilation: dilation[d],
            before: Ix::Const(padding[d]),
            after: Ix::Const(padding[d]),
        };
        if same {
            if stride[d] != 1 {
                return Err(Refusal::new("padding \"same\" needs a stride of 1"));
            }
            let total = Ix::sub(slide.reach(), Ix::Const(1));
            slide.before = b.simplify(&Ix::floor_div(total.clone(), Ix::Const(2)));
            slide.after = b.simplify(&Ix::sub(total, slide.before.clone()));
        }
        slides.push(slide);
    }
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let y = if transposed {
        let adds = numbers(call, "output_padding", n, 0)?;
        let extents: Vec<Ix> = (0..n)
            .map(|d| {
                let s = &slides[d];
                let last = Ix::mul(Ix::sub(inputs[d].clone(), Ix::Const(1)), Ix::Const(s.stride));
                let cut = Ix::Const(2 * padding[d] - adds[d]);
                b.simplify(&Ix::sub(Ix::add(last, s.reach()), cut))
            })
            .collect();
        conv_transpose(b, x, w, &slides, &extents, groups, wide)?
    } else {
        conv(b, x, w, &slides, groups, wide)?
    };
    let y = finish(b, y, call.opt(2), narrow)?;
    Ok(vec![if single { b.squeeze(y, &[0])? } else { y }])
}
