//! Expectations are worked out by hand or by plain loops.

use super::*;
use crate::base::Limits;
use crate::graph::ir::{self, MapSource, ReduceOp, ScatterOp, SymId};
use crate::graph::{Builder, Role, ScanOp};
use crate::index::{Cmp, Cond, Ix, Mask};

fn c(n: i64) -> Ix {
    Ix::Const(n)
}

/// A graph of inputs `x0`, `x1`, ... and what `make` builds of them, evaluated.
fn run(inputs: &[Tensor], make: impl FnOnce(&mut Builder<'_>, &[Arg]) -> Vec<Arg>) -> Result<Vec<Tensor>, String> {
    let graph = graph_of(inputs, make);
    evaluate(&graph, inputs, &no_files, &Options::default()).map_err(|e| e.to_string())
}

fn graph_of(inputs: &[Tensor], make: impl FnOnce(&mut Builder<'_>, &[Arg]) -> Vec<Arg>) -> Graph {
    let mut graph = Graph::default();
    let shape = |t: &Tensor| t.shape.iter().map(|d| c(*d as i64)).collect();
    let args: Vec<Arg> = inputs
        .iter()
        .enumerate()
        .map(|(i, t)| graph.add_input(&format!("x{i}"), t.elem, shape(t), Role::Argument).into())
        .collect();
    let origin = graph.add_origin("test", "", None);
    for (i, out) in make(&mut Builder::new(&mut graph, origin), &args).into_iter().enumerate() {
        let Arg::Value(value) = out else { panic!("an output is not a tensor") };
        graph.outputs.push(crate::graph::Output { name: format!("y{i}"), value });
    }
    graph
}

fn one(inputs: &[Tensor], make: impl FnOnce(&mut Builder<'_>, &[Arg]) -> Arg) -> Vec<f64> {
    run(inputs, |b, x| vec![make(b, x)]).unwrap()[0].numbers()
}

fn f32s(shape: &[u64], data: &[f64]) -> Tensor {
    Tensor::from_f32(shape, data.iter().map(|x| *x as f32).collect()).unwrap()
}

fn i64s(shape: &[u64], data: &[i64]) -> Tensor {
    Tensor::from_bits(Elem::I64, shape, data.iter().map(|x| *x as u64).collect()).unwrap()
}

/// 0, 1, 2, ...
fn count(shape: &[u64]) -> Tensor {
    let n = shape.iter().product::<u64>();
    f32s(shape, &(0..n).map(|i| i as f64).collect::<Vec<_>>())
}

#[test]
fn layouts_are_read_in_place() {
    let x = count(&[2, 3]);
    assert_eq!(one(std::slice::from_ref(&x), |b, x| b.transpose(x[0], &[1, 0]).unwrap()), [0., 3., 1., 4., 2., 5.]);
    assert_eq!(one(std::slice::from_ref(&x), |b, x| b.reshape(x[0], &[c(3), c(2)]).unwrap()), [0., 1., 2., 3., 4., 5.]);
    assert_eq!(
        one(std::slice::from_ref(&x), |b, x| b.slice(x[0], 1, c(2), -1, c(3)).unwrap()),
        [2., 1., 0., 5., 4., 3.]
    );
    let wide = one(std::slice::from_ref(&x), |b, x| {
        let y = b.transpose(x[0], &[1, 0]).unwrap();
        let y = b.reshape(y, &[c(6)]).unwrap();
        b.concat(&[y, y], 0).unwrap()
    });
    assert_eq!(wide, [0., 3., 1., 4., 2., 5., 0., 3., 1., 4., 2., 5.]);
    let padded = one(&[x], |b, x| {
        let zero = b.scalar_like(x[0], 9.0);
        b.pad(x[0], &[c(0), c(1)], &[c(1), c(-1)], zero).unwrap()
    });
    assert_eq!(padded, [9., 0., 1., 9., 3., 4., 9., 9., 9.]);
}

#[test]
fn coordinates_that_are_no_sums_over_axes_are_evaluated() {
    // y[i, j] = x[(i*j) % 4], only where i + j > 2.
    let out = one(&[count(&[4])], |b, x| {
        let (i, j) = (crate::graph::ir::axis(0), crate::graph::ir::axis(1));
        let at = Ix::modulo(Ix::mul(i.clone(), j.clone()), c(4));
        let when = Mask { conds: vec![Cond::new(Ix::add(i, j), Cmp::Gt, c(2))], vals: vec![] };
        let minus = b.scalar_like(x[0], -1.0);
        let sources = vec![
            MapSource { arg: 0, coords: vec![at], when },
            MapSource { arg: 1, coords: vec![], when: Mask::default() },
        ];
        b.map_sources("m", vec![x[0], minus], vec![c(3), c(3)], sources)
    });
    assert_eq!(out, [-1., -1., -1., -1., -1., 2., -1., 2., 0.]);
}

#[test]
fn a_map_that_reads_outside_its_tensor_is_an_error() {
    let at = |b: &mut Builder<'_>, x: Arg, ix: Ix| b.map("m", x, vec![c(3)], vec![ix]);
    let i = crate::graph::ir::axis(0);
    let out = run(&[count(&[4])], |b, x| vec![at(b, x[0], Ix::add(i.clone(), c(2)))]);
    assert_eq!(out.unwrap_err(), "`m`: it reads position 4 along axis 0, whose extent is 4, at [2]");
}

#[test]
fn products_fuse_in_ascending_order() {
    // [2, 3] @ [3, 9]: more columns than are computed together.
    let (a, b) = (count(&[2, 3]), count(&[3, 9]));
    let out = one(&[a.clone(), b.clone()], |g, x| g.matmul(x[0], x[1]).unwrap());
    let mut want = vec![];
    for i in 0..2 {
        for j in 0..9 {
            want.push((0..3).map(|k| a.number(i * 3 + k) * b.number(k * 9 + j)).sum::<f64>());
        }
    }
    assert_eq!(out, want);
}

#[test]
fn rounding_of_f32_products_is_that_of_fma() {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Exponents from subnormal to large; few digits make ties likely.
        let (e, m) = ((state >> 40) % 256, (state >> 20) & 0x7f_f000);
        f32::from_bits(((state >> 63 << 31) | (e % 255) << 23 | m) as u32)
    };
    let (a, b): (Vec<f32>, Vec<f32>) = (0..4000).map(|_| (next(), next())).unzip();
    let at = |v: &[f32]| Tensor::from_f32(&[500, 8], v.to_vec()).unwrap();
    let out = run(&[at(&a), at(&b)], |g, x| vec![g.dot(x[0], x[1], Elem::F32, &[1], false).unwrap()]).unwrap();
    for i in 0..500 {
        let want = (0..8).fold(0f32, |acc, k| a[i * 8 + k].mul_add(b[i * 8 + k], acc));
        let got = out[0].bits(i) as u32;
        assert!(got == want.to_bits() || want.is_nan() && got == 0x7fc0_0000, "row {i}: {want:?}");
    }
    // 2^-127 + 2^-150*(1 + 2^-22): rounding to f64 first would lose what makes it round up.
    let (x, y) = (2f32.powi(-75) * (1.0 + 2f32.powi(-22)), 2f32.powi(-75));
    let rows =
        [Tensor::from_f32(&[2], vec![1.0, x]).unwrap(), Tensor::from_f32(&[2], vec![2f32.powi(-127), y]).unwrap()];
    let out = run(&rows, |g, x| vec![g.dot(x[0], x[1], Elem::F32, &[0], false).unwrap()]).unwrap();
    assert_eq!(out[0].bits(0) as u32, x.mul_add(y, 2f32.powi(-127)).to_bits());
}

#[test]
fn half_precision_accumulates_in_f32() {
    // 2048 + 1 is not an f16, so an f16 accumulator would stay at 2048.
    let ones = Tensor::from_bits(Elem::F16, &[2049], vec![0x3c00; 2049]).unwrap();
    let out = run(&[ones.clone(), ones], |g, x| vec![g.dot(x[0], x[1], Elem::F32, &[0], false).unwrap()]).unwrap();
    assert_eq!(out[0].numbers(), [2049.0]);
}

#[test]
fn folds_follow_their_definitions() {
    use crate::graph::ReduceOp as R;
    let x = f32s(&[2, 3], &[1., f64::NAN, 3., -0.5, 8., 8.]);
    let sum = one(std::slice::from_ref(&x), |b, x| b.reduce(R::Sum, x[0], &[0], false).unwrap());
    assert_eq!((sum[0], sum[1].is_nan(), sum[2]), (0.5, true, 11.0));
    let max = one(std::slice::from_ref(&x), |b, x| b.reduce(R::Max, x[0], &[1], false).unwrap());
    assert!(max[0].is_nan() && max[1] == 8.0);
    assert_eq!(
        one(std::slice::from_ref(&x), |b, x| b.reduce(R::ArgMax { last: false }, x[0], &[1], false).unwrap()),
        [1., 1.]
    );
    assert_eq!(
        one(std::slice::from_ref(&x), |b, x| b.reduce(R::ArgMax { last: true }, x[0], &[1], false).unwrap()),
        [1., 2.]
    );
    assert_eq!(one(&[x], |b, x| b.reduce(R::ArgMin { last: false }, x[0], &[1], false).unwrap()), [1., 0.]);
    let none = f32s(&[2, 0], &[]);
    assert_eq!(
        one(std::slice::from_ref(&none), |b, x| b.reduce(R::Max, x[0], &[1], false).unwrap()),
        [f64::NEG_INFINITY; 2]
    );
    assert_eq!(one(&[none], |b, x| b.reduce(R::Prod, x[0], &[1], false).unwrap()), [1.0; 2]);
    let ints = i64s(&[4], &[3, -7, 5, 1]);
    assert_eq!(one(std::slice::from_ref(&ints), |b, x| b.reduce(R::Min, x[0], &[0], false).unwrap()), [-7.0]);
    assert_eq!(one(&[ints], |b, x| b.reduce(R::Xor, x[0], &[0], false).unwrap()), [(3 ^ -7 ^ 5 ^ 1) as f64]);
}

#[test]
fn gathers_and_scatters_move_elements() {
    let (x, at) = (count(&[3, 2]), i64s(&[2], &[2, 0]));
    let rows = |b: &mut Builder<'_>, x: &[Arg]| {
        let at = b.map("at", x[1], vec![c(2), c(2)], vec![crate::graph::ir::axis(0)]);
        b.gather(x[0], &[at], vec![Coord::Arg(1), Coord::Ix(crate::graph::ir::axis(1))], vec![c(2), c(2)]).unwrap()
    };
    assert_eq!(one(&[x.clone(), at], rows), [4., 5., 0., 1.]);
    let bad = run(&[x.clone(), i64s(&[2], &[0, -1])], |b, x| vec![rows(b, x)]).unwrap_err();
    assert_eq!(bad, "`gather`: index -1 at [1, 0] is outside axis 0, whose extent is 3");
    let updates = f32s(&[4], &[10., 20., 30., 40.]);
    let added = one(&[count(&[3]), i64s(&[4], &[1, 1, 0, 2]), updates], |b, x| {
        b.scatter(x[0], &[x[1]], x[2], vec![Coord::Arg(1)], ScatterOp::Add).unwrap()
    });
    assert_eq!(added, [30., 31., 42.]);
}

#[test]
fn scans_and_sorts_run_along_an_axis() {
    let x = f32s(&[3, 2], &[1., 2., 3., 4., 5., 6.]);
    let scan = |exclusive, reverse| {
        one(std::slice::from_ref(&x), |b, x| b.scan(ScanOp::Sum, x[0], 0, exclusive, reverse).unwrap())
    };
    assert_eq!(scan(false, false), [1., 2., 4., 6., 9., 12.]);
    assert_eq!(scan(true, false), [0., 0., 1., 2., 4., 6.]);
    assert_eq!(scan(true, true), [8., 10., 5., 6., 0., 0.]);
    let y = f32s(&[5], &[2., f64::NAN, -1., 2., 0.]);
    for (descending, want) in [(false, [2., 4., 0., 3., 1.]), (true, [1., 0., 3., 4., 2.])] {
        let out = run(std::slice::from_ref(&y), |b, x| {
            let (s, o) = b.sort(x[0], 0, descending).unwrap();
            vec![s, o]
        });
        let out = out.unwrap();
        assert_eq!(out[1].numbers(), want);
        let sorted: Vec<f64> = want.iter().map(|i| y.number(*i as usize)).collect();
        assert_eq!(format!("{:?}", out[0].numbers()), format!("{sorted:?}"));
    }
}

#[test]
fn a_source_operation_is_decomposed_and_symbols_are_bound() {
    let mut graph = Graph::default();
    let s = graph.add_symbol("s", 1, None);
    let x = graph.add_input("x", Elem::F32, vec![s.ix(), c(2)], Role::Argument);
    let origin = graph.add_origin("aten.rms_norm", "norm", None);
    let mut attrs = crate::graph::Attrs::new();
    attrs.insert("normalized_shape".into(), crate::graph::Attr::List(vec![crate::graph::Attr::Int(c(2))]));
    attrs.insert("eps".into(), crate::graph::Attr::Float(0.0));
    let y = Builder::new(&mut graph, origin).source("aten.rms_norm", vec![x.into()], attrs).unwrap();
    let Arg::Value(value) = y[0] else { panic!() };
    graph.outputs.push(crate::graph::Output { name: "y".into(), value });
    // sqrt of the mean of squares is 5 and 1.
    let input = f32s(&[2, 2], &[1., 7., 1., -1.]);
    for widen in [false, true] {
        let options = Options { widen, ..Options::default() };
        let out = evaluate(&graph, std::slice::from_ref(&input), &no_files, &options).unwrap();
        assert_eq!((out[0].elem, &out[0].shape[..]), (if widen { Elem::F64 } else { Elem::F32 }, &[2, 2][..]));
        for (got, want) in out[0].numbers().iter().zip([0.2, 1.4, 1.0, -1.0]) {
            let eps = if widen { 1e-15 } else { 2e-7 };
            assert!((got - want).abs() <= eps, "{got} {want}");
        }
    }
    let wrong = evaluate(&graph, &[f32s(&[2, 3], &[0.; 6])], &no_files, &Options::default()).unwrap_err();
    assert_eq!(wrong.to_string(), "axis 1 of input `x` has extent 3, not 2");
    assert_eq!(SymId(0).ix(), s.ix());
    let wrong = evaluate(&graph, &[i64s(&[2, 2], &[0; 4])], &no_files, &Options::default()).unwrap_err();
    assert_eq!(wrong.to_string(), "input `x` is i64, not f32");
}

#[test]
fn memory_and_work_are_limited() {
    let graph = graph_of(&[count(&[4])], |b, x| {
        let big = b.broadcast_to(x[0], &[c(1 << 20), c(1 << 20), c(4)]).unwrap();
        vec![b.add(big, big).unwrap()]
    });
    let run = |options| evaluate(&graph, &[count(&[4])], &no_files, &options).unwrap_err().to_string();
    let much = "`add`: it needs 64.0 TiB of memory; 64.0 GiB of the 64.0 GiB allowed is left";
    assert_eq!(run(Options::default()), much);
    let small = graph_of(&[count(&[4])], |b, x| {
        let big = b.broadcast_to(x[0], &[c(1000), c(4)]).unwrap();
        vec![b.add(big, big).unwrap()]
    });
    let budget = Budget::new(Limits { memory: 1 << 20, work: 1000 });
    let much = evaluate(&small, &[count(&[4])], &no_files, &Options { budget, ..Options::default() }).unwrap_err();
    assert_eq!(much.to_string(), "`add`: it computes more than the 1000 elements that are allowed");
}

#[test]
fn tensors_keep_the_bytes_of_memory() {
    for (elem, bytes) in [
        (Elem::BOOL, &[1u8, 0, 1][..]),
        (Elem::F16, &[0, 0x3c, 1, 2, 3, 4]),
        (Elem::F64, &[1; 24]),
        (Elem::U8, &[255, 1, 2]),
        (Elem::I4, &[0x21, 0x0f]),
    ] {
        let t = Tensor::from_bytes(elem, &[3], bytes).unwrap();
        assert_eq!(t.to_bytes(), bytes, "{elem}");
        assert!(Tensor::from_bytes(elem, &[3], &bytes[1..]).is_none());
    }
    assert_eq!(Tensor::from_bytes(Elem::I4, &[3], &[0x21, 0x0f]).unwrap().numbers(), [1.0, 2.0, -1.0]);
}

/// A sum starts from 0 (as PyTorch's does), and bools add as `or` wherever they are added.
#[test]
fn sums_of_nothing_and_of_bools() {
    let none = f32s(&[0, 2], &[]);
    let sum = run(&[none], |b, x| vec![b.reduce(ReduceOp::Sum, x[0], &[0], false).unwrap()]).unwrap();
    assert!(sum[0].numbers().iter().all(|x| x.to_bits() == 0), "{sum:?}");
    let yes = Tensor::from_bits(Elem::BOOL, &[4], vec![1, 1, 0, 1]).unwrap();
    let at = i64s(&[4], &[0, 0, 1, 1]);
    let out = run(&[yes, at], |b, x| {
        let zeros = b.full(ir::scalar(Elem::BOOL, 0.0), Elem::BOOL, vec![c(3)]);
        let add =
            |b: &mut Builder<'_>, op| b.scatter(zeros, &[x[1]], x[0], vec![crate::graph::Coord::Arg(1)], op).unwrap();
        let (sum, product) = (add(b, ScatterOp::Add), add(b, ScatterOp::Mul));
        vec![
            sum,
            product,
            b.add(x[0], x[0]).unwrap(),
            b.mul(x[0], x[0]).unwrap(),
            b.reduce(ReduceOp::Sum, x[0], &[0], true).unwrap(),
            b.scan(ScanOp::Sum, x[0], 0, false, false).unwrap(),
        ]
    })
    .unwrap();
    let expected: [&[f64]; 6] =
        [&[1., 1., 0.], &[0., 0., 0.], &[1., 1., 0., 1.], &[1., 1., 0., 1.], &[1.], &[1., 1., 1., 1.]];
    for (got, want) in out.iter().zip(expected) {
        assert_eq!(got.numbers(), want);
    }
    // A number that stands for a bool is true where it is not 0.
    for x in [2.0, -1.0, 0.5, f64::NAN] {
        assert_eq!(ir::scalar(Elem::BOOL, x), ir::int_scalar(Elem::BOOL, 2));
    }
}
