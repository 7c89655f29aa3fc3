//! The table of functions.

use super::attrs::Tagged;
use super::body::{Body, Depth};
use super::cursor::Cursor;
use super::debug::FunctionLocs;
use super::types::{Entry, Function};
use super::{File, Res, fail};
use crate::base::{Code, IdMap, Span};
use crate::cuda_tile::bytecode::tags::function as flag;
use crate::cuda_tile::ir::*;

impl<'a> File<'a> {
    pub(super) fn functions(&self, mut c: Cursor<'a>) -> Res<Vec<Func>> {
        let n = c.count(5, "the number of functions")?;
        let mut out = vec![];
        for _ in 0..n {
            out.push(self.function(&mut c)?);
        }
        // Writers may pad the section to a multiple of eight bytes.
        match c.left() {
            0..8 => Ok(out),
            _ => c.finish("the functions").map(|()| out),
        }
    }

    fn function(&self, c: &mut Cursor<'a>) -> Res<Func> {
        let start = c.at();
        let name = self.string(c, "the name of a function")?;
        let at = c.at();
        let Entry::Function(signature) = &self.item(&self.types, c, "the type of a function", "type")?.entry else {
            return fail(Code::BadReference, at, c.at(), "the type of a function is not a function type");
        };
        let at = c.at();
        let flags = c.byte("the flags of a function")?;
        let always = self.has(flag::ALWAYS_HINTS);
        let known = flag::PRIVATE | flag::KERNEL | if always { 0 } else { flag::HINTS };
        if flags & !known != 0 {
            return fail(Code::BadEncoding, at, c.at(), format!("the function has unknown flags, {flags:#x}"));
        }
        let kind = if flags & flag::KERNEL != 0 { FuncKind::Entry } else { FuncKind::Function };
        let locs = self.function_locs(c)?;
        let mut hints = Hints::default();
        if flags & flag::HINTS != 0 || (always && kind == FuncKind::Entry) {
            hints = self.tagged_hints(c)?;
        }
        if always {
            let at = c.at();
            let Tagged::Array = self.tagged(c, Depth::default())? else {
                return fail(
                    Code::BadReference,
                    at,
                    c.at(),
                    "the attributes of a function's arguments are not an array",
                );
            };
        }
        let len = c.varint("the length of a function's body")?;
        let body = c.part(len, "the body of a function")?;
        let func = Func {
            kind,
            name,
            results: vec![],
            hints,
            values: IdMap::new(),
            ops: IdMap::new(),
            regions: IdMap::new(),
            span: Span::new(start, c.at()),
            loc: locs.of_function()?,
        };
        self.body(func, signature, body, locs)
    }

    fn body(&self, mut func: Func, signature: &Function, c: Cursor<'a>, locs: FunctionLocs<'_, 'a>) -> Res<Func> {
        let ty = |n: u32| match self.types.get(n as usize) {
            Some(item) if let Entry::Value(ty) = &item.entry => {
                self.budget.spend(item.weight, func.span.start as usize)?;
                Ok(ty.clone())
            }
            _ => {
                let (start, end) = (func.span.start as usize, c.at());
                fail(Code::BadReference, start, end, "a parameter or result is not a tile, a view or a token")
            }
        };
        let params: Vec<Type> = signature.params.iter().map(|&n| ty(n)).collect::<Res<_>>()?;
        func.results = signature.results.iter().map(|&n| ty(n)).collect::<Res<_>>()?;
        Body::new(self, func, c, locs).read(params)
    }
}
