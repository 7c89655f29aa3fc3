//! `prefetch`: each iteration of a loop asks for memory that it reads some iterations later.
//!
//! ```text
//! for kk in 0..256: reduce                         for kk in 0..256: reduce
//!   for j in 0..32: free vector(16)                  prefetch B[(kk + 16)*4096 + jb*32]
//!     b: f32 = load B[kk*4096 + jb*32 + j]   -->     prefetch B[(kk + 16)*4096 + jb*32 + 16]
//!     ..                                             for j in 0..32: free vector(16)
//!                                                      b: f32 = load B[kk*4096 + jb*32 + j]
//!                                                      ..
//! ```
//!
//! It asks for whole pieces, of the lengths that are worth it, which lie further apart than a processor foresees. In a serial loop
//! whose stages read rows that a table gives, each row asks for its piece of a later step. Legal everywhere: memory that is asked
//! for need not exist.

pub mod panel;
pub mod passes;

use std::collections::{BTreeMap, BTreeSet};

use super::line::{LoopRef, replace};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::Context;
use crate::tile::affine;
use crate::tile::edit::most_trips;
use crate::tile::heuristics::prefetch::{FORESEEN, LONGEST, LONGEST_IN_TILE, PAGES};
use crate::tile::lines::{LINE, PERIOD};
use crate::tile::target::Capability;

pub fn apply(kernel: &mut Kernel, ctx: &Context, at: LoopRef, ahead: u32) -> Result<(), String> {
    has_caches(ctx)?;
    let cache = ctx.target.cache(1);
    replace(kernel, at, &mut |kernel, f| {
        let mut new = f.clone();
        let mut asked: Vec<Stmt> = vec![];
        for piece in far_pieces(f, cache) {
            asked.extend(piece.prefetches(f.axis, ahead));
        }
        let mut done: Vec<Stmt> = vec![];
        asked.retain(|s| {
            !done.contains(s) && {
                done.push(s.clone());
                true
            }
        });
        if asked.is_empty() && ask_in_rows(kernel, &mut new, ahead).is_empty() {
            return Err("it reads no pieces of memory that lie far apart and are known beforehand".into());
        }
        new.body.splice(0..0, asked);
        Ok(vec![Stmt::For(Box::new(new))])
    })
}

/// Returns an error if prefetches mean nothing to a machine.
fn has_caches(ctx: &Context) -> Result<(), String> {
    if ctx.target.has(Capability::Caches) {
        return Ok(());
    }
    Err(format!("{} has no caches that are asked", ctx.target.name))
}

/// Lets each iteration of a loop begin with prefetches.
fn ask_first(kernel: &mut Kernel, at: LoopRef, asked: &[Stmt]) -> Result<(), String> {
    replace(kernel, at, &mut |_, f| {
        let body = [asked, &f.body].concat();
        Ok(vec![Stmt::For(Box::new(For { body, ..f.clone() }))])
    })
}

/// True if a loop begins with prefetches: it gets no more.
fn asks_already(f: &For) -> bool {
    matches!(f.body.first(), Some(Stmt::Prefetch { .. }))
}

/// Memory side by side that one iteration of a loop reads.
pub struct Piece<'a> {
    mem: &'a Mem,
    inner: Vec<(AxisId, u64)>,
    pub bytes: u64,
}

impl Piece<'_> {
    /// The memory, and the index at which a loop's first iteration reads it.
    pub fn start(&self, f: &For) -> Option<(ValId, Ix)> {
        let lo = Ix::Const(f.lo.as_const()?);
        let start = first(self.mem, &self.inner).subst_axes(&mut |a| (a == f.axis).then(|| lo.clone()));
        Some((self.mem.base, start))
    }

    /// A prefetch for each line of what the iteration that comes so much later reads.
    fn prefetches(&self, axis: AxisId, ahead: u32) -> Vec<Stmt> {
        let later = &mut |a| (a == axis).then(|| Ix::Axis(a) + Ix::Const(ahead.into()));
        let start = first(self.mem, &self.inner).subst_axes(later);
        lines(self.mem, &start, self.bytes).collect()
    }
}

/// The index of the first element that inner loops load.
fn first(mem: &Mem, inner: &[(AxisId, u64)]) -> Ix {
    mem.index.subst_axes(&mut |a| inner.iter().any(|(axis, _)| *axis == a).then_some(Ix::Const(0)))
}

/// A prefetch for each line of `bytes` bytes of memory, from the element `start` on.
fn lines(mem: &Mem, start: &Ix, bytes: u64) -> impl Iterator<Item = Stmt> {
    (0..bytes.div_ceil(LINE)).map(move |n| {
        let index = Ix::add(start.clone(), Ix::Const((n * LINE / mem.elem.bytes()) as i64));
        Stmt::Prefetch { mem: Mem { index, ..mem.clone() } }
    })
}

/// The pieces that a loop reads in each of its iterations and that the processor does not follow. They lie far apart, or in a register
/// tile's panel of several pages, since the processor stops following at the end of a page.
pub fn far_pieces<'a>(f: &'a For, cache: u64) -> Vec<Piece<'a>> {
    if asks_already(f) {
        return vec![];
    }
    let Some(trips) = most_trips(f).filter(|_| f.place == Place::None) else { return vec![] };
    let varying = refs(&f.body).vals_defined;
    let in_tile = sums_in_registers(f);
    let longest = if in_tile { LONGEST_IN_TILE } else { LONGEST };
    let mut found: Vec<Read<'a>> = vec![];
    loads(&f.body, &mut vec![], &mut found);
    let piece = |(mem, inner): Read<'a>| {
        let bytes = mem.elem.bytes();
        let stride = affine::coef(&mem.index, f.axis, &varying)?;
        let of_piece = piece(&mem.index, &inner)? * bytes;
        // A stride that only the launch knows may be far.
        let far = stride.as_const().is_none_or(|n| {
            let apart = n.unsigned_abs().saturating_mul(bytes);
            let all = apart.saturating_mul(trips);
            apart > FORESEEN && all > 2 * cache || in_tile && apart == of_piece && all >= PAGES * PERIOD
        });
        (far && (LINE..=longest).contains(&of_piece)).then_some(Piece { mem, inner, bytes: of_piece })
    };
    found.into_iter().filter_map(piece).collect()
}

/// True if a loop goes through the terms of a register tile.
pub fn sums_in_registers(f: &For) -> bool {
    let of_term = |s: &Stmt| match s {
        Stmt::Local { .. } => true,
        Stmt::For(inner) => sums_in_registers(inner),
        _ => false,
    };
    f.kind == LoopKind::Reduce && f.body.iter().any(of_term)
}

/// Lets rows that the stages of a serial loop read where a table says ask for their pieces of a later step, if each row goes on there.
/// Gives the loops over such rows.
pub fn ask_in_rows(kernel: &mut Kernel, steps: &mut For, ahead: u32) -> Vec<AxisId> {
    if steps.kind != LoopKind::Serial {
        return vec![];
    }
    let mut asking = vec![];
    let stages = steps.body.iter_mut().filter_map(|s| if let Stmt::Stage { body, .. } = s { Some(body) } else { None });
    for s in stages.flatten() {
        let Stmt::For(rows) = s else { continue };
        let later = later_pieces(kernel, steps.axis, rows, ahead);
        if !later.is_empty() {
            asking.push(rows.axis);
            rows.body.splice(0..0, later);
        }
    }
    asking
}

/// The prefetches of what each iteration of `rows` reads in a later iteration of the loop over `step`, behind the entries of the
/// tables that they need.
fn later_pieces(kernel: &mut Kernel, step: AxisId, rows: &For, ahead: u32) -> Vec<Stmt> {
    let (mut asked, mut found): (Vec<Stmt>, Vec<Read<'_>>) = (vec![], vec![]);
    if rows.place != Place::None || matches!(rows.body.first(), Some(Stmt::Read { .. } | Stmt::Prefetch { .. })) {
        return vec![];
    }
    loads(&rows.body, &mut vec![], &mut found);
    let (own, mut done) = (refs(&rows.body).vals_defined, vec![]);
    for (mem, inner) in found {
        let goes_on = mem.index.linear(step).and_then(|(by, _)| u64::try_from(by.as_const()?).ok());
        let bytes = piece(&mem.index, &inner).filter(|n| Some(*n) == goes_on).map(|n| n * mem.elem.bytes());
        let Some(bytes) = bytes.filter(|n| (LINE..=LONGEST).contains(n) && !done.contains(&mem)) else { continue };
        let Some(entries) = entries(kernel, rows, &mem.index, &own, &inner) else { continue };
        done.push(mem);
        let index = mem.index.subst_vals(&mut |v, zext| {
            entries.iter().find(|(of, ..)| *of == v).map(|(_, val, _)| Ix::Val { val: *val, zext })
        });
        asked.extend(entries.into_iter().map(|(.., read)| read));
        let mem = &Mem { index, ..mem.clone() };
        asked.extend(Piece { mem, inner, bytes }.prefetches(step, ahead));
    }
    asked
}

/// A value of a body, its copy, and the read that makes the copy.
type Entry = (ValId, ValId, Stmt);

/// Copies of the entries of tables that an index mentions; `None` if it mentions none, or another value of the body.
fn entries(
    kernel: &mut Kernel,
    rows: &For,
    index: &Ix,
    own: &BTreeSet<ValId>,
    inner: &[(AxisId, u64)],
) -> Option<Vec<Entry>> {
    let wanted: Vec<ValId> = index.vals().into_iter().filter(|v| own.contains(v)).collect();
    let mut reads = BTreeMap::new();
    walk::visit(&rows.body, &mut |s| {
        if let Stmt::Read { dst, buf, idx } = s
            && !idx.iter().any(|ix| !ix.vals().is_empty() || inner.iter().any(|(a, _)| ix.has_axis(*a)))
        {
            reads.insert(*dst, (*buf, idx.clone()));
        }
    });
    let entry = |v: &ValId| {
        let (buf, idx) = reads.get(v).cloned()?;
        let val = kernel.vals.push(kernel.vals[*v].clone());
        Some((*v, val, Stmt::Read { dst: val, buf, idx }))
    };
    let found: Option<Vec<Entry>> = wanted.iter().map(entry).collect();
    found.filter(|found| !found.is_empty())
}

/// A load of whole bytes, and the loops around it with their iterations.
type Read<'a> = (&'a Mem, Vec<(AxisId, u64)>);

/// The loads in a body, but for those in loops whose iterations are not known.
fn loads<'a>(body: &'a [Stmt], inner: &mut Vec<(AxisId, u64)>, out: &mut Vec<Read<'a>>) {
    for s in body {
        match s {
            Stmt::Load { mem, order: Order::Weak, .. } if mem.elem.bits() >= 8 => out.push((mem, inner.clone())),
            Stmt::For(l) => {
                let Some(trips) = most_trips(l) else { continue };
                inner.push((l.axis, trips));
                loads(&l.body, inner, out);
                inner.pop();
            }
            _ => {}
        }
    }
}

/// How many elements side by side the inner loops read, where these are all.
fn piece(index: &Ix, inner: &[(AxisId, u64)]) -> Option<u64> {
    let mut steps = BTreeMap::<u64, u64>::new();
    for (axis, trips) in inner {
        match index.linear(*axis)?.0.as_const()? {
            0 => {}
            step @ 1.. => *steps.entry(step as u64).or_insert(1) *= trips,
            _ => return None,
        }
    }
    let mut wide = 1u64;
    for (step, trips) in steps {
        if step > wide {
            return None;
        }
        wide = wide.max(step.checked_mul(trips.checked_sub(1)?)?.checked_add(wide)?);
    }
    Some(wide)
}
