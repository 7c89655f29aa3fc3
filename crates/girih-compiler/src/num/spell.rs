//! How scalar operations are spelled in printed graphs, loop and tile IR: `add.rz.ftz`, `max.nan`, `cmpf.lt`, `ext.u.i64`.
//!
//! A name is a base, `f` or `i` after it where the base belongs to both kinds of number and the declared type does
//! not tell, and a suffix per attribute that differs from the default. [`parse_op`] is the inverse of [`spell`].

use crate::num::op::{Predicate as P, Rounding as R, Signedness as S};
use crate::num::{DType, ScalarOp};

/// The kind of number an operation works on, where its base name is shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Any,
    Float,
    Int,
}

impl Class {
    pub(crate) fn of(dtype: DType) -> Class {
        if dtype.is_float() { Class::Float } else { Class::Int }
    }
    fn letter(self) -> &'static str {
        match self {
            Class::Any => "",
            Class::Float => "f",
            Class::Int => "i",
        }
    }
}

pub(crate) struct Row {
    base: &'static str,
    class: Class,
    /// With every attribute at its default.
    op: ScalarOp,
    pub(crate) arity: usize,
}

const fn row(base: &'static str, class: Class, arity: usize, op: ScalarOp) -> Row {
    Row { base, class, op, arity }
}

const N: R = R::NearestEven;

const TABLE: &[Row] = &[
    row("add", Class::Float, 2, ScalarOp::AddF { rounding: N, ftz: false }),
    row("sub", Class::Float, 2, ScalarOp::SubF { rounding: N, ftz: false }),
    row("mul", Class::Float, 2, ScalarOp::MulF { rounding: N, ftz: false }),
    row("div", Class::Float, 2, ScalarOp::DivF { rounding: N, ftz: false }),
    row("fma", Class::Any, 3, ScalarOp::Fma { rounding: N, ftz: false }),
    row("sqrt", Class::Any, 1, ScalarOp::Sqrt { rounding: N, ftz: false }),
    row("rsqrt", Class::Any, 1, ScalarOp::Rsqrt { ftz: false }),
    row("max", Class::Float, 2, ScalarOp::MaxF { nan: false, ftz: false }),
    row("min", Class::Float, 2, ScalarOp::MinF { nan: false, ftz: false }),
    row("neg", Class::Float, 1, ScalarOp::NegF),
    row("abs", Class::Float, 1, ScalarOp::AbsF),
    row("ceil", Class::Any, 1, ScalarOp::Ceil),
    row("floor", Class::Any, 1, ScalarOp::Floor),
    row("round", Class::Any, 1, ScalarOp::RoundEven),
    row("rem", Class::Float, 2, ScalarOp::RemF),
    row("exp", Class::Any, 1, ScalarOp::Exp),
    row("exp2", Class::Any, 1, ScalarOp::Exp2 { ftz: false }),
    row("log", Class::Any, 1, ScalarOp::Log),
    row("log2", Class::Any, 1, ScalarOp::Log2),
    row("sin", Class::Any, 1, ScalarOp::Sin),
    row("cos", Class::Any, 1, ScalarOp::Cos),
    row("tan", Class::Any, 1, ScalarOp::Tan),
    row("sinh", Class::Any, 1, ScalarOp::Sinh),
    row("cosh", Class::Any, 1, ScalarOp::Cosh),
    row("tanh", Class::Any, 1, ScalarOp::Tanh),
    row("erf", Class::Any, 1, ScalarOp::Erf),
    row("pow", Class::Any, 2, ScalarOp::Pow),
    row("atan2", Class::Any, 2, ScalarOp::Atan2),
    row("powi", Class::Any, 2, ScalarOp::PowI),
    row("cmpf", Class::Any, 2, ScalarOp::CmpF { pred: P::Equal, ordered: true }),
    row("add", Class::Int, 2, ScalarOp::AddI),
    row("sub", Class::Int, 2, ScalarOp::SubI),
    row("mul", Class::Int, 2, ScalarOp::MulI),
    row("mulhi", Class::Any, 2, ScalarOp::MulHi),
    row("div", Class::Int, 2, ScalarOp::DivI { sign: S::Signed, rounding: R::Zero }),
    row("rem", Class::Int, 2, ScalarOp::RemI { sign: S::Signed }),
    row("max", Class::Int, 2, ScalarOp::MaxI { sign: S::Signed }),
    row("min", Class::Int, 2, ScalarOp::MinI { sign: S::Signed }),
    row("shl", Class::Any, 2, ScalarOp::Shl),
    row("shr", Class::Any, 2, ScalarOp::Shr { sign: S::Signed }),
    row("neg", Class::Int, 1, ScalarOp::NegI),
    row("abs", Class::Int, 1, ScalarOp::AbsI),
    row("and", Class::Any, 2, ScalarOp::And),
    row("or", Class::Any, 2, ScalarOp::Or),
    row("xor", Class::Any, 2, ScalarOp::Xor),
    row("cmpi", Class::Any, 2, ScalarOp::CmpI { pred: P::Equal, sign: S::Signed }),
    row("select", Class::Any, 3, ScalarOp::Select),
    row("copy", Class::Any, 1, ScalarOp::Copy),
    row("ftof", Class::Any, 1, ScalarOp::FToF { to: DType::F32, rounding: N }),
    row("ftoi", Class::Any, 1, ScalarOp::FToI { to: DType::I32, sign: S::Signed }),
    row("itof", Class::Any, 1, ScalarOp::IToF { to: DType::F32, sign: S::Signed }),
    row("ext", Class::Any, 1, ScalarOp::ExtI { to: DType::I64, sign: S::Signed }),
    row("trunc", Class::Any, 1, ScalarOp::TruncI { to: DType::I32 }),
    row("bitcast", Class::Any, 1, ScalarOp::Bitcast { to: DType::I32 }),
    row("ptradd", Class::Any, 2, ScalarOp::PtrAdd),
    row("ptrtoint", Class::Any, 1, ScalarOp::PtrToInt),
    row("inttoptr", Class::Any, 1, ScalarOp::IntToPtr { to: DType::I8 }),
];

/// The attributes of an operation, each present where the operation has it.
#[derive(Default)]
struct Fields<'a> {
    rounding: Option<&'a mut R>,
    ftz: Option<&'a mut bool>,
    nan: Option<&'a mut bool>,
    sign: Option<&'a mut S>,
    pred: Option<&'a mut P>,
    ordered: Option<&'a mut bool>,
    to: Option<&'a mut DType>,
}

fn fields(op: &mut ScalarOp) -> Fields<'_> {
    use ScalarOp::*;
    let none = Fields::default();
    match op {
        AddF { rounding, ftz }
        | SubF { rounding, ftz }
        | MulF { rounding, ftz }
        | DivF { rounding, ftz }
        | Fma { rounding, ftz }
        | Sqrt { rounding, ftz } => Fields { rounding: Some(rounding), ftz: Some(ftz), ..none },
        Rsqrt { ftz } | Exp2 { ftz } => Fields { ftz: Some(ftz), ..none },
        MaxF { nan, ftz } | MinF { nan, ftz } => Fields { nan: Some(nan), ftz: Some(ftz), ..none },
        CmpF { pred, ordered } => Fields { pred: Some(pred), ordered: Some(ordered), ..none },
        DivI { sign, rounding } => Fields { sign: Some(sign), rounding: Some(rounding), ..none },
        RemI { sign } | MaxI { sign } | MinI { sign } | Shr { sign } => Fields { sign: Some(sign), ..none },
        CmpI { pred, sign } => Fields { pred: Some(pred), sign: Some(sign), ..none },
        FToF { to, rounding } => Fields { to: Some(to), rounding: Some(rounding), ..none },
        FToI { to, sign } | IToF { to, sign } | ExtI { to, sign } => Fields { to: Some(to), sign: Some(sign), ..none },
        TruncI { to } | Bitcast { to } | IntToPtr { to } => Fields { to: Some(to), ..none },
        NegF | AbsF | Ceil | Floor | RoundEven | RemF | Exp | Log | Log2 | Sin | Cos | Tan | Sinh | Cosh | Tanh
        | Erf | Pow | Atan2 | PowI | AddI | SubI | MulI | MulHi | Shl | NegI | AbsI | And | Or | Xor | Select
        | Copy | PtrAdd | PtrToInt => none,
    }
}

const ROUNDINGS: [(&str, R); 8] = [
    ("rn", R::NearestEven),
    ("rz", R::Zero),
    ("rm", R::NegativeInf),
    ("rp", R::PositiveInf),
    ("approx", R::Approx),
    ("full", R::Full),
    ("rzi", R::NearestIntToZero),
    ("rna", R::NearestAway),
];

const PREDICATES: [(&str, P); 6] = [
    ("eq", P::Equal),
    ("ne", P::NotEqual),
    ("lt", P::LessThan),
    ("le", P::LessThanOrEqual),
    ("gt", P::GreaterThan),
    ("ge", P::GreaterThanOrEqual),
];

fn name_of<T: PartialEq + Copy>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, v)| *v == value).map_or("?", |(n, _)| n)
}

fn value_of<T: Copy>(table: &[(&'static str, T)], name: &str) -> Option<T> {
    table.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
}

pub(crate) fn row_of(op: ScalarOp) -> &'static Row {
    let kind = std::mem::discriminant(&op);
    TABLE.iter().find(|r| std::mem::discriminant(&r.op) == kind).unwrap_or(&TABLE[0])
}

/// The operation's name where `declared` is the class of the value it defines.
pub(crate) fn spell(op: ScalarOp, declared: Class) -> String {
    let row = row_of(op);
    let mut out = row.base.to_string();
    if row.class != declared {
        out.push_str(row.class.letter());
    }
    let (mut mine, mut default) = (op, row.op);
    let (mine, default) = (fields(&mut mine), fields(&mut default));
    let mut suffix = |text: &str| {
        out.push('.');
        out.push_str(text);
    };
    if let Some(pred) = mine.pred {
        suffix(name_of(&PREDICATES, *pred));
    }
    if mine.ordered.is_some_and(|o| !*o) {
        suffix("un");
    }
    if mine.sign.is_some_and(|s| *s == S::Unsigned) {
        suffix("u");
    }
    if let (Some(r), Some(d)) = (mine.rounding, default.rounding)
        && r != d
    {
        suffix(name_of(&ROUNDINGS, *r));
    }
    if mine.nan.is_some_and(|n| *n) {
        suffix("nan");
    }
    if mine.ftz.is_some_and(|f| *f) {
        suffix("ftz");
    }
    if let Some(to) = mine.to {
        suffix(to.name());
    }
    out
}

/// The operation a name spells, where `declared` is the class of the value it defines.
pub(crate) fn parse_op(name: &str, declared: Class) -> Option<ScalarOp> {
    let mut parts = name.split('.');
    let base = parts.next()?;
    let row =
        TABLE.iter().find(|r| r.base == base && (r.class == Class::Any || r.class == declared)).or_else(|| {
            TABLE.iter().find(|r| r.class != Class::Any && base.strip_prefix(r.base) == Some(r.class.letter()))
        })?;
    let mut op = row.op;
    let f = fields(&mut op);
    let (needs_pred, needs_to) = (f.pred.is_some(), f.to.is_some());
    let (mut has_pred, mut has_to) = (false, false);
    for part in parts {
        let f = fields(&mut op);
        if let Some(dtype) = DType::from_name(part) {
            *f.to? = dtype;
            has_to = true;
        } else if let Some(pred) = value_of(&PREDICATES, part) {
            *f.pred? = pred;
            has_pred = true;
        } else if let Some(rounding) = value_of(&ROUNDINGS, part) {
            *f.rounding? = rounding;
        } else {
            match part {
                "un" => *f.ordered? = false,
                "u" => *f.sign? = S::Unsigned,
                "nan" => *f.nan? = true,
                "ftz" => *f.ftz? = true,
                _ => return None,
            }
        }
    }
    (has_pred == needs_pred && has_to == needs_to).then_some(op)
}

/// The infix operators whose operation follows from the declared type (arithmetic) or the operands' type (comparisons).
pub(crate) const INFIX: [&str; 14] = ["+", "-", "*", "/", "&", "|", "^", "<<", "==", "!=", "<", "<=", ">", ">="];

/// The operation `a SYMBOL b` stands for, the class being that of the result (arithmetic) or of `a` (comparisons).
pub(crate) fn infix_op(symbol: &str, class: Class) -> Option<ScalarOp> {
    let cmp = match symbol {
        "==" => Some(P::Equal),
        "!=" => Some(P::NotEqual),
        "<" => Some(P::LessThan),
        "<=" => Some(P::LessThanOrEqual),
        ">" => Some(P::GreaterThan),
        ">=" => Some(P::GreaterThanOrEqual),
        _ => None,
    };
    if let Some(pred) = cmp {
        return match class {
            // As in C: `!=` is true when an operand is NaN, the others false.
            Class::Float => Some(ScalarOp::CmpF { pred, ordered: pred != P::NotEqual }),
            Class::Int => Some(ScalarOp::CmpI { pred, sign: S::Signed }),
            Class::Any => None,
        };
    }
    match (symbol, class) {
        ("+" | "-" | "*", Class::Float | Class::Int) | ("/", Class::Float) => {
            let base = match symbol {
                "+" => "add",
                "-" => "sub",
                "*" => "mul",
                _ => "div",
            };
            parse_op(base, class)
        }
        ("+", Class::Any) => Some(ScalarOp::PtrAdd),
        ("&", Class::Int) => Some(ScalarOp::And),
        ("|", Class::Int) => Some(ScalarOp::Or),
        ("^", Class::Int) => Some(ScalarOp::Xor),
        ("<<", Class::Int) => Some(ScalarOp::Shl),
        _ => None,
    }
}

pub(crate) fn is_comparison(op: ScalarOp) -> bool {
    matches!(op, ScalarOp::CmpF { .. } | ScalarOp::CmpI { .. })
}

/// The conversion that `to(x)` stands for, `x` being of type `from`.
pub(crate) fn plain_conversion(from: DType, to: DType) -> Option<ScalarOp> {
    let sign = S::Signed;
    match (from.is_float(), to.is_float()) {
        (true, true) => Some(ScalarOp::FToF { to, rounding: N }),
        (true, false) => Some(ScalarOp::FToI { to, sign }),
        (false, true) => Some(ScalarOp::IToF { to, sign }),
        (false, false) if from.bits() < to.bits() => Some(ScalarOp::ExtI { to, sign }),
        (false, false) if from.bits() > to.bits() => Some(ScalarOp::TruncI { to }),
        (false, false) => None,
    }
}

#[cfg(test)]
pub(crate) fn sample_ops() -> Vec<ScalarOp> {
    fn set<T>(field: Option<&mut T>, value: T) {
        if let Some(field) = field {
            *field = value;
        }
    }
    let mut out = Vec::new();
    for row in TABLE {
        out.push(row.op);
        let mut op = row.op;
        let f = fields(&mut op);
        set(f.rounding, R::PositiveInf);
        set(f.ftz, true);
        set(f.nan, true);
        set(f.sign, S::Unsigned);
        set(f.pred, P::GreaterThanOrEqual);
        set(f.ordered, false);
        set(f.to, DType::I16);
        out.push(op);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exactly_inverse() {
        for op in sample_ops() {
            for class in [Class::Any, Class::Float, Class::Int] {
                let name = spell(op, class);
                assert_eq!(parse_op(&name, class), Some(op), "{name}");
            }
        }
    }

    #[test]
    fn attributes_an_operation_lacks_are_refused() {
        for name in ["negf.ftz", "addf.u", "cmpf", "ftof", "trunc.rz.i8", "nope", "", "add.", "exp.un"] {
            assert_eq!(parse_op(name, Class::Any), None, "{name}");
        }
        assert_eq!(parse_op("max.u", Class::Int), Some(ScalarOp::MaxI { sign: S::Unsigned }));
        assert_eq!(parse_op("div.rz.ftz", Class::Float), Some(ScalarOp::DivF { rounding: R::Zero, ftz: true }));
    }
}
