//! Source to an archive that the linker takes.

use std::path::Path;

use super::super::File;
use crate::compile::cc::{self, Compiler};
use crate::compile::scratch::Scratch;
use crate::compile::version::Tools;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::system::machine::Cpu;

/// The C compiler, for this machine or for a family of processors.
pub fn compiler(options: &Options, cpu: Option<Cpu>) -> Result<Compiler> {
    let Some(cpu) = cpu else { return Ok(Tools::default().compiler(options)?.clone()) };
    // For another architecture, call that architecture's cross compiler, unless the options name a compiler.
    let mut options = options.clone();
    if !cpu.is_here() {
        options.compiler.get_or_insert_with(|| format!("{}-linux-gnu-gcc", cpu.arch));
    }
    let tools = Tools::default();
    let missing = |e| match e {
        // The general message is about this machine's compiler; here the cross compiler is missing.
        Error::NoCompiler { tried } if !cpu.is_here() => Error::argument(format!(
            "a library for {arch} needs a C compiler for {arch}: `{}` was not found; Debian and Ubuntu have \
             `apt install gcc-{arch}-linux-gnu`, and GIRIH_CC names another",
            tried.join("`, `"),
            arch = cpu.arch
        )),
        e => e,
    };
    Ok(tools.compiler(&options).map_err(missing)?.clone().with_features(cpu.features))
}

/// The command that compiles a library's source, for users who compile it again.
pub fn command(name: &str, compiler: &Compiler) -> String {
    let flags: Vec<&str> = compiler.flags.iter().map(String::as_str).filter(|f| *f != "-w").collect();
    format!("cc {} -c {name}.c", flags.join(" "))
}

/// The features of a processor that the library uses, as the second line of a header.
pub fn needs(compiler: &Compiler) -> String {
    let features = compiler.flags.iter().filter_map(|f| f.strip_prefix("-m")).filter(|f| !f.contains('='));
    let features: Vec<&str> = features.collect();
    match features.is_empty() {
        true => String::new(),
        false => format!("\n// For processors that have {}.", features.join(", ")),
    }
}

/// `lib<name>.a` of the library's source.
pub fn archive(name: &str, files: &[File], compiler: &Compiler) -> Result<File> {
    let scratch = Scratch::new().map_err(|e| Error::file(std::env::temp_dir(), format!("cannot be written: {e}")))?;
    for file in files.iter().filter(|f| f.name.ends_with(".c") || f.name.ends_with(".h")) {
        write(&scratch.path().join(&file.name), &file.bytes)?;
    }
    let (source, object) = (scratch.path().join(format!("{name}.c")), scratch.path().join(format!("{name}.o")));
    compiler.compile_object(&source, &object)?;
    let archive = scratch.path().join(format!("lib{name}.a"));
    cc::archive(&archive, &object, compiler)?;
    let bytes = std::fs::read(&archive).map_err(|e| Error::file(&archive, format!("cannot be read: {e}")))?;
    Ok(File { name: format!("lib{name}.a"), what: "the library", bytes })
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|e| Error::file(path, format!("cannot be written: {e}")))
}
