//! CUDA Tile IR: tiles as values, views, tokens, structured control flow.

pub mod assumed;
pub mod bytecode;
pub mod eval;
pub mod ir;
pub mod loc;
pub mod ops;
pub mod parse;
pub mod print;
pub mod verify;
pub mod words;

pub use verify::verify;
