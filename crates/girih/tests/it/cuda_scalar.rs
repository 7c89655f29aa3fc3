//! Every scalar operation at every type in emitted CUDA against `num::eval::apply`, without a GPU: the source is compiled
//! by the system's C++ compiler, with stand-ins for CUDA's own functions (`cuda_on_host.h`). A function that is one
//! instruction of PTX cannot be compiled so; it is replaced too, by the PTX ISA's definition.
//!
//! Overflow of signed integers, which C++ leaves undefined, stops the test.

use crate::scalar_cases;

use std::process::Command;

use girih_compiler::emit::cuda::emit;
use girih_compiler::kernel::legalise::{Options, legalise};
use girih_compiler::num::eval;
use girih_compiler::tile::target::Target;
use scalar_cases::{N, bytes, cases, is_nan, kernel, values};

const FLAGS: [&str; 12] = [
    "-std=c++17",
    "-O1",
    "-shared",
    "-fPIC",
    "-w",
    "-mfma",
    "-ffp-contract=off",
    "-frounding-math",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fsanitize=signed-integer-overflow,integer-divide-by-zero,shift,float-cast-overflow",
    "-fsanitize-undefined-trap-on-error",
];

/// The source without the functions that are PTX.
fn on_host(source: &str) -> String {
    let mut out = include_str!("cuda_on_host.h").to_string();
    let mut rest = source;
    while let Some(at) = rest.find("\nINLINE ") {
        let (before, function) = rest.split_at(at + 1);
        let end = function.find("\n}\n").expect("a function ends") + 3;
        out.push_str(before);
        if !function[..end].contains("asm(") {
            out.push_str(&function[..end]);
        }
        // The line end before the next function is found again.
        rest = &function[end - 1..];
    }
    out + rest
}

#[test]
fn every_operation_computes_what_the_evaluator_does() {
    let cxx = std::env::var("CXX").unwrap_or_else(|_| "c++".to_string());
    if Command::new(&cxx).arg("--version").output().is_err() || !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: no C++ compiler `{cxx}` for x86-64");
        return;
    }
    let target = Target::named("sm_90a").expect("a target");
    let dir = std::env::temp_dir().join(format!("girih-cuda-scalar-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let (cases, mut wrong) = (cases(), Vec::new());
    let parts: Vec<_> = cases.chunks(100).enumerate().collect();
    let build = |part: usize, cases: &[scalar_cases::Case]| {
        let kernels: Vec<_> = (cases.iter().enumerate())
            .map(|(i, c)| legalise(&kernel(c, &format!("k{i}"), 1), &Options::default()).expect("lowers"))
            .collect();
        let unit = emit(&kernels.iter().collect::<Vec<_>>(), &target).unwrap_or_else(|r| panic!("{}", r.message));
        let (source, object) = (dir.join(format!("{part}.cpp")), dir.join(format!("{part}.so")));
        std::fs::write(&source, on_host(&unit.text)).expect("written");
        let done = Command::new(&cxx).args(FLAGS).arg("-o").arg(&object).arg(&source).output().expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        (unit, object)
    };
    for (part, cases) in parts {
        let (unit, object) = build(part, cases);
        // SAFETY: what was just built from emitted source.
        let library = unsafe { libloading::Library::new(&object) }.expect("it loads");
        for (entry, case) in unit.entries.iter().zip(cases) {
            let inputs: Vec<Vec<u64>> = case.params.iter().enumerate().map(|(i, &d)| values(d, i)).collect();
            let buffers: Vec<Vec<u8>> = case.params.iter().zip(&inputs).map(|(&d, v)| bytes(d, v)).collect();
            let size = case.result.bytes() as usize;
            let mut out = vec![0u8; N as usize * size];
            let mut args: Vec<*mut u8> = buffers.iter().map(|b| b.as_ptr().cast_mut()).collect();
            args.push(out.as_mut_ptr());
            let symbol = format!("{}\0", entry.name);
            args.resize(4, std::ptr::null_mut());
            // SAFETY: the function takes at most four addresses, of arrays of the elements that the kernel names.
            unsafe {
                type Entry = extern "C" fn(*mut u8, *mut u8, *mut u8, *mut u8);
                let f = library.get::<Entry>(symbol.as_bytes()).expect("an entry");
                f(args[0], args[1], args[2], args[3]);
            }
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
    let _ = std::fs::remove_dir_all(&dir);
    println!("{} operations", cases.len());
    assert!(wrong.is_empty(), "{} operations differ:\n{}", wrong.len(), wrong.join("\n"));
}
