//! Helpers that decompositions share: type promotion, operands that may be attributes, axes.
//!
//! Types combine as in PyTorch: operands with dimensions count before tensors of rank 0, and these before scalars; one
//! that counts later changes the result only when its kind (bool, integer, float) is higher.

use super::expr::Tensor;
use super::unary::largest;
use super::{Call, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result, int_of, number_of};
use crate::graph::ir::{self, Arg};
use crate::index::Ix;
use crate::num::DType;
use crate::num::op::Predicate;

/// The type that holds the values of two.
pub(super) fn common(a: Elem, b: Elem) -> Elem {
    if a == b || b.is_bool() {
        return a;
    }
    if a.is_bool() {
        return b;
    }
    match (a.is_float(), b.is_float()) {
        (true, false) => a,
        (false, true) => b,
        (true, true) if a.dtype.bits() == b.dtype.bits() => Elem::F32,
        _ if a.is_float() || a.unsigned == b.unsigned => {
            if a.dtype.bits() > b.dtype.bits() {
                a
            } else {
                b
            }
        }
        _ => {
            let (unsigned, signed) = if a.unsigned { (a, b) } else { (b, a) };
            if signed.dtype.bits() > unsigned.dtype.bits() {
                return signed;
            }
            match unsigned.dtype.bits() {
                8 => Elem::I16,
                16 => Elem::I32,
                _ => Elem::I64,
            }
        }
    }
}

/// The type that an operation of PyTorch on these operands computes in.
pub(super) fn promote(b: &Builder<'_>, args: &[Arg]) -> Elem {
    let (mut dims, mut zero, mut scalars) = (None, None, None);
    for &x in args {
        let (slot, elem) = match x {
            Arg::Absent => continue,
            Arg::Value(_) if b.rank(x) > 0 => (&mut dims, b.elem(x)),
            Arg::Value(_) => (&mut zero, b.elem(x)),
            Arg::Scalar { elem, .. } if elem.is_float() => (&mut scalars, Elem::F32),
            Arg::Scalar { elem, .. } if elem.is_bool() => (&mut scalars, Elem::BOOL),
            Arg::Scalar { .. } => (&mut scalars, Elem::I64),
        };
        *slot = Some(slot.map_or(elem, |have| common(have, elem)));
    }
    let combine = |higher: Option<Elem>, lower: Option<Elem>| match (higher, lower) {
        (Some(h), Some(l)) if !h.is_float() && (h.is_bool() || l.is_float()) => Some(common(h, l)),
        (h, l) => h.or(l),
    };
    combine(combine(dims, zero), scalars).unwrap_or(Elem::F32)
}

/// The operands in the type they promote to.
pub(super) fn together(b: &mut Builder<'_>, args: &[Arg]) -> Result<Vec<Arg>> {
    let elem = promote(b, args);
    args.iter().map(|x| b.convert(*x, elem)).collect()
}

/// `x` within the finite values of an 8-bit float; of another type as it is. NaN stays NaN.
pub(super) fn saturated(b: &mut Builder<'_>, x: Arg, to: DType) -> Result<Arg> {
    let most = match to {
        DType::F8E4M3FN => 448.0,
        DType::F8E4M3FNUZ => 240.0,
        DType::F8E5M2 | DType::F8E5M2FNUZ => 57344.0,
        _ => return Ok(x),
    };
    let (low, high) = (b.scalar_like(x, -most), b.scalar_like(x, most));
    let x = b.max(x, low)?;
    b.min(x, high)
}

/// A tensor in another type, as PyTorch's processor code has it: an integer type takes the last bits of a number that it cannot
/// hold, which is first rounded to an integer of 32 bits (of 64, where that or `u8` or `u32` is asked for); a number
/// outside of these becomes the least of them. Numbers beyond the range of `f8E4M3FN`, infinity included, become its greatest number.
pub(super) fn cast(b: &mut Builder<'_>, x: Arg, to: Elem) -> Result<Arg> {
    if to.dtype == DType::F8E4M3FN && b.elem(x) != to {
        let x = if b.elem(x).is_float() { x } else { b.convert(x, Elem::F32)? };
        let x = saturated(b, x, to.dtype)?;
        return b.convert(x, to);
    }
    let whole = matches!(to.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64) && !to.is_bool() && !to.two_bits;
    if !b.elem(x).is_float() || to.is_float() || !whole {
        return b.convert(x, to);
    }
    let wide = to.dtype == DType::I64 || to.unsigned && to.dtype != DType::I16;
    let (via, end) = if wide { (Elem::I64, 63) } else { (Elem::I32, 31) };
    let end = b.scalar_like(x, (1u64 << end) as f64);
    let near = b.convert(x, via)?;
    let low = b.compare(Predicate::LessThan, x, end)?;
    let least = ir::int_scalar(via, integers(via).0 as i64);
    let near = b.select(low, near, least)?;
    let near = b.convert(near, to)?;
    if to.dtype != DType::I64 || !to.unsigned {
        return Ok(near);
    }
    // From 2^63 on the type holds more than the signed one, and from 2^64 on PyTorch gives 0.
    let most = b.scalar_like(x, 2f64.powi(64));
    let (high, all) = (b.compare(Predicate::GreaterThanOrEqual, x, end)?, b.compare(Predicate::LessThan, x, most)?);
    let far = b.convert(x, to)?;
    let far = b.select(all, far, ir::int_scalar(to, 0))?;
    b.select(high, far, near)
}

/// The same, where it becomes elements of the result, 0 unless given: see [`element`].
pub(super) fn element_attr(b: &mut Builder<'_>, call: &Call<'_>, name: &str, elem: Elem) -> Result<Arg> {
    match call.number(b, name)? {
        Some(x) => element(b, x, elem),
        None => Ok(ir::scalar(elem, 0.0)),
    }
}

/// A number as an element of a type. One that the type cannot hold is refused, as in PyTorch, where negative integers
/// wrap if the type is unsigned.
pub(super) fn element(b: &mut Builder<'_>, x: Arg, elem: Elem) -> Result<Arg> {
    let Arg::Scalar { elem: from, bits } = x else { return cast(b, x, elem) };
    let fits = if from.is_bool() || elem.is_bool() {
        true
    } else if elem.is_float() {
        let value = number_of(from, bits);
        !value.is_finite() || value.abs() <= largest(elem)
    } else if from.is_float() {
        let (lo, hi) = integers(elem);
        let value = number_of(from, bits).trunc();
        lo as f64 <= value && value < hi as f64 + 1.0
    } else {
        let (lo, hi) = integers(elem);
        let least = if elem.unsigned { -hi } else { lo };
        (least..=hi).contains(&int_of(from, bits).into())
    };
    if !fits {
        let value = number_of(from, bits);
        return Err(Refusal::new(format!("{value} is outside the range of {elem}")));
    }
    b.convert(x, elem)
}

/// The least and the greatest integer of a type.
fn integers(elem: Elem) -> (i128, i128) {
    let bits = elem.dtype.bits();
    if elem.unsigned { (0, (1 << bits) - 1) } else { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) }
}

/// A bound of integers: where the type ends before it, the end, since it bounds nothing; beyond the other end it is
/// refused.
pub(super) fn bound(x: Arg, elem: Elem, low: bool) -> Result<Arg> {
    match x {
        Arg::Scalar { elem: from, bits } if from.is_int() && elem.is_int() && !from.is_bool() && !elem.is_bool() => {
            let (value, (lo, hi)) = (i128::from(int_of(from, bits)), integers(elem));
            if if low { value > hi } else { value < lo } {
                return Err(Refusal::new(format!("the bound {value} is outside the range of {elem}")));
            }
            Ok(ir::int_scalar(elem, value.clamp(lo, hi) as i64))
        }
        other => Ok(other),
    }
}

impl<'g> Tensor<'g> {
    /// See [`cast`].
    pub fn cast(self, to: Elem) -> Tensor<'g> {
        self.cx.made(&[self], |b| cast(b, self.arg, to))
    }
    /// See [`element`].
    pub fn element_of(self, elem: Elem) -> Tensor<'g> {
        self.cx.made(&[self], |b| element(b, self.arg, elem))
    }
    /// Returns true if it is known to be this number.
    pub fn is(self, value: f64) -> bool {
        self.known() == Some(value)
    }
    /// It and another operand in the type they promote to.
    pub fn with(self, y: Tensor<'g>) -> (Tensor<'g>, Tensor<'g>) {
        let elem = promoted(&[self, y]);
        (self.to(elem), y.to(elem))
    }
    /// The same in a float type: see [`pair_of_floats`].
    pub fn with_as_floats(self, y: Tensor<'g>) -> (Tensor<'g>, Tensor<'g>) {
        let elem = promoted(&[self, y]);
        let elem = if elem.is_float() { elem } else { Elem::F32 };
        (self.to(elem), y.to(elem))
    }
    /// The extent of an axis, which must be known.
    pub fn known_extent(self, axis: usize, what: &str) -> Result<i64> {
        self.cx.read(|b| known_extent(b, self.arg, axis, what))
    }
}

/// The type that an operation of PyTorch on these operands computes in.
pub(super) fn promoted(xs: &[Tensor<'_>]) -> Elem {
    let args: Vec<Arg> = xs.iter().map(|x| x.arg).collect();
    xs.first().map_or(Elem::F32, |x| x.cx.read(|b| promote(b, &args)))
}

/// Returns true if the operand is known to be this number.
pub(super) fn is_number(x: Arg, value: f64) -> bool {
    matches!(x, Arg::Scalar { elem, bits } if number_of(elem, bits) == value)
}

/// `x` times the number that an attribute gives, where it gives one.
pub(super) fn scaled(b: &mut Builder<'_>, call: &Call<'_>, x: Arg, name: &str) -> Result<Arg> {
    let Some(factor) = call.number(b, name)?.filter(|f| !is_number(*f, 1.0)) else { return Ok(x) };
    let (elem, of) = (b.elem(x), b.elem(factor));
    if of.is_float() && !elem.is_float() {
        return Err(Refusal::new(format!("{elem} can only be scaled by an integer, but `{name}` is a float")));
    }
    let factor = element(b, factor, elem)?;
    if elem.is_bool() { b.and(x, factor) } else { b.mul(x, factor) }
}

/// The same, 0 where the number is 0, whatever `x` holds.
pub(super) fn scaled_or_none(b: &mut Builder<'_>, call: &Call<'_>, x: Arg, name: &str) -> Result<Arg> {
    let y = scaled(b, call, x, name)?;
    let (Some(factor), zero) = (call.number(b, name)?, b.scalar_like(x, 0.0)) else { return Ok(y) };
    if matches!(factor, Arg::Scalar { .. }) && !is_number(factor, 0.0) {
        return Ok(y);
    }
    let none = b.scalar_like(factor, 0.0);
    let none = b.compare(Predicate::Equal, factor, none)?;
    b.select(none, zero, y)
}

/// The extent of an axis, which must be known.
pub(super) fn known_extent(b: &Builder<'_>, x: Arg, axis: usize, what: &str) -> Result<i64> {
    let extent = b.shape(x).get(axis).and_then(|n| b.number(n));
    extent.ok_or_else(|| Refusal::new(format!("{what} must be known when the model is compiled")))
}

/// The scale of attention scores: the attribute's, or one over the root of the size of a head, axis 3 of the queries.
pub(super) fn head_scale(b: &Builder<'_>, stated: Option<f64>, q: Arg) -> Result<f64> {
    match stated {
        Some(scale) => Ok(scale),
        None => Ok(1.0 / (known_extent(b, q, 3, "the size of a head")?.max(1) as f64).sqrt()),
    }
}

/// One axis; a tensor of rank 0 has an axis 0 for this.
pub(super) fn axis_attr(call: &Call<'_>, name: &str, default: i64, rank: usize) -> Result<usize> {
    normal_axis(call.int(name, default)?, rank.max(1))
}

/// The axes of `dim`: a list, a number, or all of them where it is missing or empty. None for a tensor of rank 0.
pub(super) fn axes_attr(call: &Call<'_>, rank: usize) -> Result<Vec<usize>> {
    let given = call.ints("dim")?.unwrap_or_default();
    if rank == 0 || given.is_empty() {
        return Ok((0..rank).collect());
    }
    distinct(given.iter().map(|d| normal_axis(*d, rank)).collect::<Result<Vec<usize>>>()?)
}

/// The axes; each may be given once.
pub(super) fn distinct(axes: Vec<usize>) -> Result<Vec<usize>> {
    match axes.iter().enumerate().find(|(i, a)| axes[..*i].contains(a)) {
        Some((_, twice)) => Err(Refusal::new(format!("axis {twice} is given twice"))),
        None => Ok(axes),
    }
}

/// A list of `n` numbers; one number stands for all, nothing for the default.
pub(super) fn numbers(call: &Call<'_>, name: &str, n: usize, default: i64) -> Result<Vec<i64>> {
    let given = call.ints(name)?.unwrap_or_default();
    bounded(name, &given)?;
    match given.len() {
        0 => Ok(vec![default; n]),
        1 => Ok(vec![given[0]; n]),
        len if len == n => Ok(given),
        len => Err(Refusal::new(format!("{name} has {len} numbers, but needs {n}"))),
    }
}

/// Paddings, strides and their like are within what extents are made of without overflow.
pub(super) fn bounded(name: &str, given: &[i64]) -> Result<()> {
    match given.iter().find(|v| v.unsigned_abs() > 1 << 31) {
        Some(far) => Err(Refusal::new(format!("{name} must be within 2^31, not {far}"))),
        None => Ok(()),
    }
}

/// `coords` that read each axis at its own position.
pub(super) fn same_place(rank: usize) -> Vec<Ix> {
    (0..rank).map(ir::axis).collect()
}
