//! The functions that are one operation of ATen each.

mod elementwise;
mod neural;
mod shape;

pub use elementwise::{ARITHMETIC, COMPARISON};
pub use neural::{ACTIVATIONS, INNER, LAYERS};
pub use shape::{PICKING, PRODUCTS, REDUCTIONS, SHAPE};
