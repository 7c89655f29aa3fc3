//! The scopes of debug locations.
//!
//! A scope is a function of the source or a block inside one. The location of an entry lies in the function that the
//! entry is made from, not in a block and not at a call; the location of an operation lies in the same function, or in
//! code that was called from it. If the entry has no scope, nothing in it may have one; globals never have one.

use super::Verifier;
use crate::base::{Code, Diagnostic};
use crate::cuda_tile::ir::*;
use crate::cuda_tile::loc::{LocKind, Scope, ScopeKind, Subprogram};

/// The scope of code after inlining: that of the outermost caller.
fn outer_scope(loc: &Loc) -> Option<&Scope> {
    match loc.kind()? {
        LocKind::File(_) => None,
        LocKind::Scoped { scope, .. } => Some(scope),
        LocKind::CallSite { caller, .. } => outer_scope(caller),
        LocKind::Named { loc, .. } => outer_scope(loc),
        LocKind::Fused(parts) => parts.iter().find_map(outer_scope),
    }
}

/// Returns true if the location contains a scope that is neither a function nor inside one.
fn misplaced(loc: &Loc) -> bool {
    match loc.kind() {
        None | Some(LocKind::File(_)) => false,
        Some(LocKind::Scoped { loc, scope }) => scope.function().is_none() || misplaced(loc),
        Some(LocKind::CallSite { callee, caller }) => misplaced(callee) || misplaced(caller),
        Some(LocKind::Named { loc, .. }) => misplaced(loc),
        Some(LocKind::Fused(parts)) => parts.iter().any(misplaced),
    }
}

pub(super) fn global(g: &Global, out: &mut Vec<Diagnostic>) {
    if outer_scope(&g.loc).is_some() {
        let message = format!("the debug location of global `@{}` is in a scope, but globals have none", g.name);
        out.push(Diagnostic::error(Code::BadLocation, message).at(g.span));
    }
}

impl<'a> Verifier<'a> {
    pub(super) fn locations(&mut self) {
        let scope = self.function_scope();
        let mut last = None;
        for op in self.func.ops.values() {
            // Neighbours mostly share their locations.
            if op.loc.is_unknown() || last == Some(&op.loc) {
                continue;
            }
            last = Some(&op.loc);
            if misplaced(&op.loc) {
                self.error(Code::BadLocation, op.span, "a debug location is in a file or a unit, not in a function");
                continue;
            }
            let Some(own) = outer_scope(&op.loc).and_then(Scope::function) else { continue };
            match scope {
                None => {
                    let text = format!("the debug location is in function `{}`, but the entry's is in none", own.name);
                    self.error_help(Code::BadLocation, op.span, text, "give the entry a location in that function");
                }
                Some(scope) if scope != own => {
                    let text = format!(
                        "the debug location is in function `{}`, but the entry's is in `{}`",
                        own.name, scope.name
                    );
                    let help = "say where the code was called from: `callsite(... at ...)`";
                    self.error_help(Code::BadLocation, op.span, text, help);
                }
                Some(_) => {}
            }
        }
    }

    /// The function of the source that contains the location of this function.
    fn function_scope(&mut self) -> Option<&'a Subprogram> {
        let f = self.func;
        let scope = outer_scope(&f.loc)?;
        let mut error = |text: String| self.error(Code::BadLocation, f.span, text);
        if is_call(&f.loc) {
            error(format!("the debug location of `@{}` is a call, but nothing calls an entry", f.name));
        }
        match scope.kind() {
            ScopeKind::Subprogram(s) if *s.linkage_name != *f.name => error(format!(
                "the debug location of `@{}` is in the function that became `{}`",
                f.name, s.linkage_name
            )),
            ScopeKind::Subprogram(_) => {}
            ScopeKind::LexicalBlock { .. } => {
                error(format!("the debug location of `@{}` is in a block of a function, not in the function", f.name));
            }
            ScopeKind::File(_) | ScopeKind::CompileUnit(_) => {
                error(format!("the debug location of `@{}` is in a file or a unit, not in a function", f.name));
            }
        }
        scope.function()
    }
}

fn is_call(loc: &Loc) -> bool {
    match loc.kind() {
        None | Some(LocKind::File(_) | LocKind::Scoped { .. }) => false,
        Some(LocKind::CallSite { .. }) => true,
        Some(LocKind::Named { loc, .. }) => is_call(loc),
        Some(LocKind::Fused(parts)) => parts.iter().any(is_call),
    }
}
