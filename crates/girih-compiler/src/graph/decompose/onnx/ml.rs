//! Classical preprocessing and linear models (the operator set `ai.onnx.ml`), on numbers.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::resize::float_constant;
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, axis};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "ml_scaler",
        handles: &["onnx.Scaler"],
        doc: "Shifts and scales features.\n\n`y = scaler(x)` --> `y = (x - offset) * scale`",
        run: scaler,
    },
    Decomposition {
        name: "ml_normalizer",
        handles: &["onnx.Normalizer"],
        doc: "Divides each row by its greatest magnitude, its 1-norm or its 2-norm.\n\n\
              `y = normalizer(x)` --> `y = x / max(norm(x), 1e-30)`",
        run: normalizer,
    },
    Decomposition {
        name: "ml_binarizer",
        handles: &["onnx.Binarizer"],
        doc: "1 above a threshold, else 0.\n\n`y = binarizer(x)` --> `y = select(x > threshold, 1, 0)`",
        run: binarizer,
    },
    Decomposition {
        name: "ml_imputer",
        handles: &["onnx.Imputer"],
        doc: "Replaces a value (perhaps NaN) by another for each feature.\n\n\
              `y = imputer(x)` --> `y = select(x == replaced, imputed, x)`",
        run: imputer,
    },
    Decomposition {
        name: "ml_one_hot_encoder",
        handles: &["onnx.OneHotEncoder"],
        doc: "A new last axis that is 1 at the element's category.\n\n\
              `y = one_hot(x)` --> `y = select(x == categories, 1, 0)`\n\n\
              Refuses strings, and `zeros = 0`, which would end the run on an unknown category.",
        run: one_hot_encoder,
    },
    Decomposition {
        name: "ml_label_encoder",
        handles: &["onnx.LabelEncoder"],
        doc: "Looks values up in a table of numbers.\n\n\
              `y = label_encoder(x)` --> `hit = x == keys`, `y = select(any hit, gather values[argmax hit], default)`\n\n\
              Refuses strings.",
        run: label_encoder,
    },
    Decomposition {
        name: "ml_feature_vectorizer",
        handles: &["onnx.FeatureVectorizer"],
        doc: "Features side by side, as f32.\n\n`y = vectorizer(a, b)` --> `y = concat(f32 a, f32 b)`",
        run: feature_vectorizer,
    },
    Decomposition {
        name: "ml_array_feature_extractor",
        handles: &["onnx.ArrayFeatureExtractor"],
        doc: "Chooses features by number.\n\n`y = extractor(x, i)` --> `y = gather x[.., i]`",
        run: feature_extractor,
    },
    Decomposition {
        name: "ml_linear",
        handles: &["onnx.LinearRegressor", "onnx.LinearClassifier"],
        doc: "A product with constant coefficients; a classifier also gives the label of the greatest score.\n\n\
              `y = linear(x)` --> `s = x @ w + b`, `label = labels[argmax s]`\n\nRefuses labels that are strings.",
        run: linear,
    },
    Decomposition {
        name: "ml_zip_map",
        handles: &["onnx.ZipMap"],
        doc: "Scores by label, as the array of scores: their columns are in the order of the labels.\n\n\
              `y = zip_map(x)` --> `x`",
        run: |_, call| Ok(vec![call.arg(0)?]),
    },
];

/// A list of numbers; `None` where the attribute is absent or empty.
pub(super) fn numbers(call: &Call<'_>, name: &str) -> Result<Option<Vec<f64>>> {
    Ok(call.floats(name)?.filter(|l| !l.is_empty()))
}

/// The element type of an attribute that is a tensor.
pub(super) fn tensor_elem(call: &Call<'_>, name: &str) -> Result<Option<Elem>> {
    Ok(call.tensor(name)?.map(|(elem, ..)| elem))
}

/// The operand as a float: f64 stays.
pub(super) fn as_float(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    let to = if b.elem(x) == Elem::F64 { Elem::F64 } else { Elem::F32 };
    b.convert(x, to)
}

fn is_nan(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    b.compare(Predicate::NotEqual, x, x)
}

pub(super) fn strings(what: &str) -> Refusal {
    Refusal::new(format!("{what} of strings is not supported"))
}

fn scaler(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let mut y = as_float(b, x)?;
    let elem = b.elem(y);
    if let Some(offset) = numbers(call, "offset")? {
        let offset = float_constant(b, elem, &[offset.len() as u64], &offset);
        y = b.sub(y, offset)?;
    }
    if let Some(scale) = numbers(call, "scale")? {
        let scale = float_constant(b, elem, &[scale.len() as u64], &scale);
        y = b.mul(y, scale)?;
    }
    Ok(vec![b.convert(y, Elem::F32)?])
}

fn normalizer(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = as_float(b, call.arg(0)?)?;
    let rank = b.rank(x);
    if rank == 0 {
        return Err(Refusal::new("Normalizer needs a row of features"));
    }
    let last = [rank - 1];
    let size = match call.text("norm")?.unwrap_or("MAX") {
        "MAX" => {
            let size = b.abs(x)?;
            b.reduce(ReduceOp::Max, size, &last, true)?
        }
        "L1" => {
            let size = b.abs(x)?;
            b.reduce(ReduceOp::Sum, size, &last, true)?
        }
        "L2" => {
            let square = b.mul(x, x)?;
            let sum = b.reduce(ReduceOp::Sum, square, &last, true)?;
            b.sqrt(sum)?
        }
        other => return Err(Refusal::new(format!("norm is {other:?}, which ONNX does not define"))),
    };
    let least = b.scalar_like(size, 1e-30);
    let size = b.max(size, least)?;
    let y = b.div(x, size)?;
    Ok(vec![b.convert(y, Elem::F32)?])
}

fn binarizer(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let float = as_float(b, x)?;
    let threshold = b.scalar_like(float, call.float("threshold", 0.0)?);
    let above = b.compare(Predicate::GreaterThan, float, threshold)?;
    let elem = b.elem(x);
    Ok(vec![b.select(above, ir::scalar(elem, 1.0), ir::scalar(elem, 0.0))?])
}

fn imputer(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let elem = b.elem(x);
    let (imputed, replaced) = match numbers(call, "imputed_value_floats")? {
        Some(values) => (values, call.float("replaced_value_float", 0.0)?),
        None => {
            let values = numbers(call, "imputed_value_int64s")?;
            let values = values.ok_or_else(|| Refusal::new("Imputer has no value to impute"))?;
            (values, call.int("replaced_value_int64", 0)? as f64)
        }
    };
    let count = [imputed.len() as u64];
    let imputed = if elem.is_float() {
        float_constant(b, elem, &count, &imputed)
    } else {
        b.int_constant(elem, &count, &imputed.iter().map(|v| *v as i64).collect::<Vec<_>>())
    };
    let missing = if replaced.is_nan() {
        if !elem.is_float() {
            return Ok(vec![x]);
        }
        is_nan(b, x)?
    } else {
        b.compare(Predicate::Equal, x, ir::scalar(elem, replaced))?
    };
    Ok(vec![b.select(missing, imputed, x)?])
}

fn one_hot_encoder(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if !call.flag("zeros", true)? {
        return Err(Refusal::new("OneHotEncoder with zeros = 0 would end the run on an unknown category"));
    }
    let categories = numbers(call, "cats_int64s")?.ok_or_else(|| strings("OneHotEncoder"))?;
    let x = b.convert(x, Elem::I64)?;
    let rank = b.rank(x);
    let x = b.unsqueeze(x, &[rank])?;
    let known: Vec<i64> = categories.iter().map(|c| *c as i64).collect();
    let known = b.int_constant(Elem::I64, &[known.len() as u64], &known);
    let hit = b.compare(Predicate::Equal, x, known)?;
    Ok(vec![b.select(hit, ir::scalar(Elem::F32, 1.0), ir::scalar(Elem::F32, 0.0))?])
}

fn label_encoder(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let first = |names: [&str; 3]| numbers(call, call.given(&names))?.ok_or_else(|| strings("LabelEncoder"));
    let keys = first(["keys_int64s", "keys_floats", "keys_tensor"])?;
    let values = first(["values_int64s", "values_floats", "values_tensor"])?;
    if keys.len() != values.len() {
        return Err(Refusal::new(format!("LabelEncoder has {} keys and {} values", keys.len(), values.len())));
    }
    let (out, default) = if numbers(call, "values_int64s")?.is_some() {
        (Elem::I64, call.int("default_int64", -1)? as f64)
    } else if numbers(call, "values_floats")?.is_some() {
        (Elem::F32, call.float("default_float", -0.0)?)
    } else {
        let elem = tensor_elem(call, "values_tensor")?.unwrap_or(Elem::F32);
        (elem, if elem.is_float() { -0.0 } else { -1.0 })
    };
    let default = numbers(call, "default_tensor")?.and_then(|d| d.first().copied()).unwrap_or(default);
    let elem = b.elem(x);
    let (count, rank) = ([keys.len() as u64], b.rank(x));
    let wide = b.unsqueeze(x, &[rank])?;
    let constant = |b: &mut Builder<'_>, elem: Elem, values: &[f64]| {
        if elem.is_float() {
            float_constant(b, elem, &count, values)
        } else {
            b.int_constant(elem, &count, &values.iter().map(|v| *v as i64).collect::<Vec<_>>())
        }
    };
    let table = constant(b, elem, &keys);
    let mut hit = b.compare(Predicate::Equal, wide, table)?;
    if keys.iter().any(|k| k.is_nan()) {
        let (here, there) = (is_nan(b, wide)?, is_nan(b, table)?);
        let both = b.and(here, there)?;
        hit = b.or(hit, both)?;
    }
    let found = b.reduce(ReduceOp::Or, hit, &[rank], false)?;
    // A key that stands there twice means its last value.
    let number = b.convert(hit, Elem::I32)?;
    let at = b.reduce(ReduceOp::ArgMax { last: true }, number, &[rank], false)?;
    let values = constant(b, out, &values);
    let shape = b.shape(x);
    let value = b.gather(values, &[at], vec![Coord::Arg(1)], shape)?;
    Ok(vec![b.select(found, value, ir::scalar(out, default))?])
}

fn feature_vectorizer(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut parts = vec![];
    for i in 0..call.args.len() {
        let x = b.convert(call.arg(i)?, Elem::F32)?;
        parts.push(if b.rank(x) == 1 { b.unsqueeze(x, &[0])? } else { x });
    }
    Ok(vec![b.concat(&parts, 1)?])
}

fn feature_extractor(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, at) = (call.arg(0)?, call.arg(1)?);
    let at_shape = b.shape(at);
    let count = b.numel(&at_shape);
    let at = b.reshape(at, std::slice::from_ref(&count))?;
    let at = b.convert(at, Elem::I64)?;
    let mut shape = b.shape(x);
    let rank = shape.len();
    let Some(last) = shape.last_mut() else {
        return Err(Refusal::new("ArrayFeatureExtractor needs a row of features"));
    };
    *last = count;
    let mut coords: Vec<Coord> = (0..rank - 1).map(|d| Coord::Ix(axis(d))).collect();
    coords.push(Coord::Arg(1));
    let y = b.gather(x, &[at], coords, shape)?;
    Ok(vec![if rank == 1 { b.unsqueeze(y, &[0])? } else { y }])
}

/// The transform that ends a classical model.
pub(super) fn post_transform(b: &mut Builder<'_>, scores: Arg, name: &str) -> Result<Arg> {
    let last = b.rank(scores).saturating_sub(1);
    let (zero, one) = (b.scalar_like(scores, 0.0), b.scalar_like(scores, 1.0));
    Ok(match name {
        "NONE" | "" => scores,
        "LOGISTIC" => crate::graph::decompose::activations::sigmoid(b, scores)?,
        "SOFTMAX" | "SOFTMAX_ZERO" => {
            let max = b.reduce(ReduceOp::Max, scores, &[last], true)?;
            let shifted = b.sub(scores, max)?;
            let mut e = b.exp(shifted)?;
            if name == "SOFTMAX_ZERO" {
                // What is as good as zero stays so.
                let (size, least) = (b.abs(scores)?, b.scalar_like(scores, 1e-7));
                let counts = b.compare(Predicate::GreaterThan, size, least)?;
                let negated = b.neg(max)?;
                let factor = b.exp(negated)?;
                let small = b.mul(scores, factor)?;
                e = b.select(counts, e, small)?;
            }
            let sum = b.reduce(ReduceOp::Sum, e, &[last], true)?;
            let none = b.compare(Predicate::Equal, sum, zero)?;
            let safe = b.select(none, one, sum)?;
            let y = b.div(e, safe)?;
            let half = b.scalar_like(scores, 0.5);
            b.select(none, half, y)?
        }
        "PROBIT" => probit(b, scores)?,
        other => return Err(Refusal::new(format!("post_transform is {other:?}, which ONNX does not define"))),
    })
}

/// Where the normal distribution reaches a probability, by the approximation of ONNX Runtime.
#[allow(clippy::approx_constant, reason = "these are its constants, digit for digit")]
fn probit(b: &mut Builder<'_>, p: Arg) -> Result<Arg> {
    let c = |b: &Builder<'_>, v: f64| b.scalar_like(p, v);
    let (one, zero) = (c(b, 1.0), c(b, 0.0));
    let twice = b.add(p, p)?;
    let x = b.sub(twice, one)?;
    let (less, more) = (b.sub(one, x)?, b.add(one, x)?);
    let product = b.mul(less, more)?;
    let log = b.log(product)?;
    let half = b.mul(log, c(b, 0.5))?;
    let v = b.add(half, c(b, 2.0 / (3.14159 * 0.147)))?;
    let by = b.mul(log, c(b, 1.0 / 0.147))?;
    let square = b.mul(v, v)?;
    let inside = b.sub(square, by)?;
    let root = b.sqrt(inside)?;
    let apart = b.sub(root, v)?;
    let size = b.sqrt(apart)?;
    let negated = b.neg(size)?;
    let below = b.compare(Predicate::LessThan, x, zero)?;
    let y = b.select(below, negated, size)?;
    b.mul(y, c(b, 1.414_213_56))
}

/// The label of each row's greatest score: `labels[argmax scores]`.
pub(super) fn labels_of(b: &mut Builder<'_>, scores: Arg, labels: &[f64]) -> Result<Arg> {
    let at = b.reduce(ReduceOp::ArgMax { last: false }, scores, &[1], false)?;
    let known: Vec<i64> = labels.iter().map(|l| *l as i64).collect();
    if known.iter().enumerate().all(|(i, l)| i as i64 == *l) {
        return Ok(at);
    }
    let table = b.int_constant(Elem::I64, &[known.len() as u64], &known);
    let shape = b.shape(at);
    b.gather(table, &[at], vec![Coord::Arg(1)], shape)
}

/// The operand as rows of features, and how many features there are.
pub(super) fn rows(b: &mut Builder<'_>, call: &Call<'_>) -> Result<(Arg, i64)> {
    let x = as_float(b, call.arg(0)?)?;
    let x = if b.rank(x) == 1 { b.unsqueeze(x, &[0])? } else { x };
    match b.shape(x).get(1).and_then(Ix::as_const) {
        Some(n) if b.rank(x) == 2 && n > 0 => Ok((x, n)),
        _ => Err(Refusal::new(format!("{} is not rows of a known number of features", b.shape_text(&b.shape(x))))),
    }
}

fn linear(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, features) = rows(b, call)?;
    let elem = b.elem(x);
    let weights = numbers(call, "coefficients")?.ok_or_else(|| Refusal::new("a linear model has no coefficients"))?;
    let bias = numbers(call, "intercepts")?;
    // As ONNX Runtime reads it: there are as many rows as intercepts, and what is behind them is not looked at.
    let count = bias.as_ref().map_or(weights.len() as i64 / features, |bias| bias.len() as i64);
    let weights = weights.get(..(count * features) as usize).filter(|w| !w.is_empty()).ok_or_else(|| {
        Refusal::new(format!("{} coefficients do not fit {count} rows of {features} features", weights.len()))
    })?;
    let w = float_constant(b, elem, &[count as u64, features as u64], weights);
    let w = b.transpose(w, &[1, 0])?;
    let mut scores = b.matmul(x, w)?;
    if let Some(bias) = bias {
        let bias = float_constant(b, elem, &[bias.len() as u64], &bias);
        scores = b.add(scores, bias)?;
    }
    let transform = call.text("post_transform")?.unwrap_or("NONE").to_string();
    if call.name == "onnx.LinearRegressor" {
        let y = post_transform(b, scores, &transform)?;
        return Ok(vec![b.convert(y, Elem::F32)?]);
    }
    let labels = numbers(call, "classlabels_ints")?.ok_or_else(|| strings("LinearClassifier with labels"))?;
    if count == 1 && labels.len() == 2 {
        let negated = b.neg(scores)?;
        scores = b.concat(&[negated, scores], 1)?;
    }
    let scores = post_transform(b, scores, &transform)?;
    let label = if b.shape(scores)[1].is_const(1) {
        let threshold = b.scalar_like(scores, if transform == "NONE" { 0.0 } else { 0.5 });
        let above = b.compare(Predicate::GreaterThanOrEqual, scores, threshold)?;
        let above = b.squeeze(above, &[1])?;
        let first = labels.first().copied().unwrap_or(1.0);
        b.select(above, ir::int_scalar(Elem::I64, first as i64), ir::int_scalar(Elem::I64, 0))?
    } else {
        labels_of(b, scores, &labels)?
    };
    Ok(vec![label, b.convert(scores, Elem::F32)?])
}
