//! Calls: of the text's functions and classes, of modules, and of the library.

use std::rc::Rc;

use super::Eval;
use super::stmt::Flow;
use crate::base::words::did_you_mean;
use crate::source::expr::ast::ParamKind;
use crate::source::expr::error::{Res, Stop};
use crate::source::expr::library;
use crate::source::expr::value::{Class, Closure, Object, Scope, Value};

impl Eval<'_> {
    pub fn call(&mut self, callee: &Value, args: Vec<Value>, keywords: Vec<(String, Value)>) -> Res<Value> {
        let unknown = |v: &Value| matches!(v, Value::Unknown);
        if unknown(callee) || args.iter().any(unknown) || keywords.iter().any(|(_, v)| unknown(v)) {
            return Err(Stop);
        }
        self.step(self.span)?;
        self.nested(self.span, |e| e.call_inner(callee, args, keywords))
    }

    fn call_inner(&mut self, callee: &Value, mut args: Vec<Value>, keywords: Vec<(String, Value)>) -> Res<Value> {
        match callee {
            Value::Function(f) => self.call_closure(f, args, keywords),
            Value::Bound(f, o) => {
                args.insert(0, (**o).clone());
                self.call_closure(f, args, keywords)
            }
            Value::Library(entry, bound) => {
                if let Some(b) = bound {
                    args.insert(0, (**b).clone());
                }
                self.inside += 1;
                let out = library::call(self, entry, args, keywords);
                self.inside -= 1;
                out
            }
            Value::Method(object, name) => match (&**object, &**name) {
                (Value::Tensor(t), name) => {
                    let base = name.strip_suffix('_').unwrap_or(name);
                    let Some(entry) = library::find("Tensor", base) else { return Err(Stop) };
                    args.insert(0, Value::Tensor(t.clone()));
                    self.inside += 1;
                    let out = library::call(self, entry, args, keywords);
                    self.inside -= 1;
                    if let Value::Tensor(new) = out? {
                        self.replace(t, &new)?;
                    }
                    Ok(Value::Tensor(t.clone()))
                }
                (object, name) => library::method(self, object, name, args, keywords),
            },
            Value::Class(c) => self.construct(c, args, keywords),
            Value::Object(o) => self.call_object(o, args, keywords),
            Value::Type(name) => library::construct(self, name, args, keywords),
            // `torch.no_grad()(f)`, and `super().__init__()` of a class without bases.
            Value::Context => Ok(args.into_iter().next().unwrap_or(Value::Context)),
            Value::Unknown => Err(Stop),
            other => {
                let kind = other.kind();
                let help = match other {
                    Value::Tensor(_) => "write `*` to multiply",
                    Value::Module(_) => "call a function of it: `torch.relu(x)`",
                    _ => "",
                };
                if help.is_empty() {
                    self.fail(format!("{kind} cannot be called"))
                } else {
                    self.fail_help(format!("{kind} cannot be called"), help)
                }
            }
        }
    }

    fn construct(&mut self, class: &Rc<Class>, args: Vec<Value>, keywords: Vec<(String, Value)>) -> Res<Value> {
        let object = Rc::new(Object { class: class.clone(), fields: Default::default(), parent: Default::default() });
        if class.is("Module") {
            self.objects.push(object.clone());
        }
        match class.find("__init__") {
            Some(Value::Function(init)) => {
                let mut all = vec![Value::Object(object.clone())];
                all.extend(args);
                self.call_closure(&init, all, keywords)?;
            }
            _ if args.is_empty() && keywords.is_empty() => {}
            _ => {
                let name = class.name.clone();
                return self.fail(format!("the class {name} takes no arguments"));
            }
        }
        Ok(Value::Object(object))
    }

    fn call_object(&mut self, o: &Rc<Object>, args: Vec<Value>, keywords: Vec<(String, Value)>) -> Res<Value> {
        let method = o.class.find("__call__").or_else(|| o.class.find("forward"));
        let Some(Value::Function(f)) = method else {
            let class = o.class.name.clone();
            return self.fail_help(
                format!("an object of class {class} cannot be called"),
                "define `forward(self, x)` in the class",
            );
        };
        let mut all = vec![Value::Object(o.clone())];
        all.extend(args);
        self.modules.push(o.clone());
        let out = self.call_closure(&f, all, keywords);
        self.modules.pop();
        out
    }

    pub(super) fn call_closure(
        &mut self,
        f: &Rc<Closure>,
        args: Vec<Value>,
        keywords: Vec<(String, Value)>,
    ) -> Res<Value> {
        let this = args.first().cloned();
        let Some(outer) = &f.scope else { return Err(Stop) };
        let scope = Scope::inside(outer);
        self.bind(f, &scope, args, keywords)?;
        let class = Self::class_of(f);
        let saved = (self.scope.clone(), self.inside, self.span);
        self.inside = if f.library { self.inside + 1 } else { 0 };
        self.scope = scope;
        self.methods.push(this.map(|t| (class, t)));
        let def = f.def.clone();
        let out = self.nested(self.span, |e| e.block(&def.body));
        self.methods.pop();
        (self.scope, self.inside, self.span) = saved;
        match out? {
            Flow::Return(v) => Ok(v),
            _ => Ok(Value::None),
        }
    }

    /// Arguments to parameters, as Python binds them.
    fn bind(&mut self, f: &Closure, scope: &Scope, args: Vec<Value>, keywords: Vec<(String, Value)>) -> Res<()> {
        let name = if f.def.name == "__init__" {
            Self::class_of(f).map_or("the class".into(), |c| c.name.clone())
        } else if f.def.name == "forward" {
            Self::class_of(f).map_or("forward".into(), |c| format!("{}.forward", c.name))
        } else {
            f.def.name.clone()
        };
        let given = args.len();
        let mut args = args.into_iter();
        let mut keywords = keywords;
        for (p, default) in f.def.params.iter().zip(&f.defaults) {
            let value = match p.kind {
                ParamKind::Rest => Value::tuple(args.by_ref().collect()),
                ParamKind::Keywords => Value::dict(keywords.drain(..).map(|(k, v)| (Value::str(&k), v)).collect()),
                kind => {
                    let positional = if kind == ParamKind::Plain { args.next() } else { None };
                    let at = keywords.iter().position(|(k, _)| *k == p.name);
                    match (positional, at) {
                        (Some(_), Some(_)) => {
                            return self.fail(format!("{name} is given the argument `{}` twice", p.name));
                        }
                        (Some(v), None) => v,
                        (None, Some(at)) => keywords.remove(at).1,
                        (None, None) => match default {
                            Some(v) => v.clone(),
                            None => return self.fail(format!("{name} needs the argument `{}`", p.name)),
                        },
                    }
                }
            };
            scope.set(&p.name, value);
        }
        if args.next().is_some() {
            let takes = f.def.params.iter().filter(|p| p.kind == ParamKind::Plain && p.name != "self").count();
            let own = usize::from(f.def.params.first().is_some_and(|p| p.name == "self"));
            let given = given - own.min(given);
            return self.fail(format!("{name} takes {takes} arguments, but {given} are given"));
        }
        if let Some((extra, _)) = keywords.first() {
            // The device of a tensor and its training have no meaning here.
            if f.library && library::IGNORED.contains(&extra.as_str()) && keywords.len() == 1 {
                return Ok(());
            }
            let names = f.def.params.iter().map(|p| p.name.as_str());
            let message = format!("{name} has no argument `{extra}`");
            return match did_you_mean(extra, names) {
                Some(help) => self.fail_help(message, help),
                None => self.fail(message),
            };
        }
        Ok(())
    }
}
