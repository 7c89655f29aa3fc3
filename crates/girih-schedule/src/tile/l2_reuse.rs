//! The operands of a product that concurrent blocks need, and the part of them that L2 keeps for the blocks that come next.
//!
//! In: how many rows and columns of blocks a product has, the bytes of operands that the blocks of a row and those of a column
//! share, and how many blocks run at once. Out: for an order of the blocks, the operands of a wave of them, and the bytes that
//! come from memory.
//!
//! ```text
//! 32 x 32 blocks of 1 MB a row and 1 MB a column, 132 at once, 25 MB kept
//!   column by column:                  a wave has 32 rows and 5 columns, 37 MB:  nothing is there when it is needed again
//!   in groups of 8 rows by columns:    a wave has 8 rows and 17 columns, 25 MB
//! ```
//!
//! Blocks of a wave go along the sum side by side, so each slab comes from memory once for all of them, whether L2 holds a wave's
//! operands or not. A later wave finds what is left of an earlier one: a slab is there where it and all that was used since
//! fit (least recently used goes first).

use std::collections::{BTreeMap, BTreeSet};

use crate::tile::heuristics::l2_reuse::{LEAST, MOST_WAVES};

/// The blocks of a product.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Waves {
    pub rows: u64,
    pub cols: u64,
    /// Bytes of operands that the blocks of a row share, and those of a column.
    pub row: f64,
    pub col: f64,
    /// Blocks that run at once.
    pub at_once: u64,
    /// Bytes that L2 keeps.
    pub kept: f64,
}

/// The bytes that blocks fetch in some order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fetched {
    /// Bytes of operands that a wave has, on average.
    pub wave: f64,
    /// Bytes that come from memory.
    pub memory: f64,
}

impl Waves {
    /// The bytes where blocks go column by column through `group` rows, then through the next `group`. A group of all rows is the
    /// order in which a grid counts blocks.
    pub fn fetched(&self, group: u64) -> Fetched {
        let Waves { rows, cols, row, col, at_once, kept } = *self;
        let (rows, cols, at_once) = (rows.max(1), cols.max(1), at_once.max(1));
        let group = group.clamp(1, rows);
        let blocks = rows.saturating_mul(cols);
        let all = group.saturating_mul(cols);
        let place = |block: u64| {
            let (first, within) = (block / all * group, block % all);
            let size = group.min(rows - first);
            (first + within % size, within / size)
        };
        let seen = blocks.min(at_once.saturating_mul(MOST_WAVES));
        // For each slab the wave that used it last, and for each wave the bytes of those that were used last in it.
        let mut last: BTreeMap<(bool, u64), usize> = BTreeMap::new();
        let mut used: Vec<f64> = vec![];
        let (mut total, mut memory) = (0.0, 0.0);
        let mut from = 0;
        while from < seen {
            let to = seen.min(from + at_once);
            let slabs: BTreeSet<(bool, u64)> =
                (from..to).map(place).flat_map(|(r, c)| [(true, r), (false, c)]).collect();
            let mut since = vec![0.0; used.len()];
            let mut sum = 0.0;
            for (at, bytes) in used.iter().enumerate().rev() {
                sum += bytes;
                since[at] = sum;
            }
            let now = used.len();
            let mut own = 0.0;
            for slab in slabs {
                let bytes = if slab.0 { row } else { col };
                let before = last.insert(slab, now);
                if before.is_none_or(|wave| since[wave] > kept) {
                    memory += bytes;
                }
                if let Some(wave) = before {
                    used[wave] -= bytes;
                }
                own += bytes;
            }
            used.push(own);
            total += own;
            from = to;
        }
        let part = blocks as f64 / seen as f64;
        Fetched { wave: total / used.len().max(1) as f64, memory: memory * part }
    }

    /// The group of rows with which the fewest bytes come from memory, of these the one whose waves have the fewest; `None` where
    /// no group saves a tenth of them.
    pub fn group(&self) -> Option<u64> {
        let now = self.fetched(self.rows);
        let groups = (0..32).map(|bits| 1u64 << bits).take_while(|group| *group < self.rows);
        let all = groups.map(|group| (group, self.fetched(group)));
        let less = |(_, a): &(u64, Fetched), (_, b): &(u64, Fetched)| {
            a.memory.total_cmp(&b.memory).then(a.wave.total_cmp(&b.wave))
        };
        all.min_by(less).filter(|(_, f)| f.memory < now.memory * (1.0 - LEAST)).map(|(group, _)| group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1e6;

    /// A product of 4096 x 4096 in f16, in blocks of 128 x 128 on 132 multiprocessors, in megabytes.
    const SQUARE: Waves = Waves { rows: 32, cols: 32, row: 1.0, col: 1.0, at_once: 132, kept: 25.0 };

    #[test]
    fn a_wave_has_the_operands_of_its_rows_and_columns() {
        // 132 blocks of columns of 32: four of them and four blocks of the next, the first time.
        let columns = Waves { at_once: 64, ..SQUARE }.fetched(32);
        assert_eq!(columns.wave, 34.0);
        // 16 waves of two columns each. L2 keeps no rows from one to the next.
        assert_eq!(columns.memory, 16.0 * 34.0);
        // Groups of 8 rows: waves of 8 by 8.
        let groups = Waves { at_once: 64, ..SQUARE }.fetched(8);
        assert_eq!(groups.wave, 16.0);
        // The rows of the wave before are still there: 8 rows are fetched once for each of four groups; the columns of one group
        // are gone when the next one needs them.
        assert_eq!(groups.memory, 4.0 * (8.0 + 32.0));
    }

    #[test]
    fn what_fits_is_fetched_once() {
        for group in [1, 4, 32] {
            let all = Waves { kept: 64.0 * MB, ..SQUARE }.fetched(group);
            assert_eq!(all.memory, 64.0, "{group}");
        }
        assert_eq!(Waves { kept: 64.0 * MB, ..SQUARE }.group(), None);
    }

    #[test]
    fn the_last_group_may_be_shorter() {
        let odd = Waves { rows: 10, cols: 6, at_once: 24, kept: 0.0, ..SQUARE };
        // 4 x 6, 4 x 6, 2 x 6.
        assert_eq!(odd.fetched(4).memory, 10.0 + 10.0 + 8.0);
    }

    #[test]
    fn the_group_is_the_one_that_saves_most() {
        let group = SQUARE.group().unwrap();
        let (own, columns) = (SQUARE.fetched(group), SQUARE.fetched(32));
        assert!((4..=16).contains(&group) && own.memory < 0.6 * columns.memory, "{group}: {own:?} {columns:?}");
        // One row or one column of blocks: there is nothing to choose.
        assert_eq!(Waves { rows: 1, ..SQUARE }.group(), None);
        assert_eq!(Waves { cols: 1, ..SQUARE }.group(), None);
        // Very many blocks: the first waves stand for all.
        let many = Waves { rows: 1 << 20, cols: 1 << 20, ..SQUARE };
        assert!(many.group().is_some());
    }
}
