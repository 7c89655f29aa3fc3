//! The order of the steps that depend on weights alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use girih_compiler::loops::model::{ArrayId, ArrayPlace, Plan, Step};

use super::extent;
use super::tensor::bytes_of;

/// The inputs, by position, that steps of loading read.
pub(super) fn read_at_load(plan: &Plan) -> BTreeSet<usize> {
    let of = |id: &ArrayId| match plan.arrays.get(*id).map(|a| &a.place) {
        Some(ArrayPlace::Input(at)) => Some(*at as usize),
        _ => None,
    };
    plan.load.iter().flat_map(|step| &step.reads).filter_map(of).collect()
}

/// Orders the steps of `load` so that the steps with the most input bytes come first, as soon as their inputs exist:
/// inputs are released soon after they are read, so the large ones do not occupy memory beside the results that
/// accumulate.
pub(super) fn largest_first(plan: &mut Plan) {
    let rest: Vec<Step> = std::mem::take(&mut plan.load);
    let size = |plan: &Plan, step: &Step| -> u64 {
        let one = |id: &ArrayId| plan.arrays.get(*id).and_then(|a| bytes_of(a.elem, &extent::shape(&a.shape, &[])?));
        step.reads.iter().filter_map(one).sum()
    };
    let mut rest: Vec<Option<Step>> = rest.into_iter().map(Some).collect();
    let mut writers: BTreeMap<ArrayId, usize> = BTreeMap::new();
    let mut readers: BTreeMap<ArrayId, Vec<usize>> = BTreeMap::new();
    // Arrays that a step reads and that are still to be written.
    let mut waits = vec![0; rest.len()];
    let all = || rest.iter().enumerate().filter_map(|(at, s)| Some((at, s.as_ref()?)));
    for id in all().flat_map(|(_, s)| &s.writes) {
        *writers.entry(*id).or_default() += 1;
    }
    for (at, step) in all() {
        for id in step.reads.iter().collect::<BTreeSet<_>>().into_iter().filter(|id| writers.contains_key(id)) {
            waits[at] += 1;
            readers.entry(*id).or_default().push(at);
        }
    }
    let sizes: Vec<u64> = all().map(|(_, step)| size(plan, step)).collect();
    // The largest is taken first, and of those alike the first.
    let key = |at: usize| (sizes.get(at).copied().unwrap_or(0), Reverse(at));
    let mut ready: BTreeSet<_> = (0..rest.len()).filter(|at| waits[*at] == 0).map(key).collect();
    while let Some((_, Reverse(at))) = ready.pop_last() {
        let Some(step) = rest.get_mut(at).and_then(Option::take) else { continue };
        for id in &step.writes {
            let Some(left) = writers.get_mut(id) else { continue };
            *left -= 1;
            for &reader in readers.get(id).into_iter().flatten().filter(|_| *left == 0) {
                waits[reader] -= 1;
                if waits[reader] == 0 {
                    ready.insert(key(reader));
                }
            }
        }
        plan.load.push(step);
    }
    // A circle is a bug; its steps stay as they were.
    plan.load.extend(rest.into_iter().flatten());
}
