//! `tileify`

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Context, Log, Rule};
use crate::index::{Cmp, Cond, Facts, Mask, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use crate::tile::affine;
use crate::tile::blocking::{Blocks, OperandLayout, contraction_blocks};
use crate::tile::contraction::num_type;
use crate::tile::edit;
use crate::tile::rules::site_of;

pub const RULE: Rule<Kernel> = Rule {
    name: "tileify",
    doc: "\
Cuts an open contraction into tiles of rows and columns, one for each block of the grid, and its sum into stretches. The
accumulator becomes a tile; what computes an operand, and what follows the sum, get loops of their own.

```text
for i in 0..512: free                            for jb in 0..56: free block(y)
  for j in 0..3584: free                           for ib in 0..1: free block(x)
    acc = 0                                          local acc[512, 64] = 0
    for k in 0..3584: reduce contraction   -->       for kt in 0..14: serial
      acc <- fma(x[i, k], w[j, k], acc)                for i: for j: for kk in 0..256: reduce contraction
    store out[i*3584 + j] = acc + b[j]                   acc[i, j] <- fma(x[..], w[..], acc[i, j])
                                                     for i: for j: free
                                                       store out[..] = acc[i, j] + b[jb*64 + j]
```

Several row, column or summed axes become one, the last running fastest. Sizes follow the caches, the registers and the
threads (`tile/blocking.rs`). Where they do not divide an extent, accesses get masks.

Refuses nests that hold other loops than those of the sum, such as a reduction that an operand needs.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !p.open {
        return None;
    }
    let mut kernel = p.clone();
    let mut changed = false;
    for at in 0..p.body.len() {
        let nest = match OpenNest::of(&p.body[at]) {
            None => continue,
            Some(nest) => nest,
        };
        let site = site_of(p, &p.body[at]);
        match nest.and_then(|nest| Tiling::new(&mut kernel, ctx, &nest)?.build(&nest)) {
            Ok(stmt) => {
                log.applied(site);
                kernel.body[at] = stmt;
                changed = true;
            }
            Err(why) => log.skipped(site, why),
        }
    }
    changed.then_some(kernel)
}

/// A nest of free loops around contractions of one shape and what uses their sums.
struct OpenNest<'a> {
    /// Outermost first.
    free: Vec<&'a For>,
    /// Straight-line statements outside the sums, in program order.
    around: Vec<&'a Stmt>,
    sums: Vec<Sum<'a>>,
}

/// One contraction of a nest.
struct Sum<'a> {
    loops: Vec<&'a For>,
    roles: &'a Contraction,
    /// Straight-line statements inside, in program order.
    inside: Vec<&'a Stmt>,
    /// The multiply's arguments: the left and the right operand, converted.
    x: ValId,
    y: ValId,
}

impl<'a> OpenNest<'a> {
    /// `None` where there is no contraction; `Err` with the reason where the nest has another form.
    fn of(s: &'a Stmt) -> Option<Result<OpenNest<'a>, String>> {
        let mut found = false;
        walk::visit(std::slice::from_ref(s), &mut |s| {
            found |= matches!(s, Stmt::For(f) if f.contraction.is_some());
        });
        let Stmt::For(first) = s else { return None };
        if !found || first.kind != LoopKind::Free || first.place != Place::None {
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
        let Some(first) = self.sums.first() else { return Err("its sum stands elsewhere".to_string()) };
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

/// The loops of one sum.
fn sum(f: &For) -> Result<Sum<'_>, String> {
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
    let Some(roles) = &at.contraction else { return Err("it is no contraction".to_string()) };
    let slices = |v: ValId| slice(&inside, &[v]);
    for s in &inside {
        let Stmt::Let { op: ScalarOp::Fma { .. } | ScalarOp::MulI, args, .. } = s else { continue };
        let [Opnd::Val(x), Opnd::Val(y), ..] = args[..] else { continue };
        // What is defined further out is in neither.
        let has = |v: ValId, role: ValId| v == role || slices(v).iter().any(|s| walk::def(s) == Some(role));
        if has(x, roles.a) && has(y, roles.b) {
            return Ok(Sum { loops, roles, inside, x, y });
        }
    }
    Err("its product is not of its two operands".to_string())
}

/// The statements of a list that some values are computed by, in order.
fn slice<'a>(list: &[&'a Stmt], of: &[ValId]) -> Vec<&'a Stmt> {
    let mut wanted: BTreeSet<ValId> = of.iter().copied().collect();
    let mut out = vec![];
    for s in list.iter().rev() {
        if walk::def(s).is_some_and(|v| wanted.contains(&v)) {
            walk::each_use(s, &mut |v| _ = wanted.insert(v));
            out.push(*s);
        }
    }
    out.reverse();
    out
}

/// The same with the assertions about values that are computed on the way.
fn slice_asserted<'a>(list: &[&'a Stmt], of: ValId) -> Vec<&'a Stmt> {
    let own = slice(list, &[of]);
    let defined: BTreeSet<ValId> = own.iter().filter_map(|s| walk::def(s)).collect();
    let mut wanted: BTreeSet<ValId> = BTreeSet::from([of]);
    let mut asserts: Vec<*const Stmt> = vec![];
    for s in list {
        if let Stmt::Assert { cond: Opnd::Val(cond), .. } = s {
            let needs = slice(list, &[*cond]);
            if needs.iter().any(|s| reads(s).iter().any(|v| defined.contains(v))) {
                wanted.insert(*cond);
                asserts.push(*s);
            }
        }
    }
    let wanted: Vec<ValId> = wanted.into_iter().collect();
    let computed = slice(list, &wanted);
    list.iter()
        .copied()
        .filter(|s| computed.iter().any(|c| std::ptr::eq(*c, *s)) || asserts.contains(&std::ptr::from_ref(*s)))
        .collect()
}

fn reads(s: &Stmt) -> Vec<ValId> {
    let mut all = vec![];
    walk::each_use(s, &mut |v| all.push(v));
    all
}

/// How a nest is cut, and what its axes become.
struct Tiling<'a> {
    kernel: &'a mut Kernel,
    facts: Facts,
    blocks: Blocks,
    /// Extents of rows, columns and the sum, and of the axes that each is made of, outermost first.
    m: Side,
    n: Side,
    k: Side,
    batch: Vec<(AxisId, Ix)>,
    /// The blocks' axes: x, y, z, with how many there are.
    grid: [(AxisId, Ix); 3],
    kt: AxisId,
    steps: Ix,
}

/// Axes that become one.
#[derive(Clone)]
struct Side {
    axes: Vec<(AxisId, Ix)>,
    extent: Ix,
    block: u64,
}

impl Side {
    fn new(axes: Vec<(AxisId, Ix)>, facts: &Facts) -> Side {
        let extent = axes.iter().fold(Ix::Const(1), |n, (_, hi)| Ix::mul(n, hi.clone()));
        Side { extent: simplify(&extent, facts), axes, block: 1 }
    }

    /// Positions along the axes, from one along all of them; the last runs fastest.
    fn split(&self, position: &Ix, by: &mut BTreeMap<AxisId, Ix>) {
        let mut stride = Ix::Const(1);
        for (i, (axis, n)) in self.axes.iter().enumerate().rev() {
            let q = Ix::floor_div(position.clone(), stride.clone());
            by.insert(*axis, if i == 0 { q } else { Ix::modulo(q, n.clone()) });
            stride = Ix::mul(stride, n.clone());
        }
    }

    fn known(&self) -> Option<u64> {
        self.extent.as_const().map(|n| n.max(0) as u64)
    }

    /// What holds inside; nothing where blocks divide the extent.
    fn inside(&self, position: &Ix) -> Option<Cond> {
        let divides = self.known().is_some_and(|n| n.is_multiple_of(self.block));
        (!divides).then(|| Cond::new(position.clone(), Cmp::Lt, self.extent.clone()))
    }
}

/// Extents that are not known are taken to be this long.
const GUESS: u64 = 4096;

/// A copy of statements under new axes: which conditions hold for accesses that depend on the old ones.
struct Frame {
    by: BTreeMap<AxisId, Ix>,
    /// Old axes, and what holds inside along them.
    conds: Vec<(BTreeSet<AxisId>, Cond)>,
    facts: Facts,
}

impl<'a> Tiling<'a> {
    fn new(kernel: &'a mut Kernel, ctx: &Context, nest: &OpenNest<'_>) -> Result<Tiling<'a>, String> {
        let mut facts = edit::facts(kernel);
        let first = nest.sums.first().ok_or("its sum stands elsewhere")?;
        let hi = |axes: &[AxisId], loops: &[&For]| -> Vec<(AxisId, Ix)> {
            axes.iter().filter_map(|a| loops.iter().find(|f| f.axis == *a)).map(|f| (f.axis, f.hi.clone())).collect()
        };
        let roles = first.roles;
        let mut m = Side::new(hi(&roles.m, &nest.free), &facts);
        let mut n = Side::new(hi(&roles.n, &nest.free), &facts);
        let mut k = Side::new(hi(&roles.k, &first.loops), &facts);
        let role = |a: &AxisId| roles.m.contains(a) || roles.n.contains(a);
        let batch: Vec<(AxisId, Ix)> =
            nest.free.iter().filter(|f| !role(&f.axis)).map(|f| (f.axis, f.hi.clone())).collect();
        let all = nest.free.iter().chain(&first.loops);
        if all.into_iter().any(|f| !f.lo.is_const(0) || !f.step.is_const(1) || !f.hi.axes().is_empty()) {
            return Err("the bounds of its loops depend on each other".to_string());
        }
        let acc = num_type(kernel, roles.acc).ok_or("its accumulator holds addresses")?;
        // Whether all right operands lie in panels: along the columns as one axis.
        let column = edit::new_axis(kernel, roles.n.last().copied().unwrap_or(roles.k[0]), "");
        facts.set_axis(column, &Ix::Const(0), &n.extent);
        let mut by = BTreeMap::new();
        n.split(&Ix::Axis(column), &mut by);
        let panels = |s: &Sum<'_>| match slice(&s.inside, &[s.roles.b])[..] {
            [Stmt::Load { mem, .. }] => {
                let ix = simplify(&mem.index.subst_axes(&mut |a| by.get(&a).cloned()), &facts);
                affine::panels(&ix, column).is_some()
            }
            _ => false,
        };
        let layout = if nest.sums.iter().all(panels) { OperandLayout::Panels } else { OperandLayout::AlongK };
        let (cols, depth) = (n.known().unwrap_or(GUESS), k.known().unwrap_or(GUESS));
        let mut blocks = contraction_blocks(&ctx.target, m.known(), cols, depth, acc, layout);
        if layout != OperandLayout::Panels {
            blocks.bk = blocks.bk.min(k.known().unwrap_or(u64::MAX).max(1));
        }
        (m.block, n.block, k.block) = (blocks.bm, blocks.bn, blocks.bk);
        let count = |side: &Side| simplify(&Ix::ceil_div(side.extent.clone(), Ix::Const(side.block as i64)), &facts);
        let (rows, columns, steps) = (count(&m), count(&n), count(&k));
        let batches = simplify(&batch.iter().fold(Ix::Const(1), |n, (_, hi)| Ix::mul(n, hi.clone())), &facts);
        let like = |side: &Side| side.axes.first().map_or(AxisId(0), |a| a.0);
        let (like_m, like_n, like_k) = (like(&m), like(&n), like(&k));
        let x = edit::new_axis(kernel, like_m, "b");
        let y = edit::new_axis(kernel, like_n, "b");
        let z = kernel.axes.push(Axis { name: "batch".into(), from: None });
        let kt = edit::new_axis(kernel, like_k, "t");
        for (axis, n) in [(x, &rows), (y, &columns), (z, &batches), (kt, &steps)] {
            facts.set_axis(axis, &Ix::Const(0), n);
        }
        let grid = [(x, rows), (y, columns), (z, batches)];
        Ok(Tiling { kernel, facts, blocks, m, n, k, batch, grid, kt, steps })
    }

    /// The position of a block's axis, 0 where there is one.
    fn block(&self, d: usize) -> Ix {
        if self.grid[d].1.is_const(1) { Ix::Const(0) } else { Ix::Axis(self.grid[d].0) }
    }

    fn position(&self, d: usize, size: u64, within: AxisId) -> Ix {
        Ix::add(Ix::mul(self.block(d), Ix::Const(size as i64)), Ix::Axis(within))
    }

    /// Fresh axes of a tile: rows and columns, or with a position along the sum.
    fn axis(&mut self, side: &Side, name: &str, size: u64) -> AxisId {
        let from = side.axes.first().and_then(|a| self.kernel.axes.get(a.0)).and_then(|a| a.from.clone());
        let axis = self.kernel.axes.push(Axis { name: name.into(), from });
        self.facts.set_axis(axis, &Ix::Const(0), &Ix::Const(size as i64));
        axis
    }

    fn frame(&self, i: Option<AxisId>, j: Option<AxisId>, kk: Option<AxisId>) -> Frame {
        let mut by = BTreeMap::new();
        let mut conds = vec![];
        let batch = Side { axes: self.batch.clone(), extent: Ix::Const(1), block: 1 };
        batch.split(&self.block(2), &mut by);
        let of = |side: &Side| side.axes.iter().map(|a| a.0).collect::<BTreeSet<_>>();
        let mut put = |side: &Side, position: Ix| {
            side.split(&position, &mut by);
            conds.extend(side.inside(&position).map(|c| (of(side), c)));
        };
        if let Some(i) = i {
            put(&self.m, self.position(0, self.m.block, i));
        }
        if let Some(j) = j {
            put(&self.n, self.position(1, self.n.block, j));
        }
        if let Some(kk) = kk {
            let kt = if self.steps.is_const(1) { Ix::Const(0) } else { Ix::Axis(self.kt) };
            put(&self.k, Ix::add(Ix::mul(kt, Ix::Const(self.k.block as i64)), Ix::Axis(kk)));
        }
        Frame { by, conds, facts: self.facts.clone() }
    }

    fn build(mut self, nest: &OpenNest<'_>) -> Result<Stmt, String> {
        let (bm, bn) = (self.blocks.bm, self.blocks.bn);
        let mut tiles: BTreeMap<BufId, BufId> = BTreeMap::new();
        let mut body = vec![];
        // The machinery of the sums: their accumulators and what these start from.
        let is_of_sum = |s: &Stmt| match s {
            Stmt::Local { buf } | Stmt::Write { buf, .. } => nest.sums.iter().any(|sum| sum.roles.acc == *buf),
            _ => false,
        };
        let around: Vec<&Stmt> = nest.around.iter().copied().filter(|s| !is_of_sum(s)).collect();
        if around.iter().any(|s| matches!(s, Stmt::Local { .. } | Stmt::Write { .. })) {
            return Err("it keeps values of its own".to_string());
        }
        for sum in &nest.sums {
            let acc = sum.roles.acc;
            let start = nest.around.iter().find_map(|s| match s {
                Stmt::Write { buf, value, .. } if *buf == acc => Some(*value),
                _ => None,
            });
            let old = self.kernel.bufs.get(acc).cloned().ok_or("it has no accumulator")?;
            let tile = self.kernel.bufs.push(Buf { shape: vec![bm, bn], ..old });
            tiles.insert(acc, tile);
            let (i, j) = (self.axis(&self.m.clone(), "i", bm), self.axis(&self.n.clone(), "j", bn));
            let value = start.ok_or("its sum starts from nothing")?;
            let init = Stmt::Write { buf: tile, idx: vec![Ix::Axis(i), Ix::Axis(j)], value };
            body.push(Stmt::Local { buf: tile });
            body.push(loops(&[(i, bm), (j, bn)], vec![init]));
        }
        let (mut inner, mut asserted) = (vec![], BTreeSet::new());
        for sum in &nest.sums {
            let tile = tiles.get(&sum.roles.acc).copied().ok_or("it has no accumulator")?;
            self.contraction(sum, &around, tile, &mut asserted, &mut inner)?;
        }
        if self.steps.is_const(1) {
            body.extend(inner);
        } else {
            let mut outer = edit::free_loop(self.kt, self.steps.clone(), inner);
            if let Stmt::For(f) = &mut outer {
                f.kind = LoopKind::Serial;
            }
            body.push(outer);
        }
        // What follows the sums: all that is stored, and the assertions that no operand took along.
        let (i, j) = (self.axis(&self.m.clone(), "i", bm), self.axis(&self.n.clone(), "j", bn));
        let ends = |s: &Stmt| !edit::is_pure(s) && !asserted.contains(&std::ptr::from_ref(s));
        let used: Vec<ValId> = around.iter().filter(|s| ends(s)).flat_map(|s| reads(s)).collect();
        let needed = slice(&around, &used);
        let keep = |s: &Stmt| ends(s) || needed.iter().any(|n| std::ptr::eq(*n, s));
        let mut rest: Vec<Stmt> = around.iter().filter(|s| keep(s)).map(|s| (*s).clone()).collect();
        for s in &mut rest {
            if let Stmt::Read { buf, idx, .. } = s
                && let Some(tile) = tiles.get(buf)
            {
                (*buf, *idx) = (*tile, vec![Ix::Axis(i), Ix::Axis(j)]);
            }
        }
        let frame = self.frame(Some(i), Some(j), None);
        let rest = frame.copy(self.kernel, &rest);
        body.push(nested(&[(i, bm), (j, bn)], rest));
        // The blocks.
        for (d, (axis, count)) in [(0u8, &self.grid[0]), (1, &self.grid[1]), (2, &self.grid[2])].map(|(d, g)| (d, g)) {
            if count.is_const(1) && !(d == 0 && self.grid.iter().all(|g| g.1.is_const(1))) {
                continue;
            }
            let mut s = edit::free_loop(*axis, count.clone(), body);
            if let Stmt::For(f) = &mut s {
                f.place = Place::Block { dim: d };
            }
            body = vec![s];
        }
        body.pop().ok_or("it is empty".to_string())
    }

    /// One contribution to a tile, with operands that are more than a load computed into slabs first.
    fn contraction(
        &mut self,
        sum: &Sum<'_>,
        around: &[&Stmt],
        tile: BufId,
        asserted: &mut BTreeSet<*const Stmt>,
        out: &mut Vec<Stmt>,
    ) -> Result<(), String> {
        let (bm, bn, bk) = (self.blocks.bm, self.blocks.bn, self.blocks.bk);
        let all: Vec<&Stmt> = around.iter().chain(&sum.inside).copied().collect();
        let (m, n) = (self.m.clone(), self.n.clone());
        let (i, j, kk) = (self.axis(&m, "i", bm), self.axis(&n, "j", bn), self.axis(&self.k.clone(), "kk", bk));
        let mut operands: Vec<(Vec<Stmt>, ValId)> = vec![];
        let mut taken: BTreeSet<*const Stmt> = BTreeSet::new();
        for (value, role, left) in [(sum.x, sum.roles.a, true), (sum.y, sum.roles.b, false)] {
            let stmts = slice_asserted(&all, value);
            taken.extend(stmts.iter().map(|s| std::ptr::from_ref(*s)));
            if stmts.iter().any(|s| matches!(s, Stmt::Read { .. })) {
                return Err("an operand needs what the kernel keeps".to_string());
            }
            let side = if left { &m } else { &n };
            let other = if left { &n } else { &m };
            let uses = |side: &Side| {
                stmts.iter().any(|s| walk::refs_of(s).axes_used.iter().any(|a| side.axes.iter().any(|b| b.0 == *a)))
            };
            if uses(other) {
                return Err("an operand depends on both rows and columns".to_string());
            }
            let (own, name) = if left { (i, "i") } else { (j, "j") };
            if is_direct(&stmts) {
                let frame =
                    if left { self.frame(Some(i), None, Some(kk)) } else { self.frame(None, Some(j), Some(kk)) };
                let list: Vec<Stmt> = stmts.iter().map(|s| (*s).clone()).collect();
                let at = list.iter().position(|s| walk::def(s) == Some(role)).ok_or("an operand is not loaded")?;
                let copy = frame.copy(self.kernel, &list);
                let dst = copy.get(at).and_then(walk::def).ok_or("an operand is not loaded")?;
                operands.push((copy, dst));
                continue;
            }
            let Some(Ty::Num(dtype)) = self.kernel.vals.get(value).map(|v| v.ty) else {
                return Err("an operand is an address".to_string());
            };
            // What the assertions among the statements test goes where the operand goes.
            let size = if left { bm } else { bn };
            let (p, q) = (self.axis(side, name, size), self.axis(&self.k.clone(), "kk", bk));
            let shape = if left { vec![size, bk] } else { vec![bk, size] };
            let buf =
                self.kernel.bufs.push(Buf { name: if left { "a" } else { "b" }.into(), ty: Ty::Num(dtype), shape });
            let frame = if left { self.frame(Some(p), None, Some(q)) } else { self.frame(None, Some(p), Some(q)) };
            let mut list: Vec<Stmt> = stmts.iter().map(|s| (*s).clone()).collect();
            self.pad(&frame, value, dtype, &mut list);
            let last = if frame.conds.is_empty() { value } else { list.last().and_then(walk::def).unwrap_or(value) };
            let idx = if left { vec![Ix::Axis(p), Ix::Axis(q)] } else { vec![Ix::Axis(q), Ix::Axis(p)] };
            list.push(Stmt::Write { buf, idx, value: Opnd::Val(last) });
            let copy = frame.copy(self.kernel, &list);
            out.push(Stmt::Local { buf });
            let order = if left { [(p, size), (q, bk)] } else { [(q, bk), (p, size)] };
            out.push(nested(&order, copy));
            let dst = self.kernel.vals.push(Val { ty: Ty::Num(dtype), name: "x".into() });
            let idx = if left { vec![Ix::Axis(own), Ix::Axis(kk)] } else { vec![Ix::Axis(kk), Ix::Axis(own)] };
            operands.push((vec![Stmt::Read { dst, buf, idx }], dst));
        }
        let left_over = |s: &&Stmt| matches!(s, Stmt::Assert { .. }) && !taken.contains(&std::ptr::from_ref(*s));
        if sum.inside.iter().any(|s| left_over(&s)) {
            return Err("its sum holds an assertion that belongs to no operand".to_string());
        }
        asserted.extend(taken);
        // The multiply and the add, of the operands as they are now.
        let mut names: BTreeMap<ValId, ValId> = BTreeMap::new();
        for ((stmts, _), old) in operands.iter().zip([sum.x, sum.y]) {
            names.insert(old, stmts.last().and_then(walk::def).ok_or("an operand is not computed")?);
        }
        let tail: Vec<&Stmt> = sum
            .inside
            .iter()
            .copied()
            .filter(|s| matches!(s, Stmt::Read { buf, .. } | Stmt::Write { buf, .. } if *buf == sum.roles.acc))
            .collect();
        let Some(Stmt::Write { value: Opnd::Val(new), .. }) = tail.last() else {
            return Err("its sum is not written".to_string());
        };
        let mut own = slice(&sum.inside, &[*new]);
        let of_operands = slice(&sum.inside, &[sum.x, sum.y]);
        own.retain(|s| !of_operands.iter().any(|o| std::ptr::eq(*o, *s)));
        let at = vec![Ix::Axis(i), Ix::Axis(j)];
        let mut list: Vec<Stmt> = own.into_iter().chain(tail.last().copied()).cloned().collect();
        for s in &mut list {
            if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                && *buf == sum.roles.acc
            {
                (*buf, *idx) = (tile, at.clone());
            }
        }
        walk::subst_vals(&mut list, &mut |v| names.get(&v).map(|v| Opnd::Val(*v)));
        let list = walk::clone_fresh(self.kernel, &list);
        let [(a_stmts, a), (b_stmts, b)] = &operands[..] else { return Err("it has no two operands".to_string()) };
        let roles = Contraction { m: vec![i], n: vec![j], k: vec![kk], a: *a, b: *b, acc: tile };
        let body = a_stmts.iter().chain(b_stmts).cloned().chain(list).collect();
        let mut reduce = edit::free_loop(kk, Ix::Const(bk as i64), body);
        if let Stmt::For(f) = &mut reduce {
            f.kind = LoopKind::Reduce;
            f.contraction = Some(roles);
        }
        out.push(loops(&[(i, bm), (j, bn)], vec![reduce]));
        Ok(())
    }

    /// Makes an operand 0 outside of its extents: what stands there is no term of the sum.
    fn pad(&mut self, frame: &Frame, value: ValId, dtype: DType, list: &mut Vec<Stmt>) {
        let conds: Vec<Cond> = frame.conds.iter().map(|(_, c)| c.clone()).collect();
        if conds.is_empty() {
            return;
        }
        let on = self.kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "in".into() });
        let name = self.kernel.vals.get(value).map_or(String::new(), |v| v.name.clone());
        let padded = self.kernel.vals.push(Val { ty: Ty::Num(dtype), name });
        list.push(Stmt::Test { dst: on, mask: Mask { conds, vals: vec![] } });
        let args = vec![Opnd::Val(on), Opnd::Val(value), Opnd::Const { dtype, bits: 0 }];
        list.push(Stmt::Let { dst: padded, op: ScalarOp::Select, args });
    }
}

/// Whether an operand's element is one load, perhaps converted, that gives 0 where it is masked off.
fn is_direct(stmts: &[&Stmt]) -> bool {
    let Some((first, rest)) = stmts.split_first() else { return false };
    let zero = |other: &Option<Opnd>| other.is_none_or(|o| matches!(o, Opnd::Const { bits: 0, .. }));
    let load = matches!(first, Stmt::Load { other, mask, .. } if zero(other) && mask.vals.is_empty());
    let converts = |s: &&Stmt| matches!(s, Stmt::Let { op: ScalarOp::FToF { .. } | ScalarOp::ExtI { .. }, .. });
    load && rest.len() <= 1 && rest.iter().all(converts)
}

impl Frame {
    /// The statements under the new axes, defining values of their own; accesses keep inside the extents.
    fn copy(&self, kernel: &mut Kernel, stmts: &[Stmt]) -> Vec<Stmt> {
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
                *ix = simplify(&ix.subst_axes(&mut |a| self.by.get(&a).cloned()), &self.facts);
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
        walk::clone_fresh(kernel, &out)
    }
}

/// A condition that also holds outside of the extents.
fn or_outside(kernel: &mut Kernel, conds: Vec<Cond>, cond: Opnd, out: &mut Vec<Stmt>) -> Opnd {
    let mut fresh = |name: &str| kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: name.into() });
    let (on, off, either) = (fresh("on"), fresh("off"), fresh("inside"));
    let one = Opnd::Const { dtype: DType::I1, bits: 1 };
    out.push(Stmt::Test { dst: on, mask: Mask { conds, vals: vec![] } });
    out.push(Stmt::Let { dst: off, op: ScalarOp::Xor, args: vec![Opnd::Val(on), one] });
    out.push(Stmt::Let { dst: either, op: ScalarOp::Or, args: vec![cond, Opnd::Val(off)] });
    Opnd::Val(either)
}

/// Free loops around a body, outermost first.
fn loops(axes: &[(AxisId, u64)], mut body: Vec<Stmt>) -> Stmt {
    for (axis, n) in axes.iter().rev() {
        body = vec![edit::free_loop(*axis, Ix::Const(*n as i64), body)];
    }
    body.remove(0)
}

/// Two free loops around straight-line statements: what does not depend on the inner one stands between them.
fn nested(axes: &[(AxisId, u64); 2], body: Vec<Stmt>) -> Stmt {
    let [(outer, n), (inner, m)] = *axes;
    let mut varying: BTreeSet<ValId> = BTreeSet::new();
    let (mut between, mut within) = (vec![], vec![]);
    for s in body {
        let facts = walk::refs_of(&s);
        let fixed = !facts.axes_used.contains(&inner) && facts.vals_used.iter().all(|v| !varying.contains(v));
        let reads = matches!(s, Stmt::Read { .. });
        if fixed && edit::is_pure(&s) && !reads || fixed && matches!(s, Stmt::Assert { .. }) {
            between.push(s);
        } else {
            varying.extend(walk::def(&s));
            within.push(s);
        }
    }
    between.push(edit::free_loop(inner, Ix::Const(m as i64), within));
    edit::free_loop(outer, Ix::Const(n as i64), between)
}
