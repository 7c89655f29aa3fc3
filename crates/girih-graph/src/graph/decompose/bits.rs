//! Functions that take numbers apart: the bits of floats, and divisors of integers.

use super::Call;
use super::expr::{Loop, Tensor, all};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::{MAX_EXTENT, ReduceOp};
use crate::index::Ix;
use crate::num::op::Signedness;
use crate::num::{DType, ScalarOp};

rules! {
    divisors "The greatest common divisor by Euclid's algorithm, in rounds until no element has a remainder, and the least common \
         multiple by it.\n\n`y = gcd(a, b)` --> `while any(b != 0): a, b = b, a rem b`, `y = abs(a)`" {
        "aten.gcd" => |c| divisors(c, false),
        "aten.lcm" => |c| divisors(c, true),
    }
    nextafter "The next float towards another.\n\n`y = nextafter(a, b)` --> the bits of `a` plus or minus 1" {
        "aten.nextafter" => nextafter,
    }
    frexp "A fraction from 1/2 to 1 and a power of two.\n\n`m, e = frexp(x)` --> the bits of `x`" {
        "aten.frexp" => frexp,
    }
}

fn divisors<'g>(c: &Call<'g>, multiple: bool) -> Result<Tensor<'g>> {
    let (x, y) = c.x(0).with(c.needed(1, "other"));
    let elem = x.elem();
    if elem.is_float() || elem.is_bool() {
        return Err(Refusal::new(format!("{elem} has no divisors")).help("convert to integers first"));
    }
    let shape = c.cx.broadcast_shape(&[x.shape()?, y.shape()?])?;
    let (x, y) = (x.spread(&shape), y.spread(&shape));
    let (p, q) = (x.abs(), y.abs());
    let goes = some_left(q)?;
    let rounds = Ix::Const(MAX_EXTENT);
    let of = Loop { rounds, conditional: true, carried: &[goes, p, q], rows: &[], read: &[], given: &[] };
    let results = c.cx.repeat(&of, |_, round| {
        let [_, p, q] = round.state()?;
        let done = q.equals(0.0);
        let rest = p % done.select(1.0, q);
        let (p, q) = (done.select(p, q), done.select(0.0, rest));
        Ok((vec![some_left(q)?, p, q], vec![]))
    })?;
    let gcd = results.get(1).copied().ok_or_else(|| Refusal::new("a loop lost its results"))?;
    if !multiple {
        return Ok(gcd);
    }
    let none = gcd.equals(0.0);
    let part = x / none.select(1.0, gcd);
    // As in C: narrow integers multiply in 32 bits.
    let wide = if elem.dtype.bits() < 32 { Elem::I32 } else { elem };
    Ok(none.select(0.0, (part.to(wide) * y.to(wide)).abs().to(elem)))
}

/// True if an element is not 0.
fn some_left(x: Tensor<'_>) -> Result<Tensor<'_>> {
    let some = x.to(Elem::BOOL);
    let axes = all(some.rank()?);
    Ok(if axes.is_empty() { some } else { some.reduce(ReduceOp::Or, &axes, false) })
}

/// How a float lies in its bits: the integer of its size, and how many bits its fraction has.
fn layout(elem: Elem) -> Result<(Elem, u32)> {
    Ok(match elem.dtype {
        DType::F16 => (Elem::I16, 10),
        DType::BF16 => (Elem::I16, 7),
        DType::F32 => (Elem::I32, 23),
        DType::F64 => (Elem::I64, 52),
        _ => return Err(Refusal::new(format!("the bits of {elem} cannot be taken apart"))),
    })
}

/// The same bits as another type.
fn as_bits(x: Tensor<'_>, elem: Elem) -> Tensor<'_> {
    x.apply_to(ScalarOp::Bitcast { to: elem.dtype }, elem)
}

fn nextafter<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, y) = c.x(0).with(c.needed(1, "other"));
    let (int, _) = layout(x.elem())?;
    // Away from 0 the bits count upwards on both sides.
    let towards = x.below(y) ^ x.above(0.0);
    let step = towards.select(c.cx.int_of(int, -1), 1);
    let (bits, other) = (as_bits(x, int), as_bits(y, int));
    let moved = bits + step;
    let least = other & (i64::MIN >> (64 - int.dtype.bits())) | 1;
    let moved = as_bits(x.equals(0.0).select(least, moved), x.elem());
    let result = x.equals(y).select(y, moved);
    let nan = x.is_nan() | y.is_nan();
    Ok(nan.select(x + y, result))
}

fn frexp<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (narrow, x) = (c.x(0).elem(), c.x(0).wide());
    if !narrow.is_float() {
        return Err(Refusal::new(format!("{narrow} has no fraction")).help("convert to a float first"));
    }
    let (int, fraction) = layout(x.elem())?;
    let width = int.dtype.bits();
    // The exponent's bits, all of them set; that of numbers from 1/2 to 1.
    let (all, half) = ((1i64 << (width - 1 - fraction)) - 1, (1i64 << (width - 2 - fraction)) - 2);
    let lift = i64::from(fraction) + 2;
    let small = x.abs().below(2f64.powi(-(half as i32) + 1));
    let bits = as_bits(small.select(x * 2f64.powi(lift as i32), x), int);
    let logical = ScalarOp::Shr { sign: Signedness::Unsigned };
    let exponent = bits.apply(logical, &[c.cx.int_of(int, fraction.into())]) & all;
    let infinite = exponent.equals(all);
    let exponent = exponent - small.select(c.cx.int_of(int, lift + half), half);
    let mantissa = as_bits(bits & !(all << fraction) | (half << fraction), x.elem());
    let itself = x.equals(0.0) | infinite;
    let (mantissa, exponent) = (itself.select(x, mantissa), itself.select(0, exponent));
    Ok([mantissa.to(narrow), exponent.to(Elem::I32)])
}
