//! `girih._girih`, the compiled part of the Python package `girih`.
//!
//! In: bytes, text and the arguments of a launch. Out: text, bytes, and arguments that cuTile accepts. Python code stays in
//! `python/girih`; here is code that must be fast or needs the compiler.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

mod alarm;
mod arrays;
mod device;
mod host;
mod interface;
mod jit;
mod launch;
mod model;
mod quick;
mod results;
mod tensors;
mod tools;

/// The version of this package.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Stops the launch that is running; it raises KeyboardInterrupt.
#[pyfunction]
fn stop_launch() {
    girih::stop_launch();
}

/// Refuses variables of the environment that make no sense, with a ValueError that names the variable.
#[pyfunction]
fn check_environment() -> PyResult<()> {
    girih::Options::from_env().map(drop).map_err(PyValueError::new_err)
}

/// Parses the value of a variable that means on or off; raises ValueError for any other.
#[pyfunction]
fn flag(text: &str) -> PyResult<bool> {
    girih::options::flag(text).map_err(PyValueError::new_err)
}

/// The bytes of a note beside the cache, by its name in there; None where there is none.
#[pyfunction]
fn read_note(name: PathBuf) -> Option<Vec<u8>> {
    girih::cache::read_note(&name)
}

/// Keeps a note beside the cache, whole or not at all. Where it cannot be kept, a RuntimeWarning follows the next launch.
#[pyfunction]
fn keep_note(name: PathBuf, bytes: &[u8]) {
    girih::cache::keep_note(&name, bytes);
}

/// The machine that a measurement depends on: this processor, its features and the threads of a launch.
#[pyfunction]
fn machine() -> PyResult<String> {
    let options = girih::Options::from_env().map_err(PyValueError::new_err)?.device(girih::Device::Cpu);
    Ok(girih::tune::machine(&options))
}

/// The processor's name, the instruction set features that matter, and for each number of threads the rates per second: operations
/// on f32, bytes, operations of products of bf16 and of int8.
#[pyfunction]
fn limits(py: Python<'_>, threads: Vec<u32>) -> (String, Vec<&'static str>, Vec<[f64; 4]>) {
    use girih::machine::{features, processor};
    let dir = girih::cache::default_dir();
    let of = |n: u32| girih::model::Limits::of(n, dir.as_deref());
    let found = py.detach(|| threads.into_iter().map(|n| of(n.clamp(1, 1024))).collect::<Vec<_>>());
    (processor(), features(), found.into_iter().map(|l| [l.flops, l.bytes, l.bf16, l.int8]).collect())
}

/// The memory bandwidth of `threads` threads by working-set size: the bytes touched and, by kind of traffic, bytes per second.
#[pyfunction]
fn bandwidths(py: Python<'_>, threads: u32) -> Vec<(u64, std::collections::BTreeMap<&'static str, f64>)> {
    use girih::model::{Bandwidth, bandwidth::KINDS};
    let dir = girih::cache::default_dir();
    let found = py.detach(|| Bandwidth::of(threads.clamp(1, 1024), dir.as_deref()));
    found.into_iter().map(|b| (b.bytes, KINDS.into_iter().zip(b.rates).collect())).collect()
}

/// A message in which long words and quotations lose their middle.
#[pyfunction]
fn shorten(message: &str) -> String {
    girih_compiler::base::words::shorten(message).into_owned()
}

#[pymodule]
fn _girih(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(check_environment, module)?)?;
    module.add_function(wrap_pyfunction!(flag, module)?)?;
    module.add_function(wrap_pyfunction!(shorten, module)?)?;
    module.add_function(wrap_pyfunction!(read_note, module)?)?;
    module.add_function(wrap_pyfunction!(keep_note, module)?)?;
    module.add_function(wrap_pyfunction!(machine, module)?)?;
    module.add_function(wrap_pyfunction!(limits, module)?)?;
    module.add_function(wrap_pyfunction!(bandwidths, module)?)?;
    module.add_function(wrap_pyfunction!(tools::assemble, module)?)?;
    module.add_function(wrap_pyfunction!(tools::check, module)?)?;
    module.add_function(wrap_pyfunction!(tools::disassemble, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::prepare, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::relabel, module)?)?;
    module.add_function(wrap_pyfunction!(model::torch_operations, module)?)?;
    module.add_function(wrap_pyfunction!(model::torch_refusals, module)?)?;
    module.add_function(wrap_pyfunction!(host::driver_host, module)?)?;
    module.add_function(wrap_pyfunction!(device::described, module)?)?;
    module.add_function(wrap_pyfunction!(device::synchronize, module)?)?;
    module.add_class::<device::DeviceMemory>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<model::OnnxModel>()?;
    module.add_class::<quick::Quick>()?;
    module.add_class::<quick::QuickOnDevice>()?;
    module.add_class::<tensors::Tensors>()?;
    module.add_class::<results::Results>()?;
    module.add_class::<results::Memory>()?;
    module.add_class::<alarm::Alarm>()?;
    module.add_class::<launch::Launcher>()?;
    module.add_class::<arrays::DeviceArray>()?;
    module.add_function(wrap_pyfunction!(stop_launch, module)?)?;
    module.add_class::<jit::Dispatcher>()?;
    module.add_class::<jit::OverGrid>()?;
    module.add_class::<jit::Quiet>()?;
    module.add_class::<jit::Choices>()?;
    module.add_class::<jit::Kernel>()?;
    Ok(())
}
