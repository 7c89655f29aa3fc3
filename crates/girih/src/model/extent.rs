//! Index expressions over symbols whose values are known: extents, grids, bytes and work of a run.

use girih_compiler::index::Ix;

/// The value of an expression over symbols; `None` where a step leaves 64 bits or the expression holds anything else.
pub fn value(ix: &Ix, symbols: &[i64]) -> Option<i64> {
    i64::try_from(exact(ix, symbols)?).ok()
}

fn exact(ix: &Ix, symbols: &[i64]) -> Option<i128> {
    let two = |a: &Ix, b: &Ix| Some((exact(a, symbols)?, exact(b, symbols)?));
    match ix {
        Ix::Const(c) => Some(i128::from(*c)),
        Ix::Val { val, .. } => symbols.get(val.0 as usize).map(|&s| i128::from(s)),
        Ix::Axis(_) | Ix::Block(_) | Ix::Grid(_) => None,
        Ix::Add(a, b) => two(a, b).and_then(|(a, b)| a.checked_add(b)),
        Ix::Sub(a, b) => two(a, b).and_then(|(a, b)| a.checked_sub(b)),
        Ix::Mul(a, b) => two(a, b).and_then(|(a, b)| a.checked_mul(b)),
        Ix::FloorDiv(a, b) => two(a, b).filter(|&(_, b)| b > 0).map(|(a, b)| a.div_euclid(b)),
        Ix::Mod(a, b) => two(a, b).filter(|&(_, b)| b > 0).map(|(a, b)| a.rem_euclid(b)),
        Ix::Min(a, b) => two(a, b).map(|(a, b)| a.min(b)),
        Ix::Max(a, b) => two(a, b).map(|(a, b)| a.max(b)),
    }
}

/// A shape whose extents are known and not negative.
pub fn shape(shape: &[Ix], symbols: &[i64]) -> Option<Vec<u64>> {
    shape.iter().map(|d| value(d, symbols).and_then(|n| u64::try_from(n).ok())).collect()
}
