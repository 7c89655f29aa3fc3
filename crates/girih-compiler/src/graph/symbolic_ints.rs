//! Which integers a value holds, where that is known at compile time: the arithmetic that models do on shapes.

use super::assume::{Asked, Question};
use super::build::{constant_bits, int_of};
use super::ir::{Arg, Coord, Graph, MAX_KNOWN, NodeId, Op, ReduceOp};
use crate::index::{Cmp, Cond, Facts, Interval, Ix, simplify};
use crate::num::ScalarOp;
use crate::num::op::{Predicate, Rounding};

/// The elements of a node's first result in row-major order, if they are integers that symbols determine.
/// Comparisons of them that their ranges do not tell are asked.
pub fn ints(graph: &Graph, node: NodeId, facts: &Facts, asked: &Asked) -> Option<Vec<Ix>> {
    let node = graph.nodes.get(node)?;
    let result = graph.values.get(*node.results.first()?)?;
    if !result.elem.dtype.is_int() {
        return None;
    }
    let shape: Vec<i64> = result.shape.iter().map(Ix::as_const).collect::<Option<_>>()?;
    let count = shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d)).filter(|n| (0..=MAX_KNOWN as i64).contains(n))?;
    let known = |a: Arg| match a {
        Arg::Value(v) => graph.values.get(v)?.ints.clone(),
        Arg::Scalar { elem, bits } => Some(vec![Ix::Const(int_of(elem, bits)); count as usize]),
        Arg::Absent => None,
    };
    // Row-major position of an element of an operand.
    let at = |a: Arg, coords: &[i64]| -> Option<Ix> {
        match a {
            Arg::Scalar { elem, bits } if elem.dtype.is_int() => Some(Ix::Const(int_of(elem, bits))),
            Arg::Value(v) => {
                let value = graph.values.get(v)?;
                let mut linear = 0;
                for (c, d) in coords.iter().zip(&value.shape) {
                    linear = linear * d.as_const()? + c;
                }
                value.ints.as_ref()?.get(usize::try_from(linear).ok()?).cloned()
            }
            _ => None,
        }
    };
    let place = |ix: &Ix, pos: &[i64]| {
        let placed = ix.subst_axes(&mut |a| pos.get(a.0 as usize).map(|p| Ix::Const(*p)));
        simplify(&placed, facts)
    };
    let every = |f: &dyn Fn(&[i64]) -> Option<Ix>| -> Option<Vec<Ix>> {
        let mut out = Vec::with_capacity(count as usize);
        let mut pos = vec![0i64; shape.len()];
        for _ in 0..count {
            out.push(f(&pos)?);
            for d in (0..shape.len()).rev() {
                pos[d] += 1;
                if pos[d] < shape[d] {
                    break;
                }
                pos[d] = 0;
            }
        }
        Some(out)
    };
    match &node.op {
        Op::Constant(c) => {
            let c = graph.constants.get(*c)?;
            Some(constant_bits(c)?.into_iter().map(|b| Ix::Const(int_of(c.elem, b))).collect())
        }
        Op::Index(ix) => every(&|pos| Some(place(ix, pos))),
        Op::IndexMap(sources) => every(&|pos| {
            for s in sources {
                let mut holds = true;
                for c in &s.when.conds {
                    let cond = Cond::new(place(&c.lhs, pos), c.cmp, place(&c.rhs, pos));
                    holds &= asked.decided(cond, facts, Question::Whether)?;
                }
                if holds {
                    let coords = s.coords.iter().map(|c| place(c, pos).as_const()).collect::<Option<Vec<i64>>>()?;
                    return at(*node.args.get(s.arg as usize)?, &coords);
                }
            }
            None
        }),
        Op::Gather(coords) => every(&|pos| {
            let mut read = vec![];
            for c in coords {
                read.push(match c {
                    Coord::Ix(ix) => place(ix, pos).as_const()?,
                    Coord::Arg(a) => at(*node.args.get(*a as usize)?, pos)?.as_const()?,
                });
            }
            at(*node.args.first()?, &read)
        }),
        Op::Reduce { op, axes } => {
            let &[arg] = &node.args[..] else { return None };
            let Arg::Value(v) = arg else { return None };
            let extents: Vec<i64> = graph.values.get(v)?.shape.iter().map(Ix::as_const).collect::<Option<_>>()?;
            let &[axis] = &axes[..] else { return None };
            every(&|pos| {
                let mut pos = pos.to_vec();
                let mut acc: Option<Ix> = None;
                for i in 0..*extents.get(axis as usize)? {
                    *pos.get_mut(axis as usize)? = i;
                    let x = at(arg, &pos)?;
                    acc = Some(match (acc, op) {
                        (None, _) => x,
                        (Some(a), ReduceOp::Sum) => Ix::add(a, x),
                        (Some(a), ReduceOp::Prod) => Ix::mul(a, x),
                        (Some(a), ReduceOp::Max) => Ix::max(a, x),
                        (Some(a), ReduceOp::Min) => Ix::min(a, x),
                        _ => return None,
                    });
                }
                let empty = match op {
                    ReduceOp::Sum => Some(Ix::Const(0)),
                    ReduceOp::Prod => Some(Ix::Const(1)),
                    _ => None,
                };
                Some(simplify(&acc.or(empty)?, facts))
            })
        }
        Op::Elementwise(op) => {
            let args = node.args.iter().map(|a| known(*a)).collect::<Option<Vec<_>>>()?;
            (0..count as usize)
                .map(|i| {
                    let operands = args.iter().map(|a| a.get(i)).collect::<Option<Vec<_>>>()?;
                    elementwise(*op, &operands, facts, asked).map(|x| simplify(&x, facts))
                })
                .collect()
        }
        _ => None,
    }
}

/// An operation on integers that do not wrap. Shapes are far from the ends of 32 bits; what is not is left unknown.
fn elementwise(op: ScalarOp, args: &[&Ix], facts: &Facts, asked: &Asked) -> Option<Ix> {
    let small = |x: &Ix| facts.range(x).within(Interval::signed(53));
    if !args.iter().all(|a| small(a)) {
        // A sentinel such as the greatest integer may be passed on, not computed with.
        return match (op, args) {
            (ScalarOp::Copy | ScalarOp::ExtI { .. }, [a]) => Some((*a).clone()),
            (ScalarOp::Select, [c, a, b]) => choose(c, a, b),
            (ScalarOp::MinI { .. }, [a, b]) => Some(Ix::min((*a).clone(), (*b).clone())),
            (ScalarOp::CmpI { pred, .. }, [a, b]) => compare(pred, a, b, facts, asked),
            _ => None,
        };
    }
    let not_negative = |x: &Ix| facts.range(x).lo >= 0;
    Some(match (op, args) {
        (ScalarOp::Copy | ScalarOp::ExtI { .. }, [a]) => (*a).clone(),
        (ScalarOp::TruncI { to }, [a]) if facts.range(a).within(Interval::signed(to.bits())) => (*a).clone(),
        (ScalarOp::AddI, [a, b]) => Ix::add((*a).clone(), (*b).clone()),
        (ScalarOp::SubI, [a, b]) => Ix::sub((*a).clone(), (*b).clone()),
        (ScalarOp::MulI, [a, b]) => Ix::mul((*a).clone(), (*b).clone()),
        (ScalarOp::NegI, [a]) => Ix::sub(Ix::Const(0), (*a).clone()),
        (ScalarOp::MaxI { .. }, [a, b]) => Ix::max((*a).clone(), (*b).clone()),
        (ScalarOp::MinI { .. }, [a, b]) => Ix::min((*a).clone(), (*b).clone()),
        (ScalarOp::DivI { rounding, .. }, [a, b]) if b.as_const().is_some_and(|b| b > 0) => match rounding {
            Rounding::NegativeInf => Ix::floor_div((*a).clone(), (*b).clone()),
            Rounding::PositiveInf => Ix::ceil_div((*a).clone(), (*b).clone()),
            _ if not_negative(a) => Ix::floor_div((*a).clone(), (*b).clone()),
            _ => return None,
        },
        (ScalarOp::RemI { .. }, [a, b]) if b.as_const().is_some_and(|b| b > 0) && not_negative(a) => {
            Ix::modulo((*a).clone(), (*b).clone())
        }
        (ScalarOp::CmpI { pred, .. }, [a, b]) => return compare(pred, a, b, facts, asked),
        (ScalarOp::Select, [c, a, b]) => return choose(c, a, b),
        (ScalarOp::And, [a, b]) => Ix::Const(a.as_const()? & b.as_const()?),
        (ScalarOp::Or, [a, b]) => Ix::Const(a.as_const()? | b.as_const()?),
        (ScalarOp::Xor, [a, b]) => Ix::Const(a.as_const()? ^ b.as_const()?),
        _ => return None,
    })
}

fn choose(c: &Ix, a: &Ix, b: &Ix) -> Option<Ix> {
    match c.as_const() {
        Some(0) => Some(b.clone()),
        Some(_) => Some(a.clone()),
        None if a == b => Some(a.clone()),
        None => None,
    }
}

fn compare(pred: Predicate, a: &Ix, b: &Ix, facts: &Facts, asked: &Asked) -> Option<Ix> {
    let cmp = match pred {
        Predicate::Equal => Cmp::Eq,
        Predicate::NotEqual => Cmp::Ne,
        Predicate::LessThan => Cmp::Lt,
        Predicate::LessThanOrEqual => Cmp::Le,
        Predicate::GreaterThan => Cmp::Gt,
        Predicate::GreaterThanOrEqual => Cmp::Ge,
    };
    asked.decided(Cond::new(a.clone(), cmp, b.clone()), facts, Question::Whether).map(|holds| Ix::Const(holds.into()))
}
