//! The layout in shared memory of the operands of products of warpgroups.
//!
//! In: a product on the matrix unit, whose threads are in groups of 128. Out: for each operand the start of its panel
//! and the layout of its rows, or the reason why a warpgroup cannot read it.
//!
//! ```text
//! a_s[r*8 + (t//32*16 + t%32//4), k]   f16[128, 64] swizzle(128)   -->   a_s[t//128*64, step*16], strides 0 and 1024
//! b_s[c//64, k, c%64]                  f16[2, 64, 64] swizzle(128) -->   b_s[0, step*16, 0], transposed, strides 8192 and 1024
//! ```
//! A panel's rows are as wide as its swizzle. Strides are those of `kernel::ir::Panel`.

use super::ir::*;
use super::matrix::{Product, Side};

/// Warps of a warpgroup, and its threads.
pub const WARPS: u64 = 4;
pub const GROUP: u64 = 128;
/// Rows of its product, with sums in registers and with sums in tensor memory.
pub const ROWS: u64 = 64;
pub const TALL: u64 = 128;
/// The most columns of an instruction's product.
pub const COLS: u64 = 256;

/// The layout of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lies {
    pub transposed: bool,
    /// Bytes of a row.
    pub row: u64,
    pub lead: u64,
    pub stride: u64,
}

impl Lies {
    /// The offset in bytes of an element of `bytes` bytes from the panel's first element, before pieces are exchanged.
    pub fn byte(&self, line: u64, term: u64, bytes: u64) -> u64 {
        let Lies { transposed, row, lead, stride } = *self;
        let in_row = (row / bytes.max(1)).max(1);
        match transposed {
            false => line / 8 * stride + line % 8 * row + term * bytes,
            true => line / in_row * lead + line % in_row * bytes + term / 8 * stride + term % 8 * row,
        }
    }
}

/// How a warpgroup gets an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Panel(Lies),
    /// As words in the registers of its threads: a left operand, as `mma` gets it.
    Words,
}

type Why = &'static str;

impl Product {
    /// How groups of four warps each get both operands, where a group has `rows` rows: [`ROWS`] or [`TALL`].
    ///
    /// # Errors
    /// Why warpgroups do not compute the product, in a few words.
    pub fn lies(&self, kernel: &Kernel, threads: u64, rows: u64) -> Result<[How; 2], Why> {
        if self.a.of != self.b.of {
            return Err("warpgroups multiply operands of one type");
        }
        if threads == 0 || !threads.is_multiple_of(GROUP) {
            return Err("its threads do not form whole warpgroups");
        }
        let cols = self.cols * 4;
        let whole = cols <= COLS && (cols.is_multiple_of(16) || cols == 8 && rows == ROWS);
        if !whole || self.rows * 8 * WARPS != rows {
            return Err(match rows {
                ROWS => "a warpgroup has not 64 rows and at most 256 columns of it",
                _ => "a warpgroup has not 128 rows and a multiple of 16 columns up to 256 of it",
            });
        }
        // The warps of a group have the same columns.
        let at = |group: u64, warp: u64, line: u64| {
            let thread = group * GROUP + warp * 32 + line % 8 / 2;
            self.element(kernel, &self.b, (thread, line / 8 * 2 + line % 2, 0))
        };
        let same = |group: u64, line: u64| (1..4).all(|warp| at(group, warp, line) == at(group, 0, line));
        if !(0..threads / GROUP).all(|group| (0..cols).all(|line| same(group, line))) {
            return Err("the warps of a group have different columns of it");
        }
        let right = self.side(kernel, threads, &self.b, cols)?;
        let left = match self.side(kernel, threads, &self.a, rows) {
            Ok(lies) => How::Panel(lies),
            Err(why) if rows == TALL => return Err(why),
            // A lane has other rows than its sums' where bytes are moved in pairs.
            Err(why) if self.a.by_bytes() => return Err(why),
            Err(_) => How::Words,
        };
        Ok([left, How::Panel(right)])
    }

    /// How many neighbouring groups one instruction can multiply for: they have the same rows, and their columns lie one behind
    /// the other in one panel.
    pub fn joined(&self, kernel: &Kernel, threads: u64, right: Lies) -> u64 {
        let (groups, cols, bytes) = (threads / GROUP, self.cols * 4, u64::from(self.b.of.bytes()));
        let at = |side: &Side, group: u64, line: u64| self.byte(kernel, side, (group, line, 0));
        let same_rows = |group: u64| at(&self.a, group, 0) == at(&self.a, 0, 0);
        let follows = |group: u64, line: u64| {
            at(&self.b, group, line) - at(&self.b, 0, 0) == right.byte(group * cols + line, 0, bytes) as i64
        };
        let alike = (1..groups).all(|group| same_rows(group) && (0..cols).all(|line| follows(group, line)));
        // The layout of fewer lines than a row has does not say where others lie.
        let one_row = right.transposed && right.lead == 0;
        if groups * cols <= COLS && alike && !one_row { groups } else { 1 }
    }

    /// The subscripts of the first element of a panel: of the thread's group, at a step of the sum.
    pub fn first(&self, side: &Side, step: &Ix) -> Vec<Ix> {
        let [rows, cols, terms] = self.axes;
        let group = Ix::Const(GROUP as i64);
        let of = |axis: AxisId| match axis {
            a if a == self.thread => Some(Ix::mul(Ix::floor_div(Ix::Axis(a), group.clone()), group.clone())),
            a if a == rows || a == cols => Some(Ix::Const(0)),
            a if a == terms => Some(Ix::mul(step.clone(), Ix::Const(side.of.terms().into()))),
            _ => None,
        };
        side.idx.iter().map(|ix| ix.subst_axes(&mut |axis| of(axis))).collect()
    }

    fn side(&self, kernel: &Kernel, threads: u64, side: &Side, lines: u64) -> Result<Lies, Why> {
        let b = kernel.bufs.get(side.buf).ok_or("an operand is not in shared memory")?;
        if side.transposed && side.of.bytes() != 2 {
            return Err("warpgroups read only operands of two bytes across the sum");
        }
        if side.registers || side.rounding.is_some() {
            return Err("warpgroups read operands as they lie in shared memory");
        }
        let (bytes, row) = (u64::from(side.of.bytes()), u64::from(b.swizzle));
        if row == 0 {
            return Err("an operand is not brought to shared memory by TMA with a swizzle");
        }
        let at = |group: u64, line: u64, term: u64| self.byte(kernel, side, (group, line, term));
        let not_alike = "an operand does not lie as a warpgroup reads it";
        let in_row = row / bytes;
        let apart = |line: u64, term: u64| u64::try_from(at(0, line, term) - at(0, 0, 0)).map_err(|_| not_alike);
        let lies = match side.transposed {
            false => Lies { transposed: false, row, lead: 0, stride: apart(8, 0)? },
            true => {
                let lead = if lines > in_row { apart(in_row, 0)? } else { 0 };
                Lies { transposed: true, row, lead, stride: apart(0, 8)? }
            }
        };
        let steps = self.terms / u64::from(side.of.terms());
        let half = u64::from(side.of.terms() / 2);
        let some = [0, 1, half - 1, half, 2 * half - 1];
        let each = |group: u64, step: u64| {
            let from = step * u64::from(side.of.terms());
            let first = at(group, 0, from);
            // Rows are counted from a multiple of eight.
            let begins = first.rem_euclid(8 * row as i64) < row as i64;
            let like =
                |line: u64, term: u64| at(group, line, from + term) - first == lies.byte(line, term, bytes) as i64;
            begins && (0..lines).all(|line| some.into_iter().all(|term| like(line, term)))
        };
        let fits = |bytes: u64| bytes < 1 << 18 && bytes.is_multiple_of(16);
        let all = (0..threads / GROUP).all(|group| (0..steps).all(|step| each(group, step)));
        if all && fits(lies.lead) && fits(lies.stride) { Ok(lies) } else { Err(not_alike) }
    }

    /// The byte of an operand's element, given by a group's line and a term of the sum; lines are rows of the left
    /// operand.
    fn byte(&self, kernel: &Kernel, side: &Side, (group, line, term): (u64, u64, u64)) -> i64 {
        let is_a = std::ptr::eq(side, &raw const self.a);
        let of_warp = 8 * self.rows;
        let (thread, slot) = match is_a {
            true => (group * GROUP + line / of_warp * 32 + line % 8 * 4, line % of_warp / 8),
            false => (group * GROUP + line % 8 / 2, line / 8 * 2 + line % 2),
        };
        self.element(kernel, side, (thread, slot, term)) * i64::from(side.of.bytes())
    }

    /// The number of an operand's element in its buffer, given by a thread, its row or column and a term of the sum.
    fn element(&self, kernel: &Kernel, side: &Side, (thread, slot, term): (u64, u64, u64)) -> i64 {
        let [rows, cols, terms] = self.axes;
        let own = if std::ptr::eq(side, &raw const self.a) { rows } else { cols };
        let shape = kernel.bufs.get(side.buf).map_or(&[][..], |b| &b.shape);
        Ix::row_major(&side.idx, shape).eval(&|leaf| match leaf {
            Ix::Axis(a) if *a == self.thread => thread as i64,
            Ix::Axis(a) if *a == own => slot as i64,
            Ix::Axis(a) if *a == terms => term as i64,
            Ix::Const(n) => *n,
            _ => 0,
        })
    }
}
