//! Functions that take numbers apart: the bits of floats, and divisors of integers.

use super::types::{needed, pair};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::repeat::Rounds;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, MAX_EXTENT, ReduceOp};
use crate::index::Ix;
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "divisors",
        handles: &["aten.gcd", "aten.lcm"],
        doc: "The greatest common divisor by Euclid's algorithm, in rounds until no element has a remainder, and the least common \
              multiple by it.\n\n`y = gcd(a, b)` --> `while any(b != 0): a, b = b, a rem b`, `y = abs(a)`",
        run: divisors,
    },
    Decomposition {
        name: "nextafter",
        handles: &["aten.nextafter"],
        doc: "The next float towards another.\n\n`y = nextafter(a, b)` --> the bits of `a` plus or minus 1",
        run: nextafter,
    },
    Decomposition {
        name: "frexp",
        handles: &["aten.frexp"],
        doc: "A fraction from 1/2 to 1 and a power of two.\n\n`m, e = frexp(x)` --> the bits of `x`",
        run: frexp,
    },
];

fn divisors(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, needed(b, call, 1, "other")?);
    let (x, y) = pair(b, x, y)?;
    let elem = b.elem(x);
    if elem.is_float() || elem.is_bool() {
        return Err(Refusal::new(format!("{elem} has no divisors")).help("convert to integers first"));
    }
    let shape = b.broadcast_shape(&[b.shape(x), b.shape(y)])?;
    let (x, y) = (spread(b, x, &shape)?, spread(b, y, &shape)?);
    let (p, q) = (b.abs(x)?, b.abs(y)?);
    let goes = some_left(b, q)?;
    let rounds = Ix::Const(MAX_EXTENT);
    let of = Rounds { rounds, conditional: true, carried: &[goes, p, q], rows: &[], read: &[], given: &[] };
    let results = b.repeat(&of, |b, state, _, _| {
        let [_, p, q] = *state else { return Err(Refusal::new("a loop lost its state")) };
        let (zero, one) = (b.scalar_like(q, 0.0), b.scalar_like(q, 1.0));
        let done = b.compare(Predicate::Equal, q, zero)?;
        let divisor = b.select(done, one, q)?;
        let rest = b.rem(p, divisor)?;
        let (p, q) = (b.select(done, p, q)?, b.select(done, zero, rest)?);
        Ok((vec![some_left(b, q)?, p, q], vec![]))
    })?;
    let gcd = results.get(1).copied().ok_or_else(|| Refusal::new("a loop lost its results"))?;
    if call.name == "aten.gcd" {
        return Ok(vec![gcd]);
    }
    let (zero, one) = (b.scalar_like(gcd, 0.0), b.scalar_like(gcd, 1.0));
    let none = b.compare(Predicate::Equal, gcd, zero)?;
    let divisor = b.select(none, one, gcd)?;
    let part = b.div(x, divisor)?;
    // As in C: narrow integers multiply in 32 bits.
    let wide = if elem.dtype.bits() < 32 { Elem::I32 } else { elem };
    let (part, other) = (b.convert(part, wide)?, b.convert(y, wide)?);
    let product = b.mul(part, other)?;
    let product = b.abs(product)?;
    let product = b.convert(product, elem)?;
    Ok(vec![b.select(none, zero, product)?])
}

/// An operand as a tensor of a shape.
fn spread(b: &mut Builder<'_>, x: Arg, shape: &[Ix]) -> Result<Arg> {
    match x {
        Arg::Value(_) => b.broadcast_to(x, shape),
        number => Ok(b.full(number, b.elem(number), shape.to_vec())),
    }
}

/// Whether an element is not 0.
fn some_left(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    let some = b.convert(x, Elem::BOOL)?;
    let axes: Vec<usize> = (0..b.rank(some)).collect();
    if axes.is_empty() { Ok(some) } else { b.reduce(ReduceOp::Or, some, &axes, false) }
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

fn as_bits(b: &mut Builder<'_>, x: Arg, int: Elem) -> Result<Arg> {
    b.elementwise_to(ScalarOp::Bitcast { to: int.dtype }, &[x], int)
}

fn nextafter(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, needed(b, call, 1, "other")?);
    let (x, y) = pair(b, x, y)?;
    let elem = b.elem(x);
    let (int, _) = layout(elem)?;
    let zero = b.scalar_like(x, 0.0);
    let (up, above) = (b.compare(Predicate::LessThan, x, y)?, b.compare(Predicate::GreaterThan, x, zero)?);
    // Away from 0 the bits count upwards on both sides.
    let towards = b.elementwise(ScalarOp::Xor, &[up, above])?;
    let (more, less) = (ir::int_scalar(int, 1), ir::int_scalar(int, -1));
    let step = b.select(towards, less, more)?;
    let (bits, other) = (as_bits(b, x, int)?, as_bits(b, y, int)?);
    let moved = b.add(bits, step)?;
    let sign = ir::int_scalar(int, i64::MIN >> (64 - int.dtype.bits()));
    let least = b.and(other, sign)?;
    let least = b.or(least, more)?;
    let is_zero = b.compare(Predicate::Equal, x, zero)?;
    let moved = b.select(is_zero, least, moved)?;
    let moved = b.elementwise_to(ScalarOp::Bitcast { to: elem.dtype }, &[moved], elem)?;
    let same = b.compare(Predicate::Equal, x, y)?;
    let result = b.select(same, y, moved)?;
    let (x_nan, y_nan) = (b.compare(Predicate::NotEqual, x, x)?, b.compare(Predicate::NotEqual, y, y)?);
    let nan = b.or(x_nan, y_nan)?;
    let either = b.add(x, y)?;
    Ok(vec![b.select(nan, either, result)?])
}

fn frexp(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    if !narrow.is_float() {
        return Err(Refusal::new(format!("{narrow} has no fraction")).help("convert to a float first"));
    }
    let x = b.convert(x, wide)?;
    let (int, fraction) = layout(wide)?;
    let width = int.dtype.bits();
    // The exponent's bits, all of them set; that of numbers from 1/2 to 1.
    let (all, half) = ((1i64 << (width - 1 - fraction)) - 1, (1i64 << (width - 2 - fraction)) - 2);
    let least = b.scalar_like(x, 2f64.powi(-(half as i32) + 1));
    let lift = i64::from(fraction) + 2;
    let (up, none) = (b.scalar_like(x, 2f64.powi(lift as i32)), ir::int_scalar(int, 0));
    let size = b.abs(x)?;
    let small = b.compare(Predicate::LessThan, size, least)?;
    let lifted = b.mul(x, up)?;
    let scaled = b.select(small, lifted, x)?;
    let bits = as_bits(b, scaled, int)?;
    let shift = ir::int_scalar(int, i64::from(fraction));
    let exponent = b.elementwise(ScalarOp::Shr { sign: Signedness::Unsigned }, &[bits, shift])?;
    let exponent = b.and(exponent, ir::int_scalar(int, all))?;
    let infinite = b.compare(Predicate::Equal, exponent, ir::int_scalar(int, all))?;
    let lowered = b.select(small, ir::int_scalar(int, lift + half), ir::int_scalar(int, half))?;
    let exponent = b.sub(exponent, lowered)?;
    let rest = b.and(bits, ir::int_scalar(int, !(all << fraction)))?;
    let rest = b.or(rest, ir::int_scalar(int, half << fraction))?;
    let mantissa = b.elementwise_to(ScalarOp::Bitcast { to: wide.dtype }, &[rest], wide)?;
    let zero = b.scalar_like(x, 0.0);
    let is_zero = b.compare(Predicate::Equal, x, zero)?;
    let itself = b.or(is_zero, infinite)?;
    let (mantissa, exponent) = (b.select(itself, x, mantissa)?, b.select(itself, none, exponent)?);
    Ok(vec![b.convert(mantissa, narrow)?, b.convert(exponent, Elem::I32)?])
}
