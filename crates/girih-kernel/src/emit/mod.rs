//! Source text from Kernel IR.
//!
//! * [`cstyle`]: the parts that all C-like languages share    * [`c`]: GNU C    * [`cuda`]: CUDA C++

pub mod c;
pub mod cstyle;
pub mod cuda;

/// A line of source, from 1; a kernel of the unit; the number of a statement in it, counted in order of the text from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    pub line: u32,
    pub kernel: usize,
    pub statement: usize,
}

/// A translation unit with the statement of each line, in order; a line without a statement has no row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lined {
    pub text: String,
    pub lines: Vec<Line>,
}

/// Why there is no source: a sentence about a statement, or about the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub kernel: usize,
    /// Counted as in [`Line`]; `None` where it is the kernel.
    pub statement: Option<usize>,
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::{c, cuda};
    use crate::num::DType;

    #[test]
    fn every_number_has_a_type_in_every_language() {
        for (language, dialect) in [("C", &c::DIALECT), ("CUDA", &cuda::DIALECT)] {
            for number in DType::ALL {
                assert!(dialect.base(number.name()).is_some(), "{number} in {language}");
            }
        }
    }
}
