use girih::lang::*;

#[girih::kernel]
fn k(out: &mut [i32], n: i32) {
    for i in range(0, n) {
        if i == 3 {
            return; //~ `return` inside a loop of a kernel is not supported
        }
        store(out + i, 1);
    }
}

fn main() {}
