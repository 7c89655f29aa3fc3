//! Recurrent layers: RNN, GRU and LSTM, as loops over time; a few steps are written out.
//!
//! The products with the input are one product for all steps; each step adds the product with the state.

use super::quantize::dynamic;
use crate::graph::Elem;
use crate::graph::build::repeat::Rounds;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::activations::sigmoid;
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{self, Arg, Coord, axis};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[Decomposition {
    name: "recurrent",
    handles: &["onnx.RNN", "onnx.GRU", "onnx.LSTM", "com.microsoft.DynamicQuantizeLSTM"],
    doc: "A recurrent layer, step by step. Weights of 8 bits are multiplied by operands that are quantised as they come.\n\n\
          `y = lstm(x, w, r)` --> `g = x @ w^T`, and for each step `g[t] + h @ r^T`, gates, new state\n\n\
          Refuses a sequence length that is not known, or more than 256.",
    run: recurrent,
}];

/// So many steps are written out.
const UNROLLED: i64 = 4;

#[derive(Clone, Copy, PartialEq)]
enum Cell {
    Rnn,
    Gru,
    Lstm,
}

impl Cell {
    fn gates(self) -> i64 {
        match self {
            Cell::Rnn => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }
    fn activations(self) -> &'static [&'static str] {
        match self {
            Cell::Rnn => &["Tanh"],
            Cell::Gru => &["Sigmoid", "Tanh"],
            Cell::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// An activation function with its parameters.
#[derive(Clone)]
struct Activation {
    name: String,
    alpha: Option<f64>,
    beta: Option<f64>,
}

/// One direction of a layer.
struct Layer {
    cell: Cell,
    hidden: i64,
    r: Weights,
    /// The recurrent bias of the GRU's hidden gate, `[hidden]`, where it stands inside the reset.
    inner_bias: Option<Arg>,
    /// Of the LSTM: `[3 * hidden]`, for i, o, f.
    peepholes: Option<Arg>,
    activations: Vec<Activation>,
    clip: Option<f64>,
    linear_before_reset: bool,
    coupled: bool,
}

/// The weights of a direction.
#[derive(Clone, Copy)]
enum Weights {
    /// A row for each unit of each gate: `[gates * hidden, n]`.
    Float(Arg),
    /// A column for each: integers `[n, gates * hidden]` of i32 without their zero points, and their scale, one or one for
    /// each column.
    Quantised { values: Arg, scale: Arg },
}

impl Weights {
    /// `x [.., n]` times the weights of some units.
    fn product(self, b: &mut Builder<'_>, x: Arg, first: i64, count: i64) -> Result<Arg> {
        match self {
            Weights::Float(rows) => {
                let rows = b.slice(rows, 0, Ix::Const(first), 1, Ix::Const(count))?;
                let columns = b.transpose(rows, &[1, 0])?;
                b.matmul(x, columns)
            }
            Weights::Quantised { values, scale } => {
                let columns = b.slice(values, 1, Ix::Const(first), 1, Ix::Const(count))?;
                let (q, by, point) = dynamic(b, x)?;
                let (q, point) = (b.convert(q, Elem::I32)?, b.convert(point, Elem::I32)?);
                let q = b.sub(q, point)?;
                let sum = b.matmul(q, columns)?;
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
        r.into_iter().chain(self.inner_bias).chain(self.peepholes).collect()
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
        Layer { r, inner_bias, peepholes, activations: self.activations.clone(), ..*self }
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
                let (gz, gr, gh) = (self.gate(b, g, 0)?, self.gate(b, g, 1)?, self.gate(b, g, 2)?);
                let (rz, rr) = (self.gate(b, r, 0)?, self.gate(b, r, 1)?);
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
                let mut gates = vec![];
                for i in 0..4 {
                    gates.push(self.gate(b, g, i)?);
                }
                let peep = |b: &mut Builder<'_>, x: Arg, at: i64, c: Arg| -> Result<Arg> {
                    let Some(p) = self.peepholes else { return Ok(x) };
                    let p = self.gate(b, p, at)?;
                    let extra = b.mul(p, c)?;
                    b.add(x, extra)
                };
                let i = peep(b, gates[0], 0, c)?;
                let i = self.f(b, 0, i)?;
                let f = if self.coupled {
                    let one = b.scalar_like(i, 1.0);
                    b.sub(one, i)?
                } else {
                    let f = peep(b, gates[2], 2, c)?;
                    self.f(b, 0, f)?
                };
                let new = self.f(b, 1, gates[3])?;
                let (kept, added) = (b.mul(f, c)?, b.mul(i, new)?);
                let c = b.add(kept, added)?;
                let o = peep(b, gates[1], 1, c)?;
                let o = self.f(b, 0, o)?;
                // The clip bounds what enters a gate, not the cell's output.
                let shown = match self.activations.get(2) {
                    Some(f) => activate(b, f, c)?,
                    None => c,
                };
                Ok((b.mul(o, shown)?, Some(c)))
            }
        }
    }
}

/// Integers of 8 bits as i32 without their zero points.
fn centred(b: &mut Builder<'_>, call: &Call<'_>, weights: usize, point: usize) -> Result<Arg> {
    let w = b.convert(call.arg(weights)?, Elem::I32)?;
    match call.opt(point) {
        Some(point) => {
            let point = b.convert(point, Elem::I32)?;
            let point = by_column(b, point)?;
            b.sub(w, point)
        }
        None => Ok(w),
    }
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
        true => (centred(b, call, 1, 9)?, centred(b, call, 2, 11)?),
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
            let sum = b.add(of_input, of_state)?;
            if cell == Cell::Gru && before_reset {
                // The hidden gate's recurrent bias is added inside the reset.
                inner_bias = Some(b.slice(of_state, 0, Ix::Const(2 * hidden), 1, Ix::Const(hidden))?);
                let first = b.slice(sum, 0, Ix::Const(0), 1, Ix::Const(2 * hidden))?;
                let last = b.slice(of_input, 0, Ix::Const(2 * hidden), 1, Ix::Const(hidden))?;
                let both = b.concat(&[first, last], 0)?;
                g = b.add(g, both)?;
            } else {
                g = b.add(g, sum)?;
            }
        }
        let layer = Layer {
            cell,
            hidden,
            r: weights(b, r, 1)?,
            inner_bias,
            peepholes: peepholes.map(|p| part(b, p)).transpose()?,
            activations: acts.iter().skip(d as usize * each).take(each).cloned().collect(),
            clip,
            linear_before_reset: before_reset,
            coupled: call.flag("input_forget", false)?,
        };
        // Where sequences have lengths of their own, they were turned around one by one.
        let back = reverse && lens.is_none();
        let running = lens.map(|lens| running(b, lens, &steps)).transpose()?;
        let y = match steps.as_const().filter(|n| *n <= UNROLLED) {
            Some(steps) => {
                let mut outputs = vec![];
                for t in 0..steps {
                    let at = Ix::Const(if back { steps - 1 - t } else { t });
                    let row = |b: &mut Builder<'_>, x: Arg| {
                        let one = b.slice(x, 0, at.clone(), 1, Ix::Const(1))?;
                        b.squeeze(one, &[0])
                    };
                    let (now, running) = (row(b, g)?, running.map(|r| row(b, r)).transpose()?);
                    let shown;
                    (shown, h, c) = layer.round(b, now, running, h, c)?;
                    outputs.push(b.unsqueeze(shown, &[0])?);
                }
                if back {
                    outputs.reverse();
                }
                match outputs.is_empty() {
                    true => b.full(zero, wide, vec![Ix::Const(0), batch.clone(), Ix::Const(hidden)]),
                    false => b.concat(&outputs, 0)?,
                }
            }
            None => {
                let carried: Vec<Arg> = [h].into_iter().chain(c).collect();
                let rows: Vec<(Arg, bool)> = [g].into_iter().chain(running).map(|x| (x, back)).collect();
                let read = layer.operands();
                let of = Rounds {
                    rounds: steps.clone(),
                    conditional: false,
                    carried: &carried,
                    rows: &rows,
                    read: &read,
                    given: &[back],
                };
                let results = b.repeat(&of, |b, state, rows, read| {
                    let layer = layer.with_operands(read);
                    let (h, c) = (state[0], state.get(1).copied());
                    let (shown, h, c) = layer.round(b, rows[0], rows.get(1).copied(), h, c)?;
                    Ok(([h].into_iter().chain(c).collect(), vec![shown]))
                })?;
                h = results[0];
                c = c.and(results.get(1).copied());
                results[carried.len()]
            }
        };
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
