//! Kernel IR: flat, C-like statements over typed scalars and vectors, one statement per printed line of C.
//!
//! * [`ir`]: the data and its grammar    * [`ident`]: names that emitted source can have
//! * [`statements`]: every statement, declared once    * `kinds`, `spelled`: what statements are made of, and its text
//! * [`legalise`]: placed loops become kernel IR
//! * [`machine`]: what executes it; [`eval`]: one thread, as on a CPU; [`sim`]: the threads of a GPU, and what is wrong
//! * [`mod@print`], [`parse`]: the text of the IR; inverse to each other
//! * [`provenance`]: which operations of the user's program statements were made for
//! * [`verify`]: what must hold of it    * [`uniform`]: what all threads of a block have in common
//! * [`tcgen05`]: the numbers that tell its instructions of their operands
//! * [`nan_bits`]: which floats a kernel looks at the bits of    * [`registers`]: what warpgroups give each other

pub mod eval;
pub mod ident;
pub mod ir;
mod kinds;
pub mod legalise;
mod machine;
pub mod nan_bits;
pub mod parse;
pub mod print;
pub mod provenance;
pub mod registers;
pub mod sim;
mod spelled;
pub mod statements;
pub mod tcgen05;
pub mod uniform;
pub mod verify;
#[cfg(test)]
mod verify_tests;
