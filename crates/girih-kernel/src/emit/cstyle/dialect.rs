//! The differences between the C-like languages that we print, as data.
//!
//! In: nothing. Out: a [`Dialect`], one constant for each language (`c::DIALECT`, `cuda::DIALECT`), which the rest of
//! this folder asks. For example `fma_f32` is a helper of GNU C, and CUDA's own `__fmaf_rn`.
//!
//! Invariant: a dialect's own function computes what `num::eval` says of the operation, whatever the function's name.

use super::support::Helper;
use crate::num::DType;

/// A base type: its name in helpers, its spelling, and whether the name is defined as the spelling or the spelling is
/// printed.
pub struct Base {
    pub name: &'static str,
    pub spelling: &'static str,
    pub defined: bool,
}

/// A language's own implementation of a helper.
pub enum Own {
    /// A function of the language; it begins with two `_`, so no user's name is the same.
    Intrinsic(&'static str),
    /// A helper with a body of the language's own.
    Helper(Helper),
}

pub struct Dialect {
    pub bases: &'static [Base],
    /// The expansion of `INLINE`, which stands before helper functions.
    pub inline: &'static str,
    /// Before long functions, which are called, and before those of the soft block.
    pub outlined: &'static str,
    pub soft: &'static str,
    /// Before functions of the soft block that a unit may not call.
    pub soft_unused: &'static str,
    /// Leading zeros of a `uint64_t`.
    pub clzll: &'static str,
    /// True if pointers to elements may be unaligned, through types of their own.
    pub unaligned: bool,
    /// True if signed integers wrap; otherwise arithmetic on them uses unsigned integers.
    pub wraps: bool,
    /// True if indices are `int` as far as they fit.
    pub int_indices: bool,
    /// The cost in instructions of a test of the usual case and a branch. On a GPU nothing is reordered across the
    /// branch, and a thread waits for each of its elements in turn.
    pub branch: u32,
    /// Infinities and canonical NaNs, of f32 and of f64.
    pub special: fn(dtype: DType, bits: u64) -> String,
    /// Returns the language's own implementation of a helper, by the helper's name.
    pub own: fn(name: &str) -> Option<Own>,
    /// The cast to an unsigned integer of `bits` bits, in an index expression.
    pub unsigned: fn(bits: u32) -> String,
    /// The name of the index helper `min`, `max`, `floordiv` or `floormod`.
    pub index_helper: fn(name: &'static str) -> &'static str,
}

impl Dialect {
    /// The spelling of a base type, and its definition if it needs one.
    pub fn base(&self, name: &str) -> Option<&'static Base> {
        self.bases.iter().find(|b| b.name == name)
    }
}
