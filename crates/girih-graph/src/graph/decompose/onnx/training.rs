//! One step of an optimiser over any number of tensors: ONNX's preview of training.
//!
//! Operands are the learning rate, the number of steps before, then all tensors, all gradients, and all of each further
//! quantity; results are the new tensors and the new quantities, in the same order.

use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::expr::Tensor;

rules! {
    onnx_adagrad "`x, h = Adagrad(r, t, x, g, h)` --> `g' = norm * x + g`, `h' = h + g' * g'`, \
         `x' = x - r / (1 + t * decay) * g' / (sqrt h' + epsilon)`\n\nSource: Duchi et al., 2011." {
        "onnx.Adagrad" => |c| each(c, adagrad),
    }
    onnx_adam "`x, v, h = Adam(r, t, x, g, v, h)` --> `g' = norm * x + g`, `v' = alpha * v + (1 - alpha) * g'`, \
         `h' = beta * h + (1 - beta) * g' * g'`, `x' = (x - r' * v' / (sqrt h' + epsilon)) * (1 - norm_post)`, where `r'` is \
         `r * sqrt(1 - beta^t) / (1 - alpha^t)` after the first step\n\nSource: Kingma and Ba, 2015." {
        "onnx.Adam" => |c| each(c, adam),
    }
    onnx_momentum "`x, v = Momentum(r, t, x, g, v)` --> `g' = norm * x + g`, `v' = alpha * v + beta * g'` (beta is 1 in the first step), \
         `x' = x - r * v'`, or by Nesterov `x' = x - r * (g' + alpha * v')`" {
        "onnx.Momentum" => |c| each(c, momentum),
    }
}

/// `(call, rate, steps, [x, g, further...])` to `[x, further...]`.
type Step<'g, const N: usize, const M: usize> =
    fn(&Call<'g>, Tensor<'g>, Tensor<'g>, [Tensor<'g>; N]) -> Result<[Tensor<'g>; M]>;

/// The step for each tensor.
fn each<'g, const N: usize, const M: usize>(c: &Call<'g>, step: Step<'g, N, M>) -> Result<Vec<Tensor<'g>>> {
    let (rate, steps) = (c.x(0), c.x(1));
    if !steps.elem().is_int() {
        return Err(Refusal::new(format!("the number of steps is an integer, not {}", steps.elem())));
    }
    let given = c.args.len().saturating_sub(2);
    if given == 0 || !given.is_multiple_of(N) {
        return Err(Refusal::new(format!("it takes {N} operands for each tensor beside its first two, not {given}")));
    }
    let tensors = given / N;
    let mut all = vec![];
    for i in 0..tensors {
        let of: [Tensor<'g>; N] = std::array::from_fn(|kind| c.x(2 + kind * tensors + i));
        let (elem, shape) = (of[0].elem(), of[0].shape()?);
        if !elem.dtype.is_base_float() || !rate.elem().dtype.is_base_float() {
            return Err(Refusal::new(format!("tensors and the rate are floats, not {elem} and {}", rate.elem())));
        }
        for other in of {
            if other.elem() != elem || !c.cx.same_shape(&other.shape()?, &shape) {
                let text = |x: Tensor<'_>| format!("{} {}", x.elem(), x.shape_text());
                return Err(Refusal::new(format!("{} and {} of one tensor differ", text(of[0]), text(other))));
            }
        }
        all.push(step(c, rate, steps, of)?);
    }
    // Results stand by their kind.
    Ok((0..M).flat_map(|kind| all.iter().map(move |of| of[kind])).collect())
}

fn adagrad<'g>(
    c: &Call<'g>,
    rate: Tensor<'g>,
    steps: Tensor<'g>,
    [x, g, h]: [Tensor<'g>; 3],
) -> Result<[Tensor<'g>; 2]> {
    let (rate, steps) = (rate.to(x.elem()), steps.to(x.elem()));
    let rate = rate / (steps * c.float("decay_factor", 0.0)? + 1.0);
    let g = x * c.float("norm_coefficient", 0.0)? + g;
    let h = h + g * g;
    let root = h.sqrt() + c.float("epsilon", 1e-6)?;
    Ok([x - rate * g / root, h])
}

fn adam<'g>(
    c: &Call<'g>,
    rate: Tensor<'g>,
    steps: Tensor<'g>,
    [x, g, v, h]: [Tensor<'g>; 4],
) -> Result<[Tensor<'g>; 3]> {
    let (alpha, beta) = (c.float("alpha", 0.9)?, c.float("beta", 0.999)?);
    let g = x * c.float("norm_coefficient", 0.0)? + g;
    let part = g * (1.0 - alpha);
    let v = v * alpha + part;
    let part = g * g * (1.0 - beta);
    let h = h * beta + part;
    let root = h.sqrt() + c.float("epsilon", 1e-6)?;
    let rate = rate.to(x.elem());
    let later = steps.above(0);
    let steps = steps.to(x.elem());
    let [of_beta, of_alpha] = [beta, alpha].map(|base| 1.0 - steps.like(base).pow(steps));
    let adjusted = rate * (of_beta.sqrt() / of_alpha);
    let rate = later.select(adjusted, rate);
    Ok([(x - rate * v / root) * (1.0 - c.float("norm_coefficient_post", 0.0)?), v, h])
}

fn momentum<'g>(
    c: &Call<'g>,
    rate: Tensor<'g>,
    steps: Tensor<'g>,
    [x, g, v]: [Tensor<'g>; 3],
) -> Result<[Tensor<'g>; 2]> {
    let required =
        |name: &str| c.float_of(name)?.ok_or_else(|| Refusal::new(format!("the attribute `{name}` is missing")));
    let (alpha, beta, norm) = (required("alpha")?, required("beta")?, required("norm_coefficient")?);
    let nesterov = match c.text("mode")? {
        Some("nesterov") => true,
        Some("standard") => false,
        other => {
            let given = other.map_or("is missing".into(), |word| format!("is {word:?}"));
            return Err(Refusal::new(format!("the attribute `mode` {given}")).help("use standard or nesterov"));
        }
    };
    let rate = rate.to(x.elem());
    let g = x * norm + g;
    let part = g * steps.above(0).select(x.like(beta), 1.0);
    let v = v * alpha + part;
    let direction = if nesterov { v * alpha + g } else { v };
    Ok([x - rate * direction, v])
}
