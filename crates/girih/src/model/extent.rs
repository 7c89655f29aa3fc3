//! Index expressions over symbols whose values are known: extents, grids, bytes and work of a run.

pub use girih_compiler::graph::bind::eval_exact as value;
use girih_compiler::index::Ix;

/// A shape whose extents are known and not negative.
pub fn shape(shape: &[Ix], symbols: &[i64]) -> Option<Vec<u64>> {
    shape.iter().map(|d| value(d, symbols).and_then(|n| u64::try_from(n).ok())).collect()
}
