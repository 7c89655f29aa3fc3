//! Random graphs of primitives, with inputs for several runs.
//!
//! Symbols are extents or numbers. The runs of a case bind them to other values: extents to 0 and 1 too, numbers to
//! negative ones. Some extents are 0 in all runs, some inputs lie in another order of axes, and some weights change. An
//! operation that needs elements (a maximum, a place) is not drawn for an axis that is empty in some run.
//!
//! Each float tensor has a budget: its elements are multiples of `2^-fine` below `2^big`. While `fine + big` fits the
//! type's digits, sums are exact in every order; what exceeds it is `rough`, is compared within a bound, and is not used
//! where a last bit decides (comparisons, rounding to integers, sorting, positions of extremes).

use std::collections::BTreeMap;

use girih_compiler::graph::build::repeat::Rounds;
use girih_compiler::graph::eval::Tensor;
use girih_compiler::graph::ir::{axis, int_scalar, scalar};
use girih_compiler::graph::{Arg, Builder, Coord, Elem, Graph, MapSource, Output, ReduceOp, Role, ScanOp, ScatterOp};
use girih_compiler::index::{Cmp, Cond, Ix, Mask};
use girih_compiler::num::op::{Predicate, Rounding};
use girih_compiler::num::{DType, convert};

use crate::rng::Rng;

/// A graph to be checked.
#[derive(Clone)]
pub struct Case {
    pub graph: Graph,
    pub runs: Vec<Inputs>,
    /// For values by name: true if every order of operations gives the same bits.
    pub exact: BTreeMap<String, bool>,
}

/// The arguments of a run of a graph.
#[derive(Clone, Default)]
pub struct Inputs {
    pub tensors: Vec<Tensor>,
    /// The symbols that are given by value, in their order; shapes tell the others.
    pub given: Vec<Option<i64>>,
}

impl Inputs {
    pub fn shapes(&self) -> Vec<Vec<u64>> {
        self.tensors.iter().map(|t| t.shape.clone()).collect()
    }
}

/// The largest tensor, in elements.
const LARGEST: i64 = 1500;

#[derive(Clone, Copy, PartialEq)]
struct Digits {
    big: i32,
    fine: i32,
    /// How many operations that round lie behind it; 0 is exact.
    rough: u32,
}

#[derive(Clone)]
struct Item {
    arg: Arg,
    shape: Vec<Ix>,
    elem: Elem,
    digits: Digits,
}

struct Maker<'r> {
    rng: &'r mut Rng,
    graph: Graph,
    /// For each run the values of the symbols.
    symbols: Vec<Vec<i64>>,
    runs: Vec<Inputs>,
    /// The symbols that are extents, and those that are numbers.
    extents: Vec<Ix>,
    numbers: Vec<Ix>,
    pool: Vec<Item>,
    exact: BTreeMap<String, bool>,
}

fn precision(d: DType) -> i32 {
    match d {
        DType::F64 => 53,
        DType::F32 => 24,
        DType::F16 => 11,
        _ => 8,
    }
}

/// The case of a seed.
pub fn make(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let graph = Graph { name: format!("random_{seed}"), ..Graph::default() };
    let count = *rng.pick(&[1, 2, 3]);
    let mut m = Maker {
        rng: &mut rng,
        graph,
        symbols: vec![vec![]; count],
        runs: vec![Inputs::default(); count],
        extents: vec![],
        numbers: vec![],
        pool: vec![],
        exact: BTreeMap::new(),
    };
    m.declare();
    // The first input says what the extents are.
    let mut shape = m.extents.clone();
    shape.push(Ix::Const(m.rng.range(1, 9)));
    m.input(Elem::F32, shape);
    for _ in 0..m.rng.range(1, 4) {
        let elem =
            *m.rng.pick(&[Elem::F32, Elem::F32, Elem::F32, Elem::F64, Elem::I32, Elem::I64, Elem::F16, Elem::BOOL]);
        let shape = m.shape();
        m.input(elem, shape);
    }
    let steps = m.rng.range(2, 14);
    for _ in 0..steps {
        let _ = m.step();
    }
    m.finish()
}

impl Maker<'_> {
    /// The symbols, and their values in each run: first ordinary ones, then 0, 1 and others.
    fn declare(&mut self) {
        for i in 0..self.rng.below(3) {
            let lo = if self.rng.chance(70) { 0 } else { 1 };
            let hi = if self.rng.chance(30) { Some(64) } else { None };
            let symbol = self.graph.add_symbol(&format!("s{i}"), lo, hi);
            self.extents.push(symbol.ix());
            for (run, values) in self.symbols.iter_mut().enumerate() {
                let edge = run > 0 && self.rng.chance(40);
                values.push(if edge { self.rng.range(lo, 1) } else { self.rng.range(1, 9) });
                self.runs[run].given.push(None);
            }
        }
        for i in 0..self.rng.below(2) {
            let (lo, hi) = if self.rng.chance(50) { (-9, Some(9)) } else { (-1 << 40, None) };
            let symbol = self.graph.add_symbol(&format!("k{i}"), lo, hi);
            self.numbers.push(symbol.ix());
            for (run, values) in self.symbols.iter_mut().enumerate() {
                values.push(self.rng.range(-9, 9));
                self.runs[run].given.push(values.last().copied());
            }
        }
    }

    /// The values of an expression in the runs.
    fn values(&self, ix: &Ix) -> impl Iterator<Item = i64> {
        let of = |symbols: &Vec<i64>| {
            ix.eval(&|leaf| match leaf {
                Ix::Val { val, .. } => symbols.get(val.0 as usize).copied().unwrap_or(1),
                _ => 0,
            })
        };
        self.symbols.iter().map(of).collect::<Vec<_>>().into_iter()
    }
    /// Its greatest value.
    fn value(&self, ix: &Ix) -> i64 {
        self.values(ix).max().unwrap_or(1)
    }
    /// Returns true if an extent is 0 in some run.
    fn may_be_empty(&self, ix: &Ix) -> bool {
        self.values(ix).any(|n| n <= 0)
    }
    /// The elements of a tensor in the run that has most.
    fn count(&self, shape: &[Ix]) -> i64 {
        let counts = (0..self.runs.len()).map(|run| self.extents_in(run, shape).iter().product::<u64>() as i64);
        counts.max().unwrap_or(1)
    }
    fn extents_in(&self, run: usize, shape: &[Ix]) -> Vec<u64> {
        shape.iter().map(|d| self.values(d).nth(run).unwrap_or(0).max(0) as u64).collect()
    }
    /// A number of the model: a symbol, in some expression.
    fn number(&mut self) -> Option<Ix> {
        let at = self.rng.below(self.numbers.len());
        let k = self.numbers.get(at)?.clone();
        Some(match self.rng.below(4) {
            0 => Ix::add(k, Ix::Const(self.rng.range(-3, 3))),
            1 => Ix::sub(Ix::Const(self.rng.range(-3, 3)), k),
            2 => Ix::mul(k, Ix::Const(self.rng.range(-2, 2))),
            _ => k,
        })
    }
    fn extent(&mut self) -> Ix {
        let fixed = Ix::Const(if self.rng.chance(3) { 0 } else { *self.rng.pick(&[1, 1, 2, 3, 4, 5, 7, 8, 16, 17]) });
        if self.rng.chance(55) {
            return fixed;
        }
        if let Some(k) = self.number().filter(|_| self.rng.chance(20)) {
            // As many as a number says, where it is not negative.
            return Ix::max(k, Ix::Const(0));
        }
        let at = self.rng.below(self.extents.len());
        let Some(s) = self.extents.get(at).cloned() else { return fixed };
        match self.rng.below(5) {
            0 => Ix::add(s, Ix::Const(1)),
            1 => Ix::mul(s, Ix::Const(2)),
            _ => s,
        }
    }
    fn shape(&mut self) -> Vec<Ix> {
        loop {
            let rank = *self.rng.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4]);
            let shape: Vec<Ix> = (0..rank).map(|_| self.extent()).collect();
            if self.count(&shape) <= LARGEST {
                return shape;
            }
        }
    }

    fn data(&mut self, elem: Elem, extents: &[u64]) -> Option<Tensor> {
        let one = |rng: &mut Rng| match elem.dtype {
            DType::I1 => rng.below(2) as u64,
            d if d.is_int() => rng.range(-9, 9) as u64 & d.mask(),
            d => convert::from_f64(d, rng.range(-8, 8) as f64 / 4.0, Rounding::NearestEven),
        };
        let bits = (0..extents.iter().product::<u64>()).map(|_| one(self.rng)).collect();
        Tensor::from_bits(elem, extents, bits)
    }

    fn input(&mut self, elem: Elem, shape: Vec<Ix>) {
        let shapes: Vec<Vec<u64>> = (0..self.runs.len()).map(|run| self.extents_in(run, &shape)).collect();
        // Weights say nothing of symbols.
        let fixed = shape.iter().all(|d| d.as_const().is_some());
        let role = if fixed && self.rng.chance(25) { Role::Parameter } else { Role::Argument };
        let Some(mut data) = shapes.iter().map(|s| self.data(elem, s)).collect::<Option<Vec<Tensor>>>() else { return };
        // Some weights are written to between runs.
        let stays = role == Role::Parameter && self.rng.chance(50);
        if let Some(first) = data.first().cloned().filter(|_| stays) {
            data.fill(first);
        }
        let arg = self.given(elem, shape.clone(), role, data);
        let digits = Digits { big: 1, fine: 2, rough: 0 };
        // Some lie in another order of axes (transposed, channels last) and are used in theirs only.
        if shape.len() > 1 && self.rng.chance(25) {
            let perm = self.order(shape.len());
            let turned = self.builder().transpose(arg, &perm);
            return turned.map_or((), |turned| self.keep(turned, digits));
        }
        self.pool.push(Item { arg, shape, elem, digits });
    }

    /// An input with its tensor for each run.
    fn given(&mut self, elem: Elem, shape: Vec<Ix>, role: Role, data: Vec<Tensor>) -> Arg {
        let name = format!("x{}", self.graph.inputs.len());
        for (run, tensor) in self.runs.iter_mut().zip(data) {
            run.tensors.push(tensor);
        }
        self.exact.insert(name.clone(), true);
        self.graph.add_input(&name, elem, shape, role).into()
    }

    fn pick(&mut self, ok: impl Fn(&Item) -> bool) -> Option<Item> {
        let fits: Vec<&Item> = self.pool.iter().filter(|i| ok(i)).collect();
        // The newest are likelier, so graphs are deep.
        let n = fits.len();
        let at = if self.rng.chance(60) { n.saturating_sub(1 + self.rng.below(3)) } else { self.rng.below(n) };
        fits.get(at).map(|i| (*i).clone())
    }

    fn builder(&mut self) -> Builder<'_> {
        let origin = match self.graph.origins.keys().last() {
            Some(o) => o,
            None => self.graph.add_origin("random", "", None),
        };
        Builder::new(&mut self.graph, origin)
    }

    /// Puts a result into the pool.
    fn keep(&mut self, arg: Arg, digits: Digits) {
        let name = format!("v{}", self.exact.len());
        let mut b = self.builder();
        let (shape, elem) = (b.shape(arg), b.elem(arg));
        let Arg::Value(v) = arg else { return };
        if b.graph.def(v).is_none() {
            return;
        }
        b.name(arg, &name);
        if self.count(&shape) > LARGEST {
            return;
        }
        let mut digits = digits;
        if elem.is_float() && (digits.rough > 0 || digits.big + digits.fine > precision(elem.dtype)) {
            digits.rough = digits.rough.max(1);
        }
        self.exact.insert(name, digits.rough == 0);
        self.pool.push(Item { arg, shape, elem, digits });
    }

    fn step(&mut self) -> Option<()> {
        match self.rng.below(20) {
            0..=1 => self.unary(),
            2..=5 => self.binary(),
            6 => self.choose(),
            7 => self.convert(),
            8..=10 => self.reduce(),
            11..=12 => self.product(),
            13..=16 => self.layout(),
            17 => self.gather(),
            18 if self.rng.chance(50) => self.scatter(),
            18 => self.rounds(),
            _ if self.rng.chance(40) => self.places(),
            _ => self.ordered(),
        }
    }

    fn unary(&mut self) -> Option<()> {
        let x = self.pick(|i| i.elem.is_float() && i.digits.rough < 3)?;
        let kind = self.rng.below(if x.digits.rough == 0 { 9 } else { 7 });
        let rough = Digits { big: 3, fine: 20, rough: x.digits.rough + 1 };
        let mut b = self.builder();
        let (a, d) = match kind {
            0 => (b.neg(x.arg), x.digits),
            1 => (b.abs(x.arg), x.digits),
            2 => (b.tanh(x.arg), Digits { big: 0, ..rough }),
            3 => {
                let (lo, hi) = (b.scalar_like(x.arg, -3.0), b.scalar_like(x.arg, 3.0));
                let low = b.max(x.arg, lo).ok()?;
                let y = b.min(low, hi).ok()?;
                (b.exp(y), Digits { big: 5, ..rough })
            }
            4 => {
                let y = b.abs(x.arg).ok()?;
                let one = b.scalar_like(x.arg, 1.0);
                let y = b.add(y, one).ok()?;
                (b.rsqrt(y), Digits { big: 0, ..rough })
            }
            5 => {
                let y = b.abs(x.arg).ok()?;
                let one = b.scalar_like(x.arg, 0.5);
                let y = b.add(y, one).ok()?;
                (b.log(y), Digits { big: 6, ..rough })
            }
            6 => (b.mul(x.arg, ir_half(x.elem)), Digits { fine: x.digits.fine + 1, ..x.digits }),
            7 => (b.floor(x.arg), Digits { fine: 0, ..x.digits }),
            _ => (b.ceil(x.arg), Digits { fine: 0, big: x.digits.big + 1, ..x.digits }),
        };
        self.keep(a.ok()?, d);
        Some(())
    }

    /// Another operand of the type that broadcasts with `x`, or a scalar.
    fn partner(&mut self, x: &Item) -> (Arg, Digits) {
        if self.rng.chance(75) {
            let fits: Vec<Item> = {
                let shapes = x.shape.clone();
                let b = Builder::new(&mut self.graph, girih_compiler::graph::OriginId(0));
                let ok = |i: &&Item| i.elem == x.elem && b.broadcast_shape(&[shapes.clone(), i.shape.clone()]).is_ok();
                self.pool.iter().filter(ok).cloned().collect()
            };
            if !fits.is_empty() {
                let i = self.rng.pick(&fits).clone();
                return (i.arg, i.digits);
            }
        }
        let n = self.rng.range(-4, 4);
        let arg = if x.elem.is_float() { scalar(x.elem, n as f64 / 2.0) } else { int_scalar(x.elem, n & 1) };
        (arg, Digits { big: 1, fine: 1, rough: 0 })
    }

    fn binary(&mut self) -> Option<()> {
        self.builder();
        let x = self.pick(|i| i.digits.rough < 4)?;
        let (y, dy) = self.partner(&x);
        let (dx, rough) = (x.digits, x.digits.rough.max(dy.rough));
        let both = Digits { big: dx.big.max(dy.big), fine: dx.fine.max(dy.fine), rough };
        let kind = self.rng.below(8);
        let int = !x.elem.is_float();
        let mut b = self.builder();
        let (a, d) = match kind {
            _ if x.elem.is_bool() => (if kind < 4 { b.and(x.arg, y) } else { b.or(x.arg, y) }, both),
            0..=1 => (b.add(x.arg, y), Digits { big: both.big + 1, ..both }),
            2 => (b.sub(x.arg, y), Digits { big: both.big + 1, ..both }),
            3..=4 => (b.mul(x.arg, y), Digits { big: dx.big + dy.big, fine: dx.fine + dy.fine, rough }),
            5 => (b.max(x.arg, y), both),
            6 => (b.min(x.arg, y), both),
            _ if int => (b.div(x.arg, y), both),
            _ => {
                let y = b.abs(y).ok()?;
                let one = b.scalar_like(x.arg, 1.0);
                let y = b.add(y, one).ok()?;
                (b.div(x.arg, y), Digits { big: dx.big, fine: 20, rough: rough + 1 })
            }
        };
        // Values that grew too far come back.
        let (mut a, mut d) = (a.ok()?, d);
        if !int && d.big > 8 {
            let (lo, hi) = (b.scalar_like(a, -4.0), b.scalar_like(a, 4.0));
            let low = b.max(a, lo).ok()?;
            a = b.min(low, hi).ok()?;
            d.big = 2;
        }
        self.keep(a, d);
        Some(())
    }

    /// A loop over the rows of a tensor, whose two states may change places; or one that a counter ends.
    fn rounds(&mut self) -> Option<()> {
        self.builder();
        let x = self.pick(|i| i.digits.rough == 0 && !i.elem.is_bool() && !i.shape.is_empty())?;
        let (back, given, swaps) = (self.rng.chance(40), self.rng.chance(40), self.rng.chance(50));
        let inner = x.shape[1..].to_vec();
        let fits: Vec<Item> = {
            let b = Builder::new(&mut self.graph, girih_compiler::graph::OriginId(0));
            let ok = |i: &&Item| i.elem == x.elem && i.digits.rough == 0 && b.same_shape(&i.shape, &inner);
            self.pool.iter().filter(ok).cloned().collect()
        };
        let first = if fits.is_empty() { None } else { Some(self.rng.pick(&fits).clone()) };
        let until = self.number().filter(|_| self.rng.chance(30));
        let digits = Digits { fine: x.digits.fine.max(first.as_ref().map_or(0, |f| f.digits.fine)), ..x.digits };
        let (kind, elem) = (self.rng.below(3), x.elem);
        let float = elem.is_float();
        let mut b = self.builder();
        let zero = b.full(b.scalar_like(x.arg, 0.0), elem, inner.clone());
        let start = first.map_or(zero, |f| f.arg);
        // Clamped, so that sums of any number of rounds are exact.
        let new = |b: &mut Builder<'_>, s: Arg, row: Arg| -> Option<Arg> {
            let y = match kind {
                0 => b.max(s, row).ok()?,
                1 => b.add(s, row).ok()?,
                _ => b.sub(row, s).ok()?,
            };
            if !float {
                return Some(y);
            }
            let (lo, hi) = (b.scalar_like(y, -4.0), b.scalar_like(y, 4.0));
            let low = b.max(y, lo).ok()?;
            b.min(low, hi).ok()
        };
        let refused = || girih_compiler::graph::Refusal::new("it does not fit");
        if let Some(until) = until {
            let goes = |b: &mut Builder<'_>, n: Arg| {
                let limit = b.index(until.clone(), Elem::I64, vec![]);
                b.compare(Predicate::LessThan, n, limit)
            };
            let count = b.index(Ix::Const(0), Elem::I64, vec![]);
            let carried = [goes(&mut b, count).ok()?, count, start];
            let read = [zero];
            let rounds = Ix::Const(1 << 20);
            let of = Rounds { rounds, conditional: true, carried: &carried, rows: &[], read: &read, given: &[] };
            let results = b.repeat(&of, |b, state, _, read| {
                let n = b.add(state[1], int_scalar(Elem::I64, 1))?;
                let half = b.scalar_like(state[2], 1.0);
                let moved = b.add(read[0], half)?;
                Ok((vec![goes(b, n)?, n, new(b, state[2], moved).ok_or_else(refused)?], vec![]))
            });
            let results = results.ok()?;
            self.keep(results[1], Digits { big: 8, fine: 0, rough: 0 });
            self.keep(results[2], Digits { big: 3, ..digits });
            return Some(());
        }
        let carried = [start, zero];
        let (rows, given) = ([(x.arg, back)], [given]);
        let rounds = x.shape.first()?.clone();
        let of = Rounds { rounds, conditional: false, carried: &carried, rows: &rows, read: &[start], given: &given };
        let results = b.repeat(&of, |b, state, rows, read| {
            let next = new(b, state[0], rows[0]).ok_or_else(refused)?;
            let out = b.max(next, read[0])?;
            Ok((if swaps { vec![state[1], next] } else { vec![next, state[1]] }, vec![out]))
        });
        let results = results.ok()?;
        for result in results {
            self.keep(result, Digits { big: digits.big.max(3), ..digits });
        }
        Some(())
    }

    /// Integers made of places and of a number, as a tensor or as a truth value.
    fn places(&mut self) -> Option<()> {
        let shape = self.shape();
        let k = self.number()?;
        let linear = (0..shape.len()).fold(k, |at, d| Ix::add(at, Ix::mul(axis(d), Ix::Const(d as i64 + 1))));
        let y = self.builder().index(linear, Elem::I64, shape);
        self.keep(y, Digits { big: 64, fine: 0, rough: 0 });
        let c = self.builder().compare(Predicate::LessThan, y, int_scalar(Elem::I64, 2)).ok()?;
        self.keep(c, Digits { big: 0, fine: 0, rough: 0 });
        Some(())
    }

    fn choose(&mut self) -> Option<()> {
        self.builder();
        let x = self.pick(|i| i.digits.rough == 0 && !i.elem.is_bool())?;
        let (y, dy) = self.partner(&x);
        if dy.rough > 0 {
            return None;
        }
        let pred = *self.rng.pick(&[
            Predicate::LessThan,
            Predicate::Equal,
            Predicate::GreaterThanOrEqual,
            Predicate::NotEqual,
        ]);
        let c = self.builder().compare(pred, x.arg, y).ok()?;
        self.keep(c, Digits { big: 0, fine: 0, rough: 0 });
        let (z, dz) = self.partner(&x);
        let s = self.builder().select(c, x.arg, z).ok()?;
        let d = Digits { big: x.digits.big.max(dz.big), fine: x.digits.fine.max(dz.fine), rough: dz.rough };
        self.keep(s, d);
        Some(())
    }

    fn convert(&mut self) -> Option<()> {
        let to =
            *self.rng.pick(&[Elem::F32, Elem::F64, Elem::F16, Elem::BF16, Elem::I32, Elem::I64, Elem::BOOL, Elem::U8]);
        let x = self.pick(|i| to.is_float() || i.digits.rough == 0)?;
        // Integers may be anything; only small ones have few digits.
        let d = match (x.elem.is_float(), x.elem.is_bool()) {
            (true, _) => x.digits,
            (_, true) => Digits { big: 1, fine: 0, rough: 0 },
            _ => Digits { big: 64, fine: 0, rough: 0 },
        };
        let y = self.builder().convert(x.arg, to).ok()?;
        if to.is_float() && !x.elem.is_float() && !x.elem.is_bool() {
            let mut b = self.builder();
            let (lo, hi) = (b.scalar_like(y, -16.0), b.scalar_like(y, 16.0));
            let low = b.max(y, lo).ok()?;
            let y = b.min(low, hi).ok()?;
            self.keep(y, Digits { big: 5, fine: 0, rough: 0 });
        } else {
            self.keep(y, d);
        }
        Some(())
    }

    fn log2(&self, n: i64) -> i32 {
        64 - (n.max(1) - 1).leading_zeros() as i32
    }

    fn reduce(&mut self) -> Option<()> {
        let x = self.pick(|i| !i.shape.is_empty())?;
        let rank = x.shape.len();
        let keep = self.rng.chance(50);
        let mut axes: Vec<usize> = (0..rank).filter(|_| self.rng.chance(50)).collect();
        if axes.is_empty() {
            axes.push(self.rng.below(rank));
        }
        let n: i64 = axes.iter().map(|a| self.value(&x.shape[*a])).product();
        let grow = self.log2(n);
        let d = x.digits;
        let empty = axes.iter().any(|a| self.may_be_empty(&x.shape[*a]));
        let (op, d) = match self.rng.below(9) {
            4.. if empty && !x.elem.is_bool() => (ReduceOp::Sum, Digits { big: d.big + grow, ..d }),
            _ if x.elem.is_bool() => (*self.rng.pick(&[ReduceOp::And, ReduceOp::Or, ReduceOp::Xor]), d),
            0..=3 => (ReduceOp::Sum, Digits { big: d.big + grow, ..d }),
            4 => (ReduceOp::Max, d),
            5 => (ReduceOp::Min, d),
            6 if !x.elem.is_float() => (ReduceOp::Prod, d),
            7 | 8 if d.rough == 0 => {
                axes.truncate(1);
                let last = self.rng.chance(50);
                let op = if self.rng.chance(50) { ReduceOp::ArgMax { last } } else { ReduceOp::ArgMin { last } };
                (op, d)
            }
            _ => (ReduceOp::Max, d),
        };
        let y = self.builder().reduce(op, x.arg, &axes, keep).ok()?;
        self.keep(y, d);
        Some(())
    }

    fn product(&mut self) -> Option<()> {
        let x = self.pick(|i| !i.shape.is_empty() && i.elem.is_float() && i.digits.rough < 3)?;
        let inner = x.shape.last()?.clone();
        if self.rng.chance(30) {
            // A weighted sum over some axis.
            let (y, dy) = self.partner(&x);
            let at = self.rng.below(x.shape.len());
            let n = self.value(&x.shape[at]);
            let d = Digits {
                big: x.digits.big + dy.big + self.log2(n) + 1,
                fine: x.digits.fine + dy.fine,
                rough: x.digits.rough.max(dy.rough),
            };
            let mut b = self.builder();
            let wide = b.wide(x.arg);
            let y = match y {
                Arg::Value(_) => y,
                s => b.full(s, x.elem, x.shape.clone()),
            };
            let shape = b.broadcast_shape(&[b.shape(x.arg), b.shape(y)]).ok()?;
            if self.count(&shape) > LARGEST {
                return None;
            }
            let mut b = self.builder();
            let z = b.dot(x.arg, y, wide, &[at], false).ok()?;
            self.keep(z, d);
            return Some(());
        }
        let columns = Ix::Const(*self.rng.pick(&[1, 2, 3, 8, 9, 16]));
        let before = self.pool.len();
        self.input(x.elem, vec![inner.clone(), columns]);
        let w = self.pool.get(before)?.clone();
        let n = self.value(&inner);
        let d = Digits { big: x.digits.big + 1 + self.log2(n), fine: x.digits.fine + 2, rough: x.digits.rough };
        let y = self.builder().matmul(x.arg, w.arg).ok()?;
        self.keep(y, d);
        Some(())
    }

    /// Axes in any order.
    fn order(&mut self, rank: usize) -> Vec<usize> {
        let mut perm: Vec<usize> = (0..rank).collect();
        for i in (1..rank).rev() {
            perm.swap(i, self.rng.below(i + 1));
        }
        perm
    }

    fn layout(&mut self) -> Option<()> {
        let x = self.pick(|i| !i.shape.is_empty())?;
        let rank = x.shape.len();
        let at = self.rng.below(rank);
        let n = x.shape[at].clone();
        let kind = self.rng.below(13);
        let partner = self.pick(|i| {
            let fits = |d: usize| d == at || i.shape.get(d) == x.shape.get(d);
            i.elem == x.elem && i.shape.len() == rank && (0..rank).all(fits)
        });
        let perm = self.order(rank);
        let amounts: Vec<(i64, i64)> = (0..rank).map(|_| (self.rng.range(0, 2), self.rng.range(0, 2))).collect();
        let (a, c, k) = (self.rng.range(1, 3), self.rng.range(-2, 2), self.rng.range(1, 4));
        let known = n.as_const();
        let hollow = self.may_be_empty(&n);
        let number = if self.rng.chance(60) { self.number() } else { None };
        let mut b = self.builder();
        let mut digits = x.digits;
        let axes: Vec<Ix> = (0..rank).map(axis).collect();
        let y = match kind {
            0 => b.transpose(x.arg, &perm),
            1 => {
                let total = b.numel(&x.shape);
                b.reshape(x.arg, &[total])
            }
            2 if rank > 1 => {
                let mut shape = x.shape.clone();
                let next = shape.remove(1);
                shape[0] = Ix::mul(shape[0].clone(), next);
                b.reshape(x.arg, &shape)
            }
            3 if known.is_some_and(|n| n % 2 == 0) => {
                let mut shape = x.shape.clone();
                shape[at] = Ix::Const(known? / 2);
                shape.insert(at, Ix::Const(2));
                b.reshape(x.arg, &shape)
            }
            // Reversed.
            4 => b.slice(x.arg, at, Ix::sub(n.clone(), Ix::Const(1)), -1, n),
            5 => {
                // The known part of the extent, or a place that a number gives.
                let start = match number.filter(|_| !hollow) {
                    Some(k) => Ix::modulo(k, n.clone()),
                    None => Ix::Const((a - 1).min(known.unwrap_or(1) - 1).max(0)),
                };
                let rest = Ix::sub(n, start.clone());
                b.slice(x.arg, at, start, a, Ix::ceil_div(rest, Ix::Const(a)))
            }
            6 => {
                let other = partner?;
                digits = Digits {
                    big: digits.big.max(other.digits.big),
                    fine: digits.fine.max(other.digits.fine),
                    rough: digits.rough.max(other.digits.rough),
                };
                b.concat(&[x.arg, other.arg, x.arg], at)
            }
            7 => {
                let value = if x.elem.is_float() { scalar(x.elem, 0.5) } else { int_scalar(x.elem, 1) };
                let (before, after): (Vec<Ix>, Vec<Ix>) =
                    amounts.iter().map(|(a, b)| (Ix::Const(*a), Ix::Const(*b))).unzip();
                b.pad(x.arg, &before, &after, value)
            }
            8 => b.unsqueeze(x.arg, &[at]),
            9 => {
                let mut shape = x.shape.clone();
                shape.insert(0, Ix::Const(a));
                b.broadcast_to(x.arg, &shape)
            }
            // Each element several times, the whole several times.
            10 => {
                let (mut shape, mut coords) = (x.shape.clone(), axes);
                shape[at] = Ix::mul(n, Ix::Const(k));
                coords[at] = Ix::floor_div(axis(at), Ix::Const(k));
                Ok(b.map("repeat", x.arg, shape, coords))
            }
            11 => {
                let (mut shape, mut coords) = (x.shape.clone(), axes);
                shape[at] = Ix::mul(n.clone(), Ix::Const(k));
                coords[at] = Ix::modulo(Ix::add(axis(at), Ix::Const(k)), n);
                Ok(b.map("tile", x.arg, shape, coords))
            }
            // Windows, whose places outside are another number; a band of a matrix.
            _ => {
                let (mut shape, mut coords) = (x.shape.clone(), axes);
                shape.push(Ix::Const(k));
                coords[at] = Ix::add(Ix::add(axis(at), axis(rank)), number.unwrap_or(Ix::Const(c)));
                let conds = vec![
                    Cond::new(coords[at].clone(), Cmp::Ge, Ix::Const(0)),
                    Cond::new(coords[at].clone(), Cmp::Lt, n),
                ];
                let value = if x.elem.is_float() { scalar(x.elem, -1.0) } else { int_scalar(x.elem, 0) };
                let sources = vec![
                    MapSource { arg: 0, coords, when: Mask { conds, vals: vec![] } },
                    MapSource { arg: 1, coords: vec![], when: Mask::default() },
                ];
                Ok(b.map_sources("window", vec![x.arg, value], shape, sources))
            }
        };
        self.keep(y.ok()?, digits);
        Some(())
    }

    /// An index tensor of a shape, inside an extent.
    fn indices(&mut self, extent: &Ix, shape: &[Ix]) -> Arg {
        let (k, c) = (self.rng.range(1, 5), self.rng.range(0, 3));
        let linear =
            (0..shape.len()).fold(Ix::Const(c), |at, d| Ix::add(at, Ix::mul(axis(d), Ix::Const(k + d as i64))));
        let linear = match self.number() {
            Some(k) => Ix::add(linear, k),
            None => linear,
        };
        let ix = Ix::modulo(linear, extent.clone());
        let elem = if self.rng.chance(50) { Elem::I64 } else { Elem::I32 };
        if self.rng.chance(50)
            && let Some(n) = extent.as_const()
            && shape.iter().all(|d| d.as_const().is_some())
        {
            // The same as an input whose values are unknown.
            let extents = self.extents_in(0, shape);
            let count = extents.iter().product::<u64>();
            let mut one = || {
                let bits = (0..count).map(|_| self.rng.below(n as usize) as u64).collect();
                Tensor::from_bits(Elem::I64, &extents, bits)
            };
            if let Some(data) = self.runs.iter().map(|_| one()).collect::<Option<Vec<Tensor>>>() {
                return self.given(Elem::I64, shape.to_vec(), Role::Argument, data);
            }
        }
        self.builder().index(ix, elem, shape.to_vec())
    }

    fn gather(&mut self) -> Option<()> {
        let x = self.pick(|i| !i.shape.is_empty())?;
        let at = self.rng.below(x.shape.len());
        let n = x.shape[at].clone();
        let mut shape = x.shape.clone();
        shape[at] = self.extent();
        if self.count(&shape) > LARGEST || self.may_be_empty(&n) {
            return None;
        }
        let ids = self.indices(&n, &shape);
        let coords = (0..shape.len()).map(|d| if d == at { Coord::Arg(1) } else { Coord::Ix(axis(d)) }).collect();
        let y = self.builder().gather(x.arg, &[ids], coords, shape).ok()?;
        self.keep(y, x.digits);
        Some(())
    }

    fn scatter(&mut self) -> Option<()> {
        let x = self.pick(|i| !i.shape.is_empty() && i.digits.rough == 0 && !i.elem.is_bool())?;
        let u = self.pick(|i| i.elem == x.elem && i.shape.len() == x.shape.len() && i.digits.rough == 0)?;
        let at = self.rng.below(x.shape.len());
        // Along the other axes, updates must fit.
        if self.may_be_empty(&x.shape[at]) || (0..x.shape.len()).any(|d| d != at && u.shape[d] != x.shape[d]) {
            return None;
        }
        let ids = self.indices(&x.shape[at].clone(), &u.shape);
        let op = *self.rng.pick(&[ScatterOp::Set, ScatterOp::Add, ScatterOp::Max, ScatterOp::Min]);
        let coords = (0..x.shape.len()).map(|d| if d == at { Coord::Arg(1) } else { Coord::Ix(axis(d)) }).collect();
        let grow = if op == ScatterOp::Add { self.log2(self.count(&u.shape)) + 1 } else { 0 };
        let d = Digits { big: x.digits.big.max(u.digits.big) + grow, fine: x.digits.fine.max(u.digits.fine), rough: 0 };
        let y = self.builder().scatter(x.arg, &[ids], u.arg, coords, op).ok()?;
        self.keep(y, d);
        Some(())
    }

    fn ordered(&mut self) -> Option<()> {
        let x = self.pick(|i| !i.shape.is_empty() && !i.elem.is_bool())?;
        let at = self.rng.below(x.shape.len());
        let (a, c) = (self.rng.chance(50), self.rng.chance(50));
        if self.rng.chance(60) || x.digits.rough > 0 {
            let op = *self.rng.pick(&[ScanOp::Sum, ScanOp::Max, ScanOp::Min]);
            let grow = if op == ScanOp::Sum { self.log2(self.value(&x.shape[at])) } else { 0 };
            let exclusive = a && op == ScanOp::Sum;
            let y = self.builder().scan(op, x.arg, at, exclusive, c).ok()?;
            self.keep(y, Digits { big: x.digits.big + grow, ..x.digits });
        } else {
            let (s, o) = self.builder().sort(x.arg, at, a).ok()?;
            self.keep(s, x.digits);
            self.keep(o, x.digits);
        }
        Some(())
    }

    fn finish(mut self) -> Case {
        if self.rng.chance(30) {
            // A result that shows another.
            let _ = self.layout();
        }
        let mut outputs: Vec<Arg> = vec![];
        let made: Vec<Arg> = self.pool.iter().map(|i| i.arg).filter(|a| self.is_made(*a)).collect();
        if let Some(last) = made.last() {
            outputs.push(*last);
        }
        for _ in 0..self.rng.below(4) {
            if let Some(x) = made.get(self.rng.below(made.len())) {
                outputs.push(*x);
            }
        }
        if outputs.is_empty() {
            outputs.extend(self.pool.first().map(|i| i.arg));
        }
        for (i, x) in outputs.into_iter().enumerate() {
            if let Arg::Value(value) = x {
                self.graph.outputs.push(Output { name: format!("y{i}"), value });
            }
        }
        Case { graph: self.graph, runs: self.runs, exact: self.exact }
    }

    fn is_made(&self, a: Arg) -> bool {
        matches!(a, Arg::Value(v) if self.graph.def(v).is_some())
    }
}

fn ir_half(elem: Elem) -> Arg {
    scalar(elem, 0.5)
}
