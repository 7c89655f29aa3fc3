//! `girih assemble`: versions, standard output, refusals.

use crate::lab;

use lab::{ADD, Lab, expect, out};

const ATAN2: &str =
    "cuda_tile.module @m {\n  entry @k(%x: tile<f32>) {\n    %y = atan2 %x, %x : tile<f32>\n    return\n  }\n}\n";

#[test]
fn the_oldest_version_that_can_express_it() {
    let lab = Lab::new("assemble-versions");
    let header = |name: &str| std::fs::read(lab.path(name)).unwrap()[8..10].to_vec();
    for (text, oldest) in [(ADD, [13, 1]), (ATAN2, [13, 2])] {
        let file = lab.file("a.mlir", text);
        expect(&lab.girih(&["assemble", &file, "-o", &lab.path("a.tileirbc")]), 0, "");
        assert_eq!(header("a.tileirbc"), oldest);
        // Bytecode is an input too, and says the same at another version.
        let (old, new) = (lab.path("a.tileirbc"), lab.path("b.tileirbc"));
        expect(&lab.girih(&["assemble", &old, "--bytecode-version", "13.4", "-o", &new]), 0, "");
        assert_eq!(header("b.tileirbc"), [13, 4]);
        let nvidia = out(&lab.girih(&["disassemble", &old]));
        assert!(nvidia.starts_with("entry @"), "{nvidia}");
        assert_eq!(out(&lab.girih(&["disassemble", &new])), nvidia);
    }
}

#[test]
fn standard_output_takes_the_same_bytes() {
    let lab = Lab::new("assemble-stdout");
    let file = lab.file("a.mlir", ADD);
    expect(&lab.girih(&["assemble", &file, "-o", &lab.path("a.tileirbc")]), 0, "");
    let bytes = std::fs::read(lab.path("a.tileirbc")).unwrap();
    for args in [&["assemble", &file][..], &["assemble", &file, "-o", "-"]] {
        let o = lab.girih(args);
        expect(&o, 0, "");
        assert_eq!(o.stdout, bytes);
    }
}

#[test]
fn a_refusal_leaves_no_file() {
    let lab = Lab::new("assemble-refused");
    let file = lab.file("a.mlir", ATAN2);
    let to = lab.path("a.tileirbc");
    expect(&lab.girih(&["assemble", &file, "--bytecode-version", "13.1", "-o", &to]), 1, "E0710");
    assert!(!std::path::Path::new(&to).exists());
    expect(&lab.girih(&["assemble", &file, "--bytecode-version", "12.9", "-o", &to]), 2, "13.1, 13.2, 13.3, 13.4");
    expect(&lab.girih(&["assemble", &file, "-o", "/nonexistent/a.tileirbc"]), 1, "E0503");
}
