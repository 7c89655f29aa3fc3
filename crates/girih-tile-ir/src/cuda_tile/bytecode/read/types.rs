//! The table of types.

use super::cursor::Cursor;
use super::tables::table;
use super::{File, MAX_RANK, Res, fail};
use crate::base::Code;
use crate::cuda_tile::bytecode::tags::{self, ELEMENTS, types};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::words::Words;
use crate::num::DType;

/// The meaning of a number in the table.
pub(super) enum Entry {
    Num(DType),
    Pointer,
    Value(Type),
    Function(Function),
}

/// A function's parameters and results, as numbers of the table.
#[derive(Clone)]
pub(super) struct Function {
    pub params: Vec<u32>,
    pub results: Vec<u32>,
}

/// A type and the memory a copy of it takes beyond its own size.
pub(super) struct TypeItem {
    pub entry: Entry,
    pub weight: u64,
}

fn weight(entry: &Entry) -> u64 {
    let tensor = |t: &TensorViewType| 16 * (t.shape.len() + t.strides.len()) + 64;
    (match entry {
        Entry::Num(_) | Entry::Pointer | Entry::Function(_) | Entry::Value(Type::Token) => 0,
        Entry::Value(Type::Tile(t)) => 8 * t.shape.len(),
        Entry::Value(Type::TensorView(t)) => tensor(t),
        Entry::Value(Type::View(v)) => {
            let more = if let ViewKind::Strided { traversal_strides } = &v.kind { traversal_strides.len() } else { 0 };
            tensor(&v.tensor) + 4 * (v.tile.len() + v.dim_map.len() + more) + 96
        }
    }) as u64
}

impl<'a> File<'a> {
    pub(super) fn types(&mut self, mut c: Cursor<'a>) -> Res<()> {
        let start = c.at();
        let items: Vec<Cursor> = table::<4>(&mut c, start, "types")?.collect::<Res<_>>()?;
        let table = Types { file: self, items: &items };
        let read = items.iter().map(|&item| {
            let mut c = item;
            let entry = table.entry(&mut c)?;
            c.finish("a type")?;
            Ok(TypeItem { weight: weight(&entry), entry })
        });
        let read: Vec<TypeItem> = read.collect::<Res<_>>()?;
        self.types = read;
        Ok(())
    }

    /// The type of a value: that of the next number.
    #[inline]
    pub(super) fn value_type(&self, c: &mut Cursor<'a>, what: &str) -> Res<Type> {
        let start = c.at();
        let item = self.item(&self.types, c, what, "type")?;
        match &item.entry {
            Entry::Value(ty) => {
                self.budget.spend(item.weight, start)?;
                Ok(ty.clone())
            }
            _ => fail(Code::BadReference, start, c.at(), format!("{what} is not a tile, a view or a token")),
        }
    }

    /// The element type: that of the next number.
    pub(super) fn number_type(&self, c: &mut Cursor<'a>) -> Res<DType> {
        let start = c.at();
        match &self.item(&self.types, c, "the type of a number", "type")?.entry {
            Entry::Num(d) => Ok(*d),
            _ => fail(Code::BadReference, start, c.at(), "the type of a number is not an element type"),
        }
    }
}

/// The items of the table while it is read. A type may refer to a later one; the referenced type is then read again,
/// which ends after at most three steps: views hold tensor views, and these and tiles hold numbers or pointers to
/// numbers.
struct Types<'f, 'a> {
    file: &'f File<'a>,
    items: &'f [Cursor<'a>],
}

impl<'a> Types<'_, 'a> {
    fn entry(&self, c: &mut Cursor<'a>) -> Res<Entry> {
        let start = c.at();
        let tag = c.varint("the tag of a type")?;
        let since = match tag {
            types::GATHER_SCATTER_VIEW | types::STRIDED_VIEW => tags::VIEW_FLAGS,
            _ => ELEMENTS.iter().find(|(t, ..)| *t == tag).map_or((13, 1), |(.., since)| *since),
        };
        if !self.file.has(since) {
            return self.unknown(tag, start, c.at());
        }
        Ok(match tag {
            types::POINTER => self.pointer(c).map(|_| Entry::Pointer)?,
            types::TILE => Entry::Value(Type::Tile(self.tile(c)?)),
            types::TENSOR_VIEW => Entry::Value(Type::TensorView(Box::new(self.tensor_view(c)?))),
            types::PARTITION_VIEW | types::STRIDED_VIEW => {
                Entry::Value(Type::View(Box::new(self.mapped_view(c, tag)?)))
            }
            types::GATHER_SCATTER_VIEW => Entry::Value(Type::View(Box::new(self.gather_scatter_view(c)?))),
            types::FUNCTION => Entry::Function(Function { params: self.list(c)?, results: self.list(c)? }),
            types::TOKEN => Entry::Value(Type::Token),
            _ => match ELEMENTS.iter().find(|(t, ..)| *t == tag) {
                Some((_, d, _)) => Entry::Num(*d),
                None => return self.unknown(tag, start, c.at()),
            },
        })
    }

    fn unknown<T>(&self, tag: u64, start: usize, end: usize) -> Res<T> {
        fail(Code::UnknownTag, start, end, format!("version {} has no type with tag {tag}", self.file.version))
    }

    /// The item that the next number refers to, with its tag already read.
    fn refer(&self, c: &mut Cursor<'a>) -> Res<(u64, Cursor<'a>)> {
        let mut item = *self.file.item(self.items, c, "a type that another is made of", "type")?;
        let tag = item.varint("the tag of a type")?;
        Ok((tag, item))
    }

    fn number(&self, c: &mut Cursor<'a>, what: &str) -> Res<DType> {
        let start = c.at();
        let (tag, _) = self.refer(c)?;
        match ELEMENTS.iter().find(|(t, ..)| *t == tag) {
            Some((_, d, _)) => Ok(*d),
            None => fail(Code::BadReference, start, c.at(), format!("{what} is not the type of a number")),
        }
    }

    /// A word of flags; only the lowest flag may be set, if this version has it.
    fn flag(&self, c: &mut Cursor<'a>, since: tags::Since) -> Res<bool> {
        let start = c.at();
        if !self.file.has(since) {
            return Ok(false);
        }
        match c.varint("the flags of a type")? {
            flags @ 0..=1 => Ok(flags == 1),
            flags => fail(Code::BadEncoding, start, c.at(), format!("the type has unknown flags, {flags:#x}")),
        }
    }

    fn pointer_attribute(&self, c: &mut Cursor<'a>, given: bool) -> Res<Option<PtrAttr>> {
        let start = c.at();
        if !given {
            return Ok(None);
        }
        let n = c.varint("the attribute of a pointer")?;
        let known = |a: &PtrAttr| *a == PtrAttr::None || self.file.has(tags::POINTER_KINDS);
        match PtrAttr::from_number(n).filter(known) {
            Some(attr) => Ok(Some(attr)),
            None => {
                let message = format!("version {} has no pointer attribute {n}", self.file.version);
                fail(Code::UnknownTag, start, c.at(), message)
            }
        }
    }

    fn pointer(&self, c: &mut Cursor<'a>) -> Res<(DType, Option<PtrAttr>)> {
        let given = self.flag(c, tags::POINTER_FLAGS)?;
        let pointee = self.number(c, "what a pointer points to")?;
        Ok((pointee, self.pointer_attribute(c, given)?))
    }

    fn tile(&self, c: &mut Cursor<'a>) -> Res<TileType> {
        let start = c.at();
        let (tag, mut item) = self.refer(c)?;
        let (elem, ptr_attr) = match ELEMENTS.iter().find(|(t, ..)| *t == tag) {
            Some((_, d, _)) => (Elem::Num(*d), None),
            None if tag == types::POINTER => {
                let (pointee, attr) = self.pointer(&mut item)?;
                (Elem::Ptr(pointee), attr)
            }
            None => {
                let message = "the elements of a tile are neither numbers nor pointers";
                return fail(Code::BadReference, start, c.at(), message);
            }
        };
        let start = c.at();
        let shape: Vec<i64> = c.numbers::<8>(MAX_RANK, "the number of a tile's dimensions")?.collect();
        if let Some(bad) = shape.iter().find(|&&n| n < 0) {
            return fail(Code::BadEncoding, start, c.at(), format!("a tile has the dimension {bad}"));
        }
        let shape: Vec<u64> = shape.into_iter().map(|n| n as u64).collect();
        if shape.iter().try_fold(1u64, |p, &n| p.checked_mul(n)).is_none_or(|n| n > i64::MAX as u64) {
            let message = "the tile has more elements than 63 bits can count";
            return fail(Code::BytecodeTooLarge, start, c.at(), message);
        }
        Ok(TileType { shape, elem, ptr_attr })
    }

    fn tensor_view(&self, c: &mut Cursor<'a>) -> Res<TensorViewType> {
        let given = self.flag(c, tags::POINTER_FLAGS)?;
        let elem = self.number(c, "the element type of a tensor view")?;
        let dynamic = |n| if n == tags::DYNAMIC { None } else { Some(n) };
        let shape = c.numbers::<8>(MAX_RANK, "the number of a tensor view's dimensions")?.map(dynamic).collect();
        let strides = c.numbers::<8>(MAX_RANK, "the number of a tensor view's strides")?.map(dynamic).collect();
        let ptr_attr = self.pointer_attribute(c, given)?;
        Ok(TensorViewType { elem, shape, strides, ptr_attr })
    }

    fn tensor(&self, c: &mut Cursor<'a>) -> Res<TensorViewType> {
        let start = c.at();
        let (tag, mut item) = self.refer(c)?;
        if tag != types::TENSOR_VIEW {
            return fail(Code::BadReference, start, c.at(), "a view is made of something that is not a tensor view");
        }
        self.tensor_view(&mut item)
    }

    fn extents(&self, c: &mut Cursor<'a>, what: &str) -> Res<Vec<i32>> {
        Ok(c.numbers::<4>(MAX_RANK, what)?.map(|n| n as i32).collect())
    }

    /// A partition or strided view.
    fn mapped_view(&self, c: &mut Cursor<'a>, tag: u64) -> Res<TileViewType> {
        let mut padded = self.flag(c, tags::VIEW_FLAGS)?;
        let tile = self.extents(c, "the number of a view's tile dimensions")?;
        let kind = match tag {
            types::STRIDED_VIEW => {
                ViewKind::Strided { traversal_strides: self.extents(c, "the number of a view's traversal strides")? }
            }
            _ => ViewKind::Partition,
        };
        let tensor = self.tensor(c)?;
        let dim_map = self.extents(c, "the number of a view's mapped dimensions")?;
        if !self.file.has(tags::VIEW_FLAGS) {
            let start = c.at();
            padded = match c.byte("whether a view has padding")? {
                b @ 0..=1 => b == 1,
                b => {
                    return fail(
                        Code::BadEncoding,
                        start,
                        c.at(),
                        format!("expected 0 or 1 for a truth value, found {b}"),
                    );
                }
            };
        }
        Ok(TileViewType { kind, tile, tensor, dim_map, padding: self.padding(c, padded)? })
    }

    fn gather_scatter_view(&self, c: &mut Cursor<'a>) -> Res<TileViewType> {
        let padded = self.flag(c, tags::VIEW_FLAGS)?;
        let tile = self.extents(c, "the number of a view's tile dimensions")?;
        let tensor = self.tensor(c)?;
        let start = c.at();
        let sparse_dim = c.varint("the sparse dimension of a view")?;
        let Ok(sparse_dim) = u32::try_from(sparse_dim) else {
            return fail(Code::BadEncoding, start, c.at(), format!("the sparse dimension of a view is {sparse_dim}"));
        };
        let kind = ViewKind::GatherScatter { sparse_dim };
        let dim_map = (0..tile.len() as i32).collect();
        Ok(TileViewType { kind, tile, tensor, dim_map, padding: self.padding(c, padded)? })
    }

    fn padding(&self, c: &mut Cursor<'a>, padded: bool) -> Res<Option<Padding>> {
        let start = c.at();
        if !padded {
            return Ok(None);
        }
        let n = c.varint("the padding of a view")?;
        match Padding::from_number(n) {
            Some(p) => Ok(Some(p)),
            None => fail(Code::UnknownTag, start, c.at(), format!("unknown padding {n}")),
        }
    }

    fn list(&self, c: &mut Cursor<'a>) -> Res<Vec<u32>> {
        let n = c.count(1, "the number of a function's parameters or results")?;
        (0..n)
            .map(|_| {
                let start = c.at();
                let n = c.varint("the type of a parameter or result")?;
                match u32::try_from(n).ok().filter(|&n| (n as usize) < self.items.len()) {
                    Some(n) => Ok(n),
                    None => {
                        let message = format!("a parameter or result is of type {n} of {}", self.items.len());
                        fail(Code::BadReference, start, c.at(), message)
                    }
                }
            })
            .collect()
    }
}
