//! From a lowered kernel to loaded native code.
//!
//! In: kernels as `girih-compiler` lowers them, and options. Out: a [`version::Version`]: entry points in a loaded shared
//! object, with the requirements of a launch. In between are the emitted C, the system's C compiler and the cache on disk.
//!
//! Beside that path: `gpu` gives the CUDA of a GPU target, and the output of NVIDIA's tools for it; `progress` and
//! `observe` watch a compilation, `inspect` is what can be asked of kernels and models alike, `assembly` their machine code as people read it, `widen` makes a program's floats float64.

pub mod abi;
mod assembly;
pub mod cache;
pub mod cc;
pub mod module;
pub(crate) mod gpu;
pub mod inspect;
pub mod observe;
pub mod progress;
pub mod scratch;
pub mod version;
pub mod widen;
