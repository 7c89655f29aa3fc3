//! The inputs of a file: one tensor, the tensors that a run gives for a sequence, one or none for an optional value.
//!
//! ```text
//! s: seq(tensor(float)), and a run gives two      -->   `s[0]` and `s[1]` are inputs of the graph
//! o: optional(tensor(float)), and a run gives it  -->   `o` is an input
//! ```

use super::importer::{Importer, Slot, dim_key, free_key, symbol_of};
use super::lists::List;
use super::proto::{Dim, TensorType, Type, ValueInfo};
use super::{Kind, Options};
use crate::base::Code;
use crate::graph::decompose::onnx::dtype;
use crate::graph::ir::MAX_EXTENT;
use crate::graph::{Arg, Builder, Constant, Elem, OriginId, Role};
use crate::index::{Ix, simplify};

/// The name of a tensor of a sequence that is an input or an output.
pub fn item(name: &str, at: usize) -> String {
    format!("{name}[{at}]")
}

/// The name under which a run says that it gives a sequence of no tensors.
pub fn empty(name: &str) -> String {
    format!("{name}[]")
}

/// The kind of an input or output, and the type of its tensors.
pub(super) fn kind(info: &ValueInfo) -> Option<(Kind, &Type)> {
    let outer = info.kind.as_ref()?;
    Some(match (&outer.sequence, &outer.optional) {
        (Some(of), _) => (Kind::Sequence, &**of.kind.as_ref()?),
        (None, Some(of)) => {
            let inner = &**of.kind.as_ref()?;
            match &inner.sequence {
                Some(of) => (Kind::OptionalSequence, &**of.kind.as_ref()?),
                None => (Kind::Optional, inner),
            }
        }
        _ => (Kind::Tensor, outer),
    })
}

impl Options {
    /// The name of the extent of dimension `d` of an input, where one name may stand for several extents: for another one in
    /// each tensor of a sequence.
    pub(super) fn key(&self, input: &str, d: usize, dim: &Dim) -> String {
        let key = dim_key(input, d, dim);
        let listed = || input.rsplit_once('[').is_some_and(|(list, _)| self.lists.contains_key(list));
        if self.apart.contains(&key) || listed() { free_key(input, d) } else { key }
    }

    /// The tensors that are given for an input, with what the file says of each.
    pub(super) fn typed<'m>(&self, info: &'m ValueInfo) -> Vec<(String, &'m TensorType)> {
        let tensor = kind(info).and_then(|(_, of)| of.tensor.as_ref());
        let names = self.tensors(info).unwrap_or_default();
        tensor.map_or(vec![], |tensor| names.into_iter().map(|name| (name, tensor)).collect())
    }

    /// The tensors that are given for an input: its own name, or those of its items. `None` where that is not known.
    pub(super) fn tensors(&self, info: &ValueInfo) -> Option<Vec<String>> {
        let lists = |name: &str| self.lists.get(name).map(|n| (0..*n).map(|at| item(name, at)).collect());
        match kind(info).map(|(kind, _)| kind) {
            Some(Kind::Sequence | Kind::OptionalSequence) => lists(&info.name),
            Some(Kind::Optional) => match self.lists.get(&info.name)? {
                0 => Some(vec![]),
                _ => Some(vec![info.name.clone()]),
            },
            _ => Some(vec![info.name.clone()]),
        }
    }
}

impl<'m> Importer<'m> {
    /// Defines an input that is not a tensor; false if it is one, or its kind is unknown.
    pub(super) fn given(&mut self, info: &'m ValueInfo, origin: OriginId) -> bool {
        let Some((kind, of)) = kind(info).filter(|(kind, of)| *kind != Kind::Tensor && of.tensor.is_some()) else {
            return false;
        };
        let Some(names) = self.options.tensors(info) else {
            let what =
                format!("the input `{}` is {}, and only a run says how many tensors it has", info.name, kind.name());
            self.error(Code::ModelInput, what);
            self.define(&info.name, Slot::Refused);
            return true;
        };
        let items: Vec<Slot> = names.iter().map(|name| self.tensor_input(name, of, origin)).collect();
        let tensors = |items: &[Slot]| {
            let one = |slot: &Slot| if let Slot::Is(x) = slot { Some(*x) } else { None };
            items.iter().map(one).collect::<Option<Vec<Arg>>>()
        };
        let slot = match (kind, tensors(&items)) {
            (_, None) => Slot::Refused,
            (Kind::Optional, Some(all)) => Slot::Is(all.first().copied().unwrap_or(Arg::Absent)),
            (Kind::OptionalSequence, Some(all))
                if all.is_empty() && !self.options.given.contains(&empty(&info.name)) =>
            {
                Slot::Is(Arg::Absent)
            }
            (_, Some(all)) => self.list(List::Items(all)),
        };
        self.define(&info.name, slot);
        true
    }

    /// Gives the named dimensions of an input the extents of its shape, where that is known.
    pub(super) fn fix(&mut self, name: &str, tensor: &TensorType) {
        let (Some(shape), Some(declared)) = (self.options.shapes.get(name), &tensor.shape) else { return };
        let wrong = |importer: &mut Self, message: String| {
            let given: Vec<String> = shape.iter().map(u64::to_string).collect();
            let message = format!("input `{name}` has shape [{}], {message}", given.join(", "));
            importer.error(Code::ModelInput, message);
        };
        if shape.len() != declared.dims.len() {
            return wrong(self, format!("but the model declares {} axes", declared.dims.len()));
        }
        for (d, (dim, given)) in declared.dims.iter().zip(shape).enumerate() {
            let Some(extent) = i64::try_from(*given).ok().filter(|n| *n <= MAX_EXTENT) else {
                return wrong(self, format!("whose axis {d} is too long"));
            };
            let wanted = match dim.value.filter(|n| *n >= 0) {
                Some(n) => Some((Ix::Const(n), "it".to_string())),
                None => {
                    let key = self.options.key(name, d, dim);
                    let before = self.symbols.insert(key.clone(), Ix::Const(extent));
                    before.map(|b| (b, format!("`{key}`")))
                }
            };
            if let Some((wanted, name)) = wanted.filter(|(w, _)| *w != Ix::Const(extent)) {
                let wanted = wanted.as_const().map_or("another".to_string(), |n| n.to_string());
                return wrong(self, format!("but along axis {d} {name} is {wanted}"));
            }
        }
    }

    pub(super) fn input(&mut self, info: &'m ValueInfo, origin: OriginId) {
        let slot = match &info.kind {
            Some(kind) => self.tensor_input(&info.name, kind, origin),
            None => {
                self.error(Code::BadModel, format!("the input `{}` has no type", info.name));
                Slot::Refused
            }
        };
        self.define(&info.name, slot);
    }

    /// Appends a tensor that is given.
    pub(super) fn tensor_input(&mut self, name: &str, kind: &Type, origin: OriginId) -> Slot {
        match self.input_type(name, kind) {
            Some((elem, shape)) => match self.options.known.get(name) {
                Some(constant) => self.known_input(name, elem, &shape, constant, origin),
                None => match self.graph.unfit(elem, &shape) {
                    None => Slot::Is(self.graph.add_input(name, elem, shape, Role::Argument).into()),
                    Some(why) => {
                        self.error(Code::BadModel, format!("input `{name}`: {why}"));
                        Slot::Refused
                    }
                },
            },
            None => Slot::Refused,
        }
    }

    fn known_input(&mut self, name: &str, elem: Elem, shape: &[Ix], constant: &Constant, origin: OriginId) -> Slot {
        let given: Vec<Ix> = constant.shape.iter().map(|d| Ix::Const(*d as i64)).collect();
        let fits = given.len() == shape.len() && given.iter().zip(shape).all(|(g, s)| g == s || s.as_const().is_none());
        if !fits || elem != constant.elem {
            let b = Builder::new(&mut self.graph, origin);
            let (given, wanted) = (b.shape_text(&given), b.shape_text(shape));
            let message =
                format!("the input `{name}` is {elem} {wanted}, but {} {given} is given for it", constant.elem);
            self.error(Code::ModelInput, message);
            return Slot::Refused;
        }
        self.constant(Constant { name: name.into(), ..constant.clone() }, origin)
    }

    fn input_type(&mut self, name: &str, kind: &Type) -> Option<(Elem, Vec<Ix>)> {
        let input = format!("the input `{name}`");
        let Some(tensor) = &kind.tensor else {
            let what = match (&kind.sequence, kind.map, kind.sparse, &kind.optional) {
                (Some(_), ..) => "sequences of other values than tensors",
                (_, true, ..) => "maps",
                (_, _, true, _) => "sparse tensors",
                (.., Some(_)) => "optional values other than tensors and sequences of them",
                _ => "values that are not tensors",
            };
            self.unsupported(what, input);
            return None;
        };
        let elem = match dtype::elem(tensor.elem) {
            Ok(elem) => elem,
            Err(name) => {
                self.unsupported(format!("element type {name}"), input);
                return None;
            }
        };
        let Some(shape) = &tensor.shape else {
            // A known input has the shape of its value.
            let known = self.options.known.get(name).map(|c| &c.shape);
            if let Some(shape) = known.or(self.options.shapes.get(name)) {
                return Some((elem, shape.iter().map(|d| Ix::Const(*d as i64)).collect()));
            }
            if let Some(rank) = self.options.ranks.get(name) {
                let dims = (0..*rank).map(|d| self.dimension(free_key(name, d)));
                return Some((elem, dims.collect()));
            }
            self.unsupported("inputs of unknown rank", input);
            return None;
        };
        let dims = shape.dims.iter().enumerate().map(|(d, dim)| self.dim(name, d, dim));
        Some((elem, dims.collect::<Option<Vec<Ix>>>()?))
    }

    /// The extent of dimension `d` of an input.
    fn dim(&mut self, input: &str, d: usize, dim: &Dim) -> Option<Ix> {
        match dim.value {
            Some(n) if n > MAX_EXTENT => {
                self.error(Code::BadModel, format!("dimension {d} of the input `{input}` is too long: {n}"));
                return None;
            }
            // Some exporters write -1 for a dimension that is not known.
            Some(n) if n >= 0 => return Some(Ix::Const(n)),
            _ => {}
        }
        Some(self.dimension(self.options.key(input, d, dim)))
    }

    /// The extent that a dimension has, or is assumed to have.
    fn dimension(&mut self, key: String) -> Ix {
        if let Some(ix) = self.symbols.get(&key) {
            return ix.clone();
        }
        let assumed = &self.options.assumed;
        let ix = match assumed.meaning(&key) {
            Some(meaning) => {
                let meaning = meaning.subst_vals(&mut |v, _| Some(self.dimension(assumed.name(v)?.to_string())));
                simplify(&meaning, &self.graph.facts())
            }
            None => {
                let (lo, hi) = assumed.range(&key).unwrap_or_else(|| self.options.range(&key));
                if hi == Some(lo) { Ix::Const(lo) } else { self.symbol(&key, lo, hi) }
            }
        };
        self.symbols.insert(key, ix.clone());
        ix
    }

    fn symbol(&mut self, text: &str, lo: i64, hi: Option<i64>) -> Ix {
        let mut name = symbol_of(text);
        let axis = name.len() > 1 && name.starts_with(['i', 'b', 'g']) && name[1..].bytes().all(|b| b.is_ascii_digit());
        if axis || matches!(name.as_str(), "in" | "min" | "max" | "and") {
            name.push('_');
        }
        while self.graph.symbols.values().any(|s| s.name == name) {
            name.push('_');
        }
        self.graph.add_symbol(&name, lo, hi).ix()
    }
}
