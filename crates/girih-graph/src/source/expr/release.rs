//! Frees nested values without recursion: a text can nest them as deep as it has steps.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use super::value::{Class, Closure, Object, Scope, Value};

/// The items of a list or tuple.
#[derive(Default)]
pub struct Items(pub Vec<Value>);

/// The keys and values of a dict, in order.
#[derive(Default)]
pub struct Pairs(pub Vec<(Value, Value)>);

impl Deref for Items {
    type Target = Vec<Value>;
    fn deref(&self) -> &Vec<Value> {
        &self.0
    }
}
impl DerefMut for Items {
    fn deref_mut(&mut self) -> &mut Vec<Value> {
        &mut self.0
    }
}
impl Deref for Pairs {
    type Target = Vec<(Value, Value)>;
    fn deref(&self) -> &Vec<(Value, Value)> {
        &self.0
    }
}
impl DerefMut for Pairs {
    fn deref_mut(&mut self) -> &mut Vec<(Value, Value)> {
        &mut self.0
    }
}

/// The values and scopes that are still to be freed.
#[derive(Default)]
struct Work {
    values: Vec<Value>,
    scopes: Vec<Rc<Scope>>,
}

impl Work {
    fn run(&mut self) {
        loop {
            if let Some(v) = self.values.pop() {
                self.value(v);
            } else if let Some(s) = self.scopes.pop() {
                if let Ok(mut s) = Rc::try_unwrap(s) {
                    self.scope(&mut s);
                }
            } else {
                return;
            }
        }
    }
    fn scope(&mut self, s: &mut Scope) {
        self.values.extend(std::mem::take(&mut *s.names.borrow_mut()).into_values());
        self.scopes.extend(s.parent.take());
    }
    fn closure(&mut self, c: &mut Closure) {
        self.values.extend(std::mem::take(&mut c.defaults).into_iter().flatten());
        self.scopes.extend(c.scope.take());
    }
    fn object(&mut self, o: &Object) {
        self.values.extend(std::mem::take(&mut *o.fields.borrow_mut()).into_iter().map(|(_, v)| v));
    }
    fn class(&mut self, c: &mut Class) {
        self.values.extend(std::mem::take(&mut *c.members.borrow_mut()).into_values());
    }
    fn value(&mut self, v: Value) {
        match v {
            Value::Tuple(rc) => {
                if let Ok(mut items) = Rc::try_unwrap(rc) {
                    self.values.append(&mut items.0);
                }
            }
            Value::List(rc) => {
                if let Ok(items) = Rc::try_unwrap(rc) {
                    self.values.append(&mut items.borrow_mut().0);
                }
            }
            Value::Dict(rc) => {
                if let Ok(pairs) = Rc::try_unwrap(rc) {
                    let pairs = std::mem::take(&mut pairs.borrow_mut().0);
                    self.values.extend(pairs.into_iter().flat_map(|(k, v)| [k, v]));
                }
            }
            Value::Function(rc) => {
                if let Ok(mut c) = Rc::try_unwrap(rc) {
                    self.closure(&mut c);
                }
            }
            Value::Bound(rc, object) => {
                self.values.push(*object);
                self.values.push(Value::Function(rc));
            }
            Value::Object(rc) => {
                if let Ok(o) = Rc::try_unwrap(rc) {
                    self.object(&o);
                }
            }
            Value::Class(rc) => {
                if let Ok(mut c) = Rc::try_unwrap(rc) {
                    self.class(&mut c);
                }
            }
            Value::Super(class, object) => {
                self.values.push(Value::Class(class));
                self.values.push(Value::Object(object));
            }
            Value::Library(_, Some(inner)) | Value::Method(inner, _) => self.values.push(*inner),
            _ => {}
        }
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            Work { values: std::mem::take(&mut self.0), scopes: vec![] }.run();
        }
    }
}
impl Drop for Pairs {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            let values = std::mem::take(&mut self.0).into_iter().flat_map(|(k, v)| [k, v]).collect();
            Work { values, scopes: vec![] }.run();
        }
    }
}
impl Drop for Object {
    fn drop(&mut self) {
        let mut work = Work::default();
        work.object(self);
        work.run();
    }
}
impl Drop for Class {
    fn drop(&mut self) {
        let mut work = Work::default();
        work.class(self);
        work.run();
    }
}
impl Drop for Closure {
    fn drop(&mut self) {
        let mut work = Work::default();
        work.closure(self);
        work.run();
    }
}
impl Drop for Scope {
    fn drop(&mut self) {
        let mut work = Work::default();
        work.scope(self);
        work.run();
    }
}
