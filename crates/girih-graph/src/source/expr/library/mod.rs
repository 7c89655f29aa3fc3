//! The functions that texts can call: PyTorch's functions, methods and modules, Python's own functions, and `math`.
//!
//! Most of it is a table (`table/`): a signature, the operation of ATen that it stands for, and a sentence. Functions
//! made of other functions are written in the language itself (`prelude/`), functions that need the evaluator in Rust
//! (`create.rs`, `tensor.rs`, `python.rs`).

mod bind;
mod create;
pub mod help;
mod load;
mod python;
mod table;
mod tensor;

pub use bind::{Args, Kind, params};
pub use python::{construct, method, methods_of, python, python_names};

use super::error::Res;
use super::eval::Eval;
use super::value::Value;
use crate::graph::Elem;
use crate::num::DType;

/// One function.
pub struct Entry {
    /// The module that contains it: `torch`, `F`, `Tensor` (a method), `math`, `aten` (for the prelude only).
    pub on: &'static str,
    /// `softmax(input: Tensor, dim: int, *, dtype: dtype? = None)`
    pub sig: &'static str,
    pub does: Does,
    /// One sentence.
    pub doc: &'static str,
}

pub enum Does {
    /// Appends this operation.
    Aten(&'static str),
    /// The same; the result shares the first operand's memory.
    View(&'static str),
    Run(fn(&mut Eval<'_>, &Args<'_>) -> Res<Value>),
    /// The same; it makes an input, and undefined names among its arguments are extents.
    Input(fn(&mut Eval<'_>, &Args<'_>) -> Res<Value>),
}

impl Entry {
    pub fn name(&self) -> &'static str {
        self.sig.split('(').next().unwrap_or(self.sig)
    }
    pub fn makes_input(&self) -> bool {
        matches!(self.does, Does::Input(_))
    }
}

const fn op(on: &'static str, sig: &'static str, aten: &'static str, doc: &'static str) -> Entry {
    Entry { on, sig, does: Does::Aten(aten), doc }
}
const fn view(on: &'static str, sig: &'static str, aten: &'static str, doc: &'static str) -> Entry {
    Entry { on, sig, does: Does::View(aten), doc }
}
const fn run(
    on: &'static str,
    sig: &'static str,
    f: fn(&mut Eval<'_>, &Args<'_>) -> Res<Value>,
    doc: &'static str,
) -> Entry {
    Entry { on, sig, does: Does::Run(f), doc }
}
const fn input(
    on: &'static str,
    sig: &'static str,
    f: fn(&mut Eval<'_>, &Args<'_>) -> Res<Value>,
    doc: &'static str,
) -> Entry {
    Entry { on, sig, does: Does::Input(f), doc }
}

/// The table by subject.
pub const GROUPS: &[(&str, &[Entry])] = &[
    ("Creation", create::ENTRIES),
    ("Arithmetic", table::ARITHMETIC),
    ("Comparison and choice", table::COMPARISON),
    ("Reductions", table::REDUCTIONS),
    ("Products", table::PRODUCTS),
    ("Shape", table::SHAPE),
    ("Picking elements", table::PICKING),
    ("Activations", table::ACTIVATIONS),
    ("Layers", table::LAYERS),
    ("Types and properties", tensor::ENTRIES),
    ("math", python::MATH),
    ("Inside the library", table::INNER),
];

/// A module of PyTorch or Python.
pub struct Module {
    pub path: &'static str,
    /// Its name here.
    pub name: &'static str,
}

pub const MODULES: &[Module] = &[
    Module { path: "torch", name: "torch" },
    Module { path: "torch.nn", name: "nn" },
    Module { path: "torch.nn.functional", name: "F" },
    Module { path: "torch.linalg", name: "linalg" },
    Module { path: "math", name: "math" },
];

/// Arguments for the device of tensors or for training, which have no meaning here.
pub const IGNORED: &[&str] =
    &["device", "requires_grad", "layout", "pin_memory", "memory_format", "generator", "non_blocking", "copy"];

pub fn path_of(module: &str) -> &str {
    MODULES.iter().find(|m| m.name == module).map_or(module, |m| m.path)
}

/// The function of a module, or the method of a tensor.
pub fn find(on: &str, name: &str) -> Option<&'static Entry> {
    GROUPS.iter().flat_map(|(_, entries)| entries.iter()).find(|e| e.name() == name && e.on.split(' ').any(|o| o == on))
}

/// The names that a module or a tensor has.
pub fn names_of<'s>(on: &str) -> Vec<&'s str> {
    let entries = GROUPS.iter().flat_map(|(_, entries)| entries.iter());
    let mut names: Vec<&'s str> = entries.filter(|e| e.on.split(' ').any(|o| o == on)).map(|e| e.name()).collect();
    if on == "torch" {
        names.extend(CONSTANTS.iter().map(|(_, n)| *n));
    }
    names
}

/// Element types by PyTorch's names.
pub const DTYPES: &[(&str, Elem)] = &[
    ("float32", Elem::F32),
    ("float", Elem::F32),
    ("float64", Elem::F64),
    ("double", Elem::F64),
    ("float16", Elem::F16),
    ("half", Elem::F16),
    ("bfloat16", Elem::BF16),
    ("int64", Elem::I64),
    ("long", Elem::I64),
    ("int32", Elem::I32),
    ("int", Elem::I32),
    ("int16", Elem::I16),
    ("short", Elem::I16),
    ("int8", Elem::I8),
    ("uint8", Elem::U8),
    ("uint16", Elem::U16),
    ("uint32", Elem::U32),
    ("uint64", Elem::U64),
    ("bool", Elem::BOOL),
    ("float8_e4m3fn", Elem::of(DType::F8E4M3FN)),
    ("float8_e5m2", Elem::of(DType::F8E5M2)),
];

const CONSTANTS: &[(&str, &str)] = &[
    ("torch", "nn"),
    ("torch", "linalg"),
    ("torch", "pi"),
    ("torch", "e"),
    ("torch", "inf"),
    ("torch", "nan"),
    ("torch", "Tensor"),
    ("torch", "newaxis"),
    ("torch", "float32"),
    ("torch", "float64"),
    ("torch", "float16"),
    ("torch", "bfloat16"),
    ("torch", "int64"),
    ("torch", "int32"),
    ("torch", "int8"),
    ("torch", "uint8"),
    ("torch", "bool"),
];

/// The members of a module that are not functions.
pub fn constant(module: &str, name: &str) -> Option<Value> {
    Some(match (module, name) {
        ("torch", "nn") => Value::Module("nn"),
        ("nn", "functional") => Value::Module("F"),
        ("torch", "linalg") => Value::Module("linalg"),
        ("torch" | "math", "pi") => Value::Float(std::f64::consts::PI),
        ("torch" | "math", "e") => Value::Float(std::f64::consts::E),
        ("torch" | "math", "inf") => Value::Float(f64::INFINITY),
        ("torch" | "math", "nan") => Value::Float(f64::NAN),
        ("math", "tau") => Value::Float(std::f64::consts::TAU),
        ("torch", "newaxis") => Value::None,
        ("torch", "Tensor") => Value::Type("Tensor"),
        ("torch", "Size") => Value::Type("tuple"),
        ("torch", "no_grad" | "inference_mode" | "enable_grad") => Value::Context,
        ("torch", "contiguous_format" | "channels_last" | "strided") => Value::None,
        ("torch", _) => Value::Dtype(DTYPES.iter().find(|(n, _)| *n == name)?.1),
        _ => return None,
    })
}

/// Calls a function of the table.
pub fn call(e: &mut Eval<'_>, entry: &'static Entry, args: Vec<Value>, keywords: Vec<(String, Value)>) -> Res<Value> {
    let mut keywords = keywords;
    // `inplace` belongs to modules and functions that may reuse their operand's memory.
    let in_place = keywords.iter().any(|(k, v)| k == "inplace" && matches!(v, Value::Bool(true)));
    keywords.retain(|(k, _)| k != "inplace");
    let bound = bind::bind(e, entry, args, keywords)?;
    if in_place && let (Some(Value::Tensor(t)), Does::Aten(name)) = (bound.first().cloned(), &entry.does) {
        if let Value::Tensor(new) = bound.append(e, name)? {
            e.replace(&t, &new)?;
        }
        return Ok(Value::Tensor(t));
    }
    match entry.does {
        Does::Run(f) | Does::Input(f) => f(e, &bound),
        Does::Aten(name) => bound.append(e, name),
        Does::View(name) => {
            let out = bound.append(e, name)?;
            if let Some(Value::Tensor(base)) = bound.first() {
                base.shared.set(true);
                match &out {
                    Value::Tensor(t) => t.shared.set(true),
                    other => {
                        for v in e.items(other)? {
                            if let Value::Tensor(t) = v {
                                t.shared.set(true);
                            }
                        }
                    }
                }
            }
            Ok(out)
        }
    }
}
