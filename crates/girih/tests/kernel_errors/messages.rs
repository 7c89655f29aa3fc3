use girih::lang::*;

#[girih::kernel]
fn k(x: &[f32]) {
    println!("x {:?}", load(x)); //~ values are printed with `{}`
    println!("x {} {}", load(x)); //~ the text has 2 `{}`, but there are 1 values
    assert_eq!(load(x), 1.0); //~ `assert_eq!` is not supported in a kernel
}

fn main() {}
