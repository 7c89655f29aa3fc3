//! Reductions and scans along a dimension.
//!
//! Sums, products, extremes and bit operations become Tile IR's `reduce` and `scan`, whose starting values are known. A function of
//! the user's has no known starting value: it is applied to halves of the tile, log2(n) times, in an order that depends on nothing
//! but n.

use super::builder::{Builder, Id, Piece, WRONG, commas, here};
use super::element::{Constant, Elem, Float, Integer, Number};
use super::operators::{How, binary, choose, compare_ids, convert, exp};
use super::shapes::{arange, join_along, part, widened};
use super::tile::Tile;

/// Tile IR's `reduce` or `scan` of tiles of one shape; `combine(elements, accumulators)` gives the new accumulators.
fn fold<const N: usize>(
    b: &mut Builder,
    tiles: [Id; N],
    axis: usize,
    starts: [String; N],
    scan: Option<bool>,
    combine: impl FnOnce(&mut Builder, [Id; N], [Id; N]) -> [Id; N],
) -> [Id; N] {
    if tiles.contains(&WRONG) {
        return [WRONG; N];
    }
    b.enter();
    let elements = tiles.map(|t| {
        let ty = b.ty(t);
        b.value(Some(ty), &[], "x")
    });
    let accumulators = tiles.map(|t| {
        let ty = b.ty(t);
        b.value(Some(ty), &[], "acc")
    });
    let new = combine(b, elements, accumulators);
    let types = |b: &Builder, ids: &[Id]| ids.iter().map(|i| b.ir_type(*i)).collect::<Vec<_>>().join(", ");
    let mut pieces: Vec<Piece> = vec!["yield ".into()];
    pieces.extend(commas(&new));
    pieces.push(format!(" : {}", types(b, &new)).into());
    b.op(pieces, &[], vec![], false);
    let region = b.exit();
    let mut shape = b.shape(tiles[0]);
    if scan.is_none() {
        shape.remove(axis);
    }
    let results = tiles.map(|t| {
        let ty = b.ty(t);
        b.value(Some(ty), &shape, "")
    });
    let starts: Vec<String> = starts.iter().zip(tiles).map(|(s, t)| format!("{s} : {}", b.ty(t).ir())).collect();
    let reverse = scan.map_or(String::new(), |r| format!("reverse={r} "));
    let mut pieces: Vec<Piece> = vec![if scan.is_some() { "scan " } else { "reduce " }.into()];
    pieces.extend(commas(&tiles));
    let head = format!(
        " dim={axis} {reverse}identities=[{}] : {} -> {} (",
        starts.join(", "),
        types(b, &tiles),
        types(b, &results)
    );
    pieces.push(head.into());
    for (i, (x, acc)) in elements.into_iter().zip(accumulators).enumerate() {
        let ty = b.ir_type(x);
        let comma = if i > 0 { ", " } else { "" };
        pieces.extend([
            comma.into(),
            Piece::Arg(x),
            format!(": {ty}, ").into(),
            Piece::Arg(acc),
            format!(": {ty}").into(),
        ]);
    }
    pieces.extend([") ".into(), Piece::Region]);
    b.op(pieces, &results, vec![region], true);
    results
}

/// `reduce` or `scan` with one of Tile IR's operations.
fn known<T: Number>(b: &mut Builder, op: &str, x: Id, axis: i32, start: T, scan: Option<bool>) -> Id {
    let Some(axis) = b.axis(x, axis) else { return WRONG };
    let sign = if matches!(op, "maxi" | "mini") { format!(" {}", T::TYPE.signedness()) } else { String::new() };
    let [result] = fold(b, [x], axis, [start.spell()], scan, |b, [x], [acc]| [binary(b, op, x, acc, &sign)]);
    result
}

fn lettered<T: Number>(op: &str) -> String {
    format!("{op}{}", if T::TYPE.is_float() { 'f' } else { 'i' })
}

impl<T: Number> Tile<T> {
    /// The sum along an axis, of 16-bit floats in f32, of short integers in 32 bits.
    #[track_caller]
    pub fn sum(self, axis: i32) -> Tile<T::Wide> {
        here(|b| {
            let x = widened::<T>(b, self.id);
            Tile::of(known(b, &lettered::<T>("add"), x, axis, T::Wide::ZERO, None))
        })
    }
    /// The product along an axis; types as for the sum.
    #[track_caller]
    pub fn prod(self, axis: i32) -> Tile<T::Wide> {
        here(|b| {
            let x = widened::<T>(b, self.id);
            Tile::of(known(b, &lettered::<T>("mul"), x, axis, T::Wide::ONE, None))
        })
    }
    /// The greatest along an axis, NaNs left out.
    #[track_caller]
    pub fn max(self, axis: i32) -> Tile<T> {
        here(|b| Tile::of(known(b, &lettered::<T>("max"), self.id, axis, T::LEAST, None)))
    }
    /// The least along an axis, NaNs left out.
    #[track_caller]
    pub fn min(self, axis: i32) -> Tile<T> {
        here(|b| Tile::of(known(b, &lettered::<T>("min"), self.id, axis, T::GREATEST, None)))
    }
    /// The index of the greatest along an axis; of equal ones the first. A NaN counts as the least.
    #[track_caller]
    pub fn argmax(self, axis: i32) -> Tile<i32> {
        here(|b| Tile::of(extreme::<T>(b, self.id, axis, true)[1]))
    }
    /// The index of the least along an axis; of equal ones the first. A NaN counts as the greatest.
    #[track_caller]
    pub fn argmin(self, axis: i32) -> Tile<i32> {
        here(|b| Tile::of(extreme::<T>(b, self.id, axis, false)[1]))
    }
    /// The running sums along an axis; types as for the sum.
    #[track_caller]
    pub fn cumsum(self, axis: i32) -> Tile<T::Wide> {
        here(|b| {
            let x = widened::<T>(b, self.id);
            Tile::of(known(b, &lettered::<T>("add"), x, axis, T::Wide::ZERO, Some(false)))
        })
    }
    /// The running products along an axis; types as for the sum.
    #[track_caller]
    pub fn cumprod(self, axis: i32) -> Tile<T::Wide> {
        here(|b| {
            let x = widened::<T>(b, self.id);
            Tile::of(known(b, &lettered::<T>("mul"), x, axis, T::Wide::ONE, Some(false)))
        })
    }
}

impl<T: Integer> Tile<T> {
    /// The exclusive or along an axis.
    #[track_caller]
    pub fn xor_sum(self, axis: i32) -> Tile<T> {
        here(|b| Tile::of(known(b, "xori", self.id, axis, T::ZERO, None)))
    }
    /// The bitwise or along an axis.
    #[track_caller]
    pub fn or_sum(self, axis: i32) -> Tile<T> {
        here(|b| Tile::of(known(b, "ori", self.id, axis, T::ZERO, None)))
    }
}

impl<T: Float> Tile<T> {
    /// `exp(x - max) / sum(exp(x - max))` along an axis, 16-bit floats in f32.
    #[track_caller]
    pub fn softmax(self, axis: i32) -> Tile<T>
    where
        T::Wide: Float,
    {
        let Some(at) = here(|b| b.axis(self.id, axis)) else { return self };
        let x = self.to::<T::Wide>();
        let e = exp(x - x.max(at as i32).expand_dims(at as i32));
        // The sum of a wide type has that type.
        let sum = e.sum(at as i32).to::<T::Wide>();
        (e / sum.expand_dims(at as i32)).to()
    }
}

/// The extreme value and its index: the least one whose element is that value. Each of the two folds takes its elements in any order.
fn extreme<T: Number>(b: &mut Builder, x: Id, axis: i32, greatest: bool) -> [Id; 2] {
    let Some(axis) = b.axis(x, axis) else { return [WRONG; 2] };
    let worst = if greatest { T::LEAST } else { T::GREATEST };
    let x = if T::TYPE.is_float() {
        let (number, worst) = (compare_ids(b, How::Equal, x, x), b.constant(worst, &[]));
        choose(b, number, x, worst)
    } else {
        x
    };
    let shape = b.shape(x);
    let n = shape[axis];
    let ty = <i32 as Elem>::TYPE;
    let numbers = b.compute(ty, &[n], vec![format!("iota : tile<{n}xi32>").into()]);
    let mut along = vec![1; shape.len()];
    along[axis] = n;
    let numbers = b.reshape(numbers, &along);
    let index = b.broadcast_to(numbers, &shape);
    let op = lettered::<T>(if greatest { "max" } else { "min" });
    let value = known(b, &op, x, axis as i32, worst, None);
    let mut one = shape.clone();
    one[axis] = 1;
    let row = b.reshape(value, &one);
    let row = b.broadcast_to(row, &shape);
    let (found, behind) = (compare_ids(b, How::Equal, x, row), b.constant(i32::MAX, &[]));
    let at = choose(b, found, index, behind);
    [value, known(b, "mini", at, axis as i32, i32::MAX, None)]
}

// ---- functions of the user's

impl<T: Elem> Tile<T> {
    /// The elements along an axis folded by an associative function of two tiles.
    #[track_caller]
    pub fn reduce(self, axis: i32, combine: impl Fn(Tile<T>, Tile<T>) -> Tile<T>) -> Tile<T> {
        let Some(at) = here(|b| b.axis(self.id, axis)) else { return Tile::of(WRONG) };
        let mut x = self;
        let mut n = x.shape()[at];
        while n > 1 {
            n /= 2;
            let (first, second) = here(|b| (part(b, x.id, at, 0, n), part(b, x.id, at, 1, n)));
            x = kept(combine(Tile::of(first), Tile::of(second)), first);
        }
        here(|b| {
            let mut shape = b.shape(x.id);
            if at < shape.len() {
                shape.remove(at);
            }
            Tile::of(b.reshape(x.id, &shape))
        })
    }

    /// The running folds along an axis by an associative function of two tiles: element i is the fold of elements 0 to i.
    ///
    /// Source: the parallel prefix network of J. Sklansky, 1960.
    #[track_caller]
    pub fn associative_scan(self, axis: i32, combine: impl Fn(Tile<T>, Tile<T>) -> Tile<T>) -> Tile<T> {
        let Some(at) = here(|b| b.axis(self.id, axis)) else { return Tile::of(WRONG) };
        let shape = self.shape();
        let (n, mut x, mut width) = (shape[at], self, 1);
        while width < n {
            let mut blocks = shape[..at].to_vec();
            blocks.extend([n / (2 * width), 2, width]);
            blocks.extend(&shape[at + 1..]);
            let (first, second, edge) = here(|b| {
                let pairs = b.reshape(x.id, &blocks);
                let (first, second) = (part(b, pairs, at + 1, 0, 1), part(b, pairs, at + 1, 1, 1));
                let last = part(b, first, at + 2, width - 1, 1);
                let whole = b.shape(second);
                (first, second, b.broadcast_to(last, &whole))
            });
            let second = kept(combine(Tile::of(edge), Tile::of(second)), second);
            x = here(|b| {
                let joined = join_along(b, first, second.id, at + 1);
                Tile::of(b.reshape(joined, &shape))
            });
            width *= 2;
        }
        x
    }
}

/// The result of a user's function, in the shape of its argument.
#[track_caller]
fn kept<T: Elem>(result: Tile<T>, like: Id) -> Tile<T> {
    here(|b| {
        let shape = b.shape(like);
        Tile::of(if like == WRONG { WRONG } else { b.broadcast_to(result.id, &shape) })
    })
}

/// How often each of 0 to `bins - 1` occurs among integers, where the mask holds.
#[track_caller]
pub fn histogram<T: Integer>(x: Tile<T>, bins: i32) -> Tile<i32> {
    let flat = x.ravel().expand_dims(1);
    let numbers = arange(0, bins);
    here(|b| {
        let numbers = convert(b, numbers.id, T::TYPE);
        let row = {
            let n = b.shape(numbers);
            b.reshape(numbers, &[1, n.first().copied().unwrap_or(1)])
        };
        let hits = compare_ids(b, How::Equal, flat.id, row);
        let ones = convert(b, hits, <i32 as Elem>::TYPE);
        Tile::of(known(b, "addi", ones, 0, 0i32, None))
    })
}

/// Reductions of conditions along an axis.
impl Tile<bool> {
    /// True where any element along an axis is true.
    #[track_caller]
    pub fn any(self, axis: i32) -> Tile<bool> {
        let found = self.to::<i32>().max(axis);
        here(|b| Tile::of(convert(b, found.id, <bool as Elem>::TYPE)))
    }
    /// True where all elements along an axis are true.
    #[track_caller]
    pub fn all(self, axis: i32) -> Tile<bool> {
        let found = self.to::<i32>().min(axis);
        here(|b| Tile::of(convert(b, found.id, <bool as Elem>::TYPE)))
    }
}
