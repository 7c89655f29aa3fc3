//! Functions, regions, blocks, and the operations that have them.

use super::op::Draft;
use super::*;
use crate::cuda_tile::ir::{Elem, Elements, TileType};
use crate::num::DType;
use crate::ttir::table::Special;

/// Names with their places.
type Named<'a> = Vec<(&'a str, Span)>;

impl<'a> Parser<'a> {
    /// `tt.func public @name(%x: type {attrs} loc(...), ...) -> types attributes {...} { ... } loc(...)`
    pub(super) fn function(&mut self) -> Res<()> {
        let start = self.span;
        self.advance();
        let mut public = true;
        if self.eat_word("private") {
            public = false;
        } else {
            self.eat_word("public");
        }
        let Tok::At(name) = self.tok else { return self.expected("the name of a function, `@name`") };
        let name = unescape(name);
        self.advance();
        self.expect('(')?;
        let func = self.scope(|p| {
            let params = p.list(')', |p| {
                let name = p.name()?;
                p.expect(':')?;
                let ty = p.ty()?;
                let attrs = if p.is('{') { p.dict()? } else { vec![] };
                let loc = p.location()?;
                let value = p.define(name, vec![ty])[0];
                Ok(Param { value, attrs, loc })
            })?;
            let mut results = vec![];
            if p.eat_arrow() {
                results = p.types()?;
            }
            if p.eat_word("attributes") {
                p.dict()?;
            }
            let mut func = Func {
                name,
                public,
                params,
                results,
                body: Region::default(),
                span: p.since(start),
                loc: Loc::UNKNOWN,
            };
            if !p.is('{') {
                return p.expected("the body of a function");
            }
            func.body = p.region(vec![])?;
            func.loc = p.location()?;
            Ok(func)
        })?;
        for param in &func.params {
            if let Some(Value { ty: Ty::Other(text), span, .. }) = self.module.values.get(param.value) {
                let message = format!("a parameter has the type `{text}`, which is not supported");
                let d = Diagnostic::error(Code::UnknownType, message).at(*span).from(param.loc.frames().into());
                return Err(Box::new(d.maybe_help(crate::ttir::table::type_refusal(text))));
            }
        }
        self.module.funcs.push(func);
        Ok(())
    }

    /// `{ ops ^bb1(%x: type): ops }`; the first block may have arguments that the text does not repeat.
    pub(super) fn region(&mut self, args: Vec<V>) -> Res<Region> {
        self.expect('{')?;
        self.blocks.push(FxHashMap::default());
        let region = self.scope(|p| p.region_body(args));
        let blocks = self.blocks.pop().unwrap_or_default();
        let region = region?;
        for (name, at) in blocks {
            if at >= region.blocks.len() {
                return self.fail(Code::UndefinedValue, self.span, format!("the block `^{name}` is not defined"));
            }
        }
        Ok(region)
    }

    fn region_body(&mut self, args: Vec<V>) -> Res<Region> {
        let mut defined: Vec<Option<Block>> = vec![];
        let mut block = Block { args, ops: vec![] };
        // The number of the block that is being read: blocks are numbered as they are first named.
        let mut number = self.block("");
        loop {
            match self.tok {
                Tok::Punct('}') => break,
                Tok::Caret(name) => {
                    let span = self.span;
                    self.advance();
                    let first = defined.is_empty() && block.ops.is_empty();
                    if !first {
                        put(&mut defined, number, std::mem::take(&mut block));
                        number = self.block(name);
                        if defined.get(number).is_some_and(Option::is_some) {
                            return self.fail(
                                Code::Redefinition,
                                span,
                                format!("the block `^{name}` is defined twice"),
                            );
                        }
                    }
                    if self.eat('(') {
                        let args = self.list(')', |p| {
                            let name = p.name()?;
                            p.expect(':')?;
                            let ty = p.ty()?;
                            p.location()?;
                            Ok(p.define(name, vec![ty])[0])
                        })?;
                        block.args.extend(args);
                    }
                    self.expect(':')?;
                }
                Tok::Eof => return self.expected("`}`"),
                _ => block.ops.push(self.op()?),
            }
        }
        self.advance();
        put(&mut defined, number, block);
        // A block that was named and not defined ends the list before it; the caller finds it.
        Ok(Region { blocks: defined.into_iter().map_while(|b| b).collect() })
    }

    /// The number of a block of the region being read.
    fn block(&mut self, name: &'a str) -> usize {
        match self.blocks.last_mut() {
            Some(blocks) => {
                let next = blocks.len();
                *blocks.entry(name).or_insert(next)
            }
            None => 0,
        }
    }

    fn successor(&mut self) -> Res<Successor> {
        let Tok::Caret(name) = self.tok else { return self.expected("a block, `^name`") };
        self.advance();
        let at = self.block(name);
        let mut values = vec![];
        if self.eat('(') {
            values = self.values()?;
            if self.eat(':') {
                self.types()?;
            }
            self.expect(')')?;
        }
        Ok((at, values))
    }

    pub(super) fn special(&mut self, form: Special, draft: Draft<'a>) -> Res<Op> {
        let mut op = self.empty(&draft);
        let mut types = vec![];
        match form {
            Special::Constant => types.push(self.constant(&mut op)?),
            Special::Branch => {
                if let Tok::Percent(_) = self.tok {
                    op.operands.push(self.value()?);
                    self.expect(',')?;
                }
                loop {
                    let successor = self.successor()?;
                    op.successors.push(successor);
                    if !self.eat(',') {
                        break;
                    }
                }
                if self.is('{') {
                    op.attrs.extend(self.dict()?);
                }
            }
            Special::Call => {
                let Tok::At(name) = self.tok else { return self.expected("a function, `@name`") };
                op.attrs.push(("callee".into(), Attr::Word(unescape(name))));
                self.advance();
                self.expect('(')?;
                op.operands = self.list(')', |p| p.value())?;
                if self.is('{') {
                    op.attrs.extend(self.dict()?);
                }
                self.expect(':')?;
                types = self.signature()?.1.unwrap_or_default();
            }
            Special::If => {
                op.operands.push(self.value()?);
                if self.eat_arrow() {
                    types = self.types()?;
                }
                op.regions.push(self.region(vec![])?);
                if self.eat_word("else") {
                    op.regions.push(self.region(vec![])?);
                }
                self.trailing(&mut op)?;
            }
            Special::For => types = self.for_loop(&mut op)?,
            Special::While => {
                let (names, types_of_args) = self.iter_args("", &mut op)?;
                let _ = types_of_args;
                self.expect(':')?;
                let (given, after) = self.signature()?;
                types = after.unwrap_or_default();
                let before = self.region_with(names, given)?;
                self.expect_word("do")?;
                let body = self.region(vec![])?;
                op.regions = vec![before, body];
                if self.eat_word("attributes") {
                    op.attrs.extend(self.dict()?);
                }
            }
            Special::Condition => {
                self.expect('(')?;
                op.operands.push(self.value()?);
                self.expect(')')?;
                let values = self.values()?;
                op.operands.extend(values);
                if self.eat(':') {
                    self.types()?;
                }
            }
        }
        op.loc = self.location()?;
        self.finish(draft, op, types)
    }

    fn trailing(&mut self, op: &mut Op) -> Res<()> {
        if self.is('{') {
            op.attrs.extend(self.dict()?);
        }
        Ok(())
    }

    /// `arith.constant 1 : i32`, `dense<0.0> : tensor<8xf32>`, `true`
    fn constant(&mut self, op: &mut Op) -> Res<Ty> {
        if self.is('{') {
            op.attrs.extend(self.dict()?);
        }
        let start = self.span;
        if self.is_word("dense") {
            let (elements, text) = (self.dense()?, self.since(start));
            return Ok(match elements {
                Some(e) => {
                    let ty = Ty::Tile(TileType::of(e.shape.clone(), Elem::Num(e.dtype)));
                    op.attrs.push(("value".into(), Attr::Elements(e)));
                    ty
                }
                None => Ty::Other(self.slice(text).to_string()),
            });
        }
        let text = self.literal()?;
        let ty = match self.eat(':') {
            true => self.ty()?,
            false => Ty::Tile(TileType::of(vec![], Elem::Num(DType::I1))),
        };
        if let Ty::Tile(TileType { elem: Elem::Num(dtype), .. }) = &ty {
            let bits = match (*dtype, text.as_str()) {
                (DType::I1, "0" | "1" | "-1") => u64::from(text != "0"),
                _ => self.bits(*dtype, &text, start)?,
            };
            op.attrs
                .push(("value".into(), Attr::Elements(Elements { dtype: *dtype, shape: vec![], bits: vec![bits] })));
        }
        Ok(ty)
    }

    /// `iter_args(%a = %x, ...) -> (types)`; the names, whose values become operands.
    fn iter_args(&mut self, word: &str, op: &mut Op) -> Res<(Named<'a>, Vec<Ty>)> {
        if !word.is_empty() && !self.eat_word(word) {
            return Ok((vec![], vec![]));
        }
        let mut names = vec![];
        if self.eat('(') {
            let pairs = self.list(')', |p| {
                let name = p.name()?;
                p.expect('=')?;
                Ok((name, p.value()?))
            })?;
            for (name, value) in pairs {
                names.push(name);
                op.operands.push(value);
            }
        }
        let types = if !word.is_empty() && self.eat_arrow() { self.types()? } else { vec![] };
        Ok((names, types))
    }

    fn region_with(&mut self, names: Vec<(&'a str, Span)>, types: Vec<Ty>) -> Res<Region> {
        if names.len() != types.len() {
            let message = format!("{} values are carried, and {} types are given", names.len(), types.len());
            return self.fail(Code::OperandCount, self.span, message);
        }
        self.scope(|p| {
            let args = names.into_iter().zip(types).map(|(name, ty)| p.define(name, vec![ty])[0]).collect();
            p.region(args)
        })
    }

    /// `scf.for %i = %lower to %upper step %step iter_args(...) -> (types) : i32 { ... }`
    fn for_loop(&mut self, op: &mut Op) -> Res<Vec<Ty>> {
        if self.eat_word("unsigned") {
            op.attrs.push(("unsigned".into(), Attr::Unit));
        }
        let counter = self.name()?;
        self.expect('=')?;
        op.operands.push(self.value()?);
        self.expect_word("to")?;
        op.operands.push(self.value()?);
        self.expect_word("step")?;
        op.operands.push(self.value()?);
        let (mut names, carried) = self.iter_args("iter_args", op)?;
        let ty = match self.eat(':') {
            true => self.ty()?,
            false => Ty::Tile(TileType::of(vec![], Elem::Num(DType::I64))),
        };
        names.insert(0, counter);
        let types = std::iter::once(ty).chain(carried.iter().cloned()).collect();
        op.regions.push(self.region_with(names, types)?);
        self.trailing(op)?;
        Ok(carried)
    }
}

fn put(blocks: &mut Vec<Option<Block>>, at: usize, block: Block) {
    if blocks.len() <= at {
        blocks.resize_with(at + 1, || None);
    }
    if let Some(slot) = blocks.get_mut(at) {
        *slot = Some(block);
    }
}
