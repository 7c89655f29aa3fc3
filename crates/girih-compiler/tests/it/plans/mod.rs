//! Plans against arithmetic worked out here, fused and unfused.

use girih_compiler::base::host::Silent;
use girih_compiler::base::rule::Log;
use girih_compiler::graph::build::Builder;
use girih_compiler::graph::ir::{Arg, Coord, Graph, Output, ReduceOp, Role, ScatterOp, ValueId, axis, int_scalar};
use girih_compiler::graph::{Attr, Elem, decompose};
use girih_compiler::index::Ix;
use girih_compiler::kernel;
use girih_compiler::loops::model::{ArrayPlace, Options, Plan, lower};
use girih_compiler::loops::print::{Dialect, print};
use girih_compiler::loops::verify::verify;
use girih_compiler::num::ScalarOp;
use girih_compiler::num::op::Signedness;
use girih_compiler::pipeline;

mod chains;
mod products;
mod rows;
mod scatters;
mod weights;

fn data(n: usize, salt: u64) -> Vec<f32> {
    let mut state = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) % 2001) as f32 / 1000.0 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn bytes(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn floats(b: &[u8]) -> Vec<f32> {
    b.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// The plan's results as Kernel IR computes them, after all rules.
pub(super) fn scheduled(plan: &Plan, symbols: &[i64], inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let options = pipeline::Options::default();
    let plan = pipeline::schedule_plan(plan, &options, &mut options.rewrites(), &mut pipeline::Silent).unwrap();
    girih_compiler::loops::model::eval::run_with(&plan, symbols, inputs, &|_| vec![], &mut |step, launch, memory| {
        let lowered =
            pipeline::lower_loops(step.kernel.clone(), &options, &mut options.rewrites(), &mut pipeline::Silent)
                .unwrap();
        kernel::eval::run(&lowered.kernel, &lowered.tile, launch, memory, &mut Silent)
    })
    .unwrap()
}

struct Case {
    graph: Graph,
}

impl Case {
    fn new() -> Case {
        Case { graph: Graph { name: "test".into(), ..Graph::default() } }
    }
    fn input(&mut self, name: &str, shape: &[i64], role: Role) -> Arg {
        let shape = shape.iter().map(|d| Ix::Const(*d)).collect();
        self.graph.add_input(name, Elem::F32, shape, role).into()
    }
    fn build<T>(
        &mut self,
        op: &str,
        f: impl FnOnce(&mut Builder<'_>) -> Result<T, girih_compiler::graph::Refusal>,
    ) -> T {
        let origin = self.graph.add_origin(op, "", None);
        f(&mut Builder::new(&mut self.graph, origin)).unwrap()
    }
    fn output(&mut self, x: Arg) {
        let Arg::Value(value) = x else { panic!("a scalar output") };
        self.graph.outputs.push(Output { name: "out".into(), value });
    }
    /// Lowers, checks the kernels, runs with and without fusion; gives the fused result and the number of kernels.
    fn run(&self, symbols: &[i64], inputs: &[Vec<f32>]) -> (Vec<Vec<f32>>, usize) {
        let graph = decompose::decompose(&self.graph, &mut |_| {}).unwrap();
        let inputs: Vec<Vec<u8>> = inputs.iter().map(|i| bytes(i)).collect();
        let mut results = vec![];
        for fuse in [true, false] {
            let mut log = Log::default();
            let plan = lower(&graph, &Options { fuse, ..Options::default() }, &mut log).unwrap();
            for step in plan.load.iter().chain(&plan.steps) {
                let breaches = verify(&step.kernel, Dialect::Loop);
                let text = print(&step.kernel, Dialect::Loop);
                if std::env::var("SHOW").is_ok() {
                    println!("{text}");
                }
                assert!(breaches.is_empty(), "{breaches:#?}\n{text}");
            }
            let out = girih_compiler::loops::model::eval::run(&plan, symbols, &inputs, &|_| vec![]).unwrap();
            if fuse {
                let placed = scheduled(&plan, symbols, &inputs);
                for (a, b) in out.iter().flat_map(|b| floats(b)).zip(placed.iter().flat_map(|b| floats(b))) {
                    assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "open {a}, placed {b}");
                }
            }
            results.push((out.iter().map(|b| floats(b)).collect::<Vec<_>>(), plan.steps.len()));
        }
        let (fused, kernels) = results.remove(0);
        let (plain, more) = results.remove(0);
        assert!(more >= kernels);
        for (a, b) in fused.iter().flatten().zip(plain.iter().flatten()) {
            assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "fused {a}, unfused {b}");
        }
        (fused, kernels)
    }
}

fn close(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((f64::from(*g) - w).abs() <= 1e-4 * (1.0 + w.abs()), "element {i}: {g} is not {w}");
    }
}

fn softmax(b: &mut Builder<'_>, x: Arg, last: usize) -> Result<Arg, girih_compiler::graph::Refusal> {
    let m = b.reduce(ReduceOp::Max, x, &[last], true)?;
    let d = b.sub(x, m)?;
    let e = b.exp(d)?;
    let s = b.reduce(ReduceOp::Sum, e, &[last], true)?;
    b.div(e, s)
}

/// A matrix of rows of `k` elements times one of `k` rows.
fn product(left: &[f64], k: usize, right: &[f32]) -> Vec<f64> {
    let n = right.len() / k;
    let element = |row: &[f64], j: usize| row.iter().enumerate().map(|(t, x)| x * f64::from(right[t * n + j])).sum();
    left.chunks(k).flat_map(|row| (0..n).map(move |j| element(row, j))).collect()
}
