//! Lines of a core's first cache: which of the pieces that a loop reads or writes it keeps at once.

use std::collections::BTreeSet;

use super::affine;
use super::tile_nest::Extent;
use crate::index::gcd;
use crate::loops::ir::{Mem, ValId};

/// Bytes that the processor brings at once.
pub const LINE: u64 = 64;

/// Addresses this many bytes apart share the few places that the first cache has for them: it finds a line by the part of the address
/// that is the same in all views of a page.
pub const PERIOD: u64 = 4096;

/// How many pieces of `bytes` bytes, `apart` bytes from each other, a first cache of `cache` bytes keeps.
fn pieces_kept(cache: u64, apart: u64, bytes: u64) -> u64 {
    let ways = cache / PERIOD;
    let places = PERIOD / gcd(apart.min(1 << 62) as i64, PERIOD as i64).unsigned_abs().max(1);
    // A piece seldom begins with a line, and shares its last one with the next piece where that is near.
    let of_piece = ((bytes.div_ceil(LINE) + 1) * LINE).min(apart.max(LINE)).max(LINE);
    ways * places.min((PERIOD / of_piece).max(1))
}

/// True if a first cache of `cache` bytes keeps what `rows` rows that lie side by side read of all terms along an axis, where it lies. An
/// index that mentions a value of `varying` may depend on the axis.
pub fn keeps_rows(cache: u64, mem: &Mem, rows: u64, (axis, terms): Extent, varying: &BTreeSet<ValId>) -> bool {
    let apart = affine::coef(&mem.index, axis, varying).and_then(|c| c.as_const());
    let bytes = mem.elem.bytes();
    apart.is_some_and(|c| terms <= pieces_kept(cache, c.unsigned_abs().saturating_mul(bytes), rows * bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_a_power_of_two_apart_share_few_places() {
        let kept = |apart, bytes| pieces_kept(48 << 10, apart, bytes);
        // Planes of 14 x 14 and of 16 x 16 elements, and a row of 1024 and of 1000.
        assert_eq!([kept(784, 32), kept(1024, 32), kept(4096, 32), kept(4000, 32)], [384, 48, 12, 384]);
        // Pieces side by side, and pieces longer than the period.
        assert_eq!([kept(32, 32), kept(1 << 20, 1 << 20)], [768, 12]);
    }
}
