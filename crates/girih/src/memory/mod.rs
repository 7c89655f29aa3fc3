//! Arrays and the arguments of kernels.
//!
//! In: slices, `.npy` files, fills, and the raw addresses that other languages pass. Out: typed, aligned buffers,
//! arguments fitted to a kernel's parameters (one 64-bit slot each), and the regions of memory a launch may touch.

pub mod args;
pub mod buffer;
pub mod float8;
pub mod globals;
pub mod npy;
pub mod pages;
pub mod regions;
