use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [i32]) {
    store(out, 1);
    break; //~ `break` is outside of a loop
}

fn main() {}
