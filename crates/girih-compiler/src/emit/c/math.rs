//! Straight-line programs of `num::math` as C functions, one per lane count.

use super::ops::literal;
use super::support::Support;
use crate::num::math::{Kind, Op, Program};
use std::fmt::Write;

fn base(kind: Kind) -> &'static str {
    kind.dtype().name()
}

/// The name of the program's function at a lane count, defining it first.
pub fn function(support: &mut Support, program: &Program, lanes: u32) -> String {
    let name = if lanes > 1 { format!("{}_x{lanes}", program.name) } else { program.name.clone() };
    if support.is_defined(&name) {
        return name;
    }
    let mut body = String::new();
    for (i, step) in program.steps.iter().enumerate() {
        let dst = program.params.len() + i;
        let source = step.args.first().map_or(step.kind, |&v| program.kind(v));
        let v: Vec<String> = step.args.iter().map(|v| format!("v{}", v.0)).collect();
        let arg = |i: usize| v.get(i).map_or("0", |s| s.as_str());
        let (a, b, c) = (arg(0), arg(1), arg(2));
        let k = base(step.kind);
        let bits = step.kind.bits();
        let infix = |op: &str| format!("{a} {op} {b}");
        let compare = |op: &str| format!("@{bits}({a} {op} {b})");
        let text = match step.op {
            Op::Const(bits) => format!("#{k}({})", literal(step.kind.dtype(), bits)),
            Op::Add => infix("+"),
            Op::Sub => infix("-"),
            Op::Mul => infix("*"),
            Op::Div => infix("/"),
            Op::Fma => format!("!fma_{k}({a}, {b}, {c})"),
            Op::Sqrt => format!("!sqrt_{k}({a})"),
            Op::Rint => format!("!rint_{k}({a})"),
            Op::And => infix("&"),
            Op::Or => infix("|"),
            Op::Xor => infix("^"),
            Op::Shl => infix("<<"),
            Op::Shr => format!("(${k})(($u{bits}){a} >> ($u{bits}){b})"),
            Op::Sar => infix(">>"),
            Op::Lt => compare("<"),
            Op::Le => compare("<="),
            Op::Eq => compare("=="),
            Op::Ne => compare("!="),
            Op::Select => format!("!sel_{k}({a}, {b}, {c})"),
            Op::Bitcast => match (source.is_float(), step.kind.is_float()) {
                (true, false) => format!("(${k})!bits_{}({a})", base(source)),
                (false, true) => format!("!float_{k}(($u{bits}){a})"),
                _ => a.to_string(),
            },
            Op::Convert => format!("%{k}({a})"),
        };
        let _ = writeln!(body, "${k} v{dst} = {text};");
    }
    let _ = writeln!(body, "return v{};", program.result.0);
    let params: Vec<(&str, String)> =
        program.params.iter().enumerate().map(|(i, &k)| (base(k), format!("v{i}"))).collect();
    support.define(&name, base(program.kind(program.result)), &params, &body, lanes);
    name
}
