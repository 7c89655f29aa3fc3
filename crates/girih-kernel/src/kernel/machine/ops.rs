//! Scalar operations in the lanes of a warp: the results of [`apply`], with the common operations chosen once for all
//! lanes.

use crate::num::convert::nan;
use crate::num::eval::apply;
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp};

/// Every lane of a warp.
pub(super) const fn all<const W: usize>() -> u32 {
    u32::MAX >> (32 - W)
}

/// Calls `f` with each lane of a mask, in ascending order.
#[inline]
pub(super) fn each<const W: usize>(mask: u32, mut f: impl FnMut(usize)) {
    if mask == all::<W>() {
        (0..W).for_each(f);
        return;
    }
    let mut left = mask;
    while left != 0 {
        f(left.trailing_zeros() as usize);
        left &= left - 1;
    }
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits_of(x: f32) -> u64 {
    if x.is_nan() { nan(DType::F32) } else { u64::from(x.to_bits()) }
}

/// The results in the lanes of `mask`; `out` keeps the others.
pub(super) fn lanes<const W: usize>(
    op: ScalarOp,
    ty: DType,
    [a, b, c]: [&[u64; W]; 3],
    count: usize,
    mask: u32,
    out: &mut [u64; W],
) {
    use ScalarOp::*;
    const NEAREST: Rounding = Rounding::NearestEven;
    match (op, ty) {
        (AddF { rounding: NEAREST, ftz: false }, DType::F32) => {
            each::<W>(mask, |l| out[l] = bits_of(f32_of(a[l]) + f32_of(b[l])));
        }
        (SubF { rounding: NEAREST, ftz: false }, DType::F32) => {
            each::<W>(mask, |l| out[l] = bits_of(f32_of(a[l]) - f32_of(b[l])));
        }
        (MulF { rounding: NEAREST, ftz: false }, DType::F32) => {
            each::<W>(mask, |l| out[l] = bits_of(f32_of(a[l]) * f32_of(b[l])));
        }
        (Fma { rounding: NEAREST, ftz: false }, DType::F32) => {
            each::<W>(mask, |l| out[l] = bits_of(f32_of(a[l]).mul_add(f32_of(b[l]), f32_of(c[l]))));
        }
        (AddI, _) => each::<W>(mask, |l| out[l] = a[l].wrapping_add(b[l]) & ty.mask()),
        (SubI, _) => each::<W>(mask, |l| out[l] = a[l].wrapping_sub(b[l]) & ty.mask()),
        (MulI, _) => each::<W>(mask, |l| out[l] = a[l].wrapping_mul(b[l]) & ty.mask()),
        (Copy, _) => each::<W>(mask, |l| out[l] = a[l]),
        _ => each::<W>(mask, |l| out[l] = apply(op, ty, &[a[l], b[l], c[l]][..count])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_give_what_apply_gives() {
        use ScalarOp::*;
        let rounding = Rounding::NearestEven;
        let ops = [
            AddF { rounding, ftz: false },
            SubF { rounding, ftz: false },
            MulF { rounding, ftz: false },
            Fma { rounding, ftz: false },
            AddF { rounding: Rounding::Zero, ftz: false },
            MulF { rounding, ftz: true },
            AddI,
            SubI,
            MulI,
            Copy,
            Xor,
        ];
        let odd = [0.1f32, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, 3e38, -7.25];
        let bits: [u64; 32] = std::array::from_fn(|l| match odd.get(l % 11) {
            Some(x) => u64::from(x.to_bits()),
            None => (l as u64).wrapping_mul(0x9e37_79b9) & 0xffff_ffff,
        });
        let turned = |by: usize| -> [u64; 32] { std::array::from_fn(|l| bits[(l * 7 + by) % 32]) };
        for op in ops {
            for ty in [DType::F32, DType::I32, DType::I8] {
                if ty != DType::F32 && matches!(op, AddF { .. } | SubF { .. } | MulF { .. } | Fma { .. }) {
                    continue;
                }
                let [a, b, c] = [0, 3, 11].map(|by| turned(by).map(|x| x & ty.mask()));
                for mask in [u32::MAX, 0x8000_0001, 0x00ff_ff00] {
                    let mut out = [77; 32];
                    lanes::<32>(op, ty, [&a, &b, &c], op.arity(), mask, &mut out);
                    for l in 0..32 {
                        let of_lane = apply(op, ty, &[a[l], b[l], c[l]][..op.arity()]);
                        let expected = if mask >> l & 1 == 1 { of_lane } else { 77 };
                        assert_eq!(out[l], expected, "{op:?} of {ty} in lane {l}");
                    }
                }
            }
        }
    }
}
