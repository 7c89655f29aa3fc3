//! Tests of the whole compiler: its text, its folders and its documentation. One program, which is linked once.

mod effort;
mod fuzz_corpus;
mod graph_mutations;
mod graph_pages;
mod layering;
mod loops_ir;
mod mutations;
mod open_loops;
mod simulator_page;
mod simulator_speed;
mod ttir;
