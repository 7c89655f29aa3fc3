//! Recurrent layers of ONNX: RNN, GRU and LSTM, as loops over time; a few steps are written out.
//!
//! The products with the input are one product for all steps.

use super::quantized_products::{centred, is_point};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::recurrent::{Activation, Cell, Layer, Order, Sequence, Weights, with_biases};
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{self, Arg, Coord, axis};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[Decomposition {
    name: "recurrent",
    handles: &["onnx.RNN", "onnx.GRU", "onnx.LSTM", "com.microsoft.DynamicQuantizeLSTM"],
    doc: "A recurrent layer as a loop over time; up to four steps are written out. Weights of 8 bits are multiplied by \
          operands that are quantised as they come.\n\n\
          `y = lstm(x, w, r)` --> `g = x @ w^T`, and in each round `g[t] + h @ r^T`, gates, new state\n\n\
          Refuses weights whose shapes are not known, and activations that ONNX does not define.",
    run: recurrent,
}];

fn activations(call: &Call<'_>, cell: Cell, directions: usize) -> Result<Vec<Activation>> {
    let names: Vec<String> = call.texts("activations")?.unwrap_or_default().into_iter().map(String::from).collect();
    let each = cell.activations();
    let names = if names.is_empty() || names.len() != each.len() * directions {
        if !names.is_empty() && (names.len() != 2 || cell != Cell::Rnn) {
            return Err(Refusal::new(format!("{} activations are given, but {} are needed", names.len(), each.len())));
        }
        let one = if names.is_empty() { each.iter().map(|s| (*s).to_string()).collect() } else { names[..1].to_vec() };
        (0..directions).flat_map(|_| one.clone()).collect()
    } else {
        names
    };
    // The parameters are consumed in order, by the functions that have some.
    let (alphas, betas) = (call.floats("activation_alpha")?, call.floats("activation_beta")?);
    let (mut alphas, mut betas) = (alphas.into_iter().flatten(), betas.into_iter().flatten());
    let with = |name: String| {
        let has_alpha =
            !matches!(name.to_ascii_lowercase().as_str(), "relu" | "tanh" | "sigmoid" | "softsign" | "softplus");
        let has_beta = matches!(name.to_ascii_lowercase().as_str(), "affine" | "scaledtanh" | "hardsigmoid");
        let alpha = if has_alpha { alphas.next() } else { None };
        let beta = if has_beta { betas.next() } else { None };
        Activation { name, alpha, beta }
    };
    Ok(names.into_iter().map(with).collect())
}

/// Integers of 8 bits without their zero points, in 16; as they are, where those are zero.
fn narrow_weights(b: &mut Builder<'_>, call: &Call<'_>, weights: usize, point: usize) -> Result<Arg> {
    let w = call.arg(weights)?;
    let Some(point) = call.opt(point).filter(|v| is_point(b, *v)) else { return Ok(w) };
    let point = by_column(b, point)?;
    centred(b, w, Some(point), 0)
}

/// One number for each direction or for each column of it, beside `[directions, n, columns]`.
fn by_column(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    match b.rank(x) {
        1 => b.unsqueeze(x, &[1, 2]),
        _ => b.unsqueeze(x, &[1]),
    }
}

/// `(X, W, R, B?, sequence_lens?, initial_h?, initial_c?, P?)` to `(Y, Y_h, Y_c)`. With 8 bits the weights are transposed,
/// and behind `P` stand the scales and the zero points of both.
fn recurrent(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let cell = match call.name {
        "onnx.RNN" => Cell::Rnn,
        "onnx.GRU" => Cell::Gru,
        _ => Cell::Lstm,
    };
    let narrow = b.elem(call.arg(0)?);
    let wide = b.wide(call.arg(0)?);
    let operand = |b: &mut Builder<'_>, i: usize| call.opt(i).map(|v| b.convert(v, wide)).transpose();
    let needed = |v: Option<Arg>, i: usize| v.ok_or_else(|| Refusal::new(format!("operand {} is missing", i + 1)));
    let mut x = needed(operand(b, 0)?, 0)?;
    let quantised = call.name == "com.microsoft.DynamicQuantizeLSTM";
    let (w, r) = match quantised {
        true => (narrow_weights(b, call, 1, 9)?, narrow_weights(b, call, 2, 11)?),
        false => (needed(operand(b, 1)?, 1)?, needed(operand(b, 2)?, 2)?),
    };
    let scales = match quantised {
        true => Some([needed(operand(b, 8)?, 8)?, needed(operand(b, 10)?, 10)?]),
        false => None,
    };
    let (bias, peepholes) = (operand(b, 3)?, operand(b, 7)?);
    let (mut h0, mut c0) = (operand(b, 5)?, if cell == Cell::Lstm { operand(b, 6)? } else { None });
    let batch_first = call.flag("layout", false)?;
    if b.rank(x) != 3 || b.rank(w) != 3 || b.rank(r) != 3 {
        return Err(Refusal::new("a recurrent layer needs an input and weights of rank 3"));
    }
    if batch_first {
        x = b.transpose(x, &[1, 0, 2])?;
        for state in [&mut h0, &mut c0] {
            *state = state.map(|s| b.transpose(s, &[1, 0, 2])).transpose()?;
        }
    }
    let (xs, mut ws, mut rs) = (b.shape(x), b.shape(w), b.shape(r));
    if quantised {
        [&mut ws, &mut rs].into_iter().for_each(|s| s.swap(1, 2));
    }
    let steps = xs[0].clone();
    let (Some(directions), Some(hidden)) = (ws[0].as_const(), rs[2].as_const()) else {
        return Err(Refusal::new("the weights of a recurrent layer have no known shape"));
    };
    let direction = call.text("direction")?.unwrap_or("forward").to_string();
    let expected = if direction == "bidirectional" { 2 } else { 1 };
    let rows = Ix::Const(cell.gates() * hidden);
    if directions != expected || !b.same(&ws[1], &rows) || !b.same(&rs[1], &rows) || !b.same(&ws[2], &xs[2]) {
        return Err(Refusal::new(format!(
            "the weights {} and {} of a {direction} layer do not fit its input {}",
            b.shape_text(&ws),
            b.shape_text(&rs),
            b.shape_text(&xs)
        )));
    }
    let batch = xs[1].clone();
    let lens = match call.opt(4) {
        // Lengths that are all the whole sequence mean nothing.
        Some(l) if b.ints(l).is_some_and(|l| l.iter().all(|n| b.same(n, &steps))) => None,
        Some(l) => Some(b.convert(l, Elem::I64)?),
        None => None,
    };
    let acts = activations(call, cell, directions as usize)?;
    let each = cell.activations().len();
    let clip = call.float_of("clip")?.filter(|c| *c > 0.0);
    let before_reset = call.flag("linear_before_reset", false)?;
    let (mut ys, mut hs, mut cs) = (vec![], vec![], vec![]);
    for d in 0..directions {
        let reverse = direction == "reverse" || d == 1;
        let part = |b: &mut Builder<'_>, v: Arg| -> Result<Arg> {
            let one = b.slice(v, 0, Ix::Const(d), 1, Ix::Const(1))?;
            b.squeeze(one, &[0])
        };
        let zero = ir::scalar(wide, 0.0);
        let state_shape = vec![batch.clone(), Ix::Const(hidden)];
        let initial = |b: &mut Builder<'_>, s: Option<Arg>| match s {
            Some(s) => part(b, s),
            None => Ok(b.full(zero, wide, state_shape.clone())),
        };
        let mut h = initial(b, h0)?;
        let mut c = if cell == Cell::Lstm { Some(initial(b, c0)?) } else { None };
        let weights = |b: &mut Builder<'_>, v: Arg, at: usize| -> Result<Weights> {
            let values = part(b, v)?;
            Ok(match scales {
                Some(scales) => Weights::Quantised { values, scale: part(b, scales[at])? },
                None => Weights::Float(values),
            })
        };
        let source = match lens {
            Some(lens) if reverse => reversed(b, x, lens, &steps)?,
            _ => x,
        };
        let mut g = weights(b, w, 0)?.product(b, source, 0, cell.gates() * hidden)?;
        let mut inner_bias = None;
        if let Some(bias) = bias {
            let bias = part(b, bias)?;
            let n = cell.gates() * hidden;
            let of_input = b.slice(bias, 0, Ix::Const(0), 1, Ix::Const(n))?;
            let of_state = b.slice(bias, 0, Ix::Const(n), 1, Ix::Const(n))?;
            let inside = cell == Cell::Gru && before_reset;
            (g, inner_bias) = with_biases(b, g, [of_input, of_state], inside, hidden)?;
        }
        let layer = Layer {
            cell,
            order: Order::Onnx,
            hidden,
            r: weights(b, r, 1)?,
            inner_bias,
            peepholes: peepholes.map(|p| part(b, p)).transpose()?,
            projection: None,
            activations: acts.iter().skip(d as usize * each).take(each).cloned().collect(),
            clip,
            linear_before_reset: before_reset,
            coupled: call.flag("input_forget", false)?,
        };
        // Where sequences have lengths of their own, they were turned around one by one.
        let back = reverse && lens.is_none();
        let running = lens.map(|lens| running(b, lens, &steps)).transpose()?;
        let y;
        (y, h, c) = layer.run(b, &Sequence { products: g, running, back }, h, c)?;
        // [steps, 1, batch, hidden], in the order of the input.
        let y = b.unsqueeze(y, &[1])?;
        ys.push(match lens {
            Some(lens) if reverse => turned_back(b, y, lens, &steps)?,
            _ => y,
        });
        hs.push(b.unsqueeze(h, &[0])?);
        if let Some(c) = c {
            cs.push(b.unsqueeze(c, &[0])?);
        }
    }
    let mut out = vec![b.concat(&ys, 1)?, b.concat(&hs, 0)?];
    if cell == Cell::Lstm {
        out.push(b.concat(&cs, 0)?);
    }
    if batch_first {
        out[0] = b.transpose(out[0], &[2, 0, 1, 3])?;
        for state in out.iter_mut().skip(1) {
            *state = b.transpose(*state, &[1, 0, 2])?;
        }
    }
    out.into_iter().map(|v| b.convert(v, narrow)).collect()
}

/// `[steps, batch]`: whether a sequence has not ended.
fn running(b: &mut Builder<'_>, lens: Arg, steps: &Ix) -> Result<Arg> {
    let shape = [std::slice::from_ref(steps), &b.shape(lens)[..]].concat();
    let (at, lens) = (b.index(axis(0), Elem::I64, shape.clone()), b.broadcast_to(lens, &shape)?);
    b.compare(Predicate::GreaterThan, lens, at)
}

/// `x [steps, batch, n]` with each sequence backwards; what is behind a sequence's end stays.
fn reversed(b: &mut Builder<'_>, x: Arg, lens: Arg, steps: &Ix) -> Result<Arg> {
    let shape = b.shape(x);
    let at = mirrored(b, lens, steps)?;
    let at = b.unsqueeze(at, &[2])?;
    b.gather(x, &[at], vec![Coord::Arg(1), Coord::Ix(axis(1)), Coord::Ix(axis(2))], shape)
}

/// The same for outputs `[steps, 1, batch, hidden]`.
fn turned_back(b: &mut Builder<'_>, y: Arg, lens: Arg, steps: &Ix) -> Result<Arg> {
    let shape = b.shape(y);
    let at = mirrored(b, lens, steps)?;
    let at = b.unsqueeze(at, &[1, 3])?;
    let coords = vec![Coord::Arg(1), Coord::Ix(axis(1)), Coord::Ix(axis(2)), Coord::Ix(axis(3))];
    b.gather(y, &[at], coords, shape)
}

/// `[steps, batch]`: `len - 1 - t` inside a sequence, else `t`.
fn mirrored(b: &mut Builder<'_>, lens: Arg, steps: &Ix) -> Result<Arg> {
    let t = b.index(axis(0), Elem::I64, vec![steps.clone(), Ix::Const(1)]);
    let inside = b.compare(Predicate::LessThan, t, lens)?;
    let last = b.sub(lens, ir::int_scalar(Elem::I64, 1))?;
    let other = b.sub(last, t)?;
    b.select(inside, other, t)
}
