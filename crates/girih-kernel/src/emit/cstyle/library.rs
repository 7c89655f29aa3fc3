//! The helper functions by name. A name is a family and its types, `maxf_nan_f32`, `f16_from_f32`, `divi_s_floor_i8`.

use super::soft;
use super::support::{Helper, Support};
use crate::num::DType;
use crate::num::convert::nan;
use crate::num::math::{Kind, integer_bits};

pub fn helper_of(result: &str, params: &[(&str, &str)], body: impl Into<String>) -> Helper {
    let params = params.iter().map(|(t, n)| (t.to_string(), n.to_string())).collect();
    Helper { result: result.to_string(), params, body: body.into(), vector: None }
}

/// A helper whose body serves every lane count.
fn generic(result: &str, params: &[(&str, &str)], body: impl Into<String>) -> Helper {
    let body = body.into();
    Helper { vector: Some(body.clone()), ..helper_of(result, params, body) }
}

/// A helper with a body of its own for vectors.
fn dual(result: &str, params: &[(&str, &str)], scalar: impl Into<String>, vector: impl Into<String>) -> Helper {
    Helper { vector: Some(vector.into()), ..helper_of(result, params, scalar) }
}

/// The unsigned integer type that holds an element's bits.
pub fn bits_ty(d: DType) -> &'static str {
    match d.bytes() {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        _ => "u64",
    }
}

fn int_of(bits: u32) -> &'static str {
    match bits {
        ..=8 => "i8",
        16 => "i16",
        32 => "i32",
        _ => "i64",
    }
}

fn uint_of(bits: u32) -> &'static str {
    match bits {
        ..=8 => "u8",
        16 => "u16",
        32 => "u32",
        _ => "u64",
    }
}

fn soft_block(support: &mut Support) {
    let text = soft::block(support.dialect);
    support.block("soft", &text);
}

/// The row of `soft_formats`.
fn soft_name(d: DType) -> &'static str {
    match d {
        DType::F16 => "F16",
        DType::BF16 => "BF16",
        DType::F32 => "F32",
        DType::TF32 => "TF32",
        DType::F8E5M2 => "F8E5M2",
        DType::F8E4M3FN => "F8E4M3FN",
        DType::F8E5M3FNU => "F8E5M3FNU",
        DType::F8E8M0FNU => "F8E8M0FNU",
        DType::F4E2M1FN => "F4E2M1FN",
        DType::F8E4M3FNUZ => "F8E4M3FNUZ",
        DType::F8E5M2FNUZ => "F8E5M2FNUZ",
        _ => "F64",
    }
}

fn rounding_number(word: &str) -> u32 {
    match word {
        "rz" => 1,
        "rd" => 2,
        "ru" => 3,
        "ra" => 4,
        _ => 0,
    }
}

/// An element as the 64-bit value that the soft block takes.
fn to_bits(d: DType, x: &str) -> String {
    match d {
        DType::F32 | DType::F64 | DType::TF32 => format!("!bits_{d}({x})"),
        _ => x.to_string(),
    }
}

fn from_bits(d: DType, x: &str) -> String {
    match d {
        DType::F32 | DType::F64 | DType::TF32 => format!("!float_{d}({x})"),
        _ => x.to_string(),
    }
}

/// The helper with this name; an unknown name gives a helper that does not compile, which tests would show.
pub fn helper(support: &mut Support, name: &str) -> Helper {
    let (family, last) = name.rsplit_once('_').unwrap_or((name, ""));
    let ty = DType::from_name(last);
    if let Some((to, "from")) = family.rsplit_once('_')
        && let (Some(from), Some(to)) = (ty, DType::from_name(to))
    {
        return convert(support, from, to, 0);
    }
    let words: Vec<&str> = name.split('_').collect();
    match (words.as_slice(), ty) {
        (["floordiv"] | ["floordiv", "i64"], _) => helper_of(
            "i64",
            &[("i64", "a"), ("i64", "b")],
            "i64 q = a / b;\nreturn q - ((a % b != 0) & ((a < 0) != (b < 0)));\n",
        ),
        (["floormod"] | ["floormod", "i64"], _) => {
            helper_of("i64", &[("i64", "a"), ("i64", "b")], "i64 r = a % b;\nreturn r < 0 ? r + b : r;\n")
        }
        (["min"] | ["min", "i64"], _) => helper_of("i64", &[("i64", "a"), ("i64", "b")], "return a < b ? a : b;\n"),
        (["max"] | ["max", "i64"], _) => helper_of("i64", &[("i64", "a"), ("i64", "b")], "return a > b ? a : b;\n"),
        (["splat", base], _) => {
            let mut lanes_body = String::from("return ($");
            lanes_body.push_str(base);
            lanes_body.push_str("){SPLAT};\n");
            dual(base, &[(base, "x")], "return x;\n", lanes_body)
        }
        (["bits", base], _) => {
            let u = if *base == "f64" { "u64" } else { "u32" };
            let scalar = format!("union {{ ${base} f; ${u} u; }} v = {{.f = x}};\nreturn v.u;\n");
            dual(u, &[(base, "x")], scalar, format!("return (${u})x;\n"))
        }
        (["float", base], _) => {
            let u = if *base == "f64" { "u64" } else { "u32" };
            let scalar = format!("union {{ ${u} u; ${base} f; }} v = {{.u = x}};\nreturn v.f;\n");
            dual(base, &[(u, "x")], scalar, format!("return (${base})x;\n"))
        }
        // A mask of the type's width chooses.
        (["sel", base], Some(d)) => {
            let mask = int_of(d.bits());
            let vector = format!("return (${base})((m & (${mask})a) | (~m & (${mask})b));\n");
            dual(base, &[(mask, "m"), (base, "a"), (base, "b")], "return m ? a : b;\n", vector)
        }
        // An i1 chooses.
        (["select", base], Some(d)) => {
            let mask = if d == DType::I1 { "i32" } else { int_of(d.bits()) };
            let widened = if mask == "i32" { "(i32MASK)m".to_string() } else { format!("%{mask}(m)") };
            let vector = if d == DType::I1 {
                "return (m & a) | (~m & b);\n".to_string()
            } else {
                format!(
                    "${mask} w = {};\nreturn (${base})((w & (${mask})a) | (~w & (${mask})b));\n",
                    widened.replace("(i32MASK)", "($i32)")
                )
            };
            dual(base, &[("i1", "m"), (base, "a"), (base, "b")], "return m ? a : b;\n", vector)
        }
        (["canonical", "f64" | "f32"], Some(d)) => {
            let nan = (support.dialect.special)(d, nan(d));
            let n = d.bits();
            let body = format!("return !sel_{last}(@{n}(x != x), #{last}({nan}), x);\n");
            generic(last, &[(last, "x")], body)
        }
        (["ftz", "f32"], _) => generic(
            "f32",
            &[("f32", "x")],
            "$u32 u = !bits_f32(x);\n$i32 tiny = @32((u & 0x7f800000u) == 0);\nreturn !float_f32(u & (($u32)~tiny | 0x80000000u));\n",
        ),
        ([op @ ("maxf" | "minf"), nan, "f64" | "f32"], Some(d)) => extremum(op, *nan == "nan", d),
        ([op @ ("ceil" | "floor"), "f64" | "f32"], Some(d)) => integral(op, d),
        (["rint", "f64" | "f32"], Some(d)) => rint(support, d),
        (["sqrt", "f64" | "f32"], Some(d)) => {
            let f = if d == DType::F64 { "" } else { "f" };
            helper_of(last, &[(last, "x")], format!("return __builtin_sqrt{f}(x);\n"))
        }
        (["fma", "f64" | "f32"], Some(d)) => {
            if support.has_fma {
                let f = if d == DType::F64 { "" } else { "f" };
                let args = "(a, b, c)";
                helper_of(last, &[(last, "a"), (last, "b"), (last, "c")], format!("return __builtin_fma{f}{args};\n"))
            } else {
                soft_op(support, "fma", "rn", d)
            }
        }
        (["lesser", "f64" | "f32"], Some(_)) => helper_of(last, &[(last, "a"), (last, "b")], "return a < b ? a : b;\n"),
        (["greater", "f64" | "f32"], Some(_)) => {
            helper_of(last, &[(last, "a"), (last, "b")], "return a > b ? a : b;\n")
        }
        (["scale", "f64" | "f32"], Some(d)) => scale(d, false),
        (["scale", "normal", "f64" | "f32"], Some(d)) => scale(d, true),
        (["dot2", "f32"], _) => {
            let high = |x: &str| format!("!ftz_f32(!float_f32((($u32){x}) & 0xffff0000u))");
            let low = |x: &str| format!("!ftz_f32(!float_f32((($u32){x}) << 16))");
            let (xh, yh, xl, yl) = (high("x"), high("y"), low("x"), low("y"));
            let body = format!(
                "$f32 first = !ftz_f32(!fma_f32({xh}, {yh}, !ftz_f32(sum)));\nreturn !ftz_f32(!fma_f32({xl}, {yl}, first));\n"
            );
            generic("f32", &[("i32", "x"), ("i32", "y"), ("f32", "sum")], body)
        }
        // The products of the least numbers add up to one more than an i32 holds.
        (["dot2", "i32"], _) => generic(
            "i32",
            &[("i32", "x"), ("i32", "y"), ("i32", "sum")],
            "$i32 xh = x >> 16, yh = y >> 16;\n\
             $i32 xl = ($i32)(($u32)x << 16) >> 16, yl = ($i32)(($u32)y << 16) >> 16;\n\
             return ($i32)(($u32)sum + ($u32)(xh * yh) + ($u32)(xl * yl));\n",
        ),
        (["dot4", "i32"], _) => {
            let unsigned = |at: u32| format!("($i32)((($u32)x >> {at}) & 0xffu)");
            let signed = |at: u32| format!("(($i32)(($u32)y << {}) >> 24)", 24 - at);
            let terms: Vec<String> =
                [0, 8, 16, 24].iter().map(|at| format!("{} * {}", unsigned(*at), signed(*at))).collect();
            let body = format!("return ($i32)(($u32)sum + ($u32)({}));\n", terms.join(" + "));
            generic("i32", &[("i32", "x"), ("i32", "y"), ("i32", "sum")], body)
        }
        (["soft", op, rounding, _], Some(d)) => soft_op(support, op, rounding, d),
        (["fmod", "f64"], _) => helper_of("f64", &[("f64", "a"), ("f64", "b")], FMOD),
        (["ftoi", sign, to @ ("i8" | "i16"), from], Some(_)) => float_to_little_int(*sign == "s", to, from),
        (["ftoi", sign, to, "f64"], _) => float_to_int(*sign == "s", to),
        (["i32", "trunc", "f32"], _) => generic("i32", &[("f32", "x")], F32_TO_I32),
        (["itof", sign, from, _], Some(to)) => {
            soft_block(support);
            let from = DType::from_name(from).unwrap_or(DType::I64);
            let base = from.name();
            let wide = if from == DType::I1 {
                if *sign == "s" { "-(i64)(x & 1)".to_string() } else { "(i64)x".to_string() }
            } else if *sign == "s" {
                "(i64)x".to_string()
            } else {
                format!("(i64)(u64)({})x", uint_of(from.bits()))
            };
            for t in ["i64", "u64", uint_of(from.bits())] {
                support.ty(t, 1);
            }
            let negative = if *sign == "s" { "w < 0" } else { "0" };
            let code = format!("soft_encode({}, negative, negative ? -(u64)w : (u64)w, 0, 0)", soft_name(to));
            let body = format!("i64 w = {wide};\nint negative = {negative};\nreturn {};\n", from_bits(to, &code));
            helper_of(last, &[(base, "x")], body)
        }
        (["cvt", rounding, _, _], Some(from)) => {
            let to = DType::from_name(words[2]).unwrap_or(from);
            convert(support, from, to, rounding_number(rounding))
        }
        (["mulhi", _], Some(d)) => mul_hi(support, d),
        (["divi", sign, rounding, _], Some(d)) => divide(*sign == "s", rounding, d),
        (["remi", sign, _], Some(d)) => remainder(*sign == "s", d),
        (["maxi", sign, _], Some(d)) => choose(*sign == "s", ">", d),
        (["mini", sign, _], Some(d)) => choose(*sign == "s", "<", d),
        (["absi", _], Some(d)) => {
            let t = d.name();
            generic(t, &[(t, "a")], format!("${t} s = a >> {};\nreturn (a ^ s) - s;\n", d.bits() - 1))
        }
        (["shl", _], Some(d)) => {
            let (t, u, bits) = (d.name(), uint_of(d.bits()), d.bits());
            let body = format!(
                "${u} n = (${u})b;\n${t} on = (${t})@{bits}(n < {bits});\nreturn (${t})((${u})a << (n & {})) & on;\n",
                bits - 1
            );
            generic(t, &[(t, "a"), (t, "b")], body)
        }
        (["shr", "u", _], Some(d)) => {
            let (t, u, bits) = (d.name(), uint_of(d.bits()), d.bits());
            let body = format!(
                "${u} n = (${u})b;\n${t} on = (${t})@{bits}(n < {bits});\nreturn (${t})((${u})a >> (n & {})) & on;\n",
                bits - 1
            );
            generic(t, &[(t, "a"), (t, "b")], body)
        }
        (["shr", "s", _], Some(d)) => {
            let (t, u, bits) = (d.name(), uint_of(d.bits()), d.bits());
            let body = format!(
                "${u} n = (${u})b;\n${u} far = (${u})@{bits}(n >= {bits});\nreturn a >> (${t})((n | far) & {});\n",
                bits - 1
            );
            generic(t, &[(t, "a"), (t, "b")], body)
        }
        // Two 4-bit elements share a byte.
        (["load", "half"], _) => {
            helper_of("u8", &[("const u8 *", "p"), ("i64", "i")], "return p[i >> 1] >> (4 * (i & 1)) & 15;\n")
        }
        (["store", "half"], _) => helper_of(
            "void",
            &[("u8 *", "p"), ("i64", "i"), ("u8", "x")],
            "int s = 4 * (i & 1);\np[i >> 1] = (p[i >> 1] & ~(15 << s)) | ((x & 15) << s);\n",
        ),
        (["widen", to, from], _) => generic(to, &[(from, "x")], format!("return %{to}(x);\n")),
        (["all", "i1"], _) => helper_of("i1", &[("i1", "m")], "return m;\n"),
        _ => helper_of("int", &[], format!("#error no helper {name}\n")),
    }
}

fn extremum(op: &str, nan: bool, d: DType) -> Helper {
    let t = d.name();
    let n = d.bits();
    let (cmp, zero) = if op == "maxf" { (">", "&") } else { ("<", "|") };
    // The comparison is false if an operand is NaN and then gives `b`, so the other operand still has to be checked.
    let last = if nan {
        format!("return !sel_{t}(@{n}(a != a), a, r);\n")
    } else {
        format!("return !sel_{t}(@{n}(b != b), a, r);\n")
    };
    let body = format!(
        "${t} r = !sel_{t}(@{n}(a {cmp} b), a, b);\n\
         r = !sel_{t}(@{n}(a == b), !float_{t}(!bits_{t}(a) {zero} !bits_{t}(b)), r);\n{last}"
    );
    generic(t, &[(t, "a"), (t, "b")], body)
}

/// The body of a helper that is one instruction, and the macro by which a C compiler says that it has the instruction.
pub fn in_one_instruction(name: &str, lanes: u32) -> Option<(&'static str, String)> {
    match name {
        "dot2_f32" => Some(("__AVX512BF16__", dot_of_pairs("vdpbf16ps", lanes)?)),
        "dot2_i32" if lanes == 8 => Some(("__AVX2__", added_products("x"))),
        "dot2_i32" if lanes == 16 => {
            let sums = dot_of_pairs("vpdpwssd", lanes)?;
            Some(("__AVX512BW__", format!("#ifdef __AVX512VNNI__\n{sums}#else\n{}#endif\n", added_products("v"))))
        }
        "dot4_i32" if lanes == 8 => Some(("__AVX2__", added_quads("x", 32))),
        "dot4_i32" if lanes == 16 => {
            let sums = dot_of_pairs("vpdpbusd", lanes)?;
            let quads = added_quads("v", 64);
            Some(("__AVX512BW__", format!("#ifdef __AVX512VNNI__\n{sums}#else\n{quads}#endif\n")))
        }
        "scale_f32" | "scale_normal_f32" if lanes == 16 => {
            Some(("__AVX512F__", scale_of_vectors("vscalefps", &shifted(Kind::F32))))
        }
        "scale_f64" | "scale_normal_f64" if lanes == 8 => {
            Some(("__AVX512F__", scale_of_vectors("vscalefpd", &shifted(Kind::F64))))
        }
        "all_i32" if lanes == 16 => Some(("__AVX512DQ__", all_of_vectors("int", "cvtd2mask512", 64, "0xffff"))),
        "all_i64" if lanes == 8 => Some(("__AVX512DQ__", all_of_vectors("long long", "cvtq2mask512", 64, "0xff"))),
        "all_i32" if lanes == 8 => Some(("__AVX__", all_of_vectors("float", "movmskps256", 32, "0xff"))),
        "all_i64" if lanes == 4 => Some(("__AVX__", all_of_vectors("double", "movmskpd256", 32, "0xf"))),
        "lesser_f32" | "greater_f32" if lanes == 8 => Some(("__AVX__", lesser_or_greater(name, "ps", "x"))),
        "lesser_f64" | "greater_f64" if lanes == 4 => Some(("__AVX__", lesser_or_greater(name, "pd", "x"))),
        "lesser_f32" | "greater_f32" if lanes == 16 => Some(("__AVX512F__", lesser_or_greater(name, "ps", "v"))),
        "lesser_f64" | "greater_f64" if lanes == 8 => Some(("__AVX512F__", lesser_or_greater(name, "pd", "v"))),
        "f32_from_f16" if lanes == 8 => Some(("__F16C__", converted("vcvtph2ps", "x"))),
        "f32_from_f16" if lanes == 16 => Some(("__AVX512F__", converted("vcvtph2ps", "v"))),
        "f16_from_f32" if lanes == 8 => Some(("__F16C__", converted("vcvtps2ph", "x"))),
        "f16_from_f32" if lanes == 16 => Some(("__AVX512F__", converted("vcvtps2ph", "v"))),
        _ if name.starts_with("widen_") => widening(name, lanes),
        _ => match extremum_of_vectors(name, lanes) {
            Some(body) => Some(("__AVX512DQ__", body)),
            None => Some(("__AVX__", extremum_in_both_orders(name, lanes)?)),
        },
    }
}

/// A conversion between f16 and f32, to nearest even.
fn converted(instruction: &str, register: &str) -> String {
    let (result, operands, rounding) = match instruction {
        "vcvtph2ps" => ("f32", "%1, %0", ""),
        _ => ("f16", "%2, %1, %0", ", \"i\"(0)"),
    };
    format!(
        "${result} r;\n__asm__(\"{instruction} {operands}\" : \"={register}\"(r) : \"{register}\"(x){rounding});\nreturn r;\n"
    )
}

/// Widens the integers of a vector, `widen_i32_i8`: without this GCC takes the halves apart, or each lane.
fn widening(name: &str, lanes: u32) -> Option<(&'static str, String)> {
    let (to, from) = name.strip_prefix("widen_")?.split_once('_')?;
    let bytes = |base: &str| base[1..].parse::<u32>().map_or(0, |bits| bits / 8);
    let letter = |bytes: u32| Some(["b", "w", "d", "q"][[1, 2, 4, 8].iter().position(|n| *n == bytes)?]);
    let (wide, narrow) = (bytes(to), bytes(from));
    let (feature, register) = match lanes * wide {
        16 => ("__AVX__", "x"),
        32 => ("__AVX2__", "x"),
        64 if wide == 2 => ("__AVX512BW__", "v"),
        64 => ("__AVX512F__", "v"),
        _ => return None,
    };
    if lanes * narrow < 8 {
        return None;
    }
    let extended = if from.starts_with('u') { "z" } else { "s" };
    let instruction = format!("vpmov{extended}x{}{}", letter(narrow)?, letter(wide)?);
    let body = format!(
        "#ifdef __clang__\nreturn %{to}(x);\n#else\n${to} r;\n\
         __asm__(\"{instruction} %1, %0\" : \"={register}\"(r) : \"{register}\"(x));\nreturn r;\n#endif\n"
    );
    Some((feature, body))
}

/// Compilers disagree about the types of their functions for these instructions, but not about the instructions.
fn dot_of_pairs(instruction: &str, lanes: u32) -> Option<String> {
    let whole = lanes == 16;
    whole.then(|| format!("__asm__(\"{instruction} %2, %1, %0\" : \"+v\"(sum) : \"v\"(x), \"v\"(y));\nreturn sum;\n"))
}

/// The sums of products of pairs of i16, computed on their own and then added to other sums.
fn added_products(register: &str) -> String {
    format!(
        "__typeof__(sum) products;\n__asm__(\"vpmaddwd %2, %1, %0\" : \"={register}\"(products) : \"{register}\"(x), \"{register}\"(y));\n\
         return ($i32)(($u32)sum + ($u32)products);\n"
    )
}

/// The sums of products of four unsigned by four signed bytes: those of even bytes and of odd ones, as pairs of i16.
fn added_quads(register: &str, bytes: u32) -> String {
    let pairs = |to: &str, x: &str, y: &str| {
        format!(
            "__asm__(\"vpmaddwd %2, %1, %0\" : \"={register}\"({to}) : \"{register}\"({x}), \"{register}\"({y}));\n"
        )
    };
    format!(
        "typedef short own __attribute__((vector_size({bytes})));\n\
         typedef unsigned short raw __attribute__((vector_size({bytes})));\n\
         own xe = (own)((raw)x & 0xff), xo = (own)((raw)x >> 8), ye = (own)((raw)y << 8) >> 8, yo = (own)y >> 8;\n\
         __typeof__(sum) even, odd;\n{}{}return ($i32)(($u32)sum + ($u32)even + ($u32)odd);\n",
        pairs("even", "xe", "ye"),
        pairs("odd", "xo", "yo")
    )
}

fn scale_of_vectors(instruction: &str, shifted: &str) -> String {
    format!(
        "__typeof__(x) r;\n__asm__(\"{instruction} %2, %1, %0\" : \"=v\"(r) : \"v\"(x), \"v\"(n - {shifted}));\nreturn r;\n"
    )
}

fn all_of_vectors(c: &str, builtin: &str, bytes: u32, all: &str) -> String {
    format!(
        "typedef {c} own __attribute__((vector_size({bytes})));\nreturn __builtin_ia32_{builtin}((own)m) == {all};\n"
    )
}

/// C compilers make two instructions of a comparison of lanes.
fn lesser_or_greater(name: &str, kind: &str, register: &str) -> String {
    let op = if name.starts_with("lesser") { "min" } else { "max" };
    format!(
        "__typeof__(a) r;\n__asm__(\"v{op}{kind} %2, %1, %0\" : \"={register}\"(r) : \"{register}\"(a), \"{register}\"(b));\nreturn r;\n"
    )
}

/// The constant whose low bits are a program's integers.
fn shifted(kind: Kind) -> String {
    format!("#{}({:?}{})", kind.dtype().name(), integer_bits(kind), if kind == Kind::F32 { "f" } else { "" })
}

/// x * 2^i, where i is in the low bits of n: its bits become factors, two of them if the result may be subnormal or
/// infinite.
fn scale(d: DType, normal: bool) -> Helper {
    let t = d.name();
    let u = uint_of(d.bits());
    let (one, fraction) = match d {
        DType::F32 => ("0x3f800000u", 23),
        _ => ("0x3ff0000000000000ull", 52),
    };
    // Bits above the low ones are shifted out, those of halves too.
    let power = |n: &str| format!("!float_{t}(({n} << {fraction}) + {one})");
    let body = if normal {
        format!("return x * {};\n", power(&format!("!bits_{t}(n)")))
    } else {
        let halves = format!("${u} i = !bits_{t}(n);\n${u} half = i >> 1;\n");
        format!("{halves}return x * {} * {};\n", power("half"), power("(i - half)"))
    };
    generic(t, &[(t, "x"), (t, "n")], body)
}

/// The operands of the instructions for extremes of vectors of 64 bytes: the extreme, and the names for the element's
/// type.
struct Extreme {
    which: u32,
    of: String,
    kind: &'static str,
    c: &'static str,
    mask: &'static str,
}

impl Extreme {
    fn of(name: &str, lanes: u32) -> Option<Extreme> {
        let (which, of) = match name.split_once("f_nan_")? {
            ("max", of) => (5, of),
            ("min", of) => (4, of),
            _ => return None,
        };
        let (kind, c, mask) = match (of, lanes) {
            ("f32", 16) => ("ps", "float", "unsigned short"),
            ("f64", 8) => ("pd", "double", "unsigned char"),
            _ => return None,
        };
        Some(Extreme { which, of: of.to_string(), kind, c, mask })
    }

    /// The extreme of two vectors; where one element is NaN, the other element.
    fn range(&self, a: &str, b: &str) -> String {
        let Extreme { which, kind, mask, .. } = self;
        format!("__builtin_ia32_range{kind}512_mask((own){a}, (own){b}, {which}, (own){a}, ({mask})-1, 4)")
    }

    fn own(&self) -> String {
        format!("typedef {} own __attribute__((vector_size(64)));\n", self.c)
    }
}

/// The greater or lesser of two vectors of 64 bytes, on a processor with an instruction that tells zeros by their
/// signs. Lanes in which one element is NaN get the sum, which is NaN.
fn extremum_of_vectors(name: &str, lanes: u32) -> Option<String> {
    let extreme = Extreme::of(name, lanes)?;
    let Extreme { of, kind, mask, .. } = &extreme;
    let bits = &of[1..];
    Some(format!(
        "{}${of} r = (${of}){};\n\
         #ifdef __clang__\n\
         return !sel_{of}(@{bits}(a != a) | @{bits}(b != b), a + b, r);\n\
         #else\n\
         {mask} nan = __builtin_ia32_cmp{kind}512_mask((own)a, (own)b, 3, ({mask})-1, 4);\n\
         return (${of})__builtin_ia32_add{kind}512_mask((own)a, (own)b, (own)r, nan, 4);\n\
         #endif\n",
        extreme.own(),
        extreme.range("a", "b")
    ))
}

/// The greater or lesser of two vectors of 32 bytes. The instruction gives its second operand if both are zeros or one
/// is NaN. The `or` of the results in both orders is NaN where one operand is, and the lesser of two zeros. The greater
/// is the negated lesser of the negated operands; the negations of successive steps cancel.
fn extremum_in_both_orders(name: &str, lanes: u32) -> Option<String> {
    let (max, of) = match name.split_once("f_nan_")? {
        ("max", of) => (true, of),
        ("min", of) => (false, of),
        _ => return None,
    };
    let (kind, sign) = match (of, lanes) {
        ("f32", 8) => ("ps", "0x80000000u"),
        ("f64", 4) => ("pd", "0x8000000000000000ull"),
        _ => return None,
    };
    let negated = |x: &str| if max { format!("({x} ^ {sign})") } else { x.to_string() };
    let (a, b) = (negated(&format!("!bits_{of}(a)")), negated(&format!("!bits_{of}(b)")));
    let both = negated(&format!("(!bits_{of}(p) | !bits_{of}(q))"));
    Some(format!(
        "${of} l = !float_{of}({a}), r = !float_{of}({b}), p, q;\n\
         __asm__(\"vmin{kind} %2, %1, %0\" : \"=x\"(p) : \"x\"(l), \"x\"(r));\n\
         __asm__(\"vmin{kind} %2, %1, %0\" : \"=x\"(q) : \"x\"(r), \"x\"(l));\n\
         return !float_{of}({both});\n"
    ))
}

/// The greatest or least lane of `x`, a vector of 64 bytes: first of the numbers, by the same instruction, and then NaN
/// if there is one. `name` is that of the fold of two. The result comes with the macro by which a C compiler says that
/// it has the instruction.
pub fn extremum_of_lanes(name: &str, lanes: u32, x: &str) -> Option<(&'static str, String)> {
    let extreme = Extreme::of(name, lanes)?;
    let mut body = format!("{}own r = (own){x};\n", extreme.own());
    let mut half = lanes / 2;
    while half > 0 {
        let turned: Vec<String> = (0..lanes).map(|l| ((l + half) % lanes).to_string()).collect();
        let turned = format!("__builtin_shufflevector(r, r, {})", turned.join(", "));
        body.push_str(&format!("r = {};\n", extreme.range("r", &turned)));
        half /= 2;
    }
    let Extreme { kind, mask, c, .. } = &extreme;
    body.push_str(&format!(
        "#ifdef __clang__\n\
         {c} sum = 0;\n\
         for (int l = 0; l < {lanes}; l++) sum += {x}[l] == {x}[l] ? 0 : {x}[l];\n\
         return sum == sum ? r[0] : sum;\n\
         #else\n\
         {mask} nan = __builtin_ia32_cmp{kind}512_mask((own){x}, (own){x}, 3, ({mask})-1, 4);\n\
         return nan ? __builtin_nan(\"\") : r[0];\n\
         #endif\n"
    ));
    Some(("__AVX512DQ__", body))
}

fn integral(op: &str, d: DType) -> Helper {
    let t = d.name();
    let (n, i, u) = (d.bits(), int_of(d.bits()), uint_of(d.bits()));
    let (limit, sign) =
        if d == DType::F32 { ("8388608.0f", "0x80000000u") } else { ("4503599627370496.0", "0x8000000000000000ull") };
    let (cmp, by) = if op == "floor" { (">", "-") } else { ("<", "+") };
    let one = if d == DType::F32 { "1.0f" } else { "1.0" };
    let body = format!(
        "${u} s = !bits_{t}(x) & {sign};\n${t} a = !float_{t}(!bits_{t}(x) ^ s);\n${i} small = @{n}(a < {limit});\n\
         ${t} r = %{t}(%{i}(!sel_{t}(small, x, #{t}(0))));\nr = !sel_{t}(@{n}(r {cmp} x), r {by} {one}, r);\n\
         r = !float_{t}(!bits_{t}(r) | s);\nreturn !sel_{t}(small, r, x);\n"
    );
    generic(t, &[(t, "x")], body)
}

/// The nearest integer, ties to even.
fn rint(support: &Support, d: DType) -> Helper {
    let t = d.name();
    if support.vector_bytes >= 32 {
        let f = if d == DType::F64 { "" } else { "f" };
        return helper_of(t, &[(t, "x")], format!("return __builtin_rint{f}(x);\n"));
    }
    let n = d.bits();
    let (limit, sign) =
        if d == DType::F32 { ("8388608.0f", "0x80000000u") } else { ("4503599627370496.0", "0x8000000000000000ull") };
    let u = uint_of(n);
    let body = format!(
        "${u} s = !bits_{t}(x) & {sign};\n${t} a = !float_{t}(!bits_{t}(x) ^ s);\n${t} r = (a + {limit}) - {limit};\n\
         r = !float_{t}(!bits_{t}(r) | s);\nreturn !sel_{t}(@{n}(a < {limit}), r, x);\n"
    );
    generic(t, &[(t, "x")], body)
}

fn soft_op(support: &mut Support, op: &str, rounding: &str, d: DType) -> Helper {
    soft_block(support);
    let t = d.name();
    let names: &[&str] = match op {
        "sqrt" => &["a"],
        "fma" => &["a", "b", "c"],
        _ => &["a", "b"],
    };
    let mut args = vec![soft_name(d).to_string(), rounding_number(rounding).to_string()];
    for (i, n) in names.iter().enumerate() {
        let bits = to_bits(d, n);
        let flip = 1u64 << (d.bits() - 1);
        args.push(if op == "sub" && i == 1 { format!("{bits} ^ {flip:#x}ull") } else { bits });
    }
    let f = if op == "sub" { "add" } else { op };
    let call = format!("soft_{f}({})", args.join(", "));
    let params: Vec<(&str, &str)> = names.iter().map(|n| (t, *n)).collect();
    helper_of(t, &params, format!("return {};\n", from_bits(d, &call)))
}

fn convert(support: &mut Support, from: DType, to: DType, rounding: u32) -> Helper {
    let (f, t) = (from.name(), to.name());
    let params = &[(f, "x")];
    use DType::*;
    match (from, to) {
        (F32, F64) => generic(t, params, "return %f64(x);\n"),
        (F64, F32) if rounding == 0 => generic(t, params, "return %f32(x);\n"),
        (BF16, F32) => generic(t, params, "return !float_f32(!widen_u32_u16(x) << 16);\n"),
        (F16, F32) => generic(t, params, F16_TO_F32),
        (F8E4M3FN, F32) => generic(t, params, F8E4M3FN_TO_F32),
        (F8E5M2, F32) => generic(t, params, F8E5M2_TO_F32),
        (F8E8M0FNU, F32) => generic(t, params, F8E8M0FNU_TO_F32),
        (F32, F16) if rounding == 0 => generic(t, params, F32_TO_F16),
        (F32, BF16) if rounding == 0 => generic(t, params, F32_TO_BF16),
        (F16, F64) | (BF16, F64) => generic(t, params, format!("return %f64(!f32_from_{f}(x));\n")),
        (F16, BF16) | (BF16, F16) if rounding == 0 => {
            generic(t, params, format!("return !{t}_from_f32(!f32_from_{f}(x));\n"))
        }
        _ => {
            soft_block(support);
            let call =
                format!("soft_convert({}, {}, {rounding}, {})", soft_name(from), soft_name(to), to_bits(from, "x"));
            helper_of(t, params, format!("return {};\n", from_bits(to, &call)))
        }
    }
}

const F16_TO_F32: &str = "$u32 w = !widen_u32_u16(x);
$u32 e = (w & 0x7fff) << 13;
$u32 m = !bits_f32(!float_f32(e) * 0x1p112f);
m = m | (($u32)@32((w & 0x7fff) >= 0x7c00) & (e | 0x7f800000u));
return !float_f32(m | (w & 0x8000) << 16);
";

const F8E4M3FN_TO_F32: &str = "$u32 w = !widen_u32_u8(x);
$u32 a = w & 0x7f;
$u32 m = !bits_f32(!float_f32(a << 20) * 0x1p120f) | (w & 0x80) << 24;
$u32 is_nan = ($u32)@32(a == 0x7f);
return !float_f32((m & ~is_nan) | (0x7fc00000u & is_nan));
";

const F8E5M2_TO_F32: &str = "$u32 w = !widen_u32_u8(x);
$u32 a = w & 0x7f;
$u32 m = !bits_f32(!float_f32(a << 21) * 0x1p112f);
$u32 is_large = ($u32)@32(a >= 0x7c);
$u32 is_nan = ($u32)@32(a > 0x7c);
m = (m & ~is_large) | (0x7f800000u & is_large) | (w & 0x80) << 24;
return !float_f32((m & ~is_nan) | (0x7fc00000u & is_nan));
";

/// The least is half of the least normal number.
const F8E8M0FNU_TO_F32: &str = "$u32 w = !widen_u32_u8(x);
$u32 is_least = ($u32)@32(w == 0);
$u32 is_nan = ($u32)@32(w == 0xff);
return !float_f32((w << 23 & ~is_nan) | (0x400000u & is_least) | (0x7fc00000u & is_nan));
";

const F32_TO_F16: &str = "$u32 u = !bits_f32(x);
$u32 a = u & 0x7fffffffu;
$u32 normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1)) >> 13;
$u32 tiny = !bits_f32(!float_f32(a) + 0.5f) - 0x3f000000u;
$u32 is_tiny = ($u32)@32(a < 0x38800000u);
$u32 h = (tiny & is_tiny) | (normal & ~is_tiny);
$u32 is_large = ($u32)@32(a >= 0x477ff000u);
$u32 is_nan = ($u32)@32(a > 0x7f800000u);
h = (h & ~is_large) | (0x7c00 & is_large) | (0x200 & is_nan) | (u >> 16 & 0x8000 & ~is_nan);
return %u16(h);
";

const F32_TO_BF16: &str = "$u32 u = !bits_f32(x);
$u32 r = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
$u32 is_nan = ($u32)@32((u & 0x7fffffffu) > 0x7f800000u);
return %u16((r & ~is_nan) | (0x7fc0 & is_nan));
";

/// Numbers between -1 and 1 become 0 by a comparison, here and in [`float_to_int`]: without traps GCC takes
/// `(float)(int)x` for `trunc(x)`, which is -0 where x is from -1 to 0.
const F32_TO_I32: &str = "$i32 high = @32(x >= 2147483648.0f), low = @32(x < -2147483648.0f);
$i32 r = %i32(!sel_f32((@32(x >= 1.0f) | @32(x <= -1.0f)) & ~high & ~low, x, #f32(0)));
return (r & ~(high | low)) | (0x7fffffff & high) | ((-2147483647 - 1) & low);
";

const FMOD: &str = "u64 x = ^bits_f64(a), y = ^bits_f64(b), sign = x & 0x8000000000000000ull;
x ^= sign, y &= 0x7fffffffffffffffull;
if (y == 0 || x >= 0x7ff0000000000000ull || y > 0x7ff0000000000000ull) return __builtin_nan(\"\");
if (x < y) return a;
int ex = x >> 52, ey = y >> 52;
u64 mx = x & 0xfffffffffffffull, my = y & 0xfffffffffffffull;
if (ex) mx |= 1ull << 52; else ex = 1;
if (ey) my |= 1ull << 52; else ey = 1;
mx %= my;
for (; ex > ey; ex--) {
  mx <<= 1;
  if (mx >= my) mx -= my;
}
if (mx == 0) return ^float_f64(sign);
for (; ex > 1 && !(mx >> 52); ex--) mx <<= 1;
return ^float_f64(sign | (mx >> 52 ? (u64)ex << 52 : 0) | (mx & 0xfffffffffffffull));
";

/// Saturating conversion of a float to an integer of 8 or 16 bits: clamps the number to the bounds, which are floats
/// too, and takes its whole part. NaN gives 0.
fn float_to_little_int(signed: bool, to: &str, from: &str) -> Helper {
    let bits = DType::from_name(to).map_or(16, DType::bits);
    let (low, high) = if signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
    let width = if from == "f32" { 32 } else { 64 };
    let body = format!(
        "${from} r = !sel_{from}(@{width}(x < #{from}({high})), x, #{from}({high}));\n\
         r = !sel_{from}(@{width}(r > #{from}({low})), r, #{from}({low}));\n\
         r = !sel_{from}(@{width}(x >= #{from}(1)) | @{width}(x <= #{from}(-1)), r, #{from}(0));\n\
         return %{to}(%i32(r));\n"
    );
    generic(to, &[(from, "x")], body)
}

/// Saturating conversion of an f64; NaN gives 0.
fn float_to_int(signed: bool, to: &str) -> Helper {
    let d = DType::from_name(to).unwrap_or(DType::I64);
    let params = &[("f64", "x")];
    if d == DType::I1 {
        return helper_of(to, params, "return x != 0;\n");
    }
    if !signed && d == DType::I64 {
        return helper_of("i64", params, "if (!(x >= 1)) return 0;\nreturn x >= 0x1p64 ? -1 : (i64)($u64)x;\n");
    }
    let (low, high) = match (signed, d.bits()) {
        (true, 64) => ("(-9223372036854775807ll - 1)".to_string(), "9223372036854775807ll".to_string()),
        (true, n) => (format!("-{}ll", 1u64 << (n - 1)), format!("{}ll", (1u64 << (n - 1)) - 1)),
        (false, n) => ("0ll".to_string(), format!("{}ll", (1u64 << n) - 1)),
    };
    let body = format!(
        "if (!(x >= 1 || x <= -1)) return 0;\n\
         i64 r = x >= 0x1p63 ? 9223372036854775807ll : x < -0x1p63 ? (-9223372036854775807ll - 1) : (i64)x;\n\
         r = r < {low} ? {low} : r > {high} ? {high} : r;\nreturn ($I)r;\n"
    );
    helper_of(to, params, body.replace("$I", &format!("${to}")).replace("i64 r", "$i64 r"))
}

fn mul_hi(support: &mut Support, d: DType) -> Helper {
    let t = d.name();
    let params = &[(t, "a"), (t, "b")];
    match d.bits() {
        64 => {
            support.ty("u128", 1);
            support.ty("u64", 1);
            helper_of(t, params, "return (i64)((u128)(u64)a * (u64)b >> 64);\n")
        }
        1 => generic(t, params, "return a & b & 0;\n"),
        n => {
            // Products no wider than needed: GCC 12 takes those of 16 bits in 64 for signed ones where it vectorizes them.
            let (u, wide) = (uint_of(n), uint_of((2 * n).max(32)));
            generic(t, params, format!("return %{t}(%{wide}((${u})a) * %{wide}((${u})b) >> {n});\n"))
        }
    }
}

fn divide(signed: bool, rounding: &str, d: DType) -> Helper {
    let t = d.name();
    let params = &[(t, "a"), (t, "b")];
    if d == DType::I1 {
        return generic(t, params, "return a & b;\n");
    }
    let u = uint_of(d.bits());
    let body = if signed {
        let adjust = match rounding {
            "floor" => " - ((a % b != 0) & ((a < 0) != (b < 0)))",
            "ceil" => " + ((a % b != 0) & ((a < 0) == (b < 0)))",
            _ => "",
        };
        format!("if (b == 0) return 0;\nif (b == -1) return -(${u})a;\nreturn a / b{adjust};\n")
    } else {
        let adjust = if rounding == "ceil" { format!(" + ((${u})a % (${u})b != 0)") } else { String::new() };
        format!("return b == 0 ? 0 : (${t})((${u})a / (${u})b{adjust});\n")
    };
    helper_of(t, params, body)
}

fn remainder(signed: bool, d: DType) -> Helper {
    let t = d.name();
    let params = &[(t, "a"), (t, "b")];
    if d == DType::I1 {
        return generic(t, params, "return a & b & 0;\n");
    }
    let u = uint_of(d.bits());
    let body = if signed {
        "return b == 0 || b == -1 ? 0 : a % b;\n".to_string()
    } else {
        format!("return b == 0 ? 0 : (${t})((${u})a % (${u})b);\n")
    };
    helper_of(t, params, body)
}

fn choose(signed: bool, cmp: &str, d: DType) -> Helper {
    let (t, n) = (d.name(), d.bits());
    let cast = if signed { String::new() } else { format!("(${})", uint_of(n)) };
    generic(t, &[(t, "a"), (t, "b")], format!("return !sel_{t}(@{n}({cast}a {cmp} {cast}b), a, b);\n"))
}
