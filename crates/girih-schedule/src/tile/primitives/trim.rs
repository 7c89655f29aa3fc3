//! `trim`: loops that fill a buffer end where nothing of it is read any more.
//!
//! ```text
//! for i1 in 0..4: free                             for i1 in 0..min(4, (n + 7)//8): free
//!   for i2 in 0..8: free                             for i2 in 0..8: free
//!     acc[i1*8 + i2] = ..                     -->      acc[i1*8 + i2] = ..
//! for i in 0..min(32, n): free                     for i in 0..min(32, n): free
//!   store C[i] = acc[i]                              store C[i] = acc[i]
//! ```
//!
//! Legal of free loops around others that only write to buffers of the tile, where every buffer is read to one known end.

use std::collections::{BTreeMap, BTreeSet};

use super::Names;
use super::line::{LoopRef, change};
use super::split::Pieces;
use crate::index::{Cmp, Cond, Facts, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::heuristics::trim::LONGEST;

/// Ends the loops; one that has no iteration left is gone.
pub fn apply(kernel: &mut Kernel, loops: &[LoopRef]) -> Result<(), String> {
    let ends = ends(kernel, &|f| loops.iter().any(|at| at.axis == f.axis));
    let mut gone = BTreeSet::new();
    for at in loops {
        let (_, end) = ends.iter().find(|(own, _)| own == at).ok_or("all that it fills is read, or it does more")?;
        change(kernel, &[*at], &mut |_, _| Ok(()), &mut |f| {
            f.hi = end.clone();
            if f.lo == f.hi {
                gone.insert(f.axis);
            }
        })?;
    }
    walk::visit_bodies_mut(&mut kernel.body, &mut |body| {
        body.retain(|s| !matches!(s, Stmt::For(f) if gone.contains(&f.axis) && f.lo == f.hi));
    });
    Ok(())
}

/// The earlier ends of the loops that `which` selects.
pub fn ends(kernel: &Kernel, which: &dyn Fn(&For) -> bool) -> Vec<(LoopRef, Ix)> {
    let mut facts = kernel.facts();
    for f in walk::loops(&kernel.body) {
        facts.set_axis(f.axis, &f.lo, &f.hi);
    }
    let (all, names) = (Buffers::of(kernel), Names::of(kernel));
    let found = all.fills.iter().filter(|(f, _)| which(f)).filter_map(|(f, buffers)| {
        let end = all.end(kernel, f, buffers, &facts)?;
        Some((names.name(f)?, end))
    });
    found.collect()
}

/// The common value of all, at least one; `None` if one is not known or differs.
fn same(mut all: impl Iterator<Item = Option<Ix>>) -> Option<Ix> {
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// One read or write of a buffer, and the loops around it.
struct Access<'a> {
    idx: &'a [Ix],
    around: Vec<&'a For>,
}

/// How a kernel uses a buffer.
#[derive(Default)]
struct Uses<'a> {
    /// The axes of the loops that it is declared in.
    scope: BTreeSet<AxisId>,
    reads: Vec<Access<'a>>,
    writes: Vec<Access<'a>>,
    /// It is used in another way too.
    otherwise: bool,
}

struct Buffers<'a> {
    uses: BTreeMap<BufId, Uses<'a>>,
    /// Loops with a constant end that hold others, with the buffers from outside that they write.
    fills: Vec<(&'a For, BTreeSet<BufId>)>,
}

impl<'a> Buffers<'a> {
    fn of(kernel: &'a Kernel) -> Buffers<'a> {
        let mut all = Buffers { uses: BTreeMap::new(), fills: vec![] };
        all.list(&kernel.body, &mut vec![]);
        all
    }

    fn list(&mut self, body: &'a [Stmt], around: &mut Vec<&'a For>) {
        for s in body {
            let access = |idx: &'a [Ix]| Access { idx, around: around.clone() };
            match s {
                Stmt::Read { buf, idx, .. } => self.uses.entry(*buf).or_default().reads.push(access(idx)),
                Stmt::Write { buf, idx, .. } => self.uses.entry(*buf).or_default().writes.push(access(idx)),
                _ => walk::parts(s, &mut |part| match part {
                    walk::Part::DefBuf(buf) => {
                        self.uses.entry(*buf).or_default().scope = around.iter().map(|f| f.axis).collect();
                    }
                    walk::Part::ReadBuf(buf) | walk::Part::WriteBuf(buf) => {
                        self.uses.entry(*buf).or_default().otherwise = true;
                    }
                    _ => {}
                }),
            }
            let Stmt::For(f) = s else {
                walk::bodies(s).into_iter().for_each(|inner| self.list(inner, around));
                continue;
            };
            around.push(f);
            self.list(&f.body, around);
            around.pop();
            let nest = f.hi.as_const().is_some() && f.body.iter().any(|s| !walk::bodies(s).is_empty());
            if nest && f.is_free_unplaced() {
                let refs = walk::refs(&f.body);
                self.fills.push((f, refs.bufs_written.difference(&refs.bufs_defined).copied().collect()));
            }
        }
    }

    fn end(&self, kernel: &Kernel, f: &For, buffers: &BTreeSet<BufId>, facts: &Facts) -> Option<Ix> {
        let does = walk::effects(&f.body);
        if buffers.is_empty() || !does.stores.is_empty() || does.ordered || does.prints || does.traps || does.leaves {
            return None;
        }
        let ends = buffers.iter().map(|buf| self.uses.get(buf)?.end(kernel, f, facts));
        let end = same(ends)?;
        if end == f.lo {
            return Some(end);
        }
        let all = Cond::new(end.clone(), Cmp::Ge, f.hi.clone());
        let end = simplify(&Ix::min(f.hi.clone(), end), facts);
        // It does not end before it begins.
        let end = if f.lo.is_const(0) { end } else { Ix::max(f.lo.clone(), end) };
        (facts.decide(&all) != Some(true) && end != f.hi && end.size() <= LONGEST).then_some(end)
    }
}

impl Uses<'_> {
    /// How many iterations of a loop write what is read outside of it.
    fn end(&self, kernel: &Kernel, f: &For, facts: &Facts) -> Option<Ix> {
        let is_inside = |a: &&Access<'_>| a.around.iter().any(|l| l.axis == f.axis);
        if self.otherwise || self.scope.contains(&f.axis) {
            return None;
        }
        let inside: Vec<&Access<'_>> = self.reads.iter().chain(&self.writes).filter(is_inside).collect();
        // One dimension goes by tiles of the loop: each iteration alone reads and writes its tile.
        let rank = inside.first()?.idx.len();
        let tile = |d: usize| {
            let of = |a: &&Access<'_>| {
                let (by, rest) = a.idx.get(d)?.linear(f.axis)?;
                let (by, range) = (by.as_const().filter(|by| *by > 0)?, facts.range(&rest));
                (range.lo >= 0 && range.hi < i128::from(by)).then_some(by)
            };
            let by = of(inside.first()?)?;
            inside.iter().all(|a| of(a) == Some(by)).then_some((d, by))
        };
        let (d, by) = (0..rank).find_map(tile)?;
        let reads = self.reads.iter().filter(|a| !is_inside(a));
        let end = same(reads.map(|read| self.behind(kernel, read, read.idx.get(d)?, facts)))?;
        Some(if by == 1 { end } else { Pieces::new(end, by).count_to_ends(facts) })
    }

    /// A bound that an index of a read always stays below, if it is known where the buffer is declared.
    fn behind(&self, kernel: &Kernel, read: &Access<'_>, index: &Ix, facts: &Facts) -> Option<Ix> {
        let known = |ix: &Ix| {
            let param = |v: &ValId| kernel.params.iter().any(|p| p.val == *v);
            ix.axes().iter().all(|a| self.scope.contains(a)) && ix.vals().iter().all(param)
        };
        let own = read.around.iter().find(|f| *index == Ix::Axis(f.axis) && !self.scope.contains(&f.axis));
        if let Some(f) = own {
            return known(&f.hi).then(|| f.hi.clone());
        }
        let mut last = index.clone();
        for f in read.around.iter().rev() {
            if self.scope.contains(&f.axis) || !last.has_axis(f.axis) {
                continue;
            }
            let (by, rest) = last.linear(f.axis)?;
            by.as_const().filter(|by| *by > 0)?;
            last = Ix::add(Ix::mul(Ix::sub(f.hi.clone(), Ix::Const(1)), by), rest);
        }
        known(&last).then(|| simplify(&Ix::add(last, Ix::Const(1)), facts))
    }
}
