use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [i32], n: i32) {
    'outer: for i in range(0, n) { //~ labels of loops are not supported in a kernel
        store(out + i, 1);
    }
    for _ in 0..4 {
        break 'outer; //~ `break` with a label or a value is not supported in a kernel
    }
}

fn main() {}
