//! Models: read, compiled to kernels, and run.
//!
//! In: an ONNX file, a graph that PyTorch captured, a one-line expression, or a [`Graph`]; arrays by the names of its
//! inputs. Out: arrays by the names of its outputs, every stage as text, or a typed [`Error`].
//!
//! A model is compiled when it first runs, or by [`Model::compile`]; kernels are kept on disk. Its symbolic extents get
//! their values from the arrays of each run: what was compiled serves all of them.
//!
//! From the bottom up: `digest` (whether memory was written to), `files` (mapped weights), `tensor` (arrays), `inputs` (what callers give, by name), `extent`,
//! `arena` and `binding` (what follows from the extents), `kernels` (compiled once each), `exec` (launches), `given` (what
//! inputs hold), `parts` (what [`crate::build`] takes), `saved` (compiled models in files), `prepared` and `raw` (runs by name and on addresses), `profile`; above them `onnx` (a file that may need a model for each
//! set of shapes).

mod arena;
mod binding;
mod cuda;
#[doc(hidden)]
pub mod digest;
mod decode;
mod exec;
pub(crate) mod extent;
mod files;
mod input_values;
mod inputs;
mod kernels;
mod load_order;
mod onnx;
pub(crate) mod plan_export;
mod prepared;
mod profile;
mod run_pointers;
mod reference;
mod saved;
mod simulate;
mod stages;
mod strings;
pub(crate) mod tensor;
#[cfg(test)]
mod tests;
mod verify_each;
mod weights;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use girih_compiler::graph::bind::bind_symbols;
use girih_compiler::graph::{Elem, Graph};
use girih_compiler::loops::model::Plan;
use girih_compiler::{pipeline, source};

use crate::compile::progress::{self, Working};
use crate::compile::version::Tools;
use crate::error::{Error, Result};
use crate::options::{Device, Options};
use crate::system::sync::{Brief, Built, Turned};
use crate::tune;
use exec::Executable;
use files::Files;
use input_values::Held;
use run_pointers::Runs;

pub use crate::launch::bandwidth::{self, Bandwidth};
pub use crate::launch::limits::Limits;
pub use crate::launch::profile::{Footprint, Memory, Profile, StepProfile};
pub(crate) use exec::step_text;
pub use kernels::Progress;
pub use onnx::{Fitting, MOST_KNOWN, OnnxModel};
pub use prepared::Prepared;
pub use run_pointers::{Allocate, Owner, Parameters};
pub use strings::Strings;
pub use tensor::{Extent, Port, RawTensor, Tensor};
pub use verify_each::Verified;
pub use weights::{Format, Weight, Weights};

/// A model that was read, and its compiled form.
pub struct Model {
    /// As it was captured: Torch IR.
    graph: Graph,
    /// Given outright, by tests.
    plan: Option<Plan>,
    options: Options,
    tools: Tools,
    files: Files,
    /// The file that it was loaded from, compiled.
    saved: Option<Arc<saved::Saved>>,
    progress: Option<Box<Progress>>,
    ready: Built<Arc<Executable>>,
    resident: Built<Arc<cuda::Resident>>,
    /// They change in a turn of `runs`.
    given: Brief<Held>,
    runs: Turned<Runs>,
    /// The seed of random inputs.
    seed: u64,
}

/// The outcome of a compilation.
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

impl Model {
    /// A model in a file, whose name says what it is: `.onnx`, or `.json` for a graph that PyTorch captured.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        match ending.as_str() {
            "json" => {
                let text =
                    std::fs::read_to_string(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
                Model::from_torch_json_within(&text, path.parent())
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

    /// A model from the bytes of an ONNX file; `folder` is where the files of its weights lie.
    pub fn from_onnx_bytes(bytes: Bytes, folder: Option<&Path>) -> Result<Model> {
        Model::from_onnx(&bytes, Files::default(), folder)
    }

    fn from_onnx(bytes: &Bytes, files: Files, folder: Option<&Path>) -> Result<Model> {
        let graph = source::onnx::import(bytes, &source::onnx::Options::default()).map_err(Error::Program)?;
        Model::new(graph, files, folder)
    }

    /// A graph that PyTorch captured, in the JSON form of `source::torch`.
    pub fn from_torch_json(json: &str) -> Result<Model> {
        Model::from_torch_json_within(json, None)
    }

    /// The same, for a graph whose weights lie in files of a folder, or of folders in it. They are mapped, not copied.
    pub fn from_torch_json_within(json: &str, folder: Option<&Path>) -> Result<Model> {
        let graph = source::torch::import(json).map_err(Error::Program)?;
        Model::new(graph, Files::default(), folder)
    }

    /// A one-line model in PyTorch's words. Names that it does not define are inputs of the types given here.
    pub fn from_expression(text: &str, inputs: &[(String, Elem, Vec<u64>)]) -> Result<Model> {
        let given = |(name, elem, shape): &(String, Elem, Vec<u64>)| source::expr::Given {
            name: name.clone(),
            elem: *elem,
            shape: shape.iter().map(|d| Some(*d)).collect(),
        };
        let inputs: Vec<source::expr::Given> = inputs.iter().map(given).collect();
        let _working = Working::compiling();
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
        Ok(Model::of(graph, files))
    }

    /// A model whose constants were found in the files.
    fn of(graph: Graph, files: Files) -> Model {
        let given = Brief::new(Held::none(graph.inputs.len()));
        Model {
            graph,
            plan: None,
            options: Options::default(),
            tools: Tools::default(),
            files,
            saved: None,
            progress: None,
            ready: Built::default(),
            resident: Built::default(),
            given,
            runs: Turned::default(),
            seed: 0,
        }
    }

    /// The same model under other options.
    pub fn with_options(self, options: Options) -> Model {
        let options = tune::applied(options, || self.tuning_key());
        Model {
            options,
            tools: Tools::default(),
            ready: Built::default(),
            resident: Built::default(),
            runs: Turned::default(),
            ..self
        }
    }
    /// The same model under other options, beside this one. It shares the mapped weights, and is compiled anew.
    pub fn beside(&self, options: Options) -> Model {
        let (plan, saved) = (self.plan.clone(), self.saved.clone());
        let other = Model { plan, saved, seed: self.seed, ..Model::of(self.graph.clone(), self.files.clone()) };
        other.with_options(options)
    }
    /// The model's name among the records of schedules.
    #[doc(hidden)]
    pub fn tuning_key(&self) -> String {
        tune::key("model", &stages::text(&self.graph), "")
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
    /// The model's inputs, parameters too, in order.
    pub fn inputs(&self) -> Vec<Port> {
        inputs::ports(&self.graph)
    }
    /// The model's outputs, in order.
    pub fn outputs(&self) -> Vec<Port> {
        inputs::output_ports(&self.graph)
    }
    /// Why the cache of compiled kernels is not the one asked for, once it has been needed.
    pub fn cache_warning(&self) -> Option<String> {
        self.tools.cache_warning()
    }

    /// Lowers and compiles the model, so that the first run finds it ready; returns a summary. For the evaluator and the
    /// simulator it only lowers, so that all refuse the same models.
    pub fn compile(&self) -> Result<Compilation> {
        if self.options.device == Device::Cuda {
            let start = Instant::now();
            let (steps, kernels) = self.resident()?.count();
            return Ok(Compilation { steps, kernels, cached: 0, seconds: start.elapsed().as_secs_f64() });
        }
        if self.options.device != Device::Cpu {
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
            let _working = Working::compiling();
            let pipeline::Model { tensor: graph, scheduled: plan, rewrites, .. } = self.lower(&mut pipeline::Silent)?;
            let (progress, saved) = (self.progress.as_deref(), self.saved.as_deref());
            Executable::new(plan, graph, rewrites, &self.options, &self.tools, progress, saved).map(Arc::new)
        })
    }

    /// The values of the symbols for inputs of these shapes, and where some are given.
    fn symbols(&self, shapes: &[Vec<u64>], given: &[Option<i64>]) -> Result<Vec<i64>> {
        bind_symbols(&self.graph, shapes, given).map_err(|d| Error::Program(vec![d]))
    }

    /// The element types and shapes of the outputs for arguments of these shapes (the inputs that are not parameters,
    /// in order), where symbols are given as [`Model::run_raw`] takes them.
    ///
    /// # Errors
    /// `E0806` where the shapes do not fit.
    pub fn results(&self, arguments: &[(Elem, Vec<u64>)], symbols: &[Option<i64>]) -> Result<Vec<(Elem, Vec<u64>)>> {
        self.output_types(&self.symbols(&self.shapes(arguments)?, symbols)?)
    }

    /// The element types and shapes of the outputs where the symbols have these values.
    fn output_types(&self, symbols: &[i64]) -> Result<Vec<(Elem, Vec<u64>)>> {
        let of = |output: &girih_compiler::graph::Output| {
            let value = self.graph.values.get(output.value)?;
            Some((value.elem, extent::shape(&value.shape, symbols)?))
        };
        let all = self.graph.outputs.iter().map(of).collect::<Option<Vec<_>>>();
        all.ok_or_else(|| Error::argument("the shapes of the outputs are out of range".to_string()))
    }

    /// The memory that the model holds; zeros before it is compiled.
    pub fn footprint(&self) -> Footprint {
        self.ready.get().map_or(Footprint::default(), |r| r.footprint())
    }
}
