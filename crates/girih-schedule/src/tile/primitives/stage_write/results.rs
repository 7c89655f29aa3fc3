//! `stage_write LOOP by shared | tma`: the results of a nest are collected in shared memory, and copied to their array from there.
//!
//! ```text
//! for i in 0..128: for j in 0..128: free           for i in 0..128: for j in 0..128: free
//!   v = acc[i, j]                                    v = acc[i, j]
//!   o = f16(v)                                       o = f16(v)
//!   store y[(ib*128 + i)*N + jb*128 + j] = o         y_s[j//64, i, j%64] = o
//!                                           -->    for p in 0..2: free tensor
//!                                                    for i in 0..128: for j in 0..64: free
//!                                                      o = y_s[p, i, j]
//!                                                      store y[(ib*128 + i)*N + jb*128 + p*64 + j] = o
//! ```
//!
//! Legal for two free loops whose body ends with the only store, whose place does not depend on what they compute, where the tile has room
//! in shared memory. By TMA, also, the copy is boxes of a tensor, and nothing else in the kernel touches the array or loads behind it.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::Facts;
use crate::loops::ir::*;
use crate::loops::walk::{effects, refs};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::boxes::BoxCopy;
use crate::tile::edit::{self, const_trip, free_loop, new_axis};
use crate::tile::primitives::line::replace;
use crate::tile::primitives::part::{Part, Reader, Says, Writer};
use crate::tile::primitives::{LoopRef, loop_at};
use crate::tile::reuse;
use crate::tile::target::{Capability, MemoryKind};

/// The unit that copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    Threads,
    Tma,
}

impl Part for By {
    fn read(r: &mut Reader<'_>, _: Says) -> Result<By, String> {
        r.choice(&[("shared", By::Threads), ("tma", By::Tma)])
    }

    fn write(&self, w: &mut Writer<'_>, _: Says) {
        w.by(if *self == By::Threads { "shared" } else { "tma" });
    }
}

/// Bytes of the rows that TMA and the banks of shared memory like.
const ROW: u64 = 128;

/// A nest that stores a result for each of its iterations.
pub struct Results<'a> {
    pub shape: [u64; 2],
    pub i: &'a For,
    pub j: &'a For,
    pub mem: &'a Mem,
    mask: &'a Mask,
    value: Opnd,
    site: SiteId,
}

pub fn apply(kernel: &mut Kernel, ctx: &Context, at: LoopRef, by: By) -> Result<(), String> {
    if !ctx.target.has(Capability::Threads) {
        return Err(format!("{} has no shared memory", ctx.target.name));
    }
    let old = kernel.clone();
    let target = loop_at(&old, at)?;
    let none = "the loop does not stand in a block";
    let own = |s: &Stmt| matches!(s, Stmt::For(f) if std::ptr::eq(&**f, target));
    let found = |(facts, body): (Facts, _)| <[Stmt]>::iter(body).position(own).map(|place| (place, facts, body));
    let (place, facts, body) = edit::blocks(&old).into_iter().find_map(found).ok_or(none)?;
    let nest =
        Results::of(&body[place]).ok_or("it is not two free loops of a constant length that end with one store")?;
    let made = nest.staged(kernel, ctx, &facts, body, place, by)?;
    replace(kernel, at, &mut |_, _| Ok(made.clone()))
}

impl<'a> Results<'a> {
    pub fn of(s: &'a Stmt) -> Option<Results<'a>> {
        let Stmt::For(i) = s else { return None };
        let Some(Stmt::For(j)) = i.body.last() else { return None };
        let open = For::is_free_unplaced;
        let Some(Stmt::Store { mem, mask, value, order: Order::Weak, site }) = j.body.last() else { return None };
        let shape = [const_trip(i)?, const_trip(j)?];
        let pure = |body: &[Stmt]| body[..body.len() - 1].iter().all(edit::is_pure);
        let from_0 = i.lo.is_const(0) && j.lo.is_const(0);
        let all = open(i) && open(j) && from_0 && pure(&i.body) && pure(&j.body);
        all.then_some(Results { shape, i, j, mem, mask, value: *value, site: *site })
    }

    /// The statements that replace the nest.
    fn staged(
        &self,
        kernel: &mut Kernel,
        ctx: &Context,
        facts: &Facts,
        body: &[Stmt],
        at: usize,
        by: By,
    ) -> Result<Vec<Stmt>, String> {
        let [rows, cols] = self.shape;
        let elem = self.mem.elem;
        if elem.bits() < 8 || elem == DType::I1 {
            return Err(format!("elements of {} bits are stored as they are", elem.bits()));
        }
        let defined: BTreeSet<ValId> = refs(&self.i.body).vals_defined.into_iter().collect();
        let own = |ix: &Ix| ix.vals().iter().any(|v| defined.contains(v));
        let masked = self.mask.conds.iter().any(|c| own(&c.lhs) || own(&c.rhs));
        if defined.contains(&self.mem.base) || own(&self.mem.index) || masked || !self.mask.vals.is_empty() {
            return Err("where it is stored is computed for each element".into());
        }
        let needed = reuse::needed(kernel, rows * cols * elem.bytes());
        let room = ctx.target.bytes_of(MemoryKind::Shared);
        if needed > room {
            return Err(format!("its tile makes {needed} bytes of shared memory, and a block has at most {room}"));
        }
        match by {
            By::Threads => Ok(self.nests(kernel, None)),
            By::Tma => self.boxed(kernel, ctx, facts, body, at),
        }
    }

    /// The tile, the nest and its copy by TMA.
    fn boxed(
        &self,
        kernel: &mut Kernel,
        ctx: &Context,
        facts: &Facts,
        body: &[Stmt],
        at: usize,
    ) -> Result<Vec<Stmt>, String> {
        let swizzle = self.swizzle(ctx, body, at)?;
        let mut out = self.nests(kernel, Some(swizzle));
        let copy = BoxCopy::of(kernel, facts, &out.split_off(out.len() - 1))?;
        if let Some(why) = copy.refused(kernel) {
            return Err(why);
        }
        copy.can_swizzle(swizzle)?;
        kernel.require(copy.obligations());
        out.extend(copy.body(kernel));
        if let Some(Stmt::For(f)) = out.last_mut() {
            f.place = Place::TmaStore;
        }
        Ok(out)
    }

    /// The bytes of a row within which TMA exchanges pieces.
    fn swizzle(&self, ctx: &Context, body: &[Stmt], at: usize) -> Result<u64, String> {
        if !ctx.target.has(Capability::TensorCopies) {
            return Err(format!("{} has no TMA", ctx.target.name));
        }
        let [before, behind] = [effects(&body[..at]), effects(&body[at + 1..])];
        let own = effects(&body[at..=at]);
        let touched =
            [&before.stores, &behind.stores, &before.loads, &own.loads].iter().any(|b| b.contains(&self.mem.base));
        if touched || [&before, &behind].iter().any(|e| e.atomic || e.ordered) {
            return Err("the kernel touches the array otherwise, which nothing orders with TMA".into());
        }
        if !behind.loads.is_empty() {
            return Err("the kernel loads from global memory behind it".into());
        }
        let row = self.shape[1] * self.mem.elem.bytes();
        match row {
            32 | 64 | ROW => Ok(row),
            _ if row.is_multiple_of(ROW) => Ok(ROW),
            _ => Err(format!("rows of {row} bytes are not swizzled")),
        }
    }

    /// The nest with shared memory for its array, and the copy from there. With a swizzle the rows are split into parts of
    /// `swizzle` bytes.
    fn nests(&self, kernel: &mut Kernel, swizzle: Option<u64>) -> Vec<Stmt> {
        let [rows, cols] = self.shape;
        let elem = self.mem.elem;
        let name = format!("{}_s", kernel.vals[self.mem.base].name);
        let part = swizzle.map_or(cols, |bytes| bytes / elem.bytes());
        let parts = cols / part;
        let shape = if parts > 1 { vec![parts, rows, part] } else { vec![rows, cols] };
        let buf =
            Buf { space: Space::Shared, swizzle: swizzle.unwrap_or(0) as u32, ..Buf::new(name, Ty::Num(elem), shape) };
        let buf = kernel.bufs.push(buf);
        let place = |p: Option<Ix>, i: Ix, j: Ix| p.into_iter().chain([i, j]).collect::<Vec<Ix>>();

        let (i, j, each) = (Ix::Axis(self.i.axis), Ix::Axis(self.j.axis), Ix::Const(part as i64));
        let idx = match parts {
            1 => place(None, i, j),
            _ => place(Some(Ix::floor_div(j.clone(), each.clone())), i, Ix::modulo(j, each.clone())),
        };
        let mut inner = self.j.clone();
        inner.body.pop();
        inner.body.push(Stmt::Write { buf, idx, value: self.value });
        let mut outer = self.i.clone();
        outer.body.pop();
        outer.body.push(Stmt::For(Box::new(inner)));

        let [r, c] = [self.i.axis, self.j.axis].map(|axis| new_axis(kernel, axis, ""));
        let p = (parts > 1).then(|| new_axis(kernel, self.j.axis, "p"));
        let own = p.map(Ix::Axis);
        let col = own.clone().map_or(Ix::Axis(c), |p| Ix::add(Ix::mul(p, each), Ix::Axis(c)));
        let by = BTreeMap::from([(self.i.axis, Ix::Axis(r)), (self.j.axis, col)]);
        let ty = Ty::Num(elem);
        let value = kernel.vals.push(Val { ty, name: kernel.vals[self.mem.base].name.clone() });
        let store = Stmt::Store {
            mem: self.mem.clone(),
            value: Opnd::Val(value),
            mask: self.mask.clone(),
            order: Order::Weak,
            site: self.site,
        };
        let mut copy = edit::place_axes(&[store], &by, &BTreeMap::new());
        copy.insert(0, Stmt::Read { dst: value, buf, idx: place(own, Ix::Axis(r), Ix::Axis(c)) });
        let loops = [Some((c, part)), Some((r, rows)), p.map(|p| (p, parts))];
        let copy =
            loops.into_iter().flatten().fold(copy, |body, (axis, n)| vec![free_loop(axis, Ix::Const(n as i64), body)]);
        [Stmt::Local { buf }, Stmt::For(Box::new(outer))].into_iter().chain(copy).collect()
    }
}
