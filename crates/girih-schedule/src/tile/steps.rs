//! Steps of plans: what the rules share that change what a step is called with.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::IdMap;
use crate::loops::ir::*;
use crate::loops::model::{Array, ArrayId, Step, StepArg};
use crate::loops::walk;
use crate::num::DType;

/// The array that an argument of a step is, where it is known when the model is loaded.
pub fn known_at_load(step: &Step, arrays: &IdMap<ArrayId, Array>, mem: &Mem) -> Option<ArrayId> {
    let at = step.kernel.params.iter().position(|p| p.val == mem.base)?;
    let StepArg::Array(array) = *step.args.get(at)? else { return None };
    arrays.get(array).is_some_and(|a| a.at_load).then_some(array)
}

/// A parameter that is an array.
pub fn pointer(name: String, elem: DType) -> Param {
    Param { name, ty: Ty::Ptr(elem), val: ValId(0), div_by: 1, range: None }
}

/// Gives a kernel other parameters: those it had, with the values that they were, and new ones. Parameters are the first
/// values in order, so others move: the answer says where. A new parameter may have been a value that nothing defines.
pub fn set_params(kernel: &mut Kernel, params: Vec<(Param, Option<ValId>)>) -> BTreeMap<ValId, ValId> {
    let had: BTreeSet<ValId> = kernel.params.iter().map(|p| p.val).collect();
    let old = std::mem::take(&mut kernel.vals);
    let mut now = BTreeMap::new();
    kernel.params.clear();
    for (param, was) in params {
        let kept = was.and_then(|v| old.get(v)).cloned();
        let val = kernel.vals.push(kept.unwrap_or_else(|| Val { ty: param.ty, name: param.name.clone() }));
        now.extend(was.map(|v| (v, val)));
        kernel.params.push(Param { val, ..param });
    }
    for (v, val) in old.iter().filter(|(v, _)| !had.contains(v)) {
        now.entry(v).or_insert_with(|| kernel.vals.push(val.clone()));
    }
    walk::Renaming { vals: now.clone(), ..Default::default() }.apply(&mut kernel.body);
    now
}

/// Gives a step the arrays that values of its kernel stand for. Arrays that it no longer reads stop being arguments.
pub fn set_arrays(step: &mut Step, new: &[(ValId, ArrayId)], arrays: &IdMap<ArrayId, Array>) {
    let kernel = &mut step.kernel;
    let used = walk::refs(&kernel.body).vals_used;
    let (mut params, mut args) = (vec![], vec![]);
    for (param, arg) in kernel.params.iter().zip(&step.args) {
        if matches!(arg, StepArg::Symbol(_)) || used.contains(&param.val) {
            params.push((param.clone(), Some(param.val)));
            args.push(*arg);
        }
    }
    for (val, id) in new {
        let Array { name, elem, .. } = &arrays[*id];
        params.push((pointer(name.clone(), elem.dtype), Some(*val)));
        args.push(StepArg::Array(*id));
    }
    set_params(kernel, params);
    step.reads.retain(|id| args.contains(&StepArg::Array(*id)));
    step.args = args;
}

/// The bytes of all that a step reads and writes.
pub fn bytes_of(step: &Step, arrays: &IdMap<ArrayId, Array>) -> Ix {
    let one = |id: &ArrayId| {
        let Array { shape, elem, .. } = &arrays[*id];
        shape.iter().fold(Ix::Const(elem.dtype.bytes() as i64), |n, d| Ix::mul(n, d.clone()))
    };
    step.reads.iter().chain(&step.writes).fold(Ix::Const(0), |n, id| Ix::add(n, one(id)))
}
