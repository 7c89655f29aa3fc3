//! Reads bytecode: bytes in, a [`Module`] out that equals the module of the program's text, or a diagnostic with the
//! byte at which the file is wrong.
//!
//! ```text
//! 17 0a 14   exp, of type 10, of value 20   becomes   %1 = exp %tile : tile<16xf32>
//! ```
//!
//! The input is hostile. Announced sizes are compared with the bytes that are left before memory is allocated; nesting
//! is bounded; items that short numbers refer to again and again (strings, types, constants) are charged to a
//! [`Budget`], so memory stays within a fixed multiple of the file's length. Nothing is read twice, except types that
//! others refer to. Spans are byte ranges of the file.

mod attrs;
mod body;
mod cursor;
mod debug;
mod function;
mod tables;
mod types;

#[cfg(test)]
mod tests;

use super::tags::section;
use super::{MAGIC, Version};
use crate::base::{Code, Diagnostic, Span};
use crate::cuda_tile::ir::*;
use cursor::Cursor;
use std::cell::Cell;

/// The deepest nesting of regions, attributes and locations.
pub const MAX_DEPTH: u32 = 200;
/// The most dimensions of a tile or view.
pub const MAX_RANK: usize = 32;
/// The memory that referenced strings, types and constants may take: this amount, and [`EXPANSION`] times the file.
pub const ALLOWANCE: u64 = 16 << 20;
pub const EXPANSION: u64 = 64;

/// The result of reading a file.
#[derive(Debug)]
pub struct Read {
    pub module: Module,
    pub version: Version,
}

type Res<T> = Result<T, Box<Diagnostic>>;

#[cold]
fn fail<T>(code: Code, start: usize, end: usize, message: impl Into<String>) -> Res<T> {
    Err(Box::new(Diagnostic::error(code, message).at(Span::new(start, end))))
}

/// `1 operand`, `2 operands`
fn things(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The module of a file. It is not verified yet, like a parsed one.
pub fn read(bytes: &[u8]) -> Result<Read, Vec<Diagnostic>> {
    read_file(bytes).map_err(|d| vec![*d])
}

fn read_file(bytes: &[u8]) -> Res<Read> {
    if u32::try_from(bytes.len()).is_err() {
        return fail(Code::BytecodeTooLarge, 0, 0, "the file is longer than 4 GiB");
    }
    let (version, sections) = split(bytes)?;
    let mut file = File::new(version, bytes.len());
    let part = |id: u8| sections[id as usize].map(|(start, end)| Cursor::new(&bytes[..end], start));
    let missing = |what: &str| fail(Code::BadSection, bytes.len(), bytes.len(), format!("the file has no {what}"));
    match part(section::STRING) {
        Some(c) => file.strings(c)?,
        None => missing("section of strings")?,
    }
    if let Some(c) = part(section::DEBUG) {
        file.debug(c)?;
    }
    if let Some(c) = part(section::TYPE) {
        file.types(c)?;
    }
    if let Some(c) = part(section::CONSTANT) {
        file.constants(c)?;
    }
    let mut module = Module { name: Some("kernels".into()), ..Module::default() };
    if let Some(mut c) = part(section::PRODUCER) {
        module.producer = Some(file.string(&mut c, "the producer")?);
        c.finish("the producer")?;
    }
    if let Some(c) = part(section::GLOBAL) {
        module.globals = file.globals(c)?;
    }
    match part(section::FUNC) {
        Some(c) => module.funcs = file.functions(c)?,
        None => missing("section of functions")?,
    }
    Ok(Read { module, version })
}

/// The data that all parts of a file share.
struct File<'a> {
    version: Version,
    strings: Vec<&'a str>,
    types: Vec<types::TypeItem>,
    constants: Vec<tables::Bytes<'a>>,
    debug: debug::Debug<'a>,
    budget: Budget,
}

impl<'a> File<'a> {
    fn new(version: Version, len: usize) -> File<'a> {
        let budget = Budget(Cell::new(ALLOWANCE + EXPANSION * len as u64));
        File { version, strings: vec![], types: vec![], constants: vec![], debug: Default::default(), budget }
    }

    fn has(&self, since: (u8, u8)) -> bool {
        self.version.has(since)
    }
}

/// The bytes of memory that may still be filled with items that short numbers refer to.
struct Budget(Cell<u64>);

impl Budget {
    fn spend(&self, bytes: u64, at: usize) -> Res<()> {
        match self.0.get().checked_sub(bytes) {
            Some(left) => {
                self.0.set(left);
                Ok(())
            }
            None => {
                let message =
                    "the file refers to large strings, types or constants so often that they do not fit into memory";
                fail(Code::BytecodeTooLarge, at, at, message)
            }
        }
    }
}

const SECTIONS: usize = section::PRODUCER as usize + 1;
const SECTION_NAMES: [&str; SECTIONS] =
    ["", "strings", "functions", "debug locations", "constants", "types", "globals", "the producer"];
/// The alignment of each section is a multiple of this.
const ALIGNMENTS: [u64; SECTIONS] = [1, 4, 8, 8, 8, 4, 1, 1];

/// The start and the end of each section's contents.
type Sections = [Option<(usize, usize)>; SECTIONS];

/// The version and the sections of a file.
fn split(bytes: &[u8]) -> Res<(Version, Sections)> {
    let mut c = Cursor::new(bytes, 0);
    if !super::is_bytecode(bytes) {
        return fail(Code::NotBytecode, 0, bytes.len().min(MAGIC.len()), "the file does not start like tile bytecode");
    }
    c.take(MAGIC.len(), "the magic")?;
    let version = version(&mut c)?;
    let mut sections: Sections = [None; SECTIONS];
    loop {
        let start = c.at();
        let id = c.byte("the number of a section")?;
        if id == section::END {
            c.finish("the end of the bytecode")?;
            return Ok((version, sections));
        }
        let (number, aligned) = (id & !section::ALIGNED, id & section::ALIGNED != 0);
        let known = (1..SECTIONS).contains(&(number as usize));
        if !known || (number == section::PRODUCER && !version.has(super::tags::GLOBAL_FLAGS)) {
            return fail(Code::UnknownTag, start, c.at(), format!("version {version} has no section {number}"));
        }
        let what = format!("the section of {}", SECTION_NAMES[number as usize]);
        let len = c.varint("the length of a section")?;
        if aligned {
            let at = c.at();
            let alignment = c.varint("the alignment of a section")?;
            if !alignment.is_power_of_two() || alignment > 1 << 20 {
                return fail(Code::BadSection, at, c.at(), format!("{what} has the alignment {alignment}"));
            }
            c.align(0, alignment as usize, "padding")?;
        }
        let wanted = ALIGNMENTS[number as usize];
        if !(c.at() as u64).is_multiple_of(wanted) {
            let message = format!("{what} must start at a multiple of {wanted} bytes");
            return fail(Code::BadSection, start, c.at(), message);
        }
        let contents = c.part(len, &what)?;
        if sections[number as usize].is_some() {
            return fail(Code::BadSection, start, c.at(), format!("{what} appears twice"));
        }
        sections[number as usize] = Some((contents.at(), c.at()));
    }
}

fn version(c: &mut Cursor) -> Res<Version> {
    let start = c.at();
    let b = c.take(4, "the version")?;
    let version = Version { major: b[0], minor: b[1], tag: u16::from_le_bytes([b[2], b[3]]) };
    let plain = Version { tag: 0, ..version };
    // The lowest bit of the tag, which allows previews, has a meaning since 13.4.
    let tags = u16::from(version.has((13, 4)));
    if !Version::ALL.contains(&plain) || version.tag > tags {
        let tag = if version.tag == 0 { String::new() } else { format!(" with tag {}", version.tag) };
        let message = format!("unknown version {version}{tag}");
        let mut d = Diagnostic::error(Code::NotBytecode, message).at(Span::new(start, c.at()));
        d.help = Some("this build reads versions 13.1 to 13.5".into());
        return Err(Box::new(d));
    }
    Ok(version)
}
