//! Where the block is, new tiles and their shapes, products and promises.

use super::builder::{Builder, Id, Piece, WRONG, commas, here};
use super::element::{Constant, Elem, Kind, Number};
use super::operators::{binary, convert};
use super::tile::{Operand, Tile};

pub use super::tile::scalar;

fn coordinate(b: &mut Builder, op: &str, axis: i32, hint: &str) -> Tile<i32> {
    if !(0..3).contains(&axis) {
        return Tile::of(b.fail(format!("a grid has the axes 0, 1 and 2, not {axis}"), None));
    }
    let results = ["x", "y", "z"].map(|c| b.value(Some(<i32 as Elem>::TYPE), &[], &format!("{hint}_{c}")));
    b.op(vec![format!("{op} : tile<i32>").into()], &results, vec![], true);
    Tile::of(results[axis as usize])
}

/// The index of this block of the grid along an axis, 0, 1 or 2.
#[track_caller]
pub fn program_id(axis: i32) -> Tile<i32> {
    here(|b| coordinate(b, "get_tile_block_id", axis, "pid"))
}
/// The number of blocks of the grid along an axis, 0, 1 or 2.
#[track_caller]
pub fn num_programs(axis: i32) -> Tile<i32> {
    here(|b| coordinate(b, "get_num_tile_blocks", axis, "programs"))
}

/// The integers `start` to `end - 1`: a tile whose length is a power of two.
#[track_caller]
pub fn arange(start: i32, end: i32) -> Tile<i32> {
    here(|b| {
        let length = i64::from(end) - i64::from(start);
        if length < 1 {
            return Tile::of(b.fail(format!("arange from {start} to {end} is empty"), None));
        }
        let n = length.min(i64::from(i32::MAX)) as i32;
        if !b.check_shape(&[n], "the length of arange") {
            return Tile::of(WRONG);
        }
        let ty = <i32 as Elem>::TYPE;
        let numbers = b.compute(ty, &[n], vec![format!("iota : tile<{n}xi32>").into()]);
        if start == 0 {
            return Tile::of(numbers);
        }
        let start = b.constant(start, &[]);
        Tile::of(binary(b, "addi", numbers, start, ""))
    })
}

/// The extents of a tile: an array of numbers, or one number.
pub trait Shape {
    #[doc(hidden)]
    fn extents(self) -> Vec<i32>;
}
impl<const N: usize> Shape for [i32; N] {
    fn extents(self) -> Vec<i32> {
        self.to_vec()
    }
}
impl Shape for i32 {
    fn extents(self) -> Vec<i32> {
        vec![self]
    }
}
impl Shape for Vec<i32> {
    fn extents(self) -> Vec<i32> {
        self
    }
}

/// A tile that holds a number, or a scalar, everywhere.
#[track_caller]
pub fn full<T: Elem>(shape: impl Shape, value: impl Operand<T>) -> Tile<T> {
    here(|b| {
        let shape = shape.extents();
        let value = value.id(b);
        if value == WRONG || !b.check_shape(&shape, "a tile's shape") {
            return Tile::of(WRONG);
        }
        Tile::of(b.broadcast_to(value, &shape))
    })
}
/// A tile of zeros.
#[track_caller]
pub fn zeros<T: Constant>(shape: impl Shape) -> Tile<T> {
    let shape = shape.extents();
    here(|b| Tile::of(if b.check_shape(&shape, "a tile's shape") { b.constant(T::ZERO, &shape) } else { WRONG }))
}
/// A tile of the shape of `x` that holds a number everywhere.
#[track_caller]
pub fn full_like<T: Constant>(x: Tile<T>, value: T) -> Tile<T> {
    here(|b| {
        let shape = b.shape(x.id);
        Tile::of(if x.id == WRONG { WRONG } else { b.constant(value, &shape) })
    })
}
/// A tile of zeros of the shape of `x`.
#[track_caller]
pub fn zeros_like<T: Constant>(x: Tile<T>) -> Tile<T> {
    full_like(x, T::ZERO)
}

impl<T: Elem> Tile<T> {
    /// The elements in row-major order in another shape, of as many elements.
    #[track_caller]
    pub fn reshape(self, shape: impl Shape) -> Tile<T> {
        here(|b| {
            let shape = shape.extents();
            if self.id == WRONG || !b.check_shape(&shape, "the new shape") {
                return Tile::of(WRONG);
            }
            let count = |shape: &[i32]| shape.iter().map(|n| i64::from(*n)).product::<i64>();
            let (own, new) = (count(&b.shape(self.id)), count(&shape));
            if own != new {
                let message = format!("{} has {own} elements, but the shape {shape:?} has {new}", b.describe(self.id));
                return Tile::of(b.fail(message, None));
            }
            Tile::of(b.reshape(self.id, &shape))
        })
    }
    /// All elements in one dimension, in row-major order.
    #[track_caller]
    pub fn ravel(self) -> Tile<T> {
        here(|b| {
            let count = b.shape(self.id).iter().product();
            Tile::of(b.reshape(self.id, &[count]))
        })
    }
    /// With a dimension of extent 1 at `axis` of the result: of `[64]`, `expand_dims(1)` is a column `[64, 1]`.
    #[track_caller]
    pub fn expand_dims(self, axis: i32) -> Tile<T> {
        here(|b| {
            let mut shape = b.shape(self.id);
            let rank = shape.len() as i32 + 1;
            if self.id == WRONG {
                return self;
            }
            if axis < -rank || axis >= rank {
                let message = format!("the axis {axis} is out of range for a result of {rank} dimensions");
                return Tile::of(b.fail(message, None));
            }
            shape.insert(axis.rem_euclid(rank) as usize, 1);
            Tile::of(b.reshape(self.id, &shape))
        })
    }
    /// A tile of one dimension as a column, `[N, 1]`.
    #[track_caller]
    pub fn column(self) -> Tile<T> {
        self.expand_dims(-1)
    }
    /// A tile of one dimension as a row, `[1, N]`.
    #[track_caller]
    pub fn row(self) -> Tile<T> {
        self.expand_dims(0)
    }
    /// Repeated along dimensions of extent 1 until it has `shape`; leading dimensions are added.
    #[track_caller]
    pub fn broadcast_to(self, shape: impl Shape) -> Tile<T> {
        here(|b| {
            let shape = shape.extents();
            let fine = self.id != WRONG && b.check_shape(&shape, "a tile's shape");
            Tile::of(if fine { b.broadcast_to(self.id, &shape) } else { WRONG })
        })
    }
    /// The dimensions in the order given.
    #[track_caller]
    pub fn permute<const N: usize>(self, order: [i32; N]) -> Tile<T> {
        here(|b| {
            let shape = b.shape(self.id);
            if self.id == WRONG {
                return self;
            }
            let mut sorted = order;
            sorted.sort_unstable();
            if N != shape.len() || sorted.iter().enumerate().any(|(i, d)| i as i32 != *d) {
                let message = format!(
                    "{order:?} is not a permutation of the {} dimensions of {}",
                    shape.len(),
                    b.describe(self.id)
                );
                return Tile::of(b.fail(message, None));
            }
            let new: Vec<i32> = order.iter().map(|d| shape[*d as usize]).collect();
            let types = format!(" {order:?} : {} -> {}", b.ir_type(self.id), T::TYPE.tile_ir(&new));
            Tile::of(b.compute(T::TYPE, &new, vec!["permute ".into(), self.id.into(), types.into()]))
        })
    }
    /// The transpose of a matrix.
    #[track_caller]
    pub fn t(self) -> Tile<T> {
        self.permute([1, 0])
    }
    /// The two halves of a last dimension of extent 2, without that dimension.
    #[track_caller]
    pub fn split(self) -> (Tile<T>, Tile<T>) {
        here(|b| {
            let shape = b.shape(self.id);
            if self.id == WRONG || shape.last() != Some(&2) {
                let message = format!("split needs a last dimension of extent 2, but this is {}", b.describe(self.id));
                let wrong = if self.id == WRONG { WRONG } else { b.fail(message, None) };
                return (Tile::of(wrong), Tile::of(wrong));
            }
            let axis = shape.len() - 1;
            let halves = [0, 1].map(|i| {
                let half = part(b, self.id, axis, i, 1);
                b.reshape(half, &shape[..axis])
            });
            (Tile::of(halves[0]), Tile::of(halves[1]))
        })
    }
}

/// The `number`-th stretch of `length` along an axis.
pub(super) fn part(b: &mut Builder, x: Id, axis: usize, number: i32, length: i32) -> Id {
    if x == WRONG {
        return WRONG;
    }
    let (ty, mut shape) = (b.ty(x), b.shape(x));
    let at: Vec<Id> = (0..shape.len()).map(|i| b.constant(if i == axis { number } else { 0 }, &[])).collect();
    shape[axis] = length;
    let types = format!("] : {} -> {}", b.ir_type(x), ty.tile_ir(&shape));
    let mut pieces: Vec<Piece> = vec!["extract ".into(), x.into(), "[".into()];
    pieces.extend(commas(&at));
    pieces.push(types.into());
    b.compute(ty, &shape, pieces)
}

pub(super) fn join_along(b: &mut Builder, x: Id, y: Id, axis: usize) -> Id {
    if x == WRONG || y == WRONG {
        return WRONG;
    }
    let (ty, mut shape) = (b.ty(x), b.shape(x));
    shape[axis] *= 2;
    let types = format!(" dim = {axis} : {}, {} -> {}", b.ir_type(x), b.ir_type(y), ty.tile_ir(&shape));
    b.compute(ty, &shape, vec!["cat ".into(), x.into(), ", ".into(), y.into(), types.into()])
}

/// Two tiles of one shape, one after the other along an axis.
#[track_caller]
pub fn cat<T: Elem>(x: Tile<T>, y: Tile<T>, axis: i32) -> Tile<T> {
    here(|b| {
        let Some(axis) = b.axis(x.id, axis) else { return Tile::of(WRONG) };
        if y.id != WRONG && b.shape(x.id) != b.shape(y.id) {
            let message = format!("cat joins tiles of equal shapes, not {} and {}", b.describe(x.id), b.describe(y.id));
            return Tile::of(b.fail(message, None));
        }
        Tile::of(join_along(b, x.id, y.id, axis))
    })
}
/// Two tiles side by side in a new last dimension of extent 2.
#[track_caller]
pub fn join<T: Elem>(x: Tile<T>, y: Tile<T>) -> Tile<T> {
    here(|b| {
        let ([x, y], shape) = b.together([x.id, y.id]);
        let longer: Vec<i32> = shape.iter().copied().chain([1]).collect();
        let (x, y) = (b.reshape(x, &longer), b.reshape(y, &longer));
        Tile::of(join_along(b, x, y, shape.len()))
    })
}
/// The elements of two tiles in turns along the last dimension.
#[track_caller]
pub fn interleave<T: Elem>(x: Tile<T>, y: Tile<T>) -> Tile<T> {
    let joined = join(x, y);
    here(|b| {
        let mut shape = b.shape(joined.id);
        if joined.id == WRONG || shape.len() < 2 {
            return joined;
        }
        shape.pop();
        if let Some(last) = shape.last_mut() {
            *last *= 2;
        }
        Tile::of(b.reshape(joined.id, &shape))
    })
}

// ---- products

/// Element types whose matrices can be multiplied, with the type of the sums.
pub trait Multiplied: Constant {
    type Sum: Number;
}
macro_rules! multiplied {
    ($($t:ident $sum:ident;)*) => {$(impl Multiplied for $t { type Sum = $sum; })*};
}
use super::element::{F8E4M3, F8E5M2, bf16, f16};
multiplied! { F8E4M3 f32; F8E5M2 f32; f16 f32; bf16 f32; f32 f32; f64 f64; i8 i32; u8 i32; }

/// The matrix product `[M, K]` by `[K, N]`, or `[B, M, K]` by `[B, K, N]`.
#[track_caller]
pub fn dot<T: Multiplied>(x: Tile<T>, y: Tile<T>) -> Tile<T::Sum> {
    here(|b| product(b, x, y, None))
}
/// The matrix product plus `sum`, which has its shape.
#[track_caller]
pub fn dot_add<T: Multiplied>(x: Tile<T>, y: Tile<T>, sum: Tile<T::Sum>) -> Tile<T::Sum> {
    here(|b| product(b, x, y, Some(sum.id)))
}
fn product<T: Multiplied>(b: &mut Builder, x: Tile<T>, y: Tile<T>, sum: Option<Id>) -> Tile<T::Sum> {
    let (x, y) = (x.id, y.id);
    if [Some(x), Some(y), sum].contains(&Some(WRONG)) {
        return Tile::of(WRONG);
    }
    let (left, right) = (b.shape(x), b.shape(y));
    let n = left.len();
    let matrices = (2..=3).contains(&n) && right.len() == n;
    if !matrices || left[n - 1] != right[n - 2] || left[..n - 2] != right[..n - 2] {
        let message = format!("{} and {} cannot be multiplied", b.describe(x), b.describe(y));
        return Tile::of(b.fail(message, Some("a product is of [M, K] and [K, N]: the inner dimensions are equal")));
    }
    let mut shape = left;
    shape[n - 1] = right[n - 1];
    let sum = match sum {
        None => b.constant(T::Sum::ZERO, &shape),
        Some(sum) if b.shape(sum) == shape => sum,
        Some(sum) => {
            let message = format!("the sum is {}, but the product has the shape {shape:?}", b.describe(sum));
            return Tile::of(b.fail(message, None));
        }
    };
    let (head, sign) = match T::TYPE.kind {
        Kind::Float => ("mmaf ", String::new()),
        _ => ("mmai ", format!(" {0} {0}", T::TYPE.signedness())),
    };
    let types = format!("{sign} : {}, {}, {}", b.ir_type(x), b.ir_type(y), b.ir_type(sum));
    let pieces = vec![head.into(), x.into(), ", ".into(), y.into(), ", ".into(), sum.into(), types.into()];
    Tile::of(b.compute(<T::Sum as Elem>::TYPE, &shape, pieces))
}

/// A promise that a scalar, a number or an address, is divisible by a power of two, an address in bytes.
#[track_caller]
pub fn multiple_of<T: Elem>(x: Tile<T>, divisor: i32) -> Tile<T> {
    here(|b| {
        if x.id == WRONG || !b.check_shape(&[divisor], "a divisor") || !b.shape(x.id).is_empty() {
            return x;
        }
        let types = format!(" : {}", b.ir_type(x.id));
        Tile::of(b.compute(T::TYPE, &[], vec![format!("assume div_by<{divisor}>, ").into(), x.id.into(), types.into()]))
    })
}

pub(super) fn widened<T: Number>(b: &mut Builder, x: Id) -> Id {
    convert(b, x, <T::Wide as Elem>::TYPE)
}
