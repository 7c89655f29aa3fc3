//! Models on the command line: results, stages, and what can be wrong around them.

use crate::lab;

use lab::{GATE as MODEL, Lab, err, expect, out};

const ONES: [&str; 4] = ["--arg", "x=ones:f32[3x64]", "--arg", "w=ones:f32[32x64]"];
const RANDOM: [&str; 4] = ["--arg", "x=randn:f32[5x64]", "--arg", "w=randn:f32[32x64]"];

fn with<'a>(start: &[&'a str], args: &[&'a str], end: &[&'a str]) -> Vec<&'a str> {
    [start, args, end].concat()
}

#[test]
fn a_model_runs_on_both_devices() {
    let lab = Lab::new("models");
    let gate = lab.file("gate.json", MODEL);
    for device in ["cpu", "eval"] {
        let save = format!("y={}", lab.path("y.npy"));
        let o = lab.girih(&with(&["run", &gate], &ONES, &["--device", device, "--save", &save, "--json"]));
        expect(&o, 0, "");
        let saved = std::fs::read(lab.path("y.npy")).unwrap();
        let values: Vec<f32> =
            saved[saved.len() - 4 * 96..].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        // 64 ones times 64 ones; silu(64) = 64 / (1 + exp(-64)), which is 64 in f32.
        assert!(values.iter().all(|v| *v == 64.0), "{device} {values:?}");
        for key in ["model", "device", "threads", "runs", "min_s", "median_s", "compile_s", "cached", "kernels"] {
            assert!(out(&o).contains(&format!("\"{key}\":")), "{key}");
        }
    }
    let o = lab.girih(&with(&["run", &gate], &ONES, &[]));
    assert!(out(&o).starts_with("y = [[64.0, 64.0") && out(&o).contains("(f32[3x32])"), "{}", out(&o));
}

#[test]
fn results_lie_within_their_bound_and_every_rule_keeps_them() {
    let lab = Lab::new("models-verify");
    let gate = lab.file("gate.json", MODEL);
    let o = lab.girih(&with(&["run", &gate], &RANDOM, &["--verify", "--verify-each"]));
    expect(&o, 0, "");
    assert!(out(&o).contains("verify: ok   `y`") && out(&o).contains("none changes the answer"), "{}", out(&o));
    let o = lab.girih(&with(&["compile", &gate], &RANDOM, &["--verify-each"]));
    expect(&o, 0, "");
    assert!(out(&o).starts_with("verify-each: ") && out(&o).contains("none changes the answer"), "{}", out(&o));
    expect(&lab.girih(&["compile", &gate, "--verify-each"]), 1, "`x`");
}

#[test]
fn a_profile_names_kernels_and_what_they_compute() {
    let lab = Lab::new("models-profile");
    let gate = lab.file("gate.json", MODEL);
    let o = lab.girih(&with(&["run", &gate], &RANDOM, &["--profile"]));
    expect(&o, 0, "");
    let text = out(&o);
    assert!(
        text.contains("k_linear_silu") && text.contains("aten.silu mlp.act") && text.contains("memory: "),
        "{text}"
    );
    let o = lab.girih(&with(&["run", &gate], &RANDOM, &["--profile", "--json"]));
    // 2 * 5 * 32 * 64 operations.
    assert!(out(&o).contains("\"flops\":20480.0") && out(&o).contains("\"limit_bytes\":"), "{}", out(&o));
}

#[test]
fn every_stage_prints() {
    let lab = Lab::new("models-stages");
    let gate = lab.file("gate.json", MODEL);
    for (stage, needle) in [
        ("torch", "aten.silu"),
        ("tensor", "reduce dot"),
        ("loop", "loop kernel k_linear_silu("),
        ("tile", "tile kernel k_linear_silu("),
        ("kernel", "k_linear_silu"),
        ("c", "girih_0("),
    ] {
        let o = lab.girih(&["compile", &gate, "--ir", stage]);
        expect(&o, 0, "");
        assert!(out(&o).contains(needle), "{stage}: {}", out(&o));
    }
    let o = lab.girih(&["compile", &gate, "-vv", "--dump", &lab.path("dump")]);
    expect(&o, 0, "");
    for needle in [">>> o:", "<<< o:", "applied at aten.silu mlp.act", "=== k_linear_silu", ">>> t:"] {
        assert!(out(&o).contains(needle), "no {needle} in {}", out(&o));
    }
    for file in ["1.torch", "2.tensor", "3.loop", "4.tile", "5.kernel", "6.c", "trace", "knobs"] {
        assert!(lab.0.join("dump").join(file).is_file(), "{file}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let lab = Lab::new("models-bad");
    let gate = lab.file("gate.json", MODEL);
    let run = |args: &[&str]| lab.girih(&with(&["run", &gate], args, &[]));
    expect(&run(&["--arg", "z=ones:f32[3x64]"]), 1, "E0806");
    let o = run(&["--arg", "x=ones:f32[3x64]"]);
    expect(&o, 1, "input `w` is not given: the model expects f32[32, 64]");
    expect(&run(&["--arg", "x=ones:f64[3x64]", ONES[2], ONES[3]]), 1, "input `x` is f64, not f32");
    expect(&run(&["--arg", "x=ones:f32[64]", ONES[2], ONES[3]]), 1, "has rank 1");
    expect(&run(&["--arg", "x=ones:f32[3x63]", ONES[2], ONES[3]]), 1, "extent 63");
    expect(&run(&["--arg", "x=ones:f32[4097x64]", ONES[2], ONES[3]]), 1, "4097");
    expect(&run(&["--arg", "rowz=3", ONES[2], ONES[3]]), 1, "did you mean `rows`?");
    expect(&run(&["--arg", "x=3x", ONES[2], ONES[3]]), 2, "--arg x");
    expect(&run(&with(&[], &ONES, &["--print", "z"])), 1, "the model has no output `z`");
    expect(&run(&with(&[], &ONES, &["--save", "y=/no/such/folder/y.npy"])), 1, "does not exist");
    expect(&run(&with(&[], &ONES, &["--grid", "4"])), 2, "--grid works with tile programs only");
    expect(&run(&with(&[], &ONES, &["--entry", "k"])), 2, "--entry works with tile programs only");
    expect(&lab.girih(&["compile", &gate]), 2, "--ir torch, tensor, loop, tile, kernel or c");
    expect(&lab.girih(&["compile", &gate, "--ir", "cuda_tile"]), 1, "a model has no stage cuda_tile");
}

#[test]
fn files_that_are_no_models() {
    let lab = Lab::new("models-files");
    let unknown = lab.file("unknown.json", &MODEL.replace("aten.silu", "aten.no_such_thing"));
    let cut = lab.file("cut.json", &MODEL[..300]);
    let missing = lab.path("missing.onnx");
    for command in ["run", "check"] {
        expect(&lab.girih(&[command, &missing]), 1, "missing.onnx: cannot be read: No such file");
        expect(&lab.girih(&[command, &cut]), 1, "error");
        let o = lab.girih(&[command, &unknown]);
        expect(&o, 1, "E0802");
        assert!(err(&o).contains("aten.no_such_thing"), "{}", err(&o));
    }
    let gate = lab.file("gate.json", MODEL);
    expect(&lab.girih(&["check", &gate]), 0, "");
    let o = lab.girih(&["check", &gate, &unknown, "--json"]);
    expect(&o, 1, "");
    assert!(out(&o).contains("\"code\":\"E0802\""), "{}", out(&o));
    expect(&lab.girih(&["run"]), 2, "required");
}

/// One count of rewrites for all stages: of Tensor IR, fusion, the plan, and each kernel in turn.
#[test]
fn all_stages_of_a_model_share_one_count() {
    let lab = Lab::new("models-stop");
    let gate = lab.file("gate.json", MODEL);
    let numbers = |stop: &[&str]| -> Vec<usize> {
        let o = lab.girih(&[&["compile", &gate, "--ir", "kernel", "-v"], stop].concat());
        expect(&o, 0, "");
        let text = out(&o) + &err(&o);
        let rewrite = |l: &str| {
            let (number, rest) = l.trim_start().split_once("  ")?;
            ["n:", "l:", "t:"].iter().any(|s| rest.starts_with(s)).then(|| number.parse().ok())?
        };
        text.lines().filter_map(rewrite).collect()
    };
    let all = numbers(&[]);
    assert!(all.len() > 6 && all.iter().copied().eq(1..=all.len()), "{all:?}");
    for most in 0..=all.len() {
        let stop = most.to_string();
        assert_eq!(numbers(&["--stop-after", &stop]), (1..=most).collect::<Vec<_>>());
    }
}

#[test]
fn files_of_weights_alone_are_listed() {
    let lab = Lab::new("models-weights");
    let header = r#"{"w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, "b\u001b": {"dtype": "F32", "shape": [], "data_offsets": [12, 16]}}"#;
    let text = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 16]].concat();
    let file = lab.path("w.safetensors");
    std::fs::write(&file, &text).unwrap();
    let listed =
        format!("{file}: safetensors, 2 tensors, 16 B\nb\\u{{1b}}   F32      []  4 B\nw        BF16  [2, 3]  12 B\n");
    let checked = lab.girih(&["check", &file]);
    assert_eq!(String::from_utf8(checked.stdout).unwrap(), listed);
    assert!(checked.status.success() && checked.stderr.is_empty());
    for command in ["run", "compile", "explain", "sim"] {
        let out = lab.girih(&[command, &file]);
        assert_eq!((out.status.code(), String::from_utf8(out.stdout).unwrap()), (Some(1), listed.clone()), "{command}");
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.contains("[E0503]") && said.contains("no graph that computes with them"), "{command}: {said}");
    }
    std::fs::write(&file, &text[..text.len() - 1]).unwrap();
    expect(&lab.girih(&["check", &file]), 1, "it is cut short: the tensor `b\\u{1b}` ends behind its end");
    expect(&lab.girih(&["run", &lab.file("x.gguf", "GGML and more bytes")]), 1, "does not begin with GGUF");
}
