//! Elementwise operations over views.

use std::sync::Arc;

use super::tensor::{Data, Rows, View, read_bits, read_row};
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp, convert, eval};

/// f32 and f64, with the results of `num::eval`.
pub(super) trait Float: Copy + PartialOrd + Default {
    const ZERO: Self;
    /// Any NaN becomes the NaN of arithmetic.
    fn canonical(self) -> Self;
    fn add(self, o: Self) -> Self;
    fn sub(self, o: Self) -> Self;
    fn mul(self, o: Self) -> Self;
    fn div(self, o: Self) -> Self;
    fn root(self) -> Self;
    fn fma(self, b: Self, c: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    /// NaN wins; -0 is below 0.
    fn max(self, o: Self) -> Self;
    fn min(self, o: Self) -> Self;
    fn from_bits(bits: u64) -> Self;
    fn slice(data: &Data) -> Option<&[Self]>;
    fn wrap(data: Vec<Self>) -> Data;
}

macro_rules! float {
    ($t:ident, $variant:ident, $bits:ty, $dtype:expr) => {
        impl Float for $t {
            const ZERO: $t = 0.0;
            fn canonical(self) -> $t {
                if self.is_nan() { $t::from_bits(convert::nan($dtype) as $bits) } else { self }
            }
            fn add(self, o: $t) -> $t {
                self + o
            }
            fn sub(self, o: $t) -> $t {
                self - o
            }
            fn mul(self, o: $t) -> $t {
                self * o
            }
            fn div(self, o: $t) -> $t {
                self / o
            }
            fn root(self) -> $t {
                self.sqrt()
            }
            fn fma(self, b: $t, c: $t) -> $t {
                self.mul_add(b, c)
            }
            fn neg(self) -> $t {
                -self
            }
            fn abs(self) -> $t {
                $t::abs(self)
            }
            fn max(self, o: $t) -> $t {
                if self.is_nan() || o.is_nan() {
                    $t::NAN.canonical()
                } else if o > self || (o == self && self.is_sign_negative()) {
                    o
                } else {
                    self
                }
            }
            fn min(self, o: $t) -> $t {
                if self.is_nan() || o.is_nan() {
                    $t::NAN.canonical()
                } else if o < self || (o == self && o.is_sign_negative()) {
                    o
                } else {
                    self
                }
            }
            fn from_bits(bits: u64) -> $t {
                $t::from_bits(bits as $bits)
            }
            fn slice(data: &Data) -> Option<&[$t]> {
                if let Data::$variant(v) = data { Some(&v[..]) } else { None }
            }
            fn wrap(data: Vec<$t>) -> Data {
                Data::$variant(Arc::new(data))
            }
        }
    };
}
float!(f32, F32, u32, DType::F32);
float!(f64, F64, u64, DType::F64);

/// Applies the operation to views of one shape. `ty` is the type of the operands (of `Select`: the last two), `to` the
/// type of the result.
pub(super) fn apply(op: ScalarOp, ty: DType, to: DType, args: &[View], shape: &[usize]) -> Data {
    let native = match ty {
        DType::F32 => floats::<f32>(op, args, shape),
        DType::F64 => floats::<f64>(op, args, shape),
        _ => None,
    };
    if let Some(data) = native {
        return data;
    }
    let views: Vec<&View> = args.iter().collect();
    let rows = Rows::new(shape, &views);
    let mut inputs = vec![vec![0u64; rows.len]; args.len()];
    let mut out = Vec::with_capacity(shape.iter().product());
    let mut operands = [0u64; 3];
    let (n, steps) = (rows.len, rows.steps.clone());
    rows.each(|starts| {
        for ((row, view), (start, step)) in inputs.iter_mut().zip(args).zip(starts.iter().zip(&steps)) {
            read_bits(&view.data, *start, *step, row);
        }
        for i in 0..n {
            for (o, row) in operands.iter_mut().zip(&inputs) {
                *o = row.get(i).copied().unwrap_or(0);
            }
            out.push(eval::apply(op, ty, &operands[..args.len().min(3)]));
        }
    });
    Data::of_bits(to, out)
}

fn nearest(rounding: Rounding) -> bool {
    !matches!(rounding, Rounding::Zero | Rounding::NegativeInf | Rounding::PositiveInf | Rounding::NearestAway)
}

/// The operations that machines have; `None` for the others.
fn floats<T: Float>(op: ScalarOp, args: &[View], shape: &[usize]) -> Option<Data> {
    use ScalarOp::*;
    let two = |f: fn(T, T) -> T| binary(args, shape, f);
    match op {
        AddF { rounding, ftz: false } if nearest(rounding) => two(|a, b| a.add(b).canonical()),
        SubF { rounding, ftz: false } if nearest(rounding) => two(|a, b| a.sub(b).canonical()),
        MulF { rounding, ftz: false } if nearest(rounding) => two(|a, b| a.mul(b).canonical()),
        DivF { rounding, ftz: false } if nearest(rounding) => two(|a, b| a.div(b).canonical()),
        MaxF { nan: true, ftz: false } => two(T::max),
        MinF { nan: true, ftz: false } => two(T::min),
        Sqrt { rounding, ftz: false } if nearest(rounding) => unary(args, shape, |a: T| a.root().canonical()),
        NegF => unary(args, shape, T::neg),
        AbsF => unary(args, shape, T::abs),
        Copy => unary(args, shape, |a: T| a),
        _ => None,
    }
}

#[inline(always)]
fn unary<T: Float>(args: &[View], shape: &[usize], f: impl Fn(T) -> T) -> Option<Data> {
    let [a] = args else { return None };
    let x = T::slice(&a.data)?;
    let rows = Rows::new(shape, &[a]);
    let mut out = Vec::with_capacity(shape.iter().product());
    let mut row = vec![T::ZERO; rows.len];
    let step = rows.steps.first().copied()?;
    rows.each(|starts| {
        read_row(x, starts.first().copied().unwrap_or(0), step, &mut row);
        out.extend(row.iter().map(|a| f(*a)));
    });
    Some(T::wrap(out))
}

#[inline(always)]
fn binary<T: Float>(args: &[View], shape: &[usize], f: impl Fn(T, T) -> T) -> Option<Data> {
    let [a, b] = args else { return None };
    let (x, y) = (T::slice(&a.data)?, T::slice(&b.data)?);
    let rows = Rows::new(shape, &[a, b]);
    let mut out = Vec::with_capacity(shape.iter().product());
    let (mut left, mut right) = (vec![T::ZERO; rows.len], vec![T::ZERO; rows.len]);
    let &[sa, sb] = &rows.steps[..] else { return None };
    rows.each(|starts| {
        if let &[at, bt] = starts {
            read_row(x, at, sa, &mut left);
            read_row(y, bt, sb, &mut right);
            out.extend(left.iter().zip(&right).map(|(a, b)| f(*a, *b)));
        }
    });
    Some(T::wrap(out))
}
