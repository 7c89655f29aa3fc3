use girih::lang::*;

#[girih::kernel]
async fn a(out: &mut [f32]) { //~ a kernel cannot be `async`
    store(out, 1.0);
}
#[girih::kernel(fast)] //~ `#[girih::kernel]` takes no options
fn b(out: &mut [f32]) {
    store(out, 1.0);
}
#[girih::kernel]
unsafe fn c(out: &mut [f32]) { //~ a kernel cannot be `unsafe`
    store(out, 1.0);
}

fn main() {}
