//! Random graphs of primitives: `girih-random --graphs [--count N] [--seed S] [--native K] [--show SEED]`.
//!
//! Each is verified, printed and read back, simplified rule by rule, and lowered to kernels with and without fusion; every
//! stage must compute what the evaluator of graphs computes, exactly or, where the order of operations is open, within a
//! bound. One in `K` runs as native code too. A failing graph is shrunk and printed as text that reads back.

mod check;
mod generate;
mod shrink;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use girih_compiler::graph::Graph;
use girih_compiler::graph::print::{Dialect, print};

use crate::check::Mismatch;
use check::Verdict;
use generate::Case;

pub struct Flags {
    pub count: u64,
    pub seed: u64,
    pub jobs: u64,
    /// One in this number of graphs runs natively; 0: none.
    pub native: u64,
    pub keep_going: bool,
}

fn verdict(case: &Case, native: bool, twist: &dyn Fn(&Graph) -> Graph) -> Result<Verdict, Mismatch> {
    // A panic is a bug like any other, and has its graph printed.
    let all = || {
        let verdict = check::check(case, twist)?;
        if native && matches!(verdict, Verdict::Agrees) {
            check::native(case)?;
        }
        Ok(verdict)
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(all))
        .unwrap_or_else(|_| Err(Mismatch { stage: "panic".into(), what: "see above".into() }))
}

/// A case that fails like this one, but is small.
fn smallest(case: &Case, mismatch: &Mismatch, twist: &dyn Fn(&Graph) -> Graph) -> Case {
    let native = mismatch.stage == "native";
    let mut fails = |c: &Case| verdict(c, native, twist).is_err_and(|m| m.stage == mismatch.stage);
    shrink::shrink(case, &mut fails)
}

fn text(case: &Case) -> String {
    let mut out = print(&case.graph, Dialect::Tensor);
    for (at, run) in case.runs.iter().enumerate() {
        out += &format!("# run {at}");
        for (symbol, value) in case.graph.symbols.values().zip(&run.given) {
            if let Some(value) = value {
                out += &format!(" {} = {value}", symbol.name);
            }
        }
        out += "\n";
        for (input, t) in case.graph.inputs.iter().zip(&run.tensors) {
            let shown: Vec<f64> = t.numbers().into_iter().take(64).collect();
            out += &format!("# {} {:?} = {shown:?}\n", case.graph.values[input.value].name, t.shape);
        }
    }
    out
}

/// Prints the graph of a seed.
pub fn show(seed: u64) {
    print!("{}", text(&generate::make(seed)));
}

/// Checks graphs; true when all agree.
pub fn run(flags: &Flags) -> Result<bool, String> {
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let (passed, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let refused: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= flags.count || (failed.load(Ordering::Relaxed) > 0 && !flags.keep_going) {
                return;
            }
            let seed = flags.seed + i;
            let case = generate::make(seed);
            let native = flags.native > 0 && i.is_multiple_of(flags.native);
            match verdict(&case, native, &Graph::clone) {
                Ok(Verdict::Agrees) => drop(passed.fetch_add(1, Ordering::Relaxed)),
                Ok(Verdict::Refused(why)) => {
                    if let Ok(mut list) = refused.lock() {
                        let kind = why.rsplit(": ").next().unwrap_or_default().to_string();
                        *list.entry(kind).or_default() += 1;
                    }
                }
                Err(mismatch) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    let small = smallest(&case, &mismatch, &Graph::clone);
                    let now = verdict(&small, mismatch.stage == "native", &Graph::clone).err().unwrap_or(mismatch);
                    println!("# seed {seed}: {} disagrees: {}\n{}", now.stage, now.what, text(&small));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..flags.jobs {
            scope.spawn(work);
        }
        work();
    });
    let refused = refused.into_inner().map_err(|_| "a worker stopped")?;
    for (why, n) in &refused {
        println!("refused {n}: {why}");
    }
    eprintln!("{:.1} s", start.elapsed().as_secs_f64());
    let (passed, failed) = (passed.into_inner(), failed.into_inner());
    println!("{passed} passed, {failed} failed, {} refused", refused.values().sum::<u64>());
    Ok(failed == 0 && passed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use girih_compiler::graph::{Op, ReduceOp};

    #[test]
    fn graphs_agree_at_every_stage() {
        let flags = Flags { count: 60, seed: 1, jobs: 1, native: 0, keep_going: false };
        assert_eq!(run(&flags), Ok(true));
    }

    #[test]
    fn a_bug_is_found_and_shrunk_to_its_node() {
        // Maxima come out as minima.
        let twist = |g: &Graph| {
            let mut g = g.clone();
            for id in g.nodes.keys().collect::<Vec<_>>() {
                if let Op::Reduce { op: op @ ReduceOp::Max, .. } = &mut g.nodes[id].op {
                    *op = ReduceOp::Min;
                }
            }
            g
        };
        let found = (1..200).find_map(|seed| {
            let case = generate::make(seed);
            let mismatch = verdict(&case, false, &twist).err()?;
            Some((smallest(&case, &mismatch, &twist), mismatch))
        });
        let (small, mismatch) = found.expect("no graph shows the bug");
        assert_eq!(mismatch.stage, "unfused");
        assert!(small.graph.nodes.len() <= 2, "{}", text(&small));
        assert!(text(&small).contains("reduce max"), "{}", text(&small));
    }
}
