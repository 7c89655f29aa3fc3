//! The last stage: the source text of kernels, for a CPU or a GPU.

use crate::base::{Code, Diagnostic};
use crate::tile::target::Target;
use crate::{emit, kernel};

/// The C of several kernels as one translation unit, with its lines; kernel `n` is exported as `girih_<n>`.
///
/// # Errors
/// A kernel of several threads, or a statement that only such kernels have.
pub fn emit_c(kernels: &[&kernel::ir::Kernel], target: &Target) -> Result<emit::Lined, Diagnostic> {
    emit::c::emit(kernels, target).map_err(|refusal| no_source("C", kernels, &refusal))
}

/// The same for code that calls the kernels and follows in the same text: the functions are private to it.
///
/// # Errors
/// As [`emit_c`].
pub fn emit_library(kernels: &[&kernel::ir::Kernel], target: &Target) -> Result<String, Diagnostic> {
    emit::c::emit_library(kernels, target).map_err(|refusal| no_source("C", kernels, &refusal))
}

/// The CUDA C++ of several kernels as one translation unit.
///
/// # Errors
/// A statement without a form in CUDA, or sizes that the target does not hold.
pub fn emit_cuda(kernels: &[&kernel::ir::Kernel], target: &Target) -> Result<emit::cuda::Unit, Diagnostic> {
    emit::cuda::emit(kernels, target).map_err(|refusal| no_source("CUDA", kernels, &refusal))
}

fn no_source(language: &str, kernels: &[&kernel::ir::Kernel], refusal: &emit::Refusal) -> Diagnostic {
    let name = kernels.get(refusal.kernel).map_or("?", |k| k.name.as_str());
    Diagnostic::error(Code::CannotLower, format!("kernel `{name}` has no {language}: {}", refusal.message))
}
