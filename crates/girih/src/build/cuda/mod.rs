//! Libraries for a GPU: CUDA and its machine code, and C that launches it by the driver's API.
//!
//! * [`source`]: kernels, their geometry, how one is launched    * [`model`], [`program`]: the functions
//! * [`example`]: a program that runs them

mod example;
mod model;
mod program;
mod source;

pub use model::library as of_model;
pub use program::library as of_program;
