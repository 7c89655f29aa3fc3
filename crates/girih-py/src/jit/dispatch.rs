//! From a call of a kernel to the launch of its specialisation.
//!
//! In: a grid and the call's arguments. Each is looked at once; the key of its properties (`key`) finds the specialisation,
//! or has Python make it. Invariants: the specialisations' table is locked for a look-up only, never while Python runs; the
//! arrays of a call are kept alive by its arguments until the launch is over.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use girih::spec::MAX_GRID;
use girih::{RawArgs, Reached};
use girih_compiler::base::words::{did_you_mean, list, shorten};
use pyo3::exceptions::{PyKeyError, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::kernel::Kernel;
use super::key::{self, Array, Collected, Numpy, Role};
use super::layout::{self, Layout};
use super::torch;
use crate::interface;

/// Keywords of a launch that are not parameters, for suggestions.
const SETTINGS: [&str; 5] = ["device", "check", "threads", "num_warps", "num_stages"];

struct Parameter {
    name: Py<PyString>,
    role: Role,
    default: Option<Py<PyAny>>,
}

/// A specialisation; `alive` are the constants told apart by identity.
struct Known {
    kernel: Py<Kernel>,
    _alive: Vec<Py<PyAny>>,
}

/// Launches a kernel's specialisations.
#[pyclass(frozen, module = "girih._girih")]
pub struct Dispatcher {
    parameters: Vec<Parameter>,
    /// `specialise(arguments, settings)`: makes the `Kernel` for the arguments' key.
    specialise: Py<PyAny>,
    /// `describe(value, name)`: an array other than NumPy's, as `key::Described`, or a replacement for the argument, an
    /// array of NumPy's or a number; raises for anything else.
    describe: Py<PyAny>,
    /// `name_of(dtype)`: the name and the size of an element type.
    name_of: Py<PyAny>,
    known: Mutex<HashMap<Vec<u64>, Arc<Known>, rustc_hash::FxBuildHasher>>,
    /// The parameters whose arrays' strides were warned of.
    warned: Mutex<BTreeSet<String>>,
}

static NUMPY: OnceLock<Numpy> = OnceLock::new();

#[pymethods]
impl Dispatcher {
    /// `parameters` are (name, role, has a default, default), the role one of "constant", "runtime", "unspecialised".
    #[new]
    fn new(
        parameters: Vec<(Py<PyString>, String, bool, Py<PyAny>)>,
        specialise: Py<PyAny>,
        describe: Py<PyAny>,
        name_of: Py<PyAny>,
    ) -> Dispatcher {
        let parameters = (parameters.into_iter())
            .map(|(name, role, given, default)| Parameter {
                name,
                role: match role.as_str() {
                    "constant" => Role::Constant,
                    "unspecialised" => Role::Unspecialised,
                    _ => Role::Runtime,
                },
                default: given.then_some(default),
            })
            .collect();
        Dispatcher { parameters, specialise, describe, name_of, known: Mutex::default(), warned: Mutex::default() }
    }

    /// Runs the kernel over `grid`: one to three integers, an integer, or a function of the arguments by name.
    /// `settings` (device, check, and so on; `None` for the defaults) are part of what tells specialisations apart. `live` is other
    /// memory, addresses and bytes, that the kernel may find by addresses in memory; it stays alive until this returns.
    #[pyo3(signature = (grid, settings, args, kwargs, live = vec![]))]
    fn launch(
        &self,
        py: Python<'_>,
        grid: &Bound<'_, PyAny>,
        settings: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        live: Vec<(u64, u64)>,
    ) -> PyResult<()> {
        let bound = self.bind(py, args, kwargs, None)?;
        // Above is `JITFunction.run`, and above that its caller.
        self.launch_bound(
            py,
            Launch { grid, settings: Some(settings), bound: &bound, looks: Vec::new(), live, level: 2 },
        )
    }

    /// The specialisation a call would launch.
    fn kernel(
        &self,
        py: Python<'_>,
        settings: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<Py<Kernel>> {
        let bound = self.bind(py, args, kwargs, None)?;
        Ok(self.find(py, Some(settings), &bound, Vec::new())?.1.kernel.clone_ref(py))
    }

    /// How many specialisations there are.
    fn __len__(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Forgets all specialisations.
    fn clear(&self) {
        let known = std::mem::take(&mut *self.known.lock().unwrap_or_else(PoisonError::into_inner));
        drop(known);
    }
}

/// An array as it was found among the arguments of a call: where it is, and its layout unless that is row-major without gaps.
pub type Look = (Array, Option<Layout>);

/// Describes an array of NumPy or PyTorch whose class a launch has met before; `None` for other arguments.
pub fn looked_at(value: &Bound<'_, PyAny>, name_of: &Bound<'_, PyAny>) -> Option<Look> {
    if NUMPY.get().is_some_and(|n| n.class == key::class_of(value)) {
        return key::numpy_array(value, name_of).ok();
    }
    torch::described(value)
}

/// The values outside of a kernel that its specialisations depend on, by where they stand, and the function that compares them with
/// their current values.
#[derive(FromPyObject)]
pub struct Outside(Py<PyDict>, Py<PyAny>);

impl Outside {
    /// Compares them, if there are any.
    pub fn look(&self, py: Python<'_>) -> PyResult<()> {
        if self.0.bind(py).is_empty() { Ok(()) } else { self.1.bind(py).call0().map(drop) }
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)?;
        visit.call(&self.1)
    }
}

/// A launch whose arguments have their parameters.
pub struct Launch<'a, 'py> {
    pub grid: &'a Bound<'py, PyAny>,
    pub settings: Option<&'a Bound<'py, PyAny>>,
    pub bound: &'a [Bound<'py, PyAny>],
    /// By position, arrays that were looked at already.
    pub looks: Vec<Option<Look>>,
    pub live: Vec<(u64, u64)>,
    /// How many frames of Python the line that launches is above.
    pub level: i32,
}

impl Dispatcher {
    /// Looks the specialisation up, or has it made, and runs it.
    pub fn launch_bound(&self, py: Python<'_>, launch: Launch<'_, '_>) -> PyResult<()> {
        let Launch { grid, settings, bound, looks, live, level } = launch;
        let (collected, known) = self.find(py, settings, bound, looks)?;
        let grid = self.grid(py, grid, bound)?;
        let kernel = known.kernel.get();
        kernel.warn_of_grid(py, grid)?;
        if !collected.layouts.is_empty() {
            self.warn_of_strides(py, &collected, bound, level)?;
        }
        let Collected { slots, arrays, alive: _alive, on_device, .. } = collected;
        if let Some((name, _)) = &on_device
            && !kernel.is_on_cuda()
        {
            let name = name.bind(py);
            return Err(PyValueError::new_err(format!(
                "the argument `{name}` is on a CUDA device; launch with device=\"cuda\", or pass an array in main memory"
            )));
        }
        if let Some(at) = arrays.iter().position(|a| a.is_some_and(|a| !a.writable))
            && kernel.writes(py)?.iter().zip(&arrays).any(|(w, a)| *w && a.is_some_and(|a| !a.writable))
        {
            let writes = kernel.writes(py)?;
            let at = (at..arrays.len()).find(|&i| writes[i] && arrays[i].is_some_and(|a| !a.writable)).unwrap_or(at);
            let name = self.runtime_name(py, bound, at);
            return Err(PyValueError::new_err(format!("the kernel writes to `{name}`, but that array is read-only")));
        }
        if grid.contains(&0) {
            return Ok(());
        }
        let bytes = arrays.iter().map(|a| a.map(|a| a.bytes)).collect();
        let backwards = arrays.iter().flatten().any(|a| a.before > 0);
        let before = if backwards { arrays.iter().map(|a| a.map_or(0, |a| a.before)).collect() } else { Vec::new() };
        let checked = kernel.is_checked();
        let whole = if checked { arrays.iter().map(|a| a.is_some_and(|a| a.whole)).collect() } else { Vec::new() };
        let stream = on_device.map(|(_, stream)| stream);
        let live = live.into_iter().map(|(start, bytes)| Reached { name: "a tensor".into(), start, bytes }).collect();
        // SAFETY: the arrays' owners say where their memory is, and the call's arguments keep them alive.
        unsafe { kernel.run(py, grid, RawArgs { slots, bytes, before, whole, stream, live, ..RawArgs::default() }) }
    }

    pub fn name_of<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.name_of.bind(py)
    }

    /// Returns true if all keywords are names of parameters.
    pub fn takes(&self, py: Python<'_>, kwargs: &Bound<'_, PyDict>) -> bool {
        let is_parameter = |name: &Bound<'_, PyAny>| {
            let names = || self.parameters.iter().map(|p| p.name.bind(py));
            // Python keeps one object of each name that stands in a program's text.
            names().any(|n| n.is(name)) || names().any(|n| n.as_any().eq(name).unwrap_or(false))
        };
        kwargs.is_empty() || kwargs.iter().all(|(name, _)| is_parameter(&name))
    }

    /// The argument of each parameter: by position, by name, or of the constants that were chosen for the call.
    pub fn bind<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
        chosen: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if args.len() > self.parameters.len() {
            let (takes, given) = (self.parameters.len(), args.len());
            return Err(PyTypeError::new_err(format!("the kernel takes {takes} arguments, but {given} are given")));
        }
        let mut used = 0;
        let mut bound = Vec::with_capacity(self.parameters.len());
        for (i, parameter) in self.parameters.iter().enumerate() {
            let named = if kwargs.is_empty() { None } else { kwargs.get_item(parameter.name.bind(py))? };
            used += usize::from(named.is_some());
            let chosen = chosen.map(|c| c.get_item(parameter.name.bind(py))).transpose()?.flatten();
            let named = match (named, chosen) {
                (Some(_), Some(_)) => return Err(self.given_twice(py, i)),
                (named, chosen) => named.or(chosen),
            };
            let given = if i < args.len() { Some(args.get_item(i)?) } else { None };
            bound.push(match (given, named, &parameter.default) {
                (Some(_), Some(_), _) => return Err(self.given_twice(py, i)),
                (Some(value), None, _) | (None, Some(value), _) => value,
                (None, None, Some(default)) => default.bind(py).clone(),
                (None, None, None) if self.unknown(py, kwargs).is_some() => {
                    return Err(self.unknown_argument(py, kwargs));
                }
                (None, None, None) => {
                    let name = parameter.name.bind(py);
                    return Err(PyTypeError::new_err(format!("the argument `{name}` is missing")));
                }
            });
        }
        if used < kwargs.len() {
            return Err(self.unknown_argument(py, kwargs));
        }
        Ok(bound)
    }

    fn given_twice(&self, py: Python<'_>, at: usize) -> PyErr {
        let name = self.parameters.get(at).map(|p| p.name.bind(py).to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("the argument `{name}` is given twice"))
    }

    fn names(&self, py: Python<'_>) -> Vec<String> {
        self.parameters.iter().map(|p| p.name.bind(py).to_string()).collect()
    }

    /// The first keyword that is not the name of a parameter.
    fn unknown(&self, py: Python<'_>, kwargs: &Bound<'_, PyDict>) -> Option<String> {
        let names = self.names(py);
        kwargs.keys().iter().map(|k| k.to_string()).find(|k| !names.contains(k))
    }

    fn unknown_argument(&self, py: Python<'_>, kwargs: &Bound<'_, PyDict>) -> PyErr {
        let (names, unknown) = (self.names(py), self.unknown(py, kwargs).unwrap_or_default());
        let known = names.iter().map(String::as_str).chain(SETTINGS);
        let help = did_you_mean(&unknown, known).unwrap_or_else(|| format!("it has {}", list(&names)));
        PyTypeError::new_err(shorten(&format!("the kernel has no parameter `{unknown}`; {help}")).into_owned())
    }

    /// The exception that the grid's function raised; if it asked for an unknown parameter, one that lists the known
    /// names.
    fn unknown_in_grid(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let asked = match error.is_instance_of::<PyKeyError>(py) {
            true => error.value(py).getattr("args").and_then(|args| args.get_item(0)),
            false => return error,
        };
        let Ok(asked) = asked.and_then(|key| key.extract::<String>()) else { return error };
        let names = self.names(py);
        if names.contains(&asked) {
            return error;
        }
        let help = did_you_mean(&asked, names.iter().map(String::as_str));
        let help = help.unwrap_or_else(|| format!("it has {}", list(&names)));
        let text = format!("the grid asks for `{asked}`, but the kernel has no parameter `{asked}`; {help}");
        let explained = PyValueError::new_err(shorten(&text).into_owned());
        explained.set_cause(py, Some(error));
        explained
    }

    /// Warns, once for each parameter, of an array that the kernel takes for a contiguous one: it gets the address of
    /// the first element, and no argument of the launch says how the others lie.
    fn warn_of_strides(
        &self,
        py: Python<'_>,
        collected: &Collected,
        bound: &[Bound<'_, PyAny>],
        level: i32,
    ) -> PyResult<()> {
        let layouts: Vec<&Layout> = collected.layouts.iter().map(|(_, layout)| layout).collect();
        let mut integers = Vec::new();
        for (parameter, value) in self.parameters.iter().zip(bound) {
            if parameter.role != Role::Constant || !layout::is_extent(parameter.name.to_str(py)?) {
                whole_numbers(value, &mut integers);
            }
        }
        let others = collected.arrays.iter().flatten().count() > layouts.len();
        let at = layout::misunderstood(&layouts, &integers, others);
        let Some((name, layout)) = at.and_then(|at| collected.layouts.get(at)) else { return Ok(()) };
        let name = name.bind(py).to_string();
        if !self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
            return Ok(());
        }
        let text = format!(
            "the argument `{name}` is not contiguous (shape {:?}, strides {:?} in elements), and no argument tells the \
             kernel its strides: it reads and writes memory in order from the first element on. Pass a copy, \
             `numpy.ascontiguousarray({name})` or `{name}.contiguous()`, or pass the strides and use them",
            layout.shape, layout.strides
        );
        let text = CString::new(text).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, level)
    }

    /// Inspects the arguments, and finds the specialisation for them.
    fn find(
        &self,
        py: Python<'_>,
        settings: Option<&Bound<'_, PyAny>>,
        bound: &[Bound<'_, PyAny>],
        mut seen: Vec<Option<Look>>,
    ) -> PyResult<(Collected, Arc<Known>)> {
        let mut alive = Vec::new();
        let mut collected = Collected::with_room(bound.len());
        let none = py.None().into_bound(py);
        let settings = settings.unwrap_or(&none);
        collected.constant(settings, &mut alive)?;
        let mut looks = Vec::with_capacity(bound.len());
        for (i, (parameter, value)) in self.parameters.iter().zip(bound).enumerate() {
            looks.push(collected.words.len());
            match (parameter.role, seen.get_mut(i).and_then(Option::take)) {
                (Role::Constant, _) => collected.constant(value, &mut alive)?,
                (_, Some(look)) => collected.look(look, &parameter.name, py),
                (role, None) => self.runtime(py, &mut collected, parameter, value, role)?,
            }
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&collected.words).cloned();
        if let Some(known) = known {
            return Ok((collected, known));
        }
        let arguments = PyDict::new(py);
        for ((parameter, value), at) in self.parameters.iter().zip(bound).zip(looks) {
            let look = match parameter.role {
                Role::Constant => ("constant", value).into_pyobject(py)?,
                _ => key::spelled(py, collected.words[at])?,
            };
            arguments.set_item(&parameter.name, look)?;
        }
        let made = self.specialise.bind(py).call1((arguments, settings))?;
        let kernel = made.cast_into::<Kernel>()?.unbind();
        let known = Arc::new(Known { kernel, _alive: alive });
        let mut table = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table.entry(collected.words.clone()).or_insert(known).clone();
        Ok((collected, known))
    }

    fn runtime(
        &self,
        py: Python<'_>,
        collected: &mut Collected,
        parameter: &Parameter,
        value: &Bound<'_, PyAny>,
        role: Role,
    ) -> PyResult<()> {
        let class = value.get_type();
        if NUMPY.get().is_some_and(|n| n.class == class.as_ptr() as usize) {
            let described = key::numpy_array(value, self.name_of.bind(py));
            collected.look(described.map_err(|e| named(py, e, &parameter.name))?, &parameter.name, py);
            return Ok(());
        }
        if let Some(look) = torch::described(value) {
            collected.look(look, &parameter.name, py);
            return Ok(());
        }
        if collected.number(value, role).map_err(|e| named(py, e, &parameter.name))? {
            return Ok(());
        }
        if NUMPY.get().is_none() && class.name()? == "ndarray" && class.module()? == "numpy" {
            NUMPY.get_or_init(|| Numpy::new(class.into_any()));
            return self.runtime(py, collected, parameter, value, role);
        }
        if let Some(found) = interface::read(value) {
            let (of, stream, owner) = (found.kernels.to_string(), Some(found.stream), value.clone().unbind());
            let described = (found.address, (0, found.bytes), found.writable, of, None, stream, owner);
            collected.described(described, parameter.name.bind(py));
            return Ok(());
        }
        torch::meet(value)?;
        interface::meet(value)?;
        let found = self.describe.bind(py).call1((value, &parameter.name))?;
        if found.is_instance_of::<PyTuple>() {
            collected.described(found.extract()?, parameter.name.bind(py));
            return Ok(());
        }
        if found.is(value) {
            let name = parameter.name.bind(py);
            return Err(PyTypeError::new_err(format!(
                "the argument `{name}` has the unsupported type {}",
                class.name()?
            )));
        }
        self.runtime(py, collected, parameter, &found, role)?;
        collected.alive.push(found.unbind());
        Ok(())
    }

    /// The grid as three numbers.
    fn grid(&self, py: Python<'_>, grid: &Bound<'_, PyAny>, bound: &[Bound<'_, PyAny>]) -> PyResult<[u32; 3]> {
        let made;
        let mut grid = grid;
        if grid.is_callable() {
            let meta = PyDict::new(py);
            for (parameter, value) in self.parameters.iter().zip(bound) {
                meta.set_item(&parameter.name, value)?;
            }
            made = grid.call1((meta,)).map_err(|e| self.unknown_in_grid(py, e))?;
            grid = &made;
        }
        let one = |value: &Bound<'_, PyAny>| -> PyResult<u32> {
            value.extract::<u32>().ok().filter(|&n| n <= MAX_GRID).ok_or_else(|| {
                let given = value.repr().map_or_else(|_| "that".to_string(), |r| r.to_string());
                let text = format!("a grid must consist of whole numbers from 0 to {MAX_GRID}, not {given}");
                PyValueError::new_err(shorten(&text).into_owned())
            })
        };
        let Ok(items) = grid.try_iter() else { return Ok([one(grid)?, 1, 1]) };
        let mut out = [1; 3];
        let mut count = 0;
        for item in items {
            if count == 3 {
                return Err(PyValueError::new_err("a grid can have at most three dimensions"));
            }
            out[count] = one(&item?)?;
            count += 1;
        }
        if count == 0 {
            return Err(PyValueError::new_err("a grid must have at least one dimension"));
        }
        Ok(out)
    }

    /// The name of the `at`-th run-time argument that has a slot.
    fn runtime_name(&self, py: Python<'_>, bound: &[Bound<'_, PyAny>], at: usize) -> String {
        let slots = self.parameters.iter().zip(bound).filter(|(p, v)| {
            let one = p.role == Role::Runtime && v.extract::<i64>().is_ok_and(|i| i == 1);
            p.role != Role::Constant && !v.is_none() && !one
        });
        slots.map(|(p, _)| p.name.bind(py).to_string()).nth(at).unwrap_or_default()
    }
}

/// The integers among an argument, or in the tuple or list that it is.
fn whole_numbers(value: &Bound<'_, PyAny>, found: &mut Vec<i64>) {
    if let Ok(tuple) = value.cast::<PyTuple>() {
        found.extend(tuple.iter().filter_map(|item| item.extract::<i64>().ok()));
    } else if let Ok(list) = value.cast::<PyList>() {
        found.extend(list.iter().filter_map(|item| item.extract::<i64>().ok()));
    } else if let Ok(number) = value.extract::<i64>() {
        found.push(number);
    }
}

/// An error about an argument, with the parameter's name before it.
fn named(py: Python<'_>, error: PyErr, name: &Py<PyString>) -> PyErr {
    let text = format!("the argument `{}`: {}", name.bind(py), error.value(py));
    PyErr::from_type(error.get_type(py), text)
}
