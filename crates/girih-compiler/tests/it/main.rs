//! Tests of the whole compiler: its text, its folders and its documentation. One program, which is linked once.

mod effort;
mod fuzz_corpus;
mod graph_mutations;
mod graph_pages;
mod layering;
mod layouts;
mod long_rows;
mod loops_ir;
mod model_work;
mod mutations;
mod open_loops;
mod plans;
mod provenance;
mod rule_meaning;
mod rule_work;
mod schedules;
mod simulator_page;
mod simulator_speed;
mod sorts;
mod split_sums;
mod ttir;
