//! The command `tileiras` as front ends call it.

use std::path::PathBuf;
use std::process::{Command, Output};

use girih_compiler::cuda_tile::bytecode::{self, Version};

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("girih-tileiras-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }
    fn run(&self, line: &str) -> Output {
        let words = line.split_whitespace();
        Command::new(env!("CARGO_BIN_EXE_tileiras")).args(words).current_dir(&self.0).output().unwrap()
    }
    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn program(version: Version) -> Vec<u8> {
    let text = "cuda_tile.module @kernels { entry @k(%x: tile<ptr<f32>>) { %t = make_token : token } }";
    bytecode::write(girih::Program::from_text(text).unwrap().module(), version).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_program_of_every_version_becomes_a_container() {
    let folder = Folder::new("versions");
    for version in [Version::V13_1, Version::V13_2, Version::V13_3, Version::V13_4] {
        let bytes = program(version);
        folder.write("in.bc", &bytes);
        let output = folder.run("in.bc -o out.cubin --gpu-name sm_120 -O2 --lineinfo");
        assert_eq!(output.status.code(), Some(0), "{version}: {}", stderr(&output));
        assert!(output.stderr.is_empty() && output.stdout.is_empty());
        let container = std::fs::read(folder.0.join("out.cubin")).unwrap();
        let (options, inside) = cuda::container::read(&container).unwrap();
        assert_eq!((options.gpu_name.as_str(), options.opt_level, options.lineinfo), ("sm_120", 2, true));
        assert_eq!(inside, bytes);
    }
    let names: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing else is left behind: {names:?}");
}

#[test]
fn remarks_are_a_file_even_where_there_are_none() {
    let folder = Folder::new("remarks");
    folder.write("in.bc", &program(Version::V13_4));
    let line = "in.bc -o out --gpu-name sm_100 --remark-format=yaml --remarks=all --remarks-output-file=r.yaml";
    assert_eq!(folder.run(line).status.code(), Some(0));
    assert!(folder.has("r.yaml"));
    assert_eq!(folder.run("in.bc -o out --gpu-name sm_100 --remark-format=command-line").status.code(), Some(0));
    assert!(!folder.has("tileir_remarks.yaml"));
}

#[test]
fn failures_say_why_and_write_nothing() {
    let folder = Folder::new("failures");
    let bytes = program(Version::V13_4);
    folder.write("in.bc", &bytes);
    folder.write("cut.bc", &bytes[..bytes.len() - 9]);
    folder.write("other.bc", b"\x7fELF\x02\x01\x01\xff");
    folder.write("bad.mlir", b"cuda_tile.module @m { entry @k() { %a = addi %b, %b : tile<i32> } }");
    for (line, code, says) in [
        ("in.bc -o out --gpu-name sm_75", 1, "sm_75"),
        ("in.bc -o out", 2, "--gpu-name"),
        ("in.bc -o out --gpu-name sm_80 -O7", 2, "'7'"),
        ("in.bc -o out --gpu-name sm_80 --no-such", 1, "--no-such"),
        ("none.bc -o out --gpu-name sm_80", 1, "none.bc"),
        ("other.bc -o out --gpu-name sm_80", 3, "error: input does not correspond"),
        ("cut.bc -o out --gpu-name sm_80", 5, "error: "),
        ("bad.mlir -o out --gpu-name sm_80", 5, "error: "),
        ("in.bc -o nowhere/out --gpu-name sm_80", 5, "nowhere/out"),
    ] {
        let output = folder.run(line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{line}: {}", stderr(&output));
        assert!(!folder.has("out"), "{line}");
    }
}

#[test]
fn an_error_names_the_place_in_the_users_file() {
    let folder = Folder::new("places");
    let text = "cuda_tile.module @m { entry @k(%x: tile<i32>) {
        %a = addi %x, %x : tile<i32> loc(\"kernel.py\":12:5)
        %b = addf %a, %a : tile<i32> loc(\"kernel.py\":13:7)
    } }";
    folder.write("bad.mlir", text.as_bytes());
    let output = folder.run("bad.mlir -o out --gpu-name sm_80");
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).starts_with("loc(\"kernel.py\":13:7): error: "), "{}", stderr(&output));
}

#[test]
fn what_it_says_of_itself() {
    let folder = Folder::new("self");
    let text = |line: &str| String::from_utf8(folder.run(line).stdout).unwrap();
    assert_eq!(text("--list-versions"), "13.1\n13.2\n13.3\n13.4\n13.5\n");
    assert!(text("--version").contains("release 13.5"));
    let help = text("--help");
    assert!(help.contains("--gpu-name") && help.contains("-O") && help.contains("sm_121"));
}
