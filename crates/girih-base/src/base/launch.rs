//! A launch, that is a grid and one 64-bit slot per entry parameter; and the trap that stops a kernel.

use super::label::visible_lines;
use super::{Budget, Code, Frames, Location, Span};

/// The parameters of a kernel's launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Blocks along x, y and z; each at least 1.
    pub grid: [u32; 3],
    /// One slot per entry parameter: the bits of a scalar (zero-extended), or an address.
    pub args: Vec<u64>,
    /// The addresses of the kernel's globals, in their order; Kernel IR places globals without an address in memory of
    /// the run.
    pub globals: Vec<u64>,
    /// Seed of the order in which the evaluator runs blocks; 0 is round-robin.
    pub seed: u64,
    /// Run this one block only.
    pub only_block: Option<[u32; 3]>,
    /// Run this number of blocks alone, spread evenly over the grid, unless blocks may wait for each other.
    pub sample: Option<u64>,
    /// The memory that an evaluator may take for tiles, buffers and allocas.
    pub budget: Budget,
}

impl Launch {
    pub fn new(grid: [u32; 3], args: Vec<u64>) -> Launch {
        Launch { grid, args, globals: vec![], seed: 0, only_block: None, sample: None, budget: Budget::default() }
    }
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&g| g as u64).product()
    }
}

/// The facts that may be assumed about a launch; the runtime tests them and picks the version that fits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Assumptions {
    /// Index arithmetic does not wrap (its obligations hold for this grid and these arguments).
    pub no_wrap: bool,
    /// Buffers passed as distinct pointer arguments do not overlap.
    pub no_alias: bool,
}

/// The reason why a kernel stopped. Rare parts are boxed: every step of an evaluator may return a trap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trap {
    pub code: Code,
    /// One plain sentence.
    pub message: String,
    /// The operation's place in the source.
    pub span: Option<Span>,
    /// The operation's name, such as `load_ptr_tko`.
    pub op: String,
    pub block: [u32; 3],
    /// The element within the tile, if it is known.
    pub element: Option<Vec<u64>>,
    /// The places in the user's files that the operation comes from, innermost first; empty if they are not known.
    pub frames: Box<Frames>,
    /// The operation that used an undefined value; `op` is then the operation that made it.
    pub user: Option<Box<User>>,
}

/// An operation that used the result of another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub op: String,
    pub span: Option<Span>,
    pub frames: Frames,
}

impl Trap {
    /// A trap with nothing but a reason.
    pub fn new(code: Code, message: impl Into<String>) -> Trap {
        Trap {
            code,
            message: visible_lines(&message.into()).into_owned(),
            span: None,
            op: String::new(),
            block: [0; 3],
            element: None,
            frames: Box::default(),
            user: None,
        }
    }

    /// The innermost place in the user's files, if it is known.
    pub fn place(&self) -> Option<&Location> {
        self.frames.first().map(|f| &f.place)
    }
}
