//! Matrix operations of the lanes of a warp: loading fragments from rows of shared memory, and multiplying fragments.
//!
//! In: the lanes' registers, and shared memory. Out: registers. Sums are those of the evaluator: terms are added one after
//! the other, each with one rounding.

use super::block::{Block, Machine};
use super::code::{Access, Inst};
use super::places::Stores;
use super::step::At;
use super::watch::{Watch, What};
use crate::base::launch::Trap;
use crate::kernel::ir::{Operand, Transposed};
use crate::loops::matrix::row_of_bytes;
use crate::num::eval::apply;
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp};

/// Lanes that give the rows of one matrix.
const ROWS: usize = 8;
/// Terms of bytes that four matrices have.
const TERMS: usize = 32;

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// Runs a matrix instruction for a group of lanes whose warp has met there.
    pub(super) fn matrices(&mut self, block: &mut Block<W, V::Local>, at: At, inst: &Inst) -> Result<(), Trap> {
        match inst {
            Inst::LoadMatrix { dst, access, words, transposed } => {
                self.load_matrix(block, at, *dst, access, *words as usize, *transposed)
            }
            Inst::Mma { acc, apart, a, b, of } => self.multiply(block, at, (acc, *apart), [*a, *b], *of),
            _ => Ok(()),
        }
    }

    fn load_matrix(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        dst: u32,
        access: &Access,
        words: usize,
        transposed: Transposed,
    ) -> Result<(), Trap> {
        // The places of the other lanes are ignored.
        let all = at.lanes;
        at.lanes &= (1u64 << (words * ROWS).min(W)).wrapping_sub(1) as u32;
        let places = self.places(block, &mut at, access, What::Read)?;
        let (size, mut rows) = (places.elem.bytes() as usize, [[0u8; 16]; W]);
        let Block { warps, scratch, shared, .. } = &mut *block;
        let stores = Stores { memory: &mut *self.memory, scratch, shared, regs: &mut warps[at.warp].regs };
        for l in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            for e in 0..access.lanes {
                let bits = stores.read(&places, l, e).unwrap_or(0).to_le_bytes();
                let from = e as usize * size;
                if let Some(to) = rows[l].get_mut(from..from + size) {
                    to.copy_from_slice(&bits[..size]);
                }
            }
        }
        let row = |number: usize| rows.get(number).copied().unwrap_or([0; 16]);
        let mut terms = [[0; 16]; TERMS];
        (0..TERMS).for_each(|l| terms[row_of_bytes(l)] = row(l));
        for word in 0..words {
            let bytes = |l: usize, half: usize, line: usize| {
                std::array::from_fn(|b| terms[half * TERMS / 2 + l % 4 * 4 + b][l / 4 * 2 + line])
            };
            let of = |l: usize| match transposed {
                Transposed::No => {
                    let row = row(word * ROWS + l / 4);
                    std::array::from_fn(|b| row[l % 4 * 4 + b])
                }
                Transposed::Yes => std::array::from_fn(|b| row(word * ROWS + l % 4 * 2 + b / 2)[l / 4 * 2 + b % 2]),
                Transposed::Left => bytes(l, word / 2, word % 2),
                Transposed::Right => bytes(l, word % 2, word / 2),
            };
            let to = &mut stores.regs[dst as usize + word];
            (0..W.min(32)).filter(|l| all >> l & 1 == 1).for_each(|l| to[l] = u32::from_le_bytes(of(l)).into());
        }
        self.touched(block, at, (&places, access), What::Read, 0);
        Ok(())
    }

    fn multiply(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        (acc, apart): (&[Access; 2], u32),
        [a, b]: [u32; 2],
        of: [Operand; 2],
    ) -> Result<(), Trap> {
        let mut places = vec![];
        let mut on = at.lanes;
        for access in acc {
            let mut at = at;
            places.push(self.places(block, &mut at, access, What::Update)?);
            on &= at.lanes;
        }
        let Block { warps, scratch, shared, .. } = &mut *block;
        let mut stores = Stores { memory: &mut *self.memory, scratch, shared, regs: &mut warps[at.warp].regs };
        let terms = of[0].terms() as usize;
        let words =
            |first: u32, n: usize| -> Vec<[u64; W]> { stores.regs[first as usize..first as usize + n].to_vec() };
        let (left, right) = (Fragment::of(&words(a, 4), of[0]), Fragment::of(&words(b, 2), of[1]));
        for l in (0..W.min(32)).filter(|l| on >> l & 1 == 1) {
            for (half, places) in places.iter().enumerate() {
                let row: Vec<Term> = (0..terms).map(|k| left.at(half + 2 * (2 * k / terms), l / 4, k)).collect();
                for element in 0..2u32 {
                    let column = l % 4 * 2 + element as usize;
                    let mut sum = stores.read(places, l, element * apart).unwrap_or(0);
                    for (k, x) in row.iter().enumerate() {
                        sum = x.times(right.at(2 * k / terms, column, k), sum);
                    }
                    let _ = stores.write(places, l, element * apart, sum);
                }
            }
        }
        Ok(())
    }
}

/// An element of a fragment.
#[derive(Clone, Copy)]
pub(super) enum Term {
    Float(f32),
    Integer(i32),
}

impl Term {
    /// The sum's bits with the product added.
    pub(super) fn times(self, other: Term, sum: u64) -> u64 {
        match (self, other) {
            (Term::Integer(x), Term::Integer(y)) => u64::from((sum as u32).wrapping_add(x.wrapping_mul(y) as u32)),
            (Term::Float(x), Term::Float(y)) => {
                let (product, c) = (x * y, f32::from_bits(sum as u32));
                // Fractions of 11 bits at most: the product is exact where it is a normal number.
                let new = product + c;
                if new.is_finite() && (product.is_normal() && product.abs() > 1e-30 || x == 0.0 || y == 0.0) {
                    return u64::from(new.to_bits());
                }
                let fma = ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false };
                apply(fma, DType::F32, &[x.to_bits().into(), y.to_bits().into(), sum])
            }
            _ => sum,
        }
    }
}

/// The words of a fragment, by word and lane, and what is in them.
struct Fragment {
    elements: Vec<Vec<Term>>,
    of: Operand,
}

impl Fragment {
    fn of<const W: usize>(words: &[[u64; W]], of: Operand) -> Fragment {
        let in_word = |word: u64| (0..4 / of.bytes()).map(move |e| term(word >> (e * of.bytes() * 8), of));
        Fragment { elements: words.iter().map(|lanes| lanes.iter().flat_map(|w| in_word(*w)).collect()).collect(), of }
    }

    /// Element `k` of a row or a column of eight, in the word that holds its half.
    fn at(&self, word: usize, line: usize, k: usize) -> Term {
        let half = 16 / self.of.bytes() as usize;
        self.elements.get(word).and_then(|all| all.get(line * half + k % half)).copied().unwrap_or(Term::Integer(0))
    }
}

pub(super) fn term(bits: u64, of: Operand) -> Term {
    let float = |dtype: DType| {
        let to = ScalarOp::FToF { to: DType::F32, rounding: Rounding::NearestEven };
        Term::Float(f32::from_bits(apply(to, dtype, &[bits & dtype.mask()]) as u32))
    };
    match of {
        Operand::F16 => float(DType::F16),
        Operand::BF16 => float(DType::BF16),
        // Only the first 19 bits of an f32 count.
        Operand::TF32 => Term::Float(f32::from_bits(bits as u32 & !0x1fff)),
        Operand::E4M3 => float(DType::F8E4M3FN),
        Operand::E5M2 => float(DType::F8E5M2),
        Operand::S8 => Term::Integer((bits as i8).into()),
        Operand::U8 => Term::Integer((bits as u8).into()),
    }
}
