//! Names of C: of a library, of its functions and of their parameters.

use girih_compiler::kernel::ir::{Ident, Idents};

/// Names of the parameters and local variables of the library's own functions.
const OWN: &str = "threads weights loaded arena grid scratch bad at bytes life failed launch workers work length blocks chosen \
arrays overlap kernels stream result user device context module check zeros file main first some";

/// Macros of the headers that the sources include, by name or by prefix.
const MACROS: &str = "NULL EOF errno offsetof alloca stdin stdout stderr FILE";
const FAMILIES: &str = "st_ sched_ SCHED_ O_ S_ F_ AT_ MAP_ PROT_ MS_ _SC_ CU cu";

/// Returns true if a library can have the name: an identifier of at most 60 characters without a leading underscore.
pub fn is_name(text: &str) -> bool {
    text.len() <= 60 && Ident::parse(text).is_some() && !text.starts_with('_')
}

/// A name for a library from any text, such as that of a file.
pub fn from_text(text: &str) -> String {
    Idents::default().fresh(text.trim_start_matches('_')).to_string()
}

/// The identifiers of one function: none is one of the library's own, or a macro.
pub struct Names(Idents);

impl Names {
    pub fn of_function() -> Names {
        let mut names = Idents::default();
        for word in OWN.split_whitespace() {
            names.fresh(word);
        }
        Names(names)
    }

    pub fn fresh(&mut self, hint: &str) -> String {
        let error = hint.starts_with('E') && hint.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        let macro_of = |list: &str, of: fn(&str, &str) -> bool| list.split(' ').any(|word| of(hint, word));
        let taken =
            macro_of(MACROS, |hint, word| hint == word) || macro_of(FAMILIES, |hint, word| hint.starts_with(word));
        match taken || (error && hint.len() > 3) {
            true => self.0.fresh(&format!("{hint}_")).to_string(),
            false => self.0.fresh(hint).to_string(),
        }
    }
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
        let mut names = Names::of_function();
        for (text, name) in
            [("weights", "weights_2"), ("errno", "errno_"), ("EINVAL", "EINVAL_"), ("E", "E"), ("x", "x"), ("x", "x_2")]
        {
            assert_eq!(names.fresh(text), name);
        }
    }
}
