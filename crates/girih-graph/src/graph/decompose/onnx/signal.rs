//! ONNX's signal processing: Fourier transforms, windows, the mel matrix.
//!
//! A transform is a product with a matrix of cosines and sines; the angle is exact (`2 pi (k*n mod N) / N`).

use super::types::elem_of;
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::resize::float_constant;
use crate::graph::decompose::{Call, normal_axis, old};
use crate::graph::ir::{self, Arg, axis};
use crate::index::Ix;

rules! {
    dft "A discrete Fourier transform along one axis, as a product.\n\n\
         `y = dft(x)` --> `c = cos(2 pi (k*n mod N) / N)`, `s = sin(..)`, `re = dot re, c + dot im, s`, .." {
        "onnx.DFT" => old(dft),
    }
    stft "Fourier transforms of overlapping frames.\n\n\
         `y = stft(x, w)` --> `f = map x[frame * step + n] * w[n]`, `y = dft(f)`" {
        "onnx.STFT" => old(stft),
    }
    window_function "Window functions, in f64 and rounded once.\n\n`w = hamming(n)` --> `w = a - (1 - a) * cos(2 pi i / n)`" {
        "onnx.HannWindow" | "onnx.HammingWindow" | "onnx.BlackmanWindow" => old(window_function),
    }
    mel_weights "Triangles on the mel scale, as a constant.\n\nRefuses operands that are not constant." {
        "onnx.MelWeightMatrix" => old(mel_weights),
    }
}

/// Cosines and sines of `2 pi (i*j mod n) / n`, `[rows, columns]`.
fn circle(b: &mut Builder<'_>, rows: &Ix, columns: &Ix, n: &Ix, elem: Elem) -> Result<(Arg, Arg)> {
    let turn = Ix::modulo(Ix::mul(axis(0), axis(1)), n.clone());
    let turn = b.index(turn, Elem::I64, vec![rows.clone(), columns.clone()]);
    let turn = b.convert(turn, Elem::F64)?;
    let whole = b.index(n.clone(), Elem::I64, vec![]);
    let whole = b.convert(whole, Elem::F64)?;
    let part = b.div(turn, whole)?;
    let angle = b.mul(part, ir::scalar(Elem::F64, std::f64::consts::TAU))?;
    let (cos, sin) = (b.cos(angle)?, b.sin(angle)?);
    Ok((b.convert(cos, elem)?, b.convert(sin, elem)?))
}

/// The transform of the last axis of a real and perhaps an imaginary part. `bins` of `n` are computed.
fn transform(b: &mut Builder<'_>, re: Arg, im: Option<Arg>, n: &Ix, bins: &Ix, inverse: bool) -> Result<(Arg, Arg)> {
    let (cos, sin) = circle(b, n, bins, n, b.elem(re))?;
    let (re_cos, re_sin) = (b.matmul(re, cos)?, b.matmul(re, sin)?);
    // e^(-i a) = cos a - i sin a
    let Some(im) = im else {
        return Ok((re_cos, if inverse { re_sin } else { b.neg(re_sin)? }));
    };
    let (im_cos, im_sin) = (b.matmul(im, cos)?, b.matmul(im, sin)?);
    if inverse {
        Ok((b.sub(re_cos, im_sin)?, b.add(im_cos, re_sin)?))
    } else {
        Ok((b.add(re_cos, im_sin)?, b.sub(im_cos, re_sin)?))
    }
}

/// Component `i` of the last axis.
fn component(b: &mut Builder<'_>, x: Arg, i: i64) -> Result<Arg> {
    let last = b.rank(x).saturating_sub(1);
    let one = b.slice(x, last, Ix::Const(i), 1, Ix::Const(1))?;
    b.squeeze(one, &[last])
}

/// Two tensors as the components of a new last axis.
fn pair(b: &mut Builder<'_>, re: Arg, im: Arg) -> Result<Arg> {
    let rank = b.rank(re);
    let (re, im) = (b.unsqueeze(re, &[rank])?, b.unsqueeze(im, &[rank])?);
    b.concat(&[re, im], rank)
}

/// The transform along the last axis but the components', of `[.., signal, 1 or 2]`.
fn dft_last(b: &mut Builder<'_>, x: Arg, n: &Ix, inverse: bool, onesided: bool) -> Result<Arg> {
    let shape = b.shape(x);
    let rank = shape.len();
    let complex = match shape.last().and_then(Ix::as_const) {
        Some(1) => false,
        Some(2) => true,
        _ => return Err(Refusal::new(format!("a signal of shape {} has no components", b.shape_text(&shape)))),
    };
    if onesided && complex != inverse {
        let (from, components) = if inverse { ("half a spectrum", 2) } else { ("a real signal", 1) };
        let text = b.shape_text(&shape);
        return Err(Refusal::new(format!(
            "a one-sided transform of {from} has {components} components, unlike {text}"
        )));
    }
    let half = Ix::add(Ix::floor_div(n.clone(), Ix::Const(2)), Ix::Const(1));
    // Half a spectrum comes in where a real signal comes out.
    let used = if inverse && onesided { half.clone() } else { n.clone() };
    let mut x = x;
    if !b.same(&shape[rank - 2], &used) {
        let (zero, none) = (b.scalar_like(x, 0.0), vec![Ix::Const(0); rank]);
        let mut more = none.clone();
        more[rank - 2] = b.simplify(&Ix::sub(used.clone(), shape[rank - 2].clone()));
        x = b.pad(x, &none, &more, zero)?;
    }
    let re = component(b, x, 0)?;
    let im = if complex { Some(component(b, x, 1)?) } else { None };
    let elem = b.elem(x);
    let count = b.index(n.clone(), Elem::I64, vec![]);
    let count = b.convert(count, elem)?;
    if inverse && onesided {
        // Every bin but the first and (of an even length) the last stands for two.
        let single = b.index(Ix::modulo(Ix::mul(Ix::Const(2), axis(0)), n.clone()), Elem::I64, vec![half.clone()]);
        let zero = ir::int_scalar(Elem::I64, 0);
        let alone = b.compare(crate::num::op::Predicate::Equal, single, zero)?;
        let weight = b.select(alone, ir::scalar(elem, 1.0), ir::scalar(elem, 2.0))?;
        let (cos, sin) = circle(b, &half, n, n, elem)?;
        let re = b.mul(re, weight)?;
        let mut y = b.matmul(re, cos)?;
        if let Some(im) = im {
            let im = b.mul(im, weight)?;
            let other = b.matmul(im, sin)?;
            y = b.sub(y, other)?;
        }
        let y = b.div(y, count)?;
        let rank = b.rank(y);
        return b.unsqueeze(y, &[rank]);
    }
    let bins = if onesided { half } else { n.clone() };
    let (mut re, mut im) = transform(b, re, im, n, &bins, inverse)?;
    if inverse {
        (re, im) = (b.div(re, count)?, b.div(im, count)?);
    }
    pair(b, re, im)
}

/// `(x, dft_length?, axis?)`
fn dft(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, wide, rank) = (b.elem(x), b.wide(x), b.rank(x));
    let (inverse, onesided) = (call.flag("inverse", false)?, call.flag("onesided", false)?);
    let scalar = |b: &Builder<'_>, i: usize, what: &str| -> Result<Option<Ix>> {
        let Some(v) = call.opt(i) else { return Ok(None) };
        let ints = b.ints(v).ok_or_else(|| Refusal::new(format!("the {what} of DFT is not constant")))?;
        Ok(ints.into_iter().next())
    };
    let stated = match scalar(b, 2, "axis")? {
        Some(a) => Some(a.as_const().ok_or_else(|| Refusal::new("the axis of DFT is not constant"))?),
        None => None,
    };
    let default = if call.int("opset", 20)? < 20 { 1 } else { -2 };
    let at = normal_axis(stated.map_or_else(|| call.int("axis", default), Ok)?, rank)?;
    if rank < 2 || at + 1 == rank {
        return Err(Refusal::new("DFT needs an axis of the signal before the axis of its components"));
    }
    let extent = b.shape(x)[at].clone();
    let n = match scalar(b, 1, "dft_length")? {
        Some(n) => n,
        None if inverse && onesided => Ix::mul(Ix::sub(extent, Ix::Const(1)), Ix::Const(2)),
        None => extent,
    };
    let n = b.simplify(&n);
    let x = b.convert(x, wide)?;
    let x = b.swap_axes(x, at, rank - 2)?;
    let y = dft_last(b, x, &n, inverse, onesided)?;
    let y = b.swap_axes(y, at, rank - 2)?;
    Ok(vec![b.convert(y, narrow)?])
}

/// `(signal [b, s, 1 or 2], frame_step, window?, frame_length?)` to `[b, frames, bins, 2]`.
fn stft(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let shape = b.shape(x);
    if shape.len() != 3 {
        return Err(Refusal::new(format!(
            "STFT needs a signal [batch, samples, components], not {}",
            b.shape_text(&shape)
        )));
    }
    let scalar = |b: &Builder<'_>, i: usize, what: &str| -> Result<Option<Ix>> {
        let Some(v) = call.opt(i) else { return Ok(None) };
        let ints = b.ints(v).ok_or_else(|| Refusal::new(format!("the {what} of STFT is not constant")))?;
        Ok(ints.into_iter().next())
    };
    let step = scalar(b, 1, "frame_step")?.and_then(|s| s.as_const()).filter(|s| *s > 0);
    let step = step.ok_or_else(|| Refusal::new("the frame_step of STFT must be a positive constant"))?;
    let window = call.opt(2);
    let length = match (scalar(b, 3, "frame_length")?, window) {
        (Some(n), _) => n,
        (None, Some(w)) => b.shape(w).first().cloned().unwrap_or(Ix::Const(1)),
        (None, None) => shape[1].clone(),
    };
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let room = Ix::sub(shape[1].clone(), length.clone());
    let frames = b.simplify(&Ix::add(Ix::floor_div(room, Ix::Const(step)), Ix::Const(1)));
    let at = Ix::add(Ix::mul(axis(1), Ix::Const(step)), axis(2));
    let framed = vec![shape[0].clone(), frames, length.clone(), shape[2].clone()];
    let mut framed = b.map("frames", x, framed, vec![axis(0), at, axis(3)]);
    if let Some(window) = window {
        let window = b.convert(window, wide)?;
        let window = b.unsqueeze(window, &[1])?;
        framed = b.mul(framed, window)?;
    }
    let y = dft_last(b, framed, &length, false, call.flag("onesided", true)?)?;
    Ok(vec![b.convert(y, narrow)?])
}

fn window_function(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let size = b.ints(call.arg(0)?).and_then(|s| s.into_iter().next());
    let size = size.ok_or_else(|| Refusal::new("the size of a window is not constant"))?;
    let elem = elem_of(call.int("output_datatype", 1)?)?;
    let c = |x: f64| ir::scalar(Elem::F64, x);
    let i = b.index(axis(0), Elem::I64, vec![size.clone()]);
    let i = b.convert(i, Elem::F64)?;
    let period = if call.flag("periodic", true)? { size } else { Ix::sub(size, Ix::Const(1)) };
    let n = b.index(period, Elem::I64, vec![]);
    let n = b.convert(n, Elem::F64)?;
    let turn = b.div(i, n)?;
    let wave = |b: &mut Builder<'_>, times: f64, weight: f64| -> Result<Arg> {
        let angle = b.mul(turn, c(times * std::f64::consts::TAU))?;
        let cos = b.cos(angle)?;
        b.mul(cos, c(weight))
    };
    let y = match call.name {
        "onnx.BlackmanWindow" => {
            let (first, second) = (wave(b, 1.0, -0.5)?, wave(b, 2.0, 0.08)?);
            let sum = b.add(first, second)?;
            b.add(sum, c(0.42))?
        }
        "onnx.HammingWindow" => {
            let alpha = 25.0 / 46.0;
            let wave = wave(b, 1.0, alpha - 1.0)?;
            b.add(wave, c(alpha))?
        }
        _ => {
            let wave = wave(b, 1.0, -0.5)?;
            b.add(wave, c(0.5))?
        }
    };
    Ok(vec![b.convert(y, elem)?])
}

fn mel_weights(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut given = [0.0; 5];
    for (i, slot) in given.iter_mut().enumerate() {
        let value = b.floats(call.arg(i)?).and_then(|v| v.first().copied());
        *slot = value.ok_or_else(|| Refusal::new("an operand of MelWeightMatrix is not constant"))?;
    }
    let [bins, length, rate, low, high] = given;
    let elem = elem_of(call.int("output_datatype", 1)?)?;
    if !(1.0..=65536.0).contains(&bins) || !(1.0..=1e6).contains(&length) || rate <= 0.0 || low < 0.0 || high < low {
        return Err(Refusal::new("the operands of MelWeightMatrix are out of range"));
    }
    let (bins, rows) = (bins as usize, length as usize / 2 + 1);
    let mel = |f: f64| 2595.0 * (f / 700.0).ln_1p() / std::f64::consts::LN_10;
    let step = (mel(high) - mel(low)) / (bins + 2) as f64;
    let place = |i: usize| {
        let hertz = 700.0 * ((i as f64 * step + mel(low)) / 2595.0 * std::f64::consts::LN_10).exp_m1();
        ((length + 1.0) * hertz / rate).floor()
    };
    b.list((rows * bins) as u64, 16)?;
    let mut values = vec![0.0; rows * bins];
    for i in 0..bins {
        let (left, centre, right) = (place(i), place(i + 1), place(i + 2));
        for j in 0..rows {
            let x = j as f64;
            let value = if x == centre && (left == centre || right == centre) {
                1.0
            } else if x >= left && x < centre {
                (x - left) / (centre - left)
            } else if x >= centre && x < right {
                (right - x) / (right - centre)
            } else {
                0.0
            };
            if let Some(slot) = values.get_mut(j * bins + i) {
                *slot = value;
            }
        }
    }
    Ok(vec![float_constant(b, elem, &[rows as u64, bins as u64], &values)])
}
