//! The C that `girih build` writes and `--ir c` prints is C of every standard since C99, of ISO and of GNU, to every compiler that is there.

use crate::lab;

use std::path::{Path, PathBuf};
use std::process::Command;

use lab::{ADD, Lab, err, expect};

const STANDARDS: [&str; 10] = ["c99", "c11", "c17", "c23", "c2x", "gnu99", "gnu11", "gnu17", "gnu23", "gnu2x"];

/// A program whose kernel rounds in other directions and in small formats, counts atomically and has a global.
const ODD: &str = r#"cuda_tile.module @m {
  global @count <i32: 5> : tile<1xi32>
  entry @k(%p: tile<ptr<f32>>, %o: tile<ptr<i64>>) {
    %g = get_global @count : tile<ptr<i32>>
    %one = constant <i32: 1> : tile<i32>
    %old, %t0 = atomic_rmw_tko relaxed device %g, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    %x, %t1 = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
    %y = addf %x, %x rounding<positive_inf> : tile<f32>
    %h = ftof %y : tile<f32> -> tile<f16>
    %f = ftof %h : tile<f16> -> tile<f32>
    %t2 = store_ptr_tko weak %p, %f : tile<ptr<f32>>, tile<f32> -> token
    %a, %t3 = load_ptr_tko weak %o : tile<ptr<i64>> -> tile<i64>, token
    %m = mulhii %a, %a : tile<i64>
    %t4 = store_ptr_tko weak %o, %m : tile<ptr<i64>>, tile<i64> -> token
  }
}
"#;

/// The compilers of this machine, and the standards that each knows.
fn compilers(lab: &Lab) -> Vec<(&'static str, Vec<&'static str>)> {
    let empty = lab.file("empty.c", "int girih_empty;\n");
    let knows = |cc: &str, standard: &str| {
        let tried = Command::new(cc).args(["-fsyntax-only", &format!("-std={standard}"), &empty]).output();
        tried.is_ok_and(|o| o.status.success())
    };
    let all = ["gcc", "clang"].into_iter();
    let of = all.map(|cc| (cc, STANDARDS.into_iter().filter(|s| knows(cc, s)).collect::<Vec<_>>()));
    of.filter(|(_, standards)| !standards.is_empty()).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    files.filter(|f| f.extension().is_some_and(|e| e == "c")).collect()
}

#[test]
fn libraries_are_c_of_every_standard() {
    let lab = Lab::new("standards");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let example = |name: &str| vec![examples.join(name).to_str().unwrap().to_string()];
    let line = |text: &str| vec!["-c".to_string(), text.to_string()];
    let libraries = [
        vec![lab.file("add.mlir", ADD)],
        vec![lab.file("odd.mlir", ODD)],
        example("gemm.mlir"),
        example("histogram.mlir"),
        example("mutex.mlir"),
        // Weights in a file of their own.
        line("torch.nn.Linear(512, 256)(torch.randn(8, 512))"),
        line("torch.sort(torch.randn(4, 64)).values"),
        // On processors that have it, with the matrix unit.
        line("torch.matmul(torch.randn(64, 64).bfloat16(), torch.randn(64, 64).bfloat16())"),
        line("torch.cumsum(torch.randn(4, 64).bfloat16().float(), 1) // 3"),
    ];
    let compilers = compilers(&lab);
    assert!(!compilers.is_empty());
    for (number, words) in libraries.iter().enumerate() {
        let folder = lab.path(&format!("library{number}"));
        let mut all = vec!["build"];
        all.extend(words.iter().map(String::as_str));
        let built = lab.girih(&[&all[..], &["-o", &folder]].concat());
        expect(&built, 0, "");
        // A kernel as it is printed, with an atomic operation whose result nobody reads.
        let printed = format!("{folder}/printed.c");
        let kernel: Vec<&str> = words.iter().map(String::as_str).collect();
        expect(&lab.girih(&[&["compile"], &kernel[..], &["--ir", "c", "-o", &printed]].concat()), 0, "");
        let mut flags: Vec<String> = vec![];
        let mut all = sources(Path::new(&folder));
        // The library's command has the flags.
        all.sort_by_key(|path| path.ends_with("printed.c"));
        for source in all {
            let text = std::fs::read_to_string(&source).unwrap();
            // Flags of the command in its first line, but for the standard.
            if let Some(command) = text.lines().next().filter(|l| l.contains(" -O2 ")) {
                flags = command
                    .split(' ')
                    .filter(|w| w.starts_with("-m") || w.starts_with("-ffp"))
                    .map(String::from)
                    .collect();
            }
            for (cc, standards) in &compilers {
                for standard in standards {
                    let mut check = Command::new(cc);
                    check.args(["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic"]).args(&flags);
                    let said = check.arg(format!("-std={standard}")).arg(&source).output().unwrap();
                    assert!(said.status.success(), "{cc} -std={standard} {words:?}: {}", err(&said));
                }
            }
        }
    }
}
