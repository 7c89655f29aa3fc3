//! Names of C: of a library, of its functions and of their parameters.

use girih_compiler::kernel::ir::{Ident, Idents};

/// What functions of a library call their own parameters and variables.
const OWN: [&str; 18] = [
    "threads", "weights", "arena", "grid", "scratch", "bad", "at", "bytes", "life", "failed", "launch", "workers",
    "work", "length", "name", "message", "overlap", "holds",
];

/// Whether a library can have the name: an identifier, and no word of C.
pub fn is_name(text: &str) -> bool {
    text.len() <= 60 && Ident::parse(text).is_some() && !text.starts_with('_')
}

/// A name for a library from any text, such as that of a file.
pub fn from_text(text: &str) -> String {
    Idents::default().fresh(text.trim_start_matches('_')).to_string()
}

/// Identifiers of one function: none is one of the library's own.
pub fn of_function() -> Idents {
    let mut names = Idents::default();
    for word in OWN {
        names.fresh(word);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_the_name_of_its_file_as_far_as_c_allows() {
        for (text, name) in
            [("resnet", "resnet"), ("my-model.v2", "my_model_v2"), ("2nd", "v2nd"), ("int", "int_"), ("", "v")]
        {
            assert_eq!(from_text(text), name);
        }
        assert!(
            is_name("resnet")
                && !is_name("int")
                && !is_name("a-b")
                && !is_name("")
                && !is_name("_x")
                && !is_name("f32")
        );
        assert_eq!(of_function().fresh("weights").to_string(), "weights_2");
    }
}
