//! The counted work of a launch as JSON: what a report of measured times keeps beside them.
//!
//! ```text
//! {"threads": 128, "registers": 96, "shared": 4096, "blocks": 4096, "counted": 5, "requests": 640, "sectors": 10240,
//!  "touched": [[5120, 16777216], [5120, 16777216]], "wavefronts": 640, "loaded": 5120, "reloaded": 0,
//!  "issued": 9120.0, "products": [0.0, 0.0], "barriers": 5}
//! ```

use girih_compiler::kernel::sim::{Touched, Work};
use serde_json::{Value, json};

/// The work as one object; [`read`] gives it back.
pub fn json(work: &Work) -> Value {
    let Work { threads, registers, shared, blocks, counted, requests, sectors, touched, wavefronts, .. } = work;
    let Work { loaded, reloaded, issued, products, barriers, .. } = work;
    let touched: Vec<[u64; 2]> = touched.iter().map(|t| [t.sectors, t.bytes]).collect();
    json!({
        "threads": threads, "registers": registers, "shared": shared, "blocks": blocks, "counted": counted,
        "requests": requests, "sectors": sectors, "touched": touched, "wavefronts": wavefronts,
        "loaded": loaded, "reloaded": reloaded, "issued": issued, "products": products, "barriers": barriers,
    })
}

/// The work that [`json`] wrote, or the name of the member that is missing or is not of its type.
pub fn read(value: &Value) -> Result<Work, &'static str> {
    let whole = |name| value.get(name).and_then(Value::as_u64).ok_or(name);
    let list = |name| value.get(name).and_then(Value::as_array).ok_or(name);
    let touched = |of: &Value| Some(Touched { sectors: of.get(0)?.as_u64()?, bytes: of.get(1)?.as_u64()? });
    let products = list("products")?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>().ok_or("products")?;
    Ok(Work {
        threads: whole("threads")?,
        registers: whole("registers")?,
        shared: whole("shared")?,
        blocks: whole("blocks")?,
        counted: Some(whole("counted")?).filter(|n| *n > 0).ok_or("counted")?,
        requests: whole("requests")?,
        sectors: whole("sectors")?,
        touched: list("touched")?.iter().map(touched).collect::<Option<_>>().ok_or("touched")?,
        loaded: whole("loaded")?,
        reloaded: whole("reloaded")?,
        wavefronts: whole("wavefronts")?,
        issued: value.get("issued").and_then(Value::as_f64).ok_or("issued")?,
        products: products.try_into().map_err(|_| "products")?,
        barriers: whole("barriers")?,
    })
}
