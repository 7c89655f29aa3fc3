//! Recurrent layers as PyTorch has them: several layers, both directions, as loops over time.

use super::recurrent::{Activation, Cell, Layer, Order, Sequence, Weights, with_biases};
use super::{Call, Decomposition};
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::Arg;
use crate::index::Ix;

pub(super) const RULES: &[Decomposition] = &[Decomposition {
    name: "torch_recurrent",
    handles: &["aten.lstm", "aten.gru", "aten.rnn_tanh", "aten.rnn_relu"],
    doc: "Layers of an LSTM, a GRU or an RNN, each a loop over time in one or two directions; up to four steps are written \
          out. What f16 and bf16 add up is f32.\n\n\
          `y = lstm(x, h, c, w, r, ..)` --> `g = x @ w^T`, and in each round `g[t] + h @ r^T`, gates, new state\n\n\
          Refuses packed sequences, dropout between layers, and weights that do not fit.",
    run: recurrent,
}];

/// The weights of one direction of one layer: of the input, of the state, both biases, the projection.
struct Parameters {
    w: Arg,
    r: Arg,
    biases: Option<[Arg; 2]>,
    projection: Option<Arg>,
}

/// `(input, h0, c0 of an LSTM, parameters..)` to `(output, h, c of an LSTM)`.
fn recurrent(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (cell, activations) = match call.name {
        "aten.lstm" => (Cell::Lstm, Cell::Lstm.activations()),
        "aten.gru" => (Cell::Gru, Cell::Gru.activations()),
        "aten.rnn_relu" => (Cell::Rnn, &["Relu"][..]),
        _ => (Cell::Rnn, Cell::Rnn.activations()),
    };
    let lstm = cell == Cell::Lstm;
    if !call.has("batch_first") {
        return Err(Refusal::new("a packed sequence has another batch at each step").help("pad the sequences instead"));
    }
    let layers = call.int("num_layers", 1)?;
    if call.flag("train", false)? && call.float("dropout", 0.0)? != 0.0 && layers > 1 {
        return Err(Refusal::new("dropout between layers draws random numbers").help("call model.eval()"));
    }
    let directions = if call.flag("bidirectional", false)? { 2 } else { 1 };
    let first = if lstm { 3 } else { 2 };
    let weights = parameters(call, first, layers, directions)?;

    let (narrow, wide) = (b.elem(call.arg(0)?), b.wide(call.arg(0)?));
    let mut x = call.arg(0)?;
    if b.rank(x) != 3 {
        return Err(Refusal::new(format!("a recurrent layer needs an input of rank 3, not {}", b.rank(x))));
    }
    let batch_first = call.flag("batch_first", false)?;
    if batch_first {
        x = b.transpose(x, &[1, 0, 2])?;
    }
    x = b.convert(x, wide)?;
    let batch = b.shape(x)[1].clone();
    let mut states = vec![];
    for at in 1..first {
        let state = call.arg(at)?;
        let shape = b.shape(state);
        if shape.len() != 3 || !b.same(&shape[0], &Ix::Const(weights.len() as i64)) || !b.same(&shape[1], &batch) {
            return Err(Refusal::new(format!(
                "a state {} does not fit {layers} layers in {directions} directions over the input {}",
                b.shape_text(&shape),
                b.shape_text(&b.shape(x))
            )));
        }
        states.push(b.convert(state, wide)?);
    }
    let each: Vec<Activation> =
        activations.iter().map(|name| Activation { name: (*name).into(), alpha: None, beta: None }).collect();
    let (mut hs, mut cs) = (vec![], vec![]);
    for (at, of_layer) in weights.chunks(directions as usize).enumerate() {
        let mut ys = vec![];
        for (direction, own) in of_layer.iter().enumerate() {
            let place = Ix::Const((at * directions as usize + direction) as i64);
            let initial = |b: &mut Builder<'_>, state: Arg| {
                let one = b.slice(state, 0, place.clone(), 1, Ix::Const(1))?;
                b.squeeze(one, &[0])
            };
            let h = initial(b, states[0])?;
            let c = states.get(1).map(|c| initial(b, *c)).transpose()?;
            let (layer, products) = layer(b, cell, own, &each, x, h, c)?;
            let over = Sequence { products, running: None, back: direction == 1 };
            let (y, h, c) = layer.run(b, &over, h, c)?;
            ys.push(y);
            hs.push(b.unsqueeze(h, &[0])?);
            if let Some(c) = c {
                cs.push(b.unsqueeze(c, &[0])?);
            }
        }
        x = b.concat(&ys, 2)?;
    }
    if batch_first {
        x = b.transpose(x, &[1, 0, 2])?;
    }
    let mut out = vec![x, b.concat(&hs, 0)?];
    if lstm {
        out.push(b.concat(&cs, 0)?);
    }
    out.into_iter().map(|v| b.convert(v, narrow)).collect()
}

/// One direction of a layer, and the products of its input.
fn layer(
    b: &mut Builder<'_>,
    cell: Cell,
    own: &Parameters,
    activations: &[Activation],
    x: Arg,
    h: Arg,
    c: Option<Arg>,
) -> Result<(Layer, Arg)> {
    let wide = b.elem(x);
    let (w, r) = (b.convert(own.w, wide)?, b.convert(own.r, wide)?);
    let hidden = b.shape(c.unwrap_or(h)).last().and_then(Ix::as_const).unwrap_or_default();
    let rows = Ix::Const(cell.gates() * hidden);
    let last = |b: &Builder<'_>, x: Arg| b.shape(x).last().cloned().unwrap_or(Ix::Const(1));
    for (weight, columns) in [(w, last(b, x)), (r, last(b, h))] {
        if !b.same_shape(&b.shape(weight), &[rows.clone(), columns.clone()]) {
            return Err(Refusal::new(format!(
                "a weight {} does not fit {} columns and a state of {hidden}",
                b.shape_text(&b.shape(weight)),
                b.graph.ix_text(&columns)
            )));
        }
    }
    let weights = Weights::Float(w);
    let mut products = weights.product(b, x, 0, cell.gates() * hidden)?;
    let mut inner_bias = None;
    if let Some([of_input, of_state]) = own.biases {
        let biases = [b.convert(of_input, wide)?, b.convert(of_state, wide)?];
        if biases.iter().any(|x| !b.same_shape(&b.shape(*x), std::slice::from_ref(&rows))) {
            return Err(Refusal::new(format!("a bias does not fit a state of {hidden}")));
        }
        (products, inner_bias) = with_biases(b, products, biases, cell == Cell::Gru, hidden)?;
    }
    let projection = own.projection.map(|p| b.convert(p, wide)).transpose()?;
    if let Some(p) = projection
        && !b.same_shape(&b.shape(p), &[last(b, h), Ix::Const(hidden)])
    {
        return Err(Refusal::new(format!("a projection {} does not fit its layer", b.shape_text(&b.shape(p)))));
    }
    let layer = Layer {
        cell,
        order: Order::Torch,
        hidden,
        r: Weights::Float(r),
        inner_bias,
        peepholes: None,
        projection,
        activations: activations.to_vec(),
        clip: None,
        linear_before_reset: true,
        coupled: false,
    };
    Ok((layer, products))
}

/// What stands behind the states, for each direction of each layer.
fn parameters(call: &Call<'_>, first: usize, layers: i64, directions: i64) -> Result<Vec<Parameters>> {
    let given = call.args.get(first..).unwrap_or_default();
    let biased = call.flag("has_biases", true)?;
    let least = if biased { 4 } else { 2 };
    let count = layers.checked_mul(directions).filter(|n| *n > 0).and_then(|n| usize::try_from(n).ok());
    let each = count.filter(|n| given.len().is_multiple_of(*n)).map_or(0, |n| given.len() / n);
    let projected = each == least + 1 && call.name == "aten.lstm";
    if each != least && !projected {
        return Err(Refusal::new(format!(
            "{} weights do not fit {layers} layers in {directions} directions",
            given.len()
        )));
    }
    Ok(given
        .chunks(each)
        .map(|p| Parameters {
            w: p[0],
            r: p[1],
            biases: biased.then(|| [p[2], p[3]]),
            projection: projected.then(|| p[each - 1]),
        })
        .collect())
}
