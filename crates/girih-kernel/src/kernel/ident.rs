//! Identifiers of emitted source: words made from whatever a user calls things.
//!
//! In: any text, as a hint. Out: an [`Ident`], which every C-like language accepts as the name of a variable:
//!
//! ```text
//! x.1 -> x_1     1st -> v1st     for -> for_     __LINE__ -> v__LINE__     sum, a second time -> sum_2
//! ```
//!
//! Invariants: a letter or `_`, then letters, digits and `_` of ASCII, at most [`LONGEST`] and a number; never a
//! keyword, a macro, or a name that the emitted source uses itself. The words of emitted source neither end in `_` nor
//! contain `__`, so a user's word that equals one of them gets such an underscore.

use std::sync::OnceLock;

use crate::num::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// The most characters that are kept of a hint.
const LONGEST: usize = 60;

/// A name in emitted source. The only way from a user's text to one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ident(String);

impl Ident {
    /// The hint as an identifier, wherever it is the only one.
    fn new(hint: &str) -> Ident {
        let word = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let mut name: String = hint.chars().take(LONGEST).map(word).collect();
        if !begins_well(&name) {
            name.insert(0, 'v');
        }
        if is_ours(&name) {
            name.push('_');
        }
        Ident(name)
    }

    /// An identifier that was printed; `None` for a text that no identifier prints as.
    pub fn parse(text: &str) -> Option<Ident> {
        let words = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        (words && begins_well(text) && !is_ours(text)).then(|| Ident(text.to_string()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identifiers of one kernel, each given once.
#[derive(Default)]
pub struct Idents {
    taken: FxHashSet<Ident>,
    /// The next number to try after a name.
    next: FxHashMap<Ident, u32>,
}

impl Idents {
    /// Makes the hint an identifier, with a number after it where the identifier is taken.
    pub fn fresh(&mut self, hint: &str) -> Ident {
        let base = Ident::new(hint);
        if self.taken.insert(base.clone()) {
            return base;
        }
        let next = self.next.entry(base.clone()).or_insert(2);
        loop {
            let name = Ident(format!("{base}_{next}"));
            *next += 1;
            if !is_ours(&name.0) && self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Returns true if a word may begin an identifier in C, which reserves words that begin with two `_` or with `_` and a
/// capital. A lone `_` followed by its number would become such a word.
fn begins_well(name: &str) -> bool {
    let mut chars = name.chars();
    match chars.next() {
        Some('_') => chars.next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
        Some(c) => c.is_ascii_alphabetic(),
        None => false,
    }
}

/// The keywords of C and of GNU C.
const KEYWORDS: &str = "\
auto break case char const continue default do double else enum extern float for goto if inline int long \
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while \
asm typeof bool true false";

/// The keywords that C++ adds, and CUDA's names for positions of threads and blocks.
const KEYWORDS_OF_CPP: &str = "\
alignas alignof and and_eq bitand bitor catch class co_await co_return co_yield compl concept const_cast consteval \
constexpr constinit decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq nullptr \
operator or or_eq private protected public reinterpret_cast requires static_assert static_cast template this \
thread_local throw try typeid typename using virtual xor xor_eq threadIdx blockIdx blockDim gridDim warpSize dim3";

/// The prefixes of CUDA's vector types of two to four elements.
const VECTORS: &str = "char uchar short ushort int uint long ulong longlong ulonglong float double";

/// Words without a type in them that the printed source, or the text of Kernel IR, uses itself.
const OWN: &str = "\
bx by bz gx gy gz tx ctx args lo hi block scratch next_block min max loop var step where in store yield poll \
check unroll kernel slot shared barrier syncwarp unix linux main u8 u16 u32 u64 u128 memcpy memset ceildiv zext floordiv floormod lane \
print assert values index outside load_half store_half live leave F8E5M3FNU";

/// Macros that compilers define without a `_` before them; `NULL` is one of NVRTC.
const MACROS: &str = "unix linux i386 INLINE NULL";

/// The reserved words above, and for each whether it is reserved as it stands. It is looked up for every value of a
/// kernel.
fn words() -> &'static FxHashMap<&'static str, bool> {
    static WORDS: OnceLock<FxHashMap<&'static str, bool>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let own = [KEYWORDS, KEYWORDS_OF_CPP, OWN, MACROS].into_iter().flat_map(|words| words.split(' '));
        let vectors = VECTORS.split(' ').map(|word| (word, false));
        // Some are both prefixes of vectors and keywords.
        vectors.chain(own.map(|word| (word, true))).collect()
    })
}

/// Returns true if emitted source, or a header that it includes, uses the word itself.
fn is_ours(name: &str) -> bool {
    let typed = |word: &str| {
        let word = word.trim_end_matches("_m");
        let base = match word.rsplit_once('x') {
            Some((base, lanes)) if !lanes.is_empty() && lanes.bytes().all(|b| b.is_ascii_digit()) => base,
            _ => word,
        };
        DType::from_name(base).is_some() || matches!(base, "u8" | "u16" | "u32" | "u64" | "u128" | "ptr")
    };
    // `INT64_MAX`, `SIZE_MAX`, `UINT8_C` of <stdint.h>.
    let starts = ["INT", "UINT", "PTRDIFF", "SIZE", "SIG_ATOMIC", "WCHAR", "WINT"];
    let ends = ["_MAX", "_MIN", "_C", "_WIDTH"];
    let limit = || starts.iter().any(|s| name.starts_with(s)) && ends.iter().any(|e| name.ends_with(e));
    if name.ends_with('_') || name.as_bytes().windows(2).skip(1).any(|two| two == b"__") {
        return false;
    }
    let vector = |name: &str| {
        let base = name.strip_suffix(['1', '2', '3', '4']);
        base.is_some_and(|base| words().contains_key(base) && VECTORS.split(' ').any(|b| b == base))
    };
    words().get(name).is_some_and(|own| *own)
        || vector(name)
        || limit()
        || ["girih", "soft_", "copy_async_", "copy_tensor_", "mbarrier_", "fence_", "prefetch_tensor_", "TensorMap"]
            .iter()
            .any(|s| name.starts_with(s))
        || name.ends_with("_t")
        || name.split('_').any(typed)
        || DType::ALL.iter().any(|d| d.name().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_hint_is_an_identifier_of_its_own() {
        let chars = (0..0x100).filter_map(char::from_u32).chain("\u{2028}\u{202e}漢".chars());
        let mut hints: Vec<String> = chars.flat_map(|c| [format!("{c}"), format!("a{c}b"), format!("_{c}")]).collect();
        let words = [KEYWORDS, KEYWORDS_OF_CPP, OWN, MACROS].iter().flat_map(|words| words.split(' '));
        for word in words.chain([
            "__LINE__",
            "__attribute_",
            "_Bool",
            "INT8_C",
            "UINT_FAST8_MAX",
            "f32x16_m",
            "x_f32",
            "float4",
            "ulonglong2",
            "girih_0",
            "copy_async_16",
            "mbarrier_wait",
            "TensorMap",
        ]) {
            hints.extend([word.to_string(), format!("{word}_"), format!("_{word}"), format!("{word}_2")]);
        }
        hints.extend(["_", "x"].map(|c| c.repeat(100_000)));
        let (mut idents, mut seen) = (Idents::default(), FxHashSet::default());
        for hint in hints.iter().chain(&hints) {
            let ident = idents.fresh(hint);
            assert_eq!(Ident::parse(ident.as_str()), Some(ident.clone()), "{hint:?}");
            assert!(!is_ours(ident.as_str()) && ident.as_str().len() < LONGEST + 10, "{hint:?} --> {ident}");
            assert!(seen.insert(ident.clone()), "{hint:?} --> {ident}, again");
        }
        for wrong in
            ["", "_", "__2", "1a", "a b", "a\n", "é", "for", "__x", "_X", "f32", "float4", "this", "INLINE", "girih_0"]
        {
            assert_eq!(Ident::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn many_of_one_name_are_numbered_in_order() {
        let mut idents = Idents::default();
        let names: Vec<String> = (0..4).map(|_| idents.fresh("x.1").to_string()).collect();
        assert_eq!(names, ["x_1", "x_1_2", "x_1_3", "x_1_4"]);
        assert_eq!(idents.fresh("for").to_string(), "for_");
    }
}
