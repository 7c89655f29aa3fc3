//! An estimate of a kernel's cost on a GPU, from the target's numbers.
//!
//! In: the extents of a product, its types, and the blocks it is cut into; or a nest and its blocks. Out: the bytes that the
//! blocks fetch and how many of them come from memory, the operations, how many blocks a multiprocessor has at once, and
//! what bounds the kernel.
//!
//! ```text
//! 512 x 3584 x 3584 in f32, blocks of 64 x 128 x 32 on sm_90a   -->
//! 224 blocks of 128 threads on 132 multiprocessors, room for 4 on each, 85 % busy; ...; 13 Gflop in 247 us: bound by arithmetic
//! ```
//!
//! A roofline, no simulation: a kernel takes as long as the slowest of three. Memory delivers each array once. L2 delivers all
//! that the blocks fetch, at 0.53 of the rate at which all multiprocessors together can take it, and no multiprocessor gets more than it can
//! take. Each multiprocessor computes the blocks that it gets, where loads and copies take turns with the arithmetic.
//! `tile/blocking.rs` takes the tile of least [`Cost::time`].

use std::collections::BTreeMap;

use crate::loops::ir::*;
use crate::loops::matrix::COLS;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use crate::tile::blocking::Blocks;
use crate::tile::contraction::power_in;
use crate::tile::edit::most_trips;
use crate::tile::heuristics::cost::{
    ACROSS, ENOUGH_THREADS, EXCHANGING, FETCHED, FOLDING, ISSUED, L2, LATENCY, LOADING, OTHER_REGISTERS, SHUFFLE,
    SLOTS, STEP, UNDER_WAY,
};
use crate::tile::knobs::Knobs;
use crate::tile::matrix::{self, Warps};
use crate::tile::target::{Capability, Gpu, MemoryKind, Target};

/// A product `out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    pub batch: u64,
    pub m: u64,
    pub n: u64,
    pub k: u64,
    /// The type of both operands.
    pub operand: DType,
    /// The type of the accumulator and of the stored result.
    pub acc: DType,
}

/// The cost of a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    pub blocks: u64,
    pub threads: u64,
    /// At the same time on one multiprocessor.
    pub together: u64,
    pub multiprocessors: u64,
    /// The part of the multiprocessors' time that the blocks fill: some are idle while the last blocks run.
    pub busy: f64,
    /// Bytes that blocks fetch and store.
    pub moved: f64,
    /// Bytes of the arrays, each once.
    pub arrays: f64,
    pub operations: f64,
    /// Seconds that memory takes for the arrays, L2 for what is moved, and the multiprocessors for the operations.
    pub memory: f64,
    pub cache: f64,
    pub arithmetic: f64,
}

/// Bytes of one access.
const ACCESS: f64 = 16.0;

/// Rows and columns of a thread's tile: 64 accumulators of the 255 registers, so that each element of an operand is used
/// eight times; half as many of eight bytes.
pub fn most_each(dtype: DType) -> u64 {
    if dtype.bytes() > 4 { 4 } else { 8 }
}

/// Rows and columns of a block's accumulator that one thread has: about the number of elements that its registers hold, in
/// shares that are nearly square, with enough threads to hide each other's latency, and no more than `most_threads` where
/// the registers allow it.
pub fn each_thread(dtype: DType, [m, n]: [u64; 2], most_threads: u64) -> [u64; 2] {
    let most = most_each(dtype);
    let (even_m, even_n) = (power_in(m), power_in(n));
    let (mut rows, mut cols) = (even_m.min(most), even_n.min(most));
    let threads = |rows: u64, cols: u64| (m / rows) * (n / cols);
    while threads(rows, cols) < ENOUGH_THREADS && rows * cols > 1 {
        match rows >= cols {
            true => rows /= 2,
            false => cols /= 2,
        }
    }
    while threads(rows, cols) > most_threads && rows * cols < 2 * most * most {
        match rows <= cols {
            true if even_m > rows => rows *= 2,
            _ if even_n > cols => cols *= 2,
            _ => break,
        }
    }
    [rows, cols]
}

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
        let most = u64::from(Knobs::default().threads);
        let products = matrix::operand(target, p.operand, p.acc).filter(|o| bk.is_multiple_of(o.terms().into()));
        // The matrix unit reads operands itself where warpgroups multiply.
        let groups = products.filter(|_| target.has(Capability::WarpgroupProducts));
        let groups = groups.and_then(|_| Warps::of_groups([bm, bn], target));
        let warps = products.and_then(|_| Warps::of([bm, bn], COLS, most, target.axes.threads.into()));
        let warps = groups.or(warps);
        let [r, c] = match warps {
            Some(warps) => warps.each([bm, bn]),
            None => each_thread(p.acc, [bm.max(1), bn.max(1)], most),
        };
        let threads = (bm.max(1) / r * (bn.max(1) / c)).max(1);
        let together = Cost::together(target, &gpu, threads, r * c, slab, p.acc);
        let busy = busy(blocks, multiprocessors);
        // Twice as wide takes twice as long, or longer; half as wide is not faster without the matrix unit.
        let peak = match warps {
            Some(_) if groups.is_some() => gpu.grouped * 2.0 / size,
            Some(_) => gpu.products * 2.0 / size,
            None => gpu.peak / (p.acc.bytes() as f64 / 4.0).max(1.0),
        };
        // The share of computing among a thread's instructions for one element of the sum: the others load its rows and columns
        // from shared memory, and do its share of the copies there.
        let accesses = |elements: f64| elements * size / ACCESS;
        let computing = match warps {
            Some(_) if groups.is_some() => 1.0,
            // A product has two rows and two columns of each thread. Fragments are loaded meanwhile.
            Some(_) => ((r * c) as f64 / 4.0 / (LOADING * (r as f64 / 2.0 + c as f64 / 4.0))).min(1.0),
            None => {
                let issued = (r * c) as f64 + accesses((r + c) as f64) + accesses((bm + bn) as f64 / threads as f64);
                // In the time of n products, shared memory gives a warp n elements, half of the lanes another's.
                let given = 2.0 * (r * c) as f64 / (size * (r + c) as f64);
                ((r * c) as f64 / issued).min(given)
            }
        };
        Some(Cost {
            blocks,
            threads,
            together,
            multiprocessors,
            busy,
            moved: fetched + stored,
            arrays: arrays + stored,
            operations,
            memory: (arrays + stored) / gpu.bandwidth,
            cache: (fetched + stored) / l2(target, &gpu),
            arithmetic: operations / (peak * busy * computing),
        })
    }

    /// The cost of loops over blocks of `threads` threads; `None` if the target does not state its speed, or if only the launch
    /// knows how far the loops go.
    pub fn of_nest(target: &Target, nest: &Stmt, threads: u64) -> Option<Cost> {
        let gpu = target.gpu?;
        let mut work = Work::default();
        work.body(std::slice::from_ref(nest), &mut vec![])?;
        let Work { blocks, members, moved, arrays, operations } = work;
        let blocks = blocks.saturating_mul(members.max(1));
        let arrays: f64 = arrays.values().sum();
        let multiprocessors = u64::from(target.axes.workers.max(1));
        let busy = busy(blocks, multiprocessors);
        Some(Cost {
            blocks,
            threads,
            together: Cost::together(target, &gpu, threads, 0, 0, DType::F32),
            multiprocessors,
            busy,
            moved,
            arrays,
            operations,
            memory: arrays / gpu.bandwidth,
            cache: (moved / l2(target, &gpu)).max(moved / (FETCHED * gpu.clock * multiprocessors as f64 * busy)),
            arithmetic: operations / (gpu.peak * busy),
        })
    }

    /// Seconds that the kernel takes at least.
    pub fn time(&self) -> f64 {
        self.memory.max(self.cache).max(self.arithmetic)
    }

    fn bound(&self) -> &'static str {
        match self.time() {
            t if t == self.memory => "memory",
            t if t == self.cache => "L2",
            _ => "arithmetic",
        }
    }

    /// Blocks that a multiprocessor has room for.
    fn together(target: &Target, gpu: &Gpu, threads: u64, accumulators: u64, slab: u64, acc: DType) -> u64 {
        room(target, gpu, threads, accumulators * acc.bytes().div_ceil(4) + OTHER_REGISTERS, slab).0
    }
}

/// Seconds for rows of `length` elements, each folded by the threads of a block: the time in which all instructions are issued,
/// or the latency of one row for each round in which the multiprocessors take rows, whichever is longer.
pub fn of_rows(target: &Target, rows: u64, length: u64, threads: u64) -> Option<f64> {
    let gpu = target.gpu?;
    let lanes = u64::from(target.axes.lanes.max(1));
    let warps = threads.div_ceil(lanes).max(1) as f64;
    let (within, across) = (lanes.ilog2().min(threads.max(1).ilog2()) as f64, (warps as u64).ilog2() as f64);
    let each = length.div_ceil(threads.max(1)) as f64;
    let workers = u64::from(target.axes.workers.max(1));
    let at_once = workers * room(target, &gpu, threads, OTHER_REGISTERS, 0).0;
    let busy = (rows as f64 / workers as f64).min(1.0);
    let issued = rows as f64 * warps * (each * FOLDING + (within + across) * EXCHANGING);
    let chain = (each / UNDER_WAY).ceil() * LATENCY + within * SHUFFLE + across * ACROSS;
    let rounds = rows.div_ceil(at_once) as f64;
    Some((issued / (ISSUED * workers as f64 * busy)).max(rounds * chain) / gpu.clock)
}

/// Bytes that memory gives at least.
pub const SECTOR: f64 = 32.0;

/// Rows that are scanned, by one thread each or by the threads of a block.
pub struct Scans {
    pub rows: u64,
    pub length: u64,
    /// The threads of a block, and the elements that each of them folds at a time.
    pub threads: u64,
    pub each: u64,
    /// Bytes that an element takes to load and store, of a thread for each row and of a block.
    pub alone: f64,
    pub shared: f64,
}

impl Scans {
    /// Seconds that both take.
    pub fn seconds(&self, target: &Target) -> Option<[f64; 2]> {
        let gpu = target.gpu?;
        let workers = u64::from(target.axes.workers.max(1));
        let elements = self.rows as f64 * self.length as f64;
        let moved = |bytes: f64, busy: f64| elements * bytes / (l2(target, &gpu) * busy.min(1.0));
        let at_once = workers * u64::from(gpu.threads);
        let waits = self.length as f64 / UNDER_WAY * LATENCY * self.rows.div_ceil(at_once) as f64;
        let alone = (waits / gpu.clock).max(moved(self.alone, self.rows as f64 / (at_once as f64 / 8.0)));
        let stretches = self.length.div_ceil(self.threads * self.each) as f64;
        let at_once = workers * room(target, &gpu, self.threads, OTHER_REGISTERS, 0).0;
        let steps = 2.0 * LATENCY + (self.each as f64 + 32.0) * STEP;
        let waits = stretches * steps * self.rows.div_ceil(at_once) as f64;
        let shared = (waits / gpu.clock).max(moved(self.shared, self.rows as f64 / workers as f64));
        Some([alone, shared])
    }
}

/// Bytes that L2 delivers in a second.
pub fn l2(target: &Target, gpu: &Gpu) -> f64 {
    L2 * FETCHED * gpu.clock * f64::from(target.axes.workers.max(1))
}

/// The part of the multiprocessors' time that blocks fill: some are idle while the last blocks run.
pub fn busy(blocks: u64, multiprocessors: u64) -> f64 {
    blocks as f64 / (blocks.div_ceil(multiprocessors).max(1) as f64 * multiprocessors as f64)
}

/// The number of blocks that fit a multiprocessor at once, and the resource that allows no more. A block has `threads` threads,
/// each thread has `registers` registers, and the block has `bytes` bytes of shared memory.
pub fn room(target: &Target, gpu: &Gpu, threads: u64, registers: u64, bytes: u64) -> (u64, &'static str) {
    let threads = threads.max(1).next_multiple_of(u64::from(target.axes.lanes.max(1)));
    let shared = target.bytes_of(MemoryKind::Shared).max(u64::from(gpu.shared));
    let limits = [
        (u64::from(gpu.blocks), "blocks"),
        (u64::from(gpu.threads) / threads, "threads"),
        (u64::from(gpu.registers) / (threads * registers).max(1), "registers"),
        (shared / bytes.max(1), "shared memory"),
    ];
    let (most, why) = limits.into_iter().min_by_key(|(n, _)| *n).unwrap_or((1, "blocks"));
    (most.max(1), why)
}

/// The work of loops: all trips of all threads.
#[derive(Default)]
struct Work {
    blocks: u64,
    /// Blocks of a cluster, for each of these.
    members: u64,
    /// Bytes of all loads and stores.
    moved: f64,
    /// Bytes of each array that one of them goes through, however often it does.
    arrays: BTreeMap<ValId, f64>,
    /// Operations on numbers; a fused multiply-add counts as two.
    operations: f64,
}

impl Work {
    /// Statements in loops of these axes and extents; `None` where an extent is not known.
    fn body(&mut self, body: &[Stmt], around: &mut Vec<(AxisId, f64)>) -> Option<()> {
        let times: f64 = around.iter().map(|(_, n)| n).product();
        for s in body {
            match s {
                Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => {
                    let bytes = mem.elem.bytes() as f64;
                    let own: f64 =
                        around.iter().filter(|(axis, _)| mem.index.has_axis(*axis)).map(|(_, n)| n).product();
                    let array = self.arrays.entry(mem.base).or_default();
                    (self.moved, *array) = (self.moved + times * bytes, array.max(own * bytes));
                }
                Stmt::Let { op: ScalarOp::Copy, .. } => {}
                Stmt::Let { op: ScalarOp::Fma { .. }, .. } => self.operations += 2.0 * times,
                Stmt::Let { .. } => self.operations += times,
                Stmt::For(f) => {
                    let trips = most_trips(f)?;
                    match f.place {
                        Place::Block { .. } => self.blocks = self.blocks.max(1).saturating_mul(trips),
                        Place::ClusterBlock => self.members = self.members.max(trips),
                        _ => {}
                    }
                    around.push((f.axis, trips as f64));
                    self.body(&f.body, around)?;
                    around.pop();
                }
                s => walk::bodies(s).into_iter().try_for_each(|body| self.body(body, around))?,
            }
        }
        Some(())
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (blocks, threads, on) = (self.blocks, self.threads, self.multiprocessors);
        let all = if self.blocks == 1 { "1 block".to_string() } else { format!("{blocks} blocks") };
        write!(f, "{all} of {threads} threads on {on} multiprocessors, room for {} on each", self.together)?;
        write!(f, ", {:.0} % busy; ", 100.0 * self.busy)?;
        write!(
            f,
            "{} fetched and stored in {}, {} of arrays in {}; ",
            bytes(self.moved),
            time(self.cache),
            bytes(self.arrays),
            time(self.memory)
        )?;
        let (operations, bound) = (operations(self.operations), self.bound());
        write!(f, "{operations} in {}: bound by {bound}", time(self.arithmetic))
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

pub fn bytes(x: f64) -> String {
    scaled(x, ["bytes", "kB", "MB", "GB"])
}

pub fn operations(x: f64) -> String {
    scaled(x, ["flop", "kflop", "Mflop", "Gflop"])
}

pub fn time(seconds: f64) -> String {
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
            "224 blocks of 128 threads on 132 multiprocessors, room for 4 on each, 85 % busy; 624 MB fetched and stored in \
             70 us, 66 MB of arrays in 20 us; 13 Gflop in 247 us: bound by arithmetic"
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
