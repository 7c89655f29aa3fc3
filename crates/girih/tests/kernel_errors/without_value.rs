use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [f32], n: i32) {
    let x; //~ a variable of a kernel needs a value where it is declared
    if n > 3 {
        x = scalar(1.0f32);
    } else {
        x = scalar(2.0f32);
    }
    store(out, x);
}

fn main() {}
