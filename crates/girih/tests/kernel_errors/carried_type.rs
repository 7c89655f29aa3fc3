use girih::lang::*;

struct Mine;

#[girih::kernel]
fn k(out: &mut [i32], n: i32) {
    let mut mine = Mine;
    for i in range(0, n) {
        mine = Mine; //~ a loop or an `if` of a kernel cannot change a variable of type `Mine`
        store(out + i, 1);
    }
}

fn main() {}
