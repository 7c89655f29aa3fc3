//! `--verify`: the same launch with every float widened to float64, on the evaluator.

use girih::widen::{self, Deviation};
use girih::{Buffer, DType, Device, Kernel, Options, Traffic};
use serde_json::{Value as Json, json};

use super::arguments::{Arguments, Value};
use super::compare::index_text;
use crate::failure::Failure;
use crate::render::Source;

/// The bound on the error is `SLACK * sqrt(K) * eps * (largest value)`, K being the length of the longest accumulation.
const SLACK: f64 = 8.0;

/// A bound on rounding errors in a launch's results.
pub struct Bound {
    /// K: the length of the longest accumulation.
    pub steps: f64,
    /// The rounding of the coarsest float type that is computed in.
    eps: f64,
}

impl Bound {
    pub fn new(kernel: &Kernel<'_>, grid: [u32; 3], before: &Arguments) -> Bound {
        let bits = |v: &Value| if let Value::Scalar { bits, .. } = v { *bits } else { 0 };
        let scalars: Vec<u64> = before.values.iter().map(bits).collect();
        Bound {
            steps: kernel.longest_accumulation(grid, &scalars).unwrap_or(1.0).max(1.0),
            eps: kernel.options().rounding(kernel.coarsest_float()),
        }
    }

    /// For results of a type whose largest value is `scale`; integers are exact.
    pub fn of(&self, dtype: DType, scale: f64) -> f64 {
        let eps = self.eps.max(widen::epsilon(dtype));
        if dtype.is_float() { SLACK * self.steps.sqrt() * eps * scale } else { 0.0 }
    }
}

pub fn verify(
    source: &Source,
    kernel: &Kernel<'_>,
    grid: [u32; 3],
    before: &Arguments,
    got: &Arguments,
    traffic: &Traffic,
    summary: &mut Json,
) -> Result<bool, Failure> {
    let within = Failure::within(source);
    let wide = match kernel.program().widened() {
        Ok(wide) => wide,
        Err(reason) => {
            outln!("verify: there is no float64 reference: {reason}")?;
            return Ok(true);
        }
    };
    let mut inputs = widened(before).map_err(&within)?;
    let options =
        Options { device: Device::Eval, printer: Some(std::sync::Arc::new(|_, _| {})), ..kernel.options().clone() };
    let reference = wide.entry(kernel.name()).map_err(&within)?.with_options(options);
    reference.launch(grid, &mut inputs.views()).map_err(&within)?;
    let bound = Bound::new(kernel, grid, before);
    let steps = bound.steps;
    let mut good = true;
    let mut report = Vec::new();
    for (i, param) in kernel.params().iter().enumerate() {
        if traffic.writes.get(i) != Some(&true) {
            continue;
        }
        let (Some(Value::Buffer(g)), Some(Value::Buffer(w))) = (got.values.get(i), inputs.values.get(i)) else {
            continue;
        };
        let Deviation { error, element, scale } = widen::deviation(g, w);
        let bound = bound.of(g.dtype(), scale);
        let ok = error <= bound;
        good &= ok;
        outln!(
            "verify: {} `{}` largest error {error:.3e} at {} (bound {bound:.3e}, largest value {scale:.3e}, K = {steps})",
            if ok { "ok  " } else { "FAIL" },
            param.name,
            index_text(g.shape(), element),
        )?;
        report.push(json!({"name": param.name, "error": error, "bound": bound, "ok": ok}));
    }
    summary["verify"] = json!(report);
    Ok(good)
}

/// The same arguments with floats as float64.
fn widened(arguments: &Arguments) -> girih::Result<Arguments> {
    let one = |v: &Value| {
        Ok(match v {
            Value::Scalar { dtype, bits } => {
                Value::Scalar { dtype: widen::widened(*dtype), bits: widen::widen_bits(*dtype, *bits) }
            }
            Value::Buffer(b) if b.dtype().is_float() => {
                let mut wide = Buffer::zeroed(widen::widened(b.dtype()), b.shape())?;
                for i in 0..b.elements() {
                    wide.set(i, widen::widen_bits(b.dtype(), b.get(i)));
                }
                Value::Buffer(wide)
            }
            Value::Buffer(b) => Value::Buffer(b.duplicate()?),
            Value::Same(i) => Value::Same(*i),
            Value::Pointers(of) => Value::Pointers(of.clone()),
        })
    };
    Ok(Arguments { values: arguments.values.iter().map(one).collect::<girih::Result<_>>()? })
}
