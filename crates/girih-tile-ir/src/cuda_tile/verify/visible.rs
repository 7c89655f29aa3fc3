//! Which values an operation may use: parameters, what earlier operations of its region define, and what the regions around
//! it have there.
//!
//! In: a function as its front end built it. Out: an error at each operation with an operand that is not visible at it,
//! and at each value that has two definitions. The readers of text and of bytecode resolve names in scope, so such
//! programs come from builders.
//!
//! ```text
//! %a = addf %f, %z          error[E0103]: `addf` uses the value %z where it is not defined
//! %z = mulf %f, %f          defined here
//! ```

use super::{Verifier, name};
use crate::base::id::Id;
use crate::base::{Code, Diagnostic};
use crate::cuda_tile::ir::*;

/// A region that is being walked.
struct Open {
    region: RegionId,
    /// The operation at hand, and which of its regions comes next.
    op: usize,
    inner: usize,
    /// Values that were visible before the region.
    outer: usize,
}

/// The values that are visible at a place.
struct Scope {
    /// In the order of their definitions.
    defined: Vec<ValueId>,
    is_visible: Vec<bool>,
    /// Values that have a definition already.
    met: Vec<bool>,
}

impl Scope {
    fn of(values: usize) -> Scope {
        Scope { defined: vec![], is_visible: vec![false; values], met: vec![false; values] }
    }

    /// Makes a value visible; `false` where it was defined before.
    fn define(&mut self, v: ValueId) -> bool {
        let (Some(visible), Some(met)) = (self.is_visible.get_mut(v.index()), self.met.get_mut(v.index())) else {
            return true;
        };
        *visible = true;
        self.defined.push(v);
        !std::mem::replace(met, true)
    }

    fn has(&self, v: ValueId) -> bool {
        self.is_visible.get(v.index()).copied().unwrap_or(false)
    }

    fn leave(&mut self, outer: usize) {
        for v in self.defined.drain(outer..) {
            if let Some(visible) = self.is_visible.get_mut(v.index()) {
                *visible = false;
            }
        }
    }
}

impl<'a> Verifier<'a> {
    pub(super) fn visibility(&mut self) {
        let func = self.func;
        let mut scope = Scope::of(func.values.len());
        let mut entered = vec![false; func.regions.len()];
        let mut open = vec![];
        self.enter(Func::BODY, &mut open, &mut entered, &mut scope);
        while let Some(top) = open.last_mut() {
            let op = func.regions.get(top.region).and_then(|r| r.ops.get(top.op));
            let Some(&op) = op else {
                scope.leave(top.outer);
                open.pop();
                continue;
            };
            let Some(op) = self.op(op) else {
                top.op += 1;
                continue;
            };
            if top.inner == 0 {
                self.uses(op, &scope);
            }
            match op.regions.get(top.inner) {
                Some(&region) => {
                    top.inner += 1;
                    self.enter(region, &mut open, &mut entered, &mut scope);
                }
                None => {
                    (top.op, top.inner) = (top.op + 1, 0);
                    self.define(&op.results, &mut scope);
                }
            }
        }
    }

    /// Begins a region, if no other operation has it too.
    fn enter(&mut self, region: RegionId, open: &mut Vec<Open>, entered: &mut [bool], scope: &mut Scope) {
        let is_new = entered.get_mut(region.index()).is_some_and(|seen| !std::mem::replace(seen, true));
        let Some(found) = self.func.regions.get(region).filter(|_| is_new) else { return };
        open.push(Open { region, op: 0, inner: 0, outer: scope.defined.len() });
        self.define(&found.args, scope);
    }

    fn define(&mut self, values: &'a [ValueId], scope: &mut Scope) {
        for &v in values {
            if !scope.define(v) {
                let (shown, span) = self.shown(v);
                self.error(Code::Redefinition, span, format!("{shown} is defined twice"));
            }
        }
    }

    fn uses(&mut self, op: &'a Op, scope: &Scope) {
        let mut hidden: Vec<ValueId> = op.operands.iter().copied().filter(|&v| !scope.has(v)).collect();
        hidden.sort();
        hidden.dedup();
        for v in hidden {
            let (shown, span) = self.shown(v);
            let text = format!("`{}` uses {shown} where it is not defined", name(op));
            let d = Diagnostic::error(Code::UndefinedValue, text).at(op.span).label(span, "it is defined here");
            self.out.push(d.help("a value is visible behind its definition, to the end of the region that holds it"));
        }
    }

    /// A value in words, and where it is defined.
    fn shown(&self, v: ValueId) -> (String, crate::base::Span) {
        match self.func.values.get(v) {
            Some(value) => (value.name.as_ref().map_or("a value".into(), |n| format!("the value %{n}")), value.span),
            None => (format!("value {} of {}", v.index(), self.func.values.len()), self.func.span),
        }
    }
}
