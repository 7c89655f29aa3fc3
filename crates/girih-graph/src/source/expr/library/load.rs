//! The part of the library that is written in the language itself.
//!
//! A function gives its modules with `@on("torch Tensor")`; a class of `nn.py` is in `torch.nn`. Names that begin with
//! `_` serve the other functions.

use std::rc::Rc;

use crate::source::expr::ast::{Argument, Expr, Function, Kind, Stmt, StmtKind};
use crate::source::expr::eval::Eval;
use crate::source::expr::parse::parse;
use crate::source::expr::value::Value;

const FILES: &[&str] = &[include_str!("../prelude/functions.py"), include_str!("../prelude/nn.py")];

/// A function or class of the prelude.
pub struct Item {
    /// `torch`, `F`, `nn`, ...; empty for helpers of other functions.
    pub on: Vec<String>,
    pub name: String,
    pub stmt: Stmt,
}

impl Item {
    /// The function, or the constructor of the class.
    pub fn function(&self) -> Option<Rc<Function>> {
        match &self.stmt.kind {
            StmtKind::Def(f, _) => Some(f.clone()),
            StmtKind::Class { body, .. } => body.iter().find_map(|s| match &s.kind {
                StmtKind::Def(f, _) if f.name == "__init__" => Some(f.clone()),
                _ => None,
            }),
            _ => None,
        }
    }
    pub fn doc(&self) -> &str {
        let body: &[Stmt] = match &self.stmt.kind {
            StmtKind::Def(f, _) => &f.body,
            StmtKind::Class { body, .. } => body,
            _ => &[],
        };
        match body.first().map(|s| &s.kind) {
            Some(StmtKind::Expr(Expr { kind: Kind::Str(text), .. })) => text,
            _ => "",
        }
    }
}

/// Everything in the prelude, in order.
pub fn items() -> Vec<Item> {
    let mut out = vec![];
    for text in FILES {
        // A test parses them.
        for stmt in parse(text).unwrap_or_default() {
            let (name, on) = match &stmt.kind {
                StmtKind::Class { name, .. } => (name.clone(), vec!["nn".into()]),
                StmtKind::Def(f, decorators) => (f.name.clone(), places(decorators)),
                _ => continue,
            };
            out.push(Item { on, name, stmt });
        }
    }
    out
}

fn places(decorators: &[Expr]) -> Vec<String> {
    for d in decorators {
        if let Kind::Call(_, args) = &d.kind
            && let Some(Argument::Positional(Expr { kind: Kind::Str(text), .. })) = args.first()
        {
            return text.split(' ').map(String::from).collect();
        }
    }
    vec![]
}

impl Eval<'_> {
    pub(in crate::source::expr) fn load_prelude(&mut self) {
        self.inside += 1;
        let user = std::mem::replace(&mut self.scope, self.prelude.clone());
        self.prelude.set("_aten", Value::Module("aten"));
        for item in items() {
            if self.define(&item.stmt).is_err() {
                continue;
            }
            let names = &self.prelude;
            let Some(v) = names.names.borrow().get(&item.name).cloned() else { continue };
            for on in &item.on {
                names.set(&format!("{on}.{}", item.name), v.clone());
            }
            if !item.name.starts_with('_') {
                names.names.borrow_mut().remove(&item.name);
            }
        }
        self.scope = user;
        self.inside -= 1;
    }
}
