//! The parts of a document: extents, arguments, attributes, names. A problem says where in the document it is.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::base::{Code, Diagnostic};
use crate::graph::ir::{self, Arg, Attr};
use crate::graph::{Builder, Elem};
use crate::index::{Facts, Ix};

type Result<T> = std::result::Result<T, Diagnostic>;

/// No tensor of a model has more dimensions.
const MAX_RANK: usize = 64;
/// No name is longer.
const MAX_NAME: usize = 1024;

/// A JSON value and where it is: `nodes[3].args[0]`.
pub(super) struct At<'j> {
    pub json: &'j Json,
    path: String,
}

impl<'j> At<'j> {
    pub fn root(json: &'j Json) -> At<'j> {
        At { json, path: String::new() }
    }
    pub fn child(&self, json: &'j Json, name: &str) -> At<'j> {
        let dot = if self.path.is_empty() { "" } else { "." };
        At { json, path: format!("{}{dot}{name}", self.path) }
    }
    pub fn bad(&self, message: impl Into<String>) -> Diagnostic {
        let place = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        Diagnostic::error(Code::BadModel, format!("{place}{}", message.into()))
    }
    pub fn get(&self, name: &str) -> Option<At<'j>> {
        Some(self.child(self.json.get(name)?, name))
    }
    pub fn text(&self, name: &str) -> Result<&'j str> {
        match self.json.get(name).and_then(Json::as_str) {
            Some(text) => Ok(text),
            None => Err(self.bad(format!("`{name}` is missing or not a string"))),
        }
    }
    /// A string that names something.
    pub fn name(&self, name: &str) -> Result<String> {
        let text = self.text(name)?;
        if text.is_empty() || text.len() > MAX_NAME || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(self.bad(format!("`{name}` is empty, too long, or contains blanks")));
        }
        Ok(text.to_owned())
    }
    pub fn as_integer(&self) -> Result<i64> {
        self.json.as_i64().ok_or_else(|| self.bad("expected a 64-bit integer"))
    }
    pub fn integer(&self, name: &str) -> Result<i64> {
        match self.get(name) {
            Some(at) => at.as_integer(),
            None => Err(self.bad(format!("`{name}` is missing"))),
        }
    }
    /// The elements; a list that is left out is empty.
    pub fn list(&self, name: &str) -> Result<Vec<At<'j>>> {
        let Some(list) = self.get(name) else { return Ok(vec![]) };
        match list.json.as_array() {
            Some(items) => Ok(list.elements(items)),
            None => Err(list.bad("expected a list")),
        }
    }
    fn elements(&self, items: &'j [Json]) -> Vec<At<'j>> {
        items.iter().enumerate().map(|(i, json)| At { json, path: format!("{}[{i}]", self.path) }).collect()
    }
    fn elem(&self) -> Result<Elem> {
        let name = self.json.as_str().unwrap_or_default();
        Elem::from_name(name).ok_or_else(|| self.bad(format!("unknown element type `{name}`")))
    }
    fn float(&self) -> Result<f64> {
        match self.json.as_str() {
            Some("inf") => Ok(f64::INFINITY),
            Some("-inf") => Ok(f64::NEG_INFINITY),
            Some("nan") => Ok(f64::NAN),
            _ => self.json.as_f64().ok_or_else(|| self.bad("expected a number")),
        }
    }
    /// A number, or `"inf"`, `"-inf"`, `"nan"`, as a scalar of a type.
    pub fn scalar(&self, elem: Elem) -> Result<Arg> {
        match self.json {
            Json::Bool(b) => Ok(ir::int_scalar(elem, (*b).into())),
            json if elem.dtype.is_int() => match (json.as_i64(), json.as_u64()) {
                (Some(i), _) => Ok(ir::int_scalar(elem, i)),
                (None, Some(u)) => Ok(ir::int_scalar(elem, u as i64)),
                _ => Ok(ir::scalar(elem, self.float()?)),
            },
            _ => Ok(ir::scalar(elem, self.float()?)),
        }
    }
}

/// The symbols and tensors defined so far.
pub(super) struct Known {
    pub symbols: BTreeMap<String, Ix>,
    /// The ranges of the symbols.
    pub facts: Facts,
    tensors: BTreeMap<String, Arg>,
}

impl Known {
    pub fn new() -> Known {
        Known { symbols: BTreeMap::new(), facts: Facts::new(), tensors: BTreeMap::new() }
    }

    pub fn define(&mut self, at: &At<'_>, name: String, value: Arg) -> Result<()> {
        if self.tensors.contains_key(&name) {
            return Err(at.bad(format!("two tensors are named `{name}`")));
        }
        self.tensors.insert(name, value);
        Ok(())
    }

    pub fn tensor(&self, at: &At<'_>, name: &str) -> Result<Arg> {
        self.tensors.get(name).copied().ok_or_else(|| at.bad(format!("the tensor `{name}` is not defined before this")))
    }

    /// `name`, `dtype` and `shape` of something.
    pub fn typed(&self, at: &At<'_>) -> Result<(String, Elem, Vec<Ix>)> {
        let name = at.name("name")?;
        let Some(dtype) = at.get("dtype") else { return Err(at.bad("`dtype` is missing")) };
        let elem = dtype.elem()?;
        let dims = at.list("shape")?;
        if dims.len() > MAX_RANK {
            return Err(at.bad(format!("`{name}` has {} dimensions; at most {MAX_RANK} are possible", dims.len())));
        }
        let shape = dims.iter().map(|d| self.extent(d)).collect::<Result<Vec<Ix>>>()?;
        let fits = |d: &Ix| d.as_const().is_none_or(|c| (0..=ir::MAX_EXTENT).contains(&c));
        let total = shape.iter().filter_map(Ix::as_const).try_fold(1i64, |n, d| n.checked_mul(d.max(1)));
        if !shape.iter().all(fits) || total.is_none() {
            return Err(at.bad(format!("the shape of `{name}` is negative or too large")));
        }
        Ok((name, elem, shape))
    }

    /// See the module: an integer, a symbol, or `[op, a, b]`.
    pub fn extent(&self, at: &At<'_>) -> Result<Ix> {
        match at.json {
            Json::Number(_) => at.as_integer().map(Ix::Const),
            Json::String(name) => {
                self.symbols.get(name).cloned().ok_or_else(|| at.bad(format!("unknown symbol `{name}`")))
            }
            Json::Array(items) => {
                let parts = at.elements(items);
                let [op, a, b] = &parts[..] else { return Err(at.bad("an expression must be [operation, a, b]")) };
                let (a, b) = (self.extent(a)?, self.extent(b)?);
                let divides = self.facts.range(&b).lo > 0;
                match op.json.as_str().unwrap_or_default() {
                    "+" => Ok(Ix::add(a, b)),
                    "-" => Ok(Ix::sub(a, b)),
                    "*" => Ok(Ix::mul(a, b)),
                    "//" if divides => Ok(Ix::floor_div(a, b)),
                    "%" if divides => Ok(Ix::modulo(a, b)),
                    "//" | "%" => Err(at.bad("the divisor must be positive")),
                    "min" => Ok(Ix::min(a, b)),
                    "max" => Ok(Ix::max(a, b)),
                    other => Err(op.bad(format!("unknown operation on extents: `{other}`"))),
                }
            }
            _ => Err(at.bad("expected an extent")),
        }
    }

    /// An operand of a node.
    pub fn argument(&self, at: &At<'_>, b: &mut Builder<'_>) -> Result<Arg> {
        match at.json {
            Json::Null => Ok(Arg::Absent),
            Json::Bool(_) => at.scalar(Elem::BOOL),
            Json::Number(n) if n.is_f64() => at.scalar(Elem::F64),
            Json::Number(_) => at.scalar(Elem::I64),
            Json::Object(_) => {
                if let Some(tensor) = at.get("t") {
                    let name = tensor.json.as_str().unwrap_or_default();
                    self.tensor(&tensor, name)
                } else if let Some(ix) = at.get("ix") {
                    let elem = at.get("dtype").map_or(Ok(Elem::I64), |dtype| dtype.elem())?;
                    match self.extent(&ix)? {
                        Ix::Const(c) => Ok(ir::int_scalar(elem, c)),
                        symbolic => Ok(b.index(symbolic, elem, vec![])),
                    }
                } else if let Some(scalar) = at.get("s") {
                    let elem = match at.get("dtype") {
                        Some(dtype) => dtype.elem()?,
                        None => Elem::F64,
                    };
                    scalar.scalar(elem)
                } else {
                    Err(at.bad("an argument needs `t`, `s` or `ix`"))
                }
            }
            _ => Err(at.bad("expected an argument")),
        }
    }

    /// The value of an attribute.
    pub fn attr(&self, at: &At<'_>) -> Result<Attr> {
        Ok(match at.json {
            Json::Null => Attr::None,
            Json::Bool(b) => Attr::Bool(*b),
            Json::Number(n) if n.is_f64() => Attr::Float(at.float()?),
            Json::Number(_) => Attr::Int(Ix::Const(at.as_integer()?)),
            Json::String(text) => Attr::Str(text.clone()),
            Json::Array(items) => {
                Attr::List(at.elements(items).iter().map(|i| self.attr(i)).collect::<Result<Vec<Attr>>>()?)
            }
            Json::Object(_) => {
                if let Some(dtype) = at.get("dtype") {
                    Attr::Elem(dtype.elem()?)
                } else if let Some(ix) = at.get("ix") {
                    Attr::Int(self.extent(&ix)?)
                } else if let Some(float) = at.get("float") {
                    Attr::Float(float.float()?)
                } else {
                    return Err(at.bad("an attribute needs `dtype`, `ix` or `float`"));
                }
            }
        })
    }
}
