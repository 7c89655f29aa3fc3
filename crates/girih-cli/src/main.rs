//! The `girih` command: everything it does goes through the library `girih`.

/// Standard output; a reader that went away ends the command quietly.
macro_rules! out {
    ($($arg:tt)*) => { crate::write_out(format_args!($($arg)*)) };
}
macro_rules! outln {
    ($($arg:tt)*) => { crate::write_out(format_args!("{}\n", format_args!($($arg)*))) };
}

mod cli;
mod columns;
mod commands;
mod failure;
mod render;
mod source;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    girih::install_interrupt_handler();
    std::panic::set_hook(Box::new(|info| {
        eprintln!("girih: internal error: {info}\nThis is a bug of girih, not of your program.");
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no failure.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let outcome = std::panic::catch_unwind(|| dispatch(cli.command));
    match outcome {
        Ok(Ok(())) if girih::interrupted() => ExitCode::from(130),
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => ExitCode::from(failure.report()),
        Err(_) => ExitCode::from(70),
    }
}

fn write_out(text: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    if out.write_fmt(text).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => commands::run::run(&args),
        Command::Compile(args) => commands::compile::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Disassemble(args) => commands::disassemble::run(&args),
        Command::Fmt(args) => commands::fmt::run(&args),
        Command::Assemble(args) => commands::assemble::run(&args),
        Command::Ops(args) => commands::ops::run(&args),
        Command::Rules(args) => commands::rules::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Cache { action } => commands::cache::run(action),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Cutile(args) => commands::cutile::run(&args),
    }
}
