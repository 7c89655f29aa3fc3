//! The `girih` command: everything it does goes through the library `girih`.

#[macro_use]
mod output;

mod cli;
mod columns;
mod commands;
mod failure;
mod lsp;
mod render;
mod scripts;
mod source;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use girih_compiler::base::words::shorten;
use girih_compiler::base::{Code, Diagnostic};

use cli::{Cli, Command};
use failure::Failure;
use render::Source;

#[global_allocator]
static ALLOCATOR: girih::allocator::Allocator = girih::allocator::Allocator;

fn main() -> ExitCode {
    girih::install_interrupt_handler();
    girih::allocator::install();
    std::panic::set_hook(Box::new(|info| {
        say!("girih: internal error: {info}\nThis is a bug of girih, not of your program.");
    }));
    let words: Vec<String> = std::env::args_os().skip(1).filter_map(|w| w.into_string().ok()).collect();
    if commands::shell::asks_for_version(&words) {
        return ExitCode::from(
            commands::shell::version().and_then(|()| output::finish()).map_or_else(Failure::report, |()| 0),
        );
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are not a failure.
            if error.use_stderr() {
                let text = error.to_string();
                match shorten(&text) == text {
                    // In its colours.
                    true => drop(error.print()),
                    false => output::say(text.trim_end()),
                }
                return ExitCode::from(2);
            }
            let printed = error.print().map_err(Failure::Output).and_then(|()| output::finish());
            return ExitCode::from(printed.map_or_else(Failure::report, |()| 0));
        }
    };
    let outcome = std::panic::catch_unwind(|| dispatch(cli.command));
    for warning in girih::cache::take_warnings() {
        render::one(&Source::default(), &Diagnostic::warning(Code::CacheUnusable, warning));
    }
    // A launch whose output could not be written was stopped for it.
    let outcome = outcome.map(|done| output::finish().and(done));
    match outcome {
        Ok(Ok(())) if girih::interrupted() => ExitCode::from(girih::interrupt_code()),
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => ExitCode::from(failure.report()),
        Err(_) => ExitCode::from(70),
    }
}

/// Returns true if a command shows the progress of a long compilation: on a terminal, unless its output is JSON for
/// programs.
fn shows_progress(command: &Command) -> bool {
    let wanted = match command {
        Command::Run(args) => !args.json,
        Command::Sim(args) => !args.json,
        Command::Build(args) => !args.json,
        Command::Compile(_) => true,
        _ => false,
    };
    wanted && std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

fn dispatch(command: Command) -> Result<(), Failure> {
    if shows_progress(&command) {
        girih::progress::watch();
    }
    match command {
        Command::Run(args) => commands::run::run(&args),
        Command::Build(args) => commands::build::run(&args),
        Command::Compile(args) => commands::compile::run(&args),
        Command::Sim(args) => commands::sim::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Lsp => lsp::run(),
        Command::Tune(args) => commands::tune::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Disassemble(args) => commands::disassemble::run(&args),
        Command::Fmt(args) => commands::fmt::run(&args),
        Command::Assemble(args) => commands::assemble::run(&args),
        Command::Ops(args) => commands::ops::run(&args),
        Command::Rules(args) => commands::rules::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Cache { action } => commands::cache::run(action),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Generate(args) => commands::generate::run(&args),
        Command::Completions(args) => commands::shell::completions(&args),
        Command::Man(args) => commands::shell::man(&args),
        Command::Cutile(args) => commands::cutile::run(&args),
    }
}
