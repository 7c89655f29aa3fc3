//! Kernels of `@girih.jit`: the parts of a launch that must be fast.
//!
//! `dispatch` finds the specialisation that a call's arguments ask for, `key` says what arguments look like to it,
//! `layout` whether a kernel knows how its arrays lie in memory, `torch` takes PyTorch's tensors, `kernel` holds a compiled
//! specialisation. `over_grid` is `kernel[grid]`, `choices` knows which configuration `@girih.autotune` chose for a launch.
//! Tracing a kernel's Python is Python's part (`python/girih/frontend`).

mod choices;
mod dispatch;
mod kernel;
pub mod key;
mod layout;
mod over_grid;
pub mod torch;

pub use choices::Choices;
pub use dispatch::Dispatcher;
pub use kernel::Kernel;
pub use over_grid::{OverGrid, Quiet};
