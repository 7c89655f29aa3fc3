//! The Girih tile compiler.
//!
//! Text and bytes in, text and bytes out: this crate holds no `unsafe` code, performs no I/O, starts no threads and
//! reads no clock, so the same input always gives the same output. Modules are in the order in which data flows
//! through them; each imports only modules that come before it (a test reads the imports).
#![forbid(unsafe_code)]

pub mod base;
pub mod num;
pub mod index;
pub mod cuda_tile;
pub mod ttir;
pub mod graph;
pub mod source;
pub mod loops;
pub mod tile;
pub mod kernel;
pub mod emit;
pub mod pipeline;
