//! Straight-line programs of `num::math` as C functions, one per lane count.
//!
//! A program that computes in f64 serves as many lanes at once as one vector register holds; more lanes call it several
//! times. Long programs are not inlined: the C compiler's time grows faster than the function that holds them.

use super::library;
use super::ops::literal;
use super::support::Support;
use crate::num::math::{Kind, Op, Program, Step, Val};
use std::fmt::Write;

fn base(kind: Kind) -> &'static str {
    kind.dtype().name()
}

/// Programs of more steps than this stand in functions of their own.
const INLINE_STEPS: usize = 64;

/// The name of the program's function at a lane count, defining it first.
pub fn function(support: &mut Support, program: &Program, lanes: u32) -> String {
    let name = if lanes > 1 { format!("{}_x{lanes}", program.name) } else { program.name.clone() };
    if support.is_defined(&name) {
        return name;
    }
    let params: Vec<(&str, String)> =
        program.params.iter().enumerate().map(|(i, &k)| (base(k), format!("v{i}"))).collect();
    let result = base(program.kind(program.result));
    let at_once = (support.vector_bytes / 8).max(1);
    let usual = program.usual.as_ref().map(|u| u.mask).zip(program.where_usual());
    let usual = usual.filter(|(usual, fast)| is_less(program, *usual, fast, lanes, support.dialect.branch));
    let fits = |live: &[bool]| {
        let wide =
            program.steps.iter().zip(live.iter().skip(program.params.len())).any(|(s, l)| *l && s.kind.bits() == 64);
        lanes <= at_once || !wide
    };
    let mut body = String::new();
    let size = match usual {
        Some((usual, fast)) if fits(&program.live(usual)) && fits(&fast.live(fast.result)) => {
            usually(support, program, usual, &fast, lanes, &mut body)
        }
        _ if !fits(&program.live(program.result)) => {
            body = pieces(support, program, result, lanes, at_once);
            0
        }
        _ => {
            let mut text = Text::new(support, program, lanes);
            text.steps(&mut body, program, &program.live(program.result), &[]);
            let _ = writeln!(body, "return {};", text.value(program.result));
            program.steps.iter().filter(|s| !matches!(s.op, Op::Const(_))).count()
        }
    };
    support.define(&name, result, &params, &body, lanes, size <= INLINE_STEPS);
    name
}

/// The instructions that a step takes, except constants.
fn instructions(step: &Step, lanes: u32) -> u32 {
    let scaled = |name: &str, otherwise| {
        let name = format!("{name}_{}", base(step.kind));
        if library::in_one_instruction(&name, lanes).is_some() { 1 } else { otherwise }
    };
    match step.op {
        Op::Const(_) | Op::Bitcast => 0,
        Op::Scale => scaled("scale", 8),
        Op::ScaleNormal => scaled("scale_normal", 3),
        _ => 1,
    }
}

/// Returns true if testing the usual mask and running the program for that case costs less than the program for any
/// lanes.
fn is_less(program: &Program, usual: Val, fast: &Program, lanes: u32, branch: u32) -> bool {
    let sum = |of: &Program, live: &[bool]| -> u32 {
        let steps = of.steps.iter().zip(live.iter().skip(of.params.len()));
        steps.filter(|(_, live)| **live).map(|(step, _)| instructions(step, lanes)).sum()
    };
    let mut tested = fast.live(fast.result);
    tested.iter_mut().zip(program.live(usual)).for_each(|(a, b)| *a |= b);
    sum(fast, &tested) + branch < sum(program, &program.live(program.result))
}

/// A body that tests if all lanes are usual and then runs the shorter program, or else calls the program for any lanes,
/// which is a function of its own. Returns the number of its steps.
fn usually(
    support: &mut Support,
    program: &Program,
    usual: Val,
    fast: &Program,
    lanes: u32,
    body: &mut String,
) -> usize {
    let any = Program { name: format!("{}_any", program.name), usual: None, ..program.clone() };
    let any = function(support, &any, lanes);
    let mut text = Text::new(support, program, lanes);
    let done = text.steps(body, program, &program.live(usual), &[]);
    let mask = program.kind(usual).dtype().name();
    let mut test = text.value(usual);
    if lanes > 1 {
        test = format!("{}({test})", text.support.call(&format!("all_{mask}"), lanes));
    }
    let args: Vec<String> = (0..program.params.len()).map(|i| format!("v{i}")).collect();
    let _ = writeln!(body, "if ({test} == 0) return {any}({});", args.join(", "));
    let live = fast.live(fast.result);
    text.steps(body, fast, &live, &done);
    let _ = writeln!(body, "return {};", text.value(fast.result));
    let counts = |n: usize| live.get(n) == Some(&true) || done.get(n) == Some(&true);
    let steps = program
        .steps
        .iter()
        .enumerate()
        .filter(|(i, s)| counts(program.params.len() + i) && !matches!(s.op, Op::Const(_)));
    steps.count()
}

/// Steps as statements, and the name of each value in them.
struct Text<'a> {
    support: &'a mut Support,
    lanes: u32,
    values: Vec<String>,
}

impl<'a> Text<'a> {
    fn new(support: &'a mut Support, program: &Program, lanes: u32) -> Text<'a> {
        Text { support, lanes, values: (0..program.params.len()).map(|n| format!("v{n}")).collect() }
    }

    fn value(&self, of: Val) -> String {
        self.values.get(of.0 as usize).cloned().unwrap_or_default()
    }

    /// Prints the steps that are `live` and not `done`; returns all that are done afterwards.
    fn steps(&mut self, body: &mut String, program: &Program, live: &[bool], done: &[bool]) -> Vec<bool> {
        let mut now = vec![true; program.params.len()];
        for i in 0..program.steps.len() {
            let dst = program.params.len() + i;
            let has = |set: &[bool]| set.get(dst).copied().unwrap_or(false);
            if self.values.len() <= dst {
                self.values.push(format!("v{dst}"));
            }
            now.push(has(live) || has(done));
            if has(live) && !has(done) {
                self.step(body, program, i);
            }
        }
        now
    }

    fn step(&mut self, body: &mut String, program: &Program, i: usize) {
        let Some(step) = program.steps.get(i) else { return };
        let dst = program.params.len() + i;
        let source = step.args.first().map_or(step.kind, |&v| program.kind(v));
        let v: Vec<String> =
            step.args.iter().map(|v| self.values.get(v.0 as usize).cloned().unwrap_or_default()).collect();
        // A constant of one lane stands where it is used.
        if let (Op::Const(bits), 1) = (&step.op, self.lanes) {
            let text = literal(self.support.dialect, step.kind.dtype(), *bits);
            self.values[dst] = if text.starts_with('-') { format!("({text})") } else { text };
            return;
        }
        let arg = |i: usize| v.get(i).map_or("0", |s| s.as_str());
        let (a, b, c) = (arg(0), arg(1), arg(2));
        let k = base(step.kind);
        let bits = step.kind.bits();
        let infix = |op: &str| format!("{a} {op} {b}");
        // The programs' integers wrap.
        let wraps = self.support.dialect.wraps || step.kind.is_float();
        let arithmetic = |op: &str| {
            if wraps { infix(op) } else { format!("(${k})(($u{bits}){a} {op} ($u{bits}){b})") }
        };
        let compare = |op: &str| format!("@{bits}({a} {op} {b})");
        // With a bound other than 0 the extreme is unique: only zeros of different signs could tie.
        let constant = step
            .args
            .first()
            .and_then(|&v| program.constant(v))
            .is_some_and(|bits| step.kind.dtype().mask() >> 1 & bits != 0);
        let bounded = |name: &str| constant && self.support.has(&format!("{name}_{k}"));
        let bound = |own: &'static str, otherwise: &'static str| if bounded(own) { own } else { otherwise };
        let text = match step.op {
            Op::Const(bits) => format!("#{k}({})", literal(self.support.dialect, step.kind.dtype(), bits)),
            Op::Add => arithmetic("+"),
            Op::Sub => arithmetic("-"),
            Op::Mul => arithmetic("*"),
            Op::Div => infix("/"),
            Op::Fma => format!("!fma_{k}({a}, {b}, {c})"),
            Op::Sqrt => format!("!sqrt_{k}({a})"),
            Op::Rint => format!("!rint_{k}({a})"),
            Op::Min => format!("!{}_{k}({a}, {b})", bound("at_most", "lesser")),
            Op::Max => format!("!{}_{k}({a}, {b})", bound("at_least", "greater")),
            Op::Scale => format!("!scale_{k}({a}, {b})"),
            Op::ScaleNormal => format!("!scale_normal_{k}({a}, {b})"),
            Op::And => infix("&"),
            Op::Or => infix("|"),
            Op::Xor => infix("^"),
            Op::Shl if !wraps => format!("(${k})(($u{bits}){a} << {b})"),
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
}

/// A body that cuts its `lanes` into pieces of `size`, calls the program on each, and joins the results.
fn pieces(support: &mut Support, program: &Program, result: &str, lanes: u32, size: u32) -> String {
    let piece = function(support, program, size);
    let range = |from: u32, n: u32| (from..from + n).map(|l| l.to_string()).collect::<Vec<_>>().join(", ");
    let mut body = String::new();
    let mut parts = vec![];
    for from in (0..lanes).step_by(size as usize) {
        let args: Vec<String> = (0..program.params.len())
            .map(|i| match size {
                1 => format!("v{i}[{from}]"),
                _ => format!("__builtin_shufflevector(v{i}, v{i}, {})", range(from, size)),
            })
            .collect();
        let part = format!("p{from}");
        let _ = writeln!(body, "{} {part} = {piece}({});", support.ty(result, size), args.join(", "));
        parts.push(part);
    }
    if size == 1 {
        let _ = writeln!(body, "return (${result}){{{}}};", parts.join(", "));
        return body;
    }
    let mut n = size;
    while parts.len() > 1 {
        n *= 2;
        let ty = support.ty(result, n);
        let pairs: Vec<String> = parts.chunks(2).map(|p| p.join(", ")).collect();
        parts = (0..pairs.len()).map(|i| format!("q{n}_{i}")).collect();
        for (name, pair) in parts.iter().zip(pairs) {
            let _ = writeln!(body, "{ty} {name} = __builtin_shufflevector({pair}, {});", range(0, n));
        }
    }
    let _ = writeln!(body, "return {};", parts.join(""));
    body
}
