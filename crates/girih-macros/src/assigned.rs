//! Which variables a piece of a kernel assigns that were there before it.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprClosure, ExprForLoop, Ident, Item, Local, Pat};

/// The names that a pattern introduces.
pub fn names(pattern: &Pat) -> Vec<String> {
    struct Names(Vec<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
            self.0.push(p.ident.to_string());
            visit::visit_pat_ident(self, p);
        }
        fn visit_expr(&mut self, _: &'ast Expr) {}
    }
    let mut found = Names(Vec::new());
    found.visit_pat(pattern);
    found.0
}

/// Names that are assigned, or lent mutably, by name, each with its first place.
#[derive(Default)]
pub struct Assigned {
    found: BTreeMap<String, Ident>,
    own: Vec<Vec<String>>,
}

impl Assigned {
    pub fn of_block(block: &Block) -> Assigned {
        let mut found = Assigned::default();
        found.visit_block(block);
        found
    }
    pub fn and_expr(mut self, expr: &Expr) -> Assigned {
        self.visit_expr(expr);
        self
    }
    pub fn into_names(self) -> impl Iterator<Item = (String, Ident)> {
        self.found.into_iter()
    }

    fn target(&mut self, expr: &Expr) {
        match expr {
            Expr::Path(p) => {
                if let Some(ident) = p.path.get_ident() {
                    let name = ident.to_string();
                    if !self.own.iter().flatten().any(|n| *n == name) {
                        self.found.entry(name).or_insert_with(|| ident.clone());
                    }
                }
            }
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.target(e)),
            Expr::Array(a) => a.elems.iter().for_each(|e| self.target(e)),
            Expr::Paren(p) => self.target(&p.expr),
            // An assignment to `a.b` or `a[i]` assigns the variable `a`.
            Expr::Field(f) => self.target(&f.base),
            Expr::Index(i) => self.target(&i.expr),
            _ => {}
        }
    }
    fn declare(&mut self, pattern: &Pat) {
        if let Some(scope) = self.own.last_mut() {
            scope.extend(names(pattern));
        }
    }
}

impl<'ast> Visit<'ast> for Assigned {
    fn visit_block(&mut self, block: &'ast Block) {
        self.own.push(Vec::new());
        visit::visit_block(self, block);
        self.own.pop();
    }
    fn visit_local(&mut self, local: &'ast Local) {
        visit::visit_local(self, local);
        self.declare(&local.pat);
    }
    fn visit_expr_for_loop(&mut self, l: &'ast ExprForLoop) {
        self.visit_expr(&l.expr);
        self.own.push(names(&l.pat));
        self.visit_block(&l.body);
        self.own.pop();
    }
    fn visit_expr_closure(&mut self, c: &'ast ExprClosure) {
        self.own.push(c.inputs.iter().flat_map(names).collect());
        self.visit_expr(&c.body);
        self.own.pop();
    }
    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Assign(a) => self.target(&a.left),
            Expr::Binary(b) if crate::rewrite::is_assignment(&b.op) => self.target(&b.left),
            Expr::Reference(r) if r.mutability.is_some() => self.target(&r.expr),
            _ => {}
        }
        visit::visit_expr(self, expr);
    }
    fn visit_item(&mut self, _: &'ast Item) {}
}
