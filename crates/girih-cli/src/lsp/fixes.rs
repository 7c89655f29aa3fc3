//! Quick fixes: the edit that the help of a diagnostic describes.
//!
//! In: a text and a diagnostic of it. Out: the bytes to replace and their new text; nothing where the help leaves the choice to
//! the user.
//!
//! ```text
//! `load` has no parameter `maks`            help: did you mean `mask`?                        maks     -> mask
//! `i < (n & i) > 2` is a chain of ...       help: put each comparison in parentheses: `..`    the text -> the help's
//! `arange` is a function of numpy, ...      help: use `girih.arange`                          np.arange -> tl.arange
//! an address can move only by ...           help: `/` divides as floats, `//` gives ...       /        -> //
//! ```
//!
//! Invariant: an edit lies within the span of its diagnostic.

use std::ops::Range;

use girih_compiler::base::{Code, Diagnostic};

/// A replacement of some bytes of the text.
#[derive(Debug, PartialEq, Eq)]
pub struct Fix {
    pub range: Range<usize>,
    pub new: String,
}

pub fn of(text: &str, d: &Diagnostic) -> Option<Fix> {
    let (help, span) = (d.help.as_deref()?, d.span?);
    let span = span.start as usize..span.end as usize;
    let marked = text.get(span.clone()).filter(|t| !t.is_empty())?;
    let whole = |new: &str| Some(Fix { range: span.clone(), new: new.to_string() });
    let part = |at: Range<usize>, new: &str| {
        Some(Fix { range: span.start + at.start..span.start + at.end, new: new.to_string() })
    };
    if let Some(near) = help.strip_prefix("did you mean ").and_then(|h| h.strip_suffix('?')) {
        let near = near.trim_matches('`');
        if is_one_word(marked) {
            return match marked.chars().next().filter(|c| "%@".contains(*c) && !near.starts_with(*c)) {
                Some(sigil) => whole(&format!("{sigil}{near}")),
                None => whole(near),
            };
        }
        // The message names the function or the module first.
        return quoted(&d.message).filter_map(|wrong| part(only(marked, wrong)?, near)).last();
    }
    if d.code == Code::BadCondition {
        return whole(quoted(help).next()?);
    }
    if d.code == Code::OutsideObject {
        let name = quoted(help).next()?.strip_prefix("girih.")?;
        let new = format!("{}{name}", language(text));
        // The marked text is the function, or a call of it.
        let end = marked.find('(').unwrap_or(marked.len());
        let function = marked.get(..end).filter(|f| f.rsplit('.').next() == Some(name))?;
        return part(0..function.len(), &new);
    }
    if help.starts_with("`/` divides") {
        let at = marked.find('/')?;
        let single = !marked.get(at + 1..)?.contains('/');
        return if single { part(at..at + 1, "//") } else { None };
    }
    None
}

/// Letters that words consist of, a `%` or `@` before them included.
fn is_one_word(text: &str) -> bool {
    text.strip_prefix(['%', '@']).unwrap_or(text).chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
        && !text.contains('.')
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Where a word stands in a text, if it stands there once.
fn only(text: &str, word: &str) -> Option<Range<usize>> {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |at: &usize| {
        let before = text.get(..*at).and_then(|t| t.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(letter) && !after.is_some_and(letter)
    };
    let mut all = text.match_indices(word).map(|(at, _)| at).filter(whole);
    match (all.next(), all.next()) {
        (Some(at), None) if !word.is_empty() => Some(at..at + word.len()),
        _ => None,
    }
}

/// How a script spells the language of kernels: `tl.`, or `girih.`.
fn language(text: &str) -> String {
    let name = text.lines().find_map(|line| {
        let line = line.trim();
        let rest =
            line.strip_prefix("import girih.language as ").or(line.strip_prefix("from girih import language as "));
        rest.or(line.strip_prefix("import girih as ")).map(str::trim)
    });
    format!("{}.", name.unwrap_or("girih"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use girih_compiler::base::Span;

    fn fixed(text: &str, marked: &str, code: Code, message: &str, help: &str) -> Option<String> {
        let at = text.find(marked).unwrap();
        let d = Diagnostic::error(code, message).at(Span::new(at, at + marked.len())).help(help);
        let Fix { range, new } = of(text, &d)?;
        Some(format!("{}{new}{}", &text[..range.start], &text[range.end..]))
    }

    #[test]
    fn helps_become_edits() {
        let cases = [
            (
                "tl.load(x, maks=m)",
                "tl.load(x, maks=m)",
                Code::BadCall,
                "`load` has no parameter `maks`",
                "did you mean `mask`?",
                "tl.load(x, mask=m)",
            ),
            (
                "y = ofsets + 1",
                "ofsets",
                Code::UnknownName,
                "`ofsets` is not defined",
                "did you mean `offsets`?",
                "y = offsets + 1",
            ),
            (
                "addf %yy, %x",
                "%yy",
                Code::UndefinedValue,
                "the value %yy is not defined here",
                "did you mean `y`?",
                "addf %y, %x",
            ),
            (
                "m=i < n & i > 2",
                "i < n & i > 2",
                Code::BadCondition,
                "a chain",
                "put each comparison in parentheses: `(i < n) & (i > 2)`",
                "m=(i < n) & (i > 2)",
            ),
            (
                "import girih.language as tl\nnp.arange(0, 4)",
                "np.arange",
                Code::OutsideObject,
                "`arange` is a function of numpy",
                "use `girih.arange`",
                "import girih.language as tl\ntl.arange(0, 4)",
            ),
            (
                "x + i / 2",
                "x + i / 2",
                Code::BadAddress,
                "an address moves",
                "`/` divides as floats, `//` gives whole numbers",
                "x + i // 2",
            ),
        ];
        for (text, marked, code, message, help, expected) in cases {
            assert_eq!(fixed(text, marked, code, message, help).as_deref(), Some(expected), "{help}");
        }
    }

    #[test]
    fn an_unclear_help_is_not_an_edit() {
        let unclear = [
            ("i / 2 + j / 3", "i / 2 + j / 3", "`/` divides as floats, `//` gives whole numbers"),
            ("f(maks, maks)", "f(maks, maks)", "did you mean `mask`?"),
            ("x", "x", "give the mask, or leave `other` out"),
        ];
        for (text, marked, help) in unclear {
            assert_eq!(fixed(text, marked, Code::BadCall, "`maks` is not there", help), None, "{help}");
        }
    }
}
