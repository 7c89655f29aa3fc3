use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [i32], n: i32) {
    if n { //~ a condition is a `bool` or a `Tile<bool>`, not `Tile<i32>`
        store(out, 1);
    }
}

fn main() {}
