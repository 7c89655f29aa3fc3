//! Recurrent layers as PyTorch has them: several layers, both directions, as loops over time.

use super::Call;
use super::expr::Tensor;
use super::recurrent::{Activation, Cell, Layer, Order, Sequence, State, Weights, with_biases};
use crate::graph::build::{Refusal, Result};
use crate::index::Ix;

rules! {
    torch_recurrent "Layers of an LSTM, a GRU or an RNN, each a loop over time in one or two directions; up to four steps are written \
         out. Sums of f16 and bf16 are computed in f32.\n\n\
         `y = lstm(x, h, c, w, r, ..)` --> `g = x @ w^T`, and in each round `g[t] + h @ r^T`, gates, new state\n\n\
         Refuses packed sequences, dropout between layers, and weights that do not fit." {
        "aten.lstm" => |c| recurrent(c, Cell::Lstm, Cell::Lstm.activations()),
        "aten.gru" => |c| recurrent(c, Cell::Gru, Cell::Gru.activations()),
        "aten.rnn_tanh" => |c| recurrent(c, Cell::Rnn, Cell::Rnn.activations()),
        "aten.rnn_relu" => |c| recurrent(c, Cell::Rnn, &["Relu"]),
    }
}

/// The weights of one direction of one layer: of the input, of the state, both biases, the projection.
struct Parameters<'g> {
    w: Tensor<'g>,
    r: Tensor<'g>,
    biases: Option<[Tensor<'g>; 2]>,
    projection: Option<Tensor<'g>>,
}

/// `(input, h0, c0 of an LSTM, parameters..)` to `(output, h, c of an LSTM)`.
fn recurrent<'g>(c: &Call<'g>, cell: Cell, activations: &[&str]) -> Result<Vec<Tensor<'g>>> {
    let (lstm, cx) = (cell == Cell::Lstm, c.cx);
    if !c.has("batch_first") {
        return Err(Refusal::new("a packed sequence has another batch at each step").help("pad the sequences instead"));
    }
    let layers = c.int("num_layers", 1)?;
    if c.flag("train", false)? && c.float("dropout", 0.0)? != 0.0 && layers > 1 {
        return Err(Refusal::new("dropout between layers draws random numbers").help("call model.eval()"));
    }
    let directions = if c.flag("bidirectional", false)? { 2 } else { 1 };
    let first = if lstm { 3 } else { 2 };
    let weights = parameters(c, first, layers, directions)?;
    let mut x = c.x(0);
    if x.rank()? != 3 {
        return Err(Refusal::new(format!("a recurrent layer needs an input of rank 3, not {}", x.rank()?)));
    }
    let batch_first = c.flag("batch_first", false)?;
    let turned = |x: Tensor<'g>| if batch_first { x.transpose(&[1, 0, 2]) } else { x };
    x = turned(x).wide();
    let batch = x.shape()?[1].clone();
    let mut states = vec![];
    for at in 1..first {
        let shape = c.x(at).shape()?;
        if shape.len() != 3 || !cx.same(&shape[0], &Ix::Const(weights.len() as i64)) || !cx.same(&shape[1], &batch) {
            return Err(Refusal::new(format!(
                "a state {} does not fit {layers} layers in {directions} directions over the input {}",
                cx.shape_text(&shape),
                x.shape_text()
            )));
        }
        states.push(c.x(at).to(x.elem()));
    }
    let each: Vec<Activation> =
        activations.iter().map(|name| Activation { name: (*name).into(), alpha: None, beta: None }).collect();
    let (mut hs, mut cs) = (vec![], vec![]);
    for (at, of_layer) in weights.chunks(directions as usize).enumerate() {
        let mut ys = vec![];
        for (direction, own) in of_layer.iter().enumerate() {
            let place = Ix::Const((at * directions as usize + direction) as i64);
            let initial = |state: Tensor<'g>| state.slice(0, place.clone(), 1, Ix::Const(1)).squeeze(&[0]);
            let state = (initial(states[0]), states.get(1).map(|c| initial(*c)));
            let (layer, products) = layer(cell, own, &each, x, state)?;
            let over = Sequence { products, running: None, back: direction == 1 };
            let (y, (h, c)) = layer.run(&over, state)?;
            ys.push(y);
            hs.push(h.unsqueeze(&[0]));
            cs.extend(c.map(|c| c.unsqueeze(&[0])));
        }
        x = cx.concat(&ys, 2);
    }
    let mut out = vec![turned(x), cx.concat(&hs, 0)];
    if lstm {
        out.push(cx.concat(&cs, 0));
    }
    Ok(out.into_iter().map(|x| x.to(c.x(0).elem())).collect())
}

/// One direction of a layer, and the products of its input.
fn layer<'g>(
    cell: Cell,
    own: &Parameters<'g>,
    activations: &[Activation],
    x: Tensor<'g>,
    (h, c): State<'g>,
) -> Result<(Layer<'g>, Tensor<'g>)> {
    let (wide, cx) = (x.elem(), x.cx);
    let (w, r) = (own.w.to(wide), own.r.to(wide));
    let last = |x: Tensor<'g>| Ok(x.shape()?.last().cloned().unwrap_or(Ix::Const(1)));
    let hidden = last(c.unwrap_or(h))?.as_const().unwrap_or_default();
    let rows = Ix::Const(cell.gates() * hidden);
    for (weight, columns) in [(w, last(x)?), (r, last(h)?)] {
        if !cx.same_shape(&weight.shape()?, &[rows.clone(), columns.clone()]) {
            return Err(Refusal::new(format!(
                "a weight {} does not fit {} columns and a state of {hidden}",
                weight.shape_text(),
                cx.ix_text(&columns)
            )));
        }
    }
    let mut products = Weights::Float(w).product(x, 0, cell.gates() * hidden)?;
    let mut inner_bias = None;
    if let Some(biases) = own.biases {
        let biases = biases.map(|x| x.to(wide));
        for x in biases {
            if !cx.same_shape(&x.shape()?, std::slice::from_ref(&rows)) {
                return Err(Refusal::new(format!("a bias does not fit a state of {hidden}")));
            }
        }
        (products, inner_bias) = with_biases(products, biases, cell == Cell::Gru, hidden);
    }
    let projection = own.projection.map(|p| p.to(wide));
    if let Some(p) = projection
        && !cx.same_shape(&p.shape()?, &[last(h)?, Ix::Const(hidden)])
    {
        return Err(Refusal::new(format!("a projection {} does not fit its layer", p.shape_text())));
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

/// The operands behind the states, for each direction of each layer.
fn parameters<'g>(call: &Call<'g>, first: usize, layers: i64, directions: i64) -> Result<Vec<Parameters<'g>>> {
    let given: Vec<Tensor<'g>> = (first..call.args.len()).map(|i| call.x(i)).collect();
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
