//! `girih tune`: what it tries, what it keeps and who uses it, and what it refuses. Nothing here is timed: the simulator counts.

use crate::lab;

use std::process::Stdio;

use girih::tune::{Candidate, Record, Records, Setting};
use lab::{ADD, Lab, Running, TWO, err, expect, out};
use serde_json::Value;

const PRODUCT: &str = "torch.randn(64, 64, dtype=torch.float16) @ torch.randn(64, 64, dtype=torch.float16)";
const SIM: [&str; 4] = ["--device", "sim", "--target", "sm_90a"];

fn json(o: &std::process::Output) -> Value {
    serde_json::from_str(&out(o)).unwrap_or_else(|e| panic!("{e}: {}{}", out(o), err(o)))
}

fn tune(lab: &Lab, more: &[&str]) -> std::process::Output {
    lab.girih(&[&["tune", "-c", PRODUCT], &SIM[..], more].concat())
}

/// The records of a lab.
fn records(lab: &Lab) -> Records {
    Records::of(&girih::CachePolicy::At(lab.0.join("cache"))).unwrap()
}

/// Keeps a knob for the product, as if it had been found.
fn planted(lab: &Lab, name: &'static str, value: i64) -> Record {
    let said = json(&tune(lab, &["--candidate", &format!("{name}={value}")]));
    let (key, machine) = (said["key"].as_str().unwrap(), said["machine"].as_str().unwrap());
    let record = Record::new("main", key, machine, Candidate::from([(Setting::Knob(name), value)]), 1.5, true);
    records(lab).write(&record).unwrap();
    record
}

#[test]
fn the_same_seed_tries_the_same_and_jobs_change_nothing() {
    let lab = Lab::new("tune-seed");
    let found = |more: &[&str]| {
        let flags = ["--vary", "mc", "--vary", "kc", "--trials", "3", "--budget", "500", "--json", "-v"];
        let o = tune(&lab, &[&flags, more].concat());
        expect(&o, 0, "");
        let mut all = json(&o);
        all.as_object_mut().unwrap().remove("seconds");
        (all, err(&o))
    };
    let first = found(&[]);
    assert_eq!((first.0["tried"].as_u64(), first.0["ended"].as_str()), (Some(3), Some("trials")));
    assert!(first.1.contains("x  mc=16"), "{}", first.1);
    expect(&lab.girih(&["tune", "--forget", "all"]), 0, "");
    assert_eq!(found(&["--jobs", "2"]), first);
    // Whatever is kept is faster than the default.
    assert!(first.0["speedup"].as_f64().is_none_or(|x| x > 1.0) && first.0["machine"] == "sm_90a");
}

#[test]
fn a_schedule_that_was_kept_is_used_from_then_on() {
    let lab = Lab::new("tune-used");
    let kernel = |more: &[&str]| {
        lab.girih(&[&["compile", "-c", PRODUCT, "--target", "sm_90a", "--ir", "kernel"], more].concat())
    };
    let (default, given) = (out(&kernel(&[])), out(&kernel(&["--knob", "kc=16"])));
    assert_ne!(default, given);
    let record = planted(&lab, "kc", 16);
    assert_eq!(out(&kernel(&[])), given);
    assert_eq!(out(&kernel(&["--no-tuned"])), default);
    assert_eq!(
        out(&lab.girih(&["compile", "-c", PRODUCT, "--target", "sm_90a", "--ir", "kernel", "--knob", "swizzle=1"])),
        default
    );
    let mut command = lab.command(&["compile", "-c", PRODUCT, "--target", "sm_90a", "--ir", "kernel"]);
    assert_eq!(out(&command.env("GIRIH_TUNED", "0").output().unwrap()), default);
    // Another target has no record, and says that another machine has.
    let other = lab.girih(&["compile", "-c", PRODUCT, "--target", "sm_80", "-v"]);
    assert!(err(&other).contains("schedule: the default; it was tuned on another machine (sm_90a)"), "{}", err(&other));
    let run = lab.girih(&[&["run", "-c", PRODUCT, "-v", "--compare", "eval"], &SIM[..]].concat());
    expect(&run, 0, "");
    assert!(
        err(&run).contains(&format!("schedule: tuned on {}, 1.50x by the estimate: kc=16", record.date)),
        "{}",
        err(&run)
    );

    let listed = json(&lab.girih(&["tune", "--list", "--json"]));
    assert_eq!((listed[0]["key"].as_str(), listed[0]["knobs"]["kc"].as_i64()), (Some(&record.key[..]), Some(16)));
    assert!(out(&lab.girih(&["tune", "--list"])).contains(&record.key[..12]));

    records(&lab).write(&Record { version: "0.0.1".into(), ..record.clone() }).unwrap();
    assert_eq!(out(&kernel(&[])), default);
    assert!(err(&kernel(&["-v"])).contains("tuned with Girih 0.0.1"));
    assert_eq!(out(&lab.girih(&["tune", "--forget", &record.key[..12]])), "forgot 1 schedule\n");
    assert_eq!(out(&lab.girih(&["tune", "--list"])), "no schedules; `girih tune FILE` finds one\n");
}

/// The product's kernel on sm_90a at a stage.
fn product(lab: &Lab, stage: &str, more: &[&str]) -> String {
    let flags = ["compile", "-c", PRODUCT, "--target", "sm_90a", "--ir", stage];
    let o = lab.girih(&[&flags, more].concat());
    expect(&o, 0, "");
    out(&o)
}

/// A line of the product's schedule, its number, and it with another number.
fn bound_to_threads(lab: &Lab) -> (String, usize, String) {
    let schedule = product(lab, "schedule", &["--no-tuned"]);
    let found = (1..).zip(schedule.lines()).find(|(_, l)| l.contains("to thread 128"));
    let (number, line) = found.expect("threads are chosen by a line");
    let line = line.split('#').next().unwrap_or_default().trim().to_string();
    (line.clone(), number, line.replace("128", "256"))
}

#[test]
fn a_changed_schedule_that_was_kept_is_used_from_then_on() {
    let lab = Lab::new("tune-lines");
    let (line, number, changed) = bound_to_threads(&lab);
    let said = json(&tune(&lab, &["--candidate", &format!("{number}.1=256")]));
    assert!(said["ratio"].is_number() && said["changes"][format!("{number}.1")] == 256, "{said}");

    let whole = product(&lab, "schedule", &[]).replace(&line, &changed);
    let plant = |text: &str| {
        let (key, machine) = (said["key"].as_str().unwrap(), said["machine"].as_str().unwrap());
        let place = girih::tune::setting(&format!("{number}.1=256")).unwrap();
        let record = Record::new("main", key, machine, Candidate::from([place]), 1.5, true);
        let schedule = girih_compiler::tile::schedule::Schedule::parse("s", text).unwrap();
        records(&lab).write(&record.with_schedule(Some(schedule))).unwrap();
    };
    plant(&whole);
    let file = lab.file("whole.txt", &whole);
    assert_eq!(product(&lab, "kernel", &[]), product(&lab, "kernel", &["--schedule", &file]));
    assert!(product(&lab, "schedule", &[]).contains(&changed));
    let default = product(&lab, "kernel", &["--no-tuned"]);
    assert_ne!(product(&lab, "kernel", &[]), default);
    let run = lab.girih(&[&["run", "-c", PRODUCT, "-v", "--compare", "eval"], &SIM[..]].concat());
    expect(&run, 0, "");
    assert!(err(&run).contains("1.50x by the estimate: 1 change of the schedule"), "{}", err(&run));
    // A search begins with it.
    let again = tune(&lab, &["--vary", "schedule", "--trials", "1", "--json", "-v"]);
    expect(&again, 0, "");
    assert!(err(&again).contains(&format!("x  line {number}: {changed}")), "{}", err(&again));

    // One that no longer suits the kernel is ignored.
    plant(&whole.replace(&changed, "bind nowhere to thread 256"));
    assert_eq!(product(&lab, "kernel", &[]), default);
    plant(&whole.replace("k_matmul", "k_other"));
    assert_eq!(product(&lab, "kernel", &[]), default);
}

#[test]
fn lines_of_the_schedule_are_tried() {
    let lab = Lab::new("tune-schedule");
    let o = tune(&lab, &["--vary", "schedule", "--budget", "500", "--json", "-v"]);
    expect(&o, 0, "");
    let found = json(&o);
    assert!(found["tried"].as_u64() > Some(10) && found["refused"].as_u64() > Some(10), "{found}");
    let (_, number, changed) = bound_to_threads(&lab);
    // Alone, or with a change that was kept before.
    let tried = |l: &str| l.contains("x  line ") && l.contains(&format!("line {number}: {changed}"));
    assert!(err(&o).lines().any(tried), "{}", err(&o));
    // Whatever is legal computes the same, and knobs are left alone.
    assert!(found["failed"] == 0 && !err(&o).contains("is not what it is"), "{}", err(&o));
    assert!(found["knobs"].as_object().is_none_or(serde_json::Map::is_empty), "{found}");
}

#[test]
fn a_schedule_that_is_slower_now_is_forgotten() {
    let lab = Lab::new("tune-slower");
    planted(&lab, "tensor_core", 0);
    let slow = json(&tune(&lab, &["--candidate", "tensor_core=0"]));
    assert!(slow["ratio"].as_f64().unwrap() > 1.0, "{slow}");
    let o = tune(&lab, &["--vary", "pad_smem", "--trials", "1", "--json"]);
    expect(&o, 0, "");
    assert!(json(&o)["tried"] == 1 && json(&o)["knobs"].is_null() && records(&lab).all().is_empty(), "{}", out(&o));
}

#[test]
fn candidates_that_fail_say_why() {
    let lab = Lab::new("tune-fails");
    let said = json(&tune(&lab, &["--candidate", "mc=1024,nc=1024,tensor_core=0"]));
    assert!(said["failed"].is_string() || said["ratio"].is_number(), "{said}");
    expect(&tune(&lab, &["--candidate", "mc=1"]), 2, "knob `mc` must be from 8");
    let said = json(&tune(&lab, &["--candidate", "mc=64,99.0=4"]));
    assert_eq!(said["failed"], "the schedule has no place `99.0` to change");
    for (place, why) in [("7.x=4", "a place in a schedule"), ("7.0", "PLACE=NUMBER"), ("7.0=-1", "a whole number")] {
        expect(&tune(&lab, &["--candidate", place]), 2, why);
    }
}

#[test]
fn a_processor_is_timed_and_its_results_are_checked() {
    let lab = Lab::new("tune-cpu");
    let add = lab.file("add.mlir", ADD);
    let o = lab.girih(&["tune", &add, "--device", "cpu", "--trials", "2", "--json"]);
    expect(&o, 0, "");
    let found = json(&o);
    assert!(found["estimated"] == false && found["machine"].as_str().unwrap().contains("threads"), "{found}");
    // A knob that this kernel has no use for changes no code; what was kept above would be tried again.
    let lab = Lab::new("tune-cpu-nothing");
    let add = lab.file("add.mlir", ADD);
    let o = lab.girih(&["tune", &add, "--vary", "stage_a"]);
    expect(&o, 0, "");
    assert!(out(&o).starts_with("nothing to tune: no setting changes the code of `add` for "), "{}", out(&o));
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    let lab = Lab::new("tune-bad");
    let add = lab.file("add.mlir", ADD);
    let two = lab.file("two.mlir", TWO);
    let refused = |args: &[&str], code: i32, why: &str| expect(&lab.girih(&[&["tune"], args].concat()), code, why);
    refused(&[], 2, "<FILE>");
    refused(&[&add, "--vary", "kd"], 2, "unknown knob `kd`; did you mean `kc`?");
    refused(&[&add, "--vary", "slots"], 2, "knob `slots` is not tried for cpu; those that are: kc");
    refused(&[&add, "--knob", "kc=64"], 2, "--vary NAME");
    refused(&[&add, "--block", "0,0,0"], 2, "--block runs one block");
    refused(&[&add, "--budget", "0"], 2, "expected seconds, more than 0, found `0`");
    refused(&[&add, "--budget", "-1"], 2, "expected seconds");
    refused(&[&add, "--trials", "0"], 2, "expected a whole number from 1 on");
    refused(&[&add, "--device", "eval"], 2, "the evaluator has no schedule");
    refused(&[&add, "--jobs", "2"], 2, "--jobs is for --device sim");
    refused(&[&add, "--jobs", "slurm"], 2, "`ray` or `dask`");
    refused(&[&add, "--target", "sm_90"], 2, "unknown target `sm_90`");
    refused(&[&add, "--target", "sm_90a"], 1, "cannot run on this machine");
    refused(&[&two], 2, "--entry");
    refused(&["none.mlir"], 1, "cannot be read");
    // A folder that cannot be made is known before the search.
    let file = lab.file("file", "");
    let mut command = lab.command(&["tune", &add]);
    expect(&command.env("GIRIH_CACHE_DIR", &file).output().unwrap(), 1, "a schedule cannot be kept there");
    assert!(records(&lab).all().is_empty());
}

#[test]
fn a_budget_that_the_default_exceeds_is_refused() {
    let lab = Lab::new("tune-budget");
    let o = tune(&lab, &["--budget", "0.001", "--json"]);
    expect(&o, 1, "the simulation of the default takes longer than the budget; raise --budget");
    assert!(records(&lab).all().is_empty());
}

#[test]
fn ctrl_c_keeps_what_there_is() {
    let lab = Lab::new("tune-interrupt");
    let large = "torch.randn(128, 128, dtype=torch.float16) @ torch.randn(128, 128, dtype=torch.float16)";
    let mut command = lab.command(
        &[&["tune", "-c", large, "-v", "--budget", "5000", "--vary", "kc", "--vary", "mc"], &SIM[..]].concat(),
    );
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut running = Running::new(child);
    running.says(1, "x  ");
    running.interrupt();
    let o = running.output();
    assert_eq!(o.status.code(), Some(130), "{}{}", out(&o), err(&o));
    assert!(out(&o).contains("ended: interrupted"), "{}", out(&o));
}

/// A simulation of minutes is left in the middle.
#[test]
fn the_budget_holds_inside_a_simulation() {
    let lab = Lab::new("tune-budget");
    let large = "torch.randn(2048, 2048, dtype=torch.float16) @ torch.randn(2048, 2048, dtype=torch.float16)";
    let start = std::time::Instant::now();
    let o = lab.girih(&[&["tune", "-c", large, "--budget", "1"], &SIM[..]].concat());
    expect(&o, 1, "the simulation of the default takes longer than the budget");
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
