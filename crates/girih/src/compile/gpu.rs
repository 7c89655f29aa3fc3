//! A kernel's CUDA, PTX and SASS, the latter from NVIDIA's compiler and disassembler.

use girih_compiler::emit::cuda::Unit;
use girih_compiler::kernel::ir::Kernel;
use girih_compiler::pipeline::{self, Stage};
use girih_compiler::tile::target::{Capability, Target};

use crate::cuda::{self, Object, Places, Toolchain};
use crate::error::{Error, Result};

/// The text of kernels at a stage below kernel IR: the target's source, or the output of its compiler.
pub(crate) fn text(stage: Stage, kernels: &[&Kernel], target: &Target) -> Result<String> {
    let threads = target.has(Capability::Threads);
    match stage {
        Stage::Cuda | Stage::Ptx | Stage::Sass if threads => {}
        Stage::Cuda | Stage::Ptx | Stage::Sass => {
            return Err(Error::argument(format!(
                "stage `{}` needs a GPU target, but the target is `{}`; name one: --target sm_90a",
                stage.name(),
                target.name
            )));
        }
        _ if threads => {
            return Err(Error::argument(format!("the source for {} is CUDA: --ir cuda", target.name)));
        }
        _ => {
            let unit = pipeline::emit_c(kernels, target);
            return unit.map(|unit| unit.text).map_err(|d| Error::Program(vec![d]));
        }
    }
    let unit = pipeline::emit_cuda(kernels, target).map_err(|d| Error::Program(vec![d]))?;
    if stage == Stage::Cuda {
        return Ok(unit.text);
    }
    let toolchain = Toolchain::find(&Places::from_environment())?;
    let object = object(&toolchain, &unit, kernels, target)?;
    match stage {
        Stage::Ptx => Ok(object.ptx),
        _ => Ok(toolchain.sass(&object)?.text),
    }
}

/// The machine code of a unit.
///
/// # Errors
/// [`cuda::Error::Missing`] without NVRTC.
pub(crate) fn cubin(unit: &Unit, kernels: &[&Kernel], target: &Target) -> Result<Vec<u8>> {
    let toolchain = Toolchain::find(&Places::from_environment())?;
    Ok(object(&toolchain, unit, kernels, target)?.cubin)
}

/// The machine code of a unit; the compiler's messages on its lines also name the kernels' statements.
fn object(toolchain: &Toolchain, unit: &Unit, kernels: &[&Kernel], target: &Target) -> Result<Object> {
    let compiled = toolchain.compile(unit, target.name);
    Ok(compiled.map_err(|e| match e {
        cuda::Error::Rejected { target, log } => {
            cuda::Error::Rejected { target, log: cuda::explain(&log, unit, kernels) }
        }
        other => other,
    })?)
}

/// The registers, memory and occupancy of each kernel on a multiprocessor, as a table.
pub(crate) fn resources(kernels: &[&Kernel], target: &Target) -> Result<String> {
    if !target.has(Capability::Threads) {
        let message =
            format!("`--resources` needs a GPU target, but the target is `{}`; name one: --target sm_90a", target.name);
        return Err(Error::argument(message));
    }
    let unit = pipeline::emit_cuda(kernels, target).map_err(|d| Error::Program(vec![d]))?;
    let toolchain = Toolchain::find(&Places::from_environment())?;
    let object = object(&toolchain, &unit, kernels, target)?;
    let mut out = String::new();
    for (entry, kernel) in unit.entries.iter().zip(kernels) {
        let Some(needs) = object.kernels.iter().find(|k| k.name == entry.name.as_str()) else {
            return Err(Error::Internal(format!("NVRTC says nothing of the entry {}", entry.name)));
        };
        let shared = u64::from(needs.shared) + entry.dynamic_shared;
        out += &format!("{} for {}: {} threads a block\n", kernel.name, target.name, entry.threads);
        out += &format!("  registers      {} a thread\n", needs.registers);
        out += &format!("  spills         {} bytes stored, {} bytes loaded\n", needs.spill_stores, needs.spill_loads);
        out += &format!("  local memory   {} bytes a thread\n", needs.stack);
        out += &format!("  shared memory  {shared} bytes a block\n");
        if let Some(occupancy) = cuda::occupancy(target.name, needs, entry.threads, entry.dynamic_shared as u32) {
            out += &format!("  occupancy      {occupancy}\n");
        }
    }
    Ok(out)
}
