//! The machine that executes Kernel IR: blocks of threads, whose warps take turns.
//!
//! In: a kernel, the placed kernel that it was made from, a launch, memory, a host, a [`Watch`] that observes the run,
//! and a [`Schedule`] that picks the next warp. Out: the changed memory, or the [`Trap`] that ended the run.
//!
//! * [`code`], [`compile`]: instructions over numbered slots    * [`ops`]: scalar operations in the lanes of a warp
//! * [`places`]: where accesses go                              * [`step`]: what an instruction does
//! * [`block`]: blocks under way and their turns                * [`sync`]: threads that wait for each other
//! * [`matrix`]: matrix operations of the lanes of a warp        * [`wgmma`], [`tcgen05`]: those of groups of warps
//! * [`flight`], [`tensor`], [`store`]: asynchronous copies       * [`mbarrier`]: barriers that count arrivals and bytes
//! * [`registers`]: what warps give each other                   * [`watch`]: who sees what happens
//! * [`schedule`]: the order of warps and lanes, and when copies land    * [`stall`]: blocks that go round for ever
//!
//! `W` is the lanes of a warp: 1 where blocks have one thread (`kernel::eval`), 32 on a GPU (`kernel::sim`). Lanes at
//! the same instruction run it together. A branch splits them into groups, which join again when one reaches the
//! instruction of another. A warp is therefore a few groups, each an instruction counter and a mask of lanes.
//!
//! Invariants:
//! * A slot holds one number for each lane, and an instruction changes those of its group alone.
//! * Scratch and shared memory hold [`POISON`] when a block begins.
//! * Accesses of a slot stay inside it: an access outside is reported to the watch, and if the watch lets it pass, it
//!   touches nothing.
//! * A block gives way at a `yield`, after atomics and ordered accesses, and after [`SLICE`](crate::loops::eval::SLICE)
//!   instructions. Blocks of kernels without those run one after the other.
//! * Nothing panics, whatever the kernel: behaviour that no well-formed kernel shows is a trap that says it is a bug.

mod block;
pub(super) mod code;
mod compile;
mod flight;
mod matrix;
mod mbarrier;
mod ops;
mod places;
mod registers;
mod schedule;
mod stall;
mod step;
mod store;
mod sync;
mod tcgen05;
mod tensor;
mod watch;
mod wgmma;

use super::ir::Kernel;
use crate::base::Code;
use crate::base::launch::{Launch, Trap};

pub(super) use block::{Run, run};
pub(super) use code::{At, NO_STATEMENT, Program};
pub use schedule::Policy;
pub(super) use schedule::Schedule;
pub(super) use watch::{
    Boxed, Columns, InTensor, Lacks, Landing, Left, Meeting, Missing, Outside, Place, Quiet, Scope, Stalled, Standing,
    Sync, Touch, Watch, What, Wrong,
};

/// Every byte of scratch and shared memory that was not written yet.
pub const POISON: u8 = 0xa5;

/// The grid of a run and its code; `None` where there is no block to run.
pub(super) fn prepare(kernel: &Kernel, launch: &Launch) -> Result<Option<(Launch, Program)>, Trap> {
    if launch.args.len() != kernel.params.len() {
        let message = format!(
            "the kernel has {} parameters, but {} arguments were given",
            kernel.params.len(),
            launch.args.len()
        );
        return Err(Trap::new(Code::BadArgument, message));
    }
    let Some(grid) = blocks(kernel, launch)? else { return Ok(None) };
    let program = compile::compile(kernel).map_err(|what| {
        Trap::new(Code::InvalidIr, format!("the kernel `{}` is not well-formed: {what}", kernel.name))
    })?;
    Ok(Some((Launch { grid, ..launch.clone() }, program)))
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
