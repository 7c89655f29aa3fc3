//! Queries and rewrites of statement trees that every pass over Loop IR and Tile IR needs.
//!
//! [`parts`] lists the parts of one statement itself (not its bodies), [`bodies`] its bodies; the rest is made of these
//! two. Analyses: [`refs`] (the ids that a statement list defines and uses), [`buffer_uses`], [`effects`]. Rewrites:
//! [`subst_axes`], [`subst_vals`], [`Renaming`].

use std::collections::{BTreeMap, BTreeSet};

use super::ir::*;

macro_rules! walkers {
    ($Part:ident, $parts:ident, $bodies:ident, $mask_parts:ident, $mem_parts:ident, $iter:ident, [$($mt:tt)?]) => {
        /// One part that a statement mentions.
        #[derive(Debug)]
        pub enum $Part<'a> {
            DefVal(&'a $($mt)? ValId),
            /// A value used as such: the base of a memory access, a mask's value.
            UseVal(&'a $($mt)? ValId),
            Opnd(&'a $($mt)? Opnd),
            Ix(&'a $($mt)? Ix),
            DefAxis(&'a $($mt)? AxisId),
            /// An axis a contraction names.
            RoleAxis(&'a $($mt)? AxisId),
            /// A value a contraction names.
            RoleVal(&'a $($mt)? ValId),
            /// A buffer that a combine, a contraction or a register tile names.
            RoleBuf(&'a $($mt)? BufId),
            DefBuf(&'a $($mt)? BufId),
            ReadBuf(&'a $($mt)? BufId),
            WriteBuf(&'a $($mt)? BufId),
        }

        fn $mask_parts<'a>(mask: &'a $($mt)? Mask, f: &mut dyn FnMut($Part<'a>)) {
            for cond in mask.conds.$iter() {
                f($Part::Ix(& $($mt)? cond.lhs));
                f($Part::Ix(& $($mt)? cond.rhs));
            }
            for val in mask.vals.$iter() {
                f($Part::UseVal(val));
            }
        }

        fn $mem_parts<'a>(mem: &'a $($mt)? Mem, f: &mut dyn FnMut($Part<'a>)) {
            f($Part::UseVal(& $($mt)? mem.base));
            f($Part::Ix(& $($mt)? mem.index));
        }

        /// The values, axes, buffers and expressions that the statement itself mentions, uses before definitions; its
        /// bodies are not entered.
        pub fn $parts<'a>(stmt: &'a $($mt)? Stmt, f: &mut dyn FnMut($Part<'a>)) {
            crate::base::work::look();
            match stmt {
                Stmt::Let { dst, args, .. } => {
                    for arg in args.$iter() {
                        f($Part::Opnd(arg));
                    }
                    f($Part::DefVal(dst));
                }
                Stmt::Index { dst, ix } => {
                    f($Part::Ix(ix));
                    f($Part::DefVal(dst));
                }
                Stmt::Test { dst, mask } => {
                    $mask_parts(mask, f);
                    f($Part::DefVal(dst));
                }
                Stmt::Load { dst, mem, mask, other, .. } => {
                    $mem_parts(mem, f);
                    $mask_parts(mask, f);
                    if let Some(other) = other {
                        f($Part::Opnd(other));
                    }
                    f($Part::DefVal(dst));
                }
                Stmt::Store { mem, value, mask, .. } => {
                    $mem_parts(mem, f);
                    f($Part::Opnd(value));
                    $mask_parts(mask, f);
                }
                Stmt::Read { dst, buf, idx } => {
                    f($Part::ReadBuf(buf));
                    for ix in idx.$iter() {
                        f($Part::Ix(ix));
                    }
                    f($Part::DefVal(dst));
                }
                Stmt::Write { buf, idx, value } => {
                    for ix in idx.$iter() {
                        f($Part::Ix(ix));
                    }
                    f($Part::Opnd(value));
                    f($Part::WriteBuf(buf));
                }
                Stmt::Local { buf } => f($Part::DefBuf(buf)),
                Stmt::For(l) => {
                    f($Part::Ix(& $($mt)? l.lo));
                    f($Part::Ix(& $($mt)? l.hi));
                    f($Part::Ix(& $($mt)? l.step));
                    f($Part::DefAxis(& $($mt)? l.axis));
                    if let Some(combine) = & $($mt)? l.combine {
                        for acc in combine.accs.$iter() {
                            f($Part::RoleBuf(acc));
                        }
                    }
                    if let Some(c) = & $($mt)? l.contraction {
                        for axes in [& $($mt)? c.m, & $($mt)? c.n, & $($mt)? c.k] {
                            for axis in axes.$iter() {
                                f($Part::RoleAxis(axis));
                            }
                        }
                        f($Part::RoleVal(& $($mt)? c.a));
                        f($Part::RoleVal(& $($mt)? c.b));
                        f($Part::RoleBuf(& $($mt)? c.acc));
                    }
                    if let Some(s) = & $($mt)? l.stream {
                        f($Part::RoleVal(& $($mt)? s.score));
                        f($Part::RoleVal(& $($mt)? s.value));
                        for buf in [& $($mt)? s.greatest, & $($mt)? s.total, & $($mt)? s.acc] {
                            f($Part::RoleBuf(buf));
                        }
                    }
                }
                Stmt::Loop { .. } | Stmt::Break | Stmt::Continue | Stmt::Return => {}
                Stmt::If { cond, .. } => f($Part::Opnd(cond)),
                Stmt::Rmw { dst, mem, value, mask, .. } => {
                    $mem_parts(mem, f);
                    f($Part::Opnd(value));
                    $mask_parts(mask, f);
                    f($Part::DefVal(dst));
                }
                Stmt::Cas { dst, mem, cmp, value, mask, .. } => {
                    $mem_parts(mem, f);
                    f($Part::Opnd(cmp));
                    f($Part::Opnd(value));
                    $mask_parts(mask, f);
                    f($Part::DefVal(dst));
                }
                Stmt::Print { args, .. } => {
                    for arg in args.$iter() {
                        match arg {
                            PrintArg::Scalar(opnd) => f($Part::Opnd(opnd)),
                            PrintArg::Buf(buf) => f($Part::ReadBuf(buf)),
                        }
                    }
                }
                Stmt::Assert { cond, .. } => f($Part::Opnd(cond)),
                Stmt::GlobalAddr { dst, .. } | Stmt::Alloca { dst, .. } => f($Part::DefVal(dst)),
                Stmt::Stage { buf, .. } => f($Part::DefBuf(buf)),
                Stmt::Prefetch { mem } => $mem_parts(mem, f),
            }
        }

        /// The statement's bodies, in order of the text.
        pub fn $bodies(stmt: & $($mt)? Stmt) -> Vec<& $($mt)? Vec<Stmt>> {
            crate::base::work::look();
            match stmt {
                Stmt::For(l) => vec![& $($mt)? l.body],
                Stmt::Loop { body } | Stmt::Stage { body, .. } => vec![body],
                Stmt::If { then, els, .. } => vec![then, els],
                _ => Vec::new(),
            }
        }
    };
}

walkers!(Part, parts, bodies, mask_parts, mem_parts, iter, []);
walkers!(PartMut, parts_mut, bodies_mut, mask_parts_mut, mem_parts_mut, iter_mut, [mut]);

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

/// The value the statement defines.
pub fn def(stmt: &Stmt) -> Option<ValId> {
    match stmt {
        Stmt::Let { dst, .. }
        | Stmt::Index { dst, .. }
        | Stmt::Test { dst, .. }
        | Stmt::Load { dst, .. }
        | Stmt::Read { dst, .. }
        | Stmt::Rmw { dst, .. }
        | Stmt::Cas { dst, .. }
        | Stmt::GlobalAddr { dst, .. }
        | Stmt::Alloca { dst, .. } => Some(*dst),
        _ => None,
    }
}

/// The statement's mask.
pub fn mask(s: &Stmt) -> Option<&Mask> {
    match s {
        Stmt::Test { mask, .. }
        | Stmt::Load { mask, .. }
        | Stmt::Store { mask, .. }
        | Stmt::Rmw { mask, .. }
        | Stmt::Cas { mask, .. } => Some(mask),
        _ => None,
    }
}

/// The statement's mask, to change.
pub fn mask_mut(s: &mut Stmt) -> Option<&mut Mask> {
    match s {
        Stmt::Test { mask, .. }
        | Stmt::Load { mask, .. }
        | Stmt::Store { mask, .. }
        | Stmt::Rmw { mask, .. }
        | Stmt::Cas { mask, .. } => Some(mask),
        _ => None,
    }
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
