//! Every knob at the ends of its range, on GPUs: the kernel is right and clean, or the message has the number that is needed
//! and the limit. Never a bug of ours.

use crate::lab;

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
    // Each knob meets each kernel, and each target in turn. Results with tf32 differ: `sim.rs` tests it.
    let cases = ends().filter(|knob| knob != "tf32=1").flat_map(|knob| KERNELS.map(|kernel| (knob.clone(), kernel)));
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

#[test]
fn what_a_target_cannot_hold_is_refused_with_the_number_and_the_limit() {
    let lab = Lab::new("knobs-limits");
    let product = "torch.randn(512, 3584) @ torch.randn(3584, 3584)";
    for (knobs, said) in [
        (&["slots=8", "mc=128", "nc=128"][..], "of shared memory; a block of sm_120 has at most 101376"),
        (&["rows=32", "cols=32"][..], "take 1024 registers of a thread, which has at most 252"),
        (&["rows=1", "cols=1"][..], "threads of a block, which has at most 1024"),
    ] {
        let mut words = vec!["compile", "-c", product, "--ir", "cuda", "--target", "sm_120"];
        knobs.iter().for_each(|knob| words.extend(["--knob", knob]));
        let o = lab.girih(&words);
        assert!(o.status.code() == Some(1) && err(&o).contains(said), "{knobs:?}: {:?}\n{}", o.status, err(&o));
        assert!(out(&o).is_empty(), "{}", out(&o));
    }
}
