//! Expressions.

use std::rc::Rc;

use super::{Eval, LONGEST};
use crate::base::words::did_you_mean;
use crate::source::expr::ast::{Argument, Clause, Compare, Expr, Kind, Unary};
use crate::source::expr::error::{Res, Stop, bad};
use crate::source::expr::library;
use crate::source::expr::value::{Scope, Tensor, Value};

impl Eval<'_> {
    pub(super) fn expr(&mut self, e: &Expr) -> Res<Value> {
        self.step(e.span)?;
        self.nested(e.span, |s| s.expr_inner(e))
    }

    fn expr_inner(&mut self, e: &Expr) -> Res<Value> {
        Ok(match &e.kind {
            Kind::None => Value::None,
            Kind::Ellipsis => Value::Ellipsis,
            Kind::Bool(b) => Value::Bool(*b),
            Kind::Int(i) => Value::Int(*i),
            Kind::Float(x) => Value::Float(*x),
            Kind::Str(s) => Value::Str(s.clone()),
            Kind::Name(name) => return self.name(name, e),
            Kind::Tuple(parts) => Value::tuple(self.exprs(parts)?),
            Kind::List(parts) => Value::list(self.exprs(parts)?),
            Kind::Dict(parts) => {
                let mut items = vec![];
                for (k, v) in parts {
                    let k = self.expr(k)?;
                    let v = self.expr(v)?;
                    items.push((k, v));
                }
                Value::dict(items)
            }
            Kind::Unary(op, inner) => {
                let v = self.expr(inner)?;
                self.mark(e.span);
                return self.unary(*op, &v);
            }
            Kind::Binary(..) => return self.chain(e),
            Kind::Compare(first, rest) => return self.comparison(e, first, rest),
            Kind::And(parts) | Kind::Or(parts) => {
                let is_and = matches!(e.kind, Kind::And(_));
                let mut last = Value::Bool(is_and);
                for p in parts {
                    last = self.expr(p)?;
                    self.mark(p.span);
                    if self.truth(&last)? != is_and {
                        return Ok(last);
                    }
                }
                last
            }
            Kind::IfElse { cond, then, other } => {
                let c = self.expr(cond)?;
                self.mark(cond.span);
                return if self.truth(&c)? { self.expr(then) } else { self.expr(other) };
            }
            Kind::Attribute(object, name) => {
                let v = self.expr(object)?;
                self.mark(e.span);
                return self.attribute(&v, name);
            }
            Kind::Subscript(object, index) => {
                let v = self.expr(object);
                let i = self.expr(index)?;
                self.mark(e.span);
                return self.item(&v?, &i);
            }
            Kind::Slice(a, b, c) => {
                let mut part = |x: &Option<Box<Expr>>| match x {
                    Some(x) => self.expr(x),
                    None => Ok(Value::None),
                };
                Value::Slice(Rc::new([part(a)?, part(b)?, part(c)?]))
            }
            Kind::Call(function, args) => return self.call_expr(e, function, args),
            Kind::Lambda(def) => return self.closure(def),
            Kind::Comprehension { element, value, clauses } => {
                let outer = self.scope.clone();
                self.scope = Scope::inside(&outer);
                let mut out = vec![];
                let outcome = self.comprehension(clauses, element, value.as_deref(), &mut out);
                self.scope = outer;
                outcome?;
                if value.is_some() { Value::dict(out) } else { Value::list(out.into_iter().map(|(k, _)| k).collect()) }
            }
            Kind::Starred(_) => return self.fail_at(e.span, "`*` is not allowed here"),
        })
    }

    fn comprehension(
        &mut self,
        clauses: &[Clause],
        element: &Expr,
        value: Option<&Expr>,
        out: &mut Vec<(Value, Value)>,
    ) -> Res<()> {
        let Some((first, rest)) = clauses.split_first() else {
            if out.len() >= LONGEST {
                return self.fail_at(element.span, "this list becomes too long");
            }
            let e = self.expr(element)?;
            let v = match value {
                Some(v) => self.expr(v)?,
                None => Value::None,
            };
            out.push((e, v));
            return Ok(());
        };
        match first {
            Clause::If(cond) => {
                let c = self.expr(cond)?;
                self.mark(cond.span);
                if self.truth(&c)? {
                    self.nested(cond.span, |s| s.comprehension(rest, element, value, out))
                } else {
                    Ok(())
                }
            }
            Clause::For(target, iter) => {
                let items = self.expr(iter)?;
                self.mark(iter.span);
                for item in self.items(&items)? {
                    self.step(target.span)?;
                    self.assign(target, item)?;
                    self.nested(iter.span, |s| s.comprehension(rest, element, value, out))?;
                }
                Ok(())
            }
        }
    }

    /// The parts of a list or tuple, `*spread` included. All are evaluated even where one is refused.
    fn exprs(&mut self, parts: &[Expr]) -> Res<Vec<Value>> {
        let mut out = vec![];
        let mut stop = false;
        for p in parts {
            let outcome = match &p.kind {
                Kind::Starred(inner) => self.expr(inner).and_then(|v| self.items(&v)),
                _ => self.expr(p).map(|v| vec![v]),
            };
            match outcome {
                Ok(v) => out.extend(v),
                Err(Stop) => stop = true,
            }
        }
        if stop { Err(Stop) } else { Ok(out) }
    }

    fn name(&mut self, name: &str, e: &Expr) -> Res<Value> {
        if let Some(v) = self.scope.get(name) {
            return if matches!(v, Value::Unknown) { Err(Stop) } else { Ok(v) };
        }
        self.mark(e.span);
        if self.inside == 0
            && let Some(t) = self.given_input(name)?
        {
            return Ok(Value::Tensor(t));
        }
        if let Some(v) = library::python(name) {
            return Ok(v);
        }
        if self.extents > 0 && self.inside == 0 {
            let sym = self.graph.add_symbol(name, 1, None);
            let v = Value::Extent(sym.ix());
            self.globals.set(name, v.clone());
            return Ok(v);
        }
        let mut names: Vec<String> = vec![];
        let mut scope = Some(self.scope.clone());
        while let Some(s) = scope {
            names.extend(s.names.borrow().keys().cloned());
            scope = s.parent.clone();
        }
        names.extend(library::python_names().map(String::from));
        names.retain(|n| !n.starts_with('_') || name.starts_with('_'));
        let meant = match library::find("torch", name).is_some() {
            true => Some(format!("did you mean `torch.{name}`?")),
            false => did_you_mean(name, names.iter().map(String::as_str)),
        };
        let give = format!("give it with `--arg {name}=randn:f32[4x8]` or `--arg {name}=FILE.npy`, or assign it");
        let help = match meant {
            Some(meant) => format!("{meant} If it is an input, {give}"),
            None => give,
        };
        let d = bad(e.span, format!("the name `{name}` is not defined")).help(help);
        if self.inside == 0 {
            self.globals.set(name, Value::Unknown);
        }
        self.problem(d)
    }

    fn given_input(&mut self, name: &str) -> Res<Option<Tensor>> {
        if let Some(t) = self.used_given.get(name) {
            return Ok(Some(t.clone()));
        }
        let Some(given) = self.given.iter().find(|g| g.name == name) else { return Ok(None) };
        let mut shape = vec![];
        for (d, extent) in given.shape.iter().enumerate() {
            shape.push(match extent {
                Some(n) => crate::index::Ix::Const((*n).try_into().unwrap_or(i64::MAX)),
                None => self.graph.add_symbol(&format!("{name}_{d}"), 1, None).ix(),
            });
        }
        let t = self.input(given.elem, shape, crate::graph::Role::Argument, crate::graph::Fill::Given)?;
        if let super::State::Pending(d) = &mut *t.state.borrow_mut() {
            d.name = Some(name.into());
        }
        self.used_given.insert(name.into(), t.clone());
        Ok(Some(t))
    }

    /// A chain of binary operators, without recursion along it. Both sides are evaluated even where one is refused.
    fn chain(&mut self, e: &Expr) -> Res<Value> {
        let mut spine = vec![];
        let mut at = e;
        while let Kind::Binary(op, left, right) = &at.kind {
            spine.push((*op, right, at.span));
            at = left;
        }
        let mut value = self.expr(at);
        for (op, right, span) in spine.into_iter().rev() {
            let right = self.expr(right);
            value = match (value, right) {
                (Ok(a), Ok(b)) => {
                    self.mark(span);
                    self.binary(op, &a, &b)
                }
                _ => Err(Stop),
            };
        }
        value
    }

    fn comparison(&mut self, e: &Expr, first: &Expr, rest: &[(Compare, Expr)]) -> Res<Value> {
        let mut left = self.expr(first)?;
        let mut result = Value::Bool(true);
        for (i, (op, right)) in rest.iter().enumerate() {
            let right = self.expr(right)?;
            self.mark(e.span);
            result = self.compare(*op, &left, &right)?;
            let last = i + 1 == rest.len();
            if !last && !self.truth(&result)? {
                return Ok(result);
            }
            left = right;
        }
        Ok(result)
    }

    pub(super) fn unary(&mut self, op: Unary, v: &Value) -> Res<Value> {
        match (op, v) {
            (Unary::Not, v) => Ok(Value::Bool(!self.truth(v)?)),
            (Unary::Neg, Value::Tensor(t)) => self.simple("aten.neg", t),
            (Unary::Invert, Value::Tensor(t)) => self.simple("aten.bitwise_not", t),
            (Unary::Pos, Value::Tensor(_) | Value::Int(_) | Value::Extent(_) | Value::Float(_)) => Ok(v.clone()),
            (Unary::Neg, Value::Float(x)) => Ok(Value::Float(-x)),
            (Unary::Neg, Value::Int(_) | Value::Extent(_) | Value::Bool(_)) => {
                self.binary(crate::source::expr::ast::Binary::Sub, &Value::Int(0), v)
            }
            (Unary::Invert, Value::Int(i)) => Ok(Value::Int(!i)),
            (_, Value::Unknown) => Err(Stop),
            _ => {
                let sign = match op {
                    Unary::Neg => "-",
                    Unary::Pos => "+",
                    _ => "~",
                };
                let kind = v.kind();
                self.fail(format!("`{sign}` cannot be applied to {kind}"))
            }
        }
    }

    /// One operation of one tensor.
    pub(super) fn simple(&mut self, name: &str, t: &Tensor) -> Res<Value> {
        let arg = self.arg(t);
        Ok(Value::Tensor(self.aten1(name, vec![arg], Default::default())?))
    }

    fn call_expr(&mut self, e: &Expr, function: &Expr, args: &[Argument]) -> Res<Value> {
        let callee = match &function.kind {
            Kind::Name(name) if name == "super" && self.scope.get(name).is_none() => {
                let mut given = vec![];
                for a in args {
                    if let Argument::Positional(a) = a {
                        given.push(self.expr(a)?);
                    }
                }
                self.mark(e.span);
                return self.superclass(&given);
            }
            _ => self.expr(function),
        };
        let shape = matches!(&callee, Ok(Value::Library(entry, _)) if entry.makes_input());
        self.extents += u32::from(shape);
        let outcome = self.call_args(args);
        self.extents -= u32::from(shape);
        let callee = callee?;
        let (positional, keywords) = outcome?;
        self.mark(e.span);
        self.call(&callee, positional, keywords)
    }

    #[allow(clippy::type_complexity)]
    fn call_args(&mut self, args: &[Argument]) -> Res<(Vec<Value>, Vec<(String, Value)>)> {
        let (mut positional, mut keywords) = (vec![], vec![]);
        let mut stop = false;
        for a in args {
            let outcome = match a {
                Argument::Positional(e) => self.expr(e).map(|v| positional.push(v)),
                Argument::Spread(e) => self.expr(e).and_then(|v| self.items(&v)).map(|items| positional.extend(items)),
                Argument::Keyword(name, span, e) => match self.expr(e) {
                    Ok(_) if keywords.iter().any(|(n, _)| n == name) => {
                        self.fail_at(*span, format!("the argument `{name}` is given twice"))
                    }
                    Ok(v) => {
                        keywords.push((name.clone(), v));
                        Ok(())
                    }
                    Err(Stop) => Err(Stop),
                },
                Argument::SpreadKeywords(e) => match self.expr(e) {
                    Ok(Value::Dict(items)) => {
                        for (k, v) in items.borrow().iter() {
                            if let Value::Str(k) = k {
                                keywords.push((k.to_string(), v.clone()));
                            }
                        }
                        Ok(())
                    }
                    Ok(other) => self.fail_at(e.span, format!("`**` needs a dict, found {}", other.kind())),
                    Err(Stop) => Err(Stop),
                },
            };
            stop |= outcome.is_err();
        }
        if stop { Err(Stop) } else { Ok((positional, keywords)) }
    }

    /// The truth of a value; that of a tensor is not known.
    pub fn truth(&mut self, v: &Value) -> Res<bool> {
        Ok(match v {
            Value::None => false,
            Value::Bool(b) => *b,
            Value::Int(i) => *i != 0,
            Value::Float(x) => *x != 0.0,
            Value::Str(s) => !s.is_empty(),
            Value::Tuple(t) => !t.is_empty(),
            Value::List(l) => !l.borrow().is_empty(),
            Value::Dict(d) => !d.borrow().is_empty(),
            Value::Range(a, b, s) => super::operators::range_len(*a, *b, *s) > 0,
            Value::Unknown => return Err(Stop),
            Value::Extent(_) => return self.truth_of_extent(v),
            Value::Tensor(_) => {
                return self.fail_help(
                    "the values of a tensor are not known while the text is evaluated",
                    "choose between values with `torch.where(condition, a, b)`",
                );
            }
            Value::Object(o) if o.class.is("ModuleList") => match o.get("_items") {
                Some(Value::List(l)) => !l.borrow().is_empty(),
                _ => true,
            },
            _ => true,
        })
    }

    fn truth_of_extent(&mut self, v: &Value) -> Res<bool> {
        match self.compare(Compare::Ne, v, &Value::Int(0))? {
            Value::Bool(b) => Ok(b),
            _ => Err(Stop),
        }
    }

    /// The items that `for` runs over.
    pub fn items(&mut self, v: &Value) -> Res<Vec<Value>> {
        Ok(match v {
            Value::Tuple(t) => t.to_vec(),
            Value::List(l) => l.borrow().to_vec(),
            Value::Dict(d) => d.borrow().iter().map(|(k, _)| k.clone()).collect(),
            Value::Str(s) => s.chars().map(|c| Value::str(&c.to_string())).collect(),
            Value::Range(a, b, s) => {
                let n = super::operators::range_len(*a, *b, *s);
                if n > LONGEST as i64 {
                    return self.fail_help(
                        format!("a loop over {n} numbers is too long to be unrolled"),
                        "write it with operations on whole tensors",
                    );
                }
                (0..n).map(|i| Value::Int(a + i * s)).collect()
            }
            Value::Tensor(t) => {
                let shape = self.shape(t);
                let Some(n) = shape.first().and_then(|d| d.as_const()) else {
                    return self.fail("a loop over a tensor needs a first extent that is known");
                };
                if n > LONGEST as i64 {
                    return self.fail(format!("a loop over {n} rows is too long to be unrolled"));
                }
                let mut out = vec![];
                for i in 0..n {
                    out.push(self.item(v, &Value::Int(i))?);
                }
                out
            }
            Value::Object(o) if o.get("_items").is_some() => match o.get("_items") {
                Some(Value::List(l)) => l.borrow().to_vec(),
                _ => vec![],
            },
            Value::Extent(_) => return self.fail("a loop over an unknown extent cannot be unrolled"),
            Value::Unknown => return Err(Stop),
            other => {
                let kind = other.kind();
                return self.fail(format!("{kind} cannot be iterated over"));
            }
        })
    }
}
