//! Messages about a text: all are E0805 with a span.

use crate::base::{Code, Diagnostic, Span};

/// A problem at a place of the text.
pub fn bad(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadExpression, message).at(span)
}

/// Evaluation stopped; what for is in the evaluator's list of diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop;

pub type Res<T> = Result<T, Stop>;

/// `did you mean ...?`, where one of the names is close.
pub fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = (name.len() / 3).clamp(1, 3);
    let lower = name.to_ascii_lowercase();
    let near = known
        .map(|k| (distance(&lower, &k.to_ascii_lowercase()), k))
        .filter(|(d, _)| *d <= limit)
        .min_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(b.1)))?;
    Some(format!("did you mean `{}`?", near.1))
}

/// How many letters must be inserted, deleted, replaced or exchanged with their neighbour.
///
/// Source: Damerau, A technique for computer detection and correction of spelling errors, 1964.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
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
