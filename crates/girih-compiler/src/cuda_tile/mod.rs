//! CUDA Tile IR: tiles as values, views, tokens, structured control flow.

pub mod eval;
pub mod ir;
