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
mod tensor;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use girih_compiler::graph::{Graph, Role};
use girih_compiler::loops::model::Plan;
use girih_compiler::pipeline;

use crate::compiled::{FAST, Tools};
use crate::error::{Error, Result};
use crate::options::Options;
use exec::{Call, Executable};
use files::Files;

pub use exec::{Footprint, Progress};
pub use tensor::{Extent, Port, RawTensor, Tensor};

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
    ready: Mutex<Option<Arc<Executable>>>,
    held: Mutex<Held>,
    /// Of random inputs.
    seed: u64,
}

/// What inputs hold beyond a run, by position.
#[derive(Default)]
struct Held {
    given: Vec<Option<Given>>,
}

enum Given {
    Owned(Tensor),
    /// Kept alive by the caller.
    Raw {
        address: u64,
        shape: Vec<u64>,
    },
}

impl Given {
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
pub type Allocate<'a> = dyn FnMut(usize, girih_compiler::graph::Elem, &[u64]) -> Result<*mut u8> + 'a;

impl Model {
    /// A graph of the source's operations, of primitives, or of both.
    pub fn from_graph(graph: Graph) -> Result<Model> {
        Model::new(graph, Files::default(), None)
    }

    /// A graph of primitives with a plan for it, as tests write them.
    #[doc(hidden)]
    pub fn from_plan(graph: Graph, plan: Plan) -> Result<Model> {
        Ok(Model { plan: Some(plan), ..Model::from_graph(graph)? })
    }

    fn new(mut graph: Graph, mut files: Files, folder: Option<&std::path::Path>) -> Result<Model> {
        files.resolve(&mut graph, folder)?;
        let held = Held { given: graph.inputs.iter().map(|_| None).collect() };
        Ok(Model {
            graph,
            plan: None,
            options: Options::default(),
            tools: Tools::default(),
            files,
            progress: None,
            ready: Mutex::default(),
            held: Mutex::new(held),
            seed: 0,
        })
    }

    /// The same model under other options.
    pub fn with_options(self, options: Options) -> Model {
        Model { options, tools: Tools::default(), ready: Mutex::default(), ..self }
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

    /// Lowers and compiles the model, so that the first run finds it ready; says what that took.
    pub fn compile(&self) -> Result<Compilation> {
        let ready = self.executable()?;
        Ok(Compilation {
            steps: ready.plan.steps.len(),
            kernels: ready.kernel_count(),
            cached: ready.cached,
            seconds: ready.compile_seconds,
        })
    }

    fn executable(&self) -> Result<Arc<Executable>> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = &*ready {
            return Ok(ready.clone());
        }
        let (graph, plan) = match &self.plan {
            Some(plan) => (self.graph.clone(), plan.clone()),
            None => {
                let options = self.options.pipeline(FAST)?;
                let lowered = pipeline::lower_model(&self.graph, &options, true, &mut pipeline::Silent);
                let pipeline::Model { tensor, plan } = lowered.map_err(Error::Program)?;
                (tensor, plan)
            }
        };
        let built = Executable::new(plan, graph, &self.options, &self.tools, self.progress.as_deref())?;
        Ok(ready.insert(Arc::new(built)).clone())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives parameters (or changes them), by name. What depends on them alone is computed before the next run.
    pub fn bind_parameters(&self, parameters: Vec<(&str, Tensor)>) -> Result<()> {
        let mut fitting = vec![];
        for (name, tensor) in parameters {
            let at = self.parameter(name)?;
            inputs::check(&self.graph, at, tensor.elem(), tensor.shape())?;
            fitting.push((at, Given::Owned(tensor)));
        }
        self.hold(fitting);
        Ok(())
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
        self.hold(fitting);
        Ok(())
    }

    fn parameter(&self, name: &str) -> Result<usize> {
        let at = inputs::position(&self.graph, name)?;
        match self.graph.inputs.get(at).map(|i| i.role) {
            Some(Role::Parameter) => Ok(at),
            _ => Err(inputs::refuse(
                format!("input `{name}` is no parameter of the model"),
                "give it at every run".to_string(),
            )),
        }
    }

    fn hold(&self, given: Vec<(usize, Given)>) {
        let mut held = self.held();
        for (at, one) in given {
            if let Some(slot) = held.given.get_mut(at) {
                *slot = Some(one);
            }
        }
        drop(held);
        if let Some(ready) = &*self.ready.lock().unwrap_or_else(PoisonError::into_inner) {
            ready.parameters_changed();
        }
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
        let mut held = self.held();
        let given = self.complete(&mut held, arrays, symbols)?;
        let mut outputs: Vec<Tensor> = vec![];
        let mut allocate = |_: usize, elem, shape: &[u64]| {
            let tensor = Tensor::zeroed(elem, shape)?;
            let address = tensor.buffer().as_ptr();
            outputs.push(tensor);
            Ok(address)
        };
        let raw: Vec<RawTensor<'_>> = given.iter().map(|g| g.raw()).collect();
        // SAFETY: the tensors live until the run has ended (nobody else changes what is held), and outputs have memory of their own.
        unsafe { self.run_all(&raw, &mut allocate, None) }?;
        let names = self.graph.outputs.iter().map(|o| o.name.clone());
        Ok(names.zip(outputs).collect())
    }

    /// Runs the model on addresses, made to be cheap when it is repeated. `arguments` are the inputs that are no
    /// parameters, in order; `allocate` is asked for each output in order.
    ///
    /// # Safety
    /// What the tensors say about memory must be true for as long as the run lasts; so must it be of the parameters that
    /// were given by address; and the memory of outputs must be as large as asked for.
    pub unsafe fn run_raw(&self, arguments: &[RawTensor<'_>], allocate: &mut Allocate<'_>) -> Result<()> {
        let held = self.held();
        let mut all = Vec::with_capacity(self.graph.inputs.len());
        let mut next = arguments.iter();
        for (at, input) in self.graph.inputs.iter().enumerate() {
            let one = match (input.role, held.given.get(at).and_then(|g| g.as_ref())) {
                (Role::Argument, _) => next.next().copied(),
                (Role::Parameter, Some(given)) => Some(RawTensor {
                    elem: self.graph.values.get(input.value).map_or(girih_compiler::graph::Elem::F32, |v| v.elem),
                    shape: given.shape(),
                    data: std::ptr::with_exposed_provenance(given.address() as usize),
                }),
                (Role::Parameter, None) => None,
            };
            match one {
                Some(one) => all.push(one),
                None => return Err(self.missing(at)),
            }
        }
        if next.next().is_some() {
            let want = self.graph.inputs.iter().filter(|i| i.role == Role::Argument).count();
            let message = format!("the model takes {want} arguments, and {} are given", arguments.len());
            return Err(inputs::refuse(message, "parameters are given with bind_parameters".to_string()));
        }
        // SAFETY: as the function's own contract says.
        unsafe { self.run_all(&all, allocate, None) }
    }

    fn missing(&self, at: usize) -> Error {
        let ports = self.inputs();
        let port = ports.get(at).map_or(String::new(), Port::to_string);
        let name = inputs::name(&self.graph, at);
        inputs::refuse(
            format!("input `{name}` is not given: the model wants {port}"),
            "give it by its name".to_string(),
        )
    }

    /// One tensor for every input: those given, parameters given before, and data that inputs make.
    fn complete<'t>(
        &self,
        held: &mut Held,
        arrays: &'t [(&str, &Tensor)],
        symbols: &[(&str, i64)],
    ) -> Result<Vec<Complete<'t>>> {
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
        let shapes: Vec<Option<Vec<u64>>> = found
            .iter()
            .zip(&held.given)
            .map(|(f, h)| f.map(|t| t.shape().to_vec()).or_else(|| h.as_ref().map(|h| h.shape().to_vec())))
            .collect();
        let known = inputs::known_symbols(&self.graph, symbols, &shapes)?;
        let mut complete = vec![];
        for (at, given) in found.into_iter().enumerate() {
            let elem = self.graph.inputs.get(at).and_then(|i| inputs::value(&self.graph, i)).map(|v| v.elem);
            let elem = elem.ok_or_else(|| Error::Internal("an input is no value".into()))?;
            let parameter = self.graph.inputs.get(at).is_some_and(|i| i.role == Role::Parameter);
            if let Some(tensor) = given {
                complete.push(Complete::Given(tensor));
                continue;
            }
            if held.given.get(at).is_none_or(|g| g.is_none()) {
                let shape = inputs::filled_shape(&self.graph, at, &known)?;
                let tensor = inputs::filled(&self.graph, at, &shape, self.seed)?;
                if !parameter {
                    complete.push(Complete::Made(tensor));
                    continue;
                }
                if let Some(slot) = held.given.get_mut(at) {
                    *slot = Some(Given::Owned(tensor));
                }
            }
            if let Some(Some(g)) = held.given.get(at) {
                complete.push(Complete::Held { elem, address: g.address(), shape: g.shape().to_vec() });
            }
        }
        Ok(complete)
    }

    /// # Safety
    /// As of [`Model::run_raw`]; one tensor for each input.
    unsafe fn run_all(
        &self,
        tensors: &[RawTensor<'_>],
        allocate: &mut Allocate<'_>,
        times: Option<&mut exec::Times>,
    ) -> Result<()> {
        for (at, t) in tensors.iter().enumerate() {
            inputs::check(&self.graph, at, t.elem, t.shape)?;
        }
        let shapes: Vec<Vec<u64>> = tensors.iter().map(|t| t.shape.to_vec()).collect();
        let known =
            inputs::known_symbols(&self.graph, &[], &shapes.iter().map(|s| Some(s.clone())).collect::<Vec<_>>())?;
        let symbols: Vec<i64> = known.into_iter().map(|k| k.unwrap_or(0)).collect();
        let ready = self.executable()?;
        let binding = ready.binding(&symbols)?;
        let addresses: Vec<u64> = tensors.iter().map(|t| t.data.expose_provenance() as u64).collect();
        let mut outputs = Vec::with_capacity(binding.outputs.len());
        for (k, output) in binding.outputs.iter().enumerate() {
            outputs.push(allocate(k, output.elem, &output.shape)?.expose_provenance() as u64);
        }
        let call = Call { binding: &binding, inputs: &addresses, outputs: &outputs };
        // SAFETY: the shapes were checked against the graph's; the rest is the contract's.
        unsafe { ready.run(&call, &self.files, times) }
    }

    /// What the model holds in memory; zeros before it is compiled.
    pub fn footprint(&self) -> Footprint {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ready.map_or(Footprint::default(), |r| r.footprint())
    }
}

enum Complete<'t> {
    Given(&'t Tensor),
    Made(Tensor),
    Held { elem: girih_compiler::graph::Elem, address: u64, shape: Vec<u64> },
}

impl Complete<'_> {
    fn raw(&self) -> RawTensor<'_> {
        match self {
            Complete::Given(t) => t.raw(),
            Complete::Made(t) => t.raw(),
            Complete::Held { elem, address, shape } => {
                RawTensor { elem: *elem, shape, data: std::ptr::with_exposed_provenance(*address as usize) }
            }
        }
    }
}
