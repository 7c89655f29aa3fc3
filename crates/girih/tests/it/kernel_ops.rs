//! Every scalar operation at every type it admits, in native code against `num::eval::apply`: one kernel per operation,
//! applied to arrays of special and random values, one value at a time and sixteen at a time.

use crate::calling;
use crate::scalar_cases;

use girih_compiler::kernel::legalise::{Options, legalise};
use girih_compiler::num::op::Rounding;
use girih_compiler::num::{DType, ScalarOp, eval, math};
use girih_compiler::tile::target::Target;
use scalar_cases::{Case, N, bytes, cases, is_nan, kernel, values};

fn compare(lanes: u32, target: &Target, flags: &[&str], tag: &str) {
    compare_those(&cases(), lanes, target, flags, tag);
}

fn compare_those(cases: &[Case], lanes: u32, target: &Target, flags: &[&str], tag: &str) {
    if calling::cc().is_none() {
        return;
    }
    let mut wrong = Vec::new();
    for (part, cases) in cases.chunks(150).enumerate() {
        let kernels: Vec<_> = cases
            .iter()
            .enumerate()
            .map(|(i, c)| legalise(&kernel(c, &format!("k{i}"), lanes), &Options::default()).expect("lowers"))
            .collect();
        let source = girih_compiler::emit::c::emit(&kernels.iter().collect::<Vec<_>>(), target).unwrap().text;
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

/// Operations that have an instruction of their own there.
#[cfg(target_arch = "x86_64")]
#[test]
fn in_the_instructions_of_avx512() {
    let has = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512dq");
    if !has || !std::is_x86_feature_detected!("avx512bw") || !std::is_x86_feature_detected!("avx512vl") {
        return eprintln!("skipped: this processor has not all of AVX-512");
    }
    let of_its_own = |case: &Case| match case.op {
        ScalarOp::MaxF { .. } | ScalarOp::MinF { .. } | ScalarOp::DotF | ScalarOp::DotI | ScalarOp::DotB => true,
        op => math::program(op, case.at).is_some(),
    };
    let cases: Vec<Case> = cases().into_iter().filter(of_its_own).collect();
    let mut flags = vec!["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mfma"];
    let bf16 = std::is_x86_feature_detected!("avx512bf16").then_some("-mavx512bf16");
    flags.extend(bf16.into_iter().chain(std::is_x86_feature_detected!("avx512vnni").then_some("-mavx512vnni")));
    for lanes in [8, 16] {
        compare_those(&cases, lanes, &Target::cpu().with_vectors(64, 32), &flags, &format!("z{lanes}"));
    }
}

#[test]
fn without_fma_or_wide_vectors() {
    let mut target = Target::cpu().with_vectors(16, 16);
    target.vector.fma = false;
    compare(4, &target, &[], "p");
}

/// To integers and back, where the compiler can know that nothing saturates: what is from -1 to 0 becomes 0, not -0.
#[test]
fn what_truncates_to_zero_has_no_sign() {
    if calling::cc().is_none() {
        return;
    }
    let (floats, integers) = (["f32", "f64", "f16", "bf16"], ["i8", "i16", "i32", "i64"]);
    for (tag, place) in [("none", ""), ("lanes", " vector(16)")] {
        let mut kernels = vec![];
        for float in floats {
            for integer in integers {
                let text = format!(
                    "tile kernel k(x: ptr {float}, y: ptr {float}):
  for i in 0..37: free{place}
    a: {float} = load x[i]
    low: {float} = max(a, -100.0)
    b: {float} = min(low, 100.0)
    n: {integer} = {integer}(b)
    z: {float} = {float}(n)
    store y[i] = z
"
                );
                let (kernel, _) =
                    girih_compiler::loops::parse::parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e.message));
                kernels.push((legalise(&kernel, &Options::default()).expect("lowers"), float));
            }
        }
        let all: Vec<_> = kernels.iter().map(|(k, _)| k).collect();
        let source = girih_compiler::emit::c::emit(&all, &Target::cpu()).unwrap().text;
        let name = format!("zeros{tag}");
        let Some(unit) = calling::build(&name, &source, &["-march=native", "-fno-trapping-math"]) else { return };
        for (at, (_, float)) in kernels.iter().enumerate() {
            let dtype = DType::from_name(float).expect("a type");
            let quarter = |n: i64| {
                let bits = ((n as f64) / 4.0).to_bits();
                let (from, to) = (DType::F64, dtype);
                let rounding = Rounding::NearestEven;
                eval::apply(ScalarOp::FToF { to, rounding }, from, &[bits])
            };
            let x: Vec<u64> = (0..37).map(|n| quarter(n - 18)).collect();
            let want: Vec<u64> = (0..37).map(|n| quarter((n - 18) / 4 * 4)).collect();
            let (input, mut out) = (bytes(dtype, &x), bytes(dtype, &x));
            let args = [input.as_ptr() as u64, out.as_mut_ptr() as u64];
            assert_eq!(unit.run(at, &args, [1, 1, 1], &[]).code, 0);
            assert_eq!(out, bytes(dtype, &want), "{float}, kernel {at}, {tag}");
        }
    }
}
