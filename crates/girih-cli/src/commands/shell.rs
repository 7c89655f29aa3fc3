//! Services for the shell: completions, pages for `man`, and the version with the compiler that built it.

use std::path::Path;

use clap::CommandFactory;
use girih::{Options, cc, machine};

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;

/// `girih completions SHELL`: the script, on standard output.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "girih", &mut script);
    out!("{}", String::from_utf8_lossy(&script))
}

/// `girih man DIR`: a page for the command and for each of its subcommands.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let folder = &args.folder;
    let failed = |path: &Path, e: std::io::Error| girih::Error::file(path, format!("cannot be written: {e}"));
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    let mut all = Cli::command().disable_help_subcommand(true);
    all.build();
    let mut pages = vec![("girih".to_string(), all.clone())];
    for sub in all.get_subcommands() {
        pages.push((format!("girih-{}", sub.get_name()), sub.clone()));
    }
    for (name, command) in pages {
        let path = folder.join(format!("{name}.1"));
        let mut page = vec![];
        clap_mangen::Man::new(command).render(&mut page).map_err(|e| failed(&path, e))?;
        girih::files::write_whole(&path, &page).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}

/// `girih --version -v`.
pub fn version() -> Result<(), Failure> {
    outln!("girih {}", env!("CARGO_PKG_VERSION"))?;
    let options = Options::from_env().map_err(Failure::usage)?;
    let compiler = match cc::find(options.compiler.as_deref()).and_then(|c| c.probe(None)) {
        Ok(c) => c.description(),
        Err(e) => e.to_string(),
    };
    let profile = if cfg!(debug_assertions) { "without optimisation" } else { "optimised" };
    outln!("built        {profile} for {} {}", std::env::consts::ARCH, std::env::consts::OS)?;
    outln!("C compiler   {compiler}")?;
    outln!("processor    {}", machine::features().join(" "))
}

/// Returns true if the words ask for the long version: `--version` and `-v` in any order, and nothing else.
pub fn asks_for_version(words: &[String]) -> bool {
    let is = |word: &String, names: [&str; 2]| names.contains(&word.as_str());
    let [a, b] = words else { return false };
    let (version, verbose) = (["--version", "-V"], ["-v", "--verbose"]);
    is(a, version) && is(b, verbose) || is(a, verbose) && is(b, version)
}
