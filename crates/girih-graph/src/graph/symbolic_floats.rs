//! Floats that models compute from extents on the way to other extents: `ceil(float(t) / 2)`, `floor(float(n) * 1.5)`.
//!
//! In: a node whose result is a few floats. Out: each of them as the quotient of two integers that symbols determine,
//! if its operations are exact, or round once at the end: a quotient of two integers that the format represents lies on
//! the same side of every integer after it is rounded, so its floor and its ceiling are exact.
//!
//! Invariant: a quotient is right if the format represents all integers among its steps, which
//! [`super::Builder::fit_floats`] guards.

use super::Elem;
use super::assume::{Asked, Question};
use super::build::{constant_bits, int_of, number_of};
use super::ir::{Arg, Graph, NodeId, Op};
use super::symbolic_ints::{between, quotient};
use crate::index::{Cmp, Cond, Facts, Interval, Ix};
use crate::num::ScalarOp;
use crate::num::op::Rounding;

/// The most floats that may become a shape.
const MOST: i64 = 16;
/// The most integers between extents and a float.
const MOST_STEPS: usize = 32;
/// The greatest numerator and divisor of a constant.
const GREATEST: f64 = 65536.0;

/// `number / divisor`, where the divisor is positive.
#[derive(Clone, PartialEq, Debug)]
pub struct Quotient {
    number: Ix,
    divisor: Ix,
    /// The format represents the quotient exactly; otherwise it has the nearest number.
    exact: bool,
    /// The integers that depend on symbols on the way.
    steps: Vec<Ix>,
}

impl Quotient {
    fn new(number: Ix, divisor: Ix, exact: bool, from: &[&Quotient]) -> Option<Quotient> {
        let mut steps: Vec<Ix> = vec![];
        for step in from.iter().flat_map(|q| &q.steps).chain([&number, &divisor]) {
            if !step.vals().is_empty() && !steps.contains(step) {
                steps.push(step.clone());
            }
        }
        (steps.len() <= MOST_STEPS).then_some(Quotient { number, divisor, exact, steps })
    }
    fn whole(number: Ix, from: &[&Quotient]) -> Option<Quotient> {
        Quotient::new(number, Ix::Const(1), true, from)
    }
    /// A constant with few bits.
    fn constant(x: f64) -> Option<Quotient> {
        let divisor = (0..17).map(|k| f64::from(1u32 << k)).find(|d| (x * d).fract() == 0.0)?;
        let number = Ix::Const((x * divisor) as i64);
        let fits = x.is_finite() && (x * divisor).abs() <= GREATEST;
        fits.then_some(Quotient { number, divisor: Ix::Const(divisor as i64), exact: true, steps: vec![] })
    }
    pub fn steps(&self) -> &[Ix] {
        &self.steps
    }
    pub fn truncated(&self, facts: &Facts, asked: &Asked) -> Option<Ix> {
        quotient(&self.number, &self.divisor, Rounding::Zero, facts, asked)
    }
    fn rounded(&self, rounding: Rounding, facts: &Facts, asked: &Asked) -> Option<Quotient> {
        Quotient::whole(quotient(&self.number, &self.divisor, rounding, facts, asked)?, &[self])
    }
}

/// The bits, including the sign, of the integers that the format represents without gaps.
pub fn integer_bits(elem: Elem) -> Option<u32> {
    match elem.dtype.bits() {
        32 if elem.is_float() => Some(25),
        64 if elem.is_float() => Some(54),
        _ => None,
    }
}

/// The conditions under which floats of this type represent all integers on the way; `None` if they never do.
pub fn exact(all: &[Quotient], elem: Elem, facts: &Facts) -> Option<Vec<Cond>> {
    let bounds = Interval::signed(integer_bits(elem)?);
    let mut guards = vec![];
    all.iter().flat_map(|q| &q.steps).try_for_each(|ix| between(ix, bounds, facts, &mut guards))?;
    Some(guards)
}

/// The `count` elements of an operand.
pub fn of(graph: &Graph, x: Arg, count: usize) -> Option<Vec<Quotient>> {
    let list = match x {
        Arg::Value(v) => match (&graph.values.get(v)?.quotients, graph.def(v).map(|(node, _)| &node.op)) {
            (Some(list), _) => list.clone(),
            (None, Some(Op::Constant(c))) => {
                let c = graph.constants.get(*c)?;
                let few = c.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).is_some_and(|n| n <= MOST as u64);
                let bits = constant_bits(c).filter(|_| few && c.elem.is_float())?;
                bits.into_iter().map(|bits| Quotient::constant(number_of(c.elem, bits))).collect::<Option<_>>()?
            }
            _ => return None,
        },
        Arg::Scalar { elem, bits } => vec![Quotient::constant(number_of(elem, bits))?],
        Arg::Absent => return None,
    };
    match &list[..] {
        all if all.len() == count => Some(list),
        [one] => Some(vec![one.clone(); count]),
        _ => None,
    }
}

/// The elements of a node's first result, if it is a few floats that symbols determine.
pub fn quotients(graph: &Graph, node: NodeId, facts: &Facts, asked: &Asked) -> Option<Vec<Quotient>> {
    let node = graph.nodes.get(node)?;
    let result = graph.values.get(*node.results.first()?)?;
    let count = result.shape.iter().try_fold(1i64, |n, d| n.checked_mul(d.as_const()?))?;
    integer_bits(result.elem).filter(|_| (0..=MOST).contains(&count))?;
    let count = count as usize;
    let operand = |at: usize| of(graph, *node.args.get(at)?, count);
    let each = |f: &dyn Fn(&Quotient) -> Option<Quotient>| operand(0)?.iter().map(f).collect::<Option<Vec<_>>>();
    let both = |f: &dyn Fn(&Quotient, &Quotient) -> Option<Quotient>| {
        operand(0)?.iter().zip(&operand(1)?).map(|(a, b)| f(a, b)).collect::<Option<Vec<_>>>()
    };
    match &node.op {
        // One element in another shape.
        Op::IndexMap(sources) if sources.len() == 1 && count == 1 => operand(0),
        Op::Elementwise(ScalarOp::IToF { .. }) => {
            let ints = match *node.args.first()? {
                Arg::Value(v) => graph.values.get(v)?.ints.clone()?,
                Arg::Scalar { elem, bits } => vec![Ix::Const(int_of(elem, bits))],
                Arg::Absent => return None,
            };
            ints.into_iter().map(|ix| Quotient::whole(ix, &[])).collect()
        }
        Op::Elementwise(ScalarOp::Copy) => operand(0),
        Op::Elementwise(ScalarOp::FToF { .. }) => each(&|x| x.exact.then(|| x.clone())),
        Op::Elementwise(ScalarOp::Floor) => each(&|x| x.rounded(Rounding::NegativeInf, facts, asked)),
        Op::Elementwise(ScalarOp::Ceil) => each(&|x| x.rounded(Rounding::PositiveInf, facts, asked)),
        Op::Elementwise(ScalarOp::NegF) => each(&|x| {
            let number = Ix::sub(Ix::Const(0), x.number.clone());
            Quotient::new(number, x.divisor.clone(), x.exact, &[x])
        }),
        Op::Elementwise(op @ (ScalarOp::AddF { .. } | ScalarOp::SubF { .. })) => {
            let minus = matches!(op, ScalarOp::SubF { .. });
            both(&|x, y| summed(x, y, minus))
        }
        Op::Elementwise(ScalarOp::MulF { .. }) => both(&multiplied),
        Op::Elementwise(ScalarOp::DivF { .. }) => both(&|x, y| divided(x, y, facts, asked)),
        _ => None,
    }
}

fn summed(x: &Quotient, y: &Quotient, minus: bool) -> Option<Quotient> {
    let (p, q) = (Ix::mul(x.number.clone(), y.divisor.clone()), Ix::mul(y.number.clone(), x.divisor.clone()));
    let number = if minus { Ix::sub(p, q) } else { Ix::add(p, q) };
    let divisor = Ix::mul(x.divisor.clone(), y.divisor.clone());
    if x.exact && y.exact { Quotient::new(number, divisor, true, &[x, y]) } else { None }
}

fn multiplied(x: &Quotient, y: &Quotient) -> Option<Quotient> {
    let number = Ix::mul(x.number.clone(), y.number.clone());
    let divisor = Ix::mul(x.divisor.clone(), y.divisor.clone());
    if x.exact && y.exact { Quotient::new(number, divisor, true, &[x, y]) } else { None }
}

fn divided(x: &Quotient, y: &Quotient, facts: &Facts, asked: &Asked) -> Option<Quotient> {
    let positive = Cond::new(y.number.clone(), Cmp::Gt, Ix::Const(0));
    if !x.exact || !y.exact || asked.decided(positive, facts, Question::Holds) != Some(true) {
        return None;
    }
    let number = Ix::mul(x.number.clone(), y.divisor.clone());
    let divisor = Ix::mul(x.divisor.clone(), y.number.clone());
    let exact = divisor.as_const().is_some_and(|d| d.count_ones() == 1);
    Quotient::new(number, divisor, exact, &[x, y])
}
