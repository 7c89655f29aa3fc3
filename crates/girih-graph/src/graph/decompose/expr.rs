//! Tensors of a rule as values with operators, so that a decomposition reads like its formula.
//!
//! In: operands of a rule, by [`Cx::tensor`]. Out: nodes, appended in the order in which operators are evaluated: from left to right,
//! operands first.
//!
//! ```text
//! 1.0 / ((-x).exp() + 1.0)     -->     n = neg x; e = exp n; d = add e, 1.0; y = div 1.0, d
//! ```
//!
//! Invariants:
//! * No operator fails. The first mistake is noted in the [`Cx`], its value is poisoned, and so is what is computed of it; [`Cx::within`]
//!   gives the mistake when the rule ends. So operands that do not fit are refused with the message of the first place where they
//!   do not.
//! * A poisoned value has no shape: [`Tensor::shape`] and its like give the mistake. So no index into a shape is out of range because
//!   of it.
//! * A number beside a tensor takes the tensor's type. Tensors do not convert by themselves: `types.rs` has the promotions.

use std::cell::RefCell;
use std::ops;

use crate::graph::Elem;
use crate::graph::assume::Asked;
use crate::graph::build::repeat::Rounds;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScanOp, ScatterOp};
use crate::index::{Facts, Interval, Ix};
use crate::num::ScalarOp;
use crate::num::op::{Predicate, Rounding};

/// The state that the tensors of one rule share: the builder of the graph, and the first mistake.
pub struct Cx<'g> {
    builder: RefCell<Builder<'g>>,
    mistake: RefCell<Option<Refusal>>,
}

/// A tensor, or a number, of a rule.
#[derive(Clone, Copy)]
pub struct Tensor<'g> {
    pub arg: Arg,
    pub cx: &'g Cx<'g>,
}

/// An operand beside a tensor: another tensor, or a number, which takes the tensor's type.
pub trait Operand<'g>: Copy {
    fn beside(self, like: Tensor<'g>) -> Tensor<'g>;
    /// The tensor; `None` for a number.
    fn own(self) -> Option<Tensor<'g>>;
}

impl<'g> Operand<'g> for Tensor<'g> {
    fn beside(self, _: Tensor<'g>) -> Tensor<'g> {
        self
    }
    fn own(self) -> Option<Tensor<'g>> {
        Some(self)
    }
}
impl<'g> Operand<'g> for f64 {
    fn beside(self, like: Tensor<'g>) -> Tensor<'g> {
        like.cx.number(like.elem(), self)
    }
    fn own(self) -> Option<Tensor<'g>> {
        None
    }
}
impl<'g> Operand<'g> for i64 {
    fn beside(self, like: Tensor<'g>) -> Tensor<'g> {
        like.cx.tensor(ir::int_scalar(like.elem(), self))
    }
    fn own(self) -> Option<Tensor<'g>> {
        None
    }
}

/// The results of a rule, in any form.
pub trait Results<'g> {
    fn results(self) -> Result<Vec<Tensor<'g>>>;
}
impl<'g> Results<'g> for Tensor<'g> {
    fn results(self) -> Result<Vec<Tensor<'g>>> {
        Ok(vec![self])
    }
}
impl<'g> Results<'g> for Vec<Tensor<'g>> {
    fn results(self) -> Result<Vec<Tensor<'g>>> {
        Ok(self)
    }
}
impl<'g, const N: usize> Results<'g> for [Tensor<'g>; N] {
    fn results(self) -> Result<Vec<Tensor<'g>>> {
        Ok(self.to_vec())
    }
}
impl<'g, R: Results<'g>> Results<'g> for Result<R> {
    fn results(self) -> Result<Vec<Tensor<'g>>> {
        self?.results()
    }
}

/// All axes of a tensor.
pub fn all(rank: usize) -> Vec<usize> {
    (0..rank).collect()
}

/// Coordinates that read one axis at the first index, and each other axis at its own place.
pub fn along(axis: usize, rank: usize) -> Vec<Coord> {
    (0..rank).map(|d| if d == axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) }).collect()
}

impl<'g> Cx<'g> {
    /// Runs `rule` over the values of `b`.
    pub fn within<T>(b: &mut Builder<'_>, rule: impl for<'s> FnOnce(&'s Cx<'s>) -> Result<T>) -> Result<T> {
        let (outcome, state) = {
            let cx = Cx::new(b);
            let outcome = rule(&cx);
            cx.ended(outcome)
        };
        b.restore(state);
        outcome
    }

    /// Borrows a builder for a while.
    pub fn new(b: &'g mut Builder<'_>) -> Cx<'g> {
        Cx { builder: RefCell::new(b.lend()), mistake: RefCell::default() }
    }
    /// The outcome of a rule, or the mistake that was noted on the way, and what is to be given back to the builder.
    pub fn ended<T>(&self, outcome: Result<T>) -> (Result<T>, (Facts, Asked)) {
        let outcome = self.mistake.take().map_or(outcome, Err);
        (outcome, self.build(Builder::state))
    }

    /// The same with one result.
    pub fn one(b: &mut Builder<'_>, rule: impl for<'s> FnOnce(&'s Cx<'s>) -> Result<Tensor<'s>>) -> Result<Arg> {
        Cx::within(b, |cx| rule(cx).map(|x| x.arg))
    }

    /// Lets `f` use the builder.
    pub fn build<T>(&self, f: impl FnOnce(&mut Builder<'g>) -> T) -> T {
        f(&mut self.builder.borrow_mut())
    }
    /// Lets `f` read the builder.
    pub fn read<T>(&self, f: impl FnOnce(&Builder<'g>) -> T) -> T {
        f(&self.builder.borrow())
    }

    pub fn tensor(&'g self, arg: Arg) -> Tensor<'g> {
        Tensor { arg, cx: self }
    }
    /// Notes a mistake, unless there is one, and gives a poisoned value.
    pub fn poison(&'g self, refusal: Refusal) -> Tensor<'g> {
        self.mistake.borrow_mut().get_or_insert(refusal);
        self.tensor(Arg::Absent)
    }
    pub fn good(&'g self, x: Result<Tensor<'g>>) -> Tensor<'g> {
        x.unwrap_or_else(|refusal| self.poison(refusal))
    }
    /// The value that `make` appends, where none of the operands is poisoned.
    pub fn made(&'g self, of: &[Tensor<'g>], make: impl FnOnce(&mut Builder<'g>) -> Result<Arg>) -> Tensor<'g> {
        let made = if of.iter().all(|x| x.arg != Arg::Absent) { self.build(make) } else { Err(self.noted()) };
        self.good(made.map(|arg| self.tensor(arg)))
    }
    /// The mistake that a poisoned value stands for.
    fn noted(&self) -> Refusal {
        self.mistake.borrow().clone().unwrap_or_else(|| Refusal::new("an operand is missing"))
    }

    /// A number of a type.
    pub fn number(&'g self, elem: Elem, x: f64) -> Tensor<'g> {
        self.tensor(ir::scalar(elem, x))
    }
    /// A number of type i64.
    pub fn int(&'g self, x: i64) -> Tensor<'g> {
        self.tensor(ir::int_scalar(Elem::I64, x))
    }
    /// A number of an integer type.
    pub fn int_of(&'g self, elem: Elem, x: i64) -> Tensor<'g> {
        self.tensor(ir::int_scalar(elem, x))
    }
    /// An extent as a number of a type.
    pub fn extent(&'g self, ix: &Ix, elem: Elem) -> Tensor<'g> {
        match ix.as_const() {
            Some(c) => self.tensor(ir::int_scalar(elem, c)),
            None => self.index(ix.clone(), Elem::I64, vec![]).to(elem),
        }
    }
    /// The tensor whose elements are an integer expression over the axes.
    pub fn index(&'g self, ix: Ix, elem: Elem, shape: Vec<Ix>) -> Tensor<'g> {
        self.made(&[], |b| Ok(b.index(ix, elem, shape)))
    }
    /// Integers, perhaps symbolic, as a tensor of rank 1.
    pub fn known_ints(&'g self, elem: Elem, values: &[Ix]) -> Tensor<'g> {
        self.made(&[], |b| Ok(b.known_ints(elem, values)))
    }
    /// A constant of floats.
    pub fn floats(&'g self, elem: Elem, shape: &[u64], values: &[f64]) -> Tensor<'g> {
        self.made(&[], |b| Ok(super::resize::float_constant(b, elem, shape, values)))
    }
    /// A constant of integers.
    pub fn ints(&'g self, elem: Elem, shape: &[u64], values: &[i64]) -> Tensor<'g> {
        self.made(&[], |b| Ok(b.int_constant(elem, shape, values)))
    }
    /// A tensor all of whose elements are a number of a type.
    pub fn full(&'g self, elem: Elem, x: f64, shape: Vec<Ix>) -> Tensor<'g> {
        self.number(elem, x).fill(shape)
    }
    pub fn concat(&'g self, xs: &[Tensor<'g>], axis: usize) -> Tensor<'g> {
        self.made(xs, |b| b.concat(&xs.iter().map(|x| x.arg).collect::<Vec<_>>(), axis))
    }

    pub fn simplify(&self, ix: &Ix) -> Ix {
        self.read(|b| b.simplify(ix))
    }
    pub fn same(&self, x: &Ix, y: &Ix) -> bool {
        self.read(|b| b.same(x, y))
    }
    pub fn same_shape(&self, x: &[Ix], y: &[Ix]) -> bool {
        self.read(|b| b.same_shape(x, y))
    }
    pub fn numel(&self, shape: &[Ix]) -> Ix {
        self.read(|b| b.numel(shape))
    }
    pub fn range(&self, ix: &Ix) -> Interval {
        self.read(|b| b.facts().range(ix))
    }
    pub fn broadcast_shape(&self, shapes: &[Vec<Ix>]) -> Result<Vec<Ix>> {
        self.read(|b| b.broadcast_shape(shapes))
    }
    pub fn shape_text(&self, shape: &[Ix]) -> String {
        self.read(|b| b.shape_text(shape))
    }
    pub fn ix_text(&self, ix: &Ix) -> String {
        self.read(|b| b.graph.ix_text(ix))
    }

    /// A loop: see [`Rounds`]. The tensors of a round are of a graph of its own, and cannot meet those around it.
    pub fn repeat(
        &'g self,
        of: &Loop<'_, 'g>,
        round: impl for<'s> FnOnce(&'s Cx<'s>, &Round<'s>) -> Result<(Vec<Tensor<'s>>, Vec<Tensor<'s>>)>,
    ) -> Result<Vec<Tensor<'g>>> {
        let args = |xs: &[Tensor<'g>]| xs.iter().map(|x| x.arg).collect::<Vec<Arg>>();
        let rows: Vec<(Arg, bool)> = of.rows.iter().map(|(x, last)| (x.arg, *last)).collect();
        let (carried, read) = (args(of.carried), args(of.read));
        let rounds = of.rounds.clone();
        let of = Rounds {
            rounds,
            conditional: of.conditional,
            carried: &carried,
            rows: &rows,
            read: &read,
            given: of.given,
        };
        if carried.iter().chain(&read).chain(rows.iter().map(|r| &r.0)).any(|x| *x == Arg::Absent) {
            return Err(self.noted());
        }
        let mut begun = self.build(|b| b.begin(&of))?;
        let origin = self.read(|b| b.origin);
        // The builder around the loop is free meanwhile, so that the round may look at tensors outside.
        let made = begun.round(origin, &of, |b, state, rows, read| {
            Cx::within(b, |cx| {
                let all = |xs: &[Arg]| xs.iter().map(|x| cx.tensor(*x)).collect::<Vec<_>>();
                let (state, rows) = round(cx, &Round { state: all(state), rows: all(rows), read: all(read) })?;
                let args = |xs: Vec<Tensor<'_>>| xs.iter().map(|x| x.arg).collect::<Vec<Arg>>();
                Ok((args(state), args(rows)))
            })
        });
        let results = self.build(|b| b.end(begun, &of, made))?;
        Ok(results.into_iter().map(|x| self.tensor(x)).collect())
    }
}

/// A loop to be: see [`Rounds`].
pub struct Loop<'a, 'g> {
    pub rounds: Ix,
    pub conditional: bool,
    pub carried: &'a [Tensor<'g>],
    pub rows: &'a [(Tensor<'g>, bool)],
    pub read: &'a [Tensor<'g>],
    pub given: &'a [bool],
}

/// The input of a round of a loop.
pub struct Round<'s> {
    pub state: Vec<Tensor<'s>>,
    pub rows: Vec<Tensor<'s>>,
    pub read: Vec<Tensor<'s>>,
}

impl<'s> Round<'s> {
    /// The state, of that many tensors.
    pub fn state<const N: usize>(&self) -> Result<[Tensor<'s>; N]> {
        <[Tensor<'s>; N]>::try_from(&self.state[..]).map_err(|_| Refusal::new("a loop lost its state"))
    }
}

macro_rules! unary {
    ($($name:ident)*) => { $(pub fn $name(self) -> Tensor<'g> { self.cx.made(&[self], |b| b.$name(self.arg)) })* };
}
macro_rules! binary {
    ($($name:ident)*) => {
        $(pub fn $name(self, y: impl Operand<'g>) -> Tensor<'g> {
            let y = y.beside(self);
            self.cx.made(&[self, y], |b| b.$name(self.arg, y.arg))
        })*
    };
}
macro_rules! applied {
    ($($name:ident $op:expr;)*) => { $(pub fn $name(self) -> Tensor<'g> { self.apply($op, &[]) })* };
}
macro_rules! comparisons {
    ($($name:ident $pred:ident;)*) => {
        $(pub fn $name(self, y: impl Operand<'g>) -> Tensor<'g> { self.compare(Predicate::$pred, y) })*
    };
}

impl<'g> Tensor<'g> {
    pub fn elem(self) -> Elem {
        self.cx.read(|b| b.elem(self.arg))
    }
    /// Empty for a number.
    pub fn shape(self) -> Result<Vec<Ix>> {
        if self.arg == Arg::Absent { Err(self.cx.noted()) } else { Ok(self.cx.read(|b| b.shape(self.arg))) }
    }
    pub fn rank(self) -> Result<usize> {
        if self.arg == Arg::Absent { Err(self.cx.noted()) } else { Ok(self.cx.read(|b| b.rank(self.arg))) }
    }
    /// The tensor, which must have that shape: see [`Builder::expect_shape`].
    pub fn of_shape(self, what: &str, shape: &[Ix]) -> Result<Tensor<'g>> {
        self.rank()?;
        self.cx.read(|b| b.expect_shape(what, self.arg, shape))?;
        Ok(self)
    }
    /// The tensor, which may be broadcast to the shape of `y`, but must not make it larger.
    pub fn into_shape_of(self, y: Tensor<'g>) -> Tensor<'g> {
        self.cx.made(&[self, y], |b| {
            let (given, shape) = (b.shape(self.arg), b.shape(y.arg));
            if b.same_shape(&b.broadcast_shape(&[given.clone(), shape.clone()])?, &shape) {
                return Ok(self.arg);
            }
            let (given, shape) = (b.shape_text(&given), b.shape_text(&shape));
            Err(Refusal::new(format!("a tensor of shape {given} does not fit into {shape}")))
        })
    }
    /// `[s0, 2048]`, for messages.
    pub fn shape_text(self) -> String {
        self.cx.read(|b| b.shape_text(&b.shape(self.arg)))
    }
    /// The number of elements.
    pub fn numel(self) -> Result<Ix> {
        Ok(self.cx.numel(&self.shape()?))
    }
    /// The integers that it is known to hold.
    pub fn ints(self) -> Option<Vec<Ix>> {
        self.cx.read(|b| b.ints(self.arg))
    }
    /// A number, which has no place in memory.
    pub fn is_number(self) -> bool {
        matches!(self.arg, Arg::Scalar { .. })
    }
    /// The number, where it is one that is known.
    pub fn known(self) -> Option<f64> {
        if let Arg::Scalar { elem, bits } = self.arg { Some(crate::graph::build::number_of(elem, bits)) } else { None }
    }

    /// A number of the same type.
    pub fn like(self, x: f64) -> Tensor<'g> {
        x.beside(self)
    }
    /// In another element type.
    pub fn to(self, elem: Elem) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.convert(self.arg, elem))
    }
    /// In the type that sums are made in: f32 for f16 and bf16.
    pub fn wide(self) -> Tensor<'g> {
        self.to(self.wide_elem())
    }
    pub fn wide_elem(self) -> Elem {
        self.cx.read(|b| b.wide(self.arg))
    }
    /// As f32 where it is not a float.
    pub fn floating(self) -> Tensor<'g> {
        if self.elem().is_float() { self } else { self.to(Elem::F32) }
    }
    /// `f` of it in the type that sums are made in, rounded once.
    pub fn in_wide(self, f: impl FnOnce(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
        f(self.wide()).to(self.elem())
    }
    /// The same of integers as f32.
    pub fn widened(self, f: impl FnOnce(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
        self.floating().in_wide(f)
    }

    unary! { exp log sqrt rsqrt tanh erf sin cos floor ceil round_even log1p expm1 abs }
    binary! { max min max_number min_number pow matmul }
    applied! {
        exp2 ScalarOp::Exp2 { ftz: false };
        log2 ScalarOp::Log2;
        tan ScalarOp::Tan;
        sinh ScalarOp::Sinh;
        cosh ScalarOp::Cosh;
    }
    comparisons! {
        equals Equal;
        differs NotEqual;
        below LessThan;
        at_most LessThanOrEqual;
        above GreaterThan;
        at_least GreaterThanOrEqual;
    }
    /// A scalar operation on it and others.
    pub fn apply(self, op: ScalarOp, others: &[Tensor<'g>]) -> Tensor<'g> {
        let all = [&[self], others].concat();
        self.cx.made(&all, |b| b.elementwise(op, &all.iter().map(|x| x.arg).collect::<Vec<_>>()))
    }
    /// The same with the type of the result stated.
    pub fn apply_to(self, op: ScalarOp, elem: Elem) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.elementwise_to(op, &[self.arg], elem))
    }
    /// `self * y + z`, rounded once.
    pub fn fma(self, y: impl Operand<'g>, z: impl Operand<'g>) -> Tensor<'g> {
        let op = ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false };
        self.apply(op, &[y.beside(self), z.beside(self)])
    }
    pub fn atan2(self, x: impl Operand<'g>) -> Tensor<'g> {
        self.apply(ScalarOp::Atan2, &[x.beside(self)])
    }
    pub fn compare(self, pred: Predicate, y: impl Operand<'g>) -> Tensor<'g> {
        let y = y.beside(self);
        self.cx.made(&[self, y], |b| b.compare(pred, self.arg, y.arg))
    }
    pub fn is_nan(self) -> Tensor<'g> {
        self.differs(self)
    }
    /// `x` where it is true, else `y`; one of them is a tensor.
    pub fn select(self, x: impl Operand<'g>, y: impl Operand<'g>) -> Tensor<'g> {
        let Some(like) = x.own().or(y.own()) else {
            return self.cx.poison(Refusal::new("a selection of two numbers has no type"));
        };
        let (x, y) = (x.beside(like), y.beside(like));
        self.cx.made(&[self, x, y], |b| b.select(self.arg, x.arg, y.arg))
    }

    /// Folds axes; they stay with extent 1 when `keep`.
    pub fn reduce(self, op: ReduceOp, axes: &[usize], keep: bool) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.reduce(op, self.arg, axes, keep))
    }
    pub fn sum(self, axes: &[usize], keep: bool) -> Tensor<'g> {
        self.reduce(ReduceOp::Sum, axes, keep)
    }
    pub fn greatest(self, axes: &[usize], keep: bool) -> Tensor<'g> {
        self.reduce(ReduceOp::Max, axes, keep)
    }
    pub fn mean(self, axes: &[usize], keep: bool) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.mean(self.arg, axes, keep))
    }
    pub fn scan(self, op: ScanOp, axis: usize) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.scan(op, self.arg, axis, false, false))
    }
    /// A matrix product with sums of that type.
    pub fn matmul_in(self, y: Tensor<'g>, elem: Elem) -> Tensor<'g> {
        self.cx.made(&[self, y], |b| b.matmul_in(self.arg, y.arg, elem))
    }
    /// The sum of products over axes, of that type.
    pub fn dot(self, y: Tensor<'g>, elem: Elem, axes: &[usize]) -> Tensor<'g> {
        self.cx.made(&[self, y], |b| b.dot(self.arg, y.arg, elem, axes, false))
    }

    /// The same over one axis, which stays with extent 1.
    pub fn dot_kept(self, y: Tensor<'g>, elem: Elem, axis: usize) -> Tensor<'g> {
        self.cx.made(&[self, y], |b| b.dot(self.arg, y.arg, elem, &[axis], true))
    }

    pub fn reshape(self, shape: &[Ix]) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.reshape(self.arg, shape))
    }
    /// With one axis.
    pub fn flat(self) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.reshape(self.arg, &[b.numel(&b.shape(self.arg))]))
    }
    pub fn squeeze(self, axes: &[usize]) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.squeeze(self.arg, axes))
    }
    pub fn unsqueeze(self, axes: &[usize]) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.unsqueeze(self.arg, axes))
    }
    pub fn transpose(self, order: &[usize]) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.transpose(self.arg, order))
    }
    pub fn swap_axes(self, x: usize, y: usize) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.swap_axes(self.arg, x, y))
    }
    /// The last two axes exchanged.
    pub fn transposed(self) -> Tensor<'g> {
        self.cx.made(&[self], |b| match b.rank(self.arg).checked_sub(2) {
            Some(row) => b.swap_axes(self.arg, row, row + 1),
            None => Err(Refusal::new("a matrix has two axes")),
        })
    }
    pub fn broadcast_to(self, shape: &[Ix]) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.broadcast_to(self.arg, shape))
    }
    /// A tensor of a shape all of whose elements are this number.
    pub fn fill(self, shape: Vec<Ix>) -> Tensor<'g> {
        self.cx.made(&[self], |b| Ok(b.full(self.arg, b.elem(self.arg), shape)))
    }
    /// With a shape, also where it is a number.
    pub fn spread(self, shape: &[Ix]) -> Tensor<'g> {
        if self.is_number() { self.fill(shape.to_vec()) } else { self.broadcast_to(shape) }
    }
    /// In memory: a number becomes a tensor of rank 0.
    pub fn placed(self) -> Tensor<'g> {
        if self.is_number() { self.fill(vec![]) } else { self }
    }
    /// Elements `start`, `start + step`, ... of an axis, `count` of them.
    pub fn slice(self, axis: usize, start: Ix, step: i64, count: Ix) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.slice(self.arg, axis, start, step, count))
    }
    pub fn pad(self, before: &[Ix], after: &[Ix], value: Tensor<'g>) -> Tensor<'g> {
        self.cx.made(&[self, value], |b| b.pad(self.arg, before, after, value.arg))
    }
    /// Element `i` of the result is that at `coords(i)`.
    pub fn map(self, name: &str, shape: Vec<Ix>, coords: Vec<Ix>) -> Tensor<'g> {
        self.cx.made(&[self], |b| Ok(b.map(name, self.arg, shape, coords)))
    }
    pub fn gather(self, indices: &[Tensor<'g>], coords: Vec<Coord>, shape: Vec<Ix>) -> Tensor<'g> {
        let args: Vec<Arg> = indices.iter().map(|x| x.arg).collect();
        self.cx.made(&[&[self], indices].concat(), |b| b.gather(self.arg, &args, coords, shape))
    }
    /// Element `i` of the result is at position `index[i]` of an axis, and at its own place of others.
    pub fn gather_along(self, index: Tensor<'g>, axis: usize) -> Tensor<'g> {
        match index.shape() {
            Ok(shape) => self.gather(&[index], along(axis, shape.len()), shape),
            Err(refusal) => self.cx.poison(refusal),
        }
    }
    pub fn scatter(self, indices: &[Tensor<'g>], updates: Tensor<'g>, coords: Vec<Coord>, op: ScatterOp) -> Tensor<'g> {
        let args: Vec<Arg> = indices.iter().map(|x| x.arg).collect();
        let all = [&[self, updates], indices].concat();
        self.cx.made(&all, |b| b.scatter(self.arg, &args, updates.arg, coords, op))
    }
    /// The first `k` of the sorted elements, and where each came from.
    pub fn sort_first(self, axis: usize, descending: bool, k: Ix) -> Result<[Tensor<'g>; 2]> {
        self.shape()?;
        let (sorted, order) = self.cx.build(|b| b.sort_first(self.arg, axis, descending, k))?;
        Ok([self.cx.tensor(sorted), self.cx.tensor(order)])
    }
    /// The sorted elements, and where each came from.
    pub fn sort(self, axis: usize, descending: bool) -> Result<(Tensor<'g>, Tensor<'g>)> {
        self.shape()?;
        let (sorted, order) = self.cx.build(|b| b.sort(self.arg, axis, descending))?;
        Ok((self.cx.tensor(sorted), self.cx.tensor(order)))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $build:ident;)*) => { $(
        impl<'g, Y: Operand<'g>> ops::$trait<Y> for Tensor<'g> {
            type Output = Tensor<'g>;
            fn $method(self, y: Y) -> Tensor<'g> {
                let y = y.beside(self);
                self.cx.made(&[self, y], |b| b.$build(self.arg, y.arg))
            }
        }
        impl<'g> ops::$trait<Tensor<'g>> for f64 {
            type Output = Tensor<'g>;
            fn $method(self, y: Tensor<'g>) -> Tensor<'g> {
                let x = self.beside(y);
                y.cx.made(&[x, y], |b| b.$build(x.arg, y.arg))
            }
        }
    )* };
}
operators! { Add add add; Sub sub sub; Mul mul mul; Div div div; Rem rem rem; BitAnd bitand and; BitOr bitor or; BitXor bitxor xor; }

impl<'g> ops::Neg for Tensor<'g> {
    type Output = Tensor<'g>;
    fn neg(self) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.neg(self.arg))
    }
}
impl<'g> ops::Not for Tensor<'g> {
    type Output = Tensor<'g>;
    fn not(self) -> Tensor<'g> {
        self.cx.made(&[self], |b| b.not(self.arg))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, OriginId, Role};

    /// The outcome of `rule` on an input `x: f32[2, 3]`, and the names of the nodes that it appends.
    fn ran(rule: impl for<'s> FnOnce(Tensor<'s>) -> Result<Tensor<'s>>) -> (Result<Arg>, Vec<String>) {
        let mut graph = Graph::default();
        let x = graph.add_input("x", Elem::F32, vec![Ix::Const(2), Ix::Const(3)], Role::Argument);
        let outcome = Cx::one(&mut Builder::new(&mut graph, OriginId(0)), |cx| rule(cx.tensor(x.into())));
        let names = graph.nodes.values().flat_map(|n| &n.results).map(|v| graph.values[*v].name.clone());
        let names = names.collect();
        (outcome, names)
    }

    #[test]
    fn operators_append_from_left_to_right() {
        let (outcome, names) = ran(|x| Ok(1.0 / ((-x).exp() + 1.0) - x.abs()));
        assert!(outcome.is_ok());
        assert_eq!(names, ["neg", "exp", "add", "div", "abs", "sub"]);
    }

    #[test]
    fn the_first_mistake_is_the_refusal_and_nothing_follows_it() {
        let (outcome, names) = ran(|x| {
            let below = x.below(0.0);
            // Bools cannot be subtracted; an integer axis out of range and a missing operand come later.
            let wrong = below - below;
            Ok(wrong.sum(&[7], false) + x.cx.tensor(Arg::Absent) * 2.0)
        });
        assert_eq!(outcome.unwrap_err().message, "bools cannot be subtracted");
        assert_eq!(names, ["cmp"]);
    }

    #[test]
    fn a_poisoned_value_has_no_shape() {
        let (outcome, _) = ran(|x| {
            let wrong = x.reshape(&[Ix::Const(5)]);
            assert_eq!(wrong.shape().unwrap_err().message, wrong.rank().unwrap_err().message);
            let rank = wrong.rank()?;
            Ok(wrong.squeeze(&[rank - 1]))
        });
        assert!(outcome.unwrap_err().message.contains("[2, 3]"), "the refusal is that of the reshape");
    }

    #[test]
    fn a_number_takes_the_type_of_the_tensor_beside_it() {
        let (outcome, _) = ran(|x| {
            let whole = x.to(Elem::I32);
            assert_eq!(((whole + 1).elem(), (2.0 * whole).elem(), (x + 1).elem()), (Elem::I32, Elem::I32, Elem::F32));
            Ok(whole.equals(3).select(x, 0.5))
        });
        assert!(outcome.is_ok());
    }

    #[test]
    fn a_round_may_look_at_tensors_around_its_loop() {
        let (outcome, _) = ran(|x| {
            let (carried, rounds) = ([x.cx.int(0), x], Ix::Const(3));
            let of = Loop { rounds, conditional: false, carried: &carried, rows: &[], read: &[], given: &[] };
            let results = x.cx.repeat(&of, |_, round| {
                let [k, y] = round.state()?;
                assert_eq!(y.shape()?, x.shape()?);
                Ok((vec![k + 1, y * 2.0], vec![]))
            })?;
            Ok(results[1])
        });
        assert!(outcome.is_ok());
    }
}
