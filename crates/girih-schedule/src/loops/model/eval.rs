//! Evaluates a plan: its kernels run one after the other on the evaluator of Loop IR, or as the caller runs them.
//!
//! In: a plan, the symbols' values, and the bytes of inputs and constants. Out: the bytes of the outputs. Slow; tests
//! and `--verify-each` use it.

use std::collections::BTreeMap;

use super::plan::{ArrayId, ArrayPlace, LoopId, Move, Plan, Runner, Step, StepArg};
use crate::base::Code;
use crate::base::IdMap;
use crate::base::host::Silent;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::{Memory, VecMemory};
use crate::graph::ConstId;
use crate::index::Ix;
use crate::loops;

/// The value of an expression over symbols.
pub fn at_symbols(ix: &Ix, symbols: &[i64]) -> i64 {
    ix.eval(&|leaf| match leaf {
        Ix::Const(c) => *c,
        Ix::Val { val, .. } => symbols.get(val.0 as usize).copied().unwrap_or(0),
        _ => 0,
    })
}

/// Runs a plan on the evaluator of Loop IR. `inputs` are the bytes of the graph's inputs in order, `constants` gives those of a constant.
pub fn run(
    plan: &Plan,
    symbols: &[i64],
    inputs: &[Vec<u8>],
    constants: &dyn Fn(ConstId) -> Vec<u8>,
) -> Result<Vec<Vec<u8>>, Trap> {
    run_with(plan, symbols, inputs, constants, &mut |step, launch, memory| {
        loops::eval::run(&step.kernel, launch, memory, &mut Silent)
    })
}

/// Runs one step of a plan.
pub type Launched<'a> = dyn FnMut(&Step, &Launch, &mut dyn Memory) -> Result<(), Trap> + 'a;

/// The same with each step run by `launched`.
pub fn run_with(
    plan: &Plan,
    symbols: &[i64],
    inputs: &[Vec<u8>],
    constants: &dyn Fn(ConstId) -> Vec<u8>,
    launched: &mut Launched<'_>,
) -> Result<Vec<Vec<u8>>, Trap> {
    let mut memory = VecMemory::new();
    let mut addresses: IdMap<ArrayId, (u64, usize)> = IdMap::new();
    for array in plan.arrays.values() {
        let count: i64 = array.shape.iter().map(|d| at_symbols(d, symbols)).product();
        let bytes = (count.max(0) as u64 * array.elem.dtype.bits().max(8) as u64).div_ceil(8) as usize;
        let contents = match array.place {
            ArrayPlace::Input(i) => inputs.get(i as usize).cloned().unwrap_or_default(),
            ArrayPlace::Constant(c) => constants(c),
            ArrayPlace::Row { .. } => {
                addresses.push((0, bytes));
                continue;
            }
            // Memory that was never written must not look like a result.
            ArrayPlace::Loaded | ArrayPlace::Temp => vec![0xa5; bytes],
        };
        let at = memory.add(&array.name, contents);
        addresses.push((at, bytes));
    }
    let mut run = Run { plan, symbols, memory, addresses, now: BTreeMap::new(), launched };
    for step in &plan.load {
        run.launch(step)?;
    }
    plan.walk(&mut run)?;
    let Run { memory, addresses, .. } = run;
    let bytes = |id: &ArrayId| {
        let (at, len) = addresses.get(*id).copied().unwrap_or_default();
        memory.bytes(at).map(|b| b[..len.min(b.len())].to_vec()).unwrap_or_default()
    };
    Ok(plan.outputs.iter().map(bytes).collect())
}

struct Run<'a, 'l> {
    plan: &'a Plan,
    symbols: &'a [i64],
    memory: VecMemory,
    addresses: IdMap<ArrayId, (u64, usize)>,
    /// The round of each loop that runs, and how many it has.
    now: BTreeMap<LoopId, (u64, u64)>,
    launched: &'a mut Launched<'l>,
}

impl Run<'_, '_> {
    fn address(&self, id: ArrayId) -> u64 {
        let (at, bytes) = self.addresses.get(id).copied().unwrap_or_default();
        match self.plan.arrays.get(id).map(|a| a.place) {
            Some(ArrayPlace::Row { of, within, reverse }) => {
                let (round, rounds) = self.now.get(&within).copied().unwrap_or_default();
                let row = if reverse { rounds - 1 - round } else { round };
                self.address(of) + row * bytes as u64
            }
            _ => at,
        }
    }

    fn launch(&mut self, step: &Step) -> Result<(), Trap> {
        if step.writes.iter().all(|id| self.addresses.get(*id).is_some_and(|(_, bytes)| *bytes == 0)) {
            return Ok(());
        }
        let one = |a: &StepArg| match a {
            StepArg::Array(id) => self.address(*id),
            StepArg::Symbol(s) => self.symbols.get(s.0 as usize).copied().unwrap_or(0) as u64,
        };
        let launch = Launch::new([1, 1, 1], step.args.iter().map(one).collect());
        (self.launched)(step, &launch, &mut self.memory)
    }

    fn read(&self, id: ArrayId) -> Result<Vec<u8>, Trap> {
        let mut bytes = vec![0; self.addresses.get(id).map_or(0, |a| a.1)];
        let lost = |_| Trap::new(Code::InternalBug, "an array of the plan is missing");
        self.memory.read(self.address(id), &mut bytes).map_err(lost).map(|()| bytes)
    }
}

impl Runner for Run<'_, '_> {
    type Error = Trap;
    fn step(&mut self, at: usize) -> Result<(), Trap> {
        self.plan.steps.get(at).map_or(Ok(()), |step| self.launch(step))
    }
    fn copy(&mut self, (from, to): &Move) -> Result<(), Trap> {
        let bytes = self.read(*from)?;
        let lost = |_| Trap::new(Code::InternalBug, "an array of the plan is missing");
        self.memory.write(self.address(*to), &bytes).map_err(lost)
    }
    fn rounds(&mut self, id: LoopId) -> Result<u64, Trap> {
        Ok(self.plan.loops.get(id).map_or(0, |l| at_symbols(&l.rounds, self.symbols)).max(0) as u64)
    }
    fn holds(&mut self, condition: ArrayId) -> Result<bool, Trap> {
        self.read(condition).map(|bytes| bytes.iter().any(|b| *b != 0))
    }
    fn begin(&mut self, id: LoopId, round: u64, of: u64) -> Result<(), Trap> {
        self.now.insert(id, (round, of));
        Ok(())
    }
}
