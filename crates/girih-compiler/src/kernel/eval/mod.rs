//! What kernel IR means: `run` executes a kernel, block after block, as one thread does.
//!
//! In: a [`Kernel`], the placed kernel that it was made of (for its globals, the formats of prints, and sites), a
//! [`Launch`], a memory and a host. Out: the memory changed and what the kernel printed, or a [`Trap`]. The statements
//! are compiled once into a list of instructions over numbered slots, one for each lane of a value ([`code`]); a block is
//! an instruction counter, its slots and its scratch memory ([`machine`]).
//!
//! ```text
//! x: f32x16 = load A[j]   -->   Load { dst: 40, lanes: 16, at: Memory(base: 3, index: slot 7) }
//! ```
//! Invariants:
//! * Scratch memory holds [`POISON`] when a block begins, so that a read of what was not written shows.
//! * Reads and writes of a slot stay inside it. That, and whatever else no kernel of `legalise` does, is a trap that says
//!   it is a bug; nothing panics.
//! * A block gives way at a `yield`, after atomics and ordered accesses, and after
//!   [`SLICE`](crate::loops::eval::SLICE) instructions. Blocks of kernels without those run one after the other.

mod code;
mod compile;
mod machine;
#[cfg(test)]
mod tests;

use super::ir::Kernel;
use crate::base::Code;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::Memory;
use crate::loops;

/// Every byte of scratch memory that was not written yet.
pub const POISON: u8 = 0xa5;

/// Runs every block of the launch, or its `only_block`. `placed` is the kernel that `legalise` was given.
pub fn run(
    kernel: &Kernel,
    placed: &loops::ir::Kernel,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
) -> Result<(), Trap> {
    if launch.args.len() != kernel.params.len() {
        let message = format!(
            "the kernel has {} parameters, but {} arguments were given",
            kernel.params.len(),
            launch.args.len()
        );
        return Err(Trap::new(Code::BadArgument, message));
    }
    if kernel.threads != 1 {
        let message = format!(
            "the kernel `{}` has {} threads in a block; this evaluator runs blocks of one thread",
            kernel.name, kernel.threads
        );
        return Err(Trap::new(Code::InvalidIr, message));
    }
    let Some(grid) = blocks(kernel, launch)? else { return Ok(()) };
    let launch = &Launch { grid, ..launch.clone() };
    let program = compile::compile(kernel, placed).map_err(|what| {
        Trap::new(Code::InvalidIr, format!("the kernel `{}` is not well-formed: {what}", kernel.name))
    })?;
    machine::run(&program, kernel, placed, launch, memory, host)
}

/// The grid of a run: the kernel's own, or the launch's; `None` where there is no block to run.
fn blocks(kernel: &Kernel, launch: &Launch) -> Result<Option<[u32; 3]>, Trap> {
    let Some(own) = kernel.blocks(&launch.args) else { return Ok(Some(launch.grid)) };
    let mut grid = [0; 3];
    for (to, n) in grid.iter_mut().zip(own) {
        *to = u32::try_from(n.max(0)).map_err(|_| Trap::new(Code::BadGrid, format!("a grid of {n} blocks")))?;
    }
    Ok((!grid.contains(&0)).then_some(grid))
}
