//! Tiles as a kernel's author uses them, and the operands that can stand beside them.

use std::marker::PhantomData;

use super::builder::{Builder, Id, here};
use super::element::{Constant, Elem, Number, Ptr, PtrMut};

/// A scalar or an array of elements of `T` that a kernel computes.
pub struct Tile<T> {
    pub(crate) id: Id,
    element: PhantomData<T>,
}

impl<T> Clone for Tile<T> {
    fn clone(&self) -> Tile<T> {
        *self
    }
}
impl<T> Copy for Tile<T> {}

impl<T: Elem> std::fmt::Debug for Tile<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tile<{}>", T::TYPE.name)
    }
}

impl<T: Elem> Tile<T> {
    pub(crate) fn of(id: Id) -> Tile<T> {
        Tile { id, element: PhantomData }
    }
    /// The extents; empty for a scalar.
    #[track_caller]
    pub fn shape(self) -> Vec<i32> {
        here(|b| b.shape(self.id))
    }
}

/// An argument that may be a tile of `T` or a number.
#[diagnostic::on_unimplemented(message = "expected a tile or a number of `{T}`, found `{Self}`", label = "not a `{T}`")]
pub trait Operand<T> {
    #[doc(hidden)]
    fn id(self, b: &mut Builder) -> Id;
}
impl<T: Elem> Operand<T> for Tile<T> {
    fn id(self, _: &mut Builder) -> Id {
        self.id
    }
}
impl<T: Constant> Operand<T> for T {
    fn id(self, b: &mut Builder) -> Id {
        b.constant(self, &[])
    }
}

/// An address, from which one can load.
pub trait Address: Elem {
    type Element: Elem;
}
impl<T: Elem> Address for Ptr<T> {
    type Element = T;
}
impl<T: Elem> Address for PtrMut<T> {
    type Element = T;
}

impl<T: Elem> Tile<PtrMut<T>> {
    /// The same address, to read from.
    pub fn read_only(self) -> Tile<Ptr<T>> {
        Tile::of(self.id)
    }
}

/// A scalar of a number of Rust, or a tile as it is: the start of a variable that a loop changes.
#[track_caller]
pub fn scalar<T: Number>(value: T) -> Tile<T> {
    here(|b| Tile::of(b.constant(value, &[])))
}
