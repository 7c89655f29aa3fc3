//! `--compare DEVICE`: the same launch elsewhere, bit for bit, down to the store that made the difference.

use girih::{Device, Kernel, Options, Stage, values};
use girih_compiler::num::{DType, convert};

use super::arguments::{Arguments, Value};
use crate::failure::Failure;
use crate::render::Source;

/// Runs the launch on `device` from the same start and reports the first element that differs.
pub fn compare(
    source: &Source,
    kernel: &Kernel<'_>,
    grid: [u32; 3],
    before: &Arguments,
    got: &Arguments,
    device: Device,
) -> Result<bool, Failure> {
    let within = Failure::within(source);
    let options = Options { device, printer: Some(std::sync::Arc::new(|_, _| {})), ..kernel.options().clone() };
    let other = kernel.program().entry(kernel.name()).map_err(&within)?.with_options(options);
    let mut want = before.duplicate().map_err(&within)?;
    kernel.program().reset_globals();
    other.launch(grid, &mut want.views()).map_err(&within)?;
    let (here, there) = (kernel.options().device, device);
    for (i, param) in kernel.params().iter().enumerate() {
        let (Some(Value::Buffer(a)), Some(Value::Buffer(b))) = (got.values.get(i), want.values.get(i)) else {
            continue;
        };
        let dtype = a.dtype();
        let Some(at) = (0..a.elements()).find(|&e| !same(dtype, a.get(e), b.get(e))) else { continue };
        outln!(
            "compare: `{}` differs first at element {at} {}: {here} has {} ({:#x}), {there} has {} ({:#x})",
            param.name,
            index_text(a.shape(), at),
            values::text(dtype, a.get(at)),
            a.get(at),
            values::text(dtype, b.get(at)),
            b.get(at),
        );
        let mut fresh = before.duplicate().map_err(&within)?;
        let options = Options { device: Device::Eval, ..other.options().clone() };
        let evaluator = other.program().entry(kernel.name()).map_err(&within)?.with_options(options);
        match evaluator.find_store(grid, &mut fresh.views(), i, at).map_err(&within)? {
            Some(store) => {
                let place = store.span.map(|s| crate::render::place(&source.text, s.start));
                let place = place.map_or(String::new(), |(l, c)| format!(" at {}:{l}:{c}", source.name));
                outln!("compare: it is stored by `{}`{place} in block {:?}", store.op, store.block);
            }
            None => outln!("compare: the evaluator stores nothing there"),
        }
        if dtype.is_float() && reassociates(kernel) {
            outln!(
                "compare: native code adds up vectors in another, fixed order; `--knob vectorise=0` keeps the evaluator's"
            );
        }
        return Ok(false);
    }
    outln!("compare: {here} and {there} agree in every bit");
    Ok(true)
}

/// Whether native code folds several elements of a reduction at a time.
fn reassociates(kernel: &Kernel<'_>) -> bool {
    let text = kernel.ir(Stage::Tile).unwrap_or_default();
    text.lines().any(|l| l.contains("reduce vector(") && l.contains(" combine "))
}

/// Equal bits, or two NaNs.
fn same(dtype: DType, a: u64, b: u64) -> bool {
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
