use super::*;
use crate::base::rule::{Log, Rewrites};
use crate::graph::build::Builder;
use crate::graph::ir::{Coord, Output, ReduceOp, Role, ScatterOp, axis, int_scalar, scalar};
use crate::graph::{Elem, Origin};
use crate::num::ScalarOp;

fn dims(d: &[i64]) -> Vec<Ix> {
    d.iter().map(|n| Ix::Const(*n)).collect()
}

/// A graph over `x` and `z` (f32 of a shape), built by a function that gives its outputs.
fn graph(shape: &[i64], f: impl FnOnce(&mut Builder<'_>, Arg, Arg) -> Vec<Arg>) -> Graph {
    let mut g = Graph::default();
    let origin = g.origins.push(Origin::default());
    let x = g.add_input("x", Elem::F32, dims(shape), Role::Argument);
    let z = g.add_input("z", Elem::F32, dims(shape), Role::Argument);
    let outputs = f(&mut Builder::new(&mut g, origin), x.into(), z.into());
    for (i, o) in outputs.into_iter().enumerate() {
        if let Arg::Value(value) = o {
            g.outputs.push(Output { name: format!("y{i}"), value });
        }
    }
    g
}

fn simplified(g: &Graph) -> Graph {
    let done: Result<Graph, ()> = rules().run(g.clone(), &(), &mut Rewrites::at_most(None), &mut |_| Ok(()));
    let once = done.unwrap();
    // Idempotent: nothing is left for any rule.
    for (name, rule) in rules().named() {
        assert!((rule.run)(&once, &(), &mut Log::default()).is_none(), "{name} is not done");
    }
    once
}

fn ops(g: &Graph) -> Vec<&Op> {
    g.nodes.values().map(|n| &n.op).collect()
}

#[test]
fn maps_of_maps_are_one_and_two_transposes_none() {
    let g = graph(&[3, 4], |b, x, _| {
        let t = b.transpose(x, &[1, 0]).unwrap();
        let t = b.transpose(t, &[1, 0]).unwrap();
        vec![b.exp(t).unwrap()]
    });
    let s = simplified(&g);
    assert!(matches!(ops(&s)[..], [Op::Elementwise(ScalarOp::Exp)]));
    let g = graph(&[3, 4], |b, x, _| {
        let t = b.transpose(x, &[1, 0]).unwrap();
        let t = b.slice(t, 0, Ix::Const(1), 1, Ix::Const(2)).unwrap();
        vec![b.reshape(t, &dims(&[6])).unwrap()]
    });
    let s = simplified(&g);
    let [Op::IndexMap(m)] = ops(&s)[..] else { panic!("{:?}", ops(&s)) };
    // y[i] = x[i % 3, i // 3 + 1]
    let at = |i: i64| -> Vec<i64> {
        let leaf = |_: &Ix| i;
        m[0].coords.iter().map(|c| c.eval(&|l| if let Ix::Const(c) = l { *c } else { leaf(l) })).collect()
    };
    assert_eq!((0..6).map(at).collect::<Vec<_>>(), [[0, 1], [1, 1], [2, 1], [0, 2], [1, 2], [2, 2]]);
}

#[test]
fn a_slice_of_a_concatenation_reads_what_it_needs() {
    let g = graph(&[3], |b, x, z| {
        let c = b.concat(&[x, z], 0).unwrap();
        vec![b.slice(c, 0, Ix::Const(3), 1, Ix::Const(3)).unwrap()]
    });
    let s = simplified(&g);
    assert!(s.nodes.is_empty());
    assert_eq!(s.outputs[0].value, s.inputs[1].value);
}

#[test]
fn the_same_twice_is_computed_once() {
    let g = graph(&[3], |b, x, z| {
        let (p, q) = (b.add(x, z).unwrap(), b.add(x, z).unwrap());
        let (p, q) = (b.exp(p).unwrap(), b.exp(q).unwrap());
        b.log(p).unwrap();
        vec![b.mul(p, q).unwrap()]
    });
    let s = simplified(&g);
    assert_eq!(s.nodes.len(), 3);
    let last = s.nodes.values().next_back().unwrap();
    assert_eq!(last.args[0], last.args[1]);
}

#[test]
fn exact_identities_vanish_and_others_stay() {
    let same = |f: &dyn Fn(&mut Builder<'_>, Arg) -> Arg| {
        let g = graph(&[3], |b, x, _| vec![f(b, x)]);
        simplified(&g).nodes.is_empty()
    };
    let c = |v: f64| scalar(Elem::F32, v);
    assert!(same(&|b, x| b.mul(x, c(1.0)).unwrap()));
    assert!(same(&|b, x| b.add(c(-0.0), x).unwrap()));
    assert!(same(&|b, x| b.sub(x, c(0.0)).unwrap()));
    assert!(same(&|b, x| {
        let n = b.neg(x).unwrap();
        b.neg(n).unwrap()
    }));
    assert!(same(&|b, x| {
        let d = b.convert(x, Elem::F64).unwrap();
        b.convert(d, Elem::F32).unwrap()
    }));
    assert!(same(&|b, x| b.select(Arg::Scalar { elem: Elem::BOOL, bits: 1 }, x, c(2.0)).unwrap()));
    // -0.0 + 0.0 is 0.0; f16 rounds; 0*x may be NaN.
    assert!(!same(&|b, x| b.add(x, c(0.0)).unwrap()));
    assert!(!same(&|b, x| b.sub(c(0.0), x).unwrap()));
    assert!(!same(&|b, x| b.mul(x, c(0.0)).unwrap()));
    assert!(!same(&|b, x| {
        let d = b.convert(x, Elem::F16).unwrap();
        b.convert(d, Elem::F32).unwrap()
    }));
}

#[test]
fn divisions_by_powers_of_two_are_multiplications() {
    let divided = |v: f64| {
        let g = graph(&[3], |b, x, _| vec![b.div(x, scalar(Elem::F32, v)).unwrap()]);
        let s = simplified(&g);
        let node = s.nodes.values().next().unwrap().clone();
        (node.op, node.args[1])
    };
    let (op, factor) = divided(-8.0);
    assert!(matches!(op, Op::Elementwise(ScalarOp::MulF { .. })));
    assert_eq!(factor, scalar(Elem::F32, -0.125));
    for kept in [3.0, 0.0, f64::INFINITY, 1e-30, f64::NAN] {
        assert!(matches!(divided(kept).0, Op::Elementwise(ScalarOp::DivF { .. })), "{kept}");
    }
}

#[test]
fn what_does_not_depend_on_an_axis_is_computed_once() {
    let g = graph(&[2, 1], |b, x, z| {
        let shape = dims(&[2, 9]);
        let (p, q) = (b.broadcast_to(x, &shape).unwrap(), b.broadcast_to(z, &shape).unwrap());
        let s = b.mul(p, q).unwrap();
        vec![b.exp(s).unwrap()]
    });
    let s = simplified(&g);
    let kinds: Vec<(&Op, Vec<Ix>)> = s.nodes.values().map(|n| (&n.op, s.values[n.results[0]].shape.clone())).collect();
    assert!(matches!(kinds[0], (Op::Elementwise(ScalarOp::MulF { .. }), ref shape) if *shape == dims(&[2, 1])));
    assert!(matches!(kinds[1], (Op::Elementwise(ScalarOp::Exp), ref shape) if *shape == dims(&[2, 1])));
    assert!(matches!(kinds[2], (Op::IndexMap(_), ref shape) if *shape == dims(&[2, 9])));
    assert_eq!(kinds.len(), 3);
}

#[test]
fn a_gather_by_positions_is_a_map_unless_it_may_miss() {
    let gathered = |last: i64| {
        let g = graph(&[5, 2], |b, x, _| {
            let at = b.index(Ix::add(axis(0), Ix::Const(last - 2)), Elem::I64, dims(&[3, 1]));
            let coords = vec![Coord::Arg(1), Coord::Ix(axis(1))];
            vec![b.gather(x, &[at], coords, dims(&[3, 2])).unwrap()]
        });
        simplified(&g)
    };
    assert!(matches!(ops(&gathered(4))[..], [Op::IndexMap(_)]));
    assert!(ops(&gathered(5)).iter().any(|op| matches!(op, Op::Gather(_))));
}

#[test]
fn a_scatter_that_is_read_stays_and_one_that_is_not_goes() {
    let build = |read: bool| {
        graph(&[4], |b, x, z| {
            let at = b.int_constant(Elem::I64, &[4], &[3, 2, 1, 0]);
            let y = b.scatter(x, &[at], z, vec![Coord::Arg(1)], ScatterOp::Set).unwrap();
            vec![if read { y } else { b.neg(x).unwrap() }]
        })
    };
    assert!(ops(&simplified(&build(true))).iter().any(|op| matches!(op, Op::Scatter { .. })));
    assert_eq!(simplified(&build(false)).nodes.len(), 1);
}

/// A constant of floats.
fn floats(b: &mut Builder<'_>, shape: &[u64], x: &[f32]) -> Arg {
    b.constant("c", Elem::F32, shape, x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>().into())
}

#[test]
fn constants_are_folded() {
    // sqrt of 1, 4, 9, 16, summed along rows: 1 + 2 and 3 + 4.
    let g = graph(&[2, 1], |b, x, _| {
        let c = floats(b, &[2, 2], &[1.0, 4.0, 9.0, 16.0]);
        let roots = b.sqrt(c).unwrap();
        let sums = b.reduce(crate::graph::ir::ReduceOp::Sum, roots, &[1], true).unwrap();
        vec![b.mul(x, sums).unwrap()]
    });
    let s = simplified(&g);
    let [Op::Constant(c), Op::Elementwise(_)] = ops(&s)[..] else { panic!("{:?}", ops(&s)) };
    let bytes: Vec<u8> = [3f32, 7.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(s.constants[*c].data, crate::graph::ir::ConstData::Bytes(bytes.into()));
    assert_eq!(s.constants[*c].shape, [2, 1]);
}

#[test]
fn a_constant_of_equal_elements_is_a_scalar() {
    let g = graph(&[3], |b, x, _| {
        let c = floats(b, &[3], &[1.0, 1.0, 1.0]);
        vec![b.mul(x, c).unwrap(), b.add(x, x).unwrap()]
    });
    let s = simplified(&g);
    // x * 1 is x; and 0.0 is not -0.0.
    assert!(matches!(ops(&s)[..], [Op::Elementwise(ScalarOp::AddF { .. })]), "{:?}", ops(&s));
    let g = graph(&[2], |b, x, _| {
        let c = floats(b, &[2], &[0.0, -0.0]);
        vec![b.mul(x, c).unwrap()]
    });
    assert!(matches!(ops(&simplified(&g))[..], [Op::Constant(_), Op::Elementwise(_)]));
}

#[test]
fn what_would_grow_or_trap_is_not_folded() {
    // A map that repeats a constant stays a map.
    let g = graph(&[4, 2], |b, x, _| {
        let c = floats(b, &[2], &[1.0, 2.0]);
        let c = b.broadcast_to(c, &dims(&[4, 2])).unwrap();
        vec![b.mul(x, c).unwrap()]
    });
    let s = simplified(&g);
    assert!(ops(&s).iter().any(|op| matches!(op, Op::IndexMap(_))), "{:?}", ops(&s));
    // An index outside its dimension is an error of the run, not of the compiler.
    let g = graph(&[2], |b, x, _| {
        let c = floats(b, &[2], &[1.0, 2.0]);
        let at = b.int_constant(Elem::I64, &[2], &[1, 5]);
        let read = b.gather(c, &[at], vec![crate::graph::ir::Coord::Arg(1)], dims(&[2])).unwrap();
        vec![b.mul(x, read).unwrap()]
    });
    let mut log = Log::default();
    assert!((fold_constants::RULE.run)(&g, &(), &mut log).is_none());
    assert_eq!(log.skipped.len(), 1);
    // More than 64 Ki elements.
    let n = 70_000;
    let g = graph(&[n], |b, x, _| {
        let c = floats(b, &[n as u64], &(0..n).map(|i| i as f32).collect::<Vec<_>>());
        let c = b.sqrt(c).unwrap();
        vec![b.mul(x, c).unwrap()]
    });
    assert!((fold_constants::RULE.run)(&g, &(), &mut log).is_none());
}

/// A node that reads or makes a tensor without elements reads nothing: only maps of scalars are left.
#[test]
fn empty_tensors_are_not_computed() {
    let g = graph(&[0, 3], |b, x, z| {
        let i = b.full(scalar(Elem::I64, 0.0), Elem::I64, dims(&[0, 1]));
        let row = b.gather(x, &[], vec![Coord::Ix(Ix::Const(0)), Coord::Ix(axis(0))], dims(&[3]));
        let there = b.scatter(x, &[i], x, vec![Coord::Arg(1), Coord::Ix(axis(1))], ScatterOp::Add);
        let t = b.transpose(z, &[1, 0]).unwrap();
        vec![
            b.add(x, z).unwrap(),
            b.reduce(ReduceOp::Sum, x, &[0], false).unwrap(),
            b.reduce(ReduceOp::Prod, x, &[0], true).unwrap(),
            b.matmul(t, x).unwrap(),
            b.sort(x, 1, false).unwrap().0,
            b.concat(&[x, z], 0).unwrap(),
            there.unwrap(),
            row.unwrap(),
        ]
    });
    let s = simplified(&g);
    let scalars = |n: &&Node| matches!(n.op, Op::IndexMap(_)) && n.values().next().is_none();
    // The gather stays: it is an error of the run.
    assert_eq!(s.nodes.values().filter(|n| !scalars(n)).count(), 1, "{s:?}");
    let of = |k: usize| repeated_scalar(&s, s.outputs[k].value.into());
    assert_eq!(of(1), Some(scalar(Elem::F32, 0.0)));
    assert_eq!(of(2), Some(scalar(Elem::F32, 1.0)));
    assert_eq!(of(3), Some(scalar(Elem::F32, 0.0)));
    // No updates change nothing.
    let g = graph(&[4], |b, x, _| {
        let none = b.slice(x, 0, Ix::Const(0), 1, Ix::Const(0)).unwrap();
        let i = b.index(axis(0), Elem::I64, dims(&[0]));
        vec![b.scatter(x, &[i], none, vec![Coord::Arg(1)], ScatterOp::Set).unwrap()]
    });
    assert!(ops(&simplified(&g)).is_empty());
}

/// Whatever `x` is, comparisons of numbers that were brought between bounds are known.
#[test]
fn bounds_decide_comparisons_of_integers() {
    use crate::num::op::{Predicate, Signedness};
    let sign = Signedness::Signed;
    let int = |n: i64| int_scalar(Elem::I64, n);
    // Makes `x` an integer in 0..=127, and gives what a function makes of it.
    let within = |f: &dyn Fn(&mut Builder<'_>, Arg) -> Arg| {
        let g = graph(&[3], |b, x, _| {
            let n = b.convert(x, Elem::I64).unwrap();
            let n = b.elementwise_to(ScalarOp::MaxI { sign }, &[n, int(0)], Elem::I64).unwrap();
            let n = b.elementwise_to(ScalarOp::MinI { sign }, &[n, int(127)], Elem::I64).unwrap();
            vec![f(b, n)]
        });
        simplified(&g)
    };
    let compare =
        |b: &mut Builder<'_>, pred, x, y| b.elementwise_to(ScalarOp::CmpI { pred, sign }, &[x, y], Elem::BOOL).unwrap();
    // Counting from the end changes no index that is not negative.
    let counted = within(&|b, n| {
        let below = compare(b, Predicate::LessThan, n, int(0));
        let end = b.elementwise_to(ScalarOp::AddI, &[n, int(128)], Elem::I64).unwrap();
        b.elementwise_to(ScalarOp::Select, &[below, end, n], Elem::I64).unwrap()
    });
    assert!(!ops(&counted).iter().any(|op| matches!(op, Op::Elementwise(ScalarOp::Select | ScalarOp::CmpI { .. }))));
    let plain = within(&|_, n| n);
    let again = within(&|b, n| {
        let n = b.elementwise_to(ScalarOp::MinI { sign }, &[int(200), n], Elem::I64).unwrap();
        b.elementwise_to(ScalarOp::MaxI { sign }, &[n, int(-3)], Elem::I64).unwrap()
    });
    assert_eq!(ops(&again), ops(&plain));
    // A bound that is reached decides nothing.
    for (pred, y) in [(Predicate::LessThan, 127), (Predicate::GreaterThan, 0), (Predicate::Equal, 5)] {
        let open = within(&|b, n| compare(b, pred, n, int(y)));
        assert!(ops(&open).iter().any(|op| matches!(op, Op::Elementwise(ScalarOp::CmpI { .. }))), "{pred:?} {y}");
    }
    // A sum may wrap.
    let wraps = within(&|b, n| {
        let huge = b.elementwise_to(ScalarOp::AddI, &[n, int(i64::MAX - 100)], Elem::I64).unwrap();
        compare(b, Predicate::GreaterThan, huge, int(0))
    });
    assert!(ops(&wraps).iter().any(|op| matches!(op, Op::Elementwise(ScalarOp::CmpI { .. }))));
}
