//! Models with plans written by hand.

use girih_compiler::base::IdMap;
use girih_compiler::graph::{Elem, Graph, Output, Role, SymId};
use girih_compiler::index::Ix;
use girih_compiler::loops::model::{Array, ArrayId, ArrayPlace, Plan, Step, StepArg};
use girih_compiler::loops::parse;

use super::*;
use crate::{CachePolicy, Code};

fn step(text: &str, args: Vec<StepArg>, writes: ArrayId) -> Step {
    let kernel = parse::parse(text).unwrap().0;
    let reads = args.iter().filter_map(|a| match a {
        StepArg::Array(id) if *id != writes => Some(*id),
        _ => None,
    });
    Step {
        reads: reads.collect(),
        writes: vec![writes],
        kernel,
        args,
        origins: vec![],
        flops: Ix::Const(0),
        bytes: Ix::Const(0),
        within: None,
    }
}

const ADD: &str = "loop kernel k_add(a: ptr f32, b: ptr f32, c: ptr f32, n: i64) open:
  for i in 0..n: free
    x: f32 = load a[i]
    y: f32 = load b[i % 4]
    z: f32 = x + y
    store c[i] = z
";

const DOUBLE: &str = "loop kernel k_double(w: ptr f32, v: ptr f32) open:
  for i in 0..4: free
    x: f32 = load w[i]
    y: f32 = x + x
    store v[i] = y
";

/// `out = ((x + 2w) + 2w) + 2w` for an x of n elements, n a multiple of 4; `twice` is `2w` itself.
fn chain() -> Model {
    let mut graph = Graph { name: "chain".into(), ..Graph::default() };
    let n = graph.add_symbol("n", 0, None);
    let x = graph.add_input("x", Elem::F32, vec![n.ix()], Role::Argument);
    let w = graph.add_input("w", Elem::F32, vec![Ix::Const(4)], Role::Parameter);
    // The names and types of the outputs; the plan computes them.
    graph.outputs = vec![Output { name: "out".into(), value: x }, Output { name: "twice".into(), value: w }];
    let mut arrays: IdMap<ArrayId, Array> = IdMap::new();
    let mut array = |name: &str, shape: Vec<Ix>, place| {
        arrays.push(Array {
            name: name.into(),
            elem: Elem::F32,
            shape,
            at_load: !matches!(place, ArrayPlace::Input(_) | ArrayPlace::Temp),
            place,
        })
    };
    let x = array("x", vec![n.ix()], ArrayPlace::Input(0));
    let w = array("w", vec![Ix::Const(4)], ArrayPlace::Input(1));
    let v = array("v", vec![Ix::Const(4)], ArrayPlace::Loaded);
    let t: Vec<ArrayId> = (0..3).map(|i| array(&format!("t{i}"), vec![n.ix()], ArrayPlace::Temp)).collect();
    let add = |from, to| {
        let args = vec![StepArg::Array(from), StepArg::Array(v), StepArg::Array(to), StepArg::Symbol(SymId(0))];
        step(ADD, args, to)
    };
    let plan = Plan {
        arrays,
        load: vec![step(DOUBLE, vec![StepArg::Array(w), StepArg::Array(v)], v)],
        steps: vec![add(x, t[0]), add(t[0], t[1]), add(t[1], t[2])],
        outputs: vec![t[2], v],
        ..Plan::default()
    };
    let cache = std::env::temp_dir().join(format!("girih-model-{}", std::process::id()));
    Model::from_plan(graph, plan).unwrap().with_options(Options::default().cache(CachePolicy::At(cache)))
}

fn tensor(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as u64]).unwrap()
}

#[test]
fn a_model_runs_for_every_extent() {
    let model = chain();
    model.bind_parameters(vec![("w", tensor(&[0.5, 1.0, 1.5, 2.0]))]).unwrap();
    for n in [1024, 4, 0, 1000, 1024] {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let out = model.run(&[("x", &tensor(&x))]).unwrap();
        let want: Vec<f32> = (0..n).map(|i| i as f32 + 3.0 * (1.0 + (i % 4) as f32)).collect();
        assert_eq!(out[0].0, "out");
        assert_eq!(out[0].1.buffer().to_vec::<f32>().unwrap(), want, "{n}");
        assert_eq!(out[1].1.buffer().to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }
    // Three steps share one kernel; the temporary arrays of 4096 bytes do not.
    let compiled = model.compile().unwrap();
    assert_eq!((compiled.steps, compiled.kernels), (3, 2));
    assert_eq!(model.footprint(), Footprint { weights: 16, loaded: 16, arena: 8192 });
    // Other parameters, and the arrays computed from them.
    model.bind_parameters(vec![("w", tensor(&[0.0; 4]))]).unwrap();
    let out = model.run(&[("x", &tensor(&[7.0; 4]))]).unwrap();
    assert_eq!(out[0].1.buffer().to_vec::<f32>().unwrap(), [7.0; 4]);
}

/// `out = x + 4w` by way of `2w`, which only loading reads: it is as large as the others, and not kept.
#[test]
fn what_is_computed_on_the_way_is_not_kept() {
    const N: i64 = 1 << 19;
    let text = |name: &str| {
        format!(
            "loop kernel {name}(w: ptr f32, v: ptr f32) open:
  for i in 0..{N}: free
    x: f32 = load w[i]
    y: f32 = x + x
    store v[i] = y
"
        )
    };
    let add = format!(
        "loop kernel k_sum(x: ptr f32, v: ptr f32, c: ptr f32) open:
  for i in 0..{N}: free
    a: f32 = load x[i]
    b: f32 = load v[i]
    y: f32 = a + b
    store c[i] = y
"
    );
    let mut graph = Graph { name: "way".into(), ..Graph::default() };
    let x = graph.add_input("x", Elem::F32, vec![Ix::Const(N)], Role::Argument);
    graph.add_input("w", Elem::F32, vec![Ix::Const(N)], Role::Parameter);
    graph.outputs = vec![Output { name: "out".into(), value: x }];
    let mut arrays: IdMap<ArrayId, Array> = IdMap::new();
    let mut array = |name: &str, place, at_load| {
        arrays.push(Array { name: name.into(), elem: Elem::F32, shape: vec![Ix::Const(N)], at_load, place })
    };
    let (x, w) = (array("x", ArrayPlace::Input(0), false), array("w", ArrayPlace::Input(1), true));
    let (u, v) = (array("u", ArrayPlace::Loaded, true), array("v", ArrayPlace::Loaded, true));
    let out = array("out", ArrayPlace::Temp, false);
    let two = |name: &str, from, to| step(&text(name), vec![StepArg::Array(from), StepArg::Array(to)], to);
    let plan = Plan {
        arrays,
        load: vec![two("k_first", w, u), two("k_second", u, v)],
        steps: vec![step(&add, [x, v, out].map(StepArg::Array).to_vec(), out)],
        outputs: vec![out],
        ..Plan::default()
    };
    let limited = |bytes: u64| {
        let cache = std::env::temp_dir().join(format!("girih-model-{}", std::process::id()));
        let options = Options { max_memory: Some(bytes), ..Options::default().cache(CachePolicy::At(cache)) };
        Model::from_plan(graph.clone(), plan.clone()).unwrap().with_options(options)
    };
    let bytes = 4 * N as u64;
    let model = limited(3 * bytes);
    for w in [1.0, 2.0] {
        model.bind_parameters(vec![("w", tensor(&vec![w; N as usize]))]).unwrap();
        let run = model.run(&[("x", &tensor(&vec![0.5; N as usize]))]).unwrap();
        assert!(run[0].1.buffer().to_vec::<f32>().unwrap().iter().all(|y| *y == 0.5 + 4.0 * w));
    }
    assert_eq!(model.footprint(), Footprint { weights: bytes, loaded: bytes, arena: 0 });
    // While it loads there are `w`, `u` and `v`; in a run `w`, `v` and the result.
    let error = limited(3 * bytes - 1).compile().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("more than the limit"), "{error}");
}

#[test]
fn a_model_runs_on_addresses() {
    let model = chain();
    let w = tensor(&[1.0, 0.0, 0.0, 0.0]);
    // SAFETY: the tensors and vectors outlive the runs.
    unsafe { model.bind_parameters_raw(&[("w", w.raw(), false)]) }.unwrap();
    for n in [8, 4, 8, 8] {
        let x = tensor(&vec![1.0; n]);
        let (mut out, mut twice) = (vec![0f32; n], [0f32; 4]);
        let to = [out.as_mut_ptr().cast::<u8>(), twice.as_mut_ptr().cast::<u8>()];
        let mut asked = vec![];
        let mut allocate = |k: usize, elem: Elem, shape: &[u64]| {
            asked.push((elem, shape.to_vec()));
            Ok(to[k])
        };
        // SAFETY: as above.
        unsafe { model.run_raw(&[x.raw()], &Parameters::Held, &[], &mut allocate) }.unwrap();
        assert_eq!(asked, [(Elem::F32, vec![n as u64]), (Elem::F32, vec![4])]);
        let want: Vec<f32> = (0..n).map(|i| if i % 4 == 0 { 7.0 } else { 1.0 }).collect();
        assert_eq!((out, twice), (want, [2.0, 0.0, 0.0, 0.0]));
    }
    let x = tensor(&[1.0; 4]);
    let mut none = |_: usize, _: Elem, _: &[u64]| Err(Error::argument("not asked for".to_string()));
    let say = |args: &[RawTensor<'_>], none: &mut Allocate<'_>| {
        // SAFETY: nothing is run.
        unsafe { model.run_raw(args, &Parameters::Held, &[], none) }.unwrap_err().to_string()
    };
    assert!(say(&[], &mut none).contains("input `x` is not given"));
    assert!(say(&[x.raw(), x.raw()], &mut none).contains("takes 1 arguments, but 2 are given"));
    assert!(say(&[x.raw()], &mut none).contains("not asked for"));
}

#[test]
fn parameters_given_to_a_run_are_those_of_that_run() {
    let model = chain();
    let out = |arrays: &[(&str, &Tensor)]| model.run(arrays).unwrap()[0].1.buffer().to_vec::<f32>().unwrap();
    let x = tensor(&[7.0; 4]);
    // First while none is bound.
    for w in [1.0, 2.0, 1.0] {
        assert_eq!(out(&[("x", &x), ("w", &tensor(&[w; 4]))]), [7.0 + 6.0 * w; 4]);
    }
    model.bind_parameters(vec![("w", tensor(&[0.5; 4]))]).unwrap();
    for w in [1.0, 2.0, 1.0] {
        assert_eq!(out(&[("x", &x), ("w", &tensor(&[w; 4]))]), [7.0 + 6.0 * w; 4]);
        // The next run has the parameters that were bound again.
        assert_eq!(out(&[("x", &x)]), [10.0; 4]);
        assert_eq!(out(&[("x", &x)]), [10.0; 4]);
    }
}

#[test]
fn what_is_written_between_runs_counts() {
    let model = chain();
    let mut w = tensor(&[1.0, 0.0, 0.0, 0.0]);
    // SAFETY: the tensor outlives the runs.
    unsafe { model.bind_parameters_raw(&[("w", w.raw(), true)]) }.unwrap();
    for weight in [1f32, 1.0, 3.0, -2.0, 1.0] {
        w.buffer_mut().bytes_mut()[..4].copy_from_slice(&weight.to_le_bytes());
        let (x, mut out, mut twice) = (tensor(&[1.0; 4]), [0f32; 4], [0f32; 4]);
        let to = [out.as_mut_ptr().cast::<u8>(), twice.as_mut_ptr().cast::<u8>()];
        // SAFETY: the arrays outlive the run.
        unsafe { model.run_raw(&[x.raw()], &Parameters::Held, &[], &mut |k, _, _| Ok(to[k])) }.unwrap();
        assert_eq!((out, twice), ([1.0 + 6.0 * weight, 1.0, 1.0, 1.0], [2.0 * weight, 0.0, 0.0, 0.0]));
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let model = chain();
    let x = tensor(&[1.0; 4]);
    let say = |e: Error| {
        assert_eq!(e.code(), Some(Code::ModelInput));
        let Error::Program(d) = e else { panic!("{e}") };
        format!("{}; {}", d[0].message, d[0].help.clone().unwrap_or_default())
    };
    let both = say(model.run(&[]).unwrap_err());
    assert!(both.starts_with("inputs `x`, `w` are not given: the model expects f32[n], f32[4]; "), "{both}");
    assert!(both.contains("`--arg x=randn:f32[1] --arg w=randn:f32[4]` (1 stands for n)"), "{both}");
    assert!(say(model.run(&[("x", &x)]).unwrap_err()).starts_with("input `w` is not given: the model expects f32[4]"));
    assert_eq!(say(model.run(&[("y", &x)]).unwrap_err()), "the model has no input `y`; the inputs are x, w");
    assert_eq!(say(model.run(&[("x", &x), ("x", &x)]).unwrap_err()), "input `x` is given twice; give it once");
    let wrong = Tensor::from_slice(&[1f64; 4], &[4]).unwrap();
    assert_eq!(say(model.run(&[("x", &wrong)]).unwrap_err()), "input `x` is f64, not f32; the model expects f32[n]");
    let wrong = Tensor::from_slice(&[1f32; 4], &[2, 2]).unwrap();
    let want = "input `x` has rank 2 (shape [2, 2]), not 1; the model expects f32[n]";
    assert_eq!(say(model.run(&[("x", &wrong)]).unwrap_err()), want);
    let say_parameter = |name: &str| say(model.bind_parameters(vec![(name, tensor(&[0.0; 4]))]).unwrap_err());
    assert!(say_parameter("x").starts_with("input `x` is not a parameter"));
}

#[test]
fn prepared_runs_do_not_mix_parameters() {
    let model = chain();
    let out = |tensors: &[Tensor]| tensors[0].buffer().to_vec::<f32>().unwrap();
    let (x, own) = (tensor(&[7.0; 4]), tensor(&[2.0; 4]));
    let bind = |w: f32| model.bind_parameters(vec![("w", tensor(&[w; 4]))]).unwrap();
    bind(0.5);
    let mut before = model.prepare(&[("x", &x)], &[]).unwrap();
    let mut with_own = model.prepare(&[("x", &x), ("w", &own)], &[]).unwrap();
    before.run().unwrap();
    assert_eq!(out(before.outputs()), [10.0; 4]);
    bind(1.0);
    // It would read some parameters of before and arrays computed from those of now.
    let error = before.run().unwrap_err().to_string();
    assert!(error.contains("other parameters were bound to the model"), "{error}");
    assert!(before.evaluate(false).is_err() && before.profile().is_err());
    let mut after = model.prepare(&[("x", &x)], &[]).unwrap();
    for _ in 0..2 {
        after.run().unwrap();
        assert_eq!(out(after.outputs()), [13.0; 4]);
        // A run that has parameters of its own reads none of the model's.
        with_own.run().unwrap();
        assert_eq!(out(with_own.outputs()), [19.0; 4]);
    }
    let results = model.run(&[("x", &x)]).unwrap();
    assert_eq!(results[0].1.buffer().to_vec::<f32>().unwrap(), [13.0; 4]);
}

/// `out = x + (w - u)`, where the difference is computed at load.
#[test]
fn equal_arrays_for_two_parameters_are_told_apart() {
    let mut graph = Graph { name: "difference".into(), ..Graph::default() };
    let x = graph.add_input("x", Elem::F32, vec![Ix::Const(4)], Role::Argument);
    for name in ["w", "u"] {
        graph.add_input(name, Elem::F32, vec![Ix::Const(4)], Role::Parameter);
    }
    graph.outputs = vec![Output { name: "out".into(), value: x }];
    let mut arrays: IdMap<ArrayId, Array> = IdMap::new();
    let mut array = |name: &str, place, at_load| {
        arrays.push(Array { name: name.into(), elem: Elem::F32, shape: vec![Ix::Const(4)], at_load, place })
    };
    let x = array("x", ArrayPlace::Input(0), false);
    let (w, u) = (array("w", ArrayPlace::Input(1), true), array("u", ArrayPlace::Input(2), true));
    let (v, out) = (array("v", ArrayPlace::Loaded, true), array("out", ArrayPlace::Temp, false));
    let add = ADD.replace(", n: i64", "").replace("0..n", "0..4");
    let subtract = add.replace("k_add", "k_subtract").replace("x + y", "x - y");
    let of = |text: &str, from: [ArrayId; 2], to| step(text, [from[0], from[1], to].map(StepArg::Array).to_vec(), to);
    let (load, steps) = (vec![of(&subtract, [w, u], v)], vec![of(&add, [x, v], out)]);
    let plan = Plan { arrays, load, steps, outputs: vec![out], ..Plan::default() };
    let cache = std::env::temp_dir().join(format!("girih-model-{}", std::process::id()));
    let options = Options::default().cache(CachePolicy::At(cache));
    let model = Model::from_plan(graph, plan).unwrap().with_options(options);
    model.bind_parameters(vec![("w", tensor(&[1.0; 4])), ("u", tensor(&[2.0; 4]))]).unwrap();
    let (x, other) = (tensor(&[0.0; 4]), tensor(&[5.0; 4]));
    for (name, want) in [("w", 3.0), ("u", -4.0), ("w", 3.0)] {
        let results = model.run(&[("x", &x), (name, &other)]).unwrap();
        assert_eq!(results[0].1.buffer().to_vec::<f32>().unwrap(), [want; 4], "{name}");
    }
}
