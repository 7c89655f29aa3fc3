//! The command line as its users and scripts rely on it: exit codes, messages, files.

use crate::lab;

use std::path::Path;
use std::process::Stdio;

use lab::{ADD, Lab, Running, SPINS, TWO, err, expect, finish, out};

const FAILS: &str = r#"cuda_tile.module @m {
  entry @k() {
    %no = constant <i1: false> : tile<i1>
    assert %no, "this is false" : tile<i1>
  }
}
"#;

#[test]
fn a_file_runs_as_its_comment_says() {
    let lab = Lab::new("comment");
    let add = lab.file("add.mlir", ADD);
    for device in ["cpu", "eval"] {
        let o = lab.girih(&["run", &add, "--device", device, "--save", &format!("c={}", lab.path("c.npy")), "--json"]);
        expect(&o, 0, "");
        let saved = std::fs::read(lab.path("c.npy")).unwrap();
        let data = &saved[saved.len() - 4000..];
        let values: Vec<f32> = data.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert!(values.iter().enumerate().all(|(i, &x)| x == i as f32 + 1.0), "{device}");
        let json = out(&o);
        assert!(json.starts_with('{') && json.contains("\"kernel\":\"add\""), "{json}");
        for key in ["device", "threads", "runs", "min_s", "median_s", "compile_s", "cached"] {
            assert!(json.contains(&format!("\"{key}\":")), "{key}");
        }
    }
}

#[test]
fn the_second_run_finds_the_kernel_in_the_cache() {
    let lab = Lab::new("cached");
    let add = lab.file("add.mlir", ADD);
    assert!(out(&lab.girih(&["run", &add, "--json"])).contains("\"cached\":false"));
    assert!(out(&lab.girih(&["run", &add, "--json"])).contains("\"cached\":true"));
    assert!(out(&lab.girih(&["run", &add, "--json", "--no-cache"])).contains("\"cached\":false"));
    assert!(out(&lab.girih(&["cache", "info"])).contains("kernels  1"));
    expect(&lab.girih(&["cache", "clear"]), 0, "");
    assert!(out(&lab.girih(&["cache", "info"])).contains("kernels  0"));
}

#[test]
fn flags_win_over_the_comment() {
    let lab = Lab::new("flags");
    let add = lab.file("add.mlir", ADD);
    let o = lab.girih(&["run", &add, "--arg", "b=zeros:f32[1000]", "--arg", "3=i32:2", "--print", "c"]);
    expect(&o, 0, "");
    assert!(out(&o).starts_with("c = [0.0, 1.0, 0.0"), "{}", out(&o));
}

#[test]
fn verify_compare_and_time_agree() {
    let lab = Lab::new("verify");
    let add = lab.file("add.mlir", ADD);
    let o = lab.girih(&["run", &add, "--verify", "--compare", "eval", "--time"]);
    expect(&o, 0, "");
    let text = out(&o);
    assert!(
        text.contains("verify: ok   `c`") && text.contains("agree in every bit") && text.contains("median"),
        "{text}"
    );
}

#[test]
fn wrong_input_is_exit_1() {
    let lab = Lab::new("input");
    let add = lab.file("add.mlir", ADD);
    let run = |args: &[&str]| lab.girih(&[&["run", &add], args].concat());
    expect(&run(&["--arg", "a=zeros:f32[10]"]), 1, "buffer `a` holds 10 elements, but the kernel reads index");
    expect(&run(&["--arg", "a=zeros:f64[1000]"]), 1, "argument `a` is ptr<f32>, not a buffer of f64");
    expect(&run(&["--arg", "n=f32:1"]), 1, "argument `n` is i32, not the f32 1.0");
    expect(&run(&["--arg", "nn=i32:1"]), 1, "did you mean `n`?");
    expect(&run(&["--arg", "a=missing.npy"]), 1, "missing.npy");
    let bad = lab.file("bad.npy", "nonsense");
    expect(&run(&["--arg", &format!("a={bad}")]), 1, "not a .npy file");
    expect(&lab.girih(&["run", &lab.path("none.mlir")]), 1, "none.mlir");
    expect(&lab.girih(&["check", &lab.path("none.mlir")]), 1, "none.mlir");
    let plain = lab.file("plain.mlir", &ADD.replace("// launch:", "// was:"));
    expect(&lab.girih(&["run", &plain]), 1, "no value is given for a: ptr<f32>, b: ptr<f32>, c: ptr<f32>, n: i32");
    let syntax = lab.file("syntax.mlir", &ADD.replace("addf", "adff"));
    let o = lab.girih(&["check", &syntax]);
    expect(&o, 1, "syntax.mlir");
    let o = lab.girih(&["check", "--json", &syntax]);
    assert!(out(&o).lines().all(|l| l.starts_with('{') && l.contains("\"code\":\"E0")), "{}", out(&o));
    let binary = lab.0.join("binary.mlir");
    std::fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    expect(&lab.girih(&["run", binary.to_str().unwrap()]), 1, "UTF-8");
}

#[test]
fn wrong_usage_is_exit_2() {
    let lab = Lab::new("usage");
    let add = lab.file("add.mlir", ADD);
    let two = lab.file("two.mlir", TWO);
    expect(&lab.girih(&["run"]), 2, "FILE");
    expect(&lab.girih(&["rum", &add]), 2, "run");
    expect(&lab.girih(&["run", &add, "--grid", "0"]), 2, "expected a number of blocks");
    expect(&lab.girih(&["run", &add, "--grid", "1,2,3,4"]), 2, "at most 3");
    expect(&lab.girih(&["run", &add, "--arg", "a"]), 2, "NAME=VALUE");
    expect(&lab.girih(&["run", &add, "--arg", "a=wat"]), 2, "expected an argument");
    expect(&lab.girih(&["run", &add, "--device", "gpu"]), 2, "unknown device");
    expect(&lab.girih(&["run", &add, "--target", "sm_75"]), 2, "unknown target `sm_75`");
    expect(&lab.girih(&["run", &add, "--target", "sm_80"]), 1, "`--device sim --target sm_80` simulates them");
    expect(&lab.girih(&["run", &add, "--target", "sm_80", "--device", "sim", "--compare", "eval"]), 0, "");
    expect(&lab.girih(&["run", &add, "--target", "cpu", "--device", "sim"]), 1, "not of the target cpu");
    expect(&lab.girih(&["compile", &add, "--target", "sm_80", "--ir", "c"]), 1, "the source for sm_80 is CUDA");
    expect(&lab.girih(&["compile", &add, "--ir", "cuda"]), 1, "name one: --target sm_90a");
    expect(&lab.girih(&["compile", &add, "--target", "sm_80", "--ir", "cuda"]), 0, "");
    expect(&lab.girih(&["run", &add, "--save", "n=x.npy"]), 2, "not a buffer");
    expect(&lab.girih(&["compile", &add, "--ir", "llvm"]), 2, "cuda_tile, loop, tile, kernel, c");
    expect(&lab.girih(&["run", &two]), 2, "first, second");
}

#[test]
fn entries_are_chosen_and_suggested() {
    let lab = Lab::new("entries");
    let two = lab.file("two.mlir", TWO);
    for device in ["cpu", "eval"] {
        let o = lab.girih(&["run", &two, "--entry", "second", "--device", device]);
        expect(&o, 0, "");
        assert_eq!(out(&o), "second\n");
    }
    expect(&lab.girih(&["run", &two, "--entry", "frist"]), 1, "did you mean `first`?");
}

#[test]
fn a_trap_is_exit_3() {
    let lab = Lab::new("trap");
    let fails = lab.file("fails.mlir", FAILS);
    for device in ["cpu", "eval"] {
        let o = lab.girih(&["run", &fails, "--device", device]);
        expect(&o, 3, "this is false");
        assert!(err(&o).contains("fails.mlir:4") && err(&o).contains("block 0,0,0"), "{}", err(&o));
    }
    let add = lab.file("add.mlir", ADD);
    let o = lab.girih(&["run", &add, "--arg", "a=zeros:f32[10]", "--check"]);
    expect(&o, 3, "reads index 10 of `a`, which holds 10 elements");
}

#[test]
fn no_compiler_and_broken_compilers() {
    let lab = Lab::new("compilers");
    let add = lab.file("add.mlir", ADD);
    let run = |cc: &str| finish(lab.command(&["run", &add]).env("GIRIH_CC", cc));
    expect(&run("no-such-compiler"), 1, "apt install gcc");
    expect(&run("/bin/false"), 1, "the C compiler failed");
    let o = finish(lab.command(&["run", &add]).env("PATH", lab.path("empty")));
    expect(&o, 1, "--device eval");
    let o = finish(lab.command(&["run", &add, "--device", "eval"]).env("PATH", lab.path("empty")));
    expect(&o, 0, "");
    expect(&finish(lab.command(&["doctor"]).env("GIRIH_CC", "no-such-compiler")), 1, "");
    expect(&lab.girih(&["doctor", "--json"]), 0, "");
    expect(&finish(lab.command(&["run", &add]).env("GIRIH_THREADS", "zero")), 2, "GIRIH_THREADS");
}

#[test]
fn an_unusable_cache_is_a_warning() {
    let lab = Lab::new("nocache");
    let add = lab.file("add.mlir", ADD);
    let file = lab.file("cachefile", "");
    let o = finish(lab.command(&["run", &add]).env("GIRIH_CACHE_DIR", file));
    expect(&o, 0, "W0505");
}

#[test]
fn ctrl_c_is_exit_130_and_leaves_nothing() {
    let lab = Lab::new("interrupt");
    let spins = lab.file("spins.mlir", SPINS);
    for device in ["cpu", "eval"] {
        let args = ["run", &spins, "--grid", "2", "--arg", "flag=zeros:i32[1]", "--device", device];
        let mut command = lab.command(&args);
        let child = command.env("TMPDIR", &lab.0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = Running::new(child.unwrap());
        child.says(0, "runs");
        child.interrupt();
        assert_eq!(child.wait().code(), Some(130), "{device}");
    }
    assert_eq!(lab.names(), ["spins.mlir"]);
}

#[test]
fn ctrl_c_is_ignored_where_whoever_started_the_program_ignores_it() {
    let lab = Lab::new("ignored");
    let spins = lab.file("spins.mlir", SPINS);
    let args = ["run", &spins, "--grid", "2", "--arg", "flag=zeros:i32[1]"];
    let mut command = lab.command(&args);
    let ignore = || {
        // SAFETY: the call may be made between fork and exec.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: as above.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, ignore) };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = Running::new(child.unwrap());
    child.says(0, "runs");
    child.interrupt();
    // An ignored signal is gone once the call that sends it has returned; the next one is not ignored.
    child.signal(libc::SIGTERM);
    assert_eq!(child.wait().code(), Some(143));
}

const COUNTS: &str = r#"cuda_tile.module @m {
  global @count <i32: 5> : tile<1xi32>
  entry @k(%out: tile<ptr<i32>>) {
    %p = get_global @count : tile<ptr<i32>>
    %one = constant <i32: 1> : tile<i32>
    %old, %t = atomic_rmw_tko relaxed device %p, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    %t1 = store_ptr_tko weak %out, %old : tile<ptr<i32>>, tile<i32> -> token
  }
}
"#;

#[test]
fn globals_start_fresh_for_each_run() {
    let lab = Lab::new("globals");
    let counts = lab.file("counts.mlir", COUNTS);
    for device in ["cpu", "eval"] {
        for _ in 0..2 {
            let o = lab.girih(&["run", &counts, "--arg", "out=zeros:i32[1]", "--print", "out", "--device", device]);
            expect(&o, 0, "");
            assert!(out(&o).starts_with("out = [5]"), "{}", out(&o));
        }
    }
    let o = lab.girih(&["run", &counts, "--arg", "out=zeros:i32[1]", "--time", "--compare", "eval"]);
    expect(&o, 0, "");
    assert!(out(&o).contains("agree in every bit"), "{}", out(&o));
}

#[test]
fn the_summary_says_which_version_ran() {
    let lab = Lab::new("version");
    let add = lab.file("add.mlir", ADD);
    let o = lab.girih(&["run", &add, "--json"]);
    assert!(out(&o).contains("\"no_alias\":true") && out(&o).contains("\"no_wrap\":true"), "{}", out(&o));
    let o = lab.girih(&["run", &add, "--json", "--arg", "b=@a", "--arg", "c=@a"]);
    assert!(out(&o).contains("\"no_alias\":false") && out(&o).contains("\"no_wrap\":true"), "{}", out(&o));
}

/// An unbounded loop without an atomic, a long `for`, and a barrier that one block never reaches. Block 0 of the first
/// two says that they run.
const ENDLESS: &str = r#"cuda_tile.module @m {
  entry @plain(%x: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %zero = constant <i32: 0> : tile<i32>
    %first = cmpi equal %bx, %zero, signed : tile<i32> -> tile<i1>
    if %first {
      print_tko "runs\n" -> token
    } else {
      %n = loop iter_values(%i = %zero) : tile<i32> -> tile<i32> {
        %next = addi %i, %one : tile<i32>
        %done = cmpi equal %one, %zero, signed : tile<i32> -> tile<i1>
        if %done { break %next : tile<i32> }
        continue %next : tile<i32>
      }
      %t = store_ptr_tko weak %x, %n : tile<ptr<i32>>, tile<i32> -> token
    }
  }
  entry @nested(%x: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %none = constant <i32: 0> : tile<i32>
    %first = cmpi equal %bx, %none, signed : tile<i32> -> tile<i1>
    %one = constant <i64: 1> : tile<i64>
    %zero = constant <i64: 0> : tile<i64>
    %many = constant <i64: 4000000000000000000> : tile<i64>
    if %first {
      print_tko "runs\n" -> token
    } else {
      for %i in (%zero to %many, step %one) : tile<i64> {
        %v, %t0 = load_ptr_tko weak %x : tile<ptr<i32>> -> tile<i32>, token
        %w = addi %v, %v : tile<i32>
        %t1 = store_ptr_tko weak %x, %w token=%t0 : tile<ptr<i32>>, tile<i32> -> token
      }
    }
  }
  entry @barrier(%x: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %gx, %gy, %gz = get_num_tile_blocks : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %old, %t0 = atomic_rmw_tko acq_rel device %x, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    loop {
      %v, %t1 = load_ptr_tko acquire device %x : tile<ptr<i32>> -> tile<i32>, token
      %all = cmpi greater_than %v, %gx, signed : tile<i32> -> tile<i1>
      if %all { break }
    }
  }
}
"#;

#[test]
fn every_endless_loop_ends_at_ctrl_c() {
    let lab = Lab::new("endless");
    let endless = lab.file("endless.mlir", ENDLESS);
    let stalled = "no block has finished for a while";
    let cases = [("plain", "2", 0, "runs"), ("nested", "2", 0, "runs"), ("barrier", "64", 1, stalled)];
    for device in ["cpu", "eval"] {
        for (entry, grid, pipe, sign) in cases {
            let args =
                ["run", &endless, "--entry", entry, "--grid", grid, "--arg", "x=zeros:i32[1]", "--device", device];
            let mut command = lab.command(&args);
            let child = command.env("TMPDIR", &lab.0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let mut child = Running::new(child.unwrap());
            child.says(pipe, sign);
            if entry == "barrier" {
                child.says(1, "60 more");
            }
            child.interrupt();
            let o = child.output();
            assert_eq!(o.status.code(), Some(130), "{entry} on {device}: {}", err(&o));
            if entry == "barrier" {
                let text = err(&o);
                let line = 1 + ENDLESS.lines().position(|l| l.contains("acquire device")).unwrap();
                assert!(text.contains(&format!("waiting at `load_ptr_tko` on line {line}: blocks [")), "{text}");
            }
        }
    }
    assert_eq!(lab.names(), ["endless.mlir"]);
}

#[test]
fn output_files_appear_whole_or_not_at_all() {
    let lab = Lab::new("whole");
    let add = lab.file("add.mlir", ADD);
    expect(&lab.girih(&["run", &add, "--save", "c=/nonexistent/c.npy"]), 1, "/nonexistent/c.npy");
    let o = lab.girih(&["compile", &add, "--ir", "c", "-o", &lab.path("k.c")]);
    expect(&o, 0, "");
    assert!(std::fs::read_to_string(lab.path("k.c")).unwrap().contains("girih_0"));
    expect(&lab.girih(&["compile", &add, "--dump", &lab.path("stages"), "--knob", "unroll=2"]), 0, "");
    for name in ["1.cuda_tile", "2.loop", "3.tile", "4.kernel", "5.c", "trace"] {
        assert!(Path::new(&lab.path("stages")).join(name).exists(), "{name}");
    }
    let knobs = std::fs::read_to_string(lab.path("stages/knobs")).unwrap();
    assert!(knobs.contains("unroll = 2 (given)\n") && knobs.contains("kc = 256 (default)\n"), "{knobs}");
}

#[test]
fn standard_input_is_a_file() {
    use std::io::Write;
    let lab = Lab::new("stdin");
    let mut child = lab.command(&["run", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(ADD.as_bytes()).unwrap();
    assert!(Running::new(child).wait().success());
}
