//! Queries and rewrites of statement trees that every pass over Loop IR and Tile IR needs.
//!
//! [`parts`] lists the parts of one statement itself (not its bodies), [`bodies`] its bodies, both by the table of
//! [`super::statements`]; the rest is made of these two. Analyses: [`refs`] (the ids that a statement list defines and uses), [`buffer_uses`], [`effects`]. Rewrites:
//! [`subst_axes`], [`subst_vals`], [`Renaming`].

use std::collections::{BTreeMap, BTreeSet};

use super::ir::*;
use super::kinds::{Kind, Tested};
pub use super::kinds::{Part, PartMut};
use super::statements::{each, each_mut};
use crate::base::work::look;

/// The values, axes, buffers and expressions that the statement itself mentions, uses before definitions; its bodies are not
/// entered.
pub fn parts<'s>(stmt: &'s Stmt, f: &mut dyn FnMut(Part<'s>)) {
    look();
    each(stmt, &mut |part| match part {
        Part::Mask(mask) => Tested::parts(mask, &mut |part| f(part)),
        Part::Site(_) | Part::Body(_) => {}
        part => f(part),
    });
}

/// The same to change, in order of the text.
pub fn parts_mut<'s>(stmt: &'s mut Stmt, f: &mut dyn FnMut(PartMut<'s>)) {
    look();
    each_mut(stmt, &mut |part| match part {
        PartMut::Mask(mask) => Tested::parts_mut(mask, &mut |part| f(part)),
        PartMut::Site(_) | PartMut::Body(_) => {}
        part => f(part),
    });
}

/// The statement's bodies, in order of the text.
pub fn bodies(stmt: &Stmt) -> Vec<&Vec<Stmt>> {
    look();
    let mut out = vec![];
    each(stmt, &mut |part| out.extend(if let Part::Body(body) = part { Some(body) } else { None }));
    out
}

/// The same to change.
pub fn bodies_mut(stmt: &mut Stmt) -> Vec<&mut Vec<Stmt>> {
    look();
    let mut out = vec![];
    each_mut(stmt, &mut |part| out.extend(if let PartMut::Body(body) = part { Some(body) } else { None }));
    out
}

fn find<'s, T>(stmt: &'s Stmt, f: impl Fn(Part<'s>) -> Option<T>) -> Option<T> {
    let mut found = None;
    each(stmt, &mut |part| found = found.take().or(f(part)));
    found
}

/// The value the statement defines.
pub fn def(stmt: &Stmt) -> Option<ValId> {
    find(stmt, |part| if let Part::DefVal(v) = part { Some(*v) } else { None })
}

/// The statement's mask.
pub fn mask(stmt: &Stmt) -> Option<&Mask> {
    find(stmt, |part| if let Part::Mask(mask) = part { Some(mask) } else { None })
}

/// The statement's mask, to change.
pub fn mask_mut(stmt: &mut Stmt) -> Option<&mut Mask> {
    let mut found = None;
    each_mut(stmt, &mut |part| found = if let PartMut::Mask(mask) = part { Some(mask) } else { found.take() });
    found
}

/// The source operation of a statement that can trap, print or be reported.
pub fn site(stmt: &Stmt) -> Option<SiteId> {
    find(stmt, |part| if let Part::Site(site) = part { Some(*site) } else { None })
}

/// Every statement, before its bodies.
pub fn visit<'a>(body: &'a [Stmt], f: &mut dyn FnMut(&'a Stmt)) {
    for stmt in body {
        f(stmt);
        for inner in bodies(stmt) {
            visit(inner, f);
        }
    }
}

/// All statements, each before those of its bodies.
pub fn stmts(body: &[Stmt]) -> impl Iterator<Item = &Stmt> {
    let mut left = vec![body.iter()];
    std::iter::from_fn(move || {
        loop {
            let Some(s) = left.last_mut()?.next() else {
                left.pop();
                continue;
            };
            left.extend(bodies(s).into_iter().rev().map(|inner| inner.iter()));
            return Some(s);
        }
    })
}

/// All loops over axes, outer ones first.
pub fn loops(body: &[Stmt]) -> impl Iterator<Item = &For> {
    stmts(body).filter_map(|s| if let Stmt::For(f) = s { Some(&**f) } else { None })
}

/// The contractions among all loops.
pub fn contractions(body: &[Stmt]) -> impl Iterator<Item = (&For, &Contraction)> {
    loops(body).filter_map(|f| Some((f, f.contraction.as_ref()?)))
}

/// How many statements there are, those of bodies included.
pub fn size(body: &[Stmt]) -> usize {
    stmts(body).count()
}

/// Every statement, before its bodies.
pub fn visit_mut(body: &mut [Stmt], f: &mut dyn FnMut(&mut Stmt)) {
    for stmt in body {
        f(stmt);
        for inner in bodies_mut(stmt) {
            visit_mut(inner, f);
        }
    }
}

/// Every statement list, inner ones first, this one last.
pub fn visit_bodies_mut(body: &mut Vec<Stmt>, f: &mut dyn FnMut(&mut Vec<Stmt>)) {
    for stmt in body.iter_mut() {
        for inner in bodies_mut(stmt) {
            visit_bodies_mut(inner, f);
        }
    }
    f(body);
}

/// Calls `f` on every value the statement itself reads (operands, masks, index expressions, bases); roles excluded.
pub fn each_use(stmt: &Stmt, f: &mut dyn FnMut(ValId)) {
    parts(stmt, &mut |part| match part {
        Part::UseVal(v) => f(*v),
        Part::Opnd(Opnd::Val(v)) => f(*v),
        Part::Ix(ix) => ix.for_each_leaf(&mut |leaf| {
            if let Ix::Val { val, .. } = leaf {
                f(*val);
            }
        }),
        _ => {}
    });
}

/// The positions of the statements of a list that some values are computed by, in order.
pub fn slice<'a>(list: impl DoubleEndedIterator<Item = &'a Stmt> + ExactSizeIterator, of: &[ValId]) -> Vec<usize> {
    let mut wanted: BTreeSet<ValId> = of.iter().copied().collect();
    let mut out = vec![];
    for (at, s) in list.enumerate().rev() {
        if def(s).is_some_and(|v| wanted.contains(&v)) {
            each_use(s, &mut |v| _ = wanted.insert(v));
            out.push(at);
        }
    }
    out.reverse();
    out
}

/// The values, axes and buffers that a statement list defines and uses, bodies included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refs {
    pub vals_defined: BTreeSet<ValId>,
    pub vals_used: BTreeSet<ValId>,
    pub axes_defined: BTreeSet<AxisId>,
    pub axes_used: BTreeSet<AxisId>,
    pub bufs_defined: BTreeSet<BufId>,
    pub bufs_read: BTreeSet<BufId>,
    pub bufs_written: BTreeSet<BufId>,
}

impl Refs {
    fn stmt(&mut self, stmt: &Stmt) {
        each_use(stmt, &mut |v| {
            self.vals_used.insert(v);
        });
        parts(stmt, &mut |part| match part {
            Part::DefVal(v) => drop(self.vals_defined.insert(*v)),
            Part::DefAxis(a) => drop(self.axes_defined.insert(*a)),
            Part::DefBuf(b) => drop(self.bufs_defined.insert(*b)),
            Part::ReadBuf(b) => drop(self.bufs_read.insert(*b)),
            Part::WriteBuf(b) => drop(self.bufs_written.insert(*b)),
            Part::Ix(ix) => ix.for_each_leaf(&mut |leaf| {
                if let Ix::Axis(a) = leaf {
                    self.axes_used.insert(*a);
                }
            }),
            _ => {}
        });
    }
}

pub fn refs(body: &[Stmt]) -> Refs {
    let mut out = Refs::default();
    visit(body, &mut |s| out.stmt(s));
    out
}

/// As [`refs`], of one statement and its bodies.
pub fn refs_of(stmt: &Stmt) -> Refs {
    refs(std::slice::from_ref(stmt))
}

/// How often a buffer is mentioned in the text of a statement list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufUse {
    pub declared: u32,
    pub reads: u32,
    pub writes: u32,
    /// Printed whole; also counted in `reads`.
    pub printed: u32,
    /// Named by a combine, a contraction or a register tile.
    pub roles: u32,
}

pub fn buffer_uses(body: &[Stmt]) -> BTreeMap<BufId, BufUse> {
    let mut out: BTreeMap<BufId, BufUse> = BTreeMap::new();
    visit(body, &mut |stmt| {
        parts(stmt, &mut |part| match part {
            Part::DefBuf(b) => out.entry(*b).or_default().declared += 1,
            Part::ReadBuf(b) => {
                let entry = out.entry(*b).or_default();
                entry.reads += 1;
                entry.printed += matches!(stmt, Stmt::Print { .. }) as u32;
            }
            Part::WriteBuf(b) => out.entry(*b).or_default().writes += 1,
            Part::RoleBuf(b) => out.entry(*b).or_default().roles += 1,
            _ => {}
        });
    });
    out
}

/// The effects of running a statement list, besides defining values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    pub bufs_read: BTreeSet<BufId>,
    pub bufs_written: BTreeSet<BufId>,
    /// Bases of loads, by the value the access names (trace `PtrAdd` and its like to find the parameter).
    pub loads: BTreeSet<ValId>,
    /// Bases of stores and atomics.
    pub stores: BTreeSet<ValId>,
    /// A load or store with an order.
    pub ordered: bool,
    pub atomic: bool,
    pub prints: bool,
    /// An assert, or an allocation, which can fail.
    pub traps: bool,
    /// Return, or a break or continue that leaves the list.
    pub leaves: bool,
}

impl Effects {
    /// The bases of all accesses of global memory.
    pub fn bases(&self) -> impl Iterator<Item = ValId> {
        self.loads.iter().chain(&self.stores).copied()
    }

    /// Only reads memory and local buffers: may be dropped, and repeated while those do not change.
    pub fn is_pure(&self) -> bool {
        self.bufs_written.is_empty()
            && self.stores.is_empty()
            && !(self.ordered || self.atomic || self.prints || self.traps || self.leaves)
    }
}

pub fn effects(body: &[Stmt]) -> Effects {
    let mut out = Effects::default();
    add_effects(body, false, &mut out);
    out
}

fn add_effects(body: &[Stmt], in_loop: bool, out: &mut Effects) {
    for stmt in body {
        parts(stmt, &mut |part| match part {
            Part::ReadBuf(b) => drop(out.bufs_read.insert(*b)),
            Part::WriteBuf(b) => drop(out.bufs_written.insert(*b)),
            _ => {}
        });
        match stmt {
            Stmt::Load { mem, order, .. } => {
                out.loads.insert(mem.base);
                out.ordered |= *order != Order::Weak;
            }
            Stmt::Store { mem, order, .. } => {
                out.stores.insert(mem.base);
                out.ordered |= *order != Order::Weak;
            }
            Stmt::Rmw { mem, .. } | Stmt::Cas { mem, .. } => {
                out.loads.insert(mem.base);
                out.stores.insert(mem.base);
                out.atomic = true;
            }
            Stmt::Print { .. } => out.prints = true,
            Stmt::Assert { .. } | Stmt::Alloca { .. } => out.traps = true,
            Stmt::Break | Stmt::Continue => out.leaves |= !in_loop,
            Stmt::Return => out.leaves = true,
            _ => {}
        }
        let holds_breaks = match stmt {
            Stmt::Loop { .. } => true,
            Stmt::For(l) => l.kind == LoopKind::Serial,
            _ => in_loop,
        };
        for inner in bodies(stmt) {
            add_effects(inner, holds_breaks, out);
        }
    }
}

/// Rewrites every index expression, bounds of loops and masks included.
pub fn map_ixs(body: &mut [Stmt], f: &mut dyn FnMut(&mut Ix)) {
    visit_mut(body, &mut |stmt| {
        parts_mut(stmt, &mut |part| {
            if let PartMut::Ix(ix) = part {
                f(ix);
            }
        });
    });
}

/// Replaces uses of axes by expressions. Loops that define such an axis are not treated: rename them first.
pub fn subst_axes(body: &mut [Stmt], f: &mut dyn FnMut(AxisId) -> Option<Ix>) {
    map_ixs(body, &mut |ix| *ix = ix.subst_axes(f));
}

/// Replaces uses of one axis.
pub fn subst_axis(body: &mut [Stmt], axis: AxisId, by: &Ix) {
    subst_axes(body, &mut |a| (a == axis).then(|| by.clone()));
}

/// Replaces uses of values by operands: in operands, and as values of masks, bases and index expressions where the
/// operand is a value or an integer constant. A constant cannot stand as a base; there the use stays.
pub fn subst_vals(body: &mut [Stmt], f: &mut dyn FnMut(ValId) -> Option<Opnd>) {
    visit_mut(body, &mut |stmt| {
        parts_mut(stmt, &mut |part| match part {
            PartMut::Opnd(opnd) => {
                if let Opnd::Val(v) = opnd
                    && let Some(new) = f(*v)
                {
                    *opnd = new;
                }
            }
            PartMut::UseVal(v) | PartMut::RoleVal(v) => {
                if let Some(Opnd::Val(new)) = f(*v) {
                    *v = new;
                }
            }
            PartMut::Ix(ix) => {
                *ix = ix.subst_vals(&mut |v, zext| match f(v)? {
                    Opnd::Val(val) => Some(Ix::Val { val, zext }),
                    Opnd::Const { dtype, bits } if zext => (dtype.bits() < 64).then_some(Ix::Const(bits as i64)),
                    Opnd::Const { dtype, bits } => Some(Ix::Const(crate::num::literal::sign_extend(dtype, bits))),
                });
            }
            _ => {}
        });
    });
}

/// Old ids to new ones.
#[derive(Clone, Debug, Default)]
pub struct Renaming {
    pub vals: BTreeMap<ValId, ValId>,
    pub axes: BTreeMap<AxisId, AxisId>,
    pub bufs: BTreeMap<BufId, BufId>,
}

impl Renaming {
    /// Fresh ids in the same kernel for everything `body` defines.
    pub fn fresh(kernel: &mut Kernel, body: &[Stmt]) -> Renaming {
        let mut out = Renaming::default();
        let defined = refs(body);
        for v in defined.vals_defined {
            let copy = kernel.vals[v].clone();
            let fresh = kernel.vals.push(copy);
            kernel.sources.vals.copy(v, fresh);
            out.vals.insert(v, fresh);
        }
        for a in defined.axes_defined {
            let copy = kernel.axes[a].clone();
            let fresh = kernel.axes.push(copy);
            kernel.sources.axes.copy(a, fresh);
            out.axes.insert(a, fresh);
        }
        for b in defined.bufs_defined {
            let copy = kernel.bufs[b].clone();
            let fresh = kernel.bufs.push(copy);
            kernel.sources.bufs.copy(b, fresh);
            out.bufs.insert(b, fresh);
        }
        out
    }

    /// Renames definitions, uses and roles; ids without an entry stay.
    pub fn apply(&self, body: &mut [Stmt]) {
        let val = |v: &mut ValId| {
            if let Some(new) = self.vals.get(v) {
                *v = *new;
            }
        };
        let axis = |a: &mut AxisId| {
            if let Some(new) = self.axes.get(a) {
                *a = *new;
            }
        };
        let buf = |b: &mut BufId| {
            if let Some(new) = self.bufs.get(b) {
                *b = *new;
            }
        };
        visit_mut(body, &mut |stmt| {
            parts_mut(stmt, &mut |part| match part {
                PartMut::DefVal(v) | PartMut::UseVal(v) | PartMut::RoleVal(v) => val(v),
                PartMut::Opnd(Opnd::Val(v)) => val(v),
                PartMut::Opnd(Opnd::Const { .. }) => {}
                PartMut::DefAxis(a) | PartMut::RoleAxis(a) => axis(a),
                PartMut::DefBuf(b) | PartMut::ReadBuf(b) | PartMut::WriteBuf(b) | PartMut::RoleBuf(b) => buf(b),
                PartMut::Mask(_) | PartMut::Site(_) | PartMut::Body(_) => {}
                PartMut::Ix(ix) => {
                    *ix = ix.replace_leaves(&mut |leaf| match leaf {
                        Ix::Axis(a) => self.axes.get(a).map(|a| Ix::Axis(*a)),
                        Ix::Val { val, zext } => self.vals.get(val).map(|val| Ix::Val { val: *val, zext: *zext }),
                        _ => None,
                    });
                }
            });
        });
    }
}

/// A copy of `body` in which everything it defines has a fresh id.
pub fn clone_fresh(kernel: &mut Kernel, body: &[Stmt]) -> Vec<Stmt> {
    let renaming = Renaming::fresh(kernel, body);
    let mut copy = body.to_vec();
    renaming.apply(&mut copy);
    copy
}
