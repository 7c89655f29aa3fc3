//! One file per subcommand.

pub mod assemble;
pub mod bench;
pub mod build;
pub mod by_hand;
pub mod cache;
pub mod check;
pub mod compile;
pub mod cutile;
pub mod disassemble;
pub mod doctor;
pub mod explain;
pub mod fmt;
pub mod generate;
pub mod model;
pub mod ops;
pub mod rules;
pub mod run;
pub mod runnable;
pub mod shell;
pub mod sim;
pub mod tune;
