//! Tests of the command, as a user runs it. One program, since each would be linked with the whole compiler.

mod assemble;
mod bad_input;
mod build;
mod build_gpu;
mod cache;
mod cli;
mod diagnostics;
mod explain;
mod expressions;
mod injection;
mod knobs;
mod lab;
mod lsp;
mod models;
mod options;
mod output;
mod pages;
mod places;
mod playground;
mod progress;
mod reference;
mod runnable;
mod shell;
mod sim;
mod standards;
mod tune;
