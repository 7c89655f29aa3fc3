//! Which settings to try next: along one axis after the other, from a start, then from neighbours of the best.
//!
//! In: axes, a start, a seed, and a function that evaluates a batch of candidates. Out: the best of them. A sweep tries every value of
//! an axis, stays at the best and goes on with the next axis, until a whole sweep finds nothing better; then some settings of the best
//! are changed at random, in several ways, and the sweeps begin again from the fastest of these, in another order.
//!
//! ```text
//! {}: 1.00   kc=64: 0.98  kc=128: 0.91  kc=512: 1.10   -->  kc=128   rows=2: 0.95  rows=8: 0.84   -->  kc=128 rows=8   ...
//! ```
//! Invariants: nothing is evaluated twice; the same outcomes and the same seed give the same candidates in the same order.

use std::collections::{BTreeMap, BTreeSet};

use super::Candidate;
use super::space::Axis;

/// The outcome of a candidate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    /// Its time, the default's being 1.
    Ratio(f64),
    /// It does not compile, or computes something else.
    Failed,
    /// The search ends: nothing was found out.
    Stopped,
}

/// Restarts without success after which a search ends.
const RESTARTS: usize = 4;
/// Settings that a restart changes.
const CHANGED: usize = 3;
/// Ways in which a restart changes them: of the lines of a schedule most are not legal.
const WAYS: usize = 8;

pub struct Search<'a> {
    pub axes: &'a [Axis],
    pub seed: u64,
    /// Candidates to try at most.
    pub trials: usize,
    /// Where to begin, and its time, the default's being 1.
    pub start: (Candidate, f64),
    /// Where to begin besides.
    pub known: Option<Candidate>,
}

/// The best so far, and the known outcomes of others.
struct State<'e> {
    evaluate: &'e mut dyn FnMut(&[Candidate]) -> Vec<Outcome>,
    /// Ratios; `None`: failed.
    tried: BTreeMap<Candidate, Option<f64>>,
    trials: usize,
    stopped: bool,
}

impl State<'_> {
    /// Evaluates candidates without a known outcome, as long as there are trials left.
    fn all(&mut self, candidates: &[Candidate]) {
        let mut once = BTreeSet::new();
        let fresh = candidates.iter().filter(|c| !self.tried.contains_key(*c) && once.insert(*c));
        let mut batch: Vec<Candidate> = fresh.cloned().collect();
        self.stopped |= batch.len() > self.trials;
        batch.truncate(self.trials);
        if batch.is_empty() {
            return;
        }
        self.trials -= batch.len();
        let outcomes = (self.evaluate)(&batch);
        self.stopped |= outcomes.len() < batch.len();
        for (candidate, outcome) in batch.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Ratio(ratio) => drop(self.tried.insert(candidate, Some(ratio))),
                Outcome::Failed => drop(self.tried.insert(candidate, None)),
                Outcome::Stopped => self.stopped = true,
            }
        }
    }

    /// `None` where it failed or was not tried.
    fn of(&self, candidate: &Candidate) -> Option<f64> {
        self.tried.get(candidate).copied().flatten()
    }
}

impl Search<'_> {
    /// The candidates that ran, best first; of equals the one with fewer settings.
    pub fn run(&self, evaluate: &mut dyn FnMut(&[Candidate]) -> Vec<Outcome>) -> Vec<(Candidate, f64)> {
        let tried = BTreeMap::from([(self.start.0.clone(), Some(self.start.1))]);
        let mut state = State { evaluate, tried, trials: self.trials, stopped: false };
        let mut random = Random(self.seed);
        let mut best = self.start.0.clone();
        if let Some(known) = &self.known {
            state.all(std::slice::from_ref(known));
        }
        let (mut failures, mut order) = (0, self.axes.to_vec());
        while failures < RESTARTS && !state.stopped && !order.is_empty() {
            let mut from = leader(&state.tried);
            if failures > 0 {
                let ways: Vec<Candidate> = (0..WAYS).map(|_| moved(&from, &mut order, &mut random)).collect();
                state.all(&ways);
                let ran = ways.into_iter().filter_map(|way| Some((state.of(&way)?, way)));
                match ran.min_by(|a, b| a.0.total_cmp(&b.0)) {
                    Some((_, way)) => from = way,
                    None => {
                        failures += 1;
                        continue;
                    }
                }
            }
            self.sweeps(&mut state, &order, from);
            let found = leader(&state.tried);
            failures = if found == best { failures + 1 } else { 1 };
            best = found;
        }
        let mut all: Vec<(Candidate, f64)> = state.tried.into_iter().filter_map(|(c, r)| Some((c, r?))).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.len().cmp(&b.0.len())));
        all
    }

    fn sweeps(&self, state: &mut State<'_>, order: &[Axis], from: Candidate) {
        let mut at = (state.of(&from).unwrap_or(f64::INFINITY), from);
        loop {
            let before = at.0;
            for axis in order {
                let moved = |value: &i64| {
                    let mut next = at.1.clone();
                    next.insert(axis.setting, *value);
                    next
                };
                let batch: Vec<Candidate> = axis.values.iter().map(moved).collect();
                state.all(&batch);
                for next in batch {
                    if let Some(ratio) = state.of(&next).filter(|ratio| *ratio < at.0) {
                        at = (ratio, next);
                    }
                }
                if state.stopped {
                    return;
                }
            }
            if at.0 >= before {
                return;
            }
        }
    }
}

/// A candidate with some settings changed at random. The axes are in another order then.
fn moved(from: &Candidate, axes: &mut [Axis], random: &mut Random) -> Candidate {
    random.shuffle(axes);
    let mut out = from.clone();
    for axis in axes.iter().take(CHANGED) {
        out.insert(axis.setting, axis.values[random.below(axis.values.len())]);
    }
    out
}

fn leader(tried: &BTreeMap<Candidate, Option<f64>>) -> Candidate {
    let ran = tried.iter().filter_map(|(c, r)| Some((c, (*r)?)));
    ran.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.len().cmp(&b.0.len())))
        .map_or_else(Candidate::new, |(c, _)| c.clone())
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::Setting;

    fn axes() -> Vec<Axis> {
        let axis = |name, values: &[i64]| Axis { setting: Setting::Knob(name), values: values.to_vec() };
        vec![axis("kc", &[64, 128, 256]), axis("rows", &[1, 2, 4, 8]), axis("cols", &[16, 32])]
    }

    fn candidate(knobs: &[(&'static str, i64)]) -> Candidate {
        knobs.iter().map(|(name, value)| (Setting::Knob(name), *value)).collect()
    }

    fn start() -> (Candidate, f64) {
        (Candidate::new(), 1.0)
    }

    /// `kc=128 rows=8` is twice as fast; `rows=4` fails.
    fn cost(c: &Candidate) -> Outcome {
        let has = |name, value| c.get(&Setting::Knob(name)) == Some(&value);
        match () {
            _ if has("rows", 4) => Outcome::Failed,
            _ => Outcome::Ratio(1.0 - 0.1 * f64::from(has("kc", 128)) - 0.4 * f64::from(has("rows", 8))),
        }
    }

    fn tried(seed: u64, trials: usize) -> (Vec<Candidate>, Vec<(Candidate, f64)>) {
        let mut seen = vec![];
        let search = Search { axes: &axes(), seed, trials, start: start(), known: None };
        let best = search.run(&mut |batch| {
            seen.extend_from_slice(batch);
            batch.iter().map(cost).collect()
        });
        (seen, best)
    }

    #[test]
    fn the_best_of_all_knobs_is_found_and_nothing_is_tried_twice() {
        let (seen, best) = tried(0, usize::MAX);
        assert_eq!(best[0].0, candidate(&[("kc", 128), ("rows", 8)]));
        let mut once = seen.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), seen.len());
        assert!(best.iter().all(|(c, _)| c.get(&Setting::Knob("rows")) != Some(&4)));
    }

    #[test]
    fn a_search_begins_where_it_is_told() {
        let mut seen = vec![];
        let from = candidate(&[("rows", 8)]);
        let search = Search { axes: &axes()[..1], seed: 0, trials: 100, start: (from.clone(), 0.6), known: None };
        let best = search.run(&mut |batch| {
            seen.extend_from_slice(batch);
            batch.iter().map(cost).collect()
        });
        assert!(seen.iter().all(|c| c.get(&Setting::Knob("rows")) == Some(&8) && *c != from));
        assert_eq!(best[0].0, candidate(&[("kc", 128), ("rows", 8)]));
        assert!(best.contains(&(from, 0.6)));
    }

    #[test]
    fn a_seed_decides_what_is_tried() {
        assert_eq!(tried(1, usize::MAX), tried(1, usize::MAX));
        assert_ne!(tried(1, usize::MAX).0, tried(2, usize::MAX).0);
    }

    #[test]
    fn a_search_that_is_stopped_keeps_the_best_so_far() {
        let (seen, best) = tried(0, 3);
        assert_eq!((seen.len(), best[0].0.clone()), (3, candidate(&[("kc", 128)])));
        let mut left = 2;
        let known = Some(candidate(&[("rows", 8)]));
        let search = Search { axes: &axes(), seed: 0, trials: 100, start: start(), known };
        let best = search.run(&mut |batch| {
            let all = batch.iter().map(|c| {
                if left == 0 {
                    Outcome::Stopped
                } else {
                    left -= 1;
                    cost(c)
                }
            });
            all.collect()
        });
        assert_eq!(best[0].0, candidate(&[("rows", 8)]));
        assert!(best.len() <= 3);
    }
}
