//! One specialisation of a kernel: its Tile IR, its stages, and its launches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use girih::{Device, Inspect, Options, PrintOrder, Program, RawArgs, Stage};
use girih_compiler::base::location::Frame;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::cuda_tile::bytecode::Version;
use girih_compiler::pipeline::trace::Trace;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::host;

/// A kernel in Tile IR, compiled when it is first launched.
#[pyclass(frozen, module = "girih._girih")]
pub struct Kernel {
    kernel: Arc<girih::Kernel<'static>>,
    program: Arc<Program>,
    writes: OnceLock<Vec<bool>>,
    /// Makes the exception of a failure: `(code, message, frames, block)`.
    error: Py<PyAny>,
    /// Reports a launch's findings to the user: `(code, message, notes, help, frames)`.
    warn: Option<Py<PyAny>>,
    /// The axes of the grid that the kernel does not read, and whose blocks were not reported yet.
    unread: [AtomicBool; 3],
    /// The exception that was raised where the kernel printed; it stops the launch.
    raised: Raised,
}

type Raised = Arc<Mutex<Option<PyErr>>>;

impl Kernel {
    /// An exception for a failure of the compiler or of a launch.
    fn raise(&self, py: Python<'_>, error: girih::Error) -> PyErr {
        raise(py, &self.error, error)
    }

    /// For each of the kernel's parameters, whether the kernel writes through it; asks the compiler once.
    pub fn writes(&self, py: Python<'_>) -> PyResult<&[bool]> {
        if self.writes.get().is_none() {
            let writes = host::run(py, |e| self.raise(py, e), || self.kernel.writes())?;
            // Another thread may have been first, with the same answer.
            let _ = self.writes.set(writes);
        }
        Ok(self.writes.get().map_or(&[], Vec::as_slice))
    }

    pub fn is_on_cuda(&self) -> bool {
        self.kernel.options().device == Device::Cuda
    }

    pub fn is_checked(&self) -> bool {
        self.kernel.options().check
    }

    /// Runs the kernel and waits; on a CUDA stream it only begins.
    ///
    /// # Safety
    /// The memory that `args` describes stays valid until this returns.
    pub unsafe fn run(&self, py: Python<'_>, grid: [u32; 3], args: RawArgs) -> PyResult<()> {
        // SAFETY: the caller's word.
        let outcome = host::run(py, |e| self.raise(py, e), || unsafe { self.kernel.launch_raw(grid, args) });
        if let Some(raised) = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(raised);
        }
        outcome?.warnings.iter().try_for_each(|found| self.warn_of(py, found))
    }

    /// A Python warning if blocks along an axis do the same, for the first launch with such a grid.
    pub fn warn_of_grid(&self, py: Python<'_>, grid: [u32; 3]) -> PyResult<()> {
        for (axis, (unread, blocks)) in self.unread.iter().zip(grid).enumerate() {
            if blocks < 2 || !unread.load(Ordering::Relaxed) || !unread.swap(false, Ordering::Relaxed) {
                continue;
            }
            let message = format!(
                "the grid has {blocks} blocks along axis {axis}, but `{}` does not read `program_id({axis})`: they all do the same",
                self.kernel.name()
            );
            let help = "a grid counts blocks, not threads: each block computes whole tiles";
            self.warn_of(py, &Diagnostic::warning(Code::UnreadAxis, message).help(help))?;
        }
        Ok(())
    }

    /// A Python warning for a launch's finding; an error where the user's filters make it one.
    fn warn_of(&self, py: Python<'_>, found: &Diagnostic) -> PyResult<()> {
        let Some(warn) = &self.warn else { return Ok(()) };
        let notes: Vec<&str> = found.labels.iter().map(|(_, text)| text.as_str()).collect();
        let said = (found.code.text(), &found.message, notes, found.help.as_deref(), spelled(&found.frames));
        warn.bind(py).call1(said).map(drop)
    }
}

/// Frames as Python takes them, innermost first: file, line, column, function.
fn spelled(frames: &[Frame]) -> Vec<(String, u32, u32, Option<String>)> {
    let one = |f: &Frame| {
        (f.place.file.to_string(), f.place.line, f.place.column, f.function.as_ref().map(ToString::to_string))
    };
    frames.iter().map(one).collect()
}

/// The message of a diagnostic. A kernel that uses something Girih does not have learns what to write instead.
fn told(d: &Diagnostic) -> String {
    match (d.code, &d.help) {
        (Code::UnknownOp | Code::UnknownType, Some(help)) => format!("{}; {help}", d.message),
        _ => d.message.clone(),
    }
}

/// An exception for a failure; `make` turns its parts into one.
fn raise(py: Python<'_>, make: &Py<PyAny>, error: girih::Error) -> PyErr {
    if let girih::Error::Interrupted = error {
        return PyKeyboardInterrupt::new_err(());
    }
    let frames = spelled(error.frames());
    let message = match &error {
        girih::Error::Program(diagnostics) => diagnostics.iter().map(told).collect::<Vec<_>>().join("\n"),
        other => match other.help("check=True") {
            Some(help) => format!("{other}; {help}"),
            None => other.to_string(),
        },
    };
    let block = error.trap().map(|t| t.block);
    match make.bind(py).call1((error.code().map(|c| c.text()), message, frames, block)) {
        Ok(exception) => PyErr::from_value(exception),
        Err(e) => e,
    }
}

fn stage(name: &str) -> PyResult<Stage> {
    Stage::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| {
        let names: Vec<&str> = Stage::PROGRAM.iter().map(|s| s.name()).collect();
        PyValueError::new_err(format!("unknown stage {name:?}; the stages are {}", names.join(", ")))
    })
}

/// The options of a launch: the environment's, then those given.
fn options(given: &Bound<'_, PyDict>, raised: &Raised) -> PyResult<Options> {
    let mut options = Options::from_env().map_err(PyValueError::new_err)?;
    for (key, value) in given {
        let key: String = key.extract()?;
        match key.as_str() {
            "device" => {
                let name: String = value.extract()?;
                options.device = name.parse::<Device>().map_err(PyValueError::new_err)?;
            }
            "check" => options.check = value.extract()?,
            "threads" => {
                let text = value.str()?;
                let threads = girih::options::threads(&text.to_string_lossy());
                options.threads = Some(threads.map_err(|e| PyValueError::new_err(format!("threads: {e}")))?);
            }
            // `Kernel::new` takes them for itself.
            "warn" | "unread" => {}
            "knobs" => options.knobs = value.extract()?,
            "printer" => {
                let write: Py<PyAny> = value.unbind();
                let raised = raised.clone();
                options.print_order = PrintOrder::AtOnce;
                options.printer = Some(Arc::new(move |block, text| {
                    Python::attach(|py| {
                        if let Err(e) = write.bind(py).call1((block, text)) {
                            raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                            girih::stop_launch();
                        }
                    });
                }));
            }
            other => return Err(PyValueError::new_err(format!("unknown option {other:?}"))),
        }
    }
    Ok(options)
}

#[pymethods]
impl Kernel {
    /// The kernel `entry` of a Tile IR text; `error(code, message, frames, block)` makes exceptions.
    #[new]
    fn new(py: Python<'_>, text: &str, entry: &str, given: &Bound<'_, PyDict>, error: Py<PyAny>) -> PyResult<Kernel> {
        let raised = Raised::default();
        let options = options(given, &raised)?;
        let warn = given.get_item("warn")?.map(Bound::unbind);
        let unread: [bool; 3] = given.get_item("unread")?.map_or(Ok([false; 3]), |u| u.extract())?;
        let unread = unread.map(AtomicBool::new);
        let made = py.detach(|| {
            let program = Arc::new(Program::from_text(text)?);
            let kernel = Arc::new(program.shared_entry(entry)?.with_options(options));
            Ok((program, kernel))
        });
        match made {
            Ok((program, kernel)) => {
                Ok(Kernel { kernel, program, writes: OnceLock::new(), error, warn, unread, raised })
            }
            Err(e) => Err(raise(py, &error, e)),
        }
    }

    /// Compiles the kernel, so that its first launch only runs.
    fn compile(&self, py: Python<'_>) -> PyResult<()> {
        host::run(py, |e| self.raise(py, e), || self.kernel.compile())
    }

    /// The kernel's text at a stage.
    fn ir(&self, py: Python<'_>, stage_name: &str) -> PyResult<String> {
        let stage = stage(stage_name)?;
        py.detach(|| self.kernel.ir(stage)).map_err(|e| self.raise(py, e))
    }

    /// Every rule that was applied; with `full`, as diffs, and every refusal with its reason.
    fn explain(&self, py: Python<'_>, full: bool) -> PyResult<String> {
        let mut trace = Trace::new(full);
        py.detach(|| self.kernel.observe(&mut trace)).map_err(|e| self.raise(py, e))?;
        Ok(trace.text)
    }

    /// The page of the compilation, with this title; `text` is the file that the kernel was traced from.
    fn page(&self, py: Python<'_>, title: &str, file: &str, text: &str) -> PyResult<String> {
        let mut explained = py.detach(|| self.kernel.explain_with_assembly()).map_err(|e| self.raise(py, e))?;
        explained.add_python(self.kernel.program().module(), text, |name| name == file);
        Ok(girih_page::explain::page(title, &explained, None))
    }

    /// The kernel as Tile IR bytecode of a version such as "13.3", or of the oldest that can express it.
    fn bytecode<'py>(&self, py: Python<'py>, version: Option<&str>) -> PyResult<Bound<'py, PyBytes>> {
        let named = |v: &str| {
            Version::from_name(v).ok_or_else(|| PyValueError::new_err(format!("unknown bytecode version {v:?}")))
        };
        let version = version.map(named).transpose()?;
        let (bytes, _) = py.detach(|| self.program.bytecode(version)).map_err(|e| self.raise(py, e))?;
        Ok(PyBytes::new(py, &bytes))
    }
}
