//! CUDA Tile IR: tiles as values, views, tokens, structured control flow.

pub mod ir;
