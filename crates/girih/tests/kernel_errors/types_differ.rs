use girih::lang::*;

#[girih::kernel]
fn k(x: &[f32], out: &mut [f32]) {
    let i = arange(0, 8);
    store(out + i, load(x + i) + i); //~ cannot add `Tile<i32>` to `Tile<f32>`
}

fn main() {}
