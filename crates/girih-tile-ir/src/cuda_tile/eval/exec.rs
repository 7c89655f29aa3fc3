//! Operations without control flow: each computes its results from its operands.

use std::rc::Rc;

use super::machine::{Block, Cx, Machine};
use super::scalar::{Elementwise, integer};
use super::value::{TensorView, Tile, TileView, Token, Val, unravel};
use super::{contract, shape, view};
use crate::base::Code;
use crate::base::launch::Trap;
use crate::cuda_tile::assumed::moves_nothing;
use crate::cuda_tile::ir::*;
use crate::num::DType;
use crate::num::op::Signedness;
use crate::num::printf;

impl<'a> Machine<'a> {
    /// The results of an operation.
    pub fn execute(&mut self, block: &mut Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let op = cx.op;
        let one = |t: Tile| Ok(vec![Val::Tile(t)]);
        use Opcode as O;
        match op.opcode {
            O::Constant => {
                let Some(Attr::Elements(e)) = op.attr(AttrKey::Value) else { return Err(self.malformed(cx)) };
                let ty = self.result(cx, 0)?;
                let mask = e.dtype.mask();
                let bits: Vec<u64> = e.bits.iter().map(|b| b & mask).collect();
                self.sized(cx, &bits, ty)?;
                one(Tile::new(ty, bits))
            }
            O::GetTileBlockId => Ok(cx.block.iter().map(|&i| i32_scalar(i)).collect()),
            O::GetNumTileBlocks => Ok(self.launch.grid.iter().map(|&i| i32_scalar(i)).collect()),
            O::GetGlobal => {
                let Some(Attr::Str(name)) = op.attr(AttrKey::Name) else { return Err(self.malformed(cx)) };
                let at = self.module.globals.iter().position(|g| g.name == *name);
                let addr = at.and_then(|i| self.globals.get(i)).copied().ok_or_else(|| self.malformed(cx))?;
                one(Tile::new(self.result(cx, 0)?, vec![addr]))
            }
            O::Iota => one(shape::iota(self.result(cx, 0)?)),
            O::Broadcast => {
                let (s, ty) = (self.arg(block, cx, 0)?, self.result(cx, 0)?);
                let fits =
                    s.shape.len() == ty.shape.len() && s.shape.iter().zip(&ty.shape).all(|(a, b)| a == b || *a == 1);
                self.check(cx, fits)?;
                one(shape::broadcast(&s, ty))
            }
            O::Reshape | O::OptimizationBarrier => {
                let (s, ty) = (self.arg(block, cx, 0)?, self.result(cx, 0)?);
                self.check(cx, s.len() as u64 == ty.elements())?;
                one(s.retyped(ty))
            }
            O::Permute => {
                let (s, ty) = (self.arg(block, cx, 0)?, self.result(cx, 0)?);
                let Some(Attr::I32s(perm)) = op.attr(AttrKey::Permutation) else { return Err(self.malformed(cx)) };
                let fits = perm.len() == s.shape.len()
                    && perm.iter().zip(&ty.shape).all(|(&p, n)| s.shape.get(p as usize) == Some(n))
                    && s.len() as u64 == ty.elements();
                self.check(cx, fits)?;
                one(shape::permute(&s, ty, perm))
            }
            O::Cat => {
                let (l, r, ty) = (self.arg(block, cx, 0)?, self.arg(block, cx, 1)?, self.result(cx, 0)?);
                let dim = op.int(AttrKey::Dim).unwrap_or(0) as usize;
                self.check(cx, dim < l.shape.len() && (l.len() + r.len()) as u64 == ty.elements())?;
                one(shape::cat(&l, &r, ty, dim))
            }
            O::Extract => {
                let (s, ty) = (self.arg(block, cx, 0)?, self.result(cx, 0)?);
                let index = self.subtile(block, cx, op.group(1), &s.shape, &ty.shape)?;
                one(shape::extract(&s, ty, &index))
            }
            O::Insert => {
                let (s, d, ty) = (self.arg(block, cx, 0)?, self.arg(block, cx, 1)?, self.result(cx, 0)?);
                let index = self.subtile(block, cx, op.group(2), &d.shape, &s.shape)?;
                one(shape::insert(&s, &d, ty, &index))
            }
            O::Pack | O::Unpack => one(shape::reinterpret(&self.arg(block, cx, 0)?, self.result(cx, 0)?)),
            O::Offset => self.offset(block, cx),
            O::MmaF | O::MmaFScaled | O::MmaI => self.product(block, cx),
            O::Assert => {
                let t = self.arg(block, cx, 0)?;
                self.defined(cx, &t, "the condition of an assertion")?;
                if let Some(i) = (0..t.bits.len()).find(|&i| t.get(i) & 1 == 0) {
                    let text = match op.attr(AttrKey::Message) {
                        Some(Attr::Str(s)) => s.as_str(),
                        _ => "",
                    };
                    return Err(self.trap(
                        cx,
                        Code::AssertFailed,
                        format!("assertion failed: {text}"),
                        Some((&t.shape, i)),
                    ));
                }
                Ok(vec![])
            }
            O::Assume => self.assume(block, cx),
            O::PrintTko => self.print(block, cx),
            O::MakeToken => Ok(vec![Val::Token(Rc::new(Token::default()))]),
            O::JoinTokens | O::GdcLaunchDependentsTko | O::GdcWaitTko | O::MemoryFenceAliasTko => {
                let mut all = Token::default();
                for v in self.values(block, cx, &op.operands)? {
                    if let Val::Token(t) = v {
                        all = all.join(&t);
                    }
                }
                Ok(vec![Val::Token(Rc::new(all))])
            }
            O::MakeTensorView => self.make_tensor_view(block, cx),
            O::MakePartitionView | O::MakeStridedView | O::MakeGatherScatterView => {
                let v = op.operand(0).ok_or_else(|| self.malformed(cx))?;
                let Val::TensorView(tensor) = self.value(block, cx, v)? else { return Err(self.malformed(cx)) };
                let ty = match op.results.first().map(|&r| cx.func.ty(r)) {
                    Some(Type::View(ty)) => (**ty).clone(),
                    _ => return Err(self.malformed(cx)),
                };
                Ok(vec![Val::View(Rc::new(TileView { ty, tensor }))])
            }
            O::GetTensorShape | O::GetIndexSpaceShape => {
                let v = op.operand(0).ok_or_else(|| self.malformed(cx))?;
                let extents = match self.value(block, cx, v)? {
                    Val::TensorView(t) => t.shape.clone(),
                    Val::View(v) => view::index_space(&v),
                    _ => return Err(self.malformed(cx)),
                };
                let mut out = vec![];
                for (i, n) in extents.into_iter().enumerate() {
                    let ty = self.result(cx, i)?;
                    let mask = ty.num().map_or(u64::MAX, DType::mask);
                    let t = Tile::new(ty, vec![n as u64 & mask]);
                    // An extent that does not fit the result is unspecified.
                    out.push(Val::Tile(if n as u64 > mask { t.with_poison(vec![cx.here]) } else { t }));
                }
                Ok(out)
            }
            O::Alloca => self.alloca(block, cx),
            O::LoadPtrTko | O::LoadViewTko | O::MultimemLoadReduceViewTko => self.load(block, cx),
            O::StorePtrTko | O::StoreViewTko | O::MultimemStoreViewTko | O::ExpScatterStore => self.store(block, cx),
            O::AtomicCasTko | O::AtomicRmwTko | O::AtomicRedViewTko | O::MultimemReduceViewTko => {
                self.atomic(block, cx)
            }
            O::ExpExternElementwise if op.library_function().is_none() => {
                let named = |k| match op.attr(k) {
                    Some(Attr::Str(s)) => s.clone(),
                    _ => "?".into(),
                };
                let (symbol, lib) = (named(AttrKey::Symbol), named(AttrKey::LibName));
                let message = format!("running this needs `{symbol}` from the library `{lib}`, which is not available");
                Err(self.trap(cx, Code::LibraryNeeded, message, None))
            }
            _ => {
                let e = Elementwise::of(cx.func, op).ok_or_else(|| self.malformed(cx))?;
                let args: Vec<Tile> = op.operands.iter().map(|&v| self.tile(block, cx, v)).collect::<Result<_, _>>()?;
                let ty = self.result(cx, 0)?;
                let n = ty.elements() as usize;
                self.check(cx, (1..=3).contains(&args.len()) && args.iter().all(|a| a.len() == n))?;
                let args: Vec<&Tile> = args.iter().collect();
                one(e.tile(ty, &args, cx.here))
            }
        }
    }

    /// The type of a result that must be a tile.
    pub fn result(&self, cx: Cx<'a>, i: usize) -> Result<&'a TileType, Trap> {
        let ty = cx.op.results.get(i).and_then(|&r| cx.func.tile_ty(r));
        ty.ok_or_else(|| self.malformed(cx))
    }

    /// The tile of the single operand of a group.
    pub fn arg(&self, block: &Block, cx: Cx<'a>, group: usize) -> Result<Tile, Trap> {
        let v = cx.op.operand(group).ok_or_else(|| self.malformed(cx))?;
        self.tile(block, cx, v)
    }

    pub fn check(&self, cx: Cx<'a>, fits: bool) -> Result<(), Trap> {
        if fits { Ok(()) } else { Err(self.malformed(cx)) }
    }

    fn sized(&self, cx: Cx<'a>, bits: &[u64], ty: &TileType) -> Result<(), Trap> {
        self.check(cx, bits.len() == 1 || bits.len() as u64 == ty.elements())
    }

    /// The index of a subtile, checked.
    fn subtile(
        &self,
        block: &Block,
        cx: Cx<'a>,
        index: &[ValueId],
        whole: &[u64],
        part: &[u64],
    ) -> Result<Vec<u64>, Trap> {
        self.check(cx, index.len() == whole.len() && part.len() == whole.len() && !part.contains(&0))?;
        let mut out = vec![];
        for (d, &v) in index.iter().enumerate() {
            let t = self.tile(block, cx, v)?;
            self.defined(cx, &t, "the index of a subtile")?;
            let (i, n) = (t.get(0), whole[d] / part[d]);
            if i >= n {
                let message = format!("the subtile index {i} along dimension {d} is not below {n}");
                return Err(self.trap(cx, Code::IndexOutside, message, None));
            }
            out.push(i);
        }
        Ok(out)
    }

    fn offset(&self, block: &Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let (p, o, ty) = (self.arg(block, cx, 0)?, self.arg(block, cx, 1)?, self.result(cx, 0)?);
        let (Elem::Ptr(pointee), Some(d)) = (p.elem, o.elem_num()) else { return Err(self.malformed(cx)) };
        self.check(cx, p.len() == o.len() && ty.elements() as usize == p.len())?;
        let n = if p.is_splat() && o.is_splat() { 1 } else { p.len() };
        let mut poison = vec![];
        let mut bits = Vec::with_capacity(n);
        for i in 0..n {
            let elements = integer(d, Signedness::Signed, o.get(i));
            let bytes = elements * pointee.bits().max(8) as i128 / 8;
            // Two 4-bit elements share a byte: only even offsets have an address.
            let (bytes, whole) = if pointee.bits() == 4 { (elements >> 1, elements & 1 == 0) } else { (bytes, true) };
            let sum = p.get(i) as i128 + bytes;
            bits.push(sum as u64);
            let fits = whole && (0..=u64::MAX as i128).contains(&sum) && i64::try_from(bytes).is_ok();
            let origin = match (p.origin(i), o.origin(i)) {
                (0, 0) if fits => 0,
                (0, 0) => cx.here,
                (0, o) | (o, _) => o,
            };
            if origin != 0 {
                poison.resize(n, 0);
                poison[i] = origin;
            }
        }
        Ok(vec![Val::Tile(Tile::new(ty, bits).with_poison(poison))])
    }

    fn product(&self, block: &Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let op = cx.op;
        let (l, r, c, ty) =
            (self.arg(block, cx, 0)?, self.arg(block, cx, 1)?, self.arg(block, cx, 2)?, self.result(cx, 0)?);
        let d = contract::Dims::of(&l.shape, &r.shape).ok_or_else(|| self.malformed(cx))?;
        self.check(cx, c.len() == d.b * d.m * d.n && ty.elements() as usize == c.len())?;
        let stop: contract::Stop<'_> = &|| self.interrupted();
        let out = match op.opcode {
            Opcode::MmaF => contract::mmaf(ty, &d, &l, &r, &c, stop),
            Opcode::MmaI => {
                let (sl, sr) = (op.signedness(AttrKey::SignednessLhs), op.signedness(AttrKey::SignednessRhs));
                contract::mmai(ty, &d, [&l, &r, &c], [sl, sr], stop)
            }
            _ => {
                let scales = (self.arg(block, cx, 3)?, self.arg(block, cx, 4)?);
                contract::mmaf_scaled(ty, &d, [&l, &r, &c], [&scales.0, &scales.1], stop)
            }
        };
        self.check_up(block)?;
        Ok(vec![Val::Tile(out.ok_or_else(|| self.malformed(cx))?)])
    }

    fn make_tensor_view(&self, block: &Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let base = self.arg(block, cx, 0)?;
        self.defined(cx, &base, "the base of a tensor view")?;
        let ty = match cx.op.results.first().map(|&r| cx.func.ty(r)) {
            Some(Type::TensorView(ty)) => ty,
            _ => return Err(self.malformed(cx)),
        };
        let extents = |given: &[Option<i64>], group: usize, what: &str| -> Result<Vec<i64>, Trap> {
            let mut dynamic = cx.op.group(group).iter();
            given
                .iter()
                .map(|g| match g {
                    Some(n) => Ok(*n),
                    None => {
                        let v = dynamic.next().ok_or_else(|| self.malformed(cx))?;
                        let t = self.tile(block, cx, *v)?;
                        self.defined(cx, &t, what)?;
                        let d = t.elem_num().ok_or_else(|| self.malformed(cx))?;
                        let n = integer(d, Signedness::Signed, t.get(0)) as i64;
                        if n < 0 {
                            let message = format!("{what} is {n}; it must not be negative");
                            return Err(self.trap(cx, Code::IndexOutside, message, None));
                        }
                        Ok(n)
                    }
                })
                .collect()
        };
        let shape = extents(&ty.shape, 1, "an extent of a tensor view")?;
        let strides = extents(&ty.strides, 2, "a stride of a tensor view")?;
        Ok(vec![Val::TensorView(Rc::new(TensorView { base: base.get(0), shape, strides }))])
    }

    fn assume(&self, block: &Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let v = cx.op.operand(0).ok_or_else(|| self.malformed(cx))?;
        let val = self.value(block, cx, v)?;
        let fact = cx.op.attrs.iter().find_map(|(_, a)| if let Attr::Assumption(a) = a { Some(a) } else { None });
        let fact = fact.ok_or_else(|| self.malformed(cx))?;
        let fail =
            |message: String, at: Option<(&[u64], usize)>| Err(self.trap(cx, Code::FalseAssumption, message, at));
        let t = match (&val, fact) {
            (Val::TensorView(t), Assumption::DivBy { divisor, .. }) => {
                if t.base % divisor.max(&1) != 0 {
                    return fail(
                        format!("the base address {:#x} is not a multiple of {divisor}, but was assumed to be", t.base),
                        None,
                    );
                }
                return Ok(vec![val]);
            }
            (Val::Tile(t), _) => t,
            _ => return Err(self.malformed(cx)),
        };
        let shape: &[u64] = &t.shape;
        let dtype = t.elem_num().unwrap_or(DType::I64);
        let number = |i: usize| match t.elem {
            Elem::Num(d) => integer(d, Signedness::Signed, t.get(i)),
            Elem::Ptr(_) => t.get(i) as i128,
        };
        for i in 0..if t.is_splat() && !matches!(fact, Assumption::DivBy { every: Some(_), .. }) { 1 } else { t.len() }
        {
            if t.origin(i) != 0 {
                continue;
            }
            let x = number(i);
            match fact {
                Assumption::Bounded { lb, ub } => {
                    if lb.is_some_and(|l| x < l as i128) || ub.is_some_and(|u| x > u as i128) {
                        let show = |b: Option<i64>| b.map_or("?".to_string(), |b| b.to_string());
                        let (l, u) = (show(*lb), show(*ub));
                        return fail(format!("{x} is not in [{l}, {u}], but was assumed to be"), Some((shape, i)));
                    }
                }
                Assumption::SameElements(group) => {
                    let mut at = unravel(i as u64, shape);
                    for (a, &g) in at.iter_mut().zip(group) {
                        *a -= *a % g.max(1) as u64;
                    }
                    let strides = super::value::row_major(shape);
                    let first = at.iter().zip(&strides).map(|(a, s)| a * s).sum::<u64>() as usize;
                    if t.origin(first) == 0 && t.get(first) != t.get(i) {
                        return fail(
                            "the elements of a group differ, but were assumed to be the same".into(),
                            Some((shape, i)),
                        );
                    }
                }
                Assumption::DivBy { divisor, every, along } => {
                    let (along, every) = (along.unwrap_or(0) as usize, every.unwrap_or(1).max(1) as u64);
                    let inner: u64 = shape.iter().skip(along + 1).product();
                    let within = (i as u64 / inner) % shape.get(along).copied().unwrap_or(1) % every;
                    let first = i - (within * inner) as usize;
                    let unit = match t.elem {
                        Elem::Ptr(p) => p.bytes() as i128,
                        Elem::Num(_) => 1,
                    };
                    let base = number(first);
                    let divides = base.rem_euclid(*divisor.max(&1) as i128) == 0;
                    if within == 0 && !divides && !moves_nothing(cx.func, cx.op) {
                        return fail(
                            format!("{x} is not a multiple of {divisor}, but was assumed to be"),
                            Some((shape, i)),
                        );
                    }
                    let want = (base + within as i128 * unit) as u64
                        & if t.elem_num().is_some() { dtype.mask() } else { u64::MAX };
                    if t.origin(first) == 0 && t.get(i) != want {
                        return fail(
                            "the elements of a group do not ascend, but were assumed to".into(),
                            Some((shape, i)),
                        );
                    }
                }
            }
        }
        Ok(vec![val])
    }

    fn print(&self, block: &mut Block, cx: Cx<'a>) -> Result<Vec<Val>, Trap> {
        let Some(Attr::Str(text)) = cx.op.attr(AttrKey::Str) else { return Err(self.malformed(cx)) };
        let mut args = vec![];
        for &v in cx.op.group(0) {
            let t = self.tile(block, cx, v)?;
            self.defined(cx, &t, "a printed value")?;
            let bits = (0..t.len()).map(|i| t.get(i)).collect();
            args.push(printf::PrintValue { ty: t.elem, shape: t.shape.to_vec(), bits });
        }
        let text = printf::format(text, &args).map_err(|e| self.trap(cx, Code::BadFormat, e, None))?;
        block.out.push_str(&text);
        let token = match cx.op.operand(1) {
            Some(v) => self.value(block, cx, v)?,
            None => Val::Token(Rc::new(Token::default())),
        };
        Ok(vec![token])
    }
}

fn i32_scalar(i: u32) -> Val {
    Val::Tile(Tile::scalar(Elem::Num(DType::I32), i as u64))
}
