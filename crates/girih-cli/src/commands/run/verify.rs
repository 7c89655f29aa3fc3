//! `--verify`: the results beside those of the same run with every float widened to float64, on the evaluator.

use girih::widen::{self, Deviation};
use serde_json::{Value as Json, json};

use super::compare::index_text;
use crate::commands::runnable::{Run, Runnable};
use crate::failure::Failure;
use crate::output;

pub fn verify(runnable: &dyn Runnable, run: &dyn Run, summary: &mut Json) -> Result<bool, Failure> {
    let within = Failure::within(runnable.source());
    let _muted = output::mute();
    let reference = match run.reference().map_err(&within)? {
        Ok(reference) => reference,
        Err(reason) => {
            outln!("verify: there is no float64 reference: {reason}")?;
            return Ok(true);
        }
    };
    let bounds = run.error_bound().map_err(&within)?;
    let mut good = true;
    let mut report = vec![];
    for (got, want) in run.results().iter().zip(&reference).filter(|(got, _)| got.written) {
        let Deviation { error, element, scale } = widen::deviation(got.buffer, want);
        let bound = bounds.of(got.buffer.dtype(), scale);
        let ok = error <= bound;
        good &= ok;
        outln!(
            "verify: {} `{}` largest error {error:.3e} at {} (bound {bound:.3e}, largest value {scale:.3e}, K = {})",
            if ok { "ok  " } else { "FAIL" },
            got.name,
            index_text(got.buffer.shape(), element),
            bounds.chain
        )?;
        report.push(json!({"name": got.name, "error": error, "bound": bound, "ok": ok}));
    }
    summary["verify"] = json!(report);
    Ok(good)
}
