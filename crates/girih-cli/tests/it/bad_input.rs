//! Errors around a program: launches, files, folders, compilers, other processes. Each with its exit code and
//! the words that tell a user what to do. (What can be wrong in a text: tests/diagnostics.)

use crate::lab;

use std::path::Path;
use std::process::Stdio;

use lab::{ADD, Lab, Running, TWO, err, expect, finish, out, until};

/// Reads an address out of memory, so that no compiler can know it, and follows it.
const WILD: &str = r#"cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>, %q: tile<ptr<i64>>) {
    %far = constant <i64: 1099511627776> : tile<i64>
    %one, %t = load_ptr_tko weak %q : tile<ptr<i64>> -> tile<i64>, token
    %i = muli %one, %far : tile<i64>
    %at = offset %p, %i : tile<ptr<f32>>, tile<i64> -> tile<ptr<f32>>
    %v, %u = load_ptr_tko weak %at : tile<ptr<f32>> -> tile<f32>, token
    %w = store_ptr_tko weak %p, %v : tile<ptr<f32>>, tile<f32> -> token
  }
}
"#;

/// An executable shell script.
fn script(lab: &Lab, name: &str, body: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = lab.file(name, &format!("#!/bin/sh\n{body}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn grids_and_blocks_out_of_range() {
    let lab = Lab::new("grids");
    let add = lab.file("add.mlir", ADD);
    for grid in ["0", "-1", "16777216", "4294967297", "99999999999999999999", "1.5", "", "1,", "a", "1,2,3,4"] {
        expect(&lab.girih(&["run", &add, "--grid", grid]), 2, "--grid");
    }
    for device in ["cpu", "eval"] {
        let o = lab.girih(&["run", &add, "--grid", "16777215,16777215,16777215", "--device", device]);
        expect(&o, 1, "E0403");
        expect(&lab.girih(&["run", &add, "--block", "0,1,0", "--device", device]), 1, "lies outside the grid 4,1,1");
    }
    expect(&lab.girih(&["run", &add, "--block", "-1"]), 2, "expected a block number");
    expect(&lab.girih(&["run", &add, "--threads", "0"]), 2, "1 to 1024");
    let comment = lab.file("comment.mlir", &ADD.replace("grid=4", "grid=0"));
    expect(&lab.girih(&["run", &comment]), 1, "the launch comment on line 2");
}

#[test]
fn misspelt_flags_name_what_there_is() {
    let lab = Lab::new("misspelt");
    let add = lab.file("add.mlir", ADD);
    let two = lab.file("two.mlir", TWO);
    expect(&lab.girih(&["compile", &add, "--ir", "tile", "--knob", "unrol=2"]), 2, "did you mean `unroll`?");
    expect(&lab.girih(&["compile", &add, "--ir", "tile", "--knob", "zzzzzz=2"]), 2, "the knobs are rows,");
    expect(&lab.girih(&["compile", &add, "--ir", "tile", "--knob", "unroll=999"]), 2, "must be from 0 to 64");
    expect(&lab.girih(&["compile", &add, "--ir", "lop"]), 2, "cuda_tile, loop, tile, kernel, c");
    expect(&lab.girih(&["compile", &add]), 2, "--ir cuda_tile, loop, tile, kernel or c");
    expect(&lab.girih(&["run", &add, "--print", "d"]), 1, "the parameters are a, b, c, n");
    expect(&lab.girih(&["run", &add, "--save", "d=d.npy"]), 1, "no parameter `d`");
    expect(&lab.girih(&["run", &add, "--print", "n"]), 2, "`n` is not a buffer");
    expect(&lab.girih(&["run", &two]), 2, "choose one with --entry: first, second");
    expect(&lab.girih(&["compile", &two, "--ir", "c"]), 2, "choose one with --entry: first, second");
    expect(&lab.girih(&["rules", "nothing"]), 1, "the rules are");
    expect(&lab.girih(&["rules", "rms_nrom"]), 1, "did you mean `rms_norm`?");
    expect(&lab.girih(&["rules", "stage_input"]), 1, "did you mean `stage_inputs`?");
    expect(&lab.girih(&["rules", "aten.rms_nrom"]), 1, "did you mean `aten.rms_norm`?");
}

#[test]
fn files_that_are_no_programs() {
    let lab = Lab::new("files");
    let folder = lab.path("folder.mlir");
    std::fs::create_dir(&folder).unwrap();
    let empty = lab.file("empty.mlir", "");
    let binary = lab.path("binary.mlir");
    std::fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    let missing = lab.path("missing.mlir");
    for command in ["run", "check", "fmt"] {
        expect(&lab.girih(&[command, &folder]), 1, "E0503");
        expect(&lab.girih(&[command, &empty]), 1, "E0107");
        expect(&lab.girih(&[command, &binary]), 1, "neither tile bytecode nor UTF-8 text");
        expect(&lab.girih(&[command, &missing]), 1, "missing.mlir: cannot be read: No such file");
        // Standard input is /dev/null here.
        expect(&lab.girih(&[command, "-"]), 1, "<stdin>:1:1");
    }
    // One bad file does not hide the others.
    let o = lab.girih(&["check", &missing, &binary, &empty]);
    expect(&o, 1, "E0107");
    assert!(err(&o).contains("missing.mlir") && err(&o).contains("UTF-8"), "{}", err(&o));
}

#[test]
fn arrays_that_cannot_be_read() {
    let lab = Lab::new("arrays");
    let add = lab.file("add.mlir", ADD);
    let header = |version: u8, text: &str, data: usize| {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    };
    let path = lab.path("a.npy");
    let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }\n";
    for (bytes, needle) in [
        (vec![], "too short"),
        (b"PK\x03\x04 an archive".to_vec(), "not a .npy file"),
        (header(9, good, 4000), "version 9"),
        (header(1, good, 3999), "3999 bytes"),
        (header(1, &good[..20], 4000), "header"),
        (header(1, &good.replace("<f4", "|O"), 4000), "'|O' is not supported"),
        (header(1, &good.replace("'<f4'", "[('x', '<f4')]"), 4000), "structured"),
        (header(1, &good.replace("1000", "99999999999999999999"), 0), "bad shape"),
        (header(1, &good.replace("1000", "4294967296, 4294967296"), 0), "too large"),
        (header(1, &good.replace("1000", "-1000"), 4000), "bad shape"),
        (header(1, "\u{0}\u{1}", 0), "header"),
        (header(1, &good.replace("<f4", "<f8"), 8000), "not a buffer of f64"),
        (header(1, &good.replace("1000", "10"), 40), "holds 10 elements"),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        expect(&lab.girih(&["run", &add, "--arg", &format!("a={path}")]), 1, needle);
    }
    std::fs::write(&path, header(1, good, 4000)).unwrap();
    expect(&lab.girih(&["run", &add, "--arg", &format!("a={path}")]), 0, "");
}

#[test]
fn results_that_cannot_be_written() {
    let lab = Lab::new("outputs");
    let add = lab.file("add.mlir", ADD);
    // Said before the run, not after it.
    let save = format!("c={}", lab.path("none/c.npy"));
    let o = lab.girih(&["run", &add, "--save", &save, "--print", "c"]);
    expect(&o, 1, "does not exist");
    assert_eq!(out(&o), "");
    expect(&lab.girih(&["run", &add, "--save", &format!("c={}", lab.0.display())]), 1, "Is a directory");
    expect(&lab.girih(&["compile", &add, "--ir", "c", "-o", &lab.path("none/k.c")]), 1, "cannot be written");
    expect(&lab.girih(&["compile", &add, "--dump", &add]), 1, "cannot be made");
    if std::path::Path::new("/dev/full").exists() {
        expect(&lab.girih(&["run", &add, "--save", "c=/dev/full"]), 1, "No space left");
        expect(&lab.girih(&["compile", &add, "--ir", "c", "-o", "/dev/full"]), 1, "No space left");
    }
    let left: Vec<_> = std::fs::read_dir(&lab.0).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(left.iter().all(|n| n == "add.mlir" || n == "cache"), "{left:?}");
}

#[test]
fn compilers_that_do_not_compile() {
    let lab = Lab::new("compile");
    let add = lab.file("add.mlir", ADD);
    let run = |cc: &str| finish(lab.command(&["run", &add]).env("GIRIH_CC", cc));
    expect(&run("/bin/true"), 1, "wrote no object file");
    expect(&run("cc -fnonsense"), 1, "-fnonsense");
    expect(&run(lab.0.to_str().unwrap()), 1, "E0502");
    let garbage = "for f in \"$@\"; do [ \"$last$f\" != -o- ] && [ \"$last\" = -o ] && echo garbage > \"$f\"; last=$f; done; true";
    expect(&run(&script(&lab, "garbage", garbage)), 1, "E0504");
}

/// A compiler that leaves a file and never ends, and a process of its own that does not either.
fn never_ends(lab: &Lab, on: &str) -> (String, String) {
    let mark = lab.path("started");
    let forever =
        format!("echo half > \"$TMPDIR/half.s\"; sleep 3600 & echo $! > {mark}.new; mv {mark}.new {mark}; wait");
    let body = format!("case \"$*\" in *{on}*) {forever};; esac\nexec cc \"$@\"");
    (script(lab, "slow", &body), mark)
}

fn is_there(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[test]
fn ctrl_c_ends_a_slow_compiler_and_leaves_nothing_of_it() {
    // While it compiles, and while it is asked which flags it takes.
    for on in ["-shared", "-Werror"] {
        let lab = Lab::new("slow");
        let add = lab.file("add.mlir", ADD);
        let (slow, mark) = never_ends(&lab, on);
        let temporary = lab.path("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let mut command = lab.command(&["run", &add]);
        command.env("GIRIH_CC", slow).env("TMPDIR", &temporary).stderr(Stdio::piped());
        let mut child = Running::new(command.spawn().unwrap());
        until("the compiler is called", || Path::new(&mark).exists());
        let inner = std::fs::read_to_string(&mark).unwrap();
        child.interrupt();
        assert_eq!(child.wait().code(), Some(130));
        // Neither a kernel nor a half of one is left, nor the compiler's own files and processes.
        let left: Vec<_> = std::fs::read_dir(lab.path("cache/v1")).unwrap().map(|f| f.unwrap().path()).collect();
        assert!(left.iter().all(|p| p.is_file()), "{left:?}");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
        if cfg!(target_os = "linux") {
            until("the compiler's process ends", || !is_there(&inner));
        }
    }
}

#[test]
fn what_a_killed_run_left_of_its_compiler_goes_with_the_next() {
    let lab = Lab::new("killed");
    let add = lab.file("add.mlir", ADD);
    let (slow, mark) = never_ends(&lab, "-shared");
    let temporary = lab.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = lab.command(&["run", &add]);
    command.env("GIRIH_CC", slow).env("TMPDIR", &temporary).stderr(Stdio::null());
    let mut child = Running::new(command.spawn().unwrap());
    until("the compiler is called", || Path::new(&mark).exists());
    child.signal(libc::SIGKILL);
    child.wait();
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1);
    expect(&finish(lab.command(&["run", &add]).env("TMPDIR", &temporary)), 0, "");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    // Nobody told the compiler itself.
    let inner: i32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
    // SAFETY: the number is that of a process which sleeps.
    unsafe { libc::kill(inner, libc::SIGKILL) };
}

#[test]
fn processes_that_compile_the_same_kernel_at_once() {
    let lab = Lab::new("race");
    let add = lab.file("add.mlir", ADD);
    let start = || {
        let mut c = lab.command(&["run", &add, "--print", "c"]);
        c.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..6).map(|_| Running::new(start())).collect();
    let outputs: Vec<_> = children.into_iter().map(Running::output).collect();
    for o in &outputs {
        expect(o, 0, "");
        assert_eq!(err(o), "");
        assert!(out(o).starts_with("c = [1.0, 2.0, 3.0"), "{}", out(o));
    }
    assert!(out(&lab.girih(&["cache", "info"])).contains("kernels  1"));
}

#[test]
fn caches_that_cannot_be_used() {
    let lab = Lab::new("caches");
    let add = lab.file("add.mlir", ADD);
    let file = lab.file("file", "");
    let at = |args: &[&str], dir: &str| finish(lab.command(args).env("GIRIH_CACHE_DIR", dir));
    for dir in [&file[..], "/dev/null/x"] {
        expect(&at(&["run", &add], dir), 0, "name a folder that can be written in GIRIH_CACHE_DIR");
        expect(&at(&["cache", "info"], dir), 1, "is not used");
    }
    // An entry that was damaged is compiled again.
    expect(&lab.girih(&["run", &add]), 0, "");
    let entry =
        std::fs::read_dir(lab.path("cache/v1")).unwrap().map(|f| f.unwrap().path()).find(|p| p.is_dir()).unwrap();
    std::fs::write(entry.join("k.so"), "damaged").unwrap();
    let o = lab.girih(&["run", &add, "--print", "c"]);
    expect(&o, 0, "");
    assert!(out(&o).starts_with("c = [1.0, 2.0"), "{}", out(&o));
}

#[test]
fn a_wild_access_is_explained() {
    let lab = Lab::new("wild");
    let wild = lab.file("wild.mlir", WILD);
    let run = |more: &[&str]| {
        lab.girih(&[&["run", &wild, "--arg", "p=zeros:f32[1]", "--arg", "q=ones:i64[1]"], more].concat())
    };
    expect(&run(&[]), 3, "`--check` says which operation");
    for more in [&["--check"][..], &["--device", "eval"]] {
        let o = run(more);
        expect(&o, 3, "E0603");
        assert!(err(&o).contains("wild.mlir:7:14"), "{}", err(&o));
    }
}
