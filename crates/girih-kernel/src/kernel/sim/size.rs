//! Predicts, before a simulation begins, how long it will take.
//!
//! In: a kernel and a launch. Out: the [`Size`]: how many statements all threads together will run, near enough to decide
//! whether to wait.
//!
//! ```text
//! for i in 0..8 step 1 { ... two statements ... }     -->  8 blocks x 128 threads x (9 + 8*2) = 25600, and what is around
//! ```
//!
//! One block in the middle of the grid stands for all blocks, and some of its threads for the others. A loop that
//! depends on outer loops is counted at their middle iteration. Loops and branches that depend on memory cannot be
//! decided from the kernel's numbers: such a loop counts once, such a branch counts as its longer side, and the size is
//! then [`Size::at_least`].

use std::collections::BTreeMap;

use super::super::ir::{AxisId, Ix, Kernel, Mask, Stmt, ValId};
use crate::base::launch::Launch;

/// Statements per second that the simulator runs on one core, at least, races and counts included.
const PACE: f64 = 20e6;
/// Threads of a block that are examined.
const SAMPLE: i64 = 64;

/// How large a simulation is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Size {
    /// The statements of all threads together.
    pub statements: f64,
    /// The kernel has loops whose trip count only the run knows.
    pub at_least: bool,
}

impl Size {
    pub fn of(kernel: &Kernel, launch: &Launch) -> Size {
        let grid = kernel.blocks(&launch.args).unwrap_or(launch.grid.map(i64::from)).map(|n| n.max(0));
        let block = launch.only_block.map_or(grid.map(|n| n / 2), |block| block.map(i64::from));
        let all: f64 = grid.iter().map(|n| *n as f64).product();
        let blocks = launch.sample.map_or(all, |n| all.min(n as f64));
        let blocks = if launch.only_block.is_some() { 1.0 } else { blocks };
        let args = kernel.params.iter().copied().zip(launch.args.iter().map(|a| *a as i64)).collect();
        let mut walk = Walk { grid, block, thread: 0, values: args, axes: BTreeMap::new(), at_least: false };
        let threads = i64::from(kernel.threads.max(1));
        let looked_at = threads.min(SAMPLE);
        let mut statements = 0.0;
        for at in 0..looked_at {
            walk.thread = at * threads / looked_at;
            statements += walk.body(&kernel.body);
        }
        Size { statements: statements * blocks * threads as f64 / looked_at as f64, at_least: walk.at_least }
    }

    /// The time on one core of a usual machine.
    pub fn seconds(&self) -> f64 {
        self.statements / PACE
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mut n, mut unit) = (self.statements, "");
        for next in [" k", " M", " G", " T", " P"] {
            if n < 999.5 {
                break;
            }
            (n, unit) = (n / 1000.0, next);
        }
        let digits = usize::from(n < 9.95 && !unit.is_empty());
        let about = if self.at_least { "at least" } else { "about" };
        write!(f, "{about} {n:.digits$}{unit} thread-statements")
    }
}

/// One thread on its way through a kernel.
struct Walk {
    grid: [i64; 3],
    block: [i64; 3],
    thread: i64,
    /// The values that are known.
    values: BTreeMap<ValId, i64>,
    axes: BTreeMap<AxisId, i64>,
    at_least: bool,
}

impl Walk {
    fn leaf(&self, leaf: &Ix) -> Option<i64> {
        let along = |of: &[i64; 3], axis: u8| of.get(usize::from(axis)).copied();
        match leaf {
            Ix::Axis(axis) => self.axes.get(axis).copied(),
            Ix::Val { val, .. } => self.values.get(val).copied(),
            Ix::Block(axis) => along(&self.block, *axis),
            Ix::Grid(axis) => along(&self.grid, *axis),
            Ix::Thread => Some(self.thread),
            _ => None,
        }
    }

    fn ix(&self, ix: &Ix) -> Option<i64> {
        let unknown = |leaf: &Ix| leaf.as_const().is_none() && self.leaf(leaf).is_none();
        (!ix.any_leaf(&mut |leaf| unknown(leaf))).then(|| ix.eval(&|leaf| self.leaf(leaf).unwrap_or(0)))
    }

    /// Returns the value of a mask, if it is known; one false condition decides it.
    fn mask(&self, mask: &Mask) -> Option<bool> {
        let conds = mask.conds.iter().map(|c| Some(c.cmp.holds(self.ix(&c.lhs)?, self.ix(&c.rhs)?)));
        let vals = mask.vals.iter().map(|v| self.values.get(v).map(|v| *v != 0));
        conds
            .chain(vals)
            .try_fold(Some(true), |all, one| match (all, one) {
                (_, Some(false)) => Err(()),
                (Some(true), Some(true)) => Ok(Some(true)),
                _ => Ok(None),
            })
            .unwrap_or(Some(false))
    }

    fn body(&mut self, body: &[Stmt]) -> f64 {
        body.iter().map(|s| 1.0 + self.within(s)).sum()
    }

    /// The statements that run inside a statement, besides itself.
    fn within(&mut self, s: &Stmt) -> f64 {
        match s {
            Stmt::Index { dst, ix } => {
                let value = self.ix(ix);
                self.know(*dst, value);
                0.0
            }
            Stmt::Test { dst, mask } => {
                let value = self.mask(mask).map(i64::from);
                self.know(*dst, value);
                0.0
            }
            Stmt::For { axis, lo, hi, step, body, .. } => {
                let (known, lo, step) = (self.ix(hi), self.ix(lo), self.ix(step));
                let bounds = known.zip(lo).zip(step).filter(|(_, step)| *step > 0);
                let Some(((hi, lo), step)) = bounds else {
                    self.at_least = true;
                    self.axes.remove(axis);
                    return 1.0 + self.body(body);
                };
                let step = i128::from(step);
                let times = (i128::from(hi) - i128::from(lo) + step - 1).max(0) / step;
                if times == 0 {
                    return 0.0;
                }
                let middle = i128::from(lo) + times / 2 * step;
                self.axes.insert(*axis, middle as i64);
                // The loop tests its end once more than it runs.
                times as f64 * (1.0 + self.body(body))
            }
            Stmt::Loop { body } => {
                self.at_least = true;
                self.body(body)
            }
            Stmt::If { mask, then, els } => match self.mask(mask) {
                Some(true) => self.body(then),
                Some(false) => self.body(els),
                None => self.body(then).max(self.body(els)),
            },
            _ => 0.0,
        }
    }

    fn know(&mut self, val: ValId, value: Option<i64>) {
        match value {
            Some(value) => self.values.insert(val, value),
            None => self.values.remove(&val),
        };
    }
}
