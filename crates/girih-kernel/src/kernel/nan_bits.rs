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
//! Bits are followed backwards from where they matter, through the operations that move them: bit operations,
//! variables, slots, shuffles and global memory. That counts as one place where two parameters may point to the same elements. In the
//! kernels of models, and in the version of a program for launches whose arrays do not overlap, each parameter's array is a place of
//! its own: codes and indices that a kernel reads then say nothing of its floats.

use std::collections::BTreeSet;

use super::ir::*;
use crate::base::id::Id;
use crate::num::ScalarOp;

/// The values whose bits somebody may see.
pub fn observed(kernel: &Kernel) -> BTreeSet<ValId> {
    let mut flow = Flow::of(kernel, kernel.apart);
    if flow.elsewhere {
        flow = Flow::of(kernel, false);
    }
    let Flow { into, seen: mut open, .. } = flow;
    let (vals, slots) = (kernel.vals.len(), kernel.slots.len());
    let mut sources: Vec<Vec<Place>> = vec![vec![]; vals + slots + 1 + kernel.params.len()];
    let number = |place: Place| match place {
        Place::Val(v) => v.index(),
        Place::Slot(b) => vals + b.index(),
        Place::Memory => vals + slots,
        Place::Array(n) => vals + slots + 1 + n,
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

/// A holder of bits.
#[derive(Clone, Copy)]
enum Place {
    Val(ValId),
    Slot(BufId),
    Memory,
    /// The array of a parameter.
    Array(usize),
}

struct Flow<'a> {
    kernel: &'a Kernel,
    /// Each parameter is an array of its own.
    apart: bool,
    /// An address is not a parameter's.
    elsewhere: bool,
    /// Bits of the second become bits of the first.
    into: Vec<(Place, Place)>,
    /// Where bits matter.
    seen: Vec<Place>,
}

impl Flow<'_> {
    fn of(kernel: &Kernel, apart: bool) -> Flow<'_> {
        let mut flow = Flow { kernel, apart, elsewhere: false, into: vec![], seen: vec![] };
        flow.block(&kernel.body);
        flow
    }

    /// The memory at a base address.
    fn memory(&mut self, base: Option<ValId>) -> Place {
        let param = self.kernel.params.iter().position(|p| Some(*p) == base);
        self.elsewhere |= self.apart && param.is_none();
        param.filter(|_| self.apart).map_or(Place::Memory, Place::Array)
    }

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
                self.memory(Some(*base))
            }
            Address::Slot { buf, index } => {
                self.index(index);
                Place::Slot(*buf)
            }
        }
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
            Stmt::Let { dst, op, args, .. } => self.operation(*dst, *op, args),
            Stmt::Reduce { dst, op, vector } => self.operation(*dst, *op, &[Opnd::Val(*vector)]),
            _ => self.parts(stmt),
        }
    }

    /// Bits that a statement reads or is given become bits of all that it defines or writes.
    fn parts(&mut self, stmt: &Stmt) {
        let (mut to, mut from, mut combines) = (vec![], vec![], false);
        stmt.parts(&mut |part| match part {
            Part::Defines(val) | Part::Updates(val) => to.push(Place::Val(val)),
            Part::Moves(Opnd::Val(val)) => from.push(Place::Val(val)),
            Part::Takes(opnd) => self.sees(&opnd),
            Part::Shows(Opnd::Val(val)) => self.seen.push(Place::Val(val)),
            Part::Moves(Opnd::Const { .. }) | Part::Shows(Opnd::Const { .. }) => {}
            // The matrix unit reads floats as floats, and gives floats.
            Part::Feeds(_) => {}
            Part::Index(ix) => self.index(ix),
            Part::Mask(mask) => self.mask(mask),
            Part::At(at, access) => {
                let place = self.place(at);
                combines |= access == Access::Combines;
                self.access(place, access, &mut to, &mut from);
            }
            Part::Slot(buf, access) => self.access(Place::Slot(buf), access, &mut to, &mut from),
            Part::Tensor(tensor, access) => {
                let place = self.memory(self.kernel.tensors.get(tensor).map(|t| t.base));
                self.access(place, access, &mut to, &mut from);
            }
            Part::Axis(_) => {}
            Part::Body(body) => self.block(body),
        });
        // An integer in global memory is somebody's number, and so is one that an atomic operation combines.
        let numbers = combines || to.iter().any(|place| matches!(place, Place::Memory | Place::Array(_)));
        for from in from {
            if let (true, Place::Val(val)) = (numbers, from) {
                self.sees(&Opnd::Val(val));
            }
            self.into.extend(to.iter().map(|to| (*to, from)));
        }
    }

    fn access(&mut self, place: Place, access: Access, to: &mut Vec<Place>, from: &mut Vec<Place>) {
        match access {
            Access::Reads => from.push(place),
            Access::Writes => to.push(place),
            Access::Combines => {
                from.push(place);
                to.push(place);
            }
            Access::Compares => {
                self.seen.push(place);
                from.push(place);
            }
            Access::Multiplies | Access::Waits | Access::Names => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kernel, observed};
    use crate::kernel::parse;

    /// Returns true if somebody sees the bits of the sum that a kernel stores, which reads an integer too.
    fn seen(apart: bool, loaded: &str) -> bool {
        let text = format!(
            "kernel k(codes: ptr<i32>, x: ptr<f32>, y: ptr<f32>) scratch 0 {{\n  \
             p: ptr<i32> = ptradd codes, 4:i64\n  c: i32 = load {loaded}\n  \
             f: f32 = itof.f32 c\n  v: f32 = load x[bx]\n  sum: f32 = addf v, f\n  store y[bx] = sum\n}}\n"
        );
        let kernel = parse::parse(&text).unwrap_or_else(|d| panic!("{}\n{text}", d.message));
        let sum = kernel.vals.keys().last();
        sum.is_some_and(|sum| observed(&Kernel { apart, ..kernel }).contains(&sum))
    }

    #[test]
    fn arrays_that_are_apart_are_places_of_their_own() {
        assert!(!seen(true, "codes[bx]") && seen(true, "y[bx + 4]"));
        assert!(seen(false, "codes[bx]"));
        // Nobody says where an address leads that is not a parameter's.
        assert!(seen(true, "p[bx]"));
    }
}
