//! Sorts of rows, each by one worker.
//!
//! Each element becomes a number whose order as an unsigned integer is that of the elements, with its place behind it, so
//! that no two are equal and equal elements keep their order:
//!
//! ```text
//! f32: ((bits ^ (bits >> 31 | 0x80000000)) << 32) | place        0 for -0 before that, one number for all NaNs: the greatest
//! ```
//! Long rows are sorted digit by digit (the least significant first), each digit by counting. If only the first few
//! elements of a row are asked for, those few are kept in order while the row goes by, stretch by stretch: the least
//! number of a stretch usually shows that none of its elements is among the few.
//!
//! Elements of 64 bits leave no room for a place: numbers and places are moved side by side.

use super::builder::{NestBuilder, Result};
use super::scan_sort_scatter::{first, open_rows};
use crate::graph::ir::{Node, Op};
use crate::graph::{Elem, ValueId};
use crate::index::{Ix, ValId};
use crate::loops::ir::*;
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};

/// The shortest rows that are sorted by digits.
const LONG: i64 = 192;
/// The longest, whose numbers take two arrays of a worker's scratch memory.
const LONGEST: i64 = 1 << 24;
/// The most elements that are kept in order one by one.
const FEW: i64 = 64;
/// Elements of a row that are examined together.
const STRETCH: i64 = 32;
/// Values of a digit.
const VALUES: i64 = 256;

/// How the rows of a sort are put in order.
enum Way {
    /// Only the first elements of each row, this many, are asked for.
    Few(i64),
    Digits(i64),
}

/// Emits a sort whose rows one worker can put in order in less than quadratic time; otherwise does nothing.
pub(super) fn write(e: &mut NestBuilder<'_>, node: &Node, outs: &[ValId]) -> Result<bool> {
    let Op::Sort { axis, descending, .. } = node.op else { return Ok(false) };
    let (x, axis) = (first(node)?, axis as usize);
    let (elem, shape) = (e.graph.values[x].elem, e.graph.values[x].shape.clone());
    let n = shape.get(axis).cloned().unwrap_or(Ix::Const(1));
    let k = e.graph.values[node.results[0]].shape.get(axis).and_then(Ix::as_const);
    let packed = elem.dtype.bits() <= 32;
    let (way, k) = match (k, n.as_const()) {
        (Some(k), Some(n)) if k < n && (1..=FEW).contains(&k) && packed && n < 1 << 32 => (Way::Few(k), k),
        (Some(k), Some(n)) if (LONG..=LONGEST).contains(&n) => (Way::Digits(n), k),
        _ => return Ok(false),
    };
    let mut coords = open_rows(e, &shape, &[axis]);
    let mut rows = Rows { e, x, elem, axis, descending, n: n.clone() };
    let places = match way {
        Way::Few(k) => rows.few(k, &mut coords)?,
        Way::Digits(n) => rows.digits(n, &mut coords)?,
    };
    let i = Ix::Axis(e.open("i", Ix::Const(k), LoopKind::Free));
    let here = e.depth();
    let place = places.read(e, &i, here);
    store(e, node, outs, coords, axis, i, place)
}

/// Stores the element of a row that is the `i`th in order, and its place, and closes the loops.
pub(super) fn store(
    e: &mut NestBuilder<'_>,
    node: &Node,
    outs: &[ValId],
    coords: Vec<Ix>,
    axis: usize,
    i: Ix,
    place: Opnd,
) -> Result<bool> {
    let (mut from, mut to) = (coords.clone(), coords);
    (from[axis], to[axis]) = (val(place)?, i);
    let own = e.demand(first(node)?, &from)?;
    e.store(outs[0], node.results[0], &to, own, node.origin);
    e.store(outs[1], node.results[1], &to, place, node.origin);
    e.close_to(0);
    Ok(true)
}

pub(super) fn val(o: Opnd) -> Result<Ix> {
    match o {
        Opnd::Val(val) => Ok(Ix::Val { val, zext: false }),
        Opnd::Const { bits, .. } => Ok(Ix::Const(bits as i64)),
    }
}

pub(super) fn constant(dtype: DType, bits: u64) -> Opnd {
    Opnd::Const { dtype, bits: bits & dtype.mask() }
}

/// The buffer with the places of a row, in order.
struct Places {
    buf: BufId,
    /// The low halves of numbers.
    packed: bool,
    /// The index of the first.
    first: i64,
}

impl Places {
    fn read(&self, e: &mut NestBuilder<'_>, i: &Ix, here: usize) -> Opnd {
        let (buf, dtype) = (self.buf, if self.packed { DType::I64 } else { DType::I32 });
        let idx = Ix::add(i.clone(), Ix::Const(self.first));
        let item = e.define("item", dtype, here, |dst| Stmt::Read { dst, buf, idx: vec![idx] });
        if self.packed {
            let low = constant(DType::I64, u32::MAX.into());
            return e.apply(ScalarOp::And, DType::I64, vec![item, low]);
        }
        let op = ScalarOp::ExtI { to: DType::I64, sign: Signedness::Unsigned };
        e.apply(op, DType::I64, vec![item])
    }
}

/// Rows that are being put in order.
pub(super) struct Rows<'e, 'g> {
    pub e: &'e mut NestBuilder<'g>,
    pub x: ValueId,
    pub elem: Elem,
    pub axis: usize,
    pub descending: bool,
    pub n: Ix,
}

impl Rows<'_, '_> {
    /// The type of numbers before their places are put behind them.
    pub fn wide(&self) -> DType {
        if self.elem.dtype.bits() > 32 { DType::I64 } else { DType::I32 }
    }

    /// The number of the element at these coordinates.
    pub fn number(&mut self, coords: &[Ix]) -> Result<Opnd> {
        let value = self.e.demand(self.x, coords)?;
        let (wide, Elem { dtype, .. }) = (self.wide(), self.elem);
        let bits = dtype.bits();
        let (sign_bit, all) = (1u64 << (bits - 1), u64::MAX >> (64 - bits));
        let signed = dtype.is_float() || self.elem.sign() == Signedness::Signed && bits > 1;
        let sign = if signed { Signedness::Signed } else { Signedness::Unsigned };
        let e = &mut *self.e;
        let held = match (dtype.is_float(), bits) {
            (false, _) => dtype,
            (_, 8) => DType::I8,
            (_, 16) => DType::I16,
            (_, 32) => DType::I32,
            _ => DType::I64,
        };
        let mut word = value;
        if dtype.is_float() {
            word = e.apply(ScalarOp::Bitcast { to: held }, held, vec![word]);
        }
        if held != wide {
            word = e.apply(ScalarOp::ExtI { to: wide, sign }, wide, vec![word]);
        }
        let of = |x: u64| constant(wide, x);
        if dtype.is_float() {
            let is = |pred, ordered| ScalarOp::CmpF { pred, ordered };
            let zero = e.apply(is(Predicate::Equal, true), DType::I1, vec![value, constant(dtype, 0)]);
            word = e.apply(ScalarOp::Select, wide, vec![zero, of(0), word]);
            let nan = e.apply(is(Predicate::NotEqual, false), DType::I1, vec![value, value]);
            word = e.apply(ScalarOp::Select, wide, vec![nan, of(all >> 1), word]);
            let by = of(u64::from(wide.bits() - 1));
            let negative = e.apply(ScalarOp::Shr { sign: Signedness::Signed }, wide, vec![word, by]);
            let flip = e.apply(ScalarOp::Or, wide, vec![negative, of(sign_bit)]);
            word = e.apply(ScalarOp::Xor, wide, vec![word, flip]);
        } else if signed {
            word = e.apply(ScalarOp::Xor, wide, vec![word, of(sign_bit)]);
        }
        if self.descending {
            word = e.apply(ScalarOp::Xor, wide, vec![word, of(all)]);
        }
        if bits < wide.bits() {
            word = e.apply(ScalarOp::And, wide, vec![word, of(all)]);
        }
        Ok(word)
    }

    /// A number with its place behind it.
    fn item(&mut self, coords: &[Ix], place: Ix) -> Result<Opnd> {
        let number = self.number(coords)?;
        Ok(self.behind(number, place))
    }

    fn behind(&mut self, number: Opnd, place: Ix) -> Opnd {
        let here = self.e.depth();
        let e = &mut *self.e;
        let op = ScalarOp::ExtI { to: DType::I64, sign: Signedness::Unsigned };
        let high = e.apply(op, DType::I64, vec![number]);
        let high = e.apply(ScalarOp::Shl, DType::I64, vec![high, constant(DType::I64, 32)]);
        let place = e.define("place", DType::I64, here, |dst| Stmt::Index { dst, ix: place });
        e.apply(ScalarOp::Or, DType::I64, vec![high, place])
    }

    /// The same as a signed number.
    pub fn placed(&mut self, number: Opnd, place: Ix) -> Opnd {
        let item = self.behind(number, place);
        self.e.apply(ScalarOp::Xor, DType::I64, vec![item, constant(DType::I64, 1 << 63)])
    }

    /// Keeps the first few elements of a row in order. Most elements of a long row come after those: the least number
    /// of a stretch shows whether any of its elements does not.
    fn few(&mut self, k: i64, coords: &mut [Ix]) -> Result<Places> {
        let at = self.e.depth();
        // Items are compared as signed numbers: the highest bit is inverted. The item before the first is less than all
        // others.
        let [best, next] = ["best", "next"].map(|name| self.e.local(name, DType::I64, vec![k as u64 + 1], at));
        let j = Ix::Axis(self.e.open("j", Ix::Const(k), LoopKind::Free));
        let idx = vec![Ix::add(j, Ix::Const(1))];
        self.e.push_here(Stmt::Write { buf: best, idx, value: constant(DType::I64, i64::MAX as u64) });
        self.e.close();
        let least = constant(DType::I64, i64::MIN as u64);
        self.e.push(at, Stmt::Write { buf: best, idx: vec![Ix::Const(0)], value: least });
        let n = self.n.as_const().unwrap_or(0);
        let stretches = if n >= 4 * STRETCH { n / STRETCH } else { 0 };
        if stretches > 0 {
            let b = Ix::Axis(self.e.open("b", Ix::Const(stretches), LoopKind::Serial));
            let from = Ix::mul(b, Ix::Const(STRETCH));
            let lowest = self.lowest(coords, &from)?;
            // With the first place of the stretch the item comes before all kept items behind it, if one of the
            // stretch's elements does.
            let item = self.placed(lowest, from.clone());
            let cond = self.is_kept(item, best, k);
            let i = Ix::Axis(self.e.open("k", Ix::Const(STRETCH), LoopKind::Serial));
            self.keep(coords, Ix::add(from, i), [best, next], k)?;
            self.e.close_into(|f| Stmt::If { cond, then: vec![Stmt::For(Box::new(f))], els: vec![] });
            self.e.close();
        }
        if stretches * STRETCH < n {
            let first = Ix::Const(stretches * STRETCH);
            let i = Ix::Axis(self.e.open("k", Ix::Const(n - stretches * STRETCH), LoopKind::Serial));
            self.keep(coords, Ix::add(i, first), [best, next], k)?;
            self.e.close();
        }
        Ok(Places { buf: best, packed: true, first: 1 })
    }

    /// The least number of a stretch.
    fn lowest(&mut self, coords: &mut [Ix], from: &Ix) -> Result<Opnd> {
        let (wide, at) = (self.wide(), self.e.depth());
        let lowest = self.e.local("lowest", wide, vec![], at);
        let most = wide.mask();
        self.e.push_here(Stmt::Write { buf: lowest, idx: vec![], value: constant(wide, most) });
        let q = Ix::Axis(self.e.open("q", Ix::Const(STRETCH), LoopKind::Reduce));
        coords[self.axis] = Ix::add(from.clone(), q);
        let number = self.number(coords)?;
        let here = self.e.depth();
        let op = ScalarOp::MinI { sign: Signedness::Unsigned };
        self.e.fold_step(lowest, op, wide, vec![number], here);
        let combine = Combine { accs: vec![lowest], op: CombineOp::Scalar { op, identity: most }, ways: 1 };
        self.e.close_with(|f| f.combine = Some(combine));
        Ok(self.e.define("lowest", wide, at, |dst| Stmt::Read { dst, buf: lowest, idx: vec![] }))
    }

    /// Returns true if an item, as a signed number, comes before the last one that is kept.
    fn is_kept(&mut self, item: Opnd, best: BufId, k: i64) -> Opnd {
        let here = self.e.depth();
        let last =
            self.e.define("last", DType::I64, here, |dst| Stmt::Read { dst, buf: best, idx: vec![Ix::Const(k)] });
        let less = ScalarOp::CmpI { pred: Predicate::LessThan, sign: Signedness::Signed };
        self.e.apply(less, DType::I1, vec![item, last])
    }

    /// Puts an element among those that are kept, where it belongs there.
    fn keep(&mut self, coords: &mut [Ix], i: Ix, [best, next]: [BufId; 2], k: i64) -> Result<()> {
        coords[self.axis] = i.clone();
        let number = self.number(coords)?;
        let item = self.placed(number, i);
        let cond = self.is_kept(item, best, k);
        // Each kept item becomes the greater of the one before it and its own new value. The statements stand in a loop
        // that runs once, under the condition.
        self.e.open("once", Ix::Const(1), LoopKind::Serial);
        let j = Ix::Axis(self.e.open("j", Ix::Const(k), LoopKind::Free));
        let inner = self.e.depth();
        let after = Ix::add(j.clone(), Ix::Const(1));
        let e = &mut *self.e;
        let read = |e: &mut NestBuilder<'_>, name: &str, buf: BufId, idx: &Ix| {
            e.define(name, DType::I64, inner, |dst| Stmt::Read { dst, buf, idx: vec![idx.clone()] })
        };
        let sign = Signedness::Signed;
        let own = read(e, "kept", best, &after);
        let own = e.apply(ScalarOp::MinI { sign }, DType::I64, vec![own, item]);
        let before = read(e, "before", best, &j);
        let value = e.apply(ScalarOp::MaxI { sign }, DType::I64, vec![own, before]);
        e.push_here(Stmt::Write { buf: next, idx: vec![after.clone()], value });
        e.close();
        let j = Ix::Axis(e.open("j", Ix::Const(k), LoopKind::Free));
        let idx = vec![Ix::add(j, Ix::Const(1))];
        let inner = e.depth();
        let value = e.define("kept", DType::I64, inner, |dst| Stmt::Read { dst, buf: next, idx: idx.clone() });
        e.push_here(Stmt::Write { buf: best, idx, value });
        e.close();
        e.close_into(|f| Stmt::If { cond, then: f.body, els: vec![] });
        Ok(())
    }

    /// Sorts a row digit by digit.
    fn digits(&mut self, n: i64, coords: &mut [Ix]) -> Result<Places> {
        let (at, passes) = (self.e.depth(), i64::from(self.elem.dtype.bits().div_ceil(8)));
        let packed = self.wide() == DType::I32;
        let wide = if packed { DType::I64 } else { self.wide() };
        let array = |e: &mut NestBuilder<'_>, name: &str, dtype| e.local(name, dtype, vec![n as u64], at);
        let items = ["items", "moved"].map(|name| array(self.e, name, wide));
        let places =
            if packed { items } else { ["places", "places_moved"].map(|name| array(self.e, name, DType::I32)) };
        let counts = self.e.local("counts", DType::I32, vec![passes as u64, VALUES as u64], at);

        for pass in 0..passes {
            let d = Ix::Axis(self.e.open("d", Ix::Const(VALUES), LoopKind::Free));
            self.e.push_here(Stmt::Write {
                buf: counts,
                idx: vec![Ix::Const(pass), d],
                value: constant(DType::I32, 0),
            });
            self.e.close();
        }
        let i = Ix::Axis(self.e.open("i", Ix::Const(n), LoopKind::Free));
        coords[self.axis] = i.clone();
        if packed {
            let item = self.item(coords, i.clone())?;
            self.e.push_here(Stmt::Write { buf: items[0], idx: vec![i], value: item });
        } else {
            let number = self.number(coords)?;
            let here = self.e.depth();
            self.e.push_here(Stmt::Write { buf: items[0], idx: vec![i.clone()], value: number });
            let place = self.e.define("place", DType::I32, here, |dst| Stmt::Index { dst, ix: i.clone() });
            self.e.push_here(Stmt::Write { buf: places[0], idx: vec![i], value: place });
        }
        self.e.close();

        let i = Ix::Axis(self.e.open("i", Ix::Const(n), LoopKind::Serial));
        let here = self.e.depth();
        let item = self.e.define("item", wide, here, |dst| Stmt::Read { dst, buf: items[0], idx: vec![i] });
        for pass in 0..passes {
            let digit = self.digit(item, pass, packed)?;
            self.count(counts, pass, digit);
        }
        self.e.close();

        for pass in 0..passes {
            let from = pass as usize % 2;
            self.starts(counts, pass);
            let i = Ix::Axis(self.e.open("i", Ix::Const(n), LoopKind::Serial));
            let here = self.e.depth();
            let item =
                self.e.define("item", wide, here, |dst| Stmt::Read { dst, buf: items[from], idx: vec![i.clone()] });
            let digit = self.digit(item, pass, packed)?;
            let to = val(self.count(counts, pass, digit))?;
            self.e.push_here(Stmt::Write { buf: items[1 - from], idx: vec![to.clone()], value: item });
            if !packed {
                let buf = places[from];
                let place = self.e.define("place", DType::I32, here, |dst| Stmt::Read { dst, buf, idx: vec![i] });
                self.e.push_here(Stmt::Write { buf: places[1 - from], idx: vec![to], value: place });
            }
            self.e.close();
        }
        Ok(Places { buf: places[passes as usize % 2], packed, first: 0 })
    }

    /// A digit of an item, as a subscript.
    fn digit(&mut self, item: Opnd, pass: i64, packed: bool) -> Result<Ix> {
        let by = constant(DType::I64, (8 * pass + if packed { 32 } else { 0 }) as u64);
        let shift = ScalarOp::Shr { sign: Signedness::Unsigned };
        let digit = self.e.apply(shift, DType::I64, vec![item, by]);
        val(self.e.apply(ScalarOp::And, DType::I64, vec![digit, constant(DType::I64, VALUES as u64 - 1)]))
    }

    /// Adds one to a count, and returns the old count.
    fn count(&mut self, counts: BufId, pass: i64, digit: Ix) -> Opnd {
        let (here, idx) = (self.e.depth(), vec![Ix::Const(pass), digit]);
        let old = self.e.define("count", DType::I32, here, |dst| Stmt::Read { dst, buf: counts, idx: idx.clone() });
        let new = self.e.apply(ScalarOp::AddI, DType::I32, vec![old, constant(DType::I32, 1)]);
        self.e.push_here(Stmt::Write { buf: counts, idx, value: new });
        old
    }

    /// Turns counts into the places where each value of a digit begins.
    fn starts(&mut self, counts: BufId, pass: i64) {
        let at = self.e.depth();
        let sum = self.e.local("sum", DType::I32, vec![], at);
        self.e.push_here(Stmt::Write { buf: sum, idx: vec![], value: constant(DType::I32, 0) });
        let d = Ix::Axis(self.e.open("d", Ix::Const(VALUES), LoopKind::Serial));
        let (here, idx) = (self.e.depth(), vec![Ix::Const(pass), d]);
        let own = self.e.define("count", DType::I32, here, |dst| Stmt::Read { dst, buf: counts, idx: idx.clone() });
        let old = self.e.define("sum", DType::I32, here, |dst| Stmt::Read { dst, buf: sum, idx: vec![] });
        self.e.push_here(Stmt::Write { buf: counts, idx, value: old });
        let new = self.e.apply(ScalarOp::AddI, DType::I32, vec![old, own]);
        self.e.push_here(Stmt::Write { buf: sum, idx: vec![], value: new });
        self.e.close();
    }
}
