//! Kernels of the Girih tile compiler.
//!
//! `kernel`: typed statements for one thread, their verifier, evaluator and simulator. `emit`: C and CUDA C++.
//! The crate `girih-compiler` has all layers in order.
#![forbid(unsafe_code)]

use girih_base::{base, index, num};
use girih_schedule::{loops, tile};

pub mod kernel;
pub mod emit;
