//! Names that are defined and used, and types.

use super::{Parser, Res, Thing};
use crate::base::lines::{Tok, error};
use crate::base::{Code, Span};
use crate::loops::ir::*;
use crate::loops::names::RESERVED;
use crate::num::DType;

impl<'a> Parser<'_, 'a> {
    pub(super) fn new_name(&mut self) -> Res<(&'a str, Span)> {
        let span = self.c.span();
        let name = self.c.any_word("a name")?;
        if RESERVED.contains(&name) || name.contains('.') {
            return Err(error(Code::MalformedIr, span, format!("`{name}` cannot be used as a name")));
        }
        Ok((name, span))
    }
    pub(super) fn lookup(&mut self, what: &str) -> Res<(Thing, Span)> {
        let span = self.c.span();
        let Tok::Word(name) = *self.c.tok() else { return self.c.expected(what) };
        match self.names.get(name) {
            Some(thing) => {
                let thing = *thing;
                self.c.next();
                Ok((thing, span))
            }
            None => Err(error(Code::UnknownIrName, span, format!("`{name}` is not defined before this"))),
        }
    }
    pub(super) fn wrong_kind<T>(thing: Thing, span: Span, what: &str) -> Res<T> {
        Err(error(Code::UnknownIrName, span, format!("expected {what}, found {}", thing.kind())))
    }
    pub(super) fn val(&mut self) -> Res<ValId> {
        match self.lookup("a value")? {
            (Thing::Val(v), _) => Ok(v),
            (thing, span) => Self::wrong_kind(thing, span, "a value"),
        }
    }
    pub(super) fn axis(&mut self) -> Res<AxisId> {
        match self.lookup("a loop axis")? {
            (Thing::Axis(a), _) => Ok(a),
            (thing, span) => Self::wrong_kind(thing, span, "a loop axis"),
        }
    }
    pub(in crate::loops) fn buf(&mut self) -> Res<BufId> {
        match self.lookup("a local buffer")? {
            (Thing::Buf(b), _) => Ok(b),
            (thing, span) => Self::wrong_kind(thing, span, "a local buffer"),
        }
    }
    pub(super) fn define_val(&mut self, name: &'a str, span: Span, ty: Ty) -> Res<ValId> {
        let val = self.kernel.vals.push(Val { ty, name: name.to_string() });
        if self.names.insert(name, Thing::Val(val)).is_some() {
            return Err(error(Code::UnknownIrName, span, format!("`{name}` is defined twice")));
        }
        Ok(val)
    }
    /// Loops side by side may share an axis.
    pub(in crate::loops) fn define_axis(&mut self) -> Res<AxisId> {
        let (name, span) = self.new_name()?;
        match self.names.get(name) {
            Some(Thing::Axis(axis)) => Ok(*axis),
            Some(_) => Err(error(Code::UnknownIrName, span, format!("`{name}` is defined twice"))),
            None => {
                let axis = self.kernel.axes.push(Axis { name: name.to_string(), from: None });
                self.names.insert(name, Thing::Axis(axis));
                Ok(axis)
            }
        }
    }
    /// `NAME ":" ty ("[" INT,* "]" space?)?`; a buffer may be declared again, the same.
    pub(in crate::loops) fn define_buf(&mut self) -> Res<BufId> {
        let (name, span) = self.new_name()?;
        self.c.punct(":")?;
        let ty = self.ty()?;
        let shape = if self.c.eat("[") { self.items("]", Self::number)? } else { vec![] };
        let mut made = Buf::new(name, ty, shape);
        if self.c.eat_word("register") {
            self.c.punct("(")?;
            made.space = Space::Register { lanes: self.number()? };
            self.c.punct(")")?;
        } else if self.c.eat_word("shared") {
            made.space = Space::Shared;
            if self.c.eat_word("swizzle") {
                self.c.punct("(")?;
                made.swizzle = self.number()?;
                self.c.punct(")")?;
            }
        } else if self.c.eat_word("private") {
            made.space = Space::Private;
        } else if self.c.eat_word("kept") {
            made.space = Space::Kept { zeroed: self.c.eat_word("zeroed") };
        }
        match self.names.get(name) {
            Some(Thing::Buf(buf)) if self.kernel.bufs[*buf] == made => Ok(*buf),
            Some(_) => Err(error(Code::UnknownIrName, span, format!("`{name}` is defined twice"))),
            None => {
                let buf = self.kernel.bufs.push(made);
                self.names.insert(name, Thing::Buf(buf));
                Ok(buf)
            }
        }
    }
    pub(super) fn dtype(&mut self) -> Res<DType> {
        let dtype = if let Tok::Word(w) = self.c.tok() { DType::from_name(w) } else { None };
        let Some(dtype) = dtype else { return self.c.expected("an element type") };
        self.c.next();
        Ok(dtype)
    }
    pub(super) fn ty(&mut self) -> Res<Ty> {
        if self.c.eat_word("ptr") { Ok(Ty::Ptr(self.dtype()?)) } else { Ok(Ty::Num(self.dtype()?)) }
    }
}
