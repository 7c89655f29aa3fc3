//! Products that the warps of a block compute on the matrix unit, as loops.
//!
//! In: loops over rows, columns and terms, each placed as `matrix`, inside a loop over threads. They give a thread's
//! elements of the sum, one after the other. Out: the parts of both operands whose addresses the lanes of a warp give
//! to `ldmatrix`.
//!
//! ```text
//! for t in 0..128: free thread
//!   for r in 0..4: free matrix                         row t//64*32 + r*8 + t%32//4
//!     for c in 0..8: free matrix                       column t//32%2*32 + c//2*8 + t%4*2 + c%2
//!       for k in 0..64: reduce matrix
//!         x: f16 = a_s[<row>, k]
//!         y: f16 = b_s[k, <column>]
//!         ...                                          to the type of the sum
//!         acc[t, r, c] = fma(x, y, acc[t, r, c])
//! ```
//! One instruction multiplies 16 rows by 8 columns, each of 32 bytes. Slots 2i and 2i + 1 of the rows are its upper and
//! lower eight rows, and a lane has row `t%32//4` of each; slots 2j and 2j + 1 of the columns are two neighbouring
//! columns, selected by `t%4`. A row therefore depends only on the warp and `t%32//4`, a column only on the warp and
//! `t%4`.
//!
//! Bytes that run along the rows or columns are moved in pairs. Then the rows of slots 2i and 2i + 1 are neighbours, so
//! that a lane has two adjacent rows; or the columns of slots 4j to 4j + 3 are neighbours, and one product has the even
//! ones and the next product the odd ones.

use crate::loops::ir::*;
use crate::loops::lanes::of_group;
use crate::loops::walk;
use crate::num::op::Signedness;
use crate::num::{DType, ScalarOp};

/// The type of a matrix unit's operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    F16,
    BF16,
    /// f32; only 10 bits of the fraction count.
    TF32,
    E4M3,
    E5M2,
    S8,
    U8,
}

impl Operand {
    pub const WORDS: [(&'static str, Operand); 7] = [
        ("f16", Operand::F16),
        ("bf16", Operand::BF16),
        ("tf32", Operand::TF32),
        ("e4m3", Operand::E4M3),
        ("e5m2", Operand::E5M2),
        ("s8", Operand::S8),
        ("u8", Operand::U8),
    ];

    /// PTX's name for the type.
    pub fn word(self) -> &'static str {
        Operand::WORDS.iter().find(|(_, o)| *o == self).map_or("", |(word, _)| word)
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            Operand::F16 | Operand::BF16 => 2,
            Operand::TF32 => 4,
            Operand::E4M3 | Operand::E5M2 | Operand::S8 | Operand::U8 => 1,
        }
    }

    /// The terms of one product's sums.
    pub fn terms(self) -> u32 {
        32 / self.bytes()
    }

    pub fn is_float(self) -> bool {
        !matches!(self, Operand::S8 | Operand::U8)
    }

    /// Returns true if it is a float of one byte.
    pub fn is_byte_float(self) -> bool {
        self.is_float() && self.bytes() == 1
    }

    /// Returns true if one instruction multiplies the two: the same type, two integers of one byte, or two floats of
    /// one byte.
    pub fn goes_with(self, other: Operand) -> bool {
        self == other || self.bytes() == 1 && other.bytes() == 1 && self.is_float() == other.is_float()
    }

    /// The type of the sums.
    pub fn sum(self) -> DType {
        if self.is_float() { DType::F32 } else { DType::I32 }
    }
}

/// The bits of an f32 that count as tf32.
pub const TF32: u64 = 0xffff_e000;

/// Rows, columns and terms of one instruction's product; there are 32 bytes of terms.
pub const ROWS: u64 = 16;
pub const COLS: u64 = 8;

/// The term, out of 32, whose row lane `l` of a warp supplies where bytes are transposed: `ldmatrix` moves pairs of
/// bytes, so that lane l gets two columns of the rows that the lanes `l%4*2` and `l%4*2 + 1` of each eight supply. The
/// rows that a lane gets from two matrices are four consecutive terms, and the rows of one matrix, which are read at
/// once, lie in different banks.
pub fn row_of_bytes(l: usize) -> usize {
    l / 16 * 16 + l / 2 % 4 * 4 + (l / 8 + l / 4) % 2 * 2 + l % 2
}

/// An operand in shared memory, or a left operand in the registers of the lanes.
#[derive(Clone, Debug)]
pub struct Side {
    pub buf: BufId,
    pub idx: Vec<Ix>,
    /// Its rows, or columns, are contiguous in memory; otherwise its terms are.
    pub transposed: bool,
    /// It is laid out like a product's sums.
    pub registers: bool,
    /// How f32 are rounded to tf32 on the way; otherwise they are cut off.
    pub rounding: Option<ScalarOp>,
    pub of: Operand,
}

/// The column of a left operand in registers that holds the term `k` of a row. Sums are laid out in pairs: of operands
/// of four bytes each lane has the terms `t%4` and `t%4 + 4`, which are its two columns.
pub fn column_of_term(of: Operand, k: Ix) -> Ix {
    if of.bytes() != 4 {
        return k;
    }
    let (eight, four) = (|| Ix::Const(8), || Ix::Const(4));
    let pair = Ix::mul(Ix::modulo(k.clone(), four()), Ix::Const(2));
    let half = Ix::floor_div(Ix::modulo(k.clone(), eight()), four());
    Ix::add(Ix::mul(Ix::floor_div(k, eight()), eight()), Ix::add(pair, half))
}

/// The place of a term: which of four lanes has it, and its slot among that lane's columns.
pub fn held(of: Operand, k: Ix) -> [Ix; 2] {
    let (eight, two) = (|| Ix::Const(8), || Ix::Const(2));
    let (lane, slot) = match of.bytes() {
        4 => {
            let within = || Ix::modulo(k.clone(), eight());
            (Ix::modulo(k.clone(), Ix::Const(4)), Ix::floor_div(within(), Ix::Const(4)))
        }
        _ => (Ix::floor_div(Ix::modulo(k.clone(), eight()), two()), Ix::modulo(k.clone(), two())),
    };
    [lane, Ix::add(Ix::mul(Ix::floor_div(k, eight()), two()), slot)]
}

/// A product, from the thread's view.
pub struct Product {
    pub thread: AxisId,
    /// The block has one warp, whose lanes are its threads.
    one_warp: bool,
    /// The axes over a thread's rows, its columns and the terms, and how far they go.
    pub axes: [AxisId; 3],
    pub rows: u64,
    pub cols: u64,
    pub terms: u64,
    pub a: Side,
    pub b: Side,
    pub acc: BufId,
}

/// An operand as the statements have it.
struct Given {
    buf: BufId,
    idx: Vec<Ix>,
    of: Operand,
    rounding: Option<ScalarOp>,
}

/// The statements inside the three loops.
struct Body {
    a: Given,
    b: Given,
    acc: (BufId, Vec<Ix>),
}

impl Product {
    /// The product that a loop over rows begins, in a loop over `threads` threads.
    ///
    /// # Errors
    /// Why the loops are not a product, in a few words.
    pub fn of(kernel: &Kernel, (thread, threads): (AxisId, u64), rows: &For) -> Result<Product, &'static str> {
        let inner = |f: &For| match &f.body[..] {
            [Stmt::For(inner)] => Some(inner.clone()),
            _ => None,
        };
        let cols = inner(rows).ok_or("there is no loop over its columns")?;
        let sum = inner(&cols).ok_or("there is no loop over its terms")?;
        let loops = [rows, &*cols, &*sum];
        if !rows.place.is_product() {
            return Err("its loops are not placed as the matrix unit has them");
        }
        let kinds = [LoopKind::Free, LoopKind::Free, LoopKind::Reduce];
        if loops.iter().zip(kinds).any(|(f, kind)| f.kind != kind || f.place != rows.place || f.combine.is_some()) {
            return Err("its loops are not placed as the matrix unit has them");
        }
        let extent = |f: &For| {
            let counts = f.counts_from_zero();
            f.hi.as_const().filter(|n| counts && *n > 0).map(|n| n as u64)
        };
        let [Some(r), Some(c), Some(k)] = loops.map(extent) else { return Err("its loops have no constant extent") };
        let body = Body::of(kernel, &sum.body).ok_or("it does more than multiply and add")?;
        let axes = loops.map(|f| f.axis);
        let (left, right) = (body.a.of, body.b.of);
        if !left.goes_with(right)
            || !r.is_multiple_of(2)
            || !c.is_multiple_of(2)
            || !k.is_multiple_of(left.terms().into())
        {
            return Err("the product does not split into those of the matrix unit");
        }
        let (slot, sums) = ([thread, axes[0], axes[1]].map(Ix::Axis), kernel.bufs.get(body.acc.0));
        let slot = match sums.map(|b| b.space) {
            Some(Space::Private) => &slot[..],
            _ => &slot[1..],
        };
        let own = |b: &Buf| b.ty == Ty::Num(left.sum()) && matches!(b.space, Space::Private | Space::Scratch);
        if body.acc.1 != slot || !sums.is_some_and(own) {
            return Err("its sums are not the thread's own");
        }
        let a = match kernel.bufs.get(body.a.buf).map(|b| b.space) {
            Some(Space::Private) => Side::in_registers(kernel, body.a, thread, axes, k),
            _ => Side::of(kernel, body.a, axes[0], axes[2]),
        };
        let b = Side::of(kernel, body.b, axes[1], axes[2]);
        let made = Product {
            thread,
            one_warp: threads <= 32,
            axes,
            rows: r,
            cols: c,
            terms: k,
            a: a?,
            b: b?,
            acc: body.acc.0,
        };
        if !made.a_lies(kernel, threads) || !made.b_lies(kernel, threads) {
            return Err("an operand does not lie as the matrix unit reads it");
        }
        Ok(made)
    }

    /// Returns true if each row of `ldmatrix` is contiguous and begins at a multiple of 16 bytes.
    fn a_lies(&self, kernel: &Kernel, threads: u64) -> bool {
        if self.a.registers {
            return true;
        }
        let [r, _, _] = self.axes;
        let at = |slot: i64, line: i64| self.at(&self.a, &[(r, Ix::Const(slot))], Some(Ix::Const(line)), None);
        if self.a.by_bytes() {
            let line = |pair: i64, line: i64| at(pair * 2 + line % 2, line / 2);
            return (0..self.rows as i64 / 2).all(|pair| self.a.lies(kernel, self, threads, &|n| line(pair, n)));
        }
        (0..self.rows as i64).all(|slot| self.a.lies(kernel, self, threads, &|line| at(slot, line)))
    }

    fn b_lies(&self, kernel: &Kernel, threads: u64) -> bool {
        let [_, c, _] = self.axes;
        // Adjacent columns, of one product or of two.
        let together = if self.b.by_bytes() { 4 } else { 2 };
        let at = |group: u64, line: i64| {
            let slot = Ix::Const(group as i64 * together + line % together);
            self.at(&self.b, &[(c, slot)], None, Some(Ix::Const(line / together)))
        };
        let whole = self.cols.is_multiple_of(together as u64);
        whole && (0..self.cols / together as u64).all(|n| self.b.lies(kernel, self, threads, &|line| at(n, line)))
    }

    /// The row of the left operand that each lane supplies for four matrices: the products' rows by `pair` of slots,
    /// their terms by `step`.
    pub fn left(&self, pair: &Ix, step: &Ix) -> Option<Vec<Ix>> {
        let [r, _, k] = self.axes;
        if self.a.by_bytes() {
            let axes = [(r, pair.clone() * Ix::Const(2)), (k, self.term_of_bytes(&self.a, step))];
            return self.at(&self.a, &axes, Some(Ix::Const(0)), None);
        }
        let slot = self.lane(8, Some(2)) + pair.clone() * Ix::Const(2);
        let (matrix, line) = (self.lane(16, Some(2)), self.lane(1, Some(8)));
        let lane = if self.a.transposed { Ix::Const(0) } else { line.clone() };
        self.at(&self.a, &[(r, slot), (k, self.term(&self.a, matrix, line, step))], Some(lane), None)
    }

    /// The reads of each lane of the left operand: a row for `ldmatrix`, its words one by one, or nothing of an operand that
    /// registers hold.
    pub fn left_reads(&self, pair: &Ix, step: &Ix) -> Option<Vec<Vec<Ix>>> {
        match self.a.by_words() {
            _ if self.a.registers => Some(vec![]),
            true => (0..4).map(|word| self.left_word(pair, step, word)).collect(),
            false => self.left(pair, step).map(|idx| vec![idx]),
        }
    }

    /// The row of the right operand that each lane supplies: for two matrices, or for four if there are `two` products
    /// side by side. The products' columns by `tile`, or pair of tiles.
    pub fn right(&self, tile: &Ix, step: &Ix, two: bool) -> Option<Vec<Ix>> {
        let [_, c, k] = self.axes;
        if self.b.by_bytes() {
            let axes = [(c, tile.clone() * Ix::Const(4)), (k, self.term_of_bytes(&self.b, step))];
            return self.at(&self.b, &axes, None, Some(Ix::Const(0)));
        }
        let tile = if two { tile.clone() * Ix::Const(2) + self.lane(16, Some(2)) } else { tile.clone() };
        let (matrix, line) = (self.lane(8, Some(2)), self.lane(1, Some(8)));
        let first = tile * Ix::Const(2);
        let (slot, lane) = match self.b.transposed {
            true => (first, Ix::Const(0)),
            false => (first + self.lane(1, Some(2)), self.lane(2, Some(4))),
        };
        self.at(&self.b, &[(c, slot), (k, self.term(&self.b, matrix, line, step))], None, Some(lane))
    }

    /// The element of the left operand that is a lane's word of a matrix, where elements are words: `matrix` as
    /// [`Product::left`] orders them.
    pub fn left_word(&self, pair: &Ix, step: &Ix, matrix: i64) -> Option<Vec<Ix>> {
        let [r, _, k] = self.axes;
        let slot = pair.clone() * Ix::Const(2) + Ix::Const(matrix % 2);
        let term = self.term_word(&self.a, step, matrix / 2);
        self.at(&self.a, &[(r, slot), (k, term)], Some(self.lane(4, Some(8))), None)
    }

    /// The element of the right operand that is a lane's word of a matrix, by tile.
    pub fn right_word(&self, tile: &Ix, step: &Ix, matrix: i64) -> Option<Vec<Ix>> {
        let [_, c, k] = self.axes;
        let slot = tile.clone() * Ix::Const(2) + self.lane(4, Some(2));
        let term = self.term_word(&self.b, step, matrix);
        self.at(&self.b, &[(c, slot), (k, term)], None, Some(self.lane(8, Some(4))))
    }

    /// The term whose row of 16 bytes a lane supplies, as in [`row_of_bytes`].
    fn term_of_bytes(&self, side: &Side, step: &Ix) -> Ix {
        let times = |ix: Ix, n: i64| ix * Ix::Const(n);
        let bit = |by| self.lane(by, Some(2));
        let pair = Ix::modulo(bit(8) + bit(4), Ix::Const(2));
        let row = times(bit(16), 16) + times(self.lane(2, Some(4)), 4) + times(pair, 2) + bit(1);
        times(step.clone(), side.of.terms().into()) + row
    }

    fn term_word(&self, side: &Side, step: &Ix, half: i64) -> Ix {
        let terms = i64::from(side.of.terms());
        step.clone() * Ix::Const(terms) + Ix::Const(half * terms / 2) + self.lane(1, Some(4))
    }

    /// The number of the lane, divided and cut off.
    fn lane(&self, by: i64, below: Option<i64>) -> Ix {
        let t = Ix::floor_div(Ix::Axis(self.thread), Ix::Const(by));
        below.map_or(t.clone(), |n| Ix::modulo(t, Ix::Const(n)))
    }

    /// The term that a row begins with, or belongs to if the operand is transposed.
    fn term(&self, side: &Side, matrix: Ix, line: Ix, step: &Ix) -> Ix {
        let half = i64::from(side.of.terms() / 2);
        let first = step.clone() * Ix::Const(2 * half) + matrix * Ix::Const(half);
        if side.transposed { first + line } else { first }
    }

    /// The subscripts of an operand with axes replaced, and with the lane's row or column.
    fn at(&self, side: &Side, axes: &[(AxisId, Ix)], row: Option<Ix>, col: Option<Ix>) -> Option<Vec<Ix>> {
        let by = |axis: AxisId| axes.iter().find(|(a, _)| *a == axis).map(|(_, ix)| ix.clone());
        side.idx.iter().map(|ix| self.lanes(ix, &by, row.as_ref(), col.as_ref())).collect()
    }

    fn lanes(&self, ix: &Ix, by: &dyn Fn(AxisId) -> Option<Ix>, row: Option<&Ix>, col: Option<&Ix>) -> Option<Ix> {
        let t = Ix::Axis(self.thread);
        let constant = |ix: &Ix, n: i64| ix.is_const(n);
        let warps = |n: &Ix| n.as_const().is_some_and(|n| n > 0 && n % 32 == 0);
        match ix {
            Ix::FloorDiv(lane, four)
                if constant(four, 4) && matches!(&**lane, Ix::Mod(a, n) if **a == t && constant(n, 32)) =>
            {
                row.cloned()
            }
            Ix::Mod(lane, eight)
                if constant(eight, 8) && matches!(&**lane, Ix::FloorDiv(a, n) if **a == t && constant(n, 4)) =>
            {
                row.cloned()
            }
            Ix::FloorDiv(lane, four) if self.one_warp && constant(four, 4) && **lane == t => row.cloned(),
            Ix::Mod(a, n) if **a == t && constant(n, 4) => col.cloned(),
            Ix::FloorDiv(a, n) if warps(n) && (**a == t || matches!(&**a, Ix::Mod(a, n) if **a == t && warps(n))) => {
                Some(ix.clone())
            }
            Ix::Axis(a) if *a == self.thread => None,
            Ix::Axis(a) => Some(by(*a).unwrap_or_else(|| ix.clone())),
            _ => match ix.operands() {
                Some((a, b)) => Some(ix.with_operands(self.lanes(a, by, row, col)?, self.lanes(b, by, row, col)?)),
                None => Some(ix.clone()),
            },
        }
    }
}

impl Side {
    /// Returns true if its elements are words that lanes load one by one: `ldmatrix` does not transpose them.
    pub fn by_words(&self) -> bool {
        self.transposed && self.of.bytes() == 4
    }

    /// Returns true if its elements are bytes across the sum, which `ldmatrix` moves in pairs.
    pub fn by_bytes(&self) -> bool {
        self.transposed && self.of.bytes() == 1
    }

    /// The slots of a row of sums, and of the rows below it, that make up a lane's word of a matrix: `matrix` as
    /// [`Product::left`] orders them.
    pub fn slots_of_word(&self, matrix: u64) -> (u64, Vec<u64>) {
        let (below, half) = (matrix % 2, matrix / 2);
        (below, if self.of.bytes() == 4 { vec![half] } else { vec![2 * half, 2 * half + 1] })
    }

    fn of(
        kernel: &Kernel,
        Given { buf, idx, of, rounding }: Given,
        own: AxisId,
        terms: AxisId,
    ) -> Result<Side, &'static str> {
        // A buffer in the block's own memory will be shared.
        let shared = |b: &&Buf| matches!(b.space, Space::Shared | Space::Scratch);
        let b = kernel.bufs.get(buf).filter(shared).ok_or("an operand is not in shared memory")?;
        let row = b.shape.last().copied().unwrap_or(0) * b.element_bytes();
        if !row.is_multiple_of(16) {
            return Err("the rows of an operand are not a multiple of 16 bytes");
        }
        let (last, others) = idx.split_last().ok_or("an operand is not a matrix")?;
        let transposed = !last.has_axis(terms);
        // Contiguous terms follow one another, all of them or those of whole steps; that rows or columns are contiguous follows from
        // the lanes.
        let side_by_side = last.linear(terms).is_some_and(|(by, _)| by.is_const(1));
        let boxes = match last {
            Ix::Mod(k, n) if **k == Ix::Axis(terms) => {
                n.as_const().filter(|n| *n > 0 && n % i64::from(of.terms()) == 0)
            }
            _ => None,
        };
        let box_of = boxes.map(|n| Ix::floor_div(Ix::Axis(terms), Ix::Const(n)));
        let plain = (side_by_side || boxes.is_some())
            && !others.iter().any(|ix| ix.has_axis(terms) && box_of.as_ref() != Some(ix));
        if !transposed && (last.has_axis(own) || !plain) {
            return Err("an operand does not lie as the matrix unit reads it");
        }
        Ok(Side { buf, idx, transposed, registers: false, rounding, of })
    }

    /// A left operand that lies in registers as sums do: the lanes of a row have its terms.
    fn in_registers(
        kernel: &Kernel,
        Given { buf, idx, of, rounding }: Given,
        thread: AxisId,
        [rows, _, terms]: [AxisId; 3],
        count: u64,
    ) -> Result<Side, &'static str> {
        let [lane, slot] = held(of, Ix::Axis(terms));
        let cols = kernel.bufs.get(buf).and_then(|b| b.shape.get(2));
        if of.bytes() < 2 || idx != [of_group(thread, 4, lane), Ix::Axis(rows), slot] || cols != Some(&(count / 4)) {
            return Err("an operand in registers does not lie as sums do");
        }
        Ok(Side { buf, idx, transposed: false, registers: true, rounding, of })
    }

    /// Returns true if the rows that lanes supply begin at multiples of 16 bytes and, where they hold adjacent columns
    /// or rows, cover all of them. `line` gives the subscripts of one of the eight rows (sixteen for bytes) in terms of
    /// the thread, its step of the sum and constants.
    fn lies(&self, kernel: &Kernel, p: &Product, threads: u64, line: &dyn Fn(i64) -> Option<Vec<Ix>>) -> bool {
        let Some(lines) = (0..if self.by_bytes() { 16 } else { 8 }).map(line).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let shape = kernel.bufs.get(self.buf).map_or(&[][..], |b| &b.shape);
        let unit = i64::from(16 / self.of.bytes());
        (0..threads.max(1)).step_by(32).all(|t| {
            let place = |idx: &Vec<Ix>| {
                Ix::row_major(idx, shape).eval(&|leaf| match leaf {
                    Ix::Axis(a) if *a == p.thread => t as i64,
                    Ix::Const(n) => *n,
                    _ => 0,
                })
            };
            let places: Vec<i64> = lines.iter().map(place).collect();
            match self.transposed {
                // Word by word.
                true if self.of.bytes() == 4 => true,
                true => places[0] % unit == 0 && places.windows(2).all(|w| w[1] == w[0] + 1),
                false => places.iter().all(|at| at % unit == 0),
            }
        })
    }
}

impl Body {
    fn of(kernel: &Kernel, body: &[Stmt]) -> Option<Body> {
        let ty = |v: ValId| kernel.vals.get(v)?.ty.num();
        let read = |v: ValId| {
            body.iter().find_map(|s| match s {
                Stmt::Read { dst, buf, idx } if *dst == v => Some((*buf, idx.clone())),
                _ => None,
            })
        };
        let made = |v: ValId| {
            body.iter().find_map(|s| match s {
                Stmt::Let { dst, op, args } if *dst == v => Some((*op, args.clone())),
                _ => None,
            })
        };
        let of_f32 = |v: ValId, rounding| {
            let (buf, idx) = read(v).filter(|_| ty(v) == Some(DType::F32))?;
            Some(Given { buf, idx, of: Operand::TF32, rounding })
        };
        // An operand of the product, converted to the type of the sum.
        let operand = |v: ValId| {
            let (op, args) = made(v)?;
            let [Opnd::Val(from)] = args[..] else { return None };
            // An f32 whose last bits are cut off, as the matrix unit does.
            if let (ScalarOp::Bitcast { to: DType::F32 }, Some((ScalarOp::And, args))) = (op, made(from)) {
                let [Opnd::Val(bits), Opnd::Const { bits: TF32, .. }] = args[..] else { return None };
                let Some((ScalarOp::Bitcast { .. }, args)) = made(bits) else { return None };
                let [Opnd::Val(from)] = args[..] else { return None };
                return of_f32(from, None);
            }
            // f32 that are rounded to tf32.
            if let (ScalarOp::FToF { to: DType::F32, .. }, Some((op @ ScalarOp::FToF { to: DType::TF32, .. }, args))) =
                (op, made(from))
            {
                let [Opnd::Val(from)] = args[..] else { return None };
                return of_f32(from, Some(op));
            }
            let of = match (op, ty(from)?) {
                (ScalarOp::FToF { to: DType::F32, .. }, DType::F16) => Operand::F16,
                (ScalarOp::FToF { to: DType::F32, .. }, DType::BF16) => Operand::BF16,
                (ScalarOp::FToF { to: DType::F32, .. }, DType::TF32) => Operand::TF32,
                (ScalarOp::FToF { to: DType::F32, .. }, DType::F8E4M3FN) => Operand::E4M3,
                (ScalarOp::FToF { to: DType::F32, .. }, DType::F8E5M2) => Operand::E5M2,
                (ScalarOp::ExtI { to: DType::I32, sign: Signedness::Signed }, DType::I8) => Operand::S8,
                (ScalarOp::ExtI { to: DType::I32, sign: Signedness::Unsigned }, DType::I8) => Operand::U8,
                _ => return None,
            };
            read(from).map(|(buf, idx)| Given { buf, idx, of, rounding: None })
        };
        let (last, rest) = body.split_last()?;
        let Stmt::Write { buf, idx, value: Opnd::Val(new) } = last else { return None };
        if rest.iter().any(|s| !matches!(s, Stmt::Read { .. } | Stmt::Let { .. })) {
            return None;
        }
        let (op, args) = made(*new)?;
        let (product, old) = match (op, &args[..]) {
            (ScalarOp::Fma { .. }, [x, y, z]) => (vec![*x, *y], *z),
            (ScalarOp::AddI, [Opnd::Val(p), z]) if made(*p).is_some_and(|(op, _)| op == ScalarOp::MulI) => {
                (made(*p)?.1, *z)
            }
            (ScalarOp::AddI, [z, Opnd::Val(p)]) if made(*p).is_some_and(|(op, _)| op == ScalarOp::MulI) => {
                (made(*p)?.1, *z)
            }
            _ => return None,
        };
        let ([Opnd::Val(x), Opnd::Val(y)], Opnd::Val(old)) = (&product[..], old) else { return None };
        if read(old)? != (*buf, idx.clone()) || walk::refs(rest).bufs_written.contains(buf) {
            return None;
        }
        Some(Body { a: operand(*x)?, b: operand(*y)?, acc: (*buf, idx.clone()) })
    }
}
