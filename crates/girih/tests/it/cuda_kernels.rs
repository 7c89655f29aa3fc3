//! Emitted CUDA executed without a GPU: the source that NVRTC gets is compiled by the system's C++ compiler, with stand-ins
//! for CUDA's own functions (`cuda_on_host.h`) and for threads, shared memory and single instructions of PTX
//! (`cuda_block_on_host.h`), and run. It leaves the same memory as the simulator, bit for bit.
//!
//! Threads run in both orders, and asynchronous copies land at once or when they are waited for. `KERNELS=all` runs each
//! program for every target.

use crate::gpu_programs;

use std::path::Path;
use std::process::Command;

use girih_compiler::emit::cuda::{Unit, emit};
use girih_compiler::index::Ix;
use girih_compiler::kernel::ir::Kernel;
use girih_compiler::kernel::parse::parse;
use girih_compiler::tile::target::Target;
use gpu_programs::{Program, fill, programs, simulate, suite};

const FLAGS: [&str; 10] = [
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
];

/// The functions of a source, with what stands between them.
fn functions(source: &str) -> Vec<(&str, &str)> {
    let mut out = vec![];
    let mut rest = source;
    while let Some(at) = rest.find("\nINLINE ") {
        let (before, function) = rest.split_at(at + 1);
        let end = function.find("\n}\n").expect("a function ends") + 3;
        out.push((before, &function[..end]));
        rest = &function[end - 1..];
    }
    out.push((rest, ""));
    out
}

/// The source without the functions that are PTX, whose stand-ins the headers have.
fn on_host(source: &str) -> String {
    let mut out = String::new();
    for (before, function) in functions(source) {
        let head = function.lines().next().unwrap_or_default();
        out.push_str(before);
        match function.contains("asm(") || function.contains("asm volatile(") {
            false => out.push_str(function),
            // A wait for products behind which arrays are computed; the digit says how many groups go on.
            true if head.starts_with("INLINE void wgmma_wait_") && head.contains(", ") => {
                let left = head.trim_start_matches("INLINE void wgmma_wait_").chars().next().expect("a digit");
                out.push_str(&format!("{head}\n  wgmma_wait({left});\n}}\n"));
            }
            true if head.starts_with("INLINE float exp2_approx_f32(") => out.push_str(&unit_of_exponentials(source)),
            true => {}
        }
    }
    out.replace("extern __shared__ ", "unsigned char *shared_u8 = girih::shared(); // ")
}

/// The GPU's unit as the simulator has it: the function, with those that it calls and that a source does not have.
fn unit_of_exponentials(source: &str) -> String {
    let text = "kernel k(x: ptr<f32>) scratch 0 {\n  a: f32 = load x[0]\n  b: f32 = exp2.ftz a\n  store x[0] = b\n}\n";
    let kernel = parse(text).unwrap_or_else(|d| panic!("{}", d.message));
    let unit = emit(&[&kernel], &Target::named("sm_80").unwrap()).unwrap_or_else(|r| panic!("{}", r.message));
    let name = |function: &str| function.split('(').next().unwrap_or_default().to_string();
    let of_source: Vec<String> = functions(source).iter().map(|(_, function)| name(function)).collect();
    let other =
        |function: &&str| !function.is_empty() && !function.contains("asm(") && !of_source.contains(&name(function));
    let others: String = functions(&unit.text).into_iter().map(|(_, function)| function).filter(other).collect();
    format!("{others}INLINE float exp2_approx_f32(float x) {{\n  return girih_exp2_ftz_f32(x);\n}}\n")
}

/// A translation unit for the host: the headers, the source, and a function that runs its kernel.
fn translation(unit: &Unit) -> String {
    let headers =
        [include_str!("cuda_on_host.h"), "#include <utility>\n", include_str!("cuda_block_on_host.h")].concat();
    let name = &unit.entries[0].name;
    format!(
        "{headers}{}\nstatic void all(const unsigned long long *args) {{ girih::call({name}, args); }}\nextern \"C\" int \
         girih_run(const unsigned long long *args, const unsigned *grid, int threads, int cluster, int mode) {{\n  return \
         girih::run(all, args, grid, threads, cluster, mode);\n}}\n",
        on_host(&unit.text)
    )
}

/// How TMA sees arrays: `girih_tensor` of the header.
fn tensors(kernel: &Kernel, args: &[u64]) -> Vec<[u64; 19]> {
    let of = |ix: &Ix| {
        ix.eval(&|leaf| match leaf {
            Ix::Const(n) => *n,
            Ix::Val { val, .. } => kernel.params.iter().position(|p| p == val).map_or(0, |at| args[at] as i64),
            _ => 0,
        }) as u64
    };
    let one = |t: &girih_compiler::kernel::ir::Tensor| {
        let mut words = [0; 19];
        let base = kernel.params.iter().position(|p| *p == t.base).expect("a parameter");
        words[..4].copy_from_slice(&[args[base], t.elem.bytes(), t.dims.len() as u64, t.swizzle.into()]);
        for (d, extent) in t.dims.iter().enumerate() {
            words[4 + d] = of(extent);
            words[9 + d] = t.strides.get(d).map_or(1, of);
            words[14 + d] = t.extents[d].into();
        }
        words
    };
    kernel.tensors.values().map(one).collect()
}

/// The memory after the source has run; the error says why it failed.
fn execute(program: &Program, kernel: &Kernel, object: &Path, mode: i32) -> Result<Vec<Vec<u8>>, String> {
    // Arrays begin where the simulator's do, at multiples of 64 bytes.
    let mut arrays: Vec<Vec<u8>> =
        program.arrays.iter().enumerate().map(|(i, (d, n))| fill(*d, *n, i as u64)).collect();
    let mut room: Vec<Vec<[u64; 16]>> = arrays.iter().map(|a| vec![[0; 16]; a.len().div_ceil(128) + 1]).collect();
    let mut args = vec![];
    for (space, bytes) in room.iter_mut().zip(&arrays) {
        let at = space.as_mut_ptr().cast::<u8>();
        let at = at.wrapping_add(at.align_offset(64));
        // SAFETY: the space is at least 128 bytes longer than the array.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        args.push(at as u64);
    }
    let grid = kernel.blocks(&args).ok_or("the launch gives the grid")?.map(|n| n as u32);
    let described = tensors(kernel, &args);
    let mut words = args.clone();
    words.extend(described.iter().map(|t| t.as_ptr() as u64));
    // SAFETY: what was just built from emitted source, called as it is declared, on arrays as long as the plan says.
    let code = unsafe {
        type Entry = extern "C" fn(*const u64, *const u32, i32, i32, i32) -> i32;
        let library = libloading::Library::new(object).map_err(|e| e.to_string())?;
        let run = library.get::<Entry>(b"girih_run\0").map_err(|e| e.to_string())?;
        run(words.as_ptr(), grid.as_ptr(), kernel.threads as i32, kernel.cluster as i32, mode)
    };
    for (bytes, at) in arrays.iter_mut().zip(&args) {
        let len = bytes.len();
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(*at as *const u8, bytes.as_mut_ptr(), len) };
    }
    if code == 0 { Ok(arrays) } else { Err("its threads wait for each other".to_string()) }
}

/// A compiler and a folder for its output, which is removed with it.
struct Built {
    dir: std::path::PathBuf,
    cxx: String,
}

impl Drop for Built {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Built {
    fn object(&self, unit: &Unit) -> Result<std::path::PathBuf, String> {
        let number = std::fs::read_dir(&self.dir).map_or(0, |all| all.count());
        let (source, object) = (self.dir.join(format!("{number}.cpp")), self.dir.join(format!("{number}.so")));
        std::fs::write(&source, translation(unit)).expect("written");
        let done = Command::new(&self.cxx).args(FLAGS).arg("-o").arg(&object).arg(&source).output().expect("it starts");
        let errors = String::from_utf8_lossy(&done.stderr);
        let errors: Vec<&str> = errors.lines().filter(|l| l.contains("error")).take(3).collect();
        if done.status.success() { Ok(object) } else { Err(errors.join("\n")) }
    }
}

/// The C++ compiler; `None` where there is none, or the machine is another one.
fn compiler(name: &str) -> Option<Built> {
    let cxx = std::env::var("CXX").unwrap_or_else(|_| "c++".to_string());
    if Command::new(&cxx).arg("--version").output().is_err() || !cfg!(all(target_arch = "x86_64", target_os = "linux"))
    {
        eprintln!("skipped: no C++ compiler `{cxx}` for x86-64 and Linux");
        return None;
    }
    let dir = std::env::temp_dir().join(format!("girih-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    Some(Built { dir, cxx })
}

#[test]
fn the_source_computes_what_the_simulator_does() {
    let Some(built) = compiler("cuda-kernels") else { return };
    let all = std::env::var("KERNELS").is_ok_and(|all| all == "all");
    let (mut kernels, mut runs, mut wrong) = (0, 0, vec![]);
    for (program, target) in suite(all) {
        let kernel = &program.lowered.kernel;
        let want = simulate(&program, kernel, 0).unwrap_or_else(|| panic!("{}", program.name));
        let unit = emit(&[kernel], &Target::named(target).unwrap()).unwrap_or_else(|r| panic!("{}", r.message));
        assert_eq!(
            program.is_grouped(),
            ["wgmma_commit();", "tcgen05_commit("].iter().any(|call| unit.text.contains(call)),
            "{}",
            program.name
        );
        kernels += 1;
        let object = match built.object(&unit) {
            Ok(object) => object,
            Err(why) => {
                wrong.push(format!("{}: {why}", program.name));
                continue;
            }
        };
        for mode in 0..4 {
            runs += 1;
            match execute(&program, kernel, &object, mode) {
                Ok(got) if got == want => {}
                Ok(_) => wrong.push(format!("{}, mode {mode}: other values", program.name)),
                Err(why) => wrong.push(format!("{}, mode {mode}: {why}", program.name)),
            }
        }
    }
    println!("{kernels} kernels, {runs} runs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kernels >= 25, "{kernels}");
}

/// Errors in the source alone are noticed: a barrier or a wait that is not printed.
#[test]
fn a_line_that_is_missing_is_noticed() {
    let Some(built) = compiler("cuda-missing") else { return };
    let programs = programs(
        "torch.randn(70, 400, dtype=torch.float16) @ torch.randn(400, 136, dtype=torch.float16)",
        "sm_80",
        &[],
    );
    let program = programs.first().expect("a kernel");
    let kernel = &program.lowered.kernel;
    let want = simulate(program, kernel, 0).expect("it is right");
    let unit = emit(&[kernel], &Target::named("sm_80").unwrap()).unwrap_or_else(|r| panic!("{}", r.message));
    let lines: Vec<&str> = unit.text.lines().collect();
    let mut noticed = 0;
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        if !(line == "__syncthreads();" || line.starts_with("copy_async_wait_") || line.starts_with("mma_f16(")) {
            continue;
        }
        let rest: Vec<&str> = lines.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, l)| *l).collect();
        let object = built.object(&Unit { text: rest.join("\n") + "\n", ..unit.clone() }).expect("it compiles");
        let differs = (0..4).any(|mode| execute(program, kernel, &object, mode).as_ref() != Ok(&want));
        assert!(differs, "nobody notices that line {at} is gone: {line}");
        noticed += 1;
    }
    assert!(noticed >= 3, "{noticed}");
}
