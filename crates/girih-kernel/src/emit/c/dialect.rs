//! The dialect of GNU C.

use crate::emit::cstyle::dialect::{Base, Dialect};
use crate::num::DType;

const fn base(name: &'static str, spelling: &'static str) -> Base {
    Base { name, spelling, defined: true }
}

pub static DIALECT: Dialect = Dialect {
    bases: &[
        base("i1", "uint8_t"),
        base("i4", "uint8_t"),
        base("i8", "int8_t"),
        base("i16", "int16_t"),
        base("i32", "int32_t"),
        base("i64", "int64_t"),
        base("u8", "uint8_t"),
        base("u16", "uint16_t"),
        base("u32", "uint32_t"),
        base("u64", "uint64_t"),
        // `-pedantic` rejects `__int128`, which is not ISO C; this is the same type.
        base("u128", "unsigned __attribute__((mode(TI)))"),
        base("f16", "uint16_t"),
        base("bf16", "uint16_t"),
        base("f32", "float"),
        base("tf32", "float"),
        base("f64", "double"),
        base("f8E4M3FN", "uint8_t"),
        base("f8E5M2", "uint8_t"),
        base("f8E8M0FNU", "uint8_t"),
        base("fnv8E5M3FNU", "uint8_t"),
        base("f4E2M1FN", "uint8_t"),
        base("f8E4M3FNUZ", "uint8_t"),
        base("f8E5M2FNUZ", "uint8_t"),
    ],
    inline: "static inline __attribute__((always_inline))",
    outlined: "static __attribute__((noinline))",
    soft: "static ",
    soft_unused: "static __attribute__((unused)) ",
    clzll: "__builtin_clzll(",
    unaligned: true,
    wraps: true,
    int_indices: false,
    branch: 2,
    special,
    own: |_| None,
    unsigned: |bits| format!("uint{bits}_t"),
    index_helper: |name| name,
};

fn special(dtype: DType, bits: u64) -> String {
    let (value, suffix) = match dtype {
        DType::F64 => (f64::from_bits(bits), ""),
        _ => (f64::from(f32::from_bits(bits as u32)), "f"),
    };
    match value.is_nan() {
        true => format!("__builtin_nan{suffix}(\"\")"),
        false => format!("{}__builtin_inf{suffix}()", if value < 0.0 { "-" } else { "" }),
    }
}
