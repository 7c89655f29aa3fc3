use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [i32]) {
    let n: Option<i32> = None;
    store(out, n?); //~ `?` is not supported in a kernel
}

fn main() {}
