//! Open nests: what the rules share that cut them into tiles.
//!
//! An open nest is free loops over all there is to compute, with sums inside. Cutting it means writing its parts anew,
//! each under loops of its own: what computes an operand, the sum itself, what follows it. A [`Frame`] says what the old
//! axes are in the new loops and what holds at the edges, [`slice()`] finds what a part needs, and [`Build`] writes it.

use std::collections::{BTreeMap, BTreeSet};

use super::affine::{self, Stride};
use super::edit;
use super::primitives::split::Pieces;
use crate::index::{Cond, Facts, Mask, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};

/// One contraction of a nest.
pub struct Sum<'a> {
    pub loops: Vec<&'a For>,
    pub roles: &'a Contraction,
    /// Straight-line statements inside, in program order.
    pub inside: Vec<&'a Stmt>,
    /// The multiply's arguments: the left and the right operand, converted.
    pub x: ValId,
    pub y: ValId,
}

impl Sum<'_> {
    /// The type of its right operand before it is converted.
    pub fn operand(&self, kernel: &Kernel) -> Option<DType> {
        let before = widened(kernel, self.inside.iter().copied(), self.y).map(|(from, _)| from);
        number(kernel, before.unwrap_or(self.roles.b))
    }
}

fn number(kernel: &Kernel, val: ValId) -> Option<DType> {
    kernel.vals.get(val)?.ty.num()
}

/// The value that a conversion to a wider type made this value from, and the conversion; `None` if it was not made so.
pub fn widened<'s>(
    kernel: &Kernel,
    mut list: impl Iterator<Item = &'s Stmt>,
    value: ValId,
) -> Option<(ValId, ScalarOp)> {
    let made = list.find(|s| walk::def(s) == Some(value))?;
    let Stmt::Let { op: op @ (ScalarOp::FToF { .. } | ScalarOp::ExtI { .. }), args, .. } = made else { return None };
    let [Opnd::Val(from)] = args[..] else { return None };
    (number(kernel, from)?.bytes() < number(kernel, value)?.bytes()).then_some((from, *op))
}

/// True if an operation multiplies its first two operands.
pub fn multiplies(op: ScalarOp) -> bool {
    matches!(op, ScalarOp::Fma { .. } | ScalarOp::MulI | ScalarOp::DotF | ScalarOp::DotI | ScalarOp::DotB)
}

/// The loops of one sum.
pub fn sum(f: &For) -> Result<Sum<'_>, String> {
    let (mut loops, mut inside) = (vec![f], vec![]);
    let mut at = f;
    while at.contraction.is_none() {
        let (last, before) = at.body.split_last().ok_or("a loop of it is empty")?;
        let Stmt::For(next) = last else { return Err("it needs another reduction".to_string()) };
        inside.extend(before);
        loops.push(next);
        at = next;
    }
    inside.extend(&at.body);
    if loops.iter().any(|f| f.kind != LoopKind::Reduce) || inside.iter().any(|s| !walk::bodies(s).is_empty()) {
        return Err("it needs another reduction".to_string());
    }
    let Some(roles) = &at.contraction else { return Err("it is not a contraction".to_string()) };
    let slices = |v: ValId| slice(&inside, &[v]);
    for s in &inside {
        let Stmt::Let { op, args, .. } = s else { continue };
        if !multiplies(*op) {
            continue;
        }
        let [Opnd::Val(x), Opnd::Val(y), ..] = args[..] else { continue };
        // A value that is defined further out is in neither slice.
        let has = |v: ValId, role: ValId| v == role || slices(v).iter().any(|s| walk::def(s) == Some(role));
        if has(x, roles.a) && has(y, roles.b) {
            return Ok(Sum { loops, roles, inside, x, y });
        }
    }
    Err("its product is not of its two operands".to_string())
}

/// A nest of free loops around contractions of one shape and what uses their sums.
pub struct OpenNest<'a> {
    /// Outermost first.
    pub free: Vec<&'a For>,
    /// Straight-line statements outside the sums, in program order.
    pub around: Vec<&'a Stmt>,
    pub sums: Vec<Sum<'a>>,
}

impl<'a> OpenNest<'a> {
    /// `None` where there is no contraction; `Err` with the reason where the nest has another form.
    pub fn of(s: &'a Stmt) -> Option<Result<OpenNest<'a>, String>> {
        let Stmt::For(first) = s else { return None };
        let has = |is: fn(&For) -> bool| is(first) || walk::loops(&first.body).any(is);
        if !first.is_free_unplaced() || !has(|f| f.contraction.is_some()) || has(|f| f.stream.is_some()) {
            return None;
        }
        let mut nest = OpenNest { free: vec![first], around: vec![], sums: vec![] };
        Some(nest.fill(&first.body).map(|()| nest))
    }

    fn fill(&mut self, body: &'a [Stmt]) -> Result<(), String> {
        for (at, s) in body.iter().enumerate() {
            match s {
                Stmt::For(f) if f.kind == LoopKind::Free && at + 1 == body.len() && self.sums.is_empty() => {
                    self.free.push(f);
                    return self.fill(&f.body);
                }
                Stmt::For(f) => {
                    let sum = sum(f)?;
                    self.sums.push(sum);
                }
                _ if !walk::bodies(s).is_empty() => return Err("it holds control flow".to_string()),
                _ => self.around.push(s),
            }
        }
        let free = |axes: &[AxisId]| axes.iter().all(|a| self.free.iter().any(|f| f.axis == *a));
        let Some(first) = self.sums.first() else { return Err("its sum is not in this nest".to_string()) };
        let alike = |s: &Sum<'_>| {
            let extents = s.loops.iter().map(|f| &f.hi).eq(first.loops.iter().map(|f| &f.hi));
            s.roles.m == first.roles.m && s.roles.n == first.roles.n && extents
        };
        if !self.sums.iter().all(alike) || !free(&first.roles.m) || !free(&first.roles.n) {
            return Err("its sums run over different axes".to_string());
        }
        Ok(())
    }
}

/// The statements of a list that some values are computed by, in order.
pub fn slice<'a>(list: &[&'a Stmt], of: &[ValId]) -> Vec<&'a Stmt> {
    walk::slice(list.iter().copied(), of).into_iter().map(|at| list[at]).collect()
}

/// Returns the slice with its assertions: the assertions about values that the slice computes, and every assertion for which `also`
/// is true, given the statements that compute its condition.
pub fn slice_asserted<'a>(list: &[&'a Stmt], of: ValId, also: &dyn Fn(&Stmt, &[&Stmt]) -> bool) -> Vec<&'a Stmt> {
    let mut wanted = vec![of];
    let mut asserts: Vec<*const Stmt> = vec![];
    for s in list {
        if let Stmt::Assert { cond, .. } = s
            && (is_about(list, s, &[of]) || also(s, &tested(list, s)))
        {
            if let Opnd::Val(cond) = cond {
                wanted.push(*cond);
            }
            asserts.push(*s);
        }
    }
    let computed = slice(list, &wanted);
    let own = |s: &Stmt| computed.iter().any(|c| std::ptr::eq(*c, s)) || asserts.contains(&std::ptr::from_ref(s));
    list.iter().copied().filter(|s| own(s)).collect()
}

/// The statements that compute what an assertion tests.
pub fn tested<'a>(list: &[&'a Stmt], assert: &Stmt) -> Vec<&'a Stmt> {
    match assert {
        Stmt::Assert { cond: Opnd::Val(cond), .. } => slice(list, &[*cond]),
        _ => vec![],
    }
}

/// True if an assertion tests something that one of these values is computed from.
pub fn is_about(list: &[&Stmt], assert: &Stmt, of: &[ValId]) -> bool {
    let defined: BTreeSet<ValId> = slice(list, of).iter().filter_map(|s| walk::def(s)).collect();
    tested(list, assert).iter().any(|s| reads(s).iter().any(|v| defined.contains(v)))
}

/// True if statements depend on one of a side's axes.
pub fn uses(stmts: &[&Stmt], side: &Side) -> bool {
    stmts.iter().any(|s| walk::refs_of(s).axes_used.iter().any(|a| side.axes.iter().any(|b| b.0 == *a)))
}

pub fn reads(s: &Stmt) -> Vec<ValId> {
    let mut all = vec![];
    walk::each_use(s, &mut |v| all.push(v));
    all
}

/// Axes that become one.
#[derive(Clone)]
pub struct Side {
    pub axes: Vec<(AxisId, Ix)>,
    pub extent: Ix,
    pub block: u64,
}

impl Side {
    pub fn new(axes: Vec<(AxisId, Ix)>, facts: &Facts) -> Side {
        let extent = axes.iter().fold(Ix::Const(1), |n, (_, hi)| Ix::mul(n, hi.clone()));
        Side { extent: simplify(&extent, facts), axes, block: 1 }
    }

    /// The loops over some axes as one side; `block` of it is taken at once.
    pub fn of(axes: &[AxisId], loops: &[&For], facts: &Facts) -> Side {
        let extent = |a: &AxisId| loops.iter().find(|f| f.axis == *a).map(|f| (*a, f.hi.clone()));
        Side::new(axes.iter().filter_map(extent).collect(), facts)
    }

    /// Positions along the axes, from one along all of them.
    pub fn split(&self, position: &Ix, by: &mut BTreeMap<AxisId, Ix>) {
        let extents: Vec<Ix> = self.axes.iter().map(|a| a.1.clone()).collect();
        by.extend(self.axes.iter().map(|a| a.0).zip(position.unravel(&extents)));
    }

    /// Its blocks.
    pub fn pieces(&self) -> Pieces {
        Pieces::new(self.extent.clone(), self.block as i64)
    }

    pub fn known(&self) -> Option<u64> {
        self.extent.as_const().map(|n| n.max(0) as u64)
    }
}

/// A copy of statements under new axes: which conditions hold for accesses that depend on the old ones.
pub struct Frame {
    pub by: BTreeMap<AxisId, Ix>,
    /// Where a side has several axes, `by` splits a position along the whole of it: what that position is. An index is first made
    /// simple in terms of it, since what the axes of a side add up to often is the position itself.
    positions: BTreeMap<AxisId, Ix>,
    /// Old axes, and what holds inside along them.
    pub conds: Vec<(BTreeSet<AxisId>, Cond)>,
    pub facts: Facts,
}

impl Frame {
    /// Axes that are made of positions along sides.
    pub fn new(facts: &Facts, sides: &[(&Side, Ix)]) -> Frame {
        let (mut by, mut conds, mut positions, mut facts) = (BTreeMap::new(), vec![], BTreeMap::new(), facts.clone());
        for (at, (side, position)) in sides.iter().enumerate() {
            // No axis of a kernel has this number.
            let whole = AxisId(u32::MAX - at as u32);
            if side.axes.len() > 1 {
                facts.set_axis(whole, &Ix::Const(0), &side.extent);
                positions.insert(whole, position.clone());
                side.split(&Ix::Axis(whole), &mut by);
            } else {
                side.split(position, &mut by);
            }
            let of = side.axes.iter().map(|a| a.0).collect::<BTreeSet<_>>();
            conds.extend(side.pieces().exists(position.clone()).map(|c| (of, c)));
        }
        Frame { by, conds, facts, positions }
    }

    /// The statements under the new axes, defining values of their own; accesses keep inside the extents.
    pub fn copy(&self, kernel: &mut Kernel, stmts: &[Stmt]) -> Vec<Stmt> {
        let out = self.put(kernel, stmts);
        walk::clone_fresh(kernel, &out)
    }

    /// The same statements, defining the values that they did: in place of those that were.
    pub fn put(&self, kernel: &mut Kernel, stmts: &[Stmt]) -> Vec<Stmt> {
        // Which old axes a value depends on decides which conditions guard an access.
        let mut depends: BTreeMap<ValId, BTreeSet<AxisId>> = BTreeMap::new();
        let mut out = Vec::with_capacity(stmts.len());
        for s in stmts {
            let facts = walk::refs_of(s);
            let mut axes: BTreeSet<AxisId> = facts.axes_used.iter().copied().collect();
            for v in &facts.vals_used {
                axes.extend(depends.get(v).into_iter().flatten());
            }
            let mut s = s.clone();
            walk::map_ixs(std::slice::from_mut(&mut s), &mut |ix| {
                let mut put = |of: &BTreeMap<AxisId, Ix>| {
                    *ix = simplify(&ix.subst_axes(&mut |a| of.get(&a).cloned()), &self.facts);
                };
                put(&self.by);
                if !self.positions.is_empty() {
                    put(&self.positions);
                }
            });
            let all = matches!(s, Stmt::Store { .. } | Stmt::Assert { .. });
            let conds = |axes: &BTreeSet<AxisId>| -> Vec<Cond> {
                let of = self.conds.iter().filter(|(of, _)| all || of.intersection(axes).next().is_some());
                of.map(|(_, c)| c.clone()).collect()
            };
            match &mut s {
                Stmt::Load { mask, other, mem, .. } => {
                    let conds = conds(&axes);
                    if !conds.is_empty() {
                        *mask = mask.and(&Mask { conds, vals: vec![] });
                        other.get_or_insert(Opnd::Const { dtype: mem.elem, bits: 0 });
                    }
                }
                Stmt::Store { mask, .. } => *mask = mask.and(&Mask { conds: conds(&axes), vals: vec![] }),
                Stmt::Assert { cond, .. } => {
                    let conds = conds(&axes);
                    if !conds.is_empty() {
                        *cond = or_outside(kernel, conds, *cond, &mut out);
                    }
                }
                _ => {}
            }
            if let Some(v) = walk::def(&s) {
                depends.insert(v, axes);
            }
            out.push(s);
        }
        out
    }
}

/// A condition that also holds outside of the extents.
pub fn or_outside(kernel: &mut Kernel, conds: Vec<Cond>, cond: Opnd, out: &mut Vec<Stmt>) -> Opnd {
    let mut fresh = |name: &str| kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: name.into() });
    let (on, off, either) = (fresh("on"), fresh("off"), fresh("inside"));
    let one = Opnd::Const { dtype: DType::I1, bits: 1 };
    out.push(Stmt::Test { dst: on, mask: Mask { conds, vals: vec![] } });
    out.push(Stmt::Let { dst: off, op: ScalarOp::Xor, args: vec![Opnd::Val(on), one] });
    out.push(Stmt::Let { dst: either, op: ScalarOp::Or, args: vec![cond, Opnd::Val(off)] });
    Opnd::Val(either)
}

/// A kernel whose parts are being written.
pub struct Build<'a> {
    pub kernel: &'a mut Kernel,
    pub facts: Facts,
    /// Operands that are computed lie in their tiles as they are before they are converted to a wider type.
    pub narrow: bool,
}

/// One axis of a tile: how long it is.
pub type Extent = (AxisId, u64);

/// The statements that give an operand's element in the loop over the sum, and the element before conversion.
pub struct Operand {
    pub stmts: Vec<Stmt>,
    pub role: ValId,
}

impl Operand {
    /// The element as the multiply takes it.
    pub fn value(&self) -> ValId {
        self.stmts.last().and_then(walk::def).unwrap_or(self.role)
    }
}

impl Build<'_> {
    /// A fresh axis that runs from 0.
    pub fn axis(&mut self, name: &str, size: u64) -> AxisId {
        let axis = self.kernel.axes.push(Axis { name: name.into(), from: None });
        self.facts.set_axis(axis, &Ix::Const(0), &Ix::Const(size as i64));
        axis
    }

    /// An operand of a sum whose tile runs over `own` and whose stretch is `kk`. If it takes more than a load, loops that go to
    /// `out` first compute it into a local buffer. `frame` gives the old axes at a position and one along the sum.
    #[allow(clippy::too_many_arguments)]
    pub fn operand(
        &mut self,
        stmts: &[&Stmt],
        value: ValId,
        role: Option<ValId>,
        left: bool,
        own: Extent,
        kk: Extent,
        frame: &dyn Fn(&Build<'_>, AxisId, AxisId) -> Frame,
        out: &mut Vec<Stmt>,
    ) -> Result<Operand, String> {
        let list: Vec<Stmt> = stmts.iter().map(|s| (*s).clone()).collect();
        if is_direct(stmts) {
            let at = role.map_or(Some(0), |role| list.iter().position(|s| walk::def(s) == Some(role)));
            let copy = frame(self, own.0, kk.0).copy(self.kernel, &list);
            let role = at.and_then(|at| copy.get(at)).and_then(walk::def).ok_or("an operand is not loaded")?;
            return Ok(Operand { stmts: copy, role });
        }
        let wide = widened(self.kernel, list.iter(), value).filter(|_| self.narrow);
        let (narrow, list) = match wide {
            Some((from, _)) => (from, list.into_iter().filter(|s| walk::def(s) != Some(value)).collect()),
            None => (value, list),
        };
        let to = number(self.kernel, value);
        let (Some(dtype), Some(to)) = (number(self.kernel, narrow), to) else {
            return Err("an operand is an address".to_string());
        };
        let value = narrow;
        let (name, at) = if left { ("a", "i") } else { ("b", "j") };
        let (p, q) = (self.axis(at, own.1), self.axis("kk", kk.1));
        let frame = frame(self, p, q);
        let mut list: Vec<Stmt> = list;
        let value = self.pad(&frame, value, dtype, &mut list);
        let mut list = frame.put(self.kernel, &list);
        // The right operand has rows, too, where memory runs along the sum: packing then transposes it.
        let by_rows = left || !self.narrow && runs_along(&list, q, p);
        let index = |own: AxisId, kk: AxisId| {
            let (own, kk) = (Ix::Axis(own), Ix::Axis(kk));
            if by_rows { vec![own, kk] } else { vec![kk, own] }
        };
        let shape = if by_rows { vec![own.1, kk.1] } else { vec![kk.1, own.1] };
        let buf = self.kernel.bufs.push(Buf::new(name, Ty::Num(dtype), shape));
        list.push(Stmt::Write { buf, idx: index(p, q), value: Opnd::Val(value) });
        let copy = walk::clone_fresh(self.kernel, &list);
        out.push(Stmt::Local { buf });
        let order = if by_rows { [(p, own.1), (q, kk.1)] } else { [(q, kk.1), (p, own.1)] };
        out.push(nested(&order, copy));
        let mut read = self.read(buf, dtype, index(own.0, kk.0));
        if let Some((_, op)) = wide {
            let dst = self.kernel.vals.push(Val { ty: Ty::Num(to), name: "x".into() });
            read.stmts.push(Stmt::Let { dst, op, args: vec![Opnd::Val(read.role)] });
        }
        Ok(read)
    }

    /// An operand that lies in a buffer.
    pub fn read(&mut self, buf: BufId, dtype: DType, idx: Vec<Ix>) -> Operand {
        let dst = self.kernel.vals.push(Val { ty: Ty::Num(dtype), name: "x".into() });
        Operand { stmts: vec![Stmt::Read { dst, buf, idx }], role: dst }
    }

    /// Makes an operand 0 outside of its extents: what stands there is no term of the sum. Gives the value to take.
    fn pad(&mut self, frame: &Frame, value: ValId, dtype: DType, list: &mut Vec<Stmt>) -> ValId {
        let conds: Vec<Cond> = frame.conds.iter().map(|(_, c)| c.clone()).collect();
        if conds.is_empty() {
            return value;
        }
        let name = self.kernel.vals[value].name.clone();
        let (padded, made) = edit::padded(self.kernel, conds, value, &name, Opnd::Const { dtype, bits: 0 });
        list.extend(made);
        padded
    }

    /// `tile[i, j] += sum over kk of a*b`; `multiply` are the statements after the operands.
    pub fn contraction(
        &mut self,
        tile: BufId,
        [i, j, kk]: [Extent; 3],
        a: &Operand,
        b: &Operand,
        multiply: Vec<Stmt>,
    ) -> Stmt {
        let roles = Contraction { m: vec![i.0], n: vec![j.0], k: vec![kk.0], a: a.role, b: b.role, acc: tile };
        let body = a.stmts.iter().chain(&b.stmts).cloned().chain(multiply).collect();
        let reduce = edit::loop_with(kk.0, Ix::Const(kk.1 as i64), body, |f| {
            f.kind = LoopKind::Reduce;
            f.contraction = Some(roles);
        });
        loops(&[i, j], vec![reduce])
    }

    /// The multiply and the add of a sum, of its operands as they are now and into a tile.
    pub fn multiply(
        &mut self,
        sum: &Sum<'_>,
        a: &Operand,
        b: &Operand,
        tile: BufId,
        at: &[Ix],
    ) -> Result<Vec<Stmt>, String> {
        let names = BTreeMap::from([(sum.x, a.value()), (sum.y, b.value())]);
        let acc = sum.roles.acc;
        let write = sum.inside.iter().rev().find(|s| matches!(s, Stmt::Write { buf, .. } if *buf == acc));
        let Some(Stmt::Write { value: Opnd::Val(new), .. }) = write else {
            return Err("its sum is not written".to_string());
        };
        let mut own = slice(&sum.inside, &[*new]);
        let of_operands = slice(&sum.inside, &[sum.x, sum.y]);
        own.retain(|s| !of_operands.iter().any(|o| std::ptr::eq(*o, *s)));
        let mut list: Vec<Stmt> = own.into_iter().chain(write.copied()).cloned().collect();
        to_tiles(&mut list, &BTreeMap::from([(acc, (tile, at.to_vec()))]));
        walk::subst_vals(&mut list, &mut |v| names.get(&v).map(|v| Opnd::Val(*v)));
        Ok(walk::clone_fresh(self.kernel, &list))
    }
}

/// True if more of the loads that depend on both axes are contiguous along the first than along the second.
fn runs_along(stmts: &[Stmt], axis: AxisId, other: AxisId) -> bool {
    let varying = stmts.iter().filter_map(walk::def).collect();
    let both = BTreeSet::from([axis, other]);
    let count = |axis: AxisId| {
        let along = |s: &&Stmt| match s {
            Stmt::Load { mem, .. } => affine::stride(&mem.index, axis, &varying) == Stride::Unit,
            _ => false,
        };
        stmts.iter().filter(along).filter(|s| walk::refs_of(s).axes_used.is_superset(&both)).count()
    };
    count(axis) > count(other)
}

/// The statements that compute each operand of a sum. An assertion inside the sum belongs to the operand whose axes it is about.
pub fn operands_of<'a>(
    around: &[&'a Stmt],
    sum: &Sum<'a>,
    left: &Side,
    right: &Side,
) -> Result<[Vec<&'a Stmt>; 2], String> {
    let all: Vec<&Stmt> = around.iter().chain(&sum.inside).copied().collect();
    let own = |s: &Stmt, with: &[&Stmt], yes: Option<&Side>, no: &Side| {
        sum.inside.iter().any(|i| std::ptr::eq(*i, s))
            && !is_about(&all, s, &[sum.x, sum.y])
            && yes.is_none_or(|side| uses(with, side))
            && !uses(with, no)
    };
    let x = slice_asserted(&all, sum.x, &|s, with| own(s, with, None, right));
    let y = slice_asserted(&all, sum.y, &|s, with| own(s, with, Some(right), left));
    let taken = |s: &Stmt| x.iter().chain(&y).any(|t| std::ptr::eq(*t, s));
    if sum.inside.iter().any(|s| matches!(s, Stmt::Assert { .. }) && !taken(s)) {
        return Err("its sum holds an assertion that belongs to no operand".to_string());
    }
    for (stmts, other) in [(&x, right), (&y, left)] {
        if stmts.iter().any(|s| matches!(s, Stmt::Read { .. })) {
            return Err("an operand needs what the kernel keeps".to_string());
        }
        if uses(stmts, other) {
            return Err("an operand depends on both rows and columns".to_string());
        }
    }
    Ok([x, y])
}

/// Reads and writes of buffers as those of tiles at these places.
pub fn to_tiles(body: &mut [Stmt], tiles: &BTreeMap<BufId, (BufId, Vec<Ix>)>) {
    walk::visit_mut(body, &mut |s| {
        if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
            && let Some((tile, at)) = tiles.get(buf)
        {
            (*buf, *idx) = (*tile, at.clone());
        }
    });
}

/// Checks that loops run from 0 in steps of 1 to ends that do not depend on one another.
pub fn check_bounds(loops: &[&For]) -> Result<(), String> {
    match loops.iter().all(|f| f.counts_from_zero() && f.hi.axes().is_empty()) {
        true => Ok(()),
        false => Err("the bounds of its loops depend on each other".to_string()),
    }
}

/// The loops that stand around the tiles of a nest.
pub struct Outer {
    /// The blocks' axes along x, y and z, with how many there are.
    pub grid: [(AxisId, Ix); 3],
    /// The stretches of the sum.
    pub stretch: AxisId,
    pub stretches: Ix,
}

impl Outer {
    /// Enters the ranges of the axes.
    pub fn enter(&self, facts: &mut Facts) {
        for (axis, n) in self.grid.iter().chain([&(self.stretch, self.stretches.clone())]) {
            facts.set_axis(*axis, &Ix::Const(0), n);
        }
    }

    /// A block's position along a dimension, 0 where there is one.
    pub fn block(&self, d: usize) -> Ix {
        if self.grid[d].1.is_const(1) { Ix::Const(0) } else { Ix::Axis(self.grid[d].0) }
    }

    /// The stretch's number, 0 where there is one.
    pub fn stretch(&self) -> Ix {
        if self.stretches.is_const(1) { Ix::Const(0) } else { Ix::Axis(self.stretch) }
    }

    /// The loop that runs a body for each stretch, in order.
    pub fn in_stretches(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        self.in_first_stretches(self.stretches.clone(), body)
    }

    /// The same for the first of them.
    pub fn in_first_stretches(&self, count: Ix, body: Vec<Stmt>) -> Vec<Stmt> {
        if self.stretches.is_const(1) {
            return body;
        }
        vec![edit::loop_with(self.stretch, count, body, |f| f.kind = LoopKind::Serial)]
    }

    /// The loops that run a body for each block.
    pub fn in_blocks(&self, mut body: Vec<Stmt>) -> Result<Stmt, String> {
        let single = self.grid.iter().all(|(_, n)| n.is_const(1));
        for (dim, (axis, count)) in (0u8..).zip(&self.grid) {
            if !count.is_const(1) || dim == 0 && single {
                body = vec![edit::block_loop(*axis, dim, count.clone(), body)];
            }
        }
        body.pop().ok_or("it is empty".to_string())
    }
}

/// True if an operand's element is one load, perhaps converted, that gives 0 where it is masked off; or a word of two.
pub fn is_direct(stmts: &[&Stmt]) -> bool {
    let Some((first, rest)) = stmts.split_first() else { return false };
    if is_word(stmts) {
        return true;
    }
    let load = is_zero_outside(first);
    let converts = |s: &&Stmt| matches!(s, Stmt::Let { op: ScalarOp::FToF { .. } | ScalarOp::ExtI { .. }, .. });
    load && rest.len() <= 1 && rest.iter().all(converts)
}

/// True if statements join the elements that they load into one word, and do nothing else.
pub fn is_word(stmts: &[&Stmt]) -> bool {
    use ScalarOp::{Bitcast, ExtI, Or, Shl};
    let moves = |s: &Stmt| matches!(s, Stmt::Let { op: Bitcast { .. } | ExtI { .. } | Shl | Or, .. });
    matches!(stmts, [.., Stmt::Let { op: Or, .. }]) && stmts.iter().all(|s| is_zero_outside(s) || moves(s))
}

fn is_zero_outside(s: &Stmt) -> bool {
    let zero = |other: &Option<Opnd>| other.is_none_or(|o| matches!(o, Opnd::Const { bits: 0, .. }));
    matches!(s, Stmt::Load { other, mask, .. } if zero(other) && mask.vals.is_empty())
}

/// Free loops around a body, outermost first.
pub fn loops(axes: &[(AxisId, u64)], mut body: Vec<Stmt>) -> Stmt {
    for (axis, n) in axes.iter().rev() {
        body = vec![edit::free_loop(*axis, Ix::Const(*n as i64), body)];
    }
    body.remove(0)
}

/// Two free loops around straight-line statements: what does not depend on the inner one stands between them.
pub fn nested(axes: &[(AxisId, u64); 2], body: Vec<Stmt>) -> Stmt {
    let [(outer, n), (inner, m)] = *axes;
    let mut varying: BTreeSet<ValId> = BTreeSet::new();
    let written = walk::refs(&body).bufs_written;
    let (mut between, mut within) = (vec![], vec![]);
    for s in body {
        let facts = walk::refs_of(&s);
        let fixed = !facts.axes_used.contains(&inner) && facts.vals_used.iter().all(|v| !varying.contains(v));
        let changes = matches!(&s, Stmt::Read { buf, .. } if written.contains(buf));
        if fixed && edit::is_pure(&s) && !changes || fixed && matches!(s, Stmt::Assert { .. }) {
            between.push(s);
        } else {
            varying.extend(walk::def(&s));
            within.push(s);
        }
    }
    between.push(edit::free_loop(inner, Ix::Const(m as i64), within));
    edit::free_loop(outer, Ix::Const(n as i64), between)
}
