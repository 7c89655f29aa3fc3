//! Fits a caller's named arrays to the inputs of a model; errors use the caller's words.

use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::{Fill, Graph, Input, SymId, Value};
use girih_compiler::index::Ix;

use super::extent;
use super::tensor::{Extent, Port, Tensor};
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use girih_compiler::base::words::suggestion;
use girih_compiler::spec::input_element;

/// A refusal of an input.
pub fn refuse(message: impl Into<String>, help: impl Into<String>) -> Error {
    Error::Program(vec![Diagnostic::error(Code::ModelInput, message).help(help)])
}

/// The refusal of a run that lacks the inputs at some positions.
pub fn missing(graph: &Graph, absent: &[usize], help: impl Into<String>) -> Error {
    let ports = ports(graph);
    let of = |at: &usize| ports.get(*at).map_or(String::new(), Port::to_string);
    let message = match absent {
        [one] => format!("input `{}` is not given: the model expects {}", name(graph, *one), of(one)),
        many => {
            let names: Vec<String> = many.iter().map(|at| format!("`{}`", name(graph, *at))).collect();
            let types: Vec<String> = many.iter().map(of).collect();
            format!("inputs {} are not given: the model expects {}", names.join(", "), types.join(", "))
        }
    };
    refuse(message, help)
}

/// The command line's words that give the absent inputs: their types and shapes, with 1 for each unknown extent.
pub fn arguments_for(graph: &Graph, absent: &[usize], known: &[Option<i64>]) -> String {
    let all: Vec<i64> = known.iter().map(|k| k.unwrap_or(1)).collect();
    let (mut flags, mut free) = (vec![], vec![]);
    for at in absent {
        let Some(v) = graph.inputs.get(*at).and_then(|i| value(graph, i)) else { continue };
        let dims = extent::shape(&v.shape, &all).unwrap_or_else(|| vec![1; v.shape.len()]);
        let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
        let dtype = v.elem.dtype;
        let fill = if dtype.is_float() { "randn" } else { "zeros" };
        let spec = match dims.is_empty() {
            true => format!("{dtype}:0"),
            false => format!("{fill}:{dtype}[{}]", dims.join("x")),
        };
        flags.push(format!("--arg {}={spec}", v.name));
        let unknown =
            v.shape.iter().flat_map(Ix::vals).filter(|s| known.get(s.0 as usize).copied().flatten().is_none());
        for symbol in unknown.filter_map(|s| graph.symbols.get(SymId(s.0))) {
            if !free.contains(&symbol.name) {
                free.push(symbol.name.clone());
            }
        }
    }
    let free = match free.is_empty() {
        true => String::new(),
        false => format!(" (1 stands for {})", free.join(", ")),
    };
    format!("`{}`{free}; or from a file, `--arg NAME=FILE.npy`", flags.join(" "))
}

/// The value of an input.
pub fn value<'g>(graph: &'g Graph, input: &Input) -> Option<&'g Value> {
    graph.values.get(input.value)
}

/// The name of the input at a position.
pub fn name(graph: &Graph, at: usize) -> &str {
    graph.inputs.get(at).and_then(|i| value(graph, i)).map_or("?", |v| &v.name)
}

fn extents(graph: &Graph, shape: &[Ix]) -> Vec<Extent> {
    let one = |d: &Ix| match d.as_const().and_then(|n| u64::try_from(n).ok()) {
        Some(n) => Extent::Known(n),
        None => Extent::Symbolic(graph.ix_text(d)),
    };
    shape.iter().map(one).collect()
}

/// The inputs as people see them, in order.
pub fn ports(graph: &Graph) -> Vec<Port> {
    let port = |i: &Input| {
        let v = value(graph, i)?;
        Some(Port { name: v.name.clone(), elem: v.elem, shape: extents(graph, &v.shape), role: i.role })
    };
    graph.inputs.iter().filter_map(port).collect()
}

/// The outputs, likewise.
pub fn output_ports(graph: &Graph) -> Vec<Port> {
    let port = |o: &girih_compiler::graph::Output| {
        let v = graph.values.get(o.value)?;
        let role = girih_compiler::graph::Role::Argument;
        Some(Port { name: o.name.clone(), elem: v.elem, shape: extents(graph, &v.shape), role })
    };
    graph.outputs.iter().filter_map(port).collect()
}

/// The position of the input of that name.
pub fn position(graph: &Graph, name: &str) -> Result<usize> {
    let names = || graph.inputs.iter().filter_map(|i| value(graph, i)).map(|v| v.name.as_str());
    names().position(|n| n == name).ok_or_else(|| no_input(name, names()))
}

/// The refusal of a name that no input has.
pub fn no_input<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Error {
    refuse(format!("the model has no input `{name}`"), suggestion("inputs", name, names))
}

/// The refusal of a name that no extent has.
pub fn no_extent<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Error {
    refuse(format!("the model has no extent `{name}`"), suggestion("symbolic extents", name, names))
}

/// Checks the element type and the rank of the array given for the input at a position.
pub fn check(graph: &Graph, at: usize, elem: girih_compiler::graph::Elem, shape: &[u64]) -> Result<()> {
    let Some(v) = graph.inputs.get(at).and_then(|i| value(graph, i)) else {
        return Err(Error::Internal("the model does not have that input".into()));
    };
    let wanted = || {
        let all = ports(graph);
        all.get(at).map_or(String::new(), |p| format!("the model expects {p}"))
    };
    if elem != v.elem {
        return Err(refuse(format!("input `{}` is {elem}, not {}", v.name, v.elem), wanted()));
    }
    if shape.len() != v.shape.len() {
        let message = format!("input `{}` has rank {} (shape {shape:?}), not {}", v.name, shape.len(), v.shape.len());
        return Err(refuse(message, wanted()));
    }
    Ok(())
}

/// The values of symbols given by name, in the symbols' order.
pub fn named_symbols(graph: &Graph, named: &[(&str, i64)]) -> Result<Vec<Option<i64>>> {
    let mut known: Vec<Option<i64>> = vec![None; graph.symbols.len()];
    let names = || graph.symbols.values().map(|s| s.name.as_str());
    for (name, n) in named {
        let Some(slot) = names().position(|s| s == *name).and_then(|at| known.get_mut(at)) else {
            return Err(no_extent(name, names()));
        };
        *slot = Some(*n);
    }
    Ok(known)
}

/// The values of symbols known before all inputs are there: symbols given by name, and symbols that are an extent of a
/// given input.
pub fn known_symbols(graph: &Graph, named: &[(&str, i64)], shapes: &[Option<Vec<u64>>]) -> Result<Vec<Option<i64>>> {
    let mut known = named_symbols(graph, named)?;
    for (input, shape) in graph.inputs.iter().zip(shapes) {
        let (Some(v), Some(shape)) = (value(graph, input), shape) else { continue };
        for (d, &n) in v.shape.iter().zip(shape) {
            if let Ix::Val { val, .. } = d
                && let Some(slot @ None) = known.get_mut(val.0 as usize)
            {
                *slot = i64::try_from(n).ok();
            }
        }
    }
    Ok(known)
}

/// The shape of an input that nobody gave, if the symbols tell.
pub fn filled_shape(graph: &Graph, at: usize, known: &[Option<i64>]) -> Result<Vec<u64>> {
    let Some(v) = graph.inputs.get(at).and_then(|i| value(graph, i)) else { return Ok(vec![]) };
    let mut missing: Option<SymId> = None;
    for d in &v.shape {
        for val in d.vals() {
            if known.get(val.0 as usize).copied().flatten().is_none() {
                missing = missing.or(Some(SymId(val.0)));
            }
        }
    }
    if let Some(s) = missing {
        let symbol = graph.symbols.get(s).map_or("?", |s| &s.name);
        return Err(refuse(
            format!("the value of `{symbol}`, an extent of `{}`, is not known", v.name),
            format!("give it with `--arg {symbol}=N`, or give `{}`", v.name),
        ));
    }
    let all: Vec<i64> = known.iter().map(|k| k.unwrap_or(0)).collect();
    extent::shape(&v.shape, &all)
        .ok_or_else(|| refuse(format!("the shape of `{}` is out of range", v.name), "extents are at least 0"))
}

/// The data of an input that makes its own. Random data depends on the input's position and on the seed alone.
pub fn filled(graph: &Graph, at: usize, shape: &[u64], seed: u64) -> Result<Tensor> {
    let Some((input, v)) = graph.inputs.get(at).and_then(|i| Some((i, value(graph, i)?))) else {
        return Err(Error::Internal("the model does not have that input".into()));
    };
    if input.fill == Fill::Given {
        return Err(refuse(format!("input `{}` is not given", v.name), "give it by its name"));
    }
    let mut buffer = Buffer::zeroed(v.elem.dtype, shape)?;
    for i in 0..buffer.elements() {
        buffer.set(i, input_element(input.fill, v.elem, seed, at, i).unwrap_or_default());
    }
    Tensor::new(v.elem, buffer)
}
