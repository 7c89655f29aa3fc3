//! The numbers of types.

use super::Writer;
use super::buffer::Buffer;
use crate::base::Span;
use crate::cuda_tile::bytecode::tags::{DYNAMIC, ELEMENTS, POINTER_FLAGS, POINTER_KINDS, VIEW_FLAGS, types};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::words::Words;
use crate::num::DType;

impl<'m> Writer<'m> {
    /// The number of a type that is used at a place.
    pub fn ty(&mut self, ty: &'m Type, at: Span) -> u64 {
        if let Some(&n) = self.type_numbers.get(ty) {
            return n;
        }
        let n = match ty {
            Type::Tile(t) => self.tile(t, at),
            Type::TensorView(t) => self.tensor_view(t, at),
            Type::View(v) => self.view(v, at),
            Type::Token => self.item(|b| b.varint(types::TOKEN)),
        };
        self.type_numbers.insert(ty, n);
        n
    }

    fn item(&mut self, build: impl FnOnce(&mut Buffer)) -> u64 {
        let mut item = Buffer::default();
        build(&mut item);
        self.types.number(&item.0)
    }

    pub fn dtype(&mut self, d: DType, at: Span) -> u64 {
        let Some((tag, _, since)) = ELEMENTS.into_iter().find(|(_, e, _)| *e == d) else { return 0 };
        self.needs(since, at, || format!("the element type `{d}`"));
        self.item(|b| b.varint(tag))
    }

    pub fn tile(&mut self, t: &TileType, at: Span) -> u64 {
        let elem = match t.elem {
            Elem::Num(d) => self.dtype(d, at),
            Elem::Ptr(d) => {
                let pointee = self.dtype(d, at);
                let (flags, attr) = (self.version.has(POINTER_FLAGS), self.ptr_attr(t.ptr_attr, at));
                self.item(|b| {
                    b.varint(types::POINTER);
                    if flags {
                        b.varint(attr.is_some().into());
                    }
                    b.varint(pointee);
                    attr.into_iter().for_each(|n| b.varint(n));
                })
            }
        };
        self.item(|b| {
            b.varint(types::TILE);
            b.varint(elem);
            b.i64s(t.shape.iter().map(|&n| n as i64));
        })
    }

    /// The number of a pointer attribute; an error if the version has none.
    fn ptr_attr(&mut self, attr: Option<PtrAttr>, at: Span) -> Option<u64> {
        let attr = attr?;
        let since = if attr == PtrAttr::None { POINTER_FLAGS } else { POINTER_KINDS };
        self.needs(since, at, || format!("the pointer attribute `{}`", attr.word()));
        PtrAttr::WORDS.iter().position(|(_, a)| *a == attr).map(|n| n as u64)
    }

    fn tensor_view(&mut self, t: &TensorViewType, at: Span) -> u64 {
        let elem = self.dtype(t.elem, at);
        let (flags, attr) = (self.version.has(POINTER_FLAGS), self.ptr_attr(t.ptr_attr, at));
        self.item(|b| {
            b.varint(types::TENSOR_VIEW);
            if flags {
                b.varint(attr.is_some().into());
            }
            b.varint(elem);
            b.i64s(t.shape.iter().map(|n| n.unwrap_or(DYNAMIC)));
            b.i64s(t.strides.iter().map(|n| n.unwrap_or(DYNAMIC)));
            attr.into_iter().for_each(|n| b.varint(n));
        })
    }

    fn view(&mut self, v: &TileViewType, at: Span) -> u64 {
        let tensor = self.tensor_view(&v.tensor, at);
        let (tag, kind) = match v.kind {
            ViewKind::Partition => (types::PARTITION_VIEW, None),
            ViewKind::Strided { .. } => (types::STRIDED_VIEW, Some("a strided view")),
            ViewKind::GatherScatter { .. } => (types::GATHER_SCATTER_VIEW, Some("a gather/scatter view")),
        };
        if let Some(kind) = kind {
            self.needs(VIEW_FLAGS, at, || kind.to_string());
        }
        let flags = self.version.has(VIEW_FLAGS);
        let padding = v.padding.and_then(|p| Padding::WORDS.iter().position(|(_, q)| *q == p));
        self.item(|b| {
            b.varint(tag);
            if flags {
                b.varint(padding.is_some().into());
            }
            b.i32s(&v.tile);
            if let ViewKind::Strided { traversal_strides } = &v.kind {
                b.i32s(traversal_strides);
            }
            b.varint(tensor);
            match v.kind {
                ViewKind::GatherScatter { sparse_dim } => b.varint(sparse_dim.into()),
                _ => b.i32s(&v.dim_map),
            }
            if !flags {
                b.byte(padding.is_some().into());
            }
            if let Some(padding) = padding {
                b.varint(padding as u64);
            }
        })
    }

    /// The type of an entry: its parameters, and no results.
    pub fn function_type(&mut self, f: &'m Func) -> u64 {
        let params: Vec<u64> = f.params().iter().map(|&p| self.ty(f.ty(p), f.values[p].span)).collect();
        self.item(|b| {
            b.varint(types::FUNCTION);
            b.varint(params.len() as u64);
            params.iter().for_each(|&n| b.varint(n));
            b.varint(0);
        })
    }
}
