//! Recurrent layers of ONNX: RNN, GRU and LSTM, as loops over time; a few steps are written out.
//!
//! The products with the input are one product for all steps.

use super::quantized_products::{centred, is_point};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::expr::{Tensor, along};
use crate::graph::decompose::recurrent::{Activation, Cell, Layer, Order, Sequence, Weights, with_biases};
use crate::graph::ir::axis;
use crate::index::Ix;

rules! {
    recurrent "A recurrent layer as a loop over time; up to four steps are written out. Weights of 8 bits are multiplied by \
         operands that are quantised as they come.\n\n\
         `y = lstm(x, w, r)` --> `g = x @ w^T`, and in each round `g[t] + h @ r^T`, gates, new state\n\n\
         Refuses weights whose shapes are not known, and activations that ONNX does not define." {
        "onnx.RNN" => |c| recurrent(c, Cell::Rnn),
        "onnx.GRU" => |c| recurrent(c, Cell::Gru),
        "onnx.LSTM" | "com.microsoft.DynamicQuantizeLSTM" => |c| recurrent(c, Cell::Lstm),
    }
}

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
fn narrow_weights<'g>(c: &Call<'g>, weights: usize, point: usize) -> Result<Tensor<'g>> {
    let w = c.x(weights);
    let Some(point) = c.maybe(point).filter(|v| is_point(*v)) else { return Ok(w) };
    // One number for each direction or for each column of it, beside `[directions, n, columns]`.
    let point = if point.rank()? == 1 { point.unsqueeze(&[1, 2]) } else { point.unsqueeze(&[1]) };
    centred(w, Some(point), 0)
}

/// `(X, W, R, B?, sequence_lens?, initial_h?, initial_c?, P?)` to `(Y, Y_h, Y_c)`. With 8 bits the weights are transposed,
/// and behind `P` stand the scales and the zero points of both.
fn recurrent<'g>(c: &Call<'g>, cell: Cell) -> Result<Vec<Tensor<'g>>> {
    let (cx, narrow, wide) = (c.cx, c.x(0).elem(), c.x(0).wide_elem());
    let (operand, needed) = (|i: usize| c.maybe(i).map(|v| v.to(wide)), |i: usize| c.x(i).to(wide));
    let mut x = needed(0);
    let quantised = c.name == "com.microsoft.DynamicQuantizeLSTM";
    let (w, r) = match quantised {
        true => (narrow_weights(c, 1, 9)?, narrow_weights(c, 2, 11)?),
        false => (needed(1), needed(2)),
    };
    let scales = quantised.then(|| [needed(8), needed(10)]);
    let (bias, peepholes) = (operand(3), operand(7));
    let (mut h0, mut c0) = (operand(5), if cell == Cell::Lstm { operand(6) } else { None });
    let batch_first = c.flag("layout", false)?;
    if x.rank()? != 3 || w.rank()? != 3 || r.rank()? != 3 {
        return Err(Refusal::new("a recurrent layer needs an input and weights of rank 3"));
    }
    if batch_first {
        x = x.transpose(&[1, 0, 2]);
        [h0, c0] = [h0, c0].map(|state| state.map(|s| s.transpose(&[1, 0, 2])));
    }
    let (xs, mut ws, mut rs) = (x.shape()?, w.shape()?, r.shape()?);
    if quantised {
        [&mut ws, &mut rs].into_iter().for_each(|s| s.swap(1, 2));
    }
    let steps = xs[0].clone();
    let (Some(directions), Some(hidden)) = (ws[0].as_const(), rs[2].as_const()) else {
        return Err(Refusal::new("the weights of a recurrent layer have no known shape"));
    };
    let direction = c.text("direction")?.unwrap_or("forward").to_string();
    let expected = if direction == "bidirectional" { 2 } else { 1 };
    let rows = Ix::Const(cell.gates() * hidden);
    let fits = directions == expected
        && cx.same(&rs[0], &ws[0])
        && cx.same(&ws[1], &rows)
        && cx.same(&rs[1], &rows)
        && cx.same(&ws[2], &xs[2]);
    if !fits {
        return Err(Refusal::new(format!(
            "the weights {} and {} of a {direction} layer do not fit its input {}",
            cx.shape_text(&ws),
            cx.shape_text(&rs),
            cx.shape_text(&xs)
        )));
    }
    let line = |n: i64| vec![Ix::Const(directions), Ix::Const(n)];
    let state = vec![Ix::Const(directions), xs[1].clone(), Ix::Const(hidden)];
    let shapes = [
        (bias, "the bias", line(2 * cell.gates() * hidden)),
        (c.maybe(4), "the list of lengths", vec![xs[1].clone()]),
        (h0, "the initial state", state.clone()),
        (c0, "the initial cell", state),
        (peepholes, "the tensor of peepholes", line(3 * hidden)),
    ];
    for (operand, what, shape) in shapes {
        operand.map(|x| x.of_shape(what, &shape)).transpose()?;
    }
    // Lengths that are all the whole sequence mean nothing.
    let whole = |l: &Tensor<'g>| l.ints().is_some_and(|l| l.iter().all(|n| cx.same(n, &steps)));
    let lens = c.maybe(4).filter(|l| !whole(l)).map(|l| l.to(Elem::I64));
    let acts = activations(c, cell, directions as usize)?;
    let each = cell.activations().len();
    let clip = c.float_of("clip")?.filter(|c| *c > 0.0);
    let before_reset = c.flag("linear_before_reset", false)?;
    let (mut ys, mut hs, mut cs) = (vec![], vec![], vec![]);
    for d in 0..directions {
        let reverse = direction == "reverse" || d == 1;
        let part = |v: Tensor<'g>| v.slice(0, Ix::Const(d), 1, Ix::Const(1)).squeeze(&[0]);
        let none = || cx.full(wide, 0.0, vec![xs[1].clone(), Ix::Const(hidden)]);
        let initial = |s: Option<Tensor<'g>>| s.map_or_else(none, part);
        let state = (initial(h0), (cell == Cell::Lstm).then(|| initial(c0)));
        let weights = |v: Tensor<'g>, at: usize| match scales {
            Some(scales) => Weights::Quantised { values: part(v), scale: part(scales[at]) },
            None => Weights::Float(part(v)),
        };
        let source = match lens {
            Some(lens) if reverse => x.gather_rows(mirrored(lens, &steps).unsqueeze(&[2]))?,
            _ => x,
        };
        let n = cell.gates() * hidden;
        let mut g = weights(w, 0).product(source, 0, n)?;
        let mut inner_bias = None;
        if let Some(bias) = bias {
            let bias = part(bias);
            let [of_input, of_state] = [0, n].map(|at| bias.slice(0, Ix::Const(at), 1, Ix::Const(n)));
            let inside = cell == Cell::Gru && before_reset;
            (g, inner_bias) = with_biases(g, [of_input, of_state], inside, hidden);
        }
        let layer = Layer {
            cell,
            order: Order::Onnx,
            hidden,
            r: weights(r, 1),
            inner_bias,
            peepholes: peepholes.map(part),
            projection: None,
            activations: acts.iter().skip(d as usize * each).take(each).cloned().collect(),
            clip,
            linear_before_reset: before_reset,
            coupled: c.flag("input_forget", false)?,
        };
        // Where sequences have lengths of their own, they were turned around one by one.
        let back = reverse && lens.is_none();
        let running = lens.map(|lens| running(lens, &steps)).transpose()?;
        let (y, (h, c)) = layer.run(&Sequence { products: g, running, back }, state)?;
        // [steps, 1, batch, hidden], in the order of the input.
        let y = y.unsqueeze(&[1]);
        ys.push(match lens {
            Some(lens) if reverse => y.gather_rows(mirrored(lens, &steps).unsqueeze(&[1, 3]))?,
            _ => y,
        });
        hs.push(h.unsqueeze(&[0]));
        cs.extend(c.map(|c| c.unsqueeze(&[0])));
    }
    let mut out = vec![cx.concat(&ys, 1), cx.concat(&hs, 0)];
    if cell == Cell::Lstm {
        out.push(cx.concat(&cs, 0));
    }
    if batch_first {
        out[0] = out[0].transpose(&[2, 0, 1, 3]);
        out.iter_mut().skip(1).for_each(|state| *state = state.transpose(&[1, 0, 2]));
    }
    Ok(out.into_iter().map(|v| v.to(narrow)).collect())
}

/// `[steps, batch]`: whether a sequence has not ended.
fn running<'g>(lens: Tensor<'g>, steps: &Ix) -> Result<Tensor<'g>> {
    let shape = [std::slice::from_ref(steps), &lens.shape()?[..]].concat();
    let at = lens.cx.index(axis(0), Elem::I64, shape.clone());
    Ok(lens.broadcast_to(&shape).above(at))
}

impl<'g> Tensor<'g> {
    /// Elements of `[steps, ..]`, each at a step of its own: each sequence backwards, for `mirrored` steps.
    fn gather_rows(self, at: Tensor<'g>) -> Result<Tensor<'g>> {
        let shape = self.shape()?;
        Ok(self.gather(&[at], along(0, shape.len()), shape))
    }
}

/// `[steps, batch]`: `len - 1 - t` inside a sequence, else `t`.
fn mirrored<'g>(lens: Tensor<'g>, steps: &Ix) -> Tensor<'g> {
    let t = lens.cx.index(axis(0), Elem::I64, vec![steps.clone(), Ix::Const(1)]);
    t.below(lens).select(lens - 1 - t, t)
}
