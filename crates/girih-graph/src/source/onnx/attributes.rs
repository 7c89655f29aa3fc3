//! Attributes of nodes, by their ONNX names.
//!
//! A tensor becomes a list: its element type, its shape, its elements as integers or floats (see [`Call::tensor`]).
//!
//! [`Call::tensor`]: crate::graph::decompose::Call::tensor

use std::collections::BTreeMap;

use super::proto::{Attribute, Tensor};
use super::strings::{self, Words};
use super::tensor::{self, Trouble};
use crate::base::{Code, Diagnostic};
use crate::graph::build::{constant_bits, int_of, number_of};
use crate::graph::{Attr, Attrs};
use crate::index::Ix;

/// The most elements of a tensor that is an attribute.
const MAX_TENSOR: u64 = 1 << 20;

/// The attributes of a function call, by name.
pub(super) type Bound<'m> = BTreeMap<&'m str, &'m Attribute>;

/// The attribute itself, or the value that the function's caller gave for it; `None` if they gave none.
pub(super) fn resolve<'m>(a: &'m Attribute, bound: &Bound<'m>) -> Option<&'m Attribute> {
    if a.refers_to.is_empty() { Some(a) } else { bound.get(a.refers_to.as_str()).copied() }
}

/// `AttributeProto.AttributeType`; files of old producers leave it out.
fn kind(a: &Attribute) -> i32 {
    match a.kind {
        0 if a.t.is_some() => 4,
        0 if a.g.is_some() => 5,
        0 if !a.floats.is_empty() => 6,
        0 if !a.ints.is_empty() => 7,
        0 if !a.strings.is_empty() => 8,
        0 if !a.s.is_empty() => 3,
        0 if a.f != 0.0 => 1,
        0 => 2,
        kind => kind,
    }
}

fn text(bytes: &[u8]) -> Attr {
    Attr::Str(strings::text(bytes))
}

/// Converts all attributes but graphs, which the importer follows itself. `Trouble::Type` names an unsupported type.
pub(super) fn attrs<'m>(list: &'m [Attribute], bound: &Bound<'m>, words: &Words, node: &str) -> Result<Attrs, Trouble> {
    let mut out = Attrs::new();
    for a in list {
        let Some(given) = resolve(a, bound) else { continue };
        let value = match kind(given) {
            1 => Attr::Float(f64::from(given.f)),
            2 => Attr::Int(Ix::Const(given.i)),
            3 => text(&given.s),
            4 => match &given.t {
                Some(t) => tensor(t, words, node)?,
                None => Attr::None,
            },
            5 => continue,
            6 => Attr::List(given.floats.iter().map(|f| Attr::Float(f64::from(*f))).collect()),
            7 => Attr::List(given.ints.iter().map(|i| Attr::Int(Ix::Const(*i))).collect()),
            8 => Attr::List(given.strings.iter().map(|s| text(s)).collect()),
            _ => return Err(Trouble::Type(format!("attribute `{}` of a kind that is not supported", a.name))),
        };
        if out.insert(a.name.clone(), value).is_some() {
            let message = format!("the node {node} has the attribute `{}` twice", a.name);
            return Err(Trouble::Error(Diagnostic::error(Code::BadModel, message)));
        }
    }
    Ok(out)
}

fn tensor(t: &Tensor, words: &Words, node: &str) -> Result<Attr, Trouble> {
    let constant = tensor::constant(t, node, words)?;
    let too_large = constant.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).is_none_or(|n| n > MAX_TENSOR);
    let bits = constant_bits(&constant).filter(|_| !too_large);
    let Some(bits) = bits else {
        return Err(Trouble::Type("an attribute that is a large tensor".into()));
    };
    let elem = constant.elem;
    let one = |b: u64| {
        if elem.is_float() { Attr::Float(number_of(elem, b)) } else { Attr::Int(Ix::Const(int_of(elem, b))) }
    };
    let shape = constant.shape.iter().map(|d| Attr::Int(Ix::Const(*d as i64))).collect();
    Ok(Attr::List(vec![Attr::Elem(elem), Attr::List(shape), Attr::List(bits.into_iter().map(one).collect())]))
}
