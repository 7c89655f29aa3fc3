//! Index expressions as C: exact, or as ranges.
//!
//! ```text
//! rows*64 + 1     exact   girih_add(&bad, girih_mul(&bad, rows, 64), 1)      range   girih_range_add(...)
//! ```

use girih_compiler::index::Ix;

/// An expression over leaves that have a name, in integers that say in `bad` where they would be inexact.
pub fn exact(ix: &Ix, leaf: &dyn Fn(&Ix) -> Option<String>) -> Option<String> {
    let Some((a, b)) = ix.operands() else {
        return match ix {
            Ix::Const(c) => Some(literal(*c)),
            _ => leaf(ix),
        };
    };
    Some(format!("girih_{}(&bad, {}, {})", function(ix), exact(a, leaf)?, exact(b, leaf)?))
}

/// An expression over leaves that have a name, for a reader, in plain operators; right where nothing is negative.
pub fn plain(ix: &Ix, leaf: &dyn Fn(&Ix) -> Option<String>) -> Option<String> {
    let Some((a, b)) = ix.operands() else {
        return match ix {
            Ix::Const(c) => Some(literal(*c)),
            _ => leaf(ix),
        };
    };
    let (a, b) = (plain(a, leaf)?, plain(b, leaf)?);
    let sign = match ix {
        Ix::Add(..) => "+",
        Ix::Sub(..) => "-",
        Ix::Mul(..) => "*",
        Ix::FloorDiv(..) => "/",
        Ix::Mod(..) => "%",
        Ix::Min(..) => return Some(format!("({a} < {b} ? {a} : {b})")),
        _ => return Some(format!("({a} > {b} ? {a} : {b})")),
    };
    Some(format!("({a} {sign} {b})"))
}

/// The range of an expression, given those of its leaves.
pub fn range(ix: &Ix, leaf: &dyn Fn(&Ix) -> Option<String>) -> Option<String> {
    let Some((a, b)) = ix.operands() else {
        return match ix {
            Ix::Const(c) => Some(format!("girih_between({0}, {0})", literal(*c))),
            _ => leaf(ix),
        };
    };
    Some(format!("girih_range_{}({}, {})", function(ix), range(a, leaf)?, range(b, leaf)?))
}

/// The end of the name of the function that computes an expression's last step.
fn function(ix: &Ix) -> &'static str {
    match ix {
        Ix::Add(..) => "add",
        Ix::Sub(..) => "sub",
        Ix::Mul(..) => "mul",
        Ix::FloorDiv(..) => "div",
        Ix::Mod(..) => "mod",
        Ix::Min(..) => "min",
        _ => "max",
    }
}

/// An integer of 64 bits.
pub fn literal(n: i64) -> String {
    match n {
        i64::MIN => "INT64_MIN".into(),
        _ if i32::try_from(n).is_ok() => n.to_string(),
        _ => format!("INT64_C({n})"),
    }
}

/// A string literal with the text in it.
pub fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for b in text.bytes() {
        match b {
            b' '..=b'~' if !matches!(b, b'"' | b'\\' | b'?') => out.push(b as char),
            _ => out.push_str(&format!("\\{b:03o}")),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_have_names_and_constants_their_size() {
        let ix = Ix::add(Ix::mul(Ix::Block(0), Ix::Const(64)), Ix::Const(1 << 40));
        let leaf = |ix: &Ix| (*ix == Ix::Block(0)).then(|| "bx".to_string());
        let sum = "girih_add(&bad, girih_mul(&bad, bx, 64), INT64_C(1099511627776))";
        assert_eq!(exact(&ix, &leaf).as_deref(), Some(sum));
        assert_eq!(exact(&ix, &|_| None), None);
        assert_eq!(literal(i64::MIN), "INT64_MIN");
        assert_eq!(string("a\"b\\?\n"), r#""a\042b\134\077\012""#);
    }
}
