//! `girih build`: libraries that a C program calls give the bits of `girih run`; what is refused, and what is left behind.

use crate::lab;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lab::{ADD, GATE, Lab, Running, SPINS, TWO, err, expect, finish, out};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the gate on `rows` of the file's floats on one thread, then on two workers, and prints both results' bytes.
const GATE_C: &str = r#"#include "gate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void in_turns(void *user, int64_t blocks, void (*body)(void *, unsigned, int64_t, int64_t), void *step) {
  (void)user;
  for (int64_t block = blocks; block-- > 0;) body(step, block % 2, block, block + 1);
}

int main(int argc, char **argv) {
  int64_t rows = argc > 2 ? atoi(argv[2]) : 0;
  const void *weights = gate_map("gate.weights");
  if (!weights) return perror("gate.weights"), 1;
  if (gate_map("gate.h")) return 1;
  float *x = calloc(rows + 1, 64 * sizeof *x), *y = calloc(2 * rows + 1, 32 * sizeof *y);
  FILE *in = fopen(argv[1], "rb");
  if (!in || fseek(in, 128, SEEK_SET) || fread(x, 256, rows, in) != (size_t)rows) return perror(argv[1]), 1;
  const gate_threads threads = {2, in_turns, 0};
  void *arena = malloc(gate_arena(2, rows) + 1);
  int result = gate_run(weights, arena, rows, x, y);
  if (!result) result = gate_run_on(&threads, weights, arena, rows, x, y + 32 * rows);
  if (result) return fprintf(stderr, "%s\n", gate_message(result)), 3;
  fwrite(y, 128, 2 * rows, stdout);
  gate_unmap(weights);
  return 0;
}
"#;

/// Compiles a program against a library, without a word from the compiler.
#[track_caller]
fn compiled(folder: &str, name: &str, main: &str) -> String {
    std::fs::write(Path::new(folder).join("main.c"), main).unwrap();
    let library = format!("lib{name}.a");
    let o = cc(folder, &["-O1", "-Wall", "-Wextra", "-Werror", "-std=c11", "main.c", &library, "-lm", "-o", "main"]);
    assert!(o.status.success(), "{}", err(&o));
    format!("{folder}/main")
}

fn cc(folder: &str, args: &[&str]) -> Output {
    finish(Command::new("cc").args(args).current_dir(folder))
}

/// The elements of a file of NumPy's whose header has 128 bytes.
fn elements(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap().split_off(128)
}

#[test]
fn a_model_with_a_symbolic_length_gives_the_bits_of_a_run() {
    let lab = Lab::new("build-gate");
    let (gate, dir) = (lab.file("gate.json", GATE), lab.path("gate"));
    let w = format!("w={}", lab.path("w.npy"));
    expect(&lab.girih(&["run", "-c", "torch.randn(32, 64)", "--save", &format!("out={}", lab.path("w.npy"))]), 0, "");
    let o = lab.girih(&["build", &gate, "--arg", &w, "-o", &dir]);
    expect(&o, 0, "");
    assert!(out(&o).ends_with(&format!("build: cc main.c -I{dir} {dir}/libgate.a -lm\n")), "{}", out(&o));
    let header = std::fs::read_to_string(lab.path("gate/gate.h")).unwrap();
    assert!(header.contains("//   rows    rows, from 1 to 4096\n"), "{header}");
    let main = compiled(&dir, "gate", GATE_C);
    for rows in ["1", "3", "64", "201"] {
        let (x, y) = (lab.path("x.npy"), lab.path("y.npy"));
        let model = format!("torch.randn({rows}, 64)");
        expect(&lab.girih(&["run", "-c", &model, "--seed", rows, "--save", &format!("out={x}")]), 0, "");
        let run = ["run", &gate, "--arg", &w, "--arg", &format!("x={x}"), "--save", &format!("y={y}")];
        expect(&lab.girih(&run), 0, "");
        let o = finish(Command::new(&main).args([&x, rows]).current_dir(&dir));
        expect(&o, 0, "");
        let want = elements(&y);
        assert!(o.stdout == [&want[..], &want].concat(), "{rows} rows differ");
    }
    let o = finish(Command::new(&main).args([&lab.path("w.npy"), "0"]).current_dir(&dir));
    expect(&o, 3, "an extent is out of its range");
}

#[test]
fn the_source_compiles_without_a_word_and_is_the_same_again() {
    let lab = Lab::new("build-source");
    let gate = lab.file("gate.json", GATE);
    let softmax = "torch.softmax(torch.randn(8, 130), -1)";
    let add = lab.file("add.mlir", ADD);
    let all: [&[&str]; 3] = [&[&gate, "--arg", "w=ones:f32[32x64]"], &["-c", softmax], &[&add]];
    for (n, what) in all.iter().enumerate() {
        let dirs = [lab.path(&format!("a{n}")), lab.path(&format!("b{n}"))];
        for dir in &dirs {
            expect(&lab.girih(&[&["build", "--name", "lib", "-o", dir], *what].concat()), 0, "");
        }
        let files: Vec<_> = std::fs::read_dir(&dirs[0]).unwrap().map(|f| f.unwrap().file_name()).collect();
        assert!(files.len() >= 4, "{files:?}");
        for file in files {
            let [a, b] = dirs.each_ref().map(|d| std::fs::read(Path::new(d).join(&file)).unwrap());
            assert!(a == b, "{file:?} differs");
        }
        let source = std::fs::read_to_string(format!("{}/lib.c", dirs[0])).unwrap();
        let command = source.lines().next().unwrap().strip_prefix("// cc ").unwrap();
        let flags: Vec<&str> = command.split(' ').collect();
        let o = cc(&dirs[0], &[&flags[..], &["-Wall", "-Wextra", "-Werror", "-o", "again.o"]].concat());
        assert!(o.status.success() && err(&o).is_empty(), "{}", err(&o));
        // Nothing but the library's own functions can be seen from outside.
        let o = finish(Command::new("nm").args(["-g", "--defined-only", "liblib.a"]).current_dir(&dirs[0]));
        let seen: Vec<String> = out(&o).lines().filter_map(|l| l.split(' ').nth(2).map(String::from)).collect();
        assert!(seen.iter().all(|name| name.starts_with("lib_")) && !seen.is_empty(), "{seen:?}");
    }
}

/// Adds arrays, apart, in place and shifted into each other, and prints the last element each time.
const ADD_C: &str = r#"#include "add.h"
#include <stdio.h>

int main(void) {
  static float a[1010], b[1010], c[1010];
  static _Alignas(64) char scratch[ADD_RUN_SCRATCH + 1];
  const uint32_t grid[3] = {4, 1, 1};
  if (ADD_RUN_SCRATCH) puts(add_message(add_run(0, grid, a, 0, b, 0, c, 0, 1000)));
  for (int known = 0; known < 2; known++) {
    size_t n = known * 4000;
    for (int i = 0; i < 1010; i++) a[i] = i, b[i] = 1, c[i] = 0;
    if (add_run(scratch, grid, a, n, b, n, c, n, 1000)) return 1;
    printf("%g %g\n", c[999], c[1000]);
    if (add_run(scratch, grid, c, n, b, n, c, n, 1000)) return 1;
    printf("%g\n", c[999]);
  }
  return 0;
}
"#;

#[test]
fn a_tile_program_runs_on_arrays_apart_and_in_place() {
    let lab = Lab::new("build-add");
    let (add, dir) = (lab.file("add.mlir", ADD), lab.path("add"));
    // Environment variables about runs do not apply to a library.
    let runs = [("GIRIH_CHECK", "1"), ("GIRIH_DEVICE", "sim")];
    expect(&finish(lab.command(&["build", &add, "-o", &dir]).envs(runs)), 0, "");
    let main = compiled(&dir, "add", ADD_C);
    let o = finish(&mut Command::new(main));
    expect(&o, 0, "");
    assert_eq!(out(&o), format!("{MISSING}{}", "1000 0\n1001\n".repeat(2)));
}

const MISSING: &str = "there is no arena, or no scratch memory\n";

#[test]
fn kernels_that_trap_say_so() {
    let lab = Lab::new("build-trap");
    let text = r#"cuda_tile.module @m {
  entry @k(%n: tile<i32>) {
    %three = constant <i32: 3> : tile<i32>
    %less = cmpi less_than %n, %three, signed : tile<i32> -> tile<i1>
    assert %less, "n is \"too\" large?\n" : tile<i1>
  }
}
"#;
    let (file, dir) = (lab.file("k.mlir", text), lab.path("k"));
    expect(&lab.girih(&["build", &file, "-o", &dir]), 0, "");
    let main = "#include \"k.h\"\n#include <stdio.h>\nint main(void) {\n  const uint32_t grid[3] = {2, 1, 1};\n  \
                printf(\"%d \", k_run(0, grid, 2));\n  printf(\"%s\", k_message(k_run(0, grid, 3)));\n  return 0;\n}\n";
    let o = finish(&mut Command::new(compiled(&dir, "k", main)));
    assert_eq!(out(&o), "0 assertion failed: n is \"too\" large?\n, in k");
}

/// Values that a kernel writes to a global stay there, for the other entry too.
#[test]
fn globals_keep_what_is_written() {
    let lab = Lab::new("build-global");
    let entry = |name: &str, step: i32| {
        format!(
            "entry @{name}(%out: tile<ptr<i32>>) {{
    %p = get_global @count : tile<ptr<i32>>
    %step = constant <i32: {step}> : tile<i32>
    %v, %t0 = load_ptr_tko weak %p : tile<ptr<i32>> -> tile<i32>, token
    %w = addi %v, %step : tile<i32>
    %t1 = store_ptr_tko weak %p, %w token = %t0 : tile<ptr<i32>>, tile<i32> -> token
    %t2 = store_ptr_tko weak %out, %w : tile<ptr<i32>>, tile<i32> -> token
  }}"
        )
    };
    let global = "global @count alignment = 16 <i32: [5]> : tile<1xi32>";
    let text = format!("cuda_tile.module @m {{\n  {global}\n  {}\n  {}\n}}\n", entry("one", 1), entry("ten", 10));
    let (file, dir) = (lab.file("counts.mlir", &text), lab.path("counts"));
    expect(&lab.girih(&["build", &file, "-o", &dir]), 0, "");
    let main = "#include \"counts.h\"\n#include <stdio.h>\nint main(void) {\n  const uint32_t grid[3] = {1, 1, 1};\n  int32_t x;\n  \
                static _Alignas(64) char scratch[COUNTS_ONE_SCRATCH + COUNTS_TEN_SCRATCH + 1];\n  \
                printf(\"%d \", counts_one(scratch, grid, &x) ? 0 : x);\n  \
                printf(\"%d \", counts_ten(scratch, grid, &x) ? 0 : x);\n  \
                printf(\"%d\", counts_one(scratch, grid, &x) ? 0 : x);\n  return 0;\n}\n";
    let o = finish(&mut Command::new(compiled(&dir, "counts", main)));
    assert_eq!(out(&o), "6 16 17");
}

#[test]
fn what_cannot_be_built_is_refused_and_leaves_nothing() {
    let lab = Lab::new("build-bad");
    let (add, two, spins) = (lab.file("add.mlir", ADD), lab.file("two.mlir", TWO), lab.file("spins.mlir", SPINS));
    let (gate, bad) = (lab.file("gate.json", GATE), lab.file("bad.mlir", "cuda_tile.module @m {"));
    let onnx = lab.file("bad.onnx", "nothing");
    let dir = lab.path("out");
    let before = lab.names();
    let build = |args: &[&str]| lab.girih(&[&["build", "-o", &dir], args].concat());
    for (args, code, text) in [
        (&[&add, "--target", "sm_75"][..], 2, "unknown target `sm_75`; "),
        (&[&add, "--cpu", "x86-64-v9"], 2, "unknown processor `x86-64-v9`; did you mean `x86-64-v"),
        (&[&add, "--cpu", "baseline", "--target", "sm_80"], 2, "--cpu is for the target cpu"),
        (&[&add, "--name", "my-lib"], 2, "did you mean `my_lib`?"),
        (&[&add, "--name", "int"], 2, "expected an identifier of C"),
        (&[&add, "--name", ""], 2, "expected an identifier of C"),
        (&[&add, "--entry", "ad"], 2, "unknown entry `ad`; did you mean `add`?"),
        (&[&add, "--arg", "n=i32:3"], 2, "--arg n: arguments of a kernel are those of the library's functions"),
        (&[&add, "--check"], 2, "--check"),
        (&[&add, "--grid", "4"], 2, "--grid"),
        (&[&two], 1, "prints"),
        (&[&spins], 1, "prints"),
        (&[&bad], 1, "error"),
        (&[&onnx], 1, "not an ONNX model"),
        (&[&gate], 1, "input `w` is not given"),
        (&[&gate, "--arg", "w=ones:f32[32x65]"], 1, "input `w` has shape [32, 65], not [32, 64]"),
        (&[&gate, "--arg", "v=ones:f32[32x65]"], 1, "the model has no input `v`"),
        (&[&gate, "--arg", "rows=3"], 2, "--arg rows: extents are arguments of the library's functions"),
        (&[&gate, "--entry", "k"], 2, "--entry works with tile programs only"),
        (&["-c", "torch.softmax(x, -1)"], 1, "x"),
        (&["-c", "torch.nosuch(1)"], 1, "nosuch"),
        (&["no-such.onnx"], 1, "no-such.onnx: cannot be read"),
        (&[&gate, "--arg", "w=ones:f32[32x64]", "--max-memory", "1K"], 1, ", more than the limit of 1"),
        (
            &["-c", "torch.randn(300000, 300000) @ torch.randn(300000, 9)", "--max-memory", "2M"],
            1,
            ", more than the limit of 2",
        ),
        (
            &["-c", "torch.randn(300000, 9) @ torch.randn(9, 300000)", "--target", "sm_90a", "--max-memory", "80G"],
            1,
            "the model's weights, temporary arrays and results take ",
        ),
        (&[], 2, "required"),
    ] {
        let o = build(args);
        expect(&o, code, text);
        assert_eq!(lab.names(), before, "{args:?}");
    }
    expect(&lab.girih(&["build", &add]), 2, "-o");
    let o = finish(lab.command(&["build", &add, "-o", &dir]).env("CC", "no-such-compiler"));
    expect(&o, 1, "no C compiler was found (tried no-such-compiler)");
    let o = finish(lab.command(&["build", &add, "-o", &dir]).env("AR", "no-such-ar"));
    expect(&o, 1, "`no-such-ar` was not found");
    assert_eq!(lab.names(), before);
}

#[test]
fn a_folder_is_written_whole_and_only_builds_are_replaced() {
    let lab = Lab::new("build-folder");
    let (add, gate, dir) = (lab.file("add.mlir", ADD), lab.file("gate.json", GATE), lab.path("out"));
    let build = |args: &[&str]| lab.girih(&[&["build", "-o", &dir], args].concat());
    let names = || {
        let mut names: Vec<String> =
            std::fs::read_dir(&dir).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    expect(&lab.girih(&["build", &add, "-o", &lab.path("no/such")]), 1, "no does not exist");
    expect(&lab.girih(&["build", &add, "-o", &add]), 1, "cannot be used as a folder");
    // An empty folder gives way.
    std::fs::create_dir(&dir).unwrap();
    let o = build(&[&add, "--json"]);
    expect(&o, 0, "");
    assert_eq!(names(), ["add.c", "add.h", "build.json", "libadd.a"]);
    for part in ["\"name\":\"add\"", "\"target\":\"cpu\"", "\"path\":\"add.c\"", "\"blake3\":\"", "\"bytes\":"] {
        assert!(out(&o).contains(part), "{part} in {}", out(&o));
    }
    expect(
        &build(&[&add]),
        1,
        "it is not empty; name another folder, or replace what a build wrote there with --force",
    );
    // A user's file stays, beside a build of other names.
    std::fs::write(format!("{dir}/main.c"), "mine").unwrap();
    let w = ["--arg", "w=ones:f32[32x64]", "--force"];
    expect(&build(&[&[&gate[..]], &w[..]].concat()), 0, "");
    assert_eq!(names(), ["build.json", "gate.c", "gate.h", "gate.weights", "libgate.a", "main.c"]);
    // A file that was changed since is not replaced, nor is a foreign file in its place.
    std::fs::write(format!("{dir}/gate.h"), "changed").unwrap();
    expect(&build(&[&[&gate[..]], &w[..]].concat()), 1, "gate.h: it was changed since it was built");
    std::fs::remove_file(format!("{dir}/gate.h")).unwrap();
    std::fs::write(format!("{dir}/add.h"), "mine").unwrap();
    expect(&build(&[&add, "--force"]), 1, "add.h: no build wrote this file");
    assert_eq!(std::fs::read_to_string(format!("{dir}/add.h")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(format!("{dir}/main.c")).unwrap(), "mine");
    std::fs::remove_file(format!("{dir}/build.json")).unwrap();
    expect(&build(&[&add, "--force"]), 1, "it holds files that no build wrote");
    assert_eq!(lab.names(), ["add.mlir", "gate.json", "out"]);
}

#[test]
fn a_full_disk_leaves_no_folder() {
    let lab = Lab::new("build-full");
    let add = lab.file("add.mlir", ADD);
    // No file may have more bytes than the smallest of the library.
    let girih = env!("CARGO_BIN_EXE_girih");
    let script = format!("trap '' XFSZ; ulimit -f 2; '{girih}' build '{add}' -o '{}'", lab.path("out"));
    let o = finish(Command::new("bash").args(["-c", &script]).env("GIRIH_CACHE_DIR", lab.path("cache")));
    assert_eq!(o.status.code(), Some(1), "{}{}", out(&o), err(&o));
    assert_eq!(lab.names(), ["add.mlir"]);
}

#[test]
fn ctrl_c_leaves_nothing() {
    let lab = Lab::new("build-interrupt");
    let add = lab.file("add.mlir", ADD);
    // A compiler that says when it begins, and takes its time.
    let slow =
        lab.file("slow", "#!/bin/sh\ncase \"$*\" in *' -c '*) echo begins >&2; sleep 1000;; esac\nexec cc \"$@\"\n");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&slow, std::fs::Permissions::from_mode(0o755)).unwrap();
    let told = lab.path("told");
    let script = std::fs::read_to_string(&slow).unwrap().replace("echo begins >&2", &format!("echo begins > '{told}'"));
    std::fs::write(&slow, script).unwrap();
    let mut command = lab.command(&["build", &add, "-o", &lab.path("out")]);
    command.env("GIRIH_CC", &slow).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut running = Running::new(command.spawn().unwrap());
    lab::until("the compiler begins", || Path::new(&told).exists());
    running.interrupt();
    expect(&running.output(), 130, "interrupted");
    assert_eq!(lab.names(), ["add.mlir", "slow", "told"]);
}

#[test]
fn other_processors_have_libraries_too() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let lab = Lab::new("build-cpu");
    let (add, dir) = (lab.file("add.mlir", ADD), lab.path("add"));
    expect(&lab.girih(&["build", &add, "-o", &dir, "--cpu", "baseline"]), 0, "");
    let source = std::fs::read_to_string(format!("{dir}/add.c")).unwrap();
    assert!(!source.lines().next().unwrap().contains(" -mavx") && source.contains("f32x4"), "{source}");
    let o = finish(&mut Command::new(compiled(&dir, "add", ADD_C)));
    assert!(out(&o).ends_with(&"1000 0\n1001\n".repeat(2)), "{}", out(&o));
    let wide = lab.path("wide");
    expect(&lab.girih(&["build", &add, "-o", &wide, "--cpu", "x86-64-v4"]), 0, "");
    let source = std::fs::read_to_string(format!("{wide}/add.c")).unwrap();
    assert!(source.lines().next().unwrap().contains(" -mavx512f ") && source.contains("f32x16"), "{source}");
}

/// Runs the commands of the page and compares their output, numbers of bytes aside.
#[test]
fn the_page_shows_what_happens() {
    let lab = Lab::new("build-page");
    std::os::unix::fs::symlink(root().join("examples"), lab.path("examples")).unwrap();
    let page = std::fs::read_to_string(root().join("docs/build.md")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_girih")).parent().unwrap().to_str().unwrap();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let mut ran = 0;
    for block in page.split("\n```").skip(1).step_by(2) {
        let (kind, text) = block.split_once('\n').unwrap();
        if let Some(file) = text.lines().next().and_then(|l| l.strip_prefix("// ")).filter(|_| kind == "c") {
            std::fs::write(lab.path(file), text).unwrap();
        }
        let text = format!("\n{text}");
        for step in text.split("\n$ ").skip(1).filter(|_| kind == "console") {
            let (command, shown) = step.split_once('\n').unwrap();
            let o = finish(lab.shell(command).current_dir(&lab.0).env("PATH", &path));
            expect(&o, 0, "");
            let plain = |text: &str| -> Vec<String> {
                let words = |l: &str| l.split_whitespace().filter(|w| !is_size(w)).collect::<Vec<_>>().join(" ");
                // The machine code is there where its compiler is.
                text.trim_end().lines().filter(|l| !l.contains(".cubin ")).map(words).collect()
            };
            assert_eq!(plain(&out(&o)), plain(shown), "{command}");
            ran += 1;
        }
    }
    assert_eq!(ran, 5);
}

fn is_size(word: &str) -> bool {
    word.parse::<u64>().is_ok() || ["B", "KiB", "MiB"].contains(&word)
}
