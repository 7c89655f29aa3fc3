//! Loops and schedules of the Girih tile compiler.
//!
//! `loops`: loop nests, and the fusion of programs and models into them. `tile`: primitives that place loops, and the rules that choose
//! them for a target.
//! The crate `girih-compiler` has all layers in order.
#![forbid(unsafe_code)]

use girih_base::{base, index, num};
use girih_graph::graph;
#[cfg(any(test, feature = "testing"))]
use girih_graph::source;
use girih_tile_ir::cuda_tile;

pub mod loops;
pub mod tile;
