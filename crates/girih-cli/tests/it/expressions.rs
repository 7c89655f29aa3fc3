//! The running examples as one-liners: what Torch IR prints is a file of tests/expressions; `BLESS=1` writes it.

use crate::lab;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Name, text, and a primitive it becomes.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("rms_norm", "torch.nn.RMSNorm(2048)(torch.randn(1,32,2048))", "reduce sum"),
    ("gelu", "x=torch.randn(32,18944);0.5*x*(1+torch.tanh(0.797*(x+0.044*x*x*x)))", "tanh"),
    ("linear", "torch.nn.Linear(3584,3584)(torch.randn(512,3584))", "reduce dot"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/expressions")
}

fn girih(args: &[&str]) -> (bool, String, String) {
    let out = lab::finish(Command::new(env!("CARGO_BIN_EXE_girih")).args(args));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn examples_print_as_they_did() {
    for (name, text, _) in EXAMPLES {
        let (ok, printed, said) = girih(&["compile", "-c", text, "--ir", "torch"]);
        assert!(ok, "{name}: {said}");
        let path = folder().join(format!("{name}.torch"));
        if std::env::var_os("BLESS").is_some_and(|v| !v.is_empty() && v != "0") {
            std::fs::write(&path, &printed).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(printed, kept, "{name}.torch is printed otherwise; BLESS=1 accepts it");
    }
}

/// Tensor IR holds primitives only: no operation of the source is left, and the sum or product is where it belongs.
#[test]
fn examples_become_primitives() {
    for (name, text, primitive) in EXAMPLES {
        let (ok, printed, said) = girih(&["compile", "-c", text, "--ir", "tensor"]);
        assert!(ok, "{name}: {said}");
        assert!(printed.contains(primitive) && !printed.contains("= aten."), "{name}:\n{printed}");
    }
}

#[test]
fn help_lists_names_and_explains_one() {
    let (ok, all, _) = girih(&["compile", "-c", "help"]);
    assert!(ok && all.contains("torch.nn.RMSNorm") && all.contains("torch.einsum"));
    let (ok, one, _) = girih(&["compile", "-c", "help(torch.nn.Linear)"]);
    assert!(ok && one.starts_with("torch.nn.Linear(in_features, out_features, bias=True"), "{one}");
    let (ok, _, said) = girih(&["compile", "-c", "help(torch.sofmax)"]);
    assert!(!ok && said.contains("did you mean `torch.softmax`?"), "{said}");
}

#[test]
fn integers_print_with_the_sign_that_their_type_has() {
    for (text, printed) in [
        ("torch.tensor([1, 200], dtype=torch.uint8)", "out = [1, 200]  (u8[2])\n"),
        ("torch.tensor([1, -56], dtype=torch.int8)", "out = [1, -56]  (i8[2])\n"),
        ("torch.tensor([1, 200]) > 7", "out = [0, 1]  (bool[2])\n"),
    ] {
        let (ok, out, err) = girih(&["run", "--device", "eval", "-c", text]);
        assert!(ok && out == printed, "{text}: {out}{err}");
    }
}

/// As PyTorch does, and a compiler that lets them through fails on its own loops.
#[test]
fn products_of_two_types_are_refused() {
    for (what, weight) in [
        ("torch.nn.functional.conv1d(torch.randn(1, 4, 9).double(), {})", "torch.randn(2, 4, 3)"),
        ("torch.nn.functional.conv2d(torch.randn(1, 4, 9, 9).double(), {}, groups=4)", "torch.randn(4, 1, 3, 3)"),
        ("torch.nn.functional.conv_transpose2d(torch.randn(1, 4, 9, 9).double(), {})", "torch.randn(4, 2, 3, 3)"),
        ("torch.matmul(torch.randn(3, 4).double(), {})", "torch.randn(4, 5)"),
    ] {
        let (ok, _, said) = girih(&["run", "--device", "eval", "-c", &what.replace("{}", weight)]);
        assert!(!ok && said.contains("f64 and f32 are different element types"), "{what}: {said}");
        let (ok, _, said) =
            girih(&["run", "--device", "eval", "-c", &what.replace("{}", &format!("{weight}.double()"))]);
        assert!(ok, "{what}: {said}");
    }
}

#[test]
fn indices_are_integers() {
    for (what, index) in [
        ("torch.gather(torch.randn(3), 0, {})", "torch.zeros(2)"),
        ("torch.nn.functional.embedding({}, torch.randn(5, 3))", "torch.zeros(2).half()"),
        ("torch.index_select(torch.randn(3), 0, {})", "torch.zeros(2).bool()"),
    ] {
        let (ok, _, said) = girih(&["run", "--device", "eval", "-c", &what.replace("{}", index)]);
        assert!(!ok && said.contains("an index is an integer, not "), "{what}: {said}");
        let (ok, _, said) =
            girih(&["run", "--device", "eval", "-c", &what.replace("{}", &format!("{index}.to(torch.int32)"))]);
        assert!(ok, "{what}: {said}");
    }
}
