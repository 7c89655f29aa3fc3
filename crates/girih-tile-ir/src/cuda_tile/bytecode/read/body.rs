//! The operations of a function.
//!
//! Values are numbered in the order of their appearance: parameters, then the results of each operation. Values of a
//! region go out of scope after it, and an operation's own results come after those of its regions.

use super::attrs::{boolean, signed};
use super::cursor::Cursor;
use super::debug::FunctionLocs;
use super::{File, MAX_DEPTH, MAX_RANK, Res, fail, things};
use crate::base::id::Id;
use crate::base::{Code, Span};
use crate::cuda_tile::bytecode::layout::{self, Field, Layout, Operands, Presence};
use crate::cuda_tile::bytecode::tags;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::ops::{Arity, AttrKind};

/// The nesting depth of the item being read.
#[derive(Clone, Copy, Default)]
pub(super) struct Depth(u32);

impl Depth {
    pub fn deeper(self, at: usize) -> Res<Depth> {
        if self.0 == MAX_DEPTH {
            return fail(Code::BytecodeTooLarge, at, at, format!("the bytecode nests deeper than {MAX_DEPTH} levels"));
        }
        Ok(Depth(self.0 + 1))
    }
}

pub(super) struct Body<'f, 'a> {
    file: &'f File<'a>,
    func: Func,
    c: Cursor<'a>,
    locs: FunctionLocs<'f, 'a>,
    /// The values in scope, by their numbers.
    values: Vec<ValueId>,
}

impl<'f, 'a> Body<'f, 'a> {
    pub fn new(file: &'f File<'a>, func: Func, c: Cursor<'a>, locs: FunctionLocs<'f, 'a>) -> Body<'f, 'a> {
        Body { file, func, c, locs, values: vec![] }
    }

    pub fn read(mut self, params: Vec<Type>) -> Res<Func> {
        let body = self.func.regions.push(Region::default());
        let span = Span::new(self.func.span.start as usize, self.c.at());
        for (index, ty) in params.into_iter().enumerate() {
            self.argument(body, index, ty, span);
        }
        let ops = self.locs.ops().min(self.c.left());
        self.func.ops.reserve(ops);
        self.func.values.reserve(ops);
        while !self.c.is_empty() {
            self.op(body, Depth::default())?;
        }
        self.locs.finish(self.func.ops.len(), self.func.span)?;
        Ok(self.func)
    }

    fn argument(&mut self, region: RegionId, index: usize, ty: Type, span: Span) {
        let def = ValueDef::Arg { region, index: index as u32 };
        let v = self.func.values.push(Value { ty, def, name: None, span });
        self.func.regions[region].args.push(v);
        self.values.push(v);
    }

    fn op(&mut self, region: RegionId, depth: Depth) -> Res<()> {
        let start = self.c.at();
        let layout = self.layout()?;
        let mut results = self.results(layout, start)?;
        let numbered = results.len();
        let flags = self.flags(layout)?;
        let mut attrs = vec![];
        for field in &layout.fields {
            if let Some(attr) = self.attribute(field, flags, &results, depth)? {
                if attrs.is_empty() {
                    attrs.reserve_exact(layout.fields.len());
                }
                attrs.push((field.attr.key, attr));
            }
        }
        let (operands, groups) = self.operands(layout, flags)?;
        if numbered < layout.info.results.len() && !layout.info.has_variadic_results() {
            // In a version without a result of the operation, the file gives the result no number.
            results = layout.info.results.iter().enumerate().map(|(i, _)| self.result(i, Type::Token, start)).collect();
        }
        let loc = self.locs.of_op(self.func.ops.len())?;
        let op = Op {
            opcode: layout.info.opcode,
            operands,
            groups,
            results: vec![],
            attrs,
            regions: vec![],
            span: Span::new(start, self.c.at()),
            loc,
        };
        let end = op.span.end;
        let id = self.func.ops.push(op);
        self.func.regions[region].ops.push(id);
        for &v in &results {
            self.func.values[v].span.end = end;
        }
        if layout.regions > 0 {
            let regions = self.regions(layout, depth)?;
            let op = &mut self.func.ops[id];
            op.regions = regions;
            op.span.end = self.c.at() as u32;
        }
        self.values.extend_from_slice(results.get(..numbered).unwrap_or_default());
        self.func.ops[id].results = results;
        Ok(())
    }

    fn layout(&mut self) -> Res<&'static Layout> {
        let start = self.c.at();
        let code = self.c.varint("the number of an operation")?;
        match layout::by_code(code) {
            Some(layout) if self.file.has(layout.since) => Ok(layout),
            Some(layout) => {
                let name = layout.info.name;
                let message = format!("version {} has no `{name}` ({code:#04x})", self.file.version);
                fail(Code::UnknownTag, start, self.c.at(), message)
            }
            None if code == tags::PREVIEW_CALL => {
                let message = format!("the preview operation `preview$call` ({code:#06x}) is not supported");
                fail(Code::UnknownTag, start, self.c.at(), message)
            }
            None => fail(Code::UnknownTag, start, self.c.at(), format!("unknown operation {code:#04x}")),
        }
    }

    /// A result of the operation that is being read, which starts at a byte.
    fn result(&mut self, index: usize, ty: Type, start: usize) -> ValueId {
        let def = ValueDef::Result { op: OpId::from_index(self.func.ops.len()), index: index as u32 };
        self.func.values.push(Value { ty, def, name: None, span: Span::new(start, start) })
    }

    fn results(&mut self, layout: &Layout, op: usize) -> Res<Vec<ValueId>> {
        let start = self.c.at();
        let fixed = layout.results(self.file.version).len();
        let n = if layout.counted_results { self.c.count(1, "the number of results")? } else { fixed };
        if n != fixed && !layout.info.has_variadic_results() {
            let message = format!("`{}` has {}, not {fixed}", layout.info.name, things(n, "result"));
            return fail(Code::WrongCount, start, self.c.at(), message);
        }
        let mut results = Vec::with_capacity(n);
        for index in 0..n {
            let ty = self.file.value_type(&mut self.c, "the type of a result")?;
            results.push(self.result(index, ty, op));
        }
        Ok(results)
    }

    fn flags(&mut self, layout: &Layout) -> Res<u64> {
        let start = self.c.at();
        if !layout.flags.is_some_and(|since| self.file.has(since)) {
            return Ok(0);
        }
        let flags = self.c.varint("the flags of an operation")?;
        if flags & !layout.known_flags != 0 {
            let message = format!("`{}` has unknown flags, {flags:#x}", layout.info.name);
            return fail(Code::BadEncoding, start, self.c.at(), message);
        }
        Ok(flags)
    }

    /// The value of an attribute; `None` if it is absent or is the default of its absence.
    fn attribute(&mut self, field: &Field, flags: u64, results: &[ValueId], depth: Depth) -> Res<Option<Attr>> {
        let present = match field.presence {
            Presence::Always => self.file.has(field.since),
            Presence::IfFlag(bit) => flags & 1 << bit != 0,
            Presence::Flag(bit) => return Ok((flags & 1 << bit != 0).then_some(Attr::Unit)),
        };
        if !present {
            return Ok(None);
        }
        let (file, c, name) = (self.file, &mut self.c, field.attr.name);
        let start = c.at();
        let attr = match field.attr.kind {
            AttrKind::Unit => Attr::Unit,
            AttrKind::Bool => Attr::Bool(boolean(c)?),
            AttrKind::I64 => Attr::Int(c.varint(name)? as i64),
            AttrKind::I32 => match c.varint(name)? {
                n @ 0..=0xffff_ffff => Attr::Int(signed(n, 32)),
                n => return fail(Code::BadEncoding, start, c.at(), format!("`{name}` is {n}, more than 32 bits")),
            },
            AttrKind::Str | AttrKind::Symbol => Attr::Str(file.string(c, name)?),
            AttrKind::I32s => Attr::I32s(c.numbers::<4>(MAX_RANK, name)?.map(|n| n as i32).collect()),
            AttrKind::Bools => {
                let n = c.count(1, name)?;
                let bools: Vec<bool> = (0..n).map(|_| boolean(c)).collect::<Res<_>>()?;
                if !bools.contains(&true) {
                    return Ok(None);
                }
                Attr::Bools(bools)
            }
            AttrKind::Elements => match results.first().map(|&r| &self.func.values[r].ty) {
                Some(Type::Tile(tile)) => Attr::Elements(file.elements(c, tile)?),
                _ => return fail(Code::BadReference, start, start, "a constant is not a tile"),
            },
            AttrKind::Identities => Attr::Identities(file.identities(c, depth)?),
            AttrKind::Assumption => Attr::Assumption(file.assumption(c, depth)?),
            AttrKind::Hints => Attr::Hints(file.hints(c, depth)?),
            kind => {
                let attr = file.word(c, kind, name)?;
                if field.is_default(&attr) {
                    return Ok(None);
                }
                attr
            }
        };
        Ok(Some(attr))
    }

    fn operands(&mut self, layout: &Layout, flags: u64) -> Res<(Vec<ValueId>, Vec<u32>)> {
        let start = self.c.at();
        let declared = &layout.info.operands;
        let mut operands = Vec::with_capacity(declared.len());
        let mut groups = Vec::with_capacity(declared.len());
        // With one count for all operands, all but the single ones belong to the one group that varies.
        let mut rest = 0;
        if layout.operands == Operands::Total {
            let n = self.c.count(1, "the number of operands")?;
            let single = declared.iter().filter(|g| g.arity == Arity::One).count();
            let most = if declared.iter().any(|g| g.arity == Arity::Optional) { single + 1 } else { usize::MAX };
            if n < single || n > most {
                let message = format!("`{}` has {}", layout.info.name, things(n, "operand"));
                return fail(Code::WrongCount, start, self.c.at(), message);
            }
            rest = n - single;
        }
        for (group, bit) in declared.iter().zip(&layout.operand_bits) {
            let n = match (group.arity, layout.operands) {
                (Arity::One, _) => 1,
                (_, Operands::Total | Operands::Fixed) => rest,
                (Arity::Optional, Operands::Groups) => bit.map_or(0, |bit| (flags >> bit & 1) as usize),
                (Arity::Many, Operands::Groups) => self.c.count(1, "the number of operands")?,
            };
            for _ in 0..n {
                operands.push(self.value()?);
            }
            groups.push(n as u32);
        }
        Ok((operands, groups))
    }

    #[inline]
    fn value(&mut self) -> Res<ValueId> {
        let start = self.c.at();
        let n = self.c.varint("an operand")?;
        match usize::try_from(n).ok().and_then(|n| self.values.get(n)) {
            Some(&v) => Ok(v),
            None => {
                let message = format!("an operand is value {n} of {}", self.values.len());
                fail(Code::BadReference, start, self.c.at(), message)
            }
        }
    }

    fn regions(&mut self, layout: &Layout, depth: Depth) -> Res<Vec<RegionId>> {
        let start = self.c.at();
        let n = self.c.count(1, "the number of regions")?;
        if n != layout.regions {
            let message = format!("`{}` has {}, not {}", layout.info.name, things(n, "region"), layout.regions);
            return fail(Code::WrongCount, start, self.c.at(), message);
        }
        let depth = depth.deeper(start)?;
        let mut regions = Vec::with_capacity(n);
        for i in 0..n {
            let start = self.c.at();
            match self.c.varint("the number of a region's blocks")? {
                1 => regions.push(self.block(depth)?),
                // The second region of an `if` may be missing.
                0 if i >= layout.info.regions.0 => {}
                blocks => {
                    let message =
                        format!("a region of `{}` has {}, not 1", layout.info.name, things(blocks as usize, "block"));
                    return fail(Code::WrongCount, start, self.c.at(), message);
                }
            }
        }
        Ok(regions)
    }

    fn block(&mut self, depth: Depth) -> Res<RegionId> {
        let region = self.func.regions.push(Region::default());
        let outer = self.values.len();
        for index in 0..self.c.count(1, "the number of a block's arguments")? {
            let start = self.c.at();
            let ty = self.file.value_type(&mut self.c, "the type of a block's argument")?;
            self.argument(region, index, ty, Span::new(start, self.c.at()));
        }
        for _ in 0..self.c.count(1, "the number of a block's operations")? {
            self.op(region, depth)?;
        }
        self.values.truncate(outer);
        Ok(region)
    }
}
