//! Every knob at the ends of its range, on GPUs: the kernel is right and clean, or the message has the number that is needed
//! and the limit. Never a bug of ours.

mod lab;

use girih_compiler::tile::knobs::ALL;
use lab::{Lab, err, out};
use std::process::Output;

const KERNELS: [&str; 3] = [
    "torch.nn.functional.gelu(torch.randn(40, 70) @ torch.randn(70, 40))",
    "torch.nn.functional.softmax(torch.randn(3, 777), dim=-1)",
    "torch.randn(33, 77) * 2 + 1",
];
const TARGETS: [&str; 4] = ["sm_80", "sm_90a", "sm_100a", "sm_120"];

/// Every knob with each end of its range, as the command line takes it.
fn ends() -> impl Iterator<Item = String> {
    ALL.iter().flat_map(|k| [k.least, k.most].map(|value| format!("{}={value}", k.name)))
}

fn held(o: &Output, what: &str) {
    let said = err(o);
    let numbers = said.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).count();
    let refused = o.status.code() == Some(1) && said.contains("at most") && numbers >= 2;
    assert!(o.status.success() || refused, "{what}: {:?}\n{said}{}", o.status, out(o));
}

#[test]
fn kernels_are_right_and_clean_with_every_knob_at_its_ends() {
    let lab = Lab::new("knobs-sim");
    // Each knob meets each kernel, and each target in turn.
    let cases = ends().flat_map(|knob| KERNELS.map(|kernel| (knob.clone(), kernel)));
    for ((knob, kernel), target) in cases.zip(TARGETS.into_iter().cycle()) {
        let o = lab.girih(&[
            "run",
            "-c",
            kernel,
            "--device",
            "sim",
            "--target",
            target,
            "--seed",
            "4",
            "--knob",
            &knob,
            "--compare",
            "eval",
        ]);
        held(&o, &format!("{kernel} at {target} with {knob}"));
    }
}

#[test]
fn a_product_of_full_size_has_cuda_with_every_knob_at_its_ends() {
    let lab = Lab::new("knobs-cuda");
    let product = "torch.randn(512, 3584) @ torch.randn(3584, 3584)";
    for (at, knob) in ends().enumerate() {
        for target in [TARGETS[at % 4], TARGETS[(at + 1) % 4]] {
            let o = lab.girih(&["compile", "-c", product, "--ir", "cuda", "--target", target, "--knob", &knob]);
            held(&o, &format!("{target} with {knob}"));
        }
    }
}
