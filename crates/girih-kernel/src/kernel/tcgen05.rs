//! The numbers that tell `tcgen05.mma` of its operands.
//!
//! ```text
//! instruction   4-5 sums (f32 1, s32 2)   7-9 left type   10-12 right type   15, 16 transposed   17-22 columns/8   24-28 rows/16
//! operand       0-13 address/16   16-29 lead/16   32-45 stride/16   46-48 always 1   61-63 row of 128, 64, 32 bytes: 2, 4, 6
//! ```
//! In: the types and extents of a product, and how its operands lie. Out: the numbers that Kernel IR and the emitted source have. The
//! simulator and the verifier read them back, so a wrong bit is a wrong product or a refusal. All other bits are zero.
//!
//! Source: PTX ISA 9, sections "Instruction descriptor" and "Shared memory descriptor" of `tcgen05`.

use super::ir::Operand;

/// The kind of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MmaKind {
    F16,
    TF32,
    F8,
    I8,
}

impl MmaKind {
    pub const WORDS: [(&'static str, MmaKind); 4] =
        [("f16", MmaKind::F16), ("tf32", MmaKind::TF32), ("f8f6f4", MmaKind::F8), ("i8", MmaKind::I8)];

    pub fn of(operand: Operand) -> MmaKind {
        match operand {
            Operand::F16 | Operand::BF16 => MmaKind::F16,
            Operand::TF32 => MmaKind::TF32,
            Operand::E4M3 | Operand::E5M2 => MmaKind::F8,
            Operand::S8 | Operand::U8 => MmaKind::I8,
        }
    }

    /// PTX's name for the kind.
    pub fn word(self) -> &'static str {
        MmaKind::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            MmaKind::F16 => 2,
            MmaKind::TF32 => 4,
            MmaKind::F8 | MmaKind::I8 => 1,
        }
    }

    /// The types of operands, each with its number.
    fn types(self) -> &'static [(Operand, u32)] {
        match self {
            MmaKind::F16 => &[(Operand::F16, 0), (Operand::BF16, 1)],
            MmaKind::TF32 => &[(Operand::TF32, 2)],
            MmaKind::F8 => &[(Operand::E4M3, 0), (Operand::E5M2, 1)],
            MmaKind::I8 => &[(Operand::U8, 0), (Operand::S8, 1)],
        }
    }

    /// The number of the type of sums.
    fn sums(self) -> u32 {
        if self == MmaKind::I8 { 2 } else { 1 }
    }
}

/// The types, layouts and extents that an instruction multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// The types of both operands.
    pub of: [Operand; 2],
    /// Their lines are contiguous; otherwise their terms are.
    pub transposed: [bool; 2],
    pub rows: u32,
    pub cols: u32,
}

/// Rows of an instruction's product: one in each lane of tensor memory.
pub const LANES: u32 = 128;
/// Columns of tensor memory of a multiprocessor, and the fewest that a block allocates.
pub const COLUMNS: u32 = 512;
pub const LEAST_COLUMNS: u32 = 32;
/// Lanes of tensor memory that a warp reads and writes: warp `w` of a block those from `w%4*32` on.
pub const LANES_OF_WARP: u32 = 32;

/// Bits `first` to `last` of a number.
fn bits(of: u64, first: u32, last: u32) -> u64 {
    of >> first & ((1 << (last - first + 1)) - 1)
}

impl Instruction {
    pub fn kind(&self) -> MmaKind {
        MmaKind::of(self.of[0])
    }

    pub fn encode(&self) -> u32 {
        let kind = self.kind();
        let number = |of: Operand| kind.types().iter().find(|(ty, _)| *ty == of).map_or(0, |(_, number)| *number);
        let [left, right] = self.of.map(number);
        let [across_left, across_right] = self.transposed.map(u32::from);
        kind.sums() << 4
            | left << 7
            | right << 10
            | across_left << 15
            | across_right << 16
            | (self.cols / 8) << 17
            | (self.rows / 16) << 24
    }

    /// The instruction that a descriptor describes.
    ///
    /// # Errors
    /// The first field whose value is not supported.
    pub fn decode(kind: MmaKind, number: u32) -> Result<Instruction, String> {
        let of = |first, last| bits(number.into(), first, last) as u32;
        for (first, last, what) in [
            (0, 3, "sparse or saturated"),
            (6, 6, "a reserved bit"),
            (13, 14, "negated"),
            (23, 23, "a reserved bit"),
            (29, 31, "shifted"),
        ] {
            if of(first, last) != 0 {
                return Err(format!("bits {first} to {last} of its instruction are not 0 ({what})"));
            }
        }
        if of(4, 5) != kind.sums() {
            return Err(format!("sums of type {} are not those of `{}`", of(4, 5), kind.word()));
        }
        let ty = |number: u32| {
            let found = kind.types().iter().find(|(_, own)| *own == number).map(|(ty, _)| *ty);
            found.ok_or_else(|| format!("`{}` has no operands of type {number}", kind.word()))
        };
        let (rows, cols) = (of(24, 28) * 16, of(17, 22) * 8);
        if rows != LANES || !(16..=256).contains(&cols) || !cols.is_multiple_of(16) {
            return Err(format!(
                "a product has {LANES} rows and a multiple of 16 columns up to 256, not {rows} x {cols}"
            ));
        }
        let transposed = [of(15, 15) == 1, of(16, 16) == 1];
        Ok(Instruction { of: [ty(of(7, 9))?, ty(of(10, 12))?], transposed, rows, cols })
    }
}

/// How an operand lies in shared memory: in rows of `swizzle` bytes whose pieces of 16 bytes are exchanged. `lead` and `stride`
/// are those of [`super::ir::Panel`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Matrix {
    pub swizzle: u32,
    pub lead: u32,
    pub stride: u32,
}

/// The bytes of a row, each with its number.
const ROWS: [(u32, u64); 3] = [(128, 2), (64, 4), (32, 6)];

impl Matrix {
    /// The number without the address.
    pub fn encode(&self) -> u64 {
        let row = ROWS.iter().find(|(bytes, _)| *bytes == self.swizzle).map_or(0, |(_, number)| *number);
        u64::from(self.lead / 16) << 16 | u64::from(self.stride / 16) << 32 | 1 << 46 | row << 61
    }

    /// The layout of a number.
    ///
    /// # Errors
    /// What the number says that no operand here has.
    pub fn decode(number: u64) -> Result<Matrix, String> {
        let of = |first, last| bits(number, first, last);
        if of(46, 48) != 1 {
            return Err(format!("bits 46 to 48 of an operand are {}, not 1", of(46, 48)));
        }
        for (first, last) in [(0, 15), (30, 31), (49, 60)] {
            if of(first, last) != 0 {
                return Err(format!("bits {first} to {last} of an operand are not 0"));
            }
        }
        let row = ROWS.iter().find(|(_, number)| *number == of(61, 63)).map(|(bytes, _)| *bytes);
        let swizzle = row.ok_or_else(|| format!("an operand has a swizzle, and none is {}", of(61, 63)))?;
        Ok(Matrix { swizzle, lead: of(16, 29) as u32 * 16, stride: of(32, 45) as u32 * 16 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are worked out from the tables of the PTX ISA.
    #[test]
    fn numbers_are_those_of_the_tables() {
        for (of, transposed, cols, number) in [
            ([Operand::F16; 2], [false, false], 256, 0x0840_0010),
            ([Operand::BF16; 2], [false, true], 128, 0x0821_0490),
            ([Operand::F16; 2], [true, false], 16, 0x0804_8010),
            ([Operand::TF32; 2], [false, false], 64, 0x0810_0910),
            ([Operand::S8; 2], [false, false], 128, 0x0820_04a0),
            ([Operand::E5M2, Operand::E4M3], [false, false], 128, 0x0820_0090),
        ] {
            let made = Instruction { of, transposed, rows: 128, cols };
            assert_eq!(made.encode(), number, "{made:?}");
            assert_eq!(Instruction::decode(made.kind(), number), Ok(made));
        }
        for (matrix, number) in [
            (Matrix { swizzle: 128, lead: 0, stride: 1024 }, 0x4000_4040_0000_0000),
            (Matrix { swizzle: 64, lead: 8192, stride: 512 }, 0x8000_4020_0200_0000),
            (Matrix { swizzle: 32, lead: 16, stride: 256 }, 0xc000_4010_0001_0000),
        ] {
            assert_eq!(matrix.encode(), number, "{matrix:?}");
            assert_eq!(Matrix::decode(number), Ok(matrix));
        }
    }

    #[test]
    fn a_changed_bit_is_another_number_or_none() {
        let made = Instruction { of: [Operand::F16; 2], transposed: [false, true], rows: 128, cols: 128 };
        for bit in 0..32 {
            assert_ne!(Instruction::decode(MmaKind::F16, made.encode() ^ 1 << bit), Ok(made), "{bit}");
        }
        let matrix = Matrix { swizzle: 128, lead: 8192, stride: 1024 };
        for bit in 0..64 {
            assert_ne!(Matrix::decode(matrix.encode() ^ 1 << bit), Ok(matrix), "{bit}");
        }
    }
}
