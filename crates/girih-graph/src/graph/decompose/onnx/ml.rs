//! Classical preprocessing and linear models (the operator set `ai.onnx.ml`), on numbers.

use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::activations::sigmoid;
use crate::graph::decompose::expr::{Cx, Tensor, along};
use crate::graph::ir::{Coord, ReduceOp};
use crate::index::Ix;

rules! {
    ml_scaler "Shifts and scales features.\n\n`y = scaler(x)` --> `y = (x - offset) * scale`" {
        "onnx.Scaler" => scaler,
    }
    ml_normalizer "Divides each row by its greatest magnitude, its 1-norm or its 2-norm.\n\n\
         `y = normalizer(x)` --> `y = x / max(norm(x), 1e-30)`" {
        "onnx.Normalizer" => normalizer,
    }
    ml_binarizer "1 above a threshold, else 0.\n\n`y = binarizer(x)` --> `y = select(x > threshold, 1, 0)`" {
        "onnx.Binarizer" => |c| {
            let above = as_float(c.x(0)).above(c.float("threshold", 0.0)?);
            Ok::<_, Refusal>(above.select(c.x(0).like(1.0), 0.0))
        },
    }
    ml_imputer "Replaces a value (perhaps NaN) by another for each feature.\n\n\
         `y = imputer(x)` --> `y = select(x == replaced, imputed, x)`" {
        "onnx.Imputer" => imputer,
    }
    ml_one_hot_encoder "A new last axis that is 1 at the element's category.\n\n\
         `y = one_hot(x)` --> `y = select(x == categories, 1, 0)`\n\n\
         Refuses strings, and `zeros = 0`, which would end the run on an unknown category." {
        "onnx.OneHotEncoder" => one_hot_encoder,
    }
    ml_label_encoder "Looks values up in a table of numbers.\n\n\
         `y = label_encoder(x)` --> `hit = x == keys`, `y = select(any hit, gather values[argmax hit], default)`\n\n\
         Refuses strings." {
        "onnx.LabelEncoder" => label_encoder,
    }
    ml_feature_vectorizer "Features side by side, as f32.\n\n`y = vectorizer(a, b)` --> `y = concat(f32 a, f32 b)`" {
        "onnx.FeatureVectorizer" => feature_vectorizer,
    }
    ml_array_feature_extractor "Chooses features by number.\n\n`y = extractor(x, i)` --> `y = gather x[.., i]`" {
        "onnx.ArrayFeatureExtractor" => feature_extractor,
    }
    ml_linear "A product with constant coefficients; a classifier also gives the label of the greatest score.\n\n\
         `y = linear(x)` --> `s = x @ w + b`, `label = labels[argmax s]`\n\nRefuses labels that are strings." {
        "onnx.LinearRegressor" | "onnx.LinearClassifier" => linear,
    }
    ml_zip_map "Scores by label, as the array of scores: their columns are in the order of the labels.\n\n\
         `y = zip_map(x)` --> `x`" {
        "onnx.ZipMap" => |c| c.x(0),
    }
}

/// A list of numbers; `None` where the attribute is absent or empty.
pub(super) fn numbers(call: &Call<'_>, name: &str) -> Result<Option<Vec<f64>>> {
    Ok(call.floats(name)?.filter(|l| !l.is_empty()))
}

/// The element type of an attribute that is a tensor.
pub(super) fn tensor_elem(call: &Call<'_>, name: &str) -> Result<Option<Elem>> {
    Ok(call.tensor(name)?.map(|(elem, ..)| elem))
}

/// The operand as a float: f64 stays.
pub(super) fn as_float(x: Tensor<'_>) -> Tensor<'_> {
    x.to(if x.elem() == Elem::F64 { Elem::F64 } else { Elem::F32 })
}

pub(super) fn strings(what: &str) -> Refusal {
    Refusal::new(format!("{what} of strings is not supported"))
}

/// A constant of numbers, one after the other.
pub(super) fn line<'g>(cx: &'g Cx<'g>, elem: Elem, values: &[f64]) -> Tensor<'g> {
    let count = [values.len() as u64];
    if elem.is_float() {
        return cx.floats(elem, &count, values);
    }
    cx.ints(elem, &count, &values.iter().map(|v| *v as i64).collect::<Vec<_>>())
}

fn scaler<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let y = as_float(c.x(0));
    let constant = |values: Vec<f64>| line(c.cx, y.elem(), &values);
    let y = numbers(c, "offset")?.map_or(y, |offset| y - constant(offset));
    Ok(numbers(c, "scale")?.map_or(y, |scale| y * constant(scale)).to(Elem::F32))
}

fn normalizer<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let x = as_float(c.x(0));
    let Some(last) = x.rank()?.checked_sub(1) else { return Err(Refusal::new("Normalizer needs a row of features")) };
    let size = match c.text("norm")?.unwrap_or("MAX") {
        "MAX" => x.abs().greatest(&[last], true),
        "L1" => x.abs().sum(&[last], true),
        "L2" => (x * x).sum(&[last], true).sqrt(),
        other => return Err(Refusal::new(format!("norm is {other:?}, which ONNX does not define"))),
    };
    Ok((x / size.max(1e-30)).to(Elem::F32))
}

fn imputer<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, elem) = (c.x(0), c.x(0).elem());
    let (imputed, replaced) = match numbers(c, "imputed_value_floats")? {
        Some(values) => (values, c.float("replaced_value_float", 0.0)?),
        None => {
            let values = numbers(c, "imputed_value_int64s")?;
            let values = values.ok_or_else(|| Refusal::new("Imputer has no value to impute"))?;
            (values, c.int("replaced_value_int64", 0)? as f64)
        }
    };
    let imputed = line(c.cx, elem, &imputed);
    Ok(match replaced.is_nan() {
        true if !elem.is_float() => x,
        true => x.is_nan().select(imputed, x),
        false => x.equals(replaced).select(imputed, x),
    })
}

fn one_hot_encoder<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    if !c.flag("zeros", true)? {
        return Err(Refusal::new("OneHotEncoder with zeros = 0 would end the run on an unknown category"));
    }
    let categories = numbers(c, "cats_int64s")?.ok_or_else(|| strings("OneHotEncoder"))?;
    let x = c.x(0).to(Elem::I64).unsqueeze(&[c.x(0).rank()?]);
    Ok(x.equals(line(c.cx, Elem::I64, &categories)).select(c.cx.number(Elem::F32, 1.0), 0.0))
}

fn label_encoder<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let first = |names: [&str; 3]| numbers(c, c.given(&names))?.ok_or_else(|| strings("LabelEncoder"));
    let keys = first(["keys_int64s", "keys_floats", "keys_tensor"])?;
    let values = first(["values_int64s", "values_floats", "values_tensor"])?;
    if keys.len() != values.len() {
        return Err(Refusal::new(format!("LabelEncoder has {} keys and {} values", keys.len(), values.len())));
    }
    let (out, default) = if numbers(c, "values_int64s")?.is_some() {
        (Elem::I64, c.int("default_int64", -1)? as f64)
    } else if numbers(c, "values_floats")?.is_some() {
        (Elem::F32, c.float("default_float", -0.0)?)
    } else {
        let elem = tensor_elem(c, "values_tensor")?.unwrap_or(Elem::F32);
        (elem, if elem.is_float() { -0.0 } else { -1.0 })
    };
    let default = numbers(c, "default_tensor")?.and_then(|d| d.first().copied()).unwrap_or(default);
    let (x, shape) = (c.x(0), c.x(0).shape()?);
    let rank = shape.len();
    let wide = x.unsqueeze(&[rank]);
    let table = line(c.cx, x.elem(), &keys);
    let mut hit = wide.equals(table);
    if keys.iter().any(|k| k.is_nan()) {
        hit = hit | (wide.is_nan() & table.is_nan());
    }
    let found = hit.reduce(ReduceOp::Or, &[rank], false);
    // A key that stands there twice means its last value.
    let at = hit.to(Elem::I32).reduce(ReduceOp::ArgMax { last: true }, &[rank], false);
    let value = line(c.cx, out, &values).gather(&[at], vec![Coord::Arg(1)], shape);
    Ok(found.select(value, default))
}

fn feature_vectorizer<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let parts = (0..c.args.len()).map(|i| {
        let x = c.x(i).to(Elem::F32);
        Ok(if x.rank()? == 1 { x.unsqueeze(&[0]) } else { x })
    });
    Ok(c.cx.concat(&parts.collect::<Result<Vec<_>>>()?, 1))
}

fn feature_extractor<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let count = c.x(1).numel()?;
    let at = c.x(1).flat().to(Elem::I64);
    let mut shape = c.x(0).shape()?;
    let Some(last) = shape.len().checked_sub(1) else {
        return Err(Refusal::new("ArrayFeatureExtractor needs a row of features"));
    };
    shape[last] = count;
    let y = c.x(0).gather(&[at], along(last, last + 1), shape);
    Ok(if last == 0 { y.unsqueeze(&[0]) } else { y })
}

/// The transform that ends a classical model.
pub(super) fn post_transform<'g>(scores: Tensor<'g>, name: &str) -> Result<Tensor<'g>> {
    let last = [scores.rank()?.saturating_sub(1)];
    Ok(match name {
        "NONE" | "" => scores,
        "LOGISTIC" => sigmoid(scores),
        "SOFTMAX" | "SOFTMAX_ZERO" => {
            let max = scores.greatest(&last, true);
            let mut e = (scores - max).exp();
            if name == "SOFTMAX_ZERO" {
                // A score close to zero gives a result close to zero.
                let counts = scores.abs().above(1e-7);
                e = counts.select(e, scores * (-max).exp());
            }
            let sum = e.sum(&last, true);
            let none = sum.equals(0.0);
            let y = e / none.select(1.0, sum);
            none.select(0.5, y)
        }
        "PROBIT" => probit(scores),
        other => return Err(Refusal::new(format!("post_transform is {other:?}, which ONNX does not define"))),
    })
}

/// Where the normal distribution reaches a probability, by the approximation of ONNX Runtime.
#[allow(clippy::approx_constant, reason = "these are its constants, digit for digit")]
fn probit(p: Tensor<'_>) -> Tensor<'_> {
    let x = p + p - 1.0;
    let log = ((1.0 - x) * (x.like(1.0) + x)).log();
    let v = log * 0.5 + 2.0 / (3.14159 * 0.147);
    let by = log * (1.0 / 0.147);
    let size = ((v * v - by).sqrt() - v).sqrt();
    let negated = -size;
    x.below(0.0).select(negated, size) * 1.414_213_56
}

/// The label of each row's greatest score: `labels[argmax scores]`.
pub(super) fn labels_of<'g>(scores: Tensor<'g>, labels: &[f64]) -> Result<Tensor<'g>> {
    let at = scores.reduce(ReduceOp::ArgMax { last: false }, &[1], false);
    if labels.iter().enumerate().all(|(i, l)| i as i64 == *l as i64) {
        return Ok(at);
    }
    Ok(line(scores.cx, Elem::I64, labels).gather(&[at], vec![Coord::Arg(1)], at.shape()?))
}

/// The operand as rows of features, and how many features there are.
pub(super) fn rows(x: Tensor<'_>) -> Result<(Tensor<'_>, i64)> {
    let x = as_float(x);
    let x = if x.rank()? == 1 { x.unsqueeze(&[0]) } else { x };
    let shape = x.shape()?;
    match shape.get(1).and_then(Ix::as_const) {
        Some(n) if shape.len() == 2 && n > 0 => Ok((x, n)),
        _ => Err(Refusal::new(format!("{} is not rows of a known number of features", x.shape_text()))),
    }
}

fn linear<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    let (x, features) = rows(c.x(0))?;
    let weights = numbers(c, "coefficients")?.ok_or_else(|| Refusal::new("a linear model has no coefficients"))?;
    let bias = numbers(c, "intercepts")?;
    // As ONNX Runtime reads it: each intercept has a row, and numbers behind these rows are ignored.
    let count = bias.as_ref().map_or(weights.len() as i64 / features, |bias| bias.len() as i64);
    let weights = weights.get(..(count * features) as usize).filter(|w| !w.is_empty()).ok_or_else(|| {
        Refusal::new(format!("{} coefficients do not fit {count} rows of {features} features", weights.len()))
    })?;
    let w = c.cx.floats(x.elem(), &[count as u64, features as u64], weights);
    let scores = x.matmul(w.transpose(&[1, 0]));
    let mut scores = bias.map_or(scores, |bias| scores + line(c.cx, x.elem(), &bias));
    let transform = c.text("post_transform")?.unwrap_or("NONE");
    if c.name == "onnx.LinearRegressor" {
        return Ok(vec![post_transform(scores, transform)?.to(Elem::F32)]);
    }
    let labels = numbers(c, "classlabels_ints")?.ok_or_else(|| strings("LinearClassifier with labels"))?;
    if count == 1 && labels.len() == 2 {
        scores = c.cx.concat(&[-scores, scores], 1);
    }
    let scores = post_transform(scores, transform)?;
    let label = if scores.shape()?[1].is_const(1) {
        let above = scores.at_least(if transform == "NONE" { 0.0 } else { 0.5 }).squeeze(&[1]);
        let first = labels.first().copied().unwrap_or(1.0);
        above.select(c.cx.int(first as i64), 0)
    } else {
        labels_of(scores, &labels)?
    };
    Ok(vec![label, scores.to(Elem::F32)])
}
