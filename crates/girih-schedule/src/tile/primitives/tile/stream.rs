//! `tile` of the stream of keys in attention: a block takes some rows, and a stretch of keys at a time.
//!
//! ```text
//! for i in 0..128: free                            for ib in 0..2: free block(x)
//!   acc = 0, m = -inf, l = 0                         local acc[64, 64], m[64], l[64]
//!   for key in 0..512: serial stream        -->      for kt in 0..4: serial
//!     s = sum over k of q[i, k] * x[key, k]            s[i, j] = sum over k of q[..] * x[kt*128 + j, k]
//!     m, l, acc <- the recurrence                      for i: m[i], l[i], shrink <- the scores' maximum and sum
//!   store out[..] = acc[n] / l                         acc[i, n] <- acc[i, n]*shrink + sum over j of s[i, j] * v[..]
//!                                                    for i: for n: store out[..] = acc[i, n] / l[i]
//! ```
//!
//! The scores of a stretch are a tile of their own; the greatest of them corrects what was summed before, once for the stretch. A stretch is
//! left out where a mask leaves none of its keys to any row of the block, as behind the diagonal of causal attention. Legal for a nest that
//! holds no other loops, whose rows have a known length.

use std::collections::BTreeMap;

use crate::index::{Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::op::{Predicate, Rounding};
use crate::num::{DType, ScalarOp, convert};
use crate::tile::causal_bounds::causal_bounds;
use crate::tile::edit;
use crate::tile::primitives::MOST_BYTES;
use crate::tile::tile_nest::*;

const NEAREST: Rounding = Rounding::NearestEven;
const MAX: ScalarOp = ScalarOp::MaxF { nan: true, ftz: false };
const ADD: ScalarOp = ScalarOp::AddF { rounding: NEAREST, ftz: false };
const SUB: ScalarOp = ScalarOp::SubF { rounding: NEAREST, ftz: false };
const MUL: ScalarOp = ScalarOp::MulF { rounding: NEAREST, ftz: false };

/// Free loops around a stream, and what stands with it.
pub struct StreamNest<'a> {
    /// Outermost first.
    pub free: Vec<&'a For>,
    /// Straight-line statements outside the loops below, in program order.
    pub around: Vec<&'a Stmt>,
    pub stream: &'a For,
    pub roles: &'a Stream,
    /// The sum that scores are computed from.
    pub sum: Sum<'a>,
    /// Straight-line statements of one iteration, but for the loop over the sums.
    inside: Vec<&'a Stmt>,
    /// The loop that updates the weighted sums.
    pub update: &'a For,
    /// What is done with them.
    pub last: &'a For,
}

impl<'a> StreamNest<'a> {
    /// `None` where there is no stream.
    pub fn of(s: &'a Stmt) -> Option<Result<StreamNest<'a>, String>> {
        let Stmt::For(first) = s else { return None };
        let found = walk::loops(&first.body).any(|f| f.stream.is_some());
        (found && first.is_free_unplaced()).then(|| StreamNest::read(first))
    }

    fn read(first: &'a For) -> Result<StreamNest<'a>, String> {
        let other = || "it holds other loops".to_string();
        let (mut free, mut around) = (vec![first], vec![]);
        let mut body = &first.body;
        while let Some(Stmt::For(f)) = body.last()
            && f.kind == LoopKind::Free
            && !body.iter().any(|s| matches!(s, Stmt::For(f) if f.stream.is_some()))
        {
            let (_, before) = body.split_last().ok_or_else(other)?;
            around.extend(before);
            free.push(f);
            body = &f.body;
        }
        let at = body.iter().position(|s| matches!(s, Stmt::For(f) if f.stream.is_some())).ok_or_else(other)?;
        let (Stmt::For(stream), Some(Stmt::For(last))) = (&body[at], body.last()) else { return Err(other()) };
        let roles = stream.stream.as_ref().ok_or_else(other)?;
        // What the sums start from is the recurrence's own.
        let starts = |s: &Stmt| match s {
            Stmt::Local { buf } | Stmt::Write { buf, .. } => [roles.acc, roles.greatest, roles.total].contains(buf),
            Stmt::For(f) => matches!(&f.body[..], [Stmt::Write { buf, .. }] if *buf == roles.acc),
            _ => false,
        };
        let between = body[..at].iter().filter(|s| !starts(s)).chain(&body[at + 1..body.len() - 1]);
        around.extend(between);
        let (Stmt::For(update), steps) = stream.body.split_last().ok_or_else(other)? else { return Err(other()) };
        let mut sums = steps.iter().filter_map(|s| if let Stmt::For(f) = s { Some(f) } else { None });
        let sum_loop = sums.next().ok_or("its scores are not a sum")?;
        if sums.next().is_some() {
            return Err(other());
        }
        let sum = sum(sum_loop)?;
        let of_sum = |s: &Stmt| match s {
            Stmt::Local { buf } | Stmt::Write { buf, .. } => *buf == sum.roles.acc,
            Stmt::For(_) => true,
            _ => false,
        };
        let inside: Vec<&Stmt> = steps.iter().filter(|s| !of_sum(s)).collect();
        let straight = |s: &&Stmt| walk::bodies(s).is_empty();
        let flat = |f: &For| f.body.iter().all(|s| walk::bodies(s).is_empty());
        if !around.iter().all(straight) || !inside.iter().all(straight) || !flat(update) || !flat(last) {
            return Err(other());
        }
        Ok(StreamNest { free, around, stream, roles, sum, inside, update, last })
    }
}

/// Where a nest is cut.
struct Cuts {
    m: Side,
    keys: Side,
    n: Side,
    depth: Side,
    batch: Side,
    outer: Outer,
}

/// Positions in the loops of a part, where it has them.
#[derive(Clone, Copy, Default)]
struct At {
    row: Option<AxisId>,
    key: Option<AxisId>,
    n: Option<AxisId>,
    depth: Option<AxisId>,
}

impl Cuts {
    fn frame(&self, facts: &Facts, at: At) -> Frame {
        let outer = &self.outer;
        let mut sides = vec![(&self.batch, outer.block(2))];
        sides.extend(at.row.map(|i| (&self.m, self.m.pieces().at(outer.block(0), i))));
        sides.extend(at.key.map(|j| (&self.keys, self.keys.pieces().at(outer.stretch(), j))));
        sides.extend(at.n.map(|n| (&self.n, Ix::Axis(n))));
        sides.extend(at.depth.map(|k| (&self.depth, Ix::Axis(k))));
        Frame::new(facts, &sides)
    }
}

/// The axes of a nest, by what attention does with them.
pub struct Sides {
    pub m: Side,
    pub keys: Side,
    pub n: Side,
    pub depth: Side,
    pub batch: Side,
}

impl Sides {
    pub fn of(nest: &StreamNest<'_>, facts: &Facts) -> Result<Sides, String> {
        let sum = &nest.sum;
        check_bounds(&nest.free)?;
        check_bounds(&[nest.stream, nest.update, nest.last])?;
        check_bounds(&sum.loops)?;
        let batch: Vec<AxisId> = nest.free.iter().map(|f| f.axis).filter(|a| !sum.roles.m.contains(a)).collect();
        Ok(Sides {
            m: Side::of(&sum.roles.m, &nest.free, facts),
            keys: Side::of(&[nest.stream.axis], &[nest.stream], facts),
            // The loop that updates and the last one run over the same positions.
            n: Side::of(&[nest.update.axis], &[nest.update], facts),
            depth: Side::of(&sum.roles.k, &sum.loops, facts),
            batch: Side::of(&batch, &nest.free, facts),
        })
    }

    /// The elements of a row of queries and keys, and of values.
    pub fn lengths(&self) -> Result<[u64; 2], String> {
        let known = self.depth.known().zip(self.n.known());
        known.map(|(deep, width)| [deep, width]).ok_or("the length of its rows is not known".to_string())
    }
}

/// Cuts a nest into blocks of `bm` rows, which take `bk` keys at once.
pub fn cut(kernel: &mut Kernel, nest: &StreamNest<'_>, [bm, bk]: [u64; 2]) -> Result<Stmt, String> {
    let mut facts = kernel.facts();
    let roles = nest.roles;
    let Sides { mut m, mut keys, n, mut depth, batch } = Sides::of(nest, &facts)?;
    let known = depth.known().zip(n.known());
    let (deep, width) = known.ok_or("the length of its rows is not known")?;
    let longest = bk.max(width).max(deep);
    let largest = bm.max(bk).saturating_mul(longest).saturating_mul(8);
    if largest > MOST_BYTES {
        return Err(format!("a tile would have up to {largest} bytes; {MOST_BYTES} are the most"));
    }
    (m.block, keys.block, depth.block) = (bm, bk, deep);
    let like = |side: &Side, or: AxisId| side.axes.first().map_or(or, |a| a.0);
    let (like_m, like_b) = (like(&m, nest.stream.axis), like(&batch, nest.stream.axis));
    let x = edit::new_axis(kernel, like_m, "b");
    let y = edit::new_axis(kernel, like_m, "y");
    let z = edit::new_axis(kernel, like_b, "b");
    let stretch = edit::new_axis(kernel, nest.stream.axis, "t");
    let grid = [(x, m.pieces().count(&facts)), (y, Ix::Const(1)), (z, batch.extent.clone())];
    let outer = Outer { grid, stretch, stretches: keys.pieces().count(&facts) };
    outer.enter(&mut facts);
    let mut b = Build { kernel, facts, narrow: false };
    let cuts = Cuts { m, keys, n, depth, batch, outer };

    // The state of the rows.
    let dtype = match b.kernel.bufs.get(roles.acc).map(|b| b.ty) {
        Some(Ty::Num(d)) => d,
        _ => return Err("it sums addresses".to_string()),
    };
    let constant = |x: f64| Opnd::Const { dtype, bits: convert::from_f64(dtype, x, NEAREST) };
    let buffer = |b: &mut Build<'_>, like: BufId, shape: Vec<u64>| {
        let name = b.kernel.bufs.get(like).map_or("x".to_string(), |b| b.name.clone());
        b.kernel.bufs.push(Buf::new(name, Ty::Num(dtype), shape))
    };
    let acc = buffer(&mut b, roles.acc, vec![bm, width]);
    let greatest = buffer(&mut b, roles.greatest, vec![bm]);
    let total = buffer(&mut b, roles.total, vec![bm]);
    let mut body = vec![Stmt::Local { buf: acc }];
    let (i, n) = (b.axis("i", bm), b.axis("n", width));
    let zero = Stmt::Write { buf: acc, idx: vec![Ix::Axis(i), Ix::Axis(n)], value: constant(0.0) };
    body.push(loops(&[(i, bm), (n, width)], vec![zero]));
    body.extend([Stmt::Local { buf: greatest }, Stmt::Local { buf: total }]);
    let i = b.axis("i", bm);
    let start = |buf, x: f64| Stmt::Write { buf, idx: vec![Ix::Axis(i)], value: constant(x) };
    let both = vec![start(greatest, f64::NEG_INFINITY), start(total, 0.0)];
    body.push(loops(&[(i, bm)], both));

    // One stretch of keys.
    let scores = b.kernel.bufs.push(Buf::new("s", Ty::Num(dtype), vec![bm, bk]));
    let mut step = vec![Stmt::Local { buf: scores }];
    let (i, j) = (b.axis("i", bm), b.axis("j", bk));
    let zero = Stmt::Write { buf: scores, idx: vec![Ix::Axis(i), Ix::Axis(j)], value: constant(0.0) };
    step.push(loops(&[(i, bm), (j, bk)], vec![zero]));
    first_product(&mut b, nest, &cuts, scores, [bm, bk, deep], &mut step)?;
    let stretch = Stretch { acc, greatest, total, scores, dtype, bm, bk, width };
    step.push(recurrence(&mut b, nest, &cuts, &stretch)?);
    second_product(&mut b, nest, &cuts, &stretch, &mut step)?;
    let seen = seen(&b.facts, nest, &cuts);
    body.extend(cuts.outer.in_first_stretches(seen, step));

    // What follows.
    let (i, n) = (b.axis("i", bm), b.axis("n", width));
    let mut rest: Vec<Stmt> = nest.around.iter().map(|s| (*s).clone()).chain(nest.last.body.clone()).collect();
    let row = vec![Ix::Axis(i)];
    let at = BTreeMap::from([
        (roles.acc, (acc, vec![Ix::Axis(i), Ix::Axis(n)])),
        (roles.greatest, (greatest, row.clone())),
        (roles.total, (total, row)),
    ]);
    to_tiles(&mut rest, &at);
    let last = nest.last.axis;
    let mut frame = cuts.frame(&b.facts, At { row: Some(i), ..At::default() });
    frame.by.insert(last, Ix::Axis(n));
    let mut rest = frame.copy(b.kernel, &rest);
    edit::drop_unused(&mut rest);
    body.push(nested(&[(i, bm), (n, width)], rest));
    cuts.outer.in_blocks(body)
}

/// The stretches with keys that a row of the block at hand may see.
fn seen(facts: &Facts, nest: &StreamNest<'_>, cuts: &Cuts) -> Ix {
    let all: Vec<&Stmt> = nest.around.iter().chain(&nest.inside).copied().collect();
    let mut last = cuts.outer.stretches.clone();
    let Some(&(row, _)) = cuts.m.axes.first().filter(|_| cuts.m.axes.len() == 1) else { return last };
    let block = |d| cuts.outer.block(d);
    let (rows, keys) = (cuts.m.block as i64, cuts.keys.block as i64);
    for key in causal_bounds(&all, nest.roles.score, nest.stream.axis) {
        // Of the block's rows the one that sees most.
        let Some((Ix::Const(by), rest)) = key.linear(row) else { continue };
        let far = if by > 0 { by * (rows - 1) } else { 0 };
        let first = Ix::mul(block(0), Ix::Const(by * rows));
        let mut of = BTreeMap::new();
        cuts.batch.split(&block(2), &mut of);
        let rest = rest.subst_axes(&mut |a| of.get(&a).cloned());
        if rest.axes().iter().any(|a| !cuts.outer.grid.iter().any(|(own, _)| own == a)) {
            continue;
        }
        let key = Ix::add(Ix::add(rest, first), Ix::Const(far));
        let count = Ix::add(Ix::floor_div(key, Ix::Const(keys)), Ix::Const(1));
        last = Ix::min(last, Ix::max(count, Ix::Const(0)));
    }
    simplify(&last, facts)
}

/// The tiles of a block.
struct Stretch {
    acc: BufId,
    greatest: BufId,
    total: BufId,
    scores: BufId,
    dtype: DType,
    bm: u64,
    bk: u64,
    width: u64,
}

/// The sums that scores are made of.
fn first_product(
    b: &mut Build<'_>,
    nest: &StreamNest<'_>,
    cuts: &Cuts,
    scores: BufId,
    [bm, bk, deep]: [u64; 3],
    out: &mut Vec<Stmt>,
) -> Result<(), String> {
    let sum = &nest.sum;
    let around: Vec<&Stmt> = nest.around.iter().chain(&nest.inside).copied().collect();
    let found = operands_of(&around, sum, &cuts.m, &cuts.keys)?;
    let (i, j, kk) = (b.axis("i", bm), b.axis("j", bk), b.axis("kk", deep));
    let mut operands = vec![];
    let each = [(sum.x, sum.roles.a, true), (sum.y, sum.roles.b, false)];
    for ((value, role, left), stmts) in each.into_iter().zip(&found) {
        let own = if left { (i, bm) } else { (j, bk) };
        let frame = |b: &Build<'_>, p: AxisId, q: AxisId| {
            let at = match left {
                true => At { row: Some(p), depth: Some(q), ..At::default() },
                false => At { key: Some(p), depth: Some(q), ..At::default() },
            };
            cuts.frame(&b.facts, at)
        };
        operands.push(b.operand(stmts, value, Some(role), left, own, (kk, deep), &frame, out)?);
    }
    let [x, y] = &operands[..] else { return Err("it does not have two operands".to_string()) };
    let multiply = b.multiply(sum, x, y, scores, &[Ix::Axis(i), Ix::Axis(j)])?;
    out.push(b.contraction(scores, [(i, bm), (j, bk), (kk, deep)], x, y, multiply));
    Ok(())
}

/// What single scores become, their greatest, and the terms of the sum; what was summed before shrinks.
fn recurrence(b: &mut Build<'_>, nest: &StreamNest<'_>, cuts: &Cuts, t: &Stretch) -> Result<Stmt, String> {
    let Stretch { dtype, bm, bk, width, .. } = *t;
    let roles = nest.roles;
    let constant = |x: f64| Opnd::Const { dtype, bits: convert::from_f64(dtype, x, NEAREST) };
    let fold = |op: ScalarOp, from: f64, buf: BufId| {
        let identity = convert::from_f64(dtype, from, NEAREST);
        Some(Combine { accs: vec![buf], op: CombineOp::Scalar { op, identity }, ways: 1 })
    };
    let (i, j) = (b.axis("i", bm), b.axis("j", bk));
    let (row, at) = (vec![Ix::Axis(i)], vec![Ix::Axis(i), Ix::Axis(j)]);

    // The scores, and the greatest of the stretch.
    let best = b.kernel.bufs.push(Buf::new("best", Ty::Num(dtype), vec![]));
    let mut rows =
        vec![Stmt::Local { buf: best }, Stmt::Write { buf: best, idx: vec![], value: constant(f64::NEG_INFINITY) }];
    let all: Vec<&Stmt> = nest.around.iter().chain(&nest.inside).copied().collect();
    let inside = |s: &Stmt, _: &[&Stmt]| nest.inside.iter().any(|i| std::ptr::eq(*i, s));
    let mut list: Vec<Stmt> = slice_asserted(&all, roles.score, &inside).into_iter().cloned().collect();
    to_tiles(&mut list, &BTreeMap::from([(nest.sum.roles.acc, (t.scores, at.clone()))]));
    let mut score = roles.score;
    let frame = cuts.frame(&b.facts, At { row: Some(i), key: Some(j), ..At::default() });
    let edge = cuts.keys.pieces().exists(frame.by[&nest.stream.axis].clone());
    if let Some(edge) = edge {
        // Positions past the end are no terms of the sum: their exponential is 0.
        let (padded, made) = edit::padded(b.kernel, vec![edge], score, "s", constant(f64::NEG_INFINITY));
        list.extend(made);
        score = padded;
    }
    list.push(Stmt::Write { buf: t.scores, idx: at.clone(), value: Opnd::Val(score) });
    let (old, new) = (value(b, dtype), value(b, dtype));
    list.push(Stmt::Read { dst: old, buf: best, idx: vec![] });
    list.push(Stmt::Let { dst: new, op: MAX, args: vec![Opnd::Val(score), Opnd::Val(old)] });
    list.push(Stmt::Write { buf: best, idx: vec![], value: Opnd::Val(new) });
    let list = frame.copy(b.kernel, &list);
    let Stmt::For(first) = nested(&[(i, bm), (j, bk)], list) else { return Err("it has no scores".to_string()) };
    // What stands between the loops is the row's; the inner loop folds.
    let mut between = first.body;
    if let Some(Stmt::For(f)) = between.last_mut() {
        f.kind = LoopKind::Reduce;
        f.combine = fold(MAX, f64::NEG_INFINITY, best);
    }
    rows.extend(between);

    // A row without any score yet: distances from -inf would be NaN, where the terms are 0.
    let define = |b: &mut Build<'_>, rows: &mut Vec<Stmt>, op: ScalarOp, args: Vec<Opnd>| {
        let dst = value(b, dtype);
        rows.push(Stmt::Let { dst, op, args });
        Opnd::Val(dst)
    };
    let read = |b: &mut Build<'_>, rows: &mut Vec<Stmt>, buf: BufId, idx: Vec<Ix>| {
        let dst = value(b, dtype);
        rows.push(Stmt::Read { dst, buf, idx });
        Opnd::Val(dst)
    };
    let before = read(b, &mut rows, t.greatest, row.clone());
    let met = read(b, &mut rows, best, vec![]);
    let now = define(b, &mut rows, MAX, vec![before, met]);
    rows.push(Stmt::Write { buf: t.greatest, idx: row.clone(), value: now });
    let empty = b.kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "empty".into() });
    let equal = ScalarOp::CmpF { pred: Predicate::Equal, ordered: true };
    rows.push(Stmt::Let { dst: empty, op: equal, args: vec![now, constant(f64::NEG_INFINITY)] });
    let from = define(b, &mut rows, ScalarOp::Select, vec![Opnd::Val(empty), constant(0.0), now]);
    let behind = define(b, &mut rows, SUB, vec![before, from]);
    let shrink = define(b, &mut rows, ScalarOp::Exp, vec![behind]);

    // The terms and their sum.
    let sum = b.kernel.bufs.push(Buf::new("sum", Ty::Num(dtype), vec![]));
    rows.push(Stmt::Local { buf: sum });
    rows.push(Stmt::Write { buf: sum, idx: vec![], value: constant(0.0) });
    let j = b.axis("j", bk);
    let at = vec![Ix::Axis(i), Ix::Axis(j)];
    let mut terms = vec![];
    let score = read(b, &mut terms, t.scores, at.clone());
    let distance = define(b, &mut terms, SUB, vec![score, from]);
    let term = define(b, &mut terms, ScalarOp::Exp, vec![distance]);
    terms.push(Stmt::Write { buf: t.scores, idx: at, value: term });
    let old = read(b, &mut terms, sum, vec![]);
    let new = define(b, &mut terms, ADD, vec![term, old]);
    terms.push(Stmt::Write { buf: sum, idx: vec![], value: new });
    rows.push(edit::loop_with(j, Ix::Const(bk as i64), terms, |f| {
        f.kind = LoopKind::Reduce;
        f.combine = fold(ADD, 0.0, sum);
    }));
    let before = read(b, &mut rows, t.total, row.clone());
    let kept = define(b, &mut rows, MUL, vec![before, shrink]);
    let more = read(b, &mut rows, sum, vec![]);
    let after = define(b, &mut rows, ADD, vec![kept, more]);
    rows.push(Stmt::Write { buf: t.total, idx: row, value: after });

    // What was summed under the old maximum.
    let n = b.axis("n", width);
    let at = vec![Ix::Axis(i), Ix::Axis(n)];
    let mut shrunk = vec![];
    let old = read(b, &mut shrunk, t.acc, at.clone());
    let new = define(b, &mut shrunk, MUL, vec![old, shrink]);
    shrunk.push(Stmt::Write { buf: t.acc, idx: at, value: new });
    rows.push(loops(&[(n, width)], shrunk));
    Ok(loops(&[(i, bm)], rows))
}

fn value(b: &mut Build<'_>, dtype: DType) -> ValId {
    b.kernel.vals.push(Val { ty: Ty::Num(dtype), name: "v".into() })
}

/// What a weight is converted to before it is multiplied, and back.
fn rounding(all: &[&Stmt]) -> Vec<ScalarOp> {
    let made = |v: ValId| all.iter().rev().find(|s| walk::def(s) == Some(v));
    let weight = all.iter().rev().find_map(|s| match s {
        Stmt::Let { op: ScalarOp::Fma { .. }, args, .. } => args.first(),
        _ => None,
    });
    let mut out = vec![];
    let mut at = weight;
    while let Some(Opnd::Val(v)) = at
        && let Some(Stmt::Let { op: op @ ScalarOp::FToF { .. }, args, .. }) = made(*v)
    {
        out.insert(0, *op);
        at = args.first();
    }
    out
}

/// The weighted sums of the stretch.
fn second_product(
    b: &mut Build<'_>,
    nest: &StreamNest<'_>,
    cuts: &Cuts,
    t: &Stretch,
    out: &mut Vec<Stmt>,
) -> Result<(), String> {
    let Stretch { dtype, bm, bk, width, .. } = *t;
    let roles = nest.roles;
    let (i, n, j) = (b.axis("i", bm), b.axis("n", width), b.axis("kk", bk));
    let of_update: Vec<&Stmt> = nest.update.body.iter().collect();
    let all: Vec<&Stmt> = nest.around.iter().chain(&nest.inside).chain(&of_update).copied().collect();
    let last = |s: &Stmt, _: &[&Stmt]| of_update.iter().any(|i| std::ptr::eq(*i, s));
    let stmts = slice_asserted(&all, roles.value, &last);
    if stmts.iter().any(|s| matches!(s, Stmt::Read { .. })) || uses(&stmts, &cuts.m) {
        return Err("an operand depends on both rows and columns".to_string());
    }
    let frame =
        |b: &Build<'_>, p: AxisId, q: AxisId| cuts.frame(&b.facts, At { n: Some(p), key: Some(q), ..At::default() });
    let y = b.operand(&stmts, roles.value, None, false, (n, width), (j, bk), &frame, out)?;
    let mut x = b.read(t.scores, dtype, vec![Ix::Axis(i), Ix::Axis(j)]);
    if let [narrow, widen] = rounding(&all)[..] {
        let ScalarOp::FToF { to, .. } = narrow else { return Err("its weights are converted otherwise".to_string()) };
        x.role = b.kernel.vals.push(Val { ty: Ty::Num(to), name: "weight".into() });
        let (read, wide) = (x.value(), value(b, dtype));
        for (dst, op, from) in [(x.role, narrow, read), (wide, widen, x.role)] {
            x.stmts.push(Stmt::Let { dst, op, args: vec![Opnd::Val(from)] });
        }
    }
    let at = vec![Ix::Axis(i), Ix::Axis(n)];
    let (old, new) = (value(b, dtype), value(b, dtype));
    let fma = ScalarOp::Fma { rounding: NEAREST, ftz: false };
    let args = vec![Opnd::Val(x.value()), Opnd::Val(y.value()), Opnd::Val(old)];
    let multiply = vec![
        Stmt::Read { dst: old, buf: t.acc, idx: at.clone() },
        Stmt::Let { dst: new, op: fma, args },
        Stmt::Write { buf: t.acc, idx: at, value: Opnd::Val(new) },
    ];
    out.push(b.contraction(t.acc, [(i, bm), (n, width), (j, bk)], &x, &y, multiply));
    Ok(())
}
