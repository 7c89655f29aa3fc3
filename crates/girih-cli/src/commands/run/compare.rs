//! `--compare DEVICE`: the same run elsewhere, down to the store that made a difference.
//!
//! Native code folds sums in another order than the evaluator, so floats agree within the bound of `--verify`, and
//! integers in every bit; with `--bits` floats do too.

use girih::{Buffer, Device, Options, values, widen};
use girih_compiler::num::{DType, convert};
use serde_json::{Value as Json, json};

use crate::commands::runnable::{Often, Run, Runnable};
use crate::failure::Failure;
use crate::output;

/// The results of two runs under one name, and where they ran.
pub struct Pair<'a> {
    pub name: &'a str,
    pub here: (&'a str, &'a Buffer),
    pub there: (&'a str, &'a Buffer),
}

/// How a pair agrees.
enum Agreement {
    Bits,
    Within { error: f64, element: u64, bound: f64, scale: f64 },
    Differs { element: u64, bound: Option<f64> },
}

impl Pair<'_> {
    /// Returns true if integers are equal and floats differ by no more than rounding explains.
    pub fn agrees(&self, bound: impl Fn(DType, f64) -> f64) -> bool {
        !matches!(self.agreement(false, bound), Agreement::Differs { .. })
    }

    /// `bound` gives the largest difference between floats that rounding explains, for their largest value.
    fn agreement(&self, bits: bool, bound: impl Fn(DType, f64) -> f64) -> Agreement {
        let (a, b) = (self.here.1, self.there.1);
        let dtype = a.dtype();
        let Some(first) = (0..a.elements()).find(|&e| !same(dtype, a.get(e), b.get(e))) else {
            return Agreement::Bits;
        };
        if bits || !dtype.is_float() {
            return Agreement::Differs { element: first, bound: None };
        }
        let widen::Deviation { error, element, scale } = widen::deviation(a, b);
        let bound = bound(dtype, scale);
        match error <= bound {
            true => Agreement::Within { error, element, bound, scale },
            false => Agreement::Differs { element, bound: Some(bound) },
        }
    }
}

/// Says how the pairs agree; gives the position and the element of the first that does not.
pub fn report(
    pairs: &[Pair<'_>],
    bits: bool,
    bound: impl Fn(DType, f64) -> f64,
    summary: &mut Json,
) -> Result<Option<(usize, u64)>, Failure> {
    let mut all = vec![];
    let mut exact = true;
    let mut wrong = None;
    for (at, pair) in pairs.iter().enumerate() {
        let (here, there) = (pair.here.0, pair.there.0);
        match pair.agreement(bits, &bound) {
            Agreement::Bits => all.push(json!({"name": pair.name, "ok": true, "bits": true})),
            Agreement::Within { error, element, bound, scale } => {
                exact = false;
                outln!(
                    "compare: ok   `{}` largest difference {error:.3e} at {} (bound {bound:.3e}, largest value {scale:.3e})",
                    pair.name,
                    index_text(pair.here.1.shape(), element),
                )?;
                all.push(json!({"name": pair.name, "ok": true, "bits": false, "error": error, "bound": bound}));
            }
            Agreement::Differs { element, bound } => {
                let value = |buffer: &Buffer| {
                    let bits = buffer.get(element);
                    format!("{} ({bits:#x})", values::text(buffer.dtype(), bits))
                };
                let what = match bound {
                    Some(bound) => format!("differs by more than rounding explains ({bound:.3e}), most at"),
                    None => "differs first at".to_string(),
                };
                outln!(
                    "compare: FAIL `{}` {what} element {element} {}: {here} has {}, {there} has {}",
                    pair.name,
                    index_text(pair.here.1.shape(), element),
                    value(pair.here.1),
                    value(pair.there.1),
                )?;
                all.push(json!({"name": pair.name, "ok": false, "bits": false, "element": element, "bound": bound}));
                wrong = wrong.or(Some((at, element)));
            }
        }
    }
    summary["compare"] = json!(all);
    if wrong.is_none()
        && let Some(Pair { here: (here, _), there: (there, _), .. }) = pairs.first()
    {
        match exact {
            true => outln!("compare: {here} and {there} agree in every bit")?,
            false => outln!("compare: {here} and {there} agree within the bound; `--bits` compares every bit")?,
        }
    }
    Ok(wrong)
}

/// Runs on another device from the same start and says how the results agree.
pub fn compare(
    runnable: &dyn Runnable,
    run: &dyn Run,
    device: Device,
    bits: bool,
    summary: &mut Json,
) -> Result<bool, Failure> {
    let within = Failure::within(runnable.source());
    let _muted = output::mute();
    let other = runnable.under(Options { device, ..runnable.options().clone() }).map_err(&within)?;
    let mut there = other.start(Often::Once).map_err(&within)?;
    there.run().map_err(&within)?;
    let (here, elsewhere) = (runnable.options().device.to_string(), device.to_string());
    let bound = run.error_bound().map_err(&within)?;
    let agree = report(&pairs(run, &here, &*there, &elsewhere), bits, |dtype, scale| bound.of(dtype, scale), summary)?;
    let Some((position, element)) = agree else { return Ok(true) };
    if let Some(store) = run.stored_by(position, element).map_err(&within)? {
        outln!("compare: {store}")?;
    }
    let float = run.results().get(position).is_some_and(|array| array.buffer.dtype().is_float());
    if let Some(why) = runnable.reordered().filter(|_| bits && float) {
        outln!("compare: {why}")?;
    }
    Ok(false)
}

/// The results of two runs, by name.
pub fn pairs<'a>(here: &'a dyn Run, at: &'a str, there: &'a dyn Run, elsewhere: &'a str) -> Vec<Pair<'a>> {
    let both = here.results().into_iter().zip(there.results());
    both.map(|(a, b)| Pair { name: a.name, here: (at, a.buffer), there: (elsewhere, b.buffer) }).collect()
}

/// Equal bits, or two NaNs.
pub fn same(dtype: DType, a: u64, b: u64) -> bool {
    a == b || dtype.is_float() && convert::is_nan(dtype, a) && convert::is_nan(dtype, b)
}

/// `[2, 7]` for a linear element.
pub fn index_text(shape: &[u64], mut at: u64) -> String {
    let mut index = vec![0; shape.len()];
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        *i = at % n.max(1);
        at /= n.max(1);
    }
    format!("{index:?}")
}
