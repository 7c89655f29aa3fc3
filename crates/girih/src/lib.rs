//! Compile, inspect and launch tile kernels.

pub mod abi;
pub mod blocks;
pub mod buffer;
pub mod cache;
pub mod cc;
pub mod error;
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

pub use buffer::{Buffer, Fill};
pub use error::{Error, Result};
pub use signals::{install_interrupt_handler, interrupted};
