//! Loops whose condition compares a number that moves by a constant with one that stays, as converters write `while i < n`.
//!
//! In: the graph of a round, the condition that it gives and the state after it. Out: the number of consecutive rounds
//! with a true condition, where symbols determine it.
//!
//! ```text
//! i = 0; do { i2 = i + 1; go = i2 < t and i2 < 2147483647; i = i2 } while go     -->   go is true max(t - 1, 0) times
//! ```

use crate::graph::build::int_of;
use crate::graph::ir::{Arg, Def, Graph, Op, ValueId};
use crate::index::Ix;
use crate::num::ScalarOp;
use crate::num::op::Predicate;

/// How many operations are followed.
const DEEPEST: usize = 32;

/// A round, and the known values around it.
pub(super) struct Round<'a> {
    pub graph: &'a Graph,
    /// For each of the body's first inputs: its value before the first round, `None` if it is not known, and its value
    /// after a round.
    pub state: &'a [(Option<Ix>, Arg)],
}

/// An operation on single elements.
enum Step {
    Same,
    Both,
    Compare(Predicate),
    Plus,
    Minus,
}

/// An integer: an input of the body, if any, plus a constant.
struct Moved {
    input: Option<usize>,
    by: Ix,
}

impl Round<'_> {
    /// The number of rounds, from the first one on, in which the condition is true; `None` where that is not known,
    /// `Some(None)` where it never fails.
    pub(super) fn times(&self, condition: Arg) -> Option<Option<Ix>> {
        self.follow(condition, DEEPEST)
    }

    fn follow(&self, condition: Arg, depth: usize) -> Option<Option<Ix>> {
        let depth = depth.checked_sub(1)?;
        if let Some(known) = self.known(condition).and_then(|ix| ix.as_const()) {
            return Some((known == 0).then_some(Ix::Const(0)));
        }
        let Arg::Value(v) = condition else { return None };
        let (step, args) = self.step(v)?;
        match (step, args) {
            (Step::Same, [x, ..]) => self.follow(*x, depth),
            (Step::Both, [x, y]) => Some(match (self.follow(*x, depth)?, self.follow(*y, depth)?) {
                (Some(x), Some(y)) => Some(Ix::min(x, y)),
                (x, y) => x.or(y),
            }),
            (Step::Compare(pred), [x, y]) => {
                let (x, y) = (self.moved(*x, depth)?, self.moved(*y, depth)?);
                let (equal, x, y) = match pred {
                    Predicate::LessThan => (false, x, y),
                    Predicate::LessThanOrEqual => (true, x, y),
                    Predicate::GreaterThan => (false, y, x),
                    Predicate::GreaterThanOrEqual => (true, y, x),
                    _ => return None,
                };
                self.while_less(&x, &y, equal).map(Some)
            }
            _ => None,
        }
    }

    /// The operation that computes a value of one element.
    fn step(&self, v: ValueId) -> Option<(Step, &[Arg])> {
        let (node, 0) = self.graph.def(v).filter(|_| self.is_one(v))? else { return None };
        let step = match &node.op {
            Op::IndexMap(sources) if sources.len() == 1 => Step::Same,
            Op::Elementwise(op) => match op {
                ScalarOp::Copy | ScalarOp::ExtI { .. } | ScalarOp::TruncI { .. } => Step::Same,
                ScalarOp::And => Step::Both,
                ScalarOp::CmpI { pred, .. } => Step::Compare(*pred),
                ScalarOp::AddI => Step::Plus,
                ScalarOp::SubI => Step::Minus,
                _ => return None,
            },
            Op::Source { name, .. } => match name.as_str() {
                "onnx.Identity" | "onnx.Cast" | "onnx.Reshape" | "onnx.Squeeze" | "onnx.Unsqueeze" => Step::Same,
                "onnx.And" => Step::Both,
                "onnx.Less" => Step::Compare(Predicate::LessThan),
                "onnx.LessOrEqual" => Step::Compare(Predicate::LessThanOrEqual),
                "onnx.Greater" => Step::Compare(Predicate::GreaterThan),
                "onnx.GreaterOrEqual" => Step::Compare(Predicate::GreaterThanOrEqual),
                "onnx.Add" => Step::Plus,
                "onnx.Sub" => Step::Minus,
                _ => return None,
            },
            _ => return None,
        };
        Some((step, &node.args))
    }

    /// The number of rounds in which `x` is less than `y`, or not greater.
    fn while_less(&self, x: &Moved, y: &Moved, equal: bool) -> Option<Ix> {
        let ((x, up), (y, down)) = (self.line(x)?, self.line(y)?);
        // The amount by which they come closer in a round.
        let step = up.checked_sub(down).filter(|step| *step > 0)?;
        let apart = Ix::sub(y, x);
        let apart = if equal { Ix::add(apart, Ix::Const(1)) } else { apart };
        Some(Ix::max(Ix::ceil_div(apart, Ix::Const(step)), Ix::Const(0)))
    }

    /// Its value in the first round, and what is added in each.
    fn line(&self, x: &Moved) -> Option<(Ix, i64)> {
        let Some(input) = x.input else { return Some((x.by.clone(), 0)) };
        let (first, next) = self.state.get(input)?;
        let next = self.moved(*next, DEEPEST)?;
        if next.input != Some(input) {
            return None;
        }
        Some((Ix::add(first.clone()?, x.by.clone()), next.by.as_const()?))
    }

    fn moved(&self, x: Arg, depth: usize) -> Option<Moved> {
        let depth = depth.checked_sub(1)?;
        if let Some(by) = self.known(x) {
            return Some(Moved { input: None, by });
        }
        let Arg::Value(v) = x else { return None };
        let value = self.graph.values.get(v)?;
        if !value.elem.is_int() || value.elem.bits() < 32 || !self.is_one(v) {
            return None;
        }
        if let Def::Input(at) = value.def {
            return Some(Moved { input: Some(at as usize), by: Ix::Const(0) });
        }
        match self.step(v)? {
            (Step::Same, [x, ..]) => self.moved(*x, depth),
            (Step::Plus, [x, y]) => {
                let (x, y) = (self.moved(*x, depth)?, self.moved(*y, depth)?);
                let input = if x.input.is_some() && y.input.is_some() { return None } else { x.input.or(y.input) };
                Some(Moved { input, by: Ix::add(x.by, y.by) })
            }
            (Step::Minus, [x, y]) => {
                let (x, y) = (self.moved(*x, depth)?, self.moved(*y, depth)?);
                y.input.is_none().then(|| Moved { input: x.input, by: Ix::sub(x.by, y.by) })
            }
            _ => None,
        }
    }

    fn is_one(&self, v: ValueId) -> bool {
        self.graph.values.get(v).is_some_and(|v| v.shape.iter().all(|d| d.is_const(1)))
    }

    /// The one integer of a value, where symbols determine it.
    fn known(&self, x: Arg) -> Option<Ix> {
        match x {
            Arg::Value(v) => match self.graph.values.get(v)?.ints.as_deref() {
                Some([one]) => Some(one.clone()),
                _ => None,
            },
            Arg::Scalar { elem, bits } if elem.dtype.is_int() => Some(Ix::Const(int_of(elem, bits))),
            _ => None,
        }
    }
}
