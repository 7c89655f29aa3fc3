//! Kernels of `@girih.jit`: the parts of a launch that must be fast.
//!
//! `dispatch` finds the specialisation that a call's arguments ask for, `key` says what arguments look like to it,
//! `layout` whether a kernel knows how its arrays lie in memory, `torch` takes PyTorch's tensors, `kernel` holds a compiled specialisation. Tracing a kernel's Python is Python's part (`python/girih/frontend`).

mod dispatch;
mod kernel;
pub mod key;
mod layout;
mod torch;

pub use dispatch::{Dispatcher, element_types};
pub use kernel::Kernel;
