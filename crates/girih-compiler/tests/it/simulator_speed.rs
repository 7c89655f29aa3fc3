//! A tiled product of matrices on the simulator, and how fast that is:
//! `cargo test --release -p girih-compiler --test it simulator_speed -- --ignored --nocapture`.

use std::fmt::Write;
use std::time::Instant;

use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::kernel::sim::{Kind, Options, Report, run};
use girih_compiler::kernel::{parse, verify};
use girih_compiler::loops;

/// A product of matrices in tiles of 64 x 64 x 16, by 256 threads with 4 x 4 sums each.
fn gemm(barrier: &str) -> String {
    let mut text = String::from(
        "kernel gemm(a: ptr<i32>, b: ptr<i32>, c: ptr<i32>, k: i32) threads 256 scratch 0 shared 8192 {
shared u: i32[1024] at 0
shared v: i32[1024] at 4096
",
    );
    for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
        let _ = writeln!(text, "var s{i}{j}: i32 = 0:i32");
    }
    text += "for k0 in 0..k step 16 {\n";
    for n in 0..4 {
        let _ = writeln!(text, "x{n}: i32 = load a[(by*64 + tx//16 + {n}*16)*k + k0 + tx%16]");
        let _ = writeln!(text, "store u[tx%16*64 + tx//16 + {n}*16] = x{n}");
        let _ = writeln!(text, "y{n}: i32 = load b[(k0 + tx//64 + {n}*4)*gx*64 + bx*64 + tx%64]");
        let _ = writeln!(text, "store v[(tx//64 + {n}*4)*64 + tx%64] = y{n}");
    }
    let _ = writeln!(text, "barrier\nfor j in 0..16 step 1 {{\np: i32x4 = load u[j*64 + tx//16*4]");
    for n in 0..4 {
        let _ = writeln!(text, "p{n}: i32 = lane p[{n}]\nq{n}: i32 = load v[j*64 + tx%16 + {n}*16]");
    }
    for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
        let _ =
            writeln!(text, "m{i}{j}: i32 = muli p{i}, q{j}\nt{i}{j}: i32 = addi s{i}{j}, m{i}{j}\ns{i}{j} = t{i}{j}");
    }
    let _ = writeln!(text, "}}\n{barrier}\n}}");
    for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
        let _ = writeln!(text, "store c[(by*64 + tx//16*4 + {i})*gx*64 + bx*64 + tx%16 + {j}*16] = s{i}{j}");
    }
    text + "}\n"
}

/// The report of a product of n x k by k x n, and whether it is right.
fn multiply(n: usize, k: usize, text: &str, options: &Options) -> (Report, bool) {
    let a: Vec<i32> = (0..n * k).map(|i| (i * 7 % 13) as i32).collect();
    let b: Vec<i32> = (0..n * k).map(|i| (i * 5 % 11) as i32).collect();
    let dot = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
    let expected: Vec<i32> = (0..n * n).map(|at| dot(at / n, at % n)).collect();
    let bytes = |values: &[i32]| -> Vec<u8> { values.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let mut memory = VecMemory::new();
    let [a, b, c] = [("a", &a), ("b", &b), ("c", &vec![0; n * n])].map(|(name, of)| memory.add(name, bytes(of)));
    let launch = Launch::new([(n / 64) as u32, (n / 64) as u32, 1], vec![a, b, c, k as u64]);
    let kernel = parse::parse(text).unwrap();
    assert_eq!(verify::verify(&kernel), [""; 0]);
    let placed = loops::ir::Kernel::default();
    let report = run(&kernel, &placed, &launch, &mut memory, &mut Silent, options).unwrap();
    (report, memory.bytes(c) == Some(&bytes(&expected)[..]))
}

#[test]
fn a_tiled_product_is_right_and_clean() {
    let (report, right) = multiply(64, 32, &gemm("barrier"), &Options::default());
    assert!(right && report.is_clean(), "{report}");
    let (report, _) = multiply(64, 32, &gemm(""), &Options::default());
    assert!(report.findings.iter().any(|f| f.kind == Kind::WriteAfterRead), "{report}");
}

#[test]
#[ignore = "it measures, which needs an optimised build"]
fn statements_a_second() {
    for (what, races, counts) in [("races and counts", true, true), ("races", true, false), ("neither", false, false)] {
        let options = Options { races, counts, ..Options::default() };
        let began = Instant::now();
        let (report, right) = multiply(128, 256, &gemm("barrier"), &options);
        let took = began.elapsed().as_secs_f64();
        assert!(right && report.is_clean(), "{report}");
        let ran = report.total.executions as f64;
        println!("{what}: {ran:.2e} statements in {took:.2} s, {:.1} million a second", ran / took / 1e6);
    }
}
