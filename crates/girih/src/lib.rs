//! Compile, inspect and launch tile kernels.

pub mod abi;
mod args;
pub mod blocks;
pub mod buffer;
pub mod cache;
pub mod cc;
pub mod error;
pub mod facts;
pub mod files;
mod globals;
mod host;
mod launch;
pub mod machine;
pub mod memory;
pub mod module;
pub mod npy;
pub mod observe;
pub mod options;
mod pages;
mod pipe;
mod pool;
pub mod program;
mod signals;
pub mod spec;
pub mod values;
pub mod widen;

pub use args::{Arg, Extent, Param, ParamKind};
pub use buffer::{Buffer, Fill};
pub use error::{Error, Result};
pub use facts::Traffic;
pub use girih_compiler::pipeline::Stage;
pub use launch::{Compiled, Prepared, Report};
pub use options::{CachePolicy, Device, Options, PrintOrder};
pub use program::{Kernel, Program};
pub use signals::{install_interrupt_handler, interrupted};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
