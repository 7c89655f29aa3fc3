//! What must hold of kernel IR: every error, each with the statement it is in.

use super::ir::*;
use crate::num::{DType, ScalarOp};

/// The broken invariants of a kernel, in program order; none for what `legalise` makes.
pub fn verify(kernel: &Kernel) -> Vec<String> {
    let mut v = Verifier {
        k: kernel,
        live: vec![false; kernel.vals.len()],
        axes: vec![false; kernel.axes.len()],
        errors: vec![],
    };
    let mut names: Vec<&str> = kernel.vals.values().map(|v| v.name.as_str()).collect();
    names.extend(kernel.axes.values().map(|a| a.name.as_str()));
    names.extend(kernel.slots.values().map(|s| s.name.as_str()));
    names.sort_unstable();
    for pair in names.windows(2).filter(|p| p[0] == p[1]) {
        v.errors.push(format!("two things are named `{}`", pair[0]));
    }
    for slot in kernel.slots.values() {
        let bytes = slot.len.saturating_mul(Ty { elem: slot.elem, lanes: 1 }.dtype().bytes());
        if slot.offset.saturating_add(bytes) > kernel.scratch {
            v.errors.push(format!("slot `{}` reaches past the scratch", slot.name));
        }
    }
    for &p in &kernel.params {
        v.define(p);
    }
    for ix in kernel.grid.iter().flatten() {
        if ix.any_leaf(&mut |leaf| !matches!(leaf, Ix::Const(_) | Ix::Val { .. }))
            || ix.vals().iter().any(|v| !kernel.params.contains(v))
        {
            v.errors.push("the grid does not follow from the parameters".to_string());
        }
    }
    v.block(&kernel.body, false);
    v.errors
}

struct Verifier<'a> {
    k: &'a Kernel,
    live: Vec<bool>,
    axes: Vec<bool>,
    errors: Vec<String>,
}

impl Verifier<'_> {
    fn ty(&self, v: ValId) -> Ty {
        self.k.vals.get(v).map_or(Ty::num(DType::I1, 1), |v| v.ty)
    }

    fn name(&self, v: ValId) -> &str {
        self.k.vals.get(v).map_or("?", |v| v.name.as_str())
    }

    fn define(&mut self, v: ValId) {
        match self.live.get_mut(v.0 as usize) {
            Some(live) if !*live => *live = true,
            _ => {
                let name = self.name(v).to_string();
                self.errors.push(format!("`{name}` is defined twice or not at all"));
            }
        }
    }

    fn used(&mut self, v: ValId) {
        if !self.live.get(v.0 as usize).copied().unwrap_or(false) {
            let name = self.name(v).to_string();
            self.errors.push(format!("`{name}` is used where it is not defined"));
        }
    }

    fn expect(&mut self, ok: bool, what: impl FnOnce() -> String) {
        if !ok {
            self.errors.push(what());
        }
    }

    /// An operand at a type; a constant of the element type may stand for a vector.
    fn opnd(&mut self, o: &Opnd, ty: Ty) {
        match o {
            Opnd::Val(v) => {
                self.used(*v);
                let (own, name) = (self.ty(*v), self.name(*v).to_string());
                self.expect(own == ty, || format!("`{name}` is {own}, not {ty}"));
            }
            Opnd::Const { dtype, .. } => {
                let dtype = *dtype;
                self.expect(dtype == ty.dtype(), || format!("a constant is {dtype}, not {ty}"));
            }
        }
    }

    fn ix(&mut self, ix: &Ix) {
        ix.for_each_leaf(&mut |leaf| match leaf {
            Ix::Axis(a) => {
                let open = self.axes.get(a.0 as usize).copied().unwrap_or(false);
                self.expect(open, || format!("axis {} is used outside its loop", a.0));
            }
            Ix::Val { val, .. } => {
                self.used(*val);
                let (ty, name) = (self.ty(*val), self.name(*val).to_string());
                let ok = ty.lanes == 1 && matches!(ty.elem, Elem::Num(d) if d.is_int());
                self.expect(ok, || format!("`{name}` is {ty} in an index"));
            }
            _ => {}
        });
    }

    fn mask(&mut self, mask: &Mask) {
        for c in &mask.conds {
            self.ix(&c.lhs);
            self.ix(&c.rhs);
        }
        for v in &mask.vals {
            self.opnd(&Opnd::Val(*v), Ty::num(DType::I1, 1));
        }
    }

    fn place(&mut self, place: &Address) -> Elem {
        match place {
            Address::Mem { base, index, elem } => {
                self.used(*base);
                let (ty, name) = (self.ty(*base), self.name(*base).to_string());
                let ok = ty.lanes == 1 && matches!(ty.elem, Elem::Ptr(_));
                self.expect(ok, || format!("`{name}` is {ty}, not an address"));
                self.ix(index);
                Elem::Num(*elem)
            }
            Address::Slot { buf, index } => {
                self.ix(index);
                let elem = self.k.slots.get(*buf).map(|s| s.elem);
                self.expect(elem.is_some(), || format!("there is no slot {}", buf.0));
                elem.unwrap_or(Elem::Num(DType::I1))
            }
        }
    }

    /// Lanes of an accessed value: of the place's elements, unmasked when it is a vector.
    fn access(&mut self, elem: Elem, ty: Ty, mask: &Mask) {
        self.expect(elem == ty.elem, || format!("{ty} is read from or written to memory of another type"));
        self.expect(ty.lanes == 1 || mask.is_always(), || "a vector access has a mask".to_string());
        self.mask(mask);
    }

    fn block(&mut self, body: &[Stmt], in_loop: bool) {
        let (live, axes) = (self.live.clone(), self.axes.clone());
        for stmt in body {
            let before = self.errors.len();
            self.stmt(stmt, in_loop);
            if self.errors.len() > before {
                let text = format!("{stmt:?}");
                let short: String = text.chars().take(80).collect();
                for e in &mut self.errors[before..] {
                    if !e.contains(" in ") {
                        e.push_str(&format!(" in {short}"));
                    }
                }
            }
        }
        // Names go out of scope; what is defined stays defined once.
        self.live = live;
        self.axes = axes;
    }

    fn stmt(&mut self, stmt: &Stmt, in_loop: bool) {
        match stmt {
            Stmt::Var { var, init } => {
                self.opnd(init, self.ty(*var));
                self.define(*var);
            }
            Stmt::Set { var, value } => {
                self.used(*var);
                self.opnd(value, self.ty(*var));
            }
            Stmt::Let { dst, op, ty, args } => {
                self.operation(*dst, *op, *ty, args);
                self.define(*dst);
            }
            Stmt::Splat { dst, value } => {
                let ty = self.ty(*dst);
                self.opnd(value, Ty { lanes: 1, ..ty });
                self.define(*dst);
            }
            Stmt::Ramp { dst, base, step } => {
                self.ix(base);
                self.ix(step);
                self.define(*dst);
            }
            Stmt::Index { dst, ix } => {
                self.ix(ix);
                let ty = self.ty(*dst);
                self.expect(ty.lanes == 1 && ty.dtype().is_int(), || format!("an index cannot be {ty}"));
                self.define(*dst);
            }
            Stmt::Test { dst, mask } => {
                self.mask(mask);
                let ty = self.ty(*dst);
                self.expect(ty == Ty::num(DType::I1, 1), || format!("a test cannot be {ty}"));
                self.define(*dst);
            }
            Stmt::Load { dst, place, mask, other, .. } => {
                let ty = self.ty(*dst);
                let elem = self.place(place);
                self.access(elem, ty, mask);
                other.iter().for_each(|o| self.opnd(o, ty));
                self.define(*dst);
            }
            Stmt::Store { place, value, mask, .. } => {
                let elem = self.place(place);
                let ty = match value {
                    Opnd::Val(v) => self.ty(*v),
                    Opnd::Const { .. } => Ty { elem, lanes: 1 },
                };
                self.opnd(value, ty);
                self.access(elem, ty, mask);
            }
            Stmt::Lane { dst, vector, lane } => {
                self.used(*vector);
                self.ix(lane);
                let (a, b) = (self.ty(*dst), self.ty(*vector));
                self.expect(a == Ty { lanes: 1, ..b }, || format!("a lane of {b} is {a}"));
                self.define(*dst);
            }
            Stmt::SetLane { vector, lane, value } => {
                self.used(*vector);
                self.ix(lane);
                let ty = self.ty(*vector);
                self.opnd(value, Ty { lanes: 1, ..ty });
            }
            Stmt::Reduce { dst, vector, .. } => {
                self.used(*vector);
                let (a, b) = (self.ty(*dst), self.ty(*vector));
                self.expect(a == Ty { lanes: 1, ..b }, || format!("{b} is reduced to {a}"));
                self.define(*dst);
            }
            Stmt::Merge { dst, a, b, width, .. } => {
                self.used(*a);
                self.used(*b);
                let (d, x, y) = (self.ty(*dst), self.ty(*a), self.ty(*b));
                self.expect(d == x && d == y, || format!("{x} and {y} are merged to {d}"));
                let fits = width.is_power_of_two() && d.lanes.is_power_of_two() && *width < d.lanes;
                self.expect(fits, || format!("groups of {width} lanes do not divide {d}"));
                self.define(*dst);
            }
            Stmt::All { dst, vector } => {
                self.used(*vector);
                let ty = self.ty(*vector);
                self.expect(ty.elem == Elem::Num(DType::I1), || format!("`all` of {ty}"));
                self.define(*dst);
            }
            Stmt::For { axis, lo, hi, step, body, .. } => {
                [lo, hi, step].into_iter().for_each(|ix| self.ix(ix));
                if let Some(open) = self.axes.get_mut(axis.0 as usize) {
                    *open = true;
                }
                self.block(body, true);
                if let Some(open) = self.axes.get_mut(axis.0 as usize) {
                    *open = false;
                }
            }
            Stmt::Loop { body } => self.block(body, true),
            Stmt::Break | Stmt::Continue => self.expect(in_loop, || "a break is outside a loop".to_string()),
            Stmt::Return | Stmt::Poll | Stmt::Yield { .. } => {}
            Stmt::If { mask, then, els } => {
                self.mask(mask);
                self.block(then, in_loop);
                self.block(els, in_loop);
            }
            Stmt::Rmw { dst, place, value, mask, .. } => {
                let ty = self.ty(*dst);
                let elem = self.place(place);
                self.access(elem, ty, mask);
                self.opnd(value, ty);
                self.define(*dst);
            }
            Stmt::Cas { dst, place, cmp, value, mask, .. } => {
                let ty = self.ty(*dst);
                let elem = self.place(place);
                self.access(elem, ty, mask);
                self.opnd(cmp, ty);
                self.opnd(value, ty);
                self.define(*dst);
            }
            Stmt::Print { args, .. } => {
                for a in args {
                    if let PrintArg::Scalar(Opnd::Val(v)) = a {
                        self.used(*v);
                    }
                }
            }
            Stmt::Assert { cond, element, .. } => {
                self.opnd(cond, Ty::num(DType::I1, 1));
                element.iter().for_each(|e| self.ix(e));
            }
            Stmt::Check { place, mask, element, .. } => {
                self.place(place);
                self.mask(mask);
                element.iter().for_each(|e| self.ix(e));
            }
            Stmt::GlobalAddr { dst, .. } => self.define(*dst),
            Stmt::Scratch { dst, offset } => {
                self.ix(offset);
                self.define(*dst);
            }
        }
    }

    fn operation(&mut self, dst: ValId, op: ScalarOp, elem: Elem, args: &[Opnd]) {
        let ty = self.ty(dst);
        self.expect(args.len() == op.arity(), || format!("{op:?} has {} operands", args.len()));
        let from: Vec<Elem> = (0..args.len()).map(|at| op.operand(at, elem)).collect();
        self.expect(op.accepts(&from, ty.elem), || format!("{op:?} does not take {elem:?} to {ty}"));
        for (i, arg) in args.iter().enumerate() {
            let lanes = ty.lanes;
            match (op, i, arg) {
                (ScalarOp::PtrAdd, 1, Opnd::Val(v)) => {
                    self.used(*v);
                    let own = self.ty(*v);
                    self.expect(own.lanes == lanes && own.dtype().is_int(), || {
                        format!("an address cannot move by {own}")
                    });
                }
                (ScalarOp::PtrAdd, 1, Opnd::Const { .. }) => {}
                _ => self.opnd(arg, Ty { elem: op.operand(i, elem), lanes }),
            }
        }
    }
}
