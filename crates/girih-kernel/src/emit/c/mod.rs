//! GNU C from kernel IR: one self-contained translation unit.
//!
//! In: kernels. Out: C that gcc 12 and clang accept with vector extensions, including nothing but `<stdint.h>`; kernel n
//! is `girih_<n>`, described by `girih_<n>_meta`. `v: f32 = addf.. x, y` prints as `f32 v = x + y;`.
//!
//! * [`function`]: whole kernels    * [`parts`]: large kernels as several functions    * [`stmt`], [`access`]: statements    * [`dialect`]: how C spells what all languages share
//!
//! A user's text never reaches the C: a kernel holds names as identifiers made by us, and the user's own names as
//! labels that are safe in a comment. Formats and messages stay with the process that runs the kernel, which finds them
//! by site.
//!
//! NaNs: arithmetic may give a NaN of any sign and payload where the evaluator gives the canonical one (tests compare
//! NaNs as equal), except in a kernel that looks at the bits of an f32 or f64: there every result that is
//! NaN is made canonical. f16, bf16 and narrower results always are.

mod access;
mod dialect;
mod function;
mod gather;
mod parts;
mod stmt;
mod amx;
#[cfg(test)]
mod tests;

use super::cstyle::support::Support;
use super::{Line, Lined, Refusal};
use crate::kernel::ir::Kernel;
use crate::tile::target::Target;
pub use dialect::DIALECT;
use function::{Callers, Form};
pub use parts::Limits;

/// The version of the calling convention below.
pub const ABI: u32 = 2;

const HEADER: &str = r#"#include <stdint.h>
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"

typedef struct girih_ctx girih_ctx;
struct girih_ctx {
  int64_t grid[3];
  void *scratch;
  const volatile int32_t *abort;
  void *const *globals;
  const int64_t *extent;
  void *host;
  void (*trap)(girih_ctx *, int32_t site, int32_t kind, int64_t block, int64_t element, int64_t value);
  void (*print)(girih_ctx *, int32_t site, int64_t block, const void *const *args);
  void (*yield)(girih_ctx *, int32_t site, int64_t block);
  int32_t (*check)(girih_ctx *, uint64_t addr, int64_t len);
  int32_t (*stop)(girih_ctx *);
};
typedef struct girih_args { uint64_t slot[1]; } girih_args;
typedef struct girih_meta { uint32_t abi; uint32_t nparams; uint64_t scratch; } girih_meta;

"#;

/// One translation unit with every kernel, exported, and the statement of each of its lines.
///
/// # Errors
/// Kernels of several threads, and statements that only such kernels have.
pub fn emit(kernels: &[&Kernel], target: &Target) -> Result<Lined, Refusal> {
    emit_cut(kernels, target, Limits::default())
}

/// The same, with kernels above other limits in parts: tests cut small kernels.
///
/// # Errors
/// As [`emit`].
pub fn emit_cut(kernels: &[&Kernel], target: &Target, limits: Limits) -> Result<Lined, Refusal> {
    unit(kernels, target, Form { callers: Callers::Outside, limits })
}

/// The same for callers in the same unit.
///
/// # Errors
/// As [`emit`].
pub fn emit_library(kernels: &[&Kernel], target: &Target) -> Result<String, Refusal> {
    unit(kernels, target, Form { callers: Callers::Inside, limits: Limits::default() }).map(|unit| unit.text)
}

fn unit(kernels: &[&Kernel], target: &Target, form: Form) -> Result<Lined, Refusal> {
    let mut support = Support::new(&DIALECT, target.vector.bytes, target.vector.fma);
    let mut bodies = vec![];
    for (kernel, k) in kernels.iter().enumerate() {
        let made = function::function(&mut support, k, kernel, form);
        bodies.push(made.map_err(|(statement, message)| Refusal { kernel, statement, message })?);
    }
    let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
    let mut out = format!("// Girih kernels: {}\n", names.join(", "));
    out.push_str(HEADER);
    out.push_str(&support.text());
    let mut lines = vec![];
    for (kernel, (body, own)) in bodies.into_iter().enumerate() {
        out.push('\n');
        let before = out.lines().count() as u32;
        out.push_str(&body);
        lines.extend(own.into_iter().map(|(line, statement)| Line { line: before + line, kernel, statement }));
    }
    Ok(Lined { text: out, lines })
}
