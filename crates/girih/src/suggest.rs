//! What somebody may have meant who wrote a name that is not there.

use girih_compiler::base::words::closest;

/// Of a longer list so many names are shown.
const SHOWN: usize = 32;

/// `did you mean ...?`, or the list of what there is.
pub fn suggestion<'a>(what: &str, given: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match closest(given, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => format!("there are no {what}"),
        None => format!("the {what} are {}", list(&known)),
    }
}

/// The names, as many as are worth reading.
pub fn list<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len() > SHOWN {
        true => format!("{} and {} more", shown.join(", "), names.len() - SHOWN),
        false => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        let known = || ["gemm", "softmax"].into_iter();
        assert_eq!(suggestion("entries", "gem", known()), "did you mean `gemm`?");
        assert_eq!(suggestion("entries", "sofmtax", known()), "did you mean `softmax`?");
        assert_eq!(suggestion("entries", "zzz", known()), "the entries are gemm, softmax");
        assert_eq!(suggestion("parameters", "d", ["a", "b"].into_iter()), "the parameters are a, b");
        let many: Vec<String> = (0..100).map(|i| format!("n{i}")).collect();
        let text = suggestion("inputs", "zzz", many.iter().map(String::as_str));
        assert!(text.starts_with("the inputs are n0, n1,") && text.ends_with("n31 and 68 more"), "{text}");
    }
}
