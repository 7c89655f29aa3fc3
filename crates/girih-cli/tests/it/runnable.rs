//! Every option of `girih run` for every kind of input: a tile program, a model, and Kernel IR by hand.

use crate::lab;

use lab::{ADD, Lab, err, expect, out};

/// Twice 0, 1, 2, 3.
const MODEL: [&str; 4] = ["-c", "x + x", "--arg", "x=arange:f32[4]"];

/// That program, written in Kernel IR.
const BY_HAND: &str = "# launch: grid=1 x=arange:f32[4] y=zeros:f32[4]
kernel twice(x: ptr<f32>, y: ptr<f32>) threads 4 scratch 0 {
  v: f32 = load x[tx]
  s: f32 = addf v, v
  store y[tx] = s
}
";

/// `x` becomes `x + 1` in place: a run that started from what the last one left would differ.
const IN_PLACE: &str = "// launch: grid=1 x=zeros:f32[16]
cuda_tile.module @m {
  entry @more(%x: tile<ptr<f32>>) {
    %i = iota : tile<16xi32>
    %p0 = reshape %x : tile<ptr<f32>> -> tile<1xptr<f32>>
    %p1 = broadcast %p0 : tile<1xptr<f32>> -> tile<16xptr<f32>>
    %p = offset %p1, %i : tile<16xptr<f32>>, tile<16xi32> -> tile<16xptr<f32>>
    %v, %t = load_ptr_tko weak %p : tile<16xptr<f32>> -> tile<16xf32>, token
    %one = constant <f32: 1.0> : tile<16xf32>
    %s = addf %v, %one : tile<16xf32>
    %t2 = store_ptr_tko weak %p, %s token=%t : tile<16xptr<f32>>, tile<16xf32> -> token
  }
}
";

/// A program, a model and Kernel IR: how each is named, and the result of each.
fn kinds(lab: &Lab) -> [(Vec<String>, String); 3] {
    let model = out(&lab.girih(&[&["run"], &MODEL[..]].concat()));
    let output = model.split_once(" = ").unwrap().0.to_string();
    let program = lab.file("add.mlir", ADD);
    let by_hand = lab.file("twice.kir", BY_HAND);
    [(vec![program], "c".to_string()), (MODEL.map(String::from).to_vec(), output), (vec![by_hand], "y".to_string())]
}

fn run(lab: &Lab, kind: &[String], more: &[&str]) -> std::process::Output {
    let kind: Vec<&str> = kind.iter().map(String::as_str).collect();
    lab.girih(&[&["run"], &kind[..], more].concat())
}

#[test]
fn results_of_each_kind_are_printed_and_saved() {
    let lab = Lab::new("runnable-shown");
    for (kind, array) in kinds(&lab) {
        let file = lab.path("array.npy");
        let o = run(&lab, &kind, &["--print", &array, "--save", &format!("{array}={file}")]);
        expect(&o, 0, "");
        let first = if kind[0].ends_with("add.mlir") { "[1.0, 2.0, 3.0, " } else { "[0.0, 2.0, 4.0, 6.0]" };
        assert!(out(&o).starts_with(&format!("{array} = {first}")), "{kind:?}: {}", out(&o));
        let bytes = std::fs::read(&file).unwrap();
        let last = f32::from_le_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
        assert_eq!(last, if kind[0].ends_with("add.mlir") { 1000.0 } else { 6.0 }, "{kind:?}");
        std::fs::remove_file(&file).unwrap();
        expect(&run(&lab, &kind, &["--save", &format!("{array}={}", lab.path("no/where.npy"))]), 1, "does not exist");
        let wrong = run(&lab, &kind, &["--print", "nothing"]);
        expect(&wrong, 1, "no ");
        assert!(err(&wrong).contains("`nothing`") && out(&wrong).is_empty(), "{kind:?}: {}", err(&wrong));
    }
}

#[test]
fn each_kind_is_timed_and_says_so_in_json() {
    let lab = Lab::new("runnable-time");
    for (kind, _) in kinds(&lab) {
        let o = run(&lab, &kind, &["--time"]);
        expect(&o, 0, "");
        assert!(out(&o).starts_with("time: median "), "{kind:?}: {}", out(&o));
        let o = run(&lab, &kind, &["--time", "--json"]);
        expect(&o, 0, "");
        let json: serde_json::Value = serde_json::from_str(&out(&o)).unwrap();
        assert!(json["runs"].as_u64().unwrap() >= 3, "{json}");
        assert!(json["min_s"].as_f64().unwrap() <= json["median_s"].as_f64().unwrap(), "{json}");
        assert!(json["kernel"].is_string() != json["model"].is_string(), "{json}");
    }
}

#[test]
fn programs_and_models_are_verified_on_every_device() {
    let lab = Lab::new("runnable-verify");
    for (kind, array) in kinds(&lab).into_iter().take(2) {
        for device in ["cpu", "eval", "sim"] {
            let o = run(&lab, &kind, &["--device", device, "--verify", "--verify-each"]);
            expect(&o, 0, "");
            let ok = format!("verify: ok   `{array}` largest error 0.000e0");
            assert!(out(&o).contains(&ok) && out(&o).contains("verify-each: "), "{kind:?}: {}", out(&o));
        }
    }
}

#[test]
fn programs_and_models_are_compared_with_every_device() {
    let lab = Lab::new("runnable-compare");
    for (kind, _) in kinds(&lab).into_iter().take(2) {
        for (here, there) in [("cpu", "eval"), ("cpu", "sim"), ("sim", "cpu"), ("eval", "cpu"), ("eval", "sim")] {
            let o = run(&lab, &kind, &["--device", here, "--compare", there, "--bits"]);
            expect(&o, 0, "");
            assert_eq!(out(&o), format!("compare: {here} and {there} agree in every bit\n"), "{kind:?}");
        }
        expect(&run(&lab, &kind, &["--compare", "moon"]), 2, "unknown device");
    }
    // Sums in another order differ in bits.
    let model = "torch.softmax(torch.randn(64, 333), -1) @ torch.randn(333, 40)";
    expect(&lab.girih(&["run", "-c", model, "--device", "sim", "--compare", "eval"]), 0, "");
    let o = lab.girih(&["run", "-c", model, "--device", "eval", "--compare", "cpu", "--bits"]);
    expect(&o, 1, "");
    assert!(out(&o).contains("compare: FAIL") && out(&o).contains("in another, fixed order"), "{}", out(&o));
}

#[test]
fn programs_and_models_have_profiles() {
    let lab = Lab::new("runnable-profile");
    for (kind, _) in kinds(&lab).into_iter().take(2) {
        let model = kind[0] == "-c";
        let o = run(&lab, &kind, &["--profile"]);
        expect(&o, 0, "");
        let text = out(&o);
        assert!(text.starts_with("kernel") && text.contains("run: median ") && text.contains("machine: "), "{text}");
        // The arrays of a kernel are the caller's.
        assert_eq!(text.contains("memory: weights "), model, "{text}");
        let o = run(&lab, &kind, &["--profile", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&out(&o)).unwrap();
        let steps = json["profile"]["steps"].as_array().unwrap();
        // The program reads two arrays of 1000 elements and writes one.
        let bytes = if model { 32.0 } else { 12000.0 };
        assert_eq!((steps.len(), steps[0]["bytes"].as_f64()), (1, Some(bytes)), "{json}");
        assert!(steps[0]["seconds"].as_f64().unwrap() > 0.0, "{json}");
        for device in ["eval", "sim"] {
            expect(&run(&lab, &kind, &["--profile", "--device", device]), 2, "measures on the devices cpu and cuda");
        }
    }
}

#[test]
fn kernel_ir_refuses_what_needs_its_program() {
    let lab = Lab::new("runnable-by-hand");
    let [_, _, (kind, _)] = kinds(&lab);
    for flag in [&["--verify"][..], &["--verify-each"], &["--compare", "eval"], &["--profile"], &["--check"]] {
        let o = run(&lab, &kind, flag);
        expect(&o, 2, &format!("{} is for tile programs and models, not for Kernel IR", flag[0]));
        assert!(err(&o).contains("--compare OTHER.kir` compares two kernels"), "{}", err(&o));
    }
    expect(&run(&lab, &kind, &["--entry", "twice"]), 2, "--entry does not apply to Kernel IR");
    expect(&lab.girih(&["tune", &kind[0]]), 2, "Kernel IR has no schedule to tune");
}

#[test]
fn each_run_starts_from_the_arguments_as_they_were_given() {
    let lab = Lab::new("runnable-in-place");
    let file = lab.file("more.mlir", IN_PLACE);
    let o = lab.girih(&["run", &file, "--verify", "--compare", "eval", "--bits", "--time", "--print", "x"]);
    expect(&o, 0, "");
    assert!(out(&o).starts_with("x = [1.0, 1.0"), "{}", out(&o));
    assert!(out(&o).contains("verify: ok   `x` largest error 0.000e0"), "{}", out(&o));
    assert!(out(&o).contains("cpu and eval agree in every bit"), "{}", out(&o));
}

#[test]
fn the_simulator_prints_the_results_of_each_kind() {
    let lab = Lab::new("runnable-sim");
    for (kind, array) in kinds(&lab) {
        let kind: Vec<&str> = kind.iter().map(String::as_str).collect();
        let o = lab.girih(&[&["sim"], &kind[..], &["--print", &array, "--schedules", "1"]].concat());
        expect(&o, 0, "");
        let first = if kind[0].ends_with("add.mlir") { "[1.0, 2.0, 3.0, " } else { "[0.0, 2.0, 4.0, 6.0]" };
        assert!(out(&o).contains(&format!("\n{array} = {first}")), "{kind:?}: {}", out(&o));
    }
}
