//! `girih._girih.Model`: a graph of PyTorch, compiled and run on memory that Python owns.
//!
//! In: the JSON of `girih_compiler::source::torch`, and addresses with shapes. Out: results, written to addresses that
//! the caller gives. The interpreter's lock is released while a model compiles and runs.

use girih::model::{Extent, Model as Native, Port, RawTensor};
use girih::{Device, Error, Options};
use girih_compiler::graph::{Elem, Graph, Role, decompose};
use girih_compiler::pipeline::trace::Trace;
use girih_compiler::source::torch::{self, Failure};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{host, tools};

/// The names of the ATen operations that have a decomposition, as `aten.linear`.
#[pyfunction]
pub fn torch_operations() -> Vec<&'static str> {
    let handles = decompose::RULES.iter().flat_map(|rules| rules.iter()).flat_map(|rule| rule.handles.iter());
    handles.copied().filter(|name| name.starts_with("aten.")).collect()
}

/// The nodes of a graph of PyTorch (the JSON of `girih_compiler::source::torch`) that are refused, by position, and why.
/// A document that is malformed is a ValueError: a bug of whoever wrote it.
#[pyfunction]
pub fn torch_refusals(py: Python<'_>, json: &str) -> PyResult<Vec<(usize, String)>> {
    match py.detach(|| torch::examine(json)) {
        Ok(_) => Ok(vec![]),
        Err(Failure::Nodes(refused)) => Ok(refused.into_iter().map(|r| (r.node, r.reason)).collect()),
        Err(Failure::Document(problem)) => Err(PyValueError::new_err(problem.message)),
    }
}

/// A model and what it was compiled to.
#[pyclass(frozen, module = "girih._girih")]
pub struct Model {
    model: Native,
    /// The element types of the inputs that are given at every run, in order.
    arguments: Vec<Elem>,
}

/// The environment's options, then those given.
fn options(given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::from_env().map_err(PyValueError::new_err)?;
    for (key, value) in given.into_iter().flatten() {
        match key.extract::<String>()?.as_str() {
            "device" => options.device = value.extract::<String>()?.parse::<Device>().map_err(PyValueError::new_err)?,
            "check" => options.check = value.extract()?,
            "threads" => options.threads = Some(value.extract()?),
            "knobs" => options.knobs = value.extract()?,
            "cache" => {
                if !value.extract::<bool>()? {
                    options.cache = girih::CachePolicy::Off;
                }
            }
            other => return Err(PyValueError::new_err(format!("unknown option {other:?}"))),
        }
    }
    Ok(options)
}

fn raised(py: Python<'_>, error: Error) -> PyErr {
    tools::raised(py, b"", "<model>", error)
}

/// How many bytes an array takes.
fn takes(elem: Elem, shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(elem.dtype.bytes(), |n, &d| n.checked_mul(d))
}

/// Name, element type, extents (numbers, and expressions as text), and whether it is given once.
type Description = (String, String, Vec<Py<PyAny>>, bool);

fn described(py: Python<'_>, ports: Vec<Port>) -> PyResult<Vec<Description>> {
    let one = |port: Port| {
        let extents = port.shape.into_iter().map(|extent| match extent {
            Extent::Known(n) => Ok(n.into_pyobject(py)?.into_any().unbind()),
            Extent::Symbolic(text) => Ok(text.into_pyobject(py)?.into_any().unbind()),
        });
        let extents = extents.collect::<PyResult<Vec<_>>>()?;
        Ok((port.name, port.elem.to_string(), extents, port.role == Role::Parameter))
    };
    ports.into_iter().map(one).collect()
}

impl Model {
    fn new(py: Python<'_>, graph: Graph, given: Option<&Bound<'_, PyDict>>) -> PyResult<Model> {
        let options = options(given)?;
        let arguments = graph.inputs.iter().filter(|i| i.role == Role::Argument);
        let arguments = arguments.filter_map(|i| graph.values.get(i.value)).map(|v| v.elem).collect();
        let model = Native::from_graph(graph).map_err(|e| raised(py, e))?.with_options(options);
        Ok(Model { model, arguments })
    }
}

#[pymethods]
impl Model {
    /// A graph of PyTorch. A `girih.ProgramError` lists everything that is not supported.
    #[staticmethod]
    #[pyo3(signature = (json, **options))]
    fn from_torch_json(py: Python<'_>, json: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Model> {
        let graph = py.detach(|| torch::import(json)).map_err(|all| raised(py, Error::Program(all)))?;
        Model::new(py, graph, options)
    }

    /// Compiles the model, so that its first run only runs. Gives the number of launches, of kernels, of those found on
    /// disk, and the seconds it took.
    fn compile(&self, py: Python<'_>) -> PyResult<(usize, usize, usize, f64)> {
        let done = host::run(py, |e| raised(py, e), || self.model.compile())?;
        Ok((done.steps, done.kernels, done.cached, done.seconds))
    }

    /// The inputs: (name, element type, extents, whether it is a parameter).
    fn inputs(&self, py: Python<'_>) -> PyResult<Vec<Description>> {
        described(py, self.model.inputs())
    }

    /// The outputs, likewise.
    fn outputs(&self, py: Python<'_>) -> PyResult<Vec<Description>> {
        described(py, self.model.outputs())
    }

    /// Gives parameters as (name, address, shape). The memory must stay until others are given in its place.
    fn bind_addresses(&self, py: Python<'_>, parameters: Vec<(String, u64, Vec<u64>)>) -> PyResult<()> {
        let inputs = self.model.inputs();
        let elem = |name: &str| inputs.iter().find(|port| port.name == name).map(|port| port.elem);
        let mut tensors = vec![];
        for (name, address, shape) in &parameters {
            let Some(elem) = elem(name) else {
                return Err(PyValueError::new_err(format!("the model has no parameter {name:?}")));
            };
            let data = std::ptr::with_exposed_provenance(*address as usize);
            tensors.push((name.as_str(), RawTensor { elem, shape, data }));
        }
        // SAFETY: the caller keeps the tensors of these addresses, row-major and of these shapes, as long as they are
        // bound (`girih.torch._compiled`).
        unsafe { self.model.bind_parameters_raw(&tensors) }.map_err(|e| raised(py, e))
    }

    /// Runs the model: the addresses and shapes of its arguments in order, the values of its symbols in order, and for
    /// each output an address and how many bytes may be written there.
    fn run_addresses(
        &self,
        py: Python<'_>,
        addresses: Vec<u64>,
        shapes: Vec<Vec<u64>>,
        symbols: Vec<i64>,
        outputs: Vec<(u64, u64)>,
    ) -> PyResult<()> {
        if addresses.len() != self.arguments.len() || shapes.len() != self.arguments.len() {
            let want = self.arguments.len();
            return Err(PyValueError::new_err(format!("the model takes {want} arguments, not {}", addresses.len())));
        }
        let symbols: Vec<Option<i64>> = symbols.into_iter().map(Some).collect();
        let run = || {
            let one = |((elem, address), shape): ((&Elem, &u64), _)| {
                let data = std::ptr::with_exposed_provenance(*address as usize);
                RawTensor { elem: *elem, shape, data }
            };
            let given = self.arguments.iter().zip(&addresses).zip(shapes.iter().map(Vec::as_slice));
            let tensors: Vec<RawTensor<'_>> = given.map(one).collect();
            let mut allocate = |at: usize, elem: Elem, shape: &[u64]| match outputs.get(at) {
                Some((address, bytes)) if takes(elem, shape).is_some_and(|n| n <= *bytes) => {
                    Ok(std::ptr::with_exposed_provenance_mut(*address as usize))
                }
                _ => Err(Error::Internal(format!(
                    "output {at} is {elem} {shape:?}, but its memory does not have that size"
                ))),
            };
            // SAFETY: the caller holds the tensors of these addresses until this returns; outputs are checked above.
            unsafe { self.model.run_raw(&tensors, &symbols, &mut allocate) }
        };
        let make = |e| match e {
            Error::Internal(message) => PyRuntimeError::new_err(message),
            other => raised(py, other),
        };
        host::run(py, make, run)
    }

    /// The model's text at a stage.
    fn ir(&self, py: Python<'_>, stage_name: &str) -> PyResult<String> {
        let Some(stage) = girih::Stage::from_name(stage_name) else {
            return Err(PyValueError::new_err(format!("unknown stage {stage_name:?}")));
        };
        py.detach(|| self.model.ir(stage)).map_err(|e| raised(py, e))
    }

    /// Every rule that was applied; with `full`, as diffs, and every refusal with its reason.
    fn explain(&self, py: Python<'_>, full: bool) -> PyResult<String> {
        let mut trace = Trace::new(full);
        py.detach(|| self.model.observe(&mut trace)).map_err(|e| raised(py, e))?;
        Ok(trace.text)
    }

    /// Bytes held: by the arena, by weights as given, by weights as loaded, ...; as a line of text.
    fn footprint(&self) -> String {
        format!("{:?}", self.model.footprint())
    }
}
