//! The input of a rule: the operation's name, its operands and its attributes.
//!
//! An attribute is absent, known, symbolic (an integer that depends on a size of the run) or of a kind that the rule does
//! not expect, and an accessor keeps these apart: absent is the default or `None`, known is the value, and the last two
//! are a [`Refusal`], unless the accessor gives an expression ([`Call::index`], [`Call::extents`], [`Call::number`]),
//! with which the rule computes. No accessor gives the default for an attribute that is there, and there is no other way
//! to read one.

use super::expr::{Cx, Results, Tensor};
use super::{rule, types};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Attr, Attrs};
use crate::index::Ix;

/// A source operation to be replaced.
pub struct Call<'g> {
    pub name: &'g str,
    pub args: &'g [Arg],
    attrs: &'g Attrs,
    /// Attributes that count as absent.
    hidden: &'static [&'static str],
    pub cx: &'g Cx<'g>,
}

/// Runs a row of [`rules!`] on an operation: its results, or the first mistake.
pub fn run(
    b: &mut Builder<'_>,
    row: fn(&Call<'_>) -> Result<Vec<Arg>>,
    name: &str,
    args: &[Arg],
    attrs: &Attrs,
) -> Result<Vec<Arg>> {
    let (outcome, state) = {
        let cx = Cx::new(b);
        let outcome = row(&Call { name, args, attrs, hidden: &[], cx: &cx });
        cx.ended(outcome)
    };
    b.restore(state);
    outcome
}

/// The results of a row's function.
pub fn applied<'g, R: Results<'g>>(call: &Call<'g>, f: impl FnOnce(&Call<'g>) -> R) -> Result<Vec<Arg>> {
    Ok(f(call).results()?.into_iter().map(|x| x.arg).collect())
}

/// A rule that is written over the builder.
pub fn old<'g>(
    f: fn(&mut Builder<'_>, &Call<'_>) -> Result<Vec<Arg>>,
) -> impl FnOnce(&Call<'g>) -> Result<Vec<Tensor<'g>>> {
    move |c| Ok(c.cx.build(|b| f(b, c))?.into_iter().map(|x| c.cx.tensor(x)).collect())
}

/// A tensor that is an attribute: its element type, shape and elements, each an integer or a float.
type TensorAttr<'a> = (Elem, Vec<i64>, &'a [Attr]);

impl<'a> Call<'a> {
    /// Operand `i`, which must be there.
    pub fn x(&self, i: usize) -> Tensor<'a> {
        self.maybe(i).unwrap_or_else(|| self.cx.poison(Refusal::new(format!("operand {} is missing", i + 1))))
    }
    /// Operand `i`, where it was given.
    pub fn maybe(&self, i: usize) -> Option<Tensor<'a>> {
        self.opt(i).map(|x| self.cx.tensor(x))
    }
    /// The first result of another operation.
    pub fn other(&self, name: &str, args: &[Tensor<'a>], attrs: &[(&str, Attr)]) -> Tensor<'a> {
        let attrs: Attrs = attrs.iter().map(|(k, v)| ((*k).to_string(), v.clone())).collect();
        self.cx.made(args, |b| {
            let Some(rule) = rule(name) else { return Err(Refusal::new(format!("there is no rule for {name}"))) };
            let results = rule.run(b, name, &args.iter().map(|x| x.arg).collect::<Vec<_>>(), &attrs)?;
            results.first().copied().ok_or_else(|| Refusal::new(format!("{name} has no result")))
        })
    }
    /// The number that an attribute gives: see [`Call::number`].
    pub fn given_number(&self, name: &str) -> Result<Option<Tensor<'a>>> {
        Ok(self.cx.build(|b| self.number(b, name))?.map(|x| self.cx.tensor(x)))
    }
    /// Operand `i`, or the number given as an attribute.
    pub fn operand(&self, i: usize, name: &str) -> Result<Option<Tensor<'a>>> {
        Ok(self.given_number(name)?.or_else(|| self.maybe(i)))
    }
    /// The same, where it must be there.
    pub fn needed(&self, i: usize, name: &str) -> Tensor<'a> {
        let missing = || Refusal::new(format!("operand {name} is missing"));
        self.cx.good(self.operand(i, name).and_then(|x| x.ok_or_else(missing)))
    }
    /// A number that becomes elements of a tensor of that type, 0 unless given: see [`types::element`].
    pub fn element(&self, name: &str, elem: Elem) -> Tensor<'a> {
        self.cx.made(&[], |b| types::element_attr(b, self, name, elem))
    }
    /// `x` times the number that an attribute gives, where it gives one.
    pub fn scaled(&self, x: Tensor<'a>, name: &str) -> Tensor<'a> {
        self.cx.made(&[x], |b| types::scaled(b, self, x.arg, name))
    }
    /// The same, 0 where the number is 0, whatever `x` holds.
    pub fn scaled_or_none(&self, x: Tensor<'a>, name: &str) -> Tensor<'a> {
        self.cx.made(&[x], |b| types::scaled_or_none(b, self, x.arg, name))
    }
    /// The same in a type, or a default.
    pub fn number_or(&self, name: &str, default: f64, elem: Elem) -> Tensor<'a> {
        match self.given_number(name) {
            Ok(Some(x)) => x.to(elem),
            Ok(None) => self.cx.number(elem, default),
            Err(refusal) => self.cx.poison(refusal),
        }
    }

    /// Operand `i`, which must be there.
    pub fn arg(&self, i: usize) -> Result<Arg> {
        self.opt(i).ok_or_else(|| Refusal::new(format!("operand {} is missing", i + 1)))
    }
    /// Operand `i`, where it was given.
    pub fn opt(&self, i: usize) -> Option<Arg> {
        self.args.get(i).copied().filter(|a| *a != Arg::Absent)
    }

    /// Returns true if the attribute is there, of any kind.
    pub fn has(&self, name: &str) -> bool {
        self.found(name).is_some()
    }
    /// Returns true if the attribute is a float.
    pub fn is_float(&self, name: &str) -> bool {
        matches!(self.found(name), Some(Attr::Float(_)))
    }
    /// The attributes without some.
    pub fn without(&self, names: &[&str]) -> Attrs {
        self.attrs.iter().filter(|(k, _)| !names.contains(&k.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
    }
    /// The same operation without some attributes.
    pub fn hiding(&self, hidden: &'static [&'static str]) -> Call<'a> {
        Call { hidden, ..*self }
    }

    /// The first of these attributes that is there, since the source has one of them; the first where there is none.
    pub fn given<'n>(&self, names: &[&'n str]) -> &'n str {
        names.iter().find(|n| self.has(n)).or(names.first()).copied().unwrap_or_default()
    }
    /// Returns true if the attribute is a list.
    pub fn is_list(&self, name: &str) -> bool {
        matches!(self.found(name), Some(Attr::List(_)))
    }

    fn found(&self, name: &str) -> Option<&'a Attr> {
        self.attrs.get(name).filter(|a| **a != Attr::None && !self.hidden.contains(&name))
    }
    /// Applies `read` to the attribute, where it is there.
    fn read<T>(&self, name: &str, expected: &str, read: impl Fn(&'a Attr) -> Known<T>) -> Result<Option<T>> {
        let Some(attr) = self.found(name) else { return Ok(None) };
        match read(attr) {
            Known::Is(x) => Ok(Some(x)),
            Known::Symbolic => Err(Refusal::new(format!("`{name}` must be known when the model is compiled"))
                .help("it depends on a size that is known only when the model runs")),
            Known::Strange => Err(Refusal::new(format!("`{name}` must be {expected}, not {}", kind(attr)))),
        }
    }

    /// A number, where it is there.
    pub fn float_of(&self, name: &str) -> Result<Option<f64>> {
        self.read(name, "a number", float)
    }
    pub fn float(&self, name: &str, default: f64) -> Result<f64> {
        // Attributes of ONNX are f32, and so are its defaults.
        let onnx = ["onnx.", "com.microsoft."].iter().any(|set| self.name.starts_with(set));
        let narrow = if onnx { f64::from(default as f32) } else { default };
        Ok(self.float_of(name)?.unwrap_or(narrow))
    }
    /// An integer, where it is there.
    pub fn int_of(&self, name: &str) -> Result<Option<i64>> {
        self.read(name, "an integer", int)
    }
    pub fn int(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int_of(name)?.unwrap_or(default))
    }
    pub fn flag(&self, name: &str, default: bool) -> Result<bool> {
        Ok(self.int(name, default.into())? != 0)
    }
    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.read(name, "a string", |a| if let Attr::Str(s) = a { Known::Is(s.as_str()) } else { Known::Strange })
    }
    /// The word, of an attribute that is a word or something else, which another accessor reads.
    pub fn word(&self, name: &str) -> Option<&'a str> {
        if let Some(Attr::Str(s)) = self.found(name) { Some(s) } else { None }
    }
    /// One of these words; the first where there is none.
    pub fn choice<'c>(&self, name: &str, words: &[&'c str]) -> Result<&'c str> {
        let Some(given) = self.text(name)? else { return Ok(words.first().copied().unwrap_or_default()) };
        words.iter().find(|w| **w == given).copied().ok_or_else(|| {
            Refusal::new(format!("`{name}` is {given:?}, which is not supported"))
                .help(format!("use {}", words.join(", ")))
        })
    }
    pub fn elem(&self, name: &str) -> Result<Option<Elem>> {
        self.read(name, "an element type", |a| if let Attr::Elem(e) = a { Known::Is(*e) } else { Known::Strange })
    }
    /// A list of known integers; a lone integer is a list of one.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        self.read(name, "a list of integers", |a| all(a, int))
    }
    /// A list of known numbers, or the elements of a tensor; a lone number is a list of one.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f64>>> {
        self.read(name, "a list of numbers", |a| match tensor(a) {
            Known::Is((_, _, values)) => each(values, float),
            _ => all(a, float),
        })
    }
    pub fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>> {
        let one = |a: &'a Attr| if let Attr::Str(s) = a { Known::Is(s.as_str()) } else { Known::Strange };
        self.read(name, "a list of strings", |a| all(a, one))
    }
    /// A tensor that is an attribute: its element type, shape and elements, each an integer or a float.
    pub fn tensor(&self, name: &str) -> Result<Option<TensorAttr<'a>>> {
        self.read(name, "a tensor", tensor)
    }

    /// An integer, perhaps symbolic.
    pub fn index(&self, name: &str) -> Result<Option<Ix>> {
        self.read(name, "an integer", index)
    }
    /// A list of integers, perhaps symbolic; a lone integer is a list of one.
    pub fn extents(&self, name: &str) -> Result<Option<Vec<Ix>>> {
        self.read(name, "a list of integers", |a| all(a, index))
    }
    /// The same, where entries may be left out.
    pub fn open_extents(&self, name: &str) -> Result<Option<Vec<Option<Ix>>>> {
        let one = |a: &'a Attr| match (a, index(a)) {
            (Attr::None, _) => Known::Is(None),
            (_, Known::Is(x)) => Known::Is(Some(x)),
            _ => Known::Strange,
        };
        self.read(name, "a list of integers", |a| all(a, one))
    }
    /// A number as an operand: a scalar, or a tensor of rank 0 that holds an integer known only when the model runs.
    pub fn number(&self, b: &mut Builder<'_>, name: &str) -> Result<Option<Arg>> {
        let found = self.read(name, "a number", |a| match a {
            Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) => Known::Is(a),
            _ => Known::Strange,
        })?;
        Ok(match found {
            Some(Attr::Bool(x)) => Some(Arg::Scalar { elem: Elem::BOOL, bits: (*x).into() }),
            Some(Attr::Int(Ix::Const(i))) => Some(ir::int_scalar(Elem::I64, *i)),
            Some(Attr::Int(ix)) => Some(b.index(ix.clone(), Elem::I64, vec![])),
            Some(Attr::Float(x)) => Some(ir::scalar(Elem::F64, *x)),
            _ => None,
        })
    }
}

/// The value of an attribute that is there, or the reason that it has none.
enum Known<T> {
    Is(T),
    /// A value of the expected kind, known only when the model runs.
    Symbolic,
    /// A value of another kind.
    Strange,
}

fn int(a: &Attr) -> Known<i64> {
    match a {
        Attr::Int(i) => i.as_const().map_or(Known::Symbolic, Known::Is),
        Attr::Bool(b) => Known::Is((*b).into()),
        _ => Known::Strange,
    }
}

fn float(a: &Attr) -> Known<f64> {
    match (a, int(a)) {
        (Attr::Float(x), _) => Known::Is(*x),
        (_, Known::Is(i)) => Known::Is(i as f64),
        (_, Known::Symbolic) => Known::Symbolic,
        _ => Known::Strange,
    }
}

fn index(a: &Attr) -> Known<Ix> {
    match a {
        Attr::Int(i) => Known::Is(i.clone()),
        Attr::Bool(b) => Known::Is(Ix::Const((*b).into())),
        _ => Known::Strange,
    }
}

fn tensor(a: &Attr) -> Known<TensorAttr<'_>> {
    let Attr::List(parts) = a else { return Known::Strange };
    let [Attr::Elem(elem), Attr::List(shape), Attr::List(values)] = &parts[..] else { return Known::Strange };
    match each(shape, int) {
        Known::Is(shape) => Known::Is((*elem, shape, values)),
        _ => Known::Strange,
    }
}

/// Every entry of a list, or the lone one.
fn all<'a, T>(a: &'a Attr, one: impl Fn(&'a Attr) -> Known<T>) -> Known<Vec<T>> {
    each(if let Attr::List(list) = a { list } else { std::slice::from_ref(a) }, one)
}

fn each<'a, T>(list: &'a [Attr], one: impl Fn(&'a Attr) -> Known<T>) -> Known<Vec<T>> {
    let mut out = Vec::with_capacity(list.len());
    for a in list {
        match one(a) {
            Known::Is(x) => out.push(x),
            Known::Symbolic => return Known::Symbolic,
            Known::Strange => return Known::Strange,
        }
    }
    Known::Is(out)
}

/// The kind of an attribute, for messages.
fn kind(a: &Attr) -> &'static str {
    match a {
        Attr::None => "nothing",
        Attr::Bool(_) => "a truth value",
        Attr::Int(_) => "an integer",
        Attr::Float(_) => "a float",
        Attr::Str(_) => "a string",
        Attr::Elem(_) => "an element type",
        Attr::List(_) => "a list of other things",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, OriginId};

    /// Every accessor tells absent, known, symbolic and strange apart.
    #[test]
    fn an_attribute_that_is_there_is_never_the_default() {
        let symbol = Ix::Val { val: crate::index::ValId(0), zext: false };
        let kinds = [
            Attr::Int(symbol.clone()),
            Attr::List(vec![Attr::Int(symbol)]),
            Attr::Str("x".into()),
            Attr::Elem(Elem::F32),
            Attr::List(vec![Attr::Str("x".into())]),
            Attr::Float(0.5),
            Attr::Bool(true),
            Attr::Int(Ix::Const(3)),
        ];
        for attr in kinds {
            let attrs = Attrs::from([("a".to_string(), attr.clone()), ("none".to_string(), Attr::None)]);
            let mut graph = Graph::default();
            graph.add_symbol("k", 0, None);
            let mut b = Builder::new(&mut graph, OriginId(0));
            let cx = Cx::new(&mut b);
            let call = Call { name: "test", args: &[], attrs: &attrs, hidden: &[], cx: &cx };
            for absent in ["none", "missing"] {
                assert_eq!((call.int(absent, 7), call.float(absent, 7.0)), (Ok(7), Ok(7.0)));
                assert_eq!(
                    (call.flag(absent, true), call.ints(absent), call.text(absent)),
                    (Ok(true), Ok(None), Ok(None))
                );
            }
            let (known, whole) = match &attr {
                Attr::Float(x) => (Some(*x), None),
                Attr::Bool(_) => (Some(1.0), Some(1)),
                Attr::Int(i) => (i.as_const().map(|i| i as f64), i.as_const()),
                _ => (None, None),
            };
            assert_eq!((call.float("a", 7.0).ok(), call.int("a", 7).ok()), (known, whole), "{attr:?}");
            assert_eq!(call.flag("a", false).ok(), whole.map(|i| i != 0), "{attr:?}");
            assert_eq!(call.ints("a").ok(), whole.map(|i| Some(vec![i])), "{attr:?}");
            assert_eq!(call.text("a").is_ok(), matches!(attr, Attr::Str(_)), "{attr:?}");
            assert_eq!(call.elem("a").is_ok(), matches!(attr, Attr::Elem(_)), "{attr:?}");
            assert_eq!(call.choice("a", &["y", "z"]).ok(), None, "{attr:?}");
            // A symbol is computed with, where the accessor gives an expression.
            assert_eq!(call.index("a").is_ok(), matches!(attr, Attr::Int(_) | Attr::Bool(_)), "{attr:?}");
            let number = cx.build(|b| call.number(b, "a"));
            assert_eq!(number.is_ok(), matches!(attr, Attr::Int(_) | Attr::Bool(_) | Attr::Float(_)), "{attr:?}");
        }
    }
}
