//! Attributes: those whose tag tells their kind, and the values of enumerations.

use super::body::Depth;
use super::cursor::Cursor;
use super::tables::stored;
use super::types::Entry;
use super::{File, MAX_RANK, Res, fail};
use crate::base::Code;
use crate::cuda_tile::bytecode::tags::{NEAREST_AWAY, attribute as tag};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::ops::AttrKind;
use crate::cuda_tile::words::Words;
use crate::num::DType;

/// An attribute whose tag tells its kind.
pub(super) enum Tagged {
    Number(DType, u64),
    Bool(bool),
    Str(String),
    Type,
    Array,
    Elements,
    Assumption(Assumption),
    Dict(Vec<(String, Tagged)>),
    Hints(Vec<(String, Tagged)>),
}

impl Tagged {
    /// The value as a hint; `None` if hints have no such values.
    fn hint(self) -> Option<Attr> {
        Some(match self {
            Tagged::Number(d, bits) if d.is_int() => Attr::Int(signed(bits, d.bits())),
            Tagged::Bool(b) => Attr::Bool(b),
            Tagged::Str(s) => Attr::Str(s),
            Tagged::Dict(entries) => Attr::Dict(hints(entries)?),
            _ => return None,
        })
    }
}

fn hints(entries: Vec<(String, Tagged)>) -> Option<Vec<(String, Attr)>> {
    entries.into_iter().map(|(key, value)| Some((key, value.hint()?))).collect()
}

/// The number whose two's complement is these `width` bits.
pub(super) fn signed(bits: u64, width: u32) -> i64 {
    let unused = 64 - width;
    ((bits << unused) as i64) >> unused
}

impl<'a> File<'a> {
    pub(super) fn tagged(&self, c: &mut Cursor<'a>, depth: Depth) -> Res<Tagged> {
        let start = c.at();
        let depth = depth.deeper(start)?;
        Ok(match c.varint("the tag of an attribute")? {
            tag::INTEGER => {
                let at = c.at();
                let dtype = self.number_type(c)?;
                if !dtype.is_int() {
                    return fail(Code::BadReference, at, c.at(), format!("a whole number has the type {dtype}"));
                }
                let at = c.at();
                let bits = c.varint("a whole number")?;
                if bits & !dtype.mask() != 0 {
                    return fail(Code::BadEncoding, at, c.at(), format!("{bits} does not fit {dtype}"));
                }
                Tagged::Number(dtype, bits)
            }
            tag::FLOAT => {
                let at = c.at();
                let dtype = self.number_type(c)?;
                if !dtype.is_float() {
                    let message = format!("a floating-point number has the type {dtype}");
                    return fail(Code::BadReference, at, c.at(), message);
                }
                let bits = match dtype.bits() {
                    ..=8 => c.byte("a number")?.into(),
                    _ => c.pattern()?,
                };
                Tagged::Number(dtype, stored(dtype, bits))
            }
            tag::BOOL => Tagged::Bool(boolean(c)?),
            tag::TYPE => {
                self.item(&self.types, c, "a type", "type")?;
                Tagged::Type
            }
            tag::STRING => Tagged::Str(self.string(c, "a string")?),
            tag::ARRAY => self.array(c, depth).map(|_| Tagged::Array)?,
            tag::DENSE_ELEMENTS => {
                let at = c.at();
                match &self.item(&self.types, c, "the type of elements", "type")?.entry {
                    Entry::Value(Type::Tile(tile)) => self.elements(c, tile).map(|_| Tagged::Elements)?,
                    _ => return fail(Code::BadReference, at, c.at(), "the type of elements is not a tile"),
                }
            }
            tag::DIV_BY => {
                let divisor = c.varint("a divisor")?;
                let [every, along] = optional_pair(c, "the assumption div_by")?;
                Tagged::Assumption(Assumption::DivBy { divisor, every, along })
            }
            tag::SAME_ELEMENTS => {
                let numbers = c.numbers::<8>(MAX_RANK, "the number of dimensions")?;
                Tagged::Assumption(Assumption::SameElements(numbers.collect()))
            }
            tag::BOUNDED => {
                let [lb, ub] = optional_pair(c, "the assumption bounded")?;
                Tagged::Assumption(Assumption::Bounded { lb, ub })
            }
            tag::DICTIONARY => Tagged::Dict(self.dictionary(c, depth)?),
            tag::OPTIMIZATION_HINTS => Tagged::Hints(self.dictionary(c, depth)?),
            unknown => {
                let message = format!("version {} has no attribute with tag {unknown}", self.version);
                return fail(Code::UnknownTag, start, c.at(), message);
            }
        })
    }

    pub(super) fn array(&self, c: &mut Cursor<'a>, depth: Depth) -> Res<Vec<Tagged>> {
        let n = c.count(2, "the number of attributes")?;
        (0..n).map(|_| self.tagged(c, depth)).collect()
    }

    fn dictionary(&self, c: &mut Cursor<'a>, depth: Depth) -> Res<Vec<(String, Tagged)>> {
        let n = c.count(3, "the number of a dictionary's entries")?;
        let entry = |_| {
            let start = c.at();
            let key = self.string(c, "the key of an entry")?;
            if key.is_empty() {
                return fail(Code::BadReference, start, c.at(), "the key of an entry is empty");
            }
            Ok((key, self.tagged(c, depth)?))
        };
        (0..n).map(entry).collect()
    }

    /// Hints without a tag. The verifier, not the reader, rejects a key that occurs twice.
    pub(super) fn hints(&self, c: &mut Cursor<'a>, depth: Depth) -> Res<Hints> {
        let start = c.at();
        self.as_hints(self.dictionary(c, depth.deeper(start)?)?, start, c)
    }

    /// Hints with their tag.
    pub(super) fn tagged_hints(&self, c: &mut Cursor<'a>) -> Res<Hints> {
        let start = c.at();
        match self.tagged(c, Depth::default())? {
            Tagged::Hints(entries) => self.as_hints(entries, start, c),
            _ => fail(Code::BadReference, start, c.at(), "the hints of an entry are something else"),
        }
    }

    fn as_hints(&self, entries: Vec<(String, Tagged)>, start: usize, c: &Cursor<'a>) -> Res<Hints> {
        match hints(entries) {
            Some(entries) => Ok(Hints(entries)),
            None => fail(Code::BadReference, start, c.at(), "a hint is neither a number, a truth value nor a string"),
        }
    }

    pub(super) fn assumption(&self, c: &mut Cursor<'a>, depth: Depth) -> Res<Assumption> {
        let start = c.at();
        match self.tagged(c, depth)? {
            Tagged::Assumption(a) => Ok(a),
            _ => fail(Code::BadReference, start, c.at(), "an assumption is neither div_by, same_elements nor bounded"),
        }
    }

    pub(super) fn identities(&self, c: &mut Cursor<'a>, depth: Depth) -> Res<Vec<(DType, u64)>> {
        let start = c.at();
        let number = |t| match t {
            Tagged::Number(d, bits) => Some((d, bits)),
            Tagged::Bool(b) => Some((DType::I1, b.into())),
            _ => None,
        };
        match self.array(c, depth)?.into_iter().map(number).collect() {
            Some(numbers) => Ok(numbers),
            None => fail(Code::BadReference, start, c.at(), "an identity is not a number"),
        }
    }

    /// The value of an enumeration.
    pub(super) fn word(&self, c: &mut Cursor<'a>, kind: AttrKind, name: &str) -> Res<Attr> {
        let start = c.at();
        let n = c.varint(name)?;
        let attr = match kind {
            AttrKind::Rounding => Rounding::from_number(n)
                .filter(|r| *r != Rounding::NearestAway || self.has(NEAREST_AWAY))
                .map(Attr::Rounding),
            AttrKind::Signedness => Signedness::from_number(n).map(Attr::Signedness),
            AttrKind::Overflow => Overflow::from_number(n).map(Attr::Overflow),
            AttrKind::Predicate => Predicate::from_number(n).map(Attr::Predicate),
            AttrKind::Ordered => bool::from_number(n).map(Attr::Ordered),
            AttrKind::MemoryOrdering => MemoryOrdering::from_number(n).map(Attr::MemoryOrdering),
            AttrKind::MemoryScope => MemoryScope::from_number(n).map(Attr::MemoryScope),
            AttrKind::Mode => AtomicMode::from_number(n).map(Attr::Mode),
            AttrKind::Reduction => Reduction::from_number(n).map(Attr::Reduction),
            _ => None,
        };
        match attr {
            Some(attr) => Ok(attr),
            None => {
                let message = format!("version {} has no `{name}` with number {n}", self.version);
                fail(Code::UnknownTag, start, c.at(), message)
            }
        }
    }
}

pub(super) fn boolean(c: &mut Cursor) -> Res<bool> {
    let start = c.at();
    match c.byte("a truth value")? {
        b @ 0..=1 => Ok(b == 1),
        b => fail(Code::BadEncoding, start, c.at(), format!("expected 0 or 1 for a truth value, found {b}")),
    }
}

/// A byte that tells which of two numbers follow.
fn optional_pair(c: &mut Cursor, what: &str) -> Res<[Option<i64>; 2]> {
    let start = c.at();
    let flags = c.byte(what)?;
    if flags > 3 {
        return fail(Code::BadEncoding, start, c.at(), format!("{what} has unknown flags, {flags:#x}"));
    }
    let mut number = |bit: u8| (flags & bit != 0).then(|| c.signed("a number")).transpose();
    Ok([number(1)?, number(2)?])
}
