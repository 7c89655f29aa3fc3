//! The spelling of scalar operations in printed graphs, loop and tile IR: `add.rz.ftz`, `max.nan`, `cmpf.lt`,
//! `ext.u.i64`.
//!
//! A name is a base, then `f` or `i` if the base belongs to both kinds of number and the declared type does not decide,
//! and a suffix for each attribute that differs from the default. [`parse_op`] is the inverse of [`spell`].

use super::op::{Predicate as P, Rounding as R, Signedness as S};
pub use super::table::Class;
use super::table::{ALL, fields};
use super::{DType, ScalarOp};

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

/// The operation's name, if `declared` is the class of the value it defines.
pub fn spell(op: ScalarOp, declared: Class) -> String {
    let row = op.row();
    let mut out = row.base.to_string();
    if row.class != declared {
        out.push_str(row.class.letter());
    }
    let (mut mine, mut default) = (op, op.plain());
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

/// The operation with a name, if `declared` is the class of the value it defines.
pub fn parse_op(name: &str, declared: Class) -> Option<ScalarOp> {
    let mut parts = name.split('.');
    let base = parts.next()?;
    let named = |op: &&ScalarOp| op.row().base == base && [Class::Any, declared].contains(&op.row().class);
    let lettered = |op: &&ScalarOp| {
        let row = op.row();
        row.class != Class::Any && base.strip_prefix(row.base) == Some(row.class.letter())
    };
    let mut op = *ALL.iter().find(named).or_else(|| ALL.iter().find(lettered))?;
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
pub const INFIX: [&str; 14] = ["+", "-", "*", "/", "&", "|", "^", "<<", "==", "!=", "<", "<=", ">", ">="];

/// The operation that `a SYMBOL b` stands for, where `class` is that of the result (arithmetic) or of `a`
/// (comparisons).
pub fn infix_op(symbol: &str, class: Class) -> Option<ScalarOp> {
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

/// The conversion that `to(x)` stands for, if `x` is of type `from`.
pub fn plain_conversion(from: DType, to: DType) -> Option<ScalarOp> {
    let sign = S::Signed;
    match (from.is_float(), to.is_float()) {
        (true, true) => Some(ScalarOp::FToF { to, rounding: R::NearestEven }),
        (true, false) => Some(ScalarOp::FToI { to, sign }),
        (false, true) => Some(ScalarOp::IToF { to, sign }),
        (false, false) if from.bits() < to.bits() => Some(ScalarOp::ExtI { to, sign }),
        (false, false) if from.bits() > to.bits() => Some(ScalarOp::TruncI { to }),
        (false, false) => None,
    }
}

#[cfg(any(test, feature = "testing"))]
pub fn sample_ops() -> Vec<ScalarOp> {
    fn set<T>(field: Option<&mut T>, value: T) {
        if let Some(field) = field {
            *field = value;
        }
    }
    let mut out = Vec::new();
    for &op in ALL {
        out.push(op);
        let mut op = op;
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
