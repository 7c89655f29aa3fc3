//! The project's promises on memory, undefined operations, blocks and traps, shown natively and on the evaluator.

mod aliasing;
mod blocks;
mod bounds;
mod common;
mod in_place;
mod large;
mod outside;
mod places;
mod random;
mod running;
mod traps;
mod unaligned;
mod undefined;
mod wrapping;
