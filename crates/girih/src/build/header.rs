//! What the headers of models and of programs share.

use girih_compiler::graph::Elem;
use girih_compiler::num::DType;

/// The type of an element in C: floats narrower than 32 bits as their bits.
pub fn c_type(elem: Elem) -> String {
    match (elem.dtype, elem.unsigned) {
        (DType::F32 | DType::TF32, _) => "float".into(),
        (DType::F64, _) => "double".into(),
        (DType::I8 | DType::I16 | DType::I32 | DType::I64, false) => format!("int{}_t", elem.dtype.bits()),
        (dtype, _) => format!("uint{}_t", dtype.bytes().max(1) * 8),
    }
}

/// What a reader needs to know of a type whose elements C holds as bits.
pub fn note(dtype: DType) -> &'static str {
    match dtype {
        DType::I1 => ", 0 or 1 each",
        DType::F32 | DType::F64 => "",
        _ if dtype.bits() == 4 => ", two to a byte, the first in the low half",
        _ if dtype.is_float() => ", as bits",
        _ => "",
    }
}

/// A header around its declarations.
pub fn whole(name: &str, title: &str, includes: &str, body: &str) -> String {
    let guard = format!("{}_H", name.to_uppercase());
    format!(
        "// {title}\n#ifndef {guard}\n#define {guard}\n\n{includes}#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" \
         {{\n#endif\n{body}\n#ifdef __cplusplus\n}}\n#endif\n#endif\n"
    )
}

/// The threads of a caller, and the words for what went wrong.
pub fn shared(name: &str) -> String {
    SHARED.replace("NAME", name)
}

const SHARED: &str = "
// A caller's threads. `run` has `body` called with ranges of the blocks 0 to `blocks` that together are all of them, each once,
// in any order and side by side, and returns when all calls have returned. Calls that run at the same time have different
// workers, 0 to `workers`.
typedef struct NAME_threads {
  unsigned workers;
  void (*run)(void *user, int64_t blocks, void (*body)(void *step, unsigned worker, int64_t lo, int64_t hi), void *step);
  void *user;
} NAME_threads;

// What a result other than 0 says.
const char *NAME_message(int result);
";
