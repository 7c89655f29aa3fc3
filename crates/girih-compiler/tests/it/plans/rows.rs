//! Rows that are reduced: how many kernels they take, and which values they keep.

use super::*;

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

#[test]
fn few_rows_are_one_kernel_unless_each_is_long() {
    let kernels = |rows: i64, length: i64| {
        let mut c = Case::new();
        let x = c.input("x", &[rows, length], Role::Argument);
        let y = c.build("aten.softmax", |b| softmax(b, x, 1));
        c.output(y);
        let graph = decompose::decompose(&c.graph, &mut |_| {}).unwrap();
        lower(&graph, &Options::default(), &mut Log::default()).unwrap().steps.len()
    };
    for one in [(8, 65536), (16, 200_000), (4, 32768), (1, 65536)] {
        assert_eq!(kernels(one.0, one.1), 1, "{one:?}");
    }
    // Fewer than eight of them keep few threads busy for long; longer rows are not kept.
    for more in [(7, 65537), (1, 1 << 20), (64, 1 << 19)] {
        assert!(kernels(more.0, more.1) > 1, "{more:?}");
    }
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
