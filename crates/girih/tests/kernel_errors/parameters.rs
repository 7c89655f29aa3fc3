use girih::lang::*;

#[girih::kernel]
fn k(x: &f32, out: &mut [f32], (a, b): (f32, f32), #[inline] c: f32) { //~ a kernel takes slices //~ a kernel's parameter is one name //~ the only attribute of a kernel's parameter
    store(out, 1.0);
}

fn main() {}
