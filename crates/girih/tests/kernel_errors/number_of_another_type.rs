use girih::lang::*;

#[girih::kernel]
fn k(x: &[f32], out: &mut [f32]) {
    store(out, load(x) * 2); //~ cannot multiply `Tile<f32>` by `{integer}`
}

fn main() {}
