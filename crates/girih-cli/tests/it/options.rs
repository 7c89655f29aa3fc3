//! Flags and environment variables that choose how things run, and the messages about them.

use crate::lab;

use lab::{ADD, Lab, err, expect, finish, out};

#[test]
fn variables_mean_what_they_say_or_are_refused() {
    let lab = Lab::new("variables");
    let add = lab.file("add.mlir", ADD);
    let run =
        |name: &str, value: &str| finish(lab.command(&["run", &add, "--arg", "a=zeros:f32[10]"]).env(name, value));
    for on in ["1", "true", "TRUE", "on", "yes"] {
        expect(&run("GIRIH_CHECK", on), 3, "reads index 10 of `a`");
    }
    for off in ["0", "false", "off", "No", ""] {
        expect(&run("GIRIH_CHECK", off), 1, "buffer `a` holds 10 elements");
    }
    for (name, value) in [
        ("GIRIH_CHECK", "maybe"),
        ("GIRIH_CHECK", "2"),
        ("GIRIH_THREADS", "abc"),
        ("GIRIH_THREADS", "0"),
        ("GIRIH_DEVICE", "foo"),
        ("GIRIH_CACHE_SIZE", "lots"),
        ("GIRIH_TARGET", "sm_75"),
        ("GIRIH_SEED", "-1"),
        ("GIRIH_SCHEDULES", "0"),
        ("GIRIH_CPU", "x86-64-v9"),
    ] {
        let o = run(name, value);
        expect(&o, 2, &format!("`{value}`"));
    }
}

#[test]
fn help_lists_every_variable() {
    let text = out(&Lab::new("help").girih(&["--help"]));
    for (name, _) in girih::options::VARIABLES {
        assert!(text.contains(&format!("  {name} ")), "{name}");
    }
    assert!(text.contains("GIRIH_CC") && text.contains("GIRIH_CACHE_DIR"));
}

#[test]
fn the_c_compiler_is_that_of_girih_cc_then_cc() {
    let lab = Lab::new("cc");
    let add = lab.file("add.mlir", ADD);
    let log = lab.path("log");
    let compiler = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        let file = lab.file(name, &format!("#!/bin/sh\necho {name} >> {log}\nexec cc \"$@\"\n"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    };
    let (own, make) = (compiler("own"), compiler("make"));
    let used = |set: &[(&str, &str)]| {
        let _ = std::fs::remove_file(&log);
        let o = finish(lab.command(&["run", &add, "--no-cache", "--json"]).envs(set.iter().copied()));
        expect(&o, 0, "");
        let doctor = finish(lab.command(&["doctor"]).envs(set.iter().copied()));
        expect(&doctor, 0, "");
        let mut names: Vec<String> =
            std::fs::read_to_string(&log).unwrap_or_default().lines().map(String::from).collect();
        names.dedup();
        (names.join(" "), out(&doctor))
    };
    let (names, doctor) = used(&[("GIRIH_CC", &own), ("CC", &make)]);
    assert!(names == "own" && doctor.contains("from GIRIH_CC"), "{names}: {doctor}");
    let (names, doctor) = used(&[("CC", &make)]);
    assert!(names == "make" && doctor.contains("from CC"), "{names}: {doctor}");
    let (names, doctor) = used(&[("CC", "")]);
    assert!(names.is_empty() && !doctor.contains("from "), "{names}: {doctor}");
    // Another compiler's kernels are others.
    let cached =
        |cc: &str| out(&finish(lab.command(&["run", &add, "--json"]).env("CC", cc))).contains("\"cached\":true");
    assert!(!cached(&own) && !cached(&make) && cached(&own));
    expect(&finish(lab.command(&["run", &add]).env("CC", "no-such-compiler")), 1, "no-such-compiler");
}

#[test]
fn sums_in_another_order_compare_within_a_bound() {
    let lab = Lab::new("compare");
    let sums = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/softmax.mlir");
    let bound = lab.girih(&["run", sums, "--compare", "eval", "--json"]);
    expect(&bound, 0, "");
    let text = out(&bound);
    assert!(
        text.contains("compare: ok   `dst` largest difference") && text.contains("agree within the bound"),
        "{text}"
    );
    assert!(text.contains("\"compare\":[{"), "{text}");
    let bits = lab.girih(&["run", sums, "--compare", "eval", "--bits"]);
    expect(&bits, 1, "");
    assert!(out(&bits).contains("FAIL `dst` differs first at element") && out(&bits).contains("--knob vectorise=0"));
    let kept = lab.girih(&["run", sums, "--compare", "eval", "--bits", "--knob", "vectorise=0"]);
    expect(&kept, 0, "");
    assert!(out(&kept).contains("agree in every bit"), "{}", out(&kept));
    // Models alike.
    let model = "x = torch.randn(64, 333)\ntorch.softmax(x, -1) @ torch.randn(333, 40), x.argmax(-1)";
    let run = |more: &[&str]| lab.girih(&[&["run", "-c", model, "--compare", "eval"], more].concat());
    expect(&run(&[]), 0, "");
    assert!(out(&run(&[])).contains("agree within the bound"), "{}", out(&run(&[])));
    expect(&run(&["--bits"]), 1, "");
    expect(&lab.girih(&["run", sums, "--bits"]), 2, "--compare");
}

#[test]
fn questions_are_answered_by_run_and_compile() {
    let lab = Lab::new("questions");
    for text in ["help", "help(torch.softmax)", "help(nn.Linear)"] {
        let (run, compile) = (lab.girih(&["run", "-c", text]), lab.girih(&["compile", "-c", text]));
        expect(&run, 0, "");
        assert_eq!(out(&run), out(&compile), "{text}");
        assert!(out(&run).len() > 40, "{text}");
    }
}

#[test]
fn a_missing_input_is_shown_as_it_would_be_given() {
    let lab = Lab::new("missing");
    let input = |name: &str, dtype: &str, shape: &str| {
        format!(r#"{{"name": "{name}", "dtype": "{dtype}", "shape": {shape}, "role": "argument"}}"#)
    };
    for (dtype, shape, spec) in [
        ("f32", "[4, 64]", "randn:f32[4x64]"),
        ("f64", "[7]", "randn:f64[7]"),
        ("bf16", "[2, 1, 3]", "randn:bf16[2x1x3]"),
        ("i64", "[5]", "zeros:i64[5]"),
        ("i32", "[]", "i32:0"),
        ("f32", "[]", "f32:0"),
        ("f32", r#"["rows", 64]"#, "randn:f32[1x64]"),
    ] {
        let inputs = [input("input", dtype, shape), input("other", "f32", "[3]")].join(", ");
        let symbols = if shape.contains("rows") { r#"{"name": "rows", "lo": 1, "hi": 4096}"# } else { "" };
        let model = format!(
            r#"{{"format": "girih.torch", "version": 1, "name": "m",
             "symbols": [{symbols}], "inputs": [{inputs}], "constants": [],
             "nodes": [{{"op": "aten.neg", "args": [{{"t": "input"}}], "attrs": {{}},
                "results": [{{"name": "y", "dtype": "{dtype}", "shape": {shape}}}], "module": ""}}],
             "outputs": [{{"name": "y", "value": "y"}}]}}"#
        );
        let file = lab.file("m.json", &model);
        let wanted = format!("--arg input={spec}");
        let o = lab.girih(&["run", &file, "--arg", "other=ones:f32[3]"]);
        expect(&o, 1, &wanted);
        assert!(err(&o).contains("input `input` is not given"), "{}", err(&o));
        assert_eq!(err(&o).contains("1 stands for rows"), shape.contains("rows"), "{}", err(&o));
        // The suggestion works.
        let given = wanted.strip_prefix("--arg ").unwrap();
        expect(&lab.girih(&["run", &file, "--arg", given, "--arg", "other=ones:f32[3]"]), 0, "");
        // One message names everything that is missing.
        let o = lab.girih(&["run", &file]);
        expect(&o, 1, &format!("`{wanted} --arg other=randn:f32[3]`"));
    }
    let o = lab.girih(&["run", "-c", "torch.relu(x) + w", "--arg", "x=ones:f32[3]"]);
    expect(&o, 1, "give it with `--arg w=randn:f32[4x8]`");
}

#[test]
fn the_least_time_is_no_longer_than_the_median() {
    let lab = Lab::new("least");
    let number = |text: &str, key: &str| -> f64 {
        let (_, rest) = text.split_once(&format!("\"{key}\":")).unwrap();
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    };
    for more in [&["--profile"][..], &["--time"], &["--profile", "--time"], &[]] {
        let o = lab.girih(&[&["run", "-c", "torch.relu(torch.randn(100))", "--json"], more].concat());
        expect(&o, 0, "");
        let (min, median) = (number(&out(&o), "min_s"), number(&out(&o), "median_s"));
        assert!(min <= median && min > 0.0, "{more:?}: {min} {median}");
    }
}
