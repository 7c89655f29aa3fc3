//! How the warps of a block share a product on the matrix unit.
//!
//! ```text
//! 128 x 128 in f16, at most 256 threads   -->   4 x 2 warps, each with 32 x 64 elements: 4 x 16 for a thread
//! ```

use crate::loops::ir::*;
use crate::loops::matrix::{COLS, Operand, Product, ROWS};
use crate::loops::{panels, walk};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::contraction::{num_type, power_in};
use crate::tile::edit::const_trip;
use crate::tile::heuristics::matrix::{ENOUGH, MOST_REGISTERS, REGISTERS};
use crate::tile::heuristics::warp_specialize::MANY_SUMS;
use crate::tile::target::{Capability, Target};

/// The warps of a block along the rows and the columns of its product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Warps {
    pub down: u64,
    pub across: u64,
}

impl Warps {
    pub fn count(self) -> u64 {
        self.down * self.across
    }

    /// A thread's elements of the rows and of the columns.
    pub fn each(self, [m, n]: [u64; 2]) -> [u64; 2] {
        [m / (8 * self.down), n / (4 * self.across)]
    }

    /// The warps of whole warpgroups, which have 64 rows each and all columns; or, with sums in tensor memory, 128 rows and the
    /// columns that fit their registers in the end.
    pub fn of_groups([m, n]: [u64; 2], target: &Target) -> Option<Warps> {
        let (rows, most_threads) = (target.group_rows(), u64::from(target.axes.threads));
        let tall = rows == panels::TALL;
        let down = m / rows * panels::WARPS;
        let across = if tall { n.div_ceil(MANY_SUMS).next_power_of_two() } else { 1 };
        let narrow = if tall { 2 * COLS } else { COLS };
        let whole = m.is_multiple_of(rows) && down.is_power_of_two() && n.is_multiple_of(narrow * across);
        let held = !tall || m / rows * n <= target.tensor_columns();
        (whole && held && n <= panels::COLS && 32 * down * across <= most_threads).then_some(Warps { down, across })
    }

    /// The same warps as groups of four, whose warps have rows below each other.
    pub fn groups(self) -> Warps {
        Warps { down: self.down / panels::WARPS, across: self.across }
    }

    /// The arrangement of warps that reads least from shared memory, among those whose threads can hold their accumulators;
    /// `None` if the extents are not whole numbers of products. It has more than `threads` threads only if it must. Each warp
    /// has a multiple of `cols` columns, and `cols` is [`COLS`] or more.
    pub fn of([m, n]: [u64; 2], cols: u64, threads: u64, most_threads: u64) -> Option<Warps> {
        let powers = |most: u64| (0..6).map(|bits| 1u64 << bits).filter(move |w| *w <= most);
        let (most_down, most_across) = (power_in(m) / ROWS, power_in(n) / cols);
        let all = powers(most_down).flat_map(|down| powers(most_across).map(move |across| Warps { down, across }));
        let registers = |w: &Warps| w.each([m, n]).iter().product::<u64>();
        let fits = |w: &Warps| 32 * w.count() <= most_threads && registers(w) <= MOST_REGISTERS;
        let cost = |w: &Warps| {
            let many = (32 * w.count() > threads, registers(w) > REGISTERS, w.count() < ENOUGH);
            (many, w.across * m + w.down * n, w.count(), w.across)
        };
        all.filter(fits).min_by_key(cost)
    }
}

/// The type in which a product multiplies its operands: tf32 for f32, where the knob says so, and for numbers of fewer bits than
/// the matrix unit takes, the narrowest type that it takes.
pub fn multiplied(ctx: &Context, operand: DType) -> DType {
    let bytes = ctx.target.has(Capability::ByteFloats);
    match operand {
        _ if !ctx.knobs.tensor_core || !ctx.target.has(Capability::Products) => operand,
        DType::F32 if ctx.knobs.tf32 => DType::TF32,
        DType::I4 => DType::I8,
        DType::F4E2M1FN if bytes => DType::F8E4M3FN,
        DType::F4E2M1FN | DType::F8E4M3FN | DType::F8E5M2 if !bytes => DType::F16,
        _ => operand,
    }
}

/// The type in which the matrix unit takes a buffer as an operand of a product that is summed up in another buffer.
pub fn taken(kernel: &Kernel, ctx: &Context, buf: BufId, acc: BufId) -> Option<Operand> {
    operand(&ctx.target, multiplied(ctx, num_type(kernel, buf)?), num_type(kernel, acc)?)
}

/// The type in which the matrix unit multiplies these numbers with sums in `acc`; `None` if it cannot.
pub fn operand(target: &Target, operand: DType, acc: DType) -> Option<Operand> {
    let of = match (operand, acc) {
        (DType::F16, DType::F32) => Operand::F16,
        (DType::BF16, DType::F32) => Operand::BF16,
        (DType::TF32, DType::F32) => Operand::TF32,
        (DType::F8E4M3FN, DType::F32) => Operand::E4M3,
        (DType::F8E5M2, DType::F32) => Operand::E5M2,
        (DType::I8, DType::I32) => Operand::S8,
        _ => return None,
    };
    let unit = if of.is_byte_float() { Capability::ByteFloats } else { Capability::Products };
    target.has(unit).then_some(of)
}

/// Checks that the matrix unit has every product of a kernel.
///
/// # Errors
/// The reason why it lacks one.
pub fn check(kernel: &Kernel) -> Result<(), String> {
    let mut made = Ok(());
    walk::visit(&kernel.body, &mut |s| {
        let Stmt::For(t) = s else { return };
        if t.place == Place::Thread {
            for s in &t.body {
                if let Stmt::For(f) = s
                    && f.place == Place::Matrix
                    && let Err(why) = Product::of(kernel, (t.axis, const_trip(t).unwrap_or(0)), f)
                {
                    made = Err(why.to_string());
                }
            }
        }
    });
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_share_what_they_can_hold() {
        let of = |m, n| Warps::of([m, n], COLS, 256, 1024).map(|w| (w.down, w.across));
        for ((m, n), want) in [
            ((128, 128), Some((4, 2))),
            ((64, 128), Some((2, 2))),
            ((32, 32), Some((2, 2))),
            ((16, 16), Some((1, 1))),
            ((16, 8), Some((1, 1))),
            ((256, 128), Some((4, 2))),
            ((8, 128), None),
            ((16, 4), None),
            ((1024, 1024), None),
        ] {
            assert_eq!(of(m, n), want, "{m} x {n}");
        }
        for m in [16, 32, 64, 128, 256] {
            for n in [8, 16, 32, 64, 128, 256] {
                let w = Warps::of([m, n], COLS, 256, 1024).unwrap();
                let [r, c] = w.each([m, n]);
                assert_eq!((r % 2, c % 2, r * c * 32 * w.count()), (0, 0, m * n));
            }
        }
    }
}
