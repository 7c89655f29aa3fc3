//! Activations: functions of one tensor. f16 and bf16 are computed in f32 and rounded once.

use super::types::{axis_attr, widened};
use super::{Call, Decomposition};
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::Arg;
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
    Ok(vec![gelu(b, call.arg(0)?, call.text("approximate") == Some("tanh"))?])
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
        let at = b.scalar_like(x, call.float("threshold", 0.0));
        let value = b.scalar_like(x, call.float("value", 0.0));
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
    if call.name == "aten.rrelu" && call.flag("training", false) {
        return Err(Refusal::new("rrelu draws random numbers in training").help("call model.eval()"));
    }
    let slope = match (call.name, call.opt(1)) {
        ("aten.leaky_relu", _) => b.scalar_like(x, call.float("negative_slope", 0.01)),
        ("aten.rrelu", _) => b.scalar_like(x, (call.float("lower", 0.125) + call.float("upper", 1.0 / 3.0)) / 2.0),
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
    let (alpha, scale, input_scale) = match call.name {
        "aten.selu" => (1.673_263_242_354_377_2, 1.050_700_987_355_480_5, 1.0),
        "aten.celu" => {
            let alpha = call.float("alpha", 1.0);
            (alpha, 1.0, 1.0 / alpha)
        }
        _ => (call.float("alpha", 1.0), call.float("scale", 1.0), call.float("input_scale", 1.0)),
    };
    let y = widened(b, call.arg(0)?, |b, x| {
        let mut inner = x;
        if input_scale != 1.0 {
            let s = b.scalar_like(x, input_scale);
            inner = b.mul(x, s)?;
        }
        let low = b.expm1(inner)?;
        let a = b.scalar_like(x, alpha * scale);
        let low = b.mul(low, a)?;
        let mut high = x;
        if scale != 1.0 {
            let s = b.scalar_like(x, scale);
            high = b.mul(x, s)?;
        }
        let zero = b.scalar_like(x, 0.0);
        let above = b.compare(Predicate::GreaterThan, x, zero)?;
        b.select(above, high, low)
    })?;
    Ok(vec![y])
}

/// `log1p(exp(beta*x)) / beta`, and `x` where `beta*x` is above the threshold.
pub(super) fn softplus(b: &mut Builder<'_>, x: Arg, beta: f64, threshold: f64) -> Result<Arg> {
    widened(b, x, |b, x| {
        let mut scaled = x;
        if beta != 1.0 {
            let f = b.scalar_like(x, beta);
            scaled = b.mul(x, f)?;
        }
        let e = b.exp(scaled)?;
        let mut low = b.log1p(e)?;
        if beta != 1.0 {
            let f = b.scalar_like(x, beta);
            low = b.div(low, f)?;
        }
        let at = b.scalar_like(x, threshold);
        let above = b.compare(Predicate::GreaterThan, scaled, at)?;
        b.select(above, x, low)
    })
}

fn softplus_call(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.name == "aten.softplus" {
        return Ok(vec![softplus(b, x, call.float("beta", 1.0), call.float("threshold", 20.0))?]);
    }
    let y = widened(b, x, |b, x| {
        let s = softplus(b, x, 1.0, 20.0)?;
        let t = b.tanh(s)?;
        b.mul(x, t)
    })?;
    Ok(vec![y])
}

fn hard(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.name == "aten.hardtanh" {
        let (low, high) = (call.float("min_val", -1.0), call.float("max_val", 1.0));
        let (low, high) = (b.scalar_like(x, low), b.scalar_like(x, high));
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
    let lambda = call.float("lambd", 0.5);
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
            let (l, n) = (b.scalar_like(x, lambda), b.scalar_like(x, -lambda));
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
        return Err(Refusal::new(format!("glu halves an axis of even extent, not {}", b.graph.ix_text(&extent))));
    }
    let first = b.slice(x, at, Ix::Const(0), 1, half.clone())?;
    let second = b.slice(x, at, half.clone(), 1, half)?;
    let gate = sigmoid(b, second)?;
    Ok(vec![b.mul(first, gate)?])
}

fn dropout(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.flag("train", false) && call.float("p", 0.5) != 0.0 {
        return Err(Refusal::new("dropout draws random numbers in training").help("call model.eval()"));
    }
    if call.name == "aten.native_dropout" {
        let yes = Arg::Scalar { elem: crate::graph::Elem::BOOL, bits: 1 };
        let shape = b.shape(x);
        let mask = b.full(yes, crate::graph::Elem::BOOL, shape);
        return Ok(vec![x, mask]);
    }
    Ok(vec![x])
}
