//! The tile programs that the Girih tile compiler reads.
//!
//! `cuda_tile`: CUDA Tile IR, its text, bytecode, verifier and evaluator. `ttir`: what Triton prints, as CUDA Tile IR.
//! The crate `girih-compiler` has all layers in order.
#![forbid(unsafe_code)]

use girih_base::{base, num};

pub mod cuda_tile;
pub mod ttir;
