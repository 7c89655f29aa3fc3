//! Counts of n-grams: `TfIdfVectorizer` over integers.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, old};
use crate::graph::ir::{Arg, Coord, MAX_EXTENT, ReduceOp, ScatterOp, axis};
use crate::index::{Cmp, Cond, Ix};
use crate::num::op::Predicate;

rules! {
    onnx_ngrams "Counts each n-gram of a list in a row. Its elements lie at equal distances of at most one more than the allowed skips; \
         single elements count once. The result is the count, 1 for any count above 0, or either times a weight of the n-gram.\n\n\
         `y = TfIdfVectorizer(x)` --> for each length and distance `sum over p of and over k (x[p + k * distance] == pool[.., k])`, \
         scattered to `ngram_indexes`\n\nRefuses strings, and an n-gram that is listed twice." {
        "onnx.TfIdfVectorizer" => old(ngrams),
    }
}

/// The n-grams of one length: where they begin in the list, and how many there are.
struct Length {
    n: i64,
    begin: usize,
    count: usize,
}

fn ngrams(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if !b.elem(x).is_int() {
        return Err(Refusal::new(format!("it counts integers, not {}", b.elem(x))));
    }
    let required =
        |name: &str| call.int_of(name)?.ok_or_else(|| Refusal::new(format!("the attribute `{name}` is missing")));
    let list = |name: &str| call.ints(name)?.ok_or_else(|| Refusal::new(format!("the attribute `{name}` is missing")));
    if call.has("pool_strings") {
        return Err(Refusal::new("its n-grams are strings, but its operand is integers"));
    }
    let (least, most, skips) =
        (required("min_gram_length")?, required("max_gram_length")?, required("max_skip_count")?);
    if !(1..=most).contains(&least) || skips < 0 {
        return Err(Refusal::new(format!("n-grams of {least} to {most} elements with {skips} skips do not exist")));
    }
    let (pool, starts, places) = (list("pool_int64s")?, list("ngram_counts")?, list("ngram_indexes")?);
    let lengths = lengths(&pool, &starts)?;
    let all: usize = lengths.iter().map(|l| l.count).sum();
    let outputs = places.iter().max().map_or(0, |top| top + 1);
    if places.len() != all || places.iter().any(|p| !(0..MAX_EXTENT).contains(p)) {
        let given = places.len();
        return Err(Refusal::new(format!("`ngram_indexes` has {given} columns for {all} n-grams, or one below 0")));
    }
    let flat = b.rank(x) < 2;
    let x = match b.rank(x) {
        0 => b.unsqueeze(x, &[0, 1])?,
        1 => b.unsqueeze(x, &[0])?,
        2 => x,
        rank => return Err(Refusal::new(format!("it takes one row or rows of them, not a tensor of rank {rank}"))),
    };
    let x = b.convert(x, Elem::I64)?;
    let rows = b.shape(x)[0].clone();
    let mut counts = vec![];
    for l in lengths.iter().filter(|l| l.count > 0) {
        let used = (least..=most).contains(&l.n);
        let far = if l.n == 1 { 1 } else { skips + 1 };
        let of = pool.get(l.begin..l.begin + l.count * l.n as usize).unwrap_or_default();
        let pool = b.int_constant(Elem::I64, &[l.count as u64, l.n as u64], of);
        let mut sum = b.full(
            crate::graph::ir::int_scalar(Elem::I64, 0),
            Elem::I64,
            vec![rows.clone(), Ix::Const(l.count as i64)],
        );
        for distance in (1..=far).filter(|_| used) {
            match found(b, x, pool, l, distance)? {
                Some(part) => sum = b.add(sum, part)?,
                None => break,
            }
        }
        counts.push(sum);
    }
    let zero = crate::graph::ir::int_scalar(Elem::I64, 0);
    let none = b.full(zero, Elem::I64, vec![rows.clone(), Ix::Const(outputs)]);
    let mut y = none;
    if !counts.is_empty() {
        let counts = b.concat(&counts, 1)?;
        let to = b.int_constant(Elem::I64, &[1, all as u64], &places);
        y = b.scatter(none, &[to], counts, vec![Coord::Ix(axis(0)), Coord::Arg(1)], ScatterOp::Add)?;
    }
    let mode = call.text("mode")?.ok_or_else(|| Refusal::new("the attribute `mode` is missing"))?;
    let y = b.convert(y, Elem::F32)?;
    let y = weighted(b, call, mode, y, outputs)?;
    Ok(vec![if flat { b.squeeze(y, &[0])? } else { y }])
}

/// The lengths that the list has, by where each begins.
fn lengths(pool: &[i64], starts: &[i64]) -> Result<Vec<Length>> {
    let mut out = vec![];
    for (i, start) in starts.iter().enumerate() {
        let n = i as i64 + 1;
        let end = starts.get(i + 1).copied().unwrap_or(pool.len() as i64);
        let (Ok(begin), Ok(stop)) = (usize::try_from(*start), usize::try_from(end)) else {
            return Err(Refusal::new(format!("`ngram_counts` has {start} and {end}, which must not be below 0")));
        };
        if begin > stop || stop > pool.len() || (end - start) % n != 0 {
            let have = pool.len();
            return Err(Refusal::new(format!(
                "elements {start} to {end} of {have} do not split into n-grams of {n} elements each"
            )));
        }
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = pool[begin..stop].chunks_exact(n as usize).find(|gram| !seen.insert(*gram)) {
            return Err(Refusal::new(format!("the n-gram {twice:?} is listed twice")));
        }
        out.push(Length { n, begin, count: (stop - begin) / n as usize });
    }
    Ok(out)
}

/// How often each n-gram stands in each row with its elements at a distance: `[rows, n-grams]`. `None` where the rows are too short.
fn found(b: &mut Builder<'_>, x: Arg, pool: Arg, l: &Length, distance: i64) -> Result<Option<Arg>> {
    let shape = b.shape(x);
    let reach = distance.checked_mul(l.n - 1).filter(|r| *r < MAX_EXTENT);
    let Some(reach) = reach else { return Ok(None) };
    let places = b.simplify(&Ix::max(Ix::sub(shape[1].clone(), Ix::Const(reach)), Ix::Const(0)));
    if places.is_const(0) || b.facts().decide(&Cond::new(places.clone(), Cmp::Le, Ix::Const(0))) == Some(true) {
        return Ok(None);
    }
    // [rows, places, n-grams, n]
    let to = vec![shape[0].clone(), places, Ix::Const(1), Ix::Const(l.n)];
    let at = Ix::add(axis(1), Ix::mul(axis(3), Ix::Const(distance)));
    let seen = b.map("grams", x, to, vec![axis(0), at]);
    let pool = b.unsqueeze(pool, &[0, 1])?;
    let equal = b.compare(Predicate::Equal, seen, pool)?;
    let whole = b.reduce(ReduceOp::And, equal, &[3], false)?;
    let whole = b.convert(whole, Elem::I64)?;
    Ok(Some(b.reduce(ReduceOp::Sum, whole, &[1], false)?))
}

/// Counts as the mode wants them. A weight belongs to a column of the result, as in ONNX's reference and its runtime; where each n-gram
/// has a column of its own in the order of the list, that is the weight of the n-gram that the text speaks of.
fn weighted(b: &mut Builder<'_>, call: &Call<'_>, mode: &str, counts: Arg, outputs: i64) -> Result<Arg> {
    let y = match mode {
        "TF" => return Ok(counts),
        "IDF" => b.min(counts, b.scalar_like(counts, 1.0))?,
        "TFIDF" => counts,
        other => {
            return Err(Refusal::new(format!("the attribute `mode` is {other:?}")).help("use TF, IDF or TFIDF"));
        }
    };
    let Some(weights) = call.floats("weights")?.filter(|w| !w.is_empty()) else { return Ok(y) };
    if weights.len() as i64 != outputs {
        return Err(Refusal::new(format!("{} weights do not fit {outputs} columns", weights.len())));
    }
    let bytes: Vec<u8> = weights.iter().flat_map(|w| (*w as f32).to_le_bytes()).collect();
    let weights = b.constant("weights", Elem::F32, &[1, outputs as u64], bytes.into());
    b.mul(y, weights)
}
