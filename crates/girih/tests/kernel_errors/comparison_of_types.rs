use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [i32], n: i32, y: f32) {
    if n < y { //~ `Tile<i32>` cannot be compared with `Tile<f32>`
        store(out, 1);
    }
}

fn main() {}
