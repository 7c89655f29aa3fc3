//! What a plan computes: its kernels run one after the other on the evaluator of Loop IR, or as whoever asks runs them.
//!
//! In: a plan, the symbols' values, and the bytes of inputs and constants. Out: the bytes of the outputs. Slow; tests
//! and `--verify-each` use it.

use super::plan::{ArrayPlace, Plan, Step, StepArg};
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
    let mut addresses: IdMap<super::ArrayId, (u64, usize)> = IdMap::new();
    for array in plan.arrays.values() {
        let count: i64 = array.shape.iter().map(|d| at_symbols(d, symbols)).product();
        let bytes = (count.max(0) as u64 * array.elem.dtype.bits().max(8) as u64).div_ceil(8) as usize;
        let contents = match array.place {
            ArrayPlace::Input(i) => inputs.get(i as usize).cloned().unwrap_or_default(),
            ArrayPlace::Constant(c) => constants(c),
            // Memory that nobody wrote must not look like a result.
            ArrayPlace::Loaded | ArrayPlace::Temp => vec![0xa5; bytes],
        };
        let at = memory.add(&array.name, contents);
        addresses.push((at, bytes));
    }
    let args = |step: &Step| -> Vec<u64> {
        let one = |a: &StepArg| match a {
            StepArg::Array(id) => addresses.get(*id).map_or(0, |a| a.0),
            StepArg::Symbol(s) => symbols.get(s.0 as usize).copied().unwrap_or(0) as u64,
        };
        step.args.iter().map(one).collect()
    };
    for step in plan.load.iter().chain(&plan.steps) {
        if step.writes.iter().all(|id| addresses.get(*id).is_some_and(|(_, bytes)| *bytes == 0)) {
            continue;
        }
        let launch = Launch::new([1, 1, 1], args(step));
        launched(step, &launch, &mut memory)?;
    }
    let bytes = |id: &super::ArrayId| {
        let (at, len) = addresses.get(*id).copied().unwrap_or_default();
        memory.bytes(at).map(|b| b[..len.min(b.len())].to_vec()).unwrap_or_default()
    };
    Ok(plan.outputs.iter().map(bytes).collect())
}
