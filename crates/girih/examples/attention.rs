//! Attention in one kernel: the scores are never stored. `cargo run --release --example attention`
//!
//! Source of the algorithm: online softmax (M. Milakov and N. Gimelshein, 2018) as used by T. Dao et al., FlashAttention, 2022. A
//! block takes some queries and walks over the keys; the running maximum, the running sum and the output so far are carried, and
//! rescaled when the maximum grows.
//!
//! Shows: two products, values carried through a loop with runtime bounds, causal masks that end the loop early. The twin of
//! examples/python/attention.py.

use girih::lang::*;

#[girih::kernel]
pub fn attention(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    out: &mut [f32],
    length: i32,
    scale: f32,
    #[constexpr] head: i32,
    #[constexpr] block_m: i32,
    #[constexpr] block_n: i32,
    #[constexpr] causal: bool,
) {
    let start_m = program_id(0) * block_m;
    let base = program_id(1) * length * head; // this batch and head
    let (m, d) = (start_m + arange(0, block_m), arange(0, head));
    let q_at = base + m.column() * head + d.row();
    let q = load_where(q + q_at, m.column() < length, 0.0);

    let mut best = full([block_m], f32::NEG_INFINITY);
    let mut total = zeros([block_m]);
    let mut acc = zeros([block_m, head]);
    let last = if causal { minimum(start_m + block_m, length) } else { length };
    for start_n in range_by(0, last, block_n) {
        let n = start_n + arange(0, block_n);
        let kv_at = base + n.column() * head + d.row();
        let keys = load_where(k + kv_at, n.column() < length, 0.0);
        let values = load_where(v + kv_at, n.column() < length, 0.0);
        let scores = dot(q, keys.t()) * scale;
        let mut seen = n.row() < length;
        if causal {
            seen = seen & (n.row() <= m.column());
        }
        let scores = select(seen, scores, f32::NEG_INFINITY);
        let new_best = maximum(best, scores.max(1));
        let weights = exp(scores - new_best.column());
        let shrink = exp(best - new_best);
        total = total * shrink + weights.sum(1);
        acc = dot_add(weights, values, acc * shrink.column());
        best = new_best;
    }
    store_where(out + q_at, acc / total.column(), m.column() < length);
}

fn main() -> girih::Result<()> {
    let (heads, length, head) = (4usize, 120usize, 32usize);
    let numbers =
        |by: usize| (0..heads * length * head).map(|i| ((i * by) % 199) as f32 / 99.0 - 1.0).collect::<Vec<f32>>();
    let (q, k, v) = (numbers(31), numbers(17), numbers(13));
    let scale = 1.0 / (head as f32).sqrt();
    for causal in [false, true] {
        let mut out = vec![0.0; q.len()];
        let grid = [cdiv(length, 32) as u32, heads as u32];
        attention(&q, &k, &v, &mut out, length as i32, scale, head as i32, 32, 32, causal).launch(grid)?;

        for (h, i) in (0..heads).flat_map(|h| (0..length).map(move |i| (h, i))) {
            let row = |x: &[f32], at: usize| -> Vec<f64> {
                x[(h * length + at) * head..][..head].iter().map(|x| f64::from(*x)).collect()
            };
            let seen = if causal { i + 1 } else { length };
            let query = row(&q, i);
            let score = |j| row(&k, j).iter().zip(&query).map(|(a, b)| a * b).sum::<f64>() * f64::from(scale);
            let weights: Vec<f64> = (0..seen).map(|j| score(j).exp()).collect();
            for (column, found) in row(&out, i).iter().enumerate() {
                let sum: f64 = weights.iter().enumerate().map(|(j, w)| w * row(&v, j)[column]).sum();
                assert!((sum / weights.iter().sum::<f64>() - found).abs() < 1e-5);
            }
        }
        println!("attention{}: as in float64", if causal { ", causal" } else { "" });
    }
    Ok(())
}
