use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [i32]) -> i32 { //~ a kernel cannot return a value
    store(out, 1);
    3
}

fn main() {}
