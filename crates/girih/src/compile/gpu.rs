//! A kernel's CUDA, and what NVIDIA's compiler and disassembler make of it.

use girih_compiler::kernel::ir::Kernel;
use girih_compiler::pipeline::{self, Stage};
use girih_compiler::tile::target::{Capability, Target};

use crate::cuda::{self, Places, Toolchain};
use crate::error::{Error, Result};

/// The text of kernels at a stage below kernel IR: the source that the target gets, or what is made of that.
pub(crate) fn text(stage: Stage, kernels: &[&Kernel], target: &Target) -> Result<String> {
    let threads = target.has(Capability::Threads);
    match stage {
        Stage::Cuda | Stage::Ptx | Stage::Sass if threads => {}
        Stage::Cuda | Stage::Ptx | Stage::Sass => {
            return Err(Error::argument(format!(
                "the stage {} is of GPUs, and the target is {}; name one: --target sm_90a",
                stage.name(),
                target.name
            )));
        }
        _ if threads => {
            return Err(Error::argument(format!("the source for {} is CUDA: --ir cuda", target.name)));
        }
        _ => return Ok(pipeline::emit_c(kernels, target)),
    }
    let unit = pipeline::emit_cuda(kernels, target).map_err(|d| Error::Program(vec![d]))?;
    if stage == Stage::Cuda {
        return Ok(unit.text);
    }
    let toolchain = Toolchain::find(&Places::from_environment())?;
    let object = toolchain.compile(&unit, target.name).map_err(|e| match e {
        cuda::Error::Rejected { target, log } => {
            cuda::Error::Rejected { target, log: cuda::explain(&log, &unit, kernels) }
        }
        other => other,
    })?;
    match stage {
        Stage::Ptx => Ok(object.ptx),
        _ => Ok(toolchain.sass(&object)?.text),
    }
}
