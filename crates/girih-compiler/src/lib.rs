//! The Girih tile compiler.
//!
//! Text and bytes in, text and bytes out: the crates of the compiler hold no `unsafe` code, perform no I/O, start no
//! threads and read no clock, so the same input always gives the same output. This one puts the layers of the others,
//! which it shows as its own modules, one behind the other: `pipeline`. `explain` gives all stages of a compilation linked line by line,
//! `spec` reads launches that are written as text.
#![forbid(unsafe_code)]

pub use girih_base::{base, index, num};
pub use girih_graph::{graph, source};
pub use girih_kernel::{emit, kernel};
pub use girih_schedule::{loops, tile};
pub use girih_tile_ir::{cuda_tile, ttir};

pub mod pipeline;

pub mod explain;

pub mod spec;
