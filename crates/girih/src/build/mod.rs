//! Libraries: a model or a tile program as files that do not need Girih.
//!
//! In: a [`Model`](crate::model::Model) or a [`Program`], and a name. Out: a [`Library`]: for a CPU C sources, a header and
//! an archive, for a GPU CUDA, machine code and a header; what `girih build` writes.
//!
//! * [`names`]: words of C for what users name    * [`expr`]: index expressions    * [`weights`]: one file of them
//! * [`header`]: what all headers share    * [`plan`]: a model as functions see it
//! * [`entry`], [`obligations`]: an entry of a program, and which version of its kernel a call runs
//! * [`cpu`](mod@cpu), [`cuda`]: the files    * [`folder`]: writes all or nothing
//!
//! Invariants: same input and machine, same bytes, the archive's too. A user's text is in the files only as an identifier
//! made here, as a label in a comment, or in an escaped string literal.

mod cpu;
mod cuda;
mod entry;
mod expr;
pub mod folder;
mod header;
mod names;
mod obligations;
mod plan;
mod weights;

use std::borrow::Cow;

use girih_compiler::tile::target::Capability;

use self::entry::Entry;
use crate::error::{Error, Result};
use crate::model::{Model, Tensor};
use crate::options::Options;
use crate::program::Program;
pub use crate::system::machine::{CPUS, Cpu, cpu, cpus, target_named};

use names::Names;
pub use names::{from_text, is_name};

/// One file of a library.
#[derive(Debug)]
pub struct File {
    /// Without a folder.
    pub name: String,
    /// A description of a few words.
    pub what: &'static str,
    pub bytes: Vec<u8>,
}

impl File {
    fn text(name: String, what: &'static str, text: String) -> File {
        File { name, what, bytes: text.into_bytes() }
    }
}

/// A model or a program as files.
#[derive(Debug)]
pub struct Library {
    pub name: String,
    pub files: Vec<File>,
    /// How a program is built against it, a template.
    command: &'static str,
    /// The outputs that could not be made, and why.
    pub missing: Vec<String>,
}

impl Library {
    /// The command that builds a program against it, where its files lie in a folder.
    pub fn command(&self, folder: &str) -> String {
        let at = if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        let include = if folder.is_empty() { String::new() } else { format!(" -I{folder}") };
        header::filled(self.command, &[("$at", &at), ("$name", &self.name), ("$include", &include)])
    }
}

/// Builds the library of a model. `arrays` give parameters that the model does not have. Its options
/// have the target that belongs to `cpu`, this machine where that is absent.
///
/// # Errors
/// Diagnostics of a model that cannot be compiled, a parameter that is missing, no C compiler.
pub fn of_model(model: &Model, name: &str, cpu: Option<Cpu>, arrays: &[(&str, &Tensor)]) -> Result<Library> {
    let options = model.options();
    if model.inputs().iter().chain(&model.outputs()).any(|port| port.elem.text) {
        return Err(Error::argument(
            "a library takes and gives numbers, and the model has strings as inputs or outputs",
        ));
    }
    let parts = model.parts(arrays)?;
    match options.resolved_target().has(Capability::Threads) {
        true => cuda::of_model(&parts, name, options),
        false => cpu::of_model(&parts, name, cpu, options),
    }
}

/// Builds the library of a tile program: all its entries, or one.
///
/// # Errors
/// Diagnostics of a program that cannot be compiled, one that prints, no C compiler.
pub fn of_program(
    program: &Program,
    name: &str,
    entry: Option<&str>,
    cpu: Option<Cpu>,
    options: &Options,
) -> Result<Library> {
    let chosen = match entry {
        Some(entry) => vec![entry],
        None => program.entries(),
    };
    let mut functions = Names::of_function();
    let mut entries: Vec<Entry> = vec![];
    for entry in &chosen {
        let called = functions.fresh(if chosen.len() == 1 { "run" } else { entry });
        let first = entries.last().map_or(0, |e| e.first + e.versions.len());
        entries.push(Entry { first, ..Entry::new(program, entry, format!("{name}_{called}"), options)? });
    }
    match options.resolved_target().has(Capability::Threads) {
        true => cuda::of_program(&entries, name, options),
        false => cpu::of_program(&entries, name, cpu, options),
    }
}

/// A user's text as a comment shows it.
fn label(text: &str) -> Cow<'static, str> {
    girih_compiler::base::Label::new(text).as_str().to_string().into()
}
