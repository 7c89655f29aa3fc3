//! Every scalar operation at every type it admits, in native code against `num::eval::apply`: one kernel per operation,
//! applied to arrays of special and random values, one value at a time and sixteen at a time.

mod calling;
mod scalar_cases;

use girih_compiler::kernel::legalise::{Options, legalise};
use girih_compiler::num::eval;
use girih_compiler::tile::target::Target;
use scalar_cases::{N, bytes, cases, is_nan, kernel, values};

fn compare(lanes: u32, target: &Target, flags: &[&str], tag: &str) {
    if calling::cc().is_none() {
        return;
    }
    let cases = cases();
    let mut wrong = Vec::new();
    for (part, cases) in cases.chunks(150).enumerate() {
        let kernels: Vec<_> = cases
            .iter()
            .enumerate()
            .map(|(i, c)| legalise(&kernel(c, &format!("k{i}"), lanes), &Options::default()).expect("lowers"))
            .collect();
        let source = girih_compiler::emit::c::emit(&kernels.iter().collect::<Vec<_>>(), target);
        let Some(unit) = calling::build(&format!("ops{tag}{part}"), &source, flags) else { return };
        for (n, case) in cases.iter().enumerate() {
            let inputs: Vec<Vec<u64>> = case.params.iter().enumerate().map(|(i, &d)| values(d, i)).collect();
            let buffers: Vec<Vec<u8>> = case.params.iter().zip(&inputs).map(|(&d, v)| bytes(d, v)).collect();
            let size = case.result.bytes() as usize;
            let mut out = vec![0u8; N as usize * size];
            let mut args: Vec<u64> = buffers.iter().map(|b| b.as_ptr() as u64).collect();
            args.push(out.as_mut_ptr() as u64);
            assert_eq!(unit.run(n, &args, [1, 1, 1], &[]).code, 0);
            for i in 0..N as usize {
                let args: Vec<u64> = inputs.iter().map(|v| v[i]).collect();
                let want = eval::apply(case.op, case.at, &args);
                let mut got = [0u8; 8];
                got[..size].copy_from_slice(&out[i * size..(i + 1) * size]);
                let got = u64::from_le_bytes(got);
                if got != want && !(is_nan(case.result, got) && is_nan(case.result, want)) {
                    wrong.push(format!("{:?} {} {args:x?}: got {got:#x}, expected {want:#x} at {i}", case.op, case.at));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} operations differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn one_at_a_time() {
    compare(1, &Target::cpu(), &["-mavx2", "-mfma"], "s");
}

#[test]
fn sixteen_at_a_time() {
    compare(16, &Target::cpu(), &["-mavx2", "-mfma"], "v");
}

#[test]
fn without_fma_or_wide_vectors() {
    let mut target = Target::cpu().with_vectors(16, 16);
    target.vector.fma = false;
    compare(4, &target, &[], "p");
}
