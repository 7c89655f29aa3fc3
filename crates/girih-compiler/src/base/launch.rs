//! A launch: a grid and one 64-bit slot per entry parameter.

/// What a kernel is launched with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Blocks along x, y and z; each at least 1.
    pub grid: [u32; 3],
    /// One slot per entry parameter: the bits of a scalar (zero-extended), or an address.
    pub args: Vec<u64>,
    /// Seed of the order in which the evaluator runs blocks; 0 is round-robin.
    pub seed: u64,
    /// Run this one block only.
    pub only_block: Option<[u32; 3]>,
}

impl Launch {
    pub fn new(grid: [u32; 3], args: Vec<u64>) -> Launch {
        Launch { grid, args, seed: 0, only_block: None }
    }
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&g| g as u64).product()
    }
}

/// Why a kernel stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trap {
    pub code: super::Code,
    /// One plain sentence.
    pub message: String,
    /// The operation's place in the source.
    pub span: Option<super::Span>,
    /// The operation's name, such as `load_ptr_tko`.
    pub op: String,
    pub block: [u32; 3],
    /// The element within the tile, where one is known.
    pub element: Option<Vec<u64>>,
}
