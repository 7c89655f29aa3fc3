//! Statements.

use std::rc::Rc;

use super::{Eval, LONGEST};
use crate::base::Span;
use crate::base::words::did_you_mean;
use crate::graph::ValueId;
use crate::source::expr::ast::{self, Expr, Kind, Stmt, StmtKind};
use crate::source::expr::error::{Res, Stop, bad};
use crate::source::expr::library;
use crate::source::expr::value::{Class, Closure, Fixed, Scope, State, Tensor, Value};

/// How a block ended.
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

impl Eval<'_> {
    pub(super) fn block(&mut self, body: &[Stmt]) -> Res<Flow> {
        for stmt in body {
            match self.stmt(stmt)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) -> Res<Flow> {
        self.step(stmt.span)?;
        self.mark(stmt.span);
        self.nested(stmt.span, |e| e.stmt_inner(stmt))
    }

    fn stmt_inner(&mut self, stmt: &Stmt) -> Res<Flow> {
        match &stmt.kind {
            StmtKind::Expr(e) => {
                self.expr(e)?;
            }
            StmtKind::Assign(targets, value) => {
                let v = self.expr(value)?;
                for target in targets {
                    self.assign(target, v.clone())?;
                }
            }
            StmtKind::Augmented(target, op, value) => self.augmented(target, *op, value)?,
            StmtKind::Nothing => {}
            StmtKind::If(arms, other) => {
                for (cond, body) in arms {
                    let c = self.expr(cond)?;
                    self.mark(cond.span);
                    if self.truth(&c)? {
                        return self.block(body);
                    }
                }
                return self.block(other);
            }
            StmtKind::For { target, iter, body, other } => {
                let items = self.expr(iter)?;
                self.mark(iter.span);
                for item in self.items(&items)? {
                    self.assign(target, item)?;
                    match self.block(body)? {
                        Flow::Break => return Ok(Flow::Next),
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                        _ => {}
                    }
                }
                return self.block(other);
            }
            StmtKind::While { cond, body, other } => loop {
                self.step(stmt.span)?;
                let c = self.expr(cond)?;
                self.mark(cond.span);
                if !self.truth(&c)? {
                    return self.block(other);
                }
                match self.block(body)? {
                    Flow::Break => return Ok(Flow::Next),
                    Flow::Return(v) => return Ok(Flow::Return(v)),
                    _ => {}
                }
            },
            StmtKind::Def(def, decorators) => {
                let value = self.closure(def)?;
                let value = self.decorate(value, decorators)?;
                self.scope.set(&def.name, value);
            }
            StmtKind::Class { name, bases, body, decorators } => {
                let class = self.class(name, bases, body)?;
                let value = self.decorate(class, decorators)?;
                self.scope.set(name, value);
            }
            StmtKind::Return(value) => {
                let v = match value {
                    Some(e) => self.expr(e)?,
                    None => Value::None,
                };
                return Ok(Flow::Return(v));
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Import(names) => {
                for (path, alias) in names {
                    let module = self.module(path, stmt.span)?;
                    match alias {
                        Some(alias) => self.scope.set(alias, Value::Module(module)),
                        None => {
                            let root = path.split('.').next().unwrap_or(path);
                            let root = self.module(root, stmt.span)?;
                            self.scope.set(root, Value::Module(root));
                        }
                    }
                }
            }
            StmtKind::From(path, names) => {
                if path != "typing" && path != "__future__" && path != "collections" {
                    let module = Value::Module(self.module(path, stmt.span)?);
                    for (name, alias) in names {
                        let v = self.attribute(&module, name)?;
                        self.scope.set(alias.as_ref().unwrap_or(name), v);
                    }
                }
            }
            StmtKind::With(items, body) => {
                for (context, target) in items {
                    let c = self.expr(context)?;
                    if !matches!(c, Value::Context) {
                        let d = bad(context.span, format!("{} cannot be used with `with`", c.kind()))
                            .help("`torch.no_grad()` and `torch.inference_mode()` can");
                        return self.problem(d);
                    }
                    if let Some(target) = target {
                        self.assign(target, Value::None)?;
                    }
                }
                return self.block(body);
            }
            StmtKind::Assert(cond, message) => {
                let c = self.expr(cond)?;
                self.mark(cond.span);
                if !self.truth(&c)? {
                    let text = match message {
                        Some(m) => match self.expr(m)? {
                            Value::Str(s) if self.inside > 0 => s.to_string(),
                            Value::Str(s) => format!("the text's assertion does not hold: {s}"),
                            _ => "the text's assertion does not hold".into(),
                        },
                        None => "the text's assertion does not hold".into(),
                    };
                    self.mark(cond.span);
                    return self.fail(text);
                }
            }
            StmtKind::Raise(what) => return self.raise(what.as_ref()),
        }
        Ok(Flow::Next)
    }

    /// An exception's text becomes the message.
    fn raise(&mut self, what: Option<&Expr>) -> Res<Flow> {
        if let Some(Expr { kind: Kind::Call(_, args), .. }) = what
            && let Some(ast::Argument::Positional(first)) = args.first()
            && let Value::Str(text) = self.expr(first)?
        {
            return self.fail(text.to_string());
        }
        self.fail("the text raises an exception")
    }

    fn module(&mut self, path: &str, span: Span) -> Res<&'static str> {
        if let Some(m) = library::MODULES.iter().find(|m| m.path == path) {
            return Ok(m.name);
        }
        let known = library::MODULES.iter().map(|m| m.path);
        let help = did_you_mean(path, known)
            .unwrap_or("torch, torch.nn, torch.nn.functional, torch.linalg and math are supported".into());
        self.problem(bad(span, format!("the module `{path}` is not supported")).help(help))
    }

    fn decorate(&mut self, mut value: Value, decorators: &[Expr]) -> Res<Value> {
        for d in decorators.iter().rev() {
            if let Kind::Name(name) = &d.kind
                && let Value::Function(f) = &value
                && let fixed @ (Fixed::Static | Fixed::Property) = match name.as_str() {
                    "staticmethod" => Fixed::Static,
                    "property" => Fixed::Property,
                    _ => Fixed::Method,
                }
            {
                f.fixed.set(fixed);
                continue;
            }
            if self.inside > 0 {
                continue;
            }
            let decorator = self.expr(d)?;
            self.mark(d.span);
            value = match decorator {
                Value::Context => value,
                other => self.call(&other, vec![value], vec![])?,
            };
        }
        Ok(value)
    }

    pub(super) fn closure(&mut self, def: &Rc<ast::Function>) -> Res<Value> {
        let mut defaults = vec![];
        for p in &def.params {
            defaults.push(match &p.default {
                Some(e) => Some(self.expr(e)?),
                None => None,
            });
        }
        let closure = Closure {
            def: def.clone(),
            scope: Some(self.scope.clone()),
            defaults,
            class: Default::default(),
            library: self.inside > 0,
            fixed: std::cell::Cell::new(Fixed::Method),
        };
        Ok(Value::Function(Rc::new(closure)))
    }

    fn class(&mut self, name: &str, bases: &[Expr], body: &[Stmt]) -> Res<Value> {
        let mut parents = vec![];
        for base in bases {
            match self.expr(base)? {
                Value::Class(c) => parents.push(c),
                Value::Type("object") => {}
                Value::Unknown => return Err(Stop),
                other => {
                    let d = bad(base.span, format!("{} cannot be a base of a class", other.kind()));
                    return self.problem(d);
                }
            }
        }
        let outer = self.scope.clone();
        let scope = Scope::inside(&outer);
        self.scope = scope.clone();
        let outcome = self.block(body);
        self.scope = outer;
        outcome?;
        let members = std::mem::take(&mut *scope.names.borrow_mut());
        let depth = parents.iter().map(|p| p.depth + 1).max().unwrap_or(0);
        if depth > 32 {
            return self.fail("the bases of this class are nested too deeply");
        }
        let class = Rc::new(Class { name: name.into(), bases: parents, members: members.into(), depth });
        for member in class.members.borrow().values() {
            if let Value::Function(f) = member {
                f.class.borrow_mut().get_or_insert_with(|| Rc::downgrade(&class));
            }
        }
        Ok(Value::Class(class))
    }

    pub(super) fn assign(&mut self, target: &Expr, value: Value) -> Res<()> {
        match &target.kind {
            Kind::Name(name) => {
                if let Value::Tensor(t) = &value {
                    self.name_tensor(t, name);
                }
                self.scope.set(name, value);
                Ok(())
            }
            Kind::Attribute(object, name) => {
                let object = self.expr(object)?;
                self.mark(target.span);
                self.set_attribute(&object, name, value)
            }
            Kind::Subscript(object, index) => {
                let object = self.expr(object)?;
                let index = self.expr(index)?;
                self.mark(target.span);
                self.set_item(&object, &index, value)
            }
            Kind::Tuple(parts) | Kind::List(parts) => {
                self.mark(target.span);
                let items = self.items(&value)?;
                let star = parts.iter().position(|p| matches!(p.kind, Kind::Starred(_)));
                let fits = match star {
                    Some(_) => items.len() + 1 >= parts.len(),
                    None => items.len() == parts.len(),
                };
                if !fits {
                    let d = bad(target.span, format!("{} values are unpacked into {} names", items.len(), parts.len()));
                    return self.problem(d);
                }
                let rest = items.len() + 1 - parts.len().min(items.len() + 1);
                let mut at = 0;
                for p in parts {
                    if let Kind::Starred(inner) = &p.kind {
                        let taken = items.get(at..at + rest).unwrap_or_default().to_vec();
                        at += rest;
                        self.assign(inner, Value::list(taken))?;
                    } else {
                        let item = items.get(at).cloned().unwrap_or(Value::None);
                        at += 1;
                        self.assign(p, item)?;
                    }
                }
                Ok(())
            }
            _ => self.fail_at(target.span, "this cannot be assigned to"),
        }
    }

    /// The first name of an input or result is its name when printed.
    fn name_tensor(&mut self, t: &Tensor, name: &str) {
        if self.inside > 0 {
            return;
        }
        let mut result: Option<ValueId> = None;
        match &mut *t.state.borrow_mut() {
            State::Pending(d) => {
                if d.name.is_none() {
                    d.name = Some(name.into());
                }
            }
            State::Ready(v) => result = Some(*v),
        }
        if let Some(v) = result
            && matches!(self.graph.values[v].def, crate::graph::ir::Def::Node(..))
            && !self.named.contains(&v)
        {
            self.named.insert(v);
            self.graph.values[v].name = name.into();
        }
    }

    fn augmented(&mut self, target: &Expr, op: ast::Binary, value: &Expr) -> Res<()> {
        // The parts of the target are evaluated once.
        match &target.kind {
            Kind::Name(_) => {
                let old = self.expr(target)?;
                let new = self.expr(value)?;
                self.mark(target.span);
                if let Some(changed) = self.in_place(op, &old, &new)? {
                    return self.assign(target, changed);
                }
                let v = self.binary(op, &old, &new)?;
                self.assign(target, v)
            }
            Kind::Attribute(object, name) => {
                let object = self.expr(object)?;
                let old = self.attribute(&object, name)?;
                let new = self.expr(value)?;
                self.mark(target.span);
                if let Some(changed) = self.in_place(op, &old, &new)? {
                    return self.set_attribute(&object, name, changed);
                }
                let v = self.binary(op, &old, &new)?;
                self.set_attribute(&object, name, v)
            }
            Kind::Subscript(object, index) => {
                let object = self.expr(object)?;
                let index = self.expr(index)?;
                self.mark(target.span);
                let shared = if let Value::Tensor(t) = &object { Some((t.clone(), t.shared.get())) } else { None };
                let old = self.item(&object, &index)?;
                if let Some((t, shared)) = shared {
                    t.shared.set(shared);
                }
                let new = self.expr(value)?;
                self.mark(target.span);
                let v = self.binary(op, &old, &new)?;
                self.set_item(&object, &index, v)
            }
            _ => self.fail_at(target.span, "this cannot be assigned to"),
        }
    }

    /// `x += y` where `x` changes in place: a tensor, or a list.
    fn in_place(&mut self, op: ast::Binary, old: &Value, new: &Value) -> Res<Option<Value>> {
        match old {
            Value::Tensor(t) => {
                let Value::Tensor(result) = self.binary(op, old, new)? else { return Ok(None) };
                self.replace(t, &result)?;
                Ok(Some(old.clone()))
            }
            Value::List(items) if op == ast::Binary::Add => {
                let more = self.items(new)?;
                if items.borrow().len() + more.len() > LONGEST {
                    return self.fail("this list becomes too long");
                }
                items.borrow_mut().extend(more);
                Ok(Some(old.clone()))
            }
            _ => Ok(None),
        }
    }
}
