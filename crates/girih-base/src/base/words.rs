//! A user's words in messages: shortened if they are long, with a suggestion if they are not known.
//!
//! Invariants: a shortened text gives the number of characters left out, and stays as it is when it is shortened again.

use std::borrow::Cow;

/// A longer quotation or word loses its middle.
const LONGEST: usize = 400;
/// The characters that stay at either end.
const ENDS: (usize, usize) = (200, 60);
/// A longer message loses its middle too.
const LONGEST_MESSAGE: usize = 6_000;
const MESSAGE_ENDS: (usize, usize) = (3_000, 1_000);

/// The message without any part that is too long to read: text between backticks and words of many characters are cut
/// in their middle.
///
/// ```
/// use girih_base::base::words::shorten;
/// let name = "x".repeat(1_000_000);
/// let message = shorten(&format!("unknown entry `{name}`")).into_owned();
/// assert!(message.starts_with("unknown entry `xxx") && message.contains("...(999740 characters left out)..."));
/// assert!(message.len() < 500);
/// ```
pub fn shorten(message: &str) -> Cow<'_, str> {
    if message.len() <= LONGEST {
        return message.into();
    }
    let mut out = String::new();
    for (i, part) in message.split('`').enumerate() {
        if i > 0 {
            out.push('`');
        }
        match i % 2 == 1 && part.chars().nth(LONGEST).is_some() {
            true => cut(part, ENDS, &mut out),
            false => words(part, &mut out),
        }
    }
    if out.chars().nth(LONGEST_MESSAGE).is_some() {
        let whole = std::mem::take(&mut out);
        cut(&whole, MESSAGE_ENDS, &mut out);
    }
    match out == message {
        true => message.into(),
        false => out.into(),
    }
}

fn words(text: &str, out: &mut String) {
    for word in text.split_inclusive(char::is_whitespace) {
        match word.chars().nth(LONGEST).is_some() {
            true => cut(word, ENDS, out),
            false => out.push_str(word),
        }
    }
}

fn cut(text: &str, (head, tail): (usize, usize), out: &mut String) {
    let count = text.chars().count();
    out.extend(text.chars().take(head));
    out.push_str(&format!("...({} characters left out)...", count.saturating_sub(head + tail)));
    out.extend(text.chars().skip(count.saturating_sub(tail)));
}

/// The candidate nearest to a word, in any case, if it is near enough to be a likely typo; of several the first by
/// name.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = |text: &str| text.chars().take(64).flat_map(char::to_lowercase).collect::<Vec<char>>();
    // A word of more than 64 letters gets no suggestion.
    if word.len() > 64 {
        return None;
    }
    let word = lower(word);
    let limit = (word.len() / 3).clamp(1, 3);
    let near = |candidate: &&str| {
        let candidate = lower(candidate);
        let d = distance(&word, &candidate);
        (d <= limit && (d == 0 || d < candidate.len().max(word.len()))).then_some(d)
    };
    let scored = candidates.into_iter().filter_map(|c| Some((near(&c)?, c)));
    scored.min().map(|(_, c)| c)
}

/// The number of letters to insert, delete, replace or exchange with their neighbour.
///
/// Source: Damerau, A technique for computer detection and correction of spelling errors, 1964.
fn distance(a: &[char], b: &[char]) -> usize {
    let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (vec![], (0..=b.len()).collect());
    let mut previous = None;
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        let mut left = None;
        for (j, &y) in b.iter().enumerate() {
            let mut best = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            if left == Some(x) && previous == Some(y) {
                best = best.min(at(&before, j.saturating_sub(1)) + 1);
            }
            row.push(best);
            left = Some(y);
        }
        before = std::mem::replace(&mut last, row);
        previous = Some(x);
    }
    at(&last, b.len())
}

/// The most names of a longer list that are shown.
const SHOWN: usize = 32;

/// `did you mean ...?`, if one of the names is near.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(given, known).map(|near| format!("did you mean `{near}`?"))
}

/// `did you mean ...?`, or the list of known names.
pub fn suggestion<'a>(what: &str, given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match did_you_mean(given, known.iter().copied()) {
        Some(question) => question,
        None if known.is_empty() => format!("there are no {what}"),
        None => format!("the {what} are {}", list(&known)),
    }
}

/// The first names, and the number of the others.
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
    fn short_messages_stay() {
        for text in ["", "`a` is not `b`", &"word ".repeat(1000), &"é".repeat(LONGEST), "`", "a ` b"] {
            assert_eq!(shorten(text), text);
        }
    }

    #[test]
    fn long_pieces_lose_their_middle_once() {
        let many = ["x", "é", "\u{1f600}", "a b ", "\n"];
        let around = [("", ""), ("found `", "`"), ("'", "', expected"), ("`a` then `", "` and `c`"), ("`", "")];
        for piece in many {
            for (before, after) in around {
                let text = format!("{before}{}{after}", piece.repeat(300_000));
                let short = shorten(&text).into_owned();
                assert!(short.chars().count() < 4_100, "{before} {piece} {after}: {}", short.len());
                assert!(short.contains("characters left out)..."), "{before} {piece} {after}");
                assert!(short.starts_with(before) && short.ends_with(after), "{before} {piece} {after}");
                assert_eq!(shorten(&short), short, "{before} {piece} {after}");
            }
        }
    }

    #[test]
    fn near_names_are_found() {
        let closest = |word: &str, known: &[&'static str]| super::closest(word, known.iter().copied());
        assert_eq!(closest("sofmtax", &["gemm", "softmax"]), Some("softmax"));
        assert_eq!(closest("BLOK", &["x", "BLOCK"]), Some("BLOCK"));
        assert_eq!(closest("Relu", &["relu"]), Some("relu"));
        assert_eq!(closest("f", &["F"]), Some("F"));
        assert_eq!(closest("w", &["F", "x"]), None);
        assert_eq!(closest("nn", &["a", "n"]), Some("n"));
        assert_eq!(closest("zzz", &["gemm"]), None);
        assert_eq!(closest("gem", &["gen", "gemm", "gems"]), Some("gemm"));
        assert_eq!(closest("", &["a"]), None);
        assert_eq!(closest(&"x".repeat(1_000_000), &["x"]), None);
        let distance =
            |a: &str, b: &str| super::distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!((distance("kitten", "sitting"), distance("ab", "ba"), distance("", "abc")), (3, 1, 3));
    }

    #[test]
    fn suggestions_name_one_or_list_all() {
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
