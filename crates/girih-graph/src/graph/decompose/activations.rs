//! Activations: functions of one tensor. f16 and bf16 are computed in f32 and rounded once.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use super::Call;
use super::expr::Tensor;
use super::types::axis_attr;
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::index::Ix;

rules! {
    gelu "The Gaussian error linear unit, exactly or by its tanh formula (`approximate = tanh`).\n\n\
         `y = gelu(x)` --> `y = x * fma(erf(x * sqrt(1/2)), 1/2, 1/2)`\n\n\
         Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016." {
        "aten.gelu" => |c| c.choice("approximate", &["none", "tanh"]).map(|formula| gelu(c.x(0), formula == "tanh")),
    }
    silu "`y = silu(x)` --> `y = x / (1 + exp(-x))`" {
        "aten.silu" | "aten.swish" => |c| silu(c.x(0)),
    }
    sigmoid "`y = sigmoid(x)` --> `y = 1 / (1 + exp(-x))`\n\n\
         `y = log_sigmoid(x)` --> `y = min(x, 0) - log1p(exp(-abs x))`" {
        "aten.sigmoid" => |c| sigmoid(c.x(0)),
        "aten.log_sigmoid" => |c| log_sigmoid(c.x(0)),
        // The second is what PyTorch keeps for its own backward function.
        "aten.log_sigmoid_forward" => |c| [log_sigmoid(c.x(0)), c.x(0).widened(|x| (-x.abs()).exp())],
    }
    relu "Keeps NaN.\n\n`y = relu(x)` --> `y = max(x, 0)`\n\n`y = threshold(x)` --> `y = select(x <= threshold, value, x)`" {
        "aten.relu" => |c| c.x(0).max(0.0),
        "aten.relu6" => |c| c.x(0).max(0.0).min(6.0),
        "aten.threshold" => threshold,
    }
    leaky_relu "Another slope below 0; prelu's slope is one for each channel.\n\n\
         `y = leaky_relu(x)` --> `y = select(x > 0, x, slope*x)`" {
        "aten.leaky_relu" => |c| sloped(c.x(0), c.number_or("negative_slope", 0.01, c.x(0).elem())),
        "aten.rrelu" => rrelu,
        "aten.prelu" | "aten._prelu_kernel" => prelu,
    }
    elu "Exponential below 0.\n\n\
         `y = elu(x)` --> `y = select(x < 0, alpha * scale * expm1(x * input_scale), scale * x)`" {
        "aten.elu" | "aten.selu" | "aten.celu" => elu,
    }
    softplus "`y = softplus(x)` --> `y = select(beta*x > threshold, x, log1p(exp(beta*x)) / beta)`\n\n\
         `y = mish(x)` --> `y = x * tanh(softplus(x))`" {
        "aten.softplus" => |c| softplus(c.x(0), c.number_or("beta", 1.0, Elem::F64), c.number_or("threshold", 20.0, Elem::F64)),
        "aten.mish" => |c| c.x(0).widened(|x| x * softplus(x, c.cx.number(Elem::F64, 1.0), c.cx.number(Elem::F64, 20.0)).tanh()),
    }
    hard_activation "Pieces of straight lines.\n\n`y = hardsigmoid(x)` --> `y = min(max(x + 3, 0), 6) / 6`\n\n\
         `y = hardswish(x)` --> `y = x * min(max(x + 3, 0), 6) / 6`" {
        "aten.hardtanh" => hardtanh,
        "aten.hardsigmoid" => |c| c.x(0).widened(|x| (x + 3.0).max(0.0).min(6.0) / 6.0),
        "aten.hardswish" => |c| c.x(0).widened(|x| x * (x + 3.0).max(0.0).min(6.0) / 6.0),
    }
    shrink "`y = softshrink(x)` --> `y = select(x > l, x - l, select(x < -l, x + l, 0*x))`" {
        "aten.softsign" => |c| c.x(0).widened(|x| x / (x.abs() + 1.0)),
        "aten.tanhshrink" => |c| c.x(0).widened(|x| x - x.tanh()),
        "aten.hardshrink" => |c| shrink(c, false),
        "aten.softshrink" => |c| shrink(c, true),
    }
    glu "One half of an axis gates the other.\n\n`y = glu(x)` --> `a, g = halves of x`, `y = a * sigmoid(g)`" {
        "aten.glu" => glu,
    }
    dropout "The identity outside of training.\n\n`y = dropout(x)` --> `y = x`\n\nRefuses training: its random numbers are PyTorch's." {
        "aten.dropout" | "aten.feature_dropout" | "aten.alpha_dropout" => dropout,
        "aten.native_dropout" => |c| {
            let x = dropout(c)?;
            Ok::<_, Refusal>([x, c.cx.full(Elem::BOOL, 1.0, x.shape()?)])
        },
    }
}

/// `1 / (1 + exp(-x))`, in the operand's type.
pub(super) fn sigmoid(x: Tensor<'_>) -> Tensor<'_> {
    x.widened(|x| 1.0 / ((-x).exp() + 1.0))
}

/// `x / (1 + exp(-x))`, in the operand's type.
pub(super) fn silu(x: Tensor<'_>) -> Tensor<'_> {
    x.widened(|x| x / ((-x).exp() + 1.0))
}

/// GELU, exact or by the tanh formula, in the operand's type.
pub(super) fn gelu(x: Tensor<'_>, tanh: bool) -> Tensor<'_> {
    x.widened(|x| {
        let inner = if tanh {
            // sqrt(2/pi)
            ((x + x * x * x * 0.044715) * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2)).tanh()
        } else {
            (x * FRAC_1_SQRT_2).erf()
        };
        x * inner.fma(0.5, 0.5)
    })
}

/// `min(x, 0) - log1p(exp(-abs x))`, in the operand's type.
pub(super) fn log_sigmoid(x: Tensor<'_>) -> Tensor<'_> {
    x.widened(|x| x.min(0.0) - (-x.abs()).exp().log1p())
}

fn threshold<'g>(c: &Call<'g>) -> Tensor<'g> {
    let x = c.x(0);
    let (at, value) = (c.element("threshold", x.elem()), c.element("value", x.elem()));
    x.at_most(at).select(value, x)
}

fn sloped<'g>(x: Tensor<'g>, slope: Tensor<'g>) -> Tensor<'g> {
    x.above(0.0).select(x, x * slope)
}

fn rrelu<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    if c.flag("training", false)? {
        return Err(Refusal::new("rrelu draws random numbers in training").help("call model.eval()"));
    }
    let slope = (c.float("lower", 0.125)? + c.float("upper", 1.0 / 3.0)?) / 2.0;
    Ok(sloped(c.x(0), c.x(0).like(slope)))
}

fn prelu<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let x = c.x(0);
    let slope = c.maybe(1).ok_or_else(|| Refusal::new("the slopes are missing"))?;
    let rank = x.rank()?;
    // One slope for each channel, which is axis 1.
    let by_channel = c.name == "aten.prelu" && slope.rank()? == 1 && rank > 2;
    let later: Vec<usize> = if by_channel { (1..rank - 1).collect() } else { vec![] };
    Ok(sloped(x, slope.unsqueeze(&later)))
}

fn elu<'g>(c: &Call<'g>) -> Tensor<'g> {
    let number = |x: f64| c.cx.number(Elem::F64, x);
    let of = |name: &str| c.number_or(name, 1.0, Elem::F64);
    let (alpha, scale, input_scale) = match c.name {
        "aten.selu" => (number(1.673_263_242_354_377_2), number(1.050_700_987_355_480_5), number(1.0)),
        "aten.celu" => {
            let alpha = of("alpha");
            (alpha, number(1.0), 1.0 / alpha)
        }
        _ => (of("alpha"), of("scale"), of("input_scale")),
    };
    let both = alpha * scale;
    c.x(0).widened(|x| {
        let times = |x: Tensor<'g>, factor: Tensor<'g>| {
            let factor = factor.to(x.elem());
            if factor.is(1.0) { x } else { x * factor }
        };
        let low = times(times(x, input_scale).expm1(), both);
        let high = times(x, scale);
        x.below(0.0).select(low, high)
    })
}

/// `log1p(exp(beta*x)) / beta`, and `x` where `beta*x` is above the threshold.
fn softplus<'g>(x: Tensor<'g>, beta: Tensor<'g>, threshold: Tensor<'g>) -> Tensor<'g> {
    x.widened(|x| {
        let (beta, at) = (beta.to(x.elem()), threshold.to(x.elem()));
        let plain = beta.is(1.0);
        let scaled = if plain { x } else { x * beta };
        let low = scaled.exp().log1p();
        let low = if plain { low } else { low / beta };
        scaled.above(at).select(x, low)
    })
}

fn hardtanh<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let x = c.x(0);
    let (low, high) = (c.number_or("min_val", -1.0, x.elem()), c.number_or("max_val", 1.0, x.elem()));
    if low.known().zip(high.known()).is_some_and(|(low, high)| low > high) {
        return Err(Refusal::new("the lower bound of hardtanh is above its upper bound"));
    }
    Ok(x.max(low).min(high))
}

fn shrink<'g>(c: &Call<'g>, soft: bool) -> Tensor<'g> {
    let x = c.x(0);
    let l = c.number_or("lambd", 0.5, x.elem());
    let n = -l;
    let (above, below) = (x.above(l), x.below(n));
    let (high, low) = if soft { (x - l, x + l) } else { (x, x) };
    // NaN stays: 0*NaN is NaN.
    let middle = x * 0.0;
    above.select(high, below.select(low, middle))
}

fn glu<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, cx) = (c.x(0), c.cx);
    let shape = x.shape()?;
    let at = axis_attr(c, "dim", -1, shape.len())?;
    let extent = shape.get(at).ok_or_else(|| Refusal::new("glu needs a tensor of rank 1 or more"))?;
    let half = cx.simplify(&Ix::floor_div(extent.clone(), Ix::Const(2)));
    if !cx.same(&Ix::mul(half.clone(), Ix::Const(2)), extent) {
        return Err(Refusal::new(format!("glu needs an axis of even extent, not {}", cx.ix_text(extent))));
    }
    Ok(x.slice(at, Ix::Const(0), 1, half.clone()) * sigmoid(x.slice(at, half.clone(), 1, half)))
}

/// The identity outside of training.
fn dropout<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    if c.flag("train", false)? && c.float("p", 0.5)? != 0.0 {
        return Err(Refusal::new("dropout draws random numbers in training").help("call model.eval()"));
    }
    Ok(c.x(0))
}
