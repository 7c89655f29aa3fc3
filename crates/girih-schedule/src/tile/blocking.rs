//! Block sizes for matrix products whose loops are still to be written.
//!
//! In: the extents of a product `out[m, n] = sum over k of a[m, k] * b[k, n]`, its type, and how its operands lie in memory. Out:
//! the part of `out` that one block of the grid computes, and the stretch of `k` it walks in steps of. The rules of
//! `tile` then stage, tile and vectorise those loops; the sizes here are such that they can.
//!
//! ```text
//! contraction_blocks(target, one product of 512 x 3584 x 3584, f32, in panels)  -->  Blocks { bm: 512, bn: 64, bk: 256 }
//! ```
//!
//! Invariants: every size is at least 1; `bn` is whole panels where `b` lies in panels; equal arguments give equal sizes.

use crate::num::DType;
use crate::tile::Context;
use crate::tile::contraction::{power_in, prev_power};
use crate::tile::cost::{Cost, Product};
use crate::tile::heuristics::blocking::{
    ALIKE, GUESSED_ROWS, LONGEST_STRETCH, MOST_ROWS, MOVED, SMALLEST, WIDEST, WIDEST_OF_GROUPS,
};
use crate::tile::knobs::Knobs;
use crate::tile::matrix;
use crate::tile::target::{Capability, MemoryKind, Target};

/// The work of one block of the grid: `bm` x `bn` elements of the output, with the sum taken in stretches of `bk`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Blocks {
    pub bm: u64,
    pub bn: u64,
    pub bk: u64,
}

/// The extents of products side by side; `m` is `None` where it is known at run time only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extents {
    pub batch: u64,
    pub m: Option<u64>,
    pub n: u64,
    pub k: u64,
}

/// The types that a product multiplies and sums up in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Types {
    pub operand: DType,
    pub acc: DType,
}

/// How the operands of a product lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// The right one lies in panels, `p[n / width, k, width]`, `width` being [`panel_width`]: what a register tile reads, in order.
    Panels,
    /// Both are boxes that TMA brings as warpgroups read them.
    Boxes,
    /// Any other layout.
    Other,
}

/// Columns of a panel of a packed right operand: two vectors, as wide as a register tile. 32 for f32 in 64-byte vectors.
pub fn panel_width(target: &Target, dtype: DType) -> u64 {
    2 * u64::from(target.lanes_of(dtype.bytes()))
}

/// The rows of a block are a multiple of this: the rows of the largest register tile.
const TILE_ROWS: u64 = 8;

/// The blocks of a product as [`contraction_blocks`] chooses them, but for what knobs say of blocks of threads: `mc` rows and
/// `nc` columns, and stretches of at most `kc`, as powers of two.
pub fn blocks_of(ctx: &Context, extents: Extents, types: Types, operands: Operands) -> Blocks {
    let chosen = contraction_blocks(&ctx.target, extents, types, operands);
    if !ctx.target.has(Capability::Threads) {
        return chosen;
    }
    let given = |knob: Option<u32>, own: u64| knob.map_or(own, |n| u64::from(prev_power(n)).min(2 * WIDEST));
    let Knobs { mc, nc, kc, .. } = ctx.knobs;
    Blocks { bm: given(mc, chosen.bm), bn: given(nc, chosen.bn), bk: chosen.bk.min(prev_power(kc).into()) }
}

/// Chooses the blocks of `m` x `n` x `k` products.
///
/// Rows: all of them, up to 512, so that the right operand is fetched and packed once; of more, an even part, or where there is
/// none, one rounded up to tiles of eight. Columns: two panels where these are ready in memory (the left operand is read in place,
/// so narrow blocks cost nothing). Where an operand has to be packed, up to four panels in whole vectors: the number of vectors
/// that takes the least time, with the columns that are computed beyond the last one. There are fewer columns where each thread
/// would have less than four blocks. Stretches of k: the greatest divisor of `k` up to 256, so that no step needs a mask, unless
/// `k` has none above 64.
pub fn contraction_blocks(target: &Target, extents: Extents, types: Types, operands: Operands) -> Blocks {
    let Extents { batch, m, n, k } = extents;
    if target.has(Capability::Threads) {
        return blocks_of_threads(target, m, n, k, types, operands);
    }
    let width = panel_width(target, types.acc);
    let bm = match m {
        Some(m) if m <= MOST_ROWS => m.max(1),
        Some(m) => {
            let least = m.div_ceil(MOST_ROWS);
            let even = (least..=2 * least).find(|blocks| m.is_multiple_of(*blocks));
            even.map_or_else(|| m.div_ceil(least).next_multiple_of(TILE_ROWS), |blocks| m / blocks)
        }
        None => 4 * TILE_ROWS,
    };
    let blocks = batch.saturating_mul(m.map_or(1, |m| m.div_ceil(bm)).max(1));
    let wanted = 4 * target.axes.workers.max(1) as u64;
    let enough = |bn: &u64| n.div_ceil(*bn).saturating_mul(blocks) >= wanted;
    let bn = if operands == Operands::Panels {
        let in_place = m.is_some_and(|m| m.is_multiple_of(bm));
        let widest = if in_place { 2 * width } else { 4 * width };
        let halves = std::iter::successors(Some(widest), |bn| Some(bn / 2)).take_while(|bn| *bn > width);
        halves.filter(|bn| enough(bn) && n.is_multiple_of(*bn)).max().unwrap_or(width)
    } else {
        let vector = width / 2;
        match n.max(1).checked_next_power_of_two() {
            Some(all) if all <= vector => all,
            _ => {
                let all = (1..=8).map(|vectors| vectors * vector).filter(|bn| *bn < n + vector);
                // Sums of one stretch stay in registers, but where a block has columns beyond the last one.
                let moved = |bn: &u64| if k > LONGEST_STRETCH || n.is_multiple_of(*bn) { 0 } else { MOVED };
                let time = |bn: &u64| {
                    let columns = n.div_ceil(*bn).saturating_mul(time_of_columns(*bn / vector));
                    columns.saturating_mul(k.min(LONGEST_STRETCH) + moved(bn))
                };
                let best = all.filter(|bn| *bn <= width || enough(bn)).filter(|bn| *bn >= width.min(n));
                best.min_by_key(|bn| (time(bn), *bn)).unwrap_or(width)
            }
        }
    };
    let divisor = (64..=LONGEST_STRETCH).rev().find(|d| k.is_multiple_of(*d) && k > 0);
    let bk = match divisor {
        _ if k <= LONGEST_STRETCH => k.max(1),
        Some(divisor) => divisor,
        None => LONGEST_STRETCH,
    };
    Blocks { bm, bn, bk }
}

/// Bytes of a row of a slab: a line of the cache.
const LINE: u64 = 128;

/// The time that `vectors` vectors of columns of a block take, in twelfths of a panel's time: a lone vector has half the
/// accumulators, too few to hide their latency, and each row of a block is fetched, whatever its length.
fn time_of_columns(vectors: u64) -> u64 {
    12 * (vectors / 2) + 8 * (vectors % 2) + 3
}

/// Blocks of threads: powers of two with the least estimated time (`tile/cost.rs`). Among similar estimates, blocks are better
/// if every multiprocessor gets one, since each can have only a limited number of bytes on their way, and then if they fetch
/// the fewest bytes.
fn blocks_of_threads(target: &Target, m: Option<u64>, n: u64, k: u64, types: Types, operands: Operands) -> Blocks {
    let rows = m.unwrap_or(GUESSED_ROWS);
    let Types { operand, acc } = types;
    let product = Product { batch: 1, m: rows, n, k, operand, acc };
    // Threads that load no operand have registers for twice the sums.
    let widest_n = if operands == Operands::Boxes { WIDEST_OF_GROUPS } else { WIDEST };
    let (widest_m, widest_n) = (power(rows).min(WIDEST), power(n).min(widest_n));
    let smallest = SMALLEST.min(widest_m * widest_n);
    let powers = |most: u64| (0..9).map(|bits| 1u64 << bits).filter(move |side| *side <= most);
    let tiles = powers(widest_m).flat_map(|bm| powers(widest_n).map(move |bn| (bm, bn)));
    let largest = stretched(target, widest_m, widest_n, k, types);
    let costs: Vec<(Blocks, Cost)> = tiles
        .filter(|(bm, bn)| bm * bn >= smallest)
        .map(|(bm, bn)| stretched(target, bm, bn, k, types))
        .filter_map(|tile| Some((tile, Cost::of(target, &product, tile)?)))
        .collect();
    let least = costs.iter().map(|(_, c)| c.time()).fold(f64::INFINITY, f64::min);
    let alike = costs.iter().filter(|(_, c)| c.time() <= least * (1.0 + ALIKE));
    let idle = |c: &Cost| c.blocks < c.multiprocessors;
    let best = alike.min_by(|(_, a), (_, b)| idle(a).cmp(&idle(b)).then(a.moved.total_cmp(&b.moved)));
    best.map_or(largest, |(tile, _)| *tile)
}

fn power(x: u64) -> u64 {
    x.max(1).checked_next_power_of_two().unwrap_or(WIDEST)
}

/// Blocks with stretches of k so short that two slots of both operands leave room for a second block on the multiprocessor.
fn stretched(target: &Target, bm: u64, bn: u64, k: u64, types: Types) -> Blocks {
    let (room, dtype) = (target.bytes_of(MemoryKind::Shared) / 2, types.operand);
    let fits = |bk: &u64| bk * dtype.bytes() <= LINE && 2 * (bm + bn) * bk * dtype.bytes() <= room;
    let longest = (0..8).map(|bits| 1u64 << bits).filter(fits).max().unwrap_or(1).min(power(k));
    // No step needs a mask where a stretch of some length divides the sum.
    let even = power_in(k);
    let least = matrix::operand(target, dtype, types.acc).map_or(8, |o| 2 * u64::from(o.terms()));
    let bk = if even.min(longest) >= longest.min(least) && k > 0 { even.min(longest) } else { longest };
    Blocks { bm, bn, bk }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Types = Types { operand: DType::F32, acc: DType::F32 };

    fn blocks(m: Option<u64>, n: u64, k: u64, in_panels: bool) -> (u64, u64, u64) {
        let operands = if in_panels { Operands::Panels } else { Operands::Other };
        let b = contraction_blocks(&Target::cpu(), Extents { batch: 1, m, n, k }, F32, operands);
        (b.bm, b.bn, b.bk)
    }

    #[test]
    fn columns_are_vectors_that_leave_little_over() {
        let narrow = Target::cpu().with_vectors(32, 16);
        let columns = |target: &Target, batch, n| {
            contraction_blocks(target, Extents { batch, m: Some(64), n, k: 576 }, F32, Operands::Other).bn
        };
        for (n, of_16, of_8) in
            [(56, 64, 56), (28, 32, 32), (14, 16, 16), (20, 32, 24), (196, 112, 40), (7, 8, 8), (3, 4, 4)]
        {
            assert_eq!((columns(&Target::cpu(), 1000, n), columns(&narrow, 1000, n)), (of_16, of_8), "{n}");
        }
        // A lone product has enough blocks to keep the threads busy.
        assert_eq!(columns(&narrow, 1, 56), 16);
    }

    #[test]
    fn short_sums_have_blocks_that_divide_the_columns() {
        let of =
            |n, k| contraction_blocks(&Target::cpu(), Extents { batch: 1, m: Some(64), n, k }, F32, Operands::Other).bn;
        assert_eq!([of(3136, 24), of(3136, 512), of(12544, 24)], [112, 128, 128]);
    }

    #[test]
    fn blocks_divide_what_they_can_and_keep_the_threads_busy() {
        assert_eq!(blocks(Some(512), 3584, 3584, true), (512, 64, 256));
        assert_eq!(blocks(Some(512), 3584, 3584, false), (512, 128, 256));
        assert_eq!(blocks(Some(1), 2048, 2048, false), (1, 128, 256));
        assert_eq!(blocks(Some(32), 256, 2048, true), (32, 32, 256));
        assert_eq!(blocks(None, 5632, 2048, true), (32, 128, 256));
        // 1024 rows are two blocks, 1023 are three; 1009 have no even part.
        assert_eq!(blocks(Some(1024), 768, 1000, true), (512, 64, 250));
        assert_eq!(blocks(Some(1023), 768, 1000, true), (341, 64, 250));
        assert_eq!(blocks(Some(1009), 768, 1000, true), (512, 128, 250));
        assert_eq!(blocks(Some(197), 768, 257, true), (197, 64, 256));
        // Less than a panel: the block is as small as the product, panels stay whole.
        assert_eq!(blocks(Some(3), 7, 20, false), (3, 8, 20));
        assert_eq!(blocks(Some(0), 1, 0, true), (1, 32, 1));
    }

    #[test]
    fn a_panel_is_two_vectors() {
        let narrow = Target::cpu().with_vectors(32, 16);
        assert_eq!(panel_width(&Target::cpu(), DType::F32), 32);
        assert_eq!(panel_width(&narrow, DType::F32), 16);
        assert_eq!(panel_width(&narrow, DType::F64), 8);
    }

    /// The choice before there was a cost model: halved until every multiprocessor has a block.
    fn halved(target: &Target, m: u64, n: u64) -> (u64, u64) {
        let (mut bm, mut bn) = (power(m).min(WIDEST), power(n).min(WIDEST));
        while m.div_ceil(bm) * n.div_ceil(bn) < u64::from(target.axes.workers) && bm * bn > SMALLEST {
            match bm >= bn {
                true => bm /= 2,
                false => bn /= 2,
            }
        }
        (bm, bn)
    }

    #[test]
    fn tiles_of_threads_cost_no_more_than_halving_the_widest() {
        let usual = [
            [512, 3584, 3584],
            [32, 2048, 2048],
            [128, 18944, 3584],
            [4096, 4096, 4096],
            [2048, 2048, 2048],
            [1000, 1000, 1000],
            [197, 768, 768],
            [512, 512, 64],
            [32, 32, 32],
            [1, 3584, 3584],
            [7, 5, 3],
        ];
        for (name, [m, n, k]) in Target::NAMES[1..].iter().flat_map(|name| usual.map(|shape| (name, shape))) {
            let t = Target::named(name).unwrap();
            let p = Product { batch: 1, m, n, k, operand: DType::F32, acc: DType::F32 };
            let (bm, bn) = halved(&t, m, n);
            let old = Cost::of(&t, &p, stretched(&t, bm, bn, k, F32)).unwrap();
            let new =
                Cost::of(&t, &p, contraction_blocks(&t, Extents { batch: 1, m: Some(m), n, k }, F32, Operands::Other))
                    .unwrap();
            println!("{name} {m} x {n} x {k}\n  old {old}\n  new {new}");
            assert!(new.time() <= old.time() * (1.0 + ALIKE), "{name} {m} x {n} x {k}: {new} after {old}");
        }
        let tile = |name, [m, n, k]: [u64; 3]| {
            let b = contraction_blocks(
                &Target::named(name).unwrap(),
                Extents { batch: 1, m: Some(m), n, k },
                F32,
                Operands::Other,
            );
            [b.bm, b.bn, b.bk]
        };
        // 112 blocks of 128 x 128 leave some of 132 without one; 108 have four too many for one round.
        assert_eq!(tile("sm_90a", [512, 3584, 3584]), [64, 128, 32]);
        assert_eq!(tile("sm_80", [512, 3584, 3584]), [64, 64, 32]);
        // 148 are a round of 148 multiprocessors, and 16 more than one of 132.
        assert_eq!(tile("sm_100a", [128, 18944, 3584]), [128, 128, 32]);
        assert_eq!(tile("sm_90a", [128, 18944, 3584]), [64, 64, 32]);
        assert_eq!(tile("sm_120", [7, 5, 3]), [8, 8, 4]);
    }

    #[test]
    fn warpgroups_that_load_nothing_have_twice_the_columns_where_blocks_are_many() {
        let tile = |[m, n, k]: [u64; 3], operands| {
            let types = Types { operand: DType::F16, acc: DType::F32 };
            let target = Target::named("sm_90a").unwrap();
            let b = contraction_blocks(&target, Extents { batch: 1, m: Some(m), n, k }, types, operands);
            [b.bm, b.bn, b.bk]
        };
        assert_eq!(tile([4096, 4096, 4096], Operands::Boxes), [128, 256, 64]);
        assert_eq!(tile([4096, 4096, 4096], Operands::Other), [128, 128, 64]);
        // 128 blocks for 132 multiprocessors; eight would leave most of them without one.
        assert_eq!(tile([2048, 2048, 2048], Operands::Boxes), [128, 256, 64]);
        assert!(tile([512, 512, 4096], Operands::Boxes)[1] <= 128);
    }

    #[test]
    fn any_extents_have_tiles_of_threads() {
        for name in &Target::NAMES[1..] {
            let t = Target::named(name).unwrap();
            for extent in [0, 1, 3, 129, 1 << 20, u64::MAX] {
                for dtype in [DType::F16, DType::F32, DType::F64] {
                    for m in [None, Some(extent), Some(1)] {
                        let b = contraction_blocks(
                            &t,
                            Extents { batch: 1, m, n: extent, k: extent },
                            Types { operand: dtype, acc: dtype },
                            Operands::Other,
                        );
                        assert!((1..=WIDEST).contains(&b.bm) && (1..=WIDEST).contains(&b.bn) && b.bk > 0, "{b:?}");
                    }
                }
            }
        }
    }
}
