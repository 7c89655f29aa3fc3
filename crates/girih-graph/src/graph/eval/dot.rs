//! Sums of products.
//!
//! Each element of the result is `acc = fma(a[k], b[k], acc)` over ascending `k`. Eight elements along one axis of the
//! result are computed together, their operands packed beside each other, so that the rounding of a dependent chain is
//! hidden; the order within each chain is kept.
//!
//! `fma` of f32 is done in f64: the product of two f32 is exact there, and the sum rounds a second time only on its way
//! to f32, which is wrong only where it lies halfway between two f32 or is subnormal. These few sums are done again
//! with `mul_add`. (Source: the same test is in FreeBSD's `fmaf`.)

use super::elementwise::Float;
use super::reduce::Parts;
use super::tensor::{Data, Rows, View};
use crate::graph::Elem;
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp, convert, eval};

const LANES: usize = 8;

/// The result, of type `out`; `loose` sums f64 without fusing, if the last bit does not matter.
pub(super) fn dot(a: &View, b: &View, axes: &[u32], out: Elem, loose: bool) -> Data {
    match (out.dtype, a.elem.dtype) {
        (DType::F32, DType::F32) => panels::<f32>(a, b, axes, &dot_f32),
        (DType::F64, DType::F64) if loose => panels::<f64>(a, b, axes, &dot_loose),
        (DType::F64, DType::F64) => panels::<f64>(a, b, axes, &dot_f64),
        (DType::F32, DType::F16 | DType::BF16) => {
            let wide = |v: &View| {
                let one = |i| convert::to_f64(v.elem.dtype, v.data.bits(i)) as f32;
                View { elem: Elem::F32, data: f32::wrap((0..v.data.len()).map(one).collect()), ..v.clone() }
            };
            panels::<f32>(&wide(a), &wide(b), axes, &dot_f32)
        }
        _ => plain(a, b, axes, out),
    }
}

type Kernel<T> = dyn Fn(&[T], &[[T; LANES]], &mut [T; LANES]);

fn dot_f32(a: &[f32], b: &[[f32; LANES]], acc: &mut [f32; LANES]) {
    for (x, y) in a.iter().zip(b) {
        let wide = f64::from(*x);
        let mut next = [0f32; LANES];
        let mut doubtful = false;
        for j in 0..LANES {
            let r = wide * f64::from(y[j]) + f64::from(acc[j]);
            let halfway = r.to_bits() as u32 & 0x1fff_ffff == 0x1000_0000;
            let tiny = r.abs() < f64::from(f32::MIN_POSITIVE) && r != 0.0;
            doubtful |= halfway | tiny;
            next[j] = r as f32;
        }
        if doubtful {
            for j in 0..LANES {
                next[j] = x.mul_add(y[j], acc[j]);
            }
        }
        *acc = next;
    }
}

fn dot_f64(a: &[f64], b: &[[f64; LANES]], acc: &mut [f64; LANES]) {
    for (x, y) in a.iter().zip(b) {
        for j in 0..LANES {
            acc[j] = x.mul_add(y[j], acc[j]);
        }
    }
}

fn dot_loose(a: &[f64], b: &[[f64; LANES]], acc: &mut [f64; LANES]) {
    for (x, y) in a.iter().zip(b) {
        for j in 0..LANES {
            acc[j] += x * y[j];
        }
    }
}

/// Places of the folded elements, relative to the first.
fn places(parts: &Parts) -> Vec<i64> {
    let mut out = Vec::with_capacity(parts.count());
    let (rows, len, step) = parts.rows();
    for r in rows {
        out.extend((0..len as i64).map(|i| r + step * i));
    }
    out
}

fn panels<T: Float>(a: &View, b: &View, axes: &[u32], kernel: &Kernel<T>) -> Data {
    let (pa, pb) = (Parts::of(a, axes), Parts::of(b, axes));
    let total: usize = pa.shape.iter().product();
    let (Some(x), Some(y)) = (T::slice(&a.data), T::slice(&b.data)) else { return T::wrap(vec![T::ZERO; total]) };
    // The axis whose elements are computed together: long, and best one along which one operand stays the same.
    let lane = (0..pa.shape.len()).max_by_key(|&d| {
        let shares = (pa.strides[d] == 0) != (pb.strides[d] == 0);
        (pa.shape[d] >= LANES && shares, pa.shape[d])
    });
    // The operand that varies along it comes second.
    let swap = lane.is_some_and(|d| pb.strides[d] == 0 && pa.strides[d] != 0);
    let (x, y, first, second, x0, y0) =
        if swap { (y, x, &pb, &pa, b.offset, a.offset) } else { (x, y, &pa, &pb, a.offset, b.offset) };
    let (kx, ky) = (places(first), places(second));
    let out_strides = super::tensor::row_major(&pa.shape);
    let pick = |keep: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..pa.shape.len()).filter(|&d| Some(d) != lane && keep(d)).collect()
    };
    // The panel of the second operand is packed once for all positions along axes that do not move it.
    let outer = pick(&|d| second.strides[d] != 0);
    let inner = pick(&|d| second.strides[d] == 0);
    let of = |axes: &[usize], from: &[i64]| -> Vec<i64> { axes.iter().map(|&d| from[d]).collect() };
    let extents = |axes: &[usize]| -> Vec<usize> { axes.iter().map(|&d| pa.shape[d]).collect() };
    let (width, sx, sy, so) = match lane {
        Some(d) => (pa.shape[d], first.strides[d], second.strides[d], out_strides[d]),
        None => (1, 0, 0, 0),
    };
    let mut out = vec![T::ZERO; total];
    let mut panel = vec![[T::ZERO; LANES]; ky.len()];
    let mut row = vec![T::ZERO; kx.len()];
    let (outer_y, outer_o) = (of(&outer, &second.strides), of(&outer, &out_strides));
    let outer_x = of(&outer, &first.strides);
    let (inner_x, inner_o) = (of(&inner, &first.strides), of(&inner, &out_strides));
    let get = |data: &[T], at: i64| data.get(at as usize).copied().unwrap_or(T::ZERO);
    Rows::of(&extents(&outer), &[(x0, &outer_x), (y0, &outer_y), (0, &outer_o)]).each_elements(|at| {
        let &[x1, y1, o1] = at else { return };
        for block in (0..width).step_by(LANES) {
            let lanes = LANES.min(width - block);
            let start = y1 + sy * block as i64;
            for (p, k) in panel.iter_mut().zip(&ky) {
                for (j, slot) in p.iter_mut().enumerate().take(lanes) {
                    *slot = get(y, start + k + sy * j as i64);
                }
            }
            let (x2, o2) = (x1 + sx * block as i64, o1 + so * block as i64);
            Rows::of(&extents(&inner), &[(x2, &inner_x), (o2, &inner_o)]).each_elements(|at| {
                let &[x3, o3] = at else { return };
                let mut acc = [T::ZERO; LANES];
                if sx == 0 {
                    row.iter_mut().zip(&kx).for_each(|(r, k)| *r = get(x, x3 + k));
                    kernel(&row, &panel, &mut acc);
                } else {
                    // Both operands vary: element by element.
                    for (j, acc) in acc.iter_mut().enumerate().take(lanes) {
                        for (k, p) in kx.iter().zip(&panel) {
                            *acc = get(x, x3 + k + sx * j as i64).fma(p[j], *acc);
                        }
                    }
                }
                for (j, value) in acc.iter().enumerate().take(lanes) {
                    if let Some(slot) = out.get_mut((o3 + so * j as i64) as usize) {
                        *slot = value.canonical();
                    }
                }
            });
        }
    });
    T::wrap(out)
}

/// Every other type, from the definition.
fn plain(a: &View, b: &View, axes: &[u32], out: Elem) -> Data {
    let (pa, pb) = (Parts::of(a, axes), Parts::of(b, axes));
    let (ka, kb) = (places(&pa), places(&pb));
    let to = out.dtype;
    let convert = |from: Elem, bits: u64| match (from.is_float(), to.is_float()) {
        (true, true) => convert::convert(from.dtype, bits, to, Rounding::NearestEven),
        (false, false) if from.dtype.bits() < to.bits() => {
            eval::apply(ScalarOp::ExtI { to, sign: from.sign() }, from.dtype, &[bits])
        }
        _ => bits & to.mask(),
    };
    let fma = ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false };
    let mut data = vec![];
    Rows::of(&pa.shape, &[(a.offset, &pa.strides), (b.offset, &pb.strides)]).each_elements(|at| {
        let &[x, y] = at else { return };
        let mut acc = 0u64;
        for (i, j) in ka.iter().zip(&kb) {
            let (x, y) =
                (convert(a.elem, a.data.bits((x + i) as usize)), convert(b.elem, b.data.bits((y + j) as usize)));
            acc = if to.is_float() {
                eval::apply(fma, to, &[x, y, acc])
            } else {
                eval::apply(ScalarOp::AddI, to, &[acc, eval::apply(ScalarOp::MulI, to, &[x, y])])
            };
        }
        data.push(acc);
    });
    Data::of_bits(to, data)
}
