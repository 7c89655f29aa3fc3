//! Softmax of every row of a matrix, fused: each row is read once and written once. `cargo run --release --example softmax`
//!
//! Shows: one block per row, a row padded to a power of two, reductions. The twin of examples/python/softmax.py.

use girih::lang::*;

#[girih::kernel]
pub fn softmax(src: &[f32], dst: &mut [f32], columns: i32, #[constexpr] block: i32) {
    let row = program_id(0);
    let j = arange(0, block);
    let x = load_where(src + row * columns + j, j < columns, f32::NEG_INFINITY);
    let e = exp(x - x.max(0));
    store_where(dst + row * columns + j, e / e.sum(0), j < columns);
}

fn main() -> girih::Result<()> {
    let (rows, columns) = (100, 1000);
    let x: Vec<f32> = (0..rows * columns).map(|i| ((i * 7919) % 1000) as f32 / 100.0 - 5.0).collect();
    let mut out = vec![0.0; x.len()];
    softmax(&x, &mut out, columns, next_power_of_2(columns)).launch([rows as u32])?;

    for (x, out) in x.chunks(columns as usize).zip(out.chunks(columns as usize)) {
        let most = x.iter().fold(f64::NEG_INFINITY, |m, v| m.max(f64::from(*v)));
        let sum: f64 = x.iter().map(|v| (f64::from(*v) - most).exp()).sum();
        assert!(x.iter().zip(out).all(|(v, o)| ((f64::from(*v) - most).exp() / sum - f64::from(*o)).abs() < 1e-6));
    }
    println!("softmax of {rows} rows of {columns}: as in float64");
    Ok(())
}
