//! Sorts of rows, by one worker each and element by element, beside Tensor IR's evaluator: the same bits.

use super::plans::scheduled;
use girih_compiler::base::rule::Log;
use girih_compiler::graph::build::Builder;
use girih_compiler::graph::eval::{self, Tensor};
use girih_compiler::graph::{Arg, Elem, Graph, Output, Role};
use girih_compiler::index::Ix;
use girih_compiler::loops::model::{Options, lower};
use girih_compiler::num::DType;

/// Numbers with many duplicates, NaNs of several kinds, both zeros and infinities.
fn drawn(elem: Elem, count: usize, seed: u64) -> Vec<u64> {
    let mask = elem.dtype.mask();
    let special: &[u64] = match elem.dtype {
        DType::F16 => &[0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0xfe00, 0x3c00, 0xbc00],
        DType::BF16 => &[0, 0x8000, 0x7f80, 0xff80, 0x7fc1, 0xffc0, 0x3f80, 0xbf80],
        DType::F32 => &[0, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0001, 0xffc0_0000, 0x3f80_0000, 1],
        DType::F64 => &[0, 1 << 63, 0x7ff0 << 48, 0xfff0 << 48, 0x7ff8 << 48 | 1, 0xfff8 << 48, 0x3ff0 << 48, 1],
        _ => &[0, 1, u64::MAX, 1 << 63, 0x80, 0x7f, 3, 0x8000],
    };
    let mut state = seed * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 24 ^ state << 40
    };
    (0..count).map(|_| (if next() % 3 == 0 { special[(next() % 8) as usize] } else { next() }) & mask).collect()
}

/// Sorts rows, keeps the first `k` elements, and compares them with the reference.
fn check(elem: Elem, shape: [usize; 2], axis: usize, k: usize, descending: bool) {
    let name = format!("{elem} {shape:?} along {axis}, first {k}, descending {descending}");
    let extents = shape.map(|n| Ix::Const(n as i64)).to_vec();
    let mut graph = Graph { name: "test".into(), ..Graph::default() };
    let x = graph.add_input("x", elem, extents, Role::Argument);
    let origin = graph.add_origin("aten.sort", "", None);
    let first = Ix::Const(k as i64);
    let (sorted, order) =
        Builder::new(&mut graph, origin).sort_first(x.into(), axis, descending, first).expect("a sort");
    for (name, value) in [("sorted", sorted), ("order", order)] {
        let Arg::Value(value) = value else { panic!("{name}") };
        graph.outputs.push(Output { name: name.into(), value });
    }
    let bits = drawn(elem, shape[0] * shape[1], (shape[0] * 7 + shape[1] * 3 + k) as u64);
    let input = Tensor::from_bits(elem, &shape.map(|n| n as u64), bits).expect("a tensor");
    let want = eval::evaluate(&graph, std::slice::from_ref(&input), &eval::no_files, &eval::Options::default());
    let want: Vec<Vec<u8>> = want.unwrap_or_else(|e| panic!("{name}: {e:?}")).iter().map(Tensor::to_bytes).collect();
    for workers in [true, false] {
        let plan = lower(&graph, &Options { workers, ..Options::default() }, &mut Log::default()).expect("a plan");
        let got =
            girih_compiler::loops::model::eval::run(&plan, &[], &[input.to_bytes()], &|_| vec![]).expect("it runs");
        assert!(got == want, "{name}, workers {workers}: Loop IR");
        if workers {
            assert!(scheduled(&plan, &[], &[input.to_bytes()]) == want, "{name}: Kernel IR");
        }
    }
}

const ELEMS: [Elem; 10] = [
    Elem::F32,
    Elem::I64,
    Elem::BOOL,
    Elem::of(DType::F16),
    Elem::of(DType::BF16),
    Elem::of(DType::F64),
    Elem::of(DType::I8),
    Elem::unsigned(DType::I8),
    Elem::of(DType::I16),
    Elem::of(DType::I32),
];

#[test]
fn rows_of_every_type_are_sorted_alike() {
    for (n, elem) in ELEMS.into_iter().enumerate() {
        for descending in [false, true] {
            check(elem, [2, 200 + n], 1, 200 + n, descending);
        }
        check(elem, [3, 6], 1, 6, n % 2 == 0);
    }
}

#[test]
fn the_first_few_of_every_type_are_kept_alike() {
    for (n, elem) in ELEMS.into_iter().enumerate() {
        for k in [1, 5] {
            check(elem, [3, 40 + n], 1, k, n % 2 == 0);
            check(elem, [3, 230], 1, k + 1, n % 2 == 1);
        }
    }
}

/// A block sorts rows by a network, or keeps their first few elements.
#[test]
fn rows_that_threads_share_are_sorted_alike() {
    for (n, elem) in ELEMS.into_iter().enumerate() {
        check(elem, [2, 256 + 7 * n], 1, 256 + 7 * n, n % 2 == 0);
        check(elem, [2, 256 + n], 1, [1, 2, 5, 64, 100, 200][n % 6], n % 2 == 1);
    }
    check(Elem::F32, [1, 512], 1, 512, false);
    check(Elem::F32, [300, 2], 0, 300, true);
    check(Elem::F32, [300, 2], 0, 3, true);
}

#[test]
fn rows_of_every_length_and_any_axis() {
    for n in [1, 2, 191, 192, 193, 257] {
        check(Elem::F32, [2, n], 1, n, n % 2 == 0);
        check(Elem::F32, [n, 3], 0, n, n % 2 == 1);
    }
    for (n, k) in [(64, 64), (65, 64), (66, 65), (300, 64), (300, 65), (300, 299), (2, 1), (7, 0), (300, 0)] {
        check(Elem::F32, [2, n], 1, k, true);
        check(Elem::F32, [n, 2], 0, k, false);
    }
    check(Elem::F32, [0, 5], 1, 5, false);
    check(Elem::F32, [5, 0], 1, 0, false);
}
