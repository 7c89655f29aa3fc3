//! ONNX files whose structure may depend on the shapes that come.
//!
//! In: a file, and arrays. Out: a model for them. It takes all shapes where the file can be compiled so. Where it cannot, it
//! is compiled under assumptions about its extents that hold for these arrays and many others; where none help, for
//! these shapes alone, and where those do not suffice, for the elements of short inputs too (a `Reshape` to a shape that is
//! an input). The last few models are kept, and a run whose shapes none of them takes gets one more.
//!
//! ```text
//! x: f32[n], y: f32[m], x + y     for [5] and [5]: m = n. For [1] and [5]: n = 1
//! x: f32[n], reshape(x, [-1, 16]) for [48]: n is a multiple of 16
//! x: f32[n], shape: i64[2], reshape(x, shape)     for these shapes and this value of `shape` alone
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::bind::bind_symbols;
use girih_compiler::graph::ir::MAX_EXTENT;
use girih_compiler::graph::{ConstData, Constant, Graph, Input, Role};
use girih_compiler::source::onnx::{self, Declared, Dimension, Kind, Ports};

pub use girih_compiler::source::onnx::MOST_KNOWN;

use super::files::Files;
use super::tensor::{Extent, Port, Tensor};
use super::{Model, inputs};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::system::sync::{Brief, Built};

/// How many models for some shapes are kept.
const KEPT: usize = 16;

/// An ONNX file, compiled for all shapes where that can be, and else for those that come and shapes like them.
pub struct OnnxModel {
    bytes: Bytes,
    folder: Option<PathBuf>,
    /// The file's own mapping.
    files: Files,
    options: Options,
    /// Extents fixed beforehand, by name.
    dims: BTreeMap<String, i64>,
    inputs: Vec<Declared>,
    /// Inputs that an initializer has a value for.
    defaults: Vec<Declared>,
    outputs: Vec<Declared>,
    strings: Vec<String>,
    general: Built<General>,
    /// The one that was used last comes first.
    special: Brief<Vec<Special>>,
}

/// The model for all shapes, or why there is none.
type General = std::result::Result<Arc<Model>, Arc<Vec<Diagnostic>>>;

/// A model for some shapes.
struct Special {
    model: Arc<Model>,
    takes: Takes,
    /// The inputs that it takes although the file has a value for them.
    given: BTreeSet<String>,
}

/// The shapes that a specialised model takes.
enum Takes {
    /// All shapes that satisfy these assumptions.
    Like(Vec<String>),
    /// These alone; the inputs that became constants are known.
    These { shapes: BTreeMap<String, Vec<u64>>, known: Vec<Constant> },
}

impl Special {
    fn fits(&self, of: &Call, short: &[(&str, &Tensor)]) -> bool {
        let same = |c: &Constant| match (&c.data, short.iter().find(|(n, _)| *n == c.name)) {
            (ConstData::Bytes(bytes), Some((_, t))) => bytes[..] == *t.buffer().bytes(),
            _ => false,
        };
        self.given == of.given
            && match &self.takes {
                Takes::Like(_) => binds(self.model.graph(), &of.shapes),
                Takes::These { shapes, known } => *shapes == of.shapes && known.iter().all(same),
            }
    }

    /// Returns true if the model assumes nothing of the shapes.
    fn is_wide(&self) -> bool {
        matches!(&self.takes, Takes::Like(assumed) if assumed.is_empty())
    }

    fn fitting(&self, why: &Arc<Vec<Diagnostic>>) -> Fitting {
        if self.is_wide() {
            return Fitting { model: self.model.clone(), limits: None };
        }
        let (assumed, known) = match &self.takes {
            Takes::Like(assumed) => (assumed.clone(), false),
            Takes::These { known, .. } => (vec![], !known.is_empty()),
        };
        Fitting { model: self.model.clone(), limits: Some(Limits { why: why.clone(), assumed, known }) }
    }
}

/// The shapes of a run's arguments by name, the names of the arguments that a run may leave out, and the tensors that they
/// are, as the file declares them.
struct Call {
    shapes: BTreeMap<String, Vec<u64>>,
    given: BTreeSet<String>,
    inputs: Vec<Declared>,
    /// The number of tensors given for each input that is a sequence or an optional value.
    lists: BTreeMap<String, usize>,
}

/// The values of the symbols for inputs of these shapes; `None` where one is missing.
fn bound(graph: &Graph, given: &BTreeMap<String, Vec<u64>>) -> Option<std::result::Result<Vec<i64>, Diagnostic>> {
    let name = |at: &Input| graph.values.get(at.value).map(|v| v.name.as_str());
    let shapes = graph.inputs.iter().map(|input| given.get(name(input)?).cloned());
    Some(bind_symbols(graph, &shapes.collect::<Option<Vec<_>>>()?, &[]))
}

/// Returns true if inputs may have these shapes.
fn binds(graph: &Graph, given: &BTreeMap<String, Vec<u64>>) -> bool {
    bound(graph, given).is_some_and(|values| values.is_ok())
}

/// A model that fits the given arrays.
pub struct Fitting {
    pub model: Arc<Model>,
    /// The shapes that it takes; `None` where it takes all.
    pub limits: Option<Limits>,
}

/// The shapes that a model takes.
pub struct Limits {
    /// Why it does not take all shapes.
    pub why: Arc<Vec<Diagnostic>>,
    /// The assumptions about extents, in words; empty where the model takes only the shapes of this call.
    pub assumed: Vec<String>,
    /// True if the model also depends on the elements of some inputs, which have become constants of it.
    pub known: bool,
}

impl std::fmt::Display for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.assumed[..] {
            [] => f.write_str("compiled for these shapes alone")?,
            assumed => write!(f, "compiled for shapes where {}", assumed.join(" and "))?,
        }
        self.why.first().map_or(Ok(()), |d| write!(f, ": {}", d.message))
    }
}

impl Fitting {
    /// The arrays that the model takes; the others have become constants of it, or say that a sequence has no tensors.
    pub fn arrays<'a, 't>(&self, arrays: &[(&'a str, &'t Tensor)]) -> Vec<(&'a str, &'t Tensor)> {
        let takes = |name: &str| {
            self.limits.is_none() && !name.ends_with("[]") || inputs::position(self.model.graph(), name).is_ok()
        };
        arrays.iter().filter(|(name, _)| takes(name)).copied().collect()
    }
}

impl OnnxModel {
    /// A file. It and the files of its weights are mapped, not copied.
    ///
    /// # Errors
    /// A file that cannot be read or is not an ONNX model. Unsupported operations are reported when the model is first
    /// compiled.
    pub fn from_file(path: impl AsRef<Path>) -> Result<OnnxModel> {
        let path = path.as_ref();
        let mut files = Files::default();
        let bytes = files.open(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
        OnnxModel::new(bytes, files, path.parent())
    }

    /// A model from the bytes of a file; `folder` is where the files of its weights lie.
    pub fn from_bytes(bytes: Bytes, folder: Option<&Path>) -> Result<OnnxModel> {
        OnnxModel::new(bytes, Files::default(), folder)
    }

    fn new(bytes: Bytes, files: Files, folder: Option<&Path>) -> Result<OnnxModel> {
        let Ports { inputs, defaults, outputs, strings } = onnx::declared(&bytes).map_err(Error::Program)?;
        let folder = folder.map(Path::to_path_buf);
        let (options, dims) = Default::default();
        let (general, special) = (Built::default(), Brief::new(vec![]));
        Ok(OnnxModel { bytes, folder, files, options, dims, inputs, defaults, outputs, strings, general, special })
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The same model under other options.
    pub fn with_options(self, options: Options) -> OnnxModel {
        OnnxModel { options, general: Built::default(), special: Brief::new(vec![]), ..self }
    }

    /// The same model with extents fixed beforehand, by the names that the file gives them, or that printed graphs do.
    ///
    /// # Errors
    /// `E0806` where the file has no dimension of a name, or it cannot have that extent.
    pub fn with_dims(self, dims: &[(&str, i64)]) -> Result<OnnxModel> {
        let mut fixed = BTreeMap::new();
        for (name, extent) in dims {
            self.dimension(name)?;
            if !(0..=MAX_EXTENT).contains(extent) {
                let message = format!("{name} is {extent}, which must be from 0 to {MAX_EXTENT}");
                return Err(inputs::refuse(message, "it is an extent"));
            }
            fixed.insert(name.to_string(), *extent);
        }
        Ok(OnnxModel { dims: fixed, general: Built::default(), special: Brief::new(vec![]), ..self })
    }

    /// The names of dimensions.
    fn dimensions(&self) -> impl Iterator<Item = &str> {
        let all = self.inputs.iter().filter_map(|i| i.shape.as_ref()).flatten();
        all.filter_map(|d| match d {
            Dimension::Named(name) => Some(name.as_str()),
            Dimension::Known(_) => None,
        })
    }

    fn dimension(&self, name: &str) -> Result<()> {
        let all: Vec<&str> = self.dimensions().collect();
        match all.iter().any(|known| *known == name || onnx::symbol_of(known) == name) {
            true => Ok(()),
            false => Err(inputs::no_extent(name, all)),
        }
    }

    /// The inputs of a run, as the file declares them; an input of unknown rank has one extent, which is called `...`.
    pub fn inputs(&self) -> Vec<Port> {
        self.inputs.iter().filter_map(port).collect()
    }

    /// The optional inputs of a run: those that the file has a value for.
    pub fn defaults(&self) -> Vec<Port> {
        self.defaults.iter().filter_map(port).collect()
    }

    /// The strings that the file has: an element of a tensor of strings is the place of one, or a number behind them for one
    /// that the file does not have.
    pub fn strings(&self) -> &[String] {
        &self.strings
    }

    /// The outputs of a run, likewise. Types and shapes that the file does not declare follow from its nodes, where one
    /// graph fits all shapes.
    pub fn outputs(&self) -> Vec<Port> {
        let declared: Option<Vec<Port>> = self.outputs.iter().map(port).collect();
        declared.unwrap_or_else(|| match self.general() {
            Ok(Ok(model)) => model.outputs(),
            _ => self.outputs.iter().filter_map(port).collect(),
        })
    }

    /// The names and kinds of the inputs and outputs that are not tensors.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, Kind)> {
        let all = self.inputs.iter().chain(&self.outputs).filter(|d| d.kind != Kind::Tensor);
        all.map(|d| (d.name.as_str(), d.kind))
    }

    /// The names of all that a run gives, in order.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().map(|output| output.name.as_str())
    }

    /// The model for these arrays. The first time shows whether there is one for all shapes.
    ///
    /// # Errors
    /// `E0802` and the like: operations that are not supported even for these shapes.
    pub fn fitting(&self, arrays: &[(&str, &Tensor)]) -> Result<Fitting> {
        let shapes: Vec<(&str, &[u64])> = arrays.iter().map(|(name, t)| (*name, t.shape())).collect();
        self.fitting_shapes(&shapes, arrays)
    }

    /// The model for arrays of these shapes, and for these elements of those among them that are short
    /// ([`MOST_KNOWN`] elements at most); longer ones tell nothing but their shapes.
    ///
    /// # Errors
    /// As of [`OnnxModel::fitting`].
    pub fn fitting_shapes(&self, shapes: &[(&str, &[u64])], short: &[(&str, &Tensor)]) -> Result<Fitting> {
        let call = || self.call(shapes);
        let overrides = shapes.iter().any(|(name, _)| self.defaults.iter().any(|d| d.name == *name));
        let why = match self.general()? {
            Ok(model) if overrides => Arc::new(vec![Diagnostic::error(
                Code::ModelInput,
                format!("the file has a value for an input that is given: {}", model.name()),
            )]),
            Ok(model) => {
                // One that takes empty shapes too takes all others like them.
                if let Some(wide) = self.special.lock().iter().find(|s| s.is_wide() && s.fits(&call(), &[])) {
                    return Ok(Fitting { model: wide.model.clone(), limits: None });
                }
                match self.unlike_all(&model, shapes) {
                    None => return Ok(Fitting { model, limits: None }),
                    Some(why) => Arc::new(vec![why]),
                }
            }
            Err(why) => why,
        };
        let call = call();
        for (name, _) in shapes {
            if !call.inputs.iter().chain(&self.defaults).any(|i| i.name == *name) && !self.marks(name) {
                return Err(inputs::no_input(name, self.inputs.iter().map(|i| i.name.as_str())));
            }
        }
        let mut kept = self.special.lock();
        if let Some(at) = kept.iter().position(|s| s.fits(&call, short)) {
            kept[..=at].rotate_right(1);
            return Ok(kept[0].fitting(&why));
        }
        drop(kept);
        let found = match self.like(&call) {
            Some(found) => found,
            None => self.special(&call, short).map_err(|e| self.with_help(e, &call.shapes))?,
        };
        let fitting = found.fitting(&why);
        let mut kept = self.special.lock();
        kept.truncate(KEPT - 1);
        kept.insert(0, found);
        Ok(fitting)
    }

    /// Returns true for the name under which a run gives a sequence of no tensors for an input that may have none.
    fn marks(&self, name: &str) -> bool {
        self.inputs.iter().any(|i| i.kind == Kind::OptionalSequence && onnx::empty_of(&i.name) == name)
    }

    fn call(&self, shapes: &[(&str, &[u64])]) -> Call {
        let shapes: BTreeMap<String, Vec<u64>> =
            shapes.iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect();
        let (mut inputs, mut lists) = (vec![], BTreeMap::new());
        for input in &self.inputs {
            let tensors = tensors(input, &shapes);
            if input.kind != Kind::Tensor {
                lists.insert(input.name.clone(), tensors.len());
            }
            inputs.extend(tensors);
        }
        let plain = |name: &str| self.inputs.iter().any(|i| i.kind == Kind::Tensor && i.name == name);
        Call { given: shapes.keys().filter(|name| !plain(name)).cloned().collect(), shapes, inputs, lists }
    }

    /// Runs the model on arrays by the names of its inputs, and waits for it.
    ///
    /// # Errors
    /// The errors of [`OnnxModel::fitting`] and of [`Model::run`].
    pub fn run(&self, arrays: &[(&str, &Tensor)]) -> Result<Vec<(String, Tensor)>> {
        let fitting = self.fitting(arrays)?;
        fitting.model.run(&fitting.arrays(arrays))
    }

    /// The model for these arrays, and which shapes it is for.
    ///
    /// # Errors
    /// As of [`OnnxModel::fitting`].
    pub fn into_fitting(self, arrays: &[(&str, &Tensor)]) -> Result<(Model, Option<Limits>)> {
        let Fitting { model, limits } = self.fitting(arrays)?;
        drop(self);
        let model = Arc::into_inner(model).ok_or_else(|| Error::Internal("a model has another owner".into()))?;
        Ok((model, limits))
    }

    /// Why a model for all shapes does not take these: it takes extents from 1 on, one extent for each name, and such as its
    /// integers have room for.
    fn unlike_all(&self, model: &Model, shapes: &[(&str, &[u64])]) -> Option<Diagnostic> {
        let shapes = self.call(shapes).shapes;
        let usual = !shapes.values().any(|shape| shape.contains(&0)) && self.apart(&self.inputs, &shapes).is_empty();
        if usual && !(self.dims.is_empty() && model.graph().is_guarded()) {
            return None;
        }
        bound(model.graph(), &shapes)?.err()
    }

    /// The names of dimensions that stand for several extents.
    fn apart(&self, inputs: &[Declared], shapes: &BTreeMap<String, Vec<u64>>) -> BTreeSet<String> {
        let mut extents = BTreeMap::new();
        let mut apart = BTreeSet::new();
        for input in inputs {
            let (Some(declared), Some(given)) = (&input.shape, shapes.get(&input.name)) else { continue };
            for (dim, n) in declared.iter().zip(given) {
                if let Dimension::Named(name) = dim
                    && !self.dims.contains_key(name)
                    && extents.insert(name, n).is_some_and(|before| before != n)
                {
                    apart.insert(name.clone());
                }
            }
        }
        apart
    }

    fn general(&self) -> Result<General> {
        self.general.get_or_make(|| {
            let made = self.import().and_then(|graph| self.model(graph)).and_then(|model| {
                // One for all shapes may be refused later than when it is read.
                if !model.graph().symbols.is_empty() {
                    model.check()?;
                }
                Ok(model)
            });
            match made {
                Ok(model) => Ok(Ok(Arc::new(model))),
                Err(Error::Program(refused)) if self.is_open() => Ok(Err(Arc::new(refused))),
                Err(other) => Err(other),
            }
        })
    }

    /// Returns true if inputs are sequences or optional values: only a run says how many tensors they have.
    fn has_lists(&self) -> bool {
        self.inputs.iter().any(|i| i.kind != Kind::Tensor)
    }

    /// Returns true if arrays can tell more than the file does: extents, ranks or small inputs that the file leaves
    /// open.
    fn is_open(&self) -> bool {
        let open = |d: &Dimension| matches!(d, Dimension::Named(name) if !self.dims.contains_key(name));
        let free = |i: &Declared| i.shape.as_ref().is_none_or(|s| s.iter().any(open));
        let count = |n: u64, d: &Dimension| match d {
            Dimension::Known(extent) => n.checked_mul(*extent),
            Dimension::Named(_) => None,
        };
        let few = |s: &[Dimension]| s.iter().try_fold(1, count).is_some_and(|n| n <= MOST_KNOWN);
        let short = |i: &Declared| i.shape.as_ref().is_some_and(|s| s.len() < 2 || few(s));
        self.has_lists() || self.inputs.iter().any(|i| free(i) || short(i))
    }

    fn import_options(&self) -> onnx::Options {
        let dims = self.dims.iter().map(|(name, n)| (name.clone(), (*n, Some(*n)))).collect();
        onnx::Options { dims, ..onnx::Options::default() }
    }

    fn import(&self) -> Result<Graph> {
        onnx::import(&self.bytes, &self.import_options()).map_err(Error::Program)
    }

    /// The model for shapes like these; `None` where no assumption about extents helps. Extents that are 0 may be 0 or more;
    /// an input without a shape in the file has the rank of the array given here.
    fn like(&self, call: &Call) -> Option<Special> {
        let shapes = &call.shapes;
        let mut options = self.options_for(call);
        let mut said: Vec<String> = self.overridden(call).map(|name| format!("`{name}` is given")).collect();
        said.extend(options.apart.iter().map(|name| format!("{name} may differ")));
        for input in call.inputs.iter().chain(&self.defaults) {
            let Some(given) = shapes.get(&input.name) else { continue };
            let Some(declared) = &input.shape else {
                let free = (0..given.len()).filter(|d| given[*d] == 0).map(|d| onnx::free_key(&input.name, d));
                options.dims.extend(free.map(|key| (key, (0, None))));
                options.ranks.insert(input.name.clone(), given.len());
                said.push(format!("`{}` has {} axes", input.name, given.len()));
                continue;
            };
            for (dim, n) in declared.iter().zip(given) {
                if let (Dimension::Named(name), 0) = (dim, n) {
                    options.dims.entry(name.clone()).or_insert((0, None));
                }
            }
        }
        // An operation that needs elements (the greatest of none) is refused for these shapes alone.
        if shapes.values().any(|shape| shape.contains(&0)) {
            let alone = onnx::Options { shapes: shapes.clone(), ..options.clone() };
            onnx::import(&self.bytes, &alone).ok()?;
        }
        let (graph, assumed) = onnx::import_assuming(&self.bytes, &options, shapes).ok()?;
        let model = self.model(graph).ok()?;
        if !binds(model.graph(), shapes) || model.check().is_err() {
            return None;
        }
        said.extend(assumed.texts());
        Some(Special { model: Arc::new(model), takes: Takes::Like(said), given: call.given.clone() })
    }

    fn overridden<'a>(&self, call: &'a Call) -> impl Iterator<Item = &'a String> {
        call.given.iter().filter(|name| self.defaults.iter().any(|d| d.name == **name))
    }

    fn options_for(&self, call: &Call) -> onnx::Options {
        let (given, lists) = (call.given.clone(), call.lists.clone());
        onnx::Options { apart: self.apart(&call.inputs, &call.shapes), given, lists, ..self.import_options() }
    }

    /// The model for these shapes alone.
    fn special(&self, call: &Call, arrays: &[(&str, &Tensor)]) -> Result<Special> {
        let options = onnx::Options { shapes: call.shapes.clone(), ..self.options_for(call) };
        let constant = |(name, t): &(&str, &Tensor)| {
            let elem = call
                .inputs
                .iter()
                .chain(&self.defaults)
                .find(|i| i.name == *name)?
                .elem
                .filter(|e| e.dtype == t.dtype())?;
            let data = ConstData::Bytes(Bytes::copy_from_slice(t.buffer().bytes()));
            Some(Constant { name: name.to_string(), elem, shape: t.shape().to_vec(), data })
        };
        let short = arrays.iter().filter(|(_, t)| t.buffer().elements() <= MOST_KNOWN);
        let mut known: Vec<Constant> = short.filter_map(constant).collect();
        let graph = onnx::import_for(&self.bytes, &options, &known)
            .map_err(|refused| Error::Program(with_limit(refused, &call.shapes)))?;
        known.retain(|c| inputs::position(&graph, &c.name).is_err());
        let model = Arc::new(self.model(graph)?);
        Ok(Special { model, takes: Takes::These { shapes: call.shapes.clone(), known }, given: call.given.clone() })
    }

    /// While arrays are missing, a refusal that names a dimension may be due to an unknown extent.
    fn with_help(&self, error: Error, shapes: &BTreeMap<String, Vec<u64>>) -> Error {
        let absent = self.inputs.iter().filter(|i| !shapes.contains_key(&i.name));
        let absent: Vec<String> = absent.map(|i| format!("`{}`", i.name)).collect();
        match error {
            Error::Program(mut all) if !absent.is_empty() => {
                let extents: BTreeSet<&str> = self.dimensions().filter(|n| !self.dims.contains_key(*n)).collect();
                let named = |d: &Diagnostic| extents.iter().any(|n| d.message.contains(n));
                let open = |d: &Diagnostic| d.code == Code::ModelShape && named(d);
                let list = extents.iter().copied().collect::<Vec<_>>().join(", ");
                let arrays = absent.join(", ");
                let help = format!("it may be compiled for some shapes: give {arrays}, or the extents {list}");
                let first = all.iter_mut().find(|d| d.help.is_none() && open(d));
                first.into_iter().for_each(|d| d.help = Some(help.clone()));
                Error::Program(all)
            }
            other => other,
        }
    }

    fn model(&self, graph: Graph) -> Result<Model> {
        Ok(Model::new(graph, self.files.clone(), self.folder.as_deref())?.with_options(self.options.clone()))
    }
}

/// A refusal that a value might have prevented says which array is too long to become a constant.
fn with_limit(mut refused: Vec<Diagnostic>, shapes: &BTreeMap<String, Vec<u64>>) -> Vec<Diagnostic> {
    let elements = |shape: &[u64]| shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let long = shapes.iter().find(|(_, shape)| elements(shape).is_none_or(|n| n > MOST_KNOWN));
    if let Some((name, _)) = long
        && let Some(first) = refused.iter_mut().find(|d| d.help.is_none() && d.code == Code::ModelShape)
    {
        let what = format!("inputs of at most {MOST_KNOWN} elements become constants of the model; `{name}` has more");
        first.help = Some(what);
    }
    refused
}

/// The tensors of an input for a run that gives these.
fn tensors(input: &Declared, shapes: &BTreeMap<String, Vec<u64>>) -> Vec<Declared> {
    // Each tensor of a sequence has extents of its own.
    let of = |name: String| {
        let dim = |(d, dim): (usize, &Dimension)| match dim {
            Dimension::Named(_) => Dimension::Named(onnx::free_key(&name, d)),
            known => known.clone(),
        };
        let shape = input.shape.as_ref().map(|shape| shape.iter().enumerate().map(dim).collect());
        Declared { shape, kind: Kind::Tensor, name, ..input.clone() }
    };
    match input.kind {
        Kind::Tensor => vec![input.clone()],
        Kind::Optional => shapes.get(&input.name).map(|_| input.clone()).into_iter().collect(),
        _ => {
            let names = (0..).map(|at| onnx::item_of(&input.name, at));
            names.take_while(|name| shapes.contains_key(name)).map(of).collect()
        }
    }
}

fn port(declared: &Declared) -> Option<Port> {
    let extent = |d: &Dimension| match d {
        Dimension::Known(n) => Extent::Known(*n),
        Dimension::Named(name) => Extent::Symbolic(name.clone()),
    };
    let shape = match &declared.shape {
        Some(shape) => shape.iter().map(extent).collect(),
        None => vec![Extent::Symbolic("...".into())],
    };
    Some(Port { name: declared.name.clone(), elem: declared.elem?, shape, role: Role::Argument })
}
