//! Products on the matrix unit, warp by warp.
//!
//! ```text
//! for r in 0..4: free matrix                 for k in 0..4 {
//!   for c in 0..8: free matrix                 for c in 0..2 {
//!     for k in 0..64: reduce matrix              b: i32x4 = ldmatrix b_s[..]          two products' columns
//!       x: f16 = a_s[<row>, k]          -->      store b_f[c*4] = b
//!       y: f16 = b_s[<column>, k]              }
//!       ...                                    for r in 0..2 {
//!       acc[t, r, c] = ...                       a: i32x4 = ldmatrix a_s[..]
//!                                                for c_2 in 0..4 {
//!                                                  y: i32x2 = load b_f[c_2*2]
//!                                                  mma f16 acc[r*16 + c_2*2], acc[r*16 + 8 + c_2*2] add a, y
//!                                            } } }
//! ```
//! Each element's terms are added in ascending order, as the loops have it.

use super::vector::{load, store};
use super::{Lower, Res, Storage};
use crate::index::{Facts, simplify};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::loops::matrix::{Product, Side};
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, ScalarOp};

/// Steps of the sum that are written out.
const MOST_STEPS: u64 = 8;

impl Lower<'_> {
    pub(super) fn product(&mut self, f: &l::For) -> Res<()> {
        let thread = self.thread().ok_or_else(|| self.unplaced(f, "only threads compute on the matrix unit"))?;
        let p = Product::of(self.src, (thread, self.active.into()), f).map_err(|why| self.unplaced(f, why))?;
        let Storage::Slot(acc) = self.storage(p.acc)? else {
            return Err(self.unplaced(f, "its sums are in no array"));
        };
        let (pairs, tiles, steps) = (p.rows / 2, p.cols / 2, p.terms / u64::from(p.a.of.terms()));
        let two = tiles.is_multiple_of(2) && !p.b.by_words();
        let (loads, words) = if two { (tiles / 2, 4) } else { (tiles, 2) };
        let mut facts = Facts::new();
        let extents = [(thread, u64::from(self.active)), (p.axes[0], pairs), (p.axes[1], loads), (p.axes[2], steps)];
        for (axis, n) in extents {
            facts.set_axis(axis, &l::Ix::Const(0), &l::Ix::Const(n as i64));
        }
        let [pair, tile, step] = p.axes.map(l::Ix::Axis);
        let not_alike = || "a product's rows do not follow from lanes".to_string();
        let left = p.left_reads(&pair, &step);
        let right: Option<Vec<_>> = match p.b.by_words() {
            true => (0..2).map(|word| p.right_word(&tile, &step, word)).collect(),
            false => p.right(&tile, &step, two).map(|idx| vec![idx]),
        };
        let (left, right) = (left.ok_or_else(not_alike)?, right.ok_or_else(not_alike)?);
        let in_array = p.a.by_words() || p.a.registers || p.a.rounding.is_some();
        let rows = in_array.then(|| self.words("a_f", 4));
        let columns = self.words(&format!("{}_f", self.buf(p.b.buf)?.name), tiles * 2);

        // Registers have no addresses.
        let unroll = if steps <= MOST_STEPS || p.a.registers { steps as u32 } else { 0 };
        self.times(p.axes[2], steps, unroll, |s, step| {
            s.times(p.axes[1], loads, loads as u32, |s, at| {
                let index = k::Ix::mul(at, k::Ix::Const(words.into()));
                if p.b.by_words() {
                    s.words_of(&p.b, &right, &facts, columns, &index)?;
                } else {
                    let b = s.fragment("b", &p.b, &right[0], &facts, (words, k::Transposed::Right))?;
                    s.push(store(k::Address::Slot { buf: columns, index: index.clone() }, k::Opnd::Val(b)));
                }
                s.round_words(&p.b, columns, &index, words);
                Ok(())
            })?;
            s.times(p.axes[0], pairs, pairs as u32, |s, row| {
                let a = match rows {
                    Some(rows) => {
                        let zero = k::Ix::Const(0);
                        s.left_words(&p, &left, &facts, [&row, &step], (rows, &zero))?;
                        let a = s.value("a", k::Ty::num(DType::I32, 4));
                        s.push(load(a, k::Address::Slot { buf: rows, index: zero }));
                        a
                    }
                    None => s.fragment("a", &p.a, &left[0], &facts, (4, k::Transposed::Left))?,
                };
                s.times(p.axes[1], tiles, tiles as u32, |s, col| {
                    let b = s.value("b_t", k::Ty::num(DType::I32, 2));
                    let words = k::Ix::mul(col.clone(), k::Ix::Const(2));
                    s.push(load(b, k::Address::Slot { buf: columns, index: words.clone() }));
                    // In each four columns side by side, one product has the even ones and the next one the odd ones.
                    let (first, apart) = match p.b.by_bytes() {
                        true => {
                            let two = || k::Ix::Const(2);
                            let group = k::Ix::mul(k::Ix::floor_div(col.clone(), two()), k::Ix::Const(4));
                            (k::Ix::add(group, k::Ix::modulo(col, two())), 2)
                        }
                        false => (words, 1),
                    };
                    let sums = |half: u64| {
                        let row = k::Ix::mul(row.clone(), k::Ix::Const(2 * p.cols as i64));
                        let half = k::Ix::Const((half * p.cols) as i64);
                        k::Address::Slot { buf: acc, index: k::Ix::add(k::Ix::add(row, half), first.clone()) }
                    };
                    s.push(k::Stmt::Mma { acc: [sums(0), sums(1)], apart, a, b, of: [p.a.of, p.b.of] });
                    Ok(())
                })
            })
        })
    }

    /// The words of a left operand, put into an array from an element on: those of a pair of rows, at a step of the sum. `left` is
    /// what lanes read of it ([`Product::left_reads`]).
    pub(super) fn left_words(
        &mut self,
        p: &Product,
        left: &[Vec<l::Ix>],
        facts: &Facts,
        [pair, step]: [&k::Ix; 2],
        (to, first): (k::BufId, &k::Ix),
    ) -> Res<()> {
        match p.a.by_words() {
            _ if p.a.registers => self.words_in_registers(p, [pair, step], (to, first))?,
            true => self.words_of(&p.a, left, facts, to, first)?,
            false => {
                let idx = left.first().ok_or("a product's rows do not follow from lanes")?;
                let a = self.fragment("a", &p.a, idx, facts, (4, k::Transposed::Left))?;
                self.push(store(k::Address::Slot { buf: to, index: first.clone() }, k::Opnd::Val(a)));
            }
        }
        self.round_words(&p.a, to, first, 4);
        Ok(())
    }

    pub(super) fn shared_operand(&self, side: &Side) -> Res<k::BufId> {
        match self.storage(side.buf)? {
            Storage::Slot(slot) if self.out.slots[slot].space == k::Space::Shared => Ok(slot),
            _ => Err("an operand of a product is not in shared memory".to_string()),
        }
    }

    /// The lanes' words of an operand, and how they are transposed if it holds bytes across the sum.
    fn fragment(
        &mut self,
        name: &str,
        side: &Side,
        idx: &[l::Ix],
        facts: &Facts,
        (words, bytes): (u32, k::Transposed),
    ) -> Res<k::ValId> {
        let slot = self.shared_operand(side)?;
        let linear = simplify(&self.linear(side.buf, idx)?, facts);
        let place = self.place_in(side.buf, slot, &linear)?;
        let dst = self.value(name, k::Ty::num(DType::I32, words));
        let transposed = match side.transposed {
            true if side.by_bytes() => bytes,
            true => k::Transposed::Yes,
            false => k::Transposed::No,
        };
        self.push(k::Stmt::LoadMatrix { dst, place, transposed });
        Ok(dst)
    }

    /// The lanes' words of an operand whose elements are words, loaded one by one into an array.
    fn words_of(&mut self, side: &Side, words: &[Vec<l::Ix>], facts: &Facts, to: k::BufId, first: &k::Ix) -> Res<()> {
        let slot = self.shared_operand(side)?;
        for (n, idx) in words.iter().enumerate() {
            let linear = simplify(&self.linear(side.buf, idx)?, facts);
            let place = self.place_in(side.buf, slot, &linear)?;
            let k::Elem::Num(dtype) = self.out.slots[slot].elem else {
                return Err("an operand is an address".to_string());
            };
            let x = self.value("x", k::Ty::num(dtype, 1));
            self.push(load(x, place));
            let bits = self.bits_of(x, dtype);
            let index = k::Ix::add(first.clone(), k::Ix::Const(n as i64));
            self.push(store(k::Address::Slot { buf: to, index }, k::Opnd::Val(bits)));
        }
        Ok(())
    }

    /// The four words of a left operand that the lanes have as sums, put into an array.
    fn words_in_registers(
        &mut self,
        p: &Product,
        [pair, step]: [&k::Ix; 2],
        (to, to_first): (k::BufId, &k::Ix),
    ) -> Res<()> {
        let Storage::Slot(from) = self.storage(p.a.buf)? else {
            return Err("an operand of a product is in no array".to_string());
        };
        let cols = p.terms as i64 / 4;
        let times = |ix: &k::Ix, n: i64| k::Ix::mul(ix.clone(), k::Ix::Const(n));
        let first = k::Ix::add(times(pair, 2 * cols), times(step, i64::from(p.a.of.terms() / 4)));
        let of = self.out.slots[from].elem;
        let k::Elem::Num(dtype) = of else { return Err("an operand of a product is an address".to_string()) };
        for word in 0..4 {
            let (below, slots) = p.a.slots_of_word(word);
            let mut bits = None;
            for (part, slot) in slots.into_iter().enumerate() {
                let index = k::Ix::add(first.clone(), k::Ix::Const(below as i64 * cols + slot as i64));
                let x = self.value("x", k::Ty { elem: of, lanes: 1 });
                self.push(load(x, k::Address::Slot { buf: from, index }));
                let own = self.bits_of(x, dtype);
                bits = Some(match bits {
                    None => own,
                    Some(low) => {
                        let by = k::Opnd::Const { dtype: DType::I32, bits: 16 * part as u64 };
                        let high = self.word("high", ScalarOp::Shl, vec![k::Opnd::Val(own), by]);
                        self.word("word", ScalarOp::Or, vec![k::Opnd::Val(low), k::Opnd::Val(high)])
                    }
                });
            }
            let value = k::Opnd::Val(bits.ok_or("a word of nothing")?);
            let index = k::Ix::add(to_first.clone(), k::Ix::Const(word as i64));
            self.push(store(k::Address::Slot { buf: to, index }, value));
        }
        Ok(())
    }

    /// Rounds some words of an array, if the operand is rounded on the way.
    fn round_words(&mut self, side: &Side, array: k::BufId, first: &k::Ix, count: u32) {
        let Some(op) = side.rounding else { return };
        for n in 0..count {
            let place = || k::Address::Slot { buf: array, index: k::Ix::add(first.clone(), k::Ix::Const(n.into())) };
            let word = self.value("w", k::Ty::num(DType::I32, 1));
            self.push(load(word, place()));
            let mut value = word;
            let steps = [
                (ScalarOp::Bitcast { to: DType::F32 }, DType::I32, DType::F32),
                (op, DType::F32, DType::TF32),
                (f32_of(DType::F32), DType::TF32, DType::F32),
                (ScalarOp::Bitcast { to: DType::I32 }, DType::F32, DType::I32),
            ];
            for (op, from, to) in steps {
                let dst = self.value("w", k::Ty::num(to, 1));
                self.push(k::Stmt::Let { dst, op, ty: k::Elem::Num(from), args: vec![k::Opnd::Val(value)] });
                value = dst;
            }
            self.push(store(place(), k::Opnd::Val(value)));
        }
    }

    /// The bits of a number of two or four bytes, as a word.
    fn bits_of(&mut self, x: k::ValId, dtype: DType) -> k::ValId {
        let (of, bits) = (k::Elem::Num(dtype), k::Opnd::Val(x));
        if dtype == DType::TF32 {
            let (op, dst) = (f32_of(DType::F32), self.value("x", k::Ty::num(DType::F32, 1)));
            self.push(k::Stmt::Let { dst, op, ty: of, args: vec![bits] });
            return self.bits_of(dst, DType::F32);
        }
        if dtype.bits() == 32 {
            let (op, dst) = (ScalarOp::Bitcast { to: DType::I32 }, self.value("bits", k::Ty::num(DType::I32, 1)));
            self.push(k::Stmt::Let { dst, op, ty: of, args: vec![bits] });
            return dst;
        }
        let (op, half) = (ScalarOp::Bitcast { to: DType::I16 }, self.value("half", k::Ty::num(DType::I16, 1)));
        self.push(k::Stmt::Let { dst: half, op, ty: of, args: vec![bits] });
        let op = ScalarOp::ExtI { to: DType::I32, sign: Signedness::Unsigned };
        let dst = self.value("bits", k::Ty::num(DType::I32, 1));
        self.push(k::Stmt::Let { dst, op, ty: k::Elem::Num(DType::I16), args: vec![k::Opnd::Val(half)] });
        dst
    }

    fn word(&mut self, name: &str, op: ScalarOp, args: Vec<k::Opnd>) -> k::ValId {
        let dst = self.value(name, k::Ty::num(DType::I32, 1));
        self.push(k::Stmt::Let { dst, op, ty: k::Elem::Num(DType::I32), args });
        dst
    }

    /// A loop that stands for an axis; none for a single iteration.
    pub(super) fn times(
        &mut self,
        axis: l::AxisId,
        n: u64,
        unroll: u32,
        body: impl FnOnce(&mut Self, k::Ix) -> Res<()>,
    ) -> Res<()> {
        if n == 1 {
            return self.at_axis(axis, k::Ix::Const(0), vec![], |s| body(s, k::Ix::Const(0)));
        }
        let own = self.axis_of(axis);
        let at = k::Ix::Axis(own);
        let body = self.at_axis(axis, at.clone(), vec![], |s| s.inner(|s| body(s, at)))?;
        let (lo, hi, step) = (k::Ix::Const(0), k::Ix::Const(n as i64), k::Ix::Const(1));
        self.push(k::Stmt::For { axis: own, lo, hi, step, unroll, body });
        Ok(())
    }

    /// An array of words for each thread, besides its buffers.
    pub(super) fn words(&mut self, name: &str, len: u64) -> k::BufId {
        let (name, elem) = (self.names.fresh(name), k::Elem::Num(DType::I32));
        let slot = k::Slot { name, space: k::Space::Scratch, elem, len, offset: self.out.scratch.next_multiple_of(16) };
        self.out.scratch = slot.offset + slot.bytes();
        self.new_slot(slot)
    }
}

fn f32_of(to: DType) -> ScalarOp {
    ScalarOp::FToF { to, rounding: Rounding::NearestEven }
}
