//! `--verify`, `--compare` and `--verify-each`: the results of a model beside those of the evaluator.

use girih::model::Prepared;
use girih::values;
use girih_compiler::num::{DType, convert};
use serde_json::{Value as Json, json};

use crate::commands::run::compare::index_text;

/// Beside the same model in float64.
pub fn verify(prepared: &Prepared<'_>, summary: &mut Json) -> girih::Result<bool> {
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
        );
        report.push(json!({"name": c.name, "error": c.error, "bound": c.bound, "ok": c.ok()}));
    }
    summary["verify"] = json!(report);
    Ok(good)
}

/// Bit by bit beside the evaluator. Sums that are folded in another order differ in their last bits.
pub fn compare(prepared: &Prepared<'_>) -> girih::Result<bool> {
    let want = prepared.evaluate(false)?;
    for (got, (name, want)) in prepared.outputs().iter().zip(&want) {
        let (a, b, dtype) = (got.buffer(), want.buffer(), got.dtype());
        let Some(at) = (0..a.elements()).find(|&e| !same(dtype, a.get(e), b.get(e))) else { continue };
        outln!(
            "compare: `{name}` differs first at element {at} {}: cpu has {} ({:#x}), eval has {} ({:#x})",
            index_text(a.shape(), at),
            values::text(dtype, a.get(at)),
            a.get(at),
            values::text(dtype, b.get(at)),
            b.get(at),
        );
        if dtype.is_float() {
            outln!("compare: native code folds sums in another, fixed order; `--verify` compares within a bound");
        }
        return Ok(false);
    }
    outln!("compare: cpu and eval agree in every bit");
    Ok(true)
}

/// Equal bits, or two NaNs.
fn same(dtype: DType, a: u64, b: u64) -> bool {
    a == b || dtype.is_float() && convert::is_nan(dtype, a) && convert::is_nan(dtype, b)
}
