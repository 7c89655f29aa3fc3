//! Which floats a kernel looks at the bits of.
//!
//! An operation that gives a NaN gives the canonical one in the evaluator, and one of any sign and payload on a machine. Nobody can
//! tell them apart but a kernel that takes bits for an integer, so there alone NaNs are made canonical, where they are computed.
//!
//! ```text
//! a: f32 = addf x, y            observed: its bits reach a comparison
//! i: i32 = bitcast.i32 a
//! p: i1 = cmpi.lt i, j
//! h: f16 = ftof.f16 z           not: a product reads the word as two floats again
//! w: i16 = bitcast.i16 h
//! store word[0] = w
//! mma f16 acc[0], acc[2] add word, b
//! ```
//! Bits are followed backwards from where they matter, through what moves them: bit operations, variables, slots, shuffles and
//! global memory, of which all is one place.

use std::collections::BTreeSet;

use super::ir::*;
use crate::base::id::Id;
use crate::num::ScalarOp;

/// The values of which somebody may see the bits.
pub fn observed(kernel: &Kernel) -> BTreeSet<ValId> {
    let mut flow = Flow { kernel, into: vec![], seen: vec![] };
    flow.block(&kernel.body);
    let Flow { into, seen: mut open, .. } = flow;
    let mut sources: Vec<Vec<Place>> = vec![vec![]; kernel.vals.len() + kernel.slots.len() + 1];
    let number = |place: Place| match place {
        Place::Val(v) => v.index(),
        Place::Slot(b) => kernel.vals.len() + b.index(),
        Place::Memory => kernel.vals.len() + kernel.slots.len(),
    };
    for (to, from) in into {
        if let Some(list) = sources.get_mut(number(to)) {
            list.push(from);
        }
    }
    let mut found = vec![false; sources.len()];
    while let Some(place) = open.pop() {
        match found.get_mut(number(place)) {
            Some(found) if !*found => *found = true,
            _ => continue,
        }
        open.extend(sources.get(number(place)).into_iter().flatten());
    }
    kernel.vals.keys().filter(|v| found.get(v.index()) == Some(&true)).collect()
}

/// What holds bits.
#[derive(Clone, Copy)]
enum Place {
    Val(ValId),
    Slot(BufId),
    Memory,
}

struct Flow<'a> {
    kernel: &'a Kernel,
    /// Bits of the second become bits of the first.
    into: Vec<(Place, Place)>,
    /// Where bits matter.
    seen: Vec<Place>,
}

impl Flow<'_> {
    fn block(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn moves(&mut self, dst: ValId, from: &Opnd) {
        if let Opnd::Val(from) = from {
            self.into.push((Place::Val(dst), Place::Val(*from)));
        }
    }

    /// An integer that is used as a number.
    fn sees(&mut self, o: &Opnd) {
        if let Opnd::Val(v) = o
            && !self.is_float(*v)
        {
            self.seen.push(Place::Val(*v));
        }
    }

    fn is_float(&self, v: ValId) -> bool {
        matches!(self.kernel.vals.get(v).map(|v| v.ty.elem), Some(Elem::Num(d)) if d.is_float())
    }

    fn index(&mut self, ix: &Ix) {
        self.seen.extend(ix.vals().into_iter().map(Place::Val));
    }

    fn mask(&mut self, mask: &Mask) {
        self.seen.extend(mask.vals.iter().copied().map(Place::Val));
        for cond in &mask.conds {
            self.index(&cond.lhs);
            self.index(&cond.rhs);
        }
    }

    /// Where an address leads, whose parts are used as numbers.
    fn place(&mut self, at: &Address) -> Place {
        match at {
            Address::Mem { base, index, .. } => {
                self.seen.push(Place::Val(*base));
                self.index(index);
                Place::Memory
            }
            Address::Slot { buf, index } => {
                self.index(index);
                Place::Slot(*buf)
            }
        }
    }

    fn writes(&mut self, at: &Address, value: &Opnd) {
        let to = self.place(at);
        let Opnd::Val(v) = value else { return };
        self.into.push((to, Place::Val(*v)));
        // An integer in global memory is somebody's number.
        if matches!(to, Place::Memory) {
            self.sees(value);
        }
    }

    fn reads(&mut self, dst: ValId, at: &Address) {
        let from = self.place(at);
        self.into.push((Place::Val(dst), from));
    }

    fn operation(&mut self, dst: ValId, op: ScalarOp, args: &[Opnd]) {
        use ScalarOp::*;
        match (op, args) {
            (Select, [cond, yes, no]) => {
                self.sees(cond);
                self.moves(dst, yes);
                self.moves(dst, no);
            }
            (Bitcast { .. } | Copy | NegF | AbsF | And | Or | Xor | ExtI { .. } | TruncI { .. }, _) => {
                args.iter().for_each(|a| self.moves(dst, a));
            }
            (Shl | Shr { .. }, [bits, by]) => {
                self.moves(dst, bits);
                self.sees(by);
            }
            _ => args.iter().for_each(|a| self.sees(a)),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Var { var, init: value } | Stmt::Set { var, value } => self.moves(*var, value),
            Stmt::Let { dst, op, args, .. } => self.operation(*dst, *op, args),
            Stmt::Splat { dst, value } => self.moves(*dst, value),
            Stmt::Ramp { base, step, .. } => {
                self.index(base);
                self.index(step);
            }
            Stmt::Index { ix, .. } | Stmt::Scratch { offset: ix, .. } => self.index(ix),
            Stmt::Test { mask, .. } => self.mask(mask),
            Stmt::Load { dst, place, mask, other, .. } => {
                self.reads(*dst, place);
                self.mask(mask);
                other.iter().for_each(|o| self.moves(*dst, o));
            }
            Stmt::Prefetch { place } => _ = self.place(place),
            Stmt::LoadOf { dst, place, .. } | Stmt::LoadMatrix { dst, place, .. } => self.reads(*dst, place),
            Stmt::LoadSome { dst, place, from, to, other } => {
                self.reads(*dst, place);
                self.index(from);
                self.index(to);
                self.moves(*dst, other);
            }
            Stmt::Store { place, value, mask, .. } => {
                self.writes(place, value);
                self.mask(mask);
            }
            Stmt::StoreSome { place, value, from, to } => {
                self.writes(place, &Opnd::Val(*value));
                self.index(from);
                self.index(to);
            }
            Stmt::Lane { dst, vector, lane } => {
                self.moves(*dst, &Opnd::Val(*vector));
                self.index(lane);
            }
            Stmt::SetLane { vector, lane, value } => {
                self.moves(*vector, value);
                self.index(lane);
            }
            Stmt::Merge { dst, a, b, .. } => {
                self.moves(*dst, &Opnd::Val(*a));
                self.moves(*dst, &Opnd::Val(*b));
            }
            Stmt::Every { dst, parts } | Stmt::Interleave { dst, parts, .. } => {
                parts.iter().for_each(|part| self.moves(*dst, &Opnd::Val(*part)));
            }
            Stmt::Reduce { dst, op, vector } => self.operation(*dst, *op, &[Opnd::Val(*vector)]),
            Stmt::All { vector, .. } => self.sees(&Opnd::Val(*vector)),
            Stmt::For { lo, hi, step, body, .. } => {
                [lo, hi, step].into_iter().for_each(|ix| self.index(ix));
                self.block(body);
            }
            Stmt::Loop { body } => self.block(body),
            Stmt::If { mask, then, els } => {
                self.mask(mask);
                self.block(then);
                self.block(els);
            }
            Stmt::Rmw { dst, place, value, mask, .. } => {
                self.reads(*dst, place);
                self.writes(place, value);
                self.sees(value);
                self.mask(mask);
            }
            // Bits are compared.
            Stmt::Cas { dst, place, cmp, value, mask, .. } => {
                self.reads(*dst, place);
                self.writes(place, value);
                let at = self.place(place);
                self.seen.push(at);
                for o in [cmp, value] {
                    if let Opnd::Val(v) = o {
                        self.seen.push(Place::Val(*v));
                    }
                }
                self.mask(mask);
            }
            Stmt::Shuffle { dst, value, by, .. } => {
                self.moves(*dst, &Opnd::Val(*value));
                self.sees(by);
            }
            // The matrix unit reads floats as floats, and gives floats.
            Stmt::TileLoad { place, by, .. } | Stmt::TileStore { place, by, .. } => {
                self.place(place);
                self.index(by);
            }
            Stmt::TileDot { .. } => {}
            Stmt::Mma { acc, .. } => acc.iter().for_each(|at| _ = self.place(at)),
            Stmt::Wgmma { a, b, .. } => [a, b].into_iter().for_each(|panel| _ = self.place(&panel.place)),
            Stmt::CopyAsync { to, from, mask, .. } => {
                let (to, from) = (self.place(to), self.place(from));
                self.into.push((to, from));
                self.mask(mask);
            }
            Stmt::CopyTensor { to, from, on, .. } => {
                let to = self.place(to);
                self.into.push((to, Place::Memory));
                from.iter().for_each(|ix| self.index(ix));
                self.place(on);
            }
            Stmt::StoreTensor { to, from, .. } => {
                let from = self.place(from);
                self.into.push((Place::Memory, from));
                to.iter().for_each(|ix| self.index(ix));
            }
            Stmt::InitBarrier { on, .. } | Stmt::Arrive { on, .. } => _ = self.place(on),
            Stmt::WaitPhase { on, parity } => {
                self.place(on);
                self.index(parity);
            }
            Stmt::Print { args, .. } => {
                for arg in args {
                    match arg {
                        PrintArg::Scalar(Opnd::Val(v)) => self.seen.push(Place::Val(*v)),
                        PrintArg::Scalar(Opnd::Const { .. }) => {}
                        PrintArg::Tile { slot, .. } => self.seen.push(Place::Slot(*slot)),
                    }
                }
            }
            Stmt::Assert { cond, element, .. } => {
                self.sees(cond);
                element.iter().for_each(|ix| self.index(ix));
            }
            Stmt::Check { place, mask, element, .. } => {
                self.place(place);
                self.mask(mask);
                element.iter().for_each(|ix| self.index(ix));
            }
            Stmt::Break
            | Stmt::Continue
            | Stmt::Return
            | Stmt::Barrier
            | Stmt::ClusterBarrier
            | Stmt::SyncWarp
            | Stmt::WgmmaCommit
            | Stmt::WgmmaWait { .. }
            | Stmt::Commit
            | Stmt::WaitGroups { .. }
            | Stmt::StoreCommit
            | Stmt::StoreWait { .. }
            | Stmt::Fence(_)
            | Stmt::Registers { .. }
            | Stmt::Poll
            | Stmt::Yield { .. }
            | Stmt::GlobalAddr { .. } => {}
        }
    }
}
