//! What a tile of a product costs a GPU, from the target's numbers.
//!
//! In: the extents of a product, its types, and the blocks it is cut into. Out: the bytes that the blocks fetch and how many
//! of them come from memory, the operations, how many blocks a multiprocessor has at once, and what bounds the kernel.
//!
//! ```text
//! 512 x 3584 x 3584 in f32, blocks of 64 x 128 x 32 on sm_90a   -->
//! 64 x 128 x 32: 224 blocks, 2 on each of 132 multiprocessors, 85 % busy; 11.0 MB fetched per 16.0 MFLOP ...
//! ```
//!
//! A roofline, no simulation: a block is as fast as the arithmetic of its share of a multiprocessor, or as memory delivers
//! each array once. What the second fetch of an element costs, from L2, is not counted; the bytes say how many there are.

use crate::num::DType;
use crate::tile::blocking::Blocks;
use crate::tile::target::{Gpu, MemoryKind, Target};

/// A product `out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    pub batch: u64,
    pub m: u64,
    pub n: u64,
    pub k: u64,
    /// Of both operands.
    pub operand: DType,
    /// Of the accumulator, and of what is stored.
    pub acc: DType,
}

/// What it costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    pub tile: Blocks,
    pub blocks: u64,
    /// At the same time on one multiprocessor.
    pub together: u64,
    pub multiprocessors: u64,
    /// Of the multiprocessors' time, the part that the blocks fill; the last ones to start leave others idle.
    pub busy: f64,
    /// Bytes that blocks fetch and store.
    pub moved: f64,
    /// Bytes of the arrays, each once.
    pub arrays: f64,
    pub operations: f64,
    /// Seconds that memory takes for the arrays, and arithmetic for the operations.
    pub memory: f64,
    pub arithmetic: f64,
}

/// Accumulators of a thread, and registers that it needs besides: addresses and parts of both operands.
const ACCUMULATORS: u64 = 64;
const OTHER_REGISTERS: u64 = 64;
/// Slots of a slab that a pipeline has at least.
const SLOTS: u64 = 2;

impl Cost {
    /// `None` where the target says nothing of its speed.
    pub fn of(target: &Target, p: &Product, tile: Blocks) -> Option<Cost> {
        let gpu = target.gpu?;
        let Blocks { bm, bn, bk } = tile;
        let (rows, cols) = (p.m.div_ceil(bm.max(1)), p.n.div_ceil(bn.max(1)));
        let blocks = p.batch.saturating_mul(rows).saturating_mul(cols).max(1);
        let size = p.operand.bytes() as f64;
        let of = |a: u64, b: u64| a as f64 * b as f64;
        let stored = of(p.m, p.n) * p.batch as f64 * p.acc.bytes() as f64;
        let fetched = blocks as f64 * of(bm + bn, p.k) * size;
        let arrays = (of(p.m, p.k) + of(p.k, p.n)) * p.batch as f64 * size;
        let operations = 2.0 * blocks as f64 * of(bm, bn) * p.k as f64;
        let multiprocessors = u64::from(target.axes.workers.max(1));
        let slab = SLOTS * (bm + bn) * bk * p.operand.bytes();
        let together = Cost::together(target, &gpu, bm * bn, slab, p.acc);
        let turns = blocks.div_ceil(multiprocessors);
        let busy = blocks as f64 / (turns * multiprocessors) as f64;
        // Twice as wide takes twice as long, or longer; half as wide is not faster without the matrix unit.
        let peak = gpu.peak / (p.acc.bytes() as f64 / 4.0).max(1.0);
        Some(Cost {
            tile,
            blocks,
            together,
            multiprocessors,
            busy,
            moved: fetched + stored,
            arrays: arrays + stored,
            operations,
            memory: (arrays + stored) / gpu.bandwidth,
            arithmetic: operations / (peak * busy),
        })
    }

    /// Blocks that a multiprocessor has room for.
    fn together(target: &Target, gpu: &Gpu, elements: u64, slab: u64, acc: DType) -> u64 {
        let lanes = u64::from(target.axes.lanes);
        let threads = elements.div_ceil(ACCUMULATORS).next_multiple_of(lanes);
        let registers = threads * (ACCUMULATORS * acc.bytes().div_ceil(4) + OTHER_REGISTERS);
        let shared = target.bytes_of(MemoryKind::Shared).max(u64::from(gpu.shared));
        let limits = [
            u64::from(gpu.threads) / threads,
            u64::from(gpu.registers) / registers,
            shared / slab.max(1),
            u64::from(gpu.blocks),
        ];
        limits.into_iter().min().unwrap_or(1).max(1)
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Blocks { bm, bn, bk } = self.tile;
        let (blocks, on) = (self.blocks, self.multiprocessors);
        let all = if self.blocks == 1 { "1 block".to_string() } else { format!("{blocks} blocks") };
        write!(f, "{bm} x {bn} x {bk}: {all} on {on} multiprocessors, room for {} on each", self.together)?;
        write!(f, ", {:.0} % busy; ", 100.0 * self.busy)?;
        write!(
            f,
            "{} fetched and stored, {} of arrays in {}; ",
            bytes(self.moved),
            bytes(self.arrays),
            time(self.memory)
        )?;
        let bound = if self.memory > self.arithmetic { "memory" } else { "arithmetic" };
        write!(f, "{} in {}: bound by {bound}", operations(self.operations), time(self.arithmetic))
    }
}

fn scaled(x: f64, units: [&str; 4]) -> String {
    let mut x = x;
    let mut unit = units[0];
    for next in &units[1..] {
        if x < 999.5 {
            break;
        }
        (x, unit) = (x / 1000.0, next);
    }
    if x < 9.95 { format!("{x:.1} {unit}") } else { format!("{x:.0} {unit}") }
}

fn bytes(x: f64) -> String {
    scaled(x, ["bytes", "kB", "MB", "GB"])
}

fn operations(x: f64) -> String {
    scaled(x, ["flop", "kflop", "Mflop", "Gflop"])
}

fn time(seconds: f64) -> String {
    scaled(seconds * 1e9, ["ns", "us", "ms", "s"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(target: &str, [m, n, k]: [u64; 3], [bm, bn, bk]: [u64; 3]) -> Cost {
        let p = Product { batch: 1, m, n, k, operand: DType::F32, acc: DType::F32 };
        Cost::of(&Target::named(target).unwrap(), &p, Blocks { bm, bn, bk }).unwrap()
    }

    #[test]
    fn a_product_says_what_bounds_it() {
        let c = cost("sm_90a", [512, 3584, 3584], [64, 128, 32]);
        assert_eq!((c.blocks, c.multiprocessors), (224, 132));
        assert!((c.busy - 224.0 / 264.0).abs() < 1e-9 && c.arithmetic > c.memory, "{c}");
        // (64 + 128) * 3584 numbers for each block, and what is stored.
        assert_eq!(c.moved, 4.0 * (224.0 * 192.0 * 3584.0 + 512.0 * 3584.0));
        assert_eq!(
            c.to_string(),
            "64 x 128 x 32: 224 blocks on 132 multiprocessors, room for 4 on each, 85 % busy; 624 MB fetched and stored, \
             66 MB of arrays in 20 us; 13 Gflop in 231 us: bound by arithmetic"
        );
        // A row: the weights come from memory once, whatever the blocks.
        let row = cost("sm_90a", [1, 3584, 3584], [1, 128, 32]);
        assert!(row.memory > 0.0 && row.to_string().ends_with("bound by memory"), "{row}");
    }

    #[test]
    fn costs_follow_the_target() {
        let on = |name| cost(name, [512, 3584, 3584], [64, 128, 32]);
        assert!(on("sm_80").arithmetic > on("sm_90a").arithmetic);
        assert!(on("sm_80").memory > on("sm_90a").memory && on("sm_90a").memory > on("sm_100a").memory);
        let p = Product { batch: 1, m: 8, n: 8, k: 8, operand: DType::F32, acc: DType::F32 };
        assert_eq!(Cost::of(&Target::cpu(), &p, Blocks { bm: 8, bn: 8, bk: 8 }), None);
    }
}
