//! `--verify`, `--compare` and `--verify-each`: the results of a model beside those of the evaluator.

use girih::Device;
use girih::model::Prepared;
use serde_json::{Value as Json, json};

use crate::commands::run::compare::{self, Pair, index_text};
use crate::failure::Failure;

/// Beside the same model in float64.
pub fn verify(prepared: &Prepared<'_>, summary: &mut Json) -> Result<bool, Failure> {
    let mut good = true;
    let mut report = vec![];
    for c in prepared.verify()? {
        good &= c.ok();
        outln!(
            "verify: {} `{}` largest error {:.3e} at {} (bound {:.3e}, largest value {:.3e}, K = {})",
            if c.ok() { "ok  " } else { "FAIL" },
            c.name,
            c.error,
            index_text(&c.shape, c.element),
            c.bound,
            c.scale,
            c.chain
        )?;
        report.push(json!({"name": c.name, "error": c.error, "bound": c.bound, "ok": c.ok()}));
    }
    summary["verify"] = json!(report);
    Ok(good)
}

/// Beside the evaluator: floats within the bound of `--verify`, or in every bit.
pub fn compare(prepared: &Prepared<'_>, on: Device, bits: bool, summary: &mut Json) -> Result<bool, Failure> {
    let want = prepared.evaluate(false)?;
    let pairs: Vec<Pair> = (prepared.outputs().iter().zip(&want))
        .map(|(got, (name, want))| Pair { name, here: (on, got.buffer()), there: (Device::Eval, want.buffer()) })
        .collect();
    let bound = prepared.rounding()?;
    let wrong = compare::report(&pairs, bits, |dtype, scale| bound.of(dtype, scale), summary)?;
    if let Some((at, _)) = wrong
        && bits
        && pairs.get(at).is_some_and(|p| p.here.1.dtype().is_float())
    {
        outln!(
            "compare: native code folds sums in another, fixed order; without `--bits` floats are compared within a bound"
        )?;
    }
    Ok(wrong.is_none())
}
