use girih::lang::*;

#[girih::kernel]
fn k(x: &[f32]) {
    store(x, 1.0); //~ mismatched types
}

fn main() {}
