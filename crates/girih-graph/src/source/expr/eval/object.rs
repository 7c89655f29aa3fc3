//! Attributes: of tensors, modules, classes and objects.

use std::rc::Rc;

use super::Eval;
use crate::base::words::did_you_mean;
use crate::graph::{Attr, Attrs};
use crate::index::Ix;
use crate::source::expr::error::{Res, Stop};
use crate::source::expr::library;
use crate::source::expr::value::{Class, Closure, Fixed, Object, Tensor, Value};

/// Attributes of a tensor that are not functions.
pub const PROPERTIES: &[(&str, &str)] = &[
    ("shape", "The extents, a tuple."),
    ("dtype", "The element type."),
    ("ndim", "The number of dimensions."),
    ("device", "Always `cpu`."),
    ("T", "The transpose."),
    ("mT", "The last two dimensions exchanged."),
    ("data", "The tensor itself."),
    ("requires_grad", "Always False."),
    ("is_cuda", "Always False."),
];

impl Eval<'_> {
    pub fn attribute(&mut self, v: &Value, name: &str) -> Res<Value> {
        match v {
            Value::Unknown => Err(Stop),
            Value::Module(module) => self.module_attribute(module, name),
            Value::Tensor(t) => self.tensor_attribute(t, v, name),
            Value::Object(o) => self.object_attribute(o, name),
            Value::Super(class, o) => match class.bases.iter().find_map(|b| b.find(name)) {
                Some(Value::Function(f)) => Ok(Value::Bound(f, Box::new(Value::Object(o.clone())))),
                Some(v) => Ok(v),
                None if name == "__init__" => Ok(Value::Context),
                None => self.fail(format!("no base class of {} has an attribute `{name}`", class.name)),
            },
            Value::Class(c) => match c.find(name) {
                Some(v) => Ok(v),
                None if name == "__name__" => Ok(Value::str(&c.name)),
                None => self.fail(format!("the class {} has no attribute `{name}`", c.name)),
            },
            Value::Dtype(e) => match name {
                "is_floating_point" => Ok(Value::Bool(e.is_float())),
                "itemsize" => Ok(Value::Int(e.dtype.bytes() as i64)),
                _ => self.fail(format!("a dtype has no attribute `{name}`")),
            },
            Value::Device(_) if name == "type" => Ok(v.clone()),
            // The named results of `torch.max(x, 1)` and its like.
            Value::Tuple(pair) if pair.len() == 2 && (name == "values" || name == "indices") => {
                let at = usize::from(name == "indices");
                Ok(pair.get(at).cloned().unwrap_or(Value::None))
            }
            Value::List(_) | Value::Dict(_) | Value::Str(_) | Value::Tuple(_) => {
                let known = library::methods_of(v);
                if known.contains(&name) {
                    return Ok(Value::Method(Box::new(v.clone()), name.into()));
                }
                let kind = v.kind();
                let help = did_you_mean(name, known.iter().copied())
                    .unwrap_or_else(|| format!("it has: {}", known.join(", ")));
                self.fail_help(format!("{kind} has no attribute `{name}`"), help)
            }
            Value::Type("Tensor") => match library::find("Tensor", name) {
                Some(entry) => Ok(Value::Library(entry, None)),
                None => self.fail(format!("the method `{name}` of torch.Tensor is not supported")),
            },
            Value::Library(entry, _) if name == "apply" => {
                let own = entry.name();
                self.fail(format!("`{own}` has no attribute `apply`"))
            }
            other => {
                let kind = other.kind();
                self.fail(format!("{kind} has no attribute `{name}`"))
            }
        }
    }

    fn module_attribute(&mut self, module: &'static str, name: &str) -> Res<Value> {
        if let Some(v) = library::constant(module, name) {
            return Ok(v);
        }
        if let Some(v) = self.prelude.get(&format!("{module}.{name}")) {
            return Ok(v);
        }
        if let Some(entry) = library::find(module, name) {
            return Ok(Value::Library(entry, None));
        }
        let prefix = format!("{module}.");
        let defined: Vec<String> =
            self.prelude.names.borrow().keys().filter_map(|k| k.strip_prefix(&prefix).map(String::from)).collect();
        let names = library::names_of(module).into_iter().chain(defined.iter().map(String::as_str));
        let path = library::path_of(module);
        let help = did_you_mean(name, names)
            .or_else(|| {
                let elsewhere = ["torch", "F", "nn", "math"]
                    .into_iter()
                    .find(|m| library::find(m, name).is_some() || self.prelude.get(&format!("{m}.{name}")).is_some())?;
                Some(format!("did you mean `{}.{name}`?", library::path_of(elsewhere)))
            })
            .unwrap_or_else(|| "`girih compile -c help` lists what is supported".into());
        self.fail_help(format!("`{path}.{name}` is not supported"), help)
    }

    fn tensor_attribute(&mut self, t: &Tensor, v: &Value, name: &str) -> Res<Value> {
        Ok(match name {
            "shape" => Value::ints(&self.shape(t)),
            "dtype" => Value::Dtype(self.elem(t)),
            "ndim" => Value::Int(self.rank(t) as i64),
            "device" => Value::Device("cpu".into()),
            "data" => v.clone(),
            "requires_grad" | "is_cuda" | "is_sparse" | "is_quantized" => Value::Bool(false),
            "grad" => Value::None,
            "T" | "mT" => {
                let rank = self.rank(t) as i64;
                if rank < 2 && name == "T" {
                    return Ok(v.clone());
                }
                if rank < 2 || (name == "T" && rank > 2) {
                    return self.fail_help(
                        format!("`.{name}` of a tensor with {rank} dimensions is not supported"),
                        "use `.transpose(a, b)` or `.permute(...)`",
                    );
                }
                let arg = self.arg(t);
                let attrs =
                    Attrs::from([("dim0".into(), Attr::Int(Ix::Const(-2))), ("dim1".into(), Attr::Int(Ix::Const(-1)))]);
                let out = self.aten1("aten.transpose", vec![arg], attrs)?;
                t.shared.set(true);
                out.shared.set(true);
                Value::Tensor(out)
            }
            _ => {
                if let Some(entry) = library::find("Tensor", name) {
                    return Ok(Value::Library(entry, Some(Box::new(v.clone()))));
                }
                if let Some(Value::Function(f)) = self.prelude.get(&format!("Tensor.{name}")) {
                    return Ok(Value::Bound(f, Box::new(v.clone())));
                }
                // `add_` is `add` in place.
                if let Some(base) = name.strip_suffix('_').filter(|b| !b.ends_with('_'))
                    && library::find("Tensor", base).is_some()
                {
                    return Ok(Value::Method(Box::new(v.clone()), name.into()));
                }
                let names = library::names_of("Tensor").into_iter().chain(PROPERTIES.iter().map(|(n, _)| *n));
                let help = did_you_mean(name, names)
                    .unwrap_or_else(|| "`girih compile -c help` lists what is supported".into());
                return self.fail_help(format!("the attribute `{name}` of a tensor is not supported"), help);
            }
        })
    }

    fn object_attribute(&mut self, o: &Rc<Object>, name: &str) -> Res<Value> {
        if let Some(v) = o.get(name) {
            return if matches!(v, Value::Unknown) { Err(Stop) } else { Ok(v) };
        }
        match o.class.find(name) {
            Some(Value::Function(f)) => match f.fixed.get() {
                Fixed::Method => Ok(Value::Bound(f, Box::new(Value::Object(o.clone())))),
                Fixed::Static => Ok(Value::Function(f)),
                Fixed::Property => self.call_closure(&f, vec![Value::Object(o.clone())], vec![]),
            },
            Some(v) => Ok(v),
            None if name == "__class__" => Ok(Value::Class(o.class.clone())),
            None => {
                let fields = o.fields.borrow();
                let members = o.class.members.borrow();
                let names: Vec<String> = fields.iter().map(|(n, _)| n.clone()).chain(members.keys().cloned()).collect();
                drop((fields, members));
                let help = did_you_mean(name, names.iter().map(String::as_str));
                let class = o.class.name.clone();
                let message = format!("an object of class {class} has no attribute `{name}`");
                match help {
                    Some(help) => self.fail_help(message, help),
                    None => self.fail(message),
                }
            }
        }
    }

    pub fn set_attribute(&mut self, v: &Value, name: &str, value: Value) -> Res<()> {
        match v {
            Value::Object(o) => {
                self.adopt(o, name, &value);
                o.set(name, value);
                Ok(())
            }
            Value::Unknown => Err(Stop),
            other => {
                let kind = other.kind();
                self.fail(format!("attributes of {kind} cannot be assigned"))
            }
        }
    }

    /// Modules and parameters learn their owner, which gives weights their names.
    fn adopt(&mut self, o: &Rc<Object>, name: &str, value: &Value) {
        if !o.class.is("Module") {
            return;
        }
        match value {
            Value::Tensor(t) => {
                t.owner.borrow_mut().get_or_insert_with(|| (Rc::downgrade(o), name.into()));
            }
            Value::Object(child) if child.class.is("Module") && !Rc::ptr_eq(child, o) => {
                // Not into its own parts.
                let mut above = Some(o.clone());
                for _ in 0..64 {
                    let Some(at) = above else { break };
                    if Rc::ptr_eq(&at, child) {
                        return;
                    }
                    above = at.parent.borrow().as_ref().and_then(|(p, _)| p.upgrade());
                }
                child.parent.borrow_mut().get_or_insert_with(|| (Rc::downgrade(o), name.into()));
            }
            _ => {}
        }
    }

    /// Returns true if a value is of a class or type, or of one of a tuple of these.
    pub fn is_instance(&mut self, v: &Value, class: &Value) -> Res<bool> {
        Ok(match class {
            Value::Tuple(t) => {
                for c in t.iter() {
                    if !matches!(c, Value::Tuple(_)) && self.is_instance(v, c)? {
                        return Ok(true);
                    }
                }
                false
            }
            Value::Class(c) => matches!(v, Value::Object(o) if o.class.derives(c)),
            Value::Type(name) => matches!(
                (*name, v),
                ("int", Value::Int(_) | Value::Extent(_) | Value::Bool(_))
                    | ("float", Value::Float(_))
                    | ("bool", Value::Bool(_))
                    | ("str", Value::Str(_))
                    | ("list", Value::List(_))
                    | ("tuple", Value::Tuple(_))
                    | ("dict", Value::Dict(_))
                    | ("Tensor", Value::Tensor(_))
                    | ("object", _)
            ),
            other => {
                let kind = other.kind();
                return self.fail(format!("isinstance needs a class, found {kind}"));
            }
        })
    }

    /// `super()` or `super(Class, self)`.
    pub(super) fn superclass(&mut self, given: &[Value]) -> Res<Value> {
        match given {
            [Value::Class(c), Value::Object(o)] => Ok(Value::Super(c.clone(), o.clone())),
            [] => match self.methods.last() {
                Some(Some((Some(class), Value::Object(o)))) => Ok(Value::Super(class.clone(), o.clone())),
                _ => self.fail("`super()` is allowed only in a method"),
            },
            _ => self.fail("`super` takes either nothing, or a class and its object"),
        }
    }

    pub(super) fn class_of(f: &Closure) -> Option<Rc<Class>> {
        f.class.borrow().as_ref().and_then(|c| c.upgrade())
    }
}
