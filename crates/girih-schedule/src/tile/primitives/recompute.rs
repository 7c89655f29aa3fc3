//! `recompute`: each pass over a row computes its elements anew, and the row goes.
//!
//! ```text
//! local t: f32[65536]                              for i in 0..65536: reduce combine max(m)
//! for i in 0..65536: reduce combine max(m)           x: f32 = load src[i]
//!   x: f32 = load src[i]                             m <- max(x, m)
//!   t[i] = x                               -->     for j in 0..65536: reduce combine add(s)
//!   m <- max(x, m)                                   x_1: f32 = load src[j]
//! for j in 0..65536: reduce combine add(s)           s <- x_1 + s
//!   s <- t[j] + s
//! ```
//!
//! Legal where each pass writes the row as a whole or not at all, and its elements are computed and loaded from what does not change
//! between the pass that writes them and the last one that reads them.

use std::collections::{BTreeMap, BTreeSet};

use crate::loops::addresses::Origins;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};

pub fn apply(kernel: &mut Kernel, ctx: &Context, buf: BufId) -> Result<(), String> {
    *kernel = Recomputed::of(kernel, ctx, buf)?.kernel;
    Ok(())
}

/// A kernel without a row.
pub struct Recomputed {
    pub kernel: Kernel,
    /// How often the row was read and written in a pass.
    pub reads: u32,
    pub writes: u32,
    /// The statements that compute an element, once for each of the reads.
    pub again: Vec<Stmt>,
}

impl Recomputed {
    pub fn of(p: &Kernel, ctx: &Context, buf: BufId) -> Result<Recomputed, String> {
        let mut kernel = p.clone();
        let mut body = std::mem::take(&mut kernel.body);
        let mut done = Err("it is not a buffer of the kernel's own".to_string());
        walk::visit_bodies_mut(&mut body, &mut |list| {
            if !list.iter().any(|s| local(s) == Some(buf)) {
                return;
            }
            let mut row = Row {
                buf,
                origins: Origins::of(p),
                no_alias: ctx.assume.no_alias,
                inner: list.iter().flat_map(walk::bodies).flat_map(|body| walk::refs(body).vals_defined).collect(),
                copied: BTreeMap::new(),
                chains: vec![],
                at: 0,
                written: None,
                read_at: vec![],
                reads: 0,
                writes: 0,
                again: vec![],
            };
            done = row.recomputed(&mut kernel, list).map(|made| {
                *list = made;
                (row.reads, row.writes, row.again)
            });
        });
        let (reads, writes, again) = done?;
        kernel.body = body;
        Ok(Recomputed { kernel, reads, writes, again })
    }
}

fn local(s: &Stmt) -> Option<BufId> {
    if let Stmt::Local { buf } = s { Some(*buf) } else { None }
}

/// How the elements of the row are computed from a place of the list on.
#[derive(Clone)]
struct Chain {
    /// The pass that writes them.
    at: usize,
    /// The last pass that reads them.
    last: usize,
    /// A loop inside the pass that writes them reads them after another one has written them.
    inside: bool,
    idx: Vec<Ix>,
    stmts: Vec<Stmt>,
    value: Opnd,
}

struct Row {
    buf: BufId,
    origins: Origins,
    no_alias: bool,
    /// Values that only a part of the list has.
    inner: BTreeSet<ValId>,
    /// The original of each value that was copied.
    copied: BTreeMap<ValId, ValId>,
    chains: Vec<Chain>,
    /// The pass at hand: its place, the element that it has written, and the places that it reads.
    at: usize,
    written: Option<(Vec<Ix>, Opnd)>,
    read_at: Vec<Vec<Ix>>,
    reads: u32,
    writes: u32,
    again: Vec<Stmt>,
}

impl Row {
    /// The list without the row.
    fn recomputed(&mut self, kernel: &mut Kernel, list: &[Stmt]) -> Result<Vec<Stmt>, String> {
        let mut out = Vec::with_capacity(list.len());
        for (at, s) in list.iter().enumerate() {
            if local(s) == Some(self.buf) {
                continue;
            }
            if !self.is_mentioned(s) {
                out.push(s.clone());
                continue;
            }
            (self.at, self.written) = (at, None);
            self.read_at.clear();
            let mut one = vec![self.pass(kernel, s.clone(), &mut vec![])?];
            if let Some((idx, _)) = &self.written
                && self.read_at.iter().any(|at| at != idx)
            {
                return Err("a pass reads other elements than it writes".into());
            }
            edit::choose(&mut one);
            edit::drop_unused(&mut one);
            out.append(&mut one);
        }
        self.stays(kernel, list)?;
        Ok(out)
    }

    fn is_mentioned(&self, s: &Stmt) -> bool {
        walk::buffer_uses(std::slice::from_ref(s)).contains_key(&self.buf)
    }

    /// A loop over the row. `axes`: the loops around, with their extents.
    fn pass(&mut self, kernel: &mut Kernel, s: Stmt, axes: &mut Vec<(AxisId, Option<u64>)>) -> Result<Stmt, String> {
        let Stmt::For(mut f) = s else { return Err("it is used by other statements than loops".into()) };
        if f.place != Place::None || f.contraction.is_some() || f.stream.is_some() {
            return Err("a product reads it".into());
        }
        axes.push((f.axis, const_trip(&f).filter(|_| f.counts_from_zero())));
        let body = std::mem::take(&mut f.body);
        for s in body {
            match s {
                Stmt::Read { dst, buf, idx } if buf == self.buf => self.read(kernel, dst, idx, axes, &mut f.body)?,
                Stmt::Write { buf, idx, value } if buf == self.buf => self.write(kernel, idx, value, &f.body, axes)?,
                s if self.is_mentioned(&s) => {
                    let inner = self.pass(kernel, s, axes)?;
                    f.body.push(inner);
                }
                s => f.body.push(s),
            }
        }
        axes.pop();
        Ok(Stmt::For(f))
    }

    fn read(
        &mut self,
        kernel: &mut Kernel,
        dst: ValId,
        idx: Vec<Ix>,
        axes: &[(AxisId, Option<u64>)],
        out: &mut Vec<Stmt>,
    ) -> Result<(), String> {
        self.reads += 1;
        let is_open = |ix: &Ix| axes.iter().any(|(a, _)| *ix == Ix::Axis(*a));
        let mut inside = false;
        if let Some((at, value)) = &self.written {
            // Loops around the write that still go on have written no other elements yet.
            let others = at.iter().zip(&idx).any(|(at, ix)| at != ix && (is_open(at) || matches!(at, Ix::Const(_))));
            if others {
                return Err("a pass reads other elements than it writes".into());
            }
            inside = at.iter().any(|at| matches!(at, Ix::Axis(_)) && !is_open(at));
            if !inside {
                out.push(edit::copy_of(dst, *value));
                return Ok(());
            }
        }
        let at = self.at;
        let Some(chain) = self.chains.last_mut() else { return Err("it is read before it is written".into()) };
        chain.last = at;
        chain.inside |= inside;
        let renaming = walk::Renaming::fresh(kernel, &chain.stmts);
        let mut copy = chain.stmts.clone();
        renaming.apply(&mut copy);
        let place = |a: AxisId| chain.idx.iter().position(|ix| *ix == Ix::Axis(a));
        walk::subst_axes(&mut copy, &mut |a| place(a).and_then(|d| idx.get(d).cloned()));
        let value = match chain.value {
            Opnd::Val(v) => Opnd::Val(renaming.vals.get(&v).copied().unwrap_or(v)),
            constant => constant,
        };
        self.again.extend(chain.stmts.iter().cloned());
        for (from, to) in renaming.vals {
            self.inner.insert(to);
            self.copied.insert(to, from);
        }
        if !inside {
            self.read_at.push(idx);
        }
        out.append(&mut copy);
        out.push(edit::copy_of(dst, value));
        Ok(())
    }

    /// From here on elements are what `body` computes.
    fn write(
        &mut self,
        kernel: &Kernel,
        idx: Vec<Ix>,
        value: Opnd,
        body: &[Stmt],
        axes: &[(AxisId, Option<u64>)],
    ) -> Result<(), String> {
        self.writes += 1;
        let shape = &kernel.bufs[self.buf].shape;
        let counts = |(ix, &extent): (&Ix, &u64)| match ix {
            Ix::Axis(a) => axes.contains(&(*a, Some(extent))),
            _ => extent == 1 && ix.is_const(0),
        };
        let named: BTreeSet<&Ix> = idx.iter().filter(|ix| matches!(ix, Ix::Axis(_))).collect();
        let is_whole = idx.len() == shape.len() && named.len() == axes.len() && idx.iter().zip(shape).all(counts);
        if !is_whole || self.written.is_some() {
            return Err("it is not written as a whole".into());
        }
        let stmts = self.slice(body, value)?;
        self.chains.push(Chain { at: self.at, last: self.at, inside: false, idx: idx.clone(), stmts, value });
        self.written = Some((idx, value));
        Ok(())
    }

    /// The statements of a body that a value is made of.
    fn slice(&self, body: &[Stmt], value: Opnd) -> Result<Vec<Stmt>, String> {
        let mut needed: BTreeSet<ValId> = if let Opnd::Val(v) = value { BTreeSet::from([v]) } else { BTreeSet::new() };
        let mut out = vec![];
        for s in body.iter().rev() {
            if walk::def(s).is_none_or(|v| !needed.remove(&v)) {
                continue;
            }
            if !edit::is_pure(s) {
                return Err("its elements are not only computed and loaded".into());
            }
            needed.extend(walk::refs_of(s).vals_used);
            out.push(s.clone());
        }
        if !needed.is_disjoint(&self.inner) {
            return Err("its elements are made of what only one of its loops has".into());
        }
        out.reverse();
        Ok(out)
    }

    /// Refuses a row whose operands change between the pass that writes it and the last one that reads it.
    fn stays(&self, kernel: &Kernel, list: &[Stmt]) -> Result<(), String> {
        for chain in &self.chains {
            if chain.last == chain.at && !chain.inside {
                continue;
            }
            let passes = list.get(chain.at..=chain.last).unwrap_or_default();
            let effects = walk::effects(passes);
            let used = walk::refs(&chain.stmts);
            if let Some(buf) = effects.bufs_written.intersection(&used.bufs_read).next() {
                return Err(format!("`{}`, which its elements are made of, changes", kernel.bufs[*buf].name));
            }
            let loads = walk::effects(&chain.stmts).loads;
            if loads.is_empty() {
                continue;
            }
            if effects.ordered || effects.atomic {
                return Err("an ordered access comes between its passes".into());
            }
            if effects.stores.iter().any(|s| loads.iter().any(|l| !self.are_apart(*l, *s))) {
                return Err("the kernel may store to what its elements are loaded from".into());
            }
        }
        Ok(())
    }

    /// Returns true if no access through one address can touch memory that the other reaches.
    fn are_apart(&self, a: ValId, b: ValId) -> bool {
        let original = |mut v: ValId| {
            while let Some(&from) = self.copied.get(&v) {
                v = from;
            }
            self.origins.only(v)
        };
        let (Some(a), Some(b)) = (original(a), original(b)) else { return false };
        a != b && self.no_alias
    }
}
