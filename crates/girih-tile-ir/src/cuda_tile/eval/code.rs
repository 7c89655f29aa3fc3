//! Facts about a module before it runs: the last uses of values, and the numbers of operations.

use crate::base::id::Id;
use crate::cuda_tile::ir::{Func, MemoryOrdering, Module, Op, OpId, Opcode, RegionId, ValueDef, ValueId};

use super::value::Origin;

/// Side tables of a module.
pub struct Code {
    /// The number of a function's operation 0, minus one.
    base: Vec<Origin>,
    /// Per function and operation: the values with their last use in it, and its unused results.
    deaths: Vec<Vec<Vec<ValueId>>>,
    /// True if some operation synchronises blocks.
    pub synchronises: bool,
}

impl Code {
    pub fn new(module: &Module) -> Code {
        let mut base = Vec::new();
        let mut total = 0;
        for f in &module.funcs {
            base.push(total);
            total += f.ops.len() as Origin;
        }
        let deaths = module.funcs.iter().map(deaths).collect();
        let synchronises = module.funcs.iter().flat_map(|f| f.ops.values()).any(synchronises);
        Code { base, deaths, synchronises }
    }
    pub fn origin(&self, func: usize, op: OpId) -> Origin {
        self.base[func] + op.0 + 1
    }
    pub fn locate(&self, origin: Origin) -> Option<(usize, OpId)> {
        let at = origin.checked_sub(1)?;
        let func = self.base.partition_point(|&b| b <= at).checked_sub(1)?;
        Some((func, OpId(at - self.base[func])))
    }
    pub fn deaths(&self, func: usize, op: OpId) -> &[ValueId] {
        self.deaths[func].get(op.index()).map(Vec::as_slice).unwrap_or(&[])
    }
}

/// Returns true if an operation orders memory between blocks.
pub fn synchronises(op: &Op) -> bool {
    use Opcode as O;
    match op.opcode {
        O::AtomicCasTko | O::AtomicRmwTko | O::AtomicRedViewTko | O::MultimemReduceViewTko => true,
        O::LoadPtrTko
        | O::StorePtrTko
        | O::LoadViewTko
        | O::StoreViewTko
        | O::MultimemLoadReduceViewTko
        | O::MultimemStoreViewTko => op.ordering() != MemoryOrdering::Weak,
        _ => false,
    }
}

/// For every operation, the values defined in its own region that no later operation there uses.
fn deaths(func: &Func) -> Vec<Vec<ValueId>> {
    // The place of each operation, and the operation that holds each region.
    let mut place: Vec<Option<(RegionId, u32)>> = vec![None; func.ops.len()];
    let mut holder: Vec<Option<OpId>> = vec![None; func.regions.len()];
    for (r, region) in func.regions.iter() {
        for (i, &op) in region.ops.iter().enumerate() {
            if let Some(p) = place.get_mut(op.index()) {
                *p = Some((r, i as u32));
            }
            for inner in func.ops.get(op).map(|o| o.regions.as_slice()).unwrap_or(&[]) {
                if let Some(h) = holder.get_mut(inner.index()) {
                    *h = Some(op);
                }
            }
        }
    }
    let home = |v: ValueId| match func.values.get(v)?.def {
        ValueDef::Arg { region, .. } => Some(region),
        ValueDef::Result { op, .. } => place.get(op.index()).copied().flatten().map(|p| p.0),
    };
    let mut last: Vec<Option<(u32, OpId)>> = vec![None; func.values.len()];
    for (id, op) in func.ops.iter() {
        for &v in &op.results {
            if let (Some(slot), Some((_, i))) = (last.get_mut(v.index()), place.get(id.index()).copied().flatten()) {
                *slot = (*slot).max(Some((i, id)));
            }
        }
        for &v in &op.operands {
            let Some(region) = home(v) else { continue };
            // The use counts at the operation of the value's own region that contains it. The nesting is finite; the
            // bound guards against malformed trees.
            let mut at = Some(id);
            for _ in 0..=func.regions.len() {
                let Some((r, i)) = at.and_then(|o: OpId| place.get(o.index()).copied().flatten()) else { break };
                if r == region {
                    if let (Some(slot), Some(o)) = (last.get_mut(v.index()), at) {
                        *slot = (*slot).max(Some((i, o)));
                    }
                    break;
                }
                at = holder.get(r.index()).copied().flatten();
            }
        }
    }
    let mut out = vec![Vec::new(); func.ops.len()];
    for (v, slot) in last.iter().enumerate() {
        if let Some((_, op)) = slot {
            out[op.index()].push(ValueId(v as u32));
        }
    }
    out
}
