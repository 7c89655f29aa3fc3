//! Debug locations: one for each function and each of its operations, by number in a table.

use super::cursor::{Cursor, words};
use super::tables::table;
use super::{File, MAX_DEPTH, Res, fail, things};
use crate::base::{Code, Span};
use crate::cuda_tile::bytecode::tags::debug as tag;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::loc::{CompileUnit, File as SourceFile, Scope, ScopeKind, Subprogram};
use std::cell::RefCell;
use std::sync::Arc;

/// The section; its locations are built when they are first needed.
#[derive(Default)]
pub(super) struct Debug<'a> {
    /// The numbers of the locations of each function and its operations: the bytes of the numbers, and their place.
    functions: Vec<(&'a [u8], usize)>,
    items: Vec<Cursor<'a>>,
    read: RefCell<Vec<Item>>,
    strings: RefCell<Vec<Option<Arc<str>>>>,
}

#[derive(Clone)]
enum Item {
    Unread,
    /// Being read; a reference to it now is a cycle.
    Reading,
    Loc(Loc),
    Scope(Scope),
}

impl<'a> File<'a> {
    pub(super) fn debug(&mut self, mut c: Cursor<'a>) -> Res<()> {
        let start = c.at();
        let n = c.count(4, "the number of functions with locations")?;
        c.align(start, 4, "padding")?;
        let offsets_at = c.at();
        let offsets = c.take(n.saturating_mul(4), "the offsets of functions' locations")?;
        let total = c.count(8, "the number of locations")?;
        c.align(start, 8, "padding")?;
        let numbers_at = c.at();
        let numbers = c.take(total.saturating_mul(8), "the numbers of locations")?;
        let starts = words::<4>(offsets);
        let ends = words::<4>(offsets).skip(1).chain([total as u64]);
        let mut functions = vec![];
        for (i, (from, to)) in starts.zip(ends).enumerate() {
            let (from, to) = (from as usize, to as usize);
            let at = offsets_at + 4 * i;
            let Some(part) = (from <= to && to <= total).then(|| numbers.get(8 * from..8 * to)).flatten() else {
                let message = format!("the locations of function {i} are those from {from} to {to} of {total}");
                return fail(Code::BadSection, at, at + 4, message);
            };
            functions.push((part, numbers_at + 8 * from));
        }
        let at = c.at();
        let items: Vec<Cursor> = table::<4>(&mut c, at, "locations")?.collect::<Res<_>>()?;
        let read = RefCell::new(vec![Item::Unread; items.len()]);
        let strings = RefCell::new(vec![None; self.strings.len()]);
        self.debug = Debug { functions, items, read, strings };
        Ok(())
    }

    /// The locations of the function that the next number refers to; zero is none.
    pub(super) fn function_locs<'f>(&'f self, c: &mut Cursor<'a>) -> Res<FunctionLocs<'f, 'a>> {
        let start = c.at();
        let n = c.varint("the number of a function's locations")?;
        let numbers = match n.checked_sub(1) {
            None => None,
            // A file without the section has no locations.
            Some(_) if self.debug.functions.is_empty() => None,
            Some(i) => match usize::try_from(i).ok().and_then(|i| self.debug.functions.get(i)) {
                Some(&found) => Some(found),
                None => {
                    let message = format!("the locations are those of function {n} of {}", self.debug.functions.len());
                    return fail(Code::BadReference, start, c.at(), message);
                }
            },
        };
        Ok(FunctionLocs { file: self, numbers })
    }

    fn loc(&self, number: u64, at: usize, depth: u32) -> Res<Loc> {
        match self.debug_item(number, at, depth)? {
            Item::Loc(loc) => Ok(loc),
            _ => fail(Code::BadReference, at, at, format!("{number} is the number of a scope, not of a location")),
        }
    }

    fn scope(&self, number: u64, at: usize, depth: u32) -> Res<Scope> {
        match self.debug_item(number, at, depth)? {
            Item::Scope(scope) => Ok(scope),
            _ => fail(Code::BadReference, at, at, format!("{number} is the number of a location, not of a scope")),
        }
    }

    fn source_file(&self, number: u64, at: usize, depth: u32) -> Res<SourceFile> {
        match self.scope(number, at, depth)?.kind() {
            ScopeKind::File(file) => Ok(file.clone()),
            _ => fail(Code::BadReference, at, at, format!("{number} is not the number of a file")),
        }
    }

    /// The item with a number, read once.
    fn debug_item(&self, number: u64, at: usize, depth: u32) -> Res<Item> {
        let Some(i) = number.checked_sub(1) else { return Ok(Item::Loc(Loc::UNKNOWN)) };
        let i = usize::try_from(i).unwrap_or(usize::MAX);
        match self.debug.read.borrow().get(i) {
            Some(Item::Unread) => {}
            Some(Item::Reading) => {
                return fail(Code::BadReference, at, at, format!("location {number} refers to itself"));
            }
            Some(known) => return Ok(known.clone()),
            None => {
                let message = format!("there is no location {number}; there are {}", self.debug.items.len());
                return fail(Code::BadReference, at, at, message);
            }
        }
        let Some(mut c) = self.debug.items.get(i).copied() else { return Ok(Item::Loc(Loc::UNKNOWN)) };
        if depth == MAX_DEPTH {
            return fail(
                Code::BytecodeTooLarge,
                c.at(),
                c.at(),
                format!("locations nest deeper than {MAX_DEPTH} levels"),
            );
        }
        self.remember(i, Item::Reading);
        let item = self.read_debug_item(&mut c, depth + 1)?;
        c.finish("a location")?;
        self.remember(i, item.clone());
        Ok(item)
    }

    fn remember(&self, i: usize, item: Item) {
        if let Some(slot) = self.debug.read.borrow_mut().get_mut(i) {
            *slot = item;
        }
    }

    fn read_debug_item(&self, c: &mut Cursor<'a>, depth: u32) -> Res<Item> {
        let start = c.at();
        let tag = c.varint("the tag of a location")?;
        let next = |c: &mut Cursor<'a>, what: &str| -> Res<(u64, usize)> {
            let at = c.at();
            Ok((c.varint(what)?, at))
        };
        let item = match tag {
            tag::FILE => Some(Item::Scope(Scope::file(SourceFile {
                name: self.shared(c, "the name of a file")?,
                directory: self.shared(c, "the directory of a file")?,
            }))),
            tag::COMPILE_UNIT => {
                let (file, at) = next(c, "the file of a compile unit")?;
                Some(Item::Scope(Scope::compile_unit(CompileUnit { file: self.source_file(file, at, depth)? })))
            }
            tag::LEXICAL_BLOCK => {
                let (scope, at) = next(c, "the scope of a block")?;
                let scope = self.scope(scope, at, depth)?;
                let (file, at) = next(c, "the file of a block")?;
                let file = self.source_file(file, at, depth)?;
                let (line, column) = (number(c, "a line")?, number(c, "a column")?);
                Scope::lexical_block(scope, file, line, column).map(Item::Scope)
            }
            tag::LOC => {
                let (scope, at) = next(c, "the scope of a location")?;
                let scope = self.scope(scope, at, depth)?;
                let file = self.shared(c, "the file of a location")?;
                let place = Loc::file(file, number(c, "a line")?, number(c, "a column")?);
                Loc::scoped(place, scope).map(Item::Loc)
            }
            tag::SUBPROGRAM => Some(Item::Scope(Scope::subprogram(self.subprogram(c, depth)?))),
            tag::CALL_SITE => {
                let (callee, at) = next(c, "what was inlined")?;
                let callee = self.loc(callee, at, depth)?;
                let (caller, at) = next(c, "where it was called")?;
                Loc::call_site(callee, self.loc(caller, at, depth)?).map(Item::Loc)
            }
            _ => return fail(Code::UnknownTag, start, c.at(), format!("unknown location tag {tag}")),
        };
        match item {
            Some(item) => Ok(item),
            None => fail(Code::BytecodeTooLarge, start, c.at(), "the location is made of too many others"),
        }
    }

    fn subprogram(&self, c: &mut Cursor<'a>, depth: u32) -> Res<Subprogram> {
        let at = c.at();
        let file = c.varint("the file of a function")?;
        let file = self.source_file(file, at, depth)?;
        let line = number(c, "a line")?;
        let name = self.shared(c, "the name of a function")?;
        let linkage_name = self.shared(c, "the symbol of a function")?;
        let at = c.at();
        let unit = c.varint("the compile unit of a function")?;
        let compile_unit = match self.scope(unit, at, depth)?.kind() {
            ScopeKind::CompileUnit(unit) => unit.clone(),
            _ => return fail(Code::BadReference, at, c.at(), format!("{unit} is not the number of a compile unit")),
        };
        let scope_line = number(c, "a line")?;
        if self.has(tag::SUBPROGRAM_FLAGS) {
            // No flag is defined yet.
            c.varint("the flags of a function")?;
        }
        Ok(Subprogram { file, line, name, linkage_name, compile_unit, scope_line })
    }

    /// A string that many locations share. Hashing a location takes the time of its strings, so each is charged to the
    /// budget.
    fn shared(&self, c: &mut Cursor<'a>, what: &str) -> Res<Arc<str>> {
        let mut peek = *c;
        let number = peek.varint(what)? as usize;
        let text = self.text(c, what)?;
        let mut strings = self.debug.strings.borrow_mut();
        match strings.get_mut(number) {
            Some(slot) => Ok(slot.get_or_insert_with(|| text.into()).clone()),
            None => Ok(text.into()),
        }
    }
}

/// A line or column.
fn number(c: &mut Cursor, what: &str) -> Res<u32> {
    let start = c.at();
    let n = c.varint(what)?;
    u32::try_from(n).or_else(|_| fail(Code::BadEncoding, start, c.at(), format!("{what} is {n}, more than 32 bits")))
}

/// The locations of one function: its own, then those of its operations in the order of the bytes.
pub(super) struct FunctionLocs<'f, 'a> {
    file: &'f File<'a>,
    numbers: Option<(&'a [u8], usize)>,
}

impl FunctionLocs<'_, '_> {
    fn get(&self, i: usize) -> Res<Loc> {
        let Some((numbers, at)) = self.numbers else { return Ok(Loc::UNKNOWN) };
        match numbers.get(8 * i..8 * i + 8).and_then(|b| b.try_into().ok()) {
            Some(number) => self.file.loc(u64::from_le_bytes(number), at + 8 * i, 0),
            // `finish` reports this, when it is known how many are missing.
            None => Ok(Loc::UNKNOWN),
        }
    }
    pub fn of_function(&self) -> Res<Loc> {
        self.get(0)
    }
    #[inline]
    pub fn of_op(&self, op: usize) -> Res<Loc> {
        self.get(op + 1)
    }
    /// The number of operations with locations.
    pub fn ops(&self) -> usize {
        self.numbers.map_or(0, |(numbers, _)| (numbers.len() / 8).saturating_sub(1))
    }
    /// Fails unless there is a location for each operation.
    pub fn finish(&self, ops: usize, span: Span) -> Res<()> {
        match self.numbers {
            Some((numbers, _)) if numbers.len() / 8 != ops + 1 => {
                let message = format!(
                    "the function has {} and {}",
                    things(ops, "operation"),
                    things(numbers.len() / 8, "location")
                );
                fail(Code::WrongCount, span.start as usize, span.end as usize, message)
            }
            _ => Ok(()),
        }
    }
}
