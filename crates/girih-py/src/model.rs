//! `girih._girih.Model` and `OnnxModel`: models, compiled and run on memory that Python owns.
//!
//! In: the JSON of `girih_compiler::source::torch`, an expression or an ONNX file, and addresses with shapes. Out: results,
//! written to addresses that the caller gives. The interpreter's lock is released while a model compiles and runs.

use std::path::PathBuf;
use std::sync::Arc;

use girih::cuda::device as cuda;
use girih::model::{
    Extent, MOST_KNOWN, Model as Native, OnnxModel as NativeOnnx, Owner, Parameters, Port, RawTensor, Tensor,
};
use girih::{Device, Error, Inspect, Options};
use girih_compiler::graph::{Elem, Graph, Role, decompose};
use girih_compiler::pipeline::trace::Trace;
use girih_compiler::source::onnx::Kind;
use girih_compiler::source::torch::{self, Failure};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::{host, tools};

/// The names of the ATen operations that have a decomposition, as `aten.linear`.
#[pyfunction]
pub fn torch_operations() -> Vec<&'static str> {
    let handles = decompose::all().flat_map(|rule| rule.handles.iter());
    handles.copied().filter(|name| name.starts_with("aten.")).collect()
}

/// The nodes of a graph of PyTorch (the JSON of `girih_compiler::source::torch`) that are refused, by position, and why.
/// A document that is malformed is a ValueError: a bug of its writer.
#[pyfunction]
pub fn torch_refusals(py: Python<'_>, json: &str) -> PyResult<Vec<(usize, String)>> {
    match py.detach(|| torch::examine(json)) {
        Ok(_) => Ok(vec![]),
        Err(Failure::Nodes(refused)) => Ok(refused.into_iter().map(|r| (r.node, r.reason)).collect()),
        Err(Failure::Document(problem)) => Err(PyValueError::new_err(problem.message)),
    }
}

/// A model and its compiled form.
#[pyclass(frozen, module = "girih._girih")]
pub struct Model {
    pub model: Arc<Native>,
    /// The element types of the inputs that are given at every run, in order.
    pub arguments: Vec<Elem>,
}

/// The environment's options, then those given.
fn options(given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::from_env().map_err(PyValueError::new_err)?;
    for (key, value) in given.into_iter().flatten() {
        match key.extract::<String>()?.as_str() {
            "device" => options.device = value.extract::<String>()?.parse::<Device>().map_err(PyValueError::new_err)?,
            "check" => options.check = value.extract()?,
            "threads" => {
                let text = value.str()?;
                let threads = girih::options::threads(&text.to_string_lossy());
                options.threads = Some(threads.map_err(|e| PyValueError::new_err(format!("threads: {e}")))?);
            }
            "knobs" => options.knobs = value.extract()?,
            "max_memory" => {
                options.max_memory = Some(match value.extract::<u64>() {
                    Ok(bytes) => bytes,
                    Err(_) => girih::options::bytes(&value.extract::<String>()?).map_err(PyValueError::new_err)?,
                });
            }
            "verify" => options.unverified = !value.extract::<bool>()?,
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
pub fn takes(elem: Elem, shape: &[u64]) -> Option<u64> {
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
        let mut graph = graph;
        if options.device != Device::Cpu {
            // Runs elsewhere are of copies, which the caller's memory takes over afterwards.
            graph.replaced.clear();
        }
        let model = Native::from_graph(graph).map_err(|e| raised(py, e))?.with_options(options);
        Ok(Model::of(Arc::new(model)))
    }

    fn of(model: Arc<Native>) -> Model {
        let graph = model.graph();
        let arguments = graph.inputs.iter().filter(|i| i.role == Role::Argument);
        let arguments = arguments.filter_map(|i| graph.values.get(i.value)).map(|v| v.elem).collect();
        Model { model, arguments }
    }

    /// Parameters as the model takes them.
    fn bindings(&self, parameters: Listed) -> PyResult<Vec<Binding>> {
        let inputs = if parameters.is_empty() { vec![] } else { self.model.inputs() };
        let elem = |name: &str| inputs.iter().find(|port| port.name == name).map(|port| port.elem);
        let one = |(name, address, shape, watched): (String, u64, Vec<u64>, bool)| {
            let elem =
                elem(&name).ok_or_else(|| PyValueError::new_err(format!("the model has no parameter {name:?}")))?;
            Ok(Binding { name, elem, address, shape, watched })
        };
        parameters.into_iter().map(one).collect()
    }

    /// Copies of arrays by name, address and shape; names of no input are left out.
    fn copies<'a>(&self, arrays: &'a [(String, u64, Vec<u64>)]) -> girih::Result<Vec<(&'a str, Tensor)>> {
        let ports = self.model.inputs();
        let mut tensors = vec![];
        for (name, address, shape) in arrays {
            let Some(port) = ports.iter().find(|p| p.name == *name) else { continue };
            // SAFETY: the caller holds arrays of these types and shapes (`girih.model`).
            tensors.push((name.as_str(), unsafe { copy(self.model.options(), port.elem, *address, shape) }?));
        }
        Ok(tensors)
    }

    fn types(&self, shapes: Vec<Vec<u64>>) -> Vec<(Elem, Vec<u64>)> {
        self.arguments.iter().copied().zip(shapes).collect()
    }
}

/// The element type of a name, `u8` and `bool` among them.
fn elem(name: &str) -> PyResult<Elem> {
    Elem::from_name(name).ok_or_else(|| PyValueError::new_err(format!("unknown element type {name:?}")))
}

/// An array of the caller's: its element type, address and shape.
type Array = (String, u64, Vec<u64>);

/// An argument of a run: its element type, address and shape.
pub type Input<'a> = (Elem, u64, &'a [u64]);

/// A run on addresses.
pub struct Addressed<'a> {
    /// In the order of the model's arguments.
    pub inputs: &'a [Input<'a>],
    pub parameters: Chosen<'a>,
    pub symbols: &'a [Option<i64>],
    /// For each output an address and how many bytes may be written there.
    pub outputs: &'a [(u64, u64)],
    /// A GPU's stream, on which the run takes its place.
    pub stream: Option<u64>,
    /// True if all addresses are known to be the GPU's.
    pub on_device: bool,
}

impl Addressed<'_> {
    /// Runs a model without Python's lock; false as of [`Native::run_raw`].
    ///
    /// # Safety
    /// The addresses are of arrays of these types and shapes, and stay so until the run is over.
    pub unsafe fn run(&self, py: Python<'_>, model: &Native) -> PyResult<bool> {
        let run = || {
            let mut tensors = Vec::with_capacity(self.inputs.len());
            for (at, &(elem, address, shape)) in self.inputs.iter().enumerate() {
                if address == 0 && !shape.contains(&0) {
                    return Err(Error::Internal(format!("argument {at} has elements, but no memory")));
                }
                tensors.push(RawTensor { elem, shape, data: std::ptr::with_exposed_provenance(address as usize) });
            }
            let mut allocate = |at: usize, elem: Elem, shape: &[u64]| match self.outputs.get(at) {
                Some((address, bytes)) if takes(elem, shape).is_some_and(|n| n <= *bytes) => {
                    Ok(std::ptr::with_exposed_provenance_mut(*address as usize))
                }
                _ => Err(Error::Internal(format!(
                    "output {at} is {elem} {shape:?}, but its memory does not have that size"
                ))),
            };
            let bound: Vec<_> = match self.parameters {
                Chosen::Given(_, list, _) => list.iter().map(Binding::raw).collect(),
                _ => vec![],
            };
            let parameters = match self.parameters {
                Chosen::Held => Parameters::Held,
                Chosen::Numbered(number) => Parameters::Numbered(number),
                Chosen::Given(number, _, owner) => Parameters::Given(number, &bound, owner),
            };
            // SAFETY: as the contract says; the sizes of outputs are checked above.
            unsafe {
                match self.stream {
                    None => model.run_raw(&tensors, &parameters, self.symbols, &mut allocate),
                    stream => {
                        model.run_raw_on(&tensors, &parameters, self.symbols, stream, self.on_device, &mut allocate)
                    }
                }
            }
        };
        let make = |e| match e {
            Error::Internal(message) => PyRuntimeError::new_err(message),
            other => raised(py, other),
        };
        host::run(py, make, run)
    }
}

/// Parameters by name, address and shape, and whether somebody may write to each between runs.
type Listed = Vec<(String, u64, Vec<u64>, bool)>;

/// A parameter as the model takes it.
pub struct Binding {
    name: String,
    elem: Elem,
    address: u64,
    shape: Vec<u64>,
    watched: bool,
}

impl Binding {
    fn raw(&self) -> (&str, RawTensor<'_>, bool) {
        let data = std::ptr::with_exposed_provenance(self.address as usize);
        (&self.name, RawTensor { elem: self.elem, shape: &self.shape, data }, self.watched)
    }
}

/// The parameters of a run, as `girih::model::Parameters`.
pub enum Chosen<'a> {
    Held,
    Numbered(u64),
    Given(u64, &'a [Binding], &'a Owner),
}

/// Data that an input makes: its name, element type, shape and bytes.
type Made<'py> = (String, String, Vec<u64>, Bound<'py, PyBytes>);

/// A copy of an array, which may be on the device of a model for a GPU.
///
/// # Safety
/// The memory holds as many elements.
unsafe fn copy(options: &Options, elem: Elem, address: u64, shape: &[u64]) -> girih::Result<Tensor> {
    let mut copy = Tensor::zeroed(elem, shape)?;
    let to = copy.buffer_mut().bytes_mut();
    if options.device == Device::Cuda {
        let gpu = cuda::Device::get()?;
        if gpu.has(address) {
            cuda::to_host(gpu, to, address)?;
            return Ok(copy);
        }
    }
    let from = std::ptr::with_exposed_provenance(address as usize);
    // SAFETY: as the function's contract says; the copy is memory of its own.
    unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
    Ok(copy)
}

/// A copy of an array, if it is short.
///
/// # Safety
/// As of `copy`.
unsafe fn short(options: &Options, (name, address, shape): &Array) -> girih::Result<Option<Tensor>> {
    let few = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).is_some_and(|n| n <= MOST_KNOWN);
    match Elem::from_name(name).filter(|_| few) {
        // SAFETY: as the contract says.
        Some(elem) => unsafe { copy(options, elem, *address, shape) }.map(Some),
        None => Ok(None),
    }
}

/// The median of a run in seconds; of each step the kernel, the operations, seconds, multiplications and additions, bytes
/// and the fraction of the limit; the bytes of weights, of the arrays computed from them, and of temporary arrays.
type Profiled = (f64, Vec<(String, Vec<String>, f64, f64, f64, f64)>, (u64, u64, u64));

/// An ONNX file, which gives a model for the arrays that come.
#[pyclass(frozen, module = "girih._girih")]
pub struct OnnxModel {
    model: NativeOnnx,
}

impl OnnxModel {
    fn new(
        py: Python<'_>,
        open: girih::Result<NativeOnnx>,
        dims: Vec<(String, i64)>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<OnnxModel> {
        let dims: Vec<(&str, i64)> = dims.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let options = options(given)?;
        let model = open.and_then(|model| model.with_options(options).with_dims(&dims));
        Ok(OnnxModel { model: model.map_err(|e| raised(py, e))? })
    }
}

#[pymethods]
impl OnnxModel {
    /// A file, with extents of named dimensions fixed beforehand.
    #[staticmethod]
    #[pyo3(signature = (path, dims, **options))]
    fn from_file(
        py: Python<'_>,
        path: PathBuf,
        dims: Vec<(String, i64)>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<OnnxModel> {
        let open = py.detach(|| NativeOnnx::from_file(path));
        OnnxModel::new(py, open, dims, options)
    }

    /// A model from the bytes of an ONNX file.
    #[staticmethod]
    #[pyo3(signature = (data, dims, **options))]
    fn from_bytes(
        py: Python<'_>,
        data: Vec<u8>,
        dims: Vec<(String, i64)>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<OnnxModel> {
        let open = py.detach(|| NativeOnnx::from_bytes(data.into(), None));
        OnnxModel::new(py, open, dims, options)
    }

    /// Where it runs: `cpu`, `eval`, `sim` or `cuda`.
    #[getter]
    fn device(&self) -> String {
        self.model.options().device.to_string()
    }

    /// The inputs as the file declares them: (name, element type, extents, False).
    fn inputs(&self, py: Python<'_>) -> PyResult<Vec<Description>> {
        described(py, self.model.inputs())
    }

    /// Inputs that a run may leave out, likewise.
    fn defaults(&self, py: Python<'_>) -> PyResult<Vec<Description>> {
        described(py, self.model.defaults())
    }

    /// The inputs and outputs that are not tensors, each as `seq`, `optional` or `optional(seq`.
    fn kinds(&self) -> Vec<(String, &'static str)> {
        let word = |kind: Kind| match kind {
            Kind::Tensor => "",
            Kind::Sequence => "seq",
            Kind::Optional => "optional",
            Kind::OptionalSequence => "optional(seq",
        };
        self.model.kinds().map(|(name, kind)| (name.to_string(), word(kind))).collect()
    }

    /// The outputs, likewise; the type is `unknown` where neither the file nor its nodes say it.
    fn outputs(&self, py: Python<'_>) -> PyResult<Vec<Description>> {
        let mut known = described(py, self.model.outputs())?.into_iter().peekable();
        let unknown = |name: &str| {
            let any = "...".into_pyobject(py)?.into_any().unbind();
            Ok((name.to_string(), "unknown".to_string(), vec![any], false))
        };
        let one = |name: &str| known.next_if(|port| port.0 == name).map_or_else(|| unknown(name), Ok);
        self.model.output_names().map(one).collect()
    }

    /// The strings that elements of tensors of strings are places of.
    fn strings(&self) -> Vec<String> {
        self.model.strings().to_vec()
    }

    /// The model for arrays by name, which shapes it is for (None: it takes all), and whether it is for the elements of some
    /// arrays too.
    fn fitting(&self, py: Python<'_>, arrays: Vec<(String, Array)>) -> PyResult<(Model, Option<String>, bool)> {
        let find = || {
            let shapes: Vec<(&str, &[u64])> =
                arrays.iter().map(|(n, (_, _, shape))| (n.as_str(), &shape[..])).collect();
            let mut short = vec![];
            for (name, array) in &arrays {
                // SAFETY: the caller holds arrays of these types and shapes (`girih.model`).
                let copy = unsafe { self::short(self.model.options(), array) }?;
                short.extend(copy.map(|copy| (name.as_str(), copy)));
            }
            let short: Vec<(&str, &Tensor)> = short.iter().map(|(name, t)| (*name, t)).collect();
            self.model.fitting_shapes(&shapes, &short)
        };
        let fitting = host::run(py, |e| raised(py, e), find)?;
        let known = fitting.limits.as_ref().is_some_and(|limits| limits.known);
        Ok((Model::of(fitting.model), fitting.limits.map(|limits| limits.to_string()), known))
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

    /// A one-line model; `inputs` are the names that it does not define, with their element types and shapes.
    #[staticmethod]
    #[pyo3(signature = (text, inputs, **options))]
    fn from_expression(
        py: Python<'_>,
        text: &str,
        inputs: Vec<(String, String, Vec<u64>)>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Model> {
        let typed = |(name, dtype, shape): (String, String, Vec<u64>)| Ok((name, elem(&dtype)?, shape));
        let inputs = inputs.into_iter().map(typed).collect::<PyResult<Vec<_>>>()?;
        let options = self::options(options)?;
        let model = py.detach(|| Native::from_expression(text, &inputs));
        let model = model.map_err(|e| tools::raised(py, text.as_bytes(), "<expression>", e))?;
        Ok(Model::of(Arc::new(model.with_options(options))))
    }

    /// Where it runs: `cpu`, `eval`, `sim` or `cuda`.
    #[getter]
    fn device(&self) -> String {
        self.model.options().device.to_string()
    }

    /// A model that `save` wrote, compiled; and why it had to be compiled anew, if it had to.
    #[staticmethod]
    #[pyo3(signature = (path, **options))]
    fn load(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<(Model, Option<String>)> {
        let options = self::options(options)?;
        let load = || {
            let model = Native::load(path, options)?;
            model.compile()?;
            Ok(model)
        };
        let model = host::run(py, |e| raised(py, e), load)?;
        let why = model.recompiled();
        Ok((Model::of(Arc::new(model)), why))
    }

    /// Writes the model as it is compiled.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        host::run(py, |e| raised(py, e), || self.model.save(path))
    }

    /// The strings that elements of tensors of strings are places of.
    fn strings(&self) -> Vec<String> {
        self.model.graph().strings.clone()
    }

    /// True if it refuses some extents that are long enough for their symbols.
    #[getter]
    fn guarded(&self) -> bool {
        self.model.graph().is_guarded()
    }

    /// The name of the graph.
    fn name(&self) -> &str {
        self.model.name()
    }

    /// The data of the inputs that make their own: (name, element type, shape, bytes).
    fn made<'py>(&self, py: Python<'py>) -> PyResult<Vec<Made<'py>>> {
        let made = self.model.made().map_err(|e| raised(py, e))?;
        let one = |(name, t): (String, Tensor)| {
            (name, t.elem().to_string(), t.shape().to_vec(), PyBytes::new(py, t.buffer().bytes()))
        };
        Ok(made.into_iter().map(one).collect())
    }

    /// The element types and the shapes of the outputs for arguments of these shapes.
    fn results(&self, py: Python<'_>, shapes: Vec<Vec<u64>>, symbols: Vec<i64>) -> PyResult<Vec<(String, Vec<u64>)>> {
        let symbols: Vec<Option<i64>> = symbols.into_iter().map(Some).collect();
        let all = self.model.results(&self.types(shapes), &symbols).map_err(|e| raised(py, e))?;
        Ok(all.into_iter().map(|(elem, shape)| (elem.to_string(), shape)).collect())
    }

    /// Compiles the model, so that its first run only runs. Gives the number of launches, of kernels, of those found on
    /// disk, and the seconds it took.
    fn compile(&self, py: Python<'_>) -> PyResult<(usize, usize, usize, f64)> {
        let done = host::run(py, |e| raised(py, e), || self.model.compile())?;
        Ok((done.steps, done.kernels, done.cached, done.seconds))
    }

    /// The positions of the outputs that runs on a processor write into the memory of arguments that they replace.
    fn replaced(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        host::run(py, |e| raised(py, e), || self.model.replaced())
    }

    /// The inputs: (name, element type, extents, whether it is a parameter).
    fn inputs(&self, py: Python<'_>) -> PyResult<Vec<Description>> {
        described(py, self.model.inputs())
    }

    /// The outputs, likewise.
    fn outputs(&self, py: Python<'_>) -> PyResult<Vec<Description>> {
        described(py, self.model.outputs())
    }

    /// Gives parameters as (name, address, shape, whether somebody may write to it between runs). The memory must stay until others
    /// are given in its place.
    fn bind_addresses(&self, py: Python<'_>, parameters: Listed) -> PyResult<()> {
        let bound = self.bindings(parameters)?;
        // SAFETY: the caller keeps the tensors of these addresses, row-major and of these shapes, as long as they are
        // bound (`girih.torch._compiled`).
        let bind = || unsafe { self.model.bind_parameters_raw(&bound.iter().map(Binding::raw).collect::<Vec<_>>()) };
        py.detach(bind).map_err(|e| raised(py, e))
    }

    /// A digest of memory, given by address and number of bytes, to know whether somebody wrote to it; the caller holds it, and
    /// nobody writes to it meanwhile.
    fn digest(&self, py: Python<'_>, address: u64, bytes: usize) -> u128 {
        let threads = self.model.options().thread_count() as usize;
        // SAFETY: as the caller says (`girih.torch._compiled`).
        py.detach(|| unsafe { girih::model::digest::of(&[(address, bytes)], threads) }).number()
    }

    /// Runs the model: the addresses and shapes of its arguments in order, the values of its symbols in order, and for
    /// each output an address and how many bytes may be written there. On a GPU's stream it takes its place there; `on_device`
    /// where all of these addresses are known to be the GPU's. `parameters` are a number that is not 0 and that no others have, a list as
    /// `bind_addresses` takes it, and the object that keeps their memory: the model holds it until it takes others.
    #[pyo3(signature = (addresses, shapes, symbols, outputs, stream = None, on_device = false, parameters = None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn run_addresses(
        &self,
        py: Python<'_>,
        addresses: Vec<u64>,
        shapes: Vec<Vec<u64>>,
        symbols: Vec<i64>,
        outputs: Vec<(u64, u64)>,
        stream: Option<u64>,
        on_device: bool,
        parameters: Option<(u64, Listed, Py<PyAny>)>,
    ) -> PyResult<()> {
        if addresses.len() != self.arguments.len() || shapes.len() != self.arguments.len() {
            let want = self.arguments.len();
            return Err(PyValueError::new_err(format!("the model takes {want} arguments, not {}", addresses.len())));
        }
        let symbols: Vec<Option<i64>> = symbols.into_iter().map(Some).collect();
        let inputs = self.arguments.iter().zip(addresses).zip(shapes.iter().map(Vec::as_slice));
        let inputs: Vec<Input<'_>> = inputs.map(|((elem, address), shape)| (*elem, address, shape)).collect();
        let (number, listed, owner) = parameters.map_or((0, vec![], None), |(n, list, owner)| (n, list, Some(owner)));
        let bound = self.bindings(listed)?;
        let owner = owner.map(|owner| Arc::new(owner) as Owner);
        let parameters = owner.as_ref().map_or(Chosen::Held, |owner| Chosen::Given(number, &bound, owner));
        let call = Addressed { inputs: &inputs, parameters, symbols: &symbols, outputs: &outputs, stream, on_device };
        // SAFETY: the caller holds the tensors of these addresses until this returns, those of a stream until it is done, and the
        // owner those of parameters.
        unsafe { call.run(py, &self.model) }.map(|_| ())
    }

    /// Where the time of runs on these arguments goes: the medians of a run and of each step (kernel, operations, seconds,
    /// multiplications and additions, bytes, fraction of the machine's limit), and the bytes of weights, of the arrays
    /// computed from them and of temporary arrays.
    fn profile(&self, py: Python<'_>, arguments: Vec<(String, u64, Vec<u64>)>) -> PyResult<Profiled> {
        let run = || {
            let tensors = self.copies(&arguments)?;
            let arrays: Vec<(&str, &Tensor)> = tensors.iter().map(|(name, t)| (*name, t)).collect();
            self.model.prepare(&arrays, &[])?.profile()
        };
        let profile = host::run(py, |e| raised(py, e), run)?;
        let step = |s: &girih::model::StepProfile| {
            (s.kernel.clone(), s.operations.clone(), s.seconds, s.flops, s.bytes, profile.fraction(s))
        };
        let steps = profile.steps.iter().map(step).collect();
        let memory = profile.memory.map(|m| m.held).unwrap_or_default();
        Ok((profile.seconds, steps, (memory.weights as u64, memory.loaded as u64, memory.arena as u64)))
    }

    /// The estimated time of each launch of a run on these arguments, and on these parameters, on the model's GPU: kernel, seconds, the
    /// part that takes longest, and the counted work as JSON. `blocks` blocks of each grid are simulated.
    fn estimate(
        &self,
        py: Python<'_>,
        arguments: Vec<(String, u64, Vec<u64>)>,
        blocks: u64,
    ) -> PyResult<Vec<(String, f64, &'static str, String)>> {
        let run = || {
            let tensors = self.copies(&arguments)?;
            let arrays: Vec<(&str, &Tensor)> = tensors.iter().map(|(name, t)| (*name, t)).collect();
            self.model.estimate(&arrays, blocks)
        };
        let all = host::run(py, |e| raised(py, e), run)?;
        Ok(all
            .into_iter()
            .map(|(name, e)| (name, e.seconds(), e.bound(), girih::work::json(&e.work).to_string()))
            .collect())
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

    /// The page of the compilation, with this title.
    fn page(&self, py: Python<'_>, title: &str) -> PyResult<String> {
        let explained = py.detach(|| self.model.explain_with_assembly()).map_err(|e| raised(py, e))?;
        Ok(girih_page::explain::page(title, &explained, None))
    }

    /// Bytes held: by the arena, by weights as given, by weights as loaded, ...; as a line of text.
    fn footprint(&self) -> String {
        format!("{:?}", self.model.footprint())
    }
}
