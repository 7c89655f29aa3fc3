//! What recurrent layers of all sources share: the cells, a step, and the loop over time.
//!
//! In: the products of the input with its weights, of all steps. A step adds the product of the state with its own; steps are
//! the rounds of a loop, so that neither the number of kernels nor the size of code depends on how many there are.

use super::activations::sigmoid;
use super::onnx::quantize::dynamic;
use super::onnx::quantized_products::centred;
use crate::graph::Elem;
use crate::graph::build::repeat::Rounds;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::Arg;
use crate::index::Ix;
use crate::num::op::Predicate;

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
    /// Of the gates, of the new state, and of what the LSTM shows of its cell.
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
    /// Of the LSTM's input, forget, cell and output gate.
    fn lstm(self) -> [i64; 4] {
        match self {
            Order::Onnx => [0, 2, 3, 1],
            Order::Torch => [0, 1, 2, 3],
        }
    }
    /// Of the GRU's reset and update gate; the new state's is the last.
    fn gru(self) -> [i64; 2] {
        match self {
            Order::Onnx => [1, 0],
            Order::Torch => [0, 1],
        }
    }
}

/// One direction of a layer.
pub(super) struct Layer {
    pub cell: Cell,
    pub order: Order,
    pub hidden: i64,
    pub r: Weights,
    /// The recurrent bias of the GRU's hidden gate, `[hidden]`, where it stands inside the reset.
    pub inner_bias: Option<Arg>,
    /// Of the LSTM: `[3 * hidden]`, for i, o, f.
    pub peepholes: Option<Arg>,
    /// Of the LSTM: `[shown, hidden]`, which makes what is shown, and handed on, narrower than the cell.
    pub projection: Option<Arg>,
    pub activations: Vec<Activation>,
    pub clip: Option<f64>,
    pub linear_before_reset: bool,
    pub coupled: bool,
}

/// What a layer runs over.
pub(super) struct Sequence {
    /// The input's products with its weights and the biases, `[steps, batch, gates * hidden]`.
    pub products: Arg,
    /// `[steps, batch]`: whether a sequence has not ended.
    pub running: Option<Arg>,
    /// From the last step to the first.
    pub back: bool,
}

/// The weights of a direction.
#[derive(Clone, Copy)]
pub(super) enum Weights {
    /// A row for each unit of each gate: `[gates * hidden, n]`.
    Float(Arg),
    /// A column for each: integers `[n, gates * hidden]` of 8 or 16 bits without their zero points, and their scale, one or one
    /// for each column.
    Quantised { values: Arg, scale: Arg },
}

impl Weights {
    /// `x [.., n]` times the weights of some units.
    pub(super) fn product(self, b: &mut Builder<'_>, x: Arg, first: i64, count: i64) -> Result<Arg> {
        match self {
            Weights::Float(rows) => {
                let rows = b.slice(rows, 0, Ix::Const(first), 1, Ix::Const(count))?;
                let columns = b.transpose(rows, &[1, 0])?;
                b.matmul(x, columns)
            }
            Weights::Quantised { values, scale } => {
                let columns = b.slice(values, 1, Ix::Const(first), 1, Ix::Const(count))?;
                let (q, by, point) = dynamic(b, x)?;
                let (q, columns) = (centred(b, q, Some(point), 0)?, b.convert(columns, Elem::I16)?);
                let sum = b.matmul_in(q, columns, Elem::I32)?;
                let sum = b.convert(sum, b.elem(by))?;
                let scale = match b.rank(scale) {
                    0 => scale,
                    _ => b.slice(scale, 0, Ix::Const(first), 1, Ix::Const(count))?,
                };
                let scale = b.mul(scale, by)?;
                b.mul(sum, scale)
            }
        }
    }
}

fn activate(b: &mut Builder<'_>, f: &Activation, x: Arg) -> Result<Arg> {
    let c = |b: &Builder<'_>, v: f64| b.scalar_like(x, v);
    let (zero, one) = (c(b, 0.0), c(b, 1.0));
    Ok(match f.name.to_ascii_lowercase().as_str() {
        "relu" => b.max(x, zero)?,
        "tanh" => b.tanh(x)?,
        "sigmoid" => sigmoid(b, x)?,
        "affine" => {
            let (alpha, beta) = (c(b, f.alpha.unwrap_or(1.0)), c(b, f.beta.unwrap_or(0.0)));
            let scaled = b.mul(x, alpha)?;
            b.add(scaled, beta)?
        }
        "leakyrelu" => {
            let alpha = c(b, f.alpha.unwrap_or(0.01));
            let (positive, scaled) = (b.compare(Predicate::GreaterThanOrEqual, x, zero)?, b.mul(x, alpha)?);
            b.select(positive, x, scaled)?
        }
        "thresholdedrelu" => {
            let alpha = c(b, f.alpha.unwrap_or(1.0));
            let above = b.compare(Predicate::GreaterThanOrEqual, x, alpha)?;
            b.select(above, x, zero)?
        }
        "scaledtanh" => {
            let (alpha, beta) = (c(b, f.alpha.unwrap_or(1.0)), c(b, f.beta.unwrap_or(1.0)));
            let inner = b.mul(x, beta)?;
            let t = b.tanh(inner)?;
            b.mul(t, alpha)?
        }
        "hardsigmoid" => {
            let (alpha, beta) = (c(b, f.alpha.unwrap_or(0.2)), c(b, f.beta.unwrap_or(0.5)));
            let scaled = b.mul(x, alpha)?;
            let shifted = b.add(scaled, beta)?;
            let low = b.max(shifted, zero)?;
            b.min(low, one)?
        }
        "elu" => {
            let alpha = c(b, f.alpha.unwrap_or(1.0));
            let (positive, e) = (b.compare(Predicate::GreaterThanOrEqual, x, zero)?, b.exp(x)?);
            let less = b.sub(e, one)?;
            let scaled = b.mul(less, alpha)?;
            b.select(positive, x, scaled)?
        }
        "softsign" => {
            let size = b.abs(x)?;
            let divisor = b.add(size, one)?;
            b.div(x, divisor)?
        }
        "softplus" => {
            let e = b.exp(x)?;
            let sum = b.add(e, one)?;
            b.log(sum)?
        }
        other => return Err(Refusal::new(format!("unknown activation {other} of a recurrent layer"))),
    })
}

impl Layer {
    fn f(&self, b: &mut Builder<'_>, at: usize, x: Arg) -> Result<Arg> {
        let x = match self.clip {
            Some(limit) => {
                let (low, high) = (b.scalar_like(x, -limit), b.scalar_like(x, limit));
                let x = b.max(x, low)?;
                b.min(x, high)?
            }
            None => x,
        };
        match self.activations.get(at) {
            Some(f) => activate(b, f, x),
            None => Ok(x),
        }
    }

    /// Gate `i` of `[.., gates * hidden]`.
    fn gate(&self, b: &mut Builder<'_>, x: Arg, i: i64) -> Result<Arg> {
        let last = b.rank(x).saturating_sub(1);
        b.slice(x, last, Ix::Const(i * self.hidden), 1, Ix::Const(self.hidden))
    }

    /// `h [batch, hidden]` times the transposed rows of some gates.
    fn recur(&self, b: &mut Builder<'_>, h: Arg, first: i64, count: i64) -> Result<Arg> {
        self.r.product(b, h, first * self.hidden, count * self.hidden)
    }

    /// What all steps read.
    fn operands(&self) -> Vec<Arg> {
        let r = match self.r {
            Weights::Float(rows) => vec![rows],
            Weights::Quantised { values, scale } => vec![values, scale],
        };
        r.into_iter().chain(self.inner_bias).chain(self.peepholes).chain(self.projection).collect()
    }

    /// The same layer on other operands.
    fn with_operands(&self, operands: &[Arg]) -> Layer {
        let mut next = operands.iter().copied();
        let mut next = || next.next().unwrap_or(Arg::Absent);
        let r = match self.r {
            Weights::Float(_) => Weights::Float(next()),
            Weights::Quantised { .. } => Weights::Quantised { values: next(), scale: next() },
        };
        let (inner_bias, peepholes) = (self.inner_bias.map(|_| next()), self.peepholes.map(|_| next()));
        let projection = self.projection.map(|_| next());
        Layer { r, inner_bias, peepholes, projection, activations: self.activations.clone(), ..*self }
    }

    /// One step of sequences, some of which have ended: what it shows, and the state after it.
    fn round(
        &self,
        b: &mut Builder<'_>,
        g: Arg,
        running: Option<Arg>,
        h: Arg,
        c: Option<Arg>,
    ) -> Result<(Arg, Arg, Option<Arg>)> {
        let (new_h, new_c) = self.step(b, g, h, c)?;
        let Some(running) = running else { return Ok((new_h, new_h, new_c)) };
        let running = b.unsqueeze(running, &[1])?;
        let zero = b.scalar_like(new_h, 0.0);
        let c = match (new_c, c) {
            (Some(new), Some(old)) => Some(b.select(running, new, old)?),
            _ => None,
        };
        Ok((b.select(running, new_h, zero)?, b.select(running, new_h, h)?, c))
    }

    /// One step from the input's products `g [batch, gates * hidden]`.
    fn step(&self, b: &mut Builder<'_>, g: Arg, h: Arg, c: Option<Arg>) -> Result<(Arg, Option<Arg>)> {
        match self.cell {
            Cell::Rnn => {
                let r = self.recur(b, h, 0, 1)?;
                let sum = b.add(g, r)?;
                Ok((self.f(b, 0, sum)?, None))
            }
            Cell::Gru => {
                let r = self.recur(b, h, 0, 2)?;
                let [reset, update] = self.order.gru();
                let (gz, gr, gh) = (self.gate(b, g, update)?, self.gate(b, g, reset)?, self.gate(b, g, 2)?);
                let (rz, rr) = (self.gate(b, r, update)?, self.gate(b, r, reset)?);
                let (z, reset) = (b.add(gz, rz)?, b.add(gr, rr)?);
                let (z, reset) = (self.f(b, 0, z)?, self.f(b, 0, reset)?);
                let inner = if self.linear_before_reset {
                    let mut r = self.recur(b, h, 2, 1)?;
                    if let Some(bias) = self.inner_bias {
                        r = b.add(r, bias)?;
                    }
                    b.mul(reset, r)?
                } else {
                    let kept = b.mul(reset, h)?;
                    self.recur(b, kept, 2, 1)?
                };
                let sum = b.add(gh, inner)?;
                let new = self.f(b, 1, sum)?;
                let one = b.scalar_like(z, 1.0);
                let rest = b.sub(one, z)?;
                let (new, old) = (b.mul(rest, new)?, b.mul(z, h)?);
                Ok((b.add(new, old)?, None))
            }
            Cell::Lstm => {
                let c = c.ok_or_else(|| Refusal::new("an LSTM has no cell state"))?;
                let r = self.recur(b, h, 0, 4)?;
                let g = b.add(g, r)?;
                let [input, forget, cell, output] = self.order.lstm();
                let peep = |b: &mut Builder<'_>, x: Arg, at: i64, c: Arg| -> Result<Arg> {
                    let Some(p) = self.peepholes else { return Ok(x) };
                    let p = self.gate(b, p, at)?;
                    let extra = b.mul(p, c)?;
                    b.add(x, extra)
                };
                let i = self.gate(b, g, input)?;
                let i = peep(b, i, 0, c)?;
                let i = self.f(b, 0, i)?;
                let f = if self.coupled {
                    let one = b.scalar_like(i, 1.0);
                    b.sub(one, i)?
                } else {
                    let f = self.gate(b, g, forget)?;
                    let f = peep(b, f, 2, c)?;
                    self.f(b, 0, f)?
                };
                let new = self.gate(b, g, cell)?;
                let new = self.f(b, 1, new)?;
                let (kept, added) = (b.mul(f, c)?, b.mul(i, new)?);
                let c = b.add(kept, added)?;
                let o = self.gate(b, g, output)?;
                let o = peep(b, o, 1, c)?;
                let o = self.f(b, 0, o)?;
                // The clip bounds what enters a gate, not the cell's output.
                let shown = match self.activations.get(2) {
                    Some(f) => activate(b, f, c)?,
                    None => c,
                };
                let mut h = b.mul(o, shown)?;
                if let Some(rows) = self.projection {
                    let columns = b.transpose(rows, &[1, 0])?;
                    h = b.matmul(h, columns)?;
                }
                Ok((h, Some(c)))
            }
        }
    }

    /// All steps: what each shows, `[steps, batch, shown]`, and the state after the last one.
    pub(super) fn run(
        &self,
        b: &mut Builder<'_>,
        over: &Sequence,
        mut h: Arg,
        mut c: Option<Arg>,
    ) -> Result<(Arg, Arg, Option<Arg>)> {
        let Sequence { products, running, back } = *over;
        let Some(steps) = b.shape(products).first().cloned() else {
            return Err(Refusal::new("a recurrent layer has no input"));
        };
        let Some(few) = steps.as_const().filter(|n| *n <= UNROLLED) else {
            let carried: Vec<Arg> = [h].into_iter().chain(c).collect();
            let rows: Vec<(Arg, bool)> = [products].into_iter().chain(running).map(|x| (x, back)).collect();
            let read = self.operands();
            let of = Rounds {
                rounds: steps,
                conditional: false,
                carried: &carried,
                rows: &rows,
                read: &read,
                given: &[back],
            };
            let results = b.repeat(&of, |b, state, rows, read| {
                let layer = self.with_operands(read);
                let (h, c) = (state[0], state.get(1).copied());
                let (shown, h, c) = layer.round(b, rows[0], rows.get(1).copied(), h, c)?;
                Ok(([h].into_iter().chain(c).collect(), vec![shown]))
            })?;
            return Ok((results[carried.len()], results[0], c.and(results.get(1).copied())));
        };
        let mut outputs = vec![];
        for t in 0..few {
            let at = Ix::Const(if back { few - 1 - t } else { t });
            let row = |b: &mut Builder<'_>, x: Arg| {
                let one = b.slice(x, 0, at.clone(), 1, Ix::Const(1))?;
                b.squeeze(one, &[0])
            };
            let (now, running) = (row(b, products)?, running.map(|r| row(b, r)).transpose()?);
            let shown;
            (shown, h, c) = self.round(b, now, running, h, c)?;
            outputs.push(b.unsqueeze(shown, &[0])?);
        }
        if back {
            outputs.reverse();
        }
        let shape = [&[Ix::Const(0)], &b.shape(h)[..]].concat();
        let shown = match outputs.is_empty() {
            true => b.full(b.scalar_like(h, 0.0), b.elem(h), shape),
            false => b.concat(&outputs, 0)?,
        };
        Ok((shown, h, c))
    }
}

/// The products of the input with both biases, `[gates * hidden]` each, and the one that [`Layer::inner_bias`] is.
pub(super) fn with_biases(
    b: &mut Builder<'_>,
    products: Arg,
    [of_input, of_state]: [Arg; 2],
    inside: bool,
    hidden: i64,
) -> Result<(Arg, Option<Arg>)> {
    let sum = b.add(of_input, of_state)?;
    if !inside {
        return Ok((b.add(products, sum)?, None));
    }
    // The hidden gate's recurrent bias is added inside the reset.
    let inner = b.slice(of_state, 0, Ix::Const(2 * hidden), 1, Ix::Const(hidden))?;
    let first = b.slice(sum, 0, Ix::Const(0), 1, Ix::Const(2 * hidden))?;
    let last = b.slice(of_input, 0, Ix::Const(2 * hidden), 1, Ix::Const(hidden))?;
    let both = b.concat(&[first, last], 0)?;
    Ok((b.add(products, both)?, Some(inner)))
}
