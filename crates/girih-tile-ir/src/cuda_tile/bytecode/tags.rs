//! The numbers of the format: sections, types, attributes, debug locations, and the bits of flag words.

use crate::num::DType;

/// The first version that has a feature.
pub type Since = (u8, u8);

/// The sections of a file, by number.
pub mod section {
    /// Ends the file; has neither length nor contents.
    pub const END: u8 = 0;
    pub const STRING: u8 = 1;
    pub const FUNC: u8 = 2;
    pub const DEBUG: u8 = 3;
    pub const CONSTANT: u8 = 4;
    pub const TYPE: u8 = 5;
    pub const GLOBAL: u8 = 6;
    /// Since 13.3.
    pub const PRODUCER: u8 = 7;
    /// A bit in the section's number: an alignment follows the length, and then padding up to it.
    pub const ALIGNED: u8 = 0x80;
}

/// The number of the only operation that is in files with previews alone.
pub const PREVIEW_CALL: u64 = 0x4002;

/// The byte that fills padding; readers skip any bytes there.
pub const PADDING: u8 = 0xCB;

/// Element types, with their tags.
pub const ELEMENTS: [(u64, DType, Since); 16] = [
    (0, DType::I1, (13, 1)),
    (1, DType::I8, (13, 1)),
    (2, DType::I16, (13, 1)),
    (3, DType::I32, (13, 1)),
    (4, DType::I64, (13, 1)),
    (5, DType::F16, (13, 1)),
    (6, DType::BF16, (13, 1)),
    (7, DType::F32, (13, 1)),
    (8, DType::TF32, (13, 1)),
    (9, DType::F64, (13, 1)),
    (10, DType::F8E4M3FN, (13, 1)),
    (11, DType::F8E5M2, (13, 1)),
    (18, DType::F8E8M0FNU, (13, 2)),
    (19, DType::F4E2M1FN, (13, 3)),
    (22, DType::I4, (13, 3)),
    (130, DType::F8E5M3FNU, (13, 4)),
];

/// Tags of all other types.
pub mod types {
    pub const POINTER: u64 = 12;
    pub const TILE: u64 = 13;
    pub const TENSOR_VIEW: u64 = 14;
    pub const PARTITION_VIEW: u64 = 15;
    pub const FUNCTION: u64 = 16;
    pub const TOKEN: u64 = 17;
    /// Since 13.3.
    pub const GATHER_SCATTER_VIEW: u64 = 20;
    /// Since 13.3.
    pub const STRIDED_VIEW: u64 = 21;
}

/// A view begins with a word of flags (bit 0: a padding value is given) instead of a byte in its middle.
pub const VIEW_FLAGS: Since = (13, 3);

/// Pointers and tensor views begin with a word of flags (bit 0: a pointer attribute ends them).
pub const POINTER_FLAGS: Since = (13, 4);

/// Pointers carry the kind of their memory: that of one device or of several.
pub const POINTER_KINDS: Since = (13, 5);

/// The number that stands for a dynamic extent or stride.
pub const DYNAMIC: i64 = i64::MIN;

/// Tags of attributes whose tag tells their kind.
pub mod attribute {
    pub const INTEGER: u64 = 1;
    pub const FLOAT: u64 = 2;
    pub const BOOL: u64 = 3;
    pub const TYPE: u64 = 4;
    pub const STRING: u64 = 5;
    pub const ARRAY: u64 = 6;
    pub const DENSE_ELEMENTS: u64 = 7;
    pub const DIV_BY: u64 = 8;
    pub const SAME_ELEMENTS: u64 = 9;
    pub const DICTIONARY: u64 = 10;
    pub const OPTIMIZATION_HINTS: u64 = 11;
    pub const BOUNDED: u64 = 12;
}

/// Tags of debug locations and of the items that they refer to.
pub mod debug {
    pub const COMPILE_UNIT: u64 = 1;
    pub const FILE: u64 = 2;
    pub const LEXICAL_BLOCK: u64 = 3;
    pub const LOC: u64 = 4;
    pub const SUBPROGRAM: u64 = 5;
    pub const CALL_SITE: u64 = 6;
    /// A subprogram ends in a word of flags.
    pub const SUBPROGRAM_FLAGS: (u8, u8) = (13, 5);
}

/// The flags of a function.
pub mod function {
    pub const PRIVATE: u8 = 1;
    pub const KERNEL: u8 = 2;
    /// Hints follow; not written since [`ALWAYS_HINTS`].
    pub const HINTS: u8 = 4;
    /// Every kernel has hints, and every function an array of argument attributes behind them.
    pub const ALWAYS_HINTS: (u8, u8) = (13, 5);
}

/// Globals carry two flags, private and constant, and there is a section for the producer.
pub const GLOBAL_FLAGS: Since = (13, 3);

/// Rounding modes, in the order of their numbers, end with one that appeared later.
pub const NEAREST_AWAY: Since = (13, 4);
