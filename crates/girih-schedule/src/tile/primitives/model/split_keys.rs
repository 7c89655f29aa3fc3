//! `split_k` of the keys of attention: blocks of their own take each part of the keys, and another kernel joins what they have.
//!
//! ```text
//! for i in 0..32: free                             for part in 0..8: for i: free
//!   acc = 0, m = -inf, l = 0                         acc = 0, m = -inf, l = 0
//!   for key in 0..4096: serial stream      -->       for key in 0..512: serial stream
//!     m, l, acc[n] <- the recurrence                   m, l, acc[n] <- the recurrence, of the key part*512 + key
//!   for n: store out[i, n] = acc[n]/l                for n: store acc_parts[part, i, n] = acc[n]
//!                                                      store m_parts[part, i] = m, l_parts[part, i] = l where n == 0
//!
//!                                                  for i: for n: free
//!                                                    for part in 0..8: reduce
//!                                                      m', w, shrink = max(m, m_parts[..]), exp(m_parts[..] - m'), exp(m - m')
//!                                                      acc <- acc*shrink + acc_parts[part, i, n]*w, l <- l*shrink + l_parts[..]*w
//!                                                    store out[i, n] = acc/l
//! ```
//!
//! A part that sees no key has the greatest score -inf, and its weight is 0. Keys past the end of the last part have the score -inf.
//!
//! Source: Dao, Haziza, Massa and Sizov, Flash-Decoding for long-context inference, 2023.

use super::split_k::{extents, in_bodies};
use crate::base::IdMap;
use crate::graph::Elem;
use crate::index::{Cmp, Cond, Facts, Mask, simplify};
use crate::loops::ir::*;
use crate::loops::model::{Array, ArrayId, ArrayPlace, Step};
use crate::loops::walk;
use crate::num::op::{Predicate, Rounding};
use crate::num::{DType, ScalarOp, convert};
use crate::tile::contraction::num_type;
use crate::tile::edit;
use crate::tile::primitives::line::holds;
use crate::tile::primitives::split::Pieces;
use crate::tile::primitives::tile::stream::StreamNest;
use crate::tile::steps::{bytes_of, set_arrays};
use crate::tile::tile_nest::check_bounds;

const NEAREST: Rounding = Rounding::NearestEven;
const MAX: ScalarOp = ScalarOp::MaxF { nan: true, ftz: false };
const SUB: ScalarOp = ScalarOp::SubF { rounding: NEAREST, ftz: false };
const MUL: ScalarOp = ScalarOp::MulF { rounding: NEAREST, ftz: false };
const FMA: ScalarOp = ScalarOp::Fma { rounding: NEAREST, ftz: false };

/// The two steps that a step becomes whose stream of keys is split into parts of `length`.
pub fn split(step: &Step, stream: &For, arrays: &mut IdMap<ArrayId, Array>, length: u32) -> Result<[Step; 2], String> {
    let kernel = &step.kernel;
    let of_it = |s: &Stmt| holds(std::slice::from_ref(s), stream);
    let at = kernel.body.iter().position(of_it).ok_or("it is not the loop of a nest")?;
    let nest = StreamNest::of(&kernel.body[at]).ok_or("its nest has no free loops")??;
    Ok(Split::new(step, at, nest, length.into())?.steps(arrays))
}

/// Attention whose keys are cut into parts.
struct Split<'a> {
    step: &'a Step,
    /// Where the nest stands in the kernel.
    at: usize,
    nest: StreamNest<'a>,
    keys: i64,
    parts: i64,
    /// Keys of a part.
    length: i64,
    /// Where a row lies among those of a part, and how many those are.
    row: Ix,
    rows: Ix,
    /// Elements of a row of values.
    width: Ix,
    dtype: DType,
    site: SiteId,
    facts: Facts,
}

/// The arrays of the parts, or values that stand for them: weighted sums, greatest scores, and sums of weights.
struct Parts<T> {
    acc: T,
    greatest: T,
    total: T,
}

impl<'a> Split<'a> {
    fn new(step: &'a Step, at: usize, nest: StreamNest<'a>, length: i64) -> Result<Split<'a>, String> {
        let kernel = &step.kernel;
        check_bounds(&nest.free)?;
        check_bounds(&[nest.stream, nest.update, nest.last])?;
        let keys = nest.stream.hi.as_const().ok_or("how many keys there are is known at launch only")?;
        let parts = keys.div_euclid(length.max(1)) + i64::from(keys.rem_euclid(length.max(1)) > 0);
        if parts < 2 {
            return Err(format!("{keys} keys are one part"));
        }
        let beside = kernel.body.iter().enumerate().any(|(n, s)| n != at && !edit::is_pure(s));
        let pure = nest.around.iter().all(|s| edit::is_pure(s));
        let stored =
            nest.last.body.iter().all(|s| edit::is_pure(s) || matches!(s, Stmt::Store { .. } | Stmt::Write { .. }));
        if beside || !pure || !stored {
            return Err("its kernel does more than attention".to_string());
        }
        let site = nest.last.body.iter().find_map(|s| match s {
            Stmt::Store { site, .. } => Some(*site),
            _ => None,
        });
        let dtype = num_type(kernel, nest.roles.acc).ok_or("it sums addresses")?;
        let mut facts = kernel.facts();
        for f in nest.free.iter().copied().chain([nest.last]) {
            facts.set_axis(f.axis, &f.lo, &f.hi);
        }
        let row = nest.free.iter().fold(Ix::Const(0), |at, f| Ix::add(Ix::mul(at, f.hi.clone()), Ix::Axis(f.axis)));
        let rows = nest.free.iter().fold(Ix::Const(1), |n, f| Ix::mul(n, f.hi.clone()));
        let width = nest.last.hi.clone();
        let site = site.ok_or("it stores nothing")?;
        Ok(Split { step, at, keys, parts, length, row, rows, width, dtype, site, facts, nest })
    }

    fn steps(&self, arrays: &mut IdMap<ArrayId, Array>) -> [Step; 2] {
        let rows = extents(self.step, &self.nest.free);
        let array = |arrays: &mut IdMap<ArrayId, Array>, of: BufId, more: &[Ix]| {
            let shape = [Ix::Const(self.parts)].iter().chain(&rows).chain(more).cloned().collect();
            let name = format!("{}_parts", self.step.kernel.bufs[of].name);
            let elem = Elem::of(self.dtype);
            arrays.push(Array { name, elem, shape, place: ArrayPlace::Temp, at_load: false })
        };
        let roles = self.nest.roles;
        let ids = [
            array(arrays, roles.acc, std::slice::from_ref(&self.width)),
            array(arrays, roles.greatest, &[]),
            array(arrays, roles.total, &[]),
        ];
        let (mut first, mut second) = (self.step.clone(), self.step.clone());
        for (step, is_first) in [(&mut first, true), (&mut second, false)] {
            let mut base = |of: BufId| {
                let name = format!("{}_parts", step.kernel.bufs[of].name);
                step.kernel.vals.push(Val { ty: Ty::Ptr(self.dtype), name })
            };
            let bases = Parts { acc: base(roles.acc), greatest: base(roles.greatest), total: base(roles.total) };
            let part = step.kernel.axes.push(Axis { name: "part".into(), from: None });
            match is_first {
                true => self.first(&mut step.kernel, &bases, part),
                false => self.second(&mut step.kernel, &bases, part),
            }
            let new: Vec<(ValId, ArrayId)> = [bases.acc, bases.greatest, bases.total].into_iter().zip(ids).collect();
            set_arrays(step, &new, arrays);
        }
        first.writes = ids.to_vec();
        second.reads.extend(ids);
        second.flops = Ix::Const(0);
        for step in [&mut first, &mut second] {
            step.bytes = bytes_of(step, arrays);
        }
        [first, second]
    }

    /// An element of the parts: a row's, or one of its weighted sums.
    fn mem(&self, base: ValId, part: AxisId, of_row: bool) -> Mem {
        let mut facts = self.facts.clone();
        facts.set_axis(part, &Ix::Const(0), &Ix::Const(self.parts));
        let row = Ix::add(Ix::mul(Ix::Axis(part), self.rows.clone()), self.row.clone());
        let index = match of_row {
            true => row,
            false => Ix::add(Ix::mul(row, self.width.clone()), Ix::Axis(self.nest.last.axis)),
        };
        Mem { base, index: simplify(&index, &facts), elem: self.dtype }
    }

    fn constant(&self, x: f64) -> Opnd {
        Opnd::Const { dtype: self.dtype, bits: convert::from_f64(self.dtype, x, NEAREST) }
    }

    /// The kernel of the parts: the nest inside a loop over them.
    fn first(&self, kernel: &mut Kernel, bases: &Parts<ValId>, part: AxisId) {
        let roles = self.nest.roles;
        kernel.body.truncate(self.at + 1);
        let Some(mut nest) = kernel.body.pop() else { return };
        kernel.body.retain(edit::is_pure);
        let mut stores = vec![];
        for (buf, base, of_row) in
            [(roles.acc, bases.acc, false), (roles.greatest, bases.greatest, true), (roles.total, bases.total, true)]
        {
            let n = Ix::Axis(self.nest.last.axis);
            let name = kernel.bufs[buf].name.clone();
            let dst = kernel.vals.push(Val { ty: Ty::Num(self.dtype), name });
            let idx = if of_row { vec![] } else { vec![n.clone()] };
            let conds = if of_row { vec![Cond::new(n, Cmp::Eq, Ix::Const(0))] } else { vec![] };
            stores.push(Stmt::Read { dst, buf, idx });
            stores.push(Stmt::Store {
                mem: self.mem(base, part, of_row),
                value: Opnd::Val(dst),
                mask: Mask { conds, vals: vec![] },
                order: Order::Weak,
                site: self.site,
            });
        }
        let mut depth = 0;
        in_bodies(&mut nest, self.nest.free.len(), &mut |body| {
            depth += 1;
            if depth < self.nest.free.len() {
                return;
            }
            for s in body.iter_mut() {
                if let Stmt::For(f) = s
                    && f.stream.is_some()
                {
                    self.over_part(kernel, f, part);
                }
            }
            if let Some(Stmt::For(last)) = body.last_mut() {
                last.body = std::mem::take(&mut stores);
            }
        });
        kernel.body.push(edit::free_loop(part, Ix::Const(self.parts), vec![nest]));
        edit::drop_unused(&mut kernel.body);
        kernel.name += "_parts";
    }

    /// Makes the stream one of the keys of a part; positions past the last key get no weight.
    fn over_part(&self, kernel: &mut Kernel, f: &mut For, part: AxisId) {
        let key = Pieces::of(f, self.length).at(part, f.axis);
        let axis = f.axis;
        walk::subst_axes(&mut f.body, &mut |a| (a == axis).then(|| key.clone()));
        f.hi = Ix::Const(self.length);
        if self.keys % self.length == 0 {
            return;
        }
        let inside = Cond::new(key, Cmp::Lt, Ix::Const(self.keys));
        walk::visit_mut(&mut f.body, &mut |s| {
            if let Stmt::Load { mem, mask, other, .. } = s
                && mem.index.has_axis(axis)
            {
                *mask = mask.and(&Mask { conds: vec![inside.clone()], vals: vec![] });
                other.get_or_insert(Opnd::Const { dtype: mem.elem, bits: 0 });
            }
        });
        let Some(roles) = &mut f.stream else { return };
        let score = roles.score;
        let Some(at) = f.body.iter().position(|s| walk::def(s) == Some(score)) else { return };
        let on = kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "in".into() });
        let padded = kernel.vals.push(Val { ty: Ty::Num(self.dtype), name: "s".into() });
        walk::subst_vals(&mut f.body[at + 1..], &mut |v| (v == score).then_some(Opnd::Val(padded)));
        let args = vec![Opnd::Val(on), Opnd::Val(score), self.constant(f64::NEG_INFINITY)];
        f.body.insert(at + 1, Stmt::Test { dst: on, mask: Mask { conds: vec![inside], vals: vec![] } });
        f.body.insert(at + 2, Stmt::Let { dst: padded, op: ScalarOp::Select, args });
        roles.score = padded;
    }

    /// The kernel that joins the parts.
    fn second(&self, kernel: &mut Kernel, bases: &Parts<ValId>, part: AxisId) {
        let roles = self.nest.roles;
        let mut nest = kernel.body[self.at].clone();
        let scalar = |kernel: &mut Kernel, of: BufId| {
            let name = kernel.bufs[of].name.clone();
            kernel.bufs.push(Buf::new(name, Ty::Num(self.dtype), vec![]))
        };
        let [acc, greatest, total] = [roles.acc, roles.greatest, roles.total].map(|of| scalar(kernel, of));
        let own = Parts { acc, greatest, total };
        let mut joined = self.joined(kernel, bases, &own, part);
        let mut depth = 0;
        in_bodies(&mut nest, self.nest.free.len(), &mut |body| {
            depth += 1;
            if depth < self.nest.free.len() {
                return;
            }
            let of_stream = |s: &Stmt| match s {
                Stmt::Local { buf } | Stmt::Write { buf, .. } => [roles.acc, roles.greatest, roles.total].contains(buf),
                Stmt::For(_) => true,
                _ => false,
            };
            let last = body.pop();
            let around: Vec<Stmt> = std::mem::take(body).into_iter().filter(|s| !of_stream(s)).collect();
            if let Some(Stmt::For(mut last)) = last {
                let all = around.into_iter().chain(std::mem::take(&mut last.body));
                last.body = std::mem::take(&mut joined).into_iter().chain(all).collect();
                walk::visit_mut(&mut last.body, &mut |s| {
                    if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s {
                        for (old, new) in [(roles.acc, acc), (roles.greatest, greatest), (roles.total, total)] {
                            if *buf == old {
                                (*buf, *idx) = (new, vec![]);
                            }
                        }
                    }
                });
                body.push(Stmt::For(last));
            }
        });
        kernel.body[self.at] = nest;
        edit::drop_unused(&mut kernel.body);
    }

    /// The weighted sum and the sum of weights of all parts, the first one first; a greater score shrinks what was there before.
    fn joined(&self, kernel: &mut Kernel, bases: &Parts<ValId>, own: &Parts<BufId>, part: AxisId) -> Vec<Stmt> {
        let value =
            |kernel: &mut Kernel, name: &str| kernel.vals.push(Val { ty: Ty::Num(self.dtype), name: name.into() });
        let load = |kernel: &mut Kernel, base: ValId, of_row: bool, out: &mut Vec<Stmt>| {
            let (dst, mem, mask) = (value(kernel, "part"), self.mem(base, part, of_row), Mask::default());
            out.push(Stmt::Load { dst, mem, mask, other: None, order: Order::Weak, site: self.site });
            Opnd::Val(dst)
        };
        let read = |kernel: &mut Kernel, buf: BufId, out: &mut Vec<Stmt>| {
            let dst = value(kernel, "v");
            out.push(Stmt::Read { dst, buf, idx: vec![] });
            Opnd::Val(dst)
        };
        let define = |kernel: &mut Kernel, op: ScalarOp, args: Vec<Opnd>, out: &mut Vec<Stmt>| {
            let dst = value(kernel, "v");
            out.push(Stmt::Let { dst, op, args });
            Opnd::Val(dst)
        };
        let starts = [(own.greatest, f64::NEG_INFINITY), (own.total, 0.0), (own.acc, 0.0)];
        let start = |(buf, x)| [Stmt::Local { buf }, Stmt::Write { buf, idx: vec![], value: self.constant(x) }];
        let mut out: Vec<Stmt> = starts.into_iter().flat_map(start).collect();

        let mut body = vec![];
        let one = load(kernel, bases.greatest, true, &mut body);
        let old = read(kernel, own.greatest, &mut body);
        let now = define(kernel, MAX, vec![one, old], &mut body);
        // A row without any score: distances from -inf would be NaN, where the weights are 0.
        let empty = kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "empty".into() });
        let op = ScalarOp::CmpF { pred: Predicate::Equal, ordered: true };
        body.push(Stmt::Let { dst: empty, op, args: vec![now, self.constant(f64::NEG_INFINITY)] });
        let from = define(kernel, ScalarOp::Select, vec![Opnd::Val(empty), self.constant(0.0), now], &mut body);
        let [weight, shrink] = [one, old].map(|score| {
            let distance = define(kernel, SUB, vec![score, from], &mut body);
            define(kernel, ScalarOp::Exp, vec![distance], &mut body)
        });
        body.push(Stmt::Write { buf: own.greatest, idx: vec![], value: now });
        for (buf, base, of_row) in [(own.total, bases.total, true), (own.acc, bases.acc, false)] {
            let one = load(kernel, base, of_row, &mut body);
            let old = read(kernel, buf, &mut body);
            let kept = define(kernel, MUL, vec![old, shrink], &mut body);
            let new = define(kernel, FMA, vec![one, weight, kept], &mut body);
            body.push(Stmt::Write { buf, idx: vec![], value: new });
        }
        out.push(edit::loop_with(part, Ix::Const(self.parts), body, |f| f.kind = LoopKind::Reduce));
        out
    }
}
