//! Tiles in another order: reversed, sorted, the greatest few.
//!
//! All are made of exchanges between halves: a dimension of extent n is seen as n/2w pairs of stretches of w elements.
//!
//! Source: the sorting network of K. E. Batcher, "Sorting networks and their applications", 1968.

use super::builder::{Builder, Id, WRONG, here};
use super::element::{Elem, Number};
use super::operators::{How, binary, choose, compare_ids};
use super::shapes::{join_along, part};
use super::tile::Tile;

/// The first and the second stretches of `width` of each pair along an axis, which becomes pairs, 1, `width`.
fn pairs(b: &mut Builder, x: Id, axis: usize, width: i32) -> (Id, Id) {
    let shape = b.shape(x);
    let mut paired = shape[..axis].to_vec();
    paired.extend([shape[axis] / (2 * width), 2, width]);
    paired.extend(&shape[axis + 1..]);
    let x = b.reshape(x, &paired);
    (part(b, x, axis + 1, 0, 1), part(b, x, axis + 1, 1, 1))
}

/// Which pairs are in an odd block of `block` elements.
fn falling(b: &mut Builder, shape: &[i32], axis: usize, width: i32, block: i32) -> Id {
    let count = shape[axis] / (2 * width);
    let numbers = b.compute(<i32 as Elem>::TYPE, &[count], vec![format!("iota : tile<{count}xi32>").into()]);
    let (each, blocks) = (b.constant(2 * width, &[]), b.constant(block, &[]));
    let at = binary(b, "muli", numbers, each, "");
    let number = binary(b, "divi", at, blocks, " signed");
    let (two, one) = (b.constant(2, &[]), b.constant(1, &[]));
    let odd = binary(b, "remi", number, two, " signed");
    let odd = compare_ids(b, How::Equal, odd, one);
    let mut along = vec![1; shape.len() + 2];
    along[axis] = count;
    b.reshape(odd, &along)
}

fn sorted(b: &mut Builder, mut x: Id, axis: usize, down: bool) -> Id {
    let shape = b.shape(x);
    let n = shape[axis];
    let mut block = 2;
    while block <= n {
        let mut width = block / 2;
        while width > 0 {
            let turn = if block < n {
                let falling = falling(b, &shape, axis, width, block);
                let all = b.constant(true, &[]);
                Some(if down { binary(b, "xori", falling, all, "") } else { falling })
            } else {
                down.then(|| b.constant(true, &[]))
            };
            let (first, second) = pairs(b, x, axis, width);
            let mut swap = compare_ids(b, How::Greater, first, second);
            if let Some(turn) = turn {
                swap = binary(b, "xori", swap, turn, "");
            }
            let (low, high) = (choose(b, swap, second, first), choose(b, swap, first, second));
            let joined = join_along(b, low, high, axis + 1);
            x = b.reshape(joined, &shape);
            width /= 2;
        }
        block *= 2;
    }
    x
}

impl<T: Elem> Tile<T> {
    /// The elements in reverse order along an axis.
    #[track_caller]
    pub fn flip(self, axis: i32) -> Tile<T> {
        here(|b| {
            let Some(axis) = b.axis(self.id, axis) else { return Tile::of(WRONG) };
            let (mut x, shape, mut width) = (self.id, b.shape(self.id), 1);
            while width < shape[axis] {
                let (first, second) = pairs(b, x, axis, width);
                let joined = join_along(b, second, first, axis + 1);
                x = b.reshape(joined, &shape);
                width *= 2;
            }
            Tile::of(x)
        })
    }
}

impl<T: Number> Tile<T> {
    /// The elements in rising order along an axis; where NaNs are among them, the order is not specified.
    #[track_caller]
    pub fn sort(self, axis: i32) -> Tile<T> {
        here(|b| Tile::of(b.axis(self.id, axis).map_or(WRONG, |axis| sorted(b, self.id, axis, false))))
    }
    /// The `k` greatest elements along an axis, the greatest first; `k` is a power of two.
    #[track_caller]
    pub fn topk(self, k: i32, axis: i32) -> Tile<T> {
        here(|b| {
            let Some(axis) = b.axis(self.id, axis) else { return Tile::of(WRONG) };
            let n = b.shape(self.id)[axis];
            if k < 1 || k > n || !(k as u32).is_power_of_two() {
                return Tile::of(b.fail(format!("k must be a power of two up to {n}, not {k}"), None));
            }
            let all = sorted(b, self.id, axis, true);
            Tile::of(part(b, all, axis, 0, k))
        })
    }
}
