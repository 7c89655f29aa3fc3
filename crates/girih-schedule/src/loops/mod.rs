//! Loop IR: loop nests over scalars, and the passes that make and improve them.

pub mod addresses;
pub mod eval;
pub mod fresh_sums;
pub mod fuse;
pub mod ir;
mod kinds;
pub mod lanes;
pub mod launch_facts;
pub mod lift;
pub mod matrix;
pub mod cluster_block;
pub mod panels;
pub mod model;
pub mod names;
pub mod overlap;
pub mod parse;
pub mod print;
pub mod provenance;
mod spelled;
mod statements;
#[cfg(test)]
mod text_tests;
pub mod amx;
pub mod verify;
#[cfg(test)]
mod verify_tests;
pub mod walk;
