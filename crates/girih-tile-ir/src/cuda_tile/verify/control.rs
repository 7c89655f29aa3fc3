//! Regions, their terminators and their bodies.

use std::collections::BTreeSet;

use super::ops::{Checked, Kind};
use super::types::{show, show_tile};
use super::{Verifier, name};
use crate::base::id::Id;
use crate::base::{Code, Diagnostic};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::ops::{Effect, info};
use crate::num::DType;

impl<'a> Verifier<'a> {
    fn parent(&self, op: OpId) -> Option<OpId> {
        let region = self.home.get(op.index()).copied().flatten()?;
        self.holder.get(region.index()).copied().flatten()
    }

    /// The nearest enclosing operation that is not an `if`.
    fn enclosing(&self, op: OpId) -> Option<&'a Op> {
        let mut at = self.parent(op);
        for _ in 0..=self.func.ops.len() {
            let op = self.op(at?)?;
            if op.opcode != Opcode::If {
                return Some(op);
            }
            at = self.parent(at?);
        }
        None
    }

    pub(super) fn region(&mut self, id: RegionId) {
        let Some(region) = self.func.regions.get(id) else { return };
        let holder = self.holder.get(id.index()).copied().flatten().and_then(|o| self.op(o));
        if holder.is_none() && id != Func::BODY {
            return;
        }
        let span = holder.map_or(self.func.span, |o| o.span);
        let last = region.ops.last().and_then(|&o| self.op(o));
        if !last.is_some_and(|o| info(o.opcode).is_terminator()) {
            self.error(Code::BadTerminator, span, "a region must end in a terminator");
        }
        for &id in region.ops.iter().rev().skip(1) {
            if let Some(op) = self.op(id)
                && info(op.opcode).is_terminator()
            {
                self.error(Code::BadTerminator, op.span, format!("nothing may follow `{}` in its region", name(op)));
            }
        }
    }

    /// The values that leave a region must have the types that are expected outside. The error is at the holder of the
    /// region, if one is given, and otherwise at the operation that passes the values.
    fn handed(&mut self, op: &'a Op, want: &[ValueId], what: &str, holder: Option<&'a Op>) -> Checked {
        let have: Vec<&Type> = op.operands.iter().filter_map(|&v| self.ty(v)).collect();
        let want: Vec<&Type> = want.iter().filter_map(|&v| self.ty(v)).collect();
        if have == want {
            return Some(());
        }
        let list = |types: &[&Type]| match types {
            [] => "nothing".to_string(),
            all => all.iter().map(|t| show(t)).collect::<Vec<_>>().join(", "),
        };
        let text = format!("`{}` passes {} where {what} {}", name(op), list(&have), list(&want));
        match holder {
            Some(holder) => self.within(holder, op, Code::TypeMismatch, text),
            None => self.error(Code::TypeMismatch, op.span, text),
        }
        None
    }

    /// Reports an error at an operation because of another one inside it.
    fn within(&mut self, holder: &Op, inner: &Op, code: Code, text: String) {
        self.out.push(Diagnostic::error(code, text).at(holder.span).label(inner.span, "here"));
    }

    pub(super) fn terminator(&mut self, id: OpId, op: &'a Op) -> Checked {
        let wrong = |v: &mut Self, text: &str, help: Option<&str>| -> Checked {
            let d = Diagnostic::error(Code::BadTerminator, text).at(op.span);
            v.out.push(match help {
                Some(h) => d.help(h),
                None => d,
            });
            None
        };
        match op.opcode {
            Opcode::Yield => match self.parent(id).and_then(|p| self.op(p)) {
                Some(p) if p.opcode == Opcode::If => self.handed(op, &p.results, "the `if` gives", Some(p)),
                // The bodies of folds are checked with their operation.
                Some(p) if matches!(p.opcode, Opcode::Reduce | Opcode::Scan | Opcode::ExpGenerate) => Some(()),
                _ => wrong(self, "`yield` is allowed only in the regions of `if`, `reduce` and `scan`", None),
            },
            Opcode::Break => match self.enclosing(id) {
                Some(l) if l.opcode == Opcode::Loop => self.handed(op, &l.results, "the `loop` gives", None),
                Some(l) if l.opcode == Opcode::For => wrong(
                    self,
                    "`break` cannot leave a `for`",
                    Some("use `loop`, or let the remaining iterations do nothing"),
                ),
                _ => wrong(self, "`break` is allowed only in a `loop`", None),
            },
            Opcode::Continue => match self.enclosing(id) {
                Some(l) if matches!(l.opcode, Opcode::Loop | Opcode::For) => {
                    let skip = (l.opcode == Opcode::For) as usize;
                    let args = l.regions.first().and_then(|&r| self.func.regions.get(r)).map(|r| r.args.as_slice());
                    let args = args.and_then(|a| a.get(skip..)).unwrap_or(&[]);
                    self.handed(op, args, "the loop carries", None)
                }
                _ => wrong(self, "`continue` is allowed only in a loop", None),
            },
            _ => {
                if self.enclosing(id).is_some() {
                    let help = "leave the loop first, then return";
                    return wrong(self, "`return` is not allowed in a loop, a reduction or a scan", Some(help));
                }
                let have: Vec<&Type> = op.operands.iter().filter_map(|&v| self.ty(v)).collect();
                if self.func.kind == FuncKind::Entry && !have.is_empty() {
                    return wrong(self, "an entry must not return anything", None);
                }
                if self.func.kind == FuncKind::Function && have != self.func.results.iter().collect::<Vec<_>>() {
                    let text = format!("`return` does not pass the results that `@{}` declares", self.func.name);
                    self.error(Code::TypeMismatch, op.span, text);
                    return None;
                }
                Some(())
            }
        }
    }

    fn args(&self, op: &Op, region: usize) -> &'a [ValueId] {
        op.regions.get(region).and_then(|&r| self.func.regions.get(r)).map(|r| r.args.as_slice()).unwrap_or(&[])
    }

    /// Initial values, region arguments and (for `for`) results must agree; views cannot be carried.
    fn carried(&mut self, op: &'a Op, inits: &[ValueId], args: &[ValueId]) -> Checked {
        if inits.len() != args.len() {
            let text = format!("`{}` starts with {} values and carries {}", name(op), inits.len(), args.len());
            self.error(Code::BadArity, op.span, text);
            return None;
        }
        for (&i, &a) in inits.iter().zip(args) {
            let (have, want) = (self.ty(i)?, self.ty(a)?);
            if have != want {
                self.mismatch(op, &show(have), &show(want));
                return None;
            }
            if matches!(want, Type::View(_) | Type::TensorView(_)) {
                let span = self.func.values[a].span;
                self.error_help(Code::BadView, span, "a loop cannot carry a view", "make the view inside the loop");
                return None;
            }
        }
        Some(())
    }

    pub(super) fn for_op(&mut self, op: &'a Op) -> Checked {
        let [lb, ub, step, inits @ ..] = op.operands.as_slice() else { return None };
        let t = self.operand_tile(op, *lb)?;
        self.rank(op, t, 0, "the bounds")?;
        self.kind(op, t, Kind::Int, "the bounds")?;
        for &v in [ub, step] {
            let other = self.operand_tile(op, v)?;
            self.same(op, t, other)?;
        }
        let args = self.args(op, 0);
        let Some((iv, carried)) = args.split_first() else {
            self.error(Code::BadArity, op.span, "the region of a `for` needs an induction variable");
            return None;
        };
        let ty = self.operand_tile(op, *iv)?;
        self.same(op, t, ty)?;
        self.carried(op, inits, carried)?;
        let (have, want): (Vec<_>, Vec<_>) = (
            op.results.iter().filter_map(|&v| self.ty(v)).collect(),
            inits.iter().filter_map(|&v| self.ty(v)).collect(),
        );
        if have != want {
            self.error(Code::TypeMismatch, op.span, "the results of a `for` must have the types of its carried values");
            return None;
        }
        Some(())
    }

    pub(super) fn loop_op(&mut self, op: &'a Op) -> Checked {
        self.carried(op, op.group(0), self.args(op, 0))?;
        self.no_views(op)
    }

    /// Structured control flow must not return views.
    fn no_views(&mut self, op: &'a Op) -> Checked {
        let views = op.results.iter().any(|&r| matches!(self.ty(r), Some(Type::View(_) | Type::TensorView(_))));
        if views {
            let text = format!("`{}` cannot give a view", name(op));
            let help = "give what the view is made of, and make it afterwards";
            self.error_help(Code::BadView, op.span, text, help);
        }
        Some(())
    }

    pub(super) fn if_op(&mut self, op: &'a Op) -> Checked {
        let t = self.tile(op, 0)?;
        self.kind(op, t, Kind::Bool, "the condition")?;
        self.rank(op, t, 0, "the condition")?;
        if !op.results.is_empty() && op.regions.len() < 2 {
            self.error(Code::BadArity, op.span, "an `if` with results needs an `else`");
        }
        if (0..op.regions.len()).any(|r| !self.args(op, r).is_empty()) {
            self.error(Code::BadArity, op.span, "the regions of an `if` take no arguments");
        }
        self.no_views(op)
    }

    /// The arguments and yielded values of a body, each a scalar of the element type given.
    fn body(&mut self, op: &'a Op, args: &[Elem], yields: &[Elem]) -> Checked {
        let given = self.args(op, 0);
        if given.len() != args.len() {
            let text = format!("the body of `{}` takes {} arguments, not {}", name(op), args.len(), given.len());
            self.error(Code::BadArity, op.span, text);
            return None;
        }
        let mut fine = true;
        for (&v, &elem) in given.iter().zip(args) {
            let value = &self.func.values[v];
            let want = TileType::of(vec![], elem);
            let (code, text) = match &value.ty {
                Type::Tile(t) if *t == want => continue,
                Type::Tile(t) if !t.shape.is_empty() => (
                    Code::BadRank,
                    format!("the arguments of `{}`'s body must be scalars, not {}", name(op), show_tile(t)),
                ),
                other => (
                    Code::TypeMismatch,
                    format!("an argument of `{}`'s body must be {}, not {}", name(op), show_tile(&want), show(other)),
                ),
            };
            let d = Diagnostic::error(code, text).at(op.span).label(value.span, "this argument");
            self.out.push(d.help(format!("write {}", show_tile(&want))));
            fine = false;
        }
        self.pure(op);
        let last = op.regions.first().and_then(|&r| self.func.regions.get(r)).and_then(|r| r.ops.last());
        let Some(last) = last.and_then(|&o| self.op(o)).filter(|o| o.opcode == Opcode::Yield) else {
            self.error(Code::BadTerminator, op.span, format!("the body of `{}` must end in `yield`", name(op)));
            return None;
        };
        let have: Vec<Option<&Type>> = last.operands.iter().map(|&v| self.ty(v)).collect();
        let want: Vec<Type> = yields.iter().map(|&elem| Type::Tile(TileType::of(vec![], elem))).collect();
        if have.len() != want.len() || have.iter().zip(&want).any(|(h, w)| *h != Some(w)) {
            let list = want.iter().map(show).collect::<Vec<_>>().join(", ");
            self.within(op, last, Code::TypeMismatch, format!("the body of `{}` must yield {list}", name(op)));
            fine = false;
        }
        fine.then_some(())
    }

    /// The body may not access memory, print or trap; its tiles are scalars.
    fn pure(&mut self, op: &'a Op) {
        let mut open: Vec<RegionId> = op.regions.clone();
        let mut seen = 0;
        while let Some(r) = open.pop() {
            seen += 1;
            if seen > self.func.regions.len() {
                break;
            }
            for &id in self.func.regions.get(r).map(|r| r.ops.as_slice()).unwrap_or(&[]) {
                let Some(inner) = self.op(id) else { continue };
                open.extend(&inner.regions);
                if !matches!(info(inner.opcode).effect, Effect::Pure | Effect::Structured | Effect::Terminator) {
                    let text =
                        format!("`{}` has side effects, which the body of `{}` must not have", name(inner), name(op));
                    self.within(op, inner, Code::ImpureBody, text);
                }
                for &v in &inner.results {
                    if let Some(Type::Tile(t)) = self.ty(v)
                        && !t.shape.is_empty()
                    {
                        let text = format!("the body of `{}` works on scalars, not {}", name(op), show_tile(t));
                        self.within(op, inner, Code::BadRank, text);
                    }
                }
            }
        }
    }

    pub(super) fn fold(&mut self, op: &'a Op) -> Checked {
        let mut tiles = vec![];
        for &v in op.group(0) {
            tiles.push(self.operand_tile(op, v)?);
        }
        let Some(&first) = tiles.first() else {
            self.error(Code::BadArity, op.span, format!("`{}` needs an operand", name(op)));
            return None;
        };
        self.same_shape(op, &tiles)?;
        let dim = self.dim(op, first)?;
        if op.results.len() != tiles.len() {
            let text = format!("`{}` of {} operands gives {} results", name(op), tiles.len(), op.results.len());
            self.error(Code::BadArity, op.span, text);
            return None;
        }
        for (i, t) in tiles.iter().enumerate() {
            self.kind(op, t, Kind::Number, "the operands")?;
            let r = self.result_tile(op, i)?;
            let mut want = (*t).clone();
            if op.opcode == Opcode::Reduce {
                want.shape.remove(dim);
            }
            if *r == want {
                continue;
            }
            // The official example of this operation gives the result type of reducing another dimension: it is
            // accepted, but not run.
            let other = |d| {
                let mut shape = t.shape.clone();
                shape.remove(d);
                r.elem == t.elem && r.shape == shape
            };
            if op.opcode == Opcode::Reduce && (0..t.shape.len()).any(other) {
                let text = format!(
                    "reducing dimension {dim} of {} gives {}, not {}",
                    show_tile(t),
                    show_tile(&want),
                    show_tile(r)
                );
                let warning = Diagnostic::warning(Code::ReducedShape, text).at(op.span);
                self.out.push(warning.help("the program is accepted as text, but running it is refused"));
            } else {
                self.mismatch(op, &show_tile(&want), &show_tile(r));
                return None;
            }
        }
        let ids = match op.attr(AttrKey::Identities) {
            Some(Attr::Identities(ids)) => ids.as_slice(),
            _ => &[],
        };
        if ids.len() != tiles.len() {
            let text = format!("`{}` of {} operands has {} identities", name(op), tiles.len(), ids.len());
            return self.attribute(op, text);
        }
        let half = |d| matches!(d, DType::F16 | DType::BF16);
        for ((d, bits), t) in ids.iter().zip(&tiles) {
            let fits = t.num().is_some_and(|e| e == *d || (half(e) && half(*d)));
            if !fits || bits & !d.mask() != 0 {
                let text = format!("an identity of {d} does not go with {}", show_tile(t));
                self.error(Code::TypeMismatch, op.span, text);
                return None;
            }
        }
        let elems: Vec<Elem> = tiles.iter().map(|t| t.elem).collect();
        let pairs: Vec<Elem> = elems.iter().flat_map(|&e| [e, e]).collect();
        self.body(op, &pairs, &elems)
    }

    pub(super) fn generate(&mut self, op: &'a Op) -> Checked {
        let r = self.result_tile(op, 0)?;
        let args = vec![Elem::Num(DType::I32); r.shape.len()];
        self.body(op, &args, &[r.elem])
    }

    pub(super) fn call(&mut self, op: &'a Op) -> Checked {
        let Some(Attr::Str(callee)) = op.attr(AttrKey::Callee) else {
            return self.attribute(op, "a call needs a function");
        };
        let found = self.module.funcs.iter().find(|f| f.name == *callee && f.kind == FuncKind::Function);
        let Some(f) = found else {
            self.error(Code::BadSymbol, op.span, format!("unknown function `@{callee}`"));
            return None;
        };
        let have: Vec<&Type> = op.operands.iter().filter_map(|&v| self.ty(v)).collect();
        let want: Vec<&Type> = f.params().iter().filter_map(|&p| f.values.get(p).map(|v| &v.ty)).collect();
        let results: Vec<&Type> = op.results.iter().filter_map(|&v| self.ty(v)).collect();
        if have != want || results != f.results.iter().collect::<Vec<_>>() {
            self.error(Code::TypeMismatch, op.span, format!("the call does not have the type of `@{callee}`"));
        }
        if self.reaches(f) {
            let d = Diagnostic::error(Code::Recursion, format!("`@{callee}` calls itself, or calls its caller"));
            self.out.push(d.at(op.span).help("functions are expanded where they are called; use `loop`"));
        }
        Some(())
    }

    /// Returns true if calls lead from a function to the one being verified.
    fn reaches(&self, from: &'a Func) -> bool {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![from];
        while let Some(f) = open.pop() {
            if f.name == self.func.name {
                return true;
            }
            if seen.insert(&f.name) {
                let callees = f.ops.iter().filter_map(|(_, op)| match op.attr(AttrKey::Callee) {
                    Some(Attr::Str(name)) => self.module.function(name),
                    _ => None,
                });
                open.extend(callees);
            }
        }
        false
    }
}
