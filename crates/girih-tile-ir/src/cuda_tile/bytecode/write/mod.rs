//! Writes bytecode: a verified [`Module`] and a [`Version`] in, the bytes of a file out, or the list of features that
//! the version cannot express.
//!
//! ```text
//! %r = atan2 %x, %y : tile<f32>     --> error[E0710]: the operation `atan2` cannot be written as bytecode 13.1: it
//!                                       needs 13.2 or later
//! ```
//!
//! Invariants: the same module gives the same bytes. Every string, type, constant and debug attribute is written once,
//! in the order of its first use. A feature newer than the version is left out only if it carries no information: an
//! attribute at its default, an unused result.

mod attributes;
mod body;
mod buffer;
mod debug;
mod table;
#[cfg(test)]
mod tests;
mod types;

use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

use super::tags::{GLOBAL_FLAGS, Since, attribute, function, section};
use super::{MAGIC, Version};
use crate::base::{Code, Diagnostic, Span};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::loc::Scope;
use body::Body;
use buffer::Buffer;
use table::Table;

/// The versions that can be written, oldest first.
pub const VERSIONS: [Version; 4] = [Version::V13_1, Version::V13_2, Version::V13_3, Version::V13_4];

/// The bytecode of a module at a version. Errors name the features that the version, or any version, cannot express.
pub fn write(m: &Module, version: Version) -> Result<Vec<u8>, Vec<Diagnostic>> {
    if !VERSIONS.contains(&version) {
        let message = format!("bytecode version {version} cannot be written");
        return Err(vec![
            Diagnostic::error(Code::NotInVersion, message).help("the newest version that can be written is 13.4"),
        ]);
    }
    let mut w = Writer {
        version,
        strings: Table::default(),
        types: Table::default(),
        constants: Table::default(),
        debug: Table::default(),
        type_numbers: FxHashMap::default(),
        places: FxHashMap::default(),
        scope: None,
        errors: vec![],
        said: BTreeSet::new(),
    };
    let out = w.module(m);
    w.errors.sort_by_key(|d| d.span.map(|s| s.start));
    if w.errors.is_empty() { Ok(out.0) } else { Err(w.errors) }
}

/// The bytecode of a module at the oldest version that can express it, and that version.
pub fn write_oldest(m: &Module) -> Result<(Vec<u8>, Version), Vec<Diagnostic>> {
    let mut errors = vec![];
    for version in VERSIONS {
        match write(m, version) {
            Ok(bytes) => return Ok((bytes, version)),
            Err(e) => errors = e,
        }
    }
    Err(errors)
}

struct Writer<'m> {
    version: Version,
    strings: Table,
    types: Table,
    constants: Table,
    debug: Table,
    type_numbers: FxHashMap<&'m Type, u64>,
    /// Locations of the function that is being written.
    places: FxHashMap<Loc, u64>,
    /// The scope for places without one.
    scope: Option<Scope>,
    errors: Vec<Diagnostic>,
    /// The messages reported so far: each is reported once, where it first applies.
    said: BTreeSet<String>,
}

impl<'m> Writer<'m> {
    /// Reports an error if the version does not have a feature.
    fn needs(&mut self, since: Since, at: Span, what: impl FnOnce() -> String) {
        if !self.version.has(since) {
            let (major, minor) = since;
            let version = self.version;
            let message =
                format!("{} cannot be written as bytecode {version}: it needs {major}.{minor} or later", what());
            self.error(Code::NotInVersion, message, at);
        }
    }

    /// Reports that no version has a form for something.
    fn no_form(&mut self, at: Span, what: String) {
        self.error(Code::NotInBytecode, format!("{what} cannot be written as bytecode"), at);
    }

    fn error(&mut self, code: Code, message: String, at: Span) {
        if self.said.insert(message.clone()) {
            self.errors.push(Diagnostic::error(code, message).at(at));
        }
    }

    fn module(&mut self, m: &'m Module) -> Buffer {
        let mut out = Buffer::default();
        out.bytes(&MAGIC);
        out.bytes(&[self.version.major, self.version.minor]);
        out.bytes(&self.version.tag.to_le_bytes());

        let mut places = vec![];
        let functions = self.functions(m, &mut places);
        add(&mut out, section::FUNC, 8, &functions);
        if !m.globals.is_empty() {
            let globals = self.globals(m);
            add(&mut out, section::GLOBAL, 1, &globals);
        }
        if !self.constants.is_empty() {
            add_table(&mut out, section::CONSTANT, 8, &self.constants);
        }
        if !places.is_empty() {
            add(&mut out, section::DEBUG, 8, &debug::section(&places, &self.debug));
        }
        add_table(&mut out, section::TYPE, 4, &self.types);
        if let Some(producer) = &m.producer {
            self.needs(GLOBAL_FLAGS, Span::default(), || "the name of the program's producer".into());
            let mut payload = Buffer::default();
            payload.varint(self.string(producer));
            add(&mut out, section::PRODUCER, 1, &payload);
        }
        add_table(&mut out, section::STRING, 4, &self.strings);
        out.byte(section::END);
        out
    }

    fn functions(&mut self, m: &'m Module, places: &mut Vec<Vec<u64>>) -> Buffer {
        let mut out = Buffer::default();
        out.varint(m.funcs.len() as u64);
        for f in &m.funcs {
            if f.kind != FuncKind::Entry {
                self.no_form(f.span, "a function that is not an entry".into());
            }
            out.varint(self.string(&f.name));
            out.varint(self.function_type(f));
            let place = self.function_place(f);
            let mut body = Body::new(self, f);
            let bytes = body.write();
            let of_operations = body.places;
            let known = place != 0 || of_operations.iter().any(|&n| n != 0);
            let hints = if f.hints.0.is_empty() { 0 } else { function::HINTS };
            out.byte(function::KERNEL | hints);
            if known {
                places.push([place].into_iter().chain(of_operations).collect());
            }
            out.varint(if known { places.len() as u64 } else { 0 });
            if hints != 0 {
                out.varint(attribute::OPTIMIZATION_HINTS);
                self.dictionary(&f.hints.0, f.span, &mut out);
            }
            out.varint(bytes.0.len() as u64);
            out.bytes(&bytes.0);
        }
        out
    }

    fn globals(&mut self, m: &'m Module) -> Buffer {
        let mut out = Buffer::default();
        out.varint(m.globals.len() as u64);
        for g in &m.globals {
            let ty = TileType::of(g.value.shape.clone(), Elem::Num(g.value.dtype));
            out.varint(self.string(&g.name));
            out.varint(self.tile(&ty, g.span));
            out.varint(self.elements(&g.value));
            out.varint(g.alignment);
            for (set, word) in [(g.private, "private"), (g.constant, "constant")] {
                if set {
                    self.needs(GLOBAL_FLAGS, g.span, || format!("the {word} global `@{}`", g.name));
                }
                if self.version.has(GLOBAL_FLAGS) {
                    out.varint(set.into());
                }
            }
        }
        out
    }
}

/// A section: its number, its length, its alignment and padding up to it, its bytes.
fn add(out: &mut Buffer, number: u8, alignment: usize, payload: &Buffer) {
    let aligned = alignment > 1;
    out.byte(if aligned { number | section::ALIGNED } else { number });
    out.varint(payload.0.len() as u64);
    if aligned {
        out.varint(alignment as u64);
        out.pad(alignment);
    }
    out.bytes(&payload.0);
}

fn add_table(out: &mut Buffer, number: u8, width: usize, table: &Table) {
    let mut payload = Buffer::default();
    table.write(width, &mut payload);
    add(out, number, width, &payload);
}
