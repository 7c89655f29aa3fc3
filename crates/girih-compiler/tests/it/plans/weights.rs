//! Weights of products: packed, of few bits, repeated.

use super::*;

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

/// Bytes that one row of bytes is multiplied by are turned at load, where four products are added at once: into panels of 64, 32 or 16
/// columns, or else into rows.
#[test]
fn bytes_across_one_row_are_turned_once() {
    let turned = |rows: i64, k: i64, (of_x, of_w): (Elem, Elem), quads: bool| {
        let mut c = Case::new();
        let extents = |shape: &[i64]| shape.iter().map(|n| Ix::Const(*n)).collect::<Vec<_>>();
        let x = c.graph.add_input("x", of_x, extents(&[rows, k]), Role::Argument).into();
        let w = c.graph.add_input("w", of_w, extents(&[k, 64]), Role::Parameter).into();
        let y = c.build("test", |b| {
            let x = b.map("x", x, extents(&[rows, 64, k]), vec![axis(0), axis(2)]);
            let w = b.map("w", w, extents(&[rows, 64, k]), vec![axis(2), axis(1)]);
            b.dot(x, w, Elem::I32, &[2], false)
        });
        c.output(y);
        let options = Options { quads, ..Options::default() };
        lower(&c.graph, &options, &mut Log::default()).unwrap().load.len()
    };
    let bytes = (Elem::U8, Elem::I8);
    assert_eq!(turned(1, 256, bytes, true), 1);
    assert_eq!(turned(1, 256, (Elem::I8, Elem::U8), true), 1);
    assert_eq!(turned(1, 256, bytes, false), 0);
    assert_eq!(turned(1, 256, (Elem::I8, Elem::I8), true), 0);
    assert_eq!(turned(1, 254, bytes, true), 0);
    assert_eq!(turned(2, 256, bytes, true), 0);
}

/// Panels of 64, 32 and 16 columns, and rows where none of these divides the columns, hold the same numbers.
#[test]
fn panels_of_bytes_give_the_sums_of_rows() {
    let k = 24usize;
    for (n, panel) in [(128usize, Some(64)), (96, Some(32)), (48, Some(16)), (50, None)] {
        let mut c = Case::new();
        let extents = |shape: &[usize]| shape.iter().map(|n| Ix::Const(*n as i64)).collect::<Vec<_>>();
        let x = c.graph.add_input("x", Elem::U8, extents(&[1, k]), Role::Argument).into();
        let w = c.graph.add_input("w", Elem::I8, extents(&[k, n]), Role::Parameter).into();
        let y = c.build("test", |b| {
            let x = b.map("x", x, extents(&[1, n, k]), vec![axis(0), axis(2)]);
            let w = b.map("w", w, extents(&[1, n, k]), vec![axis(2), axis(1)]);
            let dot = b.dot(x, w, Elem::I32, &[2], false)?;
            b.convert(dot, Elem::F32)
        });
        c.output(y);
        let options = Options { quads: true, ..Options::default() };
        let plan = lower(&c.graph, &options, &mut Log::default()).unwrap();
        let text = print(&plan.load[0].kernel, Dialect::Loop);
        assert_eq!(panel.is_some_and(|by| text.contains(&format!("//{by}"))), panel.is_some(), "{text}");
        let xs: Vec<u8> = (0..k).map(|t| (t * 37 + 250) as u8).collect();
        let ws: Vec<u8> = (0..k * n).map(|t| (t * 91 + t / 7) as u8).collect();
        let sum = |j: usize| (0..k).map(|t| f64::from(xs[t]) * f64::from(ws[t * n + j] as i8)).sum();
        let want: Vec<f64> = (0..n).map(sum).collect();
        close(&floats(&scheduled(&plan, &[], &[xs, ws])[0]), &want);
    }
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
