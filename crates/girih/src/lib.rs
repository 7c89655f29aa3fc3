//! Compile, inspect and launch tile kernels.

pub mod abi;
mod args;
pub mod blocks;
pub mod buffer;
pub mod cache;
pub mod cc;
pub mod error;
pub mod facts;
mod files;
pub mod machine;
pub mod memory;
pub mod module;
pub mod npy;
mod pages;
mod pool;
mod signals;
pub mod spec;
pub mod values;

pub use args::{Arg, Extent, Param, ParamKind};
pub use buffer::{Buffer, Fill};
pub use error::{Error, Result};
pub use signals::{install_interrupt_handler, interrupted};
