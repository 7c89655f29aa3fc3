//! The reference evaluator, which defines the meaning of a tile program.
//!
//! In: a verified module, an entry's name, a [`Launch`] and a memory. Out: the changed memory, the kernel's output, and
//! a [`Report`] with warnings, or a [`Trap`].
//!
//! ```text
//! let mut memory = VecMemory::new();
//! let a = memory.add("A", bytes);
//! eval::run(&module, "kernel", &Launch::new([4, 1, 1], vec![a]), &mut memory, &mut Silent)?;
//! ```
//!
//! Invariants:
//! * All other implementations are compared with this one, so it is written from the specification, one element at a
//!   time, and shares only the scalar arithmetic of `num` with the compiled code.
//! * Blocks are resumable states on an explicit stack. They run in slices: a block steps aside after an atomic or ordered
//!   access (grids of up to [`POLITE`] blocks) and after [`SLICE`] operations, so a block may wait for any other.
//!   `Launch::seed` picks another order.
//! * A result that the specification leaves undefined becomes poison, one origin per element; poison flows through pure
//!   operations and traps where it reaches memory, an address, a mask, a branch, a print or an assertion. The trap
//!   names the operation where the poison arose.
//! * `reduce` folds ascending from the first element, and its body takes (element, accumulator) for each operand; so does
//!   `scan`, whose official description lists the arguments in the same order.
//! * Memory for tiles and allocas is requested from the launch's budget before it is allocated.
//! * No malformed module makes it panic: an operation that the verifier would have refused traps with that reason.

mod access;
mod code;
mod contract;
mod control;
mod exec;
mod fold;
mod machine;
mod order;
mod race;
mod scalar;
mod shape;
mod value;
mod view;

#[cfg(test)]
mod tests;

pub use crate::base::host::{Host, Silent};
use crate::base::launch::{Launch, Trap};
use crate::base::memory::Memory;
use crate::base::{Code, Diagnostic};
use crate::cuda_tile::ir::Module;

/// The checks and limits of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Watch for races between blocks and for accesses without a token path.
    pub races: bool,
    /// The most operations to execute in total.
    pub fuel: Option<u64>,
    /// The addresses of the module's globals, in their order; empty: they are in memory of this run, with their initial
    /// values.
    pub globals: Vec<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options { races: true, fuel: None, globals: Vec::new() }
    }
}

/// The statistics and warnings of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    pub warnings: Vec<Diagnostic>,
    /// Blocks that ran.
    pub blocks: u64,
    /// Operations executed.
    pub steps: u64,
}

/// The number of operations that a block executes before another block gets its turn.
pub const SLICE: u32 = 4096;
/// The work, in operations and elements of results, between two checks if the run is to end.
pub const WORK: u64 = 1 << 16;
/// Grids of up to this many blocks switch at every atomic or ordered access.
pub const POLITE: u64 = 1024;

/// Runs an entry of a verified module with the default options.
pub fn run(
    module: &Module,
    entry: &str,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
) -> Result<Report, Trap> {
    run_with(module, entry, launch, memory, host, &Options::default())
}

/// Runs an entry of a verified module.
pub fn run_with(
    module: &Module,
    entry: &str,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
    options: &Options,
) -> Result<Report, Trap> {
    let refuse = |message: String| Trap { op: "entry".into(), ..Trap::new(Code::BadArgument, message) };
    let found = module.funcs.iter().position(|f| f.name == entry && f.kind == crate::cuda_tile::ir::FuncKind::Entry);
    let Some(func) = found else { return Err(refuse(format!("the module has no entry `{entry}`"))) };
    let params = module.funcs[func].params().len();
    let other = module.funcs[func].params().iter().position(|&p| module.funcs[func].tile_ty(p).is_none());
    if let Some(i) = other {
        return Err(refuse(format!("parameter {i} of entry `{entry}` is a token or a view, which no launch can pass")));
    }
    if launch.args.len() != params {
        return Err(refuse(format!("entry `{entry}` takes {params} arguments, but {} were given", launch.args.len())));
    }
    if launch.grid.contains(&0) {
        return Err(refuse("a grid dimension is zero".into()));
    }
    machine::Machine::new(module, launch, memory, host, options).run(func)
}
