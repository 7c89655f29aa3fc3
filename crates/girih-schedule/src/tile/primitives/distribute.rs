//! `distribute`: a free loop goes into the loops that stand in its body.
//!
//! ```text
//! for j in 0..256: free                          local s: f32[256]
//!   local s                                      local t_of: f32[256]
//!   s = 0.0                                      for j in 0..256: free
//!   for i in 0..64: reduce combine add(s)          s[j] = 0.0
//!     s <- x[i, j] + s                           for i in 0..64: reduce
//!   t = s / 64                            -->      for j in 0..256: free
//!   for i in 0..64: reduce combine max(g)            s[j] <- x[i, j] + s[j]
//!     g <- max(x[i, j] - t, g)                   for j in 0..256: free
//!   ...                                            t_of[j] = s[j] / 64
//!                                                ...
//! ```
//!
//! The body is cut at its loops, and what an iteration keeps for itself, or passes from one part to another, is an array with an
//! element, or a row of them, for each. A free loop of straight statements stays inside. Iterations of a free loop are independent, so
//! its parts may run one after the other, and each iteration keeps its order. Legal where no loop inside ends where an iteration says,
//! and the arrays have room.

use std::collections::{BTreeMap, BTreeSet};

use super::MOST_BYTES;
use super::line::{LoopRef, replace};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::edit::{self, at_most, new_axis};

pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    replace(kernel, at, &mut |kernel, f| {
        if !f.is_free_unplaced() || !f.lo.is_const(0) {
            return Err("it is not free, is placed already, or does not start at 0".into());
        }
        let extent = at_most(&f.hi).and_then(|n| u64::try_from(n).ok()).ok_or("its free loop has no constant bound")?;
        let mut own = vec![];
        let parts = Part::of(&f.body, &mut own)?;
        if !parts.iter().any(|p| !matches!(p, Part::Straight(_))) {
            return Err("no loop stands in it".into());
        }
        let mut passed = Passed { at: 0, home: BTreeMap::new(), arrays: BTreeMap::new() };
        bounds(&parts, f.axis, &refs(&f.body).vals_defined)?;
        passed.find(kernel, &parts, extent)?;
        for &b in &own {
            kernel.bufs[b].shape.push(extent);
        }
        let arrays: Vec<BufId> = own.iter().chain(passed.arrays.values()).copied().collect();
        let bytes = arrays.iter().map(|b| kernel.bufs[*b].bytes()).fold(0, u64::saturating_add);
        if bytes > MOST_BYTES {
            return Err(format!("what its iterations keep has {bytes} bytes; {MOST_BYTES} are the most"));
        }
        let mut made = Made { f, own: own.iter().copied().collect(), passed, at: 0, first: true };
        let mut out: Vec<Stmt> = arrays.into_iter().map(|buf| Stmt::Local { buf }).collect();
        out.extend(made.all(kernel, &parts));
        Ok(out)
    })
}

/// A piece of the loop's body.
enum Part<'a> {
    Straight(Vec<&'a Stmt>),
    /// A free loop of straight statements.
    Each(&'a For),
    /// Any other loop, with the pieces of its body.
    Around(&'a For, Vec<Part<'a>>),
}

impl<'a> Part<'a> {
    fn of(body: &'a [Stmt], own: &mut Vec<BufId>) -> Result<Vec<Part<'a>>, String> {
        let (mut out, mut straight) = (vec![], vec![]);
        for s in body {
            match s {
                Stmt::Local { buf } => own.push(*buf),
                Stmt::For(inner) if inner.place == Place::None && inner.stream.is_none() => {
                    out.push(Part::Straight(std::mem::take(&mut straight)));
                    let straight = inner.body.iter().all(is_straight);
                    out.push(match (inner.kind, straight) {
                        (LoopKind::Free, true) => Part::Each(inner),
                        (LoopKind::Free, false) => {
                            return Err("a free loop in it holds more than straight statements".into());
                        }
                        _ => Part::Around(inner, Part::of(&inner.body, own)?),
                    });
                }
                s if is_straight(s) => straight.push(s),
                _ => return Err("it holds more than loops, loads, arithmetic and stores".into()),
            }
        }
        out.push(Part::Straight(straight));
        out.retain(|p| !matches!(p, Part::Straight(body) if body.is_empty()));
        own.sort_unstable();
        Ok(out)
    }

    fn refs(&self) -> walk::Refs {
        match self {
            Part::Straight(body) => refs(&body.iter().map(|s| (*s).clone()).collect::<Vec<_>>()),
            Part::Each(f) | Part::Around(f, _) => refs(&f.body),
        }
    }
}

pub(super) fn is_straight(s: &Stmt) -> bool {
    edit::is_pure(s) || matches!(s, Stmt::Write { .. } | Stmt::Store { .. })
}

/// Refuses loops that end where an iteration of the outer one says.
fn bounds(parts: &[Part<'_>], axis: AxisId, defined: &BTreeSet<ValId>) -> Result<(), String> {
    for part in parts {
        let (Part::Each(f) | Part::Around(f, _)) = part else { continue };
        let all = [&f.lo, &f.hi, &f.step];
        if all.iter().any(|ix| ix.has_axis(axis)) {
            return Err("the bounds of its loops depend on each other".into());
        }
        if all.iter().any(|ix| ix.vals().iter().any(|v| defined.contains(v))) {
            return Err("a column decides how many rows are folded".into());
        }
        if let Part::Around(_, inner) = part {
            bounds(inner, axis, defined)?;
        }
    }
    Ok(())
}

/// The values that one part computes for another: each has an array with an element for each iteration.
struct Passed {
    at: usize,
    /// The part that computes a value.
    home: BTreeMap<ValId, usize>,
    arrays: BTreeMap<ValId, BufId>,
}

impl Passed {
    fn find(&mut self, kernel: &mut Kernel, parts: &[Part<'_>], extent: u64) -> Result<(), String> {
        for part in parts {
            if let Part::Around(_, inner) = part {
                self.find(kernel, inner, extent)?;
                continue;
            }
            let here = part.refs();
            for v in here.vals_used.iter().filter(|v| self.home.contains_key(v)) {
                let Val { ty, name } = kernel.vals[*v].clone();
                if !matches!(ty, Ty::Num(_)) {
                    return Err("a part of it passes a pointer to another".into());
                }
                let array = || kernel.bufs.push(Buf::new(format!("{name}_of"), ty, vec![extent]));
                self.arrays.entry(*v).or_insert_with(array);
            }
            self.home.extend(here.vals_defined.iter().map(|v| (*v, self.at)));
            self.at += 1;
        }
        Ok(())
    }
}

/// The loops that are made, one for each part.
struct Made<'a> {
    f: &'a For,
    own: BTreeSet<BufId>,
    passed: Passed,
    at: usize,
    first: bool,
}

impl Made<'_> {
    fn all(&mut self, kernel: &mut Kernel, parts: &[Part<'_>]) -> Vec<Stmt> {
        let mut out = vec![];
        for part in parts {
            let body: Vec<Stmt> = match part {
                Part::Around(f, inner) => {
                    let body = self.all(kernel, inner);
                    out.push(Stmt::For(Box::new(For { combine: None, contraction: None, body, ..(*f).clone() })));
                    continue;
                }
                Part::Straight(body) => body.iter().map(|s| (*s).clone()).collect(),
                Part::Each(f) => f.body.clone(),
            };
            let body = self.body(kernel, part, body);
            // Each loop gets an axis of its own; the first to need one keeps the old.
            let mut columns = For { body, ..self.f.clone() };
            if !std::mem::take(&mut self.first) {
                columns = over_new_axis(kernel, columns);
            }
            if let Part::Each(inner) = part {
                let each = For { body: columns.body, ..(*inner).clone() };
                columns.body = vec![Stmt::For(Box::new(each))];
            }
            out.push(Stmt::For(Box::new(columns)));
            self.at += 1;
        }
        out
    }

    /// The statements of a part, with what they get from others and pass on.
    fn body(&self, kernel: &mut Kernel, part: &Part<'_>, mut statements: Vec<Stmt>) -> Vec<Stmt> {
        let here = part.refs();
        let at = vec![Ix::Axis(self.f.axis)];
        let (mut out, mut renaming) = (vec![], walk::Renaming::default());
        let elsewhere = |v: &ValId| self.passed.home.get(v) != Some(&self.at);
        for (v, buf) in self.passed.arrays.iter().filter(|(v, _)| here.vals_used.contains(v) && elsewhere(v)) {
            let copy = kernel.vals[*v].clone();
            let dst = kernel.vals.push(copy);
            renaming.vals.insert(*v, dst);
            out.push(Stmt::Read { dst, buf: *buf, idx: at.clone() });
        }
        renaming.apply(&mut statements);
        out.extend(statements);
        for (v, buf) in self.passed.arrays.iter().filter(|(v, _)| !elsewhere(v)) {
            out.push(Stmt::Write { buf: *buf, idx: at.clone(), value: Opnd::Val(*v) });
        }
        for s in &mut out {
            if let Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } = s
                && self.own.contains(buf)
            {
                idx.push(Ix::Axis(self.f.axis));
            }
        }
        out
    }
}

/// Gives a loop a new axis with the name of its old one.
pub(super) fn over_new_axis(kernel: &mut Kernel, f: For) -> For {
    let fresh = new_axis(kernel, f.axis, "");
    let renaming = walk::Renaming { axes: BTreeMap::from([(f.axis, fresh)]), ..Default::default() };
    let mut body = f.body;
    renaming.apply(&mut body);
    For { axis: fresh, body, ..f }
}
