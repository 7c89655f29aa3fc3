//! `stage_inputs`

mod edges;
mod operand_types;
mod shared;
mod windows;
use edges::Edges;
pub(super) use windows::overlap;

use std::collections::{BTreeMap, BTreeSet};

use crate::base::rule::{Log, Rule};
use crate::index::Cond;
use crate::loops::ir::*;
use crate::loops::walk::{self, Refs, refs};
use crate::num::DType;
use crate::tile::Context;
use crate::tile::affine::{self, Stride};
use crate::tile::contraction::{Nest, Operand, TileShape, nest_at, num_type};
use crate::tile::edit::{self, Visit, free_loop, new_axis};
use crate::tile::heuristics::stage_inputs::LONG_ROW;
use crate::tile::rules::site_of;
use crate::tile::target::Capability;
use crate::tile::tile_nest::{self, Extent};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "stage_inputs",
    doc: "\
Brings the operands of a contraction close to where they are used.

On a CPU it packs them: converted, with edges filled in, in the order in which the register tiles will read them. The right
operand goes into panels as wide as a register tile, the left one into rows (or, where its memory runs along m, into panels
as high as a register tile).

```text
for i in 0..128: free                            stage a_pack:
  for j in 0..128: free                            for i in 0..128: for kk in 0..64:
    for kk in 0..64: reduce contraction              a_pack[i, kk] = ext(load A[...] where ... else 0)
      %a = load A[...] where ... else 0   -->    stage b_pack:
      %b = load B[...] where ... else 0            for kk in 0..64: for jp in 0..4: for jj in 0..32:
      acc[i, j] <- ext(%a) * ext(%b)                 b_pack[jp, kk, jj] = ext(load B[...] where ... else 0)
                                                 for i: for j: for kk: reduce contraction
                                                   acc[i, j] <- a_pack[i, kk] * b_pack[j // 32, kk, j % 32]
```

Windows that overlap share one copy of what they lie on (`stage_inputs/windows.rs`), where that is less than half of them, or
less than three quarters of those of the left operand, whose elements are read one by one:

```text
%b = load x[kk//3*56 + j + kk%3 - 1]             stage b_pack: f32[48, 66]
     where j + kk%3 - 1 >= 0 and ..        -->     for k1 in 0..48: for p in 0..66:
                                                     b_pack[k1, p] = load x[k1*56 + p - 1] where p - 1 >= 0 and ..
                                                 %b = b_pack[kk//3, j + kk%3]
```

On a GPU they go into memory that the threads of a block share, as they are, in rows that run as the operand's memory does,
so that neighbouring threads copy neighbouring elements; 16 bytes at a time where arrays and extents are known to be multiples.

```text
for i in 0..128: free                            stage a_s: f32[128, 32] shared
  for j in 0..128: free                            for i in 0..128: for kk1 in 0..8: for kk2 in 0..4: vector(4)
    for kk in 0..32: reduce contraction              a_s[i, kk1*4 + kk2] = load A[..]
      acc[i, j] <- (load A[..]) * (load B[..])   -->   stage b_s: ...
                                                 for i: for j: for kk: reduce contraction
                                                   acc[i, j] <- a_s[i, kk] * b_s[j, kk]
```

Where the matrix unit has no product of what is loaded, operands are held as the narrowest type of its that has all their numbers,
so that the product stays the same: f8 as f16 where there are no products of f8, f4 as f8 or f16, f4 times their scales as f16
or bf16, f8 times powers of two as tf32, and integers of 4 bits as those of 8.

The copy stands directly before the nest, inside the loops the operand depends on; on a GPU before a serial loop each iteration
of which would copy the same. Nothing in a contraction nest stores
to memory, so the loads pass no store.

Knobs: `stage_a`, `stage_b` (0 never, 1 always).

Refuses when the operand depends on both m and n, reads the accumulator or an ordered load, is staged already, or is
just as good in place: it needs no conversion and no mask, and is read once; or it is in panels already; or it is the
left one and its memory runs along k (rows of 64 elements or more are walked by the caches as well as a copy is); or it is
a small buffer. On a GPU also where it takes more than half of a block's shared memory.
",
    run,
};

fn run(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let narrowed = if ctx.target.has(Capability::Threads) { operand_types::narrowed(p, ctx, log) } else { None };
    staged_in_place(narrowed.as_ref().unwrap_or(p), ctx, log).or(narrowed)
}

fn staged_in_place(p: &Kernel, ctx: &Context, log: &mut Log) -> Option<Kernel> {
    let mut staged = BTreeSet::new();
    walk::visit(&p.body, &mut |s| {
        if let Stmt::Stage { buf, .. } = s {
            staged.insert(*buf);
        }
    });
    let known = operand_types::Known::of(p);
    let out = edit::rewrite(p, &mut |kernel, s| match nest_at(s) {
        None => Visit::Into,
        // Whatever stops the nest stops the rules before and after too; they say why.
        Some(Err(_)) => Visit::Leave,
        Some(Ok(nest)) => {
            let site = site_of(kernel, s);
            match stage_nest(kernel, ctx, (p, &nest), (&staged, &known), &site, log) {
                Ok(new) => new.map_or(Visit::Leave, Visit::Replace),
                Err(why) => {
                    log.skipped(site, why);
                    Visit::Leave
                }
            }
        }
    })?;
    if !ctx.target.has(Capability::Threads) {
        return Some(out);
    }
    let mut once = out.clone();
    let body = std::mem::take(&mut once.body);
    once.body = hoisted(&once, body, log);
    Some(once)
}

/// Stages that each iteration of a serial loop would fill with the same, before the loop.
fn hoisted(kernel: &Kernel, body: Vec<Stmt>, log: &mut Log) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for mut s in body {
        for inner in walk::bodies_mut(&mut s) {
            *inner = hoisted(kernel, std::mem::take(inner), log);
        }
        if let Stmt::For(f) = &mut s
            && f.kind == LoopKind::Serial
        {
            let same = same_each_time(kernel, f);
            let (before, body): (Vec<_>, Vec<_>) =
                std::mem::take(&mut f.body).into_iter().partition(|s| staged_in(s).is_some_and(|b| same.contains(&b)));
            f.body = body;
            for buf in before.iter().filter_map(staged_in) {
                log.applied(format!("{}, before the loop {}", kernel.bufs[buf].name, kernel.axes[f.axis].name));
            }
            out.extend(before);
        }
        out.push(s);
    }
    out
}

fn staged_in(s: &Stmt) -> Option<BufId> {
    if let Stmt::Stage { buf, .. } = s { Some(*buf) } else { None }
}

/// The buffers that every iteration of a loop stages alike. Without an iteration nothing may be read that the program did not
/// say to be there: a mask says so, and so does a model.
fn same_each_time(kernel: &Kernel, f: &For) -> BTreeSet<BufId> {
    let all = walk::effects(&f.body);
    if !all.stores.is_empty() || all.ordered || all.atomic {
        return BTreeSet::new();
    }
    let inside = refs(&f.body);
    let runs = kernel.open || edit::const_trip(f).is_some_and(|n| n > 0);
    let same = |s: &&Stmt| {
        let own = refs(std::slice::from_ref(*s));
        let varies = own.axes_used.contains(&f.axis)
            || own.vals_used.iter().any(|v| inside.vals_defined.contains(v) && !own.vals_defined.contains(v))
            || own.bufs_read.iter().any(|b| inside.bufs_written.contains(b));
        let mut masked = true;
        walk::visit(std::slice::from_ref(*s), &mut |s| {
            masked &= !matches!(s, Stmt::Load { mask, .. } if mask.is_always());
        });
        !varies && (runs || masked)
    };
    f.body.iter().filter(same).filter_map(staged_in).collect()
}

/// What is made of an operand.
struct Staged {
    /// The number of the nest's free loops that the stage stands inside.
    depth: usize,
    stage: Stmt,
    /// The statement of the sum that the read takes the place of.
    at: usize,
    read: Stmt,
    /// What makes the operand of what is read, if anything is left to do.
    then: Option<Stmt>,
}

fn stage_nest(
    kernel: &mut Kernel,
    ctx: &Context,
    (p, nest): (&Kernel, &Nest),
    (staged, known): (&BTreeSet<BufId>, &operand_types::Known<'_>),
    site: &str,
    log: &mut Log,
) -> Result<Option<Vec<Stmt>>, String> {
    let shape = match ctx.target.has(Capability::Threads) {
        true => {
            nest.alone()?;
            None
        }
        false => match num_type(kernel, nest.roles.acc) {
            Some(acc) => Some(nest.tile_shape(ctx, acc)?),
            None => return Ok(None),
        },
    };
    let (a, b) = nest.operands()?;
    let mut reduce = nest.reduce.clone();
    let mut stages: Vec<Staged> = vec![];
    let held = if shape.is_none() { operand_types::types(known, ctx, nest, [&a, &b]) } else { Ok([None; 2]) };
    let held = held.unwrap_or_else(|why| {
        log.skipped(format!("{site}, types of the matrix unit"), why);
        [None; 2]
    });
    for (name, operand, left, held) in [("a", &a, true, held[0]), ("b", &b, false, held[1])] {
        let site = format!("{site}, operand {name}");
        let made = match shape {
            Some(shape) => pack(kernel, ctx, (p, nest), operand, (left, shape), staged),
            None => shared::stage(kernel, ctx, nest, operand, (left, held), staged),
        };
        match made {
            Ok(made) => {
                // What is read takes the role of what it was computed from.
                if let (Some(value), Some(roles)) = (walk::def(&made.read), &mut reduce.contraction) {
                    let role = if left { &mut roles.a } else { &mut roles.b };
                    *role = value;
                }
                stages.push(made);
                log.applied(match held {
                    Some(held) => format!("{site}, held as {}", held.name()),
                    None => site,
                });
            }
            Err(why) => log.skipped(site, why),
        }
    }
    if stages.is_empty() {
        return Ok(None);
    }
    let body = std::mem::take(&mut reduce.body).into_iter().enumerate();
    reduce.body = body
        .flat_map(|(at, s)| match stages.iter().find(|made| made.at == at) {
            Some(made) => std::iter::once(made.read.clone()).chain(made.then.clone()).collect(),
            None => vec![s],
        })
        .collect();
    edit::drop_unused(&mut reduce.body);
    Ok(Some(rebuild(nest, reduce, stages)))
}

fn rebuild(nest: &Nest, reduce: For, stages: Vec<Staged>) -> Vec<Stmt> {
    let mut out = vec![Stmt::For(Box::new(reduce))];
    for depth in (0..nest.free.len()).rev() {
        out = vec![Stmt::For(Box::new(For { body: out, ..nest.free[depth].clone() }))];
        let here = stages.iter().filter(|s| s.depth == depth).map(|s| s.stage.clone());
        out = here.chain(out).collect();
    }
    out
}

/// The axis of an operand that is not the sum's, where its statements can be done apart from the sum.
fn checked(nest: &Nest, stmts: &[Stmt], facts: &Refs, left: bool, staged: &BTreeSet<BufId>) -> Result<AxisId, String> {
    let (own, other, roles) = if left { (nest.roles.m, nest.roles.n, "n") } else { (nest.roles.n, nest.roles.m, "m") };
    if facts.axes_used.contains(&other) {
        return Err(format!("it depends on {roles}"));
    }
    if facts.bufs_read.contains(&nest.roles.acc) {
        return Err("it reads the accumulator".to_string());
    }
    if let Some(odd) = stmts.iter().find(|s| !edit::is_pure(s)) {
        return Err(match odd {
            Stmt::Load { .. } => "its load is ordered".to_string(),
            _ => "it is not a pure computation".to_string(),
        });
    }
    if facts.bufs_read.iter().any(|b| staged.contains(b)) {
        return Err("it is staged already".to_string());
    }
    Ok(own)
}

/// The type of an operand's elements.
fn element(kernel: &Kernel, value: ValId) -> Result<DType, String> {
    match kernel.vals.get(value).map(|v| v.ty) {
        Some(Ty::Num(dtype)) => Ok(dtype),
        _ => Err("it is an address".to_string()),
    }
}

fn pack(
    kernel: &mut Kernel,
    ctx: &Context,
    (p, nest): (&Kernel, &Nest),
    operand: &Operand,
    (left, shape): (bool, TileShape),
    staged: &BTreeSet<BufId>,
) -> Result<Staged, String> {
    let stmts: Vec<Stmt> = operand.slice.iter().map(|&i| nest.reduce.body[i].clone()).collect();
    let facts = refs(&stmts);
    let own = checked(nest, &stmts, &facts, left, staged)?;
    let extent = if left { nest.m } else { nest.n };
    // Of elements close together vectors are taken out of whole ones.
    let run = |along: Extent| piece(kernel, &stmts, along, affine::MOST_APART, &facts);
    let along_own = run((own, extent)) > run((nest.roles.k, nest.k));
    if let Some(why) = fine_in_place(kernel, ctx, nest, &stmts, left, shape, along_own) {
        return Err(why.to_string());
    }
    let dtype = element(kernel, operand.value)?;

    // Inside the innermost surrounding loop that the operand depends on.
    let surrounding = nest.free.len() - 2;
    let depth = (0..surrounding).rev().find(|&d| facts.axes_used.contains(&nest.free[d].axis)).map_or(0, |d| d + 1);

    // The read takes the place of the statement that defined the operand.
    let at = operand.slice.last().copied().unwrap_or(0);
    let edges = Edges::of(&p.body, nest, own);
    let unseen = |edge: &Cond| edges.as_ref().is_some_and(|e| e.unseen(edge));
    if let Some(slab) = windows::slab(kernel, &stmts, (own, extent), (nest.roles.k, nest.k), !left, &unseen) {
        let buf = kernel.bufs.push(Buf::new(if left { "a_pack" } else { "b_pack" }, Ty::Num(dtype), slab.shape));
        let renamed = walk::Renaming::fresh(kernel, &slab.body);
        let mut body = slab.body;
        renamed.apply(&mut body);
        let value = Opnd::Val(renamed.vals.get(&operand.value).copied().unwrap_or(operand.value));
        body.push(Stmt::Write { buf, idx: slab.loops.iter().map(|(axis, _)| Ix::Axis(*axis)).collect(), value });
        let body = vec![tile_nest::loops(&slab.loops, body)];
        let read = Stmt::Read { dst: operand.value, buf, idx: slab.idx };
        return Ok(Staged { depth, stage: Stmt::Stage { buf, filled: Filled::Copied, body }, at, read, then: None });
    }
    let width = if left { shape.rows } else { shape.cols }.into();
    let panels = !left || along_own && shape.rows > 1;
    let tag = if left { "a_pack" } else { "b_pack" };
    let buf_shape = if panels { vec![extent.div_ceil(width), nest.k, width] } else { vec![extent, nest.k] };
    let buf = kernel.bufs.push(Buf::new(tag, Ty::Num(dtype), buf_shape));
    // A part of the operand: so many panels, or rows, from the first on.
    let mut fill = |first: u64, count: u64, run: u64| {
        let k = new_axis(kernel, nest.roles.k, "");
        let inner = new_axis(kernel, own, "");
        let over = (panels && count > 1).then(|| new_axis(kernel, own, "p"));
        let panel = over.map_or(Ix::Const(first as i64), Ix::Axis);
        let before = panel.clone() * Ix::Const(width as i64);
        let position = if before.is_const(0) { Ix::Axis(inner) } else { before + Ix::Axis(inner) };
        let renamed = walk::Renaming::fresh(kernel, &stmts);
        let by = BTreeMap::from([(own, position), (nest.roles.k, Ix::Axis(k))]);
        // What was in panels before is read panel by panel.
        let mut extents = BTreeMap::from([(inner, run as i64), (k, nest.k as i64)]);
        extents.extend(over.map(|p| (p, count as i64)));
        let mut body = edit::place_axes(&stmts, &by, &extents);
        renamed.apply(&mut body);
        let value = Opnd::Val(renamed.vals.get(&operand.value).copied().unwrap_or(operand.value));
        let idx = if panels { vec![panel, Ix::Axis(k), Ix::Axis(inner)] } else { vec![Ix::Axis(inner), Ix::Axis(k)] };
        body.push(Stmt::Write { buf, idx, value });
        let along = |axis, extent: u64, body| free_loop(axis, Ix::Const(extent as i64), body);
        if !panels {
            return along(inner, run, vec![along(k, nest.k, body)]);
        }
        // Rows of memory are read from end to end.
        let row = match over {
            Some(p) => along(p, count, vec![along(inner, run, body)]),
            None => along(inner, run, body),
        };
        along(k, nest.k, vec![row])
    };
    let body = match (panels, extent % width) {
        (false, _) => vec![fill(0, 1, extent)],
        (true, 0) => vec![fill(0, extent / width, width)],
        // The last panel is not full.
        (true, rest) => vec![fill(0, extent / width, width), fill(extent / width, 1, rest)],
    };
    let stage = Stmt::Stage { buf, filled: Filled::Copied, body };

    let (own, k) = (Ix::Axis(own), Ix::Axis(nest.roles.k));
    let idx = if panels {
        let w = Ix::Const(width as i64);
        let first = if extent > width { Ix::floor_div(own.clone(), w.clone()) } else { Ix::Const(0) };
        let last = if extent > width { Ix::modulo(own, w) } else { own };
        vec![first, k, last]
    } else {
        vec![own, k]
    };
    Ok(Staged { depth, stage, at, read: Stmt::Read { dst: operand.value, buf, idx }, then: None })
}

/// The longest piece of an operand that lies side by side in memory along an axis, in elements; elements count that lie at most
/// `apart`.
fn piece(kernel: &Kernel, stmts: &[Stmt], (axis, extent): Extent, apart: i64, facts: &Refs) -> u64 {
    let of = |s: &Stmt| match s {
        Stmt::Load { mem, .. } => {
            let width = affine::panels(&mem.index, axis);
            let in_panel = width.map(|width| affine::in_panel(&mem.index, axis, width));
            let factor = affine::coef(in_panel.as_ref().unwrap_or(&mem.index), axis, &facts.vals_defined)?;
            let close = (1..=apart).contains(&factor.as_const()?);
            close.then(|| width.and_then(|w| u64::try_from(w).ok()).map_or(extent, |w| extent.min(w)))
        }
        Stmt::Read { buf, idx, .. } => {
            let along = affine::buf_stride(&kernel.bufs[*buf], idx, axis, &facts.vals_defined) == Stride::Unit;
            along.then_some(extent)
        }
        _ => None,
    };
    stmts.iter().filter_map(of).max().unwrap_or(0)
}

/// Why packing would gain nothing, if so.
fn fine_in_place(
    kernel: &Kernel,
    ctx: &Context,
    nest: &Nest,
    stmts: &[Stmt],
    left: bool,
    shape: TileShape,
    along_own: bool,
) -> Option<&'static str> {
    let knob = if left { ctx.knobs.stage_a } else { ctx.knobs.stage_b };
    let [only] = stmts else { return None };
    let plain = match only {
        Stmt::Load { mask, mem, .. } => mask.is_always() && mem.elem.bits() >= 8,
        Stmt::Read { .. } => true,
        _ => false,
    };
    // A vector of the right operand is read along n.
    if !plain || !(left || along_own) || knob == Some(true) {
        return None;
    }
    if knob == Some(false) {
        return Some("knob off");
    }
    let uses = if left { nest.n / shape.cols as u64 } else { nest.m.div_ceil(shape.rows as u64) };
    if uses <= 1 {
        return Some("each element is read once, in place");
    }
    if let Stmt::Load { mem, .. } = only {
        if !left && affine::panels(&mem.index, nest.roles.n).is_some_and(|w| w % shape.cols as i64 == 0) {
            return Some("it is in panels already");
        }
        if left && !along_own && nest.k >= LONG_ROW {
            return Some("its rows are read from end to end in place");
        }
    }
    if let Stmt::Read { buf, .. } = only {
        let bytes = kernel.bufs.get(*buf).map_or(u64::MAX, |b| b.shape.iter().product::<u64>() * b.element_bytes());
        if bytes <= ctx.target.cache(1) / 2 || left && !along_own {
            return Some("its buffer is small or already in order");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, context, kernel, refusals, schedule, text, with_knobs};

    const PLAIN: &str = r#"loop kernel k(A: ptr f32, B: ptr f32):
  local acc: f32[8, 32]
  for i in 0..8: free
    for j in 0..32: free
      for kk in 0..64: reduce contraction m=i n=j k=kk a=a b=b acc=acc
        a: f32 = load A[i*64 + kk]
        b: f32 = load B[kk*32 + j]
        c: f32 = acc[i, j]
        d: f32 = fma(a, b, c)
        acc[i, j] = d
"#;

    #[test]
    fn operands_read_once_or_lying_well_stay_in_place() {
        assert_eq!(
            refusals("stage_inputs", PLAIN, &context()),
            [
                "contraction into acc, operand a: each element is read once, in place",
                "contraction into acc, operand b: each element is read once, in place"
            ]
        );
        let local = PLAIN.replace("8, 32", "128, 128").replace("0..8", "0..128").replace("0..32", "0..128");
        let local = local.replace("  local acc", "  local x: f32[128, 64]\n  local y: f32[64, 32]\n  local acc");
        let local = local.replace("load A[i*64 + kk]", "x[i, kk]").replace("load B[kk*32 + j]", "y[kk, j]");
        let why = refusals("stage_inputs", &local, &context());
        assert!(why.iter().all(|w| w.ends_with("its buffer is small or already in order")), "{why:?}");
        let (out, _) = apply("stage_inputs", &kernel(&local), &with_knobs(&["stage_b=1"]));
        assert!(text(&out).contains("b_pack: f32[4, 64, 32]"), "{}", text(&out));
    }

    #[test]
    fn long_rows_and_ready_panels_stay_in_place() {
        let large = PLAIN.replace("8, 32", "128, 128").replace("0..8", "0..128").replace("0..32", "0..128");
        let panels = large.replace("B[kk*32 + j]", "B[(j//32)*2048 + kk*32 + j%32]");
        assert_eq!(
            refusals("stage_inputs", &panels, &context()),
            [
                "contraction into acc, operand a: its rows are read from end to end in place",
                "contraction into acc, operand b: it is in panels already"
            ]
        );
        let all = text(&schedule(&kernel(&panels), &context()));
        assert!(all.contains("load B[j1*2048 + kk*32 + j2_1]") && all.contains("j2_1 in 0..32"), "{all}");
        let short = large.replace("0..64", "0..32");
        let (out, log) = apply("stage_inputs", &kernel(&short), &context());
        assert_eq!(log.skipped, []);
        assert!(text(&out).contains("a_pack: f32[128, 32]"), "{}", text(&out));
    }

    #[test]
    fn what_depends_on_both_axes_or_is_ordered_stays() {
        let both =
            PLAIN.replace("A[i*64 + kk]", "A[i*64 + kk + j]").replace("0..8", "0..64").replace("8, 32", "64, 32");
        let why = refusals("stage_inputs", &both, &with_knobs(&["stage_b=0"]));
        assert_eq!(why[0], "contraction into acc, operand a: it depends on n");
        let ordered = PLAIN.replace("load A[i*64 + kk]", "load A[i*64 + kk] acquire");
        let why = refusals("stage_inputs", &ordered, &context());
        assert_eq!(why[0], "contraction into acc, operand a: its load is ordered");
    }

    #[test]
    fn a_stage_stands_inside_the_loops_its_operand_depends_on() {
        let batched = r#"loop kernel k(A: ptr f16, B: ptr f16):
  local acc: f32[4, 32, 64]
  for b in 0..4: free
    for i in 0..32: free
      for j in 0..64: free
        for kk in 0..16: reduce contraction m=i n=j k=kk a=x b=y acc=acc
          x: f16 = load A[b*512 + i*16 + kk]
          y: f16 = load B[kk*64 + j]
          x1: f32 = f32(x)
          y1: f32 = f32(y)
          c: f32 = acc[b, i, j]
          d: f32 = fma(x1, y1, c)
          acc[b, i, j] = d
"#;
        let (out, _) = apply("stage_inputs", &kernel(batched), &context());
        let out = text(&out);
        let lines: Vec<&str> = out.lines().filter(|l| l.contains("stage") || l.contains("for b")).collect();
        assert_eq!(
            lines,
            ["  stage b_pack: f32[2, 16, 32]:", "  for b in 0..4: free", "    stage a_pack: f32[32, 16]:"]
        );
    }
}
