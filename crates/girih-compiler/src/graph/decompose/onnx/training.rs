//! One step of an optimiser over any number of tensors: ONNX's preview of training.
//!
//! Operands are the learning rate, the number of steps before, then all tensors, all gradients, and all of each further
//! quantity; results are the new tensors and the new quantities, in the same order.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{Arg, int_scalar};
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_adagrad",
        handles: &["onnx.Adagrad"],
        doc: "`x, h = Adagrad(r, t, x, g, h)` --> `g' = norm * x + g`, `h' = h + g' * g'`, \
              `x' = x - r / (1 + t * decay) * g' / (sqrt h' + epsilon)`\n\nSource: Duchi et al., 2011.",
        run: |b, call| each(b, call, 1, adagrad),
    },
    Decomposition {
        name: "onnx_adam",
        handles: &["onnx.Adam"],
        doc: "`x, v, h = Adam(r, t, x, g, v, h)` --> `g' = norm * x + g`, `v' = alpha * v + (1 - alpha) * g'`, \
              `h' = beta * h + (1 - beta) * g' * g'`, `x' = (x - r' * v' / (sqrt h' + epsilon)) * (1 - norm_post)`, where `r'` is \
              `r * sqrt(1 - beta^t) / (1 - alpha^t)` after the first step\n\nSource: Kingma and Ba, 2015.",
        run: |b, call| each(b, call, 2, adam),
    },
    Decomposition {
        name: "onnx_momentum",
        handles: &["onnx.Momentum"],
        doc: "`x, v = Momentum(r, t, x, g, v)` --> `g' = norm * x + g`, `v' = alpha * v + beta * g'` (beta is 1 in the first step), \
              `x' = x - r * v'`, or by Nesterov `x' = x - r * (g' + alpha * v')`",
        run: |b, call| each(b, call, 1, momentum),
    },
];

/// `(call, rate, steps, [x, g, further...])` to `[x, further...]`.
type Step = fn(&mut Builder<'_>, &Call<'_>, Arg, Arg, &[Arg]) -> Result<Vec<Arg>>;

/// The step for each tensor, which has so many further quantities.
fn each(b: &mut Builder<'_>, call: &Call<'_>, further: usize, step: Step) -> Result<Vec<Arg>> {
    let (rate, steps) = (call.arg(0)?, call.arg(1)?);
    if !b.elem(steps).is_int() {
        return Err(Refusal::new(format!("the number of steps is an integer, not {}", b.elem(steps))));
    }
    let (kinds, given) = (2 + further, call.args.len() - 2);
    if given == 0 || given % kinds != 0 {
        return Err(Refusal::new(format!(
            "it takes {kinds} operands for each tensor beside its first two, not {given}"
        )));
    }
    let tensors = given / kinds;
    let mut all: Vec<Vec<Arg>> = vec![];
    for i in 0..tensors {
        let of = (0..kinds).map(|kind| call.arg(2 + kind * tensors + i)).collect::<Result<Vec<Arg>>>()?;
        let (elem, shape) = (b.elem(of[0]), b.shape(of[0]));
        if !elem.dtype.is_base_float() || !b.elem(rate).dtype.is_base_float() {
            return Err(Refusal::new(format!("tensors and the rate are floats, not {elem} and {}", b.elem(rate))));
        }
        if let Some(other) = of.iter().find(|x| b.elem(**x) != elem || !b.same_shape(&b.shape(**x), &shape)) {
            let text = |x: Arg| format!("{} {}", b.elem(x), b.shape_text(&b.shape(x)));
            return Err(Refusal::new(format!("{} and {} of one tensor differ", text(of[0]), text(*other))));
        }
        all.push(step(b, call, rate, steps, &of)?);
    }
    // Results stand by their kind.
    Ok((0..=further).flat_map(|kind| all.iter().map(move |of| of[kind])).collect())
}

/// `coefficient * x + y`
fn scaled_sum(b: &mut Builder<'_>, coefficient: f64, x: Arg, y: Arg) -> Result<Arg> {
    let factor = b.scalar_like(x, coefficient);
    let part = b.mul(x, factor)?;
    b.add(part, y)
}

/// `coefficient * x`
fn scaled(b: &mut Builder<'_>, coefficient: f64, x: Arg) -> Result<Arg> {
    let factor = b.scalar_like(x, coefficient);
    b.mul(x, factor)
}

fn adagrad(b: &mut Builder<'_>, call: &Call<'_>, rate: Arg, steps: Arg, of: &[Arg]) -> Result<Vec<Arg>> {
    let &[x, g, h] = of else { return Err(Refusal::new("an operand is missing")) };
    let elem = b.elem(x);
    let (rate, steps) = (b.convert(rate, elem)?, b.convert(steps, elem)?);
    let decay = scaled(b, call.float("decay_factor", 0.0)?, steps)?;
    let slower = b.add(decay, b.scalar_like(decay, 1.0))?;
    let rate = b.div(rate, slower)?;
    let g = scaled_sum(b, call.float("norm_coefficient", 0.0)?, x, g)?;
    let square = b.mul(g, g)?;
    let h = b.add(h, square)?;
    let root = b.sqrt(h)?;
    let root = b.add(root, b.scalar_like(root, call.float("epsilon", 1e-6)?))?;
    let step = b.mul(rate, g)?;
    let step = b.div(step, root)?;
    Ok(vec![b.sub(x, step)?, h])
}

fn adam(b: &mut Builder<'_>, call: &Call<'_>, rate: Arg, steps: Arg, of: &[Arg]) -> Result<Vec<Arg>> {
    let &[x, g, v, h] = of else { return Err(Refusal::new("an operand is missing")) };
    let elem = b.elem(x);
    let (alpha, beta) = (call.float("alpha", 0.9)?, call.float("beta", 0.999)?);
    let g = scaled_sum(b, call.float("norm_coefficient", 0.0)?, x, g)?;
    let part = scaled(b, 1.0 - alpha, g)?;
    let v = scaled_sum(b, alpha, v, part)?;
    let square = b.mul(g, g)?;
    let part = scaled(b, 1.0 - beta, square)?;
    let h = scaled_sum(b, beta, h, part)?;
    let root = b.sqrt(h)?;
    let root = b.add(root, b.scalar_like(root, call.float("epsilon", 1e-6)?))?;
    let rate = b.convert(rate, elem)?;
    let later = b.compare(Predicate::GreaterThan, steps, int_scalar(b.elem(steps), 0))?;
    let steps = b.convert(steps, elem)?;
    let mut left = vec![];
    for base in [beta, alpha] {
        let power = b.pow(b.scalar_like(steps, base), steps)?;
        left.push(b.sub(b.scalar_like(steps, 1.0), power)?);
    }
    let adjusted = b.sqrt(left[0])?;
    let adjusted = b.div(adjusted, left[1])?;
    let adjusted = b.mul(rate, adjusted)?;
    let rate = b.select(later, adjusted, rate)?;
    let step = b.mul(rate, v)?;
    let step = b.div(step, root)?;
    let moved = b.sub(x, step)?;
    Ok(vec![scaled(b, 1.0 - call.float("norm_coefficient_post", 0.0)?, moved)?, v, h])
}

fn momentum(b: &mut Builder<'_>, call: &Call<'_>, rate: Arg, steps: Arg, of: &[Arg]) -> Result<Vec<Arg>> {
    let &[x, g, v] = of else { return Err(Refusal::new("an operand is missing")) };
    let required =
        |name: &str| call.float_of(name)?.ok_or_else(|| Refusal::new(format!("the attribute `{name}` is missing")));
    let (alpha, beta, norm) = (required("alpha")?, required("beta")?, required("norm_coefficient")?);
    let nesterov = match call.text("mode")? {
        Some("nesterov") => true,
        Some("standard") => false,
        other => {
            let given = other.map_or("is missing".into(), |word| format!("is {word:?}"));
            return Err(Refusal::new(format!("the attribute `mode` {given}")).help("use standard or nesterov"));
        }
    };
    let elem: Elem = b.elem(x);
    let rate = b.convert(rate, elem)?;
    let g = scaled_sum(b, norm, x, g)?;
    let later = b.compare(Predicate::GreaterThan, steps, int_scalar(b.elem(steps), 0))?;
    let damped = b.select(later, b.scalar_like(x, beta), b.scalar_like(x, 1.0))?;
    let part = b.mul(g, damped)?;
    let v = scaled_sum(b, alpha, v, part)?;
    let direction = if nesterov { scaled_sum(b, alpha, v, g)? } else { v };
    let step = b.mul(rate, direction)?;
    Ok(vec![b.sub(x, step)?, v])
}
