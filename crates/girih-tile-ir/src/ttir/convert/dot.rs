//! Matrix products.

use super::*;
use crate::num::op::Predicate;

/// How the operands of an f32 product are rounded.
enum Precision {
    Exact,
    Tf32,
    Tf32x3,
    /// Sums of this many products of bf16 parts.
    Bf16(usize),
}

fn precision(c: &Conv, op: &Op) -> Res<Precision> {
    const WORDS: [&str; 5] = ["tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"];
    let word = match (op.text("inputPrecision"), op.int("inputPrecision")) {
        (Some(word), _) => word,
        (None, Some(n)) => usize::try_from(n).ok().and_then(|n| WORDS.get(n)).copied().unwrap_or("?"),
        (None, None) => "ieee",
    };
    Ok(match word {
        "ieee" => Precision::Exact,
        "tf32" => Precision::Tf32,
        "tf32x3" => Precision::Tf32x3,
        "bf16x3" => Precision::Bf16(3),
        "bf16x6" => Precision::Bf16(6),
        _ => return c.error(op, Code::UnknownWord, format!("`{word}` is not a precision of products")),
    })
}

impl Conv<'_> {
    fn product(&mut self, a: ValueId, b: ValueId, acc: ValueId) -> ValueId {
        let ty = self.tile_ty(acc).clone();
        self.tile(Opcode::MmaF, &[&[a], &[b], &[acc]], vec![], ty)
    }
    pub(super) fn float_of(&mut self, v: ValueId, dtype: DType) -> ValueId {
        if self.tile_ty(v).elem == Elem::Num(dtype) { v } else { self.converted(Opcode::FToF, v, dtype, vec![]) }
    }
    /// An f32 as a sum of numbers of a narrower type, the greatest first; each as an f32 that the type has too.
    fn parts(&mut self, v: ValueId, dtype: DType, n: usize) -> Vec<ValueId> {
        let mut rest = v;
        let mut out = vec![];
        for i in 0..n {
            let narrow = self.float_of(rest, dtype);
            out.push(narrow);
            if i + 1 < n {
                let wide = self.float_of(narrow, DType::F32);
                rest = self.same(Opcode::SubF, &[rest, wide]);
            }
        }
        out
    }
}

pub fn dot(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 3..=3)?;
    let (mut a, mut b, acc) = (c.arg(op, 0)?, c.arg(op, 1)?, c.arg(op, 2)?);
    let (x, y, z) = (c.dtype(op, a)?, c.dtype(op, b)?, c.dtype(op, acc)?);
    if x.is_int() {
        if (x, y, z) != (DType::I8, DType::I8, DType::I32) {
            return c.refuse(op, format!("a product of {x} and {y} into {z} is not supported; i8 accumulates in i32"));
        }
        let ty = c.tile_ty(acc).clone();
        let signs = [AttrKey::SignednessLhs, AttrKey::SignednessRhs].map(|k| (k, Attr::Signedness(Signedness::Signed)));
        let v = c.tile(Opcode::MmaI, &[&[a], &[b], &[acc]], signs.to_vec(), ty);
        return c.bind(op, 0, v);
    }
    // f16 has all numbers of these two.
    let rare = |d: DType| matches!(d, DType::F8E4M3FNUZ | DType::F8E5M2FNUZ);
    if rare(x) && x == y {
        (a, b) = (c.float_of(a, DType::F16), c.float_of(b, DType::F16));
    }
    if x != y {
        // Both kinds of 8-bit floats are numbers of f16.
        let small = |d: DType| d.bits() <= 8;
        let to = if small(x) && small(y) { DType::F16 } else { DType::F32 };
        (a, b) = (c.float_of(a, to), c.float_of(b, to));
    }
    let x = c.dtype(op, a)?;
    // Sums of bf16 are made in f32 and rounded once.
    let wide = match (x, z) {
        (_, DType::BF16) | (DType::BF16 | DType::F32, DType::F16) => DType::F32,
        _ => z,
    };
    let mut sum = c.float_of(acc, wide);
    sum = match (x, precision(c, op)?) {
        (DType::F32, Precision::Tf32) => {
            let (a, b) = (c.float_of(a, DType::TF32), c.float_of(b, DType::TF32));
            c.product(a, b, sum)
        }
        (DType::F32, Precision::Tf32x3) => several(c, a, b, sum, DType::TF32, 2, 3),
        (DType::F32, Precision::Bf16(3)) => several(c, a, b, sum, DType::BF16, 2, 3),
        (DType::F32, Precision::Bf16(n)) => several(c, a, b, sum, DType::BF16, 3, n),
        _ => c.product(a, b, sum),
    };
    let v = c.float_of(sum, z);
    c.bind(op, 0, v)
}

/// The sum of the products of parts, the smallest first.
fn several(c: &mut Conv, a: ValueId, b: ValueId, acc: ValueId, dtype: DType, parts: usize, n: usize) -> ValueId {
    let (a, b) = (c.parts(a, dtype, parts), c.parts(b, dtype, parts));
    let mut pairs: Vec<(usize, usize)> = (0..parts).flat_map(|i| (0..parts).map(move |j| (i, j))).collect();
    pairs.sort_by_key(|(i, j)| i + j);
    pairs.truncate(n);
    let mut sum = acc;
    for (i, j) in pairs.into_iter().rev() {
        sum = c.product(a[i], b[j], sum);
    }
    sum
}

/// A product of 4-, 8- or 16-bit floats, with scales of powers of two along k: computed of the scaled numbers in f32.
pub fn scaled(c: &mut Conv, op: &Op) -> Res<()> {
    let n = op.operands.len();
    let scales: Vec<usize> = op.words.iter().filter(|(_, w)| w == "scale").map(|(at, _)| *at).collect();
    if n < 3 || n != 3 + scales.len() {
        return c.refuse(op, "this form of `tt.dot_scaled` is not supported");
    }
    let mut next = 0;
    let mut side = |c: &Conv| -> Res<(ValueId, Option<ValueId>)> {
        let v = c.arg(op, next)?;
        next += 1;
        let scale = if scales.contains(&next) {
            next += 1;
            Some(c.arg(op, next - 1)?)
        } else {
            None
        };
        Ok((v, scale))
    };
    let (a, a_scale) = side(c)?;
    let (b, b_scale) = side(c)?;
    let acc = c.arg(op, n - 1)?;
    // Pairs of 4-bit floats lie along k unless it says otherwise.
    let pairs_along_k = |key: &str| op.int(key) != Some(0);
    let a = numbers(c, op, a, op.text("lhs").unwrap_or(""), true, pairs_along_k("lhs_k_pack"))?;
    let b = numbers(c, op, b, op.text("rhs").unwrap_or(""), false, pairs_along_k("rhs_k_pack"))?;
    let a = scaled_by(c, op, a, a_scale, true)?;
    let b = scaled_by(c, op, b, b_scale, false)?;
    let z = c.dtype(op, acc)?;
    let sum = c.float_of(acc, DType::F32);
    let sum = c.product(a, b, sum);
    let v = c.float_of(sum, z);
    c.bind(op, 0, v)
}

/// The last two dimensions change places.
fn swapped(c: &mut Conv, v: ValueId) -> ValueId {
    let mut ty = c.tile_ty(v).clone();
    let rank = ty.shape.len();
    let mut order: Vec<i32> = (0..rank as i32).collect();
    if rank >= 2 {
        order.swap(rank - 1, rank - 2);
        ty.shape.swap(rank - 1, rank - 2);
    }
    c.tile(Opcode::Permute, &[&[v]], vec![(AttrKey::Permutation, Attr::I32s(order))], ty)
}

/// An operand in f32. The left one has k last, the right one k before last.
fn numbers(c: &mut Conv, op: &Op, v: ValueId, kind: &str, left: bool, pairs_along_k: bool) -> Res<ValueId> {
    Ok(match kind {
        "e2m1" if left == pairs_along_k => halves(c, v),
        "e2m1" => {
            let v = swapped(c, v);
            let v = halves(c, v);
            swapped(c, v)
        }
        "e4m3" => floats(c, v, DType::F8E4M3FN),
        "e5m2" => floats(c, v, DType::F8E5M2),
        "bf16" | "fp16" => c.float_of(v, DType::F32),
        other => return c.refuse(op, format!("an operand of `tl.dot_scaled` of the type `{other}` is not supported")),
    })
}

/// An operand times its scales, which have k last.
fn scaled_by(c: &mut Conv, op: &Op, v: ValueId, scale: Option<ValueId>, left: bool) -> Res<ValueId> {
    let mut v = if left { v } else { swapped(c, v) };
    if let Some(scale) = scale {
        let dtype = c.dtype(op, scale)?;
        let factor = match dtype {
            DType::I8 => {
                let exponent = c.converted(Opcode::Bitcast, scale, DType::F8E8M0FNU, vec![]);
                c.float_of(exponent, DType::F32)
            }
            d if d.is_float() => c.float_of(scale, DType::F32),
            d => return c.refuse(op, format!("scales of `tl.dot_scaled` of the type {d} are not supported")),
        };
        let (whole, blocks) = (c.tile_ty(v).shape.clone(), c.tile_ty(factor).shape.clone());
        let (Some(&k), Some(&n)) = (whole.last(), blocks.last()) else {
            return c.error(op, Code::BadRank, "an operand of `tl.dot_scaled` is a scalar");
        };
        if n == 0 || k % n != 0 || whole.len() != blocks.len() {
            return c.error(op, Code::BadShape, "the scales of `tl.dot_scaled` do not fit its operand");
        }
        let mut line = blocks.clone();
        line.push(1);
        let factor = c.reshaped(factor, &line);
        if let Some(last) = line.last_mut() {
            *last = k / n;
        }
        let factor = c.spread(factor, &line);
        let factor = c.reshaped(factor, &whole);
        v = c.same(Opcode::MulF, &[v, factor]);
    }
    Ok(if left { v } else { swapped(c, v) })
}

fn floats(c: &mut Conv, v: ValueId, dtype: DType) -> ValueId {
    let v = if c.tile_ty(v).elem == Elem::Num(DType::I8) { c.converted(Opcode::Bitcast, v, dtype, vec![]) } else { v };
    c.float_of(v, DType::F32)
}

/// Pairs of e2m1 in bytes along the last dimension, the first in the low half, as f32.
fn halves(c: &mut Conv, v: ValueId) -> ValueId {
    let shape = c.tile_ty(v).shape.clone();
    let unsigned = || vec![(AttrKey::Signedness, Attr::Signedness(Signedness::Unsigned))];
    let wide = c.converted(Opcode::ExtI, v, DType::I32, unsigned());
    let mut both = vec![];
    for shift in [0, 4] {
        let shift = c.fill(&shape, DType::I32, shift);
        let nibble = c.same_with(Opcode::ShrI, &[wide, shift], unsigned());
        let mask = c.fill(&shape, DType::I32, 7);
        let code = c.same(Opcode::AndI, &[nibble, mask]);
        // 0, 0.5, 1, 1.5, 2, 3, 4, 6: twice the number is the code up to 3, then (code & 1 | 2) << (code >> 1) - 1.
        let one = c.fill(&shape, DType::I32, 1);
        let two = c.fill(&shape, DType::I32, 2);
        let low = c.same(Opcode::AndI, &[code, one]);
        let significand = c.same(Opcode::OrI, &[low, two]);
        let exponent = c.same_with(Opcode::ShrI, &[code, one], unsigned());
        let least = c.same_with(Opcode::MaxI, &[exponent, one], unsigned());
        let places = c.same(Opcode::SubI, &[least, one]);
        let shifted = c.same(Opcode::ShlI, &[significand, places]);
        let small = c.integers_compare(Predicate::LessThan, Signedness::Signed, exponent, one);
        let doubled = c.choose(small, code, shifted);
        let signed = vec![(AttrKey::Signedness, Attr::Signedness(Signedness::Signed))];
        let number = c.converted(Opcode::IToF, doubled, DType::F32, signed);
        let half = c.float(&shape, DType::F32, 0.5);
        let number = c.same(Opcode::MulF, &[number, half]);
        let eight = c.fill(&shape, DType::I32, 8);
        let sign = c.same(Opcode::AndI, &[nibble, eight]);
        let zero = c.fill(&shape, DType::I32, 0);
        let negative = c.integers_compare(Predicate::NotEqual, Signedness::Signed, sign, zero);
        let opposite = c.same(Opcode::NegF, &[number]);
        let number = c.choose(negative, opposite, number);
        let mut line = shape.clone();
        line.push(1);
        both.push(c.reshaped(number, &line));
    }
    let mut pair = shape.clone();
    pair.push(2);
    let dim = (AttrKey::Dim, Attr::Int(shape.len() as i64));
    let ty = TileType::of(pair, Elem::Num(DType::F32));
    let pairs = c.tile(Opcode::Cat, &[&both[..1], &both[1..]], vec![dim], ty);
    let mut whole = shape;
    if let Some(last) = whole.last_mut() {
        *last *= 2;
    }
    c.reshaped(pairs, &whole)
}
