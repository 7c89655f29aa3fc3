//! CUDA C++ from kernel IR: one translation unit that NVRTC compiles as it is, without includes.
//!
//! In: kernels whose statements are those of one thread, and a target. Out: a [`Unit`]: source, the entry of each
//! kernel, and the statement of each line; or a [`Refusal`] that names the statement without a form in CUDA.
//!
//! ```text
//! kernel scale(x: ptr<f32>, y: ptr<f32>, n: i32) threads 256 scratch 0 {        // kernel scale: 256 threads
//!   v: f32 = load x[bx*256 + tx] where bx*256 + tx < n                          extern "C" __global__ void
//!   w: f32 = mulf v, 2.0:f32                                                    __launch_bounds__(256) scale_kernel(...
//!   store y[bx*256 + tx] = w where bx*256 + tx < n                                float w = v * 2.0f;
//! }                                                                               ...
//! ```
//!
//! * [`function`]: whole kernels    * [`stmt`], [`access`], [`atomic`], [`copy`], [`tma`], [`matrix`], [`wgmma`], [`tcgen05`], [`printf`]: statements, a line each
//! * [`dialect`]: how CUDA spells what all languages share    * [`global`]: arrays that a module brings along
//!
//! Invariants:
//! 1. One statement, one line; loops and branches have a closing line too.
//! 2. Names of values are those of the kernel. Every other name in the source begins with `__`, is a word of C++ or has
//!    a type in it: no identifier of a kernel is any of these.
//! 3. The source computes the same as `num::eval`, except that arithmetic may give a NaN of any sign and payload in a
//!    kernel that does not look at bits of floats, and that an atomic addition of f32 in global memory may take
//!    subnormal numbers for zero, which is how the instruction works. This needs [`FLAGS`].
//! 4. An access of several elements is aligned to its size: the code that makes vectors ensures it.
//! 5. Pointers may alias. A parameter that is only read through is `const`, which promises nothing to the compiler.

mod access;
mod atomic;
mod copy;
mod dialect;
mod function;
mod global;
mod matrix;
mod printf;
mod stmt;
mod tcgen05;
#[cfg(test)]
mod tests;
mod tma;
mod wgmma;

use super::cstyle::support::Support;
use super::{Line, Refusal};
use crate::kernel::ir::{Ident, Idents, Kernel};
use crate::tile::target::{Capability, MatrixUnit, MemoryKind, Target, Transport};
pub use dialect::DIALECT;
use global::Globals;

/// Options of NVRTC without which the source would mean something else, or would not compile.
pub const FLAGS: [&str; 3] = ["--std=c++17", "--fmad=false", "--device-int128"];

/// Bytes of shared memory that a block can have without asking for more at its launch.
const STATIC_SHARED: u64 = 48 << 10;

/// A translation unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    pub text: String,
    /// One for each kernel, in order.
    pub entries: Vec<Entry>,
    /// The statement of each line of the text, in order; a line without a statement has no row.
    pub lines: Vec<Line>,
}

/// The facts that a launch of a kernel needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub name: Ident,
    pub threads: u32,
    /// Bytes of shared memory that the launch has to ask for; 0 where the kernel's are static.
    pub dynamic_shared: u64,
    /// The names of the kernel's globals in the source.
    pub globals: Vec<String>,
}

impl Unit {
    /// The statement that a line of the text is, or belongs to.
    pub fn statement(&self, line: u32) -> Option<Line> {
        let after = self.lines.partition_point(|l| l.line <= line);
        after.checked_sub(1).and_then(|at| self.lines.get(at)).copied()
    }
}

/// One translation unit with every kernel.
///
/// # Errors
/// Statements, types and sizes that have no form in CUDA yet, or that the target cannot hold.
pub fn emit(kernels: &[&Kernel], target: &Target) -> Result<Unit, Refusal> {
    let mut support = Support::new(&DIALECT, target.vector.bytes, true);
    let mut names = Idents::default();
    let mut globals = Globals::default();
    let mut functions = vec![];
    for (at, kernel) in kernels.iter().enumerate() {
        fits(kernel, target).map_err(|message| Refusal { kernel: at, statement: None, message })?;
        let name = names.fresh(&entry_name(kernel.name.as_str()));
        let called = kernel.globals.iter().map(|g| globals.name(g)).collect();
        let made = function::function(&mut support, kernel, name, called);
        functions.push(made.map_err(|(statement, message)| Refusal { kernel: at, statement, message })?);
    }
    let labels: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
    let mut text = format!("// Girih kernels: {}\n// nvcc {}\n", labels.join(", "), FLAGS.join(" "));
    let globals = globals.text(&mut support);
    for part in [support.text(), globals] {
        text.push_str(if part.is_empty() { "" } else { "\n" });
        text.push_str(&part);
    }
    let mut unit = Unit { text, entries: vec![], lines: vec![] };
    for (kernel, function) in functions.into_iter().enumerate() {
        unit.text.push('\n');
        let before = unit.text.lines().count() as u32;
        unit.text.push_str(&function.text);
        unit.entries.push(function.entry);
        let lines = function.lines.into_iter();
        unit.lines.extend(lines.map(|(line, statement)| Line { line: before + line, kernel, statement }));
    }
    Ok(unit)
}

/// The name of a kernel in the source. CUDA itself uses names like `exp` and `min`, but none that ends in `kernel`.
fn entry_name(label: &str) -> String {
    if label.ends_with("_kernel") { label.to_string() } else { format!("{label}_kernel") }
}

/// Checks that a GPU holds a block of the kernel: its threads and its shared memory. The error has the number and the
/// limit.
pub fn fits(kernel: &Kernel, target: &Target) -> Result<(), String> {
    let (threads, shared) = (target.axes.threads, target.bytes_of(MemoryKind::Shared));
    if shared == 0 {
        return Err(format!("CUDA needs a GPU as its target, such as sm_90a; found `{}`", target.name));
    }
    if kernel.threads > threads {
        return Err(format!("a block of {} threads; {} has blocks of at most {threads}", kernel.threads, target.name));
    }
    if kernel.threads > 1 && kernel.warp != target.axes.lanes {
        return Err(format!("warps of {} lanes; {} has warps of {}", kernel.warp, target.name, target.axes.lanes));
    }
    let (cluster, most) = (kernel.cluster, target.axes.cluster);
    if cluster > most {
        return Err(format!("clusters of {cluster} blocks; {} has none of more than {most}", target.name));
    }
    if (kernel.mbarriers() > 0 || !kernel.tensors.is_empty()) && !target.transports.contains(&Transport::Tma) {
        return Err(format!("a block has mbarriers and TMA; {} has neither", target.name));
    }
    if matrix::has_byte_floats(&kernel.body) && !target.has(Capability::ByteFloats) {
        return Err(format!("a block has products of f8; {} has none", target.name));
    }
    if wgmma::is_in(&kernel.body) && !target.matrix_units.contains(&MatrixUnit::Wgmma) {
        return Err(format!("a block has products of warpgroups; {} has none", target.name));
    }
    if wgmma::gives_registers(&kernel.body) && !target.has(Capability::WarpgroupProducts) {
        return Err(format!("warpgroups of a block exchange registers; {} has no such instruction", target.name));
    }
    if tcgen05::is_in(&kernel.body) && !target.has(Capability::TensorMemory) {
        return Err(format!("a block has products in tensor memory; {} has none", target.name));
    }
    if kernel.shared > shared {
        let (has, name) = (kernel.shared, target.name);
        return Err(format!("a block uses {has} bytes of shared memory; {name} gives a block at most {shared}"));
    }
    Ok(())
}
