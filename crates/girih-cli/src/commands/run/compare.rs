//! `--compare DEVICE`: the same launch elsewhere, down to the store that made a difference.
//!
//! Native code folds sums in another order than the evaluator, so floats agree within the bound of `--verify`, and
//! integers in every bit; with `--bits` floats do too.

use girih::{Buffer, Device, Kernel, Options, Stage, values, widen};
use girih_compiler::num::{DType, convert};
use serde_json::{Value as Json, json};

use super::arguments::{Arguments, Value};
use super::verify::Bound;
use crate::failure::Failure;
use crate::render::Source;

/// Two devices' results under one name.
pub struct Pair<'a> {
    pub name: &'a str,
    pub here: (Device, &'a Buffer),
    pub there: (Device, &'a Buffer),
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

/// The device that a launch is compared with.
pub struct Elsewhere {
    pub device: Device,
    pub bits: bool,
}

/// Runs the launch on another device from the same start and says how the results agree.
pub fn compare(
    source: &Source,
    kernel: &Kernel<'_>,
    grid: [u32; 3],
    before: &Arguments,
    got: &Arguments,
    Elsewhere { device, bits }: Elsewhere,
    summary: &mut Json,
) -> Result<bool, Failure> {
    let within = Failure::within(source);
    let options = Options { device, printer: Some(std::sync::Arc::new(|_, _| {})), ..kernel.options().clone() };
    let other = kernel.program().entry(kernel.name()).map_err(&within)?.with_options(options);
    let mut want = before.duplicate().map_err(&within)?;
    kernel.program().reset_globals();
    other.launch(grid, &mut want.views()).map_err(&within)?;
    let here = kernel.options().device;
    let buffers = kernel.params().iter().enumerate().filter_map(|(i, param)| {
        let (Value::Buffer(a), Value::Buffer(b)) = (got.values.get(i)?, want.values.get(i)?) else { return None };
        Some((i, Pair { name: &param.name, here: (here, a), there: (device, b) }))
    });
    let (positions, pairs): (Vec<usize>, Vec<Pair>) = buffers.unzip();
    let bound = Bound::new(kernel, grid, before);
    let Some((pair, element)) = report(&pairs, bits, |dtype, scale| bound.of(dtype, scale), summary)? else {
        return Ok(true);
    };
    let (Some(&i), Some(shown)) = (positions.get(pair), pairs.get(pair)) else { return Ok(false) };
    let mut fresh = before.duplicate().map_err(&within)?;
    let options = Options { device: Device::Eval, ..other.options().clone() };
    let evaluator = other.program().entry(kernel.name()).map_err(&within)?.with_options(options);
    match evaluator.find_store(grid, &mut fresh.views(), i, element).map_err(&within)? {
        Some(store) => {
            let place = store.span.map(|s| crate::render::place(&source.text, s.start));
            let place = place.map_or(String::new(), |(l, c)| format!(" at {}:{l}:{c}", source.name));
            outln!("compare: it is stored by `{}`{place} in block {:?}", store.op, store.block)?;
        }
        None => outln!("compare: the evaluator stores nothing there")?,
    }
    if bits && shown.here.1.dtype().is_float() && reassociates(kernel) {
        outln!(
            "compare: native code adds up vectors in another, fixed order; `--knob vectorise=0` keeps the evaluator's, \
             and without `--bits` floats are compared within a bound"
        )?;
    }
    Ok(false)
}

/// Returns true if native code reduces several elements at a time.
fn reassociates(kernel: &Kernel<'_>) -> bool {
    let text = kernel.ir(Stage::Tile).unwrap_or_default();
    text.lines().any(|l| l.contains("reduce vector(") && l.contains(" combine "))
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
