//! Activations: functions of one tensor. f16 and bf16 are computed in f32 and rounded once.

use super::types::{axis_attr, element_attr, is_number, number_attr, widened};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result, number_of};
use crate::graph::ir::{self, Arg};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "gelu",
        handles: &["aten.gelu"],
        doc: "The Gaussian error linear unit, exactly or by its tanh formula (`approximate = tanh`).\n\n\
              `y = gelu(x)` --> `y = x * 0.5 * (1 + erf(x * sqrt(1/2)))`\n\n\
              Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.",
        run: gelu_call,
    },
    Decomposition {
        name: "silu",
        handles: &["aten.silu", "aten.swish"],
        doc: "`y = silu(x)` --> `y = x / (1 + exp(-x))`",
        run: |b, call| Ok(vec![silu(b, call.arg(0)?)?]),
    },
    Decomposition {
        name: "sigmoid",
        handles: &["aten.sigmoid", "aten.log_sigmoid", "aten.log_sigmoid_forward"],
        doc: "`y = sigmoid(x)` --> `y = 1 / (1 + exp(-x))`\n\n\
              `y = log_sigmoid(x)` --> `y = min(x, 0) - log1p(exp(-abs x))`",
        run: sigmoid_call,
    },
    Decomposition {
        name: "relu",
        handles: &["aten.relu", "aten.relu6", "aten.threshold"],
        doc: "Keeps NaN.\n\n`y = relu(x)` --> `y = max(x, 0)`\n\n`y = threshold(x)` --> `y = select(x <= threshold, value, x)`",
        run: relu,
    },
    Decomposition {
        name: "leaky_relu",
        handles: &["aten.leaky_relu", "aten.prelu", "aten._prelu_kernel", "aten.rrelu"],
        doc: "Another slope below 0; prelu's slope is one for each channel.\n\n\
              `y = leaky_relu(x)` --> `y = select(x > 0, x, slope*x)`",
        run: leaky_relu,
    },
    Decomposition {
        name: "elu",
        handles: &["aten.elu", "aten.selu", "aten.celu"],
        doc: "Exponential below 0.\n\n\
              `y = elu(x)` --> `y = scale * select(x > 0, x, alpha * expm1(x * input_scale))`",
        run: elu,
    },
    Decomposition {
        name: "softplus",
        handles: &["aten.softplus", "aten.mish"],
        doc: "`y = softplus(x)` --> `y = select(beta*x > threshold, x, log1p(exp(beta*x)) / beta)`\n\n\
              `y = mish(x)` --> `y = x * tanh(softplus(x))`",
        run: softplus_call,
    },
    Decomposition {
        name: "hard_activation",
        handles: &["aten.hardtanh", "aten.hardsigmoid", "aten.hardswish"],
        doc: "Pieces of straight lines.\n\n`y = hardsigmoid(x)` --> `y = min(max(x + 3, 0), 6) / 6`\n\n\
              `y = hardswish(x)` --> `y = x * min(max(x + 3, 0), 6) / 6`",
        run: hard,
    },
    Decomposition {
        name: "shrink",
        handles: &["aten.hardshrink", "aten.softshrink", "aten.softsign", "aten.tanhshrink"],
        doc: "`y = softshrink(x)` --> `y = select(x > l, x - l, select(x < -l, x + l, 0*x))`",
        run: shrink,
    },
    Decomposition {
        name: "glu",
        handles: &["aten.glu"],
        doc: "One half of an axis gates the other.\n\n`y = glu(x)` --> `a, g = halves of x`, `y = a * sigmoid(g)`",
        run: glu,
    },
    Decomposition {
        name: "dropout",
        handles: &["aten.dropout", "aten.feature_dropout", "aten.alpha_dropout", "aten.native_dropout"],
        doc: "The identity outside of training.\n\n`y = dropout(x)` --> `y = x`\n\nRefuses training: its random numbers are PyTorch's.",
        run: dropout,
    },
];

/// `1 / (1 + exp(-x))`, in the operand's type.
pub(super) fn sigmoid(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    widened(b, x, |b, x| {
        let one = b.scalar_like(x, 1.0);
        let n = b.neg(x)?;
        let e = b.exp(n)?;
        let d = b.add(e, one)?;
        b.div(one, d)
    })
}

/// `x / (1 + exp(-x))`, in the operand's type.
pub(super) fn silu(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    widened(b, x, |b, x| {
        let one = b.scalar_like(x, 1.0);
        let n = b.neg(x)?;
        let e = b.exp(n)?;
        let d = b.add(e, one)?;
        b.div(x, d)
    })
}

/// GELU, exact or by the tanh formula, in the operand's type.
pub(super) fn gelu(b: &mut Builder<'_>, x: Arg, tanh: bool) -> Result<Arg> {
    widened(b, x, |b, x| {
        let c = |b: &Builder<'_>, v: f64| b.scalar_like(x, v);
        let (half, one) = (c(b, 0.5), c(b, 1.0));
        let inner = if tanh {
            let square = b.mul(x, x)?;
            let cube = b.mul(square, x)?;
            let cube = b.mul(cube, c(b, 0.044715))?;
            let sum = b.add(x, cube)?;
            // sqrt(2/pi)
            let scaled = b.mul(sum, c(b, std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2))?;
            b.tanh(scaled)?
        } else {
            let scaled = b.mul(x, c(b, std::f64::consts::FRAC_1_SQRT_2))?;
            b.erf(scaled)?
        };
        let gate = b.add(inner, one)?;
        let halved = b.mul(x, half)?;
        b.mul(halved, gate)
    })
}

fn gelu_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    Ok(vec![gelu(b, call.arg(0)?, call.choice("approximate", &["none", "tanh"])? == "tanh")?])
}

fn sigmoid_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.name == "aten.sigmoid" {
        return Ok(vec![sigmoid(b, x)?]);
    }
    let y = log_sigmoid(b, x)?;
    if call.name == "aten.log_sigmoid_forward" {
        // What PyTorch keeps for its own backward function.
        let buffer = widened(b, x, |b, x| {
            let size = b.abs(x)?;
            let n = b.neg(size)?;
            b.exp(n)
        })?;
        return Ok(vec![y, buffer]);
    }
    Ok(vec![y])
}

/// `min(x, 0) - log1p(exp(-abs x))`, in the operand's type.
pub(super) fn log_sigmoid(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    widened(b, x, |b, x| {
        let zero = b.scalar_like(x, 0.0);
        let low = b.min(x, zero)?;
        let size = b.abs(x)?;
        let n = b.neg(size)?;
        let e = b.exp(n)?;
        let l = b.log1p(e)?;
        b.sub(low, l)
    })
}

fn relu(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let zero = b.scalar_like(x, 0.0);
    if call.name == "aten.threshold" {
        let at = element_attr(b, call, "threshold", b.elem(x))?;
        let value = element_attr(b, call, "value", b.elem(x))?;
        let low = b.compare(Predicate::LessThanOrEqual, x, at)?;
        return Ok(vec![b.select(low, value, x)?]);
    }
    let y = b.max(x, zero)?;
    if call.name == "aten.relu6" {
        let six = b.scalar_like(x, 6.0);
        return Ok(vec![b.min(y, six)?]);
    }
    Ok(vec![y])
}

fn leaky_relu(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.name == "aten.rrelu" && call.flag("training", false)? {
        return Err(Refusal::new("rrelu draws random numbers in training").help("call model.eval()"));
    }
    let slope = match (call.name, call.opt(1)) {
        ("aten.leaky_relu", _) => number_attr(b, call, "negative_slope", 0.01, b.elem(x))?,
        ("aten.rrelu", _) => b.scalar_like(x, (call.float("lower", 0.125)? + call.float("upper", 1.0 / 3.0)?) / 2.0),
        (_, Some(w)) => {
            let (rank, w_rank) = (b.rank(x), b.rank(w));
            if call.name == "aten.prelu" && w_rank == 1 && rank > 2 {
                // One slope for each channel, which is axis 1.
                let later: Vec<usize> = (1..rank - 1).collect();
                b.unsqueeze(w, &later)?
            } else {
                w
            }
        }
        (_, None) => return Err(Refusal::new("the slopes are missing")),
    };
    let zero = b.scalar_like(x, 0.0);
    let above = b.compare(Predicate::GreaterThan, x, zero)?;
    let scaled = b.mul(x, slope)?;
    Ok(vec![b.select(above, x, scaled)?])
}

fn elu(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let c = |x: f64| ir::scalar(Elem::F64, x);
    let of = |b: &mut Builder<'_>, name: &str| number_attr(b, call, name, 1.0, Elem::F64);
    let (alpha, scale, input_scale) = match call.name {
        "aten.selu" => (c(1.673_263_242_354_377_2), c(1.050_700_987_355_480_5), c(1.0)),
        "aten.celu" => {
            let alpha = of(b, "alpha")?;
            (alpha, c(1.0), b.div(c(1.0), alpha)?)
        }
        _ => (of(b, "alpha")?, of(b, "scale")?, of(b, "input_scale")?),
    };
    let both = b.mul(alpha, scale)?;
    let y = widened(b, call.arg(0)?, |b, x| {
        let times = |b: &mut Builder<'_>, x: Arg, factor: Arg| {
            let factor = b.convert(factor, b.elem(x))?;
            if is_number(factor, 1.0) { Ok(x) } else { b.mul(x, factor) }
        };
        let inner = times(b, x, input_scale)?;
        let low = b.expm1(inner)?;
        let low = times(b, low, both)?;
        let high = times(b, x, scale)?;
        let zero = b.scalar_like(x, 0.0);
        let above = b.compare(Predicate::GreaterThan, x, zero)?;
        b.select(above, high, low)
    })?;
    Ok(vec![y])
}

/// `log1p(exp(beta*x)) / beta`, and `x` where `beta*x` is above the threshold.
pub(super) fn softplus(b: &mut Builder<'_>, x: Arg, beta: Arg, threshold: Arg) -> Result<Arg> {
    widened(b, x, |b, x| {
        let elem = b.elem(x);
        let (beta, at) = (b.convert(beta, elem)?, b.convert(threshold, elem)?);
        let plain = is_number(beta, 1.0);
        let scaled = if plain { x } else { b.mul(x, beta)? };
        let e = b.exp(scaled)?;
        let low = b.log1p(e)?;
        let low = if plain { low } else { b.div(low, beta)? };
        let above = b.compare(Predicate::GreaterThan, scaled, at)?;
        b.select(above, x, low)
    })
}

fn softplus_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.name == "aten.softplus" {
        let beta = number_attr(b, call, "beta", 1.0, Elem::F64)?;
        let threshold = number_attr(b, call, "threshold", 20.0, Elem::F64)?;
        return Ok(vec![softplus(b, x, beta, threshold)?]);
    }
    let y = widened(b, x, |b, x| {
        let s = softplus(b, x, ir::scalar(Elem::F64, 1.0), ir::scalar(Elem::F64, 20.0))?;
        let t = b.tanh(s)?;
        b.mul(x, t)
    })?;
    Ok(vec![y])
}

fn hard(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.name == "aten.hardtanh" {
        let elem = b.elem(x);
        let low = number_attr(b, call, "min_val", -1.0, elem)?;
        let high = number_attr(b, call, "max_val", 1.0, elem)?;
        if let (Arg::Scalar { bits: l, .. }, Arg::Scalar { bits: h, .. }) = (low, high)
            && number_of(elem, l) > number_of(elem, h)
        {
            return Err(Refusal::new("the lower bound of hardtanh is above its upper bound"));
        }
        let y = b.max(x, low)?;
        return Ok(vec![b.min(y, high)?]);
    }
    let swish = call.name == "aten.hardswish";
    let y = widened(b, x, |b, x| {
        let c = |b: &Builder<'_>, v: f64| b.scalar_like(x, v);
        let y = b.add(x, c(b, 3.0))?;
        let y = b.max(y, c(b, 0.0))?;
        let y = b.min(y, c(b, 6.0))?;
        let y = if swish { b.mul(x, y)? } else { y };
        b.div(y, c(b, 6.0))
    })?;
    Ok(vec![y])
}

fn shrink(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let y = match call.name {
        "aten.softsign" => widened(b, x, |b, x| {
            let one = b.scalar_like(x, 1.0);
            let size = b.abs(x)?;
            let d = b.add(size, one)?;
            b.div(x, d)
        })?,
        "aten.tanhshrink" => widened(b, x, |b, x| {
            let t = b.tanh(x)?;
            b.sub(x, t)
        })?,
        _ => {
            let l = number_attr(b, call, "lambd", 0.5, b.elem(x))?;
            let n = b.neg(l)?;
            let zero = b.scalar_like(x, 0.0);
            let above = b.compare(Predicate::GreaterThan, x, l)?;
            let below = b.compare(Predicate::LessThan, x, n)?;
            let (high, low) = if call.name == "aten.softshrink" { (b.sub(x, l)?, b.add(x, l)?) } else { (x, x) };
            // NaN stays: 0*NaN is NaN.
            let middle = b.mul(x, zero)?;
            let low = b.select(below, low, middle)?;
            b.select(above, high, low)?
        }
    };
    Ok(vec![y])
}

fn glu(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let at = axis_attr(call, "dim", -1, b.rank(x))?;
    let shape = b.shape(x);
    let Some(extent) = shape.get(at).cloned() else { return Err(Refusal::new("glu needs a tensor of rank 1 or more")) };
    let half = b.simplify(&Ix::floor_div(extent.clone(), Ix::Const(2)));
    if !b.same(&Ix::mul(half.clone(), Ix::Const(2)), &extent) {
        return Err(Refusal::new(format!("glu needs an axis of even extent, not {}", b.graph.ix_text(&extent))));
    }
    let first = b.slice(x, at, Ix::Const(0), 1, half.clone())?;
    let second = b.slice(x, at, half.clone(), 1, half)?;
    let gate = sigmoid(b, second)?;
    Ok(vec![b.mul(first, gate)?])
}

fn dropout(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.flag("train", false)? && call.float("p", 0.5)? != 0.0 {
        return Err(Refusal::new("dropout draws random numbers in training").help("call model.eval()"));
    }
    if call.name == "aten.native_dropout" {
        let yes = Arg::Scalar { elem: Elem::BOOL, bits: 1 };
        let shape = b.shape(x);
        let mask = b.full(yes, Elem::BOOL, shape);
        return Ok(vec![x, mask]);
    }
    Ok(vec![x])
}
