//! `cooperative_scan`

use crate::base::rule::{Log, Rule};
use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::op::Predicate;
use crate::num::{DType, ScalarOp};
use crate::tile::Context;
use crate::tile::contraction::prev_power;
use crate::tile::cost::{self, Scans};
use crate::tile::edit::{self, Visit, const_trip};
use crate::tile::heuristics::cooperative_scan::{GUESS, SHORTEST, STRETCH};
use crate::tile::primitives::{Script, Step};
use crate::tile::rows;
use crate::tile::rules::axis_site;
use crate::tile::tile_nest::check_bounds;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "cooperative_scan",
    doc: "\
Gives a scan, in which each element is what all elements up to it come to, to all threads of a block. They bring a stretch of the row
to shared memory; each folds a few neighbours; what they have is folded in groups, and what the groups have by one thread; then every
element is combined with what stands before it. In an open kernel each row gets a block for that.

```text
for i in 0..64: free                             for b in 0..64: free block(x)
  local acc = 0.0                                  local acc = 0.0
  for k in 0..2048: serial                         for u in 0..256: free
    v = x[i, k] + acc                                for e in 0..8: free
    y[i, k] = v                           -->          line[u, e] = x[b, u*8 + e]
    acc = v                                        for u in 0..256: free
                                                     line[u, ..] = its sums from the left; part[u] = the last of them
                                                   for g in 0..16: free
                                                     part[g, ..] = what stands before each; group[g] = the sum of all
                                                   group[..] = acc and what stands before each
                                                   for u in 0..256: free
                                                     for e in 0..8: free
                                                       y[b, u*8 + e] = line[u, e] + part[u] + group[u//16]
```

Rows that are too long for shared memory go by in stretches, one after the other. Sums of floats are added in another order than the
program's, always in the same one. Rows stay with one thread each where there are so many of them that this takes less, by the
target's numbers.

Knob: `scan` (0 turns the rule off), `threads` (256).

Refuses short rows, blocks that have many rows, folds that are not associative, and what else is done with both the fold up to an
element and the one before it.
",
    run,
};

/// Threads whose folds are folded together.
const GROUP: i64 = 16;

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    if !ctx.knobs.scan {
        return None;
    }
    let rows = p.open.then(|| rows_to_blocks(p, ctx, log)).flatten();
    let uses = walk::buffer_uses(&p.body);
    let read_later = |acc: BufId| uses.get(&acc).is_some_and(|u| u.reads > 1 || u.roles > 0);
    let out = edit::rewrite(rows.as_ref().unwrap_or(p), &mut |kernel, s| {
        let Stmt::For(f) = s else { return Visit::Into };
        let (chain, at) = match (f.kind, f.place) {
            (LoopKind::Serial, Place::None) => (vec![], 0),
            (LoopKind::Free, Place::None) if !kernel.open => {
                let chain = edit::free_chain(f);
                let inner = chain.last().map_or(&[][..], |f| &f.body[..]);
                match inner.iter().position(|s| scanned(kernel, s).is_some()) {
                    Some(at) => (chain, at),
                    None => return Visit::Leave,
                }
            }
            (LoopKind::Free, Place::Block { .. }) | (LoopKind::Serial, _) => return Visit::Into,
            _ => return Visit::Leave,
        };
        let body = chain.last().map_or(std::slice::from_ref(s), |f| &f.body[..]);
        let Some((f, scan)) = scanned(kernel, &body[at]) else { return Visit::Into };
        let site = axis_site(kernel, f.axis);
        let shared = scan.and_then(|scan| {
            let rows = Rows::of(kernel, &chain, &body[..at], &body[at + 1..], &scan)?;
            let shares = Shares::of(ctx, f, &scan, rows.count)?;
            Ok((scan, rows, shares))
        });
        match shared {
            Ok((scan, rows, shares)) => {
                log.applied(format!("{site}: {}", shares.text()));
                let later = read_later(scan.acc);
                Visit::Replace(Made { kernel, rows, shares, scan }.stmts(f, later))
            }
            Err(why) => {
                log.skipped(site, why);
                Visit::Leave
            }
        }
    });
    if out.is_some() {
        // It is more than its rows' primitives.
        log.steps.clear();
    }
    out.or(rows)
}

/// A scan, as its loop states it.
struct Scan<'a> {
    /// What makes an element.
    head: Vec<&'a Stmt>,
    element: Opnd,
    op: ScalarOp,
    /// Whether the fold so far is the operation's first operand.
    first: bool,
    dtype: DType,
    neutral: u64,
    acc: BufId,
    /// The fold starts from the first element, whatever the accumulator holds.
    from_element: bool,
    /// What is done with the fold up to an element, or up to the one before it, by the name it has there.
    tail: Vec<&'a Stmt>,
    result: ValId,
    exclusive: bool,
    /// The elements that it reads and then writes anew.
    in_place: Vec<&'a [Ix]>,
}

/// A loop that folds into a scalar and uses what it has come to at each element, or why it is not shared.
fn scanned<'a>(kernel: &Kernel, s: &'a Stmt) -> Option<(&'a For, Result<Scan<'a>, &'static str>)> {
    let Stmt::For(f) = s else { return None };
    let plain = f.kind == LoopKind::Serial && f.place == Place::None && f.combine.is_none() && f.stream.is_none();
    let counts = f.lo.is_const(0) && f.step.is_const(1);
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
    Some((f, Scan::of(kernel, f, acc, old, kept)))
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
        // What uses the fold comes after it, and all else before.
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

/// Returns true if the threads of a block can share a loop: it is a scan of a row that is long enough.
pub fn is_shared(kernel: &Kernel, s: &Stmt) -> bool {
    matches!(scanned(kernel, s), Some((f, Ok(_))) if f.hi.as_const().is_none_or(|n| n >= SHORTEST))
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
    group: i64,
    /// Whether the last stretch is full.
    even: bool,
    stretches: Ix,
}

impl Shares {
    fn of(ctx: &Context, f: &For, scan: &Scan<'_>, rows: u64) -> Result<Shares, &'static str> {
        let known = f.hi.as_const();
        if known.is_some_and(|n| n < SHORTEST) {
            return Err("it is shorter than two warps");
        }
        let most = u64::from(prev_power(ctx.knobs.threads));
        let length = known.map_or(GUESS, |n| n as u64);
        let useful = length.div_ceil(4).next_power_of_two().max(GROUP as u64);
        let threads = useful.min(most / rows.next_power_of_two());
        if threads < GROUP as u64 {
            return Err("its rows have threads enough, one each");
        }
        let room = STRETCH / (scan.dtype.bytes() * rows * threads);
        if room == 0 {
            return Err("its rows do not fit shared memory");
        }
        let stretches = length.div_ceil(room * threads).max(1);
        let each = length.div_ceil(stretches).div_ceil(threads);
        // Four elements are moved at once.
        let each = if each > 4 { each.next_multiple_of(4) } else { each }.min(room).max(1) as i64;
        let threads = threads as i64;
        let stretch = threads * each;
        let stretches = match known {
            Some(n) => Ix::Const((n + stretch - 1) / stretch),
            None => Ix::ceil_div(f.hi.clone(), Ix::Const(stretch)),
        };
        let even = known.is_some_and(|n| n % stretch == 0);
        Ok(Shares { threads, each, group: GROUP, even, stretches })
    }

    fn text(&self) -> String {
        let Shares { threads, each, .. } = self;
        match self.stretches.as_const() {
            Some(1) => format!("{threads} threads with {each} elements each"),
            Some(n) => format!("{threads} threads with {each} elements each, {n} times"),
            None => format!("{threads} threads with {each} elements each at a time"),
        }
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
        let (threads, each, group) = (self.shares.threads, self.shares.each, self.shares.group);
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
        let several = !self.shares.stretches.is_const(1);
        let base = if several { Ix::mul(Ix::Axis(c), Ix::Const(threads * each)) } else { Ix::Const(0) };
        let place = |u: &Ix, e: &Ix| Ix::add(base.clone(), Ix::add(Ix::mul(u.clone(), Ix::Const(each)), e.clone()));
        let mut body = vec![];
        body.push(self.nest(&[threads, each], |made, row, own| {
            let [u, e] = own else { return vec![] };
            let mut head: Vec<Stmt> = made.scan.head.iter().map(|s| (*s).clone()).collect();
            let idx = at(row, &[u.clone(), e.clone()]);
            head.push(Stmt::Write { buf: line, idx: idx.clone(), value: made.scan.element });
            walk::subst_axes(&mut head, &mut |a| (a == f.axis).then(|| place(u, e)));
            let none = vec![Stmt::Write { buf: line, idx, value: nothing }];
            made.inside(f, place(u, e), head, none)
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
            walk::subst_axes(&mut done, &mut |a| (a == f.axis).then(|| place(u, e)));
            made.inside(f, place(u, e), done, vec![])
        }));
        match several {
            true => {
                let stretches = self.shares.stretches.clone();
                out.push(edit::loop_with(c, stretches, body, |f| f.kind = LoopKind::Serial));
            }
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
    fn inside(&mut self, f: &For, place: Ix, then: Vec<Stmt>, els: Vec<Stmt>) -> Vec<Stmt> {
        if self.shares.even {
            return then;
        }
        let exists = Cond::new(place, Cmp::Lt, f.hi.clone());
        edit::when(self.kernel, "inside", Mask { conds: vec![exists], vals: vec![] }, then, els)
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

/// Gives each row of the nests of free loops around a scan a block, where that takes less than a thread for each row.
fn rows_to_blocks(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let shares = |s: &Stmt| {
        let (f, scan) = scanned(p, s)?;
        Shares::of(ctx, f, &scan.ok()?, 1).ok().map(|shares| (f.clone(), shares))
    };
    let mut script = Script::new(p, ctx, log);
    if let Some((f, _)) = p.body.iter().find_map(&shares) {
        script.log.applied(format!("{}, one block", axis_site(p, f.axis)));
        script.step(Step::Enclose { loops: vec![], name: "b".into() }).ok()?;
        return script.done();
    }
    rows::to_blocks(&mut script, p, &mut |chain, body, log| {
        let Some((scan, shares)) = body.iter().find_map(&shares).filter(|_| check_bounds(chain).is_ok()) else {
            return false;
        };
        let site = axis_site(p, chain[0].axis);
        if let Err(why) = pays(ctx, chain, &scan, &shares) {
            log.skipped(site, why);
            return false;
        }
        log.applied(format!("{site}, a block each"));
        true
    });
    script.done()
}

/// Whether a block for each row takes less than a thread for each.
fn pays(ctx: &Context, chain: &[&For], scan: &For, shares: &Shares) -> Result<(), String> {
    let known = chain.iter().try_fold(1u64, |n, f| n.checked_mul(const_trip(f)?));
    let beside = |s: &Stmt, axis: AxisId| {
        let mem = match s {
            Stmt::Load { mem, .. } | Stmt::Store { mem, .. } => mem,
            _ => return None,
        };
        let apart = mem.index.linear(axis).map(|(by, _)| by);
        let bytes = mem.elem.bytes().max(1) as f64;
        Some(match apart.and_then(|by| by.as_const()) {
            Some(-1..=1) => bytes,
            _ => bytes.max(cost::SECTOR),
        })
    };
    let moved = |axis: AxisId| scan.body.iter().filter_map(|s| beside(s, axis)).sum::<f64>();
    let scans = Scans {
        rows: known.unwrap_or(GUESS),
        length: const_trip(scan).unwrap_or(GUESS),
        threads: shares.threads as u64,
        each: shares.each as u64,
        alone: chain.last().map_or(0.0, |f| moved(f.axis)),
        shared: moved(scan.axis),
    };
    match scans.seconds(&ctx.target) {
        Some([alone, shared]) if alone <= shared => {
            Err(format!("a thread for each of its rows takes {}, a block {}", cost::time(alone), cost::time(shared)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, text};

    const ROWS: &str = r#"loop kernel k(x: ptr f32, y: ptr f32) open:
  for i in 0..64: free
    local acc: f32
    acc = 0.0
    for k in 0..2048: serial
      v: f32 = load x[i*2048 + k]
      a: f32 = acc
      b: f32 = v + a
      store y[i*2048 + k] = b
      acc = b
"#;

    /// What a tile program's block does: rows of integers, from the end.
    const TILE: &str = r#"loop kernel k(x: ptr i32, y: ptr i32):
  local sums: i32[2, 512]
  for i in 0..2: free
    local s: i32
    s = 0
    for k in 0..512: serial
      v: i32 = load x[bx*1024 + i*512 - k + 511]
      a: i32 = s
      b: i32 = a + v
      s = b
      sums[i, 511 - k] = b
    for j in 0..512: free
      t: i32 = sums[i, j]
      store y[bx*1024 + i*512 + j] = t
"#;

    #[test]
    fn threads_share_a_row() {
        let (out, log) = apply("cooperative_scan", &kernel(ROWS), &gpu(&[]));
        assert_eq!(log.applied, ["loop i, a block each", "loop k: 256 threads with 8 elements each"]);
        let made = text(&out);
        for part in [
            "for b in 0..64: free block(x)\n",
            "local line: f32[256, 8]\n",
            "local part: f32[16, 16]\n",
            "v: f32 = load x[b*2048 + u*8 + e]\n",
            "for j in 0..8: serial\n",
            "for j_1 in 0..16: serial\n",
            "store y[b*2048 + u_1*8 + e_1] = ",
        ] {
            assert!(made.contains(part), "{part}\n{made}");
        }
        // No element lies beyond the row, so none is tested for that.
        assert!(!made.contains("if "), "{made}");
    }

    #[test]
    fn long_rows_go_by_in_stretches() {
        let long = ROWS.replace("2048", "100000").replace("0..64", "0..3");
        let (out, log) = apply("cooperative_scan", &kernel(&long), &gpu(&[]));
        assert_eq!(log.applied[1], "loop k: 256 threads with 32 elements each, 13 times");
        let made = text(&out);
        assert!(made.contains("for c in 0..13: serial\n"), "{made}");
        assert!(made.contains("c*8192 + u*32 + e < 100000"), "{made}");
        let unknown = ROWS.replace("x: ptr f32", "x: ptr f32, n: i64").replace("2048", "n");
        let (out, log) = apply("cooperative_scan", &kernel(&unknown), &gpu(&[]));
        assert_eq!(log.applied[1], "loop k: 256 threads with 4 elements each at a time");
        assert!(text(&out).contains("for c in 0..(n + 1023)//1024: serial\n"), "{}", text(&out));
    }

    #[test]
    fn rows_of_a_tile_are_shared_side_by_side() {
        let (out, log) = apply("cooperative_scan", &kernel(TILE), &gpu(&[]));
        assert_eq!(log.applied, ["loop k: 128 threads with 4 elements each"]);
        let made = text(&out);
        assert!(made.contains("local line: i32[2, 128, 4]\n"), "{made}");
        assert!(made.contains(", u_1*-4 - e_1 + 511] = "), "{made}");
    }

    /// A scan of `sums` that leaves its results there.
    const IN_PLACE: &str = r#"loop kernel k(y: ptr i32):
  local sums: i32[2, 512]
  for i in 0..2: free
    local s: i32
    s = 0
    for k in 0..512: serial
      v: i32 = sums[i, k]
      a: i32 = s
      b: i32 = a + v
      s = b
      sums[i, k] = b
"#;

    #[test]
    fn a_scan_may_replace_its_elements() {
        let (out, log) = apply("cooperative_scan", &kernel(IN_PLACE), &gpu(&[]));
        assert_eq!(log.applied, ["loop k: 128 threads with 4 elements each"]);
        assert!(text(&out).contains("sums[i_5, u_1*4 + e_1] = "), "{}", text(&out));
        for (from, to) in [
            // It reads what the iteration before has written, or what another row has.
            ("v: i32 = sums[i, k]", "v: i32 = sums[i, max(k - 1, 0)]"),
            ("sums[i, k]", "sums[0, k]"),
            // It reads its own result.
            (
                "      sums[i, k] = b\n",
                "      sums[i, k] = b\n      c: i32 = sums[i, k]\n      store y[i*512 + k] = c\n",
            ),
        ] {
            assert!(IN_PLACE.contains(from), "{from}");
            let said = refusals("cooperative_scan", &IN_PLACE.replace(from, to), &gpu(&[])).join("; ");
            assert!(said.ends_with("it may read what it has stored"), "{to}: {said}");
        }
    }

    #[test]
    fn many_rows_keep_a_thread_each() {
        let columns = ROWS.replace("0..64", "0..100000").replace("i*2048 + k", "k*100000 + i");
        let (out, log) = apply("cooperative_scan", &kernel(&columns), &gpu(&[]));
        assert_eq!(text(&out), text(&kernel(&columns)).replace("loop kernel", "tile kernel"));
        assert!(log.skipped[0].1.starts_with("a thread for each of its rows takes "), "{:?}", log.skipped);
    }

    #[test]
    fn what_one_thread_scans_says_why() {
        let says = |text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            refusals("cooperative_scan", &text.replace(from, to), &gpu(&[])).join("; ")
        };
        for (from, to, why) in [
            ("0..512: serial", "0..32: serial", "it is shorter than two warps"),
            ("a + v", "a - v", "what it folds by is not one associative operation"),
            ("a + v", "a + a", "what it folds by is not one associative operation"),
            (
                "      s = b\n",
                "      c: i32 = a + b\n      s = b\n      store y[k] = c\n",
                "it uses the fold up to an element and the one before it",
            ),
            ("      sums[i, 511 - k] = b\n", "", "it uses the fold of all elements alone"),
            ("      sums[i, 511 - k] = b\n", "      store y[k] = b\n", "it may read what it has stored"),
            ("    s = 0\n", "    s = 0\n    store y[i] = 0\n", "more is done in a row"),
        ] {
            let said = says(TILE, from, to);
            assert!(said.ends_with(why), "{said}\n{why}");
        }
        let many = TILE.replace("[2, 512]", "[64, 512]").replace("0..2:", "0..64:");
        assert!(says(&many, "0..64:", "0..64:").ends_with("its rows have threads enough, one each"));
        let floats = TILE.replace("i32", "f32").replace("s = 0\n", "s = 0.0\n");
        assert!(says(&floats, "a + v", "a + v").ends_with("the program states the order of its floats"));
        let off = apply("cooperative_scan", &kernel(ROWS), &gpu(&["scan=0"]));
        assert_eq!((off.1.applied.len(), off.1.skipped.len()), (0, 0));
    }
}
