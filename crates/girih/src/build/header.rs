//! The parts that the headers of models and of programs share.

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

/// A note for the header's reader on a type whose elements C holds as bits.
pub fn note(dtype: DType) -> &'static str {
    match dtype {
        DType::I1 => ", 0 or 1 each",
        DType::F32 | DType::F64 => "",
        _ if dtype.bits() == 4 => ", two to a byte, the first in the low half",
        _ if dtype.is_float() => ", as bits",
        _ => "",
    }
}

/// Fills a template: each word that begins with `$` is replaced by its value, and values are not searched for words. No
/// word is a prefix of another.
pub fn filled(template: &str, words: &[(&str, &str)]) -> String {
    let (mut out, mut rest) = (String::new(), template);
    while let Some(at) = rest.find('$') {
        let (before, tail) = rest.split_at(at);
        out += before;
        let found = words.iter().find_map(|(word, value)| Some((tail.strip_prefix(word)?, *value)));
        let (after, value) = found.unwrap_or((tail.get(1..).unwrap_or_default(), "$"));
        out += value;
        rest = after;
    }
    out + rest
}

/// A header around its declarations.
pub fn whole(name: &str, title: &str, includes: &str, body: &str) -> String {
    let guard = format!("{}_H", name.to_uppercase());
    filled(WHOLE, &[("$title", title), ("$guard", &guard), ("$includes", includes), ("$body", body)])
}

const WHOLE: &str = "// $title
#ifndef $guard
#define $guard

$includes#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
$body
#ifdef __cplusplus
}
#endif
#endif
";

/// The caller's threads, and the messages of errors.
pub fn shared(name: &str) -> String {
    filled(SHARED, &[("$name", name)])
}

const SHARED: &str = "
// A caller's threads. `run` has `body` called with ranges of the blocks 0 to `blocks` that together are all of them, each
// once, in any order and side by side, and returns when all calls have returned. Calls that run at the same time have
// different workers, from 0 to `workers` - 1.
typedef struct $name_threads {
  unsigned workers;
  void (*run)(void *user, int64_t blocks, void (*body)(void *step, unsigned worker, int64_t lo, int64_t hi),
              void *step);
  void *user;
} $name_threads;

// Describes a result other than 0.
const char *$name_message(int result);
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_templates() {
        assert_eq!(filled("$a-$b$ $c", &[("$a", "$b"), ("$b", "$a")]), "$b-$a$ $c");
    }
}
