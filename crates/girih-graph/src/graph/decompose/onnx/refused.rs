//! ONNX operations that cannot be lowered, each with its reason.

use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::{Call, old};
use crate::graph::ir::Arg;

rules! {
    refuse_random "Refuses random numbers: a run has the same results every time." {
        "onnx.Bernoulli" | "onnx.Multinomial" | "onnx.RandomNormal" | "onnx.RandomNormalLike" | "onnx.RandomUniform" |
        "onnx.RandomUniformLike" => old(|_, call| refuse(call, "draws random numbers, which a compiled model does not do")),
    }
}

fn refuse(call: &Call<'_>, why: &str) -> Result<Vec<Arg>> {
    Err(Refusal::new(format!("{} {why}", call.name.trim_start_matches("onnx."))))
}
