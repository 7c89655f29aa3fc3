//! Source text from kernel IR.
//!
//! * [`cstyle`]: what every C-like language prints alike    * [`c`]: GNU C    * [`cuda`]: CUDA C++

pub mod c;
pub mod cstyle;
pub mod cuda;
