//! The meaning of Loop IR and Tile IR: `run` executes a kernel over a grid.
//!
//! In: a [`Kernel`], a [`Launch`], a memory and a host. Out: the changed memory and the kernel's output, or a [`Trap`].
//! The tree is compiled once into a list of instructions over numbered slots ([`code`]); a block is an instruction
//! counter, its slots and its buffers ([`machine`]), so it can stop anywhere and go on later.
//!
//! Invariants:
//! * Placement changes nothing except as `Combine` says: a `Vector` reduce loop computes the fixed tree stated there, a
//!   `Stage` declares and fills its buffer.
//! * A kernel with atomics or ordered accesses has up to [`WINDOW`] blocks under way at once, claimed in linear order,
//!   each giving way after an atomic or ordered access and after [`SLICE`] instructions. Other kernels run block after
//!   block.
//! * The memory of buffers and allocas is charged to the launch's budget before it is allocated.
//! * A local element never written since its `local` reads as 0. No kernel makes it panic: a broken one traps.

pub mod access;
pub mod blocks;
mod code;
pub mod expr;
mod machine;
#[cfg(test)]
mod tests;

use crate::base::Code;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::Memory;

use super::ir::Kernel;

pub use blocks::{SLICE, WINDOW};

/// Runs every block of the launch, or its `only_block`.
pub fn run(kernel: &Kernel, launch: &Launch, memory: &mut dyn Memory, host: &mut dyn Host) -> Result<(), Trap> {
    if launch.args.len() != kernel.params.len() {
        let message = format!(
            "the kernel has {} parameters, but {} arguments were given",
            kernel.params.len(),
            launch.args.len()
        );
        return Err(trap(Code::BadArgument, message));
    }
    let program = code::compile(kernel).map_err(|what| {
        let message = format!("the kernel `{}` is not well-formed: {what}", kernel.name);
        trap(Code::InvalidIr, message)
    })?;
    machine::run(&program, kernel, launch, memory, host)
}

fn trap(code: Code, message: String) -> Trap {
    Trap::new(code, message)
}
