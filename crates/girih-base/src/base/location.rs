//! Locations in the files that a program was made from: a line of a Python script, say, that became a tile operation.

use std::fmt;
use std::sync::Arc;

use super::label::visible;

/// A line and column of a file, as the front end counted them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", visible(&self.file), self.line, self.column)
    }
}

/// A place and its function, if that is known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame {
    pub function: Option<Arc<str>>,
    pub place: Location,
}

/// The places of a chain of inlined calls, innermost first; empty if they are not known.
pub type Frames = Arc<[Frame]>;

/// The chain as one line: `a.py:5:11 in helper, called from a.py:13:16 in k`. Empty for an empty chain.
pub fn chain_text(frames: &[Frame]) -> String {
    let one = |f: &Frame| match &f.function {
        Some(name) => format!("{} in {}", f.place, visible(name)),
        None => f.place.to_string(),
    };
    frames.iter().map(one).collect::<Vec<_>>().join(", called from ")
}
