//! Recurrent layers of all sources: the cells, a step, and the loop over time.
//!
//! In: the products of the input with its weights, of all steps. A step adds the product of the state with its own; steps are
//! the rounds of a loop, so that neither the number of kernels nor the size of code depends on how many there are.

use super::activations::sigmoid;
use super::expr::{Loop, Tensor};
use super::onnx::quantize::dynamic;
use super::onnx::quantized_products::product as integer_product;
use crate::graph::build::{Refusal, Result};
use crate::index::Ix;

/// So many steps are written out.
const UNROLLED: i64 = 4;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cell {
    Rnn,
    Gru,
    Lstm,
}

impl Cell {
    pub(super) fn gates(self) -> i64 {
        match self {
            Cell::Rnn => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }
    /// Functions for the gates, for the new state, and for the LSTM's output of its cell.
    pub(super) fn activations(self) -> &'static [&'static str] {
        match self {
            Cell::Rnn => &["Tanh"],
            Cell::Gru => &["Sigmoid", "Tanh"],
            Cell::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// An activation function with its parameters.
#[derive(Clone)]
pub(super) struct Activation {
    pub name: String,
    pub alpha: Option<f64>,
    pub beta: Option<f64>,
}

/// Where each gate stands among the rows of the weights.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// LSTM: input, output, forget, cell. GRU: update, reset, new.
    Onnx,
    /// LSTM: input, forget, cell, output. GRU: reset, update, new.
    Torch,
}

impl Order {
    /// The places of the LSTM's input, forget, cell and output gate.
    fn lstm(self) -> [i64; 4] {
        match self {
            Order::Onnx => [0, 2, 3, 1],
            Order::Torch => [0, 1, 2, 3],
        }
    }
    /// The places of the GRU's reset and update gate; the new state's is the last.
    fn gru(self) -> [i64; 2] {
        match self {
            Order::Onnx => [1, 0],
            Order::Torch => [0, 1],
        }
    }
}

/// One direction of a layer.
#[derive(Clone)]
pub(super) struct Layer<'g> {
    pub cell: Cell,
    pub order: Order,
    pub hidden: i64,
    pub r: Weights<'g>,
    /// The recurrent bias of the GRU's hidden gate, `[hidden]`, where it stands inside the reset.
    pub inner_bias: Option<Tensor<'g>>,
    /// For the LSTM: `[3 * hidden]`, for i, o, f.
    pub peepholes: Option<Tensor<'g>>,
    /// For the LSTM: `[shown, hidden]`, which makes what is shown, and handed on, narrower than the cell.
    pub projection: Option<Tensor<'g>>,
    pub activations: Vec<Activation>,
    pub clip: Option<f64>,
    pub linear_before_reset: bool,
    pub coupled: bool,
}

/// The input of a layer.
#[derive(Clone, Copy)]
pub(super) struct Sequence<'g> {
    /// The input's products with its weights and the biases, `[steps, batch, gates * hidden]`.
    pub products: Tensor<'g>,
    /// `[steps, batch]`: whether a sequence has not ended.
    pub running: Option<Tensor<'g>>,
    /// From the last step to the first.
    pub back: bool,
}

/// The weights of a direction.
#[derive(Clone, Copy)]
pub(super) enum Weights<'g> {
    /// A row for each unit of each gate: `[gates * hidden, n]`.
    Float(Tensor<'g>),
    /// A column for each: integers `[n, gates * hidden]` of 8 or 16 bits without their zero points, and their scale, one or one
    /// for each column.
    Quantised { values: Tensor<'g>, scale: Tensor<'g> },
}

impl<'g> Weights<'g> {
    /// `x [.., n]` times the weights of some units.
    pub(super) fn product(self, x: Tensor<'g>, first: i64, count: i64) -> Result<Tensor<'g>> {
        let part = |x: Tensor<'g>, axis| x.slice(axis, Ix::Const(first), 1, Ix::Const(count));
        Ok(match self {
            Weights::Float(rows) => x.matmul(part(rows, 0).transpose(&[1, 0])),
            Weights::Quantised { values, scale } => {
                let columns = part(values, 1);
                let [q, by, point] = dynamic(x)?;
                let sum = integer_product((q, Some(point)), 0, (columns, None), 1)?.to(by.elem());
                let scale = if scale.rank()? == 0 { scale } else { part(scale, 0) };
                sum * (scale * by)
            }
        })
    }

    /// The same weights as other tensors.
    fn of<'s>(self, next: &mut impl FnMut() -> Result<Tensor<'s>>) -> Result<Weights<'s>> {
        Ok(match self {
            Weights::Float(_) => Weights::Float(next()?),
            Weights::Quantised { .. } => Weights::Quantised { values: next()?, scale: next()? },
        })
    }
}

fn activate<'g>(f: &Activation, x: Tensor<'g>) -> Result<Tensor<'g>> {
    let (alpha, beta) = (|default| f.alpha.unwrap_or(default), |default| f.beta.unwrap_or(default));
    Ok(match f.name.to_ascii_lowercase().as_str() {
        "relu" => x.max(0.0),
        "tanh" => x.tanh(),
        "sigmoid" => sigmoid(x),
        "affine" => x * alpha(1.0) + beta(0.0),
        "leakyrelu" => x.at_least(0.0).select(x, x * alpha(0.01)),
        "thresholdedrelu" => x.at_least(alpha(1.0)).select(x, 0.0),
        "scaledtanh" => (x * beta(1.0)).tanh() * alpha(1.0),
        "hardsigmoid" => (x * alpha(0.2) + beta(0.5)).max(0.0).min(1.0),
        "elu" => x.at_least(0.0).select(x, (x.exp() - 1.0) * alpha(1.0)),
        "softsign" => x / (x.abs() + 1.0),
        "softplus" => (x.exp() + 1.0).log(),
        other => return Err(Refusal::new(format!("unknown activation {other} of a recurrent layer"))),
    })
}

/// The state of a layer: what it shows, and the LSTM's cell.
pub(super) type State<'g> = (Tensor<'g>, Option<Tensor<'g>>);

impl<'g> Layer<'g> {
    fn f(&self, at: usize, x: Tensor<'g>) -> Result<Tensor<'g>> {
        let x = self.clip.map_or(x, |limit| x.max(-limit).min(limit));
        self.activations.get(at).map_or(Ok(x), |f| activate(f, x))
    }

    /// Gate `i` of `[.., gates * hidden]`.
    fn gate(&self, x: Tensor<'g>, i: i64) -> Result<Tensor<'g>> {
        let last = x.rank()?.saturating_sub(1);
        Ok(x.slice(last, Ix::Const(i * self.hidden), 1, Ix::Const(self.hidden)))
    }

    /// `h [batch, hidden]` times the transposed rows of some gates.
    fn recur(&self, h: Tensor<'g>, first: i64, count: i64) -> Result<Tensor<'g>> {
        self.r.product(h, first * self.hidden, count * self.hidden)
    }

    /// The operands that all steps read.
    fn operands(&self) -> Vec<Tensor<'g>> {
        let r = match self.r {
            Weights::Float(rows) => vec![rows],
            Weights::Quantised { values, scale } => vec![values, scale],
        };
        r.into_iter().chain(self.inner_bias).chain(self.peepholes).chain(self.projection).collect()
    }

    /// The same layer on other operands.
    fn with_operands<'s>(&self, operands: &[Tensor<'s>]) -> Result<Layer<'s>> {
        let mut next = operands.iter().copied();
        let mut next = || next.next().ok_or_else(|| Refusal::new("a loop lost an operand"));
        let r = self.r.of(&mut next)?;
        let mut where_given = |x: Option<Tensor<'g>>| x.map(|_| next()).transpose();
        let (inner_bias, peepholes) = (where_given(self.inner_bias)?, where_given(self.peepholes)?);
        let projection = where_given(self.projection)?;
        Ok(Layer { r, inner_bias, peepholes, projection, activations: self.activations.clone(), ..*self })
    }

    /// One step of sequences, where some may have ended: the output, and the state after it.
    fn round(&self, g: Tensor<'g>, running: Option<Tensor<'g>>, (h, c): State<'g>) -> Result<(Tensor<'g>, State<'g>)> {
        let (new_h, new_c) = self.step(g, (h, c))?;
        let Some(running) = running else { return Ok((new_h, (new_h, new_c))) };
        let running = running.unsqueeze(&[1]);
        let c = new_c.zip(c).map(|(new, old)| running.select(new, old));
        Ok((running.select(new_h, 0.0), (running.select(new_h, h), c)))
    }

    /// One step from the input's products `g [batch, gates * hidden]`.
    fn step(&self, g: Tensor<'g>, (h, c): State<'g>) -> Result<State<'g>> {
        match self.cell {
            Cell::Rnn => Ok((self.f(0, g + self.recur(h, 0, 1)?)?, None)),
            Cell::Gru => Ok((self.gru(g, h)?, None)),
            Cell::Lstm => {
                let c = c.ok_or_else(|| Refusal::new("an LSTM has no cell state"))?;
                let (h, c) = self.lstm(g, h, c)?;
                Ok((h, Some(c)))
            }
        }
    }

    fn gru(&self, g: Tensor<'g>, h: Tensor<'g>) -> Result<Tensor<'g>> {
        let r = self.recur(h, 0, 2)?;
        let [reset, update] = self.order.gru();
        let (gz, gr, gh) = (self.gate(g, update)?, self.gate(g, reset)?, self.gate(g, 2)?);
        let (rz, rr) = (self.gate(r, update)?, self.gate(r, reset)?);
        let (z, reset) = (gz + rz, gr + rr);
        let (z, reset) = (self.f(0, z)?, self.f(0, reset)?);
        let inner = if self.linear_before_reset {
            let r = self.recur(h, 2, 1)?;
            reset * self.inner_bias.map_or(r, |bias| r + bias)
        } else {
            self.recur(reset * h, 2, 1)?
        };
        let new = self.f(1, gh + inner)?;
        Ok((1.0 - z) * new + z * h)
    }

    fn lstm(&self, g: Tensor<'g>, h: Tensor<'g>, c: Tensor<'g>) -> Result<(Tensor<'g>, Tensor<'g>)> {
        let g = g + self.recur(h, 0, 4)?;
        let [input, forget, cell, output] = self.order.lstm();
        let gate = |gate: i64, peephole: i64, c: Tensor<'g>| {
            let x = self.gate(g, gate)?;
            let x = match self.peepholes {
                Some(p) => x + self.gate(p, peephole)? * c,
                None => x,
            };
            self.f(0, x)
        };
        let i = gate(input, 0, c)?;
        let f = if self.coupled { 1.0 - i } else { gate(forget, 2, c)? };
        let new = self.f(1, self.gate(g, cell)?)?;
        let c = f * c + i * new;
        let o = gate(output, 1, c)?;
        // The clip bounds what enters a gate, not the cell's output.
        let shown = self.activations.get(2).map_or(Ok(c), |f| activate(f, c))?;
        let h = o * shown;
        Ok((self.projection.map_or(h, |rows| h.matmul(rows.transpose(&[1, 0]))), c))
    }

    /// All steps: what each shows, `[steps, batch, shown]`, and the state after the last one.
    pub(super) fn run(&self, over: &Sequence<'g>, (h, c): State<'g>) -> Result<(Tensor<'g>, State<'g>)> {
        let Sequence { products, running, back } = *over;
        let Some(steps) = products.shape()?.first().cloned() else {
            return Err(Refusal::new("a recurrent layer has no input"));
        };
        match steps.as_const().filter(|n| *n <= UNROLLED) {
            Some(few) => self.written_out(over, few, (h, c)),
            None => {
                let carried: Vec<Tensor<'g>> = [h].into_iter().chain(c).collect();
                let rows: Vec<(Tensor<'g>, bool)> = [products].into_iter().chain(running).map(|x| (x, back)).collect();
                let (read, conditional, given) = (self.operands(), false, [back]);
                let of =
                    Loop { rounds: steps, conditional, carried: &carried, rows: &rows, read: &read, given: &given };
                let results = products.cx.repeat(&of, |_, round| {
                    let layer = self.with_operands(&round.read)?;
                    let state = (round.state[0], round.state.get(1).copied());
                    let (shown, (h, c)) = layer.round(round.rows[0], round.rows.get(1).copied(), state)?;
                    Ok(([h].into_iter().chain(c).collect(), vec![shown]))
                })?;
                Ok((results[carried.len()], (results[0], c.and(results.get(1).copied()))))
            }
        }
    }

    /// A few steps, one after the other.
    fn written_out(&self, over: &Sequence<'g>, few: i64, mut state: State<'g>) -> Result<(Tensor<'g>, State<'g>)> {
        let mut outputs = vec![];
        for t in 0..few {
            let at = Ix::Const(if over.back { few - 1 - t } else { t });
            let row = |x: Tensor<'g>| x.slice(0, at.clone(), 1, Ix::Const(1)).squeeze(&[0]);
            let (now, running) = (row(over.products), over.running.map(row));
            let shown;
            (shown, state) = self.round(now, running, state)?;
            outputs.push(shown.unsqueeze(&[0]));
        }
        if over.back {
            outputs.reverse();
        }
        let shape = [&[Ix::Const(0)], &state.0.shape()?[..]].concat();
        let none = outputs.is_empty();
        Ok((if none { state.0.like(0.0).fill(shape) } else { state.0.cx.concat(&outputs, 0) }, state))
    }
}

/// The products of the input with both biases, `[gates * hidden]` each, and the one that [`Layer::inner_bias`] is.
pub(super) fn with_biases<'g>(
    products: Tensor<'g>,
    [of_input, of_state]: [Tensor<'g>; 2],
    inside: bool,
    hidden: i64,
) -> (Tensor<'g>, Option<Tensor<'g>>) {
    let sum = of_input + of_state;
    if !inside {
        return (products + sum, None);
    }
    // The hidden gate's recurrent bias is added inside the reset.
    let last = |x: Tensor<'g>| x.slice(0, Ix::Const(2 * hidden), 1, Ix::Const(hidden));
    let inner = last(of_state);
    let first = sum.slice(0, Ix::Const(0), 1, Ix::Const(2 * hidden));
    (products + products.cx.concat(&[first, last(of_input)], 0), Some(inner))
}
