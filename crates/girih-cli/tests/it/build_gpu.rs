//! `girih build` for GPUs: what the emitted C tells the driver; and that names of users decide nothing in it, for CPUs
//! neither.

use crate::lab;

use std::path::Path;
use std::process::{Command, Output};

use lab::{ADD, GATE, Lab, err, expect, finish, out};

fn cc(folder: &str, args: &[&str]) -> Output {
    finish(Command::new("cc").args(args).current_dir(folder))
}

/// The driver's API as far as the emitted C uses it; the library below says what it is told.
const CUDA_H: &str = include_str!("build/cuda.h");
const DRIVER_C: &str = include_str!("build/driver.c");

#[test]
fn launches_on_a_gpu_have_their_geometry() {
    let lab = Lab::new("build-gpu");
    lab.file("cuda.h", CUDA_H);
    let add = lab.file("add.mlir", ADD);
    let gate = lab.file("gate.json", GATE);
    let linear = "torch.nn.Linear(512, 256)(torch.randn(1024, 512))";
    for target in ["sm_80", "sm_90a", "sm_100a", "sm_120"] {
        let dir = |name: &str| lab.path(&format!("{name}_{target}"));
        let build = |name: &str, what: &[&str]| {
            let o = lab.girih(&[&["build", "--target", target, "--name", name, "-o", &dir(name)], what].concat());
            expect(&o, 0, "");
            // Machine code, or where to get its compiler.
            let cubin = Path::new(&dir(name)).join(format!("{name}.cubin")).is_file();
            assert!(cubin || err(&o).contains("nvidia-cuda-nvdisasm` brings it"), "{}", err(&o));
            std::fs::write(Path::new(&dir(name)).join("driver.c"), DRIVER_C).unwrap();
            let source = format!("{name}.c");
            let strict = ["-Wall", "-Wextra", "-Werror", "-std=gnu11", "-I..", "-o", "example"];
            let o = cc(&dir(name), &[&strict[..], &["example.c", &source, "driver.c"]].concat());
            assert!(o.status.success(), "{}", err(&o));
            let o = finish(Command::new("./example").current_dir(dir(name)));
            expect(&o, 0, "");
            out(&o)
        };
        // 1024 by 256 elements in tiles, a block each.
        let told = build("linear", &["-c", linear]);
        let header = std::fs::read_to_string(format!("{}/linear.h", dir("linear"))).unwrap();
        assert!(told.contains("launch k_linear_kernel"), "{told}");
        if target == "sm_90a" {
            let map =
                "map rank 2 dims 512 1024 strides 2048 box 32 32\nmap rank 2 dims 512 256 strides 2048 box 32 64\n";
            assert!(told.contains(map), "{told}");
            assert!(header.contains("x_map: the f32 elements (512, 1024) of x"), "{header}");
        }
        let blocks = header.lines().find(|l| l.contains("k_linear (aten.linear)")).unwrap();
        let blocks = &blocks[blocks.find('(').unwrap() + 1..blocks.find(')').unwrap()];
        assert!(told.contains(&format!("blocks {blocks} threads")), "{told} {blocks}");
        let told = build("gate", &[&gate, "--arg", "w=ones:f32[32x64]"]);
        // The example has one row.
        assert!(told.contains("params 1 "), "{told}");
        let told = build("add", &[&add]);
        assert!(told.contains(" blocks 1, 1, 1 threads 256"), "{told}");
    }
}

#[test]
fn names_decide_nothing() {
    let lab = Lab::new("build-names");
    lab.file("cuda.h", CUDA_H);
    let hostile = [
        "*/#error",
        r"a//\\",
        r#"\");{"#,
        "weights",
        "$body",
        "int",
        "girih_run",
        "at",
        "errno",
        "EINVAL",
        "NULL",
        "stream",
        "blocks",
        "CUresult",
        "??/",
    ];
    let dir = |n: usize, target: &str| lab.path(&format!("{n}{target}"));
    for (n, name) in hostile.into_iter().enumerate() {
        let model = GATE.replace("rows", &format!("{name}1")).replace("\"x\"", &format!("\"{name}\""));
        let model = model.replace("\"gate\"", &format!("\"{name}\"")).replace("\"y\"", &format!("\"{name}\""));
        let file = lab.file("m.json", &model.replace("mlp.act", name));
        for target in ["cpu", "sm_80"] {
            let o =
                lab.girih(&["build", &file, "--arg", "w=ones:f32[32x64]", "--target", target, "-o", &dir(n, target)]);
            expect(&o, 0, "");
            let o = cc(&dir(n, target), &["-Wall", "-Wextra", "-Werror", "-I..", "-fsyntax-only", "m.c"]);
            assert!(o.status.success(), "{name}: {}", err(&o));
        }
    }
}
