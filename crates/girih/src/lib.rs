//! Compile, inspect and launch tile kernels.

pub mod abi;
pub mod blocks;
pub mod cache;
pub mod cc;
pub mod error;
mod files;
pub mod machine;
pub mod module;
mod pages;
mod pool;
mod signals;

pub use error::{Error, Result};
pub use signals::{install_interrupt_handler, interrupted};
