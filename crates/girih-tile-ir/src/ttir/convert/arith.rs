//! `arith` and `math`: elementwise operations, conversions, constants.

use super::*;
use crate::num::op::{Predicate, Rounding};
use crate::ttir::ast::Attr as TtAttr;

pub fn constant(c: &mut Conv, op: &Op) -> Res<()> {
    let Some(TtAttr::Elements(elements)) = op.attr("value") else {
        return c.refuse(op, "`arith.constant` has no number of a type that is supported");
    };
    let v = c.constant(elements.clone());
    c.bind(op, 0, v)
}

/// A value that nobody may use: zero.
pub fn poison(c: &mut Conv, op: &Op) -> Res<()> {
    let ty = c.gives(op, 0)?;
    let v = match ty.elem {
        Elem::Num(d) => c.fill(&ty.shape, d, 0),
        Elem::Ptr(_) => {
            let zero = c.fill(&ty.shape, DType::I64, 0);
            c.tile(Opcode::IntToPtr, &[&[zero]], vec![], ty)
        }
    };
    c.bind(op, 0, v)
}

fn predicate(word: &str) -> Option<Predicate> {
    Some(match word {
        "eq" => Predicate::Equal,
        "ne" => Predicate::NotEqual,
        "lt" => Predicate::LessThan,
        "le" => Predicate::LessThanOrEqual,
        "gt" => Predicate::GreaterThan,
        "ge" => Predicate::GreaterThanOrEqual,
        _ => return None,
    })
}

/// The predicate's word, or the word of its number in the generic form.
fn predicate_word<'a>(op: &'a Op, numbers: &[&'a str]) -> &'a str {
    match (op.words.first(), op.int("predicate")) {
        (Some((_, word)), _) => word,
        (None, Some(n)) => usize::try_from(n).ok().and_then(|n| numbers.get(n)).copied().unwrap_or(""),
        (None, None) => "",
    }
}

pub fn compare_integers(c: &mut Conv, op: &Op) -> Res<()> {
    let word = predicate_word(op, &["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]);
    let (sign, rest) = match word.strip_prefix('u') {
        Some(rest) => (Signedness::Unsigned, rest),
        None => (Signedness::Signed, word.strip_prefix('s').unwrap_or(word)),
    };
    let Some(predicate) = predicate(rest) else {
        return c.error(op, Code::UnknownWord, format!("`{word}` is not a comparison of integers"));
    };
    let attrs = vec![(AttrKey::Predicate, Attr::Predicate(predicate)), (AttrKey::Signedness, Attr::Signedness(sign))];
    // Addresses compare as integers.
    let args = c.args(op)?;
    c.count(op, 2..=2)?;
    let numbers: Vec<ValueId> = args.into_iter().map(|v| address(c, v)).collect();
    let ty = c.gives(op, 0)?;
    let v = c.tile(Opcode::CmpI, &[&numbers[..1], &numbers[1..]], attrs, ty);
    c.bind(op, 0, v)
}

/// Pointers as integers; numbers as they are.
fn address(c: &mut Conv, v: ValueId) -> ValueId {
    match c.tile_ty(v).elem {
        Elem::Ptr(_) => c.converted(Opcode::PtrToInt, v, DType::I64, vec![]),
        Elem::Num(_) => v,
    }
}

pub fn compare_floats(c: &mut Conv, op: &Op) -> Res<()> {
    const WORDS: [&str; 16] = [
        "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno",
        "true",
    ];
    let word = predicate_word(op, &WORDS);
    let args = c.args(op)?;
    c.count(op, 2..=2)?;
    let ty = c.gives(op, 0)?;
    let compare = |c: &mut Conv, p: Predicate, ordered: bool, a: ValueId, b: ValueId| {
        let attrs = vec![(AttrKey::Predicate, Attr::Predicate(p)), (AttrKey::Ordering, Attr::Ordered(ordered))];
        c.tile(Opcode::CmpF, &[&[a], &[b]], attrs, ty.clone())
    };
    let (a, b) = (args[0], args[1]);
    let v = match word {
        "false" | "true" => c.fill(&ty.shape, DType::I1, u64::from(word == "true")),
        // These test for a NaN: a number equals itself, a NaN does not.
        "ord" | "uno" => {
            let (p, ordered, both) = match word {
                "ord" => (Predicate::Equal, true, Opcode::AndI),
                _ => (Predicate::NotEqual, false, Opcode::OrI),
            };
            let (x, y) = (compare(c, p, ordered, a, a), compare(c, p, ordered, b, b));
            c.same(both, &[x, y])
        }
        _ => {
            let (ordered, rest) = (word.starts_with('o'), word.get(1..).unwrap_or(""));
            let Some(p) = predicate(rest) else {
                return c.error(op, Code::UnknownWord, format!("`{word}` is not a comparison of floats"));
            };
            compare(c, p, ordered, a, b)
        }
    };
    c.bind(op, 0, v)
}

/// Without the sign, which is the highest bit of an 8-bit float; alone it is the NaN of a format without a negative zero.
pub fn magnitude(c: &mut Conv, op: &Op) -> Res<()> {
    let v = c.arg(op, 0)?;
    let dtype = c.dtype(op, v)?;
    if dtype.bits() != 8 {
        return c.simple(op, Opcode::AbsF);
    }
    let shape = c.tile_ty(v).shape.clone();
    let bits = c.converted(Opcode::Bitcast, v, DType::I8, vec![]);
    let rest = c.fill(&shape, DType::I8, 0x7f);
    let mut size = c.same(Opcode::AndI, &[bits, rest]);
    if matches!(dtype, DType::F8E4M3FNUZ | DType::F8E5M2FNUZ) {
        let nan = c.fill(&shape, DType::I8, 0x80);
        let is_nan = c.integers_compare(Predicate::Equal, Signedness::Signed, bits, nan);
        size = c.choose(is_nan, bits, size);
    }
    let v = c.converted(Opcode::Bitcast, size, dtype, vec![]);
    c.bind(op, 0, v)
}

pub fn propagating(c: &mut Conv, op: &Op, opcode: Opcode) -> Res<()> {
    c.plain(op, opcode, vec![(AttrKey::PropagateNan, Attr::Unit)])
}

/// min(max(x, lo), hi); a NaN of x stays only where `propagateNan = all`.
pub fn clamp(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 3..=3)?;
    let args = c.args(op)?;
    let all = match (op.text("propagateNan"), op.int("propagateNan")) {
        (Some(word), _) => word == "all",
        (None, Some(n)) => n != 0,
        (None, None) => false,
    };
    let attrs = || if all { vec![(AttrKey::PropagateNan, Attr::Unit)] } else { vec![] };
    let low = c.same_with(Opcode::MaxF, &[args[0], args[1]], attrs());
    let v = c.same_with(Opcode::MinF, &[low, args[2]], attrs());
    c.bind(op, 0, v)
}

pub fn rounded_division(c: &mut Conv, op: &Op, sign: Signedness, up: bool) -> Res<()> {
    let rounding = if up { Rounding::PositiveInf } else { Rounding::NegativeInf };
    let attrs = vec![(AttrKey::Signedness, Attr::Signedness(sign)), (AttrKey::Rounding, Attr::Rounding(rounding))];
    c.plain(op, Opcode::DivI, attrs)
}

/// The low and the high half of a product.
pub fn extended_product(c: &mut Conv, op: &Op, sign: Signedness) -> Res<()> {
    c.count(op, 2..=2)?;
    let args = c.args(op)?;
    c.dtype(op, args[0])?;
    let low = c.same(Opcode::MulI, &args);
    let high = match sign {
        Signedness::Signed => library::integers::high_of_signed(c, args[0], args[1]),
        Signedness::Unsigned => c.same(Opcode::MulHiI, &args),
    };
    c.bind(op, 0, low)?;
    c.bind(op, 1, high)
}

impl Conv<'_> {
    pub fn choose(&mut self, cond: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        let ty = self.tile_ty(yes).clone();
        self.tile(Opcode::Select, &[&[cond], &[yes], &[no]], vec![], ty)
    }
    pub fn integers_compare(&mut self, p: Predicate, sign: Signedness, a: ValueId, b: ValueId) -> ValueId {
        let attrs = vec![(AttrKey::Predicate, Attr::Predicate(p)), (AttrKey::Signedness, Attr::Signedness(sign))];
        self.converted_pair(Opcode::CmpI, a, b, attrs)
    }
    pub fn floats_compare(&mut self, p: Predicate, a: ValueId, b: ValueId) -> ValueId {
        let attrs = vec![(AttrKey::Predicate, Attr::Predicate(p)), (AttrKey::Ordering, Attr::Ordered(true))];
        self.converted_pair(Opcode::CmpF, a, b, attrs)
    }
    fn converted_pair(&mut self, opcode: Opcode, a: ValueId, b: ValueId, attrs: Vec<(AttrKey, Attr)>) -> ValueId {
        let shape = self.tile_ty(a).shape.clone();
        self.tile(opcode, &[&[a], &[b]], attrs, TileType::of(shape, Elem::Num(DType::I1)))
    }
}

/// The condition may be one truth value for a whole tile.
pub fn select(c: &mut Conv, op: &Op) -> Res<()> {
    c.count(op, 3..=3)?;
    let args = c.args(op)?;
    let shape = c.tile_ty(args[1]).shape.clone();
    let cond = if c.tile_ty(args[0]).shape.is_empty() { c.spread(args[0], &shape) } else { args[0] };
    let v = c.choose(cond, args[1], args[2]);
    c.bind(op, 0, v)
}

pub fn extend(c: &mut Conv, op: &Op, sign: Signedness) -> Res<()> {
    c.signed(op, Opcode::ExtI, sign)
}

/// To an integer that may be wider, narrower or the same.
pub fn resize(c: &mut Conv, op: &Op, sign: Signedness) -> Res<()> {
    let v = c.arg(op, 0)?;
    let Elem::Num(to) = c.gives(op, 0)?.elem else { return c.refuse(op, "an index is not a pointer") };
    let from = c.dtype(op, v)?;
    let v = match to.bits().cmp(&from.bits()) {
        std::cmp::Ordering::Equal => v,
        std::cmp::Ordering::Less => c.converted(Opcode::TruncI, v, to, vec![]),
        std::cmp::Ordering::Greater => {
            c.converted(Opcode::ExtI, v, to, vec![(AttrKey::Signedness, Attr::Signedness(sign))])
        }
    };
    c.bind(op, 0, v)
}

/// Between floats, rounded to the nearest unless it says otherwise.
pub fn convert_float(c: &mut Conv, op: &Op) -> Res<()> {
    let v = c.arg(op, 0)?;
    let from = c.dtype(op, v)?;
    let Elem::Num(to) = c.gives(op, 0)?.elem else { return c.refuse(op, "a float does not become a pointer") };
    let rounding = match (op.text("rounding"), op.int("rounding")) {
        (Some("rtz"), _) | (None, Some(0)) => Rounding::Zero,
        (Some("rtne") | None, _) => Rounding::NearestEven,
        (Some(word), _) => return c.refuse(op, format!("`{}` does not round as `{word}` says", op.row.name)),
    };
    if from == to {
        return c.bind(op, 0, v);
    }
    let v = saturated(c, v, from, to);
    let attrs = match rounding {
        Rounding::NearestEven => vec![],
        _ if to.bits() == 8 && from.is_base_float() => {
            let v = chopped(c, v, from, to);
            return c.bind(op, 0, v);
        }
        other => vec![(AttrKey::Rounding, Attr::Rounding(other))],
    };
    let v = c.converted(Opcode::FToF, v, to, attrs);
    c.bind(op, 0, v)
}

/// Rounded to an 8-bit float towards zero: where the nearest one is greater, the one before it, whose code is one less.
fn chopped(c: &mut Conv, v: ValueId, from: DType, to: DType) -> ValueId {
    let shape = c.tile_ty(v).shape.clone();
    let near = c.converted(Opcode::FToF, v, to, vec![]);
    let back = c.converted(Opcode::FToF, near, from, vec![]);
    let (found, limit) = (c.same(Opcode::AbsF, &[back]), c.same(Opcode::AbsF, &[v]));
    let beyond = c.floats_compare(Predicate::GreaterThan, found, limit);
    let code = c.converted(Opcode::Bitcast, near, DType::I8, vec![]);
    let one = c.fill(&shape, DType::I8, 1);
    let mut before = c.same(Opcode::SubI, &[code, one]);
    if matches!(to, DType::F8E4M3FNUZ | DType::F8E5M2FNUZ) {
        // The format has one zero.
        let (nan, zero) = (c.fill(&shape, DType::I8, 0x80), c.fill(&shape, DType::I8, 0));
        let none = c.integers_compare(Predicate::Equal, Signedness::Signed, before, nan);
        before = c.choose(none, zero, before);
    }
    let code = c.choose(beyond, before, code);
    c.converted(Opcode::Bitcast, code, to, vec![])
}

/// Limits a value to the range of the 8-bit float that it becomes, infinities too; a NaN stays a NaN.
fn saturated(c: &mut Conv, v: ValueId, from: DType, to: DType) -> ValueId {
    let greatest = match to {
        DType::F8E4M3FN => 448.0,
        DType::F8E4M3FNUZ => 240.0,
        DType::F8E5M2 | DType::F8E5M2FNUZ => 57344.0,
        _ => return v,
    };
    if !from.is_base_float() {
        return v;
    }
    let shape = c.tile_ty(v).shape.clone();
    let (low, high) = (c.float(&shape, from, -greatest), c.float(&shape, from, greatest));
    let nan = || vec![(AttrKey::PropagateNan, Attr::Unit)];
    let v = c.same_with(Opcode::MaxF, &[v, low], nan());
    c.same_with(Opcode::MinF, &[v, high], nan())
}

/// The same bits: numbers of one width, or pointers.
pub fn bitcast(c: &mut Conv, op: &Op) -> Res<()> {
    let v = c.arg(op, 0)?;
    let (from, ty) = (c.tile_ty(v).clone(), c.gives(op, 0)?);
    if from.elem == ty.elem && from.shape == ty.shape {
        return c.bind(op, 0, v);
    }
    let opcode = match (from.elem, ty.elem) {
        (Elem::Num(_), Elem::Num(_)) => Opcode::Bitcast,
        (Elem::Ptr(_), Elem::Ptr(_)) => Opcode::PtrToPtr,
        (Elem::Num(_), Elem::Ptr(_)) => Opcode::IntToPtr,
        (Elem::Ptr(_), Elem::Num(_)) => Opcode::PtrToInt,
    };
    let v = c.tile(opcode, &[&[v]], vec![], ty);
    c.bind(op, 0, v)
}
