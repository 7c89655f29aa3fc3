use girih::lang::*;

#[girih::kernel]
fn k(x: &[f32], n: i32) {
    unsafe { load(x) }; //~ `unsafe` is not supported in a kernel
    while let Some(_) = Some(n) {} //~ `while let` is not supported in a kernel
    let _ = async { 1 }; //~ `async` is not supported in a kernel
}

fn main() {}
