//! The values of names while a text is evaluated: Python's values, with tensors that are nodes of the graph.
//!
//! Values of Python are known; a tensor has only a known element type and shape. An extent may be symbolic, so an
//! integer that depends on one is an index expression.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use super::ast::Function;
use super::library::Entry;
pub use super::release::{Items, Pairs};
use crate::graph::{Elem, Fill, Role, ValueId};
use crate::index::Ix;

#[derive(Clone)]
pub enum Value {
    None,
    Ellipsis,
    Bool(bool),
    Int(i64),
    /// An integer that depends on a symbol.
    Extent(Ix),
    Float(f64),
    Str(Rc<str>),
    Tuple(Rc<Items>),
    List(Rc<RefCell<Items>>),
    Dict(Rc<RefCell<Pairs>>),
    Slice(Rc<[Value; 3]>),
    Range(i64, i64, i64),
    Tensor(Tensor),
    Dtype(Elem),
    Device(Rc<str>),
    Function(Rc<Closure>),
    /// A function of the library, perhaps bound to a tensor or another value.
    Library(&'static Entry, Option<Box<Value>>),
    /// A method of a string, list or dict, or a property-like function.
    Method(Box<Value>, Rc<str>),
    /// A method with its object.
    Bound(Rc<Closure>, Box<Value>),
    Module(&'static str),
    Class(Rc<Class>),
    /// A class that is only used in `isinstance`, annotations and calls: `int`, `torch.Tensor`.
    Type(&'static str),
    Object(Rc<Object>),
    Super(Rc<Class>, Rc<Object>),
    /// `torch.no_grad()`: a context or decorator that changes nothing.
    Context,
    /// The result of something that was refused; using it is not a new problem.
    Unknown,
}

impl Value {
    pub fn str(text: &str) -> Value {
        Value::Str(text.into())
    }
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(RefCell::new(Items(items))))
    }
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(Rc::new(Items(items)))
    }
    pub fn dict(items: Vec<(Value, Value)>) -> Value {
        Value::Dict(Rc::new(RefCell::new(Pairs(items))))
    }
    pub fn extent(ix: Ix) -> Value {
        match ix.as_const() {
            Some(c) => Value::Int(c),
            None => Value::Extent(ix),
        }
    }
    pub fn ints(items: &[Ix]) -> Value {
        Value::tuple(items.iter().cloned().map(Value::extent).collect())
    }

    /// The kind of a value, for messages.
    pub fn kind(&self) -> String {
        match self {
            Value::None => "None".into(),
            Value::Ellipsis => "...".into(),
            Value::Bool(_) => "a bool".into(),
            Value::Int(_) | Value::Extent(_) => "an integer".into(),
            Value::Float(_) => "a float".into(),
            Value::Str(_) => "a string".into(),
            Value::Tuple(_) => "a tuple".into(),
            Value::List(_) => "a list".into(),
            Value::Dict(_) => "a dict".into(),
            Value::Slice(_) => "a slice".into(),
            Value::Range(..) => "a range".into(),
            Value::Tensor(_) => "a tensor".into(),
            Value::Dtype(_) => "a dtype".into(),
            Value::Device(_) => "a device".into(),
            Value::Function(_) | Value::Library(..) | Value::Method(..) | Value::Bound(..) => "a function".into(),
            Value::Module(name) => format!("the module {name}"),
            Value::Class(c) => format!("the class {}", c.name),
            Value::Type(name) => format!("the type {name}"),
            Value::Object(o) => format!("an object of class {}", o.class.name),
            Value::Super(..) => "super()".into(),
            Value::Context => "a context".into(),
            Value::Unknown => "an unknown value".into(),
        }
    }
}

/// A tensor, by reference: `y = x` makes one tensor with two names.
pub type Tensor = Rc<TensorCell>;

pub struct TensorCell {
    pub state: RefCell<State>,
    /// Another tensor may share its memory (it is a view, or has one), so it cannot be changed in place here.
    pub shared: Cell<bool>,
    /// The module and attribute that hold it.
    pub owner: RefCell<Option<(Weak<Object>, String)>>,
}

#[derive(Clone)]
pub enum State {
    /// An input that has not been used yet.
    Pending(Declared),
    Ready(ValueId),
}

/// A declared input that is not in the graph yet.
#[derive(Clone)]
pub struct Declared {
    pub name: Option<String>,
    pub elem: Elem,
    pub shape: Vec<Ix>,
    pub role: Role,
    pub fill: Fill,
    /// It is not an input but this number everywhere.
    pub constant: bool,
}

impl TensorCell {
    pub fn new(state: State) -> Tensor {
        Rc::new(TensorCell { state: RefCell::new(state), shared: Cell::new(false), owner: RefCell::new(None) })
    }
}

/// Names and their values; a function sees its own, then those of the place where it was defined.
#[derive(Default)]
pub struct Scope {
    pub names: RefCell<BTreeMap<String, Value>>,
    pub parent: Option<Rc<Scope>>,
}

impl Scope {
    pub fn inside(parent: &Rc<Scope>) -> Rc<Scope> {
        Rc::new(Scope { names: RefCell::default(), parent: Some(parent.clone()) })
    }
    pub fn get(&self, name: &str) -> Option<Value> {
        let mut scope = Some(self);
        while let Some(s) = scope {
            if let Some(v) = s.names.borrow().get(name) {
                return Some(v.clone());
            }
            scope = s.parent.as_deref();
        }
        None
    }
    pub fn set(&self, name: &str, value: Value) {
        self.names.borrow_mut().insert(name.into(), value);
    }
}

/// A function with the names it was defined among.
pub struct Closure {
    pub def: Rc<Function>,
    /// `None` only while it is freed.
    pub scope: Option<Rc<Scope>>,
    /// The defaults of the parameters, in order.
    pub defaults: Vec<Option<Value>>,
    /// The class whose body it is in, for `super()`.
    pub class: RefCell<Option<Weak<Class>>>,
    /// It is part of the library, so problems inside are reported where it was called.
    pub library: bool,
    pub fixed: Cell<Fixed>,
}

/// How a function in a class takes its object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fixed {
    Method,
    Static,
    Property,
}

pub struct Class {
    pub name: String,
    pub bases: Vec<Rc<Class>>,
    pub members: RefCell<BTreeMap<String, Value>>,
    /// The length of the longest chain of bases.
    pub depth: u32,
}

impl Class {
    /// The member of the class or of the first base that has it, with that class.
    pub fn find(self: &Rc<Class>, name: &str) -> Option<Value> {
        if let Some(v) = self.members.borrow().get(name) {
            return Some(v.clone());
        }
        self.bases.iter().find_map(|b| b.find(name))
    }
    pub fn is(self: &Rc<Class>, name: &str) -> bool {
        self.name == name || self.bases.iter().any(|b| b.is(name))
    }
    pub fn derives(self: &Rc<Class>, other: &Rc<Class>) -> bool {
        Rc::ptr_eq(self, other) || self.bases.iter().any(|b| b.derives(other))
    }
}

pub struct Object {
    pub class: Rc<Class>,
    /// In the order in which they were set.
    pub fields: RefCell<Vec<(String, Value)>>,
    /// The module that holds it, and the attribute's name there.
    pub parent: RefCell<Option<(Weak<Object>, String)>>,
}

impl Object {
    pub fn get(&self, name: &str) -> Option<Value> {
        self.fields.borrow().iter().find(|(n, _)| n == name).map(|(_, v)| v.clone())
    }
    pub fn set(&self, name: &str, value: Value) {
        let mut fields = self.fields.borrow_mut();
        match fields.iter_mut().find(|(n, _)| n == name) {
            Some(field) => field.1 = value,
            None => fields.push((name.into(), value)),
        }
    }
    /// `layers.0.self_attn` from the outermost module, and that module. Bounded, should modules hold each other.
    pub fn path(self: &Rc<Object>) -> (String, Rc<Object>) {
        let (mut parts, mut at) = (vec![], self.clone());
        for _ in 0..64 {
            let up = at.parent.borrow().as_ref().and_then(|(p, name)| Some((p.upgrade()?, name.clone())));
            let Some((parent, name)) = up else { break };
            parts.push(name);
            at = parent;
        }
        parts.reverse();
        (parts.join("."), at)
    }
}
