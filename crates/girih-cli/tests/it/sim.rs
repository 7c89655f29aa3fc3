//! `girih sim`: what it reports, the budgets and limits that fail a run, and what it refuses; and `--resources`.

use crate::lab;

use lab::browser::Browser;
use lab::{ADD, Lab, SPINS, err, expect, finish, out};
use serde_json::Value;

/// Every block stores its number to the same element.
const RACES: &str = r#"// launch: grid=3 c=zeros:i32[1]
cuda_tile.module @m {
  entry @racy(%c: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %t = store_ptr_tko weak %c, %bx : tile<ptr<i32>>, tile<i32> -> token
  }
}
"#;

const SUM: &str = "torch.sum(torch.randn(5, 777), dim=1)";

fn json(o: &std::process::Output) -> Value {
    serde_json::from_str(&out(o)).unwrap_or_else(|e| panic!("{e}: {}", out(o)))
}

#[test]
fn a_clean_program_is_reported_with_its_counts() {
    let lab = Lab::new("sim");
    let add = lab.file("add.mlir", ADD);
    let o = lab.girih(&["sim", &add, "--max-bank-conflicts", "1", "--max-sectors", "1"]);
    expect(&o, 0, "");
    let text = out(&o);
    assert!(text.starts_with("add: 4 blocks of 256 threads, schedule round-robin (seed 0)\nnothing found\n"), "{text}");
    assert!(text.trim_end().ends_with("nothing found under 5 schedules"), "{text}");
    // Two arrays read and one written, of 1000 elements of 4 bytes.
    assert!(text.contains("global memory: 12000 bytes in 96 requests, 375 sectors (1.00x)"), "{text}");

    let all = json(&lab.girih(&["sim", &add, "--json", "--target", "sm_80"]));
    let runs = all["schedules"].as_array().unwrap();
    let schedules: Vec<&str> = runs.iter().map(|r| r["kernels"][0]["schedule"].as_str().unwrap()).collect();
    assert_eq!(schedules, ["round-robin", "random", "newest", "starve", "reversed"]);
    let kernel = &runs[0]["kernels"][0];
    assert_eq!((kernel["clean"].as_bool(), kernel["global"]["sectors"].as_u64()), (Some(true), Some(375)));
    // 4 blocks of 256 threads; threads beyond the array are masked off.
    assert_eq!(kernel["instructions"]["global load"], 2 * 1024);
    assert_eq!(kernel["instructions"]["global store"], 1024);
    // The statement's line of the CUDA is the one that `--ir cuda` prints.
    let rows = kernel["statements"].as_array().unwrap();
    // One of the blocks inside the array, and one of the block at its edge.
    let stores: Vec<_> = rows.iter().filter(|r| r["kind"] == "global store").collect();
    let count =
        |of: &dyn Fn(&serde_json::Value) -> Option<u64>| -> Vec<u64> { stores.iter().filter_map(|s| of(s)).collect() };
    assert_eq!(count(&|s| s["global"]["bytes"].as_u64()), [3072, 928]);
    assert_eq!(count(&|s| s["executions"].as_u64()), [768, 256]);
    let store = stores[0];
    let cuda = out(&lab.girih(&["compile", &add, "--ir", "cuda", "--target", "sm_80"]));
    let line = cuda.lines().nth(store["cuda_line"].as_u64().unwrap() as usize - 1).unwrap();
    assert!(line.contains("c["), "{line}");
}

#[test]
fn seeds_and_schedules_choose_what_is_run() {
    let lab = Lab::new("sim-seeds");
    let add = lab.file("add.mlir", ADD);
    let seeds = |more: &[&str]| -> Vec<u64> {
        let all = json(&lab.girih(&[&["sim", &add, "--json", "--block", "2,0,0"], more].concat()));
        let runs = all["schedules"].as_array().unwrap();
        assert!(runs.iter().all(|r| r["kernels"][0]["blocks"] == 1), "{all}");
        runs.iter().map(|r| r["seed"].as_u64().unwrap()).collect()
    };
    assert_eq!(seeds(&["--seed", "7"]), [7]);
    assert_eq!(seeds(&["--seed", "3", "--schedules", "2"]), [3, 4]);
    assert_eq!(seeds(&["--schedules", "8"]).len(), 8);
    expect(&lab.girih(&["sim", &add, "--schedules", "0"]), 2, "--schedules");
}

#[test]
fn a_sample_of_blocks_stands_for_the_grid() {
    let lab = Lab::new("sim-sample");
    let add = lab.file("add.mlir", ADD);
    let sum = "torch.randn(3000, 777).sum(1)";
    let kernel = |args: &[&str]| {
        let all = json(&lab.girih(&[&["sim", "--json", "--schedules", "1"], args].concat()));
        all["schedules"][0]["kernels"][0].clone()
    };
    for of in [&["-c", sum][..], &[&add]] {
        let (whole, part) = (kernel(of), kernel(&[of, &["--sample", "2"]].concat()));
        assert_eq!(part["blocks"], 2, "{part}");
        let work = &part["estimate"]["work"];
        assert_eq!((&work["counted"], &work["blocks"]), (&part["blocks"], &whole["blocks"]));
        let seconds = |of: &serde_json::Value| of["estimate"]["seconds"].as_f64().unwrap();
        assert!((0.8..1.25).contains(&(seconds(&part) / seconds(&whole))), "{part} {whole}");
    }
    expect(&lab.girih(&["sim", &add, "--sample", "0"]), 2, "--sample");
    expect(&lab.girih(&["sim", &add, "--sample", "2", "--block", "0,0,0"]), 2, "cannot be used with");
}

#[test]
fn a_race_is_told_once_and_fails_the_run() {
    let lab = Lab::new("sim-race");
    let file = lab.file("racy.mlir", RACES);
    let o = lab.girih(&["sim", &file]);
    expect(&o, 3, "");
    let text = out(&o);
    assert_eq!(text.matches("a race in global memory").count(), 1, "{text}");
    assert!(text.contains("bytes 0 to 3 of `c`") && !text.contains("nothing found"), "{text}");
    let all = json(&lab.girih(&["sim", &file, "--json", "--seed", "1"]));
    let finding = &all["schedules"][0]["kernels"][0]["findings"][0];
    assert_eq!(finding["kind"], "write-after-write");
    assert_ne!(finding["by"]["block"], finding["first"]["by"]["block"]);
    // One block alone races with nobody.
    expect(&lab.girih(&["sim", &file, "--block", "1,0,0"]), 0, "");
}

#[test]
fn a_budget_that_is_exceeded_names_the_statement() {
    let lab = Lab::new("sim-budget");
    // Rows of 777 words begin in the middle of a sector.
    let o = lab.girih(&["sim", "-c", SUM, "--max-sectors", "1.1"]);
    expect(&o, 1, "--max-sectors allows 1.1x");
    assert!(err(&o).contains("kernel `k_sum`, line ") && err(&o).contains("load x[bx*777 + k]"), "{}", err(&o));
    expect(&lab.girih(&["sim", "-c", SUM, "--max-sectors", "1.5", "--max-bank-conflicts", "1"]), 0, "");
    for wrong in ["0.5", "many", "nan"] {
        expect(&lab.girih(&["sim", "-c", SUM, "--max-sectors", wrong]), 2, "expected a number from 1 on");
    }
}

#[test]
fn a_kernel_without_end_is_stopped_and_says_where() {
    let lab = Lab::new("sim-steps");
    let file = lab.file("spins.mlir", SPINS);
    let o =
        lab.girih(&["sim", &file, "--grid", "2", "--arg", "flag=zeros:i32[1]", "--max-steps", "5000", "--seed", "0"]);
    expect(&o, 3, "");
    let text = out(&o);
    assert!(text.contains("did not end within 5000 statements") && text.contains("\n  at line "), "{text}");
    // With more statements to look at, it is known that nothing ends the loop.
    let o = lab.girih(&["sim", &file, "--grid", "2", "--arg", "flag=zeros:i32[1]", "--seed", "0"]);
    expect(&o, 3, "");
    let text = out(&o);
    assert!(text.contains("deadlock: a block goes round for ever") && text.contains("load flag[0] acquire"), "{text}");
}

#[test]
fn a_run_is_one_of_several_schedules_that_leave_the_same() {
    let lab = Lab::new("run-schedules");
    // The second block reuses the counts of the first one, or does not: under the last schedule blocks are mixed.
    let text = "cuda_tile.module @m {\n  entry @k(%y: tile<ptr<i32>>) {\n    %one = constant <i32: 1> : tile<i32>\n    \
                %old, %t = atomic_rmw_tko relaxed device %y, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token\n    \
                print_tko \"once\\n\"\n    return\n  }\n}\n";
    let file = lab.file("count.mlir", text);
    let run = ["run", &file, "--device", "sim", "--grid", "3", "--arg", "y=zeros:i32[1]", "--print", "y"];
    let one = lab.girih(&run);
    let eight = lab.girih(&[&run[..], &["--schedules", "8"]].concat());
    expect(&eight, 0, "");
    assert_eq!(out(&one), out(&eight));
    assert_eq!(out(&eight).matches("once").count(), 3, "{}", out(&eight));
    assert_eq!(out(&finish(lab.command(&run).env("GIRIH_SCHEDULES", "8"))), out(&eight));
    expect(&lab.girih(&[&run[..], &["--schedules", "1001"]].concat()), 2, "from 1 to 1000");

    // Other devices have none, also for a model; the environment speaks to simulations only.
    let native = ["run", &file, "--grid", "3", "--arg", "y=zeros:i32[1]", "--print", "y"];
    let wanted = "only the simulator has schedules of threads: --schedules needs --device sim or --compare sim";
    for device in ["cpu", "eval"] {
        let o = lab.girih(&[&native[..], &["--device", device, "--schedules", "3"]].concat());
        expect(&o, 2, wanted);
        assert_eq!(out(&o), "");
    }
    expect(&lab.girih(&["run", "-c", "torch.ones(4) + 1", "--schedules", "3"]), 2, wanted);
    expect(&lab.girih(&[&native[..], &["--compare", "sim", "--schedules", "3"]].concat()), 0, "");
    expect(&finish(lab.command(&native).env("GIRIH_SCHEDULES", "3")), 0, "");
}

#[test]
fn a_large_simulation_says_so_before_it_begins() {
    let lab = Lab::new("sim-large");
    // Stopped at once: what it says comes before.
    let large = |command: &[&str], size: &str| {
        let product = format!("torch.zeros({size}, {size}) @ torch.zeros({size}, {size})");
        let o = lab.girih(&[command, &["-c", &product, "--target", "sm_90a"]].concat());
        err(&o)
    };
    let steps = ["sim", "--max-steps", "20000", "--schedules", "2"];
    let said = large(&steps, "1024");
    assert_eq!(said.matches("simulating k_matmul: about ").count(), 1, "{said}");
    for part in [" thread-statements, some ", "; `girih sim --block 0,0,0` runs one block\n"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // One block is small, and so is a small product.
    let one = large(&[&steps[..], &["--block", "0,0,0"]].concat(), "1024");
    assert!(!one.contains("thread-statements,"), "{one}");
    assert!(!large(&["run", "--device", "sim"], "32").contains("thread-statements"));
}

#[test]
fn what_does_not_fit_is_refused_with_the_limit() {
    let lab = Lab::new("sim-refused");
    let add = lab.file("add.mlir", ADD);
    expect(&lab.girih(&["sim", &add, "--target", "cpu"]), 1, "name one: --target sm_90a");
    let o = lab.girih(&["sim", &add, "--knob", "threads=100"]);
    expect(&o, 2, "knob `threads` must be a multiple of 32 from 32 to 1024, not 100");
    expect(&lab.girih(&["sim", "-c", SUM, "--grid", "3"]), 2, "--grid works with tile programs only");
    expect(&lab.girih(&["sim", "-c", SUM, "--block", "7,7,7"]), 1, "no kernel has a block 7,7,7; the largest grid is ");
    expect(&lab.girih(&["run", "-c", SUM, "--block", "0"]), 2, "--block works with tile programs only");
}

#[test]
fn one_block_of_each_kernel_of_a_model() {
    let lab = Lab::new("sim-block");
    let product = "torch.randn(64, 16) @ torch.randn(16, 64)";
    let blocks = |more: &[&str]| {
        let o = lab.girih(&[&["sim", "-c", product, "--seed", "0"], more].concat());
        expect(&o, 0, "");
        let text = out(&o);
        let first = text.lines().find(|l| l.starts_with("k_matmul: ")).unwrap_or_else(|| panic!("{text}"));
        first.split_whitespace().nth(1).and_then(|n| n.parse::<u32>().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!(blocks(&["--block", "0,1"]), 1);
    assert!(blocks(&[]) > 1);
}

/// Padding, beside the run without it: the numbers, the pictures, and the source.
#[test]
fn a_page_shows_what_a_knob_buys() {
    let lab = Lab::new("sim-page");
    let column = "torch.randn(64, 64).transpose(0, 1) @ torch.randn(64, 64)";
    let page = lab.path("page.html");
    let file = page.as_str();
    let args = ["sim", "-c", column, "--target", "sm_80", "--seed", "0", "--html", file];
    expect(&lab.girih(&[&args[..], &["--against", "tensor_core=0", "--against", "unroll=0"]].concat()), 0, "");
    let text = std::fs::read_to_string(&page).expect("it is written");
    for part in [
        "<!doctype html>",
        "<h2>k_matmul</h2>",
        "<th>tensor_core=0 unroll=0</th><th>as chosen</th><th>change</th>",
        "wavefronts of shared memory",
        "<h3>Global memory by array</h3>",
        "aria-label=\"What ",
        "aria-label=\"Banks that lanes touch\"",
        "__syncthreads();",
    ] {
        assert!(text.contains(part), "{part} is not in the page");
    }
    assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    for outside in ["src=", "http:", "https:", "<img"] {
        assert!(!text.contains(outside), "{outside}");
    }
    // Written anew, and without anything beside it.
    expect(&lab.girih(&args), 0, "");
    let alone = std::fs::read_to_string(&page).expect("it is written");
    assert!(!alone.contains("<th>change</th>") && alone.len() < text.len());
    let nowhere = lab.path("no/such/page.html");
    expect(&lab.girih(&["sim", "-c", column, "--seed", "0", "--html", &nowhere]), 1, "cannot be written");
    expect(&lab.girih(&["sim", "-c", column, "--against", "tma=0"]), 2, "--html");
    expect(&lab.girih(&["sim", "-c", column, "--html", file, "--against", "pad_sme=0"]), 2, "pad_smem");
}

/// The page in a browser: pictures, and statements that light up their CUDA and their source.
#[test]
fn in_a_browser_statements_are_linked() {
    let lab = Lab::new("sim-browser");
    let file = lab.path("page.html");
    let o = lab.girih(&["sim", "-c", "torch.randn(64, 64) @ torch.randn(64, 64)", "--seed", "0", "--html", &file]);
    expect(&o, 0, "");
    let Some(mut b) = Browser::open_file(&lab, &file) else { return };
    assert!(b.number("document.querySelectorAll('svg').length") >= 2.0);
    assert!(b.eval("document.body.textContent.includes('k_matmul')") == true);
    // A line of the table is a statement: its line of Kernel IR, of CUDA, and the operation that it comes from light up.
    let row =
        "[...document.querySelectorAll('.lined tr[data-statement]')].find(r => r.textContent.includes('matmul['))";
    b.click(row);
    for stage in ["torch", "kernel", "cuda"] {
        assert_eq!(
            b.number(&format!("document.querySelectorAll('[data-stage={stage}] .ln.on').length")),
            1.0,
            "{stage}"
        );
    }
    let text = |stage: &str| format!("document.querySelector('[data-stage={stage}] .ln.on').textContent");
    assert!(b.eval(&text("torch")).as_str().unwrap().contains("aten.matmul"));
    assert!(b.eval(&text("kernel")).as_str().unwrap().contains("store matmul["));
    b.picture("sim-linked");
    // And back: the operation has all its statements.
    b.click("document.querySelector('[data-stage=torch] .ln.on')");
    assert!(b.number("document.querySelectorAll('.lined tr.on').length") > 10.0);
    assert_eq!(b.errors, [""; 0]);

    // For a tile program, the user's own lines.
    let add = lab.file("add.mlir", ADD);
    expect(&lab.girih(&["sim", &add, "--seed", "0", "--html", &file]), 0, "");
    let Some(mut b) = Browser::open_file(&lab, &file) else { return };
    let sum =
        "[...document.querySelectorAll('[data-stage=source] .ln')].find(l => l.textContent.includes('%z = addf'))";
    b.until(sum);
    b.click(sum);
    assert!(b.eval(&text("kernel")).as_str().unwrap().contains("addf x, y"));
    assert!(b.eval(&text("cuda")).as_str().unwrap().contains("x + y"));
    assert_eq!(b.errors, [""; 0]);
}

/// Products of small whole numbers, which tf32 holds, by rows and by columns of both operands.
#[test]
fn tf32_multiplies_f32_on_the_matrix_unit() {
    let lab = Lab::new("sim-tf32");
    let matrix = |n: u32, by: u32, shape: &str| format!("(torch.arange({n}) % {by}).reshape({shape}).float()");
    let left = [matrix(2000, 13, "40, 50"), matrix(2000, 13, "50, 40") + ".transpose(0, 1)"];
    let right = [matrix(3000, 7, "50, 60"), matrix(3000, 7, "60, 50") + ".transpose(0, 1)"];
    for (a, b) in left.iter().flat_map(|a| right.iter().map(move |b| (a, b))) {
        let product = format!("{a} @ {b}");
        let on = ["-c", &product, "--target", "sm_80", "--knob", "tf32=1"];
        let kernel = lab.girih(&[&["compile"], &on[..], &["--ir", "kernel"]].concat());
        assert!(out(&kernel).contains("mma tf32"), "{}", out(&kernel));
        let run = lab.girih(&[&["run"], &on[..], &["--device", "sim", "--compare", "eval"]].concat());
        expect(&run, 0, "");
        assert!(out(&run).contains("agree in every bit"), "{product}: {}", out(&run));
    }
}

#[test]
fn resources_need_a_gpu_and_name_the_package_of_nvrtc() {
    let lab = Lab::new("resources");
    let add = lab.file("add.mlir", ADD);
    let run = |more: &[&str]| {
        let args = [&["compile", &add, "--resources"], more].concat();
        finish(lab.command(&args).env("GIRIH_CUDA_LIBS", lab.path("nothing")))
    };
    expect(&run(&["--target", "sm_120"]), 1, "pip install 'nvidia-cuda-nvrtc<13.1'");
    expect(&run(&["--target", "cpu"]), 1, "name one: --target sm_90a");
}

/// The estimate of a run of one kernel.
fn estimate(o: &std::process::Output) -> Value {
    json(o)["schedules"][0]["kernels"][0]["estimate"].clone()
}

#[test]
fn an_estimate_says_what_bounds_a_kernel() {
    let lab = Lab::new("sim-estimate");
    let linear = "torch.randn(128, 128, dtype=torch.float16) @ torch.randn(128, 128, dtype=torch.float16)";
    let of = |more: &[&str]| {
        estimate(&lab.girih(&[&["sim", "-c", linear, "--seed", "0", "--json", "--target", "sm_90a"], more].concat()))
    };
    let seconds = |e: &Value| e["seconds"].as_f64().unwrap();
    let naive = ["--knob", "tensor_core=0", "--knob", "register_tile=0", "--knob", "tma=0", "--knob", "async_copy=0"];
    let (chosen, naive) = (of(&[]), of(&naive));
    assert!(seconds(&naive) > seconds(&chosen), "{naive}\n{chosen}");
    assert!(chosen["parts"].as_object().unwrap().contains_key("matrix unit"), "{chosen}");

    // With one block, the estimate is scaled to the grid.
    let add = lab.file("add.mlir", ADD);
    let whole = estimate(&lab.girih(&["sim", &add, "--json", "--seed", "0"]));
    let one = estimate(&lab.girih(&["sim", &add, "--json", "--seed", "0", "--block", "0,0,0"]));
    assert_eq!((whole["counted"].as_u64(), whole["blocks"].as_u64()), (Some(4), Some(4)));
    assert_eq!((one["counted"].as_u64(), one["blocks"].as_u64()), (Some(1), Some(4)));
    let text = out(&lab.girih(&["sim", &add, "--block", "0,0,0", "--schedules", "1"]));
    assert!(text.contains("estimate for sm_90a, not measured: ") && text.contains("from 1 block: "), "{text}");

    // `run` shows it under -vv, and nothing of it otherwise.
    let run = |more: &[&str]| err(&lab.girih(&[&["run", &add, "--device", "sim"], more].concat()));
    assert!(run(&["-vv"]).contains("add: estimate for sm_90a, not measured: ") && !run(&["-v"]).contains("estimate"));
    let page = lab.path("page.html");
    expect(&lab.girih(&["sim", &add, "--seed", "0", "--html", &page]), 0, "");
    assert!(std::fs::read_to_string(&page).unwrap().contains("estimate for sm_90a"));
}

/// Each thread stores an element that another one has put into shared memory.
const BY_HAND: &str = "# launch: grid=2 x=randn:f32[64] y=zeros:f32[64]
kernel reversed(x: ptr<f32>, y: ptr<f32>) threads 64 scratch 0 shared 256 {
  shared s: f32[64] at 0
  v: f32 = load x[tx]
  store s[tx] = v
  barrier
  w: f32 = load s[63 - tx]
  if bx < 1 {
    store y[tx] = w
  }
}
";

#[test]
fn kernel_ir_by_hand() {
    let lab = Lab::new("sim-by-hand");
    let clean = lab.file("clean.kir", BY_HAND);
    let o = lab.girih(&["sim", &clean, "--max-bank-conflicts", "1"]);
    expect(&o, 0, "");
    assert!(out(&o).starts_with("reversed: 2 blocks of 64 threads"), "{}", out(&o));
    let racy = lab.file("racy.kernel", &BY_HAND.replace("  barrier\n", ""));
    let o = lab.girih(&["sim", &racy]);
    expect(&o, 3, "");
    assert!(out(&o).contains("read-after-write") || out(&o).contains("write-after-read"), "{}", out(&o));
    for (from, to, message) in [
        ("kernel reversed", "colonel reversed", "expected `kernel`, found `colonel`"),
        ("load s[", "load q[", "expected a slot or an address, found `q`"),
        ("threads 64", "threads 2000", "2000"),
        ("x=randn:f32[64] ", "", "no value is given for x: ptr<f32>"),
        ("x=randn:f32[64]", "x=randn:f16[64]", "`x`"),
        ("x=randn", "z=randn", "`z`"),
        ("store y[tx] = w", "store y[tx] = v2", "v2"),
        ("store y[tx] = w", "if tx < 3 {\n    barrier\n  }\n  store y[tx] = w", "wrong.kir:10:5"),
    ] {
        let file = lab.file("wrong.kir", &BY_HAND.replace(from, to));
        let o = lab.girih(&["sim", &file]);
        expect(&o, 1, message);
        assert!(err(&o).contains(message), "{from}: {}", err(&o));
    }
    // Printed Kernel IR reads back: the kernel of a model, by its arguments' names.
    let o = lab.girih(&[
        "compile",
        "-c",
        "torch.softmax(x, -1)",
        "--arg",
        "x=randn:f32[4x300]",
        "--target",
        "sm_80",
        "--ir",
        "kernel",
    ]);
    let printed = lab.file("printed.kir", &out(&o));
    let o = lab.girih(&[
        "sim",
        &printed,
        "--arg",
        "x=randn:f32[4x300]",
        "--arg",
        "softmax=zeros:f32[4x300]",
        "--target",
        "sm_80",
    ]);
    expect(&o, 0, "");
}

#[test]
fn kernel_ir_is_a_program() {
    let lab = Lab::new("sim-program");
    let file = lab.file("reversed.kir", &BY_HAND.replace("randn:f32[64]", "arange:f32[64]"));
    let o = lab.girih(&["run", &file, "--print", "y", "--save", &format!("y={}", lab.path("y.npy"))]);
    expect(&o, 0, "");
    assert!(out(&o).starts_with("y = "), "{}", out(&o));
    assert!(std::path::Path::new(&lab.path("y.npy")).exists());
    let printed = out(&o);
    let o = lab.girih(&["sim", &file, "--print", "y"]);
    expect(&o, 0, "");
    assert!(out(&o).contains(printed.trim_end()), "{}", out(&o));
    expect(&lab.girih(&["run", &file]), 0, "ran `reversed` on sim");

    // A finding of the simulator is an error of the run, and a wrong value shows beside another kernel.
    let racy = lab.file("racy.kir", &BY_HAND.replace("  barrier\n", ""));
    expect(&lab.girih(&["run", &racy]), 3, "race in shared memory");
    let same = lab.file("same.kir", &BY_HAND.replace("kernel reversed", "kernel again"));
    let o = lab.girih(&["sim", &file, "--compare", &same]);
    expect(&o, 0, "");
    assert!(out(&o).contains("agree in every bit"), "{}", out(&o));
    let wrong = lab.file("wrong.kir", &BY_HAND.replace("63 - tx", "62 - tx%63"));
    let o = lab.girih(&["sim", &file, "--compare", &wrong]);
    expect(&o, 1, "");
    assert!(out(&o).contains("compare: FAIL `y` differs first at element"), "{}", out(&o));
    let other = lab.file("other.kir", &BY_HAND.replace("ptr<f32>, y: ptr<f32>", "ptr<f32>, z: ptr<f32>"));
    let other =
        lab.file("other.kir", &std::fs::read_to_string(other).unwrap().replace("y[tx", "z[tx").replace("y=", "z="));
    expect(&lab.girih(&["sim", &file, "--compare", &other]), 2, "--compare needs the same parameters");

    // A kernel of one thread, and arguments that do not fit.
    let one = "# launch: grid=4 y=zeros:i32[4]\nkernel count(y: ptr<i32>) scratch 0 {\n  v: i32 = index bx*3\n  store y[bx] = v\n}\n";
    let one = lab.file("one.kir", one);
    let o = lab.girih(&["run", &one, "--print", "y"]);
    expect(&o, 0, "");
    assert!(out(&o).contains("[0, 3, 6, 9]"), "{}", out(&o));
    expect(&lab.girih(&["run", &file, "--device", "cpu"]), 2, "runs on --device sim, not on cpu");
    expect(&lab.girih(&["run", &file, "--verify"]), 2, "--verify is for tile programs and models");
    expect(&lab.girih(&["sim", "-c", SUM, "--print", "x"]), 1, "the model has no output `x`");
    expect(&lab.girih(&["sim", "-c", SUM, "--compare", &file]), 2, "is for Kernel IR");
}

/// A kernel that never ends on a GPU ends here, with a reason.
#[test]
fn endless_runs_end() {
    let lab = Lab::new("sim-endless");
    let later = "# launch: grid=6000 f=zeros:i32[1]\nkernel later(f: ptr<i32>) threads 32 scratch 0 shared 0 {\n  if bx == 5999 {\n    \
                 if tx == 0 {\n      store f[0] = 1:i32 release\n    }\n  } else {\n    loop {\n      v: i32 = load f[0] acquire\n      \
                 d: i1 = cmpi.eq v, 1:i32\n      if d {\n        break\n      }\n    }\n  }\n}\n";
    let o = lab.girih(&["sim", &lab.file("later.kir", later), "--target", "sm_90a", "--schedules", "5"]);
    expect(&o, 3, "");
    let told = "deadlock: 4224 blocks are resident at once, and all of them wait; the 1776 others begin only when one of these ends";
    assert!(out(&o).contains(told), "{}", out(&o));
    // Past the end of an array there is no 99.
    let past = "# launch: grid=1 x=zeros:f32[50] o=zeros:i32[1]\nkernel past(x: ptr<f32>, o: ptr<i32>) threads 32 scratch 0 shared 0 {\n  \
                var k: i32 = 0:i32\n  loop {\n    v: f32 = load x[k]\n    d: i1 = cmpf.eq v, 99.0:f32\n    if d {\n      break\n    }\n    \
                n: i32 = addi k, 1:i32\n    k = n\n  }\n  store o[0] = k where tx == 0\n}\n";
    let past = lab.file("past.kir", past);
    let o = lab.girih(&["sim", &past]);
    expect(&o, 3, "");
    assert!(
        out(&o).contains("out-of-bounds") && out(&o).contains("statements after an access out of bounds"),
        "{}",
        out(&o)
    );
    expect(&lab.girih(&["run", &past]), 3, "out-of-bounds");
}

/// A warp that fills a pipeline goes apart from the threads that read it, but not where these may leave before.
#[test]
fn a_block_that_ends_early_leaves_no_warp_behind() {
    let lab = Lab::new("sim-early");
    let example = include_str!("../../../../examples/attention_f16.mlir");
    let first = example.lines().find(|line| line.contains("get_tile_block_id")).unwrap();
    let leaves = "
    %last = constant <i32: 1> : tile<i32>
    %late = cmpi greater_than %bq, %last, signed : tile<i32> -> tile<i1>
    if %late {
      return
    }";
    for (name, text) in [("whole", example.to_string()), ("early", example.replace(first, &format!("{first}{leaves}")))]
    {
        let file = lab.file(&format!("{name}.mlir"), &text);
        let ir = out(&lab.girih(&["compile", &file, "--target", "sm_90a", "--ir", "kernel"]));
        assert!(ir.contains("wait free") && ir.contains("barrier first 128") == (name == "whole"), "{ir}");
        expect(&lab.girih(&["run", &file, "--device", "sim", "--target", "sm_90a", "--verify"]), 0, "");
    }
}
