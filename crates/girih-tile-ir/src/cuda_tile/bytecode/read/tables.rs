//! Sections that are tables: a count, the offset of each item, the items.

use super::cursor::{Cursor, words};
use super::types::Entry;
use super::{File, Res, fail};
use crate::base::{Code, Span};
use crate::cuda_tile::bytecode::tags::GLOBAL_FLAGS;
use crate::cuda_tile::ir::*;
use crate::num::DType;

/// The bytes of a constant, and their place.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

/// The items of a table whose offsets have `WIDTH` bytes.
pub(super) fn table<'a, const WIDTH: usize>(
    c: &mut Cursor<'a>,
    start: usize,
    what: &str,
) -> Res<impl Iterator<Item = Res<Cursor<'a>>> + use<'a, WIDTH>> {
    let n = c.count(WIDTH, &format!("the number of {what}"))?;
    c.align(start, WIDTH, "padding")?;
    let (offsets_at, what) = (c.at(), what.to_string());
    let offsets = c.take(n.saturating_mul(WIDTH), &format!("the offsets of {what}"))?;
    let mut data = *c;
    let (base, len) = (c.at(), c.left() as u64);
    c.take(c.left(), "items")?;
    let starts = words::<WIDTH>(offsets);
    let ends = words::<WIDTH>(offsets).skip(1).chain([len]);
    let mut last = 0;
    Ok(starts.zip(ends).take(n).enumerate().map(move |(i, (start, end))| {
        if start != last || end < start || end > len {
            let at = offsets_at + i * WIDTH;
            let message = format!("the offsets of {what} do not ascend within the section: {start}, {end} of {len}");
            return fail(Code::BadSection, at, at + WIDTH, message);
        }
        last = end;
        debug_assert_eq!(data.at() as u64, base as u64 + start);
        data.part(end - start, "an item")
    }))
}

impl<'a> File<'a> {
    pub(super) fn strings(&mut self, mut c: Cursor<'a>) -> Res<()> {
        let start = c.at();
        for item in table::<4>(&mut c, start, "strings")? {
            let mut item = item?;
            let at = item.at();
            let bytes = item.take(item.left(), "a string")?;
            match std::str::from_utf8(bytes) {
                Ok(text) => self.strings.push(text),
                Err(e) => {
                    let at = at + e.valid_up_to();
                    return fail(Code::BadEncoding, at, item.at(), "the string is not UTF-8");
                }
            }
        }
        Ok(())
    }

    /// The string with a number, charged to the budget by its length.
    pub(super) fn text(&self, c: &mut Cursor<'a>, what: &str) -> Res<&'a str> {
        let start = c.at();
        let text = *self.item(&self.strings, c, what, "string")?;
        self.budget.spend(text.len() as u64, start)?;
        Ok(text)
    }
    pub(super) fn string(&self, c: &mut Cursor<'a>, what: &str) -> Res<String> {
        self.text(c, what).map(String::from)
    }

    /// The item that the next number refers to.
    #[inline]
    pub(super) fn item<'t, T>(&self, table: &'t [T], c: &mut Cursor<'a>, what: &str, kind: &str) -> Res<&'t T> {
        let start = c.at();
        let n = c.varint(what)?;
        match usize::try_from(n).ok().and_then(|n| table.get(n)) {
            Some(item) => Ok(item),
            None => {
                let message = format!("{what} is {kind} {n} of {}", table.len());
                fail(Code::BadReference, start, c.at(), message)
            }
        }
    }

    pub(super) fn constants(&mut self, mut c: Cursor<'a>) -> Res<()> {
        let start = c.at();
        for item in table::<8>(&mut c, start, "constants")? {
            let mut item = item?;
            let len = item.varint("the length of a constant")?;
            let mut data = item.part(len, "a constant")?;
            item.finish("a constant")?;
            let at = data.at();
            self.constants.push(Bytes { at, bytes: data.take(data.left(), "a constant")? });
        }
        Ok(())
    }

    /// The elements of a tile, from the constant of the next number.
    pub(super) fn elements(&self, c: &mut Cursor<'a>, tile: &TileType) -> Res<Elements> {
        let start = c.at();
        let constant = *self.item(&self.constants, c, "the value", "constant")?;
        let Elem::Num(dtype) = tile.elem else {
            return fail(Code::BadReference, start, c.at(), "a constant is a tile of numbers, not of pointers");
        };
        let n = tile.shape.iter().try_fold(1u64, |p, &n| p.checked_mul(n)).unwrap_or(u64::MAX);
        let size = stored_bytes(dtype);
        let bytes = constant.bytes;
        let len = bytes.len() as u64;
        let splat = match dtype {
            DType::I1 => bytes == [0] || bytes == [0xff],
            _ => len == size as u64,
        };
        let whole = match dtype {
            DType::I1 => len == n.div_ceil(8),
            _ => n.checked_mul(size as u64) == Some(len),
        };
        if !splat && !whole {
            let message = format!("the constant has {len} bytes, which is neither one element nor {n} of type {dtype}");
            let d = crate::base::Diagnostic::error(Code::BadReference, message).at(Span::new(start, c.at()));
            let place = Span::new(constant.at, constant.at + bytes.len());
            return Err(Box::new(d.label(place, "the constant")));
        }
        let count = if splat { 1 } else { n };
        self.budget.spend(count * 8, start)?;
        let bits = match dtype {
            DType::I1 => (0..count as usize).map(|i| u64::from(bytes[i / 8] >> (i % 8) & 1)).collect(),
            _ => bytes.chunks_exact(size).map(|b| element(dtype, b)).collect(),
        };
        let mut elements = Elements { dtype, shape: tile.shape.clone(), bits };
        elements.join_equal();
        Ok(elements)
    }

    pub(super) fn globals(&self, mut c: Cursor<'a>) -> Res<Vec<Global>> {
        let mut out = vec![];
        for _ in 0..c.count(4, "the number of globals")? {
            let start = c.at();
            let name = self.string(&mut c, "the name of a global")?;
            let at = c.at();
            let Entry::Value(Type::Tile(tile)) = &self.item(&self.types, &mut c, "the type of a global", "type")?.entry
            else {
                return fail(Code::BadReference, at, c.at(), "the type of a global is not a tile");
            };
            let value = self.elements(&mut c, tile)?;
            let alignment = c.varint("the alignment of a global")?;
            let (mut private, mut constant) = (false, false);
            if self.has(GLOBAL_FLAGS) {
                private = flag(&mut c, "the visibility of a global")?;
                constant = flag(&mut c, "whether a global is constant")?;
            }
            let span = Span::new(start, c.at());
            out.push(Global { name, private, constant, alignment, value, span, loc: Loc::default() });
        }
        c.finish("the globals")?;
        Ok(out)
    }
}

/// A number that is 0 or 1.
fn flag(c: &mut Cursor, what: &str) -> Res<bool> {
    let start = c.at();
    match c.varint(what)? {
        0 => Ok(false),
        1 => Ok(true),
        n => fail(Code::BadEncoding, start, c.at(), format!("{what} must be 0 or 1, not {n}")),
    }
}

/// Bytes of one element in a constant: its significant bits, rounded up to whole bytes.
fn stored_bytes(dtype: DType) -> usize {
    match dtype {
        DType::TF32 => 3,
        _ => dtype.bytes() as usize,
    }
}

fn element(dtype: DType, bytes: &[u8]) -> u64 {
    stored(dtype, bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

/// The bits of a number as the format stores them: for tf32 these are 19 bits.
pub(super) fn stored(dtype: DType, bits: u64) -> u64 {
    match dtype {
        DType::TF32 => (bits & 0x7_ffff) << 13,
        _ => bits & dtype.mask(),
    }
}
