//! Support vector machines of `ai.onnx.ml`.

use super::ml::{labels_of, line, numbers, post_transform, rows, strings};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::activations::sigmoid;
use crate::graph::decompose::expr::{Loop, Tensor};
use crate::index::Ix;

rules! {
    ml_svm_regressor "A sum of kernels at support vectors.\n\n`y = svm(x)` --> `y = dot coefficients, kernel(x, vectors) + rho`" {
        "onnx.SVMRegressor" => svm_regressor,
    }
    ml_svm_classifier "A score for each pair of classes, and the label with the most votes; with `prob_a`, probabilities.\n\n\
         `y = svm(x)` --> `s = kernel(x, vectors) @ pairs + rho`, `label = labels[argmax votes]`\n\n\
         Refuses labels that are strings." {
        "onnx.SVMClassifier" => svm_classifier,
    }
}

/// The most classes that have probabilities: there is a step for each of them in a round.
const MOST_CLASSES: usize = 64;

/// The kernel of each row of `x` with each of the vectors: `[rows, vectors]`.
fn kernels<'g>(c: &Call<'g>, x: Tensor<'g>, vectors: &[f64], supports: i64, features: i64) -> Result<Tensor<'g>> {
    let params = numbers(c, "kernel_params")?.unwrap_or_else(|| vec![0.0; 3]);
    let param = |i: usize| params.get(i).copied().unwrap_or(0.0);
    let v = c.cx.floats(x.elem(), &[supports as u64, features as u64], vectors);
    let products = || x.matmul(v.transpose(&[1, 0]));
    let shifted = || products() * param(0) + param(1);
    Ok(match c.text("kernel_type")?.unwrap_or("LINEAR") {
        "LINEAR" => products(),
        "POLY" => shifted().pow(param(2).trunc()),
        "SIGMOID" => shifted().tanh(),
        "RBF" => {
            let difference = x.unsqueeze(&[1]) - v;
            (-((difference * difference).sum(&[2], false) * param(0))).exp()
        }
        other => return Err(Refusal::new(format!("kernel_type is {other:?}, which ONNX does not define"))),
    })
}

fn svm_regressor<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, features) = rows(c.x(0))?;
    let coefficients = numbers(c, "coefficients")?.ok_or_else(|| Refusal::new("an SVM has no coefficients"))?;
    let supports = c.int("n_supports", 0)?.max(0);
    let of = if supports == 0 {
        if coefficients.len() as i64 != features {
            return Err(Refusal::new(format!("{} coefficients do not fit {features} features", coefficients.len())));
        }
        x
    } else {
        let vectors = numbers(c, "support_vectors")?.unwrap_or_default();
        if vectors.len() as i64 != supports * features || coefficients.len() as i64 != supports {
            return Err(Refusal::new(format!("{supports} support vectors do not fit {features} features")));
        }
        kernels(c, x, &vectors, supports, features)?
    };
    let mut y = of.matmul(c.cx.floats(x.elem(), &[coefficients.len() as u64, 1], &coefficients));
    if let Some(rho) = numbers(c, "rho")?.and_then(|r| r.first().copied()) {
        y = y + rho;
    }
    if c.flag("one_class", false)? {
        y = y.above(0.0).select(y.like(1.0), -1.0);
    }
    Ok(post_transform(y, c.text("post_transform")?.unwrap_or("NONE"))?.to(Elem::F32))
}

fn svm_classifier<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (x, features) = rows(c.x(0))?;
    let x = x.to(Elem::F32);
    let labels = numbers(c, "classlabels_ints")?.ok_or_else(|| strings("SVMClassifier with labels"))?;
    let coefficients = numbers(c, "coefficients")?.ok_or_else(|| Refusal::new("an SVM has no coefficients"))?;
    let rho = numbers(c, "rho")?.unwrap_or_default();
    let counts: Vec<usize> =
        numbers(c, "vectors_per_class")?.unwrap_or_default().iter().map(|n| n.min(1e9) as usize).collect();
    let transform = c.text("post_transform")?.unwrap_or("NONE");
    let k = labels.len();
    let total: usize = counts.iter().sum();
    if total == 0 {
        return linear_classifier(x, features, &labels, &coefficients, &rho, transform);
    }
    let vectors = numbers(c, "support_vectors")?.unwrap_or_default();
    let pairs = k * (k - 1) / 2;
    if counts.len() != k
        || k < 2
        || vectors.len() as i64 != total as i64 * features
        || coefficients.len() < (k - 1) * total
        || rho.len() < pairs
    {
        return Err(Refusal::new(format!("{total} support vectors of {features} features do not fit {k} classes")));
    }
    let kernel = kernels(c, x, &vectors, total as i64, features)?;
    // One column for each pair of classes.
    let starts: Vec<usize> = counts.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect();
    c.cx.build(|b| b.list((total * pairs + 2 * pairs * k) as u64, 8))?;
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
    let floats =
        |rows: usize, columns: usize, values: &[f64]| c.cx.floats(Elem::F32, &[rows as u64, columns as u64], values);
    let scores = kernel.matmul(floats(total, pairs, &weights)) + line(c.cx, Elem::F32, &rho[..pairs]);
    let wins = scores.above(0.0);
    let (won, lost) = (wins.select(scores.like(1.0), 0.0), wins.select(scores.like(0.0), 1.0));
    let votes = won.matmul(floats(pairs, k, &first)) + lost.matmul(floats(pairs, k, &second));
    let label = labels_of(votes, &labels)?;
    let scores = match (numbers(c, "prob_a")?, numbers(c, "prob_b")?) {
        (Some(a), Some(z)) if a.len() >= pairs && z.len() >= pairs => {
            post_transform(probabilities(scores, &a[..pairs], &z[..pairs], &all.collect::<Vec<_>>(), k)?, transform)?
        }
        _ if k == 2 => {
            let both = match transform {
                "NONE" => [-scores, scores],
                "LOGISTIC" => [sigmoid(-scores), sigmoid(scores)],
                _ => [1.0 - scores, scores],
            };
            c.cx.concat(&both, 1)
        }
        _ => post_transform(scores, transform)?,
    };
    Ok([label, scores])
}

/// A score for each class.
fn linear_classifier<'g>(
    x: Tensor<'g>,
    features: i64,
    labels: &[f64],
    coefficients: &[f64],
    rho: &[f64],
    transform: &str,
) -> Result<[Tensor<'g>; 2]> {
    let k = labels.len();
    let weights = coefficients.get(..k * features as usize).ok_or_else(|| {
        Refusal::new(format!("{} coefficients do not fit {k} classes of {features} features", coefficients.len()))
    })?;
    let weights = x.cx.floats(Elem::F32, &[k as u64, features as u64], weights);
    let scores = x.matmul(weights.transpose(&[1, 0])) + rho.first().copied().unwrap_or(0.0);
    let mut label = labels_of(scores, labels)?;
    if let &[_, second] = labels {
        // As ONNX Runtime chooses of two.
        let most = scores.greatest(&[1], false);
        let positive = coefficients.iter().all(|c| *c >= 0.0);
        let above = if positive { most.at_least(0.5) } else { most.above(0.0) };
        label = above.select(second as i64, label);
    }
    Ok([label, post_transform(scores, transform)?])
}

/// Probabilities of `k` classes of those of pairs: Wu, Lin, Weng, "Probability estimates for multi-class classification by
/// pairwise coupling" (2004), their second method, in at most 100 rounds as LIBSVM.
fn probabilities<'g>(
    scores: Tensor<'g>,
    a: &[f64],
    c: &[f64],
    pairs: &[(usize, usize)],
    k: usize,
) -> Result<Tensor<'g>> {
    if k > MOST_CLASSES {
        return Err(Refusal::new(format!("probabilities of more than {MOST_CLASSES} classes are not supported")));
    }
    let cx = scores.cx;
    let (a, c) = (line(cx, Elem::F32, a), line(cx, Elem::F32, c));
    let s = scores * a + c;
    let r = sigmoid(-s).max(1e-7).min(1.0 - 1e-7);
    let rest = 1.0 - r;
    // r[i][j]: how likely `i` is of `i` and `j`.
    let n = scores.shape()?[0].clone();
    let none = cx.full(Elem::F32, 0.0, vec![n.clone(), Ix::Const(1)]);
    let mut of = vec![none; k * k];
    for (at, (i, j)) in pairs.iter().enumerate() {
        of[i * k + j] = column(r, at);
        of[j * k + i] = column(rest, at);
    }
    // Q, row by row: [n, k].
    let mut rows = vec![];
    for i in 0..k {
        let row = (0..k).map(|j| match i == j {
            true => (0..k).filter(|m| *m != i).fold(none, |sum, m| sum + of[m * k + i] * of[m * k + i]),
            false => -(of[j * k + i] * of[i * k + j]),
        });
        rows.push(cx.concat(&row.collect::<Vec<_>>(), 1));
    }
    let begin = cx.full(Elem::F32, 1.0 / k as f64, vec![n.clone(), Ix::Const(k as i64)]);
    let alive = cx.full(Elem::BOOL, 1.0, vec![n, Ix::Const(1)]);
    let carried = [begin, alive];
    let rounds = Ix::Const(100);
    let of = Loop { rounds, conditional: false, carried: &carried, rows: &[], read: &rows, given: &[] };
    let results = cx.repeat(&of, |cx, round| {
        let [before, alive] = round.state()?;
        let all: Vec<_> = round.read.iter().map(|row| (*row * before).sum(&[1], true)).collect();
        let mut qp = cx.concat(&all, 1);
        let mut pqp = (before * qp).sum(&[1], true);
        let error = (qp - pqp).abs().greatest(&[1], true);
        let alive = alive & error.at_least(0.005 / k as f64);
        let mut p = before;
        for (i, row) in round.read.iter().enumerate() {
            let (own, here) = (column(*row, i), column(qp, i));
            let by = (pqp - here) / own;
            let mark: Vec<f64> = (0..k).map(|j| f64::from(u8::from(i == j))).collect();
            p = p + by * cx.floats(Elem::F32, &[1, k as u64], &mark);
            let whole = by + 1.0;
            pqp = (pqp + by * (by * own + (here + here))) / whole / whole;
            qp = (qp + by * *row) / whole;
            p = p / whole;
        }
        Ok((vec![alive.select(p, before), alive], vec![]))
    })?;
    results.first().copied().ok_or_else(|| Refusal::new("an SVM gives no probabilities"))
}

fn column(x: Tensor<'_>, at: usize) -> Tensor<'_> {
    x.slice(1, Ix::Const(at as i64), 1, Ix::Const(1))
}
