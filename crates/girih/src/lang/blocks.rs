//! Blocks of arrays that are described by their shape and their strides: block pointers and tensor descriptors.
//!
//! Both become tiles of addresses with masks. Positions are in 64 bits.

use std::any::Any;

use super::builder::{Id, here};
use super::control::{Carried, Leaf, saved};
use super::element::{Constant, Elem, PtrMut};
use super::memory::{load, load_where, store, store_where};
use super::operators::{How, binary, compare_ids, offset};
use super::shapes::arange;
use super::tile::{Address, Operand, Tile, scalar};

/// An extent, a stride or an offset: a number, or a scalar of a kernel.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an extent, a stride or an offset",
    label = "expected an i32 or an i64, or a tile of one"
)]
pub trait Position {
    #[doc(hidden)]
    fn position(self) -> Tile<i64>;
}
impl Position for i32 {
    #[track_caller]
    fn position(self) -> Tile<i64> {
        scalar(i64::from(self))
    }
}
impl Position for i64 {
    #[track_caller]
    fn position(self) -> Tile<i64> {
        scalar(self)
    }
}
impl Position for Tile<i32> {
    #[track_caller]
    fn position(self) -> Tile<i64> {
        self.to::<i64>()
    }
}
impl Position for Tile<i64> {
    fn position(self) -> Tile<i64> {
        self
    }
}

/// A position for each of `N` dimensions: an array, or a tuple where some are numbers and some are tiles.
#[diagnostic::on_unimplemented(
    message = "expected {N} extents, strides or offsets, found `{Self}`",
    label = "not one for each of {N} dimensions",
    note = "an array of one type, `[m, n]`, or a tuple, `(n, 1)`; numbers are i32 or i64"
)]
pub trait Positions<const N: usize> {
    #[doc(hidden)]
    fn positions(self) -> [Tile<i64>; N];
}
impl<P: Position, const N: usize> Positions<N> for [P; N] {
    #[track_caller]
    fn positions(self) -> [Tile<i64>; N] {
        self.map(Position::position)
    }
}
macro_rules! tuples {
    ($($n:literal: $($t:ident $i:tt)*;)*) => {$(
        impl<$($t: Position),*> Positions<$n> for ($($t,)*) {
            #[track_caller]
            fn positions(self) -> [Tile<i64>; $n] {
                [$(self.$i.position()),*]
            }
        }
    )*};
}
tuples! { 1: A 0; 2: A 0 B 1; 3: A 0 B 1 C 2; 4: A 0 B 1 C 2 D 3; 5: A 0 B 1 C 2 D 3 E 4; }

/// An array, and the extents of the blocks that are taken out of it.
#[derive(Clone, Copy)]
struct Blocked<P, const N: usize> {
    base: Tile<P>,
    shape: [Tile<i64>; N],
    strides: [Tile<i64>; N],
    block: [i32; N],
}

impl<P: Address, const N: usize> Blocked<P, N> {
    #[track_caller]
    fn new(base: Tile<P>, shape: impl Positions<N>, strides: impl Positions<N>, block: [i32; N]) -> Blocked<P, N> {
        let array = Blocked { base, shape: shape.positions(), strides: strides.positions(), block };
        here(|b| {
            if !b.shape(base.id).is_empty() {
                let message = format!("the base of a block must be one address, not {}", b.describe(base.id));
                b.fail(message, None);
            }
            let scalars = array.shape.iter().chain(&array.strides).all(|x| b.shape(x.id).is_empty());
            if !scalars {
                b.fail("an extent or a stride of a block must be a scalar", None);
            }
        });
        array
    }

    /// The addresses of the block at `offsets`, and which of them lie in the array along the checked dimensions.
    #[track_caller]
    fn tile(&self, offsets: &[Tile<i64>; N], checked: &[usize]) -> (Tile<P>, Option<Tile<bool>>) {
        if checked.iter().any(|axis| *axis >= N) {
            let message = format!("the dimensions of a block of {N} are 0 to {}, not {checked:?}", N.saturating_sub(1));
            here(|b| b.fail(message, None));
        }
        let (mut addresses, mut mask) = (self.base.id, None);
        for axis in 0..N {
            let mut lanes = [1; N];
            lanes[axis] = self.block[axis];
            let at = arange(0, self.block[axis]).to::<i64>().reshape(lanes) + offsets[axis];
            let by = at * self.strides[axis];
            here(|b| {
                addresses = offset(b, addresses, by.id);
                if checked.contains(&axis) {
                    let zero = b.constant(0i64, &[]);
                    let begun = compare_ids(b, How::GreaterOrEqual, at.id, zero);
                    let before_end = compare_ids(b, How::Less, at.id, self.shape[axis].id);
                    for condition in [begun, before_end] {
                        mask = Some(mask.map_or(condition, |so_far| binary(b, "andi", so_far, condition, "")));
                    }
                }
            });
        }
        (Tile::of(addresses), mask.map(Tile::of))
    }

    #[track_caller]
    fn load(&self, offsets: &[Tile<i64>; N], checked: &[usize], other: impl Operand<P::Element>) -> Tile<P::Element> {
        match self.tile(offsets, checked) {
            (addresses, Some(mask)) => load_where(addresses, mask, other),
            (addresses, None) => load(addresses),
        }
    }
}

impl<T: Elem, const N: usize> Blocked<PtrMut<T>, N> {
    #[track_caller]
    fn store(&self, offsets: &[Tile<i64>; N], checked: &[usize], value: impl Operand<T>) {
        match self.tile(offsets, checked) {
            (addresses, Some(mask)) => store_where(addresses, value, mask),
            (addresses, None) => store(addresses, value),
        }
    }
}

/// The result of [`make_block_ptr`]: a block at offsets in an array, which can be advanced.
#[derive(Clone, Copy)]
pub struct BlockPtr<P, const N: usize> {
    array: Blocked<P, N>,
    offsets: [Tile<i64>; N],
}

/// A block of `block` elements at `offsets` of an array of `shape` and `strides`, counted in elements.
///
/// Shape, strides and offsets have an element for each dimension: `[m, n]`, or `(n, 1)` where not all are tiles.
#[track_caller]
pub fn make_block_ptr<P: Address, const N: usize>(
    base: Tile<P>,
    shape: impl Positions<N>,
    strides: impl Positions<N>,
    offsets: impl Positions<N>,
    block: [i32; N],
) -> BlockPtr<P, N> {
    BlockPtr { array: Blocked::new(base, shape, strides, block), offsets: offsets.positions() }
}

impl<P: Address, const N: usize> BlockPtr<P, N> {
    /// Loads the block, which must lie in the array.
    #[track_caller]
    pub fn load(self) -> Tile<P::Element> {
        load(self.array.tile(&self.offsets, &[]).0)
    }
    /// Loads the block, with `other` where it leaves the array along the dimensions `checked`.
    #[track_caller]
    pub fn load_checked(self, checked: &[usize], other: impl Operand<P::Element>) -> Tile<P::Element> {
        self.array.load(&self.offsets, checked, other)
    }
    /// The block that lies further by so much along each dimension.
    #[track_caller]
    pub fn advance(self, by: impl Positions<N>) -> BlockPtr<P, N> {
        let by = by.positions();
        BlockPtr { offsets: std::array::from_fn(|axis| self.offsets[axis] + by[axis]), ..self }
    }
}
impl<T: Elem, const N: usize> BlockPtr<PtrMut<T>, N> {
    /// Stores the block, which must lie in the array.
    #[track_caller]
    pub fn store(self, value: impl Operand<T>) {
        self.array.store(&self.offsets, &[], value);
    }
    /// Stores the part of the block that lies in the array along the dimensions `checked`.
    #[track_caller]
    pub fn store_checked(self, value: impl Operand<T>, checked: &[usize]) {
        self.array.store(&self.offsets, checked, value);
    }
}

/// The result of [`make_tensor_descriptor`]: an array that is read and written in blocks, at any offsets.
#[derive(Clone, Copy)]
pub struct TensorDescriptor<P, const N: usize>(Blocked<P, N>);

/// An array of `shape` and `strides`, counted in elements, read and written in blocks of `block` elements.
#[track_caller]
pub fn make_tensor_descriptor<P: Address, const N: usize>(
    base: Tile<P>,
    shape: impl Positions<N>,
    strides: impl Positions<N>,
    block: [i32; N],
) -> TensorDescriptor<P, N> {
    TensorDescriptor(Blocked::new(base, shape, strides, block))
}

/// All dimensions.
fn every<const N: usize>() -> [usize; N] {
    std::array::from_fn(|axis| axis)
}

impl<P: Address, const N: usize> TensorDescriptor<P, N> {
    /// The block at `offsets`, with 0 where it leaves the array.
    #[track_caller]
    pub fn load(self, offsets: impl Positions<N>) -> Tile<P::Element>
    where
        P::Element: Constant,
    {
        self.0.load(&offsets.positions(), &every::<N>(), P::Element::ZERO)
    }
}
impl<T: Elem, const N: usize> TensorDescriptor<PtrMut<T>, N> {
    /// Writes the part of the block at `offsets` that lies in the array.
    #[track_caller]
    pub fn store(self, offsets: impl Positions<N>, value: impl Operand<T>) {
        self.0.store(&offsets.positions(), &every::<N>(), value);
    }
}

impl<P: Address, const N: usize> Blocked<P, N> {
    fn leaves(&self, out: &mut Vec<Leaf>) {
        self.base.leaves(out);
        self.shape.iter().chain(&self.strides).for_each(|x| x.leaves(out));
        out.push(Leaf::Value(format!("a block of {:?}", self.block)));
    }
    fn refill(&mut self, tiles: &mut dyn Iterator<Item = Id>) {
        self.base.refill(tiles);
        self.shape.iter_mut().chain(&mut self.strides).for_each(|x| x.refill(tiles));
    }
}

impl<P: Address, const N: usize> Carried for BlockPtr<P, N> {
    fn leaves(&self, out: &mut Vec<Leaf>) {
        self.array.leaves(out);
        self.offsets.iter().for_each(|x| x.leaves(out));
    }
    fn refill(&mut self, tiles: &mut dyn Iterator<Item = Id>) {
        self.array.refill(tiles);
        self.offsets.iter_mut().for_each(|x| x.refill(tiles));
    }
    saved!();
}
impl<P: Address, const N: usize> Carried for TensorDescriptor<P, N> {
    fn leaves(&self, out: &mut Vec<Leaf>) {
        self.0.leaves(out);
    }
    fn refill(&mut self, tiles: &mut dyn Iterator<Item = Id>) {
        self.0.refill(tiles);
    }
    saved!();
}
