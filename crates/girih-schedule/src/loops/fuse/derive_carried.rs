//! A carried tile of addresses or integers that advances by the same amount in every iteration is a function of the
//! iteration.

use std::collections::BTreeMap;

use super::nest::{is_bare, perfect};
use super::producer::{Cost, Producer, cost, producer};
use super::ranges::{range, signed_range};
use super::uses::Uses;
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rule};
use crate::index::{Ix, ValId};
use crate::loops::ir::{BufId, For, Kernel, LoopKind, Opnd, Stmt, Ty, Val};
use crate::loops::walk;
use crate::num::{DType, ScalarOp};

pub const RULE: Rule<Kernel, Assumptions> = Rule {
    name: "derive_carried",
    doc: "\
A carried buffer of addresses or integers that every iteration advances by one loop-invariant amount disappears: its
element is the initial one plus the number of the iteration times the amount.

```text
for j: p[j] = ptradd A, j
for k in 0..n:                             for k in 0..n:
  for j: x[j] = load p[j]           -->      for j: x[j] = load (ptradd (ptradd A, j), k*64)
  for j: p[j] = ptradd p[j], 64
```

The arithmetic wraps as before, so this is exact. If the loop computes the amount in each iteration from values that do not change
(`n * 32`), it is computed before the loop. Refused when the buffer is written elsewhere, when the loop may continue early, or when
the amount changes.",
    run,
};

fn run(kernel: &Kernel, _: &Assumptions, log: &mut Log) -> Option<Kernel> {
    super::rewritten(kernel, log, |kernel, body, log| {
        walk::visit_bodies_mut(body, &mut |body| list(kernel, body, log));
    })
}

fn list(kernel: &mut Kernel, body: &mut Vec<Stmt>, log: &mut Log) {
    let local = |s: &Stmt| match s {
        Stmt::Local { buf } if may_be_derived(kernel.bufs[*buf].ty) => Some(*buf),
        _ => None,
    };
    let locals: Vec<BufId> = body.iter().filter_map(local).collect();
    if locals.is_empty() {
        return;
    }
    let mut uses = Uses::index(body);
    for buf in locals {
        let name = kernel.bufs[buf].name.clone();
        if let Some(site) = find(kernel, body, buf, &uses) {
            derive(kernel, body, buf, &site);
            uses = Uses::index(body);
            log.applied(name);
        }
    }
}

struct Site {
    /// The statement that fills the buffer, and its computation.
    init: usize,
    producer: Producer,
    /// The serial loop, and the statement of its body that advances the buffer.
    at: usize,
    update: usize,
    amount: Opnd,
    /// The statements of the loop's body that compute the amount: they move before the loop.
    hoisted: Vec<usize>,
}

fn may_be_derived(ty: Ty) -> bool {
    matches!(ty, Ty::Ptr(_) | Ty::Num(DType::I32 | DType::I64))
}

fn find(kernel: &Kernel, body: &[Stmt], buf: BufId, places: &Uses) -> Option<Site> {
    let mut written = places.write.get(&buf)?.iter().copied();
    let (Some(init), Some(at), None) = (written.next(), written.next(), written.next()) else { return None };
    let Stmt::For(f) = &body[at] else { return None };
    let mut uses = walk::BufUse::default();
    for (_, s) in places.of(buf, body) {
        let here = walk::buffer_uses(std::slice::from_ref(s)).get(&buf).copied().unwrap_or_default();
        uses.writes += here.writes;
        uses.printed += here.printed;
        uses.roles += here.roles;
    }
    if uses.writes != 2 || uses.printed != 0 || uses.roles != 0 {
        return None;
    }
    let writes = |s: &Stmt| walk::refs_of(s).bufs_written.contains(&buf);
    let producer = producer(kernel, &body[init]).filter(|p| p.buf == buf && cost(p) == Cost::Index)?;
    let read_before = |(n, s): (usize, &Stmt)| n < at && walk::refs_of(s).bufs_read.contains(&buf);
    if places.of(buf, body).any(read_before) || f.kind != LoopKind::Serial {
        return None;
    }
    // The buffers that the initial value reads must not change.
    let changes = |b: &BufId| places.write.get(b).is_some_and(|w| w.range(init + 1..).next().is_some());
    if walk::refs(&producer.pure).bufs_read.iter().any(changes) {
        return None;
    }
    let none = |_| None;
    let small = |ix: &Ix| {
        let (lo, hi) = range(ix, kernel, &none);
        lo >= -(1 << 32) && hi <= 1 << 32
    };
    if !small(&f.lo) || !small(&f.hi) || continues(&f.body) {
        return None;
    }
    let update = f.body.iter().position(writes)?;
    let read_later = f.body[update + 1..].iter().any(|s| walk::refs_of(s).bufs_read.contains(&buf));
    let (amount, hoisted) = advance(kernel, &f.body[update], buf, f)?;
    (!read_later).then_some(Site { init, producer, at, update, amount, hoisted })
}

/// The statements of a loop's body that compute a value from what the loop does not change, in order; `None` where it does.
fn invariant(f: &For, v: ValId) -> Option<Vec<usize>> {
    /// As many statements are moved at most.
    const MOST: usize = 16;
    let mut defined = BTreeMap::new();
    for (at, s) in f.body.iter().enumerate() {
        defined.extend(walk::refs_of(s).vals_defined.into_iter().map(|v| (v, at)));
    }
    let (mut found, mut rest) = (vec![], vec![v]);
    while let Some(v) = rest.pop() {
        let Some(&at) = defined.get(&v) else { continue };
        if found.contains(&at) {
            continue;
        }
        let plain = match &f.body[at] {
            Stmt::Let { op: ScalarOp::AddI | ScalarOp::SubI | ScalarOp::MulI, .. } => true,
            Stmt::Let { op: ScalarOp::ExtI { .. } | ScalarOp::TruncI { .. }, .. } => true,
            Stmt::Index { ix, .. } => !ix.has_axis(f.axis),
            _ => false,
        };
        if !plain || found.len() == MOST {
            return None;
        }
        found.push(at);
        rest.extend(walk::refs_of(&f.body[at]).vals_used);
    }
    found.sort_unstable();
    Some(found)
}

/// Returns true if an iteration may end before the loop's last statement.
fn continues(body: &[Stmt]) -> bool {
    body.iter().any(|s| match s {
        Stmt::Continue | Stmt::Break => true,
        Stmt::Loop { .. } => false,
        Stmt::For(f) if f.kind == LoopKind::Serial => false,
        _ => walk::bodies(s).into_iter().any(|b| continues(b)),
    })
}

/// The amount in `for axes: buf[axes] = buf[axes] + amount`, and what of the loop's body computes it.
fn advance(kernel: &Kernel, s: &Stmt, buf: BufId, f: &For) -> Option<(Opnd, Vec<usize>)> {
    let (axes, inner) = perfect(s);
    // A rank-0 buffer is read where the iteration begins and written where it ends.
    let read = |v: ValId| {
        inner.iter().chain(&f.body).find_map(|s| match s {
            Stmt::Read { dst, buf: b, idx } if *dst == v && *b == buf => Some(idx),
            _ => None,
        })
    };
    let (Stmt::Write { buf: b, idx, value: Opnd::Val(v) }, pure) = inner.split_last()? else { return None };
    let whole = idx.iter().zip(&kernel.bufs[buf].shape).all(|(ix, &n)| match ix {
        Ix::Axis(x) => axes.iter().any(|&(y, m)| *x == y && m as u64 == n),
        _ => n == 1,
    });
    if *b != buf || !is_bare(idx, &axes) || !whole {
        return None;
    }
    if axes.is_empty() && !idx.is_empty() {
        return None;
    }
    let (op, args) = pure.iter().chain(&f.body).find_map(|s| match s {
        Stmt::Let { dst, op, args } if dst == v => Some((*op, args)),
        _ => None,
    })?;
    let (old, amount) = match (op, &args[..]) {
        (ScalarOp::PtrAdd, [Opnd::Val(p), o]) => (*p, *o),
        (ScalarOp::AddI, [Opnd::Val(p), o]) if read(*p).is_some() => (*p, *o),
        (ScalarOp::AddI, [o, Opnd::Val(p)]) => (*p, *o),
        _ => return None,
    };
    if read(old) != Some(idx) {
        return None;
    }
    let narrow = |d: DType| d.is_int() && d.bits() <= 32;
    match amount {
        Opnd::Const { dtype, bits } => {
            let (lo, hi) = signed_range(DType::I32);
            let value = crate::num::convert::sign_extend(dtype, bits) as i128;
            (lo <= value && value <= hi).then_some((amount, vec![]))
        }
        Opnd::Val(v) => {
            let narrow = matches!(kernel.vals[v].ty, Ty::Num(d) if narrow(d));
            Some((amount, invariant(f, v).filter(|_| narrow)?))
        }
    }
}

fn derive(kernel: &mut Kernel, body: &mut Vec<Stmt>, buf: BufId, site: &Site) {
    let Stmt::For(f) = &mut body[site.at] else { return };
    f.body.remove(site.update);
    let place = |at: usize| if at > site.update { at - 1 } else { at };
    let mut hoisted: Vec<Stmt> = site.hoisted.iter().rev().map(|&at| f.body.remove(place(at))).collect();
    hoisted.reverse();
    let span = Ix::sub(Ix::Axis(f.axis), f.lo.clone());
    let trip = Ix::floor_div(span, f.step.clone());
    let trips = Ix::max(Ix::ceil_div(Ix::sub(f.hi.clone(), f.lo.clone()), f.step.clone()), Ix::Const(0));
    let amount = match site.amount {
        Opnd::Val(v) => Ix::val(v),
        Opnd::Const { dtype, bits } => Ix::Const(crate::num::convert::sign_extend(dtype, bits)),
    };
    let mut inside = std::mem::take(&mut f.body);
    elements(kernel, &mut inside, buf, site, &Ix::mul(trip, amount.clone()));
    if let Stmt::For(f) = &mut body[site.at] {
        f.body = inside;
    }
    let mut rest = body.split_off(site.at + 1);
    elements(kernel, &mut rest, buf, site, &Ix::mul(trips, amount));
    body.append(&mut rest);
    body.splice(site.at..site.at, hoisted);
    body.remove(site.init);
    body.retain(|s| !matches!(s, Stmt::Local { buf: b } if *b == buf));
}

/// Replaces the reads of the buffer by the initial element, moved by `by`.
fn elements(kernel: &mut Kernel, body: &mut Vec<Stmt>, buf: BufId, site: &Site, by: &Ix) {
    let mut out = Vec::with_capacity(body.len());
    for mut s in std::mem::take(body) {
        for inner in walk::bodies_mut(&mut s) {
            elements(kernel, inner, buf, site, by);
        }
        match &s {
            Stmt::Read { dst, buf: b, idx } if *b == buf => {
                let (_, mut copy, first) = site.producer.at(kernel, idx);
                out.append(&mut copy);
                let ty = kernel.vals[*dst].ty;
                let (op, dtype) = match ty {
                    Ty::Ptr(_) => (ScalarOp::PtrAdd, DType::I64),
                    Ty::Num(d) => (ScalarOp::AddI, d),
                };
                let moved = kernel.vals.push(Val { ty: Ty::Num(dtype), name: "advance".to_string() });
                out.push(Stmt::Index { dst: moved, ix: by.clone() });
                out.push(Stmt::Let { dst: *dst, op, args: vec![first, Opnd::Val(moved)] });
            }
            _ => out.push(s),
        }
    }
    *body = out;
}
