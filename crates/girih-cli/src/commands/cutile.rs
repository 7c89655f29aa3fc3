//! `girih cutile`: becomes `python -m girih.cutile` with the Python that has the package. Other commands that need Python find it
//! here too.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::CutileArgs;
use crate::failure::Failure;

/// Ends with success where Python can import `girih.cutile`.
const PROBE: &str = "import importlib.util as u, sys; sys.exit(0 if u.find_spec('girih') else 9)";

pub fn run(args: &CutileArgs) -> Result<(), Failure> {
    become_python("girih.cutile", &args.args)
}

/// Becomes `python -m MODULE` with the Python that has the package.
pub fn become_python(module: &str, args: &[OsString]) -> Result<(), Failure> {
    let mut command = package_command()?;
    let error = command.args(["-m", module]).args(args).exec();
    Err(Failure::usage(format!("{} cannot be run: {error}", command.get_program().display())))
}

/// A command of the Python that has the package.
pub fn package_command() -> Result<Command, Failure> {
    let mut without = vec![];
    for python in candidates() {
        let probe = command(&python)
            .args(["-c", PROBE])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match probe.ok().and_then(|status| status.code()) {
            Some(0) => return Ok(command(&python)),
            Some(9) => without.push(python.display().to_string()),
            _ => {}
        }
    }
    Err(Failure::usage(if without.is_empty() {
        "no Python was found; install Python 3.10 or newer, or name one in GIRIH_PYTHON".to_string()
    } else {
        format!(
            "the Python package girih is not installed for {}; install it with `pip install .` in a checkout of girih, \
             or name in GIRIH_PYTHON the Python that has it",
            without.join(" nor for ")
        )
    }))
}

/// Pythons to try: the one named, or the one installed beside this command, that of the environment, that of the system.
fn candidates() -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    if let Some(named) = set("GIRIH_PYTHON") {
        return vec![named.into()];
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("python3")));
    let environment = set("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin/python3"));
    let mut found: Vec<PathBuf> = [beside, environment].into_iter().flatten().filter(|p| p.is_file()).collect();
    found.push("python3".into());
    found.dedup();
    found
}

fn command(python: &Path) -> Command {
    let mut command = Command::new(python);
    if let Some(path) = python_path() {
        command.env("PYTHONPATH", path);
    }
    command
}

/// For the command of a checkout, the package of the checkout.
fn python_path() -> Option<OsString> {
    let exe = std::env::current_exe().ok()?;
    let sources = exe.ancestors().nth(3)?.join("python");
    if !sources.join("girih/_library.py").is_file() {
        return None;
    }
    let before = std::env::var_os("PYTHONPATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(sources).chain(std::env::split_paths(&before))).ok()
}
