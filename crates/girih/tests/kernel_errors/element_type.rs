use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [String]) { //~ `String` is not an element type of kernels //~ `String` is not an element type of arrays
    let _ = out;
}

fn main() {}
