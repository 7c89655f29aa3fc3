//! Long chains of operations, wide concatenations, and arrays that are updated in place.

use super::*;

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
