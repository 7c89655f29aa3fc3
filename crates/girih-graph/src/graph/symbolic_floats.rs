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
use super::symbolic_ints::{between, condition, quotient};
use crate::index::{Cmp, Cond, Facts, Interval, Ix};
use crate::num::ScalarOp;
use crate::num::op::{Predicate, Rounding};

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
    /// The float is one beside the quotient, of an integer times a constant such as 0.6: see [`scaled`].
    beside: Option<Beside>,
}

/// How far an integer may be from 0 so that the float beside a quotient of it rounds as the quotient does.
#[derive(Clone, PartialEq, Debug)]
struct Beside {
    of: Ix,
    room: i64,
    floor: i64,
    ceil: i64,
    nearest: i64,
}

impl Quotient {
    fn new(number: Ix, divisor: Ix, exact: bool, from: &[&Quotient]) -> Option<Quotient> {
        if from.iter().any(|q| q.beside.is_some()) {
            return None;
        }
        let mut steps: Vec<Ix> = vec![];
        for step in from.iter().flat_map(|q| &q.steps).chain([&number, &divisor]) {
            if !step.vals().is_empty() && !steps.contains(step) {
                steps.push(step.clone());
            }
        }
        (steps.len() <= MOST_STEPS).then_some(Quotient { number, divisor, exact, steps, beside: None })
    }
    fn whole(number: Ix, from: &[&Quotient]) -> Option<Quotient> {
        Quotient::new(number, Ix::Const(1), true, from)
    }
    /// A constant with few bits.
    fn constant(x: f64) -> Option<Quotient> {
        let divisor = (0..17).map(|k| f64::from(1u32 << k)).find(|d| (x * d).fract() == 0.0)?;
        let number = Ix::Const((x * divisor) as i64);
        let fits = x.is_finite() && (x * divisor).abs() <= GREATEST;
        fits.then_some(Quotient {
            number,
            divisor: Ix::Const(divisor as i64),
            exact: true,
            steps: vec![],
            beside: None,
        })
    }
    pub fn steps(&self) -> &[Ix] {
        &self.steps
    }
    /// The quotient with a step that bounds the integer that it is made of: the guard of a step keeps its product within the
    /// integers of the format.
    fn within(&self, most: impl Fn(&Beside) -> i64) -> Option<Quotient> {
        let Some(beside) = &self.beside else { return Some(self.clone()) };
        let most = Some(most(beside)).filter(|most| *most >= NEAREST)?;
        let mut bounded = Quotient { beside: None, ..self.clone() };
        bounded.steps.push(Ix::mul(beside.of.clone(), Ix::Const(beside.room / most + 1)));
        (bounded.steps.len() <= MOST_STEPS).then_some(bounded)
    }
    /// The integer towards 0: the floor on one side of it, which is the ceiling on the other.
    pub fn truncated(&self, facts: &Facts, asked: &Asked) -> Option<Quotient> {
        self.rounded(Rounding::Zero, facts, asked)
    }
    /// The nearest integer, an even one from between two.
    fn nearest(&self, facts: &Facts, asked: &Asked) -> Option<Quotient> {
        let x = &self.within(|most| most.nearest)?;
        if x.divisor.is_const(1) {
            return Some(x.clone());
        }
        // floor(x + 1/2), less one where that was between two integers and the upper one is odd.
        let two = || Ix::Const(2);
        let number = Ix::add(Ix::mul(x.number.clone(), two()), x.divisor.clone());
        let above = Quotient::new(number, Ix::mul(x.divisor.clone(), two()), false, &[x])?;
        let up = quotient(&above.number, &above.divisor, Rounding::NegativeInf, facts, asked)?;
        let rest = Ix::modulo(above.number.clone(), above.divisor.clone());
        let between = Ix::sub(Ix::Const(1), Ix::min(rest, Ix::Const(1)));
        let odd = Ix::modulo(up.clone(), two());
        Quotient::whole(Ix::sub(up, Ix::min(between, odd)), &[&above])
    }
    fn rounded(&self, rounding: Rounding, facts: &Facts, asked: &Asked) -> Option<Quotient> {
        let positive = facts.range(&self.number).lo >= 0;
        // On the other side of 0, a floor is a ceiling.
        let x = self.within(|most| match rounding {
            Rounding::Zero | Rounding::NegativeInf if positive => most.floor,
            Rounding::PositiveInf if positive => most.ceil,
            _ => most.floor.min(most.ceil),
        })?;
        Quotient::whole(quotient(&x.number, &x.divisor, rounding, facts, asked)?, &[&x])
    }
    pub fn number(&self) -> &Ix {
        &self.number
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
    if all.iter().any(|q| q.beside.is_some()) {
        return None;
    }
    let mut guards = vec![];
    all.iter().flat_map(|q| &q.steps).try_for_each(|ix| between(ix, bounds, facts, &mut guards))?;
    Some(guards)
}

/// The same for floats that are converted to integers next: the conversion drops the fraction.
pub fn exact_integers(all: &[Quotient], elem: Elem, facts: &Facts) -> Option<Vec<Cond>> {
    let all: Vec<Quotient> = all.iter().map(|q| q.within(|most| most.floor.min(most.ceil))).collect::<Option<_>>()?;
    exact(&all, elem, facts)
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
        Op::Elementwise(ScalarOp::RoundEven) => each(&|x| x.nearest(facts, asked)),
        Op::Elementwise(ScalarOp::AbsF) => each(&|x| {
            let number = Ix::max(x.number.clone(), Ix::sub(Ix::Const(0), x.number.clone()));
            Quotient::new(number, x.divisor.clone(), x.exact, &[x])
        }),
        // Rounding keeps the order.
        Op::Elementwise(op @ (ScalarOp::MaxF { .. } | ScalarOp::MinF { .. })) => both(&|x, y| {
            let (p, q) = crossed(x, y);
            let number = if matches!(op, ScalarOp::MaxF { .. }) { Ix::max(p, q) } else { Ix::min(p, q) };
            Quotient::new(number, Ix::mul(x.divisor.clone(), y.divisor.clone()), x.exact && y.exact, &[x, y])
        }),
        Op::Elementwise(ScalarOp::NegF) => each(&|x| {
            let number = Ix::sub(Ix::Const(0), x.number.clone());
            Quotient::new(number, x.divisor.clone(), x.exact, &[x])
        }),
        Op::Elementwise(op @ (ScalarOp::AddF { .. } | ScalarOp::SubF { .. })) => {
            let minus = matches!(op, ScalarOp::SubF { .. });
            both(&|x, y| summed(x, y, minus))
        }
        Op::Elementwise(ScalarOp::MulF { .. }) => both(&multiplied).or_else(|| {
            let factor = |x: Arg, by: Arg| scaled(graph, x, by, count, result.elem, false);
            let &[x, y] = &node.args[..] else { return None };
            factor(x, y).or_else(|| factor(y, x))
        }),
        Op::Elementwise(ScalarOp::DivF { .. }) => both(&|x, y| divided(x, y, facts, asked)).or_else(|| {
            let &[x, y] = &node.args[..] else { return None };
            scaled(graph, x, y, count, result.elem, true)
        }),
        _ => None,
    }
}

/// Numerators over a common divisor.
fn crossed(x: &Quotient, y: &Quotient) -> (Ix, Ix) {
    (Ix::mul(x.number.clone(), y.divisor.clone()), Ix::mul(y.number.clone(), x.divisor.clone()))
}

/// The condition on integers that is one on floats. A rounded quotient lies on the same side of integers only.
pub fn compared(x: &Quotient, pred: Predicate, y: &Quotient) -> Option<Cond> {
    let fits = |x: &Quotient, y: &Quotient| x.exact || (x.beside.is_none() && y.exact && y.divisor.is_const(1));
    let (p, q) = crossed(x, y);
    (fits(x, y) && fits(y, x)).then(|| condition(pred, &p, &q))
}

/// The greatest integer that is tried with a constant that is not a short fraction, and the least that is worth a model.
const FARTHEST: i64 = 1 << 17;
const NEAREST: i64 = 1 << 10;
/// The greatest divisor of the fraction that is tried for such a constant.
const GREATEST_DIVISOR: i64 = 1 << 12;

/// Integers times a constant such as 0.6, or by it: the fraction `p / q` next to it, for integers whose float rounds as the
/// fraction does, which is tried.
fn scaled(graph: &Graph, x: Arg, by: Arg, count: usize, elem: Elem, inverse: bool) -> Option<Vec<Quotient>> {
    let (xs, by) = (of(graph, x, count)?, constant(graph, by)?);
    let float = |n: i64| match (elem.dtype.bits(), inverse) {
        (32, false) => f64::from(n as f32 * by as f32),
        (32, true) => f64::from(n as f32 / by as f32),
        (_, false) => n as f64 * by,
        (_, true) => n as f64 / by,
    };
    let factor = if inverse { 1.0 / by } else { by };
    let near = |q: &i64| ((factor * *q as f64).round() / *q as f64 - factor).abs() <= factor.abs() * 1e-6;
    if !(factor.abs() <= GREATEST && factor != 0.0) {
        return None;
    }
    let q = (1..=GREATEST_DIVISOR).find(near)?;
    let p = (factor * q as f64).round() as i64;
    let (mut floor, mut ceil, mut nearest) = (FARTHEST, FARTHEST, FARTHEST);
    for n in (1..=FARTHEST).rev() {
        let (at, below, above) = (float(n), (n * p).div_euclid(q), -(-n * p).div_euclid(q));
        let half = 2 * (n * p - below * q) - q;
        let even = if half > 0 || half == 0 && below % 2 != 0 { below + 1 } else { below };
        for (most, found, wanted) in
            [(&mut floor, at.floor(), below), (&mut ceil, at.ceil(), above), (&mut nearest, at.round_ties_even(), even)]
        {
            if found != wanted as f64 {
                *most = n - 1;
            }
        }
    }
    let room = 1i64 << (integer_bits(elem)? - 1);
    let one = |x: &Quotient| {
        let of = x.divisor.is_const(1).then(|| x.number.clone())?;
        let beside = Beside { of: of.clone(), room, floor, ceil, nearest };
        let quotient = Quotient::new(Ix::mul(of, Ix::Const(p)), Ix::Const(q), false, &[x])?;
        Some(Quotient { beside: Some(beside), ..quotient })
    };
    xs.iter().map(one).collect()
}

/// The one number that a constant holds.
fn constant(graph: &Graph, x: Arg) -> Option<f64> {
    let v = match x {
        Arg::Scalar { elem, bits } if elem.is_float() => return Some(number_of(elem, bits)),
        Arg::Value(v) => v,
        _ => return None,
    };
    let (node, _) = graph.def(v)?;
    match (&node.op, &node.args[..]) {
        (Op::Constant(c), _) => {
            let c = graph.constants.get(*c).filter(|c| c.elem.is_float())?;
            let [bits] = constant_bits(c)?[..] else { return None };
            Some(number_of(c.elem, bits))
        }
        (Op::IndexMap(sources), [x]) if sources.len() == 1 => constant(graph, *x),
        _ => None,
    }
}

fn summed(x: &Quotient, y: &Quotient, minus: bool) -> Option<Quotient> {
    let (p, q) = crossed(x, y);
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
