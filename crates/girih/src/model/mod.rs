//! Models: read, compiled to kernels, and run.
//!
//! In: an ONNX file, a graph that PyTorch captured, a one-line expression, or a [`Graph`]; arrays by the names of its
//! inputs. Out: arrays by the names of its outputs, every stage as text, or a typed [`Error`].
//!
//! A model is compiled when it first runs, or by [`Model::compile`]; kernels are kept on disk. Its symbolic extents get
//! their values from the arrays of each run: what was compiled serves all of them.
//!
//! From the bottom up: `files` (mapped weights), `tensor` (arrays), `inputs` (what callers give, by name), `extent`,
//! `arena` and `binding` (what follows from the extents), `exec` (kernels and launches), `profile`.

mod arena;
mod binding;
mod exec;
mod extent;
mod files;
mod inputs;
mod profile;
mod reference;
mod stages;
mod tensor;
#[cfg(test)]
mod tests;
mod verify_each;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use girih_compiler::graph::bind::bind_symbols;
use girih_compiler::graph::{Elem, Fill, Graph, Role};
use girih_compiler::loops::model::Plan;
use girih_compiler::{pipeline, source};

use crate::compiled::Tools;
use crate::error::{Error, Result};
use crate::options::{Device, Options};
use crate::progress::{self, Compiling};
use crate::sync::{Brief, Built, Turned};
use binding::Binding;
use exec::{Call, Executable};
use files::Files;

pub use crate::limits::Limits;
pub use exec::{Footprint, Progress};
pub use profile::{Profile, StepProfile};
pub use reference::{Bound, Checked};
pub use tensor::{Extent, Port, RawTensor, Tensor};
pub use verify_each::Verified;

/// A model that was read, and what it was compiled to.
pub struct Model {
    /// As it was captured: Torch IR.
    graph: Graph,
    /// Given outright, by tests.
    plan: Option<Plan>,
    options: Options,
    tools: Tools,
    files: Files,
    progress: Option<Box<Progress>>,
    ready: Built<Arc<Executable>>,
    /// Parameters, and data of inputs that make their own, by input. They change in a turn of `runs`.
    given: Brief<Vec<Option<Given>>>,
    runs: Turned<Runs>,
    /// Of random inputs.
    seed: u64,
}

/// What inputs hold beyond a run, by position.
#[derive(Default)]
struct Runs {
    /// What was found out about the last runs on raw addresses.
    recent: Vec<Recent>,
    /// Of the run under way.
    addresses: Vec<u64>,
    outputs: Vec<u64>,
}

/// A binding, and the types of the arguments and the symbols given that it is for.
struct Recent {
    types: Vec<(Elem, Vec<u64>)>,
    symbols: Vec<Option<i64>>,
    binding: Arc<Binding>,
}

impl Recent {
    fn fits(&self, arguments: &[RawTensor<'_>], symbols: &[Option<i64>]) -> bool {
        let same = |((elem, shape), t): (&(Elem, Vec<u64>), &RawTensor<'_>)| *elem == t.elem && shape == t.shape;
        let arity = self.types.len() == arguments.len();
        arity && self.symbols == symbols && self.types.iter().zip(arguments).all(same)
    }
}

/// How many bindings are remembered with the types of their arguments.
const RECENT: usize = 8;

#[derive(Clone)]
enum Given {
    Owned(Arc<Tensor>),
    /// Kept alive by the caller.
    Raw {
        address: u64,
        shape: Vec<u64>,
    },
}

impl Given {
    fn raw(&self, elem: Elem) -> RawTensor<'_> {
        match self {
            Given::Owned(t) => t.raw(),
            Given::Raw { address, shape } => {
                RawTensor { elem, shape, data: std::ptr::with_exposed_provenance(*address as usize) }
            }
        }
    }
    fn address(&self) -> u64 {
        match self {
            Given::Owned(t) => t.buffer().as_ptr().expose_provenance() as u64,
            Given::Raw { address, .. } => *address,
        }
    }
    fn shape(&self) -> &[u64] {
        match self {
            Given::Owned(t) => t.shape(),
            Given::Raw { shape, .. } => shape,
        }
    }
}

/// What a model was compiled to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compilation {
    /// Launches of a run.
    pub steps: usize,
    /// Different kernels, those of loading among them.
    pub kernels: usize,
    /// Kernels that were found on disk.
    pub cached: usize,
    pub seconds: f64,
}

/// Where an output is to be written: the address for a given position, element type and shape.
pub type Allocate<'a> = dyn FnMut(usize, Elem, &[u64]) -> Result<*mut u8> + 'a;

impl Model {
    /// A model in a file, whose name says what it is: `.onnx`, or `.json` for a graph that PyTorch captured.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        match ending.as_str() {
            "json" => {
                let text =
                    std::fs::read_to_string(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
                Model::from_torch_json(&text)
            }
            _ => Model::from_onnx_file(path),
        }
    }

    /// An ONNX file. It and the files of its weights are mapped, not copied.
    pub fn from_onnx_file(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let mut files = Files::default();
        let bytes = files.open(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
        Model::from_onnx(&bytes, files, path.parent())
    }

    /// What an ONNX file holds; `folder` is where the files of its weights lie.
    pub fn from_onnx_bytes(bytes: Bytes, folder: Option<&Path>) -> Result<Model> {
        Model::from_onnx(&bytes, Files::default(), folder)
    }

    fn from_onnx(bytes: &Bytes, files: Files, folder: Option<&Path>) -> Result<Model> {
        let graph = source::onnx::import(bytes, &source::onnx::Options::default()).map_err(Error::Program)?;
        Model::new(graph, files, folder)
    }

    /// A graph that PyTorch captured, in the JSON form of `source::torch`.
    pub fn from_torch_json(json: &str) -> Result<Model> {
        let graph = source::torch::import(json).map_err(Error::Program)?;
        Model::new(graph, Files::default(), None)
    }

    /// A one-line model in PyTorch's words. Names that it does not define are inputs of the types given here.
    pub fn from_expression(text: &str, inputs: &[(String, Elem, Vec<u64>)]) -> Result<Model> {
        let given = |(name, elem, shape): &(String, Elem, Vec<u64>)| source::expr::Given {
            name: name.clone(),
            elem: *elem,
            shape: shape.iter().map(|d| Some(*d)).collect(),
        };
        let inputs: Vec<source::expr::Given> = inputs.iter().map(given).collect();
        let _compiling = Compiling::begin();
        progress::at("reading the expression");
        let evaluated = source::expr::evaluate(text, &inputs).map_err(Error::Program)?;
        Model::new(evaluated.graph, Files::default(), None)
    }

    /// A graph of the source's operations, of primitives, or of both.
    pub fn from_graph(graph: Graph) -> Result<Model> {
        Model::new(graph, Files::default(), None)
    }

    /// A graph of primitives with a plan for it, as tests write them.
    #[doc(hidden)]
    pub fn from_plan(graph: Graph, plan: Plan) -> Result<Model> {
        Ok(Model { plan: Some(plan), ..Model::from_graph(graph)? })
    }

    fn new(mut graph: Graph, mut files: Files, folder: Option<&Path>) -> Result<Model> {
        files.resolve(&mut graph, folder)?;
        let given = Brief::new(graph.inputs.iter().map(|_| None).collect());
        Ok(Model {
            graph,
            plan: None,
            options: Options::default(),
            tools: Tools::default(),
            files,
            progress: None,
            ready: Built::default(),
            given,
            runs: Turned::default(),
            seed: 0,
        })
    }

    /// The same model under other options.
    pub fn with_options(self, options: Options) -> Model {
        Model { options, tools: Tools::default(), ready: Built::default(), runs: Turned::default(), ..self }
    }
    /// The same model, telling how far its compilation is.
    pub fn with_progress(self, progress: impl Fn(usize, usize, &str) + Send + Sync + 'static) -> Model {
        Model { progress: Some(Box::new(progress)), ..self }
    }
    /// The same model with other random data for inputs that make their own.
    pub fn with_seed(self, seed: u64) -> Model {
        Model { seed, ..self }
    }

    pub fn name(&self) -> &str {
        &self.graph.name
    }
    pub fn options(&self) -> &Options {
        &self.options
    }
    /// The captured graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// What the model takes, parameters too, in order.
    pub fn inputs(&self) -> Vec<Port> {
        inputs::ports(&self.graph)
    }
    /// What it gives, in order.
    pub fn outputs(&self) -> Vec<Port> {
        inputs::output_ports(&self.graph)
    }
    /// Why the cache of compiled kernels is not the one asked for, once it has been needed.
    pub fn cache_warning(&self) -> Option<String> {
        self.tools.cache_warning()
    }

    /// Lowers and compiles the model, so that the first run finds it ready; says what that took. For the evaluator it
    /// only lowers, so that both devices refuse the same models.
    pub fn compile(&self) -> Result<Compilation> {
        if self.options.device == Device::Eval {
            let steps = self.lower(&mut pipeline::Silent)?.scheduled.steps.len();
            return Ok(Compilation { steps, kernels: 0, cached: 0, seconds: 0.0 });
        }
        let ready = self.executable()?;
        Ok(Compilation {
            steps: ready.plan.steps.len(),
            kernels: ready.kernel_count(),
            cached: ready.cached,
            seconds: ready.compile_seconds,
        })
    }

    fn executable(&self) -> Result<Arc<Executable>> {
        self.ready.get_or_make(|| {
            let _compiling = Compiling::begin();
            let pipeline::Model { tensor: graph, scheduled: plan, rewrites, .. } = self.lower(&mut pipeline::Silent)?;
            Executable::new(plan, graph, rewrites, &self.options, &self.tools, self.progress.as_deref()).map(Arc::new)
        })
    }

    /// Gives parameters (or changes them), by name. What depends on them alone is computed before the next run.
    pub fn bind_parameters(&self, parameters: Vec<(&str, Tensor)>) -> Result<()> {
        let mut fitting = vec![];
        for (name, tensor) in parameters {
            let at = self.parameter(name)?;
            inputs::check(&self.graph, at, tensor.elem(), tensor.shape())?;
            fitting.push((at, Given::Owned(Arc::new(tensor))));
        }
        self.hold(fitting)
    }

    /// The same by address, in the caller's memory.
    ///
    /// # Safety
    /// The memory must hold what the tensors say, and stay as it is until other parameters are given or the model ends.
    pub unsafe fn bind_parameters_raw(&self, parameters: &[(&str, RawTensor<'_>)]) -> Result<()> {
        let mut fitting = vec![];
        for (name, tensor) in parameters {
            let at = self.parameter(name)?;
            inputs::check(&self.graph, at, tensor.elem, tensor.shape)?;
            let address = tensor.data.expose_provenance() as u64;
            fitting.push((at, Given::Raw { address, shape: tensor.shape.to_vec() }));
        }
        self.hold(fitting)
    }

    fn parameter(&self, name: &str) -> Result<usize> {
        let at = inputs::position(&self.graph, name)?;
        match self.graph.inputs.get(at).map(|i| i.role) {
            Some(Role::Parameter) => Ok(at),
            _ => Err(inputs::refuse(
                format!("input `{name}` is not a parameter of the model"),
                "pass it at every run".to_string(),
            )),
        }
    }

    fn hold(&self, given: Vec<(usize, Given)>) -> Result<()> {
        // A run that reads those of before is over.
        let mut runs = self.runs.take()?;
        runs.recent.clear();
        let before: Vec<Option<Given>> = {
            let mut held = self.given.lock();
            given.into_iter().map(|(at, one)| held.get_mut(at).and_then(|slot| slot.replace(one))).collect()
        };
        drop(before);
        if let Some(ready) = self.ready.get() {
            ready.parameters_changed();
        }
        Ok(())
    }

    /// Runs the model on arrays by the names of its inputs, and waits for it.
    ///
    /// Inputs that make their own data need not be given; parameters may have been given before.
    ///
    /// # Errors
    /// `E0806` where the arrays do not fit the inputs; [`Error::Trap`] where an index lies outside its array.
    pub fn run(&self, arrays: &[(&str, &Tensor)]) -> Result<Vec<(String, Tensor)>> {
        self.run_at(arrays, &[])
    }

    /// The same with values for symbolic extents that no array tells.
    pub fn run_at(&self, arrays: &[(&str, &Tensor)], symbols: &[(&str, i64)]) -> Result<Vec<(String, Tensor)>> {
        let mut prepared = self.prepare(arrays, symbols)?;
        prepared.run()?;
        Ok(prepared.into_outputs())
    }

    /// Fits the arrays and compiles, so that [`Prepared::run`] only runs.
    pub fn prepare<'a>(&'a self, arrays: &[(&str, &'a Tensor)], symbols: &[(&str, i64)]) -> Result<Prepared<'a>> {
        Prepared::new(self, arrays, symbols)
    }

    /// Runs the model on addresses, made to be cheap when it is repeated. `arguments` are the inputs that are no
    /// parameters, in order; `symbols` are the values of symbols, in order, where the shapes of inputs do not tell them
    /// (an empty list: they all do); `allocate` is asked for each output in order.
    ///
    /// # Safety
    /// What the tensors say about memory must be true for as long as the run lasts; so must it be of the parameters that
    /// were given by address; the memory of outputs must be as large as asked for and overlap nothing.
    pub unsafe fn run_raw(
        &self,
        arguments: &[RawTensor<'_>],
        symbols: &[Option<i64>],
        allocate: &mut Allocate<'_>,
    ) -> Result<()> {
        if self.options.device == Device::Eval {
            // SAFETY: as the function's own contract says.
            return unsafe { self.evaluate_raw(arguments, symbols, allocate) };
        }
        let ready = self.executable()?;
        let held = &mut *self.runs.take()?;
        let at = match held.recent.iter().position(|r| r.fits(arguments, symbols)) {
            Some(at) => at,
            None => {
                let recent = self.fit(&ready, arguments, symbols)?;
                held.recent.truncate(RECENT - 1);
                held.recent.insert(0, recent);
                0
            }
        };
        let Some(Recent { binding, .. }) = held.recent.get(at) else {
            return Err(Error::Internal("a binding vanished".into()));
        };
        held.addresses.clear();
        let mut next = arguments.iter();
        for (input, given) in self.graph.inputs.iter().zip(&*self.given.lock()) {
            held.addresses.push(match (input.role, given) {
                (Role::Argument, _) => next.next().map_or(0, |t| t.data.expose_provenance() as u64),
                (Role::Parameter, given) => given.as_ref().map_or(0, Given::address),
            });
        }
        held.outputs.clear();
        for (k, output) in binding.outputs.iter().enumerate() {
            held.outputs.push(allocate(k, output.elem, &output.shape)?.expose_provenance() as u64);
        }
        let call = Call { binding, inputs: &held.addresses, outputs: &held.outputs };
        // SAFETY: the shapes were checked against the graph's; the rest is the contract's.
        unsafe { ready.run(&call, &self.files, None) }
    }

    /// As `run_raw` on the evaluator, through copies.
    ///
    /// # Safety
    /// As of `run_raw`.
    unsafe fn evaluate_raw(
        &self,
        arguments: &[RawTensor<'_>],
        symbols: &[Option<i64>],
        allocate: &mut Allocate<'_>,
    ) -> Result<()> {
        let names: Vec<&str> = (0..self.graph.inputs.len())
            .filter(|&at| self.graph.inputs.get(at).is_some_and(|i| i.role == Role::Argument))
            .map(|at| inputs::name(&self.graph, at))
            .collect();
        let mut copies = vec![];
        for t in arguments {
            let mut copy = Tensor::zeroed(t.elem, t.shape)?;
            let to = copy.buffer_mut().bytes_mut();
            // SAFETY: the tensor is as long as its type and shape say; the copy is memory of its own.
            unsafe { std::ptr::copy_nonoverlapping(t.data, to.as_mut_ptr(), to.len()) };
            copies.push(copy);
        }
        let arrays: Vec<(&str, &Tensor)> = names.into_iter().zip(&copies).collect();
        let named = self.graph.symbols.values().zip(symbols);
        let named: Vec<(&str, i64)> = named.filter_map(|(s, value)| Some((s.name.as_str(), (*value)?))).collect();
        let outputs = self.run_at(&arrays, &named)?;
        for (k, (_, tensor)) in outputs.iter().enumerate() {
            let to = allocate(k, tensor.elem(), tensor.shape())?;
            let from = tensor.buffer().bytes();
            // SAFETY: the caller's memory is as long as it was asked to be, and its own.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        }
        Ok(())
    }

    /// The binding for arguments on raw addresses.
    fn fit(&self, ready: &Executable, arguments: &[RawTensor<'_>], symbols: &[Option<i64>]) -> Result<Recent> {
        let mut shapes = vec![];
        let mut next = arguments.iter();
        let held = self.given.lock().clone();
        for (at, (input, given)) in self.graph.inputs.iter().zip(&held).enumerate() {
            shapes.push(match (input.role, given) {
                (Role::Argument, _) => {
                    let Some(t) = next.next() else { return Err(self.missing(at)) };
                    inputs::check(&self.graph, at, t.elem, t.shape)?;
                    t.shape.to_vec()
                }
                (Role::Parameter, Some(given)) => given.shape().to_vec(),
                (Role::Parameter, None) => return Err(self.missing(at)),
            });
        }
        if next.next().is_some() {
            let want = self.graph.inputs.iter().filter(|i| i.role == Role::Argument).count();
            let message = format!("the model takes {want} arguments, but {} are given", arguments.len());
            return Err(inputs::refuse(message, "parameters are given with bind_parameters".to_string()));
        }
        let types = arguments.iter().map(|t| (t.elem, t.shape.to_vec())).collect();
        let binding = ready.binding(&self.symbols(&shapes, symbols)?)?;
        Ok(Recent { types, symbols: symbols.to_vec(), binding })
    }

    fn missing(&self, at: usize) -> Error {
        inputs::missing(&self.graph, &[at], "give it by its name")
    }

    /// One tensor for every input: those given, parameters given before, and data that inputs make.
    fn complete<'t>(&self, arrays: &[(&str, &'t Tensor)], symbols: &[(&str, i64)]) -> Result<Vec<Complete<'t>>> {
        let mut found: Vec<Option<&'t Tensor>> = vec![None; self.graph.inputs.len()];
        for (name, tensor) in arrays {
            let at = inputs::position(&self.graph, name)?;
            inputs::check(&self.graph, at, tensor.elem(), tensor.shape())?;
            if let Some(slot) = found.get_mut(at)
                && slot.replace(tensor).is_some()
            {
                return Err(inputs::refuse(format!("input `{name}` is given twice"), "give it once".to_string()));
            }
        }
        let mut held = self.given.lock().clone();
        let shapes: Vec<Option<Vec<u64>>> = found
            .iter()
            .zip(&held)
            .map(|(f, h)| f.map(|t| t.shape().to_vec()).or_else(|| h.as_ref().map(|h| h.shape().to_vec())))
            .collect();
        let known = inputs::known_symbols(&self.graph, symbols, &shapes)?;
        let absent = |at: &usize| {
            let fill = self.graph.inputs.get(*at).map(|i| i.fill);
            fill == Some(Fill::Given) && matches!(shapes.get(*at), Some(None))
        };
        let absent: Vec<usize> = (0..self.graph.inputs.len()).filter(absent).collect();
        if !absent.is_empty() {
            return Err(inputs::missing(&self.graph, &absent, inputs::arguments_for(&self.graph, &absent, &known)));
        }
        let mut complete = vec![];
        for (at, given) in found.into_iter().enumerate() {
            let parameter = self.graph.inputs.get(at).is_some_and(|i| i.role == Role::Parameter);
            if let Some(tensor) = given {
                complete.push(Complete::Given(tensor));
                continue;
            }
            if held.get(at).is_none_or(|g| g.is_none()) {
                let shape = inputs::filled_shape(&self.graph, at, &known)?;
                let tensor = inputs::filled(&self.graph, at, &shape, self.seed)?;
                if !parameter {
                    complete.push(Complete::Made(tensor));
                    continue;
                }
                let made = Given::Owned(Arc::new(tensor));
                if let (Some(slot), Some(kept)) = (held.get_mut(at), self.given.lock().get_mut(at)) {
                    *slot = Some(kept.get_or_insert(made).clone());
                }
            }
            if let Some(Some(g)) = held.get(at) {
                let elem = self.graph.inputs.get(at).and_then(|i| inputs::value(&self.graph, i)).map(|v| v.elem);
                let elem = elem.ok_or_else(|| Error::Internal("an input is not a value".into()))?;
                complete.push(Complete::Held(elem, g.clone()));
            }
        }
        Ok(complete)
    }

    /// The values of the symbols for inputs of these shapes, and where some are given.
    fn symbols(&self, shapes: &[Vec<u64>], given: &[Option<i64>]) -> Result<Vec<i64>> {
        bind_symbols(&self.graph, shapes, given).map_err(|d| Error::Program(vec![d]))
    }

    /// What the model holds in memory; zeros before it is compiled.
    pub fn footprint(&self) -> Footprint {
        self.ready.get().map_or(Footprint::default(), |r| r.footprint())
    }
}

/// What an input holds in a run.
enum Complete<'t> {
    Given(&'t Tensor),
    Made(Tensor),
    Held(Elem, Given),
}

impl Complete<'_> {
    fn raw(&self) -> RawTensor<'_> {
        match self {
            Complete::Given(t) => t.raw(),
            Complete::Made(t) => t.raw(),
            Complete::Held(elem, given) => given.raw(*elem),
        }
    }
}

/// A run made ready. The arrays stay borrowed.
pub struct Prepared<'a> {
    model: &'a Model,
    inputs: Vec<Complete<'a>>,
    symbols: Vec<i64>,
    outputs: Vec<Tensor>,
    /// `None` on the evaluator.
    native: Option<Native>,
}

struct Native {
    ready: Arc<Executable>,
    binding: Arc<Binding>,
    inputs: Vec<u64>,
    outputs: Vec<u64>,
}

impl<'a> Prepared<'a> {
    fn new(model: &'a Model, arrays: &[(&str, &'a Tensor)], symbols: &[(&str, i64)]) -> Result<Prepared<'a>> {
        let inputs = model.complete(arrays, symbols)?;
        let shapes: Vec<Vec<u64>> = inputs.iter().map(|c| c.raw().shape.to_vec()).collect();
        let symbols = model.symbols(&shapes, &inputs::named_symbols(&model.graph, symbols)?)?;
        if model.options.device == Device::Eval {
            return Ok(Prepared { model, inputs, symbols, outputs: vec![], native: None });
        }
        let ready = model.executable()?;
        let binding = ready.binding(&symbols)?;
        let outputs =
            binding.outputs.iter().map(|o| Tensor::zeroed(o.elem, &o.shape)).collect::<Result<Vec<Tensor>>>()?;
        let native = Native {
            ready,
            binding,
            inputs: inputs.iter().map(|c| c.raw().data.expose_provenance() as u64).collect(),
            outputs: outputs.iter().map(|t| t.buffer().as_ptr().expose_provenance() as u64).collect(),
        };
        Ok(Prepared { model, inputs, symbols, outputs, native: Some(native) })
    }

    /// Runs the model and waits for it.
    pub fn run(&mut self) -> Result<()> {
        self.run_timed(None)
    }

    fn run_timed(&mut self, times: Option<&mut exec::Times>) -> Result<()> {
        let Some(native) = &self.native else {
            self.outputs = self.evaluate(false)?.into_iter().map(|(_, t)| t).collect();
            return Ok(());
        };
        let call = Call { binding: &native.binding, inputs: &native.inputs, outputs: &native.outputs };
        // SAFETY: the tensors live as long as this value and were checked against the graph; outputs have memory of
        // their own.
        unsafe { native.ready.run(&call, &self.model.files, times) }
    }

    /// What the last run gave.
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }

    /// What the last run gave, by name, in the model's order.
    pub fn into_outputs(self) -> Vec<(String, Tensor)> {
        let names = self.model.graph.outputs.iter().map(|o| o.name.clone());
        names.zip(self.outputs).collect()
    }
}
