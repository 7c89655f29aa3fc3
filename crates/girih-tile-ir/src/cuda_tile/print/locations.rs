//! Debug locations in text: `loc(...)` after a statement, and aliases at the end of the file.
//!
//! Aliases are numbered in MLIR's way. The attributes are visited in the order of the text, each before its parts; then
//! they are sorted by the height of their trees and by name, with a stable sort, and each name has a counter of its
//! own:
//!
//! ```text
//!   %0 = make_token : token loc(#loc1)
//! #di_file = #cuda_tile.di_file<"ex.py" in "lib">
//! #loc = loc("lib/ex.py":7:0)
//! #di_compile_unit = #cuda_tile.di_compile_unit<file = #di_file>
//! #di_subprogram = #cuda_tile.di_subprogram<file = #di_file, line = 6, ...>
//! #loc1 = #cuda_tile.di_loc<#loc in #di_subprogram>
//! ```

use rustc_hash::FxHashMap;

use crate::base::lexer::escape;
use crate::cuda_tile::ir::*;
use crate::cuda_tile::loc::{LocKind, Scope, ScopeKind};

/// An attribute that has an alias.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Attribute {
    Loc(Loc),
    Scope(Scope),
}

impl Attribute {
    fn name(&self) -> &'static str {
        match self {
            Attribute::Loc(_) => "loc",
            Attribute::Scope(s) => match s.kind() {
                ScopeKind::File(_) => "di_file",
                ScopeKind::CompileUnit(_) => "di_compile_unit",
                ScopeKind::LexicalBlock { .. } => "di_lexical_block",
                ScopeKind::Subprogram(_) => "di_subprogram",
            },
        }
    }

    /// The attributes in its text, in the order of the text.
    fn parts(&self) -> Vec<Attribute> {
        let loc = |l: &Loc| Attribute::Loc(l.clone());
        let file = |f: &crate::cuda_tile::loc::File| Attribute::Scope(Scope::file(f.clone()));
        match self {
            Attribute::Loc(l) => match l.kind() {
                None | Some(LocKind::File(_)) => vec![],
                Some(LocKind::Scoped { loc: inner, scope }) => vec![loc(inner), Attribute::Scope(scope.clone())],
                Some(LocKind::CallSite { callee, caller }) => vec![loc(callee), loc(caller)],
                Some(LocKind::Named { loc: inner, .. }) if inner.is_unknown() => vec![],
                Some(LocKind::Named { loc: inner, .. }) => vec![loc(inner)],
                Some(LocKind::Fused(parts)) => parts.iter().map(loc).collect(),
            },
            Attribute::Scope(s) => match s.kind() {
                ScopeKind::File(_) => vec![],
                ScopeKind::CompileUnit(unit) => vec![file(&unit.file)],
                ScopeKind::LexicalBlock { scope, file: f, .. } => vec![Attribute::Scope(scope.clone()), file(f)],
                ScopeKind::Subprogram(p) => {
                    vec![file(&p.file), Attribute::Scope(Scope::compile_unit(p.compile_unit.clone()))]
                }
            },
        }
    }
}

/// The aliases of a module; by default no location is written.
#[derive(Default)]
pub(super) struct Locations {
    /// Plain places are written where they are used; otherwise every location is written through an alias.
    plain: bool,
    /// In order of definition, with the text of each.
    aliases: Vec<(Attribute, String)>,
    names: FxHashMap<Attribute, String>,
}

impl Locations {
    pub fn nvidia(m: &Module) -> Locations {
        let mut found = Found::default();
        each_location(m, true, &mut |loc| {
            found.meet(&Attribute::Loc(loc.clone()));
        });
        Locations::number(false, found)
    }

    /// Unknown locations are left out, and plain places are written where they are used.
    pub fn girih(m: &Module) -> Locations {
        let mut found = Found::default();
        each_location(m, false, &mut |loc| {
            if !matches!(loc.kind(), None | Some(LocKind::File(_))) {
                found.meet(&Attribute::Loc(loc.clone()));
            }
        });
        Locations::number(true, found)
    }

    fn number(plain: bool, found: Found) -> Locations {
        let mut order = found.order;
        order.sort_by_key(|(a, height)| (*height, a.name()));
        let mut counts: FxHashMap<&str, u32> = FxHashMap::default();
        let mut out = Locations { plain, ..Locations::default() };
        for (attribute, _) in order {
            let count = counts.entry(attribute.name()).or_default();
            let suffix = if *count == 0 { String::new() } else { count.to_string() };
            out.names.insert(attribute.clone(), format!("#{}{suffix}", attribute.name()));
            *count += 1;
            let text = out.text(&attribute);
            out.aliases.push((attribute, text));
        }
        out
    }

    /// ` loc(...)` behind a statement.
    pub fn reference(&self, loc: &Loc) -> String {
        if let Some(name) = self.names.get(&Attribute::Loc(loc.clone())) {
            return format!(" loc({name})");
        }
        match loc.kind() {
            Some(LocKind::File(place)) if self.plain => {
                format!(" loc({}:{}:{})", escape(&place.file), place.line, place.column)
            }
            _ => String::new(),
        }
    }

    pub fn definitions(&self) -> impl Iterator<Item = String> {
        self.aliases.iter().map(|(a, text)| format!("{} = {text}", self.named(a)))
    }

    fn named(&self, a: &Attribute) -> &str {
        self.names.get(a).map_or("", String::as_str)
    }

    /// The definition of an alias. Its parts are lower trees, so they have their names already.
    fn text(&self, a: &Attribute) -> String {
        let loc = |l: &Loc| self.named(&Attribute::Loc(l.clone())).to_string();
        let scope = |s: &Scope| self.named(&Attribute::Scope(s.clone())).to_string();
        let file = |f: &crate::cuda_tile::loc::File| scope(&Scope::file(f.clone()));
        match a {
            Attribute::Loc(l) => match l.kind() {
                None => "loc(unknown)".into(),
                Some(LocKind::File(p)) => format!("loc({}:{}:{})", escape(&p.file), p.line, p.column),
                Some(LocKind::Scoped { loc: l, scope: s }) => format!("#cuda_tile.di_loc<{} in {}>", loc(l), scope(s)),
                Some(LocKind::CallSite { callee, caller }) => {
                    format!("loc(callsite({} at {}))", loc(callee), loc(caller))
                }
                Some(LocKind::Named { name, loc: l }) if l.is_unknown() => format!("loc({})", escape(name)),
                Some(LocKind::Named { name, loc: l }) => format!("loc({}({}))", escape(name), loc(l)),
                Some(LocKind::Fused(parts)) => {
                    format!("loc(fused[{}])", parts.iter().map(loc).collect::<Vec<_>>().join(", "))
                }
            },
            Attribute::Scope(s) => match s.kind() {
                ScopeKind::File(f) => format!("#cuda_tile.di_file<{} in {}>", escape(&f.name), escape(&f.directory)),
                ScopeKind::CompileUnit(u) => format!("#cuda_tile.di_compile_unit<file = {}>", file(&u.file)),
                ScopeKind::LexicalBlock { scope: outer, file: f, line, column } => format!(
                    "#cuda_tile.di_lexical_block<scope = {}, file = {}, line = {line}, column = {column}>",
                    scope(outer),
                    file(f)
                ),
                ScopeKind::Subprogram(p) => format!(
                    "#cuda_tile.di_subprogram<file = {}, line = {}, name = {}, linkageName = {}, compileUnit = {}, scopeLine = {}>",
                    file(&p.file),
                    p.line,
                    escape(&p.name),
                    escape(&p.linkage_name),
                    scope(&Scope::compile_unit(p.compile_unit.clone())),
                    p.scope_line
                ),
            },
        }
    }
}

/// The attributes found so far, each before its parts, with the heights of their trees.
#[derive(Default)]
struct Found {
    order: Vec<(Attribute, u32)>,
    at: FxHashMap<Attribute, usize>,
}

impl Found {
    fn meet(&mut self, a: &Attribute) -> u32 {
        if let Some(&at) = self.at.get(a) {
            return self.order[at].1;
        }
        let at = self.order.len();
        self.at.insert(a.clone(), at);
        self.order.push((a.clone(), 1));
        let below = a.parts().iter().map(|p| self.meet(p)).max().unwrap_or(0);
        self.order[at].1 = below + 1;
        below + 1
    }
}

/// Every location that is written, in the order of the text; `implied` leaves out those of terminators that are not
/// written.
fn each_location(m: &Module, implied: bool, meet: &mut impl FnMut(&Loc)) {
    m.globals.iter().for_each(|g| meet(&g.loc));
    for f in &m.funcs {
        meet(&f.loc);
        let mut stack: Vec<(std::slice::Iter<OpId>, Opcode)> = vec![(f.regions[Func::BODY].ops.iter(), Opcode::Return)];
        while let Some((ops, end)) = stack.last_mut() {
            let Some(&id) = ops.next() else {
                stack.pop();
                continue;
            };
            let op = &f.ops[id];
            let left_out = implied && *end != Opcode::Return && op.opcode == *end && op.operands.is_empty();
            if !left_out {
                meet(&op.loc);
            }
            let end = match op.opcode {
                Opcode::For | Opcode::Loop => Opcode::Continue,
                _ => Opcode::Yield,
            };
            stack.extend(op.regions.iter().rev().map(|&r| (f.regions[r].ops.iter(), end)));
        }
    }
}
