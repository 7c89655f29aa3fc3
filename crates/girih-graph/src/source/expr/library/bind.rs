//! Signatures, and arguments to parameters.
//!
//! ```text
//! softmax(input: Tensor, dim: int, *, dtype: dtype? = None)
//! view(input: Tensor, *size: ints)          a list, or its items
//! cat(tensors: Tensors, dim: int = 0)
//! ```
//!
//! | kind | argument | becomes |
//! |---|---|---|
//! | `Tensor` | a tensor | an operand |
//! | `Operand` | a tensor or number | an operand |
//! | `Tensors` | a list of tensors | operands |
//! | `int`, `float`, `number`, `bool`, `str`, `dtype`, `ints`, `floats` | the same | an attribute |
//! | `any` | anything | for functions in Rust |
//!
//! `?` allows None. An argument that equals its default is left out of the attributes.

use super::{Entry, IGNORED};
use crate::base::words::did_you_mean;
use crate::graph::ir::Arg;
use crate::graph::{Attr, Attrs, Elem};
use crate::index::Ix;
use crate::source::expr::error::{Res, Stop};
use crate::source::expr::eval::Eval;
use crate::source::expr::value::{Tensor, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Tensor,
    Operand,
    Tensors,
    Int,
    Float,
    Number,
    Bool,
    Str,
    Dtype,
    Ints,
    Floats,
    Any,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Param<'s> {
    pub name: &'s str,
    pub kind: Kind,
    pub optional: bool,
    pub default: Option<&'s str>,
    pub spread: bool,
    pub keyword_only: bool,
}

/// The parameters of a signature; `None` if it is malformed (a test reads them all).
pub fn params(sig: &str) -> Option<Vec<Param<'_>>> {
    let inner = sig.split_once('(')?.1.strip_suffix(')')?;
    let (mut out, mut keyword_only) = (vec![], false);
    for part in inner.split(", ").filter(|p| !p.is_empty()) {
        if part == "*" {
            keyword_only = true;
            continue;
        }
        let (head, default) = match part.split_once(" = ") {
            Some((head, default)) => (head, Some(default)),
            None => (part, None),
        };
        let (name, kind) = head.split_once(": ")?;
        let (kind, optional) = match kind.strip_suffix('?') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        let kind = match kind {
            "Tensor" => Kind::Tensor,
            "Operand" => Kind::Operand,
            "Tensors" => Kind::Tensors,
            "int" => Kind::Int,
            "float" => Kind::Float,
            "number" => Kind::Number,
            "bool" => Kind::Bool,
            "str" => Kind::Str,
            "dtype" => Kind::Dtype,
            "ints" => Kind::Ints,
            "floats" => Kind::Floats,
            "any" => Kind::Any,
            _ => return None,
        };
        let (name, spread) = match name.strip_prefix('*') {
            Some(name) => (name, true),
            None => (name, false),
        };
        out.push(Param { name, kind, optional, default, spread, keyword_only });
    }
    Some(out)
}

/// Arguments bound to parameters, each of its parameter's kind.
pub struct Args<'s> {
    pub params: Vec<Param<'s>>,
    pub values: Vec<Value>,
}

impl Args<'_> {
    pub fn get(&self, name: &str) -> &Value {
        let at = self.params.iter().position(|p| p.name == name);
        at.and_then(|at| self.values.get(at)).unwrap_or(&Value::None)
    }
    pub fn first(&self) -> Option<&Value> {
        self.values.first()
    }
    /// The tensor of a parameter that must be one.
    pub fn tensor(&self, e: &mut Eval<'_>, name: &str) -> Res<Tensor> {
        match self.get(name) {
            Value::Tensor(t) => Ok(t.clone()),
            _ => e.fail(format!("`{name}` must be a tensor")),
        }
    }
    pub fn elem(&self, name: &str) -> Option<Elem> {
        match self.get(name) {
            Value::Dtype(d) => Some(*d),
            _ => None,
        }
    }
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Value::Int(i) => Some(*i),
            Value::Bool(b) => Some((*b).into()),
            _ => None,
        }
    }
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Value::Int(i) => Some(*i as f64),
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }
    pub fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), Value::Bool(true))
    }
    /// A list of integers, perhaps symbolic.
    pub fn extents(&self, name: &str) -> Option<Vec<Ix>> {
        let one = |v: &Value| match v {
            Value::Int(i) => Some(Ix::Const(*i)),
            Value::Extent(ix) => Some(ix.clone()),
            _ => None,
        };
        match self.get(name) {
            Value::Tuple(items) => items.iter().map(one).collect(),
            v => one(v).map(|i| vec![i]),
        }
    }

    /// Appends the operation: tensors in order, the rest as attributes. Several results are a tuple.
    pub fn append(&self, e: &mut Eval<'_>, name: &str) -> Res<Value> {
        let (mut args, mut attrs) = (vec![], Attrs::new());
        for (p, v) in self.params.iter().zip(&self.values) {
            match (p.kind, v) {
                (Kind::Tensor | Kind::Operand, Value::None) => args.push(Arg::Absent),
                (Kind::Tensor | Kind::Operand, Value::Tensor(t)) => args.push(e.arg(t)),
                (Kind::Operand, number) => match e.number(number) {
                    Some(a) => args.push(a),
                    None => return Err(Stop),
                },
                (Kind::Tensors, list) => {
                    for t in e.items(list)? {
                        match t {
                            Value::Tensor(t) => args.push(e.arg(&t)),
                            _ => args.push(Arg::Absent),
                        }
                    }
                }
                (_, v) => {
                    let default = p.default.and_then(literal);
                    if default.is_some_and(|d| e.equal(&d, v)) || matches!(v, Value::None) {
                        continue;
                    }
                    match attr(v) {
                        Some(a) => attrs.insert(p.name.into(), a),
                        None => return e.fail(format!("`{}` cannot be {}", p.name, v.kind())),
                    };
                }
            }
        }
        while args.last() == Some(&Arg::Absent) {
            args.pop();
        }
        let results = e.aten(name, args, attrs)?;
        let mut results: Vec<Value> = results.into_iter().map(Value::Tensor).collect();
        match (results.len(), results.pop()) {
            (1, Some(one)) => Ok(one),
            (_, Some(last)) => {
                results.push(last);
                Ok(Value::tuple(results))
            }
            (_, None) => Ok(Value::tuple(vec![])),
        }
    }
}

fn attr(v: &Value) -> Option<Attr> {
    Some(match v {
        Value::None => Attr::None,
        Value::Bool(b) => Attr::Bool(*b),
        Value::Int(i) => Attr::Int(Ix::Const(*i)),
        Value::Extent(ix) => Attr::Int(ix.clone()),
        Value::Float(x) => Attr::Float(*x),
        Value::Str(s) => Attr::Str(s.to_string()),
        Value::Dtype(e) => Attr::Elem(*e),
        Value::Tuple(items) => Attr::List(items.iter().map(attr).collect::<Option<_>>()?),
        Value::List(items) => Attr::List(items.borrow().iter().map(attr).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// A default as a signature shows it.
fn literal(text: &str) -> Option<Value> {
    Some(match text {
        "None" => Value::None,
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        "()" => Value::tuple(vec![]),
        _ => match text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
            Some(s) => Value::str(s),
            None => match text.parse::<i64>() {
                Ok(i) => Value::Int(i),
                Err(_) => Value::Float(text.parse().ok()?),
            },
        },
    })
}

/// Alternative names of parameters, as in NumPy.
fn alias(name: &str) -> &str {
    match name {
        "axis" => "dim",
        "keepdims" => "keepdim",
        "self" => "input",
        "x" => "input",
        other => other,
    }
}

pub(super) fn bind(
    e: &mut Eval<'_>,
    entry: &'static Entry,
    args: Vec<Value>,
    mut keywords: Vec<(String, Value)>,
) -> Res<Args<'static>> {
    let name = entry.name();
    let Some(params) = params(entry.sig) else { return e.fail(format!("{name} has no signature")) };
    let mut values = vec![];
    let mut given = args.into_iter().peekable();
    let mut too_many = 0;
    for p in &params {
        let keyword = keywords
            .iter()
            .position(|(k, _)| k == p.name)
            .or_else(|| keywords.iter().position(|(k, _)| alias(k) == p.name && !params.iter().any(|q| q.name == k)));
        let positional = if p.keyword_only {
            None
        } else if p.spread && given.peek().is_some() {
            // `view(2, 3)` and `view((2, 3))` are the same.
            let mut rest: Vec<Value> = given.by_ref().collect();
            match (rest.len(), rest.first()) {
                (1, Some(Value::Tuple(_) | Value::List(_))) => rest.pop(),
                _ => Some(Value::tuple(rest)),
            }
        } else {
            given.next()
        };
        let value = match (positional, keyword) {
            (Some(_), Some(_)) => return e.fail(format!("{name} is given the argument `{}` twice", p.name)),
            (Some(v), None) => Some(v),
            (None, Some(at)) => Some(keywords.remove(at).1),
            (None, None) => None,
        };
        values.push(match value {
            Some(v) => convert(e, name, p, v)?,
            None => match p.default.and_then(literal) {
                Some(d) => d,
                None if p.optional => Value::None,
                None if p.spread => Value::tuple(vec![]),
                None => return e.fail(format!("{name} needs the argument `{}`: {}", p.name, shown(entry))),
            },
        });
    }
    too_many += given.count();
    if too_many > 0 {
        return e.fail(format!("{name} is given {too_many} too many arguments: {}", shown(entry)));
    }
    keywords.retain(|(k, _)| !IGNORED.contains(&k.as_str()));
    if let Some((k, _)) = keywords.first() {
        let names = params.iter().map(|p| p.name);
        let help = did_you_mean(k, names).unwrap_or_else(|| shown(entry));
        return e.fail_help(format!("{name} has no argument `{k}`"), help);
    }
    Ok(Args { params, values })
}

/// The signature, for messages.
fn shown(entry: &Entry) -> String {
    entry.sig.to_string()
}

fn convert(e: &mut Eval<'_>, function: &str, p: &Param<'_>, v: Value) -> Res<Value> {
    if matches!(v, Value::None) && p.optional {
        return Ok(v);
    }
    let what = match (p.kind, v) {
        (Kind::Any, v) => return Ok(v),
        (Kind::Tensor | Kind::Operand, v @ Value::Tensor(_)) => return Ok(v),
        (Kind::Operand | Kind::Number, v @ (Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Extent(_))) => {
            return Ok(v);
        }
        (Kind::Tensors, v @ (Value::List(_) | Value::Tuple(_))) => {
            let items = e.items(&v)?;
            if let Some(other) = items.iter().find(|i| !matches!(i, Value::Tensor(_) | Value::None)) {
                let kind = other.kind();
                return e.fail(format!("{function}: `{}` must hold tensors, found {kind}", p.name));
            }
            return Ok(Value::tuple(items));
        }
        (Kind::Tensors, v @ Value::Tensor(_)) if p.spread => return Ok(Value::tuple(vec![v])),
        (Kind::Int, v @ (Value::Int(_) | Value::Extent(_))) => return Ok(v),
        (Kind::Int, Value::Bool(b)) => return Ok(Value::Int(b.into())),
        (Kind::Float, v @ Value::Float(_)) => return Ok(v),
        (Kind::Float, Value::Int(i)) => return Ok(Value::Float(i as f64)),
        (Kind::Bool, v @ Value::Bool(_)) => return Ok(v),
        (Kind::Bool, Value::Int(i)) => return Ok(Value::Bool(i != 0)),
        (Kind::Str, v @ Value::Str(_)) => return Ok(v),
        (Kind::Dtype, v @ Value::Dtype(_)) => return Ok(v),
        (Kind::Dtype, Value::Type("float")) => return Ok(Value::Dtype(Elem::F32)),
        (Kind::Dtype, Value::Type("int")) => return Ok(Value::Dtype(Elem::I64)),
        (Kind::Dtype, Value::Type("bool")) => return Ok(Value::Dtype(Elem::BOOL)),
        (Kind::Ints | Kind::Floats, v @ (Value::Int(_) | Value::Extent(_))) => return Ok(v),
        (Kind::Floats, v @ Value::Float(_)) => return Ok(v),
        (Kind::Ints | Kind::Floats, v @ (Value::List(_) | Value::Tuple(_) | Value::Range(..))) => {
            let items = e.items(&v)?;
            let fits = |i: &&Value| {
                matches!(i, Value::Int(_) | Value::Extent(_))
                    || (p.kind == Kind::Floats && matches!(i, Value::Float(_)))
            };
            match items.iter().find(|i| !fits(i)) {
                None => return Ok(Value::tuple(items)),
                Some(other) => other.clone(),
            }
        }
        (_, v) => v,
    };
    let wanted = match p.kind {
        Kind::Tensor => "a tensor",
        Kind::Operand => "a tensor or a number",
        Kind::Tensors => "a list of tensors",
        Kind::Int => "an integer",
        Kind::Float | Kind::Number => "a number",
        Kind::Bool => "True or False",
        Kind::Str => "a string",
        Kind::Dtype => "a dtype such as torch.float32",
        Kind::Ints => "an integer or a list of integers",
        Kind::Floats => "a number or a list of numbers",
        Kind::Any => "something else",
    };
    let kind = what.kind();
    if matches!(what, Value::Tensor(_)) && !matches!(p.kind, Kind::Tensor | Kind::Operand | Kind::Tensors) {
        return e.fail_help(
            format!("{function}: `{}` must be {wanted}, found a tensor", p.name),
            "the values of a tensor are not known while the text is evaluated",
        );
    }
    e.fail(format!("{function}: `{}` must be {wanted}, found {kind}", p.name))
}
