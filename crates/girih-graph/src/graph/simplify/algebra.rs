//! 005: identities of arithmetic that keep every bit.

use super::{def, result, site};
use crate::base::rule::{Log, Rule};
use crate::graph::Elem;
use crate::graph::bounds::bounds;
use crate::graph::build::Builder;
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, Graph, Node, Op, ReduceOp, scalar};
use crate::num::ScalarOp;
use crate::num::op::{Predicate, Rounding, Signedness};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "algebra",
    doc: "Operations that change no bit vanish, and conversions that lose nothing are undone.\n\n\
          `mul x, 1` --> `x`; `add x, -0.0` --> `x`; `sub x, 0` --> `x`; `div x, 4` --> `mul x, 0.25`; \
          `neg (neg x)` --> `x`; `select true, a, b` --> `a`; `select c, a, a` --> `a`; \
          `to f16 (to f32 x)` of f16 --> `x`; `(ext b) != 0` of a bool --> `b`; `reduce max x` over extents of 1 --> `x`, `reduce sum x` --> `add x, 0.0`; \
          an operation on scalars alone --> its value; `(min x, 127) < 128` --> true, and \
          other comparisons that bounds of integers decide\n\n\
          `add x, 0.0` stays: it turns -0.0 into 0.0. Roundings, flushes and NaN are kept.",
    run,
};

/// Elements of a constant that comparisons look at: every round looks anew.
const CONSTANTS: u64 = 1 << 10;
const NEAREST: Rounding = Rounding::NearestEven;

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    for node in graph.nodes.values() {
        let new = match (&node.op, result(node)) {
            (Op::Elementwise(op), Some(_)) => elementwise(&copy, graph, node, *op),
            (Op::Reduce { op, axes }, Some(_)) => reduce(&copy, graph, node, *op, axes),
            _ => None,
        };
        match (new, result(node)) {
            (Some(New::Is(x)), Some(out)) => {
                let x = match x {
                    Arg::Scalar { elem, .. } => {
                        let shape = graph.values[out].shape.clone();
                        Builder::new(&mut copy.out, node.origin).full(x, elem, shape)
                    }
                    _ => x,
                };
                copy.bind(out, x);
            }
            (Some(New::Op(op, args)), _) => copy.node_as(node, Op::Elementwise(op), args),
            _ => {
                copy.node(node);
                continue;
            }
        }
        log.applied(site(graph, node));
        changed = true;
    }
    changed.then(|| copy.finish())
}

enum New {
    /// The result is this operand.
    Is(Arg),
    Op(ScalarOp, Vec<Arg>),
}

/// Returns true if a scalar is the float.
fn is(x: Arg, value: f64) -> bool {
    match x {
        Arg::Scalar { elem, .. } if elem.is_float() => scalar(elem, value) == x,
        _ => false,
    }
}

/// Returns true if a scalar is the integer.
fn is_int(x: Arg, value: i64) -> bool {
    matches!(x, Arg::Scalar { elem, bits } if elem.dtype.is_int() && bits == value as u64 & elem.dtype.mask())
}

fn elementwise(copy: &Copying<'_>, graph: &Graph, node: &Node, op: ScalarOp) -> Option<New> {
    use ScalarOp::*;
    let out = &copy.out;
    let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
    let value = graph.values.get(result(node)?)?;
    let elem_of = |x: Arg| elem_of(out, x);
    // The result is replaced by an operand only if their types are equal and the operand has the result's shape.
    let fits = |x: Arg| match x {
        Arg::Value(v) => out.values.get(v).is_some_and(|x| x.elem == value.elem && x.shape == value.shape),
        Arg::Scalar { elem, .. } => elem == value.elem,
        Arg::Absent => false,
    };
    let keep = |x: Arg| fits(x).then_some(New::Is(x));
    let repeated = |a: &Arg| match a {
        Arg::Scalar { .. } => Some(*a),
        _ => super::repeated_scalar(out, *a),
    };
    if let Some(scalars) = args.iter().map(repeated).collect::<Option<Vec<Arg>>>() {
        return fold(op, &scalars, value.elem).map(New::Is);
    }
    if let Some(new) = by_bounds(out, op, &args, value.elem) {
        return match new {
            New::Is(x @ Arg::Value(_)) => keep(x),
            new => Some(new),
        };
    }
    let inner = |x: Arg| match def(out, x) {
        Some(n) => match n.op {
            Op::Elementwise(op) => Some((op, n.args.clone())),
            _ => None,
        },
        None => None,
    };
    match (op, &args[..]) {
        (MulF { rounding: NEAREST, ftz: false }, &[x, c]) if is(c, 1.0) => keep(x),
        (MulF { rounding: NEAREST, ftz: false }, &[c, x]) if is(c, 1.0) => keep(x),
        (AddF { rounding: NEAREST, ftz: false }, &[x, c]) if is(c, -0.0) => keep(x),
        (AddF { rounding: NEAREST, ftz: false }, &[c, x]) if is(c, -0.0) => keep(x),
        (SubF { rounding: NEAREST, ftz: false }, &[x, c]) if is(c, 0.0) => keep(x),
        (DivF { rounding: NEAREST, ftz: false }, &[x, c]) if is(c, 1.0) => keep(x),
        (DivF { rounding: NEAREST, ftz: false }, &[x, Arg::Scalar { elem, bits }]) => {
            let inverse = reciprocal(elem, bits)?;
            Some(New::Op(MulF { rounding: NEAREST, ftz: false }, vec![x, inverse]))
        }
        (AddI, &[x, c]) | (AddI, &[c, x]) if is_int(c, 0) => keep(x),
        (SubI | Shl | Shr { .. }, &[x, c]) if is_int(c, 0) => keep(x),
        (MulI, &[x, c]) | (MulI, &[c, x]) if is_int(c, 1) => keep(x),
        (DivI { .. }, &[x, c]) if is_int(c, 1) => keep(x),
        (Or | Xor, &[x, c]) | (Or | Xor, &[c, x]) if is_int(c, 0) => keep(x),
        (And, &[x, c]) | (And, &[c, x]) if is_int(c, -1) => keep(x),
        (And, &[_, c]) | (And, &[c, _]) if is_int(c, 0) => keep(c),
        (Or, &[_, c]) | (Or, &[c, _]) if is_int(c, -1) => keep(c),
        (And | Or, &[x, y]) if x == y => keep(x),
        (Copy, &[x]) => keep(x),
        (NegF | NegI, &[x]) => match inner(x) {
            Some((same, args)) if same == op => keep(*args.first()?),
            _ => None,
        },
        (AbsF, &[x]) => match inner(x) {
            Some((NegF, args)) => Some(New::Op(AbsF, args)),
            Some((AbsF, _)) => keep(x),
            _ => None,
        },
        (Floor | Ceil | RoundEven, &[x]) => match inner(x) {
            Some((Floor | Ceil | RoundEven, _)) => keep(x),
            _ => None,
        },
        (Xor, &[x, c]) if is_int(c, -1) => match inner(x) {
            Some((Xor, args)) if args.get(1).is_some_and(|c| is_int(*c, -1)) => keep(*args.first()?),
            _ => None,
        },
        (Select, &[c, x, y]) => match c {
            _ if x == y => keep(x),
            Arg::Scalar { bits, .. } => keep(if bits != 0 { x } else { y }),
            _ => match inner(c) {
                Some((Xor, args)) if args.get(1).is_some_and(|c| is_int(*c, -1)) => {
                    Some(New::Op(Select, vec![*args.first()?, y, x]))
                }
                _ => None,
            },
        },
        (CmpI { pred: Predicate::NotEqual, .. }, &[x, c]) if is_int(c, 0) => match inner(x) {
            Some((ExtI { .. }, args)) if elem_of(*args.first()?)?.is_bool() => keep(*args.first()?),
            None if elem_of(x)?.is_bool() => keep(x),
            _ => None,
        },
        (FToF { to, rounding }, &[x]) => {
            if elem_of(x)?.dtype == to {
                return keep(x);
            }
            match inner(x) {
                // A conversion up and down again, or up twice.
                Some((FToF { to: middle, .. }, args)) => {
                    let from = *args.first()?;
                    let first = elem_of(from)?;
                    if !contains(middle, first.dtype) {
                        return None;
                    }
                    if first.dtype == to { keep(from) } else { Some(New::Op(FToF { to, rounding }, vec![from])) }
                }
                _ => None,
            }
        }
        (TruncI { to }, &[x]) => match inner(x) {
            Some((ExtI { .. }, args)) if elem_of(*args.first()?)?.dtype == to => keep(*args.first()?),
            _ => None,
        },
        _ => None,
    }
}

fn elem_of(graph: &Graph, x: Arg) -> Option<Elem> {
    match x {
        Arg::Value(v) => graph.values.get(v).map(|v| v.elem),
        Arg::Scalar { elem, .. } => Some(elem),
        Arg::Absent => None,
    }
}

/// The operand or the constant that an operation on integers comes to, because of the numbers that its operands may be.
fn by_bounds(graph: &Graph, op: ScalarOp, args: &[Arg], elem: Elem) -> Option<New> {
    let &[a, b] = args else { return None };
    let (ScalarOp::CmpI { sign, .. } | ScalarOp::MaxI { sign } | ScalarOp::MinI { sign }) = op else { return None };
    let numbers =
        |x: Arg| elem_of(graph, x).is_some_and(|e| !e.is_bool() && e.unsigned == (sign == Signedness::Unsigned));
    if !numbers(a) || !numbers(b) {
        return None;
    }
    let [x, y] = [a, b].map(|x| bounds(graph, x, CONSTANTS));
    let (less, least) = (x.hi < y.lo, x.hi <= y.lo);
    let (greater, greatest) = (x.lo > y.hi, x.lo >= y.hi);
    let known = match op {
        ScalarOp::MaxI { .. } | ScalarOp::MinI { .. } => {
            let most = matches!(op, ScalarOp::MaxI { .. });
            let (first, second) = if most { (greatest, least) } else { (least, greatest) };
            return if first { Some(New::Is(a)) } else { second.then_some(New::Is(b)) };
        }
        ScalarOp::CmpI { pred, .. } => match pred {
            Predicate::LessThan => (less, greatest),
            Predicate::LessThanOrEqual => (least, greater),
            Predicate::GreaterThan => (greater, least),
            Predicate::GreaterThanOrEqual => (greatest, less),
            Predicate::Equal => (x.as_point().is_some() && x == y, less || greater),
            Predicate::NotEqual => (less || greater, x.as_point().is_some() && x == y),
        },
        _ => return None,
    };
    let (holds, fails) = known;
    (holds || fails).then(|| New::Is(Arg::Scalar { elem, bits: holds.into() }))
}

/// Returns true if every number of the second format is one of the first.
fn contains(wide: crate::num::DType, narrow: crate::num::DType) -> bool {
    use crate::num::DType::*;
    matches!((wide, narrow), (F32, F16 | BF16) | (F64, F16 | BF16 | F32)) || wide == narrow
}

/// The reciprocal of a power of two, where it is a normal number and so exact.
fn reciprocal(elem: Elem, bits: u64) -> Option<Arg> {
    let x = crate::graph::build::number_of(elem, bits);
    let power = x.is_normal() && x.abs().to_bits() & ((1 << 52) - 1) == 0;
    // Exponents far from the ends of every format that computes.
    let near = power && elem.is_float() && (-14..=14).contains(&(((x.abs().to_bits() >> 52) as i64) - 1023));
    (near && x != 1.0).then(|| scalar(elem, 1.0 / x))
}

/// The value of an operation on scalars.
fn fold(op: ScalarOp, args: &[Arg], elem: Elem) -> Option<Arg> {
    let operands: Vec<(crate::num::DType, u64)> = args
        .iter()
        .filter_map(|a| match a {
            Arg::Scalar { elem, bits } => Some((elem.dtype, *bits)),
            _ => None,
        })
        .collect();
    let &(dtype, _) = operands.get(op.typed_by())?;
    if !crate::graph::ir::computes(dtype) || operands.len() != op.arity() {
        return None;
    }
    let bits: Vec<u64> = operands.iter().map(|o| o.1).collect();
    Some(Arg::Scalar { elem, bits: crate::num::eval::apply(op, dtype, &bits) })
}

/// Folding one element gives that element.
fn reduce(copy: &Copying<'_>, graph: &Graph, node: &Node, op: ReduceOp, axes: &[u32]) -> Option<New> {
    let &[x] = &node.args[..] else { return None };
    let x = copy.arg(x);
    let Arg::Value(v) = x else { return None };
    let from = copy.out.values.get(v)?;
    let to = graph.values.get(result(node)?)?;
    let single = axes.iter().all(|a| from.shape.get(*a as usize).is_some_and(|n| n.is_const(1)));
    let plain = !matches!(op, ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. } | ReduceOp::Dot);
    if !single || !plain || from.elem != to.elem || from.shape != to.shape {
        return None;
    }
    // A sum starts from 0, which makes -0.0 a 0.
    let sum = op == ReduceOp::Sum && from.elem.is_float();
    let add = ScalarOp::AddF { rounding: NEAREST, ftz: false };
    Some(if sum { New::Op(add, vec![x, scalar(from.elem, 0.0)]) } else { New::Is(x) })
}
