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

/// A sum over no rows of what each row is reduced to: no row is looked at.
#[test]
fn reductions_of_rows_that_are_not_there() {
    let mut c = Case::new();
    let x = c.input("x", &[0, 8], Role::Argument);
    let all = c.build("test", |b| {
        let row = b.reduce(ReduceOp::Max, x, &[1], false)?;
        let twice = b.elementwise(girih_compiler::num::op::ScalarOp::Copy, &[row])?;
        b.reduce(ReduceOp::Sum, twice, &[0], true)
    });
    c.output(all);
    assert_eq!(c.run(&[], &[vec![]]).0, [[0.0]]);
}

#[test]
fn rms_norm_is_one_kernel() {
    let mut c = Case::new();
    let x = c.input("x", &[3, 20], Role::Argument);
    let w = c.input("w", &[20], Role::Parameter);
    let attrs = [("eps".to_string(), Attr::Float(1e-6)), ("axis".to_string(), Attr::Int(Ix::Const(-1)))].into();
    let y = c.build("aten.rms_norm", |b| b.source("aten.rms_norm", vec![x, w], attrs))[0];
    c.output(y);
    let (xs, ws) = (data(60, 1), data(20, 2));
    let (got, kernels) = c.run(&[], &[xs.clone(), ws.clone()]);
    let mut want = vec![];
    for row in xs.chunks(20) {
        let mean = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / 20.0;
        let scale = 1.0 / (mean + 1e-6).sqrt();
        want.extend(row.iter().zip(&ws).map(|(v, w)| f64::from(*v) * scale * f64::from(*w)));
    }
    close(&got[0], &want);
    assert_eq!(kernels, 1);
}

fn softmax(b: &mut Builder<'_>, x: Arg, last: usize) -> Result<Arg, girih_compiler::graph::Refusal> {
    let m = b.reduce(ReduceOp::Max, x, &[last], true)?;
    let d = b.sub(x, m)?;
    let e = b.exp(d)?;
    let s = b.reduce(ReduceOp::Sum, e, &[last], true)?;
    b.div(e, s)
}

/// One row of weights times a matrix: the sum of the exponentials is emitted while the loop that would keep them is
/// still open, so it may not read what was kept.
#[test]
fn a_row_is_read_only_when_it_is_whole() {
    let mut c = Case::new();
    let (x, v) = (c.input("x", &[1, 8], Role::Argument), c.input("v", &[8, 5], Role::Argument));
    let y = c.build("aten.attention", |b| {
        let p = softmax(b, x, 1)?;
        b.matmul(p, v)
    });
    c.output(y);
    let (xs, vs) = (data(8, 21), data(40, 22));
    let (got, _) = c.run(&[], &[xs.clone(), vs.clone()]);
    let e: Vec<f64> = xs.iter().map(|x| f64::from(*x).exp()).collect();
    let sum: f64 = e.iter().sum();
    let want: Vec<f64> =
        (0..5).map(|n| e.iter().zip(vs.chunks(5)).map(|(e, row)| e / sum * f64::from(row[n])).sum()).collect();
    close(&got[0], &want);
}

#[test]
fn softmax_is_one_kernel_that_keeps_its_row() {
    let mut c = Case::new();
    let x = c.input("x", &[4, 33], Role::Argument);
    let y = c.build("aten.softmax", |b| softmax(b, x, 1));
    c.output(y);
    let xs = data(4 * 33, 3);
    let (got, kernels) = c.run(&[], std::slice::from_ref(&xs));
    let mut want = vec![];
    for row in xs.chunks(33) {
        let sum: f64 = row.iter().map(|v| f64::from(*v).exp()).sum();
        want.extend(row.iter().map(|v| f64::from(*v).exp() / sum));
    }
    close(&got[0], &want);
    assert_eq!(kernels, 1);
}

/// Padding reads a kept row past its ends, where a load would have a mask: the evaluator refuses a read outside of a buffer.
#[test]
fn a_kept_row_is_read_within_its_bounds_under_a_mask() {
    let mut c = Case::new();
    let x = c.input("x", &[3, 9], Role::Argument);
    let y = c.build("test", |b| {
        let e = b.exp(x)?;
        let sum = b.reduce(ReduceOp::Sum, e, &[1], true)?;
        let outside = b.scalar_like(e, -1.0);
        let padded = b.pad(e, &[Ix::Const(0), Ix::Const(2)], &[Ix::Const(0), Ix::Const(3)], outside)?;
        b.sub(padded, sum)
    });
    c.output(y);
    let xs = data(27, 11);
    let (got, kernels) = c.run(&[], std::slice::from_ref(&xs));
    let mut want = vec![];
    for row in xs.chunks(9) {
        let e: Vec<f64> = row.iter().map(|v| f64::from(*v).exp()).collect();
        let sum: f64 = e.iter().sum();
        want.extend((0..14i64).map(|at| e.get((at - 2) as usize).copied().filter(|_| at >= 2).unwrap_or(-1.0) - sum));
    }
    close(&got[0], &want);
    assert_eq!(kernels, 1);
}

#[test]
fn a_linear_layer_takes_its_bias_and_activation_with_it() {
    let (m, n, k) = (37, 50, 41);
    let mut c = Case::new();
    let s = c.graph.add_symbol("s0", 1, None);
    let x: Arg = c.graph.add_input("x", Elem::F32, vec![s.ix(), Ix::Const(k)], Role::Argument).into();
    let w = c.input("w", &[n, k], Role::Parameter);
    let bias = c.input("b", &[n], Role::Parameter);
    let y = c.build("aten.linear", |b| {
        let t = b.transpose(w, &[1, 0])?;
        let y = b.matmul(x, t)?;
        b.add(y, bias)
    });
    let z = c.build("aten.silu", |b| {
        let n = b.neg(y)?;
        let e = b.exp(n)?;
        let one = b.scalar_like(e, 1.0);
        let d = b.add(e, one)?;
        b.div(y, d)
    });
    c.output(z);
    let (xs, ws, bs) = (data((m * k) as usize, 4), data((n * k) as usize, 5), data(n as usize, 6));
    let (got, kernels) = c.run(&[m], &[xs.clone(), ws.clone(), bs.clone()]);
    let mut want = vec![];
    for row in xs.chunks(k as usize) {
        for (w, b) in ws.chunks(k as usize).zip(&bs) {
            let y = row.iter().zip(w).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() + f64::from(*b);
            want.push(y / (1.0 + (-y).exp()));
        }
    }
    close(&got[0], &want);
    assert_eq!(kernels, 1);
}

#[test]
fn two_products_of_one_shape_share_a_kernel() {
    let (m, n, k) = (5, 40, 17);
    let mut c = Case::new();
    let x = c.input("x", &[1, m, k], Role::Argument);
    let (g, u) = (c.input("g", &[n, k], Role::Parameter), c.input("u", &[n, k], Role::Parameter));
    let product = |b: &mut Builder<'_>, w: Arg| {
        let t = b.transpose(w, &[1, 0])?;
        b.matmul(x, t)
    };
    let (a, b) = (c.build("aten.linear", |b| product(b, g)), c.build("aten.linear", |b| product(b, u)));
    let y = c.build("aten.mul", |bb| {
        let t = bb.tanh(a)?;
        bb.mul(t, b)
    });
    c.output(y);
    let (xs, gs, us) = (data((m * k) as usize, 7), data((n * k) as usize, 8), data((n * k) as usize, 9));
    let (got, kernels) = c.run(&[], &[xs.clone(), gs.clone(), us.clone()]);
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let mut want = vec![];
    for row in xs.chunks(k as usize) {
        for (g, u) in gs.chunks(k as usize).zip(us.chunks(k as usize)) {
            want.push(dot(row, g).tanh() * dot(row, u));
        }
    }
    close(&got[0], &want);
    assert_eq!(kernels, 1);
}

#[test]
fn heads_are_split_in_the_epilogue() {
    let (s, h, d, k) = (6, 3, 8, 10);
    let mut c = Case::new();
    let x = c.input("x", &[2, s, k], Role::Argument);
    let w = c.input("w", &[h * d, k], Role::Parameter);
    let y = c.build("aten.linear", |b| {
        let t = b.transpose(w, &[1, 0])?;
        let y = b.matmul(x, t)?;
        let y = b.reshape(y, &[2, s, h, d].map(Ix::Const))?;
        b.transpose(y, &[0, 2, 1, 3])
    });
    c.output(y);
    let (xs, ws) = (data((2 * s * k) as usize, 10), data((h * d * k) as usize, 11));
    let (got, kernels) = c.run(&[], &[xs.clone(), ws.clone()]);
    let (s, h, d, k) = (s as usize, h as usize, d as usize, k as usize);
    let mut want = vec![];
    for b in 0..2 {
        for head in 0..h {
            for row in 0..s {
                for e in 0..d {
                    let x = &xs[(b * s + row) * k..][..k];
                    let w = &ws[(head * d + e) * k..][..k];
                    want.push(x.iter().zip(w).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>());
                }
            }
        }
    }
    close(&got[0], &want);
    assert_eq!(kernels, 1);
}

#[test]
fn products_of_one_operand_run_as_one_kernel_on_packed_weights() {
    let (m, k) = (9i64, 40i64);
    let mut c = Case::new();
    let x = c.input("x", &[1, m, k], Role::Argument);
    let sizes = [96i64, 33, 64];
    let ws: Vec<Arg> = sizes.iter().map(|n| c.input("w", &[*n, k], Role::Parameter)).collect();
    for w in &ws {
        let y = c.build("aten.linear", |b| {
            let t = b.transpose(*w, &[1, 0])?;
            b.matmul(x, t)
        });
        c.output(y);
    }
    let mut inputs = vec![data((m * k) as usize, 30)];
    inputs.extend(sizes.iter().enumerate().map(|(i, n)| data((n * k) as usize, 31 + i as u64)));
    let (got, kernels) = c.run(&[], &inputs);
    assert_eq!(kernels, 1);
    for (got, w) in got.iter().zip(&inputs[1..]) {
        let mut want = vec![];
        for row in inputs[0].chunks(k as usize) {
            for w in w.chunks(k as usize) {
                want.push(row.iter().zip(w).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>());
            }
        }
        close(got, &want);
    }
}

/// Attention with grouped heads and a causal mask, the sequence's length known at run time only.
#[test]
fn attention_is_one_kernel() {
    let (h, g, d, s) = (4i64, 2i64, 8i64, 150i64);
    let mut c = Case::new();
    let sym = c.graph.add_symbol("s0", 1, None);
    let shape = |heads: i64| vec![Ix::Const(1), Ix::Const(heads), sym.ix(), Ix::Const(d)];
    let q: Arg = c.graph.add_input("q", Elem::F32, shape(h), Role::Argument).into();
    let k: Arg = c.graph.add_input("k", Elem::F32, shape(g), Role::Argument).into();
    let v: Arg = c.graph.add_input("v", Elem::F32, shape(g), Role::Argument).into();
    let y = c.build("aten.scaled_dot_product_attention", |b| {
        let grouped = |b: &mut Builder<'_>, x: Arg| {
            let coords = vec![axis(0), Ix::floor_div(axis(1), Ix::Const(h / g)), axis(2), axis(3)];
            b.map("heads", x, shape(h), coords)
        };
        let (k, v) = (grouped(b, k), grouped(b, v));
        let t = b.transpose(k, &[0, 1, 3, 2])?;
        let s = b.matmul(q, t)?;
        let scale = b.scalar_like(s, 1.0 / (d as f64).sqrt());
        let s = b.mul(s, scale)?;
        let plane = vec![sym.ix(), sym.ix()];
        let (row, col) = (b.index(axis(0), Elem::I64, plane.clone()), b.index(axis(1), Elem::I64, plane));
        let seen = b.compare(girih_compiler::num::op::Predicate::LessThanOrEqual, col, row)?;
        let none = b.scalar_like(s, f64::NEG_INFINITY);
        let s = b.select(seen, s, none)?;
        let p = softmax(b, s, 3)?;
        let y = b.matmul(p, v)?;
        b.transpose(y, &[0, 2, 1, 3])
    });
    c.output(y);
    let (hs, gs, ds, ss) = (h as usize, g as usize, d as usize, s as usize);
    let (qs, ks, vs) = (data(hs * ss * ds, 20), data(gs * ss * ds, 21), data(gs * ss * ds, 22));
    let (got, kernels) = c.run(&[s], &[qs.clone(), ks.clone(), vs.clone()]);
    let mut want = vec![0.0; hs * ss * ds];
    for head in 0..hs {
        let of = |x: &[f32], heads: usize, row: usize| x[(heads * ss + row) * ds..][..ds].to_vec();
        for row in 0..ss {
            let q = of(&qs, head, row);
            let dot = |k: &[f32]| q.iter().zip(k).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let e: Vec<f64> = (0..=row).map(|j| (dot(&of(&ks, head / 2, j)) / (d as f64).sqrt()).exp()).collect();
            let l: f64 = e.iter().sum();
            for (j, e) in e.iter().enumerate() {
                for (n, v) in of(&vs, head / 2, j).iter().enumerate() {
                    want[(row * hs + head) * ds + n] += e / l * f64::from(*v);
                }
            }
        }
    }
    close(&got[0], &want);
    assert_eq!(kernels, 1);
}

#[test]
fn whole_operations_and_edges() {
    let mut c = Case::new();
    let x = c.input("x", &[3, 7], Role::Argument);
    let (sorted, sums) = c.build("aten.sort", |b| {
        let (s, _) = b.sort(x, 1, true)?;
        Ok((s, b.scan(girih_compiler::graph::ScanOp::Sum, s, 1, false, true)?))
    });
    let padded = c.build("aten.pad", |b| {
        let zero = b.scalar_like(sums, 0.5);
        let edge = [Ix::Const(0), Ix::Const(2)];
        let p = b.pad(sums, &edge, &edge, zero)?;
        b.concat(&[p, p], 0)
    });
    c.output(sorted);
    c.output(padded);
    let total: ValueId = match c.build("aten.sum", |b| b.reduce(ReduceOp::Sum, x, &[0, 1], true)) {
        Arg::Value(v) => v,
        _ => panic!(),
    };
    c.output(total.into());
    let xs = data(21, 12);
    let (got, _) = c.run(&[], std::slice::from_ref(&xs));
    let mut want = vec![];
    let mut first = vec![];
    for row in xs.chunks(7) {
        let mut row = row.to_vec();
        row.sort_by(|a, b| b.total_cmp(a));
        first.extend(row.iter().map(|v| f64::from(*v)));
        want.extend([0.5, 0.5]);
        want.extend((0..7).map(|i| row[i..].iter().map(|v| f64::from(*v)).sum::<f64>()));
        want.extend([0.5, 0.5]);
    }
    close(&got[0], &first);
    close(&got[1], &[want.clone(), want].concat());
    close(&got[2], &[xs.iter().map(|v| f64::from(*v)).sum::<f64>()]);
    let _ = axis(0);
}

/// Lowers a graph on a thread with the least stack that callers have, and gives the number of its kernels.
fn lowered_on_a_small_stack(case: Case) -> usize {
    let work = move || {
        let graph = decompose::decompose(&case.graph, &mut |_| {}).unwrap();
        lower(&graph, &Options::default(), &mut Log::default()).unwrap().steps.len()
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap()
}

#[test]
fn long_chains_are_cut_into_kernels() {
    for op in ["aten.sigmoid", "aten.relu", "aten.exp"] {
        let mut case = Case::new();
        let mut x = case.input("x", &[64], Role::Argument);
        for _ in 0..1500 {
            x = case.build(op, |b| b.source(op, vec![x], Default::default()))[0];
        }
        case.output(x);
        let kernels = lowered_on_a_small_stack(case);
        // At least one operation each; a kernel holds 128 values after one another.
        assert!((1500 / 129..200).contains(&kernels), "{op}: {kernels}");
    }
}

#[test]
fn coordinates_that_double_with_each_map_are_cut_too() {
    // Rows of 15 read as rows of 7, turned around: no two of these maps compose.
    let mut case = Case::new();
    let mut x = case.input("x", &[15, 7], Role::Argument);
    for _ in 0..100 {
        x = case.build("aten.t", |b| {
            let turned = b.swap_axes(x, 0, 1)?;
            b.reshape(turned, &[Ix::Const(15), Ix::Const(7)])
        });
    }
    case.output(x);
    assert!(lowered_on_a_small_stack(case) > 0);
}

/// Parts of very different lengths, one that is computed, one that is empty and one of an extent that is not known, along
/// each axis; 20 of them are written in two steps.
#[test]
fn a_wide_concatenation_is_written_in_parts() {
    for axis in [0, 1] {
        let mut c = Case::new();
        let s = c.graph.add_symbol("s0", 0, None);
        let lengths: Vec<i64> = (0..20).map(|i| [3, 1, 0, 40, 5][i % 5]).collect();
        let (mut args, mut inputs) = (vec![], vec![]);
        for (i, &n) in lengths.iter().enumerate() {
            let (known, known_shape) = if i == 7 { (s.ix(), 6) } else { (Ix::Const(n), n) };
            let shape = if axis == 0 { vec![known, Ix::Const(2)] } else { vec![Ix::Const(2), known] };
            args.push(c.graph.add_input(&format!("x{i}"), Elem::F32, shape, Role::Argument).into());
            inputs.push(data(2 * known_shape as usize, i as u64 + 1));
        }
        let y = c.build("aten.cat", |b| {
            let two = b.scalar_like(args[3], 2.0);
            args[3] = b.mul(args[3], two)?;
            b.concat(&args, axis)
        });
        c.output(y);
        let (got, kernels) = c.run(&[6], &inputs);
        let computed = |i: usize, x: f32| f64::from(if i == 3 { x * 2.0 } else { x });
        let mut want = vec![];
        let rows = if axis == 0 { 1 } else { 2 };
        for row in 0..rows {
            for (i, x) in inputs.iter().enumerate() {
                let each = x.len() / rows;
                want.extend(x[row * each..(row + 1) * each].iter().map(|x| computed(i, *x)));
            }
        }
        close(&got[0], &want);
        assert_eq!(kernels, 2, "along axis {axis}");
    }
}

/// Reads two elements of a wide concatenation from either side: it has an array, and whoever reads it goes through that.
#[test]
fn what_reads_a_wide_concatenation_reads_its_array() {
    let mut c = Case::new();
    let args: Vec<Arg> = (0..40).map(|i| c.input(&format!("x{i}"), &[1, 3], Role::Argument)).collect();
    let y = c.build("aten.cat", |b| {
        let y = b.concat(&args, 0)?;
        let flipped =
            b.map("flip", y, vec![Ix::Const(40), Ix::Const(3)], vec![Ix::sub(Ix::Const(39), axis(0)), axis(1)]);
        b.add(y, flipped)
    });
    c.output(y);
    let inputs: Vec<Vec<f32>> = (0..40).map(|i| data(3, i + 1)).collect();
    let (got, _) = c.run(&[], &inputs);
    let want: Vec<f64> = (0..40)
        .flat_map(|i| {
            inputs[i].iter().zip(&inputs[39 - i]).map(|(a, b)| f64::from(*a) + f64::from(*b)).collect::<Vec<_>>()
        })
        .collect();
    close(&got[0], &want);
}

/// Sources under conditions that follow no axis: each is read where no earlier one is.
#[test]
fn many_sources_in_any_order() {
    let mut c = Case::new();
    let args: Vec<Arg> = (0..20).map(|i| c.input(&format!("x{i}"), &[8], Role::Argument)).collect();
    let source = |i: u32| {
        let at = Ix::modulo(Ix::mul(axis(0), Ix::Const(7)), Ix::Const(20));
        let when = girih_compiler::index::Mask {
            conds: vec![girih_compiler::index::Cond::new(at, girih_compiler::index::Cmp::Eq, Ix::Const(i.into()))],
            vals: vec![],
        };
        girih_compiler::graph::ir::MapSource { arg: i, coords: vec![Ix::modulo(axis(0), Ix::Const(8))], when }
    };
    let mut sources: Vec<_> = (0..20).map(source).collect();
    sources[19].when = Default::default();
    let y = c.build("aten.choose", |b| Ok(b.map_sources("choose", args.clone(), vec![Ix::Const(30)], sources)));
    c.output(y);
    let inputs: Vec<Vec<f32>> = (0..20).map(|i| data(8, i + 1)).collect();
    let (got, _) = c.run(&[], &inputs);
    let want: Vec<f64> = (0..30).map(|i| f64::from(inputs[i * 7 % 20][i % 8])).collect();
    close(&got[0], &want);
}

/// Between attention's two products each value is used twice, 64 times over: there are 2^64 ways from one to the other.
#[test]
fn values_used_twice_between_two_products() {
    let mut c = Case::new();
    let shape = [4, 16];
    let (q, k, v) = (
        c.input("q", &shape, Role::Argument),
        c.input("k", &shape, Role::Argument),
        c.input("v", &shape, Role::Argument),
    );
    let y = c.build("aten.attention", |b| {
        let t = b.transpose(k, &[1, 0])?;
        let mut s = b.matmul(q, t)?;
        for _ in 0..64 {
            s = b.elementwise(girih_compiler::num::ScalarOp::MaxF { nan: true, ftz: false }, &[s, s])?;
        }
        let p = softmax(b, s, 1)?;
        b.matmul(p, v)
    });
    c.output(y);
    let (qs, ks, vs) = (data(64, 31), data(64, 32), data(64, 33));
    let (got, _) = c.run(&[], &[qs.clone(), ks.clone(), vs.clone()]);
    let mut want = vec![];
    for q in qs.chunks(16) {
        let dot = |k: &[f32]| q.iter().zip(k).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        let e: Vec<f64> = ks.chunks(16).map(|k| dot(k).exp()).collect();
        let sum: f64 = e.iter().sum();
        want.extend((0..16).map(|n| e.iter().zip(vs.chunks(16)).map(|(e, v)| e / sum * f64::from(v[n])).sum::<f64>()));
    }
    close(&got[0], &want);
}

/// Some thousand maps before a product, of an argument and of a weight: they are followed without recursion, and no
/// further than pays.
#[test]
fn long_chains_of_maps_before_a_product() {
    for (role, maps) in [(Role::Argument, 400), (Role::Parameter, 400), (Role::Parameter, 6000)] {
        let mut c = Case::new();
        let (x, w) = (c.input("x", &[8, 8], Role::Argument), c.input("w", &[8, 8], role));
        let y = c.build("aten.mm", |b| {
            let mut t = w;
            for _ in 0..maps {
                t = b.transpose(t, &[1, 0])?;
            }
            b.matmul(x, t)
        });
        c.output(y);
        if maps > 1000 {
            let graph = decompose::decompose(&c.graph, &mut |_| {}).unwrap();
            lower(&graph, &Options::default(), &mut Log::default()).unwrap();
            continue;
        }
        let (xs, ws) = (data(64, 41), data(64, 42));
        let (got, _) = c.run(&[], &[xs.clone(), ws.clone()]);
        let element =
            |i: usize| (0..8).map(|k| f64::from(xs[i / 8 * 8 + k]) * f64::from(ws[k * 8 + i % 8])).sum::<f64>();
        close(&got[0], &(0..64).map(element).collect::<Vec<f64>>());
    }
}

/// A value computed from weights is kept once, not for each element of the batch that it is multiplied with.
#[test]
fn weights_are_not_repeated_for_a_batch() {
    let mut c = Case::new();
    let x = c.input("x", &[6, 4, 5], Role::Argument);
    let w = c.input("w", &[5, 7], Role::Parameter);
    let y = c.build("test", |b| {
        let scaled = b.mul(w, girih_compiler::graph::ir::scalar(Elem::F32, 0.5))?;
        b.matmul(x, scaled)
    });
    c.output(y);
    let graph = decompose::decompose(&c.graph, &mut |_| {}).unwrap();
    let plan = lower(&graph, &Options::default(), &mut Log::default()).unwrap();
    let loaded: Vec<Vec<Ix>> = plan.arrays.values().filter(|a| a.at_load).map(|a| a.shape.clone()).collect();
    let elements = |shape: &Vec<Ix>| shape.iter().filter_map(Ix::as_const).product::<i64>();
    assert_eq!(plan.load.len(), 1);
    assert!(loaded.iter().all(|shape| elements(shape) == 35), "{loaded:?}");
    let (xs, ws) = (data(120, 1), data(35, 2));
    let halves: Vec<f64> = xs.iter().map(|x| f64::from(*x) * 0.5).collect();
    let want = product(&halves, 5, &ws);
    close(&c.run(&[], &[xs, ws]).0[0], &want);
}

/// An operand of many products is read where it lies, or is stored once in its own shape: never for each column of a product.
#[test]
fn an_operand_of_many_products_is_not_repeated() {
    let (m, k, n) = (6i64, 20i64, 16i64);
    for computed in [false, true] {
        for uses in [1usize, 12, 13, 40, 200] {
            let mut c = Case::new();
            let x = c.input("x", &[m, k], Role::Argument);
            let left = match computed {
                true => c.build("tanh", |b| b.tanh(x)),
                false => x,
            };
            for _ in 0..uses {
                let w = c.input("w", &[k, n], Role::Parameter);
                let y = c.build("product", |b| b.matmul(left, w));
                c.output(y);
            }
            let graph = decompose::decompose(&c.graph, &mut |_| {}).unwrap();
            let plan = lower(&graph, &Options::default(), &mut Log::default()).unwrap();
            let elements = |shape: &Vec<Ix>| shape.iter().filter_map(Ix::as_const).product::<i64>();
            let large: Vec<_> = plan.arrays.values().filter(|a| elements(&a.shape) > k * n).map(|a| &a.shape).collect();
            assert!(large.is_empty(), "{uses} uses: {large:?}");
            if uses == 13 {
                let sizes = std::iter::once(m * k).chain(std::iter::repeat_n(k * n, uses));
                let inputs: Vec<_> = sizes.enumerate().map(|(at, len)| data(len as usize, 70 + at as u64)).collect();
                let of = |x: &f32| if computed { f64::from(*x).tanh() } else { f64::from(*x) };
                let left: Vec<f64> = inputs[0].iter().map(of).collect();
                close(&c.run(&[], &inputs).0[12], &product(&left, k as usize, &inputs[13]));
            }
        }
    }
}

/// A kernel computes an element once, at however many depths of its expression it is needed.
#[test]
fn an_element_that_one_kernel_needs_often_is_computed_in_it() {
    let (rows, columns, uses) = (30usize, 50usize, 20);
    let mut c = Case::new();
    let x = c.input("x", &[rows as i64, columns as i64], Role::Argument);
    let g = c.input("g", &[columns as i64], Role::Argument);
    let y = c.build("gated", |b| {
        let gate = b.add(g, x)?;
        let mut y = x;
        for _ in 0..uses {
            y = b.mul(y, gate)?;
            y = b.tanh(y)?;
        }
        Ok(y)
    });
    c.output(y);
    let graph = decompose::decompose(&c.graph, &mut |_| {}).unwrap();
    let plan = lower(&graph, &Options::default(), &mut Log::default()).unwrap();
    assert_eq!(plan.steps.len(), 1);
    let (xs, gs) = (data(rows * columns, 1), data(columns, 2));
    let element = |(at, x): (usize, &f32)| {
        let gate = f64::from(gs[at % columns]) + f64::from(*x);
        (0..uses).fold(f64::from(*x), |y, _| (y * gate).tanh())
    };
    let want: Vec<f64> = xs.iter().enumerate().map(element).collect();
    close(&c.run(&[], &[xs.clone(), gs.clone()]).0[0], &want);
}

/// Rows take elements from the same places with the same weights, and others from a reflected border: after all rules as before them.
#[test]
fn rows_that_compute_the_same_share_it() {
    for (rows, columns) in [(1i64, 9i64), (2, 300), (3, 40), (5, 700), (64, 256), (65, 300), (130, 17), (7, 1030)] {
        let mut c = Case::new();
        let x = c.input("x", &[rows, columns], Role::Argument);
        let g = c.input("g", &[columns], Role::Argument);
        let y = c.build("samples", |b| {
            let scale = girih_compiler::graph::ir::scalar(Elem::F32, (columns - 1) as f64);
            let weight = b.exp(g)?;
            let size = b.abs(g)?;
            let place = b.mul(size, scale)?;
            let place = b.convert(place, Elem::I64)?;
            let shape = vec![Ix::Const(rows), Ix::Const(columns)];
            let sample = b.gather(x, &[place], vec![Coord::Ix(axis(0)), Coord::Arg(1)], shape.clone())?;
            let at = axis(1);
            let reflected = Ix::max(Ix::sub(at.clone(), Ix::Const(3)), Ix::sub(Ix::Const(3), at));
            let other = b.map("reflected", x, shape, vec![axis(0), reflected]);
            let weighted = b.mul(sample, weight)?;
            b.add(weighted, other)
        });
        c.output(y);
        let n = columns as usize;
        let (xs, gs) = (data((rows * columns) as usize, 5), data(n, 6));
        let element = |at: usize| {
            let (row, j) = (&xs[at / n * n..], at % n);
            let place = (gs[j].abs() * (columns - 1) as f32) as usize;
            f64::from(row[place]) * f64::from(gs[j]).exp() + f64::from(row[j.abs_diff(3)])
        };
        let want: Vec<f64> = (0..xs.len()).map(element).collect();
        close(&c.run(&[], &[xs.clone(), gs.clone()]).0[0], &want);
    }
}

/// A matrix of rows of `k` elements times one of `k` rows.
fn product(left: &[f64], k: usize, right: &[f32]) -> Vec<f64> {
    let n = right.len() / k;
    let element = |row: &[f64], j: usize| row.iter().enumerate().map(|(t, x)| x * f64::from(right[t * n + j])).sum();
    left.chunks(k).flat_map(|row| (0..n).map(move |j| element(row, j))).collect()
}

/// Weights of 8 bits are made floats where a product needs them; where that is little memory, and where it is none, at load.
#[test]
fn narrow_weights_stay_narrow() {
    let of = |elem: Elem, rows: i64, others: i64| {
        let mut c = Case::new();
        c.input("others", &[others], Role::Parameter);
        let x = c.input("x", &[3, rows], Role::Argument);
        let w = c.graph.add_input("w", elem, vec![Ix::Const(rows), Ix::Const(300)], Role::Parameter).into();
        let scale = c.input("s", &[300], Role::Parameter);
        let y = c.build("test", |b| {
            let w = b.convert(w, Elem::F32)?;
            let scaled = b.mul(w, scale)?;
            b.matmul(x, scaled)
        });
        c.output(y);
        lower(&c.graph, &Options::default(), &mut Log::default()).unwrap().load.len()
    };
    // 20 MB as floats, or 5 MB; the latter are little beside 40 MB of other weights.
    assert_eq!(of(Elem::I8, 16384, 1), 0);
    assert_eq!(of(Elem::I8, 4096, 1), 0);
    assert_eq!(of(Elem::I8, 4096, 10_000_000), 1);
    // With its scale not twice as wide as before.
    assert_eq!(of(Elem::F16, 16384, 1), 1);
    assert_eq!(of(Elem::F32, 16384, 1), 1);
    // 360 kB.
    assert_eq!(of(Elem::I8, 300, 1), 1);
}

/// Two weights of 4 bits share a byte: one row, or a few, unpack them where they are multiplied; for more it is done once, at load.
#[test]
fn weights_that_share_bytes_are_unpacked_for_few_rows() {
    let (n, k) = (256i64, 1024i64);
    for rows in [1, 3, 9] {
        let mut c = Case::new();
        let x = c.input("x", &[rows, k], Role::Argument);
        let w = c.graph.add_input("w", Elem::U8, vec![Ix::Const(n), Ix::Const(k / 2)], Role::Parameter).into();
        let y = c.build("test", |b| {
            let whole = b.convert(w, Elem::I32)?;
            let low = b.and(whole, int_scalar(Elem::I32, 15))?;
            let logical = ScalarOp::Shr { sign: Signedness::Unsigned };
            let high = b.elementwise(logical, &[whole, int_scalar(Elem::I32, 4)])?;
            let both = [b.unsqueeze(low, &[2])?, b.unsqueeze(high, &[2])?];
            let both = b.concat(&both, 2)?;
            let codes = b.reshape(both, &[n, k].map(Ix::Const))?;
            let codes = b.convert(codes, Elem::F32)?;
            let turned = b.transpose(codes, &[1, 0])?;
            b.matmul(x, turned)
        });
        c.output(y);
        let graph = decompose::decompose(&c.graph, &mut |_| {}).unwrap();
        let options = Options { workers: true, ..Options::default() };
        let plan = lower(&graph, &options, &mut Log::default()).unwrap();
        assert_eq!(plan.load.is_empty(), rows < 9, "{rows} rows");
        let (xs, packed) = (data((rows * k) as usize, 1), data((n * k / 2) as usize, 2));
        let packed: Vec<u8> = packed.iter().map(|v| (v * 1000.0) as i64 as u8).collect();
        let code = |at: usize| f64::from(packed[at / 2] >> (4 * (at % 2)) & 15);
        let (rows, n, k) = (rows as usize, n as usize, k as usize);
        let sum = |i: usize, j: usize| (0..k).map(|t| f64::from(xs[i * k + t]) * code(j * k + t)).sum();
        let want: Vec<f64> = (0..rows).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| sum(i, j)).collect();
        close(&floats(&scheduled(&plan, &[], &[bytes(&xs), packed])[0]), &want);
    }
}

/// Words of weights are stored at load as they are packed; the parts of a product that read them unpack them.
#[test]
fn parts_of_packed_weights_get_no_arrays() {
    let (n, words, lanes) = (512i64, 4i64, 64i64);
    let mut c = Case::new();
    let shape = [n, words, lanes, 4].map(Ix::Const).to_vec();
    let w = c.graph.add_input("w", Elem::U8, shape, Role::Parameter).into();
    let x = c.graph.add_input("x", Elem::I32, [2 * words, lanes].map(Ix::Const).to_vec(), Role::Argument).into();
    let y = c.build("test", |b| {
        let logical = ScalarOp::Shr { sign: Signedness::Unsigned };
        let whole = b.convert(w, Elem::I32)?;
        let packed = [n, words, lanes].map(Ix::Const).to_vec();
        let mut word: Option<Arg> = None;
        for at in 0..4 {
            let byte = b.map("byte", whole, packed.clone(), vec![axis(0), axis(1), axis(2), Ix::Const(at)]);
            let byte = b.elementwise(ScalarOp::Shl, &[byte, int_scalar(Elem::I32, 8 * at)])?;
            word = Some(word.map_or(Ok(byte), |word| b.or(word, byte))?);
        }
        let shape = [n, 2 * words, lanes].map(Ix::Const).to_vec();
        let half = Ix::floor_div(axis(1), Ix::Const(2));
        let twice = b.map("twice", word.unwrap(), shape.clone(), vec![axis(0), half, axis(2)]);
        let by = b.index(Ix::mul(Ix::modulo(axis(1), Ix::Const(2)), Ix::Const(4)), Elem::I32, shape);
        let shifted = b.elementwise(logical, &[twice, by])?;
        let bytes = b.and(shifted, int_scalar(Elem::I32, 0x0f0f_0f0f))?;
        let each = [n, lanes].map(Ix::Const).to_vec();
        let mut sum: Option<Arg> = None;
        for t in 0..2 * words {
            let of_w = b.map("word", bytes, each.clone(), vec![axis(0), Ix::Const(t), axis(1)]);
            let of_x = b.map("word", x, each.clone(), vec![Ix::Const(t), axis(1)]);
            let before = sum.unwrap_or(int_scalar(Elem::I32, 0));
            sum = Some(b.elementwise(ScalarOp::DotB, &[of_w, of_x, before])?);
        }
        b.reduce(ReduceOp::Sum, sum.unwrap(), &[1], false)
    });
    c.output(y);
    let graph = decompose::decompose(&c.graph, &mut |_| {}).unwrap();
    let options = Options { workers: true, ..Options::default() };
    let plan = lower(&graph, &options, &mut Log::default()).unwrap();
    let loaded = plan.arrays.values().filter(|a| matches!(a.place, ArrayPlace::Loaded));
    let loaded: Vec<_> = loaded.map(|a| a.shape.iter().map(|d| d.as_const().unwrap()).product::<i64>()).collect();
    assert_eq!((plan.load.len(), plan.steps.len(), &loaded[..]), (1, 1, &[n * words * lanes][..]));
    let packed: Vec<u8> = data((n * words * lanes * 4) as usize, 2).iter().map(|v| (v * 1000.0) as i64 as u8).collect();
    let signed: Vec<u8> = data((2 * words * lanes * 4) as usize, 3).iter().map(|v| (v * 1000.0) as i64 as u8).collect();
    let (n, words, lanes) = (n as usize, words as usize, lanes as usize);
    let term = |row: usize, t: usize, lane: usize, byte: usize| {
        let code = packed[((row * words + t / 2) * lanes + lane) * 4 + byte] >> (4 * (t % 2)) & 15;
        i32::from(code) * i32::from(signed[(t * lanes + lane) * 4 + byte] as i8)
    };
    let places = |row: usize| (0..2 * words * lanes * 4).map(move |i| (row, i / 4 / lanes, i / 4 % lanes, i % 4));
    let want = (0..n).flat_map(|row| places(row).map(|(r, t, l, b)| term(r, t, l, b)).sum::<i32>().to_le_bytes());
    assert_eq!(scheduled(&plan, &[], &[packed.clone(), signed.clone()])[0], want.collect::<Vec<u8>>());
}

/// A scale for every few elements of a row is stored for each of them, so that it is read as a vector; one for many is not.
#[test]
fn few_repetitions_are_stored() {
    for (times, loads) in [(4, 1), (8, 1), (32, 0)] {
        let (n, k) = (4096i64, 64i64);
        let mut c = Case::new();
        let x = c.input("x", &[1, k], Role::Argument);
        let s = c.input("s", &[n, k / times], Role::Parameter);
        let y = c.build("test", |b| {
            let coords = vec![axis(0), Ix::floor_div(axis(1), Ix::Const(times))];
            let spread = b.map("spread", s, [n, k].map(Ix::Const).to_vec(), coords);
            let half = b.mul(spread, girih_compiler::graph::ir::scalar(Elem::F32, 0.5))?;
            let terms = b.mul(x, half)?;
            b.reduce(ReduceOp::Sum, terms, &[1], false)
        });
        c.output(y);
        assert_eq!(lower(&c.graph, &Options::default(), &mut Log::default()).unwrap().load.len(), loads, "{times}");
    }
}

/// Channels in groups: the loop over channels is two, and what a group needs is computed in it.
#[test]
fn groups_of_channels_are_rows() {
    for groups in [4, 5, 1] {
        let (each, pixels) = (3, 7);
        let mut c = Case::new();
        let x = c.input("x", &[2, groups * each, pixels], Role::Argument);
        let w = c.input("w", &[groups * each, 1], Role::Parameter);
        let y = c.build("test", |b| {
            let grouped = b.reshape(x, &[2, groups, each, pixels].map(Ix::Const))?;
            let sums = b.reduce(ReduceOp::Sum, grouped, &[2, 3], true)?;
            let less = b.sub(grouped, sums)?;
            let back = b.reshape(less, &[2, groups * each, pixels].map(Ix::Const))?;
            b.mul(back, w)
        });
        c.output(y);
        let (channels, pixels) = ((groups * each) as usize, pixels as usize);
        let (xs, ws) = (data(2 * channels * pixels, 1), data(channels, 2));
        let sum = |n: usize, group: usize| -> f64 {
            let first = (n * channels + group * each as usize) * pixels;
            xs[first..first + each as usize * pixels].iter().map(|x| f64::from(*x)).sum()
        };
        let at = |n: usize, c: usize, p: usize| {
            (f64::from(xs[(n * channels + c) * pixels + p]) - sum(n, c / each as usize)) * f64::from(ws[c])
        };
        let places = (0..2).flat_map(|n| (0..channels).flat_map(move |c| (0..pixels).map(move |p| (n, c, p))));
        let want: Vec<f64> = places.map(|(n, c, p)| at(n, c, p)).collect();
        let (got, count) = c.run(&[], &[xs.clone(), ws.clone()]);
        close(&got[0], &want);
        assert_eq!(count, 1, "{groups} groups");
    }
}

/// A vector that every row is summed with is computed once, not again for each row; what belongs to a row is not stored.
#[test]
fn what_rows_share_is_computed_once() {
    for (shared, kernels) in [(true, 2), (false, 1)] {
        let mut c = Case::new();
        let x = c.input("x", &[if shared { 1 } else { 300 }, 200], Role::Argument);
        let y = c.input("y", &[300, 200], Role::Argument);
        let sums = c.build("test", |b| {
            let e = b.exp(x)?;
            let terms = b.mul(e, y)?;
            b.reduce(ReduceOp::Sum, terms, &[1], false)
        });
        c.output(sums);
        let rows = if shared { 1 } else { 300 };
        let (xs, ys) = (data(rows * 200, 1), data(300 * 200, 2));
        let term = |r: usize, k: usize| f64::from(xs[(r % rows) * 200 + k]).exp() * f64::from(ys[r * 200 + k]);
        let want: Vec<f64> = (0..300).map(|r| (0..200).map(|k| term(r, k)).sum()).collect();
        let (got, count) = c.run(&[], &[xs.clone(), ys.clone()]);
        close(&got[0], &want);
        assert_eq!(count, kernels, "shared: {shared}");
    }
}

/// Each long row of a convolution is a product of its own, whose reads lie side by side, and so is each image whose windows do not
/// overlap; short rows, and small images, are columns one behind the other.
#[test]
fn long_rows_of_windows_are_blocks() {
    for (width, kernel, axes) in [(40, 3, 1), (12, 3, 3), (40, 1, 2), (10, 1, 3)] {
        let mut c = Case::new();
        let x = c.input("x", &[2, 3, 9, width], Role::Argument);
        let w = c.input("w", &[4, 3, kernel, kernel], Role::Argument);
        let pads = vec![Attr::Int(Ix::Const(kernel / 2)); 4];
        let attrs = [("pads".to_string(), Attr::List(pads))].into();
        let y = c.build("onnx.Conv", |b| b.source("onnx.Conv", vec![x, w], attrs))[0];
        c.output(y);
        let graph = decompose::decompose(&c.graph, &mut |_| {}).unwrap();
        let dot = graph.nodes.values().find(|n| matches!(&n.op, girih_compiler::graph::ir::Op::Reduce { .. })).unwrap();
        let roles = girih_compiler::loops::model::roles::product(&graph, dot.results[0]).unwrap();
        assert_eq!(roles.n.len(), axes, "{width}, {kernel}: {roles:?}");
        let (xs, ws) = (data((2 * 3 * 9 * width) as usize, 1), data((4 * 3 * kernel * kernel) as usize, 2));
        let at = |n: i64, ch: i64, h: i64, v: i64| match (0..9).contains(&h) && (0..width).contains(&v) {
            true => f64::from(xs[(((n * 3 + ch) * 9 + h) * width + v) as usize]),
            false => 0.0,
        };
        let mut want = vec![];
        for n in 0..2 {
            for o in 0..4 {
                for (h, v) in (0..9).flat_map(|h| (0..width).map(move |v| (h, v))) {
                    let mut sum = 0.0;
                    for (ch, i, j) in
                        (0..3).flat_map(|ch| (0..kernel).flat_map(move |i| (0..kernel).map(move |j| (ch, i, j))))
                    {
                        let weight = ws[(((o * 3 + ch) * kernel + i) * kernel + j) as usize];
                        sum += at(n, ch, h + i - kernel / 2, v + j - kernel / 2) * f64::from(weight);
                    }
                    want.push(sum);
                }
            }
        }
        close(&c.run(&[], &[xs.clone(), ws.clone()]).0[0], &want);
    }
}

/// An output that replaces an argument is written where that lies, if nothing else reads the argument.
#[test]
fn an_argument_is_updated_where_it_lies() {
    for (sum, replaces) in [(false, true), (true, true), (false, false)] {
        let mut case = Case::new();
        let (x, rows) = (case.input("x", &[6, 4], Role::Argument), case.input("rows", &[3, 4], Role::Argument));
        let coords = vec![Coord::Ix(Ix::mul(axis(0), Ix::Const(2))), Coord::Ix(axis(1))];
        let y = case.build("aten.index_copy", |b| b.scatter(x, &[], rows, coords, ScatterOp::Set));
        let z = case.build("aten.sum", |b| b.reduce(ReduceOp::Sum, if sum { x } else { y }, &[0], false));
        case.output(y);
        case.output(z);
        if replaces {
            case.graph.replaced.push((0, 0));
        }
        let (old, new) = (data(24, 1), data(12, 2));
        let (found, _) = case.run(&[], &[old.clone(), new.clone()]);
        let updated: Vec<f64> =
            (0..24).map(|i| if i / 4 % 2 == 0 { new[i / 8 * 4 + i % 4] } else { old[i] }).map(f64::from).collect();
        close(&found[0], &updated);
        let of: Vec<f64> = if sum { old.iter().copied().map(f64::from).collect() } else { updated };
        let sums: Vec<f64> = (0..4).map(|column| (0..6).map(|row| of[row * 4 + column]).sum()).collect();
        close(&found[1], &sums);
        let plan = lower(&case.graph, &Options::default(), &mut Log::default()).unwrap();
        let in_place = plan.arrays[plan.outputs[0]].place == ArrayPlace::Input(0);
        assert_eq!(in_place, replaces && !sum);
        let loads = print(&plan.steps[0].kernel, Dialect::Loop).matches("load x[").count();
        assert_eq!(loads == 0, in_place, "{}", print(&plan.steps[0].kernel, Dialect::Loop));
    }
}
