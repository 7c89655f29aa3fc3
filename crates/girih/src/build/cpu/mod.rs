//! Libraries for a CPU: one C file, its header and an archive.
//!
//! * [`source`]: kernels and the code that runs them    * [`model`], [`program`]: the functions    * [`archive`]: compiles them

mod archive;
mod model;
mod program;
mod source;

use super::entry::Entry;
use super::{File, Library};
use crate::error::Result;
use crate::model::plan_export::Parts;
use crate::options::Options;
use crate::system::machine::Cpu;

pub fn of_model(parts: &Parts<'_>, name: &str, cpu: Option<Cpu>, options: &Options) -> Result<Library> {
    let compiler = archive::compiler(options, cpu)?;
    let mut files = model::files(parts, name, &compiler, options)?;
    files.push(archive::archive(name, &files, &compiler)?);
    Ok(library(name, files))
}

pub fn of_program(entries: &[Entry], name: &str, cpu: Option<Cpu>, options: &Options) -> Result<Library> {
    let compiler = archive::compiler(options, cpu)?;
    let mut files = program::files(name, entries, &compiler, options)?;
    files.push(archive::archive(name, &files, &compiler)?);
    Ok(library(name, files))
}

fn library(name: &str, files: Vec<File>) -> Library {
    Library { name: name.into(), files, command: "cc main.c$include $atlib$name.a -lm", missing: vec![] }
}
