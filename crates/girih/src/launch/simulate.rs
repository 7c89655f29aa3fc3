//! A lowered kernel on the simulator of a GPU.
//!
//! In: a kernel lowered for a target with threads, a launch, its memory. Out: the memory changed; an error where the
//! simulator found anything wrong.

use girih_compiler::base::host::Host;
use girih_compiler::base::launch::{Launch, Trap};
use girih_compiler::base::memory::Memory;
use girih_compiler::kernel::sim;
use girih_compiler::pipeline::Lowered;

use crate::options::Options;

/// Runs a launch under the schedule that the options' seed means.
pub(crate) fn kernel(
    lowered: &Lowered,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
    options: &Options,
) -> Result<(), Trap> {
    let options = sim::Options::of_seed(options.seed);
    sim::run(&lowered.kernel, &lowered.tile, launch, memory, host, &options)?.clean().map(drop)
}
