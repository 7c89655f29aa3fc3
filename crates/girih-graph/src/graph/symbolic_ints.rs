//! Finds the integers that a value holds, if they are known at compile time: the arithmetic of models on shapes.

use super::Elem;
use super::assume::{Asked, Question};
use super::build::{constant_bits, int_of};
use super::ir::{Arg, Coord, Graph, MAX_KNOWN, NodeId, Op, ReduceOp};
use super::symbolic_floats;
use crate::index::{Cmp, Cond, Facts, Interval, Ix, simplify};
use crate::num::ScalarOp;
use crate::num::op::{Predicate, Rounding};

/// The integers that a value holds, where the guards hold.
pub struct Followed {
    pub ints: Vec<Ix>,
    pub guards: Vec<Cond>,
}

/// The elements of a node's first result in row-major order, if they are integers that symbols determine. They are exact:
/// guards exclude values that the type has no room for. Comparisons that the ranges do not decide become questions.
pub fn ints(graph: &Graph, node: NodeId, facts: &Facts, asked: &Asked) -> Option<Followed> {
    let mut guards = vec![];
    let ints = exact(graph, node, facts, asked, &mut guards)?;
    let elem = graph.values.get(*graph.nodes.get(node)?.results.first()?)?.elem;
    let bounds = room(elem)?;
    let narrow = elem.bits() < 32;
    for ix in &ints {
        // Models cast extents to 32 bits and take for granted that they fit. They cast to fewer bits to cut a number, and
        // unsigned integers wrap below 0.
        let below = || elem.unsigned && facts.tight_range(ix).lo < 0;
        if narrow && !facts.range(ix).within(bounds) || below() {
            return None;
        }
        between(ix, bounds, facts, &mut guards)?;
    }
    Some(Followed { ints, guards })
}

/// The integers of a type that are followed.
fn room(elem: Elem) -> Option<Interval> {
    let (lo, hi) = elem.bounds()?;
    Some(Interval::new(lo, hi.min(i64::MAX.into())))
}

/// Guards that an integer lies between two others; `None` where it never does.
pub(super) fn between(ix: &Ix, bounds: Interval, facts: &Facts, guards: &mut Vec<Cond>) -> Option<()> {
    let range = facts.range(ix);
    if range.within(bounds) {
        return Some(());
    }
    let range = facts.tight_range(ix);
    for (inside, cmp, bound) in
        [(range.lo >= bounds.lo, Cmp::Ge, bounds.lo), (range.hi <= bounds.hi, Cmp::Le, bounds.hi)]
    {
        if !inside {
            let cond = Cond::new(ix.clone(), cmp, Ix::Const(i64::try_from(bound).ok()?));
            if facts.decide(&cond) == Some(false) {
                return None;
            }
            if !guards.contains(&cond) {
                guards.push(cond);
            }
        }
    }
    Some(())
}

fn exact(graph: &Graph, node: NodeId, facts: &Facts, asked: &Asked, guards: &mut Vec<Cond>) -> Option<Vec<Ix>> {
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
            let &len = extents.get(axis as usize)?;
            every(&|pos| {
                let mut pos = pos.to_vec();
                let mut acc: Option<Ix> = None;
                for i in 0..len {
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
                let of_many = *op == ReduceOp::Prod && len > MOST_FACTORS;
                Some(simplify(&acc.or(empty)?, facts)).filter(|x| !of_many || x.as_const().is_some())
            })
        }
        Op::Elementwise(ScalarOp::FToI { .. }) => {
            let &[arg] = &node.args[..] else { return None };
            let Arg::Value(v) = arg else { return None };
            let from = graph.values.get(v)?.elem;
            let numbers = symbolic_floats::of(graph, arg, count as usize)?;
            let whole = numbers.iter().map(|x| x.truncated(facts, asked)).collect::<Option<Vec<_>>>()?;
            guards.extend(symbolic_floats::exact(&whole, from, facts)?);
            Some(whole.iter().map(|x| simplify(x.number(), facts)).collect())
        }
        Op::Elementwise(ScalarOp::CmpF { pred, .. }) => {
            let &[x, y] = &node.args[..] else { return None };
            let both = [x, y].map(|x| symbolic_floats::of(graph, x, count as usize));
            let [Some(xs), Some(ys)] = both else { return None };
            for (list, arg) in [(&xs, x), (&ys, y)] {
                guards.extend(symbolic_floats::exact(list, element(graph, arg)?, facts)?);
            }
            let one = |(x, y)| decided(symbolic_floats::compared(x, *pred, y)?, count, facts, asked);
            xs.iter().zip(&ys).map(one).collect()
        }
        Op::Elementwise(op) => {
            let args = node.args.iter().map(|a| known(*a)).collect::<Option<Vec<_>>>()?;
            (0..count as usize)
                .map(|i| {
                    let operands = args.iter().map(|a| a.get(i)).collect::<Option<Vec<_>>>()?;
                    elementwise(*op, &operands, count, facts, asked).map(|x| simplify(&x, facts))
                })
                .collect()
        }
        _ => None,
    }
}

/// The most integers that may be a shape; of longer lists, only comparisons that the ranges decide are followed.
const A_SHAPE: i64 = 16;
/// The most factors of a number of elements. Sizes do not wrap, but a product of more integers may be no size.
const MOST_FACTORS: i64 = 8;
/// The most leaves and operations of an integer that is followed.
const MOST_STEPS: usize = 128;

/// An operation on integers that do not wrap: extents are exact, as far from the ends of 64 bits as memory is.
/// Constants near the ends are marks (`INT64_MAX`: to the end); they may be passed on and compared, but not computed
/// with.
fn elementwise(op: ScalarOp, args: &[&Ix], count: i64, facts: &Facts, asked: &Asked) -> Option<Ix> {
    let mark = |x: &&Ix| x.as_const().is_some_and(|c| !(-(1 << 52)..1 << 52).contains(&c));
    if args.iter().any(mark) {
        return match (op, args) {
            (ScalarOp::Copy | ScalarOp::ExtI { .. }, [a]) => Some((*a).clone()),
            (ScalarOp::Select, [c, a, b]) => match c.as_const() {
                Some(c) => Some(if c == 0 { *b } else { *a }.clone()),
                None => (a == b).then(|| (*a).clone()),
            },
            (ScalarOp::MinI { .. }, [a, b]) => Some(Ix::min((*a).clone(), (*b).clone())),
            (ScalarOp::CmpI { pred, .. }, [a, b]) => {
                asked.decided(condition(pred, a, b), facts, Question::Whether).map(|holds| Ix::Const(holds.into()))
            }
            _ => None,
        };
    }
    if args.iter().map(|a| a.size()).sum::<usize>() > MOST_STEPS {
        return None;
    }
    let logic = |x: &Ix| facts.range(x).within(Interval::new(0, 1));
    Some(match (op, args) {
        (ScalarOp::Copy | ScalarOp::ExtI { .. }, [a]) => (*a).clone(),
        (ScalarOp::TruncI { .. }, [a]) => (*a).clone(),
        (ScalarOp::AddI, [a, b]) => Ix::add((*a).clone(), (*b).clone()),
        (ScalarOp::SubI, [a, b]) => Ix::sub((*a).clone(), (*b).clone()),
        (ScalarOp::MulI, [a, b]) => Ix::mul((*a).clone(), (*b).clone()),
        (ScalarOp::AbsI, [a]) => Ix::max((*a).clone(), negated(a)),
        (ScalarOp::NegI, [a]) => Ix::sub(Ix::Const(0), (*a).clone()),
        (ScalarOp::MaxI { .. }, [a, b]) => Ix::max((*a).clone(), (*b).clone()),
        (ScalarOp::MinI { .. }, [a, b]) => Ix::min((*a).clone(), (*b).clone()),
        (ScalarOp::DivI { rounding, .. }, [a, b]) => quotient(a, b, rounding, facts, asked)?,
        (ScalarOp::RemI { .. }, [a, b]) => {
            let whole = quotient(a, b, Rounding::Zero, facts, asked)?;
            match facts.range(a).lo >= 0 && facts.range(b).lo > 0 {
                true => Ix::modulo((*a).clone(), (*b).clone()),
                false => Ix::sub((*a).clone(), Ix::mul(whole, (*b).clone())),
            }
        }
        (ScalarOp::CmpI { pred, .. }, [a, b]) => decided(condition(pred, a, b), count, facts, asked)?,
        (ScalarOp::Select, [c, a, b]) => match c.as_const() {
            Some(c) => if c == 0 { *b } else { *a }.clone(),
            None if a == b => (*a).clone(),
            None if logic(c) => {
                let apart = Ix::sub((*a).clone(), (*b).clone());
                let chosen = Ix::add((*b).clone(), Ix::mul((*c).clone(), apart));
                // The sum does not show that it is no less than both.
                let least = facts.range(a).lo.min(facts.range(b).lo);
                match i64::try_from(least) {
                    Ok(least) if least >= 0 => Ix::max(chosen, Ix::Const(least)),
                    _ => chosen,
                }
            }
            None => return None,
        },
        (ScalarOp::And, [a, b]) if logic(a) && logic(b) => Ix::min((*a).clone(), (*b).clone()),
        (ScalarOp::Or, [a, b]) if logic(a) && logic(b) => Ix::max((*a).clone(), (*b).clone()),
        (ScalarOp::Xor, [a, b]) if logic(a) && logic(b) => match (a.as_const(), b.as_const()) {
            (_, Some(0)) => (*a).clone(),
            (Some(0), _) => (*b).clone(),
            (_, Some(_)) => Ix::sub(Ix::Const(1), (*a).clone()),
            (Some(_), _) => Ix::sub(Ix::Const(1), (*b).clone()),
            _ => Ix::sub(Ix::max((*a).clone(), (*b).clone()), Ix::min((*a).clone(), (*b).clone())),
        },
        (ScalarOp::And, [a, b]) => Ix::Const(a.as_const()? & b.as_const()?),
        (ScalarOp::Or, [a, b]) => Ix::Const(a.as_const()? | b.as_const()?),
        (ScalarOp::Xor, [a, b]) => Ix::Const(a.as_const()? ^ b.as_const()?),
        _ => return None,
    })
}

fn negated(x: &Ix) -> Ix {
    Ix::sub(Ix::Const(0), x.clone())
}

/// A quotient by a number that is known not to be 0; otherwise it is asked if the number is greater than 0.
pub(super) fn quotient(a: &Ix, b: &Ix, rounding: Rounding, facts: &Facts, asked: &Asked) -> Option<Ix> {
    if facts.range(b).hi < 0 {
        return quotient(&negated(a), &negated(b), rounding, facts, asked);
    }
    if b.is_const(0) || asked.decided(Cond::new(b.clone(), Cmp::Gt, Ix::Const(0)), facts, Question::Holds) != Some(true)
    {
        return None;
    }
    let floor = |x: Ix| Ix::floor_div(x, b.clone());
    let range = facts.range(a);
    Some(match rounding {
        Rounding::NegativeInf => floor(a.clone()),
        Rounding::PositiveInf => Ix::ceil_div(a.clone(), b.clone()),
        _ if range.lo >= 0 => floor(a.clone()),
        _ if range.hi <= 0 => negated(&floor(negated(a))),
        _ => {
            let (above, below) = (Ix::max(a.clone(), Ix::Const(0)), Ix::max(negated(a), Ix::Const(0)));
            Ix::sub(floor(above), floor(below))
        }
    })
}

fn element(graph: &Graph, x: Arg) -> Option<Elem> {
    match x {
        Arg::Value(v) => Some(graph.values.get(v)?.elem),
        Arg::Scalar { elem, .. } => Some(elem),
        Arg::Absent => None,
    }
}

/// 0 or 1 for a condition on one of `count` elements.
fn decided(cond: Cond, count: i64, facts: &Facts, asked: &Asked) -> Option<Ix> {
    match asked.decided(cond.clone(), facts, Question::Whether) {
        Some(holds) => Some(Ix::Const(holds.into())),
        None => (count <= A_SHAPE).then(|| simplify(&indicator(&cond), facts)),
    }
}

pub(super) fn condition(pred: Predicate, a: &Ix, b: &Ix) -> Cond {
    let cmp = match pred {
        Predicate::Equal => Cmp::Eq,
        Predicate::NotEqual => Cmp::Ne,
        Predicate::LessThan => Cmp::Lt,
        Predicate::LessThanOrEqual => Cmp::Le,
        Predicate::GreaterThan => Cmp::Gt,
        Predicate::GreaterThanOrEqual => Cmp::Ge,
    };
    Cond::new(a.clone(), cmp, b.clone())
}

/// 1 where a condition holds, and 0 where it does not.
fn indicator(cond: &Cond) -> Ix {
    let (a, b) = (&cond.lhs, &cond.rhs);
    let apart = |x: &Ix, y: &Ix| Ix::sub(x.clone(), y.clone());
    let above = |x: &Ix, y: &Ix| Ix::max(Ix::min(apart(x, y), Ix::Const(1)), Ix::Const(0));
    let not = |x: Ix| Ix::sub(Ix::Const(1), x);
    let size = Ix::max(Ix::max(apart(a, b), apart(b, a)), Ix::Const(0));
    let differ = || Ix::min(size.clone(), Ix::Const(1));
    match cond.cmp {
        Cmp::Gt => above(a, b),
        Cmp::Lt => above(b, a),
        Cmp::Ge => not(above(b, a)),
        Cmp::Le => not(above(a, b)),
        Cmp::Ne => differ(),
        Cmp::Eq => not(differ()),
    }
}
