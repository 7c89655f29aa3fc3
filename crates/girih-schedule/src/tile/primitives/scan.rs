//! `scan`: the threads of a block share a scan, in which each element is what all elements up to it come to.
//!
//! ```text
//! local acc = 0.0                                  for u in 0..256: free
//! for k in 0..2048: serial                           for e in 0..8: free
//!   v = x[b, k] + acc                                  line[u, e] = x[b, u*8 + e]
//!   y[b, k] = v                            -->     for u in 0..256: free
//!   acc = v                                          line[u, ..] = its sums from the left; part[u] = the last of them
//!                                                  for g in 0..16: free
//!                                                    part[g, ..] = what stands before each; group[g] = the sum of all
//!                                                  group[..] = acc and what stands before each
//!                                                  for u in 0..256: free
//!                                                    for e in 0..8: free
//!                                                      y[b, u*8 + e] = line[u, e] + part[u] + group[u//16]
//! ```
//!
//! Rows that are longer than the threads' elements go by in stretches, one after the other. Legal where elements are folded by one
//! associative operation, which sums of floats are in models only, and are not read after they were stored. In a tile program the free
//! loops around the scan are its rows.

use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::op::Predicate;
use crate::num::{DType, ScalarOp};
use crate::tile::edit::{self, const_trip};
use crate::tile::primitives::line::replace;
use crate::tile::primitives::split::Pieces;
use crate::tile::primitives::{LoopRef, MOST_BYTES, Names, loop_at};

/// Threads whose folds are folded together.
pub const GROUP: i64 = 16;
pub fn apply(kernel: &mut Kernel, at: LoopRef, threads: u32, each: u32) -> Result<(), String> {
    let seen = kernel.clone();
    let target = loop_at(&seen, at)?;
    let none = "it is not a scan of a row that a block has for itself";
    let (nest, site) = all(&seen).into_iter().find(|(_, site)| std::ptr::eq(site.f, target)).ok_or(none)?;
    let (scan, rows) = site.shared(&seen)?;
    let shares = Shares::of(site.f, &scan, &rows, threads, each)?;
    let read_later = walk::buffer_uses(&seen.body).get(&scan.acc).is_some_and(|u| u.reads > 1 || u.roles > 0);
    let nest = match nest {
        Stmt::For(outer) => Names::of(&seen).name(outer).ok_or(none)?,
        _ => return Err(none.into()),
    };
    let made = Made { kernel, rows, shares, scan }.stmts(site.f, read_later);
    replace(kernel, nest, &mut |_, _| Ok(made.clone()))
}

/// The scans of a kernel, each with the statement that holds its rows.
fn all(kernel: &Kernel) -> Vec<(&Stmt, Site<'_>)> {
    fn within<'a>(kernel: &Kernel, body: &'a [Stmt], out: &mut Vec<(&'a Stmt, Site<'a>)>) {
        for s in body {
            match Site::of(kernel, s) {
                Found::Scan(site) => out.push((s, site)),
                Found::Within => walk::bodies(s).into_iter().for_each(|body| within(kernel, body, out)),
                Found::Nothing => {}
            }
        }
    }
    let mut out = vec![];
    within(kernel, &kernel.body, &mut out);
    out
}

/// A loop that scans, with the free loops of a tile program around it.
pub struct Site<'a> {
    pub f: &'a For,
    chain: Vec<&'a For>,
    before: &'a [Stmt],
    after: &'a [Stmt],
}

enum Found<'a> {
    Scan(Site<'a>),
    Within,
    Nothing,
}

impl<'a> Site<'a> {
    /// The scan of a statement, or where to look for one.
    fn of(kernel: &Kernel, s: &'a Stmt) -> Found<'a> {
        let Stmt::For(f) = s else { return Found::Within };
        let (chain, at) = match (f.kind, f.place) {
            (LoopKind::Serial, Place::None) => (vec![], 0),
            (LoopKind::Free, Place::None) if !kernel.open => {
                let chain = edit::free_chain(f);
                let inner = chain.last().map_or(&[][..], |f| &f.body[..]);
                match inner.iter().position(|s| scanned(kernel, s).is_some()) {
                    Some(at) => (chain, at),
                    None => return Found::Nothing,
                }
            }
            (LoopKind::Free, Place::Block { .. }) | (LoopKind::Serial, _) => return Found::Within,
            _ => return Found::Nothing,
        };
        let body = chain.last().map_or(std::slice::from_ref(s), |f| &f.body[..]);
        match scanned(kernel, &body[at]) {
            Some((f, _)) => Found::Scan(Site { f, chain, before: &body[..at], after: &body[at + 1..] }),
            None => Found::Within,
        }
    }

    /// The scan and its rows, or why threads cannot share them.
    fn shared(&self, kernel: &Kernel) -> Result<(Scan<'a>, Rows<'a>), String> {
        let scan = scan_of(kernel, self.f).ok_or("it is not a scan")??;
        let rows = Rows::of(kernel, &self.chain, self.before, self.after, &scan)?;
        Ok((scan, rows))
    }
}

/// The facts that decide how threads share a scan.
pub struct Shared {
    pub dtype: DType,
    pub rows: u64,
}

/// The loops that scan, and what threads would share of each, or why they cannot.
pub fn sites(p: &Kernel) -> Vec<(&For, Result<Shared, String>)> {
    let shared = |site: &Site<'_>| site.shared(p).map(|(scan, rows)| Shared { dtype: scan.dtype, rows: rows.count });
    all(p).into_iter().map(|(_, site)| (site.f, shared(&site))).collect()
}

/// A scan, as its loop states it.
struct Scan<'a> {
    /// The statements that compute an element.
    head: Vec<&'a Stmt>,
    element: Opnd,
    op: ScalarOp,
    /// True if the fold so far is the operation's first operand.
    first: bool,
    dtype: DType,
    neutral: u64,
    acc: BufId,
    /// The fold starts from the first element, whatever the accumulator holds.
    from_element: bool,
    /// The statements that use the fold up to an element, or up to the one before it, by its name there.
    tail: Vec<&'a Stmt>,
    result: ValId,
    exclusive: bool,
    /// The elements that it reads and then writes anew.
    in_place: Vec<&'a [Ix]>,
}

/// A loop that folds into a scalar and uses what it has come to at each element; and whether threads can share it.
pub fn scanned<'a>(kernel: &Kernel, s: &'a Stmt) -> Option<(&'a For, Result<DType, &'static str>)> {
    let Stmt::For(f) = s else { return None };
    Some((f, scan_of(kernel, f)?.map(|scan| scan.dtype)))
}

fn scan_of<'a>(kernel: &Kernel, f: &'a For) -> Option<Result<Scan<'a>, &'static str>> {
    let plain = f.kind == LoopKind::Serial && f.place == Place::None && f.combine.is_none() && f.stream.is_none();
    let counts = f.counts_from_zero();
    if !plain || !counts || f.contraction.is_some() || f.body.iter().any(|s| !walk::bodies(s).is_empty()) {
        return None;
    }
    let scalar = |buf: &BufId| kernel.bufs[*buf].shape.is_empty();
    let mut carried = f.body.iter().filter_map(|s| match s {
        Stmt::Write { buf, value: Opnd::Val(v), .. } if scalar(buf) => Some((*buf, *v)),
        _ => None,
    });
    let (Some((acc, kept)), None) = (carried.next(), carried.next()) else { return None };
    let mut reads = f.body.iter().filter_map(|s| match s {
        Stmt::Read { dst, buf, .. } if *buf == acc => Some(*dst),
        _ => None,
    });
    let (Some(old), None) = (reads.next(), reads.next()) else { return None };
    Some(Scan::of(kernel, f, acc, old, kept))
}

impl<'a> Scan<'a> {
    fn of(kernel: &Kernel, f: &'a For, acc: BufId, old: ValId, kept: ValId) -> Result<Scan<'a>, &'static str> {
        const OTHER: &str = "what it folds by is not one associative operation";
        let defined = |v: &Opnd| match v {
            Opnd::Val(v) => f.body.iter().find_map(|s| match s {
                Stmt::Let { dst, op, args } if dst == v => Some((*op, &args[..])),
                _ => None,
            }),
            _ => None,
        };
        let counted = |v: &Opnd| {
            let own =
                |s: &Stmt| matches!(s, Stmt::Index { dst, ix } if *v == Opnd::Val(*dst) && *ix == Ix::Axis(f.axis));
            f.body.iter().any(own)
        };
        let (mut fold, mut starts) = (Opnd::Val(kept), None);
        if let Some((ScalarOp::Select, [is_first, element, folded])) = defined(&fold) {
            let zero = match defined(is_first) {
                Some((ScalarOp::CmpI { pred: Predicate::Equal, .. }, [n, Opnd::Const { bits: 0, .. }])) => counted(n),
                _ => false,
            };
            if !zero {
                return Err(OTHER);
            }
            (fold, starts) = (*folded, Some(*element));
        }
        let Some((op, [a, b])) = defined(&fold) else { return Err(OTHER) };
        let first = *a == Opnd::Val(old);
        let element = if first { *b } else { *a };
        let both = [*a, *b].iter().filter(|o| **o == Opnd::Val(old)).count();
        let flushes = matches!(op, ScalarOp::AddF { ftz: true, .. } | ScalarOp::MulF { ftz: true, .. })
            || matches!(op, ScalarOp::MaxF { ftz: true, .. } | ScalarOp::MinF { ftz: true, .. });
        let Ty::Num(dtype) = kernel.bufs[acc].ty else { return Err(OTHER) };
        let neutral = op.neutral(dtype).filter(|_| both == 1 && dtype.bits() >= 8).ok_or(OTHER)?;
        if starts.is_some_and(|s| s != element || flushes) {
            return Err(OTHER);
        }
        // Statements that use the fold come after it, and all others before.
        let of_fold = |v: ValId| v == kept || Opnd::Val(v) == fold;
        let (mut head, mut tail, mut late) = (vec![], vec![], vec![kept, old]);
        let (mut uses_result, mut uses_old) = (false, false);
        for s in &f.body {
            let makes = walk::def(s);
            let own = makes.is_some_and(|v| of_fold(v) || v == old);
            if own || matches!(s, Stmt::Write { buf, .. } if *buf == acc) {
                continue;
            }
            let used = walk::refs_of(s).vals_used;
            if used.iter().any(|v| Opnd::Val(*v) == fold && *v != kept) {
                return Err("it uses a fold that it does not keep");
            }
            uses_result |= used.contains(&kept);
            uses_old |= used.contains(&old);
            if edit::is_pure(s) && !used.iter().any(|v| late.contains(v)) {
                head.push(s);
            } else if edit::is_pure(s) || matches!(s, Stmt::Write { .. } | Stmt::Store { order: Order::Weak, .. }) {
                late.extend(makes);
                tail.push(s);
            } else {
                return Err("it holds more than loads, arithmetic and stores");
            }
        }
        if matches!(element, Opnd::Val(v) if late.contains(&v)) {
            return Err(OTHER);
        }
        if dtype.is_float() && !kernel.open && starts.is_none() {
            return Err("the program states the order of its floats");
        }
        if uses_result && uses_old {
            return Err("it uses the fold up to an element and the one before it");
        }
        if !uses_result && !uses_old {
            return Err("it uses the fold of all elements alone");
        }
        // Elements are read before any of them is stored.
        let effects = walk::effects(&f.body);
        let stored = effects.stores.is_empty() || kernel.open && effects.loads.is_disjoint(&effects.stores);
        let mut in_place = vec![];
        for buf in effects.bufs_written.intersection(&effects.bufs_read).filter(|buf| **buf != acc) {
            in_place.push(updated(&f.body, *buf).filter(|idx| are_apart(idx, &[f.axis])).ok_or(STORED)?);
        }
        if !stored {
            return Err(STORED);
        }
        let result = if uses_old { old } else { kept };
        Ok(Scan {
            head,
            element,
            op,
            first,
            dtype,
            neutral,
            acc,
            from_element: starts.is_some(),
            tail,
            result,
            exclusive: uses_old,
            in_place,
        })
    }
}

const STORED: &str = "it may read what it has stored";

/// The element of a buffer that statements read and then write, if it is the only one that they touch.
fn updated(body: &[Stmt], of: BufId) -> Option<&[Ix]> {
    let mut accesses = body.iter().filter_map(|s| match s {
        Stmt::Read { buf, idx, .. } if *buf == of => Some((false, &idx[..])),
        Stmt::Write { buf, idx, .. } if *buf == of => Some((true, &idx[..])),
        _ => None,
    });
    let (mut written, idx) = accesses.next()?;
    let in_order = accesses.all(|(writes, at)| at == idx && writes >= std::mem::replace(&mut written, writes));
    in_order.then_some(idx)
}

/// Returns true if these subscripts name another element for each place of the loops over `axes`.
fn are_apart(idx: &[Ix], axes: &[AxisId]) -> bool {
    let moves = |ix: &Ix, axis| ix.linear(axis).is_some_and(|(by, _)| by.as_const().is_some_and(|by| by != 0));
    axes.iter().all(|a| idx.iter().any(|ix| moves(ix, *a) && axes.iter().all(|b| a == b || !ix.has_axis(*b))))
}

/// The rows of a tile program's block, each of which is scanned: loops around the scan, and what else is done in a row.
struct Rows<'a> {
    free: Vec<&'a For>,
    extents: Vec<u64>,
    count: u64,
    /// Values that what is done in a row may use.
    values: Vec<&'a Stmt>,
    /// What the accumulator holds at first.
    start: Option<Opnd>,
    after: &'a [Stmt],
}

impl<'a> Rows<'a> {
    fn of(
        kernel: &Kernel,
        free: &[&'a For],
        before: &'a [Stmt],
        after: &'a [Stmt],
        scan: &Scan<'_>,
    ) -> Result<Rows<'a>, &'static str> {
        let (mut values, mut start, mut count) = (vec![], None, 1u64);
        let mut extents = vec![];
        if free.is_empty() {
            return Ok(Rows { free: vec![], extents, count, values, start, after: &[] });
        }
        for f in free {
            let n = const_trip(f).ok_or("how many rows there are is not known")?;
            count = count.saturating_mul(n);
            extents.push(n);
        }
        let axes: Vec<AxisId> = free.iter().map(|f| f.axis).collect();
        if !scan.in_place.iter().all(|idx| are_apart(idx, &axes)) {
            return Err(STORED);
        }
        let stored = walk::effects(&free[0].body);
        for s in before {
            match s {
                Stmt::Local { buf } if *buf == scan.acc => {}
                Stmt::Write { buf, value, .. } if *buf == scan.acc => start = Some(*value),
                Stmt::Load { .. } if !stored.stores.is_empty() => return Err("a row's values may be stored anew"),
                Stmt::Read { buf, .. } if stored.bufs_written.contains(buf) => {
                    return Err("a row's values may be written anew");
                }
                s if edit::is_pure(s) => values.push(s),
                _ => return Err("more is done in a row"),
            }
        }
        if scan.from_element {
            start = Some(Opnd::Const { dtype: scan.dtype, bits: scan.neutral });
        }
        let uses = walk::buffer_uses(after);
        let scalar = |buf: &BufId| kernel.bufs[*buf].shape.is_empty();
        let declared = walk::refs(after).bufs_defined;
        if start.is_none() || uses.keys().any(|b| *b == scan.acc || scalar(b) && !declared.contains(b)) {
            return Err("more is done in a row");
        }
        Ok(Rows { free: free.to_vec(), extents, count, values, start, after })
    }
}

/// Which threads have which elements.
struct Shares {
    threads: i64,
    /// Elements of a thread in a stretch.
    each: i64,
    /// The stretches.
    pieces: Pieces,
}

impl Shares {
    fn of(f: &For, scan: &Scan<'_>, rows: &Rows<'_>, threads: u32, each: u32) -> Result<Shares, String> {
        if i64::from(threads) % GROUP != 0 {
            return Err(format!("{threads} threads are not groups of {GROUP}"));
        }
        let stretch = i64::from(threads) * i64::from(each);
        let bytes = rows.count.saturating_mul(stretch as u64).saturating_mul(scan.dtype.bytes());
        if bytes > MOST_BYTES {
            return Err(format!("its stretches would have {bytes} bytes; {MOST_BYTES} are the most"));
        }
        Ok(Shares { threads: threads.into(), each: each.into(), pieces: Pieces::of(f, stretch) })
    }
}

/// What a scan becomes.
struct Made<'a, 'k> {
    kernel: &'k mut Kernel,
    rows: Rows<'a>,
    shares: Shares,
    scan: Scan<'a>,
}

impl Made<'_, '_> {
    fn stmts(mut self, f: &For, read_later: bool) -> Vec<Stmt> {
        let (threads, each, group) = (self.shares.threads, self.shares.each, GROUP);
        let (dtype, neutral) = (self.scan.dtype, self.scan.neutral);
        let line = self.buffer("line", &[threads, each]);
        let part = self.buffer("part", &[threads / group, group]);
        let groups = self.buffer("group", &[threads / group]);
        let carry = self.buffer("carry", &[1]);
        let nothing = Opnd::Const { dtype, bits: neutral };
        let mut out: Vec<Stmt> = [line, part, groups, carry].map(|buf| Stmt::Local { buf }).into();
        // What the fold starts from.
        let start = self.rows.start;
        let acc = self.scan.acc;
        let from_element = self.scan.from_element;
        out.push(self.nest(&[1], |made, row, _| {
            let (mut body, value) = match start {
                Some(value) => (vec![], value),
                None if from_element => (vec![], nothing),
                None => made.read(acc, vec![]),
            };
            body.push(Stmt::Write { buf: carry, idx: at(row, &[Ix::Const(0)]), value });
            body
        }));
        let c = self.axis("c");
        let stretches = self.shares.pieces.count(&self.kernel.facts());
        let several = !stretches.is_const(1);
        let base = if several { self.shares.pieces.start(c) } else { Ix::Const(0) };
        let place = |u: &Ix, e: &Ix| Ix::add(base.clone(), Ix::add(Ix::mul(u.clone(), Ix::Const(each)), e.clone()));
        let mut body = vec![];
        body.push(self.nest(&[threads, each], |made, row, own| {
            let [u, e] = own else { return vec![] };
            let mut head: Vec<Stmt> = made.scan.head.iter().map(|s| (*s).clone()).collect();
            let idx = at(row, &[u.clone(), e.clone()]);
            head.push(Stmt::Write { buf: line, idx: idx.clone(), value: made.scan.element });
            walk::subst_axis(&mut head, f.axis, &place(u, e));
            let none = vec![Stmt::Write { buf: line, idx, value: nothing }];
            made.inside(place(u, e), head, none)
        }));
        // Each thread its own elements, the groups what their threads have, one thread what the groups have.
        let exclusive = self.scan.exclusive;
        body.push(self.nest(&[threads], |made, row, own| {
            let u = &own[0];
            let to = at(row, &[Ix::floor_div(u.clone(), Ix::Const(group)), Ix::modulo(u.clone(), Ix::Const(group))]);
            made.folds(nothing, each, exclusive, &|e| (line, at(row, &[u.clone(), e])), (part, to))
        }));
        body.push(self.nest(&[threads / group], |made, row, own| {
            let g = &own[0];
            let to = at(row, std::slice::from_ref(g));
            made.folds(nothing, group, true, &|j| (part, at(row, &[g.clone(), j])), (groups, to))
        }));
        body.push(self.nest(&[1], |made, row, _| {
            let to = at(row, &[Ix::Const(0)]);
            let (mut body, start) = made.read(carry, to.clone());
            body.extend(made.folds(start, threads / group, true, &|g| (groups, at(row, &[g])), (carry, to)));
            body
        }));
        body.push(self.nest(&[threads, each], |made, row, own| {
            let [u, e] = own else { return vec![] };
            let g = Ix::floor_div(u.clone(), Ix::Const(group));
            let (mut done, before) = made.read(groups, at(row, std::slice::from_ref(&g)));
            let (s, of_group) = made.read(part, at(row, &[g, Ix::modulo(u.clone(), Ix::Const(group))]));
            done.extend(s);
            let (s, own) = made.read(line, at(row, &[u.clone(), e.clone()]));
            done.extend(s);
            let (s, before) = made.folded(of_group, before);
            done.extend(s);
            let (s, total) = made.folded(own, before);
            done.extend(s);
            done.push(edit::copy_of(made.scan.result, total));
            let both = made.scan.head.iter().chain(&made.scan.tail);
            done.extend(both.map(|s| (*s).clone()));
            edit::drop_unused(&mut done);
            walk::subst_axis(&mut done, f.axis, &place(u, e));
            made.inside(place(u, e), done, vec![])
        }));
        match several {
            true => out.push(edit::loop_with(c, stretches, body, |f| f.kind = LoopKind::Serial)),
            false => out.extend(body),
        }
        if !self.rows.after.is_empty() {
            out.push(self.nest(&[], |made, _, _| made.rows.after.to_vec()));
        } else if self.rows.free.is_empty() && read_later {
            let (s, total) = self.read(carry, vec![Ix::Const(0)]);
            out.extend(s);
            out.push(Stmt::Write { buf: acc, idx: vec![], value: total });
        }
        out
    }

    /// A buffer with so many elements for each row.
    fn buffer(&mut self, name: &str, shape: &[i64]) -> BufId {
        let rows = self.rows.extents.iter().copied();
        let shape = rows.chain(shape.iter().map(|n| *n as u64)).collect();
        self.kernel.bufs.push(Buf::new(name, Ty::Num(self.scan.dtype), shape))
    }

    fn axis(&mut self, name: &str) -> AxisId {
        self.kernel.axes.push(Axis { name: name.into(), from: None })
    }

    fn value(&mut self, name: &str) -> ValId {
        self.kernel.vals.push(Val { ty: Ty::Num(self.scan.dtype), name: name.into() })
    }

    fn read(&mut self, buf: BufId, idx: Vec<Ix>) -> (Vec<Stmt>, Opnd) {
        let name = self.kernel.bufs[buf].name.clone();
        let dst = self.value(&name);
        (vec![Stmt::Read { dst, buf, idx }], Opnd::Val(dst))
    }

    /// An element or a fold combined with the fold of what stands before it.
    fn folded(&mut self, own: Opnd, before: Opnd) -> (Vec<Stmt>, Opnd) {
        let dst = self.value("v");
        let args = if self.scan.first { vec![before, own] } else { vec![own, before] };
        (vec![Stmt::Let { dst, op: self.scan.op, args }], Opnd::Val(dst))
    }

    /// Folds `count` elements one after the other, leaves the fold up to each, or up to the one before it, in their place, and that of
    /// all of them in another one.
    fn folds(
        &mut self,
        start: Opnd,
        count: i64,
        exclusive: bool,
        from: &dyn Fn(Ix) -> (BufId, Vec<Ix>),
        to: (BufId, Vec<Ix>),
    ) -> Vec<Stmt> {
        let fold = self.kernel.bufs.push(Buf::new("fold", Ty::Num(self.scan.dtype), vec![]));
        let j = self.axis("j");
        let (buf, idx) = from(Ix::Axis(j));
        let (mut body, own) = self.read(buf, idx.clone());
        let (s, before) = self.read(fold, vec![]);
        body.extend(s);
        let (s, total) = self.folded(own, before);
        body.extend(s);
        body.push(Stmt::Write { buf, idx, value: if exclusive { before } else { total } });
        body.push(Stmt::Write { buf: fold, idx: vec![], value: total });
        let over = edit::loop_with(j, Ix::Const(count), body, |f| f.kind = LoopKind::Serial);
        let mut out = vec![Stmt::Local { buf: fold }, Stmt::Write { buf: fold, idx: vec![], value: start }, over];
        let (s, total) = self.read(fold, vec![]);
        out.extend(s);
        let (buf, idx) = to;
        out.push(Stmt::Write { buf, idx, value: total });
        out
    }

    /// `then` where there is such an element.
    fn inside(&mut self, place: Ix, then: Vec<Stmt>, els: Vec<Stmt>) -> Vec<Stmt> {
        match self.shares.pieces.exists(place) {
            None => then,
            Some(exists) => edit::when(self.kernel, "inside", Mask { conds: vec![exists], vals: vec![] }, then, els),
        }
    }

    /// A nest over the rows and loops of these extents, with names of its own for all that it makes.
    fn nest(&mut self, extents: &[i64], body: impl FnOnce(&mut Self, &[Ix], &[Ix]) -> Vec<Stmt>) -> Stmt {
        let mut loops: Vec<(AxisId, i64)> = vec![];
        for (n, extent) in self.rows.extents.clone().into_iter().enumerate() {
            let axis = edit::new_axis(self.kernel, self.rows.free[n].axis, "");
            loops.push((axis, extent as i64));
        }
        let names = if extents.len() > 1 { ["u", "e"] } else { ["t", ""] };
        for (name, extent) in names.iter().zip(extents) {
            loops.push((self.axis(name), *extent));
        }
        let ixs: Vec<Ix> = loops.iter().map(|(a, _)| Ix::Axis(*a)).collect();
        let (row, own) = ixs.split_at(self.rows.extents.len());
        let mut done: Vec<Stmt> = self.rows.values.iter().map(|s| (*s).clone()).collect();
        done.extend(body(self, row, own));
        edit::drop_unused(&mut done);
        let places: Vec<(AxisId, Ix)> = self.rows.free.iter().map(|f| f.axis).zip(row.iter().cloned()).collect();
        walk::subst_axes(&mut done, &mut |a| places.iter().find(|(of, _)| *of == a).map(|(_, ix)| ix.clone()));
        let mut facts = self.kernel.facts();
        for (axis, extent) in &loops {
            facts.set_axis(*axis, &Ix::Const(0), &Ix::Const(*extent));
        }
        walk::map_ixs(&mut done, &mut |ix| *ix = simplify(ix, &facts));
        let mut done = walk::clone_fresh(self.kernel, &done);
        for (axis, extent) in loops.into_iter().rev() {
            done = vec![edit::free_loop(axis, Ix::Const(extent), done)];
        }
        done.remove(0)
    }
}

fn at(row: &[Ix], own: &[Ix]) -> Vec<Ix> {
    row.iter().chain(own).cloned().collect()
}
