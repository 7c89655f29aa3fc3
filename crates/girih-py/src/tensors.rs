//! A run of a graph on PyTorch's tensors that look as the graph expects them: without Python between the call and the kernels.
//!
//! In: the arguments of a call, a list or a tuple. Out: the tensors that the kernels wrote, or None where an argument looks
//! otherwise, or a parameter is not the one that the model was given last: then Python looks at all of them, and says why.
//!
//! Invariant: nothing is read or written before every tensor was looked at.

use std::sync::{Arc, Mutex, PoisonError};

use girih::model::Model as Native;
use girih_compiler::graph::Elem;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

use crate::arrays::Tensor;
use crate::jit::torch::{self, row_major};
use crate::model::{Addressed, Chosen, Input, Model};

/// Where a tensor comes from: its place among the arguments of a call, or the tensor itself.
enum Source {
    Given(usize),
    Held(Py<PyAny>),
}

impl Source {
    /// Only an `int` is a place: a tensor of one integer would pass for one.
    fn of(value: Bound<'_, PyAny>) -> Source {
        let place = value.cast::<PyInt>().ok().and_then(|at| at.extract().ok());
        place.map_or_else(|| Source::Held(value.unbind()), Source::Given)
    }

    fn tensor<'py>(&self, py: Python<'py>, args: &Args<'_, 'py>) -> Option<Bound<'py, PyAny>> {
        match (self, args) {
            (Source::Held(tensor), _) => Some(tensor.bind(py).clone()),
            (Source::Given(at), Args::List(list)) => list.get_item(*at).ok(),
            (Source::Given(at), Args::Tuple(tuple)) => tuple.get_item(*at).ok(),
        }
    }
}

/// The arguments of a call.
enum Args<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
}

/// An element type, as DLPack describes it, and a device.
#[derive(PartialEq, Eq)]
struct Kind {
    code: u8,
    bits: u8,
    lanes: u16,
    device: (i32, i32),
}

impl Kind {
    fn of(tensor: &Tensor) -> Kind {
        Kind { code: tensor.code, bits: tensor.bits, lanes: tensor.lanes, device: tensor.device() }
    }
}

/// An argument as the graph expects it.
struct Expected {
    source: Source,
    kind: Kind,
    shape: Vec<i64>,
    /// `None` where it is row-major.
    strides: Option<Vec<i64>>,
    /// The elements of the array that the kernels read which lie before the first of a tensor with gaps; `None` without gaps.
    start: Option<u64>,
    elem: Elem,
    /// The extents of the array that the kernels read, in its order of axes.
    extents: Vec<u64>,
}

impl Expected {
    /// The address of the elements of a tensor that looks so.
    fn address(&self, value: &Bound<'_, PyAny>) -> Option<u64> {
        let found = torch::plain(value)?;
        // SAFETY: the tensor lives as long as `value`.
        let (shape, strides) = unsafe { found.layout() };
        let lies = match &self.strides {
            None => row_major(shape, strides),
            Some(wanted) if self.start.is_none() => strides == wanted,
            Some(wanted) => {
                shape.iter().zip(strides.iter().zip(wanted)).all(|(n, (step, want))| *n == 1 || step == want)
            }
        };
        let address = found.address();
        let odd = address == 0 || !address.is_multiple_of(u64::from(self.kind.bits).div_ceil(8).max(1));
        let fits = Kind::of(&found) == self.kind && shape == self.shape && lies && (!odd || shape.contains(&0));
        let before = match self.start {
            Some(start) if fits => self.before(value, start)?,
            _ => 0,
        };
        fits.then(|| address.checked_sub(before)).flatten()
    }

    /// The bytes of the array before the first element of a tensor with gaps; `None` where the array is not all in the tensor's storage.
    fn before(&self, value: &Bound<'_, PyAny>, start: u64) -> Option<u64> {
        let size = u64::from(self.kind.bits).div_ceil(8);
        let room = torch::room(value, size)?;
        let before = start.checked_mul(size)?;
        let bytes = self.extents.iter().try_fold(size, |n, extent| n.checked_mul(*extent))?;
        let end = room.start.checked_sub(before)?.checked_add(bytes)?;
        (end <= room.end).then_some(before)
    }
}

/// A parameter as the model was given it.
#[derive(PartialEq, Eq)]
struct Bindings {
    kind: Kind,
    address: u64,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// How often PyTorch saw it written to, where that counts.
    version: Option<i64>,
}

impl Bindings {
    /// Returns true if a parameter is the one that was given.
    fn holds(&self, value: &Bound<'_, PyAny>, versions: bool) -> bool {
        let Some(found) = torch::plain(value) else { return false };
        // SAFETY: the tensor lives as long as `value`.
        let (shape, strides) = unsafe { found.layout() };
        let lies = shape == self.shape && strides == self.strides;
        found.address() == self.address
            && Kind::of(&found) == self.kind
            && lies
            && self.version == version(value, versions)
    }

    fn of(value: &Bound<'_, PyAny>, versions: bool) -> Option<Bindings> {
        let found = torch::plain(value)?;
        // SAFETY: as above.
        let (shape, strides) = unsafe { found.layout() };
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        Some(Bindings {
            kind: Kind::of(&found),
            address: found.address(),
            shape,
            strides,
            version: version(value, versions),
        })
    }
}

/// Parameters under the number that the model was given them with.
struct Numbered {
    number: u64,
    parameters: Vec<Bindings>,
}

/// PyTorch's count of writes, if it is asked for; tensors of inference mode have none.
fn version(value: &Bound<'_, PyAny>, asked: bool) -> Option<i64> {
    asked.then(|| value.getattr(pyo3::intern!(value.py(), "_version")).and_then(|n| n.extract()).ok()).flatten()
}

/// Where a result comes from: a function that makes it and its arguments, or the place of the argument that it replaces.
#[derive(FromPyObject)]
enum Made {
    By(Py<PyAny>, Py<PyTuple>),
    Replaces(usize),
}

/// Facts about the tensors of a graph whose extents are all fixed.
#[pyclass(frozen, module = "girih._girih")]
pub struct Tensors {
    model: Arc<Native>,
    arguments: Vec<Expected>,
    parameters: Vec<Source>,
    /// True if parameters are only written where PyTorch counts it.
    versions: bool,
    /// The parameters of the last `bound` and their number; `None` where Python must look at them in every run.
    bound: Mutex<Option<Arc<Numbered>>>,
    results: Vec<Made>,
    symbols: Vec<Option<i64>>,
    /// Gives the GPU's stream.
    stream: Option<Py<PyAny>>,
}

/// A source, an example of its element type and device, a shape, strides or None, the elements before the first of a tensor with gaps
/// or None, and the extents that kernels see.
type Argument<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Vec<i64>, Option<Vec<i64>>, Option<u64>, Vec<u64>);

#[pymethods]
impl Tensors {
    /// `sources` are places among a call's arguments, or tensors that all calls read. Raises RuntimeError where PyTorch does not
    /// tell how tensors lie without Python.
    #[new]
    #[pyo3(signature = (model, arguments, parameters, results, symbols, versions, stream = None))]
    fn new(
        model: &Model,
        arguments: Vec<Argument<'_>>,
        parameters: Vec<Bound<'_, PyAny>>,
        results: Vec<Made>,
        symbols: Vec<i64>,
        versions: bool,
        stream: Option<Py<PyAny>>,
    ) -> PyResult<Tensors> {
        if arguments.len() != model.arguments.len() {
            return Err(PyRuntimeError::new_err("these are not the arguments of the model"));
        }
        let expected = |(elem, (source, example, shape, strides, start, extents)): (&Elem, Argument<'_>)| {
            torch::meet(&example)?;
            let Some(found) = torch::plain(&example) else {
                return Err(PyRuntimeError::new_err("PyTorch does not describe its tensors"));
            };
            let (source, kind) = (Source::of(source), Kind::of(&found));
            Ok(Expected { source, kind, shape, strides, start, elem: *elem, extents })
        };
        Ok(Tensors {
            model: model.model.clone(),
            arguments: model.arguments.iter().zip(arguments).map(expected).collect::<PyResult<_>>()?,
            parameters: parameters.into_iter().map(Source::of).collect(),
            versions,
            bound: Mutex::default(),
            results,
            symbols: symbols.into_iter().map(Some).collect(),
            stream,
        })
    }

    /// Remembers the parameters that the model is given under a number; None if they must be looked at in every run.
    fn bound(&self, parameters: Option<Vec<Bound<'_, PyAny>>>, number: u64) {
        let of = |tensors: Vec<Bound<'_, PyAny>>| tensors.iter().map(|t| Bindings::of(t, self.versions)).collect();
        let found: Option<Vec<Bindings>> = parameters.and_then(of);
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) =
            found.map(|parameters| Arc::new(Numbered { number, parameters }));
    }

    /// The list of results; None where a tensor looks otherwise.
    fn run<'py>(&self, py: Python<'py>, args: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
        let args = match (args.cast::<PyList>(), args.cast::<PyTuple>()) {
            (Ok(list), _) => Args::List(list),
            (_, Ok(tuple)) => Args::Tuple(tuple),
            _ => return Ok(None),
        };
        // The call's own references to the tensors, until it returns.
        let mut held = Vec::with_capacity(self.arguments.len() + self.parameters.len());
        let mut inputs: Vec<Input<'_>> = Vec::with_capacity(self.arguments.len());
        for expected in &self.arguments {
            let Some(tensor) = expected.source.tensor(py, &args) else { return Ok(None) };
            let Some(address) = expected.address(&tensor) else { return Ok(None) };
            inputs.push((expected.elem, address, &expected.extents));
            held.push(tensor);
        }
        for parameter in &self.parameters {
            let Some(tensor) = parameter.tensor(py, &args) else { return Ok(None) };
            held.push(tensor);
        }
        let parameters = held.get(self.arguments.len()..).unwrap_or_default();
        let Some(number) = self.number(parameters) else { return Ok(None) };
        let results = PyList::empty(py);
        let mut outputs = Vec::with_capacity(self.results.len());
        for made in &self.results {
            let tensor = match made {
                Made::By(function, given) => function.bind(py).call1(given.bind(py))?,
                Made::Replaces(at) => match held.get(*at).filter(|_| apart(*at, &held)) {
                    Some(tensor) => tensor.clone(),
                    None => return Ok(None),
                },
            };
            let Some(found) = torch::plain(&tensor) else { return Ok(None) };
            // SAFETY: the list that the tensor enters lives until the run is over.
            outputs.push((found.address(), bytes(unsafe { found.layout() }.0, found.bits)));
            results.append(tensor)?;
        }
        let stream = match &self.stream {
            Some(stream) => Some(stream.bind(py).call0()?.extract()?),
            None => None,
        };
        let call = Addressed {
            inputs: &inputs,
            parameters: if number == 0 { Chosen::Held } else { Chosen::Numbered(number) },
            symbols: &self.symbols,
            outputs: &outputs,
            stream,
            on_device: stream.is_some(),
        };
        // SAFETY: `held` has the arguments and the list the results until this returns, and PyTorch keeps memory of a stream until
        // that has used it; types and shapes were compared above.
        let done = unsafe { call.run(py, &self.model) }?;
        Ok(done.then_some(results))
    }
}

impl Tensors {
    /// The number of these parameters, if the model was given them.
    fn number(&self, parameters: &[Bound<'_, PyAny>]) -> Option<u64> {
        // PyTorch may let go of Python's lock when it is asked: no thread that has that lock waits for this one.
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let bound = bound?;
        let held = &bound.parameters;
        let same =
            held.len() == parameters.len() && held.iter().zip(parameters).all(|(b, t)| b.holds(t, self.versions));
        same.then_some(bound.number)
    }
}

/// Returns true if one of some tensors shares no memory with the others.
fn apart(at: usize, tensors: &[Bound<'_, PyAny>]) -> bool {
    let spans: Option<Vec<(u64, u64)>> = tensors.iter().map(span).collect();
    let Some(spans) = spans else { return false };
    let Some(&(first, end)) = spans.get(at) else { return false };
    spans.iter().enumerate().all(|(other, (from, to))| other == at || *to <= first || end <= *from)
}

/// The addresses from a tensor's first element to behind its last.
fn span(value: &Bound<'_, PyAny>) -> Option<(u64, u64)> {
    let found = torch::plain(value)?;
    // SAFETY: the tensor lives as long as `value`.
    let (shape, strides) = unsafe { found.layout() };
    let last =
        shape.iter().zip(strides).map(|(n, step)| (n - 1).max(0).saturating_mul(*step)).fold(0i64, i64::saturating_add);
    let reach = u64::try_from(last).ok()?.saturating_add(1).saturating_mul(u64::from(found.bits).div_ceil(8));
    Some((found.address(), found.address().saturating_add(reach)))
}

/// The bytes of a tensor without gaps.
fn bytes(shape: &[i64], bits: u8) -> u64 {
    let count = shape.iter().fold(1u64, |n, d| n.saturating_mul(u64::try_from(*d).unwrap_or(0)));
    count.saturating_mul(u64::from(bits).div_ceil(8))
}
