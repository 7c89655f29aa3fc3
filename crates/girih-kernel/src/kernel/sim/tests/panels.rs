//! Panels of operands in shared memory: how the tests of products fill them, and with which numbers.

use crate::num::DType;
use crate::num::convert::from_f64;
use crate::num::op::Rounding;

/// A panel of `lines` lines in rows of `row` bytes; `of` is its type as the product's statement or number says it.
pub(super) struct Panel<T> {
    pub name: &'static str,
    pub of: T,
    pub elem: DType,
    pub row: u64,
    pub trans: bool,
    pub lines: u64,
}

impl<T> Panel<T> {
    pub fn bytes(&self) -> u64 {
        self.elem.bytes()
    }

    /// Terms of the sum: the number of elements in a row.
    pub fn terms(&self) -> u64 {
        self.row / self.bytes()
    }

    pub fn len(&self) -> u64 {
        self.lines * self.terms()
    }

    /// The line and the term of an element, in the order of shared memory before pieces are exchanged.
    fn place(&self, e: u64) -> (u64, u64) {
        let in_row = self.terms();
        match self.trans {
            false => (e / in_row, e % in_row),
            true => (e / (in_row * in_row) * in_row + e % in_row, e / in_row % in_row),
        }
    }

    /// Statements by which 128 threads bring the panel from memory, with its pieces exchanged.
    pub fn filled(&self, from: &str) -> String {
        let Panel { name, row, elem, .. } = self;
        let bytes = self.bytes();
        format!(
            "for e_{name} in 0..{} step 1 {{\nx_{name}: {elem} = load {from} as {elem}[e_{name}*128 + tx]\n\
             p_{name}: i32 = index e_{name}*128 + tx\nq_{name}: i32 = index p_{name}//{}%{}*{}\n\
             at_{name}: i32 = xor p_{name}, q_{name}\nstore {name}[at_{name}] = x_{name}\n}}\n",
            self.len() / 128,
            128 / bytes,
            row / 16,
            16 / bytes,
        )
    }

    /// The words in memory of a panel whose elements are a function of their line and term.
    pub fn values(&self, of: impl Fn(u64, u64) -> i64) -> Vec<i32> {
        let one = |e: u64| {
            let (line, term) = self.place(e);
            let bits = match self.elem {
                DType::I8 => of(line, term) as u64,
                elem => from_f64(elem, of(line, term) as f64, Rounding::NearestEven),
            };
            bits.to_le_bytes()[..self.bytes() as usize].to_vec()
        };
        let bytes: Vec<u8> = (0..self.len()).flat_map(one).collect();
        bytes.chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect()
    }
}

/// The elements of left operands, by their line and term.
pub(super) fn left(m: u64, t: u64) -> i64 {
    ((m * 19 + t) * 37 % 23) as i64 - 11
}

/// The elements of right operands.
pub(super) fn right(n: u64, t: u64) -> i64 {
    ((n * 7 + t * 3 + 5) * 37 % 23) as i64 - 11
}
