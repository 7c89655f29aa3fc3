//! Source text from kernel IR.
//!
//! * [`cstyle`]: what every C-like language prints alike    * [`c`]: GNU C    * [`cuda`]: CUDA C++

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

/// A translation unit with its lines in order; where a line is no statement it has no row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lined {
    pub text: String,
    pub lines: Vec<Line>,
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
