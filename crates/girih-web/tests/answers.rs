//! Questions and their answers, as a page gets them.

use serde_json::{Value, json};

const RACE: &str = include_str!("../programs/race.mlir");
const ADD: &str = "// launch: grid=2 x=arange:f32[64] y=zeros:f32[64] n=i32:3
entry @add(%x: tile<ptr<f32>>, %y: tile<ptr<f32>>, %n: tile<i32>) {
  %i = iota : tile<32xi32>
  %b, %u, %v = get_tile_block_id : tile<i32>
  %w = constant <i32: 32> : tile<i32>
  %at = muli %b, %w : tile<i32>
  %p = offset %x, %at : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %q = offset %y, %at : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %p1 = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
  %pb = broadcast %p1 : tile<1xptr<f32>> -> tile<32xptr<f32>>
  %ps = offset %pb, %i : tile<32xptr<f32>>, tile<32xi32> -> tile<32xptr<f32>>
  %q1 = reshape %q : tile<ptr<f32>> -> tile<1xptr<f32>>
  %qb = broadcast %q1 : tile<1xptr<f32>> -> tile<32xptr<f32>>
  %qs = offset %qb, %i : tile<32xptr<f32>>, tile<32xi32> -> tile<32xptr<f32>>
  %a, %t = load_ptr_tko weak %ps : tile<32xptr<f32>> -> tile<32xf32>, token
  %s = addf %a, %a : tile<32xf32>
  %d = store_ptr_tko weak %qs, %s : tile<32xptr<f32>>, tile<32xf32> -> token
  return
}
";

fn ask(question: Value) -> Value {
    serde_json::from_str(&girih_web::answer(&question.to_string())).unwrap()
}

/// The message of the only note.
fn refused(question: Value) -> String {
    let answer = ask(question);
    let notes = answer["notes"].as_array().unwrap();
    assert!(notes.len() == 1 && answer.as_object().unwrap().len() == 1, "{answer}");
    notes[0]["message"].as_str().unwrap().to_string()
}

#[test]
fn a_program_is_explained_for_each_target() {
    for (target, last) in [("cpu", "c"), ("sm_80", "cuda"), ("sm_90a", "cuda"), ("sm_100a", "cuda"), ("sm_120", "cuda")]
    {
        let answer = ask(json!({ "ask": "explain", "text": ADD, "target": target }));
        let stages = answer["data"]["stages"].as_array().unwrap();
        let names: Vec<&str> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["source", "cuda_tile", "loop", "schedule", "tile", "kernel", last], "{target}");
        assert_eq!(stages[0]["text"], ADD);
        assert!(answer["data"]["steps"].as_array().unwrap().len() > 5);
        assert!(answer["views"].as_str().unwrap().contains("id=\"stages\""));
        assert_eq!((&answer["graph"], &answer["notes"]), (&json!(false), &json!([])));
    }
}

#[test]
fn a_model_is_explained_and_run() {
    let text = "torch.softmax(torch.randn(4, 8), -1)";
    let answer = ask(json!({ "ask": "explain", "text": text, "target": "sm_90a" }));
    assert_eq!(answer["graph"], true);
    assert!(answer["views"].as_str().unwrap().contains("softmax"));
    let answer = ask(json!({ "ask": "run", "text": "torch.ones(2, 3) * 2 + torch.arange(3)" }));
    assert_eq!(answer["arrays"][0]["type"], "f32[2x3]");
    assert_eq!(answer["arrays"][0]["text"], "[[2.0, 3.0, 4.0], \n [2.0, 3.0, 4.0]]");
}

#[test]
fn a_program_runs_as_its_comment_says() {
    let answer = ask(json!({ "ask": "run", "text": ADD }));
    assert_eq!(answer["arrays"][1]["name"], "y");
    let expected: Vec<String> = (0..64).map(|i| format!("{}.0", 2 * i)).collect();
    assert_eq!(answer["arrays"][1]["text"], format!("[{}]", expected.join(", ")));
    // Elements beyond a block's array are reported where they are read.
    let answer = ask(json!({ "ask": "run", "text": ADD.replace("grid=2", "grid=3") }));
    let note = &answer["notes"][0];
    assert_eq!((&note["severity"], &note["line"]), (&json!("error"), &json!(15)), "{answer}");
}

#[test]
fn the_simulator_names_the_lines_of_a_race() {
    let answer = ask(json!({ "ask": "simulate", "text": RACE, "target": "sm_90a" }));
    assert_eq!(answer["clean"], false);
    let lines: Vec<u64> = answer["notes"].as_array().unwrap().iter().map(|n| n["line"].as_u64().unwrap()).collect();
    assert!(lines.contains(&15) && lines.contains(&17), "{answer}");
    assert!(answer["views"].as_str().unwrap().contains("race in global memory"));
    assert_eq!(answer["data"]["kernels"][0][0]["text"], RACE);
    // The comment of the example says how to mend it.
    let (start, end) = (RACE.find("    %old").unwrap(), RACE.find("    return").unwrap());
    let atomic = RACE.lines().filter_map(|l| l.strip_prefix("//   ")).collect::<Vec<_>>().join("\n");
    let mended = format!("{}{atomic}\n{}", &RACE[..start], &RACE[end..]);
    for ask_for in ["run", "simulate"] {
        let answer = ask(json!({ "ask": ask_for, "text": mended, "target": "sm_90a" }));
        assert_eq!((&answer["notes"], &answer["arrays"][0]["text"]), (&json!([]), &json!("[28.0]")), "{answer}");
    }
    let answer = ask(json!({ "ask": "simulate", "text": ADD, "target": "sm_80" }));
    assert_eq!((&answer["clean"], &answer["blocks"]), (&json!(true), &json!([2, 2])), "{answer}");
}

#[test]
fn errors_have_places() {
    let answer = ask(json!({ "ask": "explain", "text": ADD.replace("addf", "adf") }));
    let note = &answer["notes"][0];
    assert_eq!(
        (&note["severity"], &note["line"], &note["column"]),
        (&json!("error"), &json!(16), &json!(8)),
        "{answer}"
    );
    assert!(answer["data"].is_null());
    let answer = ask(json!({ "ask": "explain", "text": "torch.softmx(torch.randn(3), 0)" }));
    assert_eq!(
        (&answer["notes"][0]["line"], &answer["notes"][0]["severity"]),
        (&json!(1), &json!("error")),
        "{answer}"
    );
}

#[test]
fn questions_that_cannot_be_answered_say_why() {
    let run = |text: String| refused(json!({ "ask": "run", "text": text }));
    assert!(run(ADD.replace("launch", "lunch")).starts_with("nothing says how the kernel is launched"));
    assert_eq!(run(ADD.replace("n=i32:3", "")), "the launch gives no value for `n`; add `n=i32:64`");
    assert_eq!(run(ADD.replace("n=i32:3", "n=f32:3")), "`n` does not fit its parameter; write for example `n=i32:64`");
    assert_eq!(run(ADD.replace("n=i32:3", "m=i32:3")), "the kernel has no parameter `m`");
    assert!(run(ADD.replace("f32[64] y", "f32[99999999999] y")).starts_with("the arrays are larger than the 64 MiB"));
    assert!(run(ADD.replace("x=arange:f32[64]", "x=a.npy")).contains("gives no files"));
    assert!(run("torch.randn(100000, 100000)".into()).contains("too large"));
    assert_eq!(refused(json!({ "ask": "fly", "text": "" })), "`ask` is explain, run or simulate");
    assert!(refused(json!({ "ask": "explain", "text": ADD, "target": "vax" })).starts_with("there is no target `vax`"));
    assert!(refused(json!({ "ask": "explain", "text": " ".repeat(2 << 20) })).contains("at most"));
    assert!(refused(json!({ "ask": "simulate", "text": ADD, "target": "cpu" })).starts_with("cpu has no threads"));
    assert!(girih_web::answer("{").contains("not JSON"));
}

#[test]
fn places_are_in_the_text_that_a_program_was_made_from() {
    let written = "# launch: grid=3 x=arange:f32[64] y=zeros:f32[64] n=i32:3\n\n\n\nload(x)\n";
    let load = "-> tile<32xf32>, token";
    assert!(ADD.contains(load));
    let text = ADD.replacen(load, &format!("{load} loc(\"k.py\":5:1)"), 1).replace("// launch", "// another");
    let ask = |what: &str, of: &str| {
        ask(json!({ "ask": what, "text": of, "target": "sm_90a", "written": { "file": "k.py", "text": written } }))
    };
    let explained = ask("explain", &text);
    let source = &explained["data"]["stages"][0];
    assert_eq!(
        (&source["name"], &source["text"], &source["language"]),
        (&json!("source"), &json!(written), &json!("python"))
    );
    assert_eq!(source["links"][0][0], 5);
    // The third block is beyond the arrays.
    for what in ["run", "simulate"] {
        let note = &ask(what, &text)["notes"][0];
        assert_eq!((&note["severity"], &note["line"]), (&json!("error"), &json!(5)), "{what}: {note}");
    }
}
