use girih::lang::*;

#[girih::kernel]
fn k(x: &[f32], out: &mut [f32]) {
    store(out, load(x));
}

fn launch() {
    let (x, mut out) = ([1.0f32], [0.0f64]);
    k(&x, &mut out).launch(1).unwrap(); //~ mismatched types
}

fn main() {}
