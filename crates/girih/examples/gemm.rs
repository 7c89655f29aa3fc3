//! The product of two matrices of any sizes. `cargo run --release --example gemm`
//!
//! Shows: `dot_add` of tiles, a loop that the kernel runs, masks at the edges, and blocks in groups, so that blocks running at the
//! same time share rows and columns. The twin of `tiled` in examples/python/matmul_ladder.py.

use girih::lang::*;

#[girih::kernel]
pub fn gemm(
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    rows: i32,
    columns: i32,
    inner: i32,
    #[constexpr] blocks: [i32; 3],
    #[constexpr] group: i32,
) {
    let [block_m, block_n, block_k] = blocks;
    let (high, wide) = (cdiv(rows, block_m), cdiv(columns, block_n));
    let block = program_id(0);
    let first = block / (group * wide) * group;
    let height = minimum(high - first, group);
    let m = (first + block % height) * block_m + arange(0, block_m);
    let n = block % (group * wide) / height * block_n + arange(0, block_n);
    let mut total = zeros([block_m, block_n]);
    for start in range_by(0, inner, block_k) {
        let k = start + arange(0, block_k);
        let x = load_where(a + m.column() * inner + k.row(), m.column() < rows && k.row() < inner, 0.0);
        let y = load_where(b + k.column() * columns + n.row(), k.column() < inner && n.row() < columns, 0.0);
        total = dot_add(x, y, total);
    }
    store_where(c + m.column() * columns + n.row(), total, m.column() < rows && n.row() < columns);
}

fn main() -> girih::Result<()> {
    let (m, n, k) = (252, 380, 300);
    let numbers = |count: i32, by: i32| (0..count).map(|i| ((i * by) % 199) as f32 / 99.0 - 1.0).collect::<Vec<f32>>();
    let (a, b) = (numbers(m * k, 31), numbers(k * n, 17));
    let mut c = vec![0.0; (m * n) as usize];
    let blocks = cdiv(m, 64) * cdiv(n, 64);
    gemm(&a, &b, &mut c, m, n, k, [64, 64, 32], 4).launch([blocks as u32])?;

    for (i, found) in c.iter().enumerate() {
        let (row, column) = (i / n as usize, i % n as usize);
        let term = |j: usize| f64::from(a[row * k as usize + j]) * f64::from(b[j * n as usize + column]);
        let wanted: f64 = (0..k as usize).map(term).sum();
        assert!((wanted - f64::from(*found)).abs() < 1e-4, "{row},{column}: {found} instead of {wanted}");
    }
    println!("{m}x{k} by {k}x{n}: as in float64");
    Ok(())
}
