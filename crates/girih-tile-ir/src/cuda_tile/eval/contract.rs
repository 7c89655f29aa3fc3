//! Matrix products.
//!
//! `mmaf` starts from the accumulator operand and takes one fused multiply-add per step of k, ascending. f16 and bf16
//! accumulators are held in f32 inside the operation and rounded once at its end; f64 stays f64.
//! `mmaf_scaled` scales its operands first: `a*scale_a` and `b*scale_b` are each rounded to f32 (a product of two such
//! narrow numbers is exact in f32 unless it leaves f32's range), then accumulates in f32 like `mmaf`.

use super::value::{Origin, Tile};
use crate::cuda_tile::ir::TileType;
use crate::num::DType;
use crate::num::convert::{convert, nan};
use crate::num::op::{Rounding, Signedness};

/// Batch, rows, columns and depth of a product of `[b, m, k]` and `[b, k, n]`.
pub struct Dims {
    pub b: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// A question that is asked from time to time: is the product to be abandoned?
pub type Stop<'a> = &'a dyn Fn() -> bool;
/// The number of multiplications between two questions.
const EACH: usize = 1 << 20;

impl Dims {
    pub fn of(lhs: &[u64], rhs: &[u64]) -> Option<Dims> {
        match (lhs, rhs) {
            (&[m, k], &[k2, n]) if k == k2 => Some(Dims { b: 1, m: m as usize, n: n as usize, k: k as usize }),
            (&[b, m, k], &[b2, k2, n]) if k == k2 && b == b2 => {
                Some(Dims { b: b as usize, m: m as usize, n: n as usize, k: k as usize })
            }
            _ => None,
        }
    }
}

fn f32s(t: &Tile, ty: DType) -> Vec<f32> {
    (0..t.len()).map(|i| f32::from_bits(convert(ty, t.get(i), DType::F32, Rounding::NearestEven) as u32)).collect()
}

fn f64s(t: &Tile) -> Vec<f64> {
    (0..t.len()).map(|i| f64::from_bits(t.get(i))).collect()
}

/// `None` if the product was abandoned; the same for all products.
pub fn mmaf(ty: &TileType, d: &Dims, lhs: &Tile, rhs: &Tile, acc: &Tile, stop: Stop<'_>) -> Option<Tile> {
    let (a, b, c) = (dtype(lhs)?, dtype(rhs)?, dtype(acc)?);
    let out = if c == DType::F64 {
        let (x, y, z) = (f64s(lhs), f64s(rhs), f64s(acc));
        let sums = products(d, z, stop, |s, i, j| x[i].mul_add(y[j], s))?;
        sums.into_iter().map(|v| if v.is_nan() { nan(DType::F64) } else { v.to_bits() }).collect()
    } else {
        let (x, y) = (f32s(lhs, a), f32s(rhs, b));
        round_f32(c, products(d, f32s(acc, c), stop, |s, i, j| x[i].mul_add(y[j], s))?)
    };
    Some(Tile::new(ty, out).with_poison(poison(d, &[lhs], &[rhs], acc)))
}

/// `lhs_scale` is `[b, m, k/v]` and `rhs_scale` `[b, k/v, n]`.
pub fn mmaf_scaled(
    ty: &TileType,
    d: &Dims,
    [lhs, rhs, acc]: [&Tile; 3],
    [ls, rs]: [&Tile; 2],
    stop: Stop<'_>,
) -> Option<Tile> {
    let scaled = |t: &Tile, s: &Tile, at: &dyn Fn(usize) -> usize| -> Option<Vec<f32>> {
        let (x, y) = (f32s(t, dtype(t)?), f32s(s, dtype(s)?));
        Some(x.iter().enumerate().map(|(i, v)| v * y.get(at(i)).copied().unwrap_or(f32::NAN)).collect())
    };
    let blocks = *ls.shape.last()? as usize;
    let v = (d.k / blocks.max(1)).max(1);
    let x = scaled(lhs, ls, &|i| i / d.k * blocks + i % d.k / v)?;
    let y = scaled(rhs, rs, &|i| {
        let (batch, row, col) = (i / (d.k * d.n), i / d.n % d.k, i % d.n);
        (batch * blocks + row / v) * d.n + col
    })?;
    let c = dtype(acc)?;
    let out = round_f32(c, products(d, f32s(acc, c), stop, |s, i, j| x[i].mul_add(y[j], s))?);
    // An undefined scale makes its whole block of k undefined, hence its row or column of the result.
    Some(Tile::new(ty, out).with_poison(poison(d, &[lhs, ls], &[rhs, rs], acc)))
}

pub fn mmai(
    ty: &TileType,
    d: &Dims,
    [lhs, rhs, acc]: [&Tile; 3],
    [sl, sr]: [Signedness; 2],
    stop: Stop<'_>,
) -> Option<Tile> {
    let ints = |t: &Tile, s| -> Option<Vec<i64>> {
        let ty = dtype(t)?;
        Some((0..t.len()).map(|i| super::scalar::integer(ty, s, t.get(i)) as i64).collect())
    };
    let (x, y, z) = (ints(lhs, sl)?, ints(rhs, sr)?, ints(acc, Signedness::Signed)?);
    let mask = dtype(acc)?.mask();
    let sums = products(d, z, stop, |s, i, j| s.wrapping_add(x[i].wrapping_mul(y[j])))?;
    Some(Tile::new(ty, sums.into_iter().map(|v| v as u64 & mask).collect()).with_poison(poison(d, &[lhs], &[rhs], acc)))
}

/// Every `acc[b, i, j]` stepped through k; `step(sum, lhs position, rhs position)`.
fn products<T: Copy>(d: &Dims, mut acc: Vec<T>, stop: Stop<'_>, step: impl Fn(T, usize, usize) -> T) -> Option<Vec<T>> {
    let each = (EACH / d.k.max(1)).max(1);
    for (at, sum) in acc.iter_mut().enumerate() {
        if at % each == each - 1 && stop() {
            return None;
        }
        let (b, i, j) = (at / (d.m * d.n), at / d.n % d.m, at % d.n);
        let (row, col) = ((b * d.m + i) * d.k, b * d.k * d.n + j);
        let mut s = *sum;
        for k in 0..d.k {
            s = step(s, row + k, col + k * d.n);
        }
        *sum = s;
    }
    Some(acc)
}

/// An element of the result is undefined if an element of its row, its column or its accumulator is undefined.
fn poison(d: &Dims, rows: &[&Tile], columns: &[&Tile], acc: &Tile) -> Vec<Origin> {
    if rows.iter().chain(columns).all(|t| t.poison.is_none()) && acc.poison.is_none() {
        return vec![];
    }
    let mut by_row = vec![0; d.b * d.m];
    for t in rows {
        let width = t.len() / by_row.len().max(1);
        (0..t.len()).for_each(|i| merge(&mut by_row[i / width.max(1)], t.origin(i)));
    }
    let mut by_column = vec![0; d.b * d.n];
    for t in columns {
        let batch = t.len() / d.b.max(1);
        (0..t.len()).for_each(|i| merge(&mut by_column[i / batch.max(1) * d.n + i % d.n], t.origin(i)));
    }
    (0..d.b * d.m * d.n)
        .map(|at| {
            let mut o = acc.origin(at);
            merge(&mut o, by_row[at / d.n]);
            merge(&mut o, by_column[at / (d.m * d.n) * d.n + at % d.n]);
            o
        })
        .collect()
}

fn merge(into: &mut Origin, o: Origin) {
    if *into == 0 {
        *into = o;
    }
}

fn round_f32(to: DType, sums: Vec<f32>) -> Vec<u64> {
    let bits = |v: f32| if v.is_nan() { nan(DType::F32) } else { v.to_bits() as u64 };
    sums.into_iter().map(|v| convert(DType::F32, bits(v), to, Rounding::NearestEven)).collect()
}

fn dtype(t: &Tile) -> Option<DType> {
    match t.elem {
        crate::cuda_tile::ir::Elem::Num(d) => Some(d),
        _ => None,
    }
}
