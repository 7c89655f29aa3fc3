//! Products and attention: what stands before and behind them in their kernels.

use super::*;

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
