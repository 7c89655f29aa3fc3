//! Runs Kernel IR for kernels with one thread per block, as on a CPU: `run` executes a kernel, block after block.
//!
//! In: a [`Kernel`], the placed kernel that it was made from (for its sites), a [`Launch`], a memory and a host. Out:
//! the changed memory and the kernel's output, or a [`Trap`]. It is the [`machine`] with warps of one lane, and the
//! first error ends the run.
//!
//! ```text
//! x: f32x16 = load A[j]   -->   Load { dst: 40, lanes: 16, at: Memory(base: 3, index: slot 7) }
//! ```
//! Kernels of several threads are for [`sim`](super::sim).

#[cfg(test)]
mod tests;

use super::ir::Kernel;
use super::machine::{self, Quiet, Run, Schedule};
use crate::base::Code;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::Memory;
use crate::loops;

pub use super::machine::POISON;

/// Runs every block of the launch, or its `only_block`. `placed` is the kernel that `legalise` was given.
pub fn run(
    kernel: &Kernel,
    placed: &loops::ir::Kernel,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
) -> Result<(), Trap> {
    if kernel.threads != 1 {
        let message = format!(
            "the kernel `{}` has {} threads in a block; only the simulator runs blocks of several threads",
            kernel.name, kernel.threads
        );
        return Err(Trap::new(Code::InvalidIr, message));
    }
    let Some((launch, program)) = machine::prepare(kernel, launch)? else { return Ok(()) };
    let run = Run { program: &program, kernel, placed, launch: &launch, resident: None };
    machine::run::<1, Quiet>(run, memory, host, &mut Quiet, Schedule::plain())
}
