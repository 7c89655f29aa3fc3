//! What somebody may have meant who wrote a name that is not there.

/// `did you mean ...?`, or the list of what there is.
pub fn suggestion<'a>(what: &str, given: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let near = known.iter().map(|k| (distance(given, k), *k)).min();
    match near {
        Some((d, name)) if d <= given.chars().count().div_ceil(3) && d < given.chars().count() => {
            format!("did you mean `{name}`?")
        }
        _ if known.is_empty() => format!("there are no {what}"),
        _ => format!("the {what} are {}", known.join(", ")),
    }
}

/// Edits between two names: insertions, deletions, changes.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
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
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
