//! The dialect of CUDA C++: types that it has words for, and functions that are one instruction.
//!
//! In: the name of a helper of `cstyle::library`. Out: CUDA's implementation of it, an intrinsic or a body of its own.
//!
//! ```text
//! fma_f32          -->  __fmaf_rn
//! add_rz_f32       -->  __fadd_rz
//! f16_from_f32     -->  a function around `cvt.rn.f16.f32`
//! maxi_s_i32       -->  return a > b ? a : b;
//! ```
//!
//! Invariants: only what IEEE 754 defines is left to the hardware: rounded arithmetic, conversions, the maximum of
//! numbers. Signed integers wrap by going through unsigned ones. f16 and bf16 are held as their bits.

use crate::emit::cstyle::dialect::{Base, Dialect, Own};
use crate::emit::cstyle::library::{bits_ty, helper_of};
use crate::num::DType;

/// A type that C++ has a word for.
const fn word(name: &'static str, spelling: &'static str) -> Base {
    Base { name, spelling, defined: false }
}

/// A type that a unit defines where it needs it.
const fn defined(name: &'static str, spelling: &'static str) -> Base {
    Base { name, spelling, defined: true }
}

pub static DIALECT: Dialect = Dialect {
    bases: &[
        word("i1", "bool"),
        defined("i4", "unsigned char"),
        defined("i8", "signed char"),
        word("i16", "short"),
        word("i32", "int"),
        defined("i64", "long long"),
        defined("u8", "unsigned char"),
        defined("u16", "unsigned short"),
        defined("u32", "unsigned int"),
        defined("u64", "unsigned long long"),
        word("u128", "unsigned __int128"),
        defined("f16", "unsigned short"),
        defined("bf16", "unsigned short"),
        word("f32", "float"),
        word("tf32", "float"),
        word("f64", "double"),
        defined("f8E4M3FN", "unsigned char"),
        defined("f8E5M2", "unsigned char"),
        defined("f8E8M0FNU", "unsigned char"),
        defined("fnv8E5M3FNU", "unsigned char"),
        defined("f4E2M1FN", "unsigned char"),
        defined("f8E4M3FNUZ", "unsigned char"),
        defined("f8E5M2FNUZ", "unsigned char"),
    ],
    inline: "static __device__ __forceinline__",
    outlined: "static __device__",
    soft: "static __device__ ",
    soft_unused: "[[maybe_unused]] static __device__ ",
    clzll: "__clzll(",
    unaligned: false,
    wraps: false,
    int_indices: true,
    branch: 16,
    special,
    own,
    unsigned: |bits| format!("unsigned {}", ["char", "short", "int"][(bits.clamp(8, 32).ilog2() - 3) as usize]),
    index_helper: |name| match name {
        "min" => "min_i64",
        "max" => "max_i64",
        "floordiv" => "floordiv_i64",
        _ => "floormod_i64",
    },
};

fn special(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::F64 => format!("__longlong_as_double({:#x}ll)", bits),
        _ => format!("__int_as_float({:#x})", bits as u32),
    }
}

fn own(name: &str) -> Option<Own> {
    intrinsic(name).map(Own::Intrinsic).or_else(|| body(name))
}

fn intrinsic(name: &str) -> Option<&'static str> {
    Some(match name {
        "fma_f32" => "__fmaf_rn",
        "fma_f64" => "__fma_rn",
        "sqrt_f32" => "__fsqrt_rn",
        "sqrt_f64" => "__dsqrt_rn",
        "bits_f32" | "bits_tf32" => "__float_as_uint",
        "float_f32" | "float_tf32" => "__uint_as_float",
        "i32_trunc_f32" => "__float2int_rz",
        "mulhi_i32" => "__umulhi",
        "mulhi_i64" => "__umul64hi",
        "add_rz_f32" => "__fadd_rz",
        "add_rd_f32" => "__fadd_rd",
        "add_ru_f32" => "__fadd_ru",
        "sub_rz_f32" => "__fsub_rz",
        "sub_rd_f32" => "__fsub_rd",
        "sub_ru_f32" => "__fsub_ru",
        "mul_rz_f32" => "__fmul_rz",
        "mul_rd_f32" => "__fmul_rd",
        "mul_ru_f32" => "__fmul_ru",
        "div_rz_f32" => "__fdiv_rz",
        "div_rd_f32" => "__fdiv_rd",
        "div_ru_f32" => "__fdiv_ru",
        "fma_rz_f32" => "__fmaf_rz",
        "fma_rd_f32" => "__fmaf_rd",
        "fma_ru_f32" => "__fmaf_ru",
        "sqrt_rz_f32" => "__fsqrt_rz",
        "sqrt_rd_f32" => "__fsqrt_rd",
        "sqrt_ru_f32" => "__fsqrt_ru",
        "add_rz_f64" => "__dadd_rz",
        "add_rd_f64" => "__dadd_rd",
        "add_ru_f64" => "__dadd_ru",
        "sub_rz_f64" => "__dsub_rz",
        "sub_rd_f64" => "__dsub_rd",
        "sub_ru_f64" => "__dsub_ru",
        "mul_rz_f64" => "__dmul_rz",
        "mul_rd_f64" => "__dmul_rd",
        "mul_ru_f64" => "__dmul_ru",
        "div_rz_f64" => "__ddiv_rz",
        "div_rd_f64" => "__ddiv_rd",
        "div_ru_f64" => "__ddiv_ru",
        "fma_rz_f64" => "__fma_rz",
        "fma_rd_f64" => "__fma_rd",
        "fma_ru_f64" => "__fma_ru",
        "sqrt_rz_f64" => "__dsqrt_rz",
        "sqrt_rd_f64" => "__dsqrt_rd",
        "sqrt_ru_f64" => "__dsqrt_ru",
        _ => return None,
    })
}

/// The smallest and the greatest number of an integer type of at most 16 bits, and the greatest without a sign.
fn limits(d: DType) -> (i32, i32, u32) {
    let half = 1i32 << (d.bits().min(16) - 1);
    (-half, half - 1, 2 * half as u32 - 1)
}

fn body(name: &str) -> Option<Own> {
    let one = |result: &str, x: &str, body: String| Some(Own::Helper(helper_of(result, &[(x, "x")], body)));
    let two = |t: &str, body: String| Some(Own::Helper(helper_of(t, &[(t, "a"), (t, "b")], body)));
    let words: Vec<&str> = name.split('_').collect();
    let last = *words.last()?;
    let d = DType::from_name(last)?;
    let (t, u, bits) = (last, bits_ty(d), d.bits());
    let f = if d == DType::F32 { "f" } else { "" };
    match (words.as_slice(), d) {
        (["bits", _], DType::F64) => one("u64", t, "return (u64)__double_as_longlong(x);\n".into()),
        (["float", _], DType::F64) => one(t, "u64", "return __longlong_as_double(($i64)x);\n".into()),
        (["exp2", "approx", _], DType::F32) => one("f32", t, ptx("f32", "ex2.approx.ftz.f32 %0, %1;", "=f", "f")),
        (["f32", "from", "f16"], _) => one("f32", t, ptx("f32", "cvt.f32.f16 %0, %1;", "=f", "h")),
        (["f16", "from", "f32"], _) => one("f16", t, ptx("f16", "cvt.rn.f16.f32 %0, %1;", "=h", "f")),
        (["f16", "from", "f64"], _) => one("f16", t, ptx("f16", "cvt.rn.f16.f64 %0, %1;", "=h", "d")),
        (["bf16", "from", "f32"], _) => one("bf16", t, ptx("bf16", "cvt.rn.bf16.f32 %0, %1;", "=h", "f")),
        (["soft", "fma", "rn", _], DType::F16 | DType::BF16) => {
            let body = format!(
                "${t} r;\nasm(\"fma.rn.{t} %0, %1, %2, %3;\" : \"=h\"(r) : \"h\"(a), \"h\"(b), \"h\"(c));\nreturn !canonical_{t}(r);\n"
            );
            Some(Own::Helper(helper_of(t, &[(t, "a"), (t, "b"), (t, "c")], body)))
        }
        (["canonical", _], DType::F16) => one(t, t, "return (x & 0x7fff) > 0x7c00 ? 0x7e00 : x;\n".into()),
        (["canonical", _], DType::BF16) => one(t, t, "return (x & 0x7fff) > 0x7f80 ? 0x7fc0 : x;\n".into()),
        (["ceil" | "floor" | "rint", _], DType::F32 | DType::F64) => {
            one(t, t, format!("return {}{f}(x);\n", words.first()?))
        }
        (["fmod", _], DType::F32 | DType::F64) => two(t, format!("return fmod{f}(a, b);\n")),
        (["maxf" | "minf", nan, _], DType::F32) => {
            let (op, nan) = (&words.first()?[..3], if *nan == "nan" { ".NaN" } else { "" });
            two(
                t,
                format!("$f32 r;\nasm(\"{op}{nan}.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b));\nreturn r;\n"),
            )
        }
        (["at", bound @ ("most" | "least"), _], DType::F32) => {
            let op = if *bound == "most" { "min" } else { "max" };
            two(t, format!("$f32 r;\nasm(\"{op}.NaN.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b));\nreturn r;\n"))
        }
        (["ftoi", "s" | "u", to, _], DType::F32) => {
            let to = DType::from_name(to)?;
            let signed = words.get(1) == Some(&"s");
            let (low, high, most) = limits(to);
            match (to, signed) {
                (DType::I1, _) => one("i1", t, "return x != 0.0f;\n".into()),
                (DType::I32, true) => one("i32", t, "return __float2int_rz(x);\n".into()),
                (DType::I32, false) => one("i32", t, "return ($i32)__float2uint_rz(x);\n".into()),
                (DType::I8 | DType::I16, true) => {
                    let body =
                        format!("$i32 r = __float2int_rz(x);\nreturn r < {low} ? {low} : r > {high} ? {high} : r;\n");
                    one(to.name(), t, body)
                }
                (DType::I8 | DType::I16, false) => {
                    one(to.name(), t, format!("$u32 r = __float2uint_rz(x);\nreturn r > {most}u ? {most}u : r;\n"))
                }
                _ => None,
            }
        }
        (["add", _], DType::I32 | DType::I64) => two(t, format!("return (${t})((${u})a + (${u})b);\n")),
        (["sub", _], DType::I32 | DType::I64) => two(t, format!("return (${t})((${u})a - (${u})b);\n")),
        (["mul", _], DType::I32 | DType::I64) => two(t, format!("return (${t})((${u})a * (${u})b);\n")),
        (["neg", _], DType::I32 | DType::I64) => {
            Some(Own::Helper(helper_of(t, &[(t, "a")], format!("return (${t})(0 - (${u})a);\n"))))
        }
        (["absi", _], _) if bits >= 8 => {
            Some(Own::Helper(helper_of(t, &[(t, "a")], format!("return a < 0 ? (${t})(0 - (${u})a) : a;\n"))))
        }
        (["maxi" | "mini", sign, _], _) if bits >= 8 => {
            let cmp = if words.first() == Some(&"maxi") { ">" } else { "<" };
            let cast = if *sign == "s" { String::new() } else { format!("(${u})") };
            two(t, format!("return {cast}a {cmp} {cast}b ? a : b;\n"))
        }
        (["shl", _], _) if bits >= 8 => two(t, format!("return (${u})b < {bits} ? (${t})((${u})a << b) : 0;\n")),
        (["shr", "u", _], _) if bits >= 8 => two(t, format!("return (${u})b < {bits} ? (${t})((${u})a >> b) : 0;\n")),
        (["shr", "s", _], _) if bits >= 8 => two(t, format!("return a >> ((${u})b < {bits} ? b : {});\n", bits - 1)),
        _ => None,
    }
}

/// A body that is one instruction on one operand.
fn ptx(result: &str, instruction: &str, to: &str, from: &str) -> String {
    format!("${result} r;\nasm(\"{instruction}\" : \"{to}\"(r) : \"{from}\"(x));\nreturn r;\n")
}
