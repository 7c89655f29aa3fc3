//! Support vector machines of `ai.onnx.ml`.

use super::ml::{labels_of, numbers, post_transform, rows, strings};
use crate::graph::Elem;
use crate::graph::build::repeat::Rounds;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::activations::sigmoid;
use crate::graph::decompose::resize::float_constant;
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{self, Arg, ReduceOp};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "ml_svm_regressor",
        handles: &["onnx.SVMRegressor"],
        doc: "A sum of kernels at support vectors.\n\n`y = svm(x)` --> `y = dot coefficients, kernel(x, vectors) + rho`",
        run: svm_regressor,
    },
    Decomposition {
        name: "ml_svm_classifier",
        handles: &["onnx.SVMClassifier"],
        doc: "A score for each pair of classes, and the label with the most votes; with `prob_a`, probabilities.\n\n\
              `y = svm(x)` --> `s = kernel(x, vectors) @ pairs + rho`, `label = labels[argmax votes]`\n\n\
              Refuses labels that are strings.",
        run: svm_classifier,
    },
];

/// The most classes that have probabilities: there is a step for each of them in a round.
const MOST_CLASSES: usize = 64;

/// The kernel of each row of `x` with each of the vectors: `[rows, vectors]`.
fn kernels(b: &mut Builder<'_>, call: &Call<'_>, x: Arg, vectors: &[f64], supports: i64, features: i64) -> Result<Arg> {
    let elem = b.elem(x);
    let params = numbers(call, "kernel_params")?.unwrap_or_else(|| vec![0.0; 3]);
    let param = |i: usize| params.get(i).copied().unwrap_or(0.0);
    let v = float_constant(b, elem, &[supports as u64, features as u64], vectors);
    let gamma = ir::scalar(elem, param(0));
    let products = |b: &mut Builder<'_>| -> Result<Arg> {
        let v = b.transpose(v, &[1, 0])?;
        b.matmul(x, v)
    };
    let shifted = |b: &mut Builder<'_>| -> Result<Arg> {
        let p = products(b)?;
        let scaled = b.mul(p, gamma)?;
        b.add(scaled, ir::scalar(elem, param(1)))
    };
    Ok(match call.text("kernel_type")?.unwrap_or("LINEAR") {
        "LINEAR" => products(b)?,
        "POLY" => {
            let base = shifted(b)?;
            b.pow(base, ir::scalar(elem, param(2).trunc()))?
        }
        "SIGMOID" => {
            let s = shifted(b)?;
            b.tanh(s)?
        }
        "RBF" => {
            let rows = b.unsqueeze(x, &[1])?;
            let difference = b.sub(rows, v)?;
            let square = b.mul(difference, difference)?;
            let distance = b.reduce(ReduceOp::Sum, square, &[2], false)?;
            let scaled = b.mul(distance, gamma)?;
            let negated = b.neg(scaled)?;
            b.exp(negated)?
        }
        other => return Err(Refusal::new(format!("kernel_type is {other:?}, which ONNX does not define"))),
    })
}

fn svm_regressor(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, features) = rows(b, call)?;
    let elem = b.elem(x);
    let coefficients = numbers(call, "coefficients")?.ok_or_else(|| Refusal::new("an SVM has no coefficients"))?;
    let supports = call.int("n_supports", 0)?.max(0);
    let column = |b: &mut Builder<'_>| float_constant(b, elem, &[coefficients.len() as u64, 1], &coefficients);
    let mut y = if supports == 0 {
        if coefficients.len() as i64 != features {
            return Err(Refusal::new(format!("{} coefficients do not fit {features} features", coefficients.len())));
        }
        let w = column(b);
        b.matmul(x, w)?
    } else {
        let vectors = numbers(call, "support_vectors")?.unwrap_or_default();
        if vectors.len() as i64 != supports * features || coefficients.len() as i64 != supports {
            return Err(Refusal::new(format!("{supports} support vectors do not fit {features} features")));
        }
        let kernel = kernels(b, call, x, &vectors, supports, features)?;
        let w = column(b);
        b.matmul(kernel, w)?
    };
    if let Some(rho) = numbers(call, "rho")?.and_then(|r| r.first().copied()) {
        y = b.add(y, ir::scalar(elem, rho))?;
    }
    if call.flag("one_class", false)? {
        let above = b.compare(Predicate::GreaterThan, y, ir::scalar(elem, 0.0))?;
        y = b.select(above, ir::scalar(elem, 1.0), ir::scalar(elem, -1.0))?;
    }
    let y = post_transform(b, y, call.text("post_transform")?.unwrap_or("NONE"))?;
    Ok(vec![b.convert(y, Elem::F32)?])
}

fn svm_classifier(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, features) = rows(b, call)?;
    let x = b.convert(x, Elem::F32)?;
    let labels = numbers(call, "classlabels_ints")?.ok_or_else(|| strings("SVMClassifier with labels"))?;
    let coefficients = numbers(call, "coefficients")?.ok_or_else(|| Refusal::new("an SVM has no coefficients"))?;
    let rho = numbers(call, "rho")?.unwrap_or_default();
    let counts: Vec<usize> =
        numbers(call, "vectors_per_class")?.unwrap_or_default().iter().map(|n| n.min(1e9) as usize).collect();
    let transform = call.text("post_transform")?.unwrap_or("NONE").to_string();
    let k = labels.len();
    let total: usize = counts.iter().sum();
    if total == 0 {
        return linear_classifier(b, x, features, &labels, &coefficients, &rho, &transform);
    }
    let vectors = numbers(call, "support_vectors")?.unwrap_or_default();
    let pairs = k * (k - 1) / 2;
    if counts.len() != k
        || k < 2
        || vectors.len() as i64 != total as i64 * features
        || coefficients.len() < (k - 1) * total
        || rho.len() < pairs
    {
        return Err(Refusal::new(format!("{total} support vectors of {features} features do not fit {k} classes")));
    }
    let kernel = kernels(b, call, x, &vectors, total as i64, features)?;
    // One column for each pair of classes.
    let starts: Vec<usize> = counts.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect();
    b.list((total * pairs + 2 * pairs * k) as u64, 8)?;
    let mut weights = vec![0.0; total * pairs];
    let (mut first, mut second) = (vec![0.0; pairs * k], vec![0.0; pairs * k]);
    let all = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j)));
    for (pair, (i, j)) in all.clone().enumerate() {
        for (class, row) in [(i, j - 1), (j, i)] {
            for s in starts[class]..starts[class] + counts[class] {
                weights[s * pairs + pair] = coefficients[row * total + s];
            }
        }
        first[pair * k + i] = 1.0;
        second[pair * k + j] = 1.0;
    }
    let weights = float_constant(b, Elem::F32, &[total as u64, pairs as u64], &weights);
    let scores = b.matmul(kernel, weights)?;
    let rho = float_constant(b, Elem::F32, &[pairs as u64], &rho[..pairs]);
    let scores = b.add(scores, rho)?;
    let (zero, one) = (ir::scalar(Elem::F32, 0.0), ir::scalar(Elem::F32, 1.0));
    let wins = b.compare(Predicate::GreaterThan, scores, zero)?;
    let (won, lost) = (b.select(wins, one, zero)?, b.select(wins, zero, one)?);
    let mut votes = vec![];
    for (of, by) in [(won, first), (lost, second)] {
        let by = float_constant(b, Elem::F32, &[pairs as u64, k as u64], &by);
        votes.push(b.matmul(of, by)?);
    }
    let votes = b.add(votes[0], votes[1])?;
    let label = labels_of(b, votes, &labels)?;
    let scores = match (numbers(call, "prob_a")?, numbers(call, "prob_b")?) {
        (Some(a), Some(c)) if a.len() >= pairs && c.len() >= pairs => {
            let probabilities = probabilities(b, scores, &a[..pairs], &c[..pairs], &all.collect::<Vec<_>>(), k)?;
            post_transform(b, probabilities, &transform)?
        }
        _ if k == 2 => {
            let (other, scores) = match transform.as_str() {
                "NONE" => (b.neg(scores)?, scores),
                "LOGISTIC" => {
                    let negated = b.neg(scores)?;
                    (sigmoid(b, negated)?, sigmoid(b, scores)?)
                }
                _ => (b.sub(one, scores)?, scores),
            };
            b.concat(&[other, scores], 1)?
        }
        _ => post_transform(b, scores, &transform)?,
    };
    Ok(vec![label, scores])
}

/// A score for each class.
fn linear_classifier(
    b: &mut Builder<'_>,
    x: Arg,
    features: i64,
    labels: &[f64],
    coefficients: &[f64],
    rho: &[f64],
    transform: &str,
) -> Result<Vec<Arg>> {
    let k = labels.len();
    let weights = coefficients.get(..k * features as usize).ok_or_else(|| {
        Refusal::new(format!("{} coefficients do not fit {k} classes of {features} features", coefficients.len()))
    })?;
    let weights = float_constant(b, Elem::F32, &[k as u64, features as u64], weights);
    let weights = b.transpose(weights, &[1, 0])?;
    let scores = b.matmul(x, weights)?;
    let scores = b.add(scores, ir::scalar(Elem::F32, rho.first().copied().unwrap_or(0.0)))?;
    let mut label = labels_of(b, scores, labels)?;
    if let &[_, second] = labels {
        // As ONNX Runtime chooses of two.
        let positive = coefficients.iter().all(|c| *c >= 0.0);
        let most = b.reduce(ReduceOp::Max, scores, &[1], false)?;
        let (pred, limit) = if positive { (Predicate::GreaterThanOrEqual, 0.5) } else { (Predicate::GreaterThan, 0.0) };
        let above = b.compare(pred, most, ir::scalar(Elem::F32, limit))?;
        label = b.select(above, ir::int_scalar(Elem::I64, second as i64), label)?;
    }
    Ok(vec![label, post_transform(b, scores, transform)?])
}

/// Probabilities of `k` classes of those of pairs: Wu, Lin, Weng, "Probability estimates for multi-class classification by
/// pairwise coupling" (2004), their second method, in at most 100 rounds as LIBSVM.
fn probabilities(
    b: &mut Builder<'_>,
    scores: Arg,
    a: &[f64],
    c: &[f64],
    pairs: &[(usize, usize)],
    k: usize,
) -> Result<Arg> {
    if k > MOST_CLASSES {
        return Err(Refusal::new(format!("probabilities of more than {MOST_CLASSES} classes are not supported")));
    }
    let count = [pairs.len() as u64];
    let (a, c) = (float_constant(b, Elem::F32, &count, a), float_constant(b, Elem::F32, &count, c));
    let s = b.mul(scores, a)?;
    let s = b.add(s, c)?;
    let (one, zero) = (ir::scalar(Elem::F32, 1.0), ir::scalar(Elem::F32, 0.0));
    let negated = b.neg(s)?;
    let r = sigmoid(b, negated)?;
    let r = b.max(r, ir::scalar(Elem::F32, 1e-7))?;
    let r = b.min(r, ir::scalar(Elem::F32, 1.0 - 1e-7))?;
    let rest = b.sub(one, r)?;
    // r[i][j]: how likely `i` is of `i` and `j`.
    let column = |b: &mut Builder<'_>, x: Arg, at: usize| b.slice(x, 1, Ix::Const(at as i64), 1, Ix::Const(1));
    let n = b.shape(scores)[0].clone();
    let none = b.full(zero, Elem::F32, vec![n.clone(), Ix::Const(1)]);
    let mut of = vec![none; k * k];
    for (at, (i, j)) in pairs.iter().enumerate() {
        of[i * k + j] = column(b, r, at)?;
        of[j * k + i] = column(b, rest, at)?;
    }
    // Q, row by row: [n, k].
    let mut rows = vec![];
    for i in 0..k {
        let mut row = vec![];
        for j in 0..k {
            let q = match i == j {
                true => {
                    let mut sum = none;
                    for m in (0..k).filter(|m| *m != i) {
                        let square = b.mul(of[m * k + i], of[m * k + i])?;
                        sum = b.add(sum, square)?;
                    }
                    sum
                }
                false => {
                    let product = b.mul(of[j * k + i], of[i * k + j])?;
                    b.neg(product)?
                }
            };
            row.push(q);
        }
        rows.push(b.concat(&row, 1)?);
    }
    let begin = b.full(ir::scalar(Elem::F32, 1.0 / k as f64), Elem::F32, vec![n.clone(), Ix::Const(k as i64)]);
    let alive = b.full(ir::int_scalar(Elem::BOOL, 1), Elem::BOOL, vec![n, Ix::Const(1)]);
    let of = Rounds {
        rounds: Ix::Const(100),
        conditional: false,
        carried: &[begin, alive],
        rows: &[],
        read: &rows,
        given: &[],
    };
    let results = b.repeat(&of, |b, state, _, rows| {
        let (before, alive) = (state[0], state[1]);
        let sum = |b: &mut Builder<'_>, x: Arg| b.reduce(ReduceOp::Sum, x, &[1], true);
        let mut all = vec![];
        for row in rows {
            let product = b.mul(*row, before)?;
            all.push(sum(b, product)?);
        }
        let mut qp = b.concat(&all, 1)?;
        let product = b.mul(before, qp)?;
        let mut pqp = sum(b, product)?;
        let apart = b.sub(qp, pqp)?;
        let apart = b.abs(apart)?;
        let error = b.reduce(ReduceOp::Max, apart, &[1], true)?;
        let far = b.compare(Predicate::GreaterThanOrEqual, error, ir::scalar(Elem::F32, 0.005 / k as f64))?;
        let alive = b.and(alive, far)?;
        let mut p = before;
        for (i, row) in rows.iter().enumerate() {
            let (own, here) = (column(b, *row, i)?, column(b, qp, i)?);
            let less = b.sub(pqp, here)?;
            let by = b.div(less, own)?;
            let mark: Vec<f64> = (0..k).map(|j| f64::from(u8::from(i == j))).collect();
            let mark = float_constant(b, Elem::F32, &[1, k as u64], &mark);
            let moved = b.mul(by, mark)?;
            p = b.add(p, moved)?;
            let whole = b.add(by, one)?;
            let (inner, twice) = (b.mul(by, own)?, b.add(here, here)?);
            let inner = b.add(inner, twice)?;
            let inner = b.mul(by, inner)?;
            let inner = b.add(pqp, inner)?;
            let inner = b.div(inner, whole)?;
            pqp = b.div(inner, whole)?;
            let step = b.mul(by, *row)?;
            let step = b.add(qp, step)?;
            qp = b.div(step, whole)?;
            p = b.div(p, whole)?;
        }
        Ok((vec![b.select(alive, p, before)?, alive], vec![]))
    })?;
    results.first().copied().ok_or_else(|| Refusal::new("an SVM gives no probabilities"))
}
