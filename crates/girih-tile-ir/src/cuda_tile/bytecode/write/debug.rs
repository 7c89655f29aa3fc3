//! Debug attributes: the origins of operations.
//!
//! Bytecode has places in scopes, and calls. Other locations have no form there: a named location is written as its
//! inner one, a fused location as the first part that has a place. A place without a scope lies in the scope of its
//! function; a function without a scope gets one of its own.

use super::Writer;
use super::buffer::Buffer;
use crate::base::Location;
use crate::cuda_tile::bytecode::tags::debug;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::loc::{CompileUnit, File, LocKind, Scope, ScopeKind, Subprogram};

impl<'m> Writer<'m> {
    /// The location of a function, to be called before the locations of its operations are requested.
    pub fn function_place(&mut self, f: &'m Func) -> u64 {
        self.places.clear();
        self.scope = f.loc.scope().and_then(Scope::function).cloned().map(Scope::subprogram);
        if self.scope.is_some() {
            return self.place(&f.loc);
        }
        let first = f.loc.place().or_else(|| f.ops.values().find_map(|op| op.loc.place()));
        let Some(place) = first else { return 0 };
        self.scope = Some(Scope::subprogram(subprogram(&f.name, place)));
        self.place(&Loc::file(place.file.clone(), place.line, place.column))
    }

    /// The number of a location; 0 is unknown.
    pub fn place(&mut self, loc: &Loc) -> u64 {
        if loc.is_unknown() {
            return 0;
        }
        if let Some(&n) = self.places.get(loc) {
            return n;
        }
        let n = match loc.kind() {
            None => 0,
            Some(LocKind::File(place)) => match self.scope.clone() {
                Some(scope) => self.located(place, &scope),
                None => 0,
            },
            Some(LocKind::Scoped { loc, scope }) => match loc.place() {
                Some(place) => self.located(place, scope),
                None => 0,
            },
            Some(LocKind::CallSite { callee, caller }) => {
                let (callee, caller) = (self.place(callee), self.place(caller));
                self.debug_item(|b| {
                    b.varint(debug::CALL_SITE);
                    b.varint(callee);
                    b.varint(caller);
                })
            }
            Some(LocKind::Named { loc, .. }) => self.place(loc),
            Some(LocKind::Fused(parts)) => match parts.iter().find(|p| p.place().is_some()) {
                Some(part) => self.place(part),
                None => 0,
            },
        };
        self.places.insert(loc.clone(), n);
        n
    }

    fn located(&mut self, place: &Location, scope: &Scope) -> u64 {
        let scope = self.scope_number(scope);
        let file = self.string(&place.file);
        self.debug_item(|b| {
            b.varint(debug::LOC);
            b.varint(scope);
            b.varint(file);
            b.varint(place.line.into());
            b.varint(place.column.into());
        })
    }

    fn scope_number(&mut self, scope: &Scope) -> u64 {
        match scope.kind() {
            ScopeKind::File(file) => self.file_number(file),
            ScopeKind::CompileUnit(unit) => self.unit_number(unit),
            ScopeKind::LexicalBlock { scope, file, line, column } => {
                let (scope, file) = (self.scope_number(scope), self.file_number(file));
                self.debug_item(|b| {
                    b.varint(debug::LEXICAL_BLOCK);
                    b.varint(scope);
                    b.varint(file);
                    b.varint((*line).into());
                    b.varint((*column).into());
                })
            }
            ScopeKind::Subprogram(p) => {
                let (file, unit) = (self.file_number(&p.file), self.unit_number(&p.compile_unit));
                let (name, linkage_name) = (self.string(&p.name), self.string(&p.linkage_name));
                self.debug_item(|b| {
                    b.varint(debug::SUBPROGRAM);
                    b.varint(file);
                    b.varint(p.line.into());
                    b.varint(name);
                    b.varint(linkage_name);
                    b.varint(unit);
                    b.varint(p.scope_line.into());
                })
            }
        }
    }

    fn file_number(&mut self, file: &File) -> u64 {
        let (name, directory) = (self.string(&file.name), self.string(&file.directory));
        self.debug_item(|b| {
            b.varint(debug::FILE);
            b.varint(name);
            b.varint(directory);
        })
    }

    fn unit_number(&mut self, unit: &CompileUnit) -> u64 {
        let file = self.file_number(&unit.file);
        self.debug_item(|b| {
            b.varint(debug::COMPILE_UNIT);
            b.varint(file);
        })
    }

    /// The number of a debug attribute, counted from 1.
    fn debug_item(&mut self, build: impl FnOnce(&mut Buffer)) -> u64 {
        let mut item = Buffer::default();
        build(&mut item);
        self.debug.number(&item.0) + 1
    }
}

/// The scope of a function that has none.
fn subprogram(name: &str, place: &Location) -> Subprogram {
    let (directory, file) = place.file.rsplit_once('/').unwrap_or(("", &place.file));
    let file = File { name: file.into(), directory: directory.into() };
    Subprogram {
        file: file.clone(),
        line: place.line,
        name: name.into(),
        linkage_name: name.into(),
        compile_unit: CompileUnit { file },
        scope_line: place.line,
    }
}

/// The debug section: for each function that has one, its own location and then those of its operations.
pub(super) fn section(functions: &[Vec<u64>], attributes: &super::table::Table) -> Buffer {
    let mut out = Buffer::default();
    out.varint(functions.len() as u64);
    out.pad(4);
    let mut at = 0u32;
    for places in functions {
        out.bytes(&at.to_le_bytes());
        at += places.len() as u32;
    }
    out.varint(at.into());
    out.pad(8);
    functions.iter().flatten().for_each(|n| out.bytes(&n.to_le_bytes()));
    attributes.write(4, &mut out);
    out
}
